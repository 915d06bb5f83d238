"""Releases of every kind that the program writes: what reading a record must never refuse."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import polars as pl
import pytest

import pufferfish as pf
from pufferfish.errors import NotApplicableError, ReleaseRefused
from pufferfish.mechanisms import MECHANISMS, ApproximateWasserstein, ParticipantDP

STATES = ["rest", "active", "sport"]
P = [[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.2, 0.4, 0.4]]
THREE = pf.MarkovChain(P, states=STATES)
FIXED = pf.MarkovChain(P, [0.5, 0.3, 0.2], states=STATES)
TWO = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]], states=["no", "yes"])
NEAR = [
    pf.MarkovChain([[0.55, 0.45], [0.45, 0.55]], states=["no", "yes"]),
    pf.MarkovChain([[0.4, 0.6], [0.6, 0.4]], "any", states=["no", "yes"]),
]
CHAINS: dict[str, Any] = {
    "chain": TWO,
    "any": pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]], "any", states=["no", "yes"]),
    "class": NEAR,
    "independent": pf.MarkovChain([[0.7, 0.3], [0.7, 0.3]], states=["no", "yes"]),
    "kinds of stay": pf.StaysChain([[0, 1], [1, 0]], [[(0.6, 0.4), (0.4, 0.9)], [(1, 0.5)]], states=["no", "yes"]),
    "mixed": [
        pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]], states=["no", "yes"]),
        pf.HigherOrderChain([[[0.7, 0.3], [0.6, 0.4]], [[0.5, 0.5], [0.4, 0.6]]], states=["no", "yes"]),
        pf.IntervalChain([[0.6, 0.3], [0.3, 0.5]], [[0.7, 0.4], [0.5, 0.7]], states=["no", "yes"], origin="a survey"),
    ],
    "forgetting": pf.ForgettingClass([3, 9], [0.3, 0.8], ["no", "yes"]),
    "interval": pf.IntervalChain([[0.6, 0.2], [0.2, 0.5]], [[0.8, 0.4], [0.5, 0.8]], states=["no", "yes"]),
    "binary interval": pf.BinaryChainInterval(0.45, 0.55, states=["no", "yes"]),
    "binary interval, stationary": pf.BinaryChainInterval(
        0.4, 0.6, initial_distribution="stationary", states=["no", "yes"]
    ),
}
NETWORK = pf.BayesianNetwork(
    {
        "a": pf.CPT(["no", "yes"], [0.8, 0.2]),
        "b": pf.CPT(["yes", "no"], [[0.2, 0.8], [0.6, 0.4]], ["a"]),
        "c": pf.CPT(["low", "mid", "high"], [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]], ["b"]),
    }
)
LOOP = pf.BayesianNetwork(
    {
        "a": pf.CPT(["no", "yes"], [0.8, 0.2]),
        "b": pf.CPT(["no", "yes"], [[0.8, 0.2], [0.6, 0.4]], ["a"]),
        "c": pf.CPT(["no", "yes"], [[[0.5, 0.5], [0.4, 0.6]], [[0.3, 0.7], [0.2, 0.8]]], ["a", "b"]),
    }
)
TABLE = pl.DataFrame({"a": ["no", "yes"] * 20, "b": ["no", "no", "yes", "yes"] * 10, "c": ["low", "mid"] * 20})
HOLES = TABLE.with_columns(pl.when(pl.int_range(40) % 7 == 0).then(None).otherwise(pl.col("b")).alias("b"))


def _series(states: list[str], subjects: int = 2, **options: Any) -> pf.Sequences:
    n = 40
    table = pl.DataFrame(
        {
            "id": [f"s{s}" for s in range(subjects) for _ in range(n + 10 * s)],
            "t": [m + 30 * (m >= 20) for s in range(subjects) for m in range(n + 10 * s)],
            "state": [states[(m // 3 + s) % len(states)] for s in range(subjects) for m in range(n + 10 * s)],
        }
    )
    if subjects == 1:
        return pf.read_sequences(table, "state", time="t", **options)
    return pf.read_sequences(table, "state", subject="id", time="t", **options)


def _queries(states: list[str]) -> list[Any]:
    values = list(range(len(states)))
    return [
        pf.Histogram(),
        pf.Histogram(relative=False),
        pf.Count(states[1]),
        pf.Frequency(states[:1]),
        pf.Sum([0.5 * v for v in values]),
        pf.Mean(values),
    ]


def cases() -> Iterator[tuple[str, Callable[[], pf.Release]]]:
    """Yield names of releases, and what makes them; some do not apply, or are refused."""
    mechanisms = (*MECHANISMS, ParticipantDP)
    two, gaps = _series(["no", "yes"]), _series(["no", "yes"], max_gap=5)
    one = _series(["no", "yes"], subjects=1)
    for kind, theta in CHAINS.items():
        for i, mechanism in enumerate(mechanisms):
            for j, query in enumerate(_queries(["no", "yes"])):
                if kind != "chain" and (i + j) % 3:
                    continue
                data = (two, gaps, one)[(i + j) % 3]
                yield f"{kind}, {mechanism.name}, {query}", _of(data, theta, mechanism, query, valid=bool((i + j) % 2))
        steps = [pf.Transitions(), pf.Switches(), pf.Transitions(relative=True), pf.Switches(relative=True)]
        for j, (mechanism, query) in enumerate((m, q) for m in (pf.LeakagePropagation, pf.GroupDP) for q in steps):
            data = (two, gaps, one)[j % 3]
            yield f"{kind}, {mechanism.name}, {query}", _of(data, theta, mechanism, query, valid=bool(j % 2))
    three = _series(STATES, max_gap=5, where="t < 60")
    for query in [*_queries(STATES), pf.Count(STATES[:2])]:
        for mechanism in (pf.LeakagePropagation, pf.MQMExact):
            yield f"three states, {mechanism.name}, {query}", _of(three, THREE, mechanism, query, valid=True)
    shaped: list[Any] = [pf.Histogram(), pf.CDF(relative=False), pf.Quantiles([0.5])]
    for query in shaped:
        for noise in ("equal", "best"):
            for mechanism in (pf.LeakagePropagation, pf.GroupDP):
                name = f"three states, {mechanism.name}, {query}, {noise}"
                yield name, _of(three, THREE, mechanism, query, valid=noise == "best", noise=noise)
    people = _series(STATES, by=["id"])
    for query, noise in product([*shaped, pf.CDF()], ("equal", "best")):
        name = f"three states by group, {query}, {noise}"
        yield name, _of(people, THREE, pf.LeakagePropagation, query, valid=noise == "best", noise=noise)
    for j, query in enumerate(
        [pf.Transitions(), pf.Switches(), pf.Transitions(relative=True), pf.Switches(relative=True)]
    ):
        mechanism = (pf.LeakagePropagation, pf.GroupDP)[j % 2]
        yield f"three states by group, {query}", _of(people, THREE, mechanism, query, valid=j != 1)
    for query in (pf.Window(pf.Histogram(), 3, 9), pf.Weighted(pf.CDF(), [1, 2, 0, -1] * 3)):
        row = ["rest", "sport", "active"] * 4
        yield f"list, best, {query}", _of(row, THREE, pf.LeakagePropagation, query, length=12, noise="best")
    row = ["no", "yes", "yes"] * 4
    for query in _queries(["no", "yes"]):
        for changed in (
            query,
            pf.Window(query, 3, 9),
            pf.Subset(query, [2, 5, 6]),
            pf.Weighted(query, [1, 2, 0, -1] * 3),
        ):
            forgetting = CHAINS["forgetting"]
            yield f"list, forgetting, {changed}", _of(row, forgetting, pf.LeakagePropagation, changed, length=12)
            for mechanism in (pf.LeakagePropagation, pf.MQMExact, pf.GroupDP, pf.Wasserstein, pf.ExactLaplace):
                valid = bool(len(str(changed)) % 2)
                yield f"list, {mechanism.name}, {changed}", _of(row, TWO, mechanism, changed, length=12, valid=valid)
        window = pf.read_sequences(pl.DataFrame({"s": row[3:9]}), "s")
        inside = pf.Window(query, 3, 9)
        yield f"window of a table, {query}", _of(window, TWO, pf.MQMExact, inside, length=12, valid=True)
        yield f"longer, {query}", _of(one, TWO, pf.MQMExact, query, length=[90], valid=True)
        secrets = [(pf.RecordIs(3, "no"), pf.RecordIs(3, "yes"))]
        yield f"secrets, {query}", _of(row, TWO, pf.Wasserstein, query, length=12, secrets=secrets)
        yield f"delta, {query}", _of(row, TWO, ApproximateWasserstein, query, length=12, delta=1e-3)
    yield "given start", _of(["rest", "sport"] * 6, FIXED, pf.LeakagePropagation, pf.Histogram(), length=12)
    rows, holes = pf.read_rows(TABLE, NETWORK), pf.read_rows(HOLES, NETWORK, missing="unobserved")
    only = pf.read_rows(TABLE.select("a", "b"), NETWORK)
    asked: list[Any] = [pf.Marginals(), pf.Marginals(relative=False), pf.Marginals(["c"])]
    asked += [pf.Subset(query, ["a", "b"]) for query in _queries(["no", "yes"])]
    asked += [pf.Subset(query, ["c"]) for query in _queries(["low", "mid", "high"])]
    for mechanism in (pf.LeakagePropagation, pf.MarkovQuilt, pf.GroupDP, pf.Wasserstein, pf.ExactLaplace):
        for query in asked:
            for name, data in (("rows", rows), ("holes", holes), ("columns", only)):
                yield f"{name}, {mechanism.name}, {query}", _of(data, NETWORK, mechanism, query, valid=True)
    for secrets in (["a"], ["a", "c"]):
        for mechanism in (pf.LeakagePropagation, pf.MarkovQuilt):
            yield f"{secrets}, {mechanism.name}", _of(rows, NETWORK, mechanism, pf.Marginals(), secrets=secrets)
    for protect in (["a", "c"], "a", "row", "a+b"):
        for mechanism in (pf.LeakagePropagation, pf.GroupDP):
            for name, data in (("rows", rows), ("holes", holes), ("columns", only)):
                made = _of(data, NETWORK, mechanism, pf.Marginals(), valid=True, protect=protect)
                yield f"{name}, {mechanism.name}, protect {protect}", made
    alone = {"a": "no", "b": "yes", "c": "mid"}
    yield "one row of a network", _of(alone, NETWORK, pf.MarkovQuilt, pf.Histogram(), valid=True)
    cycle = {"a": "no", "b": "yes", "c": "no"}
    for query in (pf.Histogram(relative=False), pf.Count("yes"), pf.Weighted(pf.Count("yes"), [1, 2, 1])):
        for mechanism in (pf.MarkovQuilt, pf.GroupDP, pf.Wasserstein):
            yield f"loop, {mechanism.name}, {query}", _of(cycle, LOOP, mechanism, query, valid=True)
    flu = pf.Cliques([[0.1, 0.15, 0.5, 0.15, 0.1], [0.5, 0.3, 0.2]], states=["healthy", "flu"])
    people = ["flu", "healthy", "flu", "flu", "healthy", "flu"]
    homes = pf.read_sequences(pl.DataFrame({"home": [1, 1, 1, 1, 2, 2], "s": people}), "s", subject="home")
    joint = pf.JointDistribution([[0, 0, 0], [2, 1, 0], [1, 0, 1]], [0.5, 0.3, 0.2], variables=["a", "b", "c"])
    most = pf.Function(lambda r: max(int(v) for v in r.values()), "most")
    for mechanism in (pf.Wasserstein, pf.ExactLaplace, pf.GroupDP):
        for query in _queries(["healthy", "flu"]):
            yield f"cliques, {mechanism.name}, {query}", _of(people, flu, mechanism, query, valid=True)
            yield f"homes, {mechanism.name}, {query}", _of(homes, flu, mechanism, query)
        for query in (*_queries(["0", "1", "2"]), most, pf.Weighted(pf.Sum([0, 1, 2]), [1, 2, 3])):
            yield f"joint, {mechanism.name}, {query}", _of({"a": 2, "b": 1, "c": 0}, joint, mechanism, query)
    laws = {"sick": {1: 0.25, 2: 0.75}, "healthy": {0: 0.5, 1: 0.5}}
    own = pf.GivenLaws(laws, records=2, states=["healthy", "sick"], query=pf.Count("sick"))
    yield "own laws", _of(["sick", "healthy"], own, pf.Wasserstein, pf.Count("sick"))


def _of(
    data: Any,
    theta: Any,
    mechanism: Any,
    query: Any,
    length: Any = None,
    *,
    valid: bool = False,
    noise: Any = "equal",
    **settings: Any,
) -> Callable[[], pf.Release]:
    def make() -> pf.Release:
        steps = length
        if steps is None and isinstance(data, pf.Sequences | pf.Rows):
            steps = data.length if not isinstance(theta, pf.Cliques) else None
        found = mechanism.of(theta, steps, **settings).calibrate(query, 1.0, noise=noise)
        function = valid and not isinstance(query, pf.Function)
        return pf.release(data, query, found, postprocess="valid" if function else None)

    return make


def releases(every: int = 5) -> Iterator[tuple[str, pf.Release]]:
    """Yield every fifth release that can be made (they differ in all ways); all of them take a minute."""
    for i, (name, make) in enumerate(cases()):
        if i % every:
            continue
        try:
            yield name, make()
        except (NotApplicableError, ReleaseRefused):
            continue


def end_searches_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches for the best shape of noise end soon, in tests of something else; the proof is as strict.

    How good shapes are is tested in tests/unit/mechanisms/test_best_noise.py.
    """
    monkeypatch.setattr("pufferfish._core.strategies.MOST_ASKED", 12)
