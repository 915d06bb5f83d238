"""Leakage of Bayesian networks, a node at a time: the least of what cluster trees and Markov quilts prove."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._core.numbers.rounding import bracket
from pufferfish._core.propagation.cluster_sweep import Attained
from pufferfish._core.propagation.clusters import ClusterPropagation
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
        attained = self._clusters[theta].leakage(losses.nodes, self._secrets(theta))
        bound = attained.total, self._witness(theta, attained)
        if attained.node is None:
            return bound
        if _alone(attained):
            return smallest_bound(self._quilts.trivial_of(theta, losses, LeakThrough()), bound)
        if self._quilts_prove_no_less(theta, attained, losses, LeakThrough()):
            return bound
        return smallest_bound(bound, self._quilts.worst_of(theta, losses, LeakThrough()))

    def _least_divisor(self, losses: RecordLoss, epsilon: float) -> Bound:
        most: Bound = 0.0, None
        for theta in self._members():
            clusters = self._clusters[theta]
            if most[0] > 0 and clusters.affordable:
                fewer = losses.divided(most[0]).nodes
                if clusters.leakage(fewer, self._secrets(theta)).total <= epsilon:
                    continue
            most = largest_bound((most, self._divisor(theta, losses, epsilon)))
        return most

    def _divisor(self, theta: int, losses: RecordLoss, epsilon: float) -> Bound:
        clusters, score = self._clusters[theta], Score(epsilon)
        divisor, witness = np.inf, None
        if clusters.affordable:
            secrets, smallest = self._secrets(theta), no_noise(losses)
            attained = clusters.leakage(losses.divided(smallest).nodes, secrets)
            if attained.node is None:
                return 0.0, None
            if attained.total <= epsilon:
                return smallest, self._witness(theta, attained)
            start = _FIRST_GUESS * losses.largest / epsilon
            if start < np.inf:
                divisor = clusters.least_divisor(losses.nodes, epsilon, start, secrets)
        if divisor < np.inf:
            attained = clusters.leakage(losses.divided(divisor).nodes, self._secrets(theta))
            witness = self._witness(theta, attained)
            if _alone(attained):
                return smallest_bound(self._quilts.trivial_of(theta, losses, score), (divisor, witness))
            if self._quilts_prove_no_less(theta, attained, losses, score, divisor):
                return divisor, witness
        value, quilt_witness = self._quilts.worst_of(theta, losses, score)
        # 0: none is needed
        by_quilts = (value, None) if quilt_witness is None else (max(value, no_noise(losses)), quilt_witness)
        if by_quilts[0] >= divisor or by_quilts[1] is None:
            return (divisor, witness) if clusters.affordable else by_quilts

        def leakage(divisor: float) -> float:
            return self._leakage(theta, losses.divided(divisor))[0]

        if leakage(by_quilts[0]) <= epsilon * (1 + QUILT_ROUNDING):
            return by_quilts
        # a search that is cut short may miss for one objective what it found for the other
        proved = bracket(leakage, epsilon, by_quilts[0], tolerance=1e-4, from_above=False).enough
        return (divisor, witness) if divisor <= proved else (proved, by_quilts[1])

    def _quilts_prove_no_less(
        self, theta: int, attained: Attained, losses: RecordLoss, objective: Objective, value: float | None = None
    ) -> bool:
        """Whether the worst node already needs as much by quilts: then they need not be searched for all nodes."""
        assert attained.node is not None
        value = attained.total if value is None else value
        return not self._quilts.proves_less(theta, attained.node, losses, objective, value)

    def _secrets(self, theta: int) -> Sequence[NDArray[np.bool_]]:
        return self._quilts.secret_pairs[theta]

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


def _alone(attained: Attained) -> bool:
    """Whether the worst node leaks its own loss alone, which every quilt charges: no search can save much."""
    return attained.total - attained.own <= _NEXT_TO_NOTHING * attained.own
