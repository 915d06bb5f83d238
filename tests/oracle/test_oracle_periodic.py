"""Chains with a clock against brute force: every database of short chains, every phase that they may begin at."""

import itertools
import math

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import dyadic_law, dyadic_matrix
from propagation_oracle import Array, density_loss, losses_per_pair, random_densities, supremum, tilts
from pufferfish._core.propagation import past_and_future
from pufferfish._core.propagation.chain import ChainPropagation
from pufferfish._core.propagation.sweep import Run
from pufferfish.errors import ModelError

SLACK = 1e-9


def law_of(initial: Array, matrices: Array, begins: int, length: int) -> Array:
    """Law of all sequences of a chain whose first record is at a phase, one axis per record."""
    law = initial
    for t in range(length - 1):
        law = law[..., None] * matrices[(begins + t) % len(matrices)]
    return law


def periodic_law(matrices: Array) -> Array:
    """The law at each phase, by powers of one period."""
    k = matrices.shape[1]
    law = np.full(k, 1 / k)
    for _ in range(4000):
        for matrix in matrices:
            law = law @ matrix
    laws = [law]
    for matrix in matrices[:-1]:
        laws.append(laws[-1] @ matrix)
    return np.array(laws)


def random_chain(seed: int) -> tuple[Array, Array, int, Array]:
    """Matrices by phase with more and more zeros, a law to begin with, a length, and losses."""
    rng = np.random.default_rng(seed)
    k, phases = (2, 2, 3)[seed % 3], int(rng.integers(2, 5))
    zeros, length = (0.0, 0.25, 0.45)[seed % 3], int(rng.integers(2, 6 if k == 2 else 5))
    matrices = np.array([dyadic_matrix(rng, k, zeros) for _ in range(phases)])
    each = (
        np.array(0.5),
        rng.uniform(0, 1.5, size=(k, k)) * (1 - np.eye(k)),
        rng.uniform(0, 1, length) * rng.choice([0, 1, 2], length),
        rng.uniform(0, 1, size=(length, k, k)) * (1 - np.eye(k)),
    )
    return matrices, dyadic_law(rng, k, zeros), length, each[seed % 4]


@pytest.mark.parametrize("start", ["given", "any", "stationary"])
def test_no_density_leaks_more_at_any_phase(start: str, slow: bool) -> None:
    closest = 0.0
    for seed in range(30 if slow else 9):
        matrices, initial, length, losses = random_chain(seed)
        phases, k = matrices.shape[:2]
        rng = np.random.default_rng(1000 + seed)
        if start == "given":
            begins = [(phase, initial) for phase in range(phases)]
            given: object = initial
        elif start == "any":
            laws = [*np.eye(k), *rng.dirichlet(np.ones(k), size=3), *rng.dirichlet(np.full(k, 0.05), size=4)]
            begins = list(itertools.product(range(phases), laws))
            given = "any"
        else:
            given = "stationary"
            try:
                pf.PeriodicChain(matrices)
            except ModelError:
                continue
            begins = list(enumerate(periodic_law(matrices)))
        bound = pf.LeakagePropagation(pf.PeriodicChain(matrices, given), length).leakage(losses)  # type: ignore[arg-type]
        d = losses_per_pair(losses, length, k)
        assert bound <= float(d.max(axis=(1, 2)).sum()) + SLACK  # group privacy
        for phase, law in begins:
            sequences = law_of(law, matrices, phase, length)
            densities = [*itertools.islice(tilts(d), 40), *random_densities(rng, d, 10)]
            worst = max(density_loss(sequences, density) for density in densities)
            assert worst <= bound + SLACK, (seed, phase)
            closest = max(closest, worst / bound if bound else 1.0)
    assert closest > 0.99


@pytest.mark.parametrize("start", ["given", "stationary"])
def test_two_states_are_bounded_exactly(start: str) -> None:
    """On two states the bound is what the worst density and the worst phase leak."""
    for seed in range(0, 12, 3):
        matrices, initial, length, losses = random_chain(seed)
        k = matrices.shape[1]
        try:
            chain = pf.PeriodicChain(matrices, initial if start == "given" else "stationary")
        except ModelError:
            continue
        laws = [initial] * len(matrices) if start == "given" else list(periodic_law(matrices))
        d = losses_per_pair(losses, length, k)
        worst = max(supremum(law_of(law, matrices, phase, length), d) for phase, law in enumerate(laws))
        found = pf.LeakagePropagation(chain, length).leakage(losses)
        assert found == pytest.approx(worst, abs=1e-6), seed


def test_the_exact_loss_of_calibrated_counts(slow: bool) -> None:
    """Laplace noise that was calibrated leaks at most epsilon: exact laws of the count given every secret."""
    for seed in range(12 if slow else 6):
        rng = np.random.default_rng(seed)
        matrices = np.array([rng.dirichlet([1.0, 0.4], size=2) for _ in range(3)])
        length, epsilon = int(rng.integers(2, 8)), 1.0
        scale = pf.LeakagePropagation(pf.PeriodicChain(matrices), length).calibrate(pf.Count(1), epsilon).scale
        for phase, law in enumerate(periodic_law(matrices)):
            sequences = law_of(law, matrices, phase, length)
            counts = np.indices(sequences.shape).sum(axis=0)
            outputs = np.arange(-3 * length, 4 * length)
            noise = np.exp(-np.abs(outputs[:, None] - np.arange(length + 1)) / scale)
            for t in range(length):
                given = []
                for x in range(2):
                    mass = np.take(sequences, x, axis=t).ravel()
                    of_count = np.bincount(np.take(counts, x, axis=t).ravel(), mass, length + 1)
                    given.append(noise @ (of_count / mass.sum()))
                loss = np.abs(np.log(given[0]) - np.log(given[1])).max()
                assert loss <= epsilon + SLACK


@pytest.mark.slow
def test_a_cycle_of_equal_matrices_is_the_chain() -> None:
    """The engine for cycles, not the shortcut that finds equal matrices: the same leakage."""
    rng = np.random.default_rng(5)
    for k in (2, 3, 5):
        matrix, start = rng.dirichlet(np.ones(k), size=k), rng.dirichlet(np.ones(k))
        for length, initial in itertools.product((1, 4, 90, 10**6), ("stationary", start)):
            runs = [Run(length, 0.1 * (1 - np.eye(k)))]
            plain = ChainPropagation(matrix, initial).leakage(runs).total  # type: ignore[arg-type]
            found = ChainPropagation(np.array([matrix] * 3), initial).leakage(runs).total  # type: ignore[arg-type]
            assert found == pytest.approx(plain, rel=1e-6)
        every = ChainPropagation(np.array([matrix] * 3), "any").leakage([Run(60, 0.1 * (1 - np.eye(k)))]).total
        assert every >= ChainPropagation(matrix, "any").leakage([Run(60, 0.1 * (1 - np.eye(k)))]).total - SLACK


def test_the_fixed_cycle_covers_every_length(slow: bool) -> None:
    """What is proved for very long chains is never below short ones, and they come near."""
    for seed in range(6 if slow else 3):
        rng = np.random.default_rng(seed)
        matrices = np.array([rng.dirichlet(np.ones(3), size=3) for _ in range(4)])
        chain = pf.PeriodicChain(matrices)
        ever = pf.LeakagePropagation(chain, 10**9).leakage(0.2)
        short = [pf.LeakagePropagation(chain, length).leakage([0.2] * length) for length in (1, 5, 40, 150)]
        assert short == sorted(short)
        assert short[-1] <= ever + SLACK
        assert short[-1] == pytest.approx(ever, rel=1e-3)
        assert not math.isinf(ever)


def test_a_given_start_is_forgotten(slow: bool) -> None:
    """Long chains with a given start: never below short ones, and no more than the bound for every start."""
    for seed in range(4 if slow else 2):
        rng = np.random.default_rng(seed)
        matrices, start = np.array([rng.dirichlet(np.ones(3), size=3) for _ in range(5)]), np.array([1.0, 0, 0])
        given, free = pf.PeriodicChain(matrices, start), pf.PeriodicChain(matrices, "any")
        ever = pf.LeakagePropagation(given, 10**8).leakage(0.2)
        short = [pf.LeakagePropagation(given, length).leakage([0.2] * length) for length in (2, 10, 60)]
        assert max(short) <= ever + SLACK
        assert short[-1] == pytest.approx(ever, rel=1e-3)
        assert ever <= pf.LeakagePropagation(free, 10**8).leakage(0.2) + SLACK


def test_a_start_that_is_not_forgotten_when_places_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cycle of later kernels is raised by what is above it: still above every longer sweep."""
    rng = np.random.default_rng(3)
    matrices = np.array([0.75 * np.eye(3) + 0.25 * rng.dirichlet(np.ones(3), size=3) for _ in range(40)])
    runs, start = [Run(400, 0.2 * (1 - np.eye(3)))], np.array([0.02, 0.49, 0.49])
    exact = ChainPropagation(matrices, start).leakage(runs).total
    monkeypatch.setattr(past_and_future, "_MOST_PLACES", 700)
    monkeypatch.setattr(past_and_future, "_SETTLED_CYCLE", 1e-2)
    early = ChainPropagation(matrices, start).leakage(runs).total
    assert exact <= early + SLACK
    assert early <= 1.2 * exact
