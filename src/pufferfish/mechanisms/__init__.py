"""Mechanisms, one file each; to add one, write its file and name it here."""

from collections.abc import Mapping
from typing import Any

from pufferfish._base.words import did_you_mean
from pufferfish.errors import ParameterError
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.gk16 import GK16
from pufferfish.mechanisms.group_dp import EntryDP, GroupDP, ParticipantDP
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.markov_quilt import MarkovQuilt
from pufferfish.mechanisms.mechanism import Mechanism
from pufferfish.mechanisms.mqm_approx import MQMApprox
from pufferfish.mechanisms.mqm_exact import MQMExact
from pufferfish.mechanisms.one_query.law_mechanism import LawMechanism
from pufferfish.mechanisms.one_query.wasserstein import ApproximateWasserstein, ExactLaplace, Wasserstein
from pufferfish.mechanisms.promises import Promise, calibration_view, promises_of
from pufferfish.mechanisms.propagation import LeakagePropagation

Calibration.promised = staticmethod(promises_of)
Calibration.shown = staticmethod(calibration_view)

BOUNDS: tuple[type[InfluenceBound], ...] = (
    EntryDP,
    GroupDP,
    GK16,
    MQMApprox,
    MQMExact,
    MarkovQuilt,
    LeakagePropagation,
)
"""Influence bounds, which compose: what a ledger can be kept by. All are built from (theta, length).

Later ones cover more: where several need equal noise, ``compare`` recommends the last of them.
"""

MECHANISMS: tuple[type[Mechanism], ...] = (*BOUNDS, Wasserstein, ExactLaplace)
"""What ``compare`` lists and the command line offers, in this order; all are built from (theta, length)."""


def bound_of(name: str, theta: Any, length: Any, settings: Mapping[str, Any]) -> InfluenceBound:
    """Return the influence bound with a name, as a record tells it."""
    known = {mechanism.name: mechanism for mechanism in (*BOUNDS, ParticipantDP)}
    if name not in known:
        raise ParameterError(
            f"there is no mechanism {name!r}.{did_you_mean(name, [*known])} Mechanisms: {', '.join(known)}"
        )
    return known[name].of(theta, length, **settings)
