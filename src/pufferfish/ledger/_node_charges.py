"""Charges on Bayesian networks: one matrix for every node that a release reads.

The base is a table of independent rows. Rows are independent of each other under every θ, so what a release tells about
a cell is decided by the losses of its own row: the charge is that of one row, however many there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pufferfish._base.words import names_of
from pufferfish.data.rows import Rows, RowsBase
from pufferfish.errors import ParameterError, ReleaseRefused
from pufferfish.ledger.book import Book
from pufferfish.ledger.charges import Charge, Charging, Distance, check_tied, composing, in_decimals, sum_up, whole
from pufferfish.ledger.same_records import SAME_OPTIONS, SAME_SOURCE
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.queries import JointQuery, LinearQuery
from pufferfish.queries.record_loss import as_record_loss
from pufferfish.theta.states import state_label

_TIES = {
    "source": SAME_SOURCE,
    "subject": SAME_OPTIONS,
    "where": "a part of a filtered base is known only for a base without a filter: make the ledger for the whole table",
    "missing": SAME_OPTIONS,
}

States = dict[str, tuple[str, ...]]


class NodeCharging(Charging):
    """Charges on Bayesian networks."""

    kind, reader, of_base, of_data = "Bayesian networks", "read_rows", RowsBase, Rows

    def __init__(self, bound: InfluenceBound) -> None:
        self._states = _by_label(bound.networks[0].node_states)
        super().__init__(bound, {node: len(states) for node, states in self._states.items()}, bound.rows)

    def check_base(self, base: Any) -> None:
        """Refuse a base of chains, or of another network."""
        super().check_base(base)
        for node in () if base is None else base.columns:
            if node not in self._states:
                raise ParameterError(
                    f"the base names {node!r}, which is not a node of Θ. Nodes: {names_of(self._states)}"
                )

    def charge(
        self, released: Any, *, book: Book, data: Any, window: Any, coarsening: Mapping[Any, Any] | None
    ) -> Charge:
        """Return the charge of a calibrated release, or of a loss of the nodes."""
        base = book.rows_base
        for name, value in (("window", window), ("coarsening", coarsening)):
            if value is not None:
                raise ParameterError(
                    f"{name} is for Markov chains, but this ledger is for Bayesian networks: leave it out; a query "
                    "such as Subset(query, nodes) is charged only on the nodes and states that it reads"
                )
        self.check_kind(data, released)
        if isinstance(released, Calibration):
            distances, scale = self._of_calibration(released), Fraction(released.unit_scale)
        else:
            if isinstance(released, list | tuple) or getattr(released, "ndim", 0):
                raise ParameterError(
                    "the loss is a list, but nodes have names: give a number for all nodes, or {node: loss, …}, such "
                    "as calibration.node_loss"
                )
            losses, scale = in_decimals(as_record_loss(released, self.bound.theta, ()).nodes)
            distances = dict(zip(self._states, losses, strict=True))
        read = {node: distance for node, distance in distances.items() if any(map(any, distance))}
        if not read:
            raise ParameterError(
                "the loss is 0 between all states of all nodes, so nothing would be charged: give "
                "the loss of the release"
            )
        if data is not None:
            self._check_data(data, base, read)
        return Charge({**read}, scale)

    def together(self, charges: Sequence[Charge], among: Any = None) -> tuple[InfluenceBound, Any]:
        """Return one matrix per node: that of a row which every release reads, for who reads a row is not known."""
        return self.bound, [
            sum_up(((c.distances[node], c.scale) for c in charges if node in c.distances), len(states))
            for node, states in self._states.items()
        ]

    def _of_calibration(self, calibration: Calibration) -> dict[str, Distance]:
        """Return the distances of all nodes under a calibration, refused where it is for another network."""
        network = calibration.theta.networks[0]
        states = _by_label(network.node_states)
        self._check_states(states, "the noise was calibrated for another network")
        if len(states) < len(self._states):
            lacking = next(node for node in self._states if node not in states)
            raise ReleaseRefused(f"the noise was calibrated for another network: it lacks the node {lacking!r}")
        # now that its states are known to stand as the ledger's do
        query = composing(calibration, "calibration.node_loss")
        assert isinstance(query, LinearQuery | JointQuery)  # steps are those of chains
        known = query if isinstance(query, JointQuery) else replace(query, domains=network.domains)
        if calibration.bound.rows > self.bound.rows:
            raise ReleaseRefused(
                f"the noise was calibrated for a table of {calibration.bound.rows:,} rows, but the ledger's table has "
                f"{self.bound.rows}: make another ledger for other records"
            )
        return {node: whole(distance) for node, distance in zip(states, known.distances, strict=True)}

    def _check_data(self, data: Rows, base: RowsBase | None, read: Mapping[str, Distance]) -> None:
        """Refuse data that are no part of the base, or that take a node that is charged from another column."""
        self._check_states(_by_label(data.states), "the table was read for another network")
        rows = self.bound.rows
        if base is None:
            if data.records != rows:
                raise ReleaseRefused(
                    "the ledger has no base yet, and these data are only a part of its table: make the ledger with "
                    "base=rows.base of the whole table"
                )
            self.check_base(data.base)
            base = data.base
        check_tied(data.base, base, _TIES)
        if data.records > rows:
            raise ReleaseRefused(
                f"the data have {data.records:,} rows, but the ledger's table has {rows:,}: make another ledger for "
                "other records"
            )
        for node in read:
            here, there = (reading.columns.get(node) for reading in (data.base, base))
            if here is not None and here != there:
                its = f"reads it from {there!r}" if there else "does not know a column of it"
                raise ReleaseRefused(
                    f"the data read node {node!r} from column {here!r}, and the ledger {its}; make the ledger with "
                    "the base of all columns that you want to read"
                )
        if data.base.where is not None:
            from pufferfish.data.where import parse_where  # here: it loads what reads tables

            parse_where(data.base.where, base.columns.values(), "node column of the ledger's base")

    def _check_states(self, by_node: States, why: str) -> None:
        for node, states in by_node.items():
            if node not in self._states:
                raise ReleaseRefused(f"{why}: {node!r} is not a node of the ledger")
            if states != self._states[node]:
                raise ReleaseRefused(
                    f"{why}: its node {node!r} has the states {', '.join(states[:8])}, and that of the ledger "
                    f"{', '.join(self._states[node][:8])}, in this order"
                )


def _by_label(node_states: Mapping[Any, tuple[str, ...]]) -> States:
    return {state_label(node): states for node, states in node_states.items()}
