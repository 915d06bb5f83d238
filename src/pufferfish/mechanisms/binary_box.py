"""Bounds over boxes of two-state chains: the loops of :mod:`pufferfish.mechanisms._binary_interval`, compiled."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers import rounding
from pufferfish._core.numbers.compiled import Loops
from pufferfish.mechanisms import _binary_interval, binary_box_quilts

__all__ = ["propagated", "quilted", "root_box", "width_of"]

Vector = NDArray[np.float64]
Boxes = NDArray[np.float64]

_ROOM = 20_000
"""Stretches that a sweep of a chain may tell apart: some megabytes."""

_ALONE = 256
"""Nodes from the first on that are searched one by one where losses are the same; the others are alike."""

_FARTHEST = 1000
"""Steps that a quilt reaches at most, to either side."""

_KINDS = {"any": 0, "stationary": 1, "mixing": 2}


def root_box(
    p0: tuple[float, float], p1: tuple[float, float], start: Literal["any", "stationary"]
) -> NDArray[np.float64]:
    """Return the box of all chains with p0 and p1 between two numbers: ends of p0, of p1, of P(X_1 = 0).

    Stationary chains have −1 for the last.
    """
    return np.array([p0, p1, [0.0, 1.0] if start == "any" else [-1.0, -1.0]])


def width_of(boxes: Boxes) -> Boxes:
    """Return how much the coordinates of boxes differ, for choosing the one to halve: log odds, and probability."""
    of_p = (boxes[:, :2, 1] - boxes[:, :2, 0]) / (4 * boxes[:, :2, 0] * (1 - boxes[:, :2, 1]))
    return np.concatenate([of_p, boxes[:, 2:, 1] - boxes[:, 2:, 0]], axis=1)


def propagated(boxes: Boxes, runs: NDArray[np.float64], epsilon: float, floor: float) -> tuple[Vector, Boxes]:
    """Bound leakage propagation over boxes.

    Parameters
    ----------
    boxes : (n, 3, 2) ndarray
        Ends of p0, of p1 and of P(X_1 = 0).
    runs : (r, 3) ndarray
        Steps of a run of records, and their losses d(0,1) and d(1,0).
    epsilon : float
        0 for the leakage; else the least divisor of the losses with which they leak at most this much.
    floor : float
        A divisor that is needed anyway.

    Returns
    -------
    (n,) ndarray, (n, 5) ndarray
        The bounds; and node (1-based), pair, own loss, past and future.
    """
    values, where = np.empty(len(boxes)), np.zeros((len(boxes), 5))
    room = int(min(_ROOM, runs[:, 0].sum()))
    _LOOPS.compiled.propagate(boxes.reshape(-1, 6), runs, epsilon, floor, room, values, where)
    return values, where


def quilted(
    kind: Literal["any", "stationary", "mixing"],
    boxes: Boxes,
    length: int,
    records: int,
    losses: Vector,
    epsilon: float,
    floor: float,
    longest: int | None = None,
    node: int | None = None,
) -> tuple[Vector, Boxes]:
    """Bound Markov quilts over boxes.

    Parameters
    ----------
    kind : {"any", "stationary", "mixing"}
        By the law left of a node, for stationary chains, or by Lemma 4.8.
    boxes : (n, 3, 2) ndarray
        Ends of p0, of p1 and of P(X_1 = 0).
    length, records : int
        Steps of the chain, and how many of them are observed.
    losses : (1,) or (length,) ndarray
        Loss of every observed record, or of every step.
    epsilon, floor : float
        As for :func:`propagated`.
    longest : int, optional
        Quilts have at most so many nearby records; the trivial one any.
    node : int, optional
        The one record, 1-based, that is searched; by default all.

    Returns
    -------
    (n,) ndarray, (n, 4) ndarray
        The bounds; and node (1-based), distances a and b (0 where a side is open) and influence.
    """
    values, where = np.empty(len(boxes)), np.zeros((len(boxes), 4))
    same = losses.size == 1
    alone = min(length, _ALONE) if same else length
    nodes = [(i, i) for i in range(1, alone + 1)] + ([(alone + 1, length)] if length > alone else [])
    if node is not None:
        nodes = [(node, node)]
    sums = np.empty(0) if same else np.concatenate([[0.0], np.cumsum(losses)])
    each = float(losses[0]) if same else 2 * rounding.UNIT * length * float(sums[-1])
    _LOOPS.compiled.search(
        _KINDS[kind],
        boxes.reshape(-1, 6),
        np.array(nodes, dtype=np.int64),
        length,
        records,
        each,
        sums,
        max(1, min(length - 1, _FARTHEST)),
        length if longest is None else longest,
        epsilon,
        floor,
        values,
        where,
    )
    return values, where


_LOOPS = Loops(_binary_interval.propagate, binary_box_quilts.search)
