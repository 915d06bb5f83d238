"""Charges on Markov chains: one matrix for every record that a release reads, in windows and coarser states."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import real_array
from pufferfish._base.words import names_of
from pufferfish._core.numbers.rounding import float_up
from pufferfish.data.sequences import Base, Sequences
from pufferfish.errors import ParameterError, ReleaseRefused
from pufferfish.ledger.book import Book
from pufferfish.ledger.charges import (
    EVERY,
    Charge,
    Charging,
    Distance,
    check_tied,
    classes_of,
    composing,
    in_decimals,
    sum_up,
    whole,
)
from pufferfish.ledger.same_records import (
    MUST_MATCH,
    Steps,
    Windows,
    as_windows,
    check_lengths,
    check_start,
    check_within,
    groups_of,
    places_of_chains,
    windows_by_time,
    windows_read,
)
from pufferfish.ledger.subjects import Subjects
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.queries import LinearQuery, Profile, StepLoss, StepQuery
from pufferfish.theta.lengths import ChainLength


class ChainCharging(Charging):
    """Charges on Markov chains."""

    def __init__(self, bound: InfluenceBound) -> None:
        super().__init__(bound, {EVERY: bound.theta.k}, len(bound.length))
        self._bounds: dict[tuple[ChainLength, ...], InfluenceBound] = {}

    def check_base(self, base: Any) -> None:
        """Refuse a base of independent rows, or with gaps that hide what the ledger counts."""
        super().check_base(base)
        if base is not None and self.bound.protection is not None:
            self.bound.protection.check_gaps(base.gaps, "the ledger adds up what is told of")

    def charge(
        self, released: Any, *, book: Book, data: Any, window: Any, coarsening: Mapping[Any, Any] | None
    ) -> Charge:
        """Return the charge of a calibrated release, or of a loss as a number or matrix, on the states of the base."""
        base, subjects, length = book.base, book.subjects, self.bound.length
        self.check_kind(data, released)
        inside = self._in_base(data, book)
        if data is not None and data.names is None and isinstance(window, Mapping):
            raise ReleaseRefused(
                "window names subjects, but the data were read without subjects: read them as the ledger's base"
            )
        windows = as_windows(window, length, subjects)
        charge, groups, query = loss_of_release(released, self.bound.theta.states, base, inside, coarsening)
        if isinstance(released, Calibration) and data is None:
            check_lengths(released.length, length, None, "the calibration")
        if isinstance(query, LinearQuery):
            windows = windows_read(query, released.length, windows, length)
        if data is not None:
            self._check_data(inside, base, windows, everything=not (groups or windows))
        reads = self._reads(inside, subjects, windows)
        read = windows_by_time(data, book.grid, subjects, length)  # also where all steps pay: it refuses later records
        read = None if charge.step else read
        if read is not None and windows is not None:
            check_within(read, windows, "the data")
        windows = windows or read
        if windows is not None and reads is not None:  # a window of all chains is one of those that are read
            windows = tuple(window if there else None for window, there in zip(windows, reads, strict=True))
        return replace(charge, windows=windows, reads=reads)

    def about(self, data: Any, book: Book) -> bytes | None:
        """Return which chains the data are about, a byte each; None where that is not known, or they are all."""
        return self._reads(self._in_base(data, book), book.subjects)

    def together(self, charges: Sequence[Charge], among: Any = None) -> tuple[InfluenceBound, Any]:
        """Return one loss for all records, or for each class of chains; where only some steps are read, a profile."""
        if any(charge.windows is not None for charge in charges):
            return self._by_steps(charges, among)
        if all(charge.reads is None for charge in charges):
            return self.bound, with_steps([sum_of(charges, self.bound.theta.k)])
        classes, which = classes_of(charges, self.places, among)
        if not classes:
            return self.bound, 0.0
        return self._bound_on(classes, which), with_steps([sum_of(members, self.bound.theta.k) for members in classes])

    def _bound_on(self, classes: Sequence[Any], which: NDArray[np.intp]) -> InfluenceBound:
        """Return the bound on one chain for each class, as long as its longest: a shorter one leaks no more."""
        sizes = np.array([(chain.steps, chain.records) for chain in self.bound.length], dtype=np.int64)
        largest = np.zeros((len(classes), 2), dtype=np.int64)
        read = which >= 0
        np.maximum.at(largest, which[read], sizes[read])
        return self._bound_of(tuple(ChainLength(int(steps), int(records)) for steps, records in largest))

    def _bound_of(self, length: tuple[ChainLength, ...]) -> InfluenceBound:
        """Return the bound on chains of these lengths, the same one if it was the last that was asked for."""
        if length == self.bound.length:
            return self.bound
        bound = self._bounds.get(length)
        if bound is None:
            bound = self.bound.of(self.bound.given_by, length, **self.bound.settings)
            self._bounds = {length: bound}  # at once: other threads may be reading
        return bound

    def _by_steps(self, charges: Sequence[Charge], among: bytes | None) -> tuple[InfluenceBound, Any]:
        """Return the losses of each class of equally long chains of which the same charges read the same steps."""
        classes: dict[tuple[ChainLength, tuple[Steps | None, ...]], None] = {}
        for c, length in enumerate(self.bound.length):
            if among is None or among[c]:
                read = tuple(_steps_of(charge, c, length.steps) for charge in charges)
                if any(read):
                    classes[length, read] = None
        if not classes:
            return self.bound, 0.0
        known: dict[frozenset[int], tuple[NDArray[np.float64], float]] = {}
        losses: list[Any] = []
        largest_steps: list[float] = []
        for length, read in classes:
            stretches = stretches_of(read, length.steps)
            for _, active in stretches:
                if active not in known:
                    known[active] = sum_of([charges[i] for i in sorted(active)], self.bound.theta.k)
            profile = [(steps, known[active][0]) for steps, active in stretches]
            losses.append(profile[0][1] if len(profile) == 1 else Profile(profile))
            largest_steps.append(max(known[active][1] for _, active in stretches))
        bound = self._bound_of(tuple(length for length, _ in classes))
        return bound, StepLoss(largest_steps, losses) if any(largest_steps) else losses

    def _in_base(self, data: Any, book: Book) -> Any:
        """Return data with chains as short as their times say, where clocks set back in a gap made them seem longer."""
        grid, subjects = book.grid, book.subjects
        if not isinstance(data, Sequences) or data.grid is None or grid is None or data.grid.slack != grid.slack:
            return data
        if (subjects is None) != (data.names is None) or (subjects is None and self.places > 1):
            return data
        lengths: list[ChainLength] = []
        for i, (chain, there) in enumerate(zip(data.length, places_of_chains(data, subjects), strict=True)):
            ends = data.grid.places(i, grid, there[0]) if len(there) == 1 else None
            if ends is None:  # other times than the base's: nobody knows where they are in it
                return data
            lengths.append(ChainLength(min(chain.steps, ends[1] - ends[0] + 1), chain.records))
        return replace(data, grid=None, length=tuple(lengths))

    def _reads(self, data: Any, subjects: Subjects | None, windows: Windows | None = None) -> bytes | None:
        """Return which chains the data are about, a byte each (None for all, or unknown); refuse strangers."""
        if subjects is None or not isinstance(data, Sequences) or data.names is None:
            return None
        places, length = subjects.places_of(data.names), self.bound.length
        for name, chain in zip(data.names, data.length, strict=True):
            base_lengths = [length[place] for place in places[name]]
            if not any(c.without_positions.covers(chain) for c in base_lengths):
                longest = max(base_lengths)
                raise ReleaseRefused(
                    f"subject {name!r} has a chain of {chain.steps:,} steps and {chain.records:,} records, but in the "
                    f"ledger's base at most {longest.steps:,} steps and {longest.records:,} records: make another "
                    "ledger for other records"
                )
        marks = np.zeros(self.places, dtype=np.bool_)
        marks[[place for subject_places in places.values() for place in subject_places]] = True
        if windows is not None:  # nobody pays for what another one's window says
            for name, subject_places in places.items():
                seen = tuple(windows[place] for place in subject_places)
                if not any(seen):
                    raise ReleaseRefused(
                        f"window has no steps of subject {name!r}, who is in the data: give a window for every "
                        "subject that is read"
                    )
                chains = [chain for n, chain in zip(data.names, data.length, strict=True) if n == name]
                check_lengths(chains, [length[place] for place in subject_places], seen, f"subject {name!r}")
        return None if marks.all() else marks.tobytes()

    def part(self, length: Any, window: Any) -> InfluenceBound:
        """Return the bound on chains of these lengths, refused where they start later and Θ tells the first law."""
        check_start(self.bound.theta, window)
        return super().part(length, window)

    def _check_data(self, data: Sequences, base: Base | None, windows: Windows | None, *, everything: bool) -> None:
        length = self.bound.length
        if base is None and not (everything and sorted(data.length) == sorted(length)):
            raise ReleaseRefused(
                "the ledger has no base yet, and these data are only a part of its table: make the ledger with "
                "base=sequences.base of the whole table"
            )
        if base is None:
            self.check_base(data.base)
        else:
            check_tied(data.base, base, MUST_MATCH)
        check_lengths(data.length, length, windows, "the data")


def loss_of_release(
    released: Any,
    states: tuple[str, ...],
    base: Base | None,
    data: Sequences | None,
    coarsening: Mapping[Any, Any] | None,
) -> tuple[Charge, Sequence[int] | None, StepQuery | LinearQuery | None]:
    """Return a release's loss between a ledger's states, the groups of these that it counts, and what it measures."""
    step, linear = 0, None
    if isinstance(released, Calibration):
        linear = composing(released, "calibration.record_loss" if released.theta.states == states else None)
        groups = groups_of(states, base, released.theta.states, data, coarsening)
        scale = Fraction(released.unit_scale)
        if isinstance(linear, StepQuery):
            if data is not None and base is not None and data.base.where != base.where:
                raise ReleaseRefused(
                    "the query counts steps, but the data are filtered and the ledger's base is not: neighbouring "
                    "records here may not be neighbours in the base; read the whole table"
                )
            unit_distance, step = linear.losses
        else:
            assert isinstance(linear, LinearQuery)  # several columns together are those of networks
            unit_distance = linear.unit_distance
        distance = _on_the_base(whole(unit_distance), groups)
    else:
        if coarsening is not None:
            raise ParameterError("coarsening only works with a calibration: give a loss on the ledger's own states")
        unknown = [state for state in data.states if state not in states] if data is not None else []
        if data is not None and unknown and not data.base.bins:
            raise ReleaseRefused(
                f"the data have the state {unknown[0]!r}, but the ledger's states are {names_of(states)}"
            )
        groups = groups_of(states, base, states, data, None)
        loss = _loss(released, len(states))
        if data is not None and data.states != states and len(set(loss[~np.eye(len(states), dtype=np.bool_)])) > 1:
            raise ReleaseRefused(
                "the loss has a number for every pair of the ledger's states, but the states of the data are in "
                "another order: charge the calibration itself, which names its states"
            )
        (distance,), scale = in_decimals([loss])
    if not step and not any(any(row) for row in distance):
        raise ParameterError(
            "the loss is 0 between all states, so nothing would be charged: give the loss of the release"
        )
    return Charge({EVERY: distance}, scale, step=step), groups, linear


def sum_of(charges: Sequence[Charge], k: int) -> tuple[NDArray[np.float64], float]:
    """Return what the records of a chain of k states lose by all of some charges, and what its steps lose."""
    records = sum_up(((charge.distances[EVERY], charge.scale) for charge in charges), k)
    return records, float_up(sum((charge.step / charge.scale for charge in charges), Fraction(0)))


def with_steps(sums: Sequence[tuple[NDArray[np.float64], float]]) -> Any:
    """Return losses of records, of one class of chains or of each, and those of their steps where there are any."""
    records, steps = zip(*sums, strict=True)
    if len(sums) == 1:
        return StepLoss(steps[0], records[0]) if steps[0] else records[0]
    return StepLoss([*steps], [*records]) if any(steps) else [*records]


def _on_the_base(distance: Distance, groups: Sequence[int] | None) -> Distance:
    """Return a distance between the base's states: 0 inside of a group, for a release reads the group alone."""
    return distance if groups is None else tuple(tuple(distance[x][x_] for x_ in groups) for x in groups)


def _loss(released: Any, k: int) -> NDArray[np.float64]:
    try:
        loss = real_array(released)
    except TypeError as error:
        raise ParameterError(
            f"a loss {error}; expected a calibration, a number, or one number for every pair of states"
        ) from None
    if loss.shape not in ((), (k, k)):
        raise ParameterError(
            f"a loss has shape {loss.shape}, expected a number or ({k}, {k}), one number for every pair of states"
        )
    if not np.all(np.isfinite(loss)) or np.any(loss < 0):
        raise ParameterError("a loss is negative or not finite; expected nats, such as 0.1")
    return np.broadcast_to(loss, (k, k))


def _steps_of(charge: Charge, chain: int, steps: int) -> Steps | None:
    """Return the steps of a chain that a charge reads."""
    if charge.reads is not None and not charge.reads[chain]:
        return None
    return ((0, steps),) if charge.windows is None else charge.windows[chain]


def stretches_of(read: Sequence[Steps | None], steps: int) -> list[tuple[int, frozenset[int]]]:
    """Return stretches of a chain and which charges read them, given the steps that each charge reads."""
    begin: defaultdict[int, set[int]] = defaultdict(set)
    end: defaultdict[int, set[int]] = defaultdict(set)
    for i, spans in enumerate(read):
        for start, stop in spans or ():
            begin[start].add(i)
            end[stop].add(i)
    stretches: list[tuple[int, frozenset[int]]] = []
    active: frozenset[int] = frozenset()
    for start, stop in pairwise(sorted({0, steps, *begin, *end})):
        active = (active - end[start]) | begin[start]  # what ends where it begins again goes on
        stretches.append((stop - start, active))
    return stretches
