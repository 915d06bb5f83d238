"""Losses of steps against the truth: all databases of small chains, and releases of numbers of steps by themselves.

What a release of transitions really leaks is the supremum, over outputs w, of the ratio of two mixtures of Laplace
densities. As a function of one coordinate of w, the others kept, that ratio is monotone between the atoms; so its
supremum lies on the lattice of atoms and ±∞. Few coordinates are looked at on all of the lattice, more by steps
from all corners and from random places, which can only miss some of the truth.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pufferfish as pf
from odd_models import forgetting

Array = NDArray[np.float64]

_FAR = 50.0
"""Beyond all counts: as good as ±∞."""

_ROUNDED = 1e-9


def law_of(start: Array, matrices: Sequence[Array]) -> tuple[NDArray[np.int64], Array]:
    """All paths of positive probability, with it, of a chain that has a matrix of its own for every step."""
    paths = np.array(list(itertools.product(range(len(start)), repeat=len(matrices) + 1)))
    weights = np.asarray(start)[paths[:, 0]]
    for t, matrix in enumerate(matrices, start=1):
        weights = weights * np.asarray(matrix)[paths[:, t - 1], paths[:, t]]
    return paths[weights > 0], weights[weights > 0]


class Truth:
    """All databases of one chain, and what a release of its steps, perhaps beside its counts, says of each."""

    def __init__(
        self,
        law: tuple[NDArray[np.int64], Array],
        k: int,
        scale: float,
        beside: float | None = None,
        *,
        seen: Sequence[bool] | None = None,
        switches: bool = False,
    ) -> None:
        self.paths, self.weights = law
        length, rows = self.paths.shape[1], np.arange(len(self.paths))
        there = [True] * length if seen is None else seen
        steps = np.zeros((len(self.paths), k * k))
        for t in range(1, length):
            if there[t - 1] and there[t]:
                steps[rows, k * self.paths[:, t - 1] + self.paths[:, t]] += 1
        if switches:
            steps = steps[:, [i for i in range(k * k) if i // k != i % k]].sum(axis=1, keepdims=True)
        parts = [steps / scale]
        if beside is not None:
            parts.append(np.stack([(self.paths[:, there] == x).sum(axis=1) for x in range(k)], axis=1) / beside)
        self._values = np.concatenate(parts, axis=1)
        self._given = [self.weights * (self.paths[:, t] == x) for t in range(length) for x in range(k)]
        self._given = [w / w.sum() if w.sum() > 0 else w for w in self._given]
        self._k = k

    def loss(self, rng: np.random.Generator, tries: int = 6) -> float:
        """The largest loss that was found: the truth, or below it."""
        edges = [np.unique(column) for column in self._values.T]
        edges = [np.concatenate([[e[0] - _FAR], e, [e[-1] + _FAR]]) for e in edges]
        if np.prod([len(e) for e in edges], dtype=float) <= 5000:
            return float(self._at(np.array(list(itertools.product(*edges)))).max())
        starts = np.array([[rng.choice(e) for e in edges] for _ in range(tries)])
        best = 0.0
        if len(edges) <= 9:
            corners = np.array(list(itertools.product(*[(e[0], e[-1]) for e in edges])))
            found = self._at(corners)
            best, starts = float(found.max()), np.concatenate([starts, corners[np.argsort(-found)[:2]]])
        return max([best, *(self._climb(edges, w) for w in starts)])

    def _climb(self, edges: Sequence[Array], w: Array) -> float:
        best, moved = float(self._at(w[None])[0]), True
        while moved:
            moved = False
            for j, e in enumerate(edges):
                tried = np.repeat(w[None], len(e), axis=0)
                tried[:, j] = e
                found = self._at(tried)
                if found.max() > best + 1e-12:
                    best, w, moved = float(found.max()), tried[int(found.argmax())], True
        return best

    def _at(self, outputs: Array) -> Array:
        """The loss at each of several outputs."""
        logs = np.zeros((len(outputs), len(self._values)))
        for j, column in enumerate(self._values.T):
            logs -= np.abs(outputs[:, j, None] - column)
        density = np.exp(logs - logs.max(axis=1, keepdims=True))
        told = density @ np.array(self._given).T
        told = told.reshape(len(outputs), -1, self._k)
        possible = told[0] > 0
        high = np.where(possible, told, 0.0).max(axis=2)
        low = np.where(possible, told, np.inf).min(axis=2)
        return np.log(high / low).max(axis=1)


def losses(scale: float, beside: float | None, k: int, step: float = 2.0) -> pf.StepLoss:
    return pf.StepLoss(step / scale, 0.0 if beside is None else 2 / beside * (1 - np.eye(k)))


def random_rows(rng: np.random.Generator, k: int, rows: int, zeros: bool) -> Array:
    found = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 4.0])), size=rows)
    if zeros:
        found = np.where(rng.random(found.shape) < 0.35, 0.0, found)
        found[found.sum(axis=1) == 0, int(rng.integers(k))] = 1.0
    return found / found.sum(axis=1, keepdims=True)


def noises(rng: np.random.Generator, n: int) -> tuple[float, float | None]:
    return float(rng.choice([0.4, 1.0, 3.0])), (float(rng.choice([0.5, 2.0])) if n % 3 == 2 else None)


def check(bounds: Sequence[Any], truth: float, said: pf.StepLoss, *about: Any) -> float:
    """How near the nearest bound is; none is below the truth."""
    leaks = [bound.leakage(said) for bound in bounds]
    for bound, leakage in zip(bounds, leaks, strict=True):
        assert truth <= leakage * (1 + _ROUNDED) + 1e-12, (bound, leakage, truth, *about)
    return truth / min(leaks) if min(leaks) > 0 else 1.0


def chain_bounds(theta: Any, length: Any) -> list[Any]:
    """Every bound that covers Θ."""
    found: list[Any] = []
    for kind in (pf.LeakagePropagation, pf.MQMExact, pf.MQMApprox, pf.GroupDP, pf.GK16, pf.EntryDP):
        try:
            found.append(kind(theta, length=length))
        except pf.NotApplicableError:
            continue
    return found


def test_no_bound_is_below_the_truth_on_chains(slow: bool) -> None:
    """Hundreds of chains: two and three states, zeros, certain records, one record, a histogram beside."""
    rng, near = np.random.default_rng(1), []
    for n in range(150 if slow else 30):
        k = 2 + (n % 5 == 4)
        length = int(rng.integers(1, 7 if k == 2 else 5))
        zeros = n % 2 == 1
        chain = pf.MarkovChain(random_rows(rng, k, k, zeros), random_rows(rng, k, 1, zeros)[0])
        scale, beside = noises(rng, n)
        law = law_of(np.asarray(chain.initial_distribution), [chain.transition_matrix] * (length - 1))
        switches = n % 7 == 6
        truth = Truth(law, k, scale, beside, switches=switches).loss(rng)
        said = losses(scale, beside, k, 1.0 if switches else 2.0)
        near.append(check(chain_bounds(chain, length), truth, said, chain, length))
    assert np.quantile(near, 0.9) > 0.999  # it is attained


def test_records_that_are_certain_are_part_of_steps() -> None:
    """Every second record is certain, and each other one changes two steps: quilts must not leave the former out."""
    rng = np.random.default_rng(2)
    for stay in (0.5, 0.7, 0.99):
        matrix = np.array([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
        start = np.array([0.0, stay, 1 - stay])
        chain = pf.MarkovChain(matrix, start)
        truth = Truth(law_of(start, [matrix] * 4), 3, 1.0).loss(rng)
        near = check(chain_bounds(chain, 5), truth, losses(1.0, None, 3), chain)
        assert near > 0.999


def test_gaps_and_several_chains(slow: bool) -> None:
    """A step across a gap is none; of several chains the worst decides."""
    rng = np.random.default_rng(3)
    for n in range(30 if slow else 15):
        chain = pf.MarkovChain(random_rows(rng, 2, 2, zeros=n % 4 == 3), rng.dirichlet(np.ones(2)))
        scale, beside = noises(rng, n)
        worst, lengths = 0.0, []
        for _ in range(1 + n % 2):
            seen = [True, *(rng.random(int(rng.integers(1, 6))) < 0.7).tolist(), True]
            law = law_of(np.asarray(chain.initial_distribution), [chain.transition_matrix] * (len(seen) - 1))
            worst = max(worst, Truth(law, 2, scale, beside, seen=seen).loss(rng))
            lengths.append(pf.ChainLength(len(seen), sum(seen)))
        check(chain_bounds(chain, lengths), worst, losses(scale, beside, 2), chain, lengths)


def test_classes_of_chains() -> None:
    """Members of every class: any start, stationary, boxes, matrices between bounds, clocks, memory, forgetting."""
    rng = np.random.default_rng(4)
    for n in range(4):
        scale, beside = noises(rng, n)
        length = int(rng.integers(2, 6))
        for theta, k, law in members(rng, length):
            truth = Truth(law, k, scale, beside).loss(rng)
            check(chain_bounds(theta, length), truth, losses(scale, beside, k), theta, length)


def members(rng: np.random.Generator, length: int) -> Iterator[tuple[Any, int, tuple[NDArray[np.int64], Array]]]:
    k = int(rng.integers(2, 4)) if length < 5 else 2
    matrix, start = random_rows(rng, k, k, zeros=False), random_rows(rng, k, 1, zeros=bool(rng.integers(2)))[0]
    steps = length - 1
    yield pf.MarkovChain(matrix, "any"), k, law_of(start, [matrix] * steps)
    chain = pf.MarkovChain(matrix)
    yield chain, k, law_of(chain.stationary_distribution, [matrix] * steps)
    low, high = np.sort(rng.uniform(0.05, 0.95, 2))
    stay = rng.choice([low, high, rng.uniform(low, high)], 2)
    two = np.array([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]])
    yield pf.BinaryChainInterval(low, high), 2, law_of(rng.dirichlet(np.ones(2)), [two] * steps)
    each = [random_rows(rng, k, k, zeros=False) * 0.1 + 0.9 * matrix for _ in range(steps)]
    lower, upper = np.min([matrix, *each], axis=0), np.max([matrix, *each], axis=0)
    yield pf.IntervalChain(lower, upper), k, law_of(start, each)
    cycle, phase = [random_rows(rng, 2, 2, zeros=False) for _ in range(3)], int(rng.integers(3))
    turned = [cycle[(phase + t) % 3] for t in range(steps)]
    yield pf.PeriodicChain(cycle, initial_distribution="any"), 2, law_of(rng.dirichlet(np.ones(2)), turned)
    tensor, first = rng.dirichlet(np.ones(2), size=(2, 2)), rng.dirichlet(np.ones(4)).reshape(2, 2)
    paths = np.array(list(itertools.product(range(2), repeat=length)))
    weights = first[paths[:, 0], paths[:, 1]]
    for t in range(2, length):
        weights = weights * tensor[paths[:, t - 2], paths[:, t - 1], paths[:, t]]
    yield pf.HigherOrderChain(tensor, initial_distribution=first), 2, (paths, weights)
    yield forgetting(each, start, [str(x) for x in range(k)]), k, law_of(start, each)


def test_a_ledger_is_never_below_the_joint_loss(slow: bool) -> None:
    """Transitions, changes of state and a histogram of the same records, one after the other."""
    rng, near = np.random.default_rng(5), 0.0
    for n in range(18 if slow else 9):
        length = int(rng.integers(3, 7))
        chain = pf.MarkovChain(random_rows(rng, 2, 2, zeros=n % 3 == 2), rng.dirichlet(np.ones(2)))
        ledger = pf.Ledger(pf.LeakagePropagation(chain, length=length), budget=100.0)
        steps = pf.LeakagePropagation(chain, length=length).calibrate(pf.Transitions(), 1.0 + n % 3)
        counts = pf.LeakagePropagation(chain, length=length).calibrate(pf.Histogram(relative=False), 0.5)
        ledger.spend(steps)
        ledger.spend(counts)
        law = law_of(np.asarray(chain.initial_distribution), [chain.transition_matrix] * (length - 1))
        truth = Truth(law, 2, steps.unit_scale, counts.unit_scale).loss(rng)
        assert truth <= ledger.spent * (1 + _ROUNDED)
        near = max(near, truth / ledger.spent)
    assert near > 0.95


def test_noise_below_the_lower_bound_leaks_too_much() -> None:
    """By the truth of the release itself; the noise that is proved comes near it."""
    rng, near = np.random.default_rng(6), []
    for n in range(24):
        k = 2 + (n % 4 == 3)
        length = int(rng.integers(2, 6 if k == 2 else 5))
        chain = pf.MarkovChain(random_rows(rng, k, k, zeros=n % 3 == 1), random_rows(rng, k, 1, zeros=False)[0])
        query = pf.Switches() if n % 5 == 4 else pf.Transitions()
        found = pf.LeakagePropagation(chain, length).calibrate(query, 1.0)
        assert 0 < found.lower_bound <= found.scale * (1 + _ROUNDED)
        law = law_of(np.asarray(chain.initial_distribution), [chain.transition_matrix] * (length - 1))
        too_small = Truth(law, k, 0.999 * found.lower_bound, switches=query.kind == "switches").loss(rng)
        assert too_small > 1.0
        near.append(found.lower_bound / found.scale)
    assert max(near) > 0.99


def test_numbers_of_bouts_keep_their_promise(slow: bool) -> None:
    """By the law of the number given each record, with noise of the scale that each bound proves; control: a third."""
    rng, near, broken = np.random.default_rng(7), 0.0, 0
    for n in range(24 if slow else 12):
        k, length = 2 + n % 2, int(rng.integers(2, 7))
        chain = pf.MarkovChain(random_rows(rng, k, k, zeros=n % 3 == 1), random_rows(rng, k, 1, zeros=False)[0])
        law = law_of(np.asarray(chain.initial_distribution), [chain.transition_matrix] * (length - 1))
        for kind in (pf.LeakagePropagation, pf.MQMExact, pf.GroupDP, pf.ExactLaplace):
            try:
                found = kind(chain, length).calibrate(pf.Bouts("0"), 1.0)
            except pf.NotApplicableError:  # the number says nothing of any record: so of none at any scale
                assert loss_of_bouts(law, k, length, 0.1) < _ROUNDED
                continue
            true = loss_of_bouts(law, k, length, found.unit_scale)
            assert true <= 1 + _ROUNDED
            near = max(near, true)
            broken += loss_of_bouts(law, k, length, found.unit_scale / 3) > 1
    assert near > 0.98
    assert broken


def loss_of_bouts(law: tuple[NDArray[np.int64], Array], k: int, length: int, scale: float) -> float:
    """Largest log ratio, over outputs, of their probabilities given two values of a record."""
    rows, weights = law
    begun = ((rows[:, :-1] != 0) & (rows[:, 1:] == 0)).sum(axis=1)
    kernel = np.exp(-np.abs(np.arange(-1, length + 1)[:, None] - begun) / scale)
    worst = 0.0
    for record in range(length):
        here = [np.where(rows[:, record] == x, weights, 0.0) for x in range(k)]
        logs = np.array([np.log(kernel @ of_x / of_x.sum()) for of_x in here if of_x.sum() > 0])
        worst = max(worst, float((logs.max(axis=0) - logs.min(axis=0)).max()))
    return worst
