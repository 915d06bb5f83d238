"""Leakage propagation: least noise known for chains and networks, beyond the paper; proofs in docs/proofs."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._core.numbers.rounding import bracket
from pufferfish._core.propagation.cluster_sweep import Attained
from pufferfish._core.propagation.clusters import ClusterPropagation
from pufferfish._core.propagation.forgetting import told_by_profile, told_by_uniform
from pufferfish._core.quilts.chain_search import LeakThrough, Objective, Score
from pufferfish.errors import ParameterError
from pufferfish.mechanisms._propagation_on_chains import ChainLeakage, too_large
from pufferfish.mechanisms.binary_interval import BinaryPropagation
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.engine import Bound, Engine, largest_bound, no_noise, smallest_bound
from pufferfish.mechanisms.group_dp import total_of
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.mechanism import ROUNDING
from pufferfish.mechanisms.network_quilts import (
    LOOKS,
    QUILT_ROUNDING,
    NetworkQuilts,
    NodeSecrets,
)
from pufferfish.mechanisms.protected import StretchEngine
from pufferfish.mechanisms.protection import Protection, step_of
from pufferfish.mechanisms.witness import (
    AloneWitness,
    ClusterWitness,
    ForgettingWitness,
    PhaseWitness,
    PropagationWitness,
    QuiltWitness,
    StretchWitness,
    Witness,
)
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import ChainClass, ChainModels
from pufferfish.theta.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.model_class import ModelClass, Theta
from pufferfish.theta.secrets import SecretPair
from pufferfish.theta.states import state_label

__all__ = ["ForgettingLeakage", "LeakagePropagation", "NetworkLeakage"]

# -- Leakage propagation on Bayesian networks: the least of what cluster trees and Markov quilts prove ---------------

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


# -- Leakage propagation where only forgetting is known --------------------------------------------------------------

_ROUNDED = 1 + 1e-9
"""How far the recursion may be above the sum of all losses by its rounding."""

_TOLERANCE = 1e-9
"""How near the leakage of the noise must come to ε, as a share of it."""


class ForgettingLeakage(Engine):
    """Leakage under every Markov process that forgets so soon: of each record its largest loss counts.

    Parameters
    ----------
    theta : ForgettingClass
        The class Θ.
    """

    def __init__(self, theta: ForgettingClass) -> None:
        self._pairs = theta.forgets

    @property
    def supports_step_losses(self) -> bool:
        """N records that are replaced with their steps are part of n steps to either side."""
        return True

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage of losses, and say where it is attained."""
        return largest_bound(self._of_chain(chain) for chain in chains_that_can_decide(losses))

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterable[Bound]:
        """Return the least number that divides the losses so that they leak at most epsilon."""
        most: Bound = 0.0, None
        for chain in chains_that_can_decide(losses):
            if most[0] > 0 and self._of_chain(chain.divided(most[0]))[0] <= epsilon:
                continue
            most = largest_bound((most, self._least_divisor(chain, epsilon)))
        return [most]

    def _least_divisor(self, chain: BlockLoss, epsilon: float) -> Bound:
        largest = float(chain.largest.max())
        if not largest > 0:
            return 0.0, None
        start = largest / epsilon * min(2 * self._pairs[0].steps, chain.length.steps)
        noises = bracket(
            lambda divisor: self._of_chain(chain.divided(divisor))[0],
            epsilon,
            start,
            tolerance=_TOLERANCE,
            from_above=False,
        )
        witness = None if noises.enough == math.inf else self._of_chain(chain.divided(noises.enough))[1]
        return noises.enough, witness

    def _of_chain(self, chain: BlockLoss) -> Bound:
        largest = chain.largest
        if len(largest) == 1:
            parts = told_by_uniform(float(largest[0]), chain.length.steps, self._pairs)
        else:
            parts = told_by_profile(chain.steps, largest, self._pairs)
        total, all_records = total_of(chain)
        if parts.total > total * _ROUNDED and all_records is not None:
            # no record tells more than all of them together: that decides where few of many records were observed
            return total, msgspec.structs.replace(all_records, node=parts.node)
        return parts.total, ForgettingWitness(
            theta=0, length=chain.length.steps, node=parts.node, own=parts.own, past=parts.past, future=parts.future
        )


class LeakagePropagation(InfluenceBound):
    """Leakage propagation: pairwise log-ratio bounds, carried from record to record, and from cluster to cluster.

    The bound follows how much every pair of states of one record can still be told apart by all that lies before it,
    and by all that lies after it. It takes a loss for every pair of states, so counts and sums profit too. Where
    Markov quilts prove less, their bound is taken: never more noise than :class:`MQMExact`.

    Parameters
    ----------
    theta : MarkovChain, BayesianNetwork, sequence of these, or class
        The class Θ: chains with every kind of initial law, with a clock (:class:`PeriodicChain`) or with more memory
        (:class:`HigherOrderChain`), :class:`IntervalChain`, :class:`ForgettingClass`, or Bayesian networks.
    length : int, ChainLength, or sequence of these
        T, or the lengths of the data set's independent chains. The cost does not depend on long lengths. For networks
        the number of rows of their table.
    secrets : sequence, optional
        For networks: names of nodes, any two values of each, or pairs of RecordIs of one node. By default any two
        values of any record.
    protect : int, str or timedelta, optional
        For chains: how many steps in a row shall be hidden together, a length of time such as ``"1h"`` where Θ is a
        model that knows its step, or ``"subject"`` for a whole series. By default one record.
    within : float, or sequence of (state, state), optional
        For chains: only values at most so far apart shall not be told apart, in the units of the bins; or only these
        pairs of states. It does not hide whether a value is above some number or below.

    Notes
    -----
    Every number is certified by flows that anybody can check (docs/proofs/propagation.md, "The proof of a number"), and
    rounded up. For chains of more than 80 states the bound is that of quilts. For an :class:`IntervalChain` the worst
    rows of every step are found exactly up to 5 states, and bounded for more (docs/proofs/intervals.md).

    References
    ----------
    Beyond the paper: docs/proofs/propagation.md states and proves it.

    Examples
    --------
    The running example of Section 4.4, where MQMExact needs a scale of 12.9341:

    >>> import pufferfish as pf
    >>> theta1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial_distribution=[1, 0])
    >>> calibration = pf.LeakagePropagation(theta1, length=100).calibrate(pf.Count(1), epsilon=1.0)
    >>> round(calibration.scale, 4)
    3.3364
    >>> witness = calibration.witness
    >>> [round(part, 2) for part in (witness.past, witness.own, witness.future)]
    [0.35, 0.3, 0.35]
    """

    name: ClassVar[str] = "propagation"
    title: ClassVar[str] = "LeakagePropagation"
    searches_continuum: ClassVar[bool] = True
    hides_stretches: ClassVar[bool] = True
    tells_pairs_apart: ClassVar[bool] = True
    witnesses: ClassVar[tuple[type[Witness], ...]] = (
        PropagationWitness,
        PhaseWitness,
        ClusterWitness,
        ForgettingWitness,
        QuiltWitness,
        AloneWitness,
        StretchWitness,
    )
    kinds: ClassVar[tuple[type, ...]] = (
        ChainClass,
        BinaryChainInterval,
        IntervalChain,
        ForgettingClass,
        ChainModels,
        ModelClass,
    )

    def __init__(
        self, theta: Any, length: Any = None, *, secrets: Any = None, protect: Any = None, within: Any = None
    ) -> None:
        super().__init__(theta, length)
        self._protection = Protection.of(protect, within, self.theta, step_of(self.theta, self.model))
        if secrets is not None and not self.networks:
            raise ParameterError("secrets name nodes of a network; in chains any two values of any record are secret")
        self._secrets = NodeSecrets(secrets, self.networks[0]) if self.networks else None

    @property
    def settings(self) -> dict[str, Any]:
        """The secrets, where they are not all, and what is protected, where it is not one record."""
        plain = None if self._secrets is None else self._secrets.plain
        return super().settings if plain is None else {"secrets": plain} | super().settings

    @property
    def secrets(self) -> tuple[SecretPair, ...] | None:
        """The pairs of secrets that shall not be told apart; None for any two values of any record. Read-only."""
        return None if self._secrets is None else self._secrets.pairs

    def protecting(self, protect: Any = None, within: Any = None) -> "LeakagePropagation":
        """Return the same mechanism, whose noise hides a stretch of a chain, or near values only."""
        length: Any = self.rows if self.networks else self.length
        return type(self)(self.given_by, length, **{**self.settings, "protect": protect, "within": within})

    @classmethod
    def supports(cls, theta: Theta) -> str | None:
        """Every class of Markov chains and of Bayesian networks is covered, but for very large clocks."""
        if isinstance(theta, ChainModels):
            return next((reason for member in theta.members if (reason := too_large(member))), None)
        if theta.of_chains or theta.networks:
            return None
        return f"it covers Markov chains and Bayesian networks, and Θ is a class of {theta.kind}"

    def _engine_of(self, theta: Theta) -> Engine:
        if self._protection is not None:
            return StretchEngine(theta, self.length, self._protection)
        if self._secrets is not None:
            return NetworkLeakage(self.networks, self._secrets)
        if isinstance(theta, BinaryChainInterval):
            return BinaryPropagation(theta)
        if isinstance(theta, ForgettingClass):
            return ForgettingLeakage(theta)
        return ChainLeakage(theta)

    def verify(self, calibration: Calibration) -> Bound:
        """Prove anew what a release with this noise leaks at most, in nats, and say where.

        What proves a noise is what was found on the way to it. A search that starts at this noise may, on a chain that
        hardly moves, end at less of a proof; then the way is gone again, and a proof for less noise is one for this.
        """
        bound, epsilon = super().verify(calibration), calibration.epsilon
        if not isinstance(self._engine, ChainLeakage | StretchEngine) or bound[0] <= epsilon * (1 + ROUNDING):
            return bound
        with self._lock:
            losses: Any = self._losses_of(calibration.query, calibration.strategy)
            divisor, witness = next(iter(self._asked.candidate_scales(losses, epsilon)))
        return (epsilon, witness) if 0 < divisor <= calibration.unit_scale else bound
