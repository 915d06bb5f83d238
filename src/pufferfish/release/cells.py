"""A release by groups: the query's value for each public group of records, with one noise for all of them.

A record is in one group, whatever its state. When it changes its state from x to x', the outputs of its group change
by d(x, x') in L1, and those of no other group. So the record loss of all groups together is that of the query on the
whole table, and so is the noise; of a strategy's measurements too, and each group's outputs follow from its own ones
and its own public number of records. What is divided by that number is divided afterwards.

Names in tables for people that a spreadsheet would take for formulas, and run (CSV injection).

A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line end is a formula to a spreadsheet. OWASP advises to
put a single quote before it (owasp.org, "CSV Injection"). Other programs would then read another name, so it is done
where it is asked for. Numbers, and bins such as ``-5-0``, are no formulas that could do anything, and stay as they are.
"""

import io
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers import laplace
from pufferfish.data.groups import Groups
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import JointQuery, LinearQuery
from pufferfish.release.draw import PrivateData, hide_traceback, in_model_order, joint_counts, of_measurements
from pufferfish.release.facts import GroupsRecord
from pufferfish.release.postprocessing import BySubject, PostProcessing
from pufferfish.release.prepare import divisions_of
from pufferfish.release.record import columns_of
from pufferfish.theta.model_class import Theta

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "EachSubject",
    "Grouped",
    "csv_of",
    "each_subject",
    "errors_of_groups",
    "grouped_of",
    "records_of_subjects",
    "table_of",
    "warning_of_formulas",
]

# -- Names in tables for people that a spreadsheet would take for formulas, and run (CSV injection) ------------------

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

        texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
        for name in texts:
            names = frame[name].unique().drop_nulls().to_list()
            # one that begins with ' too: else two names could become one
            quoted = {each: f"'{each}" for each in names if _is_formula(each) or each.startswith("'")}
            frame = frame.with_columns(pl.col(name).replace(quoted)) if quoted else frame
        frame = frame.rename({name: f"'{name}" for name in frame.columns if _is_formula(name)})
    return frame.write_csv().encode()


def warning_of_formulas(names: Iterable[str]) -> str | None:
    """Return what to say of the names in a table that a spreadsheet takes for formulas; None if there are none.

    Examples
    --------
    >>> warning_of_formulas(["rest", "-5-0", "<0"])
    >>> warning_of_formulas(["rest", "@SUM"])
    "The name '@SUM' is a formula to a spreadsheet, which runs it: give for_spreadsheets=True to write a ' before it."
    """
    formulas = [name for name in names if _is_formula(name)]
    if not formulas:
        return None
    more = f" (and {len(formulas) - 1:,} more)" if len(formulas) > 1 else ""
    return (
        f"The name {formulas[0][:60]!r}{more} is a formula to a spreadsheet, which runs it: give for_spreadsheets=True "
        "to write a ' before it."
    )


def _is_formula(name: str) -> bool:
    return _FORMULA.match(name) is not None


# -- The values of each subject --------------------------------------------------------------------------------------

_EXACT = 2**53


@dataclass(frozen=True, slots=True, eq=False)
class EachSubject:
    """Who the subjects are, how many records each has, and the exact outputs of each, in whole units."""

    names: tuple[str, ...]
    records: NDArray[np.int64]
    exact: NDArray[np.int64] = field(repr=False)

    def sampler(
        self, calibration: Calibration, query: LinearQuery, noise: Callable[..., Callable[[], NDArray[np.int64]]]
    ) -> Callable[[], NDArray[np.int64]]:
        """Return what draws the noisy outputs; all that can be refused is refused here."""
        made = hide_traceback(lambda: noise(self.exact, calibration.unit_scale, lipschitz=query.unit_lipschitz))
        return hide_traceback(made())


def records_of_subjects(data: Sequences) -> NDArray[np.int64]:
    """Return how many observed records each subject has, which is public: chains of one subject together."""
    _, which = np.unique(np.array(data.names, dtype=object), return_inverse=True)
    return np.bincount(which, weights=data.counts.sum(axis=1)).astype(np.int64)


@hide_traceback
def each_subject(data: Sequences, query: LinearQuery, theta: Theta) -> EachSubject:
    """Return the exact outputs of each subject, chains of one subject together.

    Raises
    ------
    DataError
        If the data holds states the model lacks.
    """
    assert data.names is not None
    in_model_order(data, theta.states)  # refuses states that the model lacks
    places = {state: x for x, state in enumerate(theta.states)}
    known = [x for x, state in enumerate(data.states) if state in places]
    counts = np.zeros((len(data.names), len(theta.states)), dtype=np.int64)
    counts[:, [places[data.states[x]] for x in known]] = data.counts[:, known]
    names, which = np.unique(np.array(data.names, dtype=object), return_inverse=True)
    together = np.zeros((len(names), len(theta.states)), dtype=np.int64)
    np.add.at(together, which, counts)
    return EachSubject(tuple(names.tolist()), together.sum(axis=1), together @ query.weights.T)


def table_of(
    subjects: EachSubject,
    noisy: NDArray[np.int64],
    query: LinearQuery,
    unit_scale: float,
    done: PostProcessing | None,
    name: str,
    for_spreadsheets: bool = False,
) -> bytes:
    """Return the table of the noisy values as a file's content, by the name of the file."""
    import polars as pl

    unit = query.unit * (query.divided_by or 1)
    by = subjects.records if query.divided_by else np.ones_like(subjects.records)
    values = _in_units(noisy, unit, by)
    error = _in_units(np.full((len(by), 1), laplace.accuracy(unit_scale, 0.05), dtype=np.int64), unit, by)
    outputs = len(query.labels)
    records = np.ones_like(subjects.records) if query.divided_by else subjects.records
    columns: dict[str, Any] = {
        "subject": pl.Series(subjects.names, dtype=pl.String).gather(np.repeat(np.arange(len(by)), outputs)),
        "records": np.repeat(subjects.records, outputs),
        "output": list(query.labels) * len(by),
        "value": (done.of(values, records) if isinstance(done, BySubject) else values).ravel(),
        "noisy_value": values.ravel(),
        "error_95": np.repeat(error, outputs),
    }
    frame = pl.DataFrame({column: columns[column] for column in columns_of(done is not None)})
    if not name.lower().endswith(".parquet"):
        return csv_of(frame, for_spreadsheets=for_spreadsheets)
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def _in_units(numbers: NDArray[np.int64], unit: Fraction, by: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return whole numbers times a unit, those of each subject divided by a number, rounded once."""
    over, under = unit.numerator, unit.denominator
    if int(np.abs(numbers).max(initial=0)) * over < _EXACT and int(by.max()) * under < _EXACT:
        return np.asarray((numbers * over) / (by[:, None] * under), dtype=np.float64)
    return np.array(
        [[float(int(v) * unit / int(n)) for v in row] for row, n in zip(numbers, by, strict=True)], dtype=np.float64
    )


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """A query on the groups of a table: its exact outputs, and how they become values.

    Parameters
    ----------
    groups : Groups
        The groups.
    exact : (cells, m) ndarray of int64
        What gets noise, of each group: the exact outputs, in whole units, or what a strategy measures.
    outputs : int
        How many outputs each group has.
    unit : Fraction
        What one unit is worth before anything is divided.
    by : tuple of int or None
        What the outputs of each group are divided by.
    """

    groups: Groups
    exact: NDArray[np.int64] = field(repr=False)
    outputs: int
    unit: Fraction
    by: tuple[int, ...] | None

    @property
    def record(self) -> GroupsRecord:
        """The groups as a record has them; what they are divided by, and their errors, follow."""
        groups = self.groups
        return GroupsRecord(list(groups.by), [list(cell) for cell in groups.cells], list(groups.records), None, [])

    def sampler(
        self, calibration: Calibration, noise: Callable[..., Callable[[], list[int]]]
    ) -> Callable[[], list[int]]:
        """Return what draws the noisy outputs of all groups; all that can be refused is refused here."""
        linear, strategy, totals = calibration.linear, calibration.strategy, self.groups.records
        step = linear.unit_lipschitz
        if strategy is not None and isinstance(linear, LinearQuery):
            return of_measurements(self.exact.tolist(), totals, linear, strategy, calibration.unit_scale, noise)
        made = hide_traceback(lambda: noise(self.exact.ravel().tolist(), calibration.unit_scale, lipschitz=step))
        return hide_traceback(made())

    def values(self, numbers: Iterable[int]) -> list[float]:
        """Return whole numbers as values: in the query's unit, and divided."""
        by: tuple[int, ...] = self.by or (1,) * len(self.groups.cells)
        units: list[Fraction] = [self.unit * Fraction(1, n) for n in by]
        return [float(int(number) * units[i // self.outputs]) for i, number in enumerate(numbers)]


@hide_traceback
def grouped_of(data: PrivateData, calibration: Calibration) -> Grouped | None:
    """Return a query on the groups of a table, None where it was read without groups.

    Raises
    ------
    ReleaseRefused
        If the query is not one number of records after another, or the noise is for this one query of all records.
    DataError
        If the data holds states that the model lacks.
    """
    groups = data.groups if isinstance(data, Sequences | Rows) else None
    if groups is None or not isinstance(data, Sequences | Rows):
        return None
    by = divisions_of(calibration, len(groups.cells), groups.records, data.records)
    bound, theta, strategy = calibration.linear, calibration.theta, calibration.strategy
    if isinstance(bound, JointQuery):
        exact = joint_counts(data, bound, theta)
    elif not isinstance(bound, LinearQuery):
        raise AssertionError("groups count records, one by one or several columns of a row together")
    elif isinstance(data, Rows):
        exact = _of_rows(data, bound, theta)
    else:
        exact = _of_chains(data, bound if strategy is None else strategy.counted(bound), theta)
    return Grouped(groups, exact, len(bound.labels), bound.unit * (bound.divided_by or 1), by)


def errors_of_groups(data: Sequences | Rows, calibration: Calibration) -> list[float]:
    """Return what each group's values will be within, with 95% probability; it reads public numbers only.

    Raises
    ------
    ReleaseRefused
        If such a release by groups would be refused.
    """
    groups = data.groups
    assert groups is not None
    by = divisions_of(calibration, len(groups.cells), groups.records, data.records)
    whole = calibration.accuracy(0.05) * (calibration.linear.divided_by or 1)
    return [whole / n for n in by or (1,) * len(groups.cells)]


def _of_chains(data: Sequences, query: LinearQuery, theta: Theta) -> NDArray[np.int64]:
    in_model_order(data, theta.states)  # refuses states that the model lacks
    assert data.groups is not None
    counts = data.groups.counts[data.base.state]
    known = {state: x for x, state in enumerate(data.states)}
    present = [x for x, state in enumerate(theta.states) if state in known]
    columns: Any = counts[:, [known[theta.states[x]] for x in present]]
    return np.asarray(columns @ query.weights[:, present].T, dtype=np.int64)


def _of_rows(rows: Rows, query: LinearQuery, theta: Theta) -> NDArray[np.int64]:
    assert rows.groups is not None
    network = theta.networks[0]
    totals = np.zeros((len(rows.groups.cells), len(query.weights)), dtype=np.int64)
    for node in rows.nodes:
        place = network.place(node)
        if query.reads(place):
            totals += rows.groups.counts[node] @ query.contributions_of(place).T
    return totals
