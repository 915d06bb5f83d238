r"""Markov chains with more memory: the next record depends on the last m records.

``tensor[x_1, …, x_m, y]`` = P(next = y | the last m records were x_1, …, x_m, the latest last). Secrets are the values
of single records, as for every chain.

References: ``docs/proofs/higher_order.md``.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._base.checked import probabilities
from pufferfish._base.frozen import ReadOnly, read_only
from pufferfish._base.view import Shown, View, counted
from pufferfish._core.chains.markov import closed_classes
from pufferfish._draw.chart import Heat
from pufferfish.errors import ModelError
from pufferfish.theta.markov_chain import MarkovChain, initial_law, transition_laws, with_longer_stays
from pufferfish.theta.shown import law_in_words
from pufferfish.theta.states import state_names, states_by_labels


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
    Who has been walking for two minutes goes on walking:

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
