"""What certificates prove of networks, beside linear programs over all densities and beside the engine."""

import pytest

from network_claims import network_claims
from pufferfish.release.checker import check


@pytest.mark.parametrize("seed", range(4))
def test_what_is_proved_is_no_less_than_what_leaks(seed: int, slow: bool) -> None:
    """Nor less than the engine proves; and for most of these networks all three are the same."""
    compared = sharp = 0
    for found in network_claims(seed, 100 if slow else 12):
        compared += 1
        sharp += found.proved <= found.truth * (1 + 1e-4)
        assert found.truth <= found.proved * (1 + 1e-9) + 1e-9, found.record.calibration
        assert found.engine <= found.proved * (1 + 1e-6) + 1e-9, found.record.calibration
        for share, proves in ((1 + 1e-9, True), (1 - 1e-4, False)):
            found.claim.limit = check.exp(check.Fraction(found.proved * share), False)
            try:
                check.prove(found.claim, found.proof)
            except check.NotProved:
                assert not proves
            else:
                assert proves or found.proved < 1e-4
    assert sharp > compared / 2
