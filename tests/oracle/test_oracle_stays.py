"""Chains with several kinds of stay against brute force: programs over all densities of what is seen, the states."""

import itertools

import numpy as np
import pytest

import pufferfish as pf
from odd_classes import odd_stays
from paper.audit.laws import some_laws
from propagation_oracle import Array, losses_per_pair, shortest_paths, supremum, supremum_of_steps
from pufferfish.errors import ModelError
from stretch_oracle import supremum_of_stretch

SLACK = 1e-7
GOLDEN = pf.StaysChain([[0, 1], [1, 0]], [[(0.5, 0.5), (0.5, 0.95)], [(1, 0.8)]])


def laws(chain: pf.StaysChain, length: int) -> list[Array]:
    """Laws of all sequences of states; of chains that may start anyhow some that tell most."""
    every = [law for law, _ in some_laws(chain, length)]
    return every if len(every) < 8 else [every[i] for i in np.random.default_rng(0).permutation(len(every))[:8]]


def random_case(seed: int) -> tuple[pf.StaysChain, int, Array]:
    rng = np.random.default_rng(seed)
    k = 2 + seed % 2
    length = int(rng.integers(2, 6 if k == 2 else 5))
    each = (
        np.array(0.5),
        rng.uniform(0, 1.5, size=(k, k)) * (1 - np.eye(k)),
        rng.uniform(0, 1, length) * rng.choice([0, 1, 2], length),  # with records that nobody reads
        rng.uniform(0, 1, size=(length, k, k)) * (1 - np.eye(k)),
    )
    while True:
        try:
            return odd_stays(rng, [str(x) for x in range(k)]), length, each[seed // 2 % 4]
        except ModelError:
            continue


def law_by_paths(chain: pf.StaysChain, length: int) -> Array:
    """The law of states, summed over every path of kinds one by one: what ``some_laws`` says must be it."""
    start = chain.initial_distribution
    first = chain.stationary_distribution if isinstance(start, str) else start
    state, law = chain.tuples[:, 0], np.zeros((chain.k,) * length)
    for path in np.ndindex((len(state),) * length):
        p = first[path[0]] * np.prod([chain.kernel[a, b] for a, b in itertools.pairwise(path)])
        law[tuple(state[list(path)])] += p
    return law


def test_the_law_of_states_is_that_of_all_paths_of_kinds() -> None:
    for start in ("stationary", [0.2, 0.3, 0.5]):
        chain = pf.StaysChain(GOLDEN.exits, GOLDEN.stays, start)  # type: ignore[arg-type]
        for length in (1, 2, 4):
            (law,) = laws(chain, length)
            assert np.allclose(law, law_by_paths(chain, length), rtol=1e-12)


def test_golden_numbers() -> None:
    """Bound and truth of a chain with two kinds of stay (exact: .5, .860736, 1.215211, 1.486246, 1.743925)."""
    truths = (0.5, 0.860736, 1.215211, 1.486246, 1.743925)
    bounds = (0.5, 0.860736, 1.215211, 1.490873, 1.755559)
    for length, (truth, bound) in enumerate(zip(truths, bounds, strict=True), 1):
        assert pf.LeakagePropagation(GOLDEN, length).leakage(0.5) == pytest.approx(bound, abs=1e-6)
        (law,) = laws(GOLDEN, length)
        assert supremum(law, losses_per_pair(0.5, length, 2)) == pytest.approx(truth, abs=2e-6)
    long = pf.LeakagePropagation(GOLDEN, 10**6).calibrate(pf.Histogram(relative=False), 1.0)
    assert long.noise_multiplier == pytest.approx(10.61981, rel=1e-5)
    forgotten = pf.LeakagePropagation(pf.MarkovChain(GOLDEN.mean_matrix), 10**6)
    assert forgotten.calibrate(pf.Histogram(relative=False), 1.0).noise_multiplier == pytest.approx(6.19802, rel=1e-5)


@pytest.mark.grid(keep=2)
@pytest.mark.parametrize("part", range(8))
def test_no_density_leaks_more(part: int, slow: bool) -> None:
    closest = 0.0
    for seed in range(40 * part, 40 * part + (40 if slow else 8)):
        chain, length, losses = random_case(seed)
        bound = pf.LeakagePropagation(chain, length).leakage(losses)
        d = losses_per_pair(losses, length, chain.k)
        for law in laws(chain, length):
            worst = supremum(law, d)
            assert worst <= bound + SLACK, seed
            closest = max(closest, worst / bound if bound > 1e-9 else 1.0)
    assert closest > 0.99


@pytest.mark.grid(keep=2)
@pytest.mark.parametrize("part", range(4))
def test_no_density_tells_more_of_a_stretch(part: int, slow: bool) -> None:
    closest = 0.0
    for seed in range(1000 + 20 * part, 1000 + 20 * part + (20 if slow else 4)):
        chain, length, losses = random_case(seed)
        length = min(length, 4)
        if losses.ndim in (1, 3):
            losses = losses[:length]
        d = shortest_paths(losses_per_pair(losses, length, chain.k))
        for records in range(1, length + 1):
            bound = pf.LeakagePropagation(chain, length, protect=records).leakage(losses)
            for law in laws(chain, length)[:3]:
                worst = supremum_of_stretch(law, d, records, most=6)
                assert worst <= bound + SLACK, (seed, records)
                closest = max(closest, worst / bound if bound > 1e-9 else 1.0)
    assert closest > 0.99


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("part", range(4))
def test_no_density_of_steps_leaks_more(part: int, slow: bool) -> None:
    """Also between two kinds of stay of one state a step tells something: without its loss there bounds are too low."""
    closest = 0.0
    # 2008 and 2068 notice a step that is not charged between kinds of one state
    for seed in [2008, 2068, *range(2000 + 25 * part, 2000 + 25 * part + (25 if slow else 6))]:
        chain, length, _ = random_case(seed)
        k, length = chain.k, min(length, 4 if chain.k == 2 else 3)
        losses = (0.0, 0.3, np.random.default_rng(seed).uniform(0, 1, size=(k, k)) * (1 - np.eye(k)))[seed % 3]
        bound = pf.LeakagePropagation(chain, length).leakage(pf.StepLoss(0.4, losses))
        d = shortest_paths(losses_per_pair(losses, length, k))
        for law in laws(chain, length)[:3]:
            worst = supremum_of_steps(law, d, 0.4)
            assert worst <= bound + SLACK, seed
            closest = max(closest, worst / bound)
    assert closest > 0.9


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("part", range(2))
def test_chains_with_the_same_loss_are_told_apart_by_how_much_of_it_is_a_step(part: int, slow: bool) -> None:
    """A record that loses .4 because of its step loses it between two kinds of one state too, another one does not."""
    differ = 0
    for seed in range(3000 + 50 * part, 3000 + 50 * part + (50 if slow else 10)):
        chain, length = random_case(seed)[0], 65  # so long that border records are charged a step as all others
        steps, records = [0.0, 0.4], [0.7, float(np.nextafter(0.7, 0) - 0.4)]
        records[0] = float(np.nextafter(records[1] + steps[1], np.inf))  # what the second one's records are charged
        each = [
            pf.LeakagePropagation(chain, length).leakage(pf.StepLoss(step, loss))
            for step, loss in zip(steps, records, strict=True)
        ]
        for order in ([0, 1], [1, 0]):
            together = pf.LeakagePropagation(chain, [length, length])
            loss = pf.StepLoss([steps[i] for i in order], [records[i] for i in order])
            assert together.leakage(loss) >= max(each) * (1 - 1e-8), seed  # two proofs end at other digits
        differ += each[1] > each[0] + steps[1] + 1e-9
    assert differ
