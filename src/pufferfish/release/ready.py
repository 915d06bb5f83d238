"""A release that nothing refuses any more, before anything is spent: the same for all records, groups and subjects."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pufferfish._base.checked import accepted_words, listed, one_of
from pufferfish._base.durations import now
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError, RecordError, ReleaseRefused, shortened
from pufferfish.ledger import Entry, Ledger
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.words import checked_of
from pufferfish.queries import Query
from pufferfish.release.derive import NOTHING_FOLLOWS, Proof, calibrated_fields, data_record, promised, with_values
from pufferfish.release.draw import Database, PrivateData
from pufferfish.release.facts import DataRecord, GroupsRecord, SubjectsRecord, step_of_reading
from pufferfish.release.prepare import (
    ACCEPTED,
    check_clock,
    check_columns,
    check_each_subject,
    check_fit,
    check_query,
    check_units,
    divisions_of,
    prove,
    warnings_of_ledger,
    warnings_of_model,
    warnings_of_stretch,
)
from pufferfish.release.record import ReleaseFields
from pufferfish.release.words import versions
from pufferfish.theta.model_class import Described
from pufferfish.theta.record import Checking

__all__ = ["Prepared", "Ready", "checked", "inconsistent"]

AnyRecord = TypeVar("AnyRecord")


@dataclass(frozen=True, slots=True)
class Prepared(Generic[AnyRecord]):
    """A release that nothing refuses any more, before anything is spent.

    Parameters
    ----------
    warnings : tuple of str
        What its reader is warned of, to be told while nothing is spent.
    plan : callable
        Returns the record as it would be now, but for its values, and its entry in the ledger, if there is one; refuses
        what the ledger would. Nothing is spent.
    finish : callable
        Spends the budget, draws the noise, and returns the release; calls its argument right before, when nothing is
        refused any more.
    """

    warnings: tuple[str, ...]
    plan: Callable[[], tuple[AnyRecord, Entry | None]]
    finish: Callable[..., AnyRecord]


@dataclass(frozen=True, slots=True)
class Ready:
    """What was checked and proved of a release: its calibration, what was read, the proof, and warnings."""

    calibration: Calibration
    data: DataRecord
    proof: Proof
    valid: bool
    warnings: tuple[str, ...]
    reading_warnings: tuple[str, ...]
    """Warnings of how the table was read, which come last."""
    check: Checking | None
    """What a check of Θ said last."""

    def draft(
        self,
        warnings: Sequence[str] = (),
        *,
        groups: GroupsRecord | None = None,
        subjects: SubjectsRecord | None = None,
    ) -> ReleaseFields:
        """Return the record but for its values and its place in a ledger; with some more warnings."""
        fields = calibrated_fields(
            self.calibration,
            self.data,
            self.proof,
            groups=groups,
            subjects=subjects,
            valid=self.valid,
            warnings=[*self.warnings, *warnings, *self.reading_warnings],
        )
        draft = ReleaseFields(
            created=now(),
            values=[],
            noisy_values=[],
            data=self.data,
            checked=self.check,
            software=versions(),
            **NOTHING_FOLLOWS,
            **fields,
        )
        return with_values(draft, self.calibration)


def checked(
    data: PrivateData,
    query: Query,
    calibration: Calibration,
    *,
    postprocess: Literal["valid"] | None,
    warnings: Sequence[str],
    ledger: Ledger | None,
    accept: str | Collection[str],
    by_subject: bool = False,
    model: Described | None = None,
) -> Ready:
    """Check and prove all that can be refused of a release, whatever its cells are; see :func:`pufferfish.release`.

    ``by_subject`` says whether every subject gets values of its own. ``model`` is what Θ came from, which was asked
    already whether it goes with the data; by default the mechanism's.
    """
    any_ledger: Any = ledger
    warnings_so_far = sentences(warnings)
    if not (any_ledger is None or isinstance(any_ledger, Ledger)):
        raise ParameterError(f"ledger is {any_ledger!r}, expected a Ledger, such as Ledger.open(path)")
    if not one_of(postprocess, (None, "valid")):
        raise ParameterError(f'postprocess is {postprocess!r}, expected "valid" or None')
    if ledger is not None and isinstance(data, Database):
        raise ParameterError(
            "a ledger needs a table: read the data with read_sequences, or with read_rows for networks"
        )
    calibration = check_query(query, calibration)
    if by_subject:
        check_each_subject(calibration)
    elif not isinstance(data, Database) and (groups := data.groups) is not None:  # refused in words about groups
        divisions_of(calibration, len(groups.cells), groups.records, data.records)
    facts = data_record(data, calibration)
    check_fit(facts, calibration)
    if ledger is not None and not isinstance(data, Database):
        check_clock(facts, ledger.bound.theta)
    if isinstance(data, Rows):
        check_columns(data, calibration)
    of_model = warnings_of_model(data, calibration.bound.model, accept=accepted_words(accept, ACCEPTED))
    warnings_so_far += [text for text in of_model if text not in warnings_so_far]
    warnings_so_far += warnings_of_ledger(calibration.theta, ledger)
    proof = (*prove(calibration), promised(calibration, facts))
    check_units(calibration)
    warnings_so_far += warnings_of_stretch(data, calibration.bound.protection, step_of_reading(facts), proof[2])
    return Ready(
        calibration,
        facts,
        proof,
        postprocess is not None,
        tuple(warnings_so_far),
        warnings_of_data(data, calibration),
        checked_of(model or calibration.bound.model),
    )


def sentences(warnings: Any) -> list[str]:
    """Return warnings that a user gives, refused where they are no texts."""
    texts = listed(warnings, "warnings", 'sentences, such as ["One sensor was changed in May."]')
    for text in texts:
        if not isinstance(text, str):
            raise ParameterError(f"warnings holds {shortened(repr(text))}, expected sentences, as text")
    return [str(text) for text in texts]


def warnings_of_data(data: PrivateData, calibration: Calibration) -> tuple[str, ...]:
    """Return what may be wrong with how a table was read; groups of any other Θ may well be many and small."""
    return data.warnings if isinstance(data, Sequences) and calibration.theta.of_chains else ()


def inconsistent(error: RecordError) -> ReleaseRefused:
    """Return what to raise where the record of a release could not be read again: nothing was spent yet."""
    return ReleaseRefused(
        f"internal error: the release record is inconsistent ({error}). Nothing was spent; please report this"
    )
