"""Does a model describe public data? Numbers, a picture and a verdict."""

from pufferfish.check.check import ModelCheck, check_model
from pufferfish.check.record import CHECK, OverlapAfter, RicherModel, StateStays, SubjectCheck

__all__ = ["CHECK", "ModelCheck", "OverlapAfter", "RicherModel", "StateStays", "SubjectCheck", "check_model"]
