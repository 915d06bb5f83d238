"""``python -m paper``: what the package itself does not need."""

from collections.abc import Mapping

import click

from pufferfish.cli import Commands


class _Paper(Commands):
    """The commands of this folder."""

    what_they_do: Mapping[str, str] = {
        "reproduce": "The tables and figures of the paper.",
        "audit": "What mechanisms promise, and what really leaks, on small models.",
    }
    modules: Mapping[str, str] = {"reproduce": "paper.reproduce", "audit": "paper.audit.command"}


@click.group(cls=_Paper, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def main() -> None:
    """Make the paper's experiments again, and audit every mechanism."""


if __name__ == "__main__":
    main(prog_name="python -m paper")
