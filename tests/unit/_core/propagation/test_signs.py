"""The search for sign tilts: bounded by what it can win, whatever the number of states and of members."""

from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.propagation.lower_bound import TiltedChain


def sticky(k: int, seed: int) -> pf.MarkovChain:
    p = 0.9 * np.eye(k) + 0.1 * np.random.default_rng(seed).dirichlet(np.ones(k), size=k)
    return pf.MarkovChain(p / p.sum(axis=1, keepdims=True))


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Multiplications of matrices: rows times states squared, for every step."""
    done: list[int] = []
    for name in ("_on", "_back"):
        step = getattr(TiltedChain, name)

        def counted(self: TiltedChain, g: Any, vectors: Any, _step: Any = step) -> Any:
            done.append(vectors.size * vectors.shape[-1])
            return _step(self, g, vectors)

        monkeypatch.setattr(TiltedChain, name, counted)
    return done


@pytest.mark.slow
def test_the_search_does_not_grow_with_the_states(work: list[int]) -> None:
    """Of 90 states it looked at 8,010 sign vectors, then at each with every sign changed, again and again."""
    made = pf.GroupDP(sticky(90, 0), 400).calibrate(pf.Histogram(), 1.0)
    assert 0 < made.lower_bound < made.scale
    assert sum(work) < 2.5e10
    assert made.lower_bound > 0.05, "no worse than what the longer search found"


def test_of_many_members_those_that_tell_most_are_searched(work: list[int]) -> None:
    calm, busy = pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]]), pf.MarkovChain([[0.95, 0.05], [0.2, 0.8]])
    alone = pf.GroupDP(busy, 60).calibrate(pf.Count(0), 1.0).lower_bound
    before = sum(work)
    many = pf.GroupDP([calm] * 40 + [busy] + [calm] * 40, 60).calibrate(pf.Count(0), 1.0)
    assert many.lower_bound == pytest.approx(alone, rel=1e-5)
    assert sum(work) - before < 20 * before
