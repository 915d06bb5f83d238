"""Which charging a ledger has: that of chains, or that of networks."""

from typing import Any

from pufferfish.errors import ParameterError, ReleaseRefused
from pufferfish.ledger._chain_charges import ChainCharging
from pufferfish.ledger._node_charges import NodeCharging
from pufferfish.ledger.charges import Charging
from pufferfish.mechanisms.influence_bound import InfluenceBound

__all__ = ["anywhere", "charging_of"]


def anywhere(bound: Any) -> Any:
    """Return a bound that knows nothing of where records are: each entry of a ledger says which steps it reads."""
    if not (isinstance(bound, InfluenceBound) and bound.theta.of_chains and any(c.places for c in bound.length)):
        return bound
    return bound.of(bound.given_by, [chain.anywhere for chain in bound.length], **bound.settings)


def charging_of(bound: Any) -> Charging:
    """Return how releases under a bound are charged, refused where it cannot keep a ledger."""
    if not isinstance(bound, InfluenceBound):
        raise ParameterError(
            f"bound is {type(bound).__name__}, expected a mechanism such as LeakagePropagation(theta, length)"
        )
    if not bound.composes:
        raise ReleaseRefused(f"{bound.title} does not compose: use LeakagePropagation, or another influence bound")
    if bound.theta.stands_for_more:
        raise ReleaseRefused("a ledger needs theta, whose states are known, not pi_min and eigengap alone")
    if bound.theta.of_chains:
        return ChainCharging(bound)
    if bound.networks:
        return NodeCharging(bound)
    raise ReleaseRefused(f"a ledger covers Markov chains and Bayesian networks, and Θ is a class of {bound.theta.kind}")
