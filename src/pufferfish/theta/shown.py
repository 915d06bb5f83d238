"""What models show of themselves, in notebooks, on pages and in pictures: the marks that several kinds have in common.

Everything in a model is public; nothing here reads data.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.durations import parse_duration, rounded_micros
from pufferfish._base.view import MOST_COLUMNS, MOST_ROWS, Grid, View, counted
from pufferfish._draw.chart import Bars, Heat, Lines

_FEW_BOUNDS = 6  # states between which bounds are shown in short: each takes the room of two numbers

Array = NDArray[np.float64]


def states_in_words(states: Sequence[str], most: int = 6) -> str:
    """Return the names of a few states, and how many there are."""
    named = ", ".join(map(repr, states[:most])) + (", …" if len(states) > most else "")
    return f"{counted(len(states), 'state')}: {named}"


def law_in_words(start: Any) -> str:
    """Say in words which law the first record has."""
    if not isinstance(start, str):
        return "a given law"
    return "any law" if start == "any" else "the stationary law"


def first_law(chain: Any) -> list[Grid]:
    """Return the law of the first record of a chain as a table, where it is given."""
    start = chain.initial_distribution
    if isinstance(start, str) or start.ndim > 1:
        return []
    rows = [[state, float(p)] for state, p in zip(chain.states[:MOST_ROWS], start, strict=False)]
    return [Grid("Law of the first record", ["state", "probability"], rows, long=chain.k)]


def of_one(view: View, origin: str) -> View:
    """Return the view of a class of one model, from that of the model."""
    return View(f"Class of one: {view.title}", {**(view.facts or {}), "origin": origin}, view.grids, view.notes)


def members_grid(theta: Any) -> Grid:
    """Return the first members of a class as a table."""
    names = theta.names or range(len(theta.members))
    rows = [[name, repr(member)] for name, member in zip(names, theta.members[:MOST_ROWS], strict=False)]
    return Grid("Members", ["member", "model"], rows, long=len(theta.members))


def transitions(states: Sequence[str], low: Array, high: Array, caption: str = "Transition probabilities") -> Heat:
    """Return the table of a matrix of transition probabilities, or of what lies between two of them."""
    return Heat(f"{caption}: from the present state (row) to the next (column)", states, states, low, high)


def mean_dwell_times(states: Sequence[str], low: Array, high: Array, points: Array | None = None) -> Bars:
    """Return how long states last in the mean, by probabilities of staying: least, most, ``points`` of shape (m, k)."""
    spread = "" if np.array_equal(low, high) else ", from the least to the most of the class"
    label = "records in a row that a state lasts, in the mean"
    with np.errstate(divide="ignore"):
        ends, means = (1 / (1 - low), 1 / (1 - high)), None if points is None else 1 / (1 - points)
    return Bars(f"Mean stay in a state{spread}", label, states, *ends, means, "chain", ("state", "steps"))


def in_time(bars: Bars, step: str | None) -> Grid:
    """Return the table of how long states last, with the time that this takes where that of one step is known."""
    grid = bars.grid
    if step is None or not (length := parse_duration(step, "step")).has_unit:
        return grid
    rows: list[list[Any]] = []
    for row, *ends in zip(grid.rows, bars.low.tolist(), bars.high.tolist(), strict=False):
        least, most = (rounded_micros(end * length.value) for end in ends)
        rows.append([*row, least if least == most else f"{least} to {most}"])
    return Grid(grid.caption, [*grid.columns, "time"], rows, long=grid.long)


def main_grids(theta: Any, step: str | None = None) -> list[Grid]:
    """Return the numbers of a class that was fitted, as far as they are few: transitions, and how long states last."""
    if len(theta.states) > MOST_COLUMNS:
        return []
    grids: list[Grid] = []
    for chart in theta._view().grids:
        if isinstance(chart, Bars):
            grids.append(in_time(chart, step))
        elif isinstance(chart, Lines) and chart.places:
            grids.append(chart.extremes)
        elif isinstance(chart, Heat):
            most = MOST_COLUMNS if np.array_equal(chart.low, chart.high) else _FEW_BOUNDS
            grids += [chart.grid] if len(chart.rows) <= most else []
    return grids
