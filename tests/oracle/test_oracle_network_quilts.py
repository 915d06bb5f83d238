"""The search over quilts of a network against every set of nodes; influences against the joint law (Definition 4.1)."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from network_oracle import SHAPED, Network, random_network
from networks import inference_of
from pufferfish._core.networks.d_separation import members, set_of
from pufferfish._core.quilts.chain_search import LeakThrough, Objective, Score
from pufferfish._core.quilts.network_search import NodeWeights, QuiltSearch

FORESTS = [random_network(seed, 2 + seed % 5, parents=1) for seed in range(20)]
DAGS = [random_network(seed, 3 + seed % 4, parents=2 + seed % 2) for seed in range(27)]
SEVEN = [random_network(seed, 7, parents=2 + seed % 3, most=2) for seed in range(100, 105)]
SMALL = FORESTS + SHAPED + DAGS


def losses_of(network: Network, kind: str) -> list[float]:
    rng = np.random.default_rng([network.size, len(kind)])
    if kind == "alike":
        return [1.0] * network.size
    if kind == "unlike":
        return rng.exponential(1.0, network.size).tolist()
    return (rng.exponential(1.0, network.size) * (rng.random(network.size) < 0.5)).tolist()


KINDS = ("alike", "unlike", "some are 0")
OBJECTIVES: dict[str, Objective] = {"leak": LeakThrough(), "score 0.8": Score(0.8), "score 4": Score(4.0)}


def judge(name: str, weight: float, influence: float) -> float:
    """The objectives from their definitions."""
    if name == "leak":
        return weight + influence
    epsilon = float(name.split()[1])
    return weight / (epsilon - influence) if influence < epsilon else math.inf


def truth(network: Network, node: int, losses: list[float], objective: str, pairs: np.ndarray) -> float:
    return network.best(node, losses, lambda weight, influence: judge(objective, weight, influence), pairs)


def assert_at_least(found: float, true: float) -> None:
    """Equal up to rounding, and rounding never in favour of less noise."""
    if math.isinf(true):
        assert math.isinf(found)
        return
    assert true * (1 - 1e-13) - 1e-14 <= found <= true * (1 + 1e-9) + 1e-12


def search_of(network: Network, losses: list[float], objective: str, most: int | None = None) -> QuiltSearch:
    return QuiltSearch(inference_of(network), NodeWeights(np.array(losses)), OBJECTIVES[objective], most)


def some_pairs(network: Network, node: int) -> list[np.ndarray]:
    """All secret pairs of a node, and one of them alone."""
    every = network.secrets(node)
    if not every.any():
        return []
    one = np.zeros_like(every)
    one[tuple(np.argwhere(every)[-1])] = True
    return [every, one]


@pytest.mark.parametrize("network", SMALL, ids=str)
def test_every_set_of_nodes_is_judged_as_by_definition(network: Network) -> None:
    losses = losses_of(network, "unlike")
    search = search_of(network, losses, "leak")
    for node in range(network.size):
        for pairs, quilt in itertools.product(some_pairs(network, node), network.quilts(node)):
            found, nearby = search.judged(node, set_of(quilt), pairs), network.nearby(node, quilt)
            assert network.is_quilt(node, quilt)
            assert (found.quilt, set(members(found.nearby))) == (set_of(quilt), nearby)
            influence = network.influence(node, quilt, pairs)
            assert_at_least(found.weight, math.fsum(losses[j] for j in nearby))
            assert_at_least(found.influence, influence)
            assert_at_least(found.value, found.weight + influence)
            if found.pair is None:
                assert influence == 0
            elif influence < math.inf:
                alone = np.zeros_like(pairs)
                alone[found.pair] = True
                assert pairs[found.pair]
                assert network.influence(node, quilt, alone) == pytest.approx(influence, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("network", SMALL[::2], ids=str)
def test_what_is_not_nearby_adds_nothing_to_the_quilt(network: Network) -> None:
    """The oracle itself: the law agrees with the graph that the remote nodes are independent given the quilt."""
    for node in range(network.size):
        for quilt in network.quilts(node):
            beyond = sorted(set(range(network.size)) - network.nearby(node, quilt))
            assert network.influence(node, beyond) == pytest.approx(network.influence(node, quilt), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("network", SMALL, ids=str)
def test_the_best_quilt_is_the_best_of_all_sets_of_nodes(network: Network, kind: str) -> None:
    losses = losses_of(network, kind)
    for objective in OBJECTIVES:
        search = search_of(network, losses, objective)
        for node in range(network.size):
            for pairs in some_pairs(network, node):
                true = truth(network, node, losses, objective, pairs)
                assert_at_least(search.best(node, pairs).value, true)
                assert_at_least(search_of(network, losses, objective, 400).best(node, pairs).value, true)


@pytest.mark.parametrize("network", SEVEN, ids=str)
def test_so_it_is_with_seven_nodes(network: Network) -> None:
    for kind, objective in itertools.product(KINDS, OBJECTIVES):
        losses = losses_of(network, kind)
        search = search_of(network, losses, objective)
        for node in range(0, network.size, 2):
            if (pairs := network.secrets(node)).any():
                assert_at_least(search.best(node, pairs).value, truth(network, node, losses, objective, pairs))


@pytest.mark.parametrize("most", [1, 2, 4, 9])
@pytest.mark.parametrize("network", SMALL[::3], ids=str)
def test_a_limited_search_is_sound_and_no_better(network: Network, most: int) -> None:
    for kind, objective in itertools.product(KINDS, OBJECTIVES):
        losses = losses_of(network, kind)
        search = search_of(network, losses, objective, most)
        for node in range(network.size):
            if not (pairs := network.secrets(node)).any():
                continue
            found = search.best(node, pairs)
            quilt = tuple(members(found.quilt))
            weight = math.fsum(losses[j] for j in network.nearby(node, quilt))
            assert_at_least(found.value, judge(objective, weight, network.influence(node, quilt, pairs)))
            assert found.value >= truth(network, node, losses, objective, pairs) * (1 - 1e-13)
            trivial = judge(objective, math.fsum(losses[j] for j in network.nearby(node, ())), 0.0)
            assert found.value <= trivial * (1 + 1e-12)


def test_a_limited_search_finds_less(slow: bool) -> None:
    """Control: on some of these networks one look is not enough."""
    worse = 0
    for network in DAGS if slow else DAGS[::3]:
        losses = losses_of(network, "unlike")
        for node in range(network.size):
            if (pairs := network.secrets(node)).any():
                one, every = (search_of(network, losses, "score 4", most).best(node, pairs) for most in (1, None))
                worse += one.value > every.value * 1.001
    assert worse > (10 if slow else 3)


@pytest.mark.parametrize("network", SMALL[::4], ids=str)
def test_hints_change_nothing(network: Network) -> None:
    """Not even those that hold the node itself, or are no sensible quilts."""
    rng = np.random.default_rng(network.size)
    for kind, objective in itertools.product(KINDS, OBJECTIVES):
        losses = losses_of(network, kind)
        search = search_of(network, losses, objective)
        for node in range(network.size):
            if (pairs := network.secrets(node)).any():
                hints = rng.integers(0, 1 << network.size, size=4).tolist()
                value = search.best(node, pairs).value
                hinted = search.best(node, pairs, hints=hints)
                assert hinted.value == pytest.approx(value, rel=1e-12)
                assert not hinted.quilt >> node & 1
                within = search_of(network, losses, objective, 3).best(node, pairs, hints=hints)
                assert within.value >= value * (1 - 1e-12)


@pytest.mark.parametrize("network", SMALL[1::4], ids=str)
def test_a_search_that_may_stop_stops_at_or_below(network: Network) -> None:
    losses = losses_of(network, "unlike")
    search = search_of(network, losses, "score 4")
    for node in range(network.size):
        if (pairs := network.secrets(node)).any():
            best = search.best(node, pairs).value
            for enough in (best * 0.9, best * 1.1, best * 2):
                value = search.best(node, pairs, enough=enough).value
                assert best * (1 - 1e-12) <= value <= max(enough, best * (1 + 1e-12))


@pytest.mark.parametrize("network", SMALL[2::4], ids=str)
def test_a_quilt_that_cannot_be_better_is_not_computed(network: Network) -> None:
    """But never taken for better than it is."""
    losses = losses_of(network, "alike")
    search = search_of(network, losses, "leak")
    for node in range(network.size):
        if not (pairs := network.secrets(node)).any():
            continue
        for quilt in network.quilts(node):
            for than in (0.5, 2.0, 3.5):
                found = search.judged(node, set_of(quilt), pairs, than)
                value = found.weight + network.influence(node, quilt, pairs)
                assert found.value == pytest.approx(value, rel=1e-9) or (
                    value >= than - 1e-9 and found.value == math.inf
                )


def test_sums_of_losses_are_never_rounded_down() -> None:
    """In fractions: of few and of many, of alike and of unlike losses."""
    rng = np.random.default_rng(1)
    for count in (1, 2, 3, 10, 40):
        for alike in (False, True):
            losses = rng.uniform(0, 1, count) if not alike else np.repeat(rng.uniform(0, 1, 2), count)[:count]
            weights = NodeWeights(losses)
            for _ in range(50):
                nodes = rng.permutation(count)[: rng.integers(1, count + 1)].tolist()
                exact = sum(Fraction(float(losses[j])) for j in nodes)
                assert exact <= Fraction(weights(set_of(nodes))) <= exact * (1 + Fraction(1, 10**12))


@pytest.mark.slow
def test_all_nodes_together_have_a_limit_too() -> None:
    """The first nodes have most looks; those that are left have a few, and their quilts are sound."""
    fewer = 0
    for network in SEVEN:
        losses = losses_of(network, "unlike")
        free = search_of(network, losses, "score 4", 1000)
        limited = QuiltSearch(inference_of(network), NodeWeights(np.array(losses)), OBJECTIVES["score 4"], 1000, 20)
        for node in range(network.size):
            if (pairs := network.secrets(node)).any():
                best, found = free.best(node, pairs), limited.best(node, pairs)
                assert found.value >= best.value
                assert found.value == free.judged(node, found.quilt, pairs).value
        fewer += limited.looked < free.looked
    assert fewer
