"""Figures of matplotlib: how they are made, and how they are written."""

import io
import os
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from pufferfish._base.reading import check_path, shown
from pufferfish._base.writing import Kind, write_whole
from pufferfish.errors import ParameterError, RecordError

__all__ = [
    "PICTURE",
    "PICTURE_KINDS",
    "new_figure",
    "picture_of",
    "require_matplotlib",
    "save_figure",
]

PICTURE_KINDS = (".png", ".svg", ".pdf")

_SIGNS = (b"\x89PNG\r\n\x1a\n", b"<?xml", b"%PDF-")
_MARK = "pufferfish-picture"
_MARKED = {".png": "Software", ".svg": "Creator", ".pdf": "Creator"}


def _is_picture(content: bytes) -> bool:
    return content.startswith(_SIGNS) and _MARK.encode() in content


PICTURE = Kind("picture", _is_picture, "name another file", PICTURE_KINDS)
"""Pictures say in their metadata who drew them: only those are drawn over."""


def require_matplotlib() -> None:
    """Raise ParameterError where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ParameterError("plots need matplotlib: pip install 'pufferfish-privacy[plot]'") from None


def new_figure(wide: float, high: float, layout: str | None = "constrained") -> Any:
    """Return an empty figure of so many inches, which notebooks show by themselves.

    It belongs to no window and to no list of open figures: nothing has to be closed.
    """
    require_matplotlib()
    return _picture_class()(figsize=(wide, high), layout=layout)


@cache
def _picture_class() -> Any:
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook shows where it is the last line of a cell, without a magic command."""

        def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
            title = " ".join(self.get_suptitle().split())
            return _drawn(self, ".png", dpi=100), {"alt": f"Picture. {title}".strip()}

    return Picture


def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure as PNG, SVG or PDF; of what is there already only pictures of this program are replaced.

    Raises
    ------
    RecordError
        If the file cannot be written, or is something else.
    """
    write_whole(path, picture_of(figure, path), PICTURE, overwrite=True)


def picture_of(figure: Any, path: str | os.PathLike[str]) -> bytes:
    """Return a figure as the content of a file with this name: PNG, SVG or PDF.

    Raises
    ------
    RecordError
        If the name ends otherwise.
    """
    check_path(path)
    kind = Path(path).suffix.lower()
    if kind not in PICTURE_KINDS:
        raise RecordError(f"cannot draw {shown(path)}: expected a name that ends in {', '.join(PICTURE_KINDS)}")
    return _drawn(figure, kind, dpi=150)


def _drawn(figure: Any, kind: str, dpi: int) -> bytes:
    picture = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box is drawn; the JSON has the name
        figure.savefig(picture, dpi=dpi, format=kind[1:], metadata={_MARKED[kind]: _MARK})
    return picture.getvalue()
