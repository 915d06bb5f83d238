r"""How much a Laplace release certainly leaks: sign tilts, and the least noise that they allow.

Far out in the direction of a sign vector s ∈ {±1}^m, where output j goes to s_j·∞, the density of Lap(b) noise on
W·counts is proportional to the product over records of :math:`g(x_t) = e^{(s^T W)_{x_t}/b}`. So

.. math:: \log \frac{E[\prod_t g(X_t) \mid X_i = x]}{E[\prod_t g(X_t) \mid X_i = x']}

is what outputs in that direction tell about record i: it is no more than the loss of the release, for every s, i, x
and x'. The exact loss never rises with b (Lap(b') for b' > b is Lap(b) plus independent noise), so a scale at which
one tilt exceeds ε is too small, and so is every smaller one. Numbers here are rounded *down*.
"""

import itertools
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pufferfish.core.chains.markov import stationary_law, stationary_log_error, strong_components
from pufferfish.core.numbers.inversion import bracket
from pufferfish.core.numbers.progress import report_progress
from pufferfish.core.numbers.rounding import UNIT

__all__ = ["HORIZON", "Powers", "Signs", "TiltedChain", "scale_too_small", "scaled", "visits"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Signs = NDArray[np.float64]

_ENUMERATED = 10
"""With at most this many outputs all sign vectors are tried."""

_EDGE = 96
"""First records of a long chain that are looked at one by one, beside the middle one."""

HORIZON = 128
"""Records on each side that the search for signs looks at."""

_BATCH = 512

_STARTS, _ROUNDS = 4, 2
"""Sign vectors that the search improves, and how often it looks again at a better scale."""

_SHARES = (1e-9, 1e-3, 0.1, 0.5)
_FEW = 4
"""Under "any", initial laws are mixtures with these shares; of all two corners where there are few states."""

_LEAST = 1e-250
"""Probabilities below this are left out: their logarithms might not be accurate."""


class TiltedChain:
    """What sign tilts of a release of one chain tell.

    Parameters
    ----------
    transition_matrix : (k, k) ndarray
        P, rows = from.
    initial : (k,) ndarray, "stationary" or "any"
        The initial law; for "any", a number of laws are tried.
    weights : (m, k) ndarray
        What a record in each state adds to each output.
    records : int
        Records next to each other that the release reads.
    """

    tolerance = 1e-6

    def __init__(
        self,
        transition_matrix: Matrix,
        initial: Vector | Literal["stationary", "any"],
        weights: NDArray[np.int64],
        records: int,
    ) -> None:
        self._p = transition_matrix
        self._weights = weights.astype(np.float64)
        self._records = records
        self._starts, error = _starts(transition_matrix, initial)
        k = transition_matrix.shape[0]
        self._error = error + 8 * UNIT * (records + 8) * (k + 8)

    @property
    def all_signs(self) -> bool:
        """Whether :meth:`candidates` are all sign vectors there are."""
        return self._weights.shape[0] <= _ENUMERATED

    def candidates(self) -> Signs:
        """Return sign vectors worth trying: all of them, or those that are best where noise is large; shape (n, m)."""
        if self.all_signs:
            return np.array(list(itertools.product((1.0, -1.0), repeat=self._weights.shape[0])))
        return self._best_where_noise_is_large()

    def _best_where_noise_is_large(self) -> Signs:
        told = visits(self._p, min(self._records, 4 * HORIZON))
        if len(strong_components(self._p > 0)) == 1:
            pi = stationary_law(self._p)
            told = told + visits(self._p.T * pi[None, :] / pi[:, None], min(self._records, 4 * HORIZON))
        x, x_ = np.nonzero(~np.eye(self._p.shape[0], dtype=np.bool_))
        return np.unique(np.where((told[x] - told[x_]) @ self._weights.T >= 0, 1.0, -1.0), axis=0)

    def losses(self, signs: Signs, scale: float) -> Vector:
        """Return what each tilt tells at least, under the worst of the initial laws; shape (n,)."""
        tilts, laws = signs @ self._weights / scale, len(self._starts)
        each = max(1, _BATCH // laws)
        found = [
            self._losses(np.repeat(some, laws, axis=0), np.tile(self._starts, (len(some), 1)))
            for some in (tilts[i : i + each] for i in range(0, len(tilts), each))
        ]
        rounding = self._error + 16 * UNIT * (self._records + 8) * np.max(np.abs(tilts), axis=1)
        return np.concatenate(found).reshape(len(signs), laws).max(axis=1) - rounding

    def search(self, signs: Signs, scale: float) -> Signs:
        """Return the best few of many sign vectors, each improved by single flips; as seen from a middle record."""
        told = [self._seen_from_the_middle(signs[i : i + _BATCH], scale) for i in range(0, len(signs), _BATCH)]
        best = signs[np.argsort(-np.concatenate(told), kind="stable")[:_STARTS]]
        return np.unique(np.array([self._climb(each, scale) for each in best]), axis=0)

    def _climb(self, signs: Vector, scale: float) -> Vector:
        told = self._seen_from_the_middle(signs[None, :], scale)[0]
        flips = 1.0 - 2.0 * np.eye(signs.size)
        for _ in range(4 * signs.size):
            tried = flips * signs
            found = self._seen_from_the_middle(tried, scale)
            at = int(np.argmax(found))
            if not found[at] > told + 1e-9 * abs(told):
                break
            signs, told = tried[at], found[at]
        return signs

    def _seen_from_the_middle(self, signs: Signs, scale: float) -> Vector:
        """Return about what each tilt tells about a record in the middle: with the records near it only."""
        tilts = signs @ self._weights / scale
        g, own, law = self._factors(tilts), self._own(tilts), self._starts[:1]
        future, past = np.ones_like(own), np.repeat(law, len(own), axis=0)
        for _ in range(min(self._records // 2, HORIZON)):
            future, past, law = self._back(g, future), self._on(g, past), law @ self._p
        return _spread(own, future, past, law)

    def _losses(self, tilts: Matrix, law: Matrix) -> Vector:
        """Largest loss over the records looked at, of each tilt under one initial law each (n, k)."""
        g, own, records = self._factors(tilts), self._own(tilts), self._records
        near = records if records <= 2 * _EDGE else _EDGE
        far_on, far_back = self._powers(g)
        first, past, nothing = law, law, np.ones_like(law)
        steps: list[tuple[Matrix, Matrix]] = []
        for _ in range(near):
            steps.append((past, law))
            past, law = self._on(g, past), law @ self._p
        future = far_back.from_right(nothing, records - near)
        best = np.full(len(law), -np.inf)
        for past, law in reversed(steps):
            best = np.maximum(best, _spread(own, future, past, law))
            future = self._back(g, future)
        if near < records:
            middle = records // 2
            future = far_back.from_right(nothing, records - 1 - middle)
            past = far_on.from_left(first, middle)
            law = Powers(self._p[None]).from_left(first, middle)
            best = np.maximum(best, _spread(own, future, past, law))
        return best

    # -- what a tilt is: here a factor for the state of each record -----------------------------------------------

    def _factors(self, tilts: Matrix) -> Vector:
        """Return g of each tilt, scaled to a largest entry of 1: a common factor cancels."""
        return np.exp(tilts - tilts.max(axis=1, keepdims=True))

    def _own(self, tilts: Matrix) -> Matrix:
        """Return what each tilt tells about a record by its own state; (n, k)."""
        return tilts

    def _on(self, g: Vector, past: Matrix) -> Matrix:
        """Lead what the past of a record tells to the next record."""
        return scaled((g * past) @ self._p)

    def _back(self, g: Vector, future: Matrix) -> Matrix:
        """Lead what the future of a record tells to the record before."""
        return scaled((g * future) @ self._p.T)

    def _powers(self, g: Vector) -> tuple["Powers", "Powers"]:
        """Return the matrices of both, for many steps at once."""
        return Powers(g[:, :, None] * self._p), Powers(g[:, None, :] * self._p)


def scaled(vectors: Matrix) -> Matrix:
    """Scale each row to a largest entry of 1; what has underflowed stays 0, and is looked at no more."""
    return vectors / np.maximum(vectors.max(axis=1, keepdims=True), _LEAST)


def _spread(tilts: Matrix, future: Matrix, past: Matrix, law: Matrix) -> Vector:
    """Largest difference between two states of what a record, its future and its past tell, per row."""
    known = (future > _LEAST) & (past > _LEAST) & (law > _LEAST)
    safe = [np.log(np.where(known, part, 1.0)) for part in (future, past, law)]
    told = tilts + safe[0] + safe[1] - safe[2]
    highest = np.max(np.where(known, told, -np.inf), axis=1)
    lowest = np.min(np.where(known, told, np.inf), axis=1)
    return np.where(highest >= lowest, highest - lowest, 0.0)


def visits(kernel: Matrix, steps: int) -> Matrix:
    """Return expected visits to each state within some steps, from each state, less what all share; (k, k)."""
    law, found = np.eye(kernel.shape[0]), np.eye(kernel.shape[0])
    for _ in range(steps):
        law = law @ kernel
        found += law - law.mean(axis=0)
    return found


def _starts(p: Matrix, initial: Vector | Literal["stationary", "any"]) -> tuple[Matrix, float]:
    """Return initial laws to try, and the error that their own rounding makes in a loss."""
    k: int = p.shape[0]
    if not isinstance(initial, str):
        return initial[None, :], 0.0
    irreducible = len(strong_components(p > 0)) == 1
    if initial == "stationary":
        return stationary_law(p)[None, :], 4 * stationary_log_error(k)
    even = stationary_law(p) if irreducible else np.full(k, 1 / k)
    laws = [even, np.full(k, 1 / k), *np.eye(k)]
    corners = np.eye(k)
    for share in _SHARES:
        laws.extend((1 - share) * corner + share * even for corner in corners)
        if k <= _FEW:
            laws.extend((1 - share) * a + share * b for a in corners for b in corners if a is not b)
    return np.array(laws), 0.0


class Powers:
    """Powers of a stack of non-negative matrices applied to vectors, each scaled to a largest entry of 1."""

    def __init__(self, matrices: NDArray[np.float64]) -> None:
        self._doubled = [matrices]

    def from_right(self, vectors: Matrix, power: int) -> Matrix:
        """Return M^power v for each matrix and vector, scaled."""
        for matrix in self._factors(power):
            vectors = scaled(np.matmul(matrix, vectors[:, :, None])[:, :, 0])
        return vectors

    def from_left(self, vectors: Matrix, power: int) -> Matrix:
        """Return v M^power, scaled."""
        for matrix in self._factors(power):
            vectors = scaled(np.matmul(vectors[:, None, :], matrix)[:, 0, :])
        return vectors

    def _factors(self, power: int) -> list[NDArray[np.float64]]:
        while 2 ** len(self._doubled) <= power:
            square = self._doubled[-1] @ self._doubled[-1]
            self._doubled.append(square / np.maximum(square.max(axis=(1, 2), keepdims=True), _LEAST))
        return [matrix for bit, matrix in enumerate(self._doubled) if power >> bit & 1]


class Tilted(Protocol):
    """A model and a release of it, of which sign tilts tell something; see :class:`TiltedChain`."""

    @property
    def all_signs(self) -> bool: ...

    @property
    def tolerance(self) -> float:
        """How exactly the scale is sought."""
        ...

    def candidates(self) -> Signs: ...

    def search(self, signs: Signs, scale: float) -> Signs: ...

    def losses(self, signs: Signs, scale: float) -> Vector: ...


def scale_too_small(models: Sequence[Tilted], epsilon: float, start: float) -> float:
    """Largest scale found at which a sign tilt of one of the models exceeds epsilon; 0 where none was found.

    Parameters
    ----------
    models : sequence of TiltedChain or TiltedNetwork
        Members of Θ.
    epsilon : float
        Privacy parameter.
    start : float
        A scale that is about right.
    """
    best = 0.0
    for c, model in enumerate(models):
        report_progress("looking for a lower bound", c / len(models))
        signs = model.candidates()
        for _ in range(1 if model.all_signs else _ROUNDS):
            tried = signs if model.all_signs else model.search(signs, max(best, start))
            found = bracket(
                lambda scale, model=model, tried=tried: float(np.max(model.losses(tried, scale), initial=0.0)),
                epsilon,
                max(best, start),
                tolerance=model.tolerance,
                from_above=True,
            )
            best = max(best, found.too_small)
            start = best or start
    return best
