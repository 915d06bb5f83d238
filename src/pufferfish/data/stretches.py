"""Where the observed records of a chain are: from the times of the rows that a filter by time keeps.

Only times say it, never states. It is known where the filter reads the time column alone and all times of a subject
lie on the grid of its steps: rows that follow each other are one step apart, and gaps are whole numbers of steps. Else
nothing is known of that subject, and noise is for the worst places that its records may have. Times without a zone say
it to an hour, and every place that a record may have is one of an observed record (:mod:`.grid`).
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

from pufferfish.data._chains import Frame, Layout
from pufferfish.data.grid import HOUR, TimeGrid, slack_of, widened
from pufferfish.data.options import Options
from pufferfish.theta.lengths import MOST_PLACED, ChainLength
from pufferfish.theta.states import state_label

__all__ = ["Stretches", "stretches_of", "with_places"]

_MOST = 4096
"""Gaps of all subjects together, and stretches of different chains, up to which places are kept."""


def _tells_grid(options: Options) -> bool:
    """Whether times may say where in its chain a row is."""
    return options.time is not None and options.missing != "split" and options.gaps == "unobserved"


def _tells_places(options: Options) -> bool:
    """Whether times alone say which rows are kept."""
    return _tells_grid(options) and options.where is not None and set(options.where.columns) == {options.time}


class Stretches:
    """What times say of where rows are, collected from one frame or from batches.

    Parameters
    ----------
    layout : Layout
        How rows are laid out.
    gaps : bool
        Whether times alone say which rows are kept, so that gaps are of interest.
    zoned : bool
        Whether differences of times are known: they are instants or numbers, and no local times without a zone.
    """

    def __init__(self, layout: Layout, *, gaps: bool, zoned: bool) -> None:
        self._layout = layout
        self._zoned = zoned
        self._asks_gaps = gaps
        self._step = 0
        self._known = True
        self._ends: dict[str, tuple[Any, Any]] = {}
        self._off: set[str] = set()
        self._gaps: list[tuple[Any, ...]] = []

    def add(self, linked: Frame, step: float | None) -> None:
        """Look at linked rows, all of them or those of a batch; gaps are divided by the step, where they are times."""
        each = 1 if self._layout.max_gap is None else 0 if step is None or not float(step).is_integer() else int(step)
        self._known = self._known and each > 0 and self._step in (0, each)
        self._step = each
        if not self._known:
            return
        if self._asks_gaps and len(self._gaps) <= _MOST:
            self._gaps += self._layout.apart(linked, self._step).head(_MOST + 1).collect().iter_rows()
        for subject, first, last, off in self._layout.ends(linked, self._step).collect().iter_rows():
            label = state_label(subject)
            before, after = self._ends.get(label, (first, last))
            self._ends[label] = min(before, first), max(after, last)
            if off:
                self._off.add(label)

    def of(self, subjects: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Return of each subject how many steps are observed, not observed, observed, …, where that is known."""
        if not (self._known and self._asks_gaps) or len(self._gaps) > _MOST or self._hidden:
            return {}
        gaps: dict[str, list[tuple[Any, Any, bool]]] = {}
        for subject, place, apart, linked in self._gaps:
            gaps.setdefault(state_label(subject), []).append((place, apart, linked))
        found = {subject: self._one(subject, sorted(gaps.get(subject, ()))) for subject in subjects}
        known = {subject: stretches for subject, stretches in found.items() if stretches}
        return known if sum(map(len, set(known.values()))) <= _MOST else {}

    def grid(self, chains: Sequence[tuple[str, int]]) -> TimeGrid | None:
        """Return the ends of chains, given of each its subject and its steps; None where times do not say them."""
        if not self._known or self._layout.max_gap is None or self._step < 1 or self._hidden:
            return None
        ends = tuple(self._span(subject, steps) for subject, steps in chains)
        return TimeGrid(self._step, ends, self._slack) if any(ends) else None

    @property
    def _slack(self) -> int:
        """How many steps a record may be from where its time says; none where steps are rows, and not times."""
        return 0 if self._zoned or self._layout.max_gap is None else slack_of(self._step)

    @property
    def _hidden(self) -> bool:
        """Whether clocks may have been set forward between rows that are linked: then gaps may add up to hours."""
        return self._slack > 0 and (self._layout.max_gap or 0) > HOUR

    def _span(self, subject: str, steps: int) -> tuple[int, int] | None:
        """Return the times of a subject's first and last row, if its chain has as many steps as they say."""
        if subject in self._off or subject not in self._ends:
            return None
        first, last = self._ends[subject]
        if not all(_is_whole(n) for n in (first, last)) or last - first != (steps - 1) * self._step:
            return None
        return int(first), int(last)

    def _one(self, subject: str, gaps: list[tuple[Any, Any, bool]]) -> tuple[int, ...]:
        step = self._step
        if not gaps or subject not in self._ends or any(linked for *_, linked in gaps):
            return ()
        begins, last = self._ends[subject]
        stretches: list[int] = []
        if not all(_is_whole(n) for n in (begins, last, *(n for place, apart, _ in gaps for n in (place, apart)))):
            return ()
        for place, apart, _ in gaps:
            stretches += [int(place - apart - begins), int(apart) - step]
            begins = place
        stretches.append(int(last - begins))
        if any(n % step for n in stretches):
            return ()
        steps = [n // step + (i % 2 == 0) for i, n in enumerate(stretches)]
        if min(steps) < 1:
            return ()
        if self._slack:
            observed = tuple(pairwise(accumulate(steps, initial=0)))[::2]
            edges = chain.from_iterable(widened(observed, self._slack, sum(steps) + self._slack))
            steps = [stop - start for start, stop in pairwise(edges)]
        return tuple(steps) if len(steps) > 1 else ()


def _is_whole(number: Any) -> bool:
    return float(number).is_integer() and abs(number) < 2**53


def stretches_of(layout: Layout, options: Options, *, zoned: bool) -> Stretches | None:
    """Return what collects where rows are, by times with a zone or without; None where times do not say it."""
    gaps = _tells_places(options)
    if not gaps and (layout.max_gap is None or not _tells_grid(options)):
        return None
    return Stretches(layout, gaps=gaps, zoned=zoned)


def with_places(chain: ChainLength, stretches: tuple[int, ...]) -> ChainLength:
    """Return the length of a chain with where its records are, if the two agree and bounds can follow them."""
    fits = sum(stretches) == chain.steps <= MOST_PLACED and sum(stretches[::2]) >= chain.records
    return ChainLength(chain.steps, chain.records, stretches) if stretches and fits else chain
