"""Statistics of several columns of a table together: how many rows have each combination of their states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from pufferfish._base.checked import truth
from pufferfish._base.frozen import ReadOnly
from pufferfish.errors import QueryError
from pufferfish.queries.of_records import (
    Function,
    Restricted,
    Weighted,
    Window,
    each_of,
    inner_query,
    place_of,
    records_named,
    rows_of,
)
from pufferfish.queries.query import (
    JointQuery,
    LinearQuery,
    Query,
    QueryKind,
    Variables,
    Words,
    per_record,
    refuse_many_combinations,
    share_or_number,
)
from pufferfish.theta.states import state_label


def combination_labels(nodes: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the names of all combinations of the states of some nodes; those of the last node change fastest.

    >>> combination_labels([("smoke", ["no", "yes"]), ("lung", ["no", "yes"])])[:2]
    ['smoke=no, lung=no', 'smoke=no, lung=yes']
    """
    parts = [[f"{name}={state}" for state in states] for name, states in nodes]
    return [", ".join(combination) for combination in product(*parts)]


@dataclass(frozen=True, init=False)
class Joint(ReadOnly, Query):
    """The contingency table of several columns: the rows in each combination of the states of some nodes of a network.

    The table must be read with ``read_rows(…, joint=nodes)``, which counts these columns together. The histogram of
    each column by itself is :class:`Marginals`.

    Parameters
    ----------
    records : sequence
        Names of two or more nodes. Outputs are in the order of their states; that of the last node changes fastest.
    relative : bool, default True
        Shares of the table's rows rather than counts.

    Examples
    --------
    >>> rows = {"smoke": ("yes", "no"), "lung": ("yes", "no"), "age": ("old", "young")}
    >>> found = Joint(["smoke", "lung"], relative=False).bind(["yes", "no", "old", "young"], 3 * 50, rows)
    >>> found.labels
    ('smoke=yes, lung=yes', 'smoke=yes, lung=no', 'smoke=no, lung=yes', 'smoke=no, lung=no')
    >>> found.lipschitz
    2.0
    """

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "joint": QueryKind("share of rows", 2, relative=True),
        "joint-counts": QueryKind("rows", 2),
    }
    is_histogram = True  # the counts of all combinations sum to the public number of rows
    of_some_records: ClassVar[bool] = True
    records: tuple[Any, ...]
    relative: bool

    def __init__(self, records: Any, relative: bool = True) -> None:
        names = records_named(records, "Joint")
        if len(names) == 1:
            raise QueryError(
                f"Joint has only the column {names[0]!r}, expected two or more; for the histogram of one column use "
                f"Marginals([{names[0]!r}])"
            )
        self._keep(records=names, relative=truth(relative, "relative", QueryError))

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> JointQuery:
        """Bind to a network's states and nodes."""
        if variables is None:
            raise QueryError(
                "Joint counts several columns of a network's table together, but this model has no columns: for how "
                "often each state of a chain follows each, use Transitions()"
            )
        _, rows = rows_of(records, variables)
        names = list(variables)
        nodes = tuple(place_of(record, names) for record in self.records)
        named = [(state_label(names[node]), variables[names[node]]) for node in nodes]
        refuse_many_combinations({name: len(node_states) for name, node_states in named})
        columns = {state: x for x, state in enumerate(states)}
        return JointQuery(
            nodes=nodes,
            domains=tuple(np.array([columns[state] for state in variables[name]], dtype=np.intp) for name in names),
            labels=tuple(combination_labels(named)),
            description=Words(
                share_or_number(self.relative),
                rows,
                "rows",
                f"in each combination of the states of {', '.join(name for name, _ in named)}",
            ),
            **per_record(self.relative, rows),
        )


# -- Statistics of records that have names ---------------------------------------------------------------------------


@dataclass(frozen=True, init=False)
class Subset(Restricted):
    """A query on some records only; the others have no loss of their own.

    Parameters
    ----------
    query : Query
        What is asked of them: a count, share, histogram, sum or mean. In a network it is about the states that these
        nodes have.
    records : sequence
        Which: names of nodes of a network or variables of a joint distribution; steps of one chain, from 0.

    Examples
    --------
    >>> from pufferfish.queries import Frequency
    >>> rows = {"smoke": ("yes", "no"), "lung": ("yes", "no"), "age": ("young", "old")}
    >>> Subset(Frequency("yes"), ["smoke", "lung"]).bind(["yes", "no", "young", "old"], 3 * 50, rows).description
    'share of the 100 records in {yes}, of smoke, lung'
    """

    records: tuple[Any, ...]

    def __init__(self, query: Query, records: Any) -> None:
        self._keep(query=query, records=records_named(records, "Subset"))

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> LinearQuery:
        """Bind to a model's states and records."""
        places, rows = each_of(records, variables)
        chosen_places = [
            place_of(record, range(places) if variables is None else list(variables)) for record in self.records
        ]
        record_states = states if variables is None else _states_of(chosen_places, variables)
        inner = inner_query(self.query, record_states, len(chosen_places) * rows, "Subset", variables)
        factors = np.zeros(places, dtype=np.int64)
        factors[chosen_places] = 1
        weights = np.zeros((len(inner.weights), len(states)), dtype=np.int64)
        weights[:, [list(states).index(state) for state in record_states]] = inner.weights
        names = ", ".join(state_label(record) for record in self.records[:8])
        words = inner.description + f", of {names}{', …' if len(chosen_places) > 8 else ''}"
        return LinearQuery(weights, inner.unit, inner.labels, words, factors, divided_by=inner.divided_by)


@dataclass(frozen=True, init=False)
class Marginals(ReadOnly, Query):
    """The histogram of every variable by itself: one output per node and state of a network.

    Parameters
    ----------
    records : sequence, optional
        Names of nodes; by default all.
    relative : bool, default True
        Shares of the table's rows rather than counts.

    Examples
    --------
    >>> rows = {"smoke": ("yes", "no"), "lung": ("yes", "no")}
    >>> Marginals(["lung"]).bind(["yes", "no"], 2 * 50, rows).labels
    ('lung=yes', 'lung=no')
    """

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "marginals": QueryKind("share of rows", 2, relative=True),
        "marginal-counts": QueryKind("rows", 2),
    }
    is_histogram = True  # that of each variable sums to the public number of rows
    of_some_records: ClassVar[bool] = True
    records: tuple[Any, ...] | None
    relative: bool

    def __init__(self, records: Any = None, relative: bool = True) -> None:
        names = None if records is None else records_named(records, "Marginals")
        self._keep(records=names, relative=truth(relative, "relative", QueryError))

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> LinearQuery:
        """Bind to a network's states and nodes."""
        if variables is None:
            raise QueryError("Marginals need a network, whose records have names: use Histogram()")
        places, rows = rows_of(records, variables)
        names = list(variables)
        nodes = list(range(places)) if self.records is None else [place_of(record, names) for record in self.records]
        outputs = [(place, state) for place in nodes for state in variables[names[place]]]
        columns, every = {state: x for x, state in enumerate(states)}, np.arange(len(outputs))
        weights = np.zeros((len(outputs), len(states)), dtype=np.int64)
        weights[every, [columns[state] for _, state in outputs]] = 1
        factors = np.zeros((places, len(outputs)), dtype=np.int8)  # the only array that grows like their product
        factors[[place for place, _ in outputs], every] = 1
        ends = np.cumsum([len(variables[names[place]]) for place in nodes]).tolist()
        blocks = [(tuple(range(start, end)), place) for place, start, end in zip(nodes, [0, *ends], ends, strict=False)]
        shown = ", ".join(state_label(names[place]) for place in nodes[:8]) + (", …" if len(nodes) > 8 else "")
        return LinearQuery(
            weights,
            labels=tuple(f"{state_label(names[place])}={state}" for place, state in outputs),
            description=Words(share_or_number(self.relative), rows, "rows", f"in each state of {shown}"),
            factors=factors if len(nodes) > 1 else factors[:, 0],
            blocks=tuple(blocks),
            **per_record(self.relative, rows),
        )


def refuse_pooling(query: Query, variables: Variables) -> None:
    """Refuse a query that takes different columns of a table for one, but those of equal states that the user named.

    Shares of all cells of a table say little of any column, and look as if they did; see :class:`Marginals`.

    >>> from pufferfish.queries import Count
    >>> refuse_pooling(Subset(Count("yes"), ["smoke", "lung"]), {"smoke": ("yes", "no"), "lung": ("no", "yes")})
    """
    names = _pooled(query, variables)
    sets = {frozenset(variables[name]) for name in names}
    if len(names) < 2 or (query.of_some_records and len(sets) == 1):
        return
    counts = query.known is not None and not query.known.relative
    columns = ",".join(map(state_label, names)) if query.of_some_records else ""
    instead = f"--query {'marginal-counts' if counts else 'marginals'}{' --columns ' if columns else ''}{columns}"
    python = f"Marginals({list(names) if columns else ''}{', ' if columns and counts else ''}"
    python += "relative=False)" if counts else ")"
    several = ", ".join(map(state_label, names[:4])) + (", …" if len(names) > 4 else "")
    why = f"{query.kind} would count the {len(names)} columns {several} as one"
    if len(sets) > 1:
        one = next(name for name in names if frozenset(variables[name]) != frozenset(variables[names[0]]))
        apart = [f"{state_label(name)}: {', '.join(variables[name][:4])}" for name in (names[0], one)]
        why += f", and their states differ ({'; '.join(apart)})"
    pools = query.known is not None and not (query.known.of_steps or query.is_cumulative)
    named = (
        ""
        if query.of_some_records or not pools
        else ("; to pool columns with the same states, name them: --columns A,B (in Python Subset(query, ['A', 'B']))")
    )
    raise QueryError(f"{why}. Ask for each column separately: {instead} (in Python {python}){named}")


def _pooled(query: Query, variables: Variables) -> list[Any]:
    names = list(variables)
    if isinstance(query, Marginals | Joint | Function):
        return []
    if isinstance(query, Subset):
        return [names[place_of(record, names)] for record in query.records]
    if isinstance(query, Window):
        return names[query.start : query.stop]
    if isinstance(query, Weighted):
        return [name for name, factor in zip(names, query.factors, strict=False) if factor]
    return names


def _states_of(places: Sequence[int], variables: Variables) -> list[str]:
    """Return the states that some records can have, in the order in which they first appear."""
    names = list(variables)
    return list(dict.fromkeys(state for place in places for state in variables[names[place]]))
