"""Quilt mechanisms on chains: what Algorithms 3 and 4 share.

They differ in where a quilt's left and right parts come from (exactly, or by a closed form) and share the search
(:mod:`pufferfish._core.quilts.chain_search`), the losses of a profile, the worst chain, and the witness.

What of a release's record-level losses can happen at all under one member of Θ.

Under θ a record takes the states that have positive probability, and no others. So all that the law of an output can
depend on is the release's density on these: a state that a record cannot have is no state of it, and a record that is
certain is none. Every bound holds for the losses between possible states alone. This is done for each member by itself:
a pair of values that only another member makes possible is that member's to protect.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._core.chains.markov import Places, places_of
from pufferfish._core.numbers.rounding import up
from pufferfish._core.quilts.chain_search import LeakThrough, Objective, Quilt, Score, SearchProblem, worst_node
from pufferfish.errors import ParameterError
from pufferfish.mechanisms.engine import Bound, Engine
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.witness import QuiltWitness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide
from pufferfish.theta.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Theta

__all__ = [
    "ChainQuiltBound",
    "ChainQuilts",
    "NodesAlike",
    "Weights",
    "any_secret",
    "member_places",
    "members_of",
    "possible_losses",
]

# -- What of a release's record-level losses can happen at all under one member of Θ ---------------------------------

_SHORT, _LONG, _LITTLE = 64, 4096, 1.1
"""Records that differ by their states alone are told apart in chains of so many steps; and in longer ones, up to the
second number, where that makes their losses so many times smaller in all. Else they are alike: quicker to search."""


def members_of(theta: Theta | MarkovChain) -> Sequence[MarkovChain | IntervalChain | BinaryChainInterval]:
    """Return the members of a class of chains; a continuum is one member, where all can happen that some law allows.

    A chain is a class of itself.
    """
    return (theta,) if isinstance(theta, MarkovChain | IntervalChain | BinaryChainInterval) else theta.chains


def member_places(chain: MarkovChain | IntervalChain | BinaryChainInterval, steps: int) -> Places:
    """Return which states the records of a chain of Θ can have; of a continuum those of any member."""
    if isinstance(chain, BinaryChainInterval):
        return [(steps, np.ones(2, dtype=np.bool_))]
    start, everywhere = chain.initial_distribution, np.ones(chain.k, dtype=np.bool_)
    possible = (chain.upper if isinstance(chain, IntervalChain) else chain.transition_matrix) > 0
    return places_of(everywhere if isinstance(start, str) else start > 0, possible, steps)


def any_secret(places: Places) -> bool:
    """Whether some record can have two states."""
    return any(np.count_nonzero(states) > 1 for _, states in places)


def possible_losses(losses: BlockLoss, places: Places) -> BlockLoss:
    """Return the largest loss of each record over pairs of states that it can have; 0 for a record that is certain.

    Where all other records are alike, certain ones are given their loss if it is none they were not said to have: more
    than they have, and quicker to search.
    """
    of_loss, of_place, steps = _overlaps(losses.steps, [n for n, _ in places])
    certain = np.array([np.count_nonzero(states) < 2 for _, states in places])[of_place]
    known: dict[tuple[int, bytes], float] = {}
    values = np.zeros(len(steps))
    for n, i in enumerate(of_loss.tolist()):
        states = places[int(of_place[n])][1]
        key = i, states.tobytes()
        if key not in known:
            known[key] = _largest(losses.stacked[i], states)
        values[n] = known[key]
    others = values[~certain]
    same = float(others[0]) if others.size else 0.0
    if np.all(others == same) and np.all(losses.largest[of_loss][certain] >= same):
        values, steps = np.array([same]), np.array([losses.length.steps])
    elif len(losses.steps) == 1 and losses.length.steps > _SHORT:
        most = float(values.max())
        if losses.length.steps > _LONG or most * losses.length.steps <= _LITTLE * float(np.sum(values * steps)):
            values, steps = np.array([most]), losses.steps
    return BlockLoss(losses.length, steps, values, losses.of_observed)


def _overlaps(
    steps: NDArray[np.int64], others: Sequence[int]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
    """Return the stretches of two ways to cut a chain that overlap, in order, and how many steps they share."""
    edges = [np.cumsum([0, *lengths]) for lengths in (steps, others)]
    cuts = np.unique(np.concatenate(edges))
    first, second = (np.searchsorted(edge, cuts[:-1], side="right") - 1 for edge in edges)
    return first, second, np.diff(cuts)


def _largest(loss: NDArray[np.float64], states: NDArray[np.bool_]) -> float:
    """Return the largest loss over pairs of different states."""
    if np.count_nonzero(states) < 2:
        return 0.0
    return float(loss) if loss.ndim == 0 else float(loss[np.ix_(states, states)].max())


_SAMPLE = 64


Vector = NDArray[np.float64]


class Weights:
    """Sums of the record-level losses of runs of records, exact or rounded up.

    Losses of *observed* records count as often as there are such: a run of steps holds at most all of them, and those
    with the largest losses at worst.

    A profile is held as whole multiples of a power of two, each loss rounded up by less than 2^-40 of the largest, so
    that cumulative sums are exact integers however long the chain.
    """

    def __init__(self, losses: BlockLoss) -> None:
        per_record = losses.per_record
        self.uniform = per_record.ndim == 0 or bool(np.all(per_record == per_record.flat[0]))
        self._each = float(per_record.flat[0]) if self.uniform else 0.0
        self._most = losses.length.records if losses.of_observed else losses.length.steps
        # losses that are all alike need no sums of theirs
        profile = np.zeros(0) if self.uniform else per_record
        bits = 61 - int(profile.size).bit_length()
        exponent = max(math.frexp(float(profile.max(initial=0.0)))[1] - bits, -1074)
        self._quantum = math.ldexp(1.0, exponent)
        whole = np.maximum(np.ceil(np.ldexp(profile, -exponent)), profile > 0).astype(np.int64)
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
        limit: Any = max_quilt_length
        if limit is not None and not (isinstance(limit, int) and limit is not True and limit >= 1):
            raise ParameterError(
                f"max_quilt_length is {max_quilt_length!r}, expected a whole number of at least 1, or None for all"
            )
        self._max_quilt_length: int | None = limit

    @property
    def max_quilt_length(self) -> int | None:
        """The most nearby records of a quilt; None for any number."""
        return self._max_quilt_length


class ChainQuilts(Engine):
    """The search for the best quilts of chains, as an engine.

    Parameters
    ----------
    theta : class of chains, or MarkovChain
        The class Θ; a continuum counts as one member.
    longest : int, optional
        Search quilts with at most this many nearby records.
    """

    def __init__(self, theta: Theta | MarkovChain, longest: int | None = None) -> None:
        self._states = theta.states
        self._members = members_of(theta)
        self._longest = longest

    @abstractmethod
    def groups(self, length: int) -> Iterator[NodesAlike]:
        """Yield the groups of alike nodes with a secret, of every θ, in a chain of ``length`` records."""

    def possible(self, losses: BlockLoss) -> list[BlockLoss]:
        """Return the losses that count under every member: those between states that its records can have."""
        return [possible_losses(losses, member_places(member, losses.length.steps)) for member in self._members]

    supports_step_losses = True
    """The steps that change with n records in a row are n + 1."""

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage of losses, and say where it is attained."""
        return self._worst(losses, LeakThrough())

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> list[Bound]:
        """Return the least number that divides the losses so that they leak at most epsilon."""
        return [self._worst(losses, Score(epsilon))]

    def _visits(self, length: int) -> Iterator[NodesAlike]:
        """Yield a sample of the groups, then all: what the sample finds lets most of the others be dropped at once."""
        yield from islice(self.groups(length), _SAMPLE - 1, None, _SAMPLE)
        yield from self.groups(length)

    def _problems(self, chain: BlockLoss, groups: Iterable[NodesAlike]) -> Iterator[tuple[NodesAlike, SearchProblem]]:
        """Yield groups of nodes with what runs of records weigh under their member of Θ."""
        weights = [Weights(of_member) for of_member in self.possible(chain)]
        steps = chain.length.steps
        for nodes in groups:
            weight = weights[nodes.theta]
            longest = self._longest or steps
            yield (
                nodes,
                SearchProblem(steps, nodes.left, nodes.right, weight, weight.many, weight.uniform, longest),
            )

    def _worst(self, losses: RecordLoss, objective: Objective, below: float = math.inf) -> Bound:
        """Return what all records need, and which decides; the first that needs ``below`` or more ends the search."""
        most: Quilt | None = None
        witness: QuiltWitness | None = None
        for chain in chains_that_can_decide(losses):
            steps = chain.length.steps
            for nodes, problem in self._problems(chain, self._visits(steps)):
                report_progress("searching quilts", nodes.last / steps)
                quilt = worst_node(problem, objective, nodes.first, nodes.last, floor=most, below=below)
                if quilt is not None:
                    most, witness = quilt, _witness(quilt, nodes, chain.length, self._states)
                    if quilt.value >= below:
                        return quilt.value, witness
        return (0.0, None) if most is None else (most.value, witness)


def _witness(quilt: Quilt, nodes: NodesAlike, chain: ChainLength, states: tuple[str, ...]) -> QuiltWitness:
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
    return QuiltWitness(
        theta=nodes.theta,
        length=length,
        node=quilt.node - 1,
        secret_pair=pair,
        active_quilt=tuple(ends),
        nearby=min(quilt.a + quilt.b - 1, chain.records),
        influence=quilt.influence,
    )
