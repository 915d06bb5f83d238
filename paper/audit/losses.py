"""True losses of noisy answers, from the definition: every database of a small model, or exact recursions.

Nothing here is used by a mechanism: these numbers are what their proofs are compared with.

A lower confidence bound on the loss of real releases: one secret against the other, by sampling.

Databases are drawn from θ given that a record has one value, and given that it has another; each is released for
real. The event that tells the two worlds apart best is chosen on the first half of the outputs, and tested on the
second: there its two frequencies have Clopper-Pearson bounds, and the true loss exceeds the logarithm of their ratio.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import ReadOnly
from pufferfish.errors import ParameterError
from pufferfish.queries import LinearQuery
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.markov_chain import MarkovChain

__all__ = ["Databases", "databases_of", "laplace_loss", "paths", "sampled_loss", "worst_count_loss"]

Array = NDArray[np.float64]

_MOST = 200_000
"""Databases that are enumerated."""


@dataclass(frozen=True, slots=True, eq=False)
class Databases(ReadOnly):
    """Every possible database of a small model, with its probability.

    Parameters
    ----------
    rows : (n, records) ndarray of int
        Places of the records' states among the model's.
    weights : (n,) ndarray
        Probabilities, positive.
    """

    rows: NDArray[np.int64]
    weights: Array

    def answers(self, query: LinearQuery) -> NDArray[np.int64]:
        """Return a query's exact outputs on every database, in units; shape (n, outputs)."""
        if query.factors is None and query.domains is None:
            return np.asarray(query.weights[:, self.rows].sum(axis=2).T, dtype=np.int64)
        return np.array([list(query.value(row)) for row in self.rows.tolist()], dtype=np.int64)

    def secrets(self, record: int) -> list[int]:
        """Return the states that a record can have."""
        return np.unique(self.rows[:, record]).tolist()

    def worst(self, answers: NDArray[np.int64], scale: float | Array) -> tuple[float, int]:
        """Return the loss of noise of a scale, in units, or of one for each output, and the record that decides it."""
        atoms, place = np.unique(answers, axis=0, return_inverse=True)
        losses = [
            laplace_loss(atoms, self._laws(record, np.ravel(place), len(atoms)), scale) for record in self._free()
        ]
        if not losses:
            return 0.0, 0
        worst = int(np.argmax(losses))
        return losses[worst], list(self._free())[worst]

    def _free(self) -> Iterator[int]:
        return (record for record in range(self.rows.shape[1]) if len(self.secrets(record)) > 1)

    def _laws(self, record: int, place: NDArray[np.intp], atoms: int) -> list[Array]:
        laws: list[Array] = []
        for state in self.secrets(record):
            own = self.rows[:, record] == state
            law = np.bincount(place[own], weights=self.weights[own], minlength=atoms)
            laws.append(law / law.sum())
        return laws


def databases_of(model: MarkovChain | BayesianNetwork, length: int | None = None) -> Databases:
    """Return every database of a chain of some length, whose initial law is given or stationary, or of a network.

    Raises
    ------
    ParameterError
        If there are too many, or the chain's initial law is not known.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> noise = pf.GroupDP(chain, length=6).calibrate(pf.Count(1), epsilon=1.0)
    >>> every = databases_of(chain, 6)
    >>> loss, record = every.worst(every.answers(noise.linear), noise.unit_scale)
    >>> len(every.rows), round(loss, 2) < 1.0
    (64, True)
    """
    if isinstance(model, BayesianNetwork):
        rows, weights = _of_network(model)
    else:
        rows, weights = _of_chain(model, length or 0)
    possible = weights > 0
    return Databases(rows[possible], weights[possible])


def _of_chain(chain: MarkovChain, length: int) -> tuple[NDArray[np.int64], Array]:
    start, p = chain.initial_distribution, chain.transition_matrix
    if isinstance(start, str):
        if start == "any":
            raise ParameterError("a chain that may start anywhere has no one law: give an initial law")
        start = chain.stationary_distribution
    k = len(p)
    if length < 1 or k**length > _MOST:
        raise ParameterError(f"{k}^{length} databases are enumerated up to {_MOST:,}: give a shorter chain")
    every = paths(start, [p] * (length - 1))
    return every.rows, every.weights


def paths(start: Array, steps: Sequence[Array]) -> Databases:
    """Return every path of records: the first m from a law on m axes, each step from a table of m records and the next.

    Parameters
    ----------
    start : (k, …) ndarray
        Law of the first m records, m axes.
    steps : sequence of (k, …, k) ndarray
        For each record more: its law given the m records before it, the latest last.
    """
    k, m = start.shape[0], start.ndim
    rows = np.array(list(itertools.product(range(k), repeat=m + len(steps))), dtype=np.int64)
    weights = start[tuple(rows[:, :m].T)]
    for t, step in enumerate(steps):
        weights = weights * step[tuple(rows[:, t : t + m + 1].T)]
    return Databases(rows[weights > 0], np.asarray(weights[weights > 0], dtype=np.float64))


def _of_network(network: BayesianNetwork) -> tuple[NDArray[np.int64], Array]:
    if math.prod(network.sizes) > _MOST:
        raise ParameterError(f"a network has {math.prod(network.sizes):,} rows, and {_MOST:,} are enumerated")
    own = np.array(list(itertools.product(*map(range, network.sizes))), dtype=np.int64)
    place: dict[Any, int] = {node: j for j, node in enumerate(network.nodes)}
    weights = np.ones(len(own))
    for node, cpt in network.cpts.items():
        weights = weights * cpt.table[tuple(own[:, place[name]] for name in (*cpt.parents, node))]
    states = list(network.states)
    named = [np.array([states.index(s) for s in network.node_states[node]]) for node in network.nodes]
    return np.stack([named[j][own[:, j]] for j in range(len(named))], axis=1), weights


def laplace_loss(atoms: NDArray[np.int64], laws: Sequence[Array], scale: float | Array) -> float:
    """Largest log ratio, over outputs and pairs of laws on whole atoms (n, m), after discrete Laplace noise.

    The noise has one scale, or one for each of the m outputs. Along an output the ratio is a Möbius function of
    e^{2w/b} between neighbouring atoms, and beyond them it stays as it is at the edge: so the grid of what the atoms
    have in each output holds the supremum.
    """
    axes: list[Any] = [np.unique(column) for column in atoms.T]
    outputs: NDArray[np.int64] = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    distance = (np.abs(outputs[:, None, :] - atoms[None, :, :]) / scale).sum(axis=2)
    kernel = np.exp(-distance)
    logs = np.array([np.log(kernel @ law) for law in laws])
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


def worst_count_loss(initial: Array, transition: Array, observed: NDArray[np.bool_], state: int, scale: float) -> float:
    """Exact loss of a noisy count of one state among the observed records, over every record of the chain.

    By forward and backward passes over (state, partial count); no enumeration.
    """
    steps, k, most = len(observed), transition.shape[0], int(observed.sum())

    def charge(table: Array, t: int) -> Array:
        """Let record t add to the count: shift the row of the counted state."""
        if observed[t]:
            table = table.copy()
            table[state, 1:], table[state, 0] = table[state, :-1].copy(), 0.0
        return table

    until = np.zeros((k, most + 1))
    until[:, 0] = initial
    before = [until]  # law of (state of t, count of the records before t)
    for t in range(steps - 1):
        before.append(transition.T @ charge(before[-1], t))
    onwards = np.zeros((k, most + 1))
    onwards[:, 0] = 1.0  # law of the count after t, given the state of t
    distance = np.abs(np.subtract.outer(np.arange(most + 1), np.arange(most + 1)))
    kernel = np.exp(-distance / scale)
    worst = 0.0
    for t in reversed(range(steps)):
        own = charge(before[t], t)
        laws = [np.convolve(own[x], onwards[x])[: most + 1] / own[x].sum() for x in range(k) if own[x].any()]
        logs = np.log(np.array([kernel @ law for law in laws]))
        worst = max(worst, float((logs.max(axis=0) - logs.min(axis=0)).max()))
        onwards = transition @ charge(onwards, t)
    return worst


# -- A lower confidence bound on the loss of real releases -----------------------------------------------------------

_SHARES = np.linspace(0, 1, 41)
"""Shares of the outputs below the thresholds that are tried."""


def sampled_loss(
    release: Callable[[list[int]], float],
    databases: Databases,
    record: int,
    secrets: tuple[int, int],
    rng: Any,
    *,
    trials: int = 2000,
    confidence: float = 0.999,
) -> float:
    """Return a number that the loss of a release exceeds, but for a small probability that this says too much.

    Parameters
    ----------
    release : callable
        Takes a database, as places of states, and returns one noisy number: the real release, noise and all.
    databases : Databases
        What θ can give.
    record, secrets : int, (int, int)
        The record, and two states that it can have.
    rng : numpy.random.Generator
        Draws the databases; the noise is the release's own.
    trials : int
        Releases in each of the two worlds.
    confidence : float
        Probability with which the loss is at least what is returned.
    """
    outputs = [_outputs(release, databases, record, secret, rng, trials) for secret in secrets]
    first, second = ([side[: trials // 2] for side in outputs], [side[trials // 2 :] for side in outputs])
    events = [
        (threshold, sign, worlds)
        for threshold in np.unique(np.quantile(np.concatenate(first), _SHARES, method="nearest"))
        for sign in (1, -1)
        for worlds in ((0, 1), (1, 0))
    ]
    best = max(events, key=lambda event: _guess(*_hits(first, *event)))
    (hits, n), (others, m) = ((int(np.sum(inside)), len(inside)) for inside in _hits(second, *best))
    each = (1 - confidence) / 2
    low, high = _least_share(hits, n, each), 1 - _least_share(m - others, m, each)
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def _hits(outputs: Sequence[Array], threshold: float, sign: int, worlds: tuple[int, int]) -> tuple[Any, Any]:
    """Return which outputs are in an event, in the one world and in the other."""
    one, other = (sign * outputs[world] >= sign * threshold for world in worlds)
    return one, other


def _guess(inside: Any, outside: Any) -> float:
    """Return about what the bound will be: frequencies less, or more, two standard deviations."""
    hits, others = int(np.sum(inside)), int(np.sum(outside))
    return (hits - 2 * math.sqrt(hits)) / (others + 2 * math.sqrt(others) + 3)


def _least_share(hits: int, n: int, error: float) -> float:
    """Return the Clopper-Pearson bound: the least p for which so many hits have at least the probability ``error``."""
    if hits == 0:
        return 0.0
    numbers = np.arange(hits, n + 1)
    ways = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in numbers.tolist()])
    low, high = 0.0, hits / n
    for _ in range(60):
        p = (low + high) / 2
        tail = 0.0 if p == 0 else float(np.exp(ways + numbers * math.log(p) + (n - numbers) * math.log1p(-p)).sum())
        low, high = (p, high) if tail < error else (low, p)
    return low


def _outputs(
    release: Callable[[list[int]], float], databases: Databases, record: int, secret: int, rng: Any, trials: int
) -> Array:
    own = np.flatnonzero(databases.rows[:, record] == secret)
    law = databases.weights[own] / databases.weights[own].sum()
    drawn = rng.choice(own, size=trials, p=law)
    return np.array([release(databases.rows[place].tolist()) for place in drawn])
