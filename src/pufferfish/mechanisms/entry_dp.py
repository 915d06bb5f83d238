"""Differential privacy of single records (Section 2.3): sound only where records are independent.

If no record tells anything about another, the record's own loss is all there is. On correlated records this noise
protects nobody, so any Θ with any dependence is refused.
"""

from typing import ClassVar

import numpy as np

from pufferfish._core.chains.markov import Places
from pufferfish.mechanisms.engine import Bound, Engine, Proportional, largest_bound
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.mqm_exact import any_secret, member_places, members_of, possible_losses
from pufferfish.mechanisms.witness import AloneWitness, Witness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Theta


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
