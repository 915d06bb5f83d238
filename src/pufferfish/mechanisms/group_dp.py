"""Group differential privacy (Definition 2.2) and the participant-level row "DP" of the paper's activity table.

A group is a set of records that may be correlated in any way whatever: all of its losses add up. One chain is one
group, of its *observed* records.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from pufferfish._core.chains.markov import Places
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms.engine import Bound, Engine, Proportional, largest_bound, sum_up, total_of
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.mechanism import Mechanism
from pufferfish.mechanisms.mqm_exact import any_secret, member_places, members_of, possible_losses
from pufferfish.mechanisms.protection import SUBJECT, ColumnsProtection, Protection, StretchProtection, step_of
from pufferfish.mechanisms.witness import AloneWitness, QuiltWitness, Witness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import CHAIN_MODELS, Continuum
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import ModelClass, Theta


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
    totals = [sum_up(part, np.broadcast_to(once, part.shape)) for part in parts]
    most = int(np.argmax(totals))
    nearby = int(np.count_nonzero(parts[most]))
    return totals[most], QuiltWitness(
        theta=theta, length=len(parts[most]), active_quilt=(), nearby=nearby, influence=0.0
    )


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


# -- Differential privacy of single records (Section 2.3): sound only where records are independent --------------------


class EntryDP(InfluenceBound):
    """Entry-level differential privacy (Section 2.3): noise L/ε; refuses a Θ under which records depend on each other.

    Parameters
    ----------
    theta : MarkovChain, sequence of MarkovChain, or ChainClass
        The class Θ; under each member all rows of the transition matrix must be equal, those of states that a record
        can have beside each other.
    length : int, ChainLength, or sequence of these
        Lengths of the independent chains.

    Examples
    --------
    >>> import pufferfish as pf
    >>> coin = pf.MarkovChain([[0.7, 0.3], [0.7, 0.3]])
    >>> round(pf.EntryDP(coin, length=100).calibrate(pf.Histogram(relative=False), epsilon=1.0).scale, 9)
    2.0
    """

    name: ClassVar[str] = "entry-dp"
    title: ClassVar[str] = "EntryDP"
    witnesses: ClassVar[tuple[type[Witness], ...]] = (AloneWitness,)
    kinds: ClassVar[tuple[type, ...]] = (MarkovChain,)

    @classmethod
    def supports(cls, theta: Theta | MarkovChain) -> str | None:
        """Say which member of Θ makes records dependent."""
        for i, chain in enumerate((theta,) if isinstance(theta, MarkovChain) else theta.chains):
            apart = _rows_apart(chain)
            if apart is not None:
                x, x_ = (chain.states[state] for state in apart)
                return (
                    f"records are correlated under theta[{i}] (its rows {x!r} and {x_!r} differ): "
                    "use LeakagePropagation"
                )
        return None

    def _engine_of(self, theta: Theta) -> Engine:
        return IndependentRecords(theta)


class IndependentRecords(Proportional):
    """What single records leak where no record tells of another: the largest loss between two possible states."""

    def __init__(self, theta: Theta | MarkovChain) -> None:
        self._members = members_of(theta)

    supports_step_losses = True  # a record is part of two steps

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Return the largest loss of a record, and in which chain."""
        return largest_bound(
            _of_chain(theta, chain, member_places(member, chain.length.steps))
            for theta, member in enumerate(self._members)
            for chain in chains_that_can_decide(losses)
        )


def _of_chain(theta: int, chain: BlockLoss, places: Places) -> Bound:
    if not any_secret(places):
        return 0.0, None
    return float(possible_losses(chain, places).largest.max()), AloneWitness(theta=theta, length=chain.length.steps)


def _rows_apart(chain: MarkovChain) -> tuple[int, int] | None:
    """Return two states that one record can have, and that another law follows; None where records are independent."""
    start, rows = chain.initial_distribution, chain.transition_matrix
    now = np.ones(chain.k, dtype=np.bool_) if isinstance(start, str) else start > 0
    seen: set[bytes] = set()
    while now.tobytes() not in seen:
        seen.add(now.tobytes())
        states = np.flatnonzero(now)
        unequal = np.flatnonzero(np.any(rows[states] != rows[states[0]], axis=1))
        if unequal.size:
            return int(states[0]), int(states[unequal[0]])
        now = rows[states[0]] > 0
    return None
