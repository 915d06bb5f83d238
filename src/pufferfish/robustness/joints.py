"""Divergence of joint distributions given a secret: every database in turn, in exact fractions."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from pufferfish.robustness.distance import OVER_BELIEF, OVER_THETA, Distance, larger, log_largest
from pufferfish.theta.joint_distribution import JointDistribution
from pufferfish.theta.secrets import RecordIs, Secret

__all__ = ["between_joints"]


def between_joints(
    member: JointDistribution, believed: JointDistribution, wanted: Sequence[Secret] | None
) -> Distance | None:
    """Return the largest divergence over the secrets, database by database."""
    ours = dict(zip(member.rows, member.probabilities, strict=True))
    theirs = dict(zip(believed.rows, believed.probabilities, strict=True))
    worst: Distance | None = None
    for words, rows in _rows_of_each(member, believed, wanted):
        some, others = ({row: law[row] for row in rows if row in law} for law in (theirs, ours))
        for direction, one, other in ((OVER_THETA, some, others), (OVER_BELIEF, others, some)):
            if one:
                inside = sum(one.values()), sum(other.values())
                value = log_largest([(p, other.get(row, Fraction(0))) for row, p in one.items()], inside)
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
