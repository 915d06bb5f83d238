"""The command line: thin calls of the library, one file a command.

Every command prints what it did to standard output, progress and warnings to standard error, and one clear line with
exit code 2 on bad input, before anything is written or spent.
"""

from typing import Any

import click

from pufferfish.cli.compare import compare_command
from pufferfish.cli.fit import fit_command
from pufferfish.cli.ledger import ledger_group
from pufferfish.cli.release import release_command
from pufferfish.cli.reproduce import reproduce_command
from pufferfish.cli.robustness import robustness_command
from pufferfish.errors import PufferfishError, printable

__all__ = ["main"]


class _Group(click.Group):
    """Commands whose known errors become one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PufferfishError as error:
            click.echo(f"error: {printable(str(error))}", err=True)
            ctx.exit(2)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="pufferfish-privacy", prog_name="pufferfish")
def main() -> None:
    """Private statistics of correlated records.

    \b
    The usual way:
      pufferfish fit      PUBLIC.csv  --state activity --subject id --time t --max-gap 10min --output model.json
      pufferfish compare  model.json  --length 5000 --query histogram --epsilon 1
      pufferfish release  PRIVATE.csv --state activity --subject id --time t --max-gap 10min --model model.json
                                      --query histogram --epsilon 1 --output release.json --plot release.png
    """


for _command in (release_command, ledger_group, fit_command, compare_command, robustness_command, reproduce_command):
    main.add_command(_command)
