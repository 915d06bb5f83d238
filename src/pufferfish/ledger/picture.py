"""The picture of a ledger: what the releases leak together, one after the other, against the budget."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish._base.words import at_least, at_most, number
from pufferfish._draw.figure import new_figure
from pufferfish._draw.svg import BLUE, INK, ORANGE, PALE, clean, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pufferfish.ledger.ledger import Ledger

__all__ = ["draw_ledger"]

_MOST_TICKS = 25
_MOST_WRITTEN = 16


def draw_ledger(ledger: "Ledger") -> "Figure":
    """Draw what is spent after each entry as bars, what each release leaks alone as points, and the budget."""
    entries, budget = ledger.entries, ledger.budget
    n = len(entries)
    figure = new_figure(min(12.0, max(5.5, 0.35 * n + 2.5)), 4.0)
    axes: Any = figure.add_subplot()
    at, spent = np.arange(1, n + 1), np.array([entry.spent for entry in entries])
    axes.bar(at, spent, color=PALE, edgecolor=BLUE, linewidth=0.8 if n <= 120 else 0, label="all up to it together")
    alone = [(entry.number, entry.epsilon) for entry in entries if entry.epsilon is not None]
    if alone:
        axes.plot(*zip(*alone, strict=True), linestyle="", marker="D", markersize=5, color=INK, label="alone")
    if n <= _MOST_WRITTEN:
        for x, value in zip(at, spent, strict=True):
            axes.annotate(at_most(value), (x, value), (0, 6), textcoords="offset points", ha="center", fontsize=8)
    axes.axhline(budget, color=ORANGE, linewidth=1.6)
    line = f"budget {number(budget, 6)}"
    axes.annotate(line, (1.0, budget), (-2, 3), ("axes fraction", "data"), "offset points", ha="right", fontsize=9)
    axes.set_xlim(0.4, max(n, 1) + 0.6)
    axes.set_ylim(0, 1.12 * max([budget, *(epsilon for _, epsilon in alone)]))
    every = -(-max(n, 1) // _MOST_TICKS)
    axes.set_xticks(range(1, n + 1, every))
    axes.set_xlabel("entry of the ledger")
    axes.set_ylabel("leakage at most, in nats")
    if n:
        figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=9)
    clean(axes)
    spent = f"spent {at_most(ledger.spent)} of {number(budget, 6)}, remaining {at_least(ledger.remaining)}"
    titled(figure, "What the releases leak together", f"{spent}; by {ledger.bound.title}")
    return figure
