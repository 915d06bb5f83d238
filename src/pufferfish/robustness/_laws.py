"""Divergence of cliques given a secret.

A database of a clique of n has probability P(N = j) / C(n, j), so ratios are those of P(N = j).
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.markov import stationary_log_error
from pufferfish._core.numbers.rounding import up
from pufferfish._core.path_divergence import PathRatio, path_ratios
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms.one_query.pairs import place_of
from pufferfish.robustness.distance import OVER_BELIEF, OVER_THETA, SAME, Distance, Others, larger, log_largest
from pufferfish.theta.cliques import Cliques
from pufferfish.theta.joint_distribution import JointDistribution
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.secrets import CountIs, RecordIs, Secret, check_states

__all__ = ["ChainSecret", "between_chains", "between_cliques", "between_joints", "chain_secret"]

# -- Divergence of Markov chains given a secret ----------------------------------------------------------------------

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


# -- Divergence of joint distributions given a secret ----------------------------------------------------------------


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


_Laws = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
"""Law of a clique's N under the belief, and under the member of Θ."""


def between_cliques(member: Cliques, believed: Cliques, wanted: Sequence[Secret] | None) -> Distance | None:
    """Return the largest divergence over the secrets.

    Given how many have it, all databases are equally likely under both laws, so the ratio for a database is that of
    the P(N = j); and those j count that the secret leaves possible.
    """
    worst: Distance | None = None
    for way, direction in enumerate((OVER_THETA, OVER_BELIEF)):
        one, against = (believed, member) if way == 0 else (member, believed)
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
        known, allowed = _clique_conditions(secret, one)
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
        sums = _Sums.of(laws)
        inside = [t for t, mass in enumerate(sums.one) if mass and allowed(t)]
        if inside:
            totals = sum(sums.one[t] for t in inside), sum(m for t, m in enumerate(sums.other) if allowed(t))
            yield log_largest([sums.best[t] for t in inside], totals), str(secret)


@dataclass(frozen=True, slots=True)
class _Sums:
    """How many have it in several cliques: two laws of the number, and of its databases the pair of largest ratio."""

    one: list[Fraction]
    other: list[Fraction]
    best: list[tuple[Fraction, Fraction]]

    @classmethod
    def of(cls, laws: Sequence[_Laws]) -> "_Sums":
        """Add up independent cliques, one after another, exactly."""
        nothing = (Fraction(0), Fraction(1))
        one, other, best = [Fraction(1)], [Fraction(1)], [(Fraction(1), Fraction(1))]
        for law, against in laws:
            size = len(one) + len(law) - 1
            ones, others, bests = [Fraction(0)] * size, [Fraction(0)] * size, [nothing] * size
            for t, j in itertools.product(range(len(one)), range(len(law))):
                ones[t + j] += one[t] * law[j]
                others[t + j] += other[t] * against[j]
                pair = best[t][0] * law[j], best[t][1] * against[j]
                if pair[0] * bests[t + j][1] > bests[t + j][0] * pair[1]:
                    bests[t + j] = pair
            one, other, best = ones, others, bests
        return cls(one, other, best)


def _clique_conditions(
    secret: Secret, cliques: Cliques
) -> tuple[list[tuple[int, int]] | None, Callable[[int], bool] | None]:
    """Return how many members of each clique a secret says to have it and to lack it, and which totals it allows.

    None for the first where it contradicts itself.
    """
    check_states(secret, cliques.states)
    possible: dict[tuple[int, int], set[str]] = {}
    counts: list[CountIs] = []
    for condition in secret.conditions:
        if not isinstance(condition, RecordIs | CountIs):
            raise NotApplicableError(
                f"secret {str(secret)!r}: cliques do not list their databases, so a Fact cannot be looked up; use "
                "RecordIs and CountIs, or a JointDistribution"
            )
        if isinstance(condition, CountIs):
            counts.append(condition)
            continue
        clique, person = place_of(condition.record, cliques.groups, secret, ("clique", "member"))
        allowed = set(condition.states)
        possible[clique, person] = possible.get((clique, person), set(cliques.states)) & allowed
    lacks, has = cliques.states
    known = [
        (
            sum(c == clique and left == {has} for (c, _), left in possible.items()),
            sum(c == clique and left == {lacks} for (c, _), left in possible.items()),
        )
        for clique in range(len(cliques.groups))
    ]
    everybody = sum(cliques.groups)

    def fits(having: int) -> bool:
        number = {has: having, lacks: everybody - having}
        return all(condition.allows(sum(number[s] for s in condition.states)) for condition in counts)

    return known if all(possible.values()) else None, fits if counts else None
