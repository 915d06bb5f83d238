"""Where the observed records of a chain are: from the times of the rows that a filter by time keeps.

Only times say it, never states. It is known where the filter reads the time column alone and all times of a subject
lie on the grid of its steps: rows that follow each other are one step apart, and gaps are whole numbers of steps. Else
nothing is known of that subject, and noise is for the worst places that its records may have.
"""

from collections.abc import Iterable
from typing import Any

from pufferfish.data.chains import Frame, Layout
from pufferfish.data.options import Options
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.states import state_label

__all__ = ["Stretches", "tells_places", "with_places"]

_MOST = 4096
"""Gaps of all subjects together, and stretches of different chains, up to which places are kept."""


def tells_places(options: Options) -> bool:
    """Whether times alone say which rows are kept."""
    return (
        options.where is not None
        and options.time is not None
        and set(options.where.columns) == {options.time}
        and options.missing != "split"
        and options.gaps == "unobserved"
    )


class Stretches:
    """What times say of where rows are, collected from one frame or from batches."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._step = 0
        self._known = True
        self._ends: dict[str, tuple[Any, Any]] = {}
        self._gaps: list[tuple[Any, ...]] = []

    def add(self, linked: Frame, step: float | None) -> None:
        """Look at linked rows, all of them or those of a batch; gaps are divided by the step, where they are times."""
        each = 1 if self._layout.max_gap is None else 0 if step is None or not float(step).is_integer() else int(step)
        self._known = self._known and each > 0 and self._step in (0, each) and len(self._gaps) <= _MOST
        self._step = each
        if not self._known:
            return
        found = self._layout.apart(linked, self._step).head(_MOST + 1).collect()
        self._gaps += found.iter_rows()
        for subject, first, last in self._layout.ends(linked).collect().iter_rows():
            label = state_label(subject)
            before, after = self._ends.get(label, (first, last))
            self._ends[label] = min(before, first), max(after, last)

    def of(self, subjects: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Return of each subject how many steps are observed, not observed, observed, …, where that is known."""
        if not self._known or len(self._gaps) > _MOST:
            return {}
        gaps: dict[str, list[tuple[Any, Any, bool]]] = {}
        for subject, place, apart, linked in self._gaps:
            gaps.setdefault(state_label(subject), []).append((place, apart, linked))
        found = {subject: self._one(subject, sorted(gaps.get(subject, ()))) for subject in subjects}
        known = {subject: stretches for subject, stretches in found.items() if stretches}
        return known if sum(map(len, set(known.values()))) <= _MOST else {}

    def _one(self, subject: str, gaps: list[tuple[Any, Any, bool]]) -> tuple[int, ...]:
        step = self._step
        if not gaps or subject not in self._ends or any(linked for *_, linked in gaps):
            return ()
        begins, last = self._ends[subject]
        stretches: list[int] = []
        numbers = [begins, last, *(n for place, apart, _ in gaps for n in (place, apart))]
        if not all(float(n).is_integer() and abs(n) < 2**53 for n in numbers):
            return ()
        for place, apart, _ in gaps:
            stretches += [int(place - apart - begins), int(apart) - step]
            begins = place
        stretches.append(int(last - begins))
        if any(n % step for n in stretches):
            return ()
        steps = [n // step + (i % 2 == 0) for i, n in enumerate(stretches)]
        return tuple(steps) if min(steps) >= 1 else ()


def with_places(chain: ChainLength, stretches: tuple[int, ...]) -> ChainLength:
    """Return the length of a chain with where its records are, if the two agree."""
    fits = sum(stretches) == chain.steps and sum(stretches[::2]) >= chain.records
    return ChainLength(chain.steps, chain.records, stretches) if stretches and fits else chain
