"""``pufferfish verify``: a release is checked, its proof computed again."""

import sys
from dataclasses import dataclass

import click

from pufferfish.cli.messages import rows_are_read
from pufferfish.cli.options import argument, command, option
from pufferfish.cli.print import progress
from pufferfish.release import verify

__all__ = ["verify_command"]


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """What is verified."""

    release: str = argument("RELEASE")
    model: str | None = option("Model file, to be compared with the Θ of the release.", "FILE")
    ledger: str | None = option("Ledger that the release was charged to.", "FILE")
    table: str | None = option("The private table: its public facts are compared.", "FILE")
    values: str | None = option(
        "Table of values of a release for each subject [default: the one beside the record].", "FILE"
    )


@command("verify", VerifyOptions)
def verify_command(options: VerifyOptions) -> None:
    """Check a release from its record: compute its proof again, and all that follows from something else.

    Says what holds, what does not, and what nobody can check. Exit code 0: nothing was found that does not hold; 1:
    something does not hold, or the release is not in the ledger; 2: bad input; 3: the proof could not be checked.

    \b
    Example:
      pufferfish verify release.json --model model.json --ledger book.json
    """
    if options.table is not None:
        rows_are_read()
    with progress("computing the proof again"):
        verification = verify(**vars(options))
    click.echo(str(verification))
    if not (verification.holds and verification.proved):
        sys.exit(3 if verification.holds else 1)
