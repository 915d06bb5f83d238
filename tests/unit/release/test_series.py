"""A series of releases: its errors against simulated noise, its totals, and what is no series."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

import pufferfish as pf
from commands import refused, run
from pufferfish.errors import ParameterError, RecordError
from pufferfish.release.series import error_of_difference
from pufferfish.release.sums import Value

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])


def week(records: int, seed: int) -> pf.Sequences:
    states = np.random.default_rng(seed).choice(["rest", "active"], records)
    table = pl.DataFrame({"s": states, "g": ["f", "m"] * (records // 2)})
    return pf.read_sequences(table, "s", by="g" if seed >= 100 else None, states=["rest", "active"])


def released(query: pf.Histogram | pf.Count | pf.CDF | pf.Mean, records: int, seed: int, **more: str) -> pf.Release:
    data = week(records, seed)
    return pf.release(data, query, pf.LeakagePropagation(CHAIN, data.length).calibrate(query, 1.0, **more))  # type: ignore[arg-type]


def laplace(rng: np.random.Generator, scale: float, size: int) -> np.ndarray:
    p = 1 - np.exp(-1 / scale)
    return rng.geometric(p, size) - rng.geometric(p, size)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Value(0, 1.0, 100, (20.0,)), Value(0, 1.0, 130, (20.0,))),
        (Value(0, 1.0, 100, (3.0,)), Value(0, 1.0, 1000, (50.0,))),
        (Value(0, 1.0, 70, (4.0, 9.0)), Value(0, 1.0, 90, (2.0, 2.0, 7.0))),
        (Value(0, 0.5, None, (20.0,)), Value(0, 0.5, None, (33.0,))),
        (Value(0, 1.0, 10_000, (90_000.0,)), Value(0, 1.0, 9_000, (70_000.0,))),
        (Value(0, 1.0, 100, (0.4,)), Value(0, 1.0, 101, (0.3,))),
    ],
)
def test_the_error_of_a_difference_is_that_of_simulated_noise(one: Value, other: Value) -> None:
    rng, size = np.random.default_rng(4), 400_000
    noise = sum(laplace(rng, b, size) for b in one.scales) * one.worth
    noise = noise - sum(laplace(rng, b, size) for b in other.scales) * other.worth
    stated = error_of_difference(one, other)
    share = float(np.mean(np.abs(noise) > stated * (1 + 1e-12)))
    assert share <= 0.05 + 0.0012  # of so many draws
    least = float(np.quantile(np.abs(noise), 0.95))
    assert stated <= least * 1.02 + max(one.worth, other.worth)


def test_errors_of_totals_and_averages_are_those_of_simulated_noise() -> None:
    rng, size = np.random.default_rng(5), 200_000
    releases = [released(pf.Count("active"), 400 + 20 * n, n) for n in range(6)]
    rows = pf.series(releases, labels=list("abcdef"), average=3).rows
    scales = [release.noise.one_scale for release in releases]
    noise = np.array([laplace(rng, scale, size) for scale in scales])
    for n, row in enumerate(rows):
        for name, some, parts in (
            ("total", noise[: n + 1], 1),
            ("average", noise[max(n - 2, 0) : n + 1], min(n + 1, 3)),
        ):
            error = np.abs(some.sum(axis=0)) / parts
            assert float(np.mean(error > row[f"{name}_error_95"] * (1 + 1e-12))) <= 0.05 + 0.0017
            assert row[f"{name}_error_95"] <= float(np.quantile(error, 0.95)) * 1.03 + 1
        values = [release.noisy_values[0] for release in releases[: n + 1]]
        assert row["total"] == pytest.approx(sum(values))
        assert row["average"] == pytest.approx(np.mean(values[-3:]))
        if n:
            assert row["change"] == pytest.approx(values[-1] - values[-2])
            assert row["exceeds_noise"] == (abs(row["change"]) > row["change_error_95"])
        else:
            assert row["change"] is row["exceeds_noise"] is None


def test_means_of_other_values_are_no_series() -> None:
    one, same, other = (released(pf.Mean(values), 400, n) for n, values in enumerate(([0, 5], [0, 5], [0, 50])))
    assert pf.series([one, same]).rows
    with pytest.raises(ParameterError, match=r"the values of states '\[0.0, 50.0\] of rest, active'.* one question"):
        pf.series([one, other])


def test_totals_of_shares_are_shares_of_all_records() -> None:
    sizes, query = [400, 1200], pf.Histogram()
    releases = [released(query, n, seed) for seed, n in enumerate(sizes)]
    rows = pf.series(releases).rows
    for o in range(2):
        values = [release.noisy_values[o] for release in releases]
        assert rows[2 + o]["total"] == pytest.approx(np.average(values, weights=sizes))
    error = pf.LeakagePropagation(CHAIN, 400).calibrate(query, 1.0).accuracy(0.05)
    assert rows[0]["error_95"] == pytest.approx(error)


def test_groups_and_strategies_have_a_line_each() -> None:
    grouped = pf.series([released(pf.Histogram(), 400, 100 + n) for n in range(3)])
    assert len(grouped.rows) == 3 * 2 * 2
    assert grouped.to_frame().columns[:3] == ["period", "g", "output"]
    frame = grouped.releases[0].to_frame()
    for row, value, error in zip(grouped.rows[:4], frame["value"], frame["error_95"], strict=True):
        assert (row["value"], row["error_95"]) == (pytest.approx(value), pytest.approx(error))
    assert all(abs(row["total"] - row["value"]) < 1 for row in grouped.rows)  # shares of all records, no sums of shares
    best = [released(pf.Histogram(), 400, n, noise="best") for n in range(2)]
    for row, value, error in zip(pf.series(best).rows, best[0].noisy_values, _errors(best[0]), strict=False):
        assert (row["value"], row["error_95"]) == (pytest.approx(value), pytest.approx(error))


def test_differences_of_groups_have_the_error_of_simulated_noise() -> None:
    releases = [released(pf.Histogram(relative=True), 400 + 40 * n, 100 + n) for n in range(2)]
    found = pf.series(releases, labels=["1", "2"])
    assert found.against == ("f",)
    rng, size = np.random.default_rng(6), 200_000
    for release, rows in zip(releases, (found.rows[:4], found.rows[4:]), strict=True):
        assert release.groups is not None
        n, m = release.groups.divided_by or []
        noise = laplace(rng, release.noise.one_scale, size) / n - laplace(rng, release.noise.one_scale, size) / m
        least = float(np.quantile(np.abs(noise), 0.95))
        for first, second in zip(rows[:2], rows[2:], strict=True):
            assert first["difference"] is first["difference_error_95"] is first["differs"] is None
            assert second["difference"] == pytest.approx(second["value"] - first["value"])
            assert least * 0.98 <= second["difference_error_95"] <= least * 1.03 + 1 / n
            assert second["differs"] == (abs(second["difference"]) > second["difference_error_95"])
    turned = pf.series(releases, labels=["1", "2"], against="m")
    assert turned.rows[0]["difference"] == pytest.approx(-found.rows[2]["difference"])
    assert turned.to_frame().columns[-3:] == ["difference", "difference_error_95", "differs"]
    assert "difference" not in pf.series([released(pf.Histogram(), 400, n) for n in range(2)]).to_frame().columns


def test_groups_that_differ_are_marked() -> None:
    def both(share: float, seed: int) -> pf.Release:
        rng = np.random.default_rng(seed)
        active = rng.random(2000) < np.repeat([0.3, share], 1000)
        table = pl.DataFrame({"s": np.where(active, "active", "rest"), "g": ["f"] * 1000 + ["m"] * 1000})
        data = pf.read_sequences(table, "s", by="g", states=["rest", "active"])
        return pf.release(
            data, pf.Count("active"), pf.LeakagePropagation(CHAIN, data.length).calibrate(pf.Count("active"), 1.0)
        )

    far = pf.series([both(0.5, n) for n in range(3)]).rows
    assert [row["differs"] for row in far if row["g"] == "m"] == [True] * 3


def _errors(release: pf.Release) -> list[float]:
    accuracy = release.accuracy_95
    return accuracy.outputs or [accuracy.each] * len(release.query.labels)


def test_what_is_no_series_is_refused() -> None:
    one, other = released(pf.Histogram(), 400, 1), released(pf.Count("active"), 400, 1)
    for releases, why in (
        ([one], "at least two"),
        ([one, other], "has the query 'count', and .* 'histogram': a series is of one question"),
        ([one, released(pf.Histogram(), 400, 100)], "groupings"),
        ([one, 3], "expected a release or its file"),
    ):
        with pytest.raises(ParameterError, match=why):
            pf.series(releases)
    with pytest.raises(ParameterError, match="average is 0"):
        pf.series([one, one], average=0)
    with pytest.raises(ParameterError, match="b is the same release as a: name each once"):
        pf.series([one, one], labels=["a", "b"])
    another = released(pf.Histogram(), 402, 2)
    by_group = released(pf.Histogram(), 400, 100)
    with pytest.raises(ParameterError, match=r"against is 'x', which is no group\. Groups: f, m"):
        pf.series([by_group, released(pf.Histogram(), 402, 100)], against="x")
    with pytest.raises(ParameterError, match="are not by groups"):
        pf.series([one, another], against="f")
    with pytest.raises(ParameterError, match="1 names for 2 releases"):
        pf.series([one, one], labels=["a"])


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for n in range(3):
        released(pf.Histogram(), 400, n).to_json(f"week{n}.json")
    files = [f"week{n}.json" for n in range(3)]
    for _ in range(2):  # a series is made anew
        told = run("series", *files, "--output", "s.csv", "--plot", "s.png")
        assert told.exit_code == 0, told.output
    assert "week2" in told.stdout
    assert "exceeds noise" in told.stdout
    assert len(pl.read_csv("s.csv")) == 6
    assert Path("s.png").stat().st_size > 5000
    assert "whole" not in repr(pf.series(files))
    refused("series", files[0], says=["at least two"])
    refused("series", *files, "--output", files[0], says=["--output"])
    Path("mine.csv").write_text("period,output,value\n1,2,3\n")
    refused("series", *files, "--output", "mine.csv", says=["mine.csv"])
    assert Path("mine.csv").read_text() == "period,output,value\n1,2,3\n"
    with pytest.raises(RecordError):
        pf.series(["nowhere.json", *files])


def test_groups_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for n in range(2):
        released(pf.Histogram(), 400, 100 + n).to_json(f"week{n}.json")
    for against in ((), ("--against", "m")):  # a series of groups is made anew, too
        told = run("series", "week0.json", "week1.json", *against, "--output", "s.csv", "--plot", "s.png")
        assert told.exit_code == 0, told.output
    assert "less m" in told.stdout
    assert "of 4 differences about 0.2 though there are none" in told.stdout
    assert pl.read_csv("s.csv")["difference"].null_count() == 4
    refused("series", "week0.json", "week1.json", "--against", "x", says=["which is no group"])


def test_two_records_with_one_predecessor_are_named() -> None:
    data = week(400, 1)
    bound = pf.LeakagePropagation(CHAIN, data.length)
    noise = bound.calibrate(pf.Count("active"), 0.5)
    releases = [pf.release(data, pf.Count("active"), noise, ledger=pf.Ledger(bound, 2.0))]
    while len(releases) == 1 or releases[0].value == releases[1].value:  # equal records are one that is named twice
        releases[1:] = [pf.release(data, pf.Count("active"), noise, ledger=pf.Ledger(bound, 2.0))]
    assert pf.series(releases).history.holds is not False  # two ledgers
    first = releases[0]
    again = replace(releases[1], ledger=first.ledger)
    found = pf.series([first, again], labels=["one", "two"])
    assert found.history.holds is False
    assert "one (entry 1) and two (entry 1) follow the same entry" in found.history.says
