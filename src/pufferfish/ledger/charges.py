"""What releases cost, exactly: whole-number distances over exact noise scales, added as fractions.

Ten releases of loss 0.1 have loss 1, not 1.0000000000000002: sums are rounded once, upwards, when leakage is asked.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.calibration import Calibration
from pufferfish.core.rounding import float_up
from pufferfish.errors import ParameterError, ReleaseRefused
from pufferfish.mechanisms.losses import Profile
from pufferfish.models.lengths import ChainLength
from pufferfish.queries import LinearQuery

__all__ = ["Charge", "Windows", "as_windows", "charge_of", "total_loss", "windows_read"]

Windows = tuple[tuple[int, int] | None, ...]
"""Per chain the steps that are read, first (0-based) and one past the last; None for a chain that is not read."""

Distance = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Charge:
    """The record-level loss of one release: ``distance[x][x'] / scale`` in every record that it reads.

    Parameters
    ----------
    distance : tuple of tuples of int
        How far one record moves the answer when it goes from state x to x', in units; shape (k, k).
    scale : Fraction
        Scale of the noise, in the same units.
    windows : tuple, optional
        What is read of each chain; by default every observed record.
    """

    distance: Distance
    scale: Fraction
    windows: Windows | None = None


def charge_of(what: Any, k: int, windows: Windows | None, groups: Sequence[int] | None) -> Charge:
    """Return the charge of a calibrated release, or of a loss as a number or matrix, on the k states of the base.

    Parameters
    ----------
    what : Calibration, float or array_like
        A number, or shape (k, k), is a record-level loss in nats, and means the decimals it prints as.
    k : int
        States of the base.
    windows : tuple, optional
        What is read of each chain.
    groups : sequence of int, optional
        For each state of the base, the state of the release that it counts as.

    Raises
    ------
    ParameterError
        If a loss is not a number, not positive or not finite, or its shape does not fit.
    """
    if isinstance(what, Calibration):
        if not (0 < what.unit_scale < math.inf and 0 < what.epsilon < math.inf):
            raise ParameterError(
                f"the calibration has scale {what.unit_scale}, epsilon {what.epsilon}: expected positive finite numbers"
            )
        if not isinstance(what.linear, LinearQuery):
            raise ParameterError("a function of the database has no known record-level loss, and cannot be charged")
        coarse = _whole(what.linear.unit_distance)
        states = range(k) if groups is None else groups
        distance = tuple(tuple(coarse[x][x_] for x_ in states) for x in states)
        return _checked(Charge(distance, Fraction(what.unit_scale), windows))
    try:
        loss = np.asarray(what, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            f"a loss is {what!r}, expected a calibration, a number, or one per pair of states"
        ) from None
    if loss.shape not in ((), (k, k)):
        raise ParameterError(f"a loss has shape {loss.shape}, expected a number or ({k}, {k}): pairs of states")
    if not np.all(np.isfinite(loss)) or np.any(loss < 0):
        raise ParameterError("a loss is negative or not finite; expected nats, such as 0.1")
    written = [
        [Fraction(repr(float(v))) if x != x_ else Fraction(0) for x_, v in enumerate(row)]
        for x, row in enumerate(np.broadcast_to(loss, (k, k)))
    ]
    parts = lcm(*(v.denominator for row in written for v in row))
    return _checked(Charge(tuple(tuple(int(v * parts) for v in row) for row in written), Fraction(parts), windows))


def _checked(charge: Charge) -> Charge:
    """Refuse a charge of nothing: no release is free."""
    if not any(any(row) for row in charge.distance):
        raise ParameterError("the loss is 0 between all states: a release that tells nothing is none")
    return charge


def as_windows(window: Any, length: Sequence[ChainLength]) -> Windows | None:
    """Return the window of each chain, checked.

    Parameters
    ----------
    window : (int, int), list of these or None, or None
        First step (0-based) and one past the last; for several chains one entry per chain, None for a chain that is
        not read.
    length : sequence of ChainLength
        The chains of the base.

    Raises
    ------
    ParameterError
        If a window is empty or leaves its chain, or there is not one per chain.
    """
    if window is None:
        return None
    if len(length) == 1 and not isinstance(window, list):
        window = [window]
    try:
        pairs: list[tuple[Any, ChainLength]] = list(zip(window, length, strict=True))  # pyright: ignore[reportUnknownArgumentType]
    except (TypeError, ValueError):
        raise ParameterError(
            f"window is {window!r}, expected a list of {len(length)}: (first step, one past the last) per chain, "
            "None to leave it out"
        ) from None
    found = tuple(_window(entry, chain.steps) for entry, chain in pairs)
    if not any(found):
        raise ParameterError("window leaves out every chain: nothing would be read")
    return found


def windows_read(calibration: Calibration, windows: Windows | None, length: Sequence[ChainLength]) -> Windows | None:
    """Return the window that a calibrated query reads by itself, or else the one that was given.

    Raises
    ------
    ReleaseRefused
        If both are there and differ.
    """
    factors = calibration.linear.factors if isinstance(calibration.linear, LinearQuery) else None
    if factors is None:
        return windows
    read = np.flatnonzero(factors)
    own = as_windows((int(read[0]), int(read[-1]) + 1), length)
    if windows is not None and windows != own:
        raise ReleaseRefused(
            f"the query reads records {read[0]} to {read[-1]}, and window says otherwise: leave window out"
        )
    return own


def total_loss(charges: Sequence[Charge], length: Sequence[ChainLength], k: int) -> Any:
    """Return the losses of all charges together, as ``leakage`` takes them, rounded up once."""
    if all(charge.windows is None for charge in charges):
        return _sum(charges, k)
    known: dict[frozenset[int], NDArray[np.float64]] = {}

    def together(active: frozenset[int]) -> NDArray[np.float64]:
        if active not in known:
            known[active] = _sum([charges[i] for i in sorted(active)], k)
        return known[active]

    profiles = [_stretches(charges, c, chain.steps) for c, chain in enumerate(length)]
    return [Profile([(steps, together(active)) for steps, active in stretches]) for stretches in profiles]


def _stretches(charges: Sequence[Charge], chain: int, steps: int) -> list[tuple[int, frozenset[int]]]:
    """Return stretches of a chain and which charges read them."""
    read = [(0, steps) if charge.windows is None else charge.windows[chain] for charge in charges]
    edges = sorted({0, steps, *(edge for window in read if window is not None for edge in window)})
    return [
        (stop - start, frozenset(i for i, w in enumerate(read) if w is not None and w[0] <= start and stop <= w[1]))
        for start, stop in pairwise(edges)
    ]


def _sum(charges: Sequence[Charge], k: int) -> NDArray[np.float64]:
    shares: dict[Distance, Fraction] = {}
    for charge in charges:
        shares[charge.distance] = shares.get(charge.distance, Fraction(0)) + 1 / charge.scale
    known: dict[tuple[int, ...], float] = {}
    total = np.zeros((k, k))
    for x in range(k):
        for x_ in range(k):
            distances = tuple(distance[x][x_] for distance in shares)
            if distances not in known:
                known[distances] = float_up(
                    sum((d * s for d, s in zip(distances, shares.values(), strict=True)), Fraction(0))
                )
            total[x, x_] = known[distances]
    return total


def _whole(distance: NDArray[np.float64]) -> list[list[int]]:
    return [[int(v) for v in row] for row in distance]


def _window(entry: Any, steps: int) -> tuple[int, int] | None:
    if entry is None:
        return None
    try:
        start, stop = (index(edge) for edge in entry)
        if any(isinstance(edge, bool) for edge in entry):
            raise ValueError
    except (TypeError, ValueError):
        raise ParameterError(
            f"window is {entry!r}, expected (first step, one past the last), such as (0, 1440)"
        ) from None
    if not 0 <= start < stop <= steps:
        raise ParameterError(f"window ({start}, {stop}) is not inside a chain of {steps} steps")
    return start, stop
