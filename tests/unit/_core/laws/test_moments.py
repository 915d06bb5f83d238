"""Bounds on moments of sums along chains, against every path of short chains, with and without gaps."""

import itertools

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.laws.moments import Walk, laplace_log_moments
from pufferfish.release.against import chain_sums
from pufferfish.release.facts import DataRecord

TILTS = np.array([-2.0, -0.7, -0.1, 0.1, 0.4, 1.5])


def chains(rng: np.random.Generator, k: int) -> list[pf.MarkovChain | pf.PeriodicChain]:
    """Chains of which some go round, some stay, and one has a clock."""
    sharp = rng.dirichlet(np.full(k, 0.3), size=k) * 0.98 + 0.02 / k
    turns = 0.9 * np.roll(np.eye(k), 1, axis=1) + 0.1 / k
    clock = pf.PeriodicChain([rng.dirichlet(np.ones(k), size=k) for _ in range(3)])
    return [pf.MarkovChain(sharp), pf.MarkovChain(turns), clock]


def all_paths(chain: pf.MarkovChain | pf.PeriodicChain, steps: int) -> list[tuple[tuple[int, ...], float]]:
    """Return every path of a chain with its probability, for the phase that is asked, one phase after another."""
    matrices = chain.cycle if isinstance(chain, pf.PeriodicChain) else chain.transition_matrix[None]
    laws = chain.periodic_distribution if isinstance(chain, pf.PeriodicChain) else chain.stationary_distribution[None]
    paths = []
    for phase, law in enumerate(laws):
        for path in itertools.product(range(chain.k), repeat=steps):
            p = law[path[0]]
            for t, (x, y) in enumerate(itertools.pairwise(path)):
                p *= matrices[(phase + t) % len(matrices), x, y]
            paths.append(((phase, *path), float(p)))
    return paths


@pytest.mark.parametrize("seed", range(4))
def test_no_moment_is_above_its_bound_wherever_the_records_are(seed: int) -> None:
    rng, steps = np.random.default_rng(seed), 5
    for chain in chains(rng, 3):
        of = chain_sums(pf.ChainClass((chain,)))
        weights, outputs = pf.Histogram().bind(chain.states, steps), pf.Transitions().bind(chain.states, steps)
        paths = all_paths(chain, steps)
        phases = 1 + max(path[0] for path, _ in paths)
        for there in ((0, 1, 2, 3, 4), (0, 2, 3), (0, 4), (0, 1, 4)):
            joined = [t for t in range(steps - 1) if t in there and t + 1 in there]
            data = DataRecord(None, 1, 1, len(there), steps, steps=len(joined))
            for query, output in ((weights, 1), (outputs, 0), (outputs, 5)):
                exact = np.full(len(TILTS), -np.inf)
                for phase in range(phases):
                    moment = np.zeros(len(TILTS))
                    for (first, *path), p in paths:
                        if first == phase:
                            if query is weights:
                                total = sum(path[t] == output for t in there)
                            else:
                                total = sum(3 * path[t] + path[t + 1] == output for t in joined)
                            moment += p * np.exp(TILTS * total)
                    exact = np.maximum(exact, np.log(moment))
                bound = of(query, output, data)[0](TILTS)
                assert np.all(bound >= exact - 1e-9)
                if len(there) == steps:
                    assert np.allclose(bound, exact, atol=1e-9)


@pytest.mark.parametrize("b", [0.3, 4.0, 700.0])
def test_moments_of_the_noise_are_those_of_its_law(b: float) -> None:
    z = np.arange(-int(60 * b) - 60, int(60 * b) + 61)
    law = np.exp(-np.abs(z) / b)
    for factor in (-0.4 / b, 0.7 / b):
        exact = np.log(np.sum(law * np.exp(factor * z)) / law.sum())
        assert float(laplace_log_moments(np.array([b]), np.array([factor]))) == pytest.approx(exact, rel=1e-6)
    assert laplace_log_moments(np.array([b]), np.array([1 / b])) == np.inf


def test_moments_of_long_chains_are_computed_and_of_very_long_cycles_bounded() -> None:
    kernel, law = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([2 / 3, 1 / 3])
    values = np.array([1.0, 0.0])
    walk = Walk(kernel[None], law[None], np.arange(2), 0.0)
    steps = 10**6
    whole = walk.whole(steps, values, TILTS)
    tilted = np.exp(TILTS[:, None, None] * values[:, None]) * kernel
    growth = np.log(np.max(np.abs(np.linalg.eigvals(tilted)), axis=1))
    assert whole is not None
    assert np.allclose(whole / steps, growth, atol=1e-5)
    many = 2_000_000
    cycle = Walk(np.broadcast_to(kernel, (many, 2, 2)), np.broadcast_to(law, (many, 2)), np.arange(2), 0.0)
    assert cycle.whole(10, values, TILTS) is None
