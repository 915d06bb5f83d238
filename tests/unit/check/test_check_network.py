"""Whether a network describes public data: tests against enumeration and scipy, and verdicts on simulated rows."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import pufferfish as pf
from pufferfish.check.independence import POWER, TIMES, Dependence, dependence, enough_rows, holm, upper_tail
from pufferfish.errors import NotApplicableError, ParameterError
from sampled_networks import WARD, published, rows_of, without

FITTED = 4_000


def of(check: pf.NetworkCheck, *nodes: str) -> pf.PairCheck:
    (pair,) = [pair for pair in (*check.pairs, *check.arrows) if set(pair.nodes) == set(nodes)]
    return pair


# -- The test --------------------------------------------------------------------------------------------------------


def test_the_tail_is_that_of_chi_squared() -> None:
    for freedom, tail in itertools.product([1, 2, 3, 7, 40, 700], [0.9, 0.5, 0.03, 1e-4, 1e-11]):
        assert upper_tail(stats.chi2.isf(tail, freedom), freedom) == pytest.approx(tail, rel=1e-9)


def test_two_by_two_is_the_exact_test_given_the_margins() -> None:
    """Against a plain sum over all tables with the same margins, ordered by G."""
    for counts in ([[10, 190], [198, 1602]], [[3, 1], [2, 9]], [[0, 5], [4, 2]]):
        table = np.array(counts)
        a, b, n = table[0].sum(), table[:, 0].sum(), table.sum()
        law = {}
        for x in range(max(0, a + b - n), min(a, b) + 1):
            cells = np.array([[x, a - x], [b - x, n - a - b + x]])
            g = 2 * sum(c * math.log(c * n / (r * k)) for c, r, k in _cells(cells))
            law[x] = g, stats.hypergeom.pmf(x, n, a, b)
        mine = law[table[0, 0]][0]
        told = dependence(table[None])
        assert told.g == pytest.approx(mine)
        assert told.p == pytest.approx(sum(p for g, p in law.values() if g >= mine - 1e-9), rel=1e-8)
        assert told.expected == pytest.approx(min(r * k / n for r in table.sum(1) for k in table.sum(0)))


def _cells(cells: Any) -> list[tuple[float, float, float]]:
    return [
        (c, r, k)
        for row, r in zip(cells, cells.sum(1), strict=True)
        for c, k in zip(row, cells.sum(0), strict=True)
        if c
    ]


def test_strata_of_two_by_two_add_up() -> None:
    """Against an enumeration of the tables of two strata; the law is rounded up to a step."""
    strata = np.array([[[3, 4], [2, 11]], [[5, 1], [3, 6]]])
    laws: list[list[tuple[float, float]]] = []
    for table in strata:
        a, b, n = int(table[0].sum()), int(table[:, 0].sum()), int(table.sum())
        laws.append([])
        for x in range(max(0, a + b - n), min(a, b) + 1):
            cells = _cells(np.array([[x, a - x], [b - x, n - a - b + x]]))
            laws[-1].append(
                (2 * sum(c * math.log(c * n / (r * k)) for c, r, k in cells), stats.hypergeom.pmf(x, n, a, b))
            )
    told = dependence(strata)
    p = sum(p * q for (g, p), (h, q) in itertools.product(*laws) if g + h >= told.g - 1e-9)
    assert p - 1e-12 <= told.p <= p + 0.03
    assert told.freedom == 2


def test_larger_tables_are_nearly_chi_squared_and_never_more_often_small() -> None:
    rng = np.random.default_rng(5)
    ps = []
    for _ in range(2_000):
        first, second = rng.choice(3, 60, p=[0.8, 0.15, 0.05]), rng.choice(4, 60, p=[0.6, 0.3, 0.06, 0.04])
        counts = np.zeros((1, 3, 4), dtype=np.int64)
        np.add.at(counts[0], (first, second), 1)
        ps.append(dependence(counts).p)
    for level in (0.1, 0.01, 0.002):
        assert np.mean(np.array(ps) <= level) <= level + 3 * math.sqrt(level / 2_000)
    plain = stats.chi2_contingency(np.array([[40, 90, 70], [60, 80, 30]]), lambda_="log-likelihood", correction=False)
    assert dependence(np.array([[[40, 90, 70], [60, 80, 30]]])).p == pytest.approx(plain.pvalue, rel=1e-6)


def test_what_is_given_may_leave_nothing_open() -> None:
    assert dependence(np.array([[[5, 0], [0, 0]], [[0, 0], [0, 5]]])).freedom == 0
    assert dependence(np.zeros((3, 2, 2), dtype=np.int64)).freedom == 0


def test_enough_rows_are_those_that_show_a_strong_dependence() -> None:
    """Rows of which rare values meet three times as often, as the answer is yes or no: the share that is found."""
    rng = np.random.default_rng(3)
    for expected, level in ((1.0, 0.01), (2.0, 0.01), (8.0, 0.01), (12.0, 1e-4)):
        n, a = 20_000, 400
        b = round(expected * n / a)
        found = []
        for x in rng.poisson(TIMES * expected, 400):
            x = min(int(x), b)
            found.append(dependence(np.array([[[x, a - x], [b - x, n - a - b + x]]])).p <= level)
        enough = enough_rows(Dependence(0.0, 1, 1.0, expected, (0, 0)), level)
        assert enough == (np.mean(found) >= POWER), (expected, level, np.mean(found))


def test_holm_shares_the_level_by_weights() -> None:
    ps = [0.004, 0.02, 0.03, 0.6]
    assert holm(ps, [1] * 4, 0.05) == [True, False, False, False]
    assert holm(ps, [1, 8, 1, 1], 0.05) == [True, True, False, False]
    assert holm([], [], 0.05) == []
    rng = np.random.default_rng(0)
    wrong = sum(any(holm(list(rng.random(12)), [1 + i for i in range(12)], 0.1)) for _ in range(4_000))
    assert wrong / 4_000 <= 0.1 + 3 * math.sqrt(0.09 / 4_000)


# -- Verdicts --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_where_nothing_is_wrong_it_says_go_on(slow: bool) -> None:
    wrong = 0
    runs = 40 if slow else 12
    for seed in range(runs):
        table = rows_of(WARD, FITTED, seed=100 + seed)
        fitted = pf.fit_network(rows_of(WARD, FITTED, seed=500 + seed), list(WARD.edges))
        for model in (WARD, pf.fit_network(table, list(WARD.edges)), fitted):
            check = pf.check_model(model, table, public=True)
            wrong += check.verdict.word != "go on"
    assert wrong <= 1


def test_an_arrow_that_is_missing_is_found_with_what_it_leaks() -> None:
    table = rows_of(WARD, FITTED, seed=7)
    for arrow in WARD.edges:
        check = pf.check_model(without(WARD, arrow, table), table, public=True)
        pair = of(check, *arrow)
        assert pair.judged == "dependent", arrow
        assert max(check.pairs, key=lambda other: other.gain) == pair
    check = pf.check_model(without(WARD, ("either", "xray"), table), table, public=True)
    pair = of(check, "either", "xray")
    assert check.verdict.word == "do not go on"
    assert pair.richer is not None
    assert pair.richer.leakage > 1.1
    assert "either and xray are not independent" in str(check.verdict)
    assert "next: add either->xray to its arrows (multiplier" in str(check.verdict)
    (remedy,) = check.verdict.remedies
    assert (remedy.kind, remedy.noise_multiplier) == ("arrow", pair.richer.noise_multiplier)
    assert remedy.command.startswith("pufferfish fit TABLE --arrows '")
    assert "either->xray' --output network.json" in remedy.command
    # the noise of the model, under the network with that arrow: counted by hand
    network = without(WARD, ("either", "xray"), table).networks[0]
    counts = table.group_by("either", "xray").len()
    law = {tuple(row[:2]): row[2] for row in counts.rows()}
    old = network.cpts["xray"].table
    cells = [[law.get((e, x), 0) + 10 * old[i] for i, x in enumerate(["no", "yes"])] for e in ("no", "yes")]
    rows = [[c / sum(row) for c in row] for row in cells]
    more = pf.BayesianNetwork({**network.cpts, "xray": pf.CPT(["no", "yes"], rows, ["either"])})
    noise = pf.LeakagePropagation(network, length=FITTED).calibrate(pf.Marginals(), 1.0)
    leaks = pf.LeakagePropagation(more, length=FITTED).leakage(noise.node_loss)
    assert pair.richer.leakage == pytest.approx(leaks, rel=1e-9)


def test_what_rows_are_too_few_for_is_said() -> None:
    table = rows_of(WARD, 400, seed=2)
    check = pf.check_model(WARD, table, public=True)
    pair = of(check, "rare", "lung")
    assert pair.judged == "too few"
    assert pair.expected < 2
    assert set(pair.rarest) == {"yes"}
    assert "there are too few data to judge" in str(check.verdict)
    assert "would meet by chance in" in str(check.verdict)
    few = rows_of(WARD, 25, seed=2)
    doubt = pf.check_model(WARD, few, public=True)
    assert doubt.verdict.word == "in doubt"
    assert "25 rows are few" in str(doubt.verdict)
    assert any(arrow.judged == "too few" for arrow in doubt.arrows)
    assert "of the model:" in str(doubt.verdict)


def test_tables_of_another_population_are_found() -> None:
    other = pf.BayesianNetwork({**WARD.cpts, "xray": pf.CPT(["no", "yes"], [[0.8, 0.2], [0.5, 0.5]], ["either"])})
    check = pf.check_model(other, rows_of(WARD, FITTED, seed=3), public=True)
    assert check.gain > check.clearly
    assert check.verdict.word == "do not go on"
    assert "fit its tables to these data" in str(check.verdict)
    impossible = pf.BayesianNetwork({**WARD.cpts, "smoke": pf.CPT(["no", "yes"], [1.0, 0.0])})
    check = pf.check_model(impossible, rows_of(WARD, FITTED, seed=3), public=True)
    assert check.gain == math.inf
    assert "some of the rows are impossible under the model" in str(check.verdict)


def test_latent_nodes_are_left_out_and_named() -> None:
    table = rows_of(WARD, FITTED, seed=4).drop("lung")
    check = pf.check_model(WARD, table, public=True)
    assert set(check.unread) == {"lung", "either"}
    assert {node for pair in check.pairs for node in pair.nodes} == {"smoke", "age", "rare", "xray"}
    assert "not checked, because they or their parents have no column: lung and either" in str(check)


def test_a_check_shows_and_writes_itself(tmp_path: Path) -> None:
    table = rows_of(WARD, FITTED, seed=6)
    check = pf.check_model(without(WARD, ("smoke", "lung"), table), table, public=True)
    text = str(check)
    assert text.startswith("Do not go on.\n")
    assert "smoke" in text.splitlines()[1]
    assert "<table" in check._repr_html_()
    check.to_json(tmp_path / "c.json")
    written = json.loads((tmp_path / "c.json").read_text())
    assert (written["format"], written["kind"]) == ("pufferfish-check", "Bayesian networks")
    assert len(written["pairs"]) + len(written["arrows"]) == 15


def test_refusals() -> None:
    table = rows_of(WARD, 100, seed=1)
    with pytest.raises(ParameterError, match="public=True"):
        pf.check_model(WARD, table)
    with pytest.raises(ParameterError, match="state is 'smoke'"):
        pf.check_model(WARD, table, "smoke", public=True)
    with pytest.raises(NotApplicableError, match="2 networks, but a check covers one"):
        pf.check_model([WARD, WARD], table, public=True)
    with pytest.raises(ParameterError, match="time is not an option"):
        pf.check_model(WARD, table, public=True, time="t")
    with pytest.raises(ParameterError, match="state is None"):
        pf.check_model(pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), pl.DataFrame({"s": ["0", "1"]}), public=True)  # type: ignore[call-overload]


# -- Published networks ----------------------------------------------------------------------------------------------


def test_asia_every_missing_arrow_is_found_but_one_that_5000_rows_are_too_few_for() -> None:
    asia = published("asia")
    table = rows_of(asia, 5_000, seed=1)
    for arrow in asia.edges:
        pair = of(pf.check_model(without(asia, arrow, table), table, public=True), *arrow)
        assert pair.judged == ("too few" if arrow == ("asia", "tub") else "dependent"), arrow


@pytest.mark.slow
def test_child_the_weakest_arrows_are_found(slow: bool) -> None:
    child = published("child")
    table = rows_of(child, 5_000, seed=3)
    told = pf.check_model(child, table, public=True)
    assert told.verdict.word == "go on"
    weakest = sorted(told.arrows, key=lambda pair: pair.gain)[: 8 if slow else 2]
    for arrow in weakest:
        first, second = arrow.nodes
        check = pf.check_model(without(child, (first, second), table), table, public=True)
        assert of(check, first, second).judged == "dependent"
