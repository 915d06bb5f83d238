"""Running an experiment: parts that are done are kept on disk, so that an interrupted run goes on where it was.

A part is known by all that decides its numbers: the experiment, its name, seed, trials, the data files, and the
package's own source. Results are written whole, at the end.
"""

import hashlib
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

import pufferfish.errors
from paper.experiments.contenders import title_of
from paper.experiments.experiment import Experiment, Part, Row, Settings
from paper.experiments.table import Table, csv_of
from pufferfish._base.reading import display_path, failing
from pufferfish._base.writing import Kind, check_writable, write_whole
from pufferfish._draw.figure import PICTURE, save_figure
from pufferfish.errors import DataError, RecordError, printable

__all__ = ["Results", "run", "workplace"]

_UNFINISHED = ".unfinished"
_LOCK = "lock"

_COLUMNS = {b"mechanism", b"ledger", b"surveys"}
"""The results of every experiment have one of these columns, and a table of states has not."""


@dataclass(frozen=True, slots=True)
class Results:
    """What an experiment found, and where it is written.

    Parameters
    ----------
    about : tuple of str
        What was done.
    tables : tuple of Table
        What to read.
    reasons : tuple of str
        Why mechanisms did not apply where they did not.
    written : tuple of Path
        The CSV file, the page in Markdown, and the figure.
    """

    about: tuple[str, ...]
    tables: tuple[Table, ...]
    reasons: tuple[str, ...]
    written: tuple[Path, ...]


@contextmanager
def workplace(work: Sequence[tuple[Experiment, Settings]], folder: Path) -> Generator[None]:
    """Make the folder and keep other runs out of it; once all work is done, forget its kept parts.

    Parameters
    ----------
    work : sequence of (Experiment, Settings)
        What will be run.
    folder : Path
        Where it is written; made if it is not there.

    Raises
    ------
    RecordError
        If something could not be written, or another run is at work there; nothing is computed then.
    """
    kept = folder / _UNFINISHED
    lock = FileLock(kept / _LOCK, timeout=0)
    with failing("cannot write into", folder):
        kept.mkdir(parents=True, exist_ok=True)
        for experiment, _ in work:
            kinds = (_numbers_of(experiment), _page_of(experiment), PICTURE)
            for path, kind in zip(_targets(experiment, folder), kinds, strict=True):
                check_writable(path, kind, overwrite=True)
        try:
            lock.acquire()
        except Timeout:
            raise RecordError(
                f"another run is writing into {display_path(folder)}: wait for it, or name another folder"
            ) from None
    try:
        yield
        for experiment, settings in work:
            for path in kept.glob(f"{_prefix(experiment, settings)}*"):
                path.unlink(missing_ok=True)
    finally:
        if {path.name for path in kept.glob("*")} <= {_LOCK}:
            shutil.rmtree(kept, ignore_errors=True)
        lock.release()


def run(
    experiment: Experiment, settings: Settings, folder: Path, on_part: Callable[[int, int, str], None] | None = None
) -> Results:
    """Do all parts that are not done yet, and write the CSV file, the page and the figure.

    Parameters
    ----------
    experiment : Experiment
        Which.
    settings : Settings
        Seed, trials and data.
    folder : Path
        Where results go: inside of its :func:`workplace`.
    on_part : callable, optional
        Told before every part how many are done, of how many, and its key.

    Raises
    ------
    DataError
        If a data file cannot be used, or changed meanwhile.
    """
    parts, prefix = experiment.parts(settings), _prefix(experiment, settings)
    rows: list[Row] = []
    for i, part in enumerate(parts):
        if on_part is not None:
            on_part(i, len(parts), part.key)
        rows += _rows_of(part, folder / _UNFINISHED / f"{prefix}{_hash(part.key)}.msgpack")
    for table in settings.data.of(experiment.uses):
        if table.has_changed:
            raise DataError(f"{table.path} changed while {experiment.name} ran: nothing was written, run it again")
    if rows and all(row.get("reason") for row in rows):
        raise DataError(f"{experiment.name} has nothing to compare: for {rows[0].get('data')} {rows[0]['reason']}")
    about, tables, reasons = experiment.about(rows, settings), experiment.tables(rows, settings), _reasons(rows)
    figure = experiment.figure(rows, settings)
    numbers, page, picture = _targets(experiment, folder)
    save_figure(figure, picture)
    write_whole(numbers, csv_of(rows), _numbers_of(experiment), overwrite=True)
    content = _page(experiment, about, tables, reasons).encode()
    write_whole(page, content, _page_of(experiment), overwrite=True)
    return Results(tuple(about), tuple(tables), tuple(reasons), (numbers, page, picture))


def _targets(experiment: Experiment, folder: Path) -> tuple[Path, Path, Path]:
    numbers, page, picture = (folder / f"{experiment.name}{suffix}" for suffix in (".csv", ".md", ".png"))
    return numbers, page, picture


def _numbers_of(experiment: Experiment) -> Kind:
    """Return what a CSV file of an earlier run is: not a table of data, which may have the same name."""

    def holds(content: bytes) -> bool:
        return bool(_COLUMNS & set(content.partition(b"\n")[0].split(b",")))

    return Kind(f"CSV file of an earlier run of {experiment.name}", holds, "name another folder", (".csv",))


def _page_of(experiment: Experiment) -> Kind:
    """Return what a page of an earlier run is."""

    def holds(content: bytes) -> bool:
        return content.startswith(f"# {experiment.title}\n".encode())

    return Kind(f"page of an earlier run of {experiment.name}", holds, "name another folder", (".md",))


def _reasons(rows: list[Row]) -> list[str]:
    """Return a sentence for every mechanism that was N/A somewhere, with the first reason."""
    first: dict[str, tuple[Row, int]] = {}
    for row in rows:
        title = row.get("mechanism", row.get("ledger"))
        if row.get("reason") and isinstance(title, str):
            found, times = first.get(title, (row, 0))
            first[title] = found, times + 1
    sentences: list[str] = []
    for name, (row, times) in first.items():
        where = f" for {row['data']}" if "data" in row else ""
        more = f" (all {times} reasons are in the CSV file)" if times > 1 else ""
        sentences.append(f"N/A: {title_of(name)}{where}: {row['reason']}{more}.")
    return sentences


def _page(experiment: Experiment, about: list[str], tables: list[Table], reasons: list[str]) -> str:
    picture = f"![{experiment.title}]({experiment.name}.png)"
    shown = [picture, *(table.markdown() for table in tables)]
    return "\n\n".join([f"# {experiment.title}", *map(printable, about), *shown, *map(printable, reasons)]) + "\n"


def _rows_of(part: Part, path: Path) -> list[Row]:
    try:
        kept = msgspec.msgpack.decode(path.read_bytes(), type=list[Row])
        if kept:
            return kept
    except (OSError, msgspec.DecodeError):
        pass  # not done yet, or cut short
    rows = part.work()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, msgspec.msgpack.encode(rows), None, overwrite=True)  # JSON has no infinity
    return rows


def _prefix(experiment: Experiment, settings: Settings) -> str:
    """Return what names of kept parts start with: a hash of all that decides their numbers."""
    data = settings.data.fingerprint(experiment.uses)
    program = [_sources(), *(f"{name} {version(name)}" for name in ("numpy", "polars", "narwhals"))]
    return f"{experiment.name}.{_hash(*program, str(settings.seed), str(settings.trials), data)}."


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


@cache
def _sources() -> str:
    """Return a hash of the package's source."""
    root = Path(pufferfish.errors.__file__).parent
    contents = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        contents.update(hashlib.sha256(path.read_bytes()).digest())
    return contents.hexdigest()
