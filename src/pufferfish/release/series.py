"""A series of releases of one question: values over time, totals, averages and changes, each with its error.

All of it is computed from records that are published: it costs no privacy. Errors are those of the noise alone, by the
exact law of what is shown: a sum of independent discrete Laplace variables for totals and averages, the difference of
two for a change. No normal distribution stands in for them.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish._base.checked import listed, whole_at_least
from pufferfish._base.frozen import FrozenDict, ReadOnly
from pufferfish._base.reading import display_path
from pufferfish._base.view import Grid, Printed, View, frame_of_columns
from pufferfish._base.words import did_you_mean, names_of
from pufferfish._core.numbers.laplace import laplace_sum
from pufferfish._draw.figure import PALE, clean, new_figure, titled
from pufferfish.errors import ParameterError, shortened
from pufferfish.release.record import ReleaseFields
from pufferfish.release.release import Release
from pufferfish.release.sums import ALPHA, Value, values_of
from pufferfish.release.verification import check_named_once, one_history

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CELLS = 20_000
_SURE = 1e-12
"""What of a law lies further out than is looked at."""


def error_of_difference(one: Value, other: Value, alpha: float = ALPHA) -> float:
    """Return what the error of a difference of two values exceeds with probability at most alpha; they are independent.

    They may be shares of different numbers of records, whose noise is of units that are worth different things.
    """
    return _error(one.worth, one.scales, other.worth, other.scales, alpha)


@lru_cache(maxsize=4096)  # groups of the same sizes, week after week, ask for the same
def _error(a: float, scales: tuple[float, ...], b: float, others: tuple[float, ...], alpha: float) -> float:
    if a == b:
        return laplace_sum(tuple(sorted((*scales, *others)))).accuracy(alpha) * a
    x_law, y_law = laplace_sum(scales), laplace_sum(others)
    # cells of the first law, rounded away from 0, with the probability of each
    farthest = x_law.accuracy(_SURE)
    width = max(1, -(-farthest // _CELLS))
    edges = np.arange(0, farthest + width, width)
    tails = np.array([x_law.tail(int(t)) for t in edges])
    middle, mass = 1 - tails[0], np.append(tails[:-1] - tails[1:], tails[-1]) / 2
    cells = [(m, x) for m, x in zip(mass, a * np.append(edges[1:], edges[-1] + width), strict=True) if m]
    tail = cache(y_law.tail)

    def above(reach: float) -> float:  # P(Y > reach / b)
        if reach >= 0:
            return tail(math.floor(reach / b)) / 2
        whole = math.ceil(-reach / b) - 1
        return 1.0 if whole < 0 else 1 - 0.99 * tail(whole) / 2

    def beyond(t: float) -> float:
        return middle * 2 * above(t) + float(sum(m * 2 * (above(t - x) + above(t + x)) for m, x in cells))

    high = a * farthest + b * y_law.accuracy(_SURE)
    larger, worth = (x_law, a) if a * max(scales) > b * max(others) else (y_law, b)
    low = larger.accuracy(alpha) * worth / 2
    for _ in range(40):
        middle_of = (low + high) / 2
        low, high = (low, middle_of) if beyond(middle_of) <= alpha else (middle_of, high)
        if high - low <= 1e-4 * high:
            break
    return high


NUMBERS = (
    *("value", "error_95", "change", "change_error_95", "exceeds_noise"),
    *("total", "total_error_95", "average", "average_error_95"),
)
"""Columns of a series that are numbers, or say whether one is larger than another."""

OF_GROUPS = ("difference", "difference_error_95", "differs")
"""The same where the releases are by groups: of each group against one of them."""


def _difference(value: Value, other: Value | None) -> tuple[float | None, float | None, bool | None]:
    """Return how far a value is from another one, its error, and whether it is more; nothing without another."""
    if other is None:
        return None, None, None
    difference, error = value.value - other.value, error_of_difference(value, other)
    return difference, error, abs(difference) > error


@dataclass(frozen=True)
class ReleaseSeries(ReadOnly, Printed):
    """Releases of one question, first to last; made by :func:`series`.

    ``labels`` are what each is called, such as its week, and ``average`` over how many in a row averages are taken.
    ``against`` is the group that others are compared with, its label under every grouping; None without groups.
    """

    releases: tuple[ReleaseFields, ...]
    labels: tuple[str, ...]
    average: int
    against: tuple[str, ...] | None = None

    @property
    def history(self) -> Any:
        """Whether no two of the releases follow the same entry of a ledger (:func:`verify_together`)."""
        return one_history(list(zip(self.labels, self.releases, strict=True)))

    @cached_property
    def rows(self) -> tuple[FrozenDict[str, Any], ...]:
        """A row for each release, group and output, as :meth:`to_frame` has them."""
        rows = list[FrozenDict[str, Any]]()
        seen: dict[tuple[str, ...], list[Value]] = {}
        for label, release in zip(self.labels, self.releases, strict=True):
            values, by = values_of(release), () if release.groups is None else release.groups.by
            for key, value in values.items():
                before = seen.setdefault(key, [])
                row: dict[str, Any] = {"period": label, **dict(zip((*by, "output"), key, strict=True))}
                row |= {"value": value.value, "error_95": value.error_95}
                last = before[-1] if before else None
                row |= zip(("change", "change_error_95", "exceeds_noise"), _difference(value, last), strict=True)
                for name, past in (("total", before), ("average", before[max(len(before) - self.average + 1, 0) :])):
                    whole = value.total_with(past)
                    parts = len(past) + 1 if name == "average" and value.divided_by is None else 1
                    row |= {name: whole.value / parts, f"{name}_error_95": whole.error_95 / parts}
                if self.against is not None:
                    other = None if key[:-1] == self.against else values.get((*self.against, key[-1]))
                    row |= zip(OF_GROUPS, _difference(value, other), strict=True)
                before.append(value)
                rows.append(FrozenDict(row))
        return tuple(rows)

    def to_frame(self, *, into: str = "polars") -> Any:
        """Return a row for each release and output, as a table of polars, or of the library named.

        Columns: ``period``, the groupings, ``output``, ``value`` and ``error_95``; ``change`` since the last release
        that the group is in, its error, and whether it ``exceeds_noise``: whether it is larger than 95% of changes by
        noise; ``total`` of all releases so far (of shares: the share of all their records), and ``average`` over the
        last few. Of groups, ``difference`` from the group :attr:`against` in the same release, its error, and whether
        it ``differs``: whether that is larger than 95% of differences by noise. Nothing is post-processed: values are
        as the noise left them.
        """
        rows = self.rows
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        numbers = dict.fromkeys((*NUMBERS, *OF_GROUPS), float) | {"exceeds_noise": bool, "differs": bool}
        return frame_of_columns(columns, {name: numbers.get(name, str) for name in columns}, into)

    def _view(self) -> View:
        rows = self.rows
        shown = [*self.names, *NUMBERS[:7], *(OF_GROUPS if self.against is not None else ())]
        words = {True: "yes", False: "", None: ""}
        marks = ("exceeds_noise", "differs")
        table = [[words[row[name]] if name in marks else row[name] for name in shown] for row in rows]
        caption = "Values over time; noise alone makes a change that exceeds it in at most 5%"
        caption += "" if self.against is None else f", and so a difference from {self.against_in_words}"
        notes = () if self.history.holds is not False else (self.history.says,)
        query = self.releases[0].query
        return View(f"{query.kind}, {len(self.releases)} releases", {}, [Grid(caption, shown, table)], notes=notes)

    @property
    def names(self) -> list[str]:
        """The columns that say which value it is."""
        return [name for name in self.rows[0] if name not in (*NUMBERS, *OF_GROUPS)]

    @property
    def against_in_words(self) -> str:
        """The group that others are compared with; empty without groups."""
        return ", ".join(self.against or ())

    def plot(self) -> "Figure":
        """Draw each output over time, with the errors of 95%, by groups in a panel each; needs matplotlib."""
        outputs = self.releases[0].query.labels if self.against is not None else [None]
        wide = min(12.0, max(5.5, 0.3 * len(self.labels) + 3))
        figure = new_figure(wide, 4.0 if len(outputs) == 1 else 1.2 + 2.4 * len(outputs))
        panels: Any = figure.subplots(len(outputs), 1, squeeze=False)[:, 0]
        for axes, output in zip(panels, outputs, strict=True):
            self._draw(axes, output)
            clean(axes)
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=3, frameon=False, fontsize=9
        )
        marks = "bands: ± 95%; rings: changes that exceed noise"
        marks += "" if self.against is None else f"; crosses: so different from {self.against_in_words}"
        titled(figure, f"{self.releases[0].query.kind} over time", marks)
        return figure

    def _draw(self, axes: Any, output: str | None) -> None:
        """Draw the lines of one output, one for each group, or of all outputs."""
        place = {label: n for n, label in enumerate(self.labels)}
        lines: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for row in self.rows:
            if output in (None, row["output"]):
                lines.setdefault(tuple(row[name] for name in self.names[1:]), []).append(row)
        for key, rows in lines.items():
            at, values = [place[row["period"]] for row in rows], np.array([row["value"] for row in rows])
            errors = np.array([row["error_95"] for row in rows])
            name = " ".join(map(str, key if output is None else key[:-1]))
            (line,) = axes.plot(at, values, marker="o", markersize=4, label=name)
            color = line.get_color()
            axes.fill_between(at, values - errors, values + errors, color=color, alpha=0.15, linewidth=0)
            for column, marker in (("exceeds_noise", "o"), ("differs", "x")):
                marked = [n for n, row in enumerate(rows) if row.get(column)]
                shape: dict[str, Any] = {"marker": marker, "markersize": 9, "markerfacecolor": "none", "color": color}
                axes.plot([at[n] for n in marked], values[marked], linestyle="", **shape)
        axes.set_xticks(range(len(self.labels)), self.labels, rotation=45 if len(self.labels) > 8 else 0)
        axes.grid(color=PALE)
        if output is not None:
            axes.set_title(output, loc="left", fontsize=10)


def series(
    releases: Sequence[Any], *, labels: Sequence[str] | None = None, average: int = 4, against: Any = None
) -> ReleaseSeries:
    """Join releases of one query over time: values, changes and totals, with the errors of their noise.

    Parameters
    ----------
    releases : sequence of Release or path-like
        At least two, first to last: the same query on other rows, as of one week after another.
    labels : sequence of str, optional
        What each is called; by default the name of its file, or that of its table.
    average : int, default 4
        Over how many releases in a row averages are taken.
    against : str or sequence of str, optional
        Of releases by groups the group that others are compared with, its label, or one under every grouping; by
        default the first.

    The series has ``to_frame()``, ``plot()`` and ``history``.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    >>> weeks = [pf.read_sequences(pl.DataFrame({"s": ["rest", "active"] * n}), "s") for n in (400, 500)]
    >>> query, releases = pf.Histogram(), []
    >>> for week in weeks:
    ...     noise = pf.LeakagePropagation(chain, week.length).calibrate(query, epsilon=1)
    ...     releases.append(pf.release(week, query, noise))
    >>> pf.series(releases, labels=["1", "2"]).to_frame()["period"].to_list()
    ['1', '1', '2', '2']
    """
    given = listed(releases, "releases", 'releases or their files, such as ["week1.json", "week2.json"]')
    if len(given) < 2:
        raise ParameterError(f"releases has {len(given)}, expected at least two")
    window = whole_at_least(average, "average", 1)
    for each in given:
        if not isinstance(each, Release | str | os.PathLike):
            raise ParameterError(f"releases has {shortened(repr(each))}, expected a release or its file")
    read = [each if isinstance(each, Release) else Release.from_json(each) for each in given]
    names = [label_of(each, release) for each, release in zip(given, read, strict=True)]
    if labels is not None:
        names = [str(label) for label in listed(labels, "labels", "a name for each release")]
        if len(names) != len(read):
            raise ParameterError(f"labels has {len(names)} names for {len(read)} releases: give one for each")
    check_named_once(list(zip(names, read, strict=True)))
    for name, release in zip(names[1:], read[1:], strict=True):
        for (what, theirs), ours in zip(_question(release).items(), _question(read[0]).values(), strict=True):
            if theirs != ours:
                raise ParameterError(
                    f"{name} has the {what} {shortened(repr(theirs))}, and {names[0]} {shortened(repr(ours))}: a "
                    "series is of one question"
                )
    return ReleaseSeries(tuple(read), tuple(names), window, _reference(read, against))


def _question(release: ReleaseFields) -> dict[str, Any]:
    """Return what releases of a series share; sums of different values of states, or in other units, do not add."""
    asked = release.calibration.query or {}
    while isinstance(asked.get("query"), dict):
        asked = asked["query"]
    values = asked.get("values")
    return {
        "query": release.query.kind,
        "outputs": release.query.labels,
        "groupings": release.groups and release.groups.by,
        "values of states": None if values is None else f"{values} of {', '.join(release.theta.states)}",
    }


def _reference(releases: Sequence[ReleaseFields], against: Any) -> tuple[str, ...] | None:
    """Return the group that others are compared with, checked; None without groups."""
    groups = [release.groups for release in releases if release.groups is not None]
    if not groups:
        if against is not None:
            raise ParameterError(f"against is {shortened(repr(against))}, and the releases are not by groups (--by)")
        return None
    known = list(dict.fromkeys(tuple(map(str, cell)) for group in groups for cell in group.cells))
    if against is None:
        return known[0]
    named = (against,) if isinstance(against, str) else tuple(map(str, listed(against, "against", "a group's labels")))
    if named not in known:
        name, names = ", ".join(named), [", ".join(cell) for cell in known]
        known_as = f"{did_you_mean(name, names)} Groups: {names_of(names)}"
        raise ParameterError(f"against is {shortened(repr(name))}, which is no group.{known_as}")
    return named


def label_of(given: Any, release: ReleaseFields) -> str:
    """Return what a release is called: the name of its file, or that of its table."""
    if not isinstance(given, ReleaseFields):
        return Path(display_path(given)).stem
    reading = release.data.reading
    return release.created[:10] if reading is None else Path(reading.source).stem
