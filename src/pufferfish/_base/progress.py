"""Progress of long work: the library reports, whoever runs it may listen.

Nothing is shown unless a listener is set; the command line sets one that draws a bar, or writes a line now and then.
"""

import time
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

from pufferfish.errors import ParameterError

# -- The last few results of something that takes long ---------------------------------------------------------------

T = TypeVar("T")


class BoundedCache(Generic[T]):
    """Results by what they depend on; where there are too many, those that were made first go.

    >>> squares = BoundedCache(most=2)
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


Listener = Callable[[str, float], None]  # called with what is being done and the share of it that is done, 0 to 1

_listener: ContextVar[Listener | None] = ContextVar("pufferfish_progress", default=None)


def report_progress(task: str, share: float) -> None:
    """Tell the listener, if there is one."""
    if (listener := _listener.get()) is not None:
        listener(task, share)


@contextmanager
def listening(listener: Listener) -> Generator[None]:
    """Send progress to ``listener`` inside the block.

    It is called with what is being done, as text, and the share of it that is done, 0 to 1. What it raises stops the
    work and comes out of the call that was at work: nothing half-computed is kept, and the same call works again.

    Examples
    --------
    >>> with listening(lambda task, share: print(task, share)):
    ...     report_progress("search", 0.5)
    search 0.5
    """
    if not callable(listener):
        raise ParameterError(f"listener is {listener!r}, expected a function of a text and a share")
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part_of(whole: str, place: int = 0, many: int = 1) -> Generator[None]:
    """Name, inside the block, what all that is reported there is a part of; of many blocks, tell the share of all.

    >>> with listening(lambda task, share: print(task, share)), part_of("Wasserstein"):
    ...     report_progress("laws of the query", 0.5)
    Wasserstein: laws of the query 0.5
    >>> with listening(lambda task, share: print(task, share)), part_of("own chains", 1, 4):
    ...     report_progress("search", 0.5)
    own chains (2 of 4): search 0.375
    """
    listener = _listener.get()
    if listener is None:
        yield
        return
    name = f"{whole} ({place + 1} of {many})" if many > 1 else whole
    with listening(lambda part, share: listener(f"{name}: {part}", (place + share) / many)):
        yield


class TookTooLong(Exception):
    """Work was ended, as it took longer than whoever asked for it would wait."""


class Patience:
    """Seconds of computing that may be spent on what a caller can do without; work ends where it reports progress.

    >>> patience = Patience(0.0)
    >>> with patience.working():
    ...     report_progress("search", 0.5)
    Traceback (most recent call last):
    pufferfish._base.progress.TookTooLong
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    @contextmanager
    def working(self) -> Generator[None]:
        """Raise :class:`TookTooLong` inside the block where the seconds are over, or are so before it begins."""
        start, outer = time.process_time(), _listener.get()

        def look() -> None:
            if time.process_time() - start > self._left or self._left <= 0:
                raise TookTooLong

        def listen(task: str, share: float) -> None:
            look()
            if outer is not None:
                outer(task, share)

        try:
            look()
            with listening(listen):
                yield
        finally:
            self._left -= time.process_time() - start
