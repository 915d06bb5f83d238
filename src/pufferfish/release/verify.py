"""Whether a release holds what its record says: the proof is computed again, from the record alone.

Reading a record already looks at whether its fields agree (:mod:`pufferfish.release.check`). What that cannot see
is whether the noise is enough: here Θ, the mechanism and the query are made again from the record, and the mechanism
proves the leakage from scratch. What nobody can see afterwards is said too.
"""

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from pufferfish._base.durations import is_moment
from pufferfish._base.reading import display_path
from pufferfish._base.words import at_most, number
from pufferfish._base.writing import read_file
from pufferfish.data import read_rows, read_sequences
from pufferfish.data.rows import Rows, RowsBase
from pufferfish.data.sequences import Base, Sequences
from pufferfish.errors import DataError, NotApplicableError, ParameterError, PufferfishError, RecordError, shortened
from pufferfish.fit.model_file import Model, read_model
from pufferfish.ledger import Entry, Ledger
from pufferfish.mechanisms import bound_of
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.mechanisms.witness import AnyWitness
from pufferfish.release.certificate import Certificate
from pufferfish.release.check import BROKEN, differences, leaves, rules_on_place
from pufferfish.release.derive import data_record, groups_record, promised, words_of_measurement
from pufferfish.release.facts import LedgerRecord, TableRecord
from pufferfish.release.postprocessing import BySubject
from pufferfish.release.prepare import check_proof, check_units, is_note_of
from pufferfish.release.record import (
    MeasurementFields,
    ReleaseFields,
    calibration_again,
    function_of_user,
    read_table,
    release_in,
)
from pufferfish.release.show.text import division, record_named
from pufferfish.release.verification import PROOF, Finding, Verification, fails, holds, unchecked
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.record import NEVER_CHECKED, ThetaRecord
from pufferfish.theta.states import state_label

# -- What a release is compared with ---------------------------------------------------------------------------------

_READ = [
    f"data.{name}"
    for name in (
        *("base", "rows", "observed", "subjects", "chains", "records", "steps", "usual_step", "clock_changes"),
        *("longest_chain", "lengths", "places"),
    )
]
_LENGTHS = ("assumptions", "calibration.lengths", "calibration.records", "query.divided_by")


def model_findings(record: ReleaseFields, model: Any, ledger: Ledger | None = None) -> Iterator[Finding]:
    """Compare Θ with a model; a ledger knows whether its Θ was changed to that of the model after the release."""
    if model is None:
        yield unchecked("Θ", "whether it is the class that was meant: compare it with the model's file", ["theta"])
        yield unchecked("check", "what it was held against: the model's file keeps the last verdict", ["checked"])
        return
    given = model if isinstance(model, Model) else read_model(model)
    theirs, stated = ThetaRecord.of(given.theta), record.checked
    known = None if given.checked is None else replace(given.checked, fingerprint=None)
    if stated == known:
        yield holds("check", f"Θ was {NEVER_CHECKED if known is None else known.in_words()}", ["checked"])
    else:  # a model may be checked again after a release
        says = [NEVER_CHECKED if each is None else each.in_words() for each in (stated, known)]
        yield unchecked("check", f"the release says {says[0]}, and the model's file now {says[1]}", ["checked"])
    named = [name for name in theirs.__struct_fields__ if getattr(record.theta, name) != getattr(theirs, name)]
    change = _change_after(record, theirs, ledger)
    if named and change is not None:
        says = (
            f"the model is that of entry {change}, which changed Θ of the ledger after this release; the release is "
            "under the Θ before: compare it with the model before, if its file was kept"
        )
        yield unchecked("Θ", says, ["theta"])
    elif named:
        later = "; if Θ was changed after this release (pufferfish ledger change), name the ledger too"
        later = later if record.ledger is not None and ledger is None else ""
        yield fails("Θ", f"it differs from the model's in {', '.join(named)}{later}", ["theta"])
    else:
        yield holds("Θ", f"it is the model's, to the last digit ({theirs.origin})", ["theta"])


def _change_after(record: ReleaseFields, theirs: ThetaRecord, ledger: Ledger | None) -> int | None:
    """Return the entry by which a ledger's Θ became a model's after a release under the Θ before; None if none did."""
    booked = record.ledger
    if ledger is None or booked is None or not 1 <= booked.entry <= len(ledger.entries):
        return None
    if ThetaRecord.of(ledger.bound_at(booked.entry).theta) != record.theta:
        return None
    later = (entry.number for entry in ledger.entries[booked.entry :] if entry.theta is not None)
    return next((number for number in later if ThetaRecord.of(ledger.bound_at(number).theta) == theirs), None)


def ledger_findings(record: ReleaseFields, ledger: Ledger | None) -> Iterator[Finding]:
    """Compare the place in a ledger with its book; opening it computes what is spent again."""
    booked = record.ledger
    if ledger is None:
        if booked is not None:
            spent = f"{at_most(booked.spent)} of {number(booked.budget, 6)} spent"
            says = f"entry {booked.entry}, {spent}: compare it with the ledger"
            yield unchecked("ledger", says, ["ledger", "not_promised"])
        return
    if booked is None:
        says = "the release was made without a ledger, and says so: no ledger can vouch for it"
        yield Finding("ledger", False, says, ["ledger"], absent=True)
        return
    wrong = f"the record names entry {booked.entry}, and the ledger has {len(ledger.entries)}"
    if 1 <= booked.entry <= len(ledger.entries):
        differs = list(_entry_differences(record, booked, ledger, ledger.entries[booked.entry - 1]))
        if not differs:
            says = (
                f"entry {booked.entry} says the same, and what is spent was computed again; a second record that names "
                "this entry would be told the same: one of the two was not charged, which verifying both together shows"
            )
            yield holds("ledger", says, ["ledger"])
            return
        wrong = f"entry {booked.entry} of the ledger says {'; '.join(differs)}"
    known = (e.number for e in ledger.entries if not any(_entry_differences(record, booked, ledger, e)))
    number_here = next(known, None)
    where = "no entry of this ledger is of this release: it may be another table's, or an earlier state of it"
    where = where if number_here is None else f"it is entry {number_here} of this ledger"
    yield fails("ledger", f"{wrong}; {where}", ["ledger"])


def _entry_differences(record: ReleaseFields, booked: LedgerRecord, ledger: Ledger, entry: Entry) -> Iterator[str]:
    """Yield what an entry of a ledger, and the ledger, say otherwise than a release that was charged."""
    bound = ledger.bound_at(entry.number)
    about = bound.protection, None if bound.secrets is None else [(str(a), str(b)) for a, b in bound.secrets]
    scale = str(Fraction(record.calibration.unit_scale))
    rules = [
        (entry.epsilon == record.epsilon, f"epsilon {entry.epsilon}"),
        (entry.spent == booked.spent, f"{entry.spent} spent"),
        (entry.previous == booked.previous, "another entry, or another beginning, before it"),
        (ledger.grows == booked.grows, "another kind of table: one that grows, or one that does not"),
        (ledger.budget == booked.budget, f"a budget of {ledger.budget}"),
        (bound.name == booked.mechanism, f"the mechanism {bound.name}"),
        (bound.theta.origin == booked.theta_origin, f"Θ: {bound.theta.origin}"),
        (about == (booked.protection, booked.secrets), "what is spent of something else"),
        (entry.created <= record.created or record.subjects is not None, f"a release after {entry.created}"),
        (entry.scale == scale, f"noise of scale {entry.scale} in units"),
    ]
    if entry.windows is not None:
        charged = sum(stop - start for chain_windows in entry.windows for start, stop in chain_windows or ())
        rules.append((charged >= record.data.records, f"{charged} steps, and the release reads {record.data.records}"))
    if record.subjects is not None:
        rules.append((entry.release == record.subjects.release, f"the release {entry.release}"))
    else:
        stated = f"{record.query.kind}: {record.query.description}"
        rules.append((is_note_of(entry.what, stated), f"the query {entry.what!r}, and the record {stated!r}"))
    yield from (rule for ok, rule in rules if not ok)


def table_findings(record: ReleaseFields, table: Any, ledger: Ledger | None = None) -> Iterator[Finding]:
    """Compare the public facts of a table with those in the record; of one that grows, as the ledger knows it."""
    base = record.data.reading
    if table is None:
        says = "that these are its records, read like this" + ("" if base is None else "; compare it with the table")
        yield unchecked("table", says, [*_READ, *_LENGTHS])
        return
    if base is None:
        raise ParameterError("this release is of one database that was given as a list or dict: there is no table")
    readings = list(_readings(record, base, table, ledger))
    found = [_compared(record, base, data) for data in readings]
    best = next((finding for finding in found if finding.holds), found[0] if found else None)
    grows = record.ledger is not None and record.ledger.grows
    if best is None or (grows and ledger is None and not best.holds):
        says = "the ledger knows which rows of a table that grows this release left out: compare it with the ledger too"
        best = unchecked("table", says, [*_READ, *_LENGTHS])
    yield best


def _compared(record: ReleaseFields, base: Base | RowsBase, data: Sequences | Rows) -> Finding:
    try:
        derived_data = data_record(data, calibration_again(record))
    except BROKEN as error:
        return fails("table", f"the noise is not for such a table: {error}", _READ)
    source = data.base.source
    named = "" if source == base.source else f"; it is {source!r}, and the record names {base.source!r}"
    base_read: Any = dataclasses.replace(data.base, source=base.source)
    read = replace(derived_data, **{"base" if derived_data.rows is None else "rows": base_read})
    differs = [name for name in read.__struct_fields__ if getattr(read, name) != getattr(record.data, name)]
    stated = "; ".join(f"{name} {shortened(repr(getattr(record.data, name)))}" for name in differs)
    if record.groups is not None and not differs:
        groups = None if data.groups is None else groups_record(data.groups, record.data)
        if any(getattr(groups, name, None) != getattr(record.groups, name) for name in ("cells", "records", "steps")):
            stated = "other groups, or other numbers of records or steps in them"
    if stated:
        return fails("table", f"the table differs from the record, which says: {stated}{named}", _READ)
    has = f"{read.subjects:,} rows" if isinstance(data, Rows) else f"{read.records:,} records and lengths"
    return holds("table", f"it was read again, and has the record's {has}{named}", _READ)


def _readings(
    record: ReleaseFields, base: Base | RowsBase, table: Any, ledger: Ledger | None
) -> Iterator[Sequences | Rows]:
    """Read a table in the ways that a release can have read it: of one that grows, all rows or those that were new."""
    booked = record.ledger
    theta: Any = record.theta.any_theta()
    if isinstance(base, RowsBase):
        nodes: Mapping[str, Any] = {state_label(node): node for node in theta.networks[0].nodes}
        columns = {nodes[name]: column for name, column in base.columns.items()}
        options: dict[str, Any] = {name: getattr(base, name) for name in ("subject", "where", "missing", "by")}
        yield read_rows(table, theta.networks, columns=columns, **options)
        return
    options = {option.name: getattr(base, option.name) for option in fields(base) if option.name != "source"}
    if record.data.usual_step is not None:  # it was found in the times, not given
        options["step"] = None
    options["states"] = theta.states
    if booked is None or not booked.grows:
        yield read_sequences(table, **options)
    elif ledger is None:
        with suppress(DataError):
            yield read_sequences(table, **options)
    elif 1 <= booked.entry <= len(ledger.entries):
        for again in (False, True):
            with suppress(DataError):
                yield ledger.read_as(booked.entry, table, again=again, **options)


def values_findings(
    record: ReleaseFields, table: TableRecord | None, path: str | os.PathLike[str] | None, folder: Path | None
) -> Iterator[Finding]:
    """Check the table of values of a release for each subject: that it is this table, and what follows in it."""
    if table is None:
        yield fails("values", "the release was not finished: there is no table of values")
        return
    if path is None:
        if folder is None or not (folder / table.name).is_file():
            yield unchecked("values", f"the table {table.name} is not at hand", ["subjects.table", "postprocessing"])
            return
        path = folder / table.name
    try:
        frame = read_table(record, path)
        with np.errstate(all="ignore"):  # a record may say any numbers
            wrong = _wrong_in_table(record, table, frame)
    except RecordError as error:
        yield fails("values", str(error))
        return
    except BROKEN as error:
        wrong = [str(error)]
    if wrong:
        yield fails("values", f"in {table.name}: {'; '.join(wrong)}")
    else:
        yield holds("values", f"the digest of {table.name} fits; its values follow from its noisy ones")
    named = ["subjects.release", "subjects.table.sha256", "subjects.table.name"]
    yield unchecked("subjects", "who they are, and how many records each has", named)


def _wrong_in_table(record: ReleaseFields, table: TableRecord, frame: Any) -> list[str]:
    """Say what does not follow from something else in the table."""
    labels, outputs, postprocessing = record.query.labels, len(record.query.labels), record.postprocessing
    divided = record.subjects is not None and record.subjects.divided_by_records
    wrong_columns = list(_columns_that_differ(table, frame))
    if wrong_columns:
        return wrong_columns
    blocks: Any = frame["records"].to_numpy().reshape(-1, outputs)
    subjects, records = frame["subject"].to_list()[::outputs], blocks[:, 0]
    noisy = frame["value" if postprocessing is None else "noisy_value"].to_numpy().reshape(-1, outputs)
    divisors: Any = records if divided else np.ones_like(records)
    steps: Any = noisy * divisors[:, None] / record.noise.unit
    error: Any = record.accuracy_95.each / divisors
    errors: Any = frame["error_95"].to_numpy().reshape(-1, outputs)
    values = frame["value"].to_numpy().reshape(-1, outputs)
    most = max(n for _, n, _ in record.data.lengths)
    names, known = frame["output"].to_list(), list(labels) * len(subjects)
    # a table for spreadsheets has a quote before what would be a formula
    same = len(names) == len(known) and all(name in (a, f"'{a}") for name, a in zip(names, known, strict=True))
    rules = [
        (len(records) == record.data.subjects, f"{len(records)} subjects"),
        (int(records.sum()) == record.data.records, f"{int(records.sum())} records"),
        (records.min() >= 1 and (blocks == records[:, None]).all(), "subjects without a number of records"),
        (record.data.cut or records.max() == most, "a subject with other records than any chain"),
        (frame["subject"].to_list() == [name for name in subjects for _ in range(outputs)], "rows of other subjects"),
        (len(set(subjects)) == len(subjects) and None not in subjects, "a subject twice"),
        (same, "other outputs than the query's"),
        (np.allclose(steps, np.rint(steps), rtol=1e-9, atol=1e-6), "noisy values that are no whole numbers of units"),
        (np.allclose(errors, error[:, None], rtol=1e-9), "other errors"),
    ]
    if isinstance(postprocessing, BySubject):
        possible = postprocessing.of(noisy, np.ones_like(records) if divided else records)
        rules.append((np.allclose(values, possible, rtol=1e-9, atol=1e-9), "values that are not the nearest possible"))
    return [problem for ok, problem in rules if not ok]


def _columns_that_differ(table: TableRecord, frame: Any) -> Iterator[str]:
    """Say which columns of a table of values are not those that were written, or hold something else."""
    import polars as pl

    if frame.columns != table.columns:
        yield "other columns than the record says"
        return
    for name, kind in frame.schema.items():
        expected = {"subject": kind == pl.String, "output": kind == pl.String, "records": kind.is_integer()}
        if not expected.get(name, kind.is_float()):
            yield f"column {name}, which holds {kind}"


_SAME = 1e-6
"""What is computed again may differ by this share: another processor adds in another order."""


def verify(
    release: ReleaseFields | str | os.PathLike[str],
    *,
    model: Model | str | os.PathLike[str] | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    table: Any = None,
    values: str | os.PathLike[str] | None = None,
    certificate: Certificate | str | os.PathLike[str] | None = None,
) -> Verification:
    """Check a release from its record alone: compute its proof, and everything that follows from its facts, again.

    Parameters
    ----------
    release : Release, EachRelease or path-like
        The release, or its file.
    model, ledger : optional
        The model that it was made under and the ledger that it was charged to, or their files: to be compared with Θ,
        and with its entry and those before. Of two records that name one entry both agree with it, though only one of
        them was charged: compare such records with each other (:func:`verify_together`).
    table : table or path-like, optional
        The private table: it is read as the record says, and its public facts are compared. Nothing is printed of it.
    values : path-like, optional
        For a release for each subject, its table of values; by default the one beside the record.
    certificate : Certificate or path-like, optional
        A proof of the promise, which is checked in whole numbers, beside the proof by the mechanism.

    Returns
    -------
    Verification
        What holds, what does not, and what could not be checked. A ``RecordError`` if the file is no release, or the
        model, ledger or table cannot be read.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    >>> noise = pf.MQMExact(chain, length=100).calibrate(pf.Count("active"), epsilon=1.0)
    >>> found = pf.verify(pf.release(["rest"] * 100, pf.Count("active"), noise))
    >>> found.holds, [part.what for part in found.unchecked]
    (True, ['noise drawn', 'origin', 'Θ', 'check', 'table'])
    """
    source: Any = release
    if isinstance(source, ReleaseFields):
        record, folder = source, None
    else:
        record, folder = release_in(read_file(source), display_path(source)), Path(source).parent
    findings = [*_record_findings(record), *_certificate_findings(record, certificate)]
    if record.subjects is not None:
        findings += values_findings(record, record.subjects.table, values, folder)
    elif values is not None:
        raise ParameterError("values is for releases for each subject; this one holds its values itself")
    opened = ledger if ledger is None or isinstance(ledger, Ledger) else Ledger.open(ledger)
    findings += model_findings(record, model, opened)
    findings += ledger_findings(record, opened)
    findings += table_findings(record, table, opened)
    for_each = "" if record.subjects is None else f" for each of {record.data.subjects:,} subjects"
    noise = f"{record.mechanism.title}, ε = {at_most(record.epsilon)}"
    return Verification(f"{record.query.kind}{for_each}, {noise}, made {record.created[:19]}", findings)


_PARTS = {"query": "query", "noise": "noise", "calibration": "noise"}
_PARTS |= dict.fromkeys(("promise", "not_promised", "assumptions", "warnings"), "words")
"""Which finding a field is about; all others are about the record."""

_DERIVED = {
    "record": "its fields follow from its facts: values, accuracy, groups and what was read, derived again",
    "query": "outputs, and how far one record moves them, derived again",
    "noise": "{scale}, which the proof is about",
    "words": "the promise, and what it rests on, as this version writes it",
}
"""What is said of each where nothing is wrong."""


def _record_findings(record: ReleaseFields) -> Iterator[Finding]:
    """Yield what is found with nothing but the record."""
    wrong = [(_PARTS.get(field, "record"), rule) for field, rule in differences(record)]
    yield from (fails(part, f"expected that {rule}") for part, rule in wrong)
    scale = f"scale {record.noise.scale:.6g}{division(record)}"
    for part, says in _DERIVED.items():
        if not any(wrong_part in (part, "record") for wrong_part, _ in wrong):
            yield holds(part, says.format(scale=scale))
    if all(part == "words" for part, _ in wrong):  # else it is not known which noise to prove something about
        yield from _proof_findings(record)
    drawn = "that noise was drawn from this law, once, and added to the exact value"
    yield unchecked("noise drawn", drawn, ["noisy_values"])
    origin = "when, by whom and with which software it was made, and what it warned of"
    yield unchecked("origin", origin, ["created", "software", "warnings"])


def _proof_findings(record: ReleaseFields) -> Iterator[Finding]:
    """Yield whether the mechanism proves again that this noise is enough for the records that were read."""
    function = function_of_user(record)
    if function:
        stated = f"{function} is a function of the user's, which no file holds"
        yield unchecked(PROOF, stated, ["mechanism", "noise", "calibration", "query", "data"])
        return
    calibration = calibration_again(record)  # the same was made, and held against the data, to derive what follows
    size = "a table of as many rows as that" if calibration.theta.networks else "chains as long as those"
    yield holds("lengths", f"the noise is for {size} of the data")
    yield from _leakage_findings(record, calibration)


def _leakage_findings(record: ReleaseFields, calibration: Calibration) -> Iterator[Finding]:
    """Yield whether the mechanism proves the leakage that the record says, and by the same secret."""
    stated, title = record.mechanism, calibration.title
    try:
        leakage, witness = calibration.bound.verify(calibration)
        if leakage > record.epsilon:
            proved = f"{title} proves a leakage of {leakage:.6g} for this noise"
            yield fails(PROOF, f"{proved}, above ε = {record.epsilon:.6g}")
            return
        leakage, witness = check_proof(calibration, leakage, witness)
        check_units(calibration)
    except BROKEN as error:
        yield fails(PROOF, f"{title} cannot prove it: {error}")
        return
    if not math.isclose(leakage, stated.leakage, rel_tol=_SAME):
        yield fails(PROOF, f"{title} proves a leakage of {leakage:.6g}, and the record says {stated.leakage:.6g}")
        return
    yield holds(PROOF, f"{title} proves again that at most {at_most(leakage)} nats leak; ε = {at_most(record.epsilon)}")
    yield _promises_finding(record, calibration)
    settings = record.calibration.settings or {}
    if settings.get("max_quilts") is not None:
        says = "among how many quilts its proof was searched: another number can find the same one"
        yield unchecked("search", says, ["calibration.settings.max_quilts"])
    yield _witness_finding(stated.witness, witness)
    if stated.witness.nearest is not None:
        says = "how near the noise is to what some member of Θ needs: only the proof of this noise is computed again"
        yield unchecked("gap", says, ["mechanism.witness.nearest.gap"])


def _certificate_findings(
    record: ReleaseFields, certificate: Certificate | str | os.PathLike[str] | None
) -> Iterator[Finding]:
    """Yield whether a certificate, if there is one, proves what the record promises."""
    if certificate is None:
        return
    if not isinstance(certificate, Certificate):
        certificate = Certificate(read_file(certificate).decode(errors="replace"), None, 0.0)
    try:
        certificate.check(record)
    except NotApplicableError as error:
        yield fails("certificate", error.reason)
        return
    yield holds("certificate", "proved by certificate, in whole numbers")


def _promises_finding(record: ReleaseFields, calibration: Calibration) -> Finding:
    """Compare what the record promises of every unit with what the noise promises."""
    try:
        proved = promised(calibration, record.data)
    except BROKEN as error:
        return fails("promises", f"what the noise promises of other units cannot be proved: {error}")
    if not _same_values(msgspec.to_builtins(record.promises), msgspec.to_builtins(proved)):
        return fails("promises", "the noise promises something else of other units than the record says")
    return holds("promises", f"what the noise promises of {len(proved)} units proved again")


def _witness_finding(stated: AnyWitness, proved: AnyWitness) -> Finding:
    """Compare the secret that decides with the one that was proved to; with the same numbers the two are a tie."""
    old, new = msgspec.to_builtins(stated), msgspec.to_builtins(proved)
    if _same_values(old, new):
        where = "" if stated.node is None else f"{record_named(stated.node)}: "
        return holds("witness", f"{where}what decides, and what tells it, found again")
    numbers = [sorted(n for n in leaves(part).values() if isinstance(n, float)) for part in (old, new)]
    # a tie is of another record, pair or quilt
    elsewhere = any(old.get(name) != new.get(name) for name in proved.where)
    if elsewhere and len(numbers[0]) == len(numbers[1]) and np.allclose(*numbers, rtol=_SAME, atol=1e-12):
        says = f"the proof finds record {new.get('node')}, which leaks as much: a tie, if what the file names is one"
        return unchecked("witness", says, ["mechanism.witness"])
    return fails("witness", "the proof points to a different record than the file says")


def _same_values(first: Any, second: Any) -> bool:
    """Whether two plain values are the same, but for the last digits of their numbers."""
    old, new = leaves(first), leaves(second)
    return old.keys() == new.keys() and all(_same(part, new[place]) for place, part in old.items())


def _same(first: Any, second: Any) -> bool:
    numbers = isinstance(first, float) and isinstance(second, float)
    return math.isclose(first, second, rel_tol=_SAME, abs_tol=1e-12) if numbers else first == second


def verify_measurement(record: MeasurementFields) -> float:
    """Return what the record-level loss of a measurement leaks, in nats; a ``RecordError`` if it contradicts itself."""
    try:
        length = [ChainLength(*steps_and_records) for steps_and_records in record.length]
        bound = bound_of(record.mechanism, record.theta.theta(), length, record.settings)
        epsilon = as_epsilon(record.epsilon)
        leakage = bound.leakage(record.record_loss, enough=epsilon)
    except (PufferfishError, ValueError, TypeError, OverflowError) as error:
        raise RecordError(str(error)) from error
    if not leakage <= epsilon:
        raise RecordError(f"a record-level loss of {record.record_loss!r} leaks {leakage:.6g}, above {epsilon:g}")
    if not (math.isclose(record.leakage, leakage, rel_tol=1e-6, abs_tol=1e-12) and record.leakage <= epsilon):
        raise RecordError(f"it leaks {leakage:.6g}, and the record says {record.leakage!r}")
    for field, follows in words_of_measurement(bound, epsilon, record.ledger, record.checked).items():
        if getattr(record, field) != follows:
            raise RecordError(f"{field} is not what such a release says: {shortened(repr(follows))}")
    wrong = next((rule for ok, rule in rules_on_place(record.ledger, record.theta) if not ok), None)
    if wrong is not None:
        raise RecordError(f"expected that {wrong}")
    if not is_moment(record.created):
        raise RecordError(f"created is {record.created!r}, expected a time with its zone")
    return leakage
