"""What certificates prove beside what the engine proves, on random short chains of every kind: never less.

And what one step back under any first law asks, beside what mixtures of two first laws tell: never less, in both
checkers.
"""

import itertools
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pufferfish as pf
from certificate_files import SCRIPT, in_node
from pufferfish.errors import PufferfishError
from pufferfish.release import certificate
from pufferfish.release.checker import check as checker, check_more as more

Array = NDArray[np.float64]


def laws(rng: np.random.Generator, rows: int, k: int) -> Array:
    """Rows of probabilities, a quarter of them 0."""
    found = rng.dirichlet(np.full(k, 0.6), rows) * (rng.random((rows, k)) > 0.25)
    found[found.sum(axis=1) == 0, rng.integers(k)] = 1
    return found / found.sum(axis=1, keepdims=True)


def member(rng: np.random.Generator, start: str | None) -> Any:
    k, kind = int(rng.integers(2, 4)), int(rng.integers(4))
    if kind == 0:
        return pf.MarkovChain(laws(rng, k, k), start or laws(rng, 1, k)[0])
    if kind == 1:
        first = start or laws(rng, 1, k * k)[0].reshape(k, k)
        return pf.HigherOrderChain(laws(rng, k * k, k).reshape(k, k, k), first)
    if kind == 2:
        stays = [[(0.7, 0.4), (0.3, 0.9)], [(1.0, float(rng.random()))]]
        return pf.StaysChain([[0, 1], [1, 0]], stays, start or laws(rng, 1, 3)[0])
    return pf.PeriodicChain(np.array([laws(rng, k, k), laws(rng, k, k)]), start or laws(rng, 1, k)[0])


@pytest.mark.parametrize("start", ["stationary", "any", None])
@pytest.mark.parametrize("seed", range(6))
def test_no_less_than_the_engine(start: str | None, seed: int, slow: bool) -> None:
    """Both are bounds of the same recursion, and the checker's flows are not cheaper than the cheapest.

    Under any first law each cuts what lies between two laws into parts of its own: where the checker's are finer it
    proves a little less.
    """
    rng, compared = np.random.default_rng(seed), 0
    for _ in range(60 if slow else 15):
        query = [pf.Histogram(), pf.Count("0"), pf.Transitions()][int(rng.integers(3))]
        try:
            theta = member(rng, start)
            noise = pf.LeakagePropagation(theta, int(rng.integers(1, 7))).calibrate(query, 1.0)
            claim = certificate.claim_of(certificate.record_of_noise(noise))
            claim.epsilon = checker.Fraction(1, 10**9)  # so that the sum of all losses is no proof
            proof, leakage = certificate.proved(claim)
        except PufferfishError:
            continue
        if not np.isfinite(leakage):
            continue
        compared += 1
        assert leakage >= noise.prove_leakage() * (1 - (1e-3 if start == "any" else 1e-5))
        for share, proves in ((1 + 1e-9, True), (1 - 1e-5, False)):
            claim.limit = checker.exp(checker.Fraction(leakage * share), False)
            try:
                checker.prove(claim, {"digits": claim.digits, "members": proof})
            except checker.NotProved:
                assert not proves
            else:
                assert proves
    assert compared


def test_clocks_of_three_phases_are_no_less_than_the_engine() -> None:
    """With two phases a bound of the wrong phase may be the right one: i + j and i - j are the same.

    The first clock tells two states apart by the step to its second phase, and by the step from it, and by no other.
    """
    rng, even = np.random.default_rng(7), np.full((3, 3), 1 / 3)
    clocks = [[np.full((3, 3), 0.1) + 0.7 * np.eye(3), [[0.1, 0.1, 0.8], *[[0.45, 0.45, 0.1]] * 2], even]]
    clocks += [[0.2 * even + 0.8 * laws(rng, 3, 3) for _ in range(3)] for _ in range(4)]
    for start, matrices in itertools.product(("stationary", "any"), clocks):
        theta = pf.PeriodicChain(matrices, start)
        noise = pf.LeakagePropagation(theta, 30).calibrate(pf.Histogram(), 1.0, within=[(0, 1)])
        claim = certificate.claim_of(certificate.record_of_noise(noise))
        claim.epsilon = checker.Fraction(1, 10**9)  # so that the sum of all losses is no proof
        assert certificate.proved(claim)[1] >= noise.prove_leakage() * (1 - 1e-3)


def alike(rng: np.random.Generator, k: int) -> Array:
    """Rows that last, or have zeros, or are nearly equal, or lead to the first state only, but for one."""
    found = laws(rng, k, k)
    near = rng.dirichlet(np.ones(k)) * (1 + 0.02 * rng.random((k, k)))
    star = np.vstack([found[:1], np.eye(k)[[0] * (k - 1)]])
    lasting = 0.9 * np.eye(k) + 0.1 * found
    return [found, lasting, near / near.sum(axis=1, keepdims=True), star][int(rng.integers(4))]


@dataclass(frozen=True)
class Back:
    """A step back under any first law: rows of P in nine digits, the age of the record before, and R in nine digits."""

    rows: list[list[str]]
    age: int
    bound: list[list[int]]
    told: dict[tuple[int, int], float]
    """Of two states of the record: what mixtures of two first laws tell of them, for some functions in the cone."""


SHARES = 1 / (1 + np.exp(-np.linspace(-12, 12, 97)))


def step_back(rng: np.random.Generator) -> Back:
    k, age = int(rng.integers(2, 4)), int(rng.integers(4))
    rows = [[f"{p:.9f}" for p in row] for row in alike(rng, k)]
    kernel = np.array(rows, dtype=np.float64)
    kernel /= kernel.sum(axis=1, keepdims=True)
    power = np.linalg.matrix_power(kernel, age)
    loss = rng.choice([0.0, 0.1, 1.0, 3.0]) * rng.random((k, k)) * (1 - np.eye(k))
    bound = np.floor(np.exp((loss[:, :, None] + loss).min(axis=1)) * 10**9)  # no way over a third state is shorter
    alive = power.any(axis=0)
    # u(y) = min over z of R(y, z) v(z) is in the cone of those that live, whatever v is
    u = (bound[alive][:, alive] / 10**9 * np.exp(rng.uniform(-6, 6, (400, 1, int(alive.sum()))))).min(axis=2)
    told = dict[tuple[int, int], float]()
    for x, x_ in itertools.permutations(np.flatnonzero((power @ kernel).any(axis=0)).tolist(), 2):
        worst = 1.0
        for w, w_ in itertools.combinations(power, 2):
            law = SHARES[:, None] * w + (1 - SHARES)[:, None] * w_
            of, of_ = law * kernel[:, x], law * kernel[:, x_]
            some = (of.sum(axis=1) > 0) & (of_.sum(axis=1) > 0)
            mean, mean_ = (part[some][:, alive] @ u.T / part[some].sum(axis=1, keepdims=True) for part in (of, of_))
            worst = max(worst, float((mean / mean_).max(initial=1.0)))
        told[x, x_] = worst
    return Back(rows, age, bound.astype(int).tolist(), told)


def holds_in_python(step: Back, x: int, x_: int, factors: list[int]) -> list[bool]:
    kernel = more.probabilities([[Fraction(p) for p in row] for row in step.rows])
    power = more.identity(len(kernel[0]))
    for _ in range(step.age):
        power = more.times(power, kernel)
    pairs = list(itertools.permutations(more.living(more.times(power, kernel)[0]), 2))
    of_any_law = more.StepOfAnyLaw(kernel, more.living(power[0]), pairs, power)
    bound = [[n * 10**9 for n in row] for row in step.bound]
    return [of_any_law.holds(x, x_, factor, bound, of_any_law.moves(bound)) for factor in factors]


IN_NODE = """
const source = require("fs").readFileSync(%s, "utf8").replace("return { check };",
  "return { numberOf, tableOf, identity, product, ofAnyLaw, movesOf, holdsForAnyLaw };");
const of = new Function(source + "; return pufferfish")();
const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(cases.map(([rows, age, bound, x, other, factors]) => {
  const kernel = of.tableOf(rows.map((row) => row.map(of.numberOf)));
  let power = of.identity(rows.length);
  for (let n = 0; n < age; n++) power = of.product(power, kernel);
  const step = of.ofAnyLaw(power, kernel);
  const moves = of.movesOf(bound.map((row) => row.map((n) => BigInt(n) * 10n ** 21n)));
  return factors.map((factor) => of.holdsForAnyLaw(step, moves, BigInt(factor) * 10n ** 12n, x, other));
})));
"""


@pytest.mark.parametrize("checker_of", ["Python", "JavaScript"])
def test_a_step_back_under_any_first_law_pays_all(checker_of: str) -> None:
    """No less is accepted than what mixtures of two first laws tell, or than 1; what is enough is not much more."""
    rng, cases = np.random.default_rng(3), list[tuple[Back, int, int, list[int]]]()
    for step in (step_back(rng) for _ in range(80)):
        for (x, x_), told in step.told.items():
            factors = [0.6, told * (1 - 1e-6), *(told * 2.0**n * (1 + 1e-9) for n in range(40))]
            cases.append((step, x, x_, [int(factor * checker.ONE) for factor in factors]))
    assert len(cases) > 100
    if checker_of == "Python":
        answers = [holds_in_python(*case) for case in cases]
    else:
        given = [(step.rows, step.age, step.bound, x, x_, list(map(str, factors))) for step, x, x_, factors in cases]
        answers = in_node(IN_NODE % json.dumps(str(SCRIPT)), given)
        if answers is None:
            pytest.skip("JavaScript runs in Node: apt-get install nodejs")
    enough = list[int]()
    for (step, x, x_, _), (below_one, too_little, *more_and_more) in zip(cases, answers, strict=True):
        assert not below_one, (step, x, x_)
        assert not too_little, (step, x, x_)
        enough.append(more_and_more.index(True))
    assert np.mean(np.array(enough) == 0) > 0.3, enough
