"""Θ: the distributions an adversary may believe in, and the secrets that are kept from him."""

from pufferfish.models.bayesian_network import CPT, BayesianNetwork
from pufferfish.models.chain_class import ChainClass, as_chain_class
from pufferfish.models.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.models.cliques import Cliques
from pufferfish.models.given_laws import GivenLaws
from pufferfish.models.joint_distribution import JointDistribution
from pufferfish.models.lengths import ChainLength
from pufferfish.models.markov_chain import MarkovChain
from pufferfish.models.model_class import ModelClass, as_theta
from pufferfish.models.quilt import Quilt
from pufferfish.models.secrets import CountIs, Fact, RecordIs

__all__ = [
    "CPT",
    "BayesianNetwork",
    "BinaryChainInterval",
    "ChainClass",
    "ChainLength",
    "Cliques",
    "CountIs",
    "Fact",
    "GivenLaws",
    "IntervalChain",
    "JointDistribution",
    "MarkovChain",
    "ModelClass",
    "Quilt",
    "RecordIs",
    "as_chain_class",
    "as_theta",
]
