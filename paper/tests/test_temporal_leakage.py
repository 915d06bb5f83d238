"""Temporal privacy leakage against its definition, and against propagation where they must agree."""

from itertools import pairwise, product

import numpy as np
import pytest

import pufferfish as pf
from paper.experiments.other_bounds import bayesian_epsilon
from paper.experiments.temporal_leakage import Step, record_epsilon, temporal_leakage
from pufferfish.errors import NotApplicableError


def matrices(rng: np.random.Generator) -> list[np.ndarray]:
    with_zeros = np.array([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]])
    return [with_zeros, *(rng.dirichlet([0.5] * k, k) for k in (2, 3, 4, 5) for _ in range(3))]


def test_a_step_is_the_worst_ratio_of_all_sets() -> None:
    rng = np.random.default_rng(5)
    for matrix in matrices(rng):
        step = Step.of(matrix)
        for alpha in (0.01, 0.7, 4.0):
            values = [np.where(np.array(bits), np.exp(alpha), 1.0) for bits in product((0, 1), repeat=len(matrix))]
            worst = max(np.log((p @ v) / (q @ v)) for p in matrix for q in matrix for v in values)
            assert step(alpha) == pytest.approx(worst, rel=1e-9)


def test_leakage_is_the_worst_record_of_all_releases_together() -> None:
    """Every record by itself is released by randomised response; every sequence of records and outputs is listed."""
    rng = np.random.default_rng(6)
    epsilon, length = 0.6, 4
    for matrix in (np.array([[0.9, 0.1], [0.4, 0.6]]), *(rng.dirichlet([1, 1], 2) for _ in range(4))):
        chain = pf.MarkovChain(matrix)
        steps = Step.of(chain.time_reversal.transition_matrix), Step.of(chain.transition_matrix)
        tell = np.array([[np.exp(epsilon), 1], [1, np.exp(epsilon)]]) / (1 + np.exp(epsilon))
        sequences = list(product((0, 1), repeat=length))
        law = [chain.stationary_distribution[x[0]] * np.prod([matrix[a, b] for a, b in pairwise(x)]) for x in sequences]
        worst = 0.0
        for output in sequences:
            joint = [
                p * np.prod([tell[a, w] for a, w in zip(x, output, strict=True)])
                for x, p in zip(sequences, law, strict=True)
            ]
            for t in range(length):
                told = [
                    sum(j for x, j in zip(sequences, joint, strict=True) if x[t] == a)
                    / sum(p for x, p in zip(sequences, law, strict=True) if x[t] == a)
                    for a in (0, 1)
                ]
                worst = max(worst, abs(float(np.log(told[0] / told[1]))))
        bound = temporal_leakage(*steps, epsilon, length)
        assert worst <= bound * (1 + 1e-9)
        if matrix[0, 0] >= matrix[1, 0]:  # the same output points the same way everywhere
            assert bound == pytest.approx(worst, rel=1e-9)


def test_of_two_states_that_stay_it_is_leakage_propagation_and_of_more_no_less() -> None:
    two = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    three = pf.MarkovChain([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]])
    for chain, least in ((two, 1.0), (three, 1.1)):
        past, future = (Step.of(each.transition_matrix) for each in (chain.time_reversal, chain))
        ours = pf.LeakagePropagation(chain, 50)
        assert temporal_leakage(past, future, 0.3, 50) >= least * ours.leakage(0.3) * (1 - 1e-9)
        allowed = record_epsilon(lambda r, p=past, f=future: temporal_leakage(p, f, r, 50, enough=1.0), 1.0)
        assert allowed <= ours.record_epsilon(1.0) * (1 + 1e-6)
        if chain is two:
            assert allowed == pytest.approx(ours.record_epsilon(1.0), rel=1e-5)


def test_rows_without_a_next_state_in_common_forget_nothing() -> None:
    matrix = np.array([[0.5, 0.5, 0.0, 0.0], [0.3, 0.3, 0.4, 0.0], [0.0, 0.2, 0.4, 0.4], [0.0, 0.0, 0.1, 0.9]])
    step = Step.of(matrix)
    assert step.forgets_nothing
    assert step(0.7) == pytest.approx(0.7)
    assert temporal_leakage(step, step, 0.01, 10**6) == pytest.approx(10**4)  # as group privacy says
    assert not Step.of(np.array([[0.5, 0.5, 0.0], [0.3, 0.3, 0.4], [0.0, 0.2, 0.8]])).forgets_nothing


def test_the_bound_of_bayesian_privacy() -> None:
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    assert bayesian_epsilon(chain, 10.0) == pytest.approx(10 - 4 * np.log(9))
    with pytest.raises(NotApplicableError, match="probability 0"):
        bayesian_epsilon(pf.MarkovChain([[0.5, 0.5], [1.0, 0.0]]), 10.0)
