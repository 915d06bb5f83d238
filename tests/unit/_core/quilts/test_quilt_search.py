"""Searches for quilts look at few of them, where windows make many alike too."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.quilts import chain_search
from pufferfish._core.quilts.influence import ChainInfluence
from pufferfish.queries.record_loss import loss_of_query

STICKY = pf.MarkovChain([[0.9, 0.06, 0.04], [0.02, 0.9, 0.08], [0.05, 0.05, 0.9]])
SLOW = pf.MarkovChain([[0.99, 0.006, 0.004], [0.002, 0.99, 0.008], [0.005, 0.005, 0.99]])
WINDOW = pf.Window(pf.Count(1), 333, 583)


def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[int, int]]:
    """Return a function that says how many quilts, and how many nodes, have been looked at."""
    seen = {"evaluate": 0, "best_quilt": 0}
    for name in seen:
        real = getattr(chain_search, name)

        def count(
            *arguments: object, _real: Callable[..., object] = real, _name: str = name, **named: object
        ) -> object:
            seen[_name] += 1
            return _real(*arguments, **named)

        monkeypatch.setattr(chain_search, name, count)
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
    engine = bound._engine_of(bound.theta)
    each = [engine.best_at(losses.blocks[0], node, chain_search.Score(epsilon)) or 0.0 for node in range(1, 61)]
    assert max(each) <= found <= max(each) * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("start", ["stationary", [0.3, 0.7]])
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_quilts_that_prove_no_less_than_propagation_are_hardly_searched(
    monkeypatch: pytest.MonkeyPatch, epsilon: float, start: object
) -> None:
    looked = counted(monkeypatch)
    sticky = pf.MarkovChain([[0.99995, 0.00005], [1e-5, 0.99999]], start)
    bound = pf.LeakagePropagation(sticky, 10**6)
    assert isinstance(bound.verify(bound.calibrate(pf.Count(1), epsilon))[1], pf.PropagationWitness)
    quilts_seen, nodes_seen = looked()
    assert quilts_seen < 1000  # they were 190,000
    assert nodes_seen < 10


def test_a_node_by_itself_has_the_prior_of_its_group() -> None:
    matrix = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.2, 0.0, 0.8]])
    for start in (np.array([1.0, 0.0, 0.0]), "any", "stationary"):
        influence = ChainInfluence(matrix, start)
        for group in itertools.islice(influence.groups(1000), 12):
            alone = influence.at(group.first, 1000)
            assert np.array_equal(alone.pairs, group.pairs)
            assert alone.prior == pytest.approx(group.prior, abs=1e-9)
            for distance in range(1, group.first):
                assert influence.left(alone, distance) == pytest.approx(influence.left(group, distance), abs=1e-9)
