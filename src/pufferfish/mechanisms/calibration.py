"""Calibrated noise: how much a release needs, what it promises, and which secret decides it."""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import real_number, truth
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.view import Printed, View, frame_of_columns
from pufferfish._base.words import at_most
from pufferfish._core.numbers import laplace
from pufferfish._core.numbers.rounding import nearest
from pufferfish._core.propagation.lower_bound import (
    TiltedChain,
    TiltedNetwork,
    TiltedSteps,
    scale_too_small,
    telling_most,
)
from pufferfish.errors import ParameterError, QueryError
from pufferfish.mechanisms.protection import Protection, step_of
from pufferfish.mechanisms.witness import AnyWitness, Witness
from pufferfish.queries import BoundQuery, FunctionQuery, JointQuery, LinearQuery, Query, StepQuery
from pufferfish.queries.strategy import Strategy
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.model_class import Described, Theta, as_theta, lengths_of, rows_of
from pufferfish.theta.secrets import SecretPair
from pufferfish.theta.states import state_label

_MOST_TILTED = 8e6  # outputs times states squared (200 states of a histogram) up to which a lower bound is looked for
_MOST_CONTRIBUTED = 3e7  # outputs times the states of all nodes (1,800 of three states) up to which of networks
_MOST_TILTED_STEPS = 16**4  # the fourth power of the states up to which one is looked for of queries about steps


class Prover(ReadOnly, ABC):
    """What a calibration keeps of the mechanism that made it: what it was made for, and how it proves."""

    name: ClassVar[str]  # name on the command line and in records
    title: ClassVar[str]  # name in tables
    composes: ClassVar[bool] = True  # whether losses of several releases may be added before leakage is asked
    witnesses: ClassVar[tuple[type[Witness], ...]]  # kinds that its proofs have; readers refuse others

    theta: Theta
    """The class Θ. Read-only, as is what follows: a mechanism proves what it was made for."""

    model: Described | None  # the Model that Θ was given by, which knows the step of its tables; None without one
    length: tuple[ChainLength, ...]  # lengths of the independent chains
    rows: int  # independent rows of the table of a network, each with a record for every node; 1 for other models
    secrets: tuple[SecretPair, ...] | None = None  # pairs not to be told apart; None for any two values of any record

    protection: Protection | None = None
    """What is hidden: steps in a row, columns of a row, or near values only; None for one record and any values."""

    delta: float = 0.0  # probability with which the promise may fail: 0 but for (ε, δ) mechanisms

    def __init__(self, theta: Any, length: Any) -> None:
        self._lock = threading.RLock()  # what was computed is kept, and one thread at a time is answered
        made = as_theta(theta)
        model = theta if isinstance(theta, Described) else None
        self._keep(theta=made, model=model, length=lengths_of(made, length), rows=rows_of(made, length))

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):  # what it computes is its own
            super().__setattr__(name, value)
        object.__setattr__(self, name, value)

    @abstractmethod
    def verify(self, calibration: "Calibration") -> tuple[float, AnyWitness | None]:
        """Prove anew what a release with this noise leaks at most, in nats, and say where."""


@dataclass(frozen=True, kw_only=True)
class Calibration(Printed, ReadOnly):
    """Noise for one query under one class Θ; made by a mechanism's ``calibrate``, from public things only.

    Parameters
    ----------
    epsilon, unit_scale : float
        What was asked for; and the Laplace scale in units of the query (the scale of the integer noise).
    query, linear : Query, BoundQuery
        The query as given, and on the model's states.
    witness : Witness
        The secret that decides the noise.
    bound : Mechanism
        What proves that this noise is enough, and proves it again before a release.
    strategy : Strategy, optional
        With ``noise="best"``: which counts get noise, and how much less than ``unit_scale`` each.
    up_to : float, optional
        What a ledger may have spent after it, where the ledger calibrated it: asked again when it is charged.
    """

    epsilon: float
    unit_scale: float
    query: Query
    linear: BoundQuery = field(repr=False)
    witness: AnyWitness
    bound: Prover = field(repr=False)
    strategy: Strategy | None = field(default=None, repr=False)
    up_to: float | None = field(default=None, repr=False, compare=False)

    promised: ClassVar[Callable[["Calibration", str | None], list[Any]]]
    """What :meth:`promises` asks; set where all mechanisms are known."""

    shown: ClassVar[Callable[["Calibration"], View]]  # what notebooks show, set there too

    def __post_init__(self) -> None:
        for name in ("epsilon", "unit_scale"):
            value = real_number(getattr(self, name))
            if value is None or math.isnan(value):
                raise ParameterError(f"{name} is {getattr(self, name)!r}, expected a number")
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        noise = f"noise scale {self.scale:.6g}" + (" at most" if self.strategy is not None else "")
        return f"Calibration({self.query.kind}, {self.title}, ε = {at_most(self.epsilon)}, {noise})"

    def _view(self) -> View:
        return self.shown(self)

    def to_frame(self, alpha: float = 0.05, *, into: str = "polars") -> Any:
        """Return ``output``, the ``error`` as of :meth:`accuracies`, and the ``joint_error``, as a table."""
        columns = {
            "output": list(self.linear.labels),
            "error": self.accuracies(alpha).tolist(),
            "joint_error": self.accuracies(alpha, joint=True).tolist(),
        }
        return frame_of_columns(columns, {"output": str, "error": float, "joint_error": float}, into)

    @property
    def mechanism(self) -> str:
        """The mechanism's name on the command line and in records."""
        return self.bound.name

    @property
    def title(self) -> str:
        """The mechanism's name in tables."""
        return self.bound.title

    @property
    def composes(self) -> bool:
        """Whether record-level losses of several such releases may be added."""
        return self.bound.composes

    @property
    def delta(self) -> float:
        """Probability with which the promise may fail: 0 but for (ε, δ) mechanisms."""
        return self.bound.delta

    @property
    def theta(self) -> Theta:
        """The class Θ."""
        return self.bound.theta

    @property
    def length(self) -> tuple[ChainLength, ...]:
        """The chains the noise was calibrated for."""
        return self.bound.length

    def promises(self, step: str | None = None) -> list[Any]:
        """Return what this noise promises of every unit: a near value, a record, an hour, a day, a whole series.

        ``step`` is how long a step of a chain takes, such as ``"1min"``; by default what the model of Θ says. In the
        list of :class:`Promise` the smallest unit comes first, and last what holds without any model. It costs nothing.

        >>> import pufferfish as pf
        >>> model = pf.Model(theta=pf.MarkovChain([[0.97, 0.03], [0.06, 0.94]]), step="1min")
        >>> noise = pf.LeakagePropagation(model, length=1440).calibrate(pf.Histogram(), epsilon=1.0)
        >>> for promise in noise.promises():
        ...     print(f"{promise.epsilon:.3f}  {promise.unit}")
        1.000  one record
        1.180  5min (5 steps in a row)
        3.661  1h (60 steps in a row)
        64.949  the whole series of one subject
        0.045  one record, without any model
        """
        return self.promised(self, step or step_of(self.theta, self.bound.model))

    def prove_leakage(self) -> float:
        """Ask the bound what this noise leaks, in nats: at most ``epsilon``."""
        return self.bound.verify(self)[0]

    @property
    def measured(self) -> BoundQuery:
        """The query whose release with ``unit_scale`` has these record losses: its own, or a strategy's."""
        if self.strategy is None or not isinstance(self.linear, LinearQuery):
            return self.linear
        return self.strategy.measured(self.linear)

    @property
    def scale(self) -> float:
        """Laplace scale b of the noise on each output, the largest of :attr:`scales`; its deviation is √2·b."""
        return max(self.scales)

    @property
    def scales(self) -> tuple[float, ...]:
        """Laplace scale of the noise on each output, or on each measurement of a strategy."""
        unit = float(self.linear.unit)
        if self.strategy is None:
            return (self.unit_scale * unit,) * len(self.linear.labels)
        return tuple(float(b) * unit for b in self.strategy.scales(self.unit_scale))

    @property
    def noise_multiplier(self) -> float | None:
        """Scale over Lipschitz constant, b/L: the paper's σ_max; None for a function, whose L is not known."""
        lipschitz = self.measured.unit_lipschitz
        return None if lipschitz is None else self.unit_scale / lipschitz

    @property
    def record_loss(self) -> NDArray[np.float64]:
        """Record-level loss of the release for every pair of states, in nats, rounded up; shape (k, k).

        Where records differ in what they count, it is that of the record that counts most. Of a query about steps it is
        what both steps of a record cost, and ``leakage`` of it is above ε: what the noise leaks says
        :meth:`prove_leakage`. A :class:`QueryError` if the query is a function of the database.
        """
        measured = self.measured
        if isinstance(measured, FunctionQuery):
            raise QueryError("a function of the database has no known record-level loss")
        distance = measured.unit_distance
        return np.where(distance > 0, np.nextafter(distance / self.unit_scale, np.inf), 0.0)

    @property
    def node_loss(self) -> dict[str, NDArray[np.float64]]:
        """Record-level losses of every node of a network, by name, in nats, rounded up; shapes (k_node, k_node)."""
        measured = self.measured
        if not self.theta.networks or not isinstance(measured, LinearQuery | JointQuery):
            raise QueryError("node_loss exists only for networks, and for queries with a known loss of each node")
        distances = dict(zip(map(state_label, self.theta.networks[0].nodes), measured.distances, strict=True))
        return {v: np.where(d > 0, np.nextafter(d / self.unit_scale, np.inf), 0.0) for v, d in distances.items()}

    @cached_property
    def lower_bound(self) -> float:
        """A scale that is too small: independent Laplace noise of less on every output is not ε-Pufferfish here.

        ``scale / lower_bound`` says how much noise any other calibration of Laplace noise could save at most, with a
        strategy of the same shape (docs/proofs/propagation.md, "The lower bound"). It is for any two values of any
        record: of observed records that follow each other, of a row all of whose cells are observed. 0 where no such
        scale was found; where secrets are given, or near values; for histograms of more than 200 states, for
        transitions between more than 16, and where clusters of a network have more than a million states.
        """
        linear, theta = self.measured, self.theta
        if theta.networks:
            return self._lower_bound_of_network
        some = theta.some_members
        known = bool(some) and not theta.stands_for_more
        near = self.bound.protection is not None and self.bound.protection.only_near
        if not known or self.delta or self.bound.secrets is not None or near:
            return 0.0
        if any(chain.places for chain in self.length):  # tilts are of records next to each other
            return 0.0
        records = max(chain.records for chain in self.length)
        tilted: Sequence[TiltedChain]
        if isinstance(linear, StepQuery):
            if linear.outputs.size**2 > _MOST_TILTED_STEPS:
                return 0.0
            tilted = [TiltedSteps(c.transition_matrix, c.initial_distribution, linear.outputs, records) for c in some]
        elif not isinstance(linear, LinearQuery) or linear.factors is not None:
            return 0.0
        elif linear.weights.size * linear.weights.shape[1] > _MOST_TILTED:
            return 0.0
        else:
            tilted = [TiltedChain(c.transition_matrix, c.initial_distribution, linear.weights, records) for c in some]
        tilted = telling_most(tilted, self.unit_scale)
        return scale_too_small(tilted, self.epsilon, self.unit_scale) / self.unit_scale * self.scale

    @property
    def _lower_bound_of_network(self) -> float:
        seen, linear = self.witness, self.linear
        known = seen.node is not None and seen.secret_pair is not None and self.strategy is None
        if not known or self.delta or self.bound.secrets is not None or not isinstance(linear, LinearQuery):
            return 0.0
        network = self.theta.networks[seen.theta or 0]
        names = [state_label(name) for name in network.nodes]
        if seen.node not in names:  # a mechanism of laws, whose secrets may be about several nodes
            return 0.0
        node = names.index(seen.node)
        states = network.node_states[network.nodes[node]]
        x, x_ = (states.index(state) for state in seen.secret_pair or ())
        if len(linear.weights) * sum(network.sizes) > _MOST_CONTRIBUTED:
            return 0.0
        contributions = [linear.contributions_of(place) for place in range(len(names))]
        tilted = TiltedNetwork(network.tables, network.sizes, contributions, node, (x, x_))
        if not tilted.affordable:
            return 0.0
        return scale_too_small([tilted], self.epsilon, self.unit_scale) * float(linear.unit)

    @property
    def records(self) -> int:
        """Observed records n over all chains, or the cells of all rows of a network's table."""
        return self.bound.rows * sum(chain.records for chain in self.length)

    @property
    def expected_l1_error(self) -> float:
        """Expected L1 distance between the released vector and the exact one."""
        unit = float(self.linear.unit)
        if self.strategy is not None:
            return float(self.strategy.expected_errors(self.unit_scale).sum()) * unit
        return len(self.linear.labels) * laplace.mean_modulus(self.unit_scale) * unit

    def accuracy(self, alpha: float = 0.05, *, joint: bool = False) -> float:
        """Return the least error that the discrete noise exceeds with probability at most alpha; above 0 and below 1.

        With ``joint`` for all outputs at once rather than for each of them. Where outputs have noise of different laws
        it is that of the worst; for all at once it may then be a little above the least.
        """
        together, unit = truth(joint, "joint"), self.linear.unit
        if self.strategy is not None:
            return nearest(self.strategy.error(self.unit_scale, alpha, joint=together) * unit)
        outputs = len(self.linear.labels) if together else 1
        return nearest(laplace.accuracy(self.unit_scale, alpha, together=outputs) * unit)

    def accuracies(self, alpha: float = 0.05, *, joint: bool = False) -> NDArray[np.float64]:
        """Return the error that each output, or with ``joint`` any of them, exceeds so rarely; shape (m,)."""
        together = truth(joint, "joint")
        if self.strategy is None:
            return np.full(len(self.linear.labels), self.accuracy(alpha, joint=together))
        errors = self.strategy.errors(self.unit_scale, alpha, joint=together)
        return np.array([nearest(error * self.linear.unit) for error in errors])
