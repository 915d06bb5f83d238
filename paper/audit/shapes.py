"""What is audited beside one query with one scale: strategies, steps, groups, clocks, classes, several releases.

Each case says what is measured on every database of a small model, with which noise; the loss is then computed from the
definition, as in :mod:`paper.audit.losses`. The controls at the end are broken on purpose, each in one of these.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.audit.laws import examples_of, kinds_of_chains, some_laws
from paper.audit.losses import Array, Databases, databases_of, paths
from pufferfish._core.numbers.rounding import bracket
from pufferfish.errors import NotApplicableError
from pufferfish.ledger import Ledger
from pufferfish.mechanisms import BOUNDS, EntryDP, InfluenceBound, LeakagePropagation
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import CDF, Count, Histogram, LinearQuery, Quantiles, Query, StepQuery, Switches, Transitions
from pufferfish.theta.chain_class import Continuum
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.tuple_chains import HigherOrderChain

__all__ = ["BROKEN", "Shape", "shapes"]

Whole = NDArray[np.int64]

_STATES = ["no", "yes"]
_SLOW = MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=_STATES)
_EVEN = MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=_STATES)
_THREE = MarkovChain([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.05, 0.15, 0.8]], states=["a", "b", "c"])


@dataclass(frozen=True, slots=True)
class Shape:
    """What is measured, and with which noise.

    Parameters
    ----------
    mechanism, model, query : str
        What was audited.
    records : int
        Records of the chain.
    loss : float
        The true loss, or what it is at least.
    exact : bool
        Whether it is exact.
    """

    mechanism: str
    model: str
    query: str
    records: int
    loss: float
    exact: bool = True


def shapes(epsilon: float) -> Iterator[Shape]:
    """Yield the true losses of noise of every shape that is calibrated to an ε."""
    yield from _strategies(epsilon)
    yield from _steps(epsilon)
    yield from _groups(epsilon)
    yield from _models(epsilon)
    yield from _several(epsilon)
    yield from _responses(epsilon)


def _strategies(epsilon: float) -> Iterator[Shape]:
    every = databases_of(_THREE, 6)
    for query in (Histogram(relative=False), CDF(), Quantiles([0.5])):
        for bound in _bounds(_THREE, 6):
            noise = bound.calibrate(query, epsilon, noise="best")
            loss = _loss([every], _measured, noise)
            yield Shape(bound.title, "three states, slow", f"{query.kind}, best noise", 6, loss)


def _steps(epsilon: float) -> Iterator[Shape]:
    asked: tuple[tuple[MarkovChain, int, Query], ...] = ((_SLOW, 6, Transitions()), (_THREE, 6, Switches()))
    for chain, length, query in asked:
        every = databases_of(chain, length)
        for bound in _bounds(chain, length):
            noise = bound.calibrate(query, epsilon)
            name = "two states, slow" if chain is _SLOW else "three states, slow"
            yield Shape(bound.title, name, query.kind, length, _loss([every], _measured, noise))


def _groups(epsilon: float) -> Iterator[Shape]:
    """Every record is in one of two public groups, and each group has a histogram of its own."""
    every, length = databases_of(_SLOW, 6), 6
    for bound in _bounds(_SLOW, length):
        noise = bound.calibrate(Histogram(relative=False), epsilon)

        def by_group(data: Databases, noise: Calibration) -> tuple[Whole, Array]:
            parts = [_counted(noise.linear, data.rows[:, first::2]) for first in (0, 1)]
            return np.concatenate(parts, axis=1), np.full(4, noise.unit_scale)

        yield Shape(bound.title, "two states, slow", "histogram-counts by group", 6, _loss([every], by_group, noise))


def _models(epsilon: float) -> Iterator[Shape]:
    """Ask every kind of class of chains, by its examples."""
    for kind in kinds_of_chains().values():
        for name, theta in examples_of(kind).items():
            length = 6 if theta.k == 2 else 4
            every = _enumerated(theta, length)
            exact = bool(theta.members) and not any(_anyhow(member) for member in theta.members)
            for query in (Count(theta.states[1]), Histogram(relative=False)):
                for bound in _bounds(theta, length):
                    noise = bound.calibrate(query, epsilon)
                    yield Shape(bound.title, name, query.kind, length, _loss(every, _measured, noise), exact)


def _anyhow(chain: Any) -> bool:
    """Whether it is more than the laws that are tried of it."""
    if isinstance(chain, Continuum):
        return True
    start = chain.initial_distribution
    return isinstance(start, str) and start == "any"


def _several(epsilon: float) -> Iterator[Shape]:
    """Three releases that one ledger allows; what they leak together."""
    for bound in _bounds(_SLOW, 6):
        ledger, taken = Ledger(bound, budget=epsilon), list[Calibration]()
        for query, share in ((Count("yes"), 0.4), (Histogram(relative=False), 0.7), (Switches(), 1.0)):
            taken.append(ledger.calibrate(query, up_to=share * epsilon))
            ledger.spend(taken[-1])
        loss = _loss([databases_of(_SLOW, 6)], _together, taken)
        yield Shape(bound.title, "two states, slow", "three releases of one ledger", 6, loss)


def _responses(epsilon: float) -> Iterator[Shape]:
    """Tell every record truly, or not: a differentially private algorithm that is none of ours."""
    data = databases_of(_SLOW, 6)
    changed = (data.rows[:, None, :] != data.rows[None, :, :]).sum(axis=2)
    for bound in _bounds(_SLOW, 6):
        kernel = np.exp(-bound.record_epsilon(epsilon) * changed)  # output by database, but for a common factor
        worst = 0.0
        for record in range(6):
            laws = [np.where(data.rows[:, record] == x, data.weights, 0) for x in (0, 1)]
            logs = np.log([kernel @ (law / law.sum()) for law in laws])
            worst = max(worst, float(np.abs(logs[0] - logs[1]).max()))
        yield Shape(bound.title, "two states, slow", "each record by randomised response", 6, worst)


def _bounds(theta: Any, length: int) -> Iterator[InfluenceBound]:
    for kind in BOUNDS:
        try:
            yield kind.of(theta, length)
        except NotApplicableError:
            continue


def _enumerated(theta: Any, length: int) -> list[Databases]:
    """Return the databases of some laws of a class, or of a chain."""
    return [paths(first, steps) for first, steps in some_laws(theta, length)]


def _loss(every: Sequence[Databases], measured: Callable[..., tuple[Whole, Array]], noise: Any) -> float:
    return max(data.worst(*measured(data, noise))[0] for data in every)


def _measured(data: Databases, noise: Calibration) -> tuple[Whole, Array]:
    """Return what gets noise, for every database, and the scales, in units."""
    linear, strategy = noise.linear, noise.strategy
    if strategy is None:
        answers = _counted(linear, data.rows)
        scales = np.asarray([noise.unit_scale] * answers.shape[1], dtype=np.float64)
        return answers, scales
    assert isinstance(linear, LinearQuery)
    return _counted(strategy.counted(linear), data.rows), strategy.scales(noise.unit_scale)


def _together(data: Databases, taken: Sequence[Calibration]) -> tuple[Whole, Array]:
    answers, scales = zip(*(_measured(data, noise) for noise in taken), strict=True)
    return np.concatenate(answers, axis=1, dtype=np.int64), np.concatenate(scales, dtype=np.float64)


def _counted(query: Any, rows: Whole) -> Whole:
    """Return a query's outputs on databases, in units, from its definition."""
    if isinstance(query, StepQuery):
        steps = query.outputs[rows[:, :-1], rows[:, 1:]]
        return np.stack([(steps == j).sum(axis=1) for j in range(int(query.outputs.max()) + 1)], axis=1)
    return np.asarray(query.weights[:, rows].sum(axis=2).T, dtype=np.int64)


def _without_one_measurement(epsilon: float) -> float:
    bound, query = LeakagePropagation(_THREE, 6), Histogram(relative=False)
    noise = bound.calibrate(query, epsilon, noise="best")
    assert noise.strategy is not None
    rows = (noise.strategy.sharpness[:, None] * noise.strategy.rows)[:-1]
    distance = np.abs(rows[:, :, None] - rows[:, None, :]).sum(axis=0)
    start = noise.unit_scale
    less = bracket(lambda b: bound.leakage(distance / b), epsilon, start, tolerance=1e-3, from_above=False).enough
    counts, scales = _measured(data := databases_of(_THREE, 6), noise)
    return data.worst(counts, scales * less / noise.unit_scale)[0]


def _steps_taken_for_records(epsilon: float) -> float:
    noise = LeakagePropagation(_SLOW, 6).calibrate(Count("yes"), epsilon)
    linear = Transitions().bind(_SLOW.states, 6)
    data = databases_of(_SLOW, 6)
    return data.worst(_counted(linear, data.rows), noise.unit_scale)[0]


def _largest_of_several(epsilon: float) -> float:
    noise = LeakagePropagation(_SLOW, 6).calibrate(Count("yes"), epsilon)
    return _loss([databases_of(_SLOW, 6)], _together, [noise, noise])


def _mean_of_a_clock(epsilon: float) -> float:
    clock = next(iter(examples_of(PeriodicChain).values()))
    mean = MarkovChain(clock.matrices.mean(axis=0), [0.5, 0.5])
    return _loss(_enumerated(clock, 5), _measured, LeakagePropagation(mean, 5).calibrate(Count("1"), epsilon))


def _memory_forgotten(epsilon: float) -> float:
    noise = EntryDP(_EVEN, 6).calibrate(Count("yes"), epsilon)  # of one step all that is seen is a fair coin
    back = next(iter(examples_of(HigherOrderChain).values()))
    return _loss(_enumerated(back, 6), _measured, noise)


def _groups_released_twice(epsilon: float) -> float:
    """Put every record into two groups, though the noise is for one histogram."""
    noise, data = LeakagePropagation(_SLOW, 6).calibrate(Histogram(relative=False), epsilon), databases_of(_SLOW, 6)
    counts = _counted(noise.linear, data.rows)
    return data.worst(np.concatenate([counts, counts], axis=1), noise.unit_scale)[0]


BROKEN: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("a strategy's loss without one of its measurements", _without_one_measurement),
    ("numbers of steps with the noise of a number of records", _steps_taken_for_records),
    ("a ledger that takes the largest loss for the sum", _largest_of_several),
    ("a clock taken for its mean", _mean_of_a_clock),
    ("memory of two records taken for one", _memory_forgotten),
    ("groups that share records, each with the noise of one", _groups_released_twice),
)
"""Broken on purpose: what is wrong, and the true loss of noise made for an ε."""
