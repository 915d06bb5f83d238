"""A Markov chain, or bounds on one, from public sequences, by counting transitions.

The result is part of what everybody is assumed to know. Fitting it to the data it shall protect makes a comparison,
not a guarantee (the noise itself then depends on the secrets).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import real_that
from pufferfish._base.view import counted
from pufferfish._core.chains.markov import completed, smoothed
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ModelError, ParameterError
from pufferfish.theta.continua import IntervalChain
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.states import clock_named, steps_of_phase
from pufferfish.theta.tuple_chains import HigherOrderChain

SMOOTHING = 1.0  # transitions that every row is completed by, unless told otherwise
_BISECTIONS = 200
_MOST_SMOOTHING = 1e15  # up to this a count of 1 is not lost beside what is added


def fit_chain(
    sequences: Sequences, *, initial: Literal["stationary", "any"] = "stationary", smoothing: float = SMOOTHING
) -> MarkovChain:
    """Fit a chain to the observed one-step transitions; each row is completed from all rows together.

    A :class:`ModelError` if nothing is added, and a state is never left, or the chain is reducible where its stationary
    law is asked for. A :class:`ParameterError` if smoothing is negative or above 1e15, where counts would be lost.

    Parameters
    ----------
    sequences : Sequences
        Public data.
    initial : {"stationary", "any"}, default "stationary"
        The initial law of the result: its stationary one, or the class of all.
    smoothing : float, default 1
        So many transitions are added to every row: it stays as often as all rows together do, and leaves for the states
        as the others enter them. With 0, the likeliest chain, a transition that was never observed cannot happen.
        :func:`made_up` says whether too much of the chain is made up by this (docs/fitting.md).

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> data = pf.read_sequences(pl.DataFrame({"s": list("aabaabbaab" * 50)}), "s")
    >>> [pf.fit_chain(data, smoothing=w).transition_matrix.round(3).tolist() for w in (0, 1)]
    [[[0.5, 0.5], [0.749, 0.251]], [[0.5, 0.5], [0.748, 0.252]]]
    """
    added = _checked(sequences, smoothing)
    matrix = smoothed(sequences.transitions, added)
    check_rows(matrix, lambda at: f"out of state {sequences.states[at[0]]!r}", "or merge states, or leave them out")
    return fitted(MarkovChain, matrix, initial, states=sequences.states)


def fit_periodic(
    sequences: Sequences, *, initial: Literal["stationary", "any"] = "stationary", smoothing: float = SMOOTHING
) -> PeriodicChain:
    """Fit a transition matrix for each phase of a clock; each row is completed from all phases together.

    Parameters
    ----------
    sequences : Sequences
        Public data, read with ``clock=``.
    initial, smoothing
        As for :func:`fit_chain`, as are errors. What is added to every row of every phase is spread as the transitions
        of all phases together.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> times = pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2024, 1, 20), "1h", eager=True)
    >>> table = pl.DataFrame({"time": times}).with_columns(rest=pl.col("time").dt.hour().is_in([1, 2, 5]))
    >>> data = pf.read_sequences(table, "rest", time="time", max_gap="1h", clock="hour")
    >>> chain = pf.fit_periodic(data)
    >>> chain.clock, chain.step, chain.matrices[1].round(2).tolist()
    ('hour', '1h', [[0.9, 0.1], [0.03, 0.97]])
    """
    added, states = _checked(sequences, smoothing), sequences.states
    if sequences.clock is None or sequences.transitions_by_phase is None:
        raise ParameterError('the sequences were read without a clock: read_sequences(…, clock="hour")')
    clock, step = sequences.clock, sequences.base.step or sequences.usual_step
    steps_of_phase(clock_named(clock), step)  # what it refuses no smoothing mends
    matrices = completed(sequences.transitions_by_phase, added, smoothed(sequences.transitions, added))
    check_rows(
        matrices,
        lambda at: f"out of state {states[at[1]]!r} in phase {at[0]} of the clock {clock!r}",
        "which uses the transitions of the other phases",
    )
    return fitted(PeriodicChain, matrices, initial, clock=clock, step=step, states=states)


def fit_order(
    sequences: Sequences, *, initial: Literal["stationary", "any"] = "stationary", smoothing: float = SMOOTHING
) -> HigherOrderChain:
    """Fit a chain of higher order; each row is completed from what follows its latest record.

    Parameters
    ----------
    sequences : Sequences
        Public data, read with ``order=`` of 2 or more.
    initial, smoothing
        As for :func:`fit_chain`, as are errors. The records that are added after every history are spread as those
        after its latest record alone.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> data = pf.read_sequences(pl.DataFrame({"s": list("aabaabbaabab" * 50)}), "s", order=2)
    >>> pf.fit_order(data).tensor.round(2).tolist()
    [[[0.0, 1.0], [0.75, 0.25]], [[0.75, 0.25], [1.0, 0.0]]]
    """
    added = _checked(sequences, smoothing)
    if sequences.histories is None:
        raise ParameterError("the sequences were read without an order: read_sequences(…, order=2)")
    tensor = completed(sequences.histories, added, smoothed(sequences.transitions, added))
    check_rows(
        tensor,
        lambda at: f"out of {' then '.join(repr(sequences.states[x]) for x in at)}",
        "which uses what follows the latest record alone",
    )
    return fitted(HigherOrderChain, tensor, initial, states=sequences.states)


def fit_interval(sequences: Sequences, confidence: float = 0.95) -> IntervalChain:
    r"""Fit bounds that contain all transition probabilities together, with a given confidence.

    If the sequences come from a Markov chain with one transition matrix, that matrix lies between the bounds with at
    least this probability, however long the sequences are and whatever they start with (docs/proofs/intervals.md,
    "Bounds from data"). Every entry gets the interval of :func:`proportion_bounds` at an equal share of what may fail.
    A :class:`ModelError` if no transition was observed, or there is one state only.

    Parameters
    ----------
    sequences : Sequences
        Public data. Steps across gaps are not counted; which records are missing is taken as independent of the states.
        Rows of states that were never left are between 0 and 1.
    confidence : float, default 0.95
        Probability, strictly between 0 and 1, that no bound misses; else a :class:`ParameterError`.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> data = pf.read_sequences(pl.DataFrame({"state": list("aabaabbaab" * 200)}), state="state")
    >>> theta = pf.fit_interval(data, confidence=0.9)
    >>> theta.lower.round(2).tolist(), theta.upper.round(2).tolist()
    ([[0.45, 0.45], [0.69, 0.2]], [[0.55, 0.55], [0.8, 0.31]])
    """
    confidence = check_confidence(confidence)
    check_transitions(sequences)
    check_several(sequences.states)
    counts, k = sequences.transitions, sequences.transitions.shape[0]
    share = (1 - confidence) / (k if k == 2 else k * k)  # of two entries that sum to 1 one decides
    lower, upper = np.zeros((k, k)), np.ones((k, k))
    for x, y in np.ndindex(k, 1 if k == 2 else k):
        lower[x, y], upper[x, y] = proportion_bounds(int(counts[x, y]), int(counts[x].sum()), share)
    if k == 2:
        lower[:, 1] = np.maximum(np.nextafter(1 - upper[:, 0], 0), 0)
        upper[:, 1] = np.minimum(np.nextafter(1 - lower[:, 0], 2), 1)
    origin = (
        f"fitted to public data: bounds that hold all transition probabilities with {100 * confidence:g}% confidence, "
        f"from {int(counts.sum()):,} transitions"
    )
    return IntervalChain(lower, upper, states=sequences.states, origin=origin)


def proportion_bounds(successes: int, trials: int, miss: float) -> tuple[float, float]:
    r"""Bounds that miss a probability with chance ``miss``, from trials whose number may depend on their outcomes.

    With s successes in n trials, all p with

    .. math:: \frac{B(s + 1/2, n - s + 1/2)}{B(1/2, 1/2)} \le \frac{p^s (1 - p)^{n - s}}{\mathrm{miss}},

    rounded outwards. The left side over p^s (1 − p)^{n−s} is a martingale in n that starts at 1, so by Ville's
    inequality the true p is left out at *any* n with probability at most ``miss`` (H. Robbins, Ann. Math. Statist. 41,
    1970). Bounds for a fixed n, such as those of Clopper and Pearson, do not cover a state's exits, whose number is
    random.

    >>> [round(bound, 4) for bound in proportion_bounds(30, 100, 0.05)]
    [0.1657, 0.4628]
    """
    s, n = successes, trials
    if n == 0:
        return 0.0, 1.0
    parts = (math.lgamma(s + 0.5), math.lgamma(n - s + 0.5), -math.lgamma(n + 1.0), -math.log(math.pi), math.log(miss))
    level, size = math.fsum(parts), sum(map(abs, parts))

    def left_out(p: float) -> bool:
        """Whether p is out for certain, the rounding of all terms considered."""
        terms = (s * math.log(p) if s else 0.0), ((n - s) * math.log1p(-p) if n > s else 0.0)
        return sum(terms) < level - 2e-15 * (size - sum(terms))

    def end(outer: float) -> float:
        inner = s / n
        for _ in range(_BISECTIONS):
            middle = (outer + inner) / 2
            if middle in (outer, inner):
                break
            if left_out(middle):
                outer = middle
            else:
                inner = middle
        return outer

    return end(0.0) if s else 0.0, end(1.0) if s < n else 1.0


def check_confidence(confidence: float) -> float:
    """Return the confidence of bounds as a float."""
    expected = "a probability such as 0.95, above 0 and below 1"
    return real_that(lambda number: 0 < number < 1, confidence, "confidence", expected)


def added_count(name: str, count: float, usual: float = 1) -> float:
    """Return what is added to counts as a float; ``usual`` is what a message takes as an example."""
    expected = f"a number from 0 to {_MOST_SMOOTHING:g}, such as {usual:g}"
    return real_that(lambda number: 0 <= number <= _MOST_SMOOTHING, count, name, expected)


def _checked(sequences: Sequences, smoothing: float) -> float:
    """Return the smoothing of a fit as a number, where there is something to fit."""
    added = added_count("smoothing", smoothing)
    check_transitions(sequences)
    return added


def check_rows(laws: NDArray[np.float64], where: Callable[[list[int]], str], smoothing: str) -> None:
    """Refuse laws with a row of which nothing was counted: ``where`` says which, ``smoothing`` what that would do."""
    empty: list[list[int]] = np.argwhere(laws.sum(axis=-1) == 0).tolist()
    if empty:
        more = f" (and {counted(len(empty) - 1, 'more such row')})" if len(empty) > 1 else ""
        raise ModelError(f"no transition {where(empty[0])} was observed{more}; use smoothing (such as 1), {smoothing}")


def fitted(model: Any, *laws: Any, whose: str = "", **more: Any) -> Any:
    """Return a fitted model; what it refuses is said with the remedies that a fit has, and ``whose`` law it is."""
    try:
        return model(*laws, **more)
    except ModelError as error:
        said = str(error)
        if "initial_distribution is" in said:
            raise
        if len(more["states"]) == 1:
            raise ModelError(
                "the table has one state, so there is nothing to hide: name all states that can occur by states "
                "(--states A,B on the command line)"
            ) from error
        said = said.replace("initial_distribution=", "initial=").replace('an array or "any"', 'initial="any"')
        raise ModelError(f"{whose}{said}; or use smoothing (such as 1), which lets every transition happen") from error


def check_sequences(sequences: Any) -> None:
    """Refuse what is no Sequences."""
    if not isinstance(sequences, Sequences):
        raise ParameterError(f"sequences is {type(sequences).__name__}, expected what read_sequences returns")


def check_several(states: Sequence[str]) -> None:
    """Refuse one state alone."""
    if len(states) < 2:
        raise ModelError(
            f"there is one state, {states[0]!r}: a record that never changes has nothing to hide; name all states that "
            "can occur"
        )


def check_transitions(sequences: Any) -> None:
    """Refuse what is no Sequences, or holds no transition."""
    check_sequences(sequences)
    if not sequences.transitions.any():
        raise ModelError(
            "no two consecutive records of a subject were observed, so there is no transition to count; "
            "check the subject and time columns and max_gap"
        )
