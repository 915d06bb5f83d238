"""Influence bounds over :class:`~pufferfish.theta.chain_intervals.BinaryChainInterval`: certified suprema.

The class is covered by boxes of (p0, p1, P(X_1=0)); a bound that holds for every chain of a box comes from
:mod:`pufferfish.mechanisms.binary_box`, and :mod:`pufferfish.mechanisms.supremum` halves boxes until the
largest of the bounds is within :data:`GAP` of what one chain attains. The largest bound is what counts: the gap costs
noise, never privacy.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import BoundedCache
from pufferfish._core.numbers.rounding import float_up
from pufferfish.mechanisms.binary_box import propagated, quilted, root_box, width_of
from pufferfish.mechanisms.engine import Bound, Engine, Fallback
from pufferfish.mechanisms.supremum import BoxBound, Supremum, supremum
from pufferfish.mechanisms.witness import AnyWitness, Nearest, PropagationWitness, QuiltWitness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide
from pufferfish.theta.chain_intervals import BinaryChainInterval
from pufferfish.theta.markov_chain import MarkovChain

__all__ = ["GAP", "BinaryPropagation", "BinaryQuilts"]

Vector = NDArray[np.float64]
Boxes = NDArray[np.float64]

GAP = 9e-4
"""Relative gap between what is reported and what a member of the class attains, at which the search stops."""

_GAP_OF_ONE = 2e-6
"""The same for one matrix, where only the initial law is searched."""

_SPARE, _SPARE_OF_ONE = 1e-7, 4e-6
"""More noise than the bound needs, relatively, so that the proof anew stands whatever its rounding, and its gap."""

_WORK = 3e6
"""Boxes times the steps in which their slowest chains settle, or the length: some ten seconds."""

_SETTLING = 30.0
"""Steps in which a chain settles, times 1 − |p0 + p1 − 1|."""

_KEPT = 8

_MOST_RUNS = 5000
"""Runs of equal losses that are told apart; longer profiles are rounded up."""

_ONE_BY_ONE = 20_000
"""Steps of a profile whose quilts are searched record by record; of a longer one every loss is taken as the largest."""


class _Certified(Engine):
    """A bound over a class of two-state chains."""

    def __init__(self, theta: BinaryChainInterval | MarkovChain) -> None:
        self._theta = theta
        self._box = _box(theta)
        self._gap = GAP if isinstance(theta, BinaryChainInterval) and theta.low < theta.high else _GAP_OF_ONE
        self._least: BoundedCache[Bound] = BoundedCache(_KEPT)

    @property
    def supports_step_losses(self) -> bool:
        """It holds for each chain of the class as propagation, or quilts, do for that chain."""
        return True

    @abstractmethod
    def bound(self, chain: BlockLoss, epsilon: float) -> BoxBound:
        """Return the bound over boxes: the leakage of losses (epsilon 0), or their least divisor."""

    @abstractmethod
    def witness(self, found: Supremum, chain: BlockLoss) -> AnyWitness:
        """Say where a supremum is attained."""

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage of the losses of chains, and say where it is attained."""
        return self._worst(losses, 0.0, enough)

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> list[Bound]:
        """Return the least number that divides the losses so that they leak at most epsilon."""
        return [self.least_divisor(losses, epsilon)]

    def least_divisor(self, losses: RecordLoss, epsilon: float) -> Bound:
        """Return a number that divides the losses so that they leak at most epsilon, the least but for the gap."""
        divisor, witness = self._least.of((losses.key, epsilon), lambda: self._worst(losses, epsilon, None))
        return divisor * (1 + (_SPARE if isinstance(self._theta, BinaryChainInterval) else _SPARE_OF_ONE)), witness

    def _worst(self, losses: RecordLoss, epsilon: float, enough: float | None) -> Bound:
        worst, witness = 0.0, None
        for chain in chains_that_can_decide(losses):
            found = supremum(
                self._box,
                self.bound(chain, epsilon),
                width=width_of,
                gap=self._gap,
                floor=worst,
                enough=enough,
                most_boxes=self._most_boxes(chain.length.steps),
            )
            if witness is None or found.most > worst:
                witness = self.witness(found, chain)
            worst = max(worst, found.most)
        return worst, witness

    def _most_boxes(self, steps: int) -> int:
        """Return how many boxes are looked at: fewer where a bound takes longer, in long chains that forget slowly."""
        stay = self._box[0] + self._box[1]
        slowest = 1 - min(abs(float(stay.max()) - 1), 1.0) if stay.max() - 1 > 1 - stay.min() else float(stay.min())
        return int(np.clip(_WORK / min(steps, _SETTLING / max(slowest, 1e-9)), 64, 60_000))

    def nearest(self, found: Supremum) -> Nearest:
        """Return the member that comes nearest to the supremum."""
        p0, p1, zero = (float(v) for v in found.point)
        start: Any = self._theta.initial_distribution
        if start == "any" and zero >= 0:  # below 0 the bound holds for every initial law, and names none
            start = zero, 1 - zero
        return Nearest(gap=found.gap, transition_matrix=((p0, 1 - p0), (1 - p1, p1)), initial_distribution=start)

    def _pair(self, one: bool) -> tuple[str, str]:
        zero, other = self._theta.states
        return (other, zero) if one else (zero, other)


def _box(theta: BinaryChainInterval | MarkovChain) -> NDArray[np.float64]:
    """Return the box of a class, or of one matrix under every initial law, widened by how its rows were rounded."""
    if isinstance(theta, BinaryChainInterval):
        return root_box((theta.low, theta.high), (theta.low, theta.high), theta.initial_distribution)
    p = theta.transition_matrix
    zero, one = (_stays(float(p[x, x]), float(p[x, 1 - x])) for x in range(2))
    return root_box(zero, one, "any")


def _stays(stay: float, leave: float) -> tuple[float, float]:
    """Return bounds on a probability of staying: what is left of 1 may tell another one, by many digits of a small one.

    The row (0.99999999, 1e-8) sums to 1 but for 5e-17, and 1 − 0.99999999 misses 1e-8 by 5e-17, which are 5e-9 of it.
    """
    given, left = Fraction(stay), 1 - Fraction(leave)
    return -float_up(-min(given, left)), float_up(max(given, left))


class BinaryPropagation(_Certified):
    """Leakage propagation, with the law of the record before: for one member and initial law it is exact."""

    def bound(self, chain: BlockLoss, epsilon: float) -> BoxBound:
        """Return the bound over boxes: the leakage of losses (epsilon 0), or their least divisor."""
        runs = np.array(list(_runs(chain)))
        return lambda boxes, floor: propagated(boxes, runs, epsilon, floor)

    def witness(self, found: Supremum, chain: BlockLoss) -> PropagationWitness:
        """Say where a supremum is attained."""
        node, pair, own, past, future = (float(v) for v in found.where)
        return PropagationWitness(
            theta=0,
            length=chain.length.steps,
            node=int(node) - 1,
            secret_pair=self._pair(pair == 1),
            nearest=self.nearest(found),
            own=own,
            past=past,
            future=future,
        )


class BinaryQuilts(_Certified, Fallback):
    """Markov quilts: with exact max-influence, or by Lemma 4.8 ("mixing")."""

    def __init__(
        self, theta: BinaryChainInterval, kind: Literal["exact", "mixing"], longest: int | None = None
    ) -> None:
        super().__init__(theta)
        self._longest = longest
        self._kind: Literal["any", "stationary", "mixing"] = theta.initial_distribution
        if kind == "mixing":
            # Lemma 4.8 holds for every initial law
            self._kind = "mixing"
            self._box = root_box((theta.low, theta.high), (theta.low, theta.high), "stationary")

    def proves_less(self, losses: RecordLoss, value: float, witness: AnyWitness | None, epsilon: float) -> bool:
        """Return whether quilts may prove less than a value: not where its member and record need as much by quilts.

        Then the whole class is not searched, which takes long where losses differ from record to record.
        """
        nearest = None if witness is None else witness.nearest
        if witness is None or nearest is None or not isinstance(witness.node, int) or nearest.transition_matrix is None:
            return True
        (p0, _), (_, p1) = nearest.transition_matrix
        start = nearest.initial_distribution
        zero = -1.0 if start is None or isinstance(start, str) else start[0]
        point = np.repeat(np.array([[p0, p1, zero]])[:, :, None], 2, axis=2)
        if zero < 0 and self._theta.initial_distribution == "any":
            return True
        node = witness.node + 1
        chains = (chain for chain in chains_that_can_decide(losses) if chain.length.steps == witness.length)
        return not any(float(self._bound(chain, epsilon, node)(point, 0.0)[0][0]) >= value for chain in chains)

    def bound(self, chain: BlockLoss, epsilon: float) -> BoxBound:
        """Return the bound over boxes: the leakage of losses (epsilon 0), or their least divisor."""
        return self._bound(chain, epsilon, None)

    def _bound(self, chain: BlockLoss, epsilon: float, node: int | None) -> BoxBound:
        length, each = chain.length, np.atleast_1d(chain.per_record)
        records = length.records if chain.of_observed else int(chain.steps[chain.largest > 0].sum())
        if length.steps > _ONE_BY_ONE or bool(np.all(each == each[0])):
            each = np.array([each.max()])
        return lambda boxes, floor: quilted(
            self._kind, boxes, length.steps, records, each, epsilon, floor, self._longest, node
        )

    def witness(self, found: Supremum, chain: BlockLoss) -> QuiltWitness:
        """Say where a supremum is attained."""
        node, a, b = (int(v) for v in found.where[:3])
        steps = chain.length.steps
        ends = [*([node - a - 1] if a else []), *([node + b - 1] if b else [])]
        nearby = (a + b - 1) if a and b else (steps - node + a if a else node + b - 1 if b else steps)
        return QuiltWitness(
            theta=0,
            length=steps,
            node=node - 1,
            nearest=self.nearest(found),
            active_quilt=tuple(ends),
            nearby=min(nearby, chain.length.records),
            influence=float(found.where[3]),
        )


def _runs(chain: BlockLoss) -> Iterator[tuple[float, float, float]]:
    """Yield the steps and the losses d(0,1), d(1,0) of runs of records; of long profiles rounded up."""
    values = chain.stacked if chain.stacked.ndim == 3 else chain.stacked[:, None, None] * (1 - np.eye(2))
    together = math.ceil(len(values) / _MOST_RUNS)
    for i in range(0, len(values), together):
        some = values[i : i + together].max(axis=0)
        yield float(chain.steps[i : i + together].sum()), float(some[0, 1]), float(some[1, 0])
