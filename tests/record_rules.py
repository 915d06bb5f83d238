"""An independent reader: what every field of a release must be, rule by rule, written by hand.

The program derives what follows from a record's facts by the function that wrote it, so that it shares the writer's
mistakes. These rules do not: tests run them on every release that they make.

A changed number somewhere in a file must not pass for what was promised. For every field, what fixes it:

==================================  ===================================================================================
field                               follows from, or is bounded by
==================================  ===================================================================================
values                              noisy_values and postprocessing
noisy_values                        whole numbers of noise.unit, one per label
postprocessing                      query.kind; totals and range: data.records, data.observed, lipschitz, noise.unit
epsilon                             promise; at least mechanism.leakage
delta                               promise; mechanism.name says whether it is 0
promise                             epsilon, delta, mechanism.secrets and theta.kind, where this version wrote it
assumptions                         theta.origin; data.base or data.rows, where this version wrote them
not_promised                        ledger.entry and ledger.spent; mechanism and theta.kind, where this version wrote it
query.kind                          one of the known ones
query.labels                        query.kind and theta.states, or the states of the nodes of theta
query.lipschitz, divided_by         query.kind, noise.unit, data.records, and each other
noise.scale, noise_multiplier       each other and query.lipschitz
accuracy_95                         noise and the number of labels; with measurements, the outputs that follow from them
noise.measurements                  query.kind and theta.states; scale, sharpness and noise_multiplier each other
                                    (strategy_rules.py); what the witness itself tells
quantiles                           noisy_values, noise, query.kind and theta.states
mechanism.name, title               each other
mechanism.leakage                   epsilon, and what the witness tells
mechanism.longest_chain             theta; at least data.longest_chain and the witness's length; below 2^60
mechanism.witness                   mechanism.name, theta, noise; its fields each other (witness_rules.py)
data                                theta where it names its records; base or rows; each other
theta                               a class of models; theta.states and theta.kind as above
ledger                              spent is at most budget; not_promised; previous: by the ledger alone
groups                              data, query.kind, noise; values are those of each group (groups_rules.py)
==================================  ===================================================================================

Words (description, warnings, created, software) cannot be checked beyond that.

What follows of a release from the kind of its query: labels, units, what is divided by, and what may be valid.

Each rule is a condition and, in words, what is expected.

What follows of a release's measurements: scales, sharpness and loss fix each other, and the outputs' errors.

Each rule is a condition and, in words, what is expected.

What follows of a release by groups from itself: its values from its noise, its groups from how the table was read.

All else is checked as for a release of all records together with the same noise, whose values are 0
(:func:`stand_in`): the promise, the proof and the query of both are the same.

What follows of a release's witness from its mechanism, its noise, Θ and the data.

Each rule is a condition and, in words, what is expected.
"""

import math
import operator
import os
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import msgspec

from pufferfish._base.durations import is_moment
from pufferfish._base.words import at_most
from pufferfish._core.propagation.forgetting import fixed_point
from pufferfish.data.groups import in_order
from pufferfish.mechanisms import BOUNDS, MECHANISMS, ApproximateWasserstein, ParticipantDP
from pufferfish.mechanisms.protection import ColumnsProtection, Protection, StretchProtection
from pufferfish.mechanisms.witness import (
    AloneWitness,
    ClusterWitness,
    ColumnsWitness,
    CouplingWitness,
    ForgettingWitness,
    LawWitness,
    PhaseWitness,
    PropagationWitness,
    QuiltWitness,
    StretchWitness,
)
from pufferfish.mechanisms.words import not_promised_of, promise_of
from pufferfish.queries import CDF, KINDS, Bouts, Joint, Quantiles, Switches, Transitions
from pufferfish.queries.of_columns import combination_labels
from pufferfish.queries.of_states import ARROW, named_quantiles
from pufferfish.release.derive import assumed_of, versions
from pufferfish.release.facts import (
    WEIGHTED,
    AccuracyRecord,
    GroupsRecord,
    NoiseRecord,
    QueryRecord,
    SubjectsRecord,
)
from pufferfish.release.noise import fits
from pufferfish.release.postprocessing import Ascending, AscendingByGroup, BySubject, ClippedByGroup, Projected
from pufferfish.release.record import ReleaseFields, columns_of
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import CHAIN_MODELS, CONTINUA, MIXED
from pufferfish.theta.continua import BinaryChainInterval, ForgettingClass, IntervalChain
from pufferfish.theta.joint_distribution import Cliques, GivenLaws, JointDistribution
from pufferfish.theta.lengths import MOST_STEPS
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.states import state_label

__all__ = ["contradictions"]

_EACH = re.compile(
    r"^(share of the|number of the|mean over|.*, per record of the) (records|rows) of (?:each group|the subject)\b"
)


def of_the_whole(description: str, n: int) -> str:
    """Say in the words of a query by groups that it is of all records."""
    return _EACH.sub(rf"\1 {n:,} \2", description)


# -- What follows of a release from the kind of its query ------------------------------------------------------------

Rules = list[tuple[bool, str]]
"""Conditions, with what is expected."""

_SAME = 1e-9
_CUMULATIVE = {*CDF.kinds, *Quantiles.kinds}

OF_ROWS = ("marginals", "joint")
"""Kinds of queries whose answers are shares of rows."""

_OF_STEPS = {word for word, kind in KINDS.items() if kind.of_steps}
"""Kinds of queries about steps."""

_WORDS = {*KINDS, *(WEIGHTED + kind for kind in KINDS if kind not in _OF_STEPS), "function"}
"""What the kind of a query can be in a record."""


def near(one: float, other: float) -> bool:
    """Whether two numbers are the same but for how other versions of numpy round."""
    return math.isclose(one, other, rel_tol=_SAME, abs_tol=1e-300)


def on_grid(number: float) -> bool:
    """Whether a number is whole, but for the rounding of the unit and of the product."""
    return abs(number) < 2.0**63 and abs(number - round(number)) <= 2.0**-50 * abs(number)


def query_rules(found: ReleaseFields) -> Rules:
    """Check labels, unit, Lipschitz constant and divisor: a query's kind, Θ and the records fix them."""
    query, unit = found.query, found.noise.unit
    kind = query.kind.removeprefix(WEIGHTED)
    weighted = query.kind.startswith(WEIGHTED)
    if query.kind not in _WORDS:
        return [(False, f"the query's kind is one of {', '.join(sorted(_WORDS))}")]
    if kind == "function":
        unknown = query.lipschitz is None and query.divided_by is None
        return [(unknown, "of a function no Lipschitz constant is known"), *_quantiles(found)]
    cumulative = kind in _CUMULATIVE
    moves = len(query.labels) if cumulative else KINDS[kind].moves
    lipschitz, by = query.lipschitz or 0.0, query.divided_by or 1
    own_unit = 1 / by
    steps, most = found.data.steps, found.data.records - found.data.chains
    rules = [
        ((steps is not None) == (kind in _OF_STEPS), "the number of steps is there where they are counted"),
        (steps is None or 0 <= steps <= most, "there is at most one step less than records in every chain"),
        (steps is None or found.data.rows is None, "steps are those of chains"),
        (query.lipschitz is not None, "the query has a Lipschitz constant"),
        ((query.divided_by is not None) == KINDS[kind].relative, "shares and means, and they alone, are divided"),
        (query.divided_by is None or query.divided_by >= 1, "what is divided by is at least 1 record"),
        (
            query.divided_by is None or f" {by:,} r" in query.description,
            f"the description speaks of the {by:,} records, or rows, that are divided by",
        ),
        (moves is None or near(unit, own_unit), "the unit is one record, divided as shares are"),
        (
            moves is None or weighted or near(lipschitz * by, moves),
            f"lipschitz times the number that is divided by is {moves}",
        ),
        (
            moves is None or not weighted or _multiple(lipschitz * by, moves),
            f"lipschitz times the number that is divided by is a multiple of {moves}",
        ),
        (_labels_fit(found, kind), "the labels are those that the query has under theta"),
    ]
    return [*rules, *_divisor(found, weighted, kind), *_quantiles(found)]


def _quantiles(found: ReleaseFields) -> Rules:
    """Check that quantiles are those of the noisy values, and there where they were asked for, and only there."""
    asked = found.query.kind in Quantiles.kinds
    there = bool(found.quantiles) if asked else found.quantiles is not None
    rules = [(there == asked, "quantiles are there where they were asked for")]
    if found.quantiles and asked:
        shares = list(dict.fromkeys(quantile.share for quantile in found.quantiles))
        rules.append((found.quantiles == found.quantiles_at(shares), "quantiles are those of the noisy values"))
        told = re.search(rf"{re.escape(named_quantiles(shares))}(?!, [0-9])", found.query.description) is not None
        rules.append((told, "the description names the quantiles"))
    return rules


def _multiple(number: float, of: int) -> bool:
    return near(number, of * round(number / of))


def _divisor(found: ReleaseFields, weighted: bool, kind: str) -> Rules:
    """Check that what is divided by are the records: all of them, or those of a window or of some columns."""
    data, by = found.data, found.query.divided_by
    if by is None:
        return []
    if data.rows is not None and kind in OF_ROWS:
        return [(by == data.subjects, "marginals, and tables of several columns, are shares of the rows")]
    if data.rows is not None:
        most = data.subjects * data.longest_chain
        return [(by % max(data.subjects, 1) == 0 and by <= most, "shares are of the cells of some columns")]
    if weighted:
        return [(by >= data.records, "weighted shares are of all records")]
    if data.base is not None:
        return [(by == data.records, "shares are of the records of the table")]
    return [(by <= data.records, "shares are of some records")]


def _labels_fit(found: ReleaseFields, kind: str) -> bool:
    labels, states = list(found.query.labels), list(found.theta.states)
    if kind in ("sum", "mean"):
        return labels == [kind]
    if kind in Switches.kinds:
        return labels == [kind]
    if kind in Transitions.kinds:
        return labels == [f"{a}{ARROW}{b}" for a in states for b in states]
    if kind in ("count", "frequency", *Bouts.kinds):
        return len(labels) == 1 and _joined(labels[0], states)
    nodes = nodes_of(found)
    if kind in ("marginals", "marginal-counts"):
        return blocks_of(labels, _columns_of(found)) is not None
    if kind in Joint.kinds:
        return joint_nodes(labels, nodes) is not None
    if kind in _CUMULATIVE:
        return labels == [f"up to {state}" for state in states[:-1]]
    if not kind.startswith("histogram"):  # a kind of query whose labels nothing else tells
        return len(set(labels)) == len(labels) > 0
    if nodes and found.data.rows is not None:
        return any(labels == own for own in nodes.values())
    if nodes:
        return len(set(labels)) == len(labels) > 1 and set(labels) <= set(states)
    return labels == states


def _joined(label: str, states: list[str]) -> bool:
    """Whether a label is one or several states, joined by a plus; states may have one in their names too."""
    ends = {0}
    text = label + "+"
    for at in range(len(text)):
        if at in ends:
            ends |= {at + len(state) + 1 for state in states if text.startswith(state + "+", at)}
    return len(text) in ends


def nodes_of(found: ReleaseFields) -> dict[str, list[str]]:
    """Return the nodes of a network with the states of each; none for other models."""
    if found.theta.kind != BayesianNetwork.kind:
        return {}
    first: dict[str, Any] = found.theta.members[0]["nodes"]
    return {name: list(cpt["states"]) for name, cpt in first.items()}


def _columns_of(found: ReleaseFields) -> dict[str, list[str]]:
    """Return the records that have names, with the states of each: nodes of a network, variables of a joint law."""
    if found.theta.kind != JointDistribution.kind:
        return nodes_of(found)
    return {state_label(name): list(found.theta.states) for name in found.theta.members[0]["variables"]}


def blocks_of(labels: list[str], nodes: dict[str, list[str]]) -> list[tuple[str, list[int]]] | None:
    """Return the nodes that marginals are of, with the places of their outputs; None where labels are of no nodes."""
    blocks: list[tuple[str, list[int]]] = []
    begins: dict[str, list[str]] = {}
    for name, states in nodes.items():
        begins.setdefault(f"{name}={states[0]}" if states else "", []).append(name)
    at = 0
    while at < len(labels):
        for name in begins.get(labels[at], ()):
            states = nodes[name]
            if labels[at : at + len(states)] == [f"{name}={state}" for state in states]:
                blocks.append((name, list(range(at, at + len(states)))))
                at += len(states)
                break
        else:
            return None
    return blocks if len({name for name, _ in blocks}) == len(blocks) > 0 else None


def joint_nodes(labels: list[str], nodes: dict[str, list[str]]) -> list[str] | None:
    """Return the nodes whose states are counted together, in the order of the labels; None where there are no such."""
    text = labels[0] if labels else ""

    def named(at: int, left: int, found: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Yield the ways to read the rest of the first label as nodes in their first states; names may hold commas."""
        for name, states in nodes.items():
            part = f"{name}={states[0]}"
            if name in found or left % len(states) or not text.startswith(part, at):
                continue
            end, further = at + len(part), left // len(states)
            if end == len(text) and further == 1:
                yield (*found, name)
            elif text.startswith(", ", end):
                yield from named(end + 2, further, (*found, name))

    for found in named(0, len(labels), ()):
        if len(found) > 1 and combination_labels([(name, nodes[name]) for name in found]) == labels:
            return list(found)
    return None


def postprocessing_rules(found: ReleaseFields) -> Rules:
    """Check that the possible values are those of the query: totals and ranges follow from numbers of records."""
    done = found.postprocessing
    if done is None:
        return []
    kind, unit = found.query.kind, found.noise.unit
    if isinstance(done, Projected):
        return _projected(found, done, kind, unit)
    if isinstance(done, ClippedByGroup):
        return [(False, "ranges of groups are of a release by groups")]
    cumulative = kind in _CUMULATIVE  # with factors of either sign they may fall
    if cumulative != isinstance(done, Ascending):
        return [(False, "cumulative distributions, and they alone, are made ascending")]
    if isinstance(done, Ascending):
        records, sure = _records_read(found)
        fits = near(done.high, records * unit) if sure else done.high <= records * unit * (1 + _SAME)
        return [(done.low == 0 and fits, "the range is from 0 to the number of records")]
    whole = kind.startswith(("histogram", "marginal")) or kind in {*Joint.kinds, *Transitions.kinds}
    rules = [(not whole and kind != "function", "histograms are projected")]
    if kind in _OF_STEPS and not whole:
        total = (found.data.steps or 0) * unit
        return [*rules, (done.low == 0 and near(done.high, total), "the range is that of all possible answers")]
    records, sure = _records_read(found)
    width = (found.query.lipschitz or 0.0) * records
    size = max(abs(done.low), abs(done.high))
    least = done.high - done.low
    if kind in ("count", "frequency"):
        rules.append((done.low == 0, "the range of counts and shares begins at 0"))
    if not kind.startswith(WEIGHTED):
        one = len(found.query.labels) == 1  # one record may move several outputs: then each moves less than all
        fits = abs(least - width) <= _SAME * max(width, size) if sure and one else least <= width + _SAME * size
        rules.append((fits, "the range is that of all possible answers"))
    return rules


def _projected(found: ReleaseFields, done: Projected, kind: str, unit: float) -> Rules:
    labels = list(found.query.labels)
    if kind in ("histogram", "histogram-counts") or kind in {*Joint.kinds, *Transitions.kinds}:
        steps = found.data.steps
        records, sure = _records_read(found) if steps is None else (steps, True)
        whole = [list(block) for block in done.outputs] == [list(range(len(labels)))] and len(done.totals) == 1
        total = done.totals[0] if done.totals else -1.0
        fits = near(total, records * unit) if sure else total <= records * unit * (1 + _SAME)
        what = "the total is the number of records, steps or rows, in the query's unit"
        rows = found.data.rows
        known = kind not in Joint.kinds or rows is None or rows.missing == "refuse"
        return [(whole, "a histogram has one total"), (fits, what), (known, "no cells are missing")]
    blocks = blocks_of(labels, _columns_of(found)) if kind in ("marginals", "marginal-counts") else None
    if blocks is None:
        return [(False, "histograms and marginals alone are projected")]
    observed = found.data.observed
    totals = [(1 if observed is None else observed.get(name, -1)) * unit for name, _ in blocks]
    fits = len(done.totals) == len(totals) and all(map(near, done.totals, totals))
    return [
        ([list(block) for block in done.outputs] == [places for _, places in blocks], "every column has a total"),
        (fits, "the totals are the observed cells of the columns, in the query's unit"),
    ]


def _records_read(found: ReleaseFields) -> tuple[int, bool]:
    """Return how many records a query reads, and whether it is as many; otherwise it is at most so many."""
    data, by = found.data, found.query.divided_by
    if found.query.kind in Joint.kinds:
        return (1 if data.rows is None else data.subjects), True
    if data.rows is not None:
        named = found.query.kind not in ("marginals", "marginal-counts") and by is not None
        return data.records, named and by == data.records
    if by is not None:
        return by, True
    return data.records, data.base is not None


# -- What follows of a release's measurements ------------------------------------------------------------------------

_ROUNDED = 1e-6

_SHARPEST = 10**9
"""Sums of these over all states are far from what 64 bits hold."""


def measured_well(noise: NoiseRecord) -> bool:
    """Whether the numbers of measurements are such that one can compute with them; noise without any is too."""
    if noise.measurements is None:
        return True
    scales = [measurement.scale for measurement in noise.measurements]
    sound = len(scales) > 0 and all(0 < scale < math.inf for scale in scales) and near(max(scales), noise.scale)
    return sound and all(0 < measurement.sharpness <= _SHARPEST for measurement in noise.measurements)


def strategy_rules(found: ReleaseFields) -> Rules:
    """Check measurements: they are of one scale over whole numbers, and what they tell is what the proof was about."""
    noise, said = found.noise, found.accuracy_95
    if noise.measurements is None:
        return [(said.outputs is None, "outputs have errors of their own where noise is added to measurements")]
    if not measured_well(noise):
        return [(False, "measurements have positive scales, of which noise.scale is the largest, and a sharpness")]
    strategy = found.strategy  # refused where the outputs do not follow
    assert strategy is not None
    one, weighted = noise.one_scale, found.query.kind.startswith(WEIGHTED)
    factor = factor_of(found.query) if weighted else 1
    most = float(strategy.distance.max()) * factor
    multiplier = noise.noise_multiplier
    rules = [
        (
            all(near(m.scale * m.sharpness / noise.unit, one) for m in noise.measurements),
            "the scale of each measurement is one scale over its sharpness",
        ),
        (
            multiplier is not None and near(multiplier * most, one),
            "noise_multiplier is one over the largest loss of a record, which follows from the measurements",
        ),
        (
            said.outputs is not None and len(said.outputs) == len(found.values),
            "every output has an error, where noise is added to measurements",
        ),
    ]
    if said.outputs is not None and len(said.outputs) == len(found.values):
        again = found.accuracies(0.05)
        slack = noise.unit * (1 + _ROUNDED)
        close = all(
            on_grid(b / noise.unit) and abs(a - b) <= slack + _ROUNDED * a
            for a, b in zip(again, said.outputs, strict=True)
        )
        rules.append((close, "the errors of outputs are those of their noise"))
    seen = found.mechanism.witness
    if isinstance(seen, PropagationWitness | ForgettingWitness | ClusterWitness) and seen.secret_pair is not None:
        x, x_ = (found.theta.states.index(state) for state in seen.secret_pair)
        own = float(strategy.distance[x, x_]) * factor / one
        same = seen.own <= own * (1 + _ROUNDED) if weighted else math.isclose(seen.own, own, rel_tol=_ROUNDED)
        same = same or seen.own == 0  # a window does not read it
        rules.append((same, "what the record itself tells follows from the measurements"))
    return rules


# -- What follows of a release by groups from itself -----------------------------------------------------------------


def groups_rules(found: ReleaseFields, groups: GroupsRecord) -> Rules:
    """Check the groups of a release, then its values."""
    rules = _of_groups(found, groups)
    if all(holds for holds, _ in rules):
        rules += _of_values(found, groups)
    return rules


def stand_in(found: ReleaseFields, groups: GroupsRecord) -> ReleaseFields:
    """Return a release of all records together with the same noise, and 0 for values."""
    query, noise = found.query, found.noise
    by = None if groups.divided_by is None else sum(groups.divided_by)
    over, zeros = by or 1, [0.0] * len(query.labels)
    alone = msgspec.structs.replace(
        found,
        groups=None,
        query=msgspec.structs.replace(
            query,
            description=of_the_whole(query.description, over),
            lipschitz=None if query.lipschitz is None else query.lipschitz / over,
            divided_by=by,
        ),
        noise=msgspec.structs.replace(
            noise,
            scale=noise.scale / over,
            unit=noise.unit / over,
            measurements=None
            if noise.measurements is None
            else [msgspec.structs.replace(m, scale=m.scale / over) for m in noise.measurements],
        ),
        values=zeros,
        noisy_values=zeros,
        postprocessing=None,
    )
    each, joint = (alone.accuracy(0.05, joint=joint) for joint in (False, True))
    outputs = None if noise.measurements is None else alone.accuracies(0.05).tolist()
    shares = list(dict.fromkeys(quantile.share for quantile in found.quantiles or ()))
    quantiles = alone.quantiles_at(shares) if shares else found.quantiles
    return msgspec.structs.replace(alone, accuracy_95=AccuracyRecord(0.05, each, joint, outputs), quantiles=quantiles)


def _of_groups(found: ReleaseFields, groups: GroupsRecord) -> Rules:
    data, n = found.data, len(groups.cells)
    read = data.rows if data.base is None else data.base
    all_records = data.subjects if data.rows is not None else data.records
    kind = KINDS.get(found.query.kind)
    rules = [
        (read is not None and read.by is not None and list(read.by) == groups.by, "groups are those that were read"),
        (0 < n == len(groups.records) == len(groups.error_95), "every group has a number of records, and an error"),
        (all(len(cell) == len(groups.by) for cell in groups.cells), "every group has a label under each grouping"),
        (len({tuple(cell) for cell in groups.cells}) == n, "groups differ"),
        (_in_order(groups), "groups are in their order"),
        (all(count >= 1 for count in groups.records), "every group has records"),
        (sum(groups.records) == all_records, "the records of all groups are those of the table"),
        (kind is not None, "the query is one of numbers of records"),
        (kind is not None and kind.relative == (groups.divided_by is not None), "shares and means are divided"),
        (found.query.divided_by is None, "it is groups that are divided by their records"),
        (
            _sound(found.noise, sum(groups.divided_by or [1])),
            "scale and unit are positive, and those of noise that fits",
        ),
        (measured_well(found.noise), "measurements have positive scales, and a sharpness above 0"),
        (
            n * len(found.query.labels) == len(found.values) == len(found.noisy_values) > 0,
            "there is one value for each group and label",
        ),
    ]
    if all(holds for holds, _ in rules):
        rules += _quantiles(found)
    if groups.nested is not None:
        within = [(i, name) for i, name in enumerate(groups.by[:-1]) if name in groups.nested]
        own = [{(cell[i], cell[i + 1]) for cell in groups.cells} for i, _ in within]
        once = all(len(pairs) == len({inner for inner, _ in pairs}) for pairs in own)
        rules.append((once and [name for _, name in within] == groups.nested != [], "nested groups are in wider ones"))
    steps = groups.steps
    if found.query.kind in _OF_STEPS:
        rules.append((steps is not None and len(steps) == n, "steps are counted in every group"))
        if steps is not None and len(steps) == n:
            fit = all(0 <= into <= count for into, count in zip(steps, groups.records, strict=False))
            rules.append((fit, "each step of a group leads to one of its records"))
            rules.append((sum(steps) == data.steps, "each step of the table is in one group"))
    else:
        rules.append((steps is None, "steps are said where they are counted"))
    if groups.divided_by is not None and all(holds for holds, _ in rules):
        times = groups.divided_by[0] // groups.records[0] if groups.divided_by else 0
        most = len(nodes_of(found)) if data.rows is not None and found.query.kind not in OF_ROWS else 1
        rules += [
            (1 <= times <= most, "a group is divided by its records, or by those of some columns"),
            (groups.divided_by == [times * count for count in groups.records], "all groups are divided alike"),
        ]
    return rules


def _of_values(found: ReleaseFields, groups: GroupsRecord) -> Rules:
    noise, m = found.noise, len(found.query.labels)
    by = groups.divided_by or [1] * len(groups.cells)
    done, said = found.postprocessing, found.accuracy_95
    values = found.noisy_values if done is None else done.of(found.noisy_values)
    again = [found.accuracy(0.05, joint=joint) for joint in (False, True)]
    units = (value * by[i // m] / noise.unit for i, value in enumerate(found.noisy_values))
    errors = found.accuracies(0.05)
    outputs = said.outputs if noise.measurements is None else errors.max(axis=0).tolist()
    return [
        (found.values == values, "values are what the post-processing makes of noisy_values"),
        (all(_whole_groups(number) for number in units), "noisy_values are whole numbers of units"),
        (all(map(_as_said, errors.max(axis=1), groups.error_95)), "error_95 is that of the noise, for each group"),
        (
            (noise.measurements is None) == (said.outputs is None)
            and len(said.outputs or ()) == len(outputs or ())
            and all(map(_as_said, outputs or (), said.outputs or ())),
            "outputs have errors of their own where noise is added to measurements, the largest of any group",
        ),
        (
            said.alpha == 0.05 and all(map(_as_said, again, (said.each, said.joint))),
            "accuracy_95 is that of the noise, in the group where it is most",
        ),
        *_possible(found, groups, by),
    ]


def _possible(found: ReleaseFields, groups: GroupsRecord, by: list[int]) -> Rules:
    """Check totals and ranges of the possible values of each group."""
    done, query, m = found.postprocessing, found.query, len(found.query.labels)
    if done is None:
        return []
    worth = [n * found.noise.unit / d for n, d in zip(groups.steps or groups.records, by, strict=True)]
    histogram = query.kind.startswith(("histogram", "marginal")) or query.kind in {*Joint.kinds, *Transitions.kinds}
    rules = [
        (isinstance(done, Projected if histogram else ClippedByGroup), "histograms are projected, all else is clipped"),
        (found.data.rows is None or found.data.rows.missing == "refuse", "no cells are missing"),
    ]
    if isinstance(done, Projected):
        blocks = blocks_of(list(query.labels), nodes_of(found)) if query.kind.startswith("marginal") else None
        own = [list(range(m))] if blocks is None else [places for _, places in blocks]
        places = [[g * m + place for place in block] for g in range(len(worth)) for block in own]
        given, expected = list(done.totals), [w for w in worth for _ in own]
        rules.append(([list(block) for block in done.outputs] == places, "each group has its totals"))
    elif isinstance(done, ClippedByGroup):
        cumulative = query.kind in _CUMULATIVE
        rules.append(
            (isinstance(done, AscendingByGroup) == cumulative, "cumulative distributions, and they alone, ascend")
        )
        given = [high - low for low, high in zip(done.low, done.high, strict=False)]
        once = cumulative or query.kind in _OF_STEPS  # up to one state a record counts once, and a step counts once
        of_record = found.noise.unit if once else query.lipschitz or 0.0
        expected = [w / found.noise.unit * of_record for w in worth]
        zero = query.kind not in ("count", "frequency") or not any(done.low)
        rules.append((done.outputs == m and zero, "each group has its range"))
    else:
        return rules
    times = round(given[0] / expected[0]) if given and expected[0] else 0
    most = len(nodes_of(found)) if found.data.rows is not None else 1
    same = len(given) == len(expected) and all(near(a, times * b) for a, b in zip(given, expected, strict=True))
    rules.append((same and 1 <= times <= most, "totals and ranges are those of so many records"))
    return rules


def _sound(noise: NoiseRecord, over: int) -> bool:
    """Whether noise is some, also where it is divided by so many records."""
    positive = all(0 < number < math.inf for number in (noise.scale, noise.unit))
    return over > 0 and positive and noise.unit / over > 0 and fits(noise.scale / noise.unit)


def _in_order(groups: GroupsRecord) -> bool:
    cells = [tuple(cell) for cell in groups.cells]
    return len({len(cell) for cell in cells}) == 1 and list(in_order(cells)) == cells


def _as_said(computed: float, said: float) -> bool:
    return abs(computed - said) <= _SAME * computed + 1e-300


def _whole_groups(number: float) -> bool:
    return abs(number) < 2.0**63 and abs(number - round(number)) <= 2.0**-48 * abs(number)


# -- What follows of a release's witness from its mechanism ----------------------------------------------------------

TITLES = {m.name: m.title for m in (*MECHANISMS, ParticipantDP, ApproximateWasserstein)}
BOUND_NAMES = {m.name for m in (*BOUNDS, ParticipantDP)}

_OF_ALL_RECORDS = {m.name for m in (*BOUNDS, ParticipantDP) if m.of_all_records}
_INTERVALS = (BinaryChainInterval.kind, IntervalChain.kind)

_KINDS = {m.name: m.witnesses for m in (*MECHANISMS, ParticipantDP, ApproximateWasserstein)}
"""What decides, mechanism by mechanism."""

_SEARCHED = {m.name for m in BOUNDS if m.searches_continuum}
"""What searches all of a continuum of two-state chains."""

_HAS_PAIR = (PropagationWitness, ClusterWitness, CouplingWitness, LawWitness)
"""Kinds of witnesses that always name a pair of secrets."""

_WITNESS_ROUNDED = 1e-9
_PROVED = 1e-3
"""By what share a proof may be above what its own witness tells."""
_WIDENED = 1e-6
"""By how much a member that was found may lie outside the bounds, which are widened by how they were rounded."""


def witness_rules(found: ReleaseFields) -> Rules:
    """Check who the witness is, and that what it tells makes the leakage."""
    return [*_who(found), *_tells(found), *_member(found)]


def _who(found: ReleaseFields) -> Rules:
    """Check which secret it is: its member of Θ, its record, its pair of values."""
    seen, theta, secrets = found.mechanism.witness, found.theta, found.mechanism.secrets
    name, nodes = found.mechanism.name, nodes_of(found)
    members = max(1, len(theta.chains) + len(theta.members))
    pair, node = seen.secret_pair, seen.node
    if name in _OF_ALL_RECORDS or isinstance(seen, AloneWitness | ColumnsWitness):
        known = node is None
    elif nodes:
        known = node in nodes or (node is None and secrets is not None)
    elif _of_chains(theta.kind):
        known = _is_step(node, seen.length) or (node is None and secrets is not None)
    else:
        known = node is None or _is_step(node, seen.length)
    named = secrets is not None and (pair in secrets or (pair is not None and pair[::-1] in secrets))
    states = nodes.get(str(node), []) if nodes and node is not None else theta.states
    return [
        (0 <= seen.theta < members, "the witness is a member of theta"),
        (1 <= seen.length <= found.mechanism.longest_chain, "the witness's length is at most longest_chain"),
        (known, "the witness's node is one of its chain or network, and there where the mechanism knows one"),
        (pair is None or pair[0] != pair[1] or isinstance(seen, StretchWitness), "the secret pair is of two secrets"),
        (pair is None or named or all(s in states for s in pair), "the secret pair is of states of theta, or secrets"),
        (pair is not None or not isinstance(seen, _HAS_PAIR), "such a witness names a secret pair"),
        (
            pair is None or not (name in _OF_ALL_RECORDS or isinstance(seen, AloneWitness)),
            "a mechanism for all records has no secret pair",
        ),
    ]


def _decides(found: ReleaseFields) -> tuple[str, dict[str, Any]]:
    """Return the kind of the member of Θ that decides, and its numbers; {} where there is no such member."""
    theta, number = found.theta, found.mechanism.witness.theta
    if 0 <= number < len(theta.chains):
        return theta.kind, msgspec.structs.asdict(theta.chains[number])
    plain = theta.members[number] if 0 <= number < len(theta.members) else {}
    return (plain.get("kind", ""), plain.get("model", {})) if theta.kind == MIXED else (theta.kind, plain)


def _tells(found: ReleaseFields) -> Rules:
    """Check what the witness tells: it is what the leakage is made of, which is how the noise was chosen."""
    seen, name, nodes, (kind, _) = found.mechanism.witness, found.mechanism.name, nodes_of(found), _decides(found)
    rules = [
        (isinstance(seen, _KINDS[name]), "the witness is of a kind that its mechanism gives"),
        (
            kind not in CONTINUA or seen.kind in CONTINUA[kind].witnesses,
            "the witness is of a kind that its class of chains has",
        ),
        (bool(nodes) or not isinstance(seen, ClusterWitness), "clusters tell in networks, past and future in chains"),
        (not (nodes and isinstance(seen, PropagationWitness)), "clusters tell in networks, past and future in chains"),
    ]
    match seen:
        case QuiltWitness():
            return [*rules, *_quilt(found, seen, nodes)]
        case PropagationWitness() | ForgettingWitness():
            beyond = (seen.past and seen.node == 0) or (seen.future and seen.node == seen.length - 1)
            ends = (not beyond, "nothing comes before the first record of a chain, and nothing after its last")
            parts = _parts(found, (seen.own, seen.past, seen.future), _PROVED)
            return [*rules, ends, *_phase(found, seen), *parts, *_forgotten(found, (seen.past, seen.future))]
        case StretchWitness():
            asked = (found.calibration.settings or {}).get("protect")
            steps = seen.length if seen.by == "series" or asked == "subject" else min(asked or 0, seen.length)
            return [
                *rules,
                (asked is not None, "stretches decide where they are protected"),
                (seen.steps == steps, "the stretch has as many steps as are protected"),
                (
                    isinstance(seen.node, int) and seen.node + steps <= seen.length,
                    "the stretch ends inside of its chain",
                ),
                *_parts(found, (seen.own, seen.past, seen.future), _PROVED),
            ]
        case ColumnsWitness():
            return [*rules, *_columns(found, seen, nodes), *_parts(found, (seen.own, seen.others), _PROVED)]
        case ClusterWitness():
            return [
                *rules,
                *_clusters(seen, nodes),
                *_parts(found, (seen.own, *(v for _, v in seen.neighbours)), _WITNESS_ROUNDED),
            ]
        case CouplingWitness():
            moves = 0 < seen.distance < math.inf
            ratio = seen.distance / found.noise.scale if moves else math.nan
            agrees = math.isclose(ratio, found.mechanism.leakage, rel_tol=1e-6)
            return [*rules, (moves, "the distance is positive"), (agrees, "the leakage is distance over scale")]
        case _:
            return rules


def _forgotten(found: ReleaseFields, sides: Sequence[float]) -> Rules:
    """Check that the records on each side tell no more than they do where all have the largest loss, without end."""
    seen, theta, multiplier = found.mechanism.witness, found.theta, found.noise.noise_multiplier
    kind, plain = _decides(found)
    known = kind in CONTINUA or not isinstance(seen, ForgettingWitness)
    rules = [(known, "what was forgotten is told where Θ says what that is")]
    if kind == ForgettingClass.kind and plain and multiplier is not None:
        pairs: list[Any] = ForgettingClass(**plain, states=theta.states, origin=theta.origin).forgets
        most = math.log1p(fixed_point(1 / multiplier, pairs))
        rules.append(
            (
                all(side <= most * (1 + _WITNESS_ROUNDED) for side in sides),
                "earlier and later records tell what Θ lets them",
            )
        )
    return rules


def _phase(found: ReleaseFields, seen: PropagationWitness | ForgettingWitness) -> Rules:
    """Check that a phase is one of the clock of the member that decides."""
    if not isinstance(seen, PhaseWitness):
        return []
    kind, plain = _decides(found)
    phases = len(plain["matrices"]) if kind == PeriodicChain.kind and plain else 0
    return [(0 <= seen.phase < phases, "the witness's phase is one of theta's clock")]


def _quilt(found: ReleaseFields, seen: QuiltWitness, nodes: dict[str, list[str]]) -> Rules:
    data, leakage, multiplier = found.data, found.mechanism.leakage, found.noise.noise_multiplier
    ends: list[Any] = list(seen.active_quilt)
    if nodes:
        apart = len(set(ends)) == len(ends) and all(end in nodes for end in ends) and seen.node not in ends
        near = 1 <= seen.nearby <= len(nodes)
    else:
        apart = all(_is_step(end, seen.length) for end in ends)
        before = [end for end in ends if apart and isinstance(seen.node, int) and end < seen.node]
        after = [end for end in ends if apart and isinstance(seen.node, int) and end > seen.node]
        apart = apart and ends == before + after and len(before) <= 1 and len(after) <= 1
        span = (after[0] if after else seen.length) - (before[0] if before else -1) - 1
        gaps = data.records < data.chains * data.longest_chain or data.longest_chain < found.mechanism.longest_chain
        some = gaps or found.mechanism.name in _OF_ALL_RECORDS
        near = 1 <= seen.nearby <= span if some else seen.nearby == span
    within = 0 <= seen.influence <= leakage * (1 + _WITNESS_ROUNDED)
    rules = [
        (apart, "the quilt is of other nodes, at most one on each side of a chain's record"),
        (near, "the nearby records are those within the quilt"),
        (within, "the witness tells nothing negative, and nothing above the leakage, which is at most epsilon"),
    ]
    if within and multiplier is not None and seen.nearest is None:
        most = seen.nearby / multiplier + seen.influence
        rules.append(
            (leakage <= most * (1 + _WITNESS_ROUNDED), "the nearby records and the influence make the leakage")
        )
    return rules


def _columns(found: ReleaseFields, seen: ColumnsWitness, nodes: dict[str, list[str]]) -> Rules:
    asked = (found.calibration.settings or {}).get("protect")
    columns = None if seen.columns is None else list(seen.columns)
    known = [nodes.get(name, []) for name in columns or ()]
    values = [v for v in (seen.values, seen.other_values) if v is not None]
    fit = all(len(v) == len(known) and all(map(operator.contains, known, v)) for v in values)
    return [
        (asked == ("row" if columns is None else columns), "the columns are those that are hidden"),
        ((seen.by == "row") == (columns is None), "of a whole row all losses count"),
        (fit and len(values) in (0, 2), "both combinations are of values of the columns"),
    ]


def _clusters(seen: ClusterWitness, nodes: dict[str, list[str]]) -> Rules:
    others = set(nodes) - {str(seen.node)}
    apart = all(near and set(near) <= others and len(set(near)) == len(near) for near, _ in seen.neighbours)
    return [(apart, "neighbours are other nodes of the network")]


def _parts(found: ReleaseFields, parts: Sequence[float], missing: float) -> Rules:
    """Check that what the record itself tells, first, and what others tell of it are the leakage."""
    leakage, multiplier, total = found.mechanism.leakage, found.noise.noise_multiplier, sum(parts)
    searched = found.mechanism.witness.nearest is not None
    return [
        (
            all(0 <= v <= leakage * (1 + _WITNESS_ROUNDED) for v in parts),
            "the witness tells nothing negative, and nothing above the leakage, which is at most epsilon",
        ),
        (total <= leakage * (1 + _WITNESS_ROUNDED), "what the witness tells is at most the leakage"),
        (searched or leakage <= total * (1 + missing), "the witness tells the leakage"),
        (
            multiplier is None
            or isinstance(found.mechanism.witness, StretchWitness | ColumnsWitness)
            or parts[0] * multiplier <= 1 + _WITNESS_ROUNDED,
            "the record itself tells at most lipschitz over scale",
        ),
    ]


def _member(found: ReleaseFields) -> Rules:
    """Check the member of a continuum that the witness names: it lies within the bounds of Θ."""
    seen, theta, (kind, plain) = found.mechanism.witness, found.theta, _decides(found)
    nearest = seen.nearest
    if nearest is None:
        searched = kind == BinaryChainInterval.kind and found.mechanism.name in _SEARCHED
        return [(not searched, "a search of a continuum names the member that comes nearest")]
    law, matrix, k = nearest.initial_distribution, nearest.transition_matrix, len(theta.states)
    is_matrix = matrix is None or (len(matrix) == k and all(_is_law(row, k) for row in matrix))
    is_start = law is None or (law in ("any", "stationary") if isinstance(law, str) else _is_law(law, k))
    rules = [
        (is_matrix, "the witness has a matrix"),
        (is_start, "the witness has an initial law"),
        ((matrix is None) == (law is None), "the witness's member has a matrix and an initial law"),
        (0 <= nearest.gap < math.inf, "the gap is not negative"),
    ]
    start: Any = plain.get("initial_distribution", "any")
    searched = kind in _INTERVALS or (kind == MarkovChain.kind and start == "any")
    rules.append((searched, "a gap is that of a class which is a continuum"))
    if matrix is not None and is_matrix and searched:
        rules.append((_is_within(found, matrix), "the witness's matrix is of theta"))
        rules.append(((law == "stationary") == (start == "stationary"), "the witness's initial law is of theta"))
    return rules


def _is_within(found: ReleaseFields, matrix: Sequence[Sequence[float]]) -> bool:
    kind, plain = _decides(found)
    if kind == MarkovChain.kind:
        lower: Any = plain["transition_matrix"]
        upper = lower
    elif kind == IntervalChain.kind:
        lower, upper = plain["lower"], plain["upper"]
    else:
        low, high = plain["low"], plain["high"]
        lower, upper = [[low, 1 - high], [1 - high, low]], [[high, 1 - low], [1 - low, high]]
    return all(
        low - _WIDENED <= p <= high + _WIDENED
        for row, lows, highs in zip(matrix, lower, upper, strict=True)
        for p, low, high in zip(row, lows, highs, strict=True)
    )


def _of_chains(kind: str) -> bool:
    """Whether the records of a class of this kind are steps of chains."""
    return kind in {"Markov chains", MIXED, *CONTINUA, *(model.kind for model in CHAIN_MODELS)}


def _is_step(node: Any, length: int) -> bool:
    return isinstance(node, int) and 0 <= node < length


def _is_law(row: Sequence[float], k: int) -> bool:
    return len(row) == k and all(0 <= p <= 1 for p in row) and abs(sum(row) - 1) <= 1e-6


"""What is computed again may differ by this share: other versions of numpy round otherwise."""

PROGRAM = "pufferfish-privacy"

_FOR_ONE_QUERY = [kind.name for kind in (*MECHANISMS, ApproximateWasserstein) if not kind.composes]


def contradictions(record: ReleaseFields) -> Iterator[str]:
    """Say what was expected of a release and does not hold.

    Raises
    ------
    PufferfishError, ValueError
        Where a part of it is none by itself.
    """
    if record.subjects is not None:
        yield from _of_each(record, record.subjects)
        return
    found, groups = record, record.groups
    if groups is not None:
        own = groups_rules(found, groups)
        yield from (rule for holds, rule in own if not holds)
        if not all(holds for holds, _ in own):
            return
        found = stand_in(found, groups)
    elif any(read is not None and read.by is not None for read in (found.data.base, found.data.rows)):
        yield "a table that was read by groups is released by groups"
    rules = [*_numbers(found), *_places(found), *_counted(found)]
    yield from (rule for holds, rule in rules if not holds)
    if all(holds for holds, _ in rules):
        # these compute with numbers that are sound by now
        later = (query_rules, strategy_rules, _values, postprocessing_rules, witness_rules, _sentences)
        yield from (rule for rules_of in later for holds, rule in rules_of(found) if not holds)


def _of_each(found: ReleaseFields, subjects: SubjectsRecord) -> Iterator[str]:
    """Say the same of a release for each subject: the rules are asked about one of all records, whose values are 0."""
    yield from contradictions(_of_all(found, subjects))
    outputs = len(found.query.labels)
    said, again = found.accuracy_95, _accuracy_of(found.noise, outputs)
    if found.groups is not None or found.values or found.noisy_values or found.quantiles:
        yield "the values of subjects are in their table"
    done, query = found.postprocessing, found.query
    if done is not None:
        if not isinstance(done, BySubject):
            yield "possible values are those of each subject"
        elif done.projected != (query.kind in ("histogram", "histogram-counts")):
            yield "histograms are projected, and other values clipped"
        elif not done.low <= done.high:
            yield "the range of one record is one"
    same = near(said.each, again.each) and near(said.joint, again.joint)
    if not (same and (said.alpha, said.outputs) == (again.alpha, again.outputs)):
        yield "accuracy_95 is that of the noise"
    if subjects.table is not None:
        table, columns = subjects.table, columns_of(found.postprocessing is not None)
        own = table.rows == found.data.subjects * outputs and table.columns == columns
        plain = table.name == os.path.basename(table.name) and len(table.sha256) == 64
        if not (own and plain):
            yield "the table has a row for each subject and output"


def _accuracy_of(noise: NoiseRecord, outputs: int) -> AccuracyRecord:
    return AccuracyRecord(0.05, noise.accuracy(0.05), noise.accuracy(0.05, outputs))


def _of_all(found: ReleaseFields, subjects: SubjectsRecord) -> ReleaseFields:
    """Return a release of all records together with the same noise, and 0 for values."""
    query, records = found.query, found.data.records
    by, outputs = (records if subjects.divided_by_records else 1), len(query.labels)
    noise = NoiseRecord(found.noise.law, found.noise.scale / by, found.noise.unit / by, found.noise.noise_multiplier)
    own = {"query", "values", "noisy_values", "postprocessing", "noise", "accuracy_95", "subjects"}
    return ReleaseFields(
        query=QueryRecord(
            query.kind,
            of_the_whole(query.description, records),
            query.labels,
            (query.lipschitz or 0.0) / by,
            records if subjects.divided_by_records else None,
        ),
        values=[0.0] * outputs,
        noisy_values=[0.0] * outputs,
        postprocessing=None,
        noise=noise,
        accuracy_95=_accuracy_of(noise, outputs),
        **{name: getattr(found, name) for name in found.__struct_fields__ if name not in own},
    )


def factor_of(query: QueryRecord) -> int:
    """Return the largest factor, without sign, with which a record counts in a query whose kind says what one moves."""
    kind = query.kind.removeprefix(WEIGHTED)
    moves = KINDS[kind].moves or len(query.labels)  # from the first state to the last, in a cumulative distribution
    return round((query.lipschitz or 0.0) * (query.divided_by or 1) / moves)


def _counted(found: ReleaseFields) -> Rules:
    """Check what got noise: the loss that follows of it is one over the noise multiplier."""
    counted, noise, of_user = found.counted, found.noise, noise_of_user(found)
    if counted is None:
        return [(of_user, "what got noise is there, but for functions of the user's")]
    scale, most, numbers = Fraction(counted.scale), 0, set[int]()
    for states in counted.adds:
        for added in states:
            numbers |= {number for number, _ in added}
        distinct = {tuple(added) for added in states}
        for one, other in product(distinct, distinct):
            a, b = dict(one), dict(other)
            most = max(most, sum(abs(a.get(m, 0) - b.get(m, 0)) for m in {*a, *b}))
    most *= max((abs(factor) for _, factor in counted.factors or [(1, 1)]), default=0)
    multiplier = noise.noise_multiplier
    same = counted.each == "step" or multiplier is None  # a record has two steps, which may be of one output
    if not same and multiplier is not None:
        same = near(multiplier, float(scale / most)) if most else multiplier > 0
    of = len(found.query.labels) if noise.measurements is None else len(noise.measurements)
    return [
        (same, "noise_multiplier is the scale over what one record moves"),
        (numbers <= set(range(of)), "the numbers that got noise are the outputs, or the measurements"),
        (Fraction(found.calibration.unit_scale) == scale, "counted.scale is that of the noise, to the last bit"),
    ]


def noise_of_user(found: ReleaseFields) -> bool:
    """Whether the noise is for a function of the user's."""
    return found.calibration.query is None


def _numbers(found: ReleaseFields) -> Rules:
    noise, query = found.noise, found.query
    labels = len(query.labels)
    positive = 0 < noise.scale < math.inf and 0 < noise.unit < math.inf
    unit_scale = noise.scale / noise.unit if positive else 0.0
    several = None if query.lipschitz is None or not positive else query.lipschitz / noise.unit
    multiplier = noise.noise_multiplier
    return [
        (0 < labels == len(found.values) == len(found.noisy_values), "there is one value per label"),
        (0 < found.epsilon < math.inf, "epsilon is positive and finite"),
        (0 <= found.delta < 1, "delta is a probability below 1"),
        (
            (found.delta > 0) == (found.mechanism.name == ApproximateWasserstein.name),
            "delta is above 0 for the one mechanism that has it",
        ),
        (0 <= found.mechanism.leakage <= found.epsilon, "the leakage is at most epsilon"),
        (positive, "scale and unit are positive"),
        (positive and fits(unit_scale), "scale over unit is that of noise which fits 64-bit integers"),
        ((query.lipschitz is None) == (multiplier is None), "lipschitz and noise_multiplier are there together"),
        (several is None or _whole(several), "lipschitz is a positive whole number of units"),
        (
            noise.measurements is None or found.mechanism.name in BOUND_NAMES,
            "measurements are of a mechanism that composes",
        ),
        (
            noise.measurements is None or len(noise.measurements) > 0,
            "measurements are some, or there are none",
        ),
        (
            noise.measurements is not None
            or multiplier is None
            or query.lipschitz is None
            or near(noise.scale, multiplier * query.lipschitz),
            "the scale is noise_multiplier times lipschitz",
        ),
        (is_moment(found.created), "created is a time"),
        (len(found.assumptions) > 0, "it says what is assumed"),
        (len(found.not_promised) > 0, "it says what is not promised"),
        (f"e^{at_most(found.epsilon)} " in found.promise, f"the promise speaks of e^{at_most(found.epsilon)}"),
        (PROGRAM in found.software, f"software names the version of {PROGRAM}"),
    ]


def _places(found: ReleaseFields) -> Rules:
    """Check data, mechanism and ledger."""
    data, booked, mechanism, theta = found.data, found.ledger, found.mechanism, found.theta
    of_chains, base = _of_chains(theta.kind), data.base
    cut = base is not None and base.gaps == "independent"
    rules = [
        (mechanism.name in TITLES, "the mechanism is one of this program's"),
        (
            TITLES.get(mechanism.name, mechanism.title) == mechanism.title,
            f"the mechanism {mechanism.name!r} has the title {TITLES.get(mechanism.name)!r}",
        ),
        (mechanism.secrets is None or len(mechanism.secrets) > 0, "secrets are pairs, or none are given"),
        (min(data.subjects, data.chains, data.longest_chain) >= 1, "there are subjects, chains and steps"),
        (
            data.records >= (0 if data.rows is not None else data.chains),
            "the number of records is none below 0, nor below that of the chains",
        ),
        (data.records <= data.chains * data.longest_chain, "no chain has more records than steps"),
        (base is None or data.rows is None, "the data are sequences or rows"),
        (base is None or of_chains or theta.kind == Cliques.kind, "sequences are of chains, or cliques"),
        (data.rows is None or theta.kind == BayesianNetwork.kind, "rows are of networks"),
        ((data.rows is None) == (data.observed is None), "rows say how many cells of each column were observed"),
        (base is not None or data.rows is not None or data.subjects == 1, "one database is of one subject"),
        (
            base is None or (data.subjects <= data.chains if cut else data.subjects == data.chains),
            "every subject is a chain, or several where gaps cut it",
        ),
        (mechanism.longest_chain < MOST_STEPS, "the noise is for chains as long as there can be"),
        (
            all(text is None or text.strip() for text in _optional_texts(found)),
            "filter, gap and step must be absent or non-empty",
        ),
        (data.longest_chain <= mechanism.longest_chain, "the noise is for chains as long as the longest of the data"),
        *_of_named_records(found),
    ]
    if booked is not None:
        rules += [
            (booked.entry >= 1, "the place in the ledger is at least 1"),
            (re.fullmatch("[0-9a-f]{64}", booked.previous) is not None, "the entry before is named by its digest"),
            (0 < booked.budget < math.inf and 0 <= booked.spent <= booked.budget, "what is spent is in the budget"),
            (booked.mechanism in BOUND_NAMES, "the ledger's mechanism is one of this program's"),
        ]
    return rules


def _optional_texts(found: ReleaseFields) -> list[str | None]:
    """Return what was asked of a table's rows, or was not."""
    base, rows = found.data.base, found.data.rows
    return [
        *([] if base is None else [base.where, base.max_gap, base.step, base.time_zone]),
        *([] if rows is None else [rows.where]),
    ]


def _of_named_records(found: ReleaseFields) -> Rules:
    """Check the numbers of records that Θ itself tells: of networks, joint laws and cliques."""
    data, mechanism, theta = found.data, found.mechanism, found.theta
    nodes = nodes_of(found)
    if nodes:
        own = [(mechanism.longest_chain == len(nodes), "longest_chain are the nodes of the network")]
        if data.rows is None or data.observed is None:
            return [*own, (data.records == len(nodes), "the records of one row are the nodes of the network")]
        cells = data.observed
        least = data.subjects if data.rows.missing == "refuse" else 0
        return [
            *own,
            (data.longest_chain == len(nodes), "the longest chain are the nodes of the network"),
            (data.subjects == data.chains, "every row is a subject"),
            (cells.keys() == data.rows.columns.keys(), "the observed columns are those that were read"),
            (
                all(least <= n <= data.subjects for n in cells.values()),
                "no column has more observed cells than rows, nor fewer where none may be missing",
            ),
            (sum(cells.values()) == data.records, "records are the observed cells"),
            (cells.keys() <= nodes.keys(), "the columns that were read are nodes of theta"),
        ]
    if theta.kind == GivenLaws.kind:
        own = data.chains == 1 and data.records == data.longest_chain == mechanism.longest_chain
        return [(own, "laws of your own are about one group of records")]
    sizes: list[int] | None = None
    if theta.kind == JointDistribution.kind:
        sizes = [len(theta.members[0]["variables"])]
    elif theta.kind == Cliques.kind:
        laws: list[Any] = theta.members[0]["laws"]
        sizes = [len(law) - 1 for law in laws]
    if sizes is None:
        return []
    stated = data.chains, data.records, data.longest_chain, mechanism.longest_chain
    return [(stated == (len(sizes), sum(sizes), max(sizes), max(sizes)), "the records are those of theta")]


def _values(found: ReleaseFields) -> Rules:
    """Check values, their grid, and their accuracy; computed where the numbers they rest on are sound."""
    noise, said = found.noise, found.accuracy_95
    done = found.postprocessing
    values = found.noisy_values if done is None else done.of(found.noisy_values)
    again = [found.accuracy(said.alpha, joint=joint) for joint in (False, True)] if said.alpha == 0.05 else []
    return [
        (
            found.values == values,
            "values are what the post-processing makes of noisy_values",
        ),
        (all(on_grid(v / noise.unit) for v in found.noisy_values), "noisy_values are whole numbers of units"),
        (
            len(again) == 2
            and all(
                on_grid(b / noise.unit) and abs(a - b) <= noise.unit * (1 + _SAME) + _SAME * a
                for a, b in zip(again, (said.each, said.joint), strict=True)
            ),
            "accuracy_95 is that of the noise",
        ),
    ]


def _sentences(found: ReleaseFields) -> Rules:
    """Check what sentences say: numbers and names always, all the words where this very version wrote them."""
    theta, data, booked = found.theta, found.data, found.ledger
    rules = [(f"({theta.origin})." in found.assumptions[0], "the first assumption says where theta comes from")]
    if booked is not None:
        number, spent = f"number {booked.entry})", f"at most {at_most(booked.spent)};"
        told = any(number in sentence and spent in sentence for sentence in found.not_promised)
        rules.append((told, "what is not promised speaks of the ledger's entry, and of what it spent"))
    if found.software[PROGRAM] != versions()[PROGRAM]:
        return rules
    networks, of_chains = theta.kind == BayesianNetwork.kind, _of_chains(theta.kind)
    secrets = found.mechanism.secrets
    settings, base = found.calibration.settings or {}, data.base
    within = settings.get("within")
    near = tuple(map(tuple, within)) if isinstance(within, list) else within
    asked: Any = settings.get("protect")
    protection: Protection | None = None if asked is None else StretchProtection(asked, near)
    columns = networks and asked is not None
    if columns:
        protection = ColumnsProtection(None if asked == "row" else tuple(asked))
    step = None if base is None or base.max_gap is None else base.step or data.usual_step
    hidden: Any = {"of_chains": of_chains, "networks": networks, "protection": protection, "step": step}
    promise = promise_of(found.epsilon, found.delta, secrets, **hidden)
    named = secrets is not None
    stretch = not columns and asked not in (None, 1, "subject")
    rules.append((not stretch or f"{asked:,} step" in found.hides, "hides says how many steps"))
    named_columns = columns and asked != "row"
    told = not named_columns or all(name in found.hides for name in asked[:20])
    rules.append((told, "hides names the columns"))
    plain = found.hides.startswith("any one record") == (not named and asked in (None, 1))
    rules.append((plain, "hides says one record where that is hidden"))
    rules.append((found.promise == promise, "the promise speaks of epsilon, delta, theta and the secrets"))
    composes = found.mechanism.name not in _FOR_ONE_QUERY
    kinds = [member["kind"] for member in theta.members] if theta.kind == MIXED else [theta.kind]
    not_promised = not_promised_of(secrets, booked, kinds=kinds, composes=composes, protection=protection)
    rules.append((found.not_promised == not_promised, "what is not promised is what this program says"))
    read = data.rows if data.base is None else data.base
    assumed = assumed_of(read, of_chains=of_chains)
    if read is not None and read.by is not None and found.query.kind in _OF_STEPS:
        assumed.append("Each step from record to record counts in the group of the record that it leads to.")
    checked = found.checked
    words = ["never checked"] if checked is None else [checked.word, checked.date]
    rules.append((all(word in found.assumptions[0] for word in words), "the first assumption tells of a check"))
    rules.append((found.assumptions[1:] == assumed, "the assumptions say how the table was read, and nothing else"))
    return [*rules, *_units(found)]


def _units(found: ReleaseFields) -> Rules:
    """Check what is promised of other units: the larger a unit is, the larger is ε; and that of its own is kept."""
    if not found.promises:
        return []
    stretches = [each.epsilon for each in found.promises[:-1] if not each.near and each.columns is None]
    asked = (found.calibration.settings or {}).get("protect")
    own = [each.epsilon for each in found.promises if each.steps == (asked or 1) and not each.near]
    if found.theta.kind == BayesianNetwork.kind and asked is not None:  # the row is the last of those without columns
        units = {"row" if each.columns is None else each.columns: each.epsilon for each in found.promises[:-1]}
        own = [units["row" if asked == "row" else tuple(asked)]]
    kept = all(epsilon <= found.epsilon * (1 + 1e-9) for epsilon in own) or "within" in str(found.calibration.settings)
    return [
        (stretches == sorted(stretches), "a longer stretch leaks no less"),
        (all(0 <= each.epsilon < math.inf for each in found.promises), "what units leak is finite"),
        (kept, "what the noise is for leaks at most epsilon"),
    ]


def _whole(number: float) -> bool:
    return 0 < number < math.inf and round(number) >= 1 and near(number, round(number))
