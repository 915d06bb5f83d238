"""Ledgers, data and chains that several tests of the ledger use."""

import importlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.numbers.rounding import float_up
from pufferfish.data import Base
from pufferfish.errors import PufferfishError
from pufferfish.ledger import Ledger
from pufferfish.ledger.kept import with_digest

COUNT = pf.Count("active")
COIN = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["rest", "active"])
CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
THETA1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1.0, 0.0], states=["rest", "active"])
FINE = pf.MarkovChain([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]], states=["lie", "sit", "walk"])
COARSE = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
GROUPS = {"lie": "rest", "sit": "rest", "walk": "active"}
JUMP = 1 - np.eye(2)
RELEASE = importlib.import_module("pufferfish.release.draw")
TENTHS = [float_up(Fraction(i, 10)) for i in range(1, 11)]
"""Least floats that are at least 1/10, 2/10, … 1."""


class OneQuery(pf.GroupDP):
    """Stands for a calibration to one query, as the Wasserstein mechanism makes it."""

    name = "one-query"
    title = "OneQuery"
    composes = False


def ledger_of(
    chain: pf.MarkovChain = CHAIN,
    length: Any = 100,
    budget: float = 1.0,
    bound: Any = pf.LeakagePropagation,
    **more: Any,
) -> Ledger:
    return Ledger(bound(chain, length), budget, **more)


def in_file(path: Path, *args: Any, **options: Any) -> Ledger:
    ledger = ledger_of(*args, **options)
    ledger.save(path)
    return ledger


def put(path: Path, book: dict[str, Any]) -> None:
    """Write a ledger's file as a program would that does not know what a ledger holds: with a digest that fits."""
    path.write_bytes(with_digest(json.dumps(book).encode()))


def read(
    counts: list[list[int]],
    states: tuple[str, ...] = ("rest", "active"),
    steps: list[int] | None = None,
    names: tuple[str, ...] | None = None,
    **base: Any,
) -> pf.Sequences:
    spans = steps or [sum(row) for row in counts]
    subject = "id" if names or len(counts) > 1 else None
    return pf.Sequences(
        states=states,
        counts=np.array(counts),
        transitions=np.zeros((len(states), len(states)), dtype=np.int64),
        length=tuple(pf.ChainLength(n, sum(row)) for n, row in zip(spans, counts, strict=True)),
        subjects=len(counts),
        names=names,
        base=Base(**({"source": "table.csv", "state": "activity", "subject": subject} | base)),
    )


def spends_nothing(ledger: Ledger, act: Callable[[], object], error: type[Exception], match: str | None = None) -> None:
    """One clear error of this package, on one line, and the book is as before."""
    before, spent, base = ledger.entries, ledger.spent, ledger.base
    with pytest.raises(error, match=match) as caught:
        act()
    assert isinstance(caught.value, PufferfishError), repr(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) > 10
    assert (ledger.entries, ledger.spent, ledger.base) == (before, spent, base)
