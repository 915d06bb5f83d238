"""Influence bounds: from record-level loss to leakage, and back to noise.

A release with Laplace noise of scale b is, record by record, differentially private: its loss when record t goes from
state x to x' is d_t(x, x') = ‖f_t(x) − f_t(x')‖₁/b. An **influence bound** says how much more it tells where records
are correlated: leakage(d) is at least log P(M(X)=w | s, θ) / P(M(X)=w | s', θ) for all θ, outputs w and secret pairs. A
mechanism of the paper is such a bound together with its inverse: the least b for which leakage(d) ≤ ε. Scales, vector
queries and composition (losses add before leakage is asked) follow from it alone. Both directions round towards
privacy. With ``noise="best"`` a search (:mod:`pufferfish._core`) proposes which counts to measure, with noise of which
scales; it sees no rows, and what counts is the proof of what it proposed (docs/proofs/noise_shapes.md).
"""

import itertools
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar, TypeGuard

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._base.words import number
from pufferfish._core.numbers.rounding import UNIT, bracket
from pufferfish._core.strategies import MOST_ASKED, MOST_STATES, mean_shifts, proposals
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, QueryError
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.engine import (
    MOST_NUDGES,
    NO_NOISE,
    Bound,
    Engine,
    SeveralEngines,
    WithSteps,
    accuracy_reached,
    no_noise,
    steps_within,
)
from pufferfish.mechanisms.mechanism import Mechanism, as_epsilon
from pufferfish.mechanisms.witness import AnyWitness
from pufferfish.queries import BoundQuery, FunctionQuery, LinearQuery, Query
from pufferfish.queries.record_loss import RecordLoss, as_record_loss, loss_of_query
from pufferfish.queries.strategy import MOST_SHARP, Strategy
from pufferfish.theta.model_class import Theta

# -- Noise at many ε, to draw: what one proof says guides the next -----------------------------------------------------

_MORE = 4e-4  # noise is taken whose leakage is below ε by at most this share
_NEAREST = 3  # proofs that a guess is made from
_FARTHEST = 4.0  # a guess is at most so far, in logarithms, from the proof that lies nearest


def _guess(proofs: Sequence[tuple[float, float]], goal: float) -> float:
    """Return the logarithm of a scale for that of a leakage, nearly a line, by a polynomial through near proofs."""
    apart = {round(leakage, 9): (leakage, scale) for leakage, scale in proofs}.values()
    near = sorted(apart, key=lambda proof: abs(proof[0] - goal))[:_NEAREST]
    leakage, scale = near[0]
    first = scale + leakage - goal  # in proportion to one over the noise
    if len(near) == 1:
        return first
    through = sum(
        scale * math.prod((goal - other) / (leakage - other) for other, _ in near if other != leakage)
        for leakage, scale in near
    )
    return min(max(through, first - _FARTHEST), first + _FARTHEST)


# -- ``noise="best"``: which counts to measure -----------------------------------------------------------------------

_FINENESS = 100  # sharpness of the measurement with most noise: others are whole numbers above it, 0.5% fine or finer
_SUM, _LARGEST = 1.0, 16.0  # norms of the outputs' errors that are made small
_MOST_MODELS = 4  # members of Θ whose mean shifts are looked at; all of them are in the proof
_WORTH_IT = 0.999  # noise of several scales is taken if its error is below this share of that of one scale
_NARROW = 1e-6


def _is_shaped(bound: BoundQuery) -> TypeGuard[LinearQuery]:
    """Whether shapes of noise are searched: of counts of states, not of steps or of columns with other states."""
    return isinstance(bound, LinearQuery) and bound.domains is None and not bound.by_output


def _best_shape(
    bound: "InfluenceBound", query: Query, epsilon: float, power: float, below: float = math.inf
) -> Strategy | None:
    """Return the best strategy found; None for one output, too many states, or if its error is not below ``below``."""
    linear = bound.bind(query)
    if not _is_shaped(linear):
        raise NotApplicableError(
            'noise="best" is for counts of states of chains and groups, not for steps or '
            'for the columns of a Bayesian network or a joint law: use noise="equal"',
            bound.title,
        )
    k = linear.weights.shape[1]
    if len(linear.weights) == 1 or k > MOST_STATES:
        return None
    known: dict[bytes, NDArray[np.bool_] | None] = {}

    def taken(rows: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        key = rows.tobytes()
        if key not in known:
            try:
                known[key] = Strategy(linear.weights, rows, np.ones(len(rows), dtype=np.int64)).decode != 0
            except QueryError:
                known[key] = None
        return known[key]

    guess = bound.fast_estimate()
    longest = (max(bound.length, key=lambda chain: (chain.steps, chain.records)),)

    def leakage(rows: NDArray[np.int64], scales: NDArray[np.float64]) -> float:
        sharpness, unit_scale = _whole(scales)
        measured = Strategy(linear.weights, rows, sharpness).measured(linear)
        losses = loss_of_query(measured, bound.theta, longest)
        report_progress("searching for the best noise", min(next(asked) / MOST_ASKED, 1.0))
        return guess(losses.divided(unit_scale))

    asked = itertools.count()
    pairs = bound.tells_pairs_apart
    responses = _responses(bound.theta, bound) if pairs else [np.eye(k)]
    best = next(proposals(taken, responses, leakage, epsilon, power, move=pairs), None)
    if best is None or best.error * float(linear.unit) >= below:  # about as it would be proved, which takes long
        return None
    return Strategy(linear.weights, best.rows, _whole(best.scales)[0])


def _whole(scales: NDArray[np.float64]) -> tuple[NDArray[np.int64], float]:
    """Return scales as one scale over whole numbers."""
    largest = float(scales.max())
    sharpness = np.minimum(np.rint(_FINENESS * largest / scales), MOST_SHARP).astype(np.int64)
    common = int(np.gcd.reduce(sharpness))
    return sharpness // common, largest * _FINENESS / common


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
    records = max(chain.steps for chain in bound.length)
    responses = [mean_shifts(matrix, records) for matrix in theta.mean_matrices]
    responses.sort(key=lambda response: -float(np.ptp(response, axis=0).sum()))
    return responses[:_MOST_MODELS] or [np.eye(theta.k)]


def _of_part(first: int, reason: str) -> str:
    """Return why a part of Θ is not covered, its members numbered as those of the whole."""
    named = re.sub(r"theta\[(\d+)\]", lambda number: f"theta[{first + int(number[1])}]", reason)
    return f"of theta[{first}], taken alone: {named}"


_NO_SECRET = (
    "under every θ each secret record has only one possible state, so there is no secret to protect: check the zeros "
    "of the model, such as those of initial_distribution and transition_matrix"
)

_LITTLE_NOISE = 500.0  # record-level loss, in nats, from which on it is asked whether noise is needed at all


def at_least_one(given: Any, name: str) -> int | None:
    """Return how many of something a search looks at, None for all."""
    if given is not None and not (isinstance(given, int) and given is not True and given >= 1):
        raise ParameterError(f"{name} is {given!r}, expected a whole number of at least 1, or None for all")
    return given


class InfluenceBound(Mechanism):
    """A bound on what a release of known record-level losses tells about one record, under every θ in Θ.

    Parameters and errors are those of :class:`Mechanism`; for networks ``length`` is the number of rows of their table.
    """

    of_all_records: ClassVar[bool] = False  # whether its proofs are about all records of a group at once
    searches_continuum: ClassVar[bool] = False  # whether its proofs over a continuum name the nearest member
    tells_pairs_apart: ClassVar[bool] = False  # whether the best noise depends on how records around answer

    @property
    def settings(self) -> dict[str, Any]:
        """What is protected, where it is not one record."""
        return {} if self.protection is None else self.protection.settings

    @cached_property
    def _engine(self) -> Engine:
        """What proves, from losses to leakage and back, for losses of steps too; for mixed kinds of Θ part by part."""
        # clocks last: they take longest, and are only checked where the others need as much noise
        parts = sorted(self.theta.parts, key=lambda part: part[1].step is not None)
        engines = [(first, self._engine_of(part)) for first, part in parts]
        engines = [(first, engine if engine.takes_steps else WithSteps(engine)) for first, engine in engines]
        return engines[0][1] if len(engines) == 1 else SeveralEngines(engines)

    @abstractmethod
    def _engine_of(self, theta: Theta) -> Engine:
        """Return the engine for a Θ of one kind that is covered; it is kept, with what it computed."""

    @classmethod
    def _refuses(cls, theta: Theta) -> str | None:
        for first, part in theta.parts:
            reason = super()._refuses(part)
            if reason is not None:
                return reason if part is theta else _of_part(first, reason)
        return None

    def leakage(self, record_loss: Any, *, enough: float | None = None) -> float:
        """Bound the Pufferfish loss of a release by its record-level losses: nats, rounded up; ``inf`` if none holds.

        Losses that are negative or not finite, or of another shape, are a :class:`ParameterError`.

        Parameters
        ----------
        record_loss : float, array_like, Profile, StepLoss, or list of these
            A number (every observed record), shape (T,) (one per step of the chain, 0 where unobserved), (k, k) or
            (T, k, k) (one per pair of states), or a :class:`~pufferfish.Profile`. For several chains one entry for all,
            or a list with one per chain. For a network: a number, a sequence of entries of its nodes, or a mapping from
            names of nodes to entries, each a number or of shape (k_node, k_node).
        enough : float, optional
            Leakage that must not be exceeded, such as a budget. Over a continuum bounds are narrowed to a relative gap
            below 1e-3, and further where that proves so much.
        """
        return self.prove(record_loss, enough=enough)[0]

    def record_epsilon(self, epsilon: float) -> float:
        """Return what a differentially private algorithm may spend so that its release is ε-Pufferfish private.

        That is the largest record-level loss r found with ``leakage(r) ≤ epsilon``, in nats, rounded down: its output
        changes by at most a factor e^r when one record changes its value. 0 where none is small enough; a
        :class:`ModelError` if no record has two possible states under any θ.

        >>> import pufferfish as pf
        >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
        >>> round(pf.LeakagePropagation(chain, length=5000).record_epsilon(1.0), 4)
        0.2997
        """
        epsilon = as_epsilon(epsilon)
        one = as_record_loss(1.0, self.theta, self.length)
        with self._lock:
            for divisor, witness in self._engine.candidate_scales(one, epsilon):
                if witness is None:
                    raise ModelError(_NO_SECRET)
                for nudge in range(MOST_NUDGES):
                    loss = math.nextafter(1 / (divisor * (1 + UNIT * 4**nudge)), 0.0)
                    if loss == 0 or self._prove(as_record_loss(loss, self.theta, self.length), epsilon)[0] <= epsilon:
                        return loss
        return 0.0

    def prove(self, record_loss: Any, *, enough: float | None = None) -> Bound:
        """Return :meth:`leakage` and where it is attained (None: there is no secret to protect)."""
        return self._prove(as_record_loss(record_loss, self.theta, self.length), enough)

    def fast_estimate(self) -> Callable[[RecordLoss], float]:
        """Return what quickly estimates how much losses leak; for one search, whose outcome is proved afterwards."""
        estimate = self._engine.fast_estimate()

        def guess(losses: RecordLoss) -> float:
            with self._lock:
                return estimate(losses)

        return guess

    def _prove(self, losses: RecordLoss, enough: float | None = None) -> Bound:
        with self._lock:
            return self._engine.leakage(losses, enough)

    def verify(self, calibration: Calibration) -> Bound:
        """Prove anew what a release with this noise leaks at most, in nats, and say where."""
        losses = self._losses_of(calibration.query, calibration.strategy)
        with self._lock:
            return self._engine.verify(losses, calibration.unit_scale, calibration.epsilon)

    def _leaks_at(self, query: Query, unit_scale: float, enough: float) -> Bound:
        return self._prove(self._losses_of(query).divided(unit_scale), enough)

    def _losses_of(self, query: Query, strategy: Strategy | None = None) -> RecordLoss:
        """Return the record-level losses of a query, or of what is measured for it, with noise of scale 1."""
        linear = self.bind(query)
        if isinstance(linear, FunctionQuery):
            raise QueryError("a function of the database has no known record-level loss")
        if strategy is None:
            return loss_of_query(linear, self.theta, self.length)
        if not (isinstance(linear, LinearQuery) and np.array_equal(strategy.weights, linear.weights)):
            raise QueryError("the strategy is for another query: calibrate for this one")
        return loss_of_query(strategy.measured(linear), self.theta, self.length)

    def _best(self, query: Query, epsilon: float) -> Calibration:
        """Return the calibration with the least expected L1 error found; that of one scale where none is better."""
        with self._lock:
            equal = self.calibrate_strategy(query, None, epsilon)
            most = _WORTH_IT * equal.expected_l1_error
            shape = _best_shape(self, query, epsilon, _SUM, most)
            try:
                shaped = equal if shape is None else self.calibrate_strategy(query, shape, epsilon)
            except NotApplicableError:  # the search is no proof
                return equal
        return shaped if shaped.expected_l1_error < most else equal

    def _best_at_accuracy(self, query: Query, accuracy: float, alpha: float, *, joint: bool) -> Calibration:
        """Return the calibration at the least ε found, of four digits, whose every output is as accurate as asked."""
        with self._lock:
            equal = self._at_accuracy(query, accuracy, alpha, joint=joint)
            shape = _best_shape(self, query, equal.epsilon, _LARGEST)
            if shape is None:
                return equal
            linear: Any = equal.linear
            steps = steps_within(accuracy, linear.unit)
            widest = _widest(shape, steps, alpha, joint=joint)
            losses = loss_of_query(shape.measured(linear), self.theta, self.length)
            leakage = self.fast_estimate()(losses.divided(widest)) if widest > 0 else math.inf
            if not 0 < leakage < equal.epsilon:
                return equal
            try:
                shaped = accuracy_reached(
                    lambda epsilon: self.calibrate_strategy(query, shape, epsilon),
                    lambda made: shape.error(made.unit_scale, alpha, joint=joint) <= steps,
                    leakage,
                )
            except NotApplicableError:
                return equal
        return shaped if shaped is not None and shaped.epsilon < equal.epsilon else equal

    def _calibrate(self, query: Query, epsilon: float) -> Calibration:
        return self.calibrate_strategy(query, None, epsilon)

    def calibrate_strategy(self, query: Query, strategy: Strategy | None, epsilon: float) -> Calibration:
        """Return the least noise of a given shape, proved: of what is measured, and how sharply each count."""
        with self._lock:
            linear, noises = self._noises(query, strategy, epsilon)
            return self._proven(query, linear, epsilon, noises, strategy)

    def shapes(self, query: Query) -> bool:
        """Whether noise of several scales is searched for a query: counts of states, not of steps or columns."""
        return _is_shaped(self.bind(query))

    def noise_to_compare(self, query: Query, epsilon: float) -> float:
        """Return the noise multiplier that a calibration finds, not proved anew: to compare, not to release."""
        with self._lock:
            linear, noises = self._noises(query, None, epsilon)
            scale, lipschitz = next(noises)[0], linear.unit_lipschitz
        return math.inf if lipschitz is None else scale / lipschitz

    def _noises(
        self, query: Query, strategy: Strategy | None, epsilon: float
    ) -> tuple[BoundQuery, Iterator[tuple[float, AnyWitness]]]:
        """Return the query, and noises to be proved, the least first."""
        linear = self.bind(query)
        if isinstance(linear, FunctionQuery):
            raise NotApplicableError(
                "it needs the effect of single records on the answer, which is unknown for a function", self.title
            )
        losses = self._losses_of(query, strategy)
        if not losses.largest:
            raise QueryError(
                "no record can change the answer of this query, which is therefore public: ask another query"
            )
        noises = iter(self._engine.candidate_scales(losses, epsilon))
        scale, witness = next(noises)
        if not scale < math.inf:  # others would be larger still
            raise NotApplicableError(f"no finite noise is enough at epsilon={number(epsilon, 6)}", self.title)
        if witness is None:
            raise ModelError(_NO_SECRET)
        self._check_needed(losses, scale, epsilon)
        others = ((scale, witness) for scale, witness in noises if witness is not None)
        return linear, chain([(scale, witness)], others)

    def scales_around(self, made: Calibration, epsilons: Sequence[float]) -> list[float | None]:
        """Return scales in units of the query, proved at several rising ε, to draw; None where none is known."""
        losses = self._losses_of(made.query, made.strategy)
        least = losses.largest / _LITTLE_NOISE  # below it a calibration says whether noise is needed at all
        proofs = [(math.log(made.epsilon), math.log(made.unit_scale))]

        def leakage(scale: float, epsilon: float) -> float:
            nats = self._prove(losses.divided(scale), epsilon)[0] if scale > least else math.inf
            if 0 < nats < math.inf:
                proofs.append((math.log(nats), math.log(scale)))
            return nats

        def scale_at(epsilon: float) -> float | None:
            start = math.exp(_guess(proofs, math.log(epsilon * (1 - _MORE / 2))))
            falling = partial(leakage, epsilon=epsilon)
            scale = bracket(falling, epsilon, start, tolerance=_MORE, from_above=False).enough
            if scale < math.inf and leakage(scale, epsilon) >= epsilon * (1 - 2 * _MORE):
                return scale
            try:
                return self.calibrate_strategy(made.query, made.strategy, epsilon).unit_scale
            except NotApplicableError:
                return None

        scales: dict[float, float | None] = {made.epsilon: made.unit_scale}
        below = [epsilon for epsilon in reversed(epsilons) if epsilon < made.epsilon]
        above = [epsilon for epsilon in epsilons if epsilon > made.epsilon]
        for side in (below, above):
            for epsilon in side:
                report_progress("noise at other ε", len(scales) / (len(epsilons) + 1))
                scales[epsilon] = scale = scale_at(epsilon)
                if scale is None:  # no finite noise is enough, or none is needed, and so farther on
                    break
        return [scales.get(epsilon) for epsilon in epsilons]

    def _check_needed(self, losses: RecordLoss, scale: float, epsilon: float) -> None:
        """Refuse to calibrate noise where the exact answer leaks no more than epsilon."""
        if scale >= losses.largest / _LITTLE_NOISE:
            return
        leaks = self._prove(losses.divided(no_noise(losses)))[0]
        if leaks <= epsilon and leaks < NO_NOISE:  # from there on it may be a loss itself, which has no end
            why = (
                "under every θ all possible values of the records that the query reads give the same answer"
                if leaks == 0
                else f"epsilon is {number(epsilon, 6)}; choose a smaller epsilon for stronger protection"
            )
            raise NotApplicableError(
                f"no noise is needed: the exact answer leaks at most {leaks:.6g} about the secrets, and {why}"
            )
