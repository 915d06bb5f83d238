"""A release takes the proof that its calibration made; of any other noise it is made anew."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.mechanisms._propagation_on_chains import ChainLeakage
from pufferfish.queries import LinearQuery, Query

STICKY = pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=["rest", "walk"])
TABLE = pl.DataFrame({"x": ["rest", "rest", "walk", "walk", "rest"] * 20})


@pytest.fixture
def proofs(monkeypatch):
    made, prove = [], ChainLeakage.prove

    def counted(self, losses, enough):
        made.append(losses)
        return prove(self, losses, enough)

    monkeypatch.setattr(ChainLeakage, "prove", counted)
    return made


def test_the_proof_is_made_once_for_a_release(proofs):
    data = pf.read_sequences(TABLE, "x", states=STICKY.states)
    calibration = pf.LeakagePropagation(STICKY, length=data.length).calibrate(pf.Count("walk"), epsilon=1.0)
    made = len(proofs)
    assert made > 0
    released = pf.release(data, calibration.query, calibration)
    assert len(proofs) == made
    assert released.verify().holds
    assert len(proofs) > made  # who reads a release proves it anew


def test_other_noise_is_proved_anew(proofs):
    data = pf.read_sequences(TABLE, "x", states=STICKY.states)
    calibration = pf.LeakagePropagation(STICKY, length=data.length).calibrate(pf.Count("walk"), epsilon=1.0)
    forged = {
        "less noise": replace(calibration, unit_scale=calibration.unit_scale / 2),
        "a smaller epsilon": replace(calibration, epsilon=calibration.epsilon / 2),
    }
    for what, other in forged.items():
        made = len(proofs)
        with pytest.raises(pf.ReleaseRefused, match=r"proves a leakage of .* for this noise, above"):
            pf.release(data, other.query, other)
        assert len(proofs) == made + 1, what
    equal = replace(calibration, query=pf.Count("walk"))  # the same query, written again
    made = len(proofs)
    pf.release(data, equal.query, equal)
    assert len(proofs) == made


def test_a_query_of_a_user_that_changed_since_is_proved_anew(proofs):
    class Either(Query):
        kind, asked = "either", pf.Count("walk")

        def bind(self, states, records, variables=None):
            return self.asked.bind(states, records, variables)

    query, bound = Either(), pf.LeakagePropagation(STICKY, length=100)
    calibration = bound.calibrate(query, epsilon=1.0)
    assert bound.verify(calibration)[0] <= 1
    query.asked, made = pf.Histogram(relative=False), len(proofs)
    assert bound.verify(calibration)[0] > 1.5
    assert len(proofs) == made + 1
    assert bound.calibrate(query, epsilon=1.0).unit_scale > 1.5 * calibration.unit_scale


def test_losses_that_are_kept_are_those_of_the_query():
    bound = pf.LeakagePropagation(STICKY, length=100)
    queries = [pf.Count("walk"), pf.Histogram(relative=False), pf.Count("rest"), pf.Sum([0, 3])]
    for query in [*queries, *reversed(queries)]:
        alone = pf.LeakagePropagation(STICKY, length=100).calibrate(query, 1.0)
        assert bound.calibrate(query, 1.0).unit_scale == alone.unit_scale
        assert bound.verify(alone) == alone.bound.verify(alone)


def test_weights_of_the_same_bytes_in_another_type_are_another_query():
    class Of(Query):
        kinds = pf.Sum.kinds

        def __init__(self, weights):
            self.weights = weights

        def bind(self, states, records, variables=None):
            return LinearQuery(self.weights, Fraction(1), ("sum",), "a sum")

    bound = pf.LeakagePropagation(STICKY, length=6)
    little = bound.calibrate(Of(np.array([[0, -1]], dtype=np.int8)), 1.0)
    large = bound.calibrate(Of(np.array([[0, 255]], dtype=np.uint8)), 1.0)
    assert large.unit_scale > 200 * little.unit_scale
