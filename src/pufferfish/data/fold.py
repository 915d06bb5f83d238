"""The fold: groups of rows that an engine has counted are added up to what each chain holds, in plain Python."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

import narwhals as nw

from pufferfish.data._chains import Layout
from pufferfish.data._columns import is_absent
from pufferfish.theta.states import state_label

__all__ = ["Fold", "gap_steps"]


def gap_steps(gap: int | float, step: int | float) -> int:
    """Count the steps in a gap: gap/step rounded up, and at least 2, so that one record at least is unobserved.

    A longer chain never leaks less, so rounding up goes towards privacy.

    Examples
    --------
    >>> gap_steps(25, 10), gap_steps(11, 10), gap_steps(24, 10)
    (3, 2, 3)
    """
    return max(2, ceil(Fraction(gap) / Fraction(step)))


@dataclass(slots=True)
class Fold:
    """Groups of rows added up per chain, in plain Python: the result of an engine is small by now.

    Parameters
    ----------
    layout : Layout
        How rows are laid out.
    step : int or float or None
        Length of a step; None by position, where gaps are already steps, or if there are no gaps.

    ``unseen`` says how many steps of each chain have no row.
    """

    layout: Layout
    step: int | float | None
    counts: dict[tuple[str, int], dict[Any, int]] = field(default_factory=dict[tuple[str, int], dict[Any, int]])
    steps: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    transitions: dict[tuple[Any, Any], int] = field(default_factory=dict[tuple[Any, Any], int])
    by_phase: dict[int, dict[tuple[Any, Any], int]] = field(default_factory=dict[int, dict[tuple[Any, Any], int]])
    histories: dict[tuple[Any, ...], int] = field(default_factory=dict[tuple[Any, ...], int])
    missing: dict[str, int] = field(default_factory=dict[str, int])
    cells: dict[tuple[Any, ...], dict[Any, int]] = field(default_factory=dict[tuple[Any, ...], dict[Any, int]])
    unseen: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    unsized_gap: bool = False

    def add(self, chains: nw.DataFrame[Any], transitions: nw.DataFrame[Any]) -> None:
        """Add what was counted by the keys of chains and by those of transitions (:class:`Layout`)."""
        for subject, second, state, number, steps in chains.iter_rows():
            label, n = state_label(subject), int(number)
            chain = (label, int(second) if self.layout.independent else 0)
            counts = self.counts.setdefault(chain, {})
            if is_absent(state):
                self.missing[label] = self.missing.get(label, 0) + n
            else:
                counts[state] = counts.get(state, 0) + n
            gap = None if self.layout.independent or is_absent(second) else second
            taken = int(steps) + (n * self._steps(gap) if gap else 0)
            self.steps[chain] = self.steps.get(chain, 0) + taken
            self.unseen[chain] = self.unseen.get(chain, 0) + taken - n
        for before, state, *more, number in transitions.iter_rows():
            if is_absent(before) or is_absent(state):
                continue
            n = int(number)
            self.transitions[before, state] = self.transitions.get((before, state), 0) + n
            if self.layout.clock:
                here = self.by_phase.setdefault(int(more[0]), {})
                here[before, state] = here.get((before, state), 0) + n
            elif not any(is_absent(earlier) for earlier in more):
                history = (*reversed(more), before, state)
                self.histories[history] = self.histories.get(history, 0) + n

    def add_cells(self, counted: nw.DataFrame[Any]) -> None:
        """Add what was counted by the keys of groups; records without a state count under None."""
        for *cell, state, number in counted.iter_rows():
            own, held = self.cells.setdefault(tuple(cell), {}), None if is_absent(state) else state
            own[held] = own.get(held, 0) + int(number)

    def _steps(self, gap: Any) -> int:
        if self.step is None:
            self.unsized_gap = True
            return 2
        return gap_steps(int(gap) if float(gap).is_integer() else float(gap), self.step)

    def relabel(self, labels: Mapping[Any, str]) -> None:
        """Rename states; those that get the same name become one."""
        self.transitions = _renamed(self.transitions, labels)
        self.histories = _renamed(self.histories, labels)
        self.by_phase = {phase: _renamed(found, labels) for phase, found in self.by_phase.items()}
        named = {**labels, None: None}
        for counted in (self.counts, self.cells):
            for key, counts in list(counted.items()):
                merged: dict[Any, int] = {}
                for state, n in counts.items():
                    merged[named[state]] = merged.get(named[state], 0) + n
                counted[key] = merged

    @property
    def states(self) -> set[Any]:
        """The states that occur."""
        return {state for counts in self.counts.values() for state in counts}

    @property
    def totals(self) -> dict[Any, int]:
        """Observed records of each state."""
        totals: dict[Any, int] = {}
        for counts in self.counts.values():
            for state, n in counts.items():
                totals[state] = totals.get(state, 0) + n
        return totals


def _renamed(counted: Mapping[Any, int], labels: Mapping[Any, str]) -> dict[Any, int]:
    renamed: dict[Any, int] = {}
    for states, n in counted.items():
        key = tuple(labels[state] for state in states)
        renamed[key] = renamed.get(key, 0) + n
    return renamed
