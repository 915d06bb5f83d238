"""The kinds of classes of chains that are described as a whole; to add one, write its file and name it here."""

from pufferfish.theta.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.theta.continuum import Continuum
from pufferfish.theta.forgetting_class import ForgettingClass

__all__ = ["CONTINUA", "CONTINUUM_KINDS"]

CONTINUA: tuple[type[Continuum], ...] = (BinaryChainInterval, IntervalChain, ForgettingClass)
"""Every such kind."""

CONTINUUM_KINDS = {each.kind: each for each in CONTINUA}
"""By the word that files know them by."""
