"""What follows of a release from its facts: one function derives it, for who makes a release and for who reads one.

The facts are Θ, the query, the mechanism with its settings and the exact noise (all of which make a
:class:`~pufferfish.mechanisms.calibration.Calibration` again), what was read, the groups, the place in a ledger, and
the noisy values. From them follow units, labels, words, the noise's numbers, accuracy, possible values, quantiles, the
promise and what it rests on. A release is written with both; its reader derives again and compares field by field.

Where a function of the user's decides, which no file holds, there is no calibration: then what follows from the query
is taken as it is said, and the rest is derived.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError
from pufferfish.ledger import Entry, Ledger
from pufferfish.mechanisms import Promise
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.promises import promises_of, promises_with, units_of
from pufferfish.mechanisms.witness import AnyWitness
from pufferfish.mechanisms.words import (
    few_in_all,
    few_in_groups,
    hidden_in_words,
    law_assumed,
    not_promised_of,
    promise_of,
    secrets_of,
)
from pufferfish.queries import JointQuery, LinearQuery, StepQuery
from pufferfish.queries.query import Words
from pufferfish.release.counted import counted_of
from pufferfish.release.draw import Database, PrivateData
from pufferfish.release.facts import (
    NOISE_LAW,
    AccuracyRecord,
    DataRecord,
    GroupsRecord,
    LedgerRecord,
    MeasurementRecord,
    MechanismRecord,
    NoiseRecord,
    QueryRecord,
    SubjectsRecord,
    lengths_of,
    record_of,
    step_of_reading,
)
from pufferfish.release.postprocessing import (
    Ascending,
    AscendingByGroup,
    BySubject,
    Clipped,
    ClippedByGroup,
    InRecord,
    PostProcessing,
    Projected,
)
from pufferfish.release.prepare import divisions_of
from pufferfish.release.record import ReleaseFields, composes
from pufferfish.release.words import assumed_of, warnings_of
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.given_laws import GivenLaws
from pufferfish.theta.record import ThetaRecord
from pufferfish.theta.states import state_label

__all__ = [
    "NOTHING_FOLLOWS",
    "Proof",
    "assumptions_of",
    "calibrated_fields",
    "data_record",
    "derived",
    "place_in",
    "possible_values_of",
    "promised",
    "total_of",
    "with_values",
]


AnyFields = TypeVar("AnyFields", bound=ReleaseFields)

Proof = tuple[float, AnyWitness, Sequence[Promise]]
"""What leaks at most, which secret decides, and what is promised of every unit."""


# -- Facts -----------------------------------------------------------------------------------------------------------


def data_record(data: PrivateData, calibration: Calibration) -> DataRecord:
    """Return the public facts of data: how they were read, and their lengths."""
    theta = calibration.theta
    if isinstance(data, Rows):
        nodes, cells = len(theta.networks[0].nodes) if theta.networks else 1, sum(data.observed.values())
        observed = {state_label(node): number for node, number in data.observed.items()}
        return DataRecord(None, data.records, data.records, cells, nodes, rows=data.base, observed=observed)
    is_table = isinstance(data, Sequences)
    chains = data.length if is_table else calibration.length
    lengths, places = lengths_of(chains, all_count=not (calibration.composes and theta.of_chains))
    records = sum(chain.records for chain in chains)
    return DataRecord(
        base=data.base if is_table else None,
        subjects=data.subjects if is_table else 1,
        chains=len(chains),
        records=records,
        longest_chain=max(chain.steps for chain in chains),
        lengths=lengths,
        places=places,
        steps=_steps(data, calibration) if isinstance(calibration.linear, StepQuery) else None,
        usual_step=data.usual_step if is_table else None,
        clock_changes=data.clock_changes if is_table else None,
    )


def _steps(data: PrivateData, calibration: Calibration) -> int:
    """Return the public number of steps: of pairs of observed records that follow each other."""
    if isinstance(data, Sequences):
        return int(data.transitions.sum())
    return calibration.records - len(calibration.length)


def place_in(ledger: Ledger, entry: Entry | None) -> LedgerRecord:
    """Return the place of a release in a ledger; without an entry, that of one which takes all of the budget."""
    number, previous, spent = 1, _NO_ENTRY, ledger.budget
    if entry is not None:
        number, previous, spent = entry.number, entry.previous, entry.spent
    bound = ledger.bound if entry is None else ledger.bound_at(entry.number)
    hidden: dict[str, Any] = {} if bound.protection is None else bound.protection.settings
    hidden["secrets"] = None if bound.secrets is None else [(str(a), str(b)) for a, b in bound.secrets]
    return LedgerRecord(number, previous, spent, ledger.budget, bound.name, bound.theta.origin, ledger.grows, **hidden)


_NO_ENTRY = "0" * 64
"""In place of a digest, while a record is tried before anything is spent."""


def assumptions_of(data: PrivateData, calibration: Calibration) -> list[str]:
    """Return what the promise assumes of the data, for a Θ of this kind."""
    base = None if isinstance(data, Database) else data.base
    return assumed_of(base, of_chains=calibration.theta.of_chains)


def promised(calibration: Calibration, data: DataRecord) -> list[Promise]:
    """Return what a noise promises of every unit; nothing where a function of the user's decides."""
    stated = record_of(calibration)
    if stated.query is None or stated.settings is None or calibration.theta.kind == GivenLaws.kind:
        return []
    return promises_of(calibration, step_of_reading(data), cut=_cut(data))


def _cut(data: DataRecord) -> bool:
    """Whether gaps cut the series of subjects into chains of their own."""
    return data.base is not None and data.base.gaps == "independent"


def _units_again(calibration: Calibration, data: DataRecord, stated: Sequence[Promise]) -> list[Promise]:
    """Return the promises of a record with the words that follow; what is told of each unit is taken as it is."""
    if not stated:
        return promised(calibration, data)
    units = units_of(calibration, step_of_reading(data), cut=_cut(data))
    return promises_with(units, [each.epsilon for each in stated]) if len(units) == len(stated) else []


# -- What follows ----------------------------------------------------------------------------------------------------

NOTHING_FOLLOWS: dict[str, Any] = {
    "hides": "",
    "promise": "",
    "not_promised": [],
    "assumptions": [],
    "accuracy_95": AccuracyRecord(0.05, 0.0, 0.0),
}
"""Fields that :func:`with_values` fills from the others, of a record that is being made."""


def derived(record: AnyFields, calibration: Calibration | None) -> AnyFields:
    """Return a record with all that follows from its facts; the proof, leakage and witness, is taken as it is.

    Parameters
    ----------
    record : ReleaseFields
        The facts, and anything in place of what follows.
    calibration : Calibration or None
        Made of the facts; None where a function of the user's decides.
    """
    if calibration is None:
        return with_values(record, None)
    fields = calibrated_fields(
        calibration,
        record.data,
        (record.mechanism.leakage, record.mechanism.witness, _units_again(calibration, record.data, record.promises)),
        groups=record.groups,
        subjects=record.subjects,
        valid=record.postprocessing is not None,
        warnings=record.warnings,
    )
    return with_values(msgspec.structs.replace(record, **fields), calibration)


def calibrated_fields(
    calibration: Calibration,
    data: DataRecord,
    proof: Proof,
    *,
    groups: GroupsRecord | None = None,
    subjects: SubjectsRecord | None = None,
    valid: bool = False,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the fields of a record that follow from its calibration and from what was read.

    Parameters
    ----------
    calibration : Calibration
        Query, mechanism and noise.
    data : DataRecord
        What was read.
    proof : (float, Witness, list of Promise)
        What leaks, which secret decides, and what is promised of every unit: proved by the mechanism.
    groups : GroupsRecord, optional
        The groups that values are of.
    subjects : SubjectsRecord, optional
        The subjects that values are of.
    valid : bool, default False
        Whether values are made possible ones.
    warnings : sequence of str
        What is warned of already.
    """
    linear, theta = calibration.linear, calibration.theta
    by_cell = subjects is not None or groups is not None
    divided = linear.divided_by
    unit = linear.unit * (divided or 1) if by_cell else linear.unit  # before the division by the records of each cell
    lipschitz = None if linear.unit_lipschitz is None else float(unit * linear.unit_lipschitz)
    description = str(linear.description)
    if by_cell and isinstance(linear.description, Words):
        description = linear.description.of("each group" if subjects is None else "the subject")
    nodes = [state_label(node) for node in theta.networks[0].nodes] if theta.networks else []
    fields: dict[str, Any] = {
        "query": QueryRecord(
            calibration.query.kind, description, list(linear.labels), lipschitz, None if by_cell else divided
        ),
        "epsilon": calibration.epsilon,
        "noise": _noise(calibration, unit),
        "promises": list(proof[2]),
        "counted": counted_of(calibration.measured, calibration.unit_scale, nodes),
        "mechanism": MechanismRecord(
            calibration.mechanism, calibration.title, *_proof_fields(calibration, proof), secrets_of(calibration)
        ),
        "theta": ThetaRecord.of(theta),
        "calibration": record_of(calibration),
    }
    noise_warnings = warnings_of(calibration)
    if groups is not None:
        few_warnings = few_in_groups(calibration, linear, groups.cells, groups.records)
    else:
        quiet = subjects is not None or data.reading is None
        few_warnings: list[str] = [] if quiet else few_in_all(calibration, linear, data.counted)
    fields["warnings"] = [*warnings, *(text for text in (*few_warnings, *noise_warnings) if text not in warnings)]
    fields["delta"] = calibration.delta
    if subjects is not None:
        subjects = msgspec.structs.replace(subjects, divided_by_records=divided is not None)
    if groups is not None:
        divisors = divisions_of(calibration, len(groups.cells), groups.records, data.counted)
        groups = msgspec.structs.replace(groups, divided_by=None if divisors is None else list(divisors))
    postprocessing: PostProcessing | None = None
    if valid:
        postprocessing = (
            _possible_of_subjects(calibration) if subjects else possible_values_of(calibration, data, groups)
        )
    return fields | {"groups": groups, "subjects": subjects, "postprocessing": postprocessing}


def _proof_fields(calibration: Calibration, proof: Proof) -> tuple[float, int, AnyWitness]:
    """Return what leaks, the steps of the longest chain, or the nodes of a network, and the witness."""
    leakage, witness, _ = proof
    networks = calibration.theta.networks
    longest = len(networks[0].nodes) if networks else max(chain.steps for chain in calibration.length)
    return leakage, longest, witness


def _noise(calibration: Calibration, worth: Fraction) -> NoiseRecord:
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


# -- Which values are possible ---------------------------------------------------------------------------------------


def possible_values_of(calibration: Calibration, data: DataRecord, groups: GroupsRecord | None = None) -> InRecord:
    """Return what makes noisy values the nearest possible ones; of the data only public numbers are used."""
    linear, query = calibration.linear, calibration.query
    if groups is not None:
        return _possible_in_groups(calibration, data, groups)
    outputs = [list(range(len(linear.labels)))]
    if isinstance(linear, StepQuery):
        total = float((data.steps or 0) * linear.unit)
        return Projected(outputs, [total]) if query.is_histogram else Clipped(0.0, total)
    if isinstance(linear, JointQuery):
        if data.rows is not None and data.rows.missing == "unobserved":
            raise ParameterError(
                'postprocess="valid" of columns together needs to know in how many rows all of them are there: read '
                "the table with missing='refuse', or leave postprocess out"
            )
        return Projected(outputs, [float((1 if data.rows is None else data.subjects) * linear.unit)])
    if not isinstance(linear, LinearQuery):
        raise ParameterError("the possible values of a function are unknown: leave out postprocess")
    if linear.blocks:
        times = observed_of(data, calibration)
        totals = [float(int(times[place]) * linear.unit) for _, place in linear.blocks]
        return Projected([list(block) for block, _ in linear.blocks], totals)
    positive, negative = _sums_of_factors(data, calibration, linear)
    if query.is_histogram:
        return Projected(outputs, [float(positive * linear.unit)])
    if query.is_cumulative:
        return Ascending(0.0, float(positive * linear.unit))
    least, most = int(linear.weights.min()), int(linear.weights.max())
    low = float((least * positive - most * negative) * linear.unit)
    high = float((most * positive - least * negative) * linear.unit)
    return Clipped(low, high)


def _possible_of_subjects(calibration: Calibration) -> BySubject:
    """Return what makes the noisy values of each subject the nearest possible ones, for so many records as it has."""
    linear = calibration.linear
    assert isinstance(linear, LinearQuery)
    unit = float(linear.unit * (linear.divided_by or 1))
    low, high = (int(end) * unit for end in (linear.weights.min(), linear.weights.max()))
    return BySubject(calibration.query.is_histogram, low, high)


def observed_of(data: DataRecord, calibration: Calibration) -> NDArray[np.int64]:
    """Return how often every record was observed: a node of a network once for every row whose cell is there."""
    if data.observed is None:
        return np.ones(calibration.records, dtype=np.int64)
    nodes = calibration.theta.networks[0].nodes
    return np.array([data.observed.get(state_label(node), 0) for node in nodes], dtype=np.int64)


def total_of(data: DataRecord, calibration: Calibration) -> int:
    """Return what all counts of a query's records add up to, each with its factor: a public number."""
    linear = calibration.linear
    if calibration.strategy is None or not isinstance(linear, LinearQuery):
        return 0  # nothing follows from it
    positive, negative = _sums_of_factors(data, calibration, linear)
    return positive - negative


def _sums_of_factors(data: DataRecord, calibration: Calibration, linear: LinearQuery) -> tuple[int, int]:
    """Return what the factors of all observed records add up to: those above 0, and those below without sign."""
    if linear.factors is None:
        # a table may have fewer records than the noise is for
        return calibration.records if data.reading is None else data.records, 0
    factors_and_times = list(zip(linear.factors.tolist(), observed_of(data, calibration).tolist(), strict=True))
    return sum(c * n for c, n in factors_and_times if c > 0), sum(-c * n for c, n in factors_and_times if c < 0)


def _possible_in_groups(calibration: Calibration, data: DataRecord, groups: GroupsRecord) -> InRecord:
    """Return what makes the noisy values of each group the nearest possible ones, for so many records as it has."""
    if data.rows is not None and data.rows.missing == "unobserved":
        raise ParameterError(
            'postprocess="valid" of groups needs to know how many cells of each group are missing: read the table '
            "with missing='refuse', or leave postprocess out"
        )
    linear, networks = calibration.linear, calibration.theta.networks
    assert isinstance(linear, LinearQuery | StepQuery | JointQuery)
    m, divisors = len(linear.labels), groups.divided_by or [1] * len(groups.records)
    unit = linear.unit * (linear.divided_by or 1)
    counted = groups.records if groups.steps is None else groups.steps
    worth = [unit * n / d for n, d in zip(counted, divisors, strict=True)]
    # how many records the query counts of each row of a network's table
    reads = 1
    if networks and isinstance(linear, LinearQuery):
        reads = sum(linear.reads(place) for place in range(len(networks[0].nodes)))
    if isinstance(linear, JointQuery) or calibration.query.is_histogram:
        blocks = linear.blocks if isinstance(linear, LinearQuery) else ()
        blocks_of_one = [list(outputs) for outputs, _ in blocks] or [list(range(m))]
        times = 1 if blocks else reads
        places = [[g * m + place for place in block] for g in range(len(worth)) for block in blocks_of_one]
        return Projected(places, [float(times * w) for w in worth for _ in blocks_of_one])
    ends = (0, 1) if isinstance(linear, StepQuery) else (int(linear.weights.min()), int(linear.weights.max()))
    low, high = ([float(end * reads * w) for w in worth] for end in ends)
    return (AscendingByGroup if calibration.query.is_cumulative else ClippedByGroup)(m, low, high)


# -- Values, errors and sentences ------------------------------------------------------------------------------------


def with_values(record: AnyFields, calibration: Calibration | None) -> AnyFields:
    """Return a record with its values, errors and sentences: what follows once :func:`calibrated_fields` are there."""
    return _valued(msgspec.structs.replace(record, **_sentences(record, calibration)), calibration)


def _valued(record: AnyFields, calibration: Calibration | None) -> AnyFields:
    """Return a record with its values, their errors, and quantiles."""
    postprocessing, groups = record.postprocessing, record.groups
    values = record.noisy_values
    if (
        values and postprocessing is not None and not isinstance(postprocessing, BySubject)
    ):  # those of subjects are in their table
        values = postprocessing.of(list(values))
    single, joint = (record.accuracy(0.05, joint=joint) for joint in (False, True))
    errors = record.accuracies(0.05)
    of_outputs = None
    if record.noise.measurements is not None:
        of_outputs = errors.reshape(-1, len(record.query.labels)).max(axis=0).tolist()
    if groups is not None:
        groups = msgspec.structs.replace(groups, error_95=errors.max(axis=1).tolist())
    shares = list(dict.fromkeys(quantile.share for quantile in record.quantiles or ()))
    if calibration is not None:
        shares = list(calibration.query.quantiles)
    return msgspec.structs.replace(
        record,
        values=list(values),
        accuracy_95=AccuracyRecord(0.05, single, joint, of_outputs),
        groups=groups,
        quantiles=record.quantiles_at(shares) if shares and record.noisy_values else None,
    )


def _sentences(record: ReleaseFields, calibration: Calibration | None) -> dict[str, Any]:
    """Return what is promised, what is not, and what that rests on."""
    theta, mechanism, data = record.theta, record.mechanism, record.data
    of_chains, networks = theta.of_chains, theta.kind == BayesianNetwork.kind
    secrets = mechanism.secrets
    of_steps = record.groups is not None and record.groups.steps is not None
    theta_in_words = theta.in_words if calibration is None else calibration.theta.in_words
    hidden: Any = {"protection": record.protection, "step": step_of_reading(data), "of_chains": of_chains}
    return {
        "hides": hidden_in_words(secrets, networks=networks, **hidden),
        "promise": promise_of(record.epsilon, record.delta, secrets, networks=networks, **hidden),
        "not_promised": not_promised_of(
            secrets, record.ledger, kinds=theta.kinds, composes=composes(mechanism.name), protection=record.protection
        ),
        "assumptions": [
            law_assumed(theta_in_words, theta.origin, record.checked),
            *assumed_of(data.reading, of_chains=of_chains),
            *(["Each step from record to record counts in the group of the record that it leads to."] * of_steps),
        ],
    }
