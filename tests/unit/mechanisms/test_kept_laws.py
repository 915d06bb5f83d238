"""The laws of a query are computed once, and again where a function of the user's may give others."""

from collections.abc import Callable
from typing import Any

import pytest

import pufferfish as pf
from pufferfish.mechanisms.one_query import law_mechanism

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[pf.queries.Query]:
    """The queries whose laws were computed."""
    found: list[pf.queries.Query] = []
    real = law_mechanism.pairs_of_laws

    def counted(theta: Any, length: Any, query: pf.queries.Query, *others: Any) -> Any:
        found.append(query)
        return real(theta, length, query, *others)

    monkeypatch.setattr(law_mechanism, "pairs_of_laws", counted)
    return found


KINDS: list[Callable[..., Any]] = [pf.Wasserstein, pf.ExactLaplace]


@pytest.mark.parametrize("kind", KINDS)
def test_laws_are_computed_once_for_a_query(kind: Callable[..., Any], computed: list[pf.queries.Query]) -> None:
    bound = kind(CHAIN, 30)
    first = bound.calibrate(pf.Count(1), 1.0)
    assert bound.calibrate(pf.Count(1), 1.0).scale == first.scale
    assert first.prove_leakage() <= 1.0
    assert len(computed) == 1
    window = pf.Window(pf.Count(1), 3, 9)
    assert bound.calibrate(window, 1.0).scale == kind(CHAIN, 30).calibrate(window, 1.0).scale
    assert computed[1:] == [window, window]


@pytest.mark.parametrize("kind", KINDS)
def test_laws_that_a_function_gives_are_asked_for_again(kind: Callable[..., Any]) -> None:
    apart = [1]
    theta = pf.GivenLaws(lambda query: {"a": {0: 1.0}, "b": {apart[0]: 1.0}}, records=9, states=[0, 1])
    bound = kind(theta)
    assert bound.calibrate(pf.Count(1), 1.0).scale == pytest.approx(1)
    apart[0] = 5
    assert bound.calibrate(pf.Count(1), 1.0).scale == pytest.approx(5)
