"""Divergences between one belief and one member of Θ, and how those of independent parts add up."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pufferfish._core.numbers.rounding import log_up, up

__all__ = ["OVER_BELIEF", "OVER_THETA", "SAME", "Distance", "Others", "larger", "log_largest"]

OVER_THETA = "belief over theta"
OVER_BELIEF = "theta over belief"


@dataclass(frozen=True, slots=True)
class Distance:
    """The largest divergence between one belief and one member of Θ, and what decides it."""

    value: float
    secret: str | None = None
    direction: str | None = None


SAME = Distance(0.0)


@dataclass(frozen=True, slots=True)
class Others:
    """Divergences of independent parts (chains, cliques) of which nothing is known, by what they are alike in."""

    whole: Mapping[Any, float]
    numbers: Mapping[Any, int]

    def plus(self, value: float, own_kind: Any) -> float:
        """Return the divergence of all parts together, when that of one part of its own kind has this value."""
        counts = {kind: number - (kind == own_kind) for kind, number in self.numbers.items()}
        rest = [up(self.whole[kind] * count) for kind, count in counts.items() if count]
        return up(math.fsum([value, *rest])) if rest else value


def larger(first: Distance | None, second: Distance) -> Distance:
    """Return the larger of two distances, the first where they are equal."""
    return second if first is None or second.value > first.value else first


def log_largest(pairs: Iterable[tuple[Fraction, Fraction]], totals: tuple[Any, Any] = (1, 1)) -> float:
    """Return the largest log ratio of pairs p, q, each divided by its total, over p > 0; inf where a q is 0."""
    largest = Fraction(0)
    for p, q in pairs:
        if p and not q:
            return math.inf
        if p:
            largest = max(largest, p / q)
    return max(0.0, log_up(largest * Fraction(totals[1]) / Fraction(totals[0])))
