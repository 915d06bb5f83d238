"""Whether a release that was read holds what its own facts say: what follows is derived again, and compared.

A changed number somewhere in a file must not pass for what was promised. What follows of a release from its facts is
derived by the function that wrote it (:mod:`pufferfish.release.derive`); the facts themselves are checked here one by
one. That the noise is enough for them is what :func:`pufferfish.verify` proves.
"""

import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pufferfish._base.durations import is_moment, parse_duration
from pufferfish.data.groups import in_order, nested_in_order
from pufferfish.errors import PufferfishError, RecordError, shortened
from pufferfish.mechanisms import BOUNDS, ParticipantDP
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.engine import LEAST_EPSILON
from pufferfish.mechanisms.protection import ROW, SUBJECT, ColumnsProtection, Protection, StretchProtection
from pufferfish.mechanisms.witness import ColumnsWitness, StretchWitness
from pufferfish.release.derive import derived, query_record
from pufferfish.release.draw import check_each_subject
from pufferfish.release.facts import DataRecord, GroupsRecord, LedgerRecord, SubjectsRecord, counted_of, encode
from pufferfish.release.noise import fits
from pufferfish.release.prepare import check_fit
from pufferfish.release.record import (
    ReleaseFields,
    calibration_again,
    columns_of,
    composes,
    encoded,
    function_of_user,
    mechanism_again,
    mechanism_named,
    query_again,
)
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import CONTINUA
from pufferfish.theta.continua import ForgettingClass
from pufferfish.theta.joint_distribution import Cliques
from pufferfish.theta.lengths import MOST_STEPS
from pufferfish.theta.record import ThetaRecord

BROKEN = (PufferfishError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError, AssertionError)
BROKEN += (RecursionError, MemoryError)  # what is nested too deep, or of more records than fit
"""What comes of a record in which something was changed, when what follows is derived."""


def check_record(record: ReleaseFields) -> None:
    """Derive again what follows from the facts of a record, and see that it can be written."""
    wrong = next(differences(record), None)
    if wrong is not None:
        raise RecordError(f"expected that {wrong[1]}")
    encoded(record)


Rules = Iterator[tuple[bool, str]]
"""Whether something that is expected of a record holds, and what."""


def differences(record: ReleaseFields) -> Iterator[tuple[str, str]]:
    """Yield the field that something is about which does not hold, and what was expected.

    First the facts are looked at, and where they are sound, what follows from them.
    """
    try:
        wrong = [rule for ok, rule in _rules_on_facts(record) if not ok]
        yield from (("data", rule) for rule in wrong)
        if wrong:
            return
        record.theta.any_theta()
        calibration = None if function_of_user(record) else calibration_again(record)
        if calibration is not None:
            check_fit(record.data, calibration)
            if record.subjects is not None:
                check_each_subject(calibration)
        else:
            yield from (("query", rule) for ok, rule in _rules_with_function(record) if not ok)
        yield from _changed_fields(record, derived(record, calibration))
        yield from (("noisy_values", rule) for ok, rule in _rules_on_values(record) if not ok)
        yield from (("mechanism", rule) for ok, rule in _rules_on_witness(record, calibration) if not ok)
    except BROKEN as error:
        yield "record", f"every part of it is sound: {error}"


def _changed_fields(record: ReleaseFields, derived_record: ReleaseFields) -> Iterator[tuple[str, str]]:
    """Say where a record differs from what follows of its own facts."""
    for name in record.__struct_fields__:
        stated, follows = getattr(record, name), getattr(derived_record, name)
        if stated == follows:
            continue
        where, part, expected = _first_difference(name, msgspec.to_builtins(stated), msgspec.to_builtins(follows))
        rule = f"{where} is {shortened(repr(expected))}, which follows from the rest; it is {shortened(repr(part))}"
        yield name, rule


def _first_difference(name: str, stated: Any, follows: Any) -> tuple[str, Any, Any]:
    """Return the place of the first difference of two plain values, and both there."""
    pairs: list[tuple[Any, Any, Any]] = []
    if isinstance(stated, dict) and isinstance(follows, dict) and stated.keys() == follows.keys():
        pairs = [(f".{key}", stated[key], follows[key]) for key in stated]
    if isinstance(stated, list) and isinstance(follows, list) and len(stated) == len(follows):
        pairs = [(f"[{i}]", *pair) for i, pair in enumerate(zip(stated, follows, strict=True))]
    for place, a, b in pairs:
        if a != b:
            return _first_difference(f"{name}{place}", a, b)
    return name, stated, follows


def leaves(value: Any, *place: Any) -> dict[tuple[Any, ...], Any]:
    """Return what a plain value holds, however deep in lists and dicts, by its place."""
    if not isinstance(value, Mapping | list | tuple) or not value:
        return {place: value}
    parts = value.items() if isinstance(value, Mapping) else enumerate(value)
    return {where: leaf for key, part in parts for where, leaf in leaves(part, *place, key).items()}


# -- Facts -----------------------------------------------------------------------------------------------------------


def _rules_on_facts(record: ReleaseFields) -> Rules:
    """Yield what is expected of the facts of a record, each by itself and next to the others."""
    data, mechanism, booked, noise = record.data, record.mechanism, record.ledger, record.calibration.unit_scale
    yield LEAST_EPSILON <= record.epsilon < math.inf, "epsilon is positive and finite, and not below the least"
    yield 0 <= mechanism.leakage <= record.epsilon, "the leakage is at most epsilon"
    yield 0 < noise < math.inf and fits(noise), "calibration.unit_scale is that of noise which fits 64-bit integers"
    yield is_moment(record.created), "created is a time"
    told = [each.epsilon for each in record.promises]
    yield all(0 <= nats < math.inf for nats in told), "what is told of each unit is a number of nats"
    by_size = [each.epsilon for each in record.promises[:-1] if each.in_the_next]
    yield by_size == sorted(by_size), "of a larger unit no less is told"
    yield mechanism.longest_chain < MOST_STEPS, "the noise is for chains as long as there can be"
    yield from rules_on_place(booked, record.theta)
    if booked is not None:
        yield data.reading is not None, "a ledger is tied to a table"
        yield composes(mechanism.name), "a ledger adds up releases whose mechanism composes"
    yield from _rules_on_data(record, data)
    if record.subjects is not None:
        yield from _rules_on_subjects(record, record.subjects)
    elif record.groups is not None:
        yield from _rules_on_groups(data, record.groups)
    else:
        yield data.reading is None or data.reading.by is None, "a table that was read by groups is released by groups"


def rules_on_place(booked: LedgerRecord | None, theta: ThetaRecord) -> Rules:
    """Yield what is expected of the place of a release in a ledger, which is about the same kind of models."""
    if booked is None:
        return
    yield booked.entry >= 1, "the place in the ledger is at least 1"
    within_budget = 0 < booked.budget < math.inf and 0 <= booked.spent <= booked.budget
    yield within_budget, "what is spent is in the budget"
    known_mechanism = booked.mechanism in {m.name for m in (*BOUNDS, ParticipantDP)}
    yield known_mechanism, "the ledger's mechanism is one of this program's"
    asked, networks = booked.protect, theta.kind == BayesianNetwork.kind
    if isinstance(asked, list):
        some = networks and 0 < len(set(asked)) == len(asked) and set(asked) <= set(theta.members[0]["nodes"])
    elif isinstance(asked, str):
        some = asked == (ROW if networks else SUBJECT)
    else:
        some = asked is None or (not networks and 1 <= asked < MOST_STEPS)
    some = some and (booked.within is None or not (networks or asked is None))
    yield some, "the ledger is about a record, a stretch or a series, columns or a row"


def _rules_on_data(record: ReleaseFields, data: DataRecord) -> Rules:
    """Yield what is expected of how the data were read, and of their numbers of subjects, chains and steps."""
    theta, base, rows = record.theta, data.base, data.rows
    yield min(data.subjects, data.chains, data.longest_chain) >= 1, "there are subjects, chains and steps"
    yield base is None or rows is None, "the data are sequences or rows"
    yield base is None or theta.of_chains or theta.kind == Cliques.kind, "sequences are of chains, or cliques"
    yield rows is None or theta.kind == BayesianNetwork.kind, "rows are of networks"
    yield (rows is None) == (data.observed is None), "rows say how many cells of each column were observed"
    texts = [] if base is None else [base.where, base.max_gap, base.step, base.time_zone]
    texts += [] if rows is None else [rows.where]
    yield all(text is None or text.strip() for text in texts), "filter, gap and step must be absent or non-empty"
    yield data.steps is None or 0 <= data.steps <= data.records - data.chains, "a chain has a step less than records"
    timed = base is not None and base.time is not None
    yield timed or (data.usual_step, data.clock_changes) == (None, None), "times are those of a table"
    base_step = None if base is None or data.usual_step is None else base.step
    yield base_step in (None, data.usual_step), "the step is the usual one, where it was found in the times"
    if base is not None and base.max_gap is not None and data.usual_step is not None:
        have_units = [parse_duration(text, "data").has_unit for text in (data.usual_step, base.max_gap)]
        yield have_units[0] == have_units[1], "data.usual_step is a length of time in the unit of max_gap"
    if rows is not None and data.observed is not None:
        yield from _rules_on_rows(record, data)
        return
    subjects_fit = data.subjects <= data.chains if data.cut else data.subjects == (1 if base is None else data.chains)
    yield subjects_fit, "every subject is a chain, or several where gaps cut it"
    gapless = base is not None and (base.max_gap, base.where, base.missing) == (None, None, "refuse")
    yield not gapless or all(steps == n for steps, n, _ in data.lengths), "nothing makes a gap, so chains have none"
    yield from _rules_on_lengths(data)


def _rules_on_lengths(data: DataRecord) -> Rules:
    """Yield whether chains can be as many, and have as many records and steps, as is said."""
    named, records = (sum(times for *_, times in data.lengths), sum(n * times for _, n, times in data.lengths))
    unnamed, most = data.chains - named, max((n for _, n, _ in data.lengths), default=0)
    yield data.lengths != [], "the chains of the data are named"
    yield data.places is None or len(data.places) == len(data.lengths), "places are those of all chains"
    yield unnamed >= 0 and (data.places is None or unnamed == 0), "the chains that are named are among all"
    yield records + unnamed <= data.records <= records + unnamed * most, "all chains have as many records as is said"
    yield data.longest_chain == max((steps for steps, *_ in data.lengths), default=0), "the longest chain is named"


def _rules_on_rows(record: ReleaseFields, data: DataRecord) -> Rules:
    """Yield whether a table of a network's nodes can have as many rows and cells as is said."""
    rows, observed = data.rows, data.observed or {}
    assert rows is not None
    nodes = set(record.theta.members[0]["nodes"]) if record.theta.members else set[str]()
    least = data.subjects if rows.missing == "refuse" else 0
    yield data.subjects == data.chains and data.lengths == [] and data.places is None, "every row is a subject"
    yield data.longest_chain == len(nodes), "the longest chain are the nodes of the network"
    yield observed.keys() == rows.columns.keys() and observed.keys() <= nodes, "the columns are nodes, and were read"
    yield all(least <= n <= data.subjects for n in observed.values()), "a column has at most one cell in every row"
    yield sum(observed.values()) == data.records, "records are the observed cells"


def _rules_on_groups(data: DataRecord, groups: GroupsRecord) -> Rules:
    """Yield whether groups are those of the table."""
    base, cells = data.reading, [tuple(cell) for cell in groups.cells]
    yield base is not None and base.by is not None and list(base.by) == groups.by, "groups are those that were read"
    yield 0 < len(cells) == len(groups.records) == len(set(cells)), "groups differ, and have a number of records each"
    yield all(len(cell) == len(groups.by) for cell in cells), "every group has a label under each grouping"
    same_width = len({len(cell) for cell in cells}) == 1
    yield same_width and list(in_order(cells)) == cells, "groups are in their order"
    yield all(count >= 1 for count in groups.records), "every group has records"
    yield sum(groups.records) == data.counted, "the records of all groups are those of the table"
    yield (groups.steps is None) == (data.steps is None), "the steps of groups are said where steps are counted"
    nested = groups.nested
    inside = nested is None or (nested != [] and same_width and nested_in_order(groups.by, cells, nested))
    yield inside, "groups that are nested are inside of those of the next grouping"
    if groups.steps is not None:
        pairs = zip(groups.steps, groups.records, strict=False)
        fit = len(groups.steps) == len(cells) and all(0 <= steps <= count for steps, count in pairs)
        yield fit, "every group has a number of steps, at most one for each of its records"
        yield sum(groups.steps) == data.steps, "the steps of all groups are those of the table"


def _rules_on_subjects(record: ReleaseFields, subjects: SubjectsRecord) -> Rules:
    """Yield whether the table of values is one of each subject."""
    base, table = record.data.base, subjects.table
    yield base is not None and base.subject is not None and base.by is None, "the table names its subjects"
    yield record.groups is None and record.noisy_values == [], "the values of subjects are in their table alone"
    if table is not None:
        size = record.data.subjects * len(record.query.labels)
        complete = table.rows == size and table.columns == columns_of(record.postprocessing is not None)
        yield complete, "the table has a row for each subject and output"
        plain_name = table.name not in ("", ".", "..") and table.name == os.path.basename(table.name)
        beside = plain_name and len(table.sha256) == 64
        yield beside, "the table is a file beside the record, with its digest"


def _rules_with_function(record: ReleaseFields) -> Rules:
    """Yield what is expected where a function of the user's decides, which no file holds.

    What it decides is taken as it is said; the mechanism and its secrets, and a query that is known, are made again.
    """
    query, noise, labels, calibration = record.query, record.noise, list(record.query.labels), record.calibration
    title = mechanism_named(record.mechanism.name).title
    yield title == record.mechanism.title, "the mechanism's title is that of its name"
    yield record.data.reading is None, "functions of the user's are asked of one database"
    named = record.theta.of_chains or (calibration.lengths == [] and calibration.places is None)
    yield named, "records that Θ knows have no lengths"
    same_length = record.mechanism.longest_chain == record.data.longest_chain
    yield same_length, "the noise is for the records of the database"
    one_unit = len(set(labels)) == len(labels) > 0 and noise.measurements is None and 0 < noise.unit < math.inf
    yield one_unit, "outputs have names of their own, and noise of one unit"
    scaled = not one_unit or noise.scale == calibration.unit_scale * noise.unit
    yield scaled, "noise.scale is calibration.unit_scale times noise.unit"
    both = (query.lipschitz is None) == (noise.noise_multiplier is None)
    yield both, "lipschitz and noise_multiplier are there together"
    theta, secrets = record.theta.any_theta(), record.mechanism.secrets
    variables = None if theta is None else theta.variables
    yield theta is not None or secrets is not None, "laws of the user's are about the secrets that are named"
    if theta is not None and calibration.settings is not None:
        pairs = mechanism_again(record).secrets
        same_secrets = secrets == (None if pairs is None else [(str(a), str(b)) for a, b in pairs])
        yield same_secrets, "the secrets are those of the mechanism"
    if calibration.query is None:
        yield record.counted is None, "what a function of the user's counts is not known"
        return
    asked = query_again(record)
    linear = asked.bind(record.theta.states, calibration.records, variables)
    counted = counted_of(linear, calibration.unit_scale, [str(v) for v in variables or ()])
    stated, follows = (query, noise.unit, record.counted), (query_record(asked, linear), float(linear.unit), counted)
    same_query = stated == follows and calibration.query == encode(asked)
    yield same_query, "the query is the one that calibration.query names"
    lipschitz = follows[0].lipschitz
    multiplied = lipschitz is None or noise.noise_multiplier == noise.scale / lipschitz
    yield multiplied, "noise_multiplier is noise.scale over lipschitz"


def _rules_on_values(record: ReleaseFields) -> Rules:
    """Yield what noisy values cannot but be: as many as there are outputs, and multiples of what noise is drawn in."""
    groups, m = record.groups, len(record.query.labels)
    if record.subjects is not None:
        return
    complete = 0 < m * (1 if groups is None else len(groups.cells)) == len(record.noisy_values)
    yield complete, "there is one value for each group and label"
    if not complete:
        return
    divisors = [1] if groups is None else groups.divided_by or [1] * len(groups.cells)
    units = (v * divisors[i // m] / record.noise.unit for i, v in enumerate(record.noisy_values))
    whole = all(abs(n) < 2.0**63 and abs(n - round(n)) <= 2.0**-48 * abs(n) for n in units)
    yield whole, "noisy_values are whole numbers of units"


def _rules_on_witness(record: ReleaseFields, calibration: Calibration | None) -> Rules:
    """Yield what a witness names, which has to be there: the proof itself is made again by verify."""
    witness, theta = record.mechanism.witness, record.theta
    nodes: dict[str, Any] = theta.members[0]["nodes"] if theta.kind == BayesianNetwork.kind else {}
    states = [state for node in nodes.values() for state in node["states"]] if nodes else list(theta.states)
    known = {*states, *(text for pair in record.mechanism.secrets or () for text in pair)}
    is_member = 0 <= witness.theta < max(1, len(theta.chains) + len(theta.members))
    yield is_member, "the witness is a member of theta"
    if not is_member:
        return
    fits_in = 1 <= witness.length <= record.mechanism.longest_chain
    yield fits_in, "the witness's length is at most longest_chain"
    if witness.node is not None:
        of_chain = isinstance(witness.node, int) and 0 <= witness.node < witness.length
        yield witness.node in nodes if nodes else of_chain, "the witness's node is one of its chain or network"
    yield known.issuperset(witness.secret_pair or ()), "the secret pair is of states of theta, or secrets"
    if isinstance(witness, ColumnsWitness):
        yield from _rules_on_columns(witness, record.protection, nodes)
    kind = theta.kind_of(witness.theta)
    of_class = kind not in CONTINUA or witness.kind in CONTINUA[kind].witnesses
    yield of_class, "the witness is of a kind that its class of chains has"
    if calibration is not None:
        of_mechanism = isinstance(witness, calibration.bound.witnesses)
        yield of_mechanism, "the witness is of a kind that its mechanism gives"
        if isinstance(witness, StretchWitness):
            yield from _rules_on_stretch(witness, calibration)


def _rules_on_stretch(witness: StretchWitness, calibration: Calibration) -> Rules:
    """Yield whether a stretch is one that the settings protect; which one decides is for the proof to say."""
    theta, chains, protection = calibration.theta, calibration.length, calibration.bound.protection
    steps, near = witness.length, None
    if isinstance(protection, StretchProtection):
        near = protection.near(theta.states)
        steps = steps if witness.by == "series" else min(protection.steps_of(chains), steps)
    protected = protection is not None and witness.steps == steps
    protected = protected and witness.length in {chain.steps for chain in chains}
    yield protected, "the witness is a stretch of so many steps as are protected, in a chain of the data"
    ends = isinstance(witness.node, int) and witness.node + steps <= witness.length
    yield ends, "the stretch that decides ends before its chain does"
    members = theta.members or (theta,)
    ways = {"forgetting" if isinstance(member, ForgettingClass) else "propagation" for member in members}
    yield witness.by in {"series", *ways}, "the stretch that decides is found in a way that its class of chains has"
    for pair in (witness.secret_pair, witness.last_pair):
        named = (pair is not None) == (witness.by == "propagation")
        yield named, "courses are named where the model tells them apart"
        if pair is not None and named:
            of_theta = set(pair) <= {*theta.states}
            yield of_theta, "courses go from states to states of theta"
            close = near is None or not of_theta or near[tuple(map(theta.states.index, pair))]
            yield bool(close), "the courses that decide are near each other"


def _rules_on_columns(witness: ColumnsWitness, protection: Protection | None, nodes: dict[str, Any]) -> Rules:
    """Yield whether a witness is about the columns that are hidden, and names values that they have."""
    columns = witness.columns
    hidden = isinstance(protection, ColumnsProtection) and protection.names == columns
    yield hidden, "the witness is of the columns that are hidden"
    for values in (witness.values, witness.other_values):
        if values is not None and hidden:
            allowed = [nodes[name]["states"] for name in columns or ()]
            theirs = len(allowed) == len(values) and all(v in of for v, of in zip(values, allowed, strict=True))
            yield theirs, "the combinations of values are of the columns"
