"""Pairs of laws of a query, given two secrets that shall not be told apart."""

from collections.abc import Sequence
from dataclasses import dataclass

from pufferfish.core.law import Law, VectorLaw
from pufferfish.errors import NotApplicableError
from pufferfish.models.secrets import CountIs, Fact, RecordIs, Secret

__all__ = ["About", "LawPair", "counts_of", "records_of"]


@dataclass(frozen=True, slots=True)
class About:
    """What a pair of laws is about.

    Parameters
    ----------
    norm : int
        L1 length of the outputs' move when the number that the laws are about moves by 1.
    theta : int
        Index of θ.
    length : int
        Number of records that may depend on each other.
    node : int or None
        The record that both secrets are about, if it is one.
    secrets : tuple of str
        The two values of the record, or the two secrets in words.
    """

    norm: int
    theta: int
    length: int
    node: int | None
    secrets: tuple[str, str]


@dataclass(frozen=True, slots=True)
class LawPair:
    """The laws of a query given two secrets, under one θ: of a number, or of a vector."""

    mu: Law | VectorLaw
    nu: Law | VectorLaw
    about: About

    @property
    def size(self) -> int:
        """Numbers kept."""
        return self.mu.masses.size + self.nu.masses.size


def counts_of(secrets: Sequence[Secret]) -> list[CountIs]:
    """Return the conditions on counts in some secrets."""
    return [c for secret in secrets for c in secret.conditions if isinstance(c, CountIs)]


def records_of(secret: Secret, kind: str) -> list[RecordIs]:
    """Return the conditions of a secret on single records.

    Raises
    ------
    NotApplicableError
        If the secret is a fact in a function, and the model lists no databases.
    """
    for condition in secret.conditions:
        if isinstance(condition, Fact):
            raise NotApplicableError(
                f"secret {str(secret)!r} is a function of the database, and {kind} do not list their databases: state it "
                "by RecordIs and CountIs, or use a JointDistribution"
            )
    return [c for c in secret.conditions if isinstance(c, RecordIs)]
