r"""Max-divergence: the largest log ratio of two laws, and of two Markov chains on whole sequences.

The log ratio of the probabilities of one sequence under two chains is a sum along a path, of :math:`w = \log q_a/q_b`
and :math:`W = \log P_a/P_b`. Given that record i is in a set A of states,

.. math:: D_\infty(a|s \,\|\, b|s) = \max_{y\in A}\,[F_i(y) + B_i(y)] + \log\frac{P_b(X_i\in A)}{P_a(X_i\in A)},

with the largest sums F_i(y) of a path that ends in y at i, and B_i(y) of one that starts there (Viterbi's algorithm;
docs/proofs/robustness.md). −∞ (where a has a zero) and +∞ (where only b has one) come from the exact zeros of q and P
alone, with −∞ + ∞ = −∞. The recursions, less their largest entry, soon repeat themselves bit by bit, and so do the
marginals: the rest is known without computing it. A max-plus step moves no two vectors further apart, so the errors of
the steps add.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pufferfish._base.checked import probabilities
from pufferfish._base.progress import report_progress
from pufferfish._core import Array, Whole
from pufferfish._core.numbers.compiled import Loops
from pufferfish._core.numbers.rounding import TINY, UNIT, log_up, up
from pufferfish._core.numbers.wide import Wide
from pufferfish.errors import ModelError

_AT_ONCE = 2**22  # differences held at a time, some 32 megabytes
_MANY = 10**8  # differences from which on compiled loops pay for being loaded


def max_divergence(p: ArrayLike, q: ArrayLike) -> float:
    r"""Max-divergence :math:`D_\infty(p\|q) = \max_{y: p(y)>0} \log p(y)/q(y)` of two laws on the same points.

    Parameters
    ----------
    p, q : array_like, shape (m,)
        Non-negative masses, each summing to 1 (tolerance 1e-9).

    Returns
    -------
    float
        The divergence in nats, ``inf`` where p has mass and q has none; rounded up by a few ulps, never below 0. It
        holds for the masses as they are given, and for the laws that they are after division by their sums: where
        these differ, for the larger of the two.

    Raises
    ------
    ModelError
        If the laws differ in length, or one is not a probability distribution.

    References
    ----------
    Song, Wang, Chaudhuri (2017), Section 2.3 (guarantee against close adversaries).

    Examples
    --------
    >>> round(max_divergence([1/3, 1/2, 1/6], [1/2, 1/4, 1/4]), 6)
    0.693147
    """
    p_, q_ = _law(p, "p"), _law(q, "q")
    if p_.shape != q_.shape:
        raise ModelError(f"p has {p_.size} points and q has {q_.size}: both laws need the same points")
    mass = p_ > 0
    if np.any(q_[mass] == 0):
        return float("inf")
    logs = np.log(p_[mass]) - np.log(q_[mass])
    slack = 4 * UNIT * (2 + float(np.max(np.abs(np.log(q_[mass])))))
    # Divided by their sums, all ratios grow by the one factor sum(q)/sum(p), which may be below 1.
    missing = max(0.0, log_up(_sum(q_) / _sum(p_)))
    return max(0.0, up(float(np.max(logs)) + slack + missing))


def _sum(law: Array) -> Fraction:
    return sum(map(Fraction, law.tolist()), Fraction(0))


def _law(masses: Any, name: str) -> Array:
    law = probabilities(masses, name)
    if law.ndim != 1 or law.size == 0:
        raise ModelError(f"{name} has shape {law.shape}, expected one dimension with at least one mass")
    if not np.all(np.isfinite(law)) or np.any(law < 0):
        bad = int(np.flatnonzero(~(np.isfinite(law) & (law >= 0)))[0])
        raise ModelError(f"{name}[{bad}] is {law[bad]}, expected a probability between 0 and 1")
    if abs(float(law.sum()) - 1) > 1e-9:
        raise ModelError(f"{name} sums to {law.sum():.12g}, expected 1 (tolerance 1e-9)")
    return law


def max_log_ratio(log_rows: Array) -> Array:
    """Largest log ratio of every pair of rows of logarithms: +∞ where only x' has a zero, −∞ where x is all zeros."""
    k = log_rows.shape[0]
    ratios = np.empty((k, k))
    if np.any(np.isnan(log_rows)):  # not a logarithm: fail closed
        return np.full((k, k), np.inf)
    if k * log_rows.size >= _MANY:
        _LOOPS.compiled.log_ratios(np.ascontiguousarray(log_rows), np.ascontiguousarray(log_rows.T), ratios)
        return ratios
    finite = bool(np.all(np.isfinite(log_rows)))
    rows = max(1, _AT_ONCE // max(log_rows.size, 1))
    for first in range(0, k, rows):
        block = log_rows[first : first + rows, None, :]
        with np.errstate(invalid="ignore"):
            differences = block - log_rows[None, :, :]
        if not finite:
            differences[np.isnan(differences)] = -np.inf  # 0/0: the column is outside the support of both
        np.max(differences, axis=2, out=ratios[first : first + rows])
    return ratios


def log_ratios(rows: Any, columns: Any, ratios: Any) -> None:
    """Fill in the largest log ratios; ``columns`` is the transpose, so that the innermost loop is over rows."""
    for x in range(rows.shape[0]):
        best = ratios[x]
        best[:] = -np.inf
        for y in range(rows.shape[1]):
            here, column = rows[x, y], columns[y]
            for x_ in range(rows.shape[0]):
                difference = here - column[x_]
                if difference > best[x_]:
                    best[x_] = difference


_LOOPS = Loops(log_ratios)


# -- Whole sequences of two Markov chains -----------------------------------------------------------------------------

States = Sequence[Sequence[int]]

_BLOCK = 8192  # records looked at together
_TOGETHER = 128  # steps whose masses are turned into ratios together
# Bounds that differ by less, relative to themselves, are taken to decide equally: the first is named.
_TIE = 1e-12
_NEWS = 8192  # steps between two reports of progress


def log_ratio(a: Array, b: Array) -> tuple[Array, float]:
    """Return log a/b of non-negative numbers, and a bound on the absolute error of its finite entries.

    −∞ where a is 0, whatever b is; +∞ where only b is 0. Ratios near 1 are accurate relative to their own logarithm.

    Examples
    --------
    >>> log_ratio(np.array([0.5, 0.0, 0.5, 0.0]), np.array([0.25, 0.5, 0.0, 0.0]))[0].round(4)
    array([0.6931,   -inf,    inf,   -inf])
    """
    logs = np.where(a > 0, np.inf, -np.inf)
    both = (a > 0) & (b > 0)
    x, y = a[both], b[both]
    near = (x <= 2 * y) & (y <= 2 * x)  # then x − y is exact
    log_x, log_y = np.log(x), np.log(y)
    ratios = log_x - log_y
    ratios[near] = np.log1p((x[near] - y[near]) / y[near])
    logs[both] = ratios
    errors = np.where(near, 4 * np.abs(ratios), 2 * (np.abs(log_x) + np.abs(log_y)))
    return logs, UNIT * float(errors.max(initial=0.0))


class _Repetition:
    """Notices that a vector has come back: compares with one kept from longer and longer ago (Brent's method)."""

    def __init__(self) -> None:
        self._kept: bytes = b""
        self._at, self._power = -1, 1

    def period(self, step: int, key: bytes) -> int:
        """Return how many steps ago this very vector was kept; 0 if it was not."""
        if self._at >= 0 and key == self._kept:
            return step - self._at
        if self._at < 0 or step - self._at == self._power:
            self._power *= 1 if self._at < 0 else 2
            self._kept, self._at = key, step
        return 0


class _Settling:
    """A sequence of arrays of which the first are kept, and the last ``period`` of those repeat for ever."""

    def __init__(self, arrays: list[Array], period: int) -> None:
        self.arrays = np.array(arrays)
        self.kept, self.period = len(arrays), period

    def place(self, steps: Whole) -> tuple[Whole, Whole]:
        """Return where the arrays of some steps are kept, and how many periods later they are meant."""
        if not self.period:
            return steps, np.zeros_like(steps)
        rounds = np.maximum(0, -(-(steps - self.kept + 1) // self.period))
        return steps - rounds * self.period, rounds


class MaxPlusPath:
    r"""The vectors v, v⊗W, v⊗W⊗W, …, ``count`` of them, where :math:`(v⊗W)(y) = \max_x v(x) + W(x, y)` and −∞ + ∞ = −∞.

    ``weight_error`` and ``first_error`` bound the absolute errors of the finite entries of W and v.

    Examples
    --------
    >>> path = MaxPlusPath(np.zeros(2), np.array([[0.0, 1.0], [2.0, 0.0]]), 1001)
    >>> path.at(np.array([1, 2, 1000]))
    array([[2.0e+00, 1.0e+00],
           [3.0e+00, 3.0e+00],
           [1.5e+03, 1.5e+03]])
    """

    def __init__(
        self, first: Array, weights: Array, count: int, weight_error: float = 0.0, first_error: float = 0.0
    ) -> None:
        mixed = bool(np.any(weights == np.inf) or np.any(first == np.inf))
        vector, top = _less_top(first, mixed)
        vectors, tops, period, seen = [vector], [top], 0, _Repetition()
        with np.errstate(invalid="ignore"):  # −∞ + ∞, which fmax passes over
            for step in range(1, count):
                if not step % _NEWS:
                    report_progress("following the paths", step / count)
                terms = vector[:, None] + weights
                raw = np.fmax.reduce(terms, axis=0, initial=-np.inf) if mixed else terms.max(axis=0)
                vector, top = _less_top(raw, mixed)
                period = seen.period(step, vector.tobytes())
                tops.append(top)
                if period:
                    break
                vectors.append(vector)
        self._path = _Settling(vectors, period)
        self._offsets: Array = np.cumsum(tops)
        self._drift = math.fsum(tops[-period:]) if period else 0.0
        self.error: float = first_error + self._error(tops, count, weight_error)

    def _error(self, tops: list[float], count: int, weight_error: float) -> float:
        """Bound the absolute error of every finite entry of every vector."""
        period = self._path.period
        spread = float(np.abs(self._path.arrays).max(where=np.isfinite(self._path.arrays), initial=0.0))
        way = math.fsum(abs(top) for top in tops)
        if period:
            way += (count / period) * math.fsum(abs(top) for top in tops[-period:])
        largest = max(abs(top) for top in tops)
        return (count - 1) * (weight_error + UNIT * (2 * spread + largest)) + UNIT * (count + 4) * way

    def at(self, steps: Whole) -> Array:
        """Return the vectors number ``steps`` (0 is v itself), shape (n, k)."""
        place, rounds = self._path.place(steps)
        return self._path.arrays[place] + (self._offsets[place] + rounds * self._drift)[:, None]


def _less_top(vector: Array, mixed: bool) -> tuple[Array, float]:
    """Return a vector less its largest finite entry, and that entry (0 where there is none)."""
    top = float(np.max(vector, where=np.isfinite(vector), initial=-np.inf) if mixed else vector.max())
    return (vector - top, top) if top > -np.inf else (vector, 0.0)


class _Marginals:
    """Rows v, vP, vPP, …, in doubles while these cannot underflow, with a wide exponent where they could."""

    def __init__(self, rows: Array, p: Array) -> None:
        self._p, self._wide_p, self._least = p, Wide.of(p), float(p[p > 0].min())
        self._rows: Array | Wide = rows

    def advance(self) -> None:
        """Move on by one step."""
        rows = self._rows
        if not isinstance(rows, Wide):
            if float(rows.min(where=rows > 0, initial=1.0)) * self._least >= TINY:
                self._rows = rows @ self._p
                return
            rows = Wide.of(rows)
        rows = (rows[:, :, None] * self._wide_p[None]).sum(axis=1)
        small = bool(np.any(rows.levels[rows.positive] < 0))
        self._rows = rows if small else rows.values * rows.positive

    @property
    def key(self) -> bytes:
        """What all later rows depend on."""
        rows = self._rows
        return rows.values.tobytes() + rows.levels.tobytes() if isinstance(rows, Wide) else rows.tobytes()

    def sums(self, sets: States) -> "Array | Wide":
        """Return the mass of some sets of states, shape (n, s)."""
        rows = self._rows
        if isinstance(rows, Wide):
            parts = [rows[:, list(states)].sum(axis=1) for states in sets]
            return Wide(np.stack([w.values for w in parts], 1), np.stack([w.levels for w in parts], 1))
        if all(len(states) == 1 for states in sets):
            return rows[:, [states[0] for states in sets]]
        return np.stack([rows[:, list(states)].sum(axis=1) for states in sets], axis=1)


class Normalisers:
    """Log ratios of the probabilities of ``X_t ∈ A`` under two chains a and b, both ways, for sets A of states.

    Initial laws are (n, k): with several rows the largest ratio over the rows counts. ``start_error`` bounds the
    relative error of the initial laws, of both together.
    """

    def __init__(
        self, starts: tuple[Array, Array], matrices: tuple[Array, Array], count: int, sets: States, start_error: float
    ) -> None:
        a, b = (_Marginals(rows, p) for rows, p in zip(starts, matrices, strict=True))
        ratios, period, seen, error = list[Array](), 0, _Repetition(), 0.0
        waiting: list[tuple[Array, Array]] = []
        for step in range(count):
            if not step % _NEWS:
                report_progress("following the marginals", step / count)
            if step:
                a.advance()
                b.advance()
            period = seen.period(step, a.key + b"/" + b.key)
            if period:
                break
            in_a, in_b = a.sums(sets), b.sums(sets)
            if isinstance(in_a, Wide) or isinstance(in_b, Wide):
                error = max(error, _flush(waiting, ratios))
                wide_ratios, wide_error = _wide_ratios(in_a, in_b)
                ratios.append(wide_ratios)
                error = max(error, wide_error)
            else:
                waiting.append((in_a, in_b))
                error = max(error, _flush(waiting, ratios, least=_TOGETHER))
        error = max(error, _flush(waiting, ratios))
        self._path = _Settling(ratios, period)
        k = matrices[0].shape[0]
        self.error: float = error + start_error + 2 * UNIT * ((count + 1) * (k + 2) + k)

    def at(self, steps: Whole, way: int) -> Array:
        """Return, for way 0, the largest log P_b(X_t ∈ A) / P_a(X_t ∈ A), for way 1 of a over b; shape (n, s)."""
        return self._path.arrays[self._path.place(steps)[0], way]


def _flush(waiting: list[tuple[Array, Array]], ratios: list[Array], least: int = 1) -> float:
    """Turn masses that wait into ratios, many at a time; return the error."""
    if len(waiting) < least:
        return 0.0
    a, b = np.array([in_a for in_a, _ in waiting]), np.array([in_b for _, in_b in waiting])
    (first, first_error), (second, second_error) = log_ratio(b, a), log_ratio(a, b)
    both: Array = np.stack([first.max(axis=1), second.max(axis=1)], axis=1)
    ratios.extend(both)
    waiting.clear()
    return max(first_error, second_error)


def _wide_ratios(a: "Array | Wide", b: "Array | Wide") -> tuple[Array, float]:
    log_a, log_b = (w.log() if isinstance(w, Wide) else Wide.of(w).log() for w in (a, b))
    with np.errstate(invalid="ignore"):
        ways = [np.where(np.isneginf(up), up, up - down) for up, down in ((log_b, log_a), (log_a, log_b))]
    size = sum(float(np.abs(logs).max(where=np.isfinite(logs), initial=0.0)) for logs in (log_a, log_b))
    return np.stack([way.max(axis=0) for way in ways]), 4 * UNIT * (size + 1000)


@dataclass(frozen=True, slots=True, eq=False)
class PathRatio:
    r"""Upper bounds on :math:`D_\infty(a\|b)` of whole sequences, of every length up to one, and given every secret."""

    forward: MaxPlusPath
    backward: MaxPlusPath
    normalisers: Normalisers
    way: int

    def whole(self, length: int) -> float:
        """Return the bound for a sequence of some length when nothing is known of it."""
        total = float(self.forward.at(np.array([length - 1])).max())
        return max(0.0, total + self.forward.error + 4 * UNIT * abs(total))

    def given(self, length: int, steps: Whole, sets: States) -> Array:
        """Return bounds given that record ``steps[n]`` is in ``sets[s]``, (n, s); −∞ where a says it is not."""
        forward, backward = self.forward.at(steps), self.backward.at(length - 1 - steps)
        normaliser = self.normalisers.at(steps, self.way)
        with np.errstate(invalid="ignore"):
            paths = np.where(np.isneginf(forward), forward, forward + backward)
            path = np.stack([paths[:, list(states)].max(axis=1) for states in sets], axis=1)
            total = np.where(np.isfinite(path), path + normaliser, path)
            slack = self.forward.error + self.backward.error + self.normalisers.error
            size = np.abs(forward).max(axis=1, where=np.isfinite(forward), initial=0.0)
            size += np.abs(backward).max(axis=1, where=np.isfinite(backward), initial=0.0)
            rounded = total + slack + 4 * UNIT * (size[:, None] + np.abs(normaliser))
        return np.where(np.isfinite(total), np.maximum(rounded, 0.0), total)

    def worst_given(self, length: int, sets: States) -> tuple[float, int, int]:
        """Return the largest bound over all records and sets, with the record and the number of the set."""
        worst, named, record, states = -math.inf, -math.inf, 0, 0
        for start in range(0, length, _BLOCK):
            steps = np.arange(start, min(start + _BLOCK, length))
            bounds = self.given(length, steps, sets).ravel()
            top = float(bounds.max())
            worst = max(worst, top)
            if top * (1 - _TIE) > named:
                place = int(np.argmax(bounds >= top * (1 - _TIE)))
                named, record, states = top, start + place // len(sets), place % len(sets)
        return worst, record, states


def path_ratios(
    starts: tuple[Array, Array] | None,
    matrices: tuple[Array, Array],
    count: int,
    sets: States,
    start_errors: float = 0.0,
) -> tuple[PathRatio, PathRatio]:
    """Return a over b, and b over a, for sequences of up to ``count`` steps and conditions :math:`X_t ∈ A`.

    ``starts`` are the initial laws of a and b, whose relative errors are ``start_errors`` together; None stands for
    every initial law r, the same on both sides. Then r drops out of the ratio of a sequence's probabilities, and the
    ratio of the normalisers is a mediant of those of the states: the bound is the supremum over r. ``sets`` are the A.
    """
    k = matrices[0].shape[0]
    zero = np.zeros(k)
    if starts is None:
        rows = (np.eye(k), np.eye(k))
    else:
        rows = (starts[0][None, :], starts[1][None, :])
    normalisers = Normalisers(rows, matrices, count, sets, start_errors)
    ways: list[PathRatio] = []
    for way, (numerator, denominator) in enumerate(((0, 1), (1, 0))):
        weights, error = log_ratio(matrices[numerator], matrices[denominator])
        first, first_error = (zero, 0.0) if starts is None else log_ratio(starts[numerator], starts[denominator])
        forward = MaxPlusPath(first, weights, count, error, first_error + start_errors)
        backward = MaxPlusPath(zero, np.ascontiguousarray(weights.T), count, error)
        ways.append(PathRatio(forward, backward, normalisers, way))
    return ways[0], ways[1]
