"""A comparison at several ε uses again what it computed, and says what a comparison at each of them says."""

import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.compare import contest as comparison
from pufferfish.compare.comparison import Comparison, ComparisonRow
from pufferfish.compare.contest import Contest
from pufferfish.errors import ParameterError
from pufferfish.mechanisms import MECHANISMS
from pufferfish.mechanisms.one_query import law_mechanism

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
FACTORS = (0.1, 0.5, 2.0, 10.0)


@pytest.mark.parametrize("kept", [8_000_000, 0], ids=["laws are kept", "laws are too large to keep"])
def test_mechanisms_are_made_once_and_laws_computed_once(
    kept: int, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    made: list[str] = []
    for kind in MECHANISMS:
        make = kind.of

        def counted(*given: object, _make=make, _name=kind.name, **more: object) -> object:
            made.append(_name)
            return _make(*given, **more)

        monkeypatch.setattr(kind, "of", counted)
    laws: list[int] = []
    pairs = law_mechanism.pairs_of_laws
    monkeypatch.setattr(law_mechanism, "pairs_of_laws", lambda *given: (laws.append(1), pairs(*given))[1])
    monkeypatch.setattr(law_mechanism, "_KEPT", kept)
    length = 60 if slow else 30
    contest = Contest(CHAIN, pf.Histogram(), length)
    contest.at(1.0)
    before = len(laws)
    assert not kept or before == 1  # two mechanisms share them
    epsilons = [*FACTORS] if slow else [*FACTORS[::3]]
    least = next(row for row in contest.at(1.0) if row.scale)
    curves = contest.curves(contest.calibration(least), epsilons)
    assert sorted(made) == sorted(kind.name for kind in MECHANISMS)
    assert len(laws) - before == (0 if kept else 1)  # once for all ε
    floor = contest.lower_bounds(least, epsilons)
    for i, epsilon in enumerate(epsilons):
        expected = {row.mechanism: row for row in pf.compare(CHAIN, pf.Histogram(), epsilon, length)}
        assert {curve[0].mechanism for curve in curves} == {name for name, row in expected.items() if row.scale}
        for row in (curve[i] for curve in curves):
            there = expected[row.mechanism]
            assert there.scale * (1 - 1e-9) <= row.scale <= there.scale * 1.001
            assert floor[epsilon] == pytest.approx(there.lower_bound, rel=1e-4)


def test_what_composes_is_recommended_before_what_needs_less_for_one_query() -> None:
    """For P = [[.2,.8],[.7,.3]] one count leaks far less than other queries of the same record-level loss."""
    rows = pf.compare(pf.MarkovChain([[0.2, 0.8], [0.7, 0.3]]), pf.Count("1"), 1.0, 100)
    assert rows[0].title == "ExactLaplace"
    assert not rows[0].composes
    best = next(row for row in rows if row.recommended)
    assert best.title == "LeakagePropagation"
    assert best.scale > 2 * rows[0].scale


def test_the_least_for_one_release_is_told_beside_the_least_that_adds_up() -> None:
    """Of a chain that alternates, where what composes needs many times the noise; both are data."""
    rows = pf.compare(pf.MarkovChain([[0.1, 0.9], [0.8, 0.2]]), pf.Count("1"), 1.0, 20)
    assert rows.least is not None
    assert rows.recommended is not None
    assert (rows.least.title, rows.recommended.title) == ("ExactLaplace", "LeakagePropagation")
    assert rows.least.scale == pytest.approx(0.61, abs=0.001)
    assert rows.recommended.scale == pytest.approx(5.41, abs=0.01)
    assert [row.mechanism for row in rows if row.least] == ["exact-laplace"]
    text = " ".join(str(rows).split())
    assert "1 ExactLaplace 0.610009" in text
    assert "* LeakagePropagation 5.4126" in text
    assert "1: the least for this release alone, ExactLaplace: pufferfish release --once takes it" in text
    assert "LeakagePropagation: it needs 8.9 times its noise" in text
    assert rows.to_frame()["least"].sum() == 1
    alike = pf.compare(CHAIN, pf.Histogram(), 1.0, 30)  # where both need as little, one does for all
    assert alike.least is alike.recommended
    assert "--once" not in str(alike)
    by_accuracy = pf.compare(pf.MarkovChain([[0.1, 0.9], [0.8, 0.2]]), pf.Count("1"), accuracy=3.0, length=20)
    assert by_accuracy.least.epsilon < by_accuracy.recommended.epsilon  # type: ignore[union-attr]
    assert "times its epsilon" in " ".join(str(by_accuracy).split())
    none = pf.compare(CHAIN, pf.Histogram(), 1.0, 30, mechanisms=["gk16"])
    assert none.least is none.recommended is None


def test_a_reason_of_several_mechanisms_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    theta = pf.HigherOrderChain([[[0.5, 0.5], [0.3, 0.7]], [[0.2, 0.8], [0.6, 0.4]]])
    monkeypatch.setenv("COLUMNS", "120")
    text = " ".join(str(pf.compare(theta, pf.Histogram(), 1.0, 20)).split())
    assert text.count("it covers Markov chains with one transition matrix") == 1
    assert "EntryDP, GK16, MQMApprox, MQMExact, MarkovQuilt, Wasserstein, ExactLaplace: it covers" in text


def test_seconds_are_those_that_pass(slow: bool) -> None:
    """Those of the rows and of the lower bound are nearly all; what was computed is not computed again."""
    k = 60 if slow else 25
    chain = pf.MarkovChain(np.random.default_rng(0).dirichlet(np.ones(k), size=k))
    start = time.perf_counter()
    found = pf.compare(chain, pf.Histogram(), 1.0, 300)
    passed = time.perf_counter() - start
    assert found.bound_seconds > 0
    assert sum(row.seconds for row in found) + found.bound_seconds > 0.8 * passed
    contest = found.contest
    assert isinstance(contest, Contest)
    assert found.recommended is not None
    assert contest.calibration(found.recommended) is contest.calibration(found.recommended)


def test_of_equal_noise_the_mechanism_that_covers_most_is_recommended() -> None:
    fair = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    rows = pf.compare(fair, pf.Count("1"), 1.0, 10)
    assert [row.title for row in rows if row.recommended] == ["LeakagePropagation"]


def test_without_correlated_records_that_compose_the_least_is_recommended() -> None:
    flu = pf.Cliques([0.1, 0.15, 0.5, 0.15, 0.1], states=["healthy", "flu"])
    rows = pf.compare(flu, pf.Count("flu"), 1.0)
    fit = [row for row in rows if row.reason is None]
    assert sum(row.recommended for row in rows) == 1
    composing = [row for row in fit if row.composes] or fit
    assert next(row for row in rows if row.recommended).scale == composing[0].scale


def test_only_the_mechanisms_that_are_named_are_asked() -> None:
    rows = pf.compare(CHAIN, pf.Histogram(), 1.0, 30, mechanisms=["propagation", "mqm-exact", "gk16"])
    assert [row.mechanism for row in rows] == ["propagation", "mqm-exact", "gk16"]  # by their noise, then who does not
    assert rows[0].recommended
    assert rows[0].over_lower_bound is not None
    shown = pf.compare(CHAIN, pf.Histogram(), 1.0, 30, mechanisms=[row.title for row in rows])
    assert [row.mechanism for row in shown] == [row.mechanism for row in rows], "as tables show them"


def test_what_takes_minutes_is_asked_only_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """On long chains, and on many of them; how long it takes follows from the sizes of the laws."""
    several = pf.ChainClass((CHAIN, pf.MarkovChain([[0.8, 0.2], [0.4, 0.6]], states=["rest", "active"])))
    asked = [(CHAIN, 10_000), (CHAIN, 20_000), (several, 20_000), (several, [20_000, 20_000]), (several, [20_000, 9])]
    ones = [pf.ExactLaplace(theta, length).seconds(pf.Histogram()) for theta, length in asked]
    times = [second / first for first, second in pairwise(ones)]
    assert times == pytest.approx([4, 2, 1.5, 1], rel=0.01)  # chains of one length are one, and a short one is little
    slow = pf.compare(several, pf.Histogram(), 1.0, 500_000)
    assert {row.mechanism for row in slow if row.reason and "not asked" in row.reason} == {
        "exact-laplace",
        "wasserstein",
    }
    assert next(row for row in slow if row.recommended).scale > 0
    monkeypatch.setattr(comparison, "_PATIENCE", 0.0)
    rows = {row.mechanism: row for row in pf.compare(CHAIN, pf.Histogram(), 1.0, 30)}
    assert rows["wasserstein"].reason == (
        'not asked, as it takes about 1 minute; --mechanisms wasserstein asks it (in Python mechanisms=["wasserstein"])'
    )
    assert pf.compare(CHAIN, pf.Histogram(), 1.0, 30, mechanisms=["wasserstein"])[0].reason is None


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ("propagation", r'expected a list of names, such as \["propagation"'),
        ([], "expected a list of names"),
        (["mqm-exakt"], r"there is no mechanism 'mqm-exakt'\. Did you mean 'mqm-exact'\? Mechanisms: entry-dp, "),
        (["gk16", "gk16"], "'gk16' is named twice"),
    ],
)
def test_names_of_no_mechanisms_are_refused(names: list[str], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        pf.compare(CHAIN, pf.Histogram(), 1.0, 30, mechanisms=names)


def test_what_a_preview_shows_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The laws of a query once for all mechanisms and ε, even if too large to be kept; a second preview takes none.

    Nor is the noise that it is about calibrated again.
    """
    monkeypatch.setattr(law_mechanism, "_KEPT", 0)
    laws: list[int] = []
    pairs = law_mechanism.pairs_of_laws
    monkeypatch.setattr(law_mechanism, "pairs_of_laws", lambda *given: (laws.append(1), pairs(*given))[1])
    contest = Contest(CHAIN, pf.Histogram(), 30)
    made = pf.LeakagePropagation(CHAIN, 30).calibrate(pf.Histogram(), 1.0)
    calibrated: list[str] = []
    calibrate = pf.LeakagePropagation.calibrate_strategy
    monkeypatch.setattr(
        pf.LeakagePropagation, "calibrate_strategy", lambda *given: (calibrated.append(""), calibrate(*given))[1]
    )
    curves = contest.curves(made)
    assert len(laws) == 1
    assert contest.curves(made) == curves
    assert len(laws) == 1
    assert not calibrated


def test_a_table_of_shapes_fits_into_a_hundred_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    numbers: dict[str, Any] = {"scale": 1234.56, "accuracy": 1234.5, "expected_l1_error": 1e-5, "lower_bound": 1.1}
    rows = (
        ComparisonRow(mechanism="exact-laplace", title="ExactLaplace", composes=False, least=True, **numbers),
        ComparisonRow(
            mechanism="propagation",
            title="LeakagePropagation",
            noise="best",
            recommended=True,
            seconds=1234.5,
            **numbers,
        ),
        ComparisonRow(mechanism="wasserstein", title="Wasserstein", composes=False, **numbers),
    )
    table = str(Comparison(rows, "a comparison", "shares")).splitlines()[1:5]
    firsts = [line[2:].split()[0] for line in table]
    assert firsts == ["mechanism", "ExactLaplace", "LeakagePropagation,", "Wasserstein"]  # no line is broken
    assert max(map(len, table)) <= 100


@pytest.mark.slow
def test_a_comparison_is_asked_again_at_other_epsilons() -> None:
    found = pf.compare(CHAIN, pf.Histogram(), 1.0, length=50)
    assert [row.scale for row in found.at(2.0)] == [
        row.scale for row in pf.compare(CHAIN, pf.Histogram(), 2.0, length=50)
    ]
    curve = found.curve()
    own = [row for row in curve if row.mechanism == "propagation"]
    assert len(own) == 41
    assert [row.epsilon for row in own] == pytest.approx([10 ** ((i - 20) / 20) for i in range(41)])
    assert {row.mechanism for row in curve} == {row.mechanism for row in found if row.reason is None}
    for row in curve:
        least = next(each for each in found.at(row.epsilon or 0.0) if each.mechanism == row.mechanism)
        assert (least.scale or 0) * (1 - 1e-9) <= (row.scale or 0) <= (least.scale or 0) * 1.002
        assert row.accuracy == pytest.approx(least.accuracy, rel=0.002, abs=0.0201)  # one record of 50
        assert row.composes is least.composes
    by_hand = Comparison(found.rows, "", "records")
    with pytest.raises(ParameterError, match="made by hand"):
        by_hand.at(1.0)
