"""Charges on Markov chains: one matrix for every record that a release reads, in windows and coarser states."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.calibration import Calibration
from pufferfish.core.numbers.rounding import float_up
from pufferfish.data.sequences import Base, Sequences
from pufferfish.errors import ParameterError, ReleaseRefused
from pufferfish.ledger.book import AnyBase
from pufferfish.ledger.charges import EVERY, Charge, Charging, check_tied, composing, in_decimals, sum_up, whole
from pufferfish.ledger.ties import CHAIN_TIES, check_lengths, check_start, groups_of
from pufferfish.ledger.windows import Windows, as_windows, windows_read
from pufferfish.mechanisms.composing.influence_bound import InfluenceBound
from pufferfish.queries import Profile, StepLoss, StepQuery

__all__ = ["ChainCharging"]


class ChainCharging(Charging):
    """Charges on Markov chains."""

    @property
    def sizes(self) -> dict[str | None, int]:
        """The number of states."""
        return {EVERY: self._bound.theta.k}

    def check_base(self, base: Any) -> None:
        """Refuse a base of independent rows."""
        if base is not None and not isinstance(base, Base):
            raise ParameterError(
                f"base is {type(base).__name__}, and this ledger is about Markov chains: give sequences.base, of a "
                "table from read_sequences"
            )

    def charge(
        self, what: Any, *, base: AnyBase | None, data: Any, window: Any, coarsening: Mapping[Any, Any] | None
    ) -> Charge:
        """Return the charge of a calibrated release, or of a loss as a number or matrix, on the states of the base."""
        assert base is None or isinstance(base, Base)
        if data is not None and not isinstance(data, Sequences):
            raise ReleaseRefused(
                f"the data are {type(data).__name__}, and this ledger is about Markov chains: read the table with "
                "read_sequences"
            )
        states, length = self._bound.theta.states, self._bound.length
        windows, step = as_windows(window, length), 0
        if isinstance(what, Calibration):
            if what.theta.variables is not None:
                raise ReleaseRefused(
                    f"the noise was calibrated for {what.theta.kind}, whose records have names, and this ledger is "
                    "about Markov chains: make a ledger for them"
                )
            linear = composing(what, "calibration.record_loss")
            check_lengths(what.length, length, None, "the calibration")
            groups = groups_of(states, base, what.theta.states, data, coarsening)
            scale = Fraction(what.unit_scale)
            if isinstance(linear, StepQuery):
                _check_steps(data, base)
                distance, step = whole(np.zeros((len(states),) * 2)), linear.unit_step
            else:
                windows = windows_read(linear, windows, length)
                coarse = whole(linear.unit_distance)
                places = range(len(states)) if groups is None else groups
                distance = tuple(tuple(coarse[x][x_] for x_ in places) for x in places)
        else:
            if coarsening is not None:
                raise ParameterError("coarsening goes with a calibration: a loss is given on the ledger's own states")
            if data is not None and not data.base.bins:
                _check_states(data, states)
            groups = groups_of(states, base, states, data, None)
            (distance,), scale = in_decimals([_loss(what, len(states))])
        if data is not None:
            self._check_data(data, base, windows, everything=not (groups or windows))
        if not step and not any(any(row) for row in distance):
            raise ParameterError("the loss is 0 between all states: a release that tells nothing is none")
        return Charge({EVERY: distance}, scale, windows, step)

    def total(self, charges: Sequence[Charge]) -> Any:
        """Return one matrix for all records, or per chain a profile of stretches that the same releases read."""
        records = self._of_records(charges)
        each = [(charge.step / charge.scale, charge.windows) for charge in charges if charge.step]
        if not each:
            return records
        if all(windows is None for _, windows in each):
            return StepLoss(float_up(sum((step for step, _ in each), Fraction(0))), records)
        return StepLoss([self._largest_step(charges, c) for c in range(len(self._bound.length))], records)

    def _largest_step(self, charges: Sequence[Charge], chain: int) -> float:
        """Return the largest loss of any step of a chain."""
        stretches = _stretches(charges, chain, self._bound.length[chain].steps)
        sums = (sum((charges[i].step / charges[i].scale for i in active), Fraction(0)) for _, active in stretches)
        return float_up(max(sums))

    def _of_records(self, charges: Sequence[Charge]) -> Any:
        k = self._bound.theta.k
        if all(charge.windows is None for charge in charges):
            return sum_up(((charge.distances[EVERY], charge.scale) for charge in charges), k)
        known: dict[frozenset[int], NDArray[np.float64]] = {}

        def together(active: frozenset[int]) -> NDArray[np.float64]:
            if active not in known:
                known[active] = sum_up(((charges[i].distances[EVERY], charges[i].scale) for i in sorted(active)), k)
            return known[active]

        profiles = [_stretches(charges, c, chain.steps) for c, chain in enumerate(self._bound.length)]
        return [Profile([(steps, together(active)) for steps, active in stretches]) for stretches in profiles]

    def part(self, length: Any, window: Any) -> InfluenceBound:
        """Return the bound on chains of these lengths, refused where they start later and Θ tells the first law."""
        bound = self._bound
        check_start(bound.theta, as_windows(window, bound.length))
        return bound.of(bound.theta, length, **bound.settings)

    def _check_data(self, data: Sequences, base: Base | None, windows: Windows | None, *, everything: bool) -> None:
        length = self._bound.length
        if base is None and not (everything and sorted(data.length) == sorted(length)):
            raise ReleaseRefused(
                "the ledger does not know its base yet, and these data are not all of it: make the ledger with "
                "base=sequences.base of the whole table"
            )
        if base is not None:
            check_tied(data.base, base, CHAIN_TIES)
        check_lengths(data.length, length, windows, "the data")


def _check_steps(data: Sequences | None, base: Base | None) -> None:
    """Refuse steps between records that are none of the base's: a filter may leave out what lies between."""
    if data is not None and base is not None and data.base.where != base.where:
        raise ReleaseRefused(
            "the query counts steps, and the data were filtered where the ledger's base is not: records that follow "
            "each other here need not do so in the base; read the whole table, or make a ledger for these rows"
        )


def _check_states(data: Sequences, states: tuple[str, ...]) -> None:
    for state in data.states:
        if state not in states:
            raise ReleaseRefused(f"the data have the state {state!r}, and the ledger's states are {', '.join(states)}")


def _loss(what: Any, k: int) -> NDArray[np.float64]:
    try:
        loss = np.asarray(what, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"a loss is {what!r}, expected a calibration, a number, or one per pair of states"
        ) from None
    if loss.shape not in ((), (k, k)):
        raise ParameterError(f"a loss has shape {loss.shape}, expected a number or ({k}, {k}): pairs of states")
    if not np.all(np.isfinite(loss)) or np.any(loss < 0):
        raise ParameterError("a loss is negative or not finite; expected nats, such as 0.1")
    return np.broadcast_to(loss, (k, k))


def _stretches(charges: Sequence[Charge], chain: int, steps: int) -> list[tuple[int, frozenset[int]]]:
    """Return stretches of a chain and which charges read them."""
    read = [(0, steps) if charge.windows is None else charge.windows[chain] for charge in charges]
    edges = sorted({0, steps, *(edge for window in read if window is not None for edge in window)})
    return [
        (stop - start, frozenset(i for i, w in enumerate(read) if w is not None and w[0] <= start and stop <= w[1]))
        for start, stop in pairwise(edges)
    ]
