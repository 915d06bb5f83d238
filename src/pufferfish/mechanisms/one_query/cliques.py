"""Laws of the number of people who have it, in independent exchangeable cliques, given secrets; in closed form."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from pufferfish._core.laws.law import Law, sum_of
from pufferfish._core.numbers.wide import Wide
from pufferfish.mechanisms.one_query._part_pairs import About, LawPair, place_of, records_of
from pufferfish.queries import LinearQuery
from pufferfish.theta.cliques import Cliques
from pufferfish.theta.secrets import CountIs, Secret, SecretPair, check_states

__all__ = ["clique_pairs"]


def clique_pairs(
    index: int, cliques: Cliques, query: LinearQuery, secrets: Sequence[SecretPair] | None
) -> Iterator[LawPair]:
    """Yield the pairs of laws of the secrets, or of having it or not for a member of every kind of clique."""
    # two states are always on one line; counting those who have it or those who do not is all the same
    line = query.line
    assert line is not None
    if secrets is not None:
        for pair in secrets:
            mu, nu = (_given(cliques, secret) for secret in pair)
            if mu is not None and nu is not None:
                names = (str(pair[0]), str(pair[1]))
                yield LawPair(mu, nu, About(line.norm, index, max(cliques.groups), None, names))
        return
    kinds = Counter(cliques.laws)
    for law in kinds:
        clique = cliques.laws.index(law)
        rest = sum_of((Law.exact(*_trimmed(other)), times - (other == law)) for other, times in kinds.items())
        found = [cliques.given_member(clique, has_it) for has_it in (0, 1)]
        if all(any(masses) for masses in found):
            mu, nu = (sum_of([(Law.exact(*_trimmed(masses)), 1)], rest) for masses in found)
            yield LawPair(mu, nu, About(line.norm, index, len(law) - 1, None, (cliques.states[0], cliques.states[1])))


def _given(cliques: Cliques, secret: Secret) -> Law | None:
    """Return the law of the number of people who have it, given a secret; None if that is impossible."""
    check_states(secret, cliques.states)
    having: dict[int, set[int]] = {}
    lacking: dict[int, set[int]] = {}
    for condition in records_of(secret, cliques.kind):
        c, member = place_of(condition.record, cliques.groups, secret, ("clique", "member"))
        has = [state == cliques.states[1] for state in condition.states]
        if len(has) == 1:
            (having if has[0] else lacking).setdefault(c, set()).add(member)
    parts: list[Law] = []
    for c in range(len(cliques.laws)):
        yes, no = having.get(c, set()), lacking.get(c, set())
        masses = cliques.given_members(c, len(yes), len(no))
        if yes & no or not any(masses):
            return None
        parts.append(Law.exact(*_trimmed(masses)))
    total = sum_of((part, 1) for part in parts)
    for condition in secret.conditions:
        if isinstance(condition, CountIs):
            people, ill = sum(cliques.groups), condition.states[0] == cliques.states[1]
            numbers = [people if len(condition.states) == 2 else total.start + n for n in range(total.size)]
            kept = np.array([condition.allows(n if ill or len(condition.states) == 2 else people - n) for n in numbers])
            if not (kept & total.masses.positive).any():
                return None
            levels = np.where(kept, total.masses.levels, -(2**40))
            total = Law.of(total.start, Wide(np.where(kept, total.masses.values, 0.0), levels), total.log_error)
    return total


def _trimmed(masses: Sequence[Fraction]) -> tuple[int, Sequence[Fraction]]:
    positive = [j for j, mass in enumerate(masses) if mass]
    return positive[0], masses[positive[0] : positive[-1] + 1]
