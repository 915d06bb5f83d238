"""Pictures of networks: the right nodes in the right roles, words and counts, and labels that do not overlap."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import FancyArrowPatch, Polygon

import pufferfish as pf
from pufferfish._draw.figure import save_figure
from pufferfish._draw.network import draw_graph
from pufferfish.errors import ModelError, ParameterError
from pufferfish.mechanisms.network_picture import MOST_NODES, marked

TABLE = np.array([[0.9, 0.1], [0.2, 0.8]])


def network(parents: list[list[int]], names: list[Any] | None = None) -> pf.BayesianNetwork:
    called = [f"x{i}" for i in range(len(parents))] if names is None else names

    def cpt(above: list[int]) -> pf.CPT:
        if not above:
            return pf.CPT(["no", "yes"], [0.6, 0.4])
        table = np.stack(
            [TABLE[int(sum(row) * 2 > len(above))] for row in itertools.product((0, 1), repeat=len(above))]
        )
        return pf.CPT(["no", "yes"], table.reshape(*[2] * len(above), 2), [called[p] for p in above])

    return pf.BayesianNetwork({called[i]: cpt(above) for i, above in enumerate(parents)})


CHEST = network(
    [[], [0], [], [2], [2], [1, 3], [5], [5, 4]],
    ["asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp"],
)
CHAIN = network([[], *([i] for i in range(11))])


def mechanism() -> pf.MarkovQuilt:
    return pf.MarkovQuilt(CHAIN, quilts={f"x{i}": [[f"x{i - 2}", f"x{i + 2}"]] for i in range(2, 10)}, secrets=["x5"])


CORNERS = {"rectangles": 4, "hexagons": 6, "octagons": 8, "round": 36}


def words_of(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()] if figure.legends else []


def drawn(figure: Any) -> tuple[dict[str, int], list[str]]:
    patches = figure.axes[0].patches
    corners = [len(set(map(tuple, p.get_xy().round(6)))) for p in patches if isinstance(p, Polygon)]
    kinds = {
        "edges": sum(isinstance(p, FancyArrowPatch) for p in patches),
        **{name: corners.count(number) for name, number in CORNERS.items() if number in corners},
    }
    return kinds, [text.get_text().replace("\n", "") for text in figure.axes[0].texts]


def check_labels(figure: Any) -> None:
    """Every label is inside of its box, and inside of the figure."""
    canvas = FigureCanvasAgg(figure)
    renderer: Any = canvas.get_renderer()
    canvas.draw()
    boxes = [p.get_window_extent(renderer) for p in figure.axes[0].patches if not isinstance(p, FancyArrowPatch)]
    labels = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
    for box, label in zip(boxes, labels, strict=True):
        assert box.x0 <= label.x0
        assert label.x1 <= box.x1
        assert box.y0 <= label.y0
        assert label.y1 <= box.y1
    low = min(box.y0 for box in boxes)
    high = max(box.y1 for box in boxes)
    title = figure._suptitle.get_window_extent(renderer)
    assert title.y0 > high
    assert title.x1 <= figure.bbox.x1
    if figure.legends:
        legend = figure.legends[0].get_window_extent(renderer)
        assert legend.y1 < low
        assert legend.y0 >= 0
        assert legend.x1 <= figure.bbox.x1


def test_a_plain_network_has_all_nodes_and_edges_and_no_legend() -> None:
    figure = pf.draw_network(CHEST)
    kinds, labels = drawn(figure)
    assert kinds == {"edges": 8, "rectangles": 8}
    assert labels == [str(node) for node in CHEST.nodes]
    assert words_of(figure) == []
    assert figure.get_suptitle() == "Bayesian network of 8 nodes, 8 edges"
    check_labels(figure)


def test_the_worst_node_its_quilt_and_their_numbers() -> None:
    read = [0, 1, 2, 4, 5, 6, 8, 9, 10]
    calibration = mechanism().calibrate(pf.Subset(pf.Count("yes"), [f"x{i}" for i in read]), epsilon=10)
    assert calibration.witness.active_quilt == ("x3", "x7")
    figure = pf.draw_network(CHAIN, calibration)
    kinds, _ = drawn(figure)
    assert kinds == {"edges": 11, "rectangles": 7, "hexagons": 2, "octagons": 1, "round": 2}
    assert words_of(figure) == [
        "worst node: x5",
        "quilt: 2 nodes",
        "nearby: 3 nodes, with the node itself",
        "remote: 7 nodes",
        "hollow: 3 nodes not read, loss 0",
    ]
    influence = calibration.witness.influence
    states = " / ".join(calibration.witness.secret_pair or ())
    assert figure.get_suptitle() == f"MarkovQuilt, ε = 10: node x5 ({states}), influence {influence:.2g}, 3 nearby"
    shown = marked(CHAIN, calibration, None, None)
    assert "".join(role[0] for role in shown.roles) == "rrrqnnnqrrrr"
    assert [i for i in range(12) if shown.filled[i]] == read
    boxes = [p for p in figure.axes[0].patches if not isinstance(p, FancyArrowPatch)]
    assert sum(box.get_facecolor() == (1, 1, 1, 1) for box in boxes) == 3
    check_labels(figure)


def test_a_page_has_the_picture_without_its_title_and_as_wide_as_its_content() -> None:
    """A few nodes fit a phone; the legend is whole, and nothing else than the width and the title differs."""
    calibration = mechanism().calibrate(pf.Count("yes"), 1.0)
    figure = pf.draw_network(CHAIN, calibration)
    graph = marked(CHAIN, calibration, None, None)
    narrow = draw_graph(graph, in_page=True)
    assert graph.title == figure.get_suptitle().replace("\n", " ")
    assert not narrow.get_suptitle()
    assert (drawn(narrow), words_of(narrow)) == (drawn(figure), words_of(figure))
    assert narrow.get_figwidth() < 3.5 < 6 < figure.get_figwidth()
    FigureCanvasAgg(narrow).draw()
    legend, (wide, tall) = narrow.legends[0].get_window_extent(), narrow.bbox.size
    assert 0 <= legend.x0 < legend.x1 <= wide
    assert 0 <= legend.y0 < legend.y1 < tall


def test_a_node_whose_states_the_query_does_not_count_is_hollow() -> None:
    cpts = {"a": pf.CPT(["0", "1"], [0.5, 0.5]), "b": pf.CPT(["low", "high"], TABLE, ["a"])}
    both = pf.BayesianNetwork(cpts)
    shown = marked(both, pf.MarkovQuilt(both).calibrate(pf.Count("high"), epsilon=1), None, None)
    assert shown.filled == (False, True)


def test_roles_have_shapes_and_colours_of_their_own() -> None:
    calibration = mechanism().calibrate(pf.Count("yes"), epsilon=4)
    boxes = [p for p in pf.draw_network(CHAIN, calibration).axes[0].patches if not isinstance(p, FancyArrowPatch)]
    looks: dict[str, set[Any]] = {}
    for role, box in zip(marked(CHAIN, calibration, None, None).roles, boxes, strict=True):
        shape = len(set(map(tuple, box.get_xy().round(6))))
        looks.setdefault(role, set()).add((shape, box.get_facecolor()))
    assert {len(look) for look in looks.values()} == {1}
    shapes, faces = zip(*(look.pop() for look in looks.values()), strict=True)
    assert len(set(shapes)) == len(set(faces)) == len(looks) == 4


def test_another_node_is_drawn_with_its_quilt() -> None:
    pairs = pf.MarkovQuilt(CHAIN)
    calibration = pairs.calibrate(pf.Count("yes"), epsilon=4)
    first, *_, last = pairs.active_quilts(calibration)
    shown = marked(CHAIN, calibration, None, last)
    assert shown.roles[-1] == "node"
    assert shown.roles.count("nearby") == len(last.quilt.nearby) - 1
    assert f"influence {last.influence:.2g}" in shown.title or not last.quilt.quilt
    assert shown.legend[0][2] == "node: x11"
    for quilt in (["x3"], pf.Quilt.of(CHAIN, "x0", ["x3"])):
        shown = marked(CHAIN, None, "x0", quilt)
        assert shown.title == "Bayesian network of 12 nodes, 11 edges: node x0, 3 nearby"
        assert "".join(role[0] for role in shown.roles) == "nnnqrrrrrrrr"
    with pytest.raises(ParameterError, match="leave node out"):
        pf.draw_network(CHAIN, calibration, node="x3", quilt=first)


def test_a_node_alone_is_marked_and_the_worst_one_keeps_its_quilt() -> None:
    calibration = mechanism().calibrate(pf.Count("yes"), epsilon=4)
    assert marked(CHAIN, calibration, "x5", None) == marked(CHAIN, calibration, None, None)
    shown = marked(CHAIN, calibration, "x2", None)
    assert [role for role in shown.roles if role != "plain"] == ["node"]
    assert shown.title == "MarkovQuilt, ε = 4: node x2"
    assert shown.legend[1][2] == "other: 11 nodes"


TREE = network([[], *([(i - 1) // 2] for i in range(1, 7))])
SECRETS = [(pf.RecordIs("x0", "yes"), pf.RecordIs("x0", "no"))]
WITHOUT_QUILTS = {
    "propagation": (
        lambda: pf.LeakagePropagation(TREE),
        r"node x\d \(\w+ / \w+\), leaks .* by itself, .* through x\d, .* through x\d",
    ),
    "group": (lambda: pf.GroupDP(TREE), "the losses of 7 connected nodes decide"),
    "distance": (lambda: pf.Wasserstein(TREE), r"node x\d \(no / yes\), the query's law moves by \d"),
    "secrets": (lambda: pf.Wasserstein(TREE, secrets=SECRETS), "the secrets .*x0.* / .*x0.* decide, .*moves by"),
    "exact": (lambda: pf.ExactLaplace(TREE), r"node x\d \(no / yes\)$"),
}


@pytest.mark.parametrize("case", WITHOUT_QUILTS)
def test_where_no_quilt_decides_the_title_says_what_does(case: str) -> None:
    make, says = WITHOUT_QUILTS[case]
    calibration = make().calibrate(pf.Count("yes"), epsilon=1)
    shown = marked(TREE, calibration, None, None)
    start = f"{calibration.title}, ε = 1: "
    assert shown.title.startswith(start)
    assert re.match(says, shown.title.removeprefix(start)), shown.title
    assert set(shown.roles) <= {"node", "plain"}
    check_labels(pf.draw_network(TREE, calibration))


def test_the_member_that_decides_is_named_and_no_other_network_is_drawn() -> None:
    turned = network([[1], [], [1]], ["x0", "x1", "x2"])
    plain = network([[], [0], [1]])
    calibration = pf.MarkovQuilt([plain, turned]).calibrate(pf.Count("yes"), epsilon=1)
    decides = (plain, turned)[calibration.witness.theta]
    other = (turned, plain)[calibration.witness.theta]
    assert f"theta[{calibration.witness.theta}]" in marked(decides, calibration, None, None).title
    with pytest.raises(ParameterError, match="other nodes or edges than theta"):
        pf.draw_network(other, calibration)
    chain = pf.MarkovChain(TABLE, initial_distribution=[0.5, 0.5])
    of_chain = pf.MQMExact(chain, length=5).calibrate(pf.Count(1), 1.0)
    with pytest.raises(ParameterError, match="not for this Bayesian network"):
        pf.draw_network(plain, of_chain)


@pytest.mark.slow
def test_a_large_network_is_drawn_around_the_worst_node() -> None:
    size = 4330
    long = network([[], *([i] for i in range(size - 1))])
    quilt = [f"x{i}" for i in (995, 1005)]
    calibration = pf.MarkovQuilt(long, quilts={"x1000": [quilt]}, secrets=["x1000"]).calibrate(pf.Count("yes"), 4)
    figure = pf.draw_network(long, calibration)
    kinds, labels = drawn(figure)
    assert labels == [f"x{i}" for i in range(994, 1007)]
    assert kinds == {"edges": 12, "rectangles": 2, "hexagons": 2, "octagons": 1, "round": 8}
    assert figure.get_suptitle().endswith("\n4,317 remote nodes are not drawn")
    assert words_of(figure)[-1] == "remote: 4,319 nodes"
    check_labels(figure)
    around = marked(long, None, "x7", None)
    assert 6 < len(around.places) < MOST_NODES
    assert around.note == f"{size - len(around.places):,} nodes are not drawn"
    with pytest.raises(ParameterError, match=r"4,330 nodes, and at most 120 are drawn: name a node="):
        pf.draw_network(long)


def test_what_is_left_out_of_a_large_neighbourhood_is_counted() -> None:
    wide = network([[], *([0] for _ in range(299))])
    shown = marked(wide, None, "x0", ["x200", "x201"])
    assert len(shown.places) == MOST_NODES
    assert {200, 201} <= set(shown.places)
    assert shown.note == "180 nearby nodes are not drawn"
    assert marked(wide, None, "x299", ["x0"]).note == f"{300 - MOST_NODES} remote nodes are not drawn"


@pytest.mark.parametrize("nodes", [1, 5, 30, 60, MOST_NODES])
def test_labels_fit_their_boxes(nodes: int) -> None:
    figure = pf.draw_network(network([sorted({i * 5 // 7, i // 2} - {i}) for i in range(nodes)]))
    check_labels(figure)


def test_long_and_strange_names() -> None:
    names = [
        "$a$",
        "variable_of_the_long_name_number_001",
        "variable_of_the_long_name_number_002",
        "x\ny",
        "W" * 30,
        7,
        "",
    ]
    odd = network([[], [0], [0], [1, 2], [3], [4], [5]], names)
    figure = pf.draw_network(odd, pf.MarkovQuilt(odd).calibrate(pf.Count("yes"), epsilon=1))
    _, labels = drawn(figure)
    assert len(set(labels)) == 7
    assert labels[0] == "$a$"
    assert labels[3] == "x\\ny"
    assert max(len(label) for label in labels) < 30
    check_labels(figure)


def test_one_network_has_one_picture(tmp_path: Path) -> None:
    for name in ("first.png", "second.png"):
        save_figure(pf.draw_network(CHEST), tmp_path / name)
    assert (tmp_path / "first.png").read_bytes() == (tmp_path / "second.png").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "options", "error", "says"),
    [
        (["chest"], {}, ParameterError, "network is str, expected a BayesianNetwork"),
        ([CHEST, 3], {}, ParameterError, "calibration is int, expected a Calibration"),
        ([CHEST], {"quilt": ["smoke"]}, ParameterError, "name its node by node="),
        ([CHEST], {"quilt": "smoke", "node": "lung"}, ParameterError, "expected an ActiveQuilt, a Quilt, or a list"),
        ([CHEST], {"node": "long"}, ModelError, "Did you mean 'lung'"),
        ([CHEST], {"node": "lung", "quilt": ["lung"]}, ModelError, "holds the node itself"),
        ([CHEST], {"node": "lung", "quilt": pf.Quilt(("lung",), (), ("asia",))}, ModelError, "expected each of the 8"),
    ],
)
def test_refusals(arguments: list[Any], options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        pf.draw_network(*arguments, **options)
