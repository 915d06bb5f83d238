"""The table of a comparison: a row for each mechanism and noise, and how it prints."""

import os
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, overload

from pufferfish.calibration import Calibration
from pufferfish.comparison_row import NOT_ASKED, ComparisonRow, NoiseCurve
from pufferfish.digits import at_most
from pufferfish.errors import NotApplicableError, ParameterError, printable
from pufferfish.files import write_whole
from pufferfish.given import listed
from pufferfish.report.html import PREVIEW
from pufferfish.report.noise import points_around
from pufferfish.shown import Grid, Shown, View, frame_of_columns

__all__ = ["Comparison", "ComparisonRow"]

_NARROWEST, _WIDEST, _WHERE_UNKNOWN = 80, 120, 100
"""Columns that the text of a comparison takes: those of the terminal, within bounds."""


class Asked(Protocol):
    """Mechanisms that can be asked again, at any ε."""

    def rows_at(self, epsilon: float) -> Sequence[ComparisonRow]:
        """Return the noise of every mechanism at one ε."""
        ...

    def curves(self, epsilons: Sequence[float], best: str | None = None) -> Sequence[NoiseCurve]:
        """Return the noise of every mechanism at several ε, and of one of them that of the best shape."""
        ...

    def calibration(self, row: ComparisonRow) -> Calibration:
        """Return the calibration of a row."""
        ...


@dataclass(frozen=True)
class Comparison(Shown, Sequence[ComparisonRow]):
    """Rows of a comparison, those that apply first, by their noise; prints as a table.

    Parameters
    ----------
    rows : tuple of ComparisonRow
        One per mechanism.
    title : str
        What was compared, in words.
    measure : str
        What the query's answers are numbers of.
    by_epsilon : bool, default False
        Whether an accuracy was asked for, and rows differ by their epsilon.
    contest : optional
        What the mechanisms are asked again by, for a report.
    """

    rows: tuple[ComparisonRow, ...]
    title: str
    measure: str
    by_epsilon: bool = False
    contest: Asked | None = field(default=None, repr=False, compare=False)

    @property
    def of_shapes(self) -> bool:
        """Whether noise of the best shape was asked for too; rows are then in the order of their expected error."""
        return any(row.noise == "best" for row in self.rows)

    @overload
    def __getitem__(self, index: int) -> ComparisonRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ComparisonRow]: ...
    def __getitem__(self, index: int | slice) -> ComparisonRow | Sequence[ComparisonRow]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        least = next((row for row in self.rows if row.recommended), None)
        best = "" if least is None else f"; recommended: {least.title}"
        return f"Comparison({self.title!r}, <{sum(row.reason is None for row in self.rows)} mechanisms apply>{best})"

    def to_frame(self, *, into: str = "polars") -> Any:
        """Return the comparison as a table: a row for each mechanism and noise.

        Parameters
        ----------
        into : {"polars", "pandas", "pyarrow"}, default "polars"
            The library whose table it is.

        Returns
        -------
        DataFrame
            The fields of :class:`ComparisonRow`, ``over_lower_bound`` among them.

        Raises
        ------
        ParameterError
            If the library is another one, or not installed.
        """
        columns = {name: [getattr(row, name) for row in self.rows] for name in _TYPES}
        return frame_of_columns(columns, _TYPES, into)

    def _view(self) -> View:
        fit = [row for row in self.rows if row.reason is None]
        columns = [
            "mechanism",
            "noise scale",
            "± 95%",
            "ε" if self.by_epsilon else "scale / least",
            "seconds",
            "remark",
        ]
        rows = [
            [
                f"{row.title}{', best' if row.noise == 'best' else ''}",
                row.scale,
                row.accuracy,
                row.epsilon if self.by_epsilon else row.over_lower_bound,
                f"{row.seconds:.2f}",
                "recommended" if row.recommended else "" if row.composes else "for this one query",
            ]
            for row in fit
        ]
        rest = [[row.title, row.reason] for row in self.rows if row.reason is not None]
        grids = [
            Grid(f"Noise of each mechanism; ± 95% is in {self.measure}", columns, rows),
            Grid("Mechanisms that do not apply, or were not asked", ["mechanism", "reason"], rest),
        ]
        return View(self.title, None, grids, _notes(fit, by_epsilon=self.by_epsilon))

    def report(self, path: str | os.PathLike[str], *, assumptions: Sequence[str] | None = None) -> None:
        """Write a preview that a browser shows: one file, which needs no network. It reads no data and spends nothing.

        It says what error to expect of every mechanism, here and at other ε, what would be promised and what not, what
        an adversary may believe, and which record decides the noise. Of what is there already only an earlier preview
        is replaced.

        Parameters
        ----------
        path : path-like
            Where it is written.
        assumptions : sequence of str, optional
            What is assumed of the data that the lengths were taken from, ``data.assumptions``: the page lists it, and
            says that the numbers of records were read.

        Raises
        ------
        NotApplicableError
            If no mechanism applies.
        RecordError
            If the file cannot be written, or is something else.
        """
        from pufferfish.report.preview import preview

        if self.contest is None:
            raise ParameterError("a comparison made by hand has no report: use compare(theta, query, epsilon)")
        row = next((row for row in self.rows if row.recommended), None)
        if row is None:
            raise NotApplicableError("no mechanism applies, so there is no noise to report on")
        found = self.contest.calibration(row)
        rows = self.contest.rows_at(found.epsilon) if self.by_epsilon else self.rows
        epsilons = points_around(found.epsilon)
        given = (
            None if assumptions is None else listed(assumptions, "assumptions", "sentences, such as data.assumptions")
        )
        curves = self.contest.curves(epsilons, row.mechanism if row.noise == "best" else None)
        write_whole(path, preview(found, rows, epsilons, curves, self.measure, given), PREVIEW, overwrite=True)

    def __str__(self) -> str:
        width = min(max(shutil.get_terminal_size((_WHERE_UNKNOWN, 24)).columns, _NARROWEST), _WIDEST)
        return "\n".join(_wrapped(self._lines(), width))

    def _lines(self) -> Iterator[tuple[str, int]]:
        """Yield lines, with the indent of what does not fit on them."""
        yield self.title, 2
        fit = [row for row in self.rows if row.reason is None]
        lower = next((row.lower_bound for row in fit if row.noise == "equal"), None)
        if fit:
            least = "epsilon" if self.by_epsilon else "" if lower is None else "/ least"
            wide, total = (28, f"{'L1 error':>11}") if self.of_shapes else (18, "")
            yield f"  {'mechanism':<{wide}}{'noise scale':>12}{'± 95%':>10}{total}{least:>9}{'seconds':>9}", 0
        for row in fit:
            mark = "*" if row.recommended else " "
            least = "" if row.over_lower_bound is None else f"{row.over_lower_bound:.4g}"
            if self.by_epsilon:
                least = at_most(row.epsilon or 0.0)
            note = "  recommended" if row.recommended else "" if row.composes else "  for this one query"
            total = f"{_error(row.expected_l1_error or 0.0):>11}" if self.of_shapes else ""
            numbers = f"{row.scale or 0.0:>12.6g}{_error(row.accuracy or 0.0):>10}{total}{least:>9}{row.seconds:>9.2f}"
            name = f"{row.title}{', best' if row.noise == 'best' else ''}"
            yield f"{mark} {name:<{28 if self.of_shapes else 18}}{numbers}{note}", 0
        for row in fit:
            if row.recommended and row.decided_by is not None:
                yield f"{row.decided_by} decides the noise of {row.title}", 2
        if fit:
            yield f"± 95%: each value is within this of the exact one with 95% probability ({self.measure})", 2
        if self.of_shapes:
            yield (
                "best: noise of several scales, on the counts that lead to the least error found; the largest scale",
                2,
            )
            yield f"L1 error: expected sum of the errors of all values, without sign ({self.measure})", 2
        if lower is not None:
            yield f"/ least: noise scale over {lower:.6g}, below which no Laplace noise gives this guarantee", 2
        if any(not row.composes for row in fit):
            yield "for this one query: not for a ledger, its epsilon adds to that of no other release", 2
        rest = [(row.title, row.reason or "") for row in self.rows[len(fit) :]]
        unasked = [(title, why.removeprefix(NOT_ASKED)) for title, why in rest if why.startswith(NOT_ASKED)]
        refused = [(title, why) for title, why in rest if not why.startswith(NOT_ASKED)]
        for heading, rows in (("not asked:", unasked), ("does not apply:", refused)):
            if rows:
                yield heading, 2
            for title, why in rows:
                yield f"  {title}: {why}", 4


_TYPES: dict[str, type] = {
    **dict.fromkeys(("mechanism", "title", "noise"), str),
    **dict.fromkeys(("epsilon", "scale", "noise_multiplier", "accuracy", "expected_l1_error"), float),
    **dict.fromkeys(("lower_bound", "over_lower_bound", "seconds"), float),
    **dict.fromkeys(("composes", "recommended"), bool),
    **dict.fromkeys(("decided_by", "reason"), str),
}
"""Columns of the table of a comparison."""


def _notes(fit: Sequence[ComparisonRow], *, by_epsilon: bool) -> list[str]:
    lower = next((row.lower_bound for row in fit if row.noise == "equal"), None)
    decided = [
        f"{row.decided_by} decides the noise of {row.title}." for row in fit if row.recommended and row.decided_by
    ]
    if lower is None or by_epsilon:
        return decided
    return [*decided, f"Least: {lower:.6g}; no Laplace noise of a smaller scale gives this guarantee."]


def _error(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e7 else f"{value:.3g}"


def _wrapped(lines: Iterable[tuple[str, int]], width: int) -> Iterator[str]:
    for line, indent in lines:
        yield from textwrap.wrap(
            printable(line), width, subsequent_indent=" " * indent, break_on_hyphens=False, drop_whitespace=True
        )
