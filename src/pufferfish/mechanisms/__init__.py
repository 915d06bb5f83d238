"""Influence bounds, one file each; to add one, write its file and name it here."""

from collections.abc import Mapping
from typing import Any

from pufferfish.errors import ParameterError
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
    "bound_of",
]

MECHANISMS: tuple[type[InfluenceBound], ...] = (EntryDP, GroupDP, MQMApprox, MQMExact, LeakagePropagation)
"""What ``compare`` lists and the command line offers, in this order; all are built from (theta, length)."""


def bound_of(name: str, theta: Any, length: Any, settings: Mapping[str, Any]) -> InfluenceBound:
    """Return the bound with a name, as a record tells it.

    Raises
    ------
    ParameterError
        If there is no such bound.
    """
    for mechanism in (*MECHANISMS, ParticipantDP):
        if mechanism.name == name:
            return mechanism.of(theta, length, **settings)
    raise ParameterError(f"there is no mechanism {name!r}")
