"""The mechanisms that are compared: those of the paper, as it has them, and ours."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pufferfish.data import Sequences
from pufferfish.errors import ModelError, NotApplicableError
from pufferfish.fit.chain import fit_chain
from pufferfish.mechanisms import (
    GK16,
    ExactLaplace,
    GroupDP,
    LeakagePropagation,
    Mechanism,
    MQMApprox,
    MQMExact,
    ParticipantDP,
    Wasserstein,
)
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import Query
from pufferfish.theta.markov_chain import MarkovChain

__all__ = [
    "BAYESIAN",
    "CHAIN_BOUNDS",
    "FOR_ONE_QUERY",
    "PARTICIPANT",
    "TEMPORAL",
    "Contender",
    "fitted",
    "of_name",
    "title_of",
]


@dataclass(frozen=True, slots=True)
class Contender:
    """A mechanism of a table.

    Parameters
    ----------
    name, title : str
        Of the mechanism.
    make : callable
        Makes it from Θ and lengths.
    """

    name: str
    title: str
    make: Callable[[Any, Any], Mechanism]

    def calibrate(self, theta: Any, length: Any, query: Query, epsilon: float) -> tuple[Calibration | None, str | None]:
        """Return the noise, or why there is none."""
        try:
            return self.make(theta, length).calibrate(query, epsilon), None
        except NotApplicableError as error:
            return None, error.reason


def _algorithm_4(theta: Any, length: Any) -> MQMApprox:
    """Return Algorithm 4 as printed: one π_min and one eigengap for the whole class, the least of each."""
    own = MQMApprox(theta, length)
    return MQMApprox(theta, length, pi_min=own.pi_min, eigengap=own.eigengap)


def _plain(mechanism: type[Mechanism]) -> Contender:
    return Contender(mechanism.name, mechanism.title, mechanism.of)


PARTICIPANT = Contender(ParticipantDP.name, "DP (participant)", ParticipantDP.of)
"""The paper's row "DP": a whole participant is hidden; for what many participants add up to only."""

CHAIN_BOUNDS = (
    _plain(GroupDP),
    _plain(GK16),
    Contender(MQMApprox.name, MQMApprox.title, _algorithm_4),
    _plain(MQMExact),
    _plain(LeakagePropagation),
)
"""The paper's four, and leakage propagation."""

FOR_ONE_QUERY = (_plain(Wasserstein), _plain(ExactLaplace))
"""Mechanisms that look at the law of one query."""


BAYESIAN, TEMPORAL = "bayesian-dp", "temporal"
_OF_OTHER_PAPERS = {BAYESIAN: "Bayesian DP", TEMPORAL: "temporal leakage"}
"""Bounds that are compared with, and are no mechanisms of this package."""


def fitted(data: Sequences) -> tuple[MarkovChain | None, str | None]:
    """Return the stationary chain fitted to the data, or why there is none."""
    try:
        return fit_chain(data, smoothing=0), None
    except ModelError as error:
        return None, str(error)


def of_name(name: str) -> Contender:
    """Return the contender with a name."""
    return next(c for c in (PARTICIPANT, *CHAIN_BOUNDS, *FOR_ONE_QUERY) if c.name == name)


def title_of(name: str) -> str:
    """Return what a contender, or a bound of another paper, is called in tables."""
    return _OF_OTHER_PAPERS.get(name) or of_name(name).title
