"""Transition matrices from objects of other libraries, which this package does not need itself.

All of these libraries have a row for the state that a step comes from. What differs is how states are named, which of
them are left out, and what is known of the first record; so all of that is taken by name and checked here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import real_array, real_number
from pufferfish.errors import ModelError, shortened
from pufferfish.theta.states import listed_labels, state_label

__all__ = ["Parts", "crosstab_parts", "deeptime_parts", "hmmlearn_parts", "quantecon_parts"]

_SUM = 1e-9

Parts = tuple[NDArray[np.float64], Any, Sequence[Any] | None]
"""A transition matrix, the law of the first record where it is known, and names of the states where there are some."""


def hmmlearn_parts(model: Any) -> Parts:
    """Return the parts of the hidden chain of an hmmlearn model."""
    if not (hasattr(model, "startprob_") and hasattr(model, "transmat_")):
        fitted = "fit it first" if type(model).__name__.endswith("HMM") else "expected a fitted model of hmmlearn.hmm"
        raise ModelError(f"model is {type(model).__name__} without startprob_ and transmat_: {fitted}")
    return _matrix(model.transmat_), _numbers(model.startprob_, "startprob_"), None


def deeptime_parts(model: Any) -> Parts:
    """Return the parts of a Markov state model, or of the hidden chain of a hidden Markov model, of deeptime."""
    start = None
    if hasattr(model, "transition_model"):  # a hidden Markov model, whose first law is a part of it
        model, start = model.transition_model, _numbers(model.initial_distribution, "initial_distribution")
    if not hasattr(model, "transition_matrix"):
        raise ModelError(
            f"model is {type(model).__name__}, expected a MarkovStateModel or HiddenMarkovModel of deeptime (an "
            "estimator has it as fetch_model())"
        )
    counted = getattr(model, "count_model", None) if getattr(model, "has_count_model", False) else None
    symbols = None if counted is None else counted.state_symbols  # those that a connected set left in
    return _matrix(model.transition_matrix), start, None if symbols is None else [int(s) for s in symbols]


def quantecon_parts(chain: Any) -> Parts:
    """Return the parts of a QuantEcon ``MarkovChain``."""
    if not (hasattr(chain, "P") and hasattr(chain, "state_values")):
        raise ModelError(f"chain is {type(chain).__name__}, expected a MarkovChain of quantecon")
    values: Any = chain.state_values
    if values is not None:
        rows: Any = np.asarray(values)
        values = [", ".join(map(state_label, row)) for row in rows.tolist()] if rows.ndim > 1 else rows.tolist()
    return _matrix(chain.P), None, values


def crosstab_parts(table: Any, smoothing: float) -> Parts:
    """Return the parts of a table of counts, such as pandas' crosstab, with rows and columns taken by name."""
    if not all(hasattr(table, part) for part in ("index", "columns", "to_numpy")):
        raise ModelError(f"table is {type(table).__name__}, expected a table such as pandas.crosstab(now, next) gives")
    added = real_number(smoothing)
    if added is None or not 0 <= added < np.inf:
        raise ModelError(f"smoothing is {smoothing!r}, expected a finite number of at least 0")
    rows = listed_labels(table.index.tolist(), "the index of the table")
    columns = listed_labels(table.columns.tolist(), "the columns of the table")
    given = _numbers(table.to_numpy(), "table")
    if not (np.isfinite(given).all() and (given >= 0).all()):
        raise ModelError("table holds what is no count: expected finite numbers of at least 0")
    if "All" in (rows[-1:] + columns[-1:]) and given.size > 1:
        raise ModelError("table has margins (All): make it without margins=True")
    across, down = (np.allclose(given.sum(axis=axis), 1, rtol=0, atol=_SUM) for axis in (1, 0))
    if table.to_numpy().dtype.kind == "f" and down and not across:
        raise ModelError(
            "the columns of the table sum to 1, and a chain has rows that do: make it with normalize='index', or of "
            "counts, and with the present state as its rows"
        )
    states = list(dict.fromkeys((*rows, *columns)))
    counts = np.full((len(states), len(states)), added)
    places = [[states.index(name) for name in names] for names in (rows, columns)]
    counts[np.ix_(*places)] += given
    for state, total in zip(states, counts.sum(axis=1), strict=True):
        if not total > 0:
            raise ModelError(
                f"no transition leaves state {shortened(repr(state))}: give smoothing, such as 0.5, or leave it out"
            )
    return counts / counts.sum(axis=1, keepdims=True), None, states


def _matrix(given: Any) -> NDArray[np.float64]:
    """Return a transition matrix, which may be sparse."""
    return _numbers(given.toarray() if hasattr(given, "toarray") else given, "the transition matrix")


def _numbers(given: Any, what: str) -> NDArray[np.float64]:
    try:
        return real_array(given)
    except TypeError as error:
        raise ModelError(f"{what} {error}; expected an array of numbers") from None
