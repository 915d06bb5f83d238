"""``pufferfish audit``: whether mechanisms keep their promise."""

import sys
from pathlib import Path

import click

from pufferfish.audit import report
from pufferfish.cli.printing import progress
from pufferfish.files.reading import failing

__all__ = ["audit_command"]


@click.command("audit")
@click.option("--output", metavar="FILE", help="Where the page is written, as Markdown [default: standard output].")
def audit_command(output: str | None) -> None:
    """Compare what mechanisms promise with what really leaks, on small models; no data are needed.

    True losses are computed by enumeration, or bounded from below; real releases are sampled; and mechanisms that are
    broken on purpose have to be caught. Exit code 1: a promise does not hold, or a broken mechanism was not caught.

    \b
    Example:
      pufferfish audit --output audit.md
    """
    with progress("auditing"):
        found = report()
    if output is None:
        click.echo(str(found))
    else:
        with failing("cannot write", output):
            Path(output).write_text(str(found))
        click.echo(f"written: {output}")
    if not found.holds:
        sys.exit(1)
