"""docs/guarantee.md, "What is not promised": who knows a record for certain can learn more than ε about another one."""

from itertools import product

import numpy as np
import pytest

import pufferfish as pf

P = np.array([[0.03, 0.479, 0.491], [0.042, 0.012, 0.946], [0.101, 0.889, 0.01]])
LENGTH, SCALE = 5, 1.5


def leaked(known: tuple[int, int] | None, record: int) -> float:
    """Return the largest log ratio over outputs, of the noisy value of each record (whether it is state 0), listed."""
    chain = pf.MarkovChain(P)
    paths = np.array(list(product(range(3), repeat=LENGTH)))
    weights = chain.stationary_distribution[paths[:, 0]] * np.prod(P[paths[:, :-1], paths[:, 1:]], axis=1)
    outputs = np.array(list(product((0, 1), repeat=LENGTH)))  # the extreme ones
    densities = np.exp(-np.abs(outputs[None] - (paths == 0)[:, None]).sum(2) / SCALE)
    if known is not None:
        weights = weights * (paths[:, known[0]] == known[1])
    laws = [(weights * (paths[:, record] == state)) @ densities for state in range(3)]
    laws = [law / (weights * (paths[:, record] == state)).sum() for state, law in enumerate(laws)]
    return max(float(np.log(a / b).max()) for a in laws for b in laws)


def test_knowing_one_record_tells_more_of_another() -> None:
    zero = np.arange(3) == 0
    bound = pf.LeakagePropagation(pf.MarkovChain(P), length=LENGTH).leakage((zero[:, None] != zero) / SCALE)
    assert bound == pytest.approx(0.8024, abs=1e-4)
    assert max(leaked(None, record) for record in range(LENGTH)) <= bound
    assert leaked((4, 1), 2) == pytest.approx(1.192, abs=2e-3)
