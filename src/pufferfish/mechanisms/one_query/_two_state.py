r"""Branch and bound over all two-state chains with probabilities of staying between two bounds.

Cells that :mod:`pufferfish.mechanisms.one_query.two_state_cells` cannot clear are cut in two: along ζ, along x, and,
inside a cell, along the logarithm h of the initial odds. Renaming the states maps x to −x, so x ≥ 0 is enough. Whenever
the search stops, what it returns holds for every chain of the class: cells that were not cleared count with their
bounds.
"""

import heapq
import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._core.numbers.rounding import UNIT
from pufferfish.mechanisms.one_query.two_state_cells import Cell, CellSums, Part, Ratio
from pufferfish.mechanisms.one_query.two_state_coordinates import LOOPS, Arrivals, Paths, Perron, Square

__all__ = ["Found", "Loss", "Question", "Reach", "search"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_SAMPLED = (-math.inf, -9.0, -6.0, -4.5, -3.5, *np.arange(-3.0, 3.25, 0.5).tolist(), 3.5, 4.5, 6.0, 9.0, math.inf)
"""Initial log odds that are looked at, in the chains that are looked at first."""

_SAMPLES = 5
_STEP = 1e-3
_SMALLEST = 1e-9
"""Width of a cell that is not cut any more."""


@dataclass(frozen=True, slots=True)
class Found:
    """The largest answer that is known, and a bound on all.

    Parameters
    ----------
    value, bound : float
        An answer that is attained or approached (but for rounding), and a number that none exceeds.
    row, state : int
        Record, and its state above the line.
    cells : int
        Cells that were looked at.
    """

    value: float = -math.inf
    bound: float = math.inf
    row: int = 0
    state: int = 1
    cells: int = 0


class Question(Protocol):
    """A number that is asked of every chain, record, number w and initial law; the largest is searched."""

    size: int
    """How many numbers w there are."""

    def functional(self, sums: Array) -> list[Array]:
        """Return what is made of sums by numbers of ones, which may be written to."""
        ...

    def ratios(self, state: int) -> list[Ratio]:
        """Return ratios of which the least is the answer, with a state above the line."""
        ...


class Loss:
    """What Laplace noise leaks of a record at the output w.

    Parameters
    ----------
    steps : int
        Number of records.
    scale : float
        Scale of the noise.
    """

    def __init__(self, steps: int, scale: float) -> None:
        self.size: int = steps + 1
        # what is computed for a ratio that is rounded holds for a scale next to this one: take one below it
        self._ratio = math.exp(-1 / (scale * (1 - 8 * UNIT * (1 + 1 / scale + scale))))

    def functional(self, sums: Array) -> list[Array]:
        """Return densities of noisy counts."""
        LOOPS.compiled.smooth(sums.reshape(-1, sums.shape[-1]), self._ratio)
        return [sums]

    def ratios(self, state: int) -> list[Ratio]:
        """Return the ratio of the densities given a state and given the other."""
        return [(Part(0, state, 0, self.size), Part(0, 1 - state, 0, self.size))]


class Reach:
    """Whether P(F ≤ u | s) is above P(F ≤ u + w | s') for some u: where it is not, W∞ is at most w.

    Parameters
    ----------
    steps : int
        Number of records.
    reach : int
        The distance w, at least 1.
    """

    def __init__(self, steps: int, reach: int) -> None:
        self.size: int = max(0, steps - reach + 1)  # beyond, P(F ≤ u + w) is 1
        self._reach = reach

    def functional(self, sums: Array) -> list[Array]:
        """Return sums up to each number, and of those beyond."""
        below, above = np.empty_like(sums), np.empty_like(sums)
        flat = -1, sums.shape[-1]
        LOOPS.compiled.cumulate(sums.reshape(flat), below.reshape(flat), above.reshape(flat))
        return [below, above]

    def ratios(self, state: int) -> list[Ratio]:
        """Return the ratio from below and, the other way round, from above: the same question."""
        below = Part(0, state, 0, self.size), Part(0, 1 - state, self._reach, self.size)
        above = Part(1, 1 - state, self._reach, self.size), Part(1, state, 0, self.size)
        return [below, above]


@dataclass(frozen=True, slots=True, order=True)
class _Task:
    """A cell, and what is open in it for either state above the line; the largest bound first."""

    key: tuple[float, int]
    cell: Cell
    items: tuple[Array, Array]


class _Search:
    def __init__(self, square: Square, paths: Paths, question: Question, tolerance: float | None) -> None:
        self._square, self._paths, self._question = square, paths, question
        self._tolerance = tolerance
        self._arrivals = Arrivals(paths.steps)
        self.found = Found()

    @property
    def level(self) -> float:
        """Answers up to this are not searched."""
        return 0.0 if self._tolerance is None else self.found.value * (1 + self._tolerance)

    @property
    def disproved(self) -> bool:
        """Whether some answer is above 0, where none may be."""
        return self._tolerance is None and self.found.value > 0

    def sample(self) -> None:
        """Look at some chains."""
        low, high = (math.log(p / (1 - p)) for p in (self._square.low, self._square.high))
        odds = [0.0 - v for v in np.linspace(low, high, _SAMPLES)]
        rows = np.arange(self._paths.steps)
        for i, first in enumerate(odds):
            for second in odds[i:]:
                field = math.log1p(math.exp(first)) - math.log1p(math.exp(second))
                cell = Cell((first + second, first + second), (field, field))
                sums = self._sums(cell, rows)
                for h in _SAMPLED if self._paths.own else (0.0,):
                    for state in (0, 1):
                        self._look(sums, state, rows, h)

    def root(self) -> _Task:
        """Return a cell that covers all chains."""
        couplings = self._square.couplings
        cell = Cell(couplings, (0.0, self._square.most(*couplings)))
        rows = np.arange(self._paths.steps)
        items = np.zeros((len(rows), 5))
        items[:, 0], items[:, 1], items[:, 2], items[:, 4] = rows, -math.inf, math.inf, self._question.size - 1
        if self._paths.own:
            items[0, 1:3] = 0.0  # given the first record the initial law does not matter
        else:
            items[:, 2] = -math.inf
            items = items[: (len(rows) + 1) // 2]  # reading a stationary chain backwards changes nothing
        return _Task((-math.inf, 0), cell, (items, items))

    def clear(self, task: _Task) -> tuple[float, tuple[Array, Array]]:
        """Return what cannot be cleared in a cell, unless it is cut, and the largest bound of it."""
        rows = np.unique(np.concatenate([part[:, 0] for part in task.items])).astype(np.int64)
        sums = self._sums(task.cell, rows)
        inside = self._square.has(*task.cell.centre)
        left, worst = [np.empty((0, 5))] * 2, -math.inf
        for state in (0, 1):
            items = task.items[state]
            # in sticky chains a record in state 1 only makes ones more likely: P(F ≤ u | 1) ≤ P(F ≤ u | 0)
            if not len(items) or (self._tolerance is None and state == 1 and task.cell.coupling[1] <= 0):
                continue
            left[state], tops = sums.clear(self._question.ratios(state), items, self.level)
            if len(tops):
                most = int(np.argmax(tops))
                worst = max(worst, float(tops[most]))
                if inside:
                    row, first, last = left[state][most, :3]
                    h = (max(first, -9.0) + min(last, 9.0)) / 2 if self._paths.own else 0.0
                    self._look(sums, state, np.array([int(row)]), h)
        return worst, (left[0], left[1])

    def cut(self, cell: Cell) -> list[Cell]:
        """Return the halves of a cell that have chains of the class."""
        z, x = cell.centre
        (first, last), (left, right) = cell.coupling, cell.field
        if (right - left) ** 2 * _curvature(z, x, 0, _STEP) > (last - first) ** 2 * _curvature(z, x, _STEP, 0):
            halves = [Cell(cell.coupling, (left, x)), Cell(cell.coupling, (x, right))]
        else:
            halves = [Cell((first, z), cell.field), Cell((z, last), cell.field)]
        found: list[Cell] = []
        for half in halves:
            most = self._square.most(*half.coupling)
            if half.field[0] <= most:
                found.append(Cell(half.coupling, (half.field[0], min(half.field[1], most))))
        return found

    def _sums(self, cell: Cell, rows: Rows) -> CellSums:
        return CellSums(self._paths, self._arrivals, cell, rows, self._question.functional)

    def _look(self, sums: CellSums, state: int, rows: Rows, h: float) -> None:
        found = sums.values(self._question.ratios(state), rows, h)
        # rounding must not disprove
        value = float(found.max(initial=-math.inf)) - (sums.rounding if self._tolerance is None else 0.0)
        if value > self.found.value:
            row = int(rows[int(np.argmax(found.max(axis=1)))])
            self.found = replace(self.found, value=value, row=row, state=state)


def search(square: Square, paths: Paths, question: Question, *, tolerance: float | None = None, cells: int) -> Found:
    """Search the largest answer to a question over all chains and initial laws.

    Parameters
    ----------
    square : Square
        The chains.
    paths : Paths
        Sums over the paths, for any initial law or the stationary one.
    question : Question
        What is asked.
    tolerance : float, optional
        How near the bound shall come to the largest answer, relatively; by default only whether an answer is above 0 is
        searched.
    cells : int
        Cells to look at; the bound holds for every chain when they run out, too.

    Returns
    -------
    Found
        Without a tolerance the bound is 0 where no answer is above 0.
    """
    run = _Search(square, paths, question, tolerance)
    run.sample()
    heap = [run.root()]
    looked = made = 0
    while heap and looked < cells and not run.disproved:
        task = heapq.heappop(heap)
        if -task.key[0] <= run.level:
            heap.clear()
            break
        looked += 1
        if looked % 32 == 0:
            report_progress("every chain of the class", looked / cells)
        worst, left = run.clear(task)
        worst = min(worst, -task.key[0])
        if worst > -math.inf and task.cell.width < _SMALLEST:
            heapq.heappush(heap, _Task((-worst, 0), task.cell, left))  # a tie, which rounding does not let decide
            break
        for half in run.cut(task.cell) if worst > -math.inf else []:
            made += 1
            heapq.heappush(heap, _Task((-worst, made), half, left))
    bound = max(run.level, -heap[0].key[0] if heap else -math.inf)
    return replace(run.found, bound=math.inf if run.disproved else bound, cells=looked)


def _curvature(z: float, x: float, dz: float, dx: float) -> float:
    """Return the curvature of the sums in a direction, about; for choosing only."""
    one, two, three = (Perron.of(z + i * dz, x + i * dx).log_value for i in (-1, 0, 1))
    return one + three - 2 * two
