"""``pufferfish checker``: the programs that check proofs of releases, to be read and run by whoever trusts nobody."""

from dataclasses import dataclass
from pathlib import Path

import click

from pufferfish._base.writing import Kind, write_whole
from pufferfish.cli._tables import check_targets
from pufferfish.cli.options import argument, command, option
from pufferfish.errors import printable
from pufferfish.release.checker import check, check_more, check_networks

_SOURCES = tuple(Path(part.__file__) for part in (check, check_networks, check_more))

_CHECKER = Kind(
    "checker",
    lambda content: any(content.startswith(source.read_bytes()[:60]) for source in _SOURCES),
    "it is another version",
    (".py",),
)


@dataclass(frozen=True, kw_only=True)
class CheckerOptions:
    """Where the checker goes."""

    output: str = argument("FILE")
    overwrite: bool = option("Replace the checker of another version.")


@command("checker", CheckerOptions)
def checker_command(options: CheckerOptions) -> None:
    """Write the checker of certificates, a file of Python that needs nothing else, and two that use it beside it.

    check_networks.py covers tables of Bayesian networks; check_more.py that and more: clocks, order 2, every first law,
    totals of several releases. They are written where FILE is named check.py, for they look for that name.

    \b
    Example:
      pufferfish checker check.py
      python check.py release.json proof.json model.json
    """
    first = Path(options.output)
    more = [first.with_name(source.name) for source in _SOURCES[1:]] if first.name == "check.py" else []
    files = [first, *more]
    check_targets([("FILE", str(file), _CHECKER) for file in files], inputs=(), overwrite=options.overwrite)
    for file, source in zip(files, _SOURCES, strict=False):
        write_whole(file, source.read_bytes(), _CHECKER, overwrite=options.overwrite)
    click.echo(
        printable(f"written: {', '.join(map(str, files))}; run it by: python {options.output} RELEASE PROOF [MODEL]")
    )
