"""Factors that the checker of certificates allows by its own rule (docs/proofs/certificate.md), in doubles.

A factor c is enough for rows p and q where what p − c q has too much of can be moved, along the cheapest pairs first,
to where it has too little; a move from y to z costs R(y, z). What is left over is linear in c and in each cost while
the same moves are made: from the last move back both slopes follow, for Newton's method. All this only proposes.
"""

from typing import Any

import numpy as np

from pufferfish._core.numbers.compiled import Loop

_NOTHING = 1e-16  # what is left over by rounding alone
_LARGEST = 1e12  # factors that are none
# How near the least factor is found, as a share of it; and how many factors are tried for it.
_NEAR, _MOST_TRIALS = 1e-12, 200


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
                    ahead = min(ahead, low * (1.0 + 0.1 * _NEAR) + total / falls)
                    slopes[pair] /= falls
                before, trial = trial, ahead
                if before == 1.0 and guess < high:
                    trial = guess
            else:
                high = trial
                # mostly the end of the slope is the least factor: just below it there is too little
                trial = high * (1.0 - 0.9 * _NEAR) if high == ahead else ahead
            if high <= low * (1.0 + _NEAR) or high <= 1.0 or low > _LARGEST:
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
