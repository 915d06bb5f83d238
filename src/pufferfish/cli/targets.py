"""What may be written: checked before anything is drawn or spent."""

from collections.abc import Sequence
from pathlib import Path

from pufferfish.errors import ParameterError, RecordError
from pufferfish.files import check_writable
from pufferfish.release import FORMAT as RELEASE_FORMAT
from pufferfish.report.plot import PICTURE_KINDS, require_matplotlib

__all__ = ["check_picture", "check_targets"]


def check_targets(
    output: str, plot_path: str | None, *, inputs: Sequence[str | Path], keep: str | None, overwrite: bool
) -> None:
    """Refuse what could not or must not be written, before any noise is drawn.

    Never what is to be read; without ``overwrite`` no earlier release, nor any file at the option ``keep``.
    """
    for option, target in (("--output", output), ("--plot", plot_path)):
        if target is None:
            continue
        written = check_writable(target)
        if written.exists() and any(Path(source).exists() and written.samefile(source) for source in inputs):
            raise ParameterError(f"{option} {target} is the file to be read: it would be lost; name another")
        if written.exists() and not overwrite and (option == keep or _is_release(written)):
            raise RecordError(
                f"{option} {target} exists: it may be the record of an earlier release, which is spent; name another "
                "file, or give --overwrite"
            )
    if plot_path is not None:
        check_picture(plot_path)
        if Path(plot_path).resolve() == Path(output).resolve():
            raise ParameterError("--plot and --output name the same file")


def check_picture(path: str, option: str = "--plot") -> None:
    """Refuse a picture that could not be drawn."""
    if Path(path).suffix.lower() not in PICTURE_KINDS:
        raise ParameterError(f"{option} is {path!r}, expected a name that ends in {', '.join(PICTURE_KINDS)}")
    require_matplotlib()


def _is_release(path: Path) -> bool:
    with path.open("rb") as file:
        return f'"{RELEASE_FORMAT}"'.encode() in file.read(200)
