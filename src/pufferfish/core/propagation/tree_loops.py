"""The sweeps of :mod:`pufferfish.core.propagation.tree`: plain loops over arrays, so that numba can compile them.

Arrays of different shapes lie one after another in flat arrays; a :class:`Forest` says where.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from pufferfish.core.numbers.rounding import SMALLEST, TINY, UNIT
from pufferfish.core.phi.certificate import phi

__all__ = ["Forest", "Kernels", "close_all", "kernels_of", "marginals", "sweep_down", "sweep_up", "worst_of"]

_NORMAL = 2.0**-1022
"""Smaller doubles have no relative accuracy."""

_LOG_TINY = math.log(TINY)

_LOOSE = 1e-3
"""Kernels whose relative error may be larger are taken as unknown."""


class Forest(NamedTuple):
    """Who hangs on whom, and where arrays of n nodes lie in flat ones.

    Parameters
    ----------
    parents : (n,) ndarray of int
        Parent of each node, −1 for a root.
    order : (n,) ndarray of int
        The nodes, parents before their children.
    sizes : (n,) ndarray of int
        Numbers of states k_i.
    states, squares : (n + 1,) ndarray of int
        Where vectors of k_i and matrices of k_i × k_i numbers begin.
    tables : (n + 1,) ndarray of int
        Where tables begin, and kernels in either direction; a root's table counts as one row.
    firsts : (n + 1,) ndarray of int
        Where the children of each node begin in ``children``.
    children : (n,) ndarray of int
        The children of node 0, then those of node 1, …
    kept : (n,) ndarray of int
        Where a node's message to its parent is kept between the sweeps; −1 where it is not.
    """

    parents: Any
    order: Any
    sizes: Any
    states: Any
    squares: Any
    tables: Any
    firsts: Any
    children: Any
    kept: Any


class Kernels(NamedTuple):
    """Bounds on the kernels of every edge, flat, and the states that can occur.

    Parameters
    ----------
    possible : ndarray of bool
        States that can occur.
    down_upper, down_lower : ndarray
        Bounds on P(child | parent), rows = states of the parent.
    up_upper, up_lower : ndarray
        Bounds on P(parent | child), rows = states of the child.
    """

    possible: Any
    down_upper: Any
    down_lower: Any
    up_upper: Any
    up_lower: Any


def marginals(forest: Forest, tables: Any, possible: Any, values: Any, logs: Any, errors: Any) -> None:
    """Write the marginals of all nodes and bounds on their errors.

    Parameters
    ----------
    forest : Forest
        The n nodes.
    tables : ndarray
        Laws of roots and rows of P(child | parent), flat.
    possible : ndarray of bool, written
        States that can occur: those that exact zeros of the tables do not rule out.
    values, logs : ndarray, written
        Marginals and their logarithms (−∞ for a state that cannot occur). A node with a probability below
        :data:`~pufferfish.core.numbers.rounding.TINY` has values of −1: it has only logarithms.
    errors : (n,) ndarray, written
        Bounds on the relative error of ``values``, and on the absolute error of ``logs`` but for 4 units in the last
        place of the largest of them; +∞ where nothing is known.
    """
    for place in range(forest.order.shape[0]):
        i = forest.order[place]
        k, parent = forest.sizes[i], forest.parents[i]
        here = slice(forest.states[i], forest.states[i + 1])
        can, value, log = possible[here], values[here], logs[here]
        rows = 1 if parent < 0 else forest.sizes[parent]
        table = tables[forest.tables[i] : forest.tables[i + 1]].reshape(rows, k)
        above = slice(0, 1) if parent < 0 else slice(forest.states[parent], forest.states[parent + 1])
        in_numbers = parent < 0 or values[above.start] >= 0.0
        errors[i] = UNIT * (rows + k + 8) + (0.0 if parent < 0 else errors[parent])
        for x in range(k):
            total = 0.0
            can[x] = False
            for y in range(rows):
                if table[y, x] > 0.0 and (parent < 0 or possible[above][y]):
                    can[x] = True
                    if in_numbers:
                        total += table[y, x] if parent < 0 else values[above][y] * table[y, x]
            value[x] = total
            log[x] = math.log(total) if total > 0.0 else -np.inf
        for x in range(k):
            in_numbers = in_numbers and (not can[x] or value[x] >= TINY)
        if in_numbers:
            continue
        largest = 0.0
        for x in range(k):
            value[x] = -1.0
            log[x] = -np.inf
            if not can[x]:
                continue
            top = -np.inf
            for y in range(rows):
                if table[y, x] > 0.0 and (parent < 0 or possible[above][y]):
                    top = max(top, math.log(table[y, x]) + (0.0 if parent < 0 else logs[above][y]))
                    if table[y, x] < _NORMAL:
                        errors[i] = np.inf
            total = 0.0
            for y in range(rows):
                if table[y, x] > 0.0 and (parent < 0 or possible[above][y]):
                    total += math.exp(math.log(table[y, x]) + (0.0 if parent < 0 else logs[above][y]) - top)
            log[x] = top + math.log(total)
            largest = max(largest, abs(log[x]), abs(top))
        errors[i] += UNIT * 16 * (largest - _LOG_TINY)


def kernels_of(forest: Forest, tables: Any, values: Any, logs: Any, errors: Any, kernels: Kernels) -> None:
    """Write bounds on the kernels of every edge, in both directions.

    Parameters
    ----------
    forest, tables, values, logs, errors
        As :func:`marginals` leaves them.
    kernels : Kernels
        Bounds, written; they come in as zeros, the states that can occur as they are.
    """
    for i in range(forest.sizes.shape[0]):
        parent = forest.parents[i]
        if parent < 0:
            continue
        k, rows = forest.sizes[i], forest.sizes[parent]
        here = slice(forest.states[i], forest.states[i + 1])
        above = slice(forest.states[parent], forest.states[parent + 1])
        edge = slice(forest.tables[i], forest.tables[i + 1])
        value, log = values[here], logs[here]
        can_above, value_above, log_above = kernels.possible[above], values[above], logs[above]
        table = tables[edge].reshape(rows, k)
        down_upper, down_lower = kernels.down_upper[edge].reshape(rows, k), kernels.down_lower[edge].reshape(rows, k)
        up_upper, up_lower = kernels.up_upper[edge].reshape(k, rows), kernels.up_lower[edge].reshape(k, rows)
        in_numbers = value[0] >= 0.0  # then so is the parent
        own = UNIT * (k + 8)
        for y in range(rows):
            for x in range(k):
                p = table[y, x]
                if not can_above[y] or p <= 0.0:
                    continue
                down_upper[y, x] = p * (1 + own) if p > SMALLEST else 2 * SMALLEST
                down_lower[y, x] = p * (1 - own) if p > SMALLEST else 0.0
                error = errors[i] + errors[parent] + own
                if in_numbers:
                    share = value_above[y] / value[x]
                    upper, lower = share * down_upper[y, x], share * down_lower[y, x]
                else:
                    exponent = log_above[y] + math.log(p) - log[x]
                    error += UNIT * 16 * (abs(log_above[y]) + abs(math.log(p)) + abs(log[x]) - _LOG_TINY)
                    upper = math.exp(min(exponent, 1.0))
                    lower = upper
                if not error < _LOOSE:  # nothing is known but that it is possible
                    upper, lower, error = 1.0, 0.0, 0.0
                upper, lower = upper * (1 + 2 * error), lower * (1 - 2 * error)
                up_upper[x, y] = min(max(upper, 2 * SMALLEST), 1.0)
                up_lower[x, y] = lower if lower > SMALLEST else 0.0


def close_all(forest: Forest, bounds: Any) -> None:
    """Lower the bounds of every node to those of the shortest paths over other states, each sum rounded up."""
    for i in range(forest.sizes.shape[0]):
        k = forest.sizes[i]
        a = bounds[forest.squares[i] : forest.squares[i + 1]].reshape(k, k)
        for z in range(k):
            for x in range(k):
                for x_ in range(k):
                    through = (a[x, z] + a[z, x_]) * (1 + 2 * UNIT)
                    if through < a[x, x_]:
                        a[x, x_] = through


def law_of_child(forest: Forest, kernels: Kernels, i: int) -> tuple[Any, Any, Any]:
    """Return which states the parent of node i can have, and bounds on the law of node i given each, (h, k)."""
    k, parent = forest.sizes[i], forest.parents[i]
    h, edge = forest.sizes[parent], slice(forest.tables[i], forest.tables[i + 1])
    rows = kernels.possible[forest.states[parent] : forest.states[parent + 1]]
    return rows, kernels.down_upper[edge].reshape(h, k), kernels.down_lower[edge].reshape(h, k)


def law_of_parent(forest: Forest, kernels: Kernels, i: int) -> tuple[Any, Any, Any]:
    """Return which states node i can have, and bounds on the law of its parent given each, (k, h)."""
    k, h = forest.sizes[i], forest.sizes[forest.parents[i]]
    edge = slice(forest.tables[i], forest.tables[i + 1])
    rows = kernels.possible[forest.states[i] : forest.states[i + 1]]
    return rows, kernels.up_upper[edge].reshape(k, h), kernels.up_lower[edge].reshape(k, h)


def without_parent(forest: Forest, i: int, losses: Any, below: Any) -> Any:
    """Return the bounds A that node i has towards its parent: its loss and what its children's subtrees tell."""
    k, start = forest.sizes[i], forest.squares[i]
    rounding = 1 + (forest.firsts[i + 1] - forest.firsts[i] + 4) * UNIT
    a = np.empty((k, k))
    for y in range(k):
        for z in range(k):
            m = start + y * k + z
            a[y, z] = (losses[m] + below[m]) * rounding
    return a


def sweep_up(forest: Forest, kernels: Kernels, losses: Any, below: Any, kept: Any) -> None:
    """Write what the subtrees of its children tell about every node.

    Parameters
    ----------
    forest, kernels
        The model.
    losses : ndarray
        Record-level losses, flat, closed by shortest paths.
    below : ndarray, written
        Bounds on the pairs of every node, flat; +∞ for states that cannot occur. They come in as zeros.
    kept : ndarray, written
        Room for the messages that are kept for the sweep down.
    """
    for place in range(forest.order.shape[0] - 1, -1, -1):
        i = forest.order[place]
        parent = forest.parents[i]
        if parent < 0:
            continue
        h, start, seat = forest.sizes[parent], forest.squares[parent], forest.kept[i]
        message = np.empty((h, h))
        rows, upper, lower = law_of_child(forest, kernels, i)
        phi(rows, upper, lower, without_parent(forest, i, losses, below), message)
        for m in range(h * h):
            below[start + m] += message[m // h, m % h]
            if seat >= 0:
                kept[seat + m] = message[m // h, m % h]


def sweep_down(forest: Forest, kernels: Kernels, losses: Any, below: Any, above: Any, kept: Any) -> None:
    """Write what everything but its own subtree tells about every node.

    Sums over all children but one are made of sums before and after it, never of a difference: terms can be infinite.
    Messages that are not kept are made again, √n children at a time.

    Parameters
    ----------
    forest, kernels, losses, below, kept
        As :func:`sweep_up` leaves them.
    above : ndarray, written
        Bounds on the pairs of every node, flat; +∞ for states that cannot occur. They come in as zeros.
    """
    for place in range(forest.order.shape[0]):
        i = forest.order[place]
        k, first, start = forest.sizes[i], forest.firsts[i], forest.squares[i]
        n, square = forest.firsts[i + 1] - first, k * k
        if n == 0:
            continue
        size = n if n == 1 or forest.kept[forest.children[first]] >= 0 else math.ceil(math.sqrt(n))
        blocks = (n + size - 1) // size
        a, message = np.empty((k, k)), np.empty((k, k))
        before, of_blocks = np.empty(square), np.zeros((blocks, square))
        told, after = np.zeros((size, square)), np.zeros((size + 1, square))
        # a first pass over all blocks sums their messages, where there are several; a second one uses them
        for step in range(0 if blocks > 1 else blocks, 2 * blocks):
            block = step % blocks
            begin = block * size
            many = min(size, n - begin)
            for m in range(square):
                after[many, m] = 0.0
            for j in range(many - 1, -1, -1):
                child = forest.children[first + begin + j]
                seat = forest.kept[child]
                if seat < 0 and n > 1:
                    rows, upper, lower = law_of_child(forest, kernels, child)
                    phi(rows, upper, lower, without_parent(forest, child, losses, below), message)
                for m in range(square):
                    if n > 1:
                        told[j, m] = kept[seat + m] if seat >= 0 else message[m // k, m % k]
                    after[j, m] = after[j + 1, m] + told[j, m]
            if step < blocks:
                of_blocks[block] = after[0]
                continue
            for m in range(square):
                before[m] = losses[start + m] + above[start + m]
                for other in range(blocks):
                    if other != block:
                        before[m] += of_blocks[other, m]
            for j in range(many):
                for m in range(square):
                    a[m // k, m % k] = (before[m] + after[j + 1, m]) * (1 + (n + 8) * UNIT)
                    before[m] += told[j, m]
                child = forest.children[first + begin + j]
                rows, upper, lower = law_of_parent(forest, kernels, child)
                k_ = forest.sizes[child]
                its = above[forest.squares[child] : forest.squares[child + 1]].reshape(k_, k_)
                phi(rows, upper, lower, a, its)


def worst_of(forest: Forest, possible: Any, secrets: Any, losses: Any, below: Any, above: Any) -> tuple[Any, ...]:
    """Return where the leakage is largest, and that leakage: node (−1 for none), the two states, total, rounded up.

    Parameters
    ----------
    forest : Forest
        The nodes.
    possible : ndarray of bool
        States that can occur.
    secrets : ndarray of bool
        Which pairs of states shall not be told apart, flat like ``losses``.
    losses, below, above : ndarray
        As the sweeps leave them.
    """
    node, one, other, worst = -1, 0, 0, 0.0
    for i in range(forest.sizes.shape[0]):
        k, first = forest.sizes[i], forest.states[i]
        rounding = 1 + (forest.firsts[i + 1] - forest.firsts[i] + 8) * UNIT
        for x in range(k):
            for x_ in range(k):
                m = forest.squares[i] + x * k + x_
                if x == x_ or not secrets[m] or not possible[first + x] or not possible[first + x_]:
                    continue
                total = (losses[m] + below[m] + above[m]) * rounding
                if node < 0 or not total <= worst:
                    node, one, other, worst = i, x, x_, total
    return node, one, other, worst
