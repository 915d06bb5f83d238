r"""Classes Θ of Markov chains that are continua, described by bounds instead of a list of chains.

:class:`BinaryChainInterval` is the class of the paper's synthetic experiment (Section 5.2): one transition matrix of
two states, fixed over time, its two probabilities of staying anywhere in an interval. :class:`IntervalChain` is an
imprecise Markov chain (Hartfiel, *Markov Set-Chains*, 1998): any number of states, every entry of the transition
matrix between two bounds, and the matrix free to change from step to step. Of a :class:`ForgettingClass` only one thing
is known: how much of the present is forgotten, and how soon.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._base.checked import is_list, one_of, probabilities, real_that, whole_number
from pufferfish._base.frozen import read_only
from pufferfish._base.view import View, counted
from pufferfish._core.propagation.forgetting import Forgets
from pufferfish._draw.chart import Line, Lines, Picture, from_to
from pufferfish.errors import ModelError, shortened
from pufferfish.theta.chain_class import STATED, Continuum
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.shown import law_in_words, mean_dwell_times, states_in_words, transitions
from pufferfish.theta.states import check_number_of_states, listed_labels, state_names, states_by_labels

_LEAST = 1e-9  # probabilities nearer to 0 or 1 are as good as certain, and bounds on them lose their digits


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
    witnesses: ClassVar[tuple[str, ...]] = ("quilt", "propagation", "influence-matrix", "coupling", "law", "stretch")
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
    return real_that(lambda number: 0 <= number <= 1, value, name, "a probability such as 0.3", ModelError)


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


_TOLERANCE = 1e-9  # how far the bounds of a row may miss 1, for matrices that were rounded when they were written


# -- Processes that forget ---------------------------------------------------------------------------------------------


_MOST_STEPS = 2**62
_MOST_JUMPS = 2000  # times that one stated overlap is repeated along the line of what follows
_RARE = 0.02  # probability of the other states in some members, which come nearest to what the class allows


@dataclass(frozen=True)
class ForgettingClass(Continuum):
    """Every Markov process on some states that forgets: whatever the state now, later habits overlap.

    The transition probabilities may be any, may change at every step, and the first record may have any law. Take any
    two states x and x' that the record of any one time can have: the laws of the record ``steps`` later, given x and
    given x', share at least ``overlap`` of their probability; and so of the record ``steps`` earlier. See
    docs/forgetting.md, and docs/proofs/forgetting.md for the bound.

    Parameters
    ----------
    steps : int, or sequence of int
        After how many steps of the chain the overlap holds, at least 1.
    overlap : float, or sequence of float
        What the two laws share, Σ_y min(P(y | x), P(y | x')), above 0 and at most 1: 1 less their distance in total
        variation. One for each of ``steps``.
    states : sequence
        Names of the states, at least 2. What does not fit is a :class:`ModelError`.
    origin : str
        Where Θ came from, printed with every release.

    Examples
    --------
    "Whatever you did, eight minutes later habits overlap by 43%", one record a minute, three states:

    >>> import pufferfish as pf
    >>> theta = ForgettingClass(steps=8, overlap=0.43, states=["sit", "stand", "walk"])
    >>> calibration = pf.LeakagePropagation(theta, length=10_000).calibrate(pf.Histogram(), epsilon=1.0)
    >>> round(calibration.noise_multiplier, 1)
    42.3
    """

    steps: tuple[int, ...]
    overlap: tuple[float, ...]
    states: tuple[str, ...]  # pyrefly: ignore[bad-override]
    origin: str  # pyrefly: ignore[bad-override]
    kind: ClassVar[str] = "Markov processes that forget"
    outside: ClassVar[str] = (
        "An overlap that was estimated from public data says nothing of people or times that forget more slowly."
    )
    witnesses: ClassVar[tuple[str, ...]] = ("quilt", "forgetting", "stretch")
    in_file: ClassVar[Mapping[str, Any]] = {"steps": list[int], "overlap": list[float]}
    lacks: ClassVar[str | None] = "it needs transition probabilities, but Θ says only how soon a state is forgotten"

    def __init__(self, steps: Any, overlap: Any, states: Any, *, origin: str = STATED) -> None:
        if not isinstance(origin, str):
            raise ModelError(f"origin is {shortened(repr(origin))}, expected text: where Θ came from")
        after = [_steps(value, name) for value, name in _each(steps, "steps")]
        shared = [_overlap(value, name) for value, name in _each(overlap, "overlap")]
        if len(after) != len(shared):
            raise ModelError(f"steps has {len(after)} entries and overlap {len(shared)}, expected one overlap for each")
        if len(set(after)) < len(after):
            raise ModelError(f"steps names {max(after, key=after.count)} twice: give the larger overlap of the two")
        names = listed_labels(states, "states")
        check_number_of_states(names)
        if len(names) < 2:
            raise ModelError(
                f"states has {len(names)} names, expected at least 2: with one state there is nothing to hide"
            )
        pairs = sorted(zip(after, shared, strict=True))
        steps, overlap = (tuple(pair[i] for pair in pairs) for i in (0, 1))
        self._keep(steps=steps, overlap=overlap, states=names, origin=origin)

    def __repr__(self) -> str:
        pairs = f"steps={shortened(repr(self.steps), 60)}, overlap={shortened(repr(self.overlap), 60)}"
        return f"ForgettingClass({pairs}, <{counted(len(self.states), 'state')}>, origin={self.origin!r})"

    @property
    def pairs(self) -> tuple[tuple[int, float], ...]:
        """Numbers of steps with the overlap after them, the shortest first."""
        return tuple(zip(self.steps, self.overlap, strict=True))

    @property
    def forgets(self) -> list[Forgets]:
        """The pairs as the bound takes them: how much of the state may still be known, rounded up."""
        return [Forgets(n, math.nextafter(1 - share, 1.0)) if share < 1 else Forgets(n, 0.0) for n, share in self.pairs]

    @property
    def in_words(self) -> str:
        """What belonging to it means, as releases say it."""
        overlaps = " and ".join(f"{n} steps later by at least {share:g}" for n, share in self.pairs)
        return (
            f"one of Θ: a Markov process on {self.k} states, with any transition probabilities, which may change at "
            f"every step, and any start; the laws of the state, given any two states now, overlap {overlaps}, and as "
            "many steps earlier as well"
        )

    def _view(self) -> View:
        facts = {"states": states_in_words(self.states), "origin": self.origin}
        return View(f"Every Markov process that forgets, {counted(self.k, 'state')}", facts, self._picture().charts)

    def _picture(self) -> Picture:
        steps, shares = np.array(self.steps, dtype=np.float64), np.array(self.overlap)
        until = max(1.5 * float(steps.max()), 3.5 * float(steps.min()))
        jumps = [np.arange(1, min(_MOST_JUMPS, until // n) + 1) * n for n in steps]
        lags = np.unique(np.concatenate([[0.0, until], *jumps]))
        known = _follows(self.pairs, lags)
        lines = Lines(
            caption="Least overlap of the laws given two states, so many steps later or earlier (1: all is forgotten)",
            lines=[
                Line(name="follows: at least", x=lags, low=known, high=known, look="steps"),
                Line(name="stated in Θ: at least", head="overlap", x=steps, low=shares, high=shares, look="points"),
            ],
            label="steps later or earlier",
            value_label="overlap (1: all is forgotten)",
            head="steps",
        )
        note = (
            "Points: the overlaps that Θ states. Line: what follows from each for every Markov process, also in "
            "between. A point below the line adds nothing"
        )
        return Picture(f"How soon {self.k} states are forgotten", [lines], [note])

    @property
    def some_members(self) -> tuple[MarkovChain, ...]:
        """Chains that keep their state with one probability, and else draw it anew: from equal odds, or mostly one."""
        keeps = min((1 - share) ** (1 / n) for n, share in self.pairs) * (1 - 1e-12)
        laws = [np.full(self.k, 1 / self.k)]
        for usual in {0, self.k - 1}:
            law = np.full(self.k, _RARE / (self.k - 1))
            law[usual] = 1 - _RARE
            laws.append(law)
        same = keeps * np.eye(self.k)
        return tuple(MarkovChain(same + (1 - keeps) * law, "stationary", states=self.states) for law in laws)


def _follows(pairs: Iterable[tuple[int, float]], steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the overlap after each number of steps that one of the stated overlaps implies at least.

    n steps m times leave at most (1 − overlap)^m of what is known (docs/proofs/forgetting.md, note 2).

    >>> _follows([(8, 0.5), (20, 0.8)], np.array([7.0, 8.0, 15.0, 16.0, 20.0, 24.0])).tolist()
    [0.0, 0.5, 0.5, 0.75, 0.8, 0.875]
    """
    return np.max([1 - (1 - share) ** np.floor(steps / n) for n, share in pairs], axis=0)


def _each(given: Any, name: str) -> list[tuple[Any, str]]:
    """Return entries with their names for messages; a single one is a list of one."""
    if not is_list(given):
        return [(given, name)]
    entries = [(value, f"{name}[{i}]") for i, value in enumerate(given)]
    if not entries:
        raise ModelError(f"{name} is empty, expected at least one entry")
    return entries


def _steps(value: Any, name: str) -> int:
    try:
        number = whole_number(value)
    except TypeError:
        number = 0
    if not 1 <= number < _MOST_STEPS:
        raise ModelError(f"{name} is {shortened(repr(value))}, expected a whole number of steps such as 8, at least 1")
    return number


def _overlap(value: Any, name: str) -> float:
    expected = "a share such as 0.43, above 0 and at most 1: with overlap 0 nothing is ever forgotten"
    return real_that(lambda number: 0 < number <= 1, value, name, expected, ModelError)
