r"""What the past tells about a record under *every* initial law.

The past reaches record i through the law μ of record i − 1 and ℓ(y) = P(y,x)/P(y,x'): if u(y) is what the past says
given :math:`X_{i-1} = y`, with :math:`u(y) \le e^{B(y,y')} u(y')`, then the log ratio of the past given x to the past
given x' is

.. math:: \sup_\mu \log \frac{E_\mu[\ell u]}{E_\mu[\ell] E_\mu[u]}

with μ any law (dropping that it must come from the chain makes it no smaller). Since
:math:`\sqrt{E[\ell]E[u]} = \min_t E[t\ell + u/t]/2`, this is a supremum over t of linear programs with one moment
constraint, so laws on two states y, y' suffice. With the best weights that is

.. math:: 2 \log \frac{1 + \sqrt{rs}}{\sqrt r + \sqrt s}, \qquad
          r = \frac{P(y,x) P(y',x')}{P(y,x') P(y',x)}, \quad s = e^{B(y,y')},

a contraction that does not mention the initial law.

Where the matrix of a step is only known to lie between two bounds, u is bounded whatever the earlier matrices were,
and for the matrix of this step the value grows with r, as s ≥ 1. So it is worst where r is, and r is largest with
P(y,x) and P(y',x') at their upper bounds and P(y,x') and P(y',x) at their lower ones. Rows are chosen independently,
and bounds that are attained leave room for one upper and one lower at a time.
"""

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.rounding import TINY, UNIT

__all__ = ["AnyPrior", "AnyPriors"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

_DOUBLINGS = 14

_AT_ONCE = 50_000
"""Ratios that are computed at once: so many numbers stay in a processor's fast memory."""

_LARGEST = 600.0
"""Beyond this many nats, or with probabilities too small to multiply, the contraction is left out."""


class AnyPrior:
    """The past's log ratios under every law of the record before.

    Parameters
    ----------
    transition_matrix : (k, k) ndarray
        P, rows = from; or its upper bounds.
    lower : (k, k) ndarray, optional
        Its lower bounds, where it may be any matrix between the bounds.
    """

    def __init__(self, transition_matrix: Matrix, lower: Matrix | None = None) -> None:
        least = transition_matrix if lower is None else lower
        self._most, self._least = np.sqrt(transition_matrix), np.sqrt(least)
        self._coarse = any(bool(np.any((p > 0) & (p < TINY))) for p in (transition_matrix, least))
        self._k: int = transition_matrix.shape[0]
        self._slope = np.zeros((self._k, self._k))
        self._at = np.zeros((self._k, self._k), dtype=np.intp)

    def __call__(self, b: Matrix, before: Mask | None = None, asked: Mask | None = None) -> Matrix:
        """Return the log ratios of the past of a record, rounded up; shape (k, k).

        Parameters
        ----------
        b : (k, k) ndarray
            Log ratios B of what the record before and its past tell, finite on states it can have.
        before : (k,) ndarray of bool, optional
            States the record before can have; by default all.
        asked : () ndarray of bool, optional
            As for a cycle; one matrix has one phase, and is asked.

        Returns
        -------
        (k, k) ndarray
            +∞ for pairs with a state that cannot follow, 0 on the diagonal.
        """
        k = self._k
        states = np.arange(k) if before is None else np.flatnonzero(before)
        most, least = self._most[states], self._least[states]
        follows = np.any(most > 0, axis=0)
        bounds = b[np.ix_(states, states)]
        result = np.full((k, k), np.inf)
        if self._coarse or not np.max(bounds) < _LARGEST:
            result[np.ix_(follows, follows)] = np.max(bounds)  # what is told never grows on the way
            np.fill_diagonal(result, 0.0)
            self._slope[:], self._at[:] = 1.0, np.argmax(np.where(np.isfinite(b), b, -np.inf))
            np.fill_diagonal(self._slope, 0.0)
            return result
        sigma = np.exp(bounds / 2)[None, :, None, :]
        possible, at_once = np.flatnonzero(follows), max(1, _AT_ONCE // (k * states.size**2))
        for xs in (possible[i : i + at_once] for i in range(0, possible.size, at_once)):
            # axes x, y, x', y': g² = P(y,x) P(y',x') and h² = P(y,x') P(y',x)
            g = most.T[xs][:, :, None, None] * most.T[None, None, :, :]
            h = least[None, :, :, None] * least.T[xs][:, None, None, :]
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = (h + g * sigma) / (g + h * sigma)
            ratio[np.isnan(ratio)] = 0.0
            flat = ratio.transpose(0, 2, 1, 3).reshape(xs.size, k, -1)
            best = np.argmax(flat, axis=2)
            value = np.take_along_axis(flat, best[:, :, None], axis=2)[:, :, 0]
            with np.errstate(divide="ignore"):
                log_ratios = np.maximum(2 * np.log(value) * (1 + 4 * UNIT) + 32 * UNIT, 0.0)
            result[xs] = np.where(follows, log_ratios, np.inf)
            y, y_ = best // states.size, best % states.size
            i, j = np.arange(xs.size)[:, None], np.arange(k)[None, :]
            g_, h_, s_ = g[i, y, j, y_], h[i, y, j, y_], sigma[0, y, 0, y_]
            with np.errstate(invalid="ignore", divide="ignore"):
                slope = s_ * (g_ / (h_ + g_ * s_) - h_ / (g_ + h_ * s_))
            self._slope[xs] = np.where(np.isfinite(slope) & (value > 1), slope, 0.0)
            self._at[xs] = states[y] * k + states[y_]
        np.fill_diagonal(result, 0.0)
        np.fill_diagonal(self._slope, 0.0)
        return result

    @property
    def slopes(self) -> tuple[Matrix, NDArray[np.intp]]:
        """Derivative of each pair at the last call: how much, and by which entry of B (as a flat index)."""
        return self._slope, self._at

    def solve(self, residual: Matrix) -> Matrix:
        """Solve δ = residual + Φ'δ, with Φ' the derivative at the last call: each pair looks at one other."""
        return _followed(residual, self._slope, self._at)


class AnyPriors:
    """The same for a cycle of matrices: the past of a record at each phase, under every law of the record before.

    Parameters
    ----------
    matrices : (N, k, k) ndarray
        P_φ of the step from phase φ to phase φ + 1.
    """

    def __init__(self, matrices: Matrix) -> None:
        known: dict[bytes, AnyPrior] = {}
        self._k: int = matrices.shape[-1]
        self._each = [known.setdefault(matrix.tobytes(), AnyPrior(matrix)) for matrix in matrices]
        self._slope, self._at = np.zeros(matrices.shape), np.zeros(matrices.shape, dtype=np.intp)

    def __call__(self, b: Matrix, before: Mask | None = None, asked: Mask | None = None) -> Matrix:
        """Return the log ratios of the past of a record at each phase, rounded up; shape (N, k, k).

        Parameters
        ----------
        b : (N, k, k) or (k, k) ndarray
            Log ratios B of what a record at each phase and its past tell.
        before : (N, k) ndarray of bool, optional
            States that a record at each phase can have; by default all.
        asked : (N,) ndarray of bool, optional
            Phases that are asked for; the others get +∞.
        """
        phases, k = len(self._each), self._k
        b, result = np.broadcast_to(b, self._slope.shape), np.empty(self._slope.shape)
        known: dict[tuple[int, bytes], int] = {}
        for phase, prior in enumerate(self._each):
            after, states = (phase + 1) % phases, None if before is None else before[phase]
            if asked is not None and not asked[after]:
                result[after] = np.inf
                continue
            key = id(prior), b[phase].tobytes() + (b"" if states is None else states.tobytes())
            same = known.setdefault(key, after)
            if same != after:  # near the start the phases of an hour are alike
                result[after], self._slope[after] = result[same], self._slope[same]
                place = self._at[same] % (k * k)
            else:
                result[after] = prior(b[phase], states)
                self._slope[after], place = prior.slopes
            self._at[after] = phase * k * k + place
        return result

    @property
    def slopes(self) -> tuple[Matrix, NDArray[np.intp]]:
        """Derivative of each pair at the last call: how much, and by which entry of B at the phase before it."""
        return self._slope, self._at % (self._k * self._k)

    def solve(self, residual: Matrix) -> Matrix:
        """Solve δ = residual + Φ'δ around the cycle, with Φ' the derivative at the last call."""
        return _followed(residual, self._slope, self._at)


def _followed(residual: Matrix, slope: Matrix, places: NDArray[np.intp]) -> Matrix:
    change, slope, places = residual.ravel().copy(), slope.ravel().copy(), places.ravel().copy()
    for _ in range(_DOUBLINGS):
        change = change + slope * change[places]
        slope, places = slope * slope[places], places[places]
    return change.reshape(residual.shape)
