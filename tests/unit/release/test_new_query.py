"""A query that is new, as an author would write it: what follows of it with no other place changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
import record_rules
from pufferfish._base.frozen import ReadOnly
from pufferfish.queries import KINDS, LinearQuery, Query, QueryKind, StepQuery, Variables
from pufferfish.release import facts

CHAIN = pf.MarkovChain([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]], states=list("abc"))


@dataclass(frozen=True)
class Ends(ReadOnly, Query):
    """Records in the first and in the last state: two outputs that leave records out."""

    kinds: ClassVar[Mapping[str, QueryKind]] = {"ends": QueryKind("records", 2)}

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> LinearQuery:
        weights = np.zeros((2, len(states)), dtype=np.int64)
        weights[0, 0] = weights[1, -1] = 1
        return LinearQuery(weights, Fraction(1), ("first", "last"), "records in the first and in the last state")


@dataclass(frozen=True)
class Repeats(ReadOnly, Query):
    """The share of records in the same state as the one before; it has no attribute ``relative``."""

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "repeats": QueryKind("share of records", 2, relative=True, of_steps=True)
    }

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> StepQuery:
        same = np.where(np.eye(len(states)), 0, -1)
        what = f"share of the {records} records that repeat the one before"
        return StepQuery(same, Fraction(1, records), ("repeats",), what, divided_by=records)


@pytest.mark.parametrize("query", [Ends(), Repeats()], ids=repr)
def test_releases_of_a_new_query_are_read_again(query: Query, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known: Any = {**KINDS, **query.kinds}  # as if it stood in QUERIES
    monkeypatch.setattr(facts, "_KINDS", {**facts._KINDS, type(query).__name__: type(query)})
    monkeypatch.setattr(record_rules, "KINDS", known)
    monkeypatch.setattr(record_rules, "_WORDS", {*record_rules._WORDS, *query.kinds})
    monkeypatch.setattr(record_rules, "_OF_STEPS", {word for word, kind in known.items() if kind.of_steps})
    data = pf.read_sequences(pl.DataFrame({"s": list("aabbccabc") * 10}), state="s")
    noise = pf.LeakagePropagation(CHAIN, length=data.length).calibrate(query, epsilon=1.0)
    for postprocess in (None, "valid"):
        found = pf.release(data, query, noise, postprocess=postprocess)
        found.to_json(tmp_path / f"{postprocess}.json")
        assert pf.Release.from_json(tmp_path / f"{postprocess}.json") == found
