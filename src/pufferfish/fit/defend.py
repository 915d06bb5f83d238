r"""A class Θ that can be defended: what left-out days demand, everybody's own habits, and how many people that covers.

The rule. People are the subjects with at least 2,000 transitions; nobody else is a member, or counted.

*   The pooled chain is always in. So are people's own chains, where there are two people or more.
*   Hours, a longer memory (order 2) and kinds of stay are each tried against the pooled chain on days that were left
    out (:mod:`.left_out`): what gains more than ten nats, and more than twice its standard error, is demanded, and in.
*   Where memory or kinds of stay are in, everybody's own law of that kind is in too if it gains on left-out days more
    than ten nats, and more than its standard error, over everybody's own chain and over the pooled law of its kind.
*   Asked for more cover than that gives, or for slower stays, it adds every member once more with longer stays.

With M_i the noise that person i's own laws need, and people who are alike, drawn alike and with as much data, the next
person needs no more than the largest M_i with probability N / (N + 1), whatever the rule: all that is said of how many
people are covered rests on that.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import real_number, whole_number
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.progress import report_progress
from pufferfish._base.view import counted
from pufferfish.data.daily import Daily, Steps
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.fit.left_out import LEAST_GAIN, POOLED_STAYS, Gain, LeftOut, daily_of
from pufferfish.fit.mixture import Mixture, StaysSeen, climbed, fit_mixture
from pufferfish.mechanisms import LeakagePropagation
from pufferfish.queries import Histogram
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.higher_order_chain import HigherOrderChain
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.stays_chain import StaysChain

__all__ = ["CALLED", "Coverage", "DefendedFit", "Kind", "fit_defend"]

Array = NDArray[np.float64]

_PEOPLE = 2000
"""Transitions from which on a subject is counted."""

_LONG = 10**6
"""Records of the series that noise is compared for."""

_DRAWS = 30
"""How often days are drawn again to say how sure the noise of who decides is."""

_STEEPEST = 2.5
"""Tails of people's noise are taken to fall no faster than this power."""

_LOST = 0.02
"""How much of the cover own kinds of stay cost, which are estimated: so much less is said."""

_FEWEST = 9
"""People from which on a share that is covered is said."""

CALLED = {
    "pooled": "one chain of all",
    "own": "everybody's own chain",
    "hour": "hours of the day",
    "order2": "a longer memory (order 2)",
    "stays": "several kinds of stay",
    "own order2": "everybody's own memory (order 2)",
    "own stays": "everybody's own kinds of stay",
}
"""What is tried, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(ReadOnly):
    """A kind of member that was tried.

    Parameters
    ----------
    kind : str
        "pooled", "own", "hour", "order2", "stays", "own order2" or "own stays".
    gain : Gain or None
        What it gains on left-out days over what is simpler; None for what is in anyhow, and what could not be tried.
    kept : bool
        Whether its members are in Θ.
    members : int
        How many there are.
    noise_multiplier : float or None
        The noise that the worst of them needs: for a histogram at ε = 1, in a long series.
    decided_by : str or None
        Whose that is.
    leakage : float or None
        What noise for the pooled chain leaks under it.
    reason : str or None
        Why it could not be tried.
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
class Coverage(ReadOnly):
    """How many people the noise of a class covers, and what that rests on.

    Parameters
    ----------
    people : int
        N, the people that were counted.
    released : int
        M, how many people shall all be covered at once.
    slower : float
        How many times as long the stays of additional members are; 1 for none.
    share : float or None
        The expected share of people that is covered; None where there are too few to say one.
    sure : float or None
        The share that is covered with 95% confidence; None where stays were made longer, or there are too few.
    tail : float or None
        The index of the Pareto tail that a share beyond N / (N + 1) rests on.
    of_stays : bool
        Whether everybody's own kinds of stay are in, which are estimated.
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
    next_leakage: float | None = None
    left_out: tuple[str, ...] = ()

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
        if self.of_stays and self.sure is not None:
            exact = _percent(self.people / (self.people + 1)), _percent(0.05 ** (1 / self.people))
            sure = f"{sure[:-1]}; {exact[0]} and {exact[1]} less the .02 that estimated stays cost)"
        rests = (
            ""
            if self.tail is None
            else (f", if the slowest habits thin out like a power of {self.tail:.2g}, as those surveyed suggest,")
        )
        parts = [
            f"Of people like the {self.people:,} surveyed, drawn alike and with as much data, at least "
            f"{_percent(self.share)} on average{sure}{rests} have habits under which this noise leaks at most ε to "
            "somebody who knows these habits."
        ]
        if self.next_leakage is not None:
            parts.append(
                "Noise for all others here would leak to the one who differs most from them "
                f"{self.next_leakage:.3g} where ε is 1."
            )
        return " ".join([*parts, known])


@dataclass(frozen=True, slots=True, kw_only=True)
class DefendedFit(ReadOnly):
    """A class Θ that left-out days demand, and what it covers.

    Parameters
    ----------
    theta : class of chains
        The class: all members that were kept.
    sequences : Sequences
        What it was fitted to.
    kinds : tuple of Kind
        What was tried, kept or not.
    coverage : Coverage
        How many people it covers.
    noise_multiplier : float
        The noise that its worst member needs: for a histogram at ε = 1, in a long series.
    decided_by : str
        Which member that is.
    between : (float, float) or None
        From which to which noise that member's days, drawn again, lead: 10 and 90%.
    """

    theta: ChainClass
    sequences: Sequences
    kinds: tuple[Kind, ...]
    coverage: Coverage
    noise_multiplier: float
    decided_by: str
    between: tuple[float, float] | None


def fit_defend(
    sequences: Sequences,
    *,
    cover: float | None = None,
    slower: float | None = None,
    drop_slowest: bool = False,
    people: int = 1,
) -> DefendedFit:
    """Fit a class Θ that can be defended to public data.

    Parameters
    ----------
    sequences : Sequences
        Public data, read with ``daily=True``; with ``clock="hour"`` hours of the day are tried too.
    cover : float, optional
        The share of people to cover, such as 0.99. What is beyond N / (N + 1) of N people adds members whose stays are
        longer, and rests on a tail of people's noise.
    slower : float, optional
        Add every member once more, with stays so many times as long, such as 1.3: a margin for habits that change.
    drop_slowest : bool, default False
        Leave out as many of the slowest people as ``cover`` allows.
    people : int, default 1
        How many people the release is about, who shall all be covered.

    Raises
    ------
    ParameterError
        If the sequences were read without ``daily``, cover is no share, or slower is below 1.
    ModelError
        If the chain of all has no stationary law.

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
    share, factor = _share(cover), _factor(slower)
    try:
        many = whole_number(people)
    except TypeError:
        many = 0
    if many < 1:
        raise ParameterError(f"people is {people!r}, expected how many people a release is about, at least 1")
    if drop_slowest and share is None:
        raise ParameterError("drop_slowest leaves out as many people as cover allows: give cover, such as 0.9")
    daily = daily_of(sequences)
    number = np.bincount(daily.steps.subject, daily.steps.number, len(daily.subjects))
    persons: list[int] = np.flatnonzero(number >= _PEOPLE).tolist()
    left_out = LeftOut(sequences)

    kinds, kept = _demanded(_Fits(sequences, left_out), left_out, persons)
    coverage, dropped = _covered(kept, daily, share, many, factor, drop_slowest=drop_slowest)
    kept = [law for law in kept if law.who is None or law.who not in dropped]
    if coverage.slower > 1:
        kept += [_slowed(law, coverage.slower) for law in kept]
    worst = max(kept, key=lambda law: law.noise)
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
        between=_drawn_again(worst, daily),
    )


# -- Laws: how each kind of member is fitted ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Law:
    """A member: what it is called, whose it is, how it is fitted to weighed days, and the noise that it needs."""

    kind: str
    name: str
    who: int | None
    fit: Callable[[Daily], Any]
    model: Any
    noise: float

    @classmethod
    def of(cls, kind: str, name: str, who: int | None, fit: Callable[[Daily], Any], daily: Daily) -> "_Law":
        model = fit(daily)
        return cls(kind, name, who, fit, model, _noise(model))


class _Fits:
    """How every kind of member is fitted to days.

    Rows are given one transition of the pool's, a person's those of all others, half a transition in each cell of it:
    more would pull in the person who differs most, and decides.
    """

    def __init__(self, sequences: Sequences, left_out: LeftOut) -> None:
        self._sequences, self._left_out = sequences, left_out
        self._states, self._k = sequences.states, len(sequences.states)
        self.daily = daily_of(sequences)
        self._clock_step = sequences.base.step or sequences.usual_step

    def why_not(self, kind: str) -> str | None:
        """Return why a kind cannot be tried."""
        if kind == "hour" and self._sequences.clock != "hour":
            return "the table was read without hours of the day (--clock hour)"
        if kind.endswith("order2") and self._k**2 > _MOST:
            return f"{self._k} states have {self._k**2:,} pairs, and at most {_MOST} values are followed"
        if kind.endswith("stays") and self._k * self._left_out.kinds > _MOST:
            return f"{self._k} states have {self._left_out.kinds} kinds of stay each, and at most {_MOST} are followed"
        return None

    def members(self, kind: str, persons: Sequence[int]) -> list[_Law]:
        """Return the members of a kind: one of all, or one for each person."""
        fit = getattr(self, f"_{kind.replace(' ', '_')}")
        if not kind.startswith("own"):
            return [_Law.of(kind, CALLED[kind], None, partial(fit, None), self.daily)]
        laws = list[_Law]()
        for i, who in enumerate(persons):
            report_progress(CALLED[kind], i / len(persons))
            name = f"{CALLED[kind].removeprefix('everybody')[3:]} of {self.daily.subjects[who]}"
            laws.append(_Law.of(kind, name, who, partial(fit, who), self.daily))
        return laws

    def _pooled(self, who: int | None, daily: Daily) -> MarkovChain:
        counts = _transitions(daily.steps, self._k) + 0.0
        rows = counts + _rows(counts + 0.5)
        return MarkovChain(rows / rows.sum(axis=1, keepdims=True), states=self._states)

    def _own(self, who: int, daily: Daily) -> MarkovChain:
        mine = _transitions(daily.steps, self._k, who) + 0.0
        rows = mine + _rows(self._others(who))
        return MarkovChain(rows / rows.sum(axis=1, keepdims=True), states=self._states)

    def _others(self, who: int) -> Array:
        """Return the transitions of all others, half a one in every cell; of all days, whatever was weighed."""
        steps = self.daily.steps
        others: Array = (_transitions(steps, self._k) - _transitions(steps, self._k, who)).astype(np.float64)
        return others + 0.5

    def _hour(self, who: int | None, daily: Daily) -> PeriodicChain:
        steps, weight = daily.steps, self._left_out.weights.get("hour", 1.0)
        counts = np.zeros((24, self._k, self._k))
        np.add.at(counts, (steps.phase, steps.before, steps.state), steps.number)
        rows = counts + weight * _rows(_transitions(steps, self._k) + 0.5)
        matrices = rows / rows.sum(axis=2, keepdims=True)
        return PeriodicChain(matrices, clock="hour", step=self._clock_step, states=self._states)

    def _order2(self, who: int | None, daily: Daily) -> HigherOrderChain:
        weight = self._left_out.weights.get("order2", 1.0)
        simpler = _rows(_transitions(daily.steps, self._k) + 0.5)
        return self._memory(daily.steps, weight * simpler)

    def _own_order2(self, who: int, daily: Daily) -> HigherOrderChain:
        mine = _of_subject(daily.steps, who)
        return self._memory(mine, _rows(_transitions(mine, self._k) + _rows(self._others(who))))

    def _memory(self, steps: Steps, added: Array) -> HigherOrderChain:
        counts, known = np.zeros((self._k,) * 3), steps.earlier >= 0
        np.add.at(counts, (steps.earlier[known], steps.before[known], steps.state[known]), steps.number[known])
        rows = counts + added
        return HigherOrderChain(rows / rows.sum(axis=2, keepdims=True), states=self._states)

    def _stays(self, who: int | None, daily: Daily) -> StaysChain:
        runs, k = daily.runs, self._k
        mixtures = [fit_mixture(StaysSeen.of(runs, runs.state == x), self._left_out.kinds) for x in range(k)]
        exits = runs.transitions(k) * ~np.eye(k, dtype=np.bool_)
        rows = exits + _rows((exits + 0.5) * ~np.eye(k, dtype=np.bool_))
        kinds = [mixture.kinds for mixture in mixtures]
        return StaysChain(rows / rows.sum(axis=1, keepdims=True), kinds, states=self._states)

    def _own_stays(self, who: int, daily: Daily) -> StaysChain:
        runs, k = daily.runs, self._k
        mine = runs.subject == who
        mixtures = [
            climbed(StaysSeen.of(runs, mine & (runs.state == x)), pool, pool, POOLED_STAYS)[0]
            for x, pool in enumerate(self._pool)
        ]
        others = ~np.eye(k, dtype=np.bool_)
        rows = (runs.chosen(mine).transitions(k) + _rows(self._others(who) * others)) * others
        kinds = [mixture.kinds for mixture in mixtures]
        return StaysChain(rows / rows.sum(axis=1, keepdims=True), kinds, states=self._states)

    @cached_property
    def _pool(self) -> list[Mixture]:
        """Kinds of stay of all subjects, which own ones are completed by, and start from."""
        runs = self.daily.runs
        return [fit_mixture(StaysSeen.of(runs, runs.state == x), self._left_out.kinds) for x in range(self._k)]


_MOST = 80
"""Values that a record may have, kinds of stay and pairs of states among them, to be followed."""


def _noise(model: Any) -> float:
    """Return the noise that a member needs for a histogram at ε = 1, in a long series."""
    noise = LeakagePropagation(model, _LONG).calibrate(Histogram(relative=False), 1.0).noise_multiplier
    return math.inf if noise is None else noise


def _transitions(steps: Steps, k: int, who: int | None = None) -> NDArray[np.int64]:
    steps = steps if who is None else _of_subject(steps, who)
    counts = np.zeros((k, k), dtype=np.int64)
    np.add.at(counts, (steps.before, steps.state), steps.number)
    return counts


def _of_subject(steps: Steps, who: int) -> Steps:
    mine = steps.subject == who
    columns = (steps.subject, steps.day, steps.phase, steps.earlier, steps.before, steps.state, steps.number)
    return Steps(*(column[mine] for column in columns))


def _rows(counts: NDArray[Any]) -> Array:
    return counts / counts.sum(axis=1, keepdims=True)


# -- What left-out days demand -----------------------------------------------------------------------------------------


def _demanded(fits: _Fits, left_out: LeftOut, persons: Sequence[int]) -> tuple[tuple[Kind, ...], list[_Law]]:
    """Return what was tried, and the members that are kept: the pooled chain first."""
    kinds, kept = list[Kind](), list[_Law]()

    def consider(kind: str, gain: Gain | None, *, wanted: bool) -> bool:
        reason, laws = fits.why_not(kind), list[_Law]()
        if reason is None:
            try:
                laws = fits.members(kind, persons)
            except (ModelError, NotApplicableError) as error:
                reason = str(error)
        if kind == "pooled" and reason is not None:
            raise ModelError(f"the chain of all: {reason}")
        if reason is not None or not laws:
            kinds.append(Kind(kind=kind, gain=gain, reason=reason or "there is nobody with enough transitions"))
            return False
        worst, first = max(laws, key=lambda law: law.noise), (kept or laws)[0]
        leakage = max(LeakagePropagation(law.model, _LONG).leakage(1 / first.noise) for law in laws)
        kinds.append(
            Kind(
                kind=kind,
                gain=gain,
                kept=wanted,
                members=len(laws),
                noise_multiplier=worst.noise,
                decided_by=None if worst.who is None else fits.daily.subjects[worst.who],
                leakage=leakage,
            )
        )
        kept.extend(laws if wanted else [])
        return wanted

    consider("pooled", None, wanted=True)
    several = len(persons) > 1
    if several:
        consider("own", left_out.gain("own", "pooled"), wanted=True)
    for kind in ("hour", "order2", "stays"):
        gain = None if fits.why_not(kind) else left_out.gain(kind, "pooled")
        if consider(kind, gain, wanted=gain is not None and gain.demanded) and several and kind != "hour":
            own = left_out.gain(f"own {kind}", "own", kind)
            consider(f"own {kind}", own, wanted=own.nats > max(LEAST_GAIN, own.error))
    return tuple(kinds), kept


# -- How many people that covers ---------------------------------------------------------------------------------------


def _covered(
    kept: Sequence[_Law], daily: Daily, share: float | None, people: int, factor: float, *, drop_slowest: bool
) -> tuple[Coverage, set[int]]:
    """Return how many people the members cover, and who is left out where that is asked for."""
    needs: dict[int, float] = {}
    for law in kept:
        if law.who is not None:
            needs[law.who] = max(needs.get(law.who, 0.0), law.noise)
    slowest = sorted(needs, key=lambda who: -needs[who])
    n, lost = len(slowest), _LOST if any(law.kind == "own stays" for law in kept) else 0.0
    if n < _FEWEST:
        return Coverage(people=n, slower=factor), set()
    dropped, tail = set[int](), None
    if share is not None:
        beyond = (1 - share) * (n + 1)
        if beyond < 1:
            tail = _tail([needs[who] for who in slowest])
            factor = max(factor, beyond ** (-1 / tail))
        elif drop_slowest:
            dropped = set(slowest[: int(beyond) - 1])
    r = len(dropped) + 1  # the noise is that of the r-th slowest person
    expected = n / (n + people) if people > 1 else (n + 1 - r) / (n + 1) - lost
    return (
        Coverage(
            people=n,
            released=people,
            slower=factor,
            share=share if tail is not None else expected,
            sure=None if tail is not None or r > 1 or people > 1 else 0.05 ** (1 / n) - lost,
            tail=tail,
            of_stays=lost > 0,
            next_leakage=_to_the_slowest(kept, slowest, dropped),
            left_out=tuple(daily.subjects[who] for who in sorted(dropped)),
        ),
        dropped,
    )


def _tail(needs: Sequence[float]) -> float:
    """Return the index of a Pareto tail of the upper third of noises, at most the steepest that is taken."""
    third = -(-len(needs) // 3)
    logs = np.log(needs)
    mean = float(np.mean(logs[:third] - logs[third])) if third < len(needs) else 0.0
    return min(1 / mean, _STEEPEST) if mean > 0 else _STEEPEST


def _to_the_slowest(kept: Sequence[_Law], slowest: Sequence[int], dropped: set[int]) -> float:
    """Return what noise for all others leaks to the slowest person that is in."""
    who = next(who for who in slowest if who not in dropped)
    noise = max(law.noise for law in kept if law.who != who and law.who not in dropped)
    return max(LeakagePropagation(law.model, _LONG).leakage(1 / noise) for law in kept if law.who == who)


def _slowed(law: _Law, times: float) -> _Law:
    def fit(daily: Daily) -> Any:
        return law.fit(daily).slower(times)

    model = law.model.slower(times)
    return _Law(law.kind, f"{law.name}, stays {times:.3g} times as long", law.who, fit, model, _noise(model))


def _drawn_again(law: _Law, daily: Daily) -> tuple[float, float] | None:
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
        report_progress("days of who decides, drawn again", draw / _DRAWS)
        times = np.zeros(blocks.shape[1], dtype=np.int64)
        np.add.at(times, rng.choice(np.flatnonzero(mine), int(mine.sum())), 1)
        weights = times[of_group]
        weighed = Daily(
            daily.subjects,
            replace(steps, number=steps.number * weights[: len(steps.number)]),
            replace(runs, number=runs.number * weights[len(steps.number) :]),
        )
        try:
            noises.append(_noise(law.fit(weighed)))
        except (ModelError, NotApplicableError):  # days in which a state is never left
            noises.append(math.inf)
    low, high = np.quantile(noises, [0.1, 0.9], method="nearest")
    return float(low), float(high)


def _share(cover: Any) -> float | None:
    if cover is None:
        return None
    share = real_number(cover)
    if share is None or not 0.5 <= share < 1:
        raise ParameterError(f"cover is {cover!r}, expected a share of people such as 0.95, at least 0.5 and below 1")
    return share


def _factor(slower: Any) -> float:
    if slower is None:
        return 1.0
    times = real_number(slower)
    if times is None or not 1 <= times <= 100:
        raise ParameterError(f"slower is {slower!r}, expected from 1 to 100: how many times as long stays last")
    return times


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
