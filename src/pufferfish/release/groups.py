"""What a release says of its groups, and its values as a table."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pufferfish.core.numbers import discrete_laplace
from pufferfish.frozen_record import FrozenRecord

if TYPE_CHECKING:
    import polars as pl

    from pufferfish.release.fields import NoiseRecord, ReleaseFields

__all__ = ["GroupsRecord", "columns_of", "errors_of", "frame_of", "is_table", "of_each_group", "of_the_whole"]


_NUMBER = re.compile(r"^(share of the|number of the|mean over) \d+ (records|rows)\b")
_EACH = re.compile(r"^(share of the|number of the|mean over) (records|rows) of each group\b")


def of_each_group(description: str) -> str:
    """Say in the words of a query that it is of each group.

    Examples
    --------
    >>> of_each_group("share of the 100 records in {walking}")
    'share of the records of each group in {walking}'
    """
    return _NUMBER.sub(r"\1 \2 of each group", description)


def of_the_whole(description: str, n: int) -> str:
    """Say in the words of a query by groups that it is of all records.

    Examples
    --------
    >>> of_the_whole("mean over records of each group of {rest: 0, walk: 1}", 50)
    'mean over 50 records of {rest: 0, walk: 1}'
    """
    return _EACH.sub(rf"\1 {n} \2", description)


class GroupsRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The public groups of records that values are of: those of the first group come first, then those of the next.

    Parameters
    ----------
    by : list of str
        The groupings, such as ``hour(time)`` and ``sex``.
    cells : list of list of str
        For each group its label under every grouping.
    records : list of int
        The public number of observed records, or of rows, of each group.
    divided_by : list of int or None
        What the values of each group are divided by, where they are shares or means. The query's Lipschitz constant,
        the noise and its unit are those before.
    error_95 : list of float
        For each group the error that one of its noisy values exceeds with probability at most 5%.
    """

    by: list[str]
    cells: list[list[str]]
    records: list[int]
    divided_by: list[int] | None
    error_95: list[float]

    @property
    def most_error(self) -> float:
        """By what errors before the division are multiplied, in the group where that is most."""
        return 1.0 if self.divided_by is None else 1 / min(self.divided_by)


def columns_of(release: "ReleaseFields") -> list[str]:
    """Return the columns of the table of a release."""
    groups = release.groups
    valid = ["noisy_value"] if release.postprocessing is not None else []
    if groups is None:
        return ["output", "value", *valid, "error_95"]
    return [*groups.by, "output", "records", "value", *valid, "error_95"]


def frame_of(release: "ReleaseFields") -> "pl.DataFrame":
    """Return the values of a release as a table with a row for each output, of each group if there are any."""
    import polars as pl

    labels, groups = list(release.query.labels), release.groups
    columns: dict[str, Any] = {
        "output": labels,
        "value": list(release.values),
        "noisy_value": list(release.noisy_values),
        "error_95": [float(error) for error in release.accuracies(0.05)],
    }
    if groups is not None:
        m = len(labels)
        columns |= {name: [cell[i] for cell in groups.cells for _ in range(m)] for i, name in enumerate(groups.by)}
        columns |= {
            "output": labels * len(groups.cells),
            "records": [n for n in groups.records for _ in range(m)],
            "error_95": [error for error in groups.error_95 for _ in range(m)],
        }
    return pl.DataFrame({name: columns[name] for name in columns_of(release)})


def errors_of(noise: "NoiseRecord", by: Iterable[int]) -> list[float]:
    """Return for each group the error that one of its values exceeds with probability at most 5%."""
    whole = discrete_laplace.accuracy(noise.scale / noise.unit, 0.05) * noise.unit
    return [whole / n for n in by]


_HEADING = re.compile(rb"(?:output|.+,output,records),value(?:,noisy_value)?,error_95\r?\n")


def is_table(content: bytes) -> bool:
    """Whether a CSV file is the table of a release; one of a release for each subject has other columns.

    Examples
    --------
    >>> is_table(b"sex,output,records,value,error_95\\n"), is_table(b"subject,records,output,value,error_95\\n")
    (True, False)
    """
    return _HEADING.match(content) is not None
