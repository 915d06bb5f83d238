r"""What the past tells about a record under *every* initial law (docs/proofs/propagation.md).

**A contraction.** If u(y) is what the past says given :math:`X_{i-1} = y`, with :math:`u(y) \le e^{B(y,y')} u(y')`,
then whatever the law of record i − 1 the log ratio of the past given x to the past given x' is at most the largest,
over y and y', of

.. math:: 2 \log \frac{1 + \sqrt{rs}}{\sqrt r + \sqrt s}, \qquad
          r = \frac{P(y,x) P(y',x')}{P(y,x') P(y',x)}, \quad s = e^{B(y,y')},

which grows with r: between two bounds on the matrix it is worst with the upper ones above and the lower ones below.

**Laws that the steps lead to.** Let the first of n + 1 records have any law, W = Pⁿ lead from its state m to the last
one's, and C = WP one step further. The past tells the next record's x from x' by at most λ if for all m ≤ m'

.. math:: A_m(x) C_{m'}(x') + A_{m'}(x) C_m(x') \le \lambda \, [A_m(x') C_{m'}(x) + A_{m'}(x') C_m(x)]
          \qquad A_m(x) = \sum_y W(m,y) P(y,x) u(y).

Both sides are linear in u, so this is Φ of two laws, certified by flows. What holds after n steps holds later on too.
**Cuts**: the same conditions for neighbours in a row of laws from m to m' come the nearer to the worst law.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._core import Indices, Mask, Matrix
from pufferfish._core.numbers.rounding import SMALLEST, TINY, UNIT
from pufferfish._core.phi.certificate import SEARCHED
from pufferfish._core.phi.phi import Kernel, Slopes, slopes_of, stars_of

_DOUBLINGS = 14
_AT_ONCE = 50_000  # ratios that are computed at once: so many numbers stay in a processor's fast memory
_LARGEST = 600.0  # beyond this many nats, or with probabilities too small to multiply, the contraction is left out


class AnyPrior:
    """The past of a record, or of one at each phase of a cycle, under every law of the record before.

    ``matrices``, (..., k, k), are P, rows = from, or P_φ of the step from phase φ; or the upper bounds of matrices
    whose lower bounds are ``lower``.
    """

    def __init__(self, matrices: Matrix, lower: Matrix | None = None) -> None:
        self._shape, self._k = matrices.shape, int(matrices.shape[-1])
        matrices = matrices.reshape(-1, self._k, self._k)  # one matrix is a cycle of one phase
        least = matrices if lower is None else lower.reshape(matrices.shape)
        self._most, self._least = np.sqrt(matrices), np.sqrt(least)
        self._coarse = np.any([np.any((p > 0) & (p < TINY), axis=(1, 2)) for p in (matrices, least)], axis=0)
        self._slope, self._at = np.zeros(matrices.shape), np.zeros(matrices.shape, dtype=np.intp)

    def __call__(self, b: Matrix, before: Mask | None = None, asked: Mask | None = None) -> Matrix:
        """Return the log ratios of the past of a record at each phase, rounded up; +∞ where a state cannot follow.

        ``b`` are log ratios of what a record at each phase and its past tell, finite on its states ``before``, by
        default all; phases that are not ``asked`` for get +∞.
        """
        phases, k = self._most.shape[:2]
        b = np.broadcast_to(b, self._shape).reshape(self._most.shape)
        result = np.full(self._most.shape, np.inf)
        states = np.ones((phases, k), dtype=np.bool_) if before is None else before.reshape(phases, k)
        largest = np.max(b, axis=(1, 2), where=states[:, :, None] & states[:, None, :], initial=-np.inf)
        wanted = np.ones(phases, dtype=np.bool_) if asked is None else np.roll(asked.reshape(phases), -1)
        coarse = self._coarse | ~(largest < _LARGEST)
        for phase in np.flatnonzero(wanted & coarse):
            after, follows = (phase + 1) % phases, np.any(self._most[phase, states[phase]] > 0, axis=0)
            result[after][np.ix_(follows, follows)] = largest[phase]  # what is told never grows on the way
            self._slope[after] = 1.0
            self._at[after] = phase * k * k + np.argmax(np.where(np.isfinite(b[phase]), b[phase], -np.inf))
        exact, at_once = np.flatnonzero(wanted & ~coarse), max(1, _AT_ONCE // k**4)
        for some in (exact[i : i + at_once] for i in range(0, exact.size, at_once)):
            self._contract(some, b[some], states[some], result)
        after = ((np.flatnonzero(wanted) + 1) % phases)[:, None]
        for each in (result, self._slope):
            each[after, np.arange(k), np.arange(k)] = 0.0
        return result.reshape(self._shape)

    def _contract(self, some: Indices, b: Matrix, states: Mask, result: Matrix) -> None:
        """Fill in what is told after some phases."""
        k, after = self._k, (some + 1) % len(self._most)
        among = np.flatnonzero(states.any(axis=0))
        most, least, states = self._most[some][:, among], self._least[some][:, among], states[:, among]
        follows = np.any((most > 0) & states[:, :, None], axis=1)
        both = (states[:, :, None] & states[:, None, :])[:, None, :, None, :]
        with np.errstate(over="ignore"):
            sigma = np.exp(b[:, among[:, None], among] / 2)[:, None, :, None, :]
        first = np.arange(some.size)[:, None, None]
        at_once = max(1, _AT_ONCE // (some.size * k * among.size**2))
        for xs in (np.arange(i, min(i + at_once, k)) for i in range(0, k, at_once)):
            # axes phase, x, y, x', y': g² = P(y,x) P(y',x') and h² = P(y,x') P(y',x)
            of_xs, of_all = (np.swapaxes(side, 1, 2) for side in (most[:, :, xs], most))
            g = of_xs[:, :, :, None, None] * of_all[:, None, None, :, :]
            h = least[:, None, :, :, None] * np.swapaxes(least[:, :, xs], 1, 2)[:, :, None, None, :]
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = (h + g * sigma) / (g + h * sigma)
            ratio[np.isnan(ratio) | ~both] = 0.0
            flat = ratio.transpose(0, 1, 3, 2, 4).reshape(some.size, xs.size, k, -1)
            best = np.argmax(flat, axis=3)
            value = np.take_along_axis(flat, best[..., None], axis=3)[..., 0]
            with np.errstate(divide="ignore"):
                log_ratios = np.maximum(2 * np.log(value) * (1 + 4 * UNIT) + 32 * UNIT, 0.0)
            y, y_ = best // among.size, best % among.size
            i, j = np.arange(xs.size)[:, None], np.arange(k)
            g_, h_, s_ = g[first, i, y, j, y_], h[first, i, y, j, y_], sigma[first, 0, y, 0, y_]
            with np.errstate(invalid="ignore", divide="ignore"):
                slope = s_ * (g_ / (h_ + g_ * s_) - h_ / (g_ + h_ * s_))
            where = after[:, None], xs
            result[where] = np.where(follows[:, xs, None] & follows[:, None, :], log_ratios, np.inf)
            self._slope[where] = np.where(np.isfinite(slope) & (value > 1), slope, 0.0)
            self._at[where] = some[:, None, None] * k * k + among[y] * k + among[y_]

    @property
    def slopes(self) -> tuple[Matrix, Indices]:
        """Derivative of each pair at the last call: how much, and by which entry of B at the phase before it."""
        return self._slope.reshape(self._shape), (self._at % self._k**2).reshape(self._shape)

    def solve(self, residual: Matrix) -> Matrix:
        """Solve δ = residual + Φ'δ around the cycle, with Φ' the derivative at the last call."""
        change, slope, places = residual.ravel(), self._slope.ravel(), self._at.ravel()
        for _ in range(_DOUBLINGS):  # each pair looks at one other
            change = change + slope * change[places]
            slope, places = slope * slope[places], places[places]
        return change.reshape(residual.shape)


# -- Laws that the steps lead to --------------------------------------------------------------------------------------

_MOST_ROWS = 200_000  # conditions of all phases together, at most: all are looked at for every record
_CUT_ROWS = 25_000  # with more conditions of all phases together there are no cuts
_ENOUGH_ROWS = 700  # conditions of one phase, at most: those of six states, or of fewer with cuts
_PARTS = (2, 4, 8)  # into how many parts the laws between two states are cut
_NEAR = 0.25  # laws whose logarithms differ by at most this are not cut
LEAST = 1e-60  # with positive probabilities that are less their products could leave the range of a double


def fits(phases: int, k: int) -> bool:
    """Whether there are few enough conditions to look at: with more states they take longer than all else."""
    conditions = _conditions(k, 1)
    return conditions <= _ENOUGH_ROWS and phases * conditions <= _MOST_ROWS


class AfterStart:
    """The past's log ratios of a record, or of one at every phase of a cycle, some steps after the first record.

    W, ``power``, leads from the first record's state to the last one's, by its phase; P follows. Only laws count that
    lead to the given states (..., k) of the last one. The search begins where that of ``like`` is, one of fewer steps.
    """

    def __init__(
        self,
        power: Matrix,
        matrices: Matrix,
        steps: int,
        states: Mask,
        loops: Callable[[int], Any],
        like: "AfterStart | None" = None,
    ) -> None:
        self._shape, k = matrices.shape, int(matrices.shape[-1])
        power, matrices, states = power.reshape(-1, k, k), matrices.reshape(-1, k, k), states.reshape(-1, k)
        self._states, phases = states, len(states)
        starts = ~np.any((power > 0) & ~states[:, None, :], axis=2)
        laws, (m, m_) = _laws_with_cuts(np.where(starts[:, :, None], power, 0.0))
        after = laws @ matrices
        self._x, self._x_ = np.nonzero(~np.eye(k, dtype=np.bool_))
        x, x_ = self._x, self._x_
        # axes: phase, pair x, x', pair of laws m, m'; A_m(x) C_m'(x') + A_m'(x) C_m(x') are `rows` times u
        to_x, to_x_ = (np.swapaxes(after[:, :, states_], 1, 2) for states_ in (x, x_))
        mass = to_x[:, :, m] * to_x_[:, :, m_] + to_x[:, :, m_] * to_x_[:, :, m]
        divisor = np.where(mass > 0, mass, 1.0)
        share, share_ = to_x_[:, :, m_] / divisor, to_x_[:, :, m] / divisor
        rows = share[..., None] * laws[:, None, m] + share_[..., None] * laws[:, None, m_]
        rows *= np.swapaxes(matrices, 1, 2)[:, x][:, :, None, :]
        error = (4 * steps + 16) * (k + 4) * UNIT
        upper = np.where(rows > 0, np.maximum(rows * (1 + error), SMALLEST), 0.0)
        lower = np.where(rows > SMALLEST, rows * (1 - error), 0.0)
        self._upper, self._lower = upper.reshape(phases, -1, k), lower.reshape(phases, -1, k)
        self._asked: Mask = (mass > 0).reshape(phases, -1)  # the rows of others are 0
        # the other side of the condition of x, x' is the first side of that of x', x
        place = np.empty((k, k), dtype=np.int64)
        place[x, x_] = np.arange(x.size)
        among = np.arange(m.size)
        self._row = (np.arange(x.size)[:, None] * m.size + among).reshape(-1).astype(np.int64)
        self._row_ = (place[x_, x][:, None] * m.size + among).reshape(-1).astype(np.int64)
        same = like is not None and np.array_equal(self._pattern, like._pattern)
        self._trees = tuple(part.copy() for part in like._trees) if like and same else self._first_trees()
        self._worst = np.zeros((phases, x.size), dtype=np.intp)
        self._loops = loops

    def __call__(self, b: Matrix) -> Matrix:
        """Return the log ratios of the past of the record that follows, by the last one's phase, from its own."""
        phases, k = self._states.shape
        b = b.reshape(phases, k, k)
        within = self._states[:, :, None] & self._states[:, None, :]
        b = np.ascontiguousarray(np.where(within, b, np.inf))
        most = np.max(b, axis=(1, 2), where=within, initial=0.0)
        result = np.full((phases, k, k), np.inf)
        result[:, np.arange(k), np.arange(k)] = 0.0
        if not np.max(most) <= SEARCHED:
            return result.reshape(self._shape)
        proved = np.empty(self._asked.shape)
        search = self._loops(proved.size * k**2).search_each
        with np.errstate(all="ignore"):
            search(self._upper, self._lower, b, np.arange(phases), self._row, self._row_, *self._trees, proved)
        each = np.where(self._asked, proved, -np.inf).reshape(phases, self._x.size, -1)
        best = np.argmax(each, axis=2)
        self._worst = np.arange(self._x.size) * each.shape[2] + best
        value = np.take_along_axis(each, best[:, :, None], axis=2)[:, :, 0]
        result[:, self._x, self._x_] = np.where(value == -np.inf, np.inf, value)
        return result.reshape(self._shape)

    def slopes(self) -> Slopes:
        """Return the derivatives at the last call by entries of B, by the phase of the last record."""
        k, worst = self._shape[-1], self._worst[:, :, None]
        tails, heads, _, shares = (np.take_along_axis(part, worst, axis=1) for part in self._trees)
        ends, slopes = slopes_of(k, self._x, self._x_, tails, heads, shares)
        shape = *self._shape[:-2], k * k, -1
        return ends.reshape(shape), slopes.reshape(shape)

    @property
    def _pattern(self) -> Mask:
        """Which entries of the conditions are positive."""
        return np.stack([self._upper > 0, self._lower > 0])

    def _first_trees(self) -> tuple[NDArray[Any], ...]:
        phases, k = self._states.shape
        flat = Kernel(self._upper.reshape(-1, k), self._lower.reshape(-1, k), np.ones(0, dtype=np.bool_))
        begins = np.arange(phases)[:, None] * self._row.size
        x, x_ = ((begins + rows).reshape(-1) for rows in (self._row, self._row_))
        inside = (flat.upper > 0)[x] | (flat.lower > 0)[x_]
        first = stars_of(flat, np.zeros((k, k)), x, x_, inside)
        shape = phases, self._row.size, max(k - 1, 1)
        return tuple(part.reshape(shape) for part in (first.tails, first.heads, first.flows, first.shares))


def _conditions(k: int, parts: int) -> int:
    return k * (k - 1) * (k + k * (k - 1) // 2 * (2 * parts - 1))


def _laws_with_cuts(power: Matrix) -> tuple[Matrix, tuple[Indices, Indices]]:
    """Return the rows of W and laws between any two of them, and which pairs of these are asked for."""
    phases, k = power.shape[:2]
    most = min(_ENOUGH_ROWS, _CUT_ROWS // phases)
    allowed = [n for n in (1, *_PARTS) if n == 1 or _conditions(k, n) <= most]
    logs = np.log(np.where(np.any(power > 0, axis=1, keepdims=True), np.maximum(power, LEAST), 1.0))
    apart = float(np.max(np.ptp(logs, axis=1)))
    parts = next((n for n in allowed if apart <= n * _NEAR), allowed[-1])
    m, m_ = np.triu_indices(k, 1)
    cuts = np.arange(1, parts) / parts
    between = power[:, m, None] * (1 - cuts)[:, None] + power[:, m_, None] * cuts[:, None]
    laws = np.concatenate([power, between.reshape(phases, -1, k)], axis=1)
    rows = np.concatenate([m[:, None], k + np.arange(m.size * cuts.size).reshape(m.size, -1), m_[:, None]], axis=1)
    alone = np.arange(laws.shape[1])
    return laws, (np.append(alone, rows[:, :-1]), np.append(alone, rows[:, 1:]))
