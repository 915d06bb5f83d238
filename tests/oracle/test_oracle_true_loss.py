"""The loss that a Laplace release really has, by enumeration of all sequences, never exceeds ε."""

from collections.abc import Callable

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import CASES, Array, Case, awkward, dyadic_law, dyadic_matrix
from enumeration import Enumerated, exact_stationary, worst_count_loss
from pufferfish.mechanisms import InfluenceBound

SLACK = 1 + 1e-9
QUERIES: dict[str, Callable[[int], pf.queries.Query]] = {
    "count": lambda k: pf.Count(k - 1),
    "histogram": lambda k: pf.Histogram(),
    "sum": lambda k: pf.Sum([0, 1.5, 0.5][:k]),
    "mean": lambda k: pf.Mean([-1, 0, 2][:k]),
}


def true_loss(truth: Enumerated, calibration: pf.Calibration) -> float:
    return truth.true_loss(calibration.linear.weights, calibration.unit_scale)


def shortened(case: Case) -> tuple[Case, Enumerated]:
    length = min(case.length, 5)
    return Case(case.name, case.initial, case.transition, length), Enumerated.of(
        list(case.initial), case.transition, length
    )


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("query", list(QUERIES))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_group_dp_and_mqm_exact_keep_their_promise(case: Case, query: str, epsilon: float) -> None:
    case, truth = shortened(case)
    if all(len(truth.secrets(node)) < 2 for node in range(case.length)):
        return
    asked = QUERIES[query](case.transition.shape[0])
    for start in (case.initial, "any"):
        chain = pf.MarkovChain(case.transition, start)
        for bound in (pf.GroupDP(chain, case.length), pf.MQMExact(chain, case.length)):
            if (
                case.name == "never-reached"
                and query == "count"
                and bound.name == "mqm-exact"
                and not isinstance(start, str)
            ):
                with pytest.raises(pf.PufferfishError, match="no noise is needed"):
                    bound.calibrate(asked, epsilon)
                continue
            assert true_loss(truth, bound.calibrate(asked, epsilon)) <= epsilon * SLACK


def well_mixed(seed: int, k: int, share: float) -> Array:
    return share * np.full((k, k), 1 / k) + (1 - share) * dyadic_matrix(np.random.default_rng(seed), k)


def starts(seed: int, p: Array) -> list[Array]:
    k = len(p)
    stationary = np.array([float(v) for v in exact_stationary(p)])
    return [dyadic_law(np.random.default_rng(seed), k), np.eye(k)[0], stationary]


@pytest.mark.parametrize("query", list(QUERIES))
@pytest.mark.parametrize("seed", range(4))
def test_mqm_approx_keeps_its_promise(seed: int, query: str) -> None:
    """Chains that mix at once, so that its closed form is of use on nine records."""
    p = well_mixed(seed, 2, 0.875)
    calibration = pf.MQMApprox(pf.MarkovChain(p), 9).calibrate(QUERIES[query](2), 4.0)
    assert calibration.noise_multiplier < 9 / 4.0 * 0.999  # not the trivial quilt: the closed form decides
    for start in starts(seed, p):
        assert true_loss(Enumerated.of(list(start), p, 9), calibration) <= 4.0 * SLACK


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("seed", range(8))
def test_counts_on_longer_chains(seed: int, epsilon: float) -> None:
    """Ninety records, by passes over (state, partial count): quilts with two ends decide."""
    p = well_mixed(seed, 2 + seed % 3, 0.25)
    every = np.ones(90, dtype=bool)
    for start in starts(seed, p):
        chain = pf.MarkovChain(p, start)
        for bound in (pf.MQMExact(chain, 90), pf.MQMApprox(chain, 90)):
            calibration = bound.calibrate(pf.Count(0), epsilon)
            assert calibration.noise_multiplier < 89 / epsilon
            assert worst_count_loss(start, p, every, 0, calibration.unit_scale) <= epsilon * SLACK


@pytest.mark.parametrize("query", list(QUERIES))
@pytest.mark.parametrize("law", [[0.25, 0.75], [0.125, 0.5, 0.375], [0.5, 0.5, 0]], ids=str)
def test_entry_dp_keeps_its_promise_exactly(law: list[float], query: str) -> None:
    """On independent records its loss is ε: no less noise would do."""
    chain = pf.MarkovChain([law] * len(law), law)
    if query == "count" and not law[-1]:
        with pytest.raises(pf.PufferfishError, match="no noise is needed"):
            pf.EntryDP(chain, 4).calibrate(QUERIES[query](len(law)), 1.0)
        return
    calibration = pf.EntryDP(chain, 4).calibrate(QUERIES[query](len(law)), 1.0)
    loss = true_loss(Enumerated.of(law, [law] * len(law), 4), calibration)
    assert loss <= 1.0 * SLACK
    if all(law):
        assert loss > 0.7


STICKY = awkward("sticky", [0.5, 0.5], [[0.984375, 0.015625], [0.03125, 0.96875]], 6)


@pytest.mark.parametrize("make", [pf.GroupDP, pf.MQMExact], ids=["group-dp", "mqm-exact"])
def test_a_quarter_of_the_noise_breaks_the_promise(make: type[InfluenceBound]) -> None:
    """Control: the oracle sees too little noise."""
    truth = Enumerated.of(list(STICKY.initial), STICKY.transition, 6)
    calibration = make(STICKY.chain, 6).calibrate(pf.Count(1), 1.0)
    assert true_loss(truth, calibration) <= 1.0
    assert truth.true_loss(calibration.linear.weights, calibration.unit_scale / 4) > 2.0


def test_noise_for_single_records_breaks_the_promise_on_a_correlated_chain() -> None:
    """Control: why EntryDP refuses this Θ."""
    truth = Enumerated.of(list(STICKY.initial), STICKY.transition, 6)
    coin = pf.EntryDP(pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 6).calibrate(pf.Count(1), 1.0)
    assert true_loss(truth, coin) > 3.0
    with pytest.raises(pf.PufferfishError, match="correlated under theta"):
        pf.EntryDP(STICKY.chain, 6)


def test_a_window_is_charged_as_a_profile() -> None:
    """A count over records 2..4 of 6: leakage of the 0/e0 profile bounds its loss, and is below that of all six."""
    p, q = STICKY.transition, STICKY.initial
    observed = np.array([False, True, True, True, False, False])
    bound = pf.MQMExact(STICKY.chain, 6)
    for e0 in (0.05, 0.3, 1.0):
        leakage = bound.leakage(np.where(observed, e0, 0.0))
        assert worst_count_loss(q, p, observed, 1, 1 / e0) <= leakage * SLACK
        assert leakage < bound.leakage(e0)


class TestGaps:
    """Ten segments of twenty records, ten steps apart: one chain of 290 steps and 200 records."""

    p = np.array([[0.99, 0.01], [0.02, 0.98]])
    q = np.array([2 / 3, 1 / 3])
    whole = np.arange(290) % 30 < 20
    chain = pf.MarkovChain(p)

    def loss(self, observed: np.ndarray, scale: float) -> float:
        return worst_count_loss(self.q, self.p, observed, 1, scale)

    def least(self, affordable: Callable[[float], bool], steps: int) -> float:
        low, high = 0.1, 1000.0
        for _ in range(steps):
            middle = (low + high) / 2
            low, high = (low, middle) if affordable(middle) else (middle, high)
        return high

    def test_the_pass_over_partial_counts_agrees_with_enumeration(self) -> None:
        """The oracle's own check, on a chain short enough to enumerate."""
        q, p = np.array([0.25, 0.75]), np.array([[0.875, 0.125], [0.25, 0.75]])
        truth = Enumerated.of(list(q), p, 7).true_loss(np.array([[0, 1]]), 1.7)
        assert worst_count_loss(q, p, np.ones(7, dtype=bool), 1, 1.7) == pytest.approx(truth, rel=1e-12)

    def test_segments_taken_as_independent_leak_two_and_a_half_times_as_much(self) -> None:
        """The example of the chains-with-gaps rule: 1.000 per segment is 2.468 over the chain."""
        segment = np.ones(20, dtype=bool)
        scale = self.least(lambda b: self.loss(segment, b) <= 1.0, steps=60)
        assert self.loss(segment, scale) == pytest.approx(1.0, abs=1e-9)
        assert self.loss(self.whole, scale) == pytest.approx(2.468, abs=5e-4)

    def test_one_chain_with_unobserved_records_keeps_the_promise(self) -> None:
        spans = pf.ChainLength(steps=290, records=200)
        calibration = pf.MQMExact(self.chain, spans).calibrate(pf.Count(1), 1.0)
        assert self.loss(self.whole, calibration.unit_scale) <= 1.0 * SLACK

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "epsilon", [pytest.param(0.5, marks=pytest.mark.slow), 1.0, pytest.param(4.0, marks=pytest.mark.slow)]
    )
    def test_so_does_the_profile_of_observed_records(self, epsilon: float) -> None:
        bound = pf.MQMExact(self.chain, pf.ChainLength(steps=290, records=200))
        profile = self.whole.astype(float)
        scale = self.least(lambda b: bound.leakage(profile / b) <= epsilon, steps=16)
        assert self.loss(self.whole, scale) <= epsilon * SLACK
        assert scale <= bound.calibrate(pf.Count(1), epsilon).unit_scale * 1.001

    def test_group_dp_counts_observed_records_of_the_whole_chain(self) -> None:
        spans = pf.ChainLength(steps=290, records=200)
        scale = pf.GroupDP(self.chain, spans).calibrate(pf.Count(1), 1.0).unit_scale
        assert scale == pytest.approx(200.0)
        assert self.loss(self.whole, scale) <= 1.0 * SLACK
