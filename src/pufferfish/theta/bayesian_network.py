"""Bayesian networks: records that depend on each other along a directed graph without cycles.

Every node is a record. Its *conditional probability table* (CPT) gives the law of its state for every combination of
its parents' states, and the law of the whole database is the product of all tables (Section 4.1). An exact 0 in a table
is structural: that state cannot occur there. Nodes that no path of edges joins, whichever way they point, are
independent.
"""

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import listed
from pufferfish._base.frozen import FrozenDict, ReadOnly, read_only
from pufferfish._base.view import Grid, Shown, View, counted
from pufferfish._base.words import did_you_mean, names_of
from pufferfish._core.networks.d_separation import members
from pufferfish._core.networks.inference import Inference
from pufferfish.errors import ModelError, RecordError, printable
from pufferfish.theta._imports import bif_cpts, pgmpy_cpts, pyagrum_cpts
from pufferfish.theta.bif import CPT
from pufferfish.theta.markov_chain import checked_laws
from pufferfish.theta.states import refuse_missing, state_label

_MOST_LISTED, _MOST_STATES = 500, 12  # nodes, and states of each, that a table of them has


@dataclass(frozen=True, eq=False, repr=False, init=False)
class BayesianNetwork(Shown, ReadOnly):
    """A Bayesian network over named nodes, each of them a record; read-only; a :class:`ModelError` if it is none.

    Parameters
    ----------
    cpts : mapping from names to CPT
        The table of every node, whose rows are divided by their sums. The order of the mapping is that of ``nodes``;
        parents may come after their children.

    Attributes
    ----------
    nodes, order : tuple
        Names of the nodes as given, and parents before their children.
    node_states : read-only dict from names to tuple of str
        Names of the states of each node.
    states : tuple of str
        All states of all nodes, in the order in which they first appear.

    Examples
    --------
    >>> rain = CPT(["no", "yes"], [0.8, 0.2])
    >>> wet = CPT(["dry", "wet"], [[0.9, 0.1], [0.05, 0.95]], parents=["rain"])
    >>> network = BayesianNetwork({"wet": wet, "rain": rain})
    >>> network
    BayesianNetwork(<2 nodes: wet, rain; 1 edge>)
    >>> network.order, network.groups, network.states
    (('rain', 'wet'), (2,), ('dry', 'wet', 'no', 'yes'))
    """

    kind: ClassVar[str] = "Bayesian networks"
    cpts: Mapping[Any, CPT]
    nodes: tuple[Any, ...] = field(init=False)
    node_states: Mapping[Any, tuple[str, ...]] = field(init=False)
    states: tuple[str, ...] = field(init=False)
    order: tuple[Any, ...] = field(init=False)

    def __init__(self, cpts: Mapping[Any, CPT]) -> None:
        given: Any = cpts
        if not isinstance(given, Mapping):
            raise ModelError(f"cpts is {type(cpts).__name__}, expected a dict from the nodes' names to their CPTs")
        if not given:
            raise ModelError("cpts is empty: give at least one node")
        cpts = dict(cpts)
        nodes, labels = tuple(cpts), dict[str, Any]()
        for node in nodes:
            refuse_missing(node, "the name of a node")
            cpt: Any = cpts[node]
            if not isinstance(cpt, CPT):
                raise ModelError(f"cpts[{node!r}] is {type(cpt).__name__}, expected a CPT")
            if (before := labels.setdefault(state_label(node), node)) is not node:
                raise ModelError(f"nodes {before!r} and {node!r} have the same name; give every node its own name")
        node_states = FrozenDict({node: cpts[node].states for node in nodes})
        every = dict.fromkeys(state for states in node_states.values() for state in states)
        self._keep(nodes=nodes, node_states=node_states, states=tuple(every))
        for node in nodes:
            self._check_parents(node, cpts[node].parents)
        order = _topological(nodes, {node: cpts[node].parents for node in nodes})
        self._keep(order=order, cpts=FrozenDict({node: self._checked(node, cpts[node]) for node in nodes}))

    @classmethod
    def from_bif(cls, path: str | os.PathLike[str]) -> Self:
        """Read a network from a BIF file (``.bif`` or ``.bif.gz``); a RecordError, with the line, if it describes none.

        Rows that sum to 1 but for the rounding of the printed decimals are divided by their sums; nothing else is
        repaired.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "rain.bif")
        >>> _ = path.write_text('''
        ... network rain { }
        ... variable Rain { type discrete [ 2 ] { no, yes }; }
        ... variable Wet { type discrete [ 3 ] { 0-5, 5+, "out of range" }; }
        ... probability ( Rain ) { table 0.8, 0.2; }
        ... probability ( Wet | Rain ) { (no) 0.9, 0.1, 0; (yes) 0.333, 0.333, 0.333; }
        ... ''')
        >>> network = BayesianNetwork.from_bif(path)
        >>> network.nodes, network.cpts["Wet"].table[1].round(6)
        (('Rain', 'Wet'), array([0.333333, 0.333333, 0.333333]))
        """
        cpts = bif_cpts(path)
        try:
            return cls(cpts)
        except ModelError as error:
            raise RecordError(f"{path} holds no valid network: {error}") from error

    @classmethod
    def from_pyagrum(cls, bn: Any) -> Self:
        """Take over a ``pyagrum.BayesNet``, whose rows may be off by single precision; else a ModelError."""
        return cls(pyagrum_cpts(bn))

    @classmethod
    def from_pgmpy(cls, model: Any) -> Self:
        """Take over a ``DiscreteBayesianNetwork`` of pgmpy (before 1: ``BayesianNetwork``); else a ModelError."""
        return cls(pgmpy_cpts(model))

    def __repr__(self) -> str:
        names = ", ".join(str(node) for node in self.nodes[:6]) + (", …" if len(self.nodes) > 6 else "")
        edges = counted(len(self.edges), "edge")
        return printable(f"BayesianNetwork(<{counted(len(self.nodes), 'node')}: {names}; {edges}>)")

    def _view(self) -> View:
        rows: list[list[Any]] = []
        for node in self.nodes[:_MOST_LISTED]:
            cpt = self.cpts[node]
            parents = ", ".join(map(state_label, cpt.parents))
            rows.append([state_label(node), ", ".join(cpt.states[:_MOST_STATES]), parents, int(cpt.table.size)])
        grid = Grid("Nodes", ["node", "states", "parents", "probabilities"], rows, long=len(self.nodes))
        edges = counted(len(self.edges), "edge")
        return View(f"Bayesian network of {counted(len(self.nodes), 'node')} and {edges}", None, [grid])

    @cached_property
    def components(self) -> tuple[tuple[Any, ...], ...]:
        """Nodes of every connected component of the graph without directions, in the order of ``nodes``."""
        return connected(self.nodes, self.edges)

    @property
    def edges(self) -> tuple[tuple[Any, Any], ...]:
        """All edges, as (parent, child)."""
        return tuple((parent, node) for node, cpt in self.cpts.items() for parent in cpt.parents)

    @property
    def groups(self) -> tuple[int, ...]:
        """Numbers of records that may depend on each other: sizes of the connected components."""
        return tuple(len(component) for component in self.components)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of states of every node, in the order of ``nodes``."""
        return tuple(len(self.node_states[node]) for node in self.nodes)

    @cached_property
    def domains(self) -> tuple[NDArray[np.intp], ...]:
        """Places in ``states`` of the states of every node, in the order of ``nodes``."""
        place = {state: x for x, state in enumerate(self.states)}
        return tuple(read_only(np.array([place[state] for state in self.node_states[node]])) for node in self.nodes)

    @cached_property
    def inference(self) -> Inference:
        """Exact inference, which keeps what it computed; nodes are places in ``nodes``."""
        return Inference(self.tables, self.sizes)

    def marginal(self, *nodes: Any) -> NDArray[np.float64]:
        """Joint law of some nodes, each once, by exact inference: P(nodes), one axis per node in the order given.

        Raises ModelError if a name is no node, or the law takes an array that is too large.

        Examples
        --------
        >>> rain, wet = CPT(["no", "yes"], [0.8, 0.2]), CPT(["no", "yes"], [[0.9, 0.1], [0.05, 0.95]], parents=["rain"])
        >>> BayesianNetwork({"rain": rain, "wet": wet}).marginal("wet").round(3)
        array([0.73, 0.27])
        """
        if not nodes or len(set(nodes)) < len(nodes):
            raise ModelError(f"marginal has the nodes {nodes!r}, expected at least one node, each once")
        return self.inference.joint([self.place(node) for node in nodes])

    def place(self, node: Any) -> int:
        """Return where a node is in ``nodes``; ModelError if there is none of that name."""
        label = state_label(node)
        if label not in self._places:
            hint = did_you_mean(label, self._places)
            raise ModelError(f"there is no node {node!r}.{hint} Nodes: {names_of(self._places)}")
        return self._places[label]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {state_label(node): place for place, node in enumerate(self.nodes)}

    @cached_property
    def tables(self) -> tuple[tuple[tuple[int, ...], NDArray[np.float64]], ...]:
        """Every node's table with the positions in ``nodes`` of its axes: its parents, then itself."""
        position = {node: i for i, node in enumerate(self.nodes)}
        return tuple(
            (tuple(position[name] for name in (*cpt.parents, node)), cpt.table) for node, cpt in self.cpts.items()
        )

    def _check_parents(self, node: Any, parents: Sequence[Any]) -> None:
        for parent in parents:
            if not isinstance(parent, Hashable) or parent not in self.node_states:
                known = [str(name) for name in self.nodes]
                hint, shown = did_you_mean(parent, known), names_of(known)
                raise ModelError(f"node {node!r} has the parent {parent!r}, which is not a node.{hint} Nodes: {shown}")

    def _checked(self, node: Any, cpt: CPT) -> CPT:
        """Return a table that fits its parents, rows divided by their sums."""
        expected = (*(len(self.node_states[parent]) for parent in cpt.parents), len(cpt.states))
        if cpt.table.shape != expected:
            axes = ", ".join(f"{k} states of {parent}" for parent, k in zip(cpt.parents, expected, strict=False))
            raise ModelError(
                f"the table of node {node!r} has shape {cpt.table.shape}, expected {expected}: {axes}, and its own "
                f"{expected[-1]} last; are the axes in the order of parents?"
            )

        def called(place: Sequence[int]) -> str:
            axes = zip((*cpt.parents, node), place, strict=False)
            named = [f"{name} = {self.node_states[name][state]}" for name, state in axes]
            return f"the table of node {node!r}" + (f" where {', '.join(named)}" if named else "")

        hint = "Rows run along the last axis, which is the node's own; divide counts by their sum."
        return CPT(cpt.states, checked_laws(cpt.table, called, hint), cpt.parents)


def connected(nodes: Sequence[Any], edges: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], ...]:
    """Return the nodes of every connected part of a graph without directions, in the order of ``nodes``."""
    parts = {node: [node] for node in nodes}
    for one, other in edges:
        small, large = sorted((parts[one], parts[other]), key=len)
        if small is not large:
            large += small
            parts.update(dict.fromkeys(small, large))
    place = {node: i for i, node in enumerate(nodes)}
    different = {id(part): part for part in parts.values()}.values()
    return tuple(tuple(sorted(part, key=lambda node: place[node])) for part in different)


def _topological(nodes: Sequence[Any], parents: Mapping[Any, Sequence[Any]]) -> tuple[Any, ...]:
    """Order nodes so that parents come before their children, and else as they are given."""
    sorter = TopologicalSorter[Any](dict.fromkeys(nodes, ()))
    for node in nodes:
        sorter.add(node, *parents[node])
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        cycle = error.args[1][1:]  # whose first node is its last one too
        first = min(range(len(cycle)), key=lambda i: nodes.index(cycle[i]))
        names = [str(node) for node in (*cycle[first:], *cycle[: first + 1])]
        raise ModelError(
            f"edges form a cycle: {' → '.join(names)}; a Bayesian network has none, so turn or drop one of these edges"
        ) from None


# -- Networks about the same records ---------------------------------------------------------------------------------


def same_records(networks: Sequence[BayesianNetwork], name: str) -> tuple[BayesianNetwork, ...]:
    """Return networks about the same records, at least one, with nodes and states in the order of the first one.

    They may have different edges. Errors call the sequence ``name``.

    >>> coin = CPT(["no", "yes"], [0.5, 0.5])
    >>> apart = BayesianNetwork({"a": coin, "b": coin})
    >>> edge = BayesianNetwork({"b": CPT(["yes", "no"], [[0.1, 0.9], [0.8, 0.2]], ["a"]), "a": coin})
    >>> same_records([apart, edge], "theta")[1].node_states == apart.node_states
    True
    """
    first = networks[0]
    return (first, *(_like(network, first, f"{name}[{i}]", name) for i, network in enumerate(networks[1:], 1)))


def _like(network: BayesianNetwork, first: BayesianNetwork, this: str, name: str) -> BayesianNetwork:
    mine = {state_label(node): node for node in network.nodes}
    names = {state_label(node): node for node in first.nodes}
    if mine.keys() != names.keys():
        lacking, more = (
            [label for label in one if label not in other] for one, other in ((names, mine), (mine, names))
        )
        odd = f"it lacks the node {lacking[0]!r}" if lacking else f"the node {more[0]!r} is only there"
        raise ModelError(
            f"{this} has the nodes {names_of(mine, 8)} and {name}[0] {names_of(names, 8)}: all members of a class are "
            f"about the same records; {odd}"
        )
    for label, node in names.items():
        states = network.node_states[mine[label]]
        if set(states) != set(first.node_states[node]):
            expected = names_of(first.node_states[node], 8)
            raise ModelError(
                f"node {node!r} has the states {names_of(states, 8)} in {this} and {expected} in {name}[0]: all "
                "members of a class share the states of every node"
            )
    if network.nodes == first.nodes and network.node_states == first.node_states:
        return network
    order = {
        label: [network.node_states[mine[label]].index(state) for state in first.node_states[node]]
        for label, node in names.items()
    }
    tables: dict[Any, CPT] = {}
    for label, node in names.items():
        cpt = network.cpts[mine[label]]
        above = [state_label(parent) for parent in cpt.parents]
        table = cpt.table[np.ix_(*(order[axis] for axis in (*above, label)))]
        tables[node] = CPT(first.node_states[node], table, [names[parent] for parent in above])
    return BayesianNetwork(tables)


# -- Markov quilts: sets of nodes that separate what is near a node from what is remote --------------------------------


@dataclass(frozen=True, slots=True)
class Quilt(ReadOnly):
    """A Markov quilt of a node (Definition 4.2): the quilt d-separates the node from the remote nodes.

    Made by hand it is checked when it is used, against the network; :meth:`of` finds the largest remote set. The loss
    of the ``nearby`` nodes, the node itself among them, counts in full; the node moves the law of those in ``quilt``,
    and ``remote`` ones are independent of it given these.

    Examples
    --------
    >>> import pufferfish as pf
    >>> table = [[0.9, 0.1], [0.2, 0.8]]
    >>> chain = {"a": pf.CPT(["0", "1"], [0.5, 0.5])}
    >>> chain |= {b: pf.CPT(["0", "1"], table, parents=[a]) for a, b in ("ab", "bc", "cd")}
    >>> Quilt.of(pf.BayesianNetwork(chain), "a", ["c"])
    Quilt(nearby=('a', 'b'), quilt=('c',), remote=('d',))
    """

    nearby: tuple[Any, ...]
    quilt: tuple[Any, ...]
    remote: tuple[Any, ...]

    def __post_init__(self) -> None:
        parts = ("nearby", "quilt", "remote")
        self._keep(**{name: tuple(listed(getattr(self, name), name, "a list of nodes", ModelError)) for name in parts})

    @classmethod
    def of(cls, network: BayesianNetwork, node: Any, quilt: Iterable[Any]) -> "Quilt":
        """Return the quilt of a node with the largest remote set; ModelError if it holds no node, or the node."""
        place, cut = network.place(node), cls._cut(network, node, quilt)
        return cls._named(network, network.inference.dag.connected(place, cut), cut)

    @classmethod
    def _named(cls, network: BayesianNetwork, nearby: int, cut: int) -> "Quilt":
        remote = ~(nearby | cut) & ((1 << len(network.nodes)) - 1)
        return cls(*(tuple(network.nodes[j] for j in members(part)) for part in (nearby, cut, remote)))

    @staticmethod
    def _cut(network: BayesianNetwork, node: Any, quilt: Iterable[Any]) -> int:
        cut = 0
        for name in listed(quilt, f"the quilt of node {node!r}", "a list of names of nodes", ModelError):
            cut |= 1 << network.place(name)
        if cut >> network.place(node) & 1:
            raise ModelError(
                f"the quilt of node {node!r} holds the node itself: leave it out, a node is always among "
                "its nearby nodes"
            )
        return cut

    def checked(self, network: BayesianNetwork, node: Any) -> int:
        """Return the quilt's nodes as a set of places; ModelError if it is no quilt of the node."""
        named = [network.place(name) for part in (self.nearby, self.quilt, self.remote) for name in part]
        place, cut = network.place(node), self._cut(network, node, self.quilt)
        if place not in named[: len(self.nearby)]:
            raise ModelError(f"the quilt of node {node!r} lacks the node itself among the nearby nodes: add it")
        if sorted(named) != list(range(len(network.nodes))):
            raise ModelError(
                f"nearby, quilt and remote of the quilt of node {node!r} hold {len(named)} nodes, expected each of the "
                f"{len(network.nodes)} nodes once; Quilt.of finds nearby and remote"
            )
        remote = named[len(named) - len(self.remote) :]
        joined = [j for j in members(network.inference.dag.connected(place, cut)) if j in remote]
        if joined:
            raise ModelError(
                f"the quilt {{{', '.join(str(name) for name in self.quilt)}}} does not separate node {node!r} from the "
                f"remote node {network.nodes[joined[0]]!r}: add it to nearby"
            )
        return cut
