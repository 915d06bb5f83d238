"""What may be done to noisy values, and the quantiles of a noisy distribution.

Both use nothing but noisy values and public numbers, so they cost no privacy. A release holds the public numbers too,
so that whoever reads it can do the same again, and does (:mod:`pufferfish.release.check`).
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pufferfish._base.frozen import FrozenRecord

# -- What may be done to a noisy value -------------------------------------------------------------------------------
#
# Each class is what a record says was done; its ``of`` raises a ValueError where the record says what cannot be.


class Projected(FrozenRecord, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="projected"):
    """Outputs at some places are numbers that are not negative and have a public total: the nearest such were taken."""

    outputs: list[list[int]]
    totals: list[float]

    def __str__(self) -> str:
        if len(self.totals) == 1:
            return f"projected to the nearest non-negative vector of total {self.totals[0]:g}"
        return "projected, column by column, to the nearest non-negative counts of its total"

    def of(self, noisy: list[float]) -> list[float]:
        """Return the nearest possible values."""
        places = [place for block in self.outputs for place in block]
        distinct = len(set(places)) == len(places) and all(0 <= place < len(noisy) for place in places)
        if not distinct or not all(self.outputs) or len(self.outputs) != len(self.totals):
            raise ValueError("postprocessing names outputs that are not there, or one of them twice")
        if not all(0 <= total < math.inf for total in self.totals):
            raise ValueError("postprocessing has a total that is negative")
        values = np.array(noisy)
        for block, total in zip(self.outputs, self.totals, strict=True):
            values[list(block)] = project_to_simplex(values[list(block)], total)
        return [float(v) for v in values]


def _within(noisy: Sequence[float], outputs: int, low: Sequence[float], high: Sequence[float]) -> list[float]:
    """Return values inside the range of their group: what is outside goes to its nearer end."""
    if outputs < 1 or not len(noisy) == outputs * len(low) == outputs * len(high):
        raise ValueError("postprocessing has not one range for each group")
    if not all(first <= last for first, last in zip(low, high, strict=True)):
        raise ValueError("postprocessing has a range whose low end is above its high end")
    return [min(max(v, low[i // outputs]), high[i // outputs]) for i, v in enumerate(noisy)]


class Clipped(FrozenRecord, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="clipped"):
    """Every output lies in a public range: what was outside went to its nearer end."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"clipped to the possible range {self.low:g} to {self.high:g}"

    def of(self, noisy: list[float]) -> list[float]:
        """Return the values inside the range."""
        return _within(noisy, len(noisy), [self.low], [self.high])


class Ascending(FrozenRecord, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="ascending"):
    """Outputs never fall from one to the next, and lie in a public range: the nearest such were taken."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"made ascending, within {self.low:g} to {self.high:g}"

    def of(self, noisy: list[float]) -> list[float]:
        """Return the nearest ascending values inside the range."""
        return _within(ascending(noisy), len(noisy), [self.low], [self.high])


class ClippedByGroup(FrozenRecord, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="clipped-by-group"):
    """So many ``outputs`` of every group lie in a public range of its own: what was outside went to its nearer end."""

    outputs: int
    low: list[float]
    high: list[float]

    def __str__(self) -> str:
        return "clipped, group by group, to the possible range"

    def of(self, noisy: list[float]) -> list[float]:
        """Return the values inside the ranges."""
        return _within(noisy, self.outputs, self.low, self.high)


class AscendingByGroup(
    ClippedByGroup, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="ascending-by-group"
):
    """The outputs of every group never fall from one to the next, and lie in its range: the nearest such were taken."""

    def __str__(self) -> str:
        return "made ascending, group by group, within the possible range"

    def of(self, noisy: list[float]) -> list[float]:
        """Return the nearest ascending values inside the ranges."""
        m = max(self.outputs, 1)
        return super().of([v for start in range(0, len(noisy), m) for v in ascending(noisy[start : start + m])])


class BySubject(FrozenRecord, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="by-subject"):
    """The values of each subject were made the nearest that are possible for so many records as it has.

    ``projected``: its outputs are numbers that are not negative and have a total, one for each record. Else they lie
    between so many times ``low`` and ``high``, the least and the largest value of one record.
    """

    projected: bool
    low: float
    high: float

    def __str__(self) -> str:
        return f"{'projected' if self.projected else 'clipped'} to possible values"

    def of(self, noisy: NDArray[np.float64], records: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the nearest possible values; both of shape (subjects, outputs).

        ``records`` are those of each subject, or 1 where values are divided by their number.
        """
        if self.projected:
            return _projected(noisy, records.astype(np.float64))
        low, high = (end * records[:, None] for end in (self.low, self.high))
        return np.asarray(np.clip(noisy, low, high), dtype=np.float64)


InRecord = Projected | Clipped | ClippedByGroup | Ascending | AscendingByGroup
"""What may be done to values that stand in the record."""

PostProcessing = InRecord | BySubject


def ascending(values: Sequence[float]) -> list[float]:
    """Return the nearest numbers, in Euclidean distance, that never fall: neighbours that do are pooled to their mean.

    Examples
    --------
    >>> ascending([1.0, 3.0, 2.0, 4.0])
    [1.0, 2.5, 2.5, 4.0]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        total, count = value, 1
        while pools and pools[-1][0] * count >= total * pools[-1][1]:
            last = pools.pop()
            total, count = total + last[0], count + last[1]
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]


def project_to_simplex(values: NDArray[np.float64], total: float = 1.0) -> NDArray[np.float64]:
    """Return the nearest vector, in Euclidean distance, that is non-negative and has the given sum.

    It is ``max(values − t, 0)``, of shape (m,), for the one t that gives the sum, at least 0.

    Examples
    --------
    >>> project_to_simplex(np.array([0.7, 0.5, -0.1]))
    array([0.6, 0.4, 0. ])
    """
    return _projected(values[None], np.array([total]))[0] if total > 0 else np.zeros(values.size)


def _projected(values: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Do for each row of (n, m), with its total above 0, what :func:`project_to_simplex` does."""
    with np.errstate(over="ignore", invalid="ignore"):  # a record may say any numbers
        # the same vector is nearest, and a total is never lost beside large values
        values = np.asarray(values - values.max(axis=1, keepdims=True), dtype=np.float64)
        # what is farther below the largest than the total is 0 in any case
        values = np.maximum(values, -2 * totals[:, None])
        falling = np.sort(values, axis=1)[:, ::-1]
        thresholds = (np.cumsum(falling, axis=1) - totals[:, None]) / np.arange(1, values.shape[1] + 1)
        last = values.shape[1] - 1 - np.argmax((falling > thresholds)[:, ::-1], axis=1)
        return np.maximum(values - np.take_along_axis(thresholds, last[:, None], axis=1), 0.0)


# -- Quantiles of a cumulative distribution with noise ---------------------------------------------------------------

_ROUNDED = 1e-9
"""By how much, as a share of the records, sums of doubles may be off; intervals are wider by it."""


class QuantileRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The state up to which a share of the records is; with 95% probability it is from ``low`` to ``high``.

    Where states are bins of a number ``value`` is where in its bin the share is reached, if values lie evenly there.
    With the same probability the exact quantile lies ``between`` the outer edges of the bins from ``low`` to ``high``.
    """

    share: float
    state: str
    low: str
    high: str
    value: float | None = None
    between: tuple[float, float] | None = None


def quantiles_of(
    shares: Sequence[float],
    noisy: Sequence[float],
    errors: NDArray[np.float64],
    states: Sequence[str],
    total: float,
    edges: Sequence[float] | None = None,
) -> list[QuantileRecord]:
    """Return quantiles with their intervals, which hold together with the probability that the errors do.

    The quantile of a share q is the first state up to which at least q of the records are. While every value is within
    its error of the exact one, no state before the first whose value plus its error reaches q can be the quantile, and
    the quantile is no later than the first whose value less its error reaches q: whatever shares are asked for.

    ``noisy`` are the values up to each state but the last, ``errors`` what they are all within, ``total`` the value up
    to the last state, which is public, and ``edges`` those of the bins that states are, one more than there are states.

    Examples
    --------
    >>> edges = [0, 10, 20, 30, 40]
    >>> (found,) = quantiles_of([0.5], [0.2, 0.45, 0.9], np.full(3, 0.1), ["a", "b", "c", "d"], 1.0, edges)
    >>> (found.state, found.low, found.high), round(found.value, 2), found.between
    (('c', 'b', 'c'), 21.11, (10.0, 30.0))
    """
    middle = [*ascending(noisy), math.inf]
    upper = [*(np.array(noisy) + errors + _ROUNDED * total), math.inf]
    lower = [*(np.array(noisy) - errors - _ROUNDED * total), math.inf]
    quantiles: list[QuantileRecord] = []
    for share in shares:
        state, low, high = (
            next(x for x, value in enumerate(values) if value >= share * total) for values in (middle, upper, lower)
        )
        found = QuantileRecord(share, states[state], states[low], states[high])
        if edges is not None:
            before, after = (middle[state - 1] if state else 0.0), min(middle[state], total)
            within = (share * total - before) / (after - before) if after > before else 0.0
            value = float(edges[state]) + min(max(within, 0.0), 1.0) * (float(edges[state + 1]) - float(edges[state]))
            found = replace(found, value=value, between=(float(edges[low]), float(edges[high + 1])))
        quantiles.append(found)
    return quantiles
