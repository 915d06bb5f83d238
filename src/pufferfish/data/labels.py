"""Name the states: labels of what the table holds, or the model's states, or the bins.

The label of a cell is a function of that cell and of what is public (the model's states, and whether the table says
what type its columns are), never of another cell: else one record would change how the others are read, and no noise
that is calibrated to one record would be enough.

A CSV file says no types, so there ``1.0`` may stand for the state ``1``, and ``True`` for ``true``. Such a cell is the
state that it spells exactly, or else the state of the same number or truth value.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from pufferfish._base.view import counted
from pufferfish._base.words import composed, did_you_mean, names_of, unseen_difference
from pufferfish.data._chains import summed
from pufferfish.data._options import Options
from pufferfish.errors import DataError
from pufferfish.theta.states import state_label

OTHER = "(other)"
"""A state of a model that stands for all others: what a cell holds counts as it if it is no state of the model."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")  # 007, +7 and 1E5 are codes, and stay text
_WHOLE = re.compile(r"(-?[0-9]+)(?:\.0+)?")
_MISSING = {"", "na", "n/a", "nan", "nat", "null", "none", "nil", "missing", "-", "--", "?", "."}
"""What tables write where nothing is known, in small letters; nobody but the owner knows whether it is a state."""
_TRUTHS = {"true", "false", "True", "False", "TRUE", "FALSE"}


def placed_states(
    labels: Mapping[Any, str], totals: Mapping[Any, int], known: Sequence[str] | None, where: str, owner: str
) -> tuple[tuple[str, ...], dict[Any, int]]:
    """Return all states, in order, and which of them each cell means; labels that are no known states are refused."""
    if known is None:
        states = sorted_labels(set(labels.values()), where)
    else:
        states, here = tuple(known), set(known)
        strangers = summed((labels[cell], n) for cell, n in totals.items() if labels[cell] not in here)
        if strangers:
            _refuse_strangers(where, strangers, states, owner)
    place = {state: i for i, state in enumerate(states)}
    return states, {cell: place[label] for cell, label in labels.items()}


def labels_of(raw: Iterable[Any], options: Options, *, untyped: bool) -> Mapping[Any, str]:
    """Label the states of a table by how it is read: by :func:`label_states`, or the bins that they are numbers of."""
    if options.bins is not None and options.states is not None:
        return {state: options.states[int(state)] for state in raw}
    where = f"column {options.state!r}"
    labels = label_states(raw, options.states or (), untyped=untyped, where=where, owner="the model")
    if options.states is None or OTHER not in options.states:
        return labels
    known = set(options.states)
    return {cell: label if label in known else OTHER for cell, label in labels.items()}


def label_states(raw: Iterable[Any], known: Sequence[str], *, untyped: bool, where: str, owner: str) -> dict[Any, str]:
    """Label the states that cells hold, each by itself, given the states that the model knows, if it knows them.

    In a file without types (``untyped``) two known states that read alike are refused; this depends on no cell.

    >>> words = {"where": "column 'x'", "owner": "the model"}
    >>> label_states(["1.0", "2", "n/a"], ["1", "2"], untyped=True, **words)
    {'1.0': '1', '2': '2', 'n/a': 'n/a'}
    >>> label_states(["1.0", "2", "n/a"], ["1.0", "2.0"], untyped=True, **words)
    {'1.0': '1.0', '2': '2.0', 'n/a': 'n/a'}
    """
    if not untyped:
        return {state: state_label(state) for state in raw}
    named: dict[str, str] = {}
    for state in known:
        earlier = named.setdefault(_canonical(state), state)
        if earlier != state:
            raise DataError(
                f"{where} comes from a CSV file, which has no types, and {owner} has the states {earlier!r} and "
                f"{state!r}, which are the same there: rename one of them in both, or give a table with types "
                "(Parquet or a frame)"
            )
    exact = set(known)
    labels: dict[Any, str] = {}
    for cell in raw:
        canonical = _canonical(cell)
        labels[cell] = cell if cell in exact else named.get(canonical, canonical)
    return labels


def _refuse_strangers(where: str, strangers: Mapping[str, int], known: Sequence[str], owner: str) -> NoReturn:
    shown = sorted(strangers, key=lambda name: (-strangers[name], name))[:8]
    listing = ", ".join(f"{name!r} ({count_rows(strangers[name])})" for name in shown)
    more = f" and {len(strangers) - 8} more" if len(strangers) > 8 else ""
    raise DataError(
        f"{where} holds states that {owner} lacks: {listing}{more}.{did_you_mean(shown[0], known)}"
        f"{_if_missing(shown)} {owner.capitalize()}'s states: {names_of(known, 8)}"
    )


def words_for_missing(names: Sequence[str]) -> list[str]:
    """Return the names that look as if nothing was known; such a word is a state nevertheless, never taken as missing.

    >>> words_for_missing(["rest", "N/A", "?"])
    ['N/A', '?']
    """
    return [name for name in names if name.strip().lower() in _MISSING]


def _if_missing(strangers: Sequence[str]) -> str:
    """Return the remedy for states that look like no value, with the space before it; empty if there are none.

    >>> _if_missing(["rest", "N/A", "?"])
    " If 'N/A' and '?' stand for missing states, leave the cells empty."
    >>> _if_missing(["rest"])
    ''
    """
    words = [repr(name) for name in words_for_missing(strangers)]
    if not words:
        return ""
    cells = "stand for missing states, leave the cells" if len(words) > 1 else "means a missing state, leave the cell"
    return f" If {' and '.join(words)} {cells} empty."


def _canonical(text: str) -> str:
    """Return the label that a number or truth value has in a typed column; other text as it is.

    >>> [_canonical(text) for text in ("1.0", "-2.50", "TRUE", "007", "1E5", "walking")]
    ['1', '-2.5', 'true', '007', '1E5', 'walking']
    """
    if text in _TRUTHS:
        return text.lower()
    if not _NUMBER.fullmatch(text):
        return text
    if whole := _WHOLE.fullmatch(text):
        return "0" if whole[1] == "-0" else whole[1]
    value = float(text)
    return state_label(value) if math.isfinite(value) else text


def sorted_labels(labels: Iterable[str], where: str) -> tuple[str, ...]:
    """Return labels in order, numbers by what they are."""
    try:
        names = tuple(sorted(labels, key=lambda label: (float(label), label)))
    except ValueError:
        names = tuple(sorted(labels))
    seen: dict[str, str] = {}
    for label in names:
        if unseen := unseen_difference(label, seen.setdefault(composed(label), label)):
            raise DataError(f"{where} holds the state {label!r} in two spellings.{unseen}".rstrip("."))
    return names


def count_rows(n: int) -> str:
    """Say how many rows.

    >>> count_rows(1), count_rows(2000)
    ('1 row', '2,000 rows')
    """
    return counted(n, "row")
