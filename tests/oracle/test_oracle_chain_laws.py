"""Laws of additive statistics of long chains, also where one stands for many records, in numbers that never round.

The oracle holds Σ_n c_n z^n with whole numbers c_n as one huge decimal number, z = 10^width: a step of the chain is
then additions and shifts, and P(X_i = a, F = n) for all n at once is one multiplication.
"""

import decimal
import math
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from enumeration import exact_stationary
from pufferfish._core.laws.law import Law
from pufferfish._core.laws.of_chains import AdditiveChain, NodeLaws
from pufferfish._core.numbers.wide import Wide

SLOP = 2e-12
"""What this file's own logarithms are rounded by: of numbers of a thousand digits, in doubles."""


@pytest.fixture(autouse=True)
def _decimals_that_never_round() -> Iterator[None]:
    exact = Context(prec=10**7, Emax=10**8, Emin=-(10**8), traps=[decimal.Inexact, decimal.InvalidOperation])
    with decimal.localcontext(exact):
        yield


class Exact:
    """A chain with whole weights, and its additive statistic in exact arithmetic.

    Parameters
    ----------
    initial, transition : whole numbers
        Weights: the chain has them divided by their sums, which are the same for all rows.
    values : (T, k)
        What record t adds in each state.
    """

    def __init__(self, initial: Sequence[int], transition: Sequence[Sequence[int]], values: NDArray[np.int64]) -> None:
        self.steps, self.k = values.shape
        self.low = values.min(axis=1)
        self.adds = values - self.low[:, None]
        self.start = int(self.low.sum())
        self.initial, self.p = initial, transition
        self.size = 1 + int(self.adds.max(axis=1).sum())
        (rows,) = {sum(row) for row in transition}
        self.width = math.ceil(math.log10(sum(initial)) + self.steps * math.log10(rows)) + 2
        self.pasts = [[self._shifted(Decimal(w), 0, a) for a, w in enumerate(initial)]]
        for t in range(1, self.steps):
            before = self.pasts[-1]
            self.pasts.append(
                [self._shifted(sum(before[x] * self.p[x][y] for x in range(self.k)), t, y) for y in range(self.k)]
            )
        self.futures = [[Decimal(1)] * self.k]
        for t in range(self.steps - 1, 0, -1):
            after = [self._shifted(poly, t, y) for y, poly in enumerate(self.futures[-1])]
            self.futures.append([sum(after[y] * self.p[x][y] for y in range(self.k)) for x in range(self.k)])
        self.futures.reverse()

    def _shifted(self, poly: Decimal, t: int, state: int) -> Decimal:
        return poly.scaleb(int(self.adds[t, state]) * self.width) if poly else poly

    def law(self, node: int, state: int) -> NDArray[np.float64] | None:
        """Logarithms of P(F = start + n | X_node = state); −∞ where the mass is exactly 0."""
        return self._logs(self.pasts[node][state] * self.futures[node][state])

    def total(self) -> NDArray[np.float64] | None:
        return self._logs(sum(self.pasts[-1]))

    def _logs(self, poly: Decimal) -> NDArray[np.float64] | None:
        if not poly:
            return None
        digits = format(poly, "f").rjust(self.size * self.width, "0")
        assert len(digits) == self.size * self.width
        found = np.full(self.size, -math.inf)
        for n in range(self.size):
            end = len(digits) - n * self.width
            number = digits[end - self.width : end].lstrip("0")
            if number:
                found[n] = math.log(float("0." + number[:25])) + len(number) * math.log(10)
        return found - found.max() - math.log(math.fsum(np.exp(found - found.max())))


def agrees(law: Law | None, truth: NDArray[np.float64] | None, start: int, where: object) -> None:
    """Every mass is within the law's own error, and every zero is one."""
    assert (law is None) == (truth is None), where
    if law is None or truth is None:
        return
    support = np.flatnonzero(truth > -math.inf)
    assert (law.start, law.end) == (start + support[0], start + support[-1]), where
    kept = truth[support[0] : support[-1] + 1]
    logs = law.masses.log()
    assert np.array_equal(law.masses.positive, kept > -math.inf), where
    difference = np.abs(logs[law.masses.positive] - kept[law.masses.positive])
    assert difference.max() <= law.log_error + SLOP, where


def members(found: NodeLaws, period: int) -> range:
    return range(found.node, found.last + 1, period)


def covered(laws: list[NodeLaws], steps: int, period: int) -> None:
    """Every record once, by a law of its own or by one that stands for it."""
    assert sorted(t for found in laws for t in members(found, period)) == list(range(steps))


def chain_of(
    initial: Sequence[int], transition: Sequence[Sequence[int]], values: NDArray[np.int64], steps: int, period: int = 1
) -> AdditiveChain:
    rows = np.array([[w / sum(row) for w in row] for row in transition])
    assert all(
        Fraction(float(rows[x, y])) == Fraction(w, sum(transition[x]))
        for x in range(len(rows))
        for y, w in enumerate(transition[x])
    )
    start = Wide.of([w / sum(initial) for w in initial])
    return AdditiveChain(start, rows, values, steps, period=period)


def check(
    initial: Sequence[int],
    transition: Sequence[Sequence[int]],
    values: NDArray[np.int64],
    steps: int,
    *,
    period: int = 1,
    every: int = 1,
) -> list[NodeLaws]:
    """Compare all laws; of the records that one law stands for, the first, the last and one in ``every``."""
    chain = chain_of(initial, transition, values, steps, period)
    exact = Exact(initial, transition, np.broadcast_to(values, (steps, values.shape[-1])))
    found = list(chain.nodes())
    covered(found, steps, period)
    for laws in found:
        group = members(laws, period)
        for t in sorted({*group[::every], group[0], group[-1]}):
            for a in range(exact.k):
                agrees(laws.laws[a], exact.law(t, a), exact.start, (t, a, laws.node))
    agrees(chain.total(), exact.total(), exact.start, "total")
    assert all(law is None or law.log_error < 1e-8 for laws in found for law in laws.laws)
    return found


def grouped(found: list[NodeLaws]) -> int:
    """How many laws stand for more than one record."""
    return sum(laws.last > laws.node for laws in found)


def dyadic_weights(rng: np.random.Generator, k: int, bits: int, zeros: float = 0.0) -> list[int]:
    """Whole numbers that sum to 2^bits."""
    kept = rng.random(k) >= zeros
    kept[rng.integers(k)] = True
    weights = np.where(kept, np.floor((rng.dirichlet(np.ones(k)) + 0.1) / (1 + 0.1 * k) * 2**bits) + 1, 0).astype(int)
    weights[int(np.argmax(weights))] += 2**bits - weights.sum()
    return [int(w) for w in weights]


LONG = pytest.param(3, 120, 5, marks=pytest.mark.slow)


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize(("k", "steps", "every"), [(2, 60, 1), (2, 180, 3), (3, 60, 1), LONG, (4, 80, 5)])
def test_chains_that_mix(k: int, steps: int, every: int, slow: bool) -> None:
    for seed in range(2 if slow else 1):
        rng = np.random.default_rng([seed, k, steps])
        transition = [dyadic_weights(rng, k, 5) for _ in range(k)]
        values = np.array([[0, 1], [0, 1, 3], [-1, 0, 0, 1]][k - 2])
        found = check(dyadic_weights(rng, k, 5), transition, values, steps, every=every)
        assert grouped(found) <= 1
        assert grouped(found) == 1 or steps < 100


@pytest.mark.slow
def test_a_chain_of_300_records() -> None:
    found = check([1, 3], [[11, 5], [3, 13]], np.array([0, 1]), 300, every=37)
    assert grouped(found) == 1
    assert max(laws.last - laws.node for laws in found) > 200


@pytest.mark.parametrize("steps", [100, pytest.param(200, marks=pytest.mark.slow)])
def test_sticky_chains(steps: int) -> None:
    """0.99 and 0.98 to stay: laws are alike only far from the ends."""
    check([127, 1], [[127, 1], [2, 126]], np.array([0, 1]), steps, every=9)
    check([64, 64], [[127, 1], [1, 127]], np.array([0, 1]), steps, every=9)
    check([8, 8, 0], [[30, 1, 1], [0, 31, 1], [1, 1, 30]], np.array([0, 1, 0]), steps // 2, every=9)


@pytest.mark.parametrize(
    ("transition", "period"),
    [
        ([[0, 1], [1, 0]], 2),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], 3),
        ([[0, 8, 8], [16, 0, 0], [16, 0, 0]], 2),
        ([[0, 0, 5, 11], [0, 0, 8, 8], [2, 14, 0, 0], [8, 8, 0, 0]], 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("steps", [60, 91])
def test_periodic_chains(transition: list[list[int]], period: int, steps: int) -> None:
    """A law stands for records a whole number of periods away, not for those between."""
    k = len(transition)
    values = np.array([0, 1, 0, 2][:k])
    for start in ([1] + [0] * (k - 1), dyadic_weights(np.random.default_rng(k), k, 4)):
        found = check(start, transition, values, steps, period=period, every=4)
        assert grouped(found) in (0, period)
    if k == 2:
        assert grouped(found) == period


@pytest.mark.parametrize("steps", [60, pytest.param(150, marks=pytest.mark.slow)])
def test_nearly_periodic_chains(steps: int) -> None:
    """One step in a hundred does not alternate: no period, and even and odd records are alike only slowly."""
    found = check([64, 64], [[1, 127], [127, 1]], np.array([0, 1]), steps, every=6)
    # from one state the odd and even records differ for all of such a chain
    assert all(laws.last - laws.node < steps for laws in found)
    check([128, 0], [[1, 127], [126, 2]], np.array([0, 1]), steps, every=6)


@pytest.mark.parametrize(
    "transition",
    [
        [[12, 4], [0, 16]],
        [[15, 1, 0], [0, 15, 1], [0, 0, 16]],
        [[16, 0], [0, 16]],
        [[8, 8, 0], [0, 8, 8], [0, 8, 8]],
    ],
    ids=str,
)
def test_where_no_law_stands_for_others(transition: list[list[int]]) -> None:
    """Absorbing and transient states: at every record the laws are different ones."""
    k = len(transition)
    found = check([16 // k] * (k - 1) + [16 - 16 // k * (k - 1)], transition, np.array([0, 1, 5][:k]), 70)
    if transition == [[16, 0], [0, 16]]:  # all records are one and the same
        assert grouped(found) == 1
    elif transition[0][0] != 8:
        assert grouped(found) == 0
        assert len(found) == 70


def test_records_that_count_differently() -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(-2, 4, (60, 3))
    found = check([4, 4, 8], [dyadic_weights(rng, 3, 4) for _ in range(3)], values, 60)
    assert grouped(found) == 0


def test_a_state_that_never_adds_and_states_that_add_alike() -> None:
    check([5, 3, 8], [[11, 5, 0], [3, 13, 0], [4, 4, 8]], np.array([2, 2, 2]), 60)
    check([5, 3, 8], [[11, 5, 0], [3, 9, 4], [4, 4, 8]], np.array([-7, -7, 5]), 60)


def test_what_other_records_add() -> None:
    """Independent of the chain: convolved, here by hand in exact fractions."""
    others = [Fraction(1, 8), Fraction(0), Fraction(1, 2), Fraction(3, 8)]
    initial, transition, values, steps = [4, 12], [[11, 5], [3, 13]], np.array([0, 1]), 70
    rows = np.array(transition) / 16
    start = Wide.of(np.array(initial) / 16)
    chain = AdditiveChain(start, rows, values, steps, others=Law.exact(-2, others))
    exact = Exact(initial, transition, np.broadcast_to(values, (steps, 2)))
    found = list(chain.nodes())
    covered(found, steps, 1)
    with np.errstate(divide="ignore"):
        logs = np.log([float(m) for m in others])
    for laws in found:
        for t in {laws.node, laws.last, (laws.node + laws.last) // 2}:
            for a in (0, 1):
                alone = exact.law(t, a)
                assert alone is not None
                sums = np.full((len(others), len(alone) + len(others) - 1), -math.inf)
                for j, log in enumerate(logs):
                    sums[j, j : j + len(alone)] = alone + log
                agrees(laws.laws[a], np.logaddexp.reduce(sums, axis=0), exact.start - 2, (t, a))


def test_given_what_records_may_be() -> None:
    """Conditioning anywhere: against sums over all that is left, which here is a product of two chains' ends."""
    initial, transition, steps = [4, 12], [[11, 5], [3, 13]], 60
    rows = np.array(transition) / 16
    chain = AdditiveChain(Wide.of(np.array(initial) / 16), rows, np.array([0, 1]), steps)
    exact = Exact(initial, transition, np.broadcast_to(np.array([0, 1]), (steps, 2)))
    for t, a in ((0, 0), (13, 1), (59, 1)):
        allowed: list[NDArray[np.bool_] | None] = [None] * steps
        allowed[t] = np.arange(2) == a
        agrees(chain.given(allowed), exact.law(t, a), 0, (t, a))
    assert chain.given([np.zeros(2, dtype=bool), *[None] * (steps - 1)]) is None


# --- far below what a double can hold --------------------------------------------------------------------------------

LONG = 3000


def test_masses_below_the_least_double() -> None:
    """P(F = 0) and P(F = T) are single paths: their logarithms are known in closed form, near −1300 and −1500."""
    p = [[0.625, 0.375], [0.4375, 0.5625]]
    chain = AdditiveChain(Wide.of([0.75, 0.25]), np.array(p), np.array([0, 1]), LONG)
    law = chain.total()
    logs = law.masses.log()
    assert (law.start, law.end) == (0, LONG)
    lowest = math.log(0.75) + (LONG - 1) * math.log(0.625)
    highest = math.log(0.25) + (LONG - 1) * math.log(0.5625)
    assert lowest < -1400 < -745  # doubles end at e^-745
    assert logs[0] == pytest.approx(lowest, abs=1e-9)
    assert logs[-1] == pytest.approx(highest, abs=1e-9)
    assert math.fsum(np.exp(logs)) == pytest.approx(1, abs=1e-9)
    assert law.log_error < 1e-8


def test_masses_below_the_least_double_given_a_record() -> None:
    """P(F = 0 | X_i = 0) = (all others 0 too) / P(X_i = 0); from a stationary start P(X_i = 0) does not depend on i."""
    p = [[0.625, 0.375], [0.4375, 0.5625]]
    pi = [float(v) for v in exact_stationary(p)]
    chain = AdditiveChain(Wide.of(pi), np.array(p), np.array([0, 1]), LONG)
    found = list(chain.nodes())
    covered(found, LONG, 1)
    assert grouped(found) == 1
    for laws in found:
        zero, one = laws.laws
        assert zero is not None
        assert one is not None
        # π cancels: it is in the path and in the condition
        assert zero.masses.log()[0] == pytest.approx((LONG - 1) * math.log(0.625), abs=4e-9)
        assert one.masses.log()[-1] == pytest.approx((LONG - 1) * math.log(0.5625), abs=4e-9)
        assert (zero.start, one.start, zero.end, one.end) == (0, 1, LONG - 1, LONG)


def test_masses_of_many_sizes_at_once(slow: bool) -> None:
    """Steps of probability 2^-50: masses from 1 down to 2^-3000, in no order, beyond any double."""
    rare, often = 1, 2**50 - 1
    for values in ([0, 1], [1, -1], [0, 3]) if slow else ([1, -1],):
        check([1, 0], [[rare, often], [rare, often]], np.array(values), 60 if slow else 40)
        check([often, rare], [[often, rare], [rare, often]], np.array(values), 60 if slow else 40)
