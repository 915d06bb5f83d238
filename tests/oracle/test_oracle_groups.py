"""The loss that a release by groups really has, by enumeration of all sequences, never exceeds ε.

Two groups by the parity of time: every output that all groups together can have is looked at, beyond the exact values
nothing changes any more. Of steps, which are in the group of the record that they lead to, the outputs are those of all
groups as well.
"""

import itertools

import numpy as np
import pytest
from test_oracle_transitions import law_of

import pufferfish as pf
from enumeration import Enumerated, exact_stationary

LENGTH = 6
CHAINS = {
    "sticky": [[0.9, 0.1], [0.2, 0.8]],
    "weak": [[0.6, 0.4], [0.5, 0.5]],
    "turning": [[0.1, 0.9], [0.8, 0.2]],
}


def true_loss_of_steps(law, outputs, scale, group_of):
    """Largest log ratio of the probabilities of the numbers of steps of all groups, given two values of a record.

    ``outputs`` says the place at which a step from x to y counts, or −1. The supremum is on the lattice of exact values
    and beyond (test_oracle_transitions); all of it is looked at.
    """
    paths, weights = law
    groups, m = sorted(set(group_of[1:])), outputs.max() + 1
    answers = np.zeros((len(paths), len(groups) * m))
    for t in range(1, paths.shape[1]):
        place = outputs[paths[:, t - 1], paths[:, t]]
        counted = np.flatnonzero(place >= 0)
        answers[counted, m * groups.index(group_of[t]) + place[counted]] += 1
    far = 60 * scale  # as good as infinite
    edges = [np.concatenate([[edge[0] - far], edge, [edge[-1] + far]]) for edge in map(np.unique, answers.T)]
    lattice = np.array(list(itertools.product(*edges)))
    log_density = -np.abs(lattice[:, None, :] - answers[None]).sum(axis=2) / scale
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    worst = 0.0
    for t in range(paths.shape[1]):
        given = [weights * (paths[:, t] == x) for x in range(2)]
        told = [density @ (part / part.sum()) for part in given]
        worst = max(worst, float(np.abs(np.log(told[0] / told[1])).max()))
    return worst


@pytest.mark.parametrize("name", list(CHAINS))
def test_steps_by_groups_keep_their_promise(name: str, slow: bool) -> None:
    """Switches in up to three groups, and transitions in two, of all sequences of a short chain."""
    chain = pf.MarkovChain(CHAINS[name], "stationary")
    near = []
    for query, length, ways in (
        (pf.Switches(), 6, ([0, 1, 0, 1, 0, 1], [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2], [0] * 6)),
        (pf.Transitions(), 3, ([0, 1, 1], [0, 0, 1], [1, 1, 1])),
    ):
        law = law_of(chain.stationary_distribution, [chain.transition_matrix] * (length - 1))
        for mechanism in (pf.LeakagePropagation, pf.MQMExact) if slow or name == "sticky" else (pf.LeakagePropagation,):
            for epsilon in (0.5, 2.0):
                noise = mechanism(chain, length).calibrate(query, epsilon)
                assert noise.linear.of_groups
                losses = [true_loss_of_steps(law, noise.linear.outputs, noise.unit_scale, way) for way in ways]
                assert max(losses) <= epsilon * (1 + 1e-9), (query, mechanism, losses)
                if query == pf.Transitions():
                    near.append(max(losses) / epsilon)
                    third = [true_loss_of_steps(law, noise.linear.outputs, noise.unit_scale / 3, way) for way in ways]
                    assert max(third) > epsilon  # the oracle can tell noise that is too little
    assert max(near) > 0.8


def test_bouts_by_groups_would_tell_more_than_bouts() -> None:
    """A record moves the number of bouts by one, and those of two groups by one each: so groups are refused."""
    start = [0.95, 0.05]  # of records that are independent: most often a bout begins at the second, or at the third
    chain = pf.MarkovChain([[0.05, 0.95], [0.05, 0.95]], start)
    noise = pf.LeakagePropagation(chain, 3).calibrate(pf.Bouts("1"), 1.0)
    law = law_of(np.array(start), [chain.transition_matrix] * 2)
    assert not noise.linear.of_groups
    assert true_loss_of_steps(law, noise.linear.outputs, noise.unit_scale, [0, 0, 0]) <= 1.0 + 1e-9
    assert true_loss_of_steps(law, noise.linear.outputs, noise.unit_scale, [0, 0, 1]) > 1.7


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
