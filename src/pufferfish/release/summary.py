"""A release for people: its values as a table, the promise, the noise, and which record decides it."""

import math
from typing import Any

from pufferfish.errors import printable, shortened
from pufferfish.mechanisms import BOUNDS
from pufferfish.release.each_record import EachRelease
from pufferfish.release.fields import ReleaseFields

__all__ = ["described", "summary"]

_MOST_LABEL = 60


def described(found: ReleaseFields | EachRelease) -> str:
    """Return all that a reader of a release looks at first."""
    seen = found.mechanism.witness
    where = "" if seen.node is None else f", record {seen.node}"
    pair = "" if seen.secret_pair is None else f": {seen.secret_pair[0]} or {seen.secret_pair[1]}"
    told = [
        f"made {found.created[:19]} by pufferfish {found.software.get('pufferfish-privacy')}; Θ: {found.theta.origin}",
        f"the noise is for the secret that needs most{where}{pair} ({seen.kind}); "
        f"at most {found.mechanism.leakage:.6g} leaks",
        *(f"not promised: {text}" for text in found.not_promised),
        *(f"assumed: {text}" for text in found.assumptions),
        *(f"warning: {text}" for text in found.warnings),
    ]
    return "\n".join([summary(found), *map(printable, told)])


def summary(found: ReleaseFields | EachRelease, most: int = 60) -> str:
    """Return the values, the noise and the promise in a few lines; of very many values the first."""
    if isinstance(found, EachRelease):
        return "\n".join(_of_each(found))
    return "\n".join([*_table(found, most), *_noise(found), *_end(found)])


def _table(found: ReleaseFields, most: int) -> list[str]:
    error = rounded(found.accuracy(0.05), found.scale)
    rows = [("value", "± 95%")]
    rows += [(rounded(value, found.scale), error) for value in found.values[:most]]
    names = [found.query.kind, *(shortened(printable(label), _MOST_LABEL) for label in found.query.labels[:most])]
    wide = max(map(len, names))
    columns = [max(len(row[i]) for row in rows) for i in (0, 1)]
    lines = [
        f"{name:{wide}}  {value:>{columns[0]}}  {own:>{columns[1]}}"
        for name, (value, own) in zip(names, rows, strict=True)
    ]
    left = len(found.values) - most
    return [*lines, f"… and {left:,} more in the record"] if left > 0 else lines


def _noise(found: ReleaseFields) -> list[str]:
    both = rounded(found.accuracy(0.05, joint=True), found.scale)
    return [
        f"{found.mechanism.title}, ε = {found.epsilon:g}: discrete Laplace noise of scale {found.scale:.6g} on each "
        f"of {len(found.values)} values; all are within {both} with 95% probability"
    ]


def _of_each(found: EachRelease) -> list[str]:
    query, noise = found.query, found.noise
    share = ", divided by the subject's number of records" if query.divided_by_records else ""
    outputs = f"{len(query.labels)} value{'' if len(query.labels) == 1 else 's'}"
    return [
        f"{query.kind} for each of {found.data.subjects:,} subjects ({outputs} each)",
        f"{found.mechanism.title}, ε = {found.epsilon:g}: discrete Laplace noise of scale {noise.scale:.6g}{share}; "
        f"each value is within {found.accuracy_95.each:.6g}{share} with 95% probability",
        *_end(found),
    ]


def _end(found: Any) -> list[str]:
    """Return what is said of releases of either kind."""
    lines: list[str] = []
    if found.ledger is not None:
        booked = found.ledger
        lines += [f"ledger: number {booked.entry}, spent {booked.spent:.6g} of {booked.budget:.6g} in all"]
    if found.mechanism.name not in {bound.name for bound in BOUNDS}:
        lines += [found.not_promised[-1]]
    if found.postprocessing:
        each = " to possible values" if isinstance(found.postprocessing, str) else ""
        lines += [f"post-processed: {found.postprocessing}{each}"]
    return [*map(printable, lines), printable(found.promise)]


def rounded(value: float, scale: float) -> str:
    """Write a value to three digits of its noise: more would be noise."""
    decimals = max(0, 2 - math.floor(math.log10(scale)))
    return f"{value:,.{decimals}f}" if decimals <= 9 and abs(value) < 1e15 else f"{value:.6g}"
