"""What noise for a model leaks to somebody who knows more: richer models fitted to the same public data."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish._base.progress import part_of, report_progress
from pufferfish.check.likelihood import TOWARDS
from pufferfish.check.record import RicherModel
from pufferfish.check.words import CALLED
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.fit.chain import fit_chain, fit_periodic
from pufferfish.fit.forgetting import OverlapEstimate
from pufferfish.fit.subjects import POOLING, class_of_each
from pufferfish.mechanisms import LeakagePropagation
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import Histogram
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.higher_order_chain import HigherOrderChain

if TYPE_CHECKING:
    from pufferfish.data.public_counts import Habits

__all__ = ["richer_models"]

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
    found: list[RicherModel] = []
    for i, (kind, make) in enumerate(made.items()):
        if (reason := unknown.get(kind)) is not None:
            found.append(RicherModel(kind=kind, reason=reason))
            continue
        report_progress("leakage under richer models", i / len(made))
        with part_of(f"{CALLED[kind]} ({i + 1} of {len(made)})"):
            found.append(_leaking(kind, make, noise, sequences.length))
    return tuple(found)


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
    kept = [each for each in curve if each.overlap > 0]
    if not kept:
        raise ModelError("two states have nothing in common at any distance that was looked at")
    return ForgettingClass([each.steps for each in kept], [each.overlap for each in kept], states)
