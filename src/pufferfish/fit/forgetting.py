"""How much is forgotten: the overlap of a chain, and a forgetting class from public data, subject by subject.

The overlap after n steps is the least, over pairs of states x and x', of Σ_y min(P(y | x), P(y | x')): for the state n
steps later, and for the state n steps earlier.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import is_list, whole_at_least
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.view import counted
from pufferfish._core.numbers.rounding import UNIT
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.fit.chain import added_count, check_several
from pufferfish.theta.continua import ForgettingClass
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import as_theta

if TYPE_CHECKING:
    from pufferfish.data.public_counts import PairsApart

SMOOTHING = 10.0  # independent pairs of the pool that are added to every row of a subject, unless told otherwise

Matrix = NDArray[np.float64]


@overload
def overlap(chain: Any, steps: int) -> float: ...
@overload
def overlap(chain: Any, steps: Sequence[int]) -> tuple[float, ...]: ...
def overlap(chain: Any, steps: Any) -> Any:
    """Return the smallest overlap of the laws of a chain's state, given any two states some steps earlier or later.

    It is in [0, 1], rounded down: what :class:`ForgettingClass` takes.

    Parameters
    ----------
    chain : MarkovChain, or sequence of these
        Stationary chains; of several the least overlap. Others are refused (NotApplicableError): their past depends on
        the time.
    steps : int, or sequence of int
        How many steps apart, at least 1; of several there are as many overlaps.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> [round(share, 3) for share in overlap(chain, [1, 2, 8])]
    [0.5, 0.75, 0.996]
    """
    members = as_theta(chain).chains
    if not members:
        raise ModelError(f"theta is a class of {as_theta(chain).kind}, expected a MarkovChain or a list of them")
    for i, member in enumerate(members):
        if not isinstance(member.initial_distribution, str) or member.initial_distribution != "stationary":
            raise NotApplicableError(
                f"theta[{i}] does not start with its stationary law, so how soon its past is forgotten depends on the "
                'time: use initial_distribution="stationary"'
            )
    asked = list(steps) if is_list(steps) else [steps]
    shares = tuple(min(_of_chain(m, whole_at_least(n, "steps", 1, ", such as 8")) for m in members) for n in asked)
    return shares if is_list(steps) else shares[0]


def _of_chain(chain: MarkovChain, n: int) -> float:
    p, pi = chain.transition_matrix, chain.stationary_distribution
    rounding = min(8 * p.shape[0] * (n + 4), 2**53) * UNIT
    if rounding >= 1:  # so many steps that nothing is known
        return 0.0
    ahead = np.linalg.matrix_power(p, n)
    joint = pi[:, None] * ahead
    return max(0.0, min(_least_shared(ahead), _least_shared((joint / joint.sum(axis=0)).T)) - rounding)


def _least_shared(rows: Matrix) -> float:
    """Return the least common share of two rows, which are laws."""
    return min(float(np.minimum(rows[i], rows[i + 1 :]).sum(axis=1).min(initial=1.0)) for i in range(len(rows)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapEstimate(ReadOnly):
    """How much habits overlap after some steps, by public data.

    ``overlap`` is that of the ``subject`` ("" where the table is one chain) with the least, about the state so many
    steps later or earlier, which is the ``direction``; ``pooled`` that of all subjects' pairs taken as one person's.
    ``pairs`` of states were counted, of so many ``subjects``.
    """

    steps: int
    overlap: float
    subject: str
    direction: Literal["later", "earlier"]
    pooled: float
    pairs: int
    subjects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingFit(ReadOnly):
    """A forgetting class from public data, and what it was estimated from.

    ``estimates`` are one for each time of forgetting, the shortest first; ``smoothing`` is how many independent pairs
    of the pool every row of a subject was given.
    """

    theta: ForgettingClass
    estimates: tuple[OverlapEstimate, ...]
    sequences: Sequences
    smoothing: float


def fit_forgetting(
    source: Any, state: str, forgets: Any, *, smoothing: float = SMOOTHING, **reading: Any
) -> ForgettingFit:
    """Estimate from public data how much habits overlap after some time; the subject with the least overlap decides.

    A table from few pairs looks less forgetful than the person is, so every row gets some of the pool: the pairs of all
    subjects. Pairs that overlap in time repeat each other: n steps apart, every n pairs count as one. A
    :class:`ModelError` if there are no pairs so far apart, a state is in none of them, or two states have no overlap.

    Parameters
    ----------
    source, state, **reading
        The public data, as for :func:`read_sequences`, as are errors.
    forgets : int, str, or sequence of these
        After how many steps, or after what time, such as ``"8min"``: as many steps as it has, rounded up.
    smoothing : float, default 10
        How many independent pairs of the pool every row of a subject is given. 0 takes subjects as they are: then a
        state that a subject was in once decides.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> days = pl.DataFrame({"who": ["a"] * 800 + ["b"] * 800, "s": list("rrwrrwww" * 100) + list("rwrrrrww" * 100)})
    >>> fit = fit_forgetting(days, "s", 3, subject="who")
    >>> fit.theta.steps, round(fit.theta.overlap[0], 2), fit.estimates[0].subject
    ((3,), 0.94, 'b')
    """
    added = added_count("smoothing", smoothing, SMOOTHING)
    asked: list[Any] = list(forgets) if is_list(forgets) else [forgets]
    if not asked:
        raise ParameterError("forgets is empty, expected a number of steps, or a time such as '8min'")
    from pufferfish.data.public_counts import read_pairs_apart  # here: it loads what reads tables

    sequences, apart = read_pairs_apart(source, state, asked, **reading)
    by_steps = {pairs.steps: _estimate(pairs, sequences.states, added) for pairs in apart}
    estimates = tuple(by_steps[n] for n in sorted(by_steps))
    many = len(estimates) > 1
    parts = [f"{e.overlap:.4g} after {e.steps:,} steps, of {_whose(e)}" for e in estimates]
    origin = (
        f"fitted to public data: overlap{'s' if many else ''} {'; '.join(parts)}; from {estimates[0].pairs:,} pairs of "
        f"{counted(estimates[0].subjects, 'subject')}, smoothed by {added:g} of all"
    )
    steps, shares = [e.steps for e in estimates], [e.overlap for e in estimates]
    theta = ForgettingClass(steps, shares, sequences.states, origin=origin)
    return ForgettingFit(theta=theta, estimates=estimates, sequences=sequences, smoothing=added)


def _whose(estimate: OverlapEstimate) -> str:
    who = "all records" if not estimate.subject else f"subject {estimate.subject!r}, the least"
    return f"{who}, about the state so many {estimate.direction}"


def _estimate(pairs: "PairsApart", states: Sequence[str], added: float) -> OverlapEstimate:
    estimate = overlap_of(pairs, states, added)
    if not estimate.overlap > 0:
        raise ModelError(
            f"the laws of the state {estimate.steps:,} steps {estimate.direction} do not overlap at all for two states"
            f"{f' of subject {estimate.subject!r}' if estimate.subject else ''}: forget after more steps, merge rare "
            "states, or use more smoothing"
        )
    return estimate


def overlap_of(pairs: "PairsApart", states: Sequence[str], added: float) -> OverlapEstimate:
    """Estimate the overlap after some steps, which may be none."""
    pool = pairs.counts.sum(axis=0).astype(np.float64)
    n = pairs.steps
    if not pool.any():
        raise ModelError(
            f"no two observed records are {n} steps apart without a gap between them: forget after fewer steps, or "
            "check the subject and time columns and max_gap"
        )
    names = [states[int(x)] for x in np.flatnonzero((pool.sum(axis=1) == 0) | (pool.sum(axis=0) == 0))]
    if names:
        raise ModelError(
            f"state {names[0]!r} has no record {n} steps before or after it: merge states, or leave it out of states"
        )
    check_several(states)
    worst: tuple[float, str, Literal["later", "earlier"]] = math.inf, "", "later"
    for who, counts in zip(pairs.subjects, pairs.counts, strict=True):
        later, earlier = (_smoothed(a / n, b, added) for a, b in ((counts, pool), (counts.T, pool.T)))
        worst = min(worst, (_least_shared(later), who, "later"), (_least_shared(earlier), who, "earlier"))
    share, who, direction = worst
    shares = (_least_shared(table / table.sum(axis=1, keepdims=True)) for table in (pool, pool.T))
    return OverlapEstimate(
        steps=n,
        overlap=min(share, 1.0),
        subject=who,
        direction=direction,
        pooled=min(shares),
        pairs=int(pool.sum()),
        subjects=len(pairs.subjects),
    )


def _smoothed(counts: Matrix, pool: Matrix, added: float) -> Matrix:
    """Return the rows of a subject, each with so many pairs of the pool's row; those never seen are the pool's."""
    like = pool / pool.sum(axis=1, keepdims=True)
    seen = counts.sum(axis=1, keepdims=True)
    whole = np.where(seen + added > 0, seen + added, 1.0)
    return (counts + added * like) / whole + like * (seen + added == 0)
