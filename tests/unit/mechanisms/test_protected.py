"""Protection of stretches: classes, several chains, what is refused, and bounds that are not propagation's."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import dyadic_law, dyadic_matrix
from propagation_oracle import Array, chain_law, losses_per_pair
from pufferfish._core.propagation import chain as chain_module, forgetting, past_and_future
from pufferfish._core.propagation.forgetting import Forgets, told_by_profile, told_by_stretch
from pufferfish.errors import ModelError
from pufferfish.mechanisms._propagation_on_chains import leakage_of_series
from pufferfish.mechanisms.promises import _of_one
from pufferfish.queries.record_loss import as_record_loss
from pufferfish.theta.model_class import as_theta
from stretch_oracle import supremum_of_stretch
from stretches import leakage_of_stretch, noise_of_stretch

STICKY, QUICK = [[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.3, 0.7]]


def test_the_worst_member_and_the_worst_chain_decide() -> None:
    members = [pf.MarkovChain(QUICK), pf.MarkovChain(STICKY)]
    value, witness = leakage_of_stretch(members, [30, 50, 7], 0.1, 3)
    assert value == leakage_of_stretch(members[1], 50, 0.1, 3)[0]
    assert witness is not None
    assert (witness.theta, witness.length, witness.steps) == (1, 50, 3)
    losses = [0.1, 0.0, 0.3]
    value, witness = leakage_of_stretch(members, [30, 50, 7], losses, 3)
    assert witness is not None
    assert witness.length == 7
    assert value == leakage_of_stretch(members[1], 7, 0.3, 3)[0]


def test_a_mixed_class_has_its_largest_member() -> None:
    clock = pf.PeriodicChain([STICKY] * 7 + [QUICK] * 17)
    order = pf.HigherOrderChain([[[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.2, 0.8]]])
    each = [leakage_of_stretch(member, 200, 0.05, 24)[0] for member in (clock, order)]
    assert leakage_of_stretch(pf.ChainClass((clock,)), 200, 0.05, 24)[0] == each[0]
    assert each[0] > 24 * 0.05
    assert each[1] > 24 * 0.05


@pytest.mark.slow
@pytest.mark.parametrize("start", ["given", "stationary", "any"])
def test_one_record_of_a_chain_with_memory_is_what_propagation_says(start: str, slow: bool) -> None:
    """Two searches of the same bound: record by record, and over groups of places; zeros, and steps that are read."""
    compared = 0
    for seed in range(150 if slow else 30):
        rng = np.random.default_rng(seed)
        k, length = int(rng.integers(2, 4)), int(rng.integers(1, 9))
        tensor = np.array([dyadic_matrix(rng, k, 0.35) for _ in range(k)])
        first = dyadic_law(rng, k**2, 0.5).reshape(k, k)
        try:
            chain = pf.HigherOrderChain(tensor, first if start == "given" else start)  # type: ignore[arg-type]
        except ModelError:
            continue
        d = np.repeat(rng.random(4), 3)[:length] * rng.choice([0, 1], length)
        step = 0.2 if seed % 3 == 0 and length > 1 else 0.0
        loss = pf.StepLoss(step, d) if step else d
        expected = min(pf.LeakagePropagation(chain, length).leakage(loss), float(d.sum()) + (length - 1) * step)
        assert leakage_of_stretch(chain, length, loss, 1)[0] == pytest.approx(expected, abs=1e-6), seed
        compared += 1
    assert compared > 10


def test_a_longer_stretch_leaks_more_and_no_more_than_the_series() -> None:
    chain = pf.MarkovChain(STICKY)
    losses = [0.3, 0.0, 0.2, 0.5, 0.0, 0.1, 0.4]
    each = [leakage_of_stretch(chain, 7, losses, n)[0] for n in range(1, 8)]
    assert each == sorted(each)
    assert each[-1] == pytest.approx(1.5, abs=1e-12)
    assert leakage_of_stretch(chain, 7, losses, 100) == leakage_of_stretch(chain, 7, losses, 7)
    simple = [max(sum(losses[i : i + n]) for i in range(8 - n)) for n in range(1, 8)]
    assert all(bound >= own for bound, own in zip(each, simple, strict=True))


def test_few_observed_records_cost_no_more_than_all_of_them() -> None:
    chain = pf.MarkovChain(STICKY)
    length = pf.ChainLength(steps=10_000, records=3)
    value, witness = leakage_of_stretch(chain, length, 0.1, 60)
    assert value == pytest.approx(0.3, abs=1e-12)
    assert witness is not None
    assert witness.by == "series"
    known = pf.ChainLength(steps=10_000, records=3, places=(1, 4998, 1, 4999, 1))
    value, witness = leakage_of_stretch(chain, known, 0.1, 60)
    assert value == pytest.approx(0.1, abs=1e-6)
    assert witness is not None
    assert witness.by == "propagation"


def test_too_many_states_have_the_sum_of_losses() -> None:
    k = 90
    matrix = 0.9 * np.eye(k) + 0.1 / k
    value, witness = leakage_of_stretch(pf.MarkovChain(matrix), 100, 0.1, 5)
    assert value == pytest.approx(10.0, abs=1e-9)
    assert witness is not None
    assert witness.by == "series"


def test_folded_profiles_are_what_unfolded_ones_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour of each day: followed record by record, or folded."""
    chain = pf.MarkovChain([[0.95, 0.05], [0.1, 0.9]])
    days = 30
    profile = pf.Profile([(30, 0.02), (5, 0.3), *[(22, 0.0), (6, 0.1)] * days, (9, 0.05)])
    length = 44 + 28 * days
    plain = {n: leakage_of_stretch(chain, length, profile, n) for n in (1, 7, 40, 200)}
    # so few places are followed one by one that the days are folded
    monkeypatch.setattr(past_and_future, "_most_steps", lambda *_: 64)
    asked: list[int] = []
    unfold = chain_module.unfolded

    def spy(*given: Any) -> Any:
        asked.append(len(given[3]))
        return unfold(*given)

    monkeypatch.setattr(chain_module, "unfolded", spy)
    for n, (value, witness) in plain.items():
        folded, where = leakage_of_stretch(chain, length, profile, n)
        assert folded == pytest.approx(value, rel=2e-3)  # a bound for any number of days
        assert folded >= value * (1 - 1e-9)
        assert where is not None
        assert witness is not None
        assert 0 <= where.node <= length - n
    assert asked == [1] * 4


def test_noise_is_enough_and_hardly_more() -> None:
    members = [pf.MarkovChain(QUICK), pf.MarkovChain(STICKY, "any")]
    for loss in (1.0, pf.StepLoss(1.0, 0.5)):
        divisor = noise_of_stretch(members, [100, 40], loss, 10, 0.7)
        blocks = as_record_loss(loss, as_theta(members), (pf.ChainLength(100, 100),)).divided(divisor).blocks
        given = [float(blocks[0].stacked[0]), blocks[0].step]
        leaks, _ = leakage_of_stretch(members, [100, 40], pf.StepLoss(given[1], given[0]) if given[1] else given[0], 10)
        assert 0.7 * (1 - 2e-6) <= leaks <= 0.7
    assert noise_of_stretch(members, [100, 40], 0.0, 10, 1.0) == 0.0


def test_without_a_model_and_whole_series() -> None:
    chain = pf.MarkovChain(STICKY)
    for lengths, loss, told in (
        ([5, 9], [0.1, [0.0] * 8 + [0.4]], 0.4),
        ([1], pf.StepLoss(0.3, 0.1), 0.1),
        ([2], pf.StepLoss(0.3, 0.1), 0.4),
    ):
        losses = as_record_loss(loss, as_theta(chain), tuple(pf.ChainLength(n, n) for n in lengths))
        assert told <= _of_one(losses) == pytest.approx(told)
    losses = as_record_loss(pf.StepLoss(0.25, 0.5), as_theta(chain), (pf.ChainLength(8, 8),))
    assert leakage_of_series(losses.blocks[0]) == 8 * 0.5 + 7 * 0.25


@pytest.mark.parametrize("start", ["stationary", "any"])
def test_a_class_of_two_state_chains_is_its_two_corners(start: str) -> None:
    corners = [pf.MarkovChain([[p, 1 - p], [1 - p, p]], start) for p in (0.3, 0.8)]  # type: ignore[arg-type]
    theta = pf.BinaryChainInterval(0.3, 0.8, initial_distribution=start)  # type: ignore[arg-type]
    for n, losses in itertools.product((1, 3, 30), (0.4, pf.StepLoss(0.2, 0.1))):
        bound, witness = leakage_of_stretch(theta, 30, losses, n)
        listed = leakage_of_stretch(corners, 30, losses, n)[0]
        assert listed * (1 - 1e-9) <= bound <= listed * (1.03 if start == "any" else 1 + 1e-9)
        assert witness is not None
        assert witness.theta == 0
        divisor = noise_of_stretch(theta, 30, losses, n, 1.0)
        assert divisor >= noise_of_stretch(corners, 30, losses, n, 1.0) * (1 - 2e-6)


# -- Forgetting classes -----------------------------------------------------------------------------------------------


def plain_side(losses: Array, pairs: list[Forgets]) -> Array:
    """A_i of docs/proofs/forgetting.md, from the end."""
    length = len(losses)
    a = np.zeros(length + 1)
    for i in reversed(range(length)):
        a[i] = losses[i] + a[i + 1]
        for n, keeps in pairs:
            if i + n < length:
                a[i] = min(a[i], losses[i : i + n].sum() + math.log1p(keeps * math.expm1(a[i + n])))
    return a[:-1]


@pytest.mark.parametrize("seed", range(5))
def test_forgetting_is_the_plain_recursion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = rng.integers(1, 8, size=int(rng.integers(1, 8)))
    values = rng.random(steps.size) * rng.choice([0, 1], steps.size)
    losses = np.repeat(values, steps)
    pairs = [Forgets(2, 0.5), Forgets(5, 0.2)]
    after, before = plain_side(losses, pairs), plain_side(losses[::-1], pairs)[::-1]
    for records in range(1, len(losses) + 1):
        places = range(len(losses) - records + 1)
        expected = [
            before[i] - losses[i] + losses[i : i + records].sum() + after[i + records - 1] - losses[i + records - 1]
            for i in places
        ]
        found = told_by_stretch(steps, values, pairs, records)
        assert found.total == pytest.approx(max(expected), abs=1e-12)
        assert found.total >= max(expected) - 1e-15
        assert expected[found.node] == pytest.approx(max(expected), abs=1e-12)
    assert told_by_stretch(steps, values, pairs, 1).total == pytest.approx(told_by_profile(steps, values, pairs).total)


def test_long_profiles_of_a_forgetting_class_are_not_below_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, values, pairs = np.array([700, 90, 800]), np.array([0.02, 0.2, 0.05]), [Forgets(3, 0.4)]
    exact = {n: told_by_stretch(steps, values, pairs, n).total for n in (1, 20, 90, 95, 500, 1590)}
    monkeypatch.setattr(forgetting, "_DIRECT", 100)
    monkeypatch.setattr(forgetting, "_BESIDE", 32)
    for n, value in exact.items():
        coarse = told_by_stretch(steps, values, pairs, n).total
        assert value <= coarse * (1 + 1e-12)
        assert coarse <= value + 3.0
    uniform = told_by_stretch(np.array([5000]), np.array([0.1]), pairs, 7)
    monkeypatch.undo()
    assert told_by_stretch(np.array([5000]), np.array([0.1]), pairs, 7).total == pytest.approx(uniform.total, rel=1e-9)


def test_no_density_tells_more_under_members_of_a_forgetting_class() -> None:
    theta = pf.ForgettingClass(1, 0.5, ["a", "b"])
    for step, records in itertools.product((0.0, 0.3), (1, 2, 3)):
        d = losses_per_pair([0.5, 0.3, 0.0, 0.4], 4, 2)
        loss = pf.StepLoss(step, d[:, 0, 1]) if step else d[:, 0, 1]
        bound = leakage_of_stretch(theta, 4, loss, records)[0]
        for chain in theta.some_members:
            law = chain_law(chain.stationary_distribution, chain.transition_matrix, 4)
            assert supremum_of_stretch(law, d, records, step=step, most=12) <= bound + 1e-7


def test_no_density_tells_more_under_matrices_between_bounds() -> None:
    rng = np.random.default_rng(1)
    lower, upper = np.array([[0.5, 0.1], [0.2, 0.4]]), np.array([[0.9, 0.5], [0.6, 0.8]])
    theta = pf.IntervalChain(lower, upper)
    d = losses_per_pair([0.5, 0.8, 0.3, 0.6], 4, 2)
    for records in (1, 2, 3):
        bound = leakage_of_stretch(theta, 4, d, records)[0]
        for _ in range(6):
            law = rng.dirichlet([1.0, 1.0])
            for _ in range(3):
                stay = rng.uniform([0.5, 0.4], [0.9, 0.8])
                law = law[..., None] * np.array([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]])
            assert supremum_of_stretch(law, d, records, most=12) <= bound + 1e-7
