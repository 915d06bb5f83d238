"""State names: what a table calls its states, as text that survives CSV, Parquet and JSON.

A table may hold states as integers, text, booleans, or (after a missing value crept into a pandas column)
as floats or decimals. Models, queries and releases name states by one canonical label, so that ``1``, ``1.0`` and
``"1"`` are the same state wherever they come from.
"""

from collections.abc import Iterable
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from pufferfish.errors import ModelError

__all__ = ["state_label", "state_names"]

_MANY_DIGITS = 300  # of a decimal that is left as it is written


def state_label(value: Any) -> str:
    """Canonical label of one state.

    Examples
    --------
    >>> state_label(1), state_label(1.0), state_label("1"), state_label(True), state_label("walking")
    ('1', '1', '1', 'true', 'walking')
    >>> state_label(Decimal("1.0")), state_label(Decimal("0.50"))
    ('1', '0.5')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}:
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _MANY_DIGITS:
        return str(int(value)) if value == value.to_integral_value() else state_label(float(value))
    if isinstance(value, Real) and float(value).is_integer():
        return str(int(float(value)))
    return str(value)


def state_names(states: Any, k: int) -> tuple[str, ...]:
    """Return the labels of k states, which are numbered where they have no names.

    Raises
    ------
    ModelError
        If there are not k of them, or two are the same.
    """
    given: Any = range(k) if states is None else states
    if not isinstance(given, Iterable):
        raise ModelError(f"states is {given!r}, expected a sequence of {k} names")
    names = tuple(state_label(s) for s in given)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if len(names) != k:
        raise ModelError(f"states has {len(names)} names, expected {k}: one per row of transition_matrix")
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ModelError(f"states[{i}] repeats the name {name!r}; names are distinct")
    return names
