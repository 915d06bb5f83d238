"""Networks of the oracle as models of the package."""

from functools import cache
from typing import Any

import numpy as np

import pufferfish as pf
from network_oracle import Network
from pufferfish._core.networks.inference import Inference
from pufferfish.mechanisms.engine import Bound
from pufferfish.mechanisms.propagation import columns_engine
from pufferfish.mechanisms.protection import ColumnsProtection, Protection
from pufferfish.queries.record_loss import as_record_loss
from pufferfish.theta.model_class import as_theta


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


def leakage_of_columns(theta: Any, losses: Any, columns: Any = "row") -> Bound:
    """What losses tell of columns of one row together, as a mechanism proves it that hides these."""
    known = as_theta(theta)
    network = known.networks[0]
    if len(columns) == 1 and network.sizes[network.place(*columns)] == 1:  # which nobody can ask for
        return 0.0, None
    return pf.LeakagePropagation(known, protect=columns).prove(losses)


def noise_for_columns(theta: Any, losses: Any, epsilon: float, columns: Any = "row") -> float:
    """The least number that divides losses so that columns of one row leak at most epsilon."""
    known = as_theta(theta)
    protection = Protection.of(columns, None, known, None)
    assert isinstance(protection, ColumnsProtection)
    engine = columns_engine(known.networks, protection)
    return next(iter(engine.candidate_scales(as_record_loss(losses, known, known.lengths), epsilon)))[0]
