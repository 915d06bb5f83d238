"""The class of what forgets: what is taken, what is refused, what comes back from a file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from paper.audit.laws import some_laws
from pufferfish.errors import ModelError, NotApplicableError, RecordError
from pufferfish.mechanisms import MECHANISMS

STATES = ["a", "b", "c"]
THETA = pf.ForgettingClass([60, 8], [0.9, 0.43], STATES, origin="time-use survey")


def test_pairs_are_kept_the_shortest_first() -> None:
    assert THETA.pairs == ((8, 0.43), (60, 0.9))
    assert pf.ForgettingClass(8, 0.43, [1, 2.0]).states == ("1", "2")
    assert pf.ForgettingClass(1, 1, STATES).overlap == (1.0,)


@pytest.mark.parametrize(
    ("steps", "overlap", "states", "message"),
    [
        (0, 0.4, STATES, r"steps is 0, expected a whole number of steps"),
        (1.5, 0.4, STATES, r"steps is 1\.5"),
        (True, 0.4, STATES, r"steps is True"),
        ([8, "9"], [0.4, 0.5], STATES, r"steps\[1\] is '9'"),
        (8, 0.0, STATES, r"overlap is 0\.0, expected a share .* nothing is ever forgotten"),
        (8, 1.01, STATES, r"overlap is 1\.01"),
        (8, float("nan"), STATES, r"overlap is nan"),
        (8, "half", STATES, r"overlap is 'half'"),
        ([8, 9], 0.4, STATES, r"steps has 2 entries and overlap 1"),
        ([8, 8], [0.4, 0.5], STATES, r"steps names 8 twice"),
        ([], [], STATES, r"steps is empty"),
        (8, 0.4, ["a"], r"at least 2"),
        (8, 0.4, ["a", "a"], r"repeats the name"),
        (8, 0.4, "ab", r"states is 'ab'"),
    ],
)
def test_what_is_no_class_is_refused_in_one_line(steps: Any, overlap: Any, states: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        pf.ForgettingClass(steps, overlap, states)
    assert "\n" not in str(caught.value)


def test_it_comes_back_from_a_model_file(tmp_path: Path) -> None:
    path = tmp_path / "forgetting.json"
    pf.write_model(pf.Model(theta=THETA, step="1min"), path)
    again = pf.read_model(path)
    assert again.theta == THETA
    assert again.step == "1min"
    path.write_text(path.read_text().replace("0.43", "1.43"))
    with pytest.raises(RecordError, match=r"overlap\[0\] is 1\.43"):
        pf.read_model(path)


def test_what_needs_a_matrix_says_so_and_what_to_use() -> None:
    found = {row.mechanism: row for row in pf.compare(THETA, pf.Histogram(), 1.0, length=5000)}
    assert {name for name, row in found.items() if row.reason is None} == {"propagation", "group-dp"}
    assert len(found) == len(MECHANISMS)
    for row in found.values():
        if row.reason is not None:
            assert "use LeakagePropagation" in row.reason
            assert "needs transition probabilities" in row.reason
    assert found["propagation"].recommended
    assert found["propagation"].over_lower_bound is not None
    assert 1 < found["propagation"].over_lower_bound < 2
    with pytest.raises(NotApplicableError, match="needs transition probabilities"):
        pf.MQMExact(THETA, 100)


def test_some_members_are_members() -> None:
    for theta in (THETA, pf.ForgettingClass(1, 1, STATES), pf.ForgettingClass([2, 30], [0.01, 0.9], list("abcdefgh"))):
        for chain in theta.some_members:
            for n, share in theta.pairs:
                assert pf.overlap(chain, n) >= share - 1e-12
        for first, steps in some_laws(theta, 9):
            laws = [first]
            for step in steps:
                laws.append(laws[-1] @ step)
            for n, share in theta.pairs:
                for t in range(len(steps) + 1 - n):
                    now = np.linalg.multi_dot([np.eye(theta.k), np.eye(theta.k), *steps[t : t + n]])
                    then = (laws[t][:, None] * now / laws[t + n]).T  # of the record n steps earlier
                    for law in (now, then):
                        apart = np.abs(law[:, None, :] - law[None, :, :]).sum(axis=2).max() / 2
                        assert 1 - apart >= share - 1e-9
