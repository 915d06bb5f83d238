r"""Several columns of one row, or all of it: what a release of a network's table tells of them together.

The secrets are all events about the values of the named nodes of one row. Their single leakages say nothing of them
together: a noisy sum modulo 2 of two fair coins tells of neither, and of both. Leakage propagation bounds it by the
losses of these nodes and by what the other ones tell of their joint value (``docs/proofs/stretches.md``). Of a whole
row the sum of all losses is the bound, and needs no model.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pufferfish._base.checked import is_list
from pufferfish._base.words import did_you_mean, names_of
from pufferfish._core.numbers.rounding import bracket
from pufferfish._core.propagation.cluster_columns import ColumnsPropagation
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.mechanisms.engine import no_noise
from pufferfish.mechanisms.group_dp import total_of
from pufferfish.mechanisms.network_quilts import NodeSecrets
from pufferfish.mechanisms.propagation import NetworkLeakage
from pufferfish.mechanisms.witness import ClusterWitness
from pufferfish.queries.record_loss import RecordLoss, as_record_loss
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.model_class import ModelClass, as_theta, rows_of
from pufferfish.theta.states import state_label

__all__ = ["ColumnsWitness", "ProtectedColumns", "leakage_of_columns", "leakage_of_row"]

_TOLERANCE = 1e-6
"""How near the leakage of the noise must come to ε, as a share of it."""


@dataclass(frozen=True, slots=True)
class ColumnsWitness:
    """The values that decide.

    Parameters
    ----------
    by : str
        What proves the bound: ``"propagation"``, ``"quilt"`` (of one column), or ``"row"``, the sum of all losses.
    theta : int
        Which member of Θ, 0-based.
    columns : tuple of str
        The columns that are secret together, in the order of the network's nodes.
    values, other_values : tuple of str, or None
        Two values of these columns that are hardest to hide from each other; None where they are not known.
    own, others : float
        Nats that these columns themselves and the other ones tell.
    """

    by: str
    theta: int
    columns: tuple[str, ...]
    values: tuple[str, ...] | None
    other_values: tuple[str, ...] | None
    own: float
    others: float


ColumnsBound = tuple[float, ColumnsWitness | None]
"""A leakage in nats, rounded up, and where it is attained; no witness where there is no secret."""


class ProtectedColumns:
    """What releases of a network's table tell of several columns of one row together.

    Parameters
    ----------
    theta : BayesianNetwork, sequence of these, or class
        The class Θ. Networks may have different edges.
    rows : int or None
        Rows of the table, which are independent; one where nothing is said.
    columns : sequence of names, optional
        The columns; their order does not matter. By default the whole row: the bound holds then whatever Θ is.

    Raises
    ------
    NotApplicableError
        If Θ is no class of networks.
    ParameterError
        If a column is unknown or named twice, or none is named.

    Examples
    --------
    >>> import pufferfish as pf
    >>> coin, flip = pf.CPT([0, 1], [0.5, 0.5]), [[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]]
    >>> network = pf.BayesianNetwork({"a": coin, "b": coin, "y": pf.CPT([0, 1], flip, ["a", "b"])})
    >>> both = ProtectedColumns(network, 100, ["a", "b"])
    >>> round(both.leakage({"y": 1.0}), 5), round(both.least_divisor({"y": 1.0}, epsilon=0.3), 3)
    (0.77614, 2.655)
    """

    def __init__(self, theta: Any, rows: int | None, columns: Any = None) -> None:
        known = as_theta(theta)
        networks = known.networks
        if not isinstance(known, ModelClass) or not networks:
            raise NotApplicableError(
                f"it covers Bayesian networks, whose records have names, and Θ is a class of {known.kind}",
                "protection of columns",
            )
        self.theta = known
        self.rows = rows_of(self.theta, rows)
        self.columns = tuple(map(state_label, networks[0].nodes)) if columns is None else _named(columns, networks[0])
        self._bounds: list[Callable[[RecordLoss], ColumnsBound]] = []
        if columns is None:
            self._bounds.append(self._of_row)
            return
        for theta_, network in enumerate(networks):
            make = _OneColumn if len(self.columns) == 1 else _SeveralColumns
            self._bounds.append(make(theta_, network, self.columns))

    def leakage(self, node_loss: Any) -> float:
        """Bound what a release tells of the columns of one row, from the losses of its nodes.

        Parameters
        ----------
        node_loss : float, sequence, or mapping from names to float or (k_node, k_node) array_like
            As :meth:`InfluenceBound.leakage` takes it.

        Returns
        -------
        float
            The leakage in nats, rounded up; ``inf`` where no bound holds.
        """
        return self.prove(node_loss)[0]

    def prove(self, node_loss: Any) -> ColumnsBound:
        """Return :meth:`leakage` and where it is attained (None: there is no secret to protect)."""
        losses = self._losses(node_loss)
        most: ColumnsBound = 0.0, None
        for bound in (prove(losses) for prove in self._bounds):
            if bound[1] is not None and (most[1] is None or not bound[0] <= most[0]):
                most = bound
        return most

    def least_divisor(self, node_loss: Any, epsilon: float) -> float:
        """Return the least number found that divides the losses so that the columns leak at most epsilon.

        For the losses of a query with noise of scale 1 it is the least scale of the noise, on the private side within a
        share of 1e-6 of ε; ``inf`` where no noise is enough, and 0 where none is needed.
        """
        if not 0 < epsilon < math.inf:
            raise ParameterError(f"epsilon is {epsilon!r}, expected a positive number of nats")
        losses, most = self._losses(node_loss), 0.0
        if not losses.largest > 0:
            return 0.0
        for bound in self._bounds:

            def leakage(divisor: float, bound: Callable[[RecordLoss], ColumnsBound] = bound) -> float:
                return bound(losses.divided(divisor))[0]

            if leakage(most or no_noise(losses)) <= epsilon:
                continue
            start = most or float(losses.blocks[0].largest.sum()) / epsilon
            most = max(most, bracket(leakage, epsilon, start, tolerance=_TOLERANCE, from_above=False).enough)
        return most

    def _losses(self, node_loss: Any) -> RecordLoss:
        return as_record_loss(node_loss, self.theta, self.theta.lengths)

    def _of_row(self, losses: RecordLoss) -> ColumnsBound:
        total = leakage_of_row(losses)
        if max(self.theta.networks[0].sizes) == 1:
            return 0.0, None
        return total, ColumnsWitness("row", 0, self.columns, None, None, total, 0.0)


def leakage_of_columns(theta: Any, rows: int | None, node_loss: Any, columns: Any = None) -> ColumnsBound:
    """Bound what a release tells of several columns of one row, and say where; see :class:`ProtectedColumns`.

    Parameters
    ----------
    theta : BayesianNetwork, sequence of these, or class
        The class Θ.
    rows : int or None
        Rows of the table.
    node_loss : float, sequence, or mapping from names to float or (k_node, k_node) array_like
        The losses of the release.
    columns : sequence of names, optional
        The columns; by default the whole row.

    Returns
    -------
    (float, ColumnsWitness or None)
        The leakage in nats, rounded up, and the values that decide; None where there is no secret.

    Examples
    --------
    >>> import pufferfish as pf
    >>> rain, wet = pf.CPT([0, 1], [0.8, 0.2]), pf.CPT([0, 1], [[0.9, 0.1], [0.2, 0.8]], ["rain"])
    >>> network = pf.BayesianNetwork({"rain": rain, "street": wet, "roof": wet})
    >>> leakage, witness = leakage_of_columns(network, 100, 0.5, ["street", "roof"])
    >>> round(leakage, 5), witness.values, witness.other_values, round(witness.own, 5)
    (1.4687, ('1', '1'), ('0', '0'), 1.0)
    >>> leakage_of_columns(network, 100, 0.5)[0]
    1.5
    """
    return ProtectedColumns(theta, rows, columns).prove(node_loss)


def leakage_of_row(losses: RecordLoss) -> float:
    """Return what a release tells of all columns of a row together: the sum of its losses, rounded up.

    It needs no model of the columns.
    """
    return total_of(losses.blocks[0])[0]


class _OneColumn:
    """The leakage of one node: what propagation and quilts prove."""

    def __init__(self, theta: int, network: BayesianNetwork, columns: tuple[str, ...]) -> None:
        self._theta, self._columns = theta, columns
        self._node = network.place(columns[0])
        self._states = network.node_states[network.nodes[self._node]]
        self._engine: NetworkLeakage | None = None
        if len(self._states) > 1:
            self._engine = NetworkLeakage([network], NodeSecrets([network.nodes[self._node]], network))

    def __call__(self, losses: RecordLoss) -> ColumnsBound:
        if self._engine is None:
            return 0.0, None
        total, witness = self._engine.prove(losses, None)
        if witness is None:
            return total, None
        value, other, own = None, None, float(losses.nodes[self._node].max())
        if witness.secret_pair is not None:
            a, b = witness.secret_pair
            value, other, own = (
                (a,),
                (b,),
                float(losses.nodes[self._node][self._states.index(a), self._states.index(b)]),
            )
        by = "quilt"
        if isinstance(witness, ClusterWitness):
            by, own = "propagation", witness.own
        return total, ColumnsWitness(by, self._theta, self._columns, value, other, own, max(total - own, 0.0))


class _SeveralColumns:
    """The leakage of several nodes together."""

    def __init__(self, theta: int, network: BayesianNetwork, columns: tuple[str, ...]) -> None:
        self._theta, self._columns = theta, columns
        places = [network.place(name) for name in columns]
        self._states = [network.node_states[network.nodes[v]] for v in places]
        self._propagation = ColumnsPropagation(network.tables, network.sizes, places)

    def __call__(self, losses: RecordLoss) -> ColumnsBound:
        attained = self._propagation.leakage(losses.nodes)
        if not attained.is_secret:
            return 0.0, None
        values: list[tuple[str, ...] | None] = [None, None]
        if attained.pair is not None:
            values = [tuple(names[x] for names, x in zip(self._states, value, strict=True)) for value in attained.pair]
        others = math.fsum(nats for _, nats in attained.parts)
        return attained.total, ColumnsWitness(
            "propagation", self._theta, self._columns, values[0], values[1], attained.own, others
        )


def _named(columns: Any, network: BayesianNetwork) -> tuple[str, ...]:
    """Return columns by their labels, in the order of the network's nodes."""
    if not is_list(columns) and not isinstance(columns, set | frozenset):
        raise ParameterError(f"columns is {columns!r}, expected a list of names of nodes")
    known = list(map(state_label, network.nodes))
    names = [state_label(name) for name in columns]
    for i, name in enumerate(names):
        if name not in known:
            raise ParameterError(
                f"columns names {name!r}, which is no node.{did_you_mean(name, known)} Nodes: {names_of(known)}"
            )
        if name in names[:i]:
            raise ParameterError(f"columns names {name!r} twice: name every column once")
    if not names:
        raise ParameterError("columns is empty: name at least one node, or leave it out for the whole row")
    return tuple(name for name in known if name in names)
