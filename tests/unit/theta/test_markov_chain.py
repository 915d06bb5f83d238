"""Chains: what they are, and what is said of those that are none."""

import math
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from enumeration import exact_stationary
from pufferfish.errors import ModelError, ParameterError
from pufferfish.theta.lengths import ChainLength, as_lengths
from pufferfish.theta.model_class import as_theta
from pufferfish.theta.states import state_label

P = [[0.9, 0.1], [0.4, 0.6]]
ROTATION = [[0.25, 0.75, 0], [0, 0.25, 0.75], [0.75, 0, 0.25]]


@pytest.mark.parametrize("seed", range(5))
def test_stationary_distribution_reversal_and_gap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(4), 4)
    chain = pf.MarkovChain(p)
    pi = np.array([float(v) for v in exact_stationary(p)])
    assert chain.stationary_distribution == pytest.approx(pi, rel=1e-13)
    assert chain.pi_min == chain.stationary_distribution.min()
    reversed_ = chain.time_reversal.transition_matrix
    assert reversed_ * pi[:, None] == pytest.approx((p * pi[:, None]).T, rel=1e-12)
    moduli = np.sort(np.abs(np.linalg.eigvals(p @ reversed_)))
    assert chain.eigengap == pytest.approx(1 - moduli[-2], abs=1e-10)
    assert chain.eigengap <= 1 - moduli[-2] + 1e-13
    assert not chain.is_reversible


@pytest.mark.parametrize("seed", range(5))
def test_reversible_chains(seed: int) -> None:
    weights = np.random.default_rng(seed).uniform(0.1, 1, (4, 4))
    flow = weights + weights.T
    p = flow / flow.sum(axis=1, keepdims=True)
    chain = pf.MarkovChain(p)
    assert chain.is_reversible
    assert chain.time_reversal.transition_matrix == pytest.approx(p, rel=1e-12)
    second = np.sort(np.abs(np.linalg.eigvals(p)))[-2]
    assert chain.reversible_eigengap == pytest.approx(2 * (1 - second), abs=1e-10)
    assert chain.reversible_eigengap >= chain.eigengap


@pytest.mark.parametrize(
    ("p", "period", "gap"),
    [
        ([[0, 1], [1, 0]], 2, 0.0),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], 3, 0.0),
        ([[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]], 2, 0.0),
        (ROTATION, 1, 0.5625),
        ([[0, 1, 0], [0, 0, 1], [0.01, 0.99, 0]], 1, 0.0),
        ([[0.5, 0.5], [0.5, 0.5]], 1, 1.0),
    ],
)
def test_period_and_gap(p: list[list[float]], period: int, gap: float) -> None:
    chain = pf.MarkovChain(p)
    assert chain.is_irreducible
    assert (chain.period, chain.is_aperiodic) == (period, period == 1)
    assert chain.eigengap == pytest.approx(gap, abs=1e-10)
    if gap == 0:
        assert chain.eigengap == chain.reversible_eigengap == 0.0


def test_rows_are_divided_by_their_sum_and_zeros_stay() -> None:
    chain = pf.MarkovChain([[0.5, 0.5 + 5e-10, 0], [0, 0, 1], [1, 0, 0]], [1 - 5e-10, 0, 0])
    assert chain.transition_matrix.sum(axis=1) == pytest.approx([1, 1, 1], abs=1e-15)
    assert chain.transition_matrix[0, 2] == 0.0
    assert isinstance(chain.initial_distribution, np.ndarray)
    assert chain.initial_distribution.tolist() == [1, 0, 0]


def test_a_chain_does_not_change_with_what_it_was_made_of() -> None:
    given, start = np.array(P), np.array([0.5, 0.5])
    chain = pf.MarkovChain(given, start)
    given[0], start[0] = 0.5, 1.0
    assert chain.transition_matrix.tolist() == P
    assert np.array_equal(chain.initial_distribution, [0.5, 0.5])
    for array in (chain.transition_matrix, chain.initial_distribution, chain.stationary_distribution):
        assert isinstance(array, np.ndarray)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


BAD_MATRICES: list[tuple[Any, str]] = [
    ([[0.9, 0.1], [0.4, 0.57]], r"transition_matrix\[1\] sums to 0\.97, expected 1 \(tolerance 1e-09\)"),
    ([[0.9, 0.4], [0.1, 0.6]], r"transition_matrix\[0\] sums to 1\.3.*did you pass the transpose\?"),
    ([[0.9, 0.1], [0.4, 0.6 + 2e-9]], r"transition_matrix\[1\] sums to 1\.000000002"),
    ([[0.9, 0.1], [math.nan, 0.6]], r"transition_matrix\[1\]\[0\] is nan, expected a probability"),
    ([[1.1, -0.1], [0.4, 0.6]], r"transition_matrix\[0\]\[1\] is -0\.1"),
    ([[0.9, 0.1], [math.inf, 0.6]], r"transition_matrix\[1\]\[0\] is inf"),
    ([[0.9, 0.1, 0.0], [0.4, 0.6, 0.0]], r"shape \(2, 3\), expected a square matrix"),
    ([[0.9, 0.1], [0.4]], "is not an array of numbers"),
    ([["a", "b"], ["c", "d"]], "transition_matrix holds text; expected an array of probabilities"),
    ([[1.0]], "has one state"),
    ([0.5, 0.5], r"shape \(2,\), expected a square matrix"),
    ([], r"shape \(0,\)"),
    (None, "transition_matrix"),
    ([[0, 0], [0.4, 0.6]], r"transition_matrix\[0\] sums to 0"),
]


@pytest.mark.parametrize(("matrix", "message"), BAD_MATRICES)
def test_bad_matrices(matrix: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message) as error:
        pf.MarkovChain(matrix)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ([0.5, 0.6], r"initial_distribution sums to 1\.1.*law of the first record; divide counts by their sum"),
        ([1.5, -0.5], r"initial_distribution\[1\] is -0\.5"),
        ([math.nan, 1], r"initial_distribution\[0\] is nan"),
        ([1.0], r"initial_distribution has shape \(1,\), expected \(2,\)"),
        ([[0.5, 0.5]], r"shape \(1, 2\)"),
        ("uniform", "initial_distribution is 'uniform', expected an array of 2"),
        (["a", "b"], "initial_distribution holds text; expected an array of probabilities"),
    ],
)
def test_bad_initial_distributions(initial: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        pf.MarkovChain(P, initial)


@pytest.mark.parametrize(
    ("p", "names"),
    [
        ([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]], "never returns to state {sit}"),
        ([[1, 0, 0], [0, 1, 0], [0.5, 0.25, 0.25]], "never leaves state {sit} and state {walk} once there"),
        ([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]], "never leaves states {sit, walk} and state {run} once there"),
        ([[0, 0.5, 0.5], [0, 0.5, 0.5], [0, 0, 1]], "never returns to states {sit, walk}"),
    ],
)
def test_no_stationary_law_of_reducible_chains(p: list[list[float]], names: str) -> None:
    states = ["sit", "walk", "run"]
    with pytest.raises(ModelError, match=f"stationary.*{names}.*give an array or"):
        pf.MarkovChain(p, states=states)
    chain = pf.MarkovChain(p, "any", states=states)
    assert not chain.is_irreducible
    for attribute in ("stationary_distribution", "pi_min", "period", "eigengap", "time_reversal", "is_reversible"):
        with pytest.raises(ModelError, match=f"needs an irreducible chain: .*{names}"):
            getattr(chain, attribute)


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (["a"], "states has 1 names, expected 2"),
        (["a", "b", "c"], "states has 3 names, expected 2"),
        (["a", "a"], r"states\[1\] repeats the name 'a'"),
        ([1, "1"], r"states\[1\] repeats the name '1'"),
        (5, "states"),
    ],
)
def test_bad_state_names(states: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        pf.MarkovChain(P, states=states)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (1.5, "1.5"),
        (True, "true"),
        (np.bool_(False), "false"),
        (np.int8(3), "3"),
        (np.float32(2), "2"),
        ("01", "01"),
        (" a ", " a "),
        (math.inf, "inf"),
        (2**70, str(2**70)),
    ],
)
def test_state_labels(value: Any, label: str) -> None:
    assert state_label(value) == label


def test_repr_is_short_and_says_the_start() -> None:
    assert repr(pf.MarkovChain(P, "any")).endswith("initial_distribution='any')")
    assert "<5 states>" in repr(pf.MarkovChain(np.full((5, 5), 0.2), np.eye(5)[0]))


def test_classes() -> None:
    one, other = pf.MarkovChain(P), pf.MarkovChain(P, "any")
    assert as_theta(one).chains == (one,)
    assert as_theta(c for c in (one, other)).chains == (one, other)
    given = pf.ChainClass((one,), origin="survey 2019")
    assert as_theta(given) is given
    assert (given.k, given.states) == (2, ("0", "1"))


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ([], "theta is empty"),
        ([pf.MarkovChain(P), P], r"theta\[1\] is list, expected a MarkovChain"),
        ("chain", "theta is str"),
        (7, "theta is int"),
        (
            [pf.MarkovChain(P), pf.MarkovChain(P, states=["a", "b"])],
            r"theta\[1\] has states a, b and theta\[0\] has 0, 1",
        ),
    ],
)
def test_bad_classes(theta: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        as_theta(theta)


def test_lengths() -> None:
    assert as_lengths(5) == (ChainLength(5, 5),)
    assert as_lengths(np.int64(5)) == (ChainLength(5, 5),)
    assert as_lengths(ChainLength(9, 4)) == (ChainLength(9, 4),)
    assert as_lengths(np.array([3, 2])) == (ChainLength(3, 3), ChainLength(2, 2))
    assert as_lengths(t for t in (1, ChainLength(2, 1))) == (ChainLength(1, 1), ChainLength(2, 1))


@pytest.mark.parametrize("length", [0, -1, 2.0, "5", None, True, [], [3, 0], [3, "4"], [[3]], math.inf], ids=repr)
def test_bad_lengths(length: Any) -> None:
    with pytest.raises(ParameterError, match=r"^length(\[\d\])? is"):
        as_lengths(length)


@pytest.mark.parametrize(
    ("steps", "records"), [(3, 4), (3, 0), (0, 0), (3, -1), (2.5, 1), (3, 1.5), ("3", 1), (math.nan, 1)]
)
def test_chains_that_do_not_exist(steps: Any, records: Any) -> None:
    with pytest.raises(ParameterError, match=r"chain|steps|records"):
        ChainLength(steps, records)


def test_counts_and_models_in_a_wrong_place_are_told() -> None:
    with pytest.raises(ModelError, match="look like counts of transitions"):
        pf.MarkovChain([[90, 10], [40, 60]])
    bound = pf.GroupDP(pf.MarkovChain(P), 10)
    with pytest.raises(ModelError, match=r"theta is GroupDP, .* give its Θ: model\.theta"):
        pf.LeakagePropagation(bound, 10)  # type: ignore[arg-type]


def test_data_in_place_of_lengths_and_shares_above_one_are_told() -> None:
    rows = pf.Rows(
        nodes=("rain",), states={"rain": ("no", "yes")}, counts={"rain": [3, 2]}, records=5,
        base=pf.data.RowsBase(source="days.csv", columns={"rain": "rain"}),
    )  # fmt: skip
    with pytest.raises(ParameterError, match=r"give what it has: data\.length"):
        pf.GroupDP(pf.MarkovChain(P), rows)
    bound = pf.GroupDP(pf.MarkovChain(P), 100)
    for query, noise in ((pf.Histogram(), "equal"), (pf.Histogram(), "best"), (pf.Frequency("1"), "equal")):
        with pytest.raises(ParameterError, match=r"accuracy is 5, but shares lie between 0 and 1.*0\.05"):
            bound.calibrate(query, accuracy=5, noise=noise)  # type: ignore[arg-type]
    assert bound.calibrate(pf.Count("1"), accuracy=5).epsilon > 0
