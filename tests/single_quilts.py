"""Influence and score of one given quilt, as the package computes them (for golden and oracle tests)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import pufferfish as pf
from pufferfish._core.quilts.chain_search import LeakThrough, Objective, Quilt, Score, evaluate
from pufferfish._core.quilts.influence import ChainInfluence, NodeGroup


@dataclass(frozen=True)
class OneNode:
    """A node's left and right parts with one unit of loss per record: implements ``SearchProblem``."""

    influence: ChainInfluence
    group: NodeGroup
    length: int

    @property
    def longest(self) -> int:
        return self.length

    def left(self, a: int) -> NDArray[np.float64]:
        return self.influence.left(self.group, a)

    def right(self, b: int) -> NDArray[np.float64]:
        return self.influence.right(b)[self.group.pairs[0], self.group.pairs[1]]

    def weight(self, first: int, last: int) -> float:
        return float(last - first + 1)

    def weights(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.float64]:
        return (last - first + 1).astype(np.float64)


class Quilts:
    """Every quilt of a chain, asked for one by one; nodes are 0-based."""

    def __init__(self, chain: pf.MarkovChain, length: int, support: str = "definition") -> None:
        influence = ChainInfluence(
            chain.transition_matrix, chain.initial_distribution, structural=support == "definition"
        )
        self.length = length
        self._problems = {
            node: OneNode(influence, group, length)
            for group in influence.groups(length)
            for node in range(group.first - 1, group.last)
        }

    def _quilt(self, node: int, ends: tuple[int, ...], objective: Objective) -> Quilt | None:
        problem = self._problems[node]
        if not problem.group.pairs.size:
            return None  # the record is certain
        a = max((node - t for t in ends if t < node), default=node + 1)
        b = min((t - node for t in ends if t > node), default=self.length - node)
        return evaluate(problem, objective, node + 1, a, b)

    def influence(self, node: int, ends: tuple[int, ...]) -> float:
        quilt = self._quilt(node, ends, LeakThrough())
        return 0.0 if quilt is None else quilt.influence

    def score(self, node: int, ends: tuple[int, ...], epsilon: float) -> float:
        quilt = self._quilt(node, ends, Score(epsilon))
        return -math.inf if quilt is None else quilt.value
