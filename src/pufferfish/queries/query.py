"""What is asked of the data: statistics that are linear in the states of the records, ``unit · W @ counts``.

From the integer matrix W alone follows how far one record moves the answer in L1 when it goes from state x to x', which
is d(x, x') = unit · Σ_m |W_{m,x} − W_{m,x'}|; its largest entry is the Lipschitz constant L. W @ counts is an integer
vector, so noise is integer noise, and no rounding stands between the proof and the release. Relative queries divide by
the public number of observed records. Records may count with whole-number factors of their own.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._base.frozen import FrozenDict, ReadOnly, read_only
from pufferfish.errors import QueryError

Variables = Mapping[Any, tuple[str, ...]]  # names of records, with the states of each


def exactly(numbers: ArrayLike) -> tuple[object, ...]:
    """Return what tells an array from all others; the same bytes are other numbers in another type."""
    array = np.asarray(numbers)
    return array.dtype.str, array.shape, array.tobytes()


def largest_distances(
    domains: Sequence[NDArray[np.intp]], distances: Sequence[NDArray[np.float64]], k: int
) -> NDArray[np.float64]:
    """Return for every pair of a model's k states the largest distance over the nodes that can have both."""
    largest = np.zeros((k, k))
    alike = {(d.tobytes(), id(far)): (d, far) for d, far in zip(domains, distances, strict=True)}
    for domain, distance in alike.values():
        pairs = np.ix_(domain, domain)
        largest[pairs] = np.maximum(largest[pairs], distance)
    return largest


class Measured(ReadOnly):
    """A bound query of which it is known how far one record moves it."""

    __slots__ = ()

    @property
    def unit_lipschitz(self: Any) -> int:
        """Largest L1 change of the outputs, in units, when one record alone changes."""
        return int(self.unit_distance.max())

    @property
    def lipschitz(self: Any) -> float:
        """Largest L1 change of the query when one record changes."""
        return float(self.unit * self.unit_lipschitz)


# -- A query bound to records that counts their states ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Line(ReadOnly):
    """A vector query that is determined by one whole number: its outputs are a constant plus ``direction · number``.

    ``values``, of shape (k,), are what a record in each state adds to the number, from 0 on; ``norm`` how far the
    outputs move, in L1, when it moves by 1.
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
    unit, labels, description : Fraction, tuple of str, str
        What one unit is worth, the names of the m outputs, and the query in words.
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


# -- A query bound to chains that counts steps -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StepQuery(Measured):
    """A query bound to the states of chains that counts steps, from a record to the next, in one output each, or none.

    A step from state x to state y counts in the output ``outputs[x, y]``, of shape (k, k), −1 where it counts in none.
    The rest is as in :class:`LinearQuery`.
    """

    outputs: NDArray[np.int64]
    unit: Fraction
    labels: tuple[str, ...]
    description: str
    divided_by: int | None = None

    def __post_init__(self) -> None:
        self._keep(outputs=read_only(self.outputs))

    @property
    def unit_step(self) -> int:
        """L1 change of the outputs, in units, when one step alone is changed: to another output, or to none."""
        outputs = np.unique(self.outputs)
        counted = int(np.count_nonzero(outputs >= 0))
        return 2 if counted > 1 else counted if outputs.size > 1 else 0

    @cached_property
    def unit_distance(self) -> NDArray[np.float64]:
        """The L1 change, in units, when one record goes from state x to x', or a bound on it; shape (k, k)."""
        if len(self.labels) > 1:
            return read_only(2 * self.unit_step * (1.0 - np.eye(len(self.outputs))))
        counted = (self.outputs >= 0).astype(np.float64)
        # the step into the record, from any state or from none, and the step out of it: any two of them together
        into, out = counted.T[:, None, :] - counted.T[None, :, :], counted[:, None, :] - counted[None, :, :]
        most = np.max(into, axis=2, initial=0.0) + np.max(out, axis=2, initial=0.0)
        return read_only(np.maximum(most, most.T))

    @property
    def by_records(self) -> bool:
        """Whether a change of a record moves the outputs no farther than one of its two steps: losses of records do."""
        return self.unit_lipschitz <= self.unit_step

    @property
    def of_groups(self) -> bool:
        """Whether noise for all records together is enough where each step counts in the public group that it leads to.

        A loss of records is less than that of both steps where what one adds is taken off by the other, as where a bout
        begins a record later: in two groups both changes are seen. Steps move the outputs of their own group alone.
        """
        return not self.by_records

    @property
    def losses(self) -> tuple[NDArray[np.float64], int]:
        """What is charged at noise of one unit: to records, shape (k, k), or to a step; see :attr:`by_records`."""
        return (self.unit_distance, 0) if self.by_records else (np.zeros(self.outputs.shape), self.unit_step)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells this query from others on the same states."""
        return "steps", exactly(self.outputs), self.unit

    def counted(self, transitions: Sequence[Sequence[int]]) -> list[int]:
        """Return the query's value, in units, from how often each state is followed by each."""
        totals = [0] * len(self.labels)
        for row, counts in zip(self.outputs.tolist(), transitions, strict=True):
            for output, count in zip(row, counts, strict=True):
                if output >= 0:
                    totals[output] += count
        return totals


_MOST_COMBINATIONS = 100_000  # combinations of states that a table has at most: each of them is a number of the release


def refuse_many_combinations(sizes: Mapping[str, int]) -> None:
    """Refuse to count columns together, given the number of states of each, that have too many combinations."""
    combinations = prod(sizes.values())
    if combinations > _MOST_COMBINATIONS:
        times = ", ".join(f"{name}: {n}" for name, n in list(sizes.items())[:8]) + (", …" if len(sizes) > 8 else "")
        raise QueryError(
            f"{len(sizes)} columns together have {combinations:,} combinations of states ({times}), but at most "
            f"{_MOST_COMBINATIONS:,} are possible: name fewer columns, or use nodes with fewer states"
        )


@dataclass(frozen=True, eq=False)
class JointQuery(Measured):
    """A query bound to the nodes of a network: the rows of a table in each combination of the states of some nodes.

    When one of ``nodes``, the places of those that are read, changes its state, its row goes from one output to
    another: that moves the outputs by 2 in L1. Outputs are in the order of the states, those of the last node change
    fastest. The rest is as in :class:`LinearQuery`.
    """

    nodes: tuple[int, ...]
    domains: tuple[NDArray[np.intp], ...]
    unit: Fraction
    labels: tuple[str, ...]
    description: str
    divided_by: int | None = None

    def __post_init__(self) -> None:
        self._keep(domains=tuple(map(read_only, self.domains)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of states of each node that is read."""
        return tuple(len(self.domains[node]) for node in self.nodes)

    def reads(self, place: int) -> bool:
        """Whether a node counts at all."""
        return place in self.nodes

    @cached_property
    def distances(self) -> tuple[NDArray[np.float64], ...]:
        """The L1 change, in units, when one node of the network changes its state: of shape (k_node, k_node) each."""
        return tuple(
            read_only((self.unit_lipschitz if self.reads(place) else 0) * (1.0 - np.eye(len(domain))))
            for place, domain in enumerate(self.domains)
        )

    @property
    def unit_distance(self) -> NDArray[np.float64]:
        """The largest of :attr:`distances` for every pair of the model's states; shape (k, k)."""
        return largest_distances(self.domains, self.distances, 1 + max(int(domain.max()) for domain in self.domains))

    @property
    def unit_lipschitz(self) -> int:
        """L1 change of the outputs, in units, when one record alone changes: one output loses a row, another has it."""
        return 2

    @property
    def key(self) -> tuple[object, ...]:
        """What tells this query from others on the same network."""
        return "joint", self.nodes, self.unit, tuple(map(exactly, self.domains)), tuple(map(exactly, self.distances))

    def value(self, places: Sequence[int]) -> list[int]:
        """Return the outputs of one row, given the place of each node's state among the model's states."""
        coordinates = [int(np.flatnonzero(self.domains[node] == places[node])[0]) for node in self.nodes]
        outputs = [0] * len(self.labels)
        outputs[int(np.ravel_multi_index(coordinates, self.shape))] = 1
        return outputs


# -- Other bound queries, and what a query is before it is bound -------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class FunctionQuery(ReadOnly):
    """A query that is any function of the database, a dict from records to states, with outputs in whole units."""

    function: Callable[[Mapping[Any, str]], tuple[int, ...]]
    unit: Fraction
    labels: tuple[str, ...]
    description: str

    unit_lipschitz: ClassVar[None] = None  # how far one record moves the outputs is not known of a function
    lipschitz: ClassVar[None] = None
    divided_by: ClassVar[None] = None


class Words(str):
    """A query in words, which say of how many records, or rows, it is: the number stands after ``before``.

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


RecordQuery = LinearQuery | StepQuery | JointQuery  # queries of which it is known how far one record moves them

BoundQuery = RecordQuery | FunctionQuery


def per_record(relative: bool, records: int, unit: Fraction = Fraction(1)) -> dict[str, Any]:
    """Return the unit of a query, and what it divides by: the public number of records, or rows, if it is relative."""
    return {"unit": unit / records, "divided_by": records} if relative else {"unit": unit, "divided_by": None}


def share_or_number(relative: bool) -> str:
    """Return how the words of a query begin that counts records, or rows."""
    return f"{'share' if relative else 'number'} of the"


def l1_distances(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the L1 distances of all columns of (m, k) whole numbers, at a cost of k² for a histogram, not k³."""
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
    """What is known of every query of a kind, on any model and data.

    Its answers are numbers of ``measure``; one record ``moves`` the outputs by so many units, None where that is a
    matter of the query's values; they may be divided by the public number of records (``relative``), or count steps.
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

    is_histogram: bool = False
    """Whether the outputs are all bins of one table, so that they sum to a public total."""

    is_cumulative: bool = False
    """Whether the outputs count the records up to each state, so that they never fall."""

    def __init_subclass__(cls) -> None:
        """Keep the kinds of a query read-only, as the query is."""
        super().__init_subclass__()
        cls.kinds = FrozenDict(cls.kinds)

    @abstractmethod
    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> BoundQuery:
        """Return the query on these states, for a table of ``records`` observed records: of a network nodes times rows.

        ``states`` are those of all nodes together in a network, whose ``variables`` are the names of the nodes with the
        states of each.
        """

    @property
    def kind(self) -> str:
        """Word for the query on the command line and in records: its only kind, that of shares, or that of numbers."""
        if len(self.kinds) == 1:
            return next(iter(self.kinds))
        relative = getattr(self, "relative", False)
        return next(word for word, known in self.kinds.items() if known.relative == relative)

    @property
    def known(self) -> QueryKind | None:
        """What is known of its kind; nothing of a function of the user's."""
        return self.kinds.get(self.kind)

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles that are asked for, as shares of the records; none of other queries."""
        return ()
