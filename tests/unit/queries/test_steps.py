"""Queries about steps, and losses of steps."""

import itertools
import math

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.queries.record_loss import StepLoss, as_record_loss, chains_that_can_decide, loss_of_query
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.model_class import as_theta

P = [[0.9, 0.1], [0.4, 0.6]]
CHAIN = pf.MarkovChain(P, states=["a", "b"])
NETWORK = pf.BayesianNetwork({"u": pf.CPT(["a", "b"], [0.5, 0.5]), "v": pf.CPT(["a", "b"], P, ["u"])})
CLIQUES = pf.Cliques([[0.3, 0.4, 0.3]], states=["a", "b"])


def test_one_step_moves_two_counts_or_one_number() -> None:
    for query, outputs, step, unit in (
        (pf.Transitions(), 9, 2, 1.0),
        (pf.Transitions(relative=True), 9, 2, 0.1),
        (pf.Switches(), 1, 1, 1.0),
        (pf.Switches(relative=True), 1, 1, 0.1),
    ):
        bound = query.bind(["a", "b", "c"], records=10)
        assert (len(bound.labels), bound.unit_step, bound.unit_lipschitz) == (outputs, step, 2 * step)
        assert float(bound.unit) == unit
        assert (bound.divided_by == 10) == query.relative
        assert bound.unit_distance.tolist() == (2 * step * (1 - np.eye(3))).tolist()
    assert pf.Switches().bind(["a"], records=10).unit_step == 0
    assert pf.Switches().bind(["a", "b"], 3).counted([[1, 2], [4, 8]]) == [6]
    assert pf.Transitions().bind(["a", "b"], 3).counted([[1, 2], [4, 8]]) == [1, 2, 4, 8]


def test_what_one_record_moves_is_what_it_moves_in_some_series() -> None:
    """Every series of four records, every record, every change of it."""
    states = ["a", "b", "c"]
    asked = (pf.Bouts("a"), pf.Bouts(["a", "c"]), pf.Switches())
    for bound in (query.bind(states, 4) for query in asked):
        counted, most = bound.outputs >= 0, np.zeros((3, 3))
        for series in itertools.product(range(3), repeat=4):
            for record, x_ in itertools.product(range(4), range(3)):
                other = (*series[:record], x_, *series[record + 1 :])
                numbers = (sum(counted[a, b] for a, b in itertools.pairwise(each)) for each in (series, other))
                moved = abs(int(np.subtract(*map(int, numbers))))
                most[series[record], x_] = max(most[series[record], x_], moved)
        assert bound.unit_distance.tolist() == most.tolist()
    assert pf.Bouts(["a", "c"]).bind(states, 4).unit_distance.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    theta = as_theta(pf.MarkovChain(np.full((3, 3), 1 / 3), states=states))
    for query in asked:
        bound = query.bind(states, 4)
        assert bound.by_records == (query != pf.Switches())
        assert loss_of_query(bound, theta, [ChainLength(4, 4)]).step == (query == pf.Switches())
    for wrong, says in (("d", "no such state"), (states, "never begin"), ([], "names no state")):
        with pytest.raises(pf.QueryError, match=says):
            pf.Bouts(wrong).bind(states, 4)


def test_what_has_no_steps_is_refused() -> None:
    joint = pf.JointDistribution([("a", "a"), ("b", "b")], [0.5, 0.5])
    for query in (pf.Transitions(), pf.Switches(), pf.Bouts("a")):
        for theta, length in ((NETWORK, 5), (CLIQUES, None), (joint, None)):
            with pytest.raises(pf.QueryError, match="from one record of a chain to the next"):
                pf.GroupDP(theta, length).calibrate(query, 1.0)
        for restricted in (pf.Window(query, 0, 2), pf.Weighted(query, [1, 1, 1]), pf.Subset(query, [0, 1])):
            with pytest.raises(pf.QueryError, match="expected a query such as"):
                pf.GroupDP(CHAIN, 3).calibrate(restricted, 1.0)
        for mechanism in (pf.Wasserstein, pf.ExactLaplace) if isinstance(query, pf.Transitions) else ():
            with pytest.raises(pf.NotApplicableError, match="one number of steps, not several"):
                mechanism(CHAIN, 20).calibrate(query, 1.0)
        with pytest.raises(pf.QueryError, match="no record can change the answer"):
            pf.LeakagePropagation(CHAIN, [1, 1]).calibrate(query, 1.0)
    with pytest.raises(pf.QueryError, match="relative"):
        pf.Transitions(relative="no")  # type: ignore[arg-type]


def test_a_loss_of_steps_is_checked() -> None:
    bound = pf.LeakagePropagation(CHAIN, [5, 3])
    for step in (-0.1, math.nan, math.inf, [[0.1]], "x"):
        with pytest.raises(pf.ParameterError, match="the loss of a step"):
            pf.StepLoss(step)
    with pytest.raises(pf.ParameterError, match="one per chain"):
        bound.leakage(pf.StepLoss([0.1]))
    with pytest.raises(pf.ParameterError, match="needs Markov chains"):
        pf.GroupDP(NETWORK, 5).leakage(pf.StepLoss(0.1))
    assert bound.leakage(pf.StepLoss([0.1, 0.1])) == bound.leakage(pf.StepLoss(0.1))
    assert bound.leakage(pf.StepLoss(0.0, 0.3)) == bound.leakage(0.3)
    assert bound.leakage(pf.StepLoss([0.0, 0.1])) < bound.leakage(pf.StepLoss(0.1))
    assert pf.LeakagePropagation(CHAIN, 1).leakage(pf.StepLoss(5.0, 0.3)) == pytest.approx(0.3)


def test_an_engine_is_never_given_steps_that_it_would_pass_over() -> None:
    losses = as_record_loss(pf.StepLoss(0.1), as_theta(CHAIN), (ChainLength(5, 5),))
    with pytest.raises(AssertionError, match="losses of steps"):
        list(chains_that_can_decide(losses))
    assert losses.divided(4).step == pytest.approx(0.025)
    assert losses.divided(4).step >= 0.025


def test_what_steps_cost_by_each_bound() -> None:
    """n steps of a group; one step more than records near a quilt; two for a bound that knows records alone."""
    step, long = 0.01, 1000
    loss = pf.StepLoss(step)
    assert pf.GroupDP(CHAIN, 20).leakage(loss) == pytest.approx(19 * step)
    coin = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    assert pf.EntryDP(coin, long).leakage(loss) == pytest.approx(2 * step)
    weak = pf.MarkovChain([[0.52, 0.48], [0.47, 0.53]])
    assert pf.GK16(weak, long).leakage(loss) == pytest.approx(pf.GK16(weak, long).leakage(2 * step))
    for bound in (pf.LeakagePropagation, pf.MQMExact, pf.MQMApprox):
        with_steps, alone = bound(CHAIN, long).leakage(loss), bound(CHAIN, long).leakage(step)
        assert with_steps == pytest.approx(alone + step, rel=1e-9)
        assert with_steps < bound(CHAIN, long).leakage(2 * step)
    tensor = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.4, 0.6], [0.2, 0.8]]])
    memory = pf.LeakagePropagation(pf.HigherOrderChain(tensor), long)
    assert memory.leakage(loss) == pytest.approx(memory.leakage(2 * step), rel=1e-9)


def test_noise_for_steps_is_the_least_that_is_proved(slow: bool) -> None:
    """And the witness adds up, with nothing for the record itself, which a release of steps does not read."""
    thetas = [CHAIN, pf.MarkovChain(P, "any"), pf.PeriodicChain([P, P[::-1]]), pf.IntervalChain(P, P)]
    thetas += [pf.ForgettingClass(steps=3, overlap=0.6, states=["a", "b"]), pf.MarkovChain(np.eye(2)[::-1])]
    queries = (pf.Transitions(), pf.Switches())
    for i, theta in enumerate(thetas):
        for query in queries if slow else queries[i % 2 :][:1]:
            found = pf.LeakagePropagation(theta, 50).calibrate(query, 1.0)
            leakage, witness = found.bound.verify(found)
            assert 1 - 1e-5 < leakage <= 1.0
            if isinstance(witness, pf.PropagationWitness | pf.ForgettingWitness):
                assert witness.own == 0
                assert witness.past + witness.future == pytest.approx(leakage)
    by_accuracy = pf.LeakagePropagation(CHAIN, 50).calibrate(pf.Transitions(), accuracy=20)
    assert by_accuracy.accuracy() <= 20
    assert 0 < by_accuracy.lower_bound <= by_accuracy.scale
    many = pf.MarkovChain(np.full((17, 17), 1 / 17))
    assert pf.LeakagePropagation(many, 50).calibrate(pf.Transitions(), 1.0).lower_bound == 0


def test_losses_of_steps_cannot_be_changed_afterwards() -> None:
    given = np.full((2, 2), 0.3)
    for records in (given, [given, given], [0.3, 0.4], pf.Profile([(5, given)])):
        kept = StepLoss(0.5 if not isinstance(records, list) else [0.5, 0.5], records)
        given[0, 1] = 0.0
        for entry in kept.records if isinstance(kept.records, tuple) else (kept.records,):
            loss = entry.stretches[0][1] if isinstance(entry, pf.Profile) else entry
            if np.ndim(loss):
                assert loss[0, 1] == 0.3
                with pytest.raises(ValueError, match="read-only"):
                    loss[0, 1] = 0.0
        given[0, 1] = 0.3
