"""The loss of Laplace noise at scales where rounding tells."""

import pytest

import pufferfish as pf

P = [[0.9, 0.1], [0.4, 0.6]]


@pytest.mark.parametrize("start", ["stationary", "any"])
def test_the_loss_at_large_scales_is_at_most_what_the_answer_moves(start: str, slow: bool) -> None:
    """Here a secret moves the count by 4 at most (W of Wasserstein)."""
    theta, query = pf.MarkovChain(P, start), pf.Count(1)
    exact = pf.ExactLaplace(theta, 30)
    farthest = pf.Wasserstein(theta, 30).calibrate(query, 1.0).scale
    for scale in (1e4, 1e6, 1e8, 1e10, 1e12, 1e15, 1e17, 1e300)[:: 1 if slow else 3]:
        assert 2.9 / scale < exact.loss(query, scale) <= farthest / scale * (1 + 1e-12)


def test_the_loss_is_exact_where_the_docs_say_so(slow: bool) -> None:
    query = pf.Count(1)
    for start, largest in (("stationary", 1e6), ("any", 3e3)):
        short, long = (pf.ExactLaplace(pf.MarkovChain(P, start), length) for length in (30, 400 if slow else 100))
        assert long.loss(query, largest) == pytest.approx(short.loss(query, largest), rel=2e-4)
