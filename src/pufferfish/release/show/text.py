"""A release for people, as text: its values as a table, the noise, the promise, and which record decides the noise.

The lines stand in one place for the command line, for ``print(release)`` and for notebooks (the views at the end).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pufferfish._base.view import MOST_ROWS, Grid, View, counted, in_columns
from pufferfish._base.words import at_most, names_of, number, to_the_noise
from pufferfish.data import Rows, Sequences
from pufferfish.errors import printable, shortened
from pufferfish.mechanisms.promises import promise_chart, promise_grid, promise_picture
from pufferfish.mechanisms.words import TOGETHER, check_in_words, hidden_in_words
from pufferfish.queries import KINDS, measure_of
from pufferfish.release.facts import LedgerRecord
from pufferfish.release.prepare import FITTED_HERE
from pufferfish.release.record import MeasurementFields, ReleaseFields, quantile_rows
from pufferfish.release.show.values import are_shares, joint_error, marked, weak_lines, weak_values
from pufferfish.release.sums import all_totals

_MOST_LABEL = 60


def described(record: ReleaseFields) -> str:
    """Return all that a reader of a release looks at first."""
    witness = record.mechanism.witness
    where = "" if witness.node is None else f", {record_named(witness.node)}"
    pair = "" if witness.pair_in_words is None else f": {' or '.join(witness.pair_in_words)}"
    said_already = record.not_promised[-1:] if record.ledger is None else []  # by without_ledger
    lines = [
        *(f"warning: {text}" for text in record.warnings),
        f"made {record.created[:19]} by pufferfish {record.software.get('pufferfish-privacy')}; "
        f"Θ: {record.theta.origin}; {check_in_words(record.checked)}",
        f"the noise is for the secret that needs most{where}{pair}; "
        f"at most {at_most(record.mechanism.leakage)} nats leak",
        *(
            f"{'' if text.startswith(TOGETHER) else 'not '}promised: {text}"
            for text in record.not_promised
            if text not in said_already
        ),
        *(f"assumed: {text}" for text in record.assumptions),
    ]
    return "\n".join([summary(record), *map(printable, [*promise_lines(record), *lines])])


def hides_line(record: ReleaseFields) -> str:
    """Say what is hidden, before any value."""
    return f"hides {record.hides}, at ε = {at_most(record.epsilon)}"


def promise_lines(record: ReleaseFields) -> list[str]:
    """Return what one noise promises of every unit as lines of text; none where that is not known."""
    grid = promise_grid(record.promises)
    rows = [row[:3] for row in (grid.columns, *grid.rows)]
    return in_columns(rows, [False, True, True]) if record.promises else []


def summary(record: ReleaseFields, most: int = 60) -> str:
    """Return the values, the noise and the promise in a few lines; of very many values the first."""
    lines = [printable(hides_line(record))]
    if record.subjects is not None:
        lines += lines_of_each(record)
    else:
        lines += [*quantile_lines(record), *_table_lines(record, most), *weak_lines(record), noise_line(record)]
    return "\n".join([*lines, *_closing_lines(record)])


def _table_lines(record: ReleaseFields, most: int) -> list[str]:
    """Return the values in columns, under their headings, and totals of groups; at most so many of each."""
    lines = _in_columns(heads_of(record), islice(rows_of(record), most), 2 if record.groups is None else 3)
    left = len(record.values) - most
    lines += [f"… and {left:,} more in the record"] if left > 0 else []
    for title, heads, rows in totals_of_groups(record):
        lines += [f"{printable(title)}:", *_in_columns(heads, rows[:most])]
    return lines


def _in_columns(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 3) -> list[str]:
    """Return rows under their headings; the last columns are numbers."""
    texts = [[shortened(printable(part), _MOST_LABEL) for part in row] for row in (heads, *rows)]
    return in_columns(texts, [i >= len(heads) - numbers for i in range(len(heads))])


def heads_of(record: ReleaseFields) -> list[str]:
    """Return the headings of :func:`rows_of`: the last two are of numbers, with groups the last three."""
    kind, one_output = record.query.kind, len(record.query.labels) == 1
    if record.groups is None:
        return [kind, "value", "± 95%"]
    return [*record.groups.by, *([] if one_output else [kind]), "records", kind if one_output else "value", "± 95%"]


def rows_of(record: ReleaseFields) -> Iterator[list[str]]:
    """Yield of each value its group and the output where there are several, the group's records, value, and error."""
    groups, labels, write = record.groups, record.query.labels, record.writer()
    cells: Iterable[tuple[Sequence[str], list[str], float]] = [((), [], 1)]
    if groups is not None:
        sizes = ([f"{records:,}"] for records in groups.records)
        cells = zip(groups.cells, sizes, groups.divided_by or [1] * len(groups.cells), strict=True)
    errors, weak = record.accuracies(0.05).ravel().tolist(), weak_values(record).ravel().tolist()
    numbers = zip(record.values, errors, weak, strict=True)
    for cell, records, divisor in cells:
        for label, (value, error, faint) in zip(labels, numbers, strict=False):
            output = [label] if groups is None or len(labels) > 1 else []
            yield [*cell, *output, *records, marked(write(value, divisor), faint), write(error, divisor)]


def totals_of_groups(record: ReleaseFields) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Yield totals of wider groups: what they are of, headings, and rows to as many digits as their noise leaves."""
    for names, wider in all_totals(record):
        rows = list[list[str]]()
        for total in wider:
            scale = total.error_95 / math.log(20)  # of one variable with such an error
            numbers = [total.value, total.error_95]
            value, error = (to_the_noise(x, scale, whole=record.whole) if scale else number(x) for x in numbers)
            value = marked(value, abs(total.value) <= total.error_95)
            rows.append([*total.cell, total.output, f"{total.records:,}", value, error])
        yield f"totals of {', '.join(names)}", [*names, "output", "records", "value", "± 95%"], rows


def noise_line(record: ReleaseFields) -> str:
    """Say by which mechanism there is which noise, at which ε, and how far off all values together are."""
    groups = record.groups
    if groups is None:
        scope, share = "", f"; all are within {joint_error(record)} with 95% probability"
    else:
        scope = f" for {'the one group' if len(groups.cells) == 1 else f'all {len(groups.cells):,} groups together'}"
        share = division(record)
    return (
        f"{record.mechanism.title}, ε = {at_most(record.epsilon)}{scope}: discrete Laplace noise of "
        f"{_noise_in_words(record)}{share}"
    )


def division(record: ReleaseFields) -> str:
    """Say by what the noise of each group or subject is divided."""
    cell = record.cell_that_divides
    return "" if cell is None else f", divided by the {cell}'s number of records"


def without_ledger(record: ReleaseFields) -> list[str]:
    """Say of a release that no ledger knows how it adds up with others."""
    return [f"no ledger: {record.not_promised[-1]}"] if record.ledger is None else []


def impossible_lines(record: ReleaseFields, values: Sequence[float] | None = None) -> list[str]:
    """Say that values cannot be true as they are, where noise made counts negative or shares larger than 1.

    Those of subjects stand in their table.
    """
    values = record.values if values is None else values
    measure = measure_of(record.query.kind)
    if record.postprocessing is not None or record.query.kind not in KINDS or measure in ("sum", "mean"):
        return []
    below, above = min(values) < 0, are_shares(record) and max(values) > 1
    which = " and ".join(["below 0"] * below + ["above 1"] * above)
    possible = "a release with --valid has the nearest possible values (no privacy cost)"
    return [f"noise made some values {which}; {possible}"] if which else []


def size_line(record: ReleaseFields, data: Sequences | Rows) -> str:
    """Say how much was read for a release."""
    return read_line(data, record.theta.members[0]["nodes"] if isinstance(data, Rows) else ())


def read_line(data: Sequences | Rows, nodes: Iterable[str] = ()) -> str:
    """Say how much was read, which is public: it shows a table that was read in another way than was meant.

    ``nodes`` are all of a network, by their labels.
    """
    if isinstance(data, Rows):
        unread = [node for node in nodes if node not in data.base.columns]
        without = f"; nodes without a column that was read: {printable(names_of(unread))}" if unread else ""
        return f"read: {sum(data.observed.values()):,} cells of {counted(data.records, 'row')}{without}"
    between, unseen = sum(chain.steps - chain.records for chain in data.length), ""
    if between:
        unseen = f", and {counted(between, 'step')} without a record between them (gaps, missing states)"
    if data.base.subject is None:
        return f"read: {counted(data.records, 'record')} in {counted(len(data.length), 'chain')}{unseen}"
    return f"read: {counted(data.records, 'record')} of {counted(data.subjects, 'subject')}{unseen}"


def _plain(value: float | str) -> str:
    return value if isinstance(value, str) else number(value)


def quantile_lines(record: ReleaseFields) -> list[str]:
    """Return a line for each quantile that was asked for."""
    lines: list[str] = []
    for row in quantile_rows(record):
        *cell, share, here, low, high = map(_plain, row.values())
        interval = f"{low} to {high}" if low != high else "no other"
        lines.append(printable(f"{', '.join([*cell, 'quantile'])} {share}: {here} (95%: {interval})"))
    return lines


def _noise_in_words(record: ReleaseFields) -> str:
    """Say on what there is noise of which scale."""
    measured = record.noise.measurements
    if measured is None:
        n = _outputs(record)
        return f"scale {record.scale:.6g} on {'one value' if n == 1 else f'each of {n:,} values'}"
    least = min(measurement.scale for measurement in measured)
    scales = f"scale {record.scale:.6g}" if least == record.scale else f"scales {least:.6g} to {record.scale:.6g}"
    counts = "one count" if len(measured) == 1 else f"{len(measured)} counts"
    of_each = "" if record.groups is None else " of each group"
    return f"{scales} on {counts}{of_each}, from which all {_outputs(record):,} values follow"


def _outputs(record: ReleaseFields) -> int:
    """Return how many values there are, or will be."""
    return len(record.query.labels) * (1 if record.groups is None else len(record.groups.cells))


def lines_of_each(record: ReleaseFields) -> list[str]:
    """Return what is said of a release for each subject before its promise."""
    query, noise = record.query, record.noise
    share, subjects = division(record), counted(record.data.subjects, "subject")
    return [
        f"{query.kind} for each of {subjects} ({counted(len(query.labels), 'value')} each)",
        f"{record.mechanism.title}, ε = {at_most(record.epsilon)}: discrete Laplace noise of scale "
        f"{noise.scale:.6g}{share}; with 95% probability each value is within {record.accuracy_95.each:.6g}{share}",
    ]


def _closing_lines(record: ReleaseFields) -> list[str]:
    """Return what is said of every release."""
    booked = [] if record.ledger is None else [f"ledger: {_place_in_ledger(record.ledger)}"]
    lines = [*booked, *without_ledger(record), *postprocessing_lines(record), promise_line(record)]
    return list(map(printable, lines))


def promise_line(record: ReleaseFields) -> str:
    """Return the promise; where the model was fitted to this very table, that it does not hold."""
    if FITTED_HERE not in record.warnings:
        return record.promise
    return f"nothing is promised: the model was fitted to this very table; of other data it would be: {record.promise}"


def assumed_in_short(record: ReleaseFields) -> str:
    """Say briefly what the promise rests on: what the record has in full sentences."""
    data = record.data
    parts, rows, base = [f"Θ holds the law of the records ({check_in_words(record.checked)})"], data.rows, data.base
    if rows is not None:
        parts += ["rows are independent of each other", "their number is public"]
        parts += ["which cells are missing is public"] if rows.missing == "unobserved" else []
    if base is not None:
        parts += [f"subjects ({base.subject}) are independent" if base.subject else "the table is one chain"]
        if base.gaps == "independent":
            parts += ["stretches on the two sides of a gap are independent (gaps='independent')"]
        parts += ["how many records there are, when, and which states are missing is public"]
        parts += [f"times are what clocks of {base.time_zone} show"] if base.time_zone else []
    where, by = (None, None) if data.reading is None else (data.reading.where, data.reading.by)
    parts += [f"which rows are kept ({where}) is public"] if where else []
    parts += [f"in which group ({', '.join(by)}) each record is, and how many each has, is public"] if by else []
    return "; ".join(parts)


def postprocessing_lines(record: ReleaseFields) -> list[str]:
    """Return what was done to the values after the noise, and which values the errors are of."""
    postprocessing = record.postprocessing
    if not postprocessing:
        return []
    words = str(postprocessing) if record.groups is None else "the nearest possible values of each group"
    return [f"post-processed: {words}; the errors are those of the noisy values before that"]


def record_named(node: int | str) -> str:
    """Name the record that decides the noise: by its place in a chain, or its column.

    Examples
    --------
    >>> record_named(2159), record_named("lung")
    ('record 2159 (counted from 0)', 'record lung')
    """
    return f"record {node} (counted from 0)" if isinstance(node, int) else f"record {node}"


# -- What releases show in a notebook --------------------------------------------------------------------------------


def release_view(record: ReleaseFields) -> View:
    """Return what a release shows: its values with their errors, quantiles, and the promise.

    Those of each subject are in a table beside it.
    """
    each, groups = record.subjects, record.groups
    table = None if each is None else each.table
    facts = {
        "hides": record.hides,
        "query": record.query.description,
        "noise": noise_line(record) if each is None else lines_of_each(record)[1],
        "all values together": _together(record),
        "class Θ": f"{record.theta.kind}; {record.theta.origin}; {check_in_words(record.checked)}",
        "table": None if table is None else f"{table.name}, {counted(table.rows, 'row')}",
        "post-processed": next((line.removeprefix("post-processed: ") for line in postprocessing_lines(record)), None),
        "ledger": _place_in_ledger(record.ledger),
    }
    units = promise_grid(record.promises)
    pictures = promise_picture(promise_chart(record.promises, record.step, record.protection))
    if each is not None:
        title = f"Release for each of {counted(record.data.subjects, 'subject')}: {record.query.kind}"
        return View(heading(title, record), facts, [units], _notes(record), pictures)
    grids = [_values_grid(record), units]
    if record.quantiles:
        rows = list(quantile_rows(record))
        caption = "Quantiles; all are between the two ends with 95% probability"
        heads = [*list(rows[0])[:-2], "from", "to"]
        grids = [Grid(caption, heads, [[*map(_plain, row.values())] for row in rows]), *grids]
    grids[1:1] = [
        Grid(title[:1].upper() + title[1:], heads, rows[:MOST_ROWS], heads=len(heads) - 3, long=len(rows))
        for title, heads, rows in totals_of_groups(record)
    ]
    size = "" if groups is None else f", {counted(len(groups.cells), 'group')}"
    return View(heading(f"Release: {record.query.kind}{size}", record), facts, grids, _notes(record), pictures)


def heading(what: str, record: ReleaseFields | MeasurementFields) -> str:
    """Name a release, with the unit that it hides in few words."""
    secrets, step = (record.mechanism.secrets, record.step) if isinstance(record, ReleaseFields) else (None, None)
    of_chains = record.theta.of_chains
    unit = hidden_in_words(secrets, record.protection, step, of_chains=of_chains, networks=not of_chains, brief=True)
    return f"{what}, hiding {unit}, at ε = {at_most(record.epsilon)}"


def _values_grid(record: ReleaseFields) -> Grid:
    """Return the values with their errors, and say which values the errors are of."""
    heads = heads_of(record)
    heads, names = (["output", *heads[1:]], 1) if record.groups is None else (heads, len(heads) - 3)
    which = "each" if record.postprocessing is None else "each noisy value, before the post-processing,"
    caption = f"Released values; ± 95%: {which} is within this of the exact one with 95% probability"
    return Grid(caption, heads, list(islice(rows_of(record), MOST_ROWS)), heads=names, long=len(record.values))


def _together(record: ReleaseFields) -> str | None:
    """Say how far off all values of all groups are."""
    if record.groups is None:
        return None  # noise_line says it
    noisy = "" if record.postprocessing is None else ", before the post-processing"
    return f"within {joint_error(record)} of the exact ones with 95% probability{noisy}"


def measurement_view(record: MeasurementFields) -> View:
    """Return what the release of a measurement shows."""
    facts = {
        "value": repr(record.value),
        "loss of one record alone": record.record_loss,
        "leakage with correlation": record.leakage,
        "class Θ": f"{record.theta.kind}; {record.theta.origin}",
        "ledger": _place_in_ledger(record.ledger),
    }
    title = f"Release of a measurement: {record.measurement}"
    return View(heading(title, record), facts, (), [record.promise])


def _place_in_ledger(booked: LedgerRecord | None) -> str | None:
    if booked is None:
        return None
    return f"number {booked.entry}, spent {at_most(booked.spent)} of {number(booked.budget, 6)} in all"


def _notes(record: ReleaseFields) -> list[str]:
    without = [line[:1].upper() + line[1:] for line in without_ledger(record)]
    promise = promise_line(record)
    return [*(f"Warning: {text}" for text in record.warnings), *without, promise[:1].upper() + promise[1:]]
