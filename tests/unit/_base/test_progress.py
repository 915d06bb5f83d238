"""Long work tells how far it is, and only those who listen hear it."""

import pufferfish as pf
from pufferfish._base.progress import listening, report_progress


def test_searches_and_comparisons_report_shares() -> None:
    heard: list[tuple[str, float]] = []
    with listening(lambda what, share: heard.append((what, share))):
        pf.compare(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0]), pf.Count(1), 1.0, length=200)
    stages = {what for what, _ in heard}
    assert {"MQMExact at ε = 1", "ExactLaplace at ε = 1"} <= stages
    # a part is told with the mechanism whose work it is; ExactLaplace takes the laws that are known by then
    assert "Wasserstein at ε = 1: laws of the query" in stages
    assert "ExactLaplace at ε = 1: laws of the query" not in stages
    parts = {stage.partition(" at ε = 1: ")[2] for stage in stages if ": " in stage}
    assert parts - {"compiling loops, once on a machine"} == {
        "searching quilts",
        "propagating leakage",
        "laws of the query",
    }
    assert all(0 <= share <= 1 for _, share in heard)
    assert max(share for what, share in heard if what == "MQMExact at ε = 1: searching quilts") == 1.0


def test_nobody_hears_outside_the_block() -> None:
    heard: list[float] = []
    with listening(lambda _, share: heard.append(share)):
        report_progress("x", 0.25)
    report_progress("x", 0.75)
    assert heard == [0.25]
