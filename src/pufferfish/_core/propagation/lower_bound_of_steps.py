r"""How much a Laplace release of numbers of steps certainly leaks: sign tilts of the transition matrix.

Far out in the direction of a sign vector s, the density of Lap(b) noise on such numbers is proportional to the product
over steps of e^{s_j/b}, where j is the output in which the step counts, and 1 where it counts in none. So the tilted
means of :mod:`pufferfish._core.propagation.lower_bound` have a tilted matrix in the place of tilted states.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.markov import stationary_law, strong_components
from pufferfish._core.propagation.lower_bound import HORIZON, Powers, Signs, TiltedChain, scaled, telling, visits

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

    def _best_where_noise_is_large(self) -> Signs:
        p, k = self._p, self._p.shape[0]
        steps = min(self._records, 4 * HORIZON)
        told = visits(p, steps)[:, :, None] * p  # how often each step follows in the mean, from each state
        if len(strong_components(p > 0)) == 1:
            pi = stationary_law(p)
            back = p.T * pi[None, :] / pi[:, None]
            told = told + (visits(back, steps)[:, :, None] * back).transpose(0, 2, 1)
        x, x_ = np.nonzero(~np.eye(k, dtype=np.bool_))
        apart = (told[x] - told[x_]).reshape(len(x), k * k)
        return telling(apart @ self._weights.T)

    # -- a tilt is a matrix here ----------------------------------------------------------------------------------

    def _factors(self, tilts: Matrix) -> Vector:
        return super()._factors(tilts).reshape(-1, *self._p.shape) * self._p

    def _own(self, tilts: Matrix) -> Matrix:
        return np.zeros((len(tilts), self._p.shape[0]))

    def _on(self, g: Vector, past: NDArray[np.float64]) -> NDArray[np.float64]:
        return scaled(np.matmul(past, g))

    def _back(self, g: Vector, future: Matrix) -> Matrix:
        return scaled(np.matmul(g, future[:, :, None])[:, :, 0])

    def _powers(self, g: Vector) -> tuple[Powers, Powers]:
        powers = Powers(g)
        return powers, powers
