"""What is said on standard error, and with ``--quiet-errors`` how little.

The text of a refusal may quote states, subjects or numbers of rows. With ``--quiet-errors``, for logs that others read,
nothing but fixed sentences reaches standard error once a table is opened, whoever wants to write there. An error says
by ``public`` that its text depends on no row; where there is doubt it does not.

Messages of the library name arguments of Python, ``max_gap=``, which are turned here into options, ``--max-gap``, as
they are printed: they are put together from parts, and warnings go into records, for readers of both kinds.
"""

import os
import re
import sys
from contextlib import suppress
from typing import Any

import click

from pufferfish.errors import PufferfishError, printable

_MORE = "details about the table are hidden by --quiet-errors"


class Messages:
    """Where a command says what is wrong, and whether rows may be spoken of: not where ``--quiet-errors`` is given."""

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


def messages() -> Messages:
    """Return how the command that runs says what is wrong."""
    context = click.get_current_context(silent=True)
    current = None if context is None else context.find_root().obj
    return current if isinstance(current, Messages) else Messages()


def say(*lines: str, err: bool = False) -> None:
    """Print lines that may hold names of the user's: what does not print is shown by its code."""
    for line in lines:
        click.echo(printable(line), err=err)


def rows_are_read() -> None:
    """Say that rows of a table are read from now on; called before any file of rows is opened."""
    messages().begin()


def print_error(text: str) -> None:
    """Print a line on standard error that depends on no row."""
    messages().say(text)


# -- Messages of the library in the words of the command line --------------------------------------------------------

_NAMES = (
    "state|subject|time|time_zone|ambiguous|max_gap|step|bins|where|missing|gaps|by|columns|epsilon|accuracy|alpha|noise|"
    "clock|order|smoothing|secrets|initial|accept|protect|cover|people"
)
_VALID = "postprocess"
"""In Python ``postprocess="valid"``, here ``--valid``."""
_FLAGS = "overwrite|for_spreadsheets|again|grows"
"""In Python ``overwrite=True``."""

_NUMBER = r"(?:[-+]?[\d.]+(?:e[-+]?\d+)?|-?inf|nan)"
_ARGUMENT = re.compile(
    r"(?P<kept>(?<![\w=])'[^']*'|(?<![\w=])\"[^\"]*\")|ledger\.calibrate\(query, up_to=(?P<level>[\d.e-]+)\)"
    r"|(?P<call>\w\([^()]*\))"  # in Python
    rf"|(?<![\w./-])(?P<flag>{_FLAGS})=True"
    rf"|(?<![\w./-])(?P<name>{_NAMES}|{_VALID})=(?:(?P<quote>['\"])(?P<value>.*?)(?P=quote)|(?=[\s,;:)]|$))"
    rf"|\A(?P<first>epsilon|accuracy|alpha|smoothing|budget|confidence)(?= is {_NUMBER},)"
    rf"|\A(?P<chain>length\[\d+\])(?= is {_NUMBER},)"
    rf"|\A(?P<file>output(?= is '[^']*', expected a name)|(?:protect|within|ambiguous)(?= is ['\d]))"
    r"|within=\[\('(?P<one>[^']*)', '(?P<other>[^']*)'\)\]"
    rf"|(?<![\w./-])(?P<alone>max_gap|time_zone|up_to|drop_slowest|{_VALID})(?![\w./=-])"  # what is no English word
)


def as_options(text: str) -> str:
    """Return a message that names options and not arguments of Python.

    >>> as_options("the length of a step is unknown: give step=, or a longer max_gap")
    'the length of a step is unknown: give --step, or a longer --max-gap'
    >>> as_options("missing='refuse'; leave such rows out by where='sex != none'")
    "--missing refuse; leave such rows out by --where 'sex != none'"
    >>> as_options("if everybody may see this table, give accept='public'")
    'if everybody may see this table, give --accept public'
    >>> as_options("for all that is left: ledger.calibrate(query, up_to=1.5)")
    'for all that is left: --up-to 1.5'
    >>> as_options("epsilon is -1.0, expected a positive finite number such as 1.0")
    '--epsilon is -1.0, expected a positive finite number such as 1.0'
    >>> as_options("length[0] is 0, expected at least 1 record"), as_options("output is 'a', expected a name that …")
    ('--length is 0, expected at least 1 record', "--output is 'a', expected a name that …")
    >>> as_options("epsilon is no model")  # a file
    'epsilon is no model'
    >>> as_options("column 'max_gap' not found. Columns: max_gap, step.")
    "column 'max_gap' not found. Columns: max_gap, step."
    """
    message, *names = re.split("( (?:Columns|Keys): )", text, maxsplit=1)
    return _ARGUMENT.sub(_option, message) + "".join(names)


def _option(argument: re.Match[str]) -> str:
    if argument["kept"] is not None or argument["call"] is not None:
        return argument[0]
    if argument["level"] is not None:
        return f"--up-to {argument['level']}"
    if argument["one"] is not None:
        return f"--within {argument['one']}:{argument['other']}"
    name = next((argument[part] for part in ("flag", "name", "alone", "first", "file") if argument[part]), "length")
    value, quote = argument["value"], argument["quote"]
    if name == _VALID:
        return "--valid"
    option = f"--{name.replace('_', '-')}"
    if value is None:
        return option
    return f"{option} {value}" if re.fullmatch(r"[\w.:+-]+", value) else f"{option} {quote}{value}{quote}"
