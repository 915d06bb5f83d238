"""What all releases of a ledger tell together of stretches, against programs over all densities of short chains."""

import numpy as np
import pytest

import pufferfish as pf
from commands import run
from propagation_oracle import shortest_paths
from stretch_oracle import law_of_tuples, supremum_of_stretch

LENGTH = 4
RELEASES = [
    [(0.4, None), (0.3, None)],
    [(0.4, None), (0.5, (1, 3))],
    [(0.6, (0, 2)), (0.6, (2, 4))],
    [(0.5, (0, 1)), (0.5, (3, 4)), (0.1, None)],  # the stretch between is read once
]


@pytest.mark.parametrize("protect", [None, 2])
@pytest.mark.parametrize("releases", RELEASES)
def test_promises_of_a_ledger_hold_together(
    releases: list[tuple[float, tuple[int, int] | None]], protect: int | None
) -> None:
    matrix = np.array([[0.9, 0.1], [0.2, 0.8]])
    chain = pf.MarkovChain(matrix)
    law = law_of_tuples(chain.stationary_distribution, matrix, LENGTH)
    ledger = pf.Ledger(pf.LeakagePropagation(chain, LENGTH, protect=protect), 50.0)
    d = np.zeros((LENGTH, 2, 2))
    for loss, window in releases:
        ledger.spend(loss, window=window)
        begin, end = window or (0, LENGTH)
        d[begin:end] += loss * (1 - np.eye(2))
    stretches = {promise.steps: promise.epsilon for promise in ledger.promises() if promise.steps is not None}
    assert set(stretches) >= {1, LENGTH}
    for steps, epsilon in stretches.items():
        true = supremum_of_stretch(law, shortest_paths(d), steps)
        assert true <= epsilon + 1e-7
        assert epsilon <= true * 1.001 or (protect and steps < protect), (steps, true)  # two states: nothing is lost
    *_, alone = ledger.promises()
    assert alone.epsilon == pytest.approx(d.max())


def test_an_empty_ledger_promises_nothing_and_a_network_says_its_rows() -> None:
    network = pf.BayesianNetwork(
        {"u": pf.CPT(["a", "b"], [0.5, 0.5]), "v": pf.CPT(["a", "b"], [[0.9, 0.1], [0.4, 0.6]], ["u"])}
    )
    bound = pf.LeakagePropagation(network, 20)
    ledger = pf.Ledger(bound, 5.0)
    assert ledger.promises() == []
    noise = bound.calibrate(pf.Marginals(), 0.5)
    ledger.spend(noise)
    ledger.spend(noise)
    promised = {promise.unit: promise.epsilon for promise in ledger.promises()}
    assert promised["one cell of a row"] == ledger.spent
    assert promised["a whole row"] == pytest.approx(2 * {p.unit: p.epsilon for p in noise.promises()}["a whole row"])


def test_the_command_line_says_the_unit_first(tmp_path) -> None:  # type: ignore[no-untyped-def]
    import polars as pl

    files = {name: str(tmp_path / name) for name in ("model.json", "days.csv", "book.json")}
    pf.write_model(
        pf.Model(theta=pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=["a", "b"]), step="1min"), files["model.json"]
    )
    pl.DataFrame({"s": ["a", "a", "b"] * 200}).write_csv(files["days.csv"])
    about = ["--model", files["model.json"], "--state", "s", "--step", "1min"]
    book = ["--ledger", files["book.json"]]
    made = run(
        "ledger", "create", files["book.json"], "--table", files["days.csv"], *about, "--budget", "4", "--protect", "1h"
    )
    assert made.stdout.startswith("counts what is told of any stretch of 60 steps in a row of one subject (1h")
    asked = ["--query", "histogram", "--epsilon", "1", "--output"]
    for name in ("one.json", "two.json"):
        run("release", files["days.csv"], *about, *book, *asked, str(tmp_path / name))
    shown = run("ledger", "show", files["book.json"]).stdout
    assert shown.startswith("counts what is told of any stretch of 60 steps")
    assert "what all releases together tell of" in shown
    assert "1h (60 steps in a row)" in shown
    assert pf.Ledger.open(files["book.json"]).hides in shown
