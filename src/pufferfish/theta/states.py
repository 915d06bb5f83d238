"""State names: what a table calls its states, as text that survives CSV, Parquet and JSON.

A table may hold states as integers, text, booleans, or (after a missing value crept into a pandas column)
as floats or decimals. Models, queries and releases name states by one canonical label, so that ``1``, ``1.0`` and
``"1"`` are the same state wherever they come from.
"""

from decimal import Decimal
from numbers import Integral, Real
from typing import Any, cast

from pufferfish._base.checked import is_list
from pufferfish._base.words import composed, unseen_difference
from pufferfish.errors import ModelError, shortened

__all__ = ["listed_labels", "listed_names", "refuse_missing", "state_label", "state_names"]

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


def refuse_missing(value: Any, what: str) -> None:
    """Refuse None and NaN as a name: they stand for what is missing, and a record with no value is in no state.

    Raises
    ------
    ModelError
        If it is one of them; ``what`` says which name it is.
    """
    nan = isinstance(value, Real | Decimal) and value != value
    if value is None or nan or type(value).__name__ in {"NAType", "NaTType"}:
        raise ModelError(f"{what} is {value!r}, expected a name: None and NaN stand for missing values")


def listed_names(given: Any, what: str, example: str = '["rest", "walk"]') -> tuple[Any, ...]:
    """Return the names in a sequence, whose labels are distinct: of states, or of records.

    Raises
    ------
    ModelError
        If it is text or a set, which have no names in an order, or a name is missing or repeated, or looks like
        another: an accented letter may be one code point or two.
    """
    if not is_list(given):
        shown = shortened(repr(cast("object", given)))
        raise ModelError(f"{what} is {shown}, expected a list of names such as {example}")
    names: tuple[Any, ...] = tuple(given)
    seen: dict[str, str] = {}
    for i, name in enumerate(names):
        refuse_missing(name, f"{what}[{i}]")
        label = state_label(name)
        before = seen.setdefault(composed(label), label)
        if i >= len(seen):
            unseen = unseen_difference(label, before)
            said = f"{what}[{i}] repeats the name {shortened(label)!r}; names are distinct.{unseen}"
            raise ModelError(said.rstrip("."))
    return names


def listed_labels(given: Any, what: str, example: str = '["rest", "walk"]') -> tuple[str, ...]:
    """Return the labels of a sequence of distinct names; see :func:`listed_names`.

    Examples
    --------
    >>> listed_labels([1, 2.0], "states")
    ('1', '2')
    """
    return tuple(map(state_label, listed_names(given, what, example)))


def state_names(states: Any, k: int) -> tuple[str, ...]:
    """Return the labels of k states, which are numbered where they have no names.

    Raises
    ------
    ModelError
        If they are no sequence of k distinct names.
    """
    names = listed_labels(range(k) if states is None else states, "states")
    if len(names) != k:
        raise ModelError(f"states has {len(names)} names, expected {k}: one per row of transition_matrix")
    return names
