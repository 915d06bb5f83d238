"""``pufferfish completion``: what a shell needs to complete commands, options and files at the press of Tab."""

from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)


class _OrFiles(ShellComplete):
    """Where nothing else is known the shell completes names of files: tables, models, outputs."""

    # the type is quoted: click 8.2 cannot subscript it
    def get_completions(self, args: list[str], incomplete: str) -> "list[CompletionItem[Any]]":
        completions = super().get_completions(args, incomplete)
        if completions or not args or incomplete.startswith("-"):
            return completions
        return [CompletionItem(incomplete, type="file")]

    source = ShellComplete.source  # as bash's own asks for its version, and the script is the same


_SHELLS: dict[str, type[ShellComplete]] = {
    each.name: type(each.__name__, (_OrFiles, each), {}) for each in (BashComplete, ZshComplete, FishComplete)
}
for _name, _shell in _SHELLS.items():
    add_completion_class(_shell, _name)


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the script with which a shell completes commands, options and names of files.

    One command makes it last, here for bash (4.4 or newer): pufferfish completion bash >> ~/.bashrc. For zsh the file
    is ~/.zshrc, for fish ~/.config/fish/completions/pufferfish.fish. It works in every new shell.

    \b
    Example:
      pufferfish completion bash
    """
    click.echo(_SHELLS[shell](ctx.find_root().command, {}, "pufferfish", "_PUFFERFISH_COMPLETE").source())
