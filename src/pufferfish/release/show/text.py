"""A release for people: its values as a table, the promise, the noise, and which record decides it."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from pufferfish._base.view import MOST_ROWS, Grid, View, counted
from pufferfish._base.words import at_most, names_of, number
from pufferfish.data import Rows, Sequences
from pufferfish.errors import printable, shortened
from pufferfish.mechanisms.words import TOGETHER
from pufferfish.queries import KINDS, measure_of
from pufferfish.release.facts import GroupsRecord, SubjectsRecord
from pufferfish.release.prepare import FITTED_HERE
from pufferfish.release.record import MeasurementFields, ReleaseFields
from pufferfish.release.show.values import weak_lines

__all__ = [
    "assumed_in_short",
    "described",
    "heads_of_groups",
    "impossible_lines",
    "lines_of",
    "lines_of_each",
    "measurement_view",
    "noise_line",
    "on_values",
    "postprocessing_lines",
    "promise_line",
    "quantile_lines",
    "read_line",
    "record_named",
    "release_view",
    "rows_of_groups",
    "size_line",
    "summary",
    "without_ledger",
]

_MOST_LABEL = 60


def described(found: ReleaseFields) -> str:
    """Return all that a reader of a release looks at first."""
    seen = found.mechanism.witness
    where = "" if seen.node is None else f", {record_named(seen.node)}"
    pair = "" if seen.secret_pair is None else f": {seen.secret_pair[0]} or {seen.secret_pair[1]}"
    said = found.not_promised[-1:] if found.ledger is None else []  # by without_ledger
    told = [
        *(f"warning: {text}" for text in found.warnings),
        f"made {found.created[:19]} by pufferfish {found.software.get('pufferfish-privacy')}; Θ: {found.theta.origin}",
        f"the noise is for the secret that needs most{where}{pair}; "
        f"at most {at_most(found.mechanism.leakage)} nats leak",
        *(
            f"{'' if text.startswith(TOGETHER) else 'not '}promised: {text}"
            for text in found.not_promised
            if text not in said
        ),
        *(f"assumed: {text}" for text in found.assumptions),
    ]
    return "\n".join([summary(found), *map(printable, told)])


def summary(found: ReleaseFields, most: int = 60) -> str:
    """Return the values, the noise and the promise in a few lines; of very many values the first."""
    if found.subjects is not None:
        return "\n".join([*lines_of_each(found), *_end(found)])
    return "\n".join(
        [*quantile_lines(found), *_table(found, most), *weak_lines(found), noise_line(found), *_end(found)]
    )


def _table(found: ReleaseFields, most: int) -> list[str]:
    if found.groups is not None:
        return _table_of_groups(found, found.groups, most)
    shown = list(islice(lines_of(found), most))
    rows = [("value", "± 95%"), *(row for _, *row in shown)]
    names = [found.query.kind, *(shortened(printable(name), _MOST_LABEL) for name, *_ in shown)]
    wide = max(map(len, names))
    columns = [max(len(row[i]) for row in rows) for i in (0, 1)]
    lines = [
        f"{name:{wide}}  {value:>{columns[0]}}  {own:>{columns[1]}}"
        for name, (value, own) in zip(names, rows, strict=True)
    ]
    left = len(found.values) - most
    return [*lines, f"… and {left:,} more in the record"] if left > 0 else lines


def _table_of_groups(found: ReleaseFields, groups: GroupsRecord, most: int) -> list[str]:
    heads = heads_of_groups(found, groups)
    rows = list(islice(rows_of_groups(found, groups), most))
    lines = [[shortened(printable(part), _MOST_LABEL) for part in row] for row in (heads, *rows)]
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    names = len(heads) - 3  # the last three are numbers
    told = ["  ".join(f"{part:{'<' if i < names else '>'}{wide[i]}}" for i, part in enumerate(line)) for line in lines]
    left = len(found.values) - most
    return [*told, f"… and {left:,} more in the record"] if left > 0 else told


def heads_of_groups(found: ReleaseFields, groups: GroupsRecord) -> list[str]:
    """Return the headings of :func:`rows_of_groups`: the last three are of numbers."""
    kind, one = found.query.kind, len(found.query.labels) == 1
    return [*groups.by, *([] if one else [kind]), "records", kind if one else "value", "± 95%"]


def rows_of_groups(found: ReleaseFields, groups: GroupsRecord) -> Iterator[list[str]]:
    """Yield the group of each value, its output where there are several, the group's records, the value, its error."""
    labels, at = found.query.labels, iter(found.values)
    by, errors, write = groups.divided_by or [1] * len(groups.cells), found.accuracies(0.05), found.writer()
    for cell, records, over, own in zip(groups.cells, groups.records, by, errors, strict=True):
        for label, error in zip(labels, own.tolist(), strict=True):
            output = [label] if len(labels) > 1 else []
            yield [*cell, *output, f"{records:,}", write(next(at), over), write(error, over)]


def lines_of(found: ReleaseFields) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each value, the value, and its error."""
    labels, groups, write = found.query.labels, found.groups, found.writer()
    if groups is None:
        for label, value, error in zip(labels, found.values, found.accuracies(0.05), strict=True):
            yield label, write(value, 1), write(float(error), 1)
        return
    by, at = groups.divided_by or [1] * len(groups.cells), iter(found.values)
    for cell, over, errors in zip(groups.cells, by, found.accuracies(0.05), strict=True):
        for label, error in zip(labels, errors.tolist(), strict=True):
            yield ", ".join([*cell, label]), write(next(at), over), write(error, over)


def noise_line(found: ReleaseFields) -> str:
    """Say by which mechanism there is which noise, at which ε, and how far off all values together are."""
    groups = found.groups
    if groups is None:
        both = found.writer()(found.accuracy(0.05, joint=True), 1)
        of, share = "", f"; all are within {both} with 95% probability"
    else:
        of = f" for {'the one group' if len(groups.cells) == 1 else f'all {len(groups.cells):,} groups together'}"
        share = _share(found)
    return (
        f"{found.mechanism.title}, ε = {at_most(found.epsilon)}{of}: discrete Laplace noise of "
        f"{_noise_in_words(found)}{share}"
    )


def _share(found: ReleaseFields) -> str:
    """Say by what the noise of each group or subject is divided."""
    cell = found.cell_that_divides
    return "" if cell is None else f", divided by the {cell}'s number of records"


def without_ledger(found: ReleaseFields) -> list[str]:
    """Say of a release that no ledger knows how it adds up with others."""
    return [f"no ledger: {found.not_promised[-1]}"] if found.ledger is None else []


def impossible_lines(found: ReleaseFields) -> list[str]:
    """Say that values cannot be true as they are, where noise made counts negative or shares larger than 1."""
    measure = measure_of(found.query.kind)
    if found.postprocessing is not None or found.query.kind not in KINDS or measure in ("sum", "mean"):
        return []
    below = min(found.values) < 0
    above = measure.startswith("share") and max(found.values) > 1
    if not (below or above):
        return []
    which = " and ".join([*(["below 0"] if below else []), *(["above 1"] if above else [])])
    return [f"noise made some values {which}; add --valid to get the nearest possible values (no privacy cost)"]


def size_line(found: ReleaseFields, read: Sequences | Rows) -> str:
    """Say how much was read for a release."""
    return read_line(read, found.theta.members[0]["nodes"] if isinstance(read, Rows) else ())


def read_line(read: Sequences | Rows, nodes: Iterable[str] = ()) -> str:
    """Say how much was read, which is public: it shows a table that was read in another way than was meant.

    ``nodes`` are all of a network, by their labels.
    """
    if isinstance(read, Rows):
        unread = [node for node in nodes if node not in read.base.columns]
        without = f"; nodes without a column that was read: {printable(names_of(unread))}" if unread else ""
        return f"read: {sum(read.observed.values()):,} cells of {counted(read.records, 'row')}{without}"
    between, unseen = sum(chain.steps - chain.records for chain in read.length), ""
    if between:
        unseen = f", and {counted(between, 'step')} without a record between them (gaps, missing states)"
    if read.base.subject is None:
        return f"read: {counted(read.records, 'record')} in {counted(len(read.length), 'chain')}{unseen}"
    return f"read: {counted(read.records, 'record')} of {counted(read.subjects, 'subject')}{unseen}"


def quantile_lines(found: ReleaseFields) -> list[str]:
    """Return a line for each quantile that was asked for."""
    lines = []
    for quantile in found.quantiles or ():
        known = f"{quantile.low} to {quantile.high}" if quantile.low != quantile.high else "no other"
        lines.append(printable(f"quantile {quantile.share:g}: {quantile.state} (95%: {known})"))
    return lines


def _noise_in_words(found: ReleaseFields) -> str:
    """Say on what there is noise of which scale."""
    measured = found.noise.measurements
    if measured is None:
        return f"scale {found.scale:.6g} on {on_values(_outputs(found))}"
    least = min(measurement.scale for measurement in measured)
    scales = f"scale {found.scale:.6g}" if least == found.scale else f"scales {least:.6g} to {found.scale:.6g}"
    counts = "one count" if len(measured) == 1 else f"{len(measured)} counts"
    of_each = "" if found.groups is None else " of each group"
    return f"{scales} on {counts}{of_each}, from which all {_outputs(found):,} values follow"


def _outputs(found: ReleaseFields) -> int:
    """Return how many values there are, or will be."""
    return len(found.query.labels) * (1 if found.groups is None else len(found.groups.cells))


def lines_of_each(found: ReleaseFields) -> list[str]:
    """Return what is said of a release for each subject before its promise."""
    query, noise = found.query, found.noise
    share = _share(found)
    subjects = counted(found.data.subjects, "subject")
    return [
        f"{query.kind} for each of {subjects} ({counted(len(query.labels), 'value')} each)",
        f"{found.mechanism.title}, ε = {at_most(found.epsilon)}: discrete Laplace noise of scale "
        f"{noise.scale:.6g}{share}; "
        f"with 95% probability each value is within {found.accuracy_95.each:.6g}{share}",
    ]


def _end(found: ReleaseFields) -> list[str]:
    """Return what is said of every release."""
    lines: list[str] = []
    if found.ledger is not None:
        booked = found.ledger
        lines += [f"ledger: number {booked.entry}, spent {at_most(booked.spent)} of {number(booked.budget, 6)} in all"]
    lines += without_ledger(found)
    lines += postprocessing_lines(found)
    return [*map(printable, lines), printable(promise_line(found))]


def promise_line(found: ReleaseFields) -> str:
    """Return the promise; where the model was fitted to this very table, that it does not hold."""
    if FITTED_HERE not in found.warnings:
        return found.promise
    return f"nothing is promised: the model was fitted to this very table; of other data it would be: {found.promise}"


def assumed_in_short(found: ReleaseFields) -> str:
    """Say briefly what the promise rests on: what the record has in full sentences."""
    parts, where, by = ["Θ holds the law of the records"], None, None
    if found.data.rows is not None:
        rows = found.data.rows
        parts += ["rows are independent of each other", "their number is public"]
        parts += ["which cells are missing is public"] if rows.missing == "unobserved" else []
        where, by = rows.where, rows.by
    if found.data.base is not None:
        base = found.data.base
        parts += [f"subjects ({base.subject}) are independent" if base.subject else "the table is one chain"]
        if base.gaps == "independent":
            parts += ["stretches on the two sides of a gap are independent (gaps='independent')"]
        parts += ["how many records there are, when, and which states are missing is public"]
        parts += [f"times are what clocks of {base.time_zone} show"] if base.time_zone else []
        where, by = base.where, base.by
    parts += [f"which rows are kept ({where}) is public"] if where else []
    parts += [f"in which group ({', '.join(by)}) each record is, and how many each has, is public"] if by else []
    return "; ".join(parts)


def postprocessing_lines(found: ReleaseFields) -> list[str]:
    """Return what was done to the values after the noise, and which values the errors are of."""
    done = found.postprocessing
    if not done:
        return []
    words = str(done) if found.groups is None else "the nearest possible values of each group"
    return [f"post-processed: {words}; the errors are those of the noisy values before that"]


def record_named(node: int | str) -> str:
    """Name the record that decides the noise: by its place in a chain, or its column.

    Examples
    --------
    >>> record_named(2159), record_named("lung")
    ('record 2159 (counted from 0)', 'record lung')
    """
    return f"record {node} (counted from 0)" if isinstance(node, int) else f"record {node}"


def on_values(number: int, what: str = "value") -> str:
    """Say on how many values there is noise.

    Examples
    --------
    >>> on_values(1), on_values(1200), on_values(3, "count")
    ('one value', 'each of 1,200 values', 'each of 3 counts')
    """
    return f"one {what}" if number == 1 else f"each of {number:,} {what}s"


# -- What releases show in a notebook --------------------------------------------------------------------------------


def release_view(found: ReleaseFields) -> View:
    """Return what a release shows: its values with their errors, quantiles, and the promise.

    Those of each subject are in a table beside it.
    """
    if found.subjects is not None:
        return _view_of_each(found, found.subjects)
    size = "" if found.groups is None else f", {counted(len(found.groups.cells), 'group')}"
    grids = [_values(found)]
    if found.quantiles:
        each = [[f"{q.share:g}", q.state, q.low, q.high] for q in found.quantiles]
        caption = "Quantiles; all are between the two states with 95% probability"
        grids = [Grid(caption, ["quantile", "state", "from", "to"], each), *grids]
    facts = {
        "query": found.query.description,
        "noise": noise_line(found),
        "all values together": _together(found),
        "class Θ": f"{found.theta.kind}; {found.theta.origin}",
        **_facts(found),
    }
    return View(f"Release: {found.query.kind}, ε = {at_most(found.epsilon)}{size}", facts, grids, _notes(found))


def _view_of_each(found: ReleaseFields, subjects: SubjectsRecord) -> View:
    share, table = _share(found), subjects.table
    facts = {
        "query": found.query.description,
        "noise": f"{found.mechanism.title}, discrete Laplace of scale {found.noise.scale:.6g}{share}; each value is "
        f"within {found.accuracy_95.each:.6g}{share} with 95% probability",
        "class Θ": f"{found.theta.kind}; {found.theta.origin}",
        "table": None if table is None else f"{table.name}, {counted(table.rows, 'row')}",
        **_facts(found),
    }
    of = counted(found.data.subjects, "subject")
    return View(f"Release for each of {of}: {found.query.kind}, ε = {at_most(found.epsilon)}", facts, (), _notes(found))


def _values(found: ReleaseFields) -> Grid:
    """Return the values with their errors, and say which values the errors are of."""
    groups = found.groups
    if groups is None:
        heads, lines = ["output", "value", "± 95%"], (list(line) for line in lines_of(found))
    else:
        heads, lines = heads_of_groups(found, groups), rows_of_groups(found, groups)
    names = 1 if groups is None else len(heads) - 3  # the last three are numbers
    each = "each" if found.postprocessing is None else "each noisy value, before the post-processing,"
    caption = f"Released values; ± 95%: {each} is within this of the exact one with 95% probability"
    return Grid(caption, heads, list(islice(lines, MOST_ROWS)), heads=names, long=len(found.values))


def _together(found: ReleaseFields) -> str | None:
    """Say how far off all values of all groups are, to the digits of the noise where that is most."""
    if found.groups is None:
        return None  # noise_line says it
    both = found.writer()(found.accuracy(0.05, joint=True), 1 / found.groups.most_error)
    noisy = "" if found.postprocessing is None else ", before the post-processing"
    return f"within {both} of the exact ones with 95% probability{noisy}"


def measurement_view(found: MeasurementFields) -> View:
    """Return what the release of a measurement shows."""
    facts = {
        "value": repr(found.value),
        "loss of one record alone": found.record_loss,
        "leakage with correlation": found.leakage,
        "class Θ": f"{found.theta.kind}; {found.theta.origin}",
        "ledger": _booked(found.ledger),
    }
    title = f"Release of a measurement: {found.measurement}, ε = {at_most(found.epsilon)}"
    return View(title, facts, (), [found.promise])


def _facts(found: Any) -> dict[str, Any]:
    done = [line.removeprefix("post-processed: ") for line in postprocessing_lines(found)]
    return {"post-processed": done[0] if done else None, "ledger": _booked(found.ledger)}


def _booked(booked: Any) -> str | None:
    if booked is None:
        return None
    return f"number {booked.entry}, spent {at_most(booked.spent)} of {number(booked.budget, 6)} in all"


def _notes(found: Any) -> list[str]:
    without = [line[:1].upper() + line[1:] for line in without_ledger(found)]
    promise = promise_line(found)
    return [*(f"Warning: {text}" for text in found.warnings), *without, promise[:1].upper() + promise[1:]]
