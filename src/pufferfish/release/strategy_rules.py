"""What follows of a release's measurements: scales, sharpness and loss fix each other, and the outputs' errors.

Each rule is a condition and, in words, what is expected.
"""

import math

from pufferfish.mechanisms.witness import ClusterWitness, ForgettingWitness, PropagationWitness
from pufferfish.release.facts import WEIGHTED, NoiseRecord, ReleaseFields, factor_of
from pufferfish.release.query_rules import Rules, near, on_grid

__all__ = ["measured_well", "strategy_rules"]

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
