"""Divergence of Markov chains given a secret: the largest ratio along a path, and other chains beside it."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.markov import stationary_log_error
from pufferfish._core.path_divergence import PathRatio, path_ratios
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms.one_query.pairs import place_of
from pufferfish.robustness.distance import OVER_BELIEF, OVER_THETA, SAME, Distance, Others, larger
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.secrets import RecordIs, Secret, check_states

__all__ = ["ChainSecret", "between_chains", "chain_secret"]

Law = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChainSecret:
    """One record of a chain is in one of some states."""

    chain: int
    step: int
    states: tuple[int, ...]
    words: str


def chain_secret(secret: Secret, lengths: Sequence[ChainLength], states: Sequence[str]) -> ChainSecret:
    """Return a secret of one record, checked.

    Raises
    ------
    NotApplicableError
        If it is of another kind.
    ParameterError
        If there is no such record or state.
    """
    if not isinstance(secret, RecordIs):
        raise NotApplicableError(
            f"secret {str(secret)!r}: for Markov chains only RecordIs is covered, one record having some states; "
            "JointDistribution takes any secret"
        )
    chain, step = place_of(secret.record, [c.steps for c in lengths], secret, ("chain", "step"))
    check_states(secret, states)
    return ChainSecret(chain, step, tuple(states.index(s) for s in secret.states), str(secret))


def _starts(member: MarkovChain, believed: MarkovChain) -> tuple[Law, Law] | None:
    """Return the initial laws of belief and member; None where both are open."""
    theirs, ours = _start(believed), _start(member)
    if theirs is None:
        return None
    return theirs, theirs if ours is None else ours


def _start(chain: MarkovChain) -> Law | None:
    q = chain.initial_distribution
    if not isinstance(q, str):
        return q
    return None if q == "any" else chain.stationary_distribution


def _kind(chain: MarkovChain) -> str:
    return chain.initial_distribution if isinstance(chain.initial_distribution, str) else "given"


def _same_start(member: MarkovChain, believed: MarkovChain) -> bool:
    """Whether the initial laws are exactly the same, for chains of the same matrix."""
    if _kind(member) != _kind(believed):
        return _kind(member) == "any"
    return _kind(member) != "given" or np.array_equal(member.initial_distribution, believed.initial_distribution)


def between_chains(
    member: MarkovChain, believed: MarkovChain, lengths: Sequence[ChainLength], asked: Sequence[ChainSecret] | None
) -> Distance | None:
    """Return the largest divergence of all chains together: of one given the secret, of the others as they are.

    Laws of independent chains multiply, so the log ratios of their sequences add, and each maximum is taken by itself.
    """
    starts = _starts(member, believed)
    if starts is None and _start(member) is not None:
        return Distance(math.inf)
    matrices = (believed.transition_matrix, member.transition_matrix)
    if np.array_equal(*matrices) and _same_start(member, believed):
        return SAME
    ours = believed if _start(member) is None else member
    error = sum(stationary_log_error(c.k) for c in (ours, believed) if _kind(c) == "stationary")
    steps = [c.steps for c in lengths]
    sets = [(x,) for x in range(member.k)] if asked is None else list(dict.fromkeys(s.states for s in asked))
    worst: Distance | None = None
    ways = path_ratios(starts, matrices, max(steps), sets, error)
    for direction, ratio in zip((OVER_THETA, OVER_BELIEF), ways, strict=True):
        others = Others({n: ratio.whole(n) for n in set(steps)}, Counter(steps))
        for value, chain, words in _given_each(ratio, steps, sets, asked, member.states):
            if value > -math.inf:
                worst = larger(worst, Distance(others.plus(value, steps[chain]), words, direction))
    return worst


def _given_each(
    ratio: PathRatio,
    steps: Sequence[int],
    sets: Sequence[tuple[int, ...]],
    asked: Sequence[ChainSecret] | None,
    states: Sequence[str],
) -> Iterable[tuple[float, int, str]]:
    """Yield bounds given a secret of a chain, the chain, and the secret in words; by default the worst per length."""
    if asked is not None:
        for secret in asked:
            bounds = ratio.given(steps[secret.chain], np.array([secret.step]), sets)
            yield float(bounds[0, sets.index(secret.states)]), secret.chain, secret.words
        return
    for length in dict.fromkeys(steps):
        value, record, x = ratio.worst_given(length, sets)
        chain = steps.index(length)
        yield value, chain, str(RecordIs(record if len(steps) == 1 else (chain, record), states[x]))
