r"""Influence bounds: from record-level loss to leakage, and back to noise.

A release with Laplace noise of scale b is, record by record, differentially private: its loss when record t
goes from state x to x' is d_t(x, x') = ‖f_t(x) − f_t(x')‖₁/b. Where records are correlated, what the release tells
about one record is more than that record's own loss. An **influence bound** says how much more:

    leakage(d) ≥ sup over θ in Θ, outputs w, secret pairs (s, s') of log P(M(X)=w | s, θ) / P(M(X)=w | s', θ)

A mechanism of the paper is such a bound together with its inverse: the least b for which leakage(d) ≤ ε. The
Laplace scale, vector queries and composition (losses of several releases add before leakage is asked) follow from it
alone. Both directions round towards privacy.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from pufferfish.calibration import Calibration, Witness
from pufferfish.errors import ModelError, NotApplicableError, QueryError
from pufferfish.mechanisms.losses import Losses, Profile, as_losses
from pufferfish.mechanisms.mechanism import Mechanism, as_epsilon
from pufferfish.queries import LinearQuery, Query

__all__ = ["InfluenceBound"]


class InfluenceBound(Mechanism):
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

    def verify(self, calibration: Calibration) -> tuple[float, Witness | None]:
        """Prove anew what a release with this noise leaks at most, in nats, and say where."""
        linear = self.bind(calibration.query)
        if not isinstance(linear, LinearQuery):
            raise QueryError("a function of the database has no known record-level loss")
        losses = tuple(chain.divided(calibration.unit_scale) for chain in self._losses_of(linear))
        with self._lock:
            return self._leakage(losses)

    def _losses_of(self, linear: LinearQuery) -> tuple[Losses, ...]:
        """Return the record-level losses of a query with noise of scale 1."""
        if linear.factors is None:
            return as_losses(linear.unit_distance, self.length, self.theta.k)
        each = linear.unit_distance / linear.largest_factor
        starts = np.concatenate([[0], np.flatnonzero(np.diff(np.abs(linear.factors))) + 1])
        times = np.diff(starts, append=len(linear.factors))
        stretches = [(int(n), each * abs(int(linear.factors[t]))) for n, t in zip(times, starts, strict=True)]
        return as_losses(Profile(stretches), self.length, self.theta.k)

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
        linear = self.bind(query)
        if not isinstance(linear, LinearQuery):
            raise NotApplicableError(
                f"{self.title} does not apply: it bounds what single records move, which is not known of a function"
            )
        losses = self._losses_of(linear)
        with self._lock:
            scale, witness = self._least_divisor(losses, epsilon)
        if witness is None:
            raise ModelError(
                "under every θ each record has one possible state only: there is no secret to protect "
                "and no noise to calibrate; check initial_distribution and the zeros of transition_matrix"
            )
        return self._proven(query, linear, epsilon, scale, witness)
