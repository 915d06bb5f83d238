r"""Chains of which one record does not tell all that the next depends on: kinds of stay, and more memory.

Of a :class:`HigherOrderChain` the last m records tell it (``docs/proofs/higher_order.md``). In a :class:`StaysChain`
states last for stays of several kinds: short ones and long ones, as people have them.

A Markov chain keeps a state for a stay of geometric length, and real stays are heavier. Here a stay in state x is of
kind i with probability a_{xi}, drawn anew whenever x is entered; it goes on with probability s_{xi} at every step, and
when it ends the next state is y ≠ x with probability E_{xy}. So (state, kind) is a Markov chain,

.. math::
    K[(x,i),(x,i)] = s_{xi}, \qquad K[(x,i),(y,j)] = (1 - s_{xi}) \, E_{xy} \, a_{yj},

and what is seen, and kept secret, is the state alone. References: ``docs/proofs/stays.md``.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._base.checked import is_list, listed, probabilities, real_number, with_sums_of_one
from pufferfish._base.frozen import ReadOnly, read_only
from pufferfish._base.view import MOST_ROWS, Grid, Shown, View, counted
from pufferfish._core.chains.markov import closed_classes
from pufferfish._draw.chart import Bars, Heat
from pufferfish.errors import ModelError, shortened
from pufferfish.theta.markov_chain import (
    MarkovChain,
    checked_times,
    distribution,
    initial_law,
    transition_laws,
    with_longer_stays,
)
from pufferfish.theta.shown import law_in_words, transitions
from pufferfish.theta.states import state_names, states_by_labels

Array = NDArray[np.float64]

Kind = tuple[float, float]  # which share of the stays are of this kind, and with which probability one goes on


@dataclass(frozen=True, eq=False, repr=False, init=False)
class StaysChain(Shown, ReadOnly):
    """A chain over k named states with several kinds of stay in each; a :class:`ModelError` if it is none.

    Parameters
    ----------
    exits : array_like, shape (k, k)
        ``exits[x, y]`` = P(the next state is y | a stay in x ends), 0 for y = x. Each row sums to 1 (tolerance 1e-9)
        and is divided by its sum. An exact 0 says that it cannot happen.
    stays : sequence of k sequences of (share, keep)
        The kinds of stay in each state: which share of its stays are of the kind, and with which probability, below 1,
        such a stay goes on for one more step; it lasts 1 / (1 − keep) records in the mean. The shares of a state sum to
        1 and are divided by their sum.
    initial_distribution : array_like of shape (kinds,), "stationary" or "any", default "stationary"
        Law of the first record's state and kind of stay together, in the order of ``stays``: all kinds of the first
        state, then those of the second. ``"any"`` is every law of them.
    states : sequence, optional
        k distinct names of the states, by default "0", "1", …

    Examples
    --------
    >>> chain = StaysChain([[0, 1], [1, 0]], [[(0.8, 0.5), (0.2, 0.98)], [(1.0, 0.7)]], states=["rest", "walk"])
    >>> chain.kinds, chain.mean_stays.round(2).tolist(), chain.mean_matrix.round(3).tolist()
    ((2, 1), [11.6, 3.33], [[0.914, 0.086], [0.3, 0.7]])
    """

    exits: Array
    stays: tuple[tuple[Kind, ...], ...]
    initial_distribution: Array | Literal["stationary", "any"]
    states: tuple[str, ...]
    k: int = field(init=False)
    kind: ClassVar[str] = "chains with several kinds of stay"
    step: ClassVar[None] = None
    some_members: ClassVar[tuple[MarkovChain, ...]] = ()

    def __init__(
        self,
        exits: ArrayLike,
        stays: Sequence[Sequence[Sequence[float]]],
        initial_distribution: ArrayLike | Literal["stationary", "any"] = "stationary",
        *,
        states: Sequence[Any] | None = None,
    ) -> None:
        rows = probabilities(exits, "exits")
        named = state_names(states_by_labels(exits, states, "exits"), rows.shape[-1] if rows.ndim else 0)
        if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or len(rows) < 2:
            raise ModelError(f"exits has shape {rows.shape}, expected (k, k) with at least 2 states")
        k = len(rows)
        for x in np.flatnonzero(rows.diagonal()).tolist():
            raise ModelError(
                f"exits[{x}][{x}] is {rows[x, x]:g}, expected 0: exits lead to another state; stays says how long a "
                "stay goes on"
            )
        rows = transition_laws(rows, "exits", "It is a law of the next state.")
        every = tuple(_kinds(of_state, x) for x, of_state in enumerate(listed(stays, "stays", _LISTS, ModelError)))
        if len(every) != k:
            raise ModelError(f"stays has {len(every)} entries and exits {k} states: give kinds of stay for each state")
        of = "a probability for each kind of stay of each state, in the order of stays"
        start = initial_law(initial_distribution, (sum(map(len, every)),), of=of)
        self._keep(exits=rows, stays=every, initial_distribution=start, states=named, k=k)
        if isinstance(start, str) and start == "stationary":
            self._as_one_chain("stationary")  # which knows what has no one stationary law

    def _view(self) -> View:
        title = f"Chain with several kinds of stay in {counted(self.k, 'state')}"
        rows = [
            [state, f"{100 * share:.3g}%", keep, 1 / (1 - keep)]
            for state, kinds in zip(self.states, self.stays, strict=True)
            for share, keep in kinds
        ]
        heads = ["state", "share of its stays", "goes on with probability", "records in the mean"]
        grid = Grid("Kinds of stay", heads, rows[:MOST_ROWS], long=len(rows))
        return View(title, {"first record": law_in_words(self.initial_distribution)}, [grid, *self._charts([self])])

    @staticmethod
    def _charts(chains: "Sequence[StaysChain]") -> list[Heat | Bars]:
        """Return how long stays of each kind last, and where they lead, from the least to the most of chains."""
        first, exits = chains[0], np.array([chain.exits for chain in chains])
        many = ", from the least to the most of the class" if len(chains) > 1 else ""
        names, means = list[str](), list[Array]()
        for x, state in enumerate(first.states):
            # kinds from the shortest on; a chain that has fewer of them repeats its longest
            lasting = [sorted(1 / (1 - keep) for _, keep in chain.stays[x]) for chain in chains]
            most = max(map(len, lasting))
            means += [np.array([mean[min(i, len(mean) - 1)] for mean in lasting]) for i in range(most)]
            names += [state if most == 1 else f"{state}, kind {i + 1}" for i in range(most)]
        low, high = (np.array([end(mean) for mean in means]) for end in (np.min, np.max))
        bars = Bars(
            f"Mean stay of each kind{many}",
            "records in a row that a stay of the kind lasts, in the mean",
            names,
            low,
            high,
            heads=("state and kind", "records"),
        )
        heat = transitions(first.states, exits.min(axis=0), exits.max(axis=0), "Where stays lead when they end")
        return [bars, heat]

    def __repr__(self) -> str:
        q = self.initial_distribution
        start = repr(q) if isinstance(q, str) else "<array>"
        kinds = "-".join(map(str, self.kinds)) if self.k <= _FEW_STATES else f"{sum(self.kinds):,} in all"
        return f"StaysChain(<{self.k} states, kinds of stay {kinds}>, initial_distribution={start})"

    @property
    def in_words(self) -> str:
        """What its records follow, as releases say it."""
        kinds = "several kinds, short ones and long ones"
        return f"a chain whose stays in a state are of {kinds}, drawn anew whenever the state is entered"

    @property
    def kinds(self) -> tuple[int, ...]:
        """How many kinds of stay each state has."""
        return tuple(map(len, self.stays))

    @property
    def mean_stays(self) -> Array:
        """How many records a stay lasts in the mean, over all kinds of each state; shape (k,)."""
        return np.array([sum(share / (1 - keep) for share, keep in kinds) for kinds in self.stays])

    @property
    def mean_matrix(self) -> Array:
        """Transition probabilities of states, as who does not know the kinds of stay sees them; shape (k, k)."""
        ends = 1 / self.mean_stays
        return self.exits * ends[:, None] + np.diag(1 - ends)

    @property
    def mean_matrices(self) -> list[Array]:
        """The same matrix, for searches."""
        return [self.mean_matrix]

    @cached_property
    def tuples(self) -> NDArray[np.intp]:
        """The state of each (state, kind), as tuples of one record; shape (kinds, 1)."""
        return read_only(np.repeat(np.arange(self.k), self.kinds)[:, None])

    @cached_property
    def kernel(self) -> Array:
        """The transition matrix of (state, kind); shape (kinds, kinds)."""
        share, keep = (np.array([kind[i] for kinds in self.stays for kind in kinds]) for i in (0, 1))
        state = self.tuples[:, 0]
        matrix = (1 - keep)[:, None] * self.exits[np.ix_(state, state)] * share[None, :] + np.diag(keep)
        return read_only(with_sums_of_one(matrix))

    @cached_property
    def stationary_distribution(self) -> Array:
        """The stationary law of (state, kind); shape (kinds,); ModelError if there are several."""
        law = self._as_one_chain("any").stationary_distribution / self.mean_stays
        weights = [p * share / (1 - keep) for p, kinds in zip(law, self.stays, strict=True) for share, keep in kinds]
        return read_only(np.array(weights))

    def slower(self, times: float) -> "StaysChain":
        """Return the chain whose stays of every kind are so many times as long; its stationary law is the same.

        >>> chain = StaysChain([[0, 1], [1, 0]], [[(0.8, 0.5), (0.2, 0.98)], [(1.0, 0.7)]])
        >>> (chain.slower(1.3).mean_stays / chain.mean_stays).round(6).tolist()
        [1.3, 1.3]
        """
        factor = checked_times(times)
        stays = [[(share, (keep + factor - 1) / factor) for share, keep in kinds] for kinds in self.stays]
        return replace(self, stays=stays)

    @property
    def reduced(self) -> "StaysChain | MarkovChain":
        """The same chain without kinds of stay where every state has one alone."""
        one_each = len(self.tuples) == self.k
        return MarkovChain(self.kernel, self.initial_distribution, states=self.states) if one_each else self

    def _as_one_chain(self, initial: Literal["stationary", "any"]) -> MarkovChain:
        """Return the chain of states that does not know kinds: its stationary law is that of the states."""
        return MarkovChain(self.mean_matrix, initial, states=self.states)


_FEW_STATES = 8
_LISTS = "a list for each state of its kinds of stay, such as [(0.8, 0.5), (0.2, 0.98)]"


def _kinds(given: Any, x: int) -> tuple[Kind, ...]:
    """Return the kinds of stay of a state, checked; their shares are divided by their sum."""
    name = f"stays[{x}]"
    kinds: list[Kind] = []
    for i, kind in enumerate(listed(given, name, "a list of (share, keep)", ModelError)):
        pair = [real_number(value) for value in kind] if is_list(kind) else []
        if len(pair) != 2 or pair[0] is None or pair[1] is None:
            raise ModelError(
                f"{name}[{i}] is {shortened(repr(kind))}, expected (share, keep): the share of stays of this kind, "
                "and the probability that such a stay goes on for one more step"
            )
        share, keep = pair[0], pair[1]
        if not 0 < share <= 1 + 1e-9:
            raise ModelError(
                f"{name}[{i}] has share {share:g}, expected above 0 and at most 1; leave out kinds with share 0"
            )
        if not 0 <= keep < 1:
            raise ModelError(
                f"{name}[{i}] goes on with probability {keep:g}, expected at least 0 and below 1, "
                "because every stay ends"
            )
        kinds.append((share, keep))
    if not kinds:
        raise ModelError(f"{name} is empty: a state has at least one kind of stay")
    shares = distribution(np.array([share for share, _ in kinds]), len(kinds), name, "It is a law of the kind of stay.")
    return tuple((float(share), keep) for share, (_, keep) in zip(shares, kinds, strict=True))


# -- Markov chains with more memory: the next record depends on the last m records -------------------------------------


@dataclass(frozen=True, eq=False, repr=False, init=False)
class HigherOrderChain(Shown, ReadOnly):
    """A Markov chain of order m over k named states; read-only; a :class:`ModelError` if it is none.

    Parameters
    ----------
    tensor : array_like, shape (k,) * (m + 1)
        ``tensor[x_1, …, x_m, y]`` = P(next = y | the last m records, the latest last). Each row sums to 1 (tolerance
        1e-9) and is divided by its sum. An exact 0 says that it cannot happen.
    initial_distribution : array_like of shape (k,) * m, "stationary" or "any", default "stationary"
        Law of the first m records; ``"any"`` is every law of them.
    states : sequence, optional
        k distinct names of the states, by default "0", "1", …

    Examples
    --------
    >>> tensor = [[[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.2, 0.8]]]
    >>> chain = HigherOrderChain(tensor, states=["rest", "walk"])
    >>> chain.order, chain.k, chain.stationary_distribution.round(3).tolist()
    (2, 2, [[0.667, 0.083], [0.083, 0.167]])
    """

    tensor: NDArray[np.float64]
    initial_distribution: NDArray[np.float64] | Literal["stationary", "any"]
    states: tuple[str, ...]
    k: int = field(init=False)
    order: int = field(init=False)
    kind: ClassVar[str] = "Markov chains of higher order"
    some_members: ClassVar[tuple[MarkovChain, ...]] = ()
    step: ClassVar[None] = None

    def __init__(
        self,
        tensor: ArrayLike,
        initial_distribution: ArrayLike | Literal["stationary", "any"] = "stationary",
        *,
        states: Sequence[Any] | None = None,
    ) -> None:
        rows = probabilities(tensor, "tensor")
        states = states_by_labels(tensor, states, "tensor")
        k, order = rows.shape[-1] if rows.ndim else 0, rows.ndim - 1
        if order < 1 or k < 2 or any(size != k for size in rows.shape):
            raise ModelError(f"tensor has shape {rows.shape}, expected (k,) * (order + 1) with at least 2 states")
        named = state_names(states, k)
        start = initial_law(initial_distribution, (k,) * order, named, f"the law of the first {order} records")
        laws = transition_laws(rows, "tensor", "It is a law of the next record.")
        self._keep(tensor=laws, initial_distribution=start, states=named, k=k, order=order)
        if isinstance(start, str) and start == "stationary":
            self._check_stationary()

    def _view(self) -> View:
        title = f"Markov chain of order {self.order} with {counted(self.k, 'state')}"
        return View(title, {"first records": law_in_words(self.initial_distribution)}, self._charts([self]))

    @staticmethod
    def _charts(chains: "Sequence[HigherOrderChain]") -> list[Heat]:
        """Return the probabilities of the next state after the last ones, from the least to the most of chains."""
        first, every = chains[0], np.array([chain.tensor.reshape(-1, chain.k) for chain in chains])
        caption = f"Probability of the next state (column) after the last {first.order} (row, the latest last)"
        rows = [", ".join(name) for name in itertools.product(first.states, repeat=first.order)]
        axes = (f"last {first.order}", "next")
        return [Heat(caption, rows, first.states, every.min(axis=0), every.max(axis=0), axes)]

    def __repr__(self) -> str:
        q = self.initial_distribution
        start = repr(q) if isinstance(q, str) else "<array>"
        return f"HigherOrderChain(<{self.k} states, order {self.order}>, initial_distribution={start})"

    @property
    def in_words(self) -> str:
        """What its records follow, as releases say it."""
        return f"a Markov chain of order {self.order}: each record depends on the {self.order} before it"

    @cached_property
    def tuples(self) -> NDArray[np.intp]:
        """The values of m records in a row; shape (k^m, m)."""
        return read_only(np.array(list(itertools.product(range(self.k), repeat=self.order)), dtype=np.intp))

    @cached_property
    def kernel(self) -> NDArray[np.float64]:
        """The chain of m records in a row: from each value to the next, one record later; shape (k^m, k^m)."""
        size, k = self.k**self.order, self.k
        matrix = np.zeros((size, size))
        after = np.arange(size) * k % size  # the first of the k values that share all records but the next one
        matrix[np.arange(size)[:, None], after[:, None] + np.arange(k)] = self.tensor.reshape(size, k)
        return read_only(matrix)

    @cached_property
    def stationary_distribution(self) -> NDArray[np.float64]:
        """The stationary law of m records in a row; shape (k,) * m; ModelError if there are several."""
        members = np.array(self._closed())
        law = np.zeros(len(self.kernel))
        chain = MarkovChain(self.kernel[np.ix_(members, members)]) if members.size > 1 else None
        law[members] = 1.0 if chain is None else chain.stationary_distribution
        return read_only(law.reshape((self.k,) * self.order))

    @property
    def mean_matrices(self) -> list[NDArray[np.float64]]:
        """The mean of its matrices, over the records before the last one."""
        return [self.tensor.reshape(-1, self.k, self.k).mean(axis=0)]

    def slower(self, times: float) -> "HigherOrderChain":
        """Return the chain whose stays are so many times as long, whatever was before (:meth:`MarkovChain.slower`)."""
        return replace(self, tensor=with_longer_stays(self.tensor, times))

    @property
    def reduced(self) -> "HigherOrderChain | MarkovChain":
        """The same chain with as little memory as it has, where that is known exactly.

        Only the stationary law goes with the tensor: "any" is every law of the first m records *together*, and few of
        them are laws of a chain with less memory.
        """
        oldest, start = self.tensor[0], self.initial_distribution
        if self.order == 1:
            return MarkovChain(self.tensor, start, states=self.states)
        if isinstance(start, str) and start == "stationary" and np.all(self.tensor == oldest):
            return HigherOrderChain(oldest, start, states=self.states).reduced
        return self

    def _closed(self) -> list[int]:
        closed = closed_classes(self.kernel > 0)
        if len(closed) > 1:
            ways = ["-".join(self.states[int(x)] for x in self.tuples[members[0]].tolist()) for members in closed[:2]]
            raise ModelError(
                f"the chain has several stationary laws: it never leaves the states that it reaches from {ways[0]}, "
                f'nor those from {ways[1]}; give an array or "any"'
            )
        return closed[0]

    def _check_stationary(self) -> None:
        seen = np.unique(self.tuples[self._closed(), 0])
        if seen.size < self.k:
            never = next(name for x, name in enumerate(self.states) if x not in seen)
            raise ModelError(
                f'initial_distribution="stationary": state {never!r} has probability 0 in the stationary law; give an '
                'array or "any", or leave such states out'
            )
