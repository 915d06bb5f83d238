"""Noise of many shapes keeps its promise: the true loss of all measurements together is at most ε.

Every sequence of a small chain is enumerated, and the density of the whole vector of measurements, each with its own
scale, is compared under every two values of every record. Nothing of the package is used but the noise.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import pufferfish as pf
from awkward_chains import CASES
from enumeration import Enumerated
from pufferfish._core.strategies import all_trees, bins, prefixes, split, star
from pufferfish.mechanisms import InfluenceBound
from pufferfish.queries.strategy import Strategy

SLACK = 1 + 1e-9
BOUNDS: tuple[type[InfluenceBound], ...] = (pf.LeakagePropagation, pf.MQMExact, pf.GroupDP)


def true_loss(truth: Enumerated, rows: NDArray[np.int64], scales: NDArray[np.float64]) -> float:
    """Loss of counts, each with discrete Laplace noise of its own scale, over all outputs, records and values."""
    atoms: dict[tuple[int, ...], int] = {}
    answers = {seq: tuple(int(v) for v in rows[:, list(seq)].sum(axis=1)) for seq in truth.law}
    for answer in answers.values():
        atoms.setdefault(answer, len(atoms))
    places = np.array(list(atoms))
    axes = [range(low, high + 1) for low, high in zip(places.min(axis=0), places.max(axis=0), strict=True)]
    outputs = np.array(list(itertools.product(*axes)))
    kernel = np.exp(-(np.abs(outputs[:, None, :] - places[None, :, :]) / scales).sum(axis=2))
    worst = 0.0
    for node in range(truth.length):
        masses = {x: np.zeros(len(atoms)) for x in truth.secrets(node)}
        for seq, weight in truth.law.items():
            masses[seq[node]][atoms[answers[seq]]] += weight
        logs = np.array([np.log(kernel @ (mass / mass.sum())) for mass in masses.values()])
        worst = max(worst, float((logs.max(axis=0) - logs.min(axis=0)).max()))
    return worst


def strategies(k: int, rng: np.random.Generator) -> Iterator[Strategy]:
    """Yield strategies of every kind, for histograms and cumulative distributions, sharp at random."""
    kinds = [bins(k), prefixes(k), split(k, lambda a, b: (a + b) // 2), star(k, k - 1), *all_trees(k)]
    for rows in kinds:
        for weights in (np.eye(k, dtype=np.int64), prefixes(k)):
            yield Strategy(weights, rows, rng.integers(1, 12, len(rows)))


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_every_strategy_keeps_its_promise(epsilon: float, slow: bool) -> None:
    rng = np.random.default_rng(int(10 * epsilon))
    tight = 0.0
    for case in CASES:
        k, length = case.transition.shape[0], min(case.length, 4)
        truth = Enumerated.of(list(case.initial), case.transition, length)
        if k > 3 or all(len(truth.secrets(node)) < 2 for node in range(length)):
            continue
        found = list(strategies(k, rng))
        for strategy in [found[i] for i in rng.choice(len(found), 3 if slow else 2, replace=False)]:
            query = pf.Histogram() if len(strategy.weights) == k else pf.CDF()
            if len(strategy.weights) == 1:
                query = pf.CDF()
            bound = BOUNDS[int(rng.integers(len(BOUNDS)))](pf.MarkovChain(case.transition, case.initial), length)
            try:
                noise = bound.calibrate_strategy(query, strategy, epsilon)
            except pf.NotApplicableError:  # no noise is needed, or none is enough
                continue
            loss = true_loss(truth, strategy.rows, strategy.scales(noise.unit_scale))
            assert loss <= epsilon * SLACK, (case.name, bound.name, strategy.rows.tolist(), strategy.sharpness)
            assert bound.leakage(noise.record_loss) <= epsilon * SLACK
            tight = max(tight, loss / epsilon)
    assert tight > 0.9  # noise that is much too large would pass anything


@pytest.mark.parametrize("query", [pf.Histogram(relative=False), pf.CDF(), pf.Quantiles([0.5])], ids=lambda q: q.kind)
def test_the_best_noise_keeps_its_promise_and_errs_less(query: pf.queries.Query) -> None:
    rng = np.random.default_rng(5)
    gained = broken = 0
    for k in (2, 3, 3):
        p = rng.dirichlet(np.full(k, 0.7), k)
        start = rng.dirichlet(np.ones(k))
        truth = Enumerated.of(list(start), p, 4)
        bound = pf.LeakagePropagation(pf.MarkovChain(p, start), 4)
        noise, equal = (bound.calibrate(query, 1.0, noise=shape) for shape in ("best", "equal"))
        assert noise.expected_l1_error <= equal.expected_l1_error
        if noise.strategy is None:
            continue
        scales = noise.strategy.scales(noise.unit_scale)
        gained += noise.expected_l1_error < 0.95 * equal.expected_l1_error
        assert true_loss(truth, noise.strategy.rows, scales) <= 1.0 * SLACK
        broken += true_loss(truth, noise.strategy.rows, scales / 1.3) > 1.0  # control: sharper noise is not enough
    assert gained
    assert broken


def test_answers_follow_from_measurements_whatever_the_database() -> None:
    rng = np.random.default_rng(0)
    for k in (2, 3, 4):
        for strategy in strategies(k, rng):
            for counts in itertools.product(range(3), repeat=k):
                measured = (strategy.rows @ counts).tolist()
                assert strategy.answers(measured, sum(counts)) == (strategy.weights @ counts).tolist()


def test_the_loss_of_a_strategy_is_what_one_record_moves_over_its_scales() -> None:
    rng = np.random.default_rng(1)
    for strategy in strategies(4, rng):
        scales = strategy.scales(7.0)
        for x, x_ in itertools.permutations(range(4), 2):
            moved = np.abs(strategy.rows[:, x] - strategy.rows[:, x_])
            assert strategy.distance[x, x_] / 7.0 == pytest.approx(float(np.sum(moved / scales)), rel=1e-12)
