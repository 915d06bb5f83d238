"""Markov quilts: sets of nodes that separate what is near a node from what is remote (Definition 4.2)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pufferfish._base.checked import listed
from pufferfish._base.frozen import ReadOnly
from pufferfish._core.networks.d_separation import members
from pufferfish.errors import ModelError
from pufferfish.theta.bayesian_network import BayesianNetwork


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
        """Return the quilt's nodes as a set of places, after checking that it is a quilt of the node.

        Raises ModelError if the three sets are no partition of the nodes with the node nearby, or the quilt does not
        d-separate the node from a remote one.
        """
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
