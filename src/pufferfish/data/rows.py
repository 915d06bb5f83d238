"""What a table of independent rows becomes: counts of the states of every column, and how the table was read.

Every row is a subject of its own, and its cells are the records of a Bayesian network: cells of one row depend on
each other as θ says, and rows are independent of each other under every θ. The secret is one cell of one row.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import check_choice, check_kind, listed, texts, whole_at_least
from pufferfish._base.frozen import FrozenDict, ReadOnly
from pufferfish._base.view import Printed, View, counted
from pufferfish._base.words import names_of
from pufferfish.data.groups import Groups, check_by, checked_counts, kept_rows, sentence_of
from pufferfish.errors import ParameterError, shortened


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse a column that is read as two nodes: its one record would count as two, which the proof keeps apart."""
    taken: dict[str, str] = {}
    for node, column in columns.items():
        if column in taken:
            raise ParameterError(f"columns gives the column {column!r} to two nodes: {taken[column]!r} and {node!r}")
        taken[column] = node


def check_subject(subject: str | None, private: Collection[str]) -> None:
    """Refuse the column of a node as that of subjects, who are public."""
    if subject in private:
        raise ParameterError(
            f"subject is {subject!r}, the column of a node: expected the column that names the subject of each row"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsBase(ReadOnly):
    """How a table of independent rows was read: what a privacy loss is tied to.

    Only plain values, so that it goes into a release as JSON. The source is named without its folder.

    >>> RowsBase(source="patients.csv", columns={"smoker": "smoker"}, subject="patient").assumptions[0]
    "Rows are independent of each other under every θ: one row per subject (column 'patient')."
    """

    source: str  # file name, or the kind of table
    columns: dict[str, str]  # for every node that was read, its column; nodes by their labels
    subject: str | None = None  # column of whose row it is; checked to differ from row to row
    where: str | None = None  # row filter
    missing: str = "refuse"  # what a missing cell is, "refuse" or "unobserved"
    by: tuple[str, ...] | None = None  # public groupings of the rows, which are counted by group too

    def __post_init__(self) -> None:
        self._keep(columns=FrozenDict(self.columns))
        check_choice("missing", self.missing, ("refuse", "unobserved"))
        check_columns(self.columns)
        if self.by is not None:
            self._keep(by=check_by(self.by))
        self.check_private(())

    def check_private(self, nodes: Iterable[str]) -> None:
        """Refuse a subject, filter or grouping that is a column of a node; one that is not read is as private."""
        private = {*nodes, *self.columns.values()}
        check_subject(self.subject, private)
        if self.where is not None:
            from pufferfish.data.where import parse_where  # here: it loads what reads tables

            parse_where(self.where, private, "node column")
        if self.by is not None:
            check_by(self.by, private, "node column")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Plain sentences about the data that the promise of a release rests on."""
        one = "one row per subject" if self.subject is None else f"one row per subject (column {self.subject!r})"
        sentences = [f"Rows are independent of each other under every θ: {one}."]
        if self.missing == "unobserved":
            sentences += [
                "A missing cell is an unobserved record: it is not counted.",
                "The number of rows and which cells are missing are public, and assumed independent of the states.",
            ]
        else:
            sentences.append("The number of rows is public, and assumed independent of the states.")
        if self.where:
            sentences.append(kept_rows(self.where))
        return (*sentences, sentence_of(self.by, "row")) if self.by else tuple(sentences)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Rows(Printed, ReadOnly):
    """Independent rows of a table as counts of the states of every column; private, except for their number.

    Examples
    --------
    >>> Rows(nodes=("rain",), states={"rain": ("no", "yes")}, counts={"rain": [3, 2]}, records=5,
    ...      base=RowsBase(source="days.csv", columns={"rain": "rain"}))
    Rows(1 node, 5 rows)
    """

    nodes: tuple[Any, ...]
    """Nodes of the network that were read, in its order; its other nodes are latent."""
    states: dict[Any, tuple[str, ...]]
    """Names of the k states of each of them."""
    counts: dict[Any, NDArray[np.int64]]
    """Rows in each state; made read-only."""
    records: int
    """Number of rows n (public)."""
    base: RowsBase
    """How the table was read."""
    groups: Groups | None = None
    """The counts by public groups, where the table was read with ``by``."""
    joint: Mapping[tuple[Any, ...], NDArray[np.int64]] = field(default_factory=FrozenDict[Any, Any])
    """Rows in each combination of the states of several nodes, an axis for each node; with groups the first axis is
    that of the groups. A row in which one of these cells is missing is in no combination.
    """
    fingerprint: str | None = None
    """A digest of what was counted, by which a model knows the table that it was fitted to."""

    def __post_init__(self) -> None:
        self._check_kinds()
        if not self.nodes:
            raise ParameterError("nodes is empty, expected at least one node")
        for name, by_node in (("states", self.states), ("counts", self.counts)):
            if set(by_node) != set(self.nodes):
                raise ParameterError(f"{name} is about {_names(by_node)}, expected the nodes {_names(self.nodes)}")
        counts: dict[Any, NDArray[np.int64]] = {}
        for node in self.nodes:
            name, k = f"counts[{node!r}]", len(self.states[node])
            array = checked_counts(self.counts[node], name, "rows", (k,), f"one number for each of its {k} states")
            if array.sum() > self.records or (self.base.missing == "refuse" and array.sum() < self.records):
                raise ParameterError(f"{name} sums to {array.sum()}, but there are {self.records:,} rows")
            counts[node] = array
        if (None if self.groups is None else self.groups.by) != self.base.by:
            raise ParameterError("groups and base.by are about different groupings")
        if self.groups is not None:
            if sum(self.groups.records) != self.records:
                raise ParameterError(f"groups.records do not add up to the {self.records:,} rows")
            by_group = self.groups.counts
            if set(by_group) != set(counts) or not all(
                np.array_equal(table.sum(axis=0), counts[node]) for node, table in by_group.items()
            ):
                raise ParameterError("groups.counts do not add up to counts")
        self._keep(counts=FrozenDict(counts))
        joint = {tuple(nodes): self._checked_joint(tuple(nodes), table) for nodes, table in self.joint.items()}
        self._keep(joint=FrozenDict(joint))

    def _checked_joint(self, nodes: tuple[Any, ...], table: Any) -> NDArray[np.int64]:
        """Return the counts of several nodes together, refused where they are none or contradict those of a node."""
        if len(nodes) < 2 or len(set(nodes)) < len(nodes) or not set(nodes) <= set(self.nodes):
            raise ParameterError(f"joint names {_names(nodes)}, expected two or more of the nodes {_names(self.nodes)}")
        cells = () if self.groups is None else (len(self.groups.cells),)
        shape = (*cells, *(len(self.states[node]) for node in nodes))
        array = checked_counts(table, f"joint[{_names(nodes)}]", "rows", shape)
        for i, node in enumerate(nodes):
            margin = array.sum(axis=tuple(axis for axis in range(array.ndim) if axis != len(cells) + i))
            same = np.array_equal(margin, self.counts[node]) if self.base.missing == "refuse" else None
            if same is False or (margin > self.counts[node]).any():
                raise ParameterError(f"joint[{_names(nodes)}] does not add up to the counts of {node!r}")
        return array

    def together(self, nodes: Sequence[Any]) -> NDArray[np.int64] | None:
        """Return rows in each combination of some nodes' states, shape (groups, combinations); None if not counted."""
        for held, array in self.joint.items():
            if set(held) == set(nodes):
                first = array.ndim - len(held)  # the axis of groups, if there is one
                axes = [*range(first), *(first + held.index(node) for node in nodes)]
                return np.transpose(array, axes).reshape(array.shape[0] if first else 1, -1)
        return None

    def _check_kinds(self) -> None:
        """Refuse arguments that are other things than they should be, and keep copies of the names."""
        check_kind(self.base, RowsBase, "base")
        nodes = listed(self.nodes, "nodes", "the nodes that were read")
        try:
            set(nodes)
        except TypeError:
            raise ParameterError("nodes holds what is no name of a node, such as a list") from None
        self._keep(nodes=tuple(nodes), records=whole_at_least(self.records, "records", 1))
        for name in ("states", "counts"):
            if not isinstance(getattr(self, name), Mapping):
                raise ParameterError(f"{name} is {shortened(repr(getattr(self, name)))}, expected a dict from nodes")
        states = {
            node: texts(node_states, f"states[{shortened(repr(node))}]") for node, node_states in self.states.items()
        }
        self._keep(states=FrozenDict(states))

    def __repr__(self) -> str:
        return f"Rows({counted(len(self.nodes), 'node')}, {counted(self.records, 'row')})"

    def _view(self) -> View:
        """Return what is public: how the table was read, and how many rows and cells there are."""
        base = self.base
        facts = {
            "nodes": names_of(self.nodes, 8),
            "rows": self.records,
            "cells that are not missing": sum(self.observed.values()),
            "rows kept": base.where,
            "groups": None if self.groups is None else len(self.groups.cells),
        }
        return View(base.source, facts, notes=self.assumptions)

    @property
    def length(self) -> int:
        """Number of rows n, all of them independent (public)."""
        return self.records

    @property
    def observed(self) -> dict[Any, int]:
        """Number of cells of each node that are not missing (public)."""
        return {node: int(counts.sum()) for node, counts in self.counts.items()}

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Plain sentences about the data that the promise of a release rests on."""
        return self.base.assumptions


def _names(nodes: Mapping[Any, Any] | tuple[Any, ...]) -> str:
    return ", ".join(map(repr, nodes))
