"""What releases, and what was found about them, show in a notebook: the values, the noise and the promise."""

from itertools import islice
from typing import TYPE_CHECKING, Any

from pufferfish._base.view import MOST_ROWS, Grid, View, counted
from pufferfish._base.words import at_most, number
from pufferfish.release.facts import ReleaseFields
from pufferfish.release.show.text import (
    heads_of_groups,
    lines_of,
    noise_line,
    postprocessing_lines,
    promise_line,
    rows_of_groups,
    without_ledger,
)

if TYPE_CHECKING:
    from pufferfish.release.each_record import EachRelease
    from pufferfish.release.measurement import MeasurementRelease
    from pufferfish.release.verification import Verification

__all__ = ["of_each", "of_measurement", "of_release", "of_verification"]


def of_release(found: ReleaseFields) -> View:
    """Return what a release shows: its values with their errors, quantiles, and the promise."""
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


def of_each(found: "EachRelease") -> View:
    """Return what a release for each subject shows: the values are in its table."""
    share = ", divided by the subject's number of records" if found.query.divided_by_records else ""
    facts = {
        "query": found.query.description,
        "noise": f"{found.mechanism.title}, discrete Laplace of scale {found.noise.scale:.6g}{share}; each value is "
        f"within {found.accuracy_95.each:.6g}{share} with 95% probability",
        "class Θ": f"{found.theta.kind}; {found.theta.origin}",
        "table": None if found.table is None else f"{found.table.name}, {counted(found.table.rows, 'row')}",
        **_facts(found),
    }
    of = counted(found.data.subjects, "subject")
    return View(f"Release for each of {of}: {found.query.kind}, ε = {at_most(found.epsilon)}", facts, (), _notes(found))


def of_measurement(found: "MeasurementRelease") -> View:
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


def of_verification(found: "Verification") -> View:
    """Return what a verification shows: first what does not hold."""
    rows = [[each.what, each.word, each.says] for each in found.worst_first]
    grid = Grid("What was computed again", ["what", "found", "says"], rows, long=len(rows))
    return View(found.subject, None, [grid], [f"{found.verdict[:1].upper()}{found.verdict[1:]}."])


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
