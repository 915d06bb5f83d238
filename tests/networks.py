"""Networks of the oracle as models of the package."""

from functools import cache

import numpy as np

import pufferfish as pf
from network_oracle import Network
from pufferfish._core.networks.inference import Inference


@cache
def inference_of(network: Network) -> Inference:
    tables = [
        ((*above, j), table) for j, (above, table) in enumerate(zip(network.parents, network.tables, strict=True))
    ]
    return Inference(tables, network.sizes)


@cache
def model_of(network: Network) -> pf.BayesianNetwork:
    """Nodes are called v0, v1, and so on."""
    return pf.BayesianNetwork(
        {
            f"v{j}": pf.CPT(names, table, [f"v{parent}" for parent in above])
            for j, (names, table, above) in enumerate(zip(network.states, network.tables, network.parents, strict=True))
        }
    )


def has_secrets(network: Network) -> bool:
    return any(network.secrets(node).any() for node in range(network.size))


def loss_matrices(rng: np.random.Generator, network: Network) -> list[np.ndarray]:
    """Losses for every pair of states, neither symmetric nor metrics, zero at some nodes."""
    return [rng.uniform(0, 1, size=(k, k)) * (1 - np.eye(k)) * rng.choice([0, 0.3, 1]) for k in network.sizes]
