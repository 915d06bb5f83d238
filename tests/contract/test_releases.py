"""Whatever is released can be read again: every mechanism with every kind of query, and every query is listed."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pufferfish as pf
from pufferfish.errors import NotApplicableError, QueryError
from pufferfish.mechanisms import MECHANISMS, Mechanism
from pufferfish.queries import KINDS, QUERIES, StepQuery
from query_examples import EXAMPLES, STATES

CHAIN = pf.MarkovChain([[0.56, 0.44], [0.4, 0.6]], states=STATES)
PHASES = pf.PeriodicChain([[[0.56, 0.44], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], states=STATES)
STAYS = pf.StaysChain([[0, 1], [1, 0]], [[(0.5, 0.5), (0.5, 0.9)], [(1, 0.4)]], states=STATES)
MEMORY = pf.HigherOrderChain([[[0.56, 0.44], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], states=STATES)
COIN = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=STATES)
FORGETS = pf.ForgettingClass(3, 0.4, STATES)
NETWORK = pf.BayesianNetwork({"u": pf.CPT(STATES, [0.5, 0.5]), "v": pf.CPT(STATES, [[0.7, 0.3], [0.4, 0.6]], ["u"])})
SERIES = pl.DataFrame({"s": ["a", "b", "b", "a"] * 3})
TABLE = pl.DataFrame({"u": ["a", "b"] * 10, "v": ["b", "b", "a", "a"] * 5})


def test_every_query_has_an_example_of_each_of_its_kinds() -> None:
    assert set(EXAMPLES) == set(QUERIES)
    assert {query.kind for queries in EXAMPLES.values() for query in queries} == set(KINDS)
    for queries in EXAMPLES.values():
        for query in queries:
            known = KINDS[query.kind]
            columns = {name: tuple(STATES) for name in ("uv" if isinstance(query, pf.Joint) else "u")}
            try:
                bound = query.bind(STATES, 12, columns)
            except QueryError:  # it is of chains alone
                bound = query.bind(STATES, 12)
            assert known.relative == (bound.divided_by is not None)
            assert known.of_steps == isinstance(bound, StepQuery)
            assert known.moves in (None, bound.unit_lipschitz)


@pytest.mark.grid(keep=len(MECHANISMS))
@pytest.mark.parametrize("make", MECHANISMS, ids=lambda m: m.name)
def test_what_is_released_is_read_again(make: type[Mechanism], tmp_path: Path, slow: bool) -> None:
    chains, rows = pf.read_sequences(SERIES, state="s", states=STATES), pf.read_rows(TABLE, NETWORK, joint=["u", "v"])
    path, done = tmp_path / "release.json", 0
    kinds = (CHAIN, COIN, PHASES, MEMORY, STAYS, FORGETS)
    every = [query for queries in EXAMPLES.values() for query in queries]
    for i, (theta, data) in enumerate((*((theta, chains) for theta in kinds), (NETWORK, rows))):
        # every query with a chain and with a network; with other kinds of model, all of them together have every query
        for query in every if slow or theta is CHAIN or data is rows else every[i - 1 :: len(kinds) - 1]:
            asked: Any = (
                pf.Subset(query, ["u"]) if data is rows and not isinstance(query, pf.Marginals | pf.Joint) else query
            )
            try:
                noise = make.of(theta, data.length).calibrate(asked, 1.0)
            except (NotApplicableError, QueryError):
                continue
            for postprocess in (None, "valid") if slow else ("valid" if done % 2 else None,):
                found = pf.release(data, asked, noise, postprocess=postprocess)
                found.to_json(path, overwrite=True)
                assert pf.Release.from_json(path) == found
                done += 1
    assert done >= (6 if slow else 3)
