"""The data sets of the experiments: files with known names in a folder, or one table of one's own.

None of them is part of the package. docs/results.md, "Data", says where each comes from, and which columns a table
needs.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from pufferfish.data import Sequences, read_sequences
from pufferfish.data.files import engine_errors
from pufferfish.errors import DataError

__all__ = [
    "POWER_BINS",
    "ActivityTable",
    "DataSets",
    "Gaps",
    "Group",
    "PowerTable",
    "find_data",
    "one_by_one",
    "visited",
]

Gaps = Literal["independent", "unobserved"]

POWER_BINS = "0,200,...,10200"
"""51 bins of 200 W, as in the paper; what is above counts in the last."""

_FILTERS = ("awake", "worn", "wear")
"""Columns of true and false: only rows where all that are there are true are records."""

_NUMBERS = ("watts", "day", "minute", "age", "bmi")
_KINDS = (".parquet", ".csv", ".csv.gz")


@dataclass(frozen=True, slots=True)
class Group:
    """Participants whose histograms are released together.

    Parameters
    ----------
    title : str
        As tables show it.
    rows : polars.Expr or None
        Which rows are theirs; None for all.
    """

    title: str
    rows: pl.Expr | None = None


@dataclass(frozen=True)
class _Table:
    """A file.

    Parameters
    ----------
    title : str
        As tables show it.
    path : Path
        The file.
    """

    title: str
    path: Path

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the file as it was before it was first read."""
        return _hash_of(self.path)

    @property
    def has_changed(self) -> bool:
        """Whether the file is another one by now."""
        return _hash_of(self.path) != self.fingerprint

    def _rows(self) -> pl.DataFrame:
        """Read the file, its fingerprint taken first."""
        _ = self.fingerprint
        return _load(self.path)


@dataclass(frozen=True)
class ActivityTable(_Table):
    """States over time of several participants.

    Parameters
    ----------
    title, path
        The file.
    groups : tuple of Group
        By default one for each value of the column ``group``.
    states : mapping
        Names of states that the file has as numbers.
    """

    groups: tuple[Group, ...] = ()
    states: Mapping[int, str] = field(default_factory=dict[int, str])

    def load(self) -> pl.DataFrame:
        """Return the rows, with a column ``timestamp``; read once.

        Raises
        ------
        DataError
            If a column is missing.
        """
        return self._frame

    @cached_property
    def _frame(self) -> pl.DataFrame:
        frame = self._rows()
        _need(frame, self.path, "subject", "state", *self._columns_of_groups())
        with engine_errors(self.path.name):
            if self.states:
                frame = frame.with_columns(self._named(frame["state"]))
            if {"day", "minute"} <= set(frame.columns):
                return frame.with_columns(_minutes(frame, self.path).alias("timestamp"))
            _need(frame, self.path, "timestamp")
            return frame

    def _columns_of_groups(self) -> list[str]:
        return [name for group in self.groups if group.rows is not None for name in group.rows.meta.root_names()]

    def _named(self, states: pl.Series) -> pl.Series:
        for state in states.drop_nulls().unique().sort().to_list():
            if state not in self.states:
                known = ", ".join(map(str, self.states))
                raise DataError(f"column 'state' of {self.path} holds {state!r}, expected {known} or nothing")
        return states.replace_strict(self.states, return_dtype=pl.String)

    def label(self, group: Group) -> str:
        """Return how a group is called beside those of other tables."""
        return self.title if group.rows is None else f"{self.title}, {group.title}"

    def groups_of(self, frame: pl.DataFrame) -> tuple[Group, ...]:
        """Return the groups of participants.

        Raises
        ------
        DataError
            If a row belongs to none.
        """
        if self.groups or "group" not in frame.columns:
            return self.groups or (Group("all"),)
        with engine_errors(self.path.name):
            names = frame["group"].cast(pl.String).unique().sort()
        if not len(names):
            raise DataError(f"{self.path} has no rows")
        if lost := frame["group"].null_count():
            raise DataError(
                f"column 'group' of {self.path} has no group in {lost:,} of {len(frame):,} rows: drop these rows or "
                "name their group"
            )
        moved = frame.group_by("subject").agg(pl.col("group").n_unique()).filter(pl.col("group") > 1)["subject"]
        if len(moved):
            raise DataError(f"subject {moved.cast(pl.String).sort()[0]} of {self.path} is in several groups")
        return tuple(Group(name, pl.col("group").cast(pl.String) == name) for name in names)

    def read(self, frame: pl.DataFrame, group: Group, gaps: Gaps) -> Sequences:
        """Read a group's rows as sequences; more than ten minutes between records are a gap, as in the paper."""
        with engine_errors(self.path.name):
            rows = frame if group.rows is None else frame.filter(group.rows)
        kept = [name for name in _FILTERS if name in rows.columns]
        try:
            found = read_sequences(
                rows,
                "state",
                subject="subject",
                time="timestamp",
                max_gap="10min",
                where=" and ".join(kept) or None,
                states=tuple(self.states.values()) or None,
                gaps=gaps,
            )
        except DataError as error:
            raise _error_of(self.label(group), self.path, error) from error
        return visited(replace(found, base=replace(found.base, source=self.path.name)))


@dataclass(frozen=True)
class PowerTable(_Table):
    """Power draw of one household, minute by minute."""

    def read(self, gaps: Gaps = "unobserved") -> Sequences:
        """Read the table in the paper's bins; with a column ``timestamp``, ten minutes without a record are a gap."""
        frame = self._rows()
        _need(frame, self.path, "watts")
        timed = "timestamp" in frame.columns
        try:
            found = read_sequences(
                frame,
                "watts",
                time="timestamp" if timed else None,
                max_gap="10min" if timed else None,
                bins=POWER_BINS,
                gaps=gaps if timed else "unobserved",
            )
        except DataError as error:
            raise _error_of(self.title, self.path, error) from error
        return visited(replace(found, base=replace(found.base, source=self.path.name)))


def visited(data: Sequences) -> Sequences:
    """Leave out states that do not occur: a chain fitted to the data says that they cannot."""
    seen = np.flatnonzero(data.counts.sum(axis=0))
    return replace(
        data,
        states=tuple(data.states[int(x)] for x in seen),
        counts=data.counts[:, seen],
        transitions=data.transitions[np.ix_(seen, seen)],
    )


def one_by_one(together: Sequences, data: Sequences) -> Iterator[Sequences]:
    """Return each participant's own sequences.

    Parameters
    ----------
    together : Sequences
        A chain for every participant.
    data : Sequences
        The same records, in the same order, in as many chains as a reading of gaps makes of them.
    """
    ends = np.searchsorted(np.cumsum(data.lengths), np.cumsum(together.lengths)) + 1
    for first, last in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        yield replace(data, counts=data.counts[first:last], length=data.length[first:last], subjects=1)


_STEPS = {0: "sedentary", 1: "light", 2: "fairly active", 3: "very active"}
_ACCELERATION = {0: "sedentary", 1: "light", 2: "moderate", 3: "vigorous"}
_POSTURE = {0: "active", 1: "standing moving", 2: "standing still", 3: "sedentary"}
_CLASS = pl.col("group").cast(pl.String)
_FITBIT = (
    Group("active", _CLASS == "active(>=10000)"),
    Group("somewhat active", _CLASS == "somewhat_active(7500-9999)"),
    Group("low activity", _CLASS == "low(<7500)"),
)
"""Fewer than 7,500 steps a day, up to 9,999, and more."""
_FEMALE, _AGE, _BMI = pl.col("sex").cast(pl.String) == "F", pl.col("age"), pl.col("bmi")
_NHANES = (
    Group("women 65+", _FEMALE & (_AGE >= 65)),
    Group("women 50-64, BMI 25+", _FEMALE & (_AGE < 65) & (_BMI >= 25)),
    Group("men 50+", ~_FEMALE),
)
"""The groups of NHANES participants that are nearest to the paper's: older women and overweight women."""

_ACTIVITY = {
    "activity_fitbit_minute.parquet": ("Fitbit", _FITBIT, _STEPS),
    "activity_activpal_12s.parquet": ("activPAL", (), _POSTURE),
    "activity_nhanes50_minute.parquet": ("NHANES", _NHANES, _ACCELERATION),
}
_POWER = {
    "electricity_uci_2y_2006-12-17_1051200min.csv.gz": "UCI, 2 years",
    "electricity_ampds2_sample_9days.csv.gz": "AMPds2, 9 days",
}


@dataclass(frozen=True)
class DataSets:
    """The tables that were found.

    Parameters
    ----------
    activity, electricity : tuple
        Tables of each kind.
    missing : tuple of str
        Known files that are not in the folder.
    """

    activity: tuple[ActivityTable, ...] = ()
    electricity: tuple[PowerTable, ...] = ()
    missing: tuple[str, ...] = ()

    def of(self, kinds: tuple[str, ...]) -> list[ActivityTable | PowerTable]:
        """Return the tables of some kinds."""
        found = {"activity": self.activity, "electricity": self.electricity}
        return [table for kind in kinds for table in found[kind]]

    def readers(self) -> Iterator[tuple[str, Callable[[Gaps], Sequences]]]:
        """Return the name of every group and household, and what reads its records."""
        for table in self.activity:
            frame = table.load()
            for group in table.groups_of(frame):
                yield table.label(group), partial(_read_group, table, group)
        for table in self.electricity:
            yield table.title, table.read

    def fingerprint(self, kinds: tuple[str, ...]) -> str:
        """Return a hash of the files of some kinds."""
        return hashlib.sha256("".join(table.fingerprint for table in self.of(kinds)).encode()).hexdigest()


def _read_group(table: ActivityTable, group: Group, gaps: Gaps) -> Sequences:
    return table.read(table.load(), group, gaps)


def find_data(path: Path | None) -> DataSets:
    """Find the data sets in a folder, or take a file as a table of one's own.

    Raises
    ------
    DataError
        If there is none.
    """
    if path is None:
        return DataSets()
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except (OSError, ValueError) as error:  # a name too long, or with a null character
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if is_file:
        return _own(path)
    if not is_folder:
        raise DataError(f"there is no folder or file {path}: expected a folder with the data sets, or one table")
    sets = DataSets(
        tuple(
            ActivityTable(title, path / name, groups, states)
            for name, (title, groups, states) in _ACTIVITY.items()
            if (path / name).is_file()
        ),
        tuple(PowerTable(title, path / name) for name, title in _POWER.items() if (path / name).is_file()),
        tuple(name for name in (*_ACTIVITY, *_POWER) if not (path / name).is_file()),
    )
    if not sets.of(("activity", "electricity")):
        raise DataError(
            f'{path} has none of the data sets {", ".join(sets.missing)} (docs/results.md, "Data"); '
            "to use a table of your own, name its file"
        )
    return sets


def _own(path: Path) -> DataSets:
    frame = _load(path)
    title = path.name
    if "watts" in frame.columns:
        return DataSets(electricity=(PowerTable(title, path),))
    _need(frame, path, "subject", "state")
    table = ActivityTable(title, path)
    table.groups_of(table.load())
    return DataSets(activity=(table,))


def _load(path: Path) -> pl.DataFrame:
    """Read a table; of a CSV file every column is text, for nobody knows what 01 or 01/02/2020 means."""
    if not path.name.endswith(_KINDS):
        raise DataError(f"{path} is no table: expected a name that ends in {', '.join(_KINDS)}")
    with engine_errors(path.name):
        frame = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema=False)
    texts = {name for name, kind in frame.schema.items() if kind == pl.String}
    numbers = [_as_number(frame[name], path) for name in _NUMBERS if name in texts]
    truths = [_as_truth(frame[name], path) for name in _FILTERS if name in texts]
    return frame.with_columns(numbers + truths)


def _as_number(column: pl.Series, path: Path) -> pl.Series:
    numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    _refuse_others(column, numbers, path, "a number")
    return numbers


def _as_truth(column: pl.Series, path: Path) -> pl.Series:
    words = {"true": True, "false": False, "1": True, "0": False}
    truths = column.str.strip_chars().str.to_lowercase().replace_strict(words, default=None, return_dtype=pl.Boolean)
    _refuse_others(column, truths, path, "true or false")
    return truths


def _refuse_others(column: pl.Series, understood: pl.Series, path: Path, expected: str) -> None:
    lost = column.filter(understood.is_null() & column.is_not_null())
    if len(lost):
        raise DataError(f"column {column.name!r} of {path} holds {lost[0]!r}, expected {expected} or nothing")


_MOST_DAYS = 1_000_000


def _minutes(frame: pl.DataFrame, path: Path) -> pl.Expr:
    """Return the times that days and minutes of the day stand for, from some day on."""
    if frame.filter(pl.col("day").cast(pl.Float64).abs() > _MOST_DAYS).height:
        raise DataError(f"column 'day' of {path} goes beyond {_MOST_DAYS:,} days: number each subject's days from 1")
    minutes = pl.col("day").cast(pl.Float64) * 1440 + pl.col("minute").cast(pl.Float64)
    return pl.datetime(2000, 1, 1) + pl.duration(minutes=minutes)


def _error_of(label: str, path: Path, error: DataError) -> DataError:
    """Return an error of a frame as one of the file that it was read from."""
    return DataError(f"{label}: {str(error).replace('polars frame', path.name)}")


def _need(frame: pl.DataFrame, path: Path, *names: str) -> None:
    for name in names:
        if name not in frame.columns:
            raise DataError(
                f"{path} has no column {name!r}: an activity table has subject, state and timestamp (or day and "
                'minute), a table of power has watts, one row a minute (docs/results.md, "Data")'
            )


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
