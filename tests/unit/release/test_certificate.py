"""Certificates: what the maker finds is proved by the checker, which runs alone."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.release import certificate as maker
from pufferfish.release.checker import check as checker
from pufferfish.release.record import encoded

CHECKER = Path(__file__).parents[3] / "certificate" / "check.py"
FILES = ("check.py", "check_networks.py", "check_more.py")
STATES = ["a", "b", "c"]
TWO = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=STATES[:2])
THREE = pf.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]], states=STATES)
OTHER = pf.MarkovChain([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]], states=STATES)
STAYS = pf.StaysChain([[0, 1], [1, 0]], [[(0.8, 0.5), (0.2, 0.98)], [(1.0, 0.7)]], states=STATES[:2])
BETWEEN = pf.IntervalChain([[0.6, 0.2], [0.2, 0.5]], [[0.8, 0.4], [0.5, 0.8]])
FORGETS = pf.ForgettingClass([8, 20], [0.43, 0.9], STATES)
SECOND = pf.HigherOrderChain([[[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.2, 0.8]]], states=STATES[:2])
RARE = [[[0.9, 0.1], [1, 0]], [[0.6, 0.4], [0.5, 0.5]]]
CLOCK = [[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.3, 0.7]]]
DIES = pf.MarkovChain([[0.99, 0.01, 0], [0.01, 0.99, 0], [0.5, 0.5, 0]], "any", states=STATES)
CHAINS: dict[str, tuple[Any, int]] = {
    "two states": (TWO, 1000),
    "three states": (THREE, 1000),
    "few records": (THREE, 4),
    "a given law": (pf.MarkovChain(TWO.transition_matrix, [0.3, 0.7], states=STATES[:2]), 1000),
    "a certain start": (pf.MarkovChain(TWO.transition_matrix, [1, 0], states=STATES[:2]), 1000),
    "few records of a given law": (pf.MarkovChain(TWO.transition_matrix, [1, 0], states=STATES[:2]), 3),
    "any law": (pf.MarkovChain(TWO.transition_matrix, "any", states=STATES[:2]), 1000),
    "a state that dies": (DIES, 1000),
    "a periodic chain": (pf.MarkovChain([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]], states=STATES), 1000),
    "independent": (pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=STATES[:2]), 1000),
    "several members": ([THREE, OTHER], 1000),
    "kinds of stay": (STAYS, 1000),
    "kinds of stay, any law": (pf.StaysChain(STAYS.exits, STAYS.stays, "any", states=STATES[:2]), 1000),
    "a clock": (pf.PeriodicChain(CLOCK, states=STATES[:2]), 1000),
    "few records of a clock": (pf.PeriodicChain(CLOCK, states=STATES[:2]), 2),
    "a clock, any law": (pf.PeriodicChain(CLOCK, "any", states=STATES[:2]), 1000),
    "hours": (pf.PeriodicChain(CLOCK * 12, clock="hour", step="1h", states=STATES[:2]), 1000),
    "order two": (SECOND, 1000),
    "order two, some pairs never": (pf.HigherOrderChain(RARE, states=STATES[:2]), 200),
    "order two, any law": (pf.HigherOrderChain(SECOND.tensor, "any", states=STATES[:2]), 20),
    "forgetting": (FORGETS, 10_000),
    "mixed": ([FORGETS, THREE], 10_000),
}  # fmt: skip
PRICES = {
    "never": 2e-4,
    "records of a clock": 0.5,
    "any law": 0.02,
    "state that dies": 0.02,
    "periodic": 1.1,
}
"""More noise where whole numbers, or the checker's rule, prove less than the program."""


def price_of(name: str) -> float:
    return next((price for part, price in PRICES.items() if part in name), 5e-5)


def files_of(certificate: Any, folder: Path, data: list[str]) -> list[str]:
    """Write a release with certified noise, and its proof."""
    noise = certificate.calibration
    release = pf.release(data, noise.query, noise)
    release.to_json(folder / "release.json")
    certificate.to_json(folder / "proof.json")
    return [str(folder / "release.json"), str(folder / "proof.json")]


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize(
    "query", [pf.Histogram(), pf.Count("b"), pf.Transitions(), pf.Mean([0, 1.5, 4]), pf.CDF()], ids=lambda q: q.kind
)
def test_what_is_certified_is_proved_by_the_checker(query: Any, name: str) -> None:
    theta, length = CHAINS[name]
    bound = pf.LeakagePropagation(theta, length)
    if query.kind == "mean" and len(bound.theta.states) == 2:
        query = pf.Mean([0, 1.5])
    noise = bound.calibrate(query, 1.0)
    certificate = pf.certify(noise)
    assert certificate.calibration is not None
    assert 0 <= certificate.price <= price_of(name)
    assert certificate.calibration.unit_scale >= noise.unit_scale


@pytest.mark.parametrize("name", ["two states", "three states", "kinds of stay", "order two", "forgetting"])
@pytest.mark.parametrize("hidden", [{"protect": 2}, {"protect": 60}, {"protect": "subject"}, {"within": [("a", "b")]}])
@pytest.mark.parametrize("query", [pf.Histogram(), pf.Transitions()], ids=lambda q: q.kind)
def test_what_is_hidden(query: Any, hidden: dict[str, Any], name: str) -> None:
    theta, length = CHAINS[name]
    noise = pf.LeakagePropagation(theta, length).calibrate(query, 1.0, **hidden)
    certificate = pf.certify(noise)
    assert 0 <= certificate.price <= (0.05 if "stay" in name or "within" in hidden else 5e-5)


def test_the_checker_stands_alone(tmp_path: Path) -> None:
    """It runs by itself, in an empty folder, and says what it proved; with more ε than is proved it does not."""
    noise = pf.LeakagePropagation(STAYS, 100).calibrate(pf.Histogram(), 1.0)
    (tmp_path / "files").mkdir()
    files = files_of(pf.certify(noise), tmp_path / "files", ["a", "b"] * 50)
    run = [sys.executable, "-I", "-S", str(CHECKER)]
    found = subprocess.run([*run, *files], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.startswith(
        "PROVED: this release of Histogram, by itself, is at most e^1 times as likely\nif any"
    )
    record = json.loads(Path(files[0]).read_text())
    record["epsilon"] = 0.999
    Path(files[0]).write_text(json.dumps(record))
    found = subprocess.run([*run, *files], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (1, "NOT PROVED: theta[0]: more than ε leaks\n")


@pytest.mark.parametrize("files", [[], ["release.json"]])
@pytest.mark.parametrize("program", FILES)
def test_called_wrongly_it_says_how(program: str, files: list[str]) -> None:
    run = [sys.executable, "-I", "-S", str(CHECKER.with_name(program)), *files]
    found = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (2, "")
    assert found.stdout.startswith("usage: python check.py RELEASE PROOF [MODEL]\ntotals: ")


def test_called_with_too_many_files_it_says_how() -> None:
    run = [sys.executable, "-I", "-S", str(CHECKER), "release.json", "proof.json", "model.json", "more.json"]
    found = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr, found.stdout[:6]) == (2, "", "usage:")


def test_a_file_it_needs_is_named(tmp_path: Path) -> None:
    for name in ("check.py", "check_more.py"):
        (tmp_path / name).write_bytes(CHECKER.with_name(name).read_bytes())
    run = [sys.executable, "-I", "-S", str(tmp_path / "check_more.py"), "release.json", "proof.json"]
    found = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (2, "")
    assert found.stdout.startswith("check_more.py needs check_networks.py beside it")


def test_the_copies_in_the_package() -> None:
    for name in FILES:
        assert Path(checker.__file__).with_name(name).read_bytes() == CHECKER.with_name(name).read_bytes()


def test_it_runs_on_python_3_9_and_imports_nothing_else() -> None:
    """Its syntax is that of 3.9, zip has no ``strict`` there, and all that is imported comes with Python."""
    for name in FILES:
        tree = ast.parse(CHECKER.with_name(name).read_text(), feature_version=(3, 9))
        assert not [call for call in ast.walk(tree) if isinstance(call, ast.keyword) and call.arg == "strict"]
        imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        modules = {getattr(node, "module", None) or node.names[0].name for node in imported}
        assert modules <= {*sys.stdlib_module_names, "check", "check_networks"}, modules


@pytest.mark.parametrize("seed", [25, 28, 29, 31])
def test_named_moves_make_proofs_sharp(seed: int) -> None:
    """The checker's own moves take 1 to 3% more noise for these chains of six and eight states."""
    rng, k = np.random.default_rng(seed), [4, 6, 8][seed % 3]
    noise = pf.LeakagePropagation(pf.MarkovChain(rng.dirichlet(np.full(k, 0.7), k)), 1000)
    calibration = noise.calibrate(pf.Histogram(), 1.0)
    certificate = pf.certify(calibration)
    assert certificate.price <= 2e-5
    assert "moves" in json.loads(certificate.proof)["members"][0]
    release = pf.release([str(n % k) for n in range(1000)], pf.Histogram(), certificate.calibration)
    assert "moves" in pf.certify(release).proof


RARER = {
    "any law": (pf.Histogram(), "Markov chains that are damaged, or not covered; check_more.py covers more"),
    "few records": (pf.CDF(), "a query that is not covered: CDF; check_more.py covers more"),
    "order two": (pf.Histogram(), "Markov chains of higher order that are damaged, or not covered; check_more.py"),
}


@pytest.mark.parametrize("name", RARER)
def test_what_is_rarer_needs_the_second_file(name: str, tmp_path: Path) -> None:
    """The first one says so; the second one, in the same folder, proves it, whatever the order of the files."""
    (theta, length), (query, says) = CHAINS[name], RARER[name]
    noise = pf.LeakagePropagation(theta, length).calibrate(query, 1.0)
    data = (["a", "b"] * length)[:length]
    files = files_of(pf.certify(noise), tmp_path, data)
    found = []
    for program in (CHECKER, CHECKER.with_name("check_more.py")):
        run = [sys.executable, "-I", "-S", str(program), *(files if program == CHECKER else files[::-1])]
        found.append(subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False).stdout)
    assert says in found[0]
    assert found[1].startswith("PROVED: this release of")


@pytest.mark.parametrize("name", ["three states", "kinds of stay", "a clock", "any law", "order two", "forgetting"])
@pytest.mark.parametrize("query", [pf.Mean([0, 1.5, 4]), pf.Transitions()], ids=lambda q: q.kind)
def test_no_value_is_ever_a_float(name: str, query: Any) -> None:
    theta, length = CHAINS[name]
    if len(pf.LeakagePropagation(theta, length).theta.states) == 2 and query.kind == "mean":
        query = pf.Mean([0, 1.5])
    made = pf.certify(pf.LeakagePropagation(theta, length).calibrate(query, 1.0))
    assert made.calibration is not None
    record = encoded(maker.record_of_noise(made.calibration))

    def look(frame: Any, event: str, value: Any) -> Any:
        if Path(frame.f_code.co_filename).name not in FILES:
            return None
        values = [*frame.f_locals.values(), value if event == "return" else None]
        assert not any(isinstance(one, float) for one in values), (frame.f_code.co_name, frame.f_lineno)
        return look

    sys.settrace(look)
    try:
        maker.check_texts(record, made.proof)
    finally:
        sys.settrace(None)


def test_what_no_bounds_prove_has_a_proof_too() -> None:
    """A state dies under a clock and any first law: nothing but the sum of all losses proves that."""
    rows = [[0.9, 0.1, 0], [0.2, 0.8, 0], [0.5, 0.5, 0]]
    noise = pf.LeakagePropagation(pf.PeriodicChain([rows, rows], "any"), 5).calibrate(pf.Histogram(), 1.0)
    assert pf.certify(noise).group_privacy


def test_noise_that_is_raised_to_group_privacy_is_said() -> None:
    """A clock of two phases has no bounds for two records alone: what is proved then hides both together."""
    theta, length = CHAINS["few records of a clock"]
    noise = pf.LeakagePropagation(theta, length).calibrate(pf.Histogram(), 1.0)
    made = pf.certify(noise)
    assert (made.group_privacy, made.price > 0.2) == (True, True)
    assert not pf.certify(pf.LeakagePropagation(TWO, 1000).calibrate(pf.Histogram(), 1.0)).group_privacy


def test_a_release_that_was_made() -> None:
    """Where the bound is the truth, as with two states, a release of any other day has a proof too."""
    noise = pf.LeakagePropagation(TWO, 100).calibrate(pf.Histogram(), 1.0)
    release = pf.release(["a", "b"] * 50, pf.Histogram(), noise)
    assert pf.certify(release).price == 0
    assert pf.certify(release).calibration is None


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: pf.LeakagePropagation(BETWEEN, 50), "interval"),
        (lambda: pf.Wasserstein(pf.JointDistribution([["0", "1"], ["1", "1"]], [0.5, 0.5])), "no series of records"),
    ],
)  # fmt: skip
def test_what_is_not_covered_is_said(make: Any, says: str) -> None:
    with pytest.raises(NotApplicableError, match="there is no certificate") as error:
        pf.certify(make().calibrate(pf.Count("1"), 1.0))
    assert says in str(error.value)


def test_only_noise_and_releases_are_certified() -> None:
    with pytest.raises(ParameterError, match="expected a Calibration, a Release or a list"):
        pf.certify(1.0)  # pyrefly: ignore[bad-argument-type]


def test_a_query_of_a_users_own_is_not_covered() -> None:
    class Steps(pf.Count):
        """A query that no file can name."""

    noise = pf.LeakagePropagation(TWO, 50).calibrate(Steps("a"), 1.0)
    with pytest.raises(NotApplicableError, match="a query of somebody's own is not covered"):
        pf.certify(noise)


@pytest.mark.slow
def test_many_states_take_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen states whose stays last fifty records: what is told settles only after hundreds of records."""
    step = np.eye(16) * 0.98 + np.roll(np.eye(16), 1, axis=1) * 0.012 + np.roll(np.eye(16), -1, axis=1) * 0.008
    monkeypatch.setattr(maker, "_MOST_ROUNDS", 40)
    noise = pf.LeakagePropagation(pf.MarkovChain(step), 100_000).calibrate(pf.Histogram(), 1.0)
    assert 0 <= pf.certify(noise).price < 0.01


def test_so_large_an_epsilon_that_no_double_holds_its_power() -> None:
    noise = pf.LeakagePropagation(THREE, 50).calibrate(pf.Count("a"), 300.0)
    assert 0 <= pf.certify(noise).price < 0.002
