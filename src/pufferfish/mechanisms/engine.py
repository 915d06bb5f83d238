"""Engines: what bounds the leakage of record losses under one kind of Θ, and the inverse.

An influence bound is what users see; an engine is what proves. Every bound has one for each kind of Θ that it covers
(the members of a class of chains, a continuum of chains, networks), and may ask those of other bounds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cached_property

from pufferfish._base.progress import Kept
from pufferfish._core.numbers.rounding import or_infinite
from pufferfish.mechanisms.witness import AnyWitness
from pufferfish.queries.record_loss import RecordLoss

__all__ = ["NO_NOISE", "Engine", "Fallback", "Found", "LeastOf", "Proportional", "least", "no_noise", "worst"]

NO_NOISE = 1e9
"""Nats: a loss by which next to nothing is hidden."""

_KEPT = 8
"""Leakages that an engine remembers: a noise is often verified right after it was found."""

Found = tuple[float, AnyWitness | None]
"""A leakage or a divisor, and where it is attained; no witness where there is no secret to protect."""


class Engine(ABC):
    """An upper bound, over every member of Θ, on what record losses leak; and its inverse."""

    @property
    def follows_steps(self) -> bool:
        """Whether it follows chains from record to record, as docs/proofs/transitions.md asks for a loss of steps."""
        return False

    def leakage(self, losses: RecordLoss, enough: float | None = None) -> Found:
        """Bound the leakage of losses, and say where it is attained; what was proved lately is known.

        Where ``enough`` is given and is a bound, it is worth a longer search to prove so much.
        """
        return self._proved.of((losses.key, enough), lambda: self.prove(losses, enough))

    @abstractmethod
    def prove(self, losses: RecordLoss, enough: float | None) -> Found:
        """Compute :meth:`leakage`: a number of nats, rounded up, and what decides.

        It is ``inf`` where no bound holds, and ``(0.0, None)`` where there is no secret. On chains ``decisive(losses)``
        yields those that can decide, and :func:`worst` takes the largest of what they leak. ``enough`` may be ignored.
        """

    def guesser(self) -> Callable[[RecordLoss], float]:
        """Return what says about how much losses leak, quickly: for one search, whose outcome is proved afterwards."""
        return lambda losses: self.leakage(losses)[0]

    @abstractmethod
    def divisors(self, losses: RecordLoss, epsilon: float) -> Iterable[Found]:
        """Yield numbers that divide the losses so that they leak at most epsilon, the least first.

        Another one is taken only where the one before cannot be verified.
        """

    @cached_property
    def _proved(self) -> Kept[Found]:
        return Kept(_KEPT)


class Proportional(Engine):
    """An engine whose leakage is in proportion to the losses."""

    def divisors(self, losses: RecordLoss, epsilon: float) -> Iterable[Found]:
        """Return the least number that divides the losses so that they leak at most epsilon."""
        total, witness = self.leakage(losses)
        return [(total / epsilon, witness)]


class Fallback(Engine):
    """A second bound over the same Θ, which can say quickly where it is no better."""

    @abstractmethod
    def proves_less(self, losses: RecordLoss, value: float, witness: AnyWitness | None, epsilon: float) -> bool:
        """Return whether it may prove less than a leakage (epsilon 0) or a divisor that was found elsewhere."""


class LeastOf(Engine):
    """The least of two bounds over the same Θ; the second is searched only where it may be less."""

    def __init__(self, first: Engine, second: Fallback) -> None:
        self._first, self._second = first, second

    @property
    def follows_steps(self) -> bool:
        """Whether both do."""
        return self._first.follows_steps and self._second.follows_steps

    def prove(self, losses: RecordLoss, enough: float | None) -> Found:
        """Bound the leakage of losses, and say where it is attained."""
        found = self._first.leakage(losses, enough)
        if not self._second.proves_less(losses, *found, 0.0):
            return found
        return least(found, self._second.leakage(losses, enough))

    def divisors(self, losses: RecordLoss, epsilon: float) -> Iterable[Found]:
        """Return numbers that divide the losses so that they leak at most epsilon, the least first."""
        found = list(self._first.divisors(losses, epsilon))
        if not self._second.proves_less(losses, *found[0], epsilon):
            return found
        return sorted((*found, *self._second.divisors(losses, epsilon)), key=_value)


def no_noise(losses: RecordLoss) -> float:
    """Return a divisor that leaves as good as no noise: the smallest loss, not only the largest, is a billion nats.

    The largest may be that of a state that cannot occur, or of a record that is no secret.
    """
    return losses.smallest / NO_NOISE


def worst(found: Iterable[Found]) -> Found:
    """Return the largest of several values, the first where they are equal; those without any secret do not count."""
    most: Found | None = None
    for computed, witness in found:
        value = or_infinite(computed)
        no_secret = witness is None and value == 0
        if not no_secret and (most is None or not value <= most[0]):
            most = value, witness
    return most or (0.0, None)


def least(*found: Found) -> Found:
    """Return the least of several bounds on the same thing."""
    return min(found, key=_value)


def _value(found: Found) -> float:
    return found[0]
