"""Does this Θ describe these public data? Likelihoods, stays, hours and forgetting; and what its noise would leak."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import called_as
from pufferfish._base.durations import parse_duration
from pufferfish._base.progress import report_progress
from pufferfish.check.leaks import richer_models
from pufferfish.check.likelihood import by_model, held_out
from pufferfish.check.record import ModelCheck, OverlapAfter, RicherModel, StateStays, SubjectCheck
from pufferfish.check.stays import geometric, observed
from pufferfish.check.words import verdict_of
from pufferfish.errors import DataError, ModelError, NotApplicableError, ParameterError
from pufferfish.fit.chain import check_transitions
from pufferfish.fit.forgetting import SMOOTHING, OverlapEstimate, overlap, overlap_of
from pufferfish.fit.model_file import Model
from pufferfish.mechanisms import LeakagePropagation
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.queries import Histogram
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.model_class import Theta, as_theta

if TYPE_CHECKING:
    from pufferfish.data.public_counts import Habits

__all__ = ["APART", "check_model"]

APART = tuple(2**i for i in range(10))
"""Numbers of steps after which it is asked how much is forgotten; a chain may be shorter."""

Values = NDArray[np.float64]


@called_as('check_model(model, "public.csv", "activity", subject="person", time="minute", public=True)')
def check_model(
    model: Any, source: Any, state: str, *, public: bool = False, epsilon: float = 1.0, **reading: Any
) -> ModelCheck:
    """Hold a model against public data: whether it describes them, and what its noise leaks where it does not.

    Parameters
    ----------
    model : Model, MarkovChain, list of these, or ChainClass
        The class Θ.
    source, state, **reading
        Public data, as for :func:`read_sequences`; bins and states are the model's.
    public : bool
        That the data are public. What a check says are exact functions of the data, which no noise protects.
    epsilon : float, default 1
        Privacy parameter of the noise that is spoken of: for a histogram of as many records, under the model.

    Returns
    -------
    ModelCheck
        Numbers and a verdict; it prints as text.

    Raises
    ------
    ParameterError
        If it is not said that the data are public; and as :func:`read_sequences` does.
    NotApplicableError
        If Θ is no list of Markov chains.
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
    chains = _chains(theta)
    epsilon = as_epsilon(epsilon)
    if public is not True:
        raise ParameterError(
            "a check tells exact numbers of the data, so it is for public data only: if everybody may see these, say "
            "public=True"
        )
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
    known = None if steady is None else overlap(chains, [each.steps for each in curve])
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
                steps=each.steps,
                worst=each.overlap,
                subject=each.subject,
                pooled=each.pooled,
                model=None if known is None else known[i],
            )
            for i, each in enumerate(curve)
        ),
        states=sequences.states,
        occupancy=None if habits.occupancy is None else tuple(tuple(map(int, row)) for row in habits.occupancy),
        stationary=() if steady is None else tuple(_ends(column) for column in steady.T),
    )


def _chains(theta: Theta) -> ChainClass:
    if not isinstance(theta, ChainClass):
        instead = (
            "compare its tables with counted shares" if theta.networks else "check a chain fitted to the same data"
        )
        raise NotApplicableError(f"Θ is a class of {theta.kind}, and a check covers Markov chains: {instead}")
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
    laws = {name: np.log(found) for name, found in held_out(steps, len(habits.sequences.states)).items()}
    with np.errstate(divide="ignore"):
        members = np.log(by_model(steps, matrices))
    many = len(habits.subjects)

    def of_each(logs: Values) -> Values:
        return np.bincount(steps.subject, weights=logs * steps.number, minlength=many).astype(np.float64)

    totals = {name: of_each(logs) for name, logs in laws.items()}
    each = np.array([of_each(logs) for logs in members])
    best = each.argmax(axis=0)
    model = each.max(axis=0)
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
    found: list[OverlapEstimate] = []
    for pairs in habits.pairs:
        try:
            found.append(overlap_of(pairs, habits.sequences.states, SMOOTHING))
        except ModelError as error:  # too few records so far apart, or a state that no record has
            return found, None if found else str(error)
    return found, None


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
    found: list[StateStays] = []
    for x, (ended, cut) in enumerate(habits.stays):
        kept = [float(matrix[x, x]) for matrix in matrices]
        least, most = geometric(min(kept)), geometric(max(kept))
        name = habits.sequences.states[x]
        found.append(StateStays(state=name, observed=observed(ended, cut), least=least, most=most))
    return tuple(found)


def _ends(values: Values) -> tuple[float, float]:
    return float(values.min()), float(values.max())
