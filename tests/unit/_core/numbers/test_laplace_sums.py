"""Sums of noise of several scales, at the ends of what doubles hold."""

import math

import pytest

from pufferfish._core.numbers.laplace import LaplaceSum
from pufferfish.errors import ParameterError


@pytest.mark.parametrize("scale", [1e14 * (1 + 1e-15), 1e200, math.inf, math.nan])
def test_scales_that_doubles_cannot_compute_with_are_refused(scale: float) -> None:
    with pytest.raises(ParameterError, match="sums of noise are computed up to a scale of 1e"):
        LaplaceSum([1.0, scale])


def test_the_largest_and_the_least_scales_have_the_law_of_their_ratio() -> None:
    """Two alike are a fixed multiple of their scale; a negligible one changes nothing, and no warning is given."""
    of_two = LaplaceSum([1e6, 1e6]).accuracy(0.05) / 1e6
    assert LaplaceSum([1e14, 1e14]).accuracy(0.05) / 1e14 == pytest.approx(of_two, rel=1e-3)
    alone = LaplaceSum([1e14]).accuracy(0.05)
    assert alone <= LaplaceSum([1e14, 5e-324]).accuracy(0.05) <= alone * (1 + 1e-3)
    assert LaplaceSum([5e-324, 1e-300]).accuracy(0.05) == 0
