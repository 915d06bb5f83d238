"""Record-level losses of a release, chain by chain: what a bound is asked about.

A record's loss says how far the release's density can change when that record alone goes from state x to x', in
nats: one number for all pairs, or a (k, k) matrix. Losses are constant on stretches of a chain; a stretch that a
query does not read costs 0.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.core.numbers.given import real_array, whole_number
from pufferfish.core.numbers.read_only import ReadOnly, read_only
from pufferfish.errors import ParameterError
from pufferfish.models.lengths import ChainLength

__all__ = ["ChainLosses", "Losses", "Profile", "as_losses", "decisive"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Profile(ReadOnly):
    """Losses that are constant on stretches of a chain; for long chains, where an array per step would be too large.

    Parameters
    ----------
    stretches : sequence of (int, float or array_like)
        Number of steps and their loss, from the first step of the chain to the last: a number, or shape (k, k).

    Examples
    --------
    A query that reads the second of three days, minute by minute:

    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.99, 0.01], [0.02, 0.98]])
    >>> day = pf.Profile([(1440, 0.0), (1440, 0.01), (1440, 0.0)])
    >>> round(pf.LeakagePropagation(chain, length=3 * 1440).leakage(day), 3)
    0.683
    """

    stretches: Sequence[tuple[int, Any]]

    def __post_init__(self) -> None:
        try:
            kept = tuple((whole_number(steps), _kept(loss)) for steps, loss in self.stretches)
        except (TypeError, ValueError) as error:
            if isinstance(error, ParameterError):
                raise
            raise ParameterError("stretches is no profile: expected pairs (whole number of steps, loss)") from None
        object.__setattr__(self, "stretches", kept)


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Record-level losses of one chain.

    Parameters
    ----------
    length : ChainLength
        The chain they belong to.
    steps : (n,) ndarray of int
        Lengths of the n stretches with the same loss; they add up to the steps of the chain.
    values : (n,) or (n, k, k) ndarray
        Loss of each record of a stretch.
    of_observed : bool
        Whether they are losses of observed records only, which may be anywhere in the chain: as many as it has count.
    """

    length: ChainLength
    steps: NDArray[np.int64]
    values: Vector
    of_observed: bool

    @classmethod
    def same_for_all(cls, length: ChainLength, value: Vector) -> "Losses":
        """Return one loss, shape () or (k, k), for all observed records."""
        return cls(length, np.array([length.steps]), value[None], True)

    @property
    def largest(self) -> Vector:
        """Largest loss over pairs of states, of each stretch; shape (n,)."""
        return self.values.max(axis=(-2, -1)) if self.values.ndim == 3 else self.values

    @property
    def per_record(self) -> Vector:
        """Largest loss over pairs of states: shape () where all records have the same loss, else one per step."""
        largest = self.largest
        return largest[0] if len(largest) == 1 else np.repeat(largest, self.steps)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells these losses from others of the same chains."""
        return (self.length, self.of_observed, self.steps.tobytes(), self.values.shape, self.values.tobytes())

    def divided(self, divisor: float) -> "Losses":
        """Return the losses of the same release with ``divisor`` times the noise, rounded up."""
        values = np.where(self.values > 0, np.nextafter(self.values / divisor, np.inf), 0.0)
        return Losses(self.length, self.steps, values, self.of_observed)


@dataclass(frozen=True, slots=True, eq=False)
class ChainLosses:
    """Record-level losses of independent chains: a :class:`~pufferfish.mechanisms.engine.RecordLoss`.

    Parameters
    ----------
    chains : tuple of Losses
        One entry per chain.
    """

    chains: tuple[Losses, ...]

    def __iter__(self) -> Iterator[Losses]:
        return iter(self.chains)

    @property
    def largest(self) -> float:
        """Largest loss of any record over pairs of states."""
        return max(float(chain.largest.max()) for chain in self._different)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells these losses from others."""
        return tuple(chain.key for chain in self.chains)

    def divided(self, divisor: float) -> "ChainLosses":
        """Return the losses of the same release with ``divisor`` times the noise, rounded up.

        Chains that share their losses share these too.
        """
        found = {id(chain): chain.divided(divisor) for chain in self._different}
        return ChainLosses(tuple(found[id(chain)] for chain in self.chains))

    @property
    def _different(self) -> list[Losses]:
        return list({id(chain): chain for chain in self.chains}.values())


def decisive(losses: Iterable[Losses]) -> Iterator[Losses]:
    """Yield the chains that can decide: of equal ones one, of those with one loss for all records the longest.

    A chain of no more steps and no more observed records is another one with some of its losses left out, and less
    loss never leaks more.
    """
    uniform: dict[bytes, list[Losses]] = {}
    seen: set[tuple[object, ...]] = set()
    for chain in {id(chain): chain for chain in losses}.values():
        if chain.of_observed:
            uniform.setdefault(chain.values.tobytes(), []).append(chain)
        elif chain.key not in seen:
            seen.add(chain.key)
            yield chain
    for chains in uniform.values():
        records = 0
        for chain in sorted(chains, key=lambda c: (c.length.steps, c.length.records), reverse=True):
            if chain.length.records > records:
                records = chain.length.records
                yield chain


def as_losses(record_loss: Any, length: Sequence[ChainLength], k: int) -> ChainLosses:
    """Return the losses of every chain, checked; a list or tuple has one entry per chain where there are several.

    Raises
    ------
    ParameterError
        If a loss is negative or not finite, or a shape does not fit.
    """
    if isinstance(record_loss, list | tuple) and len(length) > 1:
        entries: list[Any] = list(record_loss)  # pyright: ignore[reportUnknownArgumentType]
        if len(entries) != len(length):
            raise ParameterError(f"record_loss has {len(entries)} entries, expected {len(length)}: one per chain")
        return ChainLosses(
            tuple(
                _one(entry, chain, k, f"record_loss[{c}]")
                for c, (entry, chain) in enumerate(zip(entries, length, strict=True))
            )
        )
    if isinstance(record_loss, list) and len(length) == 1 and len(record_loss) == 1:  # pyright: ignore[reportUnknownArgumentType]
        record_loss = record_loss[0]  # pyright: ignore[reportUnknownVariableType]
    return _per_chain(length, lambda chain: _one(record_loss, chain, k, "record_loss"))


def _per_chain(length: Sequence[ChainLength], of: Callable[[ChainLength], Losses]) -> ChainLosses:
    """Return the losses of every chain; one object for equal lengths: a million subjects cost what one does."""
    each = {chain: of(chain) for chain in dict.fromkeys(length)}
    return ChainLosses(tuple(each[chain] for chain in length))


def _one(entry: Any, chain: ChainLength, k: int, name: str) -> Losses:
    if isinstance(entry, Profile):
        return _of_profile(entry, chain, k, name)
    loss = _numbers(entry, name)
    shapes = {0: (), 1: (chain.steps,), 2: (k, k), 3: (chain.steps, k, k)}
    if loss.shape != shapes.get(loss.ndim):
        raise ParameterError(
            f"{name} has shape {loss.shape}, expected a number, ({chain.steps},), ({k}, {k}) or "
            f"({chain.steps}, {k}, {k}): records of the chain, then pairs of states"
        )
    if loss.ndim in (0, 2):
        return Losses.same_for_all(chain, loss)
    changes = np.any(loss[1:] != loss[:-1], axis=tuple(range(1, loss.ndim)))
    starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
    return Losses(chain, np.diff(starts, append=len(loss)), loss[starts], False)


def _of_profile(profile: Profile, chain: ChainLength, k: int, name: str) -> Losses:
    steps = [n for n, _ in profile.stretches]
    values = [_numbers(value, name) for _, value in profile.stretches]
    if not steps or min(steps) < 1 or sum(steps) != chain.steps:
        raise ParameterError(
            f"{name} has stretches of {sum(steps)} steps, expected {chain.steps} in all, at least 1 in each"
        )
    for value in values:
        if value.shape not in ((), (k, k)):
            raise ParameterError(
                f"{name} has a stretch with a loss of shape {value.shape}, expected a number or ({k}, {k})"
            )
    if any(value.ndim for value in values):
        values = [value if value.ndim else value * (1 - np.eye(k)) for value in values]
    return Losses(chain, np.array(steps), np.array(values), False)


def _kept(loss: Any) -> float | Vector:
    found = _numbers(loss, "the loss of a stretch")
    return read_only(found) if found.ndim else float(found)


def _numbers(entry: Any, name: str) -> Vector:
    try:
        loss = real_array(entry)
    except TypeError as error:
        raise ParameterError(f"{name} {error}; expected losses in nats") from None
    if not np.all(np.isfinite(loss)) or np.any(loss < 0):
        raise ParameterError(f"{name} has an entry that is negative or not finite; losses are at least 0")
    return loss
