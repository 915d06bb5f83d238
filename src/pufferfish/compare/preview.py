"""The page of a comparison: what would be promised, and what error to expect, before any data are touched."""

from collections.abc import Sequence

from pufferfish._base.view import counted, join, tag
from pufferfish._base.words import at_most
from pufferfish._draw.page import page, section
from pufferfish.compare.noise import Noise, noise_part
from pufferfish.compare.promise_part import promise_part
from pufferfish.compare.rows import ComparisonRow, NoiseCurve
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.theta_picture import theta_part
from pufferfish.mechanisms.words import few_as_planned, not_promised_of, promise_of, secrets_of, witness_part

__all__ = ["preview"]

_NUMBERS = "the numbers of records, and where gaps are, were"


def preview(
    found: Calibration,
    rows: Sequence[ComparisonRow],
    curves: Sequence[NoiseCurve],
    measure: str,
    assumptions: Sequence[str] | None = None,
) -> bytes:
    """Return the page about a calibration, and about the mechanisms that it was chosen from.

    Parameters
    ----------
    found : Calibration
        Of the mechanism that is recommended.
    rows : sequence of ComparisonRow
        The noise of all mechanisms at its ε.
    curves
        Their noise at other ε.
    measure : str
        What the answers are numbers of.
    assumptions : sequence of str, optional
        What is assumed of the table that the numbers of records were read from; None where no table was read.
    """
    theta, query = found.theta, found.query
    noise = Noise(
        rows=rows,
        curves=curves,
        unit=float(found.linear.unit),
        epsilon=found.epsilon,
        mechanism=found.mechanism,
        noise="equal" if found.strategy is None else "best",
        measure=measure,
        own_word="recommended",
        whole=found.linear.unit.denominator == 1,
        lower=next((row.lower_bound for row in rows if row.lower_bound), None),
    )

    def within(joint: bool) -> str:
        return noise.written(found.accuracy(0.05, joint=joint), found.scale)

    part, data = noise_part(noise, "noise-0")
    secrets = secrets_of(found)
    promise = promise_of(found.epsilon, found.delta, secrets, of_chains=theta.of_chains, networks=bool(theta.networks))
    title = f"Preview: {query.kind} at ε = {at_most(found.epsilon)}"
    outputs = len(found.linear.labels)
    lead = (
        f"With {found.title} each of {counted(outputs, 'value')} would be within "
        f"{within(joint=False)} of the exact one with 95% probability ({measure}), and all of them within "
        f"{within(joint=True)}."
    )
    read = "no data were read for this page"
    assumed: Sequence[str] = _of_any_table(found)
    if assumptions is not None:
        read = f"of the data only {'the number of rows was' if theta.networks else _NUMBERS} used"
        assumed = assumptions
    why = witness_part(found.witness, found.epsilon, found.epsilon, theta)
    body = join(
        tag("h1", title),
        tag("p", f"Nothing was released or spent, and {read}.", class_="card"),
        tag("h2", found.linear.description[:1].upper() + found.linear.description[1:]),
        tag("p", lead, class_="lead"),
        *(tag("p", text, class_="card") for text in few_as_planned(found)),
        tag("p", f"The noise is for a table of {found.records:,} records.", class_="soft"),
        section("What error to expect, and the noise of every mechanism", part),
        promise_part(
            found.epsilon,
            promise,
            not_promised_of(secrets, None, kind=theta.kind, composes=found.composes),
            [f"The distribution of the records is {theta.in_words} ({theta.origin}).", *assumed],
            secrets,
            delta=found.delta,
            title="What would be promised, and what not",
        ),
        section("What an adversary may believe: Θ", theta_part(theta, decides=found.witness.theta, calibration=found)),
        section("Which record decides the noise, and why", why),
    )
    return page("preview", title, body, [] if data is None else [data])


def _of_any_table(found: Calibration) -> list[str]:
    """Return what is assumed however a table is read; a release says how its own was, its gaps for example."""
    theta = found.theta
    if theta.networks:
        return [
            "Rows are independent of each other under every θ: one row per subject.",
            "The number of rows is public, and assumed independent of the states.",
        ]
    if not theta.of_chains:
        return ["How many records there are is public, and assumed independent of the states."]
    several = ["Different chains are independent of each other."] if len(found.length) > 1 else []
    return [
        *(several or ["The table is one chain: any record may depend on any other."]),
        "Records next to each other follow each other in one step.",
        "The number of records, their times, the gaps and which states are missing are public, and assumed independent "
        "of the states.",
        "How a table is read adds to this, its gaps and missing states for example: a release says it.",
    ]
