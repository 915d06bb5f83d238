"""Releases by groups: exact values under next to no noise, records that are read again, and what is refused."""

import importlib
import json
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise

import msgspec
import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.errors import ParameterError, RecordError, ReleaseRefused
from pufferfish.ledger import Ledger
from pufferfish.release import draw as drawing
from pufferfish.release.check import differences
from record_rules import contradictions
from release_cases import end_searches_soon

CHAIN = pf.MarkovChain([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.2, 0.4, 0.4]], states=["rest", "walk", "run"])
NETWORK = pf.BayesianNetwork(
    {"a": pf.CPT(["no", "yes"], [0.8, 0.2]), "b": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.3, 0.7]], ["a"])}
)
STATES = list(CHAIN.states)
N = 96


def table():
    times = [datetime(2021, 5, 1) + timedelta(minutes=20 * i) for i in range(N)]
    states = [[STATES[(i * i + s) % 7 % 3] for i in range(N)] for s in range(3)]
    return pl.DataFrame(
        {
            "id": [f"s{s}" for s in range(3) for _ in range(N)],
            "sex": [s for s in "fmf" for _ in range(N)],
            "t": times * 3,
            "state": [x for own in states for x in own],
        }
    )


TABLE = table()
DATA = pf.read_sequences(TABLE, "state", subject="id", time="t", max_gap="20min", by=["hour", "sex"], states=STATES)
PLAIN = pf.read_sequences(TABLE, "state", subject="id", time="t", max_gap="20min", states=STATES)
ROWS = pl.DataFrame(
    {"a": ["no", "yes", "no", "no"] * 10, "b": ["no", "no", "yes"] * 13 + ["no"], "who": list("uvvvu") * 8}
)
GROUPED_ROWS = pf.read_rows(ROWS, NETWORK, by="who")
QUERIES = [
    pf.Histogram(),
    pf.Histogram(relative=False),
    pf.Count(["walk", "run"]),
    pf.Frequency("run"),
    pf.Sum([0, 0.5, 2]),
    pf.Mean({"run": -1, "*": 0.25}),
]
OF_ROWS = [
    pf.Marginals(),
    pf.Marginals(["b"], relative=False),
    pf.Subset(pf.Histogram(), ["a", "b"]),
    pf.Subset(pf.Frequency("yes"), ["a", "b"]),
    pf.Subset(pf.Mean([0, 3]), ["b"]),
    pf.Subset(pf.Count("yes"), ["a", "b"]),
]


@cache
def calibrated(theta, length, mechanism, kind, query, epsilon):
    return mechanism(theta, length).calibrate(query, epsilon)


def release(data, query, epsilon=1.0, mechanism=pf.LeakagePropagation, **options):
    theta = NETWORK if isinstance(data, pf.Rows) else CHAIN
    noise = calibrated(theta, data.length, mechanism, query.kind, query, epsilon)
    return pf.release(data, query, noise, **options)


def test_with_next_to_no_noise_the_values_are_those_of_each_group():
    """At such an epsilon all noise is 0 but with a probability of 1e-40 or less."""
    worth = {"sum": {"rest": 0, "walk": 0.5, "run": 2}, "mean": {"rest": 0.25, "walk": 0.25, "run": -1}}
    cells = {}
    for row in TABLE.rows(named=True):
        cells.setdefault((row["t"].hour, row["sex"]), []).append(row["state"])
    for query in QUERIES:
        found = release(DATA, query, 1e4)
        frame = found.to_frame()
        assert frame.columns == ["hour(t)", "sex", "output", "records", "value", "error_95"]
        assert found.value.shape == (48, len(found.query.labels))
        for hour, sex, output, records, value, error in frame.iter_rows():
            own = cells[hour, sex]
            if query.kind in worth:
                expected = sum(worth[query.kind][x] for x in own)
            else:
                expected = sum(x in output.split("+") for x in own)
            expected = expected / len(own) if query.known.relative else expected
            assert (records, value, error) == (len(own), pytest.approx(expected), 0)
    for query in OF_ROWS:
        found = release(GROUPED_ROWS, query, 1e4)
        for (who,), values in zip(found.groups.cells, found.value, strict=True):
            alone = release(pf.read_rows(ROWS.filter(pl.col("who") == who), NETWORK), query, 1e4)
            assert values.tolist() == pytest.approx(alone.values), query


def test_distributions_and_quantiles_are_those_of_each_group(tmp_path):
    shares, of_day = [0.2, 0.5, 0.9], {"by": ["sex"], "states": STATES}
    data = pf.read_sequences(TABLE, "state", subject="id", time="t", **of_day)
    for query in (pf.CDF(), pf.CDF(relative=False), pf.Quantiles(shares)):
        found = release(data, query, 1e4)
        for i, (sex,) in enumerate(found.groups.cells):
            own = TABLE.filter(pl.col("sex") == sex)
            alone = release(pf.read_sequences(own, "state", subject="id", time="t", states=STATES), query, 1e4)
            assert found.value[i].tolist() == pytest.approx(alone.values)
            assert found.quantiles_at(shares)[3 * i : 3 * i + 3] == alone.quantiles_at(shares)
    frame = found.to_frame()
    assert frame.columns == ["sex", "quantile", "state", "low_95", "high_95"]
    assert frame["state"].to_list() == [quantile.state for quantile in found.quantiles]
    assert frame["sex"].to_list() == [sex for (sex,) in found.groups.cells for _ in shares]
    noisy = release(data, pf.Quantiles(shares), 0.05, postprocess="valid")
    assert (np.diff(noisy.value, axis=1) >= 0).all()
    assert ((noisy.value >= 0) & (noisy.value <= 1)).all()
    noisy.to_json(tmp_path / "release.json")
    again = pf.Release.from_json(tmp_path / "release.json")
    assert again.quantiles == noisy.quantiles
    assert again.verify().holds


def test_the_noise_is_that_of_one_query_on_the_whole_table():
    for query in QUERIES:
        grouped, plain = release(DATA, query), release(PLAIN, query)
        by = PLAIN.records if query.known.relative else 1
        assert grouped.noise.scale == pytest.approx(plain.noise.scale * by, rel=1e-12)
        assert grouped.mechanism == plain.mechanism
        assert grouped.promise == plain.promise
    book = Ledger(pf.LeakagePropagation(CHAIN, DATA.length), 2.0)
    first, second = (release(data, pf.Histogram(), 0.7, ledger=book) for data in (DATA, PLAIN))
    assert (first.ledger.entry, second.ledger.entry) == (1, 2)
    assert first.ledger.spent == pytest.approx(0.7)
    assert 0.7 < second.ledger.spent <= 1.4
    assert book.base == PLAIN.base  # a grouping is a matter of each release


def test_noise_is_drawn_for_every_group_by_itself():
    """Variance of the residuals of counts, 60 groups of each release: 2p/(1-p)² of discrete Laplace noise."""
    data = pf.read_sequences(TABLE, "state", subject="id", time="t", by=["date", "hour", "sex"], states=STATES)
    exact = data.groups.counts["state"]
    found = np.array([(release(data, pf.Histogram(relative=False)).value - exact).ravel() for _ in range(10)])
    p = np.exp(-1 / release(data, pf.Histogram(relative=False)).scale)
    assert found.size > 1_500
    assert np.mean(found**2) == pytest.approx(2 * p / (1 - p) ** 2, rel=0.35)  # 6 standard deviations
    assert len({tuple(column) for column in found.T}) > 0.9 * found.shape[1]


def test_records_are_read_again_and_say_what_is_taken_as_public(tmp_path):
    path = tmp_path / "r.json"
    for data, queries in ((DATA, QUERIES), (GROUPED_ROWS, OF_ROWS)):
        for query in queries:
            for valid in (None, "valid"):
                found = release(data, query, postprocess=valid)
                found.to_json(path, overwrite=True)
                assert pf.Release.from_json(path) == found
                assert all(
                    part.holds is not False for part in found.verify().findings
                )  # numbers in words of counts too
                assert any("Records are grouped by" in sentence for sentence in found.assumptions)
                frame = found.to_frame()
                assert ("noisy_value" in frame.columns) == (valid is not None)
                if valid and query.is_histogram and not isinstance(data, pf.Rows):
                    sums = found.value.sum(axis=1)
                    expected = 1 if query.known.relative else np.array(found.groups.records)
                    assert sums == pytest.approx(np.broadcast_to(expected, sums.shape))
                    assert found.value.min() >= 0
                if valid and query.kind == "count":
                    assert all(0 <= value <= 2 * n for value, n in zip(found.values, found.groups.records, strict=True))
                least = min(found.groups.divided_by or [1])
                assert found.accuracy() == pytest.approx(found.noise.accuracy(0.05) / least)
                assert found.accuracy() == pytest.approx(max(found.groups.error_95))
    plain = release(PLAIN, pf.Histogram())
    assert plain.to_frame().columns == ["output", "value", "error_95"]
    assert plain.to_frame()["value"].to_list() == plain.values
    with pytest.raises(ParameterError, match=r"a library is named by into: to_frame\(into='pandas'\)$"):
        plain.to_frame("pandas")
    with pytest.raises(ParameterError, match=r'^of is 3, expected "values" or "quantiles"$'):
        plain.to_frame(3)


def test_noise_of_the_best_shape_is_that_of_one_release_and_totals_are_those_of_each_group(tmp_path, monkeypatch, slow):
    if not slow:
        end_searches_soon(monkeypatch)
    bound = pf.LeakagePropagation(CHAIN, DATA.length)
    path, ledger = tmp_path / "r.json", Ledger(bound, 9.0, base=DATA)
    exact = DATA.groups.counts["state"]
    for relative in (True, False):
        query = pf.Histogram(relative=relative)
        noise = bound.calibrate(query, 1.0, noise="best")
        assert noise.strategy is not None
        assert len(noise.strategy.rows) == 2  # what is left of each group's own records is the third count
        drawn = []

        def no_noise(values, scale, lipschitz, drawn=drawn):
            drawn.append((scale, lipschitz, len(values)))
            return lambda: list(values)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drawing, "discrete_laplace_noise", no_noise)
            draw = drawing.cells_of(DATA, noise).sampler(noise)
        assert draw().tolist() == exact.tolist()
        assert [scale for scale, *_ in drawn] == pytest.approx(noise.strategy.scales(noise.unit_scale), rel=1e-12)
        assert {rest for _, *rest in map(tuple, drawn) for rest in [tuple(rest)]} == {(1, 48)}
        for valid in (None, "valid"):
            found = pf.release(DATA, query, noise, postprocess=valid, ledger=ledger)
            plain = pf.release(PLAIN, query, noise)
            over = PLAIN.records if relative else 1
            for own, whole in zip(found.noise.measurements, plain.noise.measurements, strict=True):
                assert (own.states, own.sharpness) == (whole.states, whole.sharpness)
                assert own.scale == pytest.approx(whole.scale * over, rel=1e-12)
            assert found.record_loss == pytest.approx(plain.record_loss, rel=1e-9)
            found.to_json(path, overwrite=True)
            assert pf.Release.from_json(path) == found
            assert found.verify(ledger=ledger).holds
            errors = found.accuracies()
            assert errors.shape == found.value.shape
            assert found.to_frame()["error_95"].to_list() == errors.ravel().tolist()
            by = np.array(found.groups.records) if relative else np.ones(48)
            assert (errors * by[:, None]).max(axis=0) == pytest.approx(plain.accuracies() * over)
            assert len(np.unique(errors[0])) == 3  # every output has an error of its own
            assert found.accuracy() == pytest.approx(errors.max())
            assert np.all(found.accuracies(joint=True) > errors)
            assert np.all(found.accuracies(joint=True) <= found.accuracy(joint=True) * 1.2)
            if valid:
                assert found.value.sum(axis=1) == pytest.approx(1.0 if relative else DATA.groups.records)
            if slow or relative is (valid is None):
                found.plot(tmp_path / "r.png")
            assert "2 counts of each group, from which all 144 values follow" in str(found)
    plain = json.loads(path.read_text())
    measurements = plain["noise"]["measurements"]
    changes = list(changed(plain))
    for key, value in (("scale", measurements[0]["scale"] / 2), ("sharpness", 0), ("states", ["rest"]), ("scale", 0)):
        changes.append({**plain, "noise": {**plain["noise"], "measurements": [{**measurements[0], key: value}]}})
        shaped = [{**measurements[0], key: value}, *measurements[1:]]
        changes.append({**plain, "noise": {**plain["noise"], "measurements": shaped}})
    changes.append({**plain, "noise": {**plain["noise"], "measurements": None}})
    for outputs in (None, [], [1.0, 1.0, 1.0]):
        changes.append({**plain, "accuracy_95": {**plain["accuracy_95"], "outputs": outputs}})
    for record in changes:
        path.write_text(json.dumps(record))
        with pytest.raises(RecordError):
            pf.Release.from_json(path)


def changed(plain):
    """Yield records in which one thing was changed."""
    groups = plain["groups"]
    yield {**plain, "groups": None}
    for change in (
        {"by": ["sex", "hour(t)"]},
        {"cells": groups["cells"][::-1]},
        {"cells": [[*cell, "x"] for cell in groups["cells"]]},
        {"records": [n + 1 for n in groups["records"]]},
        {"error_95": [e / 2 for e in groups["error_95"]]},
        {"divided_by": None if groups["divided_by"] else groups["records"]},
        {"divided_by": [2 * n for n in groups["records"]]},
        {"divided_by": [0] * len(groups["records"])},
        {"by": []},
        {"error_95": []},
    ):
        yield {**plain, "groups": {**groups, **change}}
    yield {**plain, "noisy_values": [v + 1e-3 for v in plain["noisy_values"]]}
    yield {**plain, "values": plain["values"][::-1]}
    yield {**plain, "values": plain["values"][:-1]}
    yield {**plain, "noise": {**plain["noise"], "scale": plain["noise"]["scale"] / 2}}
    yield {**plain, "accuracy_95": {**plain["accuracy_95"], "each": plain["accuracy_95"]["each"] / 2}}
    yield {**plain, "query": {**plain["query"], "divided_by": 288}}
    yield {**plain, "data": {**plain["data"], "base": {**plain["data"]["base"], "by": None}}}
    yield {**plain, "data": {**plain["data"], "base": {**plain["data"]["base"], "by": ["hour(t)"]}}}
    yield {**plain, "assumptions": plain["assumptions"][:1]}
    yield {**plain, "epsilon": plain["epsilon"] / 2}
    yield _with_the_least_unit(plain)
    if (done := plain["postprocessing"]) is None:
        yield {**plain, "postprocessing": {"kind": "clipped", "low": -1e9, "high": 1e9}}
    elif done["kind"] == "projected":
        yield {**plain, "postprocessing": {**done, "totals": [2 * v for v in done["totals"]]}}
        yield {**plain, "postprocessing": {**done, "outputs": done["outputs"][::-1]}}
    else:
        yield {**plain, "postprocessing": {**done, "high": [v + 1 for v in done["high"]]}}
        yield {**plain, "postprocessing": {**done, "outputs": 2}}
        yield {**plain, "postprocessing": {**done, "low": []}}


def _with_the_least_unit(plain):
    """Return a record of zeros in the least unit that there is, which is 0 for one record of a group."""
    zeros = [0.0] * len(plain["values"])
    return {
        **plain,
        "values": zeros,
        "noisy_values": zeros,
        "postprocessing": None,
        "noise": {**plain["noise"], "unit": 5e-324, "scale": 5e-324},
        "query": {**plain["query"], "lipschitz": 5e-324},
        "accuracy_95": {**plain["accuracy_95"], "each": 0.0, "joint": 0.0},
        "groups": {**plain["groups"], "error_95": [0.0] * len(plain["groups"]["error_95"])},
    }


def test_a_record_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "r.json"
    for query, valid in ((pf.Histogram(), "valid"), (pf.Frequency("run"), "valid"), (pf.Count("walk"), None)):
        plain = json.loads(release(DATA, query, postprocess=valid).to_json())
        for record in changed(plain):
            path.write_text(json.dumps(record))
            with pytest.raises(RecordError):
                pf.Release.from_json(path)
    plain = json.loads(release(PLAIN, pf.Count("walk"), postprocess="valid").to_json())
    path.write_text(
        json.dumps(
            {**plain, "postprocessing": {"kind": "clipped-by-group", "outputs": 1, "low": [-99], "high": [9999]}}
        )
    )
    with pytest.raises(RecordError, match=r"postprocessing is .*clipped.* which follows"):
        pf.Release.from_json(path)


def test_a_ledger_names_the_groups_and_the_record_is_verified_with_it():
    for data, bound, queries in (
        (DATA, pf.LeakagePropagation(CHAIN, DATA.length), QUERIES[:4]),
        (GROUPED_ROWS, pf.LeakagePropagation(NETWORK, GROUPED_ROWS.length), OF_ROWS[:3]),
    ):
        ledger = Ledger(bound, 50.0, base=data)
        for query in queries:
            found = pf.release(data, query, bound.calibrate(query, 1.0), ledger=ledger)
            checked = found.verify(ledger=ledger)
            assert checked.holds, checked
            assert ledger.entries[-1].what == f"{found.query.kind}: {found.query.description}"


def test_what_has_no_groups_is_refused(tmp_path, monkeypatch):
    one = pf.read_sequences(TABLE[:12], "state", by="sex", states=STATES)
    for query in (pf.Window(pf.Count("run"), 2, 9), pf.Weighted(pf.Count("run"), [1, 2] * 6)):
        with pytest.raises(ReleaseRefused, match="is about single records, but groups only count"):
            release(one, query)
    with pytest.raises(ReleaseRefused, match="noise for one query of all records"):
        release(one, pf.Count("run"), mechanism=pf.Wasserstein)
    noise = pf.LeakagePropagation(CHAIN, DATA.length).calibrate(pf.Histogram(), 1.0)
    with pytest.raises(ParameterError, match="was read with by"):
        pf.release_each(DATA, pf.Histogram(), noise, tmp_path / "v.csv")
    holes = ROWS.with_columns(pl.when(pl.int_range(40) == 3).then(None).otherwise(pl.col("a")).alias("a"))
    data = pf.read_rows(holes, NETWORK, by="who", missing="unobserved")
    release(data, pf.Marginals())
    with pytest.raises(ParameterError, match="how many cells of each group are missing"):
        release(data, pf.Marginals(), postprocess="valid")
    monkeypatch.setattr(importlib.import_module("pufferfish.release.draw"), "_MOST_VALUES", 100)
    with pytest.raises(ReleaseRefused, match=r"48 groups with 3 values each are more than 100 values"):
        release(DATA, pf.Histogram())


def test_pictures_of_groups_are_drawn(tmp_path):
    days = pf.read_sequences(TABLE, "state", subject="id", time="t", by=["date", "hour"], states=STATES)
    many = pf.read_sequences(TABLE.with_row_index("n"), "state", subject="id", time="t", by=["n"], states=STATES)
    sex = pf.read_sequences(TABLE, "state", subject="id", time="t", by=["sex"], states=STATES)
    rows = TABLE.with_row_index("n").with_columns(pl.col("n") // 9)
    hours = pf.read_sequences(rows, "state", subject="id", time="t", by=["n", "hour"], states=STATES)
    panels = {
        "panels": (sex, pf.Histogram(), 2),
        "bars": (sex, pf.Count("run"), 1),
        "line": (many, pf.Count("run"), 1),
        "a panel for each output": (days, pf.Histogram(), 3),
        "lines": (days, pf.Frequency("run"), 1),
        "heat maps": (hours, pf.Histogram(), 6),  # each with axes of its own colours: rare states are seen too
    }
    for name, (data, query, axes) in panels.items():
        path = tmp_path / f"{name}.png"
        figure = release(data, query).plot(path)
        assert len(figure.axes) == axes, name
        assert path.stat().st_size > 5_000
        title = figure.get_suptitle().replace("\n", " ")
        assert all(each in title for each in (*data.base.by, "with 95% probability")), title
        maps = [image for axes in figure.axes for image in axes.images]
        assert len(maps) == (3 if name == "heat maps" else 0)
        for image in maps:  # colours go as far as its own values do
            assert image.get_clim()[1] == (np.abs(image.get_array()).max() or 1.0)


def steps_of_cells(by=lambda row: (str(row["t"].hour), row["sex"])):
    """How often each state of the table is followed by each, by the group of the record that follows, one by one."""
    counted = {}
    for _, own in TABLE.sort("id", "t").group_by("id", maintain_order=True):
        for before, row in pairwise(own.rows(named=True)):
            cell = counted.setdefault(by(row), np.zeros((3, 3)))
            cell[STATES.index(before["state"]), STATES.index(row["state"])] += 1
    return counted


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("valid", [None, "valid"])
def test_steps_count_in_the_group_of_the_record_that_they_lead_to(tmp_path, relative, valid):
    expected = steps_of_cells()
    for query, k in ((pf.Transitions(relative), 9), (pf.Switches(relative), 1)):
        found = release(DATA, query, 1e4, postprocess=valid)
        assert found.value.shape == (48, k)
        assert sum(found.groups.steps) == found.data.steps == 3 * (N - 1)
        for cell, n, steps, values in zip(
            found.groups.cells, found.groups.records, found.groups.steps, found.value, strict=True
        ):
            own = expected[tuple(cell)]
            exact = own.ravel() if k == 9 else [own.sum() - np.trace(own)]
            assert steps == own.sum() <= n
            assert values == pytest.approx(np.array(exact) / (n if relative else 1), abs=1e-9)
        noisy = release(DATA, query, 1.0, postprocess=valid)
        assert not [*contradictions(noisy)]
        assert noisy.verify(table=TABLE).holds
        assert noisy.groups.error_95 == pytest.approx(
            [noisy.noise.accuracy(0.05) / (n if relative else 1) for n in noisy.groups.records]
        )
        if valid:
            assert (noisy.value >= 0).all()
            total = np.array(noisy.groups.steps) / (np.array(noisy.groups.records) if relative else 1)
            assert np.allclose(noisy.value.sum(axis=1), total) if k == 9 else (noisy.value[:, 0] <= total + 1e-9).all()
        noisy.to_json(tmp_path / "release.json", overwrite=True)
        assert pf.Release.from_json(tmp_path / "release.json") == noisy
        assert "counts in the group of the record that it leads to" in noisy.assumptions[-1]


def test_steps_of_groups_have_the_noise_of_one_query_and_are_charged_once(tmp_path):
    plain, grouped = release(PLAIN, pf.Transitions()), release(DATA, pf.Transitions())
    assert grouped.noise == plain.noise
    assert (grouped.mechanism, grouped.counted, grouped.promise) == (plain.mechanism, plain.counted, plain.promise)
    books = [Ledger(pf.LeakagePropagation(CHAIN, DATA.length), 3.0) for _ in range(2)]
    spent = [
        [release(data, pf.Transitions(), 0.7, ledger=book).ledger.spent for _ in range(2)]
        for book, data in zip(books, (DATA, PLAIN), strict=True)
    ]
    assert spent[0] == spent[1]
    people = pf.read_sequences(TABLE, "state", subject="id", time="t", max_gap="20min", by="id", states=STATES)
    each = release(people, pf.Transitions(), 1e4)
    alone = steps_of_cells(lambda row: row["id"])
    assert [alone[name].ravel().tolist() for (name,) in each.groups.cells] == each.value.tolist()
    totals = pf.totals(release(DATA, pf.Transitions(), 1e4), ["sex"]).filter(pl.col("sex") == "f")["value"].to_list()
    assert totals == pytest.approx(steps_of_cells(lambda row: row["sex"])["f"].ravel().tolist())
    assert np.allclose(each.chain().transition_matrix, release(PLAIN, pf.Transitions(), 1e4).chain().transition_matrix)
    assert each.switches() == release(people, pf.Switches(), 1e4).switches()
    rates = release(DATA, pf.Transitions(relative=True), 1e4)
    assert rates.switches() == pytest.approx(each.switches())
    planned = pf.plan(
        DATA, pf.Transitions(), calibrated(CHAIN, DATA.length, pf.LeakagePropagation, "", pf.Transitions(), 1.0)
    )
    assert planned.groups.steps == grouped.groups.steps
    assert planned.noise == grouped.noise


def test_changed_numbers_of_steps_are_refused_and_groups_of_another_table_are_seen(tmp_path):
    found = release(DATA, pf.Transitions(), postprocess="valid")
    other = TABLE.with_columns(sex=pl.when(pl.col("id") != "s0").then(pl.lit("m")).otherwise(pl.lit("f")))
    verified = found.verify(table=other)
    assert not verified.holds
    assert "other groups, or other numbers of records or steps in them" in verified.wrong[0].says
    steps = list(found.groups.steps)
    moved = [steps[0] - 1, steps[1] + 1, *steps[2:]]
    for changed in (None, moved, steps[:-1], [steps[0] - 1, *steps[1:]], [-1, steps[0] + steps[1] + 1, *steps[2:]]):
        record = msgspec.structs.replace(found, groups=msgspec.structs.replace(found.groups, steps=changed))
        assert [*differences(record)], changed
        assert [*contradictions(record)], changed
    histogram = release(DATA, pf.Histogram())
    assert "steps" not in histogram.to_dict()["groups"]  # records of earlier versions are read as they were
    told = msgspec.structs.replace(histogram, groups=msgspec.structs.replace(histogram.groups, steps=steps))
    assert [*differences(told)]
    assert [*contradictions(told)]


def test_steps_of_groups_that_cannot_be_released():
    with pytest.raises(ReleaseRefused, match=r"bouts is for one number of all records: .* Ask for transitions"):
        release(DATA, pf.Bouts("walk"))
    groups = DATA.groups
    uncounted = replace(DATA, groups=replace(groups, steps=None))
    with pytest.raises(ReleaseRefused, match=r"^48 groups have too many different steps to be counted: group by less"):
        release(uncounted, pf.Transitions())
    assert release(uncounted, pf.Histogram()).value.shape == (48, 3)
    for steps in (groups.steps[1:], groups.steps - 1, groups.steps + 9, np.zeros(3, dtype=int)):
        with pytest.raises(ParameterError, match=r"^steps has shape .*, expected \(48, k, k\)"):
            replace(groups, steps=steps)
    with pytest.raises(ParameterError, match=r"^groups.steps do not add up to transitions"):
        replace(DATA, groups=replace(groups, steps=groups.steps * 0))
