"""Work that a listener stops: it comes out of the call, and the same objects then answer as fresh ones do."""

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.compare.comparison import Comparison
from pufferfish.queries import Query

CHAIN = pf.MarkovChain([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.2, 0.4, 0.4]])
OTHER = pf.MarkovChain([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
STAYS = pf.StaysChain(
    [[0, 0.5, 0.5], [0.5, 0, 0.5], [1, 0, 0]], [[(0.5, 0.5), (0.5, 0.95)], [(1, 0.8)], [(1, 0.5)]], states=[0, 1, 2]
)
NETWORK = pf.BayesianNetwork(
    {
        "a": pf.CPT(["n", "y"], [0.7, 0.3]),
        "b": pf.CPT(["n", "y"], [[0.8, 0.2], [0.4, 0.6]], ["a"]),
        "c": pf.CPT(["n", "y"], [[0.9, 0.1], [0.2, 0.8]], ["b"]),
    }
)
TABLE = pl.DataFrame({"s": (["r"] * 3 + ["w"]) * 40 + (["r", "w", "w"] * 50)})


def _of(bound: Callable[[], Any], query: Query) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    return bound, lambda made: made.calibrate(query, 1.0).scale


def _compared(theta: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    def asked(made: Comparison) -> Any:
        rows = [(row.mechanism, row.epsilon, row.scale) for row in (*made.at(0.7), *made.curve())]
        return sorted(rows, key=str)

    return lambda: pf.compare(theta, pf.Histogram(), 1.0, length=30), asked


def _promised(made: pf.Calibration) -> Any:
    return [(each.unit, each.epsilon) for each in made.promises()]


JOBS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "propagation": _of(lambda: pf.LeakagePropagation([CHAIN, OTHER], length=200), pf.Histogram()),
    "stays": _of(lambda: pf.LeakagePropagation(STAYS, length=200), pf.Histogram()),
    "best noise": (
        lambda: pf.LeakagePropagation(CHAIN, length=200),
        lambda made: made.calibrate(pf.CDF(), 1.0, noise="best").scale,
    ),
    "quilts": _of(lambda: pf.MQMExact([CHAIN, OTHER], length=200), pf.Histogram()),
    "laws": _of(lambda: pf.ExactLaplace(CHAIN, length=40), pf.Count(1)),
    "wasserstein": _of(lambda: pf.Wasserstein([CHAIN, OTHER], length=40), pf.Count(1)),
    "network": _of(lambda: pf.LeakagePropagation(NETWORK, length=20), pf.Marginals()),
    "comparison": _compared(CHAIN),
    "promises": (lambda: pf.LeakagePropagation(CHAIN, length=90).calibrate(pf.Histogram(), 1.0), _promised),
    "check": (lambda: None, lambda _: pf.check_model(CHAIN2, TABLE, "s", public=True).verdict.word),
}
CHAIN2 = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]], states=["r", "w"])


class Stopped(Exception):
    """What a user's listener raises."""


@pytest.mark.parametrize("job", JOBS)
def test_what_was_stopped_answers_as_if_it_had_not_been(job: str, slow: bool) -> None:
    make, ask = JOBS[job]
    told = list[tuple[str, float]]()
    with pf.listening(lambda task, share: told.append((task, share))):
        expected = ask(make())
    assert told, "nothing is told of this work, so nobody could stop it"
    assert all(0 <= share <= 1 for _, share in told)
    rng, made = np.random.default_rng(45), make()
    for _ in range(20 if slow else 1):
        last, calls = int(rng.integers(len(told))), count()

        def stop(task: str, share: float, last: int = last, calls: Any = calls) -> None:
            if next(calls) == last:
                raise Stopped

        try:
            with pf.listening(stop):
                assert ask(made) == expected  # what was computed before may be used again: it ends before it is stopped
        except Stopped:
            pass
        assert ask(made) == expected
        made = make() if rng.random() < 0.5 else made
