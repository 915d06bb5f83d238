"""Where there are so few records that a value and its error are as wide as all that can be true, a release says so."""

import polars as pl
import pytest

import pufferfish as pf

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
NET = pf.BayesianNetwork(
    {
        "smoker": pf.CPT(["no", "yes"], [0.8, 0.2]),
        "cough": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.6, 0.4]], ["smoker"]),
    }
)
HIDES = "The noise hides nearly all"


def _table(large: int, small: int) -> pl.DataFrame:
    who = ["large"] * large + ["small"] * small
    return pl.DataFrame({"who": who, "state": (["rest", "active"] * len(who))[: len(who)]})


@pytest.mark.parametrize("query", [pf.Histogram(), pf.Count("active"), pf.Mean({"rest": 10, "active": 30})])
def test_groups_and_subjects_with_too_few_records_are_named(tmp_path, query) -> None:
    """The border is where twice the error is as large as the group times what one record can move an output."""
    for small in (2, 400):
        data = pf.read_sequences(_table(4_000, small), "state", subject="who", by=["who"])
        noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(query, epsilon=0.5)
        found = pf.release(data, query, noise)
        assert found.groups is not None
        span = 20.0 if isinstance(query, pf.Mean) else 1.0
        divided = found.groups.divided_by is not None
        own = span if divided else small * span
        hidden = 2 * found.groups.error_95[1] >= own
        assert hidden == (small == 2)
        told = [text for text in found.warnings if HIDES in text]
        assert bool(told) == hidden
        assert not told or "1 of 2 groups would say (small)" in told[0]
        own = pf.read_sequences(_table(4_000, small), "state", subject="who")
        noise = pf.LeakagePropagation(CHAIN, own.length).calibrate(query, epsilon=0.5)
        each = pf.release_each(own, query, noise, tmp_path / f"{small}.csv")
        assert any("1 of 2 subjects" in text for text in each.warnings) == hidden
        assert not any(HIDES in text for text in pf.release(own, query, noise).warnings)
        assert found.verify().holds


def test_a_whole_table_with_too_few_records_is_told() -> None:
    for rows, hidden in ((3, True), (3_000, False)):
        table = pl.DataFrame({"smoker": ["no"] * rows, "cough": ["no"] * rows})
        for query, joint in ((pf.Marginals(), None), (pf.Joint(["smoker", "cough"]), ["smoker", "cough"])):
            data = pf.read_rows(table, NET, joint=joint)
            noise = pf.LeakagePropagation(NET, data.length).calibrate(query, epsilon=0.5)
            found = pf.release(data, query, noise)
            assert any(f"{HIDES}: the error of ±" in text and "3 rows" in text for text in found.warnings) == hidden
        data = pf.read_sequences(_table(rows, 0), "state")
        noise = pf.GroupDP(CHAIN, data.length).calibrate(pf.Count("active"), epsilon=0.5)
        assert any(HIDES in text for text in pf.release(data, pf.Count("active"), noise).warnings)


def test_steps_and_noise_of_several_scales_are_told_too() -> None:
    for rows, hidden in ((5, True), (3_000, False)):
        data = pf.read_sequences(_table(rows, 0), "state")
        for query, noise in ((pf.Switches(), "equal"), (pf.Transitions(relative=True), "equal"), (pf.CDF(), "best")):
            found = pf.LeakagePropagation(CHAIN, data.length).calibrate(query, epsilon=0.5, noise=noise)
            assert any(HIDES in text for text in pf.release(data, query, found).warnings) == hidden
