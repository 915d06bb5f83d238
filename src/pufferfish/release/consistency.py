"""Whether a release that was read agrees with itself: everything that follows from something else is computed again.

A changed number somewhere in a file must not pass for what was promised. Words (descriptions, assumptions, warnings)
cannot be checked; what is said in numbers is.
"""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pufferfish.calibration import Witness
from pufferfish.mechanisms import BOUNDS, MECHANISMS, ApproximateWasserstein, ParticipantDP
from pufferfish.noise import fits

if TYPE_CHECKING:
    from pufferfish.release.record import Release

__all__ = ["contradictions"]

_SAME = 1e-9
"""What is computed again may differ by this share: other versions of numpy round otherwise."""

_MECHANISMS = {m.name: m.title for m in (*MECHANISMS, ParticipantDP, ApproximateWasserstein)}
_BOUNDS = {m.name for m in (*BOUNDS, ParticipantDP)}


def contradictions(found: "Release") -> Iterator[str]:
    """Say what was expected of a release and does not hold.

    Raises
    ------
    PufferfishError, ValueError
        Where a part of it is none by itself.
    """
    rules = [*_numbers(found), *_places(found)]
    yield from (rule for holds, rule in rules if not holds)
    if all(holds for holds, _ in rules):
        yield from (rule for holds, rule in (*_values(found), *_witness(found)) if not holds)


def _numbers(found: "Release") -> list[tuple[bool, str]]:
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
            multiplier is None or query.lipschitz is None or _near(noise.scale, multiplier * query.lipschitz),
            "the scale is noise_multiplier times lipschitz",
        ),
        (_is_time(found.created), "created is a time"),
        (len(found.assumptions) > 0, "it says what is assumed"),
        (len(found.not_promised) > 0, "it says what is not promised"),
        (f"e^{found.epsilon:g} " in found.promise, f"the promise speaks of e^{found.epsilon:g}"),
    ]


def _places(found: "Release") -> list[tuple[bool, str]]:
    """Check data, mechanism and ledger."""
    data, booked, mechanism = found.data, found.ledger, found.mechanism
    rules = [
        (_MECHANISMS.get(mechanism.name) == mechanism.title, "the mechanism is one of this program's"),
        (mechanism.secrets is None or len(mechanism.secrets) > 0, "secrets are pairs, or none are given"),
        (min(data.subjects, data.chains, data.longest_chain) >= 1, "there are subjects, chains and steps"),
        (data.records >= 0, "the number of records is none below 0"),
        (data.base is None or data.rows is None, "the data are sequences or rows"),
        ((data.rows is None) == (data.observed is None), "rows say how many cells of each column were observed"),
    ]
    if data.rows is not None and data.observed is not None:
        cells = data.observed
        rules += [
            (data.subjects == data.chains, "every row is a subject"),
            (cells.keys() == data.rows.columns.keys(), "the observed columns are those that were read"),
            (all(0 <= n <= data.subjects for n in cells.values()), "no column has more observed cells than rows"),
            (sum(cells.values()) == data.records, "records are the observed cells"),
            (
                all(cells.keys() <= member.get("nodes", {}).keys() for member in found.theta.members),
                "the columns that were read are nodes of theta",
            ),
        ]
    if booked is not None:
        rules += [
            (booked.entry >= 1, "the place in the ledger is at least 1"),
            (0 < booked.budget < math.inf and 0 <= booked.spent <= booked.budget, "what is spent is in the budget"),
            (booked.mechanism in _BOUNDS, "the ledger's mechanism is one of this program's"),
        ]
    return rules


def _values(found: "Release") -> list[tuple[bool, str]]:
    """Check values, their grid, and their accuracy; computed where the numbers they rest on are sound."""
    noise, said = found.noise, found.accuracy_95
    done = found.postprocessing
    values = found.noisy_values if done is None else done.of(found.noisy_values)
    size = max(map(abs, values), default=0.0)
    again = [found.accuracy(said.alpha, joint=joint) for joint in (False, True)] if said.alpha == 0.05 else []
    return [
        (
            found.values == values
            if done is None
            else all(abs(a - b) <= _SAME * size for a, b in zip(found.values, values, strict=True)),
            "values are what the post-processing makes of noisy_values",
        ),
        (all(_on_grid(v / noise.unit) for v in found.noisy_values), "noisy_values are whole numbers of units"),
        (
            len(again) == 2
            and all(
                _on_grid(b / noise.unit) and abs(a - b) <= noise.unit * (1 + _SAME) + _SAME * a
                for a, b in zip(again, (said.each, said.joint), strict=True)
            ),
            "accuracy_95 is that of the noise",
        ),
    ]


def _witness(found: "Release") -> list[tuple[bool, str]]:
    seen: Witness = found.mechanism.witness
    members = max(1, len(found.theta.chains) + len(found.theta.members))
    told = (seen.influence, seen.own, seen.past, seen.future, *(nats for _, nats in seen.neighbours))
    parts = sum(v or 0.0 for v in (seen.own, seen.past, seen.future)) + sum(nats for _, nats in seen.neighbours)
    others = (seen.distance, seen.gap)
    pair = seen.secret_pair or ()
    law, matrix = seen.initial_distribution, seen.transition_matrix
    k = len(found.theta.states)
    return [
        (0 <= seen.theta < members, "the witness is a member of theta"),
        (seen.length >= 1, "the witness has a length"),
        (not isinstance(seen.node, int) or seen.node >= 0, "the witness has a node from 0 on"),
        (seen.secret_pair is None or seen.secret_pair[0] != seen.secret_pair[1], "the secret pair is of two secrets"),
        (seen.nearby is None or seen.nearby >= 0, "the number of nearby records is none below 0"),
        (
            all(v is None or 0 <= v <= found.epsilon * (1 + _SAME) for v in told),
            "the witness tells nothing negative, and nothing above epsilon",
        ),
        (parts <= found.mechanism.leakage * (1 + _SAME), "what the witness tells is at most the leakage"),
        (all(v is None or 0 <= v < math.inf for v in others), "distance and gap are not negative"),
        (
            found.mechanism.name not in _BOUNDS or all(state in found.theta.states for state in pair),
            "the secret pair is of states of theta",
        ),
        (matrix is None or (len(matrix) == k and all(_is_law(row, k) for row in matrix)), "the witness has a matrix"),
        (
            law is None or (law in ("any", "stationary") if isinstance(law, str) else _is_law(law, k)),
            "the witness has an initial law",
        ),
    ]


def _is_law(row: Sequence[float], k: int) -> bool:
    return len(row) == k and all(0 <= p <= 1 for p in row) and abs(sum(row) - 1) <= 1e-6


def _near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME, abs_tol=1e-300)


def _whole(number: float) -> bool:
    return 0 < number < math.inf and round(number) >= 1 and _near(number, round(number))


def _on_grid(number: float) -> bool:
    """Whether a number is whole, but for the rounding of the unit and of the product."""
    return abs(number) < 2.0**63 and abs(number - round(number)) <= 2.0**-50 * abs(number)


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
