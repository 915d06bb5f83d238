"""Ledgers of tables that grow against brute force: random schedules of releases, what each subject's steps really lose.

What is charged where is kept here by single rows, in sets; the package knows runs of steps and groups of subjects.
"""

import datetime as dt
import itertools
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from propagation_oracle import Array, chain_law, losses_per_pair, supremum, supremum_of_steps
from pufferfish.errors import BudgetExceeded, ReleaseRefused
from stretch_oracle import law_of_tuples

STATES = ["a", "b"]
BEGIN = dt.datetime(2024, 3, 1, 5, tzinfo=dt.UTC)
READING = {"state": "state", "subject": "who", "time": "at", "max_gap": "1h", "step": "1h"}
Rows = set[tuple[str, int]]


def table(rows: Rows) -> pl.DataFrame:
    """Rows of subjects at hours; what their states are decides nothing."""
    held = [(who, BEGIN + dt.timedelta(hours=hour), STATES[hour % 2]) for who, hour in sorted(rows)]
    return pl.DataFrame(held, schema=["who", "at", "state"], orient="row")


BASE = pf.read_sequences(table({("x", 0), ("x", 1)}), **READING).base


def matrix(rng: np.random.Generator) -> Array:
    """A random matrix, sticky or with a zero now and then."""
    stays = rng.choice([0.5, 0.8, 0.97, 0.0], size=2, p=[0.3, 0.3, 0.3, 0.1])
    return np.array([[stays[0], 1 - stays[0]], [1 - stays[1], stays[1]]])


def stationary(p: Array) -> Array:
    first = np.array([p[1, 0], p[0, 1]])
    return first / first.sum()


def models(rng: np.random.Generator, kind: str, hours: int) -> tuple[object, list[Array]]:
    """A class Θ, and the laws of so many hours that a subject's series can have under it: many, not all."""
    p = matrix(rng)
    if kind == "list":
        other = matrix(rng)
        chains = [pf.MarkovChain(each, states=STATES) for each in (p, other)]
        return chains, [chain_law(stationary(each), each, hours) for each in (p, other)]
    if kind == "any":
        laws = [chain_law(first, p, hours) for first in (np.array([1.0, 0.0]), np.array([0.3, 0.7]))]
        return pf.MarkovChain(p, "any", states=STATES), laws
    if kind == "interval":  # every matrix from one hour to the next is another one
        low, high = np.clip(p - 0.1, 0.02, 0.98), np.clip(p + 0.1, 0.02, 0.98)
        law = np.array([0.9, 0.1])
        for _ in range(hours - 1):
            stays = rng.uniform([low[0, 0], low[1, 1]], [high[0, 0], high[1, 1]])
            law = law[..., None] * np.array([[stays[0], 1 - stays[0]], [1 - stays[1], stays[1]]])
        return pf.IntervalChain(low, high, states=STATES), [law]
    if kind == "order any":
        tensor = np.array([matrix(rng), matrix(rng)]) * 0.8 + 0.1
        theta = pf.HigherOrderChain(tensor, "any", states=STATES)
        return theta, [
            law_of_tuples(np.array(first), tensor, hours) for first in ([[0, 1], [0, 0]], [[0.1, 0.2], [0.3, 0.4]])
        ]
    if kind == "order":
        tensor = np.array([matrix(rng), matrix(rng)]) * 0.8 + 0.1
        pairs = np.full((2, 2), 0.25)
        for _ in range(5000):
            pairs = np.einsum("ab,abc->bc", pairs, tensor)
        return pf.HigherOrderChain(tensor, states=STATES), [law_of_tuples(pairs, tensor, hours)]
    if kind == "clock":
        by_hour = [0.9 * matrix(rng) + 0.05 for _ in range(2)] * 12
        first = np.array([0.5, 0.5])
        for _ in range(500):
            for each in by_hour:
                first = first @ each
        laws = []
        for begins in range(2):
            law = first if begins == 0 else first @ by_hour[0]
            for hour in range(hours - 1):
                law = law[..., None] * by_hour[(begins + hour) % 24]
            laws.append(law)
        return pf.PeriodicChain(by_hour, clock="hour", step="1h", states=STATES), laws
    if kind == "forgetting":  # of two chains that forget as soon as the class says
        slow, fast = np.array([[0.6, 0.4], [0.3, 0.7]]), np.array([[0.5, 0.5], [0.4, 0.6]])
        theta = pf.ForgettingClass(steps=1, overlap=0.7, states=STATES)
        return theta, [chain_law(stationary(each), each, hours) for each in (slow, fast)]
    return pf.MarkovChain(p, states=STATES), [chain_law(stationary(p), p, hours)]


@dataclass
class ByRow:
    """What every row of everybody loses by what was charged, kept row by row."""

    plans: list[tuple[float, float]] = field(default_factory=list)
    covered: list[Rows] = field(default_factory=list)
    records: Counter[tuple[str, int]] = field(default_factory=Counter)
    steps: Counter[tuple[str, int]] = field(default_factory=Counter)

    def plan(self, record: float, step: float) -> None:
        self.plans.append((record, step))
        self.covered.append(set())

    def charge(self, rows: Rows, record: float, step: float, *, planned: bool = False) -> None:
        left = set(rows)
        for covered in self.covered if planned else ():
            new = left - covered
            covered |= new
            left -= new
        for row in left:
            self.records[row] += record
            self.steps[row] += step

    def truth(self, laws: list[Array], hours: int) -> float:
        """The largest leakage about any record of anybody, every step of the plan taken."""
        cap, cap_step = (sum(part) for part in zip(*self.plans, strict=True)) if self.plans else (0.0, 0.0)
        worst = 0.0
        for who in {who for who, _ in self.records} | {"nobody"}:
            losses = losses_per_pair([cap + self.records[who, hour] for hour in range(hours)], hours, 2)
            step = cap_step + max((self.steps[who, hour] for hour in range(hours)), default=0.0)
            for law in laws:
                worst = max(worst, supremum_of_steps(law, losses, step) if step else supremum(law, losses))
        return worst


def spend(ledger: pf.Ledger, by_row: ByRow, rng: np.random.Generator, rows: Rows, chosen: str) -> None:
    """Release something of some rows, and charge it here too."""
    data = ledger.read(table(rows))
    as_planned = False
    if chosen == "transitions" and len(rows) > len({who for who, _ in rows}):
        noise = pf.LeakagePropagation(ledger.bound.theta, data.length).calibrate(pf.Transitions(), 2.0)
        ledger.spend(noise, data=data)
        loss = 0.0, 2 / noise.unit_scale
    elif chosen == "planned" and (planned := ledger.planned):
        ledger.spend(ledger.as_planned(pf.Count("a"), data), data=data)
        loss, as_planned = (1 / planned[0].unit_scale, 0.0), True
    else:
        size = float(rng.choice([0.1, 0.3, 1.0]))
        ledger.spend(size, data=data)
        loss = size, 0.0
    by_row.charge(rows, *loss, planned=as_planned)


KINDS = ["chain", "any", "list", "order", "order any", "clock", "interval", "forgetting"]


@pytest.mark.grid(keep=8)
@pytest.mark.parametrize(("kind", "seed"), list(itertools.product(KINDS, range(60))))
def test_random_schedules_leak_at_most_what_is_spent(kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    hours = int(rng.integers(3, 6))
    theta, laws = models(rng, kind, hours)
    ledger = pf.Ledger(pf.LeakagePropagation(theta, 2), 1e30, base=BASE, grows=True)
    by_row, plans = ByRow(), kind != "forgetting" and rng.random() < 0.6
    if plans:
        with suppress(ReleaseRefused):  # of habits that are never forgotten no noise hides an endless series
            for made in ledger.plan([pf.Count("a")], up_to=float(rng.choice([0.5, 2.0]))):
                by_row.plan(1 / made.unit_scale, 0.0)
    for _ in range(int(rng.integers(1, 5))):
        first, last = sorted(int(hour) for hour in rng.integers(0, hours, size=2))
        who = [name for name in "xyz" if rng.random() < 0.5] or ["x"]
        rows = {(name, hour) for name in who for hour in range(first, last + 1) if rng.random() < 0.8}
        if rows:
            kinds = ["loss", "planned", "transitions"]
            spend(ledger, by_row, rng, rows, str(rng.choice(kinds)))
    true = by_row.truth(laws, hours)
    assert true <= ledger.spent * (1 + 1e-9) + 1e-12, (kind, seed, true, ledger.spent)


@pytest.mark.parametrize("seed", [0, 5, 20])
def test_a_series_may_begin_where_it_is_read(seed: int) -> None:
    """Under every initial law: what began long ago has nearly the stationary law, and leaks up to a fifth less."""
    test_random_schedules_leak_at_most_what_is_spent("any", seed)


def whole_series(theta: object, by_row: ByRow, who: str, hours: int, beside: int) -> float:
    """What a sweep over the whole series of one subject proves, long before and after what was read."""
    cap = sum(record for record, _ in by_row.plans)
    stretches = [(beside, cap), *((1, cap + by_row.records[who, hour]) for hour in range(hours)), (beside, cap)]
    bound = pf.LeakagePropagation(theta, hours + 2 * beside, protect=1)
    return bound.leakage(pf.Profile(stretches))


@pytest.mark.slow
@pytest.mark.grid(keep=2)
@pytest.mark.parametrize("seed", range(40))
def test_long_schedules_cost_what_a_sweep_over_all_of_it_says_in_every_order(seed: int) -> None:
    """Adjacent, overlapping and distant exceptions, about one every 12 hours, above a plan or without one."""
    rng, hours = np.random.default_rng(seed), 400
    theta = pf.MarkovChain(matrix(rng) * 0.9 + 0.05, states=STATES)
    charges = [
        (int(at), int(rng.integers(1, 5)), float(rng.choice([0.05, 0.2, 0.6]))) for at in rng.integers(0, 390, 33)
    ]
    spent = []
    for order in (charges, charges[::-1], [charges[i] for i in rng.permutation(len(charges))]):
        ledger, by_row = pf.Ledger(pf.LeakagePropagation(theta, 2), 1e6, base=BASE, grows=True), ByRow()
        if seed % 2:
            for made in ledger.plan([pf.Count("a")], up_to=0.5):
                by_row.plan(1 / made.unit_scale, 0.0)
        for at, many, loss in order:
            rows = {("x", hour) for hour in range(at, at + many)}
            ledger.spend(loss * (1 + seed % 2), data=ledger.read(table(rows)))
            by_row.charge(rows, loss * (1 + seed % 2), 0.0)
        spent.append(ledger.spent)
        by_sweep = whole_series(theta, by_row, "x", hours, 1500)
        assert by_sweep * (1 - 1e-9) <= ledger.spent <= by_sweep * (1 + 1e-6)
    assert max(spent) - min(spent) <= 1e-8 * max(spent)


@pytest.mark.parametrize("stay", [0.99, 0.997, 0.999])
def test_weekly_releases_at_the_plans_noise_never_leak_more_than_it_says(stay: float) -> None:
    """The noise that one year alone would need leaks more in ten: 1.02, 1.40, 2.54."""
    chain, query = pf.MarkovChain([[stay, 1 - stay], [1 - stay, stay]], states=STATES), pf.Count("a")
    ledger = pf.Ledger(pf.LeakagePropagation(chain, 2), 1.0, base=BASE, grows=True)
    (plan,) = ledger.plan([query])
    for weeks in (1, 52, 520, 5200):
        assert pf.LeakagePropagation(chain, 7 * weeks).leakage(1 / plan.unit_scale) <= 1.0
    year = pf.LeakagePropagation(chain, 365).calibrate(query, 1.0)
    ten_years = pf.LeakagePropagation(chain, 3650).leakage(1 / year.unit_scale)
    assert ten_years == pytest.approx({0.99: 1.02, 0.997: 1.40, 0.999: 2.54}[stay], abs=0.006)
    assert plan.unit_scale > year.unit_scale


def test_golden_numbers_of_a_cap_and_exceptions() -> None:
    """Three records at .6 where the cap is .1; what a neighbour adds; what the record before them leaks."""
    chain = pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=STATES)

    def spent(*stretches: tuple[int, int]) -> float:
        ledger = pf.Ledger(pf.LeakagePropagation(chain, 2), 10.0, base=BASE, grows=True)
        one = pf.LeakagePropagation(chain, 2**59).leakage(0.1)
        (plan,) = ledger.plan([pf.Count("a")], up_to=one)
        assert plan.unit_scale == pytest.approx(10, rel=1e-5)
        for first, last in stretches:
            ledger.spend(0.5, data=ledger.read(table({("x", hour) for hour in range(first, last)})))
        return ledger.spent

    assert spent((0, 3)) == pytest.approx(1.79590, abs=2e-5)
    assert spent((0, 3), (3, 6)) == spent((3, 6), (0, 3)) == pytest.approx(2.4343, abs=2e-4)
    assert spent((0, 3), (4000, 4003)) == pytest.approx(1.79590, abs=2e-5)


def test_a_week_alone_is_no_price_for_ever() -> None:
    chain = pf.MarkovChain([[0.99, 0.01], [0.01, 0.99]], states=STATES)
    alone = pf.LeakagePropagation(chain, 7).calibrate(pf.Count("a"), 1.0)
    assert alone.unit_scale == pytest.approx(6.758, abs=1e-3)
    assert pf.LeakagePropagation(chain, 7 * 52).leakage(1 / alone.unit_scale) == pytest.approx(5.38, abs=0.01)
    ledger = pf.Ledger(pf.LeakagePropagation(chain, 2), 1.0, base=BASE, grows=True)
    (plan,) = ledger.plan([pf.Count("a")])
    assert plan.unit_scale == pytest.approx(94.99, abs=0.01)


def test_many_different_courses_cost_at_least_what_the_worst_of_them_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are computed one by one: then one course that reads as much as any of them stands for all."""
    chain = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], states=STATES)

    def spent() -> float:
        ledger = pf.Ledger(pf.LeakagePropagation(chain, 2), 1e6, base=BASE, grows=True)
        draws = np.random.default_rng(5)
        for _ in range(12):
            rows = {(f"p{int(who)}", int(at)) for who, at in draws.integers(0, 14, size=(9, 2))}
            ledger.spend(0.2, data=ledger.read(table(rows)))
        return ledger.spent

    each = spent()
    monkeypatch.setattr("pufferfish.ledger._series_charges._MOST_CLASSES", 2)
    together = spent()
    assert each <= together


def test_a_release_that_does_not_fit_spends_nothing() -> None:
    chain = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], states=STATES)
    ledger = pf.Ledger(pf.LeakagePropagation(chain, 2), 1.0, base=BASE, grows=True)
    ledger.plan([pf.Count("a")])
    data = ledger.read(table({("x", 0), ("x", 1)}), pf.Count("a"))
    ledger.spend(ledger.as_planned(pf.Count("a"), data), data=data)
    before = ledger.entries
    with pytest.raises(ReleaseRefused, match="written after this table was read"):
        ledger.spend(ledger.as_planned(pf.Count("a"), data), data=data)
    data = ledger.read(table({("x", 0), ("x", 1)}), pf.Count("a"), again=True)
    with pytest.raises(BudgetExceeded):
        ledger.spend(ledger.as_planned(pf.Count("a"), data), data=data)
    assert ledger.entries == before
