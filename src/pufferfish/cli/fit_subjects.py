"""``pufferfish fit --each-subject``: a chain for every subject of a public table."""

from typing import TYPE_CHECKING, Any, Literal

from pufferfish._base.view import counted
from pufferfish.cli.options import state_list
from pufferfish.cli.print import never_seen, print_warnings, progress
from pufferfish.fit.model_file import Model
from pufferfish.fit.subjects import POOLING, SubjectsFit, fit_each_subject

if TYPE_CHECKING:
    from pufferfish.data.spark import SparkFiles

__all__ = ["subjects_model"]


def subjects_model(
    table: "str | SparkFiles",
    states: str | None,
    initial: Literal["stationary", "any"],
    smoothing: float | None,
    pooling: float | None,
    reading: dict[str, Any],
) -> tuple[Model, list[str]]:
    """Return the model, and what to say of it."""
    asked: dict[str, Any] = reading | {"missing": reading["missing"] or "unobserved"}
    with progress("reading the table"):
        found = fit_each_subject(
            table,
            asked.pop("state"),
            pooling=POOLING if pooling is None else pooling,
            smoothing=smoothing or 0.0,
            initial=initial,
            states=state_list(states),
            **asked,
        )
    print_warnings(found.sequences.warnings)
    return Model.fitted(found.theta, found.sequences), _lines(found)


def _lines(found: SubjectsFit) -> list[str]:
    theta, subjects = found.theta, found.sequences.subjects
    each = f"{counted(len(theta.chains), 'chain')} of {theta.k} states, " + (
        "one for each subject"
        if len(theta.chains) == subjects
        else f"for {subjects:,} subjects: equal ones are kept once"
    )
    lines = [f"{each}, from {int(found.sequences.transitions.sum()):,} transitions"]
    if found.pooling:
        lines.append(
            f"every row of every subject was given {found.pooling:g} transitions of all subjects; "
            f"{found.mostly_pool} subject{' has' if found.mostly_pool == 1 else 's have'} a row with fewer of its own"
        )
    return lines + never_seen([chain.transition_matrix for chain in theta.chains], 1)
