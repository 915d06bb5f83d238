"""Where to draw the nodes of a directed graph without cycles: in rows, parents above children.

The way of Sugiyama, Tagawa and Toda (1981), for pictures of up to a hundred nodes or so:

1. a node's row is the longest path that leads to it, or another where that makes edges shorter; a row that is too
   wide is broken into several;
2. an edge that passes rows takes a *lane* in each of them, so that it runs between boxes;
3. rows are put in order by the barycentres of their neighbours, down and up in turn, then by swaps of two neighbours
   that remove crossings; the order with the fewest crossings is kept;
4. boxes and lanes move toward their neighbours as far as order and distances let them: least squares, row by row.

Parts that no edge joins are laid out by themselves and set side by side. Nothing is random: one graph, one picture.
"""

import math
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["Layout", "layered"]

GAP, LANE, RISE = 0.2, 0.15, 0.42
"""Least distance of two boxes, of a lane from its neighbour, and of two rows of boxes."""

_ASPECT = 1.7
_SWEEPS, _SWAPS, _MOVES = 16, 8, 24
_STRAIGHT = {0: 1.0, 1: 2.0, 2: 8.0}
"""How hard an edge pulls its ends together, by how many of them are lanes: long edges should not bend."""

Links = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Places of boxes and edges; y points up.

    Parameters
    ----------
    positions : (n, 2) ndarray
        Centre of every node's box.
    routes : dict from (parent, child) to (m, 2) ndarray
        For every edge, the points between its ends where it passes a row of boxes, from the parent down.
    size : tuple of float
        Width and height of the whole; every box is within 0 ≤ x ≤ width and 0 ≤ y ≤ height.
    """

    positions: NDArray[np.float64]
    routes: dict[tuple[int, int], NDArray[np.float64]]
    size: tuple[float, float]


def layered(parents: Links, widths: Sequence[float] | None = None, height: float = 0.4) -> Layout:
    """Place the nodes of a directed graph without cycles in rows, every parent above its children.

    Parameters
    ----------
    parents : sequence of sequences of int
        The parents of every node, as places in this sequence.
    widths : sequence of float, optional
        Width of every node's box; by default 1.
    height : float, default 0.4
        Height of a box.

    Examples
    --------
    >>> layered([[], [0], [0]]).positions.round(2).tolist()
    [[1.1, 1.06], [0.5, 0.2], [1.7, 0.2]]
    """
    wide = [1.0] * len(parents) if widths is None else [float(width) for width in widths]
    area = sum(width + GAP for width in wide) * (height + RISE) * 1.4
    most = max(8.0, math.sqrt(_ASPECT * area), *wide)
    parts = sorted(_parts(parents), key=lambda part: (-len(part), part[0]))
    drawn = [_laid_out(part, parents, wide, height, most) for part in parts]
    return _side_by_side(len(parents), parts, drawn, max([most, *(one.size[0] for one in drawn)]))


def _parts(parents: Links) -> list[list[int]]:
    """Return the nodes of every connected component."""
    near: list[list[int]] = [list(above) for above in parents]
    for node, above in enumerate(parents):
        for parent in above:
            near[parent].append(node)
    seen: set[int] = set()
    parts: list[list[int]] = []
    for start in range(len(parents)):
        if start not in seen:
            seen.add(start)
            part = [start]
            for node in part:
                fresh = [other for other in dict.fromkeys(near[node]) if other not in seen]
                seen.update(fresh)
                part += fresh
            parts.append(sorted(part))
    return parts


def _side_by_side(nodes: int, parts: list[list[int]], drawn: list[Layout], most: float) -> Layout:
    """Set components on shelves, the largest first, and shelves below each other."""
    positions = np.zeros((nodes, 2))
    routes: dict[tuple[int, int], NDArray[np.float64]] = {}
    x = top = deepest = width = 0.0
    for part, one in zip(parts, drawn, strict=True):
        if x > 0 and x + one.size[0] > most + 1e-9:
            x, top, deepest = 0.0, top - deepest - RISE, 0.0
        corner = np.array([x, top - one.size[1]])
        positions[part] = one.positions + corner
        routes |= {(part[p], part[c]): points + corner for (p, c), points in one.routes.items()}
        x, deepest, width = x + one.size[0] + 2 * GAP, max(deepest, one.size[1]), max(width, x + one.size[0])
    shift = np.array([0.0, deepest - top])
    size = (float(width), float(deepest - top))
    return Layout(positions + shift, {edge: points + shift for edge, points in routes.items()}, size)


def _laid_out(part: list[int], parents: Links, widths: Sequence[float], height: float, most: float) -> Layout:
    """Lay out one connected component; nodes are places in ``part``."""
    place = {node: i for i, node in enumerate(part)}
    above = [[place[parent] for parent in parents[node]] for node in part]
    graph = _Rows.of(above, [widths[node] for node in part], most)
    rows = _ordered(graph)
    x = _across(graph, rows)
    half = np.array([width / 2 for width in graph.widths])
    left, right = float((x - half).min()), float((x + half).max())
    y = np.zeros(len(x))
    depth = height / 2
    for upper, lower in zip([[], *rows], rows, strict=False):
        if upper:
            # where edges run far to the side, rows stand apart, or they would be too flat to follow
            far = max(abs(float(x[v] - x[w])) for v in lower for w in graph.above[v])
            depth += height + RISE + 0.07 * min(far, 8.0)
        y[lower] = -depth
    bottom = depth + height / 2
    points = np.column_stack([x - left, y + bottom])
    routes = {edge: points[lanes] for edge, lanes in graph.lanes.items()}
    return Layout(points[: len(part)], routes, (right - left, bottom))


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """A graph whose edges go from each row to the next: nodes first, then the lanes of the edges that are longer."""

    rows: list[list[int]]
    above: list[list[int]]
    below: list[list[int]]
    widths: list[float]
    lanes: dict[tuple[int, int], list[int]]
    nodes: int

    @classmethod
    def of(cls, parents: Links, widths: Sequence[float], most: float) -> "_Rows":
        nodes = len(parents)
        row = _row_of_each(parents, widths, most)
        rows: list[list[int]] = [[] for _ in range(max(row) + 1)]
        for node in range(nodes):
            rows[row[node]].append(node)
        above: list[list[int]] = [[] for _ in range(nodes)]
        below: list[list[int]] = [[] for _ in range(nodes)]
        every = list(widths)
        lanes: dict[tuple[int, int], list[int]] = {}
        place = [float(node) for node in range(nodes)]
        for child in range(nodes):
            for parent in parents[child]:
                passed = range(row[parent] + 1, row[child])
                lanes[parent, child] = list(range(len(every), len(every) + len(passed)))
                every += [0.0] * len(passed)
                place += [child] * len(passed)
                above += [[] for _ in passed]
                below += [[] for _ in passed]
                for lane, r in zip(lanes[parent, child], passed, strict=True):
                    rows[r].append(lane)
                way = [parent, *lanes[parent, child], child]
                for upper, lower in pairwise(way):
                    above[lower].append(upper)
                    below[upper].append(lower)
        # a lane starts out where its child is among the nodes, for the order of a row matters where barycentres tie
        return cls([sorted(row, key=lambda v: place[v]) for row in rows], above, below, every, lanes, nodes)

    def distances(self, row: Sequence[int]) -> NDArray[np.float64]:
        """Return the least distances of the centres of neighbours in a row."""
        sides = [
            (self.widths[a] + self.widths[b]) / 2 + (GAP if a < self.nodes and b < self.nodes else LANE)
            for a, b in pairwise(row)
        ]
        return np.array(sides)


def _row_of_each(parents: Links, widths: Sequence[float], most: float) -> list[int]:
    """Return the row of every node: by longest paths, then with shorter edges, then wide rows broken."""
    children: list[list[int]] = [[] for _ in parents]
    for node, above in enumerate(parents):
        for parent in above:
            children[parent].append(node)
    missing = [len(above) for above in parents]
    order = [node for node, count in enumerate(missing) if not count]
    row = [0] * len(parents)
    for node in order:
        for child in children[node]:
            row[child] = max(row[child], row[node] + 1)
            missing[child] -= 1
            if not missing[child]:
                order.append(child)
    while _pulled_together(row, parents):
        pass
    for _ in range(4):
        for node in [*reversed(order), *order]:
            if len(children[node]) > len(parents[node]):
                row[node] = min(row[child] for child in children[node]) - 1
            elif len(parents[node]) > len(children[node]):
                row[node] = max(row[parent] for parent in parents[node]) + 1
    return _broken(row, parents, children, widths, most)


def _pulled_together(row: list[int], parents: Links) -> bool:
    """Move one set of nodes, joined by edges from row to row, toward the others if that makes edges shorter.

    The set then joins another, so that this ends.
    """
    tight = [[parent for parent in above if row[node] - row[parent] == 1] for node, above in enumerate(parents)]
    for part in sorted(_parts(tight), key=len):
        inside = set(part)
        edges = [(p, c) for c, above in enumerate(parents) for p in above if (p in inside) != (c in inside)]
        slack = {down: [row[c] - row[p] - 1 for p, c in edges if (p in inside) == down] for down in (True, False)}
        if len(slack[True]) != len(slack[False]):
            down = len(slack[True]) > len(slack[False])
            for node in part:
                row[node] += min(slack[down]) * (1 if down else -1)
            return True
    return False


def _broken(row: list[int], parents: Links, children: Links, widths: Sequence[float], most: float) -> list[int]:
    """Break rows that are too wide: nodes with more parents than children go up, the others down."""
    found = [0] * len(row)
    start = 0
    for r in range(min(row), max(row) + 1):
        members = [node for node in range(len(row)) if row[node] == r]
        total = sum(widths[node] + GAP for node in members)
        several = math.ceil(total / (most + GAP))
        # nodes that are alike are dealt out, so that the edges of each row run between the boxes of the one above
        alike: dict[int, int] = {}
        turns: dict[int, tuple[int, int]] = {}
        for node in members:
            balance = len(children[node]) - len(parents[node])
            turns[node] = (balance, alike.get(balance, 0) % several)
            alike[balance] = alike.get(balance, 0) + 1
        filled = 0.0
        for node in sorted(members, key=lambda node: turns[node]):
            wide = widths[node] + GAP
            found[node] = start + min(several - 1, int((filled + wide / 2) * several / total))
            filled += wide
        start += several
    places = {r: i for i, r in enumerate(sorted(set(found)))}
    return [places[r] for r in found]


def _ordered(graph: _Rows) -> list[list[int]]:
    """Return the rows in an order with few crossings."""
    best: list[list[int]] = []
    fewest = math.inf
    for first_down in (True, False):
        rows = [list(row) for row in graph.rows]
        for sweep in range(_SWEEPS):
            down = (sweep % 2 == 0) == first_down
            _sweep(rows, graph.above if down else graph.below, down)
            if sweep >= _SWEEPS // 2:
                _swap(rows, graph)
            crossings = _crossings(rows, graph)
            if crossings < fewest:
                best, fewest = [list(row) for row in rows], crossings
    return best


def _sweep(rows: list[list[int]], near: Links, down: bool) -> None:
    """Sort every row by the barycentres of its neighbours in the row before it."""
    at = {v: (i + 0.5) / len(row) for row in rows for i, v in enumerate(row)}
    for r in range(len(rows)) if down else reversed(range(len(rows))):
        key = {v: sum(at[w] for w in near[v]) / len(near[v]) if near[v] else at[v] for v in rows[r]}
        rows[r].sort(key=lambda v: key[v])
        at |= {v: (i + 0.5) / len(rows[r]) for i, v in enumerate(rows[r])}


def _swap(rows: list[list[int]], graph: _Rows) -> None:
    """Swap neighbours as long as that removes crossings."""
    at = {v: i for row in rows for i, v in enumerate(row)}
    for _ in range(_SWAPS):
        better = False
        for row in rows:
            for i in range(len(row) - 1):
                v, w = row[i], row[i + 1]
                gain = sum(_inverted(near[v], near[w], at) for near in (graph.above, graph.below))
                if gain > 0:
                    row[i], row[i + 1] = w, v
                    at[v], at[w] = i + 1, i
                    better = True
        if not better:
            return


def _inverted(left: Sequence[int], right: Sequence[int], at: dict[int, int]) -> int:
    """Return how many crossings fewer there are when the two owners of these neighbours swap."""
    return sum((at[a] > at[b]) - (at[a] < at[b]) for a in left for b in right)


def _crossings(rows: list[list[int]], graph: _Rows) -> int:
    at = {v: i for row in rows for i, v in enumerate(row)}
    total = 0
    for row in rows:
        ends: list[int] = []
        for v in row:
            here = sorted(at[w] for w in graph.below[v])
            total += sum(len(ends) - bisect_right(ends, end) for end in here)
            for end in here:
                insort(ends, end)
    return total


def _across(graph: _Rows, rows: list[list[int]]) -> NDArray[np.float64]:
    """Return the centre of every box and lane along its row."""
    x = np.zeros(len(graph.widths))
    apart = [graph.distances(row) for row in rows]
    for row, distances in zip(rows, apart, strict=True):
        places = np.concatenate([[0.0], np.cumsum(distances)])
        x[row] = places - places[-1] / 2
    pulls = [graph.above, graph.below]
    tree = all(len(above) <= 1 for above in graph.above)  # then parents stand over the middle of their children at last
    for move in range(_MOVES):
        down = move % 2 == 0
        last = tree and move == _MOVES - 1
        near = pulls[move % 2 : move % 2 + 1] if move < _MOVES // 3 or last else pulls
        for r in range(len(rows)) if down else reversed(range(len(rows))):
            wanted = [_wanted(v, x, near, graph.nodes) for v in rows[r]]
            x[rows[r]] = _nearest([w for w, _ in wanted], [p for _, p in wanted], apart[r])
    return x


def _wanted(v: int, x: NDArray[np.float64], near: Iterable[Links], nodes: int) -> tuple[float, float]:
    """Return where the neighbours of a box or lane pull it, and how hard."""
    pull = [(float(x[w]), _STRAIGHT[(v >= nodes) + (w >= nodes)]) for side in near for w in side[v]]
    strength = sum(p for _, p in pull)
    return (sum(at * p for at, p in pull) / strength, strength) if pull else (float(x[v]), 1e-3)


def _nearest(wanted: Sequence[float], strength: Sequence[float], distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the places nearest to those wanted, in weighted least squares, that keep order and distances.

    Less the distances it is isotonic regression: neighbours that would overlap are pooled and move as one.
    """
    offsets = np.concatenate([[0.0], np.cumsum(distances)])
    pools: list[tuple[float, float, int]] = []
    for at, weight in zip(np.array(wanted) - offsets, strength, strict=True):
        mean, total, count = float(at), weight, 1
        while pools and pools[-1][0] > mean:
            other, heavier, more = pools.pop()
            mean = (mean * total + other * heavier) / (total + heavier)
            total, count = total + heavier, count + more
        pools.append((mean, total, count))
    return offsets + np.repeat([mean for mean, _, _ in pools], [count for _, _, count in pools])
