"""Influence bounds over :class:`~pufferfish.theta.continua.BinaryChainInterval`: corners, or certified suprema.

Propagation under stationary laws is largest at p0 = p1 = low or at p0 = p1 = high (docs/proofs/intervals.md,
"The two corners"). Else the class is covered by boxes of (p0, p1, P(X_1=0)), bounded from above for every chain of a
box and from below by what single chains attain, and halved until both are within :data:`GAP`. The upper end counts: the
gap costs noise, never privacy.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._core.numbers import rounding
from pufferfish._core.numbers.compiled import Loops
from pufferfish._core.numbers.rounding import float_up
from pufferfish.mechanisms import _binary_interval
from pufferfish.mechanisms.engine import Bound, Engine, total_of
from pufferfish.mechanisms.witness import AnyWitness, Nearest, PropagationWitness, QuiltWitness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide
from pufferfish.theta.continua import BinaryChainInterval
from pufferfish.theta.markov_chain import MarkovChain

# -- Certified suprema over boxes: branch and bound, never samples ---------------------------------------------------

Vector = NDArray[np.float64]
Boxes = NDArray[np.float64]
BoxBound = Callable[[Boxes, float], tuple[Vector, Boxes]]

_AT_ONCE = 8  # boxes that are halved together, at least
_BELOW = 1e-5  # how far, as a share, what is attained must stay below a value for proving that value to be tried


@dataclass(frozen=True, slots=True, eq=False)
class Supremum:
    """A bracket of a supremum: ``point`` attains ``least``, as told by ``where``; none exceeds ``most``."""

    least: float
    most: float
    point: Vector
    where: Vector

    @property
    def gap(self) -> float:
        """Width of the bracket, as a share of what is attained."""
        return self.most / self.least - 1 if self.least > 0 else (0.0 if self.most <= self.least else np.inf)


def supremum(
    box: NDArray[np.float64],
    bound: BoxBound,
    *,
    width: Callable[[Boxes], Boxes],
    gap: float,
    floor: float = 0.0,
    enough: float | None = None,
    cap: float = math.inf,
    most_boxes: int = 60_000,
) -> Supremum:
    """Bracket the supremum of a function over a box, shape (d, 2), to a relative width, by branch and bound.

    ``bound`` takes boxes (n, d, 2) and a floor, and returns for every box an upper bound on the function there, or the
    floor where that is not less, and what else is to be told of it, shape (n, m); on a point it is the function itself.
    ``width`` returns the widths (n, d) by which the coordinate to halve is chosen. The search ends at the relative
    ``gap``, where a point attains more than ``cap``, a value that holds anyway, or with ``most_boxes``. What is not
    above ``floor`` does not matter; ``enough`` is to be proven as an upper bound, though it be nearer than the gap.
    """
    boxes, peak = np.array([box], dtype=np.float64), Supremum(-np.inf, np.inf, box[:, 0], np.empty(0))
    most, _ = bound(boxes, floor)
    while True:
        peak = max(peak, _attained(bound, boxes[int(np.argmax(most))], peak.least), key=lambda s: s.least)
        near, ignored = max(peak.least * (1 + gap), floor), max(peak.least * (1 + gap / 2), floor)
        if enough is not None and peak.least < enough * (1 - _BELOW):
            near, ignored = max(min(near, enough), floor), max(min(ignored, enough), floor)
        open_ = np.flatnonzero(~(most <= near))
        if not open_.size or len(boxes) >= most_boxes or peak.least > cap:
            break
        report_progress("bounding a continuum", min(0.99, 1 - open_.size / len(boxes)))
        worst = open_[np.argsort(-most[open_], kind="stable")][: max(_AT_ONCE, open_.size // 2)]
        halves = _halves(boxes[worst], width)
        if not halves.size:
            break
        bounds, _ = bound(halves, ignored)
        # a half is covered by what covers the whole
        bounds = np.minimum(bounds, np.maximum(np.tile(most[worst], 2), ignored))
        boxes = np.concatenate([np.delete(boxes, worst, axis=0), halves])
        most = np.concatenate([np.delete(most, worst), bounds])
    upper = float(np.max(most)) if not np.any(np.isnan(most)) else np.inf
    return Supremum(peak.least, max(upper, peak.least), peak.point, peak.where)


def _halves(boxes: Boxes, width: Callable[[Boxes], Boxes]) -> Boxes:
    """Return both halves of every box, across its widest coordinate, the first halves first; none at the last digit."""
    n, across = np.arange(len(boxes)), np.argmax(width(boxes), axis=1)
    low, high = boxes[n, across, 0], boxes[n, across, 1]
    middle = low + (high - low) / 2
    if np.any((middle <= low) | (middle >= high)):
        return np.empty(0)
    below, above = boxes.copy(), boxes.copy()
    below[n, across, 1] = middle
    above[n, across, 0] = middle
    return np.concatenate([below, above])


def _attained(bound: BoxBound, box: NDArray[np.float64], least: float) -> Supremum:
    """Return the largest value at a corner or the centre of a box; less than what is attained need not be exact."""
    points = np.array([*product(*box), box.mean(axis=1)])
    values, where = bound(np.repeat(points[:, :, None], 2, axis=2), max(least, 0.0))
    best = int(np.argmax(values))
    return Supremum(float(values[best]), np.inf, points[best], where[best])


# -- Bounds over boxes of two-state chains, by the loops of ``_binary_interval`` --------------------------------------

_ROOM = 20_000  # stretches that a sweep of a chain may tell apart: some megabytes
_ALONE = 256  # nodes from the first on that are searched one by one where losses are the same; the others are alike
_FARTHEST = 1000  # steps that a quilt reaches at most, to either side

_KINDS = {"any": 0, "stationary": 1, "mixing": 2}


def root_box(
    p0: tuple[float, float], p1: tuple[float, float], start: Literal["any", "stationary"]
) -> NDArray[np.float64]:
    """Return the ends of p0, of p1 and of P(X_1 = 0), the last −1 for stationary chains: a box of chains."""
    return np.array([p0, p1, [0.0, 1.0] if start == "any" else [-1.0, -1.0]])


def width_of(boxes: Boxes) -> Boxes:
    """Return how much the coordinates of boxes differ, for choosing the one to halve: log odds, and probability."""
    of_p = (boxes[:, :2, 1] - boxes[:, :2, 0]) / (4 * boxes[:, :2, 0] * (1 - boxes[:, :2, 1]))
    return np.concatenate([of_p, boxes[:, 2:, 1] - boxes[:, 2:, 0]], axis=1)


def propagated(boxes: Boxes, runs: NDArray[np.float64], epsilon: float, floor: float) -> tuple[Vector, Boxes]:
    """Bound leakage propagation over boxes, as leakages (epsilon 0) or least divisors, at least ``floor``.

    The rows of runs are steps, d(0,1) and d(1,0). With the bounds come node (1-based), pair, own loss, past and future.
    """
    values, where = np.empty(len(boxes)), np.zeros((len(boxes), 5))
    room = int(min(_ROOM, runs[:, 0].sum()))
    _LOOPS.compiled.propagate(boxes.reshape(-1, 6), runs, epsilon, floor, room, values, where)
    return values, where


def quilted(
    kind: Literal["any", "stationary", "mixing"],
    boxes: Boxes,
    length: int,
    records: int,
    losses: Vector,
    epsilon: float,
    floor: float,
    longest: int | None = None,
) -> tuple[Vector, Boxes]:
    """Bound Markov quilts over boxes, by the law left of a node, for stationary chains, or by Lemma 4.8; as above.

    ``losses`` has the one loss of every observed record, or one for every step. With the bounds come node (1-based),
    distances a and b (0 where a side is open) and influence.
    """
    values, where = np.empty(len(boxes)), np.zeros((len(boxes), 4))
    same = losses.size == 1
    alone = min(length, _ALONE) if same else length
    nodes = [(i, i) for i in range(1, alone + 1)] + ([(alone + 1, length)] if length > alone else [])
    sums = np.empty(0) if same else np.concatenate([[0.0], np.cumsum(losses)])
    loss = float(losses[0]) if same else 2 * rounding.UNIT * length * float(sums[-1])
    _LOOPS.compiled.search(
        _KINDS[kind],
        boxes.reshape(-1, 6),
        np.array(nodes, dtype=np.int64),
        length,
        records,
        loss,
        sums,
        max(1, min(length - 1, _FARTHEST)),
        length if longest is None else longest,
        epsilon,
        floor,
        values,
        where,
    )
    return values, where


_LOOPS = Loops(_binary_interval.propagate, _binary_interval.search)

GAP = 9e-4  # relative gap between what is reported and what a member of the class attains, at which the search stops
_GAP_OF_ONE = 2e-6  # the same for one matrix, where only the initial law is searched

_SPARE, _SPARE_OF_ONE = 1e-7, 4e-6
"""More noise than the bound needs, relatively, so that the proof anew stands whatever its rounding, and its gap."""

_WORK = 3e6  # boxes times the steps in which their slowest chains settle, or the length: some ten seconds
_SETTLING = 30.0  # steps in which a chain settles, times 1 − |p0 + p1 − 1|
_MOST_RUNS = 5000  # runs of equal losses that are told apart; longer profiles are rounded up
_ONE_BY_ONE = 20_000  # steps of a profile searched record by record; of a longer one every loss is the largest


class _Certified(Engine):
    """A bound over a class of two-state chains."""

    supports_step_losses = True  # it holds for each chain of the class as propagation, or quilts, do for that chain
    _or_sums = False  # whether the sum of all losses may be less, as where few records are observed

    def __init__(self, theta: BinaryChainInterval | MarkovChain) -> None:
        self._theta = theta
        self._boxes = [_box(theta)]
        self._gap = GAP if isinstance(theta, BinaryChainInterval) and theta.low < theta.high else _GAP_OF_ONE

    @abstractmethod
    def bound(self, chain: BlockLoss, epsilon: float) -> BoxBound:
        """Return the bound over boxes: the leakage of losses (epsilon 0), or their least divisor."""

    @abstractmethod
    def witness(self, peak: Supremum, chain: BlockLoss) -> AnyWitness:
        """Say where a supremum is attained."""

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        return self._worst(losses, 0.0, enough)

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> list[Bound]:
        divisor, witness = self._worst(losses, epsilon, None)
        return [(divisor * (1 + (_SPARE if isinstance(self._theta, BinaryChainInterval) else _SPARE_OF_ONE)), witness)]

    def _worst(self, losses: RecordLoss, epsilon: float, enough: float | None) -> Bound:
        worst, witness = 0.0, None
        for chain, box in product(chains_that_can_decide(losses), self._boxes):
            total = total_of(chain)[0] / (epsilon or 1.0) if self._or_sums else math.inf
            peak = supremum(
                box,
                self.bound(chain, epsilon),
                width=width_of,
                gap=self._gap,
                floor=worst,
                enough=enough,
                cap=total,
                most_boxes=_most_boxes(box, chain.length.steps),
            )
            most = min(peak.most, total)
            if witness is None or most > worst:
                witness = self.witness(peak, chain) if most == peak.most else self._all_of(peak, chain)
            worst = max(worst, most)
        return worst, witness

    def _all_of(self, peak: Supremum, chain: BlockLoss) -> QuiltWitness:
        """Return the witness of the sum of all losses, around the record that decides where it is not asked."""
        return QuiltWitness(
            theta=0,
            length=chain.length.steps,
            node=int(peak.where[0]) - 1,
            nearest=msgspec.structs.replace(self.nearest(peak), gap=0.0),  # the sum is the same under every member
            active_quilt=(),
            nearby=chain.length.records,
            influence=0.0,
        )

    def nearest(self, peak: Supremum) -> Nearest:
        p0, p1, zero = (float(v) for v in peak.point)
        start: Any = self._theta.initial_distribution
        if start == "any" and zero >= 0:  # below 0 the bound holds for every initial law, and names none
            start = zero, 1 - zero
        return Nearest(gap=peak.gap, transition_matrix=((p0, 1 - p0), (1 - p1, p1)), initial_distribution=start)


def _most_boxes(box: NDArray[np.float64], steps: int) -> int:
    """Return how many boxes are looked at: fewer where a bound takes longer, in long chains that forget slowly."""
    stay = box[0] + box[1]
    slowest = 1 - min(abs(float(stay.max()) - 1), 1.0) if stay.max() - 1 > 1 - stay.min() else float(stay.min())
    return int(np.clip(_WORK / min(steps, _SETTLING / max(slowest, 1e-9)), 64, 60_000))


def _box(theta: BinaryChainInterval | MarkovChain) -> NDArray[np.float64]:
    """Return the box of a class, or of one matrix under every initial law, widened by how its rows were rounded."""
    if isinstance(theta, BinaryChainInterval):
        return root_box((theta.low, theta.high), (theta.low, theta.high), theta.initial_distribution)
    p = theta.transition_matrix
    zero, one = (_stays(float(p[x, x]), float(p[x, 1 - x])) for x in range(2))
    return root_box(zero, one, "any")


def _stays(stay: float, leave: float) -> tuple[float, float]:
    """Return bounds on a probability of staying: what is left of 1 may tell another, by many digits if it is small."""
    staying, left = Fraction(stay), 1 - Fraction(leave)
    return -float_up(-min(staying, left)), float_up(max(staying, left))


class BinaryPropagation(_Certified):
    """Leakage propagation, with the law of the record before: for one member and initial law it is exact."""

    def __init__(self, theta: BinaryChainInterval | MarkovChain) -> None:
        super().__init__(theta)
        self._or_sums = isinstance(theta, BinaryChainInterval)
        if isinstance(theta, BinaryChainInterval) and theta.initial_distribution == "stationary":
            # of stationary chains only the two corners are asked, which is exact too
            self._boxes = [root_box((p, p), (p, p), "stationary") for p in dict.fromkeys((theta.low, theta.high))]

    def bound(self, chain: BlockLoss, epsilon: float) -> BoxBound:
        """Bound propagation."""
        runs = np.array(list(_runs(chain)))
        return lambda boxes, floor: propagated(boxes, runs, epsilon, floor)

    def witness(self, peak: Supremum, chain: BlockLoss) -> PropagationWitness:
        """Say what the past and the future of the worst record tell."""
        node, pair, own_loss, past, future = (float(v) for v in peak.where)
        first, second = self._theta.states
        return PropagationWitness(
            theta=0,
            length=chain.length.steps,
            node=int(node) - 1,
            secret_pair=(second, first) if pair == 1 else (first, second),
            nearest=self.nearest(peak),
            own=own_loss,
            past=past,
            future=future,
        )


class BinaryQuilts(_Certified):
    """Markov quilts: with exact max-influence, or by Lemma 4.8 ("mixing")."""

    def __init__(
        self, theta: BinaryChainInterval, kind: Literal["exact", "mixing"], longest: int | None = None
    ) -> None:
        super().__init__(theta)
        self._longest = longest
        self._kind: Literal["any", "stationary", "mixing"] = theta.initial_distribution
        if kind == "mixing":  # Lemma 4.8 holds for every initial law
            self._kind = "mixing"
            self._boxes = [root_box((theta.low, theta.high), (theta.low, theta.high), "stationary")]

    def bound(self, chain: BlockLoss, epsilon: float) -> BoxBound:
        """Bound quilts."""
        length, losses = chain.length, np.atleast_1d(chain.per_record)
        records = length.records if chain.of_observed else int(chain.steps[chain.largest > 0].sum())
        if length.steps > _ONE_BY_ONE or bool(np.all(losses == losses[0])):
            losses = np.array([losses.max()])
        steps, longest = length.steps, self._longest
        return lambda boxes, floor: quilted(self._kind, boxes, steps, records, losses, epsilon, floor, longest)

    def witness(self, peak: Supremum, chain: BlockLoss) -> QuiltWitness:
        """Name the best quilt of the worst record."""
        node, a, b = (int(v) for v in peak.where[:3])
        steps = chain.length.steps
        ends = [end for side, end in ((a, node - a - 1), (b, node + b - 1)) if side]
        nearby = (a + b - 1) if a and b else (steps - node + a if a else node + b - 1 if b else steps)
        return QuiltWitness(
            theta=0,
            length=steps,
            node=node - 1,
            nearest=self.nearest(peak),
            active_quilt=tuple(ends),
            nearby=min(nearby, chain.length.records),
            influence=float(peak.where[3]),
        )


def _runs(chain: BlockLoss) -> Iterator[tuple[float, float, float]]:
    """Yield the steps and the losses d(0,1), d(1,0) of runs of records; of long profiles rounded up."""
    values = chain.stacked if chain.stacked.ndim == 3 else chain.stacked[:, None, None] * (1 - np.eye(2))
    together = math.ceil(len(values) / _MOST_RUNS)
    for i in range(0, len(values), together):
        some = values[i : i + together].max(axis=0)
        yield float(chain.steps[i : i + together].sum()), float(some[0, 1]), float(some[1, 0])
