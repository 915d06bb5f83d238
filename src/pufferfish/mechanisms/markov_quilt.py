r"""MarkovQuilt: Algorithm 2, the Markov Quilt Mechanism on any Bayesian network.

For every node i there is a set of quilts S_{Q,i}, the trivial one among them. A release whose record-level losses are d
leaks at most

.. math:: \max_{\theta} \max_i \min_{Q \in S_{Q,i}} \Big[ \sum_{j \in N_Q} d_j + e_\theta(X_Q | X_i) \Big],

the loss of the nodes nearby and what the quilt tells; Algorithm 2 is this bound inverted. Quilts may be chosen anew for
every θ and every release, since each of them bounds the loss by itself; so a ledger needs no fixed quilt sets
(Theorem 4.4 asks for the same ones to add ε's, and here losses are added instead).

Where no quilts are given they are searched (:mod:`pufferfish.core.quilts.network_search`): with ``max_quilts=None`` the
best of all quilts is found, otherwise the best of as many as the bound allows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pufferfish.calibration import Calibration, Witness
from pufferfish.core.networks.d_separation import members
from pufferfish.core.numbers.inversion import bracket
from pufferfish.core.numbers.progress import report_progress
from pufferfish.core.numbers.read_only import ReadOnly, read_only
from pufferfish.core.quilts.chain_search import LeakThrough, Objective, Score
from pufferfish.core.quilts.network_search import NetworkQuilt, NodeWeights, QuiltSearch
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.mechanisms.base import InfluenceBound
from pufferfish.mechanisms.node_losses import NodeLosses
from pufferfish.mechanisms.node_secrets import NodeSecrets
from pufferfish.models.bayesian_network import BayesianNetwork
from pufferfish.models.chain_class import ChainClass
from pufferfish.models.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.models.model_class import ModelClass, Theta
from pufferfish.models.quilt import Quilt
from pufferfish.models.secrets import SecretPair
from pufferfish.models.states import state_label

__all__ = ["ActiveQuilt", "MarkovQuilt"]

_LOOKS_IN_ALL, _FEWEST = 1_000, 4
"""Quilts that are looked at for one node, times nodes, where another bound is known; and how many at least."""

_LOOKS_AT_MOST = 5_000
"""Quilts that one search over all nodes of a network looks at, but for a few of each node that is left by then."""

_KEPT = 8
"""Losses whose leakage is remembered."""

ROUNDING = 1e-9
"""By how much the leakage of the least noise may exceed ε: a nudge makes up for it."""

_HINTS = 6
"""Best quilts of other nodes that are tried before a node's own are searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveQuilt(ReadOnly):
    """The best quilt of one node, and what it lets leak of the node.

    Parameters
    ----------
    node : name
        The node.
    theta : int
        Index of the member of Θ under which it leaks most.
    quilt : Quilt
        The quilt with its nearby and remote nodes.
    secret_pair : tuple of str or None
        The two states at which the influence is attained; None where the quilt tells nothing.
    nearby_loss, influence : float
        Losses of the nearby nodes, and what the quilt tells, in nats.
    """

    node: Any
    theta: int
    quilt: Quilt
    secret_pair: tuple[str, str] | None
    nearby_loss: float
    influence: float

    @property
    def leakage(self) -> float:
        """What a release leaks of the node at most, in nats."""
        return self.nearby_loss + self.influence


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
    ``pufferfish.core.quilts.network_search``.

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
    kinds: ClassVar[tuple[type, ...]] = (ChainClass, BinaryChainInterval, IntervalChain, ModelClass)

    def __init__(
        self,
        theta: Any,
        quilts: Mapping[Any, Iterable[Any]] | None = None,
        *,
        length: int | None = None,
        secrets: Any = None,
        max_quilts: int | None = 1000,
    ) -> None:
        super().__init__(theta, length)
        given: Any = max_quilts
        if given is not None and not (isinstance(given, int) and given is not True and given >= 1):
            raise ParameterError(
                f"max_quilts is {max_quilts!r}, expected a whole number of at least 1, or None for all"
            )
        self._max_quilts: int | None = max_quilts
        self._known: dict[tuple[object, ...], tuple[float, Witness | None]] = {}
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
        losses = self._losses_of_calibration(calibration)
        found: dict[int, ActiveQuilt] = {}
        for theta, secret in enumerate(self.secret_pairs):
            search = self._search(theta, losses, LeakThrough())
            for node in self._secret_nodes(theta):
                report_progress("searching quilts", (theta + node / len(secret)) / len(self.networks))
                best = self._active(theta, self._best(search, node, secret[node]))
                if node not in found or best.leakage > found[node].leakage:
                    found[node] = best
        return tuple(found[node] for node in sorted(found))

    @cached_property
    def secret_pairs(self) -> tuple[tuple[NDArray[np.bool_], ...], ...]:
        """For every θ and every node which pairs of its values, both possible, are secret; each of shape (k, k)."""
        return self._pairs_of(self._secrets)

    @cached_property
    def _possible_pairs(self) -> tuple[tuple[NDArray[np.bool_], ...], ...]:
        """The same for all pairs of values that are both possible: a node has no loss between others."""
        return self._pairs_of(NodeSecrets(None, self.networks[0]))

    def _pairs_of(self, secrets: NodeSecrets) -> tuple[tuple[NDArray[np.bool_], ...], ...]:
        try:
            return tuple(tuple(map(read_only, secrets.of(network))) for network in self.networks)
        except ModelError as error:
            raise NotApplicableError(f"{self.title} does not apply: {error}") from error

    def proves_less(self, theta: int, node: int, losses: NodeLosses, objective: Objective, value: float) -> bool:
        """Return whether a quilt of one node, which is secret, is found that proves less than a value.

        In large networks few are looked at.
        """
        few = max(_FEWEST, _LOOKS_IN_ALL // len(losses.values))
        most = few if self.max_quilts is None else min(few, self.max_quilts)
        search = self._search(theta, losses, objective, most)
        pairs = self.secret_pairs[theta][node]
        enough = float(np.nextafter(value, -np.inf))
        return self._best(search, node, pairs, enough=enough, than=value).value < value

    def trivial_of(self, theta: int, losses: NodeLosses, objective: Objective) -> tuple[float, Witness | None]:
        """Return what the trivial quilts prove under one θ, and for which node that is most; quickly, and exactly."""
        search, secret = self._search(theta, losses, objective), self.secret_pairs[theta]
        found = [search.judged(node, 0, secret[node]) for node in self._secret_nodes(theta)]
        worst = max(found, key=lambda quilt: quilt.value, default=None)
        return (0.0, None) if worst is None else (worst.value, self._witness(worst, theta))

    def worst_of(self, theta: int, losses: NodeLosses, objective: Objective) -> tuple[float, Witness | None]:
        """Return what the best quilts found prove under one θ, and for which node that is most."""
        worst = self._worst_node(theta, losses, objective, None)
        return (0.0, None) if worst is None else (worst.value, self._witness(worst, theta))

    def _network_leakage(self, losses: NodeLosses) -> tuple[float, Witness | None]:
        key = losses.key
        if key not in self._known:
            while len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[key] = self._worst(losses, LeakThrough())
        return self._known[key]

    def _network_divisor(self, losses: NodeLosses, epsilon: float) -> tuple[float, Witness | None]:
        divisor, witness = self._worst(losses, Score(epsilon))
        if not 0 < divisor < np.inf:
            return divisor, witness

        def leakage(divisor: float) -> float:
            return self._network_leakage(losses.divided(divisor))[0]

        if leakage(divisor) <= epsilon * (1 + ROUNDING):
            return divisor, witness
        # a search that is cut short may miss for one objective what it found for the other
        return bracket(leakage, epsilon, divisor, tolerance=1e-4, from_above=False).enough, witness

    def _worst(self, losses: NodeLosses, objective: Objective) -> tuple[float, Witness | None]:
        worst: NetworkQuilt | None = None
        decides = 0
        for theta in range(len(self.networks)):
            found = self._worst_node(theta, losses, objective, worst)
            if found is not None and (worst is None or found.value > worst.value):
                worst, decides = found, theta
        return (0.0, None) if worst is None else (worst.value, self._witness(worst, decides))

    def _worst_node(
        self, theta: int, losses: NodeLosses, objective: Objective, floor: NetworkQuilt | None
    ) -> NetworkQuilt | None:
        """Return the node that its best quilt serves worst, None where none is worse than ``floor``."""
        search, secret = self._search(theta, losses, objective), self.secret_pairs[theta]
        nodes = self._secret_nodes(theta)
        first: dict[int, NetworkQuilt] = {}
        for done, node in enumerate(nodes):
            report_progress("first look at every node's quilts", (theta + done / len(nodes)) / len(self.networks))
            pairs = secret[node]
            first[node] = self._best(search, node, pairs) if node in self._given else search.first_look(node, pairs)
        hints: list[int] = []
        for done, node in enumerate(sorted(nodes, key=lambda node: -first[node].value)):
            share = (theta + done / len(nodes)) / len(self.networks)
            report_progress("searching quilts", share)
            search.tells = lambda looks, share=share: report_progress(f"searching quilts ({looks:,} so far)", share)
            enough = -np.inf if floor is None else floor.value
            if first[node].value <= enough:
                break
            found = self._best(search, node, secret[node], enough=enough, first=first[node], hints=tuple(hints))
            hints = [found.quilt, *(cut for cut in hints if cut != found.quilt)][:_HINTS]
            if floor is None or found.value > floor.value:
                floor = found
        return floor

    def _secret_nodes(self, theta: int) -> list[int]:
        return [node for node, pairs in enumerate(self.secret_pairs[theta]) if pairs.any()]

    def _search(self, theta: int, losses: NodeLosses, objective: Objective, most: int | None = None) -> QuiltSearch:
        weights = NodeWeights(losses.largest_among(self._possible_pairs[theta]))
        return QuiltSearch(self.networks[theta].inference, weights, objective, most or self.max_quilts, _LOOKS_AT_MOST)

    def _best(self, search: QuiltSearch, node: int, pairs: NDArray[np.bool_], **known: Any) -> NetworkQuilt:
        if node not in self._given:
            return search.best(node, pairs, **known)
        judged = (search.judged(node, cut, pairs) for cut in (0, *self._given[node]))
        return min(judged, key=lambda quilt: quilt.value)

    def _active(self, theta: int, found: NetworkQuilt) -> ActiveQuilt:
        network = self.networks[theta]
        node = network.nodes[found.node]
        return ActiveQuilt(
            node=node,
            theta=theta,
            quilt=Quilt.of(network, node, [network.nodes[j] for j in members(found.quilt)]),
            secret_pair=_states(network, found),
            nearby_loss=found.weight,
            influence=found.influence,
        )

    def _witness(self, found: NetworkQuilt, theta: int) -> Witness:
        network = self.networks[theta]
        return Witness(
            theta=theta,
            length=len(network.nodes),
            node=state_label(network.nodes[found.node]),
            secret_pair=_states(network, found),
            active_quilt=tuple(state_label(network.nodes[j]) for j in members(found.quilt)),
            nearby=found.nearby.bit_count(),
            influence=found.influence,
        )


def _states(network: BayesianNetwork, found: NetworkQuilt) -> tuple[str, str] | None:
    names = network.node_states[network.nodes[found.node]]
    return None if found.pair is None else (names[found.pair[0]], names[found.pair[1]])


def _given(quilts: Any, networks: tuple[BayesianNetwork, ...]) -> dict[int, list[int]]:
    """Return the quilt sets that were given, as sets of places, each checked under every θ."""
    if quilts is None:
        return {}
    if not isinstance(quilts, Mapping):
        raise ParameterError(f"quilts is {type(quilts).__name__}, expected a dict from nodes to lists of quilts")
    found: dict[int, list[int]] = {}
    sets: dict[Any, Any] = dict(quilts)  # pyright: ignore[reportUnknownArgumentType]
    for node, several in sets.items():
        if isinstance(several, str | Quilt) or not isinstance(several, Iterable):
            raise ParameterError(f"the quilts of node {node!r} are {several!r}, expected a list of quilts")
        listed: list[Any] = list(several)  # pyright: ignore[reportUnknownArgumentType]
        for quilt in listed:
            if isinstance(quilt, str) or not isinstance(quilt, Iterable | Quilt):
                raise ParameterError(f"a quilt of node {node!r} is {quilt!r}, expected a list of names or a Quilt")
        cuts = [_checked(networks, theta, node, quilt) for quilt in listed for theta in range(len(networks))]
        found[networks[0].place(node)] = list(dict.fromkeys(cuts))
    return found


def _checked(networks: Sequence[BayesianNetwork], theta: int, node: Any, quilt: Any) -> int:
    network = networks[theta]
    try:
        return (quilt if isinstance(quilt, Quilt) else Quilt.of(network, node, quilt)).checked(network, node)
    except ModelError as error:
        if len(networks) == 1:
            raise
        raise ModelError(f"under theta[{theta}]: {error}; the names of its nodes alone do for every graph") from error
