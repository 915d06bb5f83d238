"""The recursion of forgetting: against exact arithmetic, folded against followed record by record."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from pufferfish._core.propagation import forgetting
from pufferfish._core.propagation.forgetting import Forgets, fixed_point, told_by_profile, told_by_uniform

PAIRS = [Forgets(3, 0.5), Forgets(10, 0.1)]


def exact(losses: list[float], pairs: list[Forgets]) -> list[Decimal]:
    """What every record and all later ones tell, by the recursion of the proof."""
    d, a = [Decimal(v) for v in losses], [Decimal(0)] * (len(losses) + 1)
    for i in range(len(d) - 1, -1, -1):
        a[i] = d[i] + a[i + 1]
        for n, keeps in pairs:
            if i + n <= len(d):
                told = 1 + Decimal(keeps) * (a[i + n].exp() - 1)
                a[i] = min(a[i], sum(d[i : i + n], Decimal(0)) + told.ln())
    return a[:-1]


def exact_leakage(losses: list[float], pairs: list[Forgets]) -> Decimal:
    later, earlier = exact(losses, pairs), exact(losses[::-1], pairs)[::-1]
    return max(a + b - Decimal(d) for a, b, d in zip(later, earlier, losses, strict=True))


def test_the_recursion_is_computed_and_rounded_up() -> None:
    rng = np.random.default_rng(1)
    for trial in range(60):
        stretches = int(rng.integers(1, 6))
        steps = rng.integers(1, 12, stretches)
        losses = rng.random(stretches) * rng.choice([1e-9, 0.01, 0.3, 3.0]) * rng.integers(0, 2, stretches)
        pairs = [Forgets(int(n), float(s)) for n, s in zip(rng.integers(1, 9, 2), rng.random(2), strict=True)]
        pairs = [*pairs, Forgets(4, 0.0)] if trial % 5 == 0 else pairs
        with localcontext() as context:
            context.prec = 60
            true = exact_leakage(np.repeat(losses, steps).tolist(), pairs)
            found = told_by_profile(steps, losses, pairs).total
            assert true <= Decimal(found) <= true * (1 + Decimal("1e-11")) + Decimal("1e-25")


def test_a_long_chain_comes_to_its_fixed_point() -> None:
    for loss in (1e-6, 0.05, 0.2):
        most = math.log1p(fixed_point(loss, PAIRS))
        by_formula = min(
            math.log((1 - s) * math.exp(n * loss) / (1 - s * math.exp(n * loss)))
            for n, s in PAIRS
            if s * math.exp(n * loss) < 1
        )
        assert most == pytest.approx(by_formula, rel=1e-9)
        long = told_by_uniform(loss, 2**60, PAIRS)
        assert long.total == pytest.approx(2 * most - loss, rel=1e-12)
        followed = told_by_profile(np.array([5000]), np.array([loss]), PAIRS)
        assert followed.total == pytest.approx(long.total, rel=1e-9)
        assert followed.total <= long.total * (1 + 1e-12)


def test_more_steps_never_leak_less() -> None:
    before = 0.0
    for steps in (1, 2, 3, 4, 10, 11, 100, 4095, 4096, 4097, 5000, 2**20, 2**20 + 1, 2**40):
        found = told_by_uniform(0.08, steps, PAIRS).total
        assert found >= before * (1 - 1e-9)
        before = found


def test_where_nothing_is_forgotten_in_time_all_records_tell() -> None:
    assert fixed_point(1.0, PAIRS) == math.inf
    assert told_by_uniform(1.0, 2**60, PAIRS).total == pytest.approx(2**60, rel=1e-9)
    assert told_by_uniform(9.0, 50, [Forgets(20, 0.9)]).total == pytest.approx(450, rel=2e-3)
    assert told_by_profile(np.array([7, 3]), np.array([400.0, 0.0]), PAIRS).total > 2000
    assert not math.isnan(told_by_profile(np.array([1, 5, 1]), np.array([900.0, 0.0, 1.0]), [Forgets(2, 0.0)]).total)


def test_records_that_no_release_reads_have_secrets_too() -> None:
    found = told_by_profile(np.array([4, 1, 4]), np.array([0.2, 0.0, 0.2]), [Forgets(1, 0.5)])
    with localcontext() as context:
        context.prec = 40
        assert found.total == pytest.approx(float(exact_leakage([0.2] * 4 + [0.0] + [0.2] * 4, [Forgets(1, 0.5)])))


def test_folded_stretches_are_never_below_records_that_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long stretches: as much as record by record where they settle, and never less."""
    rng = np.random.default_rng(2)
    for loss, other in ((0.08, 0.0), (0.02, 0.3), (0.0, 0.1), (0.5, 0.01), (0.1, 0.1)):
        steps = np.array([700, int(rng.integers(1, 40)), 900, 300])
        losses = np.array([loss, other, loss, 0.0])
        direct = told_by_profile(steps, losses, PAIRS)
        with monkeypatch.context() as patched:
            patched.setattr(forgetting, "_DIRECT", 64)
            patched.setattr(forgetting, "_BESIDE", 50)
            folded = told_by_profile(steps, losses, PAIRS)
        assert folded.total >= direct.total * (1 - 1e-12)
        if loss < 0.5:
            assert folded.total == pytest.approx(direct.total, rel=1e-4)
            assert losses[np.searchsorted(np.cumsum(steps), folded.node, side="right")] == pytest.approx(folded.own)


def test_what_lies_far_beyond_a_folded_stretch_still_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loud records on both sides of a long silence that hardly forgets: its midst may not be held at its own level."""
    steps, losses, pairs = np.array([10, 600, 10]), np.array([0.2, 0.0, 0.2]), [Forgets(3, 0.9995)]
    direct = told_by_profile(steps, losses, pairs)
    assert direct.total > 1.5 * told_by_profile(steps[:2], losses[:2], pairs).total
    monkeypatch.setattr(forgetting, "_DIRECT", 64)
    monkeypatch.setattr(forgetting, "_BESIDE", 50)
    folded = told_by_profile(steps, losses, pairs)
    assert direct.total <= folded.total <= direct.total * 1.1


def test_long_profiles_cost_what_their_stretches_do() -> None:
    found = told_by_profile(np.array([10**15, 60, 10**15]), np.array([0.0, 0.05, 0.0]), PAIRS)
    short = told_by_profile(np.array([5000, 60, 5000]), np.array([0.0, 0.05, 0.0]), PAIRS)
    assert found.total == pytest.approx(short.total, rel=1e-6)
    assert 10**15 <= found.node < 10**15 + 60
