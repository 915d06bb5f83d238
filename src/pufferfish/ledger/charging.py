"""Which charging a ledger has: of chains, of networks, of a table that grows; and under which Θ.

Θ may be changed (:meth:`Ledger.change <pufferfish.Ledger.change>`). Then all releases so far are charged anew, and all
that follow, under the new class; what was spent never falls by it.
"""

from collections.abc import Sequence
from typing import Any

from pufferfish.errors import ParameterError, ReleaseRefused
from pufferfish.ledger._chain_charges import ChainCharging
from pufferfish.ledger._node_charges import NodeCharging
from pufferfish.ledger._series_charges import SeriesCharging, for_ever
from pufferfish.ledger.book import Book, Entry
from pufferfish.ledger.charges import Charging
from pufferfish.mechanisms.influence_bound import InfluenceBound

__all__ = ["Chargings", "without_positions"]


def without_positions(bound: Any) -> Any:
    """Return a bound that knows nothing of where records are: each entry of a ledger says which steps it reads."""
    if not (isinstance(bound, InfluenceBound) and bound.theta.of_chains and any(c.places for c in bound.length)):
        return bound
    return bound.of(bound.given_by, [chain.without_positions for chain in bound.length], **bound.settings)


def _charging_of(bound: Any, *, grows: bool) -> Charging:
    """Return how releases under a bound are charged, refused where it cannot keep a ledger."""
    if not isinstance(bound, InfluenceBound):
        raise ParameterError(
            f"bound is {type(bound).__name__}, expected a mechanism such as LeakagePropagation(theta, length)"
        )
    if not bound.composes:
        raise ReleaseRefused(
            f"{bound.title} does not cover several releases: use LeakagePropagation, or another mechanism that composes"
        )
    if bound.theta.stands_for_more:
        raise ReleaseRefused("a ledger needs theta, whose states are known, not pi_min and eigengap alone")
    if grows:
        return SeriesCharging(bound)
    if bound.theta.of_chains:
        return ChainCharging(bound)
    if bound.networks:
        return NodeCharging(bound)
    raise ReleaseRefused(f"a ledger covers Markov chains and Bayesian networks, but Θ is a class of {bound.theta.kind}")


class Chargings:
    """How the entries of a ledger are charged: under the Θ that it began with, and under those that came later.

    Parameters
    ----------
    bound : InfluenceBound
        The bound that the ledger begins with.
    grows : bool
        Whether its table grows.

    Raises
    ------
    ReleaseRefused, ParameterError
        If it cannot keep a ledger.
    """

    def __init__(self, bound: InfluenceBound, *, grows: bool) -> None:
        self._grows = grows
        self.first = self.on(bound)
        self._later: dict[int, Charging] = {}

    def on(self, bound: InfluenceBound) -> Charging:
        """Return the charging under another bound."""
        bound = for_ever(bound) if self._grows else without_positions(bound)
        return _charging_of(bound, grows=self._grows)

    def of(self, book: Book, entries: Sequence[Entry]) -> tuple[Charging, float]:
        """Return how some first entries of a book are charged, and what they spent at least.

        That is what was spent when Θ was changed last: it never falls.
        """
        change = next((entry for entry in reversed(entries) if entry.theta is not None), None)
        if change is None or change.theta is None:
            return self.first, 0.0
        number = change.number
        if number not in self._later:
            self._later[number] = self.on(book.bound(change.theta.theta(), change.model))
        return self._later[number], book.entries[number - 2].spent if number > 1 else 0.0
