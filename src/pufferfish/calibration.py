"""Calibrated noise: how much a release needs, what it promises, and which secret decides it."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pufferfish.core import discrete_laplace
from pufferfish.models.chain_class import ChainClass
from pufferfish.models.lengths import ChainLength
from pufferfish.queries import LinearQuery, Query

__all__ = ["Calibration", "Witness"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The secret that decides the noise.

    Parameters
    ----------
    theta : int
        Index of the worst member of Θ.
    length : int
        Steps of the chain it was found in.
    node : int or None
        The worst record, 0-based; None where all are alike.
    secret_pair : tuple of str or None
        The two values of the record that are hardest to tell apart; None where all pairs are alike.
    active_quilt : tuple of int or None
        Nodes of the best quilt of that record, 0-based: () is the trivial quilt; None where quilts play no part.
    nearby : int
        Number of records whose loss counts in full, card(X_N).
    influence : float
        Max-influence of the record on the quilt, in nats.
    """

    theta: int
    length: int
    node: int | None
    secret_pair: tuple[str, str] | None
    active_quilt: tuple[int, ...] | None
    nearby: int
    influence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Noise for one query under one class Θ; made by a mechanism's ``calibrate``, from public things only.

    Parameters
    ----------
    mechanism, title : str
        The mechanism's name and its name in tables.
    epsilon : float
        What was asked for.
    leakage : float
        What the bound proves of this noise, at most ``epsilon``.
    unit_scale : float
        Laplace scale in units of the query (the scale of the integer noise).
    linear : LinearQuery
        The query on the model's states.
    query : Query
        The query as given.
    theta : ChainClass
        The class Θ.
    length : tuple of ChainLength
        The chains the noise was calibrated for.
    witness : Witness
        The secret that decides the noise.
    composes : bool
        Whether record-level losses of several such releases may be added.
    """

    mechanism: str
    title: str
    epsilon: float
    leakage: float
    unit_scale: float
    linear: LinearQuery = field(repr=False)
    query: Query
    theta: ChainClass = field(repr=False)
    length: tuple[ChainLength, ...] = field(repr=False)
    witness: Witness
    composes: bool = True

    @property
    def scale(self) -> float:
        """Laplace scale b of the noise on each output of the query; the standard deviation is √2·b."""
        return self.unit_scale * float(self.linear.unit)

    @property
    def noise_multiplier(self) -> float:
        """Scale over Lipschitz constant, b/L: the paper's σ_max."""
        return self.unit_scale / self.linear.unit_lipschitz

    @property
    def record_loss(self) -> NDArray[np.float64]:
        """Record-level loss of the release for every pair of states, in nats; shape (k, k)."""
        return self.linear.unit_distance / self.unit_scale

    @property
    def records(self) -> int:
        """Observed records n over all chains."""
        return sum(chain.records for chain in self.length)

    @property
    def expected_l1_error(self) -> float:
        """Expected L1 distance between the released vector and the exact one."""
        return len(self.linear.labels) * discrete_laplace.mean_modulus(self.unit_scale) * float(self.linear.unit)

    def accuracy(self, alpha: float = 0.05, *, joint: bool = False) -> float:
        """Return the error that is exceeded with probability at most alpha, of the discrete noise itself.

        Parameters
        ----------
        alpha : float, default 0.05
            Probability, strictly between 0 and 1.
        joint : bool, default False
            For all outputs at once rather than for each of them.

        Returns
        -------
        float
            The least a on the noise's grid with P(|noise| > a) ≤ alpha.

        Raises
        ------
        ParameterError
            If alpha is out of range.
        """
        together = len(self.linear.labels) if joint else 1
        return discrete_laplace.accuracy(self.unit_scale, alpha, together=together) * float(self.linear.unit)
