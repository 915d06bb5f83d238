"""Leakage propagation on forests: layout, rounding, masks and refusals; the numbers have their oracle elsewhere."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pufferfish.core.numbers import compiled as loop
from pufferfish.core.numbers.rounding import UNIT
from pufferfish.core.phi.certificate import phi, prove
from pufferfish.core.phi.phi import Kernel, LogRatios, close
from pufferfish.core.propagation import tree as tree_propagation
from pufferfish.core.propagation.tree import TreeAttained, TreePropagation
from pufferfish.errors import ModelError

FLIP = np.array([[0.875, 0.125], [0.25, 0.75]])
ROOT = np.array([0.25, 0.75])


def even(k: int, loss: float) -> np.ndarray:
    return loss * (1 - np.eye(k))


def random_forest(rng: np.random.Generator, parents: list[int], states: tuple[int, ...]) -> TreePropagation:
    sizes = [int(rng.choice(states)) for _ in parents]
    tables = [
        rng.dirichlet(np.ones(k)) if p < 0 else rng.dirichlet(np.ones(k), size=sizes[p])
        for p, k in zip(parents, sizes, strict=True)
    ]
    return TreePropagation(parents, tables)


def losses_for(rng: np.random.Generator, forest: TreePropagation, loss: float = 0.5) -> list[np.ndarray]:
    return [rng.uniform(0, loss, size=(s.size, s.size)) * (1 - np.eye(s.size)) for s in forest.possible]


def random_parents(rng: np.random.Generator, n: int) -> list[int]:
    return [-1] + [int(rng.integers(-1 if i % 7 == 0 else 0, i)) for i in range(1, n)]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TreePropagation, "_loops", lambda *_: tree_propagation._compiled())


class TestWhatTells:
    def test_a_subtree_without_loss_tells_exactly_nothing(self) -> None:
        rng = np.random.default_rng(0)
        forest = random_forest(rng, [-1, 0, 0, 1, 1, 2, 2], (2, 3, 4))
        losses = losses_for(rng, forest)
        for node in range(7):
            alone = [loss if i == node else 0 * loss for i, loss in enumerate(losses)]
            secrets = [np.full(loss.shape, i == node) for i, loss in enumerate(losses)]
            found = forest.leakage(alone, secrets)
            assert (found.node, found.up, found.down) == (node, 0.0, 0.0)
            assert found.total == pytest.approx(found.own, rel=1e-14)
        silent = forest.leakage([0 * loss for loss in losses])
        assert (silent.total, silent.node) == (0.0, 0)

    def test_up_and_down_are_the_two_sides(self) -> None:
        forest = TreePropagation([-1, 0, 1], [ROOT, FLIP, FLIP])
        middle = [np.zeros((2, 2), dtype=bool), np.ones((2, 2), dtype=bool), np.zeros((2, 2), dtype=bool)]
        one = even(2, 1.0)
        both, above, below = (forest.leakage(d, middle) for d in ([one] * 3, [one, one, 0 * one], [0 * one, one, one]))
        assert (above.down, below.up) == (0.0, 0.0)
        assert (both.own, both.pair) == (1.0, above.pair)
        forward = math.log((0.875 * math.e + 0.125) / (0.25 * math.e + 0.75))
        assert both.down == pytest.approx(forward)
        assert both.up == above.up > 0

    def test_other_components_change_nothing(self) -> None:
        rng = np.random.default_rng(1)
        parents = [-1, 0, 0]
        tables = [ROOT, FLIP, FLIP]
        alone = TreePropagation(parents, tables)
        for other in (0.0, 0.01, 5.0):
            both = TreePropagation([*parents, -1, 3], [*tables, rng.dirichlet(np.ones(3)), np.ones((3, 2)) / 2])
            losses = [even(2, 1.0)] * 3 + [even(3, other), even(2, other)]
            secrets = [np.full((2, 2), True)] * 3 + [np.zeros((3, 3), dtype=bool), np.zeros((2, 2), dtype=bool)]
            assert both.leakage(losses, secrets) == alone.leakage(losses[:3])

    def test_a_larger_loss_never_leaks_less(self) -> None:
        rng = np.random.default_rng(2)
        for _ in range(15):
            forest = random_forest(rng, random_parents(rng, 6), (1, 2, 3))
            losses = losses_for(rng, forest)
            more = [loss + losses_for(rng, forest)[i] * rng.integers(2) for i, loss in enumerate(losses)]
            assert forest.leakage(more).total >= forest.leakage(losses).total * (1 - 1e-12)

    def test_losses_are_closed_by_shortest_paths(self) -> None:
        forest = TreePropagation([-1], [np.ones(3) / 3])
        far = np.array([[0, 1, 9.0], [1, 0, 1], [9, 1, 0]])
        assert forest.leakage([far]).total == pytest.approx(2)

    def test_infinite_losses(self) -> None:
        forest = TreePropagation([-1, 0], [ROOT, FLIP])
        unbounded = np.array([[0, np.inf], [np.inf, 0]])
        assert forest.leakage([even(2, 1.0), unbounded], [np.ones((2, 2)), np.zeros((2, 2))]).total == pytest.approx(
            1 + math.log(6)  # the tables' own max-divergence: 0.75 / 0.125
        )
        assert forest.leakage([even(2, 1.0), unbounded]).total == math.inf
        assert forest.least_divisor([even(2, 1.0), unbounded], 1.0, 1.0) == math.inf

    def test_a_deterministic_child_says_what_its_own_loss_says(self) -> None:
        forest = TreePropagation([-1, 0], [ROOT, np.eye(2)])
        found = forest.leakage([even(2, 1.0), even(2, 2.0)])
        assert found.total == pytest.approx(3)


class TestSecrets:
    def test_only_pairs_that_are_asked_for_and_can_occur(self) -> None:
        forest = TreePropagation([-1, 0], [np.array([0.5, 0.5, 0]), np.array([[1.0, 0], [0.5, 0.5], [0, 1]])])
        assert [states.tolist() for states in forest.possible] == [[True, True, False], [True, True]]
        losses = [even(3, 1.0), 0 * even(2, 1.0)]
        pairs, none = np.zeros((3, 3), dtype=bool), np.zeros((2, 2), dtype=bool)
        pairs[0, 2] = pairs[1, 2] = pairs[1, 1] = True
        assert forest.leakage(losses, [pairs, none]) == TreeAttained(0.0)
        pairs[1, 0] = True
        assert forest.leakage(losses, [pairs, none]).pair == (1, 0)

    def test_without_any_secret(self) -> None:
        forest = TreePropagation([-1, 0], [np.array([1.0, 0]), np.array([[1.0, 0], [0.5, 0.5]])])
        assert forest.leakage([even(2, 1.0)] * 2) == TreeAttained(0.0, None)
        assert forest.least_divisor([even(2, 1.0)] * 2, 1.0, 3.0) < math.inf

    def test_the_least_divisor_is_on_the_private_side(self) -> None:
        rng = np.random.default_rng(3)
        forest = random_forest(rng, random_parents(rng, 8), (2, 3))
        losses = losses_for(rng, forest, 3.0)
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
        expected = TreePropagation(parents, tables).leakage(losses)
        for _ in range(5):
            name = rng.permutation(7)  # node i is called name[i]
            called = np.argsort(name)
            renamed = [-1 if parents[i] < 0 else int(name[parents[i]]) for i in called]
            found = TreePropagation(renamed, [tables[i] for i in called]).leakage([losses[i] for i in called])
            assert found.total == pytest.approx(expected.total, rel=1e-13)
            assert (called[found.node or 0], found.pair) == (expected.node, expected.pair)

    @pytest.mark.parametrize("states", [(2,), (1, 2, 3), (2, 9)], ids=str)
    def test_messages_that_are_not_kept_are_made_again(
        self, monkeypatch: pytest.MonkeyPatch, states: tuple[int, ...]
    ) -> None:
        parents = [-1] + [0] * 11 + [1] * 3 + [int(v) for v in np.random.default_rng(5).integers(15, size=8)]
        found: list[list[TreeAttained]] = []
        for kept in (tree_propagation._KEPT, 0):
            monkeypatch.setattr(tree_propagation, "_KEPT", kept)
            rng = np.random.default_rng(6)
            forest = random_forest(rng, parents, states)
            assert (forest._forest.kept[1] < 0) == (kept == 0)
            losses = losses_for(rng, forest)
            alone = [[np.full(loss.shape, i == node) for i, loss in enumerate(losses)] for node in range(len(losses))]
            found.append([forest.leakage(losses, secrets) for secrets in alone])
        for kept_, made in zip(*found, strict=True):
            assert (kept_.node, kept_.pair) == (made.node, made.pair)
            assert (kept_.up, kept_.down) == (pytest.approx(made.up, rel=1e-13), pytest.approx(made.down, rel=1e-13))

    def test_one_large_node_among_many_small_ones(self) -> None:
        rng = np.random.default_rng(7)
        n = 300
        tables = [rng.dirichlet(np.ones(67)), *(rng.dirichlet(np.ones(2), size=67) for _ in range(n))]
        forest = TreePropagation([-1] + [0] * n, tables)
        losses = [0 * even(67, 1.0)] + [even(2, 0.5 if i < 3 else 0.0) for i in range(n)]
        secrets = [np.zeros((67, 67), dtype=bool)] + [np.full((2, 2), i == 0) for i in range(n)]
        small = TreePropagation([-1, 0, 0, 0], tables[:4])
        found = forest.leakage(losses, secrets)
        assert found.total == pytest.approx(small.leakage(losses[:4], secrets[:4]).total, rel=1e-12)
        assert 0.5 < found.total < 1.5
        assert forest._room <= tree_propagation._KEPT

    def test_a_path_of_ten_thousand_nodes(self, compiled: None) -> None:
        n = 10_000
        forest = TreePropagation(list(range(-1, n - 1)), [ROOT] + [FLIP] * (n - 1))
        found = forest.leakage([even(2, 0.3)] * n)
        short = TreePropagation(list(range(-1, 199)), [ROOT] + [FLIP] * 199).leakage([even(2, 0.3)] * 200)
        assert found.total == pytest.approx(short.total, rel=1e-9)

    @pytest.mark.parametrize("first", [1e-3, 1e-280])
    def test_masses_that_no_double_holds_stay_possible(self, compiled: None, first: float) -> None:
        n = 5000
        fading = np.array([[0.5, 0.5], [0.0, 1.0]])
        forest = TreePropagation(list(range(-1, n - 1)), [np.array([first, 1.0 - first])] + [fading] * (n - 1))
        assert all(states.all() for states in forest.possible)
        losses = [even(2, 1.0 if i == n - 1 else 0.0) for i in range(n)]
        last = forest.leakage(losses)
        assert (last.node, last.total) == (n - 1, 1.0 * (1 + 8 * UNIT))
        told = forest.leakage([even(2, 0.0)] * (n - 2) + [even(2, 0.75), even(2, 1.0)])
        # a node still in state 0 comes from a parent in state 0; in state 1 from one in state 1, but for 2^-4998
        assert told.total == pytest.approx(1.75, rel=1e-9)


def in_fractions(law: np.ndarray) -> list[Fraction]:
    """Masses that sum to exactly 1, all but those that a law in doubles has."""
    exact = [Fraction(float(v)) for v in law]
    return [v / sum(exact) for v in exact]


class TestKernels:
    """Bounds on the kernels hold the exact kernels, whatever the marginals and tables underflow to."""

    @pytest.mark.parametrize("smallest", [0.1, 1e-20, 1e-100, 1e-190, 1e-300, 5e-324])
    @pytest.mark.parametrize("seed", range(4))
    def test_they_hold_the_exact_ones(self, seed: int, smallest: float) -> None:
        rng, parents, sizes = np.random.default_rng(seed), [-1, 0, 1, 2, 2, 4], [2, 3, 2, 4, 2, 3]
        exact = []
        for parent, k in zip(parents, sizes, strict=True):
            rows = rng.dirichlet(np.ones(k), size=1 if parent < 0 else sizes[parent])
            rows = np.where(rng.random(rows.shape) < 0.4, rows * smallest, rows)
            rows = np.where((rng.random(rows.shape) < 0.25) & (rows < rows.max(axis=1, keepdims=True)), 0.0, rows)
            exact.append([in_fractions(row) for row in rows])
        tables = [np.array(rows, dtype=float) for rows in exact]
        tables[0] = tables[0][0]
        forest = TreePropagation(parents, tables)
        layout, kernels = forest._forest, forest._kernels
        marginals: list[list[Fraction | int]] = []
        inside, outside = 0, 0
        for node, parent in enumerate(parents):
            above = [1] if parent < 0 else marginals[parent]
            # the model is what is left after rounding to doubles: a mass that rounds to 0 is 0
            rows = [[p if float(p) > 0 else Fraction(0) for p in row] for row in exact[node]]
            marginals.append(
                [sum((m * row[x] for m, row in zip(above, rows, strict=True)), Fraction(0)) for x in range(sizes[node])]
            )
            assert forest.possible[node].tolist() == [m > 0 for m in marginals[node]]
            if parent < 0:
                continue
            edge = slice(layout.tables[node], layout.tables[node + 1])
            k, h = sizes[node], sizes[parent]
            down = kernels.down_upper[edge].reshape(h, k), kernels.down_lower[edge].reshape(h, k)
            up = kernels.up_upper[edge].reshape(k, h), kernels.up_lower[edge].reshape(k, h)
            for y in range(h):
                for x in range(k):
                    p = rows[y][x] if above[y] > 0 else Fraction(0)
                    r = Fraction(above[y] * p) / marginals[node][x] if marginals[node][x] > 0 else Fraction(0)
                    for true, (upper, lower), at in ((p, down, (y, x)), (r, up, (x, y))):
                        assert Fraction(float(lower[at])) <= true <= Fraction(float(upper[at]))
                        assert (upper[at] == 0) == (true == 0)
                        inside += lower[at] > 0.99999 * upper[at] > 0
                        outside += upper[at] > 0
        assert inside > 0.5 * outside or smallest < 1e-200

    def test_nothing_is_known_where_doubles_have_no_relative_accuracy(self) -> None:
        """1.49 and 1.51 of the smallest double round to 1 and 2 of it: an even chance would look like 1 : 2."""
        least = Fraction(1, 2**1074)
        rare = [Fraction(149, 100) * least, Fraction(151, 100) * least]
        table = np.array([[1.0, 0.0], [1.0, float(rare[0])], [1.0, float(rare[1])]])
        assert table[2, 1] == 2 * table[1, 1] > 0
        kernels = TreePropagation([-1, 0], [np.array([0.5, 0.25, 0.25]), table])._kernels
        upper, lower = (bounds[3:].reshape(2, 3)[1] for bounds in (kernels.up_upper, kernels.up_lower))
        for y, p in enumerate(rare, start=1):
            assert lower[y] <= p / sum(rare) <= upper[y]
        assert upper[0] == 0


class TestCompiled:
    @pytest.mark.parametrize("states", [(2,), (2, 3), (1, 2, 3, 4), (5, 6)], ids=str)
    def test_it_finds_what_is_found_interpreted(self, monkeypatch: pytest.MonkeyPatch, states: tuple[int, ...]) -> None:
        rng = np.random.default_rng(8)
        for n in (1, 6, 12):
            parents = random_parents(rng, n)
            forest = random_forest(rng, parents, states)
            losses = losses_for(rng, forest, 1.5)
            secrets = [rng.random(loss.shape) < 0.8 for loss in losses]
            found = []
            for loops in (tree_propagation._PLAIN, tree_propagation._compiled()):
                monkeypatch.setattr(TreePropagation, "_loops", lambda *_, loops=loops: loops)
                found.append(forest.leakage(losses, secrets))
            assert found[0].total == pytest.approx(found[1].total, rel=1e-12)
            assert (found[0].node, found[0].pair) == (found[1].node, found[1].pair)

    def test_small_forests_are_interpreted_until_there_was_much_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []

        class NeverLoaded:
            currsize = 0

        def compiled() -> object:
            asked.append(True)
            return tree_propagation._PLAIN

        compiled.cache_info = lambda: NeverLoaded  # pyright: ignore[reportFunctionMemberAccess]
        monkeypatch.setattr(tree_propagation, "_compiled", compiled)
        forest = TreePropagation([-1, 0, 0], [ROOT, FLIP, FLIP])
        forest.leakage([even(2, 1.0)] * 3)
        assert not asked
        monkeypatch.setattr(tree_propagation, "_INTERPRETED", forest._work)
        forest.leakage([even(2, 1.0)] * 3)
        assert asked

    def test_kept_machine_code_goes_by_the_contents_of_every_file_it_was_made_of(self, tmp_path: Path) -> None:
        """Numba alone would not notice that a function of another file has changed."""
        one, other = tmp_path / "one.py", tmp_path / "other.py"
        one.write_text("1")
        other.write_text("2")
        sources = [str(one), str(other)]
        before = loop.version(sources)
        assert loop.version(sources[::-1]) == before
        other.write_text("3")
        assert loop.version(sources) != before
        renamed = loop.renamed(tree_propagation._PLAIN.sweep_up, before)
        assert before in renamed.__qualname__

    def test_all_that_sound_numbers_rest_on_is_among_those_files(self) -> None:
        files = {Path(name).name for name in loop.sources([*tree_propagation._CALLED, *tree_propagation._PLAIN])}
        assert files == {"certificate.py", "first_guess.py", "simplex.py", "tree_loops.py", "rounding.py"}


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
        ("parents", "tables", "words"),
        [
            ([], [], "0 parents and 0 tables"),
            ([-1, 0], [ROOT], "2 parents and 1 tables"),
            ([-1, 2], [ROOT, FLIP], r"parents\[1\] is 2"),
            ([-2], [ROOT], r"parents\[0\] is -2"),
            ([-1, 2, 1], [ROOT, FLIP, FLIP], "node 1 lead in a circle"),
            ([0], [FLIP], "circle"),
            ([-1], [FLIP], r"tables\[0\] has shape \(2, 2\), expected \(k,\)"),
            ([-1, 0], [ROOT, np.ones((3, 2)) / 2], r"tables\[1\] has shape \(3, 2\), expected \(2, k\)"),
            ([-1, 0], [ROOT, FLIP.T], r"row 0 of tables\[1\] sums to 1.125"),
            ([-1, 0], [np.array([0.5, 0.4]), FLIP], r"row 0 of tables\[0\] sums to 0.9"),
            ([-1, 0], [ROOT, np.array([[1, 0], [1.5, -0.5]])], r"row 1 of tables\[1\]"),
            ([-1], [np.array([np.nan, 1])], r"row 0 of tables\[0\]"),
        ],
    )
    def test_models(self, parents: list[int], tables: list[np.ndarray], words: str) -> None:
        with pytest.raises(ModelError, match=words):
            TreePropagation(parents, tables)

    @pytest.mark.parametrize(
        ("bad", "words"),
        [
            (np.ones((3, 3)), r"losses\[1\] has shape \(3, 3\), expected \(2, 2\)"),
            (np.array([[0, -1.0], [1, 0]]), r"losses\[1\] holds -1"),
            (np.array([[0, np.nan], [1, 0]]), r"losses\[1\] holds nan"),
            (np.ones((2, 2)), r"losses\[1\] is not 0 from a state to itself"),
        ],
    )
    def test_losses(self, bad: np.ndarray, words: str) -> None:
        forest = TreePropagation([-1, 0], [ROOT, FLIP])
        with pytest.raises(ModelError, match=words):
            forest.leakage([even(2, 1.0), bad])

    def test_numbers_of_nodes(self) -> None:
        forest = TreePropagation([-1, 0], [ROOT, FLIP])
        with pytest.raises(ModelError, match="losses has 1 entries, expected one for each of the 2 nodes"):
            forest.leakage([even(2, 1.0)])
        with pytest.raises(ModelError, match=r"secrets\[0\] has shape \(\)"):
            forest.leakage([even(2, 1.0)] * 2, [np.array(True)] * 2)
