"""A search for flows that several cores share finds what one core finds, and the same on every machine."""

import numpy as np
import pytest

from pufferfish._core.chains.markov import log_of
from pufferfish._core.phi import phi
from pufferfish._core.phi.phi import Kernel, LogRatios


def test_parts_find_what_the_whole_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    k = 30
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.full(k, 0.3) + 1e-3, size=k)
    kernel = Kernel.of_logs(log_of(p, p > 0), np.ones(k, dtype=bool), 1e-14)
    a = phi.close(rng.uniform(0.1, 1.0, size=(k, k)) * (1 - np.eye(k)))
    monkeypatch.setattr(phi, "_WORTH_A_CORE", 10**9)
    whole = LogRatios()(kernel, a)
    monkeypatch.setattr(phi, "_WORTH_A_CORE", 20_000)
    assert len(phi._parts(k * (k - 1), k**2)) > 10
    found = []
    for cores in (1, 3):
        monkeypatch.setattr("os.cpu_count", lambda n=cores: n)
        found.append(LogRatios()(kernel, a))
    np.testing.assert_allclose(found[0], whole, rtol=1e-9, atol=1e-12)
    assert np.array_equal(found[0], found[1])
