"""Δ of Theorem 2.4 against every sequence in turn, in fractions; and the theorem itself, end to end."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import AWKWARD, Case, dyadic_law, dyadic_matrix
from enumeration import Enumerated, exact_stationary
from pufferfish.theta.joint_distribution import Cliques, JointDistribution
from pufferfish.theta.secrets import CountIs, RecordIs, Secret

Law = dict[tuple[int, ...], Fraction]


def sequences(initial: object, transition: object, length: int) -> Law:
    """Exact law of a sequence; an initial law None is the stationary one."""
    start = exact_stationary(transition) if initial is None else [Fraction(float(v)) for v in initial]  # type: ignore
    weights = Enumerated.of(start, transition, length).law  # type: ignore
    total = sum(weights.values())
    return {seq: Fraction(w, total) for seq, w in weights.items()}


def product(*laws: Law) -> Law:
    """Independent chains, one after another."""
    out: Law = {(): Fraction(1)}
    for law in laws:
        out = {a + b: p * q for a, p in out.items() for b, q in law.items()}
    return out


def log_of(ratio: Fraction) -> float:
    if Fraction(1, 2) < ratio < 2:
        return math.log1p(float(ratio - 1))
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def divergence(p: Law, q: Law) -> float:
    if any(x not in q for x in p):
        return math.inf
    return log_of(max(v / q[x] for x, v in p.items()))


def given(law: Law, holds: object) -> Law:
    inside = {x: p for x, p in law.items() if holds(x)}  # type: ignore
    total = sum(inside.values())
    return {x: p / total for x, p in inside.items()}


def distance(theta: Law, belief: Law, secrets: list[object]) -> float:
    worst = 0.0
    for secret in secrets:
        p, q = given(belief, secret), given(theta, secret)
        if p or q:
            worst = max(worst, divergence(p, q), divergence(q, p)) if p and q else math.inf
    return worst


def every_value(length: int, k: int) -> list[object]:
    return [lambda x, i=i, a=a: x[i] == a for i in range(length) for a in range(k)]


def assert_bound(found: float, exact: float, tolerance: float = 1e-9) -> None:
    """Never below, and equal to 1e-9."""
    if math.isinf(exact):
        assert found == math.inf
    else:
        assert exact * (1 - 2e-16) <= found <= exact + tolerance * max(exact, 1e-3), (found, exact)


def pair(seed: int) -> tuple[Case, Case]:
    """Two chains over the same states, mostly with the same zeros."""
    rng = np.random.default_rng(seed)
    k, zeros = int(rng.integers(2, 4)), (0.0, 0.3)[seed % 2]
    length = int(rng.integers(1, 7))
    transition = dyadic_matrix(rng, k, zeros)
    start = np.eye(k)[rng.integers(k)] if seed % 4 == 1 else dyadic_law(rng, k, zeros)
    other = np.array([_on(rng, row > 0) for row in transition])
    other_start = _on(rng, start > 0)
    if seed % 7 == 6:  # supports that differ in one place
        other = dyadic_matrix(rng, k, 0.3)
    return Case(f"a{seed}", start, transition, length), Case(f"b{seed}", other_start, other, length)


def _on(rng: np.random.Generator, support: np.ndarray) -> np.ndarray:
    law = np.zeros(support.size)
    law[support] = dyadic_law(rng, int(support.sum()))
    return law


PAIRS = [pair(seed) for seed in range(40)]


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=str)
def test_chains_with_given_starts(a: Case, b: Case) -> None:
    theta, belief = (sequences(c.initial, c.transition, c.length) for c in (a, b))
    exact = distance(theta, belief, every_value(a.length, len(a.initial)))
    assert_bound(pf.robustness(a.chain, b.chain, a.length), exact)


def test_the_pairs_are_of_both_kinds() -> None:
    finite = [math.isfinite(pf.robustness(a.chain, b.chain, a.length)) for a, b in PAIRS]
    assert 25 <= sum(finite) < len(finite)


@pytest.mark.parametrize("case", AWKWARD, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_awkward_chains_against_others_of_the_same_zeros(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    length = min(case.length, 6)
    transition = np.array([_on(rng, row > 0) for row in case.transition])
    initial = _on(rng, case.initial > 0)
    exact = distance(
        sequences(case.initial, case.transition, length),
        sequences(initial, transition, length),
        every_value(length, len(initial)),
    )
    assert math.isfinite(exact)
    # Tiny entries have logarithms of about 28, whose rounding is of that size.
    assert_bound(pf.robustness(case.chain, pf.MarkovChain(transition, initial), length), exact)


@pytest.mark.parametrize("seed", range(12))
def test_stationary_starts(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    k, length = 2 + seed % 2, 1 + seed % 6
    one, other = dyadic_matrix(rng, k), dyadic_matrix(rng, k)
    law = dyadic_law(rng, k)
    for initial, start in ((None, "stationary"), (law, law)):
        exact = distance(sequences(None, one, length), sequences(initial, other, length), every_value(length, k))
        assert_bound(pf.robustness(pf.MarkovChain(one), pf.MarkovChain(other, start), length), exact)


@pytest.mark.parametrize("seed", range(10))
def test_independent_chains(seed: int) -> None:
    rng = np.random.default_rng(200 + seed)
    lengths = [[2, 3], [3, 3], [1, 2, 2]][seed % 3]
    zeros = (0.0, 0.4)[seed % 2]
    one = dyadic_matrix(rng, 2, zeros)
    other = np.array([_on(rng, row > 0) for row in one])
    start = dyadic_law(rng, 2, zeros)
    end = _on(rng, start > 0)
    laws = [product(*(sequences(q, p, n) for n in lengths)) for q, p in ((start, one), (end, other))]
    exact = distance(*laws, every_value(sum(lengths), 2))  # type: ignore
    assert_bound(pf.robustness(pf.MarkovChain(one, start), pf.MarkovChain(other, end), lengths), exact)


@pytest.mark.parametrize("seed", range(12))
def test_chosen_secrets_of_several_states(seed: int) -> None:
    a, b = pair(300 + 2 * seed)
    k = len(a.initial)
    theta, belief = (sequences(c.initial, c.transition, c.length) for c in (a, b))
    for step in range(a.length):
        for states in itertools.combinations(range(k), 2):
            exact = distance(theta, belief, [lambda x, i=step, s=states: x[i] in s])
            assert_bound(pf.robustness(a.chain, b.chain, a.length, secrets=[RecordIs(step, states)]), exact)


@pytest.mark.parametrize("seed", range(8))
def test_any_start_is_the_supremum_over_starts(seed: int) -> None:
    rng = np.random.default_rng(400 + seed)
    k, length = 2 + seed % 2, 2 + seed % 3
    one, other = dyadic_matrix(rng, k), dyadic_matrix(rng, k)
    bound = pf.robustness(pf.MarkovChain(one, "any"), pf.MarkovChain(other, "any"), length)
    close = 0.0
    for x in range(k):
        for thin in (0.0, 2.0**-10, 2.0**-40):
            start = np.full(k, thin)
            start[x] = 1 - (k - 1) * thin
            laws = [sequences(start, p, length) for p in (one, other)]
            exact = distance(*laws, every_value(length, k))  # type: ignore
            assert exact <= bound
            close = max(close, exact)
            belief = pf.MarkovChain(other, start)
            assert_bound(pf.robustness(pf.MarkovChain(one, "any"), belief, length), exact)
    assert bound <= close + 1e-8


@pytest.mark.parametrize("seed", range(8))
def test_joint_distributions_and_chains_agree(seed: int) -> None:
    a, b = pair(500 + seed)
    laws = [sequences(c.initial, c.transition, c.length) for c in (a, b)]
    names = [str(x) for x in range(len(a.initial))]
    joints = [JointDistribution(list(law), list(law.values()), states=names) for law in laws]
    assert_bound(pf.robustness(*joints), distance(*laws, every_value(a.length, len(names))))  # type: ignore
    chains = pf.robustness(a.chain, b.chain, a.length)
    assert chains == pytest.approx(pf.robustness(*joints), rel=1e-9)


def people(laws: list[list[Fraction]]) -> Law:
    """Every database of several cliques."""
    parts: list[Law] = []
    for law in laws:
        n = len(law) - 1
        part = {x: law[sum(x)] / math.comb(n, sum(x)) for x in itertools.product((0, 1), repeat=n)}
        parts.append({x: p for x, p in part.items() if p})
    return product(*parts)


CLIQUE_SECRETS: list[tuple[Secret, object]] = [
    (RecordIs((1, 0), 1), lambda x: x[2] == 1),
    (RecordIs((0, 1), [0, 1]), lambda x: True),
    (RecordIs((0, 0), 0) & RecordIs((0, 1), 1), lambda x: x[0] == 0 and x[1] == 1),
    (CountIs(1, at_least=2), lambda x: sum(x) >= 2),
    (CountIs(0, at_most=1), lambda x: len(x) - sum(x) <= 1),
    (CountIs([0, 1], at_least=1), lambda x: True),
    (CountIs(1, 1, 3) & RecordIs((1, 2), 0), lambda x: 1 <= sum(x) <= 3 and x[4] == 0),
    (RecordIs((0, 0), 0) & RecordIs((0, 0), 1), lambda x: False),
]


@pytest.mark.parametrize("seed", range(9))
def test_cliques(seed: int) -> None:
    rng = np.random.default_rng(600 + seed)
    sizes, zeros = [2, 3], (0.0, 0.3, 0.0)[seed % 3]
    laws = [[Fraction(float(v)) for v in dyadic_law(rng, n + 1, zeros)] for n in sizes]
    others = [[Fraction(float(v)) for v in _on(rng, np.array([v > 0 for v in law]))] for law in laws]
    if seed == 7:
        others = [[Fraction(float(v)) for v in dyadic_law(rng, n + 1, 0.4)] for n in sizes]
    exact = people(laws), people(others)
    theta, belief = Cliques(laws), Cliques(others)
    assert_bound(pf.robustness(theta, belief), distance(*exact, every_value(5, 2)))
    for secret, holds in CLIQUE_SECRETS:
        if any(holds(x) for law in exact for x in law):  # type: ignore
            assert_bound(pf.robustness(theta, belief, secrets=[secret]), distance(*exact, [holds]))
        else:
            with pytest.raises(pf.PufferfishError, match="none of the secrets is possible"):
                pf.robustness(theta, belief, secrets=[secret])


HALVES = np.array([[0.5, 0.5], [0.5, 0.5]])
SKEWED = np.array([[0.75, 0.25], [0.375, 0.625]])


@pytest.mark.parametrize("mechanism", [pf.MQMExact, pf.LeakagePropagation])
@pytest.mark.parametrize("one", [HALVES, SKEWED], ids=["halves", "skewed"])
@pytest.mark.parametrize(("epsilon", "length"), [(0.5, 5), (2.0, 4), (8.0, 2)])
def test_the_theorem(mechanism: type, one: np.ndarray, epsilon: float, length: int) -> None:
    """Noise made for Θ leaks at most ε + 2Δ to a belief outside of it."""
    rng = np.random.default_rng(7)
    theta = pf.MarkovChain(one, [0.5, 0.5])
    scale = mechanism(theta, length).calibrate(pf.Count(1), epsilon).scale
    for spread in (0.02, 0.1, 0.2):
        other = one + rng.uniform(-spread, spread, 2)[:, None] * np.array([1, -1])
        delta = pf.robustness(theta, pf.MarkovChain(other, [0.5, 0.5]), length)
        loss = Enumerated.of([0.5, 0.5], other, length).true_loss(np.array([[0, 1]]), scale)
        assert loss <= delta.effective_epsilon(epsilon)


def test_the_theorem_is_nearly_met_with_equality() -> None:
    """The loss is above ε + 1.9 Δ: a Δ that was too small by a few hundredths would be found out."""
    theta, other = pf.MarkovChain(HALVES, [0.5, 0.5]), np.array([[0.55, 0.45], [0.45, 0.55]])
    scale = pf.LeakagePropagation(theta, 2).calibrate(pf.Count(1), 8.0).scale
    delta = pf.robustness(theta, pf.MarkovChain(other, [0.5, 0.5]), 2)
    loss = Enumerated.of([0.5, 0.5], other, 2).true_loss(np.array([[0, 1]]), scale)
    assert 8 + 1.9 * delta < loss <= delta.effective_epsilon(8.0)
