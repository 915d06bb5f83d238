"""The options of reading independent rows, checked against the network before a table is opened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pufferfish._base.checked import is_list
from pufferfish._base.words import did_you_mean, nearest, same_name, unseen_difference
from pufferfish.data.groupings import NODE_COLUMN, Grouping, parse_by
from pufferfish.data.kinds import other_separator
from pufferfish.data.options import check_choice, listed
from pufferfish.data.where import Where, parse_where
from pufferfish.errors import DataError, ModelError, ParameterError
from pufferfish.queries.on_pairs import refuse_many_combinations
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.model_class import Described, ModelClass
from pufferfish.theta.same_records import same_records
from pufferfish.theta.states import state_label

__all__ = ["RowOptions", "check_row_options"]

_EXAMPLE = "a list such as ['rain'] or a dict from nodes to columns such as {'rain': 'Rain today'}"


@dataclass(frozen=True, slots=True)
class RowOptions:
    """The options of ``read_rows``, checked as far as they can be without a table; nodes by their labels."""

    network: BayesianNetwork
    nodes: dict[str, Any]
    columns: dict[str, str] | None
    subject: str | None
    where: Where | None
    missing: Literal["refuse", "unobserved"]
    by: tuple[Grouping, ...] = ()
    joint: tuple[tuple[str, ...], ...] = ()

    @property
    def public(self) -> tuple[str, ...]:
        """Columns that are read and hold nothing private, so that all their values together may say what they are."""
        return (*(self.where.columns if self.where else ()), *(each.column for each in self.by))

    @property
    def parts(self) -> tuple[str, ...]:
        """Columns that only groupings and the filter name, alone: ``hour`` may have been meant as ``hour(time)``."""
        timed = (*(self.where.timed if self.where else ()), *(each.column for each in self.by if each.part))
        whole = {self.subject, *timed}
        return tuple(name for name in self.public if name not in whole)

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
                    f"node {label!r} has no column, and column {spelled[0]!r} is no node: rename it if it is "
                    f"the same, or name the nodes that shall be read, by columns.{unseen_difference(label, spelled[0])}"
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
                f"no column is a node of the network: rename columns, or in Python give "
                f"columns={{{pairs or 'node: column'}}}. Columns: {listed(present)}. Nodes: {listed(list(self.nodes))}."
                f"{other_separator(present)}"
            )
        unread = [label for labels in self.joint for label in labels if label not in cells]
        if unread:
            raise DataError(
                f"joint names the node {unread[0]!r}, and no column has its name: rename one, or in Python give "
                f"columns={{{unread[0]!r}: …}}. Columns: {listed(present)}."
            )
        subject = () if self.subject is None else (self.subject,)
        return tuple(dict.fromkeys([*cells.values(), *subject, *self.public]))


def check_row_options(
    network: Any, columns: Any, subject: Any, where: Any, missing: Any, by: Any = None, joint: Any = None
) -> RowOptions:
    """Check options as they were given.

    Raises
    ------
    ModelError
        If the network is none, or networks differ in their nodes or states.
    ParameterError
        If an option is out of its range or does not go with the others.
    DataError
        If the row filter is not understood.
    """
    model = _one_network(network)
    nodes = {state_label(node): node for node in model.nodes}
    chosen = None if columns is None else _chosen(columns, nodes)
    # A node that is not read is as private as one that is.
    private = {*nodes, *(chosen or {}).values()}
    if subject is not None and not isinstance(subject, str):
        raise ParameterError(f"subject is {subject!r}, expected the name of a column")
    if subject in private:
        raise ParameterError(f"subject is {subject!r}, a node's column: expected one that says whose row it is")
    check_choice("missing", missing, ("refuse", "unobserved"))
    kept = None if where is None else parse_where(where, private, NODE_COLUMN)
    groupings = parse_by(by, time=None, private=private, called=NODE_COLUMN)
    return RowOptions(model, nodes, chosen, subject, kept, missing, groupings, _together(joint, model, nodes, chosen))


def _one_network(given: Any) -> BayesianNetwork:
    """Return a network with the nodes and states of all that are given."""
    expected = "expected a BayesianNetwork or a list of them (read_sequences reads tables for Markov chains)"
    theta: Any = given.theta if isinstance(given, Described) else given
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
    given: Any, model: BayesianNetwork, nodes: Mapping[str, Any], read: Mapping[str, str] | None
) -> tuple[tuple[str, ...], ...]:
    """Return the nodes that are counted together, by their labels: one list of nodes, or several such lists."""
    if given is None:
        return ()
    example = "expected two or more nodes, such as ['rain', 'wet'], or a list of such lists"
    several: list[Any] = list(given) if is_list(given) else []
    if not several:
        raise ParameterError(f"joint is {given!r}, {example}")
    lists = several if all(is_list(each) and state_label(each) not in nodes for each in several) else [several]
    found: list[tuple[str, ...]] = []
    for each in lists:
        labels = tuple(state_label(node) for node in each)
        for label in labels:
            if label not in nodes:
                ask = did_you_mean(label, nodes)
                raise ParameterError(f"joint names {label!r}, which is no node.{ask} Nodes: {listed(list(nodes))}")
            if read is not None and label not in read:
                raise ParameterError(
                    f"joint names the node {label!r}, and columns does not: name it in both, to read its column"
                )
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise ParameterError(f"joint has {listed(labels)}, {example}; each node once")
        refuse_many_combinations({label: len(model.node_states[nodes[label]]) for label in labels})
        found.append(labels)
    return tuple({frozenset(labels): labels for labels in found}.values())


def _chosen(given: Any, nodes: Mapping[str, Any]) -> dict[str, str]:
    """Return the column of every node that is to be read, in the order of the network."""
    if not (is_list(given) or isinstance(given, set | frozenset | Mapping)):
        raise ParameterError(f"columns is {given!r}, expected {_EXAMPLE}")
    chosen: dict[str, str] = {}
    nodes_given: list[Any] = list(given)
    for node in nodes_given:
        label = state_label(node)
        if label not in nodes:
            ask = did_you_mean(label, nodes)
            raise ParameterError(f"columns names {node!r}, which is no node.{ask} Nodes: {listed(list(nodes))}")
        column: Any = given[node] if isinstance(given, Mapping) else label
        if not isinstance(column, str):
            raise ParameterError(f"columns[{node!r}] is {column!r}, expected the name of a column")
        if label in chosen:
            raise ParameterError(f"columns names the node {label!r} more than once")
        if column in chosen.values():
            raise ParameterError(f"columns gives the column {column!r} to two nodes, expected one column for each")
        chosen[label] = column
    if not chosen:
        raise ParameterError(f"columns is empty, expected {_EXAMPLE}, or None for all nodes that are a column")
    return {label: chosen[label] for label in nodes if label in chosen}
