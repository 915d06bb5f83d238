"""The lower bound of networks against enumeration: what tilts tell, and that less noise breaks the promise."""

import math

import numpy as np
import pytest

import pufferfish as pf
from network_oracle import Network, random_network
from networks import has_secrets, model_of
from pufferfish._core.propagation.lower_bound import TiltedNetwork

NETWORKS = [network for seed in range(60) if has_secrets(network := random_network(seed, 2 + seed % 4))]


def told(network: Network, exponents: list[np.ndarray]) -> float:
    """Largest log ratio of E[exp Σ exponents] given two values of a node, by enumeration."""
    law, tilted = network.law, network.law.copy()
    for axis, t in enumerate(exponents):
        tilted = tilted * np.exp(t).reshape([-1 if a == axis else 1 for a in range(law.ndim)])
    worst = 0.0
    for node in range(network.size):
        others = tuple(a for a in range(law.ndim) if a != node)
        plain, means = law.sum(axis=others), tilted.sum(axis=others)
        can = plain > 0
        logs = np.log(means[can] / plain[can])
        worst = max(worst, float(np.ptp(logs)))
    return worst


def test_tilts_tell_what_enumeration_says() -> None:
    for seed, network in enumerate(NETWORKS):
        rng = np.random.default_rng(seed)
        outputs = int(rng.integers(1, 4))
        contributions = [rng.integers(-2, 3, (outputs, k)) * rng.integers(2) for k in network.sizes]
        model = model_of(network)
        node = int(np.argmax(network.sizes))
        tilted = TiltedNetwork(model.tables, model.sizes, contributions, node, (0, network.sizes[node] - 1))
        signs = rng.choice([-1.0, 1.0], size=(3, outputs))
        found = tilted.losses(signs, 1.7)
        for s, loss in zip(signs, found, strict=True):
            exact = told(network, [s @ w / 1.7 for w in contributions])
            assert loss <= exact + 1e-15
            assert loss == pytest.approx(exact, abs=1e-9)


def test_less_noise_than_the_bound_breaks_the_promise_and_propagation_is_near(slow: bool) -> None:
    ratios: list[float] = []
    for network in NETWORKS if slow else NETWORKS[::2]:
        model = model_of(network)
        query = pf.Marginals(list(model.nodes), relative=False)
        try:
            found = pf.LeakagePropagation(model).calibrate(query, 1.0)
        except pf.PufferfishError:
            continue  # the records are certain, or no finite noise is enough
        assert found.lower_bound <= found.scale
        if not found.lower_bound:
            continue
        contributions = [found.linear.contributions_of(place) for place in range(network.size)]
        if len(found.linear.labels) <= 8:
            scale = found.lower_bound / float(found.linear.unit)
            signs = signs_of(len(found.linear.labels))
            assert max(told(network, [s @ w / scale for w in contributions]) for s in signs) > 1.0
        ratios.append(found.scale / found.lower_bound)
    assert len(ratios) > (30 if slow else 15)
    assert np.median(ratios) < 1.02


def signs_of(outputs: int) -> np.ndarray:
    return np.array(np.meshgrid(*[[-1.0, 1.0]] * outputs)).reshape(outputs, -1).T


def test_a_tilt_is_never_more_than_the_exact_loss() -> None:
    for seed, network in enumerate(NETWORKS[:12]):
        rng = np.random.default_rng(seed)
        contributions = [rng.integers(0, 3, (1, k)) for k in network.sizes]
        answers = sum(w.T.reshape([-1 if a == v else 1 for a in range(network.size)] + [1]) for v, w in
                      enumerate(contributions))  # fmt: skip
        model = model_of(network)
        tilted = TiltedNetwork(model.tables, model.sizes, contributions, 0, (0, 0))
        loss = float(tilted.losses(np.array([[1.0], [-1.0]]), 2.0).max())
        assert loss <= network.true_loss(np.asarray(answers).reshape(-1, 1), 2.0) + 1e-9 or math.isinf(loss)


def test_a_scale_so_small_that_doubles_cannot_hold_it_claims_nothing() -> None:
    model = model_of(NETWORKS[0])
    contributions = [np.arange(k)[None, :] for k in model.sizes]
    tilted = TiltedNetwork(model.tables, model.sizes, contributions, 0, (0, 1))
    assert tilted.losses(np.ones((1, 1)), 1e-3).tolist() == [0.0]


def test_secrets_and_functions_have_none() -> None:
    model = model_of(NETWORKS[0])
    found = pf.LeakagePropagation(model, secrets=[model.nodes[0]]).calibrate(pf.Marginals(list(model.nodes)), 1.0)
    assert found.lower_bound == 0.0
