"""Networks, tables of rows and ledgers that several tests of the ledger of networks use."""

from pathlib import Path
from typing import Any

import numpy as np

import pufferfish as pf
from pufferfish.data import Rows, RowsBase
from pufferfish.ledger import Ledger

STEP = [[0.9, 0.1], [0.4, 0.6]]
YES_NO = ["no", "yes"]

LINE = pf.BayesianNetwork(
    {
        "a": pf.CPT(YES_NO, [0.8, 0.2]),
        "b": pf.CPT(YES_NO, STEP, ["a"]),
        "c": pf.CPT(YES_NO, STEP, ["b"]),
    }
)
"""The chain of three records in Section 4.2 of the paper."""

APART = pf.BayesianNetwork({name: pf.CPT(YES_NO, [0.7, 0.3]) for name in ("a", "b", "c")})
"""Nodes that are independent of each other."""

COLLIDER = pf.BayesianNetwork(
    {
        "a": pf.CPT(YES_NO, [0.8, 0.2]),
        "b": pf.CPT(YES_NO, [0.6, 0.4]),
        "c": pf.CPT(["low", "mid", "high"], [[[0.8, 0.1, 0.1], [0.3, 0.4, 0.3]], [[0.2, 0.6, 0.2], [0.1, 0.2, 0.7]]],
                    ["a", "b"]),
        "d": pf.CPT(YES_NO, [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]], ["c"]),
    }
)  # fmt: skip
"""A network that is no forest, with nodes of different states."""

BOUNDS: dict[str, tuple[Any, pf.BayesianNetwork]] = {
    "propagation": (pf.LeakagePropagation, LINE),
    "markov-quilt": (lambda theta, rows: pf.MarkovQuilt(theta, length=rows), LINE),
    "group-dp": (pf.GroupDP, LINE),
    "propagation, no forest": (pf.LeakagePropagation, COLLIDER),
    "markov-quilt, no forest": (lambda theta, rows: pf.MarkovQuilt(theta, length=rows), COLLIDER),
}


def rows_of(network: pf.BayesianNetwork = LINE, n: int = 50, nodes: Any = None, seed: int = 1, **base: Any) -> Rows:
    """A table of n rows in any states."""
    rng, read = np.random.default_rng(seed), tuple(network.nodes if nodes is None else nodes)
    sizes = {node: len(network.node_states[node]) for node in read}
    columns = {str(node): str(node) for node in read}
    return Rows(
        nodes=read,
        states={node: network.node_states[node] for node in read},
        counts={node: rng.multinomial(n, [1 / k] * k) for node, k in sizes.items()},
        records=n,
        base=RowsBase(**({"source": "rows.csv", "columns": columns} | base)),
    )


def ledger_of(
    network: Any = LINE, rows: int = 50, budget: float = 1.0, bound: Any = pf.LeakagePropagation, **more: Any
) -> Ledger:
    return Ledger(bound(network, rows), budget, **more)


def quilts(network: Any, rows: int, **settings: Any) -> pf.MarkovQuilt:
    return pf.MarkovQuilt(network, length=rows, **settings)


def in_file(path: Path, *args: Any, **options: Any) -> Ledger:
    ledger = ledger_of(*args, **options)
    ledger.save(path)
    return ledger
