"""The noise of every mechanism as a page, with a slider for ε, and against ε as a figure.

Scales are proved and errors computed here; the page looks up what is written of each place of its slider. Between two
ε the larger noise is told, that of the smaller ε: it is proved for all larger ε too.

On wide screens the names of the chart's lines stand at their ends; on narrow ones, which have no room there, in a list
below. The page shows one of the two; its script moves the mark of the slider in both.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish._base.view import Html, counted, join, tag
from pufferfish._base.words import at_most, change_of_odds, number, to_the_noise
from pufferfish._draw.chart import Line, Lines
from pufferfish._draw.figure import INK, MARKS, draw_lines, mark_of, new_figure, titled
from pufferfish._draw.lines import SAMPLE, Frame, decade, path_of, powers, sample, tick
from pufferfish._draw.network import nearest
from pufferfish._draw.page import fold, page, section, slider, table
from pufferfish.compare.rows import ComparisonRow, by_reason, points_around, too_little
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.network_picture import theta_part
from pufferfish.mechanisms.promises import units_part
from pufferfish.mechanisms.protection import Protection, step_of
from pufferfish.mechanisms.words import (
    TOGETHER,
    alternatives_of,
    checked_of,
    few_as_planned,
    hidden_in_words,
    law_assumed,
    not_promised_of,
    promise_of,
    secrets_of,
    witness_part,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STEPS = 2
"""Places of the slider from one of the ε of :func:`points_around` to the next."""

Curve = Sequence[ComparisonRow]
"""The noise of one mechanism in one shape, at all ε of :func:`points_around` or at some of them, in equal ratios."""


def noise_part(
    made: Calibration, rows: Curve, curves: Sequence[Curve], measure: str, name: str, command: str = ""
) -> tuple[Html, dict[str, Any] | None]:
    """Return the table of mechanisms with its slider, and what the script reads; ``name`` is its place in the page.

    ``made`` is of the mechanism that is recommended, ``rows`` are at its ε, and ``measure`` says what errors are
    numbers of. ``command`` releases the query, with the ε that follows: it stands below the slider.
    """
    places = {_kind(curve[0]): i for i, curve in enumerate(curves)}
    own, whole = (made.mechanism, "equal" if made.strategy is None else "best"), made.linear.unit.denominator == 1
    shown = table(
        ["mechanism", "noise scale", "± 95%"],
        [_row(row, places.get(_kind(row)), _kind(row) == own, whole) for row in rows if row.reason is None],
        f"Noise of every mechanism ({measure}); ± 95%: one value is within this of the exact one with 95% probability",
        class_="noise",
    )
    notes: list[Any] = []
    if lower := next((row.lower_bound for row in rows if row.lower_bound), None):
        of_stretch = made.bound.protection is not None and made.bound.protection.is_stretch
        least = f"no Laplace noise with one scale below {number(lower)} {too_little(of_stretch)}"
        notes += [tag("p", f"At ε = {at_most(made.epsilon)}, whatever the mechanism, {least}.")]
    if refused := by_reason(rows):
        reasons = tag("ul", *(tag("li", tag("strong", titles), f": {why}") for titles, why in refused))
        notes += [fold("Mechanisms that do not apply, or were not asked, and why", reasons)]
    if own not in places:
        return join(shown, *notes), None
    epsilons = points_around(made.epsilon)
    last, middle = _STEPS * (len(epsilons) - 1), _STEPS * epsilons.index(made.epsilon)
    noise = [at_places(curve, last) for curve in curves]
    own_noise, all_epsilons = noise[places[own]], [at_most(epsilon_at(epsilons, place)) for place in range(last + 1)]
    told = [
        f"ε = {epsilon}: {'no noise is known' if error is None else error_in_words(_written(error, scale, whole))}"
        for epsilon, (scale, error, _) in zip(all_epsilons, own_noise, strict=True)
    ]
    errors = [[row.accuracy for row in curve] for curve in curves]
    chart, marks = noise_chart(
        [curve[0].title for curve in curves], errors, epsilons, made.epsilon, places[own], [n[1] for n in own_noise]
    )
    cells = [[_texts(*there, whole) for there in of_curve] for of_curve in noise]
    written = [{"scale": [scale for scale, _ in texts], "error": [error for _, error in texts]} for texts in cells]
    commands = [f"{command} {epsilon.replace(',', '')}" for epsilon in all_epsilons if command]
    shown_command = tag("pre", tag("code", commands[middle]), class_="command") if commands else None
    control = slider(
        name,
        "What if ε were another? Move it (arrow keys work too):",
        (f"ε = {all_epsilons[0]}: more private", f"ε = {all_epsilons[-1]}: more exact"),
        told[middle],
        f"Back to ε = {all_epsilons[middle]}",
        last=last,
        at=middle,
        told=f"{name}-told",
    )
    data = {"id": name, "places": told, "rows": written, "commands": commands, "marks": marks}
    return tag("div", control, shown_command, chart, shown, *notes, id=name), data


def _kind(row: ComparisonRow) -> tuple[str, str]:
    return row.mechanism, row.noise


def at_places(curve: Curve, last: int) -> list[tuple[float | None, float | None, bool]]:
    """Return scale and error at each place of the slider, and whether they were proved for this very place.

    Between two places that were proved it is the larger noise, that of the smaller ε.
    """
    every = last // (len(curve) - 1)
    found: list[tuple[float | None, float | None, bool]] = []
    for place in range(last + 1):
        low, between = divmod(place, every)
        here, after = curve[low], curve[low + bool(between)]
        if here.scale is None or here.accuracy is None:
            found.append((None, None, not between))
        else:
            found.append((max(here.scale, after.scale or 0), max(here.accuracy, after.accuracy or 0), not between))
    return found


def epsilon_at(epsilons: Sequence[float], place: int) -> float:
    """Return the ε at a place of the slider: places lie in equal ratios."""
    low, between = divmod(place, _STEPS)
    if not between:
        return epsilons[low]
    share = between / _STEPS
    return math.exp((1 - share) * math.log(epsilons[low]) + share * math.log(epsilons[low + 1]))


def _texts(scale: float | None, error: float | None, proved: bool, whole: bool) -> tuple[str, str]:
    """Write a scale and an error, with a sign where they are those of a smaller ε."""
    if scale is None or error is None:
        return "none known", "none known"
    near = "" if proved else "≤ "
    return near + number(scale), near + _written(error, scale, whole)


def _written(error: float, scale: float | None, whole: bool) -> str:
    """Write an error of noise to its digits; ``whole`` says whether errors are whole numbers, as those of counts."""
    return to_the_noise(error, scale, whole=whole) if error and scale else number(error)


def _row(row: ComparisonRow, place: int | None, is_own: bool, whole: bool) -> Html:
    note = "" if row.composes else "least for this one query" if row.least else "for one query only"
    note = "recommended" if is_own else note
    scale = row.scale or 0.0
    return tag(
        "tr",
        tag(
            "th",
            f"{row.title}{', best shape' if row.noise == 'best' else ''}",
            tag("small", note) if note else None,
            scope="row",
        ),
        tag("td", number(scale), class_="n scale"),
        tag("td", _written(row.accuracy or 0.0, scale, whole), class_="n error"),
        class_="own" if is_own else None,
        data_row=place,
    )


def error_in_words(error: str) -> str:
    """Say what an error of the noise means.

    Examples
    --------
    >>> error_in_words("0")
    'the noise is 0 with at least 95% probability: each value would then be published exactly'
    """
    if error == "0":
        return "the noise is 0 with at least 95% probability: each value would then be published exactly"
    return f"each value is within {error} of the exact one with 95% probability"


# -- The chart of a page: ± 95% against ε, a line for each mechanism, for wide screens and for narrow ones ------------

_WIDE = Frame(896, 314, 66, 620, 14, 286)
"""As wide as a page: right of its axes stand the names of its lines."""

_NARROW = Frame(364, 270, 58, 358, 12, 242)
"""As wide as a phone."""

_NAME = 20
"""How far apart the names of lines are at least."""

_ONE_END = 3.0
"""Lines that end so near each other have one place where their names stand."""

_DASHES = ("7 4", "2 3", "12 4", "8 3 2 3", "14 3 2 3 2 3", "4 4", "1 5", "16 6", "10 3 5 3")
"""Strokes and gaps of lines, which tell them apart without colour; that of the page's own mechanism is whole."""


def noise_chart(
    titles: Sequence[str],
    errors: Sequence[Sequence[float | None]],
    epsilons: Sequence[float],
    epsilon: float,
    own: int,
    own_errors: Sequence[float | None] = (),
) -> tuple[Html, list[list[tuple[float, float | None]]]]:
    """Return the errors against ε, both on logarithmic scales, and the marks of the slider in each picture.

    ``errors`` has for each mechanism those at some of the ε, the first and the last among them, in equal ratios;
    ``own`` is the place of the mechanism that the page is about, which errs by
    ``own_errors`` at the places of the slider. A mark
    says of a place how far along it is, and how high its dot, if there is one.
    """
    known = [error for line in errors for error in line if error]
    if not known or max(known) <= min(known):
        return Html(""), []
    least, most = decade(min(known), math.floor), decade(max(known), math.ceil)

    def at(frame: Frame, along: float, error: float) -> tuple[float, float]:
        return frame.at(along, math.log(error / least) / math.log(most / least))

    def points(frame: Frame, place: int) -> list[tuple[float, float]]:
        last = len(errors[place]) - 1
        return [at(frame, i / last, error) for i, error in enumerate(errors[place]) if error]

    drawn = [i for i, line in enumerate(errors) if sum(bool(error) for error in line) > 1]
    drawn.sort(key=lambda i: i == own)  # the page's own mechanism last, above the others
    ends = {place: points(_WIDE, place)[-1] for place in drawn}
    names = _names(titles, ends, own)
    last, middle = len(epsilons) - 1, list(epsilons).index(epsilon)
    error_here = errors[own][round(middle / last * (len(errors[own]) - 1))] or most
    label = (
        f"The error that one value exceeds with 5% probability, from ε = {at_most(epsilons[0])} to "
        f"{number(epsilons[-1])}: it falls as ε grows. The table below has the numbers."
    )

    def picture(frame: Frame, class_: str, names: Sequence[Html] = ()) -> Html:
        ticks = [frame.level(at(frame, 0, error)[1], tick(error), class_="grid") for error in powers(least, most)]
        for i in sorted({0, middle, last}):
            x, anchor = frame.at(i / last, 0)[0], "end" if i == last else "middle"
            text = f"ε = {at_most(epsilons[i])}"
            ticks.append([tag("text", text, x=f"{x:.1f}", y=frame.bottom + 18, text_anchor=anchor)])
        lines = [
            tag("path", tag("title", titles[place]), d=path_of(points(frame, place)), **_look(place, own))
            for place in drawn
        ]
        x, y = at(frame, middle / last, error_here)
        line, dot = (
            tag("path", d=f"M0 {frame.top}V{frame.bottom}", class_="at"),
            tag("circle", cy=f"{y:.1f}", r=5, class_="dot"),
        )
        mark = tag("g", line, dot, transform=f"translate({x:.1f})", class_="here")
        return frame.picture(ticks, lines, names, mark, label=label, class_=class_)

    def mark_at(frame: Frame, place: int, error: float | None) -> tuple[float, float | None]:
        x, y = at(frame, place / (len(own_errors) - 1), error or most)
        return round(x, 1), round(y, 1) if error else None

    listed = [
        tag("li", sample(**_look(place, own)), tag("span", titles[place]), class_="own" if place == own else None)
        for place in sorted(ends, key=lambda place: (place != own, ends[place][1]))
    ]
    figure = tag(
        "figure",
        picture(_WIDE, "chart on-wide", names),
        picture(_NARROW, "chart on-narrow"),
        tag("ul", listed, class_="lines on-narrow"),
        _caption(titles[own], names, ended=any(error == 0 for line in errors for error in line)),
    )
    return figure, [[mark_at(frame, *place) for place in enumerate(own_errors)] for frame in (_WIDE, _NARROW)]


def _caption(own_title: str, names: Sequence[Html], *, ended: bool) -> Html:
    """Say what the chart shows, and where its lines are named."""
    equal = any(">= " in name for name in names)
    beside = " A name with = before it is of a line that ends at the same point as the one above." if equal else ""
    return tag(
        "figcaption",
        f"± 95% against ε, both on logarithmic scales. Thick: {own_title}; dashed: the other "
        "mechanisms of the table, named ",
        tag("span", f"where their lines end.{beside}", class_="on-wide"),
        tag("span", "below the chart.", class_="on-narrow"),
        " A line ends where the noise is 0 with 95% probability: exact values would be published there."
        if ended
        else None,
    )


def _names(titles: Sequence[str], ends: Mapping[int, tuple[float, float]], own: int) -> list[Html]:
    """Return the names of lines, each with its dashes, beside their ends: moved apart where they would overlap.

    Where lines end at one point their names are one block, with the page's own mechanism first.
    """
    blocks: list[list[int]] = []
    for place in sorted(ends, key=lambda place: (ends[place][1], place)):
        there = next((block for block in blocks if math.dist(ends[block[0]], ends[place]) <= _ONE_END), None)
        if there is None:
            blocks.append([place])
        else:
            there.append(place)
    blocks = [sorted(block, key=lambda place: (place != own, place)) for block in blocks]
    order = [place for block in blocks for place in block]
    middle = {place: ends[block[0]][1] - _NAME * (len(block) - 1) / 2 for block in blocks for place in block}
    offsets = {place: _NAME * block.index(place) for block in blocks for place in block}
    lowest = [_WIDE.bottom - _NAME * i for i in reversed(range(len(order)))]  # the last is no lower than the axis
    wanted = [[(min(middle[p] + offsets[p], low), 1.0)] for p, low in zip(order, lowest, strict=True)]
    heights = dict(zip(order, nearest(wanted, [_NAME * i for i in range(len(order))]), strict=True))
    parts: list[Html] = []
    for block in blocks:
        x, y = ends[block[0]]
        centre = (heights[block[0]] + heights[block[-1]]) / 2
        parts.append(tag("path", d=f"M{x + 2:.1f} {y:.1f}L{_WIDE.right + 14} {centre:.1f}", class_="leader"))
        if len(block) > 1:
            parts.append(
                tag(
                    "path",
                    d=f"M{_WIDE.right + 14} {heights[block[0]] - 6:.1f}V{heights[block[-1]] + 6:.1f}",
                    class_="leader",
                )
            )
        for place in block:
            height = heights[place]
            parts += [
                tag("path", d=f"M{_WIDE.right + 18} {height:.1f}h{SAMPLE}", **_look(place, own)),
                tag(
                    "text",
                    f"{'' if place == block[0] else '= '}{titles[place]}",
                    x=_WIDE.right + 51,
                    y=f"{height + 5:.1f}",
                    class_="name own" if place == own else "name",
                ),
            ]
    return parts


def _look(place: int, own: int) -> dict[str, Any]:
    """Return how the line of a mechanism looks."""
    if place == own:
        return {"class_": "line own"}
    rank = place - (place > own)
    return {"class_": f"line of-{rank % 4}", "stroke_dasharray": _DASHES[rank % len(_DASHES)]}


# -- What is promised, what is not, and what is assumed --------------------------------------------------------------

_MOST_PAIRS = 20


def promise_part(
    epsilon: float,
    promise: str,
    not_promised: Sequence[str],
    assumptions: Sequence[str],
    *,
    hides: str,
    secrets: Sequence[tuple[str, str]] | None,
    protection: Protection | None,
    delta: float = 0.0,
) -> Html:
    """Return the promise in plain words, what it hides, and its limits; its exact sentence is folded."""
    together = [text for text in not_promised if text.startswith(TOGETHER)]  # this a ledger does promise
    plain = (
        f"Take somebody who believes any distribution in Θ, however records depend on each other there. Seeing the "
        f"release changes the odds between {alternatives_of(secrets, protection)} by e^ε at most, with ε = "
        f"{at_most(epsilon)} a factor of {change_of_odds(epsilon)}. The smaller ε, the less is told."
    )
    statements = [tag("p", plain, class_="card"), fold("The exact sentence of the promise", tag("p", promise))]
    if delta:  # what is exact says δ, and few words cannot: it stands open
        fails = f"The promise may fail, with a probability that δ = {delta:g} says."
        statements = [tag("p", fails, " The smaller ε and δ, the less is told."), tag("p", promise, class_="card")]
    pairs = [f"({a}) or ({b})" for a, b in (secrets or ())[:_MOST_PAIRS]]
    more = "; …" if len(secrets or ()) > _MOST_PAIRS else "."
    return section(
        "What would be promised, and what not",
        tag("p", "Unit of protection: ", tag("strong", hides), ", whatever other records tell.", class_="lead"),
        *([tag("p", "The pairs of secrets: ", "; ".join(pairs), more)] if pairs else []),
        *statements,
        *(tag("p", text, class_="card") for text in together),
        tag("h4", "Not promised"),
        tag("ul", *(tag("li", text) for text in not_promised if text not in together)),
        *([tag("h4", "Assumed"), tag("ul", *(tag("li", text) for text in assumptions))] if assumptions else []),
    )


# -- The page of a comparison: what would be promised ----------------------------------------------------------------

_NUMBERS = "the numbers of records, and where gaps are, were"


def preview(
    parts: Sequence[tuple[Calibration, Curve, Sequence[Curve], str, str]], assumptions: Sequence[str] | None = None
) -> bytes:
    """Return the page about queries, and about the mechanisms that their noise was chosen from.

    Each has what :func:`noise_part` takes of it: the calibration, the noise of all mechanisms at its ε and around it,
    what errors are numbers of, and the command ("" where nobody knows it). ``assumptions`` are of the table that the
    numbers of records were read from; None where no table was read.
    """
    calibration = parts[0][0]
    theta, protection = calibration.theta, calibration.bound.protection
    secrets, step = secrets_of(calibration), step_of(theta, calibration.bound.model)
    about: Any = {"of_chains": theta.of_chains, "networks": bool(theta.networks)}
    about |= {"protection": protection, "step": step}
    promise = promise_of(calibration.epsilon, calibration.delta, secrets, **about)
    read = "no data were read for this page"
    assumed: Sequence[str] = _of_any_table(calibration)
    if assumptions is not None:
        read = f"of the data only {'the number of rows was' if theta.networks else _NUMBERS} used"
        assumed = assumptions
    one = calibration.query.kind if len(parts) == 1 else f"{len(parts)} queries"
    title = f"Preview: {one}, hiding {hidden_in_words(secrets, **about, brief=True)}"
    if len({made.epsilon for made, *_ in parts}) == 1:
        title += f", at ε = {at_most(calibration.epsilon)}"
    shown = [_query_part(*part, f"noise-{i}") for i, part in enumerate(parts)]
    body = join(
        tag("h1", title),
        tag("p", f"Nothing was released or spent, and {read}.", class_="card"),
        *(html for html, _ in shown),
        promise_part(
            calibration.epsilon,
            promise,
            not_promised_of(secrets, None, kinds=theta.kinds, composes=calibration.composes, protection=protection),
            [law_assumed(theta.in_words, theta.origin, checked_of(calibration.bound.model)), *assumed],
            hides=hidden_in_words(secrets, **about),
            secrets=secrets,
            protection=protection,
            delta=calibration.delta,
        ),
        section(
            "What an adversary may believe: Θ",
            theta_part(theta, decides=calibration.witness.theta, calibration=calibration),
        ),
    )
    return page("preview", title, body, [data for _, data in shown if data is not None])


def _query_part(
    calibration: Calibration, rows: Curve, curves: Sequence[Curve], measure: str, command: str, name: str
) -> tuple[Html, dict[str, Any] | None]:
    """Return the noise of one query, with its slider and the command that releases it, and what the script reads."""
    whole = calibration.linear.unit.denominator == 1
    errors = (calibration.accuracy(0.05, joint=joint) for joint in (False, True))
    each, together = (_written(error, calibration.scale, whole) for error in errors)
    part, data = noise_part(calibration, rows, curves, measure, name, command)
    lead = (
        f"With {calibration.title} each of {counted(len(calibration.linear.labels), 'value')} would be within {each} "
        f"of the exact one with 95% probability ({measure}), and all of them within {together}."
    )
    why = witness_part(calibration.witness, calibration.epsilon, calibration.epsilon, calibration.theta)
    step = step_of(calibration.theta, calibration.bound.model)
    shown = join(
        tag("h2", calibration.linear.description[:1].upper() + calibration.linear.description[1:]),
        tag("p", lead, class_="lead"),
        *(tag("p", text, class_="card") for text in few_as_planned(calibration)),
        tag("p", f"The noise is for a table of {calibration.records:,} records.", class_="soft"),
        section("What error to expect, and the noise of every mechanism", part),
        units_part(calibration.promises(step), step, calibration.bound.protection),
        section("Which record decides the noise, and why", why),
    )
    return shown, data


def _of_any_table(calibration: Calibration) -> list[str]:
    """Return what is assumed however a table is read; a release says how its own was, its gaps for example."""
    theta = calibration.theta
    if theta.networks:
        return [
            "Rows are independent of each other under every θ: one row per subject.",
            "The number of rows is public, and assumed independent of the states.",
        ]
    if not theta.of_chains:
        return ["How many records there are is public, and assumed independent of the states."]
    several = ["Different chains are independent of each other."] if len(calibration.length) > 1 else []
    return [
        *(several or ["The table is one chain: any record may depend on any other."]),
        "Records next to each other follow each other in one step.",
        "The number of records, their times, the gaps and which states are missing are public, and assumed independent "
        "of the states.",
        "How a table is read adds to this, its gaps and missing states for example: a release says it.",
    ]


# -- The figure of compare --plot: noise scales against ε --------------------------------------------------------------

_AS_ONE = 0.01
"""Curves of noise within this share of each other cannot be told apart in a picture."""


def draw_noise(
    noise: Sequence[Curve], floor: Mapping[float, float], made: Sequence[str] = (), measure: str = ""
) -> "Figure":
    """Draw the noise scale of every mechanism against ε, with the lower bound that none can go below.

    ``noise`` is that of each mechanism at the same ε, and ``floor`` has for each ε what no noise is below, where that
    is known; ``made`` stands above the picture: the query and of how many records it is, then the model.
    """
    equal = [curve for curve in noise if curve[0].noise == "equal"]  # the error of the best is not in proportion
    epsilons = sorted({row.epsilon or 0.0 for curve in equal for row in curve})
    titles = {curve[0].mechanism: curve[0].title for curve in equal}
    known = {curve[0].mechanism: [(row.epsilon or 0.0, row.scale) for row in curve if row.scale] for curve in equal}
    drawn = {name: known[name] for name in sorted(known, key=[*MARKS, *known].index) if known[name]}
    lines: list[Line] = []
    for i, (name, curve) in enumerate(drawn.items()):
        alike = [j for j, other in enumerate(drawn.values()) if _same(other, curve)]
        same = f", the same as\n{titles[list(drawn)[alike[0]]]} within 1%" if alike[0] < i else ""
        lines.append(_line(f"{titles[name]}{same}", curve, mark=mark_of(name), wide=alike[-1] > i))
    if floor:
        grey = "too little: Laplace noise of one\nscale does not give the guarantee"
        lines.append(_line("lower bound", list(floor.items()), look="dashes", mark=(INK, ""), below=grey))
    figure = new_figure(8.2, 4.8)
    chart = Lines(
        caption="Noise of each mechanism against ε",
        lines=lines,
        label="ε (privacy parameter)",
        value_label=f"noise scale{f' ({measure})' if measure else ''}",
        ticks=(epsilons, [f"{e:.3g}" for e in epsilons]),
        log=True,
    )
    draw_lines(figure.add_subplot(), chart)
    titled(figure, *(made or [chart.caption]))
    return figure


def _line(name: str, curve: Sequence[tuple[float, float]], **look: Any) -> Line:
    epsilons, scales = np.array(curve).T
    return Line(name=name, x=epsilons, low=scales, high=scales, **look)


def _same(first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]]) -> bool:
    """Return whether two curves lie on each other: noise at the same ε, within a hundredth of each other."""
    return [e for e, _ in first] == [e for e, _ in second] and all(
        abs(a - b) <= _AS_ONE * b for (_, a), (_, b) in zip(first, second, strict=True)
    )
