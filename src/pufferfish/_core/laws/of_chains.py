r"""Laws of an additive statistic of a Markov chain, given the state of one record (docs/proofs/laws.md).

For F = Σ_t f(X_t) + Σ_t g(X_{t−1}, X_t) with whole f and g, let α_i(a, s) be the probability of X_i = a and of a sum s
up to record i, and β_i(a, s) that of a sum s after it, given X_i = a. Both are one sweep over (state, sum), and

.. math:: P(X_i = a, F = n) = \sum_s \alpha_i(a, s)\,\beta_i(a, n - s).

Only sums of non-negative products occur, on numbers with a wide exponent. A sweep costs T·S·k² (S the number of values
of F), the convolution at node i about min(i, T − i)·S·k. What other, independent records add is convolved in late.

Nodes m or more steps from both ends are covered by the first of them, with an error that is computed and falls
geometrically with m. Of **every initial law at once** the worst mixture has at most two first states, and a closed
form; a bound a little above it is put into its inequalities again, with rounding against it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pufferfish._base.progress import report_progress
from pufferfish._core import Array, Mask, Whole
from pufferfish._core.laws.law import Law, log_rounding, smoothed
from pufferfish._core.laws.transport import Shift, shift
from pufferfish._core.numbers.rounding import UNIT, least_whole, or_infinite
from pufferfish._core.numbers.wide import Wide
from pufferfish.errors import NotApplicableError

# -- Laws under every initial law at once ----------------------------------------------------------------------------


_INFLATE = (1e-11, 1e-9, 1e-7, 1e-5)
_ROUND = 64 * UNIT
_FARTHEST = 690.0  # logarithm of the largest ratio that is told from an infinite one


@dataclass(frozen=True, slots=True)
class LawFamily:
    """Laws of a statistic given a secret, one for each first state; None where that state rules the secret out."""

    laws: tuple[Law | None, ...]

    @property
    def size(self) -> int:
        """Numbers kept."""
        return sum(law.size for law in self.laws if law is not None)


def mixture_loss(mu: LawFamily, nu: LawFamily, scale: float) -> float:
    """Return the largest loss of Laplace noise for two secrets under any initial law, in nats, rounded up."""
    low, high = _range(mu, nu)
    (u, first), (v, second) = (smoothed(family.laws, low, high, scale) for family in (mu, nu))
    if not (first < math.inf and second < math.inf):
        return math.inf
    a, b = _weights(mu), _weights(nu)
    error = first + second + _weight_error(mu, nu)
    there = _worst_ratio(a + u, b, a, b + v)
    back = _worst_ratio(b + v, a, b, a + u)
    return or_infinite(max(0.0, *(or_infinite(float(np.max(ratios))) for ratios in (there, back))) + error)


def mixture_shift(mu: LawFamily, nu: LawFamily) -> Shift:
    """Bound W∞ of the laws given two secrets under any initial law; if rounding cannot tell, one more."""
    pairs = [(m, n) for m in mu.laws for n in nu.laws if m is not None and n is not None]
    single = [(m, n) for m, n in zip(mu.laws, nu.laws, strict=True) if m is not None and n is not None]
    # any two first states at once are no less than any mixture; one first state is a mixture
    high = max((shift(m, n).certain for m, n in pairs), default=0)
    low = max((shift(m, n).near for m, n in single), default=0) - 1
    one, other = (_Tails(family, *_range(mu, nu), _weight_error(mu, nu)) for family in (mu, nu))
    reach = least_whole(lambda w: _within(one, other, w) and _within(other, one, w), low, high)
    return Shift(reach, reach, 0.0)


class _Tails:
    """Logarithms of P(F ≤ n) and P(F > n) given each first state, for n = low − 1, …, high; shape (k, n)."""

    def __init__(self, family: LawFamily, low: int, high: int, weight_error: float) -> None:
        self.weights = _weights(family)
        self.error = weight_error / 2 + sum(law.cumulative_error for law in family.laws if law)
        self.below, self.above = np.full((2, len(family.laws), high - low + 2), -np.inf)
        for x, law in enumerate(family.laws):
            if law is not None:
                first, last = law.start - low + 1, law.end - low + 1
                self.below[x, first:last], self.below[x, last:] = law.log_below[:-1], 0.0
                self.above[x, :first], self.above[x, first:last] = 0.0, law.log_above[1:]


def _within(mu: _Tails, nu: _Tails, reach: int) -> bool:
    """Whether F_μ(n) ≤ F_ν(n + reach) for certain, at all n and under all initial laws."""
    numbers = mu.below.shape[1]
    there = np.minimum(np.arange(numbers) + reach, numbers - 1)
    a, b, error = mu.weights, nu.weights, mu.error + nu.error
    by_below = _worst_ratio(a + mu.below, b, a, b + nu.below[:, there]) <= -error
    by_above = _worst_ratio(b + nu.above[:, there], a, b, a + mu.above) <= -error
    return bool(np.all(by_below | by_above))


def _range(mu: LawFamily, nu: LawFamily) -> tuple[int, int]:
    laws = [law for family in (mu, nu) for law in family.laws if law is not None]
    return min(law.start for law in laws), max(law.end for law in laws)


def _weights(family: LawFamily) -> Array:
    """Return log P(secret | first state), −∞ where it is ruled out; shape (k, 1)."""
    return np.array([[-np.inf if law is None else law.log_weight] for law in family.laws])


def _weight_error(mu: LawFamily, nu: LawFamily) -> float:
    """Bound the error that the weights bring into a ratio."""
    laws = [law for family in (mu, nu) for law in family.laws if law is not None]
    return 4 * max(law.log_error + 16 * UNIT * (1 + abs(law.log_weight)) for law in laws)


def _worst_ratio(alpha: Array, beta: Array, gamma: Array, delta: Array) -> Array:
    """Bound log (α·q)(β·q)/((γ·q)(δ·q)) over all q ≥ 0 from above, of logs (k, n) or (k, 1); 0/0 is skipped."""
    n = max(a.shape[1] for a in (alpha, beta, gamma, delta))
    alpha, beta, gamma, delta = (np.broadcast_to(a, (len(a), n)) for a in (alpha, beta, gamma, delta))
    worst = np.full(n, -np.inf)
    for x in range(len(alpha)):
        worst = np.maximum(worst, _ratio(alpha[x] + beta[x], gamma[x] + delta[x]))
    for x, y in combinations(range(len(alpha)), 2):
        n1 = np.logaddexp(alpha[x] + beta[y], alpha[y] + beta[x])
        d1 = np.logaddexp(gamma[x] + delta[y], gamma[y] + delta[x])
        n0, n2 = alpha[x] + beta[x], alpha[y] + beta[y]
        d0, d2 = gamma[x] + delta[x], gamma[y] + delta[y]
        worst = np.maximum(worst, _quadratic(n0, n1, n2, d0, d1, d2))
    return worst


def _ratio(n: Array, d: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.where(n == -np.inf, -np.inf, n - d)


def _quadratic(n0: Array, n1: Array, n2: Array, d0: Array, d1: Array, d2: Array) -> Array:
    """Bound log sup over t > 0 of (n₀ + n₁t + n₂t²)/(d₀ + d₁t + d₂t²), coefficients given as logs."""
    ends = np.maximum(_ratio(n0, d0), _ratio(n2, d2))
    # without d₀ or d₂ it is a ratio of two sums of two terms: at most the larger of the ratios of terms
    lopsided = (d0 == -np.inf) | (d2 == -np.inf)
    # else t is measured so that d₀ and d₂ are alike, which makes d₁ the largest, and all are divided by that
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        turn = np.where(lopsided, 0.0, (d2 - d0) / 2)
        top = np.where(lopsided, 0.0, d1 - turn)
        m0, m1, m2 = np.exp(n0 - top), np.exp(n1 - turn - top), np.exp(n2 - 2 * turn - top)
        e0, e1, e2 = np.exp(d0 - top), np.exp(d1 - turn - top), np.exp(d2 - 2 * turn - top)
        square, linear, constant = e1**2 - 4 * e0 * e2, 2 * (m1 * e1 - 2 * (e0 * m2 + m0 * e2)), m1**2 - 4 * m0 * m2
        root = np.sqrt(np.maximum(linear**2 - 4 * square * np.maximum(constant, 0.0), 0.0))
        outer = np.exp(np.minimum(ends, _FARTHEST))
        inside = (linear > 0) & (m1 > outer * e1)  # else the ratio is largest at t → 0 or t → ∞
        middle = np.where(inside, 2 * np.maximum(constant, 0.0) / np.where(inside, linear + root, 1.0), 0.0)
        least = np.maximum(outer, middle)
        bounds = np.full(len(n0), np.inf)
        for inflate in reversed(_INFLATE):
            λ = least * (1 + inflate)
            first, last = (λ * e * (1 - _ROUND) - m * (1 + _ROUND) for e, m in ((e0, m0), (e2, m2)))
            over = m1 * (1 + _ROUND) - λ * e1 * (1 - _ROUND)
            holds = (over <= 0) | (over * over * (1 + _ROUND) <= 4 * first * last * (1 - _ROUND))
            bounds = np.where(holds & (first >= 0) & (last >= 0), np.log(λ), bounds)
    nothing = (n0 == -np.inf) & (n1 == -np.inf) & (n2 == -np.inf)
    bounds = np.where(ends > _FARTHEST, np.inf, np.maximum(bounds, ends))
    return np.where(nothing, -np.inf, np.where(lopsided, np.maximum(ends, _ratio(n1, d1)), bounds))


_NEGLIGIBLE = 4e-13
"""Error of the laws of covered nodes, in nats, for each step of the chain: about what rounding leaves."""

_LEAST_NEGLIGIBLE = 2e-9

_MOST_WORK = 1e11  # multiplications for the laws of all nodes, where none covers others
_SHORTEST = 24  # chains of fewer steps have every law computed
_GROWTH = 1.3

_REPORTED = 64  # steps between reports of progress


@dataclass(frozen=True, slots=True)
class NodeLaws:
    """Laws of the statistic given each state of records ``node`` to ``last``; None for one that they cannot have."""

    node: int
    last: int
    laws: list[Law | None]


class AdditiveChain:
    """A Markov chain of ``steps`` records T with a whole-number value for every state.

    ``initial`` is the law of the first record, to a relative ``log_error``; exact zeros are impossible. ``values``,
    (k,) or (T, k), are what a record in each state adds to the statistic, ``moves``, (k, k), what a step adds, 0 or
    more, and ``others`` is the law of what independent records add. ``period`` is that of the chain.
    """

    def __init__(
        self,
        initial: Wide,
        transition: Array,
        values: Whole,
        steps: int,
        *,
        log_error: float = 0.0,
        period: int = 1,
        others: Law | None = None,
        moves: Whole | None = None,
    ) -> None:
        self.steps: int = steps
        self.k: int = transition.shape[0]
        self._initial, self._period, self._others = initial, period, others
        self._alike = values.ndim == 1
        contributions = np.broadcast_to(values, (steps, self.k))
        low = contributions.min(axis=1)
        self._adds = (contributions - low[:, None]).astype(np.int64)
        self._negligible = max(_LEAST_NEGLIGIBLE, _NEGLIGIBLE * steps)
        self.start: int = int(low.sum()) + (0 if others is None else others.start)
        """The least value of the statistic."""
        self._parts = _Parts(transition, np.zeros((self.k, self.k), dtype=np.int64) if moves is None else moves)
        self._size = int(self._adds.max(axis=1).sum()) + (steps - 1) * self._parts.most
        self._size += 1 if others is None else others.size
        self._error = log_error + (4 * steps * (self.k + 3 + len(self._parts.forward)) + 8 * self._size) * UNIT
        self._error += 0.0 if others is None else others.log_error

    def total(self) -> Law:
        """Return the law of the statistic itself."""
        law = self.given([None] * self.steps)
        assert law is not None  # some sequence is possible
        return law

    def given(self, allowed: Sequence[Mask | None]) -> Law | None:
        """Return the law given which states each record may have (None: any); None if that is impossible."""
        masses = self._with_others(self._first())
        for t in range(self.steps):
            if t:
                masses = self._parts.pushed(masses, self._adds[t])
            mask = allowed[t]
            masses = masses if mask is None else masses.where(mask[:, None])
        weights = masses.sum(axis=0)
        return Law.of(self.start, weights, self._error) if weights.positive.any() else None

    def nodes(self) -> Iterator[NodeLaws]:
        """Yield the laws given the state of every record, those that cover many records first."""
        margin, error = self._margin()
        if margin is None:
            work = self.steps**2 * self._size * self.k / 6
            if work > _MOST_WORK:
                raise NotApplicableError(
                    f"the laws of {self.steps:,} records do not settle far from the ends, and all of them take about "
                    f"{work:.0e} operations (at most {_MOST_WORK:.0e} are done)"
                )
            half = self.steps // 2
            yield from self._left(half)
            yield from self._right(half + 1)
            return
        last = self.steps - 1 - margin
        for node_laws in self._left(margin + self._period - 1):
            covers = node_laws.node >= margin
            laws = [law and law.within(2 * error) for law in node_laws.laws] if covers else node_laws.laws
            yield NodeLaws(node_laws.node, last if covers else node_laws.node, laws)
        yield from self._right(last + 1)

    def _first(self) -> Wide:
        """Return the law of the first record and of what it adds."""
        first = Wide.zeros((self.k, 1 + int(self._adds[0].max())))
        first.put((np.arange(self.k), self._adds[0]), self._initial)
        return first

    def _with_others(self, one_side: Wide) -> Wide:
        """Add what the other records add: late, as a sweep over their many sums would take longer than this."""
        return one_side if self._others is None else one_side.convolved(_rows(self._others.masses, self.k))

    def _left(self, highest: int) -> Iterator[NodeLaws]:
        """Yield nodes ``highest`` … 0, backwards: their left parts are short, and are kept."""
        left = [self._first()]
        for node in range(1, highest + 1):
            left.append(self._parts.pushed(left[-1], self._adds[node]))
        right = Wide.of(np.ones((self.k, 1)))
        for node in range(self.steps - 1, -1, -1):
            self._report(self.steps - 1 - node)
            if node == highest:
                right = self._with_others(right)
            if node <= highest:
                yield self._node(node, left.pop().convolved(right))
            right = self._pulled(right, node)

    def _right(self, lowest: int) -> Iterator[NodeLaws]:
        """Yield nodes ``lowest`` … T − 1: their right parts are short, and are kept."""
        if lowest >= self.steps:
            return
        right = [Wide.of(np.ones((self.k, 1)))]
        for node in range(self.steps - 1, lowest, -1):
            right.append(self._pulled(right[-1], node))
        left = self._first()
        for node in range(self.steps):
            self._report(self.steps + node)
            if node == lowest:
                left = self._with_others(left)
            if node >= lowest:
                yield self._node(node, right.pop().convolved(left))
            if node + 1 < self.steps:
                left = self._parts.pushed(left, self._adds[node + 1])

    def _report(self, done: int) -> None:
        if done % _REPORTED == 0:
            report_progress("laws of the query", done / (2 * self.steps))

    def _node(self, node: int, joint: Wide) -> NodeLaws:
        rows = (joint[x] for x in range(self.k))
        laws = [Law.of(self.start, row, self._error) if row.positive.any() else None for row in rows]
        return NodeLaws(node, node, laws)

    def _pulled(self, right: Wide, node: int) -> Wide:
        """Return β of the record before ``node``: β(x, s) = Σ_y P(x, y) β'(y, s − f(y) − g(x, y))."""
        adds = self._adds[node]
        added = Wide.zeros((self.k, right.shape[1] + int(adds.max())))
        for y, add in enumerate(adds.tolist()):
            added.put((y, slice(add, add + right.shape[1])), right[y])
        return self._parts.pulled(added)

    def _margin(self) -> tuple[int | None, float]:
        """Return how far from both ends nodes are covered by one of them, and with what error."""
        m = 4
        while self._alike and self.steps >= _SHORTEST and 2 * m + 2 * self._period < self.steps // 2:
            error = self._hops(m)
            if error <= self._negligible:
                return m, error
            # η falls like e^{−cm}: never grow by less than a few steps
            m = max(m + 4, int(m * _GROWTH))
        return None, 0.0

    def _hops(self, m: int) -> float:
        """Bound what the laws of two covered nodes of the same phase can differ by, with margins of m."""
        longest = 1
        while 2 * longest <= m:
            longest *= 2
        farthest = (self.steps - 2 * m) // self._period
        powers = _Powers(self._parts, self._adds[0])
        near = powers.to(m)
        error, hop = 0.0, 1
        while hop <= longest and hop <= farthest:
            far = powers.to(m + hop * self._period)
            eta = _apart(near, far)
            if not eta <= self._negligible:
                return np.inf
            error += eta * (farthest // hop if 2 * hop > min(longest, farthest) else 1)
            hop *= 2
        return error


class _Parts:
    """A transition matrix as the sum of parts, in each of which every step adds the same."""

    def __init__(self, transition: Array, moves: Whole) -> None:
        amounts = np.unique(moves).tolist()
        parts = [np.where(moves == amount, transition, 0.0) for amount in amounts]
        self.most: int = amounts[-1]
        self.forward: list[tuple[int, Wide]] = [(d, Wide.of(p)) for d, p in zip(amounts, parts, strict=True)]
        self._back = [(d, Wide.of(p.T.copy())) for d, p in zip(amounts, parts, strict=True)]

    def pushed(self, masses: Wide, adds: Whole) -> Wide:
        """Return one step of a chain, where a record in state y adds ``adds[y]``, and a step what it adds."""
        return _sum(masses.pushed(p, adds + d) for d, p in self.forward)

    def pulled(self, masses: Wide) -> Wide:
        """Return one step backwards, where only steps add."""
        still = np.zeros(masses.shape[0], dtype=np.int64)
        return _sum(masses.pushed(p, still + d) for d, p in self._back)


class _Powers:
    """Powers of the matrix of polynomials P(x, y) z^{f(y) + g(x, y)}, as (k, k, S) wide numbers."""

    def __init__(self, parts: _Parts, adds: Whole) -> None:
        self._parts, self._adds = parts, adds
        self._at = 0
        self._rows: list[Wide] = [Wide.of(row[:, None]) for row in np.eye(len(adds))]

    def to(self, n: int) -> list[Wide]:
        """Return M^n, row by row, for n no less than before."""
        for _ in range(n - self._at):
            self._rows = [self._parts.pushed(row, self._adds) for row in self._rows]
        self._at = n
        return self._rows


def _apart(near: list[Wide], far: list[Wide]) -> float:
    """Bound |log| of the ratio of near(u, a)·far(a, v) and far(u, a)·near(a, v), entry by entry."""
    worst, k = 0.0, len(near)
    for a in range(k):
        for u in range(k):
            into, later_into = _rows(near[u][a], k), _rows(far[u][a], k)
            near_then_far, far_then_near = into.convolved(far[a]), later_into.convolved(near[a])
            if not np.array_equal(near_then_far.positive, far_then_near.positive):
                return np.inf
            mass = near_then_far.positive
            if mass.any():
                difference = float(np.max(np.abs(near_then_far.log()[mass] - far_then_near.log()[mass])))
                rounding = sum(log_rounding(w, 4 * w.shape[1] * (k + 2)) for w in (near_then_far, far_then_near))
                worst = max(worst, difference + rounding)
    return worst


def _sum(parts: Iterable[Wide]) -> Wide:
    """Return the sum of arrays of polynomials, the later ones of which have the higher degrees."""
    total, *more = parts
    for part in more:
        wider = Wide.zeros(part.shape)
        wider.put((slice(None), slice(total.shape[1])), total)
        total = wider + part
    return total


def _rows(row: Wide, k: int) -> Wide:
    return Wide(np.tile(row.values, (k, 1)), np.tile(row.levels, (k, 1)))
