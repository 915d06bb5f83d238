"""Divergences between one belief and one member of Θ, given a secret: of chains, joint distributions and cliques.

Of chains the largest ratio along a path (:mod:`pufferfish._core.path_divergence`); independent chains add up. Of joint
distributions every database in turn, in exact fractions. A database of a clique of n has the probability
P(N = j) / C(n, j), so ratios are those of P(N = j); exact.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.markov import stationary_log_error
from pufferfish._core.numbers.rounding import log_up, up
from pufferfish._core.path_divergence import PathRatio, path_ratios
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms.one_query.pairs import clique_conditions, place_of
from pufferfish.theta.joint_distribution import Cliques, JointDistribution
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.secrets import RecordIs, Secret, check_states

OVER_THETA = "belief over theta"
OVER_BELIEF = "theta over belief"


@dataclass(frozen=True, slots=True)
class Distance:
    """The largest divergence between one belief and one member of Θ, and what decides it."""

    value: float
    secret: str | None = None
    direction: str | None = None


SAME = Distance(0.0)


@dataclass(frozen=True, slots=True)
class Others:
    """Divergences of independent parts (chains, cliques) of which nothing is known, by what they are alike in."""

    whole: Mapping[Any, float]
    numbers: Mapping[Any, int]

    def plus(self, value: float, own_kind: Any) -> float:
        """Return the divergence of all parts together, when that of one part of its own kind has this value."""
        counts = {kind: number - (kind == own_kind) for kind, number in self.numbers.items()}
        rest = [up(self.whole[kind] * count) for kind, count in counts.items() if count]
        return up(math.fsum([value, *rest])) if rest else value


def larger(first: Distance | None, second: Distance) -> Distance:
    """Return the larger of two distances, the first where they are equal."""
    return second if first is None or second.value > first.value else first


def log_largest(pairs: Iterable[tuple[Fraction, Fraction]], totals: tuple[Any, Any] = (1, 1)) -> float:
    """Return the largest log ratio of pairs p, q, each divided by its total, over p > 0; inf where a q is 0."""
    largest = Fraction(0)
    for p, q in pairs:
        if p and not q:
            return math.inf
        if p:
            largest = max(largest, p / q)
    return max(0.0, log_up(largest * Fraction(totals[1]) / Fraction(totals[0])))


# -- Markov chains --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChainSecret:
    """One record of a chain is in one of some states."""

    chain: int
    step: int
    states: tuple[int, ...]
    words: str


def chain_secret(secret: Secret, lengths: Sequence[ChainLength], states: Sequence[str]) -> ChainSecret:
    """Return a secret of one record, checked; NotApplicableError if it is of another kind."""
    if not isinstance(secret, RecordIs):
        raise NotApplicableError(
            f"secret {str(secret)!r}: for Markov chains only RecordIs is covered, one record having some states; "
            "JointDistribution takes any secret"
        )
    chain, step = place_of(secret.record, [c.steps for c in lengths], secret, ("chain", "step"))
    check_states(secret, states)
    return ChainSecret(chain, step, tuple(states.index(s) for s in secret.states), str(secret))


def _start(chain: MarkovChain) -> NDArray[np.float64] | None:
    """Return the initial law, None where it is any."""
    start = chain.initial_distribution
    if isinstance(start, str):
        return None if start == "any" else chain.stationary_distribution
    return start


def _is_stationary(chain: MarkovChain) -> bool:
    return isinstance(chain.initial_distribution, str) and chain.initial_distribution == "stationary"


def _same_start(member: MarkovChain, believed: MarkovChain) -> bool:
    """Whether the initial laws are exactly the same, for chains of the same matrix; "any" takes the belief's own."""
    ours, theirs = member.initial_distribution, believed.initial_distribution
    if isinstance(ours, str):
        return ours == "any" or (isinstance(theirs, str) and ours == theirs)
    return not isinstance(theirs, str) and np.array_equal(ours, theirs)


def between_chains(
    member: MarkovChain, believed: MarkovChain, lengths: Sequence[ChainLength], asked: Sequence[ChainSecret] | None
) -> Distance | None:
    """Return the largest divergence of all chains together: of one given the secret, of the others as they are.

    Laws of independent chains multiply, so the log ratios of their sequences add, and each maximum is taken by itself.
    """
    ours, theirs = _start(member), _start(believed)
    if theirs is None and ours is not None:
        return Distance(math.inf)
    matrices = (believed.transition_matrix, member.transition_matrix)
    if np.array_equal(*matrices) and _same_start(member, believed):
        return SAME
    starts = None if theirs is None else (theirs, theirs if ours is None else ours)
    chains = (believed if ours is None else member, believed)
    error = sum(stationary_log_error(c.k) for c in chains if _is_stationary(c))
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


# -- Joint distributions ---------------------------------------------------------------------------------------------


def between_joints(
    member: JointDistribution, believed: JointDistribution, wanted: Sequence[Secret] | None
) -> Distance | None:
    """Return the largest divergence over the secrets, database by database."""
    ours = dict(zip(member.rows, member.probabilities, strict=True))
    theirs = dict(zip(believed.rows, believed.probabilities, strict=True))
    worst: Distance | None = None
    for words, rows in _rows_of_each(member, believed, wanted):
        some, others = ({row: law[row] for row in rows if row in law} for law in (theirs, ours))
        for direction, one, against in ((OVER_THETA, some, others), (OVER_BELIEF, others, some)):
            if one:
                inside = sum(one.values()), sum(against.values())
                value = log_largest([(p, against.get(row, Fraction(0))) for row, p in one.items()], inside)
                worst = larger(worst, Distance(value, words, direction))
    return worst


def _rows_of_each(
    member: JointDistribution, believed: JointDistribution, wanted: Sequence[Secret] | None
) -> Iterable[tuple[str, Iterable[tuple[str, ...]]]]:
    """Yield the secrets in words, with the databases possible under either law in which they hold."""
    if wanted is not None:
        for secret in wanted:
            yield str(secret), dict.fromkeys(law.rows[i] for law in (member, believed) for i in law.rows_where(secret))
        return
    possible = dict.fromkeys((*member.rows, *believed.rows))
    for column, variable in enumerate(member.variables):
        parts: dict[str, list[tuple[str, ...]]] = {}
        for row in possible:
            parts.setdefault(row[column], []).append(row)
        for state in member.states:
            if state in parts:
                yield str(RecordIs(variable, state)), parts[state]


# -- Cliques ---------------------------------------------------------------------------------------------------------

_Laws = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
"""Law of a clique's N under the belief, and under the member of Θ."""


def between_cliques(member: Cliques, believed: Cliques, wanted: Sequence[Secret] | None) -> Distance | None:
    """Return the largest divergence over the secrets.

    Given how many have it, all databases are equally likely under both laws, so the ratio for a database is that of
    the P(N = j); and those j count that the secret leaves possible.
    """
    worst: Distance | None = None
    for direction, one, against in ((OVER_THETA, believed, member), (OVER_BELIEF, member, believed)):
        divergences = _each_member(one, against) if wanted is None else _each_clique_secret(one, against, wanted)
        for value, words in divergences:
            worst = larger(worst, Distance(value, words, direction))
    return worst


def _each_member(one: Cliques, against: Cliques) -> Iterable[tuple[float, str]]:
    """Yield the divergences given that a member has it, or has not, and the secrets in words; alike cliques once."""
    kinds: list[_Laws] = list(zip(one.laws, against.laws, strict=True))
    whole = {laws: log_largest(zip(*laws, strict=True)) for laws in set(kinds)}
    others = Others(whole, Counter(kinds))
    for clique in (kinds.index(laws) for laws in dict.fromkeys(kinds)):
        for has_it, state in enumerate(one.states):
            law = one.given_member(clique, has_it)
            if any(law):
                divergence = log_largest(zip(law, against.given_member(clique, has_it), strict=True))
                yield others.plus(divergence, kinds[clique]), str(RecordIs((clique, 0), state))


def _each_clique_secret(one: Cliques, against: Cliques, wanted: Sequence[Secret]) -> Iterable[tuple[float, str]]:
    for secret in wanted:
        known, allowed = clique_conditions(secret, one)
        if known is None:
            continue
        laws = [
            (one.given_members(c, having, lacking), against.given_members(c, having, lacking))
            for c, (having, lacking) in enumerate(known)
        ]
        if not all(any(law) for law, _ in laws):
            continue
        if allowed is None:
            yield up(math.fsum(log_largest(zip(*pair, strict=True)) for pair in laws)), str(secret)
            continue
        ones, others, best = _sums(laws)
        inside = [t for t, mass in enumerate(ones) if mass and allowed(t)]
        if inside:
            totals = sum(ones[t] for t in inside), sum(mass for t, mass in enumerate(others) if allowed(t))
            yield log_largest([best[t] for t in inside], totals), str(secret)


def _sums(laws: Sequence[_Laws]) -> tuple[list[Fraction], list[Fraction], list[tuple[Fraction, Fraction]]]:
    """Return two laws of how many have it in several cliques, and of its databases the pair of largest ratio, exactly.

    Independent cliques are added up one after another.
    """
    one, other, best = [Fraction(1)], [Fraction(1)], [(Fraction(1), Fraction(1))]
    for law, against in laws:
        size = len(one) + len(law) - 1
        ones, others = [Fraction(0)] * size, [Fraction(0)] * size
        bests = [(Fraction(0), Fraction(1))] * size
        for t, j in itertools.product(range(len(one)), range(len(law))):
            ones[t + j] += one[t] * law[j]
            others[t + j] += other[t] * against[j]
            pair = best[t][0] * law[j], best[t][1] * against[j]
            if pair[0] * bests[t + j][1] > bests[t + j][0] * pair[1]:
                bests[t + j] = pair
        one, other, best = ones, others, bests
    return one, other, best
