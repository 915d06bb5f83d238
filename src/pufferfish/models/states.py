"""State names: what a table calls its states, as text that survives CSV, Parquet and JSON.

A table may hold states as integers, text, booleans, or (after a missing value crept into a pandas column)
as floats. Models, queries and releases name states by one canonical label, so that ``1``, ``1.0`` and
``"1"`` are the same state wherever they come from.
"""

from numbers import Integral, Real
from typing import Any

__all__ = ["state_label"]


def state_label(value: Any) -> str:
    """Canonical label of one state.

    Examples
    --------
    >>> state_label(1), state_label(1.0), state_label("1"), state_label(True), state_label("walking")
    ('1', '1', '1', 'true', 'walking')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}:
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real) and float(value).is_integer():
        return str(int(float(value)))
    return str(value)
