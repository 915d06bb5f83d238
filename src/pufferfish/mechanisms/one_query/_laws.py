"""Laws of additive queries on Bayesian networks, given secrets: exact inference, without listing databases."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._base.words import did_you_mean, names_of
from pufferfish._core.laws.law import Law, VectorLaw, sum_of
from pufferfish._core.laws.of_networks import Factor, additive_law, all_node_laws
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.numbers.wide import Wide
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, QueryError
from pufferfish.mechanisms.one_query._laws_of_chains import chain_pairs
from pufferfish.mechanisms.one_query.pairs import (
    About,
    Coding,
    LawPair,
    Values,
    both,
    clique_conditions,
    counts_of,
    law_of_values,
    line_through,
    pairs_of_secrets,
    possible_pair,
    records_of,
)
from pufferfish.queries import BoundQuery, FunctionQuery, JointQuery, LinearQuery, Query, StepQuery
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.cliques import Cliques
from pufferfish.theta.joint_distribution import GivenLaws, JointDistribution, exact_law, exact_number
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.model_class import Theta
from pufferfish.theta.secrets import RecordIs, Secret, SecretPair, check_states
from pufferfish.theta.states import state_label


def network_pairs(
    index: int, network: BayesianNetwork, query: LinearQuery, secrets: Sequence[SecretPair] | None
) -> Iterator[LawPair]:
    """Yield the pairs of laws of the secrets, or of any two values of any node."""
    pairs = _of_nodes(index, network, query) if secrets is None else _of_secrets(index, network, query, secrets)
    try:
        yield from pairs
    except ModelError as error:
        raise NotApplicableError(str(error)) from error


def _of_nodes(index: int, network: BayesianNetwork, query: LinearQuery) -> Iterator[LawPair]:
    coding = Coding(query, (), network.states, len(network.nodes))
    group = {node: len(part) for part in network.components for node in part}
    for done, (j, joint) in enumerate(all_node_laws(network.tables, network.sizes, _weights(network, coding.values))):
        report_progress("laws of the query", done / len(network.nodes))
        node = network.nodes[j]
        names = network.node_states[node]
        laws = [coding.decoded(_law(joint, joint.masses[x], network)) for x in range(len(names))]
        for a, b in combinations(range(len(names)), 2):
            about = About(coding.norm, index, group[node], state_label(node), (names[a], names[b]))
            yield from possible_pair(laws[a], laws[b], about)


def _of_secrets(
    index: int, network: BayesianNetwork, query: LinearQuery, secrets: Sequence[SecretPair]
) -> Iterator[LawPair]:
    coding = Coding(query, counts_of([s for pair in secrets for s in pair]), network.states, len(network.nodes))
    weights = _weights(network, coding.values)

    def law_of(secret: Secret) -> Law | VectorLaw | None:
        law = additive_law(network.tables, network.sizes, weights, allowed=_allowed(secret, network))
        return coding.decoded(_law(law, law.masses, network), counts_of([secret]))

    yield from pairs_of_secrets(secrets, law_of, coding.norm, index, max(network.groups))


def _law(law: Factor, masses: Wide, network: BayesianNetwork) -> Law | None:
    if not masses.positive.any():
        return None
    # the rows of all tables are divided by their sums
    return Law.of(law.start, masses, law.log_error + 4 * len(network.nodes) * UNIT)


def _weights(network: BayesianNetwork, values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return what every node adds to the code in each of its own states."""
    order = {state: x for x, state in enumerate(network.states)}
    rows = np.broadcast_to(values, (len(network.nodes), len(network.states)))
    return [rows[j][[order[state] for state in network.node_states[node]]] for j, node in enumerate(network.nodes)]


def _allowed(secret: Secret, network: BayesianNetwork) -> list[NDArray[np.bool_] | None]:
    check_states(secret, network.states)
    masks: list[NDArray[np.bool_] | None] = [None] * len(network.nodes)
    for condition in records_of(secret, network.kind):
        if condition.record not in network.nodes:
            hint = did_you_mean(condition.record, network.nodes)
            raise ParameterError(
                f"secret {str(secret)!r}: there is no node {condition.record!r}.{hint} Nodes: {names_of(network.nodes)}"
            )
        names = network.node_states[condition.record]
        unknown = [state for state in condition.states if state not in names]
        if unknown:
            hint = did_you_mean(unknown[0], names)
            raise ParameterError(
                f"secret {str(secret)!r}: the node has no state {unknown[0]!r}.{hint} States: {names_of(names)}"
            )
        j = network.nodes.index(condition.record)
        masks[j] = both(masks[j], [state in condition.states for state in names])
    return masks


# -- Laws of the number of people who have it ------------------------------------------------------------------------


def clique_pairs(
    index: int, cliques: Cliques, query: LinearQuery, secrets: Sequence[SecretPair] | None
) -> Iterator[LawPair]:
    """Yield the pairs of laws of the secrets, or of having it or not for a member of every kind of clique."""
    # two states are always on one line; counting those who have it or those who do not is all the same
    line = query.line
    assert line is not None
    if secrets is not None:
        yield from pairs_of_secrets(secrets, partial(_given, cliques), line.norm, index, max(cliques.groups))
        return
    kinds = Counter(cliques.laws)
    for law in kinds:
        clique = cliques.laws.index(law)
        rest = sum_of((_exact(kind), times - (kind == law)) for kind, times in kinds.items())
        member_laws = [cliques.given_member(clique, has_it) for has_it in (0, 1)]
        if all(any(masses) for masses in member_laws):
            mu, nu = (sum_of([(_exact(masses), 1)], rest) for masses in member_laws)
            yield LawPair(mu, nu, About(line.norm, index, len(law) - 1, None, (cliques.states[0], cliques.states[1])))


def _given(cliques: Cliques, secret: Secret) -> Law | None:
    """Return the law of the number of people who have it, given a secret; None if that is impossible."""
    known, fits = clique_conditions(secret, cliques)
    laws = [cliques.given_members(c, having, lacking) for c, (having, lacking) in enumerate(known or ())]
    if known is None or not all(any(masses) for masses in laws):
        return None
    total = sum_of((_exact(masses), 1) for masses in laws)
    if fits is None:
        return total
    masses = total.masses.where(np.array([fits(total.start + n) for n in range(total.size)]))
    return Law.of(total.start, masses, total.log_error) if masses.positive.any() else None


def _exact(masses: Sequence[Fraction]) -> Law:
    """Return the law with these masses on the whole numbers from 0 on."""
    positive = [j for j, mass in enumerate(masses) if mass]
    return Law.exact(positive[0], masses[positive[0] : positive[-1] + 1])


# -- Laws that the user computes -------------------------------------------------------------------------------------


def given_pairs(index: int, theta: GivenLaws, query: Query, bound: BoundQuery) -> Iterator[LawPair]:
    """Yield the pairs of laws that a user's function gives for a query."""
    given_laws = theta.laws_of(query)
    laws = {secret: _masses(secret, law, bound) for secret, law in given_laws.items()}
    line = line_through([value for law in laws.values() for value in law])
    norm = 1 if line is None else line.norm
    pairs = list(theta.pairs_of(given_laws))
    yield from pairs_of_secrets(pairs, lambda s: law_of_values(laws[s], line), norm, index, theta.groups[0])


def _masses(secret: Any, law: Mapping[Any, Any], bound: BoundQuery) -> Values:
    probabilities = exact_law(list(law.values()), f"law of {secret!r}")
    masses: dict[tuple[int, ...], Fraction] = {}
    for value, mass in zip(law, probabilities, strict=True):
        outputs: list[Any] = list(value) if isinstance(value, tuple) else [value]
        numbers = [exact_number(v) for v in outputs]
        if len(numbers) != len(bound.labels):
            raise ModelError(f"law of {secret!r}: {value!r} has {len(numbers)} outputs, the query {len(bound.labels)}")
        # floats such as 1/3 are the nearest to a multiple of the unit, not one
        key = tuple(round(n / bound.unit) for n in numbers if n is not None)
        if None in numbers or any(
            abs(n / bound.unit - w) > Fraction(1, 10**6) for w, n in zip(key, numbers, strict=True) if n is not None
        ):
            raise ModelError(f"law of {secret!r}: {value!r} is no multiple of the query's unit {float(bound.unit):g}")
        if mass:
            masses[key] = masses.get(key, Fraction(0)) + mass
    return masses


# -- Laws of any query on explicit joint distributions ---------------------------------------------------------------


def joint_pairs(
    index: int, joint: JointDistribution, query: LinearQuery | FunctionQuery, secrets: Sequence[SecretPair] | None
) -> Iterator[LawPair]:
    """Yield the pairs of laws of the secrets, or of any two values of any record; impossible secrets are left out."""
    order = {state: x for x, state in enumerate(joint.states)}
    if isinstance(query, FunctionQuery):
        values = [query.function(row) for row in joint.databases]
    else:
        values = [query.value([order[state] for state in row]) for row in joint.rows]
    line = line_through(values)
    norm, length = 1 if line is None else line.norm, len(joint.variables)

    def law_of(secret: Secret) -> Law | VectorLaw | None:
        masses: dict[tuple[int, ...], Fraction] = {}
        for i in joint.rows_where(secret):
            masses[values[i]] = masses.get(values[i], Fraction(0)) + joint.probabilities[i]
        return law_of_values(masses, line) if masses else None

    if secrets is not None:
        yield from pairs_of_secrets(secrets, law_of, norm, index, length)
        return
    for column, variable in enumerate(joint.variables):
        laws = {state: law_of(RecordIs(variable, state)) for state in joint.values_of(column)}
        for a, b in combinations(laws, 2):
            yield from possible_pair(laws[a], laws[b], About(norm, index, length, column, (a, b)))


# -- Laws of a query given secrets -----------------------------------------------------------------------------------


def pairs_of_laws(
    theta: Theta, lengths: Sequence[ChainLength], query: Query, bound: BoundQuery, secrets: Sequence[SecretPair] | None
) -> Iterator[LawPair]:
    """Yield the pairs of laws of a query given secrets that shall not be told apart, under every θ.

    Secrets of probability 0 under a θ are left out (Definition 2.1). NotApplicableError if a model cannot tell the law.
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
                raise NotApplicableError("people in a clique are exchangeable, so every record must count alike")
            yield from clique_pairs(index, member, linear, secrets)
        elif isinstance(member, BayesianNetwork):
            yield from network_pairs(index, member, _linear(bound, member.kind), secrets)
        elif isinstance(member, GivenLaws):
            if secrets is not None:
                raise ParameterError(
                    "GivenLaws names its secrets itself: leave out secrets, and give pairs to GivenLaws"
                )
            yield from given_pairs(index, member, query, bound)
        else:
            raise NotApplicableError(f"the law of a query is not known for {theta.kind}")


def _linear(bound: BoundQuery, kind: str) -> LinearQuery:
    if not isinstance(bound, LinearQuery):
        raise QueryError(f"a function of the database needs a JointDistribution, and Θ is a class of {kind}")
    return bound
