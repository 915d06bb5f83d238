"""The two checkers of certificates, in Python and in JavaScript, say the same of honest, edited and forged files.

JavaScript runs in Node where that is, and on the site's page in Chromium where that and selenium are.
"""

import json
import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_certificate_forgeries import (
    CASES,
    RELEASES,
    SIX,
    STATES,
    THREE,
    disturbed,
    edited,
    honest,
    of_an_only_state_before,
    replaced,
)

import browsers
import pufferfish as pf
from certificate_files import SCRIPT, Texts, answers_of_node
from false_claims import claiming
from propagation_oracle import chain_law
from pufferfish.release import certificate
from pufferfish.release.checker import check as checker
from stretch_oracle import supremum_of_stretch

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "check.html"
ONE_IN = 61
"""Without ``--slow`` only so many of the edited files are checked."""
Run = Callable[[list[Texts]], list[dict[str, Any]]]


def in_node(files: list[Texts]) -> list[dict[str, Any]]:
    answers = answers_of_node(files)
    if answers is None:
        pytest.skip("JavaScript runs in Node: apt-get install nodejs")
    return answers


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Any]:
    yield from browsers.opened(tmp_path_factory)


@pytest.fixture(scope="module", params=["node", "browser"])
def run(request: pytest.FixtureRequest) -> Run:
    """The checker in JavaScript, of many files at once."""
    if request.param == "node":
        return in_node
    found = request.getfixturevalue("browser")
    found.get(PAGE.as_uri())
    found.set_script_timeout(600)
    each = "return arguments[0].map(([release, proof, model]) => pufferfish.check(release, proof, model))"
    return lambda files: found.execute_script(each, files)


def texts(release: Any, proof: Any, model: Any = None) -> Texts:
    release, proof = (
        part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in (release, proof)
    )
    return release, proof, model if model is None else json.dumps(model)


def accepted_in_python(files: Texts, folder: Path) -> bool:
    names = [folder / name for name, content in zip(("r", "p", "m"), files, strict=True) if content is not None]
    for name, content in zip(names, files, strict=False):
        name.write_text(content or "")
    try:
        checker.main(*map(str, names))
    except Exception:  # which it says as NOT PROVED
        return False
    return True


def agree(run: Run, files: list[Texts], folder: Path) -> list[bool]:
    """What both checkers say of each; they must say the same."""
    found = [answer["proved"] for answer in run(files)]
    for texts, proved in zip(files, found, strict=True):
        assert proved == accepted_in_python(texts, folder), texts
    return found


def test_the_copy_in_the_package() -> None:
    assert SCRIPT.read_bytes() == (Path(pf.__file__).parent / "_draw" / "check.js").read_bytes()


def test_the_page_loads_nothing_else() -> None:
    """It works from a folder; its policy lets nothing out."""
    text = PAGE.read_text()
    assert re.findall(r'(?:src|href)="([^"]*)"', text) == ["proofs/certificate.html", "../certificate/check.js"]
    assert "default-src 'none'" in text
    assert not re.search(r"fetch|XMLHttp|WebSocket|sendBeacon|import\b", text + SCRIPT.read_text())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_edited_files(name: str, run: Run, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    release, proof = CASES[name]()
    model = release["theta"] | {"format": "pufferfish-model"}
    files = [texts(replaced(release, path, other), proof, model) for path, other in edited(release)]
    files += [texts(release, replaced(proof, path, other), model) for path, other in edited(proof)]
    if not request.config.getoption("--slow"):
        files = files[::ONE_IN]
    honest_ones = [texts(release, proof, model), texts(release, proof)]
    assert agree(run, honest_ones, tmp_path) == [True, True]
    found = agree(run, files, tmp_path)
    assert any(found)
    assert not all(found)


def test_forged_releases(run: Run, tmp_path: Path) -> None:
    files = []
    for forge in RELEASES.values():
        release, proof = CASES["histogram"]()
        forge(release)
        files.append(texts(release, proof))
    release, proof = CASES["histogram"]()
    text = texts(release, proof)[0]
    for old, new in [
        ('"epsilon": 1.0', f'"epsilon": {value}') for value in ("NaN", '1.0, "epsilon": 9.0', "1e999999999")
    ]:
        assert old in text
        files.append((text.replace(old, new), texts(release, proof)[1], None))
    files += [(text[:-1], files[0][1], None), (text + "}", files[0][1], None), ("\ufeff" + text, files[0][1], None)]
    other = json.loads(text)["theta"] | {"states": ["a", "c", "b"]}
    files.append(texts(release, proof, other))
    assert not any(agree(run, files, tmp_path))


TWO, TENSOR = [[0.9, 0.1], [0.4, 0.6]], [[[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.2, 0.8]]]
STAYS = [[(0.8, 0.5), (0.2, 0.98)], [(1, 0.7)]]
ROWS = THREE.transition_matrix
KINDS: dict[str, tuple[Any, Any, int, dict[str, Any]]] = {
    "given": (pf.MarkovChain(TWO, [0.3, 0.7], states=STATES[:2]), pf.Frequency("b"), 500, {}),
    "certain start": (pf.MarkovChain(TWO, [1, 0], states=STATES[:2]), pf.Histogram(), 500, {}),
    "any law": (pf.MarkovChain(ROWS, "any", states=STATES), pf.Count("b"), 500, {}),
    "clock": (pf.PeriodicChain([ROWS, ROWS[::-1]], states=STATES), pf.CDF(), 99, {}),
    "order": (pf.HigherOrderChain(TENSOR, states=STATES[:2]), pf.Switches(), 99, {}),
    "order, some pairs never": (
        pf.HigherOrderChain([[[0.9, 0.1], [1, 0]], [[0.6, 0.4], [0.5, 0.5]]]),
        pf.Histogram(),
        99,
        {},
    ),
    "stays": (pf.StaysChain([[0, 1], [1, 0]], STAYS, "any", states=STATES[:2]), pf.Histogram(), 99, {}),
    "mixed": ([pf.ForgettingClass([8, 20], [0.43, 0.9], STATES), THREE], pf.Sum([0, 0.5, 2]), 9999, {}),
    "near values": (THREE, pf.Histogram(), 500, {"within": [("a", "b")]}),
    "subject": (THREE, pf.Histogram(), 50, {"protect": "subject"}),
    "named moves": (SIX, pf.Histogram(), 500, {}),
    "named moves, a clock": (
        pf.PeriodicChain([SIX.transition_matrix, np.roll(SIX.transition_matrix, 1, 0)]),
        pf.Histogram(),
        500,
        {},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str, run: Run, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """What is honest is proved by both; with a little more ε claimed than that, or edited bounds, both say the same."""
    theta, query, length, hidden = KINDS[kind]
    release, proof = honest(theta, query, length, **hidden)
    assert agree(run, [texts(release, proof)], tmp_path) == [True]
    rng = np.random.default_rng(0)
    files = [texts(release | {"epsilon": 1 - 10.0**-place}, proof) for place in range(3, 10)]
    for _ in range(200 if request.config.getoption("--slow") else 10):
        members = [None if member is None else disturbed(member, rng) for member in proof["members"]]
        files.append(texts(release, proof | {"members": members}))
    assert not all(agree(run, files, tmp_path))


@pytest.mark.parametrize("rows", [[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.8, 0.2]]])
def test_false_claims(rows: Any, run: Run, tmp_path: Path) -> None:
    """For two states the bound is the truth: nothing proves a millionth less."""
    release, proof = honest(pf.MarkovChain(rows, states=STATES[:2]), pf.Histogram(), 2000)
    rng = np.random.default_rng(1)
    files = [
        texts(release | {"epsilon": 1 - 2e-6}, proof | {"members": [disturbed(proof["members"][0], rng)]})
        for _ in range(60)
    ]
    assert not any(agree(run, files, tmp_path))


def test_a_step_from_the_only_state_before_is_paid(run: Run, tmp_path: Path) -> None:
    files = [texts(*of_an_only_state_before(paid=paid)) for paid in (True, False)]
    assert agree(run, files, tmp_path) == [True, False]


def test_a_clock_begins_at_any_phase(run: Run, tmp_path: Path) -> None:
    """After a step that forgets, no past tells as much as that of a series which begins there, by whichever law."""
    rows = [[0.02, 0.98], [0.0001, 0.9999]]
    release, proof = honest(pf.PeriodicChain([[[0.5, 0.5]] * 2, rows], states=STATES[:2]), pf.Count("a"), 100)
    files = [texts(release, proof)]
    for first in ("any", [0.05, 0.95]):
        (member,) = release["theta"]["members"]
        member["initial_distribution"] = first
        files.append(texts(release, proof))
    loss = 1 / checker.Fraction(release["counted"]["scale"])
    law = chain_law([0.05, 0.95], rows, 2)
    assert supremum_of_stretch(law, np.broadcast_to(float(loss) * (1 - np.eye(2)), (2, 2, 2)), 1) > 1.1
    assert agree(run, files, tmp_path) == [True, False, False]


def test_bounds_of_later_records(run: Run, tmp_path: Path) -> None:
    """The first law of all is forgotten step by step: what the past tells later is less than it tells before."""
    release, proof = honest(pf.MarkovChain(TWO, "any", states=STATES[:2]), pf.Count("b"), 10)
    (member,) = proof["members"]
    first, _, *later = member["past"]
    shifted = proof | {"members": [member | {"past": [first, *later]}]}
    assert agree(run, [texts(release, proof), texts(release, shifted)], tmp_path) == [True, False]


def test_a_clock_whose_states_die(run: Run, tmp_path: Path) -> None:
    """No step leads to c, so no bound of it would be asked."""
    rows = [[0.9, 0.1, 0], [0.2, 0.8, 0], [0.5, 0.5, 0]]
    noise = pf.LeakagePropagation(pf.PeriodicChain([rows, rows], "any", states=STATES), 50).calibrate(pf.Count("a"), 1)
    release = claiming(certificate.record_of_noise(noise), 9.0)
    far = [[(x != y) * 50 * 10**9 for y in range(3)] for x in range(3)]
    proof = {
        "format": "pufferfish-proof",
        "version": 1,
        "digits": 9,
        "members": [{"future": [far] * 2, "past": [far] * 2}],
    }
    assert agree(run, [texts(release, proof)], tmp_path) == [False]


# -- What only the second one refused when it was written, and the first one does now ----------------------------------


def with_noise(release: dict[str, Any], times: float) -> dict[str, Any]:
    """Return a release with other noise, wherever that is said."""
    scale = release["calibration"]["unit_scale"] * times
    release["calibration"]["unit_scale"], release["noise"]["scale"] = scale, scale * release["noise"]["unit"]
    release["counted"]["scale"] = str(checker.Fraction(scale))
    for part in release["noise"]["measurements"] or []:
        part["scale"] = release["noise"]["scale"]
    return release


def test_records_of_a_cell_beside_a_stretch_of_near_values(run: Run, tmp_path: Path) -> None:
    """Records are aaa or bbc, and only a and b are near: what is told of the third one is told as of far values."""
    rows, first = np.full((3, 3, 3, 3), 1 / 3), np.zeros((3, 3, 3))
    first[0, 0, 0] = first[1, 1, 2] = 0.5
    theta = pf.HigherOrderChain(rows, first, states=STATES)
    release, proof = honest(theta, pf.Sum([0, 0.001, 1]), 3, protect=2, within=[("a", "b")])
    files = []
    for times in (0.2, 5.1):  # with a fifth of it 4.99 nats leak, not 1
        text = json.dumps(with_noise(release, times), ensure_ascii=False)
        claim: Any = checker.Claim(checker.parsed(text, checker.RELEASE, "release"))
        claim.digits = 9
        files.append(texts(text, proof | {"members": certificate.proved(claim)[0]}))
    assert agree(run, files, tmp_path) == [False, True]


def test_equal_rows(run: Run, tmp_path: Path) -> None:
    """Two kinds of stay that are alike: what each checker rounds differs, and both have to prove the same."""
    exits = [[0, 1, 0], [0, 0, 1], [0.008104488613347508, 0.9918955113866524, 0]]
    twice = [(0.09118324770818666, 0.99), (0.9088167522918132, 0.99)]
    stays = [[(0.6, 0.5), (0.4, 0.99)], [(0.26, 0.3), (0.34, 0.9), (0.4, 0.5)], twice]
    release, proof = honest(pf.StaysChain(exits, stays, states=STATES), pf.Histogram(), 2)
    assert agree(run, [texts(release, proof)], tmp_path) == [True]


@pytest.mark.parametrize("pairs", [[], [["a"]], [["a", "a"]], [["a", "b", "c"]], [["x", "y"]]])
def test_pairs_that_are_none(pairs: Any, run: Run, tmp_path: Path) -> None:
    """Nothing is promised of them, so any noise would do."""
    release, proof = honest(THREE, pf.Histogram(), within=[("a", "b")])
    release["calibration"]["settings"]["within"] = pairs
    assert agree(run, [texts(release, proof)], tmp_path) == [False]


@pytest.mark.parametrize("hidden", [{"within": [("a", "b")]}, {"protect": 1440}], ids=["near", "long"])
def test_words_of_what_is_hidden(hidden: dict[str, Any], run: Run, tmp_path: Path) -> None:
    """Pairs that are named, and how long a stretch takes, are compared in both sentences."""
    release, proof = honest(THREE, pf.Histogram(), 5000, **hidden)
    files = [texts(release, proof)]
    for field in ("hides", "promise"):
        for old, new in (("a or b", "a or c"), ("a or b", "a or b; b or c"), ("1,440 steps", "1,440 steps (1d)")):
            other = release | {field: release[field].replace(old, new)}
            files += [texts(other, proof)] if other != release else []
    duration = release["hides"] + " (1d, where no step takes less than 1min)"
    files.append(texts(release | {"hides": duration}, proof))
    assert agree(run, files, tmp_path) == [True] + [False] * (len(files) - 1)
    assert len(files) > 3


def test_no_bounds_of_the_past_of_single_records(run: Run, tmp_path: Path) -> None:
    """A series of one record has no steps, and without a bound there is no place either at which anything leaks."""
    release, proof = honest(THREE, pf.Histogram(), 1)
    members = [{"future": [[[0] * 3] * 3], "past": bounds} for bounds in ([[[0] * 3] * 3], [])]
    honest_one, empty = (texts(release, proof | {"members": [member]}) for member in members)
    small = texts(with_noise(release, 0.1), proof | {"members": members[1:]})
    assert agree(run, [honest_one, empty, small], tmp_path) == [True, False, False]


def test_measurements_that_do_not_make_the_values(run: Run, tmp_path: Path) -> None:
    """Noise for a measurement of nothing is enough at any scale, but a histogram does not follow from it."""
    files = []
    for name in ("measurements", "transitions"):
        release, proof = CASES[name]()
        release["noise"]["measurements"] = [{"states": [], "scale": release["noise"]["scale"], "sharpness": 1}]
        release["counted"]["adds"] = [[[], []]]
        files.append(texts(with_noise(release, 1e-3), proof))
    assert agree(run, files, tmp_path) == [False, False]


# -- Pages -------------------------------------------------------------------------------------------------------------


def test_a_report_checks_itself(browser: Any, tmp_path: Path) -> None:
    theta = pf.MarkovChain(TWO, states=["</script>", "b"])
    made = pf.certify(pf.LeakagePropagation(theta, 100).calibrate(pf.Histogram(), 1.0))
    assert made.calibration is not None
    release = pf.release(["</script>", "b"] * 50, pf.Histogram(), made.calibration)
    release.report(tmp_path / "report.html", certificate=made, brief=True)

    def says(page: Path) -> str:
        browser.get(page.as_uri())
        wait = "const done = arguments[0]; setTimeout(() => done(document.getElementById('checked').textContent), 500)"
        return browser.execute_async_script(wait)

    assert says(tmp_path / "report.html").startswith(
        "This page checked its proof when you opened it. PROVED: this release of Histogram, by itself, is at most e^1 "
    )
    text = (tmp_path / "report.html").read_text()
    (tmp_path / "edited.html").write_text(re.sub(r'\\"epsilon\\": ?1.0', r'\\"epsilon\\": 0.999', text))
    assert (tmp_path / "edited.html").read_text() != text
    assert "NOT PROVED: theta[0]: more than ε leaks" in says(tmp_path / "edited.html")
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_the_page_of_the_site(browser: Any, tmp_path: Path) -> None:
    """Files are chosen on the page, and it says what is proved; with another proof, that nothing is."""
    release, proof = CASES["histogram"]()
    others = json.loads(json.dumps(proof))
    others["members"][0]["future"] = []
    names = [tmp_path / name for name in ("release.json", "proof.json", "other.json", "no.json")]
    for path, content in zip(names, [*texts(release, proof)[:2], texts(release, others)[1], "{}"], strict=True):
        path.write_text(content)
    browser.get(PAGE.as_uri())

    def says(*files: Path) -> str:
        browser.find_element("id", "files").send_keys("\n".join(map(str, files)))
        wait = "const done = arguments[0]; setTimeout(() => done(document.getElementById('says').textContent), 500)"
        return browser.execute_async_script(wait)

    assert says(names[0], names[3]).startswith("no.json is no release, proof or model")
    assert says(names[1]).startswith("PROVED: this release of Histogram")
    assert says(names[2]).startswith("NOT PROVED: theta[0]: a proof without bounds")
