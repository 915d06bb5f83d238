r"""The two sides of a record: through which kernels its future and its past tell about it.

Places count from a side's own end of the chain: place j is the j-th record from the end for the future, the j-th
record for the past. A side turns bounds A at place j − 1 into what arrives at place j, Φ(A); see
:mod:`pufferfish.core.propagation.chain`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish.core.chains.markov import (
    LogVectorPath,
    bool_matmul,
    closure,
    log_of,
    mixes,
    stationary_law,
    stationary_log_error,
)
from pufferfish.core.numbers.rounding import UNIT
from pufferfish.core.phi.any_initial_law import AnyPrior
from pufferfish.core.phi.phi import Kernel, LogRatios
from pufferfish.core.propagation.fixed_point import FixedPoint, Settled
from pufferfish.errors import ModelError

__all__ = ["AnyPast", "Homogeneous", "Side", "future_of", "past_of", "under_any_prior"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]

_SETTLED = 1e-9
"""Marginals have settled once every later kernel is within this of the stationary one; the excess is added to it."""


class Side(ABC):
    """One side of the records of a chain."""

    starts_settled: bool = True
    """Whether one fixed point covers all places, however near the end."""

    most_steps: int = 4096
    """How many places are visited one by one at most, before bounds for all later ones are looked for."""

    @abstractmethod
    def message(self, place: int, a: Matrix) -> Matrix:
        """Return what arrives at a place ≥ 2, an upper bound on Φ of the bounds ``a`` at the place before.

        Shape (k, k); +∞ for pairs of states that the place cannot have.
        """

    @abstractmethod
    def settled(self, place: int, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for records of this loss at every place after ``place``, if what enters is below it."""

    @abstractmethod
    def at_worst(self, loss: Matrix, room: float) -> Settled | None:
        """Return such a bound for all places; larger where :meth:`settled` has to wait."""

    def onwards(self, place: int) -> Callable[[Matrix], Matrix] | None:
        """Return one Φ, an upper bound on that of every place after this one, or None where there is none."""
        return None

    @abstractmethod
    def secrets(self, first: int, last: int) -> Mask:
        """Return pairs of different states that hold all pairs which the places first to last can have."""


class Homogeneous(Side):
    """One kernel for all places, or one set of kernels."""

    def __init__(self, states: Mask, phi: Callable[[Matrix], Matrix], solve: Callable[[Matrix], Matrix]) -> None:
        self._states, self._phi = states, phi
        self._fixed = FixedPoint(phi, solve)

    @classmethod
    def of(cls, kernel: Kernel) -> "Homogeneous":
        """Return the side of one kernel."""
        ratios = LogRatios()
        return cls(kernel.rows, lambda a: ratios(kernel, a), ratios.solve)

    def message(self, place: int, a: Matrix) -> Matrix:
        """Return what arrives at a place."""
        return self._phi(a)

    def settled(self, place: int, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for every place after this one."""
        return self._fixed(loss, room)

    def at_worst(self, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for all places."""
        return self._fixed(loss, room)

    def onwards(self, place: int) -> Callable[[Matrix], Matrix]:
        """Return the Φ of every place."""
        return self._phi

    def secrets(self, first: int, last: int) -> Mask:
        """Return pairs of states that the places can have."""
        return _pairs(self._states)


class AnyPast(Side):
    """The past under every initial law, and under every matrix above ``lower`` where there is one."""

    def __init__(self, transition_matrix: Matrix, lower: Matrix | None = None) -> None:
        self._prior = AnyPrior(transition_matrix, lower)
        self._possible = transition_matrix > 0
        self._reached: list[Mask] = [np.ones(transition_matrix.shape[0], dtype=np.bool_)]
        self._fixed: dict[bytes, FixedPoint] = {}

    def message(self, place: int, a: Matrix) -> Matrix:
        """Return what arrives at a place."""
        return self._prior(a, self._states(place - 1))

    def settled(self, place: int, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for every place after this one."""
        return self._fixed_on(self._states(max(place, 1)), loss, room)

    def at_worst(self, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for all places."""
        return self._fixed_on(self._states(1), loss, room)

    def secrets(self, first: int, last: int) -> Mask:
        """Return pairs of states that the places can have."""
        return _pairs(self._states(first))

    def _states(self, place: int) -> Mask:
        """States that the record at a place can have: ever fewer."""
        while len(self._reached) < place:
            onwards = bool_matmul(self._reached[-1][None, :], self._possible)[0]
            if np.array_equal(onwards, self._reached[-1]):
                break
            self._reached.append(onwards)
        return self._reached[min(place, len(self._reached)) - 1]

    def _fixed_on(self, states: Mask, loss: Matrix, room: float) -> Settled | None:
        """Bound with laws on these states for the record before: more states, more laws."""
        key = states.tobytes()
        if key not in self._fixed:
            self._fixed[key] = under_any_prior(self._prior, self._prior.solve, self._possible, states)
        return self._fixed[key](loss, room)


class _GivenPast(Side):
    """The past under a given initial law: kernels move until the marginals have settled."""

    starts_settled = False

    def __init__(self, transition_matrix: Matrix, initial: Vector) -> None:
        self._p = transition_matrix
        self._log_p = log_of(transition_matrix, transition_matrix > 0)
        self._reachable = closure(initial > 0, transition_matrix > 0)
        self._path = LogVectorPath(initial, transition_matrix)
        self._marginals = [(self._path.log, self._path.support, self._path.log_error)]
        self._ratios = LogRatios()
        prior = AnyPrior(transition_matrix)
        self._always = under_any_prior(prior, prior.solve, transition_matrix > 0, self._reachable)
        self._later: tuple[int, Homogeneous] | None = None

    def message(self, place: int, a: Matrix) -> Matrix:
        (before, _, error), (here, support, error_) = self._marginal(place - 1), self._marginal(place)
        with np.errstate(invalid="ignore"):
            logs = before[None, :] + self._log_p.T - here[:, None]
        return self._ratios(Kernel.of_logs(logs, support, error + error_ + UNIT * 8), a)

    def settled(self, place: int, loss: Matrix, room: float) -> Settled | None:
        place = max(place, 1)
        if self._later is None or place < self._later[0]:
            side = self._settle(place)
            if side is None:
                return None
            self._later = place, side
        return self._later[1].settled(place, loss, room)

    def at_worst(self, loss: Matrix, room: float) -> Settled | None:
        return self._always(loss, room)

    def onwards(self, place: int) -> Callable[[Matrix], Matrix] | None:
        later = self._later
        return None if later is None or place < later[0] else later[1].onwards(place)

    def secrets(self, first: int, last: int) -> Mask:
        if first == last <= len(self._marginals):
            return _pairs(self._marginals[first - 1][1])
        if self._later is not None and first > self._later[0]:
            return self._later[1].secrets(first, last)
        return _pairs(self._reachable)

    def _marginal(self, place: int) -> tuple[Vector, Mask, float]:
        while len(self._marginals) < place:
            self._path.advance()
            self._marginals.append((self._path.log, self._path.support, self._path.log_error))
        return self._marginals[place - 1]

    def _settle(self, place: int) -> "Homogeneous | None":
        """Return the stationary kernel, widened to hold all kernels after a place, where that is little."""
        logs, support, error = self._marginal(place)
        if np.any(self._p[support][:, ~support]) or not mixes(self._p, support):
            return None
        members = np.flatnonzero(support)
        try:
            log_pi = np.log(stationary_law(self._p[np.ix_(members, members)]))
        except ModelError:
            return None  # too small to compute: this side never counts as settled
        ratio = logs[members] - log_pi
        # π_i between c·π and C·π entrywise holds for all later marginals too
        drift = float(ratio.max() - ratio.min())
        if drift > _SETTLED:
            return None
        rounding = 2 * stationary_log_error(len(members)) + 8 * UNIT * float(np.max(np.abs(log_pi), initial=1.0))
        return Homogeneous.of(_reversed(self._p, support, drift + 2 * error + rounding))


def future_of(transition_matrix: Matrix, initial: Vector | Literal["stationary", "any"]) -> Side:
    """Return the future of a chain's records: the kernel is P, on the states that can occur."""
    k: int = transition_matrix.shape[0]
    possible = np.ones(k, dtype=np.bool_) if isinstance(initial, str) else closure(initial > 0, transition_matrix > 0)
    logs = log_of(transition_matrix, transition_matrix > 0)
    return Homogeneous.of(Kernel.of_logs(logs, possible, UNIT * (k + 2)))


def past_of(transition_matrix: Matrix, initial: Vector | str) -> Side:
    """Return the past of a chain's records, for a given law of the first one or the "stationary" one."""
    if not isinstance(initial, str):
        return _GivenPast(transition_matrix, initial)
    k: int = transition_matrix.shape[0]
    return Homogeneous.of(_reversed(transition_matrix, np.ones(k, dtype=np.bool_), 0.0))


def _reversed(p: Matrix, states: Mask, error: float) -> Kernel:
    """Kernel of the reversed stationary chain on an irreducible set of states: π(y) P(y,x) / π(x)."""
    members = np.flatnonzero(states)
    log_pi = np.full(p.shape[0], -np.inf)
    log_pi[members] = np.log(stationary_law(p[np.ix_(members, members)]))
    with np.errstate(invalid="ignore"):
        logs = log_pi[None, :] + log_of(p, p > 0).T - log_pi[:, None]
    k = len(members)
    rounding = 2 * stationary_log_error(k) + UNIT * (k + 2) + 4 * UNIT * float(np.max(np.abs(log_pi[members])))
    return Kernel.of_logs(logs, states, error + rounding)


def under_any_prior(
    prior: Callable[[Matrix, Mask], Matrix], solve: Callable[[Matrix], Matrix], possible: Mask, states: Mask
) -> FixedPoint:
    """Return the fixed point of the past under any law on some states and what they lead to.

    A state that follows none of them is a state of the first record only, whose past says nothing; its bounds are no
    link between the bounds of other states.
    """
    follows = np.any(possible[states], axis=0)
    later = follows[:, None] & follows[None, :]

    def message(b: Matrix) -> Matrix:
        return np.where(later, prior(b, states), 0.0)

    return FixedPoint(message, solve, closed=False)


def _pairs(states: Mask) -> Mask:
    return states[:, None] & states[None, :] & ~np.eye(states.size, dtype=np.bool_)
