"""What got noise, in whole numbers: of this the record loss follows, for programs that know no word of ours."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import FrozenRecord
from pufferfish.errors import QueryError
from pufferfish.queries import BoundQuery, JointQuery, LinearQuery, StepQuery
from pufferfish.queries.query import l1_distances

__all__ = ["CountedRecord", "counted_of", "record_loss_of"]

Added = list[tuple[int, int]]
"""Numbers that got noise, counted from 0, and what is added to each of them: a whole number."""


class CountedRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """What one record, step, cell or row adds to the numbers that got noise, and the scale of that noise, exactly.

    Where one of them changes from x to x', the numbers move by the L1 distance of what both add. That distance, times
    the record's factor, over ``scale`` is the loss in nats: no word and no rounding of this program is in it.

    Parameters
    ----------
    each : {"record", "step", "cell", "row"}
        What adds to the numbers: a record of a chain; a step from one record to the next; a cell of a network's table,
        whatever the others in its row are; or several cells of one row together.
    of : list of str
        The nodes of the cells, or those that are counted together; empty for chains.
    adds : list of list of list of (int, int)
        What each state adds, in the order of the states of Θ; for steps each pair of states, the first of them slowest.
        One such list for all records, steps or rows; for cells one for each node, for its own states.
    factors : list of (int, int) or None
        How many records, one after the other, count with which factor, 0 where they are not read; None where all count
        once.
    scale : str
        The scale b of the noise on each of the numbers, P(Z = z) ∝ exp(-|z|/b), as a fraction. With ``measurements`` a
        number is a count times its sharpness; its noise is no less than this.
    """

    each: Literal["record", "step", "cell", "row"]
    of: list[str]
    adds: list[list[Added]]
    factors: list[tuple[int, int]] | None
    scale: str


def counted_of(measured: BoundQuery, unit_scale: float, nodes: Sequence[str] = ()) -> CountedRecord | None:
    """Return what got noise; None where a function of the user's did.

    Parameters
    ----------
    measured : LinearQuery, StepQuery, JointQuery or FunctionQuery
        The query whose release with this noise has the record losses of the noise.
    unit_scale : float
        The scale, in units.
    nodes : sequence of str
        The names of a network's nodes.
    """
    factors, scale = None, str(Fraction(unit_scale))
    if isinstance(measured, StepQuery):
        steps = [[(int(place), 1)] if place >= 0 else [] for place in measured.outputs.ravel()]
        return CountedRecord("step", [], [steps], None, scale)
    if isinstance(measured, JointQuery):
        combinations: list[Added] = [[(place, 1)] for place in range(len(measured.labels))]
        return CountedRecord("row", [nodes[place] for place in measured.nodes], [combinations], None, scale)
    if not isinstance(measured, LinearQuery):
        return None
    if measured.domains is not None or measured.by_output:
        places = range(len(nodes) if measured.factors is None else len(measured.factors))
        names = list(nodes) or [str(place) for place in places]
        return CountedRecord("cell", names, [_added(measured.contributions_of(place)) for place in places], None, scale)
    if measured.factors is not None:
        factors = [(len(list(run)), factor) for factor, run in groupby(measured.factors.tolist())]
    return CountedRecord("record", [], [_added(measured.weights)], factors, scale)


def _added(weights: NDArray[np.int64]) -> list[Added]:
    """Return what each column of (m, k) whole numbers adds, without what adds 0."""
    return [[(int(m), int(column[m])) for m in np.flatnonzero(column)] for column in weights.T]


def record_loss_of(counted: CountedRecord) -> NDArray[np.float64]:
    """Return the loss of a record of a chain that counts most, for every pair of states, in nats; shape (k, k)."""
    if counted.each != "record":
        raise QueryError(f"what got noise counts each {counted.each}, and one matrix says the losses of records alone")
    (columns,) = counted.adds
    weights = np.zeros((1 + max(_numbers(columns), default=0), len(columns)), dtype=np.int64)
    for state, added in enumerate(columns):
        for number, value in added:
            weights[number, state] = value
    most = 1 if counted.factors is None else max(abs(factor) for _, factor in counted.factors)
    distance = l1_distances(weights).astype(np.float64) * most
    return np.where(distance > 0, np.nextafter(distance / float(Fraction(counted.scale)), np.inf), 0.0)


def _numbers(columns: Iterable[Added]) -> Iterator[int]:
    return (number for added in columns for number, _ in added)
