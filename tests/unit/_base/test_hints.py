"""Misspelt names are answered with the name that was probably meant, wherever somebody writes one."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import pufferfish as pf
from pufferfish._base.words import nearest
from pufferfish.cli import main
from pufferfish.mechanisms import bound_of

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "light work"])
NET = pf.BayesianNetwork(
    {
        "smoker": pf.CPT(["no", "yes"], [0.8, 0.2]),
        "cough": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.6, 0.4]], ["smoker"]),
    }
)
TABLE = pl.DataFrame({"activity": ["rest", "light work", "rest"], "awake": [True, True, False]})


def bound(query: pf.queries.Query) -> object:
    return pf.GroupDP(CHAIN, 10).bind(query)


def test_capitals_spaces_and_hyphens_make_no_difference() -> None:
    known = ["light work", "REST", "mqm-exact"]
    for name, meant in (("Light_Work", 0), ("lightwork ", 0), ("Rest", 1), ("MQMExact", 2), ("mqm exct", 2)):
        assert nearest(name, known) == known[meant]
    assert nearest("asleep", known) is None
    assert nearest("", known) is None
    assert nearest("x", []) is None


CASES: dict[str, tuple[Callable[[], object], str]] = {
    "count": (lambda: bound(pf.Count("Rest")), "'rest'"),
    "frequency": (lambda: bound(pf.Frequency(["rest", "light-work"])), "'light work'"),
    "sum": (lambda: bound(pf.Sum({"rest": 0, "LightWork": 1})), "'light work'"),
    "mean": (lambda: bound(pf.Mean({"rset": 0, "*": 1})), "'rest'"),
    "node": (lambda: NET.marginal("Smoker"), "'smoker'"),
    "node of a query": (lambda: pf.GroupDP(NET).bind(pf.Marginals(["SMOKER"])), "'smoker'"),
    "secret": (lambda: pf.MarkovQuilt(NET, secrets=["smokr"]), "'smoker'"),
    "state of a secret": (
        lambda: pf.Wasserstein(CHAIN, 5, secrets=[(pf.RecordIs(0, "Rest"), pf.RecordIs(0, "light work"))]).calibrate(
            pf.Count("rest"), 1.0
        ),
        "'rest'",
    ),
    "column": (lambda: pf.read_sequences(TABLE, "Activity"), "'activity'"),
    "column of a filter": (lambda: pf.read_sequences(TABLE, "activity", where="Awake"), "'awake'"),
    "option": (lambda: pf.read_sequences(TABLE, "activity", missing="spilt"), "'split'"),  # type: ignore[arg-type]
    "state of a table": (
        lambda: pf.read_sequences(TABLE, "activity", states=["Rest", "light work"]),
        "'Rest'",
    ),
    "state of a database": (
        lambda: pf.release(["Rest"] * 3, pf.Count("rest"), pf.GroupDP(CHAIN, 3).calibrate(pf.Count("rest"), 1.0)),
        "'rest'",
    ),
    "mechanism": (lambda: bound_of("MQMExact", CHAIN, 5, {}), "'mqm-exact'"),
    "option of release": (
        lambda: pf.release([], pf.Count("rest"), pf.GroupDP(CHAIN, 3).calibrate(pf.Count("rest"), 1.0), leger=1),  # type: ignore[arg-type]
        "'ledger'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_in_python(case: str) -> None:
    act, meant = CASES[case]
    with pytest.raises(pf.PufferfishError, match=rf"Did you mean {meant}\?"):
        act()


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pf.write_model(pf.Model(theta=CHAIN), "chain.json")
    pf.write_model(pf.Model(theta=NET), "net.json")
    TABLE.write_csv("table.csv")
    release = [
        "release",
        "table.csv",
        "--state",
        "activity",
        "--model",
        "chain.json",
        "--epsilon",
        "1",
        "--output",
        "r",
    ]
    for arguments, meant in (
        ([*release, "--query", "Histgram"], "'histogram'"),
        ([*release, "--query", "marginals-count"], "'marginal-counts'"),
        ([*release, "--query", "count:Light Work"], "'light work'"),
        ([*release, "--query", "mean:REST=1,*=0"], "'rest'"),
        ([*release, "--mechanism", "MQMExact"], "'mqm-exact'"),
        ([*release, "--missing", "Unobserved"], "'unobserved'"),
        ([*release, "--where", "awke"], "'awake'"),
        (["compare", "net.json", "--columns", "Smoker", "--epsilon", "1"], "'smoker'"),
        (["compare", "net.json", "--secrets", "COUGH", "--epsilon", "1"], "'cough'"),
        (["compair", "net.json"], "'compare'"),
        (["ledger", "creat"], "'create'"),
    ):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 2, arguments
        assert len(result.stderr.splitlines()) == 1, result.stderr
        assert result.stderr.startswith("error: ")
        assert f"Did you mean {meant}" in result.stderr, result.stderr
    assert not Path("r").exists()


def test_queries_that_are_known_say_what_they_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pf.write_model(pf.Model(theta=CHAIN), "chain.json")
    for query, words in (
        ("count", "names no state: expected count:STATE"),
        ("mean", "expected mean:STATE=1,*=0"),
        ("histogram:rest", "count:rest counts some of them"),
        ("marginals", "is for networks"),
        ("mean:rest=1", "'*' with the value 0"),
        ("mean:rest=1,light work=1,*=0", "leave out '*'"),
    ):
        result = CliRunner().invoke(
            main, ["compare", "chain.json", "--length", "5", "--epsilon", "1", "--query", query]
        )
        assert result.exit_code == 2
        assert words in result.stderr
    result = CliRunner().invoke(
        main, ["compare", "chain.json", "--length", "5", "--epsilon", "1", "--query", "mean:rest=1,*=0"]
    )
    assert result.exit_code == 0


def test_the_rest_of_the_states_unless_a_state_has_that_name() -> None:
    states = ["sitting", "walking", "*"]
    assert pf.Sum({"sitting": 2, "*": 1}).bind(states[:2], 10).weights.tolist() == [[2, 1]]
    with pytest.raises(pf.QueryError, match="no value to state 'walking'"):
        pf.Sum({"sitting": 2, "*": 1}).bind(states, 10)


def test_release_says_how_noise_is_calibrated() -> None:
    data, query = pf.read_sequences(TABLE, "activity"), pf.Histogram()
    noise = pf.GroupDP(CHAIN, 3).calibrate(query, 1.0)
    first = r"calibrate the noise first, calibration = LeakagePropagation\(theta, length=data.length\).calibrate\("
    for act, words in (
        (lambda: pf.release(data, query, epsilon=1.0), f"has no option epsilon.*{first}"),
        (lambda: pf.release(data, query, mechanism="mqm-exact"), f"has no option mechanism.*{first}"),
        (lambda: pf.release(data, query, noise, epsilon=1.0), "has no option epsilon"),
        (lambda: pf.release(data, query), f"the calibration is missing: {first}"),
        (lambda: pf.release(data, query, 1.0), f"the calibration is 1.0: {first}"),
        (lambda: pf.release(data, noise, query), r"in this order: release\(data, query, noise\)"),
        (lambda: pf.release(query, data, noise), "the data first, but this is a query"),
        (lambda: pf.release("steps.csv", query, noise), "data is 'steps.csv', expected a table read by read_sequences"),
        (lambda: pf.release(TABLE, query, noise), "data is of the type DataFrame"),
        (lambda: pf.release(data, "histogram", noise), "query is 'histogram', expected one such as"),
    ):
        with pytest.raises(pf.ParameterError, match=words):
            act()


def test_states_with_commas_can_be_asked_for_and_are_listed_as_they_are_asked(tmp_path: Path) -> None:
    """A list for a message is one that --query takes; a state may hold a comma, and an equals sign too."""
    states = ["home", "ward, general", ">=100"]
    chain = pf.MarkovChain([[0.8, 0.1, 0.1]] * 3, states=states)
    model = tmp_path / "model.json"
    pf.write_model(pf.Model(theta=pf.ChainClass((chain,), origin="stated")), model)
    asked = ["compare", str(model), "--length", "10", "--epsilon", "1", "--query"]
    refused = CliRunner().invoke(main, [*asked, "count:ward, general"])
    assert refused.exit_code == 2
    assert 'no such state. States: home, "ward, general", >=100' in refused.stderr
    for query in ('count:"ward, general",home', 'mean:"ward, general"=1,>=100=170,*=0', 'mean:"ward, general=1",*=0'):
        found = CliRunner().invoke(main, [*asked, query])
        assert found.exit_code == 0, found.output
    for query in ('count:"ward, general', 'count:"ward, general"x,home'):
        found = CliRunner().invoke(main, [*asked, query])
        assert found.exit_code == 2
        assert "is not a list: put a part with a comma in quotes" in found.stderr
