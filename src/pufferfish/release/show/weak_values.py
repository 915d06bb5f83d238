"""Which released values are no larger than their own error: reports mark them, and it is said how many there are."""

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.view import counted
from pufferfish.release.record import ReleaseFields

__all__ = ["weak_line", "weak_lines", "weak_values"]


def weak_values(found: ReleaseFields) -> NDArray[np.bool_]:
    """Return which values are no larger than the error of their noise; of the shape of ``value``."""
    return np.abs(found.value) <= found.accuracies(0.05)


def weak_line(weak: NDArray[np.bool_]) -> str:
    """Say how many values are weak, and what that means.

    Examples
    --------
    >>> weak_line(np.array([True, False, True]))
    '2 of 3 values: no larger than their own error, so noise alone may have made them'
    >>> weak_line(np.array([True]))
    'the value is no larger than its own error, so noise alone may have made it'
    """
    if weak.size == 1:
        return "the value is no larger than its own error, so noise alone may have made it"
    how_many = f"{int(weak.sum()):,} of {counted(weak.size, 'value')}"
    return f"{how_many}: no larger than their own error, so noise alone may have made them"


def weak_lines(found: ReleaseFields) -> list[str]:
    """Return this line where it is so of most values."""
    weak = weak_values(found)
    return [weak_line(weak)] if 2 * int(weak.sum()) > weak.size else []
