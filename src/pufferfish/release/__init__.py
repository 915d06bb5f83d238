"""The one place where rows meet noise: a private value, and the record of what was promised.

A :class:`Release` holds everything a reader needs to judge it (query, noise, Θ and where it came from, what is
promised and what is not) and never the exact value.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Never

import msgspec

from pufferfish._base.checked import one_of, truth
from pufferfish._base.durations import now
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError, RecordError, ReleaseRefused, warn
from pufferfish.ledger import Entry, Ledger
from pufferfish.ledger.same_records import check_start
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.words import few_in_all, few_in_groups
from pufferfish.queries import JointQuery, LinearQuery, Query
from pufferfish.release.cells import grouped_of
from pufferfish.release.derive import Prepared, draft_of, noise_of, not_promised, place_in, sentences
from pufferfish.release.draw import Database, database_of, drawing, possible
from pufferfish.release.facts import LedgerRecord, project_to_simplex
from pufferfish.release.measurement import MEASUREMENT, MeasurementRelease, release_measurement
from pufferfish.release.noise import discrete_laplace_noise
from pufferfish.release.prepare import (
    check_arguments,
    check_query,
    check_reading,
    check_records,
    check_units,
    note_of,
    prove,
    warnings_of_ledger,
    warnings_of_model,
)
from pufferfish.release.record import EACH, RELEASE, EachRelease, Release
from pufferfish.release.store import prepare_each, release_each
from pufferfish.release.verification import Finding, Verification
from pufferfish.release.verify import decoded_release, verify

__all__ = [
    "EACH",
    "MEASUREMENT",
    "RELEASE",
    "EachRelease",
    "Finding",
    "MeasurementRelease",
    "Release",
    "Verification",
    "decoded_release",
    "prepare",
    "prepare_each",
    "project_to_simplex",
    "release",
    "release_each",
    "release_measurement",
    "verify",
]


def release(
    data: Sequences | Rows | Mapping[Any, Any] | Sequence[Any],
    query: Query,
    calibration: Calibration | None = None,
    *,
    postprocess: Literal["valid"] | None = None,
    warnings: Sequence[str] = (),
    ledger: Ledger | None = None,
    window: Any = None,
    coarsening: Mapping[Any, Any] | None = None,
    public: bool = False,
    **unknown: Never,
) -> Release:
    """Release a query's value with calibrated noise.

    Parameters
    ----------
    data : Sequences, Rows, mapping, or sequence of states
        The private data: a table, from :func:`read_sequences`, or from :func:`read_rows` for networks; or one database,
        a dict from the names of its records to their states (a list of states where records have no names but their
        order).
    query : Query
        What is asked; the query the noise was calibrated for.
    calibration : Calibration
        The noise, from a mechanism's ``calibrate``: epsilon and the mechanism are chosen there.
    postprocess : {"valid"}, optional
        Make the value a possible one: a histogram non-negative with the public total (the nearest such, in
        Euclidean distance), other queries inside their range. It costs no privacy, and is recorded.
    warnings : sequence of str
        Sentences to put into the record.
    ledger : Ledger, optional
        The budget that this release is written into, after everything was checked and before noise is drawn.
    window, coarsening : optional
        Which part of the ledger's base the data are, as for :meth:`Ledger.spend`.
    public : bool, default False
        Whether everybody may see the data: then a model that was fitted to them is taken, and nothing is promised.

    Returns
    -------
    Release
        The noisy value and the record.

    Raises
    ------
    ReleaseRefused
        If the calibration is for another query, other states, or shorter chains than the data's, the data are not
        the ledger's, or the model was fitted to them.
    BudgetExceeded
        If the ledger has too little left; nothing is spent.
    DataError
        If the data holds states the model lacks.
    ParameterError
        If an argument is not what it should be.
    """
    calibration = check_arguments(data, query, calibration, unknown)
    ready = prepare(
        data,
        query,
        calibration,
        postprocess=postprocess,
        warnings=warnings,
        ledger=ledger,
        window=window,
        coarsening=coarsening,
        public=public,
    )
    warn(text for text in ready.warnings if text not in warnings)
    return ready.finish()


def prepare(
    data: Sequences | Rows | Mapping[Any, Any] | Sequence[Any],
    query: Query,
    calibration: Calibration,
    *,
    postprocess: Literal["valid"] | None = None,
    warnings: Sequence[str] = (),
    ledger: Ledger | None = None,
    window: Any = None,
    coarsening: Mapping[Any, Any] | None = None,
    public: bool = False,
) -> Prepared[Release]:
    """Check and prove all that can be refused, and return what spends the budget and draws; see :func:`release`.

    Its ``finish`` may wait for other programs that hold the ledger, and computes what the sum of all releases leaks. It
    calls its argument, if there is one, right before it spends and draws.
    """
    given: Any = ledger
    told = sentences(warnings)
    if not (given is None or isinstance(given, Ledger)):
        raise ParameterError(f"ledger is {given!r}, expected a Ledger, such as Ledger.open(path)")
    if ledger is None and not (window is None and coarsening is None):
        raise ParameterError("window and coarsening say which part of a ledger's base the data are: give ledger too")
    if not one_of(postprocess, (None, "valid")):
        raise ParameterError(f'postprocess is {postprocess!r}, expected "valid" or None')
    records = data if isinstance(data, Sequences | Rows) else database_of(data, calibration)
    if ledger is not None and isinstance(records, Database):
        raise ParameterError("a ledger is tied to a table: read it with read_sequences, or read_rows for networks")
    bound = check_query(records, query, calibration)
    grouped = grouped_of(records, query, bound, calibration)
    check_records(records, calibration)
    check_reading(records, calibration)
    told += warnings_of_model(records, calibration.bound.model, public=truth(public, "public"))
    told += warnings_of_ledger(calibration.theta, ledger)
    proof = prove(calibration)
    unit = bound.unit
    check_units(calibration)
    if grouped is None or not isinstance(bound, LinearQuery | JointQuery):
        valid, outputs = None if postprocess is None else possible(calibration, records), len(bound.labels)
        draw = drawing(records, bound, calibration, discrete_laplace_noise)
        told += [] if isinstance(records, Database) else few_in_all(calibration, bound, records.records)
        draft = draft_of(records, bound, calibration, noise_of(calibration, unit), valid, proof, told)
    else:
        valid = None if postprocess is None else grouped.possible(records, query, bound)
        draw = grouped.drawing(calibration, bound, discrete_laplace_noise)
        told += few_in_groups(calibration, bound, grouped.groups.cells, grouped.groups.records)
        draft = draft_of(records, bound, calibration, noise_of(calibration, grouped.unit), valid, proof, told)
        draft, outputs = grouped.recorded(draft, bound), len(grouped.exact) * grouped.outputs

    def filled(numbers: Iterable[int], booked: LedgerRecord | None, after: str | None = None) -> Release:
        noisy = [float(number * unit) for number in numbers] if grouped is None else grouped.values(numbers)
        found = msgspec.structs.replace(
            draft,
            created=now(after),
            noisy_values=noisy,
            values=noisy if valid is None else valid.of(noisy),
            ledger=booked,
            not_promised=not_promised(calibration, booked),
        )
        return (
            msgspec.structs.replace(found, quantiles=found.quantiles_at(query.quantiles)) if query.quantiles else found
        )

    # a reader must be able to take what is written: it is tried on zeros and an entry, while nothing is spent
    try:
        filled([0] * outputs, None if ledger is None else place_in(ledger, 1, ledger.budget)).check_readable()
    except RecordError as error:
        raise ReleaseRefused(
            f"the record of this release would contradict itself ({error}): please report it"
        ) from error

    spending: Any = {"data": records, "window": window, "coarsening": coarsening}
    spending["note"] = note_of(f"{draft.query.kind}: {draft.query.description}", calibration.theta, ledger)

    def plan() -> tuple[Release, Entry | None]:
        if ledger is None:
            return draft, None
        _check_start(ledger, calibration, window)
        entry = ledger.check(calibration, **spending)
        booked = place_in(ledger, entry.number, entry.spent)
        return msgspec.structs.replace(draft, ledger=booked, not_promised=not_promised(calibration, booked)), entry

    def finish(begin: Callable[[], object] = lambda: None) -> Release:
        if ledger is None:
            begin()
            return filled(draw(), None)
        _check_start(ledger, calibration, window)
        entry = ledger.spend(calibration, **spending, begin=begin)
        return filled(draw(), place_in(ledger, entry.number, entry.spent), entry.created)

    return Prepared(tuple(draft.warnings), plan, finish)


def _check_start(ledger: Ledger, calibration: Calibration, window: Any) -> None:
    """Refuse a part of a ledger's chains whose start the calibration's Θ does not describe."""
    theta, length = calibration.theta, ledger.bound.length
    if theta.of_chains and ledger.bound.theta.of_chains and tuple(calibration.length) != tuple(length):
        check_start(theta, window)
