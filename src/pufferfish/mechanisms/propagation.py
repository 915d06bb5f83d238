"""Leakage propagation: least noise known for chains and networks, beyond the paper; proofs in docs/proofs."""

from typing import Any, ClassVar

from pufferfish._base.checked import called_as
from pufferfish.errors import ParameterError
from pufferfish.mechanisms._propagation_on_chains import ChainLeakage, too_large
from pufferfish.mechanisms._propagation_on_networks import NetworkLeakage
from pufferfish.mechanisms.binary_interval import BinaryPropagation, BinaryQuilts
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.engine import Engine, Found, LeastOf
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.mechanism import ROUNDING
from pufferfish.mechanisms.node_secrets import NodeSecrets
from pufferfish.mechanisms.propagation_on_forgetting import ForgettingLeakage
from pufferfish.mechanisms.witness import (
    AloneWitness,
    ClusterWitness,
    ForgettingWitness,
    PhaseWitness,
    PropagationWitness,
    QuiltWitness,
    Witness,
)
from pufferfish.theta.chain_class import ChainClass, ChainModels
from pufferfish.theta.chain_intervals import BinaryChainInterval
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.model_class import CONTINUA, ModelClass, Theta
from pufferfish.theta.secrets import SecretPair

__all__ = ["LeakagePropagation"]


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
    tells_pairs_apart: ClassVar[bool] = True
    witnesses: ClassVar[tuple[type[Witness], ...]] = (
        PropagationWitness,
        PhaseWitness,
        ClusterWitness,
        ForgettingWitness,
        QuiltWitness,
        AloneWitness,
    )
    kinds: ClassVar[tuple[type, ...]] = (ChainClass, *CONTINUA, ChainModels, ModelClass)

    @called_as("{}(theta, length=data.length).calibrate(query, epsilon=1.0)")
    def __init__(self, theta: Any, length: Any = None, *, secrets: Any = None) -> None:
        super().__init__(theta, length)
        if secrets is not None and not self.networks:
            raise ParameterError("secrets name nodes of a network; in chains any two values of any record are secret")
        self._secrets = NodeSecrets(secrets, self.networks[0]) if self.networks else None

    @property
    def settings(self) -> dict[str, Any]:
        """The secrets, where they are not all."""
        plain = None if self._secrets is None else self._secrets.plain
        return {} if plain is None else {"secrets": plain}

    @property
    def secrets(self) -> tuple[SecretPair, ...] | None:
        """The pairs of secrets that shall not be told apart; None for any two values of any record. Read-only."""
        return None if self._secrets is None else self._secrets.pairs

    @classmethod
    def supports(cls, theta: Theta) -> str | None:
        """Every class of Markov chains and of Bayesian networks is covered, but for very large clocks."""
        if isinstance(theta, ChainModels):
            return next((reason for member in theta.members if (reason := too_large(member))), None)
        if theta.of_chains or theta.networks:
            return None
        return f"it covers Markov chains and Bayesian networks, and Θ is a class of {theta.kind}"

    def _engine_of(self, theta: Theta) -> Engine:
        if self._secrets is not None:
            return NetworkLeakage(self.networks, self._secrets)
        if isinstance(theta, BinaryChainInterval):
            return LeastOf(BinaryPropagation(theta), BinaryQuilts(theta, "exact"))
        if isinstance(theta, ForgettingClass):
            return ForgettingLeakage(theta)
        return ChainLeakage(theta)

    def verify(self, calibration: Calibration) -> Found:
        """Prove anew what a release with this noise leaks at most, in nats, and say where.

        What proves a noise is what was found on the way to it. A search that starts at this noise may, on a chain that
        hardly moves, end at less of a proof; then the way is gone again, and a proof for less noise is one for this.
        """
        found, epsilon = super().verify(calibration), calibration.epsilon
        if not isinstance(self._engine, ChainLeakage) or found[0] <= epsilon * (1 + ROUNDING):
            return found
        with self._lock:
            losses: Any = self._losses_of(calibration.query, calibration.strategy)
            divisor, witness = next(iter(self._asked.divisors(losses, epsilon)))
        return (epsilon, witness) if 0 < divisor <= calibration.unit_scale else found
