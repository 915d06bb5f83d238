"""The picture of a check: how long states last, what people do by the hour, and how soon they forget."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish._base.view import Grid, View
from pufferfish._base.words import at_most
from pufferfish._draw.figure import BLUE, INK, LINES, PALE, clean, log_ticks, new_figure, shortened, titled
from pufferfish.check.record import CheckFields
from pufferfish.check.words import RICHER, STAYS, richer_rows, stays_rows, usual_states

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# -- What a check of a model shows in a notebook ---------------------------------------------------------------------


def view_of(check: CheckFields) -> View:
    """Return the verdict first, then its numbers."""
    facts = {
        "held against": check.source,
        "class Θ": check.origin,
        "records": check.records,
        "transitions": check.transitions,
    }
    noise = (
        f"What noise for ε = {at_most(check.epsilon)} leaks at most, and how much likelier left-out days are, in nats"
    )
    grids = [
        Grid(noise, [*RICHER, "why there are no numbers"], [list(row) for row in richer_rows(check)]),
        Grid("How many records a state lasts", list(STAYS), [list(row) for row in stays_rows(check)]),
    ]
    return View(check.verdict.sentence, facts, grids, str(check.verdict).splitlines()[1:])


_MARKERS = ("o", "^")  # of the average stay, and of the number of records within which 95% of the stays end


def draw_check(check: CheckFields) -> "Figure":
    """Draw a check: data in blue, the model in black."""
    panels = [_stays, _overlaps] if check.occupancy is None else [_stays, _hours, _overlaps]
    figure = new_figure(4.2 * len(panels), 4.2)
    for axes, draw in zip(figure.subplots(1, len(panels)), panels, strict=True):
        draw(axes, check)
        clean(axes, share=draw is not _stays)
    reasons = [reason[:1].upper() + reason[1:] for reason in check.verdict.reasons[:2]]
    titled(figure, check.verdict.sentence, *reasons, f"{check.source}; Θ: {check.origin}")
    return figure


def _stays(axes: Any, check: CheckFields) -> None:
    """Draw mean and high quantile of stays, the model's from least to most; one not reached stands above, hollow."""
    usual = usual_states(check)
    aside = 0.025 * len(usual)  # as far on paper, however many states there are
    for place, x in enumerate(usual):
        stays = check.stays[x]
        for i, marker in enumerate(_MARKERS):
            ends = [pair[i] for pair in (stays.least, stays.most) if pair is not None and math.isfinite(pair[i])]
            if ends:
                right = place + (1 + i) * aside  # the two may overlap
                axes.plot([right] * len(ends), ends, color=INK, marker=marker, markersize=5, linewidth=1.2)
            if stays.observed is not None and math.isfinite(stays.observed[i]):
                axes.plot([place - aside], [stays.observed[i]], color=BLUE, marker=marker, markersize=5)
    axes.set_xlim(-0.5, len(usual) - 0.5)
    seen = [check.stays[x].observed for x in usual]
    open_ = [place for place, pair in enumerate(seen) if pair is None or math.isinf(pair[1])]
    never = [place for place, x in enumerate(usual) if math.isinf((check.stays[x].most or (0.0, 0.0))[1])]
    for places, side, colour in ((open_, -aside, BLUE), (never, 2 * aside, INK)):
        axes.plot(
            [place + side for place in places],
            [1.03] * len(places),
            color=colour,
            marker=_MARKERS[1],
            markersize=5,
            markerfacecolor="white",
            linestyle="",
            transform=axes.get_xaxis_transform(),
            clip_on=False,
        )
    axes.set_yscale("log")
    ticks = log_ticks(*axes.get_ylim())
    axes.set_yticks(ticks, [f"{tick:,.6g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xticks(range(len(usual)), [shortened(check.states[x], 10) for x in usual], parse_math=False)
    for marker, label in zip(_MARKERS, ("average", "95% end within"), strict=True):
        axes.plot([], [], color="0.5", marker=marker, linestyle="", label=label)
    if open_ or never:
        label = "95%: not reached (above)"
        axes.plot([], [], color="0.5", marker=_MARKERS[1], markerfacecolor="white", linestyle="", label=label)
    for colour, label in ((BLUE, "data"), (INK, "model")):
        axes.plot([], [], color=colour, marker="s", linestyle="", label=label)
    axes.legend(frameon=False, fontsize=8)
    axes.set_xlabel("state")
    axes.set_ylabel("records that a state lasts (log scale)")


def _hours(axes: Any, check: CheckFields) -> None:
    """Draw the share of each state by the hour, and the model's as a dashed line."""
    assert check.occupancy is not None
    counts = np.array(check.occupancy, dtype=np.float64)
    totals = counts.sum(axis=1)
    hours = np.flatnonzero(totals)
    usual = usual_states(check)
    ends = _apart([counts[hours[-1], x] / totals[hours[-1]] for x in usual])
    for x, end, (colour, marker) in zip(usual, ends, LINES, strict=False):
        axes.plot(hours, counts[hours, x] / totals[hours], color=colour, marker=marker, markersize=3, linewidth=1.4)
        axes.annotate(
            shortened(check.states[x], 14),
            (hours[-1], end),
            (6, -3),
            textcoords="offset points",
            color=colour,
            fontsize=8,
            parse_math=False,
        )
        if check.stationary:
            axes.fill_between([0, 23], *check.stationary[x], color=colour, alpha=0.15, linewidth=0)
            axes.hlines(np.mean(check.stationary[x]), 0, 23, color=colour, linewidth=0.8, linestyle=(0, (4, 2)))
    axes.set_ylim(0, 1)
    axes.set_xlim(0, 29)
    axes.set_xticks(range(0, 25, 6), [f"{hour}:00" for hour in range(0, 25, 6)])
    axes.set_xticks(range(0, 25), minor=True)
    axes.set_xlabel("hour of the day (dashed: the model)")
    axes.set_ylabel("share of records")


def _apart(shares: list[float]) -> list[float]:
    """Return where names stand beside shares: from the lowest upwards, none over another.

    >>> [round(place, 3) for place in _apart([0.5, 0.0, 0.01])]
    [0.5, 0.02, 0.07]
    """
    places, least = list(shares), 0.4 * _LINE
    for i in sorted(range(len(shares)), key=shares.__getitem__):
        places[i] = max(shares[i], least)
        least = places[i] + _LINE
    return places


_LINE = 0.05  # the height of a name, as a share of the axis


def _overlaps(axes: Any, check: CheckFields) -> None:
    """Draw how much is forgotten after so many steps."""
    steps = [overlap.steps for overlap in check.overlaps]
    axes.plot(steps, [overlap.pooled for overlap in check.overlaps], color=BLUE, marker="o", markersize=4, label="data")
    worst = [overlap.worst for overlap in check.overlaps]
    axes.plot(steps, worst, color=PALE, marker="^", markersize=4, label="data, least forgetful subject")
    model = [(overlap.steps, overlap.model) for overlap in check.overlaps if overlap.model is not None]
    if model:
        known_steps, shares = zip(*model, strict=True)
        axes.plot(known_steps, shares, color=INK, marker="s", markersize=3.5, linewidth=1.2, label="model")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("steps later or earlier (log scale)")
    axes.set_ylabel("overlap (100%: all is forgotten)")
    axes.legend(frameon=False, fontsize=8)
