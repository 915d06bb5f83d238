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

from paper.experiments.files import FILTERS, error_of, hash_of, load_table, minutes, need
from pufferfish.data import Sequences, read_sequences
from pufferfish.data.source import engine_errors
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
        return hash_of(self.path)

    @property
    def has_changed(self) -> bool:
        """Whether the file is another one by now."""
        return hash_of(self.path) != self.fingerprint

    def rows(self) -> pl.DataFrame:
        """Read the file, its fingerprint taken first."""
        _ = self.fingerprint
        return load_table(self.path)


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
        frame = self.rows()
        need(frame, self.path, "subject", "state", *self._columns_of_groups())
        with engine_errors(self.path.name):
            if self.states:
                frame = frame.with_columns(self._named(frame["state"]))
            if {"day", "minute"} <= set(frame.columns):
                return frame.with_columns(minutes(frame, self.path).alias("timestamp"))
            need(frame, self.path, "timestamp")
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
        kept = [name for name in FILTERS if name in rows.columns]
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
            raise error_of(self.label(group), self.path, error) from error
        return visited(replace(found, base=replace(found.base, source=self.path.name)))


@dataclass(frozen=True)
class PowerTable(_Table):
    """Power draw of one household, minute by minute."""

    def read(self, gaps: Gaps = "unobserved") -> Sequences:
        """Read the table in the paper's bins; with a column ``timestamp``, ten minutes without a record are a gap."""
        frame = self.rows()
        need(frame, self.path, "watts")
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
            raise error_of(self.title, self.path, error) from error
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
        part = {"counts": data.counts[first:last], "length": data.length[first:last]}
        yield replace(data, **part, subjects=1, names=None, grid=None)


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
            f"{path} has none of the data sets {', '.join(sets.missing)} (documentation: The paper's experiments); "
            "to use a table of your own, name its file"
        )
    return sets


def _own(path: Path) -> DataSets:
    frame = load_table(path)
    title = path.name
    if "watts" in frame.columns:
        return DataSets(electricity=(PowerTable(title, path),))
    need(frame, path, "subject", "state")
    table = ActivityTable(title, path)
    table.groups_of(table.load())
    return DataSets(activity=(table,))
