"""MQMExact: Algorithm 3, the Markov Quilt Mechanism with exact max-influence on chains; and what Algorithm 4 shares.

Both differ in where a quilt's left and right parts come from (exactly, or by a closed form) and share the search
(:mod:`pufferfish._core.quilts.chain_search`), the losses of a profile, the worst chain, and the witness.

Under one member of Θ a record takes the states that have positive probability. All that the law of an output can depend
on is the release's density on these, so bounds hold for the losses between possible states alone, and a record that is
certain is none. A pair of values that only another member makes possible is that member's to protect.
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import one_of
from pufferfish._base.progress import report_progress
from pufferfish._core.chains.markov import Places, places_of
from pufferfish._core.numbers.rounding import up
from pufferfish._core.quilts.chain_search import (
    LeakThrough,
    Objective,
    Quilt,
    Score,
    SearchProblem,
    best_quilt,
    worst_node,
)
from pufferfish._core.quilts.influence import ChainInfluence, IntervalInfluence, NodeGroup
from pufferfish.errors import ParameterError
from pufferfish.mechanisms.binary_interval import BinaryQuilts
from pufferfish.mechanisms.engine import Bound, Engine
from pufferfish.mechanisms.influence_bound import InfluenceBound, at_least_one
from pufferfish.mechanisms.witness import QuiltWitness, Witness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide
from pufferfish.theta.continua import BinaryChainInterval, IntervalChain
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Theta

# -- What of a release's record-level losses can happen at all under one member of Θ ---------------------------------

_SHORT, _LONG, _LITTLE = 64, 4096, 1.1
"""Records that differ by their states alone are told apart in chains of so many steps; and in longer ones, up to the
second number, where that makes their losses so many times smaller in all. Else they are alike: quicker to search."""


def members_of(theta: Theta | MarkovChain) -> Sequence[MarkovChain | IntervalChain | BinaryChainInterval]:
    """Return the members of a class of chains; a continuum is one member, where all can happen that some law allows."""
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

    Where all others are alike, certain ones may be given their loss: more than they have, and quicker to search.
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


_SAMPLE = 64  # one in so many groups of nodes is searched before all of them

Vector = NDArray[np.float64]


class Weights:
    """Sums of the record-level losses of runs of records, exact or rounded up.

    Losses of *observed* records count as often as there are such, the largest at worst. A profile is held as whole
    multiples of a power of two, each loss rounded up by less than 2^-40 of the largest: cumulative sums are then exact.
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
    """Nodes first..last of a chain, 1-based, whose quilts have the same parts; ``pairs``, (2, n), are secret ones."""

    theta: int
    first: int
    last: int
    pairs: NDArray[np.intp] | None
    left: Callable[[int], Vector]
    right: Callable[[int], Vector]


class ChainQuiltBound(InfluenceBound):
    """A Markov quilt mechanism on chains; the trivial quilt is always searched."""

    max_quilt_length: int | None  # the most nearby records of a quilt (the paper's ℓ); None for any number

    def __init__(self, theta: Any, length: Any, *, max_quilt_length: int | None = None) -> None:
        super().__init__(theta, length)
        self._keep(max_quilt_length=at_least_one(max_quilt_length, "max_quilt_length"))


class ChainQuilts(Engine):
    """The search for the best quilts of chains, of at most ``longest`` nearby records; a continuum is one member."""

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

    supports_step_losses = True  # the steps that change with n records in a row are n + 1

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage by the record that its best quilt serves worst."""
        return self._worst(losses, LeakThrough())

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> list[Bound]:
        """Return the least number."""
        return [self._worst(losses, Score(epsilon))]

    def _problems(self, chain: BlockLoss, groups: Iterable[NodesAlike]) -> Iterator[tuple[NodesAlike, SearchProblem]]:
        """Yield groups of nodes with what runs of records weigh under their member of Θ."""
        weights = [Weights(of_member) for of_member in self.possible(chain)]
        steps = chain.length.steps
        longest = self._longest or steps
        for nodes in groups:
            weight = weights[nodes.theta]
            yield (nodes, SearchProblem(steps, nodes.left, nodes.right, weight, weight.many, weight.uniform, longest))

    def _worst(self, losses: RecordLoss, objective: Objective, below: float = math.inf) -> Bound:
        """Return what all records need, and which decides; the first that needs ``below`` or more ends the search."""
        most: Quilt | None = None
        witness: QuiltWitness | None = None
        for chain in chains_that_can_decide(losses):
            steps = chain.length.steps
            # a sample of the groups, then all: what the sample finds lets most of the others be dropped at once
            sample = islice(self.groups(steps), _SAMPLE - 1, None, _SAMPLE)
            for nodes, problem in self._problems(chain, itertools.chain(sample, self.groups(steps))):
                report_progress("searching quilts", nodes.last / steps)
                quilt = worst_node(problem, objective, nodes.first, nodes.last, floor=most, below=below)
                if quilt is not None:
                    most, witness = quilt, _witness(quilt, nodes, chain.length, self._states)
                    if quilt.value >= below:
                        return quilt.value, witness
        return (0.0, None) if most is None else (most.value, witness)


def _witness(quilt: Quilt, nodes: NodesAlike, chain: ChainLength, states: tuple[str, ...]) -> QuiltWitness:
    length = chain.steps
    ends = [end for end in (quilt.node - quilt.a - 1, quilt.node + quilt.b - 1) if 0 <= end < length]
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


# -- Algorithm 3 -------------------------------------------------------------------------------------------------------


class MQMExact(ChainQuiltBound):
    """The Markov Quilt Mechanism with exact max-influence (Algorithm 3).

    Parameters
    ----------
    theta : MarkovChain, sequence of MarkovChain, ChainClass, BinaryChainInterval or IntervalChain
        The class Θ. ``initial_distribution="any"`` is the class of all initial laws (Appendix C.4). For an
        :class:`IntervalChain` max-influence is bounded, not exact: docs/proofs/intervals.md.
    length : int, ChainLength, or sequence of these
        T, or the lengths of the data set's independent chains. The cost of a stationary chain does not depend on them.
    max_quilt_length : int, optional
        Search quilts with at most this many nearby records; by default all.
    support : {"definition", "paper"}, default "definition"
        Which values count in the maximum of a record left of the node, and in the largest change of the query: those
        with positive probability, as Definition 4.1 says, or all, as the equation in Section 4.4 prints it. Both are
        private; the definition is tighter.

    Examples
    --------
    >>> import pufferfish as pf
    >>> theta1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial_distribution=[1, 0])
    >>> calibration = pf.MQMExact(theta1, length=100, support="paper").calibrate(pf.Count(1), epsilon=1.0)
    >>> round(calibration.scale, 4), calibration.witness.node, calibration.witness.active_quilt
    (13.0219, 7, (2, 12))
    """

    name: ClassVar[str] = "mqm-exact"
    title: ClassVar[str] = "MQMExact"
    searches_continuum: ClassVar[bool] = True
    witnesses: ClassVar[tuple[type[Witness], ...]] = (QuiltWitness,)
    kinds: ClassVar[tuple[type, ...]] = (MarkovChain, BinaryChainInterval, IntervalChain)
    support: Literal["definition", "paper"]  # the reading of the support

    def __init__(
        self,
        theta: Any,
        length: Any,
        *,
        max_quilt_length: int | None = None,
        support: Literal["definition", "paper"] = "definition",
    ) -> None:
        super().__init__(theta, length, max_quilt_length=max_quilt_length)
        if not one_of(support, ("definition", "paper")):
            raise ParameterError(f'support is {support!r}, expected "definition" or "paper"')
        self._keep(support=support)

    @property
    def settings(self) -> dict[str, Any]:
        """The longest quilt and the reading of the support."""
        return {"max_quilt_length": self.max_quilt_length, "support": self.support}

    def _engine_of(self, theta: Theta) -> Engine:
        if isinstance(theta, BinaryChainInterval):
            return BinaryQuilts(theta, "exact", self.max_quilt_length)
        return ExactQuilts(theta, self.max_quilt_length, self.support)


class ExactQuilts(ChainQuilts):
    """Quilts of chains with exact max-influence (between bounds on matrices an upper bound of it)."""

    def __init__(
        self,
        theta: Theta | MarkovChain,
        longest: int | None = None,
        support: Literal["definition", "paper"] = "definition",
    ) -> None:
        super().__init__(theta, longest)
        self._structural = support == "definition"
        self._influence = [_influence(chain, self._structural) for chain in self._members]

    def possible(self, losses: BlockLoss) -> list[BlockLoss]:
        """Return the losses that count under every member: in the paper's reading all of them."""
        return super().possible(losses) if self._structural else [losses] * len(self._members)

    def groups(self, length: int) -> Iterator[NodesAlike]:
        """Yield the groups of alike nodes with a secret, of every θ, in a chain of ``length`` records."""
        for t, influence in enumerate(self._influence):
            for group in influence.groups(length):
                yield from _nodes_alike(t, influence, group)

    def less_than(self, value: float, chain: BlockLoss, node: int, objective: Objective) -> Bound | None:
        """Return what quilts prove of a chain if less than ``value``, else None; one 1-based record first."""
        needed = self.best_at(chain, node, objective, below=value)
        if needed is not None and needed >= value:
            return None
        bound = self._worst(RecordLoss((chain,)), objective, below=value)
        return bound if bound[0] < value else None

    def best_at(self, chain: BlockLoss, node: int, objective: Objective, below: float = math.inf) -> float | None:
        """Return what the best quilts of one record, 1-based, prove, or more from ``below`` on; None: no secret."""
        enough = -math.inf if below == math.inf else math.nextafter(below, -math.inf)
        return max(
            (
                best_quilt(problem, objective, node, enough=enough, below=below).value
                for _, problem in self._problems(chain, self._at(node, chain.length.steps))
            ),
            default=None,
        )

    def _at(self, node: int, length: int) -> Iterator[NodesAlike]:
        """Yield the groups of one node, where it has a secret."""
        for t, influence in enumerate(self._influence):
            if isinstance(influence, ChainInfluence):
                yield from _nodes_alike(t, influence, influence.at(node, length))
            else:
                yield from (nodes for nodes in self.groups(length) if nodes.first <= node <= nodes.last)


def _influence(chain: MarkovChain | IntervalChain | BinaryChainInterval, structural: bool) -> Any:
    if isinstance(chain, IntervalChain):
        return IntervalInfluence(chain.lower, chain.upper)
    assert isinstance(chain, MarkovChain)
    return ChainInfluence(chain.transition_matrix, chain.initial_distribution, structural=structural)


def _nodes_alike(theta: int, influence: ChainInfluence | IntervalInfluence, group: NodeGroup) -> Iterator[NodesAlike]:
    """Yield a group of nodes with its parts; nothing if the records are certain: there is no secret to protect."""
    x, x_ = group.pairs

    @cache
    def left(a: int) -> NDArray[np.float64]:
        return influence.left(group, a)

    @cache
    def right(b: int) -> NDArray[np.float64]:
        return influence.right(b)[x, x_]

    if x.size:
        yield NodesAlike(theta, group.first, group.last, group.pairs, left, right)
