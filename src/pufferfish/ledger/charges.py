"""What releases cost, exactly: whole-number distances over exact noise scales, added as fractions.

Ten releases of loss 0.1 have loss 1, not 1.0000000000000002: sums are rounded once, upwards, when leakage is asked.

A charge is the record loss of one release, with fractions in place of floats. What belongs to a ledger's base differs
between chains and networks: :class:`Charging` says what a ledger needs to know, one class for each answers.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.rounding import float_up
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Base, Sequences
from pufferfish.errors import ParameterError, ReleaseRefused
from pufferfish.ledger._reads import Reads
from pufferfish.ledger.book import Book, Entry, fields_of_base
from pufferfish.ledger.same_records import Windows, windows_written
from pufferfish.ledger.subjects import Subjects, grid_of, packed, unpacked
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.queries import FunctionQuery, RecordQuery

Distance = tuple[tuple[int, ...], ...]
"""How far one record moves an answer when it goes from state x to x', in units; shape (k, k)."""

EVERY = None
"""What stands for all records of chains, where a network has the name of a node."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The record loss of one release: ``distances[node][x][x'] / scale`` in every record that it reads.

    Distances are in whole units, by the label of each node that is read; for chains under None, for all records.
    ``step`` is how far one step, from a record of a chain to the next, moves the answer if it alone is changed.
    """

    distances: dict[str | None, Distance]
    scale: Fraction
    """Scale of the noise, in the same units."""
    windows: Windows | None = None
    """What is read of each chain; None for every observed record, and for networks."""
    reads: bytes | None = None
    """For each chain whether the release reads it, a byte each: 0 or 1; None where it may read every one."""
    step: int = 0
    steps_read: Reads | None = None
    """Of a table that grows: which steps of whom; None for a plan, which may read every step of everybody once."""
    question: str | None = None
    """Of a table that grows: what is asked."""


class Charging(ABC):
    """How the releases of a ledger are charged, and what belongs to its base.

    ``bound`` proves how much they leak together, on the ledger's Θ and the size of the whole table. ``sizes`` has the
    number of states of every node, by its label; of all records of chains, under None. ``places`` is how many chains
    the base has, or rows of a network's table, which are independent of each other.
    """

    kind, reader = "Markov chains", "read_sequences"
    of_base: ClassVar[type] = Base
    of_data: ClassVar[type] = Sequences

    def __init__(self, bound: InfluenceBound, sizes: dict[str | None, int], places: int) -> None:
        self.bound, self.sizes, self.places = bound, sizes, places

    def check_base(self, base: Any) -> None:
        """Refuse a base that is none of a table for this Θ; None is one that is not known yet."""
        if base is not None and not isinstance(base, self.of_base):
            raise ParameterError(
                f"base is {type(base).__name__}, but this ledger is for {self.kind}: give the base of a table from "
                f"{self.reader}, data.base"
            )

    def check_kind(self, data: Any, released: Any) -> None:
        """Refuse data, and noise, for models of another kind."""
        if data is not None and not isinstance(data, self.of_data):
            raise ReleaseRefused(
                f"the data are {type(data).__name__}, but this ledger is for {self.kind}: read the table with "
                f"{self.reader}"
            )
        if not isinstance(released, Calibration):
            return
        if not (released.theta.networks if self.of_data is Rows else released.theta.variables is None):
            raise ReleaseRefused(
                f"the noise was calibrated for {released.theta.kind}, but this ledger is for {self.kind}: make another "
                "ledger for them"
            )

    @abstractmethod
    def charge(
        self, released: Any, *, book: Book, data: Any, window: Any, coarsening: Mapping[Any, Any] | None
    ) -> Charge:
        """Return the charge of a release or a loss, as for ``Ledger.spend``; refused where it is not of the base."""

    @abstractmethod
    def together(self, charges: Sequence[Charge], among: Any = None) -> tuple[InfluenceBound, Any]:
        """Return a bound and all losses ``among`` some chains, rounded up once; those read by the same are a class."""

    def about(self, data: Any, book: Book) -> Any:
        """Return whose chains the data are about; None where that is not known, or they are all."""
        return None

    def settled(self, data: Any, book: Book) -> dict[str, Any]:
        """Return the fields of a book that a release of these data settles: base, subjects, and where chains begin."""
        if data is None or book.tied_to is not None:
            return {}
        names = getattr(data, "names", None) if data.length == self.bound.length else None
        subjects = None if names is None else Subjects.of(names)
        return {**fields_of_base(data.base), "subjects": subjects, "grid": grid_of(data, names, self.bound)}

    def check(self, book: Book) -> None:
        """Refuse a book whose subjects, or ends of chains, are not those of its base."""
        if book.subjects is not None:
            book.subjects.check(self.places)
        elif any(entry.subjects is not None for entry in book.entries):
            raise ParameterError("an entry names subjects, and the book has none")
        if book.grid is not None and len(book.grid.ends) != self.places:
            raise ParameterError(
                f"it says when {len(book.grid.ends)} chains begin and end, and its base has {self.places}"
            )

    @property
    def hides(self) -> dict[str, Any]:
        """The settings by which a release by itself hides what the ledger is about."""
        return {} if self.bound.protection is None else {"protect": self.bound.protection}

    def part(self, length: Any, window: Any) -> InfluenceBound:
        """Return the bound on a part of the base of this length, read by itself."""
        return self.bound.of(self.bound.given_by, length, **self.bound.settings)

    def written(self, charge: Charge) -> dict[str, Any]:
        """Return what of an :class:`Entry` says the charge."""
        rows = {node: [list(row) for row in distance] for node, distance in charge.distances.items()}
        return {
            "distance": rows[EVERY] if EVERY in rows else rows,
            "scale": str(charge.scale),
            "windows": charge.windows and [window and list(window) for window in charge.windows],
            "subjects": None if charge.reads is None else packed(np.frombuffer(charge.reads, dtype=np.bool_)),
            "step": charge.step,
        }

    def read(self, entry: Entry, book: Book) -> Charge:
        """Return the charge that an entry of a book says, refused where no ledger of this Θ wrote it."""
        charge = self._loss_in(entry)
        windows = None if entry.windows is None else windows_written(entry.windows, self.bound.length)
        reads = None if entry.subjects is None else unpacked(entry.subjects, self.places, f"entry {entry.number}")
        if reads is not None and windows is not None:
            if not any(window for window, read in zip(windows, reads, strict=True) if read):
                raise ParameterError(f"entry {entry.number} has windows of other subjects than those that it reads")
        return replace(charge, windows=windows, reads=reads)

    def _loss_in(self, entry: Entry) -> Charge:
        """Return the loss that an entry says, wherever it is charged."""
        number, sizes = entry.number, self.sizes
        of_chains = EVERY in sizes
        by_node: dict[str | None, Any] = (
            {**entry.distance} if isinstance(entry.distance, dict) else {EVERY: entry.distance}
        )
        if not by_node or (EVERY in by_node) != of_chains or not (of_chains or entry.windows is None):
            raise ParameterError(
                f"entry {number} is none of {self.bound.theta.kind}: chains have one table of distances for all "
                "records, networks one by node and no windows"
            )
        for node in by_node:
            if node not in sizes:
                raise ParameterError(f"entry {number} names {node!r}, which is no node of Θ")
        if entry.step < 0 or (entry.step and not of_chains):
            raise ParameterError(f"entry {number} has the step {entry.step}, expected 0, or above it on chains")
        distances = {
            node: _checked(distance, sizes[node], number, some=not entry.step) for node, distance in by_node.items()
        }
        if entry.epsilon is not None:  # calibrated: the distances of a query
            if not 0 < entry.epsilon < math.inf:
                raise ParameterError(f"entry {number} has epsilon {entry.epsilon}, expected a positive finite number")
            if any(d[x][y] != d[y][x] for d in distances.values() for x in range(len(d)) for y in range(x)):
                raise ParameterError(f"entry {number} has another distance from x to x' than from x' to x")
        if re.fullmatch(r"[0-9]{1,4000}(/[1-9][0-9]{0,3999})?", entry.scale) is None or not Fraction(entry.scale) > 0:
            raise ParameterError(f"entry {number} has the scale {entry.scale!r}, expected a positive fraction")
        return Charge(distances, Fraction(entry.scale), step=entry.step)


def classes_of(
    charges: Sequence[Charge], places: int, among: bytes | None
) -> tuple[list[list[Charge]], NDArray[np.intp]]:
    """Return the different lists of charges that chains have, and for each chain which of them; -1 for none."""
    reads = np.ones((len(charges), places), dtype=np.bool_)
    for row, charge in zip(reads, charges, strict=True):
        if charge.reads is not None:
            row[:] = np.frombuffer(charge.reads, dtype=np.bool_)
    if among is not None:
        reads &= np.frombuffer(among, dtype=np.bool_)
    kept, which = np.unique(reads, axis=1, return_inverse=True)
    which = which.ravel()
    lists = [[charge for charge, read in zip(charges, column, strict=True) if read] for column in kept.T]
    read = np.array([bool(members) for members in lists])
    numbers = np.where(read, np.cumsum(read) - 1, -1)
    return [members for members in lists if members], numbers[which]


def composing(calibration: Calibration, way_out: str | None) -> RecordQuery:
    """Return the query that is measured, whose losses add; refused where ε holds for one query, with a ``way_out``."""
    if not calibration.composes:
        remedy = (
            "calibrate it on the ledger's states, in their order, and charge it at its record-level loss, which adds"
            if way_out is None
            else f"charge the same release at its record-level loss, which adds: ledger.spend({way_out})"
        )
        raise ReleaseRefused(
            f"{calibration.title} calibrates noise for one query, and its epsilon cannot be added to others; {remedy}"
        )
    if not (0 < calibration.unit_scale < math.inf and 0 < calibration.epsilon < math.inf):
        raise ParameterError(
            f"the calibration has scale {calibration.unit_scale}, epsilon {calibration.epsilon}: "
            "expected positive finite numbers"
        )
    measured = calibration.measured
    if isinstance(measured, FunctionQuery):
        raise ParameterError("a function of the database has no known record-level loss, and cannot be charged")
    return measured


def whole(distance: NDArray[np.float64]) -> Distance:
    """Return a distance in whole units."""
    return tuple(tuple(int(v) for v in row) for row in distance)


def in_decimals(losses: Sequence[NDArray[np.float64]]) -> tuple[list[Distance], Fraction]:
    """Return losses as whole numbers over one scale: each means the decimals that it prints as; the diagonal is 0."""
    exact = [
        [[Fraction(repr(float(v))) if x != x_ else Fraction(0) for x_, v in enumerate(row)] for x, row in enumerate(d)]
        for d in losses
    ]
    parts = lcm(*(v.denominator for distance in exact for row in distance for v in row))
    distances = [tuple(tuple(int(v * parts) for v in row) for row in distance) for distance in exact]
    return distances, Fraction(parts)


def sum_up(shares: Iterable[tuple[Distance, Fraction]], k: int) -> NDArray[np.float64]:
    """Return the sum of distances over their scales, exact and rounded up once; shape (k, k)."""
    weights: dict[Distance, Fraction] = {}
    for distance, scale in shares:
        weights[distance] = weights.get(distance, Fraction(0)) + 1 / scale
    known: dict[tuple[int, ...], float] = {}
    total = np.zeros((k, k))
    for x in range(k):
        for x_ in range(k):
            distances = tuple(distance[x][x_] for distance in weights)
            if distances not in known:
                known[distances] = float_up(
                    sum((d * s for d, s in zip(distances, weights.values(), strict=True)), Fraction(0))
                )
            total[x, x_] = known[distances]
    return total


def check_tied(base_of_data: Any, base: Any, remedies: Mapping[str, str]) -> None:
    """Refuse data that were not read from the same table in the same way; a filter on an unfiltered base is a part."""
    for name, remedy in remedies.items():
        here, there = getattr(base_of_data, name), getattr(base, name)
        if here == there or (name == "where" and there is None):
            continue
        told, ours = ("not given" if value is None else repr(value) for value in (there, here))
        raise ReleaseRefused(f"{name} of the ledger's table is {told}, and for these data {ours}; {remedy}")


def _checked(distance: Sequence[Sequence[int]], k: int, entry: int, *, some: bool) -> Distance:
    """Return a distance as an entry says it, if it is one of k states, and above 0 where there must be ``some``."""
    square = len(distance) == k and all(len(row) == k for row in distance)
    if not square or min(map(min, distance)) < 0 or (some and not max(map(max, distance)) > 0):
        raise ParameterError(f"entry {entry} has distances that are none")
    if any(distance[x][x] for x in range(k)):
        raise ParameterError(f"entry {entry} has a distance from a state to itself")
    return tuple(tuple(row) for row in distance)
