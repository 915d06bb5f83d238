"""The noise of every mechanism, and a slider for ε: scales are proved here, and the page looks them up.

Between two ε the page takes the larger scale, that of the smaller ε: it is proved for all larger ε too. The error of
noise of one scale is computed there from the scale, as :mod:`pufferfish._core.numbers.laplace` does; that of
noise of other shapes is computed here, and the page takes the larger one of two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pufferfish._base.view import Html, join, tag
from pufferfish._base.words import at_most, number, to_the_noise
from pufferfish._draw.page import fold, table
from pufferfish.compare._chart import noise_chart
from pufferfish.compare.rows import ComparisonRow, NoiseCurve, by_reason, points_around

__all__ = ["Noise", "noise_part"]

_STEPS = 2
"""Places of the slider from one of the ε of :func:`points_around` to the next."""

_ALPHA = 0.05
"""Probability with which an error is exceeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise of mechanisms at one ε, and around it.

    Parameters
    ----------
    rows : sequence of ComparisonRow
        At the ε that is asked for.
    curves : sequence of NoiseCurve
        The noise at all ε of :func:`points_around`, or at some of them, in equal ratios.
    epsilon : float
        The one that is asked for.
    unit : float
        By what the scales and errors of the curves are multiplied to be those of the query.
    mechanism, noise : str
        Which mechanism the page is about, and the shape of its noise.
    lower : float or None
        A scale below which no Laplace noise of one scale gives the guarantee.
    measure : str
        What answers, and their errors, are numbers of.
    scale_measure : str
        What the scales of noise are numbers of, where that is something else; "" where it is the same.
    own_word : str
        What is said of that mechanism.
    scale_factor : float
        By what scales and errors are multiplied: where the values are of groups, those of all records together were
        compared.
    division : float
        By what the scales are still to be divided, to be those of the noise whose errors are told: the records of the
        smallest group, where values are shares of groups.
    whole : bool
        Whether errors are whole numbers, as those of counts are.
    """

    rows: Sequence[ComparisonRow]
    curves: Sequence[NoiseCurve]
    epsilon: float
    unit: float
    mechanism: str
    noise: str
    measure: str
    lower: float | None
    own_word: str = "this release"
    scale_factor: float = 1.0
    scale_measure: str = ""
    division: float = 1.0
    whole: bool = False

    @property
    def error_factor(self) -> float:
        """By what errors are multiplied: those of a group are also divided by its records, if its values are."""
        return self.scale_factor / self.division

    @property
    def epsilons(self) -> Sequence[float]:
        """Where noise was computed."""
        return points_around(self.epsilon)

    def written(self, error: float, scale: float) -> str:
        """Write an error of noise to its digits, as page.js does: the value has as many, wherever it stands."""
        if error == 0 or scale == 0:
            return number(error)
        return to_the_noise(error, scale / self.division, whole=self.whole)


def noise_part(about: Noise, name: str) -> tuple[Html, dict[str, Any] | None]:
    """Return the table of mechanisms with its slider, and what the script reads; ``name`` is its place in the page."""
    fit = [row for row in about.rows if row.reason is None]
    places: dict[tuple[str, str], int] = {(curve.mechanism, curve.noise): i for i, curve in enumerate(about.curves)}
    own = places.get((about.mechanism, about.noise))
    rows = [_row(about, row, places.get((row.mechanism, row.noise))) for row in fit]
    apart, measured = bool(about.scale_measure), "" if about.scale_measure else f" ({about.measure})"
    shown = table(
        ["mechanism", _head("noise scale", about.scale_measure), _head("± 95%", about.measure if apart else "")],
        rows,
        f"Noise of every mechanism{measured}; ± 95%: one value is within this of the exact one with 95% probability",
        class_="noise",
    )
    said: list[Any] = []
    if about.lower:
        least = f"no Laplace noise with one scale below {number(about.lower)} gives this guarantee"
        said += [tag("p", f"At ε = {at_most(about.epsilon)} {least}, whatever the mechanism.")]
    refused = [row for row in about.rows if row.reason is not None]
    if refused:
        reasons = tag("ul", *(tag("li", tag("strong", titles), f": {why}") for titles, why in by_reason(refused)))
        said += [fold("Mechanisms that do not apply, or were not asked, and why", reasons)]
    if own is None:
        return join(shown, *said), None
    worth = about.unit * about.error_factor
    errors = [[None if error is None else error * worth for error in curve.errors] for curve in about.curves]
    chart, frame = noise_chart([curve.title for curve in about.curves], errors, about.epsilons, about.epsilon, own)
    last = _STEPS * (len(about.epsilons) - 1)
    data = {
        "id": name,
        "epsilons": about.epsilons,
        "steps": _STEPS,
        "alpha": _ALPHA,
        "unit": about.unit * about.scale_factor,
        "worth": worth,
        "division": about.division,
        "whole": about.whole,
        "own": own,
        "curves": [_numbers(curve, last) for curve in about.curves],
        **frame,
    }
    return tag("div", _slider(about, own, name), chart, shown, *said, id=name), data


def _numbers(curve: NoiseCurve, last: int) -> dict[str, Any]:
    """Return what the script reads of one mechanism: its scales, every so many places, and its errors."""
    found = {"every": last // (len(curve.scales) - 1), "scale": curve.scales}
    return found if curve.noise == "equal" else found | {"error": curve.errors}


def _head(title: str, measure: str) -> Html:
    """Return the heading of a column of numbers, with what they are numbers of."""
    return join(title, tag("small", measure) if measure else None)


def _row(about: Noise, row: ComparisonRow, place: int | None) -> Html:
    own = (row.mechanism, row.noise) == (about.mechanism, about.noise)
    note = (
        about.own_word
        if own
        else ""
        if row.composes
        else "least for this one query"
        if row.least
        else "for one query only"
    )
    name = f"{row.title}{', best shape' if row.noise == 'best' else ''}"
    scale, error = (row.scale or 0.0) * about.scale_factor, (row.accuracy or 0.0) * about.error_factor
    return tag(
        "tr",
        tag("th", name, tag("small", note) if note else None, scope="row"),
        tag("td", number(scale), class_="n scale"),
        tag("td", about.written(error, scale), class_="n error"),
        class_="own" if own else None,
        data_curve=place,
    )


def _slider(about: Noise, own: int, name: str) -> Html:
    middle = list(about.epsilons).index(about.epsilon)
    curve = about.curves[own]
    at = middle * (len(curve.scales) - 1) // (len(about.epsilons) - 1)
    error = (curve.errors[at] or 0) * about.unit * about.error_factor
    scale = (curve.scales[at] or 0.0) * about.unit * about.scale_factor
    told = f"ε = {at_most(about.epsilon)}: {error_in_words(about.written(error, scale))}"
    control = tag(
        "input",
        type="range",
        id=f"{name}-slider",
        min=0,
        max=_STEPS * (len(about.epsilons) - 1),
        step=1,
        value=_STEPS * middle,
        aria_describedby=f"{name}-told",
        autocomplete="off",
        disabled=True,
    )
    ends = tag(
        "div",
        tag("span", f"ε = {at_most(about.epsilons[0])}: more private"),
        tag("span", f"ε = {at_most(about.epsilons[-1])}: more exact"),
        class_="ends",
    )
    back = tag("button", f"Back to ε = {at_most(about.epsilon)}", type="button")
    return tag(
        "div",
        tag("label", "What if ε were another? Move it (arrow keys work too):", for_=f"{name}-slider"),
        control,
        ends,
        tag("output", told, for_=f"{name}-slider", id=f"{name}-told", aria_live="polite"),
        tag("div", back),
        class_="slider",
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
