"""Statistics in which records count differently, or that are any function of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from pufferfish._base.checked import is_list, listed, whole_number
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.words import did_you_mean, names_of
from pufferfish.errors import QueryError
from pufferfish.queries.query import FunctionQuery, LinearQuery, Query, QueryKind, Variables
from pufferfish.theta.joint_distribution import exact_number
from pufferfish.theta.lengths import MOST_PLACED
from pufferfish.theta.states import state_label


def rows_of(records: int, variables: Variables | None) -> tuple[int, int]:
    """Return how many records a row of the table has, and how many rows there are; a chain is one row."""
    return (records, 1) if variables is None else (len(variables), records // len(variables))


def each_of(records: int, variables: Variables | None) -> tuple[int, int]:
    """Do what :func:`rows_of` does, for a query that has a factor for each record of a row."""
    places, rows = rows_of(records, variables)
    if places > MOST_PLACED:
        raise QueryError(
            f"the query reads certain records, but the chain has {places:,} records, more than the {MOST_PLACED:,} "
            "that are possible here: ask about all records, or about a shorter chain"
        )
    return places, rows


def records_named(records: Any, name: str) -> tuple[Any, ...]:
    """Return the names of records that a user gives: one or several, each once."""
    several = is_list(records)
    names: tuple[Any, ...] = tuple(records) if several else (records,)
    if not names or len({state_label(record) for record in names}) < len(names):
        raise QueryError(f"{name} has the records {records!r}, expected at least one name, each once")
    return names


def place_of(record: Any, places: Sequence[Any]) -> int:
    """Return which record a name means; names that read the same are the same."""
    label = state_label(record)
    labels = [state_label(name) for name in places]
    if label in labels:
        return labels.index(label)
    hint, known = did_you_mean(label, labels), names_of(labels)
    raise QueryError(f"there is no record {record!r}.{hint} Records: {known}")


def inner_query(
    query: Any, states: Sequence[str], records: int, name: str, variables: Variables | None = None
) -> LinearQuery:
    """Return a query that others restrict to some records, bound to states."""
    bound = query.bind(states, records) if isinstance(query, Query) and not query.of_some_records else None
    if isinstance(query, Query) and query.is_cumulative and variables is not None:
        raise QueryError(f"{query.kind} needs records with the same ordered states, such as those of a chain")
    if not isinstance(bound, LinearQuery):
        raise QueryError(f"{name} is of {query!r}, expected a query such as Count(state), Histogram() or Sum(values)")
    return bound


@dataclass(frozen=True)
class Restricted(ReadOnly, Query):
    """A query on some records only, which is of the same kind as that on all of them."""

    of_some_records: ClassVar[bool] = True
    query: Query

    @property
    def kind(self) -> str:
        """Word for the query."""
        return self.query.kind

    @property
    def known(self) -> QueryKind | None:
        """What is known of the query on all records."""
        return self.query.known

    @property
    def is_histogram(self) -> bool:  # pyrefly: ignore[bad-override]
        """Histograms of some records sum to their public number."""
        return self.query.is_histogram

    @property
    def is_cumulative(self) -> bool:  # pyrefly: ignore[bad-override]
        """A cumulative distribution of some records is one."""
        return self.query.is_cumulative

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles of some records that are asked for."""
        return self.query.quantiles


@dataclass(frozen=True)
class Window(Restricted):
    """A query on consecutive records of one chain only; the others have no loss of their own.

    Parameters
    ----------
    query : Query
        What is asked of them: a count, share, histogram, sum or mean.
    start, stop : int
        The first record, 0-based, and one past the last.

    Examples
    --------
    >>> from pufferfish.queries import Frequency
    >>> Window(Frequency("b"), 10, 20).bind(["a", "b"], records=100).description
    'share of the 10 records in {b}, of records 10 to 19'
    """

    start: int
    stop: int

    def __post_init__(self) -> None:
        for name, given in (("start", self.start), ("stop", self.stop)):
            try:
                self._keep(**{name: whole_number(given)})
            except TypeError:
                raise QueryError(f"{name} is {given!r}, expected a whole number: records from 0") from None

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> LinearQuery:
        """Bind to a model's states and the steps of its one chain."""
        places, rows = each_of(records, variables)
        if not 0 <= self.start < self.stop <= places:
            raise QueryError(
                f"the window is records {self.start} to {self.stop - 1}, and the chain has records 0 to {places - 1}: "
                "expected 0 <= start < stop <= length"
            )
        inner = inner_query(self.query, states, (self.stop - self.start) * rows, "Window", variables)
        factors = np.zeros(places, dtype=np.int64)
        factors[self.start : self.stop] = 1
        words = inner.description + f", of records {self.start} to {self.stop - 1}"
        return LinearQuery(inner.weights, inner.unit, inner.labels, words, factors, divided_by=inner.divided_by)


@dataclass(frozen=True, init=False)
class Weighted(ReadOnly, Query):
    """A query in which every record counts with a whole-number factor of its own.

    Parameters
    ----------
    query : Query
        What is asked: a count, share, histogram, sum or mean.
    factors : sequence of int
        One factor per record of the one chain, 0 where a record is not read; negative ones count against. Shares and
        means divide by the number of records in the chain.

    Examples
    --------
    >>> from pufferfish.queries import Count
    >>> Weighted(Count("b"), [1, 2, 0, -1]).bind(["a", "b"], records=4).unit_lipschitz
    2
    """

    query: Query
    factors: tuple[int, ...]

    def __init__(self, query: Query, factors: Sequence[int]) -> None:
        expected = "whole numbers: one per record"
        try:
            whole = tuple(whole_number(c) for c in listed(factors, "factors", expected, QueryError))
        except TypeError:
            raise QueryError(f"factors is {factors!r}, expected whole numbers, one for each record") from None
        if not any(whole) or max(abs(c) for c in whole) > 2**31:
            raise QueryError("factors are all 0, or one is beyond 2^31: expected some whole number other than 0")
        self._keep(query=query, factors=whole)

    of_some_records = True

    @property
    def kind(self) -> str:
        """Word for the query."""
        return f"weighted {self.query.kind}"

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> LinearQuery:
        """Bind to a model's states and the steps of its one chain."""
        places, _ = rows_of(records, variables)
        if len(self.factors) != places:
            raise QueryError(f"there are {len(self.factors)} factors for {places} records: expected one per record")
        inner = inner_query(self.query, states, records, "Weighted", variables)
        if self.query.quantiles:
            raise QueryError("quantiles do not work with factors: ask for Weighted(CDF(), factors)")
        words = inner.description + ", each with a factor of its own"
        factors = np.array(self.factors, dtype=np.int64)
        return LinearQuery(inner.weights, inner.unit, inner.labels, words, factors, divided_by=inner.divided_by)


@dataclass(frozen=True, init=False)
class Function(ReadOnly, Query):
    """Any function of the whole database, for models that list their databases.

    Parameters
    ----------
    function : callable
        Takes a dict from the records' names to their states, returns a number or a sequence of numbers, all of them
        multiples of ``unit``.
    labels : str or sequence of str, default "value"
        Names of the outputs.
    unit : int, float or Fraction, default 1
        The public grid on which the outputs lie.

    Examples
    --------
    >>> largest = Function(lambda row: max(int(v) for v in row.values()), "largest")
    >>> largest.bind(["0", "1"], records=2).function({0: "0", 1: "1"})
    (1,)
    """

    function: Callable[[Mapping[Any, str]], Any]
    labels: tuple[str, ...]
    unit: Fraction

    def __init__(
        self, function: Callable[[Mapping[Any, str]], Any], labels: Any = "value", unit: float | Fraction = 1
    ) -> None:
        if not callable(function):
            raise QueryError(f"function is {function!r}, expected one that takes a dict from records to states")
        grid = exact_number(unit)
        if grid is None or grid <= 0:
            raise QueryError(f"unit is {unit!r}, expected a positive number: the grid on which the outputs lie")
        names = (labels,) if isinstance(labels, str) else listed(labels, "labels", "names of the outputs", QueryError)
        self._keep(function=function, labels=tuple(str(label) for label in names), unit=grid)

    @property
    def kind(self) -> str:
        """Word for the query."""
        return "function"

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> FunctionQuery:
        """Bind to a model's states and number of records."""
        return FunctionQuery(
            self._outputs, self.unit, self.labels, f"{', '.join(self.labels)} of the {records:,} records"
        )

    def _outputs(self, row: Mapping[Any, str]) -> tuple[int, ...]:
        answer = self.function(dict(row))
        outputs: list[Any] = list(answer) if isinstance(answer, Sequence | np.ndarray) else [answer]
        if len(outputs) != len(self.labels):
            raise QueryError(f"the function returned {len(outputs)} numbers for {len(self.labels)} labels")
        whole: list[int] = []
        for output in outputs:
            number = exact_number(int(output) if isinstance(output, bool | np.bool_) else output)
            if number is None or (number / self.unit).denominator != 1:
                raise QueryError(
                    f"the function returned {output!r}, which is not a multiple of the unit {float(self.unit):g}: "
                    "give a unit that all outputs are multiples of, because noise is drawn in multiples of it"
                )
            whole.append(int(number / self.unit))
        return tuple(whole)
