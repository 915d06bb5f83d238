r"""How much a Laplace release of numbers of steps certainly leaks: sign tilts of the transition matrix.

Far out in the direction of a sign vector s, the density of Lap(b) noise on such numbers is proportional to the product
over steps of e^{s_j/b}, where j is the output in which the step counts, and 1 where it counts in none. So the tilted
means of :mod:`pufferfish.core.propagation.lower_bound` have a tilted matrix in the place of tilted states.
"""

import itertools
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish.core.chains.markov import stationary_law, strong_components
from pufferfish.core.propagation.lower_bound import EDGE, HORIZON, Powers, Signs, TiltedChain, scaled, spread, visits

__all__ = ["TiltedSteps"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


class TiltedSteps(TiltedChain):
    """What sign tilts of a release of numbers of steps of one chain tell.

    Parameters
    ----------
    transition_matrix : (k, k) ndarray
        P, rows = from.
    initial : (k,) ndarray, "stationary" or "any"
        The initial law; for "any", a number of laws are tried.
    outputs : (k, k) ndarray of int
        The output in which a step counts, −1 for none.
    records : int
        Records next to each other that the release reads.
    """

    def __init__(
        self,
        transition_matrix: Matrix,
        initial: Vector | Literal["stationary", "any"],
        outputs: NDArray[np.int64],
        records: int,
    ) -> None:
        counted = outputs.ravel()
        weights = (np.arange(int(counted.max()) + 1)[:, None] == counted).astype(np.int64)
        super().__init__(transition_matrix, initial, weights, records)

    def candidates(self) -> Signs:
        """Return sign vectors worth trying: all of them, or those that are best where noise is large; shape (n, m)."""
        m, p, k = self._weights.shape[0], self._p, self._p.shape[0]
        if self.all_signs:
            return np.array(list(itertools.product((1.0, -1.0), repeat=m)))
        steps = min(self._records, 4 * HORIZON)
        told = visits(p, steps)[:, :, None] * p  # how often each step follows in the mean, from each state
        if len(strong_components(p > 0)) == 1:
            pi = stationary_law(p)
            back = p.T * pi[None, :] / pi[:, None]
            told = told + (visits(back, steps)[:, :, None] * back).transpose(0, 2, 1)
        x, x_ = np.nonzero(~np.eye(k, dtype=np.bool_))
        apart = (told[x] - told[x_]).reshape(len(x), k * k)
        return np.unique(np.where(apart @ self._weights.T >= 0, 1.0, -1.0), axis=0)

    def _seen_from_the_middle(self, signs: Signs, scale: float) -> Vector:
        """Return about what each tilt tells about a record in the middle: with the records near it only."""
        kernels = self._kernels(signs @ self._weights / scale)
        law = self._starts[:1]
        future, past = np.ones(kernels.shape[:2]), np.repeat(law, len(kernels), axis=0)
        for _ in range(min(self._records // 2, HORIZON)):
            future = scaled(np.matmul(kernels, future[:, :, None])[:, :, 0])
            past = scaled(np.matmul(past[:, None, :], kernels)[:, 0, :])
            law = law @ self._p
        return spread(np.zeros_like(future), future, past, law)

    def _losses(self, tilts: Matrix, law: Matrix) -> Vector:
        """Largest loss over the records looked at, of each tilt (n, k²) under one initial law each (n, k)."""
        p, kernels, records = self._p, self._kernels(tilts), self._records
        near = records if records <= 2 * EDGE else EDGE
        powers, none = Powers(kernels), np.zeros_like(law)
        past, places = law, list[tuple[Matrix, Matrix]]()
        for _ in range(near):
            places.append((past, law))
            past, law = scaled(np.matmul(past[:, None, :], kernels)[:, 0, :]), law @ p
        future = powers.from_right(np.ones_like(law), records - near)
        best = np.full(len(law), -np.inf)
        for past, law in reversed(places):
            best = np.maximum(best, spread(none, future, past, law))
            future = scaled(np.matmul(kernels, future[:, :, None])[:, :, 0])
        if near < records:
            middle = records // 2
            future = powers.from_right(np.ones_like(law), records - 1 - middle)
            past = powers.from_left(places[0][0], middle)
            law = Powers(p[None]).from_left(places[0][1], middle)
            best = np.maximum(best, spread(none, future, past, law))
        return best

    def _kernels(self, tilts: Matrix) -> NDArray[np.float64]:
        """Return the tilted matrix of each tilt, but for a common factor, which cancels."""
        factors = np.exp(tilts - tilts.max(axis=1, keepdims=True))
        return factors.reshape(-1, *self._p.shape) * self._p
