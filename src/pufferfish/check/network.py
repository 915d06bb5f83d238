r"""Does this network describe these public data? Which columns depend on each other though it says that they do not.

A network says that each node is independent of every node that does not descend from it, given its parents; all other
independences follow. So each pair of nodes without an arrow is tested once: one of them given its parents, that with
fewer combinations of these where both could be. Each arrow is tested given the other parents. See
:mod:`~pufferfish.check.independence` for the test, and for what rows are too few to show.

Tests of many pairs find something by chance. Holm's rule, over pairs and arrows together, keeps the probability that a
pair is found where nothing is wrong below ``LEVEL``, and judges an arrow as it would be judged if it were missing. A
pair has a share of the level, the larger the fewer rows its rarest values are expected in: many rows show a strong
dependence at any level, and few at a large one only. The shares rest on the margins, which each test takes as given.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, prod, sqrt
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pufferfish._base.progress import part_of, report_progress
from pufferfish._base.view import View
from pufferfish.check.independence import Dependence, dependence, enough_rows, holm
from pufferfish.check.leaking import NoiseFor
from pufferfish.check.network_words import network_text, network_verdict, network_view
from pufferfish.check.record import Checked, NetworkCheckFields, PairCheck, RicherModel
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.fit.left_out import LEAST_GAIN
from pufferfish.fit.network import SMOOTHING, fitted_cpt
from pufferfish.queries import Marginals
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.model_class import ModelClass
from pufferfish.theta.states import state_label

if TYPE_CHECKING:
    from pufferfish.data.public_counts import PublicRows

__all__ = ["LEVEL", "NetworkCheck", "check_network"]

LEVEL = 0.005
"""The probability, at most, that a check finds a pair dependent where none is."""

_TOWARDS = 10.0
"""Rows as the model has them that are added to every row of a table with one more arrow."""

_MOST_LEAKS = 12
"""Pairs of which it is computed what the noise leaks, those that depend most."""

_MOST_COMBINATIONS = 5_000_000


class NetworkCheck(Checked, NetworkCheckFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether a network describes public data: a verdict and numbers; prints as text.

    Examples
    --------
    See :func:`check_model`.
    """

    def _view(self) -> View:
        return network_view(self)

    def __str__(self) -> str:
        return network_text(self)


def check_network(theta: ModelClass, source: Any, epsilon: float, reading: Mapping[str, Any]) -> NetworkCheck:
    """Do the work of :func:`check_model` for a network.

    Raises
    ------
    NotApplicableError
        If Θ has several networks.
    """
    if len(theta.networks) != 1:
        raise NotApplicableError(
            f"Θ has {len(theta.networks)} networks, but a check covers one: check each network separately"
        )
    if unknown := reading.keys() - {"columns", "subject", "where", "missing"}:
        raise ParameterError(
            f"{min(unknown)} is not an option for reading rows; the options are columns, subject, where and missing"
        )
    from pufferfish.data.public_counts import read_public_rows  # here: it loads what reads tables

    network = theta.networks[0]
    data = read_public_rows(source, network, **reading)
    report_progress("testing pairs of columns", 0.0)
    read = set(data.rows.nodes)
    whole = [node for node in network.order if node in read and read.issuperset(network.cpts[node].parents)]
    apart, joined = _pairs(network, whole), _arrows(network, whole)
    judged = _judged(data, [*apart, *joined])
    pairs, arrows = judged[: len(apart)], judged[len(apart) :]
    noise = NoiseFor(network, data.rows.records, Marginals(data.rows.nodes), epsilon)
    fitted = {node: _fitted(data, network, node) for node in whole}
    tables = noise.under(RicherModel(kind="tables"), partial(_other, network, fitted))
    leaking = [_with_leakage(pair, network, noise, data) for pair in _most(pairs)]
    checked = {pair.nodes: pair for pair in leaking}
    pairs = [checked.get(pair.nodes, pair) for pair in pairs]
    gains, free = zip(*(_gain(data, network, node) for node in whole), strict=True) if whole else ((0.0,), (0,))
    gain, clearly = sum(gains), LEAST_GAIN + 2 * sqrt(2 * sum(free))
    return NetworkCheck(
        verdict=network_verdict(
            gain,
            clearly,
            tables,
            pairs,
            arrows,
            epsilon=epsilon,
            rows=data.rows.records,
            noise=noise.multiplier,
            fit=partial(_fit_command, source, network),
        ),
        origin=theta.origin,
        source=data.rows.base.source,
        epsilon=epsilon,
        noise_multiplier=noise.multiplier,
        rows=data.rows.records,
        gain=gain,
        clearly=clearly,
        tables=tables,
        pairs=tuple(pairs),
        arrows=tuple(arrows),
        unread=tuple(state_label(node) for node in network.nodes if node not in whole),
    )


def _fit_command(source: Any, network: BayesianNetwork, more: PairCheck | None) -> str:
    """Return the command that fits the network to the same table, with one more arrow, as it can be copied."""
    from pufferfish.data.source import paths_of  # here: it loads what reads tables

    edges = [*network.edges, *([] if more is None else [more.nodes])]
    arrows = ", ".join("->".join(map(state_label, edge)) for edge in edges)
    joined = {state_label(node) for edge in edges for node in edge}
    alone = [state_label(node) for node in network.nodes if state_label(node) not in joined]
    columns = ["--columns", ",".join(alone)] if alone else []
    return shlex.join(
        ["pufferfish", "fit", *paths_of(source), "--arrows", arrows, *columns, "--output", "network.json"]
    )


# -- Which pairs are tested ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    first: Any
    second: Any
    given: tuple[Any, ...]


def _pairs(network: BayesianNetwork, whole: Sequence[Any]) -> list[_Asked]:
    """Return each pair without an arrow, one of the two given its parents."""
    sizes = {node: len(states) for node, states in network.node_states.items()}
    above: dict[Any, set[Any]] = {}
    for node in network.order:
        parents = network.cpts[node].parents
        above[node] = set(parents).union(*(above[parent] for parent in parents))
    asked: list[_Asked] = []
    for j, later in enumerate(whole):
        for earlier in whole[:j]:
            if earlier in network.cpts[later].parents:
                continue
            seconds = [later] if earlier in above[later] else [later, earlier]
            second = min(seconds, key=lambda node: prod(sizes[parent] for parent in network.cpts[node].parents))
            asked.append(_Asked(earlier if second is later else later, second, network.cpts[second].parents))
    return asked


def _arrows(network: BayesianNetwork, whole: Sequence[Any]) -> list[_Asked]:
    """Return each arrow, given the other parents."""
    return [
        _Asked(parent, node, tuple(other for other in network.cpts[node].parents if other != parent))
        for node in whole
        for parent in network.cpts[node].parents
    ]


def _judged(data: "PublicRows", asked: Sequence[_Asked]) -> list[PairCheck]:
    """Return what the data say of each pair."""
    told: list[Dependence | None] = []
    for pair in asked:
        names = (*pair.given, pair.first, pair.second)
        if prod(len(data.rows.states[name]) for name in names) > _MOST_COMBINATIONS:
            told.append(None)
            continue
        counts = data.together(names)
        told.append(dependence(counts.reshape(-1, *counts.shape[-2:])))
    tested = [i for i, answer in enumerate(told) if answer is not None and answer.freedom]
    weights = {i: 1 / max(answer.expected, 1.0) for i, answer in enumerate(told) if answer is not None}
    level = LEVEL / (sum(weights[i] for i in tested) or 1.0)
    ps = [answer.p for i in tested if (answer := told[i]) is not None]
    seen = dict(zip(tested, holm(ps, [weights[i] for i in tested], LEVEL), strict=True))
    judged: list[PairCheck] = []
    for i, (pair, answer) in enumerate(zip(asked, told, strict=True)):
        nodes, given = (state_label(pair.first), state_label(pair.second)), tuple(map(state_label, pair.given))
        if answer is None or not answer.freedom:
            judged.append(
                PairCheck(nodes=nodes, given=given, gain=0, freedom=0, p=1, expected=0, rarest=(), judged="not tested")
            )
            continue
        enough = seen[i] or enough_rows(answer, level * weights[i])
        states = [data.rows.states[node][x] for node, x in zip((pair.first, pair.second), answer.rarest, strict=True)]
        judged.append(
            PairCheck(
                nodes=nodes,
                given=given,
                gain=answer.g / 2,
                freedom=answer.freedom,
                p=answer.p,
                expected=answer.expected,
                rarest=tuple(states),
                judged="dependent" if seen[i] else "not seen" if enough else "too few",
            )
        )
    return judged


# -- What the noise leaks where the data say something else ----------------------------------------------------------


def _most(pairs: Sequence[PairCheck]) -> list[PairCheck]:
    """Return the pairs of which leakage is computed."""
    found = sorted((pair for pair in pairs if pair.judged == "dependent"), key=lambda pair: -pair.gain)
    return found[:_MOST_LEAKS]


def _other(network: BayesianNetwork, tables: Mapping[Any, CPT]) -> BayesianNetwork:
    """Return the network with other tables."""
    return BayesianNetwork({**network.cpts, **tables})


def _with_leakage(pair: PairCheck, network: BayesianNetwork, noise: NoiseFor, data: "PublicRows") -> PairCheck:
    first, second = (network.nodes[network.place(name)] for name in pair.nodes)
    with part_of(f"{pair.nodes[0]}->{pair.nodes[1]}"):
        more = {second: _with_arrow(data, network, first, second)}
        richer = noise.under(RicherModel(kind="arrow"), partial(_other, network, more))
    return msgspec.structs.replace(pair, richer=richer)


def _with_arrow(data: "PublicRows", network: BayesianNetwork, first: Any, second: Any) -> CPT:
    """Return a node's table given one more parent; where the data say little, it stays what it is in the model."""
    cpt = network.cpts[second]
    parents = (first, *cpt.parents)
    weights = data.together([*parents, second]) + _TOWARDS * cpt.table
    return CPT(cpt.states, weights / weights.sum(axis=-1, keepdims=True), parents)


def _fitted(data: "PublicRows", network: BayesianNetwork, node: Any) -> CPT:
    """Return a node's table of these data; where the model has zeros, what was never seen stays one."""
    cpt = network.cpts[node]
    return fitted_cpt(data, node, cpt.parents, SMOOTHING, certain=bool((cpt.table == 0).any()))[0]


def _gain(data: "PublicRows", network: BayesianNetwork, node: Any) -> tuple[float, int]:
    """Return by how many nats a node's table of all other rows predicts each row better, and its free numbers.

    Of tables with d free numbers that were counted from as many other rows of the same law, this gain is nearly a χ²
    number of d degrees of freedom minus d: 0 in the mean, with a standard deviation of √(2d).
    """
    cpt = network.cpts[node]
    counts = data.together([*cpt.parents, node]).reshape(-1, len(cpt.states))
    free = int(np.count_nonzero(counts.sum(axis=1))) * (len(cpt.states) - 1)
    table = cpt.table.reshape(counts.shape)
    if (table[counts > 0] == 0).any():
        return inf, free
    shares = data.rows.counts[node] / data.rows.counts[node].sum()
    row, state = np.nonzero(counts)
    number, all_ = counts[row, state], counts.sum(axis=1)[row]
    others = (number - 1 + SMOOTHING * shares[state]) / (all_ - 1 + SMOOTHING)
    return float((number * np.log(others / table[row, state])).sum()), free
