"""What follows from a release of transitions: it uses nothing but noisy counts and public numbers, so it is free.

Noise leaves counts that are negative, do not add up to the public number of steps, and say that a state is entered more
often than it is left. So the nearest table is taken, in Euclidean distance, whose counts are not negative, have that
total, and enter each state as often as they leave it: what the counts of a long series do but for its ends, and the
counts that a stationary chain expects do exactly. A histogram, a chain and synthetic series of one table agree.

Synthetic series are drawn after the release, so here, unlike for noise, a seed does no harm. Nothing that draws noise
imports this file.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import whole_at_least
from pufferfish.errors import ParameterError, QueryError
from pufferfish.queries import Switches, Transitions
from pufferfish.release.record import ReleaseFields
from pufferfish.theta.markov_chain import MarkovChain

Array = NDArray[np.float64]

_SMOOTHED = 0.5
"""Steps that are added to every count of a fitted chain: no transition is impossible because noise hid it."""

_MOST_ROUNDS = 200
"""Rounds of Newton's method, after which the table is taken as it is then."""

_MOST_DRAWN = 10**8
"""Records of all synthetic series together."""

_BALANCED = 1e-9
"""How far, as a share of the total, a state may be entered more often than it is left."""


class FromTransitions:
    """What follows from a release of transitions, for nothing but noisy counts and public numbers: it is free.

    The nearest counts are taken that are not negative, add up to the number of steps, and enter each state as often as
    they leave it. A ``QueryError`` of releases of other queries.
    """

    __slots__ = ()

    def histogram(self: Any) -> dict[str, float]:
        """Return the share of records in each state."""
        table = _table(self)
        return _by_state(self, table.sum(axis=1) / table.sum())

    def chain(self: Any) -> MarkovChain:
        """Return a fitted, stationary chain.

        Half a step is added to each count, so that no transition is impossible because noise hid it. Noise for other
        releases of the same records must not be calibrated to it alone: the chain says what the records are like, not
        what an adversary may believe.
        """
        return _smoothed(_table(self), self.theta.states)

    def dwell_times(self: Any) -> dict[str, float]:
        """Return how many records in a row each state lasts in the mean, under the fitted chain."""
        return _by_state(self, 1 / (1 - np.diag(self.chain().transition_matrix)))

    def switches(self: Any) -> float:
        """Return how many steps change the state, also of a release of switches."""
        if self.query.kind in Switches.kinds:
            return min(max(float(round(_noisy_counts(self)[0])), 0.0), float(self.data.steps or 0))
        table = _table(self)
        total = float(table.sum())
        # without the last digits, which only say where a search for the nearest table ended
        return round(float(total - np.trace(table)), max(0, 8 - math.ceil(math.log10(max(total, 1.0)))))

    def synthetic(self: Any, length: int, series: int | None = None, *, seed: int | None = None) -> list[Any]:
        """Return a synthetic series of states, drawn from the fitted chain; it costs no privacy.

        Parameters
        ----------
        length : int
            Records of the series.
        series : int, optional
            How many series; by default one, which is returned by itself.
        seed : int, optional
            The same seed gives the same series. It has nothing to do with the noise of the release, which was drawn
            before, and which nothing can seed.
        """
        records = whole_at_least(length, "length", 1)
        count = 1 if series is None else whole_at_least(series, "series", 1)
        if records * count > _MOST_DRAWN:
            raise ParameterError(
                f"{count} series of {records:,} records are more than {_MOST_DRAWN:,} records: ask for fewer"
            )
        generator = np.random.default_rng(None if seed is None else whole_at_least(seed, "seed", 0, ", or None"))
        chain = self.chain()
        # sums but the last one, which is 1 but for rounding: no number that is drawn may be above it
        after: list[list[float]] = np.cumsum(chain.transition_matrix, axis=1)[:, :-1].tolist()
        first: list[float] = np.cumsum(chain.stationary_distribution)[:-1].tolist()
        all_series = [_walk(generator.random(records).tolist(), first, after, chain.states) for _ in range(count)]
        return all_series[0] if series is None else all_series


def _walk(numbers: Sequence[float], first: list[float], after: list[list[float]], states: Sequence[str]) -> list[str]:
    """Return a series from numbers between 0 and 1."""
    sums, visited = first, list[str]()
    for number in numbers:
        state = bisect_right(sums, number)
        visited.append(states[state])
        sums = after[state]
    return visited


def chain_of_counts(counts: Array, total: int, states: Sequence[str]) -> MarkovChain:
    """Return the chain that noisy counts of transitions, (k, k), point to; ``total`` is how many there are."""
    return _smoothed(nearest_balanced(counts, float(total)), states)


def _smoothed(table: Array, states: Sequence[str]) -> MarkovChain:
    table = table + _SMOOTHED
    return MarkovChain(table / table.sum(axis=1, keepdims=True), states=states)


def _table(record: ReleaseFields) -> Array:
    """Return the nearest possible counts, rows = from."""
    if record.query.kind not in Transitions.kinds:
        raise QueryError(
            f"this follows from a release of transitions, and this one is of {record.query.kind}: "
            "release(data, Transitions(), calibration)"
        )
    total, k = record.data.steps or 0, len(record.theta.states)
    if not total:
        raise QueryError("the data have no two records that follow each other: there are no transitions to count")
    return nearest_balanced(_noisy_counts(record).reshape(k, k), float(total))


def _noisy_counts(record: ReleaseFields) -> Array:
    """Return the noisy number of steps of each output; of groups those of all together."""
    noisy = np.array(record.noisy_values).reshape(-1, len(record.query.labels)) / record.noise.unit
    divided_by = None if record.groups is None else record.groups.divided_by
    return noisy.sum(axis=0) if divided_by is None else np.array(divided_by) @ noisy


def nearest_balanced(counts: Array, total: float) -> Array:
    """Return the nearest table (k, k), in Euclidean distance, that is non-negative, balanced, and has a total above 0.

    It is max(counts − t − u_x + u_y, 0) for the t and u at which rows sum to what columns sum to, and all of it to the
    total: Newton's method on the dual problem, which is concave and piecewise quadratic.

    Examples
    --------
    >>> nearest_balanced(np.array([[6.0, 3.0], [1.0, -2.0]]), 8.0).round(6)
    array([[5.333333, 1.333333],
           [1.333333, 0.      ]])
    """
    k = len(counts)
    # one constraint for the total, one for each state but the first: the last one follows from the others
    states, constraints = np.arange(1, k), np.zeros((k, k, k))
    constraints[0] = 1.0
    constraints[states, states, :] += 1.0
    constraints[states, :, states] -= 1.0
    constraints = constraints.reshape(k, k * k)
    goal = np.eye(k)[0]
    shares, multipliers = counts.ravel() / total, np.zeros(k)

    def evaluate(values: Array) -> tuple[Array, float]:
        table = np.maximum(shares - values @ constraints, 0.0)
        return table, 0.5 * float(table @ table) + float(values @ goal)

    table, height = evaluate(multipliers)
    for _ in range(_MOST_ROUNDS):
        slope = goal - constraints @ table
        if float(np.max(np.abs(slope))) <= _BALANCED:
            break
        active = constraints[:, table > 0]
        step = np.linalg.solve(active @ active.T + 1e-9 * np.eye(k), slope)
        size = 1.0
        while True:
            trial_table, trial_height = evaluate(multipliers - size * step)
            if trial_height <= height - 1e-4 * size * float(step @ slope) or size < 1e-8:
                break
            size /= 2
        multipliers, table, height = multipliers - size * step, trial_table, trial_height
    summed = float(table.sum())
    return (table * (total / summed) if summed > 0 else np.full(k * k, total / (k * k))).reshape(k, k)


def _by_state(record: ReleaseFields, values: Array) -> dict[str, float]:
    return dict(zip(record.theta.states, (float(v) for v in values), strict=True))
