r"""The steps of a chain, and bounds that hold at every distance: certified fixed points of A ↦ d + Φ(A).

If A ≥ d + Φ(A), every bound that the recursion :math:`A_i = d + \Phi(A_{i+1})` makes, started below A, stays below A.
Newton's method looks for the least such A, with a slightly larger loss to leave room for rounding; what it finds counts
only once the inequality has been checked with Φ rounded up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pufferfish._base.progress import BoundedCache
from pufferfish._core import Indices, Mask, Matrix, Whole
from pufferfish._core.chains.markov import (
    bool_matmul,
    log_of,
    moved_on,
    period_mixes,
    periodic_law,
    stationary_law,
    stationary_log_error,
)
from pufferfish._core.phi.any_initial_law import AnyPrior
from pufferfish._core.phi.phi import LogRatios, StackedRatios, close, solve_around, solve_flat

# How much larger the loss is that Newton's method aims at, as shares of the largest loss; tried in turn.
SLACKS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
LARGEST = 40.0  # bounds above this many nats are taken as infinite
_MOST_STEPS = 40
_MOST_KNOWN = 64


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """A certified bound: ``bound`` ≥ loss + ``message``, ``message`` ≥ Φ(``bound``); +∞ for pairs that cannot occur."""

    bound: Matrix
    message: Matrix


class _Unbounded(Exception):
    """The bounds grow beyond what is taken as infinite: more slack would not help."""


class FixedPoint:
    """Least certified A ≥ d + Φ(A), or a stack of them, for losses d that change little from call to call.

    ``phi`` bounds Φ(A) from above, ``solve`` solves δ = r + Φ'δ for the derivative Φ' at its last call. If ``closed``,
    bounds are closed by shortest paths. ``guess`` says where to begin; by default at d itself.
    """

    def __init__(
        self,
        phi: Callable[[Matrix], Matrix],
        solve: Callable[[Matrix], Matrix],
        *,
        closed: bool = True,
        guess: Callable[[Matrix], Matrix] | None = None,
    ) -> None:
        self._phi = phi
        self._solve = solve
        self._first_guess = guess
        self._close: Callable[[Matrix], Matrix] = close if closed else np.copy
        self._last: tuple[Matrix, Matrix] | None = None
        self._known: BoundedCache[Settled | None] = BoundedCache(_MOST_KNOWN)

    def __call__(self, loss: Matrix, room: float) -> Settled | None:
        """Return a certified bound for a loss d, or None where none was found; slacks are shares of ``room``."""
        return self._known.of((loss.tobytes(), room), lambda: self._find(loss, room))

    def _find(self, loss: Matrix, room: float) -> Settled | None:
        try:
            for slack in SLACKS if room > 0 else SLACKS[:1]:  # shares of nothing are all the same
                guessed = slack == SLACKS[0] or self._last is not None
                for start in (self._guess, self._close) if guessed else (self._close,):
                    settled = self._newton(loss, slack * room, start)
                    if settled is not None:
                        self._last = loss, settled.bound
                        return settled
        except _Unbounded:
            pass
        return None

    def _newton(self, loss: Matrix, slack: float, start: Callable[[Matrix], Matrix]) -> Settled | None:
        off_diagonal = ~np.eye(loss.shape[-1], dtype=np.bool_)
        with np.errstate(over="ignore"):  # beyond the largest number it is infinite, and nothing is certified
            target = np.where(off_diagonal, loss + slack, loss)
        a, last, stalled = start(target), np.inf, 0
        for _ in range(_MOST_STEPS):
            message = self._phi(a)
            defined = np.isfinite(message)
            a = np.where(defined, a, np.inf)
            with np.errstate(invalid="ignore"):
                residual = np.where(defined & off_diagonal, target + message - a, 0.0)
            size = float(np.max(np.abs(residual)))
            if size <= slack and np.all(
                np.nextafter(loss + message, np.inf)[..., off_diagonal] <= a[..., off_diagonal]
            ):
                return Settled(a, message)
            stalled = stalled + 1 if size > 0.9 * last else 0  # a step may go too far first, and come back
            last = size
            if stalled > 6 or not np.isfinite(size):
                return None
            change = self._solve(residual)
            moved = np.where(defined, a + change, np.inf)
            inside = moved[defined]
            if not np.all(np.isfinite(inside)) or inside.min() < -1e-9 or inside.max() > LARGEST:
                moved = np.where(defined, a + residual, np.inf)
            if np.max(moved[defined]) > LARGEST:
                raise _Unbounded
            a = self._close(np.maximum(moved, target))
        return None

    def _guess(self, target: Matrix) -> Matrix:
        if self._last is None:
            return self._close(target if self._first_guess is None else np.maximum(self._first_guess(target), target))
        loss, bound = self._last
        largest = float(loss.max())
        ratio = float(target.max()) / largest if largest > 0 else 1.0
        return self._close(np.maximum(np.where(np.isfinite(bound), bound * min(ratio, 4.0), target), target))


class Steps:
    """The steps of a chain: P, or P_φ of the step from each phase φ of a cycle to the next, rows = from; (..., k, k).

    Arrays about the records of a cycle have its phases as their first axis, those of a chain with one matrix do not.
    """

    def __init__(self, matrices: Matrix) -> None:
        self.matrices = matrices
        self.phases: tuple[int, ...] = matrices.shape[:-2]
        self.k: int = matrices.shape[-1]

    def moved_on(self, values: Any) -> Any:
        """Return at every phase what stood at the phase before it."""
        return moved_on(values) if self.phases else values

    def followers(self, states: Mask) -> Mask:
        """Return which states can follow those of the phase before; shape (..., k)."""
        return self.moved_on(bool_matmul(states[..., None, :], self.matrices > 0)[..., 0, :])

    def reached(self, states: Mask) -> Mask:
        """Return which states can ever be reached from those of a first record, at each phase."""
        while True:  # as many rounds as a cycle has steps, and more: no recursion
            grown = states | self.followers(states)
            if np.array_equal(grown, states):
                return states
            states = grown

    def restricted(self, states: Indices) -> "Steps":
        """Return the steps among some states."""
        return Steps(self.matrices[..., states[:, None], states])

    def law(self, support: Mask | None = None) -> tuple[Matrix, Mask, float]:
        """Return the stationary or periodic law, where it is positive, and a bound on the error of its logarithms.

        ``support`` are states that the chain cannot leave; without a cycle it is irreducible on them. A ModelError if
        there are several laws, or one is too small to compute accurately.
        """
        if self.phases:
            return periodic_law(self.matrices, None if support is None else support[0])
        members = np.arange(self.k) if support is None else np.flatnonzero(support)
        law = np.zeros(self.k)
        law[members] = stationary_law(self.matrices[np.ix_(members, members)])
        return law, law > 0, stationary_log_error(len(members))

    def forgets_on(self, support: Mask) -> bool:
        """Whether the chain never leaves some states at each phase and forgets where among them it began."""
        k, left = self.k, self.followers(support) & ~support
        return not left.any() and period_mixes(self.matrices.reshape(-1, k, k), support.reshape(-1, k))

    def ratios(self, beside: int) -> Any:
        """Return Φ of kernels that lead on, 1, or back, −1: called with a kernel and with bounds on what follows."""
        return StackedRatios(beside) if self.phases else LogRatios()

    def any_prior(self, lower: Matrix | None = None) -> AnyPrior:
        """Return what the past tells under every law of the record before; with ``lower`` for all matrices above it."""
        return AnyPrior(self.matrices, lower)

    def solve_past(self, residual: Matrix, ends: Whole, shares: Matrix) -> Matrix:
        """Solve δ = residual + Φ'δ, where Φ' are :data:`~pufferfish._core.phi.phi.Slopes` by the place before."""
        if self.phases:
            return solve_around(residual, ends, shares, -1)
        return solve_flat(residual, ends, shares)

    @property
    def log_into(self) -> Matrix:
        """Logarithms of the steps into each phase, −∞ for a zero; rows = to."""
        into = self.moved_on(self.matrices)
        return np.swapaxes(log_of(into, into > 0), -1, -2)
