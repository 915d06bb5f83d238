"""Many false claims with edited proofs: neither checker accepts one; the true ones among them both do."""

from false_claims import accepted


def test_no_false_claim_is_accepted(slow: bool) -> None:
    many = 4000 if slow else 50
    for checker, found in accepted(many, seed=7).items():
        assert found == {True: f"{many // 50} of {many // 50}", False: f"0 of {many // 50 * 49}"}, checker
