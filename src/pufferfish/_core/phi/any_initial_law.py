r"""What the past tells about a record under *every* initial law (proof: docs/proofs/propagation.md).

If u(y) is what the past says given :math:`X_{i-1} = y`, with :math:`u(y) \le e^{B(y,y')} u(y')`, then whatever the law
of record i − 1 the log ratio of the past given x to the past given x' is at most the largest, over y and y', of

.. math:: 2 \log \frac{1 + \sqrt{rs}}{\sqrt r + \sqrt s}, \qquad
          r = \frac{P(y,x) P(y',x')}{P(y,x') P(y',x)}, \quad s = e^{B(y,y')},

a contraction that does not mention the initial law.

Where the matrix of a step is only known to lie between two bounds the value grows with r, as s ≥ 1: it is worst with
P(y,x) and P(y',x') at their upper bounds and P(y,x') and P(y',x) at their lower ones.
"""

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.rounding import TINY, UNIT

__all__ = ["AnyPrior"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]

_DOUBLINGS = 14
_AT_ONCE = 50_000  # ratios that are computed at once: so many numbers stay in a processor's fast memory
# Beyond this many nats, or with probabilities too small to multiply, the contraction is left out.
_LARGEST = 600.0


class AnyPrior:
    """The past of a record, or of one at each phase of a cycle, under every law of the record before.

    Parameters
    ----------
    matrices : (..., k, k) ndarray
        P, rows = from, or P_φ of the step from phase φ to phase φ + 1; or their upper bounds.
    lower : (..., k, k) ndarray, optional
        Their lower bounds, where each may be any matrix between the bounds.
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

        Parameters
        ----------
        b : (..., k, k) ndarray
            Log ratios B of what a record at each phase and its past tell, finite on states it can have.
        before : (..., k) ndarray of bool, optional
            States that a record at each phase can have; by default all.
        asked : (...) ndarray of bool, optional
            Phases that are asked for; the others get +∞.
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

    def _contract(self, some: Places, b: Matrix, states: Mask, result: Matrix) -> None:
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
    def slopes(self) -> tuple[Matrix, Places]:
        """Derivative of each pair at the last call: how much, and by which entry of B at the phase before it."""
        return self._slope.reshape(self._shape), (self._at % self._k**2).reshape(self._shape)

    def solve(self, residual: Matrix) -> Matrix:
        """Solve δ = residual + Φ'δ around the cycle, with Φ' the derivative at the last call."""
        change, slope, places = residual.ravel(), self._slope.ravel(), self._at.ravel()
        for _ in range(_DOUBLINGS):  # each pair looks at one other
            change = change + slope * change[places]
            slope, places = slope * slope[places], places[places]
        return change.reshape(residual.shape)
