"""Forged releases and proofs: what an honest pair says, changed in one place, is accepted by the checker only where it
says that it does not look."""

import copy
import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from false_claims import claiming
from propagation_oracle import chain_law, supremum
from pufferfish.fit.model_file import write_model
from pufferfish.release import certificate
from pufferfish.release.checker import check as checker
from pufferfish.release.record import encoded
from stretch_oracle import supremum_of_stretch

STATES = ["a", "b", "c"]
THREE = pf.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]], states=STATES)
TWO = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["a", "b"])
STAYS = pf.StaysChain([[0, 1], [1, 0]], [[(0.8, 0.5), (0.2, 0.98)], [(1.0, 0.7)]], states=["a", "b"])
SIX = pf.MarkovChain(np.random.default_rng(28).dirichlet(np.full(6, 0.7), 6))
DIES = pf.MarkovChain([[0.99, 0.01, 0], [0.01, 0.99, 0], [0.5, 0.5, 0]], "any", states=STATES)
Pair = tuple[dict[str, Any], dict[str, Any]]


def honest(theta: Any, query: Any, length: int = 1000, **settings: Any) -> Pair:
    """Return a release of made-up values, and its proof, as JSON has them."""
    noise = pf.LeakagePropagation(theta, length).calibrate(query, 1.0, **settings)
    found = pf.certify(noise)
    assert found.calibration is not None
    record = json.loads(encoded(certificate.record_of_noise(found.calibration)))
    record["noisy_values"] = [record["noise"]["unit"] * 3 for _ in record["noisy_values"]]
    return record, json.loads(found.to_json())


CASES: dict[str, Callable[[], Pair]] = {
    "histogram": lambda: honest(THREE, pf.Histogram()),
    "count, any law": lambda: honest(pf.MarkovChain(TWO.transition_matrix, "any", states=["a", "b"]), pf.Count("b"), 4),
    "transitions": lambda: honest(TWO, pf.Transitions()),
    "mean over a stretch": lambda: honest([THREE, THREE], pf.Mean([0, 1.5, 4]), protect=20),
    "measurements": lambda: honest(STAYS, pf.Histogram(), noise="best"),
    "named moves": lambda: honest(SIX, pf.Histogram()),
    "forgetting": lambda: honest(pf.ForgettingClass([8, 20], [0.43, 0.9], STATES), pf.CDF()),
}


@pytest.fixture(scope="module", params=CASES)
def pair(request: pytest.FixtureRequest) -> Pair:
    return CASES[request.param]()


class Checker:
    """The checker on files, with the model that the honest release is of."""

    def __init__(self, folder: Path, release: dict[str, Any]) -> None:
        self.files = [str(folder / name) for name in ("release.json", "proof.json", "model.json")]
        (folder / "model.json").write_text(json.dumps(release["theta"] | {"format": "pufferfish-model"}))

    def accepts(self, release: Any, proof: Any) -> bool:
        for path, content in zip(self.files, (release, proof), strict=False):
            Path(path).write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False))
        try:
            checker.main(*self.files)
        except Exception:  # which it says as NOT PROVED
            return False
        return True


def changed(value: Any) -> Iterator[Any]:
    """Yield a value emptied, shortened, doubled, turned round, and of other types."""
    if isinstance(value, dict):
        yield from ({}, [*value.values()], {**value, "more": 1})
    elif isinstance(value, list):
        yield from ([], value[:-1], [*value, *value[-1:]], value[::-1], {}, None)
        if value and all(isinstance(part, list) and part for part in value):
            yield [list(column) for column in zip(*value, strict=False)]
    elif isinstance(value, str):
        yield from ("", value[:-1], value + value, 1, None, [value])
    elif isinstance(value, bool) or value is None:
        yield from (not value, int(bool(value)), "", [], {})
    else:
        yield from (0, 2 * value + 1, str(value), True, None, [value], float(value) if value == int(value) else -value)


def edited(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield paths, and what replaces what is there: every change of every part, and every part left out."""
    for other in changed(value):
        if json.dumps(other) != json.dumps(value) and (other != value or isinstance(other, bool)):
            yield path, other
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        left = (
            {k: v for k, v in value.items() if k != key} if isinstance(value, dict) else value[:key] + value[key + 1 :]
        )
        yield path, left
        yield from edited(part, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Return a value with another part."""
    if not path:
        return other
    new = copy.copy(value)
    new[path[0]] = replaced(value[path[0]], path[1:], other)
    return new


LOOSE = [tuple(name.split(".")) for name in checker.fields_unseen(checker.RELEASE)]


def test_every_part_of_a_release(pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release, proof = pair
    honest_checker = Checker(tmp_path, release)
    assert honest_checker.accepts(release, proof)
    not_checked = capsys.readouterr().out.split("NOT CHECKED")[1]
    for path, other in edited(release):
        if honest_checker.accepts(replaced(release, path, other), proof):
            if path == ("calibration", "settings"):  # how a mechanism searches is not asked, what is hidden is
                stated = release["calibration"]["settings"]
                assert all(stated.get(name) == other.get(name) for name in ("protect", "within")), other
                continue
            if path[:1] == ("noisy_values",):  # other values of the same grid
                assert np.all(np.isreal(other)), other
                continue
            named = [name for name in LOOSE if path[: len(name)] == name]
            assert named, (path, other)
            assert ".".join(named[0]) in not_checked


def test_every_part_of_a_proof(pair: Pair, tmp_path: Path) -> None:
    """What a proof says need not be checked, but what it leaves out must not be taken for proved."""
    release, proof = pair
    honest_checker = Checker(tmp_path, release)
    for path, other in edited(proof):
        if honest_checker.accepts(release, replaced(proof, path, other)):
            assert isinstance(other, list | int)
            assert not isinstance(other, bool)
            assert checker.fits(replaced(proof, path, other), checker.PROOF)
            assert np.all(np.array(np.shape(other)) > 0), (path, other)


# -- What binds a proof to a release: each of these was accepted by some first checker --------------------------------


def set_at(path: str, other: Any) -> Callable[[dict[str, Any]], None]:
    def change(record: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        place: Any = record
        for key in parents:
            place = place[int(key) if isinstance(place, list) else key]
        place[int(last) if isinstance(place, list) else last] = other(place[last]) if callable(other) else other

    return change


RELEASES: dict[str, Callable[[dict[str, Any]], None]] = {
    "an unknown key": set_at("more", 1),
    "true for 1": set_at("calibration.records", True),
    "states twice": set_at("theta.states", ["a", "a", "c"]),
    "another query": set_at("calibration.query", {"is": "Count", "states": ["a"]}),
    "states that are not there": set_at("calibration.query", {"is": "Count", "states": ["x"]}),
    "another law of the noise": set_at("noise.law", "discrete Gaussian"),
    "a larger scale for the proof alone": set_at("counted.scale", "1000"),
    "a larger scale of the release alone": set_at("noise.scale", 1000.0),
    "less counted": set_at("counted.adds", lambda adds: [[[], *adds[0][1:]]]),
    "shares of more records": set_at("query.divided_by", 10_000),
    "another unit": set_at("noise.unit", 1.0),
    "values off the grid": set_at("noisy_values", [0.0005, 0.003, 0.003]),
    "more values than outputs": set_at("noisy_values", [0.003] * 4),
    "groups": set_at("groups", {"by": ["hour"]}),
    "subjects": set_at("subjects", {}),
    "a smaller epsilon": set_at("epsilon", 0.99),
    "another epsilon in words": set_at("promise", lambda words: words.replace("e^1 ", "e^0.5 ")),
    "another factor in words": set_at("promise", lambda words: words.replace("2.718", "1.1")),
    "something else in words": set_at("hides", "any hour of one subject"),
    "a delta": set_at("delta", 1e-6),
    "named secrets": set_at("mechanism.secrets", [["a", "b"]]),
    "a stretch in the settings": set_at("calibration.settings", {"protect": 60, "within": None}),
    "shorter chains": set_at("data.lengths", [[1, 1000, 1]]),
    "no chains": set_at("data.lengths", []),
    "factors": set_at("counted.factors", [[1000, 0]]),
    "steps": set_at("counted.each", "step"),
    "measurements": set_at("noise.measurements", []),
    "members and chains": set_at("theta.members", [{}]),
    "another kind": set_at("theta.kind", "Markov processes that forget"),
    "rows that do not sum to 1": set_at(
        "theta.chains.0.transition_matrix", [[0.5, 0.3, 0.3], [0.2, 0.6, 0.2], [0, 0, 1]]
    ),
    "rows that nearly sum to 1": set_at("theta.chains.0.transition_matrix.0", [0.5, 0.3, 0.2000001]),
    "a state that is left for ever": set_at("theta.chains.0.transition_matrix.2", [0, 0, 1]),
    "no single stationary law": set_at("theta.chains.0.transition_matrix", [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
}


@pytest.mark.parametrize("name", RELEASES)
def test_forged_releases(name: str, tmp_path: Path) -> None:
    release, proof = CASES["histogram"]()
    RELEASES[name](release)
    assert not Checker(tmp_path, release).accepts(release, proof)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"epsilon": 1.0', '"epsilon": NaN'),
        ('"epsilon": 1.0', '"epsilon": 1.0, "epsilon": 9.0'),
        ("1.0", "1e999999999"),
    ],
)
def test_forged_texts(old: str, new: str, tmp_path: Path) -> None:
    release, proof = CASES["histogram"]()
    text = json.dumps(release, ensure_ascii=False)
    assert old in text
    assert not Checker(tmp_path, release).accepts(text.replace(old, new), proof)


def test_a_stretch_over_gaps_that_cut(tmp_path: Path) -> None:
    release, proof = CASES["mean over a stretch"]()
    release["data"]["base"] = {"gaps": "independent"}
    assert not Checker(tmp_path, release).accepts(release, proof)


def test_another_model(tmp_path: Path) -> None:
    """A chain that mixes faster has the same proof; that it is not the model's is seen where the model is named."""
    release, proof = CASES["histogram"]()
    named = Checker(tmp_path, release)
    release["theta"]["chains"][0]["transition_matrix"] = [[0.34, 0.33, 0.33]] * 3
    assert not named.accepts(release, proof)
    assert Checker(tmp_path, release).accepts(release, proof)
    write_model(pf.Model(theta=pf.MarkovChain([[0.34, 0.33, 0.33]] * 3, states=STATES)), tmp_path / "other.json")
    checker.main(*named.files[:2], str(tmp_path / "other.json"))


def claim_of(theta: Any, query: Any, length: int, scale: float, **hidden: Any) -> Any:
    """Return the claim of a release with this scale, for a checker that knows 9 digits."""
    noise = pf.LeakagePropagation(theta, length).calibrate(query, 1.0, **hidden)
    record = certificate.record_of_noise(noise)
    claim: Any = checker.Claim(checker.parsed(encoded(record), checker.RELEASE, "release"))
    claim.digits = 9
    return certificate.scaled(claim, noise.unit_scale, scale)


def accepted(claim: Any, epsilon: float, members: Any) -> bool:
    claim.epsilon, claim.limit = checker.Fraction(epsilon), checker.exp(checker.Fraction(epsilon), False)
    try:
        checker.prove(claim, {"digits": 9, "members": members})
    except checker.NotProved:
        return False
    return True


def bounds(*rows: Any) -> list[Any]:
    return [[[round((factor - 1) * 1e9) * (x != y) for y, factor in enumerate(row)] for x, row in enumerate(rows)]]


def test_states_that_die_tie_no_others_together() -> None:
    """With the dead state among the moves 4.66 nats were once "proved" where at least 9.33 leak."""
    claim = claim_of(DIES, pf.Count("a"), 1000, 2.0)
    proof, leakage = certificate.proved(claim)
    assert leakage > 9.33
    one = [[[0] * 3] * 3]
    for most in (1.0, 1.65, 10.0, 1e3):
        tied = bounds([1, most, 1.0], [most, 1, 1.0], [1.0, 1.0, 1])
        for past in (tied, one * 3 + tied, one + tied * 5):
            assert not accepted(claim, 4.7, [{"future": tied, "past": past}])
    assert accepted(claim, leakage * (1 + 1e-9), proof)


def test_a_state_that_only_the_start_has_is_hidden_and_told() -> None:
    """The first record may be in c, and what it is (a or c), and what the second tells of it (a or b), is hidden."""
    flat = bounds([1] * 3, [1] * 3, [1] * 3)
    for first, other in itertools.product(("any", [0.4, 0.2, 0.4]), "bc"):
        from_c = [0.99, 0.01, 0] if other == "b" else [0.5, 0.5, 0]  # where it is hidden itself nothing else tells
        theta = pf.MarkovChain([[0.5, 0.5, 0], [0.5, 0.5, 0], from_c], first, states=STATES)
        claim = claim_of(theta, pf.Count("c"), 2, 2.0, within=[("a", other)])
        claim.epsilon = checker.Fraction(1, 10**6)  # so that the sum of all losses is no proof
        proof, leakage = certificate.proved(claim)
        assert leakage > 0.1
        assert accepted(claim, leakage * (1 + 1e-9), proof)
        for ages in (1, 2):
            assert not accepted(claim, leakage / 2, [{"future": flat * ages, "past": flat * 2}])


def of_an_only_state_before(*, paid: bool) -> Pair:
    """Return .51 claimed, or 1, of states b and c that only a leads to; whether the past pays for the step from a."""
    theta = pf.MarkovChain([[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]], "any", states=STATES)
    noise = pf.LeakagePropagation(theta, 3).calibrate(pf.Transitions(), 1.0, within=[("b", "c")])
    record = certificate.record_of_noise(noise)
    step = float(certificate.claim_of(record).step)
    law = np.zeros((3, 3, 3))
    law[0, 1:, 0] = 0.5
    near = np.array([[False, False, False], [False, False, True], [False, True, False]])
    assert supremum_of_stretch(law, np.zeros((3, 3, 3)), 1, step=step, near=near) > 0.999
    none, one, two = (math.ceil(math.expm1(n * step) * 1e9) + 50 * n for n in range(3))

    def bounds_with(b_c: int) -> list[Any]:
        return [[[0, most, most], [most, 0, some], [most, some, 0]] for most, some in ((0, 0), (one, b_c), (two, b_c))]

    member = {"future": bounds_with(one), "past": bounds_with(one if paid else none)}
    proof = {"format": "pufferfish-proof", "version": 1, "digits": 9, "members": [member]}
    return json.loads(claiming(record, 1.0 if paid else 0.51)), proof


def test_a_step_from_the_only_state_before_is_paid(tmp_path: Path) -> None:
    """With any first law no two states before b and c say that anything is told: less than nothing was once enough."""
    for paid in (True, False):
        release, proof = of_an_only_state_before(paid=paid)
        assert Checker(tmp_path, release).accepts(release, proof) == paid


@pytest.mark.parametrize(
    "theta",
    [
        pf.MarkovChain([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]], [0.5, 0, 0.5], states=STATES),
        pf.MarkovChain([[0.5, 0.5], [0, 1]], [0.5, 0.5], states=["a", "b"]),
    ],
    ids=["periodic", "transient"],
)
def test_laws_that_never_settle(theta: Any) -> None:
    """No ratio to the stationary law is finite, so there are no bounds for all ages: only the sum of all losses."""
    claim = claim_of(theta, pf.Histogram(), 50, 200.0)
    claim.longest = 1000
    k = len(claim.states)
    generous = bounds(*np.where(np.eye(k), 1, 1e3).tolist())
    for ages in (1, 2, 7):
        assert not accepted(claim, 0.5, [{"future": generous, "past": generous * ages}])


def test_a_given_law_pays_for_its_distance() -> None:
    """Bounds of the stationary past prove nothing of a chain that begins elsewhere."""
    given = pf.MarkovChain(TWO.transition_matrix, [0.2, 0.8], states=["a", "b"])
    (stationary,), leakage = certificate.proved(claim_of(TWO, pf.Histogram(), 1000, 7.0))
    claim = claim_of(given, pf.Histogram(), 1000, 7.0)
    assert not accepted(claim, leakage * 1.0001, [stationary])
    proof, more = certificate.proved(claim)
    assert accepted(claim, more * (1 + 1e-9), proof)


def test_bounds_of_short_series_are_none_of_long_ones() -> None:
    (short,), leakage = certificate.proved(claim_of(TWO, pf.Histogram(), 3, 2.0))
    assert accepted(claim_of(TWO, pf.Histogram(), 3, 2.0), leakage * (1 + 1e-9), [short])
    assert not accepted(claim_of(TWO, pf.Histogram(), 4, 2.0), leakage * 1.2, [short])


@pytest.mark.parametrize("members", [[], [None], [{"future": [], "past": []}], [{"future": [[]], "past": [[]]}]])
def test_nothing_proves_nothing(members: Any) -> None:
    assert not accepted(claim_of(TWO, pf.Histogram(), 1000, 7.0), 1.0, members)


@pytest.mark.parametrize(("steps", "overlap"), [(0, 0.5), (8, 0), (8, 1.5), (8, -0.1)])
def test_forgetting_that_is_none(steps: int, overlap: float) -> None:
    claim = claim_of(pf.ForgettingClass(8, 0.43, STATES), pf.Histogram(), 10_000, 84.7)
    assert accepted(claim, 1.0, [None])
    claim.release["theta"]["members"] = [{"steps": [steps], "overlap": [checker.Fraction(overlap)]}]
    assert not accepted(claim, 1.0, [None])


# -- Claims that are false ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", [pf.Histogram(), pf.Count("b"), pf.Transitions()], ids=lambda q: q.kind)
@pytest.mark.parametrize("rows", [[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.8, 0.2]]])
def test_it_is_sharp_for_two_states(rows: Any, query: Any) -> None:
    """There the bound is the truth: a millionth more is proved, and a millionth less is not, whatever is brought."""
    chain = pf.MarkovChain(rows, states=["a", "b"])
    claim = claim_of(chain, query, 2000, 7.0)
    losses = (
        pf.StepLoss(2 / 7) if query.kind == "transitions" else np.array([[float(v) for v in r] for r in claim.losses])
    )
    truth = pf.LeakagePropagation(chain, 2000).leakage(losses)
    proof, leakage = certificate.proved(claim)
    assert leakage == pytest.approx(truth, rel=5e-7)
    assert accepted(claim, truth * (1 + 1e-6), proof)
    assert not accepted(claim, truth * (1 - 1e-6), proof)
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert not accepted(claim, truth * (1 - 1e-6), [disturbed(proof[0], rng)])


def disturbed(proof: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return a proof with some of its numbers a little, or much, smaller or larger."""
    size = 10.0 ** -rng.integers(1, 9)
    scale = lambda n: max(0, int(n * (1 + size * rng.uniform(-1, 1) * (rng.random() < 0.5))))  # noqa: E731
    found: dict[str, Any] = {
        side: [[[scale(n) for n in row] for row in bound] for bound in proof[side]] for side in ("future", "past")
    }
    if "moves" in proof:
        moves = {side: [[list(pair) for pair in step] for step in proof["moves"][side]] for side in proof["moves"]}
        for step in (step for side in moves.values() for step in side):
            for pair in step:
                ends = pair[2:]
                rng.shuffle(ends)
                pair[2:] = ends if rng.random() < 0.3 else pair[2:]
        found["moves"] = moves
    return found


@pytest.mark.parametrize("seed", range(12))
def test_false_claims_are_not_proved(seed: int, request: pytest.FixtureRequest) -> None:
    """Against linear programs over all densities of short chains: no claim below the truth, by no proof."""
    rng = np.random.default_rng(seed)
    k, length = (2, int(rng.integers(2, 6))) if seed % 2 else (3, int(rng.integers(2, 4)))
    rows = rng.dirichlet(np.full(k, 0.7), k).round(6)
    rows[rng.random((k, k)) < 0.1] = 0
    rows = (rows + 1e-3 * np.eye(k)[::-1]) / (rows + 1e-3 * np.eye(k)[::-1]).sum(axis=1, keepdims=True)
    start = rng.dirichlet(np.ones(k)) if seed % 3 else "stationary"
    states = STATES[:k]
    try:
        chain = pf.MarkovChain(rows, start, states=states)
    except pf.errors.ModelError:
        pytest.skip("no single stationary law")
    first = chain.stationary_distribution if isinstance(start, str) else start
    query = pf.Histogram() if seed % 4 else pf.Count("a")
    claim = claim_of(chain, query, length, float(rng.uniform(1, 8)))
    claim.epsilon = checker.Fraction(1, 10**6)  # so that the sum of all losses is no proof
    d = np.array([[float(v) for v in row] for row in claim.losses])
    truth = supremum(chain_law(first, chain.transition_matrix, length), np.broadcast_to(d, (length, k, k)))
    proof, leakage = certificate.proved(claim)
    assert leakage >= truth * (1 - 1e-9)
    assert accepted(claim, leakage * (1 + 1e-9), proof)
    for _ in range(400 if request.config.getoption("--slow") else 50):
        assert not accepted(claim, truth * (1 - 10.0 ** -rng.uniform(1, 6)), [disturbed(proof[0], rng)])
