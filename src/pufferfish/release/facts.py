"""What a release's record holds: everything a reader needs to judge it, and never the exact value.

Queries, secrets and settings as plain values, so that a record can hold them and a reader can make them again.

>>> from pufferfish.queries import Count, Window
>>> encode(Window(Count("walk"), 3, 9))
{'is': 'Window', 'query': {'is': 'Count', 'states': ['walk']}, 'start': 3, 'stop': 9}
>>> decode(encode(Window(Count("walk"), 3, 9))) == Window(Count("walk"), 3, 9)
True

What it takes to compute the proof of a release again: the query, the lengths, the settings, the exact noise.

The other fields of a release say in words and numbers what follows from these.

What may be done to a noisy value: it uses nothing but that value and public numbers, so it costs no privacy.

A release holds the public numbers too, so that whoever reads it can do the same again, and does.

Quantiles of a cumulative distribution with noise, and intervals that hold together; post-processing, no more.

The quantile of a share q is the first state up to which at least q of the records are. With probability 95% every value
of the distribution is within its error of the exact one, all of them together. Then no state before the first whose
value plus its error reaches q can be the quantile, and the quantile is no later than the first whose value less its
error reaches q. So all intervals hold together with that probability, whatever shares are asked for.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import reduce
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
from pufferfish.mechanisms.witness import AnyWitness
from pufferfish.queries import KINDS, QUERIES, Subset, Weighted, Window, weights_of
from pufferfish.queries.strategy import Strategy
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.secrets import CountIs, RecordIs, Secret
from pufferfish.theta.states import state_label

__all__ = [
    "NOISE_LAW",
    "AccuracyRecord",
    "Ascending",
    "CalibrationRecord",
    "Clipped",
    "ClippedByGroup",
    "DataRecord",
    "GroupsRecord",
    "LedgerRecord",
    "MeasurementRecord",
    "MechanismRecord",
    "NoiseRecord",
    "NotPlain",
    "PostProcessing",
    "Projected",
    "QuantileRecord",
    "QueryRecord",
    "ascending",
    "decode",
    "encode",
    "lengths_of",
    "project_to_simplex",
    "quantiles_of",
    "record_of",
]

# -- Queries, secrets and settings as plain values, so that a record can hold them and a reader can ------------------

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*QUERIES, Window, Weighted, Subset, RecordIs, CountIs)}
_IS, _ALL, _MAP = "is", "all of", "map"


class NotPlain(ValueError):
    """Something is, or holds, a function of the user's: no file can hold that."""


def encode(value: Any) -> Any:
    """Return a query, a secret, a setting, or a list or dict of these as values that JSON has.

    Raises
    ------
    NotPlain
        If it is, or holds, a function.
    """
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
    return {_IS: name, **{field.name: _field(value, field.name) for field in fields(value)}}


def _field(value: Any, name: str) -> Any:
    """Return a field; records that are named by neither text nor number go by what their names read like."""
    given = getattr(value, name)
    if name == "records" and isinstance(given, tuple):
        return [record if isinstance(record, str | int) else state_label(record) for record in given]
    return encode(given)


def decode(value: Any) -> Any:
    """Return what :func:`encode` described, made by its constructor, which checks it.

    Raises
    ------
    PufferfishError
        If it describes none.
    """
    if isinstance(value, list):
        return [decode(part) for part in value]
    if not isinstance(value, dict):
        return value
    given: dict[str, Any] = {**value}
    if given.keys() == {_MAP} and isinstance(given[_MAP], dict):
        return {key: decode(part) for key, part in given[_MAP].items()}
    name = given.pop(_IS, None)
    if name == _ALL and isinstance(given.get("secrets"), list) and given["secrets"]:
        return reduce(lambda one, other: one & other, [decode(part) for part in given["secrets"]])
    if not isinstance(name, str) or name not in _KINDS:
        raise ParameterError(f"{shortened(repr(name))} is no query or secret that a record can name")
    names = {field.name for field in fields(_KINDS[name])}
    if given.keys() != names:
        raise ParameterError(f"{name} has {', '.join(sorted(names))}, not {shortened(', '.join(sorted(given)))}")
    return _KINDS[name](**{key: decode(part) for key, part in given.items()})


# -- What it takes to compute the proof of a release again -----------------------------------------------------------

_Whole = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]

Lengths = tuple[_Whole, _Whole, _Whole]
"""Steps and observed records of chains, and how many there are of them."""

_MOST_CHAINS = 10_000_000
"""Chains that are made again: a record with more was changed, or no machine could hold them."""


class CalibrationRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the noise was calibrated from.

    Parameters
    ----------
    unit_scale : float
        Scale of the noise in whole units of the query, to the last bit.
    query : dict or None
        The query as it was given; None for a function of the user's.
    settings : dict or None
        What the mechanism was told besides Θ and lengths; None where that holds a function of the user's.
    lengths : list of (steps, observed records, chains)
        The chains that can decide: no other has as many steps and as many records. For mechanisms of one query all
        chains, in their order. Empty for models that know their records.
    records : int
        Observed records of all chains together; the rows of a network's table.
    places : list of list of int, optional
        For each of the lengths how many steps are observed, unobserved, observed, …, empty where that is not known;
        then the lengths are those of all chains. None where it is known of no chain.
    """

    unit_scale: float
    query: dict[str, Any] | None
    settings: dict[str, Any] | None
    lengths: list[Lengths]
    records: _Whole
    places: list[list[_Whole]] | None = None

    def chains(self) -> tuple[ChainLength, ...]:
        """Return lengths of chains as they were: those that can decide, and shorter ones that make up the number.

        Raises
        ------
        ParameterError
            If there are more than can be, or they have more records than all chains together; or places are not those
            of the lengths.
        """
        left = self.records - sum(records * times for _, records, times in self.lengths)
        most = max((records for _, records, _ in self.lengths), default=1)
        if left < 0:
            raise ParameterError(f"its chains have more than {self.records:,} records, the number of all")
        if sum(times for *_, times in self.lengths) + left // most > _MOST_CHAINS:
            raise ParameterError(f"its chains are more than {_MOST_CHAINS:,}")
        unknown: list[list[int]] = [[]] * len(self.lengths)
        places = self.places or unknown
        if len(places) != len(self.lengths) or (self.places is not None and left):
            raise ParameterError("its places are not those of all its chains")
        each = [ChainLength(*chain[:2], tuple(own)) for chain, own in zip(self.lengths, places, strict=True)]
        found = [chain for chain, (*_, times) in zip(each, self.lengths, strict=True) for _ in range(times)]
        full, rest = divmod(left, most)
        return (*found, *[ChainLength(most, most)] * full, *([ChainLength(rest, rest)] if rest else []))


def record_of(calibration: Calibration) -> CalibrationRecord:
    """Return what a calibration was made from."""
    bound, theta = calibration.bound, calibration.theta
    lengths, places = lengths_of(bound.length if theta.of_chains else (), all_count=not calibration.composes)
    return CalibrationRecord(
        unit_scale=calibration.unit_scale,
        query=_or_none(calibration.query),
        settings=_settings(calibration),
        lengths=lengths,
        records=bound.rows if theta.networks else sum(chain.records for chain in bound.length),
        places=places,
    )


def _settings(calibration: Calibration) -> dict[str, Any] | None:
    given: Any = calibration.bound
    found = {name: _or_none(value) for name, value in given.settings.items()}
    lost = any(value is not None and found[name] is None for name, value in given.settings.items())
    return None if lost else found


def _or_none(value: Any) -> Any:
    try:
        return encode(value)
    except NotPlain:
        return None


def lengths_of(chains: Sequence[ChainLength], *, all_count: bool) -> tuple[list[Lengths], list[list[int]] | None]:
    """Return chains as a record holds them: steps, observed records and how many, and places where any are known.

    Where the noise of the longest is enough for all, those that no other exceeds in both steps and records stand for
    all; where all chains count, or places are known, all of them are there.
    """
    if any(chain.places for chain in chains):
        known = Counter(chains)
        return [(c.steps, c.records, times) for c, times in known.items()], [list(c.places) for c in known]
    return (_in_order(chains) if all_count else _deciding(chains)), None


def _deciding(chains: Iterable[ChainLength]) -> list[Lengths]:
    """Return the chains that no other exceeds in both steps and records: losses of the others leak no more."""
    deciding: list[Lengths] = []
    some = {id(chain): chain for chain in chains}.values()  # equal ones are mostly one: sooner than by what they hold
    for chain in sorted(set(some), reverse=True):
        if not deciding or chain.records > deciding[-1][1]:
            deciding.append((chain.steps, chain.records, 1))
    return deciding


def _in_order(chains: Iterable[ChainLength]) -> list[Lengths]:
    """Return all chains, equal ones that follow each other together."""
    runs: list[Lengths] = []
    for chain in chains:
        if runs and runs[-1][:2] == (chain.steps, chain.records):
            runs[-1] = (chain.steps, chain.records, runs[-1][2] + 1)
        else:
            runs.append((chain.steps, chain.records, 1))
    return runs


# -- What a release says of its groups -------------------------------------------------------------------------------


class GroupsRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The public groups of records that values are of: those of the first group come first, then those of the next.

    Parameters
    ----------
    by : list of str
        The groupings, such as ``hour(time)`` and ``sex``.
    cells : list of list of str
        For each group its label under every grouping.
    records : list of int
        The public number of observed records, or of rows, of each group.
    divided_by : list of int or None
        What the values of each group are divided by, where they are shares or means. The query's Lipschitz constant,
        the noise and its unit are those before.
    error_95 : list of float
        For each group the error that one of its noisy values exceeds with probability at most 5%. Where outputs have
        errors of different sizes (``accuracy_95.outputs``) it is the largest; that of each output is in proportion.
    """

    by: list[str]
    cells: list[list[str]]
    records: list[int]
    divided_by: list[int] | None
    error_95: list[float]

    @property
    def most_error(self) -> float:
        """By what errors before the division are multiplied, in the group where that is most."""
        return 1.0 if self.divided_by is None else 1 / min(self.divided_by)


# -- What may be done to a noisy value -------------------------------------------------------------------------------


class Projected(FrozenRecord, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="projected"):
    """Some outputs are numbers that are not negative and have a public total: the nearest such were taken.

    Parameters
    ----------
    outputs : list of list of int
        Places of the outputs that have a total together.
    totals : list of float
        Their totals.
    """

    outputs: list[list[int]]
    totals: list[float]

    def __str__(self) -> str:
        if len(self.totals) == 1:
            return f"projected to the nearest non-negative vector of total {self.totals[0]:g}"
        return "projected, column by column, to the nearest non-negative counts of its total"

    def of(self, noisy: list[float]) -> list[float]:
        """Return the nearest possible values.

        Raises
        ------
        ValueError
            If the totals are not those of distinct outputs, or no numbers have them.
        """
        places = [place for block in self.outputs for place in block]
        distinct = len(set(places)) == len(places) and all(0 <= place < len(noisy) for place in places)
        if not distinct or not all(self.outputs) or len(self.outputs) != len(self.totals):
            raise ValueError("postprocessing names outputs that are not there, or one of them twice")
        if not all(0 <= total < math.inf for total in self.totals):
            raise ValueError("postprocessing has a total that is negative")
        found = np.array(noisy)
        for block, total in zip(self.outputs, self.totals, strict=True):
            found[list(block)] = project_to_simplex(found[list(block)], total)
        return [float(v) for v in found]


class Ranged(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """Outputs that lie in one public range.

    Parameters
    ----------
    low, high : float
        The range.
    """

    low: float
    high: float

    def within(self, values: Sequence[float]) -> list[float]:
        """Return the values inside the range: what is outside goes to its nearer end.

        Raises
        ------
        ValueError
            If the range is none.
        """
        if not self.low <= self.high:
            raise ValueError("postprocessing has a range whose low end is above its high end")
        return [min(max(v, self.low), self.high) for v in values]


class Clipped(Ranged, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="clipped"):
    """Every output lies in a public range: what was outside went to its nearer end."""

    def __str__(self) -> str:
        return f"clipped to the possible range {self.low:g} to {self.high:g}"

    def of(self, noisy: list[float]) -> list[float]:
        """Return the values inside the range; a ``ValueError`` if it is none."""
        return self.within(noisy)


class ClippedByGroup(FrozenRecord, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="clipped-by-group"):
    """The outputs of every group lie in a public range: what was outside went to its nearer end.

    Parameters
    ----------
    outputs : int
        How many outputs each group has; those of one group after another.
    low, high : list of float
        The range of each group.
    """

    outputs: int
    low: list[float]
    high: list[float]

    def __str__(self) -> str:
        return "clipped, group by group, to the possible range"

    def of(self, noisy: list[float]) -> list[float]:
        """Return the values inside the ranges.

        Raises
        ------
        ValueError
            If a range is none, or there is not one for each group.
        """
        m = self.outputs
        if m < 1 or not len(noisy) == m * len(self.low) == m * len(self.high):
            raise ValueError("postprocessing has not one range for each group")
        if not all(low <= high for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError("postprocessing has a range whose low end is above its high end")
        return [min(max(v, self.low[i // m]), self.high[i // m]) for i, v in enumerate(noisy)]


class Ascending(Ranged, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="ascending"):
    """Outputs never fall from one to the next, and lie in a public range: the nearest such were taken."""

    def __str__(self) -> str:
        return f"made ascending, within {self.low:g} to {self.high:g}"

    def of(self, noisy: list[float]) -> list[float]:
        """Return the nearest ascending values inside the range; a ``ValueError`` if it is none."""
        return self.within(ascending(noisy))


PostProcessing = Projected | Clipped | ClippedByGroup | Ascending


def ascending(values: Sequence[float]) -> list[float]:
    """Return the nearest numbers, in Euclidean distance, that never fall: neighbours that do are pooled to their mean.

    Examples
    --------
    >>> ascending([1.0, 3.0, 2.0, 4.0])
    [1.0, 2.5, 2.5, 4.0]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        total, count = value, 1
        while pools and pools[-1][0] * count >= total * pools[-1][1]:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]


def project_to_simplex(values: NDArray[np.float64], total: float = 1.0) -> NDArray[np.float64]:
    """Return the nearest vector, in Euclidean distance, that is non-negative and has the given sum.

    Parameters
    ----------
    values : (m,) ndarray
        Any numbers.
    total : float, default 1
        The sum wanted, at least 0.

    Returns
    -------
    (m,) ndarray
        ``max(values − t, 0)`` for the one t that gives the sum.

    Examples
    --------
    >>> project_to_simplex(np.array([0.7, 0.5, -0.1]))
    array([0.6, 0.4, 0. ])
    """
    if not total > 0:
        return np.zeros(values.size)
    with np.errstate(over="ignore", invalid="ignore"):  # a record may say any numbers
        values = values - values.max()  # the same vector is nearest, and a total is never lost beside large values
        values = np.maximum(values, -2 * total)  # what is farther below the largest than the total is 0 in any case
        falling = np.sort(values)[::-1]
        thresholds = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
        last = int(np.flatnonzero(falling > thresholds)[-1])
        return np.maximum(values - thresholds[last], 0.0)


# -- Quantiles of a cumulative distribution with noise ---------------------------------------------------------------

_ROUNDED = 1e-9
"""By how much, as a share of the records, sums of doubles may be off; intervals are wider by it."""


class QuantileRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The state up to which a share of the records is; with 95% probability it is from ``low`` to ``high``."""

    share: float
    state: str
    low: str
    high: str


def quantiles_of(
    shares: Sequence[float], noisy: Sequence[float], errors: NDArray[np.float64], states: Sequence[str], total: float
) -> list[QuantileRecord]:
    """Return quantiles with their intervals.

    Parameters
    ----------
    shares : sequence of float
        Which, between 0 and 1.
    noisy : sequence of float
        The values up to each state but the last.
    errors : (k − 1,) ndarray
        What they are all within.
    states : sequence of str
        All states, from the lowest to the highest.
    total : float
        The value up to the last state, which is public.

    Examples
    --------
    >>> quantiles_of([0.5], [0.2, 0.45, 0.9], np.full(3, 0.1), ["a", "b", "c", "d"], 1.0)
    [QuantileRecord(share=0.5, state='c', low='b', high='c')]
    """
    middle = [*ascending(noisy), math.inf]
    most = [*(np.array(noisy) + errors + _ROUNDED * total), math.inf]
    least = [*(np.array(noisy) - errors - _ROUNDED * total), math.inf]
    found: list[QuantileRecord] = []
    for share in shares:
        state, low, high = (
            next(x for x, value in enumerate(values) if value >= share * total) for values in (middle, most, least)
        )
        found.append(QuantileRecord(share, states[state], states[low], states[high]))
    return found


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
    def chain_lengths(self) -> list[tuple[ChainLength, int]]:
        """The chains that are named, and how many there are of each.

        Raises
        ------
        ParameterError
            If there is no such chain.
        """
        unknown: list[list[int]] = [[]] * len(self.lengths)
        named = zip(self.lengths, self.places or unknown, strict=True)
        return [(ChainLength(steps, records, tuple(own)), times) for (steps, records, times), own in named]


class LedgerRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The place of a release in a ledger: what all releases up to it leak together at most, and by which bound.

    ``previous`` is the digest of the ledger's entry before it, or of the ledger as it began. It depends on all entries
    before, and only who has the ledger can compute it. In one history of a ledger no two releases have the same one.
    """

    entry: int
    previous: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
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
