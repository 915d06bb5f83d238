"""The last few results of something that takes long, so that what is asked again is not computed again."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["Kept"]

T = TypeVar("T")


class Kept(Generic[T]):
    """Results by what they depend on; where there are too many, those that were made first go.

    Parameters
    ----------
    most : int
        How many are kept.

    Examples
    --------
    >>> squares = Kept(most=2)
    >>> [squares.of(n, lambda n=n: n * n) for n in (3, 4, 3)]
    [9, 16, 9]
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._results: dict[Hashable, T] = {}

    def __contains__(self, key: Hashable) -> bool:
        """Whether a result is kept."""
        return key in self._results

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made for a key, or make it now."""
        if key in self._results:
            return self._results[key]
        made = make()  # may ask for other results in turn
        while len(self._results) >= self._most:
            self._results.pop(next(iter(self._results)))
        self._results[key] = made
        return made
