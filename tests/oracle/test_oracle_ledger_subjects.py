"""What releases about overlapping and disjoint subjects leak together, against all pairs of sequences of two people."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from enumeration import laplace_loss, worst_count_loss
from propagation_oracle import two_state_leakage
from pufferfish.data import Base
from pufferfish.ledger import Ledger

LENGTHS = {"ann": 3, "bob": 2}
SCALE = 1.7


def read_of(names: tuple[str, ...]) -> pf.Sequences:
    return pf.Sequences(
        states=("rest", "active"),
        counts=np.array([[LENGTHS[name], 0] for name in names]),
        transitions=np.zeros((2, 2), dtype=np.int64),
        length=tuple(pf.ChainLength(LENGTHS[name], LENGTHS[name]) for name in names),
        subjects=len(names),
        names=names,
        base=Base(source="table.csv", state="activity", subject="id"),
    )


def true_loss(chain: pf.MarkovChain, start: np.ndarray, releases: list[tuple[str, ...]]) -> float:
    """The largest loss about any record of either, of noisy numbers of active records of who each release reads."""
    matrix = np.asarray(chain.transition_matrix)
    pairs = list(itertools.product(*(itertools.product((0, 1), repeat=n) for n in LENGTHS.values())))
    weights = np.array(
        [np.prod([start[s[0]] * np.prod([matrix[a, b] for a, b in itertools.pairwise(s)]) for s in p]) for p in pairs]
    )
    counts = {name: np.array([sum(pair[i]) for pair in pairs]) for i, name in enumerate(LENGTHS)}
    atoms = np.array([sum(counts[name] for name in names) for names in releases]).T
    worst = 0.0
    for i, n in enumerate(LENGTHS.values()):
        for record in range(n):
            laws = []
            for state in (0, 1):
                law = weights * np.array([pair[i][record] == state for pair in pairs])
                laws.append(law / law.sum())
            worst = max(worst, laplace_loss(atoms, laws, SCALE))
    return worst


@pytest.mark.parametrize("matrix", [[[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.4, 0.6]]], ids=["coin", "chain"])
def test_a_subject_pays_for_what_was_released_about_it(matrix: list[list[float]]) -> None:
    chain, base = pf.MarkovChain(matrix, states=["rest", "active"]), read_of(("ann", "bob"))
    start = np.array([matrix[1][0], matrix[0][1]]) / (matrix[1][0] + matrix[0][1])
    bound = pf.LeakagePropagation(chain, base.length)
    who = [("ann",), ("bob",), ("ann", "bob")]
    seen, of_one = {}, {name: pf.LeakagePropagation(chain, n) for name, n in LENGTHS.items()}
    for releases in itertools.chain.from_iterable(itertools.product(who, repeat=n) for n in (1, 2, 3)):
        ledger = Ledger(bound, 50.0, base=base)
        for names in releases:
            ledger.spend(1 / SCALE, data=read_of(names))
        times = {name: sum(name in names for names in releases) for name in LENGTHS}
        key = tuple(sorted(releases))
        if key not in seen:
            seen[key] = true_loss(chain, start, list(releases))
        assert seen[key] <= ledger.spent * (1 + 1e-9)
        # what one subject is charged is what it would be alone, so many times
        alone = {name: of_one[name].leakage(n / SCALE) if n else 0.0 for name, n in times.items()}
        assert ledger.spent == pytest.approx(max(alone.values()), rel=1e-6)
        if matrix[0] == matrix[1]:  # every record alone: the bound is the truth
            assert ledger.spent == pytest.approx(max(times.values()) / SCALE)
            assert seen[key] == pytest.approx(ledger.spent, rel=0.2)
    assert max(seen.values()) > 1.5 * seen[("ann",),]


def test_women_then_men_after_everybody_cost_exactly_what_two_answers_about_a_person_tell() -> None:
    """The example of docs/ledger.md: on two states the leakage is known exactly, and the ledger says no more."""
    names, matrix = ("ann", "bob"), [[0.9, 0.1], [0.4, 0.6]]

    def read_long(who: tuple[str, ...]) -> pf.Sequences:
        length = tuple(pf.ChainLength(200, 200) for _ in who)
        return replace(read_of(who), counts=np.array([[200, 0]] * len(who)), length=length)

    base = read_long(names)
    bound = pf.LeakagePropagation(pf.MarkovChain(matrix, states=["rest", "active"]), base.length)
    noise = bound.calibrate(pf.Count("active"), 0.5)
    ledger, start = Ledger(bound, 50.0, base=base), [0.8, 0.2]
    for who, times, about in ((names, 1, 0.5), (("ann",), 2, 1.051), (("bob",), 2, 1.051), (("ann",), 3, 1.626)):
        ledger.spend(noise, data=read_long(who))
        assert ledger.spent == pytest.approx(
            two_state_leakage(start, matrix, np.full(200, times / noise.scale)), rel=1e-5
        )
        assert ledger.spent == pytest.approx(about, rel=1e-3)


def test_the_noise_for_the_longest_is_enough_for_every_subject(tmp_path: Path) -> None:
    """The true loss of each subject's own noisy count, gaps included, at the one scale for everybody."""
    rng = np.random.default_rng(4)
    for _ in range(6):
        matrix = rng.dirichlet([1.0, 1.0], 2)
        chain = pf.MarkovChain(matrix, states=["rest", "active"])
        start = np.array([matrix[1, 0], matrix[0, 1]]) / (matrix[1, 0] + matrix[0, 1])
        minutes = {"a": [0, 1, 2, 3, 6, 7], "b": [0, 1, 3], "c": [5], "d": [0, 1, 2, 3]}
        rows = [(name, minute, "rest") for name, times in minutes.items() for minute in times]
        frame = pl.DataFrame(rows, schema=["id", "minute", "activity"], orient="row")
        data = pf.read_sequences(frame, "activity", subject="id", time="minute", max_gap=1, states=["rest", "active"])
        noise = pf.LeakagePropagation(chain, data.length).calibrate(pf.Count("active"), 1.0)
        found = pf.release_each(data, pf.Count("active"), noise, tmp_path / "v.csv", overwrite=True)
        assert found.mechanism.longest_chain == 8
        for times in minutes.values():
            observed = np.isin(np.arange(times[0], times[-1] + 1), times)
            assert worst_count_loss(start, matrix, observed, 1, found.noise.scale) <= 1.0 + 1e-9
