"""Statistics of steps, from one record of a chain to the next: counts of transitions, changes of state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pufferfish._base.checked import truth
from pufferfish._base.frozen import ReadOnly
from pufferfish.errors import QueryError
from pufferfish.queries.of_states import states_named, unknown_state
from pufferfish.queries.query import Query, QueryKind, StepQuery, Variables, Words, per_record

ARROW = " → "  # between the two states in the name of an output


@dataclass(frozen=True)
class _OfSteps(ReadOnly, Query):
    """A query about the steps of chains: their numbers, or how many there are per record."""

    relative: bool = False

    def __post_init__(self) -> None:
        truth(self.relative, "relative", QueryError)


def _on_steps(
    query: "_OfSteps | Bouts",
    outputs: Sequence[Sequence[int]],
    labels: tuple[str, ...],
    description: str,
    records: int,
    names: Variables | None,
) -> StepQuery:
    """Return a query bound to the steps of chains, refused where records have names."""
    if names is not None:
        raise QueryError(
            f"{query.kind} count steps from one record of a chain to the next, but the records of this model have no "
            "order: ask for states, such as Histogram(), or Marginals() of a network"
        )
    words = Words(f"{description}, per record of the", records, "records", "") if query.relative else description
    return StepQuery(np.array(outputs), labels=labels, description=words, **per_record(query.relative, records))


@dataclass(frozen=True)
class Transitions(_OfSteps):
    """How often each state is followed by each: k² outputs, one for every pair of states.

    A step leads from one observed record of a chain to the next one; across a gap there is none. What follows from a
    release of these at no further cost: :meth:`pufferfish.Release.chain`.

    ``relative`` (default False) divides the counts by the public number of records.

    Examples
    --------
    >>> Transitions().bind(["rest", "walking"], records=100).labels
    ('rest → rest', 'rest → walking', 'walking → rest', 'walking → walking')
    """

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "transitions": QueryKind("steps", 4, of_steps=True),
        "transition-rates": QueryKind("steps per record", 4, relative=True, of_steps=True),
    }
    is_histogram = True  # the counts sum to the public number of steps

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> StepQuery:
        """Bind to a model's states and the public number of records."""
        k = len(states)
        labels = tuple(f"{a}{ARROW}{b}" for a in states for b in states)
        outputs = [list(range(k * x, k * x + k)) for x in range(k)]
        return _on_steps(self, outputs, labels, f"steps from each of {k} states to each", records, variables)


@dataclass(frozen=True)
class Switches(_OfSteps):
    """How often the state changes from one record of a chain to the next: one number.

    ``relative`` (default False) divides it by the public number of records.

    Examples
    --------
    >>> Switches().bind(["rest", "walking"], records=100).unit_lipschitz
    2
    """

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "switches": QueryKind("changes of state", 2, of_steps=True),
        "switch-rate": QueryKind("changes of state per record", 2, relative=True, of_steps=True),
    }

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> StepQuery:
        """Bind to a model's states and the public number of records."""
        outputs = [[-1 if x == y else 0 for y in range(len(states))] for x in range(len(states))]
        words = "changes of state from one record to the next"
        return _on_steps(self, outputs, (self.kind,), words, records, variables)


@dataclass(frozen=True, init=False)
class Bouts(ReadOnly, Query):
    """How often one or several ``states`` begin: the number of bouts, of records in a row in these states.

    A bout begins where a record in the states follows one outside of them. A bout at the beginning of a chain, or that
    continues after a gap, is not counted. One record can begin or end a bout, or join two of them: it never moves the
    number by more than 1.

    Examples
    --------
    >>> Bouts("walking").bind(["rest", "walking"], records=100).unit_lipschitz
    1
    """

    states: tuple[str, ...]
    relative: ClassVar[bool] = False

    kinds: ClassVar[Mapping[str, QueryKind]] = {"bouts": QueryKind("bouts", 1, of_steps=True)}

    def __init__(self, states: Any) -> None:
        self._keep(states=states_named(states, "Bouts"))

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> StepQuery:
        """Bind to a model's states and the public number of records."""
        for label in self.states:
            if label not in states:
                raise QueryError(f"bouts of state {label!r}: {unknown_state(label, states)}")
        if set(states) <= set(self.states):
            raise QueryError(f"bouts of all {len(states)} states never begin: name fewer states")
        inside = [state in self.states for state in states]
        outputs = [[0 if there and not here else -1 for there in inside] for here in inside]
        description = f"bouts in {{{', '.join(self.states)}}}"
        return _on_steps(self, outputs, ("+".join(self.states),), description, records, variables)
