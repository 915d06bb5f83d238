"""What may be written: checked before anything is drawn or spent."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

from pufferfish._base.reading import display_path
from pufferfish._base.writing import Kind, check_writable, same_file
from pufferfish._draw.figure import PICTURE, require_matplotlib
from pufferfish._draw.page import PREVIEW
from pufferfish.errors import ParameterError, RecordError
from pufferfish.release.record import is_table

__all__ = ["TABLE", "check_targets"]

TABLE = Kind("table of the values of a release", is_table, "name another file", (".csv",))
"""A table is made of the release's record, so it is replaced as pictures are; it is known by its first line."""

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
            raise ParameterError(
                f"{option} {display_path(path)} is the file to be read: it would be lost; name another"
            )
        kind.check_name(option, path)
        if kind is PICTURE:
            require_matplotlib()
    for (option, path, _), (other, second, _) in combinations(given, 2):
        if same_file(path, second):
            raise ParameterError(f"{other} and {option} name the same file")
    for option, path, kind in given:
        with _named(option, path):
            check_writable(path, kind, overwrite=overwrite or kind in (PICTURE, TABLE, PREVIEW))


@contextmanager
def _named(option: str, path: str) -> Generator[None]:
    """Say which option named a file that is in the way."""
    try:
        yield
    except RecordError as error:
        text = str(error)
        raise RecordError(f"{option} {text}" if text.startswith(f"{display_path(path)} exists") else text) from error
