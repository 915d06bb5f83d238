"""θ for small problems: a law of whole databases, cliques of exchangeable people, or only a query's law given secrets.

Probabilities are exact fractions (floats are taken as the decimals they print as), so that what a secret makes of them,
and of the law of any query, is exact too.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from numbers import Integral, Rational, Real
from typing import Any, ClassVar

import numpy as np

from pufferfish._base.checked import is_list, listed, whole_number
from pufferfish._base.frozen import FrozenDict, ReadOnly
from pufferfish._base.view import MOST_COLUMNS, MOST_ROWS, Grid, Shown, View, counted
from pufferfish._base.words import did_you_mean, names_of
from pufferfish.errors import ModelError, ParameterError
from pufferfish.theta.secrets import RecordIs, Secret, check_states
from pufferfish.theta.shown import states_in_words
from pufferfish.theta.states import check_number_of_states, listed_labels, listed_names, refuse_missing, state_label

# -- Probabilities as exact fractions --------------------------------------------------------------------------------

TOLERANCE = Fraction(1, 10**9)
_HUGE = Fraction(10**300)  # what a message shows of a number that no double can hold


def exact_number(value: Any) -> Fraction | None:
    """Return a finite number exactly, a float as the shortest decimal that prints as it; None for anything else.

    >>> exact_number(0.1) + exact_number(0.2) == exact_number(0.3)
    True
    """
    if isinstance(value, bool | np.bool_ | np.timedelta64):  # a slip, though Python takes it for 0 or 1
        return None
    try:
        if isinstance(value, Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, Decimal):
            return Fraction(value)
        if isinstance(value, Real):
            return Fraction(repr(float(value)))
    except (ValueError, OverflowError):
        pass
    return None


def exact_law(probabilities: Sequence[Any], name: str) -> tuple[Fraction, ...]:
    """Return probabilities as exact fractions that sum to 1, divided by their sum."""
    law: list[Fraction] = []
    for i, value in enumerate(probabilities):
        number = exact_number(value)
        if number is None or number < 0:
            raise ModelError(f"{name}[{i}] is {value!r}, expected a probability between 0 and 1")
        law.append(number)
    total = sum(law, Fraction(0))
    if abs(total - 1) > TOLERANCE:
        shown = float(min(total, _HUGE))
        raise ModelError(f"{name} sum to {shown:.12g}, expected 1 (tolerance 1e-9): divide counts by their sum")
    return tuple(p / total for p in law)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class JointDistribution(Shown, ReadOnly):
    """An explicit finite law of the records X_1 … X_n; read-only; a :class:`ModelError` if it is none.

    Parameters
    ----------
    values : array_like, shape (m, n)
        One database a row: the state of every record. Rows may repeat; their probabilities add.
    probabilities : sequence of float or Fraction, shape (m,)
        Their probabilities; they sum to 1 (tolerance 1e-9) and are divided by their sum.
    variables : sequence, optional
        Names of the n records, by default 0, 1, …
    states : sequence, optional
        All states, in the order in which histograms list them; by default those that occur, as they occur.

    Examples
    --------
    >>> joint = JointDistribution([["no", "no"], ["yes", "yes"], ["yes", "no"]], [0.5, 0.3, 0.2])
    >>> joint.probability(RecordIs(1, "no"))
    Fraction(7, 10)
    """

    kind: ClassVar[str] = "joint distributions"
    values: tuple[tuple[str, ...], ...]
    probabilities: tuple[Fraction, ...]
    variables: tuple[Any, ...]
    states: tuple[str, ...]

    def __init__(
        self,
        values: Any,
        probabilities: Sequence[Any],
        *,
        variables: Sequence[Any] | None = None,
        states: Sequence[Any] | None = None,
    ) -> None:
        if hasattr(values, "to_numpy"):  # a frame is iterated by columns
            values = values.to_numpy()
        databases = listed(values, "values", "rows of states, one for each database", ModelError)
        rows = [_labels_of(row, i) for i, row in enumerate(databases)]
        if not rows or not rows[0]:
            raise ModelError("values is empty: give at least one row with at least one record")
        for i, row in enumerate(rows):
            if len(row) != len(rows[0]):
                raise ModelError(
                    f"values[{i}] has {len(row)} records, values[0] has {len(rows[0])}: each row is a whole database"
                )
        given = listed(probabilities, "probabilities", "one probability per row", ModelError)
        masses = exact_law(given, "probabilities")
        if len(masses) != len(rows):
            raise ModelError(f"there are {len(masses)} probabilities for {len(rows)} rows of values: one per row")
        merged: dict[tuple[str, ...], Fraction] = {}
        for row, mass in zip(rows, masses, strict=True):
            if mass:
                merged[row] = merged.get(row, Fraction(0)) + mass
        names = listed_names(range(len(rows[0])) if variables is None else variables, "variables", '["Ann", "Bob"]')
        if len(names) != len(rows[0]):
            raise ModelError(f"variables has {len(names)} names for {len(rows[0])} records: one each, distinct")
        seen = tuple(dict.fromkeys(state for row in rows for state in row))
        known = seen if states is None else listed_labels(states, "states")
        check_number_of_states(known)
        for state in seen:
            if state not in known:
                raise ModelError(f"values has the state {state!r}, which states does not list")
        self._keep(values=tuple(merged), probabilities=tuple(merged.values()), variables=names, states=known)

    def __repr__(self) -> str:
        return f"JointDistribution(<{len(self.rows)} databases of {len(self.variables)} records>)"

    def _view(self) -> View:
        likeliest = sorted(range(len(self.values)), key=lambda i: -self.probabilities[i])[:MOST_ROWS]
        rows = [[", ".join(self.values[i][:MOST_COLUMNS]), float(self.probabilities[i])] for i in likeliest]
        heads = [", ".join(map(state_label, self.variables[:MOST_COLUMNS])), "probability"]
        return View(repr(self), None, [Grid("Databases, the likeliest first", heads, rows, long=len(self.values))])

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The databases that are possible, each once: the state of every record."""
        return self.values

    @property
    def groups(self) -> tuple[int, ...]:
        """Numbers of records that may depend on each other: all of them."""
        return (len(self.variables),)

    @cached_property
    def databases(self) -> tuple[Mapping[Any, str], ...]:
        """Every database as a dict from the records' names to their states."""
        return tuple(FrozenDict(zip(self.variables, row, strict=True)) for row in self.rows)

    def rows_where(self, secret: Secret) -> tuple[int, ...]:
        """Return the indices of the rows in which a secret holds; ParameterError if it names what is not there."""
        check_states(secret, self.states)
        for condition in secret.conditions:
            if isinstance(condition, RecordIs) and condition.record not in self.variables:
                hint, known = did_you_mean(condition.record, self.variables), names_of(self.variables)
                raise ParameterError(
                    f"secret {str(secret)!r}: there is no record {condition.record!r}.{hint} Records: {known}"
                )
        return tuple(i for i, row in enumerate(self.databases) if secret.holds(row))

    def probability(self, secret: Secret) -> Fraction:
        """Probability of a secret."""
        return sum((self.probabilities[i] for i in self.rows_where(secret)), Fraction(0))

    def values_of(self, variable: int) -> tuple[str, ...]:
        """States that the record in a column can have, in the order of ``states``."""
        seen = {row[variable] for row in self.rows}
        return tuple(state for state in self.states if state in seen)


def _labels_of(row: Any, i: int) -> tuple[str, ...]:
    if not is_list(row):
        raise ModelError(f"values[{i}] is {row!r}, expected a row: the state of every record")
    states: list[Any] = list(row)
    for j, state in enumerate(states):
        refuse_missing(state, f"values[{i}][{j}]")
    return tuple(map(state_label, states))


# -- A θ of which only what matters is known: the law of the query given each secret -----------------------------------


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

    def check_query(self, query: Any) -> None:
        """Refuse a query whose laws are not known."""
        if self.query is not None and query != self.query:
            raise ModelError(f"the laws are those of {self.query}, not of {query}: give a function of the query")

    def laws_of(self, query: Any) -> Mapping[Any, Mapping[Any, Any]]:
        """Return the law of a query's value given each secret; ModelError if that is no dict of dicts."""
        self.check_query(query)
        by_secret: Any = self.laws(query) if callable(self.laws) else self.laws
        laws: list[Any] = [*by_secret.values()] if isinstance(by_secret, Mapping) else []
        if not laws or not all(isinstance(law, Mapping) and len(law) for law in laws):
            raise ModelError("laws gives no dict from secrets to dicts from values to probabilities")
        return dict(by_secret)

    def pairs_of(self, secrets: Iterable[Any]) -> tuple[tuple[Any, Any], ...]:
        """Return the pairs of secrets that shall not be told apart; ModelError if one has no law."""
        known = list(secrets)
        for pair in self.pairs or ():
            for secret in pair:
                if secret not in known:
                    raise ModelError(f"pairs names the secret {secret!r}, and laws gives no law for it")
        return tuple(combinations(known, 2)) if self.pairs is None else self.pairs


# -- Independent cliques of exchangeable people: the paper's flu models (Sections 2.2 and 3) ---------------------------


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Cliques(Shown, ReadOnly):
    """Independent cliques of exchangeable people, each of whom has something (such as flu) or not.

    Given the number N of infected people of a clique, every set of N people is equally likely: a clique is the law of N
    alone, and everything follows from it in closed form, whatever its size.

    Parameters
    ----------
    laws : sequence of sequences of float or Fraction
        For each clique of n people the probabilities P(N = j), j = 0 … n, of how many have it. One such sequence is one
        clique.
    states : pair, default ("0", "1")
        Names of not having it and of having it. What does not fit is a :class:`ModelError`.

    Examples
    --------
    The paper's example, and a union of cliques with P(N = j) ∝ e^{2j}:

    >>> flu = Cliques([0.1, 0.15, 0.5, 0.15, 0.1], states=["healthy", "flu"])
    >>> [float(p) for p in flu.given_member(0, 1)]
    [0.0, 0.075, 0.5, 0.225, 0.2]
    >>> import math
    >>> Cliques.of_sizes([4, 4, 2], lambda n: [math.exp(2 * j) for j in range(n + 1)]).groups
    (4, 4, 2)
    """

    kind: ClassVar[str] = "cliques"
    laws: tuple[tuple[Fraction, ...], ...]
    states: tuple[str, ...]

    def __init__(self, laws: Sequence[Any], *, states: Sequence[Any] = ("0", "1")) -> None:
        expected = "P(N = 0), …, P(N = n) of each clique, such as [[0.5, 0.25, 0.25]]"
        entries = listed(laws, "laws", expected, ModelError)
        if entries and not is_list(entries[0]):
            entries = [entries]
        if not entries:
            raise ModelError("laws is empty: give P(N = j), j = 0 … n, of at least one clique")
        laws = tuple(
            exact_law(listed(law, f"laws[{c}]", "probabilities", ModelError), f"laws[{c}]")
            for c, law in enumerate(entries)
        )
        for c, law in enumerate(laws):
            if len(law) < 2:
                raise ModelError(f"laws[{c}] has {len(law)} entries, expected P(N = 0), …, P(N = n) with n at least 1")
        self._keep(laws=laws, states=listed_labels(states, "states"))
        if len(self.states) != 2:
            raise ModelError(
                f"states has {len(self.states)} names, expected two: the state of people who do not have it, then of "
                "people who have it"
            )

    def __repr__(self) -> str:
        return f"Cliques(<{counted(len(self.laws), 'clique')} of {counted(sum(self.groups), 'person', 'people')}>)"

    def _view(self) -> View:
        sizes = [[i, n] for i, n in enumerate(self.groups)]
        law = [[j, float(p)] for j, p in enumerate(self.laws[0])]
        caption = f"The first clique: how many of its {self.groups[0]} people are {self.states[1]!r}, and how probable"
        title = f"{counted(len(self.laws), 'clique')} of {counted(sum(self.groups), 'person', 'people')}"
        grids = [Grid("Sizes", ["clique", "people"], sizes), Grid(caption, ["people", "probability"], law)]
        return View(title, {"states": ", ".join(self.states)}, grids)

    @classmethod
    def of_sizes(
        cls, sizes: Iterable[int], law: Callable[[int], Sequence[Any]], *, states: Sequence[Any] = ("0", "1")
    ) -> "Cliques":
        """Return cliques of given sizes, ``law(n)`` giving n + 1 weights of N = 0 … n, of any sum."""
        if not callable(law):
            raise ModelError(f"law is {law!r}, expected a function from a size n to n + 1 weights")
        laws: dict[int, tuple[Fraction, ...]] = {}
        whole = [_size(n) for n in listed(sizes, "sizes", "whole numbers such as [3, 5]", ModelError)]
        for n in dict.fromkeys(whole):
            given = map(exact_number, listed(law(n), f"law({n})", f"{n + 1} weights", ModelError))
            weights = [weight for weight in given if weight is not None]
            if n < 1 or len(weights) != n + 1 or min(weights) < 0 or not sum(weights):
                raise ModelError(
                    f"law({n}) gives {len(weights)} numbers, expected {n + 1}, none negative and not all 0: N = 0 … {n}"
                )
            laws[n] = tuple(w / sum(weights) for w in weights)
        return cls([laws[n] for n in whole], states=states)

    @property
    def groups(self) -> tuple[int, ...]:
        """Sizes of the cliques."""
        return tuple(len(law) - 1 for law in self.laws)

    def given_member(self, clique: int, has_it: int) -> tuple[Fraction, ...]:
        """Law of N given that one member has it (1) or not (0), ∝ j P(N = j) or (n − j) P(N = j), or all 0."""
        return self.given_members(clique, has_it, 1 - has_it)

    def given_members(self, clique: int, having: int, lacking: int) -> tuple[Fraction, ...]:
        """Law of a clique's N given that ``having`` named members have it and ``lacking`` others do not.

        P(N = j | …) ∝ P(N = j) · j (j−1) … (j−having+1) · (n−j) … (n−j−lacking+1); all 0 if that is impossible.
        """
        law = self.laws[clique]
        n = len(law) - 1
        # n (n − 1) … of so many factors is how many ways there are to choose them in turn
        weights = [mass * math.perm(j, having) * math.perm(n - j, lacking) for j, mass in enumerate(law)]
        total = sum(weights, Fraction(0))
        return tuple(w / total for w in weights) if total else tuple(weights)


def _size(size: Any) -> int:
    try:
        return whole_number(size)
    except TypeError:
        raise ModelError(f"sizes holds {size!r}, expected whole numbers of people such as 3") from None
