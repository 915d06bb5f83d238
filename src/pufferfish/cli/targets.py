"""What may be written: checked before anything is drawn or spent, and kept ready until it is known."""

import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import combinations
from pathlib import Path
from typing import NoReturn

import click

from pufferfish._base.reading import shown
from pufferfish._base.writing import Kind, Output, check_writable, same_file
from pufferfish._draw.figure import PICTURE, picture_of, require_matplotlib
from pufferfish._draw.page import PREVIEW
from pufferfish.cli.messages import print_error
from pufferfish.errors import ParameterError, RecordError, printable
from pufferfish.release import RELEASE, Release
from pufferfish.release.facts import is_table
from pufferfish.release.spreadsheets import csv_of
from pufferfish.theta.model_class import Theta
from pufferfish.theta.record import ThetaRecord

__all__ = ["REPLACED", "REPLACES", "TABLE", "ReleaseFiles", "check_targets", "release_files"]

_ROOM = 2**18
"""Bytes kept free for a picture, and for what a release holds beside Θ."""

_ROOM_OF_VALUE = 200
"""Bytes kept free for each value."""

TABLE = Kind("table of the values of a release", is_table, "name another file", (".csv",))
"""A table is made of the release's record, so it is replaced as pictures are; it is known by its first line."""

REPLACED = (
    "the earlier release that stood there is spent nevertheless: where it was of these records too, two releases of "
    "them are out, and together they tell more than either (documentation: Composing releases)"
)
"""Said where the record of a release is replaced: what was published stays known."""

REPLACES = (
    "it would replace the earlier release that stands there, which stays spent: where it was of these records too, two "
    "releases of them would be out"
)
"""Said by a dry run."""

Target = tuple[str, str | None, Kind]
"""An option, the file it names, and what will be written there."""


def check_targets(targets: Sequence[Target], *, inputs: Sequence[str | Path], overwrite: bool) -> None:
    """Refuse what could not or must not be written, before any noise is drawn.

    Never what is to be read, nor one file for two options, nor a name that promises another kind of file. What is there
    already is replaced only if it is of the kind that will be written; a picture or table may be made anew, a record
    only with ``overwrite``.
    """
    given = [(option, path, kind) for option, path, kind in targets if path is not None]
    for option, path, kind in given:
        if any(same_file(path, source) for source in inputs):
            raise ParameterError(f"{option} {shown(path)} is the file to be read: it would be lost; name another")
        kind.check_name(option, path)
        if kind is PICTURE:
            require_matplotlib()
    for (option, path, _), (other, second, _) in combinations(given, 2):
        if same_file(path, second):
            raise ParameterError(f"{other} and {option} name the same file")
    for option, path, kind in given:
        with _named(option, path):
            check_writable(path, kind, overwrite=overwrite or kind in (PICTURE, TABLE, PREVIEW))


class ReleaseFiles:
    """Where a release and its picture go, made ready before its budget is spent; see :func:`release_files`."""

    def __init__(self, outputs: dict[str, Output], names: dict[str, str], *, for_spreadsheets: bool) -> None:
        self._for_spreadsheets = for_spreadsheets
        self._record, self._outputs, self._names = outputs["--output"], outputs, names

    def reserve(self, theta: Theta, values: int) -> None:
        """Take room on the disk for a release of so many values under Θ.

        Raises
        ------
        RecordError
            If there is too little.
        """
        self._record.reserve(4 * ThetaRecord.of(theta).size + _ROOM + _ROOM_OF_VALUE * values)
        for option, output in self._outputs.items():
            if option != "--output":
                output.reserve(_ROOM + _ROOM_OF_VALUE * values)

    def write(self, found: Release) -> None:
        """Write release, table and picture; print the release where it cannot be written, for it is spent."""
        content = found.to_json()
        try:
            self._record.write(content.encode())
        except BaseException as error:
            self._print(found, content, error)
        making = {
            "--csv": lambda: csv_of(found.to_frame(), for_spreadsheets=self._for_spreadsheets),
            "--plot": lambda: picture_of(found.plot(), self._names["--plot"]),
        }
        for option, make in making.items():
            if option in self._outputs:
                try:
                    self._outputs[option].write(make())
                except (RecordError, MemoryError) as error:
                    why = error if isinstance(error, RecordError) else f"there is too little memory for {option}"
                    _fail(f"{why}; the release is written: {self._names['--output']}")

    def _print(self, found: Release, content: str, error: BaseException) -> NoReturn:
        """Print the release in place of its file: it is all there is of what was spent."""
        spent = "the release is made"
        if found.ledger is not None:
            spent += f", and the ledger's budget for it is spent (entry {found.ledger.entry})"
        why = error if isinstance(error, RecordError) else f"interrupted before {self._names['--output']} was written"
        print_error(f"error: {printable(str(why))}; {spent}: keep its record, which follows on standard output")
        click.echo(content, nl=False)
        if not isinstance(error, RecordError):
            raise error
        sys.exit(1)


def _fail(text: str) -> NoReturn:
    print_error(f"error: {printable(text)}")
    sys.exit(1)


@contextmanager
def release_files(
    targets: Sequence[Target], *, overwrite: bool, for_spreadsheets: bool = False
) -> Generator[ReleaseFiles]:
    """Keep the places of a release, its table and its picture ready as long as the block runs.

    ``for_spreadsheets`` is whether names in the table that a spreadsheet takes for formulas are quoted.

    Raises
    ------
    RecordError
        If one of them cannot be written.
    """
    with ExitStack() as stack:
        outputs: dict[str, Output] = {}
        names = {option: path for option, path, _ in targets if path is not None}
        for option, path, kind in targets:
            if path is not None:
                outputs[option] = stack.enter_context(Output(path, kind, overwrite=overwrite or kind is not RELEASE))
        yield ReleaseFiles(outputs, names, for_spreadsheets=for_spreadsheets)


@contextmanager
def _named(option: str, path: str) -> Generator[None]:
    """Say which option named a file that is in the way."""
    try:
        yield
    except RecordError as error:
        text = str(error)
        raise RecordError(f"{option} {text}" if text.startswith(f"{shown(path)} exists") else text) from error
