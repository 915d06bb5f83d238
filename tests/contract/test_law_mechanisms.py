"""What mechanisms that calibrate to the law of a query owe their users, on every kind of Θ."""

import math
import pickle
from typing import Any

import pytest

import pufferfish as pf
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, QueryError
from pufferfish.mechanisms import LawMechanism

P = [[0.9, 0.1], [0.4, 0.6]]
THREE = [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]
NET = pf.BayesianNetwork(
    {
        "mother": pf.CPT(["0", "1"], [0.8, 0.2]),
        "son": pf.CPT(["0", "1"], [[0.9, 0.1], [0.3, 0.7]], ["mother"]),
        "daughter": pf.CPT(["0", "1"], [[0.9, 0.1], [0.5, 0.5]], ["mother"]),
        "guest": pf.CPT(["0", "1"], [0.5, 0.5]),
    }
)
JOINT = pf.JointDistribution([[0, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]], [0.4, 0.3, 0.2, 0.1])
MODELS: dict[str, tuple[Any, Any]] = {
    "stationary": (pf.MarkovChain(P), 30),
    "given start": (pf.MarkovChain(P, [0.9, 0.1]), 30),
    "any start": (pf.MarkovChain(P, "any"), 12),
    "class of two": ([pf.MarkovChain(P), pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], "any")], 12),
    "three states": (pf.MarkovChain(THREE), 20),
    "several chains": (pf.MarkovChain(P), [9, 5, 5, 1]),
    "several chains, any start": (pf.MarkovChain(P, "any"), [6, 4]),
    "independent": (pf.MarkovChain([[0.7, 0.3], [0.7, 0.3]]), 30),
    "reducible": (pf.MarkovChain([[0.75, 0.25], [0, 1]], [0.5, 0.5]), 20),
    "nearly periodic": (pf.MarkovChain([[0.01, 0.99], [0.98, 0.02]]), 30),
    "network": (NET, None),
    "two networks": ([NET, NET], None),
    "joint": (JOINT, None),
    "cliques": (pf.Cliques([[0.1, 0.15, 0.5, 0.15, 0.1], [0.5, 0.3, 0.2]]), None),
    "laws": (
        pf.GivenLaws({"a": {0: 0.5, 1: 0.5}, "b": {1: 0.25, 3: 0.75}}, records=3, states=["0", "1"], query=pf.Count(1)),
        None,
    ),
}
MAKES: dict[str, Any] = {
    "wasserstein": pf.Wasserstein,
    "exact-laplace": pf.ExactLaplace,
    "approximate-wasserstein": lambda theta, length=None, **more: pf.ApproximateWasserstein(
        theta, length, delta=1e-4, **more
    ),
}
EVERYTHING = [(make, model) for make in MAKES for model in MODELS]


@pytest.fixture
def mechanism(make: str, model: str) -> LawMechanism:
    return MAKES[make](*MODELS[model])


@pytest.mark.parametrize(("make", "model"), EVERYTHING)
def test_calibration(mechanism: LawMechanism, make: str, model: str) -> None:
    queries = [pf.Count(1)] if model == "laws" else [pf.Count(1), pf.Frequency(1)]
    if model != "three states" and model != "laws":
        queries.append(pf.Histogram())
    for query in queries:
        calibration = mechanism.calibrate(query, 0.7)
        assert 0 < calibration.scale < math.inf
        assert calibration.noise_multiplier is not None
        assert calibration.scale == pytest.approx(
            calibration.noise_multiplier * calibration.linear.lipschitz, rel=1e-12
        )
        assert 0.7 * (1 - 1e-8) <= calibration.prove_leakage() <= 0.7
        assert not calibration.composes
        assert calibration.mechanism == make
        assert calibration.delta == (1e-4 if make == "approximate-wasserstein" else 0.0)
        assert calibration.witness.kind == ("law" if make == "exact-laplace" else "coupling")
        assert calibration.lower_bound <= calibration.scale


@pytest.mark.parametrize(("make", "model"), [e for e in EVERYTHING if e[1] != "laws"])
def test_a_copy_proves_the_same(mechanism: LawMechanism, make: str) -> None:
    again = pickle.loads(pickle.dumps(mechanism))
    assert again.calibrate(pf.Count(1), 1.0).scale == mechanism.calibrate(pf.Count(1), 1.0).scale
    assert again.delta == mechanism.delta


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize(
    ("secrets", "match"),
    [
        ([], "empty"),
        (["a"], "is not a pair"),
        ([(pf.RecordIs(0, 1),)], "is not a pair"),
        (3, "is not a pair"),
    ],
    ids=str,
)
def test_secrets_that_are_no_pairs_are_refused(make: str, secrets: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        MAKES[make](pf.MarkovChain(P), 5, secrets=secrets)


RECORD = (pf.RecordIs(0, 0), pf.RecordIs(0, 1))
WRONG: dict[str, tuple[str, Any, type[Exception], str]] = {
    "no such step": ("stationary", (pf.RecordIs(30, 0), RECORD[1]), ParameterError, "no record 30; expected a step"),
    "no such chain": ("several chains", RECORD, ParameterError, r"no record 0; expected \(chain, step\)"),
    "no such state": ("stationary", (pf.RecordIs(0, "x"), RECORD[1]), ParameterError, "no state 'x'"),
    "no such node": ("network", (pf.RecordIs("aunt", 1), RECORD[1]), ParameterError, "no node 'aunt'"),
    "no such state of a node": ("network", (pf.RecordIs("son", 7), RECORD[1]), ParameterError, "no state '7'"),
    "no such column": ("joint", (pf.RecordIs(9, 1), RECORD[1]), ParameterError, "no record 9"),
    "no such member": ("cliques", (pf.RecordIs((0, 4), 1), RECORD[1]), ParameterError, r"no record \(0, 4\)"),
    "a fact of a chain": ("stationary", (pf.Fact("f", bool), RECORD[1]), NotApplicableError, "list their databases"),
    "a fact of cliques": ("cliques", (pf.Fact("f", bool), RECORD[1]), NotApplicableError, "list their databases"),
    "a fact of a network": ("network", (pf.Fact("f", bool), RECORD[1]), NotApplicableError, "list their databases"),
    "secrets of given laws": ("laws", RECORD, ParameterError, "give pairs to GivenLaws"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("make", MAKES)
def test_secrets_that_do_not_fit_are_refused(make: str, case: str) -> None:
    model, pair, error, match = WRONG[case]
    theta, length = MODELS[model]
    with pytest.raises(error, match=match):
        MAKES[make](theta, length, secrets=[pair]).calibrate(pf.Count(1), 1.0)


def test_a_query_whose_laws_are_not_given_is_refused_by_every_mechanism() -> None:
    given = pf.GivenLaws({"x": {0: 0.5, 1: 0.5}, "y": {1: 1.0}}, records=2, states=["a", "b"], query=pf.Count("b"))
    for mechanism in (pf.GroupDP, pf.Wasserstein, pf.ExactLaplace):
        with pytest.raises(ModelError, match="the laws are those of"):
            mechanism(given).calibrate(pf.Histogram(relative=False), 1.0)


@pytest.mark.parametrize("make", MAKES)
def test_what_cannot_be_computed_is_refused(make: str) -> None:
    chain = pf.MarkovChain(P)
    with pytest.raises(NotApplicableError, match="observed records"):
        MAKES[make](chain, pf.ChainLength(20, 10)).calibrate(pf.Count(1), 1.0)
    with pytest.raises(NotApplicableError, match="about 2e"):
        MAKES[make](chain, 10**6).calibrate(pf.Count(1), 1.0)
    with pytest.raises(NotApplicableError, match=r"and at most 1,000|all follow from one number"):
        MAKES[make](pf.MarkovChain(THREE), 5000).calibrate(pf.Histogram(), 1.0)
    with pytest.raises(QueryError, match="needs a JointDistribution"):
        MAKES[make](chain, 5).calibrate(pf.Function(len), 1.0)
    with pytest.raises(NotApplicableError, match="law is the same"):
        MAKES[make](pf.MarkovChain([[0, 1], [1, 0]]), 4).calibrate(pf.Count(1), 1.0)
    with pytest.raises(pf.PufferfishError, match="nothing to hide"):
        MAKES[make](pf.MarkovChain([[0, 1], [1, 0]], [1, 0]), 4).calibrate(pf.Count(1), 1.0)


def test_several_outputs_are_not_for_exact_laplace() -> None:
    with pytest.raises(NotApplicableError, match="all follow from one number"):
        pf.ExactLaplace(pf.MarkovChain(THREE), 5).calibrate(pf.Histogram(), 1.0)


@pytest.mark.parametrize("delta", [0, 1, -0.1, math.nan, "x", None], ids=repr)
def test_delta_out_of_range_is_refused(delta: Any) -> None:
    with pytest.raises(ParameterError, match="delta is"):
        pf.ApproximateWasserstein(pf.MarkovChain(P), 5, delta=delta)
