"""Layouts of directed graphs: parents above children, boxes apart, edges between boxes, always the same."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pufferfish._draw.network import GAP, LANE, Layout, layered

HEIGHT = 0.4


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[int]], list[float]]:
    """Graphs of up to 40 nodes in an order that parents need not come first in, and widths of boxes."""
    n = draw(st.integers(1, 40))
    names = draw(st.permutations(range(n)))
    parents: list[list[int]] = [[] for _ in range(n)]
    for i in range(1, n):
        above = draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True))
        parents[names[i]] = [names[j] for j in above]
    return parents, draw(st.lists(st.floats(0.5, 2.5), min_size=n, max_size=n))


def check(layout: Layout, parents: list[list[int]], widths: list[float]) -> None:
    at = layout.positions
    assert at.shape == (len(parents), 2)
    assert np.all(np.isfinite(at))
    assert set(layout.routes) == {(p, c) for c, above in enumerate(parents) for p in above}
    for a, b in itertools.combinations(range(len(parents)), 2):
        apart_x = abs(at[a, 0] - at[b, 0]) - (widths[a] + widths[b]) / 2
        apart_y = abs(at[a, 1] - at[b, 1]) - HEIGHT
        assert apart_x >= GAP - 1e-9 or apart_y > 0.05, f"boxes {a} and {b} are too near"
    for (p, c), bends in layout.routes.items():
        down = [at[p, 1], *bends[:, 1], at[c, 1]]
        assert all(upper - lower > HEIGHT for upper, lower in itertools.pairwise(down)), f"edge {p}, {c}"
        for x, y in bends:
            beside = (j for j in range(len(parents)) if abs(at[j, 1] - y) < HEIGHT)
            assert all(abs(at[j, 0] - x) >= widths[j] / 2 + LANE - 1e-9 for j in beside), f"edge {p}, {c} hits a box"
    half = np.array(widths) / 2
    assert np.all(at[:, 0] - half >= -1e-9)
    assert np.all(at[:, 0] + half <= layout.size[0] + 1e-9)
    assert np.all(at[:, 1] - HEIGHT / 2 >= -1e-9)
    assert np.all(at[:, 1] + HEIGHT / 2 <= layout.size[1] + 1e-9)


@given(graphs())
def test_boxes_are_apart_and_parents_above(graph: tuple[list[list[int]], list[float]]) -> None:
    parents, widths = graph
    check(layered(parents, widths, HEIGHT), parents, widths)


@given(graphs())
def test_one_graph_has_one_layout(graph: tuple[list[list[int]], list[float]]) -> None:
    first, second = layered(*graph), layered(*graph)
    assert np.array_equal(first.positions, second.positions)
    assert all(np.array_equal(first.routes[edge], second.routes[edge]) for edge in first.routes)


CASES = {
    "one node": [[]],
    "no edges": [[] for _ in range(60)],
    "a star": [[], *([0] for _ in range(60))],
    "a star upside down": [*([] for _ in range(60)), list(range(60))],
    "a chain": [[], *([i] for i in range(30))],
    "pairs": [[] if i % 2 == 0 else [i - 1] for i in range(60)],
    "everything above": [list(range(i)) for i in range(9)],
}


@pytest.mark.parametrize("parents", CASES.values(), ids=CASES.keys())
def test_graphs_of_extreme_shape(parents: list[list[int]]) -> None:
    layout = layered(parents)
    check(layout, parents, [1.0] * len(parents))


def test_a_tree_has_no_crossings_and_parents_in_the_middle() -> None:
    parents = [[], *([(i - 1) // 2] for i in range(1, 15))]
    at = layered(parents, [0.6] * 15).positions
    rows = [range(2**k - 1, 2 ** (k + 1) - 1) for k in range(4)]
    for upper, lower in itertools.pairwise(rows):
        assert np.ptp(at[list(upper), 1]) < 1e-9
        order = [(at[(c - 1) // 2, 0], at[c, 0]) for c in lower]
        assert all((p <= q) == (c <= d) or p == q for (p, c), (q, d) in itertools.combinations(order, 2))
    for node in range(7):
        assert at[node, 0] == pytest.approx((at[2 * node + 1, 0] + at[2 * node + 2, 0]) / 2, abs=0.1)


def test_a_star_is_broken_into_rows_and_spread_over_them() -> None:
    at = layered(CASES["a star"]).positions
    heights = np.unique(at[1:, 1].round(6))
    assert 3 <= len(heights) <= 12
    counts = [int(np.sum(np.isclose(at[1:, 1], height))) for height in heights]
    assert max(counts) - min(counts) <= 1


def test_a_root_stands_next_to_its_child_and_not_at_the_top() -> None:
    chain_with_late_root = [[], [0], [1], [2], [3, 5], []]
    at = layered(chain_with_late_root).positions
    assert at[5, 1] == pytest.approx(at[3, 1])
    group_with_late_child = [[], [0], [1], [2], [3, 7], [], [], [5, 6]]
    at = layered(group_with_late_child).positions
    assert at[7, 1] == pytest.approx(at[3, 1])
    assert at[5, 1] == pytest.approx(at[6, 1]) == pytest.approx(at[2, 1])


def test_no_nodes_have_an_empty_layout() -> None:
    layout = layered([])
    assert layout.positions.shape == (0, 2)
    assert layout.size == (0.0, 0.0)
