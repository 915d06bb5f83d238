"""The options of reading, checked before a table is opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Literal

from pufferfish._base.checked import whole_number
from pufferfish._base.durations import Duration, parse_duration
from pufferfish._base.words import did_you_mean, names_of
from pufferfish.data._times import given_zone
from pufferfish.data.bins import bin_labels, parse_bins
from pufferfish.data.groupings import Grouping, parse_by
from pufferfish.data.where import Where, parse_where
from pufferfish.errors import ModelError, ParameterError
from pufferfish.theta.states import Clock, clock_named, listed_labels

__all__ = ["Ambiguous", "Gaps", "Missing", "Options", "check_choice", "check_options", "listed"]

_MOST_ORDER = 6

Missing = Literal["unobserved", "split", "refuse"]
Gaps = Literal["unobserved", "independent"]
Ambiguous = Literal["earlier", "later", "drop"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of ``read_sequences``, checked as far as they can be without a table."""

    state: str
    subject: str | None
    time: str | None
    max_gap: Duration | None
    step: Duration | None
    bins: tuple[float, ...] | None
    where: Where | None
    states: tuple[str, ...] | None
    missing: Missing
    gaps: Gaps
    clock: Clock | None = None
    order: int = 1
    by: tuple[Grouping, ...] = ()
    time_zone: str | None = None
    zone: tzinfo | None = None
    ambiguous: Ambiguous | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are read."""
        filters = self.where.columns if self.where else ()
        roles = (self.subject, self.time, self.state)
        named = [name for name in roles if name is not None]
        return tuple(dict.fromkeys([*named, *filters, *(each.column for each in self.by)]))

    def needed(self, present: Sequence[str]) -> tuple[str, ...]:
        """Columns to read, of those that a table has."""
        if self.where is not None:
            self.where.refuse_unquoted(present)
        return self.columns

    @property
    def public(self) -> tuple[str, ...]:
        """Columns that are read and hold nothing private, so that all their values together may say what they are."""
        times = () if self.time is None else (self.time,)
        return (*times, *(self.where.columns if self.where else ()), *(each.column for each in self.by))

    @property
    def parts(self) -> tuple[str, ...]:
        """Columns that only groupings and the filter name, alone: ``hour`` may have been meant as ``hour(time)``."""
        whole = {
            self.subject,
            self.time,
            self.state,
            *(self.where.timed if self.where else ()),
            *(g.column for g in self.by if g.part),
        }
        return tuple(name for name in self.public if name not in whole)


def check_options(
    *,
    state: Any,
    subject: Any,
    time: Any,
    max_gap: Any,
    bins: Any,
    where: Any,
    states: Any,
    missing: Any,
    gaps: Any,
    step: Any,
    clock: Any = None,
    order: Any = 1,
    by: Any = None,
    time_zone: Any = None,
    ambiguous: Any = None,
) -> Options:
    """Check options as they were given.

    Raises
    ------
    ParameterError
        If one is out of its range or does not go with the others.
    DataError
        If the row filter is not understood.
    """
    roles = {"state": state, "subject": subject, "time": time}
    for role, name in roles.items():
        if not isinstance(name, str) and not (name is None and role != "state"):
            raise ParameterError(f"{role} is {name!r}, expected the name of a column")
    named = [name for name in roles.values() if name is not None]
    for name in named:
        if named.count(name) > 1:
            both = " and ".join(role for role, given in roles.items() if given == name)
            raise ParameterError(f"{both} are the same column {name!r}, expected different ones")
    check_choice("missing", missing, ("unobserved", "split", "refuse"))
    check_choice("gaps", gaps, ("unobserved", "independent"))
    if max_gap is not None and time is None:
        raise ParameterError(f"max_gap is {max_gap!r} but there is no time: give time=, the column of times")
    longest = None if max_gap is None else parse_duration(max_gap, "max_gap")
    one = None if step is None else parse_duration(step, "step")
    if longest and one and (one.has_unit != longest.has_unit or one.value > longest.value):
        raise ParameterError(f"step is {one} and max_gap is {longest}, expected step <= max_gap in the same unit")
    edges = None if bins is None else parse_bins(bins)
    known = None if clock is None else clock_named(clock)
    if known is not None and longest is None:
        raise ParameterError(
            f"clock is {clock!r}, and {'max_gap' if time is not None else 'time'} is missing: phases follow from "
            "times, and a gap moves the clock on: give time= and max_gap=, the time between records, such as '1min'"
        )
    zone = _zone(time_zone, ambiguous, time, max_gap)
    return Options(
        state=state,
        subject=subject,
        time=time,
        max_gap=longest,
        step=one,
        bins=edges,
        where=None if where is None else parse_where(where, [state], "state column"),
        states=_model_states(states, edges),
        missing=missing,
        gaps=gaps,
        clock=known,
        order=_order(order, known),
        by=parse_by(by, time=time, private=[state], called="state column"),
        time_zone=time_zone,
        zone=zone,
        ambiguous=ambiguous,
    )


def _zone(name: Any, ambiguous: Any, time: str | None, max_gap: Any) -> tzinfo | None:
    """Return the time zone that is given for the times of a table, if one is."""
    if ambiguous is not None:
        check_choice("ambiguous", ambiguous, ("earlier", "later", "drop"))
    if name is None:
        if ambiguous is not None:
            raise ParameterError(
                f"ambiguous is {ambiguous!r} and time_zone is missing: give time_zone=, whose clocks show some times "
                "twice, such as 'Europe/Paris'"
            )
        return None
    if time is None:
        raise ParameterError(f"time_zone is {name!r} but there is no time: give time=, the column of times")
    if ambiguous == "drop" and max_gap is None:
        raise ParameterError(
            "ambiguous is 'drop' and max_gap is missing: without it the hour that is left out would count as no step; "
            "give max_gap=, the time between records, such as '1min'"
        )
    return given_zone(name)


def _order(order: Any, clock: Clock | None) -> int:
    try:
        found = whole_number(order)
    except TypeError:
        raise ParameterError(f"order is {order!r}, expected a whole number such as 2") from None
    if not 1 <= found <= _MOST_ORDER:
        raise ParameterError(f"order is {found}, expected 1 to {_MOST_ORDER}: records that each one depends on")
    if found > 1 and clock is not None:
        raise ParameterError(f"order is {found} and clock is {clock.name!r}: models have a clock or a longer memory")
    return found


def check_choice(option: str, value: Any, allowed: Sequence[str]) -> None:
    """Refuse a value of an option that is none of those allowed.

    Raises
    ------
    ParameterError
        If it is another.
    """
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(
            f"{option} is {value!r}, expected one of {', '.join(map(repr, allowed))}.{did_you_mean(value, allowed)}"
        )


def _model_states(states: Any, edges: tuple[float, ...] | None) -> tuple[str, ...] | None:
    if states is None:
        return None if edges is None else bin_labels(edges)
    try:
        names = listed_labels(states, "states")
    except ModelError as error:
        raise ParameterError(str(error)) from None
    if not names:
        raise ParameterError("states is empty, expected the names of the model's states")
    if edges is not None and names != bin_labels(edges):
        raise ParameterError(
            f"states are {listed(names)}, but bins makes {listed(bin_labels(edges))}: use the model's bins, or a "
            "model of these bins"
        )
    return names


def listed(names: Sequence[str]) -> str:
    """Join the first names, and say how many more there are."""
    return names_of(names, 8)
