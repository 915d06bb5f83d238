r"""MQMApprox: Algorithm 4, quilts whose influence is bounded by how fast the chain mixes.

With Δ_t = exp(−g t/2)/π_min and t ≥ 2 log(1/π_min)/g, a quilt's right end at distance t adds at most
log((1+Δ_t)/(1−Δ_t)) to the max-influence and a left end twice that (Lemma 4.8, Appendix C.2), whatever the initial law.
"""

import math
import sys
from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pufferfish.core.rounding import down, up
from pufferfish.errors import ParameterError
from pufferfish.mechanisms.chain_quilts import ChainQuiltBound, NodesAlike
from pufferfish.models.chain_class import ChainClass
from pufferfish.models.chain_intervals import IntervalChain
from pufferfish.models.markov_chain import MarkovChain
from pufferfish.models.model_class import Theta

__all__ = ["MQMApprox"]


class MQMApprox(ChainQuiltBound):
    """The Markov Quilt Mechanism with approximate max-influence (Algorithm 4).

    Parameters
    ----------
    theta : MarkovChain, sequence of MarkovChain, or ChainClass, optional
        The class Θ: irreducible aperiodic chains. Only its π_min and eigengap are used. Where all members are
        reversible the gap is 2(1 − |λ₂(P)|), else 1 − λ₂(P P*) (Appendix C.2).
    length : int, ChainLength, or sequence of these
        T, or the lengths of the data set's independent chains.
    pi_min, eigengap : float, optional
        The two numbers themselves: the class of *all* chains with stationary probabilities of at least ``pi_min``
        and a gap of at least ``eigengap``. With ``theta``, at most its own. Without, there are no states to
        release: the calibration tells the noise only.
    max_quilt_length : int, optional
        Search quilts with at most this many nearby records; by default all.

    Raises
    ------
    NotApplicableError
        If a chain is reducible or periodic, or its eigengap is 0.

    Examples
    --------
    >>> import pufferfish as pf
    >>> bound = pf.MQMApprox(pi_min=0.2, eigengap=0.75, length=100)
    >>> round(bound.calibrate(pf.Count(1), epsilon=1.0).scale, 4)
    31.7098
    """

    name: ClassVar[str] = "mqm-approx"
    title: ClassVar[str] = "MQMApprox"
    kinds: ClassVar[tuple[type, ...]] = (ChainClass, IntervalChain)

    def __init__(
        self,
        theta: Any = None,
        length: Any = None,
        *,
        pi_min: float | None = None,
        eigengap: float | None = None,
        max_quilt_length: int | None = None,
    ) -> None:
        if theta is None:
            if pi_min is None or eigengap is None:
                raise ParameterError("MQMApprox needs theta, or both pi_min and eigengap")
            theta = _STATELESS
        super().__init__(theta, length, max_quilt_length=max_quilt_length)
        known = theta is not _STATELESS
        self.pi_min = _at_most("pi_min", pi_min, least_pi(self.chain_class) if known else 0.5)
        self.eigengap = _at_most("eigengap", eigengap, class_eigengap(self.chain_class) if known else 2.0)

    @property
    def settings(self) -> dict[str, Any]:
        """The longest quilt."""
        return {"max_quilt_length": self.max_quilt_length}

    @classmethod
    def supports(cls, theta: Theta) -> str | None:
        """Say which member of Θ is reducible, periodic, or has no eigengap; intervals have neither law nor gap."""
        if isinstance(theta, IntervalChain):
            return "a chain whose matrix changes over time has no stationary law and no eigengap; MQMExact covers it"
        reversible = all(chain.is_irreducible and chain.is_reversible for chain in theta.chains)
        for i, chain in enumerate(theta.chains):
            if not chain.is_irreducible:
                return f"theta[{i}] is reducible, and only irreducible chains forget their past"
            if chain.period > 1:
                return f"theta[{i}] has period {chain.period}, and only aperiodic chains forget their past"
            if (chain.reversible_eigengap if reversible else chain.eigengap) <= 0:
                return (
                    f"theta[{i}] has eigengap 0 within rounding (a second eigenvalue of P P* at 1), so its closed "
                    "form bounds nothing; MQMExact has no such condition"
                )
        return None

    def _groups(self, length: int) -> Iterator[NodesAlike]:
        yield NodesAlike(0, 1, length, None, self._left, self._right)

    def _left(self, a: int) -> NDArray[np.float64]:
        return 2 * self._right(a)

    def _right(self, b: int) -> NDArray[np.float64]:
        return np.array([mixing_bound(self.pi_min, self.eigengap, b)])


def mixing_bound(pi_min: float, eigengap: float, t: int) -> float:
    """Bound log P^t(x,y)/P^t(x',y) for all states, rounded up; ∞ where t is too short for the lemma."""
    exponent = up(math.log(1 / pi_min)) - down(eigengap * t / 2)
    if exponent >= 0:
        return math.inf
    delta = up(max(math.exp(exponent), sys.float_info.min) * (1 + 1e-14))
    return up(math.log1p(delta) - math.log1p(-delta), 8) if delta < 1 else math.inf


def least_pi(theta: ChainClass) -> float:
    """Smallest stationary probability over Θ, rounded down."""
    return min(chain.pi_min for chain in theta.chains) * (1 - 1e-15 * theta.k**3)


def class_eigengap(theta: ChainClass) -> float:
    """Smallest eigengap over Θ; reversible chains' own, larger gap where every member is reversible."""
    if all(chain.is_reversible for chain in theta.chains):
        return min(chain.reversible_eigengap for chain in theta.chains)
    return min(chain.eigengap for chain in theta.chains)


_STATELESS = ChainClass(
    (MarkovChain([[0.5, 0.5], [0.5, 0.5]]),), "every chain of the given pi_min and eigengap", stands_for_more=True
)
"""What the two numbers alone say: a class without states, which can be calibrated for but not released under."""


def _at_most(name: str, value: Any, largest: float) -> float:
    """Return a number that describes a class, given or not; one that Θ does not have would promise too much."""
    if value is None:
        return largest
    if not (isinstance(value, Real) and 0 < float(value) <= largest * (1 + 1e-9)):  # as it is printed
        raise ParameterError(f"{name} is {value!r}, expected a number above 0 and at most {largest:g}, that of Θ")
    return min(float(value), largest)
