"""The sweep of :mod:`pufferfish._core.propagation.clusters`: plain loops over arrays, which numba can compile."""

from typing import Any, NamedTuple

import numpy as np

from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.phi.certificate import phi

# How a step takes a bound: its largest entry, added to all pairs; as it is; or through Φ.
CEILING, DIRECT, INNER = 0, 1, 2


class Steps(NamedTuple):
    """What makes messages, one step each, in arrays: bounds are taken from memory, and written to memory."""

    # for each step where in memory its message begins, and how many states r it is about: r × r numbers
    outs: Any
    rows: Any
    # the number of states n over which Φ is taken, 0 for none, and where their (r, n) law begins in upper and lower
    columns: Any
    kernels: Any
    firsts: Any  # where the terms of each step begin
    # for each term how it is taken, where in memory its bounds begin, its number of states, and where in places its map
    # begins: from each of the step's states (rows for DIRECT, columns for INNER) to one of the term's
    kinds: Any
    sources: Any
    sizes: Any
    maps: Any
    places: Any  # all maps
    upper: Any  # bounds on all laws
    lower: Any


def gathered(steps: Steps, step: int, kind: int, n: int, memory: Any) -> Any:
    """Return the sum of a step's terms of one kind on n states, rounded up; shape (n, n)."""
    a = np.zeros((n, n))
    terms = 0
    for term in range(steps.firsts[step], steps.firsts[step + 1]):
        if steps.kinds[term] != kind:
            continue
        terms += 1
        size, source, start = steps.sizes[term], steps.sources[term], steps.maps[term]
        for c in range(n):
            row = source + steps.places[start + c] * size
            for c_ in range(n):
                a[c, c_] += memory[row + steps.places[start + c_]]
    rounding = 1 + (terms + 2) * UNIT
    for c in range(n):
        for c_ in range(n):
            a[c, c_] *= rounding
    return a


def sweep(steps: Steps, first: int, last: int, memory: Any) -> None:
    """Make the messages of the steps ``first`` to before ``last``, one after another, in memory."""
    for step in range(first, last):
        r, n, out = steps.rows[step], steps.columns[step], steps.outs[step]
        constant, terms = 0.0, 0
        for term in range(steps.firsts[step], steps.firsts[step + 1]):
            terms += 1
            if steps.kinds[term] == CEILING:
                most = 0.0
                for m in range(steps.sources[term], steps.sources[term] + steps.sizes[term] ** 2):
                    most = max(most, memory[m])
                constant += most
        message = gathered(steps, step, DIRECT, r, memory)
        through = np.zeros((r, r))
        if n > 0:
            start = steps.kernels[step]
            upper = steps.upper[start : start + r * n].reshape(r, n)
            lower = steps.lower[start : start + r * n].reshape(r, n)
            phi(np.ones(r, dtype=np.bool_), upper, lower, gathered(steps, step, INNER, n, memory), through)
        rounding = 1 + (terms + 4) * UNIT
        for s in range(r):
            for s_ in range(r):
                total = (message[s, s_] + through[s, s_] + constant) * rounding
                # a message about nothing is a constant
                memory[out + s * r + s_] = total if s != s_ or r == 1 else 0.0


def eliminate(starts: Any, columns: Any, upper: Any, lower: Any, near: Any, fibres: Any, a: Any, message: Any) -> None:
    """Take one variable out of bounds ``a`` on pairs of n configurations, and write those on pairs of the r without it.

    The configurations that belong to each one of the other variables are ``columns``, from its ``starts``; ``upper``
    and ``lower``, (n,), bound the law of the variable given the others. For every other variable ``fibres``, (c, r),
    are the configurations that differ in it alone: that of w is ``fibres[v, near[v, f]:near[v, f + 1]]`` for some f,
    and holds w. With none all pairs are searched; otherwise only pairs in one fibre, and the others are bounded by
    paths over these, +∞ where no path leads.
    """
    r = starts.shape[0] - 1
    if near.shape[0] == 0:
        for w in range(r):
            message[w, w] = 0.0
            for w_ in range(w):
                one_pair(starts, columns, upper, lower, a, w, w_, message)
        return
    for w in range(r):
        for w_ in range(r):
            message[w, w_] = 0.0 if w == w_ else np.inf
    for v in range(near.shape[0]):
        for f in range(r):
            for i in range(near[v, f], near[v, f + 1]):
                for j in range(near[v, f], i):
                    one_pair(starts, columns, upper, lower, a, fibres[v, i], fibres[v, j], message)
    # paths that change one variable after the other, in either order
    step = np.empty((r, r))
    for w in range(r):
        for w_ in range(r):
            step[w, w_] = message[w, w_]
    for turn in range(2 * near.shape[0]):
        v = turn if turn < near.shape[0] else 2 * near.shape[0] - 1 - turn
        for f in range(r):
            for i in range(near[v, f], near[v, f + 1]):
                for j in range(near[v, f], near[v, f + 1]):
                    w, t = fibres[v, i], fibres[v, j]
                    if w == t:
                        continue
                    for w_ in range(r):
                        through = (step[w, t] + message[t, w_]) * (1 + 2 * UNIT)
                        if through < message[w, w_]:
                            message[w, w_] = through


def one_pair(starts: Any, columns: Any, upper: Any, lower: Any, a: Any, w: int, w_: int, message: Any) -> None:
    """Write Φ of the laws of one variable given two configurations of the others, both ways; see `eliminate`."""
    both, pair_bounds = np.ones(2, dtype=np.bool_), np.empty((2, 2))
    width, width_ = starts[w + 1] - starts[w], starts[w_ + 1] - starts[w_]
    n = width + width_
    above, below, bounds = np.zeros((2, n)), np.zeros((2, n)), np.empty((n, n))
    for i in range(n):
        here = starts[w] + i if i < width else starts[w_] + i - width
        side = 0 if i < width else 1
        above[side, i] = upper[here]
        below[side, i] = lower[here]
        for j in range(n):
            there = starts[w] + j if j < width else starts[w_] + j - width
            bounds[i, j] = a[columns[here], columns[there]]
    phi(both, above, below, bounds, pair_bounds)
    message[w, w_] = pair_bounds[0, 1]
    message[w_, w] = pair_bounds[1, 0]


def worst_of(
    losses: Any, firsts: Any, sources: Any, sizes: Any, states: Any, pairs: Any, memory: Any
) -> tuple[Any, ...]:
    """Return where the leakage is largest: which secret node (−1 for none), the two states, in which way, and how much.

    For each secret node ``losses`` says where in memory its loss begins, −1 for none, ``states`` how many it has, and
    ``firsts`` where the ways to bound what else leaks of it begin, of which the least counts: where in memory one
    begins, −1 where nothing else leaks, and its number of states, 1 for one number. ``pairs``, flat, shall not be told
    apart.
    """
    node, first_state, second_state, best, worst, first = -1, 0, 0, 0, 0.0, 0
    for i in range(states.shape[0]):
        k = states[i]
        for x in range(k):
            for x_ in range(k):
                place = x * k + x_
                if x == x_ or not pairs[first + place]:
                    continue
                least, way = np.inf, firsts[i]
                for m in range(firsts[i], firsts[i + 1]):
                    leak = memory[sources[m] + (place if sizes[m] > 1 else 0)] if sources[m] >= 0 else 0.0
                    if leak < least:
                        least, way = leak, m
                total = ((memory[losses[i] + place] if losses[i] >= 0 else 0.0) + least) * (1 + 4 * UNIT)
                if node < 0 or total > worst:
                    node, first_state, second_state, best, worst = i, x, x_, way - firsts[i], total
        first += k * k
    return node, first_state, second_state, best, worst
