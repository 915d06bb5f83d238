"""Totals of groups, such as those of the regions that zones are in: sums of what was released, with exact errors."""

from collections.abc import Sequence
from typing import Any

from pufferfish._base.checked import listed
from pufferfish._base.view import frame_of_columns
from pufferfish.errors import ParameterError, shortened
from pufferfish.release.release import Release
from pufferfish.release.sums import totals_of

__all__ = ["totals"]


def totals(release: Any, by: Sequence[str], *, into: str = "polars") -> Any:
    """Return the values of wider groups, each of which holds whole groups of a release.

    They add up: a number is the sum of those of its groups, also after they were made possible ones, and a share or
    mean is theirs, weighed by their records. The noise of groups is independent, and the error is by the exact law of
    its sum; it is that of the noisy values. Nothing is read, and nothing is spent.

    Parameters
    ----------
    release : Release
        A release by groups.
    by : sequence of str
        Some of its groupings.
    into : {"polars", "pandas", "pyarrow"}, default "polars"
        The library whose table it is.

    Returns
    -------
    DataFrame
        A row for each group and output, with the groupings, ``output``, ``records``, ``value`` and ``error_95``.

    Raises
    ------
    ParameterError
        If the release has no groups, or not such ones.
    """
    if not isinstance(release, Release):
        raise ParameterError(f"release is {shortened(repr(release))}, expected a Release")
    if release.groups is None:
        raise ParameterError("the release has no groups: there is nothing to add up")
    names = [str(name) for name in listed(by, "by", 'groupings of the release, such as ["region"]')]
    if not set(names) <= set(release.groups.by) or len(set(names)) < len(names):
        raise ParameterError(f"by is {names!r}, expected some of {', '.join(release.groups.by)}, each once")
    rows = [(*total.cell, *total[1:]) for total in totals_of(release, names)]
    heads = (*names, "output", "records", "value", "error_95")
    columns = dict(zip(heads, map(list, zip(*rows, strict=True)), strict=True))
    types: dict[str, type] = {**dict.fromkeys(names, str), "output": str, "records": int, "value": float}
    return frame_of_columns(columns, types | {"error_95": float}, into)
