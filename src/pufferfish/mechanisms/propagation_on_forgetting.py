"""Leakage propagation where only forgetting is known: the recursion of docs/proofs/forgetting.md, as an engine."""

import math
from collections.abc import Iterable

import msgspec

from pufferfish._core.numbers.rounding import bracket
from pufferfish._core.propagation.forgetting import told_by_profile, told_by_uniform
from pufferfish.mechanisms.engine import Engine, Found, worst
from pufferfish.mechanisms.group_dp import total_of
from pufferfish.mechanisms.witness import ForgettingWitness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, decisive
from pufferfish.theta.forgetting_class import ForgettingClass

__all__ = ["ForgettingLeakage"]

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
    def follows_steps(self) -> bool:
        """N records that are replaced with their steps are part of n steps to either side."""
        return True

    def prove(self, losses: RecordLoss, enough: float | None) -> Found:
        """Bound the leakage of losses, and say where it is attained."""
        return worst(self._of_chain(chain) for chain in decisive(losses))

    def divisors(self, losses: RecordLoss, epsilon: float) -> Iterable[Found]:
        """Return the least number that divides the losses so that they leak at most epsilon."""
        most: Found = 0.0, None
        for chain in decisive(losses):
            if most[0] > 0 and self._of_chain(chain.divided(most[0]))[0] <= epsilon:
                continue
            most = worst((most, self._least_divisor(chain, epsilon)))
        return [most]

    def _least_divisor(self, chain: BlockLoss, epsilon: float) -> Found:
        largest = float(chain.largest.max())
        if not largest > 0:
            return 0.0, None
        start = largest / epsilon * min(2 * self._pairs[0].steps, chain.length.steps)
        found = bracket(
            lambda divisor: self._of_chain(chain.divided(divisor))[0],
            epsilon,
            start,
            tolerance=_TOLERANCE,
            from_above=False,
        )
        witness = None if found.enough == math.inf else self._of_chain(chain.divided(found.enough))[1]
        return found.enough, witness

    def _of_chain(self, chain: BlockLoss) -> Found:
        each = chain.largest
        if len(each) == 1:
            told = told_by_uniform(float(each[0]), chain.length.steps, self._pairs)
        else:
            told = told_by_profile(chain.steps, each, self._pairs)
        total, all_records = total_of(chain)
        if told.total > total * _ROUNDED and all_records is not None:
            # no record tells more than all of them together: that decides where few of many records were observed
            return total, msgspec.structs.replace(all_records, node=told.node)
        return told.total, ForgettingWitness(
            theta=0, length=chain.length.steps, node=told.node, own=told.own, past=told.past, future=told.future
        )
