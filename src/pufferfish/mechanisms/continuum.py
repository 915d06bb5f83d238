"""What an influence bound needs to cover a class of chains that is a continuum."""

from collections.abc import Sequence
from typing import Protocol

from pufferfish.calibration import Witness
from pufferfish.mechanisms.losses import Losses

__all__ = ["Continuum", "Fallback", "LeastOf"]


class Continuum(Protocol):
    """An upper bound, over every member of a continuum, on what record-level losses leak; and its inverse."""

    def leakage(self, losses: Sequence[Losses], enough: float | None = None) -> tuple[float, Witness | None]:
        """Bound the leakage of the losses of chains, one entry per chain, and say where it is attained.

        Where ``enough`` is given and is a bound, it is worth a longer search to prove so much.
        """
        ...

    def divisors(self, losses: Sequence[Losses], epsilon: float) -> list[tuple[float, Witness | None]]:
        """Return numbers that divide the losses so that they leak at most epsilon, the least first."""
        ...


class Fallback(Continuum, Protocol):
    """A second bound over the same continuum, which can say quickly where it is no better."""

    def proves_less(self, losses: Sequence[Losses], value: float, witness: Witness | None, epsilon: float) -> bool:
        """Return whether it may prove less than a leakage (epsilon 0) or a divisor that was found elsewhere."""
        ...


class LeastOf:
    """The least of two bounds over the same continuum; the second is searched only where it may be less."""

    def __init__(self, first: Continuum, second: Fallback) -> None:
        self._first, self._second = first, second

    def leakage(self, losses: Sequence[Losses], enough: float | None = None) -> tuple[float, Witness | None]:
        """Bound the leakage of the losses of chains, and say where it is attained."""
        found = self._first.leakage(losses, enough)
        if not self._second.proves_less(losses, *found, 0.0):
            return found
        return min(found, self._second.leakage(losses, enough), key=_value)

    def divisors(self, losses: Sequence[Losses], epsilon: float) -> list[tuple[float, Witness | None]]:
        """Return numbers that divide the losses so that they leak at most epsilon, the least first."""
        found = self._first.divisors(losses, epsilon)
        if not self._second.proves_less(losses, *found[0], epsilon):
            return found
        return sorted((*found, *self._second.divisors(losses, epsilon)), key=_value)


def _value(found: tuple[float, Witness | None]) -> float:
    return found[0]
