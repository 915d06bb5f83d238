"""How much work the laws of a query are: a chain's sweep does not carry the sums of all other chains."""

from typing import Any

import pytest

import pufferfish as pf
from pufferfish._core.numbers.wide import Wide

CHAIN = pf.MarkovChain([[0.5, 0.5], [0.4, 0.6]], states=["rest", "active"])


def test_sums_of_other_chains_are_added_late(monkeypatch: pytest.MonkeyPatch) -> None:
    chains, steps = 40, 100
    pushed: list[int] = []
    push = Wide.pushed

    def counted(self: Wide, *given: Any) -> Wide:
        pushed.append(self.shape[-1])
        return push(self, *given)

    monkeypatch.setattr(Wide, "pushed", counted)
    pf.Wasserstein(CHAIN, [steps] * chains).distance(pf.Count("active"))
    carried = sum(size > (chains - 1) * steps for size in pushed)
    assert 0 < carried < steps  # of two sweeps, one from each end: only where laws are asked for
