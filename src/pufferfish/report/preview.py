"""The page of a comparison: what would be promised, and what error to expect, before any data are touched."""

from collections.abc import Sequence

from pufferfish.calibration import Calibration
from pufferfish.comparison_row import ComparisonRow, NoiseCurve
from pufferfish.digits import at_most, number
from pufferfish.markup import join, tag
from pufferfish.promises import not_promised_of, promise_of, secrets_of
from pufferfish.report.html import page, section
from pufferfish.report.noise import Noise, noise_part
from pufferfish.report.promise_part import promise_part
from pufferfish.report.theta_pictures import theta_part
from pufferfish.report.witness_words import witness_part
from pufferfish.shown import counted

__all__ = ["preview"]


def preview(
    found: Calibration,
    rows: Sequence[ComparisonRow],
    epsilons: Sequence[float],
    curves: Sequence[NoiseCurve],
    measure: str,
) -> bytes:
    """Return the page about a calibration, and about the mechanisms that it was chosen from.

    Parameters
    ----------
    found : Calibration
        Of the mechanism that is recommended.
    rows : sequence of ComparisonRow
        The noise of all mechanisms at its ε.
    epsilons, curves
        Their noise at other ε.
    measure : str
        What the answers are numbers of.
    """
    theta, query = found.theta, found.query
    noise = Noise(
        rows=rows,
        epsilons=epsilons,
        curves=curves,
        epsilon=found.epsilon,
        mechanism=found.mechanism,
        noise="equal" if found.strategy is None else "best",
        measure=measure,
        own_word="recommended",
        lower=next((row.lower_bound for row in rows if row.lower_bound), None),
    )
    part, data = noise_part(noise, "noise-0")
    secrets = secrets_of(found)
    promise = promise_of(found.epsilon, found.delta, secrets, of_chains=theta.of_chains, networks=bool(theta.networks))
    title = f"Preview: {query.kind} at ε = {at_most(found.epsilon)}"
    outputs = len(found.linear.labels)
    lead = (
        f"With {found.title} each of {counted(outputs, 'value')} would be within "
        f"{number(found.accuracy(0.05))} of the exact one with 95% probability ({measure}), and all of them within "
        f"{number(found.accuracy(0.05, joint=True))}."
    )
    why = witness_part(found.witness, found.epsilon, found.epsilon, theta)
    body = join(
        tag("h1", title),
        tag("p", "Nothing was released or spent, and no data were read for this page.", class_="card"),
        tag("h2", found.linear.description[:1].upper() + found.linear.description[1:]),
        tag("p", lead, class_="lead"),
        tag("p", f"The noise is for a table of {found.records:,} records.", class_="soft"),
        section("What error to expect, and the noise of every mechanism", part),
        promise_part(
            found.epsilon,
            promise,
            not_promised_of(secrets, None, kind=theta.kind, composes=found.composes),
            [f"The distribution of the records is {theta.in_words} ({theta.origin})."],
            secrets,
            delta=found.delta,
            title="What would be promised, and what not",
        ),
        section("What an adversary may believe: Θ", theta_part(theta, decides=found.witness.theta, calibration=found)),
        section("Which record decides the noise, and why", why),
    )
    return page("preview", title, body, [] if data is None else [data])
