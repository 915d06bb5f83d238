"""What the noise for a model leaks to somebody who knows another one."""

from collections.abc import Callable
from typing import Any

import msgspec

from pufferfish.check.record import RicherModel
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.mechanisms import LeakagePropagation
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import Query
from pufferfish.theta.states import state_label

__all__ = ["NoiseFor"]


class NoiseFor:
    """Noise for a class Θ, of one query at one ε; or why there is none."""

    def __init__(self, theta: Any, length: Any, query: Query, epsilon: float) -> None:
        self._length, self._query, self._epsilon = length, query, epsilon
        self._calibration: Calibration | None = None
        self._reason = ""
        try:
            self._calibration = LeakagePropagation(theta, length).calibrate(query, epsilon)
        except (NotApplicableError, ModelError) as error:
            self._reason = f"there is no noise for the model itself: {error}"

    @property
    def multiplier(self) -> float | None:
        """The noise multiplier."""
        return None if self._calibration is None else self._calibration.noise_multiplier

    def leakage(self, model: Any) -> float:
        """Return what it leaks under a model."""
        return self._prove(LeakagePropagation(model, self._length))[0]

    def under(self, asked: RicherModel, make: Callable[[], Any]) -> RicherModel:
        """Return a richer model with what the noise leaks under it, and the noise that it needs."""
        if self._calibration is None:
            return msgspec.structs.replace(asked, reason=self._reason)
        try:
            bound = LeakagePropagation(theta := make(), self._length)
            leaks, witness = self._prove(bound)
            needs = bound.calibrate(self._query, self._epsilon).noise_multiplier
        except (ModelError, ParameterError, NotApplicableError) as error:
            return msgspec.structs.replace(asked, reason=str(error))
        names, node, who = getattr(theta, "names", ()), getattr(witness, "node", None), None
        if bound.theta.networks and node is not None:
            who = state_label(node)
        elif len(names) > 1 and witness is not None:
            who = names[witness.theta]
        return msgspec.structs.replace(asked, leakage=leaks, noise_multiplier=needs, decided_by=who)

    def _prove(self, bound: LeakagePropagation) -> tuple[float, Any]:
        noise = self._calibration
        assert noise is not None
        assert noise.noise_multiplier is not None
        return bound.prove(noise.node_loss if bound.theta.networks else 1 / noise.noise_multiplier)
