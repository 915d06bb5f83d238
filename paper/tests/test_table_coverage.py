"""The table of coverage: made-up people are what they are said to be, and what is not held is seen not to be."""

from functools import partial

import numpy as np
import pytest

import pufferfish as pf
from paper.experiments.experiment import Settings
from paper.experiments.table_coverage import (
    _CHAINS,
    _MADE_UP,
    _STAYS,
    _household,
    _kept,
    _of_all,
    _People,
    _rows,
    _stays_like,
    _surveyed,
    held,
)
from pufferfish.data.groups import Daily
from pufferfish.fit.members import Members


def people(strength: float, trials: int = 60) -> _People:
    return _People(f"strength {strength:g}", partial(_of_all, _MADE_UP, strength), 5, Settings(2017, trials))


@pytest.mark.slow
def test_what_is_said_comes_out_of_people_who_are_alike_and_not_of_others() -> None:
    alike = people(60)
    rows = _rows(alike, 10)
    assert [row["nominal"] for row in rows] == [0.9, 0.95, 0.99]
    assert [row["said"] for row in rows] == pytest.approx([10 / 11, 0.95, 0.99])
    assert rows[0]["slower"] == 1.0  # 10/11 reaches .9: nothing is added
    assert all(held(row) for row in rows)
    assert float(rows[2]["noise_multiplier"] or 0) > float(rows[1]["noise_multiplier"] or 0)
    alike.__dict__["needs"] = people(6).needs  # the others are not like those surveyed
    assert not any(held(row) for row in _rows(alike, 10)[:2])


def test_people_with_kinds_of_stay_are_surveyed_as_they_live() -> None:
    chain = pf.StaysChain([[0, 1], [1, 0]], [[(0.8, 0.5), (0.2, 0.98)], [(0.5, 0.7), (0.5, 0.7)]])
    sequences = _surveyed([chain] * 4, 30, np.random.default_rng(0))
    assert isinstance(sequences.daily, Daily)
    counts, runs = sequences.transitions, sequences.daily.runs
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), chain.mean_matrix, atol=0.01)
    whole = (runs.state == 0) & (runs.begun == 1) & (runs.following == 1)
    assert runs.lasted[whole].mean() == pytest.approx(0.8 * 2 + 0.2 * 50, rel=0.1)
    assert set(sequences.daily.steps.subject.tolist()) == {0, 1, 2, 3}
    drawn = _stays_like([chain], np.random.default_rng(1))
    assert drawn.kinds == (2, 2)
    assert drawn.stays != chain.stays
    kept = _kept(Members(_surveyed([drawn] * 2, 3, np.random.default_rng(2))), _STAYS)
    assert [law.kind for law in kept] == ["pooled", "own", "own", "stays", "own stays", "own stays"]


@pytest.mark.slow
def test_a_household_in_the_next_year() -> None:
    (chain,), (slower,) = _household((2008,), 1.0, _CHAINS), _household((2008,), 1.3, _STAYS)
    assert chain["covered"] == 0
    assert chain["largest_leakage"] == pytest.approx(1.194, abs=0.01)
    assert slower["covered"] == 1
    assert slower["noise_multiplier"] == pytest.approx(271.5, rel=0.05)
