"""Group differential privacy (Definition 2.2) and the participant-level row "DP" of the paper's activity table.

A group is a set of records that may be correlated in any way whatever: all of its losses add up. One chain is one
group, of its *observed* records.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.rounding import float_up, up
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms.engine import Bound, Engine, Proportional, largest_bound
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.mechanism import Mechanism
from pufferfish.mechanisms.protection import SUBJECT, ColumnsProtection, Protection, StretchProtection, step_of
from pufferfish.mechanisms.witness import QuiltWitness, Witness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import CHAIN_MODELS, Continuum
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import ModelClass, Theta

_MOST_EXACT = 4096  # stretches of a profile up to which losses are added exactly


class GroupDP(InfluenceBound):
    """Group differential privacy (Definition 2.2), a whole chain being one group: noise L·(longest chain)/ε.

    Sound for every Θ whose chains are independent of each other, whatever their dependence inside.

    Parameters
    ----------
    theta : model, sequence of models, or class
        The class Θ: Markov chains, networks, cliques, joint distributions.
    length : int, ChainLength, or sequence of these
        Lengths of the independent chains; the *observed* records of the longest decide. Other models know the groups
        of records that may depend on each other.
    protect, within : optional
        As for :class:`LeakagePropagation`. Where a stretch is asked for, the whole series is promised, and near values
        only are as any two. Of a network it hides all parts that hold a column that is named.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> round(pf.GroupDP(chain, length=100).calibrate(pf.Count(1), epsilon=1.0).scale, 9)
    100.0
    """

    name: ClassVar[str] = "group-dp"
    title: ClassVar[str] = "GroupDP"
    of_all_records: ClassVar[bool] = True
    hides_several: ClassVar[bool] = True
    witnesses: ClassVar[tuple[type[Witness], ...]] = (QuiltWitness,)
    kinds: ClassVar[tuple[type, ...]] = (MarkovChain, *CHAIN_MODELS, Continuum, ModelClass)

    def __init__(self, theta: Any, length: Any = None, *, protect: Any = None, within: Any = None) -> None:
        super().__init__(theta, length)
        asked = Protection.of(protect, within, self.theta, step_of(self.theta, self.model))
        if isinstance(asked, ColumnsProtection):
            self._keep(protection=asked)
        elif asked is not None and asked.is_stretch:
            self._keep(protection=StretchProtection(SUBJECT))

    def _engine_of(self, theta: Theta) -> Engine:
        return _NetworkGroups(theta.networks, self.protection) if theta.networks else ChainGroups()


class ChainGroups(Proportional):
    """All observed records of a chain add up."""

    supports_step_losses = True  # a chain of n records has n − 1 steps

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage of losses by the largest sum of a chain."""
        return largest_bound(total_of(chain) for chain in chains_that_can_decide(losses))


class _NetworkGroups(Proportional):
    """All nodes of a connected part of a network add up; of all parts that hold a column, where columns are hidden."""

    def __init__(self, networks: Sequence[BayesianNetwork], protection: Protection | None) -> None:
        self._networks, self._columns = networks, protection if isinstance(protection, ColumnsProtection) else None

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        return largest_bound(_of_groups(t, network, losses, self._columns) for t, network in enumerate(self._networks))


def _of_groups(theta: int, network: BayesianNetwork, losses: RecordLoss, columns: ColumnsProtection | None) -> Bound:
    """Return the losses of the connected part of a network that has most, or of all that hold a column, summed up."""
    largest = losses.blocks[0].largest
    once = np.ones(1, dtype=np.int64)
    groups = [{network.place(node) for node in part} for part in network.components]
    if columns is not None:  # parts are independent of each other, and what is told of each adds up
        hidden = set(range(len(network.nodes)) if columns.names is None else map(network.place, columns.names))
        touched = [group for group in groups if not group.isdisjoint(hidden)]
        groups = [set().union(*touched)]
    parts = [largest[sorted(group)] for group in groups]
    totals = [_sum_up(part, np.broadcast_to(once, part.shape)) for part in parts]
    most = int(np.argmax(totals))
    nearby = int(np.count_nonzero(parts[most]))
    return totals[most], QuiltWitness(
        theta=theta, length=len(parts[most]), active_quilt=(), nearby=nearby, influence=0.0
    )


def total_of(losses: BlockLoss) -> Bound:
    """Return what all observed records of a chain cost together, rounded up, and the trivial quilt."""
    heaviest = np.argsort(-losses.largest, kind="stable")
    largest, left = losses.largest[heaviest], losses.length.records
    # no more records than were observed cost anything, wherever they are
    before = np.concatenate([[0], np.cumsum(losses.steps[heaviest])[:-1]])
    times = np.clip(left - before, 0, losses.steps[heaviest])
    total, records = _sum_up(largest, times), int(times[largest > 0].sum())
    return total, QuiltWitness(theta=0, length=losses.length.steps, active_quilt=(), nearby=records, influence=0.0)


def _sum_up(losses: NDArray[np.float64], times: NDArray[np.int64]) -> float:
    """Return the sum of losses times their numbers, rounded up: exact where it can be held."""
    if not np.all(np.isfinite(losses)):
        return math.inf
    if losses.size <= _MOST_EXACT:
        return float_up(sum(Fraction(float(e)) * int(n) for e, n in zip(losses, times, strict=True)))
    with np.errstate(over="ignore"):  # beyond the largest number it is infinite, which is more
        return up(float(np.sum(losses * times)), 8 * losses.size)


class ParticipantDP(GroupDP):
    """Differential privacy of a whole participant: noise L·(most records of one participant)/ε.

    The row "DP" of the paper's activity table (Section 5). Unlike :class:`GroupDP` on segments that are taken as
    independent chains, it holds whatever happens across a participant's gaps. Needs no model of the records.

    Parameters
    ----------
    length_per_subject : int, ChainLength, or sequence of these
        Records of each participant.
    theta : MarkovChain, sequence of MarkovChain, or ChainClass
        Only its states are used.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> round(pf.ParticipantDP([300, 120], theta=chain).calibrate(pf.Count(1), epsilon=1.0).scale, 9)
    300.0
    """

    name: ClassVar[str] = "participant-dp"
    title: ClassVar[str] = "ParticipantDP"
    hides_several: ClassVar[bool] = False
    kinds: ClassVar[tuple[type, ...]] = (MarkovChain, *CHAIN_MODELS, Continuum)

    def __init__(self, length_per_subject: int | ChainLength | Sequence[int | ChainLength], *, theta: Any) -> None:
        super().__init__(theta, length_per_subject)

    def protecting(self, protect: Any = None, within: Any = None) -> Mechanism:
        """Refuse: its noise hides a whole participant, and it is said so."""
        raise NotApplicableError(
            "its noise already hides a whole participant: leave out protect and within", self.title
        )

    @classmethod
    def of(cls, theta: Any, length: Any, **settings: Any) -> "ParticipantDP":
        """Return the bound from Θ and the records of each participant."""
        return cls(length, theta=theta, **settings)
