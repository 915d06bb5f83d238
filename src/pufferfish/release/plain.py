"""Queries, secrets and settings as plain values, so that a record can hold them and a reader can make them again.

>>> from pufferfish.queries import Count, Window
>>> plain(Window(Count("walk"), 3, 9))
{'is': 'Window', 'query': {'is': 'Count', 'states': ['walk']}, 'start': 3, 'stop': 9}
>>> made(plain(Window(Count("walk"), 3, 9))) == Window(Count("walk"), 3, 9)
True
"""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import reduce
from typing import Any

from pufferfish.errors import ParameterError, shortened
from pufferfish.queries import QUERIES, Subset, Weighted, Window
from pufferfish.theta.secrets import CountIs, RecordIs, Secret
from pufferfish.theta.states import state_label

__all__ = ["NotPlain", "made", "plain"]

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*QUERIES, Window, Weighted, Subset, RecordIs, CountIs)}
_IS, _ALL, _MAP = "is", "all of", "map"


class NotPlain(ValueError):
    """Something is, or holds, a function of the user's: no file can hold that."""


def plain(value: Any) -> Any:
    """Return a query, a secret, a setting, or a list or dict of these as values that JSON has.

    Raises
    ------
    NotPlain
        If it is, or holds, a function.
    """
    if value is None or isinstance(value, bool | str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        return {_MAP: {str(key): plain(part) for key, part in value.items()}}
    if isinstance(value, Secret) and len(value.conditions) > 1:
        return {_IS: _ALL, "secrets": [plain(part) for part in value.conditions]}
    name = type(value).__name__
    if _KINDS.get(name) is not type(value) or not is_dataclass(value):
        raise NotPlain(f"{shortened(repr(value))} is a function of the user's, or holds one")
    return {_IS: name, **{field.name: _field(value, field.name) for field in fields(value)}}


def _field(value: Any, name: str) -> Any:
    """Return a field; records that are named by neither text nor number go by what their names read like."""
    given = getattr(value, name)
    if name == "records" and isinstance(given, tuple):
        return [record if isinstance(record, str | int) else state_label(record) for record in given]
    return plain(given)


def made(value: Any) -> Any:
    """Return what :func:`plain` described, made by its constructor, which checks it.

    Raises
    ------
    PufferfishError
        If it describes none.
    """
    if isinstance(value, list):
        return [made(part) for part in value]
    if not isinstance(value, dict):
        return value
    given: dict[str, Any] = {**value}
    if given.keys() == {_MAP} and isinstance(given[_MAP], dict):
        return {key: made(part) for key, part in given[_MAP].items()}
    name = given.pop(_IS, None)
    if name == _ALL and isinstance(given.get("secrets"), list) and given["secrets"]:
        return reduce(lambda one, other: one & other, [made(part) for part in given["secrets"]])
    if not isinstance(name, str) or name not in _KINDS:
        raise ParameterError(f"{shortened(repr(name))} is no query or secret that a record can name")
    names = {field.name for field in fields(_KINDS[name])}
    if given.keys() != names:
        raise ParameterError(f"{name} has {', '.join(sorted(names))}, not {shortened(', '.join(sorted(given)))}")
    return _KINDS[name](**{key: made(part) for key, part in given.items()})
