"""Laws of additive queries on Bayesian networks, given secrets: exact inference, without listing databases."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._base.words import did_you_mean, names_of
from pufferfish._core.laws.law import Law
from pufferfish._core.laws.of_networks import AdditiveLaw, additive_law, all_node_laws
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.numbers.wide import Wide
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.mechanisms.one_query._part_pairs import About, LawPair, counts_of, records_of
from pufferfish.mechanisms.one_query.pairs import Coding
from pufferfish.queries import LinearQuery
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.secrets import Secret, SecretPair, check_states
from pufferfish.theta.states import state_label

__all__ = ["network_pairs"]


def network_pairs(
    index: int, network: BayesianNetwork, query: LinearQuery, secrets: Sequence[SecretPair] | None
) -> Iterator[LawPair]:
    """Yield the pairs of laws of the secrets, or of any two values of any node.

    Raises
    ------
    NotApplicableError
        If the tables that inference needs are too large.
    """
    pairs = _of_nodes(index, network, query) if secrets is None else _of_secrets(index, network, query, secrets)
    try:
        yield from pairs
    except ModelError as error:
        raise NotApplicableError(str(error)) from error


def _of_nodes(index: int, network: BayesianNetwork, query: LinearQuery) -> Iterator[LawPair]:
    coding = Coding(query, (), network.states, len(network.nodes))
    error = _table_error(network)
    group = {node: len(part) for part in network.components for node in part}
    for done, (j, joint) in enumerate(all_node_laws(network.tables, network.sizes, _weights(network, coding.values))):
        report_progress("laws of the query", done / len(network.nodes))
        node = network.nodes[j]
        laws = [coding.decoded(_law(joint, row, error)) for row in range(network.sizes[j])]
        names = network.node_states[node]
        for a, b in combinations(range(network.sizes[j]), 2):
            mu, nu = laws[a], laws[b]
            if mu is not None and nu is not None:
                yield LawPair(mu, nu, About(coding.norm, index, group[node], state_label(node), (names[a], names[b])))


def _of_secrets(
    index: int, network: BayesianNetwork, query: LinearQuery, secrets: Sequence[SecretPair]
) -> Iterator[LawPair]:
    counts = counts_of([secret for pair in secrets for secret in pair])
    coding = Coding(query, counts, network.states, len(network.nodes))
    weights, error = _weights(network, coding.values), _table_error(network)
    for done, pair in enumerate(secrets):
        report_progress("laws of the query", done / len(secrets))
        found = (
            additive_law(network.tables, network.sizes, weights, allowed=_allowed(secret, network)) for secret in pair
        )
        mu, nu = (
            coding.decoded(_law(law, None, error), counts_of([secret])) for law, secret in zip(found, pair, strict=True)
        )
        if mu is not None and nu is not None:
            about = About(coding.norm, index, max(network.groups), None, (str(pair[0]), str(pair[1])))
            yield LawPair(mu, nu, about)


def _law(found: AdditiveLaw, row: int | None, error: float) -> Law | None:
    masses: Wide = found.masses if row is None else found.masses[row]
    if not masses.positive.any():
        return None
    return Law.of(found.start, masses, found.log_error + error)


def _table_error(network: BayesianNetwork) -> float:
    """Bound the relative error of dividing the rows of all tables by their sums."""
    return 4 * len(network.nodes) * UNIT


def _weights(network: BayesianNetwork, values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return what every node adds to the code in each of its own states."""
    order = {state: x for x, state in enumerate(network.states)}
    rows = np.broadcast_to(values, (len(network.nodes), len(network.states)))
    return [rows[j][[order[state] for state in network.node_states[node]]] for j, node in enumerate(network.nodes)]


def _allowed(secret: Secret, network: BayesianNetwork) -> list[NDArray[np.bool_] | None]:
    check_states(secret, network.states)
    found: list[NDArray[np.bool_] | None] = [None] * len(network.nodes)
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
        mask = np.array([state in condition.states for state in names])
        before = found[j]
        found[j] = mask if before is None else mask & before
    return found
