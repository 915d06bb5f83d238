"""The members of a class that can be defended: how each kind is fitted to days, and the noise that it needs.

Rows are given one transition of the pool's, a person's those of all others, and stays ten of the pool's: more would
pull in the person who differs most, and decides.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import part_of, report_progress
from pufferfish._core.chains.markov import completed, smoothed
from pufferfish.data.groups import Daily, Steps
from pufferfish.data.sequences import Sequences
from pufferfish.fit.chain import SMOOTHING
from pufferfish.fit.left_out import MOST_FOLLOWED, MOST_KINDS, POOLED_STAYS, daily_of, most_kinds
from pufferfish.fit.mixture import Mixture
from pufferfish.fit.stays import chain_of_stays, own_mixtures, pooled_mixtures
from pufferfish.fit.subjects import own_matrices, own_matrix
from pufferfish.mechanisms import LeakagePropagation
from pufferfish.queries import Histogram
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.tuple_chains import HigherOrderChain, StaysChain

Array = NDArray[np.float64]

PEOPLE = 2000  # transitions from which on a subject is counted
_LONG = 10**6  # records of the series that noise is compared for

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


def noise_of(model: Any) -> float:
    """Return the noise that a class needs for a histogram at ε = 1, in a long series."""
    return LeakagePropagation(model, _LONG).noise_to_compare(Histogram(relative=False), 1.0)


def leakage_of(model: Any, noise: float) -> float:
    """Return what so much noise for a histogram leaks under a class, in a long series."""
    return LeakagePropagation(model, _LONG).leakage(1 / noise)


@dataclass(frozen=True, eq=False)
class Law:
    """A member: what it is called, whose it is, and how it is fitted to weighed days."""

    kind: str
    name: str
    who: int | None
    fit: Callable[[Daily], Any]
    model: Any

    @cached_property
    def noise(self) -> float:
        """The noise that it needs."""
        return noise_of(self.model)

    def needs_more_than(self, noise: float) -> bool:
        """Whether so much noise does not cover it; where its own is not known, one leakage tells."""
        return self.noise > noise if "noise" in vars(self) else leakage_of(self.model, noise) > 1

    def slower(self, times: float) -> "Law":
        """Return the same with stays so many times as long."""
        name = f"{self.name}, stays {times:.3g} times as long"
        return Law(self.kind, name, self.who, lambda daily: self.fit(daily).slower(times), self.model.slower(times))


def worst_of(laws: Sequence[Law]) -> Law:
    """Return the member that needs most noise; of those whose noise is not known only what exceeds it is calibrated."""
    worst = laws[0]
    for law in laws[1:]:
        if law.needs_more_than(worst.noise):
            worst = law
    return worst


class Members:
    """How every kind of member is fitted to days, with ``kinds`` of stay; rows get ``weights`` of the pooled chain."""

    def __init__(
        self, sequences: Sequences, *, kinds: int = MOST_KINDS, weights: Mapping[str, float] | None = None
    ) -> None:
        self._sequences, self._kinds, self._weights = sequences, kinds, weights or {}
        self._states, self._k = sequences.states, len(sequences.states)
        self.daily = daily_of(sequences)
        self._clock_step = sequences.base.step or sequences.usual_step

    def why_not(self, kind: str) -> str | None:
        """Return why a kind cannot be tried."""
        if kind == "hour" and self._sequences.clock != "hour":
            return "the table was read without hours of the day"
        if kind.endswith("order2") and self._k**2 > MOST_FOLLOWED:
            return f"{self._k} states have {self._k**2:,} pairs, and at most {MOST_FOLLOWED} values are followed"
        if kind.endswith("stays") and most_kinds(self._k) < 2:
            return f"two kinds of stay in each of {self._k} states are more than the {MOST_FOLLOWED} that are followed"
        return None

    def of(self, kind: str, persons: Sequence[int], *, noises: bool = True) -> list[Law]:
        """Return the members of a kind: one of all, or one for each person, and with it the noise that it needs."""
        fit = getattr(self, f"_{kind.replace(' ', '_')}")
        if not kind.startswith("own"):
            return [Law(kind, CALLED[kind], None, partial(fit, None), fit(None, self.daily))]
        laws = list[Law]()
        for i, who in enumerate(persons):
            subject = self.daily.subjects[who]
            with part_of(f"{CALLED[kind]}, {subject}", i, len(persons)):
                report_progress("fitting", 0.0)
                name = f"{CALLED[kind].removeprefix('everybody')[3:]} of {subject}"
                laws.append(Law(kind, name, who, partial(fit, who), fit(who, self.daily)))
                _ = noises and laws[-1].noise  # which takes longer than the fit
        return laws

    def _pooled(self, who: int | None, daily: Daily) -> MarkovChain:
        return MarkovChain(smoothed(_transitions(daily.steps, self._k), SMOOTHING), states=self._states)

    def _own(self, who: int, daily: Daily) -> MarkovChain:
        mine = _transitions(daily.steps.chosen(daily.steps.subject == who), self._k)
        return MarkovChain(own_matrix(mine, self._others(who)), states=self._states)

    def _others(self, who: int) -> NDArray[np.int64]:
        """Return the transitions of all others; of all days, whatever was weighed."""
        return self.transitions.sum(axis=0) - self.transitions[who]

    @cached_property
    def transitions(self) -> NDArray[np.int64]:
        """Everybody's transitions; shape (subjects, k, k)."""
        steps, k = self.daily.steps, self._k
        return _counted((len(self.daily.subjects), k, k), (steps.subject, steps.before, steps.state), steps)

    @property
    def people(self) -> list[int]:
        """Subjects with enough transitions: nobody else is a member, or counted."""
        return np.flatnonzero(self.transitions.sum(axis=(1, 2)) >= PEOPLE).tolist()

    @property
    def unseen(self) -> int:
        """How many of the people were never seen to leave some state."""
        return int(np.any(self.transitions[self.people].sum(axis=2) == 0, axis=1).sum())

    def _hour(self, who: int | None, daily: Daily) -> PeriodicChain:
        steps = daily.steps
        counts = _counted((24, self._k, self._k), (steps.phase, steps.before, steps.state), steps)
        simpler = smoothed(_transitions(steps, self._k), SMOOTHING)
        matrices = completed(counts, self._weights.get("hour", SMOOTHING), simpler)
        return PeriodicChain(matrices, clock="hour", step=self._clock_step, states=self._states)

    def _order2(self, who: int | None, daily: Daily) -> HigherOrderChain:
        simpler = smoothed(_transitions(daily.steps, self._k), SMOOTHING)
        return self._memory(daily.steps, self._weights.get("order2", SMOOTHING), simpler)

    def _own_order2(self, who: int, daily: Daily) -> HigherOrderChain:
        mine = daily.steps.chosen(daily.steps.subject == who)
        return self._memory(mine, SMOOTHING, own_matrix(_transitions(mine, self._k), self._others(who)))

    def _memory(self, steps: Steps, weight: float, simpler: Array) -> HigherOrderChain:
        known = steps.chosen(steps.earlier >= 0)
        counts = _counted((self._k,) * 3, (known.earlier, known.before, known.state), known)
        return HigherOrderChain(completed(counts, weight, simpler), states=self._states)

    def _stays(self, who: int | None, daily: Daily) -> StaysChain:
        days_again = daily is not self.daily  # drawn again, they are nearly the same
        mixtures = pooled_mixtures(daily.runs, self._k, self._kinds, self._pool) if days_again else self._pool
        return chain_of_stays(daily.runs.transitions(self._k), mixtures, self._states)

    def _own_stays(self, who: int, daily: Daily) -> StaysChain:
        mine = daily.runs.chosen(daily.runs.subject == who)
        mixtures = own_mixtures(mine, self._pool, POOLED_STAYS)
        return chain_of_stays(mine.transitions(self._k), mixtures, self._states, self._others(who))

    @cached_property
    def _pool(self) -> list[Mixture]:
        """Kinds of stay of all subjects, which own ones are completed by, and start from."""
        return pooled_mixtures(self.daily.runs, self._k, self._kinds)


def _transitions(steps: Steps, k: int) -> NDArray[np.int64]:
    return _counted((k, k), (steps.before, steps.state), steps)


def _counted(shape: tuple[int, ...], places: tuple[NDArray[np.int64], ...], steps: Steps) -> NDArray[np.int64]:
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, places, steps.number)
    return counts


# -- What chance alone gives -----------------------------------------------------------------------------------------
#
# Of many estimates the largest is too large, so the largest noise of everybody's own chain says little by itself. The
# one chain of all is simulated for every person, as long as each was observed, and everybody's own chain is fitted to
# that: what people's own chains need beyond it is theirs, and not chance.

_PIECE = 1000  # transitions that are simulated one after the other; more of a person are further pieces, side by side


def largest_by_chance(transitions: NDArray[np.int64], *, draws: int = 20, seed: int = 0) -> NDArray[np.float64]:
    """Return the largest noise that own chains of people need who all live by the chain of all, sorted by size.

    ``transitions`` are everybody's, of shape (people, k, k); all of them are simulated ``draws`` times.

    >>> import numpy as np
    >>> ten_alike = np.tile([[160, 40], [40, 160]], (10, 1, 1))
    >>> largest = largest_by_chance(ten_alike)
    >>> len(largest), bool(largest[0] > largest_by_chance(ten_alike[:1], draws=1)[0])
    (20, True)
    """
    rng, largest = np.random.default_rng(seed), list[float]()
    lengths = transitions.sum(axis=(1, 2))
    pooled = MarkovChain(smoothed(transitions.sum(axis=0), SMOOTHING))
    for draw in range(draws):
        with part_of("own chains by chance", draw, draws):
            counts = simulated(np.broadcast_to(pooled.transition_matrix, transitions.shape), lengths, rng)
            largest.append(noise_of(ChainClass(tuple(map(MarkovChain, own_matrices(counts))))))
    return np.sort(largest)


def simulated(matrices: NDArray[np.float64], lengths: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return transitions of people with these matrices, so many of each, in pieces that begin with stationary laws."""
    k, pieces = matrices.shape[1], -(-lengths // _PIECE)
    who = np.repeat(np.arange(len(lengths)), pieces)
    left = np.concatenate([n - _PIECE * np.arange(m) for n, m in zip(lengths, pieces, strict=True)])
    starts = np.array([MarkovChain(matrix).stationary_distribution for matrix in matrices])
    path = walked(matrices[who], starts[who], min(_PIECE, int(lengths.max(initial=0))), rng)
    counts = np.zeros((len(lengths), k, k), dtype=np.int64)
    for step, (at, following) in enumerate(pairwise(path)):
        np.add.at(counts, (who, at, following), left > step)
    return counts


def walked(
    matrices: NDArray[np.float64], starts: NDArray[np.float64], steps: int, rng: np.random.Generator
) -> Iterator[NDArray[np.intp]]:
    """Yield the states of several chains, side by side, at first and after each of so many steps."""
    laws, every = matrices.cumsum(axis=2), np.arange(len(matrices))
    at = _drawn(starts.cumsum(axis=1), rng)
    yield at
    for _ in range(steps):
        at = _drawn(laws[every, at], rng)
        yield at


def _drawn(cumulative: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return one state for each law, given its cumulative sums."""
    return (rng.random(len(cumulative))[:, None] >= cumulative[:, :-1]).sum(axis=1)
