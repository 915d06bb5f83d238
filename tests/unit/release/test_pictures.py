"""What pictures say: contents in titles, percent, values at bars, errors that can be seen or are told; new ones too."""

from itertools import pairwise

import msgspec
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import pufferfish as pf
from pufferfish._draw.figure import new_figure, titled
from pufferfish.cli import main
from pufferfish.compare.noise import draw_noise
from pufferfish.compare.rows import ComparisonRow
from pufferfish.release.show.values import values_part

FigureCanvasAgg = pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg

STATES = ["rest", "walk", "run"]
CHAIN = pf.MarkovChain([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.2, 0.4, 0.4]], states=STATES)
ROWS = pl.DataFrame(
    {
        "id": [s for s in "ab" for _ in range(400)],
        "t": [*range(400)] * 2,
        "x": [STATES[(i * i // 3 + s) % 7 % 3] for s in range(2) for i in range(400)],
        "one": ["all"] * 800,
    }
)
READING = ["--state", "x", "--subject", "id", "--time", "t", "--max-gap", "1"]


def released(query, epsilon, **reading):
    data = pf.read_sequences(ROWS, "x", subject="id", time="t", max_gap="1", states=STATES, **reading)
    return pf.release(data, query, pf.LeakagePropagation(CHAIN, length=data.length).calibrate(query, epsilon))


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def title(figure):
    return figure.get_suptitle().replace("\n", " ")


def test_shares_are_in_percent_and_errors_are_seen_or_told():
    for epsilon, told in ((0.5, "line: noisy value"), (1e3, "too little to be seen here")):
        found = released(pf.Histogram(), epsilon)
        figure = found.plot()
        assert "Share of the 800 records in each of 3 states" in title(figure)
        assert f"{100 * found.accuracy():.3g} percentage points" in title(figure)
        assert told in title(figure)
        assert [text[-1] for text in texts(figure)] == ["%"] * 3
        figure.canvas.draw()
        assert all("%" in label.get_text() for label in figure.axes[0].get_yticklabels())
    assert texts(released(pf.Count("walk"), 1e3).plot())[0].isdigit()


def test_quantiles_are_in_picture_and_table(tmp_path):
    found = released(pf.Quantiles([0.25, 0.5]), 2.0)
    quantiles = found.quantiles
    assert texts(found.plot()) == [f"{100 * q.share:g}%: {q.state}" for q in quantiles]
    expected = [(q.share, q.state, q.low, q.high) for q in quantiles]
    assert found.to_frame().rows() == expected
    ROWS.write_csv(tmp_path / "x.csv")
    pf.write_model(pf.Model(theta=CHAIN), tmp_path / "m.json")
    command = ["release", tmp_path / "x.csv", *READING, "--model", tmp_path / "m.json", "--query", "quantiles:0.25,0.5"]
    command += ["--epsilon", "2", "--output", tmp_path / "r.json", "--csv", tmp_path / "r.csv", "--overwrite"]
    for _ in "12":  # the second takes the first one's table for what it is
        ended = CliRunner().invoke(main, list(map(str, command)))
        assert ended.exit_code == 0, ended.output
    assert pl.read_csv(tmp_path / "r.csv").rows() == pf.Release.from_json(tmp_path / "r.json").to_frame().rows()


def test_one_group_is_not_all_of_them(tmp_path):
    ROWS.write_csv(tmp_path / "x.csv")
    pf.write_model(pf.Model(theta=CHAIN), tmp_path / "m.json")
    command = ["release", tmp_path / "x.csv", *READING, "--model", tmp_path / "m.json", "--query", "count:run"]
    command += ["--epsilon", "2", "--output", tmp_path / "r.json", "--by", "one"]
    ended = CliRunner().invoke(main, list(map(str, command)))
    assert ended.exit_code == 0, ended.output
    assert "for the one group: discrete Laplace noise of scale" in ended.output
    assert "on one value" in ended.output


def test_models_of_every_kind_are_drawn_by_fit_too(tmp_path):
    matrix = CHAIN.transition_matrix
    for theta, panels in (
        (CHAIN, 3),  # a heat map, its colours, and how long states last
        ([CHAIN, pf.MarkovChain(np.eye(3) * 0.5 + 0.5 / 3, states=STATES)], 3),
        (pf.MarkovChain(np.eye(2), "any"), 3),
        (pf.PeriodicChain([matrix] * 7, clock="weekday", step="1h", states=STATES), 3),
        (pf.HigherOrderChain([matrix] * 3, states=STATES), 2),
        (pf.IntervalChain(matrix * 0.9, matrix * 0.9 + 0.1, states=STATES), 3),
        (pf.ForgettingClass([3, 9], [0.3, 0.8], STATES), 1),
    ):
        figure = pf.draw_model(theta)
        assert len(figure.axes) == panels
        assert "Θ: stated by the user" in title(figure)
        assert figure._repr_png_()[0].startswith(b"\x89PNG")
    with pytest.raises(pf.NotApplicableError, match="draw_network"):
        pf.draw_model(pf.BayesianNetwork({"a": pf.CPT(["n", "y"], [0.5, 0.5])}))
    ROWS.write_csv(tmp_path / "x.csv")
    command = ["fit", tmp_path / "x.csv", *READING, "--output", tmp_path / "m.json", "--plot"]
    ended = CliRunner().invoke(main, list(map(str, [*command, tmp_path / "m.txt"])))
    assert (ended.exit_code, (tmp_path / "m.json").exists()) == (2, False)
    ended = CliRunner().invoke(main, list(map(str, [*command, tmp_path / "m.svg"])))
    assert ended.exit_code == 0, ended.output
    assert (tmp_path / "m.svg").read_bytes().startswith(b"<?xml")


def test_bounds_are_drawn_as_bounds_and_not_as_an_estimate():
    lower, upper = np.array([[0.8, 0.1], [0.25, 0.5]]), np.array([[0.9, 0.2], [0.5, 0.75]])
    for theta, cells, lasts in (
        (
            pf.IntervalChain(lower, upper),
            ["0.800 – 0.900", "0.100 – 0.200", "0.250 – 0.500", "0.500 – 0.750"],
            ["5 – 10", "2 – 4"],
        ),
        (pf.BinaryChainInterval(0.5, 0.75), ["0.500 – 0.750", "0.250 – 0.500"], ["2 – 4", "2 – 4"]),
    ):
        figure = pf.draw_model(theta)
        told = texts(figure)
        assert told[: len(cells)] == cells
        assert told[4:] == lasts
        assert title(figure).startswith("Bounds on the transition probabilities")
        assert "Bounds are no estimate" in title(figure)
        assert "members" not in title(figure)
        low, high = (1 / (1 - stay) for stay in ((0.8, 0.9) if isinstance(theta, pf.IntervalChain) else (0.5, 0.75)))
        bar = figure.axes[1].patches[0]
        assert (bar.get_x(), bar.get_x() + bar.get_width()) == pytest.approx((low, high))
    assert texts(pf.draw_model(pf.IntervalChain(np.eye(2) / 2, np.ones((2, 2)))))[4:] == ["2 or more, or always"] * 2


def test_of_several_chains_the_least_and_the_most_are_drawn_and_each_has_a_point():
    other = pf.MarkovChain(np.eye(3) * 0.5 + 0.5 / 3, states=STATES)
    figure = pf.draw_model([CHAIN, other])
    assert "from the least to the most of 2 chains" in title(figure)
    assert texts(figure)[0] == "0.667 – 0.800"
    assert texts(figure)[9:] == ["3 – 5", "2.5 – 3", "1.67 – 3"]
    points = [line.get_xdata().tolist() for line in figure.axes[1].lines]
    assert points == [pytest.approx([5, 2.5, 5 / 3]), pytest.approx([3, 3, 3])]


def test_a_clock_has_the_ends_of_all_phases_and_hours_that_exist():
    matrix = CHAIN.transition_matrix
    hours = [matrix if hour % 2 else np.full((3, 3), 1 / 3) for hour in range(24)]
    figure = pf.draw_model(pf.PeriodicChain(hours, clock="hour", step="1h", states=STATES))
    assert "from the least to the most of 24 hours of the clock" in title(figure)
    assert texts(figure)[0] == "0.333 – 0.800"
    assert [int(label.get_text()) for label in figure.axes[1].get_xticklabels()] == list(range(0, 24, 3))
    week = pf.draw_model(pf.PeriodicChain([matrix] * 7, clock="weekday", step="1h", states=STATES))
    assert [label.get_text() for label in week.axes[1].get_xticklabels()][0::6] == ["Mon", "Sun"]


def test_forgetting_is_drawn_as_points_and_as_what_follows_from_them():
    figure = pf.draw_model(pf.ForgettingClass([3, 9], [0.3, 0.8], STATES))
    line, points = figure.axes[0].lines
    assert (points.get_linestyle(), points.get_xydata().tolist()) == ("None", [[3, 0.3], [9, 0.8]])
    assert line.get_drawstyle() == "steps-post"
    after = dict(line.get_xydata().tolist())
    assert (after[0], after[3]) == pytest.approx((0, 0.3))
    assert (after[6], after[9]) == pytest.approx((1 - 0.7**2, 0.8))
    assert "what follows" in title(figure)


def test_a_ledger_draws_its_budget_and_names_the_filter_of_an_entry(tmp_path):
    data = pf.read_sequences(ROWS, "x", subject="id", time="t", max_gap="1", states=STATES)
    part = pf.read_sequences(ROWS, "x", subject="id", time="t", max_gap="1", states=STATES, where="t < 50")
    ledger = pf.Ledger(pf.LeakagePropagation(CHAIN, length=data.length), 2.0, base=data)
    ledger.save(tmp_path / "book.json")
    for each in (data, part):
        ledger.spend(pf.LeakagePropagation(CHAIN, length=each.length).calibrate(pf.Count("run"), 0.3), data=each)
    ledger.spend(0.01, note="by hand")
    assert [entry.where for entry in pf.Ledger.open(tmp_path / "book.json").entries] == [None, "t < 50", None]
    ended = CliRunner().invoke(main, ["ledger", "show", f"{tmp_path}/book.json", "--plot", f"{tmp_path}/book.png"])
    assert ended.exit_code == 0, ended.output
    assert "where t < 50" in " ".join(ended.output.split())
    assert (tmp_path / "book.png").read_bytes().startswith(b"\x89PNG")
    assert ledger.to_frame()["part"].to_list() == [None, "where t < 50, 100 of 800 steps", None]
    assert "budget 2" in texts(ledger.plot())
    assert "spent" in title(ledger.plot())
    assert len(pf.Ledger(ledger.bound, 2.0).plot().axes) == 1  # nothing is spent yet


def test_numbers_of_switches_have_no_digits_that_mean_nothing():
    for query in (pf.Transitions(), pf.Transitions(relative=True), pf.Switches(), pf.Switches(relative=True)):
        found = released(query, 5.0)
        told = found.switches()
        assert len(repr(told)) <= 11, told
        if query.kind.startswith("switch"):
            assert told == int(told)


def test_titles_end_after_words():
    origin = "fitted to public data: survey-2019.csv, column activity, 23,040 records of 8 subjects; "
    chain = pf.MarkovChain(CHAIN.transition_matrix, states=STATES)
    told = title(pf.draw_model(pf.ChainClass((chain,), origin=origin + "from 1999 to 2019; " * 5 + "the end")))
    assert "survey-2019.csv, column activity, 23,040 records of 8 subjects;" in told
    assert told.endswith("from 1999 to 2019; the end")
    long = title(pf.draw_model(pf.ChainClass((chain,), origin="a word and others " * 99)))
    assert long.endswith((" a …", " word …", " and …", " others …"))
    assert len(long) < 700


def many_rows(query, by=None, epsilon=5.0, states=None, **columns):
    rows = pl.concat([ROWS.with_columns(pl.col("id") + str(i)) for i in range(15)]).with_columns(
        g=pl.col("t") % 2, **columns
    )
    rows = rows.with_columns(pl.col("x").replace(dict(zip(STATES, states or STATES, strict=True))))
    names = states or STATES
    chain = pf.MarkovChain(CHAIN.transition_matrix, states=names)
    data = pf.read_sequences(rows, "x", subject="id", time="t", max_gap="1", states=names, by=by)
    return pf.release(data, query, pf.LeakagePropagation(chain, length=data.length).calibrate(query, epsilon))


def test_axes_and_colours_have_commas_where_labels_have_them():
    for figure in (many_rows(pf.Histogram(relative=False)).plot(), many_rows(pf.Transitions()).plot()):
        figure.canvas.draw()
        shown = [label.get_text() for axes in figure.axes for label in axes.get_yticklabels()]
        large = [text for text in [*shown, *texts(figure)] if len(text.replace(",", "")) >= 4 and text[0].isdigit()]
        assert large
        assert all("," in text for text in large)
        assert "12,000 records" in title(figure) or "steps" in title(figure)


def test_errors_that_are_not_drawn_leave_no_mark():
    for by in (None, ["g"]):
        for epsilon, lines in ((0.02, True), (1e4, False)):
            figure = many_rows(pf.Histogram(), by=by, epsilon=epsilon).plot()
            assert all(bool(axes.collections) is lines for axes in figure.axes)
            assert ("too little to be seen here" in title(figure)) is not lines


def test_long_names_stand_beside_bars_that_lie():
    names = ["in_intensive_care", "at_home_or_elsewhere", "under_observation"]
    (axes,) = many_rows(pf.Histogram(), states=names).plot().axes
    assert [label.get_text().replace("\n", "") for label in axes.get_xticklabels()] == names
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {0}
    towns = pl.Series([f"hospital_of_the_town_{i % 8}" for i in range(6000)])
    (axes,) = many_rows(pf.Count("run"), by=["town"], town=pl.concat([towns, towns])).plot().axes
    assert [label.get_text()[-1] for label in axes.get_yticklabels()] == list("01234567")
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("town", "records: run")
    nodes = [*names, "smoker"]
    network = pf.BayesianNetwork({name: pf.CPT(["no", "yes"], [0.5, 0.5]) for name in nodes})
    table = pl.DataFrame({name: ["no", "yes"] * 100 for name in nodes}).with_columns(g=pl.Series([1, 2, 2, 1] * 50))
    query = pf.Marginals()
    for by in (None, ["g"]):
        rows = pf.read_rows(table, network, by=by)
        found = pf.release(rows, query, pf.LeakagePropagation(network, length=rows.length).calibrate(query, 9.0))
        for axes in found.plot().axes:
            assert [label.get_text() for label in axes.get_yticklabels()] == list(found.query.labels)
            assert axes.patches[0].get_height() == 0.8
            assert axes.get_ylim()[0] > axes.get_ylim()[1]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_names_of_states_do_not_overlap_in_transitions(order):
    names = ["resting at home", "walking", "running", "cycling"]
    tensor = np.random.default_rng(0).dirichlet(np.ones(4), (4,) * order)
    figure = pf.draw_model(pf.HigherOrderChain(tensor, "stationary", states=names))
    figure._repr_png_()  # places the labels
    axes, renderer = figure.axes[0], FigureCanvasAgg(figure).get_renderer()
    if order < 3:
        assert all("…" not in label.get_text() for label in axes.get_yticklabels())
    flat = [label for label in axes.get_xticklabels() if label.get_rotation() == 0]
    boxes = [label.get_window_extent(renderer) for label in flat]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert axes.get_window_extent(renderer).width > 120, "room is left for the colours"


def test_hours_are_not_turned_and_panels_share_one_label():
    rows = ROWS.with_columns(slot=pl.col("t") % 24)
    data = pf.read_sequences(rows, "x", subject="id", time="t", max_gap="1", states=STATES, by=["slot"])
    query = pf.Histogram()
    bound = pf.LeakagePropagation(CHAIN, length=data.length)
    figure = pf.release(data, query, bound.calibrate(query, 5.0)).plot()
    assert [label.get_rotation() for label in figure.axes[0].get_xticklabels()] == [0] * 12
    assert (figure.get_supylabel(), {axes.get_ylabel() for axes in figure.axes}) == ("share of records", {""})
    figure.canvas.draw()
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert sum(low <= tick <= high for tick in axes.get_yticks()) >= 4


def test_a_picture_says_once_of_how_much_it_is_and_no_word_stands_alone():
    reading = {"subject": "id", "time": "t", "max_gap": "1", "states": STATES}
    data = pf.read_sequences(ROWS, "x", **reading, by=["id"])
    bound = pf.LeakagePropagation(CHAIN, length=data.length)
    plain = pf.read_sequences(ROWS, "x", **reading)
    n = f"{sum(data.lengths):,}"
    for table, query, said in (
        (plain, pf.Histogram(), f"of the {n} records"),
        (plain, pf.Count("run"), f"n = {n}"),
        (plain, pf.Transitions(), " steps"),
        (data, pf.Histogram(), f"n = {n}"),
    ):
        figure = pf.release(table, query, bound.calibrate(query, 1.0)).plot()
        assert said in title(figure)
        assert title(figure).count(n) <= 1, title(figure)
    for words in ("noisy value ± 5 with 95% probability each, too little to be seen here", "a " * 40, "word " * 23):
        for wide in (3.0, 4.2, 5.0, 6.4):
            figure = new_figure(wide, 3.0)
            titled(figure, words)
            lines = figure.get_suptitle().split("\n")
            assert " ".join(lines).lower() == words.strip().lower()
            assert max(map(len, lines)) - min(map(len, lines)) <= 16, lines
            assert len(lines) == 1 or " " in lines[-1]


def test_the_noise_of_all_mechanisms_says_of_what_it_is_and_hides_no_line(tmp_path):
    scales = {"propagation": 2, "exact-laplace": 2.001, "group-dp": 50}
    named = {"propagation": "LeakagePropagation", "exact-laplace": "ExactLaplace", "group-dp": "GroupDP"}
    epsilons = (0.5, 1.0, 2.0)
    curves = [
        [ComparisonRow(mechanism=name, title=named[name], epsilon=e, scale=scale / e) for e in epsilons]
        for name, scale in scales.items()
    ]
    floor = {e: 1.9 / e for e in epsilons}
    figure = draw_noise(curves, floor, ["noise of a histogram, 5,000 records"], "records")
    (axes,) = figure.axes
    labels = [text.get_text().replace("\n", " ") for text in axes.get_legend().get_texts()]
    assert "ExactLaplace, the same as LeakagePropagation within 1%" in labels
    assert any(label.startswith("too little: ") for label in labels)
    widths = {line.get_label(): line.get_linewidth() for line in axes.lines}
    assert widths["LeakagePropagation"] > 2 * widths["ExactLaplace, the same as\nLeakagePropagation within 1%"]
    assert (axes.get_ylabel(), title(figure)) == ("noise scale (records)", "Noise of a histogram, 5,000 records")
    pf.write_model(pf.Model(theta=CHAIN), tmp_path / "m.json")
    drawn = f"{tmp_path}/n.svg"
    asked = ["compare", f"{tmp_path}/m.json", "--length", "1500,20", "--query", "count:run", "--epsilon", "1"]
    asked += ["--mechanisms", "propagation", "--plot", drawn]
    ended = CliRunner().invoke(main, asked)
    assert ended.exit_code == 0, ended.output
    assert "Noise against ε for the query count: 2 chains with 1,520 records" in (tmp_path / "n.svg").read_text("utf-8")


def test_a_mechanism_without_a_mark_of_its_own_is_drawn_too():
    names = ("propagation", "my-bound")
    rows = [
        [ComparisonRow(mechanism=name, title=name.title(), epsilon=e, scale=2.0) for e in (1.0, 2.0)] for name in names
    ]
    (axes,) = draw_noise(rows, {}).axes
    assert [line.get_label() for line in axes.lines] == ["Propagation", "My-Bound, the same as\nPropagation within 1%"]


def test_weekdays_have_names_in_pictures_and_on_the_page_alone():
    """Panels, axes and legends; records and tables keep their numbers, 0 for Monday."""
    times = pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2024, 1, 14, 23), "1h", eager=True)
    rows = pl.DataFrame({"time": times, "x": (STATES * 112)[: len(times)], "half": [i % 2 for i in range(len(times))]})
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    for query, by in ((pf.Histogram(), []), (pf.Count("walk"), []), (pf.Count("walk"), ["half"])):
        data = pf.read_sequences(rows, "x", time="time", max_gap="1h", states=STATES, by=["weekday(time)", *by])
        bound = pf.LeakagePropagation(CHAIN, length=data.length)
        found = pf.release(data, query, bound.calibrate(query, 1.0))
        figure = found.plot()
        figure.canvas.draw()
        told = [axes.get_title("left").split(" ")[0] for axes in figure.axes]
        told += [label.get_text() for axes in figure.axes for label in axes.get_xticklabels()]
        assert [name for name in told if name in days] == days
        assert all(day in values_part(found) for day in days)
        assert found.groups.cells[0][0] == "0"
        assert found.to_frame()["weekday(time)"].unique().sort().to_list() == list(range(7))


def test_values_below_their_error_are_hollow_and_have_a_sign():
    """Bars with their numbers, cells of steps, and the points of lines; the words below say what it means."""
    found = released(pf.Histogram(relative=False), 1.0)
    error = found.accuracy()
    made = msgspec.structs.replace(found, values=[error, 9 * error, -error], noisy_values=[error, 9 * error, -error])
    figure = made.plot()
    assert [text.startswith("○") for text in texts(figure)] == [True, False, True]
    faces = [patch.get_facecolor() == (1, 1, 1, 1) for patch in figure.axes[0].patches]
    assert faces == [True, False, True]
    assert "hollow: no larger than its error" in title(figure)
    sure = msgspec.structs.replace(found, values=[9 * error] * 3, noisy_values=[9 * error] * 3)
    assert "hollow" not in title(sure.plot())
    steps = released(pf.Transitions(), 1.0)
    step_error = steps.accuracy()
    some = [step_error / 2] + [9 * step_error] * 8
    assert sum(text.startswith("○") for text in texts(msgspec.structs.replace(steps, values=some).plot())) == 1


def test_transitions_of_groups_are_a_table_for_each():
    """Up to twelve groups a table of colours each, with their numbers; of more groups a panel for each output."""
    found = many_rows(pf.Transitions(), by="g")
    figure = found.plot()
    told = texts(figure)
    assert found.groups is not None
    assert found.groups.steps is not None
    for cell, steps in zip(found.groups.cells, found.groups.steps, strict=True):
        assert f"{cell[0]} ({steps:,} steps)" in [axes.get_title(loc="left") for axes in figure.axes]
    assert {"from", "to"} <= {figure.get_supylabel(), figure.get_supxlabel()}
    assert any(text.replace(",", "").isdigit() for text in told)
    many = many_rows(pf.Transitions(), by="t").plot()
    assert "each panel has its own scale" in title(many)
