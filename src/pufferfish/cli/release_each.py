"""``pufferfish release --each-subject``: one value for each subject, in one table."""

import sys
from collections.abc import Sequence
from typing import Any, Literal

import click

from pufferfish._base.view import counted
from pufferfish._base.writing import same_file
from pufferfish.cli.print import print_before, progress
from pufferfish.cli.targets import REPLACED
from pufferfish.cli.telling import tell, telling
from pufferfish.data import Rows, Sequences
from pufferfish.errors import ParameterError, PufferfishError, printable
from pufferfish.ledger import Ledger
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import Query
from pufferfish.release import EachRelease, prepare_each
from pufferfish.release.cells import records_of_subjects
from pufferfish.release.show.text import size_line, summary
from pufferfish.release.store import Places
from pufferfish.theta.model_class import Theta

__all__ = ["check_each_model", "check_each_options", "errors_of_subjects", "places_of", "release_each_subject"]


def check_each_options(reading: dict[str, Any], plot: str | None, csv: str | None, up_to: float | None) -> None:
    """Refuse options that do not go with ``--each-subject``."""
    if reading["subject"] is None:
        raise ParameterError("--each-subject needs --subject: the column that says whose records they are")
    if reading["by"] is not None:
        raise ParameterError(
            "--by does not go with --each-subject: release the groups of all subjects together, or --by the column of "
            "subjects without --each-subject"
        )
    if csv is not None:
        raise ParameterError("--csv is for one release, and --each-subject writes a table as --output: leave it out")
    if plot is not None:
        raise ParameterError("--plot draws one value, and --each-subject releases one for each subject: leave it out")
    if up_to is not None:
        raise ParameterError(
            "--up-to does not go with --each-subject: after a crash the same command goes on, and what is spent would "
            "have changed by then; give --epsilon"
        )


def check_each_model(theta: Theta, query: Query, accuracy: float | None) -> None:
    """Refuse a network, and an accuracy that differs from subject to subject."""
    if not theta.of_chains:
        raise ParameterError(
            f"--each-subject is for Markov chains, and the model is a class of {theta.kind}: there each row is a "
            "subject of its own"
        )
    if accuracy is not None and query.known is not None and query.known.relative:
        raise ParameterError(
            f"--accuracy of a {query.kind} differs from subject to subject, as their numbers of records do: ask for "
            "counts or sums, or give --epsilon"
        )


def places_of(output: str, *, inputs: Sequence[str], overwrite: bool, for_spreadsheets: bool) -> Places:
    """Return where the table and its record go; refuse what is to be read."""
    places = Places(output, overwrite=overwrite, for_spreadsheets=for_spreadsheets)
    for path in (places.table, places.record, places.pending_table, places.pending_record, places.lock):
        if any(same_file(path, source) for source in inputs):
            raise ParameterError(f"--output {path.name} is the file to be read: it would be lost; name another")
    return places


def release_each_subject(
    data: Sequences | Rows,
    query: Query,
    calibration: Calibration,
    places: Places,
    *,
    told: Sequence[str],
    asked_for: str | None,
    postprocess: Literal["valid"] | None,
    warnings: Sequence[str],
    ledger: Ledger | None,
) -> None:
    """Release, write, and say what was promised; warnings, and the ε that was found, come before anything is spent."""
    replaced = places.record.exists()  # by Places an earlier release

    def begin() -> None:
        print_before(ready.warnings, told, asked_for)
        telling().interrupted = None

    with progress("releasing"):
        ready = prepare_each(
            data, query, calibration, places, postprocess=postprocess, warnings=warnings, ledger=ledger
        )
        try:
            found = ready.finish(begin)
        except BaseException as error:
            if not (places.begun and places.pending_record.exists()):
                raise
            why = telling().words(error) if isinstance(error, PufferfishError) else "interrupted"
            tell(
                f"error: {printable(why)}; {printable(places.given_record)}.pending says what was begun: run the same "
                "command again, which goes on, and spends no budget twice"
            )
            if isinstance(error, PufferfishError | KeyboardInterrupt):
                sys.exit(1)
            raise
    click.echo(summary(found))
    for line in (*errors_of_subjects(found, data), size_line(found, data)):
        click.echo(printable(line))
    people = counted(data.subjects, "subject") if isinstance(data, Sequences) else "subjects"
    click.echo(
        printable(
            f"{places.given} is about persons under their own names: it says of {people} that they are in the data "
            "and how many records each has, without noise"
        )
    )
    click.echo(printable(f"written: {places.given}, {places.given_record}"))
    click.echo(
        printable(f"{places.lock.name} keeps two programs from making it at the same time; it is empty, and stays")
    )
    if replaced:
        click.echo(REPLACED)


def errors_of_subjects(found: EachRelease, data: Sequences | Rows) -> list[str]:
    """Say the errors of a value that is divided by each subject's own number of records."""
    if not (found.query.divided_by_records and isinstance(data, Sequences)):
        return []
    records = records_of_subjects(data).tolist()
    few, most = (f"± {found.accuracy_95.each / n:.3g} for {counted(n, 'record')}" for n in (min(records), max(records)))
    own = few if few == most else f"from {most} to {few}"
    return [f"each value with 95% probability: {own} (error_95 in the table says it of each subject)"]
