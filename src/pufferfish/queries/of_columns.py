"""Statistics of several columns of a table together: how many rows have each combination of their states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np

from pufferfish._base.checked import called_as, truth
from pufferfish._base.frozen import ReadOnly
from pufferfish.errors import QueryError
from pufferfish.queries.of_records import names_of, place_of, rows_of
from pufferfish.queries.on_pairs import JointQuery, refuse_many_combinations
from pufferfish.queries.query import Query, QueryKind, Variables
from pufferfish.theta.states import state_label

__all__ = ["Joint", "combination_labels"]


def combination_labels(nodes: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the names of all combinations of the states of some nodes; those of the last node change fastest.

    Examples
    --------
    >>> combination_labels([("smoke", ["no", "yes"]), ("lung", ["no", "yes"])])[:2]
    ['smoke=no, lung=no', 'smoke=no, lung=yes']
    """
    parts = [[f"{name}={state}" for state in states] for name, states in nodes]
    return [", ".join(found) for found in product(*parts)]


@dataclass(frozen=True, init=False)
class Joint(ReadOnly, Query):
    """The contingency table of several columns: the rows in each combination of the states of some nodes of a network.

    The table must be read with ``read_rows(…, joint=nodes)``, which counts these columns together. The histogram of
    each column by itself is :class:`Marginals`; how often a record of a chain is followed by each state is
    :class:`Transitions`.

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
    of_some_records: ClassVar[bool] = True
    records: tuple[Any, ...]
    relative: bool

    @called_as('Joint(["a", "b"])')
    def __init__(self, records: Any, relative: bool = True) -> None:
        names = names_of(records, "Joint")
        if len(names) == 1:
            raise QueryError(
                f"Joint is of the one column {names[0]!r}, expected two or more; the histogram of one column is "
                f"Marginals([{names[0]!r}])"
            )
        object.__setattr__(self, "records", names)
        object.__setattr__(self, "relative", truth(relative, "relative", QueryError))

    @property
    def is_histogram(self) -> bool:
        """The counts of all combinations sum to the public number of rows."""
        return True

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> JointQuery:
        """Bind to a network's states and nodes."""
        if variables is None:
            raise QueryError(
                "Joint counts several columns of a network's table together, and the records of this model have no "
                "names: of a chain, how often each state is followed by each is Transitions()"
            )
        _, rows = rows_of(records, variables)
        names = list(variables)
        nodes = tuple(place_of(record, names) for record in self.records)
        named = [(state_label(names[node]), variables[names[node]]) for node in nodes]
        refuse_many_combinations({name: len(own) for name, own in named})
        columns = {state: x for x, state in enumerate(states)}
        return JointQuery(
            nodes=nodes,
            domains=tuple(np.array([columns[state] for state in variables[name]], dtype=np.intp) for name in names),
            unit=Fraction(1, rows) if self.relative else Fraction(1),
            labels=tuple(combination_labels(named)),
            description=f"{'share' if self.relative else 'number'} of the {rows:,} rows in each combination of the "
            f"states of {', '.join(name for name, _ in named)}",
            divided_by=rows if self.relative else None,
        )
