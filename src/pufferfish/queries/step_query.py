"""A query bound to chains that counts steps, from one record to the next."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import ReadOnly, read_only

__all__ = ["StepQuery"]


@dataclass(frozen=True, eq=False)
class StepQuery(ReadOnly):
    """A query bound to the states of chains that counts steps, from a record to the next, in one output each, or none.

    One step changed alone moves the outputs by :attr:`unit_step` at most; one record is part of two steps.

    Parameters
    ----------
    outputs : (k, k) ndarray of int64
        The place of the output in which a step from state x to state y counts, −1 where it counts in none.
    unit : Fraction
        What one step is worth.
    labels : tuple of str
        Names of the outputs.
    description : str
        The query in words.
    divided_by : int, optional
        The public number of records that rates are per record of; None where nothing is divided.
    """

    outputs: NDArray[np.int64]
    unit: Fraction
    labels: tuple[str, ...]
    description: str
    divided_by: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", read_only(self.outputs))

    @property
    def unit_step(self) -> int:
        """L1 change of the outputs, in units, when one step alone is changed: to another output, or to none."""
        found = np.unique(self.outputs)
        counted = int(np.count_nonzero(found >= 0))
        return 2 if counted > 1 else counted if found.size > 1 else 0

    @property
    def unit_lipschitz(self) -> int:
        """L1 change of the outputs, in units, when one record alone changes, which is part of two steps."""
        return int(self.unit_distance.max())

    @property
    def lipschitz(self) -> float:
        """Largest L1 change of the query when one record changes."""
        return float(self.unit * self.unit_lipschitz)

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
    def losses(self) -> tuple[NDArray[np.float64], int]:
        """What is charged at noise of one unit: to records that go from state x to x', shape (k, k), and to a step.

        One of the two, and for both steps of a record: see :attr:`by_records`.
        """
        return (self.unit_distance, 0) if self.by_records else (np.zeros(self.outputs.shape), self.unit_step)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells this query from others on the same states."""
        return "steps", self.outputs.shape, self.outputs.tobytes(), self.unit

    def counted(self, transitions: Sequence[Sequence[int]]) -> list[int]:
        """Return the query's value, in units, from how often each state is followed by each."""
        totals = [0] * len(self.labels)
        for row, counts in zip(self.outputs.tolist(), transitions, strict=True):
            for output, count in zip(row, counts, strict=True):
                if output >= 0:
                    totals[output] += count
        return totals
