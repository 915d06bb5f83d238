"""What pictures say: contents in titles, percent, values at bars, errors that can be seen or are told; new ones too."""

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import pufferfish as pf
from pufferfish.cli import main
from pufferfish.comparison_row import ComparisonRow

pytest.importorskip("matplotlib")

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


def test_a_mechanism_without_a_mark_of_its_own_is_drawn_too():
    from pufferfish.report.plot import draw_noise

    names = ("propagation", "my-bound")
    rows = [ComparisonRow(mechanism=name, title=name.title(), epsilon=1.0, noise_multiplier=2.0) for name in names]
    (axes,) = draw_noise({1.0: rows, 2.0: rows}).axes
    assert [line.get_label() for line in axes.lines] == ["Propagation", "My-Bound"]
