"""Statistics of how many records are in which state: counts, shares, histograms, sums and means of a value, quantiles.

Ordered states, such as bins of a number, are in the order of the model, from the lowest to the highest. A cumulative
distribution is the number of records up to each state but the last; that of all is public. Quantiles follow from it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import is_list, listed, real_number, truth
from pufferfish._base.frozen import FrozenDict, ReadOnly
from pufferfish._base.words import did_you_mean, names_of
from pufferfish._core.strategies import prefixes
from pufferfish.errors import QueryError
from pufferfish.queries.query import (
    LinearQuery,
    Query,
    QueryKind,
    StepQuery,
    Variables,
    Words,
    per_record,
    share_or_number,
)
from pufferfish.theta.states import state_label

# -- Statistics of ordered states ------------------------------------------------------------------------------------


def named_quantiles(shares: Sequence[float]) -> str:
    """Return how a query's description names its quantiles.

    >>> named_quantiles([0.1, 0.5])
    'the quantiles 0.1, 0.5'
    """
    return f"the quantiles {', '.join(repr(share) for share in shares)}"


class _Cumulative(ReadOnly, Query):
    """What counts the records up to each state."""

    relative: bool
    is_cumulative = True

    @property
    def _asked(self) -> str:
        return f", for {named_quantiles(self.quantiles)}" if self.quantiles else ""

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> LinearQuery:
        """Bind to a model's states, from the lowest to the highest, and the public number of records."""
        if variables is not None:
            raise QueryError(f"{self.kind} needs records with the same ordered states, such as those of a chain")
        return LinearQuery(
            prefixes(len(states)),
            labels=tuple(f"up to {state}" for state in states[:-1]),
            description=Words(
                share_or_number(self.relative), records, "records", f"up to each of {len(states)} states{self._asked}"
            ),
            **per_record(self.relative, records),
        )


@dataclass(frozen=True)
class CDF(_Cumulative):
    """Cumulative distribution of ordered states: the records up to each state but the last.

    ``relative`` (bool, default True): shares of the records (dividing by their public number) rather than counts.

    Examples
    --------
    >>> CDF(relative=False).bind(["<200", "200-400", ">=400"], records=100).labels
    ('up to <200', 'up to 200-400')
    """

    relative: bool = True  # pyrefly: ignore[bad-override]

    def __post_init__(self) -> None:
        truth(self.relative, "relative", QueryError)

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "cdf": QueryKind("share of records", None, relative=True),
        "cdf-counts": QueryKind("records", None),
    }


@dataclass(frozen=True, init=False)
class Quantiles(_Cumulative):
    """Quantiles of ordered states, with intervals: the state up to which a share of the records is.

    The cumulative distribution gets the noise; quantiles and intervals follow from it. With 95% probability all
    intervals hold together.

    ``shares`` (float or sequence of float): which quantiles: shares of the records, strictly between 0 and 1, such as
    0.5 for the median.

    Examples
    --------
    >>> Quantiles([0.5, 0.1]).shares
    (0.1, 0.5)
    """

    shares: tuple[float, ...]
    relative: ClassVar[bool] = True  # pyrefly: ignore[bad-override]

    def __init__(self, shares: Any) -> None:
        several: list[Any] = list(shares) if is_list(shares) else [shares]
        numbers: set[float] = set()
        for share in several:
            number = real_number(share)
            if number is None or not 0 < number < 1:
                raise QueryError(f"quantiles: {share!r} is not a share above 0 and below 1, such as 0.5 for the median")
            numbers.add(number)
        if not numbers:
            raise QueryError("quantiles is empty: give at least one share, such as 0.5 for the median")
        self._keep(shares=tuple(sorted(numbers)))

    kinds: ClassVar[Mapping[str, QueryKind]] = {"quantiles": QueryKind("share of records", None, relative=True)}

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles, in ascending order."""
        return self.shares


def states_named(states: Any, query: str) -> tuple[str, ...]:
    """Return the names of one or several states, each once, that a query is given."""
    if not (is_list(states) or isinstance(states, set | frozenset)):
        states = [states]
    labels = tuple(dict.fromkeys(map(state_label, states)))
    if not labels:
        raise QueryError(f"{query} names no state: give at least one state to count")
    return labels


@dataclass(frozen=True)
class _OfStates(ReadOnly, Query):
    """A query about the records in some states: their number, or their share."""

    relative: ClassVar[bool]
    states: tuple[str, ...]

    def __init__(self, states: Any) -> None:
        self._keep(states=states_named(states, type(self).__name__))

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "frequency": QueryKind("share of records", 1, relative=True),
        "count": QueryKind("records", 1),
    }

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> LinearQuery:
        """Bind to a model's states and the public number of records."""
        for label in self.states:
            if label not in states:
                raise QueryError(f"{self.kind} of state {label!r}: {unknown_state(label, states)}")
        chosen = np.array([[label in self.states for label in states]], dtype=np.int64)
        if chosen.all():
            raise QueryError(
                f"{self.kind} of all {len(states)} states is the public number of records: name fewer states"
            )
        where = f"in {{{', '.join(self.states)}}}"
        words = Words("share of the", records, "records", where)
        return LinearQuery(
            chosen,
            labels=("+".join(self.states),),
            description=words if self.relative else f"number of records {where}",
            **per_record(self.relative, records),
        )


@dataclass(frozen=True, init=False)
class Count(_OfStates):
    """Number of records in one or several states.

    Examples
    --------
    >>> Count(["walking", "running"]).bind(["rest", "walking", "running"], records=100).lipschitz
    1.0
    """

    relative: ClassVar[bool] = False


@dataclass(frozen=True, init=False)
class Frequency(_OfStates):
    """Share of the records in one or several states.

    Examples
    --------
    >>> Frequency("walking").bind(["rest", "walking"], records=100).lipschitz
    0.01
    """

    relative: ClassVar[bool] = True


@dataclass(frozen=True)
class Histogram(ReadOnly, Query):
    """Records in every state: one output per state.

    ``relative`` (bool, default True): shares of the records (dividing by their public number) rather than counts.

    Examples
    --------
    >>> Histogram(relative=False).bind(["rest", "walking"], records=100).distance
    array([[0., 2.],
           [2., 0.]])
    """

    relative: bool = True

    def __post_init__(self) -> None:
        truth(self.relative, "relative", QueryError)

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "histogram": QueryKind("share of records", 2, relative=True),
        "histogram-counts": QueryKind("records", 2),
    }
    is_histogram = True

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> LinearQuery:
        """Bind to a model's states and the public number of records."""
        return LinearQuery(
            np.eye(len(states), dtype=np.int64),
            labels=tuple(states),
            description=Words(share_or_number(self.relative), records, "records", f"in each of {len(states)} states"),
            **per_record(self.relative, records),
        )


@dataclass(frozen=True)
class _OfValues(ReadOnly, Query):
    """A query that gives every state a number: their sum, or their mean."""

    relative: ClassVar[bool]
    values: Mapping[str, float] | tuple[float, ...]

    def __init__(self, values: Any) -> None:
        if isinstance(values, Mapping):
            by_state: Mapping[Any, Any] = values
            chosen: Any = FrozenDict({state_label(s): _number(v, self.kind, s) for s, v in by_state.items()})
        else:
            expected = 'numbers, one for each state, or a dict such as {"rest": 0, "*": 1}'
            numbers = listed(values, f"the values of {self.kind}", expected, QueryError)
            chosen = tuple(_number(v, self.kind, i) for i, v in enumerate(numbers))
        self._keep(values=chosen)

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "mean": QueryKind("mean", None, relative=True),
        "sum": QueryKind("sum", None),
    }

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> LinearQuery:
        """Bind to a model's states and the public number of records."""
        values = self._in_order(states)
        if len(set(values)) == 1:
            raise QueryError(f"{self.kind}: every state has the value {values[0]:g}, so the answer is public")
        weights, unit = _on_a_grid(values, records)
        if np.all(weights == weights[0, 0]):
            raise QueryError(
                f"{self.kind}: the states' values differ by less than the grid of {float(unit):g} that a sum over "
                f"{records:,} records can hold; subtract what they have in common"
            )
        values_of = f"of {_spelled(states, weights, unit)}"
        words = Words("mean over", records, "records", values_of) if self.relative else f"sum over records {values_of}"
        return LinearQuery(weights, labels=(self.kind,), description=words, **per_record(self.relative, records, unit))

    def _in_order(self, states: Sequence[str]) -> list[float]:
        if isinstance(self.values, tuple):
            if len(self.values) != len(states):
                raise QueryError(
                    f"{self.kind} has {len(self.values)} values, the model {len(states)} states: "
                    f"give one value per state, in the order {names_of(states)}"
                )
            return list(self.values)
        for label in self.values:
            if label not in states and label != _REST:
                raise QueryError(f"{self.kind} gives a value to state {label!r}: {unknown_state(label, states)}")
        rest = None if _REST in states else self.values.get(_REST)
        lacking = [label for label in states if label not in self.values]
        if lacking and rest is None:
            raise QueryError(
                f"{self.kind} gives no value to state {lacking[0]!r}: every state needs one; "
                f"{_REST!r} with the value 0 gives 0 to all states that are not named"
            )
        if not lacking and rest is not None:
            raise QueryError(f"{self.kind} gives a value to every state, so leave out {_REST!r} (all other states)")
        return [self.values.get(label, rest or 0.0) for label in states]


@dataclass(frozen=True, init=False)
class Sum(_OfValues):
    """Sum over records of a value per state.

    ``values`` (sequence of float, or mapping from state to float): what a record in each state contributes; ``"*"``
    stands for all states that are not named. Values are taken as the decimals they print as; where those cannot be held
    exactly they are rounded to a decimal grid that is recorded in the release.

    Examples
    --------
    >>> Sum([0, 1.5, 4]).bind(["rest", "walking", "running"], records=100).distance
    array([[0. , 1.5, 4. ],
           [1.5, 0. , 2.5],
           [4. , 2.5, 0. ]])
    """

    relative: ClassVar[bool] = False


@dataclass(frozen=True, init=False)
class Mean(_OfValues):
    """Mean over records of a value per state: ``Sum`` divided by the public number of records; values as for it.

    Examples
    --------
    >>> Mean({"rest": 0, "active": 1}).bind(["rest", "active"], records=50).lipschitz
    0.02
    >>> Mean({"sitting": 1, "*": 0}).bind(["sitting", "walking", "running"], records=50).description
    'mean over 50 records of {sitting: 1, walking: 0, running: 0}'
    """

    relative: ClassVar[bool] = True


def _spelled(states: Sequence[str], weights: NDArray[np.int64], unit: Fraction) -> str:
    shown = [f"{s}: {float(int(w) * unit):g}" for s, w in zip(states, weights[0], strict=True)]
    return "{" + ", ".join(shown[:6]) + (", …" if len(shown) > 6 else "") + "}"


def unknown_state(label: str, states: Sequence[str]) -> str:
    """Say that the model lacks a state, and which it has."""
    return f"the model has no such state.{did_you_mean(label, states)} States: {names_of(states)}"


_REST = "*"  # stands for all states that are not named, unless a state has this name

_LARGEST_VALUE = 1e150


def _number(value: Any, kind: str, where: Any) -> float:
    number = real_number(value)
    if number is None or not (number == 0 or 1 / _LARGEST_VALUE <= abs(number) <= _LARGEST_VALUE):
        raise QueryError(
            f"{kind} value of state {where} is {value!r}, expected a number within ±{_LARGEST_VALUE:g}, and either 0 "
            f"or at least {1 / _LARGEST_VALUE:g} in size"
        )
    return number


_LARGEST_SUM = 2**53


def _on_a_grid(values: Sequence[float], records: int) -> tuple[NDArray[np.int64], Fraction]:
    """Write values as integers times a unit: exactly if a sum of ``records`` of them fits 2^53, else rounded."""
    exact = [Fraction(repr(v)) for v in values]
    largest = max(abs(v) for v in exact) * records
    denominator = math.lcm(*(v.denominator for v in exact))
    if largest * denominator > _LARGEST_SUM:
        unit = Fraction(1)
        while largest > _LARGEST_SUM * unit:
            unit *= 10
        while 10 * largest <= _LARGEST_SUM * unit:
            unit /= 10
    else:
        unit = Fraction(1, denominator)
    weights = np.array([[round(v / unit) for v in exact]], dtype=np.int64)
    common = int(np.gcd.reduce(np.abs(weights[0]))) or 1
    return weights // common, unit * common


# -- Statistics of steps, from one record of a chain to the next -------------------------------------------------------


ARROW = " → "  # between the two states in the name of an output


@dataclass(frozen=True)
class _OfSteps(ReadOnly, Query):
    """A query about the steps of chains: their numbers, or how many there are per record."""

    relative: bool = False

    def __post_init__(self) -> None:
        truth(self.relative, "relative", QueryError)


def _on_steps(
    query: "_OfSteps | Bouts",
    outputs: Sequence[Sequence[int]],
    labels: tuple[str, ...],
    description: str,
    records: int,
    names: Variables | None,
) -> StepQuery:
    """Return a query bound to the steps of chains, refused where records have names."""
    if names is not None:
        raise QueryError(
            f"{query.kind} count steps from one record of a chain to the next, but the records of this model have no "
            "order: ask for states, such as Histogram(), or Marginals() of a network"
        )
    words = Words(f"{description}, per record of the", records, "records", "") if query.relative else description
    return StepQuery(np.array(outputs), labels=labels, description=words, **per_record(query.relative, records))


@dataclass(frozen=True)
class Transitions(_OfSteps):
    """How often each state is followed by each: k² outputs, one for every pair of states.

    A step leads from one observed record of a chain to the next one; across a gap there is none. What follows from a
    release of these at no further cost: :meth:`pufferfish.Release.chain`.

    ``relative`` (default False) divides the counts by the public number of records.

    Examples
    --------
    >>> Transitions().bind(["rest", "walking"], records=100).labels
    ('rest → rest', 'rest → walking', 'walking → rest', 'walking → walking')
    """

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "transitions": QueryKind("steps", 4, of_steps=True),
        "transition-rates": QueryKind("steps per record", 4, relative=True, of_steps=True),
    }
    is_histogram = True  # the counts sum to the public number of steps

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> StepQuery:
        """Bind to a model's states and the public number of records."""
        k = len(states)
        labels = tuple(f"{a}{ARROW}{b}" for a in states for b in states)
        outputs = [list(range(k * x, k * x + k)) for x in range(k)]
        return _on_steps(self, outputs, labels, f"steps from each of {k} states to each", records, variables)


@dataclass(frozen=True)
class Switches(_OfSteps):
    """How often the state changes from one record of a chain to the next: one number.

    ``relative`` (default False) divides it by the public number of records.

    Examples
    --------
    >>> Switches().bind(["rest", "walking"], records=100).unit_lipschitz
    2
    """

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "switches": QueryKind("changes of state", 2, of_steps=True),
        "switch-rate": QueryKind("changes of state per record", 2, relative=True, of_steps=True),
    }

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> StepQuery:
        """Bind to a model's states and the public number of records."""
        outputs = [[-1 if x == y else 0 for y in range(len(states))] for x in range(len(states))]
        words = "changes of state from one record to the next"
        return _on_steps(self, outputs, (self.kind,), words, records, variables)


@dataclass(frozen=True, init=False)
class Bouts(ReadOnly, Query):
    """How often one or several ``states`` begin: the number of bouts, of records in a row in these states.

    A bout begins where a record in the states follows one outside of them. A bout at the beginning of a chain, or that
    continues after a gap, is not counted. One record can begin or end a bout, or join two of them: it never moves the
    number by more than 1.

    Examples
    --------
    >>> Bouts("walking").bind(["rest", "walking"], records=100).unit_lipschitz
    1
    """

    states: tuple[str, ...]
    relative: ClassVar[bool] = False

    kinds: ClassVar[Mapping[str, QueryKind]] = {"bouts": QueryKind("bouts", 1, of_steps=True)}

    def __init__(self, states: Any) -> None:
        self._keep(states=states_named(states, "Bouts"))

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> StepQuery:
        """Bind to a model's states and the public number of records."""
        for label in self.states:
            if label not in states:
                raise QueryError(f"bouts of state {label!r}: {unknown_state(label, states)}")
        if set(states) <= set(self.states):
            raise QueryError(f"bouts of all {len(states)} states never begin: name fewer states")
        inside = [state in self.states for state in states]
        outputs = [[0 if there and not here else -1 for there in inside] for here in inside]
        description = f"bouts in {{{', '.join(self.states)}}}"
        return _on_steps(self, outputs, ("+".join(self.states),), description, records, variables)
