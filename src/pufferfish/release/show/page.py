"""The page about releases: everything that their records say, for readers who want to know what it means.

All of it comes from the records: the noise is calibrated again from what they hold, as :func:`verify` does, and a
record that does not hold is refused. Private data are never read. Where a ledger is given, its history stands on the
page too, and a release that is not in it is warned of.
"""

import hashlib
import math
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from pufferfish._base.durations import in_words
from pufferfish._base.progress import part_of, report_progress
from pufferfish._base.reading import display_path
from pufferfish._base.view import Html, counted, join, tag
from pufferfish._base.words import at_least, at_most, number
from pufferfish._base.writing import read_file, write_whole
from pufferfish._draw.page import CHECKED_HERE, REPORT, fold, page, section, table
from pufferfish.compare.contest import COMPOSING, Contest, one_query_rows, row_of
from pufferfish.compare.noise import Noise, noise_part, promise_part
from pufferfish.errors import ParameterError, PufferfishError, RecordError
from pufferfish.ledger import Ledger, name_of
from pufferfish.ledger.book import Entry
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.network_picture import theta_part
from pufferfish.mechanisms.network_quilts import NodeSecrets
from pufferfish.mechanisms.shown import units_part
from pufferfish.mechanisms.words import check_in_words, hidden_in_words, witness_part
from pufferfish.queries import measure_before_division, measure_of
from pufferfish.release.certificate import Certificate
from pufferfish.release.check import BROKEN
from pufferfish.release.derive import place_in
from pufferfish.release.prepare import FITTED_HERE
from pufferfish.release.record import (
    MeasurementFields,
    ReleaseFields,
    calibration_again,
    function_of_user,
)
from pufferfish.release.show.text import division, heading
from pufferfish.release.show.values import each_part, measured_part, values_part
from pufferfish.release.together import AnyRelease, any_release_in, one_history
from pufferfish.release.verification import Verification
from pufferfish.release.verify import verify, verify_measurement
from pufferfish.theta.model_class import Theta

__all__ = ["NOT_COUNTED", "Source", "ledger_part", "read_source", "report_page", "write_report"]

# -- The history of a ledger on a page -------------------------------------------------------------------------------

NOT_COUNTED = "not in the ledger: what is spent does not include it"
"""What is said of a release that is shown beside a ledger, and was never charged to it."""


def ledger_part(ledger: Ledger, here: Mapping[int, int], apart: Sequence[tuple[int, str]] = ()) -> Html:
    """Return what the book says.

    ``here`` are the entries on the page, with their places there; ``apart`` the places and titles of releases on the
    page that the book does not have.
    """

    def row(entry: Entry) -> Html:
        share = min(1.0, entry.spent / ledger.budget)
        what: Any = entry.what
        if entry.number in here:
            what = join(tag("a", entry.what, href=f"#release-{here[entry.number]}"), " (on this page)")
        bar = tag(
            "svg",
            tag("rect", x=0, y=4, width=round(100 * share, 2), height=12),
            tag("path", d="M100 0V20"),
            viewBox="0 0 100 20",
            preserveAspectRatio="none",
            aria_hidden="true",
        )
        return tag(
            "tr",
            tag("th", entry.number, scope="row"),
            tag("td", what, class_="what"),
            tag("td", "" if entry.epsilon is None else at_most(entry.epsilon), class_="n"),
            tag("td", bar, class_="bar"),
            tag("td", at_most(entry.spent), class_="n"),
            class_="own" if entry.number in here else None,
        )

    caption = f"All releases; together: what all up to this one leak at most, of a budget of {number(ledger.budget, 6)}"
    return tag(
        "section",
        tag("h2", "The ledger"),
        tag(
            "p",
            f"Spent {at_most(ledger.spent)} of {number(ledger.budget, 6)}, by {ledger.bound.title}. Remaining: "
            f"{at_least(ledger.remaining)}. Epsilons of single releases do not add up to what they leak together.",
        ),
        *(
            tag("p", tag("strong", "Warning: "), tag("a", title, href=f"#release-{place}"), f" is {NOT_COUNTED}.")
            for place, title in apart
        ),
        table(
            ["no.", "what", "alone", tag("th", "", scope="col", class_="bar"), "together"],
            map(row, ledger.entries),
            caption,
            names=2,
            class_="values ledger",
        ),
    )


@dataclass(frozen=True, slots=True)
class Source:
    """A release, the file it came from and its SHA-256, the table of a release for each subject, and a proof.

    ``proof`` has the texts of the release and of its certificate.
    """

    release: AnyRelease
    path: Path | None = None
    values: Path | None = None
    digest: str | None = None
    proof: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        """How the file is called on the page: without its folder."""
        return "release.json" if self.path is None else self.path.name


def read_source(path: str | os.PathLike[str], certificate: str | os.PathLike[str] | None = None) -> Source:
    """Read a record of any kind, and its certificate; whether they hold is looked at when the page is made.

    Raises
    ------
    RecordError
        If the file cannot be read, or is no release.
    """
    content = read_file(path)
    release = any_release_in(content, display_path(path))
    proof = None if certificate is None else (content.decode(), read_file(certificate).decode(errors="replace"))
    return Source(release, Path(path), digest=hashlib.sha256(content).hexdigest(), proof=proof)


def write_report(
    sources: Sequence[Source],
    path: str | os.PathLike[str],
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    brief: bool = False,
    overwrite: bool = True,
) -> None:
    """Write the page about releases as one file; see :func:`report_page`.

    Of what is there already only an earlier report is replaced, and none without ``overwrite``.

    Raises
    ------
    RecordError
        If a record does not hold, or the file cannot be written or is something else.
    """
    opened = ledger if ledger is None or isinstance(ledger, Ledger) else Ledger.open(ledger)
    ledger_path = ledger.path if isinstance(ledger, Ledger) else ledger
    name = None if ledger_path is None else name_of(ledger_path)
    content = report_page(sources, ledger=opened, ledger_name=name, brief=brief)
    write_whole(path, content, REPORT, overwrite=overwrite)


def report_page(
    sources: Sequence[Source], *, ledger: Ledger | None = None, ledger_name: str | None = None, brief: bool = False
) -> bytes:
    """Return the page about releases.

    Parameters
    ----------
    sources : sequence of Source
        The releases, in the order of the page.
    ledger : Ledger, optional
        The book that they were charged to: its history is shown.
    ledger_name : str, optional
        The file of that book, without its folder: it stands in the command by which its owner verifies a release.
    brief : bool, default False
        Without the noise of other mechanisms and of other ε, which may take long to compute.

    Raises
    ------
    RecordError
        If a record does not hold.
    ParameterError
        If there is no release, or none is in the ledger.
    """
    if not sources:
        raise ParameterError("there is no release to report on: name at least one record")
    _check_together(sources)
    if ledger is not None and all(source.release.ledger is None for source in sources):
        raise ParameterError("no release here names an entry of a ledger: leave the ledger out")
    single = len(sources) == 1
    titles = [
        _title(source.release) if single else f"{i}. {_title(source.release)}" for i, source in enumerate(sources, 1)
    ]
    parts: list[Html] = []
    data: list[dict[str, Any]] = []
    contests: dict[bytes, Contest] = {}
    for i, source in enumerate(sources):
        which = f"release {i + 1} of {len(sources)}"
        report_progress(which, i / len(sources))
        with part_of(which):
            part, numbers = _release_part(source, titles[i], i, ledger, ledger_name, contests, brief=brief)
        parts += [part]
        data += [] if numbers is None else [numbers]
    here = {source.release.ledger.entry: i for i, source in enumerate(sources) if source.release.ledger is not None}
    apart = [(i, titles[i]) for i, source in enumerate(sources) if source.release.ledger is None]
    title = titles[0] if single else f"{len(sources)} releases"
    contents = tag(
        "nav",
        tag("ul", *(tag("li", tag("a", heading, href=f"#release-{i}")) for i, heading in enumerate(titles))),
        aria_label="Releases on this page",
    )
    body = join(
        tag("h1", "What was released, and what is promised"),
        None if single else contents,
        tag("main", parts, None if ledger is None else ledger_part(ledger, here, apart)),
        tag(
            "footer",
            "Made by pufferfish report from the release files alone: no private data were read. The page is one file "
            "and loads nothing from anywhere.",
            class_="soft",
        ),
    )
    return page("report", title, body, data, next((source.proof for source in sources if source.proof), None))


def _check_together(sources: Sequence[Source]) -> None:
    """Refuse releases that no history of a ledger has together, and one that was charged and is given twice."""
    names = [
        f"release {i}" if source.path is None else display_path(source.path) for i, source in enumerate(sources, 1)
    ]
    together = one_history([(name, source.release) for name, source in zip(names, sources, strict=True)])
    if together.holds is False:
        raise RecordError(f"no report is made of these releases together: {together.says}")
    places = [source.release.ledger for source in sources if source.release.ledger is not None]
    if len({place.previous for place in places}) < len(places):
        raise ParameterError("one release is named twice: leave it out once")


def _title(record: AnyRelease) -> str:
    """Return the heading of a release."""
    if isinstance(record, MeasurementFields):
        return heading("Measurement", record)
    each = "" if record.subjects is None else f" for each of {record.data.subjects:,} subjects"
    by = "" if record.groups is None else f" by {', '.join(record.groups.by)}"
    return heading(f"{record.query.kind.capitalize()}{each}{by}", record)


def _release_part(
    source: Source,
    title: str,
    i: int,
    ledger: Ledger | None,
    ledger_name: str | None,
    contests: dict[bytes, Contest],
    *,
    brief: bool,
) -> tuple[Html, dict[str, Any] | None]:
    """Return all of one release, and the numbers behind its slider, if it has one; refuse it where it does not hold."""
    record = source.release
    verification = _verified(source, ledger if record.ledger is not None else None)
    if isinstance(record, MeasurementFields):
        theta: Theta | None = record.theta.theta()
        content, numbers = _measured_sections(record, theta), None
    else:
        calibration = None if function_of_user(record) else calibration_again(record)
        theta = record.theta.any_theta() if calibration is None else calibration.theta
        noise, numbers = _noise_part_of(record, calibration, contests, f"noise-{i}", brief=brief)
        values = (
            values_part(record)
            if record.subjects is None
            else each_part(record, None if source.path is None else source.path.parent, source.values)
        )
        content = join(
            tag("p", tag("strong", "Hides "), f"{record.hides}, at ε = {at_most(record.epsilon)}.", class_="lead"),
            tag("p", record.query.description, class_="lead"),
            tag("p", _subtitle(record), class_="soft"),
            section("What was released", values),
            _promise_section(record, record.hides, record.mechanism.secrets),
            units_part(record.promises, record.step, record.protection),
            section("The noise of every mechanism, and other ε", noise),
            _theta_section(record, theta, record.mechanism.witness.theta, calibration),
            section(
                "Which record decides the noise, and why",
                witness_part(record.mechanism.witness, record.mechanism.leakage, record.epsilon, theta),
            ),
        )
    warnings: list[str] = [] if isinstance(record, MeasurementFields) else list(record.warnings)
    if verification is not None and not verification.proved:
        warnings = [
            "The proof of this release could not be checked: a function of the user's decides its noise, which no file "
            "holds. Whoever made it vouches for it.",
            *warnings,
        ]
    if ledger is not None and record.ledger is None:
        warnings = [f"this release is {NOT_COUNTED}.", *warnings]
    part = tag(
        "article",
        tag("h2", title),
        None if source.path is None else tag("p", "Release file: ", tag("code", source.name), class_="soft"),
        *(tag("p", tag("strong", "Warning: "), text, class_="card warn") for text in warnings),
        content,
        None if source.proof is None else CHECKED_HERE,
        _verify_part(source, verification, ledger_name),
        id=f"release-{i}",
    )
    return part, numbers


def _verified(source: Source, ledger: Ledger | None) -> Verification | None:
    """Verify a record, and refuse one that does not hold."""
    record, name = source.release, "this release" if source.path is None else display_path(source.path)
    if isinstance(record, MeasurementFields):
        if source.proof is not None:
            raise RecordError(f"{name} is a measurement, of which no certificate is a proof: leave it out")
        try:
            verify_measurement(record)
        except RecordError as error:
            raise RecordError(f"{name} does not hold: {error}") from error
        if ledger is not None and not _is_booked(record, ledger):
            raise RecordError(
                f"{name} does not hold: entry {record.ledger and record.ledger.entry} of the ledger is another"
            )
        return None
    values, table = source.values, None if record.subjects is None else record.subjects.table
    if values is None and source.path is not None and table is not None:
        beside = source.path.parent / table.name
        values = beside if beside.is_file() else None
    certificate = None if source.proof is None else Certificate(source.proof[1], None, 0.0)
    verification = verify(record, ledger=ledger, values=values, certificate=certificate)
    if not verification.holds:
        wrong = min(verification.wrong, key=lambda part: part.absent)
        why = f"is not in this {wrong.what}" if wrong.absent else "does not hold"
        raise RecordError(
            f"{name} {why}, and no report is made of it: {wrong.what}: {wrong.says}; pufferfish verify says all"
        )
    return verification


def _is_booked(record: MeasurementFields, ledger: Ledger) -> bool:
    """Whether a ledger has the entry that a measurement names."""
    booked = record.ledger
    if booked is None or not 1 <= booked.entry <= len(ledger.entries):
        return False
    return place_in(ledger, ledger.entries[booked.entry - 1]) == booked


def _subtitle(record: ReleaseFields) -> str:
    """Say by which mechanism and at which ε it was released, of which data, and when."""
    data, base = record.data, record.data.base
    if data.rows is not None:
        size = f"{data.subjects:,} rows with {data.records:,} observed cells"
    else:
        size = f"{data.records:,} records of {counted(data.subjects, 'subject')} in {counted(data.chains, 'chain')}"
    column = "" if base is None else f", column {base.state}"
    where = None if base is None else base.where
    filtered = "" if where is None else f", rows where {where}"
    made = f"; made {in_words(record.created)} by pufferfish {record.software.get('pufferfish-privacy')}"
    return f"{record.mechanism.title}, ε = {at_most(record.epsilon)}; {size}{column}{filtered}{made}."


def _promise_section(record: AnyRelease, hides: str, secrets: list[tuple[str, str]] | None) -> Html:
    """Return the promise; where the model was fitted to this very table, under a notice that it does not hold."""
    delta = record.delta if isinstance(record, ReleaseFields) else 0.0
    part = promise_part(
        record.epsilon,
        record.promise,
        record.not_promised,
        record.assumptions,
        hides=hides,
        secrets=secrets,
        protection=record.protection,
        delta=delta,
    )
    if isinstance(record, MeasurementFields) or FITTED_HERE not in record.warnings:
        return part
    void = "Nothing of this is promised here: the model was fitted to this very table. Of other data it would be."
    return join(tag("p", tag("strong", void), class_="card"), part)


def _theta_section(
    record: ReleaseFields | MeasurementFields, theta: Theta | None, decides: int, calibration: Calibration | None
) -> Html:
    """Return Θ, in which the member of place ``decides`` needs most noise; or only its origin, of a user's function."""
    if theta is None:
        text = f"Θ is of {record.theta.kind}: a function of the user's, which no file holds. Where it came from: "
        return section("What an adversary may believe: Θ", tag("p", f"{text}{record.theta.origin}."))
    checked = tag("p", f"It was {check_in_words(record.checked)}.")
    part = theta_part(theta, decides=decides, calibration=calibration)
    return section("What an adversary may believe: Θ", checked, part)


def _measured_sections(record: MeasurementFields, theta: Theta | None) -> Html:
    """Return what the page says of a measurement: the noise is the algorithm's own, so there is none to compare."""
    made = f"made {in_words(record.created)} by pufferfish {record.software.get('pufferfish-privacy')}"
    size = f"{sum(records for _, records in record.length):,} records in {len(record.length):,} chains"
    hides = hidden_in_words(None, record.protection, None, of_chains=True, networks=False)
    return join(
        tag("p", tag("strong", "Hides "), f"{hides}, at ε = {at_most(record.epsilon)}.", class_="lead"),
        tag("p", f"{size}; {made}.", class_="soft"),
        section("What was released", measured_part(record)),
        _promise_section(record, hides, None),
        _theta_section(record, theta, 0, None),
    )


def _noise_part_of(
    record: ReleaseFields,
    calibration: Calibration | None,
    contests: dict[bytes, Contest],
    name: str,
    *,
    brief: bool,
) -> tuple[Html, dict[str, Any] | None]:
    """Return the noise of all mechanisms and the slider, or why there is none."""
    by_cell = division(record)
    scale = f"{number(record.noise.scale)}{by_cell}{',' if by_cell else ''}"
    summary = f"{record.mechanism.title} added noise of scale {scale} at ε = {at_most(record.epsilon)}."
    if brief:
        return tag("p", summary, " What other mechanisms and other ε need was left out (--brief)."), None
    if calibration is None or not isinstance(calibration.bound, Mechanism):
        why = "the query or Θ is a function of the user's"
        return tag("p", f"{summary} What other mechanisms and other ε need cannot be said: {why}."), None
    groups = record.groups
    shape: Literal["equal", "best"] = "equal" if calibration.strategy is None else "best"
    try:
        unit = "subject" if record.subjects is not None else None if groups is None else "group"
        contest = _contest(record, calibration, contests, unit)
        ours = replace(row_of(calibration), noise=shape)
        rows_at_epsilon, curves = contest.around(calibration)
        others = [row for row in rows_at_epsilon if (row.mechanism, row.noise) != (calibration.mechanism, shape)]
        lower = next((row.lower_bound for row in rows_at_epsilon if row.lower_bound), None)
        rows = sorted([ours, *others], key=lambda row: row.scale or math.inf)
    except PufferfishError as error:
        return tag("p", f"{summary} What other mechanisms and other ε need cannot be said: {error}"), None
    scale_factor = record.noise.scale / calibration.scale
    measure, scale_measure = measure_of(record.query.kind), ""
    if record.cell_that_divides == "subject":
        measure = f"{measure_before_division(record.query.kind)}, to be divided by the subject's number of records"
    elif record.cell_that_divides == "group":
        scale_measure = f"{measure_before_division(record.query.kind)}, before the division by those of the group"
        measure += " in the smallest group"
    about = Noise(
        rows=rows,
        lower=None if lower is None else lower * scale_factor,
        curves=curves,
        unit=float(calibration.linear.unit),
        epsilon=record.epsilon,
        mechanism=calibration.mechanism,
        noise=shape,
        measure=measure,
        scale_measure=scale_measure,
        scale_factor=scale_factor,
        division=1.0 if groups is None else 1 / groups.most_error,
        whole=record.whole,
        of_stretch=contest.hides_stretch,
    )
    return noise_part(about, name)


def _contest(
    record: ReleaseFields,
    calibration: Calibration,
    contests: dict[bytes, Contest],
    unit: Literal["group", "subject"] | None,
) -> Contest:
    """Return the mechanisms for a release; another release of the same query gets the same, with what they computed."""
    bound, theta = calibration.bound, calibration.theta
    assert isinstance(bound, Mechanism)
    calibrated_from = msgspec.structs.replace(record.calibration, unit_scale=0.0)  # all that does not depend on ε
    hidden: dict[str, Any] = {} if bound.protection is None else bound.protection.settings
    key = msgspec.json.encode((record.mechanism.name, record.theta, calibrated_from, record.groups, unit, hidden))
    if key not in contests:
        length: Any = bound.rows if theta.networks else calibration.length if theta.of_chains else None
        secrets = _secrets(calibration)
        kinds, left_out = (None, ()) if unit is None else (COMPOSING, one_query_rows(unit))
        hidden = {} if bound.protection is None else bound.protection.settings
        contests[key] = Contest(
            theta, calibration.query, length, secrets=secrets, kinds=kinds, own=bound, left_out=left_out, **hidden
        )
    return contests[key]


def _secrets(calibration: Calibration) -> Any:
    """Return the secrets of a mechanism on networks, as other mechanisms there are told of them."""
    bound: Any = calibration.bound
    secrets = bound.settings.get("secrets")
    if secrets is None or not calibration.theta.networks:
        return None
    try:
        NodeSecrets(secrets, calibration.theta.networks[0])
    except BROKEN:  # pairs that only mechanisms of one query know: the others keep all secret
        return None
    return secrets


_FINDINGS = {"record": "release file"}
"""What findings are called on the page, where a record is one of the data."""


def _verify_part(source: Source, verification: Verification | None, ledger_name: str | None) -> Html:
    """Return how everybody can check the release file, and what was found when this page was made."""
    record, file = source.release, shlex.quote(source.name)
    owner: list[Html] = []
    if isinstance(record, MeasurementFields):
        program = f"import pufferfish as pf; pf.MeasurementRelease.from_json({source.name!r}).verify()"
        command = f"python -c {shlex.quote(program)}"
    else:
        command = f"pufferfish verify {file}"
        if record.ledger is not None:
            ledger_file = "LEDGER.json" if ledger_name is None else ledger_name
            file_named = ", LEDGER.json," if ledger_name is None else ""
            text = (
                f"Only who keeps the ledger of this release (the owner) has its file{file_named} and can compare both:"
            )
            owner = [tag("p", text), tag("pre", tag("code", f"{command} --ledger {shlex.quote(ledger_file)}"))]
    parts: list[Any] = [
        tag("p", "Whoever has the release file can compute the proof of its noise again, without any private data:"),
        tag("pre", tag("code", command)),
        owner,
    ]
    if source.digest is not None:
        parts += [tag("p", "SHA-256 of the release file: ", tag("code", source.digest))]
    if verification is not None:
        rows = [
            [_FINDINGS.get(part.what, part.what), tag("td", part.word), tag("td", part.says)]
            for part in verification.findings
        ]
        caption = "What was found when this page was made"
        parts += [fold(caption, table(["what", "found", ""], rows, caption, titled=False))]
    else:
        parts += [tag("p", "When this page was made its proof was computed again, and held.")]
    return section("How to verify", parts)
