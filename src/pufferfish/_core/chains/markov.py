"""Algebra of finite Markov chains, with rows = from: supports, powers, stationary laws.

Two habits keep its use for privacy honest. **Supports are structural**: whether a probability is zero is decided by
boolean reachability from the exact zeros of q and P, never by comparing a computed number with 0. A product of tiny
entries underflows, and a zero that is none turns an influence of 46 into 0. **Powers are logarithms** with an error
bound; entries that a double cannot hold are computed by log-sum-exp.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._core import Indices, Mask, Matrix, Vector
from pufferfish._core.numbers.rounding import TINY, UNIT
from pufferfish.errors import ModelError


def log_of(values: Matrix, support: Mask) -> Matrix:
    """Logarithm on a support, −∞ outside of it."""
    logs = np.full(values.shape, -np.inf)
    np.log(values, out=logs, where=support)
    return logs


def log_matmul(a: Matrix, b: Matrix) -> Matrix:
    """Matrix product in logarithms: log(exp(a) @ exp(b)) without leaving the log domain."""
    terms = a[..., :, :, None] + b[..., None, :, :]
    top = np.max(terms, axis=-2)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(terms - shift[..., None, :]), axis=-2)) + shift


def bool_matmul(a: Mask, b: Mask) -> Mask:
    """Boolean matrix product: which pairs are joined by a path."""
    return (a.astype(np.float64) @ b.astype(np.float64)) > 0.5


class LogPowers:
    r"""Logarithms of the powers P^t of a stochastic matrix, kept, with relative errors of :math:`(t-1)\gamma_k`."""

    def __init__(self, transition_matrix: Matrix) -> None:
        support = transition_matrix > 0
        self._k: int = transition_matrix.shape[0]
        self._value: dict[int, Matrix] = {0: np.eye(self._k), 1: transition_matrix}
        self._support: dict[int, Mask] = {0: np.eye(self._k, dtype=np.bool_), 1: support}
        self._log: dict[int, tuple[Matrix, float]] = {}

    def support(self, t: int) -> Mask:
        """Return which entries of P^t are positive, by reachability; shape (k, k)."""
        if t not in self._support:
            self._support[t] = bool_matmul(self.support(t // 2), self.support(t - t // 2))
        return self._support[t]

    def log(self, t: int) -> Matrix:
        """Return log P^t, −∞ exactly at the structural zeros; shape (k, k)."""
        return self._logs(t)[0]

    def log_error(self, t: int) -> float:
        """Return a bound on the absolute error of every finite entry of ``log(t)``."""
        return self._logs(t)[1]

    def _powers(self, t: int) -> Matrix:
        if t not in self._value:
            self._value[t] = self._powers(t // 2) @ self._powers(t - t // 2)
        return self._value[t]

    def _logs(self, t: int) -> tuple[Matrix, float]:
        if t not in self._log:
            value, support = self._powers(t), self.support(t)
            if t < 2 or np.all(value[support] >= TINY):
                logs = log_of(value, support)
                error = UNIT * (t * (self._k + 4) + 2 * _largest(logs))
            else:
                (left, left_error), (right, right_error) = self._logs(t // 2), self._logs(t - t // 2)
                logs = log_matmul(left, right)
                error = left_error + right_error + UNIT * (self._k + 8 + 4 * _largest(logs))
            self._log[t] = logs, error
        return self._log[t]


def _largest(logs: Matrix) -> float:
    """Largest modulus among the finite entries."""
    return float(np.max(np.abs(logs), where=np.isfinite(logs), initial=0.0))


class LogVectorPath:
    """Logarithms of q P^t, step after step, with structural supports; ``moved_on`` leads along a cycle's phases."""

    def __init__(
        self, initial: Matrix, transition_matrix: Matrix, moved_on: Callable[[Any], Any] | None = None
    ) -> None:
        self._p = transition_matrix
        self._moved_on: Callable[[Any], Any] = moved_on or (lambda values: values)
        self._p_support = transition_matrix > 0
        self._log_p = log_of(transition_matrix, self._p_support)
        self.step = 0
        self.support: Mask = initial > 0
        self._value: Matrix | None = initial
        self.log: Matrix = log_of(initial, self.support)
        self._log_domain_error = 0.0

    def advance(self) -> None:
        """Move on by one step."""
        support: Mask = self._moved_on(bool_matmul(self.support[..., None, :], self._p_support)[..., 0, :])
        if self._value is not None:
            value: Matrix = self._moved_on((self._value[..., None, :] @ self._p)[..., 0, :])
            # from here on in logarithms, if a state's mass underflows: it may stay so
            self._value = None if np.any(value[support] < TINY) else value
        if self._value is not None:
            self.log = log_of(self._value, support)
        else:
            self.log = self._moved_on(log_matmul(self.log[..., None, :], self._log_p)[..., 0, :])
            self._log_domain_error += UNIT * 4 * _largest(self.log)
        self.support = support
        self.step += 1

    @property
    def log_error(self) -> float:
        """A bound on the absolute error of every finite entry of ``log``."""
        rows = (self.step + 1) * (self._p.shape[-1] + 8)
        return UNIT * (rows + 4 * _largest(self.log)) + self._log_domain_error


def strong_components(support: Mask) -> list[list[int]]:
    """Communicating classes of a boolean transition matrix, each sorted, in the order of their smallest state."""
    k = support.shape[0]
    reach = support | np.eye(k, dtype=np.bool_)
    for _ in range(max(1, (k - 1).bit_length())):
        reach = bool_matmul(reach, reach)
    both = reach & reach.T
    seen: set[int] = set()
    classes: list[list[int]] = []
    for x in range(k):
        if x not in seen:
            members = [int(y) for y in np.flatnonzero(both[x])]
            seen.update(members)
            classes.append(members)
    return classes


def closed_classes(support: Mask) -> list[list[int]]:
    """Communicating classes that the chain cannot leave; a stationary law lives on these."""
    closed: list[list[int]] = []
    for members in strong_components(support):
        outside = np.ones(support.shape[0], dtype=np.bool_)
        outside[members] = False
        if not support[members][:, outside].any():
            closed.append(members)
    return closed


def period(support: Mask) -> int:
    """Period of an irreducible boolean transition matrix: the gcd of its cycle lengths."""
    depth = {0: 0}
    queue = deque([0])
    gcd = 0
    while queue:
        x = queue.popleft()
        for y in (int(v) for v in np.flatnonzero(support[x])):
            if y in depth:
                gcd = int(np.gcd(gcd, abs(depth[x] + 1 - depth[y])))
            else:
                depth[y] = depth[x] + 1
                queue.append(y)
    return gcd


def closure(support: Mask, possible: Mask) -> Mask:
    """States that can ever be reached from a set of states."""
    while True:
        grown = support | bool_matmul(support[None, :], possible)[0]
        if np.array_equal(grown, support):
            return support
        support = grown


def mixes(p: Matrix, states: Mask) -> bool:
    """Whether the chain restricted to a closed set of states is irreducible and aperiodic."""
    members = np.flatnonzero(states)
    possible = p[np.ix_(members, members)] > 0
    classes = closed_classes(possible)
    return len(classes) == 1 and len(classes[0]) == len(members) and period(possible) == 1


def stationary_law(transition_matrix: Matrix) -> Matrix:
    """Stationary law π = πP of an irreducible chain by the state reduction of Grassmann, Taksar and Heyman (1985).

    It has no subtraction, so every entry is positive and accurate *relative to itself*. A ModelError if a probability
    or an exit rate is below 1e-270.
    """
    a = transition_matrix.astype(np.float64, copy=True)
    k = a.shape[0]
    pi = np.zeros(k)
    pi[0] = 1.0
    possible = a > 0
    accurate = True
    for n in range(k - 1, 0, -1):
        leave = a[n, :n].sum()
        accurate = accurate and leave >= TINY and bool(np.all(a[:n, n][possible[:n, n]] >= TINY))
        if not accurate:
            break
        a[:n, n] /= leave
        a[:n, :n] += np.outer(a[:n, n], a[n, :n])
        possible[:n, :n] |= np.outer(possible[:n, n], possible[n, :n])
        accurate = bool(np.all(a[:n, :n][possible[:n, :n]] >= TINY))
    with np.errstate(over="ignore", invalid="ignore"):
        for n in range(1, k):
            pi[n] = pi[:n] @ a[:n, n]
    with np.errstate(over="ignore", invalid="ignore"):
        pi /= pi.sum()
    if not (accurate and np.all(np.isfinite(pi)) and np.min(pi) >= TINY):
        raise ModelError(
            "the stationary distribution has a probability below 1e-270, too small to compute accurately; "
            "merge states that are all but impossible, or give initial_distribution as an array"
        )
    return pi


def stationary_log_error(k: int) -> float:
    """Return a bound on the absolute error of the logarithm of every entry of :func:`stationary_law`."""
    return UNIT * (k**3 + 8 * k + 8)


# -- Chains whose matrix is another one at every phase of a cycle ----------------------------------------------------

# P_φ is the matrix of the step from a record at phase φ to the next one, at phase φ + 1; arrays of a cycle have its
# phases as their first axis. The periodic law π_φ is that at phase φ of a chain that has run for ever.


def moved_on(values: Any) -> Any:
    """Return at every phase what stood at the phase before it."""
    return np.roll(values, 1, axis=0)


def least_cycle(which: Indices) -> Indices:
    """Return the shortest cycle that a cycle of numbers repeats."""
    n = len(which)
    for length in range(1, n + 1):
        if n % length == 0 and np.array_equal(which, np.tile(which[:length], n // length)):
            return which[:length]
    return which


def one_period(matrices: Matrix) -> tuple[Matrix, Mask]:
    """Return the product of a cycle's matrices, from phase 0 round to phase 0, and which entries are positive."""
    product, support = matrices[0], matrices[0] > 0
    for matrix in matrices[1:]:
        product, support = product @ matrix, bool_matmul(support, matrix > 0)
        if np.any(product[support] < TINY):
            raise ModelError(
                "the transition probabilities over one period of the clock have one below 1e-270, too small to compute "
                'with: smooth the matrices (fit with a smoothing), or give initial_distribution="any"'
            )
    return product, support


def period_mixes(matrices: Matrix, support: Mask) -> bool:
    """Whether one period, from phase 0, forgets its start on states that it cannot leave."""
    possible = matrices[0] > 0
    for matrix in matrices[1:]:
        possible = bool_matmul(possible, matrix > 0)
    return mixes(possible.astype(np.float64), support[0])


def periodic_law(matrices: Matrix, within: Mask | None = None) -> tuple[Matrix, Mask, float]:
    r"""Return the periodic law of a cycle, where it is positive, and a bound on the error of its logarithms; (N, k).

    ``within`` are the states at phase 0 that the chain cannot leave, by default all. By the matrix-tree theorem a
    stationary probability is a ratio of sums of products of k − 1 entries of the product of N matrices, each good to
    :math:`N \gamma_k`. A ModelError if there are several laws, or a probability is too small to compute accurately.
    """
    phases, k = len(matrices), int(matrices.shape[-1])
    product, possible = one_period(matrices)
    states: Indices = np.arange(k) if within is None else np.flatnonzero(within)
    classes = closed_classes(possible[np.ix_(states, states)])
    if len(classes) > 1:
        raise ModelError(
            "the matrices have several periodic laws: over one period of the clock the chain never leaves states "
            f"{_few(states[classes[0]])} nor {_few(states[classes[1]])}"
        )
    members = states[classes[0]]
    law, support = np.zeros((phases, k)), np.zeros((phases, k), dtype=np.bool_)
    law[0, members], support[0, members] = stationary_law(product[np.ix_(members, members)]), True
    for phase in range(phases - 1):
        law[phase + 1] = law[phase] @ matrices[phase]
        support[phase + 1] = bool_matmul(support[phase][None, :], matrices[phase] > 0)[0]
    if np.any(law[support] < TINY):
        raise ModelError(
            "the periodic law has a probability below 1e-270, too small to compute accurately; merge states that are "
            "all but impossible, or give initial_distribution as an array"
        )
    rounding = phases * (k + 4) * UNIT
    return law, support, stationary_log_error(k) + 2 * k * rounding + rounding


def _few(states: Indices) -> str:
    return "{" + ", ".join(str(int(x)) for x in states[:4]) + (", …}" if states.size > 4 else "}")


# -- Which states the records of a chain can have --------------------------------------------------------------------

# Stretches of a chain: a number of records, and the states that each of them can have.
Places = list[tuple[int, Mask]]

# Records that are looked at one by one; the later ones are taken to have every state that any of them can have.
_FOLLOWED = 4096


def places_of(start: Mask, possible: Mask, steps: int) -> Places:
    """Return the stretches of a chain of so many records, from its first one's states and the possible transitions."""
    masks: list[Mask] = [start]
    while len(masks) < min(steps, _FOLLOWED):
        after = bool_matmul(masks[-1][None, :], possible)[0]
        if np.array_equal(after, masks[-1]):
            break
        masks.append(after)
    left = steps - len(masks)
    stretches: Places = [(1, states) for states in masks]
    if left:
        stretches.append((left, closure(masks[-1], possible)))
    return stretches


# -- Large linear systems that are given by what their matrix does ---------------------------------------------------


def solve(apply: Callable[[Vector], Vector], right: Vector, *, tolerance: float, most: int) -> Vector:
    """Solve A x = b nearly (GMRES), to a residual that is a share of b, or with ``most`` products with A."""
    size = float(np.linalg.norm(right))
    if not 0 < size < np.inf:
        return right.copy()
    basis = np.empty((min(most, right.size) + 1, right.size))
    basis[0] = right / size
    # the matrix on the basis, turned into a triangle as it grows: what is left of b then shows without solving
    triangle = np.zeros((len(basis) - 1, len(basis) - 1))
    turns = np.zeros((len(basis) - 1, 2))
    goal = np.zeros(len(basis))
    goal[0], solved = size, 0
    for n in range(len(basis) - 1):
        following = apply(basis[n])
        if not np.isfinite(following).all():
            break
        column = np.zeros(n + 2)
        for _ in range(2):  # twice: once leaves what rounding makes of a small rest
            along = basis[: n + 1] @ following
            following = following - along @ basis[: n + 1]
            column[: n + 1] += along
        rest = column[n + 1] = float(np.linalg.norm(following))
        above = column.tolist()
        for i, (cosine, sine) in enumerate(turns[:n].tolist()):
            above[i], above[i + 1] = cosine * above[i] + sine * above[i + 1], cosine * above[i + 1] - sine * above[i]
        length = math.hypot(above[n], above[n + 1])
        if not length > 0:  # nothing new
            break
        turns[n] = cosine, sine = above[n] / length, above[n + 1] / length
        triangle[:n, n], triangle[n, n] = above[:n], length
        goal[n], goal[n + 1], solved = cosine * goal[n], -sine * goal[n], n + 1
        if not rest > 0 or not abs(goal[n + 1]) > tolerance * size:
            break
        basis[n + 1] = following / rest
    if not solved:
        return right.copy()
    shares = np.linalg.solve(triangle[:solved, :solved], goal[:solved])
    return np.asarray(shares @ basis[:solved])


# -- Counts completed to transition matrices --------------------------------------------------------------------------


def spread(counts: NDArray[np.number]) -> Matrix:
    """Return the laws q by which rows of counts are completed, one for each state; no entry is 0.

    A row of which few transitions were seen stays as often as all rows together do, and leaves for the states as all
    others enter them. One count for each *cell* would stay with probability 1/k: then a row of few transitions forgets
    where it was, and the noise is too small.

    Examples
    --------
    >>> spread(np.array([[6, 1, 0], [1, 0, 0], [0, 0, 0]])).round(3).tolist()
    [[0.722, 0.222, 0.056], [0.222, 0.722, 0.056], [0.139, 0.139, 0.722]]
    """
    k = counts.shape[0]
    if k == 1:
        return np.ones((1, 1))
    entered = counts.sum(axis=0) - counts.diagonal()
    stay = (counts.trace() + 0.5) / (counts.sum() + 1)
    law = np.tile((entered + 1 / k) / (entered.sum() + 1), (k, 1))
    np.fill_diagonal(law, 0)
    law *= (1 - stay) / law.sum(axis=1, keepdims=True)
    np.fill_diagonal(law, stay)
    return law


def completed(counts: NDArray[np.number], weight: float, towards: Matrix) -> Matrix:
    """Return rows of counts as laws, so many transitions of other laws added to each; rows of nothing stay 0."""
    added = counts + weight * towards
    totals = added.sum(axis=-1, keepdims=True)
    return np.divide(added, totals, out=np.zeros_like(added), where=totals > 0)


def smoothed(counts: NDArray[np.number], weight: float) -> Matrix:
    """Return the transition matrix of counts, so many transitions of the laws of :func:`spread` added to every row."""
    return completed(counts, weight, spread(counts))
