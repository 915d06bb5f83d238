"""What all releases of a ledger tell together of stretches, against brute force over short chains.

Programs over all densities that have the losses which were charged; and the outputs of noisy counts themselves, of two
people whose rows some releases leave out.
"""

import datetime as dt
import itertools
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from awkward_chains import dyadic_law, dyadic_matrix
from enumeration import laplace_loss
from propagation_oracle import Array, chain_law, losses_per_pair, shortest_paths
from pufferfish.errors import ModelError
from stretch_oracle import supremum_of_stretch

STEP = "100s"
"""With it 5min are three steps, of which a table of promises has a row."""


def rows_of(ledger: pf.Ledger) -> dict[int, float]:
    """What the ledger says of stretches, by their steps."""
    return {promise.steps: promise.epsilon for promise in ledger.promises() if promise.steps is not None}


RELEASES = [
    [(0.4, None), (0.3, None)],
    [(0.4, None), (0.5, (1, 3))],
    [(0.6, (0, 2)), (0.6, (2, 4))],
    [(0.5, (0, 1)), (0.5, (3, 4)), (0.1, None)],  # the stretch between is read once
    [(0.5, (0, 1)), (0.7, (3, 4))],  # and here never
]


@pytest.mark.parametrize("protect", [None, 2])
@pytest.mark.parametrize("releases", RELEASES)
def test_on_two_states_every_row_is_what_the_worst_density_tells(
    releases: list[tuple[float, tuple[int, int] | None]], protect: int | None
) -> None:
    matrix, length = np.array([[0.9, 0.1], [0.2, 0.8]]), 4
    chain = pf.MarkovChain(matrix)
    law = chain_law(chain.stationary_distribution, matrix, length)
    ledger = pf.Ledger(pf.LeakagePropagation(pf.Model(theta=chain, step=STEP), length, protect=protect), 50.0)
    d = np.zeros((length, 2, 2))
    for loss, window in releases:
        ledger.spend(loss, window=window)
        begin, end = window or (0, length)
        d[begin:end] += loss * (1 - np.eye(2))
    rows = rows_of(ledger)
    assert {*rows} == {1, 3, length} | ({protect} if protect else set())
    for steps, epsilon in rows.items():
        assert epsilon == pytest.approx(supremum_of_stretch(law, d, steps), rel=1e-6), steps
    assert rows[protect or 1] == pytest.approx(ledger.spent, rel=1e-6)
    assert ledger.promises()[-1].epsilon == pytest.approx(d.max())


def test_the_rows_of_two_releases_do_not_add() -> None:
    """Two releases tell more of a record, and of three in a row, than twice what one does: just what the row says."""
    matrix, length = np.array([[0.9, 0.1], [0.4, 0.6]]), 5
    chain = pf.MarkovChain(matrix)
    law, d = chain_law(chain.stationary_distribution, matrix, length), losses_per_pair(0.2, length, 2)
    ledger = pf.Ledger(pf.LeakagePropagation(pf.Model(theta=chain, step=STEP), length), 50.0)
    ledger.spend(0.2)
    one = rows_of(ledger)
    ledger.spend(0.2)
    two = rows_of(ledger)
    assert (one[1], one[3], two[1], two[3]) == pytest.approx((0.51538, 0.80566, 1.05585, 1.62115), abs=1e-5)
    assert supremum_of_stretch(law, 2 * d, 3) == pytest.approx(two[3], rel=1e-6)
    assert two[1] > 2 * one[1]
    assert two[3] > 2 * one[3]
    assert two[length] == pytest.approx(2 * one[length])  # a whole series needs no model


def charged(rng: np.random.Generator, ledger: pf.Ledger, length: int, k: int) -> tuple[Array, float]:
    """Charge some releases, and return what their records and their steps lose together: windows, matrices, steps."""
    d, step = np.zeros((length, k, k)), 0.0
    for _ in range(int(rng.integers(2, 4))):
        kind = int(rng.integers(3))
        if kind == 2 and length > 1:
            noise = ledger.bound.calibrate(pf.Switches(), float(rng.uniform(0.3, 1.5)))
            ledger.spend(noise)
            step += 1 / noise.unit_scale
            continue
        loss = losses_per_pair(rng.uniform(0.1, 0.9, (k, k) if kind else ()), length, k)
        begin, end = sorted(rng.choice(length + 1, 2, replace=False).tolist())
        window = None if rng.random() < 0.3 else (begin, end)
        ledger.spend(loss[0], window=window)
        d[slice(*window) if window else slice(None)] += loss[0]
    return d, step


@pytest.mark.parametrize("start", ["given", "stationary", "any"])
def test_no_density_of_all_releases_tells_more(start: str, slow: bool) -> None:
    """Chains with zeros, losses of pairs of states, steps that are read, every law of the first record."""
    ratios: list[float] = []
    for seed in range(100 if slow else 8):
        rng = np.random.default_rng(seed)
        k = int(rng.choice([2, 2, 3]))
        length = int(rng.integers(2, 6 if k == 2 else 5))
        matrix, first = dyadic_matrix(rng, k, float(rng.choice([0.0, 0.3]))), dyadic_law(rng, k, 0.3)
        try:
            chain = pf.MarkovChain(matrix, first if start == "given" else start)  # type: ignore[arg-type]
            protect = int(rng.integers(2, 4)) if rng.random() < 0.5 else None
            ledger = pf.Ledger(pf.LeakagePropagation(pf.Model(theta=chain, step=STEP), length, protect=protect), 99.0)
            d, step = charged(rng, ledger, length, k)
        except (ModelError, pf.errors.NotApplicableError):
            continue
        laws = [first]
        if start != "given":
            laws = [chain.stationary_distribution] if start == "stationary" else [*rng.dirichlet(np.ones(k), size=2)]
        for steps, epsilon in rows_of(ledger).items():
            for law in laws:
                # losses of steps bind programs by all sequences: fewer pairs of paths are looked at
                true = supremum_of_stretch(chain_law(law, matrix, length), shortest_paths(d), steps, step=step, most=8)
                assert true <= epsilon + 1e-7, (seed, steps)
                ratios.append(true / epsilon if epsilon else 1.0)
    assert len(ratios) > 12
    assert sorted(ratios)[len(ratios) // 2] > 0.9


# -- Noisy counts of two people, all outputs of all releases ----------------------------------------------------------

LENGTHS = {"ann": 5, "bob": 3}
BEGIN, SCALE = dt.datetime(2024, 1, 1), 1.7
TABLE = pl.concat(
    pl.DataFrame({"id": name, "time": [BEGIN + dt.timedelta(seconds=100 * i) for i in range(n)], "state": "rest"})
    for name, n in LENGTHS.items()
)


def clock(step: int) -> str:
    return f"'{BEGIN + dt.timedelta(seconds=100 * step)}'"


PARTS: dict[str, tuple[str | None, tuple[str, ...], set[int]]] = {
    "all": (None, ("ann", "bob"), set(range(5))),
    "ann": ("id == 'ann'", ("ann",), set(range(5))),
    "bob": ("id == 'bob'", ("bob",), set(range(5))),
    "first two": (f"time < {clock(2)}", ("ann", "bob"), {0, 1}),
    "two more": (f"time >= {clock(1)} and time < {clock(3)}", ("ann", "bob"), {1, 2}),
    "but the third": (f"time < {clock(2)} or time >= {clock(3)}", ("ann", "bob"), {0, 1, 3, 4}),
}
"""Filter, whose records it keeps, and at which steps."""

TOGETHER = [
    ("all", "all"),
    ("all", "but the third"),
    ("first two", "two more", "but the third"),
    ("ann", "bob", "all"),
    ("bob", "bob", "first two"),
    ("bob", "bob"),
    ("two more", "two more"),
]


@cache
def read(part: str) -> pf.Sequences:
    reading: dict[str, Any] = {"subject": "id", "time": "time", "time_zone": "UTC", "max_gap": STEP, "step": STEP}
    return pf.read_sequences(TABLE, "state", states=["rest", "active"], where=PARTS[part][0], **reading)


def true_losses(start: Array, matrix: Array, parts: tuple[str, ...], steps: int) -> float:
    """The largest loss about two courses of so many steps in a row of either, a shorter series as a whole."""
    pairs = list(itertools.product(*(itertools.product((0, 1), repeat=n) for n in LENGTHS.values())))
    weights = np.array(
        [np.prod([start[s[0]] * np.prod([matrix[a, b] for a, b in itertools.pairwise(s)]) for s in p]) for p in pairs]
    )
    whose = {name: [pair[i] for pair in pairs] for i, name in enumerate(LENGTHS)}
    atoms = np.array(
        [
            [
                sum(whose[name][i][t] for name in PARTS[part][1] for t in PARTS[part][2] & {*range(LENGTHS[name])})
                for part in parts
            ]
            for i in range(len(pairs))
        ]
    )
    worst = 0.0
    for name, length in LENGTHS.items():
        n = min(steps, length)
        for first in range(length - n + 1):
            courses = np.array([series[first : first + n] for series in whose[name]])
            laws = [weights * np.all(courses == course, axis=1) for course in itertools.product((0, 1), repeat=n)]
            worst = max(worst, laplace_loss(atoms, [law / law.sum() for law in laws], SCALE))
    return worst


@pytest.mark.parametrize("protect", [None, 2])
def test_outputs_of_all_releases_tell_of_two_people_what_the_ledger_says_at_most(protect: int | None) -> None:
    reached: list[float] = []
    for matrix in ([[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.7, 0.3]]):
        chain = pf.MarkovChain(matrix, states=["rest", "active"])
        for parts in TOGETHER:
            ledger = pf.Ledger(
                pf.LeakagePropagation(chain, read("all").length, protect=protect), 50.0, base=read("all")
            )
            for part in parts:
                ledger.spend(1 / SCALE, data=read(part))
            rows = rows_of(ledger)
            assert {1, 3, 5} <= {*rows}  # also where only who has the shorter series was read
            for steps, epsilon in rows.items():
                true = true_losses(chain.stationary_distribution, np.array(matrix), parts, steps)
                assert true <= epsilon * (1 + 1e-9), (matrix, parts, steps)
                reached.append(true / epsilon)
    assert sum(share > 0.999 for share in reached) >= len(reached) / 3, sorted(reached)


# -- What stands in the table ----------------------------------------------------------------------------------------


KINDS: dict[str, Any] = {
    "list": [pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]]), pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], "any")],
    "clock": pf.PeriodicChain([[[0.9, 0.1], [0.2, 0.8]], [[0.8, 0.2], [0.3, 0.7]]]),
    "order 2": pf.HigherOrderChain([[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]]),
    "bounds": pf.IntervalChain([[0.85, 0.05], [0.15, 0.75]], [[0.95, 0.15], [0.25, 0.85]]),
    "stays": pf.StaysChain([[0, 1], [1, 0]], [[(0.8, 0.5), (0.2, 0.9)], [(1.0, 0.7)]]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_after_one_release_a_ledger_says_what_the_release_says(kind: str) -> None:
    bound = pf.LeakagePropagation(KINDS[kind], [60, 25])
    for asked in (bound, bound.protecting(12), pf.GroupDP(KINDS[kind], [60, 25])):
        for query in (pf.Histogram(), pf.Switches()):
            noise, ledger = asked.calibrate(query, 1.0), pf.Ledger(asked, 2.0)
            ledger.spend(noise)
            there = [(each.unit, each.steps, each.holds) for each in noise.promises()]
            assert [(each.unit, each.steps, each.holds) for each in ledger.promises()] == there
            epsilons = [promise.epsilon for promise in noise.promises()]
            assert [promise.epsilon for promise in ledger.promises()] == pytest.approx(epsilons, rel=1e-4)


def test_an_empty_ledger_promises_nothing_and_a_network_says_its_rows() -> None:
    network = pf.BayesianNetwork(
        {"u": pf.CPT(["a", "b"], [0.5, 0.5]), "v": pf.CPT(["a", "b"], [[0.9, 0.1], [0.4, 0.6]], ["u"])}
    )
    bound = pf.LeakagePropagation(network, 20)
    ledger = pf.Ledger(bound, 5.0)
    assert ledger.promises() == []
    noise = bound.calibrate(pf.Marginals(), 0.5)
    ledger.spend(noise)
    ledger.spend(noise)
    promised = {promise.unit: promise.epsilon for promise in ledger.promises()}
    assert promised["one cell of a row"] == ledger.spent
    assert promised["a whole row"] == pytest.approx(2 * {p.unit: p.epsilon for p in noise.promises()}["a whole row"])
    assert "any one record (one cell of one row)" in repr(ledger)
    of_v = pf.Ledger(pf.LeakagePropagation(network, 20, secrets=["v"]), 5.0)
    assert of_v.hides == "which of two secrets holds, namely (record v is a) or (record v is b)"
    pairs = [("a", "b\n")]
    near = pf.LeakagePropagation(pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=["a", "b\n"]), 9, within=pairs)
    assert "\n" not in repr(pf.Ledger(near, 1.0))
