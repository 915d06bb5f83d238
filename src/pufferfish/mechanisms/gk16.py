"""GK16: the influence matrix of Ghosh and Kleinberg, the baseline of the paper's experiments (Section 5).

Γ_ij is half the largest log ratio that a change of record j makes in the law of record i given all others. If its
spectral norm is below 1, losses d_j leak at most 2 max_i Σ_j [(I − Γ)⁻¹]_ij d_j: docs/proofs/gk16.md has the proof for
profiles, and what is made of zeros and of ends.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from pufferfish._base.checked import one_of
from pufferfish._core.gk16 import Alphabets, Influences, chain_influences, stationary_influences
from pufferfish._core.numbers.rounding import up
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.mechanisms.engine import Bound, Engine, Proportional, largest_bound
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.mqm_exact import member_places, possible_losses
from pufferfish.mechanisms.witness import MatrixWitness, Witness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide
from pufferfish.theta.continua import BinaryChainInterval
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Theta

_LONGEST = 10**7  # records of the longest chain whose influence matrix is made: some hundred megabytes
_FIRST = 2**14  # records by which most chains that are too strongly correlated are told, however long they are

_UNBOUNDED = "influence has no bound where a state cannot follow another; use LeakagePropagation"


class GK16(InfluenceBound):
    """The mechanism of Ghosh and Kleinberg: applies where the influence matrix has spectral norm below 1.

    That is where neighbours are weakly correlated, and does not depend on ε. The witness names the record whose row of
    (I − Γ)⁻¹ decides. A :class:`NotApplicableError` if the spectral norm under some member is not below 1, or a
    transition is missing; the message says which.

    Parameters
    ----------
    theta : MarkovChain, sequence of MarkovChain, ChainClass, or BinaryChainInterval
        The class Θ. Under each member every state that a record can have must be able to follow every one that the
        record before can have.
    length : int, ChainLength, or sequence of these
        T, or the lengths of the data set's independent chains; the longest decides whether the bound applies. Where
        records are unobserved, the worst of all places for the observed ones counts.
    ends : {"definition", "paper"}, optional
        Influence on the first and the last record, which have one neighbour: by the definition, or as if the chain went
        on, which is how the paper's own baseline reads it. Both are private; by default whichever applies and needs
        less noise, member by member.

    References
    ----------
    Ghosh and Kleinberg, *Inferential Privacy Guarantees for Differentially Private Mechanisms* (ITCS 2017); Section 5.

    Examples
    --------
    >>> import pufferfish as pf
    >>> theta = pf.BinaryChainInterval(0.4, 0.6)
    >>> round(pf.GK16(theta, length=100).calibrate(pf.Count(1), epsilon=1.0).scale, 3)
    3.887
    """

    name: ClassVar[str] = "gk16"
    title: ClassVar[str] = "GK16"
    witnesses: ClassVar[tuple[type[Witness], ...]] = (MatrixWitness,)
    kinds: ClassVar[tuple[type, ...]] = (MarkovChain, BinaryChainInterval)
    ends: Literal["definition", "paper"] | None
    """The reading of the ends that was asked for; None for the better of both."""

    def __init__(self, theta: Any, length: Any, *, ends: Literal["definition", "paper"] | None = None) -> None:
        super().__init__(theta, length)
        if not one_of(ends, (None, "definition", "paper")):
            raise ParameterError(f'ends is {ends!r}, expected "definition" or "paper", or None for the better of both')
        self._keep(ends=ends)
        self._longest = max(chain.steps for chain in self.length)
        if self._longest > _LONGEST:
            raise NotApplicableError(
                f"the longest chain has {self._longest:,} records, and its influence matrix is made up to "
                f"{_LONGEST:,}; use LeakagePropagation",
                self.title,
            )
        self._readings: list[tuple[Theta, list[list[Influences]]]] = []
        for first, part in self.theta.parts:
            # of two-state chains in an interval one of two has all influences at their largest (docs/proofs/gk16.md)
            members = enumerate(part.some_members, first)
            self._readings.append((part, [self._both(chain, t if part.chains else None) for t, chain in members]))

    def _both(self, chain: MarkovChain, t: int | None) -> list[Influences]:
        """Return the readings of the ends of a member whose norm is below 1; one of an interval has no number."""
        longest, member = self._longest, _of_chain(chain)
        both = {"definition": member, "paper": member.with_inner_ends()}
        readings = list(both.values()) if self.ends is None else [both[self.ends]]
        below = [r for r in readings if _norm_is_below_one(r, longest)]
        if not below:
            name = f"p0 = p1 = {chain.transition_matrix[0, 0]:g}" if t is None else f"theta[{t}]"
            norms = [(r.matrix(longest) if longest <= _FIRST else r.leading(_FIRST)).norm for r in readings]
            raise NotApplicableError(
                f"the influence matrix has spectral norm {'' if longest <= _FIRST else 'at least '}"
                f"{min(norms):.6g} for {name}, and the bound needs less than 1; use LeakagePropagation",
                self.title,
            )
        return below

    @property
    def settings(self) -> dict[str, Any]:
        """The reading of the ends, where one is asked for."""
        return {} if self.ends is None else {"ends": self.ends}

    @property
    def spectral_norm(self) -> float:
        """Largest spectral norm of the longest chain's influence matrix over Θ, by the smaller reading, rounded up."""
        return max(min(r.matrix(self._longest).norm for r in both) for _, each in self._readings for both in each)

    @classmethod
    def supports(cls, theta: Theta) -> str | None:
        """Say which transition is missing; the spectral norm depends on the length and is asked when that is known."""
        for t, chain in enumerate(theta.chains):
            start = chain.initial_distribution
            first = np.ones(chain.k, dtype=np.bool_) if isinstance(start, str) else start > 0
            missing = Alphabets.of(first, chain.transition_matrix > 0).missing
            if missing is not None:
                a, b = (chain.states[x] for x in missing)
                return f"theta[{t}] never goes from {a!r} to {b!r}, and {_UNBOUNDED}"
        return None

    def _engine_of(self, theta: Theta) -> Engine:
        readings = next(each for part, each in self._readings if part == theta)
        return _RowSums(theta.some_members, readings, listed=bool(theta.chains))


class _RowSums(Proportional):
    """Row sums of the inverse of I − Γ, times the losses: the least over the readings of each member."""

    def __init__(
        self, members: Sequence[MarkovChain], readings: Sequence[Sequence[Influences]], *, listed: bool
    ) -> None:
        self._listed = listed
        self._members = members
        self._readings = readings
        self._sum_of = cache(self._sum)

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        return largest_bound(
            self._of_chain(t, chain) for chain in chains_that_can_decide(losses) for t in range(len(self._readings))
        )

    def _of_chain(self, t: int, losses: BlockLoss) -> Bound:
        steps = losses.length.steps
        losses = possible_losses(losses, member_places(self._members[t], steps))
        largest = losses.largest
        most = float(largest.max())
        if losses.of_observed and (len(largest) == 1 or losses.length.records < steps):
            bound = self._sum_of(t, steps, losses.length.records)
        else:
            shares = np.minimum(largest / most * (1 + 2.0**-51), 1.0) if most else largest
            spread = np.repeat(shares, losses.steps)
            bound = _least(r.matrix(steps).largest_row_sum(spread) for r in self._readings[t])
        if bound is None:
            return 0.0, None
        factor, node = bound
        return up(2 * factor * most), MatrixWitness(theta=t if self._listed else 0, length=steps, node=node)

    def _sum(self, t: int, steps: int, records: int) -> tuple[float, int] | None:
        """Return the largest sum of so many entries of a row of the inverse; None where there is no secret."""
        return _least(r.matrix(steps).largest_sum_of(records) for r in self._readings[t])


def _norm_is_below_one(influences: Influences, steps: int) -> bool:
    """Whether the spectral norm is proven to be below 1, which it is not where it is not for the first records."""
    # what is found is the same as for the whole matrix: a pivot of the first records is no smaller than in the whole
    if steps > _FIRST and not influences.leading(_FIRST).norm_is_below_one:
        return False
    return influences.matrix(steps).norm_is_below_one


def _least(candidates: Iterable[tuple[float, int] | None]) -> tuple[float, int] | None:
    """Return the least of several bounds; None where there is no secret."""
    bounds = [bound for bound in candidates if bound is not None]
    return min(bounds, key=lambda bound: bound[0]) if bounds else None


def _of_chain(chain: MarkovChain) -> Influences:
    start = chain.initial_distribution
    if isinstance(start, str) and start == "stationary":
        return stationary_influences(chain.transition_matrix, chain.stationary_distribution)
    return chain_influences(chain.transition_matrix, None if isinstance(start, str) else start)
