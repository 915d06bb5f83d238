"""A walk through places with the same loss says what each place says when it is asked on its own."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pufferfish._core.chains.markov import log_of
from pufferfish._core.phi import phi
from pufferfish._core.phi.certificate import SEARCHED
from pufferfish._core.phi.phi import Kernel, LogRatios

LOOPS = {"interpreted": phi._LOOPS.plain, "compiled": phi._LOOPS.compiled}


def some_kernel(rng: np.random.Generator, k: int, *, zeros: bool) -> Kernel:
    laws = rng.dirichlet(np.full(k, 0.5), size=k) * (rng.random((k, k)) < (0.6 if zeros else 1.0))
    laws[np.arange(k), rng.integers(k, size=k)] += 0.1
    laws /= laws.sum(axis=1, keepdims=True)
    rows = rng.random(k) < 0.8 if zeros else np.ones(k, dtype=bool)
    rows[:2] = True
    return Kernel.of_logs(log_of(laws, laws > 0), rows, 1e-15)


def some_loss(rng: np.random.Generator, k: int, size: float) -> np.ndarray:
    return phi.close(size * rng.random((k, k)) * (1 - np.eye(k)))


def arrived(loss: np.ndarray, message: np.ndarray) -> np.ndarray:
    return np.where(message == 0, loss, np.nextafter(loss + message, np.inf))


@pytest.fixture(params=LOOPS)
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Loops that walk, which those that count as interpreted do not."""
    chosen = LOOPS[request.param]
    monkeypatch.setattr(phi._LOOPS, "at", lambda _: chosen)
    monkeypatch.setattr(phi._LOOPS, "plain", None)
    return chosen


def walked(ratios: LogRatios, kernel: Kernel, a: np.ndarray, loss: np.ndarray, places: int) -> np.ndarray:
    """Walks one after the other; the first is short, as there are no trees to go on from."""
    found: list[np.ndarray] = []
    while len(found) < places:
        with np.errstate(over="ignore"):  # infinite, which is more
            found.extend(ratios.walk(kernel, a, loss, places - len(found), -1.0))
            a = arrived(loss, found[-1])
    return np.array(found)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("size", [0.0, 1e-300, 0.3, SEARCHED / 3, 1e308])
@pytest.mark.parametrize("first", [0.1, 2 * SEARCHED])
def test_it_says_what_places_say_one_by_one(size: float, first: float) -> None:
    rng = np.random.default_rng(3)
    for k in (2, 3, 5):
        for zeros in (False, True):
            kernel, loss = some_kernel(rng, k, zeros=zeros), some_loss(rng, k, size)
            a, asked = some_loss(rng, k, first), LogRatios()
            for message in walked(LogRatios(), kernel, a, loss, 6):
                assert np.array_equal(asked(kernel, a), message)
                with np.errstate(over="ignore"):
                    a = arrived(loss, message)


@pytest.mark.usefixtures("loops")
def test_it_ends_where_bounds_hardly_move() -> None:
    kernel, loss = some_kernel(np.random.default_rng(0), 3, zeros=False), 0.1 * (1 - np.eye(3))
    ratios = LogRatios()
    ratios(kernel, loss)
    found = ratios.walk(kernel, loss, loss, 1000, 1e-6)
    assert 3 < len(found) < 1000
    moves = [np.max(np.abs(after - before)) for before, after in pairwise(found)]
    assert moves[-1] <= 1e-6 < moves[-2]
    assert np.array_equal(ratios.walk(kernel, loss, loss, 2, 0.0), found[:2])


@pytest.mark.usefixtures("loops")
def test_what_is_no_number_bounds_nothing() -> None:
    """Whatever follows then counts: no bound but that of the rows themselves."""
    kernel, ratios = some_kernel(np.random.default_rng(0), 3, zeros=False), LogRatios()
    ratios(kernel, 0.1 * (1 - np.eye(3)))
    unknown = np.array([[0, np.nan, np.nan], [np.nan, 0, 0.1], [np.nan, 0.1, 0]])
    found = ratios.walk(kernel, unknown, 0.1 * (1 - np.eye(3)), 2, 0.0)[0]
    everything = LogRatios()(kernel, 600 * (1 - np.eye(3)))
    assert np.all(found >= everything)
