"""Numbers of the paper's Section 5, and of the proofs, out of the experiments themselves.

Real data are not in the repository: see docs/results.md, "Data", and the folder ../shared/data.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import pufferfish as pf
from paper.experiments import EXPERIMENTS, DataSets, Settings, find_data
from paper.experiments.contenders import of_name
from paper.experiments.experiment import FITTED, Row, index
from paper.experiments.figure_synthetic import gk16_starts
from paper.experiments.paper import POWER
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms import GK16
from pufferfish.theta.continua import BinaryChainInterval

DATA = Path(__file__).parents[2].parent / "shared" / "data"
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
SEED = 2017


@cache
def rows_of(name: str, key: str, *, real: bool = False) -> tuple[Row, ...]:
    """Do one part of an experiment, as the command does."""
    experiment = BY_NAME[name]
    settings = Settings(SEED, experiment.trials, find_data(DATA) if real else DataSets())
    return tuple(next(part for part in experiment.parts(settings) if part.key == key).work())


def real_rows(name: str, file: str, *keys: str) -> list[Row]:
    if not (DATA / file).exists():
        pytest.skip(f"real data not found: {file} in ../shared/data")
    return [row for key in keys for row in rows_of(name, key, real=True)]


def number(row: Row, column: str) -> float:
    value = row[column]
    assert isinstance(value, float)
    return value


@pytest.mark.slow
def test_synthetic_chains_at_epsilon_1() -> None:
    """The middle panel of the upper figure, at α = 0.36: T = 100, L = 1/100, so group DP errs by 1."""
    found = index(rows_of("figure-synthetic", "α = 0.36, ε = 1"), "mechanism")
    error = {name: number(row, "expected_l1_error") for name, row in found.items()}
    assert error["group-dp"] == pytest.approx(1.0, abs=1e-4)
    assert number(found["gk16"], "scale") == pytest.approx(7.4763 / 100, abs=1e-6)
    rising = ["propagation", "mqm-exact", "mqm-approx", "group-dp"]
    assert sorted(rising, key=error.__getitem__) == rising
    assert error["exact-laplace"] <= 1.001 * error["propagation"]
    assert error["exact-laplace"] <= 1.001 * error["wasserstein"]


@pytest.mark.slow
def test_means_of_the_trials_are_near_what_is_expected() -> None:
    rows = rows_of("figure-synthetic", "α = 0.36, ε = 1")
    assert len(rows) == 7
    for row in rows:
        standard_error = number(row, "standard_error")
        assert 0 < standard_error < 0.1 * number(row, "expected_l1_error")  # 500 trials
        assert abs(number(row, "mean_l1_error") - number(row, "expected_l1_error")) < 5 * standard_error
        assert number(row, "valid_mean_l1_error") <= number(row, "mean_l1_error")


def test_gk16_is_left_out_where_it_does_not_apply() -> None:
    """The dashed line of the upper figure: the same α for every ε."""
    assert gk16_starts() == pytest.approx(0.3219, abs=1e-4)
    GK16(BinaryChainInterval(0.322, 0.678), 100)
    with pytest.raises(NotApplicableError, match="spectral norm"):
        GK16(BinaryChainInterval(0.3217, 0.6783), 100)


LEAKS = {
    ("MQMExact", "GroupDP"): None,
    ("MQMExact", "MQMExact"): None,
    ("MQMExact", "LeakagePropagation"): None,
    ("MQMApprox", "MQMApprox"): None,
    ("LeakagePropagation", "LeakagePropagation"): [1.000, 2.086, 4.377, 6.553],
}


@pytest.mark.parametrize(("noise", "ledger"), list(LEAKS))
def test_releases_of_the_running_example_add_up(noise: str, ledger: str) -> None:
    """Theorem 4.4: with quilts, K releases at ε = 1 leak at most K; those that propagation calibrated leak more."""
    key = f"running example: noise of {noise}, ledger of {ledger}"
    found = index(rows_of("table-composition", key), "releases")
    leaks = [number(found[k], "leak_by_ledger") for k in (1, 2, 5, 10)]
    assert leaks == sorted(leaks)
    assert all(found[k]["model"] is None for k in (1, 2, 5, 10))  # nothing is fitted here
    if LEAKS[noise, ledger] is not None:
        assert leaks == pytest.approx(LEAKS[noise, ledger], abs=5e-4)
    elif ledger == "GroupDP":
        each = number(found[1], "scale_of_each")
        assert leaks == pytest.approx([100 * k / each for k in (1, 2, 5, 10)])
    else:
        assert all(leak <= k for k, leak in zip((1, 2, 5, 10), leaks, strict=True))


LEDGERS = ("LeakagePropagation", "MQMExact", "GroupDP")


def test_propagation_keeps_the_tightest_ledger() -> None:
    """The same noise, that of MQMExact: less by propagation than by quilts, and that is less than by group privacy."""
    key = "running example: noise of MQMExact, ledger of "
    by = [index(rows_of("table-composition", key + ledger), "releases") for ledger in LEDGERS]
    for k in (1, 2, 5, 10):
        leaks = [number(found[k], "leak_by_ledger") for found in by]
        assert leaks[0] < leaks[1] < leaks[2]


ORDER = ["mqm-exact", "mqm-approx", "group-dp"]


def in_order(rows: list[Row]) -> None:
    """GK16 has a reason, and the others are in the paper's order, strictly."""
    found = index(rows, "mechanism")
    assert any(words in str(found["gk16"]["reason"]) for words in ("spectral norm", "influence has no bound"))
    assert "expected_l1_error" not in found["gk16"]
    errors = [number(found[name], "expected_l1_error") for name in ORDER]
    assert errors[0] < errors[1] < errors[2]
    assert number(found["propagation"], "expected_l1_error") < errors[0]
    assert all(found[name]["model"] == FITTED for name in ORDER)


UCI, AMPDS = "electricity_uci_2y_2006-12-17_1051200min.csv.gz", "electricity_ampds2_sample_9days.csv.gz"


@pytest.mark.slow
def test_power_of_the_uci_household() -> None:
    rows = real_rows("table-power", UCI, "UCI, 2 years, ε = 1")
    in_order(rows)
    row = index(rows, "mechanism")["group-dp"]
    assert (row["records"], row["bins"]) == (1_051_200, 51)
    assert number(row, "expected_l1_error") == pytest.approx(102, rel=1e-3)
    assert abs(number(row, "mean_l1_error") - 102) < 5 * number(row, "standard_error")


@pytest.mark.parametrize(("epsilon", "group"), [(0.2, 510.0), (1.0, 102.0), (5.0, 20.4)])
def test_group_privacy_of_a_household(epsilon: float, group: float) -> None:
    """Table 3: 51 shares with noise of scale 2/ε, whatever T is; the paper's numbers are means of 20 trials of it."""
    chain = pf.MarkovChain(np.full((51, 51), 1 / 51))
    found, _ = of_name("group-dp").calibrate(chain, 1_051_200, pf.Histogram(), epsilon)
    assert found is not None
    assert found.expected_l1_error == pytest.approx(group, rel=1e-6)
    assert POWER["group-dp"][epsilon] == pytest.approx(group, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_the_papers_own_household(epsilon: float) -> None:
    """Table 3: the chain fitted to nine days of AMPds2 needs, at the paper's length, what the paper printed."""
    rows = real_rows("table-power", AMPDS, f"AMPds2, 9 days, ε = {epsilon:g}")
    in_order(rows)
    found = index(rows, "mechanism")
    for name in ("mqm-approx", "mqm-exact"):
        assert number(found[name], "expected_at_paper_size") == pytest.approx(POWER[name][epsilon], rel=0.12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("activity_fitbit_minute.parquet", "Fitbit, somewhat active"),
        ("activity_activpal_12s.parquet", "activPAL"),
        ("activity_nhanes50_minute.parquet", "NHANES, women 65+"),
        ("activity_nhanes50_minute.parquet", "NHANES, women 50-64, BMI 25+"),
        ("activity_nhanes50_minute.parquet", "NHANES, men 50+"),
    ],
)
def test_activity(file: str, key: str) -> None:
    """Table 1: the order of mechanisms, for both tasks and both readings of gaps."""
    rows = real_rows("table-activity", file, key)
    for gaps in ("independent", "unobserved"):
        for task in ("aggregate", "individual"):
            in_order([row for row in rows if (row["gaps"], row["task"]) == (gaps, task)])
