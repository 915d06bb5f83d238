"""Leakage propagation on Bayesian networks: the least of what cluster trees and Markov quilts prove."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pufferfish.calibration import Witness
from pufferfish.core.numbers.inversion import bracket
from pufferfish.core.numbers.progress import report_progress
from pufferfish.core.propagation.clusters import Attained, ClusterPropagation
from pufferfish.core.quilts.chain_search import LeakThrough, Objective, Score
from pufferfish.mechanisms.markov_quilt import ROUNDING, MarkovQuilt
from pufferfish.mechanisms.node_losses import NodeLosses
from pufferfish.models.bayesian_network import BayesianNetwork
from pufferfish.models.states import state_label

__all__ = ["NetworkLeakage"]

_FIRST_GUESS = 10.0
"""How many times its own loss the worst node is first taken to leak."""

_NEXT_TO_NOTHING = 1e-5
"""A share of the noise that is not worth a search for quilts."""

Found = tuple[float, Witness | None]


class NetworkLeakage:
    """Leakage of every network of a class, the least that propagation and quilts prove.

    Parameters
    ----------
    networks : sequence of BayesianNetwork
        The members of Θ.
    quilts : MarkovQuilt
        The quilt mechanism on the same networks, with the same secrets.
    """

    def __init__(self, networks: Sequence[BayesianNetwork], quilts: MarkovQuilt) -> None:
        self._networks = networks
        self._quilts = quilts
        self._clusters = [ClusterPropagation(network.tables, network.sizes) for network in networks]

    def leakage(self, losses: NodeLosses) -> Found:
        """Leakage of given losses, and where it is attained."""
        worst: Found = 0.0, None
        for theta in range(len(self._clusters)):
            report_progress("propagating leakage", theta / len(self._clusters))
            found = self._leakage(theta, losses)
            if found[1] is not None and (worst[1] is None or found[0] > worst[0]):
                worst = found
        return worst

    def _leakage(self, theta: int, losses: NodeLosses) -> Found:
        if not self._clusters[theta].affordable:
            return self._quilts.worst_of(theta, losses, LeakThrough())
        attained = self._clusters[theta].leakage(losses.values, self._secrets(theta))
        found = attained.total, self._witness(theta, attained)
        if attained.node is None:
            return found
        if _alone(attained):
            return min(self._quilts.trivial_of(theta, losses, LeakThrough()), found, key=_value)
        if self._quilts_prove_no_less(theta, attained, losses, LeakThrough()):
            return found
        return min(found, self._quilts.worst_of(theta, losses, LeakThrough()), key=_value)

    def least_divisor(self, losses: NodeLosses, epsilon: float) -> Found:
        """Least number by which the losses must be divided so that they leak at most epsilon."""
        worst: Found = 0.0, None
        for theta, clusters in enumerate(self._clusters):
            report_progress("propagating leakage", theta / len(self._clusters))
            secrets, fewer = self._secrets(theta), losses.divided(worst[0] or np.inf).values
            if worst[0] > 0 and clusters.affordable and clusters.leakage(fewer, secrets).total <= epsilon:
                continue
            found = self._divisor(theta, clusters, losses, epsilon)
            if found[1] is not None and (worst[1] is None or found[0] > worst[0]):
                worst = found
        return worst

    def _divisor(self, theta: int, clusters: ClusterPropagation, losses: NodeLosses, epsilon: float) -> Found:
        secrets, score = self._secrets(theta), Score(epsilon)
        least = losses.no_noise
        attained = clusters.leakage(losses.divided(least).values, secrets)
        if attained.node is None or attained.total <= epsilon:  # there is no secret, or no noise is needed
            return least, self._witness(theta, attained)
        start = _FIRST_GUESS * float(losses.largest.max()) / epsilon
        divisor, witness = clusters.least_divisor(losses.values, epsilon, start, secrets), None
        if divisor < np.inf:
            attained = clusters.leakage(losses.divided(divisor).values, secrets)
            witness = self._witness(theta, attained)
            if _alone(attained):
                return min(self._quilts.trivial_of(theta, losses, score), (divisor, witness), key=_value)
            if self._quilts_prove_no_less(theta, attained, losses, score, divisor):
                return divisor, witness
        by_quilts = self._quilts.worst_of(theta, losses, score)
        if by_quilts[0] >= divisor or by_quilts[1] is None:
            return divisor, witness

        def leakage(divisor: float) -> float:
            return self._leakage(theta, losses.divided(divisor))[0]

        if leakage(by_quilts[0]) <= epsilon * (1 + ROUNDING):
            return by_quilts
        # a search that is cut short may miss for one objective what it found for the other
        least = bracket(leakage, epsilon, by_quilts[0], tolerance=1e-4, from_above=False).enough
        return (divisor, witness) if divisor <= least else (least, by_quilts[1])

    def _quilts_prove_no_less(
        self, theta: int, attained: Attained, losses: NodeLosses, objective: Objective, value: float | None = None
    ) -> bool:
        """Whether the worst node already needs as much by quilts: then they need not be searched for all nodes."""
        assert attained.node is not None
        value = attained.total if value is None else value
        return not self._quilts.proves_less(theta, attained.node, losses, objective, value)

    def _secrets(self, theta: int) -> Sequence[NDArray[np.bool_]]:
        return self._quilts.secret_pairs[theta]

    def _witness(self, theta: int, attained: Attained) -> Witness | None:
        if attained.node is None:
            return None
        network = self._networks[theta]
        node = network.nodes[attained.node]
        x, x_ = attained.pair
        names = [state_label(name) for name in network.nodes]
        return Witness(
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


def _value(found: Found) -> float:
    return found[0]
