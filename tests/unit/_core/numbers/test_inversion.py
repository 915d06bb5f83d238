"""Inverting a falling function: on the private side, whatever the function does elsewhere."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from pufferfish._core.numbers.rounding import bracket

FALLING: dict[str, Callable[[float], float]] = {
    "inverse": lambda b: 1 / b,
    "steep": lambda b: b**-15.0,
    "flat": lambda b: b**-0.05,
    "infinite before 3": lambda b: math.inf if b < 3 else 3 / b,
    "with a jump": lambda b: 7.0 if b < 2.5 else 0.5,
    "logarithmic": lambda b: math.log1p(5 / b),
}


@pytest.mark.parametrize("start", [1e-6, 0.7, 1.0, 40.0, 1e9])
@pytest.mark.parametrize("name", list(FALLING))
@pytest.mark.parametrize("from_above", [False, True])
def test_it_ends_close_to_the_level_on_both_sides(name: str, start: float, from_above: bool) -> None:
    falling = FALLING[name]
    found = bracket(falling, 0.8, start, tolerance=1e-6, from_above=from_above)
    if found.enough < math.inf:
        assert falling(found.enough) <= 0.8
    if found.too_small > 0:
        assert falling(found.too_small) > 0.8
    assert found.too_small < found.enough
    nearest = found.too_small if from_above else found.enough
    close = abs(falling(nearest) / 0.8 - 1) <= 1e-6
    assert close or found.enough <= found.too_small * (1 + 1e-7)


def test_a_level_that_is_never_reached_has_no_crossing() -> None:
    never_enough = bracket(lambda _: 2.0, 0.8, 1.0, tolerance=1e-6, from_above=False)
    assert (never_enough.enough, never_enough.too_small > 1) == (math.inf, True)
    never_too_small = bracket(lambda _: 0.1, 0.8, 1.0, tolerance=1e-6, from_above=True)
    assert (never_too_small.too_small, never_too_small.enough < 1) == (0.0, True)


def test_nothing_to_pay_is_enough_at_once() -> None:
    asked: list[float] = []
    found = bracket(lambda b: asked.append(b) or 0.0, 0.8, 3.0, tolerance=1e-6, from_above=False)
    assert (found.enough, asked) == (3.0, [3.0])


def test_levels_far_from_the_first_guess() -> None:
    """Powers of how far a value is from its goal overflowed."""
    for level in (1e-100, 1e-200, 1e-300, 1e100, 1e300):  # farther than about 1e107 no noise is found
        found = bracket(lambda scale: 1 / scale, level, 1.0, tolerance=1e-6, from_above=False)
        assert 1 / found.enough <= level
        assert level != 1e-100 or found.enough * level < 1 + 1e-3


LOSSES = [0.0016449, 0.0019424, 0.0022084, 0.0024332, 0.0026231, 0.0027922, 0.0030027, 0.0030627, 0.0031808, 0.0035453]
LEAKS = [0.26743, 0.31793, 0.36356, 0.42394, 0.50319, 0.61295, 0.87400, 1.0, 1.38369, 4.35147]
"""What a person's own kinds of stay leak."""


def test_beyond_a_place_without_any_bound_few_points_are_asked() -> None:
    """Where noise is too small for a fixed point, a bound is a sum over all records, which takes long to find."""
    asked: list[float] = []

    def falling(noise: float) -> float:
        asked.append(noise)
        loss = 1 / noise
        return 1.5e6 * loss if loss > 0.0036 else float(np.interp(loss, [0.0, *LOSSES], [0.0, *LEAKS]))

    found = bracket(falling, 1.0, 1 / LOSSES[0], tolerance=1e-6, from_above=False)
    assert found.enough == pytest.approx(1 / 0.0030627, rel=1e-5)
    assert sum(noise < 1 / 0.0036 for noise in asked) == 1
