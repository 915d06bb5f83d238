"""What given flows prove about Φ, and Φ as a whole: plain loops over numbers, so that numba can compile them.

The proof is in :mod:`pufferfish._core.phi.phi`: any flows give a λ ≥ e^Φ, which :func:`prove` rounds up. Besides, Φ is
at most max A, and at most the max-divergence of p and q (no flows at all). Nothing else is relied on: the flows that
:mod:`pufferfish._core.phi.simplex` proposes may be any.

Pair i of laws is row x[i] of ``upper`` and row x_[i] of ``lower``: bounds on laws, ``upper`` 0 exactly where a law is.
Its tree has arcs from ``tails`` to ``heads`` with flows and shares, shape (n, k − 1), as
:func:`pufferfish._core.phi.simplex.climb` takes them.
"""

import math
from typing import Any

import numpy as np

from pufferfish._core.numbers.compiled import Loop
from pufferfish._core.numbers.rounding import SMALLEST, UNIT
from pufferfish._core.phi.simplex import climb, stars

# With bounds beyond this many nats flows would leave the range of a double, and Φ(A) ≤ max A has to do.
SEARCHED = 300.0
_NEAR = 1e-12  # a bound this near to what is attained, in nats, needs no search
_EXPONENT = 700.0  # no double holds the exponential of more


def prove(p: Any, q: Any, a: Any, x: Any, x_: Any, tails: Any, heads: Any, flows: Any, proved: Any) -> None:
    """Write what flows, any numbers whatever, prove about each pair: an upper bound on its log ratio, not below 0."""
    k, arcs = a.shape[0], tails.shape[1]
    into, out = np.empty(k), np.empty(k)
    rounding = (arcs + 8) * UNIT
    for i in range(x.shape[0]):
        row, other_row = p[x[i]], q[x_[i]]
        for y in range(k):
            into[y] = 0.0
            out[y] = 0.0
        for e in range(arcs):
            flow = flows[i, e]
            if SMALLEST < flow < np.inf:
                tail, head = tails[i, e], heads[i, e]
                grows = math.exp(a[tail, head]) if a[tail, head] <= _EXPONENT else np.inf
                into[head] += flow * grows * (1 + 16 * UNIT)
                out[tail] += flow
        most, mass = 0.0, 0.0
        for y in range(k):
            mass += row[y]
            excess = (row[y] + into[y]) * (1 + rounding) - out[y] * (1 - rounding)
            if excess <= 0.0:
                continue
            ratio = excess / other_row[y] if other_row[y] > 0.0 else np.inf
            if math.isnan(ratio):  # no number is no proof
                ratio = np.inf
            most = max(most, ratio * (1 + 8 * UNIT))
        if not mass > 0.0:  # no law at all
            most = np.inf
        log = math.log(most) if most > 0.0 else 0.0
        proved[i] = max(log + 8 * UNIT * (1 + abs(log)), 0.0) if log < np.inf else np.inf


def phi(rows: Any, upper: Any, lower: Any, a: Any, bounds: Any) -> None:  # noqa: C901 - one compiled loop, its phases named
    """Write an upper bound on Φ_K(A), (r, r), tight where the search found the optimum; exactly 0 where A is.

    ``upper`` and ``lower``, (r, k), bound K(x, y) for the states x of ``rows``, the others get +∞. A is closed by
    shortest paths; its entries for states that no law reaches are not read.
    """
    r, k = upper.shape
    # 1. the largest bound between states that are reached: where it is 0, so is the answer
    reached = np.zeros(k, dtype=np.bool_)
    for x in range(r):
        for y in range(k):
            if upper[x, y] > 0.0:
                reached[y] = True
    most = 0.0
    for y in range(k):
        for z in range(k):
            if reached[y] and reached[z] and y != z:
                most = max(most, a[y, z])
    every, every_, pairs = np.empty(r * r, dtype=np.int64), np.empty(r * r, dtype=np.int64), 0
    for x in range(r):
        for x_ in range(r):
            bounds[x, x_] = 0.0 if x == x_ else np.inf
            if rows[x] and rows[x_] and x != x_:
                every[pairs], every_[pairs] = x, x_
                pairs += 1
                if most == 0.0:
                    bounds[x, x_] = 0.0
    if most == 0.0 or pairs == 0:
        return
    # 2. what holds without a search: no more than the largest bound, and what the laws' ratios prove
    top = (most + UNIT * (k + 4)) * (1 + 4 * UNIT)  # rows sum to 1 up to rounding
    xs, xs_, proved = every[:pairs], every_[:pairs], np.empty(pairs)
    nowhere, nothing = np.zeros((pairs, 0), dtype=np.int64), np.zeros((pairs, 0))
    prove(upper, lower, a, xs, xs_, nowhere, nowhere, nothing, proved)
    for n in range(pairs):
        bounds[xs[n], xs_[n]] = min(proved[n], top)
    if most > SEARCHED:
        return
    # 3. stars, the vertices around one state: best for most pairs
    grown = np.zeros((k, k))
    for y in range(k):
        for z in range(k):
            if reached[y] and reached[z]:
                grown[y, z] = math.exp(a[y, z])
    arcs = max(k - 1, 1)
    tails, heads = np.zeros((pairs, arcs), dtype=np.int64), np.zeros((pairs, arcs), dtype=np.int64)
    flows, ratios = np.zeros((pairs, arcs)), np.zeros(pairs)
    stars(upper, lower, grown, xs, xs_, ratios, tails, heads, flows)
    prove(upper, lower, a, xs, xs_, tails, heads, flows, proved)
    # 4. a climb from the best star for the pairs that are not settled
    left = 0
    for n in range(pairs):
        x, x_ = xs[n], xs_[n]
        bounds[x, x_] = min(bounds[x, x_], proved[n])
        if ratios[n] <= 0.0 or bounds[x, x_] > max(math.log(ratios[n]), 0.0) + _NEAR:
            xs[left], xs_[left] = x, x_
            for e in range(arcs):  # entry by entry: whole rows take seconds to compile
                tails[left, e], heads[left, e] = tails[n, e], heads[n, e]
            left += 1
    if left == 0:
        return
    xs, xs_, tails, heads, flows = xs[:left], xs_[:left], tails[:left], heads[:left], flows[:left]
    climb(upper, lower, a, xs, xs_, np.zeros(left, dtype=np.bool_), tails, heads, flows, np.zeros((left, arcs)))
    prove(upper, lower, a, xs, xs_, tails, heads, flows, proved)
    for n in range(left):
        bounds[xs[n], xs_[n]] = min(bounds[xs[n], xs_[n]], proved[n])


# -- Φ of many kernels, and at place after place of a chain ----------------------------------------------------------


def search_each(
    upper: Any, lower: Any, a: Any, which: Any, x: Any, x_: Any, tails: Any, heads: Any, flows: Any, shares: Any,
    proved: Any,
) -> None:  # fmt: skip
    """Search and prove Φ of the same pairs for kernels ``which`` of a stack, each from the trees where it stood."""
    follows = np.zeros(x.shape[0], dtype=np.bool_)
    for n in range(which.shape[0]):
        j = which[n]
        climb(upper[j], lower[j], a[j], x, x_, follows, tails[n], heads[n], flows[n], shares[n])
        prove(upper[j], lower[j], a[j], x, x_, tails[n], heads[n], flows[n], proved[n])


def pass_on(
    ends: Any, shares: Any, source: Any, order: Any, residual: Any, most: Any, enough: Any, change: Any
) -> bool:
    """Solve δ_j = r_j + Φ'_j δ_{source[j]} around a cycle, by passing changes on in ``order`` until they move no more.

    Each entry of kernel j changes by ``shares`` of the entries ``ends``, flat, of its source's; (N, k², m). Returns
    whether they came to rest, with changes of size ``enough``, in ``most`` rounds.
    """
    for j in range(residual.shape[0]):
        for e in range(residual.shape[1]):
            change[j, e] = residual[j, e]
    for _ in range(most):
        moved = 0.0
        for i in range(order.shape[0]):
            j = order[i]
            for e in range(residual.shape[1]):
                value = residual[j, e]
                for n in range(ends.shape[2]):
                    value += shares[j, e, n] * change[source[j], ends[j, e, n]]
                moved = max(moved, abs(value - change[j, e]))
                change[j, e] = value
        if not moved > enough:
            return True
    return False


def walk(
    p: Any, q: Any, reached: Any, x: Any, x_: Any, always: Any, follows: Any, tails: Any, heads: Any, flows: Any,
    shares: Any, loss: Any, enough: float, a: Any, messages: Any,
) -> int:  # fmt: skip
    """Write Φ(A), then Φ(d + Φ(A)) …, (m, k, k), until bounds hardly move; return how many there are, at least one.

    ``reached`` are states of the laws p and q, ``always`` holds of each pair whatever A is, ``loss`` is d, and changes
    of at most ``enough`` are hardly any. In the end A are the bounds of the last place.
    """
    k = a.shape[0]
    proved = np.empty(x.shape[0])
    for place in range(messages.shape[0]):
        message = messages[place]
        for y in range(k):
            for z in range(k):
                message[y, z] = 0.0 if y == z else np.inf
        # 1. what is told never grows on the way; rows sum to 1 up to rounding
        most = 0.0
        for y in reached:
            for z in reached:
                most = max(most, np.inf if math.isnan(a[y, z]) else a[y, z])  # no number is no bound
        most += UNIT * (k + 4)
        if most < np.inf:
            most += 4 * (np.nextafter(most, np.inf) - most)
        for i in range(x.shape[0]):
            message[x[i], x_[i]] = min(always[i], most)
        # 2. what a search finds and flows prove
        if most <= SEARCHED:
            climb(p, q, a, x, x_, follows, tails, heads, flows, shares)
            prove(p, q, a, x, x_, tails, heads, flows, proved)
            for i in range(x.shape[0]):
                follows[i] = False  # from now on each pair goes on from where it was
                message[x[i], x_[i]] = min(message[x[i], x_[i]], proved[i])
        # 3. the bounds of this place, and whether they moved
        alike, moved = True, 0.0
        for y in range(k):
            for z in range(k):
                bound = message[y, z]
                arrived = loss[y, z] if bound == 0.0 else np.nextafter(loss[y, z] + bound, np.inf)
                if math.isinf(arrived) != math.isinf(a[y, z]):
                    alike = False
                elif not math.isinf(arrived):
                    moved = max(moved, abs(arrived - a[y, z]))
                a[y, z] = arrived
        if alike and moved <= enough:
            return place + 1
    return messages.shape[0]


# -- Factors that the checker of certificates allows by its own rule --------------------------------------------------

# A factor c is enough for rows p and q where what p − c q has too much of can be moved, along the cheapest pairs first,
# to where it has too little; a move from y to z costs R(y, z). The checker does the same in whole numbers
# (docs/proofs/certificate.md). While the same moves are made, what is left over is linear in c and in each cost: from
# the last move back to the first that gives both slopes, for Newton's method.

_NOTHING = 1e-16  # what is left over by rounding alone
_LARGEST = 1e12  # factors that are none
# How near the least factor is found, as a share of it; and how many factors are tried for it.
_NEAREST, _MOST_TRIALS = 1e-12, 200


def _left_over(
    p: Any, q: Any, factor: float, tails: Any, heads: Any, costs: Any, left: Any, made: Any, amounts: Any
) -> tuple[float, int]:
    """Return what is left of p − c q when all moves are made, and how many were; the last three arrays are written."""
    sources, many = 0, 0
    for y in range(p.shape[0]):
        left[y] = p[y] - factor * q[y]
        if left[y] > _NOTHING:
            sources += 1
    for move in range(tails.shape[0]):
        if sources == 0:
            return 0.0, many
        y, z = tails[move], heads[move]
        if left[y] > _NOTHING and left[z] < 0:
            room = -left[z] / costs[move]
            made[many] = move
            if left[y] <= room:
                amounts[many] = left[y]
                left[z] += left[y] * costs[move]
                left[y] = 0.0
                sources -= 1
            else:
                amounts[many] = -room  # the room is used up, not what is moved
                left[y] -= room
                left[z] = 0.0
                if left[y] <= _NOTHING:
                    sources -= 1
            many += 1
    total = 0.0
    for y in range(p.shape[0]):
        if left[y] > _NOTHING:
            total += left[y]
    return total, many


def _slopes(
    q: Any, heads: Any, tails: Any, costs: Any, left: Any, made: Any, amounts: Any, many: int, worth: Any, slopes: Any
) -> float:
    """Write how fast what is left grows with the cost of each move made; return how fast it falls with the factor."""
    for y in range(q.shape[0]):
        worth[y] = 1.0 if left[y] > _NOTHING else 0.0
    for n in range(many - 1, -1, -1):
        move = made[n]
        y, z = tails[move], heads[move]
        if amounts[n] >= 0:
            slopes[n] = worth[z] * amounts[n]
            worth[y] = worth[z] * costs[move]
        else:
            slopes[n] = -worth[y] * amounts[n] / costs[move]
            worth[z] = worth[y] / costs[move]
    falls = 0.0
    for y in range(q.shape[0]):
        falls += worth[y] * q[y]
    return falls


def _find(rows: Any, x: Any, x_: Any, tails: Any, heads: Any, costs: Any, found: Any, moves: Any, slopes: Any) -> None:
    """Write the least factor found for each pair of rows, and its slopes by costs; ``found`` holds guesses above 1."""
    size = rows.shape[1]
    left, worth, amounts = np.empty(size), np.empty(size), np.empty(size)
    made = np.empty(size, dtype=np.int64)
    for pair in range(x.shape[0]):
        p, q = rows[x[pair]], rows[x_[pair]]
        low, high, trial, guess, ahead = 0.0, np.inf, 1.0, found[pair], 1.0
        for _ in range(_MOST_TRIALS):
            total, many = _left_over(p, q, trial, tails, heads, costs, left, made, amounts)
            if total > 0.0:  # too small; along its slope to where nothing would be left
                low = trial
                slopes[pair] = 0.0
                falls = _slopes(q, heads, tails, costs, left, made, amounts, many, worth, slopes[pair])
                moves[pair, :many] = made[:many]
                ahead = 2.0 * low
                if falls > 0.0:
                    ahead = min(ahead, low * (1.0 + 0.1 * _NEAREST) + total / falls)
                    slopes[pair] /= falls
                before, trial = trial, ahead
                if before == 1.0 and guess < high:
                    trial = guess
            else:
                high = trial
                # mostly the end of the slope is the least factor: just below it there is too little
                trial = high * (1.0 - 0.9 * _NEAREST) if high == ahead else ahead
            if high <= low * (1.0 + _NEAREST) or high <= 1.0 or low > _LARGEST:
                break
            if not low < trial < high:
                trial = 0.5 * (low + high)
        found[pair] = high


_find_all = Loop(_find)


def least_factors(rows: Any, pairs: Any, bound: Any, alive: Any, guess: Any) -> tuple[Any, Any, Any, Any]:
    """Return the least factors found of pairs of rows, for vectors v with v(y) ≤ bound(y, z) v(z); infinite for none.

    Pairs are (m, 2) numbers of rows, ``alive`` are the states that have a part, and guesses are above 1. Besides the
    factors, the tails, heads and slopes, (m, k) each: by which entries of R the factors grow, and how fast.
    """
    costs = bound[np.ix_(alive, alive)]
    tail, head = np.nonzero(~np.eye(len(alive), dtype=np.bool_))
    order = np.argsort(costs[tail, head], kind="stable")
    tails, heads, found = alive[tail[order]], alive[head[order]], np.maximum(guess, 1 + 1e-9)
    shape = len(pairs), rows.shape[1]
    moves, slopes = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    if not len(tails):
        tails, heads = (np.zeros(1, dtype=np.int64) for _ in range(2))
    work = 10 * len(pairs) * len(tails)
    x, x_ = (np.ascontiguousarray(column) for column in np.asarray(pairs).T)
    _find_all(work, rows, x, x_, tails, heads, bound[tails, heads], found, moves, slopes)
    return found, tails[moves], heads[moves], slopes
