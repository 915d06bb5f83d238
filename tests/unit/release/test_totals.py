"""Totals of wider groups, such as regions of zones: they add up, and their errors are those of sums."""

import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import msgspec
import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from pufferfish.release.check import differences
from record_rules import contradictions

REGIONS = {"a": "north", "b": "north", "c": "south", "d": "south", "e": "south"}
CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["in", "out"])


def table(days: int = 40) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    people = [(f"p{i}", zone) for i, zone in enumerate("aabbbcdee")]
    rows = [(p, t, z, REGIONS[z], "in" if rng.random() < 0.6 else "out") for t in range(days) for p, z in people]
    return pl.DataFrame(rows, schema=["who", "time", "zone", "region", "state"], orient="row")


def released(query: pf.Histogram | pf.Mean | pf.CDF, epsilon: float, by: list[str], **options: str) -> pf.Release:
    data = pf.read_sequences(table(), "state", subject="who", time="time", max_gap=1, by=by)
    noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(query, epsilon, noise=options.pop("noise", "equal"))
    return pf.release(data, query, noise, **options)


@pytest.mark.parametrize("query", [pf.Histogram(), pf.Histogram(relative=False), pf.Mean([0, 3]), pf.CDF()])
def test_without_noise_they_are_those_of_the_rows_together(query: pf.Histogram | pf.Mean | pf.CDF) -> None:
    zones, regions = released(query, 1e4, ["zone<region"]), released(query, 1e4, ["region"])
    assert zones.groups is not None
    assert zones.groups.by == ["zone", "region"]
    found = pf.totals(zones, ["region"])
    assert found["value"].to_list() == pytest.approx(regions.values)
    assert found["records"].to_list() == regions.to_frame()["records"].to_list()
    whole = pf.totals(zones, [])
    assert whole["records"].to_list() == [360] * len(whole)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["equal", "best"])
def test_possible_values_add_up_and_errors_are_those_of_sums(noise: str, slow: bool) -> None:
    query, runs = pf.Histogram(relative=False), 2000 if slow else 100
    data = pf.read_sequences(table(), "state", subject="who", time="time", max_gap=1, by=["zone<region"])
    calibrated = pf.LeakagePropagation(CHAIN, data.length).calibrate(query, 1.0, noise=noise)
    exact = table().group_by("region", "state").len().sort("region", "state")["len"].to_numpy()
    off = np.zeros(4)
    for _ in range(runs):
        found = pf.totals(pf.release(data, query, calibrated), ["region"])
        off += np.abs(found["value"].to_numpy() - exact) > found["error_95"].to_numpy()
    assert (off / runs <= (0.065 if slow else 0.15)).all()
    assert (off / runs >= (0.02 if slow else 0)).all()
    valid = released(query, 0.5, ["zone<region"], noise=noise, postprocess="valid")
    wider = pf.totals(valid, ["region"])
    assert wider.group_by("region").agg(pl.col("value").sum()).sort("region")["value"].to_list() == pytest.approx(
        [200, 160]
    )


def test_a_hierarchy_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table().write_csv("t.csv")
    pf.write_model(pf.Model(theta=CHAIN), "m.json")
    asked = ["release", "t.csv", "--state", "state", "--subject", "who", "--time", "time", "--max-gap", 1]
    asked += ["--step", 1, "--model", "m.json", "--epsilon", 2, "--output", "r.json", "--csv", "r.csv"]
    done = run(*asked, "--by", "zone<region", "--valid")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    at = lines.index("totals of region:")
    assert lines[at + 1].split() == ["region", "output", "records", "value", "±", "95%"]
    assert lines[at + 2].split()[:3] == ["north", "in", "200"]
    written = pl.read_csv("r.csv")
    wider, cells = written.filter(pl.col("zone").is_null()), written.filter(pl.col("zone").is_not_null())
    assert len(cells) == 10
    expected = pf.totals(pf.Release.from_json("r.json"), ["region"])
    assert wider["value"].to_list() == pytest.approx(expected["value"].to_list())
    shown = run("show", "r.json").stdout.splitlines()
    assert shown[shown.index("totals of region:") :][:5] == lines[at : at + 5]
    assert run("report", "r.json", "--output", "r.html").exit_code == 0
    page = (tmp_path / "r.html").read_text()
    told = page[page.index("Totals by region: the sum, share or mean of the groups inside") :]
    assert re.findall(r"<th scope=.row.>(north|south)</th><th scope=.row.>(in|out)</th>", told) == [
        ("north", "in"), ("north", "out"), ("south", "in"), ("south", "out")
    ]  # fmt: skip
    content = unquote(re.findall(r'href="data:text/csv;charset=utf-8,([^"]*)"', page)[0])
    assert pl.read_csv(content.encode()).equals(written)
    plain = run(*asked, "--by", "zone,region", "--overwrite")
    assert plain.exit_code == 0, plain.output
    assert "totals of" not in plain.stdout + run("show", "r.json").stdout
    assert pl.read_csv("r.csv").height == 10
    refused(*asked, "--overwrite", "--by", "region<zone", says=["region 'north' is in two groups of zone, 'a' and 'b'"])
    refused(*asked, "--overwrite", "--by", "zone<", says=["by"])


def test_every_level_is_added_up_and_a_changed_hierarchy_is_refused(tmp_path: Path) -> None:
    """Three levels, another grouping beside; where weak totals are left out, their numbers are too."""
    rows = table().with_columns(
        country=pl.lit("x"), half=pl.when(pl.col("time") < 20).then(pl.lit("1")).otherwise(pl.lit("2"))
    )
    data = pf.read_sequences(rows, "state", subject="who", time="time", max_gap=1, by=["zone<region<country", "half"])
    noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(pf.Histogram(relative=False), 1.0)
    found = pf.release(data, pf.Histogram(relative=False), noise)
    assert found.groups is not None
    assert found.groups.nested == ["zone", "region"]
    assert [*contradictions(found)] == []
    levels = [["region", "country", "half"], ["country", "half"]]
    text = str(found)
    assert all(f"totals of {', '.join(level)}:" in text for level in levels)
    assert [grid.caption for grid in found._view().grids][1:3] == [f"Totals of {', '.join(level)}" for level in levels]
    found.to_json(tmp_path / "r.json")
    assert pf.Release.from_json(tmp_path / "r.json") == found
    assert found.verify(table=rows).holds
    for nested in (["region", "zone"], ["half"], ["country"], []):
        changed = msgspec.structs.replace(found, groups=msgspec.structs.replace(found.groups, nested=nested))
        assert [*differences(changed)], nested
        assert [*contradictions(changed)], nested
    with pytest.raises(pf.ParameterError, match="expected groupings inside of the next one"):
        replace(data.groups, nested=("country",))
    weak = pf.release(data, pf.Histogram(relative=False), noise.bound.calibrate(pf.Histogram(relative=False), 0.02))
    weak.report(tmp_path / "all.html")
    weak.report(tmp_path / "some.html", suppress=True)
    country = pf.totals(weak, ["country", "half"])
    hidden = [row["value"] for row in country.iter_rows(named=True) if abs(row["value"]) <= row["error_95"]]
    pages = [(tmp_path / name).read_text() for name in ("all.html", "some.html")]
    parts = [page[page.index("Totals by country, half") :].split("</table>")[0] for page in pages]
    assert hidden
    assert parts[0].count(" ± ") - parts[1].count(" ± ") == len(hidden)


def test_what_has_no_totals_is_refused() -> None:
    found = released(pf.Histogram(), 1.0, ["zone"])
    with pytest.raises(pf.ParameterError, match="expected some of zone"):
        pf.totals(found, ["region"])
    noise = pf.LeakagePropagation(CHAIN, 4).calibrate(pf.Histogram(), 1.0)
    alone = pf.release(["in", "out"] * 2, pf.Histogram(), noise)
    with pytest.raises(pf.ParameterError, match="has no groups"):
        pf.totals(alone, [])
