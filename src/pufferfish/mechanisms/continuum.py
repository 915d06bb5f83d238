"""What an influence bound needs to cover a class of chains that is a continuum."""

from collections.abc import Sequence
from typing import Protocol

from pufferfish.calibration import Witness
from pufferfish.mechanisms.losses import Losses

__all__ = ["Continuum"]


class Continuum(Protocol):
    """An upper bound, over every member of a continuum, on what record-level losses leak; and its inverse."""

    def leakage(self, losses: Sequence[Losses], enough: float | None = None) -> tuple[float, Witness | None]:
        """Bound the leakage of the losses of chains, one entry per chain, and say where it is attained.

        Where ``enough`` is given and is a bound, it is worth a longer search to prove that much.
        """
        ...

    def least_divisor(self, losses: Sequence[Losses], epsilon: float) -> tuple[float, Witness | None]:
        """Return a number that divides the losses so that they leak at most epsilon, the least that is known."""
        ...
