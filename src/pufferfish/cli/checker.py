"""``pufferfish checker``: the program that checks proofs of releases, to be read and run by whoever trusts nobody."""

from dataclasses import dataclass
from pathlib import Path

import click

from pufferfish._base.writing import Kind, write_whole
from pufferfish.cli.options import argument, command, option
from pufferfish.errors import printable
from pufferfish.release import checker

__all__ = ["checker_command"]

_SOURCE = Path(checker.__file__)

_CHECKER = Kind(
    "checker", lambda content: content.startswith(_SOURCE.read_bytes()[:60]), "it is another version", (".py",)
)


@dataclass(frozen=True, kw_only=True)
class CheckerOptions:
    """Where the checker goes."""

    output: str = argument("FILE")
    overwrite: bool = option("Replace the checker of another version.")


@command("checker", CheckerOptions)
def checker_command(options: CheckerOptions) -> None:
    """Write the checker of certificates, one file of Python that needs nothing else.

    \b
    Example:
      pufferfish checker check.py
      python check.py release.json proof.json model.json
    """
    write_whole(options.output, _SOURCE.read_bytes(), _CHECKER, overwrite=options.overwrite)
    click.echo(printable(f"written: {options.output}; run it by: python {options.output} RELEASE PROOF [MODEL]"))
