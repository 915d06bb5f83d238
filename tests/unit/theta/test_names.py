"""Names of states and records: a sequence of distinct labels, in every model and reader that takes one."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.errors import ModelError, ParameterError
from pufferfish.theta.joint_distribution import Cliques, GivenLaws

HALF = [[0.5, 0.5], [0.5, 0.5]]
TAKERS: dict[str, Callable[[Any], Any]] = {
    "chain": lambda names: pf.MarkovChain(HALF, states=names),
    "binary interval": lambda names: pf.BinaryChainInterval(0.2, 0.8, states=names),
    "interval": lambda names: pf.IntervalChain([[0.4, 0.4]] * 2, [[0.6, 0.6]] * 2, states=names),
    "node": lambda names: pf.CPT(names, [0.5, 0.5]),
    "parents": lambda names: pf.CPT(["a", "b"], np.full((2, 2, 2), 0.5), names),
    "joint": lambda names: pf.JointDistribution([["a", "b"]], [1], states=names),
    "variables": lambda names: pf.JointDistribution([["a", "b"]], [1], variables=names),
    "cliques": lambda names: Cliques([0.5, 0.5], states=names),
    "laws": lambda names: GivenLaws(lambda _: {}, records=1, states=names),
    "table": lambda names: pf.read_sequences({"a": ["a", "b"]}, state="a", states=names),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_names_are_a_sequence_of_distinct_labels(taker: str) -> None:
    class NAType:
        """As that of pandas, which is compared with nothing."""

        def __ne__(self, _: object) -> bool:
            raise TypeError

    wrong: list[tuple[Any, str]] = [
        ([None, math.nan], "None, expected a name"),
        (["a", np.float64("nan")], "nan.*, expected a name"),
        (["a", Decimal("nan")], "expected a name"),
        (["a", NAType()], "expected a name"),
        ("ab", "is 'ab', expected a list of names such as"),
        (b"ab", "expected a list of names"),
        ({"a", "b"}, "expected a list of names"),
        (7, "is 7, expected a list of names"),
        (["a", "a"], "repeats the name 'a'"),
        ([1, 1.0], "repeats the name '1'"),
    ]
    for names, message in wrong:
        with pytest.raises((ModelError, ParameterError), match=message):
            TAKERS[taker](names)


def test_a_record_has_a_value_and_a_node_a_name() -> None:
    for missing in (None, math.nan):
        with pytest.raises(ModelError, match=r"values\[0\]\[1\] is"):
            pf.JointDistribution([["a", missing]], [1])
        with pytest.raises(ModelError, match="the name of a node is"):
            pf.BayesianNetwork({missing: pf.CPT(["a", "b"], [0.5, 0.5])})
