"""What is audited: mechanisms on small models, and broken ones that an audit has to catch."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from paper.audit.laws import some_laws
from paper.audit.losses import Databases, databases_of, paths, sampled_loss
from paper.audit.shapes import BROKEN, shapes
from pufferfish._core.propagation.lower_bound import TiltedChain
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms import MECHANISMS, EntryDP, GroupDP, InfluenceBound, LeakagePropagation, Mechanism
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import Count, Histogram, LinearQuery, Query, Sum, Transitions
from pufferfish.release import release
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.continua import BinaryChainInterval
from pufferfish.theta.markov_chain import MarkovChain

__all__ = ["CONTROLS", "Audited", "Control", "audited", "audited_shapes", "controls_caught"]

_SHORT, _LONG = 8, 200
STICKY = MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=["no", "yes"])
WEAK = MarkovChain([[0.6, 0.4], [0.45, 0.55]], states=["no", "yes"])
THREE = MarkovChain([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.2, 0.4, 0.4]], states=["a", "b", "c"])
SAME = MarkovChain([[0.7, 0.3], [0.7, 0.3]], states=["no", "yes"])
STUCK = MarkovChain([[0.999, 0.001], [0.001, 0.999]], states=["no", "yes"])
_GIVEN = [[0.97, 0.03], [0.05, 0.95]]
STAR = BayesianNetwork(
    {"a": CPT(["no", "yes"], [0.5, 0.5]), **{v: CPT(["no", "yes"], _GIVEN, ["a"]) for v in ("b", "c", "d")}}
)
_BOTH = [[[0.95, 0.05], [0.3, 0.7]], [[0.4, 0.6], [0.02, 0.98]]]
PAIR = BayesianNetwork(
    {v: CPT(["no", "yes"], [0.7, 0.3]) for v in ("a", "b")}
    | {v: CPT(["no", "yes"], _BOTH, ["a", "b"]) for v in ("c", "d")}
)
MODELS: dict[str, Any] = {
    "two states, slow": STICKY,
    "two states, fast": WEAK,
    "three states": THREE,
    "independent records": SAME,
    "stays within [0.4, 0.7]": BinaryChainInterval(0.4, 0.7, states=("no", "yes")),
    "a network, one node and three children": STAR,
    "a network, two parents and two children": PAIR,
}


@dataclass(frozen=True, slots=True)
class Audited:
    """One line of the table: what is promised, and what really leaks.

    Parameters
    ----------
    mechanism, model, query : str
        What was audited.
    records : int
        Records of the chain, or of one row.
    promised, loss : float
        ε, and the true loss.
    exact : bool
        Whether the loss is exact; else it is at least so much.
    """

    mechanism: str
    model: str
    query: str
    records: int
    promised: float
    loss: float
    exact: bool

    @property
    def holds(self) -> bool:
        """Whether no more leaks than is promised, but for rounding."""
        return self.loss <= self.promised * (1 + 1e-9)


def audited(epsilons: tuple[float, ...] = (0.5, 2.0), models: Collection[str] = tuple(MODELS)) -> Iterator[Audited]:
    """Yield a line for every mechanism, query and ε that go together, of some models or all."""
    for name, theta in ((name, MODELS[name]) for name in models):
        states = theta.states
        queries: list[Query] = [Count(states[1]), Histogram(relative=False), Sum(list(range(len(states))))]
        for length in (None,) if isinstance(theta, BayesianNetwork) else (_SHORT, _LONG):
            every: list[Databases] = [] if length == _LONG else _enumerated(theta, length)
            for query in queries:
                for kind in MECHANISMS:
                    if length == _LONG and not kind.composes:
                        continue  # their laws are what the exact loss is made of: short chains show as much
                    yield from _lines(kind, name, theta, length, query, every, epsilons)


def audited_shapes(epsilons: tuple[float, ...] = (1.0,)) -> Iterator[Audited]:
    """Yield a line for noise of every shape: strategies, steps, groups, clocks, classes, ledgers, measurements."""
    for epsilon in epsilons:
        for found in shapes(epsilon):
            loss, exact = found.loss, found.exact
            yield Audited(found.mechanism, found.model, found.query, found.records, epsilon, loss, exact)


def _lines(
    kind: type[Mechanism],
    name: str,
    theta: Any,
    length: int | None,
    query: Query,
    every: list[Databases],
    epsilons: tuple[float, ...],
) -> Iterator[Audited]:
    for epsilon in epsilons:
        try:
            noise = kind.of(theta, length).calibrate(query, epsilon)
        except NotApplicableError:
            return
        records = 4 if length is None else length
        loss = _true_loss(noise, every) if every else _least_loss(noise, theta, records)
        exact = bool(every) and not isinstance(theta, BinaryChainInterval)
        yield Audited(noise.title, name, query.kind, records, epsilon, loss, exact)


def _enumerated(theta: Any, length: int | None) -> list[Databases]:
    """Return the rows of a network, or the databases of chains, under some of the laws that a class allows."""
    if length is None:
        return [databases_of(theta)]
    return [paths(first, steps) for first, steps in some_laws(theta, length)]


def _true_loss(noise: Calibration, every: list[Databases]) -> float:
    assert isinstance(noise.linear, LinearQuery)
    return max(data.worst(data.answers(noise.linear), noise.unit_scale)[0] for data in every)


def _least_loss(noise: Calibration, theta: Any, records: int) -> float:
    """Return what sign tilts prove that the noise leaks at least."""
    linear = noise.linear
    assert isinstance(linear, LinearQuery)
    found = 0.0
    for first, steps in some_laws(theta, 2):
        tilted = TiltedChain(steps[0], first, linear.weights, records)
        found = max(found, float(tilted.losses(tilted.candidates(), noise.unit_scale).max()))
    return found


@dataclass(frozen=True, slots=True)
class Control:
    """A mechanism that is broken on purpose.

    Parameters
    ----------
    name : str
        What is wrong.
    model : MarkovChain or BayesianNetwork
        The truth.
    length : int or None
        Records of the chain.
    query : Query
        What is asked.
    unit_scale : callable
        Returns the noise that the broken mechanism takes, in units, at an ε.
    seeded : bool
        Whether its noise comes from a seed.
    """

    name: str
    model: Any
    length: int | None
    query: Query
    unit_scale: Callable[[float], float]
    seeded: bool = False


def _noise(kind: type[Mechanism], theta: Any, length: Any, query: Query) -> Callable[[float], float]:
    return lambda epsilon: kind.of(theta, length).calibrate(query, epsilon).unit_scale


def _halved(epsilon: float) -> float:
    return LeakagePropagation(STICKY, _SHORT).calibrate(Count("yes"), epsilon).unit_scale / 2


_HIST = Histogram(relative=False)
_TWO = BayesianNetwork({v: STAR.cpts[v] for v in ("a", "b")})

CONTROLS = (
    Control("half the scale", STICKY, _SHORT, Count("yes"), _halved),
    Control("group privacy without the factor 2 of a histogram", STUCK, 6, _HIST, lambda epsilon: 6 / epsilon),
    Control("an end record forgotten", STUCK, 3, Count("yes"), _noise(GroupDP, STUCK, 2, Count("yes"))),
    Control("entry privacy on a correlated chain", STICKY, 6, Count("yes"), _noise(EntryDP, SAME, 6, Count("yes"))),
    Control("a gap taken for independence", STUCK, 6, Count("yes"), _noise(GroupDP, STUCK, [3, 3], Count("yes"))),
    Control(
        "a class searched on a grid that misses the worst",
        MarkovChain([[0.95, 0.05], [0.05, 0.95]], states=["no", "yes"]),
        _SHORT,
        Count("yes"),
        _noise(
            LeakagePropagation,
            [MarkovChain([[p, 1 - p], [1 - p, p]], states=["no", "yes"]) for p in (0.6, 0.7, 0.8)],
            _SHORT,
            Count("yes"),
        ),
    ),
    Control(
        "clusters of a network forgotten", STAR, None, Count("yes"), _noise(LeakagePropagation, _TWO, 1, Count("yes"))
    ),
    Control(
        "noise from a seed",
        STICKY,
        _SHORT,
        Count("yes"),
        _noise(LeakagePropagation, STICKY, _SHORT, Count("yes")),
        seeded=True,
    ),
)
"""Broken on purpose: an audit that passes one of these is broken itself."""


def controls_caught(rng: Any, epsilon: float = 1.0) -> Iterator[tuple[str, float, str]]:
    """Yield what is wrong with each control, the loss that shows it, and how it was found."""
    for control in CONTROLS:
        data = databases_of(control.model, control.length)
        noise = GroupDP.of(control.model, control.length).calibrate(control.query, epsilon)
        noise = replace(noise, unit_scale=control.unit_scale(epsilon))
        assert isinstance(noise.linear, LinearQuery)
        loss, record = data.worst(data.answers(noise.linear), noise.unit_scale)
        if not control.seeded:
            yield control.name, loss, "exact"
            continue
        fixed = int(np.round(noise.unit_scale))  # every release draws the same
        secrets = data.secrets(record)

        def seeded(row: list[int], query: LinearQuery = noise.linear, added: int = fixed) -> float:
            return query.value(row)[0] + added

        found = sampled_loss(seeded, data, record, (secrets[0], secrets[1]), rng, trials=4000)
        yield control.name, found, "sampled"
    for name, loss_of in BROKEN:
        yield name, loss_of(epsilon), "exact"


def sampled_releases(rng: Any, epsilon: float = 1.0, trials: int = 1000) -> Iterator[tuple[str, float, float]]:
    """Yield what real releases show: a mechanism, its ε, and a loss that is exceeded with 99.9% confidence."""
    data, middle = databases_of(STICKY, _SHORT), _SHORT // 2
    some: tuple[tuple[type[InfluenceBound], Query, Literal["equal", "best"]], ...] = (
        (LeakagePropagation, Count("yes"), "equal"),
        (GroupDP, Count("yes"), "equal"),
        (LeakagePropagation, _HIST, "best"),
        (LeakagePropagation, Transitions(), "equal"),
    )
    for kind, query, shape in some:
        noise = kind.of(STICKY, _SHORT).calibrate(query, epsilon, noise=shape)

        def real(row: list[int], query: Query = query, noise: Calibration = noise) -> float:
            return release([STICKY.states[x] for x in row], query, noise).values[-1]

        words = f"{noise.title}, {query.kind}" + (", best noise" if shape == "best" else "")
        yield words, epsilon, sampled_loss(real, data, middle, (0, 1), rng, trials=trials)
