"""Pairs of paths against all of them tried, and places against each of them looked at."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from propagation_oracle import Array
from pufferfish._core.propagation.chain import ChainPropagation
from pufferfish._core.propagation.stretch import Repeated, unfolded, worst_paths, worst_place
from pufferfish._core.propagation.sweep import Run, Segment
from stretch_oracle import worst_pair


def unlike(k: int) -> Array:
    return 1 - np.eye(k)


def random_bounds(rng: np.random.Generator, phases: int, k: int, most: float) -> Array:
    return rng.uniform(0, most, (phases, k, k)) * unlike(k)


def as_runs(own: Array) -> list[Run]:
    return [Run(len(list(group)), np.array(loss)) for loss, group in itertools.groupby(own.tolist())]


@pytest.mark.grid(keep=6)
@pytest.mark.parametrize("seed", range(6))
def test_the_worst_pair_of_all_paths(seed: int) -> None:
    rng, none = np.random.default_rng(seed), 0
    for _ in range(60):
        k, phases = int(rng.integers(2, 4)), int(rng.choice([1, 1, 2, 3]))
        records = int(rng.integers(1, 6 if k == 2 else 5))
        possible = rng.random((phases, k, k)) < rng.choice([0.4, 0.7, 1.0])
        possible[~possible.any(axis=2)] = np.eye(k, dtype=bool)[0]  # every state leads somewhere
        states = rng.random((phases, k)) < rng.choice([0.6, 1.0])
        if rng.random() < 0.4:  # one certain state, by phase: paths part later on
            states = np.eye(k, dtype=bool)[rng.integers(k, size=phases)]
        own = random_bounds(rng, records, k, 1.0) * rng.choice([0, 1], size=(records, 1, 1))
        if rng.random() < 0.5:
            own = np.repeat(own[:1], records, axis=0)
        past, future = random_bounds(rng, phases, k, 1.5), random_bounds(rng, phases, k, 1.5)
        step = float(rng.choice([0.0, 0.3]))
        near = rng.random((k, k)) < rng.choice([0.6, 1.0])
        near = near | near.T | np.eye(k, dtype=bool)
        expected = worst_pair(past, own, future, states, possible, step, near)
        cycle = phases > 1
        arrays = [a if cycle else a[0] for a in (past, future, states, possible)]
        found = worst_paths(arrays[0], as_runs(own), arrays[1], arrays[2], arrays[3], step=step, near=near)
        if expected is None:
            none += 1
            assert found is None
            continue
        assert found is not None
        assert found.total == pytest.approx(expected, abs=1e-13)
        assert found.total >= expected * (1 - 1e-15)
        assert found.past + found.own + found.future == pytest.approx(found.total, abs=1e-12)
        # the witness: paths that begin and end as it says reach the same sum
        phase = found.phase or 0
        end = (phase + records - 1) % phases
        begins, ends = np.zeros_like(past), np.full_like(future, 0.0)
        begins[phase][found.first] = ends[end][found.last] = 100.0
        again = worst_pair(past + begins, own, future + ends, states, possible, step, near)
        extra = 100.0 * ((found.first[0] != found.first[1]) + (found.last[0] != found.last[1]))
        assert again is not None
        assert again >= found.total + extra - 1e-9
    assert none < 60


@pytest.mark.parametrize("records", [40, 333, 5000])
@pytest.mark.parametrize("case", ["mixing", "cyclic", "absorbing", "clock", "near", "nothing read"])
def test_long_runs_are_what_their_records_are_one_by_one(case: str, records: int) -> None:
    """What grows by the same number again and again is multiplied: a run and many runs of one record are equal."""
    rng = np.random.default_rng(7)
    k, phases = 4, 3 if case == "clock" else 1
    possible = rng.random((phases, k, k)) < 0.5
    possible |= np.roll(np.eye(k, dtype=bool), 1, axis=1)
    if case == "cyclic":
        possible[:] = np.roll(np.eye(k, dtype=bool), 1, axis=1)
    if case == "absorbing":
        possible[:] = np.triu(np.ones((k, k), dtype=bool))
    near = np.abs(np.subtract.outer(range(k), range(k))) <= 1 if case == "near" else None
    past, future, loss = random_bounds(rng, phases, k, 1.0), random_bounds(rng, phases, k, 1.0), rng.random((k, k))
    loss = loss * unlike(k) * (case != "nothing read")
    parts = [past, future, np.ones((phases, k), dtype=bool), possible]
    past, future, states, possible = parts if case == "clock" else [a[0] for a in parts]
    for step in (0.0, 0.2):
        at_once = worst_paths(past, [Run(records, loss)], future, states, possible, step=step, near=near)
        # losses that differ by less than a rounding are other losses: no run is longer than one record
        single = [Run(1, loss) for _ in range(records)]
        one_by_one = worst_paths(past, single, future, states, possible, step=step, near=near)
        assert at_once is not None
        assert at_once == one_by_one


def test_paths_that_part_late_and_never_go_on() -> None:
    """Sums that have grown by one number once grow no more: what was the largest came from paths that had just parted.

    Of the near pair 0 and 2 the first path leads to 1, which is not near; so every pair of paths ends one step later.
    """
    possible = np.array([[0, 1, 0], [1, 0, 1], [0, 0, 1]], dtype=bool)
    near = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]], dtype=bool)
    nothing, loss = np.zeros((3, 3)), 0.25 * unlike(3)
    for records in range(1, 40):
        one_by_one = [Run(1, loss) for _ in range(records)]
        expected = worst_paths(nothing, one_by_one, nothing, np.ones(3, bool), possible, step=0.5, near=near)
        found = worst_paths(nothing, [Run(records, loss)], nothing, np.ones(3, bool), possible, step=0.5, near=near)
        assert found == expected
        assert found is not None
        assert found.total <= 0.75


def test_what_has_no_bound_is_not_bounded() -> None:
    j, states, possible = unlike(3), np.ones(3, dtype=bool), np.ones((3, 3), dtype=bool)
    infinite = np.where(np.eye(3, dtype=bool), 0.0, np.inf)
    for bad in (infinite, infinite * np.nan):
        for past, future in ((bad, j), (j, bad)):
            found = worst_paths(past, [Run(2, j)], future, states, possible)
            assert found is not None
            assert found.total == math.inf
    huge = worst_paths(j, [Run(10**9, 1e300 * j)], j, states, possible)
    assert huge is not None
    assert huge.total == math.inf
    # a pair that cannot occur has no bound, and needs none
    absent = np.where(np.eye(3, dtype=bool), 0.0, j)
    absent[2, :2] = absent[:2, 2] = np.inf
    apart = np.array([True, True, False])
    found = worst_paths(absent, [Run(2, j)], absent, apart, np.outer(apart, apart))
    assert found is not None
    assert found.total == 4.0
    one_path = worst_paths(j, [Run(2, j)], j, np.array([True, False, False]), np.eye(3, dtype=bool))
    assert one_path is None


def test_sums_are_rounded_up() -> None:
    j, states = unlike(2), np.ones(2, dtype=bool)
    found = worst_paths(0 * j, [Run(10, 0.1 * j)], 0 * j, states, np.eye(2, dtype=bool))
    assert found is not None
    assert 1.0 <= found.total <= 1.0 + 1e-15  # ten times the double 0.1 is more than 1
    rng = np.random.default_rng(0)
    for _ in range(50):
        losses = rng.random(8) * 10.0 ** rng.integers(-25, 3, size=8)
        ends = rng.random(2) * 10.0 ** rng.integers(-25, 3, size=2)
        found = worst_paths(ends[0] * j, [Run(3, x * j) for x in losses], ends[1] * j, states, np.eye(2, dtype=bool))
        exact = sum((3 * Fraction(float(x)) for x in losses), sum(map(Fraction, ends.tolist()), Fraction(0)))
        assert found is not None
        assert exact <= Fraction(found.total) <= exact * (1 + Fraction(1, 10**14))


@pytest.mark.parametrize("seed", range(4))
def test_every_place_is_looked_at(seed: int) -> None:
    """Segments and profiles of all kinds: the bound is the largest of all places, each computed by itself."""
    rng = np.random.default_rng(seed)
    for _ in range(25):
        k, length = int(rng.integers(2, 4)), int(rng.integers(2, 40))
        records = int(rng.integers(1, length // int(rng.choice([1, 4])) + 1)) if length > 4 else 1
        kinds = rng.random((3, k, k)) * unlike(k)
        longest = int(rng.choice([3, 12, 40]))
        own = kinds[np.repeat(rng.integers(3, size=length), rng.integers(1, longest + 1, size=length))[:length]]
        possible = rng.random((k, k)) < 0.7
        possible |= np.eye(k, dtype=bool)
        cuts = [
            np.sort(rng.choice(np.arange(1, length), size=int(rng.integers(0, 6) % length), replace=False))
            for _ in "ab"
        ]
        sides = [list(itertools.pairwise([0, *(int(c) for c in cut), length])) for cut in cuts]
        past = [Segment(a + 1, b, rng.uniform(0, 2, (k, k)) * unlike(k), rng.random(k) < 0.8) for a, b in sides[0]]
        future = [Segment(a + 1, b, rng.uniform(0, 2, (k, k)) * unlike(k)) for a, b in sides[1]]
        each = []
        for place in range(1, length - records + 2):
            before = next(s for s in past if s.first <= place <= s.last)
            after = next(s for s in future if s.first <= place + records - 1 <= s.last)
            window = as_runs(own[place - 1 : place - 1 + records])
            pair = worst_paths(before.message, window, after.message, before.states, possible)
            each.append(-1.0 if pair is None else pair.total)
        found = worst_place(
            past,
            future,
            as_runs(own),
            records,
            lambda g, states, window, f, *_, possible=possible: worst_paths(g, window, f, states, possible),
            places=length - records + 1,
            ahead=records - 1,
        )
        assert found.total == pytest.approx(max(0.0, *each), rel=2e-7)
        assert found.total >= max(each)
        if found.paths is not None:
            assert each[found.first - 1] == pytest.approx(max(each), rel=3e-7)


def test_days_that_look_alike_are_looked_at_together() -> None:
    """Hundreds of days that hardly differ: the bound is not that of a search that was given up."""
    unlike_ = unlike(2)
    search = ChainPropagation(np.array([[0.95, 0.05], [0.1, 0.9]]), "stationary")
    days = [Run(22, 0.0 * unlike_), Run(6, 0.1 * unlike_)] * 140
    for records in (1, 40, 100):
        found = search.stretch([Run(30, 0.02 * unlike_), *days, Run(9, 0.3 * unlike_)], records)
        assert found.paths is not None
        assert found.total <= found.paths.total * (1 + 1e-7)


def test_cycles_that_were_left_out_hold_no_other_stretch() -> None:
    """Of a thousand days a stretch of one and a half meets three at most."""
    day = [Run(2, np.full((2, 2), 1.0)), Run(3, np.full((2, 2), 2.0))]
    runs = [Run(1, np.zeros((2, 2))), *day, Run(4, np.full((2, 2), 5.0))]
    ends = [0, *itertools.accumulate(run.steps for run in runs)]
    segments = [Segment(a + 1, b, np.full((2, 2), float(a))) for a, b in itertools.pairwise(ends)]
    records = 7
    chain = unfolded(runs, segments, segments, [Repeated(1, 3, 1000)], records)

    def per_place(runs: list[Run], segments: list[Segment]) -> list[tuple[float, float]]:
        losses = [float(run.loss[0, 0]) for run in runs for _ in range(run.steps)]
        return [
            (losses[s.first - 1 + i], float(s.message[0, 0])) for s in segments for i in range(s.last - s.first + 1)
        ]

    kept = per_place(chain.runs, chain.past)
    assert [s.first for s in chain.past[1:]] == [s.last + 1 for s in chain.past[:-1]]
    whole = per_place(runs, segments)
    whole = [whole[0], *whole[1:6] * 1000, *whole[6:]]
    assert len(kept) == 1 + 5 * 4 + 4

    def stretches(places: list[tuple[float, float]]) -> list[tuple[tuple[float, float], ...]]:
        return [tuple(places[i : i + records]) for i in range(len(places) - records + 1)]

    assert set(stretches(kept)) == set(stretches(whole))
    for i, stretch in enumerate(stretches(kept)):
        assert stretches(whole)[chain.place(i + 1, records) - 1] == stretch
