"""``pufferfish verify``: releases are checked, each proof computed again."""

import sys
from dataclasses import dataclass
from typing import Any

import click

from pufferfish.cli.messages import rows_are_read, say
from pufferfish.cli.options import argument, command, one_or_list, option
from pufferfish.cli.print import progress
from pufferfish.errors import printable
from pufferfish.ledger import Ledger
from pufferfish.release import Verification, verify, verify_together

_WORSE = (0, 3, 1)
"""Exit codes, from the best to the worst."""


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """What is verified."""

    releases: tuple[str, ...] = argument("RELEASE...", required=True)
    model: str | None = option("Model file to compare with the Θ of each release.", "FILE")
    ledger: str | None = option("Ledger that the releases were charged to.", "FILE")
    table: tuple[str, ...] = option(
        "The private table: its public facts are compared; repeat for one of several files.", "FILE"
    )
    certificate: str | None = option("Proof of the release, to be checked in whole numbers; for one release.", "FILE")
    values: str | None = option(
        "Table of values of a release for each subject [default: the one beside the record]; for one release.", "FILE"
    )


@command("verify", VerifyOptions)
def verify_command(options: VerifyOptions) -> None:
    """Check releases from their records: compute each proof again, and all that follows from something else.

    Says what holds, what does not, and what nobody can check. Of several releases also whether two of them follow the
    same entry of a ledger: then an old copy of it was used again.

    Exit code 0: nothing was found that does not hold; 1: something does not hold, or a release is not in the ledger; 2:
    bad input; 3: a proof could not be checked. Of several releases the worst counts.

    \b
    Example:
      pufferfish verify release.json --model model.json --ledger book.json
      pufferfish verify first.json second.json --ledger book.json
    """
    if len(options.releases) > 1 and options.values is not None:
        raise click.UsageError("--values is the table of one release: verify that release alone")
    if len(options.releases) > 1 and options.certificate is not None:
        raise click.UsageError("--certificate is the proof of one release: verify that release alone")
    together = verify_together(options.releases) if len(options.releases) > 1 else None  # first: it reads all of them
    verifications = _verified(options)
    if together is None:
        click.echo(str(verifications[0]))
    else:
        for release, verification in zip(options.releases, verifications, strict=True):
            click.echo(f"{printable(release)}:\n{verification}\n")
        word = together.word.upper() if together.holds is False else together.word
        say(f"all together: {word}: {together.says}")
    codes = [(0 if each.proved else 3) if each.holds else 1 for each in verifications]
    codes.append(1 if together is not None and together.holds is False else 0)
    if worst := max(codes, key=_WORSE.index):
        sys.exit(worst)


def _verified(options: VerifyOptions) -> list[Verification]:
    """Verify each release by itself."""
    table = one_or_list(options.table) if options.table else None
    if table is not None:
        rows_are_read()
    with progress("computing the proof again"):
        ledger = None if options.ledger is None else Ledger.open(options.ledger)  # once for all releases
        told: dict[str, Any] = {"model": options.model, "ledger": ledger, "table": table}
        told |= {"values": options.values, "certificate": options.certificate}
        return [verify(release, **told) for release in options.releases]
