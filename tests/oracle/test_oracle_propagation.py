"""Leakage propagation against brute force: no density with the given record-level losses leaks more.

On binary chains the bound is the supremum over all such densities; with more states it lies between that and quilts.
"""

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import CASES, Array, Case, dyadic_law, dyadic_matrix
from enumeration import Enumerated, exact_stationary, worst_count_loss
from propagation_oracle import (
    chain_law,
    density_loss,
    is_lipschitz,
    log_of_fraction,
    losses_per_pair,
    potentials,
    powers_of_two_in_cone,
    random_densities,
    supremum,
    tilts,
    two_state_leakage,
    zero_filled_leakage,
)
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.phi.phi import Kernel, LogRatios, certify
from pufferfish._core.propagation import chain as propagation
from pufferfish._core.propagation.sweep import Run

SLACK = 1e-9
UNREACHED = np.array([[0.95, 0.05, 0], [0.05, 0.95, 0], [0.5, 0.5, 0]])
ALTERNATING = np.array([[0.2, 0.8], [0.7, 0.3]])


def propagated(initial: object, transition: object, length: object, losses: object) -> float:
    return pf.LeakagePropagation(pf.MarkovChain(transition, initial), length).leakage(losses)


def kinds_of_loss(rng: np.random.Generator, length: int, k: int) -> dict[str, Array]:
    """One of each shape, with windows (0 outside), asymmetric pairs and several sizes."""
    window = np.zeros(length)
    window[length // 3 : length // 3 + max(1, length // 2)] = 0.7
    asymmetric = rng.uniform(0, 1.5, size=(k, k)) * (1 - np.eye(k))
    several = rng.uniform(0, 1, size=(length, k, k)) * rng.choice([0, 0.2, 2], size=(length, 1, 1)) * (1 - np.eye(k))
    across = np.zeros((k, k))
    across[0, 1:] = across[1:, 0] = 0.9
    return {
        "number": np.array(0.5),
        "window": window,
        "profile": rng.uniform(0, 1, length) * rng.choice([0, 1, 3], length),
        "asymmetric": asymmetric,
        "count": across,
        "pairs-and-records": several,
        "tiny": np.array(1e-9),
        "large": np.array(2.0),
    }


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_density_leaks_more(case: Case) -> None:
    k, rng = len(case.initial), np.random.default_rng(len(case.name))
    law = chain_law(case.initial, case.transition, case.length)
    bound = pf.LeakagePropagation(case.chain, case.length)
    for losses in kinds_of_loss(rng, case.length, k).values():
        d = losses_per_pair(losses, case.length, k)
        leakage = bound.leakage(losses)
        for log_m in [*tilts(d), *random_densities(rng, d, 15)]:
            assert density_loss(law, log_m) <= leakage + SLACK


def test_the_densities_have_the_losses_they_claim() -> None:
    """The oracle's own check."""
    rng = np.random.default_rng(1)
    for losses in kinds_of_loss(rng, 4, 3).values():
        d = losses_per_pair(losses, 4, 3)
        for log_m in [*tilts(d), *random_densities(rng, d, 25)]:
            assert is_lipschitz(log_m, d)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_laplace_release_leaks_more(case: Case) -> None:
    k, length = len(case.initial), min(case.length, 5)
    truth = Enumerated.of(list(case.initial), case.transition, length)
    bound = pf.LeakagePropagation(case.chain, length)
    for query in (pf.Count(k - 1), pf.Histogram(), pf.Sum([0, 1.5, 0.5][:k])):
        linear = query.bind(bound.theta.states, length)
        for scale in (0.5, 3.0):
            leakage = bound.leakage(linear.unit_distance / scale)
            assert truth.true_loss(linear.weights, scale) <= leakage + SLACK


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_calibrated_releases_keep_their_promise(case: Case, epsilon: float) -> None:
    k, length = len(case.initial), min(case.length, 5)
    truth = Enumerated.of(list(case.initial), case.transition, length)
    if all(len(truth.secrets(node)) < 2 for node in range(length)):
        return
    for start in (case.initial, "any"):
        chain = pf.MarkovChain(case.transition, start)
        for query in (pf.Count(k - 1), pf.Histogram()):
            if case.name == "never-reached" and isinstance(query, pf.Count) and not isinstance(start, str):
                continue  # a count of what never occurs needs no noise
            found = pf.LeakagePropagation(chain, length).calibrate(query, epsilon)
            assert truth.true_loss(found.linear.weights, found.unit_scale) <= epsilon + SLACK
            assert found.scale <= pf.MQMExact(chain, length).calibrate(query, epsilon).scale * (1 + SLACK)


BINARY = [case for case in CASES if len(case.initial) == 2]


@pytest.mark.parametrize("case", BINARY, ids=str)
def test_on_two_states_it_is_the_supremum_over_densities(case: Case) -> None:
    rng, length = np.random.default_rng(len(case.name)), min(case.length, 6)
    law = chain_law(case.initial, case.transition, length)
    bound = pf.LeakagePropagation(case.chain, length)
    for losses in kinds_of_loss(rng, length, 2).values():
        assert bound.leakage(losses) == pytest.approx(
            supremum(law, losses_per_pair(losses, length, 2)), rel=1e-6, abs=1e-6
        )


@pytest.mark.parametrize("seed", range(12))
def test_on_positively_correlated_two_states_it_is_the_loss_of_a_count(seed: int) -> None:
    rng = np.random.default_rng(seed)
    high, low = sorted(rng.uniform(0, 1, 2), reverse=True)
    p, q = np.array([[high, 1 - high], [low, 1 - low]]), rng.dirichlet([1, 1])
    for scale in (0.4, 2.0):
        count = worst_count_loss(q, p, np.ones(9, dtype=bool), 1, scale)
        assert propagated(q, p, 9, 1 / scale) == pytest.approx(count, rel=1e-6)
        other = worst_count_loss(q, p[::-1], np.ones(9, dtype=bool), 1, scale)  # negatively correlated
        assert propagated(q, p[::-1], 9, 1 / scale) >= other - SLACK


def test_on_alternating_states_a_count_leaks_far_less_than_the_bound(record_property: object) -> None:
    """No flaw: an alternating sum has the count's record-level losses, and needs all the noise."""
    pi = np.array([7, 8]) / 15
    bound = pf.LeakagePropagation(pf.MarkovChain(ALTERNATING), 100)
    found = bound.calibrate(pf.Count(1), 1.0).scale
    low, high = 0.1, 10.0
    for _ in range(40):
        middle = (low + high) / 2
        enough = worst_count_loss(pi, ALTERNATING, np.ones(100, dtype=bool), 1, middle) <= 1
        low, high = (low, middle) if enough else (middle, high)
    record_property("scale of propagation", found)
    record_property("exact scale of a count", high)
    assert found == pytest.approx(2.940, abs=5e-4)
    assert high == pytest.approx(0.690, abs=5e-4)
    assert two_state_leakage(pi, ALTERNATING, np.full(100, 1 / found)) == pytest.approx(1.0, rel=1e-5)
    signs = np.where(np.arange(8) % 2 == 0, 0.5, -0.5)[:, None] * np.array([1, -1])
    attained = density_loss(chain_law(pi, ALTERNATING, 8), potentials(signs))
    assert propagated("stationary", ALTERNATING, 8, 1.0) == pytest.approx(attained, rel=1e-6)


@pytest.mark.parametrize("case", [c for c in CASES if len(c.initial) == 3], ids=str)
def test_on_three_states_it_lies_between_the_supremum_and_quilts(case: Case) -> None:
    rng, length = np.random.default_rng(len(case.name)), min(case.length, 4)
    law = chain_law(case.initial, case.transition, length)
    bound, quilts = pf.LeakagePropagation(case.chain, length), pf.MQMExact(case.chain, length)
    for losses in kinds_of_loss(rng, length, 3).values():
        leakage = bound.leakage(losses)
        assert leakage <= quilts.leakage(losses)
        assert leakage >= supremum(law, losses_per_pair(losses, length, 3)) - SLACK


@pytest.mark.parametrize("seed", range(6))
def test_stationary_is_the_start_at_the_stationary_law(seed: int) -> None:
    k = 2 + seed % 3
    p = dyadic_matrix(np.random.default_rng(seed), k)
    pi = np.array([float(v) for v in exact_stationary(p)])
    for length in (1, 2, 6, 40, 5000):
        for loss in (0.3,):
            found, given = propagated("stationary", p, length, loss), propagated(pi, p, length, loss)
            assert found == pytest.approx(given, rel=1e-6)


ANY = [
    *(dyadic_matrix(np.random.default_rng(seed), 2 + seed % 2) for seed in range(4)),
    *(dyadic_matrix(np.random.default_rng(seed), 2 + seed % 2, zeros=0.35) for seed in range(20, 28)),
    UNREACHED,
    np.array([[0.0, 1.0], [1.0, 0.0]]),
    np.array([[0.75, 0.25], [0.0, 1.0]]),
    np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.01, 0.99, 0.0]]),
]


def initial_laws(k: int, rng: np.random.Generator) -> list[Array]:
    corners = [np.eye(k)[x] for x in range(k)]
    near = [(1 - 1e-9) * corner + 1e-9 * rng.dirichlet(np.ones(k)) for corner in corners]
    inside = [rng.dirichlet(np.full(k, a)) for a in (0.1, 0.3, 1, 1, 5)]
    laws = [*corners, *near, *inside, dyadic_law(rng, k, 0.4)]
    return [np.where(law < 1e-12, 0.0, law) for law in laws]  # smaller masses have a test of their own


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("p", ANY, ids=range(len(ANY)))
def test_no_initial_law_leaks_more_than_any(p: Array) -> None:
    k, length = len(p), 5
    rng = np.random.default_rng(k)
    every = pf.LeakagePropagation(pf.MarkovChain(p, "any"), length)
    for losses in kinds_of_loss(rng, length, k).values():
        leakage, d = every.leakage(losses), losses_per_pair(losses, length, k)
        densities = [*tilts(d), *random_densities(rng, d, 10)]
        for q in initial_laws(k, rng):
            assert propagated(q, p, length, losses) <= leakage + 1e-8
            law = chain_law(q, p, length)
            assert max(density_loss(law, log_m) for log_m in densities) <= leakage + SLACK


@pytest.mark.parametrize("p", ANY, ids=range(len(ANY)))
def test_no_density_leaks_more_than_any_from_the_worst_of_many_laws(p: Array) -> None:
    k = len(p)
    rng = np.random.default_rng(k + 10)
    d = losses_per_pair(0.9, 3, k)
    leakage = propagated("any", p, 3, 0.9)
    for q in initial_laws(k, rng):
        assert supremum(chain_law(np.maximum(q, 0), p, 3), d) <= leakage + SLACK


class TestStatesThatCannotOccur:
    """Their bounds are absent: read as zeros they link the other states and too little is proved."""

    q, length, loss = np.array([0.5, 0.5, 0]), 7, 0.5

    def truth(self) -> float:
        law = chain_law(self.q, UNREACHED, self.length)
        return max(density_loss(law, log_m) for log_m in tilts(losses_per_pair(self.loss, self.length, 3)))

    def test_the_leakage_is_that_of_an_actual_density(self) -> None:
        leakage = propagated(self.q, UNREACHED, self.length, self.loss)
        assert leakage == pytest.approx(2.8427, abs=5e-5)
        assert leakage == pytest.approx(self.truth(), rel=1e-6)
        assert leakage == pytest.approx(propagated([0.5, 0.5], UNREACHED[:2, :2], self.length, self.loss), rel=1e-9)

    @pytest.mark.parametrize("fill_past_rows", [True, False])
    def test_zeros_in_their_place_would_prove_too_little(self, fill_past_rows: bool) -> None:
        losses = np.full(self.length, self.loss)
        naive = zero_filled_leakage(self.q, UNREACHED, losses, fill_past_rows=fill_past_rows)
        assert naive < self.truth() - 0.05
        assert propagated(self.q, UNREACHED, self.length, self.loss) > naive + 0.05
        if fill_past_rows:
            assert naive == pytest.approx(2.775, abs=5e-4)

    @pytest.mark.parametrize("start", ["any", [0.25, 0.25, 0.5], [0, 0, 1]])
    def test_states_left_for_good(self, start: object) -> None:
        laws = initial_laws(3, np.random.default_rng(0)) if start == "any" else [np.array(start)]
        leakage, d = propagated(start, UNREACHED, 6, 0.5), losses_per_pair(0.5, 6, 3)
        for q in laws:
            law = chain_law(q, UNREACHED, 6)
            assert max(density_loss(law, log_m) for log_m in tilts(d)) <= leakage + SLACK


class TestGaps:
    """Unobserved records are records without loss; segments between gaps are not chains of their own."""

    p, q = np.array([[0.99, 0.01], [0.02, 0.98]]), np.array([2 / 3, 1 / 3])
    whole = np.arange(290) % 30 < 20

    def test_a_profile_with_zeros_is_the_supremum_over_densities_of_the_observed_records(self) -> None:
        for observed in ([1, 0, 1, 0, 0, 1], [0, 1, 1, 0, 1, 0], [1, 0, 0, 0, 0, 1]):
            profile = 0.8 * np.array(observed, dtype=float)
            for p in (self.p, ALTERNATING):
                law = chain_law([0.5, 0.5], p, 6)
                found = propagated([0.5, 0.5], p, 6, profile)
                assert found == pytest.approx(supremum(law, losses_per_pair(profile, 6, 2)), rel=1e-6)

    def test_a_gap_is_a_power_of_the_matrix(self) -> None:
        """Records 0, 3, 6, … of a chain are a chain with P³: the observed records leak what they leak there."""
        profile = np.where(np.arange(13) % 3 == 0, 0.6, 0.0)
        cubed = two_state_leakage(self.q, np.linalg.matrix_power(self.p, 3), np.full(5, 0.6))
        assert propagated(self.q, self.p, 13, profile) == pytest.approx(cubed, rel=1e-6)

    def test_noise_for_each_segment_alone_protects_too_little(self) -> None:
        segment = pf.LeakagePropagation(pf.MarkovChain(self.p), 20)
        scale = segment.calibrate(pf.Count(1), 1.0).unit_scale
        assert worst_count_loss(self.q, self.p, np.ones(20, dtype=bool), 1, scale) <= 1 + SLACK
        loss = worst_count_loss(self.q, self.p, self.whole, 1, scale)
        assert loss > 2.4
        assert propagated("stationary", self.p, 290, self.whole / scale) == pytest.approx(loss, rel=1e-5)

    def test_steps_without_records_cover_every_place_of_the_records(self) -> None:
        length = pf.ChainLength(steps=7, records=3)
        for start in ("stationary", "any", [0.2, 0.8]):
            chain = pf.MarkovChain(ALTERNATING, start)
            bound = pf.LeakagePropagation(chain, length)
            scale = bound.calibrate(pf.Count(1), 1.0).scale
            q = np.array([7, 8]) / 15 if isinstance(start, str) else np.array(start)
            for places in range(1, 128):
                observed = np.array([places >> t & 1 for t in range(7)], dtype=bool)
                if observed.sum() == 3:
                    assert worst_count_loss(q, ALTERNATING, observed, 1, scale) <= 1 + SLACK


class TestCone:
    """Φ is never below the ratio at any v of the cone, in exact arithmetic."""

    @staticmethod
    def laws(rng: np.random.Generator, k: int, kind: str) -> Array:
        weights = rng.dirichlet(np.ones(k), size=k)
        if kind == "zeros":
            weights = weights * (rng.random((k, k)) < 0.5)
            weights[np.arange(k), rng.integers(k, size=k)] += 0.25
        elif kind == "ties":
            weights = np.repeat(rng.integers(1, 4, size=(1, k)) / 1.0, k, axis=0)
            weights[0] = rng.integers(1, 4, size=k)
        elif kind.startswith("masses"):
            weights = weights * np.where(rng.random((k, k)) < 0.5, float(kind.split()[1]), 1.0)
        return weights / weights.sum(axis=1, keepdims=True)

    @staticmethod
    def log_sums(laws: Array, v: list[Fraction]) -> Array:
        """Logarithms of every law's exact sum over v."""
        sums = [sum((Fraction(float(a)) * b for a, b in zip(law, v, strict=True)), Fraction(0)) for law in laws]
        return np.array([log_of_fraction(total) if total else -math.inf for total in sums])

    @staticmethod
    def exponents(rng: np.random.Generator, k: int) -> np.ndarray:
        c = rng.integers(0, rng.choice([2, 5, 40]), size=(k, k)) * (1 - np.eye(k, dtype=np.int64))
        for z in range(k):
            c = np.minimum(c, c[:, z, None] + c[None, z, :])
        return c

    @pytest.mark.parametrize("kind", ["plain", "zeros", "ties", "masses 1e-12", "masses 1e-200"])
    def test_it_is_never_below_a_feasible_ratio(self, kind: str) -> None:
        rng, ratios = np.random.default_rng(len(kind)), {k: LogRatios() for k in range(2, 6)}
        below = -math.inf
        for _ in range(25):
            k = int(rng.integers(2, 6))
            laws, c = self.laws(rng, k, kind), self.exponents(rng, k)
            with np.errstate(divide="ignore"):
                kernel = Kernel.of_logs(np.log(laws), np.ones(k, dtype=np.bool_), 4 * UNIT)
            # the constraints with a = log 2^c rounded down: exactly satisfied by the fractions below
            phi = ratios[k](kernel, c * math.log(2))
            vertices = [[Fraction(2) ** int(c[y, z]) for y in range(k)] for z in range(k)]
            vertices += [[Fraction(2) ** -int(c[z, y]) for y in range(k)] for z in range(k)]
            vertices += [powers_of_two_in_cone(rng, c) for _ in range(15)]
            logs = np.array([self.log_sums(laws, v) for v in vertices])
            best = (logs[:, :, None] - logs[:, None, :]).max(axis=0)
            assert np.all(phi >= best - 1e-13 * (1 + np.abs(logs).max()))
            below = max(below, float((best - phi)[~np.eye(k, dtype=bool)].max()))
        assert below > -1e-9  # attained: neither Φ nor the oracle is slack

    def test_any_flows_prove_a_bound_that_holds(self) -> None:
        rng = np.random.default_rng(5)
        for round_ in range(60):
            k = int(rng.integers(2, 6))
            laws, c = self.laws(rng, k, ("plain", "zeros", "masses 1e-12")[round_ % 3]), self.exponents(rng, k)
            with np.errstate(divide="ignore"):
                kernel = Kernel.of_logs(np.log(laws), np.ones(k, dtype=np.bool_), 4 * UNIT)
            x, x_ = (index.ravel() for index in np.indices((k, k)))
            arcs = int(rng.integers(1, 2 * k))
            tails, heads = (rng.integers(k, size=(x.size, arcs)) for _ in range(2))
            flows = rng.normal(size=tails.shape) * rng.choice([1e-250, 1e-9, 0.1, 1, 1e300], size=tails.shape)
            spoilt = rng.random(tails.shape)
            flows[spoilt < 0.05], flows[spoilt > 0.95] = np.nan, np.inf
            flows[(spoilt > 0.9) & (spoilt < 0.95)] = -np.inf
            proved = certify(kernel, c * math.log(2), x, x_, tails, heads, flows)
            assert not np.isnan(proved).any()
            for _ in range(5):
                v = powers_of_two_in_cone(rng, c)
                logs = self.log_sums(laws, v)
                assert np.all(proved >= logs[x] - logs[x_] - 1e-13 * (1 + np.abs(logs).max()))

    def test_good_flows_prove_a_good_bound(self) -> None:
        """Control: what garbage proves is weaker, so the test above does not pass for want of power."""
        laws, a = np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([[0, 1.0], [1.0, 0]])
        kernel = Kernel.of_logs(np.log(laws), np.ones(2, dtype=np.bool_), 4 * UNIT)
        one, other, arc = np.array([0]), np.array([1]), np.array([[0]])
        v = np.array([math.e, 1.0])
        ratio = float(laws[0] @ v / (laws[1] @ v))
        flow = np.array([[0.9 - ratio * 0.4]])
        nothing = certify(kernel, a, one, other, arc, arc + 1, np.zeros((1, 1)))
        assert certify(kernel, a, one, other, arc, arc + 1, flow) == pytest.approx(math.log(ratio), rel=1e-6)
        assert nothing == pytest.approx(math.log(0.9 / 0.4))


@pytest.mark.parametrize("loss", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("start", ["stationary", (1.0, 0.0), (0.3, 0.7)], ids=str)
@pytest.mark.parametrize(
    "p", [[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.7, 0.3]], [[0.97, 0.03], [0.01, 0.99]]], ids=str
)
def test_a_million_records_leak_what_a_few_hundred_do_and_no_less(p: object, start: object, loss: float) -> None:
    first = np.array([float(v) for v in exact_stationary(p)]) if start == "stationary" else start
    found = propagated(start, p, 10**6, loss)
    for length in (300, 1000):
        assert found >= two_state_leakage(first, p, np.full(length, loss)) - 1e-12
    assert found == pytest.approx(two_state_leakage(first, p, np.full(1000, loss)), rel=1e-4)


def test_long_chains_with_a_state_left_for_good_leak_what_short_ones_do() -> None:
    short, long = (propagated("any", UNREACHED, length, 0.02) for length in (300, 2100))
    assert long == pytest.approx(short, rel=1e-4)


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("start", ["stationary", "any", (1.0, 0.0, 0.0), (0.2, 0.3, 0.5)], ids=str)
def test_other_questions_do_not_change_an_answer(start: object) -> None:
    rng = np.random.default_rng(3)
    chain = pf.MarkovChain(0.2 * dyadic_matrix(rng, 3) + 0.8 * np.eye(3), start)
    asked = pf.LeakagePropagation(chain, 200)
    questions: list[Array] = []
    for _ in range(2):
        window, first = np.zeros(200), int(rng.integers(0, 190))
        window[first : first + int(rng.integers(1, 150))] = rng.choice([1e-6, 0.01, 0.4, 3.0])
        pairs = rng.uniform(0, rng.choice([0.01, 1.0]), size=(3, 3)) * (1 - np.eye(3))
        questions += [np.array(10.0 ** rng.uniform(-7, 1)), window, pairs]
    answers = [asked.leakage(question) for question in questions]
    for question, answer in zip(questions, answers, strict=True):
        fresh = pf.LeakagePropagation(chain, 200).leakage(question)
        assert answer == pytest.approx(fresh, rel=1e-5)
        assert asked.leakage(question) == pytest.approx(fresh, rel=1e-5)


@pytest.mark.parametrize("k", [2, 3])
def test_a_profile_is_not_taken_for_a_matrix_with_the_same_numbers(k: int) -> None:
    """Losses of shape (k²,) and (k, k) hold the same bytes; the one asked first decides nothing about the other."""
    chain = pf.MarkovChain(0.1 / k + 0.9 * np.eye(k))
    matrix = 1 - np.eye(k)
    fresh = pf.LeakagePropagation(chain, k * k).leakage(matrix)
    asked = pf.LeakagePropagation(chain, k * k)
    profile = asked.leakage(matrix.ravel())
    assert asked.leakage(matrix) == pytest.approx(fresh, rel=1e-9)
    law = chain_law(np.full(k, 1 / k), chain.transition_matrix, k * k) if k == 2 else None
    if law is not None:
        assert supremum(law, losses_per_pair(matrix, 4, 2)) <= asked.leakage(matrix) + SLACK
    assert profile < fresh


def profiles(length: int) -> dict[str, Array]:
    rng, t = np.random.default_rng(length), np.arange(length)
    return {
        "many-runs": np.repeat(rng.choice([0, 0.1, 0.5, 1.5], size=-(-length // 7)), 7)[:length],
        "every-record-its-own": rng.uniform(0, 0.8, length),
        "long-window": np.where((t > length // 10) & (t < length - 50), 0.3, 0.0),
        "window-far-from-the-start": np.where(t >= length - 20, 0.7, 0.0),
        "window-at-the-start": np.where(t < 15, 0.7, 0.0),
        "two-windows": np.where((t < 30) | (t > length - 30), 0.4, 0.0),
        "one-record": np.where(t == length // 2, 2.0, 0.0),
        "steps": np.where(t < length // 2, 0.05, 0.6),
        "steps-down": np.where(t < length // 2, 0.6, 0.05),
    }


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("profile", list(profiles(10)))
@pytest.mark.parametrize("start", ["stationary", (1.0, 0.0), (0.02, 0.98)], ids=str)
@pytest.mark.parametrize("p", [[[0.9, 0.1], [0.4, 0.6]], [[0.995, 0.005], [0.02, 0.98]]], ids=str)
def test_profiles_of_runs_and_windows(p: object, start: object, profile: str, slow: bool) -> None:
    length = 700 if slow else 120
    losses = profiles(length)[profile]
    pi = np.array([float(v) for v in exact_stationary(p)])
    exact = two_state_leakage(pi if start == "stationary" else start, p, losses)
    found = propagated(start, p, length, losses)
    assert found >= exact - 1e-12
    assert found == pytest.approx(exact, rel=1e-4)
    assert propagated("any", p, length, losses) >= exact - 1e-12


LONG = profiles(9000)


FAR = pytest.param("window-far-from-the-start", marks=pytest.mark.slow)


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("profile", ["long-window", FAR, "window-at-the-start", "two-windows"])
def test_windows_of_long_chains(profile: str) -> None:
    """Beyond the records that are looked at one by one."""
    p, q, losses = [[0.9, 0.1], [0.4, 0.6]], [1.0, 0.0], LONG[profile]
    exact, found = two_state_leakage(q, p, losses), propagated(q, p, 9000, losses)
    assert found >= exact - 1e-12
    assert found <= propagated(q, p, 9000, float(losses.max())) * (1 + 1e-5)


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("profile", [pytest.param("many-runs", marks=pytest.mark.slow), "steps", "steps-down"])
def test_long_profiles_that_change_are_covered(profile: str) -> None:
    p, q, losses = [[0.9, 0.1], [0.4, 0.6]], [1.0, 0.0], LONG[profile]
    assert propagated(q, p, 9000, losses) >= two_state_leakage(q, p, losses) - 1e-12


@pytest.mark.parametrize("profile", [pytest.param("many-runs", marks=pytest.mark.slow), "steps", "steps-down"])
def test_less_loss_does_not_leak_more_on_long_chains(profile: str) -> None:
    p, q, losses = [[0.9, 0.1], [0.4, 0.6]], [1.0, 0.0], LONG[profile]
    assert propagated(q, p, 9000, losses) <= propagated(q, p, 9000, float(losses.max())) * (1 + 1e-5)


@pytest.mark.parametrize("mass", [1e-9, 1e-13, 1e-15, 1e-17, 1e-100])
@pytest.mark.parametrize("p", [[[0.88, 0.12], [0.47, 0.53]], [[1.0, 0.0], [0.5, 0.5]]], ids=str)
def test_a_start_near_a_corner_leaks_what_the_supremum_is(p: object, mass: float) -> None:
    q, losses = [mass, 1 - mass], np.array([0, 0.7, 0.7, 0, 0])
    exact = supremum(chain_law(q, p, 5), losses_per_pair(losses, 5, 2))
    assert propagated(q, p, 5, losses) == pytest.approx(exact, rel=1e-6, abs=1e-6)
    assert propagated(q, p, 5, losses) <= propagated("any", p, 5, losses) + 1e-8


NEARLY_IMPOSSIBLE = [
    [0.977910864641124, 0, 0.022089135358876095],
    [0.9748573273023132, 0.01968270384928644, 0.005459968848400432],
    [0.9645352504521014, 7.545057279685453e-18, 0.035464749547898564],
]


def test_a_nearly_impossible_state_does_not_spoil_the_proof() -> None:
    """Rounding pushed into a state of mass 1e-19 would make the flows prove little: 2.16 instead of 1.78."""
    chain = pf.MarkovChain(NEARLY_IMPOSSIBLE)
    found = pf.LeakagePropagation(chain, 3).calibrate(pf.Count([0, 1]), 1.7820217363288047)
    assert pf.LeakagePropagation(chain, 3).leakage(found.record_loss) == pytest.approx(1.7820217363288047, rel=1e-5)


def test_threads_that_share_a_bound_get_what_fresh_ones_say() -> None:
    chain = pf.MarkovChain([[0.99, 0.008, 0.002], [0.02, 0.97, 0.01], [0.01, 0.03, 0.96]], [0.999, 0.0005, 0.0005])
    shared, losses = pf.LeakagePropagation(chain, 120), [0.1, 0.2, 0.3, 0.31]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(shared.leakage, losses))
    finally:
        sys.setswitchinterval(interval)
    assert found == [pf.LeakagePropagation(chain, 120).leakage(loss) for loss in losses]


@pytest.mark.parametrize("first", [0.01, 0.0005])
def test_a_long_profile_leaks_the_same_whatever_was_asked_before(first: float) -> None:
    p = [[0.6672901884383884, 0.33270981156161167], [0.36544564481383596, 0.6345543551861641]]
    day = pf.Profile([(4447, 0.012833780745375624), (553, [[0, 0.0078784], [0.0515997, 0]])])
    asked = pf.LeakagePropagation(pf.MarkovChain(p), 5000)
    asked.leakage(first)
    assert asked.leakage(day) == pf.LeakagePropagation(pf.MarkovChain(p), 5000).leakage(day)


def test_a_step_that_is_no_number_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = np.array([[0, np.nan], [np.nan, 0]])
    monkeypatch.setattr("pufferfish._core.phi.phi.LogRatios.__call__", lambda *_: nothing)
    monkeypatch.setattr("pufferfish._core.phi.phi.LogRatios.walk", lambda *_: nothing[None])
    chain = propagation.ChainPropagation(np.array([[0.9, 0.1], [0.4, 0.6]]), "stationary")
    assert chain.leakage([Run(5, 0.1 * (1 - np.eye(2)))]).total == math.inf
