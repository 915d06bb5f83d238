"""The options of reading, checked before a table is opened: of chains, and of independent rows against a network."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, Literal, cast

from pufferfish._base.checked import check_choice, is_list, whole_number
from pufferfish._base.durations import Duration
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.words import did_you_mean, names_of, nearest, same_name, unseen_difference
from pufferfish.data._csv_text import other_separator
from pufferfish.data._times import given_zone
from pufferfish.data.bins import bin_labels, parse_bins
from pufferfish.data.groupings import NODE_COLUMN, Grouping, parse_by
from pufferfish.data.rows import check_columns, check_subject
from pufferfish.data.sequences import Taken, check_chain_options
from pufferfish.data.source import Source, engine_errors, open_source
from pufferfish.data.where import Where, parse_where
from pufferfish.errors import DataError, ModelError, ParameterError
from pufferfish.queries.query import refuse_many_combinations
from pufferfish.theta.bayesian_network import BayesianNetwork, same_records
from pufferfish.theta.model_class import Described, ModelClass
from pufferfish.theta.states import Clock, clock_named, listed_labels, state_label

_MOST_ORDER = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading(ReadOnly):
    """The options of reading any table, checked as far as they can be without it."""

    subject: str | None = None
    missing: Literal["unobserved", "split", "refuse"] = "unobserved"
    where: Where | None = None
    by: tuple[Grouping, ...] = cast(Any, None)  # as not given; then none
    time: str | None = None

    @property
    def public(self) -> tuple[str, ...]:
        """Columns that are read and hold nothing private, so that all their values together may say what they are."""
        times = () if self.time is None else (self.time,)
        return (*times, *(self.where.columns if self.where else ()), *(grouping.column for grouping in self.by))

    @property
    def parts(self) -> tuple[str, ...]:
        """Columns that only groupings and the filter name, alone: ``hour`` may have been meant as ``hour(time)``."""
        of_parts = (grouping.column for grouping in self.by if grouping.part)
        whole = {self.subject, self.time, *(self.where.timed if self.where else ()), *of_parts}
        return tuple(name for name in self.public if name not in whole)

    @property
    def facts(self) -> dict[str, Any]:
        """What a record says of how a table was read, whatever its rows are."""
        where, by = None if self.where is None else self.where.text, tuple(grouping.text for grouping in self.by)
        return {"subject": self.subject, "where": where, "missing": self.missing, "by": by or None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(_Reading):
    """The options of ``read_sequences``: as a user gives them, then refused, or kept as what they mean."""

    state: str
    max_gap: Duration | None = None
    step: Duration | None = None
    bins: tuple[float, ...] | None = None
    states: tuple[str, ...] | None = None
    gaps: Literal["unobserved", "independent"] = "unobserved"
    clock: Clock | None = None
    order: int = 1
    time_zone: str | None = None
    zone: tzinfo | None = None  # what time_zone names
    ambiguous: Literal["earlier", "later", "drop"] | None = None
    taken: Taken | None = None

    def __post_init__(self) -> None:
        given: Any = self
        longest, step = check_chain_options(given)
        bins = None if given.bins is None else parse_bins(given.bins)
        clock = None if given.clock is None else clock_named(given.clock)
        if clock is not None and longest is None:
            raise ParameterError(
                f"clock is {given.clock!r}, and {'time' if self.time is None else 'max_gap'} is missing: the phases of "
                "the clock follow from times and gaps; give time= and max_gap=, the time between records, such as "
                "'1min'"
            )
        if self.ambiguous == "drop" and longest is None:
            raise ParameterError(
                "ambiguous is 'drop' and max_gap is missing: without it the hour that is left out would not count; "
                "give max_gap=, the time between records, such as '1min'"
            )
        self._keep(
            max_gap=longest,
            step=step,
            bins=bins,
            where=None if given.where is None else parse_where(given.where, [self.state], "state column"),
            states=_model_states(given.states, bins),
            clock=clock,
            order=_order(given.order, clock),
            by=parse_by(given.by, time=self.time, private=[self.state], called="state column"),
            zone=None if given.time_zone is None else given_zone(given.time_zone),
        )

    def needed(self, present: Sequence[str]) -> tuple[str, ...]:
        """Columns to read, of those that a table has."""
        if self.where is not None:
            self.where.refuse_unquoted(present)
        columns = (self.subject, self.time, self.state, *self.public)
        return tuple(dict.fromkeys(name for name in columns if name is not None))


def _order(order: Any, clock: Clock | None) -> int:
    try:
        whole_order = whole_number(order)
    except TypeError:
        raise ParameterError(f"order is {order!r}, expected a whole number such as 2") from None
    if not 1 <= whole_order <= _MOST_ORDER:
        expected = f"expected 1 to {_MOST_ORDER}, the number of earlier records that each one depends on"
        raise ParameterError(f"order is {whole_order}, {expected}")
    if whole_order > 1 and clock is not None:
        raise ParameterError(
            f"order is {whole_order} and clock is {clock.name!r}: a model has a clock or a longer memory, not both"
        )
    return whole_order


def _model_states(states: Any, edges: tuple[float, ...] | None) -> tuple[str, ...] | None:
    if states is None:
        return None if edges is None else bin_labels(edges)
    try:
        names = listed_labels(states, "states")
    except ModelError as error:
        raise ParameterError(str(error)) from None
    if not names:
        raise ParameterError("states is empty, expected the names of the model's states")
    if edges is not None and names != bin_labels(edges):
        raise ParameterError(
            f"states are {names_of(names, 8)}, but bins makes {names_of(bin_labels(edges), 8)}: use the model's bins, "
            "or a model of these bins"
        )
    return names


_EXAMPLE = "a list such as ['rain'] or a dict from nodes to columns such as {'rain': 'Rain today'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOptions(_Reading):
    """The options of ``read_rows``: as a user gives them, then refused, or kept as what they mean; nodes by labels."""

    missing: Literal["refuse", "unobserved"] = "refuse"
    network: BayesianNetwork
    columns: dict[str, str] | None = None
    joint: tuple[tuple[str, ...], ...] = cast(Any, None)  # as not given; then none
    nodes: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        given: Any = self
        network = _one_network(given.network)
        nodes = {state_label(node): node for node in network.nodes}
        columns = None if given.columns is None else _chosen(given.columns, nodes)
        private = {*nodes, *(columns or {}).values()}  # a node that is not read is as private as one that is
        if given.subject is not None and not isinstance(given.subject, str):
            raise ParameterError(f"subject is {given.subject!r}, expected the name of a column")
        check_subject(self.subject, private)
        check_choice("missing", given.missing, ("refuse", "unobserved"))
        self._keep(
            network=network,
            nodes=nodes,
            columns=columns,
            where=None if given.where is None else parse_where(given.where, private, NODE_COLUMN),
            by=parse_by(given.by, time=None, private=private, called=NODE_COLUMN),
            joint=_together(given.joint, network, nodes, columns),
        )

    def cells(self, present: Sequence[str]) -> dict[str, str]:
        """Columns of the nodes that are read, of those that a table has."""
        if self.columns is not None:
            return self.columns
        return {label: label for label in self.nodes if label in present}

    def _refuse_other_spelling(self, present: Sequence[str]) -> None:
        """Refuse a table whose columns are nodes but for capitals, spaces, hyphens and underscores: none is latent."""
        if not any(label in present for label in self.nodes):
            return
        for label in self.nodes:
            free = set(present).difference(self.nodes, self.public, [self.subject])
            spelled = [column for column in present if column in free and same_name(label, column)]
            if label not in present and spelled:
                raise DataError(
                    f"node {label!r} has no column, and column {spelled[0]!r} is not a node: rename the column if it "
                    f"is the same, or name the nodes to read by columns.{unseen_difference(label, spelled[0])}"
                )

    def needed(self, present: Sequence[str]) -> Sequence[str]:
        """Columns to read, of those that a table has."""
        if self.where is not None:
            self.where.refuse_unquoted(present)
        cells = self.cells(present)
        if self.columns is None:
            self._refuse_other_spelling(present)
        if not cells:
            near = {nearest(label, present): label for label in self.nodes}
            pairs = ", ".join(f"{label!r}: {column!r}" for column, label in near.items() if column is not None)
            raise DataError(
                "no column is a node of the network: rename columns, or in Python give "
                f"columns={{{pairs or 'node: column'}}}. Columns: {names_of(present, 8)}. "
                f"Nodes: {names_of(self.nodes, 8)}.{other_separator(present)}"
            )
        unread = [label for labels in self.joint for label in labels if label not in cells]
        if unread:
            raise DataError(
                f"joint names the node {unread[0]!r}, and no column has its name: rename one, or in Python give "
                f"columns={{{unread[0]!r}: …}}. Columns: {names_of(present, 8)}."
            )
        subject = () if self.subject is None else (self.subject,)
        return tuple(dict.fromkeys([*cells.values(), *subject, *self.public]))


def _one_network(network: Any) -> BayesianNetwork:
    """Return a network with the nodes and states of all that are given."""
    expected = "expected a BayesianNetwork or a list of them (read_sequences reads tables for Markov chains)"
    theta: Any = network.theta if isinstance(network, Described) else network
    if isinstance(theta, BayesianNetwork):
        return theta
    if not (isinstance(theta, ModelClass) or is_list(theta)):
        raise ModelError(f"network is {type(theta).__name__}, {expected}")
    members: list[Any] = list(theta.members if isinstance(theta, ModelClass) else theta)
    if not members:
        raise ModelError(f"network is empty, {expected}")
    for i, member in enumerate(members):
        if not isinstance(member, BayesianNetwork):
            raise ModelError(f"network[{i}] is {type(member).__name__}, {expected}")
    return same_records(members, "network")[0]


def _together(
    joint: Any, model: BayesianNetwork, nodes: Mapping[str, Any], read: Mapping[str, str] | None
) -> tuple[tuple[str, ...], ...]:
    """Return the nodes that are counted together, by their labels: one list of nodes, or several such lists."""
    if joint is None:
        return ()
    example = "expected two or more nodes, such as ['rain', 'wet'], or a list of such lists"
    several: list[Any] = list(joint) if is_list(joint) else []
    if not several:
        raise ParameterError(f"joint is {joint!r}, {example}")
    of_lists = all(is_list(node_list) and state_label(node_list) not in nodes for node_list in several)
    lists = several if of_lists else [several]
    label_lists: list[tuple[str, ...]] = []
    for node_list in lists:
        labels = tuple(state_label(node) for node in node_list)
        for label in labels:
            _check_node("joint", label, nodes)
            if read is not None and label not in read:
                raise ParameterError(
                    f"joint names the node {label!r}, and columns does not: name it in both, to read its column"
                )
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise ParameterError(f"joint has {names_of(labels, 8)}, {example}; each node once")
        refuse_many_combinations({label: len(model.node_states[nodes[label]]) for label in labels})
        label_lists.append(labels)
    return tuple({frozenset(labels): labels for labels in label_lists}.values())


def _check_node(option: str, node: Any, nodes: Mapping[str, Any]) -> None:
    if state_label(node) not in nodes:
        ask = did_you_mean(state_label(node), nodes)
        raise ParameterError(f"{option} names {node!r}, which is not a node.{ask} Nodes: {names_of(nodes, 8)}")


def _chosen(columns: Any, nodes: Mapping[str, Any]) -> dict[str, str]:
    """Return the column of every node that is to be read, in the order of the network."""
    if not (is_list(columns) or isinstance(columns, set | frozenset | Mapping)):
        raise ParameterError(f"columns is {columns!r}, expected {_EXAMPLE}")
    chosen: dict[str, str] = {}
    nodes_given: list[Any] = list(columns)
    for node in nodes_given:
        label = state_label(node)
        _check_node("columns", node, nodes)
        column: Any = columns[node] if isinstance(columns, Mapping) else label
        if not isinstance(column, str):
            raise ParameterError(f"columns[{node!r}] is {column!r}, expected the name of a column")
        if label in chosen:
            raise ParameterError(f"columns names the node {label!r} more than once")
        chosen[label] = column
    check_columns(chosen)
    if not chosen:
        raise ParameterError(f"columns is empty, expected {_EXAMPLE}, or None for all nodes that are a column")
    return {label: chosen[label] for label in nodes if label in chosen}


@contextmanager
def open_table(
    source: Any, options: Options | RowOptions, needed: Callable[[Sequence[str]], Sequence[str]] | None = None
) -> Generator[Source]:
    """Open a table with the columns that options need; what its engine raises inside is told in one line."""
    table = open_source(source, needed or options.needed, options.public, parts=options.parts, order=options.time)
    with engine_errors(table.name, table.path):
        yield table
