"""Leakage of one row of a Bayesian network: of a node, of several columns together, of all of them.

Of a node it is the least of what cluster trees and Markov quilts prove. Leakages of single columns say nothing of
several together, which propagation bounds by their losses and by what the other ones tell of their joint value
(``docs/proofs/stretches.md``). Of a whole row the sum of all losses is the bound, and needs no model.

>>> import pufferfish as pf
>>> coin, flip = pf.CPT([0, 1], [0.5, 0.5]), [[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]]
>>> network = pf.BayesianNetwork({"a": coin, "b": coin, "y": pf.CPT([0, 1], flip, ["a", "b"])})
>>> leakage, witness = pf.LeakagePropagation(network, 100, protect=["a", "b"]).prove({"y": 1.0})
>>> round(leakage, 5), witness.values, witness.other_values
(0.77614, ('0', '1'), ('0', '0'))
>>> pf.LeakagePropagation(network, 100, protect="row").leakage({"a": 0.25, "y": 1.0})
1.25
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pufferfish._base.progress import report_progress
from pufferfish._core.propagation.cluster_columns import ColumnsPropagation
from pufferfish._core.propagation.clusters import Attained, ClusterPropagation
from pufferfish._core.quilts.chain_search import LeakThrough, Objective, Score
from pufferfish.mechanisms.engine import (
    Bound,
    Engine,
    Proportional,
    largest_bound,
    largest_divisor,
    least_divisor,
    no_noise,
    smallest_bound,
)
from pufferfish.mechanisms.group_dp import total_of
from pufferfish.mechanisms.markov_quilt import LOOKS, NetworkQuilts, NodeSecrets, raised
from pufferfish.mechanisms.protection import ColumnsProtection
from pufferfish.mechanisms.witness import ClusterWitness, ColumnsWitness
from pufferfish.queries.record_loss import RecordLoss
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.states import state_label

_FIRST_GUESS = 10.0
"""How many times its own loss the worst node is first taken to leak."""

_NEXT_TO_NOTHING = 1e-5
"""A share of the noise that is not worth a search for quilts."""


def _each(networks: Sequence[Any]) -> Iterator[int]:
    """Yield the number of every member of Θ."""
    for theta in range(len(networks)):
        report_progress("propagating leakage", theta / len(networks))
        yield theta


class NetworkLeakage(Engine):
    """What losses tell of single nodes under every network: the least that propagation and quilts prove."""

    def __init__(self, networks: Sequence[BayesianNetwork], secrets: NodeSecrets) -> None:
        self._networks = networks
        self._quilts = NetworkQuilts(networks, secrets, {}, LOOKS)
        self._clusters = [ClusterPropagation(network.tables, network.sizes) for network in networks]

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage by the worst network."""
        return largest_bound(self._leakage(theta, losses) for theta in _each(self._networks))

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterator[Bound]:
        """Yield the least noise found, then that of quilts alone, whose proof does not depend on a search for flows."""
        yield self._least_divisor(losses, epsilon)
        yield from self._quilts.candidate_scales(losses, epsilon)

    def _leakage(self, theta: int, losses: RecordLoss) -> Bound:
        if not self._clusters[theta].affordable:
            return self._quilts.worst_of(theta, losses, LeakThrough())
        attained = self._clusters[theta].leakage(losses.nodes, self._quilts.secret_pairs[theta])
        bound = attained.total, self._witness(theta, attained)
        return bound if attained.node is None else self._or_quilts(theta, attained, losses, LeakThrough(), bound)

    def _or_quilts(
        self, theta: int, attained: Attained, losses: RecordLoss, objective: Objective, bound: Bound
    ) -> Bound:
        """Return the least of a bound and of what quilts prove, searched for all nodes if it may be less."""
        assert attained.node is not None
        # a node that leaks its own loss alone leaks what every quilt charges: then no search can save much
        if attained.total - attained.own <= _NEXT_TO_NOTHING * attained.own:
            return smallest_bound(self._quilts.trivial_of(theta, losses, objective), bound)
        if not self._quilts.proves_less(theta, attained.node, losses, objective, bound[0]):
            return bound
        return smallest_bound(bound, self._quilts.worst_of(theta, losses, objective))

    def _least_divisor(self, losses: RecordLoss, epsilon: float) -> Bound:
        most: Bound = 0.0, None
        for theta in _each(self._networks):
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

        return smallest_bound(bound, (raised(max(value, no_noise(losses)), leakage, epsilon), witness))  # 0: no noise

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


# -- Columns of a row ------------------------------------------------------------------------------------------------


def columns_engine(networks: Sequence[BayesianNetwork], protection: ColumnsProtection) -> Engine:
    """Return what proves how much losses tell of columns of one row, under every network of a class."""
    if protection.names is None:
        return _Row(networks[0])
    if len(protection.names) == 1:  # propagation and quilts prove what they prove of a node
        node = networks[0].nodes[networks[0].place(protection.names[0])]
        return NetworkLeakage(networks, NodeSecrets([node], networks[0]))
    return _Columns(networks, protection.names)


def leakage_of_row(losses: RecordLoss) -> float:
    """Return what a release tells of all columns of a row together, whatever their law is: the sum of its losses."""
    return total_of(losses.blocks[0])[0]


class _Row(Proportional):
    """The leakage of a whole row, whatever Θ is."""

    def __init__(self, network: BayesianNetwork) -> None:
        self._network = network

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        if max(self._network.sizes) == 1:
            return 0.0, None
        total = leakage_of_row(losses)
        return total, ColumnsWitness(
            theta=0, length=len(self._network.nodes), by="row", columns=None, own=total, others=0.0
        )


class _Columns(Engine):
    """The leakage of several nodes together."""

    def __init__(self, networks: Sequence[BayesianNetwork], names: tuple[str, ...]) -> None:
        self._names, self._size = names, len(networks[0].nodes)
        self._states = [networks[0].node_states[networks[0].nodes[networks[0].place(name)]] for name in names]
        self._members = [
            ColumnsPropagation(network.tables, network.sizes, [network.place(name) for name in names])
            for network in networks
        ]

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        return largest_bound(self._leakage(theta, losses) for theta in _each(self._members))

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterator[Bound]:
        yield largest_divisor(
            _each(self._members),
            lambda theta, divisor: self._leakage(theta, losses.divided(divisor)),
            lambda theta: self._least_divisor(theta, losses, epsilon),
            epsilon,
        )

    def _least_divisor(self, theta: int, losses: RecordLoss, epsilon: float) -> Bound:
        none = no_noise(losses)
        leakage, witness = self._leakage(theta, losses.divided(none))
        if witness is None or leakage <= epsilon:
            return (none if witness else 0.0), witness
        start = float(losses.blocks[0].largest.sum()) / epsilon
        return least_divisor(lambda divisor: self._leakage(theta, losses.divided(divisor)), epsilon, start)

    def _leakage(self, theta: int, losses: RecordLoss) -> Bound:
        attained = self._members[theta].leakage(losses.nodes)
        if not attained.is_secret:
            return 0.0, None
        values: list[tuple[str, ...] | None] = [None, None]
        if attained.pair is not None:
            values = [tuple(names[x] for names, x in zip(self._states, value, strict=True)) for value in attained.pair]
        return attained.total, ColumnsWitness(
            theta=theta,
            length=self._size,
            by="propagation",
            columns=self._names,
            values=values[0],
            other_values=values[1],
            own=attained.own,
            others=math.fsum(nats for _, nats in attained.parts),
        )
