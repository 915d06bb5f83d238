"""Leakage propagation on cluster trees: who tells, secrets, compilation; the numbers have their oracle elsewhere."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pufferfish._core.numbers import compiled as loop
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.phi.certificate import phi, prove
from pufferfish._core.phi.phi import Kernel, LogRatios, close
from pufferfish._core.propagation import clusters
from pufferfish._core.propagation.clusters import Attained, ClusterPropagation
from pufferfish.errors import ModelError

FLIP = np.array([[0.875, 0.125], [0.25, 0.75]])
ROOT = np.array([0.25, 0.75])


def even(k: int, loss: float) -> np.ndarray:
    return loss * (1 - np.eye(k))


def forest_of(parents: list[int], tables: list[np.ndarray]) -> ClusterPropagation:
    """Propagation on a forest; tables of nodes with a parent have its states in rows."""
    scopes = [(node,) if parent < 0 else (parent, node) for node, parent in enumerate(parents)]
    return ClusterPropagation(list(zip(scopes, tables, strict=True)), [table.shape[-1] for table in tables])


def random_forest(
    rng: np.random.Generator, parents: list[int], states: tuple[int, ...]
) -> tuple[ClusterPropagation, list[int]]:
    """A forest, and how many states its nodes have."""
    sizes = [int(rng.choice(states)) for _ in parents]
    tables = [
        rng.dirichlet(np.ones(k)) if p < 0 else rng.dirichlet(np.ones(k), size=sizes[p])
        for p, k in zip(parents, sizes, strict=True)
    ]
    return forest_of(parents, tables), sizes


def losses_for(rng: np.random.Generator, sizes: list[int], loss: float = 0.5) -> list[np.ndarray]:
    return [rng.uniform(0, loss, size=(k, k)) * (1 - np.eye(k)) for k in sizes]


def random_parents(rng: np.random.Generator, n: int) -> list[int]:
    return [-1] + [int(rng.integers(-1 if i % 7 == 0 else 0, i)) for i in range(1, n)]


class TestWhatTells:
    def test_a_subtree_without_loss_tells_exactly_nothing(self) -> None:
        rng = np.random.default_rng(0)
        forest, sizes = random_forest(rng, [-1, 0, 0, 1, 1, 2, 2], (2, 3, 4))
        losses = losses_for(rng, sizes)
        for node in range(7):
            alone = [loss if i == node else 0 * loss for i, loss in enumerate(losses)]
            secrets = [np.full(loss.shape, i == node) for i, loss in enumerate(losses)]
            found = forest.leakage(alone, secrets)
            assert (found.node, found.neighbours) == (node, ())
            assert found.total == pytest.approx(found.own, rel=1e-14)
        silent = forest.leakage([0 * loss for loss in losses])
        assert silent.total == 0.0

    def test_neighbours_are_told_apart(self) -> None:
        forest = forest_of([-1, 0, 1], [ROOT, FLIP, FLIP])
        middle = [np.zeros((2, 2), dtype=bool), np.ones((2, 2), dtype=bool), np.zeros((2, 2), dtype=bool)]
        one = even(2, 1.0)
        both, above, below = (forest.leakage(d, middle) for d in ([one] * 3, [one, one, 0 * one], [0 * one, one, one]))
        told = dict(both.neighbours)
        assert (both.own, both.pair, set(told)) == (1.0, above.pair, {(0,), (2,)})
        assert told[(2,)] == pytest.approx(math.log((0.875 * math.e + 0.125) / (0.25 * math.e + 0.75)))
        assert told[(0,)] == dict(above.neighbours)[(0,)] > 0
        assert set(dict(below.neighbours)) == {(2,)}

    def test_other_components_change_nothing(self) -> None:
        rng = np.random.default_rng(1)
        parents = [-1, 0, 0]
        tables = [ROOT, FLIP, FLIP]
        alone = forest_of(parents, tables)
        for other in (0.0, 0.01, 5.0):
            both = forest_of([*parents, -1, 3], [*tables, rng.dirichlet(np.ones(3)), np.ones((3, 2)) / 2])
            losses = [even(2, 1.0)] * 3 + [even(3, other), even(2, other)]
            secrets = [np.full((2, 2), True)] * 3 + [np.zeros((3, 3), dtype=bool), np.zeros((2, 2), dtype=bool)]
            assert both.leakage(losses, secrets) == alone.leakage(losses[:3])

    def test_a_larger_loss_never_leaks_less(self) -> None:
        rng = np.random.default_rng(2)
        for _ in range(15):
            forest, sizes = random_forest(rng, random_parents(rng, 6), (1, 2, 3))
            losses = losses_for(rng, sizes)
            more = [loss + losses_for(rng, sizes)[i] * rng.integers(2) for i, loss in enumerate(losses)]
            assert forest.leakage(more).total >= forest.leakage(losses).total * (1 - 1e-12)

    def test_losses_are_closed_by_shortest_paths(self) -> None:
        forest = forest_of([-1], [np.ones(3) / 3])
        far = np.array([[0, 1, 9.0], [1, 0, 1], [9, 1, 0]])
        assert forest.leakage([far]).total == pytest.approx(2)

    def test_infinite_losses(self) -> None:
        forest = forest_of([-1, 0], [ROOT, FLIP])
        unbounded = np.array([[0, np.inf], [np.inf, 0]])
        assert forest.leakage([even(2, 1.0), unbounded], [np.ones((2, 2)), np.zeros((2, 2))]).total == pytest.approx(
            1 + math.log(6)  # the tables' own max-divergence: 0.75 / 0.125
        )
        assert forest.leakage([even(2, 1.0), unbounded]).total == math.inf
        assert forest.least_divisor([even(2, 1.0), unbounded], 1.0, 1.0) == math.inf

    def test_a_deterministic_child_says_what_its_own_loss_says(self) -> None:
        forest = forest_of([-1, 0], [ROOT, np.eye(2)])
        found = forest.leakage([even(2, 1.0), even(2, 2.0)])
        assert found.total == pytest.approx(3)


class TestSecrets:
    def test_only_pairs_that_are_asked_for_and_can_occur(self) -> None:
        forest = forest_of([-1, 0], [np.array([0.5, 0.5, 0]), np.array([[1.0, 0], [0.5, 0.5], [0, 1]])])
        losses = [even(3, 1.0), 0 * even(2, 1.0)]
        pairs, none = np.zeros((3, 3), dtype=bool), np.zeros((2, 2), dtype=bool)
        pairs[0, 2] = pairs[1, 2] = pairs[1, 1] = True
        assert forest.leakage(losses, [pairs, none]) == Attained(0.0)
        pairs[1, 0] = True
        assert forest.leakage(losses, [pairs, none]).pair == (1, 0)

    def test_without_any_secret(self) -> None:
        forest = forest_of([-1, 0], [np.array([1.0, 0]), np.array([[1.0, 0], [0.5, 0.5]])])
        assert forest.leakage([even(2, 1.0)] * 2) == Attained(0.0, None)
        assert forest.least_divisor([even(2, 1.0)] * 2, 1.0, 3.0) < math.inf

    def test_the_least_divisor_is_on_the_private_side(self) -> None:
        rng = np.random.default_rng(3)
        forest, sizes = random_forest(rng, random_parents(rng, 8), (2, 3))
        losses = losses_for(rng, sizes, 3.0)
        secrets = [rng.random(loss.shape) < 0.6 for loss in losses]
        for epsilon in (0.1, 1.0):
            divisor = forest.least_divisor(losses, epsilon, 1.0, secrets)
            leakage = forest.leakage([loss / divisor for loss in losses], secrets).total
            assert epsilon * (1 - 2e-6) <= leakage <= epsilon * (1 + 1e-13)


class TestLayout:
    def test_the_order_of_nodes_changes_nothing(self) -> None:
        rng = np.random.default_rng(4)
        parents = [-1, 0, 0, 1, 1, 1, 3]
        sizes = [2, 3, 2, 2, 4, 2, 3]
        tables = [
            rng.dirichlet(np.ones(k), size=None if p < 0 else sizes[p]) for p, k in zip(parents, sizes, strict=True)
        ]
        losses = [rng.uniform(0, 1, size=(k, k)) * (1 - np.eye(k)) for k in sizes]
        expected = forest_of(parents, tables).leakage(losses)
        for _ in range(5):
            name = rng.permutation(7)  # node i is called name[i]
            called = np.argsort(name)
            renamed = [-1 if parents[i] < 0 else int(name[parents[i]]) for i in called]
            found = forest_of(renamed, [tables[i] for i in called]).leakage([losses[i] for i in called])
            assert found.total == pytest.approx(expected.total, rel=1e-13)
            assert (called[found.node or 0], found.pair) == (expected.node, expected.pair)

    def test_one_large_node_among_many_small_ones(self, slow: bool) -> None:
        rng = np.random.default_rng(7)
        n = 300 if slow else 20
        tables = [rng.dirichlet(np.ones(67)), *(rng.dirichlet(np.ones(2), size=67) for _ in range(n))]
        forest = forest_of([-1] + [0] * n, tables)
        losses = [0 * even(67, 1.0)] + [even(2, 0.5 if i < 3 else 0.0) for i in range(n)]
        secrets = [np.zeros((67, 67), dtype=bool)] + [np.full((2, 2), i == 0) for i in range(n)]
        small = forest_of([-1, 0, 0, 0], tables[:4])
        found = forest.leakage(losses, secrets)
        assert found.total == pytest.approx(small.leakage(losses[:4], secrets[:4]).total, rel=1e-12)
        assert 0.5 < found.total < 1.5

    def test_a_path_of_ten_thousand_nodes(self, slow: bool) -> None:
        n = 10_000 if slow else 1_500
        forest = forest_of(list(range(-1, n - 1)), [ROOT] + [FLIP] * (n - 1))
        found = forest.leakage([even(2, 0.3)] * n)
        short = forest_of(list(range(-1, 199)), [ROOT] + [FLIP] * 199).leakage([even(2, 0.3)] * 200)
        assert found.total == pytest.approx(short.total, rel=1e-8)  # rounding adds up along a path

    @pytest.mark.parametrize("first", [1e-3, 1e-280])
    def test_masses_that_no_double_holds_stay_possible(self, first: float, slow: bool) -> None:
        n = 5000 if slow else 1200
        fading = np.array([[0.5, 0.5], [0.0, 1.0]])
        forest = forest_of(list(range(-1, n - 1)), [np.array([first, 1.0 - first])] + [fading] * (n - 1))
        losses = [even(2, 1.0 if i == n - 1 else 0.0) for i in range(n)]
        last = forest.leakage(losses)
        assert (last.node, last.total) == (n - 1, pytest.approx(1, abs=1e-14))
        assert last.total > 1
        told = forest.leakage([even(2, 0.0)] * (n - 2) + [even(2, 0.75), even(2, 1.0)])
        # a node still in state 0 comes from a parent in state 0; in state 1 from one in state 1, but for 2^-(n - 2)
        assert told.total == pytest.approx(1.75, rel=1e-9)


class TestCompiled:
    @pytest.mark.parametrize("states", [(2,), (2, 3), (1, 2, 3, 4), (5, 6)], ids=str)
    def test_it_finds_what_is_found_interpreted(self, monkeypatch: pytest.MonkeyPatch, states: tuple[int, ...]) -> None:
        rng, loops = np.random.default_rng(8), clusters.LOOPS
        for n in (1, 6, 12):
            parents = random_parents(rng, n)
            forest, sizes = random_forest(rng, parents, states)
            losses = losses_for(rng, sizes, 1.5)
            secrets = [rng.random(loss.shape) < 0.8 for loss in losses]
            found = []
            for chosen in (loops.plain, loops.compiled):
                monkeypatch.setattr(loops, "at", lambda *_, chosen=chosen: chosen)
                found.append(forest.leakage(losses, secrets))
            assert found[0].total == pytest.approx(found[1].total, rel=1e-12)
            assert (found[0].node, found[0].pair) == (found[1].node, found[1].pair)

    def test_small_forests_are_interpreted_until_there_was_much_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []

        def compiled(plain: object, _: bool) -> object:
            asked.append(True)
            return plain

        monkeypatch.setattr(loop, "_machine_code", compiled)
        known = clusters.LOOPS
        monkeypatch.setattr(clusters, "LOOPS", loop.Loops(*vars(known.plain).values(), after=known.after))
        loop.Loops.made.pop()
        forest = forest_of([-1, 0, 0], [ROOT, FLIP, FLIP])
        forest.leakage([even(2, 1.0)] * 3)
        assert not asked
        monkeypatch.setattr(clusters.LOOPS, "after", 0)
        forest.leakage([even(2, 0.5)] * 3)
        assert asked


class TestPhi:
    """The loops behind it, beside those of chains."""

    @pytest.mark.parametrize("k", [2, 3, 4, 5])
    def test_it_is_that_of_chains(self, k: int) -> None:
        rng = np.random.default_rng(k)
        for kind in range(12):
            laws = rng.dirichlet(np.full(k, 0.5), size=k) * (rng.random((k, k)) < (0.6 if kind % 3 == 0 else 1.0))
            laws[np.arange(k), rng.integers(k, size=k)] += 0.1
            laws /= laws.sum(axis=1, keepdims=True)
            if kind % 4 == 1:
                laws[0] = np.eye(k)[0]
            rows = rng.random(k) < 0.8
            a = close(rng.uniform(0, (0.1, 1, 5)[kind % 3], size=(k, k)) * (1 - np.eye(k)))
            with np.errstate(divide="ignore"):
                kernel = Kernel.of_logs(np.log(laws), rows, 4 * UNIT)
            found = np.empty((k, k))
            with np.errstate(all="ignore"):
                phi(rows, kernel.upper, kernel.lower, a, found)
            assert found == pytest.approx(LogRatios()(kernel, a), rel=1e-9, abs=1e-10)

    @pytest.mark.parametrize("size", [1e-250, 1e-9, 0.1, 1.0, 1e300])
    def test_what_flows_prove_is_never_below_what_they_prove_in_exact_arithmetic(self, size: float) -> None:
        """Whatever the flows: garbage, infinities and what is no number among them."""
        rng, tight = np.random.default_rng(9), 0
        for _ in range(8):
            k = int(rng.integers(2, 6))
            laws = rng.dirichlet(np.ones(k), size=k) * (rng.random((k, k)) < 0.8)
            laws[:, 0] += 0.01
            x, x_ = (index.ravel() for index in np.indices((k, k)))
            tails, heads = (rng.integers(k, size=(x.size, 2 * k)) for _ in range(2))
            flows = rng.normal(size=tails.shape) * size
            flows[rng.random(tails.shape) < 0.05] = np.nan
            flows[rng.random(tails.shape) < 0.05] = np.inf
            exponents = rng.integers(0, 12, size=(k, k)) * (1 - np.eye(k, dtype=int))
            proved = np.empty(x.size)
            with np.errstate(all="ignore"):
                prove(laws, laws, exponents * math.log(2), x, x_, tails, heads, flows, proved)
            for n in range(x.size):
                exact = [Fraction(float(v)) for v in laws[x[n]]]
                for tail, head, flow in zip(tails[n], heads[n], flows[n], strict=True):
                    if 1e-290 < flow < math.inf:  # what else a flow may be counts as none
                        exact[head] += Fraction(float(flow)) * 2 ** int(exponents[tail, head])
                        exact[tail] -= Fraction(float(flow))
                needs = [(left, Fraction(float(q))) for left, q in zip(exact, laws[x_[n]], strict=True)]
                if any(left > 0 and q == 0 for left, q in needs):
                    assert proved[n] == math.inf
                    continue
                least = max(left / q for left, q in needs if left > 0)
                assert math.exp(min(proved[n], 700.0)) * (1 + 1e-15) >= min(least, 10**300)
                if size <= 1 and min(laws[x_[n]]) > 1e-3:  # control: no more than rounding is added
                    assert proved[n] == pytest.approx(max(math.log(least), 0.0), abs=1e-9)
                    tight += 1
        assert tight > 20 or size > 1


class TestRefusals:
    @pytest.mark.parametrize(
        "bad",
        [
            np.array([[0, -1.0], [1, 0]]),
            np.array([[0, np.nan], [1, 0]]),
            np.ones((2, 2)),
            np.zeros((3, 3)),
            np.array(1.0),
        ],
        ids=["negative", "no number", "to itself", "shape", "one number"],
    )
    def test_losses(self, bad: np.ndarray) -> None:
        forest = forest_of([-1, 0], [ROOT, FLIP])
        with pytest.raises(ModelError):
            forest.leakage([even(2, 1.0), bad])
        with pytest.raises(ModelError):
            forest.least_divisor([bad, even(2, 1.0)], 1.0, 1.0)

    def test_numbers_of_nodes(self) -> None:
        with pytest.raises(ModelError, match="losses are of 1 nodes"):
            forest_of([-1, 0], [ROOT, FLIP]).leakage([even(2, 1.0)])


def test_losses_are_closed_by_shortest_paths_where_a_way_round_is_shorter() -> None:
    forest = forest_of([-1], [np.full(3, 1 / 3)])
    even_loss, uneven = 1.0 - np.eye(3), np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]])
    assert forest.leakage([even_loss]).total == pytest.approx(1.0, rel=1e-12)
    assert forest.leakage([uneven]).total == pytest.approx(2.0, rel=1e-12)
