"""Laws of a query given secrets, under every θ of a class: what query-specific mechanisms calibrate to."""

from collections.abc import Iterator, Sequence

from pufferfish.errors import NotApplicableError, ParameterError, QueryError
from pufferfish.mechanisms.one_query._laws import network_pairs
from pufferfish.mechanisms.one_query._laws_of_chains import chain_pairs, chain_work
from pufferfish.mechanisms.one_query._part_pairs import About, LawPair
from pufferfish.mechanisms.one_query.cliques import clique_pairs
from pufferfish.mechanisms.one_query.given import given_pairs
from pufferfish.mechanisms.one_query.joints import joint_pairs
from pufferfish.queries import BoundQuery, JointQuery, LinearQuery, Query, StepQuery
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.cliques import Cliques
from pufferfish.theta.given_laws import GivenLaws
from pufferfish.theta.joint_distribution import JointDistribution
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.model_class import Theta
from pufferfish.theta.secrets import SecretPair

__all__ = ["About", "LawPair", "pairs_of_laws", "work_of_laws"]


def pairs_of_laws(
    theta: Theta,
    lengths: Sequence[ChainLength],
    query: Query,
    bound: BoundQuery,
    secrets: Sequence[SecretPair] | None,
) -> Iterator[LawPair]:
    """Yield the pairs of laws of a query given secrets that shall not be told apart, under every θ.

    Secrets of probability 0 under a θ are left out, as Definition 2.1 says.

    Raises
    ------
    NotApplicableError
        If a model cannot tell the law of such a query, or given such secrets.
    """
    if isinstance(theta, ChainClass):
        query_on_steps = bound if isinstance(bound, StepQuery) else _linear(bound, "Markov chains")
        yield from chain_pairs(theta, lengths, query_on_steps, secrets)
        return
    for index, member in enumerate(theta.members):
        if isinstance(member, JointDistribution):
            assert not isinstance(bound, StepQuery | JointQuery)  # a mechanism refuses to bind it
            yield from joint_pairs(index, member, bound, secrets)
        elif isinstance(member, Cliques):
            linear = _linear(bound, member.kind)
            if linear.factors is not None:
                raise NotApplicableError("in a clique nobody is told from another: records count alike")
            yield from clique_pairs(index, member, linear, secrets)
        elif isinstance(member, BayesianNetwork):
            yield from network_pairs(index, member, _linear(bound, member.kind), secrets)
        elif isinstance(member, GivenLaws):
            if secrets is not None:
                raise ParameterError("laws of your own name their secrets: leave secrets out, and give pairs there")
            yield from given_pairs(index, member, query, bound)
        else:
            raise NotApplicableError(f"the law of a query is not known for {theta.kind}")


def work_of_laws(theta: Theta, lengths: Sequence[ChainLength], bound: BoundQuery) -> float:
    """Return about how many multiplications the laws of a query take on chains; 0 for other models, which are small."""
    known = isinstance(theta, ChainClass) and isinstance(bound, LinearQuery | StepQuery)
    return chain_work(theta, lengths, bound) if known else 0.0


def _linear(bound: BoundQuery, kind: str) -> LinearQuery:
    if not isinstance(bound, LinearQuery):
        raise QueryError(f"a function of the database needs a JointDistribution, and Θ is a class of {kind}")
    return bound
