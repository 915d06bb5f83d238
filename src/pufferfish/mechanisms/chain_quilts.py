"""Quilt mechanisms on chains: what Algorithms 3 and 4 share.

They differ in where a quilt's left and right parts come from (exactly, or by a closed form) and share the search
(:mod:`pufferfish.core.quilts.chain_search`), the losses of a profile, the worst chain, and the witness.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.calibration import Witness
from pufferfish.core.numbers.progress import report_progress
from pufferfish.core.numbers.rounding import up
from pufferfish.core.quilts.chain_search import LeakThrough, Objective, Quilt, Score, best_quilt, worst_node
from pufferfish.errors import ParameterError
from pufferfish.mechanisms.base import InfluenceBound
from pufferfish.mechanisms.losses import Losses, decisive
from pufferfish.mechanisms.possible_losses import member_places, members_of, possible_losses
from pufferfish.models.lengths import ChainLength

_SAMPLE = 64

__all__ = ["ChainQuiltBound", "NodesAlike", "Weights"]

Vector = NDArray[np.float64]


class Weights:
    """Sums of the record-level losses of runs of records, exact or rounded up.

    Losses of *observed* records count as often as there are such: a run of steps holds at most all of them, and those
    with the largest losses at worst.

    A profile is held as whole multiples of a power of two, each loss rounded up by less than 2^-40 of the largest, so
    that cumulative sums are exact integers however long the chain.
    """

    def __init__(self, losses: Losses) -> None:
        each = losses.per_record
        self.uniform = each.ndim == 0 or bool(np.all(each == each.flat[0]))
        self._each = float(each.flat[0]) if self.uniform else 0.0
        self._most = losses.length.records if losses.of_observed else losses.length.steps
        if not self.uniform:
            bits = 61 - int(each.size).bit_length()
            exponent = max(math.frexp(float(each.max()))[1] - bits, -1074)
            self._quantum = math.ldexp(1.0, exponent)
            whole = np.maximum(np.ceil(np.ldexp(each, -exponent)), each > 0).astype(np.int64)
            self._sums = np.concatenate([[0], np.cumsum(whole)])
            self._heaviest = int(np.sum(np.sort(whole)[::-1][: self._most]))

    def __call__(self, first: int, last: int) -> float:
        """Sum of the losses of records first..last (1-based), rounded up."""
        if self.uniform:
            records = min(last - first + 1, self._most)
            return up(self._each * records) if records > 1 else self._each
        return up(min(int(self._sums[last] - self._sums[first - 1]), self._heaviest) * self._quantum)

    def many(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> Vector:
        """Return the sums of many runs."""
        if self.uniform:
            records = np.minimum(last - first + 1, self._most).astype(np.float64)
            return self._each * records * np.where(records > 1, 1 + 2.0**-50, 1.0)
        sums = np.minimum(self._sums[last] - self._sums[first - 1], self._heaviest).astype(np.float64) * self._quantum
        return sums * (1 + 2.0**-50)


@dataclass(frozen=True, slots=True, eq=False)
class NodesAlike:
    """Nodes of one chain whose quilts have the same left and right parts, as the search wants them.

    Parameters
    ----------
    theta, first, last : int
        Member of Θ; nodes, 1-based, both included.
    pairs : (2, n) ndarray of int, or None
        The secret pairs; None where a bound does not tell them apart.
    left, right : callable
        Left part for a distance a, right part for b.
    """

    theta: int
    first: int
    last: int
    pairs: NDArray[np.intp] | None
    left: Callable[[int], Vector]
    right: Callable[[int], Vector]


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """A group of nodes with the losses of one chain: implements ``SearchProblem``."""

    nodes: NodesAlike
    losses: Weights
    length: int
    longest: int

    def left(self, a: int) -> Vector:
        return self.nodes.left(a)

    def right(self, b: int) -> Vector:
        return self.nodes.right(b)

    def weight(self, first: int, last: int) -> float:
        return self.losses(first, last)

    def weights(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> Vector:
        return self.losses.many(first, last)


class ChainQuiltBound(InfluenceBound):
    """A Markov quilt mechanism on chains.

    Parameters
    ----------
    theta : MarkovChain, sequence of MarkovChain, or ChainClass
        The class Θ.
    length : int, ChainLength, or sequence of these
        T, or the lengths of the data set's independent chains.
    max_quilt_length : int, optional
        Search quilts with at most this many nearby records (the paper's ℓ); the trivial quilt is always
        searched. By default all quilts.
    """

    def __init__(self, theta: Any, length: Any, *, max_quilt_length: int | None = None) -> None:
        super().__init__(theta, length)
        given: Any = max_quilt_length
        if given is not None and not (isinstance(given, int) and given is not True and given >= 1):
            raise ParameterError(
                f"max_quilt_length is {max_quilt_length!r}, expected a whole number of at least 1, or None for all"
            )
        self._max_quilt_length: int | None = given

    @property
    def max_quilt_length(self) -> int | None:
        """The most nearby records of a quilt; None for any number."""
        return self._max_quilt_length

    @abstractmethod
    def _groups(self, length: int) -> Iterator[NodesAlike]:
        """Yield the groups of alike nodes with a secret, of every θ, in a chain of ``length`` records."""

    def _visits(self, length: int) -> Iterator[NodesAlike]:
        """Yield a sample of the groups, then all: what the sample finds lets most of the others be dropped at once."""
        yield from islice(self._groups(length), _SAMPLE - 1, None, _SAMPLE)
        yield from self._groups(length)

    def _weights(self, losses: Losses) -> list[Weights]:
        """Return what runs of records weigh under every member of Θ."""
        return [Weights(of_member) for of_member in self._possible(losses)]

    def _possible(self, losses: Losses) -> list[Losses]:
        """Return the losses that count under every member: those between states that its records can have."""
        return [possible_losses(losses, member_places(m, losses.length.steps)) for m in members_of(self.theta)]

    def _leakage(self, losses: Sequence[Losses]) -> tuple[float, Witness | None]:
        return self._worst(losses, LeakThrough())

    def _least_divisor(self, losses: Sequence[Losses], epsilon: float) -> tuple[float, Witness | None]:
        return self._worst(losses, Score(epsilon))

    def best_at(self, chain: Losses, node: int, objective: Objective, enough: float = -math.inf) -> float | None:
        """Return what the best quilts of one record prove, the worst member of Θ deciding; None if it has no secret.

        The record is 1-based. A search stops once it found ``enough``. A lower bound on what all records need.
        """
        worst: float | None = None
        steps = chain.length.steps
        weights = self._weights(chain)
        longest = steps if self.max_quilt_length is None else self.max_quilt_length
        for nodes in self._groups(steps):
            if nodes.first <= node <= nodes.last:
                problem = _Problem(nodes, weights[nodes.theta], steps, longest)
                found = best_quilt(problem, objective, node, enough=enough).value
                worst = found if worst is None else max(worst, found)
                if len(self.theta.chains) <= 1:
                    break
        return worst

    def _worst(self, losses: Sequence[Losses], objective: Objective) -> tuple[float, Witness | None]:
        worst: Quilt | None = None
        witness: Witness | None = None
        for each in decisive(losses):
            chain, weights = each.length, self._weights(each)
            steps = chain.steps
            longest = steps if self.max_quilt_length is None else self.max_quilt_length
            for nodes in self._visits(steps):
                report_progress("searching quilts", nodes.last / steps)
                problem = _Problem(nodes, weights[nodes.theta], steps, longest)
                uniform = problem.losses.uniform
                found = worst_node(problem, objective, nodes.first, nodes.last, uniform=uniform, floor=worst)
                if found is not None:
                    worst, witness = found, _witness(found, nodes, chain, self.theta.states)
        return (0.0, None) if worst is None else (worst.value, witness)


def _witness(quilt: Quilt, nodes: NodesAlike, chain: ChainLength, states: tuple[str, ...]) -> Witness:
    length = chain.steps
    ends: list[int] = []
    if quilt.a < quilt.node:
        ends.append(quilt.node - quilt.a - 1)
    if quilt.node + quilt.b <= length:
        ends.append(quilt.node + quilt.b - 1)
    pair = None
    if nodes.pairs is not None and ends:
        x, x_ = nodes.pairs[:, quilt.pair]
        pair = states[int(x)], states[int(x_)]
    return Witness(
        theta=nodes.theta,
        length=length,
        node=quilt.node - 1,
        secret_pair=pair,
        active_quilt=tuple(ends),
        nearby=min(quilt.a + quilt.b - 1, chain.records),
        influence=quilt.influence,
    )
