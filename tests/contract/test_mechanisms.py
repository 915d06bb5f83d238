"""What every mechanism owes its users, on every kind of class it covers."""

import math
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.errors import BudgetExceeded, NotApplicableError, ParameterError
from pufferfish.mechanisms import BOUNDS, MECHANISMS, InfluenceBound, Mechanism
from pufferfish.mechanisms.mechanism import LEAST_EPSILON
from pufferfish.theta.model_class import as_theta

P = [[0.9, 0.1], [0.4, 0.6]]
THREE = [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]
COIN = [[0.7, 0.3], [0.7, 0.3]]
MODELS: dict[str, Any] = {
    "stationary": pf.MarkovChain(P),
    "given start": pf.MarkovChain(P, [0.9, 0.1]),
    "any start": pf.MarkovChain(P, "any"),
    "class of two": [pf.MarkovChain(P), pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], "any")],
    "three states": pf.MarkovChain(THREE),
    "weakly correlated": pf.MarkovChain([[0.56, 0.44], [0.4, 0.6]], "any"),
    "independent": pf.MarkovChain(COIN),
    "independent class": [pf.MarkovChain(COIN), pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], [1, 0])],
    "periodic": pf.MarkovChain([[0, 1], [1, 0]], [0.5, 0.5]),
    "reducible": pf.MarkovChain([[0.75, 0.25], [0, 1]], [0.5, 0.5]),
    "no gap": pf.MarkovChain([[0, 1, 0], [0, 0, 1], [0.01, 0.99, 0]]),
}
LENGTHS: dict[str, Any] = {
    "one record": 1,
    "a chain": 40,
    "chains": [40, 7, 1],
    "with gaps": pf.ChainLength(steps=60, records=40),
    "chains with gaps": [pf.ChainLength(steps=60, records=40), 12],
}
TOO_STRONG = {("gk16", model) for model in ("stationary", "given start", "any start", "class of two", "three states")}
"""Covered but for a condition on the chain's length, which one of forty records does not meet."""
COVERED = {
    (make.name, model) for make in BOUNDS for model in MODELS if make.supports(as_theta(MODELS[model])) is None
} - TOO_STRONG
REFUSED = {
    ("entry-dp", "stationary"): "records are correlated",
    ("entry-dp", "given start"): "records are correlated",
    ("entry-dp", "any start"): "records are correlated",
    ("entry-dp", "class of two"): r"correlated under theta\[0\]",
    ("entry-dp", "three states"): "records are correlated",
    ("entry-dp", "weakly correlated"): "records are correlated",
    ("entry-dp", "periodic"): "records are correlated",
    ("entry-dp", "reducible"): "records are correlated",
    ("entry-dp", "no gap"): "records are correlated",
    ("gk16", "periodic"): r"theta\[0\] never goes from '0' to '0'",
    ("gk16", "reducible"): r"theta\[0\] never goes from '1' to '0'",
    ("gk16", "no gap"): r"theta\[0\] never goes from '0' to '0'",
    ("mqm-approx", "periodic"): r"theta\[0\] has period 2",
    ("mqm-approx", "reducible"): r"theta\[0\] is reducible",
    ("mqm-approx", "no gap"): r"theta\[0\] has eigengap 0",
}
REFUSED |= {("markov-quilt", model): "Θ is a class of Markov chains" for model in MODELS}
BY_NAME = {make.name: make for make in BOUNDS}
ON_CHAINS = [make for make in BOUNDS if make is not pf.MarkovQuilt]
"""The others are for networks: see test_network_mechanisms."""
COVER_CHAINS = [make for make in MECHANISMS if make is not pf.MarkovQuilt]


EVERYTHING = [(name, model, length) for name, model in sorted(COVERED) for length in LENGTHS]


@pytest.fixture
def bound(name: str, model: str, length: str) -> InfluenceBound:
    return BY_NAME[name].of(MODELS[model], LENGTHS[length])


def test_what_is_covered_is_what_is_not_refused() -> None:
    assert {(make.name, model) for make in BOUNDS for model in MODELS} == COVERED | TOO_STRONG | set(REFUSED)
    assert not COVERED & set(REFUSED)


@pytest.mark.parametrize(("name", "model"), list(REFUSED))
def test_refusals_say_why(name: str, model: str) -> None:
    reason = BY_NAME[name].supports(as_theta(MODELS[model]))
    assert reason is not None
    with pytest.raises(NotApplicableError, match=REFUSED[name, model]) as refusal:
        BY_NAME[name].of(MODELS[model], 40)
    assert str(refusal.value) == f"{BY_NAME[name].title} does not apply: {reason}"
    assert "\n" not in reason


@pytest.mark.parametrize(("name", "model"), sorted(TOO_STRONG))
def test_refusals_of_a_length_say_why(name: str, model: str) -> None:
    with pytest.raises(NotApplicableError, match=r"^GK16 does not apply: .* spectral norm [1-9]\S+ for theta\[0\]"):
        BY_NAME[name].of(MODELS[model], 40)


@pytest.mark.parametrize(("name", "model", "length"), EVERYTHING)
def test_calibration(bound: InfluenceBound, name: str) -> None:
    for query in (pf.Count(0), pf.Histogram(), pf.Histogram(relative=False)):
        calibration = bound.calibrate(query, 1.0)
        assert 0 < calibration.scale < math.inf
        assert calibration.scale == calibration.noise_multiplier * calibration.linear.lipschitz
        close = 1e-5 if name == "propagation" else 1e-9
        assert 1 - close <= calibration.prove_leakage() <= calibration.epsilon == 1.0
        assert calibration.prove_leakage() == bound.leakage(calibration.record_loss)
        assert calibration.mechanism == name
        assert calibration.records == sum(chain.records for chain in bound.length)
        assert calibration.witness.length in {chain.steps for chain in bound.length}
        assert calibration.composes


@pytest.mark.parametrize(("name", "model", "length"), EVERYTHING)
def test_leakage_of_every_shape(bound: InfluenceBound) -> None:
    k = bound.theta.k
    steps = [chain.steps for chain in bound.length]
    matrix = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / 20
    shapes = {
        "number": [0.3] * len(steps),
        "profile": [np.linspace(0, 0.5, t) for t in steps],
        "matrix": [matrix] * len(steps),
        "matrices": [np.linspace(0, 1, t)[:, None, None] * matrix for t in steps],
        "mixed": [0.1, *[np.linspace(0, 0.5, t) for t in steps[1:]]],
    }
    for losses in shapes.values():
        given = losses[0] if len(steps) == 1 else losses
        leakage = bound.leakage(given)
        largest = max(float(np.max(loss)) for loss in losses)
        assert largest * (1 - 1e-12) <= leakage < math.inf
    assert bound.leakage(0.3) == pytest.approx(bound.leakage([0.3] * len(steps) if len(steps) > 1 else 0.3))
    assert bound.leakage(matrix) <= bound.leakage(float(matrix.max())) * (1 + 1e-6)


@pytest.mark.parametrize(("name", "model", "length"), EVERYTHING)
def test_no_loss_leaks_nothing(bound: InfluenceBound) -> None:
    k, t = bound.theta.k, bound.length[0].steps
    zeros = [0, 0.0, np.zeros((k, k))] + [np.zeros(t), np.zeros((t, k, k))] * (len(bound.length) == 1)
    for nothing in zeros:
        assert bound.leakage(nothing) == 0.0


BAD_LOSSES: dict[str, Any] = {
    "negative": -0.1,
    "nan": math.nan,
    "inf": math.inf,
    "text": "much",
    "nothing": None,
    "negative record": [0.1] * 39 + [-1e-300],
    "nan record": [0.1] * 39 + [math.nan],
    "too short": [0.1] * 39,
    "too long": [0.1] * 41,
    "wrong matrix": np.zeros((4, 4)),
    "not square": np.zeros((40, 2)),
    "wrong matrices": np.zeros((39, 2, 2)),
    "four dimensions": np.zeros((40, 2, 2, 1)),
    "ragged": [[0.1], [0.1, 0.2]],
    "empty": [],
}


@pytest.mark.parametrize("loss", list(BAD_LOSSES))
@pytest.mark.parametrize("make", ON_CHAINS, ids=lambda make: make.name)
def test_bad_losses_are_refused(make: type[InfluenceBound], loss: str) -> None:
    bound = make(MODELS["independent"], 40)
    with pytest.raises(ParameterError, match="record_loss"):
        bound.leakage(BAD_LOSSES[loss])


@pytest.mark.parametrize("losses", [[0.1], [0.1, 0.2, 0.3], [0.1, -0.2], [[0.1] * 5, [0.1] * 4], np.zeros(5)], ids=str)
@pytest.mark.parametrize("make", ON_CHAINS, ids=lambda make: make.name)
def test_bad_losses_of_several_chains_are_refused(make: type[InfluenceBound], losses: Any) -> None:
    with pytest.raises(ParameterError, match="record_loss"):
        make(MODELS["independent"], [5, 3]).leakage(losses)


@pytest.mark.parametrize(
    "epsilon", [0, -1, math.nan, math.inf, -math.inf, "x", None, [1.0, 2.0], 10**400], ids=lambda e: str(e)[:9]
)
@pytest.mark.parametrize("make", COVER_CHAINS, ids=lambda make: make.name)
def test_bad_epsilon_is_refused(make: type[Mechanism], epsilon: Any) -> None:
    with pytest.raises(ParameterError, match=r"^epsilon is (missing|.*, expected a positive)"):
        make(MODELS["independent"], 40).calibrate(pf.Count(0), epsilon)


@pytest.mark.parametrize("length", [0, -3, 2.5, math.nan, "40", None, True, [], [40, 0], [40, "x"]], ids=str)
@pytest.mark.parametrize("make", MECHANISMS, ids=lambda make: make.name)
def test_bad_length_is_refused(make: type[Mechanism], length: Any) -> None:
    with pytest.raises(ParameterError, match="length"):
        make.of(MODELS["independent"], length)


@pytest.mark.parametrize("theta", [None, "chain", 3, [], [P], [pf.MarkovChain(P), pf.MarkovChain(THREE)]], ids=repr)
@pytest.mark.parametrize("make", [m for m in MECHANISMS if m.name != "mqm-approx"], ids=lambda make: make.name)
def test_bad_theta_is_refused(make: type[Mechanism], theta: Any) -> None:
    with pytest.raises(pf.PufferfishError, match="theta"):
        make.of(theta, 40)


@pytest.mark.parametrize("make", COVER_CHAINS, ids=lambda make: make.name)
def test_a_query_about_unknown_states_is_refused(make: type[Mechanism]) -> None:
    with pytest.raises(pf.PufferfishError, match="the model has no such state"):
        make(MODELS["independent"], 40).calibrate(pf.Count("running"), 1.0)


@pytest.mark.parametrize("make", MECHANISMS, ids=lambda make: make.name)
def test_a_mechanism_is_written_in_one_line(make: type[Mechanism]) -> None:
    theta: Any = pf.MarkovChain(COIN)
    if make.supports(as_theta(theta)) is not None:
        theta = pf.BayesianNetwork({"v": pf.CPT(["a", "b"], [0.5, 0.5])})
    written = repr(make.of(theta, 7))
    assert written.startswith(f"{make.__name__}(")
    assert "<7 records>" in written
    assert "\n" not in written
    assert " at 0x" not in written
    assert len(written) < 200


def test_names_are_distinct() -> None:
    assert len({make.name for make in MECHANISMS}) == len({make.title for make in MECHANISMS}) == len(MECHANISMS)


@pytest.mark.parametrize("number", ["x", 0, -1, math.nan, 3.0, None], ids=repr)
@pytest.mark.parametrize("name", ["pi_min", "eigengap"])
def test_mixing_numbers_out_of_range_are_refused(name: str, number: Any) -> None:
    with pytest.raises(ParameterError, match=name):
        pf.MQMApprox(length=40, **({"pi_min": 0.2, "eigengap": 0.5} | {name: number}))


@pytest.mark.parametrize("make", ON_CHAINS, ids=lambda make: make.name)
def test_unobserved_records_are_not_charged(make: type[InfluenceBound], slow: bool) -> None:
    """A chain with few observed records never needs more than group privacy of those."""
    if make.name in ("entry-dp", "gk16", "mqm-approx"):
        theta = MODELS["independent"]
    else:
        theta = pf.MarkovChain([[0.999, 0.001], [0.001, 0.999]])
    found = make(theta, pf.ChainLength(steps=1000 if slow else 250, records=12)).calibrate(pf.Count(0), 1.0)
    assert found.scale <= 12 * (1 + 1e-12)


@pytest.mark.parametrize("make", COVER_CHAINS, ids=lambda make: make.name)
def test_what_a_bound_proves_cannot_be_swapped(make: type[Mechanism]) -> None:
    bound = make(MODELS["independent"], 40)
    for name, other in (("theta", pf.MarkovChain(P)), ("length", (pf.ChainLength(1, 1),))):
        with pytest.raises(AttributeError):
            setattr(bound, name, other)


def test_an_epsilon_that_rounding_decides_is_refused_before_anything_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It took 45 s of ever larger noise before; LEAST_EPSILON itself is answered."""
    chain, ledger = pf.MarkovChain(P), pf.Ledger(pf.LeakagePropagation(pf.MarkovChain(P), 20), 1.0)
    bound = pf.GroupDP(chain, 20)
    assert bound.calibrate(pf.Count(1), LEAST_EPSILON).scale < np.inf
    for name in ("leakage", "candidate_scales"):
        monkeypatch.setattr(bound._engine, name, lambda *_: pytest.fail("something is computed"))
    for epsilon in (0.99 * LEAST_EPSILON, 1e-15, 1e-300, 5e-324):
        for mechanism in (bound, pf.Wasserstein(chain, 20), pf.ExactLaplace(chain, 20)):
            with pytest.raises(ParameterError, match=r"expected at least 0\.00001"):
                mechanism.calibrate(pf.Count(1), epsilon)
        with pytest.raises(ParameterError, match=r"of at least 0\.00001"):
            pf.Ledger(ledger.bound, epsilon)
    ledger.spend(0.01)
    with pytest.raises(BudgetExceeded, match="too little for any release"):
        ledger.calibrate(pf.Count(1), up_to=math.nextafter(ledger.spent, 1))


def test_where_there_is_no_secret_that_is_said() -> None:
    certain = pf.MarkovChain([[1, 0], [0, 1]], [1, 0])
    with pytest.raises(pf.errors.ModelError, match="there is no secret"):
        pf.LeakagePropagation(certain, 20).calibrate(pf.Histogram(), epsilon=1e-5)
