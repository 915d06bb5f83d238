"""Releases under models other than chains, of one database, of windows: what goes out, and what is refused."""

import importlib
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pufferfish as pf
from pufferfish.errors import DataError, ParameterError, ReleaseRefused

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
FLU = pf.Cliques([[0.1, 0.15, 0.5, 0.15, 0.1], [0.5, 0.3, 0.2]], states=["healthy", "flu"])
FAMILY = pf.BayesianNetwork(
    {
        "mother": pf.CPT(["no", "yes"], [0.8, 0.2]),
        "son": pf.CPT(["no", "yes", "perhaps"], [[0.8, 0.1, 0.1], [0.3, 0.6, 0.1]], ["mother"]),
    }
)
JOINT = pf.JointDistribution(
    [[0, 0, 0], [2, 1, 0], [1, 0, 1], [1, 1, 2]], [0.4, 0.3, 0.2, 0.1], variables=["a", "b", "c"]
)
LARGEST = pf.Function(lambda row: max(int(v) for v in row.values()), "largest")


@pytest.fixture(autouse=True)
def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let releases be exact, so that a test sees what was evaluated."""
    module = importlib.import_module("pufferfish.release.draw")
    monkeypatch.setattr(module, "discrete_laplace_noise", lambda exact, scale, *, lipschitz: lambda: list(exact))


def households(infected: dict[str, list[int]]) -> pf.Sequences:
    rows = [(h, "flu" if v else "healthy") for h, values in infected.items() for v in values]
    frame = pl.DataFrame(rows, schema=["household", "status"], orient="row")
    return pf.read_sequences(frame, "status", subject="household", states=FLU.states)


DATABASES: dict[str, tuple[Any, Any, Any, Any, list[float]]] = {
    "chain as list": (["rest", "active", "active"], pf.Count("active"), None, pf.ExactLaplace(CHAIN, 3), [2]),
    "chain as dict": (
        {2: "rest", 0: "active", 1: "rest"},
        pf.Weighted(pf.Count("active"), [5, 3, 1]),
        None,
        pf.ExactLaplace(CHAIN, 3),
        [5],
    ),
    "window of a list": (
        ["active", "rest", "active", "active"],
        pf.Window(pf.Count("active"), 1, 3),
        None,
        pf.ExactLaplace(CHAIN, 4),
        [1],
    ),
    "network": ({"son": "yes", "mother": "no"}, pf.Count("yes"), None, pf.ExactLaplace(FAMILY), [1]),
    "joint": ({"a": 1, "b": 0, "c": 1}, LARGEST, None, pf.ExactLaplace(JOINT), [1]),
    "joint, every variable": ([1, 0, 1], pf.Marginals(), None, pf.Wasserstein(JOINT), [0, 0, 1, 1, 0, 0, 0, 0, 1]),
    "joint, two variables": ([1, 0, 1], pf.Marginals(["c", "a"], False), None, pf.GroupDP(JOINT), [0, 0, 1, 0, 0, 1]),
    "joint, one variable": ({"a": 1, "b": 0, "c": 1}, pf.Marginals(["b"]), None, pf.Wasserstein(JOINT), [1, 0, 0]),
    "cliques": (
        ["flu", "flu", "healthy", "healthy", "flu", "healthy"],
        pf.Count("flu"),
        None,
        pf.ExactLaplace(FLU),
        [3],
    ),
}


@pytest.mark.parametrize("case", DATABASES)
def test_one_database(case: str, tmp_path: Path) -> None:
    data, query, _, mechanism, exact = DATABASES[case]
    calibration = mechanism.calibrate(query, 1.0)
    found = pf.release(data, query, calibration)
    assert found.values == exact
    assert found.data.base is None
    assert found.data.records == sum(c.records for c in calibration.length)
    found.to_json(tmp_path / "release.json")
    again = pf.Release.from_json(tmp_path / "release.json")
    assert again == found
    assert json.loads((tmp_path / "release.json").read_text())["theta"]["kind"] == calibration.theta.kind
    assert ("this one query" in found.not_promised[-1]) == (not calibration.composes)
    assert pf.verify(found).holds
    found.plot(tmp_path / "release.png")


def test_a_table_of_households(tmp_path: Path) -> None:
    data = households({"A": [1, 0], "B": [0, 1, 1, 0]})
    query = pf.Frequency("flu")
    for mechanism in (pf.Wasserstein(FLU), pf.ExactLaplace(FLU), pf.GroupDP(FLU)):
        found = pf.release(data, query, mechanism.calibrate(query, 1.0))
        assert found.values == [0.5]
        assert "column 'household'" in found.assumptions[1]
        assert not any("follow each other" in sentence for sentence in found.assumptions)
    for other in ({"A": [1, 0]}, {"A": [1, 0, 1], "B": [0, 1, 1]}, {"A": [1], "B": [0, 1, 1, 0], "C": [1]}):
        with pytest.raises(ReleaseRefused):
            pf.release(households(other), query, pf.ExactLaplace(FLU).calibrate(query, 1.0))


def test_laws_hold_for_exactly_their_records(sequences_of: Any) -> None:
    query = pf.Count("active")
    shorter = sequences_of([[20, 10]])
    bound, law = pf.MQMExact(CHAIN, 40), pf.Wasserstein(CHAIN, 40)
    assert pf.release(shorter, query, bound.calibrate(query, 1.0)).epsilon == 1.0
    with pytest.raises(ReleaseRefused, match="exactly 40 records"):
        pf.release(shorter, query, law.calibrate(query, 1.0))
    assert pf.release(shorter, query, pf.Wasserstein(CHAIN, 30).calibrate(query, 1.0)).values == [10]


def test_a_window_of_a_table(sequences_of: Any) -> None:
    query = pf.Window(pf.Frequency("active"), 30, 60)
    data = sequences_of([[20, 10]])
    for mechanism in (pf.ExactLaplace(CHAIN, 100), pf.LeakagePropagation(CHAIN, 100)):
        found = pf.release(data, query, mechanism.calibrate(query, 1.0))
        assert found.values == pytest.approx([1 / 3])
        assert found.query.description.endswith("of records 30 to 59")
    with pytest.raises(ReleaseRefused, match="window of 30 records"):
        pf.release(sequences_of([[20, 11]]), query, pf.ExactLaplace(CHAIN, 100).calibrate(query, 1.0))
    weighted = pf.Weighted(pf.Count("active"), [1, 2, 3])
    with pytest.raises(ReleaseRefused, match="list of states"):
        pf.release(sequences_of([[2, 1]]), weighted, pf.ExactLaplace(CHAIN, 3).calibrate(weighted, 1.0))


def test_secrets_and_delta_are_in_the_promise() -> None:
    pair = (pf.CountIs("flu", at_least=3), pf.CountIs("flu", at_most=2))
    data = ["flu", "flu", "healthy", "healthy", "flu", "healthy"]
    calibration = pf.ApproximateWasserstein(FLU, delta=1e-3, secrets=[pair]).calibrate(pf.Count("flu"), 1.0)
    found = pf.release(data, pf.Count("flu"), calibration)
    assert found.delta == 1e-3
    assert "(at least 3 records are flu) or (at most 2 records are flu)" in found.promise
    assert "has at most e^1 ≈ 2.718 times the probability, plus 0.001," in found.promise
    assert found.mechanism.secrets == [(str(pair[0]), str(pair[1]))]
    assert "other than the secrets" in found.not_promised[1]


WRONG: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "too few": (["flu"], FLU, DataError, "Θ has 6"),
    "too many": (["flu"] * 7, FLU, DataError, "Θ has 6"),
    "unknown state": (["flu"] * 5 + ["cold"], FLU, DataError, "has the state 'cold'"),
    "unknown record": ({"mother": "no", "aunt": "yes"}, FAMILY, DataError, "mother, son"),
    "state of another node": ({"mother": "perhaps", "son": "yes"}, FAMILY, DataError, "no, yes$"),
    "text": ("flu", FLU, ParameterError, "data is 'flu', expected a table"),
    "a number": (3, FLU, ParameterError, "data is 3, expected a table"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_database_that_does_not_fit_is_refused(case: str) -> None:
    data, theta, error, match = WRONG[case]
    query = pf.Count("flu" if theta is FLU else "yes")
    with pytest.raises(error, match=match):
        pf.release(data, query, pf.ExactLaplace(theta).calibrate(query, 1.0))


def test_a_table_under_a_model_of_named_records_is_refused() -> None:
    data = households({"A": [1, 0]})
    calibration = pf.ExactLaplace(JOINT).calibrate(pf.Count(1), 1.0)
    with pytest.raises(ReleaseRefused, match="dict from records to states"):
        pf.release(data, pf.Count(1), calibration)


def test_several_chains_do_not_come_as_a_list() -> None:
    calibration = pf.ExactLaplace(CHAIN, [2, 2]).calibrate(pf.Count("active"), 1.0)
    with pytest.raises(DataError, match="read_sequences"):
        pf.release(["rest"] * 4, pf.Count("active"), calibration)


def test_what_a_function_can_be_is_not_known() -> None:
    calibration = pf.ExactLaplace(JOINT).calibrate(LARGEST, 1.0)
    with pytest.raises(ParameterError, match="postprocess"):
        pf.release({"a": 1, "b": 0, "c": 1}, LARGEST, calibration, postprocess="valid")
    ledger = pf.Ledger(pf.LeakagePropagation(CHAIN, 3), 1.0)
    calibration = pf.ExactLaplace(CHAIN, 3).calibrate(pf.Count("active"), 1.0)
    with pytest.raises(ParameterError, match="a ledger needs a table"):
        pf.release(["rest"] * 3, pf.Count("active"), calibration, ledger=ledger)


def test_secrets_of_given_laws_are_what_is_promised() -> None:
    laws = {"outbreak": {3: 0.5, 4: 0.5}, "no outbreak": {0: 0.5, 1: 0.25, 2: 0.25}}
    theta = pf.GivenLaws(laws, records=4, states=["healthy", "sick"], query=pf.Count("sick"))
    calibration = pf.Wasserstein(theta).calibrate(pf.Count("sick"), 1.0)
    found = pf.release(["sick"] * 4, pf.Count("sick"), calibration)
    assert "(outbreak) or (no outbreak)" in found.promise
    assert "any one record" not in found.promise
    with pytest.raises(pf.PufferfishError, match="are those of"):
        pf.Wasserstein(theta).calibrate(pf.Count("healthy"), 1.0)
    with pytest.raises(pf.PufferfishError, match="query is missing"):
        pf.GivenLaws(laws, records=4, states=["healthy", "sick"])


def test_databases_of_joint_distributions_in_another_order_are_refused() -> None:
    one, other = (
        pf.JointDistribution([[0, 0], [1, 0]], [0.5, 0.5], variables=names, states=[0, 1])
        for names in (["A", "B"], ["B", "A"])
    )
    with pytest.raises(pf.PufferfishError, match="in the same order"):
        pf.Wasserstein([one, other])


def test_secrets_that_name_a_chain_or_clique_do_not_meet_a_table(sequences_of: Any) -> None:
    pair = (pf.RecordIs((1, 1), "active"), pf.RecordIs((1, 1), "rest"))
    calibration = pf.Wasserstein(CHAIN, [21, 3], secrets=[pair]).calibrate(pf.Count("active"), 1.0)
    with pytest.raises(ReleaseRefused, match="does not say which subject"):
        pf.release(sequences_of([[2, 1], [15, 6]]), pf.Count("active"), calibration)
    pair = (pf.RecordIs((0, 0), "flu"), pf.RecordIs((0, 0), "healthy"))
    calibration = pf.Wasserstein(FLU, secrets=[pair]).calibrate(pf.Count("flu"), 1.0)
    with pytest.raises(ReleaseRefused, match="does not say which subject"):
        pf.release(households({"A": [1, 0], "B": [0, 1, 1, 0]}), pf.Count("flu"), calibration)
    assert pf.release(["flu"] * 6, pf.Count("flu"), calibration).values == [6]


def test_parts_of_one_household_are_no_cliques() -> None:
    frame = pl.DataFrame({"h": ["A"] * 4, "t": [0, 1, 100, 101], "s": ["flu", "healthy"] * 2})
    theta = pf.Cliques([[0.4, 0.2, 0.4]] * 2, states=["healthy", "flu"])
    data = pf.read_sequences(frame, "s", subject="h", time="t", max_gap=5, gaps="independent", states=theta.states)
    with pytest.raises(ReleaseRefused, match="cuts subjects"):
        pf.release(data, pf.Count("flu"), pf.ExactLaplace(theta).calibrate(pf.Count("flu"), 1.0))


def test_what_is_kept_is_not_taken_for_something_else() -> None:
    mechanism = pf.Wasserstein(CHAIN, 5)
    query = pf.Sum({"rest": 0, "active": 1})
    before = mechanism.distance(query)
    assert mechanism.distance(pf.Sum({"rest": 0, "active": 10})) == 10 * before
    with pytest.raises(AttributeError):
        mechanism.secrets = None  # type: ignore[misc]
    joint = pf.JointDistribution([[0, 0], [1, 1]], [0.5, 0.5])
    spoil = pf.Function(lambda row: (row.pop(0) and 0) or 1)
    for _ in range(2):
        with pytest.raises(pf.PufferfishError, match="the same whichever"):
            pf.Wasserstein(joint).calibrate(spoil, 1.0)
    assert joint.databases[1] == {0: "1", 1: "1"}


def test_secrets_are_joined_by_the_right_sign() -> None:
    with pytest.raises(ParameterError, match="join secrets with &"):
        pf.RecordIs(0, "flu") and pf.RecordIs(1, "flu")
