"""``pufferfish verify``: a release is checked, its proof computed again."""

import sys

import click

from pufferfish.cli.print import progress
from pufferfish.cli.telling import rows_are_read
from pufferfish.release import verify

__all__ = ["verify_command"]


@click.command("verify")
@click.argument("release_path", metavar="RELEASE")
@click.option("--model", "model_path", metavar="FILE", help="Model file, to be compared with the Θ of the release.")
@click.option("--ledger", "ledger_path", metavar="FILE", help="Ledger that the release was charged to.")
@click.option("--table", "table", metavar="FILE", help="The private table: its public facts are compared.")
@click.option(
    "--values",
    "values_path",
    metavar="FILE",
    help="Table of values of a release for each subject [default: the one beside the record].",
)
def verify_command(
    release_path: str, model_path: str | None, ledger_path: str | None, table: str | None, values_path: str | None
) -> None:
    """Check a release from its record: compute its proof again, and all that follows from something else.

    Says what holds, what does not, and what nobody can check. Exit code 0: nothing was found that does not hold; 1:
    something does not hold, or the release is not in the ledger; 2: bad input.

    \b
    Example:
      pufferfish verify release.json --model model.json --ledger book.json
    """
    if table is not None:
        rows_are_read()
    with progress("computing the proof again"):
        found = verify(release_path, model=model_path, ledger=ledger_path, table=table, values=values_path)
    click.echo(str(found))
    if not found.holds:
        sys.exit(1)
