r"""Network simplex on a cone of pairwise log-ratio bounds: the search behind :mod:`pufferfish._core.phi.phi`.

For laws p, q and bounds A (closed under the triangle inequality) it looks for the v of the cone :math:`v_y \le
e^{A(y,z)} v_z` with the largest p·v / q·v, in potentials u = log v. A vertex is a spanning tree of tight arcs y → z,
u(y) = u(z) + A(y,z). Moving one side of an arc against the other changes the ratio monotonically, so a pivot moves a
side until another constraint is tight and swaps the two arcs.

Every vertex of a cone of at most three states is a *star*: one state is as far below, or above, every other as A
allows. Of four states there are *paths* too, b → c ← a → d.

What comes out is a proposal: flows on the tree's arcs which *prove* a bound on the ratio, whatever led to them
(:func:`pufferfish._core.phi.certificate.prove`). Nothing here has to be right for the bound to be sound.
"""

import math
from typing import Any

import numpy as np

TIGHT = 1e-12  # a constraint with less slack than this counts as tight
OPTIMAL = 1e-13  # a flow that is less negative than this share of the mass behind its arc counts as none
# A state passes on more than it takes in, by this share times the number of states: the proof must survive its own
# rounding.
MARGIN = 1e-15
FOLLOWED = 16  # so many short steps are followed by factors e^step, before all e^u are computed anew
# A state whose q is large keeps this share more than it should, rather than push its rounding into a tiny one.
ROOM = 1e-11


def climb(  # noqa: C901 - one loop, compiled as it stands: its phases share a dozen arrays and are named below
    p: Any, q: Any, a: Any, x: Any, x_: Any, follows: Any, tails: Any, heads: Any, flows: Any, shares: Any
) -> None:
    """Find the best vertex of the cone for many pairs of laws, ``p[x]`` and ``q[x_]``, starting from given trees.

    Where one ``follows`` it starts from where the pair before ended, which has the same states. The arcs ``tails`` →
    ``heads``, (n, k − 1), change in place. Written are multipliers f of the arcs, and their shares f(y,z)·v(y) / p·v.
    """
    k = a.shape[0]
    margin = MARGIN * (k + 16)
    states = np.empty(k, dtype=np.int64)
    u, v, sums, into, mass = np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    degree, link = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    order, parent, arc_up = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    rises = np.empty(k, dtype=np.bool_)
    rising, staying = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    loose = np.empty(k, dtype=np.bool_)
    for i in range(x.shape[0]):
        row, other_row, tail, head, flow, share = p[x[i]], q[x_[i]], tails[i], heads[i], flows[i], shares[i]
        # 1. the states of this pair, and its first tree
        s = 0
        for y in range(k):
            if row[y] > 0 or other_row[y] > 0:
                states[s] = y
                s += 1
        if s == 0:  # no laws: there is nothing to propose
            for e in range(k - 1):
                flow[e] = 0.0
                share[e] = 0.0
            continue
        # sums run towards the heaviest state, so that what lies behind an arc is never a small difference
        root = states[0]
        for j in range(s):
            if row[states[j]] + other_row[states[j]] > row[root] + other_row[root]:
                root = states[j]
        for e in range(k - 1):
            flow[e] = 0.0
            share[e] = 0.0
            if follows[i]:
                tail[e] = tails[i - 1, e]
                head[e] = heads[i - 1, e]
        ratio, total, top, idle, moved = 0.0, 0.0, 0.0, 0, -1
        for pivot in range(60 * s + 100):
            # 2. strip leaves: an order in which each state comes before its parent in the tree
            for j in range(s):
                degree[states[j]] = 0
                link[states[j]] = 0
            for e in range(s - 1):
                degree[tail[e]] += 1
                degree[head[e]] += 1
                link[tail[e]] ^= e
                link[head[e]] ^= e
            n = 0
            for j in range(s):
                if degree[states[j]] == 1 and states[j] != root:
                    order[n] = states[j]
                    n += 1
            for m in range(s - 1):
                y = order[m]
                e = link[y]
                z = tail[e] + head[e] - y
                parent[m], arc_up[m] = z, e
                link[z] ^= e
                degree[z] -= 1
                if degree[z] == 1 and z != root:
                    order[n] = z
                    n += 1
            if pivot == 0:  # 3. the vertex of the first tree: potentials u from the root outwards
                u[root] = 0.0
                for n in range(s - 2, -1, -1):
                    y, z = order[n], parent[n]
                    u[y] = u[z] + a[y, z] if tail[arc_up[n]] == y else u[z] - a[z, y]
                for j in range(s):  # the bounds may have changed since the tree was made: back into the cone
                    y = states[j]
                    low = u[y]
                    for j_ in range(s):
                        z = states[j_]
                        if a[y, z] + u[z] < low:
                            low = a[y, z] + u[z]
                    sums[y] = low
                for j in range(s):
                    u[states[j]] = sums[states[j]]
                for e in range(s - 1):
                    loose[e] = u[tail[e]] - u[head[e]] < a[tail[e], head[e]] - TIGHT
            # 4. the ratio at this vertex, and what each arc carries: a wrong sign says which arc leaves
            if moved < 0 or moved == FOLLOWED:
                moved = 0
                top = u[states[0]]
                for j in range(s):
                    top = max(top, u[states[j]])
                for j in range(s):
                    v[states[j]] = math.exp(u[states[j]] - top)
            total, against = 0.0, 0.0
            for j in range(s):
                y = states[j]
                total += row[y] * v[y]
                against += other_row[y] * v[y]
            if total <= 0.0 or against <= 0.0:
                break  # the laws' numbers underflow on this vertex: propose nothing
            ratio = total / against
            per_total, per_against = 1.0 / total, 1.0 / against
            for j in range(s):
                y = states[j]
                one, two = row[y] * v[y] * per_total, other_row[y] * v[y] * per_against
                sums[y] = one - two
                mass[y] = one + two
            worst, leaving = 0.0, -1
            for n in range(s - 1):
                y, e = order[n], arc_up[n]
                share[e] = sums[y] if tail[e] == y else -sums[y]
                sums[parent[n]] += sums[y]
                mass[parent[n]] += mass[y]
                wrong = abs(share[e]) if loose[e] else -share[e]
                if wrong > worst and wrong > OPTIMAL * mass[y]:
                    leaving = e
                    if idle <= s:
                        worst = wrong
            if leaving < 0:
                if moved == 0:
                    break
                moved = -1  # the best vertex, as far as factors tell: look again
                continue
            # 5. the side that rises: the head's if the arc pushes the wrong way, else (it is loose) the tail's
            n_leaving = 0
            for n in range(s - 1):
                if arc_up[n] == leaving:
                    n_leaving = n
            below = order[n_leaving]
            head_rises = share[leaving] < 0
            below_rises = (head[leaving] == below) == head_rises
            for j in range(s):
                rises[states[j]] = not below_rises
            rises[below] = below_rises
            for n in range(n_leaving - 1, -1, -1):
                if rises[parent[n]] == below_rises and arc_up[n] != leaving:
                    rises[order[n]] = rises[parent[n]]
            # 6. how far it rises until a new arc is tight: that one comes in. Mostly one side has few states
            n_rising, n_staying = 0, 0
            for j in range(s):
                if rises[states[j]]:
                    rising[n_rising] = states[j]
                    n_rising += 1
                else:
                    staying[n_staying] = states[j]
                    n_staying += 1
            step = np.inf
            new_tail, new_head = -1, -1
            for j in range(n_rising):
                y = rising[j]
                for j_ in range(n_staying):
                    z = staying[j_]
                    slack = a[y, z] - u[y] + u[z]
                    if slack < step:
                        step, new_tail, new_head = slack, y, z
            step = max(step, 0.0)
            idle = idle + 1 if step < TIGHT else 0
            grown = math.exp(step) if step < 1.0 else 1.0
            for j in range(n_rising):
                u[rising[j]] += step
                v[rising[j]] *= grown
            moved = moved + 1 if step < 1.0 else -1
            tail[leaving], head[leaving], loose[leaving] = new_tail, new_head, False
        if total <= 0.0:
            continue
        # 7. flows in their own unit, sources first: every state that can pass on what is too much for it does
        for j in range(s):
            y = states[j]
            degree[y] = 0
            into[y] = 0.0
            sums[y] = 0.0
        for e in range(s - 1):
            if share[e] < 0 or loose[e]:
                share[e] = 0.0
            flow[e] = share[e] * total / v[tail[e]]
            sums[tail[e]] += flow[e]
            degree[head[e]] += 1
        n = 0
        for j in range(s):
            if degree[states[j]] == 0:
                order[n] = states[j]
                n += 1
        m = 0
        while m < n:
            y = order[m]
            m += 1
            most = -1
            for e in range(s - 1):
                if tail[e] == y and (most < 0 or flow[e] > flow[most]):
                    most = e
            if most >= 0:
                holds = row[y] + into[y]
                if margin * holds <= ROOM * ratio * other_row[y]:  # its own q takes up the rounding
                    lacking = holds - ratio * other_row[y] * (1 + ROOM) - sums[y]
                else:
                    lacking = holds * (1 + margin) - ratio * other_row[y] * (1 - margin) - sums[y]
                if lacking > 0:
                    flow[most] += lacking
                for e in range(s - 1):
                    if tail[e] == y:
                        into[head[e]] += flow[e] * math.exp(a[y, head[e]])
                        degree[head[e]] -= 1
                        if degree[head[e]] == 0:
                            order[n] = head[e]
                            n += 1


# -- Vertices of a cone that can be written down ---------------------------------------------------------------------


def stars(upper: Any, lower: Any, grown: Any, x: Any, x_: Any, ratios: Any, tails: Any, heads: Any, flows: Any) -> None:
    """Write the best star of every pair of laws, and the flows on it; on four states the best path, if that is better.

    ``grown`` are exponentials of A, 0 for states that no law reaches. ``ratios`` are p·v / q·v at the vertices: no
    bound on a pair can be below their logarithm. Arcs and flows are those of :func:`climb`.
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
    """Write the best path on four states if it beats a ratio λ and its flows are positive; return the better ratio."""
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
        ratio_ac, ratio_bd = path_ratio(p, q, grown, a, b, c, d), path_ratio(p, q, grown, b, a, d, c)
        if ratio_bd > ratio_ac:
            a, b, c, d = b, a, d, c
        if max(ratio_ac, ratio_bd) <= ratio:
            break
        ratio, last = max(ratio_ac, ratio_bd), sources
    return ratio


def path_ratio(p: Any, q: Any, grown: Any, a: int, b: int, c: int, d: int) -> Any:
    """Return p·v / q·v at the vertex where a → d, a → c and b → c are tight."""
    v_a, v_b = grown[a, c], grown[b, c]
    v_d = v_a / grown[a, d]
    against = q[a] * v_a + q[b] * v_b + q[c] + q[d] * v_d
    return (p[a] * v_a + p[b] * v_b + p[c] + p[d] * v_d) / against if against > 0.0 else 0.0
