"""Laws that the user computes."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from pufferfish.errors import ModelError
from pufferfish.mechanisms.one_query._part_pairs import About, LawPair
from pufferfish.mechanisms.one_query.lines import Values, law_of_values, line_through
from pufferfish.queries import BoundQuery, Query
from pufferfish.theta.given_laws import GivenLaws
from pufferfish.theta.joint_distribution import exact_law, exact_number

__all__ = ["given_pairs"]


def given_pairs(index: int, theta: GivenLaws, query: Query, bound: BoundQuery) -> Iterator[LawPair]:
    """Yield the pairs of laws that a user's function gives for a query."""
    given = theta.laws_of(query)
    laws = {secret: _masses(secret, law, bound) for secret, law in given.items()}
    line = line_through([value for law in laws.values() for value in law])
    for a, b in theta.pairs_of(given):
        mu, nu = (law_of_values(laws[secret], line) for secret in (a, b))
        yield LawPair(mu, nu, About(line.norm if line else 1, index, theta.groups[0], None, (str(a), str(b))))


def _masses(secret: Any, law: Mapping[Any, Any], bound: BoundQuery) -> Values:
    probabilities = exact_law(list(law.values()), f"law of {secret!r}")
    found: dict[tuple[int, ...], Fraction] = {}
    for value, mass in zip(law, probabilities, strict=True):
        outputs: list[Any] = list(value) if isinstance(value, tuple) else [value]
        numbers = [exact_number(v) for v in outputs]
        if len(numbers) != len(bound.labels):
            raise ModelError(f"law of {secret!r}: {value!r} has {len(numbers)} outputs, the query {len(bound.labels)}")
        # floats such as 1/3 are the nearest to a multiple of the unit, not one
        whole = [None if n is None else round(n / bound.unit) for n in numbers]
        if any(
            w is None or n is None or abs(n / bound.unit - w) > Fraction(1, 10**6)
            for w, n in zip(whole, numbers, strict=True)
        ):
            raise ModelError(f"law of {secret!r}: {value!r} is no multiple of the query's unit {float(bound.unit):g}")
        key = tuple(w for w in whole if w is not None)
        if mass:
            found[key] = found.get(key, Fraction(0)) + mass
    return found
