"""States that cannot occur and records that are certain: what is released anyway keeps its promise, by enumeration.

Noise may not count them, and may not forget anything else. So models with many zeros, queries whose values for one
state are far from all others, windows, lists of models with different zeros, and chains with unobserved records.
"""

import itertools
from collections import Counter

import numpy as np
import pytest

import pufferfish as pf
from enumeration import Enumerated
from pufferfish.mechanisms import InfluenceBound

SLACK = 1 + 1e-9
MECHANISMS = (pf.EntryDP, pf.GroupDP, pf.GK16, pf.MQMApprox, pf.MQMExact, pf.LeakagePropagation)


def dyadic(rng: np.random.Generator, k: int, zeros: float) -> np.ndarray:
    """A law of which many entries are 0, exact as floats."""
    shares = rng.multinomial(8, rng.dirichlet(np.ones(k))) * (rng.random(k) >= zeros)
    if not shares.any():
        shares[rng.integers(k)] = 1
    shares[np.argmax(shares)] += (1 << int(shares.sum() - 1).bit_length()) - shares.sum()
    return shares / shares.sum()


def models(rng: np.random.Generator, k: int) -> list[tuple[pf.MarkovChain, list[np.ndarray]]]:
    """One or two chains, each with initial laws under which the promise must hold."""
    found: list[tuple[pf.MarkovChain, list[np.ndarray]]] = []
    for _ in range(int(rng.integers(1, 3))):
        zeros = float(rng.choice([0.0, 0.4, 0.7]))
        p = np.array([dyadic(rng, k, zeros) for _ in range(k)])
        if rng.random() < 0.4:
            p[:] = p[0]
            dead = int(np.argmin(p[0]))
            if p[0, dead] == 0:
                p[dead] = dyadic(rng, k, 0.0)  # what follows a state that cannot occur matters to nobody
        start = [dyadic(rng, k, zeros), np.eye(k)[rng.integers(k)], "any"][int(rng.integers(3))]
        laws = [dyadic(rng, k, 0.0), np.eye(k)[0] * (1 - 2.0**-20) + np.eye(k)[1] * 2.0**-20]
        found.append((pf.MarkovChain(p, start), laws if isinstance(start, str) else [start]))
    return found


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_no_promise_is_broken(epsilon: float, slow: bool) -> None:
    seen: Counter[str] = Counter()
    for seed in range(60 if slow else 40):
        rng = np.random.default_rng(seed)
        k, length = int(rng.integers(2, 4)), int(rng.integers(1, 5))
        members = models(rng, k)
        values = rng.choice([0, 1, 2, 100], k)
        if len(set(values.tolist())) < 2:
            continue
        first = int(rng.integers(length))
        windowed = length > 1 and rng.random() < 0.4
        query = pf.Sum([int(v) for v in values])
        asked = pf.Window(query, first, length) if windowed else query
        observed = np.arange(length) >= first if windowed else np.ones(length, dtype=bool)
        for make in MECHANISMS:
            try:
                calibration = make([chain for chain, _ in members], length).calibrate(asked, epsilon)
                scale, allowed = calibration.scale, epsilon * SLACK
            except pf.PufferfishError as error:
                if "no finite noise" in str(error):
                    raise
                if "no secret to protect" not in str(error) and "no noise is needed" not in str(error):
                    continue
                scale, allowed = 1e-3, 1e-9  # then hardly any noise leaks nothing
            seen[f"{make.name} {scale > 1e-3}"] += 1
            for chain, laws in members:
                for law in laws:
                    truth = Enumerated.of(list(law), chain.transition_matrix, length)
                    assert loss(truth, values, observed, scale) <= allowed, (seed, make.name)
    for name in ("entry-dp", "gk16", "mqm-exact", "propagation"):
        assert min(seen[f"{name} True"], seen[f"{name} False"]) > 1, seen
    assert min(seen["group-dp True"], seen["mqm-approx True"]) > 1


def loss(truth: Enumerated, values: np.ndarray, observed: np.ndarray, scale: float) -> float:
    """What Laplace noise on the sum over some records leaks of any record: the supremum is at a value, or at ±∞."""
    rows = list(truth.law)
    weights = np.array([float(w) for w in truth.law.values()])
    states = np.array(rows)
    answers = (values[states] * observed).sum(axis=1)
    heights = -np.abs(answers[:, None] - np.unique(answers)[None, :]) / scale
    worst = 0.0
    for node in range(states.shape[1]):
        given = []
        for x in np.unique(states[:, node]):
            here = states[:, node] == x
            logs = heights[here] + np.log(weights[here] / weights[here].sum())[:, None]
            given.append(np.logaddexp.reduce(logs, axis=0))
        worst = max([worst, *(float((a - b).max()) for a, b in itertools.permutations(given, 2))])
    return worst


def test_every_place_of_observed_records_is_covered() -> None:
    """Records that can have other states than others, of which some are not in the table, whichever those are."""
    p = [[0.0, 0.5, 0.5, 0.0], [0.0, 0.75, 0.25, 0.0], [0.0, 0.5, 0.5, 0.0], [0.25, 0.25, 0.25, 0.25]]
    start, values, steps = np.array([0.5, 0.0, 0.0, 0.5]), np.array([0, 1, 3, 50]), 5
    truth = Enumerated.of(list(start), p, steps)
    makes: tuple[type[InfluenceBound], ...] = (pf.MQMExact, pf.LeakagePropagation)
    for make, records in itertools.product(makes, (1, 2, 4)):
        bound = make(pf.MarkovChain(p, start), pf.ChainLength(steps, records))
        scale = bound.calibrate(pf.Sum([0, 1, 3, 50]), 1.0).scale
        for places in itertools.combinations(range(steps), records):
            assert loss(truth, values, np.isin(np.arange(steps), places), scale) <= SLACK
