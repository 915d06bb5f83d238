r"""Influence bounds: from record-level loss to leakage, and back to noise.

A release with Laplace noise of scale b is, record by record, differentially private: its loss when record t
goes from state x to x' is d_t(x, x') = ‖f_t(x) − f_t(x')‖₁/b. Where records are correlated, what the release tells
about one record is more than that record's own loss. An **influence bound** says how much more:

    leakage(d) ≥ sup over θ in Θ, outputs w, secret pairs (s, s') of log P(M(X)=w | s, θ) / P(M(X)=w | s', θ)

A mechanism of the paper is such a bound together with its inverse: the least b for which leakage(d) ≤ ε. The
Laplace scale, vector queries and composition (losses of several releases add before leakage is asked) follow from it
alone. Both directions round towards privacy.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pufferfish.calibration import Calibration, Witness
from pufferfish.core.rounding import UNIT
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.models.chain_class import ChainClass, as_chain_class
from pufferfish.models.lengths import ChainLength, as_lengths
from pufferfish.queries import Query

__all__ = ["InfluenceBound", "Losses", "as_epsilon", "as_losses", "decisive"]

_MOST_NUDGES = 60


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Record-level losses of one chain.

    Parameters
    ----------
    length : ChainLength
        The chain they belong to.
    values : ndarray
        Shape () one loss for every observed record; (T,) one per step; (k, k) or (T, k, k) one per pair of
        states.
    """

    length: ChainLength
    values: NDArray[np.float64]

    @property
    def of_observed(self) -> bool:
        """Whether it is one loss for every observed record, wherever those are in the chain."""
        return self.values.ndim in (0, 2)

    @property
    def per_record(self) -> NDArray[np.float64]:
        """Largest loss over pairs of states: shape () where all records have the same loss, else (T,)."""
        return self.values.max(axis=(-2, -1)) if self.values.ndim >= 2 else self.values


def decisive(losses: Sequence[Losses]) -> Iterator[Losses]:
    """Yield the chains that can decide: of those with one loss for all records, those that no other outdoes.

    A chain of no more steps and no more observed records is another one with some of its losses left out, and less
    loss never leaks more.
    """
    uniform: dict[bytes, list[Losses]] = {}
    for chain in losses:
        if chain.of_observed:
            uniform.setdefault(chain.values.tobytes(), []).append(chain)
        else:
            yield chain
    for chains in uniform.values():
        records = 0
        for chain in sorted(chains, key=lambda c: (c.length.steps, c.length.records), reverse=True):
            if chain.length.records > records:
                records = chain.length.records
                yield chain


class InfluenceBound(ABC):
    """A bound on what a release of known record-level losses tells about one record, under every θ in Θ.

    Parameters
    ----------
    theta : MarkovChain, sequence of MarkovChain, or ChainClass
        The class Θ.
    length : int, ChainLength, or sequence of these
        T, or the lengths of the data set's independent chains, such as ``sequences.length``.

    Raises
    ------
    NotApplicableError
        If the bound does not cover Θ; the message says why.
    """

    name: ClassVar[str]
    """Name on the command line and in records."""

    title: ClassVar[str]
    """Name in tables."""

    composes: ClassVar[bool] = True
    """Whether losses of several releases may be added before leakage is asked."""

    def __init__(self, theta: Any, length: Any) -> None:
        self._theta = as_chain_class(theta)
        self._length = as_lengths(length)
        reason = self.supports(self.theta)
        if reason is not None:
            raise NotApplicableError(f"{self.title} does not apply: {reason}")

    @property
    def theta(self) -> ChainClass:
        """The class Θ. Read-only, as is ``length``: a bound proves what it was made for."""
        return self._theta

    @property
    def length(self) -> tuple[ChainLength, ...]:
        """Lengths of the independent chains."""
        return self._length

    @classmethod
    @abstractmethod
    def supports(cls, theta: ChainClass) -> str | None:
        """Return why the bound does not cover Θ, or None where it does."""

    @abstractmethod
    def _leakage(self, losses: Sequence[Losses]) -> tuple[float, Witness | None]:
        """Leakage of given losses, and where it is attained; no witness where there is no secret to protect."""

    @abstractmethod
    def _least_divisor(self, losses: Sequence[Losses], epsilon: float) -> tuple[float, Witness | None]:
        """Least number by which the losses must be divided so that they leak at most epsilon."""

    def leakage(self, record_loss: Any) -> float:
        """Bound the Pufferfish loss of a release from its record-level losses.

        Parameters
        ----------
        record_loss : float, array_like, or list of these
            A number (every observed record), shape (T,) (one per step of the chain, 0 where unobserved), (k, k) or
            (T, k, k) (one per pair of states). For several chains either one entry for all of them, or a list with
            one entry per chain.

        Returns
        -------
        float
            The leakage in nats, rounded up; ``inf`` where no bound holds.

        Raises
        ------
        ParameterError
            If a loss is negative or not finite, or a shape does not fit.
        """
        return self.prove(record_loss)[0]

    def prove(self, record_loss: Any) -> tuple[float, Witness | None]:
        """Return :meth:`leakage` and where it is attained (None: there is no secret to protect)."""
        return self._leakage(as_losses(record_loss, self.length, self.theta.k))

    def calibrate(self, query: Query, epsilon: float) -> Calibration:
        """Least Laplace noise for which this bound proves that the query's release is ε-Pufferfish private.

        Parameters
        ----------
        query : Query
            What is asked of the data.
        epsilon : float
            Privacy parameter ε in nats, positive and finite.

        Returns
        -------
        Calibration
            Scale, noise multiplier, and the node, secret pair and quilt that decide them.

        Raises
        ------
        ParameterError
            If epsilon is out of range.
        QueryError
            If the query does not fit the model's states.
        ModelError
            If no record has two possible states under any θ: there is no secret to protect.
        """
        epsilon = as_epsilon(epsilon)
        linear = query.bind(self.theta.states, sum(chain.records for chain in self.length))
        losses = as_losses(linear.unit_distance, self.length, self.theta.k)
        scale, witness = self._least_divisor(losses, epsilon)
        if witness is None:
            raise ModelError(
                "under every θ each record has one possible state only: there is no secret to protect "
                "and no noise to calibrate; check initial_distribution and the zeros of transition_matrix"
            )
        for nudge in range(_MOST_NUDGES):
            if not 0 < scale < math.inf:
                break
            found = Calibration(
                epsilon=epsilon, unit_scale=scale, query=query, linear=linear, witness=witness, bound=self
            )
            leakage, decides = self.prove(found.record_loss)
            if leakage <= epsilon and decides is not None:
                return replace(found, witness=decides)
            scale *= 1 + UNIT * 2**nudge
        raise NotApplicableError(f"{self.title} does not apply: no finite noise is enough at epsilon={epsilon:g}")


def as_epsilon(epsilon: Any) -> float:
    """Return a privacy parameter as a float.

    Raises
    ------
    ParameterError
        If it is not a positive finite number.
    """
    try:
        value = float(epsilon)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"epsilon is {epsilon!r}, expected a positive number such as 1.0") from None
    if not 0 < value < math.inf:
        raise ParameterError(f"epsilon is {value:g}, expected a positive finite number such as 1.0")
    return value


def as_losses(record_loss: Any, length: Sequence[ChainLength], k: int) -> tuple[Losses, ...]:
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
        return tuple(
            Losses(chain, _one_loss(entry, chain, k, f"record_loss[{c}]"))
            for c, (entry, chain) in enumerate(zip(entries, length, strict=True))
        )
    if isinstance(record_loss, list) and len(length) == 1 and len(record_loss) == 1:  # pyright: ignore[reportUnknownArgumentType]
        record_loss = record_loss[0]  # pyright: ignore[reportUnknownVariableType]
    return tuple(Losses(chain, _one_loss(record_loss, chain, k, "record_loss")) for chain in length)


def _one_loss(entry: Any, chain: ChainLength, k: int, name: str) -> NDArray[np.float64]:
    try:
        loss = np.asarray(entry, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is not an array of numbers") from None
    shapes = {0: (), 1: (chain.steps,), 2: (k, k), 3: (chain.steps, k, k)}
    if loss.shape != shapes.get(loss.ndim):
        raise ParameterError(
            f"{name} has shape {loss.shape}, expected a number, ({chain.steps},), ({k}, {k}) or "
            f"({chain.steps}, {k}, {k}): records of the chain, then pairs of states"
        )
    if not np.all(np.isfinite(loss)) or np.any(loss < 0):
        raise ParameterError(f"{name} has an entry that is negative or not finite; losses are at least 0")
    return loss
