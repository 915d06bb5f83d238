r"""Does this Θ describe these public data? Likelihoods, stays, hours and forgetting; and what its noise would leak.

How well laws predict transitions that they were not fitted to.

A law that was fitted to some transitions predicts these too well. So every transition is predicted by all others (leave
one out), which needs counts only: a row that holds the transition c times among n, smoothed by w transitions of a
simpler law p, gives it the probability (c − 1 + w p) / (n − 1 + w). The laws, each completed by a simpler one:

*   **pooled**: one row for each state, completed by ½ for every entry;
*   **own**: a row for each subject and state, completed by what all other subjects do;
*   **two before** (order 2): a row for each pair of states, completed by the pooled law;
*   **hour**: a row for each hour and state, completed by the pooled law.

How long states last: observed stays against the geometric ones of a Markov chain.

A stay that a gap cuts off lasted at least as long as was seen. Leaving such stays out would shorten the picture, so the
share of stays that last longer than n records is estimated by Kaplan and Meier's product: of the stays that reached
their n-th record, with what followed seen, the share that went on.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.durations import parse_duration
from pufferfish._base.progress import part_of, report_progress
from pufferfish._base.view import Shown, View
from pufferfish._base.writing import write_whole
from pufferfish.check.network import NetworkCheck, check_network
from pufferfish.check.record import CHECK, CheckFields, OverlapAfter, RicherModel, StateStays, SubjectCheck
from pufferfish.check.shown import view_of
from pufferfish.check.words import CALLED, sentences_of, text_of, verdict_of
from pufferfish.errors import DataError, ModelError, NotApplicableError, ParameterError
from pufferfish.fit.chain import check_transitions, fit_chain, fit_periodic
from pufferfish.fit.forgetting import SMOOTHING, OverlapEstimate, overlap, overlap_of
from pufferfish.fit.model_file import Model
from pufferfish.fit.subjects import POOLING, class_of_each
from pufferfish.mechanisms import LeakagePropagation
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.queries import Histogram
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.higher_order_chain import HigherOrderChain
from pufferfish.theta.model_class import ModelClass, Theta, as_theta

if TYPE_CHECKING:
    from pufferfish.data.daily import Steps
    from pufferfish.data.public_counts import Habits

__all__ = [
    "APART",
    "HIGH",
    "TOWARDS",
    "ModelCheck",
    "by_model",
    "check_model",
    "geometric",
    "held_out",
    "observed",
    "richer_models",
]

# -- How well laws predict transitions that they were not fitted to --------------------------------------------------

TOWARDS = 10.0
"""Transitions of the simpler law that every row is given."""

Values = NDArray[np.float64]
Whole = NDArray[np.int64]


def held_out(steps: "Steps", k: int) -> dict[str, Values]:
    """Return the probability of every group of transitions under each law, by all other transitions.

    Parameters
    ----------
    steps : Steps
        Transitions of at least one subject.
    k : int
        Number of states.

    Returns
    -------
    dict of str to ndarray
        "pooled" and "order2"; "own" where there are several subjects, and "hour" where there is a clock.
    """
    x, y, n = steps.before, steps.state, steps.number
    pooled = _left_out(x, y, n, 1 / k, k / 2, k)
    probabilities = {"pooled": pooled}
    if len(np.unique(steps.subject)) > 1:
        mine, all_mine = _totals(steps.subject * k + x, n), _totals((steps.subject * k + x) * k + y, n)
        others, all_others = _totals(x, n) - mine, _totals(x * k + y, n) - all_mine
        like = (all_others + 0.5) / (others + k / 2)
        probabilities["own"] = _left_out(steps.subject * k + x, y, n, like, TOWARDS, k)
    known = steps.earlier >= 0
    second = pooled.copy()
    pairs = (steps.earlier * k + x)[known]
    second[known] = _left_out(pairs, y[known], n[known], pooled[known], TOWARDS, k)
    probabilities["order2"] = second
    if np.all(steps.phase >= 0):
        probabilities["hour"] = _left_out(steps.phase * k + x, y, n, pooled, TOWARDS, k)
    return probabilities


def by_model(steps: "Steps", matrices: Sequence[Values]) -> Values:
    """Return the probability of every group of transitions under each chain; shape (chains, groups)."""
    return np.array([matrix[steps.before, steps.state] for matrix in matrices])


def _left_out(row: Whole, y: Whole, n: Whole, like: Values | float, w: float, k: int) -> Values:
    return (_totals(row * k + y, n) - 1 + w * like) / (_totals(row, n) - 1 + w)


def _totals(key: Whole, n: Whole) -> Values:
    """Return for every group the number of transitions of all groups with its key."""
    _, which = np.unique(key, return_inverse=True)
    return np.bincount(which, weights=n).astype(np.float64)[which]


# -- What noise for a model leaks to somebody who knows more ---------------------------------------------------------

_HOURLY = 0.5
"""Added to every count of every hour."""


def richer_models(
    habits: "Habits",
    curve: Sequence[OverlapEstimate],
    noise: Calibration,
    *,
    no_hours: str | None,
    no_curve: str | None,
) -> tuple[RicherModel, ...]:
    """Return the richer models, with what the noise leaks under each, and the noise that each needs.

    ``no_hours`` and ``no_curve`` say why hours or forgetting are not known, where they are not.
    """
    unknown = {"hour": no_hours, "forgets": no_curve}
    sequences = habits.sequences
    made: dict[str, Callable[[], Any]] = {"pooled": lambda: fit_chain(sequences)}
    if len(habits.subjects) > 1:
        made["own"] = lambda: class_of_each(habits.pairs[0], sequences, pooling=POOLING).theta
    made["hour"] = lambda: fit_periodic(sequences, smoothing=_HOURLY)
    made["order2"] = lambda: _longer_memory(habits)
    made["forgets"] = lambda: _forgetting(curve, sequences.states)
    models: list[RicherModel] = []
    for i, (kind, make) in enumerate(made.items()):
        if (reason := unknown.get(kind)) is not None:
            models.append(RicherModel(kind=kind, reason=reason))
            continue
        report_progress("leakage under richer models", i / len(made))
        with part_of(f"{CALLED[kind]} ({i + 1} of {len(made)})"):
            models.append(_leaking(kind, make, noise, sequences.length))
    return tuple(models)


def _leaking(kind: str, make: Callable[[], Any], noise: Calibration, length: Any) -> RicherModel:
    try:
        theta = make()
        bound = LeakagePropagation(theta, length)
        assert noise.noise_multiplier is not None
        leaks, witness = bound.prove(1 / noise.noise_multiplier)
        needs = bound.calibrate(Histogram(), noise.epsilon)
    except (ModelError, ParameterError, NotApplicableError) as error:
        return RicherModel(kind=kind, reason=str(error))
    names = getattr(theta, "names", ())
    who = names[witness.theta] if names and witness is not None else None
    return RicherModel(kind=kind, leakage=leaks, noise_multiplier=needs.noise_multiplier, decided_by=who)


def _longer_memory(habits: "Habits") -> HigherOrderChain:
    """Return the chain of order 2, its rows completed by transitions of the one chain, as in its predictions."""
    steps, k = habits.steps, len(habits.sequences.states)
    counts = np.zeros((k, k, k))
    known = steps.earlier >= 0
    np.add.at(counts, (steps.earlier[known], steps.before[known], steps.state[known]), steps.number[known])
    counts += TOWARDS * fit_chain(habits.sequences).transition_matrix
    return HigherOrderChain(counts / counts.sum(axis=2, keepdims=True), states=habits.sequences.states)


def _forgetting(curve: Sequence[OverlapEstimate], states: Sequence[str]) -> ForgettingClass:
    kept = [estimate for estimate in curve if estimate.overlap > 0]
    if not kept:
        raise ModelError("two states have nothing in common at any distance that was looked at")
    return ForgettingClass([estimate.steps for estimate in kept], [estimate.overlap for estimate in kept], states)


# -- How long states last: observed stays against the geometric ones of a Markov chain -------------------------------

HIGH = 0.95
"""The quantile that is shown beside the mean."""


def observed(ended: NDArray[np.int64], cut: NDArray[np.int64]) -> tuple[float, float] | None:
    """Return mean and high quantile of stays, in records; None where none was seen to end.

    Where the longest stays are all cut off, the mean counts them as ended, and a quantile beyond is infinite.

    Parameters
    ----------
    ended, cut : ndarray
        Entry n is the number of stays of n records whose end was seen, or that were cut off then.

    Examples
    --------
    >>> import numpy as np
    >>> observed(np.array([0, 3, 0, 1]), np.array([0]))
    (1.5, 3.0)
    """
    longest = max(len(ended), len(cut))
    over, lost = (np.pad(counts, (0, longest - len(counts))) for counts in (ended, cut))
    if not over.any():
        return None
    reached = (over + lost)[::-1].cumsum()[::-1]
    left = np.cumprod(1 - over / np.maximum(reached, 1))  # share of stays that last longer than n records
    within = np.flatnonzero(left <= (1 - HIGH) * (1 + 1e-12))
    return float(left[:-1].sum()), float(within[0]) if within.size else math.inf


def geometric(stay: float) -> tuple[float, float]:
    """Return mean and high quantile of the stays of a chain that keeps its state with this probability.

    Examples
    --------
    >>> geometric(0.5)
    (2.0, 5.0)
    """
    if stay >= 1:
        return math.inf, math.inf
    if stay <= 0:
        return 1.0, 1.0
    return 1 / (1 - stay), float(max(1, math.ceil(math.log(1 - HIGH) / math.log(stay) * (1 - 1e-12))))


APART = tuple(2**i for i in range(10))
"""Numbers of steps after which it is asked how much is forgotten; a chain may be shorter."""


class ModelCheck(CheckFields, Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether a model describes public data, in numbers (:class:`CheckFields`) and in a sentence; prints as text.

    Examples
    --------
    See :func:`check_model`.
    """

    def __repr__(self) -> str:
        return f"ModelCheck({sentences_of(self.verdict)[0]!r})"

    def _view(self) -> View:
        return view_of(self)

    def __str__(self) -> str:
        return text_of(self)

    def to_json(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the numbers into a file; infinite ones are null there.

        Raises
        ------
        RecordError
            If the file cannot be written, or something else stands there.
        """
        write_whole(path, msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n", CHECK, overwrite=overwrite)


@overload
def check_model(
    model: Any, source: Any, state: str, *, public: bool = ..., epsilon: float = ..., **reading: Any
) -> ModelCheck: ...
@overload
def check_model(
    model: Any, source: Any, *, public: bool = ..., epsilon: float = ..., **reading: Any
) -> NetworkCheck: ...
def check_model(
    model: Any, source: Any, state: Any = None, *, public: bool = False, epsilon: float = 1.0, **reading: Any
) -> Any:
    """Hold a model against public data: whether it describes them, and what its noise leaks where it does not.

    Parameters
    ----------
    model : Model, MarkovChain, list of these, ChainClass, or BayesianNetwork
        The class Θ.
    source, state, **reading
        Public data, as for :func:`read_sequences`; bins and states are the model's. For a network as for
        :func:`read_rows`, without ``state``.
    public : bool
        That the data are public. What a check says are exact functions of the data, which no noise protects.
    epsilon : float, default 1
        Privacy parameter of the noise that is spoken of: for a histogram of as many records, or for the marginals of
        all columns of a network, under the model.

    Returns
    -------
    ModelCheck, or NetworkCheck of a network
        Numbers and a verdict; it prints as text.

    Raises
    ------
    ParameterError
        If it is not said that the data are public; and as :func:`read_sequences` does.
    NotApplicableError
        If Θ is neither a list of Markov chains nor one network.
    ModelError
        If the data hold no transition.
    DataError
        As :func:`read_sequences` does.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> days = pl.DataFrame({"who": ["a"] * 400 + ["b"] * 400, "s": list("rrrw" * 100) + list("rrww" * 100)})
    >>> chain = pf.fit_chain(pf.read_sequences(days, "s", subject="who"))
    >>> found = check_model(chain, days, "s", subject="who", public=True)
    >>> found.verdict.split(". ")[0]
    'Do not go on with this model'
    >>> [(stay.state, stay.observed) for stay in found.stays]
    [('r', (2.5, 3.0)), ('w', (1.505, 2.0))]
    """
    theta, bins = (model.theta, model.bins) if isinstance(model, Model) else (as_theta(model), None)
    epsilon = as_epsilon(epsilon)
    if public is not True:
        raise ParameterError(
            "a check tells exact numbers of the data, so it is for public data only: if everybody may see these, say "
            "public=True"
        )
    if isinstance(theta, ModelClass) and theta.networks:
        if state is not None:
            raise ParameterError(f"state is {state!r}, and belongs to Markov chains: leave it out for networks")
        return check_network(theta, source, epsilon, reading)
    chains = _chains(theta)
    if bins is not None and reading.get("bins") is None:
        reading["bins"] = bins
    reading["states"] = theta.states
    habits, no_hours = _read(source, state, reading)
    check_transitions(habits.sequences)
    report_progress("likelihoods", 0.0)
    matrices = [chain.transition_matrix for chain in chains.chains]
    subjects, gains = _likelihoods(habits, matrices)
    curve, not_known = _curve(habits)
    noise, reason = _noise(chains, habits, epsilon)
    richer = (
        tuple(RicherModel(kind=kind, reason=reason) for kind in ("pooled", "own", "hour", "forgets"))
        if noise is None
        else richer_models(habits, curve, noise, no_hours=no_hours, no_curve=not_known)
    )
    multiplier = None if noise is None else noise.noise_multiplier
    sequences, steady = habits.sequences, _stationary(chains)
    known = None if steady is None else overlap(chains, [estimate.steps for estimate in curve])
    return ModelCheck(
        verdict=verdict_of(gains, richer, epsilon, subjects, multiplier),
        origin=theta.origin,
        source=sequences.base.source,
        epsilon=epsilon,
        noise_multiplier=multiplier,
        records=sequences.records,
        transitions=int(habits.steps.number.sum()),
        gains=gains,
        richer=richer,
        subjects=subjects,
        stays=_stays(habits, matrices),
        overlaps=tuple(
            OverlapAfter(
                steps=estimate.steps,
                worst=estimate.overlap,
                subject=estimate.subject,
                pooled=estimate.pooled,
                model=None if known is None else known[i],
            )
            for i, estimate in enumerate(curve)
        ),
        states=sequences.states,
        occupancy=None if habits.occupancy is None else tuple(tuple(map(int, row)) for row in habits.occupancy),
        stationary=() if steady is None else tuple(_ends(column) for column in steady.T),
    )


def _chains(theta: Theta) -> ChainClass:
    if not isinstance(theta, ChainClass) or not theta.chains:
        raise NotApplicableError(
            f"Θ is a class of {theta.kind}, and a check covers Markov chains and networks: check a chain fitted to the "
            "same data"
        )
    return theta


def _read(source: Any, state: str, reading: Mapping[str, Any]) -> tuple["Habits", str | None]:
    """Read habits by the hour; where no hours are known without them, and why."""
    from pufferfish.data.public_counts import read_habits  # here: it loads what reads tables

    try:
        habits = read_habits(source, state, APART, clock="hour", **reading)
    except (ParameterError, DataError) as error:
        why = str(error)
    else:
        step = habits.sequences.base.step or habits.sequences.usual_step
        if step is None or parse_duration(step, "step").value % _DAY:
            return habits, None
        why = f"records are {step} apart, always at the same hour; fit --clock weekday would tell weekdays apart"
    return read_habits(source, state, APART, **reading), why


_DAY = parse_duration("1d", "a day").value


def _likelihoods(habits: "Habits", matrices: Sequence[Values]) -> tuple[tuple[SubjectCheck, ...], dict[str, float]]:
    """Return what each law says of every subject, and by how many nats it predicts better than what is simpler."""
    steps = habits.steps
    laws = {
        name: np.log(probabilities) for name, probabilities in held_out(steps, len(habits.sequences.states)).items()
    }
    with np.errstate(divide="ignore"):
        members = np.log(by_model(steps, matrices))
    many = len(habits.subjects)

    def of_each(logs: Values) -> Values:
        return np.bincount(steps.subject, weights=logs * steps.number, minlength=many).astype(np.float64)

    totals = {name: of_each(logs) for name, logs in laws.items()}
    by_member = np.array([of_each(logs) for logs in members])
    best = by_member.argmax(axis=0)
    model = by_member.max(axis=0)
    numbers = np.bincount(steps.subject, weights=steps.number, minlength=many)
    subjects = tuple(
        SubjectCheck(
            subject=who,
            transitions=int(numbers[i]),
            model=float(model[i] / numbers[i]),
            member=int(best[i]),
            **{name: float(values[i] / numbers[i]) for name, values in totals.items()},
        )
        for i, who in enumerate(habits.subjects)
    )
    whole = {name: float(values.sum()) for name, values in totals.items()}
    gains = {name: value - whole["pooled"] for name, value in whole.items()}
    gains["pooled"] = whole["pooled"] - float(model.sum())
    if "own" in gains:
        gains["own"] = whole["own"] - max(whole["pooled"], float(model.sum()))
    return subjects, gains


def _curve(habits: "Habits") -> tuple[list[OverlapEstimate], str | None]:
    """Return how much is forgotten, for as many steps as there are pairs of every state; and why for none."""
    curve: list[OverlapEstimate] = []
    for pairs in habits.pairs:
        try:
            curve.append(overlap_of(pairs, habits.sequences.states, SMOOTHING))
        except ModelError as error:  # too few records so far apart, or a state that no record has
            return curve, None if curve else str(error)
    return curve, None


def _noise(theta: ChainClass, habits: "Habits", epsilon: float) -> tuple[Calibration | None, str]:
    try:
        bound = LeakagePropagation(theta, habits.sequences.length)
        return bound.calibrate(Histogram(), epsilon), ""
    except (NotApplicableError, ModelError) as error:
        return None, f"there is no noise for the model itself: {error}"


def _stationary(theta: ChainClass) -> Values | None:
    """Return the stationary law of every member, if all start with it."""
    starts = [chain.initial_distribution for chain in theta.chains]
    if not all(isinstance(start, str) and start == "stationary" for start in starts):
        return None
    return np.array([chain.stationary_distribution for chain in theta.chains])


def _stays(habits: "Habits", matrices: Sequence[Values]) -> tuple[StateStays, ...]:
    stays: list[StateStays] = []
    for x, (ended, cut) in enumerate(habits.stays):
        kept = [float(matrix[x, x]) for matrix in matrices]
        least, most = geometric(min(kept)), geometric(max(kept))
        name = habits.sequences.states[x]
        stays.append(StateStays(state=name, observed=observed(ended, cut), least=least, most=most))
    return tuple(stays)


def _ends(values: Values) -> tuple[float, float]:
    return float(values.min()), float(values.max())
