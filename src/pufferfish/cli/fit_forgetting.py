"""``pufferfish fit --forgets``: a forgetting class, estimated from public data or stated."""

from typing import TYPE_CHECKING, Any

from pufferfish._base.view import counted
from pufferfish.cli.options import state_list
from pufferfish.cli.print import print_warnings, progress
from pufferfish.data.bins import bin_labels, parse_bins
from pufferfish.errors import ParameterError
from pufferfish.fit.forgetting import SMOOTHING, OverlapEstimate, fit_forgetting
from pufferfish.fit.model_file import Model
from pufferfish.theta.forgetting_class import ForgettingClass

if TYPE_CHECKING:
    from pufferfish.data.spark import SparkFiles

__all__ = ["forgetting_model"]


def forgetting_model(
    table: "str | SparkFiles | None",
    forgets: tuple[str, ...],
    overlaps: tuple[float, ...],
    states: str | None,
    smoothing: float | None,
    reading: dict[str, Any],
) -> tuple[Model, list[str]]:
    """Return the model, and what to say of it.

    Raises
    ------
    ParameterError
        If an overlap is stated and a table given, or neither; or one of the options does not go with the others.
    """
    if not forgets:
        raise ParameterError("--overlap says how much, and --forgets after what time: give both")
    names = state_list(states)
    if overlaps:
        return _stated(table, forgets, overlaps, names, smoothing, reading)
    if table is None:
        raise ParameterError(
            "give the TABLE of public data that the overlap is estimated from, or state it by --overlap"
        )
    if reading["state"] is None:
        raise ParameterError("give --state: the column of states")
    asked: dict[str, Any] = reading | {"missing": reading["missing"] or "unobserved", "states": names}
    with progress("reading the table"):
        found = fit_forgetting(
            table,
            asked.pop("state"),
            list(forgets),
            smoothing=SMOOTHING if smoothing is None else smoothing,
            **asked,
        )
    print_warnings(found.sequences.warnings)
    model = Model.fitted(found.theta, found.sequences)
    lines = [line for each in found.estimates for line in _lines(each, model.step)]
    lines.append(
        f"each subject's laws were given {found.smoothing:g} independent pairs of all subjects: little data looks less "
        "forgetful than it is"
    )
    return model, lines


def _stated(
    table: "str | SparkFiles | None",
    forgets: tuple[str, ...],
    overlaps: tuple[float, ...],
    names: list[str] | None,
    smoothing: float | None,
    reading: dict[str, Any],
) -> tuple[Model, list[str]]:
    if table is not None:
        raise ParameterError("--overlap states what a TABLE would tell: leave one of them out")
    if len(overlaps) != len(forgets):
        raise ParameterError(f"--forgets is given {len(forgets)} times and --overlap {len(overlaps)}: one for each")
    for name, value in {**reading, "smoothing": smoothing}.items():
        if value is not None and name not in ("bins", "step", "gaps"):
            raise ParameterError(f"--{name.replace('_', '-')} is about a TABLE, and --overlap needs none: leave it out")
    bins = None if reading["bins"] is None else parse_bins(reading["bins"])
    if names is None and bins is None:
        raise ParameterError("give the --states of the records, such as sit,stand,walk, or --bins")
    from pufferfish.data.public_counts import as_steps  # here: it loads what reads tables

    steps = [as_steps(each, reading["step"]) for each in forgets]
    theta = ForgettingClass(steps, list(overlaps), bin_labels(bins) if names is None and bins is not None else names)
    lines = [f"after {n} steps habits overlap by {share:g}, as stated" for n, share in theta.pairs]
    return Model(theta=theta, bins=bins, step=reading["step"]), lines


def _lines(found: OverlapEstimate, step: str | None) -> list[str]:
    whose = f"the least of {counted(found.subjects, 'subject')}, that of {found.subject!r}, " if found.subject else ""
    after = f"after {found.steps:,} steps{'' if step is None else f' of {step}'}"
    return [
        f"{after} habits overlap by {found.overlap:.4g}: {whose}about the state {found.steps:,} steps "
        f"{found.direction}",
        f"  all taken together {found.pooled:.4g}, from {found.pairs:,} pairs of records",
    ]
