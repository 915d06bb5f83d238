"""What the noise for a model leaks to somebody who knows another one."""

from collections.abc import Callable
from typing import Any

import msgspec

from pufferfish.check.record import RicherModel
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.mechanisms import LeakagePropagation
from pufferfish.queries import Query
from pufferfish.theta.states import state_label

__all__ = ["NoiseFor"]


class NoiseFor:
    """Noise for a class Θ, of one query at one ε; or why there is none."""

    def __init__(self, theta: Any, length: Any, query: Query, epsilon: float) -> None:
        self._length, self._query, self._epsilon = length, query, epsilon
        self.multiplier: float | None = None
        """The noise multiplier."""
        self._loss: Any = None
        self._reason = ""
        try:
            bound = LeakagePropagation(theta, length)
            if bound.theta.networks:
                noise = bound.calibrate(query, epsilon)
                self.multiplier, self._loss = noise.noise_multiplier, noise.node_loss
            else:
                self.multiplier = bound.noise_to_compare(query, epsilon)
                self._loss = 1 / self.multiplier
        except (NotApplicableError, ModelError) as error:
            self._reason = f"there is no noise for the model itself: {error}"

    def leakage(self, model: Any) -> float:
        """Return what it leaks under a model."""
        return LeakagePropagation(model, self._length).prove(self._loss)[0]

    def under(self, asked: RicherModel, make: Callable[[], Any]) -> RicherModel:
        """Return a richer model with what the noise leaks under it, and the noise that it needs."""
        if self.multiplier is None:
            return msgspec.structs.replace(asked, reason=self._reason)
        try:
            bound = LeakagePropagation(theta := make(), self._length)
            leaks, witness = bound.prove(self._loss)
            needs = bound.noise_to_compare(self._query, self._epsilon)
        except (ModelError, ParameterError, NotApplicableError) as error:
            return msgspec.structs.replace(asked, reason=str(error))
        names, node, who = getattr(theta, "names", ()), getattr(witness, "node", None), None
        if bound.theta.networks and node is not None:
            who = state_label(node)
        elif len(names) > 1 and witness is not None:
            who = names[witness.theta]
        return msgspec.structs.replace(asked, leakage=leaks, noise_multiplier=needs, decided_by=who)
