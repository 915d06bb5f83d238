"""What a Laplace release about a network really leaks, by enumeration of all databases, never exceeds ε."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

import pufferfish as pf
from network_oracle import (
    SHAPED,
    Array,
    Network,
    algorithm_2,
    laplace_loss,
    moves,
    needs_none,
    random_network,
    several_rows,
    shaped,
    with_other_tables,
)
from network_queries import NAMES, Asked, by_name, queries_of
from networks import has_secrets, model_of
from pufferfish.errors import ModelError
from pufferfish.mechanisms import InfluenceBound
from pufferfish.queries.record_loss import loss_of_query

SLACK = 1 + 1e-9
EPSILONS = (0.3, 1.5, 6.0)
NETWORKS = [
    *SHAPED,
    *(random_network(seed, 2 + seed % 4, parents=1 + seed % 3) for seed in range(24)),
]
SOME = [network for network in NETWORKS if has_secrets(network)]


def masks(network: Network, secrets: Sequence[tuple[int, Sequence[str], Sequence[str]]]) -> list[np.ndarray]:
    """Every value of the first against every one of the second, both ways."""
    found = [np.zeros((k, k), dtype=bool) for k in network.sizes]
    for node, one, other in secrets:
        rows, columns = ([network.states[node].index(s) for s in side] for side in (one, other))
        found[node][np.ix_(rows, columns)] = True
        found[node] |= found[node].T
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("network", SOME, ids=str)
def test_markov_quilt_and_group_dp_keep_their_promise(network: Network, name: str) -> None:
    asked, model = by_name(network, name), model_of(network)
    answers = network.answers(asked.answer)
    for epsilon in EPSILONS:
        if needs_none(network, answers, epsilon):
            continue
        bounds = (pf.MarkovQuilt(model), pf.MarkovQuilt(model, max_quilts=2), pf.GroupDP(model))
        quilts, few, group = (bound.calibrate(asked.query, epsilon).scale for bound in bounds)
        assert network.true_loss(answers, quilts) <= epsilon * SLACK
        assert network.true_loss(answers, few) <= epsilon * SLACK
        assert quilts <= few * SLACK
        assert quilts <= group * SLACK


@pytest.mark.slow
def test_few_quilts_need_no_more_than_the_group() -> None:
    """Whatever is found, the trivial quilt is at hand."""
    for network in SOME:
        model = model_of(network)
        for name in ("sum", "histogram", "weighted histogram"):
            asked = by_name(network, name)
            if not needs_none(network, network.answers(asked.answer), 6.0):
                few, group = pf.MarkovQuilt(model, max_quilts=2), pf.GroupDP(model)
                assert few.calibrate(asked.query, 6.0).scale <= group.calibrate(asked.query, 6.0).scale * SLACK


MORE = [pytest.param(seed, 4.0, marks=pytest.mark.slow) for seed in (11, 41)]


@pytest.mark.parametrize(("seed", "epsilon"), [(30, 1.0), *MORE])
def test_what_the_search_finds_is_what_is_calibrated(seed: int, epsilon: float) -> None:
    """With a limit, on networks that are too large to look at every quilt."""
    n = 12
    bound = pf.MarkovQuilt(model_of(random_network(seed, n, parents=3, most=2)), max_quilts=50)
    query = pf.Weighted(pf.Count("b"), [1 + j % 3 for j in range(n)])
    losses = loss_of_query(bound.bind(query), bound.theta, bound.length)
    score = next(iter(bound._engine.candidate_scales(losses, epsilon)))[0]
    assert bound.calibrate(query, epsilon).unit_scale <= score * 1.001


@pytest.mark.parametrize("name", NAMES[:4])
@pytest.mark.parametrize("network", SOME, ids=str)
def test_the_noise_is_that_of_algorithm_2(network: Network, name: str) -> None:
    """The worst node's best quilt, of all sets of nodes, with what each node can move the answer."""
    asked = by_name(network, name)
    answers = network.answers(asked.answer)
    losses = list(moves(answers))
    for epsilon in EPSILONS:
        if needs_none(network, answers, epsilon):
            continue
        calibration = pf.MarkovQuilt(model_of(network)).calibrate(asked.query, epsilon)
        true = algorithm_2([network], losses, epsilon)
        assert true * (1 - 1e-12) <= calibration.scale <= true * SLACK


@pytest.mark.parametrize("name", ["histogram", "some nodes", "weighted count"])
@pytest.mark.parametrize("network", SOME[::2], ids=str)
def test_with_secrets_about_some_nodes_only(network: Network, name: str) -> None:
    """Names of nodes, pairs of values and of sets of values: no more noise than those need."""
    asked, model = by_name(network, name), model_of(network)
    answers, n = network.answers(asked.answer), network.size
    losses = list(moves(answers))
    first, last = network.states[0], network.states[n - 1]
    three = next((j for j in range(n) if len(network.states[j]) == 3), None)
    asks = [
        (["v0"], [(0, (s,), tuple(t for t in first if t != s)) for s in first]),
        ([(pf.RecordIs(f"v{n - 1}", last[0]), pf.RecordIs(f"v{n - 1}", last[1]))], [(n - 1, last[:1], last[1:2])]),
    ]
    if three is not None:
        x, y, z = network.states[three]
        pair = (pf.RecordIs(f"v{three}", [x, z]), pf.RecordIs(f"v{three}", y))
        asks.append(([pair, f"v{n - 1}"], [(three, (x, z), (y,)), *((n - 1, (s,), last) for s in last)]))
    for given, meant in asks:
        secrets = masks(network, meant)
        if needs_none(network, answers, 1.5, secrets):
            continue
        scale = pf.MarkovQuilt(model, secrets=given).calibrate(asked.query, 1.5).scale
        assert network.true_loss(answers, scale, secrets) <= 1.5 * SLACK
        assert scale == pytest.approx(algorithm_2([network], losses, 1.5, secrets), rel=1e-9)
        for node, one, other in meant:  # the secrets themselves, not only their single values
            assert loss_between(network, answers, scale, node, one, other) <= 1.5 * SLACK


def loss_between(
    network: Network, answers: Array, scale: float, node: int, one: Sequence[str], other: Sequence[str]
) -> float:
    """Loss about a node's value being one of some, or one of some others: a network in which that is a node's state."""
    sides = [[network.states[node].index(s) for s in side] for side in (one, other)]
    along = np.moveaxis(network.law, node, 0)
    kept = sorted({*sides[0], *sides[1]})
    overlap = set(sides[0]) & set(sides[1])
    if overlap or not all(along[side].any() for side in sides):
        return 0.0
    law = np.zeros((2, len(kept), *along.shape[1:]))
    for side, states in enumerate(sides):
        for x in states:
            law[side, kept.index(x)] = along[x]
    moved = np.moveaxis(answers, node, 0)[kept]
    pairs = [np.array([[False, True], [True, False]])] + [np.zeros((k, k), dtype=bool) for k in law.shape[1:]]
    return laplace_loss(law, np.broadcast_to(moved, (2, *moved.shape)), scale, pairs)


@pytest.mark.parametrize("seed", range(12))
def test_under_every_theta(seed: int) -> None:
    """Other tables, and another graph of the same groups."""
    first = shaped("theta", [[], [0], [0], [1, 2]], 5 * seed)
    theta = [first, with_other_tables(first, 5 * seed + 1), with_other_tables(first, seed, [[1], [], [0, 1], [2]])]
    asked = by_name(first, ("histogram", "sum", "weighted histogram")[seed % 3])
    answers = first.answers(asked.answer)
    losses = list(moves(answers))
    for epsilon in EPSILONS:
        calibration = pf.MarkovQuilt([model_of(network) for network in theta]).calibrate(asked.query, epsilon)
        for network in theta:
            assert network.true_loss(answers, calibration.scale) <= epsilon * SLACK
        assert calibration.scale == pytest.approx(algorithm_2(theta, losses, epsilon), rel=1e-9)
        decides = theta[calibration.witness.theta]
        assert calibration.scale == pytest.approx(algorithm_2([decides], losses, epsilon), rel=1e-9)


@pytest.mark.parametrize("network", [network for network in SOME if network.size >= 4][::2], ids=str)
def test_with_given_quilts(network: Network) -> None:
    """The best of those that were given and the trivial one, as names and as quilts; other nodes are searched."""
    rng = np.random.default_rng(network.size)
    model, asked = model_of(network), by_name(network, "sum")
    answers = network.answers(asked.answer)
    losses = list(moves(answers))
    others = list(network.quilts(0))
    chosen = [others[i] for i in rng.permutation(len(others))[:3]]
    named = [[f"v{j}" for j in quilt] for quilt in chosen]
    handed = [pf.Quilt.of(model, "v0", names) for names in named]
    wide = [pf.Quilt((*quilt.nearby, *quilt.remote), quilt.quilt, ()) for quilt in handed]
    for epsilon in EPSILONS:
        scores = [algorithm_2([network], losses, epsilon, only(network, node)) for node in range(1, network.size)]
        if network.secrets(0).any():
            judged = []
            for quilt in [(), *chosen]:
                influence = network.influence(0, quilt)
                weight = math.fsum(losses[j].max(initial=0, where=network.secrets(j)) for j in network.nearby(0, quilt))
                judged.append(weight / (epsilon - influence) if influence < epsilon else math.inf)
            scores.append(min(judged))
        for quilts in (named, handed, wide) if max(scores) else ():
            scale = pf.MarkovQuilt(model, {"v0": quilts}).calibrate(asked.query, epsilon).scale
            assert network.true_loss(answers, scale) <= epsilon * SLACK
            assert scale == pytest.approx(max(scores), rel=1e-9)


def only(network: Network, node: int) -> list[np.ndarray]:
    return [np.full((k, k), j == node) for j, k in enumerate(network.sizes)]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("seed", "rows"), [(0, 2), (1, 2), (2, 2), (4, 2), (0, 3), (9, 2)])
def test_tables_of_independent_rows(seed: int, rows: int, epsilon: float) -> None:
    """All rows enumerated; relative queries divide by the public number of cells, or of rows."""
    network = random_network(seed, 3 if rows == 2 else 2, most=2)
    n, model = network.size, model_of(network)
    every, factors = list(dict.fromkeys(state for names in network.states for state in names)), [2, -1, 1][:n]
    asks = [
        (pf.Histogram(), lambda row: [row.count(s) / (n * rows) for s in every]),
        (pf.Frequency("b"), lambda row: [row.count("b") / (n * rows)]),
        (pf.Marginals(["v1"]), lambda row: [(row[1] == s) / rows for s in network.states[1]]),
        (pf.Subset(pf.Histogram(), ["v1"]), lambda row: [(row[1] == s) / rows for s in network.states[1]]),
        (pf.Subset(pf.Frequency(network.states[0][0]), ["v0"]), lambda row: [(row[0] == network.states[0][0]) / rows]),
        (pf.Weighted(pf.Count("b"), factors), lambda row: [np.dot(factors, [s == "b" for s in row])]),
    ]
    for query, answer in asks:
        law, answers = several_rows(network.law, network.answers(answer), rows)
        if needs_none(network, network.answers(answer), epsilon):
            continue
        pairs = [network.secrets(j % n) for j in range(n * rows)]
        for bound in (pf.MarkovQuilt(model, length=rows), pf.GroupDP(model, rows)):
            scale = bound.calibrate(query, epsilon).scale
            assert laplace_loss(law, answers, scale, pairs) <= epsilon * SLACK
            if isinstance(bound, pf.MarkovQuilt):
                losses = list(moves(network.answers(answer)))
                assert scale == pytest.approx(algorithm_2([network], losses, epsilon), rel=1e-9)


def matrices(network: Network, asked: Asked, scale: float) -> list[np.ndarray]:
    return [move / scale for move in moves(network.answers(asked.answer))]


@pytest.mark.parametrize("network", SOME[::2], ids=str)
def test_losses_of_two_releases_add(network: Network) -> None:
    """The joint output of two releases, as one vector in units of its own noise."""
    model = model_of(network)
    for one, other, b, c in (("count", "sum", 0.7, 2.0), ("marginals", "weighted count", 1.0, 3.0)):
        pair = by_name(network, one), by_name(network, other)
        answers = np.concatenate([network.answers(pair[0].answer) / b, network.answers(pair[1].answer) / c], axis=-1)
        summed = [p + q for p, q in zip(matrices(network, pair[0], b), matrices(network, pair[1], c), strict=True)]
        losses = {f"v{j}": loss for j, loss in enumerate(summed)}
        truth = network.true_loss(answers, 1.0)
        for bound in (pf.MarkovQuilt(model), pf.GroupDP(model)):
            assert truth <= bound.leakage(losses) * SLACK + 1e-12


@pytest.mark.parametrize("network", SOME, ids=str)
def test_leakage_is_the_worst_nodes_best_quilt(network: Network) -> None:
    """In every form that losses can be given in."""
    rng = np.random.default_rng(network.size)
    model = model_of(network)
    for kind in ("matrices", "numbers", "some"):
        each = [rng.uniform(0.0, 1.0, size=(k, k)) * (1 - np.eye(k)) for k in network.sizes]
        if kind == "numbers":
            each = [loss.max() * (1 - np.eye(len(loss))) for loss in each]
        if kind == "some":
            each = [loss * (rng.random() < 0.5) for loss in each]
        truth = max(
            (
                network.best(node, each, lambda weight, influence: weight + influence, pairs)
                for node in range(network.size)
                if (pairs := network.secrets(node)).any()
            ),
            default=0.0,
        )
        forms = [each, {f"v{j}": loss for j, loss in enumerate(each) if loss.any()}]
        largest = [float(loss.max()) for loss in each]
        forms += [largest, np.array(largest)] if kind == "numbers" else []
        for form in forms:
            assert truth * (1 - 1e-12) - 1e-13 <= pf.MarkovQuilt(model).leakage(form) <= truth * SLACK + 1e-12


STICKY = Network(
    "sticky",
    ((), (0,), (0,), (1, 2)),
    (
        np.array([0.5, 0.5]),
        np.array([[0.984375, 0.015625], [0.03125, 0.96875]]),
        np.array([[0.984375, 0.015625], [0.03125, 0.96875]]),
        np.array([[[0.984375, 0.015625], [0.5, 0.5]], [[0.5, 0.5], [0.03125, 0.96875]]]),
    ),
    (("a", "b"),) * 4,
)


@pytest.mark.parametrize("make", [pf.GroupDP, pf.MarkovQuilt], ids=["group-dp", "markov-quilt"])
def test_half_of_the_noise_breaks_the_promise(make: type[InfluenceBound]) -> None:
    """Control: the oracle sees too little noise."""
    calibration = make(model_of(STICKY)).calibrate(pf.Count("b"), 1.0)
    answers = STICKY.answers(lambda row: [row.count("b")])
    assert STICKY.true_loss(answers, calibration.scale) <= 1.0
    assert STICKY.true_loss(answers, calibration.scale / 2) > 1.5


def test_quilts_need_less_than_the_group_somewhere(slow: bool) -> None:
    """Control: the promise is not kept by the trivial quilt alone."""
    less = 0
    for network in SOME if slow else SOME[::2]:
        asked = queries_of(network)[0]
        if not needs_none(network, network.answers(asked.answer), 6.0):
            scales = (
                make(model_of(network)).calibrate(asked.query, 6.0).scale for make in (pf.MarkovQuilt, pf.GroupDP)
            )
            less += next(scales) < 0.9 * next(scales)
    assert less > 5


def test_nothing_is_secret_where_all_is_certain() -> None:
    certain = pf.BayesianNetwork(
        {"v0": pf.CPT(["a", "b"], [1.0, 0.0]), "v1": pf.CPT(["a", "b"], [[0, 1], [0.5, 0.5]], ["v0"])}
    )
    with pytest.raises(ModelError, match="no secret to protect"):
        pf.MarkovQuilt(certain).calibrate(pf.Count("b"), 1.0)
    assert pf.MarkovQuilt(certain).leakage(1.0) == 0.0
