"""Joint laws and max-influences of networks: against brute force, against pyAgrum, and where numbers underflow."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from network_oracle import SHAPED, Network, given, joint_law, log_ratios, random_network
from networks import inference_of, model_of
from optional import pyagrum_or_skip
from pufferfish._core.networks import inference
from pufferfish._core.networks.d_separation import members, set_of
from pufferfish._core.networks.inference import Inference
from pufferfish._core.quilts.chain_search import LeakThrough
from pufferfish._core.quilts.network_search import NodeWeights, QuiltSearch
from pufferfish.errors import ModelError

NETWORKS = [
    *SHAPED,
    *(random_network(seed, 2 + seed % 5, parents=1 + seed % 3) for seed in range(24)),
]


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_joint_laws_are_those_of_all_databases(network: Network) -> None:
    rng = np.random.default_rng(network.size)
    found = inference_of(network)
    for size in range(1, network.size + 1):
        nodes = rng.permutation(network.size)[:size].tolist()
        away = tuple(j for j in range(network.size) if j not in nodes)
        kept = sorted(nodes)
        truth = np.moveaxis(network.law.sum(axis=away), [kept.index(j) for j in nodes], range(size))
        np.testing.assert_allclose(found.joint(nodes), truth, rtol=1e-13, atol=0)


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_possible_states_are_those_of_some_database(network: Network) -> None:
    found = inference_of(network)
    for node in range(network.size):
        assert found.possible(node).tolist() == network.possible[node].tolist()


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_log_ratios_of_every_set(network: Network) -> None:
    """Of all that hold a node which the first depends on; parts that are independent of it are never asked for."""
    found = inference_of(network)
    for node in range(network.size):
        for quilt in network.quilts(node):
            part, told = set_of(quilt), network.nearby(node, ()) & set(quilt)
            if not told or (network.is_forest and told != set(quilt)):
                continue
            ratios, truth = found.log_ratios(node, part), log_ratios(network.law, node, quilt)
            assert np.array_equal(np.isinf(ratios), np.isinf(truth))
            finite = np.isfinite(truth)
            assert np.all(ratios[finite] >= np.maximum(truth[finite], 0) - 1e-15)
            np.testing.assert_allclose(ratios[finite], np.maximum(truth[finite], 0), rtol=1e-11, atol=1e-11)


def test_what_is_in_another_tree_is_not_known_rather_than_nothing() -> None:
    """The search never asks; an answer would be 0."""
    found = Inference([((0,), np.array([0.5, 0.5])), ((1,), np.array([0.5, 0.5]))], [2, 2])
    assert found.log_ratios(0, 2).tolist() == [[0, math.inf], [math.inf, 0]]


@pytest.mark.parametrize("network", NETWORKS[::3], ids=str)
def test_against_pyagrum(network: Network) -> None:
    gum = pyagrum_or_skip()
    other = gum.BayesNet()
    for j, names in enumerate(network.states):
        other.add(gum.LabelizedVariable(f"v{j}", "", list(names)))
    for node, above in enumerate(network.parents):
        for parent in above:
            other.addArc(f"v{parent}", f"v{node}")
    for node, (above, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        for at in itertools.product(*(range(network.sizes[j]) for j in above)):
            where = {f"v{j}": x for j, x in zip(above, at, strict=True)}
            other.cpt(f"v{node}")[where] = table[at].tolist()
    engine = gum.LazyPropagation(other)
    engine.makeInference()
    model = model_of(network)
    for node in range(network.size):
        np.testing.assert_allclose(model.marginal(f"v{node}"), engine.posterior(f"v{node}").toarray(), atol=1e-12)
    pair = [f"v{j}" for j in (network.size - 1, 0)]
    joint = gum.LazyPropagation(other)
    joint.addJointTarget(set(pair))
    joint.makeInference()
    law = joint.jointPosterior(set(pair))
    for x, y in itertools.product(range(network.sizes[-1]), range(network.sizes[0])):
        assert model.marginal(*pair)[x, y] == pytest.approx(law[{pair[0]: x, pair[1]: y}], abs=1e-12)


def exact(table: Any) -> Any:
    """Doubles as fractions, each row made to sum to exactly 1 at its largest entry."""
    values = np.asarray(table, dtype=float)
    rows = [[Fraction(v) for v in row] for row in values.reshape(-1, values.shape[-1]).tolist()]
    for row in rows:
        largest = max(range(len(row)), key=lambda x: row[x])
        row[largest] = 1 - (sum(row) - row[largest])
    flat = np.array(rows, dtype=object)
    return flat.reshape(values.shape)


TINY = {
    "a chain of tiny steps": (
        [[], [0], [1], [2]],
        [[0.5, 0.5], [[1, 1e-170], [0.5, 0.5]], [[1, 1e-190], [1e-190, 1]], [[1, 1e-170], [1e-170, 1]]],
    ),
    "the law of the middle is tiny": (
        [[], [0], [1], [1]],
        [[1, 1e-170], [[1, 0], [1, 1e-190]], [[0.5, 0.5], [0.25, 0.75]], [[1, 1e-190], [0.5, 0.5]]],
    ),
    "up a chain from a tiny start": (
        [[], [0], [1]],
        [[1, 1e-200], [[0.75, 0.25], [0.5, 0.5]], [[1, 1e-150], [0.25, 0.75]]],
    ),
    "below the smallest normal number": (
        [[], [0], [1]],
        [[1, 1e-200], [[1, 0], [1, 1e-310]], [[0.5, 0.5], [0.25, 0.75]]],
    ),
    "a child of two": (
        [[], [], [0, 1]],
        [[1, 1e-170], [0.5, 0.5], [[[1, 1e-190], [0.5, 0.5]], [[1, 1e-160], [0, 1]]]],
    ),
    "a diamond": (
        [[], [0], [0], [1, 2], [3]],
        [
            [0.25, 0.75],
            [[1, 1e-170], [0.5, 0.5]],
            [[1, 1e-190], [1, 1e-180]],
            [[[1, 0], [0.5, 0.5]], [[0.75, 0.25], [1e-180, 1]]],
            [[1, 1e-170], [1e-190, 1]],
        ],
    ),
    "possible by underflow alone": (
        [[], [0], [0, 1]],
        [[1, 1e-190], [[1, 0], [1, 1e-190]], [[[1, 0], [1, 0]], [[1, 0], [0, 1]]]],
    ),
    "two ways, one of them tiny": (
        [[], [], [0, 1], [2, 1]],
        [
            [0.5, 0.5],
            [1, 1e-300],
            [[[1, 0], [0, 1]], [[1, 1e-20], [0.5, 0.5]]],
            [[[0.5, 0.5], [0, 1]], [[1, 1e-300], [1, 0]]],
        ],
    ),
}


@pytest.mark.parametrize("name", TINY)
def test_what_underflows_is_no_zero(name: str) -> None:
    """The influence is at least the true one, in fractions, or ∞: the float product of two of these entries is 0."""
    parents, tables = TINY[name]
    given_exactly = [exact(table) for table in tables]
    law = joint_law(parents, given_exactly)
    found = Inference(
        [
            ((*above, j), np.array(t, dtype=float))
            for j, (above, t) in enumerate(zip(parents, given_exactly, strict=True))
        ],
        [2] * len(parents),
    )
    search = QuiltSearch(found, NodeWeights(np.ones(len(parents))), LeakThrough(), None)
    for node in range(len(parents)):
        possible = [bool(mass > 0) for mass in given(law, node, ()).sum(axis=1)]
        assert found.possible(node).tolist() == possible
        pairs = np.outer(possible, possible) & ~np.eye(2, dtype=bool)
        if not pairs.any():
            continue
        for count in range(1, len(parents)):
            for quilt in itertools.combinations([j for j in range(len(parents)) if j != node], count):
                truth = log_ratios(law, node, quilt).max()
                assert search.judged(node, set_of(quilt), pairs).influence >= truth * (1 - 1e-12)


def test_not_everything_tiny_is_given_up() -> None:
    """Control: a step of 1e-170 by itself is a number like any other."""
    parents, tables = TINY["a chain of tiny steps"]
    law = joint_law(parents, [exact(table) for table in tables])
    found = Inference([((*above, j), np.array(tables[j])) for j, above in enumerate(parents)], [2] * 4)
    assert found.log_ratios(0, 0b10).max() == pytest.approx(log_ratios(law, 0, [1]).max(), rel=1e-12)
    assert found.log_ratios(0, 0b10).max() > 390


class TestTooLarge:
    """A contraction that would take too large an array is not begun."""

    network = random_network(3, 6, parents=3)

    def test_a_joint_law_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = math.prod(self.network.sizes)
        monkeypatch.setattr(inference, "MOST_ENTRIES", whole - 1)
        found = inference_of.__wrapped__(self.network)
        with pytest.raises(ModelError, match=rf"joint law of 6 nodes takes an array of {whole} numbers .* fewer"):
            found.joint(range(6))
        monkeypatch.setattr(inference, "MOST_ENTRIES", 10**9)
        assert found.joint(range(6)).sum() == pytest.approx(1.0)

    def limited(self, monkeypatch: pytest.MonkeyPatch, most: int) -> Inference:
        """Inference that knows the laws of single nodes, and from then on makes no larger arrays."""
        found = inference_of.__wrapped__(self.network)
        for node in range(self.network.size):
            found.possible(node)
        monkeypatch.setattr(inference, "MOST_ENTRIES", most)
        return found

    def test_an_influence_is_infinite(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pairs, part = self.network.secrets(0), set_of(range(1, 6))
        assert pairs.any()
        assert np.isfinite(inference_of(self.network).log_ratios(0, part)[pairs]).any()
        ratios = self.limited(monkeypatch, 8).log_ratios(0, part)
        assert np.all(np.isinf(ratios[pairs]))
        assert np.all(ratios[~pairs] == 0)

    def test_so_it_is_where_it_would_take_too_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(inference, "_MOST_WORK", 10)
        ratios = inference_of.__wrapped__(self.network).log_ratios(0, set_of(range(1, 6)))
        assert np.all(np.isinf(ratios[self.network.secrets(0)]))

    @pytest.mark.parametrize("most", [1, 10, 30, 100])
    def test_the_search_is_still_sound(self, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
        """It finds what can be computed; the trivial quilt always can."""
        network = self.network
        search = QuiltSearch(self.limited(monkeypatch, most), NodeWeights(np.ones(6)), LeakThrough(), None)
        for node in range(6):
            if (pairs := network.secrets(node)).any():
                found = search.best(node, pairs)
                quilt = tuple(members(found.quilt))
                true = len(network.nearby(node, quilt)) + network.influence(node, quilt)
                assert true * (1 - 1e-12) <= found.value <= len(network.nearby(node, ())) * (1 + 1e-12)

    def test_a_single_node_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(inference, "MOST_ENTRIES", 1)
        with pytest.raises(ModelError, match=r"too dense for exact inference; use GroupDP"):
            inference_of.__wrapped__(self.network).possible(0)
