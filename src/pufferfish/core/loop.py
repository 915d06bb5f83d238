"""Loops over plain arrays that are compiled once they have had enough to do for compiling to pay."""

from collections.abc import Callable
from typing import Any

__all__ = ["Loop"]

_INTERPRETED = 100_000
"""Steps that a loop does interpreted before it is compiled."""


class Loop:
    """A loop that is interpreted until it has had enough to do for compiling to pay.

    Parameters
    ----------
    loop : callable
        Plain loops over numbers, so that numba can compile them as they stand.
    """

    def __init__(self, loop: Callable[..., Any]) -> None:
        self._run, self._plain, self._done = loop, True, 0

    def __call__(self, work: int, *arguments: Any) -> Any:
        """Run the loop, whose arguments mean ``work`` steps, and return what it does."""
        self._done += work
        if self._plain and self._done > _INTERPRETED:
            import numba  # here: it takes long to load, and small problems do without

            jit: Any = numba.njit
            self._run, self._plain = jit(self._run, cache=True, nogil=True), False
        return self._run(*arguments)
