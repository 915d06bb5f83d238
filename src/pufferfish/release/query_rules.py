"""What follows of a release from the kind of its query: labels, units, what is divided by, and what may be valid.

Each rule is a condition and, in words, what is expected.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

from pufferfish.queries import CDF, KINDS, Bouts, Joint, Quantiles, Switches, Transitions
from pufferfish.queries.of_columns import combination_labels
from pufferfish.queries.of_states import named_quantiles
from pufferfish.queries.of_steps import ARROW
from pufferfish.release.facts import WEIGHTED, ReleaseFields
from pufferfish.release.postprocessing import Ascending, ClippedByGroup, Projected
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.joint_distribution import JointDistribution
from pufferfish.theta.states import state_label

__all__ = ["OF_ROWS", "Rules", "near", "nodes_of", "on_grid", "postprocessing_rules", "query_rules"]

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
        shares = [quantile.share for quantile in found.quantiles]
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
