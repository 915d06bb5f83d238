"""The parts that the record of a release is put together from, each a class of plain values.

From top to bottom: queries and settings as values that JSON has; what the noise was calibrated from; groups; subjects;
what was asked, the noise, what was read, the place in a ledger, the errors. No part holds an exact value.
:mod:`pufferfish.release.record` has the whole record.

A query, a secret or a setting is written by :func:`encode`, and made again by :func:`decode`:

>>> from pufferfish.queries import Count, Window
>>> encode(Window(Count("walk"), 3, 9))
{'is': 'Window', 'query': {'is': 'Count', 'states': ['walk']}, 'start': 3, 'stop': 9}
>>> decode(encode(Window(Count("walk"), 3, 9))) == Window(Count("walk"), 3, 9)
True
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import reduce
from itertools import groupby
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import FrozenRecord
from pufferfish._core.numbers import laplace
from pufferfish._core.numbers.rounding import nearest
from pufferfish._core.strategies import MOST_STATES
from pufferfish.data.rows import RowsBase
from pufferfish.data.sequences import Base
from pufferfish.errors import ParameterError, QueryError, shortened
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.protection import Protection
from pufferfish.mechanisms.witness import AnyWitness
from pufferfish.queries import (
    QUERIES,
    BoundQuery,
    JointQuery,
    LinearQuery,
    StepQuery,
    Subset,
    Weighted,
    Window,
    weights_of,
)
from pufferfish.queries.query import l1_distances
from pufferfish.queries.strategy import Strategy
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.secrets import CountIs, RecordIs, Secret
from pufferfish.theta.states import state_label

# -- Queries, secrets and settings as plain values, so that a record can hold them and a reader can ------------------

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*QUERIES, Window, Weighted, Subset, RecordIs, CountIs)}
_IS, _ALL, _MAP = "is", "all of", "map"


class NotPlain(ValueError):
    """Something is, or holds, a function of the user's: no file can hold that."""


def encode(value: Any) -> Any:
    """Return a query, a secret, a setting, or a list or dict of these as values that JSON has."""
    if value is None or isinstance(value, bool | str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [encode(part) for part in value]
    if isinstance(value, Mapping):
        return {_MAP: {str(key): encode(part) for key, part in value.items()}}
    if isinstance(value, Secret) and len(value.conditions) > 1:
        return {_IS: _ALL, "secrets": [encode(part) for part in value.conditions]}
    name = type(value).__name__
    if _KINDS.get(name) is not type(value) or not is_dataclass(value):
        raise NotPlain(f"{shortened(repr(value))} is a function of the user's, or holds one")
    held = {field.name: getattr(value, field.name) for field in fields(value)}
    # those named by neither text nor number go by what their names read like
    if isinstance(held.get("records"), tuple):
        held["records"] = [name if isinstance(name, str | int) else state_label(name) for name in held["records"]]
    return {_IS: name, **{key: encode(part) for key, part in held.items()}}


def decode(value: Any) -> Any:
    """Return what :func:`encode` described, made by its constructor, which checks it."""
    if isinstance(value, list):
        return [decode(part) for part in value]
    if not isinstance(value, dict):
        return value
    entries: dict[str, Any] = {**value}
    if entries.keys() == {_MAP} and isinstance(entries[_MAP], dict):
        return {key: decode(part) for key, part in entries[_MAP].items()}
    name = entries.pop(_IS, None)
    if name == _ALL and isinstance(entries.get("secrets"), list) and entries["secrets"]:
        return reduce(lambda left, right: left & right, [decode(part) for part in entries["secrets"]])
    if not isinstance(name, str) or name not in _KINDS:
        raise ParameterError(f"{shortened(repr(name))} is no query or secret that a record can name")
    names = {field.name for field in fields(_KINDS[name])}
    if entries.keys() != names:
        raise ParameterError(f"{name} has {', '.join(sorted(names))}, not {shortened(', '.join(sorted(entries)))}")
    return _KINDS[name](**{key: decode(part) for key, part in entries.items()})


# -- What it takes to compute the proof of a release again -----------------------------------------------------------

_Whole = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]

Lengths = tuple[_Whole, _Whole, _Whole]
"""Steps and observed records of chains, and how many there are of them."""

_MOST_CHAINS = 10_000_000
"""Chains that are made again: a record with more was changed, or no machine could hold them."""


class CalibrationRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the noise was calibrated from.

    ``unit_scale`` is the scale of the noise in whole units of the query, to the last bit. ``query`` and ``settings``,
    of the mechanism, are None where they are, or hold, a function of the user's. ``lengths`` are the chains that can
    decide, as no other has as many steps and as many records; for mechanisms of one query all chains, in their order;
    none for models that know their records. ``records`` are those of all chains together, or the rows of a network's
    table. ``places`` are for each of the lengths how many steps are observed, unobserved, observed, …, empty where that
    is not known; then the lengths are those of all chains. It is None where it is known of no chain.
    """

    unit_scale: float
    query: dict[str, Any] | None
    settings: dict[str, Any] | None
    lengths: list[Lengths]
    records: _Whole
    places: list[list[_Whole]] | None = None

    def chains(self) -> tuple[ChainLength, ...]:
        """Return lengths of chains as they were: those that can decide, and shorter ones that make up the number."""
        left = self.records - sum(records * times for _, records, times in self.lengths)
        longest = max((records for _, records, _ in self.lengths), default=1)
        if left < 0:
            raise ParameterError(f"its chains have more than {self.records:,} records, the number of all")
        if sum(times for *_, times in self.lengths) + left // longest > _MOST_CHAINS:
            raise ParameterError(f"its chains are more than {_MOST_CHAINS:,}")
        if self.places is not None and (left or len(self.places or self.lengths) != len(self.lengths)):
            raise ParameterError("its places are not those of all its chains")
        named = [chain for chain, times in _named_chains(self.lengths, self.places) for _ in range(times)]
        full, rest = divmod(left, longest)
        return (*named, *[ChainLength(longest, longest)] * full, *([ChainLength(rest, rest)] if rest else []))


def _named_chains(lengths: Sequence[Lengths], places: Sequence[Sequence[int]] | None) -> list[tuple[ChainLength, int]]:
    """Return chains as they were, and how many there are of each: what :func:`lengths_of` wrote."""
    patterns = places or [()] * len(lengths)
    return [(ChainLength(*chain[:2], tuple(seen)), chain[2]) for chain, seen in zip(lengths, patterns, strict=True)]


def record_of(calibration: Calibration) -> CalibrationRecord:
    """Return what a calibration was made from."""
    bound, theta = calibration.bound, calibration.theta
    lengths, places = lengths_of(bound.length if theta.of_chains else (), all_count=not calibration.composes)
    mechanism: Any = bound
    given: Mapping[str, Any] = mechanism.settings
    settings = {name: _or_none(value) for name, value in given.items()}
    lost = any(value is not None and settings[name] is None for name, value in given.items())
    return CalibrationRecord(
        unit_scale=calibration.unit_scale,
        query=_or_none(calibration.query),
        settings=None if lost else settings,
        lengths=lengths,
        records=bound.rows if theta.networks else sum(chain.records for chain in bound.length),
        places=places,
    )


def _or_none(value: Any) -> Any:
    """Return a value as :func:`encode` writes it; None where no file can hold it."""
    try:
        return encode(value)
    except NotPlain:
        return None


def lengths_of(chains: Sequence[ChainLength], *, all_count: bool) -> tuple[list[Lengths], list[list[int]] | None]:
    """Return chains as a record holds them: steps, observed records and how many, and places where any are known.

    Where the noise of the longest is enough for all, those that no other exceeds in both steps and records stand for
    all, as losses of the others leak no more; where all chains count, or places are known, all of them are there.
    """
    if any(chain.places for chain in chains):
        counts = Counter(chains)
        places = [list(chain.places) for chain in counts]
        return [(chain.steps, chain.records, times) for chain, times in counts.items()], places
    if all_count:
        pairs = ((chain.steps, chain.records) for chain in chains)
        return [(*pair, len(list(equal))) for pair, equal in groupby(pairs)], None
    deciding: list[Lengths] = []
    # equal ones are mostly one object: sooner told apart by which it is than by what it holds
    for chain in sorted(set({id(chain): chain for chain in chains}.values()), reverse=True):
        if not deciding or chain.records > deciding[-1][1]:
            deciding.append((chain.steps, chain.records, 1))
    return deciding, None


# -- What got noise, in whole numbers: of this the record loss follows, for programs that know no word of ours ---------

Added = list[tuple[int, int]]
"""Numbers that got noise, counted from 0, and what is added to each of them: a whole number."""


class CountedRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """What one record, step, cell or row adds to the numbers that got noise, and the scale of that noise, exactly.

    Where one of them changes from x to x', the numbers move by the L1 distance of what both add. That distance, times
    the record's factor, over ``scale`` is the loss in nats: no word and no rounding of this program is in it.

    ``each`` says what adds: a record of a chain; a step from one record to the next; a cell of a network's table,
    whatever the others in its row are; or several cells of one row together. ``of`` names the nodes of the cells, or
    those that are counted together. ``adds`` is what each state adds, in the order of the states of Θ; for steps each
    pair of states, the first of them slowest. There is one such list for all records, steps or rows; for cells one for
    each node, for its own states. ``factors`` say how many records, one after the other, count with which factor, 0
    where they are not read; None where all count once. ``scale`` is b of the noise on each of the numbers, P(Z = z) ∝
    exp(-|z|/b), as a fraction. With ``measurements`` a number is a count times its sharpness; its noise is no less.
    """

    each: Literal["record", "step", "cell", "row"]
    of: list[str]
    adds: list[list[Added]]
    factors: list[tuple[int, int]] | None
    scale: str


def counted_of(measured: BoundQuery, unit_scale: float, nodes: Sequence[str] = ()) -> CountedRecord | None:
    """Return what got noise, of the query whose release has the record losses of the noise; None of a user's function.

    ``unit_scale`` is in units, and ``nodes`` are the names of a network's nodes.
    """
    factors, scale = None, str(Fraction(unit_scale))
    if isinstance(measured, StepQuery):
        steps = [[(int(place), 1)] if place >= 0 else [] for place in measured.outputs.ravel()]
        return CountedRecord("step", [], [steps], None, scale)
    if isinstance(measured, JointQuery):
        combinations: list[Added] = [[(place, 1)] for place in range(len(measured.labels))]
        return CountedRecord("row", [nodes[place] for place in measured.nodes], [combinations], None, scale)
    if not isinstance(measured, LinearQuery):
        return None
    if measured.domains is not None or measured.by_output:
        places = range(len(nodes) if measured.factors is None else len(measured.factors))
        names = list(nodes) or [str(place) for place in places]
        return CountedRecord("cell", names, [_added(measured.contributions_of(place)) for place in places], None, scale)
    if measured.factors is not None:
        factors = [(len(list(run)), factor) for factor, run in groupby(measured.factors.tolist())]
    return CountedRecord("record", [], [_added(measured.weights)], factors, scale)


def _added(weights: NDArray[np.int64]) -> list[Added]:
    """Return what each column of (m, k) whole numbers adds, without what adds 0."""
    return [[(int(m), int(column[m])) for m in np.flatnonzero(column)] for column in weights.T]


def record_loss_of(counted: CountedRecord) -> NDArray[np.float64]:
    """Return the loss of a record of a chain that counts most, for every pair of states, in nats; shape (k, k)."""
    if counted.each != "record":
        raise QueryError(f"what got noise counts each {counted.each}, and one matrix says the losses of records alone")
    (columns,) = counted.adds
    numbers = 1 + max((number for added in columns for number, _ in added), default=0)
    weights = np.zeros((numbers, len(columns)), dtype=np.int64)
    for state, added in enumerate(columns):
        for number, value in added:
            weights[number, state] = value
    most = 1 if counted.factors is None else max(abs(factor) for _, factor in counted.factors)
    distance = l1_distances(weights).astype(np.float64) * most
    return np.where(distance > 0, np.nextafter(distance / float(Fraction(counted.scale)), np.inf), 0.0)


# -- What a release says of its groups -------------------------------------------------------------------------------


class GroupsRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The public groups of records that values are of: those of the first group come first, then those of the next.

    ``by`` are the groupings, such as ``hour(time)`` and ``sex``, and ``cells`` the label of each group under every one.
    ``records`` is the public number of observed records, or rows, of each, and ``steps`` that of the steps which lead
    to them, where the query counts steps. ``divided_by`` is what the values of each group are divided by, where they
    are shares or means; the query's Lipschitz constant, the noise and its unit are those before. ``error_95`` is for
    each group the error that one of its noisy values exceeds with probability at most 5%: where outputs have errors of
    different sizes (``accuracy_95.outputs``) the largest, and that of each output is in proportion. ``nested`` are the
    groupings of which each group is in one group of the next grouping: totals of the wider groups are shown too.
    """

    by: list[str]
    cells: list[list[str]]
    records: list[int]
    divided_by: list[int] | None
    error_95: list[float]
    steps: list[int] | None = None
    nested: list[str] | None = None

    @property
    def most_error(self) -> float:
        """By what errors before the division are multiplied, in the group where that is most."""
        return 1.0 if self.divided_by is None else 1 / min(self.divided_by)


# -- What a release says of its subjects, where each has values of its own --------------------------------------------


class TableRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The file that holds the values, without its folder, its columns, rows and SHA-256."""

    name: str
    columns: list[str]
    rows: int
    sha256: str


class SubjectsRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """A release with values for each subject, which stand in a table beside the record.

    ``release`` is a number drawn at random, by which an interrupted release is found again. ``divided_by_records``:
    the outputs of a subject are divided by the public number of its records; the query's Lipschitz constant, the noise
    and its accuracy are those before. There is no ``table`` before noise was drawn.
    """

    release: str
    divided_by_records: bool
    table: TableRecord | None


# -- What was asked, and the noise ----------------------------------------------------------------------------------

_LARGEST_DENOMINATOR = 2**26
"""Fractions with denominators up to this are told apart by their doubles."""

WEIGHTED = "weighted "
"""What the kind of a query begins with whose records count with factors of their own."""

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
        return self.worth(laplace.accuracy(self.scale / self.unit, alpha, together=outputs))

    def worth(self, units: int) -> float:
        """Return what so many units are worth: 3 units of 1/5, which this record says as 0.2, are 0.6."""
        if not math.isfinite(self.unit):  # a record that is refused
            return units * self.unit
        fraction = Fraction(self.unit).limit_denominator(_LARGEST_DENOMINATOR)
        return nearest(units * (fraction if float(fraction) == self.unit else Fraction(self.unit)))


def strategy_of(kind: str, states: Sequence[str], noise: NoiseRecord) -> Strategy | None:
    """Return the strategy that a record's measurements say, of a kind of query on these states."""
    if noise.measurements is None:
        return None
    if len(states) > MOST_STATES:
        raise QueryError(f"measurements are of at most {MOST_STATES} states, and theta has {len(states)}")
    column_of = {state: x for x, state in enumerate(states)}
    rows = np.zeros((len(noise.measurements), len(states)), dtype=np.int64)
    for row, measurement in zip(rows, noise.measurements, strict=True):
        if not set(measurement.states) <= column_of.keys() or len(set(measurement.states)) < len(measurement.states):
            raise QueryError("a measurement counts states that theta does not have, or one of them twice")
        row[[column_of[state] for state in measurement.states]] = 1
    weights = weights_of(kind.removeprefix(WEIGHTED), len(states))
    return Strategy(weights, rows, np.array([measurement.sharpness for measurement in noise.measurements]))


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

    ``lengths`` and ``places`` are those of the chains that were read, as :class:`CalibrationRecord` has those that the
    noise is for; ``usual_step`` is how far apart most records are, and ``clock_changes`` whether clocks may have been,
    or were, changed within a series, where the table has times.
    """

    base: Base | None
    subjects: int
    chains: int
    records: int
    longest_chain: int
    lengths: list[Lengths] = msgspec.field(default_factory=list[Lengths])
    places: list[list[_Whole]] | None = None
    rows: RowsBase | None = None
    observed: dict[str, int] | None = None
    steps: int | None = None
    usual_step: str | None = None
    clock_changes: Literal["possible", "known"] | None = None

    @property
    def reading(self) -> Base | RowsBase | None:
        """How the table was read; None of one database that was given by hand."""
        return self.rows if self.base is None else self.base

    @property
    def counted(self) -> int:
        """How many records there are, or rows of a network's table: what shares are of."""
        return self.records if self.rows is None else self.subjects

    @property
    def step(self) -> str | None:
        """How long a step takes, where gaps were looked for in times; what is only stated may be otherwise."""
        return None if self.base is None or self.base.max_gap is None else self.base.step or self.usual_step

    @property
    def cut(self) -> bool:
        """Whether gaps cut the series of subjects into chains of their own."""
        return self.base is not None and self.base.gaps == "independent"

    @property
    def chain_lengths(self) -> list[tuple[ChainLength, int]]:
        """The chains that are named, and how many there are of each."""
        return _named_chains(self.lengths, self.places)


class LedgerRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The place of a release in a ledger: what all releases up to it leak together at most, and by which bound.

    ``previous`` is the digest of the ledger's entry before it, or of the ledger as it began. It depends on all entries
    before, and only who has the ledger can compute it. In one history of a ledger no two releases have the same one.
    ``grows``: the table gets new rows, and a release can have left out those that were read before.
    ``protect`` and ``within``, or the pairs of ``secrets``, say what ``spent`` is about, where that is not one record
    and any two of its values.
    """

    entry: int
    previous: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    spent: float
    budget: float
    mechanism: str
    theta_origin: str
    grows: bool = False
    protect: int | str | list[str] | None = None
    within: float | list[tuple[str, str]] | None = None
    secrets: list[tuple[str, str]] | None = None

    @property
    def protection(self) -> Protection | None:
        """What the ledger adds up is about; None for one record and any two of its values."""
        return Protection.in_settings({"protect": self.protect, "within": self.within})


class AccuracyRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """Errors exceeded with probability at most ``alpha``: by one output, and by any of them.

    ``outputs`` are the errors of each output by itself, where they differ; ``each`` is then the largest.
    """

    alpha: float
    each: float
    joint: float
    outputs: list[float] | None = None
