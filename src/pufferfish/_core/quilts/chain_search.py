"""Best quilt of a node, worst node of a chain: the search behind Algorithms 3 and 4 (docs/proofs/quilts.md).

The quilts of node i are {X_{i−a}, X_{i+b}} with 1 ≤ a ≤ i and 1 ≤ b ≤ T−i+1, where the far ends a = i and b = T−i+1
stand for "no record on that side". A quilt has a **weight**, the summed losses of its a+b−1 nearby records, which grows
with a and b, and an **influence**, the max over secret pairs of left_a + right_b, which falls. On a box of quilts the
weight of the nearest corner and the influence of the farthest bound the objective from below: best-first search over
boxes. Where nodes share their left parts and the weight depends on the number of nearby records only, the worst node is
the one worst served by one-sided quilts alone, found by bisection.
"""

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from pufferfish._core import Vector, Whole
from pufferfish._core.numbers.rounding import down, up


@dataclass(frozen=True, slots=True)
class LeakThrough:
    """Loss that leaks through a quilt: weight + influence."""

    def __call__(self, weight: float, influence: float) -> float:
        """Return weight + influence, rounded up; exact where the quilt tells nothing."""
        return up(weight + influence) if influence else weight

    def heaviest(self, value: float, influence: float) -> float:
        """Return value − influence, rounded down."""
        if not influence:
            return value
        return down(value - influence, 8) if influence < value else -math.inf

    def promise(self, weight: float, influence: float, best: float) -> float:
        """Return weight + influence."""
        return weight + influence


@dataclass(frozen=True, slots=True)
class Score:
    """Score of a quilt (Algorithm 2): weight/(ε − influence), ∞ where the influence uses up ε."""

    epsilon: float

    def __call__(self, weight: float, influence: float) -> float:
        """Return the score, rounded up."""
        left = down(self.epsilon - influence) if influence < self.epsilon else 0.0
        return up(weight / left) if left > 0 else math.inf

    def heaviest(self, value: float, influence: float) -> float:
        """Return value·(ε − influence), rounded down."""
        return down(value * down(self.epsilon - influence, 8), 8) if influence < self.epsilon else -math.inf

    def promise(self, weight: float, influence: float, best: float) -> float:
        """Return weight/best + influence, which is below ε where the quilt is better than the best one known."""
        return weight / best + influence


Objective = LeakThrough | Score
"""What a quilt is judged by; grows with its weight and its influence, and is rounded up.

``heaviest`` is a weight, rounded down, up to which it stays at or below a value; ``promise`` how much a quilt leaks at
the noise that the best one known allows: which way to search first.
"""


@dataclass(frozen=True, slots=True, eq=False)
class SearchProblem:
    """What the search needs to know of one group of nodes of one chain of ``length`` records.

    ``left`` and ``right`` are the parts at a distance ≥ 1, for every secret pair. ``weight`` sums the losses of records
    first..last, 1-based, rounded up, ``weights`` those of many runs; if ``uniform``, it depends on the number of
    records only. A quilt that is not trivial has at most ``longest`` nearby records.
    """

    length: int
    left: Callable[[int], Vector]
    right: Callable[[int], Vector]
    weight: Callable[[int, int], float]
    weights: Callable[[Whole, Whole], Vector]
    uniform: bool
    longest: int


@dataclass(frozen=True, slots=True)
class Quilt:
    """A quilt of a node, 1-based, and what it costs there: summed losses of the nearby records, influence, objective.

    ``a``, ``b`` are the distances of its ends; ``a == node`` or ``b == T − node + 1`` mean that there is no end on that
    side. ``pair`` is the index of the secret pair at which the influence is attained, −1 where there is none.
    """

    node: int
    a: int
    b: int
    pair: int
    weight: float
    influence: float
    value: float


def evaluate(problem: SearchProblem, objective: Objective, node: int, a: int, b: int) -> Quilt:
    """One quilt of a node."""
    has_left, has_right = a < node, b < problem.length - node + 1
    pair, influence = -1, 0.0
    if has_left or has_right:
        parts = problem.left(a) if has_left else problem.right(b)
        if has_left and has_right:
            parts = parts + problem.right(b)
        pair = int(np.argmax(parts))
        influence = max(0.0, up(float(parts[pair]))) if parts[pair] == parts[pair] else math.inf  # NaN: fail closed
    weight = problem.weight(node - a + 1, node + b - 1)
    value = objective(weight, influence)
    if (has_left or has_right) and a + b - 1 > problem.longest:
        value = math.inf
    return Quilt(node, a, b, pair, weight, influence, value)


@dataclass(frozen=True, slots=True)
class _Box:
    """Ends a0..a1 and b0..b1, and the influence of the farthest quilt, which is the least."""

    a0: int
    a1: int
    b0: int
    b1: int
    influence: float


def best_quilt(
    problem: SearchProblem,
    objective: Objective,
    node: int,
    *,
    left_ends: tuple[int, int] | None = None,
    right_ends: tuple[int, int] | None = None,
    enough: float = -math.inf,
    below: float = math.inf,
    hint: tuple[int, int] | None = None,
) -> Quilt:
    """Return the least quilt of a node over a box of ends that always includes the trivial quilt's corner.

    It stops at a quilt of ``enough``; those of ``below`` or more are of no use. ``hint``: ends to try first.
    """
    far_a, far_b = node, problem.length - node + 1
    a_box, b_box = left_ends or (1, far_a), right_ends or (1, far_b)
    best = evaluate(problem, objective, node, far_a, far_b)
    if hint is not None:
        tried = evaluate(problem, objective, node, min(hint[0], far_a), min(hint[1], far_b))
        best = min(best, tried, key=attrgetter("value"))
    order = itertools.count()
    heap: list[tuple[float, int, _Box]] = []

    def cornered(a0: int, a1: int, b0: int, b1: int) -> tuple[float, _Box]:
        """Return a box with a bound on its quilts; its farthest corner may be the best of all."""
        nonlocal best
        corner = evaluate(problem, objective, node, a1, b1)
        best = min(best, corner, key=attrgetter("value"))
        return bounded(_Box(a0, a1, b0, b1, corner.influence))

    def bounded(box: _Box) -> tuple[float, _Box]:
        if box.a0 + box.b0 - 1 > problem.longest:  # nothing in it but, perhaps, the trivial quilt, which is known
            return math.inf, box
        return objective(problem.weight(node - box.a0 + 1, node + box.b0 - 1), box.influence), box

    def keep(bound: float, box: _Box) -> None:
        if bound < min(best.value, below) and (box.a0 < box.a1 or box.b0 < box.b1):
            heapq.heappush(heap, (bound, next(order), box))

    if best.value > enough and a_box[0] + b_box[0] - 1 <= problem.longest:
        keep(*cornered(*a_box, *b_box))
    while heap and best.value > enough:
        bound, _, box = heapq.heappop(heap)
        if bound >= min(best.value, below):
            break
        across: list[list[tuple[float, _Box]]] = []
        if box.a0 < box.a1:
            middle = _middle(box.a0, box.a1)
            near = cornered(box.a0, middle, box.b0, box.b1)
            across.append([near, bounded(replace(box, a0=middle + 1))])
        if box.b0 < box.b1:
            middle = _middle(box.b0, box.b1)
            near = cornered(box.a0, box.a1, box.b0, middle)
            across.append([near, bounded(replace(box, b0=middle + 1))])
        # across the side where less is left to search: along a frontier that runs straight, few boxes are enough
        most = min(best.value, below)
        halves = max(across, key=lambda cut: sum(min(half[0], most) for half in cut))
        for half in halves:
            keep(*half)
    return best


def _middle(low: int, high: int) -> int:
    """Where to cut an interval of distances: by ratio while it spans scales, in half after."""
    return math.isqrt(low * high) if high > 4 * low else (low + high) // 2


def worst_node(
    problem: SearchProblem,
    objective: Objective,
    first: int,
    last: int,
    *,
    floor: Quilt | None = None,
    below: float = math.inf,
) -> Quilt | None:
    """Return the worst node's best quilt among the nodes first..last of one group; None if ``floor`` is no better.

    Quilts of ``below`` or more are of no use: a node that needs one decides, whatever the others need.
    """
    enough = -math.inf if floor is None else floor.value
    hint = None if floor is None else (floor.a, floor.b)
    if enough >= objective(problem.weight(1, problem.length), 0.0):
        return None  # the trivial quilt serves every node this well
    if first == last:
        quilt = best_quilt(problem, objective, first, enough=enough, below=below, hint=hint)
    elif problem.uniform:
        node = _worst_served_by_one_side(problem, objective, first, last)
        quilt = best_quilt(problem, objective, node, enough=enough, below=below, hint=hint)
    else:
        return _worst_of_all(problem, objective, first, last, floor, below)
    return quilt if quilt.value > enough else None


def _worst_served_by_one_side(problem: SearchProblem, objective: Objective, first: int, last: int) -> int:
    def from_left(node: int) -> float:
        end = problem.length - node + 1
        return best_quilt(problem, objective, node, right_ends=(end, end)).value

    def from_right(node: int) -> float:
        return best_quilt(problem, objective, node, left_ends=(node, node)).value

    low, high = first, last  # the last node that is served from the right at least as well as from the left
    while low < high:
        middle = (low + high + 1) // 2
        if from_right(middle) <= from_left(middle):
            low = middle
        else:
            high = middle - 1
    candidates = range(low, min(low + 1, last) + 1)
    return max(candidates, key=lambda node: min(from_left(node), from_right(node)))


def _worst_of_all(
    problem: SearchProblem, objective: Objective, first: int, last: int, floor: Quilt | None, below: float
) -> Quilt | None:
    """Search the node that the quilts found so far serve worst, until they serve all nodes well enough.

    Inside a window nodes need the same but for rounding. So all are dropped that need no more than a few last digits
    above the worst one found, and what is returned is as much above it.
    """
    worst, quilts = floor, list[Quilt]()
    nodes = np.arange(first, last + 1)
    place = nodes.size // 2
    trivial = objective(problem.weight(1, problem.length), 0.0)
    missing = np.full(nodes.size, np.inf)
    while nodes.size:
        quilt = best_quilt(problem, objective, int(nodes[place]), below=below)
        quilts = [*quilts[1 - _REMEMBERED :], quilt]
        higher = worst is None or quilt.value > worst.value
        worst = quilt if worst is None or higher else worst
        if worst.value >= min(trivial, below):
            break
        # what a caller knows already is not raised, so nothing above it may be dropped
        enough = worst.value if worst is floor else up(worst.value, _ALIKE)
        for served in quilts if higher else [quilt]:
            missing = np.minimum(missing, _excess(problem, objective, nodes, served, enough))
        missing[place] = -math.inf
        nodes, missing = nodes[missing > 0], missing[missing > 0]
        place = int(np.argmax(missing)) if nodes.size else 0
    if worst is None or worst is floor:
        return None
    return replace(worst, value=min(up(worst.value, _ALIKE), trivial))


_ALIKE = 32  # last digits of a value that rounding a weight, an influence and their limits may cost
_REMEMBERED = 32  # quilts found elsewhere that are tried on all nodes when the value that they must reach has risen


def _excess(problem: SearchProblem, objective: Objective, nodes: Whole, quilt: Quilt, value: float) -> Vector:
    """Weight by which a quilt, moved to each of several nodes and cut at the chain's ends, misses ``value``."""
    first, last = nodes - quilt.a + 1, nodes + quilt.b - 1
    has_left, has_right = first > 1, last < problem.length
    weights = problem.weights(np.maximum(first, 1), np.minimum(last, problem.length))
    excess = np.full(nodes.size, np.inf)
    for left in (False, True):
        for right in (False, True):
            where = np.flatnonzero((has_left == left) & (has_right == right))
            if where.size == 0:
                continue
            node = int(nodes[where[0]])
            a = quilt.a if left else node
            b = quilt.b if right else problem.length - node + 1
            if (left or right) and quilt.a + quilt.b - 1 > problem.longest:
                continue
            influence = evaluate(problem, objective, node, a, b).influence
            excess[where] = weights[where] - objective.heaviest(value, influence)
    return excess
