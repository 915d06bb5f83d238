"""Classes of Markov processes of which only one thing is known: how much of the present is forgotten, and how soon."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import is_list, real_number, whole_number
from pufferfish._base.view import View, counted
from pufferfish._core.propagation.forgetting import Forgets
from pufferfish._draw.chart import Line, Lines, Picture
from pufferfish.errors import ModelError, shortened
from pufferfish.theta.chain_class import STATED, Continuum
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.shown import states_in_words
from pufferfish.theta.states import check_number_of_states, listed_labels

_MOST_STEPS = 2**62

_MOST_JUMPS = 2000
"""Times that one stated overlap is repeated along the line of what follows."""

_RARE = 0.02
"""Probability of the other states in some members, which come nearest to what the class allows."""


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

    Two statements together are a smaller class:

    >>> theta = ForgettingClass(steps=[8, 60], overlap=[0.43, 0.95], states=["sit", "stand", "walk"])
    >>> theta.pairs
    ((8, 0.43), (60, 0.95))
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
    number = real_number(value)
    if number is None or math.isnan(number) or not 0 < number <= 1:
        raise ModelError(
            f"{name} is {shortened(repr(value))}, expected a share such as 0.43, above 0 and at most 1: with overlap 0 "
            "nothing is ever forgotten"
        )
    return number
