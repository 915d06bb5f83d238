"""What follows of a release's witness from its mechanism, its noise, Θ and the data.

Each rule is a condition and, in words, what is expected.
"""

import math
from collections.abc import Sequence
from typing import Any

from pufferfish._core.propagation.forgetting import fixed_point
from pufferfish.mechanisms import (
    BOUNDS,
    MECHANISMS,
    ApproximateWasserstein,
    ParticipantDP,
)
from pufferfish.mechanisms.witness import (
    AloneWitness,
    ClusterWitness,
    CouplingWitness,
    ForgettingWitness,
    LawWitness,
    PhaseWitness,
    PropagationWitness,
    QuiltWitness,
)
from pufferfish.release.facts import ReleaseFields
from pufferfish.release.query_rules import Rules, nodes_of
from pufferfish.theta.chain_class import CHAIN_MODELS
from pufferfish.theta.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.model_class import CONTINUUM_KINDS
from pufferfish.theta.periodic_chain import PeriodicChain

__all__ = ["BOUND_NAMES", "TITLES", "witness_rules"]

TITLES = {m.name: m.title for m in (*MECHANISMS, ParticipantDP, ApproximateWasserstein)}
BOUND_NAMES = {m.name for m in (*BOUNDS, ParticipantDP)}

_OF_ALL_RECORDS = {m.name for m in (*BOUNDS, ParticipantDP) if m.of_all_records}
_INTERVALS = (BinaryChainInterval.kind, IntervalChain.kind)
_OF_CHAINS = (*CONTINUUM_KINDS, *(model.kind for model in CHAIN_MODELS))

_KINDS = {m.name: m.witnesses for m in (*MECHANISMS, ParticipantDP, ApproximateWasserstein)}
"""What decides, mechanism by mechanism."""

_SEARCHED = {m.name for m in BOUNDS if m.searches_continuum}
"""What searches all of a continuum of two-state chains."""

_HAS_PAIR = (PropagationWitness, ClusterWitness, CouplingWitness, LawWitness)
"""Kinds of witnesses that always name a pair of secrets."""

_ROUNDED = 1e-9
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
    if name in _OF_ALL_RECORDS or isinstance(seen, AloneWitness):
        known = node is None
    elif nodes:
        known = node in nodes or (node is None and secrets is not None)
    elif theta.chains or theta.kind in _OF_CHAINS:
        known = _is_step(node, seen.length) or (node is None and secrets is not None)
    else:
        known = node is None or _is_step(node, seen.length)
    named = secrets is not None and (pair in secrets or (pair is not None and pair[::-1] in secrets))
    states = nodes.get(str(node), []) if nodes and node is not None else theta.states
    return [
        (0 <= seen.theta < members, "the witness is a member of theta"),
        (1 <= seen.length <= found.mechanism.longest_chain, "the witness's length is at most longest_chain"),
        (known, "the witness's node is one of its chain or network, and there where the mechanism knows one"),
        (pair is None or pair[0] != pair[1], "the secret pair is of two secrets"),
        (pair is None or named or all(s in states for s in pair), "the secret pair is of states of theta, or secrets"),
        (pair is not None or not isinstance(seen, _HAS_PAIR), "such a witness names a secret pair"),
        (
            pair is None or not (name in _OF_ALL_RECORDS or isinstance(seen, AloneWitness)),
            "a mechanism for all records has no secret pair",
        ),
    ]


def _tells(found: ReleaseFields) -> Rules:
    """Check what the witness tells: it is what the leakage is made of, which is how the noise was chosen."""
    seen, name, nodes = found.mechanism.witness, found.mechanism.name, nodes_of(found)
    rules = [
        (isinstance(seen, _KINDS[name]), "the witness is of a kind that its mechanism gives"),
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
        case ClusterWitness():
            return [
                *rules,
                *_clusters(seen, nodes),
                *_parts(found, (seen.own, *(v for _, v in seen.neighbours)), _ROUNDED),
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
    known = theta.kind == ForgettingClass.kind
    rules = [(known == isinstance(seen, ForgettingWitness), "what was forgotten is told where Θ says what that is")]
    if known and len(theta.members) == 1 and multiplier is not None:
        pairs: list[Any] = ForgettingClass.of_plain(theta.members[0], theta.states, theta.origin).forgets
        most = math.log1p(fixed_point(1 / multiplier, pairs))
        rules.append(
            (all(side <= most * (1 + _ROUNDED) for side in sides), "earlier and later records tell what Θ lets them")
        )
    return rules


def _phase(found: ReleaseFields, seen: PropagationWitness | ForgettingWitness) -> Rules:
    """Check that a phase is one of the clock of the member that decides."""
    if not isinstance(seen, PhaseWitness):
        return []
    theta = found.theta
    clocked = theta.kind == PeriodicChain.kind and 0 <= seen.theta < len(theta.members)
    phases = len(theta.members[seen.theta]["matrices"]) if clocked else 0
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
    within = 0 <= seen.influence <= leakage * (1 + _ROUNDED)
    rules = [
        (apart, "the quilt is of other nodes, at most one on each side of a chain's record"),
        (near, "the nearby records are those within the quilt"),
        (within, "the witness tells nothing negative, and nothing above the leakage, which is at most epsilon"),
    ]
    if within and multiplier is not None and seen.nearest is None:
        most = seen.nearby / multiplier + seen.influence
        rules.append((leakage <= most * (1 + _ROUNDED), "the nearby records and the influence make the leakage"))
    return rules


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
            all(0 <= v <= leakage * (1 + _ROUNDED) for v in parts),
            "the witness tells nothing negative, and nothing above the leakage, which is at most epsilon",
        ),
        (total <= leakage * (1 + _ROUNDED), "what the witness tells is at most the leakage"),
        (searched or leakage <= total * (1 + missing), "the witness tells the leakage"),
        (
            multiplier is None or parts[0] * multiplier <= 1 + _ROUNDED,
            "the record itself tells at most lipschitz over scale",
        ),
    ]


def _member(found: ReleaseFields) -> Rules:
    """Check the member of a continuum that the witness names: it lies within the bounds of Θ."""
    seen, theta = found.mechanism.witness, found.theta
    nearest = seen.nearest
    if nearest is None:
        searched = theta.kind == BinaryChainInterval.kind and found.mechanism.name in _SEARCHED
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
    searched = theta.kind in _INTERVALS
    start: Any = theta.members[0].get("initial_distribution", "any") if searched else None
    if theta.chains and 0 <= seen.theta < len(theta.chains):
        start = theta.chains[seen.theta].initial_distribution
        searched = start == "any"
    rules.append((searched, "a gap is that of a class which is a continuum"))
    if matrix is not None and is_matrix and searched:
        rules.append((_is_within(found, matrix), "the witness's matrix is of theta"))
        rules.append(((law == "stationary") == (start == "stationary"), "the witness's initial law is of theta"))
    return rules


def _is_within(found: ReleaseFields, matrix: Sequence[Sequence[float]]) -> bool:
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


def _is_step(node: Any, length: int) -> bool:
    return isinstance(node, int) and 0 <= node < length


def _is_law(row: Sequence[float], k: int) -> bool:
    return len(row) == k and all(0 <= p <= 1 for p in row) and abs(sum(row) - 1) <= 1e-6
