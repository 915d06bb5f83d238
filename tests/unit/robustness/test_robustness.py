"""Robustness: the paper's example, classes of models and beliefs, infinity, rounding, and clear refusals."""

import copy
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.divergence import MaxPlusPath, Normalisers, log_ratio
from pufferfish._core.numbers.rounding import log_up
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.theta.joint_distribution import Cliques, JointDistribution
from pufferfish.theta.secrets import CountIs, Fact, RecordIs

HALVES = [0.5, 0.5]


def chain(p: float, initial: Any = HALVES, states: Any = None) -> pf.MarkovChain:
    return pf.MarkovChain([[1 - p, p], [p, 1 - p]], initial, states=states)


def databases(*masses: float | Fraction) -> JointDistribution:
    return JointDistribution([[f"D{i + 1}"] for i in range(len(masses))], masses)


ALWAYS = Fact("anything", lambda row: True)
NOT_D3 = Fact("not D3", lambda row: row[0] != "D3")


def test_the_papers_example() -> None:
    """Section 2.3, after Theorem 2.4: log 90, and more where a secret rules out D_3."""
    theta, belief = databases(0.9, 0.05, 0.05), databases(0.01, 0.95, 0.04)
    alone = pf.robustness(theta, belief, secrets=[ALWAYS])
    assert alone == pytest.approx(math.log(90), rel=1e-14)
    assert (alone.secret, alone.direction) == ("anything", "theta over belief")
    given = pf.robustness(theta, belief, secrets=[NOT_D3])
    assert math.exp(given) == pytest.approx(float(Fraction(90, 95) / Fraction(1, 96)), rel=1e-13)
    assert math.exp(given) == pytest.approx(90.947, abs=5e-4)
    rounded = [0.9474, 0.0526], [0.0104, 0.9896]
    paper = max(pf.max_divergence(*rounded), pf.max_divergence(*rounded[::-1]))
    assert math.exp(paper) == pytest.approx(91.0962, abs=5e-5)
    assert pf.robustness(databases(*rounded[0]), databases(*rounded[1]), secrets=[ALWAYS]) == pytest.approx(paper)


def test_two_fair_records_by_hand() -> None:
    """Given one record of two, the other's law is a row: log 0.5/0.4 against halves."""
    delta = pf.robustness(chain(0.5), chain(0.4), length=2)
    assert math.log(1.25) < delta < math.log(1.25) + 1e-14
    assert (delta.secret, delta.direction, delta.theta, delta.belief) == ("record 0 is 0", "theta over belief", 0, None)
    assert pf.robustness(chain(0.5), chain(0.4), length=1) < 1e-14  # given the only record nothing is left


def test_closest_member_and_worst_belief() -> None:
    theta = pf.ChainClass((chain(0.2), chain(0.39), chain(0.6)))
    delta = pf.robustness(theta, [chain(0.4), chain(0.55), chain(0.21)], length=4)
    assert (delta.theta, delta.belief) == (2, 1)
    assert delta == pytest.approx(pf.robustness(chain(0.6), chain(0.55), length=4))
    assert delta > pf.robustness(theta, chain(0.4), length=4)
    joints = [databases(0.5, 0.25, 0.25), databases(0.4, 0.3, 0.3)]
    assert pf.robustness(joints, [databases(0.45, 0.3, 0.25)], secrets=[ALWAYS]).theta == 0


def test_a_belief_in_theta_is_at_distance_0() -> None:
    for initial in (HALVES, "stationary", "any"):
        delta = pf.robustness([chain(0.2), chain(0.3, initial)], chain(0.3, initial), length=1000)
        assert (float(delta), delta.theta, delta.secret, delta.direction, delta.reason) == (0.0, 1, None, None, None)
        assert delta.effective_epsilon(0.3) == 0.3
    assert pf.robustness(chain(0.3, "any"), chain(0.3), length=9) == 0
    assert pf.robustness(Cliques([0.5, 0.5]), Cliques([0.5, 0.5])) == 0
    # The stationary law as an array is not quite the stationary law.
    skewed = [[0.9, 0.1], [0.3, 0.7]]
    array = pf.MarkovChain(skewed).stationary_distribution
    assert 0 < pf.robustness(pf.MarkovChain(skewed), pf.MarkovChain(skewed, array), length=3) < 1e-12


def test_it_is_a_number_with_attributes() -> None:
    delta = pf.robustness(chain(0.5), [chain(0.4)], length=2)
    for twin in (copy.copy(delta), pickle.loads(pickle.dumps(delta))):
        assert repr(twin) == repr(delta)
        assert twin == delta
    assert delta.belief == 0
    assert f"{delta:.3f}" == "0.223"
    for name in ("theta", "belief", "secret", "direction"):
        with pytest.raises(AttributeError):
            setattr(delta, name, 1)
    with pytest.raises(ParameterError, match="epsilon"):
        delta.effective_epsilon(0)
    assert Fraction(delta.effective_epsilon(0.1)) >= Fraction(0.1) + 2 * Fraction(float(delta))


def test_infinite_where_one_law_excludes_what_the_other_allows() -> None:
    frozen = pf.MarkovChain([[1, 0], [0, 1]], HALVES)
    delta = pf.robustness(frozen, chain(0.1), length=3)
    assert delta == math.inf
    assert (delta.secret, delta.direction) == ("record 0 is 0", "belief over theta")
    assert delta.effective_epsilon(1.0) == math.inf
    assert "the belief allows a database that is impossible under Θ" in str(delta.reason)
    assert pf.robustness(chain(0.1), frozen, length=3).direction == "theta over belief"
    assert pf.robustness([frozen, chain(0.2)], chain(0.1), length=3).theta == 1
    assert pf.robustness(frozen, chain(0.1), length=1) < 1e-14  # no transition, no difference
    point = chain(0.1, [1, 0])
    assert pf.robustness(point, chain(0.1), length=3).secret == "record 0 is 1"
    assert pf.robustness(point, chain(0.1), length=3, secrets=[RecordIs(0, "0")]) < 1e-13
    assert pf.robustness(databases(0.5, 0.5, 0), databases(0.4, 0.4, 0.2), secrets=[ALWAYS]) == math.inf
    assert pf.robustness(databases(0.5, 0.5, 0), databases(0.4, 0.4, 0.2), secrets=[NOT_D3]) == 0
    assert pf.robustness(Cliques([0.5, 0.5, 0]), Cliques([0.5, 0.25, 0.25])) == math.inf


def test_zeros_are_structural() -> None:
    """Masses that no double can hold are not zeros: 0.001^400 after 400 steps."""
    tiny = [[0.999, 0.001, 0], [0.999, 0, 0.001], [0.5, 0, 0.5]]
    one, other = (pf.MarkovChain(m, [1, 0, 0]) for m in (tiny, [[0.998, 0.002, 0], [0.998, 0, 0.002], [0.5, 0, 0.5]]))
    assert math.isfinite(pf.robustness(one, other, length=500))
    line = np.eye(6, k=1) * 1e-70 + np.eye(6) * (1 - 1e-70)
    line[0] = [1 - 1e-70, 1e-70, 0, 0, 0, 0]
    two = line.copy()
    two[0, 1] = 2e-70
    delta = pf.robustness(pf.MarkovChain(line, np.eye(6)[0]), pf.MarkovChain(two, np.eye(6)[0]), length=6)
    assert delta == pytest.approx(math.log(2), rel=1e-10)  # the doubled entry is used or not; P(X_5 = 5) is 1e-350


def test_any_first_law() -> None:
    for fixed in (HALVES, [1, 0], "stationary"):
        delta = pf.robustness(chain(0.1, fixed), chain(0.1, "any"), length=2)
        assert delta == math.inf
        assert delta.secret is None
        assert "every law of the first record" in str(delta.reason)
    both = pf.robustness(chain(0.1, "any"), chain(0.2, "any"), length=5)
    for start in ([1, 0], [0.5, 0.5], [0.01, 0.99]):
        assert pf.robustness(chain(0.1, "any"), chain(0.2, start), length=5) <= both * (1 + 1e-13) < math.inf


def test_independent_chains_and_unobserved_records() -> None:
    theta, belief = chain(0.5), chain(0.4)
    step = pf.robustness(theta, belief, length=2)
    assert pf.robustness(theta, belief, [4]) == pytest.approx(3 * step)
    assert pf.robustness(theta, belief, [2] * 100) == pytest.approx(100 * step)
    assert pf.robustness(theta, belief, [1, 1, 1]) < 1e-13
    longest = pf.robustness(theta, belief, [2, 9, 4])
    assert longest == pytest.approx(12 * step)
    assert str(longest.secret).startswith("record (")
    gaps = pf.robustness(theta, belief, pf.ChainLength(steps=9, records=3))
    assert gaps == pf.robustness(theta, belief, length=9)
    chosen = pf.robustness(theta, belief, [2, 3], secrets=[(RecordIs((1, 2), "0"), RecordIs((1, 2), "1"))])
    assert chosen.secret in {"record (1, 2) is 0", "record (1, 2) is 1"}


@pytest.mark.parametrize("pair", [(0.5, 0.4), (0.3, 0.30001)])
def test_long_chains_that_settle_agree_with_arithmetic(pair: tuple[float, float]) -> None:
    """For fair starts and symmetric rows all records alike: T − 1 times the worst of a row."""
    row = max(abs(math.log(pair[0] / pair[1])), abs(math.log((1 - pair[0]) / (1 - pair[1]))))
    for length in (2, 1000, 10**6):
        delta = pf.robustness(chain(pair[0]), chain(pair[1]), length=length)
        assert (length - 1) * row * (1 - 1e-10) <= delta <= (length - 1) * row * (1 + 1e-9) + 4e-15 * length


def test_settled_paths_are_those_followed_to_the_end() -> None:
    rng = np.random.default_rng(5)
    for k in (2, 3, 5):
        weights = np.round(rng.normal(size=(k, k)), 3)
        weights[0, 1] = -np.inf
        path = MaxPlusPath(np.zeros(k), weights, 400)
        assert path._path.period > 0
        vector, found = np.zeros(k), []
        for _ in range(400):
            found.append(vector)
            vector = (vector[:, None] + weights).max(axis=0)
        np.testing.assert_allclose(path.at(np.arange(400)), found, rtol=1e-12, atol=1e-11)


def test_normalisers_past_the_reach_of_doubles(slow: bool) -> None:
    """P(X_t = 0) is 2^-t against 4^-t; far below 1e-308 in the end, and not taken for 0."""
    last = 3000 if slow else 1200
    matrices = np.array([[0.5, 0.5], [0, 1]]), np.array([[0.25, 0.75], [0, 1]])
    start = np.array([[1.0, 0.0]])
    found = Normalisers((start, start), matrices, last + 1, [(0,), (1,), (0, 1)], 0.0)
    for t in (1, 10, 1000, last):
        at = np.array([t])
        assert found.at(at, 0)[0, 0] == pytest.approx(-t * math.log(2), rel=1e-12)
        assert found.at(at, 1)[0, 0] == pytest.approx(t * math.log(2), rel=1e-12)
        assert abs(found.at(at, 0)[0, 2]) < 1e-12


def test_log_ratio_near_1_is_accurate_relative_to_itself() -> None:
    a = np.array([0.3, 0.3, 0.0, 1.0])
    b = np.array([0.3 + 3e-14, 0.3, 0.0, 5e-324])
    logs, error = log_ratio(a, b)
    assert logs[0] == pytest.approx(math.log1p(float((Fraction(a[0]) - Fraction(b[0])) / Fraction(b[0]))), rel=1e-15)
    assert logs[1] == 0
    assert logs[2] == -np.inf
    assert logs[3] == pytest.approx(1074 * math.log(2))
    assert error > 0
    assert log_ratio(a[:2], b[:2])[1] < 1e-27


@pytest.mark.parametrize(
    "exact", [Fraction(1, 3), Fraction(10**400, 7), 1 + Fraction(1, 10**20), Fraction(10**9, 10**9 + 1)]
)
def test_log_up_is_above(exact: Fraction) -> None:
    near = log_up(exact)
    if abs(near) < 0.1:  # log x ≤ x − 1, and log x ≥ 1 − 1/x
        assert Fraction(near) > 1 - 1 / exact
        assert near <= float(exact - 1) * (1 - 4e-15 * (1 if exact < 1 else -1))
    else:
        true = math.log(exact.numerator) - math.log(exact.denominator)
        assert true < near < true + 1e-11


def test_a_class_whose_members_only_stand_for_it_is_refused() -> None:
    theta = pf.MQMApprox(pi_min=0.2, eigengap=0.5, length=10).theta
    with pytest.raises(NotApplicableError, match="theta is not a list of models"):
        pf.robustness(theta, chain(0.5), length=3)


JOINT = JointDistribution([["a", "b"], ["b", "a"]], [0.5, 0.5])
FLU = Cliques([0.5, 0.25, 0.25], states=["well", "flu"])


@pytest.mark.parametrize(
    ("theta", "belief", "options", "error", "says"),
    [
        (chain(0.1), JOINT, {"length": 2}, ModelError, "theta is MarkovChain and belief JointDistribution"),
        (
            chain(0.1),
            chain(0.1, states=["a", "b"]),
            {"length": 2},
            ModelError,
            "theta has states 0, 1 and belief[0] has a, b",
        ),
        (chain(0.1), chain(0.1, states=[1, 0]), {"length": 2}, ModelError, "in the same order"),
        (JOINT, databases(0.5, 0.5), {}, ModelError, "give states= to both"),
        (
            JOINT,
            JointDistribution([["a", "b"]], [1], variables=["x", "y"]),
            {},
            ModelError,
            "0, 1 and belief[0] has x, y",
        ),
        (FLU, Cliques([0.5, 0.5], states=FLU.states), {}, ModelError, "cliques of these sizes: 2 and belief[0] has 1"),
        (FLU, Cliques([0.5, 0.25, 0.25]), {}, ModelError, "theta has states well, flu"),
        (chain(0.1), chain(0.2), {}, ParameterError, "length is missing"),
        (JOINT, JOINT, {"length": 7}, ParameterError, "leave length out"),
        (chain(0.1), 3, {"length": 2}, ModelError, "is int"),
        (chain(0.1), chain(0.2), {"length": 2, "secrets": [ALWAYS]}, NotApplicableError, "only RecordIs is covered"),
        (
            chain(0.1),
            chain(0.2),
            {"length": 2, "secrets": [RecordIs(0, "0") & RecordIs(1, "0")]},
            NotApplicableError,
            "only RecordIs",
        ),
        (
            chain(0.1),
            chain(0.2),
            {"length": 2, "secrets": RecordIs(2, "0")},
            ParameterError,
            "expected a step from 0 to 1",
        ),
        (chain(0.1), chain(0.2), {"length": 2, "secrets": RecordIs((1, 0), "0")}, ParameterError, "no record (1, 0)"),
        (chain(0.1), chain(0.2), {"length": 2, "secrets": RecordIs("x", "0")}, ParameterError, "no record 'x'"),
        (chain(0.1), chain(0.2), {"length": [2, 2], "secrets": RecordIs(0, "0")}, ParameterError, "(chain, step)"),
        (chain(0.1), chain(0.2), {"length": 2, "secrets": RecordIs(0, "rest")}, ParameterError, "no state 'rest'"),
        (chain(0.1), chain(0.2), {"length": 2, "secrets": []}, ParameterError, "secrets is empty"),
        (chain(0.1), chain(0.2), {"length": 2, "secrets": ["0"]}, ParameterError, "secrets[0] is '0'"),
        (
            chain(0.1, [1, 0]),
            chain(0.2, [1, 0]),
            {"length": 2, "secrets": RecordIs(0, "1")},
            ParameterError,
            "none of the secrets is possible",
        ),
        (FLU, FLU, {"secrets": [ALWAYS]}, NotApplicableError, "cliques do not list their databases"),
        (FLU, FLU, {"secrets": [RecordIs((0, 2), "flu")]}, ParameterError, "no record (0, 2)"),
        (FLU, FLU, {"secrets": [CountIs("cold", 1)]}, ParameterError, "no state 'cold'"),
        (JOINT, JOINT, {"secrets": [RecordIs(5, "a")]}, ParameterError, "no record 5"),
    ],
)
def test_refusals(theta: Any, belief: Any, options: dict[str, Any], error: type, says: str) -> None:
    with pytest.raises(error) as caught:
        pf.robustness(theta, belief, **options)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_joint_distributions_may_list_their_states_in_any_order() -> None:
    turned = JointDistribution([["b", "a"], ["a", "b"]], [0.25, 0.75])
    delta = pf.robustness(JOINT, turned, secrets=[ALWAYS])
    assert delta == pytest.approx(math.log(2))
    assert pf.robustness(JOINT, turned) == 0  # one record says all


def test_a_secret_impossible_under_both_is_passed_over() -> None:
    theta, belief = databases(0.5, 0.5, 0), databases(0.25, 0.75, 0)
    never = Fact("D3", lambda row: row[0] == "D3")
    assert pf.robustness(theta, belief, secrets=[(never, ALWAYS)]) == pytest.approx(math.log(2))
