r"""Several columns of one row, or all of it: what a release of a network's table tells of them together.

The secrets are all events about the values of the named nodes of one row. Their single leakages say nothing of them
together: a noisy sum modulo 2 of two fair coins tells of neither, and of both. Leakage propagation bounds it by the
losses of these nodes and by what the other ones tell of their joint value (``docs/proofs/stretches.md``). Of a whole
row the sum of all losses is the bound, and needs no model.

>>> import pufferfish as pf
>>> coin, flip = pf.CPT([0, 1], [0.5, 0.5]), [[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]]
>>> network = pf.BayesianNetwork({"a": coin, "b": coin, "y": pf.CPT([0, 1], flip, ["a", "b"])})
>>> both = pf.LeakagePropagation(network, 100, protect=["a", "b"])
>>> leakage, witness = both.prove({"y": 1.0})
>>> round(leakage, 5), witness.values, witness.other_values
(0.77614, ('0', '1'), ('0', '0'))
>>> [pf.LeakagePropagation(network, 100, protect=name).leakage({"y": 1.0}) < 1e-12 for name in "ab"]
[True, True]
>>> pf.LeakagePropagation(network, 100, protect="row").leakage({"a": 0.25, "y": 1.0})
1.25
"""

import math
from collections.abc import Iterator, Sequence

from pufferfish._base.progress import report_progress
from pufferfish._core.numbers.rounding import bracket
from pufferfish._core.propagation.cluster_columns import ColumnsPropagation
from pufferfish.mechanisms._propagation_on_networks import NetworkLeakage
from pufferfish.mechanisms.engine import Bound, Engine, Proportional, largest_bound, no_noise
from pufferfish.mechanisms.group_dp import total_of
from pufferfish.mechanisms.network_quilts import NodeSecrets
from pufferfish.mechanisms.protection import ColumnsProtection
from pufferfish.mechanisms.witness import ColumnsWitness
from pufferfish.queries.record_loss import RecordLoss
from pufferfish.theta.bayesian_network import BayesianNetwork

__all__ = ["columns_engine", "leakage_of_row"]

_TOLERANCE = 1e-6
"""How near the leakage of the noise must come to ε, as a share of it."""


def columns_engine(networks: Sequence[BayesianNetwork], protection: ColumnsProtection) -> Engine:
    """Return what proves how much losses tell of columns of one row, under every network of a class.

    Parameters
    ----------
    networks : sequence of BayesianNetwork
        The members of Θ; they may have different edges.
    protection : ColumnsProtection
        The columns. Of one of them propagation and quilts prove what they prove of a node.
    """
    if protection.names is None:
        return _Row(networks[0])
    if len(protection.names) == 1:
        node = networks[0].nodes[networks[0].place(protection.names[0])]
        return NetworkLeakage(networks, NodeSecrets([node], networks[0]))
    return _Columns(networks, protection.names)


def leakage_of_row(losses: RecordLoss) -> float:
    """Return what a release tells of all columns of a row together: the sum of its losses, rounded up.

    It needs no model of the columns.
    """
    return total_of(losses.blocks[0])[0]


class _Row(Proportional):
    """The leakage of a whole row, whatever Θ is."""

    def __init__(self, network: BayesianNetwork) -> None:
        self._network = network

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage of losses by their sum."""
        if max(self._network.sizes) == 1:
            return 0.0, None
        total = leakage_of_row(losses)
        return total, ColumnsWitness(
            theta=0, length=len(self._network.nodes), by="row", columns=None, own=total, others=0.0
        )


class _Columns(Engine):
    """The leakage of several nodes together."""

    def __init__(self, networks: Sequence[BayesianNetwork], names: tuple[str, ...]) -> None:
        self._names, self._size = names, len(networks[0].nodes)
        self._states = [networks[0].node_states[networks[0].nodes[networks[0].place(name)]] for name in names]
        self._members = [
            ColumnsPropagation(network.tables, network.sizes, [network.place(name) for name in names])
            for network in networks
        ]

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage of losses, and say where it is attained."""
        return largest_bound(self._leakage(theta, losses) for theta in self._each())

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterator[Bound]:
        """Yield the least number found that divides the losses so that they leak at most epsilon."""
        most: Bound = 0.0, None
        for theta in self._each():
            if most[0] > 0 and self._leakage(theta, losses.divided(most[0]))[0] <= epsilon:
                continue
            most = largest_bound((most, self._least_divisor(theta, losses, epsilon)))
        yield most

    def _each(self) -> Iterator[int]:
        for theta in range(len(self._members)):
            report_progress("propagating leakage", theta / len(self._members))
            yield theta

    def _least_divisor(self, theta: int, losses: RecordLoss, epsilon: float) -> Bound:
        none = no_noise(losses)
        leakage, witness = self._leakage(theta, losses.divided(none))
        if witness is None or leakage <= epsilon:
            return (none if witness else 0.0), witness
        start = float(losses.blocks[0].largest.sum()) / epsilon
        divisor = bracket(
            lambda divisor: self._leakage(theta, losses.divided(divisor))[0],
            epsilon,
            start,
            tolerance=_TOLERANCE,
            from_above=False,
        ).enough
        return divisor, None if divisor == math.inf else self._leakage(theta, losses.divided(divisor))[1]

    def _leakage(self, theta: int, losses: RecordLoss) -> Bound:
        attained = self._members[theta].leakage(losses.nodes)
        if not attained.is_secret:
            return 0.0, None
        values: list[tuple[str, ...] | None] = [None, None]
        if attained.pair is not None:
            values = [tuple(names[x] for names, x in zip(self._states, value, strict=True)) for value in attained.pair]
        return attained.total, ColumnsWitness(
            theta=theta,
            length=self._size,
            by="propagation",
            columns=self._names,
            values=values[0],
            other_values=values[1],
            own=attained.own,
            others=math.fsum(nats for _, nats in attained.parts),
        )
