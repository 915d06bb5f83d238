"""What is no number proves nothing: a loss, an error or a distance that is NaN counts as infinite."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import pufferfish as pf
from pufferfish._core.laws import law, of_chains
from pufferfish._core.laws.law import Law
from pufferfish._core.laws.transport import Shift
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms.one_query import wasserstein
from pufferfish.mechanisms.one_query._laws import LawPair

LAW = Law.exact(0, [Fraction(1, 4), Fraction(3, 4)])
OTHER = Law.exact(0, [Fraction(1, 2), Fraction(1, 2)])
LAWS = {"a": {0: 0.25, 1: 0.75}, "b": {0: 0.5, 1: 0.5}, "c": {0: 0.5, 5: 0.5}}
ORDERS = [[("a", "b"), ("b", "c")], [("b", "c"), ("a", "b")]]


def pair_loss(mu: Law, nu: Law) -> float:
    return law.laplace_loss(mu, nu, 1.0)


def family_loss(mu: Law, nu: Law) -> float:
    return of_chains.mixture_loss(of_chains.LawFamily((mu, LAW)), of_chains.LawFamily((OTHER, nu)), 1.0)


LOSSES = [pytest.param(law, pair_loss, id="laws"), pytest.param(of_chains, family_loss, id="mixtures")]


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize(("_", "loss"), LOSSES)
def test_masses_of_unknown_error(_: Any, loss: Any, wrong: int) -> None:
    laws = [LAW, OTHER]
    assert loss(*laws) < math.inf
    laws[wrong] = replace(laws[wrong], log_error=math.nan)
    assert loss(*laws) == math.inf


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("of", ["error", "logarithm"])
@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize(("module", "loss"), LOSSES)
def test_noisy_laws_that_are_no_numbers(
    monkeypatch: pytest.MonkeyPatch, module: Any, loss: Any, wrong: int, of: str
) -> None:
    calls, smoothed = itertools.count(), law.smoothed

    def spoilt(*arguments: Any) -> tuple[Any, float]:
        logs, error = smoothed(*arguments)
        if next(calls) == wrong:
            if of == "error":
                return logs, math.nan
            logs[-1, 0] = math.nan
        return logs, error

    monkeypatch.setattr(module, "smoothed", spoilt)
    assert loss(LAW, OTHER) == math.inf


def given(pairs: list[tuple[str, str]]) -> pf.GivenLaws:
    return pf.GivenLaws(LAWS, records=5, states=[0, 1], pairs=pairs, query=pf.Count(1))


def is_far(pair: LawPair) -> bool:
    return max(pair.mu.end, pair.nu.end) == 5


@pytest.mark.parametrize("pairs", ORDERS, ids=["last", "first"])
def test_exact_laplace_with_a_loss_that_is_no_number(
    monkeypatch: pytest.MonkeyPatch, pairs: list[tuple[str, str]]
) -> None:
    real = law.laplace_loss
    query, theta = pf.Count(1), given(pairs)
    calibration = pf.ExactLaplace(theta).calibrate(query, 1.0)

    def spoilt(mu: Law, nu: Law, scale: float) -> float:
        return math.nan if max(mu.end, nu.end) == 5 else real(mu, nu, scale)

    monkeypatch.setattr(wasserstein, "laplace_loss", spoilt)
    bound = pf.ExactLaplace(theta)
    assert bound.loss(query, 100.0) == math.inf
    assert bound.verify(calibration)[0] == math.inf
    with pytest.raises(NotApplicableError, match="no finite noise is enough"):
        bound.calibrate(query, 1.0)


@pytest.mark.parametrize("pairs", ORDERS, ids=["last", "first"])
def test_exact_laplace_keeps_the_most_noise(monkeypatch: pytest.MonkeyPatch, pairs: list[tuple[str, str]]) -> None:
    """A pair that no noise is enough for is not forgotten for a later one that some is."""
    real = wasserstein.bracket

    def spoilt(loss: Any, *arguments: Any, **settings: Any) -> Any:
        found = real(loss, *arguments, **settings)
        return found._replace(enough=math.inf) if is_far(loss.args[0]) else found

    monkeypatch.setattr(wasserstein, "bracket", spoilt)
    assert pf.ExactLaplace(given(pairs))._least(pf.Count(1), [1.0])[0].value == math.inf


@pytest.mark.parametrize("pairs", ORDERS, ids=["last", "first"])
def test_wasserstein_with_a_distance_that_is_no_number(
    monkeypatch: pytest.MonkeyPatch, pairs: list[tuple[str, str]]
) -> None:
    query, theta = pf.Count(1), given(pairs)
    calibration = pf.Wasserstein(theta).calibrate(query, 1.0)
    unknown: Any = math.nan
    real = wasserstein.shift_of
    monkeypatch.setattr(
        wasserstein, "shift_of", lambda pair: Shift(unknown, unknown, 0.0) if is_far(pair) else real(pair)
    )
    bound = pf.Wasserstein(theta)
    assert bound.verify(calibration)[0] == math.inf
    with pytest.raises(NotApplicableError, match="no finite noise is enough"):
        bound.calibrate(query, 1.0)


@pytest.mark.parametrize("pairs", ORDERS, ids=["last", "first"])
def test_wasserstein_takes_the_certain_distance_where_the_cost_of_a_tie_is_unknown(
    monkeypatch: pytest.MonkeyPatch, pairs: list[tuple[str, str]]
) -> None:
    monkeypatch.setattr(wasserstein, "shift_of", lambda pair: Shift(5, 2, math.nan if is_far(pair) else 1e-9))
    found = pf.Wasserstein(given(pairs)).calibrate(pf.Count(1), 0.5)
    assert found.scale == pytest.approx(10)
    assert found.prove_leakage() <= 0.5
