"""Charges on a table that grows: what is read, and what it costs, is known by time, for ever.

A chain of such a ledger has no end: it is so long on both sides of all that was read that no bound would be larger if
it were longer. What was read of a subject has a loss there, and 0 elsewhere. A **plan** is a loss on every step of
everybody, once: what a release of its question reads for the first time is covered, and costs nothing more. All else is
charged on top, at its own steps. So what is spent follows from which steps were read, and from nothing else: not from
the order of releases, nor from how many subjects or weeks there are.
"""

import math
import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.laplace import accuracy
from pufferfish._core.numbers.rounding import bracket
from pufferfish.data.sequences import Base, Sequences, Taken, TimeGrid
from pufferfish.errors import ParameterError, ReleaseRefused, shortened
from pufferfish.ledger._chain_charges import (
    loss_of_release,
    stretches_of,
    sum_of,
    with_steps,
)
from pufferfish.ledger._reads import Reads, Runs, joined, runs_of, signatures
from pufferfish.ledger.book import Book, Entry, fields_of_base
from pufferfish.ledger.charges import EVERY, Charge, Charging, check_tied
from pufferfish.ledger.same_records import MUST_MATCH
from pufferfish.ledger.subjects import Subjects
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.propagation import LeakagePropagation
from pufferfish.mechanisms.protection import SUBJECT
from pufferfish.mechanisms.witness import StretchWitness
from pufferfish.queries import LinearQuery, Mean, Profile, Query, StepLoss
from pufferfish.theta.lengths import FOR_EVER
from pufferfish.theta.model_class import gives_first_law

_SIDE = 2**50
"""Steps of a chain that has no end, and before what was read first: a longer stretch has no larger bounds."""

_MOST_CLASSES = 64
"""Different courses of reading whose leakage is computed each; of more, one that reads as much as any of them."""

_TIES = {name: remedy for name, remedy in MUST_MATCH.items() if name != "source"}

Loss = tuple[NDArray[np.float64], float]
Course = tuple[tuple[int, frozenset[int]], ...]
"""Stretches of a chain, and by which charges each is read."""


def for_ever(bound: InfluenceBound) -> InfluenceBound:
    """Return a bound on chains without an end; refused where there is none, or Θ says how a chain begins."""
    if not (isinstance(bound, LeakagePropagation) and bound.theta.of_chains):
        raise ReleaseRefused(
            "a ledger of a growing table needs LeakagePropagation on Markov chains: no other mechanism bounds the "
            "leakage of an endless series"
        )
    if gives_first_law(bound.theta):
        raise ReleaseRefused(
            "Θ gives the law of a chain's first record as an array, but most files of a growing table begin later: "
            'use a Θ with initial_distribution="stationary" or "any"'
        )
    settings = bound.settings
    if settings.get("protect") == SUBJECT:
        raise ReleaseRefused(
            "protect is 'subject', but a growing series has no end and no noise hides all of it: protect a length of "
            "time, such as '7d'"
        )
    return bound.of(bound.given_by, FOR_EVER, **{**settings, "protect": settings.get("protect", 1)})


def question_of(query: Query) -> str:
    """Return what is asked, whatever the number of records: by it rows are found that it did not read yet."""
    return repr(query)


class _Folded:
    """What was charged so far, in the order of the book, and what of each charge is beyond all plans before it."""

    def __init__(self) -> None:
        self._charges: list[Charge] = []
        self.beyond: list[Reads | None] = []
        """Of each charge what no plan covers; None for a plan."""
        self._covered: dict[int, list[tuple[int, int, Reads]]] = {}
        """For each plan, by its number: the charges it covers, up to which step they all reach, and what of each."""

    def to(self, charges: Sequence[Charge]) -> "_Folded":
        """Go on to the end of a list of charges, from where it is the same as the last one."""
        same = 0
        while same < min(len(charges), len(self._charges)) and charges[same] is self._charges[same]:
            same += 1
        del self._charges[same:], self.beyond[same:]
        self._covered = {plan: covered for plan, covered in self._covered.items() if plan < same}
        for covered in self._covered.values():
            while covered and covered[-1][0] >= same:
                covered.pop()
        for charge in charges[same:]:
            self._add(charge)
        return self

    def _add(self, charge: Charge) -> None:
        left, number = charge.steps_read, len(self._charges)
        if left is None:
            self._covered[number] = []
        else:
            for plan, covered in self._covered.items():
                if left.parts and _within(charge, self._charges[plan]):
                    reached = covered[-1][1] if covered else left.hull[0]
                    late = left.hull[0] < reached  # else nothing of it was read before
                    new, left = left.split([reads for *_, reads in covered]) if late else (left, Reads(()))
                    if new.parts:
                        covered.append((number, max(reached, new.hull[1]), new))
        self._charges.append(charge)
        self.beyond.append(left)


def _within(charge: Charge, plan: Charge) -> bool:
    """Whether a release asks what is planned, and loses no more in any record, nor step, than the plan has for it."""
    if charge.question != plan.question or charge.step * plan.scale > plan.step * charge.scale:
        return False
    losses = zip(charge.distances[EVERY], plan.distances[EVERY], strict=True)
    return all(a * plan.scale <= b * charge.scale for row, planned in losses for a, b in zip(row, planned, strict=True))


class SeriesCharging(Charging):
    """Charges on Markov chains that go on, under a bound :func:`for_ever`; one chain stands for all."""

    def __init__(self, bound: InfluenceBound) -> None:
        super().__init__(bound, {EVERY: bound.theta.k}, 1)
        self._bounds = {1: bound}
        self._folded, self._lock = _Folded(), threading.Lock()
        self._read: dict[str, tuple[Entry, Charge]] = {}
        self._named: tuple[Any, Any, tuple[Subjects | None, NDArray[np.int64]]] | None = None

    def check_base(self, base: Any) -> None:
        """Refuse a base whose times do not say where its records are."""
        super().check_base(base)
        if base is None:
            return
        if base.time is None or base.max_gap is None or base.gaps == "independent" or base.missing == "split":
            raise ParameterError(
                "a growing table is charged by its times: give time and max_gap, and leave out gaps='independent' and "
                "missing='split'"
            )

    def check(self, book: Book) -> None:
        """Refuse a book whose subjects, or grid of times, are none."""
        if book.subjects is not None:
            book.subjects.check(None)
        if book.grid is not None and (len(book.grid.ends) != 1 or book.grid.ends[0] is None):
            raise ParameterError("it lacks the time at which a step begins")

    def charge(
        self, released: Any, *, book: Book, data: Any, window: Any, coarsening: Mapping[Any, Any] | None
    ) -> Charge:
        """Return the charge of a release on the steps that its data are, by their times."""
        if window is not None:
            raise ParameterError(
                "window is for tables of fixed length; for a growing table the times of the data say "
                "what is read: leave window out"
            )
        if data is None:
            raise ParameterError("a growing table is charged by the data that are read: give data")
        self.check_kind(data, released)
        if isinstance(released, Calibration) and gives_first_law(released.theta):
            raise ReleaseRefused(
                "the noise was calibrated for chains whose first record has a given law, but most files of a growing "
                'table begin later: use a Θ with initial_distribution="stationary" or "any"'
            )
        self.check_tied(data, book)
        charge, _, query = loss_of_release(released, self.bound.theta.states, book.base, data, coarsening)
        if isinstance(query, LinearQuery) and query.factors is not None:
            raise ReleaseRefused(
                "the query names places in a chain, but a growing table has no fixed places: choose rows by where"
            )
        question = question_of(released.query) if isinstance(released, Calibration) else None
        reads = self.reads_of(data, book)
        self._check_not_read_meanwhile(reads, question, data, book)
        return replace(charge, steps_read=reads, question=question)

    def _check_not_read_meanwhile(self, reads: Reads, question: str | None, data: Sequences, book: Book) -> None:
        """Refuse rows that were released since the table was read, as by one of two programs begun at the same time."""
        if data.asked is None or question is None:
            return
        for entry in book.entries[data.asked :]:
            steps = self.read(entry, book).steps_read if entry.question == question else None
            if steps is not None and entry.where == data.base.where and reads.split([steps])[1].parts:
                raise ReleaseRefused(
                    f"entry {entry.number}, written after this table was read, releases the same query of some of "
                    "these rows: read the table again to leave them out (run the command again)"
                )

    def check_tied(self, data: Sequences, book: Book) -> None:
        """Refuse data that were not read as the ledger's table is."""
        self.check_base(data.base)
        if book.base is None:
            return
        settled = replace(book.base, step=data.base.step) if book.base.step is None else book.base
        here = data.base
        if here.ambiguous == "drop":  # fewer rows are read, each at its own time
            here = replace(here, ambiguous=settled.ambiguous)
        check_tied(here, settled, _TIES)

    def planned(self, calibration: Calibration, book: Book) -> Charge:
        """Return the charge of a plan: as much as a release, on every step of everybody, once."""
        charge, *_ = loss_of_release(calibration, self.bound.theta.states, book.base, None, None)
        return replace(charge, question=question_of(calibration.query))

    def reads_of(self, data: Sequences, book: Book) -> Reads:
        """Return which steps of whom data are, refused where their times do not say it, or lie on another grid."""
        grid = _grid_of(data, book.base)
        step, origin = _known_grid(book, grid)
        if grid.step != step:
            raise ReleaseRefused(f"a step takes {grid.step} in these data, and {step} in the ledger")
        runs: list[Runs] = []
        known: dict[Any, Runs] = {}  # of a week of many subjects most are alike
        for i, span in enumerate(grid.ends):
            if span is None or (span[0] - origin) % step:
                whose = "the table" if data.names is None else f"subject {shortened(repr(data.names[i]))}"
                raise ReleaseRefused(
                    f"{whose} has times that are not whole steps ({data.base.step}) apart from the others: "
                    "a growing table is charged by its times, so round them to steps first"
                )
            key = span, None if data.stretches is None else data.stretches[i]
            if key not in known:
                known[key] = runs_of((span[0] - origin) // step, key[1], (span[1] - span[0]) // step + 1)
            runs.append(known[key])
        _, numbers = self._numbers(book, data)
        return Reads.of(runs, numbers)

    def _numbers(self, book: Book, data: Sequences) -> tuple[Subjects | None, NDArray[np.int64]]:
        """Return the subjects so far, with those of data, and the number of each chain's; asked lately, known."""
        known, base = self._named, book.base
        if known is not None and known[0] is book.subjects and known[1] is data.names:
            return known[2]
        if base is not None and (base.subject is None) != (data.names is None):
            raise ReleaseRefused(
                "only one of the ledger and these data has a subject column: read both in the same way"
            )
        if data.names is None:
            if len(data.length) != 1:
                raise ReleaseRefused("the data have several chains but no subject column: give subject")
            return None, np.zeros(1, dtype=np.int64)
        found = (book.subjects or Subjects.of(())).with_more(data.names)
        self._named = book.subjects, data.names, found
        return found

    def about(self, data: Any, book: Book) -> Any:
        """Return the numbers of the subjects that data are about."""
        return None if data is None else np.unique(self._numbers(book, data)[1])

    def settled(self, data: Any, book: Book) -> dict[str, Any]:
        """Return who came, and how long a step is."""
        if data is None:
            return {}
        base = data.base if book.base is None else replace(book.base, step=data.base.step)
        fields = {"subjects": self._numbers(book, data)[0], "grid": book.grid}
        if book.grid is None:
            step, origin = _known_grid(book, _grid_of(data, book.base))
            fields["grid"] = TimeGrid(step, ((origin, origin),))
        return {**fields_of_base(replace(base, where=None)), **fields}

    def written(self, charge: Charge) -> dict[str, Any]:
        """Return what of an entry says the charge."""
        reads = None if charge.steps_read is None else charge.steps_read.as_written()
        return {**super().written(charge), "reads": reads}

    def read(self, entry: Entry, book: Book) -> Charge:
        """Return the charge that an entry of a book says; what was read lately is known."""
        known = self._read.get(entry.nonce)
        if known is not None and (known[0] is entry or known[0] == entry):
            return known[1]
        if entry.windows is not None or entry.subjects is not None:
            raise ParameterError(f"entry {entry.number} has windows, which a growing table cannot have")
        charge = replace(self._loss_in(entry), question=entry.question)
        if entry.reads is not None:
            subjects = 1 if book.subjects is None else book.subjects.count
            charge = replace(charge, steps_read=Reads.written(entry.reads, subjects, f"entry {entry.number}"))
        self._read[entry.nonce] = entry, charge
        return charge

    def part(self, length: Any, window: Any) -> InfluenceBound:
        """Return the bound on the chains of one release, read by itself."""
        return self.bound.of(self.bound.given_by, length, **self.hides)

    @property
    def hides(self) -> dict[str, Any]:
        """The settings by which a release by itself hides the same: one record is what every mechanism hides."""
        return {} if self.bound.settings == {"protect": 1} else super().hides

    # -- What all charges leak together --------------------------------------------------------------------------

    def together(self, charges: Sequence[Charge], among: Any = None) -> tuple[InfluenceBound, Any]:
        """Return the losses of every different course of reading: the plan everywhere, and on top what is beyond it."""
        k = self.bound.theta.k
        with self._lock:  # another thread may ask about other charges
            folded = [*self._folded.to(charges).beyond]
        plan = [i for i, charge in enumerate(charges) if charge.steps_read is None]
        beyond = [(i, reads) for i, reads in enumerate(folded) if reads is not None and reads.parts]
        if among is not None:
            beyond = [(i, reads.of_subjects(among)) for i, reads in beyond]
        known: dict[frozenset[int], Loss] = {}

        def loss(active: frozenset[int]) -> Loss:
            if active not in known:
                known[active] = sum_of([charges[i] for i in (*plan, *sorted(active))], k)
            return known[active]

        courses = _courses(beyond)
        everywhere = loss(frozenset())
        if not courses:
            return self.bound, with_steps([everywhere]) if plan else 0.0
        different = {
            tuple((steps, loss(active)[0].tobytes(), loss(active)[1]) for steps, active in course[1:]): course
            for course in courses
        }
        profiles = [_profile(course, [loss(active) for _, active in course]) for course in different.values()]
        if len(profiles) > _MOST_CLASSES:
            profiles = [_largest(list(courses), loss)]
        step = [max(step, everywhere[1]) for _, step in profiles]
        losses = [Profile(_ends(stretches, everywhere[0])) for stretches, _ in profiles]
        return self._bound_of(len(losses)), StepLoss(step, losses) if any(step) else losses

    def _bound_of(self, chains: int) -> InfluenceBound:
        if chains not in self._bounds:
            bound = self.bound
            self._bounds[chains] = bound.of(bound.given_by, [FOR_EVER] * chains, **bound.settings)
        return self._bounds[chains]


# -- Plans: noise with which releases stay within a budget for ever --------------------------------------------------


class Planned(NamedTuple):
    """Noise that is planned for a query, for ever."""

    question: str
    """The query, in words."""
    what: str
    """What the book says of it."""
    entry: int
    """Its number in the book."""
    unit_scale: float
    """Scale of the noise, in units of the query: counts."""
    spent: float
    """What is spent with it and all entries before."""

    @property
    def error_95(self) -> int:
        """What the error of a count exceeds with probability at most 5%, in counts."""
        return accuracy(self.unit_scale, 0.05)


def planned_in(book: Book) -> list[Planned]:
    """Return what a book plans."""
    return [
        Planned(entry.question, entry.what, entry.number, float(Fraction(entry.scale)), entry.spent)
        for entry in book.entries
        if book.grows and entry.reads is None and entry.question is not None
    ]


def alone_for_ever(bound: InfluenceBound, queries: Sequence[Query], level: float) -> list[Calibration]:
    """Return for each query the noise with which its releases leak so much, for ever; refused where there is none."""
    for query in queries:
        if isinstance(query, Mean):
            raise ReleaseRefused(
                f"{query.kind} is divided by the number of records, which an endless plan cannot know: plan the sum, "
                "and divide each release by its number of records"
            )
    alone = [bound.calibrate(query, level) for query in queries]
    if any(isinstance(made.witness, StretchWitness) and made.witness.by == "series" for made in alone):
        raise ReleaseRefused(
            "under Θ the past is forgotten so slowly, or never, that no noise keeps an endless series within the "
            "budget: use another Θ, or a ledger for a table of fixed length"
        )
    return alone


def with_enough_noise(
    alone: Sequence[Calibration], told: Callable[[Sequence[Calibration]], float], level: float
) -> list[Calibration] | None:
    """Return the noise of each query, as many times that of it alone, with which all tell ``level``; None for none."""

    def times(more: float) -> list[Calibration]:
        return [replace(made, unit_scale=made.unit_scale * more) for made in alone]

    enough = bracket(lambda more: told(times(more)), level, len(alone), tolerance=1e-6, from_above=False).enough
    return times(enough) if enough < math.inf else None


# -- What was read before --------------------------------------------------------------------------------------------


def taken_before(book: Book, before: Sequence[Reads], entries: int | None) -> Taken:
    """Return which rows earlier releases of a question read, by so many entries of a book of a table that grows."""

    def of(subjects: Sequence[str], first: int, last: int) -> list[list[tuple[int, int]]]:
        if book.grid is None or not before:
            return [[] for _ in subjects]
        step, origin = _known_grid(book, book.grid)
        first, last = (first - origin) // step, (last - origin) // step + 1
        near = [(runs, who) for reads in before if reads.near(first, last) for runs, who in reads.groups]
        numbers = np.zeros(1, dtype=np.int64) if book.subjects is None else book.subjects.with_more(subjects)[1]
        found: dict[int, list[tuple[int, int]]] = {}
        for which, who in signatures([who for _, who in near], np.unique(numbers)):
            runs = joined(*(near[i][0] for i in which))
            times = [(origin + start * step, origin + stop * step) for start, stop in runs]
            found.update((int(number), times) for number in who)
        return [found.get(int(number), []) for number in numbers]

    return Taken(entries, of)


def _grid_of(data: Sequences, base: Base | None) -> TimeGrid:
    """Return where the records of data are in time, refused where that is not known."""
    if data.grid is None:
        raise ReleaseRefused(
            f"the times in column {data.base.time!r} are not whole steps ({data.base.step}) apart, but a growing "
            "table is charged by its times: round them to steps first"
        )
    if data.grid.slack:
        zone = "time_zone ('UTC' if clocks never change)"
        raise ReleaseRefused(
            f"the times in column {data.base.time!r} have no time zone, so the steps that are read are uncertain by "
            f"an hour: write times with their offset, or {'give' if base is None else 'make a new ledger with'} {zone}"
        )
    return data.grid


def _known_grid(book: Book, grid: TimeGrid) -> tuple[int, int]:
    """Return how long a step of a series takes, and a time that one begins with; by the first data, or known."""
    known = grid if book.grid is None else book.grid
    return known.step, next((span[0] for span in known.ends if span is not None), 0) % known.step


# -- Courses of reading ----------------------------------------------------------------------------------------------


def _courses(beyond: Sequence[tuple[int, Reads]]) -> list[Course]:
    """Return the different ways in which subjects were read, each begun with the number of its first step."""
    groups = [(i, runs, who) for i, reads in beyond for runs, who in reads.groups]
    if not groups:
        return []
    everybody = np.unique(np.concatenate([who for *_, who in groups]))
    courses: list[Course] = []
    for which, _ in signatures([who for *_, who in groups], everybody):
        first = min(groups[g][1][0][0] for g in which)
        last = max(groups[g][1][-1][1] for g in which)
        read = [tuple((a - first, b - first) for a, b in groups[g][1]) for g in which]
        stretches = stretches_of(read, last - first)
        named = tuple((steps, frozenset(groups[which[j]][0] for j in active)) for steps, active in stretches)
        courses.append(((first, frozenset()), *named))
    return courses


def _profile(course: Course, losses: Sequence[Loss]) -> tuple[list[tuple[int, NDArray[np.float64]]], float]:
    """Return the losses of a course from its first step to its last, equal neighbours joined, and that of its steps."""
    stretches: list[tuple[int, NDArray[np.float64]]] = []
    for (steps, _), (records, _) in zip(course[1:], losses[1:], strict=True):
        if stretches and np.array_equal(stretches[-1][1], records):
            stretches[-1] = stretches[-1][0] + steps, records
        else:
            stretches.append((steps, records))
    return stretches, max(step for _, step in losses)


def _largest(courses: Sequence[Course], loss: Any) -> tuple[list[tuple[int, NDArray[np.float64]]], float]:
    """Return losses that are nowhere below those of any of some courses: larger losses never leak less."""
    spans = [
        (start, start + steps, active)
        for course in courses
        for start, (steps, active) in zip(np.cumsum([steps for steps, _ in course[:-1]]), course[1:], strict=True)
    ]
    edges = sorted({edge for start, stop, _ in spans for edge in (int(start), int(stop))})
    actives: list[set[frozenset[int]]] = [set() for _ in edges[1:]]
    for start, stop, active in spans:
        for i in range(bisect_left(edges, start), bisect_left(edges, stop)):
            actives[i].add(active)
    nothing = loss(frozenset())
    stretches: list[tuple[int, NDArray[np.float64]]] = []
    step = nothing[1]
    for (start, stop), some in zip(pairwise(edges), actives, strict=True):
        losses = [nothing, *(loss(active) for active in some)]
        stretches.append((stop - start, np.max([records for records, _ in losses], axis=0)))
        step = max(step, *(each for _, each in losses))
    return stretches, step


def _ends(stretches: Sequence[tuple[int, NDArray[np.float64]]], everywhere: NDArray[np.float64]) -> Any:
    inside = sum(steps for steps, _ in stretches)
    return [(_SIDE, everywhere), *stretches, (FOR_EVER - _SIDE - inside, everywhere)]
