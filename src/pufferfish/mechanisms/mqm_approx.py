r"""MQMApprox: Algorithm 4, quilts whose influence is bounded by how fast the chain mixes.

With Δ_t = exp(−g t/2)/π_min and t ≥ 2 log(1/π_min)/g, a quilt's right end at distance t adds at most
log((1+Δ_t)/(1−Δ_t)) to the max-influence and a left end twice that (Lemma 4.8, Appendix C.2), whatever the initial law.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import real_that
from pufferfish._core.numbers.rounding import down, up
from pufferfish.errors import ParameterError
from pufferfish.mechanisms.binary_interval import BinaryQuilts
from pufferfish.mechanisms.engine import Engine
from pufferfish.mechanisms.mqm_exact import ChainQuiltBound, ChainQuilts, NodesAlike, any_secret, member_places
from pufferfish.mechanisms.witness import QuiltWitness, Witness
from pufferfish.queries.record_loss import BlockLoss
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.continua import BinaryChainInterval
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Theta


class MQMApprox(ChainQuiltBound):
    """The Markov Quilt Mechanism with approximate max-influence (Algorithm 4).

    Parameters
    ----------
    theta : MarkovChain, sequence of MarkovChain, ChainClass or BinaryChainInterval, optional
        The class Θ: irreducible aperiodic chains with an eigengap above 0, else a :class:`NotApplicableError`. Only the
        π_min and eigengap of each are used: the gap of a reversible chain is 2(1 − |λ₂(P)|), of others 1 − λ₂(P P*)
        (Appendix C.2). Each θ is held to its own two numbers: less noise for several chains than with the least of
        both, which Algorithm 4 takes; give those two to have its noise.
    length : int, ChainLength, or sequence of these
        T, or the lengths of the data set's independent chains.
    pi_min, eigengap : float, optional
        The two numbers themselves: the class of *all* chains with stationary probabilities of at least ``pi_min``
        and a gap of at least ``eigengap``. With ``theta``, at most its own, for all members. Without, there are no
        states to release: the calibration tells the noise only.
    max_quilt_length : int, optional
        Search quilts with at most this many nearby records; by default all.

    Examples
    --------
    >>> import pufferfish as pf
    >>> bound = pf.MQMApprox(pi_min=0.2, eigengap=0.75, length=100)
    >>> round(bound.calibrate(pf.Count(1), epsilon=1.0).scale, 4)
    31.7098
    """

    name: ClassVar[str] = "mqm-approx"
    title: ClassVar[str] = "MQMApprox"
    witnesses: ClassVar[tuple[type[Witness], ...]] = (QuiltWitness,)
    kinds: ClassVar[tuple[type, ...]] = (MarkovChain, BinaryChainInterval)
    pi_min: float  # the least stationary probability of the class
    eigengap: float  # the least eigengap of the class

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
        numbers = [pair for _, part in self.theta.parts for pair in _numbers(part)]
        self._keep(
            pi_min=_at_most("pi_min", pi_min, min(pi for pi, _ in numbers)),
            eigengap=_at_most("eigengap", eigengap, min(gap for _, gap in numbers)),
        )
        self._given = {"pi_min": pi_min, "eigengap": eigengap}

    @property
    def settings(self) -> dict[str, Any]:
        """The longest quilt, and the two numbers where they were given."""
        return {"max_quilt_length": self.max_quilt_length, **{k: v for k, v in self._given.items() if v is not None}}

    @classmethod
    def supports(cls, theta: Theta) -> str | None:
        """Say which member of Θ is reducible, periodic, or has no eigengap."""
        for i, chain in enumerate(theta.chains):
            if not chain.is_irreducible:
                return f"theta[{i}] is reducible, but only irreducible chains forget their past: use MQMExact"
            if chain.period > 1:
                return f"theta[{i}] has period {chain.period}, and only aperiodic chains forget their past"
            if _gap(chain) <= 0:
                return (
                    f"theta[{i}] has eigengap 0 within rounding (a second eigenvalue of P P* at 1), so its closed "
                    "form bounds nothing; MQMExact has no such condition"
                )
        return None

    def _engine_of(self, theta: Theta) -> Engine:
        promised = any(value is not None for value in self._given.values())
        if isinstance(theta, BinaryChainInterval) and not promised:
            return BinaryQuilts(theta, "mixing", self.max_quilt_length)
        # a promise to every θ by itself: its own two numbers, and no others, unless others are given
        own_pi, own_gap = (self._given[name] is None for name in ("pi_min", "eigengap"))
        numbers = [(pi if own_pi else self.pi_min, gap if own_gap else self.eigengap) for pi, gap in _numbers(theta)]
        return _MixingQuilts(theta, numbers, self.max_quilt_length)


class _MixingQuilts(ChainQuilts):
    """Quilts of chains by how fast each member mixes: its least stationary probability and its eigengap."""

    def __init__(self, theta: Theta, numbers: Sequence[tuple[float, float]], longest: int | None) -> None:
        super().__init__(theta, longest)
        self._stands_for_more, self._numbers = theta.stands_for_more, numbers

    def possible(self, losses: BlockLoss) -> list[BlockLoss]:
        return [losses] if self._stands_for_more else super().possible(losses)

    def groups(self, length: int) -> Iterator[NodesAlike]:
        for t, (pi_min, eigengap) in enumerate(self._numbers):
            if self._stands_for_more or any_secret(member_places(self._members[t], length)):
                yield _nodes_alike(t, length, pi_min, eigengap)


def _nodes_alike(theta: int, length: int, pi_min: float, eigengap: float) -> NodesAlike:
    @cache
    def right(b: int) -> NDArray[np.float64]:
        return np.array([mixing_bound(pi_min, eigengap, b)])

    return NodesAlike(theta, 1, length, None, lambda a: 2 * right(a), right)


def mixing_bound(pi_min: float, eigengap: float, t: int) -> float:
    """Bound log P^t(x,y)/P^t(x',y) for all states, rounded up; ∞ where t is too short for the lemma."""
    exponent = up(math.log(1 / pi_min)) - down(eigengap * t / 2)
    if exponent >= 0:
        return math.inf
    delta = up(max(math.exp(exponent), sys.float_info.min) * (1 + 1e-14))
    return up(math.log1p(delta) - math.log1p(-delta), 8) if delta < 1 else math.inf


def _numbers(theta: Theta) -> list[tuple[float, float]]:
    """Return π_min, rounded down, and eigengap of every member of Θ; of a continuum the least of both."""
    if theta.stands_for_more:
        return [(0.5, 2.0)]
    if isinstance(theta, BinaryChainInterval):
        leave_most, leave_least = 1 - theta.low, 1 - theta.high
        reach = max(abs(2 * theta.high - 1), abs(2 * theta.low - 1))
        return [(leave_least / (leave_least + leave_most) * (1 - 1e-14), 2 * (1 - reach) - 1e-15)]
    return [(chain.pi_min * (1 - 1e-15 * theta.k**3), _gap(chain)) for chain in theta.chains]


def _gap(chain: MarkovChain) -> float:
    """Return the eigengap of a chain: a reversible one's own, which is larger."""
    return chain.reversible_eigengap if chain.is_reversible else chain.eigengap


_STATELESS = ChainClass(
    (MarkovChain([[0.5, 0.5], [0.5, 0.5]]),), "every chain of the given pi_min and eigengap", stands_for_more=True
)
"""What the two numbers alone say: a class without states, which can be calibrated for but not released under."""


def _at_most(name: str, value: Any, largest: float) -> float:
    """Return a number that describes a class, given or not; one that Θ does not have would promise too much."""
    if value is None:
        return largest
    expected = f"a number above 0 and at most {largest:g}, that of Θ"
    return min(real_that(lambda number: 0 < number <= largest * (1 + 1e-9), value, name, expected), largest)
