"""What every mechanism that covers networks owes its users, on every kind of network."""

import math
import pickle
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from network_oracle import SHAPES, random_network, shaped
from networks import model_of
from pufferfish.errors import NotApplicableError, ParameterError, QueryError
from pufferfish.mechanisms import BOUNDS, InfluenceBound

STEP = [[0.9, 0.1], [0.4, 0.6]]


def path(length: int) -> pf.BayesianNetwork:
    nodes = {0: pf.CPT(["a", "b"], [0.5, 0.5])}
    return pf.BayesianNetwork(nodes | {t: pf.CPT(["a", "b"], STEP, [t - 1]) for t in range(1, length)})


NETWORKS: dict[str, Any] = {
    "one node": path(1),
    "path": path(12),
    "hidden chain": model_of(shaped("hidden chain", [[], [0], [1], [0], [1], [2]], 0)),
    "forest": model_of(random_network(5, 6, parents=1)),
    "two trees": [model_of(shaped("tree", [[], [0], [0]], 0)), model_of(shaped("tree", [[1], [], [1]], 0))],
    "independent": pf.BayesianNetwork({name: pf.CPT(["a", "b"], [0.5, 0.5]) for name in "xyz"}),
    "diamond": model_of(shaped("diamond", SHAPES["diamond"], 5)),
    "dense": model_of(random_network(3, 6)),
    "with zeros": model_of(random_network(4, 5, parents=2)),
    "clique": model_of(shaped("clique", [[], [0], [0, 1], [0, 1, 2]], 0, most=2)),
    "two members": [model_of(shaped("pair", [[], [0], [0, 1]], seed, most=2)) for seed in (0, 0)],
}


def covers(make: type[InfluenceBound], model: str) -> bool:
    try:
        return bool(make.of(NETWORKS[model], None).networks)
    except NotApplicableError:
        return False


COVERED = [(make.name, model) for make in BOUNDS for model in NETWORKS if covers(make, model)]
BY_NAME = {make.name: make for make in BOUNDS}


@pytest.fixture
def bound(name: str, model: str) -> InfluenceBound:
    return BY_NAME[name].of(NETWORKS[model], 20)


def test_what_is_covered() -> None:
    """Chains' mechanisms cover no networks, the others every one."""
    assert set(COVERED) == {(name, model) for name in ("group-dp", "markov-quilt", "propagation") for model in NETWORKS}


@pytest.mark.parametrize("make", BOUNDS, ids=lambda make: make.name)
@pytest.mark.parametrize("model", list(NETWORKS))
def test_refusals_say_why(make: type[InfluenceBound], model: str) -> None:
    if (make.name, model) not in COVERED:
        with pytest.raises(NotApplicableError) as refusal:
            make.of(NETWORKS[model], None)
        assert str(refusal.value).startswith(f"{make.title} does not apply: it ")
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("name", "model"), COVERED)
def test_calibration(bound: InfluenceBound, name: str) -> None:
    nodes = bound.networks[0].nodes
    state = bound.networks[0].node_states[nodes[0]][0]
    for query in (pf.Count(state), pf.Histogram(), pf.Marginals([nodes[0]]), pf.Subset(pf.Frequency(state), nodes[0])):
        calibration = bound.calibrate(query, 1.0)
        assert 0 < calibration.scale < math.inf
        multiplier = calibration.noise_multiplier
        assert multiplier is not None
        assert calibration.scale == pytest.approx(multiplier * calibration.linear.lipschitz, rel=1e-12)
        close = 1e-5 if name == "propagation" else 1e-9
        assert 1 - close <= calibration.prove_leakage() <= calibration.epsilon == 1.0
        assert calibration.mechanism == name
        assert calibration.records == 20 * len(nodes)
        assert calibration.witness.length in {len(nodes), *bound.networks[0].groups}
        assert calibration.composes
        again = pickle.loads(pickle.dumps(bound)).calibrate(query, 1.0)
        assert again.scale == calibration.scale


@pytest.mark.parametrize(("name", "model"), COVERED)
def test_leakage_of_every_shape(bound: InfluenceBound) -> None:
    network = bound.networks[0]
    rng = np.random.default_rng(len(network.nodes))
    numbers = rng.uniform(0, 0.5, len(network.nodes))
    matrices = [x * (1 - np.eye(k)) for x, k in zip(numbers, network.sizes, strict=True)]
    each = bound.leakage(numbers)
    assert each == bound.leakage(dict(zip(network.nodes, numbers.tolist(), strict=True)))
    assert each == bound.leakage(matrices)
    assert each <= bound.leakage(float(numbers.max())) * (1 + 1e-9)
    assert each < math.inf
    assert bound.leakage(dict(zip(network.nodes, [numbers[0]], strict=False))) <= each * (1 + 1e-9)


@pytest.mark.parametrize(("name", "model"), COVERED)
def test_no_loss_leaks_nothing(bound: InfluenceBound) -> None:
    n = len(bound.networks[0].nodes)
    for nothing in (0, 0.0, [0] * n, np.zeros(n), {}, {bound.networks[0].nodes[0]: 0.0}):
        assert bound.leakage(nothing) == 0.0


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "x", None], ids=str)
@pytest.mark.parametrize("name", ["group-dp", "markov-quilt", "propagation"])
def test_bad_epsilon_is_refused(name: str, epsilon: Any) -> None:
    with pytest.raises(ParameterError, match=r"^epsilon is (missing|.*, expected a positive)"):
        BY_NAME[name].of(NETWORKS["path"], None).calibrate(pf.Count("a"), epsilon)


@pytest.mark.parametrize(
    "losses", [-0.1, math.nan, "much", None, [0.1] * 11, {"x": 1.0}, np.zeros((12, 3, 3))], ids=str
)
@pytest.mark.parametrize("name", ["group-dp", "markov-quilt", "propagation"])
def test_bad_losses_are_refused(name: str, losses: Any) -> None:
    with pytest.raises(ParameterError, match="record_loss"):
        BY_NAME[name].of(NETWORKS["path"], None).leakage(losses)


@pytest.mark.parametrize("name", ["group-dp", "markov-quilt", "propagation"])
def test_queries_that_do_not_fit_are_refused(name: str) -> None:
    bound = BY_NAME[name].of(NETWORKS["path"], None)
    for query, message in (
        (pf.Count("running"), "the model has no such state"),
        (pf.Marginals(["x"]), "there is no record 'x'"),
        (pf.Weighted(pf.Count("a"), [1, 2]), "there are 2 factors for 12 records"),
    ):
        with pytest.raises(QueryError, match=message):
            bound.calibrate(query, 1.0)
