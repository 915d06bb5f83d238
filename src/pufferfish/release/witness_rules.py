"""What follows of a release's witness from its mechanism, its noise, Θ and the data.

Each rule is a condition and, in words, what is expected.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pufferfish.calibration import Witness
from pufferfish.mechanisms import (
    BOUNDS,
    MECHANISMS,
    ApproximateWasserstein,
    EntryDP,
    ExactLaplace,
    GroupDP,
    LeakagePropagation,
    ParticipantDP,
    Wasserstein,
)
from pufferfish.models.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.release.query_rules import Rules, nodes_of

if TYPE_CHECKING:
    from pufferfish.release.record import Release

__all__ = ["BOUND_NAMES", "TITLES", "witness_rules"]

TITLES = {m.name: m.title for m in (*MECHANISMS, ParticipantDP, ApproximateWasserstein)}
BOUND_NAMES = {m.name for m in (*BOUNDS, ParticipantDP)}

_OF_ALL_RECORDS = {GroupDP.name, ParticipantDP.name, EntryDP.name}
_OF_DISTANCES = {Wasserstein.name, ApproximateWasserstein.name}
_OF_LAWS = {*_OF_DISTANCES, ExactLaplace.name}
_QUILTS = {name for name in BOUND_NAMES if "mqm" in name or "quilt" in name} | _OF_ALL_RECORDS
_INTERVALS = (BinaryChainInterval.kind, IntervalChain.kind)

_ROUNDED = 1e-9
_PROVED = 1e-3
"""By what share a proof may be above what its own witness tells."""
_WIDENED = 1e-6
"""By how much a member that was found may lie outside the bounds, which are widened by how they were rounded."""


def witness_rules(found: "Release") -> Rules:
    """Check who the witness is, and that what it tells makes the leakage."""
    return [*_who(found), *_tells(found), *_member(found)]


def _who(found: "Release") -> Rules:
    seen, theta, secrets = found.mechanism.witness, found.theta, found.mechanism.secrets
    name, nodes = found.mechanism.name, nodes_of(found)
    members = max(1, len(theta.chains) + len(theta.members))
    pair = seen.secret_pair
    node: Any = seen.node
    if name in _OF_ALL_RECORDS or _is_alone(found):
        known = node is None
    elif nodes:
        known = node in nodes or (node is None and secrets is not None)
    elif theta.chains or theta.kind in _INTERVALS:
        known = _is_step(node, seen.length) or (node is None and secrets is not None)
    else:
        known = node is None or _is_step(node, seen.length)
    named = secrets is not None and (pair in secrets or (pair is not None and pair[::-1] in secrets))
    states = nodes.get(node, []) if nodes and node is not None else theta.states
    rules = [
        (0 <= seen.theta < members, "the witness is a member of theta"),
        (1 <= seen.length <= found.mechanism.longest_chain, "the witness's length is at most longest_chain"),
        (known, "the witness's node is one of its chain or network, and there where the mechanism knows one"),
        (pair is None or pair[0] != pair[1], "the secret pair is of two secrets"),
        (pair is None or named or all(s in states for s in pair), "the secret pair is of states of theta, or secrets"),
        (name not in _OF_ALL_RECORDS or pair is None, "a mechanism for all records has no secret pair"),
    ]
    return [*rules, *_quilt(found, seen, nodes)]


def _quilt(found: "Release", seen: Witness, nodes: dict[str, list[str]]) -> Rules:
    data = found.data
    if seen.active_quilt is None:
        return []
    ends: list[Any] = list(seen.active_quilt)
    if nodes:
        apart = len(set(ends)) == len(ends) and all(end in nodes for end in ends) and seen.node not in ends
        near = 1 <= (seen.nearby or 0) <= len(nodes)
    else:
        apart = all(_is_step(end, seen.length) for end in ends)
        before = [end for end in ends if apart and isinstance(seen.node, int) and end < seen.node]
        after = [end for end in ends if apart and isinstance(seen.node, int) and end > seen.node]
        apart = apart and ends == before + after and len(before) <= 1 and len(after) <= 1
        span = (after[0] if after else seen.length) - (before[0] if before else -1) - 1
        gaps = data.records < data.chains * data.longest_chain or data.longest_chain < found.mechanism.longest_chain
        some = gaps or found.mechanism.name in _OF_ALL_RECORDS
        near = 1 <= (seen.nearby or 0) <= span if some else seen.nearby == span
    return [
        (apart, "the quilt is of other nodes, at most one on each side of a chain's record"),
        (near, "the nearby records are those within the quilt"),
    ]


def _tells(found: "Release") -> Rules:
    """Check what the witness tells: it is what the leakage is made of, which is how the noise was chosen."""
    mechanism, multiplier = found.mechanism, found.noise.noise_multiplier
    seen, name, leakage = mechanism.witness, mechanism.name, mechanism.leakage
    quilt = (seen.nearby, seen.influence, *(() if _is_alone(found) else (seen.active_quilt,)))
    nodes, around = nodes_of(found), [nats for _, nats in seen.neighbours]
    # of a chain past and future tell, of a network the clusters around the node
    parts = (seen.own,) if nodes else (seen.own, seen.past, seen.future)
    others = (seen.past, seen.future) if nodes else seen.neighbours
    told = [v for v in (*parts, *around, seen.influence) if v is not None]
    by_quilt, by_parts, by_distance = (any(v is not None for v in group) for group in (quilt, parts, (seen.distance,)))
    expected = (
        by_quilt != by_parts and not by_distance
        if name == LeakagePropagation.name
        else (by_quilt, by_parts, by_distance) == (name in _QUILTS, False, name in _OF_DISTANCES)
    )
    has_pair = seen.secret_pair is not None or not (by_parts or name in _OF_LAWS)
    whole = all(len({v is None for v in group}) == 1 for group in (quilt, parts))
    rules = [
        (expected and whole and has_pair, "the witness tells what its mechanism knows, and all of it"),
        (not any(others) and (by_parts or not around), "neighbours tell in networks, past and future in chains"),
        (
            all(
                near and set(near) <= set(nodes) - {seen.node} and len(set(near)) == len(near)
                for near, _ in seen.neighbours
            ),
            "neighbours are other nodes of the network",
        ),
        (
            nodes != {} or not ((seen.past and seen.node == 0) or (seen.future and seen.node == seen.length - 1)),
            "nothing comes before the first record of a chain, and nothing after its last",
        ),
        (
            all(0 <= v <= leakage * (1 + _ROUNDED) for v in told),
            "the witness tells nothing negative, and nothing above the leakage, which is at most epsilon",
        ),
        (seen.gap is None or 0 <= seen.gap < math.inf, "the gap is not negative"),
        (seen.distance is None or 0 < seen.distance < math.inf, "the distance is positive"),
    ]
    if not all(holds for holds, _ in rules):
        return rules
    if by_parts:
        total = sum(v or 0.0 for v in (*parts, *around))
        rules.append((total <= leakage * (1 + _ROUNDED), "what the witness tells is at most the leakage"))
        missing = _ROUNDED if nodes else _PROVED
        rules.append((seen.gap is not None or leakage <= total * (1 + missing), "the witness tells the leakage"))
        each = multiplier is None or (seen.own or 0.0) * multiplier <= 1 + _ROUNDED
        rules.append((each, "the record itself tells at most lipschitz over scale"))
    if by_quilt and multiplier is not None and seen.gap is None:
        most = (seen.nearby or 0) / multiplier + (seen.influence or 0.0)
        rules.append((leakage <= most * (1 + _ROUNDED), "the nearby records and the influence make the leakage"))
    if by_distance:
        ratio = (seen.distance or 0.0) / found.noise.scale
        rules.append((math.isclose(ratio, leakage, rel_tol=1e-6), "the leakage is distance over scale"))
    return rules


def _member(found: "Release") -> Rules:
    """Check the member of a continuum that the witness names: it lies within the bounds of Θ."""
    seen, theta = found.mechanism.witness, found.theta
    law, matrix, k = seen.initial_distribution, seen.transition_matrix, len(theta.states)
    is_matrix = matrix is None or (len(matrix) == k and all(_is_law(row, k) for row in matrix))
    is_start = law is None or (law in ("any", "stationary") if isinstance(law, str) else _is_law(law, k))
    rules = [
        (is_matrix, "the witness has a matrix"),
        (is_start, "the witness has an initial law"),
        ((matrix is None) == (law is None), "the witness's member has a matrix and an initial law"),
        (matrix is None or seen.gap is not None, "a member of a continuum comes with the gap of the search"),
    ]
    searched = theta.kind in _INTERVALS
    start: Any = theta.members[0].get("initial_distribution", "any") if searched else None
    if theta.chains and 0 <= seen.theta < len(theta.chains):
        start = theta.chains[seen.theta].initial_distribution
        searched = start == "any"
    rules.append((seen.gap is None or searched, "a gap is that of a class which is a continuum"))
    if matrix is not None and is_matrix and searched:
        rules.append((_is_within(found, matrix), "the witness's matrix is of theta"))
        rules.append(((law == "stationary") == (start == "stationary"), "the witness's initial law is of theta"))
    return rules


def _is_within(found: "Release", matrix: Sequence[Sequence[float]]) -> bool:
    theta, seen = found.theta, found.mechanism.witness
    if theta.chains:
        lower: Any = theta.chains[seen.theta].transition_matrix
        upper = lower
    elif theta.kind == IntervalChain.kind:
        lower, upper = theta.members[0]["lower"], theta.members[0]["upper"]
    else:
        low, high = theta.members[0]["low"], theta.members[0]["high"]
        lower, upper = [[low, 1 - high], [1 - high, low]], [[high, 1 - low], [1 - low, high]]
    return all(
        low - _WIDENED <= p <= high + _WIDENED
        for row, lows, highs in zip(matrix, lower, upper, strict=True)
        for p, low, high in zip(row, lows, highs, strict=True)
    )


def _is_alone(found: "Release") -> bool:
    """Whether records are independent, so that each tells its own loss alone, and all are alike."""
    seen, name = found.mechanism.witness, found.mechanism.name
    may_be = name == EntryDP.name or (name == LeakagePropagation.name and seen.node is None)
    return may_be and seen.active_quilt is None and seen.nearby == 1


def _is_step(node: Any, length: int) -> bool:
    return isinstance(node, int) and 0 <= node < length


def _is_law(row: Sequence[float], k: int) -> bool:
    return len(row) == k and all(0 <= p <= 1 for p in row) and abs(sum(row) - 1) <= 1e-6
