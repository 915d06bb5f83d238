"""Secrets: facts about the data that shall not be told apart (Section 2.1, the sets S and Q).

A secret is a condition on the records; conditions are joined by ``&``. What is promised is said by *pairs* of secrets:
whatever is released is almost equally likely under both. Where nothing is said, the pairs are any two values of any
record.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from pufferfish._base.checked import is_list
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.words import did_you_mean, names_of
from pufferfish.errors import ParameterError, printable
from pufferfish.theta.states import state_label

SecretPair = tuple["Secret", "Secret"]


class Secret(ABC):
    """A fact about the data; facts are joined by ``&``."""

    @property
    def conditions(self: Any) -> "tuple[RecordIs | CountIs | Fact, ...]":
        """The conditions that hold together: the one that it is, or those that were joined."""
        return (self,)

    def __and__(self, other: "Secret") -> "Secret":
        return _Joined((*self.conditions, *other.conditions))

    def __bool__(self) -> bool:
        raise ParameterError("a secret has no truth value: join secrets with &, not with 'and'")

    @abstractmethod
    def holds(self, row: Mapping[Any, str]) -> bool:
        """Whether it holds in a database, given as the state of every record by its name."""


def _labels(states: Any) -> tuple[str, ...]:
    entries: list[Any] = list(states) if is_list(states) or isinstance(states, set | frozenset) else [states]
    labels = tuple(dict.fromkeys(state_label(s) for s in entries))
    if not labels:
        raise ParameterError("a secret names no state: give at least one")
    return labels


@dataclass(frozen=True, slots=True, init=False)
class RecordIs(ReadOnly, Secret):
    """One record has a value, or one of several.

    ``record`` is its step in a chain (0-based), (chain, step) where there are several; (clique, member); or the name of
    a variable of a network or joint distribution. ``states`` is a state, or several.

    Examples
    --------
    >>> print(RecordIs(3, "flu"), "/", RecordIs("Alice", ["flu", "cold"]))
    record 3 is flu / record Alice is flu or cold
    """

    record: Any
    states: tuple[str, ...]

    def __init__(self, record: Any, states: Any) -> None:
        self._keep(record=tuple(record) if isinstance(record, list) else record, states=_labels(states))

    def holds(self, row: Mapping[Any, str]) -> bool:
        """Whether it holds in a database."""
        return row[self.record] in self.states

    def __str__(self) -> str:
        return printable(f"record {self.record} is {' or '.join(self.states)}")


@dataclass(frozen=True, slots=True, init=False)
class CountIs(ReadOnly, Secret):
    """The secret that the number of records in some states lies in a range, whose ends, one or both, are included.

    Examples
    --------
    >>> print(CountIs("flu", at_least=4))
    at least 4 records are flu
    """

    states: tuple[str, ...]
    at_least: int | None
    at_most: int | None

    def __init__(self, states: Any, at_least: int | None = None, at_most: int | None = None) -> None:
        if at_least is None and at_most is None:
            raise ParameterError("CountIs gives no range: say at_least, at_most, or both")
        for name, bound in (("at_least", at_least), ("at_most", at_most)):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, Integral)):
                raise ParameterError(f"{name} is {bound!r}, expected a whole number of records")
            self._keep(**{name: None if bound is None else int(bound)})
        self._keep(states=_labels(states))

    def allows(self, count: int) -> bool:
        """Whether a number of records lies in the range."""
        return (self.at_least is None or count >= self.at_least) and (self.at_most is None or count <= self.at_most)

    def holds(self, row: Mapping[Any, str]) -> bool:
        """Whether it holds in a database."""
        return self.allows(sum(state in self.states for state in row.values()))

    def __str__(self) -> str:
        if self.at_most is None:
            some = f"at least {self.at_least}"
        elif self.at_least is None:
            some = f"at most {self.at_most}"
        else:
            some = f"{self.at_least}" if self.at_least == self.at_most else f"{self.at_least} to {self.at_most}"
        return printable(f"{some} records are {' or '.join(self.states)}")


@dataclass(frozen=True, slots=True)
class Fact(ReadOnly, Secret):
    """Any fact, as a function of a database; for models that list their databases.

    Parameters
    ----------
    description : str
        The fact in words.
    function : callable
        Takes a dict from the records' names to their states, returns whether the fact holds.

    Examples
    --------
    >>> print(Fact("Alice and Bob have the same", lambda row: row["Alice"] == row["Bob"]))
    Alice and Bob have the same
    """

    description: str
    function: Callable[[Mapping[Any, str]], Any]

    def __post_init__(self) -> None:
        if not isinstance(self.description, str) or not callable(self.function):
            raise ParameterError(
                "Fact takes the fact in words, and a function from a dict of states to whether it holds"
            )

    def holds(self, row: Mapping[Any, str]) -> bool:
        """Whether it holds in a database."""
        return bool(self.function(dict(row)))

    def __str__(self) -> str:
        return self.description


@dataclass(frozen=True, slots=True)
class _Joined(ReadOnly, Secret):
    parts: tuple[RecordIs | CountIs | Fact, ...]

    @property
    def conditions(self) -> tuple[RecordIs | CountIs | Fact, ...]:
        """All conditions."""
        return self.parts

    def holds(self, row: Mapping[Any, str]) -> bool:
        """Whether all of them hold."""
        return all(part.holds(row) for part in self.parts)

    def __str__(self) -> str:
        return " and ".join(str(part) for part in self.parts)


def check_states(secret: Secret, states: Sequence[str]) -> None:
    """Refuse a secret that names a state which no record can have."""
    for condition in secret.conditions:
        for state in () if isinstance(condition, Fact) else condition.states:
            if state not in states:
                known, hint = names_of(states), did_you_mean(state, states)
                raise ParameterError(f"secret {str(secret)!r}: there is no state {state!r}.{hint} States: {known}")


def as_secret_pairs(secrets: Any) -> tuple[SecretPair, ...] | None:
    """Return pairs of secrets, checked; None (any two values of any record) stays None."""
    if secrets is None:
        return None
    pairs: list[Any] = list(secrets) if is_list(secrets) else [secrets]
    if len(pairs) == 2 and all(isinstance(secret, Secret) for secret in pairs):
        pairs = [pairs]
    for i, pair in enumerate(pairs):
        if not (isinstance(pair, Sequence) and len(pair) == 2 and all(isinstance(s, Secret) for s in pair)):
            raise ParameterError(
                f"secrets[{i}] is not a pair of secrets: expected pairs that must not be distinguished, such as "
                '(RecordIs(0, "flu"), RecordIs(0, "healthy"))'
            )
    if not pairs:
        raise ParameterError(
            "secrets is empty: give at least one pair, or leave it out for any two values of any record"
        )
    return tuple((pair[0], pair[1]) for pair in pairs)
