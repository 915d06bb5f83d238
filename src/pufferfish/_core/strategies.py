r"""Which counts to measure, and how sharply: the search for the least error at a given leakage.

**Scales for given measurements.** Where noise is large, what outputs tell of a record that had state x rather than x'
is to first order, by the mean shifts of the measurements,

.. math:: \sum_j w_j |(D A_j)_x - (D A_j)_{x'}|,\quad w_j = 1/b_j,\quad D = Z_P + Z_R - I,\quad Z = (I - P + 1\pi)^{-1}.

The product of the error, a sum over outputs of E|sum of their noises|, and the largest leakage (a p-norm in its place)
is minimised in log w by L-BFGS.

**Sets of counts** are matrices of rows of 0 and 1: which states a measurement counts. Together with the number of
records each set tells the count of every state: all *bins*; for every edge of a *tree* on the states the count on its
one side; of *splits* of ordered states the count of the first part of every stretch.

The certified leakage is asked for the leading candidates only. All this only proposes.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pufferfish._core import Mask, Matrix, Vector, Whole
from pufferfish._core.chains.markov import stationary_law

# -- Sets of counts that tell a histogram ----------------------------------------------------------------------------


def bins(k: int) -> Whole:
    """Return every state by itself."""
    return np.eye(k, dtype=np.int64)


def star(k: int, middle: int) -> Whole:
    """Return every state by itself but one."""
    return np.delete(bins(k), middle, axis=0)


def tree(edges: Sequence[tuple[int, int]], k: int) -> Whole:
    """Return for every edge of a tree on the states the count on the side away from state 0.

    Examples
    --------
    >>> tree([(0, 1), (1, 2)], 3)
    array([[0, 1, 1],
           [0, 0, 1]])
    """
    near: dict[int, list[int]] = {x: [] for x in range(k)}
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    order, parent = [0], {0: 0}
    for x in order:
        for y in near[x]:
            if y not in parent:
                parent[y] = x
                order.append(y)
    below = np.eye(k, dtype=np.int64)
    for x in reversed(order[1:]):
        below[parent[x]] += below[x]
    return below[order[1:]]


def all_trees(k: int) -> Iterator[Whole]:
    """Yield all k^(k−2) trees on the states, by Prüfer's codes."""
    if k == 2:
        yield tree([(0, 1)], 2)
        return
    for code in itertools.product(range(k), repeat=k - 2):
        degree = [1 + code.count(x) for x in range(k)]
        edges: list[tuple[int, int]] = []
        for x in code:
            leaf = degree.index(1)
            edges.append((leaf, x))
            degree[leaf] -= 1
            degree[x] -= 1
        first, last = (x for x in range(k) if degree[x] == 1)
        yield tree([*edges, (first, last)], k)


def split(k: int, where: Callable[[int, int], int]) -> Whole:
    """Return the counts of a splitting of ordered states; ``where`` gives the last state of a stretch's first part.

    Examples
    --------
    >>> split(4, lambda first, last: (first + last) // 2)
    array([[1, 1, 0, 0],
           [1, 0, 0, 0],
           [0, 0, 1, 0]])
    """
    rows: list[Whole] = []
    waiting = [(0, k - 1)]
    while waiting:
        first, last = waiting.pop()
        if first == last:
            continue
        cut = where(first, last)
        row = np.zeros(k, dtype=np.int64)
        row[first : cut + 1] = 1
        rows.append(row)
        waiting += [(cut + 1, last), (first, cut)]
    return np.array(rows)


def prefixes(k: int) -> Whole:
    """Return the counts of the first state, of the first two, and so on, but that of all."""
    return np.tril(np.ones((k, k), dtype=np.int64))[:-1]


_MIXED = 1e-7  # share of every other state that is mixed into a matrix, so that it has one stationary law
_SHARPER = (8.0, 32.0, 128.0, 512.0)  # powers of the norms that stand for the maximum, one after the other
_STEPS, _KEPT, _HALVINGS = 60, 12, 30
_ENOUGH = 1e-7
_TIMES = np.logspace(-4, 5, 91)  # where E|S| of a sum S of Laplace variables is looked at, in 1/largest scale


def mean_shifts(transition_matrix: Matrix, records: float) -> Matrix:
    """Return D: how much longer than otherwise all of a stationary chain is in each state, given that of one record."""
    k = len(transition_matrix)
    p = (1 - _MIXED) * transition_matrix + _MIXED / k
    pi = stationary_law(p)
    back = p.T * pi[None, :] / pi[:, None]
    lasting = 1 - 1 / max(records, 2.0)  # a chain that moves more slowly than it lasts is not followed for ever
    total = -np.eye(k)
    for kernel in (p, back):
        total = total + np.linalg.inv(np.eye(k) - lasting * (kernel - pi[None, :]))
    return total


def shifts_of(responses: list[Matrix], rows: Whole) -> Matrix:
    """Return |(D A_j)_x − (D A_j)_x'| of every pair of states under every D; shape (pairs, m)."""
    x, x_ = np.triu_indices(rows.shape[1], 1)
    means = [response @ rows.T for response in responses]
    return np.concatenate([np.abs(mean[x] - mean[x_]) for mean in means])


def best_scales(shifts: Matrix, taken: Mask, power: float, start: Vector | None = None) -> Vector:
    """Return scales b with the least error, and a first-order leakage of 1; shape (m,).

    ``shifts``, (pairs, m), are what each measurement tells of each pair at scale 1, ``taken``, (outputs, m), which
    noises are summed in each output, ``power`` the norm of the outputs' errors: 1 for their sum, large for the largest.
    """
    alone = np.where(shifts.max(axis=0) > 0, shifts.max(axis=0), 1.0)
    log_weights = -np.log(alone) if start is None else -np.log(start)
    for sharper in _SHARPER:
        log_weights = _least(lambda u, p=sharper: _cost(u, shifts, taken, power, p), log_weights)
    w = np.exp(log_weights - log_weights.max())
    return float(np.max(shifts @ w)) / w


def _cost(u: Vector, shifts: Matrix, taken: Mask, power: float, sharper: float) -> tuple[float, Vector]:
    """Return log error + log leakage, and the gradient in u = log w."""
    w = np.exp(u - u.max())
    errors, slopes = errors_of(1 / w, taken)
    largest = float(errors.max())
    shares = (errors / largest) ** (power - 1)
    sum_of_powers = float(np.sum(shares * errors / largest))
    of_errors = math.log(largest) + math.log(sum_of_powers) / power
    gradient = -(shares @ slopes) / largest / sum_of_powers / w
    leakages = shifts @ w
    most = float(leakages.max())
    weights = (leakages / most) ** (sharper - 1)
    sum_of_leakages = float(np.sum(weights * leakages / most))
    of_leakages = math.log(most) + math.log(sum_of_leakages) / sharper
    gradient = gradient + (weights @ shifts) * w / most / sum_of_leakages
    return of_errors + of_leakages, gradient


def errors_of(scales: Vector, taken: Mask) -> tuple[Vector, Matrix]:
    """Return E|S| of sums of Laplace variables, and how it changes with every scale: (2/π) ∫ (1 − φ(t))/t² dt."""
    single = taken.sum(axis=1) == 1
    errors, slopes = np.zeros(len(taken)), np.zeros(taken.shape)
    errors[single] = taken[single] @ scales
    slopes[single] = taken[single]
    if not single.all():
        several = taken[~single].astype(np.float64)
        largest = float(scales.max())
        b, t = scales / largest, _TIMES
        more = 1 + np.outer(b**2, t**2)
        phi = np.exp(-(several @ np.log(more)))
        step = 2 / math.pi * math.log(t[1] / t[0])
        errors[~single] = largest * (
            step * ((1 - phi) / t).sum(axis=1) + 2 / math.pi * (t[0] * (several @ b**2) + 1 / t[-1])
        )
        slopes[~single] = several * (step * ((phi / t) @ (2 * t**2 * b[:, None] / more).T))
    return errors, slopes


def _least(cost: Callable[[Vector], tuple[float, Vector]], point: Vector) -> Vector:
    """Return where a smooth function is least, nearby: L-BFGS with halved steps."""
    value, slope = cost(point)
    steps: list[tuple[Vector, Vector]] = []
    for _ in range(_STEPS):
        way = -_scaled(slope, steps)
        if float(way @ slope) >= 0:
            steps.clear()
            way = -slope
        size = min(1.0, 2.0 / max(float(np.abs(way).max()), 1e-300))
        for _ in range(_HALVINGS):
            to = point + size * way
            there, slope_there = cost(to)
            if there <= value + 1e-4 * size * float(way @ slope):
                break
            size /= 2
        else:
            break
        moved, bent = to - point, slope_there - slope
        if float(moved @ bent) > 0:
            steps = [*steps[1 - _KEPT :], (moved, bent)]
        gained, point, value, slope = value - there, to, there, slope_there
        if gained < _ENOUGH:
            break
    return point


def _scaled(slope: Vector, steps: list[tuple[Vector, Vector]]) -> Vector:
    """Return the inverse of what is known of the curvature, times a slope."""
    direction, factors = slope.copy(), list[float]()
    for moved, bent in reversed(steps):
        factor = float(moved @ direction) / float(moved @ bent)
        factors.append(factor)
        direction = direction - factor * bent
    if steps:
        moved, bent = steps[-1]
        direction = direction * (float(moved @ bent) / float(bent @ bent))
    for (moved, bent), factor in zip(steps, reversed(factors), strict=True):
        direction = direction + (factor - float(bent @ direction) / float(moved @ bent)) * moved
    return direction


# -- Which counts to measure and how sharply -------------------------------------------------------------------------

MOST_STATES = 120  # with more states every pair of them under every measurement would be too many numbers
_ALL_TREES = 4  # up to so many states all trees on them are tried (16)
# Candidates whose leakage is asked: with few states, and with so many that no scale is moved afterwards.
_LEADING, _FEW_LEADING = 4, 2
# With many states candidates are not asked whose error is expected to be so many times that of the first.
_FAR_OFF = 1.1
# Leakages that may be asked to move the scales of the best: so many over the fourth power of the states.
_WORK = 2e4
MOST_ASKED = 54  # and no more than this
_FIRST_STEP, _LAST_STEP = 0.24, 0.01  # by how much, in nats, a scale is moved


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """Counts to measure, with the scales of their noise and the error that they are expected to lead to."""

    rows: Whole
    scales: Vector
    error: float


def proposals(
    taken_of: Callable[[Whole], Mask | None],
    responses: list[Matrix],
    leakage: Callable[[Whole, Vector], float],
    epsilon: float,
    power: float,
    *,
    move: bool = True,
) -> Iterator[Proposal]:
    """Yield the leading candidates, the one with the least error first.

    ``taken_of`` says which measurements are summed in each output, None where outputs do not follow; ``responses`` are
    mean shifts D, ``leakage`` is the certified one for rows and scales, ``power`` as in :func:`best_scales`. Scales do
    not ``move`` afterwards where the leakage is linear, as here.
    """
    k = len(responses[0])
    candidates: list[tuple[Proposal, Mask]] = []
    alone = best_scales(shifts_of(responses, bins(k)), np.eye(k, dtype=np.bool_), power)
    for rows, start in _candidates(k, alone):
        taken = taken_of(rows)
        if taken is None:
            continue
        scales = best_scales(shifts_of(responses, rows), taken, power, start) / epsilon
        candidates.append((Proposal(rows, scales, _norm(scales, taken, power)), taken))
    candidates.sort(key=lambda candidate: candidate[0].error)
    asked = int(min(_WORK / k**4, MOST_ASKED)) if move else 0
    asked = asked if asked > 2 * k else 0
    if asked:
        candidates = candidates[:_LEADING]
    else:  # each takes long
        candidates = [
            candidate
            for candidate in candidates[:_FEW_LEADING]
            if candidate[0].error <= _FAR_OFF * candidates[0][0].error
        ]
    leading = [_Search(proposal, taken, leakage, epsilon, power) for proposal, taken in candidates]
    leading = sorted((search for search in leading if search.error < math.inf), key=lambda search: search.error)
    if leading:
        leading[0].move(asked)
    yield from (search.proposal for search in leading)


def _candidates(k: int, alone: Vector) -> Iterator[tuple[Whole, Vector | None]]:
    """Yield sets of counts, with scales to begin with."""
    yield bins(k), alone
    if k <= _ALL_TREES:
        yield from ((rows, None) for rows in all_trees(k))
    else:
        for middle in range(k):
            yield star(k, middle), np.delete(alone, middle)
        yield prefixes(k), None
    yield split(k, lambda first, last: (first + last) // 2), None


def _norm(scales: Vector, taken: Mask, power: float) -> float:
    errors = errors_of(scales, taken)[0]
    largest = float(errors.max())
    return largest * float(np.sum((errors / largest) ** power)) ** (1 / power)


class _Search:
    """A proposal whose scales are moved to where they leak about epsilon, and then towards less error."""

    def __init__(
        self, start: Proposal, taken: Mask, leakage: Callable[[Whole, Vector], float], epsilon: float, power: float
    ) -> None:
        self._rows, self._taken, self._leakage = start.rows, taken, leakage
        self._epsilon, self._power = epsilon, power
        self.error, self._scales = self._tried(start.scales)

    @property
    def proposal(self) -> Proposal:
        """What was found so far."""
        return Proposal(self._rows, self._scales, self.error)

    def move(self, asked: int) -> None:
        """Move scales, one or two at a time, while the leakage may be asked so often."""
        self.error, self._scales = self._tried(self._scales)  # once more, nearer to where the leakage is epsilon
        step, ways = _FIRST_STEP, _ways(len(self._scales))
        while asked >= len(ways) and step > _LAST_STEP:
            before = self.error
            for way in ways:
                asked -= 1
                there, to = self._tried(self._scales * np.exp(step * way))
                if there < self.error:
                    self.error, self._scales = there, to
            step = step if self.error < before else step / 2

    def _tried(self, scales: Vector) -> tuple[float, Vector]:
        """Return the error of these scales times what brings their leakage to epsilon."""
        times = self._leakage(self._rows, scales) / self._epsilon
        if not 0 < times < math.inf:
            return math.inf, scales
        return times * _norm(scales, self._taken, self._power), scales * times


def _ways(m: int) -> Matrix:
    """Return directions to move m scales: one up or down, or two apart."""
    one = np.eye(m)
    apart = [one[i] - one[j] for i in range(m) for j in range(m) if i != j] if m <= _ALL_TREES else []
    return np.array([*one, *-one, *apart])
