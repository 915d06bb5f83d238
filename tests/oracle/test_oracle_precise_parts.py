"""What proofs are made of, one quantity after the other, against decimals of 60 digits: none is below the exact one.

The models are those of ``precise_models.py``: entries down to the least positive double, rows that are all but
certain. Bounds carry their own margin (they are rounded up by what their arithmetic may have lost), so here is none.
"""

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from precise import (
    DIGITS,
    answer_laws,
    at_most,
    chain_law,
    corners,
    influence,
    laws_loss,
    log,
    network_law,
    phi,
    reach,
    rows,
    stationary,
)
from precise_models import bounds_around, of_networks, row, table
from pufferfish._core.chains.markov import LogPowers, LogVectorPath, stationary_law, stationary_log_error
from pufferfish._core.laws.law import laplace_loss
from pufferfish._core.laws.transport import shift
from pufferfish._core.networks.inference import Inference
from pufferfish._core.phi.any_initial_law import AnyPrior
from pufferfish._core.phi.certificate import phi as phi_of_loops
from pufferfish._core.phi.phi import Kernel, LogRatios, close
from pufferfish._core.phi.rows_between_bounds import IntervalRatios
from pufferfish._core.quilts.influence import IntervalInfluence
from pufferfish.errors import ModelError
from pufferfish.mechanisms.one_query._laws import chain_pairs
from pufferfish.queries.query import LinearQuery
from pufferfish.theta.model_class import as_theta
from single_quilts import Quilts

Steps = list[list[Decimal]]


def product(one: Steps, other: Steps) -> Steps:
    with localcontext(DIGITS):
        return [
            [sum((a * b for a, b in zip(r, c, strict=True)), Decimal(0)) for c in zip(*other, strict=True)] for r in one
        ]


def within(logs: np.ndarray, error: float, exact: Sequence[Decimal]) -> None:
    """Logarithms are as near as they say, and −∞ exactly where nothing is possible."""
    for found, mass in zip(logs.ravel().tolist(), exact, strict=True):
        assert (found == -math.inf) == (mass == 0)
        if mass:
            with localcontext(DIGITS):
                assert abs(Decimal(found) - log(mass)) <= Decimal(error)


def test_powers_marginals_and_stationary_laws_are_as_near_as_they_say(slow: bool) -> None:
    for seed in range(200 if slow else 10):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(2, 4))
        p, start = table(rng, (k, k)), row(rng, k, 0.3)
        p, start = (
            np.asarray(pf.MarkovChain(p, start).transition_matrix),
            np.asarray(pf.MarkovChain(p, start).initial_distribution),
        )
        powers, path, exact, law = LogPowers(p), LogVectorPath(start, p), rows(p), rows(start)
        power = exact
        for t in range(1, 9):
            within(powers.log(t), powers.log_error(t), [v for r in power for v in r])
            within(path.log, path.log_error, law[0])
            path.advance()
            power, law = product(power, exact), product(law, exact)
        if np.all(p > 0):
            try:
                pi = stationary_law(p)
            except ModelError:  # too small to compute
                continue
            within(np.log(pi), stationary_log_error(k) + 2.0**-52 * float(np.max(np.abs(np.log(pi)))), stationary(p))


def test_max_influence_of_every_chain_quilt(slow: bool) -> None:
    for seed in range(200 if slow else 8):
        rng = np.random.default_rng(seed)
        k, length = int(rng.integers(2, 4)), int(rng.integers(2, 5))
        chain = pf.MarkovChain(table(rng, (k, k)), row(rng, k, 0.3))
        law = chain_law(rows(chain.initial_distribution)[0], [chain.transition_matrix] * (length - 1))
        quilts = Quilts(chain, length)
        for node in range(length):
            for ends in [(a, b) for a in range(node) for b in range(node + 1, length)] + [(t,) for t in range(length)]:
                if node not in ends:
                    assert at_most(influence(law, node, ends), quilts.influence(node, ends)), (seed, node, ends)


def test_max_influence_on_networks(slow: bool) -> None:
    for seed in range(200 if slow else 8):
        network = of_networks(np.random.default_rng(seed))[0]
        law, place = network_law(network), {node: j for j, node in enumerate(network.nodes)}
        tables = [((*(place[v] for v in cpt.parents), place[node]), cpt.table) for node, cpt in network.cpts.items()]
        inference, n = Inference(tables, network.sizes), len(network.nodes)
        for node, others in itertools.product(
            range(n), (t for m in (1, 2) for t in itertools.combinations(range(n), m))
        ):
            if node not in others:
                found = float(np.max(inference.log_ratios(node, sum(1 << j for j in others))))
                assert at_most(influence(law, node, others), found), (seed, node, others)


def bounds_on_ratios(rng: np.random.Generator, k: int) -> np.ndarray:
    """Bounds A, closed by shortest paths, between almost nothing and more than a search can hold."""
    size = rng.choice([1e-300, 1e-12, 0.1, 1, 30, 299, 500])
    return close(rng.choice([0, 1e-9, 0.3, 1], size=(k, k)) * size * (1 - np.eye(k)))


@pytest.mark.slow
def test_phi_of_one_kernel_and_of_rows_between_bounds(slow: bool) -> None:
    for seed in range(200 if slow else 4):
        rng = np.random.default_rng(seed)
        k = 2 + seed % 3 if slow else 2 + seed % 2
        p, a, every = (
            np.asarray(pf.MarkovChain(table(rng, (k, k)), "any").transition_matrix),
            bounds_on_ratios(rng, k),
            np.ones(k, dtype=np.bool_),
        )
        kernels = [Kernel(p, p, every), Kernel.of_logs(LogPowers(p).log(1), every, LogPowers(p).log_error(1))]
        found = [LogRatios()(kernel, a) for kernel in kernels]
        found.append(np.empty((k, k)))
        with np.errstate(all="ignore"):  # as compiled
            phi_of_loops(every, p, p, a, found[-1])
        for x, x_ in itertools.permutations(range(k), 2):
            exact = phi(rows(p)[x], rows(p)[x_], a.tolist())
            assert all(at_most(exact, each[x, x_]) for each in found), (seed, x, x_, [f[x, x_] for f in found], exact)
        if k > 3:
            continue
        theta = bounds_around(rng, k)
        laws = [corners(lower, upper) for lower, upper in zip(theta.lower, theta.upper, strict=True)]
        between = [IntervalRatios(theta.lower, theta.upper, exact=exact)(a) for exact in (True, False)]
        for x, x_ in itertools.permutations(range(k), 2):
            exact = max(phi(p, q, a.tolist()) for p in laws[x] for q in laws[x_])
            assert all(at_most(exact, each[x, x_]) for each in between), (seed, x, x_)


def test_what_the_past_tells_under_every_start(slow: bool) -> None:
    """Laws of the record before on two states, and pasts u as extreme as the bounds allow."""
    for seed in range(200 if slow else 12):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(2, 4))
        p = np.asarray(pf.MarkovChain(table(rng, (k, k)), "any").transition_matrix)
        a, steps = bounds_on_ratios(rng, k), rows(p)
        found = AnyPrior(p)(a)
        for (y, y_), (x, x_) in itertools.product(itertools.permutations(range(k), 2), repeat=2):
            one, other = (steps[y][x], steps[y][x_]), (steps[y_][x], steps[y_][x_])
            for share in (Decimal("1e-300"), Decimal("1e-9"), Decimal("0.3"), Decimal("0.5"), 1 - Decimal("1e-9")):
                with localcontext(DIGITS):
                    weights, past = (share, 1 - share), (Decimal(float(a[y, y_])).exp(), Decimal(1))
                    given = []
                    for value in (0, 1):
                        seen = [w * s[value] for w, s in zip(weights, (one, other), strict=True)]
                        given.append(
                            sum(w * u for w, u in zip(seen, past, strict=True)) / sum(seen) if sum(seen) else None
                        )
                    if None not in given:
                        assert at_most(log(given[0] / given[1]), found[x, x_]), (seed, x, x_, y, y_)


def test_influence_between_bounds(slow: bool) -> None:
    for seed in range(200 if slow else 6):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(2, 4))
        theta = bounds_around(rng, k)
        laws = [corners(lower, upper) for lower, upper in zip(theta.lower, theta.upper, strict=True)]
        bound = IntervalInfluence(theta.lower, theta.upper)
        groups = list(bound.groups(5))
        for steps in range(1, 4):
            group = next(g for g in groups if g.first <= steps + 1 <= g.last)
            right = bound.right(steps)
            left = dict(zip(map(tuple, group.pairs.T.tolist()), bound.left(group, steps), strict=True))
            for _ in range(6):
                through = [[some[rng.integers(len(some))] for some in laws] for _ in range(steps)]
                m = through[0]
                for each in through[1:]:
                    m = product(m, each)
                start = rows(np.where(np.arange(k) == rng.integers(k), 1.0, rng.choice([0.5, 1e-300])))[0]
                law = {(x, y): start[x] * v for x, r in enumerate(m) for y, v in enumerate(r) if v}
                for x, x_ in itertools.permutations(range(k), 2):
                    assert at_most(_told(law, 0, x, x_), right[x, x_]), (seed, steps, x, x_)
                    assert at_most(_told(law, 1, x, x_), left.get((x, x_), 0.0)), (seed, steps, x, x_)


def _told(law: dict[tuple[int, ...], Decimal], node: int, x: int, x_: int) -> Decimal:
    """How much the other record of two tells x from x'; 0 where one of them is impossible."""
    with localcontext(DIGITS):
        one, other = ({s[1 - node]: v for s, v in law.items() if s[node] == value} for value in (x, x_))
        if not one or not other:
            return Decimal(0)
        sums = sum(one.values()), sum(other.values())
        if any(y not in other for y in one):
            return Decimal("inf")
        return log(max(v / sums[0] / (other[y] / sums[1]) for y, v in one.items()))


def test_laws_of_counts_their_distance_and_their_loss(slow: bool) -> None:
    """W∞ of the laws of an answer given two values of a record, and what Laplace noise leaks of them."""
    for seed in range(200 if slow else 8):
        rng = np.random.default_rng(seed)
        k, length = int(rng.integers(2, 4)), int(rng.integers(1, 5))
        chain = pf.MarkovChain(table(rng, (k, k)), row(rng, k, 0.2))
        query: LinearQuery = pf.Count("1").bind(chain.states, length)
        law = chain_law(rows(chain.initial_distribution)[0], [chain.transition_matrix] * (length - 1))
        answers = {seq: int(query.weights[0, list(seq)].sum()) for seq in law}
        places, scale = {state: x for x, state in enumerate(chain.states)}, float(rng.choice([0.05, 1.0, 40.0]))
        theta, lengths = as_theta(chain), (pf.ChainLength(length, length),)
        for pair in chain_pairs(theta, lengths, query, None):
            exact = answer_laws(law, answers, pair.about.node)
            mu, nu = (exact[places[state]] for state in pair.about.secrets)
            near = shift(pair.mu, pair.nu)
            assert reach(mu, nu) <= near.certain, seed
            assert at_most(laws_loss(mu, nu, scale), laplace_loss(pair.mu, pair.nu, scale)), seed
            for epsilon in (0.1, 1.0, 20.0):
                if (wide := near.scale(epsilon)) > 0:  # its quotient is rounded to the nearest: callers take more
                    assert at_most(laws_loss(mu, nu, wide * (1 + 2.0**-52)), epsilon), (seed, epsilon)


def test_distances_of_laws(slow: bool) -> None:
    for seed in range(400 if slow else 40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 6))
        p, q = row(rng, n, 0.3), row(rng, n, 0.3)
        one, other = rows(p)[0], rows(q)[0]
        with localcontext(DIGITS):
            apart = [log(a / b) if b else Decimal("inf") for a, b in zip(one, other, strict=True) if a]
        assert at_most(max(apart), pf.max_divergence(p, q)), seed
        mu, nu = ({i: v for i, v in enumerate(law) if v} for law in (one, other))
        exact = pf.wasserstein_inf(range(n), _fractions(p), range(n), _fractions(q))
        assert reach(mu, nu) <= exact, seed


def _fractions(law: np.ndarray) -> list[Fraction]:
    masses: list[Any] = [Fraction(float(v)) for v in law]
    return [mass / sum(masses) for mass in masses]
