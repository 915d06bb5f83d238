import math
from fractions import Fraction
from itertools import accumulate

import numpy as np

from pufferfish._core.laws.law import Law, laplace_loss
from pufferfish._core.laws.transport import shift


def test_a_comparison_leaves_the_laws_as_they_are() -> None:
    """Their logarithms are kept for the next comparison, and ten times a tenth is not 1 in doubles."""
    laws = [Law.exact(start, [Fraction(1, 10)] * 10) for start in (0, 1)]
    kept = [(law.log_below.copy(), law.log_above.copy()) for law in laws]
    assert kept[0][0][-1] != 0
    assert shift(*laws).near == 1
    for law, (below, above) in zip(laws, kept, strict=True):
        assert np.array_equal(law.log_below, below)
        assert np.array_equal(law.log_above, above)
        assert not law.log_below.flags.writeable
        assert not law.log_above.flags.writeable


def random_law(rng: np.random.Generator) -> tuple[int, list[Fraction]]:
    weights = [int(v) for v in rng.integers(1, 1000, rng.integers(1, 9))]
    return int(rng.integers(-6, 7)), [Fraction(v, sum(weights)) for v in weights]


def below(start: int, masses: list[Fraction], n: int) -> Fraction:
    return [Fraction(0), *accumulate(masses)][min(max(n - start + 1, 0), len(masses))]


def test_distances_of_laws_that_begin_anywhere() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        mu, nu = random_law(rng), random_law(rng)
        first, second = ([below(*law, n) for n in range(-20, 60)] for law in (mu, nu))
        reach = next(
            w
            for w in range(40)
            if all(one[n] <= other[n + w] for one, other in ((first, second), (second, first)) for n in range(40))
        )
        found = shift(Law.exact(*mu), Law.exact(*nu))
        assert reach <= found.certain <= reach + 1
        assert found.near == reach


def test_a_loss_is_rounded_up_and_hardly() -> None:
    """Of two point masses it is their distance over the scale, exactly."""
    for apart in (1, 3, 50):
        point, other = (Law.exact(n, [Fraction(1)]) for n in (0, apart))
        for scale in (0.1, 0.7, 3.0, 1e3):
            exact = Fraction(apart) / Fraction(scale)
            found = laplace_loss(point, other, scale)
            assert exact <= Fraction(found)
            assert found <= float(exact) * (1 + 1e-9) + 1e-12
    assert math.isinf(laplace_loss(*(Law.exact(n, [Fraction(1)]) for n in (0, 1)), 1e-300))
