"""A θ of which only what matters is known: the law of the query given each secret, from a function of the user's."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from numbers import Integral
from typing import Any, ClassVar

from pufferfish._base.checked import listed
from pufferfish._base.frozen import FrozenDict, ReadOnly
from pufferfish._base.view import Shown, View
from pufferfish.errors import ModelError
from pufferfish.theta.shown import states_in_words
from pufferfish.theta.states import check_number_of_states, listed_labels


@dataclass(frozen=True, eq=False, init=False)
class GivenLaws(Shown, ReadOnly):
    """Laws of a query given secrets, computed by the user: for models that this package does not have.

    ``laws`` takes the query, and returns a dict from secrets (any names) to the law of its value given that secret: a
    dict from values to probabilities. Values are multiples of the query's unit, tuples where it has several outputs. Or
    it is that dict itself, for one ``query``. It is about so many ``records`` of these ``states``; ``pairs`` of secrets
    shall not be told apart, by default any two.

    Examples
    --------
    >>> import pufferfish as pf
    >>> laws = {"sick": {1: 0.25, 2: 0.75}, "healthy": {0: 0.5, 1: 0.5}}
    >>> theta = pf.GivenLaws(laws, records=2, states=["healthy", "sick"], query=pf.Count("sick"))
    >>> pf.Wasserstein(theta).distance(pf.Count("sick"))
    2.0
    """

    kind: ClassVar[str] = "laws of your own"
    laws: Callable[[Any], Mapping[Any, Mapping[Any, Any]]] | Mapping[Any, Mapping[Any, Any]] = field(repr=False)
    records: int
    states: tuple[str, ...]
    pairs: tuple[tuple[Any, Any], ...] | None
    query: Any

    def __init__(
        self,
        laws: Callable[[Any], Mapping[Any, Mapping[Any, Any]]] | Mapping[Any, Mapping[Any, Any]],
        *,
        records: int,
        states: Sequence[Any],
        pairs: Iterable[tuple[Any, Any]] | None = None,
        query: Any = None,
    ) -> None:
        if not callable(laws) and not isinstance(laws, Mapping):
            raise ModelError(f"laws is {laws!r}, expected a function of the query, or a dict from secrets to laws")
        if isinstance(laws, Mapping) and query is None:
            raise ModelError("query is missing: laws given as a dict belong to one query; name it by query=")
        if isinstance(records, bool) or not isinstance(records, Integral) or records < 1:
            raise ModelError(f"records is {records!r}, expected a whole number of at least 1")
        if isinstance(laws, Mapping):  # what is no law is refused where it is used
            by_secret: Mapping[Any, Any] = laws
            kept = {s: FrozenDict(law) if isinstance(law, Mapping) else law for s, law in by_secret.items()}
            laws = FrozenDict(kept)
        if pairs is not None:
            expected = "a list of pairs of secrets that must not be distinguished"
            each = [
                listed(pair, "pairs", expected, ModelError) for pair in listed(pairs, "pairs", expected, ModelError)
            ]
            if any(len(pair) != 2 for pair in each):
                raise ModelError(f"pairs has an entry that is not a pair, expected {expected}")
            pairs = tuple((a, b) for a, b in each)
        named = listed_labels(states, "states")
        check_number_of_states(named)
        self._keep(laws=laws, records=int(records), query=query, pairs=pairs, states=named)

    def _view(self) -> View:
        facts = {"states": states_in_words(self.states), "records": int(self.records)}
        note = "The laws of the answer are a function of the user's, which no file holds."
        return View("Laws of a query that are given", facts, notes=[note])

    @property
    def groups(self) -> tuple[int, ...]:
        """Numbers of records that may depend on each other: all of them."""
        return (self.records,)

    def laws_of(self, query: Any) -> Mapping[Any, Mapping[Any, Any]]:
        """Return the law of a query's value given each secret.

        Raises ModelError if the function returns anything but a dict of dicts.
        """
        if self.query is not None and query != self.query:
            raise ModelError(f"the laws are those of {self.query}, not of {query}: give a function of the query")
        by_secret: Any = self.laws(query) if callable(self.laws) else self.laws
        laws: list[Any] = [*by_secret.values()] if isinstance(by_secret, Mapping) else []
        if not laws or not all(isinstance(law, Mapping) and len(law) for law in laws):
            raise ModelError("laws gives no dict from secrets to dicts from values to probabilities")
        return dict(by_secret)

    def pairs_of(self, secrets: Iterable[Any]) -> tuple[tuple[Any, Any], ...]:
        """Return the pairs of secrets that shall not be told apart.

        Raises ModelError if a pair names a secret without a law.
        """
        known = list(secrets)
        for pair in self.pairs or ():
            for secret in pair:
                if secret not in known:
                    raise ModelError(f"pairs names the secret {secret!r}, and laws gives no law for it")
        return tuple(combinations(known, 2)) if self.pairs is None else self.pairs
