"""Does a model describe public data? Numbers, a picture and a verdict."""

from pufferfish.check.check import ModelCheck, check_model
from pufferfish.check.network import NetworkCheck, PairCheck
from pufferfish.check.record import (
    CHECK,
    OverlapAfter,
    Remedy,
    RicherModel,
    StateStays,
    SubjectCheck,
    Verdict,
)

__all__ = [
    "CHECK",
    "ModelCheck",
    "NetworkCheck",
    "OverlapAfter",
    "PairCheck",
    "Remedy",
    "RicherModel",
    "StateStays",
    "SubjectCheck",
    "Verdict",
    "check_model",
]
