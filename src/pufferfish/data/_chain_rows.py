"""Rows ready to be chained: subject, time, state, row number and filter as columns of our own, checked.

Everything a table can have wrong with its rows is found here, by counting on the engine; the engine is then
asked for the first such row, so that the message can show it.
"""

import math
from datetime import UTC
from functools import reduce
from operator import add, or_
from typing import Any

import narwhals as nw

from pufferfish.data._cells import RowLocator, missing_group, selected
from pufferfish.data._chains import CELL, EARLIER, KEEP, PHASE, STATE, SUBJECT, TIME, Frame, Layout
from pufferfish.data._columns import (
    ISO,
    NUMBER,
    ZONED,
    TextProfile,
    clean_text,
    collected,
    count_where,
    format_instant,
    kind_of,
    missing,
    native_column,
    no_time,
    other_date,
    row_count,
    state_column,
    subject_column,
    text_number,
    text_tests,
    with_text_instants,
    with_text_looks,
)
from pufferfish.data._options import Options
from pufferfish.data._times import LocalClock, local_time
from pufferfish.data.groupings import MICROS_OF_DAY, PARTS, never_negative
from pufferfish.data.labels import count_rows
from pufferfish.data.sequences import Taken
from pufferfish.data.source import ROW, Source, numbered, rows_beside
from pufferfish.errors import DataError, ParameterError
from pufferfish.theta.states import state_label

BAD = -2  # number of the bin of text that is not a number
_NUMERIC, _ABSENT = 1, 0
_LARGEST = 2**62 - 1  # two whole numbers up to this are at most 2^63 - 1 apart, which a difference can be
_VALUE, _NUMBER = "__pf_value", "__pf_number"
_START, _STOP = "__pf_start", "__pf_stop"


class ChainRows:
    """The rows of one table, prepared and checked."""

    frame: Frame  # the prepared rows
    filtered: bool  # whether rows that the filter leaves out are still there, marked, because their positions count
    instants: bool  # whether time is in microseconds
    zoned: bool  # whether times are instants: they have a time zone or an offset, or were given one
    changes: list[int]  # instants at which clocks of the zone that was given are changed, about the years of the table
    read_before: int  # rows that are left out, as a ledger says that they were read

    def __init__(self, table: Source, options: Options, layout: Layout) -> None:
        self.table, self.options, self.layout, self.schema = table, options, layout, table.schema
        self.places = RowLocator(subject=layout.subject, ordered=table.ordered, header=table.untyped)
        self.instants, self.zoned, self.read_before = False, False, 0
        self.changes = []
        if not table.ordered and options.time is None:
            raise DataError(
                f"the rows of this table ({table.name}) have no order: give time=, the column that orders them"
            )
        frame = self._selected()
        self.filtered = options.where is not None
        if self.filtered and options.max_gap is not None:
            frame, self.filtered = frame.filter(nw.col(KEEP)), False
        self.frame = self._unread(self._checked(frame))

    @property
    def wall(self) -> bool:
        """Whether times are what clocks show, without a zone: how far apart two are is not known to the hour."""
        return self.instants and not self.zoned

    @property
    def chained(self) -> Frame:
        """The prepared rows without the columns that only messages show."""
        return self.frame.drop(_VALUE, _NUMBER, strict=False)

    def _unread(self, frame: Frame) -> Frame:
        """Leave out rows that were read before, where a ledger says which those are."""
        taken = self.options.taken
        if taken is None:
            return frame
        ends = nw.col(TIME).min().alias("first"), nw.col(TIME).max().alias("last"), nw.len().alias("rows")
        first, last, rows = collected(frame.select(ends)).row(0)
        first, last = math.floor(first), math.ceil(last)
        if not self.layout.subject:
            (runs,) = taken.of([""], first, last)
            before = [(nw.col(TIME) >= start) & (nw.col(TIME) < stop) for start, stop in runs]
            kept = frame.filter(~reduce(or_, before)) if before else frame
        else:
            kept = self._unread_by_subject(frame, taken, first, last)
        if kept is not frame:
            self.read_before = rows - row_count(kept)
            if self.read_before == rows:
                raise DataError(
                    f"all {count_rows(rows)} of {self.table.name} were already read by a release of the same query, "
                    "so there is nothing new to release; to read and charge them again, give again=True"
                )
        return kept

    @staticmethod
    def _unread_by_subject(frame: Frame, taken: Taken, first: int, last: int) -> Frame:
        subjects = collected(frame.select(SUBJECT).unique()).get_column(SUBJECT).to_list()
        stretches = taken.of([state_label(subject) for subject in subjects], first, last)
        runs = [(subject, *run) for subject, of in zip(subjects, stretches, strict=True) for run in of]
        if not runs:
            return frame
        before = frame.join(rows_beside(frame, [SUBJECT, _START, _STOP], runs), on=SUBJECT, how="inner")
        before = before.filter((nw.col(TIME) >= nw.col(_START)) & (nw.col(TIME) < nw.col(_STOP)))
        kept = frame.join(before.select(SUBJECT, TIME), on=[SUBJECT, TIME], how="anti")
        return kept.sort(ROW) if ROW in frame.collect_schema() else kept

    # -- columns -----------------------------------------------------------------------------------------

    def _selected(self) -> Frame:
        """Subject, time, state, row number and filter, under names of our own."""
        options = self.options
        chosen = {_VALUE: nw.col(options.state), **self._state()}
        if options.subject is not None:
            chosen[SUBJECT] = subject_column(options.subject, self.schema[options.subject])
        if options.time is not None:
            chosen[TIME] = nw.col(options.time)
        if ROW in self.schema:
            chosen[ROW] = nw.col(ROW).cast(nw.Int64)
        frame = selected(self.table, chosen, options.where, options.by)
        if options.bins is None:
            return frame
        # in a step of its own, so that an engine does not parse text once for every edge
        inner, status = options.bins[1:-1], nw.col(STATE)
        index = reduce(add, ((nw.col(_NUMBER) >= edge).cast(nw.Int64) for edge in inner))
        binned = nw.when(status == _NUMERIC).then(index).otherwise(nw.lit(BAD))
        return frame.with_columns(nw.when(status != _ABSENT).then(binned).alias(STATE))

    def _state(self) -> dict[str, nw.Expr]:
        """State of a row; with bins, its number, and whether it has one."""
        name = self.options.state
        dtype, column = self.schema[name], nw.col(name)
        if self.options.bins is None:
            return {STATE: state_column(name, dtype)}
        kind = kind_of(dtype)
        if kind == "number":
            number = native_column(name, dtype).value.cast(nw.Float64)
            absent = missing(column, dtype)
            return {_NUMBER: number, STATE: nw.when(absent).then(nw.lit(_ABSENT)).otherwise(nw.lit(_NUMERIC))}
        if kind != "text":
            raise DataError(f"state column {name!r} holds {dtype}, expected numbers for bins")
        text = clean_text(column)
        number = text_number(text, integer=False)
        status = nw.when(text.str.contains(NUMBER)).then(nw.lit(_NUMERIC)).otherwise(nw.lit(BAD))
        absent = (text == "") | number.is_nan()
        return {_NUMBER: number, STATE: nw.when(absent).then(nw.lit(_ABSENT)).otherwise(status)}

    # -- checks ------------------------------------------------------------------------------------------

    def _checked(self, frame: Frame) -> Frame:
        """Refuse rows without subject or time, and make times numbers; in one pass, as passes cost on a cluster."""
        options = self.options
        if options.subject is None and options.time is None:
            return frame
        time_type = None if options.time is None else self.schema[options.time]
        tests, looked = [nw.len().alias("rows")], frame
        if options.subject is not None:
            tests.append(count_where(nw.col(SUBJECT).is_null()).alias("no_subject"))
        if time_type is not None:
            if kind_of(time_type) == "text":
                looked = with_text_looks(frame, [TIME])
                tests.extend(test.alias(key) for key, test in text_tests(TIME).items())
                tests.append(count_where(nw.col(TIME) == "").alias("no_time"))
            else:
                tests.append(count_where(no_time(nw.col(TIME), time_type)).alias("no_time"))
        counts: dict[str, Any] = collected(looked.select(tests)).rows(named=True)[0]
        if not counts["rows"]:
            raise self.no_rows()
        if options.subject is not None and (n := int(counts["no_subject"])):
            raise self.places.no_subject(frame, options.subject, n)
        if time_type is None or options.time is None:
            return frame
        if n := int(counts["no_time"]):
            where = self.places.first(frame.filter(no_time(nw.col(TIME), time_type)))
            raise DataError(
                f"column {options.time!r} has no time in {count_rows(n)}{where}: every record needs a time; drop "
                "these rows or leave out time="
            )
        if kind_of(time_type) == "text":
            profile = TextProfile(**{key: int(counts[key]) for key in text_tests(TIME)})
            frame = self._in_order(self._timed_text(frame, options.time, profile))
        else:
            frame = self._timed(frame, options.time, time_type)
        if options.max_gap is not None:
            self._check_units(options.time)
        if (clock := options.clock) is not None:  # its phase, in the place of the local time
            phase = (never_negative(nw.col(PHASE)) // clock.micros + clock.at_1970) % clock.phases
            frame = frame.with_columns(phase.cast(nw.Int64).alias(PHASE))
        return self._in_zone(frame, options.time)

    def _timed(self, frame: Frame, name: str, dtype: Any) -> Frame:
        kind = kind_of(dtype)
        if kind == "instant":
            polars = frame.implementation.is_polars()
            column = native_column(TIME, dtype, zoned=name in self.table.zoned, polars=polars)
            self.instants, self.zoned = True, column.zoned
            frame, zone = frame.with_columns(column.value.alias(TIME)), self.table.zones.get(name)
            if self.options.clock is None:
                return frame
            wall = nw.col(TIME) if zone is None else local_time(frame, TIME, zone, name)
            return frame.with_columns(wall.alias(PHASE))
        if kind != "number":
            raise DataError(f"time column {name!r} holds {dtype}, expected times, dates, ISO text or numbers")
        self._refuse_numbers(name)
        if dtype.is_integer():
            if dtype in (nw.UInt64, nw.Int128, nw.UInt128):
                large = (nw.col(TIME) > _LARGEST) | (nw.col(TIME) < -_LARGEST)
                self._refuse(frame, large, name, f"expected times of at most {_LARGEST:,}: count from a later start")
            return frame.with_columns(nw.col(TIME).cast(nw.Int64))
        return self._finite(frame.with_columns(nw.col(TIME).cast(nw.Float64)), name)

    def _timed_text(self, frame: Frame, name: str, profile: TextProfile) -> Frame:
        text = clean_text(nw.col(TIME))
        instants = profile.instants >= profile.numbers
        fits = text.str.contains(ISO if instants else NUMBER)
        if (profile.instants if instants else profile.numbers) < profile.values:
            like = "an ISO time such as 2016-04-13 08:00:00" if instants else "a number like the other times"
            value, where = self._first(frame.filter(~fits), nw.col(TIME))
            remedy = "write dates as year-month-day" if other_date(str(value)) else "correct or drop such rows"
            raise DataError(f"column {name!r} holds {value!r}{where}, expected {like}: {remedy}")
        if instants and profile.mixed:
            value, where = self._first(frame.filter(text.str.contains(ZONED)), nw.col(TIME))
            raise DataError(
                f"column {name!r} mixes times with and without a UTC offset, e.g. {value!r}{where}: give all of them "
                "an offset or none"
            )
        if instants:
            self.instants, self.zoned = True, profile.zoned > 0
            return with_text_instants(frame, TIME, profile, wall=None if self.options.clock is None else PHASE)
        self._refuse_numbers(name)
        integer = profile.integers == profile.values
        frame = frame.with_columns(text_number(text, integer=integer).alias(TIME))
        return frame if integer else self._finite(frame, name)

    def _in_order(self, frame: Frame) -> Frame:
        """Order rows of a database by times that were text, which it could not order."""
        if self.table.ordered or ROW not in self.schema:
            return frame
        return numbered(frame.sort(TIME).drop(ROW).to_native()).with_columns(nw.col(ROW).cast(nw.Int64))

    def _refuse_numbers(self, name: str) -> None:
        """Refuse a clock or a time zone of times that are numbers."""
        options = self.options
        for option, value in (("clock", options.clock and options.clock.name), ("time_zone", options.time_zone)):
            if value is not None:
                raise DataError(
                    f"{option} is {value!r}, and column {name!r} holds numbers: a {option.replace('_', ' ')} needs "
                    "times, such as 2016-04-13 08:00:00"
                )

    def _in_zone(self, frame: Frame, name: str) -> Frame:
        """Make local times of a given zone instants: skipped ones are refused, those shown twice are as asked."""
        options, wall = self.options, nw.col(TIME)
        if options.zone is None:
            return frame
        if self.zoned:
            raise DataError(
                f"time_zone is {options.time_zone!r}, but the times in column {name!r} already have a time zone or an "
                "offset: leave out time_zone; or, where a ledger says it, write times as clocks there show them"
            )
        of_day = count_where(PARTS["date"](wall) * MICROS_OF_DAY != wall)
        ends = collected(frame.select(wall.min().alias("first"), wall.max().alias("last"), of_day.alias("of_day")))
        first, last, with_time = ends.row(0)
        if not with_time:
            raise DataError(
                f"time_zone is {options.time_zone!r}, and column {name!r} holds dates without a time of day, to which "
                "clock changes do not matter: leave out time_zone"
            )
        clock = LocalClock.between(options.zone, int(first or 0), int(last or 0))
        skipped, twice = clock.skipped(wall), clock.twice(wall)
        tests = count_where(skipped).alias("skipped"), count_where(twice).alias("twice")
        no_time, ambiguous = (int(n or 0) for n in collected(frame.select(tests)).row(0))
        if no_time:
            value, where = self._first(frame.filter(skipped), nw.col(TIME))
            raise DataError(
                f"column {name!r} has {self.time_text(value)}{where}, which clocks in {options.time_zone} skip (such "
                f"times in {count_rows(no_time)}): name the right time zone, 'UTC' if clocks never change, or correct "
                "such rows"
            )
        if ambiguous and options.ambiguous is None:
            value, where = self._first(frame.filter(twice), nw.col(TIME))
            raise DataError(
                f"column {name!r} has {self.time_text(value)}{where}, which clocks in {options.time_zone} show twice "
                f"(such times in {count_rows(ambiguous)}): write times with their offset, such as "
                "2024-10-27T02:00+01:00; or choose ambiguous='drop', which leaves them out, or, where the table has "
                "each such time once, ambiguous='earlier' or ambiguous='later'"
            )
        if ambiguous and options.ambiguous == "drop":
            frame = frame.filter(~twice)
        self.zoned, self.changes = True, [instant for instant, *_ in clock.changes]
        return frame.with_columns(clock.instant(wall, later=options.ambiguous == "later").alias(TIME))

    def _finite(self, frame: Frame, name: str) -> Frame:
        finite = (nw.col(TIME) < float("inf")) & (nw.col(TIME) > float("-inf"))  # false or beyond for NaN
        strange = ~finite | nw.col(TIME).is_nan()
        self._refuse(frame, strange, name, "expected finite times: drop such rows")
        return frame

    def _refuse(self, frame: Frame, strange: nw.Expr, name: str, expected: str) -> None:
        """Refuse a table that has times of a kind."""
        if collected(frame.select(count_where(strange).alias("n"))).item():
            value, where = self._first(frame.filter(strange), nw.col(TIME))
            raise DataError(f"column {name!r} holds {value!r}{where}, {expected}")

    def _check_units(self, name: str) -> None:
        for option, duration in (("max_gap", self.options.max_gap), ("step", self.options.step)):
            if duration is None or duration.has_unit == self.instants:
                continue
            if self.instants:
                raise ParameterError(
                    f"{option} is {duration} without a unit, but column {name!r} holds times: give one, such as "
                    f"'{duration}s' or '10min'"
                )
            raise ParameterError(
                f"{option} is {duration}, but column {name!r} holds numbers: give {option} as a number in their unit; "
                "if they are meant to be times, write them as 2016-04-13 08:00:00"
            )

    def time_text(self, value: Any) -> str:
        """Write a time as a message shows it."""
        if self.instants:
            return format_instant(int(value), zone=(self.options.zone or UTC) if self.zoned else None)
        return str(int(value)) if float(value).is_integer() else str(float(value))

    # -- examples for messages ---------------------------------------------------------------------------

    def _first(self, rows: Frame, shown: nw.Expr) -> tuple[Any, str]:
        """Return what the first of some rows holds, and where it is."""
        row = self.places.head(rows if self.table.ordered else rows.sort(TIME), shown.alias(_VALUE))
        return row[_VALUE], self.places.describe(row)

    @property
    def _counting(self) -> Frame:
        """The rows that count."""
        kept = self.frame.filter(nw.col(KEEP)) if self.filtered else self.frame
        return kept.filter(~nw.col(STATE).is_null()) if self.layout.split else kept

    def distinct_states(self) -> int:
        """Count the different states of the rows that count, a missing one among them."""
        return int(collected(self._counting.select(nw.col(STATE).n_unique().alias("n"))).item())

    def no_rows(self) -> DataError:
        """Error that says why there is nothing to count."""
        where = self.options.where
        if kept := row_count(self.table.frame if where is None else self._selected().filter(nw.col(KEEP))):
            return DataError(f"column {self.options.state!r} has no observed state: all {count_rows(kept)} are missing")
        return self.table.nothing(None if where is None else where.text)

    def no_group(self, grouping: int) -> DataError:
        """Error for kept rows that are in no group of a grouping."""
        rows = self._counting.filter(nw.col(f"{CELL}{grouping}").is_null())
        return missing_group(self.options.by[grouping], rows, self.places)

    def not_a_number(self) -> DataError:
        """Error that shows the first text that is no number and was to be binned."""
        wrong = self._counting.filter(~nw.col(STATE).is_null() & (nw.col(STATE) == BAD))
        value, where = self._first(wrong, nw.col(_VALUE))
        return DataError(
            f"column {self.options.state!r} holds {value!r}{where}, expected a number to be binned: correct "
            "it, or make it empty if the value is missing"
        )


# -- Times that do not increase within a subject are refused ---------------------------------------------------------

_MIDNIGHT = " 00:00:00"


class Disorder:
    """Rows that are out of order, as far as rows were looked at."""

    def __init__(self, rows: ChainRows, layout: Layout) -> None:
        self.rows, self.layout = rows, layout
        self.counts = {True: 0, False: 0}  # rows that repeat the time before them, and those that go back
        self.first = dict[bool, dict[str, Any]]()

    def look(self, ordered: Frame) -> None:
        """Look at rows of :meth:`Layout.in_order`."""
        if not self.layout.timed:
            return
        for duplicate, n in self.layout.fault_counts(ordered).items():
            if n and duplicate not in self.first:
                earlier, later = nw.col(EARLIER), nw.col(TIME)
                faults = self.layout.faults(ordered, duplicate=duplicate)
                self.first[duplicate] = self.rows.places.head(faults, earlier.alias("earlier"), later.alias("later"))
            self.counts[duplicate] += n

    def refuse(self) -> None:
        """Refuse what was seen."""
        if not self.first:
            return
        rows, duplicate = self.rows, False not in self.first
        fault, n = self.first[duplicate], count_rows(self.counts[duplicate])
        times = {key: rows.time_text(fault[key]) for key in ("earlier", "later")}
        clocks = rows.wall
        if clocks and all(text.endswith(_MIDNIGHT) for text in times.values()):  # dates, which no clock changes
            times, clocks = {key: text.removesuffix(_MIDNIGHT) for key, text in times.items()}, False
        of = f" for subject {state_label(fault[SUBJECT])!r}" if rows.layout.subject else ""
        column, order = f"column {rows.options.time!r}", "times increase strictly within a subject"
        whose = "" if rows.layout.subject else ", or give subject="
        check = set_back = ""
        if rows.layout.subject:
            check = f"check that column {rows.options.subject!r} names the subject of each record, then "
        if clocks or rows.options.zone is not None:
            set_back = "; where clocks were set back, write times with their offset, such as 2024-10-27T02:00+01:00"
        if set_back and rows.options.max_gap is not None:
            zone = rows.options.time_zone
            set_back += f", or leave that hour out: {'' if zone else 'time_zone= and '}ambiguous='drop'"
        twice = self._twice(fault)
        if duplicate:
            where = f"{twice}; duplicate times" if twice else "duplicate times"
            raise DataError(
                f"{column} repeats {times['later']}{of} ({where} in {n}): {order}; {check}drop or aggregate the "
                f"duplicates{whose}{set_back}"
            )
        if twice and rows.layout.subject:  # as in a table that was added to itself: sorting it would not help
            raise DataError(
                f"{column} has {times['later']} twice{of} ({twice}): {order}; {check}drop or aggregate the "
                f"duplicates, and sort the table by subject and time{set_back}"
            )
        raise DataError(
            f"{column} is unsorted: {times['later']} comes after {times['earlier']}{of} (in {n}): {order}; sort the "
            f"table by {'subject and time' if rows.layout.subject else 'time'}{whose}{set_back}"
        )

    def _twice(self, fault: dict[str, Any]) -> str:
        """Return the first two rows of a subject that have a time, in words; "" where there are none, or no numbers."""
        places = self.rows.places
        if not places.ordered:
            return ""
        same = nw.col(TIME) == fault["later"]
        if self.rows.layout.subject:
            same = same & (nw.col(SUBJECT) == fault[SUBJECT])
        alike = collected(self.rows.frame.filter(same).select(ROW).sort(ROW).head(2)).get_column(ROW).to_list()
        if len(alike) < 2:
            return ""
        first, second = (f"{row + 1:,}" for row in alike)
        return f"rows {first} and {second}{places.below}"
