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
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from pufferfish.calibration import Calibration, Witness
from pufferfish.core.rounding import UNIT
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, QueryError
from pufferfish.mechanisms.losses import Losses, as_losses
from pufferfish.models.chain_class import ChainClass, as_chain_class
from pufferfish.models.lengths import ChainLength, as_lengths
from pufferfish.queries import Query

__all__ = ["InfluenceBound", "as_epsilon"]

_MOST_NUDGES = 30


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
        self._lock = threading.RLock()  # bounds keep what they computed, and are asked by one thread at a time
        self._theta = as_chain_class(theta)
        self._length = as_lengths(length)
        reason = self.supports(self.theta)
        if reason is not None:
            raise NotApplicableError(f"{self.title} does not apply: {reason}")

    @classmethod
    def of(cls, theta: Any, length: Any, **settings: Any) -> Self:
        """Return the bound from Θ, the lengths, and its :attr:`settings`."""
        return cls(theta, length, **settings)

    @property
    def settings(self) -> dict[str, Any]:
        """What else it takes to make this bound again, as plain values."""
        return {}

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
        record_loss : float, array_like, Profile, or list of these
            A number (every observed record), shape (T,) (one per step of the chain, 0 where unobserved), (k, k) or
            (T, k, k) (one per pair of states), or a :class:`Profile`. For several chains either one entry for all of
            them, or a list with one entry per chain.

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
        losses = as_losses(record_loss, self.length, self.theta.k)
        with self._lock:
            return self._leakage(losses)

    def __reduce__(self) -> Any:
        return _again, (type(self), self.theta, self.length, self.settings)

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
        if not isinstance(query, Query):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise QueryError(f"query is {query!r}, expected one such as Histogram() or Count(state)")
        linear = query.bind(self.theta.states, sum(chain.records for chain in self.length))
        losses = as_losses(linear.unit_distance, self.length, self.theta.k)
        with self._lock:
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
            scale *= 1 + UNIT * 4**nudge
        raise NotApplicableError(f"{self.title} does not apply: no finite noise is enough at epsilon={epsilon:g}")


def _again(kind: type[InfluenceBound], theta: Any, length: Any, settings: dict[str, Any]) -> InfluenceBound:
    """Return a copy of a bound."""
    return kind.of(theta, length, **settings)


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
