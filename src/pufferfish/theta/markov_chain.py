"""Finite Markov chains: one distribution θ = (q, P) over sequences of states.

The first state is drawn from the initial distribution q, each next one from the present state's row of the transition
matrix P. Three kinds of initial distribution are told apart, because bounds treat them differently:

*   an array: the law of the first record;
*   ``"stationary"``: the unique π with π = πP, so that every record has the same law;
*   ``"any"``: every initial distribution at once, that is the class {(q, P) : q any law} (Appendix C.4).

References: Song, Wang, Chaudhuri (2017), Section 4.4; Levin, Peres, Wilmer, *Markov Chains and Mixing Times*.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._base.checked import probabilities, real_that, with_sums_of_one
from pufferfish._base.frozen import ReadOnly, read_only
from pufferfish._base.view import Shown, View, counted
from pufferfish._base.words import number
from pufferfish._core.chains.markov import (
    closed_classes,
    period,
    stationary_law,
    stationary_log_error,
    strong_components,
)
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._draw.chart import Bars, Heat
from pufferfish.errors import ModelError
from pufferfish.theta._imports import Parts, crosstab_parts, deeptime_parts, hmmlearn_parts, quantecon_parts
from pufferfish.theta.bif import TOLERANCE
from pufferfish.theta.shown import first_law, law_in_words, mean_dwell_times, transitions
from pufferfish.theta.states import state_names, states_by_labels

Array = NDArray[np.float64]

_MOST_MIXED = 200  # states of a chain whose eigengap is shown: that of many takes long


@dataclass(frozen=True, eq=False, repr=False, init=False)
class MarkovChain(Shown, ReadOnly):
    """A Markov chain over k named states; read-only; a :class:`ModelError` if it is none.

    Parameters
    ----------
    transition_matrix : array_like, shape (k, k)
        ``transition_matrix[x, y]`` = P(next = y | present = x). Each row sums to 1 (tolerance 1e-9) and is divided
        by its sum. An exact 0 says that the transition cannot happen.
    initial_distribution : array_like of shape (k,), "stationary" or "any", default "stationary"
        Law of the first record; see the module's primer. ``"stationary"`` needs an irreducible chain.
    states : sequence, optional
        k distinct names of the states, by default "0", "1", …

    Examples
    --------
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    >>> chain.stationary_distribution.round(3)
    array([0.8, 0.2])
    >>> chain.pi_min, round(chain.eigengap, 9), chain.is_reversible
    (0.2, 0.75, True)
    """

    transition_matrix: Array
    initial_distribution: Array | Literal["stationary", "any"]
    states: tuple[str, ...]
    k: int = field(init=False)
    kind: ClassVar[str] = "Markov chains"
    step: ClassVar[None] = None
    in_words: ClassVar[str] = "a Markov chain with one transition matrix"

    def __init__(
        self,
        transition_matrix: ArrayLike,
        initial_distribution: ArrayLike | Literal["stationary", "any"] = "stationary",
        *,
        states: Sequence[Any] | None = None,
    ) -> None:
        matrix = probabilities(transition_matrix, "transition_matrix")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ModelError(f"transition_matrix has shape {matrix.shape}, expected a square matrix (k, k)")
        if (k := len(matrix)) < 2:
            raise ModelError("transition_matrix has one state: a record that never changes has nothing to hide")
        matrix = transition_laws(matrix, "transition_matrix")
        named = state_names(states_by_labels(transition_matrix, states, "transition_matrix"), k)
        start = initial_law(initial_distribution, (k,), named)
        self._keep(transition_matrix=matrix, k=k, states=named, initial_distribution=start)
        if isinstance(start, str) and start == "stationary" and not self.is_irreducible:
            raise ModelError(
                'initial_distribution="stationary" needs a unique stationary distribution with every state '
                f'in it: {self._reducible_reason()}; give an array or "any", or leave those states out'
            )

    @classmethod
    def from_hmmlearn(cls, model: Any, *, states: Sequence[Any] | None = None) -> Self:
        """Take over the hidden chain of a fitted hmmlearn model: ``transmat_`` and ``startprob_``.

        The records are then the hidden states, which ``states`` names in their order; what is observed of them is not a
        part of the chain. Raises ModelError if the model is not fitted, or is none.
        """
        return cls._of_parts(hmmlearn_parts(model), states)

    @classmethod
    def from_deeptime(cls, model: Any, *, states: Sequence[Any] | None = None) -> Self:
        """Take over a deeptime ``MarkovStateModel``, or the hidden chain of a ``HiddenMarkovModel``.

        One step of the chain is the lag time of the model. States that deeptime left out are left out here; the others
        keep their numbers as names. Raises ModelError if it is no such model.
        """
        return cls._of_parts(deeptime_parts(model), states)

    @classmethod
    def from_quantecon(cls, chain: Any, *, states: Sequence[Any] | None = None) -> Self:
        """Take over a QuantEcon ``MarkovChain``, with its ``state_values`` as names; else a ModelError."""
        return cls._of_parts(quantecon_parts(chain), states)

    @classmethod
    def from_crosstab(cls, table: Any, *, smoothing: float = 0.0) -> Self:
        """Return the chain of a table of transitions: a row for each present state, a column for each next one.

        As ``pandas.crosstab(now, next)`` makes it from public data. Rows and columns go by their names; rows are
        divided by their sums, after ``smoothing`` transitions are added to each, as :func:`fit_chain` does.

        Raises ModelError if the table holds no counts, has margins or columns that sum to 1, or no transition leaves a
        state.

        Examples
        --------
        >>> import pandas
        >>> series = pandas.Series(["rest", "walk", "rest", "rest", "walk", "walk", "rest"])
        >>> table = pandas.crosstab(series[:-1].array, series[1:].array)
        >>> MarkovChain.from_crosstab(table).transition_matrix.round(2).tolist()
        [[0.33, 0.67], [0.67, 0.33]]
        """
        return cls._of_parts(crosstab_parts(table, smoothing), None)

    @classmethod
    def _of_parts(cls, parts: Parts, states: Sequence[Any] | None) -> Self:
        matrix, start, named = parts
        names = named if states is None else states
        if start is None:  # a chain without one stationary law is the class of all first laws
            chain = cls(matrix, "any", states=names)
            return cls(matrix, states=names) if chain.is_irreducible else chain
        return cls(matrix, start, states=names)

    @property
    def some_members(self) -> "tuple[MarkovChain]":
        """The chain itself."""
        return (self,)

    @property
    def mean_matrices(self) -> list[Array]:
        """Its matrix."""
        return [self.transition_matrix]

    def _view(self) -> View:
        facts = {"first record": law_in_words(self.initial_distribution)}
        if self.k <= _MOST_MIXED:
            facts["for MQMApprox"] = self._mixing
        return View(f"Markov chain of {counted(self.k, 'state')}", facts, [*self._charts([self]), *first_law(self)])

    @staticmethod
    def _charts(chains: "Sequence[MarkovChain]") -> list[Heat | Bars]:
        """Return the transition probabilities of chains, and how long their states last: from the least to the most."""
        states, every = chains[0].states, np.array([chain.transition_matrix for chain in chains])
        low, high, stay = every.min(axis=0), every.max(axis=0), every.diagonal(axis1=1, axis2=2)
        return [transitions(states, low, high), mean_dwell_times(states, low.diagonal(), high.diagonal(), stay)]

    @property
    def _mixing(self) -> str:
        """What the noise of MQMApprox follows from."""
        if not self.is_irreducible:
            return "nothing: some states cannot be reached from others"
        try:
            least, gap = number(self.pi_min, 3), number(self.eigengap, 3)
        except ModelError as error:  # a view never fails
            return f"nothing: {error}"
        return f"least long-run share of a state (π_min) {least}, eigengap of P P* {gap}, period {self.period}"

    def __repr__(self) -> str:
        q = self.initial_distribution
        start = repr(q) if isinstance(q, str) else np.array2string(q, precision=6, separator=", ")
        matrix = np.array2string(self.transition_matrix, precision=6, separator=", ")
        return f"MarkovChain({matrix if self.k <= 4 else f'<{self.k} states>'}, initial_distribution={start})"

    @cached_property
    def is_irreducible(self) -> bool:
        """Whether every state can be reached from every other, by the exact zeros of the matrix."""
        return len(strong_components(self.transition_matrix > 0)) == 1

    @cached_property
    def period(self) -> int:
        """Greatest common divisor of the lengths of the cycles (1: aperiodic); ModelError if the chain is reducible."""
        self._require_irreducible("period")
        return period(self.transition_matrix > 0)

    @property
    def is_aperiodic(self) -> bool:
        """Whether the (irreducible) chain has period 1."""
        return self.period == 1

    @cached_property
    def stationary_distribution(self) -> Array:
        """The law π = πP, each entry accurate relative to itself; shape (k,). ModelError if the chain is reducible."""
        self._require_irreducible("stationary_distribution")
        return read_only(stationary_law(self.transition_matrix))

    @property
    def pi_min(self) -> float:
        """Smallest stationary probability (Section 4.4, Equation for π^min)."""
        return float(np.min(self.stationary_distribution))

    def slower(self, times: float) -> "MarkovChain":
        """Return the chain whose stays are so many times as long, (P + (times − 1) I) / times; its laws are the same.

        >>> MarkovChain([[0.9, 0.1], [0.4, 0.6]]).slower(2).transition_matrix.round(3).tolist()
        [[0.95, 0.05], [0.2, 0.8]]
        """
        return replace(self, transition_matrix=with_longer_stays(self.transition_matrix, times))

    @cached_property
    def time_reversal(self) -> "MarkovChain":
        """The stationary chain P*(x, y) = P(y, x) π(y) / π(x), run from the last record to the first."""
        pi = self.stationary_distribution
        reversed_ = self.transition_matrix.T * pi[None, :] / pi[:, None]
        return MarkovChain(reversed_ / reversed_.sum(axis=1, keepdims=True), states=self.states)

    @cached_property
    def is_reversible(self) -> bool:
        """Whether π(x) P(x, y) = π(y) P(y, x) for all states, to 1e-12 of the larger side."""
        flow = self.stationary_distribution[:, None] * self.transition_matrix
        return bool(np.all(np.abs(flow - flow.T) <= 1e-12 * np.maximum(flow, flow.T)))

    @cached_property
    def eigengap(self) -> float:
        """Gap of the multiplicative reversibilisation P P*: 1 − |λ₂|, exactly one eigenvalue 1 dropped; rounded down.

        0 where a second eigenvalue is within rounding of 1, as for a periodic chain. Section 4.4, definition of g_Θ,
        read as the gap to the *second* eigenvalue: the printed minimum over |λ| < 1 would skip a repeated eigenvalue 1.
        """
        return _gap(1 - self._second_singular_value**2, self.k)

    @cached_property
    def reversible_eigengap(self) -> float:
        """Twice the absolute gap of P, 2(1 − |λ₂|): what a reversible chain may use instead (Appendix C.2).

        From the second singular value of D^½ P D^-½ (D = diag π), which bounds the speed of mixing for every chain.
        Rounded down; 0 within rounding of 0.
        """
        return _gap(2 * (1 - self._second_singular_value), self.k)

    @cached_property
    def _second_singular_value(self) -> float:
        root = np.sqrt(self.stationary_distribution)
        return float(np.linalg.svd(root[:, None] * self.transition_matrix / root, compute_uv=False)[1])

    def _require_irreducible(self, name: str) -> None:
        if not self.is_irreducible:
            raise ModelError(f"{name} needs an irreducible chain: {self._reducible_reason()}")

    def _reducible_reason(self) -> str:
        closed = closed_classes(self.transition_matrix > 0)
        if len(closed) > 1:
            names = " and ".join(self._named(members) for members in closed[:2])
            return f"the chain is reducible, it never leaves {names} once there"
        transient = [x for x in range(self.k) if x not in closed[0]]
        return f"the chain is reducible, it never returns to {self._named(transient)}"

    def _named(self, members: Sequence[int]) -> str:
        shown = ", ".join(self.states[x] for x in members[:4]) + (", …" if len(members) > 4 else "")
        return f"state{'s' if len(members) > 1 else ''} {{{shown}}}"


def _gap(computed: float, k: int) -> float:
    """Round an eigengap down by more than the error of the singular values; 0 where doubt begins."""
    error = 4 * stationary_log_error(k) + 32 * k * UNIT
    return computed - error if computed > 100 * error else 0.0


SLOWEST = 1e6  # how many times as long stays are made at most


def checked_times(times: Any) -> float:
    """Return how many times as long stays shall last."""
    expected = f"a factor from 1 to {SLOWEST:g} by which stays get longer"
    return real_that(lambda factor: 1 <= factor <= SLOWEST, times, "times", expected)


def with_longer_stays(rows: Array, times: Any) -> Array:
    """Return laws of the next state, rows by the present one, under which stays are so many times as long."""
    factor = checked_times(times)
    return (rows + (factor - 1) * np.eye(rows.shape[-1])) / factor


# -- Laws that users give, checked, and divided by their sums; also for other kinds of chains ------------------------


def transition_laws(given: Any, name: str, hint: str = "") -> Array:
    """Return laws of the next state, which stand in the last axis; ``hint`` is as for :func:`checked_laws`."""
    return checked_laws(probabilities(given, name), lambda place: name + "".join(f"[{x}]" for x in place), hint)


def _what_rows_are(row: Array) -> str:
    if row.sum() >= 2 and np.all(row == np.round(row)):
        return "These look like counts of transitions: divide each row by its sum, or use MarkovChain.from_crosstab."
    return "Rows are distributions over the next state; did you pass the transpose?"


def initial_law(
    given: Any, shape: tuple[int, ...], states: Sequence[Any] | None = None, of: str = "one probability per state"
) -> Array | Literal["stationary", "any"]:
    """Return the law of the first records in a shape, whose labels are not other states; or the word for it."""
    size = math.prod(shape)
    if isinstance(given, str):
        if given not in ("stationary", "any"):
            expected = f'an array of {size} probabilities, "stationary" or "any"'
            raise ModelError(f"initial_distribution is {given!r}, expected {expected}")
        return given
    law = probabilities(given, "initial_distribution")
    if law.shape not in (shape, (size,)):
        raise ModelError(f"initial_distribution has shape {law.shape}, expected {shape}: {of}")
    states_by_labels(given, states, "initial_distribution")
    hint = "It is the law of the first record; divide counts by their sum."
    return read_only(distribution(law.ravel(), size, "initial_distribution", hint).reshape(shape))


def distribution(given: Any, k: int, name: str, hint: str) -> Array:
    """Return a law on k states, divided by its sum."""
    law = probabilities(given, name)
    if law.shape != (k,):
        raise ModelError(f"{name} has shape {law.shape}, expected ({k},): one probability per state")
    return checked_laws(law, lambda place: name + "".join(f"[{x}]" for x in place), hint)


def checked_laws(laws: Array, called: Callable[[list[int]], str], hint: str) -> Array:
    """Return laws along the last axis, divided by their sums; ``called`` names a wrong one, ``hint`` ends it."""
    for place in np.argwhere(~((laws >= 0) & (laws < np.inf))).tolist():
        raise ModelError(f"{called(place)} is {laws[tuple(place)]}, expected a probability between 0 and 1")
    with np.errstate(over="ignore"):
        sums = np.asarray(laws.sum(axis=-1))
    for place in np.argwhere(np.abs(sums - 1) > TOLERANCE).tolist():
        expected = f"expected 1 (tolerance {TOLERANCE:g}). {hint or _what_rows_are(laws[tuple(place)])}"
        raise ModelError(f"{called(place)} sums to {float(sums[tuple(place)]):.12g}, {expected}")
    return read_only(with_sums_of_one(laws))
