"""Released numbers against a class Θ: what Θ allows with the noise, by bounds on moments alone.

A number is a sum over records, or steps, plus noise. Under every law of Θ, each subject following any member, the
moments of both are bounded (:mod:`pufferfish._core.laws.moments`), so by Markov's inequality it lies within
:class:`Allowed` but with the probability that was asked for. No normal distribution is assumed, and nothing of how
releases depend on each other. References: ``docs/proofs/released.md``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import ReadOnly
from pufferfish._core.laws.moments import Walk, laplace_log_moments, rate_of
from pufferfish.errors import ModelError
from pufferfish.queries import JointQuery, LinearQuery, StepQuery
from pufferfish.release.facts import DataRecord
from pufferfish.theta.chain_class import Continuum
from pufferfish.theta.continua import BinaryChainInterval, IntervalChain
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Theta
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.states import state_label
from pufferfish.theta.tuple_chains import HigherOrderChain, StaysChain

Array = NDArray[np.float64]

LogMoments = Callable[[Array], Array]
"""Upper bounds on log E e^{sS} under all of Θ, for every s of an array."""


@dataclass(frozen=True, slots=True)
class Part(ReadOnly):
    """One release's part of a number: ``factor`` times a sum over its records or steps, and the noise on that.

    ``sums`` bounds the moments of the sum, in units, ``largest`` is the most that one of its ``records`` (or steps)
    adds, without sign, and ``scales`` are those of the noises that were added, in units.
    """

    factor: float
    sums: LogMoments
    largest: float
    records: int
    scales: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Allowed(ReadOnly):
    """What Θ says of a number, and what it allows with noise and chance.

    Expected values under Θ lie between ``low`` and ``high``; what is released lies between ``least`` and ``most``, but
    with the probability that was asked for. ``noise`` and ``sampling`` are standard deviations: of the noise, and of
    records under Θ, as far as it is bounded.
    """

    low: float
    high: float
    least: float
    most: float
    noise: float
    sampling: float

    def beyond(self, value: float) -> float:
        """Return how far a value is beyond what is expected, in standard deviations; 0 where it is not."""
        beyond = max(value - self.high, self.low - value, 0.0)
        return beyond / max(math.hypot(self.noise, self.sampling), 1e-300)


def variance_of_noise(scales: Sequence[float]) -> float:
    """Return the variance of a sum of discrete Laplace variables."""
    return sum(1 / (2 * math.sinh(1 / (2 * b)) ** 2) for b in scales if b > 0.002)


_LITTLE = 1e-4
_TRIED = np.append(_LITTLE, np.geomspace(0.25, 40, 24))
"""Moments that are tried, in standard deviations; by the least of them expected values are known."""

_MOST_TILT = 50.0
_INSIDE = 1 - 1e-6


def allowed(parts: Sequence[Part], nats: float) -> Allowed:
    """Return what is allowed of a sum of parts, each side but with probability e^−nats.

    Parts may be of the same records: by Hölder's inequality their moments are bounded as if they were one and the same,
    while their noises are independent.
    """
    many = len(parts)

    def sums(s: Array) -> Array:
        return np.sum([part.sums(many * part.factor * s) for part in parts], axis=0) / many

    def noises(s: Array) -> Array:
        return np.sum(
            [laplace_log_moments(np.array(p.scales), (p.factor * s)[:, None] * np.ones(len(p.scales))) for p in parts],
            axis=0,
        )

    noise = math.sqrt(sum(part.factor**2 * variance_of_noise(part.scales) for part in parts))
    widest = max(abs(part.factor) * max(part.scales) for part in parts)
    farthest = _MOST_TILT / (many * max(abs(part.factor) * part.largest for part in parts))
    sampling = sum(abs(p.factor) * p.largest * math.sqrt(p.records) for p in parts)
    # standard deviations: how fast moments of one standard deviation grow, but for what starts may add
    for _ in range(_ROUNDS):
        one = min(1 / math.hypot(noise, sampling, 1e-300), farthest)
        none, up, down, more, less = sums(one * np.array([0.0, _LITTLE, -_LITTLE, 1.0, -1.0])).tolist()
        excess = max(more - none - (up - none) / _LITTLE, less - none - (down - none) / _LITTLE, 0.0)
        sampling = math.sqrt(2 * excess) / one
    tried = np.minimum(_TRIED / max(math.hypot(noise, sampling), 1e-300), min(_INSIDE / widest, farthest))
    above, below, loud = sums(tried), sums(-tried), noises(tried) + nats  # the noise is symmetric
    high, low = float(np.min(above / tried)), -float(np.min(below / tried))
    most, least = float(np.min((above + loud) / tried)), -float(np.min((below + loud) / tried))
    seen = _AS_ONE * math.hypot(noise, sampling)
    if high - low < seen:  # one number, which was computed from two sides
        low = high = (low + high) / 2 if abs(low + high) > seen else 0.0
    return Allowed(low, high, least, most, noise, sampling)


_ROUNDS = 4
_AS_ONE = 0.01
"""Expected values that are less apart than this, in standard deviations, are told as one."""

# -- What Θ says of sums over records and steps ----------------------------------------------------------------------


def _walk(member: Any) -> Walk:
    """Return a member of Θ as a chain with a law at each step."""
    seen = np.arange(member.k)
    match member:
        case MarkovChain():
            kernels, laws = member.transition_matrix[None], member.stationary_distribution[None]
        case PeriodicChain():
            kernels, laws = member.cycle, member.periodic_distribution
        case HigherOrderChain():
            kernels, laws = member.kernel[None], member.stationary_distribution.ravel()[None]
            seen = member.tuples[:, -1]
        case StaysChain():
            kernels, laws, seen = member.kernel[None], member.stationary_distribution[None], member.tuples[:, 0]
        case _:
            raise ModelError(f"{member.kind} say no law of the states")
    start = member.initial_distribution
    with np.errstate(divide="ignore", invalid="ignore"):
        if not isinstance(start, str):
            above = np.where(np.ravel(start) > 0, np.ravel(start) / laws, 0.0).max()
        else:
            above = 1.0 if start == "stationary" else (1 / laws).max()
    if not above < math.inf:
        raise ModelError("a chain may begin with a state that it does not come back to")
    visited = np.flatnonzero(laws.min(axis=0) > 0)
    if visited.size < laws.shape[1] and (len(laws) > 1 or not np.isclose(laws[:, visited].sum(), 1)):
        raise ModelError("a state is impossible at some steps of the clock")
    return Walk(
        kernels[np.ix_(np.arange(len(laws)), visited, visited)], laws[:, visited], seen[visited], math.log(above)
    )


def _members(theta: Theta) -> Sequence[Any]:
    return (theta,) if isinstance(theta, Continuum) else theta.members


def chain_sums(theta: Theta) -> Callable[[LinearQuery | StepQuery, int, DataRecord], tuple[LogMoments, float, int]]:
    """Return what bounds the moments of an output of a query on chains, the most a record adds, and of how many."""
    walks = [_walk(member) for member in _members(theta)]

    def of(query: LinearQuery | StepQuery, output: int, data: DataRecord) -> tuple[LogMoments, float, int]:
        chains = data.chains if data.base is None else min(data.subjects, data.chains)  # pieces between gaps are one
        complete = chains == data.chains and data.records == chains * data.longest_chain
        of_steps = isinstance(query, StepQuery)
        values = (query.outputs == output if of_steps else query.weights[output]).astype(np.float64)
        counted = (data.steps or 0) if of_steps else data.records

        def sums(s: Array) -> Array:
            if complete:
                whole = [walk.whole(data.longest_chain, values, s) for walk in walks]
                exact = [walk.start + one for walk, one in zip(walks, whole, strict=True) if one is not None]
                if len(exact) == len(walks):
                    return chains * np.max(exact, axis=0)
            if of_steps:
                bounds = [(np.zeros(len(s)), walk.of_steps(values, s)) for walk in walks]
            else:
                bounds = [walk.of_records(values, s) for walk in walks]
            first, each = (np.max(some, axis=0) for some in zip(*bounds, strict=True))
            starts = data.chains * max(walk.start for walk in walks)  # each piece may begin as a chain does
            return starts + chains * first + (counted if of_steps else max(counted - chains, 0)) * each

        return sums, max(float(np.abs(values).max()), 1e-300), counted

    return of


def network_sums(theta: Theta) -> Callable[[LinearQuery | JointQuery, int, DataRecord], tuple[LogMoments, float, int]]:
    """Return the same of an output of a query on networks, whose rows are independent."""

    def of(query: LinearQuery | JointQuery, output: int, data: DataRecord) -> tuple[LogMoments, float, int]:
        laws, weights, nodes = list[Array](), np.ones(1), list[int]()
        if isinstance(query, JointQuery):
            nodes = list(query.nodes)
            laws = [network.inference.joint(nodes).ravel()[[output]] for network in theta.networks]
        else:
            reading = [p for p in range(len(query.domains or ())) if np.any(query.contributions_of(p)[output])]
            if len(reading) != 1:
                raise ModelError("it counts cells of several columns")
            nodes, weights = reading, query.contributions_of(reading[0])[output].astype(np.float64)
            laws = [network.inference.joint(nodes) for network in theta.networks]
        rows, names = data.subjects, [state_label(theta.networks[0].nodes[node]) for node in nodes]
        there = [rows if data.observed is None else data.observed.get(name, rows) for name in names]
        fewest, most = max(sum(there) - (len(there) - 1) * rows, 0), min(there)

        def sums(s: Array) -> Array:
            each = np.max([np.log1p(np.expm1(s[:, None] * weights) @ law) for law in laws], axis=0)
            return np.maximum(fewest * each, most * each)

        return sums, float(np.abs(weights).max()), most

    return of


# -- What Θ says of steps from a state, whatever law the states have -------------------------------------------------


def step_bounds(theta: Theta) -> tuple[Array, Array]:
    """Return bounds on the probability of each step, whatever was before; two arrays (k, k)."""
    bounds = [_bounds(member) for member in _members(theta)]
    return np.min([low for low, _ in bounds], axis=0), np.max([high for _, high in bounds], axis=0)


def _bounds(member: Any) -> tuple[Array, Array]:
    match member:
        case MarkovChain():
            matrices = member.transition_matrix[None]
        case PeriodicChain():
            matrices = member.matrices
        case HigherOrderChain(initial_distribution="stationary"):
            matrices = member.tensor.reshape(-1, member.k, member.k)
        case IntervalChain():
            return member.lower, member.upper
        case BinaryChainInterval():
            low, high = member.low, member.high
            return np.array([[low, 1 - high], [1 - high, low]]), np.array([[high, 1 - low], [1 - low, high]])
        case StaysChain():
            state = member.tuples[:, 0]
            onward = member.kernel @ (state[:, None] == np.arange(member.k)).astype(np.float64)
            ends = [[end(onward[state == x], axis=0) for x in range(member.k)] for end in (np.min, np.max)]
            return np.array(ends[0]), np.array(ends[1])
        case _:
            raise ModelError(f"{member.kind} bound no step from the first record on")
    return matrices.min(axis=0), matrices.max(axis=0)


_TILTS: Array = 2.0 ** -np.arange(17, dtype=np.float64)
_ENDLESS = 1e9


def allowed_after(
    low: float, high: float, after: Sequence[tuple[Array, Sequence[tuple[float, ...]]]], y: int, nats: float
) -> Allowed:
    """Return what is allowed of the share of steps from a state that lead to y, with bounds on its probability.

    ``after`` has for each release the released counts of steps from the state to each, and the scales of the noise on
    each; on each side what is said holds but with probability e^−nats.
    """
    many, total = len(after), float(sum(counts.sum() for counts, _ in after))
    widest = max(b for _, scales in after for one in scales for b in one)
    tilts = _TILTS * min(_INSIDE * many / widest, 10.0)

    def side(p: float, sign: int) -> float:
        s: Array = sign * tilts
        loss = rate_of(p, s)
        noise = np.zeros(len(s))
        for counts, scales in after:
            for z in range(len(counts)):
                factor = ((s if z == y else 0.0) - loss) / many
                noise += laplace_log_moments(np.array(scales[z]), factor[:, None] * np.ones(len(scales[z])))

        def is_allowed(share: float) -> bool:
            logs = (s * share - loss) * total / many - noise
            largest = float(logs.max())
            return largest + math.log(float(np.mean(np.exp(logs - largest)))) < nats

        inside, reach = p, 1.0
        while is_allowed(p + sign * reach) and reach < _ENDLESS:  # noise may lead beyond 0 and 1
            reach *= 2
        outside = p + sign * reach
        for _ in range(40):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if is_allowed(middle) else (inside, middle)
        return outside

    if not total > 0:
        return Allowed(low, high, -math.inf, math.inf, math.inf, math.inf)
    p = min(max(0.5, low), high)
    variances = [[variance_of_noise(scales[z]) for z in range(len(counts))] for counts, scales in after]
    noise = math.sqrt(sum(v * ((z == y) - p) ** 2 for row in variances for z, v in enumerate(row))) / total
    sampling = math.sqrt(p * (1 - p) * many / total)
    return Allowed(low, high, side(low, -1), side(high, 1), noise, sampling)
