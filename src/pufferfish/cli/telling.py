"""What is said on standard error, and with ``--quiet-errors`` how little.

The text of a refusal may quote states, subjects or numbers of rows. Who keeps logs that others read asks for
``--quiet-errors``: from the moment a table is opened nothing but fixed sentences reaches standard error, whoever wants
to write there: this program, Python, or a library below it. An error says by ``public`` that its text depends on no
row; where there is doubt it does not, so what nobody thought of is quiet too.
"""

import os
import sys
from contextlib import suppress
from typing import Any

import click

from pufferfish.cli.as_options import as_options
from pufferfish.errors import PufferfishError, printable

__all__ = ["Telling", "rows_are_read", "tell", "telling"]

_MORE = "what the table has to do with it is not said, because of --quiet-errors"


class Telling:
    """Where a command says what is wrong, and whether rows may be spoken of.

    Parameters
    ----------
    quiet : bool
        Whether ``--quiet-errors`` was given.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._asked = quiet
        self._before: tuple[Any, int] | None = None
        self._warned = False
        self.interrupted: str | None = None
        """What an interruption is told with, where a command spends and draws, and has not begun."""

    @property
    def quiet(self) -> bool:
        """Whether a table has been opened whose rows must not be spoken of."""
        return self._before is not None

    def begin(self) -> None:
        """From now on a table is read: let nobody else write to standard error."""
        if not self._asked or self._before is not None:
            return
        shown, kept = sys.stderr, -1
        nowhere = open(os.devnull, "w")
        with suppress(OSError, ValueError, AttributeError):  # a stream that stands for standard error has no number
            if shown.fileno() == 2:
                shown.flush()
                kept = os.dup(2)
                os.dup2(nowhere.fileno(), 2)
        self._before, sys.stderr = (shown, kept), nowhere

    def end(self) -> None:
        """Give standard error back."""
        if self._before is not None:
            (shown, kept), nowhere = self._before, sys.stderr
            self._before, sys.stderr = None, shown
            nowhere.close()
            if kept >= 0:
                os.dup2(kept, 2)
                os.close(kept)

    def say(self, text: str) -> None:
        """Print what everybody may read."""
        if self._before is None:
            click.echo(text, err=True)
        elif self._before[1] < 0:
            click.echo(text, file=self._before[0])
        else:
            os.write(self._before[1], f"{text}\n".encode(errors="backslashreplace"))

    def warn(self, text: str) -> None:
        """Print a warning about a table; with ``--quiet-errors`` only, and once, that there are some."""
        if not self.quiet:
            self.say(printable(f"warning: {as_options(text)}"))
        elif not self._warned:
            self._warned = True
            self.say(f"warning: there is one about the table; {_MORE}")

    def words(self, error: BaseException) -> str:
        """Return what to say of an error."""
        if not self.quiet or (isinstance(error, PufferfishError) and error.public):
            return as_options(str(error))
        kind = error.kind if isinstance(error, PufferfishError) else "the program failed"
        return f"{kind}; {_MORE}"


def telling() -> Telling:
    """Return how the command that runs says what is wrong."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_root().obj
    return found if isinstance(found, Telling) else Telling()


def rows_are_read() -> None:
    """Say that rows of a table are read from now on; called before any file of rows is opened."""
    telling().begin()


def tell(text: str) -> None:
    """Print a line on standard error that depends on no row."""
    telling().say(text)
