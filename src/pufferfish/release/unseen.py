"""Errors that do not carry exact values: a traceback holds the variables of every function it went through.

Whoever prints tracebacks with variables (``pytest --showlocals``, error trackers, rich) would print them too.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["unseen"]

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def unseen(function: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """Return a function whose errors forget where in it they were raised, and from what.

    What is given to it stays visible, so it must not be given exact values.

    Examples
    --------
    >>> def count():
    ...     exact = 7919
    ...     raise ValueError("no more random numbers")
    >>> import traceback
    >>> try:
    ...     unseen(count)()
    ... except ValueError as error:
    ...     told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    >>> "7919" in told
    False
    """

    @wraps(function)
    def call(*given: _Given.args, **more: _Given.kwargs) -> _Found:
        try:
            return function(*given, **more)
        except BaseException as error:
            bare: BaseException = error.with_traceback(None)
            bare.__cause__ = bare.__context__ = None
        raise bare

    return call
