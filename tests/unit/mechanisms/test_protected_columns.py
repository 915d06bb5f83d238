"""Protection of columns: classes, one column, whole rows, what does not matter, what is refused, least noise."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from network_oracle import random_network, shaped, with_odd_tables, with_other_tables
from networks import has_secrets, loss_matrices, model_of
from pufferfish._core.propagation.cluster_columns import ColumnsPropagation
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.mechanisms.protected_columns import ProtectedColumns, leakage_of_columns
from pufferfish.mechanisms.witness import ClusterWitness, QuiltWitness

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "bayesnets"
COIN = pf.CPT(["0", "1"], [0.5, 0.5])
XOR = pf.CPT(["0", "1"], [[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]], ["a", "b"])
COINS = pf.BayesianNetwork({"a": COIN, "b": COIN, "y": XOR})


def star(tables: list[list[float]], leaves: str = "abc") -> pf.BayesianNetwork:
    leaf = pf.CPT(["0", "1"], tables, ["hub"])
    return pf.BayesianNetwork({"hub": pf.CPT(["0", "1"], [0.3, 0.7]), **dict.fromkeys(leaves, leaf)})


def test_two_coins() -> None:
    bound, witness = leakage_of_columns(COINS, 1000, {"y": 1.0}, ["a", "b"])
    assert bound == pytest.approx(0.77614, abs=5e-6)
    assert witness is not None
    assert (witness.by, witness.theta, witness.columns, witness.own) == ("propagation", 0, ("a", "b"), 0.0)
    assert witness.others == pytest.approx(bound)
    for name in ("a", "b"):
        assert leakage_of_columns(COINS, 1000, {"y": 1.0}, [name])[0] < 1e-12


def test_one_column_is_what_propagation_says_of_the_node(slow: bool) -> None:
    """The same bound, and the search for several columns finds no other one."""
    exact = 0
    for seed in range(200 if slow else 30):
        network = random_network(seed, 2 + seed % 4, parents=1 + seed % 3)
        losses = loss_matrices(np.random.default_rng(seed), network)
        model = model_of(network)
        for j in range(network.size):
            plain = pf.LeakagePropagation(model, secrets=[f"v{j}"])
            expected, its = plain.prove(losses)
            bound, witness = leakage_of_columns(model, None, losses, [f"v{j}"])
            assert bound == expected
            assert (witness is None) == (its is None)
            if witness is not None and isinstance(its, ClusterWitness) and its.secret_pair is not None:
                assert (witness.values, witness.other_values) == tuple((state,) for state in its.secret_pair)
                assert witness.own == its.own
            alone = ColumnsPropagation(model.tables, model.sizes, [j]).leakage(losses).total
            if not isinstance(its, QuiltWitness):  # which propagation does not ask for
                assert alone == pytest.approx(expected, rel=1e-9, abs=1e-12), (seed, j)
                exact += 1
    assert exact > (500 if slow else 80)


def test_more_columns_leak_more_and_no_more_than_the_row(slow: bool) -> None:
    for seed in range(150 if slow else 20):
        network = random_network(seed, 3 + seed % 2, parents=2)
        if seed % 2:
            network = with_odd_tables(network, seed)
        losses = loss_matrices(np.random.default_rng(seed), network)
        model, total = model_of(network), math.fsum(loss.max() for loss in losses)
        before, order = 0.0, [f"v{j}" for j in np.random.default_rng(seed).permutation(network.size)]
        for count in range(1, network.size + 1):
            bound = leakage_of_columns(model, None, losses, order[:count])[0]
            assert before <= bound * (1 + 1e-6) + 1e-9, (seed, count)
            assert bound <= total * (1 + 1e-9)
            before = bound


def test_a_whole_row_leaks_all_losses() -> None:
    """Without a look at Θ; named, all columns leak as much where all values can occur, and else what these differ."""
    network = star([[0.9, 0.1], [0.2, 0.8]])
    losses = {"a": 0.1, "b": 0.2, "c": 0.3}
    bound, witness = leakage_of_columns(network, None, losses)
    assert bound >= 0.6
    assert witness is not None
    assert (witness.by, witness.columns, witness.values) == ("row", ("hub", "a", "b", "c"), None)
    named = leakage_of_columns(network, None, losses, ["hub", "a", "b", "c"])[0]
    assert named == bound
    opposite = pf.BayesianNetwork({"a": COIN, "b": pf.CPT(["0", "1"], [[0.0, 1.0], [1.0, 0.0]], ["a"])})
    values = {"a": [[0, 0.5], [0.0, 0]], "b": [[0, 0.25], [0.0, 0]]}
    assert leakage_of_columns(opposite, None, values)[0] == 0.75
    assert leakage_of_columns(opposite, None, values, ["a", "b"])[0] == pytest.approx(0.5)


def test_order_and_columns_of_one_value_do_not_matter() -> None:
    one = pf.CPT(["only"], [[[1.0], [1.0]], [[1.0], [1.0]]], ["a", "b"])
    network = pf.BayesianNetwork({"a": COIN, "b": COIN, "y": XOR, "one": one})
    losses = {"a": 0.2, "y": 1.0}
    expected = leakage_of_columns(network, None, losses, ["a", "b"])
    for columns in itertools.permutations(["a", "b", "one"]):
        bound, witness = leakage_of_columns(network, None, losses, columns)
        assert bound == pytest.approx(expected[0], rel=1e-12)
        assert witness is not None
        assert witness.columns == ("a", "b", "one")
    assert leakage_of_columns(network, None, losses, ["b", "a"]) == expected
    assert leakage_of_columns(network, None, losses, {"b", "a"}) == expected
    assert leakage_of_columns(network, None, losses, ["one"]) == (0.0, None)
    alone = leakage_of_columns(network, None, losses, ["one", "a"])[0]
    assert alone == pytest.approx(leakage_of_columns(network, None, losses, ["a"])[0], rel=1e-9)


def test_columns_that_nobody_reads() -> None:
    """They are secret all the same; and what depends on no secret column does not count."""
    network = star([[0.9, 0.1], [0.2, 0.8]])
    unread = leakage_of_columns(network, None, {"c": 1.0}, ["a", "b"])[0]
    assert leakage_of_columns(network, None, {"c": 1.0}, ["a"])[0] < unread < 1.0
    assert leakage_of_columns(network, None, 0.0, ["a", "b"])[0] == 0.0
    apart = pf.BayesianNetwork({**network.cpts, "far": COIN, "child": pf.CPT(["0"], [[[1.0]] * 2] * 2, ["far", "a"])})
    with_far = leakage_of_columns(apart, None, {"c": 1.0, "far": 5.0}, ["a", "b"])[0]
    assert with_far == pytest.approx(unread, rel=1e-12)


def test_nothing_is_secret_where_there_is_one_value() -> None:
    sure = pf.CPT(["0", "1"], [0.0, 1.0])
    network = pf.BayesianNetwork({"a": sure, "b": sure, "y": XOR})
    assert leakage_of_columns(network, None, 1.0, ["a", "b"]) == (0.0, None)
    assert ProtectedColumns(network, None, ["a", "b"]).least_divisor(1.0, 1.0) == 0.0
    bound, witness = leakage_of_columns(network, None, 1.0, ["a", "b", "y"])
    assert bound == pytest.approx(1.0)
    assert witness is not None
    assert witness.own == 1.0


@pytest.mark.parametrize("seed", range(6))
def test_the_worst_network_decides(seed: int) -> None:
    """Other tables, other edges."""
    first = shaped("theta", [[], [0], [0], [2]], 5 * seed)
    theta = [first, with_other_tables(first, 5 * seed + 1), with_other_tables(first, seed, [[1], [3], [1], []])]
    losses = loss_matrices(np.random.default_rng(seed), first)
    models = [model_of(network) for network in theta]
    for columns in (["v1", "v3"], ["v0", "v1", "v2"], ["v2"]):
        each = [leakage_of_columns(model, None, losses, columns)[0] for model in models]
        bound, witness = leakage_of_columns(models, 7, losses, columns)
        assert bound == max(each)
        if witness is not None:
            assert each[witness.theta] == bound
        protected = ProtectedColumns(models, 7, columns)
        if bound > 0:
            alone = [ProtectedColumns(model, 7, columns).least_divisor(losses, 0.3) for model in models]
            assert protected.least_divisor(losses, 0.3) == pytest.approx(max(alone), rel=1e-5)


def test_the_least_noise_keeps_its_promise_and_is_hardly_too_much() -> None:
    tried = 0
    for seed in range(12):
        network = random_network(seed, 3 + seed % 2, parents=2)
        losses = loss_matrices(np.random.default_rng(seed), network)
        if not has_secrets(network):
            continue
        protected = ProtectedColumns(model_of(network), None, ["v0", "v2"])
        for epsilon in (0.01, 0.7, 5.0):
            divisor = protected.least_divisor(losses, epsilon)
            if divisor > 1e-6:
                tried += 1
                assert protected.leakage([loss / divisor for loss in losses]) <= epsilon
                assert protected.leakage([loss / divisor / (1 - 1e-4) for loss in losses]) > epsilon
    assert tried > 12


def test_no_noise_is_needed_where_little_can_be_told() -> None:
    """The coins' noisy sum tells log 9 of both, whatever its noise."""
    both = ProtectedColumns(COINS, None, ["a", "b"])
    assert both.least_divisor({"y": 1.0}, 2.2) == 0.0
    assert both.leakage({"y": 700.0}) == pytest.approx(math.log(9), rel=1e-9)
    assert both.leakage({"y": 1e300}) <= math.log(9) * (1 + 1e-9)
    assert both.least_divisor({"y": 1.0}, 2.19) > 0.0
    assert both.least_divisor({"y": 0.0}, 1.0) == 0.0
    assert ProtectedColumns(COINS, None).least_divisor({"a": 1.0, "y": 1.0}, 0.5) == pytest.approx(4.0, rel=1e-5)


def test_what_is_refused() -> None:
    def refused(columns: Any, words: str) -> None:
        with pytest.raises(ParameterError, match=words) as caught:
            ProtectedColumns(COINS, None, columns)
        assert "\n" not in str(caught.value)

    refused(["a", "c"], r"columns names 'c', which is no node\. Nodes: a, b, y")
    refused(["a", "A "], "Did you mean 'a'")
    refused(["a", "b", "a"], "columns names 'a' twice")
    refused([], "columns is empty")
    refused("ab", "columns is 'ab', expected a list of names")
    with pytest.raises(NotApplicableError, match="Markov chains"):
        ProtectedColumns(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 10, ["a"])
    with pytest.raises(ParameterError, match="number of rows"):
        ProtectedColumns(COINS, 0, ["a"])
    both = ProtectedColumns(COINS, None, ["a", "b"])
    with pytest.raises(ParameterError, match="epsilon"):
        both.least_divisor(1.0, math.inf)
    for wrong in (-1.0, math.nan, math.inf, {"z": 1.0}, [1.0, 2.0]):
        with pytest.raises(ParameterError, match="record_loss"):
            both.leakage(wrong)


def test_many_columns_at_once() -> None:
    """Far more joint values than can be listed: the sum of each term's largest entry, and never more than all."""
    names = [f"x{i}" for i in range(40)]
    step = [[0.9, 0.1], [0.1, 0.9]]
    chain = pf.BayesianNetwork(
        {v: pf.CPT(["0", "1"], step, [names[i - 1]]) if i else COIN for i, v in enumerate(names)}
    )
    every_second = names[::2]
    bound, witness = leakage_of_columns(chain, None, 0.1, every_second)
    assert witness is not None
    assert witness.values is None
    # a node between two columns that differ tells up to .1, one beside a single column less
    assert 20 * 0.1 + 19 * 0.09 < bound < 4.0
    few = leakage_of_columns(chain, None, 0.1, every_second[:10])[0]
    assert few < bound
    assert leakage_of_columns(chain, None, 0.1, names)[0] == pytest.approx(4.0, rel=1e-12)


@pytest.mark.parametrize(("name", "value", "divisor"), [("asia", 1.29131, 4.28296), ("child", 2.00896, 6.45321)])
def test_networks_from_files(name: str, value: float, divisor: float) -> None:
    """The first two columns, .3 for each node: more than either alone, less than all."""
    path = DATA / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in ../shared/data/bayesnets")
    network = pf.BayesianNetwork.from_bif(path)
    two = ProtectedColumns(network, 100, network.nodes[:2])
    assert two.leakage(0.3) == pytest.approx(value, abs=1e-4)
    assert two.least_divisor(1.0, 1.0) == pytest.approx(divisor, rel=1e-3)
