"""The record of a release before anything is spent: all of it but the values and the place in a ledger."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from pufferfish._base.checked import listed
from pufferfish._base.durations import now
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError, shortened
from pufferfish.ledger import Entry, Ledger
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.witness import AnyWitness
from pufferfish.mechanisms.words import not_promised_of, promise_of, secrets_of
from pufferfish.queries import BoundQuery, StepQuery
from pufferfish.release.draw import Database, PrivateData, steps_of
from pufferfish.release.facts import (
    NOISE_LAW,
    AccuracyRecord,
    DataRecord,
    LedgerRecord,
    MeasurementRecord,
    MechanismRecord,
    NoiseRecord,
    PostProcessing,
    QueryRecord,
    record_of,
)
from pufferfish.release.record import ReleaseFields
from pufferfish.release.words import assumed_of, versions, warnings_of
from pufferfish.theta.record import ThetaRecord
from pufferfish.theta.states import state_label

__all__ = ["Prepared", "assumptions_of", "draft_of", "noise_of", "not_promised", "place_in", "sentences"]


Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Prepared(Generic[Made]):
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
    plan: Callable[[], tuple[Made, Entry | None]]
    finish: Callable[..., Made]


def draft_of(
    records: PrivateData,
    bound: BoundQuery,
    calibration: Calibration,
    noise: NoiseRecord,
    valid: PostProcessing | None,
    proof: tuple[float, AnyWitness],
    warnings: Sequence[str],
) -> ReleaseFields:
    """Return the record of a release, but for its values and its place in a ledger."""
    theta, query = calibration.theta, calibration.query
    leakage, witness = proof
    return ReleaseFields(
        created=now(),
        query=QueryRecord(query.kind, bound.description, list(bound.labels), bound.lipschitz, bound.divided_by),
        values=[],
        noisy_values=[],
        postprocessing=valid,
        epsilon=calibration.epsilon,
        delta=calibration.delta,
        promise=promise_of(
            calibration.epsilon,
            calibration.delta,
            secrets_of(calibration),
            of_chains=theta.of_chains,
            networks=bool(theta.networks),
        ),
        warnings=[*warnings, *_warnings(records, calibration), *warnings_of(calibration)],
        not_promised=not_promised(calibration, None),
        assumptions=[
            f"The distribution of the records is {theta.in_words} ({theta.origin}).",
            *assumptions_of(records, calibration),
        ],
        noise=noise,
        accuracy_95=_accuracy(calibration),
        mechanism=MechanismRecord(
            calibration.mechanism, calibration.title, leakage, _longest(calibration), witness, secrets_of(calibration)
        ),
        data=_data_record(records, calibration, bound),
        theta=ThetaRecord.of(theta),
        software=versions(),
        ledger=None,
        calibration=record_of(calibration),
    )


def noise_of(calibration: Calibration, worth: Fraction) -> NoiseRecord:
    """Return the record of the noise: on each output, or on each measurement of a strategy.

    ``worth`` is what one unit is worth: the query's unit, or with groups that before anything is divided.
    """
    strategy, unit = calibration.strategy, float(worth)
    if strategy is None:
        return NoiseRecord(NOISE_LAW, calibration.unit_scale * unit, unit, calibration.noise_multiplier)
    states = calibration.theta.states
    scales = [float(b) * unit for b in strategy.scales(calibration.unit_scale)]
    measurements = [
        MeasurementRecord([states[x] for x in np.flatnonzero(row)], scale, int(sharpness))
        for row, scale, sharpness in zip(strategy.rows, scales, strategy.sharpness, strict=True)
    ]
    return NoiseRecord(NOISE_LAW, max(scales), unit, calibration.noise_multiplier, measurements)


def _accuracy(calibration: Calibration) -> AccuracyRecord:
    each, joint = (calibration.accuracy(0.05, joint=joint) for joint in (False, True))
    outputs = None if calibration.strategy is None else [float(a) for a in calibration.accuracies(0.05)]
    return AccuracyRecord(0.05, each, joint, outputs)


def not_promised(calibration: Calibration, booked: LedgerRecord | None) -> list[str]:
    """Say what the release does not promise, given its place in a ledger."""
    theta = calibration.theta
    return not_promised_of(secrets_of(calibration), booked, kind=theta.kind, composes=calibration.composes)


def place_in(ledger: Ledger, number: int, spent: float) -> LedgerRecord:
    """Return the place of a release in a ledger."""
    return LedgerRecord(number, spent, ledger.budget, ledger.bound.name, ledger.bound.theta.origin)


def sentences(warnings: Any) -> list[str]:
    """Return warnings that a user gives, refused where they are no texts."""
    found = listed(warnings, "warnings", 'sentences, such as ["One sensor was changed in May."]')
    for given in found:
        if not isinstance(given, str):
            raise ParameterError(f"warnings holds {shortened(repr(given))}, expected sentences, as text")
    return [str(given) for given in found]


def assumptions_of(records: PrivateData, calibration: Calibration) -> list[str]:
    """Return what the promise assumes of the data, for a Θ of this kind."""
    read = None if isinstance(records, Database) else records.base
    return assumed_of(read, of_chains=calibration.theta.of_chains)


def _warnings(records: PrivateData, calibration: Calibration) -> tuple[str, ...]:
    """Return what may be wrong with how a table was read; groups of any other Θ may well be many and small."""
    return records.warnings if isinstance(records, Sequences) and calibration.theta.of_chains else ()


def _longest(calibration: Calibration) -> int:
    networks = calibration.theta.networks
    return len(networks[0].nodes) if networks else max(chain.steps for chain in calibration.length)


def _data_record(records: PrivateData, calibration: Calibration, bound: BoundQuery) -> DataRecord:
    if isinstance(records, Rows):
        nodes, cells = len(calibration.theta.networks[0].nodes), sum(records.observed.values())
        observed = {state_label(node): number for node, number in records.observed.items()}
        return DataRecord(None, records.records, records.records, cells, nodes, records.base, observed)
    base = records.base if isinstance(records, Sequences) else None
    length = records.length if isinstance(records, Sequences) else calibration.length
    subjects = records.subjects if isinstance(records, Sequences) else 1
    longest = max(chain.steps for chain in length)
    steps = steps_of(records, calibration) if isinstance(bound, StepQuery) else None
    return DataRecord(base, subjects, len(length), sum(chain.records for chain in length), longest, steps=steps)
