"""What a release tells of a stretch, in one call."""

from typing import Any

from pufferfish.mechanisms.protected import ProtectedStretch, StretchBound


def leakage_of_stretch(theta: Any, length: Any, losses: Any, steps: int, *, near: Any = None) -> StretchBound:
    """The leakage of losses about any so many steps in a row, and where it is attained."""
    return ProtectedStretch(theta, length, steps, near=near).prove(losses)
