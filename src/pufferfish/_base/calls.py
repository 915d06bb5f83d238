"""Calls with missing, unknown or too many arguments: one clear line with the right call, not Python's own words.

What a user calls to begin with has it: all public functions, the constructors of what users make, and the methods of
mechanisms and ledgers that need to be given something. There a wrong call is mostly a misunderstanding, and an example
helps. Methods of what one already holds (``release.accuracy(alhpa=0.1)``), alternative constructors such as
``from_json``, and records, which the package makes, answer with Python's own TypeError, as in any other library: it
names the method and the argument.
"""

import inspect
from abc import ABCMeta
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pufferfish._base.words import did_you_mean
from pufferfish.errors import ParameterError

__all__ = ["CheckedCalls", "called_as"]

P = ParamSpec("P")
R = TypeVar("R")


def called_as(usage: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function answer a call that does not fit its arguments with the right call.

    Parameters
    ----------
    usage : str
        The right call, as an example; ``{}`` stands for the name of the class.

    Examples
    --------
    >>> @called_as('read("day.csv", state="activity")')
    ... def read(source, state):
    ...     return source
    >>> read("day.csv")
    Traceback (most recent call last):
    pufferfish.errors.ParameterError: state is missing. Example: read("day.csv", state="activity")
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                signature.bind(*args, **kwargs)
            except TypeError:
                name = type(args[0]).__name__ if "{}" in usage and args else ""
                wrong = _wrong(list(signature.parameters.values()), args, kwargs)
                raise ParameterError(f"{wrong} Example: {usage.replace('{}', name)}") from None
            try:
                return function(*args, **kwargs)
            except ValueError as error:
                if "integer string conversion" not in str(error):
                    raise
                raise ParameterError(
                    "an argument is a whole number of thousands of digits, which is too large"
                ) from None

        return checked

    return decorated


class CheckedCalls(ABCMeta):
    """Classes whose constructors answer a call that does not fit in one clear line, with no example of their own.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Window(metaclass=CheckedCalls):
    ...     first: int
    >>> Window(frist=3)
    Traceback (most recent call last):
    pufferfish.errors.ParameterError: Window: there is no argument 'frist'. Did you mean 'first'?
    """

    if not TYPE_CHECKING:  # a type checker looks at the constructor itself

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            """Make an object."""
            try:
                return super().__call__(*args, **kwargs)
            except TypeError:
                signature = cls.__signature__
                try:
                    signature.bind(*args, **kwargs)
                except TypeError:
                    wrong = _wrong(list(signature.parameters.values()), args, kwargs)
                    raise ParameterError(f"{cls.__name__}: {wrong}") from None
                raise

        @property
        def __signature__(cls) -> inspect.Signature:
            """What the constructor takes; without it, Python would show the arguments of the method above."""
            own = inspect.signature(cls.__init__)
            return own.replace(parameters=list(own.parameters.values())[1:])


def _wrong(parameters: Sequence[inspect.Parameter], args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Say what does not fit: unknown names first, since a misspelt name is also one that is missing."""
    parameters = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    known = {parameter.name: parameter for parameter in parameters if parameter.name not in ("self", "cls")}
    places = [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
    unknown = [name for name in kwargs if name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], known) or f" Arguments: {', '.join(known)}."
        return f"there is no argument {unknown[0]!r}.{hint}"
    if len(args) > len(places):
        named = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
        left = f"; give {', '.join(named)} by name" if named else ""
        hidden = len(places) - sum(name in known for name in places)
        return (
            f"{len(args) - hidden} arguments are given without a name, expected at most {len(places) - hidden}{left}."
        )
    given = {*places[: len(args)], *kwargs}
    twice = [name for name in places[: len(args)] if name in kwargs]
    if twice:
        return f"{twice[0]} is given twice, in its place and by name."
    missing = [p.name for p in known.values() if p.default is p.empty and p.name not in given]
    first = f"{', '.join(missing[:-1])} and " if missing[1:] else ""
    return f"{first}{''.join(missing[-1:])} {'is' if len(missing) == 1 else 'are'} missing."
