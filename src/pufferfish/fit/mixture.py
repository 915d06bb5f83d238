"""Stays in one state as a mixture of geometric ones, from how long they were seen to last.

A stay has n records with probability Σ_i a_i s_i^{n−1} (1 − s_i), and at least n with Σ_i a_i s_i^{n−1}, by shares a_i
and probabilities s_i to go on. Stays that a gap cuts off lasted at least as long as was seen; those whose beginning was
not seen are left out. Expectation and maximisation start from several divisions of the stays by length, for there are
several optima, and the likeliest is taken.
"""

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.compiled import Loop
from pufferfish.data.groups import Runs

Array = NDArray[np.float64]

_SPLITS = (0.3, 0.5, 0.7, 0.85, 0.95, 0.99)  # shares of the shortest stays at which a start divides them
_LEAST_EXITS = 0.5  # a kind of which fewer ends were seen is none of its own: it may last for ever

_MOST_ROUNDS = 2000
_SETTLED = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class StaysSeen:
    """Stays of one state whose beginning was seen: how many ended after so many records, or were cut off then."""

    lasted: Array
    ended: Array
    cut: Array

    @classmethod
    def of(cls, runs: Runs, which: NDArray[np.bool_]) -> Self:
        """Return those of some runs of one state."""
        counts = runs.stays(which)
        most = max(map(len, counts))
        ended, cut = (np.pad(count, (0, most - len(count))).astype(np.float64) for count in counts)
        lasted = np.flatnonzero(ended + cut)
        return cls(lasted.astype(np.float64), ended[lasted], cut[lasted])


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Kinds of stay in one state: their shares of all stays, and probabilities to go on for a step."""

    shares: Array
    keeps: Array

    @property
    def means(self) -> Array:
        """How many records stays of each kind last in the mean."""
        return 1 / (1 - self.keeps)

    @property
    def kinds(self) -> list[tuple[float, float]]:
        """Share and probability of each kind, from the shortest stays on."""
        return [(float(self.shares[i]), float(self.keeps[i])) for i in np.argsort(self.keeps, kind="stable")]

    def scores(self, lasted: Array, ended: NDArray[np.bool_] | bool) -> Array:
        """Return the log likelihood of stays that ended after so many records, or were cut off."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_keep, log_end = np.log(self.keeps), np.log1p(-self.keeps)
            beyond = np.where(lasted[:, None] > 1, (lasted[:, None] - 1) * log_keep, 0.0)
        at_least = np.log(self.shares) + beyond  # by length and kind: of that kind, and so long at least
        return np.where(ended, np.logaddexp.reduce(at_least + log_end, axis=1), np.logaddexp.reduce(at_least, axis=1))

    def likelihood(self, stays: StaysSeen) -> float:
        """Return the log likelihood of all stays."""
        return sum(
            float((count[count > 0] * self.scores(stays.lasted, ended)[count > 0]).sum())
            for count, ended in ((stays.ended, True), (stays.cut, False))
        )


def fit_mixture(stays: StaysSeen, kinds: int, start: Mixture | None = None) -> Mixture:
    """Return the likeliest mixture of so many kinds, fewer where one has no stay that ended, from a start if given."""
    if not stays.ended.sum():  # how they end is not known: half a stay of one record, which ends
        stays = StaysSeen(np.array([1.0, *stays.lasted]), np.array([0.5, *stays.ended]), np.array([0.0, *stays.cut]))
    best: tuple[float, Mixture] | None = None
    for first in _divisions(stays, kinds) if start is None else [start]:
        mixture, exits = climbed(stays, first, first, 0.0)
        if np.all(exits >= _LEAST_EXITS):
            likelihood = mixture.likelihood(stays)
            if best is None or likelihood > best[0]:
                best = likelihood, mixture
    if best is None:
        return fit_mixture(stays, kinds if start is not None else kinds - 1)
    return best[1]


def climbed(stays: StaysSeen, start: Mixture, prior: Mixture, weight: float) -> tuple[Mixture, Array]:
    """Return where expectation and maximisation lead, so many stays of a prior added, and how many of each ended."""
    shares, keeps, exits = start.shares.copy(), start.keeps.copy(), np.zeros(len(start.shares))
    added = weight * prior.shares
    seen = stays.lasted, stays.ended, stays.cut
    _CLIMB(64 * stays.lasted.size * shares.size, *seen, added, added * (prior.means - 1), shares, keeps, exits)
    return Mixture(shares, keeps), exits


def climb_to_mixture(
    lasted: Any, ended: Any, cut: Any, added: Any, added_kept: Any, shares: Any, keeps: Any, exits: Any
) -> None:
    """Take steps of expectation and maximisation until the likelihood settles; plain, for numba.

    So many stays ``ended`` after so many records, or were ``cut`` off then; ``added`` stays of each kind went on for
    ``added_kept`` steps. ``shares`` and ``keeps``, the mixture, change in place: they are left as they are where a kind
    has no stays, or none that ended. ``exits``, how many stays of each kind ended, is written: 0 where a kind has none.
    """
    kinds, before = shares.shape[0], -np.inf
    log_share, log_keep, log_end = np.empty(kinds), np.empty(kinds), np.empty(kinds)
    logs, stays, kept = np.empty(kinds), np.empty(kinds), np.empty(kinds)
    for _ in range(_MOST_ROUNDS):
        for i in range(kinds):
            log_share[i] = math.log(shares[i])
            log_keep[i] = math.log(keeps[i]) if keeps[i] > 0 else -np.inf
            log_end[i] = math.log1p(-keeps[i]) if keeps[i] < 1 else -np.inf
            exits[i], stays[i], kept[i] = added[i], added[i], added_kept[i]
        likelihood = 0.0
        for n in range(lasted.shape[0]):
            beyond = lasted[n] - 1
            for ends in range(2):
                count = ended[n] if ends else cut[n]
                if not count > 0:
                    continue
                top, total = -np.inf, 0.0
                for i in range(kinds):
                    on = beyond * log_keep[i] if beyond > 0 else 0.0
                    logs[i] = log_share[i] + on + (log_end[i] if ends else 0.0)
                    top = max(top, logs[i])
                for i in range(kinds):
                    logs[i] = math.exp(logs[i] - top)
                    total += logs[i]
                likelihood += count * (top + math.log(total))
                for i in range(kinds):  # how much of these stays is of each kind
                    part = count * logs[i] / total
                    stays[i] += part
                    kept[i] += part * beyond
                    exits[i] += part if ends else 0.0
        every = 0.0
        for i in range(kinds):
            if not stays[i] > 0 or not exits[i] > 0:
                exits[:] = 0.0
                return
            every += stays[i]
        for i in range(kinds):
            shares[i], keeps[i] = stays[i] / every, kept[i] / (kept[i] + exits[i])
        if abs(likelihood - before) <= _SETTLED * max(abs(likelihood), 1.0):
            return
        before = likelihood


def _divisions(stays: StaysSeen, kinds: int) -> list[Mixture]:
    """Return mixtures to begin with: stays divided by length, at several shares of all of them."""
    count = stays.ended + stays.cut
    starts = list[Mixture]()
    for splits in combinations(_SPLITS, kinds - 1):
        place = np.searchsorted(splits, (np.cumsum(count) - count / 2) / count.sum())
        each = [place == i for i in range(kinds)]
        if all(count[of_kind].sum() > 0 for of_kind in each):
            shares = np.array([count[of_kind].sum() for of_kind in each]) / count.sum()
            means = np.array([(count * stays.lasted)[of_kind].sum() / count[of_kind].sum() for of_kind in each])
            starts.append(Mixture(shares, 1 - 1 / np.maximum(means, 1 + 1e-3)))
    return starts


_CLIMB = Loop(climb_to_mixture)
