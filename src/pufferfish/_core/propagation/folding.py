"""Profiles that repeat: equal stretches that come again and again are one cycle, and what holds of it holds of all.

A query about one hour of each day reads an hour, leaves out 23, and so on for a year. Of such a repetition the first
and the last cycle stay as they are, and one cycle stands for all those between them: its sweeps begin with a bound that
they do not end above (:meth:`pufferfish._core.propagation.sweep.Sweep.repeat`), so by induction every later cycle
begins below that bound too. A year costs what a few days do. Only chains that are too long to be followed record by
record are folded.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Fold", "Repeated", "folded"]

_FEWEST = 5
"""Repetitions of fewer cycles are left as they are: a bound for any number of cycles may be far above theirs."""

_LONGEST = 64
"""Stretches of the longest cycle that is looked for."""

_Stretch = TypeVar("_Stretch", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Repeated:
    """A cycle among the stretches of a folded profile that stands for several.

    Parameters
    ----------
    first, stop : int
        Its first stretch, and one past its last.
    times : int
        How many cycles it stands for.
    """

    first: int
    stop: int
    times: int


@dataclass(frozen=True, slots=True)
class Fold:
    """A folded profile.

    Parameters
    ----------
    kept : tuple of int
        Which stretches of the profile are left, in order.
    repeated : tuple of Repeated
        Cycles among them, in order.
    """

    kept: tuple[int, ...]
    repeated: tuple[Repeated, ...]

    def place(self, place: int, steps: Sequence[int]) -> int:
        """Return the record that one of the folded profile stands for: in a cycle, one of the middle cycle.

        Parameters
        ----------
        place : int
            The record, 1-based.
        steps : sequence of int
            Records of each stretch of the folded profile.
        """
        more = 0
        for cycle in self.repeated:
            before, length = sum(steps[: cycle.first]), sum(steps[cycle.first : cycle.stop])
            if place > before + length:
                more += (cycle.times - 1) * length
            elif place > before:
                more += (cycle.times - 1) // 2 * length
        return place + more


def folded(stretches: Sequence[Hashable]) -> Fold:
    """Fold a profile, given what tells its stretches apart.

    Examples
    --------
    >>> folded([7, *"ab" * 365, "c"])
    Fold(kept=(0, 1, 2, 3, 4, 729, 730, 731), repeated=(Repeated(first=3, stop=5, times=363),))
    """
    names: dict[Hashable, int] = {}
    ids = [names.setdefault(stretch, len(names)) for stretch in stretches]
    kept, repeated, at = list[int](), list[Repeated](), 0
    while at < len(ids):
        period, times = _most(ids, at)
        if times < _FEWEST:
            kept.append(at)
            at += 1
            continue
        end = at + period * times
        kept += range(at, at + 2 * period)
        repeated.append(Repeated(len(kept) - period, len(kept), times - 2))
        kept += range(end - period, end)
        at = end
    return Fold(tuple(kept), tuple(repeated))


def _most(ids: Sequence[int], at: int) -> tuple[int, int]:
    """Return the cycle that begins here and covers most, and how often it comes."""
    best = 1, 1
    for period in range(1, min(_LONGEST, (len(ids) - at) // _FEWEST) + 1):
        matching = at
        while matching + period < len(ids) and ids[matching] == ids[matching + period]:
            matching += 1
        times = (matching - at) // period + 1
        if times >= _FEWEST and period * times > best[0] * best[1]:
            best = period, times
    return best
