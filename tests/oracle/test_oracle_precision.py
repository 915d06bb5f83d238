"""What is promised in doubles, against decimals of 60 digits: nearly reducible, periodic and deterministic models.

Entries go down to the least positive double. The losses are those of the definition: every database, every output,
every pair of values; and of densities that record losses allow. No margin: a scale that is too small by one unit in the
last place fails, and so does a refusal that says that nothing is to be protected where something is.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

import pufferfish as pf
from precise import DIGITS, Law, chain_law, network_law, query_loss, rows, stationary, tilt_loss, transfer_loss
from pufferfish.mechanisms import BOUNDS, MECHANISMS

TINY = (1e-300, 1e-200, 1e-160, 1e-100, 1e-40, 2.0**-52, 5e-324, 1e-310, 1e-270, 1e-8)
DIGIT = Decimal("1e-45")
"""Of the 60 digits of the oracle, so many may be wrong where it subtracts."""


def row(rng: np.random.Generator, k: int, zeros: float) -> np.ndarray:
    """A law with one large entry, and others that are tiny, dyadic or zero."""
    found, main = np.zeros(k), int(rng.integers(k))
    for y in range(k):
        if y != main and (kind := rng.random()) >= zeros:
            found[y] = rng.choice(TINY if kind < zeros + 0.55 else [1 / 8, 1 / 4, 1 / 16, 1 / (2 * k)])
    found[main] = 1 - found.sum()
    return found


def table(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    found, zeros = np.zeros(shape), float(rng.choice([0.0, 0.3]))
    for place in np.ndindex(shape[:-1]):
        found[place] = row(rng, shape[-1], zeros)
    return found


def starts(start: Any, k: int, p: np.ndarray) -> list[list[Decimal]]:
    """The initial laws to try: the one, or several where any may be."""
    if not isinstance(start, str):
        return [rows(start)[0]]
    if start == "stationary":
        return [stationary(p)]
    near = [np.where(np.eye(k)[i], 1, share) for i in range(k) for share in (1e-9, 1e-30)]
    return [rows(law)[0] for law in (*near, np.ones(k), np.eye(k)[0])]


def of_chains(rng: np.random.Generator) -> tuple[Any, int, list[Law]]:
    k, length = int(rng.integers(2, 4)), int(rng.integers(1, 5))
    p = np.roll(table(rng, (k, k)), int(rng.random() < 0.3), axis=0)
    start: Any = ["stationary", "any", row(rng, k, 0.3), np.eye(k)[0]][rng.integers(4)]
    theta = pf.MarkovChain(p, start)
    laws = starts(theta.initial_distribution, k, theta.transition_matrix)
    return theta, length, [chain_law(law, [theta.transition_matrix] * (length - 1)) for law in laws]


def of_clocks(rng: np.random.Generator) -> tuple[Any, int, list[Law]]:
    k, n, length = int(rng.integers(2, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    theta = pf.PeriodicChain(table(rng, (n, k, k)), ["any", row(rng, k, 0.0), np.eye(k)[0]][rng.integers(3)])
    steps = [[theta.matrices[(phase + t) % n] for t in range(length - 1)] for phase in range(n)]
    laws = starts(theta.initial_distribution, k, theta.matrices[0])[:3]
    return theta, length, [chain_law(law, each) for law in laws for each in steps]


def of_boxes(rng: np.random.Generator) -> tuple[Any, int, list[Law]]:
    """Two-state chains between bounds that leave next to nothing out, or next to nothing in."""
    low, high = float(rng.choice([1e-300, 1e-9, 0.1, 0.4])), float(rng.choice([1 - 2.0**-53, 1 - 1e-9, 0.9, 0.6]))
    theta, length = pf.BinaryChainInterval(low, high, initial_distribution="stationary"), int(rng.integers(1, 5))
    return theta, length, list(of_corners(low, high, length))


def of_corners(low: float, high: float, length: int) -> Iterator[Law]:
    with localcontext(DIGITS):
        for stay, other in itertools.product((Decimal(low), Decimal(high)), repeat=2):
            p = [[stay, 1 - stay], [1 - other, other]]
            law = {(x,): p[1 - x][x] / (p[0][1] + p[1][0]) for x in range(2)}
            for _ in range(length - 1):
                law = {(*seq, y): w * p[seq[-1]][y] for seq, w in law.items() for y in range(2) if p[seq[-1]][y]}
            yield law


def of_networks(rng: np.random.Generator) -> tuple[Any, None, list[Law]]:
    n, shape = int(rng.integers(2, 5)), int(rng.integers(3))
    sizes = [int(k) for k in rng.integers(2, 4, size=n)] if n < 4 else [2] * n
    cpts: dict[Any, pf.CPT] = {}
    for j in range(n):
        above = [[j - 1], [0], sorted({int(v) for v in rng.choice(max(j, 1), size=2)})][shape] if j else []
        given = table(rng, (*(sizes[v] for v in above), sizes[j]))
        cpts[f"v{j}"] = pf.CPT([str(x) for x in range(sizes[j])], given, [f"v{v}" for v in above])
    network = pf.BayesianNetwork(cpts)
    return network, None, [network_law(network)]


def answers_of(weights: np.ndarray, law: Law) -> dict[tuple[int, ...], tuple[int, ...]]:
    return {seq: tuple(int(v) for v in weights[:, list(seq)].sum(axis=1)) for seq in law}


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
    epsilon, loss = float(rng.choice([1e-9, 0.1, 1, 5, 50, 500])), float(rng.choice([1e-12, 0.1, 1, 5, 50, 200]))
    d = [[[0.0 if x == y else loss for x in range(k)] for y in range(k)]] * records
    tilts = [(z * records)[:records] for z in itertools.product(range(k), repeat=records if k == 2 else 2)]
    tilts = [z for z in tilts if all(z[t] <= max(s[t] for s in laws[0]) for t in range(records))] or tilts[:1]
    for mechanism in MECHANISMS:
        try:
            bound = mechanism.of(theta, length)
        except pf.PufferfishError:
            continue
        try:
            noise = bound.calibrate(query, epsilon)
        except pf.PufferfishError as error:
            if "no noise is needed" in str(error) or "no secret" in str(error):
                assert all(len({seq[t] for seq in law}) == 1 for law in laws for t in range(records)), seed
        else:
            seen[mechanism.name] += 1
            for law in laws:
                found = query_loss(law, answers_of(noise.linear.weights, law), 1, noise.unit_scale)
                assert found <= Decimal(epsilon) * (1 + DIGIT), (seed, mechanism.name, found)
        if mechanism in BOUNDS:
            try:
                leakage = bound.leakage(loss)
            except pf.PufferfishError:
                continue
            for law in laws if leakage < math.inf else ():
                seen[f"{mechanism.name} leaks"] += 1
                assert tilt_loss(law, d, tilts) <= Decimal(leakage) + DIGIT, (seed, mechanism.name, leakage)


KINDS = {of_chains: 6, of_clocks: 2, of_boxes: 1, of_networks: 3}
"""How many random cases of each kind are tried in the usual run."""


def test_no_promise_in_doubles_is_below_the_loss_in_decimals(slow: bool) -> None:
    for kind, usual in KINDS.items():
        seen: Counter[str] = Counter()
        for seed in range(200 if slow else usual):
            check(seed, kind, seen)
        assert min(seen["propagation"], seen["group-dp"]) >= min(2, usual), seen
        assert seen["refused"] < usual / 2 or slow


def large_chains() -> Iterable[tuple[str, np.ndarray]]:
    """Eighty states: two halves that hardly meet, a cycle that hardly slips, and one step that is all but certain."""
    k = 80
    halves = np.kron(np.eye(2), np.full((40, 40), 1 / 40))
    halves[0, 79] = halves[79, 0] = 1e-300
    cycle = np.roll(np.eye(k), 1, axis=1)
    cycle[0, 2] = 1e-300
    hub = np.full((k, k), 1e-200)
    hub[:, 0] = 1.0
    hub[0, 1] = 0.5
    hub[0, 0] = 0.5
    return (("halves", halves), ("cycle", cycle), ("hub", hub))


def test_eighty_states_that_hardly_mix(slow: bool) -> None:
    for name, p in large_chains():
        if name == "halves" and not slow:
            continue  # Φ of 6,320 pairs of dense rows
        start = np.full(80, 1 / 80)
        chain = pf.MarkovChain(p, start)
        signs = [np.arange(80) < 40, np.arange(80) < 1, np.arange(80) % 2 == 0]
        for loss in (0.1, 2.0) if slow else (1.0,):
            least = max(transfer_loss(start, chain.transition_matrix, 4, loss * sign) for sign in signs)
            for bound in (pf.LeakagePropagation, pf.MQMExact):
                assert least <= Decimal(bound(chain, 4).leakage(loss)), (name, loss, bound.name)


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
        assert least <= Decimal(leakage) <= Decimal("4.5") * (1 + DIGIT) + Decimal("1e-9")
