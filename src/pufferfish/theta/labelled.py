"""Names on what probabilities are given in: frames and series say by labels which row and column is which state."""

from collections.abc import Iterable, Sequence
from typing import Any

from pufferfish._base.checked import is_list
from pufferfish._base.words import names_of
from pufferfish.errors import ModelError
from pufferfish.theta.states import state_label

__all__ = ["states_by_labels"]


def states_by_labels(given: Any, states: Sequence[Any] | None, what: str) -> Sequence[Any] | None:
    """Return the states, those of the labels where none are given; refuse labels that say something else.

    Probabilities are taken by position, so labels in another order would give them to other states.

    Parameters
    ----------
    given : array_like
        Frames and series of pandas, frames of polars and tables of Arrow have labels, also inside lists.
    states : sequence, or None
        The states, if they are known.
    what : str
        The argument, in messages.

    Raises
    ------
    ModelError
        If labels are not the states in their order. Labels 0, 1, … are none, unless the states are these numbers.

    Examples
    --------
    >>> import pandas
    >>> states_by_labels(pandas.Series([0.2, 0.8], index=["rest", "walk"]), None, "initial_distribution")
    ['rest', 'walk']
    >>> states_by_labels([[0.9, 0.1], [0.4, 0.6]], ["rest", "walk"], "transition_matrix")
    ['rest', 'walk']
    """
    axes = [list(axis) for axis in _axes(given)]
    if not axes or (states is not None and not is_list(states)):
        return states
    if states is None:
        states = next((axis for axis in axes if not _is_numbered(axis)), None)
    if states is None:
        return None
    names = [state_label(name) for name in states]
    for axis in axes:
        labels = [state_label(name) for name in axis]
        if labels != names and not (_is_numbered(axis) and set(labels) != set(names)):
            raise ModelError(
                f"{what} has the labels {names_of(labels)}, and the states are {names_of(names)}: order it as the "
                "states, such as by P.loc[states, states], or give its numbers alone"
            )
    return states


def _axes(given: Any) -> Iterable[Any]:
    """Return the labels of every axis that has some."""
    if hasattr(given, "iloc"):
        return [given.index, *([given.columns] if hasattr(given, "columns") else [])]
    if hasattr(given, "column_names"):
        return [given.column_names]
    if hasattr(given, "get_column"):
        return [given.columns]
    parts: list[Any] = list(given) if isinstance(given, list | tuple) else []
    if parts and not isinstance(parts[0], int | float):
        return [axis for part in parts for axis in _axes(part)]
    return []


def _is_numbered(axis: Sequence[Any]) -> bool:
    """Whether labels are those that pandas and polars write where nobody gave any."""
    labels = [state_label(name) for name in axis]
    return any(labels == [f"{before}{i}" for i in range(len(labels))] for before in ("", "column_"))
