"""Chains with several kinds of stay: what is refused, what they are, model files, a release from the command line."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import run
from odd_classes import odd_stays
from pufferfish.errors import ModelError, NotApplicableError, ParameterError

SWAP = [[0, 1], [1, 0]]
STAYS = [[(0.8, 0.5), (0.2, 0.98)], [(1.0, 0.7)]]
CHAIN = pf.StaysChain(SWAP, STAYS, states=["rest", "walk"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 0.9], [1, 0]], STAYS), r"exits\[0\] sums to 0.9"),
        (([[0.5, 0.5], [1, 0]], STAYS), r"exits\[0\]\[0\] is 0.5, expected 0"),
        (([[0, 1, 0], [1, 0, 0]], STAYS), r"exits has shape \(2, 3\), expected \(k, k\)"),
        ((SWAP, STAYS[:1]), "stays has 1 entries and exits 2 states"),
        ((SWAP, [[], STAYS[1]]), r"stays\[0\] is empty"),
        ((SWAP, [[(0.8, 0.5)], STAYS[1]]), r"stays\[0\] sums to 0.8"),
        ((SWAP, [[(1.0, 1.0)], STAYS[1]]), r"stays\[0\]\[0\] goes on with probability 1, expected .* every stay ends"),
        ((SWAP, [[(1.0, 0.5), (0.0, 0.5)], STAYS[1]]), r"stays\[0\]\[1\] has share 0"),
        ((SWAP, [[(1.0, "x")], STAYS[1]]), r"stays\[0\]\[0\] is \(1.0, 'x'\), expected \(share, keep\)"),
        ((SWAP, "often"), "stays is 'often', expected a list for each state"),
        ((SWAP, STAYS, [0.5, 0.5]), r"initial_distribution has shape \(2,\), expected \(3,\)"),
        ((SWAP, STAYS, "sometimes"), "initial_distribution is 'sometimes'"),
        (
            ([[0, 1, 0], [1, 0, 0], [0.5, 0.5, 0]], [*STAYS, STAYS[1]]),
            r"it never returns to state \{2\}",
        ),
    ],
)
def test_refusals_say_what_and_why(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message) as refusal:
        pf.StaysChain(*arguments)
    assert "\n" not in str(refusal.value)


def test_its_laws_are_those_of_state_and_kind() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        try:
            chain = odd_stays(rng, ["a", "b", "c"])
            law = pf.StaysChain(chain.exits, chain.stays).stationary_distribution
        except ModelError:  # several stationary laws, or a state that does not occur
            continue
        assert np.allclose(law @ chain.kernel, law, rtol=1e-9, atol=1e-12)
        state = chain.tuples[:, 0]
        seen = np.array(
            [
                [(law[state == x] @ chain.kernel[state == x][:, state == y].sum(axis=1)) for y in range(3)]
                for x in range(3)
            ]
        )
        assert np.allclose(seen / seen.sum(axis=1, keepdims=True), chain.mean_matrix, rtol=1e-7, atol=1e-9)


def test_stays_of_one_kind_are_those_of_a_markov_chain() -> None:
    matrix = np.array([[0.9, 0.06, 0.04], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]])
    keep = matrix.diagonal()
    exits = (matrix - np.diag(keep)) / (1 - keep)[:, None]
    for start in ("stationary", "any"):
        same = pf.StaysChain(exits, [[(1, float(p))] for p in keep], start)  # type: ignore[arg-type]
        assert isinstance(same.reduced, pf.MarkovChain)
        found, expected = (
            pf.LeakagePropagation(theta, 50).leakage(0.3)
            for theta in (same, pf.MarkovChain(matrix, start))  # type: ignore[arg-type]
        )
        assert found == pytest.approx(expected, rel=1e-9)


def test_two_kinds_that_are_alike_need_the_noise_of_one() -> None:
    one = pf.StaysChain(SWAP, [[(1.0, 0.9)], [(1.0, 0.7)]])
    two = pf.StaysChain(SWAP, [[(0.4, 0.9), (0.6, 0.9)], [(0.5, 0.7), (0.5, 0.7)]])
    for protect in (None, 2, 7):
        noise = [
            pf.LeakagePropagation(theta, 1000, protect=protect).calibrate(pf.Count(1), 1.0).scale
            for theta in (one, two)
        ]
        assert noise[1] == pytest.approx(noise[0], rel=1e-5)


def test_slower_stays_need_about_so_many_times_the_noise() -> None:
    noises = [
        pf.LeakagePropagation(theta, 10**6).calibrate(pf.Count("walk"), 1.0).scale
        for theta in (CHAIN, CHAIN.slower(1.5))
    ]
    assert 1.5 <= noises[1] / noises[0] < 1.6
    assert np.allclose(CHAIN.slower(1.5).stationary_distribution, CHAIN.stationary_distribution)
    for times in (0.9, "2", float("inf")):
        with pytest.raises(ParameterError, match="times is"):
            CHAIN.slower(times)  # type: ignore[arg-type]


def test_too_many_kinds_are_refused() -> None:
    even = (1 - np.eye(41)) / 40
    with pytest.raises(NotApplicableError, match="82 kinds of stay together, but at most 80"):
        pf.LeakagePropagation(pf.StaysChain(even, [[(0.5, 0.5), (0.5, 0.9)]] * 41), 5)


def test_a_model_file_keeps_it(tmp_path: Path) -> None:
    for start in ("stationary", "any", [0.1, 0.2, 0.7]):
        chain = pf.StaysChain(SWAP, STAYS, start, states=["rest", "walk"])  # type: ignore[arg-type]
        path = tmp_path / f"{start}.json"
        pf.write_model(pf.Model(theta=chain), path)
        (member,) = pf.read_model(path).theta.members
        assert isinstance(member, pf.StaysChain)
        assert member.stays == chain.stays
        assert np.array_equal(member.kernel, chain.kernel)
        assert np.array_equal(np.array(member.initial_distribution), np.array(chain.initial_distribution))


@pytest.mark.slow
def test_a_release_from_the_command_line_is_verified(tmp_path: Path) -> None:
    pf.write_model(pf.Model(theta=CHAIN), tmp_path / "model.json")
    pl.DataFrame({"s": ["rest", "rest", "walk", "rest"] * 200}).write_csv(tmp_path / "days.csv")
    asked = ["--query", "histogram", "--epsilon", "1", "--state", "s"]
    files = [tmp_path / name for name in ("days.csv", "model.json", "out.json")]
    for protect in ([], ["--protect", "10"]):
        out = tmp_path / f"out{len(protect)}.json"
        run("release", str(files[0]), "--model", str(files[1]), *asked, *protect, "--output", str(out))
        assert "proved again" in run("verify", str(out)).stdout
        assert "several kinds" in run("show", str(out)).stdout
