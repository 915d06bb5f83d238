"""Random small networks with a release of each, its proof, and what leaks at most by linear programs over densities."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import pufferfish as pf
from columns_oracle import supremum_of_columns
from network_oracle import Network, random_network
from networks import model_of
from pufferfish.errors import PufferfishError
from pufferfish.release import certificate
from pufferfish.release.checker import check
from tree_oracle import supremum

__all__ = ["NetworkClaim", "network_claims"]


@dataclass(frozen=True)
class NetworkClaim:
    """A release of a network's table, its proof, what that proves, and what the noise leaks at most."""

    record: Any
    claim: Any
    proof: dict[str, Any]
    proved: float
    truth: float
    engine: float


def _query(network: Network, rng: np.random.Generator) -> Any:
    every = [f"v{j}" for j in range(network.size)]
    read = [every[j] for j in rng.permutation(network.size)[: int(rng.integers(1, network.size + 1))]]
    shared = sorted({state for name in read for state in network.states[every.index(name)]})
    kind = int(rng.integers(5))
    if kind == 0 and len(read) > 1:
        return pf.Joint(read, relative=bool(rng.integers(2)))
    if kind == 1:
        return pf.Subset(pf.Sum({state: float(rng.integers(-3, 4)) / 2 or 0.5 for state in shared}), read)
    if kind == 2:
        return pf.Subset(pf.Count(shared[0]), read)
    if kind == 3:
        return pf.Subset(pf.Histogram(relative=False), read)
    return pf.Marginals(read, relative=bool(rng.integers(2)))


def network_claims(seed: int, many: int, most: int = 81) -> Iterator[NetworkClaim]:
    """Yield claims about networks of at most so many rows that differ."""
    rng = np.random.default_rng(seed)
    while many:
        network = random_network(int(rng.integers(10**6)), int(rng.integers(1, 6)))
        size = int(np.prod(network.sizes))
        if not 1 < size <= most:
            continue
        names = [f"v{j}" for j in range(network.size)]
        hidden: list[int] | None = None
        settings: dict[str, Any] = {}
        chance = rng.random()
        if chance < 0.25 and network.size > 1:
            hidden = sorted(int(j) for j in rng.permutation(network.size)[: int(rng.integers(1, network.size + 1))])
            settings = {"protect": [names[j] for j in hidden]}
        secrets = None
        if 0.25 <= chance < 0.4:
            node = int(rng.integers(network.size))
            pair = [np.zeros((k, k), dtype=np.bool_) for k in network.sizes]
            pair[node][0, 1] = pair[node][1, 0] = True
            one, other = network.states[node][:2]
            secrets = [(pf.RecordIs(names[node], one), pf.RecordIs(names[node], other))]
        try:
            bound = pf.LeakagePropagation(model_of(network), length=7, secrets=secrets)
            noise = bound.calibrate(_query(network, rng), float(rng.uniform(0.2, 3)), **settings)
            record = certificate.record_of_noise(noise)
            claim = certificate.claim_of(record)
            claim.epsilon = check.Fraction(1, 10**6)  # so that the sum of all losses is no proof
            members, proved = certificate.proved(claim)
        except PufferfishError:
            continue
        if members[0] is None or not np.isfinite(proved):
            continue
        losses = [np.array([[float(loss) for loss in row] for row in loss]) for loss in claim.losses]
        if hidden is not None:
            truth, _ = supremum_of_columns(network.law, losses, hidden, rng, 12)
        else:
            truth = supremum(network.law, losses, None if secrets is None else pair)
        proof = {"format": "pufferfish-proof", "version": 1, "digits": claim.digits, "members": members}
        many -= 1
        yield NetworkClaim(record, claim, proof, proved, truth, noise.prove_leakage())
