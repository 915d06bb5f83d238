"""Laws without any mass prove nothing, and do not end the process: no class of models has them."""

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.phi.certificate import phi
from pufferfish._core.phi.phi import Kernel
from pufferfish._core.phi.simplex import climb

OTHER = ~np.eye(3, dtype=np.bool_)


@pytest.mark.parametrize("empty", [[0], [1, 2], [0, 1, 2]])
def test_a_state_that_leads_nowhere_is_refused(empty: list[int]) -> None:
    logs = np.full((3, 3), np.log(1 / 3))
    logs[empty] = -np.inf
    with pytest.raises(pf.ModelError, match="leads nowhere"):
        Kernel.of_logs(logs, np.ones(3, dtype=np.bool_), 0.0)
    possible = ~np.isin(np.arange(3), empty)
    assert Kernel.of_logs(logs, possible, 0.0).rows.sum() == 3 - len(empty)  # a state that cannot occur needs no law


def test_a_search_among_no_states_proposes_nothing() -> None:
    nothing, pairs = np.zeros((3, 3)), np.array([0, 1])
    arcs, flows, shares = np.zeros((2, 2), dtype=np.int64), np.ones((2, 2)), np.ones((2, 2))
    climb(nothing, nothing, 0.1 * OTHER, pairs, pairs[::-1].copy(), np.zeros(2, dtype=np.bool_), arcs, arcs.copy(),
          flows, shares)  # fmt: skip
    assert not flows.any()
    assert not shares.any()


def test_a_law_without_mass_proves_no_more_than_its_bounds() -> None:
    nothing, bounds = np.zeros((3, 3)), np.empty((3, 3))
    upper = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    phi(np.ones(3, dtype=np.bool_), upper, upper, 0.1 * OTHER, bounds)
    assert np.all(bounds[OTHER] >= 0.1)
    phi(np.ones(3, dtype=np.bool_), nothing, nothing, 0.1 * OTHER, bounds)  # nothing is reached
    assert np.all(np.diag(bounds) == 0)
