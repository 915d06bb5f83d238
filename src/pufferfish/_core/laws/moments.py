r"""Bounds on moments of sums along chains, from which tails follow without any normal approximation.

Let S be the sum of f over n observed records of C chains. For every real s, whatever the gaps between records,

.. math:: \log E\,e^{sS} \le C \log E_\pi g + (n - C) \log \sup_{d \ge 1} \|\sqrt g\,P^d \sqrt g\|_\pi,
   \qquad g = e^{sf},

with the norm of L²(π); of steps the same holds with ‖P ∘ e^{sF}‖ for each. A first law whose density towards the
stationary one is at most e^c adds c for each chain. Proofs: ``docs/proofs/released.md``.
"""

from dataclasses import dataclass

import numpy as np

from pufferfish._core import Array, Indices

_MOST_NUMBERS = 20_000_000  # numbers of all matrices together above which moments are bounded, and not computed
_FAR = 64  # steps apart up to which what two records tell of each other is looked at by itself
_RAISED = 1 + 1e-13  # what norms are multiplied by, as they are computed in doubles
_INSIDE = 1 - 1e-9  # moments of noise exist for factors below 1/scale


@dataclass(frozen=True, eq=False)
class Walk:
    """A chain with the same law at all times, or that of a cycle, on states or on what they are seen of.

    ``kernels`` (c, n, n) are the matrices of successive steps, ``laws`` (c, n) the law before each. ``seen`` (n,) is
    the state that each is seen as, ``start`` the logarithm of the largest density of the first law towards these.
    """

    kernels: Array
    laws: Array
    seen: Indices
    start: float

    def of_records(self, f: Array, s: Array) -> tuple[Array, Array]:
        """Return bounds of the first record of a chain, and of each other one, for every s; f is of states."""
        g = np.exp(s[:, None] * f[self.seen])
        first = np.log(np.max(self.laws @ g.T, axis=0))
        forgets = max(float(_norm(kernel - after, law, after)) for kernel, law, after in self._steps)
        forgets = min(forgets * _RAISED, 1.0)
        if len(self.kernels) > 1:
            each = np.max([_leon_perron(law, g, forgets) for law in self.laws], axis=0)
        else:
            each = self._apart(g, forgets)
        return first, np.log(each * _RAISED)

    def of_steps(self, values: Array, s: Array) -> Array:
        """Return bounds of each step, for every s; values are of pairs of states, shape (k, k)."""
        tilts = np.exp(s[:, None, None] * values[np.ix_(self.seen, self.seen)])
        norms = [_norm(kernel * tilts, law, after) for kernel, law, after in self._steps]
        return np.log(np.max(norms, axis=0) * _RAISED)

    def whole(self, records: int, values: Array, s: Array) -> Array | None:
        """Return log E e^{sS} of one chain, values of states (k,) or of steps (k, k); None where that is much work."""
        cycle, size, _ = self.kernels.shape
        if cycle * size**2 * len(s) > _MOST_NUMBERS:
            return None
        tilts = np.exp(s[(slice(None), *[None] * values.ndim)] * values[np.ix_(*[self.seen] * values.ndim)])
        g = tilts if values.ndim == 1 else np.ones((len(s), size))
        # what a chain gains by twice as many steps each time, from every step of the cycle on
        by, by_logs = self.kernels[:, None] * (g[:, :, None] if values.ndim == 1 else tilts), np.zeros((cycle, len(s)))
        gained, logs = np.repeat(g[None], cycle, axis=0), np.zeros((cycle, len(s)))
        left, steps = records - 1, 1
        while left:
            if left % 2:
                gained = (by @ np.roll(gained, -steps, axis=0)[..., None])[..., 0]
                largest = gained.max(axis=2)
                logs = by_logs + np.roll(logs, -steps, axis=0) + np.log(largest)
                gained = gained / largest[:, :, None]
            left //= 2
            by = by @ np.roll(by, -steps, axis=0)
            largest = by.max(axis=(2, 3))
            by_logs = by_logs + np.roll(by_logs, -steps, axis=0) + np.log(largest)
            by, steps = by / largest[:, :, None, None], 2 * steps % cycle
        whole: Array = np.max(np.log(np.sum(self.laws[:, None] * gained, axis=2)) + logs, axis=0)
        return whole

    @property
    def _steps(self) -> list[tuple[Array, Array, Array]]:
        """Each matrix with the law before and the law after it."""
        return list(zip(self.kernels, self.laws, np.roll(self.laws, -1, axis=0), strict=True))

    def _apart(self, g: Array, forgets: float) -> Array:
        """Return a bound on ‖√g P^d √g‖ for all d ≥ 1: of some d by itself, of all others by what is remembered."""
        (law,), (kernel,), root = self.laws, self.kernels, np.sqrt(g)
        power, largest = kernel, np.zeros(len(g))
        for _ in range(_FAR):
            if np.all(_leon_perron(law, g, forgets) <= largest):
                return largest
            largest = np.maximum(largest, _norm(root[:, :, None] * power * root[:, None, :], law, law))
            power = power @ kernel
            forgets = min(forgets, float(_norm(power - law, law, law)) * _RAISED)
        return np.maximum(largest, _leon_perron(law, g, forgets))


def _norm(matrix: Array, law: Array, after: Array) -> Array:
    """Return the norm of a matrix, or of each of several, from L² of the law after a step to that of the law before."""
    return np.linalg.norm(np.sqrt(law)[:, None] * matrix / np.sqrt(after), 2, axis=(-2, -1))


def _leon_perron(law: Array, g: Array, forgets: float) -> Array:
    """Return the largest eigenvalue of √g (Π + σ(1 − Π)) √g for every row of g: no chain that forgets so has more."""
    root = np.sqrt(g)
    along = root * np.sqrt(law)
    matrix = (1 - forgets) * along[:, :, None] * along[:, None, :]
    matrix[:, np.arange(len(law)), np.arange(len(law))] += forgets * g
    return np.asarray(np.linalg.eigvalsh(matrix)[:, -1], dtype=np.float64)


# -- Moments of the noise, of rows, and of steps whose law has bounds -------------------------------------------------


def laplace_log_moments(scales: Array, factors: Array) -> Array:
    """Return log E exp(Σ_j c_j Z_j) of discrete Laplace variables, c (..., m); infinite unless all |c_j| are small."""
    p = np.exp(-1 / np.maximum(scales, 1e-300))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        less = (1 - p * np.exp(factors)) * (1 - p * np.exp(-factors))
        logs = np.where(np.abs(factors) * scales < _INSIDE, 2 * np.log1p(-p) - np.log(less), np.inf)
    return np.sum(logs, axis=-1)


def rate_of(p: float, s: Array) -> Array:
    """Return log(1 − p + p e^s): what a step, or a row, gains that counts with probability p."""
    return np.log1p(p * np.expm1(s))
