"""Θ: the distributions an adversary may believe in, and the secrets that are kept from him."""

from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.theta.cliques import Cliques
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.given_laws import GivenLaws
from pufferfish.theta.higher_order_chain import HigherOrderChain
from pufferfish.theta.joint_distribution import JointDistribution
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import ModelClass, as_theta
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.quilt import Quilt
from pufferfish.theta.secrets import CountIs, Fact, RecordIs
from pufferfish.theta.stays_chain import StaysChain

__all__ = [
    "CPT",
    "BayesianNetwork",
    "BinaryChainInterval",
    "ChainClass",
    "ChainLength",
    "Cliques",
    "CountIs",
    "Fact",
    "ForgettingClass",
    "GivenLaws",
    "HigherOrderChain",
    "IntervalChain",
    "JointDistribution",
    "MarkovChain",
    "ModelClass",
    "PeriodicChain",
    "Quilt",
    "RecordIs",
    "StaysChain",
    "as_theta",
]
