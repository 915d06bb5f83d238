r"""Classes Θ of Markov chains that are continua: bounds on transition probabilities instead of a list of chains.

:class:`BinaryChainInterval` is the class of the paper's synthetic experiment (Section 5.2): one transition matrix of
two states, fixed over time, its two probabilities of staying anywhere in an interval. :class:`IntervalChain` is an
imprecise Markov chain (Hartfiel, *Markov Set-Chains*, 1998): any number of states, every entry of the transition
matrix between two bounds, and the matrix free to change from step to step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._base.checked import one_of, probabilities, real_number
from pufferfish._base.frozen import read_only
from pufferfish._base.view import View, counted
from pufferfish._draw.chart import Picture, from_to
from pufferfish.errors import ModelError
from pufferfish.theta.chain_class import STATED, Continuum
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.shown import law_in_words, mean_dwell_times, transitions
from pufferfish.theta.states import state_names, states_by_labels

_LEAST = 1e-9
"""Probabilities of staying that are nearer to 0 or 1 are as good as certain, and bounds on them lose their digits."""


@dataclass(frozen=True)
class BinaryChainInterval(Continuum):
    """Every two-state Markov chain whose probabilities of staying, p0 and p1, lie in [low, high] (Section 5.2, [α, β]).

    Parameters
    ----------
    low, high : float
        Bounds on p0 = P(0 → 0) and on p1 = P(1 → 1), at least 1e-9 away from 0 and 1. A chain keeps its matrix over
        time.
    initial_distribution : {"any", "stationary"}, default "any"
        Law of the first record: every law, or each chain's own stationary one.
    states : sequence of two, optional
        Names of the states, by default "0" and "1".
    origin : str
        Where Θ came from, printed with every release.

    Examples
    --------
    >>> theta = BinaryChainInterval(0.3, 0.7)
    >>> theta.states, theta.initial_distribution
    (('0', '1'), 'any')
    """

    low: float
    high: float
    initial_distribution: Literal["any", "stationary"] = field(default="any", kw_only=True)
    states: tuple[str, ...] = field(default=("0", "1"), kw_only=True)  # pyrefly: ignore[bad-override]
    origin: str = field(default=STATED, kw_only=True)  # pyrefly: ignore[bad-override]
    kind: ClassVar[str] = "two-state Markov chains in an interval"
    witnesses: ClassVar[tuple[str, ...]] = (
        "quilt",
        "propagation",
        "influence-matrix",
        "coupling",
        "law",
        "stretch",
    )
    in_file: ClassVar[Mapping[str, Any]] = {
        "low": float,
        "high": float,
        "initial_distribution": Literal["any", "stationary"],
    }

    def __post_init__(self) -> None:
        self._keep(**{name: _probability(name, getattr(self, name)) for name in ("low", "high")})
        if not _LEAST <= self.low <= self.high <= 1 - _LEAST:
            raise ModelError(
                f"low is {self.low:g} and high is {self.high:g}, expected {_LEAST:g} ≤ low ≤ high ≤ 1 − {_LEAST:g}: "
                "bounds on the probability of staying in a state, which is neither 0 nor 1"
            )
        if not one_of(self.initial_distribution, ("any", "stationary")):
            raise ModelError(f'initial_distribution is {self.initial_distribution!r}, expected "any" or "stationary"')
        self._keep(states=state_names(self.states, 2))

    @property
    def in_words(self) -> str:
        """What belonging to it means, as releases say it."""
        zero, one = self.states
        start = "any law" if self.initial_distribution == "any" else "the stationary law"
        return (
            f"one of Θ: a two-state Markov chain that stays in {zero!r} and in {one!r} each with a probability between "
            f"{self.low:g} and {self.high:g}, equal or not, the same at every step, and starts with {start}"
        )

    def _view(self) -> View:
        facts = {
            "states": ", ".join(self.states),
            "probability of staying in a state": from_to(self.low, self.high),
            "first record": law_in_words(self.initial_distribution),
            "origin": self.origin,
        }
        return View("Every Markov chain of 2 states in an interval", facts, self._picture().charts)

    def _picture(self) -> Picture:
        low, high = self.low, self.high
        lower, upper = np.array([[low, 1 - high], [1 - high, low]]), np.array([[high, 1 - low], [1 - low, high]])
        return _between(self.states, lower, upper, "the same at each step")

    @property
    def some_members(self) -> tuple[MarkovChain, ...]:
        """The most and the least persistent chain of the class, for what must hold of every member."""
        return tuple(
            MarkovChain([[stay, 1 - stay], [1 - stay, stay]], self.initial_distribution, states=self.states)
            for stay in dict.fromkeys((self.high, self.low))
        )


@dataclass(frozen=True, eq=False)
class IntervalChain(Continuum):
    """Every sequence of transition matrices between two bounds, under every initial law; else a :class:`ModelError`.

    Time-varying adversaries are included: the matrix of each step is any one between the bounds. So a confidence set
    around an estimated matrix is a usable Θ, even where habits drift inside it.

    Parameters
    ----------
    lower, upper : array_like, shape (k, k)
        Bounds on P(next = y | present = x), row x, column y, in [0, 1]. Every row must leave room for a law: its lower
        bounds sum to at most 1, its upper bounds to at least 1. They are tightened to what some law of the row attains.
    states : sequence, optional
        k distinct names of the states, by default "0", "1", …
    origin : str
        Where Θ came from, printed with every release.

    Examples
    --------
    >>> theta = IntervalChain([[0.85, 0.05], [0.3, 0.5]], [[0.95, 0.15], [0.5, 0.7]], states=["rest", "active"])
    >>> theta.k
    2
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    states: tuple[str, ...] = field(default=(), kw_only=True)  # pyrefly: ignore[bad-override]
    origin: str = field(default=STATED, kw_only=True)  # pyrefly: ignore[bad-override]
    kind: ClassVar[str] = "Markov chains in intervals"
    lacks: ClassVar[str | None] = "it needs one transition matrix, but under Θ the matrix may change at every step"
    outside: ClassVar[str] = (
        "Bounds that were estimated from public data miss the true transition probabilities with the probability that "
        "their confidence leaves, and say nothing of people or times that follow other ones."
    )
    witnesses: ClassVar[tuple[str, ...]] = ("quilt", "propagation", "stretch")
    in_file: ClassVar[Mapping[str, Any]] = {"lower": list[list[float]], "upper": list[list[float]]}
    initial_distribution: ClassVar[Literal["any"]] = "any"

    def __init__(self, lower: ArrayLike, upper: ArrayLike, *, states: Any = None, origin: str = STATED) -> None:
        lo, hi = _matrix("lower", lower), _matrix("upper", upper)
        if lo.shape != hi.shape:
            raise ModelError(f"lower has shape {lo.shape} and upper {hi.shape}, expected one square shape (k, k)")
        for name, bounds in (("lower", lower), ("upper", upper)):
            states = states_by_labels(bounds, states, name)
        named = state_names(states, lo.shape[0])
        lo, hi = _tightened(lo, hi, named)
        self._keep(states=named, origin=origin, lower=read_only(lo), upper=read_only(hi))

    def __repr__(self) -> str:
        return f"IntervalChain(<bounds on {counted(self.k, 'state')}>, origin={self.origin!r})"

    @property
    def in_words(self) -> str:
        """What belonging to it means, as releases say it."""
        return (
            f"one of Θ: a Markov chain of {self.k} states whose transition probabilities lie between the bounds of Θ "
            "at every step, not necessarily the same at each, and which starts with any law"
        )

    def _view(self) -> View:
        facts = {"origin": self.origin, "first record": "any law", "matrices": "any between the bounds, at every step"}
        return View(f"Every Markov chain between two bounds, {counted(self.k, 'state')}", facts, self._picture().charts)

    def _picture(self) -> Picture:
        return _between(self.states, self.lower, self.upper, "free to change at each step")

    @property
    def some_members(self) -> tuple[MarkovChain, ...]:
        """Two chains of the class, for what must hold of every member: the middle one, and the most persistent one."""
        width, same = self.upper - self.lower, np.eye(self.k)
        left = np.maximum(1 - self.lower.sum(axis=1, keepdims=True), 0.0)
        stays = np.minimum(width.diagonal()[:, None], left) * same
        members: list[MarkovChain] = []
        for lower, spread in ((self.lower, width), (self.lower + stays, width * (1 - same))):
            left = np.maximum(1 - lower.sum(axis=1, keepdims=True), 0.0)
            room = spread.sum(axis=1, keepdims=True)
            p = lower + spread * np.divide(left, room, out=np.zeros_like(room), where=room > 0)
            members.append(MarkovChain(p / p.sum(axis=1, keepdims=True), "any", states=self.states))
        return tuple(members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IntervalChain) and (
            (self.states, self.origin) == (other.states, other.origin)
            and np.array_equal(self.lower, other.lower)
            and np.array_equal(self.upper, other.upper)
        )

    def __hash__(self) -> int:
        return hash((self.states, self.lower.tobytes(), self.upper.tobytes()))


def _between(states: tuple[str, ...], lower: NDArray[np.float64], upper: NDArray[np.float64], matrix: str) -> Picture:
    """Return the picture of what lies between two bounds."""
    return Picture(
        f"Bounds on the transition probabilities of {len(states)} states, and on how long states last",
        [
            transitions(states, lower, upper, "Bounds on the transition probabilities"),
            mean_dwell_times(states, lower.diagonal(), upper.diagonal()),
        ],
        [f"Bounds are no estimate: every chain between the bounds is in Θ, its matrix {matrix}"],
    )


def _probability(name: str, value: Any) -> float:
    number = real_number(value)
    if number is None or not 0 <= number <= 1:
        raise ModelError(f"{name} is {value!r}, expected a probability such as 0.3")
    return number


def _matrix(name: str, bounds: ArrayLike) -> NDArray[np.float64]:
    matrix = probabilities(bounds, name)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 2:
        raise ModelError(f"{name} has shape {matrix.shape}, expected (k, k) with at least 2 states")
    wrong = np.argwhere(~((matrix >= 0) & (matrix <= 1)))
    if wrong.size:
        x, y = (int(v) for v in wrong[0])
        raise ModelError(f"{name}[{x}, {y}] is {matrix[x, y]}, expected a probability between 0 and 1")
    return matrix


def _tightened(
    lower: NDArray[np.float64], upper: NDArray[np.float64], states: tuple[str, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds that some law of the row attains, rounded outwards."""
    for x, state in enumerate(states):
        crossed = np.flatnonzero(lower[x] > upper[x])
        if crossed.size:
            y = int(crossed[0])
            raise ModelError(
                f"bounds cross in row {state!r}, column {states[y]!r}: lower {lower[x, y]:g}, upper {upper[x, y]:g}; "
                "each lower bound must be at most its upper bound"
            )
        least, most = float(lower[x].sum()), float(upper[x].sum())
        if least > 1 + _TOLERANCE or most < 1 - _TOLERANCE:
            raise ModelError(
                f"row {state!r} allows no distribution: its lower bounds sum to {least:g} (at most 1) and its upper "
                f"bounds to {most:g} (at least 1)"
            )
    room = 4 * lower.shape[0] * np.finfo(np.float64).eps  # within it a row sums to 1: what was written is read again
    least, most = lower.sum(axis=1, keepdims=True), upper.sum(axis=1, keepdims=True)
    lower = np.where(least > 1 + room, lower / np.maximum(least, 1.0), lower)
    upper = np.where(most < 1 - room, np.minimum(upper / np.minimum(most, 1.0), 1.0), upper)
    others_most = upper.sum(axis=1, keepdims=True) - upper
    others_least = lower.sum(axis=1, keepdims=True) - lower
    lo, hi = 1 - others_most - room, 1 - others_least + room
    lo = np.where(lo > lower + room, lo, lower)  # what is tight already stays as it is
    hi = np.where(hi < upper - room, hi, upper)
    return np.minimum(lo, upper), np.maximum(hi, lower)


_TOLERANCE = 1e-9
"""How far the bounds of a row may miss 1, for matrices that were rounded when they were written."""
