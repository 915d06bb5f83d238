"""What is promised of every unit, as a table and as a chart, and what a calibration shows in a notebook."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pufferfish._base.view import Grid, Html, View, tag
from pufferfish._base.words import at_most, change_of_odds
from pufferfish._draw.chart import Line, Lines
from pufferfish._draw.lines import lines_figure
from pufferfish._draw.page import section, table
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.promises import Promise, names_of_stretches, promises_of
from pufferfish.mechanisms.protection import Protection, StretchProtection, step_of
from pufferfish.mechanisms.words import hidden_in_words, secrets_of

__all__ = ["calibration_view", "promise_chart", "promise_grid", "promise_picture", "units_part"]

_MANY = math.log(1000)
"""ε with which odds change a thousand times."""


def promise_grid(promises: Sequence[Promise], whose: str = "what this noise tells of") -> Grid:
    """Return what is told of every unit at most: the unit, ε, by which factor odds change, and what it covers."""
    rows = [[p.unit, at_most(p.epsilon), f"{change_of_odds(p.epsilon)} times", p.holds] for p in promises]
    heads = [whose, "ε, at most", "odds change", "what that covers"]
    caption = f"{whose[:1].upper()}{whose[1:].removesuffix(' of')} at most, unit by unit"
    return Grid(caption, heads, rows, long=len(rows))


def promise_chart(
    promises: Sequence[Promise], step: str | None = None, protection: Protection | None = None
) -> Lines | None:
    """Return ε against the length of the stretch; None where nothing is promised of two lengths.

    Parameters
    ----------
    promises : sequence of Promise
        What one noise promises of every unit.
    step : str, optional
        How long a step takes, where that is known.
    protection : Protection, optional
        What was asked for: it stands out.
    """
    stretches = [each for each in promises if each.steps is not None and 0 < each.epsilon < math.inf]
    told = {each.steps or 1: each for each in stretches if not each.near}
    if len(told) < 2:
        return None
    last = max(told)
    asked, within = 1, False
    if isinstance(protection, StretchProtection):
        asked, within = last if isinstance(protection.steps, str) else protection.steps, protection.only_near
    own = [each for each in stretches if each.steps == asked and each.near == within][-1:]
    near = [each for each in stretches if each.near and each not in own]
    lines = [_line("any two courses", [*told.values()])]
    caption = "ε against the length of the stretch: the line is what this noise tells of it at most."
    if near:
        lines.append(_line("near values only", near, look="points"))
        caption += " A ring: near values only."
    if own:
        lines.append(_line("asked for", own, look="points", wide=True))
        caption += " The large dot: the unit that was asked for."
    if max(each.epsilon for each in told.values()) > _MANY:
        many = np.array([_MANY, _MANY])
        lines.insert(
            0, Line(name="odds change 1,000 times", x=np.array([1.0, last]), low=many, high=many, look="dashes")
        )
        caption += " Above the dashed line odds change more than 1,000 times: almost nothing is hidden."
    names = names_of_stretches(step, told) | {1: "1 record", last: "whole series"}
    return Lines(
        caption=caption,
        lines=lines,
        label="length of the stretch",
        value_label="ε, at most",
        ticks=([*told], [names[steps] for steps in told]),
        log=True,
    )


def _line(name: str, promises: Sequence[Promise], **look: Any) -> Line:
    steps = np.array([float(each.steps or 1) for each in promises])
    epsilons = np.array([each.epsilon for each in promises])
    return Line(name=name, x=steps, low=epsilons, high=epsilons, **look)


def promise_picture(chart: Lines | None) -> list[Html]:
    """Return the chart, drawn; nothing where there is none."""
    return [] if chart is None else [lines_figure(chart)]


def units_part(promises: Sequence[Promise], step: str | None, protection: Protection | None) -> Html | None:
    """Return what one noise tells of every unit, as a part of a page; None where that is not known."""
    grid = promise_grid(promises)
    if not grid.rows:
        return None
    rows = [[tag("th", unit, tag("small", covers), scope="row"), *told] for unit, *told, covers in grid.rows]
    shown = table(grid.columns[:-1], rows, grid.caption, titled=False, class_="units")
    return section(grid.caption, *promise_picture(promise_chart(promises, step, protection)), shown)


def calibration_view(calibration: Calibration) -> View:
    """Return what a calibration shows: its unit, its noise, and what that promises of every other unit."""
    seen, theta = calibration.witness, calibration.theta
    pair = None if seen.pair_in_words is None else " or ".join(map(str, seen.pair_in_words))
    protection, step = calibration.bound.protection, step_of(theta, calibration.bound.model)
    hides = hidden_in_words(
        secrets_of(calibration), protection, step, of_chains=theta.of_chains, networks=bool(theta.networks)
    )
    facts = {
        "query": calibration.linear.description,
        "mechanism": calibration.title,
        "class Θ": f"{theta.kind}; {theta.origin}",
        "records": calibration.records,
        "noise scale": calibration.scale,
        "measured counts, from which all outputs follow": None
        if calibration.strategy is None
        else len(calibration.scales),
        "the noise is for record": seen.node,
        "and its values": pair,
    }
    rows = zip(calibration.linear.labels, calibration.accuracies(0.05).tolist(), strict=True)
    caption = "± 95%: each output is within this of the exact one with 95% probability"
    errors = Grid(caption, ["output", "± 95%"], [*map(list, rows)])
    promises = promises_of(calibration, step)
    title = f"Noise for a {calibration.query.kind}: hides {hides}, at ε = {at_most(calibration.epsilon)}"
    pictures = promise_picture(promise_chart(promises, step, protection))
    return View(title, facts, [errors, promise_grid(promises)], pictures=pictures)
