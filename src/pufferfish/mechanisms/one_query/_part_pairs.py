"""Pairs of laws of a query, given two secrets that shall not be told apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pufferfish._core.laws.law import Law, VectorLaw
from pufferfish._core.laws.of_chains import LawFamily
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.theta.secrets import CountIs, Fact, RecordIs, Secret

__all__ = ["About", "LawPair", "counts_of", "place_of", "records_of"]


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
        Number of records that may depend on each other, those that the query does not read among them.
    node : int, str or None
        The record that both secrets are about, if it is one.
    secrets : tuple of str
        The two values of the record, or the two secrets in words.
    gap : float or None
        Where a continuum was searched: how far the noise is above what one member needs, as a share.
    """

    norm: int
    theta: int
    length: int
    node: int | str | None
    secrets: tuple[str, str]
    gap: float | None = None


@dataclass(frozen=True, slots=True)
class LawPair:
    """The laws of a query given two secrets, under one θ: of a number, one for each first state, or of a vector."""

    mu: Law | LawFamily | VectorLaw
    nu: Law | LawFamily | VectorLaw
    about: About

    @property
    def size(self) -> int:
        """Numbers kept."""
        return self.mu.size + self.nu.size


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
                f"secret {str(secret)!r} is a function of the database, and {kind} do not list their databases: "
                "state it by RecordIs and CountIs, or use a JointDistribution"
            )
    return [c for c in secret.conditions if isinstance(c, RecordIs)]


def place_of(record: Any, sizes: Sequence[int], secret: Secret, words: tuple[str, str]) -> tuple[int, int]:
    """Return the group and the place in it that a record's name means.

    Parameters
    ----------
    record : int or (int, int)
        The place where there is one group, (group, place) where there are several.
    sizes : sequence of int
        Numbers of records in the groups.
    secret : Secret
        Whose record it is.
    words : pair of str
        What a group and a place are called.

    Raises
    ------
    ParameterError
        If there is no such record.
    """
    pair: tuple[Any, ...] = record if isinstance(record, tuple) else (0, record)
    given = len(pair) == 2 and (isinstance(record, tuple) or len(sizes) == 1)
    if given and all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in pair):
        group, place = int(pair[0]), int(pair[1])
        if 0 <= group < len(sizes) and 0 <= place < sizes[group]:
            return group, place
    what = f"a {words[1]} from 0 to {sizes[0] - 1}" if len(sizes) == 1 else f"({words[0]}, {words[1]})"
    raise ParameterError(f"secret {str(secret)!r}: there is no record {record!r}; expected {what}")
