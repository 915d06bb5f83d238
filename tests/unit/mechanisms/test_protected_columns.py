"""Protection of columns: classes, one column, whole rows, what does not matter, what is refused, least noise."""

import itertools
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from network_oracle import random_network, shaped, with_odd_tables, with_other_tables
from networks import has_secrets, leakage_of_columns, loss_matrices, model_of, noise_for_columns
from pufferfish._core.propagation.cluster_columns import ColumnsPropagation
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.mechanisms.witness import ColumnsWitness, QuiltWitness

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "bayesnets"
COIN = pf.CPT(["0", "1"], [0.5, 0.5])
XOR = pf.CPT(["0", "1"], [[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]], ["a", "b"])
COINS = pf.BayesianNetwork({"a": COIN, "b": COIN, "y": XOR})


def star(tables: list[list[float]], leaves: str = "abc") -> pf.BayesianNetwork:
    leaf = pf.CPT(["0", "1"], tables, ["hub"])
    return pf.BayesianNetwork({"hub": pf.CPT(["0", "1"], [0.3, 0.7]), **dict.fromkeys(leaves, leaf)})


def test_two_coins() -> None:
    bound, witness = leakage_of_columns(COINS, {"y": 1.0}, ["a", "b"])
    assert bound == pytest.approx(0.77614, abs=5e-6)
    assert isinstance(witness, ColumnsWitness)
    assert (witness.by, witness.theta, witness.columns, witness.own) == ("propagation", 0, ("a", "b"), 0.0)
    assert witness.others == pytest.approx(bound)
    for name in ("a", "b"):
        assert leakage_of_columns(COINS, {"y": 1.0}, [name])[0] < 1e-12


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
            assert leakage_of_columns(model, losses, [f"v{j}"]) == (expected, its)
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
            bound = leakage_of_columns(model, losses, order[:count])[0]
            assert before <= bound * (1 + 1e-6) + 1e-9, (seed, count)
            assert bound <= total * (1 + 1e-9)
            before = bound


def test_a_whole_row_leaks_all_losses() -> None:
    """Without a look at Θ; named, all columns leak as much where all values can occur, and else what these differ."""
    network = star([[0.9, 0.1], [0.2, 0.8]])
    losses = {"a": 0.1, "b": 0.2, "c": 0.3}
    bound, witness = leakage_of_columns(network, losses)
    assert bound >= 0.6
    assert isinstance(witness, ColumnsWitness)
    assert (witness.by, witness.columns, witness.values) == ("row", None, None)
    named = leakage_of_columns(network, losses, ["hub", "a", "b", "c"])[0]
    assert named == bound
    opposite = pf.BayesianNetwork({"a": COIN, "b": pf.CPT(["0", "1"], [[0.0, 1.0], [1.0, 0.0]], ["a"])})
    values = {"a": [[0, 0.5], [0.0, 0]], "b": [[0, 0.25], [0.0, 0]]}
    assert leakage_of_columns(opposite, values)[0] == 0.75
    assert leakage_of_columns(opposite, values, ["a", "b"])[0] == pytest.approx(0.5)


def test_order_and_columns_of_one_value_do_not_matter() -> None:
    one = pf.CPT(["only"], [[[1.0], [1.0]], [[1.0], [1.0]]], ["a", "b"])
    network = pf.BayesianNetwork({"a": COIN, "b": COIN, "y": XOR, "one": one})
    losses = {"a": 0.2, "y": 1.0}
    expected = leakage_of_columns(network, losses, ["a", "b"])
    for columns in itertools.permutations(["a", "b", "one"]):
        bound, witness = leakage_of_columns(network, losses, columns)
        assert bound == pytest.approx(expected[0], rel=1e-12)
        assert isinstance(witness, ColumnsWitness)
        assert witness.columns == ("a", "b", "one")
    assert leakage_of_columns(network, losses, ["b", "a"]) == expected
    assert leakage_of_columns(network, losses, {"b", "a"}) == expected
    alone = leakage_of_columns(network, losses, ["one", "a"])[0]
    assert alone == pytest.approx(leakage_of_columns(network, losses, ["a"])[0], rel=1e-9)


def test_columns_that_nobody_reads() -> None:
    """They are secret all the same; and what depends on no secret column does not count."""
    network = star([[0.9, 0.1], [0.2, 0.8]])
    unread = leakage_of_columns(network, {"c": 1.0}, ["a", "b"])[0]
    assert leakage_of_columns(network, {"c": 1.0}, ["a"])[0] < unread < 1.0
    assert leakage_of_columns(network, 0.0, ["a", "b"])[0] == 0.0
    apart = pf.BayesianNetwork({**network.cpts, "far": COIN, "child": pf.CPT(["0"], [[[1.0]] * 2] * 2, ["far", "a"])})
    with_far = leakage_of_columns(apart, {"c": 1.0, "far": 5.0}, ["a", "b"])[0]
    assert with_far == pytest.approx(unread, rel=1e-12)


def test_nothing_is_secret_where_there_is_one_value() -> None:
    sure = pf.CPT(["0", "1"], [0.0, 1.0])
    network = pf.BayesianNetwork({"a": sure, "b": sure, "y": XOR})
    assert leakage_of_columns(network, 1.0, ["a", "b"]) == (0.0, None)
    assert noise_for_columns(network, 1.0, 1.0, ["a", "b"]) == 0.0
    with pytest.raises(ModelError, match="no secret to protect"):
        pf.LeakagePropagation(network, 100, protect="a+b").calibrate(pf.Marginals(), 1.0)
    bound, witness = leakage_of_columns(network, 1.0, ["a", "b", "y"])
    assert bound == pytest.approx(1.0)
    assert isinstance(witness, ColumnsWitness)
    assert witness.own == 1.0


@pytest.mark.parametrize("seed", [2, 0, 1, 3, 4, 5])  # in 2 and 5 the first network is not the worst
def test_the_worst_network_decides(seed: int) -> None:
    """Other tables, other edges."""
    first = shaped("theta", [[], [0], [0], [2]], 5 * seed)
    theta = [first, with_other_tables(first, 5 * seed + 1), with_other_tables(first, seed, [[1], [3], [1], []])]
    losses = loss_matrices(np.random.default_rng(seed), first)
    models = [model_of(network) for network in theta]
    for columns in (["v1", "v3"], ["v0", "v1", "v2"], ["v2"]):
        each = [leakage_of_columns(model, losses, columns)[0] for model in models]
        bound, witness = leakage_of_columns(models, losses, columns)
        assert bound == max(each)
        if witness is not None:
            assert each[witness.theta] == bound
        if bound > 0:
            alone = [noise_for_columns(model, losses, 0.3, columns) for model in models]
            assert noise_for_columns(models, losses, 0.3, columns) == pytest.approx(max(alone), rel=1e-5)


def test_the_least_noise_keeps_its_promise_and_is_hardly_too_much() -> None:
    tried = 0
    for seed in range(12):
        network = random_network(seed, 3 + seed % 2, parents=2)
        losses = loss_matrices(np.random.default_rng(seed), network)
        if not has_secrets(network):
            continue
        model, two = model_of(network), ["v0", "v2"]
        for epsilon in (0.01, 0.7, 5.0):
            divisor = noise_for_columns(model, losses, epsilon, two)
            if divisor > 1e-6:
                tried += 1
                assert leakage_of_columns(model, [loss / divisor for loss in losses], two)[0] <= epsilon
                assert leakage_of_columns(model, [loss / divisor / (1 - 1e-4) for loss in losses], two)[0] > epsilon
    assert tried > 12


def test_no_noise_is_needed_where_little_can_be_told() -> None:
    """The coins' noisy sum tells log 9 of both, whatever its noise."""
    two = ["a", "b"]
    assert leakage_of_columns(COINS, {"y": 700.0}, two)[0] == pytest.approx(math.log(9), rel=1e-9)
    assert leakage_of_columns(COINS, {"y": 1e300}, two)[0] <= math.log(9) * (1 + 1e-9)
    assert noise_for_columns(COINS, {"y": 1.0}, 2.19, two) > 0.1 > noise_for_columns(COINS, {"y": 1.0}, 2.2, two)
    assert noise_for_columns(COINS, {"a": 1.0, "y": 1.0}, 0.5) == pytest.approx(4.0, rel=1e-9)
    with pytest.raises(NotApplicableError, match="no noise is needed"):
        pf.LeakagePropagation(COINS, protect=two).calibrate(pf.Marginals(["y"]), 2.2)


def test_what_is_refused() -> None:
    def refused(protect: Any, words: str, theta: Any = COINS, **settings: Any) -> None:
        with pytest.raises(ParameterError, match=words) as caught:
            pf.LeakagePropagation(theta, 10, protect=protect, **settings)
        assert "\n" not in str(caught.value)

    for given in (["a", "c"], "a+c"):
        refused(given, r"protect names 'c', which is not a column\. Columns: a, b, y. Several are joined by")
    refused("a+A ", "Did you mean 'a'")
    refused("a+b+a", "protect names 'a' twice")
    for nothing in ([], 60, 0, 1.5, {}, timedelta(hours=1)):
        refused(nothing, "expected columns of the network, such as 'a[+]b', or 'row' for all of them")
    for nothing in ("", "a+", "1h", "subject"):
        refused(nothing, "which is not a column")
    refused("a+b", "secrets and protect both define what is hidden", secrets=["a"])
    refused("a+b", "within is about states of chains", within=1)
    refused(None, "within is about states of chains", within=[("0", "1")])
    plus = pf.BayesianNetwork({"a": COIN, "b": COIN, "a+b": XOR})
    refused("a+b", r"the name of column 'a\+b' has a \+ in it: give a list in Python, such as protect=\['a\+b'\]", plus)
    assert pf.LeakagePropagation(plus, protect=["a+b"]).settings["protect"] == ["a+b"]
    refused("row", "protect is 'row'", pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]))
    refused(["a"], "protect is", pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]))


@pytest.mark.slow
def test_many_columns_at_once() -> None:
    """Far more joint values than can be listed: the sum of each term's largest entry, and never more than all."""
    names = [f"x{i}" for i in range(40)]
    step = [[0.9, 0.1], [0.1, 0.9]]
    chain = pf.BayesianNetwork(
        {v: pf.CPT(["0", "1"], step, [names[i - 1]]) if i else COIN for i, v in enumerate(names)}
    )
    every_second = names[::2]
    bound, witness = leakage_of_columns(chain, 0.1, every_second)
    assert isinstance(witness, ColumnsWitness)
    assert witness.values is None
    # a node between two columns that differ tells up to .1, one beside a single column less
    assert 20 * 0.1 + 19 * 0.09 < bound < 4.0
    few = leakage_of_columns(chain, 0.1, every_second[:10])[0]
    assert few < bound
    assert leakage_of_columns(chain, 0.1, names)[0] == pytest.approx(4.0, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value", "divisor"), [("asia", 1.29131, 4.28296), ("child", 2.00896, 6.45321)])
def test_networks_from_files(name: str, value: float, divisor: float) -> None:
    """The first two columns, .3 for each node: more than either alone, less than all."""
    path = DATA / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in ../shared/data/bayesnets")
    network = pf.BayesianNetwork.from_bif(path)
    assert leakage_of_columns(network, 0.3, network.nodes[:2])[0] == pytest.approx(value, abs=1e-4)
    assert noise_for_columns(network, 1.0, 1.0, network.nodes[:2]) == pytest.approx(divisor, rel=1e-3)
