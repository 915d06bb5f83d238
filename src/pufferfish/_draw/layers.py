"""Where to draw the nodes of a directed graph without cycles: in rows, parents above children.

The way of Gansner, Koutsofios, North and Vo (1993), in short:

1. rows that make all edges together as short as can be, by a flow of least cost; what a full row cannot take goes down;
2. an edge that passes rows takes a *lane* in each of them, so that it runs between boxes;
3. rows are put in order by the barycentres of their neighbours, down and up in turn; the fewest crossings are kept;
4. boxes and lanes move toward their neighbours as far as order and distances let them: least squares, row by row.

Parts that no edge joins are laid out by themselves and set side by side. Nothing is random: one graph, one picture.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import networkx
import numpy as np
from numpy.typing import NDArray

__all__ = ["Layout", "layered", "nearest"]

# -- Marks that would lie on each other, moved apart -----------------------------------------------------------------


def nearest(pulls: list[list[tuple[float, float]]], offsets: list[float]) -> list[float]:
    """Return the places nearest to those that (place, strength) pull to, in least squares, at least offsets apart.

    Less the offsets it is isotonic regression: neighbours that would overlap are pooled and move as one.
    """
    pools: list[tuple[float, float, int]] = []
    for pull, offset in zip(pulls, offsets, strict=True):
        total, count = sum(strength for _, strength in pull), 1
        mean = sum(place * strength for place, strength in pull) / total - offset
        while pools and pools[-1][0] > mean:
            left_mean, heavier, more = pools.pop()
            mean = (mean * total + left_mean * heavier) / (total + heavier)
            total, count = total + heavier, count + more
        pools.append((mean, total, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


nx: Any = networkx

GAP, LANE, RISE = 0.2, 0.15, 0.42
"""Least distance of two boxes, of a lane from its neighbour, and of two rows of boxes."""

_ASPECT, _SWEEPS, _MOVES = 1.7, 24, 24
_STRAIGHT = (1.0, 2.0, 8.0)
"""How hard an edge pulls its ends together, by how many of them are lanes: long edges should not bend."""

Row = list[Any]
"""Nodes, which are ints, and lanes, which are (parent, child, row), from left to right."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Centres of boxes, and for every edge the points where it passes a row, from the parent down; y points up.

    Every box is within 0 ≤ x ≤ ``size[0]`` and 0 ≤ y ≤ ``size[1]``.
    """

    positions: NDArray[np.float64]
    routes: dict[tuple[int, int], NDArray[np.float64]]
    size: tuple[float, float]


def layered(parents: Sequence[Sequence[int]], widths: Sequence[float] | None = None, height: float = 0.4) -> Layout:
    """Place the nodes of a directed graph without cycles in rows, every parent above its children.

    ``parents`` are those of every node, as places in this sequence; the box of each is 1 wide by default.

    Examples
    --------
    >>> layered([[], [0], [0]]).positions.round(2).tolist()
    [[1.1, 1.06], [0.5, 0.2], [1.7, 0.2]]
    """
    graph = nx.DiGraph((parent, node) for node, above in enumerate(parents) for parent in above)
    graph.add_nodes_from(range(len(parents)))
    wide: dict[Any, float] = dict(enumerate([1.0] * len(parents) if widths is None else widths))
    area = sum(width + GAP for width in wide.values()) * (height + RISE) * 1.4
    most = max(8.0, math.sqrt(_ASPECT * area), *wide.values())
    parts = sorted(nx.weakly_connected_components(graph), key=lambda part: (-len(part), min(part)))
    drawn = [_part(graph.subgraph(sorted(part)), wide, height, most) for part in parts]
    most = max([most, *(width for _, width, _ in drawn)])
    centres: dict[Any, tuple[float, float]] = {}
    left = top = right = low = 0.0
    for places, width, tall in drawn:  # on shelves, from left to right
        if left + width > most + 1e-9:
            left, top = 0.0, low - RISE
        centres |= {v: (left + x, top + y) for v, (x, y) in places.items()}
        right, low = max(right, left + width), min(low, top - tall)
        left += width + 2 * GAP
    routes: dict[tuple[int, int], list[tuple[float, float]]] = {edge: [] for edge in graph.edges}
    for v, (x, y) in centres.items():
        if v not in wide:
            routes[v[:2]].append((x, y - low))
    positions = np.array([centres[v] for v in wide]).reshape(-1, 2) - [0.0, low]
    return Layout(positions, {edge: np.array(way).reshape(-1, 2) for edge, way in routes.items()}, (right, -low))


def _part(graph: Any, widths: dict[Any, float], height: float, most: float) -> tuple[dict[Any, Any], float, float]:
    """Return the places of the nodes and lanes of a connected graph, right of the origin and below, and its size."""
    row = _row_of_each(graph, widths, most)
    steps = nx.DiGraph()
    steps.add_nodes_from(graph)
    for parent, child in graph.edges:
        lanes = [(parent, child, r) for r in range(row[parent] + 1, row[child])]
        row |= {lane: lane[2] for lane in lanes}
        nx.add_path(steps, [parent, *lanes, child])
    started: list[Row] = [[] for _ in range(max(row.values()) + 1)]
    for v in nx.dfs_preorder_nodes(steps.to_undirected()):
        started[row[v]].append(v)
    rows = _ordered(started, steps)
    widths = dict.fromkeys(steps, 0.0) | {v: widths[v] for v in graph}
    x = _across(rows, steps, widths)
    left, right = min(x[v] - widths[v] / 2 for v in x), max(x[v] + widths[v] / 2 for v in x)
    places: dict[Any, tuple[float, float]] = {}
    depth = height / 2
    for r, members in enumerate(rows):
        if r:
            # where edges run far to the side, rows stand apart, or they would be too flat to follow
            far = max(abs(x[v] - x[w]) for v in members for w in steps.pred[v])
            depth += height + RISE + 0.07 * min(far, 8.0)
        places |= {v: (x[v] - left, -depth) for v in members}
    return places, right - left, depth + height / 2


def _row_of_each(graph: Any, widths: dict[int, float], most: float) -> dict[Any, int]:
    """Return the row of every node: where edges are shortest in all, or below where that row is full.

    The sum of the lengths is least if a flow of greatest length, which carries from each node to its children as much
    more than it receives as it has more of them, uses edges from a row to the next only: linear programming duality.
    """
    tight = nx.DiGraph()
    for v in graph:
        tight.add_node(v, demand=graph.in_degree(v) - graph.out_degree(v))
        tight.add_edge("top", v, weight=0)
    tight.nodes["top"]["demand"] = 0
    tight.add_edges_from(graph.edges, weight=-1)
    _, flow = nx.network_simplex(tight)
    tight.add_edges_from([(c, p) for p, c in graph.edges if flow[p][c]], weight=1)
    up: dict[int, int] = nx.single_source_bellman_ford_path_length(tight, "top")
    row: dict[Any, int] = {}
    filled: defaultdict[int, float] = defaultdict(float)
    for v in sorted(graph, key=lambda v: (-up[v], graph.in_degree(v) - graph.out_degree(v), v)):
        row[v] = max([-up[v], *(row[parent] + 1 for parent in graph.pred[v])])
        while filled[row[v]] and filled[row[v]] + widths[v] > most:
            row[v] += 1
        filled[row[v]] += widths[v] + GAP
    return row


def _ordered(rows: list[Row], steps: Any) -> list[Row]:
    """Return the rows in the order with the fewest crossings of those that sweeps down and up lead to."""
    best, fewest = rows, _crossings(rows, steps)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        near = steps.pred if down else steps.succ
        rows = [list(row) for row in rows]
        shares = _shares(rows)
        for row in rows if down else rows[::-1]:
            row.sort(key=lambda v: sum(shares[w] for w in near[v]) / len(near[v]) if near[v] else shares[v])
            shares |= _shares([row])
        crossings = _crossings(rows, steps)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _shares(rows: list[Row]) -> dict[Any, float]:
    return {v: (i + 0.5) / len(row) for row in rows for i, v in enumerate(row)}


def _crossings(rows: list[Row], steps: Any) -> int:
    shares = _shares(rows)
    ends = [np.array([(shares[v], shares[w]) for v in row for w in steps.succ[v]]).reshape(-1, 2).T for row in rows]
    return sum(int(np.sum((a[:, None] < a) & (b[:, None] > b))) for a, b in ends)


def _across(rows: list[Row], steps: Any, widths: dict[Any, float]) -> dict[Any, float]:
    """Return the centre of every box and lane along its row."""
    lane = {v: isinstance(v, tuple) for v in widths}
    x: dict[Any, float] = {}
    placed: list[tuple[Row, list[float]]] = []
    for row in rows:
        gaps = [(widths[v] + widths[w]) / 2 + (LANE if lane[v] or lane[w] else GAP) for v, w in pairwise(row)]
        offsets = list(accumulate(gaps, initial=0.0))
        x |= {v: offset - offsets[-1] / 2 for v, offset in zip(row, offsets, strict=True)}
        placed.append((row, offsets))
    for move in range(_MOVES):
        down = move % 2 == 0
        near = steps.pred if down else steps.succ
        for row, offsets in placed if down else reversed(placed):
            pulls = [[(x[w], _STRAIGHT[lane[v] + lane[w]]) for w in near[v]] or [(x[v], 1e-3)] for v in row]
            x |= zip(row, nearest(pulls, offsets), strict=True)
    return x
