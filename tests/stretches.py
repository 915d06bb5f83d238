"""What a release tells of a stretch, and the noise that hides it, each in one call."""

from typing import Any

from pufferfish.mechanisms._propagation_on_chains import ProtectedStretch
from pufferfish.mechanisms.engine import Bound
from pufferfish.queries.record_loss import as_record_loss
from pufferfish.theta.model_class import as_theta, lengths_of


def leakage_of_stretch(theta: Any, length: Any, losses: Any, steps: int, *, near: Any = None) -> Bound:
    """The leakage of losses about any so many steps in a row, and where it is attained."""
    engine, given = _engine_and_losses(theta, length, losses, steps, near)
    return engine.leakage(given)


def noise_of_stretch(theta: Any, length: Any, losses: Any, steps: int, epsilon: float, *, near: Any = None) -> float:
    """The least number found that divides losses so that a stretch leaks at most epsilon."""
    engine, given = _engine_and_losses(theta, length, losses, steps, near)
    (noise, _), *_ = engine.candidate_scales(given, epsilon)
    return noise


def _engine_and_losses(theta: Any, length: Any, losses: Any, steps: int, near: Any) -> Any:
    model = as_theta(theta)
    lengths = lengths_of(model, length)
    return ProtectedStretch(model, lengths, steps, near), as_record_loss(losses, model, lengths)
