"""What an influence bound needs to cover a class of chains that is a continuum."""

from collections.abc import Sequence
from typing import Protocol

from pufferfish.calibration import Witness
from pufferfish.mechanisms.losses import Losses

__all__ = ["Continuum", "LeastOf"]


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


class LeastOf:
    """The least of several bounds over the same continuum."""

    def __init__(self, *bounds: Continuum) -> None:
        self._bounds = bounds

    def leakage(self, losses: Sequence[Losses], enough: float | None = None) -> tuple[float, Witness | None]:
        """Bound the leakage of the losses of chains, and say where it is attained."""
        return min((bound.leakage(losses, enough) for bound in self._bounds), key=_value)

    def divisors(self, losses: Sequence[Losses], epsilon: float) -> list[tuple[float, Witness | None]]:
        """Return the numbers of all bounds, the least first."""
        return sorted((found for bound in self._bounds for found in bound.divisors(losses, epsilon)), key=_value)


def _value(found: tuple[float, Witness | None]) -> float:
    return found[0]
