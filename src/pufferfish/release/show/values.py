"""The released values on a page: a table whose bars show the values and the errors of their noise.

Before it: which values are no larger than their own error, of which text and pages warn alike.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pufferfish._base.view import Html, counted, join, tag
from pufferfish._base.words import number
from pufferfish._draw.heat import MOST_COLUMNS, WEAK, heat_map, marked_weak
from pufferfish._draw.page import fold, table
from pufferfish.data.groups import cells_for_people
from pufferfish.errors import PufferfishError, shortened
from pufferfish.queries import Transitions, measure_of
from pufferfish.release.facts import GroupsRecord
from pufferfish.release.record import MeasurementFields, ReleaseFields, quantile_rows, read_table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["each_part", "joint_error", "measured_part", "values_part", "weak_line", "weak_lines", "weak_values"]

# -- Which released values are no larger than their own error: reports mark them, and it is said how many ------------


def weak_values(record: ReleaseFields) -> NDArray[np.bool_]:
    """Return which values are no larger than the error of their noise; of the shape of ``value``."""
    return np.abs(record.value) <= record.accuracies(0.05)


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
    """Return this line where it is so of most values."""
    weak = weak_values(record)
    return [weak_line(weak)] if 2 * int(weak.sum()) > weak.size else []


def joint_error(record: ReleaseFields) -> str:
    """Return the error of all values together, to the digits of the noise in the group where that is most."""
    most_error = 1.0 if record.groups is None else record.groups.most_error
    return record.writer()(record.accuracy(0.05, joint=True), 1 / most_error)


_FIRST, _MOST = 60, 1_000
"""Rows that are shown at once, and when they are unfolded."""

_LONGEST_VALUE = 4_000


@dataclass(frozen=True, slots=True)
class _Value:
    """One released value: its names, itself, what the noise left, its error, and the records of its group."""

    names: tuple[str, ...]
    value: float
    noisy: float
    error: float
    over: float = 1
    records: int = 0


def values_part(record: ReleaseFields) -> Html:
    """Return the values of a release as pictures and tables."""
    record = _for_people(record)
    if record.query.kind in Transitions.kinds:
        shown = _transitions(record)
    elif record.groups is not None and 1 < len(record.query.labels) <= MOST_COLUMNS:
        shown = _by_group(record, record.groups)
    else:
        notes = [tag("p", f"{line[0].upper()}{line[1:]}.") for line in weak_lines(record)]
        shown = join(notes, _values_table(record, list(_values(record))))
    return join(_quantiles(record), shown, _notes_below(record))


def _for_people(record: ReleaseFields) -> ReleaseFields:
    """Return a release whose groups are named as people name them."""
    groups = record.groups
    if groups is None:
        return record
    return replace(record, groups=replace(groups, cells=cells_for_people(groups.by, groups.cells)))


def _values(record: ReleaseFields) -> Iterator[_Value]:
    """Yield the values, those of the first group first."""
    labels, groups, at = record.query.labels, record.groups, 0
    if groups is None:
        for label, value, noisy, error in zip(
            labels, record.values, record.noisy_values, record.accuracies(0.05).tolist(), strict=True
        ):
            yield _Value((label,), value, noisy, error)
        return
    divisors = groups.divided_by or [1] * len(groups.cells)
    of_groups = zip(groups.cells, groups.records, divisors, record.accuracies(0.05).tolist(), strict=True)
    for cell, records, over, errors in of_groups:
        for label, error in zip(labels, errors, strict=True):
            yield _Value((*cell, label), record.values[at], record.noisy_values[at], error, over, records)
            at += 1


@dataclass(frozen=True, slots=True)
class _Common:
    """What is the same in all rows of a table of groups, as text; None of what is not."""

    records: str | None = None
    error: str | None = None

    def in_words(self, error: str) -> str:
        """Return it for a caption, with the heading of the errors."""
        parts = [
            *([] if self.records is None else [f"{self.records} records in each group"]),
            *([] if self.error is None else [f"{error}: {self.error} for each value"]),
        ]
        return f"; {', '.join(parts)}" if parts else ""


def _common(records: Sequence[str], errors: Sequence[str]) -> _Common:
    """Return what the caption says once, so that values are seen first on a narrow screen.

    Examples
    --------
    >>> _common(["420", "420"], ["0.50", "0.40"]).in_words("± 95%"), _common(["9"], ["0.1"]).in_words("± 95%")
    ('; 420 records in each group', '')
    """
    same = [texts[0] if len(texts) > 1 and len(set(texts)) == 1 else None for texts in (records, errors)]
    return _Common(*same)


def _values_table(record: ReleaseFields, values: Sequence[_Value]) -> Html:
    """Return a table with a row and a bar for each value: the first are seen, more are folded, very many left out."""
    least = min(0.0, *(min(v.value, v.noisy - v.error) for v in values))
    most = max(0.0, *(max(v.value, v.noisy + v.error) for v in values))
    changed, write = record.postprocessing is not None, record.writer()
    by: list[str] = [] if record.groups is None else record.groups.by
    one_output = (
        bool(by) and len(record.query.labels) == 1
    )  # then the groups are the names, and the caption has the output
    names = [*by, *([] if one_output else ["output"])]
    alike = _common([f"{v.records:,}" for v in values], [write(v.error, v.over) for v in values]) if by else _Common()
    with_records, with_errors = bool(by) and alike.records is None, alike.error is None
    picture = tag("span", "picture", class_="picture")  # a heading that stands left, as it is of no number
    heads = [
        *names,
        *(["records"] if with_records else []),
        "value",
        *(["noisy value"] if changed else []),
        *(["± 95%"] if with_errors else []),
        picture,
    ]

    def row(v: _Value) -> Html:
        return tag(
            "tr",
            *(tag("th", name, scope="row") for name in v.names[: len(names)]),
            tag("td", f"{v.records:,}", class_="n") if with_records else None,
            tag("td", write(v.value, v.over), class_="n"),
            tag("td", write(v.noisy, v.over), class_="n") if changed else None,
            tag("td", write(v.error, v.over), class_="n") if with_errors else None,
            tag("td", _bar(v, least, most), class_="bar"),  # last: a narrow screen shows the numbers first
        )

    measure = measure_of(record.query.kind)
    of_output = f" of {record.query.labels[0]}" if one_output else ""
    bar = "Bar: the value; line: the noisy value and what its noise may hide, 95%"
    caption = f"Released values{of_output} ({measure}){alike.in_words('± 95%')}. {bar}"
    first = table(heads, map(row, values[:_FIRST]), caption, names=len(names), class_="values")
    if len(values) <= _FIRST:
        return first
    more = values[_FIRST:_MOST]
    folded = fold(
        f"{len(more):,} more values", table(heads, map(row, more), caption, names=len(names), class_="values")
    )
    left = len(values) - _MOST
    rest = tag("p", f"{left:,} further values are in the release file.", class_="soft") if left > 0 else None
    return join(first, folded, rest)


def _bar(v: _Value, least: float, most: float) -> Html:
    """Return the picture of one value, of the width of its cell; the numbers stand beside it."""
    width = (most - least) or 1.0

    def at(x: float) -> float:
        return round(100 * (x - least) / width, 2)

    left, right, zero = at(min(v.value, 0.0)), at(max(v.value, 0.0)), at(0.0)
    low, high = at(v.noisy - v.error), at(v.noisy + v.error)
    return tag(
        "svg",
        tag("rect", x=left, y=4, width=round(right - left, 2), height=12),
        tag("path", d=f"M{zero} 0V20", class_="zero"),
        tag("path", d=f"M{low} 10H{high}M{low} 6V14M{high} 6V14"),
        viewBox="0 0 100 20",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _by_group(record: ReleaseFields, groups: GroupsRecord) -> Html:
    """Return a heat map with a row for each group and a column for each output; where these are many a table too."""
    labels, shape = record.query.labels, (len(groups.cells), len(record.query.labels))
    values = np.array(record.values).reshape(shape)
    divisors = groups.divided_by or [1] * shape[0]
    names = [", ".join(cell) for cell in groups.cells]
    records = [f"{count:,}" for count in groups.records]
    write = record.writer(digits=2)  # what a table of many columns has room for
    errors = [write(error, over) for error, over in zip(groups.error_95, divisors, strict=True)]
    weak = weak_values(record)
    error_head = "± 95%" if record.noise.measurements is None else "± 95%, at most"
    alike = _common(records, errors)
    columns: list[tuple[Any, list[str]]] = [
        *([("records", records)] if alike.records is None else []),
        *([(tag("span", error_head, class_="whole"), errors)] if alike.error is None else []),
    ]
    caption = (
        f"Released values ({measure_of(record.query.kind)}), a row for each group: {', '.join(groups.by)}"
        f"{alike.in_words(error_head)}"
    )
    many = len(names) > 60 or len(labels) + len(columns) > MOST_COLUMNS
    beside = columns[: 0 if many else None]  # before the outputs: what they are read with is seen without scrolling
    first = len(beside)

    def text(i: int, j: int) -> str:
        return beside[j][1][i] if j < first else write(values[i, j - first], divisors[i])

    empty = np.full((shape[0], first), np.nan)
    picture = heat_map(
        names,
        [*(head for head, _ in beside), *labels],
        np.column_stack([empty, values]),
        caption,
        corner=", ".join(groups.by),
        text=text,
        plain=first,
        weak=np.column_stack([np.zeros(empty.shape, dtype=np.bool_), weak]),
    )
    if not many:
        return join(_weakness(weak), picture)
    rows = [
        [names[i], *(cells[i] for _, cells in columns)]
        + [
            marked_weak(write(value, divisors[i])) if weak[i, j] else write(value, divisors[i])
            for j, value in enumerate(values[i].tolist())
        ]
        for i in range(min(len(names), _MOST))
    ]
    rows_part = table([", ".join(groups.by), *(head for head, _ in columns), *labels], rows, caption)
    which = "The groups" if len(rows) == len(names) else f"The {len(rows):,} first groups"
    return join(_weakness(weak), picture, fold(f"{which} as a table", rows_part))


def _weakness(weak: NDArray[np.bool_]) -> Html | None:
    """Say what the sign beside values means, and how many have it."""
    if not weak.any():
        return None
    return tag("p", tag("strong", WEAK, aria_hidden="true"), f" {weak_line(weak)}; they have no colour.")


def _transitions(record: ReleaseFields) -> Html:
    """Return a heat map of the steps from each state to each, for every group."""
    states, write = record.theta.states, record.writer()
    value = record.value.reshape(-1, len(states), len(states))
    cells = [""] if record.groups is None else [", ".join(cell) for cell in record.groups.cells]
    error = record.accuracy(0.05)
    weak = weak_values(record).reshape(value.shape)
    parts = [
        heat_map(
            states,
            states,
            matrix,
            f"Released steps ({measure_of(record.query.kind)}) from each state (rows) to each (columns)"
            + (f": {cell}" if cell else ""),
            corner="from \\ to",
            text=lambda i, j, m=matrix: write(m[i, j], 1),
            weak=faint,
        )
        for cell, matrix, faint in zip(cells, value, weak, strict=True)
    ]
    return join(
        _weakness(weak),
        parts,
        tag(
            "p",
            f"Each of the {_values_with_errors(record)} is within {write(error, 1)} of the exact one with 95% "
            "probability.",
        ),
    )


def _quantiles(record: ReleaseFields) -> Html:
    """Return the quantiles with their intervals, if there are any."""
    if not record.quantiles:
        return Html("")
    rows = list(quantile_rows(record))
    *heads, what, _, _ = rows[0]
    shown = [[number(x) if isinstance(x, float) else x for x in row.values()] for row in rows]
    caption = f"Quantiles: the {what} up to which a share of the records is; all intervals hold together, 95%"
    cells = [[*row[:-3], tag("td", row[-3]), tag("td", f"{row[-2]} to {row[-1]}")] for row in shown]
    return table([*heads[:-1], "share", what, "interval"], cells, caption)


def _values_with_errors(record: ReleaseFields) -> str:
    """Name the values that errors are of: post-processing may move a value further from its exact one."""
    return "values" if record.postprocessing is None else "noisy values (before they were made possible ones)"


def _notes_below(record: ReleaseFields) -> Html:
    """Return what is said below the values: their errors together, post-processing, and the counts that got noise."""
    outputs = len(record.values)
    lines: list[Any] = []
    if outputs > 1:
        lines += [
            tag(
                "p",
                f"All {outputs:,} {_values_with_errors(record)} together are within {joint_error(record)} with 95% "
                "probability.",
            )
        ]
    if record.postprocessing is not None:
        lines += [
            tag(
                "p",
                "The values were made possible ones after the noise was added (not negative, or with the public total, "
                "or within the range of the query). This costs no privacy.",
            )
        ]
    if record.noise.measurements is not None:
        rows = [[", ".join(m.states), number(m.scale, 6)] for m in record.noise.measurements[:_MOST]]
        counts_part = table(
            ["records counted", "noise scale"], rows, "Counts that got noise; all values follow from them"
        )
        where = "" if record.groups is None else " in each group"
        counts = f"{len(record.noise.measurements)} counts got it{where}"
        lines += [fold(f"The noise has the best shape found: {counts}", counts_part)]
    return join(lines)


def each_part(record: ReleaseFields, folder: Path | None, values: Path | None) -> Html:
    """Return what the values of all subjects are like, from the table beside the record where it is at hand."""
    labels = record.query.labels
    table_record = None if record.subjects is None else record.subjects.table
    path = values or (None if folder is None or table_record is None else folder / table_record.name)
    frame = read_table(record, path) if table_record is not None and path is not None and path.is_file() else None
    lead = tag(
        "p",
        f"{record.data.subjects:,} subjects with {counted(len(labels), 'value')} each. Each "
        f"value is {_errors_of_subjects(record, frame)}.",
        class_="lead",
    )
    if table_record is None:
        return lead
    name = tag("p", "The values are in the table ", tag("code", table_record.name), ".")
    if frame is None:
        return join(lead, name, tag("p", "It was not at hand when this page was made.", class_="soft"))
    shares = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
    heads = ["output", "least", "5%", "25%", "median", "75%", "95%", "largest"]
    rows: list[list[str]] = []
    for label in labels[:_MOST]:
        column = frame.filter(frame["output"] == label)["value"].to_numpy()
        rows.append([label, *(number(float(x), 3) for x in np.quantile(column, shares))])
    caption = "The released values of all subjects, noise included: quantiles over the subjects"
    return join(lead, name, table(heads, rows, caption))


def _errors_of_subjects(record: ReleaseFields, frame: "pl.DataFrame | None") -> str:
    """Say how far values may be from the exact ones: in shares too where they are, from the table or for a mean."""
    error = record.accuracy_95.each
    if record.cell_that_divides is None:
        return f"within {number(error)} of the exact one with 95% probability"
    if frame is None:
        n = round(record.data.records / record.data.subjects)
        mean = f"a subject with {counted(n, 'record')}, which is the mean"
        return (
            f"within {number(error / n, 3)} of the exact one with 95% probability for {mean} (it is {number(error)} "
            "divided by the subject's number of records)"
        )
    least, most = (int(n) for n in (frame["records"].min(), frame["records"].max()))  # type: ignore[arg-type]
    low, high = number(error / most, 3), number(error / least, 3)
    if low == high:
        return f"within {low} of the exact one with 95% probability"
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
