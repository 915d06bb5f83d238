"""``pufferfish robustness``: Δ in words, and one clear line for bad input."""

import math
from pathlib import Path

import pytest

import commands
import pufferfish as pf
from pufferfish._base.words import at_most


def run(*arguments: object) -> commands.Result:
    return commands.run("robustness", *arguments)


def refused(*arguments: object) -> str:
    return commands.refused("robustness", *arguments)


def write(path: Path, *chains: pf.MarkovChain, **options: object) -> Path:
    pf.write_model(pf.Model(theta=pf.ChainClass(chains, origin=f"origin of {path.stem}"), **options), path)  # type: ignore
    return path


def chain(p: float, initial: object = (0.5, 0.5)) -> pf.MarkovChain:
    return pf.MarkovChain([[1 - p, p], [p, 1 - p]], initial, states=["rest", "active"])  # type: ignore


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path / "model.json", chain(0.1), chain(0.5))


@pytest.fixture
def belief(tmp_path: Path) -> Path:
    return write(tmp_path / "belief.json", chain(0.4))


def test_it_says_what_the_library_says(model: Path, belief: Path) -> None:
    result = run(model, belief, "--length", 3, "--epsilon", 1)
    assert result.exit_code == 0, result.output
    delta = pf.robustness([chain(0.1), chain(0.5)], [chain(0.4)], length=3)
    assert result.stdout.splitlines() == [
        "Θ: origin of model; belief: origin of belief",
        f"Δ = {at_most(delta, 6)}",
        f"decided by: {delta.secret} ({delta.direction})",
        "closest member of Θ: number 1 (from 0); worst belief: number 0",
        f"what is private at ε = 1 under Θ leaks at most ε + 2Δ = {at_most(1 + 2 * delta, 6)} to this belief",
    ]
    assert delta == pytest.approx(2 * math.log(0.5 / 0.4))


def test_lengths_add_up(model: Path, belief: Path) -> None:
    once = run(model, belief, "--length", 3).stdout
    assert run(model, belief, "--length", "2,2").stdout.splitlines()[1] == once.splitlines()[1]
    assert run(model, belief, "--length", 2, "--length", 2).stdout == run(model, belief, "--length", "2,2").stdout
    assert "ε = " not in once


def test_without_epsilon_it_says_what_delta_means(model: Path, belief: Path) -> None:
    delta = pf.robustness([chain(0.1), chain(0.5)], [chain(0.4)], length=3)
    (*_, last) = run(model, belief, "--length", 3).stdout.splitlines()
    more = at_most(2 * delta, 6)
    assert last == f"what is ε-private under Θ leaks at most ε + 2Δ = ε + {more} to this belief"


def test_models_with_the_same_origin_are_told_apart_by_their_files(model: Path) -> None:
    first, *_ = run(model, model, "--length", 3).stdout.splitlines()
    assert first == f"Θ: {model}, origin of model; belief: {model}, origin of model"


def test_a_belief_in_the_class_is_at_distance_0(model: Path) -> None:
    lines = run(model, model, "--length", 5, "--epsilon", 0.5).stdout.splitlines()
    assert lines[1] == "Δ = 0"
    assert lines[-1].endswith("= 0.5 to this belief")


def test_infinity_is_said_in_words(tmp_path: Path, model: Path) -> None:
    frozen = write(tmp_path / "frozen.json", chain(0.0))
    result = run(model, frozen, "--length", 5, "--epsilon", 1)
    assert result.exit_code == 0
    assert (
        "Δ is infinite: given that record 0 is rest, Θ allows a database that is impossible under the belief"
        in result.stdout
    )
    assert "inf " not in result.stdout
    anything = write(tmp_path / "anything.json", chain(0.1, "any"))
    assert "the belief allows every law of the first record" in run(model, anything, "--length", 5).stdout


def test_bad_input_is_one_line(tmp_path: Path, model: Path, belief: Path) -> None:
    assert "epsilon is -1" in refused(model, belief, "--length", 3, "--epsilon", -1)
    assert "expected a whole number" in refused(model, belief, "--length", "three")
    assert "expected at least 1 record" in refused(model, belief, "--length", 0)
    assert "nowhere.json" in refused(model, tmp_path / "nowhere.json", "--length", 3)
    other = write(tmp_path / "other.json", pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]))
    assert "give states= to both" in refused(model, other, "--length", 3)
    slow = write(tmp_path / "slow.json", chain(0.1), step="1h")
    fast = write(tmp_path / "fast.json", chain(0.1), step="60s")
    minute = write(tmp_path / "minute.json", chain(0.1), step="1min")
    assert "take 1h" in refused(slow, fast, "--length", 3)
    assert run(minute, fast, "--length", 3).exit_code == 0
    low = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["<1", ">=1"])
    plain, binned = write(tmp_path / "plain.json", low), write(tmp_path / "binned.json", low, bins=(0.0, 1.0, 2.0))
    assert "different bins" in refused(plain, binned, "--length", 3)
    missing = run(model, belief)
    assert missing.exit_code == 2
    assert "--length" in missing.output
