"""Values that cannot occur are no loss, and records that are certain are none, for every mechanism."""

from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.chains.markov import places_of
from pufferfish.errors import ModelError, NotApplicableError, QueryError

IMPOSSIBLE = pf.MarkovChain([[0.5, 0.5, 0.0]] * 3, [0.5, 0.5, 0.0])
READ = (pf.EntryDP, pf.GK16, pf.MQMExact, pf.LeakagePropagation)
"""Mechanisms that read from Θ what can occur."""


@pytest.mark.parametrize("make", READ, ids=lambda make: make.name)
def test_a_state_that_cannot_occur_is_no_change(make: Any) -> None:
    scale = make(IMPOSSIBLE, 10).calibrate(pf.Sum([0, 1, 100]), 1.0).scale
    assert scale == pytest.approx(2.0 if make is pf.GK16 else 1.0, rel=1e-9)


def test_differential_privacy_of_groups_asks_no_model_what_can_occur() -> None:
    for bound in (pf.GroupDP(IMPOSSIBLE, 10), pf.ParticipantDP([10], theta=IMPOSSIBLE)):
        assert bound.calibrate(pf.Sum([0, 1, 100]), 1.0).scale == pytest.approx(1000)


@pytest.mark.parametrize("make", [pf.MQMExact, pf.LeakagePropagation], ids=lambda make: make.name)
def test_a_state_of_the_first_record_alone_counts_there_alone(make: Any) -> None:
    """Sum over ten records that keep their state but the first, which may be far away: 100 + 9, not 1000."""
    p = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]
    chain = pf.MarkovChain(p, [0.25, 0.25, 0.5])
    assert make(chain, 10).calibrate(pf.Sum([0, 1, 100]), 1.0).scale <= 109 * (1 + 1e-9)
    wide = pf.IntervalChain(np.array(p) * 0.9, np.minimum(np.array(p) * 1.1, 1))
    assert pf.MQMExact(wide, 10).calibrate(pf.Sum([0, 1, 100]), 1.0).scale <= 109 * (1 + 1e-9)


SURE = pf.BayesianNetwork({"a": pf.CPT(["no"], [1.0]), "b": pf.CPT(["no"], [[1.0]], ["a"])})
"""Every column has one state."""


@pytest.mark.parametrize("make", [pf.Wasserstein, pf.ExactLaplace, pf.LeakagePropagation, pf.MarkovQuilt, pf.GroupDP])
@pytest.mark.parametrize(
    "query",
    [
        pf.Histogram(),
        pf.Marginals(["a"]),
        pf.Marginals(),
        pf.Subset(pf.Histogram(), ["b"]),
        pf.Weighted(pf.Histogram(), [1, 2]),
        pf.Weighted(pf.Histogram(relative=False), [0, -1]),
    ],
    ids=repr,
)
def test_columns_of_one_state_have_nothing_to_hide(make: Any, query: Any) -> None:
    with pytest.raises(
        (ModelError, QueryError, NotApplicableError),
        match=r"nothing to hide|therefore public: ask another|all follow from one number",
    ):
        make(SURE).calibrate(query, 1.0)


def test_noise_for_the_columns_of_a_joint_law() -> None:
    """Two records move two outputs each; shapes of noise are for counts of records that all count alike."""
    group = pf.GroupDP(pf.JointDistribution([[0, 0], [0, 1], [1, 1]], [0.5, 0.25, 0.25]))
    assert group.calibrate(pf.Marginals(), 1.0).scale == pytest.approx(4.0)
    assert group.calibrate(pf.Marginals([1]), 1.0).scale == pytest.approx(2.0)
    with pytest.raises(NotApplicableError, match="columns of a Bayesian network or a joint law"):
        group.calibrate(pf.Marginals(), 1.0, noise="best")


def test_a_value_that_some_member_makes_possible_counts() -> None:
    other = pf.MarkovChain([[0.0, 0.5, 0.5]] * 3, [0.0, 0.5, 0.5])
    for make in READ:
        scale = make([IMPOSSIBLE, other], 10).calibrate(pf.Sum([0, 1, 100]), 1.0).scale
        assert scale == pytest.approx(198.0 if make is pf.GK16 else 99.0, rel=1e-9)  # no member has both 0 and 100


@pytest.mark.parametrize("start", ["any", "stationary"])
def test_under_every_start_the_first_record_can_be_anything(start: Any) -> None:
    p = [[0.5, 0.5, 0.0]] * 3 if start == "any" else [[0.5, 0.25, 0.25]] * 3
    for make in READ:
        assert make(pf.MarkovChain(p, start), 10).calibrate(pf.Sum([0, 1, 100]), 1.0).scale >= 100


def test_entry_dp_asks_only_rows_that_follow_a_record() -> None:
    p = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    assert pf.EntryDP(pf.MarkovChain(p, [0.5, 0.5, 0]), 5).calibrate(pf.Sum([0, 1, 100]), 1.0).scale < 1.1
    in_turns = [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]  # certain, free, certain, …
    assert pf.EntryDP(pf.MarkovChain(in_turns, [1, 0, 0]), 5).calibrate(pf.Count(1), 1.0).scale < 1.1
    for start in ([0.5, 0.5, 0.0], "stationary"):
        with pytest.raises(NotApplicableError, match="correlated under theta"):
            pf.EntryDP(pf.MarkovChain(in_turns, start), 5)


# the first record is certain, the second free, and the others are certain again
THEN = [0.0, 0.0, 0.0, 1.0]
ONCE = pf.MarkovChain([[0.0, 0.5, 0.5, 0.0], THEN, THEN, THEN], [1, 0, 0, 0])


@pytest.mark.parametrize("make", READ, ids=lambda make: make.name)
def test_no_noise_is_needed_for_records_that_are_certain(make: Any) -> None:
    bound = make(ONCE, 6)
    assert bound.calibrate(pf.Count(1), 1.0).scale > 0
    for first, last in ((0, 1), (2, 6)):
        with pytest.raises(NotApplicableError, match="no noise is needed: the exact answer leaks at most 0"):
            bound.calibrate(pf.Window(pf.Count(3), first, last), 1.0)
    losses = np.ones(6)
    losses[1] = 0
    assert bound.leakage(losses) == 0


@pytest.mark.parametrize("make", READ, ids=lambda make: make.name)
def test_no_noise_is_needed_for_values_that_give_one_answer(make: Any) -> None:
    with pytest.raises(NotApplicableError, match="no noise is needed"):
        make(IMPOSSIBLE, 10).calibrate(pf.Count(2), 1.0)


@pytest.mark.parametrize("make", [*READ, pf.MQMApprox], ids=lambda make: make.name)
def test_where_all_is_certain_there_is_no_secret(make: Any) -> None:
    certain = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], [1, 0])
    with pytest.raises(ModelError, match="no secret to protect"):
        make(certain, 1).calibrate(pf.Count(1), 1.0)
    assert make(certain, 1).leakage(1.0) == 0
    assert make(certain, 2).calibrate(pf.Count(1), 1.0).scale >= 1


def test_a_networks_impossible_states_are_no_change() -> None:
    values = ["low", "high", "never"]
    network = pf.BayesianNetwork(
        {
            "a": pf.CPT(values, [0.5, 0.5, 0.0]),
            "b": pf.CPT(values, [[0.5, 0.5, 0.0]] * 3, ["a"]),
            "c": pf.CPT(values, [1.0, 0.0, 0.0]),
        }
    )
    for bound in (pf.MarkovQuilt(network), pf.LeakagePropagation(network)):
        scale = bound.calibrate(pf.Sum([0, 1, 100]), 1.0).scale
        assert scale == pytest.approx(1, rel=1e-5)
        with pytest.raises(NotApplicableError, match="no noise is needed"):
            bound.calibrate(pf.Count("never"), 1.0)
        with pytest.raises(NotApplicableError, match="no noise is needed"):
            bound.calibrate(pf.Subset(pf.Count("low"), ["c"]), 1.0)


@pytest.mark.parametrize("largest", [1e9, 1e12, 1e15])
def test_a_huge_value_of_an_impossible_state_does_not_pass_for_no_noise(largest: float) -> None:
    query, plain = pf.Sum([0, 1, largest]), pf.Sum([0, 1, 2])
    chain = pf.MarkovChain([[0.9, 0.1, 0.0], [0.4, 0.6, 0.0], [0.5, 0.5, 0.0]], [0.5, 0.5, 0.0])
    coins = pf.MarkovChain([[0.5, 0.5, 0.0]] * 3, [0.5, 0.5, 0.0])
    for bound in (pf.LeakagePropagation(chain, 3), pf.MQMExact(chain, 3), pf.EntryDP(coins, 3)):
        assert bound.calibrate(query, 1.0).scale == pytest.approx(bound.calibrate(plain, 1.0).scale, rel=1e-5)
    never, certain = pf.CPT([0, 1, 2], [0.5, 0.5, 0.0]), pf.CPT([0, 1, 2], [0.0, 1.0, 0.0])
    network = pf.BayesianNetwork({"a": never, "b": certain})
    for bound in (pf.MarkovQuilt(network), pf.LeakagePropagation(network)):
        assert bound.calibrate(query, 1.0).scale == pytest.approx(1, rel=1e-5)
        many = pf.Weighted(pf.Count(1), [1, 2**31 - 1])
        assert bound.calibrate(many, 1.0).scale == pytest.approx(1, rel=1e-5)


def test_a_huge_epsilon_does_not_pass_for_no_noise() -> None:
    """The exact answer tells everything, however large epsilon is."""
    coins = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    for make in (*READ, pf.GroupDP):
        assert 0 < make(coins, 3).calibrate(pf.Histogram(), 1e12).scale < 1e-10


def test_places_are_the_supports_of_the_marginals() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        k, steps = int(rng.integers(1, 5)), int(rng.integers(1, 12))
        possible = rng.random((k, k)) < 0.4
        possible[np.arange(k), rng.integers(k, size=k)] = True
        now = rng.random(k) < 0.5
        now[rng.integers(k)] = True
        places = [states for n, states in places_of(now, possible, steps) for _ in range(n)]
        assert len(places) == steps
        for states in places:
            assert np.array_equal(states, now)
            now = possible[now].any(axis=0)


def test_records_far_from_the_start_have_every_state_that_can_come() -> None:
    round_and_round = np.roll(np.eye(3, dtype=bool), 1, axis=1)
    places = places_of(np.array([True, False, False]), round_and_round, 10**6)
    assert sum(n for n, _ in places) == 10**6
    assert len(places) < 5000
    assert places[-1][1].all()
