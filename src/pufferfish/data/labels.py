"""Name the states: labels of what the table holds, or the model's states, or the bins.

A CSV file says no types, so text that is all numbers, or all true/false, is named as those are: ``1.0`` in a
file and ``1`` in a model are the same state.
"""

import re
from collections.abc import Iterable
from typing import Any

from pufferfish.data.chains import Fold
from pufferfish.data.options import Options, listed
from pufferfish.errors import DataError
from pufferfish.models.states import state_label

__all__ = ["count_rows", "name_states"]

_PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_TRUTHS = {"true", "false", "True", "False", "TRUE", "FALSE"}


def name_states(fold: Fold, options: Options, *, untyped: bool) -> tuple[str, ...]:
    """Give the states of a fold their names; return the names of all states, in order.

    Raises
    ------
    DataError
        If the table holds states that the model lacks.
    """
    raw = fold.states
    if options.bins is not None and options.states is not None:
        fold.relabel({state: options.states[int(state)] for state in raw})
        return options.states
    labels = {state: state_label(state) for state in raw}
    known = set(options.states or ())
    if untyped and not set(labels.values()) <= known:
        labels = _canonical(labels)
    fold.relabel(labels)
    if options.states is None:
        return _sorted_labels(set(labels.values()))
    strangers = {name: n for name, n in fold.totals.items() if name not in known}
    if strangers:
        shown = sorted(strangers, key=lambda name: (-strangers[name], name))[:8]
        found = ", ".join(f"{name!r} ({count_rows(strangers[name])})" for name in shown)
        more = f" and {len(strangers) - 8} more" if len(strangers) > 8 else ""
        raise DataError(
            f"column {options.state!r} holds states that the model lacks: {found}{more}. The model's states: "
            f"{listed(options.states)}"
        )
    return options.states


def _canonical(labels: dict[Any, str]) -> dict[Any, str]:
    """Read labels of text that a file says no type of: numbers and truths as such, if all of them are."""
    if all(_PLAIN_NUMBER.fullmatch(label) for label in labels.values()):
        return {
            state: state_label(int(label) if re.fullmatch(r"-?[0-9]+", label) else float(label))
            for state, label in labels.items()
        }
    if set(labels.values()) <= _TRUTHS:
        return {state: label.lower() for state, label in labels.items()}
    return labels


def _sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    try:
        return tuple(sorted(labels, key=lambda label: (float(label), label)))
    except ValueError:
        return tuple(sorted(labels))


def count_rows(n: int) -> str:
    """Say how many rows.

    Examples
    --------
    >>> count_rows(1), count_rows(2000)
    ('1 row', '2,000 rows')
    """
    return f"{n:,} row" if n == 1 else f"{n:,} rows"
