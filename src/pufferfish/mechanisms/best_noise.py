"""``noise="best"``: which counts to measure, with noise of which scales, so that a query errs least.

A search proposes (:mod:`pufferfish._core`); it sees Θ, the query's weights, lengths and ε, and no rows. What
counts is the proof of what it proposed: the leakage of the record losses of that very noise, as for any other noise.
See docs/noise_shapes.md, and docs/proofs/noise_shapes.md for why this is sound.
"""

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._core.strategies import MOST_ASKED, MOST_STATES, Proposal, mean_shifts, proposals
from pufferfish.errors import NotApplicableError, QueryError
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.steps import accuracy_reached, steps_within
from pufferfish.queries import LinearQuery, Query
from pufferfish.queries.record_loss import RecordLoss, loss_of_query
from pufferfish.queries.strategy import Strategy
from pufferfish.theta.chain_class import ChainModels, Continuum
from pufferfish.theta.model_class import Theta
from pufferfish.theta.periodic_chain import PeriodicChain

if TYPE_CHECKING:
    from pufferfish.mechanisms.influence_bound import InfluenceBound

__all__ = ["best_noise", "best_noise_at_accuracy"]

_FINENESS = 100
"""Sharpness of the measurement with most noise: others are whole numbers above it, 0.5% fine or finer."""

_SHARPEST = 10**6

_SUM, _LARGEST = 1.0, 16.0
"""Norms of the outputs' errors that are made small."""

_MOST_MODELS = 4
"""Members of Θ whose mean shifts are looked at; all of them are in the proof."""

_WORTH_IT = 0.999
"""Noise of several scales is taken if its error is below this share of that of one scale."""

_NARROW = 1e-6


def best_noise(bound: "InfluenceBound", query: Query, epsilon: float) -> Calibration:
    """Return the calibration with the least expected L1 error found; that of one scale where none is better."""
    equal = bound.calibrate_strategy(query, None, epsilon)
    shape = _best_shape(bound, query, epsilon, _SUM, _WORTH_IT * equal.expected_l1_error)
    if shape is None:
        return equal
    try:
        found = bound.calibrate_strategy(query, shape, epsilon)
    except NotApplicableError:  # the search is no proof
        return equal
    return found if found.expected_l1_error < _WORTH_IT * equal.expected_l1_error else equal


def best_noise_at_accuracy(
    bound: "InfluenceBound", query: Query, accuracy: float, alpha: float, *, joint: bool
) -> Calibration:
    """Return the calibration at the least ε found, of four digits, whose every output is as accurate as asked."""
    equal = bound.calibrate(query, accuracy=accuracy, alpha=alpha, joint=joint)
    shape = _best_shape(bound, query, equal.epsilon, _LARGEST)
    if shape is None:
        return equal
    steps = steps_within(accuracy, equal.linear.unit)
    widest = _widest(shape, steps, alpha, joint=joint)
    losses = _losses(bound, query, shape)
    leakage = bound.guesser()(losses.divided(widest)) if widest > 0 else math.inf
    if not 0 < leakage < equal.epsilon:
        return equal
    try:
        found = accuracy_reached(
            lambda epsilon: bound.calibrate_strategy(query, shape, epsilon),
            lambda made: shape.error(made.unit_scale, alpha, joint=joint) <= steps,
            leakage,
        )
    except NotApplicableError:
        return equal
    return found if found is not None and found.epsilon < equal.epsilon else equal


def _best_shape(
    bound: "InfluenceBound", query: Query, epsilon: float, power: float, below: float = math.inf
) -> Strategy | None:
    """Return the best strategy found; None where a query has one output only, or too many states to look at.

    None too where its error, about as it would be proved, is not below ``below``: a proof takes long.
    """
    linear = bound.bind(query)
    if not isinstance(linear, LinearQuery) or linear.domains is not None or linear.by_output:
        raise NotApplicableError(
            'noise="best" is for counts of states, of chains and of groups with the same states, and not for steps or '
            'for the columns of a Bayesian network or a joint law: use noise="equal"',
            bound.title,
        )
    k = linear.weights.shape[1]
    if len(linear.weights) == 1 or k > MOST_STATES:
        return None
    known: dict[bytes, Strategy | None] = {}

    def of(rows: NDArray[np.int64]) -> Strategy | None:
        key = rows.tobytes()
        if key not in known:
            try:
                known[key] = Strategy(linear.weights, rows, np.ones(len(rows), dtype=np.int64))
            except QueryError:
                known[key] = None
        return known[key]

    def taken(rows: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        strategy = of(rows)
        return None if strategy is None else strategy.decode != 0

    guess = bound.guesser()
    longest = (max(bound.length, key=lambda chain: (chain.steps, chain.records)),)

    def leakage(rows: NDArray[np.int64], scales: NDArray[np.float64]) -> float:
        sharpness, unit_scale = _whole(scales)
        measured = Strategy(linear.weights, rows, sharpness).measured(linear)
        losses = loss_of_query(measured, bound.theta, longest)
        report_progress("looking for the best noise", min(next(asked) / MOST_ASKED, 1.0))
        return guess(losses.divided(unit_scale))

    asked = itertools.count()
    pairs = bound.tells_pairs_apart
    responses = _responses(bound.theta, bound) if pairs else [np.eye(k)]
    best = next(proposals(taken, responses, leakage, epsilon, power, move=pairs), None)
    if best is None or best.error * float(linear.unit) >= below:
        return None
    return _strategy(linear, best)


def _strategy(linear: LinearQuery, found: Proposal) -> Strategy:
    return Strategy(linear.weights, found.rows, _whole(found.scales)[0])


def _whole(scales: NDArray[np.float64]) -> tuple[NDArray[np.int64], float]:
    """Return scales as one scale over whole numbers."""
    largest = float(scales.max())
    sharpness = np.minimum(np.rint(_FINENESS * largest / scales), _SHARPEST).astype(np.int64)
    common = int(np.gcd.reduce(sharpness))
    return sharpness // common, largest * _FINENESS / common


def _losses(bound: "InfluenceBound", query: Query, shape: Strategy) -> RecordLoss:
    linear = bound.bind(query)
    assert isinstance(linear, LinearQuery)
    return loss_of_query(shape.measured(linear), bound.theta, bound.length)


def _widest(shape: Strategy, steps: int, alpha: float, *, joint: bool) -> float:
    """Return the largest scale at which no output errs by more than so many units too often; 0 where none is known."""
    low, high = 0.0, 1.0
    while shape.error(high, alpha, joint=joint) <= steps:
        low, high = high, 2 * high
    while high - low > _NARROW * high and high > _NARROW:
        middle = (low + high) / 2
        low, high = (middle, high) if shape.error(middle, alpha, joint=joint) <= steps else (low, middle)
    return low


def _responses(theta: Theta, bound: "InfluenceBound") -> list[NDArray[np.float64]]:
    """Return the mean shifts of some members of Θ: those of the chains that answer most to what one record is."""
    if isinstance(theta, Continuum):
        matrices = [chain.transition_matrix for chain in theta.some_members]
    elif isinstance(theta, ChainModels):  # a chain with a clock or more memory, as if it had neither
        arrays = [m.matrices if isinstance(m, PeriodicChain) else m.tensor for m in theta.members]
        matrices = [array.reshape(-1, theta.k, theta.k).mean(axis=0) for array in arrays]
    else:
        matrices = [chain.transition_matrix for chain in theta.chains]
    records = max(chain.steps for chain in bound.length)
    found = [mean_shifts(matrix, records) for matrix in matrices]
    found.sort(key=lambda response: -float(np.ptp(response, axis=0).sum()))
    return found[:_MOST_MODELS] or [np.eye(theta.k)]
