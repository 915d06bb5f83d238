"""Laws of any query on explicit joint distributions, given secrets, in exact fractions."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from pufferfish._core.laws.law import Law, VectorLaw
from pufferfish.mechanisms.one_query._part_pairs import About, LawPair
from pufferfish.mechanisms.one_query.lines import OnLine, law_of_values, line_through
from pufferfish.queries import FunctionQuery, LinearQuery
from pufferfish.theta.joint_distribution import JointDistribution
from pufferfish.theta.secrets import RecordIs, SecretPair

__all__ = ["joint_pairs"]


def joint_pairs(
    index: int, joint: JointDistribution, query: LinearQuery | FunctionQuery, secrets: Sequence[SecretPair] | None
) -> Iterator[LawPair]:
    """Yield the pairs of laws of the secrets, or of any two values of any record; impossible secrets are left out."""
    order = {state: x for x, state in enumerate(joint.states)}
    if isinstance(query, FunctionQuery):
        values = [query.function(row) for row in joint.databases]
    else:
        values = [query.value([order[state] for state in row]) for row in joint.rows]
    line = line_through(values)
    length = len(joint.variables)
    if secrets is not None:
        for pair in secrets:
            mu, nu = (_law(joint, values, line, joint.rows_where(secret)) for secret in pair)
            if mu is not None and nu is not None:
                yield LawPair(
                    mu, nu, About(line.norm if line else 1, index, length, None, (str(pair[0]), str(pair[1])))
                )
        return
    for column, variable in enumerate(joint.variables):
        laws = {
            state: _law(joint, values, line, joint.rows_where(RecordIs(variable, state)))
            for state in joint.values_of(column)
        }
        for a, b in combinations(laws, 2):
            mu, nu = laws[a], laws[b]
            if mu is not None and nu is not None:
                yield LawPair(mu, nu, About(line.norm if line else 1, index, length, column, (a, b)))


def _law(
    joint: JointDistribution, values: Sequence[tuple[int, ...]], line: OnLine | None, rows: Sequence[int]
) -> Law | VectorLaw | None:
    masses: dict[tuple[int, ...], Fraction] = {}
    for i in rows:
        masses[values[i]] = masses.get(values[i], Fraction(0)) + joint.probabilities[i]
    return law_of_values(masses, line) if masses else None
