"""Divergence of cliques given a secret.

A database of a clique of n has probability P(N = j) / C(n, j), so ratios are those of P(N = j).
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pufferfish._core.numbers.rounding import up
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms.one_query.pairs import place_of
from pufferfish.robustness.distance import OVER_BELIEF, OVER_THETA, Distance, Others, larger, log_largest
from pufferfish.theta.cliques import Cliques
from pufferfish.theta.secrets import CountIs, RecordIs, Secret, check_states

__all__ = ["between_cliques"]

_Laws = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
"""Law of a clique's N under the belief, and under the member of Θ."""


def between_cliques(member: Cliques, believed: Cliques, wanted: Sequence[Secret] | None) -> Distance | None:
    """Return the largest divergence over the secrets.

    Given how many have it, all databases are equally likely under both laws, so the ratio for a database is that of
    the P(N = j); and those j count that the secret leaves possible.
    """
    worst: Distance | None = None
    for way, direction in enumerate((OVER_THETA, OVER_BELIEF)):
        one, other = (believed, member) if way == 0 else (member, believed)
        found = _each_member(one, other) if wanted is None else _each_clique_secret(one, other, wanted)
        for value, words in found:
            worst = larger(worst, Distance(value, words, direction))
    return worst


def _each_member(one: Cliques, other: Cliques) -> Iterable[tuple[float, str]]:
    """Yield the divergences given that a member has it, or has not, and the secrets in words; alike cliques once."""
    kinds: list[_Laws] = list(zip(one.laws, other.laws, strict=True))
    whole = {laws: log_largest(zip(*laws, strict=True)) for laws in set(kinds)}
    others = Others(whole, Counter(kinds))
    for clique in (kinds.index(laws) for laws in dict.fromkeys(kinds)):
        for has_it, state in enumerate(one.states):
            law = one.given_member(clique, has_it)
            if any(law):
                given = log_largest(zip(law, other.given_member(clique, has_it), strict=True))
                yield others.plus(given, kinds[clique]), str(RecordIs((clique, 0), state))


def _each_clique_secret(one: Cliques, other: Cliques, wanted: Sequence[Secret]) -> Iterable[tuple[float, str]]:
    for secret in wanted:
        known, allowed = _clique_conditions(secret, one)
        if known is None:
            continue
        laws = [
            (one.given_members(c, having, lacking), other.given_members(c, having, lacking))
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
    said: dict[tuple[int, int], set[str]] = {}
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
        said[clique, person] = said.get((clique, person), set(cliques.states)) & allowed
    lacks, has = cliques.states
    known = [
        (
            sum(c == clique and left == {has} for (c, _), left in said.items()),
            sum(c == clique and left == {lacks} for (c, _), left in said.items()),
        )
        for clique in range(len(cliques.groups))
    ]
    everybody = sum(cliques.groups)

    def fits(having: int) -> bool:
        number = {has: having, lacks: everybody - having}
        return all(condition.allows(sum(number[s] for s in condition.states)) for condition in counts)

    return known if all(said.values()) else None, fits if counts else None
