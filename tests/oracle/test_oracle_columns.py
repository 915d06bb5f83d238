"""Columns of one row together against brute force: no density with the given losses tells more of their joint value.

For every set of columns and pairs of their joint values (all of them, or those whose own losses differ most and some at
random) a linear program finds the worst density of all rows.
"""

import itertools
import math

import numpy as np
import pytest

import pufferfish as pf
from columns_oracle import RowDensities, supremum_of_columns
from network_oracle import SHAPED, Array, Network, joint_law, random_network, shaped, with_odd_tables
from networks import leakage_of_columns, loss_matrices, model_of
from pufferfish._core.propagation import cluster_columns, cluster_plan
from pufferfish._core.propagation.cluster_columns import ColumnsPropagation
from pufferfish.mechanisms.witness import ColumnsWitness

SLACK = 1e-7
FLIP = np.array([[0.9, 0.1], [0.1, 0.9]])
XOR = np.array([FLIP, FLIP[::-1]])
COIN = np.array([0.5, 0.5])
COINS = Network("xor", ((), (), (0, 1)), (COIN, COIN, XOR), (("0", "1"),) * 3)
ONE, NOTHING = 1 - np.eye(2), np.zeros((2, 2))


def names(columns: list[int]) -> list[str]:
    return [f"v{j}" for j in columns]


def some_case(seed: int) -> tuple[Network, list[Array], list[int], np.random.Generator]:
    """A network of three or four nodes with zeros, copies and nodes of one value, losses, and some of its columns."""
    rng = np.random.default_rng([seed, 5])
    size = 3 + seed % 2
    network = random_network(seed, size, int(rng.integers(1, 4)), 3 if size == 3 or rng.random() < 0.3 else 2)
    if rng.random() < 0.4:
        network = with_odd_tables(network, seed)
    losses = loss_matrices(rng, network)
    if rng.random() < 0.3:
        losses = [(1 - np.eye(k)) * rng.choice([0.0, 1.0, 2.0]) for k in network.sizes]
    columns = sorted(int(v) for v in rng.permutation(size)[: int(rng.integers(1, size + 1))])
    return network, losses, columns, rng


def test_no_density_tells_more(slow: bool) -> None:
    """The bound is attained nearly always."""
    ratios: list[float] = []
    programs = 0
    # 95: a joint value that cannot occur, whose place another one's losses would take
    for seed in range(6000) if slow else [*range(80), 95]:
        network, losses, columns, rng = some_case(seed)
        bound, witness = leakage_of_columns(model_of(network), losses, names(columns))
        true, count = supremum_of_columns(network.law, losses, columns, rng, most=30)
        assert true <= bound + SLACK, (seed, columns)
        assert (witness is None) == (count == 0), seed
        programs += count
        if bound > 1e-9:
            ratios.append(true / bound)
    assert programs > (80_000 if slow else 1_000)
    assert np.mean(np.array(ratios) > 0.999) > 0.9


@pytest.mark.parametrize("network", [n for n in SHAPED if n.size <= 5], ids=str)
def test_shapes_worth_a_look(network: Network, slow: bool) -> None:
    """Every set of two columns and of three: explaining away, paths through a column, parts of several nodes."""
    rng = np.random.default_rng(network.size)
    law = network.law
    if law.size > 100:
        network = shaped(network.name, network.parents, 1, most=2)
        law = network.law
    losses = loss_matrices(rng, network)
    for count in (2, 3):
        sets = list(itertools.combinations(range(network.size), count))
        for i in rng.permutation(len(sets))[: None if slow else 3]:
            columns = list(sets[i])
            bound = leakage_of_columns(model_of(network), losses, names(columns))[0]
            true, _ = supremum_of_columns(law, losses, columns, rng, most=30 if slow else 4)
            assert true <= bound + SLACK, columns


LIMITS: list[dict[str, int]] = [
    {"MOST_VALUES": 1},
    {"MOST_ENTRIES": 4},
    {"MOST_ENTRIES": 0},
    {"MOST_ROWS": 2},
    {"MOST_WHOLE": 0},
    {"MOST_WHOLE": 0, "MOST_COLUMNS": 2},
    {"MOST_ROWS": 2, "MOST_VALUES": 1},
]


@pytest.mark.grid(keep=7)
@pytest.mark.parametrize("limits", LIMITS, ids=lambda limits: " ".join(limits))
def test_what_is_taken_where_clusters_are_too_large(
    limits: dict[str, int], monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    """Sums of largest entries, one variable at a time, no cluster at all: bounds still, and never above all losses."""
    larger = 0
    for seed in range(400 if slow else 16):
        network, losses, columns, rng = some_case(seed)
        model = model_of(network)
        least = ColumnsPropagation(model.tables, model.sizes, columns).leakage(losses).total
        with monkeypatch.context() as limited:
            for name, value in limits.items():
                limited.setattr(cluster_columns if hasattr(cluster_columns, name) else cluster_plan, name, value)
            bound = ColumnsPropagation(model.tables, model.sizes, columns).leakage(losses).total
        true, _ = supremum_of_columns(network.law, losses, columns, rng, most=6)
        assert true <= bound + SLACK, (seed, columns)
        assert bound <= math.fsum(loss.max() for loss in losses) * (1 + 1e-12)
        assert bound >= least * (1 - 1e-9)
        larger += bound > least + 1e-6
    assert larger or limits == {"MOST_WHOLE": 0}


def test_the_sum_of_single_leaks_is_no_bound() -> None:
    """A noisy sum modulo 2 of two fair coins, which alone is read: nothing of either, .77614 of both."""
    losses = [NOTHING, NOTHING, ONE]
    model = model_of(COINS)
    singles = [leakage_of_columns(model, losses, [name])[0] for name in ("v0", "v1")]
    both = leakage_of_columns(model, losses, ["v0", "v1"])[0]
    true, programs = supremum_of_columns(COINS.law, losses, [0, 1], np.random.default_rng(0), most=99)
    assert programs == 12
    assert singles == pytest.approx([0.0, 0.0], abs=1e-12)
    assert true == pytest.approx(0.77614, abs=5e-6)
    assert both == pytest.approx(true, abs=1e-9)
    assert true > sum(singles) + 0.77


def test_parents_of_a_column_are_one_part() -> None:
    """What the columns are given makes their parents depend on each other: of each parent alone they tell nothing."""
    network = Network("above", ((), (), (0, 1), (2,)), (COIN, COIN, XOR, FLIP), (("0", "1"),) * 4)
    for losses in ([ONE, ONE, NOTHING, NOTHING], [ONE, 0.5 * ONE, ONE, ONE]):
        bound, witness = leakage_of_columns(model_of(network), losses, ["v2", "v3"])
        true, _ = supremum_of_columns(network.law, losses, [2, 3], np.random.default_rng(0), most=99)
        assert bound == pytest.approx(true, abs=1e-7)
        assert isinstance(witness, ColumnsWitness)
        assert witness.others > 0.3


def test_losses_of_the_columns_alone_are_no_bound() -> None:
    """Two columns beside a third that follows them: its loss counts too, and how much depends on its table."""
    for noise in (0.0, 0.1, 0.3, 0.5):
        flip = np.array([[1 - noise, noise], [noise, 1 - noise]])
        tables = (COIN, COIN, np.array([flip, flip[::-1]]))
        network = Network("noise", COINS.parents, tables, COINS.states)
        losses = [0.25 * ONE, 0.5 * ONE, ONE]
        bound = leakage_of_columns(model_of(network), losses, ["v0", "v1"])[0]
        others = math.log(((1 - noise) * math.e + noise) / (noise * math.e + 1 - noise))
        # both differ and the sum is the same, or one differs and so does the sum
        assert bound == pytest.approx(max(0.75, 0.5 + others), abs=1e-9)


def test_values_that_cannot_occur_are_absent() -> None:
    """The second column is a copy of the first: they differ together, or not at all."""
    network = Network("copy", ((), (0,), (0, 1)), (COIN, np.eye(2), XOR), (("0", "1"),) * 3)
    bound, witness = leakage_of_columns(model_of(network), [ONE, NOTHING, ONE], ["v0", "v1"])
    assert bound == pytest.approx(1.0, abs=1e-9)  # their sum is 0 either way
    assert witness is not None
    assert isinstance(witness, ColumnsWitness)
    assert {witness.values, witness.other_values} == {("0", "0"), ("1", "1")}
    with_tiny = Network(
        "nearly", ((), (0,), (0, 1)), (COIN, np.array([[1 - 2**-40, 2**-40], [0, 1]]), XOR), COINS.states
    )
    bound = leakage_of_columns(model_of(with_tiny), [ONE, NOTHING, ONE], ["v0", "v1"])[0]
    assert bound == pytest.approx(1.77614, abs=1e-5)  # however improbable it is


def test_a_copy_of_the_columns_as_a_latent_node_says_the_same(slow: bool) -> None:
    """The leakage of a node that is a function of the columns and has no loss."""
    compared = 0
    for seed in range(300 if slow else 40):
        network, losses, columns, _ = some_case(seed)
        if len(columns) < 2:
            continue
        sizes = [network.sizes[v] for v in columns]
        copy = np.eye(math.prod(sizes)).reshape(*sizes, -1)
        with_copy = Network(
            "copied",
            (*network.parents, tuple(columns)),
            (*network.tables, copy),
            (*network.states, tuple(str(z) for z in range(math.prod(sizes)))),
        )
        assert np.allclose(joint_law(with_copy.parents, with_copy.tables).sum(axis=-1), network.law)
        both = [*losses, np.zeros((math.prod(sizes),) * 2)]
        of_copy = pf.LeakagePropagation(model_of(with_copy), secrets=[f"v{network.size}"]).leakage(both)
        bound = leakage_of_columns(model_of(network), losses, names(columns))[0]
        assert bound <= of_copy * (1 + 1e-9) + 1e-9, seed
        assert bound >= of_copy * 0.9, seed
        compared += bound == pytest.approx(of_copy, rel=1e-6)
    assert compared > (200 if slow else 20)


def test_the_witness_names_the_values_that_leak_most() -> None:
    """A density that tells these two from each other as far as the bound says."""
    attained = 0
    for seed in range(20):
        network, losses, columns, _ = some_case(seed)
        bound, witness = leakage_of_columns(model_of(network), losses, names(columns))
        if not isinstance(witness, ColumnsWitness) or witness.values is None or witness.other_values is None:
            continue
        z, z_ = (
            tuple(network.states[v].index(state) for v, state in zip(columns, value, strict=True))
            for value in (witness.values, witness.other_values)
        )
        assert witness.own <= sum(losses[v][a, b] for v, a, b in zip(columns, z, z_, strict=True)) + 1e-9
        assert witness.own + witness.others == pytest.approx(bound, rel=1e-9, abs=1e-9)
        attained += RowDensities(losses).between(network.law, columns, z, z_) > bound - 1e-6
    assert attained > 12
