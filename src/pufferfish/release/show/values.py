"""The released values on a page: a table whose bars show the values and the errors of their noise.

Before it: which values are no larger than their own error, of which text and pages warn alike.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pufferfish._base.view import Html, counted, join, tag
from pufferfish._base.words import WEAK, number, with_error
from pufferfish._draw.lines import MOST_LINES, Band, band_charts, small_multiples
from pufferfish._draw.page import MANY_ROWS, MOST_COLUMNS, bar, fold, heat_map, table
from pufferfish.data.groups import cells_for_people, in_order
from pufferfish.errors import ParameterError, PufferfishError, shortened
from pufferfish.queries import Transitions, measure_of
from pufferfish.queries.words import bins_at_middles
from pufferfish.release.facts import GroupsRecord, decode
from pufferfish.release.record import MeasurementFields, ReleaseFields, csv_of, frame_of, quantile_rows
from pufferfish.release.show.words import Words
from pufferfish.release.sums import all_totals, frame_with_totals

if TYPE_CHECKING:
    import polars as pl

# -- Which released values are no larger than their own error: reports mark them, and it is said how many ------------


def are_shares(record: ReleaseFields) -> bool:
    """Return whether values are shares, which pages and pictures show in percent."""
    return measure_of(record.query.kind).startswith("share")


def weak_values(record: ReleaseFields) -> NDArray[np.bool_]:
    """Return which values are no larger than their error, or are shares with an error of all; shaped as ``value``."""
    errors = record.accuracies(0.05)
    return (np.abs(record.value) <= errors) | ((errors >= 1) & are_shares(record))


def marked(text: str, weak: bool) -> str:
    """Return a value as text, with the sign of a weak one before it: so numbers stay under each other."""
    return f"{WEAK} {text}" if weak else text


def weak_line(weak: NDArray[np.bool_]) -> str:
    """Say how many values are weak, and what that means.

    Examples
    --------
    >>> weak_line(np.array([True, False, True]))
    '2 of 3 values: no larger than their own error, so noise alone may have made them'
    >>> weak_line(np.array([True]))
    'the value is no larger than its own error, so noise alone may have made it'
    """
    if weak.size == 1:
        return "the value is no larger than its own error, so noise alone may have made it"
    how_many = f"{int(weak.sum()):,} of {counted(weak.size, 'value')}"
    return f"{how_many}: no larger than their own error, so noise alone may have made them"


def weak_lines(record: ReleaseFields) -> list[str]:
    """Return this line, with the sign that such values have, where there are any."""
    weak = weak_values(record)
    return [f"{WEAK} {weak_line(weak)}"] if weak.any() else []


def joint_error(record: ReleaseFields) -> str:
    """Return the error of all values together, to the digits of the noise in the group where that is most."""
    most_error = 1.0 if record.groups is None else record.groups.most_error
    return record.writer()(record.accuracy(0.05, joint=True), 1 / most_error)


_FIRST, _MOST = 40, 1_000
"""Rows that are shown at once, and when they are unfolded."""

_MOST_MAPS = 60
"""Groups up to which each has a heat map of its own."""

_MOST_SUBJECTS = 2_000
_LONGEST_VALUE = 4_000
_LARGEST_CSV = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """What an office says of a page, its words, labels of states and groups, and whether weak values are left out."""

    title: str | None = None
    office: str | None = None
    period: str | None = None
    contact: str | None = None
    note: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    words: Words = field(default_factory=Words)
    suppress: bool = False

    @property
    def say(self) -> Words:
        """The words of the page."""
        return self.words

    def name(self, label: str) -> str:
        """Return the label of a state, a group or a column."""
        return self.labels.get(label, label)

    def grouping(self, by: str) -> str:
        """Name a grouping: a part of times by what it is."""
        part = _part(by)
        return self.labels.get(by) or (self.say(part) if part else by)

    def marked(self, text: str, weak: bool) -> Any:
        """Return a value, with the sign of a weak one, or the sign alone."""
        if not weak:
            return text
        sign = tag("span", WEAK, aria_hidden="true")
        unseen = tag("span", f" {self.say('weak_sign')}", class_="unseen")
        return join(sign, unseen) if self.suppress else join(sign, " ", text, unseen)


def _part(by: str) -> str | None:
    """Return which part of times a grouping is of, if it is of one."""
    from pufferfish.data.groupings import PARTS  # here: it loads what reads tables

    return next((part for part in PARTS if by.startswith(f"{part}(")), None)


def values_part(record: ReleaseFields, look: Cover | None = None) -> Html:
    """Return the values of a release as pictures and tables."""
    look = look or Cover()
    values = _Values(record, look)
    return join(values.quantiles(), values.weakness(), values.drawn(), _totals(record, look), _counts_measured(record))


def _totals(record: ReleaseFields, look: Cover) -> Html:
    """Return a table of the totals of wider groups, for each level of them."""
    write, say, parts = Numbers(record), look.say, list[Html]()
    for names, wider in all_totals(record):
        rows = list[list[Any]]()
        for total in islice(wider, _MOST):
            (cell,) = cells_for_people(names, [total.cell])
            shown = look.marked(write.both(total.value, total.error_95), abs(total.value) <= total.error_95)
            rows.append([*map(look.name, cell), look.name(total.output), f"{total.records:,}", shown])
        by = [*map(look.grouping, names)]
        heads = [*by, say("output"), say("records"), say("value")]
        caption = say("totals", by=", ".join(by))
        parts.append(table(heads, rows, caption, names=len(names) + 1, class_="values", search=say("search")))
    return join(parts)


def csv_link(record: ReleaseFields, look: Cover, name: str, frame: "pl.DataFrame | None" = None) -> Html | None:
    """Return a link that saves the values as a table, which is in the page; None where that is too large."""
    import polars as pl

    if frame is None:
        frame = frame_of(record, "values") if record.quantiles else frame_with_totals(record)
    if look.suppress:
        numbers = [column for column in ("value", "noisy_value") if column in frame.columns]
        kept = pl.col("value").abs() > pl.col("error_95")
        frame = frame.with_columns(pl.when(kept).then(pl.col(column)).alias(column) for column in numbers)
    if frame.height * frame.width > _LARGEST_CSV // 8:
        return None
    content = quote(csv_of(frame, for_spreadsheets=True).decode(), safe=",.-+_:()")
    file = f"{name.removesuffix('.json')}.csv"
    link = tag("a", look.say("csv"), " ↓", href=f"data:text/csv;charset=utf-8,{content}", download=file)
    return link if len(content) < _LARGEST_CSV else None


def _for_people(record: ReleaseFields, look: Cover) -> ReleaseFields:
    """Return a release whose outputs and groups are named as people name them."""
    query, groups = replace(record.query, labels=_renamed(record.query.labels, look)), record.groups
    if groups is not None:
        named = cells_for_people(groups.by, groups.cells)
        ways = [dict.fromkeys(labels) for labels in zip(*named, strict=True)]
        shown = [dict(zip(labels, _renamed([*labels], look), strict=True)) for labels in ways]
        cells = [[names[label] for names, label in zip(shown, cell, strict=True)] for cell in named]
        groups = replace(groups, cells=cells)
    return replace(record, query=query, groups=groups)


def _renamed(labels: Sequence[str], look: Cover) -> list[str]:
    """Return labels as people name them; two that would have one name are refused."""
    names = [look.name(label) for label in labels]
    if len(set(names)) < len(set(labels)):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ParameterError(f"[labels] give {twice!r} to two states or groups: give each a name of its own")
    return names


class Numbers:
    """How values of a release are written: to the digits that their errors leave, shares in percent."""

    def __init__(self, record: ReleaseFields) -> None:
        self._percent = are_shares(record)
        self._sign = "%" * self._percent
        self._written = partial(with_error, percent=self._percent, whole=record.whole)

    def value(self, value: float, error: float) -> str:
        """Write a value alone."""
        return self._written(value, error)[0] + self._sign

    def error(self, error: float) -> str:
        """Write an error alone, rounded up."""
        return self._written(0.0, error)[1] + self._sign

    def both(self, value: float, error: float) -> str:
        """Write a value and its error."""
        return " ± ".join(self._written(value, error)) + self._sign

    def tick(self, value: float) -> str:
        """Write a number along an axis."""
        return number(100 * value, 3) + "%" if self._percent else number(value, 3)


class _Values:
    """The values of a release as a page shows them: outputs and groups are named as people name them."""

    def __init__(self, record: ReleaseFields, look: Cover) -> None:
        self._as_recorded = record.groups
        self.record = record = _for_people(record, look)
        self.look, self.say, self.write, self.labels = look, look.say, Numbers(record), record.query.labels
        self.value, self.errors, self.weak = record.value, record.accuracies(0.05), weak_values(record)
        self.noisy = np.array(record.noisy_values).reshape(self.value.shape)
        self.measure = _measure(record, look)
        self.of = f" ({self.labels[0]})" if len(self.labels) == 1 else ""

    def drawn(self) -> Html:
        """Return values as what shows them best.

        Bars; lines over hours, days or months with bands, one for each group or, of several outputs, a small chart for
        each output; a heat table of two groupings, or of groups and outputs; of steps one for each group.
        """
        groups, labels = self.record.groups, self.labels
        if self.record.query.kind in Transitions.kinds:
            return self._transitions() if groups is None or len(groups.cells) <= _MOST_MAPS else self._bars()
        if groups is None:
            return self._bars()
        over = [i for i, by in enumerate(groups.by) if _part(by)]
        others = list(dict.fromkeys(_without(cell, over[0]) for cell in groups.cells)) if len(over) == 1 else []
        if 0 < len(others) <= MOST_LINES and len(labels) <= MOST_COLUMNS:
            return self._over_time(groups, over[0], others)
        if len(labels) == 1:
            return self._two_ways(groups) if len(groups.by) == 2 else self._bars()
        return self._by_group(groups) if len(labels) <= MOST_COLUMNS else self._bars()

    def weakness(self) -> Html | None:
        """Say what the sign beside values means, and how many have it."""
        if not self.weak.any():
            return None
        n, total = int(self.weak.sum()), self.weak.size
        how_many = self.say("weak_one") if total == 1 else self.say("weak", n=f"{n:,}", total=f"{total:,}")
        left_out = f" {self.say('suppressed')}" if self.look.suppress else None
        return tag("p", tag("strong", WEAK, aria_hidden="true"), f" {how_many}", left_out)

    def quantiles(self) -> Html | None:
        """Return the quantiles with their intervals, if there are any."""
        if not self.record.quantiles:
            return None
        rows, say = list(quantile_rows(self.record)), self.say
        shown = [[number(x) if isinstance(x, float) else x for x in row.values()] for row in rows]
        cells = [[*row[:-3], *(tag("td", part) for part in row[-3:])] for row in shown]
        by = map(self.look.grouping, list(rows[0])[:-4])
        return table([*by, say("share"), say("quantile"), say("low"), say("high")], cells, say("quantiles"))

    def _ordered(self, groups: GroupsRecord, i: int) -> list[str]:
        """Return the labels of one grouping, as they are ordered in records: what people read may sort otherwise."""
        recorded = groups if self._as_recorded is None else self._as_recorded
        shown = {(cell[i],): named[i] for cell, named in zip(recorded.cells, groups.cells, strict=True)}
        return [shown[label,] for (label,) in in_order(shown)]

    def _over_time(self, groups: GroupsRecord, over: int, others: Sequence[tuple[str, ...]]) -> Html:
        """Return lines over a part of times, one for each group, a chart for each output; the numbers are folded."""
        places = self._ordered(groups, over)
        rows = [others.index(_without(cell, over)) for cell in groups.cells]
        at = rows, [places.index(cell[over]) for cell in groups.cells]
        shape = len(others), len(places), len(self.labels)
        weak = np.zeros(shape, dtype=np.bool_)
        weak[at] = self.weak
        lines: list[NDArray[np.float64]] = []  # the values and both ends of their bands, where there are any
        for numbers in (self.value, self.noisy - self.errors, self.noisy + self.errors):
            lines.append(np.full(shape, np.nan))
            lines[-1][at] = np.where(self.weak & self.look.suppress, np.nan, numbers)
        panels: list[tuple[str, list[Band]]] = []
        for j, output in enumerate(self.labels):
            bands: list[Band] = []
            for i, other in enumerate(others):
                values, low, high = (line[i, :, j] for line in lines)
                if not np.isnan(values).all():
                    bands.append(Band(", ".join(other) or output, values, low, high, weak[i, :, j]))
            panels += [(output, bands)] if bands else []
        if not panels:
            return self._folded()
        grouping, ticks = self.look.grouping(groups.by[over]), self.write.tick
        label = f"{self.measure}, {grouping}"
        if len(self.labels) == 1:
            chart = band_charts(panels[0][1], places, ticks, label)
        else:
            chart = small_multiples(panels, places, ticks, label)
        caption = tag("p", f"{self.measure}{self.of}, {grouping}. {self.say('bands')}", class_="caption")
        return join(caption, chart, self._folded())

    def _two_ways(self, groups: GroupsRecord) -> Html:
        """Return a heat table of two groupings, the longer one down the page."""
        ways = [self._ordered(groups, i) for i in (0, 1)]
        down = 0 if len(ways[0]) >= len(ways[1]) else 1
        rows, columns = ways[down], ways[1 - down]
        at = tuple([ways[i].index(cell[i]) for cell in groups.cells] for i in (down, 1 - down))
        values, errors, weak = (np.full((len(rows), len(columns)), empty) for empty in (np.nan, np.nan, False))
        values[at], errors[at], weak[at] = self.value[:, 0], self.errors[:, 0], self.weak[:, 0]
        told = {self.write.error(error) for error in self.errors.ravel().tolist()}
        alike = f"; {self.say('each_error', error=told.pop())}" if len(told) == 1 else ""
        write = self.write.value if alike else self.write.both

        def text(i: int, j: int) -> str:
            return "" if math.isnan(values[i, j]) else write(values[i, j], errors[i, j])

        named = [self.look.grouping(groups.by[i]) for i in (down, 1 - down)]
        caption = self.say("by_group", measure=f"{self.measure}{self.of}", by=" × ".join(named), alike=alike)
        picture = self._heat(rows, columns, values, weak, caption, corner=" \\ ".join(named), text=text)
        return join(picture, self._folded() if _many(rows, columns) else None)

    def _by_group(self, groups: GroupsRecord) -> Html:
        """Return a heat table with a row for each group and a column for each output; where these are many bars too."""
        write, say, names = self.write, self.say, [", ".join(cell) for cell in groups.cells]
        records = [f"{count:,}" for count in groups.records]
        of_group = [write.error(error) for error in self.errors.max(axis=1).tolist()]
        measured = say("error" if self.record.noise.measurements is None else "error_at_most")
        columns = [(say("records"), records), (measured, of_group)]
        beside = [(tag("span", head, class_="whole"), cells) for head, cells in columns if len(set(cells)) > 1]
        told = [say("each_records", n=records[0]), say("each_error", error=of_group[0])]
        alike = "".join(f"; {text}" for text, (_, cells) in zip(told, columns, strict=True) if len(set(cells)) == 1)
        many = _many(names, [*self.labels, *(head for head, _ in beside)])
        beside = beside[: 0 if many else None]  # before the outputs: what they are read with is seen without scrolling
        first = len(beside)

        def text(i: int, j: int) -> str:
            return beside[j][1][i] if j < first else write.value(self.value[i, j - first], self.errors[i, j - first])

        empty = np.full((len(names), first), np.nan)
        named = ", ".join(map(self.look.grouping, groups.by))
        picture = self._heat(
            names,
            [*(head for head, _ in beside), *self.labels],
            np.column_stack([empty, self.value]),
            np.column_stack([empty > 0, self.weak]),
            say("by_group", measure=self.measure, by=named, alike=alike),
            corner=named,
            text=text,
            plain=first,
        )
        return join(picture, self._folded() if many else None)

    def _transitions(self) -> Html:
        """Return a heat table of the steps from each state to each, for every group."""
        states, groups = [self.look.name(state) for state in self.record.theta.states], self.record.groups
        cells = [""] if groups is None else [f": {', '.join(cell)}" for cell in groups.cells]
        numbers = (x.reshape(-1, len(states), len(states)) for x in (self.value, self.errors, self.weak))
        parts: list[Html] = []
        for cell, matrix, errors, weak in zip(cells, *numbers, strict=True):

            def text(i: int, j: int, matrix: Any = matrix, errors: Any = errors) -> str:
                return self.write.value(matrix[i, j], errors[i, j])

            each = self.say("each_error", error=self.write.error(float(errors.max())))
            caption = f"{self.say('steps_of', measure=self.measure, cell=cell)}; {each}"
            parts.append(self._heat(states, states, matrix, weak, caption, corner="→", text=text))
        return join(parts)

    def _heat(
        self,
        rows: Sequence[str],
        columns: Sequence[str],
        values: NDArray[np.float64],
        weak: NDArray[np.bool_],
        caption: str,
        **shown: Any,
    ) -> Html:
        """Return a heat table; where weak values are left out squares do not show them either."""
        if self.look.suppress and _many(rows, columns):
            values = np.where(weak, np.nan, values)
        marked = partial(self.look.marked, weak=True)
        return heat_map(rows, columns, values, caption, weak=weak, marked=marked, **shown)

    def _folded(self) -> Html:
        """Return the numbers behind a picture as a table, folded."""
        return fold(self.say("as_table"), self._bars(pictures=False))

    def _bars(self, *, pictures: bool = True) -> Html:
        """Return a table with a row and a bar for each value: the first are seen, more folded, very many left out."""
        write, say, groups = self.write, self.say, self.record.groups
        lows, highs = self.noisy - self.errors, self.noisy + self.errors
        ends = min(0.0, float(np.minimum(self.value, lows).min())), max(0.0, float(np.maximum(self.value, highs).max()))
        cells, records = ([()], [0]) if groups is None else (groups.cells, groups.records)
        labelled = [(*cell, label) for cell in cells for label in self.labels]
        of_group = [size for size in records for _ in self.labels]
        numbers = (x.ravel().tolist() for x in (self.value, self.noisy, self.errors, self.weak, lows, highs))
        values = list(zip(labelled, of_group, *numbers, strict=True))
        changed = self.record.postprocessing is not None and not self.look.suppress
        by = list[str]() if groups is None else [self.look.grouping(name) for name in groups.by]
        names = by if by and self.of else [*by, say("output")]  # of one output the caption says which it is
        alike = len(set(records)) == 1
        with_records = bool(by) and not alike
        heads = [
            *names,
            *([say("records")] if with_records else []),
            say("value"),
            *([say("noisy")] if changed else []),
            *([tag("span", say("picture"), class_="picture")] if pictures else []),
        ]

        def row(one: tuple[Any, ...]) -> Html:
            labels, size, value, noisy, error, weak, low, high = one
            hidden = weak and self.look.suppress
            return tag(
                "tr",
                *(tag("th", name, scope="row") for name in labels[: len(names)]),
                tag("td", f"{size:,}", class_="n") if with_records else None,
                tag("td", self.look.marked(write.both(value, error), weak), class_="n"),
                tag("td", write.value(noisy, error), class_="n") if changed else None,
                tag("td", None if hidden else _bar(value, low, high, ends), class_="bar") if pictures else None,
            )

        each = f"; {say('each_records', n=f'{records[0]:,}')}" if by and alike else ""
        caption = say("values_of", measure=self.measure, of=self.of if by else "", alike=each)
        caption += f". {say('bars')}" if pictures else "."

        def part(rows: Sequence[tuple[Any, ...]]) -> Html:
            return table(heads, map(row, rows), caption, names=len(names), class_="values", search=say("search"))

        seen = _FIRST if pictures and len(values) > _FIRST else _MOST
        more, left = values[seen:_MOST], len(values) - _MOST
        return join(
            part(values[:seen]),
            fold(say("more", n=f"{len(more):,}"), part(more)) if more else None,
            tag("p", say("rest", n=f"{left:,}"), class_="soft") if left > 0 else None,
        )


def _without(cell: Sequence[str], i: int) -> tuple[str, ...]:
    return tuple(label for j, label in enumerate(cell) if j != i)


def _many(rows: Sequence[str], columns: Sequence[str]) -> bool:
    """Return whether a heat table has no room for numbers, and shows squares."""
    return len(columns) > MOST_COLUMNS or len(rows) > MANY_ROWS


def _measure(record: ReleaseFields, look: Cover) -> str:
    """Say what values are numbers of, at the beginning of a sentence."""
    measure = measure_of(record.query.kind)
    return look.say.of(measure[:1].upper() + measure[1:])


def _bar(value: float, low: float, high: float, ends: tuple[float, float]) -> Html:
    """Return the picture of one value and of the ends of its error, between the ends of all pictures."""

    def at(x: float) -> float:
        return round(100 * (x - ends[0]) / ((ends[1] - ends[0]) or 1.0), 2)

    left, right, zero, low, high = map(at, (min(value, 0.0), max(value, 0.0), 0.0, low, high))
    return bar(
        tag("rect", x=left, y=4, width=round(right - left, 2), height=12),
        tag("path", d=f"M{zero} 0V20", class_="zero"),
        tag("path", d=f"M{low} 10H{high}M{low} 6V14M{high} 6V14"),
    )


def notes_of(record: ReleaseFields, look: Cover) -> list[str]:
    """Return what is said below the values: their errors together, and post-processing."""
    outputs, say, base, query = len(record.values), look.say, record.data.base, record.calibration.query
    lines: list[str] = []
    bins = None
    if base is not None and query is not None:
        bins = bins_at_middles(decode(query), record.theta.states, base.bins)
    if bins is not None:
        low, high = bins.clamped or (0.0, 0.0)
        lines += [say("middles", off=number(bins.off), low=number(low), high=number(high))]
    if outputs > 1:
        most_error = record.accuracy(0.05, joint=True)
        values = say("plain_values" if record.postprocessing is None else "noisy_values")
        lines += [say("together", n=f"{outputs:,}", values=values, error=Numbers(record).error(most_error))]
    return lines if record.postprocessing is None else [*lines, say("post")]


def _counts_measured(record: ReleaseFields) -> Html | None:
    """Return the counts that got noise, where the values follow from such."""
    if record.noise.measurements is None:
        return None
    rows = [[", ".join(m.states), number(m.scale, 6)] for m in record.noise.measurements[:_MOST]]
    shown = table(["records counted", "noise scale"], rows, "Counts that got noise; all values follow from them")
    where = "" if record.groups is None else " in each group"
    return fold(f"The noise has the best shape found: {len(record.noise.measurements)} counts got it{where}", shown)


def each_part(record: ReleaseFields, frame: "pl.DataFrame | None", look: Cover) -> Html:
    """Return the values of all subjects, from their table where it is at hand: what they are like, and each."""
    labels, table_file = record.query.labels, None if record.subjects is None else record.subjects.table
    each = f"Each value is {_errors_of_subjects(record, frame)}."
    size = f"{record.data.subjects:,} subjects with {counted(len(labels), 'value')} each."
    lead = tag("p", f"{size} {each}", class_="lead")
    if frame is None:
        ended = ", which was not at hand when this page was made."
        name = None if table_file is None else tag("code", table_file.name)
        return join(lead, tag("p", "The values are in the table ", name, ended, class_="soft") if name else None)
    shares = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
    heads = [look.say("output"), "least", "5%", "25%", "median", "75%", "95%", "largest"]
    rows: list[list[str]] = []
    for label in labels[:_MOST]:
        column = frame.filter(frame["output"] == label)["value"].to_numpy()
        rows.append([look.name(label), *(number(float(x), 3) for x in np.quantile(column, shares))])
    caption = "The released values of all subjects, noise included: quantiles over the subjects"
    return join(lead, table(heads, rows, caption), _each_subject(record, frame, look))


def _each_subject(record: ReleaseFields, frame: "pl.DataFrame", look: Cover) -> Html:
    """Return a row for each subject, with a search above; the first columns and rows where there are very many."""
    write, labels = Numbers(record), record.query.labels[:MOST_COLUMNS]
    most = _MOST_SUBJECTS * len(record.query.labels)
    cells: dict[str, dict[str, Any]] = {}
    for subject, output, value, error in frame.head(most).select("subject", "output", "value", "error_95").iter_rows():
        cells.setdefault(str(subject), {})[output] = look.marked(write.both(value, error), abs(value) <= error)
    rows = [[look.name(subject), *(found.get(label, "") for label in labels)] for subject, found in cells.items()]
    caption = look.say("values_of", measure=_measure(record, look), of="", alike="")
    heads = [look.say("subject"), *map(look.name, labels)]
    shown = table(heads, rows, caption, search=look.say("search"), class_="long")
    left = record.data.subjects - len(rows)
    return join(shown, tag("p", look.say("rest", n=f"{left * len(labels):,}"), class_="soft") if left > 0 else None)


def _errors_of_subjects(record: ReleaseFields, frame: "pl.DataFrame | None") -> str:
    """Say how far values may be from the exact ones: in shares too where they are, from the table or for a mean."""
    error, within = record.accuracy_95.each, "of the exact one with 95% probability"
    if record.cell_that_divides is None:
        return f"within {number(error)} {within}"
    if frame is None:
        n = round(record.data.records / record.data.subjects)
        mean = f"a subject with {counted(n, 'record')}, which is the mean"
        divided = f"(it is {number(error)} divided by the subject's number of records)"
        return f"within {number(error / n, 3)} {within} for {mean} {divided}"
    least, most = (int(n) for n in (frame["records"].min(), frame["records"].max()))  # type: ignore[arg-type]
    low, high = number(error / most, 3), number(error / least, 3)
    if low == high:
        return f"within {low} {within}"
    ends = f"from ± {low} for {counted(most, 'record')} to ± {high} for {counted(least, 'record')}"
    return f"near the exact one, with 95% probability {ends} of a subject"


def measured_part(record: MeasurementFields) -> Html:
    """Return the value of a measurement as it is in its record."""
    try:
        text = msgspec.json.format(msgspec.json.encode(record.value), indent=1).decode()
    except (PufferfishError, TypeError, ValueError):
        text = repr(record.value)
    if isinstance(record.value, float) and math.isfinite(record.value):
        text = number(record.value, 6)
    return join(
        tag("p", record.measurement),
        tag("pre", shortened(text, _LONGEST_VALUE)),
        tag(
            "p",
            f"The algorithm alone tells at most {number(record.record_loss)} nats of one record, as its privacy map "
            f"says. With correlation this is at most {number(record.leakage)}. Its error depends on the algorithm.",
        ),
    )
