"""Values of a release as sums of records and of noise, and the totals of wider groups, each with its exact error.

A value is a whole number of units, with noise of some scales, over what it is divided by. Values of different groups or
releases have independent noise, so a sum of them is such a value too.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pufferfish._base.checked import listed
from pufferfish._base.view import frame_of_columns
from pufferfish._core.numbers.laplace import laplace_sum
from pufferfish.data.groups import in_order
from pufferfish.errors import ParameterError, shortened
from pufferfish.release.facts import GroupsRecord
from pufferfish.release.record import ReleaseFields, frame_of

if TYPE_CHECKING:
    import polars as pl

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Value:
    """One released value: ``units`` · ``unit`` / ``divided_by``, with noise that is a sum of variables of some scales.

    ``units`` is the noisy value in whole units, before it is divided, ``divided_by`` the records that a share or a mean
    is of, None for counts and sums, and ``scales`` those of the discrete Laplace variables, in units.
    """

    units: float
    unit: float
    divided_by: int | None
    scales: tuple[float, ...]

    @property
    def value(self) -> float:
        """The value as it was released, before any post-processing."""
        return self.units * self.worth

    @property
    def worth(self) -> float:
        """What a unit is worth in the value as it is shown."""
        return self.unit / (self.divided_by or 1)

    @property
    def error_95(self) -> float:
        """What its error exceeds with probability at most 5%."""
        return laplace_sum(self.scales).accuracy(ALPHA) * self.worth

    def total_with(self, others: Sequence["Value"]) -> "Value":
        """Return the value of all records together, and of others: a share of them all, or the sum."""
        every = [self, *others]
        divided_by = None if self.divided_by is None else sum(each.divided_by or 0 for each in every)
        scales = tuple(sorted(scale for each in every for scale in each.scales))
        return Value(math.fsum(each.units for each in every), self.unit, divided_by, scales)


def values_of(release: ReleaseFields) -> dict[tuple[str, ...], Value]:
    """Return each value of a release, by its group and its output."""
    noise, query, strategy, outputs = release.noise, release.query, release.strategy, len(release.query.labels)
    scale = noise.one_scale
    taken = [(scale,)] * outputs if strategy is None else strategy.taken(scale)
    cells = [()] if release.groups is None else [tuple(cell) for cell in release.groups.cells]
    groups = release.groups
    divided = None if groups is None else groups.divided_by
    divisors: Sequence[int | None] = [query.divided_by] * len(cells) if divided is None else divided
    unit = noise.unit * (query.divided_by or 1)  # that of a count, whatever it is divided by
    values: dict[tuple[str, ...], Value] = {}
    for c, (cell, records) in enumerate(zip(cells, divisors, strict=True)):
        for o, label in enumerate(query.labels):
            noisy = release.noisy_values[c * outputs + o]
            values[*map(str, cell), label] = Value(noisy * (records or 1) / unit, unit, records, taken[o])
    return values


# -- Totals of wider groups, such as those of the regions that zones are in ------------------------------------------


class Total(NamedTuple):
    """A sum of the values of some groups, or their share or mean: its group, output, records, value and error."""

    cell: tuple[str, ...]
    output: str
    records: int
    value: float
    error_95: float


def wider_groupings(groups: GroupsRecord) -> list[list[str]]:
    """Return the groupings of the wider groups of hierarchies, the smaller groups first.

    Examples
    --------
    >>> cells = [["a", "north", "f"], ["b", "north", "f"]]
    >>> wider_groupings(GroupsRecord(["zone", "region", "sex"], cells, [3, 2], None, [1.0, 1.0], nested=["zone"]))
    [['region', 'sex']]
    """
    hierarchies: list[list[str]] = []
    inside = False
    for name in groups.by:
        if inside:
            hierarchies[-1].append(name)
        else:
            hierarchies.append([name])
        inside = name in (groups.nested or ())
    depths = range(1, max(map(len, hierarchies)))
    return [[name for each in hierarchies for name in each[min(depth, len(each) - 1) :]] for depth in depths]


def all_totals(release: ReleaseFields) -> Iterator[tuple[list[str], Iterator[Total]]]:
    """Yield the groupings of wider groups, and their totals; quantiles have none."""
    if release.groups is not None and not release.quantiles:
        yield from ((names, totals_of(release, names)) for names in wider_groupings(release.groups))


def totals_of(release: ReleaseFields, names: Sequence[str]) -> Iterator[Total]:
    """Yield the totals of wider groups, by some of the groupings of a release: of each group and output."""
    groups, outputs = release.groups, release.query.labels
    assert groups is not None
    places, noisy = [groups.by.index(name) for name in names], values_of(release)
    parts: dict[tuple[str, ...], list[int]] = {}
    for g, cell in enumerate(groups.cells):
        parts.setdefault(tuple(cell[place] for place in places), []).append(g)
    weights = groups.divided_by or [1] * len(groups.cells)
    for wider in in_order(parts):
        members = parts[wider]
        weight = sum(weights[g] for g in members) if groups.divided_by is not None else 1
        for o, output in enumerate(outputs):
            first, *others = (noisy[*groups.cells[g], output] for g in members)
            value = sum(release.values[g * len(outputs) + o] * weights[g] for g in members) / weight
            records = sum(groups.records[g] for g in members)
            yield Total(wider, output, records, value, first.total_with(others).error_95)


def frame_with_totals(release: ReleaseFields) -> "pl.DataFrame":
    """Return the values as a table; the totals of wider groups stand below, with nothing for the groups in them."""
    import polars as pl

    frame, groups = frame_of(release), release.groups
    if groups is None or groups.nested is None or release.quantiles:
        return frame
    below: list[dict[str, Any]] = []
    for names, wider in all_totals(release):
        for total in wider:
            numbers = {"records": total.records, "value": total.value, "error_95": total.error_95}
            below.append({**dict(zip(names, total.cell, strict=True)), "output": total.output, **numbers})
    text = frame.with_columns(pl.col(groups.by).cast(pl.String))
    schema = {name: kind for name, kind in text.schema.items() if name != "noisy_value"}
    return pl.concat([text, pl.DataFrame(below, schema=schema)], how="diagonal")


def totals(release: Any, by: Sequence[str], *, into: str = "polars") -> Any:
    """Return the values of wider groups, each of which holds whole groups of a release.

    They add up: a number is the sum of those of its groups, also after they were made possible ones, and a share or
    mean is theirs, weighed by their records. The noise of groups is independent, and the error is by the exact law of
    its sum; it is that of the noisy values. Nothing is read, and nothing is spent.

    Parameters
    ----------
    release : Release
        A release by groups; a ``ParameterError`` if it has none.
    by : sequence of str
        Some of its groupings; the table has a row for each group and output, with columns ``output``, ``records``,
        ``value`` and ``error_95`` beside them.
    into : {"polars", "pandas", "pyarrow"}, default "polars"
        The library whose table it is.
    """
    if not isinstance(release, ReleaseFields):
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
