"""Secrets about single nodes of a network: which of them are secret, and which of their values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import is_list
from pufferfish._base.words import did_you_mean, names_of
from pufferfish.errors import ParameterError
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.secrets import RecordIs, Secret, SecretPair
from pufferfish.theta.states import state_label

__all__ = ["NodeSecrets"]


class NodeSecrets:
    """Pairs of values of single nodes that shall not be told apart.

    Parameters
    ----------
    given : sequence, optional
        Names of nodes, each any two values of which are secret; pairs of :class:`RecordIs` of one node; or the same
        as (node, values, other values). By default every node is secret.
    network : BayesianNetwork
        The nodes and their states.

    Raises
    ------
    ParameterError
        If a node or state is unknown, a pair is about two nodes or overlaps, or nothing is secret.
    """

    def __init__(self, given: Any, network: BayesianNetwork) -> None:
        self._network = network
        self._entries: list[tuple[int, tuple[str, ...], tuple[str, ...]]] | None = None
        if given is not None:
            if not (is_list(given) or isinstance(given, set | frozenset)):
                raise ParameterError(
                    f"secrets is {given!r}, expected a list of names of nodes, or of pairs of RecordIs"
                )
            listed: list[Any] = list(given)
            self._entries = [entry for secret in listed for entry in _entries_of(secret, network)]
            if not self._entries:
                raise ParameterError("secrets is empty: name at least one node, or leave it out to keep all secret")

    @property
    def pairs(self) -> tuple[SecretPair, ...] | None:
        """The pairs of secrets; None for any two values of any node."""
        if self._entries is None:
            return None
        names = self._network.nodes
        return tuple((RecordIs(names[j], a), RecordIs(names[j], b)) for j, a, b in self._entries)

    @property
    def plain(self) -> list[list[Any]] | None:
        """The same as plain values: node, values, other values."""
        if self._entries is None:
            return None
        return [[state_label(self._network.nodes[j]), list(a), list(b)] for j, a, b in self._entries]

    def of(self, network: BayesianNetwork) -> list[NDArray[np.bool_]]:
        """Return for every node which pairs of its values, both possible, shall not be told apart; shapes (k, k).

        The value x of one secret is told from x' of the other for every x of the first and x' of the second: what holds
        for all of these holds for the secrets, whose laws are mixtures.
        """
        found: list[NDArray[np.bool_]] = []
        for j, k in enumerate(network.sizes):
            possible = network.inference.possible(j)
            found.append(possible[:, None] & possible[None, :] & ~np.eye(k, dtype=np.bool_))
        if self._entries is None:
            return found
        asked = [np.zeros_like(pairs) for pairs in found]
        for j, a, b in self._entries:
            names = network.node_states[network.nodes[j]]
            rows, columns = ([names.index(state) for state in states] for states in (a, b))
            asked[j][np.ix_(rows, columns)] = True
            asked[j][np.ix_(columns, rows)] = True
        return [pairs & wanted for pairs, wanted in zip(found, asked, strict=True)]


def _entries_of(secret: Any, network: BayesianNetwork) -> list[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    if not isinstance(secret, Secret) and state_label(secret) in map(state_label, network.nodes):
        names = network.node_states[network.nodes[network.place(secret)]]
        if len(names) < 2:
            raise ParameterError(f"node {secret!r} has one state only: there is nothing to keep secret")
        return [(network.place(secret), (a,), (b,)) for i, a in enumerate(names) for b in names[i + 1 :]]
    parts: list[Any] = list(secret) if isinstance(secret, Sequence) and not isinstance(secret, str) else [secret]
    if len(parts) == 3:
        parts = [RecordIs(parts[0], parts[1]), RecordIs(parts[0], parts[2])]
    if len(parts) != 2 or not all(isinstance(part, Secret) for part in parts):
        network.place(secret)
        raise ParameterError(f"secrets has the entry {secret!r}, expected the name of a node, or two RecordIs of one")
    if not all(isinstance(part, RecordIs) for part in parts):
        raise ParameterError(
            f"the secrets ({parts[0]}) and ({parts[1]}) are about more than one record: this mechanism covers secrets "
            "about single nodes; Wasserstein and ExactLaplace cover others"
        )
    first, second = parts
    place = network.place(first.record)
    if network.place(second.record) != place:
        raise ParameterError(f"the secrets ({first}) and ({second}) are about two nodes: expected one")
    names = network.node_states[network.nodes[place]]
    for state in (*first.states, *second.states):
        if state not in names:
            hint = did_you_mean(state, names)
            raise ParameterError(f"node {first.record!r} has no state {state!r}.{hint} States: {names_of(names)}")
    shared = set(first.states) & set(second.states)
    if shared:
        raise ParameterError(f"the secrets ({first}) and ({second}) share the value {min(shared)!r}")
    return [(place, first.states, second.states)]
