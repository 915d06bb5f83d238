"""Estimates for a search ask the engine that proofs ask too: one thread at a time."""

import threading

import pytest

import pufferfish as pf
from pufferfish.queries.record_loss import as_record_loss


@pytest.mark.parametrize("mechanism", [pf.GroupDP, pf.MQMExact, pf.LeakagePropagation])
def test_an_estimate_waits_for_a_proof_in_another_thread(mechanism: type[pf.GroupDP]) -> None:
    bound = mechanism(pf.MarkovChain([[0.9, 0.1], [0.3, 0.7]]), 6)
    estimate, losses = bound.fast_estimate(), as_record_loss(0.1, bound.theta, bound.length)
    estimates: list[float] = []
    asking = threading.Thread(target=lambda: estimates.append(estimate(losses)))
    with bound._lock:
        asking.start()
        asking.join(0.3)
        assert not estimates
    asking.join()
    assert estimates[0] == pytest.approx(bound.leakage(0.1), rel=1e-6)
