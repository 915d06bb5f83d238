"""Synthetic series from a release of transitions.

They are drawn after the release, from noisy counts and public numbers alone, so they cost no privacy whoever knows how
they were drawn: here, unlike for noise, a seed does no harm. Nothing that draws noise imports this file.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from pufferfish._base.checked import whole_at_least
from pufferfish.errors import ParameterError
from pufferfish.release.record import ReleaseFields
from pufferfish.release.steps import fitted_chain

_MOST_DRAWN = 10**8
"""Records of all synthetic series together."""


def synthetic_series(record: ReleaseFields, length: Any, series: Any, seed: Any) -> list[Any]:
    """Return one series of the fitted chain, or a list of several."""
    records, count = whole_at_least(length, "length", 1), 1 if series is None else whole_at_least(series, "series", 1)
    if records * count > _MOST_DRAWN:
        raise ParameterError(
            f"{count} series of {records:,} records are more than {_MOST_DRAWN:,} records: ask for fewer"
        )
    generator = np.random.default_rng(None if seed is None else whole_at_least(seed, "seed", 0, ", or None"))
    chain = fitted_chain(record)
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
