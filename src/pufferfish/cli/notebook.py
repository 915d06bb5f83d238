"""``pufferfish notebook``: a notebook that makes a release again."""

import os
from dataclasses import dataclass
from pathlib import Path

from pufferfish._base.reading import display_path, read_file
from pufferfish._base.words import at_least, at_most, number
from pufferfish._base.writing import write_whole
from pufferfish.cli._tables import check_targets
from pufferfish.cli.messages import say
from pufferfish.cli.options import argument, command, option, refuse_contradiction
from pufferfish.errors import NotApplicableError, RecordError
from pufferfish.ledger import Ledger, files_of, is_address, shown_where
from pufferfish.release import MEASUREMENT
from pufferfish.release.again import NOTEBOOK, notebook_of
from pufferfish.release.record import release_in
from pufferfish.release.verify import ledger_findings


@dataclass(frozen=True, kw_only=True)
class NotebookOptions:
    """What a notebook makes again."""

    release: str = argument("RELEASE")
    output: str = option("Where the notebook is written (.ipynb).", "FILE", required=True)
    table: str | None = option("Path of the private table, as written in the notebook.", "TABLE")
    ledger: str | None = option("The ledger that RELEASE was charged to; each run is charged to it.", "FILE")
    overwrite: bool = option("Replace an earlier notebook.")


@command("notebook", NotebookOptions)
def notebook_command(options: NotebookOptions) -> None:
    """Write a notebook that makes RELEASE again: all of it but the noise.

    It reads the table as it was read, takes the model from the record, calibrates the same noise, releases, draws and
    verifies. Nothing is read or released now. Each run of the notebook is another release of the same records.

    \b
    Example:
      pufferfish notebook release.json --output analysis.ipynb
      pufferfish notebook second.json --ledger book.json --output analysis.ipynb
    """
    release_path, output, ledger_path = options.release, options.output, options.ledger
    inputs = (release_path, *(() if ledger_path is None else files_of(ledger_path)))
    check_targets([("--output", output, NOTEBOOK)], inputs=inputs, overwrite=options.overwrite)
    content = read_file(release_path)
    if MEASUREMENT.holds(content):
        raise NotApplicableError(
            f"{display_path(release_path)} is the release of a measurement, whose algorithm is not in the file: a "
            "notebook repeats only releases of queries"
        )
    release = release_in(content, display_path(release_path))
    refuse_contradiction(release, release_path)
    ledger = None if ledger_path is None else Ledger.open(ledger_path)
    if ledger is not None and ledger_path is not None:
        for finding in ledger_findings(release, ledger):
            if not finding.holds:
                raise RecordError(
                    f"{display_path(release_path)} is not in the ledger {shown_where(ledger_path)}: {finding.says}"
                )
    here = Path(output).resolve().parent
    named = [None if path is None else _seen_from(here, path) for path in (options.table, ledger_path)]
    if ledger is not None and ledger.path is not None and is_address(ledger_path):
        named[-1] = shown_where(ledger.path)
    content = notebook_of(release, _seen_from(here, release_path), *named)
    write_whole(output, content, NOTEBOOK, overwrite=options.overwrite)
    say(f"written: {output}")
    if ledger is not None and ledger_path is not None:
        spent = f"{at_most(ledger.spent)} of {number(ledger.budget, 6)}"
        left = f"{at_least(ledger.remaining)} of its budget is left"
        if ledger.remaining < release.epsilon:
            left += f", less than the ε = {at_most(release.epsilon)} of this release"
        say(f"each run is charged to {shown_where(ledger_path)}: {spent} is spent, {left}")
    elif release.ledger is not None:
        say(
            "this release was charged to a ledger: set LEDGER in the first cell of the notebook to its file, or give "
            "--ledger FILE; until then a run stops before it releases"
        )


def _seen_from(folder: Path, path: str) -> str:
    """Return a path as seen from a folder, where notebooks run."""
    try:
        return Path(os.path.relpath(Path(path).resolve(), folder)).as_posix()
    except ValueError:  # on another drive
        return str(Path(path).resolve())
