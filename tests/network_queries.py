"""Queries of networks, each with a plain function of one row that says what it asks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pufferfish as pf
from network_oracle import Network, Row
from pufferfish.queries import Query

VALUES = {"a": 0.0, "b": 1.5, "c": -1.0, "d": 0.5}


@dataclass(frozen=True)
class Asked:
    """A query of the package and what it asks, in numbers of records (for one row of the table)."""

    name: str
    query: Query
    answer: Callable[[Row], Sequence[float]]

    def __str__(self) -> str:
        return self.name


def queries_of(network: Network) -> list[Asked]:
    """One or more of every kind."""
    n = network.size
    every = list(dict.fromkeys(state for names in network.states for state in names))
    some = sorted({n // 2, n - 1})
    own = list(dict.fromkeys(state for j in some for state in network.states[j]))
    pair, last = [n - 1, 0], network.states[0][-1]
    factors = [(3, 0, -2, 1, -1, 2)[j] for j in range(n)]
    return [
        Asked("count", pf.Count("b"), lambda row: [row.count("b")]),
        Asked("histogram", pf.Histogram(relative=False), lambda row: [row.count(s) for s in every]),
        Asked("sum", pf.Sum({s: VALUES[s] for s in every}), lambda row: [sum(VALUES[s] for s in row)]),
        Asked(
            "marginals",
            pf.Marginals([f"v{j}" for j in pair], relative=False),
            lambda row: [float(row[j] == s) for j in pair for s in network.states[j]],
        ),
        Asked(
            "joint",
            pf.Joint([f"v{j}" for j in pair], relative=False),
            lambda row: [
                float((row[pair[0]], row[pair[1]]) == (s, t))
                for s in network.states[pair[0]]
                for t in network.states[pair[1]]
            ],
        ),
        Asked("one node", pf.Subset(pf.Count(last), "v0"), lambda row: [float(row[0] == last)]),
        Asked(
            "some nodes",
            pf.Subset(pf.Sum({s: VALUES[s] for s in own}), [f"v{j}" for j in some]),
            lambda row: [sum(VALUES[row[j]] for j in some)],
        ),
        Asked(
            "histogram of some nodes",
            pf.Subset(pf.Histogram(relative=False), [f"v{j}" for j in some]),
            lambda row: [sum(row[j] == s for j in some) for s in own],
        ),
        Asked(
            "weighted count",
            pf.Weighted(pf.Count("b"), factors),
            lambda row: [sum(c * (s == "b") for c, s in zip(factors, row, strict=True))],
        ),
        Asked(
            "weighted histogram",
            pf.Weighted(pf.Histogram(relative=False), factors),
            lambda row: [sum(c * (s == x) for c, s in zip(factors, row, strict=True)) for x in every],
        ),
    ]


def by_name(network: Network, name: str) -> Asked:
    return next(asked for asked in queries_of(network) if asked.name == name)


NAMES = [
    "count",
    "histogram",
    "sum",
    "marginals",
    "joint",
    "one node",
    "some nodes",
    "histogram of some nodes",
    "weighted count",
    "weighted histogram",
]
