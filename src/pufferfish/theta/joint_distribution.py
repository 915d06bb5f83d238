"""A finite law of whole databases, listed one by one: the most general θ, for small problems.

Probabilities are exact fractions (floats are taken as the decimals they print as), so that what a secret makes of them,
and of the law of any query, is exact too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from numbers import Rational, Real
from typing import Any, ClassVar

import numpy as np

from pufferfish._base.checked import is_list, listed
from pufferfish._base.frozen import FrozenDict, ReadOnly
from pufferfish._base.view import MOST_COLUMNS, MOST_ROWS, Grid, Shown, View
from pufferfish._base.words import did_you_mean, names_of
from pufferfish.errors import ModelError, ParameterError
from pufferfish.theta.secrets import RecordIs, Secret, check_states
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
        """Return the indices of the rows in which a secret holds.

        Raises ParameterError if the secret names a record or a state that is not there.
        """
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
