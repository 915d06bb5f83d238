"""Θ: the distributions an adversary may believe in."""

from pufferfish.models.chain_class import ChainClass, as_chain_class
from pufferfish.models.lengths import ChainLength
from pufferfish.models.markov_chain import MarkovChain

__all__ = ["ChainClass", "ChainLength", "MarkovChain", "as_chain_class"]
