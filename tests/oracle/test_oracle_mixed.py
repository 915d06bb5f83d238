"""Classes of mixed kinds: what is proved is the largest of what is proved of members, and ledgers add per member.

    python tests/oracle/test_oracle_mixed.py [--cases 5000] [--of ledgers] [--seed 0]

counts as many cases, and prints a table. The truth is enumerated: every database of a short chain, under laws that come
near all that each member allows. That single releases keep what they promise asks ``test_oracle_odd_classes.py``.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from odd_classes import odd_class
from paper.audit.laws import some_laws
from paper.audit.losses import paths
from pufferfish.errors import BudgetExceeded, ModelError, NotApplicableError, QueryError
from pufferfish.ledger import Ledger
from pufferfish.mechanisms import BOUNDS, InfluenceBound
from pufferfish.queries import LinearQuery, StepQuery
from pufferfish.theta.model_class import as_theta
from stretches import leakage_of_stretch

SLACK = 1e-7
EQUAL = 1e-9
"""Bounds of a member alone, and in a class, may differ by how a search was begun."""

Case = tuple[str, float, float]
"""What was asked, what must not be larger, and what must not be smaller."""


def mixed(seed: int) -> tuple[np.random.Generator, Any, int]:
    rng = np.random.default_rng(seed)
    theta = odd_class(rng, "mixed", "abc"[: rng.integers(2, 4)])
    return rng, theta, int(rng.integers(1, 5 if theta.k == 2 else 4))


def largest_of_members(seed: int) -> Iterator[Case]:
    """A bound on a class lies between the largest bound on a member and itself: they are equal."""
    rng, theta, length = mixed(seed)
    matrix = rng.uniform(0, 1.5, size=(theta.k, theta.k)) * (1 - np.eye(theta.k))
    profile = rng.uniform(0, 1, length)
    losses = {"a number": 0.7, "a matrix": matrix, "a profile": profile, "steps": pf.StepLoss(0.4, matrix)}
    for make in BOUNDS:
        alone = [made for member in theta.members if (made := covered(make, as_theta(member), length)) is not None]
        whole = covered(make, theta, length)
        assert (whole is not None) == (len(alone) == len(theta.members))
        if whole is None:
            continue
        for name, loss in losses.items():
            yield from same(f"{make.title}, {name}", whole.leakage(loss), [bound.leakage(loss) for bound in alone])
        scales = [scale_of(bound) for bound in (whole, *alone)]
        yield from same(f"{make.title}, noise", scales[0], scales[1:])
    for steps in (1, 2):
        stretches = [leakage_of_stretch(one, length, 0.7, steps)[0] for one in (theta, *map(as_theta, theta.members))]
        yield from same(f"stretches of {steps}", stretches[0], stretches[1:])


def covered(make: type[InfluenceBound], theta: Any, length: int) -> InfluenceBound | None:
    try:
        return make.of(theta, length)
    except NotApplicableError:
        return None


def scale_of(bound: InfluenceBound) -> float:
    try:
        return bound.calibrate(pf.Count(bound.theta.states[-1]), 1.0).scale
    except (NotApplicableError, ModelError):  # there is nothing to hide
        return 0.0


def same(name: str, whole: float, alone: Sequence[float]) -> Iterator[Case]:
    rounded = 1e-5 if name.endswith("noise") else EQUAL  # noise is searched up to a share of ε
    yield name, max(alone) * (1 - rounded), whole
    yield name, whole, max(alone) * (1 + rounded) + 1e-15


def ledgers(seed: int) -> Iterator[Case]:
    """Three releases of one ledger, one of them of the noise of a member alone: what they tell, and what is spent."""
    rng, theta, length = mixed(seed)
    make = pf.LeakagePropagation if rng.random() < 0.8 else pf.GroupDP
    bound, states, taken = make(theta, length), theta.states, list[Any]()
    ledger = Ledger(bound, budget=float(rng.choice([0.5, 2.0, 5.0])))
    queries: list[Any] = [pf.Count(states[-1]), pf.Histogram(), pf.Switches(), pf.Sum(list(range(theta.k)))]
    member = as_theta(theta.members[int(rng.integers(len(theta.members)))])
    for place in rng.permutation(len(queries))[:3]:
        try:
            if rng.random() < 0.5:
                noise = ledger.calibrate(queries[place], up_to=float(rng.uniform(0.2, 1.0)) * ledger.budget)
            else:
                noise = make(member, length).calibrate(queries[place], float(rng.uniform(0.05, 0.3)) * ledger.budget)
            ledger.spend(noise)
        except (BudgetExceeded, NotApplicableError, ModelError, QueryError):
            continue
        taken.append(noise)
    yield "a ledger's budget", ledger.spent, ledger.budget
    if not taken:
        return
    alone = list[float]()
    for one in theta.members:
        other = Ledger(make(as_theta(one), length), budget=1e9)
        for noise in taken:
            other.spend(noise)
        alone.append(other.spent)
    yield from same("a ledger of each member", ledger.spent, alone)
    truth = 0.0
    for law in some_laws(theta, length):
        data = paths(*law)
        told = [answers(noise.linear, data.rows) for noise in taken]
        scales = np.concatenate(
            [np.full(one.shape[1], noise.unit_scale) for one, noise in zip(told, taken, strict=True)]
        )
        truth = max(truth, data.worst(np.concatenate(told, axis=1), scales)[0])
    yield "a ledger against the truth", truth, ledger.spent + SLACK


def answers(query: Any, rows: Any) -> Any:
    if isinstance(query, StepQuery):
        steps = query.outputs[rows[:, :-1], rows[:, 1:]]
        return np.stack([(steps == j).sum(axis=1) for j in range(len(query.labels))], axis=1).astype(np.int64)
    assert isinstance(query, LinearQuery)
    return np.asarray(query.weights[:, rows].sum(axis=2).T, dtype=np.int64)


KINDS = {"members": largest_of_members, "ledgers": ledgers}


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_is_its_worst_member(kind: str, slow: bool) -> None:
    for seed in range(150 if slow else 5):
        for name, less, more in KINDS[kind](seed):
            assert less <= more, (seed, name, less, more)


def main() -> int:
    parser = argparse.ArgumentParser(description="Classes of mixed kinds against their members and the truth.")
    parser.add_argument("--cases", type=int, default=5_000)
    parser.add_argument("--of", choices=KINDS, nargs="+", default=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    table: Counter[str] = Counter()
    wrong, seed = 0, asked.seed
    while table.total() < asked.cases:
        for kind in asked.of:
            for name, less, more in KINDS[kind](seed):
                table[kind if kind == "members" else name] += 1
                if not less <= more:
                    wrong += 1
                    sys.stdout.write(f"seed {seed}: {name}: {less!r} above {more!r}\n")
        seed += 1
    for kind, count in sorted(table.items()):
        sys.stdout.write(f"{kind:<26} {count:>6} cases\n")
    sys.stdout.write(f"{table.total()} cases, {wrong} violations\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
