"""What is hidden: a record, any so many steps of a chain in a row, a whole series; columns of a row, or all of them.

A :class:`Protection` is a setting of a mechanism, so that calibration, proofs, records and ledgers know of it by that
alone. Nothing of it is about rows: whoever reads a release makes it again from its record.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import is_list, real_number
from pufferfish._base.durations import Duration, format_micros, parse_duration
from pufferfish._base.view import counted
from pufferfish._base.words import did_you_mean, names_of, number
from pufferfish.errors import ParameterError, ReleaseRefused, shortened
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.lengths import MOST_STEPS, ChainLength
from pufferfish.theta.model_class import Described, Theta
from pufferfish.theta.states import intervals_of_states, state_label

SUBJECT, ROW = "subject", "row"  # what protects a whole series, and a whole row of a network's table

Mask = NDArray[np.bool_]


class Protection(ABC):
    """What shall not be told apart."""

    @staticmethod
    def of(protect: Any, within: Any, theta: Theta, step: str | None) -> "Protection | None":
        """Return what a user asks to protect, None for one record and any values; see :meth:`Mechanism.protecting`."""
        if isinstance(protect, Protection):
            return protect
        if protect is None and within is None:
            return None
        if theta.of_chains:
            steps, lasts = (1, None) if protect is None else stretch_asked(protect, step)
            return StretchProtection(steps, _within(within, theta.states), lasts)
        if not theta.networks:
            raise ParameterError(
                f"protect and within are about steps of chains or columns of networks, and Θ is a class of {theta.kind}"
            )
        if within is not None:
            raise ParameterError(
                "within is about states of chains, and Θ is a class of Bayesian networks: name pairs of values of one "
                "column as secrets, such as secrets=[(RecordIs(column, value), RecordIs(column, other))]"
            )
        return ColumnsProtection(_columns(protect, theta.networks[0]))

    @staticmethod
    def in_settings(settings: Mapping[str, Any] | None) -> "Protection | None":
        """Return what the settings of a mechanism say, as a record holds them; None where they say nothing."""
        protect = settings.get("protect") if settings else None
        if not settings or protect is None:
            return None
        whole = isinstance(protect, int) and not isinstance(protect, bool) and protect >= 1
        if not (whole or protect in (ROW, SUBJECT) or (isinstance(protect, list | tuple) and protect)):
            given = shortened(repr(protect))
            raise ParameterError(f"protect is {given}, expected a number of steps, names, {ROW!r} or {SUBJECT!r}")
        if protect == ROW or isinstance(protect, list | tuple):
            return ColumnsProtection(None if protect == ROW else tuple(map(str, protect)))
        within: Any = settings.get("within")
        near = tuple((str(one), str(other)) for one, other in within) if isinstance(within, list | tuple) else within
        return StretchProtection(protect, near)

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """It as plain values, by the names that mechanisms take."""

    @property
    def only_near(self) -> bool:
        """Whether values that are far apart may be told apart."""
        return False

    @property
    def is_stretch(self) -> bool:
        """Whether more than one record of a chain is hidden together."""
        return False

    @abstractmethod
    def in_words(self, step: str | None = None, *, brief: bool = False) -> str:
        """Say what is hidden, where a step takes so long; for headings in few words."""

    @property
    @abstractmethod
    def alternatives(self) -> str:
        """Say of which two things the odds change."""

    @abstractmethod
    def condition(self, step: str | None = None) -> str:
        """Say under which two conditions a release is about as likely, for the sentence of a promise."""

    @property
    @abstractmethod
    def not_hidden(self) -> list[str]:
        """Say what is not hidden, one sentence each."""

    def check_gaps(self, gaps: str, whose: str) -> None:
        """Refuse a table whose subjects' series are cut into chains, where stretches are hidden by ``whose`` noise."""
        if self.is_stretch and gaps == "independent":
            raise ReleaseRefused(
                f"{whose} stretches, but gaps='independent' cuts each subject's series into independent chains, and a "
                "stretch across a cut would not be hidden: read the table with gaps='unobserved'"
            )


# -- Steps of a chain ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StretchProtection(Protection):
    """The courses of so many steps of a chain in a row shall not be told apart, if their values are near each other.

    ``steps`` are grid steps, read or not, or "subject", a whole series, given as ``lasts`` if as a length of time.
    Courses are near whose values are at most ``within`` apart at every step, in the units of the bins, or one of these
    pairs of states; None for any two.
    """

    steps: int | str
    within: float | tuple[tuple[str, str], ...] | None = None
    lasts: str | None = field(default=None, compare=False)

    @property
    def settings(self) -> dict[str, Any]:
        """It as plain values, by the names that mechanisms take."""
        within: Any = self.within if not isinstance(self.within, tuple) else [list(pair) for pair in self.within]
        return {"protect": self.steps, "within": within}

    @property
    def only_near(self) -> bool:
        """Whether values that are far apart may be told apart."""
        return self.within is not None

    def steps_of(self, length: Sequence[ChainLength]) -> int:
        """Return how many steps a stretch has, where chains are as long as given."""
        return max(chain.steps for chain in length) if isinstance(self.steps, str) else self.steps

    def near(self, states: Sequence[str]) -> Mask | None:
        """Return which pairs of states are near; None where all are."""
        if self.within is None:
            return None
        if isinstance(self.within, tuple):
            place = {state: x for x, state in enumerate(states)}
            near = np.eye(len(states), dtype=np.bool_)
            for one, other in self.within:
                near[place[one], place[other]] = near[place[other], place[one]] = True
            return near
        return _near(states, self.within)

    @property
    def is_stretch(self) -> bool:
        """Whether more than one record is hidden together."""
        return self.steps != 1

    def condition(self, step: str | None = None) -> str:
        """Say under which two conditions a release is about as likely, for the sentence of a promise."""
        one, near = self.steps == 1, ""
        if isinstance(self.within, tuple):
            near = f" that {'are' if one else 'differ by'} pairs that are named ({self._pairs})"
        elif self.within is not None:
            apart = f"at most {number(self.within, 17)} apart"
            near = f" that are {apart}" if one else f" whose values are {apart} at every step"
        stretch = StretchProtection(self.steps).in_words(step)
        if one:
            scope = f"for every record, every two values it can have{near}"
            return f"if {stretch} has one value as if it has another, {scope}"
        scope = (
            f"for every {'subject' if self.steps == SUBJECT else 'such stretch'}, every two courses it can take{near}"
        )
        return f"if {stretch} takes one course as if it takes another, {scope}"

    @property
    def alternatives(self) -> str:
        """Say of which two things the odds change."""
        near = "near " if self.only_near else ""
        if not self.is_stretch:
            return f"two {near}values of one record"
        return f"two {near}courses of one such {'series' if self.steps == SUBJECT else 'stretch'}"

    @property
    def not_hidden(self) -> list[str]:
        """Say what is not hidden, one sentence each."""
        longer = "Facts about longer stretches, or about two separate ones together, are not hidden"
        above = "Whether a value is above some number or below is not hidden: only near values are not told apart."
        sentences = list[str]()
        if self.steps == SUBJECT:
            sentences += ["Facts about many subjects at once are not hidden."]
        elif self.is_stretch:
            sentences += [f"{longer}; the epsilons of two do not even add."]
        return [*sentences, above] if self.only_near else sentences

    @property
    def _pairs(self) -> str:
        assert isinstance(self.within, tuple)
        return "; ".join(f"{one} or {other}" for one, other in self.within[:4]) + (
            "; …" if len(self.within) > 4 else ""
        )

    def in_words(self, step: str | None = None, *, brief: bool = False) -> str:
        """Say what is hidden, where a step takes so long; for headings in few words.

        >>> StretchProtection(60).in_words("1min")
        'any stretch of 60 steps in a row of one subject (1h, where no step takes less than 1min)'
        >>> StretchProtection(60, 200.0).in_words("1min", brief=True)
        'any 1h of one subject, among values at most 200 apart'
        """
        if self.steps == SUBJECT:
            stretch = "the whole series of one subject"
        elif self.steps == 1:
            stretch = "any one record" + ("" if brief else " (the state of one subject at one time)")
        else:
            assert isinstance(self.steps, int)
            time = None if step is None else parse_duration(step, "step")
            steps, lasts = f"{counted(self.steps, 'step')} in a row", ""
            if time is not None and time.has_unit and isinstance(time.value, int):
                lasts = format_micros(time.value * self.steps)
            note = f" ({lasts}, where no step takes less than {step})" if lasts else ""
            stretch = (
                f"any {lasts or steps} of one subject" if brief else f"any stretch of {steps} of one subject{note}"
            )
        if self.within is None:
            return stretch
        if isinstance(self.within, tuple):
            return f"{stretch}, between these states only: {self._pairs}"
        return f"{stretch}, among values at most {number(self.within, 17)} apart"


# -- Columns of a row ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnsProtection(Protection):
    """The joint values of some columns of one row of a network's table shall not be told apart, or of all of them.

    ``names`` are in the order of the network's nodes; None for a whole row.

    >>> ColumnsProtection(("smoke", "lung")).in_words(), ColumnsProtection(None).in_words()
    ('the columns smoke, lung of any one row together', 'all columns of any one row together')
    """

    names: tuple[str, ...] | None

    @property
    def settings(self) -> dict[str, Any]:
        """It as plain values, by the names that mechanisms take."""
        return {"protect": ROW if self.names is None else list(self.names), "within": None}

    @property
    def alternatives(self) -> str:
        """Say of which two things the odds change."""
        return f"two {'values' if self.names is not None and len(self.names) == 1 else 'combinations of their values'}"

    def in_words(self, step: str | None = None, *, brief: bool = False) -> str:
        """Say what is hidden."""
        if self.names is None:
            return "all columns of any one row together"
        if len(self.names) == 1:
            return f"the column {names_of(self.names)} of any one row"
        return f"the columns {names_of(self.names)} of any one row together"

    def condition(self, step: str | None = None) -> str:
        """Say under which two conditions a release is about as likely, for the sentence of a promise."""
        if self.names is not None and len(self.names) == 1:
            return (
                f"if {self.in_words()} has one value as if it has another, for every row, every two values it can have"
            )
        return (
            f"if {self.in_words()} have one combination of values as if they have another, for every row, every two "
            "combinations they can have"
        )

    @property
    def not_hidden(self) -> list[str]:
        """Say what is not hidden, one sentence each."""
        if self.names is None:
            return []
        return ["Other columns, and these columns of several rows together, are not hidden at this epsilon."]


def step_of(theta: Theta, model: Described | None) -> str | None:
    """Return how long a step takes, where a model or the clock of Θ says it."""
    known = None if model is None else model.step
    return known or theta.step


def _length(protect: Any) -> Duration | None:
    """Return the length of time that a stretch is given as; None where it is no length."""
    if not isinstance(protect, str | timedelta | np.timedelta64):
        return None
    if isinstance(protect, str) and (protect == SUBJECT or protect.isdigit()):
        return None
    try:
        return parse_duration(protect, "protect")
    except ParameterError:
        raise _no_stretch(protect) from None


def _no_stretch(protect: Any) -> ParameterError:
    return ParameterError(
        f"protect is {shortened(repr(protect))}, expected a number of steps such as 60, a length of time such as '1h' "
        f"or '1d', or {SUBJECT!r}, the whole series"
    )


def stretch_asked(protect: Any, step: str | None) -> tuple[int | str, str | None]:
    """Return how many steps in a row a user asks to protect, and how long they last if that was said."""
    if isinstance(protect, str) and protect == SUBJECT:
        return SUBJECT, None
    asked = _length(protect)
    if asked is not None:
        if step is None:
            raise ParameterError(
                f"protect is {str(protect)!r}, but the length of a step is unknown: give a number of steps, such as "
                "protect=60, or give Θ as a Model with its step"
            )
        one = parse_duration(step, "step")
        if one.has_unit != asked.has_unit:
            raise ParameterError(f"protect is {str(protect)!r}, and a step is {step}: give a number of steps")
        steps = -(-Fraction(asked.value) // Fraction(one.value))
    else:
        value = real_number(int(protect) if isinstance(protect, str) else protect)
        steps = int(value) if value is not None and math.isfinite(value) and value == int(value) else 0
    if not 1 <= steps < MOST_STEPS:
        raise _no_stretch(protect)
    return int(steps), None if asked is None else str(asked)


def _columns(protect: Any, network: BayesianNetwork) -> tuple[str, ...] | None:
    """Return columns by their labels, in the order of the network's nodes; None for a whole row."""
    known, named = list(map(state_label, network.nodes)), protect
    if isinstance(protect, str):
        if protect == ROW:
            return None
        joined = next((name for name in known if "+" in name and name in protect), None)
        if joined is not None:
            raise ParameterError(
                f"protect is {shortened(repr(protect))}, and the name of column {joined!r} has a + in it: give a list "
                f"in Python, such as protect=[{joined!r}]"
            )
        named = [name.strip() for name in protect.split("+")]
    if not named or not (is_list(named) or isinstance(named, set | frozenset)):
        raise ParameterError(
            f"protect is {shortened(repr(protect))}, expected columns of the network, such as {'+'.join(known[:2])!r}, "
            f"or {ROW!r} for all of them. Columns: {names_of(known)}"
        )
    names = [state_label(name) for name in named]
    for i, name in enumerate(names):
        if name not in known:
            raise ParameterError(
                f"protect names {name!r}, which is not a column.{did_you_mean(name, known)} Columns: "
                f"{names_of(known)}. Several are joined by +, and {ROW!r} is all of them"
            )
        if name in names[:i]:
            raise ParameterError(f"protect names {name!r} twice: name every column once")
    return tuple(name for name in known if name in names)


def _within(within: Any, states: Sequence[str]) -> float | tuple[tuple[str, str], ...] | None:
    if within is None:
        return None
    if is_list(within):
        pairs = [tuple(map(state_label, pair)) if is_list(pair) else () for pair in within]
        wrong = [pair for pair in pairs if len(pair) != 2 or not set(pair) <= {*states} or pair[0] == pair[1]]
        if wrong or not pairs:
            raise ParameterError(
                f"within is {shortened(repr(within))}, expected pairs of two of the states {', '.join(states[:8])}"
            )
        return tuple((one, other) for one, other in pairs)
    value = real_number(within)
    if value is None or not 0 < value < np.inf:
        raise ParameterError(f"within is {shortened(repr(within))}, expected a positive number, or pairs of states")
    _near(states, value)
    return value


def _near(states: Sequence[str], within: float) -> Mask:
    """Return which pairs of states have values that are at most so far apart; bins have no upper end of their own."""
    intervals = intervals_of_states(states)
    if intervals is None:
        raise ParameterError(
            "within is a number, and the states are neither numbers nor bins: give pairs of states, such as "
            f"within=[({states[0]!r}, {states[-1]!r})]"
        )
    near, most = np.eye(len(states), dtype=np.bool_), Fraction(repr(float(within)))  # the decimals that it prints as
    for x, (low, high) in enumerate(intervals):
        for y, (other_low, other_high) in enumerate(intervals):
            gaps = [a - b for a, b in ((other_low, high), (low, other_high)) if a is not None and b is not None]
            gap = max(gaps, default=Fraction(0))
            near[x, y] |= gap <= most if low == high else gap < most
    if np.array_equal(near, np.eye(len(states), dtype=np.bool_)):
        raise ParameterError(
            f"within is {number(within, 6)}, but no two states are that near to each other: give a larger number"
        )
    return near
