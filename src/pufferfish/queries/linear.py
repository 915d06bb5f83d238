r"""What is asked of the data: statistics that are linear in the states of the records.

Every query here is ``unit · W @ counts``, with W an integer matrix (outputs × states) and a public unit. From W
alone follows how far one record can move the answer in L1 when it goes from state x to x',

.. math:: d(x, x') = \mathrm{unit} \cdot \sum_m |W_{m,x} - W_{m,x'}|,

whose largest entry is the query's Lipschitz constant L. Nothing is typed in. Because W @ counts is an integer vector,
noise is integer noise, and no floating-point rounding stands between the proof and the release.

Relative queries divide by n, the number of observed records, which is public: dividing is post-processing. Records may
count with whole-number factors of their own, 0 for those that are not read: then d is multiplied by a record's factor.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoundQuery", "FunctionQuery", "Line", "LinearQuery", "Query"]


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A vector query that is determined by one whole number: its outputs are a constant plus ``direction · number``.

    Parameters
    ----------
    values : (k,) ndarray of int
        What a record in each state adds to the number; the least is 0 and they have no common divisor.
    norm : int
        L1 length of the direction: how far the outputs move together when the number moves by 1.
    """

    values: NDArray[np.int64]
    norm: int


@dataclass(frozen=True, slots=True, eq=False)
class LinearQuery:
    """A query bound to the states of a model and a number of records: ``unit · weights @ counts``.

    Parameters
    ----------
    weights : (m, k) ndarray of int64
        Contribution of one record in each state to each output, in units.
    unit : Fraction
        What one unit is worth.
    labels : tuple of str
        Names of the m outputs.
    description : str
        The query in words.
    factors : (n,) ndarray of int64, optional
        With what factor each record of the one chain counts, 0 where it is not read; by default 1 for all.
    """

    weights: NDArray[np.int64]
    unit: Fraction
    labels: tuple[str, ...]
    description: str
    factors: NDArray[np.int64] | None = None

    @property
    def unit_distance(self) -> NDArray[np.float64]:
        """L1 change of ``weights @ counts`` when one record goes from state x to x'; shape (k, k), whole numbers.

        Where records count with factors, that of the record with the largest.
        """
        changes = np.abs(self.weights[:, :, None] - self.weights[:, None, :]).sum(axis=0)
        return changes.astype(np.float64) * self.largest_factor

    @property
    def largest_factor(self) -> int:
        """The largest factor, without sign, with which a record counts."""
        return 1 if self.factors is None else int(np.max(np.abs(self.factors)))

    @property
    def line(self) -> Line | None:
        """The one number that determines all outputs, if there is one."""
        moves = self.weights - self.weights[:, :1]
        first: NDArray[np.int64] = moves[:, int(np.flatnonzero(moves.any(axis=0))[0])]
        direction = first // int(np.gcd.reduce(first))
        along = int(np.flatnonzero(direction)[0])
        values: NDArray[np.int64] = moves[along] // direction[along]
        if not np.array_equal(direction[:, None] * values, moves):
            return None
        values = values - values.min()
        common = int(np.gcd.reduce(values))
        return Line(values // common, int(np.abs(direction).sum()) * common)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells this query from others on the same states."""
        factors = None if self.factors is None else self.factors.tobytes()
        return self.weights.shape, self.weights.tobytes(), self.unit, factors

    def value(self, states: Sequence[int]) -> tuple[int, ...]:
        """Return the query's value, in units, on records in given states."""
        factors = np.ones(len(states), dtype=np.int64) if self.factors is None else self.factors
        each = zip(states, factors.tolist(), strict=True)
        columns = [(self.weights[:, x].tolist(), c) for x, c in each]
        return tuple(sum(column[m] * c for column, c in columns) for m in range(len(self.weights)))

    @property
    def unit_lipschitz(self) -> int:
        """Largest entry of ``unit_distance``."""
        return int(self.unit_distance.max())

    @property
    def distance(self) -> NDArray[np.float64]:
        """L1 change of the query when one record goes from state x to x'; shape (k, k)."""
        return self.unit_distance * float(self.unit)

    @property
    def lipschitz(self) -> float:
        """Largest L1 change of the query when one record changes."""
        return float(self.unit * self.unit_lipschitz)


@dataclass(frozen=True, slots=True, eq=False)
class FunctionQuery:
    """A query that is any function of the whole database, with whole-number outputs.

    Parameters
    ----------
    function : callable
        Takes a dict from the records' names to their states, returns the outputs in units.
    unit : Fraction
        What one unit is worth.
    labels : tuple of str
        Names of the outputs.
    description : str
        The query in words.
    """

    function: Callable[[Mapping[Any, str]], tuple[int, ...]]
    unit: Fraction
    labels: tuple[str, ...]
    description: str

    @property
    def unit_lipschitz(self) -> None:
        """How far one record moves the outputs: not known of a function."""
        return None

    @property
    def lipschitz(self) -> None:
        """How far one record moves the outputs: not known of a function."""
        return None


BoundQuery = LinearQuery | FunctionQuery


class Query(ABC):
    """A statistic of the states in a table; bind it to a model's states to know its noise."""

    @abstractmethod
    def bind(self, states: Sequence[str], records: int) -> BoundQuery:
        """Return the query on these states, for a table of ``records`` observed records.

        Raises
        ------
        QueryError
            If the query names states the model lacks.
        """

    @property
    @abstractmethod
    def kind(self) -> str:
        """Word for the query on the command line and in records."""

    @property
    def is_histogram(self) -> bool:
        """Whether the outputs are all bins of one table, so that they sum to a public total."""
        return False
