"""The loss that a release by groups really has, by enumeration of all sequences, never exceeds ε.

Two groups by the parity of time: every output that all groups together can have is looked at, beyond the exact values
nothing changes any more.
"""

import itertools

import numpy as np
import pytest

import pufferfish as pf
from enumeration import Enumerated, exact_stationary

LENGTH = 6
CHAINS = {
    "sticky": [[0.9, 0.1], [0.2, 0.8]],
    "weak": [[0.6, 0.4], [0.5, 0.5]],
    "turning": [[0.1, 0.9], [0.8, 0.2]],
}


def true_loss(truth, weights, scale, group_of):  # scale: one of all, or one of each row of weights
    """Largest log ratio of the probabilities of an output of all groups, given two values of a record."""
    groups = sorted(set(group_of))
    answers = {}
    for sequence, weight in truth.law.items():
        answer = tuple(
            int(sum(weights[m][x] for x, g in zip(sequence, group_of, strict=True) if g == group))
            for group in groups
            for m in range(len(weights))
        )
        answers[sequence] = (answer, float(weight))
    ends = [(min(a[i] for a, _ in answers.values()), max(a[i] for a, _ in answers.values()))
            for i in range(len(groups) * len(weights))]  # fmt: skip
    outputs = np.array(list(itertools.product(*(range(low, high + 1) for low, high in ends))))
    scales = np.tile(np.broadcast_to(scale, len(weights)), len(groups))
    law = {
        sequence: weight * np.exp(-(np.abs(outputs - np.array(answer)) / scales).sum(axis=1))
        for sequence, (answer, weight) in answers.items()
    }
    worst = 0.0
    for record in range(len(group_of)):
        given = []
        for x in range(len(weights[0])):
            of_x = [s for s in law if s[record] == x]
            given.append(sum(law[s] for s in of_x) / sum(answers[s][1] for s in of_x))
        worst = max(worst, float(np.abs(np.log(given[0] / given[1])).max()))
    return worst


@pytest.mark.parametrize("name", list(CHAINS))
def test_a_histogram_by_groups_keeps_its_promise(name: str) -> None:
    matrix = CHAINS[name]
    truth = Enumerated.of(exact_stationary(matrix), matrix, LENGTH)
    chain = pf.MarkovChain(matrix, "stationary")
    parity, alone = [t % 2 for t in range(LENGTH)], [0] * LENGTH
    for query in (pf.Histogram(), pf.Count("1"), pf.Sum([0, 3])):
        for mechanism in (pf.LeakagePropagation, pf.MQMExact):
            for epsilon in (0.5, 2.0):
                noise = mechanism(chain, LENGTH).calibrate(query, epsilon)
                weights = noise.linear.weights.tolist()
                together = true_loss(truth, weights, noise.unit_scale, alone)
                by_group = true_loss(truth, weights, noise.unit_scale, parity)
                assert by_group <= epsilon * (1 + 1e-9)
                assert together <= epsilon * (1 + 1e-9)
    less = true_loss(truth, weights, noise.unit_scale / 3, parity)  # the oracle can tell noise that is too little
    assert less > epsilon


@pytest.mark.parametrize("query", [pf.Histogram(), pf.CDF(relative=False)], ids=["histogram", "cdf"])
def test_noise_of_the_best_shape_by_groups_keeps_its_promise(query: pf.Histogram | pf.CDF, slow: bool) -> None:
    matrix = [[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.05, 0.15, 0.8]]
    truth = Enumerated.of(exact_stationary(matrix), matrix, 5)
    shaped = 0
    for mechanism, usual in ((pf.LeakagePropagation, 0.5), (pf.MQMExact, 2.0)):
        for epsilon in (0.5, 2.0) if slow else (usual,):
            noise = mechanism(pf.MarkovChain(matrix, "stationary"), 5).calibrate(query, epsilon, noise="best")
            if noise.strategy is None:
                continue
            shaped += 1
            rows, scales = noise.strategy.rows.tolist(), noise.strategy.scales(noise.unit_scale)
            for group_of in ([0, 1, 0, 1, 0], [0, 0, 1, 2, 2], [0] * 5):
                assert true_loss(truth, rows, scales, group_of) <= epsilon * (1 + 1e-9)
            assert true_loss(truth, rows, scales / 3, [0, 1, 0, 1, 0]) > epsilon  # control
            # control: records that are counted in two groups
            twice = [*rows, *rows]
            assert true_loss(truth, twice, np.tile(scales, 2), [0] * 5) > epsilon
    assert shaped
