"""What releases, and what was found about them, show in a notebook: the values, the noise and the promise."""

from itertools import islice
from typing import TYPE_CHECKING, Any

from pufferfish.digits import at_most, number
from pufferfish.release.fields import ReleaseFields
from pufferfish.release.summary import lines_of
from pufferfish.shown import MOST_ROWS, Grid, View, counted

if TYPE_CHECKING:
    from pufferfish.release.each_record import EachRelease
    from pufferfish.release.measurement import MeasurementRelease
    from pufferfish.release.verification import Verification

__all__ = ["of_each", "of_measurement", "of_release", "of_verification"]


def of_release(found: ReleaseFields) -> View:
    """Return what a release shows: its values with their errors, quantiles, and the promise."""
    m, groups = len(found.query.labels), found.groups
    heads = ["output"] if groups is None else [*groups.by, "output"]
    names = [[label] for label in found.query.labels]
    if groups is not None:
        names = [[*cell, label] for cell in groups.cells[: -(-MOST_ROWS // m)] for label in found.query.labels]
    values = islice(lines_of(found), MOST_ROWS)
    rows = [[*name, value, error] for name, (_, value, error) in zip(names, values, strict=False)]
    what = "Released values; ± 95%: each is within this of the exact one with 95% probability"
    grids = [Grid(what, [*heads, "value", "± 95%"], rows, heads=len(heads), long=len(found.values))]
    if found.quantiles:
        each = [[f"{q.share:g}", q.state, q.low, q.high] for q in found.quantiles]
        caption = "Quantiles; all are between the two states with 95% probability"
        grids = [Grid(caption, ["quantile", "state", "from", "to"], each), *grids]
    joint = found.writer()(found.accuracy(0.05, joint=True), 1)
    size = "" if groups is None else f", {counted(len(groups.cells), 'group')}"
    facts = {
        "query": found.query.description,
        "noise": f"{found.mechanism.title}, discrete Laplace of scale {found.scale:.6g}"
        f"{' at most' if found.noise.measurements else ''}; all values are within {joint} with 95% probability",
        "class Θ": f"{found.theta.kind}; {found.theta.origin}",
        **_facts(found),
    }
    return View(f"Release: {found.query.kind}, ε = {at_most(found.epsilon)}{size}", facts, grids, _notes(found))


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
    done = found.postprocessing
    return {"post-processed": None if done is None else str(done), "ledger": _booked(found.ledger)}


def _booked(booked: Any) -> str | None:
    if booked is None:
        return None
    return f"number {booked.entry}, spent {at_most(booked.spent)} of {number(booked.budget, 6)} in all"


def _notes(found: Any) -> list[str]:
    return [*(f"Warning: {text}" for text in found.warnings), found.promise]
