r"""Laws of counts under every two-state chain of an interval: the largest loss and distance, certified.

No law is listed: :mod:`pufferfish.mechanisms.one_query._two_state` bounds the loss, and compares cumulative masses, for
every member of the class and every initial law at once (docs/proofs/laws.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from pufferfish._base.progress import Kept
from pufferfish._core.numbers.rounding import bracket, up
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms.one_query._two_state import Found, Loss, Reach, search
from pufferfish.mechanisms.one_query.pairs import About
from pufferfish.mechanisms.one_query.two_state_coordinates import Paths, Square
from pufferfish.queries import LinearQuery
from pufferfish.theta.chain_intervals import BinaryChainInterval
from pufferfish.theta.lengths import ChainLength

__all__ = ["IntervalLaws"]

_LONGEST = 250
"""Records up to which paths are summed: the work grows with their cube."""

_LOGS = 600.0
"""Logarithms of probabilities of paths, and of what noise makes of them, that doubles hold with room."""

_TOLERANCE = 4e-4
"""How near the bound on the loss comes to the largest that is found, relatively."""

_NEAR = 5e-5
"""How near the loss of the least scale comes to ε, relatively."""

_CELLS = 6000
"""Parts of the class that are looked at; bounds hold when they run out, too."""

_SOON, _NARROW = 300, 8e-4
"""Parts that are looked at for a member that needs nearly as much noise, where none is known within this share."""

_KEPT = 64


@dataclass(frozen=True, slots=True)
class _Count:
    """What a query is on these chains: a number of ones among some records next to each other."""

    norm: int
    before: int
    steps: tuple[int, ...]


class IntervalLaws:
    """What one query tells about records under every member of the class.

    Parameters
    ----------
    theta : BinaryChainInterval
        The class.
    lengths : sequence of ChainLength
        Its independent chains.
    """

    def __init__(self, theta: BinaryChainInterval, lengths: Sequence[ChainLength]) -> None:
        self._theta, self._lengths = theta, tuple(lengths)
        self._square = Square(theta.low, theta.high)
        self._paths: dict[int, Paths] = {}
        self._losses: Kept[Found] = Kept(_KEPT)
        self._reaches: dict[int, tuple[int, int, Found]] = {}

    def loss(self, query: LinearQuery, unit_scale: float) -> tuple[float, About]:
        """Return what Laplace noise leaks at most, in nats, and of which record.

        Raises
        ------
        NotApplicableError
            If the query's laws are not covered.
        """
        count = self._count(query)
        found = {steps: self._loss(steps, unit_scale / count.norm) for steps in count.steps}
        steps = max(found, key=lambda one: found[one].bound)
        return found[steps].bound, self._about(count, steps, found[steps])

    def least(self, query: LinearQuery, epsilon: float) -> tuple[float, About]:
        """Return the least scale, in units, for which :meth:`loss` is at most epsilon, and the record that decides.

        Raises
        ------
        NotApplicableError
            If the query's laws are not covered.
        """
        count = self._count(query)
        worst, at = 0.0, count.steps[0]
        for steps in count.steps:
            if worst and self._loss(steps, worst).bound <= epsilon:
                continue
            worst, at = self._scale(steps, epsilon), steps
        if worst == math.inf:
            return worst, About(1, 0, at, None, ("", ""))
        about, needed = self._about(count, at, self._loss(at, worst)), self._needed(at, epsilon, worst)
        # ε beyond what doubles hold: all records together decide, and no member was looked at
        return worst * count.norm, replace(about, gap=worst / needed - 1 if needed else None)

    def reach(self, query: LinearQuery) -> tuple[int, About]:
        """Return a distance, in units, that no member's laws exceed, and the record that decides.

        Raises
        ------
        NotApplicableError
            If the query's laws are not covered.
        """
        count = self._count(query)
        found = {steps: self._reach(steps) for steps in count.steps}
        steps = max(found, key=lambda one: found[one][0])
        reach, needed, where = found[steps]
        return reach * count.norm, replace(self._about(count, steps, where), gap=reach / needed - 1)

    def _loss(self, steps: int, scale: float) -> Found:
        return self._losses.of((steps, scale), lambda: self._searched(steps, scale, _CELLS))

    def _searched(self, steps: int, scale: float, cells: int) -> Found:
        farthest = -steps * math.log(min(self._theta.low, 1 - self._theta.high)) + 2 / scale
        group = up(steps / scale)  # no more than all records together
        if not farthest <= _LOGS:
            return Found(bound=group)
        asked = Loss(steps, scale)
        seen = search(self._square, self._of(steps), asked, tolerance=_TOLERANCE, cells=0)
        if not cells or seen.value * (1 + _TOLERANCE) >= group:
            return replace(seen, bound=min(seen.bound, group))
        found = search(self._square, self._of(steps), asked, tolerance=_TOLERANCE, cells=cells)
        return replace(found, bound=min(found.bound, group))

    def _scale(self, steps: int, epsilon: float) -> float:
        """Return the least scale for chains of one length."""

        def seen(scale: float) -> float:
            """Return the loss of some members, as the search would bound it if they were the worst."""
            value = self._searched(steps, scale, 0).value
            return value * (1 + _TOLERANCE) if value > -math.inf else math.inf

        goal = epsilon * (1 - 1e-9)
        start = bracket(seen, goal, 1 / epsilon, tolerance=1e-7, from_above=False).enough
        found = bracket(lambda scale: self._loss(steps, scale).bound, goal, start, tolerance=_NEAR, from_above=False)
        return min(found.enough, steps / epsilon * (1 + 1e-14))  # group privacy

    def _needed(self, steps: int, epsilon: float, enough: float) -> float:
        """Return a scale with which some member leaks more than epsilon: a member seen at once, or soon."""

        def seen(cells: int, scale: float) -> float:
            return self._searched(steps, scale, cells).value

        needed = 0.0
        for cells in (0, _SOON):
            if needed * (1 + _NARROW) < enough:
                needed = bracket(partial(seen, cells), epsilon, enough, tolerance=1e-4, from_above=True).too_small
        return needed

    def _reach(self, steps: int) -> tuple[int, int, Found]:
        """Return a distance that is enough, one that some member needs, and where it does."""
        if steps not in self._reaches:
            reach, needed, where = 1, 1, Found()
            while reach < steps:
                found = search(self._square, self._of(steps), Reach(steps, reach), cells=_CELLS)
                if found.bound <= 0:
                    break
                reach, where = reach + 1, found
                needed = reach if found.value > 0 else needed
            self._reaches[steps] = reach, needed, where
        return self._reaches[steps]

    def _of(self, steps: int) -> Paths:
        if steps not in self._paths:
            self._paths = {steps: Paths(steps, own=self._theta.initial_distribution == "any")}
        return self._paths[steps]

    def _about(self, count: _Count, steps: int, found: Found) -> About:
        names = self._theta.states
        pair = names[found.state], names[1 - found.state]
        length = next(chain.steps for chain in self._lengths) if count.before or len(count.steps) == 1 else steps
        return About(count.norm, 0, length, found.row + count.before, pair)

    def _count(self, query: LinearQuery) -> _Count:
        for chain in self._lengths:
            if chain.steps != chain.records:
                raise NotApplicableError(
                    f"a chain of {chain.steps:,} steps has {chain.records:,} observed records, and the law of a query "
                    "depends on which: LeakagePropagation covers gaps"
                )
        line, factors = query.line, query.factors
        if line is None:
            raise NotApplicableError("the query has several outputs that no single number determines")
        norm, before = line.norm, 0
        steps = tuple(dict.fromkeys(chain.steps for chain in self._lengths))
        if factors is not None:
            read = np.flatnonzero(factors)
            before = int(read[0])
            window = factors[before : int(read[-1]) + 1]
            if (window != window[0]).any():
                raise NotApplicableError(
                    "records that count differently are covered under every θ of a finite class, and this one is a "
                    "continuum: there, all records or those of one window count alike"
                )
            norm, steps = norm * abs(int(window[0])), (len(window),)
        longest = max(steps)
        least = min(self._theta.low, 1 - self._theta.high)
        if longest > _LONGEST or -longest * math.log(least) > _LOGS:
            most = min(_LONGEST, int(-_LOGS / math.log(least)))
            raise NotApplicableError(
                f"the laws of {longest:,} records under every chain with probabilities down to {least:g} are not "
                f"bounded (at most {most} records are); LeakagePropagation does not grow with the length"
            )
        return _Count(norm, before, steps)
