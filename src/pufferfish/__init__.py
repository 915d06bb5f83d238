"""Private statistics of correlated records."""

from pufferfish.core.divergence import max_divergence
from pufferfish.mechanisms import EntryDP, GroupDP, MQMApprox, MQMExact, ParticipantDP
from pufferfish.models import ChainClass, ChainLength, MarkovChain
from pufferfish.queries import Count, Frequency, Histogram, Mean, Sum

__all__ = ["ChainClass", "ChainLength", "Count", "EntryDP", "Frequency", "GroupDP", "Histogram", "MQMApprox", "MQMExact", "MarkovChain", "Mean", "ParticipantDP", "Sum", "max_divergence"]
