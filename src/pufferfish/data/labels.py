"""Name the states: labels of what the table holds, or the model's states, or the bins.

A CSV file says no types, so text that is all numbers, or all true/false, is named as those are: ``1.0`` in a
file and ``1`` in a model are the same state.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pufferfish.data.chains import Fold
from pufferfish.data.options import Options, listed
from pufferfish.errors import DataError
from pufferfish.hints import did_you_mean
from pufferfish.models.states import state_label

__all__ = ["count_rows", "label_states", "name_states", "refuse_strangers"]

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
    labels = label_states(raw, options.states or (), untyped=untyped)
    fold.relabel(labels)
    if options.states is None:
        return _sorted_labels(set(labels.values()))
    refuse_strangers(f"column {options.state!r}", fold.totals, options.states, "the model")
    return options.states


def label_states(raw: Iterable[Any], known: Collection[str], *, untyped: bool) -> dict[Any, str]:
    """Label the states that a table holds, given the states that the model knows.

    Examples
    --------
    >>> label_states(["1.0", "2"], ["1", "2"], untyped=True), label_states(["1.0", "2"], ["1.0", "2"], untyped=True)
    ({'1.0': '1', '2': '2'}, {'1.0': '1.0', '2': '2'})
    """
    labels = {state: state_label(state) for state in raw}
    return _canonical(labels) if untyped and not set(labels.values()) <= set(known) else labels


def refuse_strangers(where: str, totals: Mapping[str, int], known: Sequence[str], owner: str) -> None:
    """Refuse states that are not known.

    Parameters
    ----------
    where : str
        The column, in the words of a message.
    totals : mapping of str to int
        Number of rows of each state.
    known : sequence of str
        The states that there are.
    owner : str
        Whose states they are.

    Raises
    ------
    DataError
        If there are others.
    """
    names = set(known)
    strangers = {name: n for name, n in totals.items() if name not in names}
    if strangers:
        shown = sorted(strangers, key=lambda name: (-strangers[name], name))[:8]
        found = ", ".join(f"{name!r} ({count_rows(strangers[name])})" for name in shown)
        more = f" and {len(strangers) - 8} more" if len(strangers) > 8 else ""
        raise DataError(
            f"{where} holds states that {owner} lacks: {found}{more}.{did_you_mean(shown[0], known)} "
            f"{owner.capitalize()}'s states: {listed(known)}"
        )


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
