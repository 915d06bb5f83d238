"""initial_distribution="any": no initial law needs more than the bound, and laws near a corner need all of it.

Quilts are compared with single laws and their exact influence; propagation with linear programs over all densities, for
every record and pair of states.
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import propagation_oracle as oracle
import pufferfish as pf
from awkward_chains import Array, awkward, dyadic_law, dyadic_matrix
from enumeration import Enumerated
from pufferfish._core.propagation.chain import ChainPropagation
from pufferfish._core.propagation.sweep import Run, overlaps
from single_quilts import Quilts

LENGTH = 5
DENSE = [dyadic_matrix(np.random.default_rng(seed), 2 + seed % 2) for seed in range(8)]
SPARSE = [dyadic_matrix(np.random.default_rng(seed), 2 + seed % 2, zeros=0.35) for seed in range(20, 32)]
UNREACHED = awkward("", [], [[0.875, 0.125, 0], [0.125, 0.875, 0], [0.5, 0.5, 0]]).transition
MATRICES = [*DENSE, *SPARSE, UNREACHED, np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.75, 0.25], [0.0, 1.0]])]

Law = list[Fraction]


def near_corners(k: int, distance: Fraction) -> list[Law]:
    """Laws with all but ``distance`` of their mass in one state (0: the corners themselves)."""
    return [[1 - distance if x == corner else distance / (k - 1) for x in range(k)] for corner in range(k)]


def laws(k: int, seed: int) -> list[Law]:
    rng = np.random.default_rng(seed)
    inside = [[Fraction(v) for v in dyadic_law(rng, k, zeros)] for zeros in (0, 0, 0, 0.3, 0.3)]
    return [*inside, *near_corners(k, Fraction(1, 10**9)), *near_corners(k, Fraction(0))]


@pytest.mark.parametrize("p", MATRICES, ids=range(len(MATRICES)))
def test_no_initial_law_exceeds_any(p: Array) -> None:
    k = len(p)
    chain = pf.MarkovChain(p, "any")
    quilts, bound = Quilts(chain, LENGTH), pf.MQMExact(chain, LENGTH)
    profile = [0.0, 0.4, 0.0, 1.0, 0.1]
    for law in laws(k, seed=k):
        truth = Enumerated.of(law, p, LENGTH)
        for node in range(LENGTH):
            for ends, _ in truth.quilts(node):
                assert quilts.influence(node, ends) >= truth.influence(node, ends) * (1 - 1e-12) - 1e-13
        for epsilon in (0.5, 4.0):
            if sigma := truth.sigma(epsilon):
                assert bound.calibrate(pf.Count(1), epsilon).noise_multiplier >= sigma * (1 - 1e-12)
        assert bound.leakage(profile) >= truth.leakage(profile) * (1 - 1e-12)


@pytest.mark.parametrize("p", MATRICES, ids=range(len(MATRICES)))
def test_a_law_near_a_corner_attains_each_influence(p: Array) -> None:
    quilts = Quilts(pf.MarkovChain(p, "any"), LENGTH)
    near = [Enumerated.of(law, p, LENGTH) for law in near_corners(len(p), Fraction(1, 2**60))]
    for node in range(LENGTH):
        for ends, _ in near[0].quilts(node):
            found, attained = quilts.influence(node, ends), max(law.influence(node, ends) for law in near)
            if np.isinf(found):
                assert attained > 25  # of log 2^60 = 41.6: grows without bound as the law nears the corner
            else:
                assert found == pytest.approx(attained, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("epsilon", [2.0, 5.0])
@pytest.mark.parametrize("p", DENSE, ids=range(len(DENSE)))
def test_a_law_near_a_corner_needs_the_whole_score_of_the_active_quilt(p: Array, epsilon: float) -> None:
    calibration = pf.MQMExact(pf.MarkovChain(p, "any"), LENGTH).calibrate(pf.Count(1), epsilon)
    witness = calibration.witness
    near = [Enumerated.of(law, p, LENGTH) for law in near_corners(len(p), Fraction(1, 10**9))]
    scores = [law.score(witness.node, witness.active_quilt, witness.nearby, epsilon) for law in near]
    assert calibration.noise_multiplier == pytest.approx(max(scores), rel=1e-6)


@pytest.mark.parametrize("epsilon", [2.0, 5.0])
@pytest.mark.parametrize("p", [[[0.9, 0.1], [0.4, 0.6]], [[0.75, 0.25], [0.25, 0.75]]], ids=["paper", "symmetric"])
def test_a_law_near_a_corner_needs_all_the_noise(p: list[list[float]], epsilon: float) -> None:
    """Not so on every chain: laws near different corners may be served by different quilts, "any" takes one for all."""
    found = pf.MQMExact(pf.MarkovChain(p, "any"), 7).calibrate(pf.Count(1), epsilon).noise_multiplier
    near = [Enumerated.of(law, p, 7).sigma(epsilon) for law in near_corners(2, Fraction(1, 10**9))]
    assert found == pytest.approx(max(near), rel=1e-6)


def test_any_is_stationary_where_the_past_is_forgotten_at_once() -> None:
    coin = [[0.25, 0.75], [0.25, 0.75]]
    for start in ("any", "stationary", [1, 0]):
        assert pf.MQMExact(pf.MarkovChain(coin, start), 50).leakage(0.5) == pytest.approx(0.5, rel=1e-9)


def test_one_quilt_for_all_laws_can_cost_a_little_more_than_the_worst_law() -> None:
    """The 0.1% that docs/mechanisms.md speaks of: Appendix C.4 takes one quilt where single laws take their own."""
    p, near = [[0.25, 0.75], [0.625, 0.375]], 1e-9
    every = pf.MQMExact(pf.MarkovChain(p, "any"), 7).calibrate(pf.Count(1), 2.0).scale
    laws = [[near, 1 - near], [1 - near, near], [0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]
    worst = max(pf.MQMExact(pf.MarkovChain(p, q), 7).calibrate(pf.Count(1), 2.0).scale for q in laws)
    assert worst < every < 1.002 * worst


# -- Propagation: linear programs over all densities, under many first laws -------------------------------------------

SEEDS = range(400)
DEAD = np.array([[0.99, 0.01, 0.0], [0.01, 0.99, 0.0], [0.5, 0.5, 0.0]])
"""Its last state is one of the first record only. Taken to link the others it makes almost nothing of what is told."""


def any_chain(rng: np.random.Generator, k: int, kind: int) -> Array:
    """A chain with states that die: at once, after some steps; or with rows that are certain, or that hardly change."""
    p = dyadic_matrix(rng, k, zeros=(0.0, 0.0, 0.4, 0.3, 0.0, 0.2)[kind])
    if kind in (1, 2):  # nothing leads to the last state
        p[:, 0] += p[:, -1]
        p[:, -1] = 0.0
    if kind == 3:  # only the last state leads to the one before it, and nothing to the last
        p[:, 0] += p[:, -1] + p[:, -2]
        p[:, -2:] = 0.0
        p[-1] /= 2
        p[-1, -2] += 0.5
    if kind == 4:
        p = 0.0625 * p + 0.9375 * np.roll(np.eye(k), int(rng.integers(2)), axis=1)
    if kind == 5:
        p[rng.integers(k)] = np.eye(k)[rng.integers(k)]
    return p


def any_losses(rng: np.random.Generator, k: int, length: int) -> Array:
    """Losses that differ from pair to pair, some of them 0, for a profile whose first records may be unread."""
    size = rng.choice([0.1, 0.5, 1.5])
    d = size * rng.random((k, k)) * (rng.random((k, k)) < 0.8) if rng.random() < 0.6 else np.full((k, k), size)
    read = np.arange(length) >= (rng.integers(0, 3) if length > 2 else 0)
    if rng.random() < 0.3:
        read &= rng.random(length) < 0.7
    return np.where(read[:, None, None], d * (1 - np.eye(k)), 0.0)


def first_laws(rng: np.random.Generator, k: int, count: int) -> Iterator[Array]:
    """Corners, laws near them, laws between two states, and laws inside."""
    yield from np.eye(k)
    for n in range(count):
        if n % 3 == 0:
            near = float(rng.choice([1e-6, 1e-3, 0.05]))
            yield (1 - near) * np.eye(k)[rng.integers(k)] + near / k
        elif n % 3 == 1:
            x, x_ = rng.choice(k, 2, replace=False)
            share = float(rng.beta(0.7, 0.7))
            yield share * np.eye(k)[x] + (1 - share) * np.eye(k)[x_]
        else:
            yield rng.dirichlet(np.full(k, 0.6))


def bounds_of(chain: ChainPropagation, losses: Array) -> NDArray[np.float64]:
    """What propagation says of every record, by pairs of states: (T, k, k), and by phases before that in a cycle."""
    closed = chain._closed([Run(1, loss) for loss in losses])
    told = chain._told(closed)
    parts = overlaps(told.future, told.past, told.runs)
    return np.array([own + after + before for first, last, after, before, own in parts for _ in range(first, last + 1)])


def check(bounds: Array, law: Array, losses: Array) -> None:
    for t, x, x_, truth in oracle.suprema(law, losses):
        assert bounds[t, x, x_] >= truth * (1 - 1e-7) - 1e-9, (t, x, x_)


@pytest.mark.grid(keep=60)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_density_under_any_first_law_exceeds_propagation(seed: int, slow: bool) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 4)) if seed % 6 != 3 else 3
    p, length = any_chain(rng, k, seed % 6), int(rng.integers(2, 6 if k == 2 else 5))
    losses = any_losses(rng, k, length)
    bounds = bounds_of(ChainPropagation(p, "any"), losses)
    every = [oracle.chain_law(start, p, length) for start in first_laws(rng, k, 12)]
    for law in oracle.most_telling(every, losses, 4 if slow else 1):
        check(bounds, law, losses)


@pytest.mark.grid(keep=12)
@pytest.mark.parametrize("seed", range(80))
def test_no_density_exceeds_propagation_around_a_clock(seed: int) -> None:
    """The first record may be at any phase, with any law."""
    rng = np.random.default_rng(1000 + seed)
    k, phases, length = 2 + seed % 2, int(rng.integers(2, 4)), int(rng.integers(3, 5))
    cycle = np.array([any_chain(rng, k, int(kind)) for kind in rng.integers(0, 3 if k == 2 else 6, size=phases)])
    losses = any_losses(rng, k, length)
    bounds = bounds_of(ChainPropagation(cycle, "any"), losses)
    for phase in range(phases):
        laws_there = [start for start in first_laws(rng, k, 4)]
        every = list[Array]()
        for start in laws_there:
            law = start
            for t in range(length - 1):
                law = law[..., None] * cycle[(phase + t) % phases]
            every.append(law)
        own = np.array([bounds[t, (phase + t) % phases] for t in range(length)])
        for law in oracle.most_telling(every, losses, 1):
            check(own, law, losses)


@pytest.mark.parametrize(("length", "truth"), [(3, 1.469100), (4, 1.936245)])
def test_a_state_of_the_first_record_alone_ties_no_others_together(length: int, truth: float) -> None:
    """The largest over all first laws; with (.39656, .60344, 0) and (.35583, .64417, 0) it is attained."""
    d = np.array([[0, 0.5, 0.5], [0.5, 0, 0], [0.5, 0, 0]])
    losses = np.broadcast_to(d, (length, 3, 3))
    bounds = bounds_of(ChainPropagation(DEAD, "any"), losses)
    assert truth <= bounds[-1, 0, 1] <= truth * 1.001
    start = {3: [0.39656, 0.60344, 0.0], 4: [0.35583, 0.64417, 0.0]}[length]
    found = {(t, x, x_): value for t, x, x_, value in oracle.suprema(oracle.chain_law(start, DEAD, length), losses)}
    assert found[length - 1, 0, 1] == pytest.approx(truth, abs=2e-6)


def test_a_state_of_the_first_record_alone_on_a_long_chain() -> None:
    """4.66 was "proved" of it where the state that dies links the others; the truth is at least 9.33."""
    d = np.array([[0, 0.5, 0.5], [0.5, 0, 0], [0.5, 0, 0]])
    leakage = ChainPropagation(DEAD, "any").leakage([Run(10**6, d)]).total
    assert 9.33 <= leakage <= 9.6


def test_chains_that_forget_come_near_to_the_stationary_start() -> None:
    """Around a clock with steps that are impossible nothing but the sum of all losses was proved: 1,000 here."""
    day, night = [[0.9, 0.1, 0], [0.1, 0.8, 0.1], [0, 0.1, 0.9]], [[0.6, 0.4, 0], [0.2, 0.6, 0.2], [0, 0.3, 0.7]]
    cycle, run = np.array([day] * 8 + [night] * 16), [Run(50_000, 0.02 * (1 - np.eye(3)))]
    stationary, every = (ChainPropagation(cycle, start).leakage(run).total for start in ("stationary", "any"))
    assert stationary < every < 1.05 * stationary
