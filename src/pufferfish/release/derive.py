"""What follows of a release from its facts: one function derives it, for who makes a release and for who reads one.

The facts are Θ, the query, the mechanism with its settings and the exact noise (all of which make a
:class:`~pufferfish.mechanisms.calibration.Calibration` again), what was read, the groups, the place in a ledger, and
the noisy values. From them follow units, labels, words, the noise's numbers, accuracy, possible values, quantiles, the
promise and what it rests on. A release is written with both; its reader derives again and compares field by field.

Where a function of the user's decides, which no file holds, there is no calibration: then what follows from the query
is taken as it is said, and the rest is derived.
"""

import importlib.metadata
import math
import platform
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.words import at_most, change_of_odds, number
from pufferfish.data.groups import Groups
from pufferfish.data.rows import Rows, RowsBase
from pufferfish.data.sequences import Base, Sequences
from pufferfish.errors import ParameterError
from pufferfish.ledger import Entry, Ledger
from pufferfish.mechanisms import Promise
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.engine import MOST_EPSILON
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.promises import promises_of, promises_with, units_of
from pufferfish.mechanisms.witness import AnyWitness
from pufferfish.mechanisms.words import (
    Booked,
    few_in_all,
    few_in_groups,
    hidden_in_words,
    law_assumed,
    not_promised_of,
    promise_of,
    secrets_of,
)
from pufferfish.queries import BoundQuery, JointQuery, LinearQuery, Query, StepQuery
from pufferfish.queries.query import Words
from pufferfish.release.draw import PrivateData, divisions_of
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
    counted_of,
    lengths_of,
    record_of,
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
from pufferfish.release.record import ReleaseFields, composes
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.joint_distribution import GivenLaws
from pufferfish.theta.record import Checking, ThetaRecord
from pufferfish.theta.states import state_label

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
    # pairs of observed records that follow each other
    steps = int(data.transitions.sum()) if is_table else calibration.records - len(calibration.length)
    return DataRecord(
        base=data.base if is_table else None,
        subjects=data.subjects if is_table else 1,
        chains=len(chains),
        records=records,
        longest_chain=max(chain.steps for chain in chains),
        lengths=lengths,
        places=places,
        steps=steps if isinstance(calibration.linear, StepQuery) else None,
        usual_step=data.usual_step if is_table else None,
        clock_changes=data.clock_changes if is_table else None,
    )


def groups_record(groups: Groups, data: DataRecord) -> GroupsRecord:
    """Return the public facts of groups, which steps are among where the query counts them."""
    steps = None if data.steps is None or groups.steps is None else groups.steps.sum(axis=(1, 2)).tolist()
    cells = [list(cell) for cell in groups.cells]
    return GroupsRecord(list(groups.by), cells, list(groups.records), None, [], steps, list(groups.nested) or None)


def place_in(ledger: Ledger, entry: Entry | None) -> LedgerRecord:
    """Return the place of a release in a ledger; without an entry, that of one which takes all of the budget."""
    bound, place = ledger.bound, (1, _NO_ENTRY, ledger.budget)
    if entry is not None:
        bound, place = ledger.bound_at(entry.number), (entry.number, entry.previous, entry.spent)
    hidden: dict[str, Any] = {} if bound.protection is None else bound.protection.settings
    pairs = {"within": hidden.get("within"), "secrets": bound.secrets}
    hidden |= {key: [(str(a), str(b)) for a, b in of] for key, of in pairs.items() if isinstance(of, list | tuple)}
    return LedgerRecord(*place, ledger.budget, bound.name, bound.theta.origin, ledger.grows, **hidden)


_NO_ENTRY = "0" * 64
"""In place of a digest, while a record is tried before anything is spent."""


def promised(calibration: Calibration, data: DataRecord) -> list[Promise]:
    """Return what a noise promises of every unit; nothing where a function of the user's decides."""
    stated = record_of(calibration)
    if stated.query is None or stated.settings is None or calibration.theta.kind == GivenLaws.kind:
        return []
    return promises_of(calibration, data.step, cut=data.cut)


def _units_again(calibration: Calibration, data: DataRecord, stated: Sequence[Promise]) -> list[Promise]:
    """Return the promises of a record with the words that follow; what is told of each unit is taken as it is."""
    if not stated:
        return promised(calibration, data)
    units = units_of(calibration, data.step, cut=data.cut)
    return promises_with(units, [each.epsilon for each in stated]) if len(units) == len(stated) else []


# -- What follows ----------------------------------------------------------------------------------------------------


def derived(record: AnyFields, calibration: Calibration | None) -> AnyFields:
    """Return a record with all that follows from its facts; the proof, leakage and witness, is taken as it is.

    There is no calibration where a function of the user's decides. An error says that facts do not go together.
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

    ``valid`` says whether values are made possible ones; ``warnings`` are those that are there already.
    """
    linear, theta = calibration.linear, calibration.theta
    divided, networks = linear.divided_by, theta.networks
    each = "the subject" if subjects is not None else "each group" if groups is not None else None
    unit = linear.unit if each is None else linear.unit * (divided or 1)  # before the division by the records of each
    nodes = [state_label(node) for node in networks[0].nodes] if networks else []
    longest = len(nodes) if networks else max(chain.steps for chain in calibration.length)
    leakage, witness, promises = proof
    fields: dict[str, Any] = {
        "query": query_record(calibration.query, linear, each),
        "epsilon": calibration.epsilon,
        "noise": _noise(calibration, unit),
        "promises": list(promises),
        "counted": counted_of(calibration.measured, calibration.unit_scale, nodes),
        "mechanism": MechanismRecord(
            calibration.mechanism, calibration.title, leakage, longest, witness, secrets_of(calibration)
        ),
        "theta": ThetaRecord.of(theta),
        "calibration": record_of(calibration),
    }
    few_warnings: list[str] = []
    if groups is not None:
        few_warnings = few_in_groups(calibration, linear, groups.cells, groups.records)
    elif subjects is None and data.reading is not None:
        few_warnings = few_in_all(calibration, linear, data.counted)
    more = [text for text in (*few_warnings, *warnings_of(calibration)) if text not in warnings]
    fields["warnings"] = [*warnings, *more]
    fields["delta"] = calibration.delta
    if subjects is not None:
        subjects = msgspec.structs.replace(subjects, divided_by_records=divided is not None)
    if groups is not None:
        divisors = divisions_of(calibration, groups.records, data.counted)
        groups = msgspec.structs.replace(groups, divided_by=None if divisors is None else list(divisors))
    postprocessing: PostProcessing | None = None
    if valid and subjects is not None and isinstance(linear, LinearQuery):
        low, high = (int(end) * float(unit) for end in (linear.weights.min(), linear.weights.max()))
        postprocessing = BySubject(calibration.query.is_histogram, low, high)
    elif valid:
        postprocessing = possible_values_of(calibration, data, groups)
    return fields | {"groups": groups, "subjects": subjects, "postprocessing": postprocessing}


def query_record(query: Query, linear: BoundQuery, each: str | None = None) -> QueryRecord:
    """Return what was asked: of all records, or of each cell, whose outputs are divided after noise was drawn."""
    unit, words = linear.unit, linear.description
    if each is not None:
        unit *= linear.divided_by or 1
        words = words.of(each) if isinstance(words, Words) else words
    lipschitz = None if linear.unit_lipschitz is None else float(unit * linear.unit_lipschitz)
    divided_by = linear.divided_by if each is None else None
    return QueryRecord(query.kind, str(words), list(linear.labels), lipschitz, divided_by)


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
    if not isinstance(linear, LinearQuery | StepQuery | JointQuery):
        raise ParameterError("the possible values of a function are unknown: leave out postprocess")
    if data.rows is not None and data.rows.missing == "unobserved" and (groups or isinstance(linear, JointQuery)):
        what = "columns together needs to know in how many rows all of them are there"
        if groups is not None:
            what = "groups needs to know how many cells of each group are missing"
        raise ParameterError(f'postprocess="valid" of {what}: fill in the missing cells, or leave postprocess out')
    m, blocks = len(linear.labels), linear.blocks if isinstance(linear, LinearQuery) else ()
    # what counts of each group, or of all records, add up to with factors above 0 and below, and what each is worth
    sums, worth = [_sums_of_factors(data, calibration)], [linear.unit]
    if groups is not None:
        nodes = len(calibration.theta.networks[0].nodes) if calibration.theta.networks else 0
        # of each row of a network's table the query counts as many records as it reads nodes
        reads = sum(linear.reads(place) for place in range(nodes)) if isinstance(linear, LinearQuery) and nodes else 1
        counted = groups.records if groups.steps is None else groups.steps
        sums = [(reads * n, 0) for n in counted]
        worth = [linear.unit * (linear.divided_by or 1) / d for d in groups.divided_by or [1] * len(counted)]
    if blocks or query.is_histogram:
        places = [[g * m + o for o in outputs] for g in range(len(sums)) for outputs in _blocks(blocks, m)]
        if not blocks:
            totals = [positive for positive, _ in sums]
        elif groups is None:
            totals = observed_of(data, calibration)[[place for _, place in blocks]].tolist()
        else:
            totals = [n for n in groups.records for _ in blocks]
        each = [w for w in worth for _ in _blocks(blocks, m)]
        return Projected(places, [float(total * w) for total, w in zip(totals, each, strict=True)])
    least, most = (int(linear.weights.min()), int(linear.weights.max())) if isinstance(linear, LinearQuery) else (0, 1)
    low = [float((least * above - most * below) * w) for (above, below), w in zip(sums, worth, strict=True)]
    high = [float((most * above - least * below) * w) for (above, below), w in zip(sums, worth, strict=True)]
    if groups is not None:
        return (AscendingByGroup if query.is_cumulative else ClippedByGroup)(m, low, high)
    return Ascending(0.0, float(sums[0][0] * linear.unit)) if query.is_cumulative else Clipped(low[0], high[0])


def _blocks(blocks: Sequence[tuple[Sequence[int], int]], outputs: int) -> list[Sequence[int]]:
    """Return the outputs that have a total together: those of each block, or all."""
    return [of_block for of_block, _ in blocks] or [range(outputs)]


def observed_of(data: DataRecord, calibration: Calibration) -> NDArray[np.int64]:
    """Return how often every record was observed: a node of a network once for every row whose cell is there."""
    if data.observed is None:
        return np.ones(calibration.records, dtype=np.int64)
    nodes = calibration.theta.networks[0].nodes
    return np.array([data.observed.get(state_label(node), 0) for node in nodes], dtype=np.int64)


def total_of(data: DataRecord, calibration: Calibration) -> int:
    """Return what all counts of a query's records add up to, each with its factor: a public number."""
    if calibration.strategy is None:
        return 0  # nothing follows from it
    positive, negative = _sums_of_factors(data, calibration)
    return positive - negative


def _sums_of_factors(data: DataRecord, calibration: Calibration) -> tuple[int, int]:
    """Return what the factors of all that is counted add up to: those above 0, and those below without sign."""
    linear = calibration.linear
    if isinstance(linear, StepQuery):
        return data.steps or 0, 0
    if isinstance(linear, JointQuery):
        return 1 if data.rows is None else data.subjects, 0
    if not isinstance(linear, LinearQuery) or linear.factors is None:
        # a table may have fewer records than the noise is for
        return calibration.records if data.reading is None else data.records, 0
    if linear.blocks:
        return 0, 0  # each block has a total of its own
    factors_and_times = list(zip(linear.factors.tolist(), observed_of(data, calibration).tolist(), strict=True))
    return sum(c * n for c, n in factors_and_times if c > 0), sum(-c * n for c, n in factors_and_times if c < 0)


# -- Values, errors and sentences ------------------------------------------------------------------------------------


def with_values(record: AnyFields, calibration: Calibration | None) -> AnyFields:
    """Return a record with its values, errors and sentences: what follows once :func:`calibrated_fields` are there."""
    postprocessing, groups, values = record.postprocessing, record.groups, record.noisy_values
    if values and postprocessing is not None and not isinstance(postprocessing, BySubject):  # subjects have a table
        values = postprocessing.of(list(values))
    single, joint = (record.accuracy(0.05, joint=joint) for joint in (False, True))
    errors = record.accuracies(0.05)
    of_outputs = None
    if record.noise.measurements is not None:
        of_outputs = errors.reshape(-1, len(record.query.labels)).max(axis=0).tolist()
    if groups is not None:
        groups = msgspec.structs.replace(groups, error_95=errors.max(axis=1).tolist())
    stated = dict.fromkeys(quantile.share for quantile in record.quantiles or ())
    shares = list(stated if calibration is None else calibration.query.quantiles)
    return msgspec.structs.replace(
        record,
        values=list(values),
        accuracy_95=AccuracyRecord(0.05, single, joint, of_outputs),
        groups=groups,
        quantiles=record.quantiles_at(shares) if shares and record.noisy_values else None,
        **_sentences(record, calibration),
    )


def _sentences(record: ReleaseFields, calibration: Calibration | None) -> dict[str, Any]:
    """Return what is promised, what is not, and what that rests on."""
    theta, mechanism, data = record.theta, record.mechanism, record.data
    of_chains, networks = theta.of_chains, theta.kind == BayesianNetwork.kind
    secrets = mechanism.secrets
    of_steps = record.groups is not None and record.groups.steps is not None
    theta_in_words = theta.in_words if calibration is None else calibration.theta.in_words
    hidden: Any = {"protection": record.protection, "step": data.step, "of_chains": of_chains}
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


# -- Warnings, assumptions, versions -----------------------------------------------------------------------------------

MOSTLY_SILENT = 0.9
"""A release is warned of whose noise is 0 at least so often."""

_SURE = 0.9999
"""A probability above this is written as being above it."""


def warnings_of(calibration: Calibration) -> list[str]:
    """Say what a reader must know first."""
    warnings, epsilon, strategy = list[str](), calibration.epsilon, calibration.strategy
    if epsilon > MOST_EPSILON:
        warnings.append(
            f"Epsilon is {at_most(epsilon)}: the odds of two values of a record can change by a factor of "
            f"{change_of_odds(epsilon)}, so the promise says little."
        )
    scale = calibration.unit_scale
    smallest_scale = scale if strategy is None else float(strategy.scales(scale).min())
    silent = 1 - 2 / (math.exp(min(1 / smallest_scale, 700)) + 1) if smallest_scale < 1 else 0.0
    if silent >= MOSTLY_SILENT:
        often, many = (number(silent), "most") if silent <= _SURE else (f"above {_SURE:g}", "nearly all")
        warnings.append(
            f"The noise is exactly 0 with probability {often}: {many} released values are the exact ones. A record is "
            "then hidden by what the others leave open under Θ, and hardly by noise."
        )
    return warnings


def assumed_of(base: Base | RowsBase | None, *, of_chains: bool) -> list[str]:
    """Say what a promise assumes of how its table was read; nothing of one database that was given as it is."""
    if base is None:
        return []
    if of_chains or isinstance(base, RowsBase):
        return list(base.assumptions)
    records = "How many records each of them has is public, and assumed independent of the states."
    return [base.assumptions[0], records]


def words_of_measurement(
    bound: InfluenceBound, epsilon: float, booked: Booked | None, checked: Checking | None
) -> dict[str, Any]:
    """Return what the record of a measurement says of its promise, given its place in a ledger."""
    return {
        "promise": promise_of(epsilon, 0.0, None, of_chains=True, networks=False, protection=bound.protection),
        "not_promised": not_promised_of(
            None, booked, kinds=bound.theta.kinds, composes=True, protection=bound.protection
        ),
        "assumptions": [
            law_assumed(bound.theta.in_words, bound.theta.origin, checked),
            "The measurement is as private as its own map says; this program did not check how it was built.",
        ],
    }


def versions() -> dict[str, str]:
    """Return the versions of what made a release."""
    names = ("pufferfish-privacy", "opendp", "narwhals", "numpy")
    return {name: _version(name) for name in names} | {"python": platform.python_version()}


_version = cache(importlib.metadata.version)
"""The version of an installed package: its file is read once, and not for every release."""
