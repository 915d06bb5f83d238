"""Which counts to measure and how sharply, for one table of weights: the search over all candidates.

The leakage comes in as a function, and it is asked for the leading candidates only; for few states their scales are
then moved, one or two at a time, towards less error at the same leakage. Whatever comes out is only a proposal.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.candidates import all_trees, bins, prefixes, split, star
from pufferfish._core.strategies import best_scales, errors_of, shifts_of

__all__ = ["MOST_ASKED", "MOST_STATES", "Proposal", "proposals"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Rows = NDArray[np.int64]

MOST_STATES = 120
"""With more states every pair of them under every measurement would be too many numbers."""

_ALL_TREES = 4
"""Up to so many states all trees on them are tried (16)."""

_LEADING, _FEW_LEADING = 4, 2
"""Candidates whose leakage is asked: with few states, and with so many that no scale is moved afterwards."""

_FAR_OFF = 1.1
"""With many states candidates are not asked whose error is expected to be so many times that of the first."""

_WORK = 2e4
"""Leakages that may be asked to move the scales of the best: so many over the fourth power of the states."""

MOST_ASKED = 54
"""And no more than this."""

_FIRST_STEP, _LAST_STEP = 0.24, 0.01
"""By how much, in nats, a scale is moved."""


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """Counts to measure, with the scales of their noise and the error that they are expected to lead to."""

    rows: Rows
    scales: Vector
    error: float


def proposals(
    taken_of: Callable[[Rows], NDArray[np.bool_] | None],
    responses: list[Matrix],
    leakage: Callable[[Rows, Vector], float],
    epsilon: float,
    power: float,
    *,
    move: bool = True,
) -> Iterator[Proposal]:
    """Yield the leading candidates, the one with the least error first.

    Parameters
    ----------
    taken_of : callable
        From rows to the measurements whose noises are summed in each output; None where outputs do not follow.
    responses : list of (k, k) ndarray
        Mean shifts D of some models.
    leakage : callable
        From rows and scales to the leakage, certified.
    epsilon : float
        What may leak.
    power : float
        The norm of the outputs' errors that is made small.
    move : bool, default True
        Whether scales are moved afterwards: not where the leakage is linear, as here.
    """
    k = len(responses[0])
    found: list[tuple[Proposal, NDArray[np.bool_]]] = []
    alone = best_scales(shifts_of(responses, bins(k)), np.eye(k, dtype=np.bool_), power)
    for rows, start in _candidates(k, alone):
        taken = taken_of(rows)
        if taken is None:
            continue
        scales = best_scales(shifts_of(responses, rows), taken, power, start) / epsilon
        found.append((Proposal(rows, scales, _norm(scales, taken, power)), taken))
    found.sort(key=lambda each: each[0].error)
    asked = int(min(_WORK / k**4, MOST_ASKED)) if move else 0
    if asked > 2 * k:
        found = found[:_LEADING]
    else:  # each takes long
        found = [each for each in found[:_FEW_LEADING] if each[0].error <= _FAR_OFF * found[0][0].error]
    leading = [_Search(each, taken, leakage, epsilon, power) for each, taken in found]
    leading = sorted((each for each in leading if each.error < math.inf), key=lambda each: each.error)
    if leading and asked > 2 * k:
        leading[0].move(asked)
    elif leading:
        leading[0].ask()
    yield from (each.proposal for each in leading)


def _candidates(k: int, alone: Vector) -> Iterator[tuple[Rows, Vector | None]]:
    """Yield sets of counts, with scales to begin with."""
    yield bins(k), alone
    if k <= _ALL_TREES:
        yield from ((rows, None) for rows in all_trees(k))
    else:
        for middle in range(k):
            yield star(k, middle), np.delete(alone, middle)
        yield prefixes(k), None
    yield split(k, lambda first, last: (first + last) // 2), None


def _norm(scales: Vector, taken: NDArray[np.bool_], power: float) -> float:
    errors = errors_of(scales, taken)[0]
    largest = float(errors.max())
    return largest * float(np.sum((errors / largest) ** power)) ** (1 / power)


class _Search:
    """A proposal whose scales are moved to where they leak about epsilon, and then towards less error."""

    def __init__(
        self,
        start: Proposal,
        taken: NDArray[np.bool_],
        leakage: Callable[[Rows, Vector], float],
        epsilon: float,
        power: float,
    ) -> None:
        self._rows, self._taken, self._leakage = start.rows, taken, leakage
        self._epsilon, self._power = epsilon, power
        self.error, self._scales = self._tried(start.scales)

    @property
    def proposal(self) -> Proposal:
        """What was found so far."""
        return Proposal(self._rows, self._scales, self.error)

    def ask(self) -> None:
        """Ask for the leakage once more, nearer to where it is epsilon."""
        self.error, self._scales = self._tried(self._scales)

    def move(self, asked: int) -> None:
        """Move scales, one or two at a time, while the leakage may be asked so often."""
        self.ask()
        step, ways = _FIRST_STEP, _ways(len(self._scales))
        while asked >= len(ways) and step > _LAST_STEP:
            before = self.error
            for way in ways:
                asked -= 1
                there, to = self._tried(self._scales * np.exp(step * way))
                if there < self.error:
                    self.error, self._scales = there, to
            step = step if self.error < before else step / 2

    def _tried(self, scales: Vector) -> tuple[float, Vector]:
        """Return the error of these scales times what brings their leakage to epsilon."""
        times = self._leakage(self._rows, scales) / self._epsilon
        if not 0 < times < math.inf:
            return math.inf, scales
        return times * _norm(scales, self._taken, self._power), scales * times


def _ways(m: int) -> Matrix:
    """Return directions to move m scales: one up or down, or two apart."""
    one = np.eye(m)
    apart = [one[i] - one[j] for i in range(m) for j in range(m) if i != j] if m <= _ALL_TREES else []
    return np.array([*one, *-one, *apart])
