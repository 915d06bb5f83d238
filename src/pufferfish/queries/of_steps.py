"""Statistics of steps, from one record of a chain to the next: counts of transitions, changes of state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pufferfish.core.numbers.read_only import ReadOnly
from pufferfish.errors import QueryError
from pufferfish.given import truth
from pufferfish.queries.linear import Query, QueryKind, StepQuery, Variables

__all__ = ["ARROW", "Switches", "Transitions"]

ARROW = " → "
"""Between the two states in the name of an output."""


@dataclass(frozen=True)
class _OfSteps(ReadOnly, Query):
    """A query about the steps of chains: their numbers, or how many there are per record."""

    relative: bool = False

    def __post_init__(self) -> None:
        truth(self.relative, "relative", QueryError)

    def _bound(
        self,
        outputs: Sequence[Sequence[int]],
        labels: tuple[str, ...],
        what: str,
        records: int,
        names: Variables | None,
    ) -> StepQuery:
        if names is not None:
            raise QueryError(
                f"{self.kind} are about steps from one record of a chain to the next, and the records of this model "
                "have names, and no order: ask for states, such as Histogram(), or Marginals() of a network"
            )
        per = f", per record of the {records} records" if self.relative else ""
        return StepQuery(
            np.array(outputs),
            Fraction(1, records) if self.relative else Fraction(1),
            labels,
            f"{what}{per}",
            divided_by=records if self.relative else None,
        )


@dataclass(frozen=True)
class Transitions(_OfSteps):
    """How often each state is followed by each: k² outputs, one for every pair of states.

    A step leads from one observed record of a chain to the next one; across a gap, or a record that was not observed,
    there is none. From a release of these follow, at no further cost, the histogram, a fitted chain, how long each
    state lasts, and synthetic series; see :meth:`pufferfish.Release.chain`.

    Parameters
    ----------
    relative : bool, default False
        Divide the counts by the public number of records.

    Examples
    --------
    >>> Transitions().bind(["rest", "walking"], records=100).labels
    ('rest → rest', 'rest → walking', 'walking → rest', 'walking → walking')
    """

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "transitions": QueryKind("steps", 4),
        "transition-rates": QueryKind("steps per record", 4, relative=True),
    }

    @property
    def kind(self) -> str:
        """Word for the query."""
        return "transition-rates" if self.relative else "transitions"

    @property
    def is_histogram(self) -> bool:
        """The counts sum to the public number of steps."""
        return True

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> StepQuery:
        """Bind to a model's states and the public number of records."""
        k = len(states)
        labels = tuple(f"{a}{ARROW}{b}" for a in states for b in states)
        outputs = [list(range(k * x, k * x + k)) for x in range(k)]
        return self._bound(outputs, labels, f"steps from each of {k} states to each", records, variables)


@dataclass(frozen=True)
class Switches(_OfSteps):
    """How often the state changes from one record of a chain to the next: one number.

    Parameters
    ----------
    relative : bool, default False
        Divide the number by the public number of records.

    Examples
    --------
    >>> Switches().bind(["rest", "walking"], records=100).unit_lipschitz
    2
    """

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "switches": QueryKind("changes of state", 2),
        "switch-rate": QueryKind("changes of state per record", 2, relative=True),
    }

    @property
    def kind(self) -> str:
        """Word for the query."""
        return "switch-rate" if self.relative else "switches"

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> StepQuery:
        """Bind to a model's states and the public number of records."""
        outputs = [[-1 if x == y else 0 for y in range(len(states))] for x in range(len(states))]
        return self._bound(outputs, (self.kind,), "changes of state from one record to the next", records, variables)
