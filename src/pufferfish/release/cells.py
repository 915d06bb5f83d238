"""A query on cells, which are the public groups of a table, or its subjects: exact outputs, their noise, and tables.

One noise is enough for all cells. A record is in one cell, whatever its state. When it changes its state from x to x',
the outputs of its cell change by d(x, x') in L1, and those of no other cell. So the record loss of all cells together
is that of the query on the whole table, and so is the noise; of a strategy's measurements too, and each cell's outputs
follow from its own ones and its own public number of records. What is divided by that number is divided afterwards.

A step is in the group of the record that it leads to, whatever the states are. Where steps are charged one by one, a
step that changes moves the outputs of its group alone, so one noise is enough for the steps of all groups too.

The file begins with how names are written into CSV files that spreadsheets open, and ends with the table of the values
of each subject.
"""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers import laplace
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ReleaseRefused
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import JointQuery, LinearQuery, StepQuery
from pufferfish.release.draw import (
    hide_traceback,
    in_model_order,
    joint_counts,
    sampler_of_measurements,
    steps_in_model_order,
)
from pufferfish.release.noise import discrete_laplace_noise, noise_in_bulk
from pufferfish.release.postprocessing import BySubject, PostProcessing
from pufferfish.release.prepare import divisions_of
from pufferfish.release.record import columns_of
from pufferfish.theta.model_class import Theta

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Cells",
    "cells_of",
    "csv_of",
    "errors_of_groups",
    "records_of_subjects",
    "table_of",
    "warning_of_formulas",
]

# -- Names that a spreadsheet would take for formulas, and run (CSV injection) ---------------------------------------
#
# A table's cell that begins with =, +, -, @, a tab or a line end is a formula to a spreadsheet. OWASP advises to put a
# single quote before it (owasp.org, "CSV Injection"). Other programs would then read another name, so it is done only
# where it is asked for. Numbers, and bins such as -5-0, are formulas that can do no harm, and stay as they are.

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_FORMULA = re.compile(rf"[=+@\t\r\n]|-(?!{_NUMBER}(?:--?{_NUMBER})?\Z)")


def csv_of(frame: "pl.DataFrame", *, for_spreadsheets: bool) -> bytes:
    """Return a table as CSV, with names as a spreadsheet shows them if it is for one.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"output": ["=1+1", "-5-0", "rest"], "value": [-1.5, 0.0, 2.0]})
    >>> print(csv_of(table, for_spreadsheets=True).decode(), end="")
    output,value
    '=1+1,-1.5
    -5-0,0.0
    rest,2.0
    """
    if for_spreadsheets:
        import polars as pl

        text_columns = [name for name, dtype in frame.schema.items() if dtype == pl.String]
        for name in text_columns:
            names = frame[name].unique().drop_nulls().to_list()
            # one that begins with ' too: else two names could become one
            quoted = {text: f"'{text}" for text in names if _is_formula(text) or text.startswith("'")}
            frame = frame.with_columns(pl.col(name).replace(quoted)) if quoted else frame
        frame = frame.rename({name: f"'{name}" for name in frame.columns if _is_formula(name)})
    return frame.write_csv().encode()


def warning_of_formulas(names: Iterable[str]) -> str | None:
    """Return what to say of the names in a table that a spreadsheet takes for formulas; None if there are none.

    Examples
    --------
    >>> warning_of_formulas(["rest", "-5-0", "<0"])
    >>> warning_of_formulas(["rest", "@SUM"])
    "The name '@SUM' would run as a formula in a spreadsheet: give for_spreadsheets=True to write a ' before it."
    """
    formulas = [name for name in names if _is_formula(name)]
    if not formulas:
        return None
    more = f" (and {len(formulas) - 1:,} more)" if len(formulas) > 1 else ""
    return (
        f"The name {formulas[0][:60]!r}{more} would run as a formula in a spreadsheet: give for_spreadsheets=True to "
        "write a ' before it."
    )


def _is_formula(name: str) -> bool:
    return _FORMULA.match(name) is not None


# -- A query on cells ------------------------------------------------------------------------------------------------

_EXACT = 2**53
"""Whole numbers up to this are doubles: one division of two of them is rounded once."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A query on groups or subjects: its exact outputs, and how they become values.

    Parameters
    ----------
    names : tuple of tuple of str
        The label of each cell under every grouping; of a subject its name.
    records : (cells,) ndarray of int64
        The public number of records, or rows, of each.
    exact : (cells, numbers) ndarray of int64
        What gets noise, of each cell: the exact outputs, in whole units, or what a strategy measures.
    outputs : int
        How many outputs each cell has.
    unit : Fraction
        What one unit is worth before anything is divided.
    by : (cells,) ndarray of int64 or None
        What the outputs of each cell are divided by.
    """

    names: tuple[tuple[str, ...], ...]
    records: NDArray[np.int64]
    exact: NDArray[np.int64] = field(repr=False)
    outputs: int
    unit: Fraction
    by: NDArray[np.int64] | None

    def sampler(self, calibration: Calibration) -> Callable[[], NDArray[np.int64]]:
        """Return what draws the noisy outputs of all cells, (cells, outputs), in units.

        All that can be refused is refused here.
        """
        linear, strategy, scale = calibration.linear, calibration.strategy, calibration.unit_scale
        if strategy is None or not isinstance(linear, LinearQuery):
            prepare = hide_traceback(lambda: noise_in_bulk(self.exact, scale, lipschitz=linear.unit_lipschitz or 1))
            return hide_traceback(prepare())
        counts, totals = self.exact.tolist(), self.records.tolist()
        draw = sampler_of_measurements(counts, totals, linear, strategy, scale, discrete_laplace_noise)
        return hide_traceback(lambda: np.array(draw(), dtype=np.int64).reshape(-1, self.outputs))

    def values(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return whole numbers of units, a row for each cell, as values: divided by the cell's number, rounded once."""
        divisors = np.ones_like(self.records) if self.by is None else self.by
        numerator, denominator = self.unit.numerator, self.unit.denominator
        if int(np.abs(numbers).max(initial=0)) * numerator < _EXACT and int(divisors.max()) * denominator < _EXACT:
            return np.asarray((numbers * numerator) / (divisors[:, None] * denominator), dtype=np.float64)
        # larger numbers are fractions until the end, which gives the same values, only slowly
        rows = zip(numbers.tolist(), divisors.tolist(), strict=True)
        return np.array([[float(v * self.unit / n) for v in row] for row, n in rows], dtype=np.float64)


@hide_traceback
def cells_of(data: Sequences | Rows, calibration: Calibration, *, by_subject: bool = False) -> Cells:
    """Return a query on the subjects of a table, or on the groups that it was read with."""
    linear, theta, strategy = calibration.linear, calibration.theta, calibration.strategy
    assert isinstance(linear, LinearQuery | StepQuery | JointQuery)
    outputs, unit = len(linear.labels), linear.unit * (linear.divided_by or 1)
    if by_subject:
        assert isinstance(data, Sequences)
        assert isinstance(linear, LinearQuery)
        subjects, counts = _counts_by_subject(data)
        records = counts.sum(axis=1)
        exact = _outputs_of_counts(data, counts, linear, theta)
        return Cells(
            tuple((name,) for name in subjects), records, exact, outputs, unit, records if linear.divided_by else None
        )
    groups = data.groups
    assert groups is not None
    divisors = divisions_of(calibration, len(groups.cells), groups.records, data.records)
    if isinstance(linear, StepQuery):
        assert isinstance(data, Sequences)
        exact = _outputs_of_steps(data, linear, theta)
    elif isinstance(linear, JointQuery):
        exact = joint_counts(data, linear, theta)
    elif isinstance(data, Rows):
        exact = _outputs_of_rows(data, linear, theta)
    else:
        measured = linear if strategy is None else strategy.counted(linear)
        exact = _outputs_of_counts(data, groups.counts[data.base.state], measured, theta)
    records = np.array(groups.records, dtype=np.int64)
    return Cells(
        groups.cells, records, exact, outputs, unit, None if divisors is None else np.array(divisors, dtype=np.int64)
    )


def records_of_subjects(data: Sequences) -> NDArray[np.int64]:
    """Return how many observed records each subject has, which is public: chains of one subject together."""
    return _counts_by_subject(data)[1].sum(axis=1)


def _counts_by_subject(data: Sequences) -> tuple[list[str], NDArray[np.int64]]:
    """Return the subjects, and how many records of each are in which of the table's states."""
    names, which = np.unique(np.array(data.names, dtype=object), return_inverse=True)
    counts = np.zeros((len(names), len(data.states)), dtype=np.int64)
    np.add.at(counts, which, data.counts)
    return names.tolist(), counts


def _outputs_of_counts(data: Sequences, counts: Any, query: LinearQuery, theta: Theta) -> NDArray[np.int64]:
    """Return the outputs of cells, of how many records each has in which of the table's states."""
    in_model_order(data, theta.states)  # refuses states that the model lacks
    column_of = {state: x for x, state in enumerate(data.states)}
    present = [x for x, state in enumerate(theta.states) if state in column_of]
    columns: Any = counts[:, [column_of[theta.states[x]] for x in present]]
    return np.asarray(columns @ query.weights[:, present].T, dtype=np.int64)


def _outputs_of_steps(data: Sequences, query: StepQuery, theta: Theta) -> NDArray[np.int64]:
    """Return the outputs of each group, of the steps that lead to its records."""
    assert data.groups is not None
    if data.groups.steps is None:
        raise ReleaseRefused(
            f"{len(data.groups.cells):,} groups have too many different steps to be counted: group by less"
        )
    steps = [steps_in_model_order(data, of_group, theta.states) for of_group in data.groups.steps]
    return np.array([query.counted(of_group) for of_group in steps], dtype=np.int64)


def _outputs_of_rows(rows: Rows, query: LinearQuery, theta: Theta) -> NDArray[np.int64]:
    """Return the outputs of each group of a network's table: the sum over nodes of what their cells add."""
    assert rows.groups is not None
    network = theta.networks[0]
    totals = np.zeros((len(rows.groups.cells), len(query.weights)), dtype=np.int64)
    for node in rows.nodes:
        place = network.place(node)
        if query.reads(place):
            totals += rows.groups.counts[node] @ query.contributions_of(place).T
    return totals


def errors_of_groups(data: Sequences | Rows, calibration: Calibration) -> list[float]:
    """Return what each group's values will be within, with 95% probability; it reads public numbers only."""
    groups = data.groups
    assert groups is not None
    divisors = divisions_of(calibration, len(groups.cells), groups.records, data.records)
    undivided = calibration.accuracy(0.05) * (calibration.linear.divided_by or 1)
    return [undivided / n for n in divisors or (1,) * len(groups.cells)]


# -- The table of values of each subject -----------------------------------------------------------------------------


def table_of(
    subjects: Cells,
    noisy: NDArray[np.int64],
    labels: Sequence[str],
    unit_scale: float,
    postprocessing: PostProcessing | None,
    name: str,
    for_spreadsheets: bool = False,
) -> bytes:
    """Return the table of the noisy values as a file's content, by the name of the file."""
    import polars as pl

    values, count = subjects.values(noisy), len(subjects.names)
    error = subjects.values(np.full((count, 1), laplace.accuracy(unit_scale, 0.05), dtype=np.int64))
    records = subjects.records if subjects.by is None else np.ones_like(subjects.records)
    names = pl.Series([subject for (subject,) in subjects.names], dtype=pl.String)
    columns: dict[str, Any] = {
        "subject": names.gather(np.repeat(np.arange(count), len(labels))),
        "records": np.repeat(subjects.records, len(labels)),
        "output": list(labels) * count,
        "value": (postprocessing.of(values, records) if isinstance(postprocessing, BySubject) else values).ravel(),
        "noisy_value": values.ravel(),
        "error_95": np.repeat(error, len(labels)),
    }
    frame = pl.DataFrame({column: columns[column] for column in columns_of(postprocessing is not None)})
    if not name.lower().endswith(".parquet"):
        return csv_of(frame, for_spreadsheets=for_spreadsheets)
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()
