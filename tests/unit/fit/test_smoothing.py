"""What rows are completed by, how much of a model that makes up, and rare states that become one."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from pufferfish._core.chains.markov import smoothed, spread


def zones(k: int, visits: int, seed: int = 0) -> tuple[pl.DataFrame, np.ndarray[Any, Any]]:
    """One person's zones: left with probability .26 for a near or popular one, and the true matrix."""
    rng = np.random.default_rng(seed)
    place, popular = rng.random(k), rng.lognormal(0, 1, k)
    exits = popular * (np.exp(-((place[:, None] - place) ** 2) / 0.01) + 0.05)
    np.fill_diagonal(exits, 0)
    matrix = 0.74 * np.eye(k) + 0.26 * exits / exits.sum(axis=1, keepdims=True)
    ends, state, states = matrix.cumsum(axis=1), 0, []
    for u in rng.random(k * visits):
        states.append(f"z{state}")
        state = min(int(np.searchsorted(ends[state], u)), k - 1)
    return pl.DataFrame({"t": range(len(states)), "zone": states}), matrix


def read(table: pl.DataFrame, **reading: Any) -> pf.Sequences:
    return pf.read_sequences(table, "zone", time="t", max_gap=1, **reading)


def noise_of(chain: pf.MarkovChain) -> float:
    multiplier = pf.LeakagePropagation(chain, 10**6).calibrate(pf.Histogram(), 1.0).noise_multiplier
    assert multiplier is not None
    return multiplier


@pytest.mark.parametrize("seed", range(6))
def test_the_law_of_a_row_is_that_of_the_page(seed: int) -> None:
    """docs/fitting.md, entry by entry; every law is one, and has no zero, whatever the counts."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 7))
    counts = rng.integers(0, 9, (k, k)) * (rng.random((k, k)) < rng.choice([0.0, 0.3, 1.0]))
    law, total, stays = spread(counts), counts.sum(), np.trace(counts)
    entered = [(counts[:, y].sum() - counts[y, y] + 1 / k) / (total - stays + 1) for y in range(k)]
    for x in range(k):
        assert law[x, x] == pytest.approx((stays + 0.5) / (total + 1))
        for y in set(range(k)) - {x}:
            assert law[x, y] == pytest.approx((1 - law[x, x]) * entered[y] / (1 - entered[x]))
    assert np.all(law > 0)
    assert law.sum(axis=1) == pytest.approx(1)
    rows = (counts + 3 * law) / (counts.sum(axis=1, keepdims=True) + 3)
    assert smoothed(counts, 3) == pytest.approx(rows)


def test_states_that_are_renamed_are_completed_alike() -> None:
    counts = np.random.default_rng(1).integers(0, 5, (5, 5))
    order = [3, 0, 4, 1, 2]
    again = smoothed(counts[np.ix_(order, order)], 2)
    assert again == pytest.approx(smoothed(counts, 2)[np.ix_(order, order)])


@pytest.mark.slow
def test_many_states_of_few_visits_stay_as_long_as_they_do() -> None:
    """One count for every cell had them leave, and the noise was a fraction of what is needed."""
    table, truth = zones(40, 60)
    data = read(table)
    chain, weights = pf.fit_chain(data), data.transitions.sum(axis=1) / data.transitions.sum()
    assert np.all(chain.transition_matrix > 0)
    assert weights @ chain.transition_matrix.diagonal() == pytest.approx(0.74, abs=0.02)
    for_each_cell = data.transitions + 1.0
    before = pf.MarkovChain(for_each_cell / for_each_cell.sum(axis=1, keepdims=True))
    assert weights @ before.transition_matrix.diagonal() < 0.6
    needed = noise_of(pf.MarkovChain(truth))
    assert noise_of(before) < 0.8 * needed
    assert noise_of(chain) > 0.95 * needed
    assert not pf.made_up(data).too_much


def test_what_is_made_up_is_weighted_by_visits() -> None:
    data = read(pl.DataFrame({"t": range(403), "zone": list("aaab" * 100 + "bcb")}))
    made = pf.made_up(data, smoothing=2)
    left = data.transitions.sum(axis=1)
    assert left.tolist() == [300, 101, 1]
    assert made.share == pytest.approx(sum(n / 402 * 2 / (n + 2) for n in left))
    stays = [1 / (1 - np.trace(data.transitions) / 402), *made.stay[1:]]
    assert made.stay == pytest.approx(tuple(stays))
    chains = [pf.fit_chain(data, smoothing=w) for w in (0, 2)]
    assert made.noise == pytest.approx([noise_of(chain) for chain in chains])
    assert made.stay[1] == pytest.approx(1 / (1 - left @ chains[1].transition_matrix.diagonal() / 402))
    assert made.merge_below == 38


@pytest.mark.parametrize(
    ("states", "says"),
    [
        ("abb" * 10, "6.4% of the model would be invented"),
        ("abb" * 5, "12.4% of the model would be invented and the noise multiplier would be 2.45, not 2.751"),
        ("aaab" * 60 + "cd" * 60 + "a", "the noise multiplier would be 98.95, not 337.3"),
        (
            [x for i in range(100) for x in ["a"] * 100 + [i]],
            "the mean stay in a state would be 67.11 records, not 50.75",
        ),
        ("a" * 400 + "b" * 400 + "a", ""),
        ("aab" * 100, ""),
    ],
)
def test_too_much_is_a_share_or_a_change(states: Sequence[Any], says: str) -> None:
    table = pl.DataFrame({"t": range(len(states)), "zone": [str(state) for state in states]})
    assert pf.made_up(read(table)).too_much == says


def test_where_there_is_no_model_without_a_hundredth_stands_for_none() -> None:
    made = pf.made_up(read(pl.DataFrame({"t": range(301), "zone": list("aab" * 100 + "c")})))
    assert made.lighter == 0.01
    assert "with 0.01 of it, as there is no model without" in made.sentences[1]
    assert pf.made_up(read(pl.DataFrame({"t": range(300), "zone": list("aab" * 100)}))).lighter == 0
    nothing = pf.made_up(read(pl.DataFrame({"t": range(300), "zone": list("aab" * 100)})), smoothing=0)
    assert (nothing.share, nothing.sentences, nothing.too_much) == (0, [], "")


def test_of_many_states_no_noise_is_compared_but_share_and_stays_are() -> None:
    table = zones(130, 8)[0]
    made = pf.made_up(read(table))
    assert made.noise is None
    assert f"was not computed: of {table['zone'].n_unique()} states, more than 80" in made.sentences[1]
    assert "of the model would be invented" in made.too_much


def test_clocks_and_longer_memories_are_judged_by_their_own_rows() -> None:
    table = pl.DataFrame(
        {"t": pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2024, 1, 20), "1h", eager=True)}
    ).with_columns(zone=pl.when(pl.col("t").dt.hour() % 5 < 2).then(pl.lit("a")).otherwise(pl.lit("b")))
    hours = pf.read_sequences(table, "zone", time="t", max_gap="1h", clock="hour")
    assert hours.transitions_by_phase is not None
    rows = hours.transitions_by_phase.sum(axis=2)
    assert pf.made_up(hours).share == pytest.approx((rows * (1 / (rows + 1))).sum() / rows.sum())
    pairs = pf.read_sequences(table, "zone", time="t", max_gap="1h", order=2)
    assert pairs.histories is not None
    rows = pairs.histories.sum(axis=2)
    made = pf.made_up(pairs)
    assert made.share == pytest.approx((rows * (1 / (rows + 1))).sum() / rows.sum())
    found = pf.LeakagePropagation(pf.fit_order(pairs), 10**6).calibrate(pf.Histogram(), 1.0)
    assert made.noise is not None
    assert made.noise[1] == pytest.approx(found.noise_multiplier)


def test_a_person_is_completed_by_the_others_and_not_by_itself() -> None:
    rows = [("p", "ab"[i % 2]) for i in range(100)] + [("q", "aab"[i % 3]) for i in range(100)]
    table = pl.DataFrame(rows, schema=["who", "zone"], orient="row")
    fit = pf.fit_each_subject(table, "zone", subject="who", smoothing=5)
    other = pf.fit_chain(pf.read_sequences(table.filter(pl.col("who") == "q"), "zone"), smoothing=5)
    own = np.array([[0, 50], [49, 0]])
    expected = (own + 5 * other.transition_matrix) / (own.sum(axis=1, keepdims=True) + 5)
    assert fit.theta.chains[0].transition_matrix == pytest.approx(expected)
    assert fit.made_up.share == pytest.approx(np.mean([50 * 5 / 55 + 49 * 5 / 54, 66 * 5 / 71 + 33 * 5 / 38]) / 99)
    assert "no complete model" in fit.made_up.sentences[1]


# -- The command line ------------------------------------------------------------------------------------------------


def rare(path: Path) -> tuple[Path, list[object]]:
    """Three zones, and forty that are hardly visited."""
    rng = np.random.default_rng(4)
    states = [0]
    while len(states) < 900:
        drawn = rng.integers(3) if rng.random() < 0.85 else 3 + rng.integers(40)
        states.append(states[-1] if rng.random() < 0.6 else int(drawn))
    pl.DataFrame({"t": range(900), "zone": [f"z{state}" for state in states]}).write_csv(path)
    return path, ["--state", "zone", "--time", "t", "--max-gap", 1]


def test_fit_refuses_and_names_the_rare_states_unless_it_is_accepted(tmp_path: Path) -> None:
    table, reading = rare(tmp_path / "t.csv")
    output = tmp_path / "m.json"
    fit = ["fit", table, *reading, "--output", output]
    line = refused(*fit, says=["smoothing would invent too much", "--merge-rare 19 ('z", "--accept smoothing"])
    assert "\n" not in line.strip()
    assert not output.exists()
    done = run(*fit, "--accept", "smoothing")
    assert done.exit_code == 0, done.output
    assert "every row was completed by 1 transition that nobody made" in done.stdout
    assert "noise multiplier of a histogram at ε = 1" in done.stdout
    assert "every row" not in run(*fit, "--smoothing", 0, "--overwrite").stdout


def test_rare_states_become_one_and_a_release_reads_the_table_so(tmp_path: Path) -> None:
    table, reading = rare(tmp_path / "t.csv")
    model, output, private = tmp_path / "m.json", tmp_path / "r.json", tmp_path / "p.csv"
    done = run("fit", table, *reading, "--merge-rare", 19, "--output", model)
    assert done.exit_code == 0, done.output
    data = read(pl.read_csv(table))
    left = dict(zip(data.states, data.transitions.sum(axis=1), strict=True))
    kept = [state for state in data.states if left[state] >= 19]
    assert pf.read_model(model).theta.states == (*kept, "(other)")
    assert "(other) stands for unknown states and for those that fewer than 19 transitions leave: 'z" in done.stdout
    states = ["z0", "z0", "z1", "z12", "nowhere", "z2", None, "z1"]
    pl.DataFrame({"t": range(8), "zone": states}).write_csv(private)
    release = ["release", private, *reading, "--model", model, "--epsilon", 1, "--accept", "noise"]
    assert run(*release, "--output", output).exit_code == 0
    counts = pf.read_sequences(private, "zone", time="t", max_gap=1, states=[*kept, "(other)"])
    assert counts.counts[0, -1] == 2
    assert counts.records == 7


def test_rare_states_are_merged_where_there_are_some(tmp_path: Path) -> None:
    table, reading = rare(tmp_path / "t.csv")
    fit = ["fit", table, *reading, "--accept", "smoothing", "--output", tmp_path / "m.json"]
    assert "none is merged" in run(*fit, "--merge-rare", 1).stdout
    refused(*fit, "--merge-rare", 10**6, "--overwrite", says=["give a smaller --merge-rare"])
    stated = ["fit", "--forgets", 8, "--overlap", 0.4, "--states", "a,b", "--output", tmp_path / "n.json"]
    refused(*stated, "--merge-rare", 3, says=["--merge-rare", "--overlap needs no TABLE"])
    numbers = tmp_path / "n.csv"
    pl.DataFrame({"t": range(90), "zone": [float(i % 7) for i in range(90)]}).write_csv(numbers)
    binned = ["fit", numbers, *reading, "--bins", "0,3,6,9", "--output", tmp_path / "n.json"]
    refused(*binned, "--merge-rare", 3, says=["use wider --bins to join bins"])


def test_states_that_are_not_known_are_refused_where_no_state_stands_for_them() -> None:
    table = pl.DataFrame({"zone": ["a", "b", "c", "a"]})
    with pytest.raises(pf.DataError, match="states that the model lacks: 'c'"):
        pf.read_sequences(table, "zone", states=["a", "b"])
    data = pf.read_sequences(table, "zone", states=["a", "b", "(other)"])
    assert data.counts.tolist() == [[2, 1, 1]]
    assert math.isclose(pf.fit_chain(data).transition_matrix.sum(), 3)
