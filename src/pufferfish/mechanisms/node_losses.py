"""Record-level losses of a release about a network: one for every node, which has states of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.core.numbers.given import real_array
from pufferfish.errors import ParameterError
from pufferfish.models.bayesian_network import BayesianNetwork
from pufferfish.models.states import state_label
from pufferfish.queries import LinearQuery

__all__ = ["NodeLosses", "as_node_losses"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class NodeLosses:
    """Record-level losses of the nodes of a network: a :class:`~pufferfish.mechanisms.engine.RecordLoss`.

    Parameters
    ----------
    values : tuple of (k_node, k_node) ndarray
        How far the release's density can change, in nats, when that node alone goes from state x to x'.
    """

    values: tuple[Matrix, ...]

    @classmethod
    def of_query(cls, query: LinearQuery, nodes: int) -> "NodeLosses":
        """Return the losses of a query with noise of scale 1."""
        return cls(tuple(query.distance_of(j) for j in range(nodes)))

    @property
    def largest(self) -> float:
        """Largest loss of any node over pairs of its states."""
        return float(self.per_node.max())

    @property
    def per_node(self) -> NDArray[np.float64]:
        """Largest loss of every node over pairs of states; shape (n,)."""
        return np.array([float(value.max(initial=0.0)) for value in self.values])

    def largest_among(self, pairs: Sequence[NDArray[np.bool_]]) -> NDArray[np.float64]:
        """Largest loss of every node over some pairs of its states, 0 where there are none; shape (n,)."""
        return np.array([float(v.max(initial=0.0, where=w)) for v, w in zip(self.values, pairs, strict=True)])

    @property
    def key(self) -> tuple[object, ...]:
        """What tells these losses from others of the same network."""
        return tuple(value.tobytes() for value in self.values)

    def divided(self, divisor: float) -> "NodeLosses":
        """Return the losses of the same release with ``divisor`` times the noise, rounded up."""
        return NodeLosses(tuple(np.where(v > 0, np.nextafter(v / divisor, np.inf), 0.0) for v in self.values))


def as_node_losses(record_loss: Any, network: BayesianNetwork) -> NodeLosses:
    """Return the losses of every node, checked.

    Parameters
    ----------
    record_loss : float, sequence or mapping
        A number for every node; a sequence with one entry per node, in the order of ``nodes``; or a mapping from names
        of nodes to entries, 0 for all others. An entry is a number or a matrix of shape (k_node, k_node).
    network : BayesianNetwork
        The nodes and their states.

    Raises
    ------
    ParameterError
        If a node is unknown, a loss is negative or not finite, or a shape does not fit.
    """
    labels = [state_label(node) for node in network.nodes]
    entries: list[Any]
    single = isinstance(record_loss, str) or (isinstance(record_loss, np.ndarray) and record_loss.ndim == 0)
    if isinstance(record_loss, Mapping):
        given: dict[str, Any] = {state_label(node): entry for node, entry in record_loss.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        for label in given:
            if label not in labels:
                raise ParameterError(f"record_loss names {label!r}, which is no node. Nodes: {', '.join(labels[:20])}")
        entries = [given.get(label, 0.0) for label in labels]
    elif isinstance(record_loss, Sequence | np.ndarray) and not single:
        entries = list(record_loss)  # pyright: ignore[reportUnknownArgumentType]
        if len(entries) != len(labels):
            raise ParameterError(f"record_loss has {len(entries)} entries, expected {len(labels)}: one per node")
    else:
        entries = [record_loss] * len(labels)
    each = zip(entries, labels, network.sizes, strict=True)
    return NodeLosses(tuple(_matrix(entry, k, f"record_loss of node {label!r}") for entry, label, k in each))


def _matrix(entry: Any, k: int, name: str) -> Matrix:
    try:
        loss = real_array(entry)
    except TypeError as error:
        raise ParameterError(f"{name} {error}; expected losses in nats") from None
    if not np.all(np.isfinite(loss)) or np.any(loss < 0):
        raise ParameterError(f"{name} has an entry that is negative or not finite; losses are at least 0")
    if loss.shape not in ((), (k, k)):
        raise ParameterError(f"{name} has shape {loss.shape}, expected a number or ({k}, {k}): pairs of its states")
    return (loss if loss.ndim else np.full((k, k), float(loss))) * (1 - np.eye(k))
