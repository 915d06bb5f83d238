r"""MarkovQuilt: Algorithm 2, the Markov Quilt Mechanism on any Bayesian network.

For every node i there is a set of quilts S_{Q,i}, the trivial one among them. A release whose record-level losses are d
leaks at most

.. math:: \max_{\theta} \max_i \min_{Q \in S_{Q,i}} \Big[ \sum_{j \in N_Q} d_j + e_\theta(X_Q | X_i) \Big],

the loss of the nodes nearby and what the quilt tells; Algorithm 2 is this bound inverted. Quilts may be chosen anew for
every θ and every release, since each of them bounds the loss by itself; so a ledger needs no fixed quilt sets. Where no
quilts are given they are searched (:mod:`pufferfish._core.quilts.network_search`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import is_list
from pufferfish._base.frozen import ReadOnly, read_only
from pufferfish._base.progress import report_progress
from pufferfish._base.words import did_you_mean, names_of
from pufferfish._core.networks.d_separation import members
from pufferfish._core.numbers.rounding import bracket
from pufferfish._core.quilts.chain_search import LeakThrough, Objective, Score
from pufferfish._core.quilts.network_search import NetworkQuilt, NodeWeights, QuiltSearch
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, QueryError
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.engine import Bound, Engine
from pufferfish.mechanisms.influence_bound import InfluenceBound, at_least_one
from pufferfish.mechanisms.witness import QuiltWitness, Witness
from pufferfish.queries import LinearQuery
from pufferfish.queries.record_loss import RecordLoss
from pufferfish.theta.bayesian_network import BayesianNetwork, Quilt
from pufferfish.theta.continua import BinaryChainInterval, IntervalChain
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import ModelClass, Theta
from pufferfish.theta.secrets import RecordIs, Secret, SecretPair
from pufferfish.theta.states import state_label

# -- Secrets about single nodes of a network -------------------------------------------------------------------------


class NodeSecrets:
    """Pairs of values of single nodes that shall not be told apart.

    Names of nodes, each any two values of which are secret; pairs of :class:`RecordIs` of one node; or the same as
    (node, values, other values). By default every node is secret. A :class:`ParameterError` if a node or state is
    unknown, a pair is about two nodes or overlaps, or nothing is secret.
    """

    def __init__(self, secrets: Any, network: BayesianNetwork) -> None:
        self._network = network
        self._entries: list[tuple[int, tuple[str, ...], tuple[str, ...]]] | None = None
        if secrets is not None:
            if not (is_list(secrets) or isinstance(secrets, set | frozenset)):
                raise ParameterError(
                    f"secrets is {secrets!r}, expected a list of names of nodes, or of pairs of RecordIs"
                )
            listed: list[Any] = list(secrets)
            self._entries = [entry for secret in listed for entry in _entries_of(secret, network)]
            if not self._entries:
                raise ParameterError("secrets is empty: name at least one node, or leave it out to keep all secret")

    @property
    def pairs(self) -> tuple[SecretPair, ...] | None:
        """The pairs of secrets; None for any two values of any node."""
        if self._entries is None:
            return None
        names = self._network.nodes
        return tuple((RecordIs(names[j], a), RecordIs(names[j], b)) for j, a, b in self._entries)

    @property
    def plain(self) -> list[list[Any]] | None:
        """The same as plain values: node, values, other values."""
        if self._entries is None:
            return None
        return [[state_label(self._network.nodes[j]), list(a), list(b)] for j, a, b in self._entries]

    def of(self, network: BayesianNetwork) -> list[NDArray[np.bool_]]:
        """Return for every node which pairs of its values, both possible, shall not be told apart; shapes (k, k).

        The value x of one secret is told from x' of the other for every x of the first and x' of the second: what holds
        for all of these holds for the secrets, whose laws are mixtures.
        """
        all_pairs: list[NDArray[np.bool_]] = []
        for j, k in enumerate(network.sizes):
            possible = network.inference.possible(j)
            all_pairs.append(possible[:, None] & possible[None, :] & ~np.eye(k, dtype=np.bool_))
        if self._entries is None:
            return all_pairs
        asked = [np.zeros_like(pairs) for pairs in all_pairs]
        for j, a, b in self._entries:
            names = network.node_states[network.nodes[j]]
            rows, columns = ([names.index(state) for state in states] for states in (a, b))
            asked[j][np.ix_(rows, columns)] = True
            asked[j][np.ix_(columns, rows)] = True
        return [pairs & wanted for pairs, wanted in zip(all_pairs, asked, strict=True)]


def _entries_of(secret: Any, network: BayesianNetwork) -> list[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    if not isinstance(secret, Secret) and state_label(secret) in map(state_label, network.nodes):
        names = network.node_states[network.nodes[network.place(secret)]]
        if len(names) < 2:
            raise ParameterError(f"node {secret!r} has only one state: there is nothing to keep secret")
        return [(network.place(secret), (a,), (b,)) for i, a in enumerate(names) for b in names[i + 1 :]]
    parts: list[Any] = list(secret) if isinstance(secret, Sequence) and not isinstance(secret, str) else [secret]
    if len(parts) == 3:
        parts = [RecordIs(parts[0], parts[1]), RecordIs(parts[0], parts[2])]
    if len(parts) != 2 or not all(isinstance(part, Secret) for part in parts):
        network.place(secret)
        raise ParameterError(f"secrets has the entry {secret!r}, expected the name of a node, or two RecordIs of one")
    if not all(isinstance(part, RecordIs) for part in parts):
        raise ParameterError(
            f"the secrets ({parts[0]}) and ({parts[1]}) concern more than one record, but this mechanism covers "
            "secrets about single nodes only: use Wasserstein or ExactLaplace"
        )
    first, second = parts
    place = network.place(first.record)
    if network.place(second.record) != place:
        raise ParameterError(
            f"the secrets ({first}) and ({second}) are about two nodes: both secrets of a pair must "
            "be about the same node"
        )
    names = network.node_states[network.nodes[place]]
    for state in (*first.states, *second.states):
        if state not in names:
            hint = did_you_mean(state, names)
            raise ParameterError(f"node {first.record!r} has no state {state!r}.{hint} States: {names_of(names)}")
    shared = set(first.states) & set(second.states)
    if shared:
        raise ParameterError(f"the secrets ({first}) and ({second}) share the value {min(shared)!r}")
    return [(place, first.states, second.states)]


# -- The search, as an engine ----------------------------------------------------------------------------------------

LOOKS = 1_000  # quilts that are looked at for one node, where nothing else is asked for
_LOOKS_IN_ALL, _FEWEST = 1_000, 4  # quilts per node times nodes, where another bound is known; how many at least
_LOOKS_AT_MOST = 5_000  # quilts that one search over all nodes looks at, but for a few of each node left by then
_ROUNDING = 1e-9  # by how much the leakage of the least noise may exceed ε: a nudge makes up for it
_HINTS = 6  # best quilts of other nodes that are tried before a node's own are searched


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveQuilt(ReadOnly):
    """The best quilt of one node, and what it lets leak of the node, in nats, under the worst member of Θ.

    ``quilt`` has its nearby nodes, which lose ``nearby_loss`` together, and remote ones. ``influence`` is what the
    quilt tells, attained at ``secret_pair`` (None: nothing).
    """

    node: Any
    theta: int
    quilt: Quilt
    secret_pair: tuple[str, str] | None
    nearby_loss: float
    influence: float

    @property
    def leakage(self) -> float:
        """What a release leaks of the node at most."""
        return self.nearby_loss + self.influence


class NetworkQuilts(Engine):
    """The search for the best quilts of the nodes of networks, at most so many each (None: all), or those given."""

    def __init__(
        self,
        networks: Sequence[BayesianNetwork],
        secrets: NodeSecrets,
        given_quilts: Mapping[int, Sequence[int]],
        most: int | None,
    ) -> None:
        self._networks = networks
        self._secrets = secrets
        self._given = given_quilts
        self._max_quilts = most

    @cached_property
    def secret_pairs(self) -> tuple[tuple[NDArray[np.bool_], ...], ...]:
        """For every θ and every node which pairs of its values, both possible, are secret; each of shape (k, k)."""
        return self._pairs_of(self._secrets)

    @cached_property
    def _possible_pairs(self) -> tuple[tuple[NDArray[np.bool_], ...], ...]:
        """The same for all pairs of values that are both possible: a node has no loss between others."""
        return self._pairs_of(NodeSecrets(None, self._networks[0]))

    def _pairs_of(self, secrets: NodeSecrets) -> tuple[tuple[NDArray[np.bool_], ...], ...]:
        try:
            return tuple(tuple(map(read_only, secrets.of(network))) for network in self._networks)
        except ModelError as error:
            raise NotApplicableError(str(error), "MarkovQuilt") from error

    def proves_less(self, theta: int, node: int, losses: RecordLoss, objective: Objective, value: float) -> bool:
        """Whether a quilt of one node, which is secret, is found that proves less than a value; few are looked at."""
        few = max(_FEWEST, _LOOKS_IN_ALL // len(losses.nodes))
        most = few if self._max_quilts is None else min(few, self._max_quilts)
        search = self._search(theta, losses, objective, most)
        pairs = self.secret_pairs[theta][node]
        enough = float(np.nextafter(value, -np.inf))
        return self._best(search, node, pairs, enough=enough, than=value).value < value

    def trivial_of(self, theta: int, losses: RecordLoss, objective: Objective) -> Bound:
        """Return what the trivial quilts prove under one θ, and for which node that is most; quickly, and exactly."""
        search, secret = self._search(theta, losses, objective), self.secret_pairs[theta]
        quilts = [search.judged(node, 0, secret[node]) for node in self._secret_nodes(theta)]
        worst = max(quilts, key=lambda quilt: quilt.value, default=None)
        return (0.0, None) if worst is None else (worst.value, self._witness(worst, theta))

    def worst_of(self, theta: int, losses: RecordLoss, objective: Objective) -> Bound:
        """Return what the best quilts found prove under one θ, and for which node that is most."""
        worst = self._worst_node(theta, losses, objective, None)
        return (0.0, None) if worst is None else (worst.value, self._witness(worst, theta))

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage by the node that its best quilt serves worst."""
        return self._worst(losses, LeakThrough())

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> list[Bound]:
        """Return the least number found."""
        divisor, witness = self._worst(losses, Score(epsilon))
        if not 0 < divisor < np.inf:
            return [(divisor, witness)]

        def leakage(divisor: float) -> float:
            return self.leakage(losses.divided(divisor), epsilon)[0]

        return [(raised(divisor, leakage, epsilon), witness)]

    def active(self, losses: RecordLoss) -> tuple[ActiveQuilt, ...]:
        """Return the best quilt of every node that is secret, in the order of the network's nodes."""
        active_quilts: dict[int, ActiveQuilt] = {}
        for theta, secret in enumerate(self.secret_pairs):
            search = self._search(theta, losses, LeakThrough())
            for node in self._secret_nodes(theta):
                report_progress("searching quilts", (theta + node / len(secret)) / len(self._networks))
                best = self._active(theta, self._best(search, node, secret[node]))
                if node not in active_quilts or best.leakage > active_quilts[node].leakage:
                    active_quilts[node] = best
        return tuple(active_quilts[node] for node in sorted(active_quilts))

    def _worst(self, losses: RecordLoss, objective: Objective) -> Bound:
        worst: NetworkQuilt | None = None
        decides = 0
        for theta in range(len(self._networks)):
            quilt = self._worst_node(theta, losses, objective, worst)
            if quilt is not None and (worst is None or not quilt.value <= worst.value):
                worst, decides = quilt, theta
        return (0.0, None) if worst is None else (worst.value, self._witness(worst, decides))

    def _worst_node(
        self, theta: int, losses: RecordLoss, objective: Objective, floor: NetworkQuilt | None
    ) -> NetworkQuilt | None:
        """Return the node that its best quilt serves worst, None where none is worse than ``floor``."""
        search, secret = self._search(theta, losses, objective), self.secret_pairs[theta]
        nodes = self._secret_nodes(theta)
        first: dict[int, NetworkQuilt] = {}
        for done, node in enumerate(nodes):
            report_progress("first look at every node's quilts", (theta + done / len(nodes)) / len(self._networks))
            pairs = secret[node]
            first[node] = self._best(search, node, pairs) if node in self._given else search.first_look(node, pairs)
        hints: list[int] = []
        for done, node in enumerate(sorted(nodes, key=lambda node: -first[node].value)):
            share = (theta + done / len(nodes)) / len(self._networks)
            report_progress("searching quilts", share)
            search.tells = lambda looks, share=share: report_progress(f"searching quilts ({looks:,} so far)", share)
            enough = -np.inf if floor is None else floor.value
            if first[node].value <= enough:
                break
            quilt = self._best(search, node, secret[node], enough=enough, first=first[node], hints=tuple(hints))
            hints = [quilt.quilt, *(cut for cut in hints if cut != quilt.quilt)][:_HINTS]
            if floor is None or not quilt.value <= floor.value:
                floor = quilt
        return floor

    def _secret_nodes(self, theta: int) -> list[int]:
        return [node for node, pairs in enumerate(self.secret_pairs[theta]) if pairs.any()]

    def _search(self, theta: int, losses: RecordLoss, objective: Objective, most: int | None = None) -> QuiltSearch:
        between = zip(losses.nodes, self._possible_pairs[theta], strict=True)
        weights = NodeWeights(np.array([float(loss.max(initial=0.0, where=pairs)) for loss, pairs in between]))
        return QuiltSearch(
            self._networks[theta].inference, weights, objective, most or self._max_quilts, _LOOKS_AT_MOST
        )

    def _best(self, search: QuiltSearch, node: int, pairs: NDArray[np.bool_], **known: Any) -> NetworkQuilt:
        if node not in self._given:
            return search.best(node, pairs, **known)
        judged = (search.judged(node, cut, pairs) for cut in (0, *self._given[node]))
        return min(judged, key=lambda quilt: quilt.value)

    def _active(self, theta: int, quilt: NetworkQuilt) -> ActiveQuilt:
        network = self._networks[theta]
        node = network.nodes[quilt.node]
        return ActiveQuilt(
            node=node,
            theta=theta,
            quilt=Quilt.of(network, node, [network.nodes[j] for j in members(quilt.quilt)]),
            secret_pair=_states(network, quilt),
            nearby_loss=quilt.weight,
            influence=quilt.influence,
        )

    def _witness(self, quilt: NetworkQuilt, theta: int) -> QuiltWitness:
        network = self._networks[theta]
        return QuiltWitness(
            theta=theta,
            length=len(network.nodes),
            node=state_label(network.nodes[quilt.node]),
            secret_pair=_states(network, quilt),
            active_quilt=tuple(state_label(network.nodes[j]) for j in members(quilt.quilt)),
            nearby=quilt.nearby.bit_count(),
            influence=quilt.influence,
        )


def raised(divisor: float, leakage: Callable[[float], float], epsilon: float) -> float:
    """Return a divisor, or more: a search that is cut short may miss for leakage what it found for the divisor."""
    if leakage(divisor) <= epsilon * (1 + _ROUNDING):
        return divisor
    return bracket(leakage, epsilon, divisor, tolerance=1e-4, from_above=False).enough


def _states(network: BayesianNetwork, quilt: NetworkQuilt) -> tuple[str, str] | None:
    names = network.node_states[network.nodes[quilt.node]]
    return None if quilt.pair is None else (names[quilt.pair[0]], names[quilt.pair[1]])


# -- The mechanism ---------------------------------------------------------------------------------------------------


class MarkovQuilt(InfluenceBound):
    """The Markov Quilt Mechanism on any Bayesian network (Algorithm 2, Section 4.1 to 4.3).

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

    Examples
    --------
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
    max_quilts: int | None  # how many quilts are looked at for each node; None for all that can matter

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
        nodes = NodeSecrets(secrets, self.networks[0])
        self._keep(max_quilts=at_least_one(max_quilts, "max_quilts"), secrets=nodes.pairs)
        self._nodes, self._given = nodes, _given(quilts, self.networks)

    @classmethod
    def of(cls, theta: Any, length: Any, **settings: Any) -> "MarkovQuilt":
        """Return the mechanism from Θ, the number of rows, and its settings."""
        return cls(theta, length=length, **settings)

    @property
    def settings(self) -> dict[str, Any]:
        """The quilt sets that were given, the secrets, and how many quilts are looked at."""
        names = [state_label(node) for node in self.networks[0].nodes]
        quilts = {names[j]: [[names[v] for v in members(cut)] for cut in cuts] for j, cuts in self._given.items()}
        return {"quilts": quilts or None, "secrets": self._nodes.plain, "max_quilts": self.max_quilts}

    @classmethod
    def supports(cls, theta: Theta) -> str | None:
        """Every class of Bayesian networks is covered."""
        if theta.of_chains:
            return "Θ is a class of Markov chains, where MQMExact searches the same quilts"
        return None if theta.networks else f"it needs Bayesian networks, and Θ is a class of {theta.kind}"

    def active_quilts(self, calibration: Calibration) -> tuple[ActiveQuilt, ...]:
        """Return the best quilt of every secret node, in order, under the noise of a calibration, of any mechanism."""
        if not isinstance(self.bind(calibration.query), LinearQuery):
            raise QueryError("this needs a network and a query that counts or sums over the states of its nodes")
        losses = self._losses_of(calibration.query, calibration.strategy)
        return self._search.active(losses.divided(calibration.unit_scale))

    @cached_property
    def _search(self) -> NetworkQuilts:
        return NetworkQuilts(self.networks, self._nodes, self._given, self.max_quilts)

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
