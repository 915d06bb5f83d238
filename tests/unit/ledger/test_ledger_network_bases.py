"""What a ledger of networks refuses, and what belongs to its base: one clear line, and nothing is spent."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from ledgers import CHAIN, ledger_of as chain_ledger, read, spends_nothing
from network_ledgers import APART, COLLIDER, LINE, YES_NO, in_file, ledger_of, quilts, rows_of
from pufferfish.data import RowsBase
from pufferfish.errors import BudgetExceeded, DataError, ParameterError, PufferfishError, QueryError, ReleaseRefused
from pufferfish.ledger import Ledger

COUNT = pf.Subset(pf.Count("yes"), ["a", "b", "c"])
JOINT = pf.JointDistribution([["no", "no"], ["yes", "yes"]], [0.4, 0.6], states=YES_NO)

# Bad input

BAD_LOSSES = [
    math.nan,
    math.inf,
    -0.1,
    0,
    None,
    "x",
    [],
    {},
    {"a": 0},
    {"z": 0.1},
    {"a": -0.1},
    {"a": "x"},
    {"a": [0.1, 0.1]},
    {"a": np.ones((3, 3))},
    {"a": np.eye(2)},
    {"a": 10**400},
    object(),
    1j,
    [0.1],
    [0.1, 0.1, 0.1, 0.1],
    [0.1, 0.1, math.nan],
    np.ones((3, 3)),
    pf.Profile([(3, 0.1)]),
]


@pytest.mark.parametrize("loss", BAD_LOSSES, ids=lambda v: str(v)[:20])
def test_bad_losses(loss: Any, tmp_path: Path) -> None:
    for ledger in (ledger_of(), in_file(tmp_path / "book.json")):
        ledger.spend(0.01)
        spends_nothing(ledger, lambda ledger=ledger: ledger.spend(loss), ParameterError, "loss")
        with pytest.raises(ParameterError, match="loss"):
            ledger.leakage_with(loss)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf], ids=str)
def test_a_calibration_with_no_scale_is_refused(scale: float) -> None:
    ledger = ledger_of()
    calibration = ledger.bound.calibrate(COUNT, 0.3)
    ledger.spend(calibration)
    spends_nothing(ledger, lambda: ledger.spend(replace(calibration, unit_scale=scale)), ParameterError, "scale")


@pytest.mark.parametrize("part", [{"window": (0, 2)}, {"coarsening": {"no": "no", "yes": "yes"}}], ids=str)
def test_windows_and_coarsenings_are_for_chains(part: dict[str, Any]) -> None:
    data = rows_of()
    ledger = ledger_of(base=data.base)
    calibration = ledger.bound.calibrate(COUNT, 0.3)
    match = "is for Markov chains, but this ledger is for Bayesian networks: leave it out"
    for act in (
        lambda: ledger.spend(0.1, **part),
        lambda: ledger.spend(calibration, data=data, **part),
        lambda: ledger.leakage_with(0.1, **part),
        lambda: pf.release(data, COUNT, calibration, ledger=ledger, **part),
    ):
        spends_nothing(ledger, act, ParameterError, match)
    if "window" in part:
        spends_nothing(ledger, lambda: ledger.calibrate(COUNT, length=20, **part), ParameterError, match)


def test_too_much_is_refused() -> None:
    data = rows_of()
    ledger = ledger_of(base=data.base)
    calibration = ledger.bound.calibrate(COUNT, 0.7)
    pf.release(data, COUNT, calibration, ledger=ledger)
    spends_nothing(
        ledger, lambda: pf.release(data, COUNT, calibration, ledger=ledger), BudgetExceeded, "ledger.calibrate"
    )
    for loss in (700.0, 1e5, 1e300, 1.7e308):
        spends_nothing(ledger, lambda loss=loss: ledger.spend({"b": loss}), BudgetExceeded, "budget")


def test_other_models_have_no_ledger() -> None:
    cliques = pf.Cliques([[0.5, 0.3, 0.2]], states=YES_NO)
    for theta, kind in ((cliques, "cliques"), (JOINT, "joint distributions")):
        with pytest.raises(ReleaseRefused, match=f"Markov chains and Bayesian networks, but Θ is a class of {kind}"):
            Ledger(pf.GroupDP(theta), 1.0)


# Other networks, other models


def test_noise_for_another_network_is_refused() -> None:
    ledger, cpts = ledger_of(), dict(LINE.cpts)
    more = pf.BayesianNetwork(cpts | {"d": pf.CPT(YES_NO, [0.5, 0.5])})
    fewer = pf.BayesianNetwork({name: cpts[name] for name in ("a", "b")})
    named = pf.BayesianNetwork({name: pf.CPT(YES_NO, [0.5, 0.5]) for name in ("a", "b", "z")})
    turned = pf.BayesianNetwork({name: pf.CPT(YES_NO[::-1], [0.5, 0.5]) for name in "abc"})
    third = pf.BayesianNetwork(cpts | {"c": pf.CPT([*YES_NO, "perhaps"], [0.5, 0.4, 0.1])})
    for network, match in (
        (more, "'d' is not a node of the ledger"),
        (fewer, "it lacks the node 'c'"),
        (named, "'z' is not a node of the ledger"),
        (turned, "its node 'a' has the states yes, no, and that of the ledger no, yes"),
        (third, "its node 'c' has the states no, yes, perhaps"),
    ):
        calibration = pf.GroupDP(network, 50).calibrate(pf.Count("yes"), 0.1)
        spends_nothing(ledger, lambda c=calibration: ledger.spend(c), ReleaseRefused, f"another network: {match}")


def test_noise_for_more_rows_is_refused() -> None:
    ledger = ledger_of(rows=50)
    for rows, fits in ((51, False), (50, True), (7, True)):
        calibration = pf.GroupDP(LINE, rows).calibrate(pf.Frequency("yes"), 0.1)
        if fits:
            ledger.spend(calibration)
        else:
            spends_nothing(
                ledger, lambda c=calibration: ledger.spend(c), ReleaseRefused, "51 rows, but the ledger's table"
            )


def test_chains_and_networks_have_ledgers_of_their_own() -> None:
    """The line has the chain's states and as many records: it is not taken for one."""
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=YES_NO)
    for calibration in (
        pf.GroupDP(LINE, 3).calibrate(pf.Count("yes"), 0.1),
        pf.GroupDP(JOINT).calibrate(pf.Count("yes"), 0.1),
    ):
        ledger = chain_ledger(chain, 3)
        spends_nothing(
            ledger, lambda c=calibration, b=ledger: b.spend(c), ReleaseRefused, "ledger is for Markov chains"
        )
    ledger, data = ledger_of(rows=3), read([[2, 1]], ("no", "yes"))
    for bound in (pf.LeakagePropagation(chain, 3), pf.GroupDP(JOINT)):
        calibration = bound.calibrate(pf.Count("yes"), 0.1)
        spends_nothing(ledger, lambda c=calibration: ledger.spend(c), ReleaseRefused, "calibrated for .*Bayesian")
    calibration = pf.LeakagePropagation(chain, 3).calibrate(pf.Count("yes"), 0.1)
    spends_nothing(
        ledger, lambda: pf.release(data, pf.Count("yes"), calibration, ledger=ledger), ReleaseRefused, "read_rows"
    )
    spends_nothing(ledger, lambda: ledger.spend(0.1, data=data), ReleaseRefused, "read_rows")
    ledger = chain_ledger(chain, 50)
    calibration = pf.GroupDP(LINE, 50).calibrate(COUNT, 0.1)
    spends_nothing(
        ledger, lambda: pf.release(rows_of(), COUNT, calibration, ledger=ledger), ReleaseRefused, "read_sequences"
    )
    spends_nothing(ledger, lambda: ledger.spend(0.1, data=rows_of()), ReleaseRefused, "read_sequences")


def test_a_base_of_the_other_kind_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"base is Base, .* data.base"):
        ledger_of(base=read([[60, 40]]).base)
    with pytest.raises(ParameterError, match=r"base is RowsBase, .* data.base"):
        chain_ledger(CHAIN, 100, base=rows_of().base)
    with pytest.raises(ParameterError, match="base is RowsBase"):
        chain_ledger(CHAIN, 100, base=rows_of())
    for base in ({"a": "a"}, "rows.csv"):
        with pytest.raises(ParameterError, match="base is"):
            ledger_of(base=base)


def test_a_base_of_another_network_or_of_one_column_for_two_nodes_is_refused() -> None:
    with pytest.raises(ParameterError, match="base names 'd', which is not a node"):
        ledger_of(base=rows_of(COLLIDER).base)
    with pytest.raises(ParameterError, match="column 'x' to two nodes: 'a' and 'b'"):
        ledger_of(base=RowsBase(source="rows.csv", columns={"a": "x", "b": "x"}))


def test_what_does_not_compose_names_the_way_out() -> None:
    ledger = ledger_of(budget=9.0)
    for bound in (pf.Wasserstein(LINE), pf.ExactLaplace(LINE)):
        calibration = bound.calibrate(COUNT, 0.5)
        match = rf"{bound.title} calibrates .* ledger\.spend\(calibration\.node_loss\)"
        spends_nothing(ledger, lambda c=calibration: ledger.spend(c), ReleaseRefused, match)
        with pytest.raises(ParameterError, match=bound.title):
            Ledger(bound, 1.0)
    before = ledger.leakage_with(calibration.node_loss)
    assert ledger.spend(calibration.node_loss).spent == before
    assert before == pytest.approx(ledger.bound.leakage(1 / calibration.unit_scale), rel=1e-12)


def test_a_loss_by_node_is_of_networks_and_linear_queries() -> None:
    chain = pf.GroupDP(CHAIN, 5).calibrate(pf.Count("active"), 1.0)
    square = pf.Function(lambda row: sum(v == "yes" for v in row.values()) ** 2, "square")
    for calibration in (chain, pf.ExactLaplace(JOINT).calibrate(square, 1.0)):
        with pytest.raises(QueryError, match="node_loss exists only for networks"):
            _ = calibration.node_loss
    found = pf.GroupDP(COLLIDER, 5).calibrate(pf.Subset(pf.Count("high"), ["c"]), 1.0)
    assert np.array_equal(found.node_loss["c"] > 0, [[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    assert found.node_loss["c"].max() >= 1 / found.unit_scale
    assert [loss.any() for loss in found.node_loss.values()] == [False, False, True, False]


# The base


def based(**options: Any) -> tuple[Ledger, pf.Calibration]:
    ledger = ledger_of(budget=5.0, base=rows_of(**options).base)
    return ledger, ledger.bound.calibrate(COUNT, 0.1)


@pytest.mark.parametrize(
    "reading", [{"source": "other.csv"}, {"subject": "id"}, {"missing": "unobserved"}], ids=lambda r: next(iter(r))
)
def test_another_base_is_refused_with_reason_and_remedy(reading: dict[str, Any]) -> None:
    ledger, calibration = based()
    data = rows_of(**reading)
    (name,) = reading
    match = rf"{name} of the ledger's table is .*; (a ledger recognises its table|read the table)"
    for act in (
        lambda: pf.release(data, COUNT, calibration, ledger=ledger),
        lambda: ledger.spend(calibration, data=data),
        lambda: ledger.spend(0.01, data=data),
    ):
        spends_nothing(ledger, act, ReleaseRefused, match)


def test_a_filter_on_a_whole_base_is_a_part_of_it_and_costs_the_whole() -> None:
    ledger, _ = based()
    part, calibration = rows_of(n=20, where="age > 60"), pf.LeakagePropagation(LINE, 20).calibrate(COUNT, 0.1)
    spent = pf.release(part, COUNT, calibration, ledger=ledger).ledger.spent
    assert spent == based()[0].spend(calibration).spent
    assert pf.release(part, COUNT, calibration, ledger=ledger).ledger.spent > 1.5 * spent


@pytest.mark.parametrize("where", [None, "age > 60.0", "age > 60 and old"], ids=str)
def test_a_part_of_a_filtered_base_is_not_known(where: str | None) -> None:
    ledger, calibration = based(where="age > 60")
    data = rows_of(where=where)
    spends_nothing(
        ledger,
        lambda: pf.release(data, COUNT, calibration, ledger=ledger),
        ReleaseRefused,
        "where of the ledger",
    )
    pf.release(rows_of(where="age > 60"), COUNT, calibration, ledger=ledger)


def test_a_filter_over_a_column_that_the_base_knows_as_a_nodes_is_refused() -> None:
    """Read alone, node c is not known to be the column cc: the filter would tell its states and be charged nothing."""
    base = RowsBase(source="rows.csv", columns={"a": "a", "b": "b", "c": "cc"})
    ledger, query = ledger_of(budget=5.0, base=base), pf.Subset(pf.Count("yes"), ["a"])
    data = rows_of(n=20, nodes=["a"], where="cc == 'yes'")
    calibration = pf.LeakagePropagation(LINE, 20).calibrate(query, 0.1)
    for act in (
        lambda: pf.release(data, query, calibration, ledger=ledger),
        lambda: ledger.spend({"a": 0.1}, data=data),
    ):
        spends_nothing(ledger, act, DataError, "node column of the ledger's base 'cc'")


def test_columns_belong_to_the_base_where_the_mapping_agrees() -> None:
    base = RowsBase(source="rows.csv", columns={"a": "a", "b": "b2"})
    ledger = ledger_of(budget=5.0, base=base)

    def read_of(nodes: str, **columns: str) -> tuple[pf.Rows, Any, pf.Calibration]:
        data, query = rows_of(nodes=list(nodes), columns=columns), pf.Marginals(list(nodes))
        return data, query, ledger.bound.calibrate(query, 0.1)

    for nodes, columns in (("a", {"a": "a"}), ("b", {"b": "b2"}), ("ab", {"a": "a", "b": "b2"})):
        data, query, calibration = read_of(nodes, **columns)
        pf.release(data, query, calibration, ledger=ledger)
    for nodes, columns, match in (
        ("b", {"b": "b"}, "node 'b' from column 'b', and the ledger reads it from 'b2'"),
        ("ab", {"a": "b2", "b": "a"}, "node 'a' from column 'b2', and the ledger reads it from 'a'"),
        ("c", {"c": "c"}, "node 'c' from column 'c', and the ledger does not know a column of it"),
    ):
        data, query, calibration = read_of(nodes, **columns)
        spends_nothing(
            ledger,
            lambda d=data, q=query, c=calibration: pf.release(d, q, c, ledger=ledger),
            ReleaseRefused,
            match,
        )
        spends_nothing(ledger, lambda d=data: ledger.spend(0.01, data=d), ReleaseRefused, match)
    # what is read and not asked about costs nothing, wherever it stands
    data, _, _ = read_of("ac", a="a", c="c")
    query = pf.Marginals(["a"])
    pf.release(data, query, ledger.bound.calibrate(query, 0.1), ledger=ledger)


def test_more_rows_are_other_records() -> None:
    ledger, _ = based()
    data, calibration = rows_of(n=60), pf.LeakagePropagation(LINE, 60).calibrate(COUNT, 0.1)
    spends_nothing(ledger, lambda: pf.release(data, COUNT, calibration, ledger=ledger), ReleaseRefused, "60 rows")
    spends_nothing(ledger, lambda: ledger.spend(0.01, data=data), ReleaseRefused, "data have 60 rows, .* has 50")


def test_a_table_read_for_other_states_is_refused() -> None:
    ledger, _ = based()
    other = pf.BayesianNetwork({name: pf.CPT(["yes", "no"], [0.5, 0.5]) for name in "abc"})
    spends_nothing(ledger, lambda: ledger.spend(0.01, data=rows_of(other)), ReleaseRefused, "read for another network")
    far = pf.BayesianNetwork({"z": pf.CPT(YES_NO, [0.5, 0.5])})
    spends_nothing(ledger, lambda: ledger.spend(0.01, data=rows_of(far)), ReleaseRefused, "'z' is not a node")


def test_the_first_data_settle_the_base(tmp_path: Path) -> None:
    for ledger in (ledger_of(budget=5.0), in_file(tmp_path / "book.json", budget=5.0)):
        calibration = ledger.bound.calibrate(COUNT, 0.1)
        part = rows_of(n=20)
        spends_nothing(ledger, lambda b=ledger, p=part: b.spend(0.01, data=p), ReleaseRefused, "base=rows.base")
        whole = rows_of()
        pf.release(whole, COUNT, calibration, ledger=ledger)
        assert ledger.base == whole.base
        other = rows_of(source="other.csv")
        spends_nothing(ledger, lambda b=ledger, o=other: b.spend(0.01, data=o), ReleaseRefused, "other.csv")
        assert ledger.spend(0.01, data=rows_of(n=20, where="old")).number == 2
    assert Ledger.open(tmp_path / "book.json").base == whole.base


def test_one_database_by_hand_has_no_ledger() -> None:
    ledger = ledger_of(rows=1)
    calibration = ledger.bound.calibrate(COUNT, 0.1)
    row = dict.fromkeys("abc", "yes")
    spends_nothing(
        ledger, lambda: pf.release(row, COUNT, calibration, ledger=ledger), ParameterError, "read_rows for networks"
    )


def test_a_release_that_is_refused_spends_nothing(tmp_path: Path) -> None:
    data, bound = rows_of(), quilts(LINE, 50)
    calibration = bound.calibrate(COUNT, 0.3)
    cases: list[tuple[pf.Rows, Any, Any, type[Exception], str]] = [
        (data, pf.Histogram(), calibration, ReleaseRefused, "calibrated for"),
        (rows_of(nodes=["a"]), COUNT, calibration, ReleaseRefused, "no column for it"),
        (rows_of(n=40), COUNT, calibration, ReleaseRefused, "50 rows"),
        (data, COUNT, bound.calibrate(COUNT, 1.5), BudgetExceeded, "ledger.calibrate"),
        (data, COUNT, pf.GroupDP(APART, 50).calibrate(COUNT, 0.99), BudgetExceeded, "above the budget of 1"),
    ]
    for ledger in (Ledger(bound, 1.0), in_file(tmp_path / "book.json", bound=quilts, base=data.base)):
        for table, query, noise, error, match in cases:
            spends_nothing(
                ledger, lambda b=ledger, t=table, q=query, n=noise: pf.release(t, q, n, ledger=b), error, match
            )
        with pytest.raises(PufferfishError):
            ledger.spend(calibration, note=5)
        assert ledger.entries == ()
