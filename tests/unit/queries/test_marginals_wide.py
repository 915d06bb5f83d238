"""Queries on tables with many columns: what is computed from the outputs that read a node is what all outputs say."""

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.queries import LinearQuery, Query

SIZES = (2, 3, 2, 4, 3)
NET = pf.BayesianNetwork(
    {
        f"v{i}": pf.CPT(
            [f"s{x}" for x in range(k)], np.full((SIZES[i - 1], k) if i else k, 1 / k), [f"v{i - 1}"] * (i > 0)
        )
        for i, k in enumerate(SIZES)
    }
)
QUERIES = [
    pf.Marginals(),
    pf.Marginals(["v3", "v1"], relative=False),
    pf.Marginals(["v2"]),
    pf.Subset(pf.Count("s1"), ["v1", "v4"]),
    pf.Subset(pf.Histogram(), ["v0", "v2"]),
    pf.Subset(pf.Sum([-3, 5]), ["v0", "v2"]),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.kind)
def test_distances_and_spans_are_those_of_all_outputs(query: Query) -> None:
    bound = pf.LeakagePropagation(NET, length=7).bind(query)
    spans = np.zeros(len(bound.labels), dtype=np.int64)
    for place in range(len(SIZES)):
        columns = bound.contributions_of(place)
        expected = np.abs(columns[:, :, None] - columns[:, None, :]).sum(axis=0)
        assert np.array_equal(bound.distance_of(place), expected)
        assert np.array_equal(bound.distances[place], expected)
        spans += columns.max(axis=1) - columns.min(axis=1)
    assert np.array_equal(bound.spans, spans)


def test_many_columns_cost_what_they_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node is read by its own outputs only, and no array of all outputs is made for a node."""
    nodes = 300
    wide = pf.BayesianNetwork({f"v{i}": pf.CPT(["a", "b", "c"], [0.2, 0.3, 0.5]) for i in range(nodes)})
    seen: list[int] = []
    counted = LinearQuery._counted
    monkeypatch.setattr(
        LinearQuery,
        "_counted",
        lambda query, place: (seen.append(counted(query, place)[1].size), counted(query, place))[1],
    )
    monkeypatch.setattr(LinearQuery, "contributions_of", None)
    noise = pf.LeakagePropagation(wide, length=4).calibrate(pf.Marginals(), 1.0)
    assert noise.unit_scale == pytest.approx(2.0, rel=1e-4)
    assert len(seen) >= nodes
    assert max(seen) == 9  # three outputs of three states
