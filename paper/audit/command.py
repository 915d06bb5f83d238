"""``python -m paper audit``: whether mechanisms keep their promise."""

import sys

import click

from paper.audit import report
from pufferfish._base.writing import Kind, write_whole
from pufferfish.cli._tables import check_targets
from pufferfish.cli.print import progress

__all__ = ["audit_command"]

_PAGE = Kind(
    "page of an audit",
    lambda content: content.startswith(b"# Audit\n\nMade by `python -m paper audit"),
    "name another file",
    (".md",),
    any_name=True,
)


@click.command("audit")
@click.option("--output", metavar="FILE", help="Where the page is written, as Markdown [default: standard output].")
def audit_command(output: str | None) -> None:
    """Compare what mechanisms promise with what really leaks, on small models; no data are needed.

    True losses are computed by enumeration, or bounded from below; real releases are sampled; and mechanisms that are
    broken on purpose have to be caught. Exit code 1: a promise does not hold, or a broken mechanism was not caught.

    \b
    Example:
      python -m paper audit --output audit.md
    """
    if output is not None:
        check_targets([("--output", output, _PAGE)], inputs=(), overwrite=True)
    with progress("auditing"):
        found = report()
    if output is None:
        click.echo(str(found))
    else:
        write_whole(output, str(found).encode(), _PAGE, overwrite=True)
        click.echo(f"written: {output}")
    if not found.holds:
        sys.exit(1)
