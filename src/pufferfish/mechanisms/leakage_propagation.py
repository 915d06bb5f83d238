"""Leakage propagation: least noise known for chains and networks, beyond the paper; proofs in docs/propagation.md."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pufferfish.calibration import Calibration, Witness
from pufferfish.core.numbers.progress import report_progress
from pufferfish.core.propagation.chain import Attained, ChainPropagation, Run
from pufferfish.core.quilts.chain_search import LeakThrough, Objective, Score
from pufferfish.errors import ParameterError
from pufferfish.mechanisms.base import InfluenceBound
from pufferfish.mechanisms.binary_interval import BinaryPropagation, BinaryQuilts
from pufferfish.mechanisms.continuum import Continuum, LeastOf
from pufferfish.mechanisms.entry_dp import EntryDP
from pufferfish.mechanisms.losses import Losses, decisive
from pufferfish.mechanisms.markov_quilt import MarkovQuilt
from pufferfish.mechanisms.mechanism import ROUNDING
from pufferfish.mechanisms.mqm_exact import MQMExact
from pufferfish.mechanisms.network_leakage import NetworkLeakage
from pufferfish.mechanisms.node_losses import NodeLosses
from pufferfish.models.chain_class import ChainClass
from pufferfish.models.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.models.markov_chain import MarkovChain
from pufferfish.models.model_class import ModelClass, Theta, as_theta
from pufferfish.models.secrets import SecretPair
from pufferfish.queries import LinearQuery

__all__ = ["LeakagePropagation"]

MOST_STATES = 80
"""Chains with more states are left to quilts: a step of propagation grows like the fourth power of their number."""

_MOST_RUNS = 4096
"""Profiles that change more often than this are rounded up to this many runs."""

_KEPT = 8

_UNLIKELY = 1e-9
"""With transitions less likely than this initial laws are not searched one by one."""

_USUAL_GAIN = 3.0
"""How many times less noise than quilts is a good first guess."""


@dataclass(frozen=True, slots=True, eq=False)
class _Member:
    """A member of Θ with its bounds: propagation if its states are few, entry DP if its records are independent.

    An interval class is one member, and two states under every initial law are searched law by law.
    """

    chain: MarkovChain | IntervalChain
    quilts: MQMExact
    alone: EntryDP | None
    every_law: BinaryPropagation | None

    def propagation(self) -> ChainPropagation | None:
        """Return a new search, so that what it proves does not depend on what was asked before."""
        if self.chain.k > MOST_STATES:
            return None
        if isinstance(self.chain, IntervalChain):
            return ChainPropagation.between(self.chain.lower, self.chain.upper)
        return ChainPropagation(self.chain.transition_matrix, self.chain.initial_distribution)


class LeakagePropagation(InfluenceBound):
    """Leakage propagation: pairwise log-ratio bounds, carried from record to record, and from cluster to cluster.

    The bound follows how much every pair of states of one record can still be told apart by all that lies before it,
    and by all that lies after it. It takes a loss for every pair of states, so counts and sums profit too. Where
    Markov quilts prove less, their bound is taken: never more noise than :class:`MQMExact`.

    Parameters
    ----------
    theta : MarkovChain, BayesianNetwork, sequence of these, or class
        The class Θ: chains with every kind of initial law, :class:`IntervalChain`, or Bayesian networks.
    length : int, ChainLength, or sequence of these
        T, or the lengths of the data set's independent chains. The cost does not depend on long lengths. For networks
        the number of rows of their table.
    secrets : sequence, optional
        For networks: names of nodes, any two values of each, or pairs of RecordIs of one node. By default any two
        values of any record.

    Notes
    -----
    Every number is certified by flows that anybody can check (docs/propagation.md, "The proof of a number"), and
    rounded up. For chains of more than 80 states the bound is that of quilts. For an :class:`IntervalChain` the worst
    rows of every step are found exactly up to 5 states, and bounded for more (docs/intervals.md).

    References
    ----------
    Beyond the paper: docs/propagation.md states and proves it.

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
    kinds: ClassVar[tuple[type, ...]] = (ChainClass, BinaryChainInterval, IntervalChain, ModelClass)

    def __init__(self, theta: Any, length: Any = None, *, secrets: Any = None) -> None:
        super().__init__(theta, length)
        if secrets is not None and not self.networks:
            raise ParameterError("secrets name nodes of a network; in chains any two values of any record are secret")
        members = (self.theta,) if isinstance(self.theta, IntervalChain) else self.theta.chains
        self._members = [_member(chain, self.length) for chain in members]
        self._by_clusters: NetworkLeakage | None = None
        if self.networks:
            self._quilts = MarkovQuilt(self.theta, secrets=secrets)
            self._by_clusters = NetworkLeakage(self.networks, self._quilts)
        self._known: dict[tuple[object, ...], tuple[float, Witness | None]] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """The secrets, where they are not all."""
        plain = self._quilts.settings["secrets"] if self.networks else None
        return {} if plain is None else {"secrets": plain}

    @property
    def secrets(self) -> tuple[SecretPair, ...] | None:
        """The pairs of secrets that shall not be told apart; None for any two values of any record. Read-only."""
        return self._quilts.secrets if self.networks else None

    @classmethod
    def supports(cls, theta: Theta) -> str | None:
        """Every class of Markov chains and of Bayesian networks is covered."""
        if theta.of_chains or theta.networks:
            return None
        return f"it covers Markov chains and Bayesian networks, and Θ is a class of {theta.kind}"

    @cached_property
    def _continuum(self) -> Continuum | None:
        if not isinstance(self.theta, BinaryChainInterval):
            return None
        return LeastOf(BinaryPropagation(self.theta), BinaryQuilts(self.theta, "exact"))

    def _network_leakage(self, losses: NodeLosses) -> tuple[float, Witness | None]:
        assert self._by_clusters is not None
        return self._by_clusters.leakage(losses)

    def _network_divisor(self, losses: NodeLosses, epsilon: float) -> tuple[float, Witness | None]:
        assert self._by_clusters is not None
        return self._by_clusters.least_divisor(losses, epsilon)

    def _noises(
        self, losses: tuple[Losses, ...] | NodeLosses, epsilon: float
    ) -> Iterator[tuple[float, Witness | None]]:
        """Yield the least noise found, then that of quilts alone, whose proof does not depend on a search for flows."""
        yield from super()._noises(losses, epsilon)
        if isinstance(losses, NodeLosses):
            yield self._quilts._network_divisor(losses, epsilon)  # pyright: ignore[reportPrivateUsage]
        elif self._continuum is None:
            bounds = [member.alone or member.quilts for member in self._members]
            found = [bound._least_divisor(losses, epsilon) for bound in bounds]  # pyright: ignore[reportPrivateUsage]
            yield max((one for one in found if one[1] is not None), key=_value)

    def verify(self, calibration: Calibration) -> tuple[float, Witness | None]:
        """Prove anew what a release with this noise leaks at most, in nats, and say where.

        What proves a noise is what was found on the way to it. A search that starts at this noise may, on a chain that
        hardly moves, end at less of a proof; then the way is gone again, and a proof for less noise is one for this.
        """
        found = super().verify(calibration)
        losses, epsilon = self._losses_of_chains(calibration), calibration.epsilon
        if losses is None or found[0] <= epsilon * (1 + ROUNDING):
            return found
        with self._lock:
            divisor, witness = self._least_divisor(losses, epsilon)
        return (epsilon, witness) if 0 < divisor <= calibration.unit_scale else found

    def _losses_of_chains(self, calibration: Calibration) -> tuple[Losses, ...] | None:
        """Return the losses with noise of scale 1; None for networks and for a continuum."""
        linear = self.bind(calibration.query)
        if self.networks or self._continuum is not None or not isinstance(linear, LinearQuery):
            return None
        losses = self._losses_of(linear)
        return None if isinstance(losses, NodeLosses) else losses

    def _leakage(self, losses: Sequence[Losses]) -> tuple[float, Witness | None]:
        key = tuple(chain.key for chain in losses)
        if key not in self._known:
            while len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[key] = self._worst(losses)
        return self._known[key]

    def _worst(self, losses: Sequence[Losses]) -> tuple[float, Witness | None]:
        worst: tuple[float, Witness | None] = 0.0, None
        for theta, propagation, chain in self._each(losses):
            found = self._one(theta, propagation, chain)
            if found[1] is not None and (worst[1] is None or found[0] > worst[0]):
                worst = found
        return worst

    def _one(self, theta: int, propagation: ChainPropagation | None, chain: Losses) -> tuple[float, Witness | None]:
        """Leakage of one chain under one θ: the least of the bounds at hand."""
        member = self._members[theta]
        if member.alone is not None:
            return _of(theta, *member.alone._leakage([chain]))  # pyright: ignore[reportPrivateUsage]
        if member.every_law is not None:
            by_law, where = member.every_law.leakage([chain])
            anyhow, witness = self._as_any_chain(theta, propagation, chain)
            return _of(theta, by_law, where) if by_law <= anyhow else (anyhow, witness)
        return self._as_any_chain(theta, propagation, chain)

    def _as_any_chain(
        self, theta: int, propagation: ChainPropagation | None, chain: Losses
    ) -> tuple[float, Witness | None]:
        member = self._members[theta]
        found = Attained(math.inf)
        if propagation is not None:
            found = propagation.leakage(as_runs(chain, self.theta.k))
            if found.node == 0:
                return 0.0, None
            if _quilts_prove_no_less(member.quilts, chain, found.node, LeakThrough(), found.total):
                return found.total, self._witness(found, theta, chain)
        by_quilts, witness = member.quilts._leakage([chain])  # pyright: ignore[reportPrivateUsage]
        if found.total < by_quilts:
            return found.total, self._witness(found, theta, chain)
        return _of(theta, by_quilts, witness)

    def _least_divisor(self, losses: Sequence[Losses], epsilon: float) -> tuple[float, Witness | None]:
        least: tuple[float, Witness | None] = 0.0, None
        for theta, propagation, chain in self._each(losses):
            if least[0] > 0 and self._one(theta, propagation, chain.divided(least[0]))[0] <= epsilon:
                continue
            divisor, witness = self._one_divisor(theta, propagation, chain, epsilon)
            if witness is not None and (least[1] is None or divisor > least[0]):
                least = divisor, _of(theta, divisor, witness)[1]
        return least

    def _one_divisor(
        self, theta: int, propagation: ChainPropagation | None, chain: Losses, epsilon: float
    ) -> tuple[float, Witness | None]:
        """Least divisor of one chain under one θ, and a witness; none where there is no secret."""
        member, score = self._members[theta], Score(epsilon)
        if member.alone is not None:
            return member.alone._least_divisor([chain], epsilon)  # pyright: ignore[reportPrivateUsage]
        best: tuple[float, Witness | None] = math.inf, None
        if member.every_law is not None:
            best = member.every_law.least_divisor([chain], epsilon)
        if propagation is not None:
            runs = as_runs(chain, self.theta.k)
            guess = member.quilts.best_at(chain, _middle_of_the_heaviest(chain), score) or math.inf
            start = guess if guess < math.inf else _USUAL_GAIN * float(chain.largest.max()) / epsilon
            if start > 0:
                divisor = propagation.least_divisor(runs, epsilon, start / _USUAL_GAIN)
                if divisor < math.inf:
                    found = propagation.leakage([run.divided(divisor) for run in runs])
                    if found.node == 0:
                        return 0.0, None
                    if divisor < best[0]:
                        best = divisor, self._witness(found, theta, chain)
                    if _quilts_prove_no_less(member.quilts, chain, found.node, score, best[0]):
                        return best
        by_quilts = member.quilts._least_divisor([chain], epsilon)  # pyright: ignore[reportPrivateUsage]
        return by_quilts if by_quilts[1] is None else min(best, by_quilts, key=_value)

    def _each(self, losses: Sequence[Losses]) -> Iterator[tuple[int, ChainPropagation | None, Losses]]:
        """Yield every member of Θ with every chain that can decide; the chains of a member share one new search."""
        chains = list(decisive(losses))
        for theta, member in enumerate(self._members):
            propagation = member.propagation()
            for c, chain in enumerate(chains):
                report_progress("propagating leakage", (theta + c / len(chains)) / len(self._members))
                yield theta, propagation, chain

    def _witness(self, found: Attained, theta: int, chain: Losses) -> Witness:
        return Witness(
            theta=theta,
            length=chain.length.steps,
            node=found.node - 1,
            secret_pair=(self.theta.states[found.pair[0]], self.theta.states[found.pair[1]]),
            own=found.own,
            past=found.past,
            future=found.future,
        )


def _quilts_prove_no_less(quilts: MQMExact, chain: Losses, node: int, objective: Objective, value: float) -> bool:
    """Whether one record already needs as much by quilts: then they need not be searched for all records."""
    needs = quilts.best_at(chain, node, objective, enough=value)
    return needs is not None and needs >= value


def _middle_of_the_heaviest(chain: Losses) -> int:
    """Return a record, 1-based, in the middle of the stretch with the largest loss."""
    heaviest = int(np.argmax(chain.largest))
    return int(chain.steps[:heaviest].sum() + (chain.steps[heaviest] + 1) // 2)


def _value(found: tuple[float, Witness | None]) -> float:
    return found[0]


def _of(theta: int, leakage: float, witness: Witness | None) -> tuple[float, Witness | None]:
    return leakage, None if witness is None else replace(witness, theta=theta)


def as_runs(losses: Losses, k: int) -> list[Run]:
    """Return a chain's losses as runs of records with the same loss; profiles with very many are rounded up."""
    other = ~np.eye(k, dtype=np.bool_)
    values = losses.values if losses.values.ndim == 3 else losses.values[:, None, None]
    together = -(-len(values) // _MOST_RUNS)
    return [
        Run(int(losses.steps[i : i + together].sum()), values[i : i + together].max(axis=0) * other)
        for i in range(0, len(values), together)
    ]


def _member(chain: MarkovChain | IntervalChain, length: Any) -> _Member:
    independent = EntryDP.supports(as_theta(chain)) is None
    every_law = BinaryPropagation(chain) if isinstance(chain, MarkovChain) and _by_law(chain) else None
    return _Member(chain, MQMExact(chain, length), EntryDP(chain, length) if independent else None, every_law)


def _by_law(chain: MarkovChain) -> bool:
    """Whether it has two states and every initial law, and no transition that is all but impossible."""
    start = chain.initial_distribution
    return (
        chain.k == 2 and isinstance(start, str) and start == "any" and bool(np.all(chain.transition_matrix > _UNLIKELY))
    )
