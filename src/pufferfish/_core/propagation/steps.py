"""The steps of a chain: one matrix for all, or one for each phase of a cycle whose first phase may be any.

Arrays about the records of a cycle have its phases as their first axis, those of a chain with one matrix do not: what
follows from them (:mod:`pufferfish._core.propagation.past_and_future`) is written once for both.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.cycles import followers, moved_on, period_mixes, periodic_law
from pufferfish._core.chains.markov import (
    bool_matmul,
    closure,
    log_of,
    mixes,
    stationary_law,
    stationary_log_error,
)
from pufferfish._core.phi.any_initial_law import AnyPrior, AnyPriors
from pufferfish._core.phi.phi import LogRatios
from pufferfish._core.phi.stacked import StackedRatios

__all__ = ["Cycle", "Same", "Steps"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Steps(ABC):
    """The steps of a chain.

    Parameters
    ----------
    matrices : (..., k, k) ndarray
        P, or P_φ of the step from phase φ to phase φ + 1; rows = from.
    """

    def __init__(self, matrices: Matrix) -> None:
        self.matrices = matrices
        self.phases: tuple[int, ...] = matrices.shape[:-2]
        self.k: int = matrices.shape[-1]

    @abstractmethod
    def moved_on(self, values: Any) -> Any:
        """Return at every phase what stood at the phase before it."""

    @abstractmethod
    def followers(self, states: Mask) -> Mask:
        """Return which states can follow some states; shape (..., k)."""

    @abstractmethod
    def restricted(self, states: NDArray[np.intp]) -> "Steps":
        """Return the steps among some states."""

    @abstractmethod
    def law(self, support: Mask | None = None) -> tuple[Matrix, Mask, float]:
        """Return the stationary or periodic law, where it is positive, and a bound on the error of its logarithms.

        Raises
        ------
        ModelError
            If there are several, or it is too small to compute accurately.
        """

    @abstractmethod
    def forgets_on(self, support: Mask) -> bool:
        """Whether the chain never leaves some states and forgets where among them it began."""

    @abstractmethod
    def future(self) -> Any:
        """Return Φ of kernels that lead on: called with a kernel and with bounds on what follows."""

    @abstractmethod
    def past(self) -> Any:
        """Return Φ of kernels that lead back."""

    @abstractmethod
    def any_prior(self) -> Any:
        """Return what the past tells under every law of the record before."""

    def reached(self, states: Mask) -> Mask:
        """Return which states can ever be reached from those of a first record, at each phase."""
        while True:  # as many rounds as a cycle has steps, and more: no recursion
            grown = states | self.followers(states)
            if np.array_equal(grown, states):
                return states
            states = grown

    @property
    def log_into(self) -> Matrix:
        """Logarithms of the steps into each phase, −∞ for a zero; rows = to."""
        into = self.moved_on(self.matrices)
        return np.swapaxes(log_of(into, into > 0), -1, -2)


class Same(Steps):
    """One matrix for all steps."""

    def moved_on(self, values: Any) -> Any:
        """Return the values: there are no phases."""
        return values

    def followers(self, states: Mask) -> Mask:
        """Return which states can follow some states; shape (k,)."""
        return bool_matmul(states[None, :], self.matrices > 0)[0]

    def reached(self, states: Mask) -> Mask:
        """Return which states can ever be reached from those of a first record."""
        return closure(states, self.matrices > 0)

    def restricted(self, states: NDArray[np.intp]) -> "Same":
        """Return the steps among some states."""
        return Same(self.matrices[np.ix_(states, states)])

    def law(self, support: Mask | None = None) -> tuple[Matrix, Mask, float]:
        """Return the stationary law on an irreducible set of states."""
        members = np.arange(self.k) if support is None else np.flatnonzero(support)
        law = np.zeros(self.k)
        law[members] = stationary_law(self.matrices[np.ix_(members, members)])
        return law, law > 0, stationary_log_error(len(members))

    def forgets_on(self, support: Mask) -> bool:
        """Whether the chain never leaves some states and forgets where among them it began."""
        return not np.any(self.matrices[support][:, ~support]) and mixes(self.matrices, support)

    def future(self) -> LogRatios:
        """Return Φ of the kernel that leads on."""
        return LogRatios()

    def past(self) -> LogRatios:
        """Return Φ of kernels that lead back."""
        return LogRatios()

    def any_prior(self) -> AnyPrior:
        """Return what the past tells under every law of the record before."""
        return AnyPrior(self.matrices)


class Cycle(Steps):
    """A matrix for each phase of a cycle; the first record may be at any phase."""

    def moved_on(self, values: Any) -> Any:
        """Return at every phase what stood at the phase before it."""
        return moved_on(values)

    def followers(self, states: Mask) -> Mask:
        """Return which states can follow those of the phase before; shape (N, k)."""
        return followers(states, self.matrices)

    def restricted(self, states: NDArray[np.intp]) -> "Cycle":
        """Return the steps among some states."""
        return Cycle(self.matrices[:, states[:, None], states[None, :]])

    def law(self, support: Mask | None = None) -> tuple[Matrix, Mask, float]:
        """Return the periodic law."""
        return periodic_law(self.matrices, None if support is None else support[0])

    def forgets_on(self, support: Mask) -> bool:
        """Whether the chain never leaves some states at each phase and forgets where among them it began."""
        return not np.any(self.followers(support) & ~support) and period_mixes(self.matrices, support)

    def future(self) -> StackedRatios:
        """Return Φ of the kernels that lead on."""
        return StackedRatios(1)

    def past(self) -> StackedRatios:
        """Return Φ of kernels that lead back."""
        return StackedRatios(-1)

    def any_prior(self) -> AnyPriors:
        """Return what the past tells under every law of the record before."""
        return AnyPriors(self.matrices)
