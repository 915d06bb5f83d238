"""Shared fixtures."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import pufferfish as pf
from pufferfish.data import Base

pytest.register_assert_rewrite("query_checks")
settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture
def two_states() -> pf.MarkovChain:
    return pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])


@pytest.fixture
def sequences_of() -> Callable[..., pf.Sequences]:
    """Sequences made by hand from counts per chain."""

    def make(counts: list[list[int]], states: tuple[str, ...] = ("rest", "active")) -> pf.Sequences:
        k = len(states)
        return pf.Sequences(
            states=states,
            counts=np.array(counts),
            transitions=np.zeros((k, k), dtype=np.int64),
            length=tuple(pf.ChainLength(sum(row), sum(row)) for row in counts),
            subjects=len(counts),
            base=Base(source="by hand", state="state"),
        )

    return make
