r"""A class Θ that can be defended: what left-out days demand, everybody's own habits, and how many people that covers.

The rule. People are the subjects with at least 2,000 transitions; nobody else is a member, or counted.

*   The pooled chain is always in. So are people's own chains, where there are two people or more.
*   Hours, a longer memory (order 2) and kinds of stay are each tried against the pooled chain on days that were left
    out (:mod:`.left_out`): what gains more than ten nats, and more than twice its standard error, is demanded, and in.
*   Where memory or kinds of stay are in, everybody's own law of that kind is in too if it gains on left-out days more
    than ten nats, and more than its standard error, over everybody's own chain and over the pooled law of its kind.
*   Asked for more cover than that gives, or for slower stays, it adds every member once more with longer stays.

With M_i the noise that person i's own laws need, and people who are alike, drawn alike and with as much data, the next
person needs no more than the largest M_i with probability N / (N + 1), whatever the rule that made the laws. What is
beyond adds members whose stays are longer, and rests on a Pareto tail of the noises.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pufferfish._base.checked import real_that, whole_at_least
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.progress import part_of
from pufferfish._base.view import counted
from pufferfish.data.groups import Daily
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.fit.left_out import LEAST_GAIN, Gain, LeftOut
from pufferfish.fit.members import PEOPLE, Law, Members, largest_by_chance, leakage_of, noise_of, worst_of
from pufferfish.theta.chain_class import ChainClass

# -- How many people the noise of a class covers -----------------------------------------------------------------------

_STEEPEST = 2.5  # tails of people's noise are taken to fall no faster than this power
_LOST = 0.02  # how much cover it costs that own kinds of stay are estimated, or states were not seen
_UNSEEN = 1 / 4  # share of people beyond which states that they were never seen to leave cost cover (docs/results.md)
_FEWEST = 9  # people from which on a share that is covered is said


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
    """Return how many people a class covers, and its members, fewer or more as :func:`fit_defend` is asked."""
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
        if share is not None or people > 1:
            raise ParameterError(
                f"own chains of {counted(n, 'person', 'people')} say nothing of others: leave out "
                f"{'people' if share is None else 'cover'}=, or survey at least {_FEWEST} people, with {PEOPLE:,} "
                "transitions each"
            )
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

    >>> share_covered(19, 19).share, share_covered(19, 10).share, share_covered(8, 8).share
    (0.95, 0.5, None)
    """
    known = Coverage(people=people, of_stays=of_stays, unseen=unseen)
    return known if people < _FEWEST else replace(known, share=max(within / (people + 1) - known.lost, 0.0))


# -- A class that can be defended --------------------------------------------------------------------------------------


_DRAWS = 30  # how often days are drawn again to say how sure the noise of who decides is


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(ReadOnly):
    """A kind of member that was tried: "pooled", "own", "hour", "order2", "stays", "own order2" or "own stays".

    ``gain`` is what it gains on left-out days over what is simpler: None for what is in anyhow, and for what could not
    be tried, of which ``reason`` says why. The worst of its members needs ``noise_multiplier``, for a histogram at ε =
    1 in a long series, and is of the person ``decided_by``; noise for the pooled chain leaks ``leakage`` under it.
    """

    kind: str
    gain: Gain | None = None
    kept: bool = False
    members: int = 0
    noise_multiplier: float | None = None
    decided_by: str | None = None
    leakage: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DefendedFit(ReadOnly):
    """A class Θ that left-out days demand, and what it covers.

    Parameters
    ----------
    theta, sequences : ChainClass, Sequences
        The class, of all members that were kept, and what it was fitted to.
    kinds : tuple of Kind
        What was tried, kept or not.
    coverage : Coverage
        How many people it covers.
    noise_multiplier, decided_by : float, str
        The noise that its worst member needs, for a histogram at ε = 1 in a long series; and which member that is.
    between : (float, float) or None
        From which to which noise that member's days, drawn again, lead: 10 and 90%.
    by_chance : tuple of float
        The largest noise of own chains in simulations of people who all live by the chain of all, sorted by size;
        nothing where there are fewer than two people.
    """

    theta: ChainClass
    sequences: Sequences
    kinds: tuple[Kind, ...]
    coverage: Coverage
    noise_multiplier: float
    decided_by: str
    between: tuple[float, float] | None
    by_chance: tuple[float, ...]


def fit_defend(
    sequences: Sequences,
    *,
    cover: float | None = None,
    slower: float | None = None,
    drop_slowest: bool = False,
    people: int = 1,
) -> DefendedFit:
    """Fit a class Θ that can be defended to public data.

    A :class:`ParameterError` if the sequences were read without ``daily``, or an argument is out of range. A
    :class:`ModelError` if the chain of all has no stationary law.

    Parameters
    ----------
    sequences : Sequences
        Public data, read with ``daily=True``; with ``clock="hour"`` hours of the day are tried too.
    cover : float, optional
        The share of people to cover, such as 0.99. What is beyond N / (N + 1) of N people adds members whose stays are
        longer, and rests on a tail of people's noise.
    slower : float, optional
        Add every member once more, with stays so many times as long, 1 to 100: a margin for habits that change.
    drop_slowest : bool, default False
        Leave out as many of the slowest people as ``cover`` allows.
    people : int, default 1
        How many people the release is about, who shall all be covered.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> rows = {"who": ["a", "b"], "s": [list("rrrrw" * 500), list("rrwwr" * 500)]}
    >>> days = pl.DataFrame(rows).explode("s").with_row_index("t")
    >>> data = pf.read_sequences(days, "s", subject="who", time="t", max_gap=1, daily=True)
    >>> fit = pf.fit_defend(data)
    >>> [kind.kind for kind in fit.kinds if kind.kept][:2], fit.coverage.people, fit.coverage.share
    (['pooled', 'own'], 2, None)
    """
    share, expected = None, "a share of people such as 0.95, at least 0.5 and below 1"
    if cover is not None:
        share = real_that(lambda number: 0.5 <= number < 1, cover, "cover", expected)
    longer = "a factor from 1 to 100 by which stays get longer"
    factor = 1.0 if slower is None else real_that(lambda number: 1 <= number <= 100, slower, "slower", longer)
    many = whole_at_least(people, "people", 1, ", the number of people in a release")
    if drop_slowest and share is None:
        raise ParameterError("drop_slowest leaves out as many people as cover allows: give cover=, such as 0.9")
    left_out = LeftOut(sequences)
    members = Members(sequences, kinds=left_out.kinds, weights=left_out.weights)
    persons = members.people
    kinds, kept = _demanded(members, left_out, persons)
    coverage, kept = covered(
        kept,
        members.daily.subjects,
        share=share,
        people=many,
        slower=factor,
        drop_slowest=drop_slowest,
        unseen=members.unseen,
    )
    worst = worst_of(kept)
    return DefendedFit(
        theta=ChainClass(
            tuple(law.model for law in kept),
            f"fitted to public data: what left-out days demand; {coverage.origin}",
            names=tuple(law.name for law in kept),
        ),
        sequences=sequences,
        kinds=kinds,
        coverage=coverage,
        noise_multiplier=worst.noise,
        decided_by=worst.name,
        between=drawn_again(worst, members.daily),
        by_chance=tuple(largest_by_chance(members.transitions[persons]).tolist()) if len(persons) > 1 else (),
    )


# -- What left-out days demand -----------------------------------------------------------------------------------------


def _demanded(members: Members, left_out: LeftOut, persons: Sequence[int]) -> tuple[tuple[Kind, ...], list[Law]]:
    """Return what was tried, and the members that are kept: the pooled chain first."""
    kinds, kept = list[Kind](), list[Law]()

    def consider(kind: str, gain: Gain | None, *, wanted: bool) -> bool:
        reason, laws = members.why_not(kind), list[Law]()
        if gain is not None and math.isinf(gain.error):
            reason = "there is only one day, so no day can be left out"
        if reason is None:
            try:
                laws = members.of(kind, persons)
            except (ModelError, NotApplicableError) as error:
                reason = str(error)
        if kind == "pooled" and reason is not None:
            raise ModelError(f"the chain of all: {reason}")
        if reason is not None or not laws:
            kinds.append(Kind(kind=kind, gain=gain, reason=reason or "no subject has enough transitions"))
            return False
        worst, first = max(laws, key=lambda law: law.noise), (kept or laws)[0]
        leakage = leakage_of(worst.model, first.noise)  # of nobody else: noise far too small takes long to bound
        kinds.append(
            Kind(
                kind=kind,
                gain=gain,
                kept=wanted,
                members=len(laws),
                noise_multiplier=worst.noise,
                decided_by=None if worst.who is None else members.daily.subjects[worst.who],
                leakage=leakage,
            )
        )
        kept.extend(laws if wanted else [])
        return wanted

    consider("pooled", None, wanted=True)
    several = len(persons) > 1
    if several:
        consider("own", left_out.gain("own", "pooled"), wanted=True)
    else:
        kinds.append(Kind(kind="own", gain=None, reason=f"fewer than two subjects have {PEOPLE:,} transitions"))
    for kind in ("hour", "order2", "stays"):
        gain = None if members.why_not(kind) else left_out.gain(kind, "pooled")
        if consider(kind, gain, wanted=gain is not None and gain.demanded) and several and kind != "hour":
            own = left_out.gain(f"own {kind}", "own", kind)
            consider(f"own {kind}", own, wanted=own.nats > max(LEAST_GAIN, own.error))
    return tuple(kinds), kept


def drawn_again(law: Law, daily: Daily) -> tuple[float, float] | None:
    """Return from which to which noise a member's days lead when they are drawn again, 10 and 90%."""
    steps, runs = daily.steps, daily.runs
    named = np.stack([np.concatenate([steps.subject, runs.subject]), np.concatenate([steps.day, runs.day])])
    blocks, of_group = np.unique(named, axis=1, return_inverse=True)
    of_group = of_group.reshape(-1)
    mine = np.ones(blocks.shape[1], dtype=np.bool_) if law.who is None else blocks[0] == law.who
    if mine.sum() < 2:
        return None
    rng, noises = np.random.default_rng(0), list[float]()
    for draw in range(_DRAWS):
        times = np.zeros(blocks.shape[1], dtype=np.int64)
        np.add.at(times, rng.choice(np.flatnonzero(mine), int(mine.sum())), 1)
        weights = times[of_group]
        weighed = Daily(
            daily.subjects,
            replace(steps, number=steps.number * weights[: len(steps.number)]),
            replace(runs, number=runs.number * weights[len(steps.number) :]),
        )
        try:
            with part_of(f"days of who decides ({law.name}), drawn again", draw, _DRAWS):
                noises.append(noise_of(law.fit(weighed)))
        except (ModelError, NotApplicableError):  # days in which a state is never left
            noises.append(math.inf)
    low, high = np.quantile(noises, [0.1, 0.9], method="nearest")
    return float(low), float(high)
