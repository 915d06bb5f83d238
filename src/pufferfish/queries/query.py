r"""What is asked of the data: statistics that are linear in the states of the records.

Every query here is ``unit · W @ counts``, with W an integer matrix (outputs × states) and a public unit. From W
alone follows how far one record can move the answer in L1 when it goes from state x to x',

.. math:: d(x, x') = \mathrm{unit} \cdot \sum_m |W_{m,x} - W_{m,x'}|,

whose largest entry is the query's Lipschitz constant L. Nothing is typed in. Because W @ counts is an integer vector,
noise is integer noise, and no floating-point rounding stands between the proof and the release.

Relative queries divide by n, the number of observed records, which is public: dividing is post-processing. Records may
count with whole-number factors of their own, 0 for those that are not read: then d is multiplied by a record's factor.
In a network every node is a record with states of its own, and may count in some outputs only.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import FrozenDict, ReadOnly, read_only
from pufferfish.queries.on_pairs import JointQuery, Measured, StepQuery, exactly, largest_distances

__all__ = [
    "BoundQuery",
    "FunctionQuery",
    "JointQuery",
    "Line",
    "LinearQuery",
    "Query",
    "QueryKind",
    "RecordQuery",
    "StepQuery",
    "Variables",
    "Words",
    "l1_distances",
]

Variables = Mapping[Any, tuple[str, ...]]
"""Names of records, with the states of each."""


@dataclass(frozen=True, slots=True, eq=False)
class Line(ReadOnly):
    """A vector query that is determined by one whole number: its outputs are a constant plus ``direction · number``.

    ``values``, of shape (k,), are what a record in each state adds to the number; the least is 0 and they have no
    common divisor. ``norm`` is the L1 length of the direction: how far the outputs move when the number moves by 1.
    """

    values: NDArray[np.int64]
    norm: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))


@dataclass(frozen=True, eq=False)
class LinearQuery(Measured):
    """A query bound to the states of a model and a number of records: ``unit · weights @ counts``.

    Parameters
    ----------
    weights : (m, k) ndarray of int64
        Contribution of one record in each state to each output, in units.
    factors : (n,) or (n, m) ndarray of int, optional
        With what factor each record of the one chain, or of one row of a network's table, counts, in all outputs or in
        each of them, 0 where it is not read; by default 1 for all.
    domains : tuple of ndarray of int, optional
        Places in the model's states of those that each node of a network can have, in the node's order.
    blocks : tuple of (tuple of int, int), optional
        Outputs that together count every row of a network's table once, with the place of the node that they count.
    divided_by : int, optional
        The public number of records, or rows, that shares and means are of; None where nothing is divided.
    """

    weights: NDArray[np.int64]
    unit: Fraction
    labels: tuple[str, ...]
    description: str
    factors: NDArray[np.int64] | NDArray[np.int8] | None = None
    domains: tuple[NDArray[np.intp], ...] | None = None
    blocks: tuple[tuple[tuple[int, ...], int], ...] = ()
    divided_by: int | None = None

    def __post_init__(self) -> None:
        self._keep(weights=read_only(self.weights))
        if self.factors is not None:
            self._keep(factors=read_only(self.factors))
        if self.domains is not None:
            self._keep(domains=tuple(map(read_only, self.domains)))

    @property
    def unit_distance(self) -> NDArray[np.float64]:
        """L1 change of ``weights @ counts`` when one record goes from state x to x'; shape (k, k), whole numbers.

        Where records differ, the largest over those that can have both states.
        """
        if self.domains is not None:
            return largest_distances(self.domains, self.distances, self.weights.shape[1])
        if self.factors is not None and self.by_output:
            return np.max([self.distance_of(place) for place in range(len(self.factors))], axis=0)
        return l1_distances(self.weights).astype(np.float64) * self.largest_factor

    @cached_property
    def distances(self) -> tuple[NDArray[np.float64], ...]:
        """:meth:`distance_of` for every node of a network; nodes of the same states that count alike share theirs."""
        known: dict[tuple[tuple[int, ...], bytes], NDArray[np.float64]] = {}
        distances: list[NDArray[np.float64]] = []
        for place in range(len(self.domains or ())):
            moves = self._moves(place)
            key = moves.shape, moves.tobytes()
            if key not in known:
                known[key] = read_only(l1_distances(moves).astype(np.float64))
            distances.append(known[key])
        return tuple(distances)

    def distance_of(self, place: int) -> NDArray[np.float64]:
        """Return the L1 change, in units, when one node of a network changes its state; shape (k_node, k_node)."""
        return l1_distances(self._moves(place)).astype(np.float64)

    def _moves(self, place: int) -> NDArray[np.int64]:
        """Return what each state of one node adds to the outputs that it moves."""
        columns = self._counted(place)[1]
        return columns[np.any(columns != columns[:, :1], axis=1)]

    def _counted(self, place: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Return the outputs that may read one node, of many only few, and what each of its states adds to them."""
        read, columns = np.arange(len(self.weights)), self.weights
        factors = None if self.factors is None else self.factors[place]
        if factors is not None and factors.ndim:
            read = np.flatnonzero(factors)
            columns, factors = columns[read], factors[read]
        columns = columns if self.domains is None else columns[:, self.domains[place]]
        return read, columns if factors is None else columns * factors[..., None]

    @property
    def spans(self) -> NDArray[np.int64]:
        """How many units one record, or all cells of one row of a network's table, can move each output; shape (m,)."""
        if self.domains is None:
            return (self.weights.max(axis=1) - self.weights.min(axis=1)) * self.largest_factor
        total = np.zeros(len(self.weights), dtype=np.int64)
        for place in range(len(self.domains)):
            read, columns = self._counted(place)
            total[read] += columns.max(axis=1) - columns.min(axis=1)
        return total

    def contributions_of(self, place: int) -> NDArray[np.int64]:
        """Return what each state of one node of a network adds to each output, in units; shape (m, k_node)."""
        columns = self.weights if self.domains is None else self.weights[:, self.domains[place]]
        return columns if self.factors is None else columns * self.factors[place][..., None]

    def reads(self, place: int) -> bool:
        """Whether a record counts at all."""
        return self.factors is None or bool(np.any(self.factors[place]))

    @property
    def largest(self) -> int:
        """The most that one record can add to an output, without sign, in units."""
        return int(np.max(np.abs(self.weights))) * self.largest_factor

    @property
    def largest_factor(self) -> int:
        """The largest factor, without sign, with which a record counts."""
        return 1 if self.factors is None else int(np.max(np.abs(self.factors)))

    @property
    def by_output(self) -> bool:
        """Whether a record counts in each output with a factor of its own, as columns that are told one by one do."""
        return self.factors is not None and self.factors.ndim == 2

    @property
    def line(self) -> Line | None:
        """The one number that determines all outputs, if there is one."""
        if self.by_output:
            return None
        moves = self.weights - self.weights[:, :1]
        if not moves.any():  # all states count alike, as the only one does
            return Line(np.zeros(moves.shape[1], dtype=np.int64), 1)
        first: NDArray[np.int64] = moves[:, int(np.flatnonzero(moves.any(axis=0))[0])]
        direction = first // int(np.gcd.reduce(first))
        along = int(np.flatnonzero(direction)[0])
        values: NDArray[np.int64] = moves[along] // direction[along]
        if not np.array_equal(direction[:, None] * values, moves):
            return None
        values = values - values.min()
        common = int(np.gcd.reduce(values))
        return Line(values // common, int(np.abs(direction).sum()) * common)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells this query from others on the same states."""
        domains = None if self.domains is None else tuple(map(exactly, self.domains))
        return exactly(self.weights), self.unit, None if self.factors is None else exactly(self.factors), domains

    def value(self, states: Sequence[int]) -> tuple[int, ...]:
        """Return the query's value, in units, on records in given states."""
        outputs = len(self.weights)
        factors = np.ones(len(states), dtype=np.int64) if self.factors is None else self.factors
        factors = np.broadcast_to(factors.reshape(len(states), -1), (len(states), outputs))
        columns = [(self.weights[:, x].tolist(), c) for x, c in zip(states, factors.tolist(), strict=True)]
        return tuple(sum(column[m] * c[m] for column, c in columns) for m in range(outputs))

    @property
    def distance(self) -> NDArray[np.float64]:
        """L1 change of the query when one record goes from state x to x'; shape (k, k)."""
        return self.unit_distance * float(self.unit)


@dataclass(frozen=True, slots=True, eq=False)
class FunctionQuery(ReadOnly):
    """A query that is any function of the whole database, with whole-number outputs.

    ``function`` takes a dict from the records' names to their states, and returns the outputs in units.
    """

    function: Callable[[Mapping[Any, str]], tuple[int, ...]]
    unit: Fraction
    labels: tuple[str, ...]
    description: str

    unit_lipschitz: ClassVar[None] = None  # how far one record moves the outputs is not known of a function
    lipschitz: ClassVar[None] = None
    divided_by: ClassVar[None] = None


class Words(str):
    """A query in words, which say of how many records, or rows, it is: the number stands after ``before``.

    Examples
    --------
    >>> words = Words("share of the", 1000, "records", "in {walking}")
    >>> str(words), words.of("each group")
    ('share of the 1,000 records in {walking}', 'share of the records of each group in {walking}')
    """

    __slots__ = ("_parts",)
    _parts: tuple[str, int, str, str]

    def __new__(cls, before: str, number: int, what: str, after: str) -> "Words":
        """Make the words of their parts."""
        made = super().__new__(cls, f"{before} {number:,} {what} {after}".rstrip())
        made._parts = (before, number, what, after)
        return made

    def of(self, whose: str) -> str:
        """Return the query of the records of each group, or of the subject: their number is another one for each."""
        before, _, what, after = self._parts
        return f"{before} {what} of {whose} {after}".rstrip()

    def __add__(self, more: str) -> "Words":
        before, number, what, after = self._parts
        return Words(before, number, what, after + more)

    def __reduce__(self) -> tuple[Any, ...]:
        return Words, self._parts


RecordQuery = LinearQuery | StepQuery | JointQuery
"""Queries of which it is known how far one record moves them."""

BoundQuery = RecordQuery | FunctionQuery


def l1_distances(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the L1 distance of every pair of columns of (m, k) whole numbers, without an array of (m, k, k).

    |a − b| = |a| + |b| where one of them is 0, so each output costs the square of the states that it counts: a
    histogram of k states k² in all, not k³.
    """
    sizes = np.abs(weights).sum(axis=0)
    distances = sizes[:, None] + sizes[None, :]
    for row in weights:
        counted = np.flatnonzero(row)
        entries = row[counted]
        sums = np.abs(entries)[:, None] + np.abs(entries)[None, :]
        distances[np.ix_(counted, counted)] += np.abs(entries[:, None] - entries[None, :]) - sums
    return distances


@dataclass(frozen=True, slots=True)
class QueryKind:
    """What is known of every query of a kind, on any model and data: what its answers are numbers of, and how it moves.

    ``moves`` is how many units one record moves the outputs, None where that is a matter of the query's values;
    ``relative`` whether the answers are divided by the public number of records; ``of_steps`` whether steps from record
    to record are counted: then the query binds to a :class:`StepQuery`.
    """

    measure: str
    moves: int | None
    relative: bool = False
    of_steps: bool = False


class Query(ABC):
    """A statistic of the states in a table; bind it to a model's states to know its noise."""

    kinds: ClassVar[Mapping[str, QueryKind]] = FrozenDict()
    """The words that :attr:`kind` can be, with what is known of each."""

    of_some_records: ClassVar[bool] = False
    """Whether it says which records it reads, or how much each counts."""

    def __init_subclass__(cls) -> None:
        """Keep the kinds of a query read-only, as the query is."""
        super().__init_subclass__()
        cls.kinds = FrozenDict(cls.kinds)

    @abstractmethod
    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> BoundQuery:
        """Return the query on these states, for a table of ``records`` observed records: of a network nodes times rows.

        ``states`` are those of all nodes together in a network, whose ``variables`` are the names of the nodes with the
        states of each. A mechanism asks for it before it knows the table, and refuses a bound query that does not fit Θ
        itself: one of steps where Θ has no chains, and one of several columns where Θ has no network.
        """

    @property
    def kind(self) -> str:
        """Word for the query on the command line and in records: its only kind, or that of shares, or that of numbers.

        A query with several kinds of shares, or of numbers, says itself which one it is.
        """
        if len(self.kinds) == 1:
            return next(iter(self.kinds))
        relative = getattr(self, "relative", False)
        return next(word for word, known in self.kinds.items() if known.relative == relative)

    @property
    def known(self) -> QueryKind | None:
        """What is known of its kind; nothing of a function of the user's."""
        return self.kinds.get(self.kind)

    @property
    def is_histogram(self) -> bool:
        """Whether the outputs are all bins of one table, so that they sum to a public total."""
        return False

    @property
    def is_cumulative(self) -> bool:
        """Whether the outputs count the records up to each state, so that they never fall."""
        return False

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles that are asked for, as shares of the records; none of other queries."""
        return ()
