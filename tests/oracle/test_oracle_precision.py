"""What is promised in doubles, against decimals of 60 digits: nearly reducible, periodic and deterministic models.

Entries go down to the least positive double. The losses are those of the definition: every database, every output,
every pair of values; and of densities that record losses allow. No margin: a scale that is too small by one unit in the
last place fails, and so does a refusal that says that nothing is to be protected where something is.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

import pufferfish as pf
from precise import Law, at_most, network_law, query_loss, tilt_loss, transfer_loss
from precise_models import of_boxes, of_chains, of_clocks, of_intervals, of_networks
from pufferfish.mechanisms import BOUNDS, MECHANISMS


def answers_of(weights: np.ndarray, law: Law) -> dict[tuple[int, ...], tuple[int, ...]]:
    return {seq: tuple(int(v) for v in weights[:, list(seq)].sum(axis=1)) for seq in law}


def _certain(weights: np.ndarray | None, law: Law) -> bool:
    """Whether nothing is to be protected: all records are certain, or the answer is (where a mechanism said it)."""
    records = all(len(set(values)) == 1 for values in zip(*law, strict=True))
    return records or (weights is not None and len(set(answers_of(weights, law).values())) == 1)


def check(seed: int, kind: Any, seen: Counter[str]) -> None:
    """Calibrate every mechanism, and ask every bound for a leakage: neither is below the loss in decimals."""
    rng = np.random.default_rng(seed)
    try:
        theta, length, laws = kind(rng)
    except pf.ModelError:  # a stationary law that is not unique, or too small to compute
        seen["refused"] += 1
        return
    records, k = len(next(iter(laws[0]))), len(theta.states)
    query = [pf.Count("1"), pf.Histogram(relative=False), pf.Sum([0, 1, 3][:k])][rng.integers(3)]
    epsilon, loss = float(rng.choice([1e-5, 0.1, 1, 5, 50, 500])), float(rng.choice([1e-12, 0.1, 1, 5, 50, 200]))
    d = [[[0.0 if x == y else loss for x in range(k)] for y in range(k)]] * records
    tilts = [(z * records)[:records] for z in itertools.product(range(k), repeat=records if k == 2 else 2)]
    tilts = [z for z in tilts if all(z[t] <= max(s[t] for s in laws[0]) for t in range(records))] or tilts[:1]
    weights: np.ndarray | None = None
    for mechanism in MECHANISMS:
        try:
            bound = mechanism.of(theta, length)
        except pf.PufferfishError:
            continue
        try:
            noise = bound.calibrate(query, epsilon)
        except pf.PufferfishError as error:
            if "no noise is needed" in str(error) or "no secret" in str(error):
                assert all(_certain(weights, law) for law in laws), (seed, mechanism.name)
        else:
            seen[mechanism.name], weights = seen[mechanism.name] + 1, noise.linear.weights
            for law in laws:
                found = query_loss(law, answers_of(noise.linear.weights, law), 1, noise.unit_scale)
                assert at_most(found, epsilon), (seed, mechanism.name, found)
        if mechanism in BOUNDS:
            try:
                leakage = bound.leakage(loss)
            except pf.PufferfishError:
                continue
            for law in laws if leakage < math.inf else ():
                seen[f"{mechanism.name} leaks"] += 1
                assert at_most(tilt_loss(law, d, tilts), leakage), (seed, mechanism.name, leakage)


KINDS = {of_chains: (4, 200), of_clocks: (2, 200), of_boxes: (1, 12), of_intervals: (2, 200), of_networks: (3, 200)}
"""How many random cases of each kind are tried in the usual run, and in the long one: a box may take half a minute."""


def test_no_promise_in_doubles_is_below_the_loss_in_decimals(slow: bool) -> None:
    for kind, cases in KINDS.items():
        seen: Counter[str] = Counter()
        for seed in range(cases[slow]):
            check(seed, kind, seen)
        assert min(seen["propagation"], seen["group-dp"]) >= min(2, cases[0]), seen
        assert seen["refused"] < cases[0] / 2 or slow


def large_chains(k: int) -> Iterable[tuple[str, np.ndarray]]:
    """Many states: two halves that hardly meet, a cycle that hardly slips, and one step that is all but certain."""
    halves = np.kron(np.eye(2), np.full((k // 2, k // 2), 2 / k))
    halves[0, k - 1] = halves[k - 1, 0] = 1e-300
    cycle = np.roll(np.eye(k), 1, axis=1)
    cycle[0, 2] = 1e-300
    hub = np.full((k, k), 1e-200)
    hub[:, 0] = 1.0
    hub[0, 1] = 0.5
    hub[0, 0] = 0.5
    return (("halves", halves), ("cycle", cycle), ("hub", hub))


def test_many_states_that_hardly_mix(slow: bool) -> None:
    k = 80 if slow else 40
    for name, p in large_chains(k):
        if name != "hub" and not slow:
            continue  # Φ of 6,320 pairs of rows
        start = np.full(k, 1 / k)
        chain = pf.MarkovChain(p, start)
        signs = [np.arange(k) < k // 2, np.arange(k) < 1, np.arange(k) % 2 == 0]
        for loss in (0.1, 2.0) if slow else (1.0,):
            least = max(transfer_loss(start, chain.transition_matrix, 4, loss * sign) for sign in signs)
            for bound in (pf.LeakagePropagation, pf.MQMExact):
                assert at_most(least, bound(chain, 4).leakage(loss)), (name, loss, bound.name)


def test_a_cluster_of_hundreds_of_states() -> None:
    """Eight causes of one effect: one cluster of 512 configurations, some of them as good as impossible."""
    rng = np.random.default_rng(4)
    shares = enumerate((1e-300, 0.25) * 4)
    cpts: dict[Any, pf.CPT] = {f"c{j}": pf.CPT(["0", "1"], [1 - share, share]) for j, share in shares}
    given = np.stack([chosen := rng.choice([1e-300, 1e-9, 0.25, 0.75], size=(2,) * 8), 1 - chosen], axis=-1)
    cpts["e"] = pf.CPT(["0", "1"], given, [f"c{j}" for j in range(8)])
    network = pf.BayesianNetwork(cpts)
    law, d = network_law(network), [[[0.0, 0.5], [0.5, 0.0]]] * 9
    tilts = [(0,) * 9, (1,) * 9, (0, 1) * 4 + (0,), (1, 0) * 4 + (1,)]
    least = tilt_loss(law, d, tilts)
    for bound in (pf.LeakagePropagation, pf.MarkovQuilt):
        leakage = bound(network).leakage(0.5)
        assert at_most(least, leakage)
        assert leakage <= 4.5 * (1 + 1e-9)
