"""``noise="best"``: never more error than one scale, proved under every kind of Θ, refused where it means nothing."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish._core.propagation.chain import ChainPropagation
from pufferfish._core.propagation.past_and_future import AnyPast
from pufferfish._core.propagation.sweep import Run
from pufferfish.errors import NotApplicableError, ParameterError, QueryError
from pufferfish.ledger import Ledger
from pufferfish.mechanisms import InfluenceBound
from pufferfish.queries.record_loss import loss_of_query
from pufferfish.queries.strategy import Strategy

STATES = ["low", "mid", "high"]
P = [[0.9, 0.07, 0.03], [0.1, 0.8, 0.1], [0.02, 0.08, 0.9]]
CHAIN = pf.MarkovChain(P, states=STATES)
MIXED = [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]]


def bounds(*, short: bool) -> list[InfluenceBound]:
    lower, upper = np.array(P) - 0.01, np.array(P) + 0.01
    lengths = [15, pf.ChainLength(20, 10)] if short else [40, pf.ChainLength(90, 20)]
    second = np.stack([np.array(P), np.array(P)[:, ::-1], np.array(MIXED)])
    propagated: list[tuple[Any, Any]] = [
        ([CHAIN, pf.MarkovChain(MIXED, [0.2, 0.3, 0.5], states=STATES)], lengths),
        (pf.MarkovChain(P, "any", states=STATES), [pf.ChainLength(12, 12)] * 3),
        (pf.MarkovChain([[0.9, 0.1, 0], [0.1, 0.9, 0], [0.5, 0.5, 0]], [0.5, 0.5, 0], states=STATES), 30),
        (pf.IntervalChain(lower, upper, states=STATES), 20),
        (pf.ForgettingClass([3, 9], [0.3, 0.8], STATES), 60),
        (pf.PeriodicChain([P, MIXED], states=STATES), 60),
        (pf.HigherOrderChain(second, states=STATES), 5 if short else 40),
        (pf.BinaryChainInterval(0.4, 0.6), 30),
        (pf.MarkovChain([[0.7, 0.3], [0.2, 0.8]]), 30),
    ]
    found: list[InfluenceBound] = [pf.LeakagePropagation(theta, length) for theta, length in propagated]
    found += [pf.GroupDP(CHAIN, 20), pf.MQMExact(CHAIN, 200), pf.GK16(pf.MarkovChain(MIXED, states=STATES), 50)]
    independent = pf.MarkovChain([[0.2, 0.5, 0.3]] * 3, states=STATES)
    found += [pf.EntryDP(independent, 40), pf.ParticipantDP([30, 12], theta=CHAIN)]
    return found


def test_it_never_errs_more_and_is_proved_under_every_theta(slow: bool) -> None:
    better = 0
    queries = (pf.Histogram(), pf.CDF(relative=False))
    for i, bound in enumerate(bounds(short=not slow)[:: 1 if slow else 2]):
        for query in queries if slow else queries[i % 2 :][:1]:
            equal, best = (bound.calibrate(query, 0.7, noise=shape) for shape in ("equal", "best"))
            where = f"{bound.title}, {bound.theta.kind}, {query.kind}"
            assert best.expected_l1_error <= equal.expected_l1_error, where
            assert best.prove_leakage() <= 0.7, where
            assert bound.leakage(best.record_loss) <= 0.7, where
            assert best.lower_bound <= best.scale, where
            better += best.expected_l1_error < 0.9 * equal.expected_l1_error
    assert better >= (5 if slow else 2)


def test_two_states_need_one_count() -> None:
    """Of two states one is counted and the other follows: half the noise of a histogram with one scale."""
    bound = pf.LeakagePropagation(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 100)
    best = bound.calibrate(pf.Histogram(relative=False), 1.0, noise="best")
    assert best.strategy is not None
    assert best.scale == pytest.approx(bound.calibrate(pf.Count(1), 1.0).scale, rel=1e-3)
    assert len(best.scales) == 1


def test_one_output_has_one_scale_anyway() -> None:
    bound = pf.LeakagePropagation(CHAIN, 50)
    for query in (pf.Count("low"), pf.Mean([0, 1, 2])):
        assert bound.calibrate(query, 1.0, noise="best").unit_scale == bound.calibrate(query, 1.0).unit_scale


def test_it_is_refused_where_it_means_nothing() -> None:
    query = pf.Histogram()
    with pytest.raises(ParameterError, match='expected "equal"'):
        pf.LeakagePropagation(CHAIN, 50).calibrate(query, 1.0, noise="beste")  # type: ignore[arg-type]
    for mechanism in (pf.Wasserstein, pf.ExactLaplace):
        with pytest.raises(NotApplicableError, match="one query with one scale"):
            mechanism(CHAIN, 5).calibrate(query, 1.0, noise="best")
    network = pf.BayesianNetwork({"a": pf.CPT(["no", "yes"], [0.8, 0.2])})
    with pytest.raises(NotApplicableError, match="Bayesian network"):
        pf.LeakagePropagation(network).calibrate(pf.Marginals(), 1.0, noise="best")
    together = np.array([[1, 1, 0], [0, 0, 1]])  # of three states two always count together
    with pytest.raises(QueryError, match="do not follow"):
        Strategy(np.eye(3, dtype=np.int64), together, np.array([1, 1]))
    for fraction in (np.eye(3) * 1.5, [["1", 0, 0]], np.full((3, 3), math.nan)):
        with pytest.raises(pf.QueryError, match=r"a strategy's rows .* whole numbers"):
            Strategy(np.eye(3, dtype=np.int64), fraction, np.ones(3, dtype=np.int64))
    other = Strategy(np.eye(3, dtype=np.int64), np.eye(3, dtype=np.int64), np.ones(3, dtype=np.int64))
    with pytest.raises(QueryError, match="another query"):
        pf.LeakagePropagation(CHAIN, 50).calibrate_strategy(pf.CDF(), other, 1.0)


def test_an_accuracy_is_reached_with_less_epsilon(slow: bool) -> None:
    bound, error = pf.LeakagePropagation(CHAIN, 200 if slow else 20), 0.2 if slow else 0.5
    for query, joint in ((pf.Histogram(), False), (pf.CDF(), True)):
        equal, best = (
            bound.calibrate(query, accuracy=error, alpha=0.1, joint=joint, noise=shape) for shape in ("equal", "best")
        )
        assert best.accuracy(0.1, joint=joint) <= error
        assert np.all(best.accuracies(0.1, joint=joint) >= 0)
        assert best.epsilon < equal.epsilon
        assert best.prove_leakage() <= best.epsilon


def test_a_ledger_adds_the_losses_of_different_shapes(slow: bool) -> None:
    bound = pf.LeakagePropagation(CHAIN, 60 if slow else 20)
    ledger = Ledger(bound, 5.0)
    total = np.zeros((3, 3))
    for query in (pf.Histogram(), pf.CDF()):
        noise = bound.calibrate(query, 0.5, noise="best")
        total += noise.record_loss
        ledger.spend(noise)
    assert ledger.spent == pytest.approx(bound.leakage(total), rel=1e-6)
    left = ledger.calibrate(pf.Histogram(), up_to=2.0, noise="best")
    assert left.strategy is not None
    assert ledger.spend(left).spent == pytest.approx(2.0, rel=1e-3)


def test_the_total_is_that_of_the_data() -> None:
    """Noise for longer chains serves shorter ones: what follows from the number of records uses theirs."""
    query = pf.Histogram(relative=False)
    noise = pf.LeakagePropagation(CHAIN, [30, 20]).calibrate(query, 1.0, noise="best")
    assert noise.strategy is not None
    assert len(noise.strategy.rows) == 2
    table = pl.DataFrame({"id": [1] * 14 + [2] * 10, "s": STATES * 8})
    data = pf.read_sequences(table, "s", subject="id")
    found = pf.release(data, query, noise)
    assert sum(found.values) == data.records == 24
    assert found.record_loss == pytest.approx(noise.record_loss)
    window = pf.Window(pf.Histogram(relative=False), 10, 30)
    best = pf.LeakagePropagation(CHAIN, 30).calibrate(window, 1.0, noise="best")
    assert sum(pf.release(STATES * 10, window, best).values) == 20


def test_the_search_follows_a_chain_once_and_stops_where_bounds_hardly_move(
    monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    made, places = list[int](), list[int]()
    new, message = ChainPropagation.__init__, AnyPast.message
    monkeypatch.setattr(ChainPropagation, "__init__", lambda self, *given: (made.append(1), new(self, *given))[1])
    monkeypatch.setattr(AnyPast, "message", lambda self, *given: (places.append(1), message(self, *given))[1])
    for p in (P, [[0.99, 0.01], [0.02, 0.98]]):
        bound = pf.LeakagePropagation(pf.MarkovChain(p, "any"), length=5000)
        linear = bound.bind(pf.Histogram(relative=False))
        guess, proven = bound.fast_estimate(), ChainPropagation(np.array(p), "any")
        for scale in (5.0, 40.0, 100.0) if slow else (40.0,):
            losses = loss_of_query(linear, bound.theta, bound.length).divided(scale)
            made.clear()
            places.clear()
            guessed, quickly = guess(losses), len(places)
            assert not made  # it is made once, for all guesses
            places.clear()
            assert guessed == pytest.approx(proven.leakage([Run(5000, linear.unit_distance / scale)]).total, rel=0.01)
            assert quickly < 0.6 * len(places)


def test_a_shape_that_is_no_better_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    proved: list[Strategy | None] = []
    real = InfluenceBound.calibrate_strategy

    def calibrate(bound: InfluenceBound, query: Any, strategy: Strategy | None, epsilon: float) -> Any:
        proved.append(strategy)
        return real(bound, query, strategy, epsilon)

    monkeypatch.setattr(InfluenceBound, "calibrate_strategy", calibrate)
    alike = 0.5 * np.eye(8) + np.full((8, 8), 0.5 / 8)  # no state tells more than any other
    found = pf.LeakagePropagation(pf.MarkovChain(alike), 300).calibrate(pf.Histogram(), 1.0, noise="best")
    assert found.strategy is None
    assert proved == [None]  # the shape was proved too, which takes long with many states
