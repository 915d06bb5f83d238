"""How many people the noise of a class covers: the sentence, what it rests on, and longer stays for more of them.

With M_i the noise that person i's own laws need, and people who are alike, drawn alike and with as much data, the next
person needs no more than the largest M_i with probability N / (N + 1), whatever the rule that made the laws. What is
beyond adds members whose stays are longer, and rests on a Pareto tail of the noises.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pufferfish._base.frozen import ReadOnly
from pufferfish._base.view import counted
from pufferfish.fit.members import Law, leakage_of

_STEEPEST = 2.5
"""Tails of people's noise are taken to fall no faster than this power."""

_LOST = 0.02
"""How much cover it costs that own kinds of stay are estimated, or states were not seen: so much less is said."""

_UNSEEN = 1 / 4
"""Share of the people beyond which states that they were never seen to leave cost cover (docs/results.md)."""

_FEWEST = 9
"""People from which on a share that is covered is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage(ReadOnly):
    """How many people the noise of a class covers, and the assumptions of that number.

    Parameters
    ----------
    people, released : int
        N, the people that were counted, and M, how many people shall all be covered at once.
    slower : float
        How many times as long the stays of additional members are; 1 for none.
    share, sure : float or None
        The share of people that is covered, expected and with 95% confidence; None where that cannot be said: where
        there are too few people, and of ``sure`` where stays were made longer.
    tail : float or None
        The index of the Pareto tail that a share beyond N / (N + 1) rests on.
    of_stays : bool
        Whether everybody's own kinds of stay are in, which are estimated.
    unseen : int
        How many people were never seen to leave some state: what they would do there is taken from the others.
    next_leakage : float or None
        What noise for all others would leak to the one who differs most from them.
    left_out : tuple of str
        The slowest people, where they were left out.
    """

    people: int
    released: int = 1
    slower: float = 1.0
    share: float | None = None
    sure: float | None = None
    tail: float | None = None
    of_stays: bool = False
    unseen: int = 0
    next_leakage: float | None = None
    left_out: tuple[str, ...] = ()

    @property
    def lost(self) -> float:
        """How much less than N / (N + 1) is said, since habits were estimated."""
        return _LOST if self.of_stays or self.unseen > _UNSEEN * self.people else 0.0

    @property
    def origin(self) -> str:
        """What is said of it where Θ came from: who was left out, how stays were made longer, and the sentence."""
        dropped = f"left out: {', '.join(self.left_out)}; " if self.left_out else ""
        slower = f"every member once more with stays {self.slower:.3g} times as long; " if self.slower > 1 else ""
        return f"{dropped}{slower}{self.sentence.removesuffix('.')}"

    @property
    def sentence(self) -> str:
        """What may be said of it, with its conditions."""
        known = "Somebody who does not know whose habits hold is not covered."
        if self.share is None:
            whom = "one series" if self.people < 2 else counted(self.people, "person", "people")
            return f"Of {whom} no share of others can be defended: the noise is for the habits in Θ. {known}"
        if self.released > 1:
            return (
                f"If {self.released:,} people and the {self.people:,} surveyed are alike, drawn alike and with as much "
                f"data, the habits of all of them are covered with probability {_percent(self.share)}. {known}"
            )
        sure = "" if self.sure is None else f" ({_percent(self.sure)} with 95% confidence)"
        why = "estimated stays cost" if self.of_stays else f"states cost that {self.unseen} of them never left"
        if self.lost and self.sure is None and self.tail is None:
            sure = f" ({_percent(self.share + self.lost)} less the .02 that {why})"
        elif self.lost and self.sure is not None:
            exact = _percent(self.people / (self.people + 1)), _percent(0.05 ** (1 / self.people))
            sure = f"{sure[:-1]}; {exact[0]} and {exact[1]} less the .02 that {why})"
        power = f"{0 if self.tail is None else self.tail:.2g}"
        rests = f", if the slowest habits thin out like a power of {power}, as those surveyed suggest,"
        covers = (
            f"Of people like the {self.people:,} surveyed, drawn alike and with as much data, at least "
            f"{_percent(self.share)} on average{sure}{'' if self.tail is None else rests} have habits under which this "
            "noise leaks at most ε to somebody who knows these habits."
        )
        if self.next_leakage is None:
            return f"{covers} {known}"
        others = "Noise for all others here would leak to the one who differs most from them"
        return f"{covers} {others} {self.next_leakage:.3g} where ε is 1. {known}"


def covered(
    kept: Sequence[Law],
    subjects: Sequence[str],
    *,
    share: float | None = None,
    people: int = 1,
    slower: float = 1.0,
    drop_slowest: bool = False,
    unseen: int = 0,
) -> tuple[Coverage, list[Law]]:
    """Return how many people a class covers, and its members: of those that were kept, fewer or more as is asked.

    ``share`` and what follows are as for :func:`fit_defend`; ``unseen`` people were never seen to leave some state.
    """
    needs: dict[int, float] = {}
    for law in kept:
        if law.who is not None:
            needs[law.who] = max(needs.get(law.who, 0.0), law.noise)
    slowest = sorted(needs, key=lambda who: -needs[who])
    coverage = Coverage(
        people=len(slowest),
        released=people,
        slower=slower,
        of_stays=any(law.kind == "own stays" for law in kept),
        unseen=unseen,
    )
    n, lost = coverage.people, coverage.lost
    if n < _FEWEST:
        return coverage, _members(kept, slower)
    dropped, tail = set[int](), None
    if share is not None:
        beyond = (1 - share) * (n + 1)
        if beyond < 1:
            tail = _tail([needs[who] for who in slowest])
            slower = max(slower, beyond ** (-1 / tail))
        elif drop_slowest:
            dropped = set(slowest[: int(beyond) - 1])
    r = len(dropped) + 1  # the noise is that of the r-th slowest person
    expected = (n + 1 - r) / (n + 1) - lost
    if people > 1:  # N / (N + M), of as many surveyed as would cover one person so surely
        surveyed = expected / (1 - expected)
        expected = surveyed / (surveyed + people)
    left = [law for law in kept if law.who is None or law.who not in dropped]
    coverage = replace(
        coverage,
        slower=slower,
        share=share if tail is not None else expected,
        sure=None if tail is not None or r > 1 or people > 1 else 0.05 ** (1 / n) - lost,
        tail=tail,
        next_leakage=_to_the_slowest(left, slowest[len(dropped)]),
        left_out=tuple(subjects[who] for who in sorted(dropped)),
    )
    return coverage, _members(left, slower)


def _members(laws: Sequence[Law], slower: float) -> list[Law]:
    slowest_first = sorted(laws, key=lambda law: -law.noise) if slower > 1 else []
    return [*laws, *(law.slower(slower) for law in slowest_first)]


def _tail(needs: Sequence[float]) -> float:
    """Return the index of a Pareto tail of the upper third of noises, at most the steepest that is taken."""
    third = -(-len(needs) // 3)
    logs = np.log(needs)
    mean = float(np.mean(logs[:third] - logs[third])) if third < len(needs) else 0.0
    return min(1 / mean, _STEEPEST) if mean > 0 else _STEEPEST


def _to_the_slowest(laws: Sequence[Law], who: int) -> float:
    """Return what noise for all others leaks to the slowest person that is in."""
    noise = max(law.noise for law in laws if law.who != who)
    return max(leakage_of(law.model, noise) for law in laws if law.who == who)


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def share_covered(people: int, within: int, *, of_stays: bool = False, unseen: int = 0) -> Coverage:
    """Return what may be said where the noise of a class is enough for the habits of some of the people asked.

    Examples
    --------
    >>> share_covered(19, 19).share, share_covered(19, 10).share, share_covered(8, 8).share
    (0.95, 0.5, None)
    """
    known = Coverage(people=people, of_stays=of_stays, unseen=unseen)
    return known if people < _FEWEST else replace(known, share=max(within / (people + 1) - known.lost, 0.0))
