"""Leakage of Bayesian networks, a node at a time: the least of what cluster trees and Markov quilts prove."""

from collections.abc import Iterator, Sequence

import numpy as np

from pufferfish._base.progress import report_progress
from pufferfish._core.numbers.rounding import bracket
from pufferfish._core.propagation.clusters import Attained, ClusterPropagation
from pufferfish._core.quilts.chain_search import LeakThrough, Objective, Score
from pufferfish.mechanisms.engine import Bound, Engine, largest_bound, no_noise, smallest_bound
from pufferfish.mechanisms.network_quilts import LOOKS, QUILT_ROUNDING, NetworkQuilts, NodeSecrets
from pufferfish.mechanisms.witness import ClusterWitness
from pufferfish.queries.record_loss import RecordLoss
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.states import state_label

__all__ = ["NetworkLeakage"]

_FIRST_GUESS = 10.0
"""How many times its own loss the worst node is first taken to leak."""

_NEXT_TO_NOTHING = 1e-5
"""A share of the noise that is not worth a search for quilts."""


class NetworkLeakage(Engine):
    """Leakage of every network of a class, the least that propagation and quilts prove.

    Parameters
    ----------
    networks : sequence of BayesianNetwork
        The members of Θ.
    secrets : NodeSecrets
        What shall not be told apart.
    """

    def __init__(self, networks: Sequence[BayesianNetwork], secrets: NodeSecrets) -> None:
        self._networks = networks
        self._quilts = NetworkQuilts(networks, secrets, {}, LOOKS)
        self._clusters = [ClusterPropagation(network.tables, network.sizes) for network in networks]

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage of losses, and say where it is attained."""
        return largest_bound(self._leakage(theta, losses) for theta in self._members())

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterator[Bound]:
        """Yield the least noise found, then that of quilts alone, whose proof does not depend on a search for flows."""
        yield self._least_divisor(losses, epsilon)
        yield from self._quilts.candidate_scales(losses, epsilon)

    def _members(self) -> Iterator[int]:
        for theta in range(len(self._clusters)):
            report_progress("propagating leakage", theta / len(self._clusters))
            yield theta

    def _leakage(self, theta: int, losses: RecordLoss) -> Bound:
        if not self._clusters[theta].affordable:
            return self._quilts.worst_of(theta, losses, LeakThrough())
        attained = self._clusters[theta].leakage(losses.nodes, self._quilts.secret_pairs[theta])
        bound = attained.total, self._witness(theta, attained)
        return bound if attained.node is None else self._or_quilts(theta, attained, losses, LeakThrough(), bound)

    def _or_quilts(
        self, theta: int, attained: Attained, losses: RecordLoss, objective: Objective, bound: Bound
    ) -> Bound:
        """Return the least of a bound and of what quilts prove, searched for all nodes if it may be less at the worst.

        A node that leaks its own loss alone leaks what every quilt charges: then no search can save much.
        """
        assert attained.node is not None
        if attained.total - attained.own <= _NEXT_TO_NOTHING * attained.own:
            return smallest_bound(self._quilts.trivial_of(theta, losses, objective), bound)
        if not self._quilts.proves_less(theta, attained.node, losses, objective, bound[0]):
            return bound
        return smallest_bound(bound, self._quilts.worst_of(theta, losses, objective))

    def _least_divisor(self, losses: RecordLoss, epsilon: float) -> Bound:
        most: Bound = 0.0, None
        for theta in self._members():
            clusters = self._clusters[theta]
            if most[0] > 0 and clusters.affordable:
                fewer = losses.divided(most[0]).nodes
                if clusters.leakage(fewer, self._quilts.secret_pairs[theta]).total <= epsilon:
                    continue
            most = largest_bound((most, self._divisor(theta, losses, epsilon)))
        return most

    def _divisor(self, theta: int, losses: RecordLoss, epsilon: float) -> Bound:
        clusters, score, secrets = self._clusters[theta], Score(epsilon), self._quilts.secret_pairs[theta]
        bound, attained = (np.inf, None), None
        if clusters.affordable:
            smallest = no_noise(losses)
            attained = clusters.leakage(losses.divided(smallest).nodes, secrets)
            if attained.node is None:
                return 0.0, None
            if attained.total <= epsilon:
                return smallest, self._witness(theta, attained)
            start = _FIRST_GUESS * losses.largest / epsilon
            divisor = clusters.least_divisor(losses.nodes, epsilon, start, secrets) if start < np.inf else np.inf
            if divisor < np.inf:
                attained = clusters.leakage(losses.divided(divisor).nodes, secrets)
                bound = divisor, self._witness(theta, attained)
        if attained is not None and bound[0] < np.inf:
            value, witness = self._or_quilts(theta, attained, losses, score, bound)
        else:
            value, witness = self._quilts.worst_of(theta, losses, score)
        if value >= bound[0] or witness is None:
            return bound if clusters.affordable else (value, witness)

        def leakage(divisor: float) -> float:
            return self._leakage(theta, losses.divided(divisor))[0]

        value = max(value, no_noise(losses))  # 0: none is needed
        if leakage(value) > epsilon * (1 + QUILT_ROUNDING):
            # a search that is cut short may miss for one objective what it found for the other
            value = bracket(leakage, epsilon, value, tolerance=1e-4, from_above=False).enough
        return smallest_bound(bound, (value, witness))

    def _witness(self, theta: int, attained: Attained) -> ClusterWitness | None:
        if attained.node is None:
            return None
        network = self._networks[theta]
        node = network.nodes[attained.node]
        x, x_ = attained.pair
        names = [state_label(name) for name in network.nodes]
        return ClusterWitness(
            theta=theta,
            length=len(network.nodes),
            node=state_label(node),
            secret_pair=(network.node_states[node][x], network.node_states[node][x_]),
            own=attained.own,
            neighbours=tuple((tuple(names[v] for v in near), nats) for near, nats in attained.neighbours),
        )
