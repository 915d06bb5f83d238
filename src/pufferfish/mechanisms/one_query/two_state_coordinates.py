r"""All two-state chains in one picture: weights of paths that are exponentials of linear functions.

A chain that stays in state 0 with probability p0 and in 1 with p1 gives a path x with f ones, c changes and the ends
y = x_1, z = x_T a probability proportional to

.. math:: \sigma^{c}\, e^{x f}\, e^{h y}\, e^{(\rho - x/2) z}, \qquad \sigma = e^{\zeta/2},

with the field :math:`x = \log(p_1/p_0)`, the coupling :math:`\zeta = \log\frac{(1-p_0)(1-p_1)}{p_0 p_1}`, the end
:math:`\rho = \operatorname{asinh}(e^{-\zeta/2} \sinh(x/2))`, and any h for any initial law, h = ρ − x/2 for the
stationary one: an Ising model. (ζ, x) and (p0, p1) tell each other, and renaming the states is x ↦ −x. So every sum of
such weights over some paths is, in its logarithm, a convex function of the linear coordinates (ζ, x, ρ, h), and the
sums over all paths with n ones depend on x by e^{xn} alone. :mod:`pufferfish.mechanisms.one_query.two_state_cells`
builds bounds on this (docs/proofs/laws.md).
"""

import math
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.compiled import Loops
from pufferfish.mechanisms.one_query import two_state_loops

__all__ = ["LOOPS", "Arrivals", "Paths", "Perron", "Point", "Square"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_KEPT = 30_000_000
"""Numbers in the tables of a path sum up to which they are kept: 240 megabytes."""


LOOPS = Loops(
    two_state_loops.paths,
    two_state_loops.weigh,
    two_state_loops.smooth,
    two_state_loops.cumulate,
    two_state_loops.arrive,
)


@dataclass(frozen=True, slots=True)
class Perron:
    """What a coupling and a field determine.

    Parameters
    ----------
    log_value : float
        Logarithm of the largest eigenvalue of [[1, σe^x], [σ, e^x]].
    end, end_by_field, end_by_coupling : float
        ρ, and its derivatives by x and ζ.
    """

    log_value: float
    end: float
    end_by_field: float
    end_by_coupling: float

    @classmethod
    def of(cls, coupling: float, field: float) -> "Perron":
        """Return them for ζ and x."""
        sinh, cosh, a = math.sinh(field / 2), math.cosh(field / 2), math.exp(-coupling / 2)
        g = a * sinh
        root = math.sqrt(1 + g * g)
        log_value = field / 2 + math.log(cosh + root / a)
        return cls(log_value, math.asinh(g), a * cosh / (2 * root), -g / (2 * root))


@dataclass(frozen=True, slots=True)
class Square:
    """The chains with p0 and p1 between two bounds, and p1 ≥ p0: the others are these with the states renamed."""

    low: float
    high: float

    @property
    def couplings(self) -> tuple[float, float]:
        """Range of ζ."""
        return _outward(2 * _log_odds(self.high), 2 * _log_odds(self.low))

    def most(self, first: float, last: float) -> float:
        """Return the largest field x of a chain with a coupling in a range, rounded up."""
        peak = _log_odds(self.low) + _log_odds(self.high)
        at = min(max(peak, first), last)
        # the larger of the two probabilities is as large as it can be, or the smaller as small
        low, high = self.low, self.high
        if at <= peak:
            low = 1 / (1 + math.exp(at - _log_odds(self.high)))
        else:
            high = 1 / (1 + math.exp(at - _log_odds(self.low)))
        return max(0.0, math.log(high / low)) * (1 + _ROOM) + _ROOM

    def has(self, coupling: float, field: float) -> bool:
        """Whether a chain is in the square."""
        value = Perron.of(coupling, field).log_value
        return self.low <= math.exp(-value) and math.exp(field - value) <= self.high


_ROOM = 1e-13


def _log_odds(p: float) -> float:
    """Return log((1 − p)/p)."""
    return math.log1p(-p) - math.log(p)


def _outward(low: float, high: float) -> tuple[float, float]:
    return low - _ROOM * (1 + abs(low)), high + _ROOM * (1 + abs(high))


@dataclass(frozen=True, slots=True)
class Point:
    """Sums over paths at one coupling and field.

    Parameters
    ----------
    sums : (1 or 3, 1 or 2, 2, r, T + 1) ndarray
        Sums over the paths with n ones and, where asked, their derivatives by x and ζ; by first state where the initial
        law is any, state of the record, record, and n. They are divided by e^scale.
    scale : float
        The logarithm of what the sums were divided by.
    slope : float
        Its derivative by ζ that the derivatives leave out.
    """

    sums: Array
    scale: float
    slope: float


class Paths:
    """Sums over the paths of a number of records.

    Parameters
    ----------
    steps : int
        Number T of records.
    own : bool
        Whether first states are kept apart: for any initial law; else the initial law is the stationary one.
    """

    def __init__(self, steps: int, *, own: bool) -> None:
        self.steps, self.own = steps, own
        self._tables: OrderedDict[tuple[float, bool], tuple[Array, Array]] = OrderedDict()
        self._most = max(8, _KEPT // (8 * steps * (steps + 1)))

    def at(self, coupling: float, field: float, rows: Rows, *, derive: bool) -> Point:
        """Return the sums for some records."""
        table, d_table = self._table(coupling, derive)
        perron = Perron.of(coupling, field)
        changed = max(coupling, 0.0) * (self.steps - 1) / 2  # what the table was divided by
        scale = self.steps * perron.log_value
        end = perron.end - field / 2
        times = np.array([[0, 1], [0, 1]]) if self.own else np.array([[0, 1], [1, 2]])
        d_ends = np.array([times * (perron.end_by_field - 0.5), times * perron.end_by_coupling])
        out = np.zeros((3 if derive else 1, 2 if self.own else 1, 2, len(rows), self.steps + 1))
        LOOPS.compiled.weigh(table, d_table, field, scale - changed, np.exp(times * end), d_ends, self.own, rows, out)
        return Point(out, scale, (self.steps - 1) / 2 if coupling > 0 else 0.0)

    def _table(self, coupling: float, derive: bool) -> tuple[Array, Array]:
        for known in ((coupling, True), (coupling, derive)):
            if known in self._tables:
                self._tables.move_to_end(known)
                return self._tables[known]
        shape = self.steps, 2, 2, self.steps + 1
        table, d_table = np.zeros(shape), np.zeros(shape if derive else (0, *shape[1:]))
        change = math.exp(-abs(coupling) / 2)
        # divided by the larger of the two weights of a step, so that no sum is large
        if coupling <= 0:
            LOOPS.compiled.paths(self.steps, 1.0, change, 0.0, change / 2, table, d_table)
        else:
            LOOPS.compiled.paths(self.steps, change, 1.0, -change / 2, 0.0, table, d_table)
        self._tables[(coupling, derive)] = table, d_table
        while len(self._tables) > self._most:
            self._tables.popitem(last=False)
        return table, d_table


class Arrivals:
    """Sums over the paths up to a record, by their first state: A, with P(X_i = s) ∝ e^{(ρ − x/2)s} Σ_y e^{hy} A_y."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def at(self, coupling: float, field: float) -> tuple[Array, Array]:
        """Return sums, with derivatives by x and ζ, (3, 2, 2, T), and the logarithms of what divided them, (T,)."""
        perron = Perron.of(coupling, field)
        one, change = math.exp(field), math.exp(coupling / 2)
        divided = math.exp(-perron.log_value)
        weights = np.array([[1.0, change * one], [change, one]]) * divided
        by_field = weights * np.array([[0.0, 1.0], [0.0, 1.0]])
        by_coupling = weights * np.array([[0.0, 0.5], [0.5, 0.0]])
        out = np.zeros((3, 2, 2, self._steps))
        LOOPS.compiled.arrive(self._steps, weights, np.array([by_field, by_coupling]), one, out)
        return out, perron.log_value * np.arange(self._steps, dtype=np.float64)
