"""What a release says in words: warnings of its noise, what its promise assumes of the table, and its software.

The promise itself, and what is not promised, are in :mod:`pufferfish.mechanisms.words`.
"""

import importlib.metadata
import math
import platform
from functools import cache
from typing import Any

from pufferfish._base.words import at_most, change_of_odds, number
from pufferfish.data.rows import RowsBase
from pufferfish.data.sequences import Base
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.mechanism import MOST_EPSILON
from pufferfish.mechanisms.words import Booked, law_assumed, not_promised_of, promise_of
from pufferfish.theta.record import Checking

__all__ = [
    "assumed_of",
    "versions",
    "warnings_of",
    "words_of_measurement",
]

MOSTLY_SILENT = 0.9
"""A release is warned of whose noise is 0 at least so often."""

_SURE = 0.9999
"""A probability above this is written as being above it."""


def warnings_of(calibration: Calibration) -> list[str]:
    """Say what a reader must know first."""
    warnings, epsilon, strategy = list[str](), calibration.epsilon, calibration.strategy
    if epsilon > MOST_EPSILON:
        warnings.append(
            f"Epsilon is {at_most(epsilon)}: the odds of two values of a record can change by a factor of "
            f"{change_of_odds(epsilon)}, so the promise says little."
        )
    smallest_scale = (
        calibration.unit_scale if strategy is None else float(strategy.scales(calibration.unit_scale).min())
    )
    silent = 1 - 2 / (math.exp(min(1 / smallest_scale, 700)) + 1) if smallest_scale < 1 else 0.0
    if silent >= MOSTLY_SILENT:
        often, many = (number(silent), "most") if silent <= _SURE else (f"above {_SURE:g}", "nearly all")
        warnings.append(
            f"The noise is exactly 0 with probability {often}: {many} released values are the exact ones. A record is "
            "then hidden by what the others leave open under Θ, and hardly by noise."
        )
    return warnings


def assumed_of(base: Base | RowsBase | None, *, of_chains: bool) -> list[str]:
    """Say what a promise assumes of how its table was read; nothing of one database that was given as it is."""
    if base is None:
        return []
    if of_chains or isinstance(base, RowsBase):
        return list(base.assumptions)
    records = "How many records each of them has is public, and assumed independent of the states."
    return [base.assumptions[0], records]


def words_of_measurement(
    bound: InfluenceBound, epsilon: float, booked: Booked | None, checked: Checking | None
) -> dict[str, Any]:
    """Return what the record of a measurement says of its promise, given its place in a ledger."""
    return {
        "promise": promise_of(epsilon, 0.0, None, of_chains=True, networks=False, protection=bound.protection),
        "not_promised": not_promised_of(
            None, booked, kinds=bound.theta.kinds, composes=True, protection=bound.protection
        ),
        "assumptions": [
            law_assumed(bound.theta.in_words, bound.theta.origin, checked),
            "The measurement is as private as its own map says; this program did not check how it was built.",
        ],
    }


def versions() -> dict[str, str]:
    """Return the versions of what made a release."""
    names = ("pufferfish-privacy", "opendp", "narwhals", "numpy")
    return {name: _version(name) for name in names} | {"python": platform.python_version()}


@cache
def _version(name: str) -> str:
    """Return the version of an installed package: its file is read once, and not for every release."""
    return importlib.metadata.version(name)
