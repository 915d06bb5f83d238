"""Progress of long work: the library reports, whoever runs it may listen.

Nothing is shown unless a listener is set; the command line sets one that draws a bar, or writes a line now and then.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Listener", "listening", "part_of", "report_progress"]

Listener = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done, 0 to 1."""

_listener: ContextVar[Listener | None] = ContextVar("pufferfish_progress", default=None)


def report_progress(what: str, share: float) -> None:
    """Tell the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(what, share)


@contextmanager
def listening(listener: Listener) -> Generator[None]:
    """Send progress to ``listener`` inside the block.

    Examples
    --------
    >>> with listening(lambda what, share: print(what, share)):
    ...     report_progress("search", 0.5)
    search 0.5
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part_of(what: str) -> Generator[None]:
    """Name, inside the block, what all that is reported there is a part of.

    Examples
    --------
    >>> with listening(lambda what, share: print(what, share)), part_of("Wasserstein"):
    ...     report_progress("laws of the query", 0.5)
    Wasserstein: laws of the query 0.5
    """
    listener = _listener.get()
    if listener is None:
        yield
        return
    with listening(lambda part, share: listener(f"{what}: {part}", share)):
        yield
