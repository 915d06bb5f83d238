"""LeakagePropagation on networks, by enumeration of all databases: latent states, public observations, several θ."""

from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from network_oracle import (
    SHAPED,
    Network,
    laplace_loss,
    moves,
    needs_none,
    random_network,
    several_rows,
    shaped,
    with_other_tables,
)
from network_queries import NAMES, by_name
from networks import has_secrets, model_of

SLACK = 1 + 1e-9
NO_WORSE = 1 + 1e-5
"""Calibration by propagation is bisection: that near to the least scale."""
EPSILONS = (0.3, 1.5, 6.0)
HIDDEN = [[], [0], [1], [0], [1], [2]]
"""A hidden Markov model: three states, then what is seen of each."""
NETWORKS = [
    *(random_network(seed, 2 + seed % 4, parents=1) for seed in range(12)),
    *(random_network(seed, 3 + seed % 3, parents=3) for seed in range(16)),
    *SHAPED,
    *(shaped("hidden", HIDDEN, seed, most=2) for seed in (0, 2, 4)),
    *(shaped("star", [[3], [3], [3], []], seed) for seed in (0, 4)),
]
SOME = [network for network in NETWORKS if has_secrets(network)]


def bounds_of(network: Network, **options: Any) -> tuple[pf.LeakagePropagation, pf.MarkovQuilt, pf.GroupDP]:
    """Propagation, quilts, and the group, which knows of no secrets."""
    model = model_of(network)
    return pf.LeakagePropagation(model, **options), pf.MarkovQuilt(model, **options), pf.GroupDP(model)


def only(network: Network, nodes: list[int]) -> list[np.ndarray]:
    return [np.full((k, k), j in nodes) for j, k in enumerate(network.sizes)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("network", SOME, ids=str)
def test_it_keeps_its_promise_and_needs_no_more_than_quilts(network: Network, name: str) -> None:
    asked = by_name(network, name)
    answers = network.answers(asked.answer)
    for epsilon in EPSILONS:
        if not needs_none(network, answers, epsilon):
            scales = [bound.calibrate(asked.query, epsilon).scale for bound in bounds_of(network)]
            assert network.true_loss(answers, scales[0]) <= epsilon * SLACK
            assert scales[0] <= scales[1] * NO_WORSE
            assert scales[1] <= scales[2] * SLACK


@pytest.mark.parametrize("secret", [[0], [1], [0, 1, 2], [4]], ids=str)
@pytest.mark.parametrize("seed", range(9))
def test_hidden_states_and_what_is_seen_of_them(seed: int, secret: list[int]) -> None:
    """Counts of what is seen, of latent states, of both; secret are some of them only."""
    network = shaped("hidden", HIDDEN, seed, most=2 + (seed % 3 == 0))
    secrets = only(network, secret)
    for nodes in ([3, 4, 5], [0, 1, 2], [1, 4]):
        own = list(dict.fromkeys(state for j in nodes for state in network.states[j]))
        query = pf.Subset(pf.Histogram(relative=False), [f"v{j}" for j in nodes])
        answers = network.answers(lambda row, own=own, nodes=nodes: [sum(row[j] == s for j in nodes) for s in own])
        for epsilon in EPSILONS:
            if not needs_none(network, answers, epsilon, secrets):
                found = [
                    bound.calibrate(query, epsilon).scale
                    for bound in bounds_of(network, secrets=[f"v{j}" for j in secret])
                ]
                assert network.true_loss(answers, found[0], secrets) <= epsilon * SLACK
                assert network.true_loss(answers, found[1], secrets) <= epsilon * SLACK
                assert found[0] <= found[1] * NO_WORSE


def test_fewer_secrets_need_less() -> None:
    """Control: those that are no secrets are not protected."""
    flip, start = np.array([[0.875, 0.125], [0.25, 0.75]]), np.array([0.25, 0.75])
    network = Network("hidden", tuple(map(tuple, HIDDEN)), (start, *[flip] * 5), (("a", "b"),) * 6)
    query = pf.Subset(pf.Count("b"), ["v3", "v4", "v5"])
    every, one = (bounds_of(network, secrets=secrets)[0].calibrate(query, 1.0).scale for secrets in (None, ["v0"]))
    assert one < 0.95 * every
    answers = network.answers(lambda row: [row[3:].count("b")])
    assert network.true_loss(answers, one) > 1.0 >= network.true_loss(answers, one, only(network, [0])) / SLACK


@pytest.mark.parametrize("seed", range(8))
def test_under_every_theta(seed: int) -> None:
    """Other tables, and other trees of the same nodes."""
    first = shaped("theta", [[], [0], [0], [2]], 5 * seed)
    theta = [first, with_other_tables(first, 5 * seed + 1), with_other_tables(first, seed, [[1], [3], [1], []])]
    asked = by_name(first, ("histogram", "sum", "weighted histogram")[seed % 3])
    answers = first.answers(asked.answer)
    models = [model_of(network) for network in theta]
    for epsilon in EPSILONS:
        scale = pf.LeakagePropagation(models).calibrate(asked.query, epsilon).scale
        alone = [pf.LeakagePropagation(model).calibrate(asked.query, epsilon).scale for model in models]
        for network in theta:
            assert network.true_loss(answers, scale) <= epsilon * SLACK
        assert scale == pytest.approx(max(alone), rel=1e-4)
    losses = {f"v{j}": move for j, move in enumerate(moves(answers))}
    for several in (models, models[::-1]):
        each = [pf.LeakagePropagation(model).leakage(losses) for model in several]
        assert pf.LeakagePropagation(several).leakage(losses) == pytest.approx(max(each), rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_tables_of_independent_rows(seed: int, epsilon: float) -> None:
    network = random_network(seed, 3, parents=1, most=2)
    every = list(dict.fromkeys(state for names in network.states for state in names))
    law, answers = several_rows(network.law, network.answers(lambda row: [row.count(s) / 6 for s in every]), 2)
    pairs = [network.secrets(j % 3) for j in range(6)]
    scale = pf.LeakagePropagation(model_of(network), 2).calibrate(pf.Histogram(), epsilon).scale
    assert laplace_loss(law, answers, scale, pairs) <= epsilon * SLACK
    single = pf.LeakagePropagation(model_of(network)).calibrate(pf.Histogram(), epsilon).scale
    assert scale == pytest.approx(single / 2, rel=1e-5)


@pytest.mark.parametrize("network", SOME, ids=str)
def test_losses_of_two_releases_add(network: Network) -> None:
    """The joint output of two releases, as one vector in units of its own noise; matrices are taken as they are."""
    for one, other, b, c in (("count", "sum", 0.7, 2.0), ("marginals", "weighted count", 1.0, 3.0)):
        parts = [network.answers(by_name(network, name).answer) / scale for name, scale in ((one, b), (other, c))]
        summed = [p + q for p, q in zip(*map(moves, parts), strict=True)]
        losses = {f"v{j}": loss for j, loss in enumerate(summed)}
        truth = network.true_loss(np.concatenate(parts, axis=-1), 1.0)
        propagation, quilts, group = (bound.leakage(losses) for bound in bounds_of(network))
        assert truth <= propagation * SLACK + 1e-12
        assert propagation <= quilts * SLACK + 1e-12
        assert quilts <= group * SLACK + 1e-12


def test_it_needs_less_than_quilts_and_hardly_more_than_the_least() -> None:
    """Control: a count on a star of nodes that go with their centre leaks as much as the bound says."""
    flip = np.array([[0.875, 0.125], [0.25, 0.75]])
    star = Network("star", ((), (0,), (0,), (0,)), (np.array([0.25, 0.75]), flip, flip, flip), (("a", "b"),) * 4)
    scale, quilts, _ = (bound.calibrate(pf.Count("b"), 1.0).scale for bound in bounds_of(star))
    answers = star.answers(lambda row: [row.count("b")])
    assert scale < 0.9 * quilts
    assert star.true_loss(answers, scale) <= 1.0
    assert star.true_loss(answers, scale * 0.999) > 1.0
