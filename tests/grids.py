"""Which cases of a parametrised test stand for all of them where not all can be run.

A test over mechanisms × models × seeds has hundreds of cases that differ little. A few of them are chosen so that

- the first case is among them, and the last one if more than one is asked for,
- every value of every axis with few values (a mechanism, a model, a start, but not a seed) occurs at least once,
- they are spread evenly over the rest.

The choice depends on nothing but the cases, so it is the same in every run and in every worker.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from hypothesis import settings

__all__ = ["KEEP", "chosen", "share_of_examples"]

KEEP = 1
"""At least so many cases are run of a test, and as many as cover every value of its axes."""

_FEW = 12
"""An axis with more values than this is a range of numbers, or a list of random cases."""

_DRAWN = {"seed", "trial"}
"""Axes whose values are as good as each other."""


def share_of_examples(percent: int) -> int:
    """Return how many examples hypothesis shall try where each takes longer than usual."""
    return max(1, settings().max_examples * percent // 100)


def chosen(cases: Sequence[Mapping[str, Any]], keep: int = KEEP) -> list[int]:
    """Return the places of the cases to run.

    Parameters
    ----------
    cases : sequence of mapping
        For each case, its value on every axis.
    keep : int
        At least so many cases are kept, if there are so many.
    """
    count = len(cases)
    if count <= keep:
        return list(range(count))
    values = _values_to_cover(cases)
    taken = [0, count - 1] if keep > 1 else [0]
    open_values = set[Hashable]().union(*values).difference(*(values[i] for i in taken))
    distance = [min(abs(i - j) for j in taken) for i in range(count)]
    while open_values or len(taken) < keep:
        best = max(range(count), key=lambda i: (len(values[i] & open_values), distance[i]))
        taken.append(best)
        open_values -= values[best]
        distance = [min(old, abs(i - best)) for i, old in enumerate(distance)]
    return sorted(taken)


def _values_to_cover(cases: Sequence[Mapping[str, Any]]) -> list[set[Hashable]]:
    """Return what each case has on the axes with few values: an axis on which all cases differ is just their list."""
    keys = [{axis: _key(value) for axis, value in case.items()} for case in cases]
    different = {axis: len({key[axis] for key in keys}) for axis in keys[0]}
    few = {axis for axis, count in different.items() if count <= _FEW and count < len(keys) and axis not in _DRAWN}
    return [{(axis, value) for axis, value in key.items() if axis in few} for key in keys]


def _key(value: Any) -> Hashable:
    """Tell values apart; objects that have no plain value by being the same object."""
    if isinstance(value, bool | int | float | str | None):
        return (type(value).__name__, value)
    return id(value)
