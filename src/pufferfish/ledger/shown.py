"""How a ledger is shown: as a picture, a table and a view; and what would fit where a release does not.

The words are those of Python; the command line has its own for ``ledger.calibrate``, ``--up-to`` (``cli/messages``). A
ledger is ``Any`` here, for :class:`~pufferfish.Ledger` stands above.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish._base.view import MOST_ROWS, Grid, View, counted, frame_of_columns
from pufferfish._base.words import at_least, at_most, number
from pufferfish._draw.figure import BLUE, INK, ORANGE, PALE, clean, new_figure, titled
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import BudgetExceeded, PufferfishError
from pufferfish.ledger._reads import Reads
from pufferfish.ledger.book import Entry
from pufferfish.ledger.subjects import unpacked
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.mechanism import LEAST_EPSILON
from pufferfish.mechanisms.promises import promise_grid
from pufferfish.mechanisms.words import noise_hides_everything

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# -- The picture of a ledger: what the releases leak together --------------------------------------------------------

_MOST_TICKS = 25
_MOST_WRITTEN = 16


def draw_ledger(ledger: Any) -> "Figure":
    """Draw what is spent after each entry as bars, what each release leaks alone as points, and the budget."""
    entries, budget = ledger.entries, ledger.budget
    n = len(entries)
    figure = new_figure(min(12.0, max(5.5, 0.35 * n + 2.5)), 4.0)
    axes: Any = figure.add_subplot()
    numbers, spent = np.arange(1, n + 1), np.array([entry.spent for entry in entries])
    axes.bar(
        numbers, spent, color=PALE, edgecolor=BLUE, linewidth=0.8 if n <= 120 else 0, label="all up to it together"
    )
    alone = [(entry.number, entry.epsilon) for entry in entries if entry.epsilon is not None]
    if alone:
        axes.plot(*zip(*alone, strict=True), linestyle="", marker="D", markersize=5, color=INK, label="alone")
    if n <= _MOST_WRITTEN:
        for x, value in zip(numbers, spent, strict=True):
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
    about = f"counts what is told of {ledger.hides}"
    titled(figure, "What the releases leak together", f"{spent}; by {ledger.bound.title}", about)
    return figure


# -- What a ledger shows: its entries as a table ---------------------------------------------------------------------


def part_of(entry: Entry, ledger: Any) -> str:
    """Say which part of the ledger's table an entry read, and is charged on; nothing where it read all of it."""
    parts = [f"where {entry.where}"] if entry.where else []
    if entry.reads is not None:
        reads = Reads.written(entry.reads, None, "the entry")
        parts.append(f"{counted(reads.steps, 'step')} of {counted(reads.subjects, 'subject')}")
        return ", ".join(parts)
    if entry.windows:
        charged = sum(end - begin for stretches in entry.windows for begin, end in stretches or ())
        parts.append(f"{charged:,} of {sum(chain.steps for chain in ledger.bound.length):,} steps")
    if entry.subjects is not None:
        chains = len(ledger.bound.length)
        read = sum(unpacked(entry.subjects, chains, "the entry"))
        parts.append(f"{read:,} of {counted(chains, 'chain')}")
    return ", ".join(parts)


def entries_frame(ledger: Any, into: str) -> Any:
    """Return the entries as a table."""
    entries = ledger.entries
    types = {"number": int, "created": str, "what": str, "part": str, "epsilon": float, "spent": float}
    columns = {name: [getattr(entry, name, None) for entry in entries] for name in types}
    columns["part"] = [part_of(entry, ledger) or None for entry in entries]
    return frame_of_columns(columns, types, into)


ALL_TELL = "what all releases together tell of"
"""Head of the table of units."""


def view_of(ledger: Any) -> View:
    """Return the last entries, what is left, and what all of it tells of every unit."""
    entries = ledger.entries
    rows = [
        [entry.number, entry.created[:19], entry.what, part_of(entry, ledger), entry.epsilon, entry.spent]
        for entry in entries[-MOST_ROWS:]
    ]
    caption = "Releases: what each leaks alone at most, and all up to it together"
    grid = Grid(caption, ["number", "when (UTC)", "what", "part", "alone", "together"], rows, long=len(entries))
    base = ledger.base
    facts = {
        "hides": ledger.hides,
        "table": None if base is None else base.source,
        "class Θ": f"{ledger.bound.theta.kind}; {ledger.bound.theta.origin}",
        "mechanism": ledger.bound.title,
    }
    spent = f"spent {at_most(ledger.spent)} of {number(ledger.budget, 6)}, remaining {at_least(ledger.remaining)}"
    return View(f"Ledger: {spent}", facts, [grid, promise_grid(ledger.promises(), ALL_TELL)])


def in_words(released: Any) -> str:
    """Return what an entry says of a release."""
    if isinstance(released, Calibration):
        return f"{released.query.kind}: {released.linear.description}"
    return "a release of given record-level loss"


_USED_UP = (
    "almost no budget is left: noise for it would hide everything. Use the earlier releases, or other records; a "
    "larger budget weakens the promise for all releases"
)
_LESS = "take a smaller epsilon"


def what_fits(ledger: Any, released: Any, data: Sequences | Rows | None, window: Any, *, each: bool) -> str:
    """Return what would work for a release that does not fit: its noise is looked for; ``each`` is one per subject."""
    left = ledger.remaining
    if left < LEAST_EPSILON:
        return _USED_UP
    if not isinstance(released, Calibration):
        return f"{left:.6g} are left: release with more noise"
    if released.theta.of_chains and released.theta.states != ledger.bound.theta.states:
        return _LESS  # noise of the ledger's own mechanism is for its own states
    length: Any = released.bound.rows if released.theta.networks else released.length
    try:
        fitting = ledger.calibrate(released.query, length=length, window=window, data=data)
    except BudgetExceeded:
        return _USED_UP
    except PufferfishError:  # the ledger's own mechanism has no noise for this query
        return _LESS
    if data is None:
        records = [fitting.bound.rows if fitting.theta.networks else fitting.records]
    else:
        records = [data.records] if data.groups is None else data.groups.records
    if noise_hides_everything(fitting, records):  # how many records there are is public
        return _USED_UP
    if not each:
        short = f"{ledger.budget:g}"
        budget = short if float(short) == ledger.budget else repr(ledger.budget)
        return f"for all that is left: ledger.calibrate(query, up_to={budget})"
    try:
        largest = _largest_epsilon(ledger, released, fitting, data, window)
    except PufferfishError:
        return _LESS
    return _LESS if largest is None else f"the largest epsilon that fits is {largest}"


def _largest_epsilon(ledger: Any, calibration: Calibration, fitting: Calibration, data: Any, window: Any) -> str | None:
    """Return in few digits the ε at which a release's mechanism has the noise that fits, if it does when tried."""
    if not isinstance(calibration.bound, InfluenceBound):
        return None
    leaks = calibration.bound.verify(replace(calibration, unit_scale=fitting.unit_scale, epsilon=fitting.epsilon))[0]
    for largest in (leaks * (1 + 1e-4), leaks):
        text = at_least(largest, 3).replace(",", "")
        if not LEAST_EPSILON <= float(text) < calibration.epsilon:
            continue
        tried = calibration.bound.calibrate(calibration.query, float(text))
        if ledger.leakage_with(tried, data=data, window=window) <= ledger.budget:
            return text
    return None
