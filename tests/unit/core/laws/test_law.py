from fractions import Fraction

import numpy as np

from pufferfish.core.laws.law import Law
from pufferfish.core.laws.transport import shift


def test_a_comparison_leaves_the_laws_as_they_are() -> None:
    """Their logarithms are kept for the next comparison, and ten times a tenth is not 1 in doubles."""
    laws = [Law.exact(start, [Fraction(1, 10)] * 10) for start in (0, 1)]
    kept = [(law.log_below().copy(), law.log_above().copy()) for law in laws]
    assert kept[0][0][-1] != 0
    assert shift(*laws).near == 1
    for law, (below, above) in zip(laws, kept, strict=True):
        assert np.array_equal(law.log_below(), below)
        assert np.array_equal(law.log_above(), above)
        assert not law.log_below().flags.writeable
        assert not law.log_above().flags.writeable
