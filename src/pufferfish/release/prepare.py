"""What is checked before noise is drawn: that noise, query, records and Θ belong together.

From top to bottom: whether a ledger has the same Θ; whether a model describes the table; the arguments, the proof and
the units; whether noise, query and Θ fit what was read; all of it, up to the record of a release without values.

Where a check needs only what the record of a release holds (:func:`check_fit`, :func:`check_units`), whoever reads a
release makes it too: :mod:`pufferfish.release.check` and :mod:`pufferfish.release.verify` call the same functions.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import accepted_words, listed, one_of
from pufferfish._base.durations import Duration, format_micros, now, parse_duration
from pufferfish._base.view import counted
from pufferfish._base.words import did_you_mean
from pufferfish.data.fingerprint import same_table
from pufferfish.data.groups import Groups
from pufferfish.data.rows import Rows, RowsBase
from pufferfish.data.sequences import Base, Sequences
from pufferfish.data.steps import check_step, skips_steps
from pufferfish.errors import ParameterError, RecordError, ReleaseRefused, shortened
from pufferfish.ledger import Entry, Ledger
from pufferfish.mechanisms import ParticipantDP
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.mechanism import Mechanism
from pufferfish.mechanisms.promises import Promise
from pufferfish.mechanisms.protection import Protection, StretchProtection
from pufferfish.mechanisms.witness import AnyWitness
from pufferfish.mechanisms.words import checked_of, few_of_subjects
from pufferfish.queries import FunctionQuery, JointQuery, LinearQuery, Query, StepQuery, refuse_pooling
from pufferfish.release.derive import (
    AnyFields,
    Proof,
    calibrated_fields,
    data_record,
    groups_record,
    promised,
    total_of,
    versions,
    with_values,
)
from pufferfish.release.draw import Cells, Database, PrivateData, cells_of, check_each_subject, divisions_of
from pufferfish.release.facts import AccuracyRecord, DataRecord, SubjectsRecord, lengths_of
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.model_class import Described, ModelClass, Theta, gives_first_law
from pufferfish.theta.record import CONDEMNED, Checking, ThetaRecord
from pufferfish.theta.secrets import RecordIs
from pufferfish.theta.states import state_label

# -- Whether a release is about the same Θ as the ledger that it is charged to ---------------------------------------

_OTHER_THETA_NOTE = " (ε under another Θ)"

_OTHER_THETA = (
    "The ledger has another Θ than this release: ε of this release holds under its own Θ, and what is spent "
    "in all under the ledger's."
)
"""The ledger's own Θ is not in the record, so this is the only place to say it."""


def note_of(what: str, theta: Theta, ledger: Ledger | None) -> str:
    """Return what a release under a Θ is called in a ledger's book."""
    return what if ledger is None or _same_laws(theta, ledger.bound.theta) else what + _OTHER_THETA_NOTE


def is_note_of(note: str, what: str) -> bool:
    """Whether a ledger's book means a release by a note, under whichever Θ."""
    return note.removesuffix(_OTHER_THETA_NOTE) == what


def _same_laws(first: Theta, second: Theta) -> bool:
    """Whether two classes hold the same laws, whatever they are called and wherever they came from."""
    if first is second:
        return True
    records = [msgspec.structs.replace(ThetaRecord.of(theta), origin="", names=[]) for theta in (first, second)]
    return records[0] == records[1]


# -- Whether a table is one that a model describes -------------------------------------------------------------------
#
# A pufferfish.Model knows how long a step takes and what it was fitted to; a Θ alone does not. The command line asks
# before it calibrates, a release asks where its mechanism was made from a model: by the same functions.

ACCEPTED = ("public", "model")
"""The refusals of a release that can be accepted; ``noise`` is a refusal of the command line only."""

_NO_PROMISE = (
    "the model was fitted to this very table, or one is a part of the other: the noise would depend on the secrets "
    "that it should hide, so the release would have no privacy guarantee. Fit the model to public data, or state how "
    "soon habits are forgotten (documentation: Forgetting); if everybody may see this table, give accept='public'"
)

_CONDEMNED = (
    "the model was {}: to somebody who knows the public data the noise would leak more than is promised. Run "
    "pufferfish check with this model and {} again: below 'next:' it prints the command that fits a larger class; "
    "release under that one. If you are sure of the model, give accept='model'"
)

_CHECKED_HERE = (
    "the model was checked against this very table, or one is a part of the other: the verdict in the model file is "
    "an exact function of these private records. {}; if everybody may see this table, give accept='public'"
)

_CHECK_AGAIN = "Check it again against the public table, which replaces this verdict"

_CHECK_A_COPY = "Check another copy of the model with public data: this verdict cannot be replaced"

_ACCEPTED_ALL_THE_SAME = (
    "The model was {} but is used anyway: to somebody who knows the public data the noise leaks more than is promised."
)

FITTED_HERE = (
    "The model was fitted to this very table, or one is a part of the other. The noise then depends on the secrets "
    "that it should hide: this release is a comparison without a guarantee."
)


def warnings_of_reading(data: Sequences | Rows, model: Described) -> tuple[str, ...]:
    """Return what may be wrong with how a table was read under a model; said once, before noise is calibrated."""
    if isinstance(data, Rows) or model.step is not None:
        return () if isinstance(data, Rows) else data.warnings
    warnings, base = list(data.warnings), data.base
    if base.time is not None and base.max_gap is None:
        step = base.step or data.usual_step
        gap = f"max_gap='{step}'" if step else "max_gap"
        warnings.append(
            "Without max_gap times only order the records. If records are missing, more leaks than is promised. Give "
            f"{gap}."
        )
    if data.usual_step is not None:
        warnings.append(
            f"The model does not say how long a step takes, so it was not checked that a step takes {data.usual_step}, "
            "the usual time between the table's records. If a step takes another time, more leaks than is promised. "
            "Use a model with a step: fitted with max_gap, stated by fit --forgets with --step, or made "
            f'in Python by Model.fitted(theta, data) or Model(theta=…, step="{data.usual_step}"). Or give '
            f"step='{data.usual_step}' if that is right."
        )
    return tuple(warnings)


def warnings_of_model(
    data: Sequences | Rows | Database | None, model: Described | None, *, accept: Collection[str] = ()
) -> list[str]:
    """Return what a release under a model warns of, besides what its data warn of; refuse data of another step.

    Refused too is a model that was fitted to these very data or to a part of them, or checked against them, unless
    ``accept`` names "public"; and one of which a check said "do not go on", unless it names "model". Without a table,
    as for a measurement, only this verdict is asked.
    """
    if model is None:
        return []
    checked = model.checked
    if checked is not None and checked.word == CONDEMNED and "model" not in accept:
        raise ReleaseRefused(_CONDEMNED.format(checked.in_words(), checked.source))
    told = list[str]()
    if checked is not None and checked.word == CONDEMNED:
        told = [_ACCEPTED_ALL_THE_SAME.format(checked.in_words())]
    if data is None or isinstance(data, Database):
        return told
    check_step(data, model)
    warnings = list[str]()
    if isinstance(data, Sequences):
        warnings = [text for text in warnings_of_reading(data, model) if text not in data.warnings]
    fitted_on, fingerprint = model.fitted_on, data.fingerprint
    fitted_here = fitted_on is not None and fingerprint is not None and same_table(fitted_on, fingerprint)
    if fitted_here and "public" not in accept:
        raise ReleaseRefused(_NO_PROMISE)
    seen = None if checked is None else checked.fingerprint
    if seen is not None and fingerprint is not None and same_table(seen, fingerprint) and "public" not in accept:
        raise ReleaseRefused(_CHECKED_HERE.format(_CHECK_A_COPY if told else _CHECK_AGAIN))
    return [*told, *([FITTED_HERE] if fitted_here else []), *warnings]


def warnings_of_stretch(
    data: Sequences | Rows | Database | None,
    protection: Protection | None,
    step: str | None = None,
    promises: Sequence[Promise] = (),
) -> list[str]:
    """Return a warning where a time may hold more steps than are counted for it, as some take less than a step.

    Of the length of time that a protection was given as, or else of what so many steps are called: those that are
    protected, or some that something is promised of.
    """
    stretch = protection if isinstance(protection, StretchProtection) else StretchProtection(1)
    if not isinstance(data, Sequences) or data.shortest_step is None or isinstance(stretch.steps, str):
        return []
    shortest = parse_duration(data.shortest_step, "shortest_step")
    least = f"Steps of this table take as little as {shortest}"
    if stretch.lasts is not None:
        held = _steps_in(stretch.lasts, shortest, stretch.steps)
        hides = f"the noise hides {stretch.steps:,} in a row: give protect='{held}'"
        return [] if held is None else [f"{least}, so {stretch.lasts} may hold {counted(held, 'step')}, and {hides}"]
    one = None if step is None else parse_duration(step, "step")
    if one is None or not one.has_unit:
        return []
    told = [unit.steps for unit in promises if unit.in_the_next and unit.steps is not None and unit.steps > 1]
    for steps in [stretch.steps] if stretch.is_stretch else told[:-1]:  # the last is the whole series
        called = format_micros(int(one.value) * steps)
        if (held := _steps_in(called, shortest, steps)) is not None:
            so = f"so {called}, as {counted(steps, 'step')} in a row are called, may hold {held:,}"
            return [f"{least}, and lengths of time are told in steps of {step}: {so}"]
    return []


def _steps_in(length: str, shortest: Duration, counted_for: int) -> int | None:
    """Return how many records a length of time may hold, its ends with it; None where so many are counted for."""
    whole = parse_duration(length, "protect")
    times = Fraction(whole.value) / Fraction(shortest.value) if whole.has_unit == shortest.has_unit else 0
    return None if times <= counted_for else int(times) + 1


# -- Arguments, the proof, and units ---------------------------------------------------------------------------------

_CALIBRATE = (
    "calibrate the noise first, calibration = LeakagePropagation(theta, length=data.length).calibrate(query, "
    "epsilon=1.0), then release(data, query, calibration)"
)
_OPTIONS = ("postprocess", "warnings", "ledger", "window", "coarsening", "accept")


def check_arguments(data: Any, query: Any, calibration: Any, unknown: Mapping[str, Any]) -> Calibration:
    """Return the calibration; refuse what release does not take, and say what to do instead."""
    for name in unknown:
        if name in ("epsilon", "mechanism", "theta", "length", "noise", "accuracy", "alpha"):
            raise ParameterError(f"release has no option {name}: it belongs to the calibration; {_CALIBRATE}")
        hint = did_you_mean(name, _OPTIONS)
        raise ParameterError(f"release has no option {name!r}.{hint} Options: {', '.join(_OPTIONS)}")
    if isinstance(query, Calibration) and (calibration is None or isinstance(calibration, Query)):
        raise ParameterError("release takes data, query and calibration, in this order: release(data, query, noise)")
    if isinstance(data, Query):
        raise ParameterError(
            "release takes the data first, but this is a query: release(data, query, calibration), with data from "
            "read_sequences or read_rows"
        )
    if not isinstance(query, Query):
        raise ParameterError(f"query is {_described(query)}, expected one such as Histogram() or Count(state)")
    if not isinstance(calibration, Calibration):
        problem = "is missing" if calibration is None else f"is {_described(calibration)}"
        raise ParameterError(f"the calibration {problem}: {_CALIBRATE}")
    is_database = isinstance(data, Mapping | Sequence | np.ndarray) and not isinstance(data, str | bytes)
    if not (isinstance(data, Sequences | Rows) or is_database):
        raise ParameterError(
            f"data is {_described(data)}, expected a table read by read_sequences (read_rows for networks), or one "
            "database as a dict or list of states"
        )
    return calibration


def _described(value: Any) -> str:
    plain = value is None or isinstance(value, str | int | float)
    return repr(value) if plain and len(repr(value)) < 60 else f"of the type {type(value).__name__}"


def check_query(query: Query, calibration: Calibration) -> Calibration:
    """Return the calibration with the query bound anew, refused where the noise is for another."""
    mechanism = calibration.bound
    if not isinstance(mechanism, Mechanism):
        raise ReleaseRefused(
            f"the noise comes from {type(mechanism).__name__}, which is not a mechanism: calibrate again"
        )
    if query != calibration.query:
        raise ReleaseRefused(
            f"the noise was calibrated for {calibration.query}, not for {query}: calibrate for this query"
        )
    linear, calibrated = mechanism.bind(query), calibration.linear
    same = type(linear) is type(calibrated) and linear.unit == calibrated.unit
    if not isinstance(linear, FunctionQuery) and not isinstance(calibrated, FunctionQuery):
        same = same and linear.key == calibrated.key
    if not same:
        raise ReleaseRefused(
            f"the noise was calibrated for {calibrated.description}, but this query is {linear.description}"
        )
    return replace(calibration, linear=linear)


def check_proof(calibration: Calibration, leakage: float, witness: AnyWitness | None) -> tuple[float, AnyWitness]:
    """Return a proof, refused where it is of too much, or of no secret."""
    if witness is None:
        raise ReleaseRefused(f"{calibration.title} finds nothing to hide for this noise: check Θ and the query")
    if not 0 <= leakage <= calibration.epsilon < math.inf:
        raise ReleaseRefused(
            f"{calibration.title} proves a leakage of {leakage:.6g} for this noise, above {calibration.epsilon:g}: "
            "calibrate again"
        )
    return leakage, witness


def check_units(calibration: Calibration) -> None:
    """Refuse noise whose scale, or answers, are no numbers once they are multiplied by the query's unit."""
    try:
        sound = 0 < calibration.scale and float(calibration.linear.unit * 2**63) < math.inf
    except OverflowError:
        sound = False
    if not sound:
        raise ReleaseRefused(
            f"the query counts in units of {float(calibration.linear.unit):.3g}, in which the noise or the answers "
            "are too small or too large: give values in other units, or another epsilon"
        )


# -- Whether noise, query, Θ and what was read go together -----------------------------------------------------------


def check_fit(data: DataRecord, calibration: Calibration) -> None:
    """Refuse noise that is not for the records that were read, or a Θ that needs to know what was not."""
    if (data.steps is not None) != isinstance(calibration.linear, StepQuery):
        raise ReleaseRefused("the number of steps is public where they are counted, and is said only there")
    if data.rows is not None:
        _check_rows(data, data.rows, calibration)
    elif data.base is not None:
        _check_sequences(data, data.base, calibration)
    else:
        _check_database(data, calibration)
    if calibration.theta.stands_for_more:
        raise ReleaseRefused(
            "the noise was calibrated for pi_min and eigengap alone: give theta, whose states are known"
        )


def _check_database(data: DataRecord, calibration: Calibration) -> None:
    """Refuse one database, given by hand, of other records than the noise is for."""
    if calibration.records != data.records:
        raise ReleaseRefused("the noise was calibrated for a table of several rows: read it with read_rows")
    chains, all_count = calibration.length, not (calibration.composes and calibration.theta.of_chains)
    same = (data.subjects, data.chains, data.longest_chain) == (1, len(chains), max(chain.steps for chain in chains))
    if not same or (data.lengths, data.places) != lengths_of(chains, all_count=all_count):
        raise ReleaseRefused("the noise was calibrated for other records than those of the database")


def _check_rows(data: DataRecord, rows: RowsBase, calibration: Calibration) -> None:
    """Refuse a table of other rows than the noise is for, or that lacks what the query reads."""
    mechanism, linear, theta = calibration.bound, calibration.linear, calibration.theta
    if not theta.networks:
        raise ReleaseRefused(
            f"the noise was calibrated for {theta.kind}, but these data are independent rows of a Bayesian network: "
            "calibrate under the network"
        )
    network = theta.networks[0]
    rows.check_private(map(state_label, network.nodes))
    refuse_pooling(calibration.query, network.node_states)
    if data.subjects != mechanism.rows:
        raise ReleaseRefused(
            f"the noise was calibrated for a table of {mechanism.rows:,} rows, but this one has {data.subjects:,}: "
            "calibrate with length=rows.length"
        )
    if not isinstance(linear, LinearQuery | JointQuery):
        raise ReleaseRefused("a function of the database needs its records by name: give a dict, not a table")
    observed = data.observed or {}
    nodes_read = [state_label(node) for place, node in enumerate(network.nodes) if linear.reads(place)]
    lacking = [node for node in nodes_read if node not in observed]
    if lacking:
        raise ReleaseRefused(
            f"the query reads node {lacking[0]!r}, but the table has no column for it: restrict the query to the "
            "table's columns by Subset(query, rows.nodes) or Marginals(rows.nodes)"
        )
    missing = [node for node in nodes_read if observed[node] < data.subjects]
    if missing and not calibration.composes:
        raise ReleaseRefused(
            f"{calibration.title} needs complete rows, but column {missing[0]!r} has missing cells: use MarkovQuilt, "
            "LeakagePropagation or GroupDP"
        )


def _check_sequences(data: DataRecord, base: Base, calibration: Calibration) -> None:
    """Refuse sequences of other records than the noise is for."""
    linear, theta, query = calibration.linear, calibration.theta, calibration.query
    if theta.networks:
        raise ReleaseRefused(
            "the noise was calibrated for a Bayesian network, but these data are chains of states: read the table by "
            "read_rows, with a column for every node"
        )
    if isinstance(linear, StepQuery) or (isinstance(linear, LinearQuery) and linear.factors is None):
        linear_here = query.bind(theta.states, data.records)
        if linear_here.unit != linear.unit:
            raise ReleaseRefused(
                f"the noise was calibrated for {linear.description}, but this query is {linear_here.description}: "
                f"calibrate with length=data.length, for {data.records:,} records"
            )
    only_counts = theta.of_chains or (isinstance(theta, ModelClass) and theta.only_counts)
    if not isinstance(linear, LinearQuery | StepQuery) or not only_counts:
        raise ReleaseRefused(f"Θ is a class of {theta.kind}: give the database as a dict from records to states")
    if isinstance(linear, LinearQuery) and linear.factors is not None:
        _check_window(data, linear.factors)
    else:
        _check_lengths(data, base, calibration)
    _check_reading(data, base, calibration)


def _check_window(data: DataRecord, factors: NDArray[Any]) -> None:
    """Refuse a table that is not the window of one chain that a query reads."""
    places = np.flatnonzero(factors)
    if np.any(factors[places[0] : places[-1] + 1] != 1):
        raise ReleaseRefused(
            "the query weights single records, but read_sequences only counts the records in each state: give the "
            "chain as a list of states"
        )
    if data.chain_lengths != [(ChainLength(places.size, places.size), 1)] or data.chains != 1:
        raise ReleaseRefused(
            f"the noise was calibrated for a window of {places.size:,} records of one chain: read only those rows"
        )


def _check_lengths(data: DataRecord, base: Base, calibration: Calibration) -> None:
    """Refuse chains that the noise was not calibrated for."""
    theta = calibration.theta
    if not theta.of_chains and (base.gaps == "independent" or data.subjects != data.chains):
        raise ReleaseRefused(
            "the cliques of Θ are the table's subjects, but this reading cuts subjects into parts: read the table "
            "without time, max_gap and gaps='independent'"
        )
    conditions = [c for pair in calibration.bound.secrets or () for s in pair for c in s.conditions]
    if len(calibration.length) > 1 and any(isinstance(c, RecordIs) for c in conditions):
        raise ReleaseRefused(
            "the secrets name records by chain or clique number, but the table does not say which subject has which "
            "number: give the database as a list, or leave out secrets"
        )
    if not calibration.composes or not theta.of_chains:
        lengths_read = Counter[ChainLength]()
        for chain, times in data.chain_lengths:
            lengths_read[chain] += times  # never one by one: a record may say any number of them
        if lengths_read.total() != data.chains or lengths_read != Counter(calibration.length):
            lengths = [str(chain.records) for chain in calibration.length]
            spelled = ", ".join(lengths[:8]) + (f" and {len(lengths) - 8} more" if len(lengths) > 8 else "")
            raise ReleaseRefused(
                f"{calibration.title} calibrates for chains of exactly {spelled} records, but the data has other "
                "chains: calibrate with length=data.length, or a model of these records"
            )
        if isinstance(calibration.linear, StepQuery) and data.steps != data.records - data.chains:
            raise ReleaseRefused(
                f"{calibration.title} needs all steps of a chain, but some were not observed: use LeakagePropagation, "
                "MQMExact or GroupDP"
            )
        return
    calibrated = set(calibration.length)
    for chain, _ in data.chain_lengths:
        if not any(c.covers(chain) for c in calibrated):
            raise ReleaseRefused(
                f"the data has a chain of {chain.steps:,} steps and {chain.records:,} records, but the noise was not "
                "calibrated for a chain of this length with records at these places: calibrate with length=data.length"
            )


def _check_reading(data: DataRecord, base: Base, calibration: Calibration) -> None:
    """Refuse a Θ or a mechanism that needs to know what this way of reading the table leaves open."""
    if base.subject is None and data.subjects > 1:
        raise ReleaseRefused("several chains were read without a subject column: name the column")
    if calibration.mechanism == ParticipantDP.name and base.gaps == "independent":
        raise ReleaseRefused(
            "ParticipantDP needs the number of records of each participant, but gaps='independent' counts each "
            "segment: read the table with gaps='unobserved' and calibrate with length=data.length"
        )
    protection = calibration.bound.protection
    if protection is not None:
        protection.check_gaps(base.gaps, "the noise hides")
    check_clock(data, calibration.theta)
    if gives_first_law(calibration.theta) and (
        base.where is not None or base.missing == "split" or base.gaps == "independent"
    ):
        raise ReleaseRefused(
            "Θ gives the law of a chain's first record as an array, but with where=, missing='split' or "
            "gaps='independent' the first record that is kept may not be the first of the chain: use a Θ with "
            'initial_distribution="any" or "stationary", or select rows before reading'
        )


def check_clock(data: DataRecord, theta: Theta) -> None:
    """Refuse a table whose records cannot follow the clock of Θ: that of a release, or of the ledger that it is in.

    Which phase a chain begins at need not be known, as the proof covers every one; but from then on each step must be
    one step of the clock. A change of clocks within a chain breaks that: where two sticky hours are parted by one in
    which habits are forgotten, and clocks skip this one, records leak about each other as no series of Θ does.
    """
    expected = theta.step
    if expected is None:
        return
    base = data.base
    assert base is not None
    remedy = f"read the table with time=, the column of times, and max_gap={expected!r}"
    if base.time is None or base.max_gap is None:
        what = "times" if base.time is None else "max_gap, so a gap would count as one step however long it lasts"
        raise ReleaseRefused(
            f"Θ follows a clock with one record every {expected}, but the table was read without {what}: {remedy}"
        )
    model_step, table_step = parse_duration(expected, "step"), base.step or data.usual_step
    if not parse_duration(base.max_gap, "max_gap").has_unit:
        raise ReleaseRefused(
            f"Θ follows a clock, but column {base.time!r} holds numbers: give times, such as 2016-04-13 08:00:00"
        )
    if table_step is None or parse_duration(table_step, "step") != model_step:
        raise ReleaseRefused(
            f"one step of Θ takes {expected}, and one of the table {table_step or 'nobody knows how long'}: use a "
            "model of the table's step, or aggregate the table to the model's"
        )
    if data.usual_step is None:  # the step was given: records may be any other time apart
        raise ReleaseRefused(
            f"Θ follows a clock, and the table was read with step={base.step!r}, so the time between its records was "
            f"not checked: leave out step=; {remedy}"
        )
    if skips_steps(base, expected):
        raise ReleaseRefused(
            f"records up to {base.max_gap} apart were read as one step, but one step of the clock of Θ takes "
            f"{expected}: the clock would be wrong; {remedy}"
        )
    if data.clock_changes == "possible":
        raise ReleaseRefused(
            f"Θ follows a clock, but times in column {base.time!r} have no zone, and clocks may have changed in a "
            "gap: give time_zone=, such as 'Europe/Paris', or 'UTC' if clocks never change"
        )
    if data.clock_changes == "known":
        raise ReleaseRefused(
            f"Θ follows a clock, but clocks in {base.time_zone} changed within a series, so the clock of Θ would be "
            "an hour off from then on: keep only the records before or after the change by where=, or use UTC for "
            "model and table"
        )


def check_columns(rows: Rows, calibration: Calibration) -> None:
    """Refuse a table that was read for another network, whose columns have other states."""
    network = calibration.theta.networks[0]
    for node in rows.nodes:
        if node not in network.node_states or rows.states[node] != network.node_states[node]:
            raise ReleaseRefused(
                f"the table was read for another network: column {node!r} has the states {', '.join(rows.states[node])}"
            )


# -- All of it, up to the record of a release without values --------------------------------------------------------

AnyRecord = TypeVar("AnyRecord")


@dataclass(frozen=True, slots=True)
class Prepared(Generic[AnyRecord]):
    """A release that nothing refuses any more, before anything is spent.

    ``warnings`` are to be told while nothing is spent. ``plan`` returns the record as it would be now, but for its
    values, and its entry in the ledger, if there is one; it refuses what the ledger would, and spends nothing.
    ``finish`` spends the budget, draws the noise, and returns the release; it calls its argument right before, when
    nothing is refused any more.
    """

    warnings: tuple[str, ...]
    plan: Callable[[], tuple[AnyRecord, Entry | None]]
    finish: Callable[..., AnyRecord]


def checked(
    kind: type[AnyFields],
    data: PrivateData,
    query: Query,
    calibration: Calibration,
    *,
    ledger: Ledger | None,
    postprocess: Literal["valid"] | None = None,
    warnings: Sequence[str] = (),
    accept: str | Collection[str] = (),
    model: Described | None = None,
    subjects: SubjectsRecord | None = None,
    names_warnings: Sequence[str] = (),
) -> tuple[Calibration, Cells, AnyFields]:
    """Check and prove all that can be refused of a release, whatever its cells are; see :func:`pufferfish.release`.

    Returns the noise, the exact value, and the record, of a ``kind``, but for its values and its place in a ledger.
    With ``subjects`` every subject gets values of its own. ``model`` is what Θ came from, which was asked already
    whether it goes with the data; by default the mechanism's. ``names_warnings`` are those of names in a table.
    """
    any_ledger: Any = ledger
    told = _sentences(warnings)
    if not (any_ledger is None or isinstance(any_ledger, Ledger)):
        raise ParameterError(f"ledger is {any_ledger!r}, expected a Ledger, such as Ledger.open(path)")
    if not one_of(postprocess, (None, "valid")):
        raise ParameterError(f'postprocess is {postprocess!r}, expected "valid" or None')
    if ledger is not None and isinstance(data, Database):
        raise ParameterError(
            "a ledger needs a table: read the data with read_sequences, or with read_rows for networks"
        )
    calibration = check_query(query, calibration)
    groups: Groups | None = None if isinstance(data, Database) or subjects is not None else data.groups
    if subjects is not None:
        check_each_subject(calibration)
    elif groups is not None and not isinstance(data, Database):  # refused in words about groups
        divisions_of(calibration, groups.records, data.records)
    facts = data_record(data, calibration)
    check_fit(facts, calibration)
    if ledger is not None and not isinstance(data, Database):
        check_clock(facts, ledger.bound.theta)
        if ledger.bound.model is not None:  # that of the noise is asked below
            check_step(data, ledger.bound.model)
    if isinstance(data, Rows):
        check_columns(data, calibration)
    of_model = warnings_of_model(data, calibration.bound.model, accept=accepted_words(accept, ACCEPTED))
    told += [text for text in of_model if text not in told]
    told += [] if ledger is None or _same_laws(calibration.theta, ledger.bound.theta) else [_OTHER_THETA]
    proof = (*check_proof(calibration, *calibration.bound.verify(calibration)), promised(calibration, facts))
    check_units(calibration)
    told += warnings_of_stretch(data, calibration.bound.protection, facts.step, proof[2])
    cells = cells_of(data, calibration, total_of(facts, calibration), by_subject=subjects is not None)
    if subjects is not None:
        told += few_of_subjects(calibration, calibration.linear, cells.records.tolist())
    if isinstance(data, Sequences) and calibration.theta.of_chains:  # groups of any other Θ may well be many and small
        names_warnings = [*names_warnings, *data.warnings]
    draft = draft_of(
        kind,
        calibration,
        facts,
        proof,
        groups=None if groups is None else groups_record(groups, facts),
        subjects=subjects,
        valid=postprocess is not None,
        warnings=[*told, *names_warnings],
        check=checked_of(model or calibration.bound.model),
    )
    return calibration, cells, draft


def draft_of(
    kind: type[AnyFields],
    calibration: Calibration,
    data: DataRecord,
    proof: Proof,
    *,
    check: Checking | None = None,
    **given: Any,
) -> AnyFields:
    """Return the record of a release but for its values and its place in a ledger; ``check`` is what one said of Θ.

    ``given`` are options of :func:`calibrated_fields`.
    """
    fields = calibrated_fields(calibration, data, proof, **given) | {"data": data, "checked": check}
    # what with_values fills in
    fields |= {"hides": "", "promise": "", "not_promised": [], "assumptions": []}
    fields |= {"values": [], "noisy_values": [], "accuracy_95": AccuracyRecord(0.05, 0.0, 0.0)}
    draft = kind(created=now(), software=versions(), **fields)
    return with_values(draft, calibration)


def _sentences(warnings: Any) -> list[str]:
    """Return warnings that a user gives, refused where they are no texts."""
    texts = listed(warnings, "warnings", 'sentences, such as ["One sensor was changed in May."]')
    for text in texts:
        if not isinstance(text, str):
            raise ParameterError(f"warnings holds {shortened(repr(text))}, expected sentences, as text")
    return [str(text) for text in texts]


def inconsistent(error: RecordError) -> ReleaseRefused:
    """Return what to raise where the record of a release could not be read again: nothing was spent yet."""
    return ReleaseRefused(
        f"internal error: the release record is inconsistent ({error}). Nothing was spent; please report this"
    )
