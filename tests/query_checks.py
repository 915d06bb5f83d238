"""Queries with what they mean, and the checks of every mechanism that takes their laws against all databases."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

import pufferfish as pf
from pufferfish.errors import ModelError, NotApplicableError
from query_laws import (
    Ask,
    Databases,
    Pair,
    bouts,
    count,
    farthest,
    laplace_loss,
    share,
    switches,
    total,
    weighted,
    within,
)

ROUNDING = 1e-9

Record = pf.RecordIs
Asked = tuple[pf.queries.Query, Ask]


def all_queries(k: int, length: int) -> list[Asked]:
    """Queries that one number decides, with what they mean."""
    values = [0.5, -1, 2.25][:k]
    factors = [(3 * t + 1) % 5 - 1 for t in range(length)]
    factors[0] = factors[0] or 2
    found: list[Asked] = [
        (pf.Count(1), count(1)),
        (pf.Frequency([0]), share(count(0))),
        (pf.Sum(values), total(values)),
        (pf.Mean({str(x): v for x, v in enumerate(values)}), share(total(values))),
        (pf.Weighted(pf.Count(1), factors), weighted(lambda x: Fraction(x == 1), factors)),
    ]
    if length > 2:
        found.append((pf.Window(pf.Sum(values), 1, length - 1), within(total(values), 1, length - 1)))
        found.append((pf.Window(pf.Frequency(1), 0, 2), within(share(count(1)), 0, 2)))
    return found


def of_chains(k: int, length: int) -> list[Asked]:
    """These, and numbers of steps."""
    of_steps = [(pf.Switches(), switches), (pf.Switches(relative=True), share(switches)), (pf.Bouts(1), bouts)]
    return [*all_queries(k, length), *of_steps]


def check(
    make: Callable[..., Any],
    queries: Sequence[Asked],
    pairs_of: Callable[[Ask], list[Pair]],
    *,
    scales: Sequence[float] = (0.7, 3.0),
) -> None:
    """W, the loss and the least noise of every query are those of the laws listed."""
    for query, ask in queries:
        pairs = pairs_of(ask)
        truth = farthest(pairs)
        wasserstein, exact = make(pf.Wasserstein), make(pf.ExactLaplace)
        assert wasserstein.distance(query) == float(truth), query
        for scale in scales:
            true = laplace_loss(pairs, scale)
            assert true - ROUNDING <= exact.loss(query, scale) <= true + ROUNDING, (query, scale)
        if not truth:
            for bound in (wasserstein, exact):
                with pytest.raises((ModelError, NotApplicableError), match=r"nothing to hide|the same whichever"):
                    bound.calibrate(query, 1.0)
            continue
        found = wasserstein.calibrate(query, 0.8)
        assert found.scale == pytest.approx(float(truth) / 0.8, rel=1e-9)
        assert found.scale >= float(truth) / 0.8 * (1 - 1e-15)
        assert laplace_loss(pairs, found.scale) <= 0.8 + 1e-12


def check_least(exact: pf.ExactLaplace, query: pf.queries.Query, pairs: list[Pair], epsilon: float) -> None:
    """The calibrated noise leaks at most ε, and a thousandth less leaks more."""
    scale = exact.calibrate(query, epsilon).scale
    assert laplace_loss(pairs, scale) <= epsilon + 1e-12
    assert laplace_loss(pairs, 0.999 * scale) > epsilon


def chain_secrets(k: int, length: int) -> list[tuple[str, Any, Any]]:
    """Pairs of secrets, with what they mean of a row of states."""
    last = length - 1
    found: list[tuple[str, Any, Any]] = [
        (
            "several states",
            (Record(1, [0, 1]), Record(1, [k - 1])),
            (lambda r: r[1] in (0, 1), lambda r: r[1] == k - 1),
        ),
        ("across records", (Record(0, 1), Record(last, 0)), (lambda r: r[0] == 1, lambda r: r[last] == 0)),
        (
            "both ends",
            (Record(0, 0) & Record(last, 0), Record(0, 1) & Record(last, 1)),
            (lambda r: r[0] == r[last] == 0, lambda r: r[0] == r[last] == 1),
        ),
        (
            "counts",
            (pf.CountIs(1, at_least=2), pf.CountIs(1, at_most=1)),
            (lambda r: r.count(1) >= 2, lambda r: r.count(1) < 2),
        ),
        (
            "a count and a record",
            (pf.CountIs([0], 1, 2) & Record(last, 1), pf.CountIs([0], at_most=0)),
            (lambda r: 1 <= r.count(0) <= 2 and r[last] == 1, lambda r: r.count(0) == 0),
        ),
        (
            "two counts",
            (pf.CountIs(0, at_least=1) & pf.CountIs(1, at_least=1), Record(0, 0) & pf.CountIs(0, length)),
            (lambda r: 0 in r and 1 in r, lambda r: r.count(0) == length),
        ),
        ("contradictory", (Record(0, 0) & Record(0, 1), Record(0, 1)), (lambda r: False, lambda r: r[0] == 1)),
        ("overlapping", (Record(0, 0), pf.CountIs(0, at_least=1)), (lambda r: r[0] == 0, lambda r: 0 in r)),
    ]
    if k == 3:
        found.append(
            (
                "all but one state",
                (Record(0, [0, 2]) & pf.CountIs([1, 2], at_least=1), pf.CountIs([1, 2], at_least=2)),
                (lambda r: r[0] != 1 and sum(x > 0 for x in r) >= 1, lambda r: sum(x > 0 for x in r) >= 2),
            ),
        )
    return found


def check_secrets(
    make: Callable[..., Any], queries: Sequence[Asked], databases: Databases, cases: Sequence[tuple[str, Any, Any]]
) -> None:
    for _, secrets, meant in cases:
        check(
            lambda kind, s=secrets: make(kind, [s]),
            queries,
            lambda ask, m=meant: databases.pairs(ask, [m]),
            scales=[1.0],
        )
    secrets, meant = [case[1] for case in cases[:4]], [case[2] for case in cases[:4]]
    check(lambda kind: make(kind, secrets), queries[:2], lambda ask: databases.pairs(ask, meant))
