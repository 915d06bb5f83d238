"""The noise of every mechanism, and a slider for ε: scales are proved here, and the page looks them up.

Between two ε the page takes the larger scale, that of the smaller ε: it is proved for all larger ε too. The error of
noise of one scale is computed there from the scale, as :mod:`pufferfish._core.numbers.laplace` does; that of
noise of other shapes is computed here, and the page takes the larger one of two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pufferfish._base.view import Html, counted, join, tag
from pufferfish._base.words import at_most, change_of_odds, number, to_the_noise
from pufferfish._draw.page import fold, page, section, slider, table
from pufferfish.compare.picture import noise_chart
from pufferfish.compare.rows import ComparisonRow, NoiseCurve, by_reason, points_around, too_little
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

__all__ = ["Noise", "noise_part", "preview", "promise_part"]

_STEPS = 2
"""Places of the slider from one of the ε of :func:`points_around` to the next."""

_ALPHA = 0.05
"""Probability with which an error is exceeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise of mechanisms at one ε, and around it.

    ``rows`` are at the ε that is asked for, ``curves`` have the noise at all ε of :func:`points_around` or at some of
    them, in equal ratios; their scales and errors times ``unit`` are those of the query. The page is about one
    ``mechanism`` and one shape of its ``noise``. Below ``lower`` no Laplace noise of one scale gives the guarantee:
    where a stretch is hidden (``of_stretch``) that is what one record of it needs. ``measure`` says what answers and
    errors are numbers of, and ``whole`` whether errors are whole numbers, as those of counts are.
    """

    rows: Sequence[ComparisonRow]
    curves: Sequence[NoiseCurve]
    epsilon: float
    unit: float
    mechanism: str
    noise: str
    measure: str
    lower: float | None
    whole: bool = False
    of_stretch: bool = False

    @classmethod
    def of(
        cls, calibration: Calibration, rows: Sequence[ComparisonRow], curves: Sequence[NoiseCurve], measure: str
    ) -> "Noise":
        """Return the noise of mechanisms around that of a calibration, which is of the one that is recommended."""
        protection = calibration.bound.protection
        return cls(
            rows=rows,
            curves=curves,
            unit=float(calibration.linear.unit),
            epsilon=calibration.epsilon,
            mechanism=calibration.mechanism,
            noise="equal" if calibration.strategy is None else "best",
            measure=measure,
            whole=calibration.linear.unit.denominator == 1,
            lower=next((row.lower_bound for row in rows if row.lower_bound), None),
            of_stretch=protection is not None and protection.is_stretch,
        )

    @property
    def epsilons(self) -> Sequence[float]:
        """Where noise was computed."""
        return points_around(self.epsilon)

    def written(self, error: float, scale: float) -> str:
        """Write an error of noise to its digits, as page.js does: the value has as many, wherever it stands."""
        if error == 0 or scale == 0:
            return number(error)
        return to_the_noise(error, scale, whole=self.whole)


def noise_part(about: Noise, name: str, command: str = "") -> tuple[Html, dict[str, Any] | None]:
    """Return the table of mechanisms with its slider, and what the script reads; ``name`` is its place in the page.

    ``command`` releases the query, with the ε that follows: it stands below the slider.
    """
    fit = [row for row in about.rows if row.reason is None]
    places: dict[tuple[str, str], int] = {(curve.mechanism, curve.noise): i for i, curve in enumerate(about.curves)}
    own_place = places.get((about.mechanism, about.noise))
    rows = [_row(about, row, places.get((row.mechanism, row.noise))) for row in fit]
    shown = table(
        ["mechanism", "noise scale", "± 95%"],
        rows,
        f"Noise of every mechanism ({about.measure}); ± 95%: one value is within this of the exact one with 95% "
        "probability",
        class_="noise",
    )
    notes: list[Any] = []
    if about.lower:
        least = f"no Laplace noise with one scale below {number(about.lower)} {too_little(about.of_stretch)}"
        notes += [tag("p", f"At ε = {at_most(about.epsilon)}, whatever the mechanism, {least}.")]
    refused = [row for row in about.rows if row.reason is not None]
    if refused:
        reasons = tag("ul", *(tag("li", tag("strong", titles), f": {why}") for titles, why in by_reason(refused)))
        notes += [fold("Mechanisms that do not apply, or were not asked, and why", reasons)]
    if own_place is None:
        return join(shown, *notes), None
    errors = [[None if error is None else error * about.unit for error in curve.errors] for curve in about.curves]
    titles = [curve.title for curve in about.curves]
    chart, frames = noise_chart(titles, errors, about.epsilons, about.epsilon, own_place)
    last = _STEPS * (len(about.epsilons) - 1)
    data = {
        "id": name,
        "epsilons": about.epsilons,
        "steps": _STEPS,
        "alpha": _ALPHA,
        "unit": about.unit,
        "whole": about.whole,
        "own": own_place,
        "command": command,
        "curves": [_numbers(curve, last) for curve in about.curves],
        **frames,
    }
    told = tag("pre", tag("code", f"{command} {_plain(about.epsilon)}"), class_="command") if command else None
    return tag("div", _slider(about, own_place, name), told, chart, shown, *notes, id=name), data


def _plain(epsilon: float) -> str:
    """Write ε as an option takes it, rounded up as in all texts; page.js does the same."""
    return at_most(epsilon).replace(",", "")


def _numbers(curve: NoiseCurve, last: int) -> dict[str, Any]:
    """Return what the script reads of one mechanism: its scales, every so many places, and its errors."""
    fields = {"every": last // (len(curve.scales) - 1), "scale": curve.scales}
    return fields if curve.noise == "equal" else fields | {"error": curve.errors}


def _row(about: Noise, row: ComparisonRow, place: int | None) -> Html:
    is_own = (row.mechanism, row.noise) == (about.mechanism, about.noise)
    note = "" if row.composes else "least for this one query" if row.least else "for one query only"
    note = "recommended" if is_own else note
    name = f"{row.title}{', best shape' if row.noise == 'best' else ''}"
    scale, error = row.scale or 0.0, row.accuracy or 0.0
    return tag(
        "tr",
        tag("th", name, tag("small", note) if note else None, scope="row"),
        tag("td", number(scale), class_="n scale"),
        tag("td", about.written(error, scale), class_="n error"),
        class_="own" if is_own else None,
        data_curve=place,
    )


def _slider(about: Noise, own_place: int, name: str) -> Html:
    last, middle = len(about.epsilons) - 1, list(about.epsilons).index(about.epsilon)
    curve = about.curves[own_place]
    place = middle * (len(curve.scales) - 1) // last
    error, scale = ((numbers[place] or 0) * about.unit for numbers in (curve.errors, curve.scales))
    here, *ends = (f"ε = {at_most(epsilon)}" for epsilon in (about.epsilon, about.epsilons[0], about.epsilons[-1]))
    return slider(
        name,
        "What if ε were another? Move it (arrow keys work too):",
        (f"{ends[0]}: more private", f"{ends[1]}: more exact"),
        f"{here}: {error_in_words(about.written(error, scale))}",
        f"Back to {here}",
        last=_STEPS * last,
        at=_STEPS * middle,
        told=f"{name}-told",
    )


def error_in_words(error: str) -> str:
    """Say what an error of the noise means, as page.js does.

    Examples
    --------
    >>> error_in_words("0")
    'the noise is 0 with at least 95% probability: each value would then be published exactly'
    """
    if error == "0":
        return "the noise is 0 with at least 95% probability: each value would then be published exactly"
    return f"each value is within {error} of the exact one with 95% probability"


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
    title: str = "What is promised, and what is not",
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
        title,
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


def preview(parts: Sequence[tuple[Calibration, Noise, str]], assumptions: Sequence[str] | None = None) -> bytes:
    """Return the page about queries, and about the mechanisms that their noise was chosen from.

    Each has a calibration of the mechanism that is recommended, the noise of all, and the command that releases it, up
    to the ε that follows ("" where nobody knows it). ``assumptions`` are of the table that the numbers of records were
    read from; None where no table was read.
    """
    calibration = parts[0][0]
    theta, protection = calibration.theta, calibration.bound.protection
    secrets, step = secrets_of(calibration), step_of(theta, calibration.bound.model)
    about: Any = {
        "of_chains": theta.of_chains,
        "networks": bool(theta.networks),
        "protection": protection,
        "step": step,
    }
    promise = promise_of(calibration.epsilon, calibration.delta, secrets, **about)
    read = "no data were read for this page"
    assumed: Sequence[str] = _of_any_table(calibration)
    if assumptions is not None:
        read = f"of the data only {'the number of rows was' if theta.networks else _NUMBERS} used"
        assumed = assumptions
    one = calibration.query.kind if len(parts) == 1 else f"{len(parts)} queries"
    title = f"Preview: {one}, hiding {hidden_in_words(secrets, **about, brief=True)}"
    if len({made.epsilon for made, _, _ in parts}) == 1:
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
            title="What would be promised, and what not",
        ),
        section(
            "What an adversary may believe: Θ",
            theta_part(theta, decides=calibration.witness.theta, calibration=calibration),
        ),
    )
    return page("preview", title, body, [data for _, data in shown if data is not None])


def _query_part(calibration: Calibration, noise: Noise, command: str, name: str) -> tuple[Html, dict[str, Any] | None]:
    """Return the noise of one query, with its slider and the command that releases it, and what the script reads."""
    each, together = (
        noise.written(calibration.accuracy(0.05, joint=joint), calibration.scale) for joint in (False, True)
    )
    part, data = noise_part(noise, name, command)
    lead = (
        f"With {calibration.title} each of {counted(len(calibration.linear.labels), 'value')} would be within {each} "
        f"of the exact one with 95% probability ({noise.measure}), and all of them within {together}."
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
