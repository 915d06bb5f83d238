"""Small networks whose rows are drawn, and the networks that others publish, where they are beside the repo."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pufferfish as pf

__all__ = ["WARD", "published", "rows_of", "without"]

NO = ["no", "yes"]
WARD = pf.BayesianNetwork(
    {
        "smoke": pf.CPT(NO, [0.7, 0.3]),
        "age": pf.CPT(["young", "old"], [0.6, 0.4]),
        "lung": pf.CPT(NO, [[[0.98, 0.02], [0.9, 0.1]], [[0.85, 0.15], [0.6, 0.4]]], ["smoke", "age"]),
        "rare": pf.CPT(NO, [0.99, 0.01]),
        "either": pf.CPT(NO, [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]], ["lung", "rare"]),
        "xray": pf.CPT(NO, [[0.95, 0.05], [0.1, 0.9]], ["either"]),
    }
)
"""Nodes of two states; either is a logical OR, and rare is so seldom that its second state meets little."""


def published(name: str) -> pf.BayesianNetwork:
    path = Path(__file__).parents[1] / "../shared/data/bayesnets" / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    return pf.BayesianNetwork.from_bif(path)


def rows_of(network: pf.BayesianNetwork, rows: int, seed: int) -> pl.DataFrame:
    """A table of rows drawn from a network."""
    rng = np.random.default_rng(seed)
    places: dict[str, np.ndarray] = {}
    for node in network.order:
        cpt = network.cpts[node]
        above = tuple(places[parent] for parent in cpt.parents)
        laws = cpt.table[above] if above else np.broadcast_to(cpt.table, (rows, len(cpt.states)))
        places[node] = (rng.random((rows, 1)) > laws.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return pl.DataFrame({node: [network.node_states[node][x] for x in places[node]] for node in network.nodes})


def without(network: pf.BayesianNetwork, arrow: tuple[str, str], table: pl.DataFrame) -> pf.ModelClass:
    """The network fitted to a table with one arrow less."""
    kept = [edge for edge in network.edges if edge != arrow]
    return pf.fit_network(table, kept, columns=[node for node in network.nodes if node in arrow])
