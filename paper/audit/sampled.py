"""A lower confidence bound on the loss of real releases: one secret against the other, by sampling.

Databases are drawn from θ given that a record has one value, and given that it has another; each is released for
real. The event that tells the two worlds apart best is chosen on the first half of the outputs, and tested on the
second: there its two frequencies have Clopper-Pearson bounds, and the true loss exceeds the logarithm of their ratio.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from paper.audit.losses import Array, Databases

__all__ = ["sampled_loss"]

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
