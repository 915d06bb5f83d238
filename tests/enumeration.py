"""Brute force from the definitions, exact where zeros matter; knows no mechanism of the package under test.

Probabilities are whole numbers over one common denominator, so that a zero is a zero and a ratio of two of them
is rounded once. Nodes are 0-based here.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paper.audit.losses import laplace_loss, worst_count_loss

__all__ = [
    "Enumerated",
    "exact_stationary",
    "laplace_loss",
    "long_sigma",
    "whole",
    "worst_count_loss",
]

Array = NDArray[np.float64]
Nodes = tuple[int, ...]
States = tuple[int, ...]


def whole(table: ArrayLike) -> tuple[list[list[int]], int]:
    """Rows of floats as integers over one denominator, exactly."""
    exact = [[Fraction(float(v)) for v in row] for row in np.atleast_2d(np.asarray(table, dtype=float))]
    denominator = math.lcm(*(v.denominator for row in exact for v in row))
    return [[int(v * denominator) for v in row] for row in exact], denominator


def exact_stationary(p: ArrayLike) -> list[Fraction]:
    """Solve π = πP, Σπ = 1 by Gauss–Jordan elimination in fractions (P irreducible)."""
    rows = [[Fraction(float(v)) for v in row] for row in np.asarray(p, dtype=float)]
    rows = [[v / sum(row) for v in row] for row in rows]
    k = len(rows)
    system = [[rows[x][y] - (x == y) for x in range(k)] + [Fraction(0)] for y in range(k - 1)]
    system.append([Fraction(1)] * (k + 1))
    for column in range(k):
        pivot = next(r for r in range(column, k) if system[r][column])
        system[column], system[pivot] = system[pivot], system[column]
        system[column] = [v / system[column][column] for v in system[column]]
        for r in range(k):
            if r != column and system[r][column]:
                factor = system[r][column]
                system[r] = [v - factor * w for v, w in zip(system[r], system[column], strict=True)]
    return [system[x][k] for x in range(k)]


@dataclass(frozen=True)
class Enumerated:
    """Every sequence a short chain can produce, with its exact weight."""

    initial: tuple[Fraction, ...]
    transition: Array
    length: int

    @classmethod
    def of(cls, initial: Sequence[float | Fraction], transition: ArrayLike, length: int) -> "Enumerated":
        return cls(tuple(Fraction(v) for v in initial), np.asarray(transition, dtype=float), length)

    @cached_property
    def law(self) -> dict[States, int]:
        rows, _ = whole(self.transition)
        common = math.lcm(*(v.denominator for v in self.initial))
        weights = {(x,): int(v * common) for x, v in enumerate(self.initial) if v}
        for _ in range(self.length - 1):
            weights = {
                (*seq, y): w * step for seq, w in weights.items() for y, step in enumerate(rows[seq[-1]]) if step
            }
        return weights

    @cached_property
    def _marginals(self) -> dict[Nodes, dict[States, int]]:
        return {}

    def marginal(self, nodes: Nodes) -> dict[States, int]:
        if nodes not in self._marginals:
            table: dict[States, int] = {}
            for seq, weight in self.law.items():
                key = tuple(seq[t] for t in nodes)
                table[key] = table.get(key, 0) + weight
            self._marginals[nodes] = table
        return self._marginals[nodes]

    def secrets(self, node: int) -> list[int]:
        """Values the record can take."""
        return sorted(x for (x,) in self.marginal((node,)))

    def influence(self, node: int, quilt: Nodes) -> float:
        """Max-influence of a record on a set of records, by Definition 4.1."""
        if not quilt:
            return 0.0
        alone, together = self.marginal((node,)), self.marginal((node, *quilt))
        worst = 0.0
        for x, other in itertools.permutations(self.secrets(node), 2):
            for (value, *ends), weight in together.items():
                if value != x:
                    continue
                against = together.get((other, *ends), 0)
                if not against:
                    return math.inf
                worst = max(worst, math.log((weight * alone[(other,)]) / (against * alone[(x,)])))
        return worst

    def quilts(self, node: int) -> Iterator[tuple[Nodes, range]]:
        """The quilts of Lemma 4.6, each with its nearby records."""
        for left in range(-1, node):
            for right in range(node + 1, self.length + 1):
                ends = tuple(t for t in (left, right) if 0 <= t < self.length)
                yield ends, range(left + 1, right)

    def score(self, node: int, quilt: Nodes, weight: float, epsilon: float) -> float:
        influence = self.influence(node, quilt)
        return weight / (epsilon - influence) if influence < epsilon else math.inf

    def changing(self, nearby: Sequence[int], state: int = 1) -> int:
        """How many records can have a state and another one as well: those that can change a count of it."""
        return sum(state in self.secrets(t) and len(self.secrets(t)) > 1 for t in nearby)

    def sigma(self, epsilon: float, longest: int | None = None, *, every: bool = False) -> float:
        """σ_max of Algorithm 2 with the quilts of Algorithm 3, for a count of state 1 or if all records counted."""
        limit = self.length if longest is None else longest
        scores = [
            min(
                self.score(node, ends, len(nearby) if every else self.changing(nearby), epsilon)
                for ends, nearby in self.quilts(node)
                if not ends or len(nearby) <= limit
            )
            for node in range(self.length)
            if len(self.secrets(node)) > 1
        ]
        return max(scores, default=0.0)

    def leakage(self, profile: Sequence[float]) -> float:
        """What the quilts prove of a release with these record-level losses; a certain record has none."""
        each = [loss * (len(self.secrets(t)) > 1) for t, loss in enumerate(profile)]
        losses = [
            min(math.fsum(each[t] for t in nearby) + self.influence(node, ends) for ends, nearby in self.quilts(node))
            for node in range(self.length)
            if len(self.secrets(node)) > 1
        ]
        return max(losses, default=0.0)

    def true_loss(self, weights: NDArray[np.int64], scale: float) -> float:
        """Pufferfish loss of ``weights @ counts`` with discrete Laplace noise on every output, over all secrets."""
        answers: dict[States, States] = {}
        for seq in self.law:
            answers[seq] = tuple(int(v) for v in weights[:, list(seq)].sum(axis=1))
        atoms = sorted(set(answers.values()))
        place = {atom: a for a, atom in enumerate(atoms)}
        worst = 0.0
        for node in range(self.length):
            masses: dict[int, list[int]] = {x: [0] * len(atoms) for x in self.secrets(node)}
            for seq, weight in self.law.items():
                masses[seq[node]][place[answers[seq]]] += weight
            laws = [np.array([m / sum(mass) for m in mass]) for mass in masses.values()]
            worst = max(worst, laplace_loss(np.array(atoms), laws, scale))
        return worst


def long_sigma(initial: Array, transition: Array, length: int, epsilon: float, longest: int | None = None) -> float:
    """σ_max by looking at every quilt of every node, in floating point: chains whose powers do not underflow."""
    k = transition.shape[0]
    pairs = np.array(list(itertools.permutations(range(k), 2))).T
    powers = [np.eye(k)]
    marginals = [np.asarray(initial, dtype=float)]
    for _ in range(length):
        powers.append(powers[-1] @ transition)
        marginals.append(marginals[-1] @ transition)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.array(powers))
        right = _ratios(logs, pairs)
        back = {
            support: _ratios(np.swapaxes(logs[:, list(support), :], 1, 2), pairs)
            for support in {tuple(np.flatnonzero(m > 0)) for m in marginals}
        }
        worst = 0.0
        for node in range(length):
            prior = np.log(marginals[node][pairs[1]]) - np.log(marginals[node][pairs[0]])
            secret = np.isfinite(prior)
            if not secret.any():
                continue
            left = [
                back[tuple(np.flatnonzero(marginals[node - a] > 0))][a][secret] + prior[secret]
                for a in range(1, node + 1)
            ]
            worst = max(worst, _best(np.array(left), right[1 : length - node][:, secret], epsilon, longest))
    return worst


def _ratios(logs: Array, pairs: NDArray[np.int64]) -> Array:
    """Max over the last axis of log row x − log row x', per power and pair; 0/0 does not count."""
    difference = logs[:, pairs[0], :] - logs[:, pairs[1], :]
    return np.where(np.isnan(difference), -np.inf, difference).max(axis=2)


def _best(left: Array, right: Array, epsilon: float, longest: int | None) -> float:
    before, after = len(left), len(right)
    influence = np.zeros((before + 1, after + 1))
    if before and after:
        influence[:-1, :-1] = (left[:, None] + right[None, :]).max(axis=2)
    if before:
        influence[:-1, -1] = left.max(axis=1)
    if after:
        influence[-1, :-1] = right.max(axis=1)
    nearby = np.add.outer(np.arange(before + 1), np.arange(after + 1)) + 1
    scores = np.full(influence.shape, np.inf)
    np.divide(nearby, epsilon - influence, out=scores, where=influence < epsilon)
    if longest is not None:
        scores[:-1][nearby[:-1] > longest] = np.inf
        scores[-1, :-1][nearby[-1, :-1] > longest] = np.inf
    return float(scores.min())
