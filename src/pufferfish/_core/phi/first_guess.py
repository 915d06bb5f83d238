r"""Vertices of a cone that can be written down, and the flows that prove them best: most cones of few states.

With a closed matrix A every vertex of a cone of at most three states is a *star*: one state is as far below, or above,
every other as A allows. Of four states there are *paths* too, b → c ← a → d. Given the ratio λ = p·v / q·v at a vertex
its tree's flows follow from its leaves: a state y with p_y > λ q_y passes on what is too much for it, one with
p_y < λ q_y takes in what it has room for. Flows that all come out positive prove that the vertex is the best one.

Like :mod:`pufferfish._core.phi.simplex`, which goes on where this ends, this only proposes.
"""

from typing import Any

import numpy as np

from pufferfish._core.phi.simplex import MARGIN

__all__ = ["on_path", "passed_on", "path_ratio", "stars", "taken_in"]


def stars(upper: Any, lower: Any, grown: Any, x: Any, x_: Any, ratios: Any, tails: Any, heads: Any, flows: Any) -> None:
    """Write the best star of every pair of laws, and the flows on it; on four states the best path, if that is better.

    Parameters
    ----------
    upper, lower : (r, k) ndarray
        Laws in rows: p of the first state of a pair, q of the second.
    grown : (k, k) ndarray
        Exponentials of the bounds A; 0 for states that no law reaches.
    x, x_ : (n,) ndarray of int
        The pairs.
    ratios : (n,) ndarray, written
        p·v / q·v at the vertex: no bound on the pair can be below its logarithm.
    tails, heads : (n, k - 1) ndarray of int, written
        The arcs of each pair's tree; only the first s - 1 count where s states are in the problem.
    flows : (n, k - 1) ndarray, written
        Flows on them, from a vertex that is not the best one any numbers ≥ 0.
    """
    r, k = upper.shape
    margin = MARGIN * (k + 16)
    above, below = np.zeros((r, 2 * k)), np.zeros((r, 2 * k))
    vertex, states = np.zeros(k), np.empty(k, dtype=np.int64)
    for z in range(k):
        if grown[z, z] == 0.0:
            continue
        top = 0.0
        for y in range(k):
            top = max(top, grown[y, z])
        for side in range(2):
            for y in range(k):
                vertex[y] = 0.0
                if grown[y, y] > 0.0:
                    vertex[y] = grown[y, z] / top if side == 0 else 1 / grown[z, y]
            for row in range(r):
                for y in range(k):
                    above[row, 2 * z + side] += upper[row, y] * vertex[y]
                    below[row, 2 * z + side] += lower[row, y] * vertex[y]
    for n in range(x.shape[0]):
        p, q = upper[x[n]], lower[x_[n]]
        s = 0
        ratio, centre, falls = -1.0, 0, True
        for z in range(k):
            if p[z] == 0.0 and q[z] == 0.0:
                continue
            states[s] = z
            s += 1
            for side in range(2):
                much, little = above[x[n], 2 * z + side], below[x_[n], 2 * z + side]
                if little > 0.0 and much > ratio * little:
                    ratio, centre, falls = much / little, z, side == 0
        if ratio < 0.0 and s > 0:  # q underflows on every star
            centre = states[0]
        e = 0
        for j in range(s):
            y = states[j]
            if y == centre:
                continue
            if falls:
                tails[n, e], heads[n, e] = y, centre
                flows[n, e] = passed_on(p[y], q[y], ratio, margin)
            else:
                tails[n, e], heads[n, e] = centre, y
                flows[n, e] = taken_in(p[y], q[y], ratio, margin) / grown[centre, y]
            e += 1
        if s == 4 and ratio > 0.0:
            ratio = on_path(p, q, grown, states, ratio, margin, tails[n], heads[n], flows[n])
        ratios[n] = ratio


def passed_on(p: Any, q: Any, ratio: Any, margin: Any) -> Any:
    """Return what a state with nothing coming in has too much of, p - λq or 0, with a margin for the proof."""
    return max(p * (1 + margin) - ratio * q * (1 - margin), 0.0)


def taken_in(p: Any, q: Any, ratio: Any, margin: Any) -> Any:
    """Return what a state has room for, λq - p or 0, with a margin for the states that pass it on."""
    return max(ratio * q * (1 + margin) - p * (1 - margin), 0.0)


def on_path(
    p: Any, q: Any, grown: Any, states: Any, ratio: Any, margin: Any, tails: Any, heads: Any, flows: Any
) -> Any:
    """Write the best path on four states if it beats a ratio and its flows are positive; return the better ratio.

    Parameters
    ----------
    p, q : (k,) ndarray
        The laws.
    grown : (k, k) ndarray
        Exponentials of A.
    states : (k,) ndarray of int
        The four states come first.
    ratio : float
        Ratio to beat, λ.
    margin : float
        Share by which a state passes on too much.
    tails, heads, flows : (k - 1,) ndarray, written
        The path's three arcs.
    """
    last = 0
    a, b, c, d = 0, 0, 0, 0
    for _ in range(4):
        # p·v - λ q·v is largest where all arcs lead from states with p > λq to the others
        many, sources = 0, 0
        for j in range(4):
            if p[states[j]] > ratio * q[states[j]]:
                many += 1
                sources += 1 << j
        if sources == last:  # and on the path at hand it is 0: no vertex is better
            sink, source = taken_in(p[d], q[d], ratio, margin) / grown[a, d], passed_on(p[b], q[b], ratio, margin)
            middle = passed_on(p[a], q[a], ratio, margin) - sink
            if sink > 0.0 and source > 0.0 and middle > 0.0:
                tails[0], heads[0], flows[0] = a, d, sink
                tails[1], heads[1], flows[1] = a, c, middle
                tails[2], heads[2], flows[2] = b, c, source
            break
        if many != 2:
            break
        a, b, c, d = -1, -1, -1, -1
        for j in range(4):
            y = states[j]
            if sources >> j & 1:
                a, b = y, a
            else:
                c, d = y, c
        if grown[a, d] * grown[b, c] > grown[a, c] * grown[b, d]:
            c, d = d, c
        # a → d and b → c are tight, and either a → c or b → d; the latter is a → c with other names
        one, other = path_ratio(p, q, grown, a, b, c, d), path_ratio(p, q, grown, b, a, d, c)
        if other > one:
            a, b, c, d = b, a, d, c
        if max(one, other) <= ratio:
            break
        ratio, last = max(one, other), sources
    return ratio


def path_ratio(p: Any, q: Any, grown: Any, a: int, b: int, c: int, d: int) -> Any:
    """Return p·v / q·v at the vertex where a → d, a → c and b → c are tight."""
    v_a, v_b = grown[a, c], grown[b, c]
    v_d = v_a / grown[a, d]
    against = q[a] * v_a + q[b] * v_b + q[c] + q[d] * v_d
    return (p[a] * v_a + p[b] * v_b + p[c] + p[d] * v_d) / against if against > 0.0 else 0.0
