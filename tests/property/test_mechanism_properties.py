"""What must hold of every chain: laws between numbers, checked on random ones."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings, strategies as st

import pufferfish as pf
from grids import share_of_examples
from pufferfish._core.numbers.laplace import accuracy
from pufferfish.mechanisms import InfluenceBound

ROUNDING = 1 + 1e-9
EPSILON = st.floats(0.05, 8.0)
LENGTH = st.integers(1, 60)
SLOWER = settings(max_examples=share_of_examples(40))
COUNT = pf.Count(0)
ALL = "stationary any law"


@st.composite
def laws(draw: st.DrawFn, k: int, least: int = 1) -> list[float]:
    weights = draw(st.lists(st.integers(least, 60), min_size=k, max_size=k).filter(any))
    return [w / sum(weights) for w in weights]


@st.composite
def chains(
    draw: st.DrawFn, k: int | None = None, *, least: int = 1, start: str = "stationary any law"
) -> pf.MarkovChain:
    k = k or draw(st.integers(2, 3))
    p = [draw(laws(k, least)) for _ in range(k)]
    kind = draw(st.sampled_from(start.split()))
    return pf.MarkovChain(p, draw(laws(k, 0)) if kind == "law" else kind)


def noise(bound: InfluenceBound, epsilon: float) -> float:
    return bound.calibrate(COUNT, epsilon).noise_multiplier


def has_secret(chain: pf.MarkovChain, length: int) -> bool:
    """Whether some record has two possible values: not so for a certain start and certain steps."""
    return pf.MQMExact(chain, length).leakage(1.0) > 0


@SLOWER
@given(chains(), LENGTH, EPSILON, st.floats(1.0, 4.0))
@example(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0]), 60, 1.0, 1.0)
def test_noise_falls_with_epsilon(chain: pf.MarkovChain, length: int, epsilon: float, factor: float) -> None:
    for make in (pf.GroupDP, pf.MQMExact, pf.MQMApprox):
        bound = make(chain, length)
        assert noise(bound, epsilon * factor) <= noise(bound, epsilon) / factor * ROUNDING


@SLOWER
@given(chains(2), chains(2), LENGTH, EPSILON)
def test_a_larger_class_never_needs_less(
    one: pf.MarkovChain, other: pf.MarkovChain, length: int, epsilon: float
) -> None:
    for make in (pf.GroupDP, pf.MQMExact, pf.MQMApprox):
        together = noise(make([one, other], length), epsilon)
        assert together * ROUNDING >= max(noise(make(member, length), epsilon) for member in (one, other))


@SLOWER
@given(chains(start="law"), LENGTH, EPSILON)
def test_any_start_needs_at_least_as_much_as_each(chain: pf.MarkovChain, length: int, epsilon: float) -> None:
    everywhere = noise(pf.MQMExact(pf.MarkovChain(chain.transition_matrix, "any"), length), epsilon)
    stationary = noise(pf.MQMExact(pf.MarkovChain(chain.transition_matrix), length), epsilon)
    assert everywhere * ROUNDING >= max(noise(pf.MQMExact(chain, length), epsilon), stationary)


@SLOWER
@given(chains(least=0, start="any law"), LENGTH, EPSILON)
def test_exact_is_between_one_record_and_the_group(chain: pf.MarkovChain, length: int, epsilon: float) -> None:
    assume(has_secret(chain, length))
    exact = noise(pf.MQMExact(chain, length), epsilon)
    assert 1 / epsilon <= exact * ROUNDING
    assert exact <= noise(pf.GroupDP(chain, length), epsilon) * ROUNDING
    assert exact <= noise(pf.MQMExact(chain, length, support="paper"), epsilon) * ROUNDING


@SLOWER
@given(chains(), st.integers(1, 300), EPSILON)
def test_approximate_is_never_below_exact(chain: pf.MarkovChain, length: int, epsilon: float) -> None:
    approximate = noise(pf.MQMApprox(chain, length), epsilon)
    assert approximate * ROUNDING >= noise(pf.MQMExact(chain, length), epsilon)
    assert approximate <= length / epsilon * ROUNDING


@given(chains(3, least=0, start="any law"), st.permutations(range(3)), LENGTH, EPSILON)
@SLOWER
def test_names_of_states_change_nothing(chain: pf.MarkovChain, order: list[int], length: int, epsilon: float) -> None:
    q = chain.initial_distribution
    relabelled = pf.MarkovChain(
        chain.transition_matrix[np.ix_(order, order)], q if isinstance(q, str) else q[order], states=list("abc")
    )
    histogram = pf.Histogram()
    assume(has_secret(chain, length))
    first = pf.MQMExact(chain, length).calibrate(histogram, epsilon)
    second = pf.MQMExact(relabelled, length).calibrate(histogram, epsilon)
    assert second.scale == pytest.approx(first.scale, rel=1e-9)


@SLOWER
@given(chains(least=0, start="any law"), LENGTH, st.integers(0, 40), EPSILON)
def test_a_longer_chain_never_needs_less(chain: pf.MarkovChain, length: int, more: int, epsilon: float) -> None:
    assume(has_secret(chain, length))
    short = noise(pf.MQMExact(chain, length), epsilon)
    assert noise(pf.MQMExact(chain, length + more), epsilon) * ROUNDING >= short
    both = noise(pf.MQMExact(chain, [length, length + more]), epsilon)
    assert both == pytest.approx(noise(pf.MQMExact(chain, length + more), epsilon), rel=1e-12)


@SLOWER
@given(chains(), LENGTH, EPSILON, st.sampled_from([pf.GroupDP, pf.MQMExact, pf.MQMApprox]))
@example(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0]), 60, 1.0, pf.MQMExact)
def test_calibration_is_the_inverse_of_leakage(
    chain: pf.MarkovChain, length: int, epsilon: float, make: type[InfluenceBound]
) -> None:
    bound = make(chain, length)
    for query in (COUNT, pf.Histogram(), pf.Sum([0, 2.5, 1][: chain.k])):
        calibration = bound.calibrate(query, epsilon)
        assert bound.leakage(calibration.record_loss) == calibration.prove_leakage() <= epsilon
        assert bound.leakage(calibration.record_loss * (1 + 1e-6)) > epsilon * (1 - 1e-5)
        assert bound.leakage(calibration.record_loss * (1 + 1e-6)) > bound.leakage(calibration.record_loss)


@st.composite
def profiled(draw: st.DrawFn) -> tuple[pf.MarkovChain, np.ndarray, np.ndarray]:
    chain, length = draw(chains()), draw(st.integers(2, 25))
    losses = st.one_of(st.just(0.0), st.floats(1e-6, 2.0))
    profiles = draw(st.lists(st.lists(losses, min_size=length, max_size=length), min_size=2, max_size=2))
    return chain, np.array(profiles[0]), np.array(profiles[1])


@SLOWER
@given(profiled())
def test_leakage_grows_with_the_profile(given_: tuple[pf.MarkovChain, np.ndarray, np.ndarray]) -> None:
    chain, profile, more = given_
    for make in (pf.GroupDP, pf.MQMExact, pf.MQMApprox):
        bound = make(chain, len(profile))
        leakage = bound.leakage(profile)
        slack = 1e-10
        assert profile.max() <= leakage + slack
        assert leakage <= bound.leakage(profile + more) + slack
        assert leakage <= bound.leakage(float(profile.max())) + slack
        assert leakage <= profile.sum() + slack


@SLOWER
@given(chains(), LENGTH, st.floats(1e-3, 3.0), st.floats(1e-3, 3.0))
def test_uniform_losses_add_to_no_more_than_their_leakages(
    chain: pf.MarkovChain, length: int, one: float, other: float
) -> None:
    for make in (pf.GroupDP, pf.MQMExact, pf.MQMApprox):
        bound = make(chain, length)
        assert bound.leakage(one + other) <= (bound.leakage(one) + bound.leakage(other)) * ROUNDING


@given(chains(least=0, start="any law"), st.integers(1, 30), st.integers(1, 30))
@SLOWER
def test_fewer_quilts_never_need_less(chain: pf.MarkovChain, length: int, longest: int) -> None:
    restricted = pf.MQMExact(chain, length, max_quilt_length=longest).leakage(0.5)
    assert restricted * ROUNDING >= pf.MQMExact(chain, length).leakage(0.5)


@given(st.floats(1e-3, 1e4), st.floats(1e-6, 0.999), st.integers(1, 5))
def test_accuracy_falls_with_alpha(scale: float, alpha: float, together: int) -> None:
    t = accuracy(scale, alpha, together=together)
    assert t <= accuracy(scale, alpha / 2, together=together)
    assert t <= accuracy(scale, alpha, together=together + 1)
