"""The table of a comparison: a row for each mechanism and noise, and how it prints."""

import os
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from pufferfish._base.checked import listed
from pufferfish._base.view import Grid, Shown, View, frame_of_columns
from pufferfish._base.words import at_most
from pufferfish._base.writing import write_whole
from pufferfish._draw.page import PREVIEW
from pufferfish.compare.rows import NOT_ASKED, ComparisonRow, by_reason, too_little
from pufferfish.errors import NotApplicableError, ParameterError, printable
from pufferfish.mechanisms.calibration import Calibration

_NARROWEST, _WIDEST, _WHERE_UNKNOWN = 80, 120, 100
"""Columns that the text of a comparison takes: those of the terminal, within bounds."""


@dataclass(frozen=True)
class Comparison(Shown, Sequence[ComparisonRow]):
    """Rows of a comparison, those that apply first, by their noise; prints as a table.

    Parameters
    ----------
    rows : tuple of ComparisonRow
        One per mechanism.
    title, measure : str
        What was compared, and what the query's answers are numbers of, in words.
    by_epsilon : bool, default False
        Whether an accuracy was asked for, and rows differ by their epsilon.
    bound_seconds : float, default 0
        Time to find the lower bound of the noise, which no row counts.
    contest : Contest, optional
        What the mechanisms are asked again by; None in a comparison made by hand.
    """

    rows: tuple[ComparisonRow, ...]
    title: str
    measure: str
    by_epsilon: bool = False
    bound_seconds: float = 0.0
    contest: Any = field(default=None, repr=False, compare=False)

    @property
    def of_shapes(self) -> bool:
        """Whether noise of the best shape was asked for too; rows are then in the order of their expected error."""
        return any(row.noise == "best" for row in self.rows)

    @property
    def recommended(self) -> ComparisonRow | None:
        """The least noise that a ledger can add up with that of other releases; of all, where nothing can be added up.

        None where no mechanism applies.
        """
        return next((row for row in self.rows if row.recommended), None)

    @property
    def least(self) -> ComparisonRow | None:
        """The least noise for this one release: of a mechanism for one query, if only that needs so little.

        The same row as :attr:`recommended` where what composes needs as little. None where no mechanism applies.
        """
        return next((row for row in self.rows if row.least), None)

    @overload
    def __getitem__(self, index: int) -> ComparisonRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ComparisonRow]: ...
    def __getitem__(self, index: int | slice) -> ComparisonRow | Sequence[ComparisonRow]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        best = "" if self.recommended is None else f"; recommended: {self.recommended.title}"
        return f"Comparison({self.title!r}, <{sum(row.reason is None for row in self.rows)} mechanisms apply>{best})"

    def to_frame(self, *, into: str = "polars") -> Any:
        """Return the comparison as a table: a row for each mechanism and noise.

        Its columns are the fields of :class:`ComparisonRow`, and ``over_lower_bound``; ``into`` names the library whose
        table it is: "polars", "pandas" or "pyarrow".
        """
        columns = {name: [getattr(row, name) for row in self.rows] for name in _TYPES}
        return frame_of_columns(columns, _TYPES, into)

    @property
    def _fit(self) -> list[ComparisonRow]:
        return [row for row in self.rows if row.reason is None]

    @property
    def _lower(self) -> float | None:
        return next((row.lower_bound for row in self._fit if row.noise == "equal"), None)

    @property
    def _decided(self) -> list[str]:
        """Say which member of Θ decides the noise that is recommended, where there are several."""
        return [
            f"{row.decided_by} decides the noise of {row.title}"
            for row in self._fit
            if row.recommended and row.decided_by
        ]

    def _view(self) -> View:
        last = "ε" if self.by_epsilon else "scale / least"
        columns = ["mechanism", "noise scale", "± 95%", last, "seconds", "remark"]
        rows: list[list[Any]] = []
        for row in self._fit:
            compared = row.epsilon if self.by_epsilon else row.over_lower_bound
            rows.append([_name(row), row.scale, row.accuracy, compared, f"{row.seconds:.2f}", _remark(row)])
        rest = [list(pair) for pair in by_reason(self.rows)]
        grids = [
            Grid(f"Noise of each mechanism; ± 95% is in {self.measure}", columns, rows),
            Grid("Mechanisms that do not apply, or were not asked", ["mechanism", "reason"], rest),
        ]
        notes = [f"{text}." for text in self._decided]
        if self._lower is not None and not self.by_epsilon:
            notes += [f"Least: {self._lower:.6g}; no Laplace noise of a smaller scale {self._too_little}."]
        return View(self.title, None, grids, [*notes, *self._both()])

    @property
    def _again(self) -> Any:
        if self.contest is None:
            raise ParameterError(
                "a comparison made by hand cannot be computed again: use compare(theta, query, epsilon)"
            )
        return self.contest

    def _calibration(self) -> Calibration:
        """Return the calibration of the recommended row."""
        if self.recommended is None:
            raise NotApplicableError("no mechanism applies, so there is no noise at any ε")
        return self._again.calibration(self.recommended)

    def at(self, epsilon: float) -> "Comparison":
        """Return the comparison at another ε; what was computed for this one is used again.

        A ``ParameterError`` if epsilon is not positive and finite, or the comparison was made by hand.
        """
        return self._again.at(epsilon)

    def curve(self) -> tuple[ComparisonRow, ...]:
        """Return the noise of every mechanism from a tenth of this ε to ten times as much, as a slider needs it.

        At each ε a scale is proved to be enough, which is cheaper than to find the least one. It may be a thousandth
        above that, so it is to be shown, and not released with. The mechanism that is recommended is asked at 41 ε, the
        others at nine. Rows are from the least ε to the largest, with ``epsilon``, ``scale`` and ``accuracy``. A
        ``NotApplicableError`` if no mechanism applies.
        """
        curves = self._again.curves(self._calibration())
        return tuple(row for curve in curves for row in curve if row.scale is not None)

    def report(self, path: str | os.PathLike[str], *, assumptions: Sequence[str] | None = None) -> None:
        """Write a preview that a browser shows: one file, which needs no network. It reads no data and spends nothing.

        It says what error to expect of every mechanism, here and at other ε, what would be promised and what not, what
        an adversary may believe, and which record decides the noise. Of what is there already only an earlier preview
        is replaced.

        Parameters
        ----------
        path : path-like
            Where it is written. A ``NotApplicableError`` if no mechanism applies.
        assumptions : sequence of str, optional
            What is assumed of the data that the lengths were taken from, ``data.assumptions``: the page lists it, and
            says that the numbers of records were read.
        """
        report_together([self], path, assumptions=assumptions)

    def __str__(self) -> str:
        width = min(max(shutil.get_terminal_size((_WHERE_UNKNOWN, 24)).columns, _NARROWEST), _WIDEST)
        return "\n".join(_wrapped(self._lines(), width))

    def _lines(self) -> Iterator[tuple[str, int]]:
        """Yield lines, with the indent of what does not fit on them."""
        yield self.title, 2
        fit, lower = self._fit, self._lower
        if fit:
            yield from self._table_lines(fit)
        for text in self._decided:
            yield text, 2
        if fit:
            yield f"± 95%: each value is within this of the exact one with 95% probability ({self.measure})", 2
        if self.of_shapes:
            best = "noise of several scales, on the counts that lead to the least error found; the largest scale"
            yield f"best: {best}", 2
            yield f"L1 error: expected sum of the errors of all values, without sign ({self.measure})", 2
        if lower is not None:
            duration = "" if self.bound_seconds < _WORTH_TELLING else f"; found in {self.bound_seconds:.1f} seconds"
            below = f"below which no Laplace noise {self._too_little}{duration}"
            yield f"/ least: noise scale over {lower:.6g}, {below}", 2
        if any(not row.composes for row in fit):
            yield "for this one query: not for a ledger, its epsilon adds to that of no other release", 2
        for line in self._both():
            yield line, 2
        rest = by_reason(self.rows)
        unasked = [(title, why.removeprefix(NOT_ASKED)) for title, why in rest if why.startswith(NOT_ASKED)]
        refused = [(title, why) for title, why in rest if not why.startswith(NOT_ASKED)]
        for heading, rows in (("not asked:", unasked), ("does not apply:", refused)):
            if rows:
                yield heading, 2
            for title, why in rows:
                yield f"  {title}: {why}", 4

    def _table_lines(self, fit: Sequence[ComparisonRow]) -> Iterator[tuple[str, int]]:
        """Yield the table of the mechanisms that apply."""
        columns: list[tuple[str, int, Callable[[ComparisonRow], str]]] = [
            ("noise scale", 12, lambda row: f"{row.scale or 0.0:.6g}"),
            ("± 95%", 10, lambda row: _error(row.accuracy)),
        ]
        if self.of_shapes:
            columns += [("L1 error", 11, lambda row: _error(row.expected_l1_error))]
        if self.by_epsilon:
            columns += [("epsilon", 9, lambda row: at_most(row.epsilon or 0.0))]
        else:
            head = "" if self._lower is None else "/ least"
            columns += [(head, 9, lambda row: f"{row.over_lower_bound:.4g}" if row.over_lower_bound else "")]
        columns += [("seconds", 9, lambda row: f"{row.seconds:.2f}")]
        wide = 24 if self.of_shapes else 18  # a name with a shape of noise: a line then fits into 100 columns
        yield f"  {'mechanism':<{wide}}" + "".join(f"{head:>{width}}" for head, width, _ in columns), 0
        for row in fit:
            mark = "*" if row.recommended else "1" if row.least else " "
            numbers = "".join(f"{write(row):>{width}}" for _, width, write in columns)
            note = f"  {_remark(row, marked=self.of_shapes)}".rstrip()
            yield f"{mark} {_name(row):<{wide}}{numbers}{note}", 0

    @property
    def _too_little(self) -> str:
        return too_little(self.contest is not None and self.contest.hides_stretch)

    def _both(self) -> list[str]:
        """Say what is least for this release alone, and what is least of all that a ledger can add up."""
        once, many = self.least, self.recommended
        if once is None or many is None:
            return []
        if once is many:
            rest = "which no ledger counts"
            if many.composes:
                rest = "and of all that a ledger can add up with other releases"
            return [f"*: the least for this release alone, {rest}"]
        needs = f"needs {_times(many.scale, once.scale)} times its noise"
        if self.by_epsilon:
            needs = f"takes {_times(many.epsilon, once.epsilon)} times its epsilon"
        alone = "pufferfish release --once takes it, and no ledger can count it"
        return [
            f"1: the least for this release alone, {once.title}: {alone}",
            f"*: the least that a ledger can add up with other releases, {many.title}: it {needs}",
        ]


def report_together(
    comparisons: Sequence[Comparison],
    path: str | os.PathLike[str],
    *,
    assumptions: Sequence[str] | None = None,
    commands: Sequence[str] = (),
) -> None:
    """Write one preview of several queries of one table; see :meth:`Comparison.report`.

    ``commands`` are those that release each, up to the ε that follows: the page shows them for the place of its slider.
    """
    from pufferfish.compare.noise import preview

    sentences = None
    if assumptions is not None:
        sentences = listed(assumptions, "assumptions", "sentences, such as data.assumptions")
    parts: list[tuple[Calibration, Sequence[ComparisonRow], Any, str, str]] = []
    for comparison, command in zip(comparisons, commands or [""] * len(comparisons), strict=True):
        contest, made = comparison._again, comparison._calibration()
        rows = contest.at(made.epsilon).rows if comparison.by_epsilon else comparison.rows
        parts += [(made, rows, contest.curves(made), comparison.measure, command)]
    write_whole(path, preview(parts, sentences), PREVIEW, overwrite=True)


_WORTH_TELLING = 0.5
"""Seconds from which on it is told how long the lower bound took."""


def _name(row: ComparisonRow) -> str:
    return f"{row.title}{', best' if row.noise == 'best' else ''}"


def _remark(row: ComparisonRow, *, marked: bool = False) -> str:
    """Return what is said of a mechanism's noise in its line of the table; with ``marked`` a 1 says which is least."""
    if row.recommended:
        return "recommended" if row.least else "recommended: adds up"
    return "least for this one query" if row.least and not marked else "" if row.composes else "for this one query"


def _times(more: float | None, less: float | None) -> str:
    """Return how many times as much something is."""
    return f"{(more or 0.0) / less:.2g}" if less else "many"


_TYPES: dict[str, type] = {
    **dict.fromkeys(("mechanism", "title", "noise"), str),
    **dict.fromkeys(("epsilon", "scale", "noise_multiplier", "accuracy", "expected_l1_error"), float),
    **dict.fromkeys(("lower_bound", "over_lower_bound", "seconds"), float),
    **dict.fromkeys(("composes", "recommended", "least"), bool),
    **dict.fromkeys(("decided_by", "reason"), str),
}
"""Columns of the table of a comparison."""


def _error(error: float | None) -> str:
    value = error or 0.0
    return f"{value:,.0f}" if 1000 <= value < 1e7 else f"{value:.3g}"


def _wrapped(lines: Iterable[tuple[str, int]], width: int) -> Iterator[str]:
    for line, indent in lines:
        yield from textwrap.wrap(
            printable(line), width, subsequent_indent=" " * indent, break_on_hyphens=False, drop_whitespace=True
        )
