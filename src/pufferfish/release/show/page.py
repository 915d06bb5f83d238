"""The page about releases, to hand over: what is hidden, the answers, and once for all of them what is promised.

All of it comes from the records, whose proofs are computed again where that takes a few seconds; a record that does not
hold is refused. Private data are never read. Where a ledger is given, its history stands on the page too, and a release
that is not in it is warned of.
"""

import hashlib
import math
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pufferfish._base.durations import in_words
from pufferfish._base.progress import Patience, TookTooLong, part_of, report_progress
from pufferfish._base.reading import display_path
from pufferfish._base.view import Html, join, tag
from pufferfish._base.words import at_least, at_most, change_of_odds, number
from pufferfish._base.writing import read_file, write_whole
from pufferfish._draw.page import CHECKED_HERE, REPORT, bar, fold, page, slider, table
from pufferfish.compare.contest import noise_at_each
from pufferfish.compare.rows import points_around
from pufferfish.errors import ParameterError, PufferfishError, RecordError
from pufferfish.ledger import Ledger, name_of
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.network_picture import theta_part
from pufferfish.mechanisms.promises import promise_chart, promise_picture
from pufferfish.mechanisms.words import TOGETHER, alternatives_of, law_assumed, witness_part
from pufferfish.release.again import commands_of
from pufferfish.release.certificate import Certificate
from pufferfish.release.check import check_record
from pufferfish.release.derive import place_in
from pufferfish.release.prepare import FITTED_HERE
from pufferfish.release.record import (
    AnyRelease,
    MeasurementFields,
    ReleaseFields,
    any_release_in,
    calibration_again,
    function_of_user,
    read_table,
)
from pufferfish.release.show.values import Cover, Numbers, csv_link, each_part, measured_part, notes_of, values_part
from pufferfish.release.show.words import WORDS, Marked, MarkedLabels, Words, unmarked
from pufferfish.release.verification import Finding, Verification, check_named_once, one_history
from pufferfish.release.verify import ledger_findings, values_findings, verify, verify_measurement
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.model_class import Theta

NOT_COUNTED = WORDS["apart"]
"""What is said of a release that is shown beside a ledger, and was never charged to it."""

_PATIENCE = 2.0
"""Seconds of work that proofs and the slider of a page may take, unless all of it is asked for."""

_EVERY = 2
"""The slider stops at every so many of the ε around that of a release."""

_MOST_PAIRS = 20


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

    @property
    def table(self) -> Path | None:
        """The table of a release for each subject: as it was named, or beside the release if it is there."""
        record = self.release
        described = None if isinstance(record, MeasurementFields) or record.subjects is None else record.subjects.table
        if self.values is not None or self.path is None or described is None:
            return self.values
        beside = self.path.parent / described.name
        return beside if beside.is_file() else None

    @property
    def called(self) -> str:
        """How the release is called in messages."""
        return "this release" if self.path is None else display_path(self.path)


def read_source(path: str | os.PathLike[str], certificate: str | os.PathLike[str] | None = None) -> Source:
    """Read a record of any kind, and its certificate; whether they hold is looked at when the page is made."""
    content = read_file(path)
    release = any_release_in(content, display_path(path))
    proof = None if certificate is None else (content.decode(), read_file(certificate).decode(errors="replace"))
    return Source(release, Path(path), digest=hashlib.sha256(content).hexdigest(), proof=proof)


def write_report(
    sources: Sequence[Source],
    path: str | os.PathLike[str],
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    overwrite: bool = True,
    **options: Any,
) -> None:
    """Write the page about releases as one file; ``options`` are those of :func:`report_page`.

    Of what is there already only an earlier report is replaced, and none without ``overwrite``.
    """
    opened = ledger if ledger is None or isinstance(ledger, Ledger) else Ledger.open(ledger)
    ledger_path = ledger.path if isinstance(ledger, Ledger) else ledger
    name = None if ledger_path is None else name_of(ledger_path)
    write_whole(path, report_page(sources, ledger=opened, ledger_name=name, **options), REPORT, overwrite=overwrite)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A release on the page: its number there, what was found of it, its Θ and the noise that was calibrated."""

    source: Source
    number: int
    title: str
    findings: Sequence[Finding] | None
    proved: bool
    theta: Theta | None
    calibration: Calibration | None

    @property
    def record(self) -> AnyRelease:
        return self.source.release

    @property
    def query(self) -> ReleaseFields | None:
        """The record, if it is of a query."""
        record = self.source.release
        return None if isinstance(record, MeasurementFields) else record


def report_page(
    sources: Sequence[Source],
    *,
    ledger: Ledger | None = None,
    ledger_name: str | None = None,
    cover: Cover | None = None,
    brief: bool = False,
    verified: bool = False,
    suppress: bool = False,
) -> bytes:
    """Return the page about releases, in their order; a record that does not hold is refused.

    The history of ``ledger``, the book that they were charged to, is shown; ``ledger_name``, its file without its
    folder, stands in the command by which its owner verifies a release. A ``brief`` page has no slider for ε.
    ``verified``: every proof is computed again, and the noise at other ε, however long that takes, else what takes a
    few seconds. ``suppress`` leaves out values that are no larger than their own error.
    """
    if not sources:
        raise ParameterError("there is no release to report on: name at least one record")
    _check_together(sources)
    if ledger is not None and all(source.release.ledger is None for source in sources):
        raise ParameterError("no release here names an entry of a ledger: leave the ledger out")
    cover = look = replace(cover or Cover(), suppress=suppress)
    say = look.say
    patience = Patience(math.inf if verified or any(source.proof for source in sources) else _PATIENCE)
    shown: list[_Shown] = []
    for source in sources:
        shown += [_shown(source, shown, len(sources), look, ledger, patience)]
    other_noise, data = (None, None) if brief else _slider_part(shown, say, patience)
    title = cover.title or (shown[0].title if len(shown) == 1 else say("title"))
    cards = {"office": cover.office, "period": cover.period, "contact": cover.contact}
    facts = [tag("span", tag("strong", say(key)), " ", text) for key, text in cards.items() if text]
    body = join(
        tag("h1", title),
        tag("p", facts, class_="cover") if facts else None,
        tag("p", cover.note, class_="card") if cover.note else None,
        tag(
            "main",
            _hidden_part(shown, say),
            *(_release_part(each, look, ledger) for each in shown),
            _promise_part(shown, say),
            _theta_parts(shown, say),
            _budget_part(shown, say, ledger),
            other_noise,
            _how_part(shown, say, ledger_name),
        ),
        tag("footer", say("footer"), class_="soft"),
    )
    proof = next((source.proof for source in sources if source.proof), None)
    title = say.of(title) if cover.title is None else title
    held: dict[str, Any] = {"lang": say("lang"), "scroll": say("scroll")}
    return page("report", title, say.in_markup(body), [] if data is None else [data], proof, **held)


def _check_together(sources: Sequence[Source]) -> None:
    """Refuse releases that no history of a ledger has together, and one that is given twice."""
    named = [
        (f"release {i}" if source.path is None else source.called, source.release)
        for i, source in enumerate(sources, 1)
    ]
    check_named_once(named)
    together = one_history(named)
    if together.holds is False:
        raise RecordError(f"no report is made of these releases together: {together.says}")


# -- What is found of a release before it is shown -------------------------------------------------------------------


def _shown(
    source: Source, earlier: Sequence[_Shown], many: int, look: Cover, ledger: Ledger | None, patience: Patience
) -> _Shown:
    """Verify a release, and return what the page needs of it; a Θ that an earlier one has is not made again."""
    i = len(earlier)
    which = f"release {i + 1} of {many}"
    report_progress(which, i / many)
    with part_of(which):
        findings, proved = _verified(source, ledger if source.release.ledger is not None else None, patience)
    record, calibration = source.release, None
    known = next((each.theta for each in earlier if each.record.theta == record.theta), None)
    theta = known or record.theta.any_theta()
    if not isinstance(record, MeasurementFields) and not function_of_user(record):
        calibration = calibration_again(record, theta)
    title = _title(record, look)
    return _Shown(source, i + 1, title if many == 1 else f"{i + 1}. {title}", findings, proved, theta, calibration)


def _title(record: AnyRelease, look: Cover) -> str:
    """Return the heading of a release."""
    if isinstance(record, MeasurementFields):
        return f"{record.measurement}, ε = {at_most(record.epsilon)}"
    each = "" if record.subjects is None else f" ({record.data.subjects:,} × {look.say('subject')})"
    by = "" if record.groups is None else f" · {', '.join(map(look.grouping, record.groups.by))}"
    kind = record.query.kind.capitalize()
    named = look.labels[kind] if kind in look.labels else look.say.of(kind)
    return f"{named}{each}{by}, ε = {at_most(record.epsilon)}"


def _verified(source: Source, ledger: Ledger | None, patience: Patience) -> tuple[Sequence[Finding] | None, bool]:
    """Return what is found of a record and whether its proof is among it; refuse one that does not hold."""
    record = source.release
    if isinstance(record, MeasurementFields):
        return None, _measurement_verified(source, record, ledger, patience)
    if source.proof is not None and record.theta.kind == BayesianNetwork.kind:
        raise RecordError(
            f"{source.called} is of a table of a network, which the checker in a page does not cover: leave the "
            "certificate out; pufferfish verify --certificate checks it"
        )
    certificate = None if source.proof is None else Certificate(source.proof[1], None, 0.0)
    try:
        with patience.working():
            found = verify(record, ledger=ledger, values=source.table, certificate=certificate)
        findings, proved = found.findings, found.proved
    except TookTooLong:
        try:
            check_record(record)
        except RecordError as error:
            raise RecordError(f"{source.called} does not hold, and no report is made of it: {error}") from error
        findings, proved = [*ledger_findings(record, ledger)], False
        if record.subjects is not None and record.subjects.table is not None:
            findings += values_findings(record, record.subjects.table, source.table, None)
    if wrong := Verification("", findings).wrong:
        first = min(wrong, key=lambda part: part.absent)
        why = f"is not in this {first.what}" if first.absent else "does not hold"
        raise RecordError(
            f"{source.called} {why}, and no report is made of it: {first.what}: {first.says}; pufferfish verify "
            "says all"
        )
    return findings, proved


def _measurement_verified(source: Source, record: MeasurementFields, ledger: Ledger | None, patience: Patience) -> bool:
    """Return whether the proof of a measurement was computed again; refuse one that does not hold."""
    if source.proof is not None:
        raise RecordError(f"{source.called} is a measurement, of which no certificate is a proof: leave it out")
    booked = record.ledger
    if ledger is not None and not (
        booked is not None
        and 1 <= booked.entry <= len(ledger.entries)
        and place_in(ledger, ledger.entries[booked.entry - 1]) == booked
    ):
        raise RecordError(f"{source.called} does not hold: entry {booked and booked.entry} of the ledger is another")
    try:
        with patience.working():
            verify_measurement(record)
    except TookTooLong:
        return False
    except RecordError as error:
        raise RecordError(f"{source.called} does not hold: {error}") from error
    return True


# -- What is hidden, and each release --------------------------------------------------------------------------------

Part = TypeVar("Part")


def _alike(shown: Sequence[_Shown], part: Callable[[_Shown], Part]) -> list[tuple[Part, list[_Shown]]]:
    """Return what releases have, each once, and which releases have it."""
    found: list[tuple[Part, list[_Shown]]] = []
    for each in shown:
        theirs = part(each)
        same = next((who for known, who in found if known == theirs), None)
        if same is None:
            found.append((theirs, [each]))
        else:
            same.append(each)
    return found


def _whose(who: Sequence[_Shown], shown: Sequence[_Shown], say: Words) -> Html | None:
    """Say of which releases something is, unless it is of all."""
    if len(who) == len(shown):
        return None
    return join(tag("strong", say("for_release", numbers=", ".join(str(each.number) for each in who))), " ")


def _hidden_part(shown: Sequence[_Shown], say: Words) -> Html:
    """Return the unit that noise hides, before any value."""

    def card(each: _Shown) -> tuple[str, str, str, str, bool]:
        record = each.record
        secrets = None if each.query is None else each.query.mechanism.secrets
        pairs = "; ".join(f"({say.of(a)}) or ({say.of(b)})" for a, b in (secrets or ())[:_MOST_PAIRS])
        named = f"{say('pairs')} {pairs}{'; …' if len(secrets or ()) > _MOST_PAIRS else '.'}" if pairs else ""
        two, factor = say.of(alternatives_of(secrets, record.protection)), say.of(change_of_odds(record.epsilon))
        odds = say("odds", two=two, factor=factor)
        if each.query is not None and each.query.delta:  # what is exact says δ, and few words cannot
            odds = f"{say('delta', delta=f'{each.query.delta:g}')} {say.of(record.promise)}"
        fitted = each.query is not None and FITTED_HERE in each.query.warnings
        return say.of(record.hides), at_most(record.epsilon), odds, named, fitted

    cards: list[Html] = []
    for (hides, epsilon, odds, named, fitted), who in _alike(shown, card):
        whole = [f"{say('hides')} ", tag("strong", hides), f", {say('hides_more', epsilon=epsilon)}."]
        cards += [
            tag(
                "div",
                tag("p", tag("strong", say("void"))) if fitted else None,
                tag("p", _whose(who, shown, say), whole, class_="lead"),
                tag("p", named) if named else None,
                tag("p", odds),
                class_="card warn" if fitted else "card",
            )
        ]
    return tag("section", tag("h2", say("hidden")), cards)


def _release_part(each: _Shown, look: Cover, ledger: Ledger | None) -> Html:
    """Return the answers of one release."""
    record, source, say = each.record, each.source, look.say
    warnings: list[str] = []
    if isinstance(record, MeasurementFields):
        made = _made(record, say)
        content, link = measured_part(record), None
    else:
        warnings = [say.of(text) for text in record.warnings]
        if each.calibration is None:
            warnings = [say("vouched"), *warnings]
        made = " ".join([*(() if record.subjects else notes_of(record, look)), _made(record, say)])
        if record.subjects is None:
            content, link = values_part(record, look), csv_link(record, look, source.name)
        else:
            frame = None if source.table is None else read_table(record, source.table)
            content = each_part(record, frame, look)
            link = None if frame is None else csv_link(record, look, source.name, frame)
    if ledger is not None and record.ledger is None:
        warnings = [f"{say('apart')}.", *warnings]
    file = None if source.path is None else join(f" {say('file')} ", tag("code", source.name))
    description = None if isinstance(record, MeasurementFields) else say.of(record.query.description)
    return tag(
        "article",
        tag("h2", each.title, " ", tag("small", description) if description else None),
        *(tag("p", tag("strong", say("warning")), f" {text}", class_="card warn") for text in warnings),
        content,
        tag("p", made, file, " ", link, class_="soft"),
        None if source.proof is None else CHECKED_HERE,
        id=f"release-{each.number}",
    )


def _made(record: AnyRelease, say: Words) -> str:
    """Say by which mechanism and at which ε it was released, of which data, and when."""
    column, filtered = "", ""
    if isinstance(record, MeasurementFields):
        chains, title = f"{len(record.length):,}", record.measurement
        records = f"{sum(records for _, records in record.length):,}"
        size = say("size", records=records, subjects=chains, chains=chains)
    else:
        data, base, title = record.data, record.data.base, record.mechanism.title
        subjects, records = f"{data.subjects:,}", f"{data.records:,}"
        if data.rows is not None:
            size = say("size_rows", rows=subjects, cells=records)
        else:
            size = say("size", records=records, subjects=subjects, chains=f"{data.chains:,}")
        if base is not None:
            column = say("column", name=base.state)
            filtered = "" if base.where is None else say("filtered", filter=base.where)
    parts = {"size": size, "column": column, "filtered": filtered, "title": title}
    return say("made", **parts, epsilon=at_most(record.epsilon), date=in_words(record.created))


# -- Once for all releases: the promise, Θ, the budget ---------------------------------------------------------------


def _promise_part(shown: Sequence[_Shown], say: Words) -> Html:
    """Return what is told of every unit, what is not promised, and what is assumed."""

    def sentences(of: Callable[[AnyRelease], Iterable[str]]) -> Html:
        said = [list(of(each.record)) for each in shown]
        items: list[Html] = []
        for text in dict.fromkeys(text for texts in said for text in texts):
            who = [each for each, texts in zip(shown, said, strict=True) if text in texts]
            items += [tag("li", _whose(who, shown, say), say.of(text))]
        return tag("ul", items, class_="sentences")

    together = [text for each in shown for text in each.record.not_promised if text.startswith(TOGETHER)]
    promises = _alike(shown, lambda each: each.record.promise)
    return tag(
        "section",
        tag("h2", say("promised")),
        _units_table(shown, say),
        *(tag("p", say.of(text), class_="card") for text in (together if len(shown) == 1 else ())),
        tag("h3", say("not_promised")),
        sentences(lambda record: [text for text in record.not_promised if text not in together]),
        tag("h3", say("assumed")),
        sentences(lambda record: [text for text in record.assumptions if text != _law(record)]),
        fold(say("exact"), [tag("p", _whose(who, shown, say), say.of(text)) for text, who in promises]),
    )


def _units_table(shown: Sequence[_Shown], say: Words) -> Html | None:
    """Return what the noise of each release tells of every unit at most: ε, and by which factor odds change."""
    known = [each for each in shown if each.query is not None and each.query.promises]
    if not known:
        return None

    def told(each: _Shown) -> dict[str, tuple[str, str]]:
        promises = () if each.query is None else each.query.promises
        return {p.unit: (at_most(p.epsilon), f"× {change_of_odds(p.epsilon)}") for p in promises}

    columns = _alike(known, told)
    units = {p.unit: p.holds for each in known if each.query is not None for p in each.query.promises}
    one = len(columns) == 1
    rows = [
        [say.of(unit), *(part for column, _ in columns for part in column.get(unit, ("", ""))[: 1 + one])]
        for unit in units
    ]
    heads = [join(say("epsilon_at_most"), tag("small", _whose(who, shown, say))) for _, who in columns]
    heads += [say("odds_change")] if one else []
    covered = tag("ul", *(tag("li", tag("strong", say.of(unit)), ": ", say.of(holds)) for unit, holds in units.items()))
    shown_table = join(table([say("unit"), *heads], rows, say("units"), class_="units"), fold(say("covers"), covered))
    first = known[0].query
    chart = promise_chart(first.promises, first.step, first.protection) if one and first is not None else None
    if chart is None:  # nothing is promised of two lengths
        return shown_table
    words: dict[str, Any] = {name: say.of(getattr(chart, name)) for name in ("caption", "label", "value_label")}
    return tag("div", tag("div", shown_table), *promise_picture(replace(chart, **words)), class_="beside")


def _law(record: AnyRelease) -> str:
    """Return what is assumed of the law of the records: where Θ came from, and what it was held against."""
    said = next((text for text in record.assumptions if record.theta.origin in text), None)
    return said or law_assumed(record.theta.in_words, record.theta.origin, record.checked)


def _why(each: _Shown) -> Html | None:
    """Return which record decides the noise of a release, and why."""
    if each.query is None:
        return None
    made = each.query.mechanism
    return witness_part(made.witness, made.leakage, each.query.epsilon, each.theta)


def _theta_parts(shown: Sequence[_Shown], say: Words) -> Html:
    """Return Θ with its origin and its check; its numbers, and which record decides the noise, are folded."""
    parts: list[Html] = []
    for (theta, law), who in _alike(shown, lambda each: (each.record.theta, _law(each.record))):
        first, name = who[0], _whose(who, shown, say)
        parts += [tag("p", name, say.of(law))]
        if first.theta is None:
            parts += [tag("p", say("function", kind=theta.kind))]
        else:
            decides = 0 if first.query is None else first.query.mechanism.witness.theta
            numbers = theta_part(first.theta, decides=decides, calibration=first.calibration)
            parts += [fold(join(name, say("theta_more")), numbers)]
    reasons = [tag("div", _whose(who, shown, say), why) for why, who in _alike(shown, _why) if why is not None]
    return tag("section", tag("h2", say("theta")), parts, fold(say("witness"), reasons) if reasons else None)


def _budget_part(shown: Sequence[_Shown], say: Words, ledger: Ledger | None) -> Html:
    """Return what all releases leak together: the history of the ledger, or what the records say of it."""
    here = {each.record.ledger.entry: each for each in shown if each.record.ledger is not None}
    apart = [each for each in shown if each.record.ledger is None]
    lines: list[Html] = []
    if ledger is None:
        lines += [tag("p", say("not_counted"))] if here else []
        lines += [tag("p", say("no_ledger", numbers=", ".join(each.title for each in apart)))] if apart else []
        booked = [(each, place) for each in shown if (place := each.record.ledger) is not None]
        rows = [
            _budget_row(p.entry, _link(each, each.title), each.record.epsilon, p.spent, p.budget, own=False)
            for each, p in booked
        ]
    else:
        budget, left = number(ledger.budget, 6), at_least(ledger.remaining)
        spent = say("spent", spent=at_most(ledger.spent), budget=budget, bound=ledger.bound.title, remaining=left)
        lines += [tag("p", spent)]
        warning = tag("strong", say("warning"))
        lines += [tag("p", warning, " ", _link(each, each.title), f": {say('apart')}.") for each in apart]
        rows: list[Html] = []
        for entry in ledger.entries:
            each = here.get(entry.number)
            what: Any = entry.what if each is None else join(_link(each, entry.what), f" ({say('on_page')})")
            rows += [_budget_row(entry.number, what, entry.epsilon, entry.spent, ledger.budget, own=each is not None)]
    empty = tag("th", "", scope="col", class_="bar")
    heads = [say("number"), say("release"), say("alone"), empty, say("leaks_together")]
    history = table(heads, rows, say("ledger_of"), names=2, class_="values ledger") if rows else None
    return tag("section", tag("h2", say("budget")), lines, history)


def _link(each: _Shown, text: str) -> Html:
    return tag("a", text, href=f"#release-{each.number}")


def _budget_row(number_: int, what: Any, epsilon: float | None, spent: float, budget: float, *, own: bool) -> Html:
    share = round(100 * min(1.0, spent / budget), 2)
    drawn = bar(tag("rect", x=0, y=4, width=share, height=12), tag("path", d="M100 0V20"))
    return tag(
        "tr",
        tag("th", number_, scope="row"),
        tag("td", what, class_="what"),
        tag("td", "" if epsilon is None else at_most(epsilon), class_="n"),
        tag("td", drawn, class_="bar"),
        tag("td", f"{at_most(spent)} / {number(budget, 6)}", class_="n"),
        class_="own" if own else None,
    )


# -- The slider for ε: the errors of all releases --------------------------------------------------------------------


def _slider_part(shown: Sequence[_Shown], say: Words, patience: Patience) -> tuple[Html | None, dict[str, Any] | None]:
    """Return the errors of all releases at other ε, with their slider, or why there is none."""
    queries = [each for each in shown if each.query is not None]
    if not queries:
        return None, None
    rows: list[tuple[_Shown, list[str]]] = []
    factors: list[float] = []
    why = ""
    for each in queries:
        assert each.query is not None
        if each.calibration is None or not isinstance(each.calibration.bound, Mechanism):
            why = say("why_function")
            continue
        epsilon, points = each.query.epsilon, points_around(each.query.epsilon)
        factors = factors or [point / epsilon for point in points[points.index(epsilon) % _EVERY :: _EVERY]]
        try:
            with patience.working(), part_of(f"ε of release {each.number}"):
                errors = noise_at_each(each.calibration, [epsilon * factor for factor in factors])
        except TookTooLong:
            why = say("why_long")
            continue
        except PufferfishError as error:
            why = say.of(str(error))
            continue
        rows.append((each, _errors(each.query, each.calibration, errors, say)))
    if not rows:
        return tag("section", tag("h2", say("slider")), tag("p", say("slider_none", why=why))), None
    epsilons = {each.record.epsilon for each, _ in rows}
    places = [say("slider_factor", factor=number(factor, 3)) for factor in factors]
    if len(epsilons) == 1:
        places = [say("slider_epsilon", epsilon=at_most(min(epsilons) * factor)) for factor in factors]
    last, middle = len(places) - 1, factors.index(1.0)
    ends = f"{places[0]}: {say('private')}", f"{places[-1]}: {say('exact_end')}"
    control = slider("noise", say("slider_label"), ends, places[middle], say("slider_back"), last=last, at=middle)
    body = [
        tag("tr", tag("th", each.title, scope="row"), tag("td", texts[middle], class_="n error"), data_row=i)
        for i, (each, texts) in enumerate(rows)
    ]
    shown_table = table([say("release"), say("slider_error")], body, say("slider_error"), titled=False, class_="noise")
    left_out = tag("p", say("slider_none", why=why), class_="soft") if why else None
    data = {"id": "noise", "places": places, "rows": [{"error": texts} for _, texts in rows]}
    return tag(
        "section", tag("h2", say("slider")), tag("div", control, shown_table, class_="beside"), left_out, id="noise"
    ), data


def _errors(record: ReleaseFields, calibration: Calibration, units: Sequence[int | None], say: Words) -> list[str]:
    """Write the errors of a release at several ε: in the group where they are largest, of a usual subject."""
    over, of = 1.0 if record.groups is None else record.groups.most_error, ""
    if record.cell_that_divides == "subject":
        n = round(record.data.records / record.data.subjects)
        over, of = 1 / n, f" ({n:,} {say('records')})"
    worth, write = float(calibration.linear.unit) * record.noise.scale / calibration.scale * over, Numbers(record)
    return [
        say("unknown") if error is None else say("no_noise") if error == 0 else f"± {write.error(error * worth)}{of}"
        for error in units
    ]


# -- How it was made, and how to verify ------------------------------------------------------------------------------

_FINDINGS = {"record": "release file"}
"""What findings are called on the page, where a record is one of the data."""


def _how_part(shown: Sequence[_Shown], say: Words, ledger_name: str | None) -> Html:
    """Return the commands that made the releases, those that verify them, and what was found when the page was made."""
    lines: dict[str, None] = {}
    for each in shown:
        lines |= dict.fromkeys(commands_of(each.record, each.source.name) if each.query is not None else ())
    proofs = [each for each in shown if each.findings is None or each.calibration is not None]
    verdicts = [
        tag("p", _whose(who, shown, say), say("proved" if proved else "unproved"))
        for proved, who in _alike(proofs, lambda each: each.proved)
    ]
    parts: list[Any] = [tag("p", say("verify_how")), _lines(map(_verify_command, shown))]
    owned = [each for each in shown if each.query is not None and each.record.ledger is not None]
    if owned:
        file = "LEDGER.json" if ledger_name is None else ledger_name
        named = ", LEDGER.json," if ledger_name is None else ""
        command = [f"{_verify_command(each)} --ledger {shlex.quote(file)}" for each in owned]
        parts += [fold(say("owner", file=named), _lines(command))]
    files = [each.source for each in shown if each.source.digest is not None]
    digests = [tag("li", tag("code", f"{source.digest}  {source.name}")) for source in files]
    parts_found: dict[tuple[str, str, str], list[_Shown]] = {}
    for each in shown:
        for part in each.findings or ():
            key = _FINDINGS.get(part.what, part.what), part.word, part.says
            parts_found.setdefault(key, []).append(each)
    rows = [
        [what, tag("td", word), tag("td", _whose(who, shown, say), says)]
        for (what, word, says), who in parts_found.items()
    ]
    found = table(["what", "found", ""], rows, say("found"), titled=False) if rows else None
    return tag(
        "section",
        tag("h2", say("how")),
        fold(say("commands"), _lines(lines)) if lines else None,
        parts,
        verdicts,
        fold(say("found"), tag("p", say("digest")) if digests else None, tag("ul", digests), found),
    )


def _lines(lines: Iterable[str]) -> Html:
    """Return commands, each on a line of its own."""
    return tag("pre", *(join(tag("code", line), Html("\n")) for line in lines))


def _verify_command(each: _Shown) -> str:
    if each.query is not None:
        return f"pufferfish verify {shlex.quote(each.source.name)}"
    program = f"import pufferfish as pf; pf.MeasurementRelease.from_json({each.source.name!r}).verify()"
    return f"python -c {shlex.quote(program)}"


# -- The sentences of records, to be translated ----------------------------------------------------------------------


def sentences_of(sources: Sequence[Source]) -> list[str]:
    """Return what pages about releases say beside their words: sentences of records, and what stands in folds.

    Each has a page of its own: some sentences are left out where several are together.
    """
    found: dict[str, None] = {}
    for source in sources:
        words = Marked()
        made = report_page([source], cover=Cover(words=words, labels=MarkedLabels())).decode()
        found |= words.said | dict.fromkeys(unmarked(made))
    return list(found)
