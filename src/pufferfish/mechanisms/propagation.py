"""Leakage propagation: least noise known for chains and networks, beyond the paper; proofs in docs/proofs."""

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

import msgspec

from pufferfish._core.propagation.forgetting import told_by_profile, told_by_uniform
from pufferfish.errors import ParameterError
from pufferfish.mechanisms._propagation_on_chains import ChainLeakage, ProtectedStretch, too_large
from pufferfish.mechanisms._propagation_on_networks import NetworkLeakage, columns_engine
from pufferfish.mechanisms.binary_interval import BinaryPropagation
from pufferfish.mechanisms.engine import Bound, Engine, largest_bound, largest_divisor, least_divisor
from pufferfish.mechanisms.group_dp import total_of
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.markov_quilt import NodeSecrets
from pufferfish.mechanisms.protection import ColumnsProtection, Protection, StretchProtection, step_of
from pufferfish.mechanisms.witness import (
    AloneWitness,
    ClusterWitness,
    ColumnsWitness,
    ForgettingWitness,
    PhaseWitness,
    PropagationWitness,
    QuiltWitness,
    StretchWitness,
    Witness,
)
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide
from pufferfish.theta.chain_class import CHAIN_MODELS
from pufferfish.theta.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import ModelClass, Theta

_ROUNDED = 1 + 1e-9
"""How far the recursion may be above the sum of all losses by its rounding."""

_TOLERANCE = 1e-9
"""How near the leakage of the noise must come to ε, as a share of it."""


class ForgettingLeakage(Engine):
    """Leakage under every Markov process that forgets so soon: of each record its largest loss counts."""

    def __init__(self, theta: ForgettingClass) -> None:
        self._pairs = theta.forgets

    supports_step_losses = True  # n records that are replaced with their steps are part of n steps to either side

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage by the worst chain."""
        return largest_bound(self._of_chain(chain) for chain in chains_that_can_decide(losses))

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterable[Bound]:
        """Return the least number found."""

        def leakage(chain: BlockLoss, divisor: float) -> Bound:
            return self._of_chain(chain.divided(divisor))

        def least(chain: BlockLoss) -> Bound:
            start = float(chain.largest.max()) / epsilon * min(2 * self._pairs[0].steps, chain.length.steps)
            return least_divisor(partial(leakage, chain), epsilon, start, _TOLERANCE) if start > 0 else (0.0, None)

        return [largest_divisor(chains_that_can_decide(losses), leakage, least, epsilon)]

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

    The bound says, for every pair of states of a record, how well all earlier and all later records distinguish the
    two. Where Markov quilts prove a smaller leakage, their bound is used: the noise is never more than that of
    :class:`MQMExact`. Every number is certified by flows that anybody can check, and rounded up. Beyond the paper:
    docs/proofs/propagation.md states and proves it.

    Parameters
    ----------
    theta : MarkovChain, BayesianNetwork, sequence of these, or class
        The class Θ: chains with every kind of initial law, with a clock (:class:`PeriodicChain`) or with more memory
        (:class:`HigherOrderChain`), :class:`IntervalChain`, :class:`ForgettingClass`, or Bayesian networks. For chains
        of more than 80 states the bound is that of quilts. For an :class:`IntervalChain` the worst rows of every step
        are found exactly up to 5 states, and bounded for more (docs/proofs/intervals.md).
    length : int, ChainLength, or sequence of these
        T, or the lengths of the data set's independent chains. The cost does not depend on long lengths. For networks
        the number of rows of their table.
    secrets : sequence, optional
        For networks: names of nodes, any two values of each, or pairs of RecordIs of one node. By default any two
        values of any record.
    protect, within : optional
        What shall be hidden in place of one record and any two of its values: see :meth:`protecting`.

    Examples
    --------
    The running example of Section 4.4, where MQMExact needs a scale of 12.9341:

    >>> import pufferfish as pf
    >>> theta1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial_distribution=[1, 0])
    >>> calibration = pf.LeakagePropagation(theta1, length=100).calibrate(pf.Count(1), epsilon=1.0)
    >>> witness = calibration.witness
    >>> round(calibration.scale, 4), [round(part, 2) for part in (witness.past, witness.own, witness.future)]
    (3.3364, [0.35, 0.3, 0.35])
    """

    name: ClassVar[str] = "propagation"
    title: ClassVar[str] = "LeakagePropagation"
    searches_continuum: ClassVar[bool] = True
    hides_several: ClassVar[bool] = True
    tells_pairs_apart: ClassVar[bool] = True
    witnesses: ClassVar[tuple[type[Witness], ...]] = (
        PropagationWitness,
        PhaseWitness,
        ClusterWitness,
        ForgettingWitness,
        QuiltWitness,
        AloneWitness,
        StretchWitness,
        ColumnsWitness,
    )
    kinds: ClassVar[tuple[type, ...]] = (
        MarkovChain,
        *CHAIN_MODELS,
        BinaryChainInterval,
        IntervalChain,
        ForgettingClass,
        ModelClass,
    )

    def __init__(
        self, theta: Any, length: Any = None, *, secrets: Any = None, protect: Any = None, within: Any = None
    ) -> None:
        super().__init__(theta, length)
        self._keep(protection=Protection.of(protect, within, self.theta, step_of(self.theta, self.model)))
        if secrets is not None and not self.networks:
            raise ParameterError(
                "secrets are for networks only; in chains any two values of any record are secret: leave secrets out"
            )
        if secrets is not None and self.protection is not None:
            raise ParameterError("secrets and protect both define what is hidden: give one of them")
        self._nodes = NodeSecrets(secrets, self.networks[0]) if self.networks else None
        self._keep(secrets=None if self._nodes is None else self._nodes.pairs)

    @property
    def settings(self) -> dict[str, Any]:
        """The secrets, where they are not all, and what is protected, where it is not one record."""
        plain = None if self._nodes is None else self._nodes.plain
        return super().settings if plain is None else {"secrets": plain} | super().settings

    @classmethod
    def supports(cls, theta: Theta) -> str | None:
        """Every class of Markov chains and of Bayesian networks is covered, but for very large clocks."""
        if theta.of_chains:
            return next(filter(None, map(too_large, theta.members)), None)
        if theta.networks:
            return None
        return f"it covers Markov chains and Bayesian networks, and Θ is a class of {theta.kind}"

    def _engine_of(self, theta: Theta) -> Engine:
        if isinstance(self.protection, StretchProtection):
            steps, near = self.protection.steps_of(self.length), self.protection.near(theta.states)
            return ProtectedStretch(theta, self.length, steps, near)
        if isinstance(self.protection, ColumnsProtection):
            return columns_engine(self.networks, self.protection)
        if self._nodes is not None:
            return NetworkLeakage(self.networks, self._nodes)
        if isinstance(theta, BinaryChainInterval):
            return BinaryPropagation(theta)
        if isinstance(theta, ForgettingClass):
            return ForgettingLeakage(theta)
        return ChainLeakage(theta)
