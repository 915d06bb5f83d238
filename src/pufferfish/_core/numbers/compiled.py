"""Loops over plain numbers and arrays, compiled by numba where that pays, and kept on disk.

All of them are made here, by :class:`Loops`, and known by :attr:`Loops.made`: a test compares what each does compiled
with what it does interpreted, bit for bit.
"""

import hashlib
from collections.abc import Callable, Iterable
from functools import cache, cached_property, partial
from types import FunctionType, SimpleNamespace
from typing import Any, ClassVar

from pufferfish._base.progress import report_progress

_INTERPRETED = 100_000  # steps that a loop does interpreted before it is compiled
_TOGETHER = 10
"""Searches of which none does enough for compiling to pay have done enough together at so many times as much."""


@cache
def _machine_code(function: FunctionType, from_python: bool) -> Any:
    """Return a function compiled, once in a process, and all it calls; inner loops need no objects of Python."""
    import numba  # here: it takes long to load, and small problems do without

    jit: Any = partial(numba.njit, nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=not from_python)
    try:
        copy = renamed(function, f"{version([function])}{'' if from_python else '_inner'}")
        compiled_copy = jit(copy, cache=True)
    except (OSError, RuntimeError):  # no folder to write to: compile anew in every process
        copy = renamed(function, "")
        compiled_copy = jit(copy)
    outer = {loop for loops in Loops.made for loop in vars(loops.plain).values()}
    copy.__globals__.update(
        {name: _machine_code(callee, callee in outer) for name, callee in _called(function).items()}
    )
    return compiled_copy


def _called(function: FunctionType) -> dict[str, FunctionType]:
    """Return the plain functions that one calls, by the names it knows them by."""
    known = function.__globals__
    return {name: known[name] for name in function.__code__.co_names if isinstance(known.get(name), FunctionType)}


def reached(functions: Iterable[FunctionType]) -> set[FunctionType]:
    """Return the functions that machine code is made of: some, and all that they call."""
    all_reached: set[FunctionType] = set()
    left = list(functions)
    while left:
        function = left.pop()
        if function not in all_reached:
            all_reached.add(function)
            left.extend(_called(function).values())
    return all_reached


def version(functions: Iterable[FunctionType]) -> str:
    """Return a name for all that machine code is made of: the code of functions as it is in memory, and its constants.

    Files may have changed since they were imported, and code made now would be kept under what they hold.
    """
    parts: set[str] = set()
    for function in reached(functions):
        code, known = function.__code__, function.__globals__
        parts.add(
            repr((function.__module__, code.co_qualname, code.co_code, code.co_consts, code.co_names, code.co_varnames))
        )
        constants = {name: known.get(name) for name in code.co_names}
        parts.update(repr((name, value)) for name, value in constants.items() if isinstance(value, int | float | tuple))
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:16]


def renamed(loop: FunctionType, name: str) -> FunctionType:
    """Return a loop under a name for every version of what it calls: machine code is kept by name and file."""
    copy = FunctionType(loop.__code__, dict(loop.__globals__), loop.__name__)
    copy.__qualname__ = f"{loop.__name__}_{name}"
    return copy


class Loops:
    """Loops that are interpreted while there is little to do, and compiled once that pays.

    They and the functions that they call by name are plain loops over numbers and arrays, so that numba can compile
    them as they stand. Up to ``after`` steps are interpreted.
    """

    made: ClassVar[list["Loops"]] = []
    """All there are."""

    def __init__(self, *loops: Callable[..., Any], after: float = _INTERPRETED) -> None:
        self.plain = SimpleNamespace(**{loop.__name__: loop for loop in loops})
        self.after, self._loaded, self._done = after, False, 0.0
        Loops.made.append(self)

    @cached_property
    def compiled(self) -> SimpleNamespace:
        """The loops compiled, by their names."""
        report_progress("compiling loops, once on a machine", 0.0)
        loops = SimpleNamespace(**{name: _machine_code(loop, True) for name, loop in vars(self.plain).items()})
        self._loaded = True
        return loops

    def at(self, work: float) -> Any:
        """Return the loops by their names, for so many steps in all: compiled ones once they are loaded."""
        pays = self._loaded or work > self.after or self._done > _TOGETHER * self.after
        return self.compiled if pays else self.plain

    def count(self, work: float) -> None:
        """Take note of steps of one of many searches, such as those of hundreds of short chains."""
        self._done += work


class Loop:
    """One plain loop over numbers, interpreted until it has had enough to do for compiling to pay."""

    def __init__(self, loop: Callable[..., Any]) -> None:
        self._loops, self._name, self._done = Loops(loop), loop.__name__, 0

    def __call__(self, work: int, *arguments: Any) -> Any:
        """Run the loop, whose arguments mean ``work`` steps, and return what it does."""
        self._done += work
        return getattr(self._loops.at(self._done), self._name)(*arguments)
