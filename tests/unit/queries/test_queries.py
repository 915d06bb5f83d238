"""Queries: the change per pair of states follows from what is counted, and nothing else."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.errors import QueryError
from pufferfish.queries import LinearQuery, Query

STATES = ("rest", "walk", "run")
QUERIES: list[tuple[Query, Fraction, tuple[str, ...]]] = [
    (pf.Count("walk"), Fraction(1), ("walk",)),
    (pf.Count(["walk", "run", "walk"]), Fraction(1), ("walk+run",)),
    (pf.Frequency("run"), Fraction(1, 10), ("run",)),
    (pf.Histogram(), Fraction(1, 10), STATES),
    (pf.Histogram(relative=False), Fraction(1), STATES),
    (pf.Sum([0, 0.1, 0.3]), Fraction(1, 10), ("sum",)),
    (pf.Sum({"run": 4, "rest": 0, "walk": 1.5}), Fraction(1, 2), ("sum",)),
    (pf.Sum([-3, 6, 6]), Fraction(3), ("sum",)),
    (pf.Mean([0, 0.1, 0.3]), Fraction(1, 100), ("mean",)),
]


def answer(linear: LinearQuery, records: Sequence[int]) -> np.ndarray:
    counts = np.bincount(records, minlength=linear.weights.shape[1])
    return linear.weights @ counts


@pytest.mark.parametrize(("query", "unit", "labels"), QUERIES, ids=lambda v: repr(v) if isinstance(v, Query) else "")
def test_distance_is_what_one_record_can_change(query: Query, unit: Fraction, labels: tuple[str, ...]) -> None:
    linear = query.bind(STATES, records=10)
    assert (linear.unit, linear.labels) == (unit, labels)
    others = [0, 0, 1, 2, 2, 2, 1, 0, 1]
    changes = np.zeros((3, 3))
    for x, other in itertools.product(range(3), repeat=2):
        changes[x, other] = np.abs(answer(linear, [*others, x]) - answer(linear, [*others, other])).sum()
    assert linear.unit_distance.tolist() == changes.tolist()
    assert linear.unit_lipschitz == changes.max()
    assert linear.distance == pytest.approx(changes * float(unit))
    assert linear.lipschitz == pytest.approx(changes.max() * float(unit))
    assert linear.weights.dtype == np.int64


@pytest.mark.parametrize(
    ("query", "truth"),
    [
        (pf.Count("walk"), [3]),
        (pf.Frequency(["rest", "run"]), [0.7]),
        (pf.Histogram(), [0.2, 0.3, 0.5]),
        (pf.Sum([0, 0.1, 0.3]), [1.8]),
        (pf.Mean([-1, 0, 2]), [0.8]),
    ],
)
def test_answers(query: Query, truth: list[float]) -> None:
    linear = query.bind(STATES, records=10)
    assert answer(linear, [0, 0, 1, 1, 1, 2, 2, 2, 2, 2]) * float(linear.unit) == pytest.approx(truth)


EXACT_VALUES: list[tuple[list[float], int]] = [
    ([0, 0.1, 0.3], 10),
    ([0.1234567891, 0.12345678901234, 0], 10),
    ([1e-149, 0, 2e-149], 10),
    ([0, 1e15, -1], 9),
    ([1e-9, 1, 0], 1_000_000),
]


@pytest.mark.parametrize(("values", "records"), EXACT_VALUES)
def test_decimals_that_fit_are_exact(values: list[float], records: int) -> None:
    linear = pf.Sum(values).bind(STATES, records)
    assert [int(w) * linear.unit for w in linear.weights[0]] == [Fraction(repr(v)) for v in map(float, values)]
    assert math.gcd(*(int(w) for w in linear.weights[0])) == 1


@pytest.mark.parametrize(
    ("values", "records"),
    [
        ([0, math.pi, math.e], 1000),
        ([0, 1 / 3, 2 / 3], 10**12),
        ([1e-149, 1e149, 0], 10),
        ([0, 1e9, 1e9 + 1e-3], 10**6),
        ([0.1234567890123, 12345.67890123, 0.1], 10**9),
    ],
)
def test_values_that_do_not_fit_are_rounded_to_a_decimal_grid(values: list[float], records: int) -> None:
    linear = pf.Sum(values).bind(STATES, records)
    weights = [int(w) for w in linear.weights[0]]
    assert max(map(abs, weights)) * records <= 2**53 + records
    error = max(abs(w * linear.unit - Fraction(repr(float(v)))) for w, v in zip(weights, values, strict=True))
    assert error <= Fraction(max(map(abs, values))) * records / 2**53 * 10
    assert len(set(weights)) > 1


@pytest.mark.parametrize("values", [[1e9, 1e9 + 1e-6], [1e149, math.nextafter(1e149, math.inf)]])
def test_values_that_are_one_on_the_grid_are_refused(values: list[float]) -> None:
    """Else the sum is a constant, and noise of scale 0 would be calibrated for it."""
    with pytest.raises(QueryError, match="differ by less than the grid"):
        pf.Sum(values).bind(("a", "b"), 10**9)


BAD: list[tuple[Any, str]] = [
    (lambda: pf.Count([]), "Count names no state"),
    (lambda: pf.Frequency(()), "Frequency names no state"),
    (lambda: pf.Count("sit").bind(STATES, 10), "count of state 'sit': the model has no such state. States: rest, walk"),
    (lambda: pf.Frequency(["walk", 7]).bind(STATES, 10), "frequency of state '7'"),
    (lambda: pf.Count(STATES).bind(STATES, 10), "count of all 3 states is the public number of records"),
    (lambda: pf.Sum([0, 1]).bind(STATES, 10), "sum has 2 values, the model 3 states"),
    (lambda: pf.Sum([2, 2, 2]).bind(STATES, 10), "every state has the value 2, so the answer is public"),
    (lambda: pf.Mean({"rest": 0, "walk": 1}).bind(STATES, 10), "mean gives no value to state 'run'"),
    (lambda: pf.Sum({"rest": 0, "walk": 1, "run": 2, "sit": 3}).bind(STATES, 10), "gives a value to state 'sit'"),
    (lambda: pf.Sum([0, math.nan, 1]), "sum value of state 1 is nan, expected a number within"),
    (lambda: pf.Mean([0, 1e300]), "mean value of state 1 is 1e\\+300, expected a number within"),
    (lambda: pf.Mean([0, math.inf, 1]), "mean value of state 1 is inf"),
    (lambda: pf.Sum({"rest": "much"}), "sum value of state rest is 'much'"),
    (lambda: pf.Sum([None, 1]), "sum value of state 0 is None"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_refusals(make: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        make()


@pytest.mark.parametrize("states", [1, 1.0, "1", [1], {1}, np.array([1])], ids=repr)
def test_states_are_known_by_their_label(states: Any) -> None:
    assert pf.Count(states).bind(("0", "1"), 10).weights.tolist() == [[0, 1]]
    assert pf.Count(states) == pf.Count("1")


def test_kinds() -> None:
    kinds = [query.kind for query, *_ in QUERIES]
    assert kinds == ["count", "count", "frequency", "histogram", "histogram-counts", "sum", "sum", "sum", "mean"]
    assert [query.is_histogram for query, *_ in QUERIES] == [kind.startswith("histogram") for kind in kinds]


def test_cumulative_queries_count_up_to_each_state() -> None:
    states = ["<1", "1-2", "2-3", ">=3"]
    counts = np.array([4, 0, 5, 1])
    for query, of in ((pf.CDF(relative=False), 1), (pf.CDF(), 10), (pf.Quantiles([0.5, 0.25]), 10)):
        bound = query.bind(states, 10)
        assert (bound.weights @ counts).tolist() == [4, 4, 9]
        assert bound.unit * of == 1
        assert bound.lipschitz * of == pytest.approx(3)  # from the first state to the last
    assert pf.Quantiles(0.5).shares == (0.5,)
    for wrong in ([], [0], [1.0], ["a"], [float("nan")], [0.5, 2]):
        with pytest.raises(QueryError, match="quantiles"):
            pf.Quantiles(wrong)
    with pytest.raises(QueryError, match="same ordered states"):
        pf.CDF().bind(["a", "b"], 2, {"x": ("a", "b")})
    with pytest.raises(QueryError, match="same ordered states"):
        pf.Subset(pf.CDF(), ["x"]).bind(["a", "b"], 2, {"x": ("a", "b")})
    with pytest.raises(QueryError, match="ask for Weighted"):
        pf.Weighted(pf.Quantiles(0.5), [1, 2]).bind(["a", "b"], 2)
    assert pf.Window(pf.Quantiles(0.5), 0, 1).quantiles == (0.5,)
