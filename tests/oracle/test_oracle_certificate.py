"""What certificates prove beside what the engine proves, on random short chains of every kind: never less."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pufferfish as pf
from pufferfish.errors import PufferfishError
from pufferfish.release import certificate
from pufferfish.release.checker import check as checker

Array = NDArray[np.float64]


def laws(rng: np.random.Generator, rows: int, k: int) -> Array:
    """Rows of probabilities, a quarter of them 0."""
    found = rng.dirichlet(np.full(k, 0.6), rows) * (rng.random((rows, k)) > 0.25)
    found[found.sum(axis=1) == 0, rng.integers(k)] = 1
    return found / found.sum(axis=1, keepdims=True)


def member(rng: np.random.Generator, start: str | None) -> Any:
    k, kind = int(rng.integers(2, 4)), int(rng.integers(4))
    if kind == 0:
        return pf.MarkovChain(laws(rng, k, k), start or laws(rng, 1, k)[0])
    if kind == 1:
        first = start or laws(rng, 1, k * k)[0].reshape(k, k)
        return pf.HigherOrderChain(laws(rng, k * k, k).reshape(k, k, k), first)
    if kind == 2:
        stays = [[(0.7, 0.4), (0.3, 0.9)], [(1.0, float(rng.random()))]]
        return pf.StaysChain([[0, 1], [1, 0]], stays, start or laws(rng, 1, 3)[0])
    return pf.PeriodicChain(np.array([laws(rng, k, k), laws(rng, k, k)]), start or laws(rng, 1, k)[0])


@pytest.mark.parametrize("start", ["stationary", "any", None])
@pytest.mark.parametrize("seed", range(6))
def test_no_less_than_the_engine(start: str | None, seed: int, slow: bool) -> None:
    """Both are bounds of the same recursion, and the checker's flows are not cheaper than the cheapest.

    Under any first law each cuts what lies between two laws into parts of its own: where the checker's are finer it
    proves a little less.
    """
    rng, compared = np.random.default_rng(seed), 0
    for _ in range(60 if slow else 15):
        query = [pf.Histogram(), pf.Count("0"), pf.Transitions()][int(rng.integers(3))]
        try:
            theta = member(rng, start)
            noise = pf.LeakagePropagation(theta, int(rng.integers(1, 7))).calibrate(query, 1.0)
            claim = certificate.claim_of(certificate.record_of_noise(noise))
            claim.epsilon = checker.Fraction(1, 10**9)  # so that the sum of all losses is no proof
            proof, leakage = certificate.proved(claim)
        except PufferfishError:
            continue
        if not np.isfinite(leakage):
            continue
        compared += 1
        assert leakage >= noise.prove_leakage() * (1 - (1e-3 if start == "any" else 1e-5))
        for share, proves in ((1 + 1e-9, True), (1 - 1e-5, False)):
            claim.limit = checker.exp(checker.Fraction(leakage * share), False)
            try:
                checker.prove(claim, {"digits": claim.digits, "members": proof})
            except checker.NotProved:
                assert not proves
            else:
                assert proves
    assert compared
