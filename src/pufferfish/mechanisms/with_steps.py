r"""Losses of steps, for every engine: what changes along a chain is charged to its records, and one step beside them.

Let δ be the loss of one step and d the losses of records. One record alone moves d + 2δ, as it is part of two steps, so
a bound on the leakage of these covers both. Engines that follow a chain from record to record need less: the steps that
change with n records in a row are n + 1, and propagation replaces a step together with the record that it leads to.
For them

.. math:: \mathrm{leakage} \le \mathrm{leakage}_{\text{records}}(d + δ) + δ,

where the first and the last record of a chain need no δ of their own. The proofs are in docs/proofs/transitions.md.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.rounding import bracket, up
from pufferfish.mechanisms.engine import Engine, Found, Proportional
from pufferfish.mechanisms.witness import AnyWitness, ForgettingWitness, PropagationWitness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, decisive

__all__ = ["WithSteps"]

_SHORT = 64
"""Steps of a chain up to which its first and last record are told from the others."""

_ROUNDED = 1e-9
"""What is left of a record's own loss, as a share of that of a step, is a rounding."""

_TOLERANCE = 1e-6
"""How near the leakage of the noise must come to ε, as a share of it."""


class WithSteps(Engine):
    """An engine that may be asked about losses of steps too.

    Parameters
    ----------
    engine : Engine
        The bound on losses of records.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def prove(self, losses: RecordLoss, enough: float | None) -> Found:
        """Bound the leakage of losses, and say where it is attained."""
        if not losses.step:
            return self._engine.leakage(losses, enough)
        step = losses.step if self._engine.follows_steps else 0.0
        left = None if enough is None or not enough > step else enough - step
        alone = self._of_records(losses)
        if not alone.largest < math.inf:  # what is added left the range of a double: nothing is proved
            return math.inf, None
        leakage, witness = self._engine.leakage(alone, left)
        if witness is None and leakage == 0:  # there is no secret
            return leakage, witness
        total = up(leakage + step)
        return total, None if witness is None else _told(witness, step, total)

    def divisors(self, losses: RecordLoss, epsilon: float) -> Iterable[Found]:
        """Yield numbers that divide the losses so that they leak at most epsilon, the least first."""
        if not losses.step:
            yield from self._engine.divisors(losses, epsilon)
            return
        alone = self._of_records(losses)
        if not self._engine.follows_steps:
            yield from self._engine.divisors(alone, epsilon)
            return
        if isinstance(self._engine, Proportional):
            total, witness = self.prove(losses, None)
            yield total / epsilon, witness
            return
        start = losses.step / epsilon
        if alone.largest:
            first, witness = next(iter(self._engine.divisors(alone, epsilon)))
            if witness is None:
                yield first, witness
                return
            start += first if first < math.inf else 0.0
        found = bracket(
            lambda divisor: self.leakage(losses.divided(divisor), epsilon)[0],
            epsilon,
            start,
            tolerance=_TOLERANCE,
            from_above=False,
        ).enough
        yield found, None if found == math.inf else self.leakage(losses.divided(found), epsilon)[1]

    def _of_records(self, losses: RecordLoss) -> RecordLoss:
        """Return losses of records that stand for those of steps too, of the chains that can decide."""
        charged = _charged if self._engine.follows_steps else _twice
        return RecordLoss(tuple(charged(_spread(chain)) for chain in decisive(losses, steps=True)))


def _spread(chain: BlockLoss) -> BlockLoss:
    """Forget where records are if only their steps are charged: those are next to records that are not observed too.

    As many records as there are count then, and not all places between them.
    """
    if not chain.length.places or not chain.step or chain.largest.any():
        return chain
    return replace(BlockLoss.same_for_all(chain.length.anywhere, np.zeros(())), step=chain.step)


def _charged(chain: BlockLoss) -> BlockLoss:
    """Charge every record the loss of one step; in short chains not the first and the last one."""
    if not chain.step:
        return chain
    more = _plus(chain.stacked, chain.step)
    steps = chain.length.steps
    if chain.of_observed and chain.length.records == steps and 2 < steps <= _SHORT:
        ends = chain.stacked
        values, stretches = np.concatenate([ends, more, ends]), np.array([1, steps - 2, 1])
        return BlockLoss(chain.length, stretches, values, False)
    return replace(chain, values=more, step=0.0)


def _twice(chain: BlockLoss) -> BlockLoss:
    """Charge every record the loss of both steps that it is part of."""
    return replace(chain, values=_plus(chain.stacked, 2 * chain.step), step=0.0) if chain.step else chain


def _plus(values: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Return losses with that of a step added between any two states, rounded up."""
    if values.ndim < 3:
        return np.nextafter(values + step, np.inf)
    other = ~np.eye(values.shape[-1], dtype=np.bool_)
    return np.where(other, np.nextafter(values + step, np.inf), 0.0)


def _told(witness: AnyWitness, step: float, total: float) -> AnyWitness:
    """Say what steps tell as a part of the side of the record on which they are."""
    if not isinstance(witness, PropagationWitness | ForgettingWitness):
        return witness
    inner = 0 < (witness.node if isinstance(witness.node, int) else 0) < witness.length - 1
    past, future = (witness.past, witness.future) if inner else (0.0, 0.0)
    beside = witness.own - step
    own = beside if beside > _ROUNDED * step else 0.0
    left = max(total - own - past - future, 0.0)
    if inner:
        past, future = past + left / 2, future + left / 2
    elif witness.node == 0:
        future = left
    else:
        past = left
    return msgspec.structs.replace(witness, own=own, past=past, future=future)
