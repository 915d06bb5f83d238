"""Influence bounds, one file each; to add one, write its file and name it here."""

from pufferfish.mechanisms.base import InfluenceBound
from pufferfish.mechanisms.entry_dp import EntryDP
from pufferfish.mechanisms.group_dp import GroupDP, ParticipantDP
from pufferfish.mechanisms.leakage_propagation import LeakagePropagation
from pufferfish.mechanisms.mqm_approx import MQMApprox
from pufferfish.mechanisms.mqm_exact import MQMExact

__all__ = [
    "MECHANISMS",
    "EntryDP",
    "GroupDP",
    "InfluenceBound",
    "LeakagePropagation",
    "MQMApprox",
    "MQMExact",
    "ParticipantDP",
]

MECHANISMS: tuple[type[InfluenceBound], ...] = (EntryDP, GroupDP, MQMApprox, MQMExact, LeakagePropagation)
"""What ``compare`` lists and the command line offers, in this order; all are built from (theta, length)."""
