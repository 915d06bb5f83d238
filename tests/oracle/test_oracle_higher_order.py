"""Chains with more memory against brute force: every database of short chains."""

import itertools

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import dyadic_law
from propagation_oracle import Array, density_loss, losses_per_pair, random_densities, supremum, tilts
from pufferfish._core.propagation.chain import ChainPropagation, TuplePropagation
from pufferfish._core.propagation.sweep import Run
from pufferfish.errors import ModelError

SLACK = 1e-9


def law_of(first: Array, tensor: Array, length: int) -> Array:
    """Law of all sequences, one axis per record; ``first`` is that of the first m records."""
    order = tensor.ndim - 1
    if length < order:
        return first.sum(axis=tuple(range(length, order)))
    law = first
    for _ in range(length - order):
        law = law[..., None] * tensor
    return law


def random_chain(seed: int) -> tuple[Array, Array, int, Array]:
    """A tensor with more and more zeros, a law to begin with, a length, and losses."""
    rng = np.random.default_rng(seed)
    k, order = ((2, 2), (3, 2), (2, 3))[seed % 3]
    zeros, length = (0.0, 0.2, 0.4)[(seed // 3) % 3], int(rng.integers(1, 7 if k == 2 else 5))
    tensor = np.array([dyadic_law(rng, k, zeros) for _ in range(k**order)]).reshape((k,) * (order + 1))
    each = (
        np.array(0.5),
        rng.uniform(0, 1.5, size=(k, k)) * (1 - np.eye(k)),
        rng.uniform(0, 1, length) * rng.choice([0, 1, 2], length),
        rng.uniform(0, 1, size=(length, k, k)) * (1 - np.eye(k)),
    )
    return tensor, dyadic_law(rng, k**order, zeros).reshape((k,) * order), length, each[seed % 4]


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("start", ["given", "any", "stationary"])
def test_no_density_leaks_more(start: str, slow: bool) -> None:
    closest = 0.0
    for seed in range(36 if slow else 18):
        tensor, initial, length, losses = random_chain(seed)
        k, order = tensor.shape[0], tensor.ndim - 1
        rng = np.random.default_rng(1000 + seed)
        try:
            chain = pf.HigherOrderChain(tensor, initial if start == "given" else start)  # type: ignore[arg-type]
        except ModelError:
            continue
        laws = [initial] if start == "given" else [chain.stationary_distribution] if start == "stationary" else []
        if start == "any":
            size = k**order
            laws = [*rng.dirichlet(np.ones(size), size=3), *rng.dirichlet(np.full(size, 0.1), size=6)]
        bound = pf.LeakagePropagation(chain, length).leakage(losses)
        d = losses_per_pair(losses, length, k)
        assert bound <= float(d.max(axis=(1, 2)).sum()) + SLACK
        for law in laws:
            sequences = law_of(law.reshape((k,) * order), tensor, length)
            densities = [*itertools.islice(tilts(d), 60), *random_densities(rng, d, 15)]
            worst = max(density_loss(sequences, density) for density in densities)
            assert worst <= bound + SLACK, seed
            closest = max(closest, worst / bound if bound else 1.0)
    assert closest > 0.99


def test_the_supremum_over_all_densities_comes_near() -> None:
    """On two states and memory two the bound is mostly within a few percent of the worst density, and never below."""
    ratios = []
    for seed in range(0, 24, 3):
        tensor, initial, length, losses = random_chain(seed)
        length = min(length, 4)
        if losses.ndim in (1, 3):
            losses = losses[:length]
        found = pf.LeakagePropagation(pf.HigherOrderChain(tensor, initial), length).leakage(losses)
        worst = supremum(law_of(initial, tensor, length), losses_per_pair(losses, length, 2))
        assert worst <= found + 1e-7
        ratios.append(found / worst if worst > 1e-9 else 1.0)
    assert max(ratios) < 1.25
    assert np.median(ratios) < 1.05


@pytest.mark.parametrize("order", [2, 3])
def test_any_first_records_are_any_together_also_where_the_tensor_forgets_them(order: int) -> None:
    """The first m records may all be equal, whatever the tensor: one tells all of them.

    A tensor that ignores the oldest record was once taken for a chain with less memory, whose first m records have few
    laws: noise for ε = 1 leaked 2.0 and 3.0.
    """
    even = np.full((2,) * (order + 1), 0.5)
    equal = np.zeros((2,) * order)
    equal[(0,) * order] = equal[(1,) * order] = 0.5
    for length in (order, order + 1):
        leakage = pf.LeakagePropagation(pf.HigherOrderChain(even, "any"), length).leakage(1.0)
        truth = supremum(law_of(equal, even, length), losses_per_pair(1.0, length, 2))
        assert truth == pytest.approx(order, rel=1e-6)
        assert truth <= leakage + SLACK
    sticky = np.broadcast_to([[0.9, 0.1], [0.1, 0.9]], (2,) * (order + 1))
    assert pf.LeakagePropagation(pf.HigherOrderChain(sticky, "any"), order).leakage(1.0) >= order
    switches = [
        pf.LeakagePropagation(pf.HigherOrderChain(even, start), 4).calibrate(pf.Switches(), 1.0).scale  # type: ignore[arg-type]
        for start in (equal, "any")
    ]
    assert switches[0] <= switches[1]


def lifted(matrix: Array, order: int) -> Array:
    """The tensor of a chain of order 1 with memory that it does not use."""
    return np.broadcast_to(matrix, (len(matrix),) * (order + 1)).copy()


@pytest.mark.slow
def test_a_tensor_of_order_one_needs_the_noise_of_its_chain() -> None:
    rng = np.random.default_rng(7)
    for k, order in ((2, 2), (3, 2), (2, 3)):
        matrix, start = rng.dirichlet(np.ones(k), size=k), rng.dirichlet(np.ones(k))
        long = pf.HigherOrderChain(lifted(matrix, order))
        plain = pf.LeakagePropagation(pf.MarkovChain(matrix), 20).calibrate(pf.Histogram(), 1.0)
        assert pf.LeakagePropagation(long, 20).calibrate(pf.Histogram(), 1.0).scale == plain.scale
        # and the engine itself, which does not look whether older records matter
        first = start
        for _ in range(order - 1):
            first = first[..., None] * matrix
        for length, law in itertools.product((1, 2, 5, 80, 10**6), ("stationary", "given")):
            runs = [Run(length, 0.2 * (1 - np.eye(k)))]
            plain_ = ChainPropagation(matrix, start if law == "given" else "stationary").leakage(runs)
            found = TuplePropagation(
                long.kernel, long.tuples, first.ravel() if law == "given" else "stationary"
            ).leakage(runs)
            assert found.total == pytest.approx(plain_.total, rel=1e-6)
            assert found.total >= plain_.total * (1 - 1e-9)


def test_the_exact_loss_of_calibrated_counts(slow: bool) -> None:
    for seed in range(8 if slow else 4):
        rng = np.random.default_rng(seed)
        tensor = rng.dirichlet([1.0, 0.5], size=(2, 2))
        chain, length = pf.HigherOrderChain(tensor), int(rng.integers(2, 8))
        scale = pf.LeakagePropagation(chain, length).calibrate(pf.Count(1), 1.0).scale
        sequences = law_of(chain.stationary_distribution, tensor, length)
        counts = np.indices(sequences.shape).sum(axis=0)
        noise = np.exp(-np.abs(np.arange(-3 * length, 4 * length)[:, None] - np.arange(length + 1)) / scale)
        for t in range(length):
            given = []
            for x in range(2):
                mass = np.take(sequences, x, axis=t).ravel()
                of_count = np.bincount(np.take(counts, x, axis=t).ravel(), mass, length + 1)
                given.append(noise @ (of_count / mass.sum()))
            assert np.abs(np.log(given[0]) - np.log(given[1])).max() <= 1 + SLACK
