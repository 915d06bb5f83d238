"""Does this Θ describe these public data? Left-out days, stays, hours and forgetting; and what its noise would leak.

What is asked of a class is one thing. Does a kind of model that is fitted to these data make days that were left out
likelier than the best member of the class for everybody (:mod:`~pufferfish.fit.left_out`)? And would the noise of the
class leak more than ε to somebody who knows that model? Only both together contradict the class.

A continuum, such as what is between bounds, or all that forgets, says no likelihoods. But its noise leaks at most ε
under all that is in it: a fitted model under which it leaks more, also in nine of ten drawings of the days, is not.

A stay that a gap cuts off lasted at least as long as was seen. So the share of stays that last longer than n records is
estimated by Kaplan and Meier's product: of the stays that reached their n-th record, with what followed seen, the share
that went on.
"""

import math
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.durations import parse_duration
from pufferfish._base.progress import part_of
from pufferfish._base.reading import check_path
from pufferfish._base.view import View
from pufferfish._core.numbers.rounding import least_whole
from pufferfish._draw.figure import save_figure
from pufferfish.check.network import NetworkCheck, check_network
from pufferfish.check.record import Checked, CheckFields, NoiseFor, OverlapAfter, RicherModel, StateStays, SubjectCheck
from pufferfish.check.shown import draw_check, view_of
from pufferfish.check.words import KNOWS, leaks_more, text_of, verdict_of
from pufferfish.data.sequences import Sequences
from pufferfish.data.steps import check_step, skips_steps
from pufferfish.errors import DataError, ModelError, NotApplicableError, ParameterError
from pufferfish.fit.chain import check_transitions
from pufferfish.fit.defend import drawn_again, share_covered
from pufferfish.fit.forgetting import SMOOTHING, OverlapEstimate, overlap, overlap_of
from pufferfish.fit.left_out import LeftOut, daily_of
from pufferfish.fit.members import Law, Members, largest_by_chance
from pufferfish.fit.model_file import Model
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.queries import Histogram
from pufferfish.theta.chain_class import ChainClass, Continuum
from pufferfish.theta.continua import ForgettingClass
from pufferfish.theta.model_class import ModelClass, Theta, as_theta
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.tuple_chains import StaysChain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pufferfish.data.public_counts import Habits

Values = NDArray[np.float64]

# -- How long states last: observed stays against those of Θ --------------------------------------------------------

HIGH = 0.95
"""The quantile that is shown beside the mean."""


def observed(ended: NDArray[np.int64], cut: NDArray[np.int64]) -> tuple[float, float] | None:
    """Return mean and high quantile of stays, in records; None where none was seen to end.

    Entry n of ``ended`` and of ``cut`` is the number of stays of n records whose end was seen, or that were cut off
    then. Where the longest stays are all cut off, the mean counts them as ended, and a quantile beyond is infinite.

    >>> observed(np.array([0, 3, 0, 1]), np.array([0]))
    (1.5, 3.0)
    """
    longest = max(len(ended), len(cut))
    over, lost = (np.pad(counts, (0, longest - len(counts))) for counts in (ended, cut))
    if not over.any():
        return None
    reached = (over + lost)[::-1].cumsum()[::-1]
    left = np.cumprod(1 - over / np.maximum(reached, 1))  # share of stays that last longer than n records
    within = np.flatnonzero(left <= (1 - HIGH) * (1 + 1e-12))
    return float(left[:-1].sum()), float(within[0]) if within.size else math.inf


def lasting(kinds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return mean and high quantile of stays of several kinds: their shares, and probabilities to go on for a step.

    >>> lasting([(1.0, 0.5)]), lasting([(0.9, 0.5), (0.1, 0.75)])
    ((2.0, 5.0), (2.2, 6.0))
    """
    if any(keep >= 1 for _, keep in kinds):
        return math.inf, math.inf

    def ended(n: int) -> bool:
        return sum(share * keep**n for share, keep in kinds) <= (1 - HIGH) * (1 + 1e-12)

    high = 1
    while not ended(high):
        high *= 2
    return sum(share / (1 - keep) for share, keep in kinds), float(least_whole(ended, high // 2, high))


APART = tuple(2**i for i in range(10))
"""Numbers of steps after which it is asked how much is forgotten; a chain may be shorter."""


class ModelCheck(Checked, CheckFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether a model describes public data: a verdict and numbers (:class:`CheckFields`); prints as text."""

    def _view(self) -> View:
        return view_of(self)

    def plot(self, path: str | os.PathLike[str] | None = None) -> "Figure":
        """Draw how long states last, what people do by the hour, and how soon they forget, and write it to ``path``."""
        if path is not None:
            check_path(path)
        figure = draw_check(self)
        if path is not None:
            save_figure(figure, path)
        return figure

    def __str__(self) -> str:
        return text_of(self)


@overload
def check_model(
    model: Any, source: Any, state: str, *, public: bool = ..., epsilon: float = ..., **reading: Any
) -> ModelCheck: ...
@overload
def check_model(
    model: Any, source: Any, *, public: bool = ..., epsilon: float = ..., **reading: Any
) -> NetworkCheck: ...
def check_model(
    model: Any, source: Any, state: Any = None, *, public: bool = False, epsilon: float = 1.0, **reading: Any
) -> Any:
    """Check whether a model describes public data, and what its noise leaks if it does not.

    Parameters
    ----------
    model : Model, or what it is made of: chains of any kinds, a class of them, or a BayesianNetwork
        The class Θ.
    source, state, **reading
        Data, as for :func:`read_sequences`; bins and states are the model's. For a network as for :func:`read_rows`,
        without ``state``.
    public : bool
        That the data are public: what a check says are exact functions of them, which no noise protects.
    epsilon : float, default 1
        Privacy parameter of the noise that is spoken of: for a histogram of as many records, or for the marginals of
        all columns of a network, under the model.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> days = pl.DataFrame({"who": ["a"] * 400 + ["b"] * 400, "s": list("rrrw" * 100) + list("rrww" * 100)})
    >>> chain = pf.fit_chain(pf.read_sequences(days, "s", subject="who"))
    >>> found = check_model(chain, days, "s", subject="who", public=True)
    >>> found.verdict.word, found.verdict.remedies[0].kind
    ('do not go on', 'order2')
    >>> [(stay.state, stay.observed) for stay in found.stays]
    [('r', (2.5, 3.0)), ('w', (1.505, 2.0))]
    """
    theta, bins = (model.theta, model.bins) if isinstance(model, Model) else (as_theta(model), None)
    epsilon = as_epsilon(epsilon)
    if public is not True:
        raise ParameterError(
            "a check prints exact numbers of the data, so it is for public data only: give public=True if everybody "
            "may see these data"
        )
    if isinstance(theta, ModelClass) and theta.networks:
        if state is not None:
            raise ParameterError(f"state is {state!r}, and belongs to Markov chains: leave it out for networks")
        return check_network(theta, source, epsilon, reading)
    if not theta.of_chains:
        raise NotApplicableError(f"Θ is a class of {theta.kind}, but a check covers only chains and networks")
    if bins is not None and reading.get("bins") is None:
        reading["bins"] = bins
    reading["states"] = theta.states
    clocks = [m.clock for m in _members_of(theta) if isinstance(m, PeriodicChain) and m.clock is not None]
    habits, no_hours = _read(source, state, reading, clocks[0] if clocks else "hour")
    check_transitions(habits.sequences)
    check_step(habits.sequences, model if isinstance(model, Model) else Model(theta=theta, step=theta.step))
    asked = _Asked(theta, habits, epsilon, no_hours)
    subjects, richer = asked.subjects(), asked.richer()
    sequences, steady = habits.sequences, _stationary(theta)
    known = None if steady is None else overlap(theta, [estimate.steps for estimate in asked.curve])
    fitted_on = (model.fitted_on if isinstance(model, Model) else None) or ""
    coverage = asked.coverage(subjects)
    return ModelCheck(
        verdict=verdict_of(
            richer,
            subjects,
            epsilon=epsilon,
            noise=asked.noise.multiplier,
            same_people=sequences.fingerprint in fitted_on.split(),
            coverage=coverage,
            fit=_fit_command(source, state, reading | _one_step(sequences)),
        ),
        origin=theta.origin,
        source=sequences.base.source,
        epsilon=epsilon,
        noise_multiplier=asked.noise.multiplier,
        records=sequences.records,
        transitions=int(sequences.transitions.sum()),
        richer=richer,
        subjects=subjects,
        not_asked=asked.not_asked(),
        coverage=coverage,
        stays=_stays(sequences, theta),
        overlaps=tuple(
            OverlapAfter(
                steps=estimate.steps,
                worst=estimate.overlap,
                subject=estimate.subject,
                pooled=estimate.pooled,
                model=None if known is None else known[i],
            )
            for i, estimate in enumerate(asked.curve)
        ),
        states=sequences.states,
        occupancy=None if habits.occupancy is None else tuple(tuple(map(int, row)) for row in habits.occupancy),
        stationary=() if steady is None else tuple((float(column.min()), float(column.max())) for column in steady.T),
    )


def _members_of(theta: Theta) -> Sequence[Any]:
    return (theta,) if isinstance(theta, Continuum) else theta.members


# -- Reading ---------------------------------------------------------------------------------------------------------


def _read(source: Any, state: str, reading: Mapping[str, Any], clock: str) -> tuple["Habits", str | None]:
    """Read habits by a clock; where no hours are known without them, and why."""
    from pufferfish.data.public_counts import read_habits  # here: it loads what reads tables

    try:
        habits = read_habits(source, state, APART, clock=clock, **reading)
    except (ParameterError, DataError) as error:
        why = str(error)
    else:
        step = habits.sequences.base.step or habits.sequences.usual_step
        if clock != "hour":
            return habits, f"the table was read with the clock of Θ, {clock}"
        if step is None or parse_duration(step, "step").value % _DAY:
            return habits, None
        why = f"records are {step} apart, always at the same hour; fit --clock weekday would tell weekdays apart"
    return read_habits(source, state, APART, **reading), why


_DAY = parse_duration("1d", "a day").value


def _fit_command(source: Any, state: str, reading: Mapping[str, Any]) -> str:
    """Return the command that fits one chain to the same table, as it can be copied."""
    from pufferfish.data.source import paths_of  # here: it loads what reads tables

    words = ["pufferfish", "fit", *paths_of(source), "--state", state]
    for name, value in reading.items():
        if name != "states" and value is not None and (name, value) not in _USUAL:
            edges = ",".join(f"{edge:g}" for edge in value) if name == "bins" and not isinstance(value, str) else value
            words += [f"--{name.replace('_', '-')}", str(edges)]
    return shlex.join(words)


_USUAL = (("missing", "unobserved"), ("gaps", "unobserved"))


def _one_step(sequences: Sequences) -> dict[str, str]:
    """Return the ``max_gap`` that a model is fitted with, where another one skips steps."""
    step = sequences.base.step or sequences.usual_step
    return {"max_gap": step} if step is not None and skips_steps(sequences.base, step) else {}


# -- What is asked ---------------------------------------------------------------------------------------------------


class _Asked:
    """What left-out days say of a class, and what its noise leaks."""

    def __init__(self, theta: Theta, habits: "Habits", epsilon: float, no_hours: str | None) -> None:
        self._theta, self._epsilon, self._no_hours = theta, epsilon, no_hours
        self._sequences = habits.sequences
        self.noise = NoiseFor(theta, self._sequences.length, Histogram(), epsilon)
        self.curve, self._no_curve = _curve(habits)
        self._left_out = left_out = LeftOut(self._sequences)
        self._laws = Members(self._sequences, kinds=left_out.kinds, weights=left_out.weights)
        self._people: list[int] = np.flatnonzero(self._laws.transitions.sum(axis=(1, 2))).tolist()
        models = list(enumerate(_members_of(theta)))
        self._scored = [i for i, model in models if left_out.is_scored(model)]
        self._silent = [i for i, model in models if i not in self._scored]
        self._best, self._member = np.zeros(left_out.blocks), np.zeros(len(self._laws.daily.subjects), dtype=np.int64)
        if self._scored and left_out.blocks > 1:
            self._best, self._member = left_out.best_of([models[i][1] for i in self._scored])
        self._own: list[tuple[Law, float]] = []
        self._differ = False

    def not_asked(self) -> tuple[str, ...]:
        """Return what could not be asked, a line each."""
        members = _members_of(self._theta)
        kinds = dict.fromkeys(members[i].kind for i in self._silent)
        lines = [
            f"{kind} in Θ say no likelihoods of these days: a fitted model counts as one of them if the noise leaks at "
            "most ε under it"
            for kind in kinds
        ]
        return (*lines, *([] if self._no_hours is None else [f"hours of the day: {self._no_hours}"]))

    # -- Everybody -------------------------------------------------------------------------------------------------

    def subjects(self) -> tuple[SubjectCheck, ...]:
        """Return whether everybody lives by the class."""
        several, laws = len(self._people) > 1, list[Law]()
        gains = self._left_out.gain_of_each("own", self._best) if several else []
        self._differ = any(gain.demanded for gain in gains)
        if several and self.noise.multiplier is not None:
            with suppress(ModelError, NotApplicableError):  # which is told where all of them are asked for
                laws = self._laws.of("own", self._people, noises=False)
        for i, law in enumerate(laws):
            with part_of(law.name, i, len(laws)):
                self._own.append((law, self.noise.leakage(law.model)))
        leakage = {law.who: leaks for law, leaks in self._own}
        return tuple(
            SubjectCheck(
                subject=self._laws.daily.subjects[who],
                transitions=int(self._laws.transitions[who].sum()),
                member=self._scored[self._member[who]] if self._scored else None,
                nats=gains[who].nats if several else None,
                error=gains[who].error if several else None,
                differs=several and gains[who].demanded,
                leakage=leakage.get(who),
            )
            for who in self._people
        )

    def coverage(self, subjects: Sequence[SubjectCheck]) -> str:
        """Return of how many people the noise covers the own chains, and what that rests on."""
        names, covered = self._laws.daily.subjects, {s.subject for s in subjects if not leaks_more(s, self._epsilon)}
        people = [who for who in self._laws.people if self._own]
        if not people and len(self._people) > 1:
            return ""
        within = sum(names[who] in covered for who in people)
        of_stays = sum(isinstance(model, StaysChain) for model in _members_of(self._theta)) > 1
        return share_covered(len(people), within, of_stays=of_stays, unseen=self._laws.unseen).sentence

    # -- Richer models -------------------------------------------------------------------------------------------

    def richer(self) -> tuple[RicherModel, ...]:
        """Return richer models, whether days demand them, and what the noise leaks under each."""
        asked = list(self._kinds())
        models: list[RicherModel] = []
        for i, kind in enumerate(asked):
            with part_of(KNOWS[kind], i, len(asked)):
                models.append(self._of_kind(kind))
        return tuple(models)

    def _kinds(self) -> Iterator[str]:
        several = len(self._people) > 1
        yield "pooled"
        if several:
            yield "own"
        for kind in ("hour", "order2", "stays"):
            yield kind
            if several and kind != "hour" and self._why_not(kind) is None:
                if self._left_out.gain(kind, "pooled").demanded:
                    yield f"own {kind}"
        yield "forgets"

    def _why_not(self, kind: str) -> str | None:
        return self._no_hours if kind == "hour" and self._no_hours is not None else self._laws.why_not(kind)

    def _of_kind(self, kind: str) -> RicherModel:
        if kind == "forgets":
            return self.noise.under(RicherModel(kind=kind), self._forgetting)
        if (reason := self._why_not(kind)) is not None:
            return RicherModel(kind=kind, reason=reason)
        gain = self._left_out.gain_over(kind, self._best)
        if kind.startswith("own "):  # which is theirs only as far as neither own chains nor what all share tells it
            gain = min(gain, self._left_out.gain(kind, "own", kind[4:]), key=lambda gained: gained.nats)
        alone = kind == "pooled" and not self._scored  # with which the others are compared
        asked = RicherModel(kind=kind, nats=None if alone else gain.nats, error=None if alone else gain.error)
        laws = list[Law]()

        def fitted() -> ChainClass:
            laws.extend(
                [law for law, _ in self._own] if kind == "own" else self._laws.of(kind, self._people, noises=False)
            )
            return ChainClass(tuple(law.model for law in laws), names=tuple(law.name for law in laws))

        told = self.noise.under(asked, fitted)
        if not leaks_more(told, self._epsilon):
            return told
        matters = told.demanded or alone or (kind == "own" and self._differ)
        if self._silent and matters and told.noise_multiplier is not None:
            worst = next((law for law in laws if law.name == told.decided_by), laws[0])
            between = drawn_again(worst, self._laws.daily)
            low = 0.0 if between is None else between[0] / worst.noise
            told = msgspec.structs.replace(told, least=told.noise_multiplier * low)
        if kind == "own" and not told.demanded:
            chance = largest_by_chance(self._laws.transitions[self._people])
            told = msgspec.structs.replace(told, by_chance=float(chance[-1]))
        return told

    def _forgetting(self) -> ForgettingClass:
        kept = [estimate for estimate in self.curve if estimate.overlap > 0]
        if not kept:
            raise ModelError(self._no_curve or "two states do not overlap at any time that was tried")
        steps, shares = [estimate.steps for estimate in kept], [estimate.overlap for estimate in kept]
        return ForgettingClass(steps, shares, self._sequences.states)


def _curve(habits: "Habits") -> tuple[list[OverlapEstimate], str | None]:
    """Return how much is forgotten, for as many steps as there are pairs of every state; and why for none."""
    curve: list[OverlapEstimate] = []
    for pairs in habits.pairs:
        try:
            curve.append(overlap_of(pairs, habits.sequences.states, SMOOTHING))
        except ModelError as error:  # too few records so far apart, or a state that no record has
            return curve, None if curve else str(error)
    return curve, None


# -- Pictures of the class -------------------------------------------------------------------------------------------


def _stationary(theta: Theta) -> Values | None:
    """Return the stationary law of every member, if all are Markov chains that start with it."""
    starts = [chain.initial_distribution for chain in theta.chains]
    if not starts or not all(isinstance(start, str) and start == "stationary" for start in starts):
        return None
    return np.array([chain.stationary_distribution for chain in theta.chains])


def _stays(sequences: Sequences, theta: Theta) -> tuple[StateStays, ...]:
    """Return how long every state lasts, in the data and under members of Θ; clocks and memory by their mean."""
    stays: list[StateStays] = []
    members = [member for member in _members_of(theta) if not isinstance(member, Continuum)]
    runs = daily_of(sequences).runs
    for x, name in enumerate(sequences.states):
        lengths = [lasting(_kinds_of_stay(member, x)) for member in members]
        least, most = (min(lengths), max(lengths)) if lengths else (None, None)
        found = observed(*runs.stays(runs.state == x))
        stays.append(StateStays(state=name, observed=found, least=least, most=most))
    return tuple(stays)


def _kinds_of_stay(member: Any, x: int) -> Sequence[tuple[float, float]]:
    return member.stays[x] if isinstance(member, StaysChain) else [(1.0, float(member.mean_matrices[0][x, x]))]
