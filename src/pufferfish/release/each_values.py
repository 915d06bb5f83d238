"""The values of each subject: exact ones, which never leave the memory, and the table of the noisy ones."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers import laplace as discrete_laplace
from pufferfish.data.sequences import Sequences
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import LinearQuery
from pufferfish.release.draw import in_model_order
from pufferfish.release.each_record import columns_of
from pufferfish.release.spreadsheets import csv_of
from pufferfish.release.unseen import unseen
from pufferfish.theta.model_class import Theta

__all__ = ["EachSubject", "each_subject", "possible_values", "records_of_subjects", "table_of"]

_EXACT = 2**53


@dataclass(frozen=True, slots=True, eq=False)
class EachSubject:
    """Who the subjects are, how many records each has, and the exact outputs of each, in whole units."""

    names: tuple[str, ...]
    records: NDArray[np.int64]
    exact: NDArray[np.int64] = field(repr=False)

    def drawing(
        self, calibration: Calibration, query: LinearQuery, noise: Callable[..., Callable[[], NDArray[np.int64]]]
    ) -> Callable[[], NDArray[np.int64]]:
        """Return what draws the noisy outputs; all that can be refused is refused here."""
        made = unseen(lambda: noise(self.exact, calibration.unit_scale, lipschitz=query.unit_lipschitz))
        return unseen(made())


def records_of_subjects(data: Sequences) -> NDArray[np.int64]:
    """Return how many observed records each subject has, which is public: chains of one subject together."""
    _, which = np.unique(np.array(data.names, dtype=object), return_inverse=True)
    return np.bincount(which, weights=data.counts.sum(axis=1)).astype(np.int64)


@unseen
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
    valid: str | None,
    name: str,
    for_spreadsheets: bool = False,
) -> bytes:
    """Return the table of the noisy values as a file's content, by the name of the file."""
    import polars as pl

    unit = query.unit * (query.divided_by or 1)
    by = subjects.records if query.divided_by else np.ones_like(subjects.records)
    values = _in_units(noisy, unit, by)
    error = _in_units(np.full((len(by), 1), discrete_laplace.accuracy(unit_scale, 0.05), dtype=np.int64), unit, by)
    outputs = len(query.labels)
    records = np.ones_like(subjects.records) if query.divided_by else subjects.records
    ends = [int(end) * float(unit) for end in (query.weights.min(), query.weights.max())]
    columns: dict[str, Any] = {
        "subject": pl.Series(subjects.names, dtype=pl.String).gather(np.repeat(np.arange(len(by)), outputs)),
        "records": np.repeat(subjects.records, outputs),
        "output": list(query.labels) * len(by),
        "value": (values if valid is None else possible_values(values, records, ends, valid)).ravel(),
        "noisy_value": values.ravel(),
        "error_95": np.repeat(error, outputs),
    }
    frame = pl.DataFrame({column: columns[column] for column in columns_of(valid is not None)})
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


def possible_values(
    values: NDArray[np.float64], records: NDArray[np.int64], ends: Sequence[float], valid: str
) -> NDArray[np.float64]:
    """Return the nearest possible values of each subject, for so many records as it has.

    Parameters
    ----------
    values : (subjects, outputs) ndarray
        The noisy values.
    records : (subjects,) ndarray
        Records of each subject; 1 where values are divided by their number.
    ends : sequence of float
        The least and the largest value of one record.
    valid : {"projected", "clipped"}
        What is done.
    """
    if valid == "projected":
        return _to_simplices(values, records.astype(np.float64))
    low, high = (end * records[:, None] for end in ends)
    return np.asarray(np.clip(values, low, high), dtype=np.float64)


def _to_simplices(values: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Do for every row, with its total, what ``project_to_simplex`` does."""
    values = np.asarray(values - values.max(axis=1, keepdims=True), dtype=np.float64)
    falling = np.sort(values, axis=1)[:, ::-1]
    sums = np.asarray(np.cumsum(falling, axis=1), dtype=np.float64)
    thresholds = np.asarray((sums - totals[:, None]) / np.arange(1, values.shape[1] + 1), dtype=np.float64)
    last = values.shape[1] - 1 - np.argmax((falling > thresholds)[:, ::-1], axis=1)
    return np.maximum(values - np.take_along_axis(thresholds, last[:, None], axis=1), 0.0)
