r"""MarkovQuilt: Algorithm 2, the Markov Quilt Mechanism on any Bayesian network.

For every node i there is a set of quilts S_{Q,i}, the trivial one among them. A release whose record-level losses are d
leaks at most

.. math:: \max_{\theta} \max_i \min_{Q \in S_{Q,i}} \Big[ \sum_{j \in N_Q} d_j + e_\theta(X_Q | X_i) \Big],

the loss of the nodes nearby and what the quilt tells; Algorithm 2 is this bound inverted. Quilts may be chosen anew for
every θ and every release, since each of them bounds the loss by itself; so a ledger needs no fixed quilt sets
(Theorem 4.4 asks for the same ones to add ε's, and here losses are added instead).

Where no quilts are given they are searched (:mod:`pufferfish._core.quilts.network_search`): with ``max_quilts=None``
the best of all quilts is found, otherwise the best of as many as the bound allows.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from pufferfish._core.networks.d_separation import members
from pufferfish.errors import ModelError, ParameterError, QueryError
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.engine import Engine
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.network_quilts import LOOKS, ActiveQuilt, NetworkQuilts, NodeSecrets
from pufferfish.mechanisms.witness import QuiltWitness, Witness
from pufferfish.queries import LinearQuery
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import ModelClass, Theta
from pufferfish.theta.quilt import Quilt
from pufferfish.theta.secrets import SecretPair
from pufferfish.theta.states import state_label

__all__ = ["MarkovQuilt"]


class MarkovQuilt(InfluenceBound):
    """The Markov Quilt Mechanism on any Bayesian network (Algorithm 2).

    Parameters
    ----------
    theta : BayesianNetwork, sequence of BayesianNetwork, or ModelClass
        The class Θ.
    quilts : mapping from nodes to sequences of quilts, optional
        The quilt sets S_{Q,i}: each quilt a :class:`Quilt`, which is checked, or the names of its nodes. The trivial
        quilt is always among them. For nodes that are not named, quilts are searched.
    length : int, optional
        Number of independent rows of the table, ``rows.length``; 1 where it is left out. Relative queries divide by it.
    secrets : sequence, optional
        What shall not be told apart: names of nodes, any two values of each; or pairs of RecordIs of one node. By
        default any two values of any node.
    max_quilts : int or None, default 1000
        How many quilts are looked at for each node, at most 5,000 for all nodes together, the worst nodes first; None
        for all that can matter, which takes long in dense networks. Fewer quilts are never less private: more noise.

    References
    ----------
    Section 4.1 to 4.3. The search is exhaustive where nothing limits it: proof in the docstring of
    ``pufferfish._core.quilts.network_search``.

    Examples
    --------
    The chain of three records in Section 4.2, with ε = 10: the middle record's best quilt is {X_1, X_3}.

    >>> import pufferfish as pf
    >>> first, step = pf.CPT(["0", "1"], [0.8, 0.2]), [[0.9, 0.1], [0.4, 0.6]]
    >>> chain = pf.BayesianNetwork(
    ...     {"X1": first, "X2": pf.CPT(["0", "1"], step, ["X1"]), "X3": pf.CPT(["0", "1"], step, ["X2"])}
    ... )
    >>> mechanism = pf.MarkovQuilt(chain, secrets=["X2"])
    >>> calibration = mechanism.calibrate(pf.Count("1"), epsilon=10)
    >>> round(calibration.scale, 4), calibration.witness.active_quilt
    (0.1558, ('X1', 'X3'))
    """

    name: ClassVar[str] = "markov-quilt"
    title: ClassVar[str] = "MarkovQuilt"
    witnesses: ClassVar[tuple[type[Witness], ...]] = (QuiltWitness,)
    kinds: ClassVar[tuple[type, ...]] = (MarkovChain, BinaryChainInterval, IntervalChain, ModelClass)

    def __init__(
        self,
        theta: Any,
        quilts: Mapping[Any, Iterable[Any]] | None = None,
        *,
        length: int | None = None,
        secrets: Any = None,
        max_quilts: int | None = LOOKS,
    ) -> None:
        super().__init__(theta, length)
        limit: Any = max_quilts
        if limit is not None and not (isinstance(limit, int) and limit is not True and limit >= 1):
            raise ParameterError(
                f"max_quilts is {max_quilts!r}, expected a whole number of at least 1, or None for all"
            )
        self._max_quilts: int | None = max_quilts
        self._secrets = NodeSecrets(secrets, self.networks[0])
        self._given = _given(quilts, self.networks)

    @classmethod
    def of(cls, theta: Any, length: Any, **settings: Any) -> "MarkovQuilt":
        """Return the mechanism from Θ, the number of rows, and its settings."""
        return cls(theta, length=length, **settings)

    @property
    def max_quilts(self) -> int | None:
        """How many quilts are looked at for each node; None for all that can matter."""
        return self._max_quilts

    @property
    def settings(self) -> dict[str, Any]:
        """The quilt sets that were given, the secrets, and how many quilts are looked at."""
        names = [state_label(node) for node in self.networks[0].nodes]
        quilts = {names[j]: [[names[v] for v in members(cut)] for cut in cuts] for j, cuts in self._given.items()}
        return {"quilts": quilts or None, "secrets": self._secrets.plain, "max_quilts": self.max_quilts}

    @property
    def secrets(self) -> tuple[SecretPair, ...] | None:
        """The pairs of secrets that shall not be told apart; None for any two values of any node. Read-only."""
        return self._secrets.pairs

    @classmethod
    def supports(cls, theta: Theta) -> str | None:
        """Every class of Bayesian networks is covered."""
        if theta.of_chains:
            return "Θ is a class of Markov chains, where MQMExact searches the same quilts"
        return None if theta.networks else f"it needs Bayesian networks, and Θ is a class of {theta.kind}"

    def active_quilts(self, calibration: Calibration) -> tuple[ActiveQuilt, ...]:
        """Return the best quilt of every node that is secret, under the noise of a calibration.

        Parameters
        ----------
        calibration : Calibration
            The noise: of this mechanism, or of another one for the same networks.

        Returns
        -------
        tuple of ActiveQuilt
            In the order of the network's nodes.
        """
        if not isinstance(self.bind(calibration.query), LinearQuery):
            raise QueryError("this needs a network and a query that counts or sums over the states of its nodes")
        losses = self._losses_of(calibration.query, calibration.strategy)
        return self._search.active(losses.divided(calibration.unit_scale))

    @cached_property
    def _search(self) -> NetworkQuilts:
        return NetworkQuilts(self.networks, self._secrets, self._given, self.max_quilts)

    def _engine_of(self, theta: Theta) -> Engine:
        return self._search


def _given(quilts: Any, networks: tuple[BayesianNetwork, ...]) -> dict[int, list[int]]:
    """Return the quilt sets that were given, as sets of places, each checked under every θ."""
    if quilts is None:
        return {}
    if not isinstance(quilts, Mapping):
        raise ParameterError(f"quilts is {type(quilts).__name__}, expected a dict from nodes to lists of quilts")
    cuts_by_node: dict[int, list[int]] = {}
    sets: dict[Any, Any] = dict(quilts)
    for node, several in sets.items():
        if isinstance(several, str | Quilt) or not isinstance(several, Iterable):
            raise ParameterError(f"the quilts of node {node!r} are {several!r}, expected a list of quilts")
        listed: list[Any] = list(several)
        for quilt in listed:
            if isinstance(quilt, str) or not isinstance(quilt, Iterable | Quilt):
                raise ParameterError(f"a quilt of node {node!r} is {quilt!r}, expected a list of names or a Quilt")
        cuts = [_checked(networks, theta, node, quilt) for quilt in listed for theta in range(len(networks))]
        cuts_by_node[networks[0].place(node)] = list(dict.fromkeys(cuts))
    return cuts_by_node


def _checked(networks: Sequence[BayesianNetwork], theta: int, node: Any, quilt: Any) -> int:
    network = networks[theta]
    try:
        return (quilt if isinstance(quilt, Quilt) else Quilt.of(network, node, quilt)).checked(network, node)
    except ModelError as error:
        if len(networks) == 1:
            raise
        raise ModelError(
            f"under theta[{theta}]: {error}; give only the names of its nodes to fit every graph"
        ) from error
