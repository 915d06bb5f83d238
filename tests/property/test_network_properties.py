"""What must hold of every network: laws between numbers, checked on random ones."""

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import pufferfish as pf
from grids import share_of_examples
from network_oracle import Network, random_network, with_other_tables
from networks import has_secrets, loss_matrices, model_of
from pufferfish.mechanisms import InfluenceBound

ROUNDING = 1 + 1e-9
BISECTION = 1 + 1e-5
EPSILON = st.floats(0.1, 8.0)
SOME = settings(max_examples=share_of_examples(25))


@st.composite
def networks(draw: st.DrawFn, parents: int | None = None) -> Network:
    most = draw(st.integers(1, 3)) if parents is None else parents
    found = random_network(draw(st.integers(0, 10_000)), draw(st.integers(1, 6)), parents=most)
    assume(has_secrets(found))
    return found


def numbers_of(network: Network) -> pf.queries.Query:
    """A query that reads all nodes, whatever their states are called."""
    return pf.Marginals(relative=False) if network.size < 3 else pf.Histogram(relative=False)


def bounds_of(network: Network) -> list[InfluenceBound]:
    model = model_of(network)
    return [pf.GroupDP(model), pf.MarkovQuilt(model, max_quilts=None), pf.LeakagePropagation(model)]


def losses_of(network: Network) -> list[np.ndarray]:
    return loss_matrices(np.random.default_rng(network.size), network)


@SOME
@given(networks(), EPSILON, st.floats(1.0, 4.0))
def test_noise_falls_with_epsilon(network: Network, epsilon: float, factor: float) -> None:
    query = numbers_of(network)
    for bound in bounds_of(network):
        more, less = bound.calibrate(query, epsilon).scale, bound.calibrate(query, epsilon * factor).scale
        assert less <= more * BISECTION
        if not isinstance(bound, pf.LeakagePropagation):  # whose leakage may grow faster than the losses
            assert less <= more / factor * ROUNDING


@SOME
@given(networks(), st.integers(0, 1000), EPSILON)
def test_a_larger_class_never_needs_less(network: Network, seed: int, epsilon: float) -> None:
    """And no more than its worst member."""
    other = with_other_tables(network, 5 * seed)
    assume(has_secrets(other))
    theta = [model_of(network), model_of(other)]
    query = numbers_of(network)
    for make in (pf.GroupDP, pf.MarkovQuilt):
        together = make(theta).calibrate(query, epsilon).scale
        alone = [make(member).calibrate(query, epsilon).scale for member in theta]
        assert together == pytest.approx(max(alone), rel=1e-9)


def relabelled(network: Network, rng: np.random.Generator) -> pf.BayesianNetwork:
    """Other names of nodes and states, nodes and states in another order, parents in another order."""
    orders = [rng.permutation(k) for k in network.sizes]
    cpts = {}
    for node in rng.permutation(network.size).tolist():
        above = network.parents[node]
        table = network.tables[node]
        for axis, j in enumerate([*above, node]):
            table = np.take(table, orders[j], axis=axis)
        swap = rng.permutation(len(above)).tolist()
        table = np.transpose(table, [*swap, len(above)])
        names = [f"s{network.states[node][x]}" for x in orders[node]]
        cpts[f"w{node}"] = pf.CPT(names, table, [f"w{above[a]}" for a in swap])
    return pf.BayesianNetwork(cpts)


@SOME
@given(networks(), st.integers(0, 10_000), EPSILON)
def test_names_and_orders_change_nothing(network: Network, seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    other, query = relabelled(network, rng), numbers_of(network)
    makes = [lambda model: pf.MarkovQuilt(model, max_quilts=None), pf.GroupDP]
    for make in [*makes, pf.LeakagePropagation]:
        first = make(model_of(network)).calibrate(query, epsilon).scale
        assert make(other).calibrate(query, epsilon).scale == pytest.approx(first, rel=1e-5)
    losses = losses_of(network)
    largest = {j: float(loss.max()) for j, loss in enumerate(losses)}
    one = pf.MarkovQuilt(model_of(network), max_quilts=None).leakage({f"v{j}": loss for j, loss in largest.items()})
    two = pf.MarkovQuilt(other, max_quilts=None).leakage({f"w{j}": loss for j, loss in largest.items()})
    assert two == pytest.approx(one, rel=1e-9, abs=1e-11)


@SOME
@given(networks(), st.floats(0.0, 2.0))
def test_leakage_grows_with_the_losses(network: Network, more: float) -> None:
    losses = losses_of(network)
    larger = [loss + more * (1 - np.eye(len(loss))) for loss in losses]
    largest = max(float(loss[pairs].max()) for j, loss in enumerate(losses) if (pairs := network.secrets(j)).any())
    for bound in bounds_of(network):
        leakage = bound.leakage(losses)
        if not isinstance(bound, pf.LeakagePropagation):  # which knows that no release has losses but metrics
            assert largest <= leakage * ROUNDING + 1e-12
        assert leakage <= bound.leakage(larger) * ROUNDING + 1e-9
        assert leakage <= sum(float(loss.max()) for loss in losses) * ROUNDING + 1e-12


@SOME
@given(networks(), st.integers(1, 20), EPSILON)
def test_fewer_quilts_never_need_less(network: Network, most: int, epsilon: float) -> None:
    model, query = model_of(network), numbers_of(network)
    every, few = (pf.MarkovQuilt(model, max_quilts=number) for number in (None, most))
    assert every.calibrate(query, epsilon).scale <= few.calibrate(query, epsilon).scale * ROUNDING
    given_ = pf.MarkovQuilt(model, {"v0": []}, max_quilts=None)
    assert every.calibrate(query, epsilon).scale <= given_.calibrate(query, epsilon).scale * ROUNDING
    assert every.leakage(losses_of(network)) <= given_.leakage(losses_of(network)) * ROUNDING + 1e-12


@SOME
@given(networks(), EPSILON)
def test_fewer_secrets_never_need_more(network: Network, epsilon: float) -> None:
    model, query = model_of(network), numbers_of(network)
    every = pf.MarkovQuilt(model, max_quilts=None).leakage(losses_of(network))
    secret = [node for node in range(network.size) if network.secrets(node).any()]
    alone = [
        pf.MarkovQuilt(model, secrets=[f"v{node}"], max_quilts=None).leakage(losses_of(network)) for node in secret
    ]
    assert every == pytest.approx(max(alone), rel=1e-12, abs=1e-15)
    one = pf.MarkovQuilt(model, secrets=[f"v{secret[0]}"], max_quilts=None).calibrate(query, epsilon).scale
    assert one <= pf.MarkovQuilt(model, max_quilts=None).calibrate(query, epsilon).scale * ROUNDING


@SOME
@given(networks(), st.integers(2, 100), EPSILON)
def test_rows_share_the_noise_of_relative_queries(network: Network, rows: int, epsilon: float) -> None:
    model = model_of(network)
    for make in (pf.MarkovQuilt, pf.GroupDP):
        one, many = make(model), make.of(model, rows)
        counts = [bound.calibrate(pf.Histogram(relative=False), epsilon).scale for bound in (one, many)]
        shares = [bound.calibrate(pf.Histogram(), epsilon).scale for bound in (one, many)]
        assert counts[0] == counts[1]
        assert shares[1] == pytest.approx(shares[0] / rows, rel=1e-12)


@settings(max_examples=share_of_examples(15))
@given(networks(parents=1), EPSILON)
def test_propagation_needs_no_more_than_quilts(network: Network, epsilon: float) -> None:
    query = numbers_of(network)
    group, quilts, propagation = (bound.calibrate(query, epsilon).scale for bound in bounds_of(network))
    assert propagation <= quilts * BISECTION
    assert quilts <= group * ROUNDING
