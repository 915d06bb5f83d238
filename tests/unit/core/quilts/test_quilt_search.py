"""Searches for quilts look at few of them, where windows make many alike too."""

from collections.abc import Callable

import pytest

import pufferfish as pf
from pufferfish.core.quilts import chain_search as quilts
from pufferfish.queries.record_loss import loss_of_query

STICKY = pf.MarkovChain([[0.9, 0.06, 0.04], [0.02, 0.9, 0.08], [0.05, 0.05, 0.9]])
SLOW = pf.MarkovChain([[0.99, 0.006, 0.004], [0.002, 0.99, 0.008], [0.005, 0.005, 0.99]])
WINDOW = pf.Window(pf.Count(1), 333, 583)


def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[int, int]]:
    """Return a function that says how many quilts, and how many nodes, have been looked at."""
    seen = {"evaluate": 0, "best_quilt": 0}
    for name in seen:
        real = getattr(quilts, name)

        def count(
            *arguments: object, _real: Callable[..., object] = real, _name: str = name, **named: object
        ) -> object:
            seen[_name] += 1
            return _real(*arguments, **named)

        monkeypatch.setattr(quilts, name, count)
    return lambda: (seen["evaluate"], seen["best_quilt"])


@pytest.mark.parametrize("mechanism", [pf.MQMApprox, pf.MQMExact])
@pytest.mark.parametrize("chain", [STICKY, SLOW])
def test_a_window_is_searched_at_few_nodes(
    monkeypatch: pytest.MonkeyPatch, mechanism: type, chain: pf.MarkovChain
) -> None:
    looked = counted(monkeypatch)
    mechanism(chain, 1000).calibrate(WINDOW, 1.0)
    quilts_seen, nodes_seen = looked()
    assert nodes_seen < 60  # they were hundreds: all those inside the window need the same, but for rounding
    assert quilts_seen < 20_000  # they were 200,000


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_a_window_needs_what_its_worst_node_needs(epsilon: float) -> None:
    bound = pf.MQMExact(STICKY, 60)
    losses = loss_of_query(bound.bind(pf.Window(pf.Count(1), 20, 45)), bound.theta, bound.length)
    assert not isinstance(losses, float)
    found = bound.calibrate(pf.Window(pf.Count(1), 20, 45), epsilon).scale
    each = [bound._engine.best_at(losses.blocks[0], node, quilts.Score(epsilon)) or 0.0 for node in range(1, 61)]
    assert max(each) <= found <= max(each) * (1 + 1e-12)
