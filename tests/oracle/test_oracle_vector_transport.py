"""W∞ and unmatched mass of laws of integer vectors against an LP, Hall's condition and the monotone coupling."""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import pairwise, permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

import pufferfish as pf
from pufferfish._core.laws.transport import _two_laws, _within, least_reach, unmatched
from pufferfish.errors import ModelError

Points = list[tuple[int, ...]]
Law = tuple[Points, list[int]]

TINY = 10**300
"""The number of masses of 1e-300 that make up 1."""


def distance(a: Iterable[int], b: Iterable[int]) -> int:
    return sum(abs(s - t) for s, t in zip(a, b, strict=True))


def distances(x: Points, y: Points) -> list[list[int]]:
    return [[distance(a, b) for b in y] for a in x]


def matched_mass(x: Points, p: list[int], y: Points, q: list[int], reach: int) -> int:
    """The greatest flow that the package finds along pairs within reach."""
    (x_, p_), (y_, q_) = _two_laws(x, p, y, q)
    return _within(x_, p_, y_, q_)[0](reach) if reach >= 0 else 0


def shares(masses: list[int]) -> list[Fraction]:
    return [Fraction(mass, sum(masses)) for mass in masses]


# --- the oracles -----------------------------------------------------------------------------------------------------


def subsets(n: int) -> Iterator[list[int]]:
    for bits in range(1, 2**n):
        yield [i for i in range(n) if bits >> i & 1]


def hall_least(x: Points, p: list[Fraction], y: Points, q: list[Fraction]) -> int:
    """Least W at which every set of atoms of p finds its mass within W: Hall's condition, set by set."""
    apart = distances(x, y)
    worst = 0
    for chosen in subsets(len(x)):
        need = sum(p[i] for i in chosen)
        if not need:
            continue
        nearest = [min(apart[i][j] for i in chosen) for j in range(len(y))]
        worst = max(worst, min(w for w in {0, *nearest} if need <= sum(q[j] for j in range(len(y)) if nearest[j] <= w)))
    return worst


def hall_matched(x: Points, p: list[int], y: Points, q: list[int], reach: int) -> int:
    """Least cut over all sets of atoms: what the others send, and what this set's neighbours take."""
    apart = distances(x, y)
    cuts = [sum(p)]
    for chosen in subsets(len(x)):
        others = sum(p) - sum(p[i] for i in chosen)
        cuts.append(others + sum(q[j] for j in range(len(y)) if any(apart[i][j] <= reach for i in chosen)))
    return min(cuts)


def paths_matched(x: Points, p: list[int], y: Points, q: list[int], reach: int) -> int:
    """Greatest flow by shortest augmenting paths, one at a time, for laws too large for all sets."""
    n, goal = len(x), len(x) + len(y)
    near = [[n + j for j, apart in enumerate(row) if apart <= reach] for row in distances(x, y)]
    left = [*p, *q]
    flow: dict[tuple[int, int], int] = {}
    while True:
        came = {i: -1 for i in range(n) if left[i]}
        queue = list(came)
        for node in queue:
            onward = near[node] if node < n else [i for i in range(n) if flow.get((i, node))]
            fresh = [other for other in onward if other not in came]
            came.update((other, node) for other in fresh)
            queue.extend(fresh)
        end = next((node for node in queue if n <= node < goal and left[node]), None)
        if end is None:
            return sum(flow.values())
        path = [end]
        while came[path[-1]] >= 0:
            path.append(came[path[-1]])
        steps = [(b, a) for a, b in pairwise(path)]
        moved = min(left[path[-1]], left[end], *(flow[b, a] for a, b in steps if a >= n))
        for a, b in steps:
            pair, more = ((a, b), moved) if a < n else ((b, a), -moved)
            flow[pair] = flow.get(pair, 0) + more
        left[path[-1]] -= moved
        left[end] -= moved


def lp_matched(x: Points, p: list[Fraction], y: Points, q: list[Fraction], reach: int) -> float:
    """Most mass of a sub-coupling within reach, in floats."""
    arcs = np.argwhere(np.array(distances(x, y)) <= reach)
    if not len(arcs):
        return 0.0
    rows = np.concatenate([arcs[:, 0], len(x) + arcs[:, 1]])
    columns = np.tile(np.arange(len(arcs)), 2)
    sums = coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(x) + len(y), len(arcs)))
    found = linprog(-np.ones(len(arcs)), A_ub=sums.tocsr(), b_ub=[float(mass) for mass in [*p, *q]], method="highs")
    assert found.status == 0, found.message
    return -float(found.fun)


def lp_least(x: Points, p: list[Fraction], y: Points, q: list[Fraction]) -> int:
    """Least W at which an LP keeps everything, up to 1e-6."""
    candidates = sorted({d for row in distances(x, y) for d in row})
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        if lp_matched(x, p, y, q, candidates[middle]) > 1 - 1e-6:
            high = middle
        else:
            low = middle + 1
    return candidates[low]


def lp_couples_within_factor(x: Points, p: list[int], y: Points, q: list[int], slack: Fraction, reach: int) -> bool:
    """Whether one coupling within reach has both marginals within the factor 1 + slack of p and q."""
    arcs = np.argwhere(np.array(distances(x, y)) <= reach)
    if not len(arcs):
        return False
    sums = np.zeros((len(x) + len(y), len(arcs)))
    for k, (i, j) in enumerate(arcs):
        sums[i, k] = sums[len(x) + j, k] = 1
    masses, factor = np.array([*p, *q], dtype=float), float(1 + slack)
    bounds = np.concatenate([masses * factor, -masses / factor])
    found = linprog(np.zeros(len(arcs)), A_ub=np.vstack([sums, -sums]), b_ub=bounds, method="highs")
    assert found.status in (0, 2), found.message
    return found.status == 0


def monotone_coupling(x: list[int], p: list[int], y: list[int], q: list[int]) -> int:
    """Longest move of the coupling of equal quantiles, which is W∞ of numbers."""
    left = sorted(zip(x, shares(p), strict=True))
    right = sorted(zip(y, shares(q), strict=True))
    longest = 0
    while left and right:
        (a, mass_a), (b, mass_b) = left.pop(), right.pop()
        moved = min(mass_a, mass_b)
        if moved:
            longest = max(longest, abs(a - b))
        if mass_a > moved:
            left.append((a, mass_a - moved))
        if mass_b > moved:
            right.append((b, mass_b - moved))
    return longest


# --- laws ------------------------------------------------------------------------------------------------------------


def points(rng: np.random.Generator, n: int, m: int, side: int) -> Points:
    drawn: NDArray[np.int64] = rng.integers(-side, side + 1, (n, m))
    return [tuple(int(c) for c in row) for row in drawn]


def few(rng: np.random.Generator, n: int) -> list[int]:
    return [1 + int(mass) for mass in rng.integers(0, 20, n)]


def of_every_size(rng: np.random.Generator, n: int) -> list[int]:
    return [int(rng.integers(0, 4)) * 10 ** int(rng.choice([0, 1, 150, 299, 300])) for _ in range(n - 1)] + [TINY]


def law(seed: int, n: int, m: int, side: int, masses: Callable[[np.random.Generator, int], list[int]] = few) -> Law:
    rng = np.random.default_rng(seed)
    return points(rng, n, m, side), masses(rng, n)


def moved_a_little(x: Points, p: list[int], step: int, seed: int) -> Law:
    """A law within ``step`` of p: every atom's mass, in three parts, by moves in one or two coordinates."""
    rng = np.random.default_rng(seed)
    y: Points = []
    q: list[int] = []
    for atom, mass in zip(x, p, strict=True):
        parts = [mass // 3, mass // 4, mass - mass // 3 - mass // 4]
        for part in parts:
            to = list(atom)
            c = int(rng.integers(len(to)))
            by = int(rng.integers(-step, step + 1))
            to[c] += by
            to[(c + 1) % len(to)] += step - abs(by)
            y.append(tuple(to))
            q.append(part)
    return y, q


# --- tests -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_lp_over_couplings(seed: int, m: int) -> None:
    (x, p), (y, q) = law(seed, 14, m, 6), law(100 + seed, 11, m, 6)
    assert least_reach(x, p, y, q) == lp_least(x, shares(p), y, shares(q))


@pytest.mark.parametrize(("m", "side"), [(2, 12), (3, 6), (3, 300), (5, 3)])
def test_lp_over_couplings_of_many_atoms(m: int, side: int) -> None:
    (x, p), (y, q) = law(m, 90, m, side), law(side, 80, m, side)
    truth = lp_least(x, shares(p), y, shares(q))
    assert least_reach(x, p, y, q) == truth
    for reach in (truth // 4, truth // 2, truth - 1):
        share = float(unmatched(x, p, y, q, reach))
        assert share == pytest.approx(1 - lp_matched(x, shares(p), y, shares(q), reach), abs=1e-6)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("masses", [few, of_every_size])
def test_halls_condition(seed: int, m: int, masses: Callable[[np.random.Generator, int], list[int]]) -> None:
    (x, p), (y, q) = law(seed, 6, m, 4, masses), law(200 + seed, 7, m, 4, masses)
    truth = hall_least(x, shares(p), y, shares(q))
    assert least_reach(x, p, y, q) == truth
    assert truth == hall_least(y, shares(q), x, shares(p))


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("masses", [few, of_every_size])
def test_matched_mass_is_the_least_cut(
    seed: int, m: int, masses: Callable[[np.random.Generator, int], list[int]]
) -> None:
    (x, p), (y, q) = law(seed, 6, m, 4, masses), law(300 + seed, 7, m, 4, masses)
    for reach in (-1, 0, 1, 2, 4, 7, 30):
        truth = hall_matched(x, p, y, q, reach)
        assert matched_mass(x, p, y, q, reach) == truth
        assert matched_mass(y, q, x, p, reach) == truth


@pytest.mark.parametrize(("m", "side"), [(2, 12), (3, 6), (4, 3), (6, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_augmenting_paths_with_tails(seed: int, m: int, side: int) -> None:
    (x, p), (y, q) = law(seed, 40, m, side, of_every_size), law(50 + seed, 35, m, side, of_every_size)
    p, q = [mass * sum(q) for mass in p], [mass * sum(p) for mass in q]
    found = least_reach(x, p, y, q)
    for reach in {0, 1, found // 3, found // 2, found - 1, found}:
        truth = paths_matched(x, p, y, q, reach)
        assert matched_mass(x, p, y, q, reach) == truth
        assert (truth == sum(p)) == (reach == found)


@pytest.mark.parametrize("slack", [Fraction(1, 10**160), Fraction(1, 3)])
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_augmenting_paths_with_tails_and_slack(m: int, slack: Fraction) -> None:
    (x, p), (y, q) = law(m, 40, m, 5, of_every_size), law(60 + m, 35, m, 5, of_every_size)
    p, q = [mass * sum(q) for mass in p], [mass * sum(p) for mass in q]
    found = least_reach(x, p, y, q, slack=slack)
    up = (1 + slack) ** 2
    low = up.denominator
    for reach in (found - 1, found):
        forth = paths_matched(x, [low * a for a in p], y, [up.numerator * b for b in q], reach) == low * sum(p)
        back = paths_matched(y, [low * b for b in q], x, [up.numerator * a for a in p], reach) == low * sum(q)
        assert (forth and back) == (reach == found)


@pytest.mark.parametrize("seed", range(10))
def test_a_tail_of_1e_300_decides(seed: int) -> None:
    """The bulk is at most 3 away, a tail must go farther; floats lose it."""
    (x, p) = law(seed, 20, 2, 6)
    y, q = moved_a_little(x, p, 3, seed)
    p_, q_ = [mass * TINY for mass in p], [mass * TINY for mass in q]
    x_, y_ = [*x, (30, 5 + seed)], [*y, (9, -9)]
    p_, q_ = [*p_, 1], [*q_, 1]
    found = least_reach(x_, p_, y_, q_)
    nearest = min(distance(x_[-1], b) for b in y_)
    assert nearest <= found <= distance(x_[-1], y_[-1])
    assert found > 3
    assert lp_least(x_, shares(p_), y_, shares(q_)) <= 3
    assert unmatched(x_, p_, y_, q_, found - 1) == Fraction(1, sum(p_))
    assert unmatched(x_, p_, y_, q_, found) == 0


def test_a_tail_that_only_a_chain_of_moves_can_carry() -> None:
    """Each atom hands a mass of 1e-300 on to the next, so that none goes far."""
    x = [(t, t * t % 5) for t in range(30)]
    p = [TINY] * 30
    p[0] += 1
    q = [TINY] * 30
    q[-1] += 1
    longest = max(distance(a, b) for a, b in pairwise(x))
    found = least_reach(x, p, x, q)
    assert 0 < found <= longest
    assert all(unmatched(x, p, x, q, reach) == Fraction(1, sum(p)) for reach in range(found))


def test_masses_of_thousands_of_digits() -> None:
    huge = 10**4000
    x = [(0, 0), (4, 1), (1, 7)]
    assert least_reach(x, [huge, huge, huge], x, [huge - 1, huge + 1, huge]) == 5
    assert least_reach(x, [huge, huge, huge], x, [huge - 1, huge, huge + 1]) == 8
    assert unmatched(x, [huge, huge, huge], x, [huge - 1, huge, huge + 1], 7) == Fraction(1, 3 * huge)


def test_disjoint_supports() -> None:
    assert least_reach([(0, 0), (0, 1)], [1, 1], [(9, 5)], [7]) == 14
    assert unmatched([(0, 0), (0, 1)], [1, 1], [(9, 5)], [7], 13) == Fraction(1, 2)
    assert unmatched([(0, 0), (0, 1)], [1, 1], [(9, 5)], [7], 12) == 1


@pytest.mark.parametrize("m", [1, 2, 3])
def test_equal_laws(m: int) -> None:
    x, p = law(7, 40, m, 9)
    assert least_reach(x, p, x, p) == 0
    assert unmatched(x, p, x, p, 0) == 0
    assert least_reach(x, p, x, [3**500 * mass for mass in p]) == 0
    split = [*x, *x, (99,) * m]
    assert least_reach(x, p, split[::-1], [*p, *(2 * mass for mass in p), 0][::-1]) == 0


@pytest.mark.parametrize("seed", range(10))
def test_one_dimension_and_lines(seed: int) -> None:
    """Numbers, and the same numbers along a line or a staircase in space, where L1 only stretches them."""
    (x, p), (y, q) = law(seed, 25, 1, 30, of_every_size), law(400 + seed, 30, 1, 30, of_every_size)
    truth = monotone_coupling([a for (a,) in x], p, [b for (b,) in y], q)
    assert least_reach(x, p, y, q) == truth
    line = [3, 0, -2]
    on_line = [[(5 + a * line[0], 5, a * line[2]) for (a,) in atoms] for atoms in (x, y)]
    assert least_reach(on_line[0], p, on_line[1], q) == 5 * truth
    stairs = [[((a + 100) // 2, 0, -((a + 101) // 2)) for (a,) in atoms] for atoms in (x, y)]
    assert least_reach(stairs[0], p, stairs[1], q) == truth


def test_almost_a_line() -> None:
    """Ends that agree in a coordinate do not make a line when an atom between them differs in it."""
    assert least_reach([(0, 0), (10, 0)], [1, 1], [(5, 1), (10, 0)], [1, 1]) == 6
    assert least_reach([(0, 0), (10, 0)], [1, 1], [(5, 0), (10, 0)], [1, 1]) == 5
    assert matched_mass([(0, 0), (3, 3)], [1, 1], [(2, 1), (1, 2)], [1, 1], 2) == 0
    assert matched_mass([(0, 0), (3, 3)], [1, 1], [(2, 1), (1, 2)], [1, 1], 3) == 2


@pytest.mark.parametrize("slack", [Fraction(1, 11), Fraction(1, 4), Fraction(2)])
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_slack(seed: int, m: int, slack: Fraction) -> None:
    """Two one-sided conditions by Hall, and by an LP the one coupling they amount to (Mendelsohn–Dulmage)."""
    (x, p), (y, q) = law(seed, 6, m, 4), law(500 + seed, 6, m, 4)
    q = [mass * sum(p) for mass in q]
    p = [mass * (sum(q) // sum(p)) for mass in p]
    less_p, less_q = [mass / (1 + slack) for mass in p], [mass / (1 + slack) for mass in q]
    more_p, more_q = [mass * (1 + slack) for mass in p], [mass * (1 + slack) for mass in q]
    truth = max(hall_least(x, less_p, y, more_q), hall_least(y, less_q, x, more_p))
    found = least_reach(x, p, y, q, slack=slack)
    assert found == truth
    assert found <= least_reach(x, p, y, q)
    assert lp_couples_within_factor(x, p, y, q, slack, found)
    assert not found or not lp_couples_within_factor(x, p, y, q, slack, found - 1)


def test_slack_absorbs_rounding_and_no_slack_does_not() -> None:
    """0.1 + 0.2 is not 0.3 in floats: exactly, a mass of 2^-54 has to go 10 far."""
    x = [(0, 0), (5, 7), (9, 1)]
    p, q = (
        [int(Fraction(mass) * 2**60) for mass in masses] for masses in ([0.1 + 0.2, 0.5, 0.2], [0.3, 0.5, 0.1 + 0.1])
    )
    assert sum(p) != sum(q)
    assert least_reach(x, p, x, q) > 0
    assert least_reach(x, p, x, q, slack=Fraction(1, 2**52)) == 0
    with pytest.raises(ModelError, match="sums farther apart"):
        least_reach(x, p, x, q, slack=Fraction(1, 2**57))
    q[2] += sum(p) - sum(q)
    assert least_reach(x, p, x, q, slack=Fraction(1, 2**52)) == 0
    assert least_reach(x, p, x, q, slack=Fraction(1, 2**57)) == 10
    # a tail is no rounding: its whole mass is known up to the factor
    tail = [*x, (50, 50)]
    assert least_reach(tail, [*p, 1], x, q, slack=Fraction(1, 2**52)) == distance((50, 50), (5, 7))


@pytest.mark.parametrize("seed", range(6))
def test_slack_only_ever_shortens(seed: int) -> None:
    x, p = law(seed, 25, 2, 8, of_every_size)
    y, q = law(600 + seed, 25, 2, 8, of_every_size)
    p, q = [mass * sum(q) for mass in p], [mass * sum(p) for mass in q]
    slacks = [Fraction(0), Fraction(1, 10**310), Fraction(1, 100), Fraction(1), Fraction(10**9), Fraction(10**400)]
    found = [least_reach(x, p, y, q, slack=slack) for slack in slacks]
    assert found == sorted(found, reverse=True)
    held = [a for a, mass in zip(x, p, strict=True) if mass], [b for b, mass in zip(y, q, strict=True) if mass]
    apart = np.array(distances(*held))
    assert found[-1] == max(apart.min(axis=0).max(), apart.min(axis=1).max())  # supports alone


@pytest.mark.parametrize("m", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_what_must_not_matter(seed: int, m: int) -> None:
    (x, p), (y, q) = law(seed, 30, m, 5, of_every_size), law(700 + seed, 25, m, 5)
    truth = least_reach(x, p, y, q)
    assert truth > 0
    assert least_reach(y, q, x, p) == truth
    by = [10**18, -(10**18), 3, 0, 0, 1][:m]
    moved = [[tuple(c + s for c, s in zip(a, by, strict=True)) for a in atoms] for atoms in (x, y)]
    assert least_reach(moved[0], p, moved[1], q) == truth
    for order in list(permutations(range(m)))[:4]:
        turned = [[tuple(-a[c] if c == 0 else a[c] for c in order) for a in atoms] for atoms in (x, y)]
        assert least_reach(turned[0], p, turned[1], q) == truth
    stretched = [[tuple(7 * c for c in a) for a in atoms] for atoms in (x, y)]
    assert least_reach(stretched[0], p, stretched[1], q) == 7 * truth
    assert least_reach([*x, *x], [*p, *(2 * mass for mass in p)], y, [mass * 17 for mass in q]) == truth
    shuffled = np.random.default_rng(seed).permutation(len(x)).tolist()
    assert least_reach([x[i] for i in shuffled], [p[i] for i in shuffled], y, q) == truth


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_triangle_inequality(seed: int, m: int) -> None:
    a, b, c = (law(s + seed, 20, m, 5, of_every_size) for s in (800, 900, 1000))
    assert least_reach(*a, *c) <= least_reach(*a, *b) + least_reach(*b, *c)


@pytest.mark.parametrize("step", [1, 3, 8])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_a_law_moved_by_a_step_is_within_the_step(m: int, step: int) -> None:
    x, p = law(m, 60, m, 10, of_every_size)
    y, q = moved_a_little(x, p, step, seed=m)
    assert least_reach(x, p, y, q) <= step
    assert unmatched(x, p, y, q, step) == 0


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("masses", [few, of_every_size])
def test_unmatched_falls_and_is_zero_from_w_on(m: int, masses: Callable[[np.random.Generator, int], list[int]]) -> None:
    (x, p), (y, q) = law(3, 25, m, 5, masses), law(4, 30, m, 5, masses)
    truth = least_reach(x, p, y, q)
    assert truth > 1
    delta = [unmatched(x, p, y, q, reach) for reach in range(-1, truth + 3)]
    assert delta[0] == 1
    assert delta == sorted(delta, reverse=True)
    assert [share > 0 for share in delta] == [reach < truth for reach in range(-1, truth + 3)]
    for reach, share in enumerate(delta, start=-1):
        swapped = unmatched(y, q, x, p, reach)
        assert share == swapped


def test_atoms_as_an_array_and_far_apart() -> None:
    far = np.array([[0, -(2**60)], [1, 2**60]])
    assert least_reach(far, [1, 1], far, [1, 3]) == 2**61 + 1
    assert least_reach(far.astype(np.int64), np.array([1, 1]).tolist(), far.tolist(), [2, 2]) == 0
    assert unmatched(far, [1, 1], far, [1, 3], 10**30) == 0


def test_a_line_has_no_limit_of_size() -> None:
    x = np.stack([np.arange(5000), 2 * np.arange(5000)], axis=1)
    assert least_reach(x, [2] * 5000, x + np.array([1, 2]), [1] * 5000) == 3


def test_atoms_too_far_apart_are_refused() -> None:
    for asked in (least_reach, partial(unmatched, reach=1)):
        with pytest.raises(ModelError, match="expected distances below"):
            asked([(0, 2**62)], [1], [(1, 0)], [1])


@pytest.mark.parametrize(
    ("x", "p", "y", "q", "says"),
    [
        ([(0, 0)], [1, 0], [(0, 0)], [1], "x has 1 atoms and p 2 masses"),
        ([(0, 0)], [1], [(0,)], [1], "atoms of 1 and of 2 coordinates"),
        ([(0, 0), (1,)], [0.5, 0.5], [(0, 0)], [1], "atoms of 1 and of 2 coordinates"),
        ([(0, 0), 1], [0.5, 0.5], [(0, 0)], [1], "atoms of 1 and of 2 coordinates"),
        ([(0.5, 0)], [1], [(0, 0)], [1], "must be of whole numbers"),
        ([(0, 2**70)], [1], [(1, 0)], [1], r"below 2\*\*62"),
    ],
)
def test_errors_say_what_is_wrong(x: Points, p: list[float], y: Points, q: list[float], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        pf.wasserstein_inf(x, p, y, q)


def test_errors_of_slack_and_size() -> None:
    with pytest.raises(ModelError, match="sums farther apart"):
        least_reach([(0, 0)], [100], [(0, 0)], [102], slack=Fraction(1, 200))
    assert least_reach([(0, 0)], [100], [(0, 0)], [102], slack=Fraction(1, 100)) == 0
    grid = np.array([(a, b) for a in range(50) for b in range(50)])
    with pytest.raises(ModelError, match="6250000 pairs"):
        least_reach(grid, few(np.random.default_rng(1), 2500), grid, few(np.random.default_rng(2), 2500))
    with pytest.raises(ModelError, match="6250000 pairs"):
        unmatched(grid, [1] * 2500, grid, [1] * 2500, 1)
    assert least_reach(grid, [1] * 2500, grid + 1, [1] * 2500) == 2  # bounds meet: no flow is needed
