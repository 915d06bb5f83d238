"""What a release is compared with, where it is at hand: its model, its ledger, its table, and a file of values."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from pufferfish._base.words import at_most, number
from pufferfish.data import read_rows, read_sequences
from pufferfish.data.rows import Rows, RowsBase
from pufferfish.data.sequences import Base, Sequences
from pufferfish.errors import ParameterError, PufferfishError, RecordError
from pufferfish.fit.model_file import Model, read_model
from pufferfish.ledger import Entry, Ledger
from pufferfish.release.calibration_record import CalibrationRecord, calibration_again
from pufferfish.release.each_record import EachRelease
from pufferfish.release.each_values import possible_values
from pufferfish.release.facts import LedgerRecord
from pufferfish.release.record import Release
from pufferfish.release.under_ledger import is_note_of
from pufferfish.release.verification import Finding, fails, holds, not_in, unchecked
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.record import ThetaRecord
from pufferfish.theta.states import state_label

__all__ = ["of_ledger", "of_model", "of_table", "of_values"]

_READ = ("data.base", "data.rows", "data.observed", "data.subjects", "data.chains", "data.records", "data.steps")
_LENGTHS = ("data.longest_chain", "assumptions", "calibration.lengths", "calibration.records", "query.divided_by")


def of_model(found: Release | EachRelease, model: Any) -> Iterator[Finding]:
    """Compare Θ with a model."""
    if model is None:
        yield unchecked("Θ", "whether it is the class that was meant: compare it with the model's file", ["theta"])
        return
    theirs = ThetaRecord.of((model if isinstance(model, Model) else read_model(model)).theta)
    named = [name for name in theirs.__struct_fields__ if getattr(found.theta, name) != getattr(theirs, name)]
    if named:
        yield fails("Θ", f"it differs from the model's in {', '.join(named)}", ["theta"])
    else:
        yield holds("Θ", f"it is the model's, to the last digit ({theirs.origin})", ["theta"])


def of_ledger(found: Release | EachRelease, ledger: Any) -> Iterator[Finding]:
    """Compare the place in a ledger with its book; opening it computes what is spent again."""
    booked = found.ledger
    if ledger is None:
        if booked is not None:
            spent = f"{at_most(booked.spent)} of {number(booked.budget, 6)} spent"
            says = f"entry {booked.entry}, {spent}: compare it with the ledger"
            yield unchecked("ledger", says, ["ledger", "not_promised"])
        return
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    if booked is None:
        yield not_in(
            "ledger", "the release was made without a ledger, and says so: no ledger can vouch for it", ["ledger"]
        )
        return
    wrong = f"the record names entry {booked.entry}, and the ledger has {len(book.entries)}"
    if 1 <= booked.entry <= len(book.entries):
        differs = list(_differs(found, booked, book, book.entries[booked.entry - 1]))
        if not differs:
            says = (
                f"entry {booked.entry} says the same, and what is spent was computed again; a second record that names "
                "this entry would be told the same: one of the two was not charged"
            )
            yield holds("ledger", says, ["ledger"])
            return
        wrong = f"entry {booked.entry} of the ledger says {'; '.join(differs)}"
    known = [entry.number for entry in book.entries if not any(_differs(found, booked, book, entry))]
    where = (
        f"it is entry {known[0]} of this ledger"
        if known
        else "no entry of this ledger is of this release: it may be another table's, or an earlier state of it"
    )
    yield fails("ledger", f"{wrong}; {where}", ["ledger"])


def _differs(found: Release | EachRelease, booked: LedgerRecord, book: Ledger, entry: Entry) -> Iterator[str]:
    """Yield what an entry of a ledger, and the ledger, say otherwise than a release that was charged."""
    rules = [
        (entry.epsilon == found.epsilon, f"epsilon {entry.epsilon}"),
        (entry.spent == booked.spent, f"{entry.spent} spent"),
        (book.budget == booked.budget, f"a budget of {book.budget}"),
        (book.bound.name == booked.mechanism, f"the mechanism {book.bound.name}"),
        (book.bound.theta.origin == booked.theta_origin, f"Θ: {book.bound.theta.origin}"),
        (entry.created <= found.created or isinstance(found, EachRelease), f"a release after {entry.created}"),
    ]
    again = found.calibration
    if isinstance(again, CalibrationRecord):
        rules.append((entry.scale == str(Fraction(again.unit_scale)), f"noise of scale {entry.scale} in units"))
    if entry.windows is not None:
        charged = sum(stop - start for own in entry.windows for start, stop in own or ())
        rules.append((charged >= found.data.records, f"{charged} steps, and the release reads {found.data.records}"))
    if isinstance(found, EachRelease):
        rules.append((entry.release == found.release, f"the release {entry.release}"))
    else:
        said = f"{found.query.kind}: {found.query.description}"
        rules.append((is_note_of(entry.what, said), f"the query {entry.what!r}, and the record {said!r}"))
    yield from (rule for right, rule in rules if not right)


def of_table(found: Release | EachRelease, table: Any) -> Iterator[Finding]:
    """Compare the public facts of a table with those in the record."""
    base = found.data.rows if found.data.base is None else found.data.base
    if table is None:
        says = "that these are its records, read like this" + ("" if base is None else "; compare it with the table")
        yield unchecked("table", says, [*_READ, *_LENGTHS])
        return
    if base is None:
        raise ParameterError("this release is of one database that was given as a list or dict: there is no table")
    data = _read(found, base, table)
    own, facts = replace(data.base, source=base.source), found.data
    rules = [(own == base, "read as the record says")]
    if isinstance(data, Rows):
        observed = {state_label(node): number for node, number in data.observed.items()}
        rules += [
            (facts.subjects == data.records, f"{facts.subjects:,} rows"),
            (facts.observed == observed, "as many observed cells in each column"),
        ]
    else:
        chains, longest = len(data.length), max(chain.steps for chain in data.length)
        rules += [
            (facts.subjects == data.subjects, f"{facts.subjects:,} subjects"),
            (facts.chains == chains, f"{facts.chains:,} chains"),
            (facts.records == data.records, f"{facts.records:,} records"),
            (facts.longest_chain == longest, f"a longest chain of {facts.longest_chain:,} steps"),
            (
                facts.steps in (None, int(data.transitions.sum())),
                f"{facts.steps or 0:,} steps from a record to the next",
            ),
        ]
        again = found.calibration
        if isinstance(again, CalibrationRecord) and again.lengths and not _of_a_part(found):
            known = set(
                again.chains() if again.places else (ChainLength(steps, records) for steps, records, _ in again.lengths)
            )
            enough = all(any(chain.covers(c) for chain in known) for c in set(data.length))
            rules.append((enough, "no chain that the noise is not for"))
    wrong = [rule for right, rule in rules if not right]
    name = data.base.source
    named = "" if name == base.source else f"; it is {name!r}, and the record names {base.source!r}"
    if wrong:
        yield fails("table", f"the table differs from the record, which says: {'; '.join(wrong)}{named}", _READ)
    else:
        has = f"{facts.subjects:,} rows" if isinstance(data, Rows) else f"{facts.records:,} records and lengths"
        yield holds("table", f"it was read again, and has the record's {has}{named}", _READ)


def _of_a_part(found: Release | EachRelease) -> bool:
    """Whether the table is a window of the chain that the noise is for."""
    again = found.calibration
    return not isinstance(again, CalibrationRecord) or (again.query or {}).get("is") in ("Window", "Subset", "Weighted")


def _read(found: Release | EachRelease, base: Base | RowsBase, table: Any) -> Sequences | Rows:
    theta: Any = found.theta.any_theta()
    if isinstance(base, RowsBase):
        nodes: Mapping[str, Any] = {state_label(node): node for node in theta.networks[0].nodes}
        columns = {nodes[name]: column for name, column in base.columns.items()}
        missing: Any = base.missing
        return read_rows(
            table, theta.networks, columns=columns, subject=base.subject, where=base.where, missing=missing, by=base.by
        )
    how: Any = {each.name: getattr(base, each.name) for each in fields(base) if each.name not in ("source", "state")}
    return read_sequences(table, base.state, states=theta.states, **how)


def of_values(found: EachRelease, path: str | os.PathLike[str] | None, folder: Path | None) -> Iterator[Finding]:
    """Check the table of values of a release for each subject: that it is this table, and what follows in it."""
    if found.table is None:
        yield fails("values", "the release was not finished: there is no table of values")
        return
    if path is None:
        if folder is None or not (folder / found.table.name).is_file():
            yield unchecked("values", f"the table {found.table.name} is not at hand", ["table", "postprocessing"])
            return
        path = folder / found.table.name
    try:
        frame = found.read_table(path)
        wrong = _of_frame(found, frame)
    except (RecordError, ArithmeticError) as error:
        yield fails("values", str(error))
        return
    except PufferfishError as error:
        wrong = [str(error)]
    if wrong:
        yield fails("values", f"in {found.table.name}: {'; '.join(wrong)}")
    else:
        yield holds("values", f"the digest of {found.table.name} fits; its values follow from its noisy ones")
    yield unchecked(
        "subjects", "who they are, and how many records each has", ["release", "table.sha256", "table.name"]
    )


def _of_frame(found: EachRelease, frame: Any) -> list[str]:
    """Say what does not follow from something else in the table."""
    query, outputs = found.query, len(found.query.labels)
    records: Any = frame["records"].to_numpy().reshape(-1, outputs)[:, 0]
    noisy = frame["noisy_value" if found.postprocessing else "value"].to_numpy().reshape(-1, outputs)
    by: Any = records if query.divided_by_records else np.ones_like(records)
    steps: Any = noisy * by[:, None] / found.noise.unit
    error: Any = found.accuracy_95.each / by
    errors: Any = frame["error_95"].to_numpy().reshape(-1, outputs)
    given = frame["value"].to_numpy().reshape(-1, outputs)
    rules = [
        (frame.columns == (found.table.columns if found.table else []), "other columns than the record says"),
        (len(records) == found.data.subjects, f"{len(records)} subjects"),
        (int(records.sum()) == found.data.records, f"{int(records.sum())} records"),
        (list(frame["output"][:outputs]) == list(query.labels), "other outputs than the query's"),
        (np.allclose(steps, np.rint(steps), rtol=1e-9, atol=1e-6), "noisy values that are no whole numbers of units"),
        (np.allclose(errors, error[:, None], rtol=1e-9), "other errors"),
    ]
    if found.postprocessing is not None and isinstance(found.calibration, CalibrationRecord):
        linear: Any = calibration_again(found.as_release(), found.calibration).linear
        ends = [int(end) * found.noise.unit for end in (linear.weights.min(), linear.weights.max())]
        own = np.ones_like(records) if query.divided_by_records else records
        possible = possible_values(noisy, own, ends, found.postprocessing)
        rules.append((np.allclose(given, possible, rtol=1e-9, atol=1e-9), "values that are not the nearest possible"))
    return [said for right, said in rules if not right]
