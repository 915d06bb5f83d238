"""MQMExact: Algorithm 3, the Markov Quilt Mechanism with exact max-influence on chains."""

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import one_of
from pufferfish._core.quilts.chain_search import Objective, best_quilt
from pufferfish._core.quilts.influence import ChainInfluence, IntervalInfluence, NodeGroup
from pufferfish.errors import ParameterError
from pufferfish.mechanisms._chain_quilts import ChainQuiltBound, ChainQuilts, NodesAlike
from pufferfish.mechanisms.binary_interval import BinaryQuilts
from pufferfish.mechanisms.engine import Bound, Engine
from pufferfish.mechanisms.witness import QuiltWitness, Witness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss
from pufferfish.theta.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Theta

__all__ = ["ExactQuilts", "MQMExact"]


class MQMExact(ChainQuiltBound):
    """The Markov Quilt Mechanism with exact max-influence (Algorithm 3).

    Parameters
    ----------
    theta : MarkovChain, sequence of MarkovChain, ChainClass, BinaryChainInterval or IntervalChain
        The class Θ. ``initial_distribution="any"`` is the class of all initial laws (Appendix C.4). For an
        :class:`IntervalChain` max-influence is bounded, not exact: docs/proofs/intervals.md.
    length : int, ChainLength, or sequence of these
        T, or the lengths of the data set's independent chains. For a stationary chain the cost does not depend
        on them.
    max_quilt_length : int, optional
        Search quilts with at most this many nearby records; by default all.
    support : {"definition", "paper"}, default "definition"
        Which values count in the maximum of a record left of the node, and in the largest change of the query: those
        with positive probability, as Definition 4.1 says, or all, as the equation in Section 4.4 prints it. Both are
        private; the definition is tighter.

    Examples
    --------
    The running example of Section 4.4:

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
        self._support: Literal["definition", "paper"] = support

    @property
    def support(self) -> Literal["definition", "paper"]:
        """The reading of the support."""
        return self._support

    @property
    def settings(self) -> dict[str, Any]:
        """The longest quilt and the reading of the support."""
        return {"max_quilt_length": self.max_quilt_length, "support": self.support}

    @classmethod
    def supports(cls, theta: Theta) -> str | None:
        """Every class of Markov chains is covered; where quilts do not help, the trivial quilt is GroupDP."""
        return None

    def _engine_of(self, theta: Theta) -> Engine:
        if isinstance(theta, BinaryChainInterval):
            return BinaryQuilts(theta, "exact", self.max_quilt_length)
        return ExactQuilts(theta, self.max_quilt_length, self.support)


class ExactQuilts(ChainQuilts):
    """Quilts of chains with exact max-influence; between bounds on matrices an upper bound of it.

    Parameters
    ----------
    theta : class of chains, or MarkovChain
        The class Θ, none of two-state chains between bounds.
    longest : int, optional
        Search quilts with at most this many nearby records.
    support : {"definition", "paper"}, default "definition"
        Which values count; see :class:`MQMExact`.
    """

    def __init__(
        self,
        theta: Theta | MarkovChain,
        longest: int | None = None,
        support: Literal["definition", "paper"] = "definition",
    ) -> None:
        super().__init__(theta, longest)
        self._structural = support == "definition"
        self._between = IntervalInfluence(theta.lower, theta.upper) if isinstance(theta, IntervalChain) else None
        self._influence = [
            ChainInfluence(chain.transition_matrix, chain.initial_distribution, structural=self._structural)
            for chain in self._members
            if isinstance(chain, MarkovChain)
        ]

    def possible(self, losses: BlockLoss) -> list[BlockLoss]:
        """Return the losses that count under every member: in the paper's reading all of them."""
        return super().possible(losses) if self._structural else [losses] * len(self._members)

    def groups(self, length: int) -> Iterator[NodesAlike]:
        """Yield the groups of alike nodes with a secret, of every θ, in a chain of ``length`` records."""
        if self._between is not None:
            for alike in self._between.groups(length):
                if alike.pairs.shape[1]:
                    yield NodesAlike(0, alike.first, alike.last, alike.pairs, *_parts(self._between, alike))
        for t, influence in enumerate(self._influence):
            for group in influence.groups(length):
                if group.pairs.shape[1]:  # else the record is certain: no secret to protect
                    yield NodesAlike(t, group.first, group.last, group.pairs, *_parts(influence, group))

    def less_than(self, value: float, chain: BlockLoss, node: int, objective: Objective) -> Bound | None:
        """Return what quilts prove of a chain where that is less than ``value``, else None.

        The 1-based record is asked first: where it needs as much, as the one that decides elsewhere mostly does, the
        others need not be searched.
        """
        needed = self.best_at(chain, node, objective, below=value)
        if needed is not None and needed >= value:
            return None
        bound = self._worst(RecordLoss((chain,)), objective, below=value)
        return bound if bound[0] < value else None

    def best_at(self, chain: BlockLoss, node: int, objective: Objective, below: float = math.inf) -> float | None:
        """Return what the best quilts of one record prove, the worst member of Θ deciding; None if it has no secret.

        The record is 1-based. Where it is not below ``below``, a larger number may be returned.
        """
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
        if self._between is not None:
            yield from (nodes for nodes in self.groups(length) if nodes.first <= node <= nodes.last)
        for t, influence in enumerate(self._influence):
            group = influence.at(node, length)
            if group.pairs.shape[1]:
                yield NodesAlike(t, group.first, group.last, group.pairs, *_parts(influence, group))


def _parts(
    influence: ChainInfluence | IntervalInfluence, group: NodeGroup
) -> tuple[Callable[[int], NDArray[np.float64]], Callable[[int], NDArray[np.float64]]]:
    x, x_ = group.pairs

    @cache
    def left(a: int) -> NDArray[np.float64]:
        return influence.left(group, a)

    @cache
    def right(b: int) -> NDArray[np.float64]:
        return influence.right(b)[x, x_]

    return left, right
