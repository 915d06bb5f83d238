"""A query bound to a network that counts several columns together: one output for each combination of their states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._base.frozen import ReadOnly, read_only
from pufferfish.errors import QueryError

__all__ = ["JointQuery", "Measured", "StepQuery", "exactly", "largest_distances", "refuse_many_combinations"]


def exactly(numbers: ArrayLike) -> tuple[object, ...]:
    """Return what tells an array from all others; the same bytes are other numbers in another type."""
    array = np.asarray(numbers)
    return array.dtype.str, array.shape, array.tobytes()


def largest_distances(
    domains: Sequence[NDArray[np.intp]], distances: Sequence[NDArray[np.float64]], k: int
) -> NDArray[np.float64]:
    """Return for every pair of a model's k states the largest distance over the nodes that can have both."""
    largest = np.zeros((k, k))
    alike = {(d.tobytes(), id(far)): (d, far) for d, far in zip(domains, distances, strict=True)}
    for domain, distance in alike.values():
        pairs = np.ix_(domain, domain)
        largest[pairs] = np.maximum(largest[pairs], distance)
    return largest


class Measured(ReadOnly):
    """A bound query of which it is known how far one record moves it."""

    __slots__ = ()

    @property
    def unit_lipschitz(self: Any) -> int:
        """Largest L1 change of the outputs, in units, when one record alone changes."""
        return int(self.unit_distance.max())

    @property
    def lipschitz(self: Any) -> float:
        """Largest L1 change of the query when one record changes."""
        return float(self.unit * self.unit_lipschitz)


# -- A query bound to chains that counts steps -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StepQuery(Measured):
    """A query bound to the states of chains that counts steps, from a record to the next, in one output each, or none.

    One step changed alone moves the outputs by :attr:`unit_step` at most; one record is part of two steps. A step from
    state x to state y counts in the output ``outputs[x, y]``, of shape (k, k), −1 where it counts in none. The rest is
    as in :class:`LinearQuery`.
    """

    outputs: NDArray[np.int64]
    unit: Fraction
    labels: tuple[str, ...]
    description: str
    divided_by: int | None = None

    def __post_init__(self) -> None:
        self._keep(outputs=read_only(self.outputs))

    @property
    def unit_step(self) -> int:
        """L1 change of the outputs, in units, when one step alone is changed: to another output, or to none."""
        outputs = np.unique(self.outputs)
        counted = int(np.count_nonzero(outputs >= 0))
        return 2 if counted > 1 else counted if outputs.size > 1 else 0

    @cached_property
    def unit_distance(self) -> NDArray[np.float64]:
        """The L1 change, in units, when one record goes from state x to x'; shape (k, k).

        Of several outputs a bound on it: that of both steps.
        """
        if len(self.labels) > 1:
            return read_only(2 * self.unit_step * (1.0 - np.eye(len(self.outputs))))
        counted = (self.outputs >= 0).astype(np.float64)
        # the step into the record, from any state or from none, and the step out of it: any two of them together
        into, out = counted.T[:, None, :] - counted.T[None, :, :], counted[:, None, :] - counted[None, :, :]
        most = np.max(into, axis=2, initial=0.0) + np.max(out, axis=2, initial=0.0)
        return read_only(np.maximum(most, most.T))

    @property
    def by_records(self) -> bool:
        """Whether a change of a record moves the outputs no farther than one of its two steps: losses of records do."""
        return self.unit_lipschitz <= self.unit_step

    @property
    def of_groups(self) -> bool:
        """Whether noise for all records together is enough where each step counts in the public group that it leads to.

        Steps that are charged one by one move the outputs of their own group alone. A loss of records is less than that
        of both steps where what one of them adds is taken off by the other, as where a bout begins a record later: in
        two groups both changes are seen.
        """
        return not self.by_records

    @property
    def losses(self) -> tuple[NDArray[np.float64], int]:
        """What is charged at noise of one unit: to records that go from state x to x', shape (k, k), and to a step.

        One of the two, and for both steps of a record: see :attr:`by_records`.
        """
        return (self.unit_distance, 0) if self.by_records else (np.zeros(self.outputs.shape), self.unit_step)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells this query from others on the same states."""
        return "steps", exactly(self.outputs), self.unit

    def counted(self, transitions: Sequence[Sequence[int]]) -> list[int]:
        """Return the query's value, in units, from how often each state is followed by each."""
        totals = [0] * len(self.labels)
        for row, counts in zip(self.outputs.tolist(), transitions, strict=True):
            for output, count in zip(row, counts, strict=True):
                if output >= 0:
                    totals[output] += count
        return totals


_MOST_COMBINATIONS = 100_000
"""Combinations of states that a table has at most: each of them is a number of the release."""


def refuse_many_combinations(sizes: Mapping[str, int]) -> None:
    """Refuse to count columns together, given the number of states of each, that have too many combinations."""
    combinations = prod(sizes.values())
    if combinations > _MOST_COMBINATIONS:
        times = ", ".join(f"{name}: {n}" for name, n in list(sizes.items())[:8]) + (", …" if len(sizes) > 8 else "")
        raise QueryError(
            f"{len(sizes)} columns together have {combinations:,} combinations of states ({times}), but at most "
            f"{_MOST_COMBINATIONS:,} are possible: name fewer columns, or use nodes with fewer states"
        )


@dataclass(frozen=True, eq=False)
class JointQuery(Measured):
    """A query bound to the nodes of a network: the rows of a table in each combination of the states of some nodes.

    A row is in one combination. When one node that is read changes its state, and all else is kept, its row goes from
    one output to another: that moves the outputs by 2 in L1, whatever the two states are. Nodes that are not read move
    nothing. It is no sum over cells, but bounds need only to know how far one record moves the answer.

    ``nodes`` are the places of those that are read; outputs are in the order of their states, and that of the last node
    changes fastest. The rest is as in :class:`LinearQuery`.
    """

    nodes: tuple[int, ...]
    domains: tuple[NDArray[np.intp], ...]
    unit: Fraction
    labels: tuple[str, ...]
    description: str
    divided_by: int | None = None

    def __post_init__(self) -> None:
        self._keep(domains=tuple(map(read_only, self.domains)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of states of each node that is read."""
        return tuple(len(self.domains[node]) for node in self.nodes)

    def reads(self, place: int) -> bool:
        """Whether a node counts at all."""
        return place in self.nodes

    @cached_property
    def distances(self) -> tuple[NDArray[np.float64], ...]:
        """The L1 change, in units, when one node of the network changes its state: of shape (k_node, k_node) each."""
        return tuple(
            read_only((self.unit_lipschitz if self.reads(place) else 0) * (1.0 - np.eye(len(domain))))
            for place, domain in enumerate(self.domains)
        )

    @property
    def unit_distance(self) -> NDArray[np.float64]:
        """The largest of :attr:`distances` for every pair of the model's states; shape (k, k)."""
        return largest_distances(self.domains, self.distances, 1 + max(int(domain.max()) for domain in self.domains))

    @property
    def unit_lipschitz(self) -> int:
        """L1 change of the outputs, in units, when one record alone changes: one output loses a row, another has it."""
        return 2

    @property
    def key(self) -> tuple[object, ...]:
        """What tells this query from others on the same network."""
        return "joint", self.nodes, self.unit, tuple(map(exactly, self.domains)), tuple(map(exactly, self.distances))

    def value(self, places: Sequence[int]) -> list[int]:
        """Return the outputs of one row, given the place of each node's state among the model's states."""
        coordinates = [int(np.flatnonzero(self.domains[node] == places[node])[0]) for node in self.nodes]
        outputs = [0] * len(self.labels)
        outputs[int(np.ravel_multi_index(coordinates, self.shape))] = 1
        return outputs
