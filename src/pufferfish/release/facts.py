"""What a release's record holds: everything a reader needs to judge it, and never the exact value."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import truth
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.words import to_the_noise
from pufferfish._core.numbers import laplace as discrete_laplace, laplace as laplace_sums
from pufferfish._core.numbers.rounding import nearest
from pufferfish._core.strategies import MOST_STATES
from pufferfish.data.rows import RowsBase
from pufferfish.data.sequences import Base
from pufferfish.errors import QueryError
from pufferfish.mechanisms.witness import AnyWitness
from pufferfish.queries import CDF, KINDS, Quantiles, weights_of
from pufferfish.queries.strategy import Strategy
from pufferfish.release.calibration_record import CalibrationRecord
from pufferfish.release.groups import GroupsRecord
from pufferfish.release.postprocessing import Clipped, PostProcessing
from pufferfish.release.quantiles import QuantileRecord, quantiles_of
from pufferfish.theta.record import ThetaRecord

__all__ = [
    "FORMAT",
    "NOISE_LAW",
    "VERSION",
    "AccuracyRecord",
    "DataRecord",
    "LedgerRecord",
    "MeasurementRecord",
    "MechanismRecord",
    "NoiseRecord",
    "QueryRecord",
    "ReleaseFields",
]

_FEW_ULPS = 2.0**-50
"""More than what a scale loses in a record's numbers."""

_LARGEST_DENOMINATOR = 2**26
"""Fractions with denominators up to this are told apart by their doubles."""

WEIGHTED = "weighted "
"""What the kind of a query begins with whose records count with factors of their own."""

FORMAT = "pufferfish-release"
VERSION = 3

NOISE_LAW = "discrete Laplace, P(Z = z) ∝ exp(-|z| unit/scale)"


class QueryRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """What was asked: kind, words, the names of the outputs, and how far one record moves them.

    ``divided_by`` is the number of records, or rows, that shares and means are of; None where nothing is divided.
    """

    kind: str
    description: str
    labels: list[str]
    lipschitz: float | None
    divided_by: int | None


class MeasurementRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """A count that got noise: of records in some states, with noise of a scale, in the query's units.

    ``sharpness`` is the whole number of times that its scale fits into one scale that all measurements share: the loss
    of one record is a sum of these whole numbers over that scale.
    """

    states: list[str]
    scale: float
    sharpness: int


class NoiseRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The noise on each output: ``unit`` times a discrete Laplace variable of scale ``scale / unit``.

    Or the noise on each of some ``measurements``, of which ``scale`` is the largest: the outputs are sums and
    differences of them and of the number of records.
    """

    law: Literal["discrete Laplace, P(Z = z) ∝ exp(-|z| unit/scale)"]
    scale: float
    unit: float
    noise_multiplier: float | None
    measurements: list[MeasurementRecord] | None = None

    @property
    def one_scale(self) -> float:
        """The scale, in units, over which the sharpness of measurements is meant; without any the scale itself."""
        first = None if self.measurements is None else self.measurements[0]
        return self.scale / self.unit if first is None else first.scale * first.sharpness / self.unit

    def accuracy(self, alpha: float, outputs: int = 1) -> float:
        """Return the error that any of some outputs, each with noise of this scale, exceeds with probability alpha."""
        return self.worth(discrete_laplace.accuracy(self.scale / self.unit, alpha, together=outputs))

    def worth(self, units: int) -> float:
        """Return what so many units are worth: 3 units of 1/5, which this record says as 0.2, are 0.6."""
        if not math.isfinite(self.unit):  # a record that is refused
            return units * self.unit
        fraction = Fraction(self.unit).limit_denominator(_LARGEST_DENOMINATOR)
        return nearest(units * (fraction if float(fraction) == self.unit else Fraction(self.unit)))


def strategy_of(kind: str, states: Sequence[str], noise: NoiseRecord) -> Strategy | None:
    """Return the strategy that a record's measurements say, of a kind of query on these states.

    Raises
    ------
    QueryError
        If they are none, or the query's outputs do not follow from them.
    """
    if noise.measurements is None:
        return None
    if len(states) > MOST_STATES:
        raise QueryError(f"measurements are of at most {MOST_STATES} states, and theta has {len(states)}")
    place = {state: x for x, state in enumerate(states)}
    rows = np.zeros((len(noise.measurements), len(states)), dtype=np.int64)
    for row, measurement in zip(rows, noise.measurements, strict=True):
        if not set(measurement.states) <= place.keys() or len(set(measurement.states)) < len(measurement.states):
            raise QueryError("a measurement counts states that theta does not have, or one of them twice")
        row[[place[state] for state in measurement.states]] = 1
    weights = weights_of(kind.removeprefix(WEIGHTED), len(states))
    return Strategy(weights, rows, np.array([measurement.sharpness for measurement in noise.measurements]))


def factor_of(query: QueryRecord) -> int:
    """Return the largest factor, without sign, with which a record counts in a query whose kind says what one moves."""
    kind = query.kind.removeprefix(WEIGHTED)
    moves = KINDS[kind].moves or len(query.labels)  # from the first state to the last, in a cumulative distribution
    return round((query.lipschitz or 0.0) * (query.divided_by or 1) / moves)


class MechanismRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The mechanism that proves the promise, the secret that decided the noise, and which secrets there are.

    ``longest_chain`` are the steps of the longest chain that the noise is for, or the nodes of a network; the data may
    have shorter ones. ``secrets`` are the pairs in words that shall not be told apart; None stands for any two values
    of any record.
    """

    name: str
    title: str
    leakage: float
    longest_chain: int
    witness: AnyWitness
    secrets: list[tuple[str, str]] | None = None


class DataRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """Public facts of the data: how the table was read, and the lengths that are published.

    For a table of independent rows, ``rows`` says how it was read, ``subjects`` and ``chains`` are their number,
    ``records`` the cells that were observed, ``longest_chain`` the nodes of the network, and ``observed`` how many
    cells of each column were: shares are of all rows, missing cells among them. ``steps`` is how often an observed
    record follows another in one step, where the query counts steps.
    """

    base: Base | None
    subjects: int
    chains: int
    records: int
    longest_chain: int
    rows: RowsBase | None = None
    observed: dict[str, int] | None = None
    steps: int | None = None


class LedgerRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The place of a release in a ledger: what all releases up to it leak together at most, and by which bound."""

    entry: int
    spent: float
    budget: float
    mechanism: str
    theta_origin: str


class AccuracyRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """Errors exceeded with probability at most ``alpha``: by one output, and by any of them.

    ``outputs`` are the errors of each output by itself, where they differ; ``each`` is then the largest.
    """

    alpha: float
    each: float
    joint: float
    outputs: list[float] | None = None


class ReleaseFields(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A private value and what was promised; :class:`~pufferfish.Release` explains each field."""

    format: str = FORMAT
    version: int = VERSION
    created: str
    query: QueryRecord
    values: list[float]
    noisy_values: list[float]
    postprocessing: PostProcessing | None
    quantiles: list[QuantileRecord] | None = None
    epsilon: float
    delta: float = 0.0
    promise: str
    warnings: list[str]
    not_promised: list[str]
    assumptions: list[str]
    noise: NoiseRecord
    accuracy_95: AccuracyRecord
    mechanism: MechanismRecord
    data: DataRecord
    theta: ThetaRecord
    software: dict[str, str]
    ledger: LedgerRecord | None = None
    groups: GroupsRecord | None = None
    calibration: CalibrationRecord | msgspec.UnsetType = msgspec.UNSET
    """What its proof is computed from; releases of earlier versions do not say."""

    @property
    def value(self) -> NDArray[np.float64]:
        """The released value; shape (m,), one entry per output of the query, or (groups, m)."""
        values = np.array(self.values)
        return values if self.groups is None else values.reshape(len(self.groups.cells), -1)

    @property
    def scale(self) -> float:
        """Laplace scale of the noise on each output, before groups are divided; the largest, of measurements."""
        return self.noise.scale

    @property
    def whole(self) -> bool:
        """Whether values and their errors are whole numbers, as counts are; what was drawn does not decide it."""
        unit, done = self.noise.unit, self.postprocessing
        shared = self.groups is not None and self.groups.divided_by is not None
        return unit == math.floor(unit) and not shared and (done is None or isinstance(done, Clipped))

    def writer(self, digits: int = 3) -> Callable[[float, float], str]:
        """Return what writes values and errors to so many digits of their noise; whole numbers have no decimals.

        It takes a value and by what its group's noise is divided, 1 where there is none.
        """
        scale, whole = self.scale, self.whole

        def written(value: float, over: float) -> str:
            return to_the_noise(value, scale / over, digits=digits, whole=whole)

        return written

    @property
    def strategy(self) -> Strategy | None:
        """What was measured, and how the outputs follow from it; None where every output got noise of one scale."""
        return strategy_of(self.query.kind, self.theta.states, self.noise)

    @property
    def record_loss(self) -> NDArray[np.float64]:
        """Record-level loss of the release for every pair of states of a chain, in nats, rounded up; shape (k, k).

        Computed from the measurements, as whoever reads a release may do: ``leakage`` of a bound takes it.

        Raises
        ------
        QueryError
            If the release has no measurements: then it is one over ``noise.noise_multiplier`` at most.
        """
        strategy = self.strategy
        if strategy is None:
            raise QueryError("this release has one scale for every output: its loss is 1 / noise.noise_multiplier")
        distance = strategy.distance * (factor_of(self.query) if self.query.kind.startswith(WEIGHTED) else 1)
        return distance / self.noise.one_scale * (1 + _FEW_ULPS)

    def accuracy(self, alpha: float = 0.05, *, joint: bool = False) -> float:
        """Error of the noisy value that is exceeded with probability at most alpha; with groups, in all of them.

        Parameters
        ----------
        alpha : float, default 0.05
            Probability, strictly between 0 and 1.
        joint : bool, default False
            For all outputs at once rather than for each of them.

        Raises
        ------
        ParameterError
            If alpha is out of range.
        """
        together, noise, strategy, groups = truth(joint, "joint"), self.noise, self.strategy, self.groups
        cells = 1 if groups is None else len(groups.cells)
        if strategy is None:
            whole = noise.accuracy(alpha, len(self.query.labels) * cells if together else 1)
        else:
            own = laplace_sums.share_of_each(alpha, cells if together else 1)
            whole = noise.worth(strategy.error(noise.one_scale, own, joint=together))
        return whole if groups is None else whole * groups.most_error

    def quantiles_at(self, shares: Sequence[float]) -> list[QuantileRecord]:
        """Return quantiles of a cumulative distribution, with intervals that hold together with 95% probability.

        Parameters
        ----------
        shares : sequence of float
            Which, strictly between 0 and 1.

        Raises
        ------
        QueryError
            If the release is of another query.
        """
        kind = self.query.kind
        if kind.startswith(WEIGHTED) or not (kind in CDF.kinds or kind in Quantiles.kinds):
            raise QueryError(f"quantiles are of a cumulative distribution, and this release is of the kind {kind!r}")
        if not KINDS[kind].relative and self.data.base is None:
            raise QueryError("how many records a count of one database is of is not in its record: ask for shares")
        total = 1.0 if KINDS[kind].relative else float(self.data.records)
        errors = self.accuracies(0.05, joint=True)
        return quantiles_of(Quantiles(shares).shares, self.noisy_values, errors, self.theta.states, total)

    def accuracies(self, alpha: float = 0.05, *, joint: bool = False) -> NDArray[np.float64]:
        """Error of each value that it, or with ``joint`` any of them its own, exceeds with probability at most alpha.

        Parameters are those of :meth:`accuracy`; of the shape of :attr:`value`: (m,), or (groups, m).
        """
        together, noise, strategy, groups = truth(joint, "joint"), self.noise, self.strategy, self.groups
        m, cells = len(self.query.labels), 1 if groups is None else len(groups.cells)
        if strategy is None:
            whole = np.full(m, noise.accuracy(alpha, m * cells if together else 1))
        else:
            own = laplace_sums.share_of_each(alpha, cells if together else 1)
            whole = np.array([noise.worth(e) for e in strategy.errors(noise.one_scale, own, joint=together)])
        if groups is None:
            return whole
        found: NDArray[np.float64] = whole / np.array(groups.divided_by or [1] * cells)[:, None]
        return found
