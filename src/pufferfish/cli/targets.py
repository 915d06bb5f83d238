"""What may be written: checked before anything is drawn or spent, and kept ready until it is known."""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import NoReturn

import click

from pufferfish.errors import ParameterError, RecordError, printable
from pufferfish.files import Kind, Output, check_writable, same_file
from pufferfish.files.reading import shown
from pufferfish.model_file import ThetaRecord
from pufferfish.release import RELEASE, Release
from pufferfish.report.plot import PICTURE, PICTURE_KINDS, picture_of, require_matplotlib
from pufferfish.theta.model_class import Theta

__all__ = ["ReleaseFiles", "check_picture", "check_targets", "release_files"]

_ROOM = 2**18
"""Bytes kept free for a picture, and for what a release holds beside Θ."""

Target = tuple[str, str | None, Kind]
"""An option, the file it names, and what will be written there."""


def check_targets(targets: Sequence[Target], *, inputs: Sequence[str | Path], overwrite: bool) -> None:
    """Refuse what could not or must not be written, before any noise is drawn.

    Never what is to be read, nor one file for two options. What is there already is replaced only if it is of the kind
    that will be written; a picture may be drawn anew, a record only with ``overwrite``.
    """
    given = [(option, path, kind) for option, path, kind in targets if path is not None]
    for option, path, kind in given:
        if any(same_file(path, source) for source in inputs):
            raise ParameterError(f"{option} {shown(path)} is the file to be read: it would be lost; name another")
        if kind is PICTURE:
            check_picture(path, option)
    for (option, path, _), (other, second, _) in combinations(given, 2):
        if same_file(path, second):
            raise ParameterError(f"{other} and {option} name the same file")
    for option, path, kind in given:
        with _named(option, path):
            check_writable(path, kind, overwrite=overwrite or kind is PICTURE)


def check_picture(path: str, option: str = "--plot") -> None:
    """Refuse a picture that could not be drawn."""
    if Path(path).suffix.lower() not in PICTURE_KINDS:
        raise ParameterError(f"{option} is {shown(path)!r}, expected a name that ends in {', '.join(PICTURE_KINDS)}")
    require_matplotlib()


class ReleaseFiles:
    """Where a release and its picture go, made ready before its budget is spent; see :func:`release_files`."""

    def __init__(self, record: Output, picture: Output | None, names: list[str]) -> None:
        self._record, self._picture, self._names = record, picture, names

    def reserve(self, theta: Theta) -> None:
        """Take room on the disk for a release under Θ.

        Raises
        ------
        RecordError
            If there is too little.
        """
        self._record.reserve(4 * ThetaRecord.of(theta).size + _ROOM)
        if self._picture is not None:
            self._picture.reserve(_ROOM)

    def write(self, found: Release) -> None:
        """Write the release, and its picture; print the release where it cannot be written, for it is spent."""
        content = found.to_json()
        try:
            self._record.write(content.encode())
        except BaseException as error:
            self._print(found, content, error)
        if self._picture is not None:
            try:
                self._picture.write(picture_of(found.plot(), self._names[1]))
            except (RecordError, MemoryError) as error:
                why = error if isinstance(error, RecordError) else "there is too little memory for the picture"
                _fail(f"{why}; the release is written: {self._names[0]}")

    def _print(self, found: Release, content: str, error: BaseException) -> NoReturn:
        """Print the release in place of its file: it is all there is of what was spent."""
        spent = "the release is made"
        if found.ledger is not None:
            spent += f", and the ledger's budget for it is spent (entry {found.ledger.entry})"
        why = error if isinstance(error, RecordError) else f"interrupted before {self._names[0]} was written"
        click.echo(
            f"error: {printable(str(why))}; {spent}: keep its record, which follows on standard output", err=True
        )
        click.echo(content, nl=False)
        if not isinstance(error, RecordError):
            raise error
        sys.exit(1)


def _fail(text: str) -> NoReturn:
    click.echo(f"error: {printable(text)}", err=True)
    sys.exit(1)


@contextmanager
def release_files(output: str, plot: str | None, *, overwrite: bool) -> Generator[ReleaseFiles]:
    """Keep the places of a release and its picture ready as long as the block runs.

    Raises
    ------
    RecordError
        If one of them cannot be written.
    """
    with Output(output, RELEASE, overwrite=overwrite) as record:
        if plot is None:
            yield ReleaseFiles(record, None, [output])
            return
        with Output(plot, PICTURE, overwrite=True) as picture:
            yield ReleaseFiles(record, picture, [output, plot])


@contextmanager
def _named(option: str, path: str) -> Generator[None]:
    """Say which option named a file that is in the way."""
    try:
        yield
    except RecordError as error:
        text = str(error)
        raise RecordError(f"{option} {text}" if text.startswith(f"{shown(path)} exists") else text) from error
