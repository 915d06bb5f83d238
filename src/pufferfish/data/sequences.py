"""What a table becomes: aggregates per chain, and the record of how the table was read.

A chain is one subject's series (MATH: "Many chains"): different chains are independent, records of one chain
are not. A chain of n observed records spans at least n steps; steps without a record are unobserved records
of the same chain. Queries read ``counts``; a model fitted to public data reads ``transitions``; calibration
reads ``length``, which is published.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import check_choice, check_kind, listed, texts, whole_at_least, whole_number
from pufferfish._base.durations import Duration, parse_duration
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.view import Printed, View, counted
from pufferfish.data.bins import parse_bins
from pufferfish.data.groups import Daily, Groups, check_by, checked_counts, kept_rows, sentence_of
from pufferfish.errors import ParameterError
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.states import clock_named

# -- Where chains begin and end on the axis of time ------------------------------------------------------------------
#
# Where all times of a chain are whole numbers of steps apart, two readings of one table say where the records of one
# are among those of the other: a record's place in its chain is its time less that of the first record, in steps. A
# ledger asks this of a part that it charges (docs/ledger.md).
#
# Times without a zone do not say it exactly: nobody knows where clocks were changed between two of them. Clocks show
# standard time, or an hour more. So two local times are as far apart as they say, or an hour less (the hour that clocks
# skip in spring never was), or an hour more. Fewer steps between two records mostly let more leak, but not always: in a
# chain that nearly goes around in a cycle, a record a whole cycle away tells more than a nearer one. So no hour is just
# taken away. A record may be at each place up to an hour from the one that its time says, and is charged at all of them
# (`widened`): gaps have as few unread steps as they can have, and larger losses never leak less. That is so wherever
# clocks are changed by an hour or less, however often. A chain with a gap is an hour longer than times say: where an
# hour came twice inside of the gap, so long is the true one. Records without a gap between them are next to each other,
# as `max_gap` says.

HOUR = 3_600_000_000  # by so much, in microseconds, clocks are changed in summer; in a few zones by less


@dataclass(frozen=True, slots=True)
class TimeGrid(ReadOnly):
    """Times of chains as whole numbers of steps.

    An hour of the second of two days, in minutes:

    >>> TimeGrid(1, ((1500, 1559),)).places(0, TimeGrid(1, ((0, 1439), (1440, 2879))), 1)
    (60, 119)
    """

    step: int  # time that a step takes: microseconds, or the unit of numbers that are times
    # times of each chain's first and last record; None where its records are no whole numbers of steps apart
    ends: tuple[tuple[int, int] | None, ...]
    # how many steps a record may be from where its time says, because times have no zone (:func:`slack_of`)
    slack: int = 0

    def __post_init__(self) -> None:
        try:
            step, slack = whole_number(self.step), whole_number(self.slack)
            ends = tuple(None if span is None else _span(span) for span in listed(self.ends, "ends", "two times each"))
        except (TypeError, ValueError):
            raise ParameterError(
                "a grid of times is a step, and of each chain the first and the last time, expected whole numbers"
            ) from None
        if step < 1 or slack < 0:
            raise ParameterError(f"a grid of times has a step of {step}, a slack of {slack}; expected 1, 0, or more")
        if any(span is not None and (span[0] > span[1] or (span[1] - span[0]) % step) for span in ends):
            raise ParameterError("a grid of times has a chain that ends before it begins, or between two steps")
        self._keep(step=step, slack=slack, ends=ends)

    def places(self, chain: int, base: "TimeGrid", of: int) -> tuple[int, int] | None:
        """Return which steps of a chain of another grid the two ends of one are; None where the grids do not fit."""
        span, base_span = self.ends[chain], base.ends[of]
        if span is None or base_span is None or self.step != base.step or (span[0] - base_span[0]) % self.step:
            return None
        return (span[0] - base_span[0]) // self.step, (span[1] - base_span[0]) // self.step


def _span(ends: Any) -> tuple[int, int]:
    first, last = listed(ends, "ends", "two times")
    return whole_number(first), whole_number(last)


def slack_of(step: int) -> int:
    """Return how many steps of so many microseconds a change of clocks may put between two times without a zone.

    >>> slack_of(60_000_000), slack_of(7_200_000_000), slack_of(86_400_000_000)
    (60, 1, 0)
    """
    return 0 if step % (24 * HOUR) == 0 else -(-HOUR // step)


def widened(spans: Iterable[tuple[int, int]], by: int, size: int) -> tuple[tuple[int, int], ...]:
    """Return spans of steps, in order, that reach further on both sides, within a chain; those that meet become one.

    >>> widened([(0, 60), (120, 180), (600, 660)], 60, 660)
    ((0, 240), (540, 660))
    """
    merged: list[tuple[int, int]] = []
    for start, stop in spans:
        start, stop = max(start - by, 0), min(stop + by, size)
        if merged and start <= merged[-1][1]:
            start = merged.pop()[0]
        merged.append((start, stop))
    return tuple(merged)


class Taken(NamedTuple):
    """Which rows were read before, and are left out: by how many entries of a ledger, None where nothing is."""

    entries: int | None
    of: Callable[[Sequence[str], int, int], Sequence[Sequence[tuple[int, int]]]]
    """Returns for each subject the stretches of time, each to one past its last, that were read between two times."""


MANY_CHAINS, SHORT_CHAIN = 20, 5  # so many chains of a median of so many records look like a wrong column


def check_chain_options(given: Any) -> tuple[Duration | None, Duration | None]:
    """Return ``max_gap`` and ``step`` as lengths of time; refuse options by which no table of chains can be read."""
    roles = {role: getattr(given, role) for role in ("state", "subject", "time")}
    for role, name in roles.items():
        if not isinstance(name, str) and not (name is None and role != "state"):
            raise ParameterError(f"{role} is {name!r}, expected the name of a column")
    for role, name in roles.items():  # subjects or times that are states would be told as public
        both = " and ".join(other for other, column in roles.items() if column == name)
        if name is not None and both != role:
            raise ParameterError(f"{both} are the same column {name!r}, expected different ones")
    check_choice("missing", given.missing, ("unobserved", "split", "refuse"))
    check_choice("gaps", given.gaps, ("unobserved", "independent"))
    for option in ("max_gap", "time_zone"):
        if (value := getattr(given, option)) is not None and given.time is None:
            raise ParameterError(f"{option} is {value!r} but there is no time: give time=, the column of times")
    longest = None if given.max_gap is None else parse_duration(given.max_gap, "max_gap")
    one = None if given.step is None else parse_duration(given.step, "step")
    if longest and one and (one.has_unit != longest.has_unit or one.value > longest.value):
        raise ParameterError(f"step is {one} and max_gap is {longest}, expected step <= max_gap in the same unit")
    if given.ambiguous is not None:
        check_choice("ambiguous", given.ambiguous, ("earlier", "later", "drop"))
        if given.time_zone is None:
            raise ParameterError(
                f"ambiguous is {given.ambiguous!r} and time_zone is missing: give the time zone by time_zone=, such as "
                "'Europe/Paris'"
            )
    return longest, one


@dataclass(frozen=True, slots=True, kw_only=True)
class Base(ReadOnly):
    """How a table was read: the records, states, filter and binning that a privacy loss is tied to.

    Only plain values, so that it goes into a release as JSON. The source is named without its folder.

    >>> Base(source="day.csv", state="activity").assumptions[0]
    'The table is one chain: any record may depend on any other.'
    """

    source: str  # file name, or the kind of table
    state: str  # column of the states
    subject: str | None = None  # column of the independent unit
    time: str | None = None  # column of time
    max_gap: str | None = None  # longest time between adjacent records
    step: str | None = None  # time that one step takes; None if gaps are not counted in it, unless it was given
    bins: tuple[float, ...] | None = None  # edges of the bins
    where: str | None = None  # row filter
    missing: str = "unobserved"  # what a missing state is: "unobserved", "split" or "refuse"
    gaps: str = "unobserved"  # what a gap is: "unobserved" or "independent"
    by: tuple[str, ...] | None = None  # public groupings of the records, which are counted by group too
    time_zone: str | None = None  # time zone of times that have none of their own, if one was given
    ambiguous: str | None = None  # which time is meant that its clocks show twice: "earlier", "later" or "drop"

    def __post_init__(self) -> None:
        for name, length in zip(("max_gap", "step"), check_chain_options(self), strict=True):
            self._keep(**{name: None if length is None else str(length)})  # in the words of a table that was read
        if self.time_zone is not None and not (isinstance(self.time_zone, str) and self.time_zone.strip()):
            raise ParameterError(f"time_zone is {self.time_zone!r}, expected the name of a zone, or None")
        if self.where is not None:
            from pufferfish.data.where import parse_where  # here: it loads what reads tables

            parse_where(self.where, [self.state], "state column")
        if self.bins is not None:
            self._keep(bins=parse_bins(self.bins))
        if self.by is not None:
            self._keep(by=check_by(self.by, [self.state], "state column"))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Plain sentences about the data that the promise of a release rests on."""
        return tuple(sentence for sentence in self._sentences() if sentence)

    def _in_column(self, text: str) -> str:
        """Return the words that say what a bare number is counted in; none for a length with a unit of time.

        >>> base = Base(source="day.csv", state="activity", time="minute")
        >>> base._in_column("10min"), base._in_column("1")
        ('', " in column 'minute'")
        """
        bare = self.time is not None and not parse_duration(text, "step").has_unit
        return f" in column {self.time!r}" if bare else ""

    def _sentences(self) -> list[str]:
        far = "" if self.max_gap is None else f"{self.max_gap} apart{self._in_column(self.max_gap)}"
        gap = f"records more than {far}" if far else "left-out rows"
        cut = self.gaps == "independent"
        unit = "" if cut else "The table is one chain: any record may depend on any other."
        if self.subject is not None:
            unit = f"Different subjects (column {self.subject!r}) are independent of each other."
        if cut:
            between = (
                f"Stretches of records on the two sides of a gap ({gap}) are taken to be independent "
                "(gaps='independent', the reading of Song, Wang and Chaudhuri 2017). This under-protects where "
                "the states before and after a gap are correlated."
            )
        else:
            every = ""
            if self.step:
                counted_in = self._in_column(self.step)
                every = f"; one step is {self.step}{counted_in}" if counted_in else f", one every {self.step}"
            may_have_gaps = self.max_gap or self.where or self.missing == "split"
            between = f"A gap ({gap}) is made of unobserved records of the same chain{every}." if may_have_gaps else ""
        lasting = f" of {self.step}{self._in_column(self.step)}" if self.step else ""
        steps = f"Records next to each other follow each other in one step{lasting}, however far apart in time."
        if self.max_gap:
            steps = f"Records at most {far} follow each other in one step of the chain."
        missing = {
            "unobserved": "A missing state is an unobserved record.",
            "split": "Which states are missing is public; a missing state is a gap.",
            "refuse": "",
        }[self.missing]
        lengths = (
            "The number of records, their times, the gaps and which states are missing are public, and assumed "
            "independent of the states."
        )
        bins = zone = ""
        if self.time_zone:
            twice = {
                None: "",
                "earlier": "; of those that they show twice, each is the earlier one",
                "later": "; of those that they show twice, each is the later one",
                "drop": "; records at times that they show twice are left out, and unobserved",
            }[self.ambiguous]
            zone = f"Times are what clocks of {self.time_zone} show{twice}."
        if self.bins:
            bins = (
                f"Values of {self.state!r} below {self.bins[0]:g} count in the first bin, values above "
                f"{self.bins[-1]:g} in the last."
            )
        where = kept_rows(self.where) if self.where else ""
        groups = sentence_of(self.by, "record") if self.by else ""
        return [unit, steps, between, zone, missing, lengths, where, groups, bins]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Sequences(Printed, ReadOnly):
    """Sequences of states as aggregates, one row per chain; private, except for the lengths.

    Examples
    --------
    >>> Sequences(states=("a", "b"), counts=[[2, 1]], transitions=[[1, 1], [0, 0]],
    ...           length=(ChainLength(3, 3),), subjects=1, base=Base(source="day.csv", state="activity"))
    Sequences(2 states, 1 chain, 1 subject, 3 records)
    """

    states: tuple[str, ...]
    """Names of the k states."""
    counts: NDArray[np.int64]
    """Observed records of each state in each chain, shape (chains, k)."""
    transitions: NDArray[np.int64]
    """Observed one-step transitions over all chains, shape (k, k) (rows = from)."""
    length: tuple[ChainLength, ...]
    """Steps spanned and records observed, one per chain."""
    subjects: int
    """Independent subjects."""
    base: Base
    """How the table was read."""
    names: tuple[str, ...] | None = None
    """Label of the subject that each chain is of, where the table has subjects."""
    usual_step: str | None = None
    """Most frequent time between adjacent records (public); None without times, or where the step was given."""
    shortest_step: str | None = None
    """Shortest time between adjacent records (public); None without times."""
    clock: str | None = None
    """The clock that transitions were counted by, where they were."""
    transitions_by_phase: NDArray[np.int64] | None = None
    """The transitions that begin in each phase of the clock, shape (phases, k, k)."""
    histories: NDArray[np.int64] | None = None
    """How often m + 1 observed records followed each other in single steps, the latest last, shape (k,) * (m + 1)."""
    groups: Groups | None = None
    """The counts by public groups, over all chains, where the table was read with ``by``."""
    grid: TimeGrid | None = None
    """Where chains begin and end in time, where all times are whole numbers of steps apart (public)."""
    late: tuple[int, str] | None = None
    """How many gaps are hardly longer than ``max_gap``, where they are many, and a ``max_gap`` for them (public)."""
    clock_changes: Literal["possible", "known"] | None = None
    """Whether clocks may have been changed between two records of a chain, or were; None for neither, or unknown."""
    fingerprint: str | None = None
    """A few digests of what was read, by which a model knows the table that it was fitted to, and parts of it."""
    daily: Daily | None = None
    """Transitions and runs of equal states by subject and day, where the table was read with ``daily``."""
    stretches: tuple[tuple[int, ...] | None, ...] | None = None
    """For a ledger of a table that grows: of each chain how many steps have a row, have none, …; None for no gap."""
    read_before: int = 0
    """Rows that such a ledger left out because an earlier release read them."""
    asked: int | None = None
    """How many entries of the ledger were asked for such releases."""

    def __post_init__(self) -> None:
        self._check_kinds()
        k, chains = len(self.states), len(self.length)
        shapes: dict[str, tuple[int, ...]] = {"counts": (chains, k), "transitions": (k, k)}
        if (self.clock is None) != (self.transitions_by_phase is None):
            raise ParameterError("clock and transitions_by_phase come together: give both or none")
        if self.clock is not None:
            shapes["transitions_by_phase"] = (clock_named(self.clock).phases, k, k)
        if self.histories is not None:
            shapes["histories"] = (k,) * np.ndim(self.histories)
        for name, shape in shapes.items():
            expected = f"{shape}: chains by states" if name == "counts" else ""
            self._keep(**{name: checked_counts(getattr(self, name), name, "records", shape, expected)})
        cut = self.base.gaps == "independent"
        if not (1 <= self.subjects <= chains if cut else self.subjects == chains):
            raise ParameterError(
                f"subjects is {self.subjects:,}, and there are {chains:,} chains: a subject is one chain, or several "
                "where gaps='independent' cuts it"
            )
        if self.names is not None:
            self._keep(names=tuple(self.names))
            if len(self.names) != chains or len(set(self.names)) != self.subjects:
                raise ParameterError(
                    f"names has {len(self.names)} names of {len(set(self.names))} subjects, and there are {chains} "
                    f"chains of {self.subjects:,} subjects: give each chain the name of its subject"
                )
        if self.grid is not None and len(self.grid.ends) != chains:
            raise ParameterError(f"grid has the ends of {len(self.grid.ends):,} chains, and there are {chains:,}")
        if len(set(self.states)) != k:
            raise ParameterError(f"states repeats a name: {', '.join(self.states)}")
        for i, length in enumerate(self.length):
            if length.records != int(self.counts[i].sum()):
                raise ParameterError(f"length[{i}].records is {length.records}, not the row sum of counts")
        if self.daily is not None and not np.array_equal(self.daily.runs.transitions(k), self.transitions):
            raise ParameterError("what was counted by day does not add up to transitions")
        self._check_groups()

    def _check_groups(self) -> None:
        """Refuse groups that are not those of the base, or do not add up to all records."""
        if (None if self.groups is None else self.groups.by) != self.base.by:
            raise ParameterError("groups and base.by are about different groupings")
        if self.groups is not None:
            by_group = self.groups.counts.get(self.base.state)
            if by_group is None or not np.array_equal(by_group.sum(axis=0), self.counts.sum(axis=0)):
                raise ParameterError("groups.counts do not add up to counts")
            if tuple(by_group.sum(axis=1).tolist()) != self.groups.records:
                raise ParameterError("groups.records are not the row sums of groups.counts")
            steps = self.groups.steps
            if steps is not None and not np.array_equal(steps.sum(axis=0), self.transitions):
                raise ParameterError("groups.steps do not add up to transitions")

    def _check_kinds(self) -> None:
        """Refuse arguments that are other things than they should be, and keep copies of lists."""
        for name, kind in (("base", Base), ("grid", TimeGrid), ("daily", Daily)):
            if name == "base" or getattr(self, name) is not None:
                check_kind(getattr(self, name), kind, name)
        if self.clock_changes not in (None, "possible", "known"):
            raise ParameterError(f"clock_changes is {self.clock_changes!r}, expected 'possible', 'known' or None")
        if self.late is not None:
            try:
                number, longest = listed(self.late, "late", "a number of gaps and a length of time")
                self._keep(late=(whole_number(number), str(parse_duration(longest, "late"))))
            except (TypeError, ValueError):
                raise ParameterError("late is no number of gaps and the longest of them, as text") from None
        lengths = listed(self.length, "length", "a ChainLength for each chain")
        for i, length in enumerate(lengths):
            check_kind(length, ChainLength, f"length[{i}]")
        subjects = whole_at_least(self.subjects, "subjects", 1)
        self._keep(states=texts(self.states, "states"), length=tuple(lengths), subjects=subjects)

    def __repr__(self) -> str:
        numbers = {"state": len(self.states), "chain": len(self.length), "subject": self.subjects}
        parts = [counted(count, word) for word, count in numbers.items()]
        return f"Sequences({', '.join(parts)}, {self.records:,} records)"

    def _view(self) -> View:
        """Return what is public: how the table was read, and how much there is of what."""
        base, chains = self.base, len(self.length)
        unseen = sum(self.spans) - self.records
        facts = {
            "states": len(self.states),
            "records": self.records,
            "subjects": self.subjects if base.subject else None,
            "chains": chains if chains != self.subjects or not base.subject else None,
            "steps without a record between them (gaps, missing states)": unseen or None,
            "a step": base.step or self.usual_step,
            "longest time between records": base.max_gap,
            "time zone": base.time_zone,
            "rows": base.where,
            "groups": None if self.groups is None else len(self.groups.cells),
        }
        return View(f"{base.source}, column {base.state}", facts, notes=(*self.warnings, *self.assumptions))

    @property
    def records(self) -> int:
        """Observed records over all chains (public)."""
        return sum(self.lengths)

    @property
    def spans(self) -> tuple[int, ...]:
        """Steps spanned by each chain (public)."""
        return tuple(length.steps for length in self.length)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Observed records of each chain (public)."""
        return tuple(length.records for length in self.length)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Plain sentences about the data that the promise of a release rests on."""
        return self.base.assumptions

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong with how the table was read, by what is public about it; a release keeps it too."""
        return (*self._of_chains(), *self._of_gaps(), *(() if self.groups is None else self.groups.warnings))

    def _of_gaps(self) -> tuple[str, ...]:
        if self.late is None:
            return ()
        number, longest = self.late
        independent = self.base.gaps == "independent"
        are = "chains of their own begin after them" if independent else "they count as unobserved records"
        return (
            f"{number:,} gaps between records are only slightly longer than max_gap ({self.base.max_gap}): {are}, and "
            f"no transition crosses them. If these records are only a little late, give max_gap={longest!r}, which "
            "joins them all.",
        )

    def _of_chains(self) -> tuple[str, ...]:
        middle = median_low(self.lengths)
        if len(self.length) < MANY_CHAINS or middle > SHORT_CHAIN:
            return ()
        half = f"half of them with {'one record' if middle == 1 else f'at most {middle} records'}"
        if self.base.gaps == "independent":
            return (
                f"The table is cut at gaps into {len(self.length):,} chains, {half}, which are taken as independent of "
                f"each other. Check {'max_gap' if self.base.max_gap else 'where'}: if records of different chains "
                "depend on each other, more leaks than is promised.",
            )
        column = "" if self.base.subject is None else f" (column {self.base.subject!r})"
        return (
            f"The table has {len(self.length):,} subjects{column}, {half}, and different subjects are treated as "
            "independent. Check that the column names the subject of each record: if records of different subjects "
            "depend on each other, more leaks than is promised.",
        )
