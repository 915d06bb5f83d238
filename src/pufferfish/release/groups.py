"""What a release says of its groups, and its values as a table."""

import re
from typing import TYPE_CHECKING, Any

from pufferfish._base.checked import one_of
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.view import FRAMES, frame_of_columns
from pufferfish.errors import ParameterError

if TYPE_CHECKING:
    from pufferfish.release.facts import ReleaseFields

__all__ = ["GroupsRecord", "frame_of", "is_table", "of_each_group", "of_the_whole"]


_NUMBER = re.compile(r"^(share of the|number of the|mean over) [\d,]+ (records|rows)\b")
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
    return _EACH.sub(rf"\1 {n:,} \2", description)


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
        For each group the error that one of its noisy values exceeds with probability at most 5%. Where outputs have
        errors of different sizes (``accuracy_95.outputs``) it is the largest; that of each output is in proportion.
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


def frame_of(release: "ReleaseFields", of: str | None = None, into: str = "polars") -> Any:
    """Return what a release says as a table: a row for each value, of each group if there are any, or each quantile.

    Raises
    ------
    ParameterError
        If ``of`` or ``into`` is something else than what is known, or quantiles are asked of a release without any.
    """
    if of not in (None, "values", "quantiles"):
        library = f"; a library is named by into: to_frame(into={of!r})" if one_of(of, FRAMES) else ""
        raise ParameterError(f'of is {of!r}, expected "values" or "quantiles"{library}')
    if of == "quantiles" and not release.quantiles:
        raise ParameterError("this release has no quantiles: ask it by quantiles_at, or for its values")
    if release.quantiles and of != "values":
        each = release.quantiles
        columns = {name: [getattr(q, field) for q in each] for name, (field, _) in _QUANTILES.items()}
        return frame_of_columns(columns, {name: kind for name, (_, kind) in _QUANTILES.items()}, into)
    labels, groups = list(release.query.labels), release.groups
    m, cells = len(labels), [()] if groups is None else groups.cells
    columns: dict[str, list[Any]] = {}
    types: dict[str, type] = {}
    if groups is not None:
        for i, name in enumerate(groups.by):
            own = _as_numbers([cell[i] for cell in cells])
            columns[name], types[name] = [label for label in own for _ in range(m)], type(own[0])
    columns["output"] = labels * len(cells)
    if groups is not None:
        columns["records"] = [n for n in groups.records for _ in range(m)]
    columns["value"] = list(release.values)
    if release.postprocessing is not None:
        columns["noisy_value"] = list(release.noisy_values)
    columns["error_95"] = release.accuracies(0.05).ravel().tolist()
    numbers = dict.fromkeys(("value", "noisy_value", "error_95"), float)
    return frame_of_columns(columns, {"output": str, "records": int, **numbers, **types}, into)


_QUANTILES: dict[str, tuple[str, type]] = {
    "quantile": ("share", float),
    "state": ("state", str),
    "low_95": ("low", str),
    "high_95": ("high", str),
}
"""Columns of the table of quantiles: the field of each, and what it holds."""

_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


def _as_numbers(labels: list[str]) -> list[Any]:
    """Return the labels of groups, as whole numbers where all of them are some: as a CSV file of them is read.

    Examples
    --------
    >>> _as_numbers(["0", "13"]), _as_numbers(["0", "01"])
    ([0, 13], ['0', '01'])
    """
    whole = all(_WHOLE.fullmatch(label) for label in labels)
    return [int(label) for label in labels] if whole else labels


_HEADING = re.compile(
    rb"(?:(?:output|.+,output,records),value(?:,noisy_value)?,error_95|quantile,state,low_95,high_95)\r?\n"
)


def is_table(content: bytes) -> bool:
    """Whether a CSV file is the table of a release; one of a release for each subject has other columns.

    Examples
    --------
    >>> is_table(b"sex,output,records,value,error_95\\n"), is_table(b"subject,records,output,value,error_95\\n")
    (True, False)
    """
    return _HEADING.match(content) is not None
