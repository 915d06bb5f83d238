"""What GK16 refuses, what its settings do, and what it costs on long chains."""

import pickle
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.gk16 import Influences
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.mechanisms import bound_of

WEAK = pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
STRONG = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
PERIODIC = [[0, 0, 0.4, 0.6], [0, 0, 0.5, 0.5], [0.5, 0.5, 0, 0], [0.45, 0.55, 0, 0]]


def test_a_strong_correlation_is_refused_with_its_norm() -> None:
    gamma = np.log((1 + 13.5 * 1.5) / 2.5) / 2
    norm = 2 * gamma * np.cos(np.pi / 101)
    with pytest.raises(NotApplicableError) as refusal:
        pf.GK16([WEAK, STRONG], 100, ends="paper")
    words = str(refusal.value)
    assert words.startswith("GK16 does not apply: the influence matrix has spectral norm ")
    assert float(words.split("spectral norm ")[1].split()[0]) == pytest.approx(norm, rel=1e-5)
    assert "for theta[1], and the bound needs less than 1" in words


def test_the_norm_grows_with_the_length_and_the_longest_chain_decides() -> None:
    chain = pf.MarkovChain([[0.68, 0.32], [0.32, 0.68]])
    assert pf.GK16(chain, 5).spectral_norm < pf.GK16(chain, 6).spectral_norm < 1
    for lengths in (1000, [5, 1000, 6], pf.ChainLength(1000, 2)):
        with pytest.raises(NotApplicableError, match=r"spectral norm 1\.\d+ for theta\[0\]"):
            pf.GK16(chain, lengths)


def test_a_strong_chain_of_one_record_is_covered() -> None:
    assert pf.GK16(STRONG, [1, 1]).leakage(0.3) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("theta", "reason"),
    [
        (pf.MarkovChain([[1, 0], [0, 1]], [0.5, 0.5], states=["a", "b"]), "never goes from 'a' to 'b'"),
        (pf.MarkovChain([[0.5, 0.5], [0, 1]], "any", states=["a", "b"]), "never goes from 'b' to 'a'"),
        ([WEAK, pf.MarkovChain([[0.5, 0.5], [1, 0]])], r"theta\[1\] never goes from '1' to '1'"),
        (pf.MarkovChain(PERIODIC, [0.25, 0.25, 0.25, 0.25]), "never goes from '0' to '0'"),
        (pf.MarkovChain(PERIODIC, "any"), "never goes from '0' to '0'"),
    ],
)
def test_missing_transitions_are_refused(theta: Any, reason: str) -> None:
    with pytest.raises(NotApplicableError, match=f"^GK16 does not apply: .*{reason}"):
        pf.GK16(theta, 3)


def test_an_entry_too_small_for_its_square_is_no_zero() -> None:
    tiny = pf.MarkovChain([[1 - 1e-200, 1e-200], [1e-200, 1 - 1e-200]], "any")
    with pytest.raises(NotApplicableError, match=r"spectral norm [2-9]\d\d"):
        pf.GK16(tiny, 4)


def test_intervals_that_are_too_wide_are_refused() -> None:
    with pytest.raises(NotApplicableError, match=r"spectral norm \S+ for p0 = p1 = 0.8,"):
        pf.GK16(pf.BinaryChainInterval(0.5, 0.8), 50)


def test_alphabets_that_take_turns_are_covered() -> None:
    """The two states of even records, and the two others of odd ones; from a certain start the first has no secret."""
    both = pf.GK16(pf.MarkovChain(PERIODIC, [0.5, 0.5, 0, 0]), 60)
    assert 2 < both.leakage(1.0) < 4
    certain = pf.GK16(pf.MarkovChain(PERIODIC, [1, 0, 0, 0]), 60)
    assert certain.leakage(1.0) == pytest.approx(both.leakage(1.0), rel=1e-9)
    assert certain.leakage(np.eye(60)[0]) < 1e-200


def test_what_is_certain_is_no_secret() -> None:
    fixed = pf.GK16(pf.MarkovChain([[0, 1], [1, 0]], [1, 0]), 9)
    assert fixed.prove(1.0) == (0.0, None)
    with pytest.raises(ModelError, match="no secret"):
        fixed.calibrate(pf.Count(0), 1.0)


@pytest.mark.parametrize("start", ["stationary", "any", [1.0, 0.0], [0.5, 0.5]], ids=str)
def test_the_ends_by_the_papers_reading(start: Any) -> None:
    """Above the definition for stationary starts; for every start it spares the first record's larger influence."""
    chain = pf.MarkovChain([[0.6, 0.4], [0.45, 0.55]], start)
    paper, definition = pf.GK16(chain, 6, ends="paper"), pf.GK16(chain, 6, ends="definition")
    assert paper.settings == {"ends": "paper"}
    assert definition.settings == {"ends": "definition"}
    better = pf.GK16(chain, 6)
    assert better.settings == {}
    assert better.leakage(0.1) == min(paper.leakage(0.1), definition.leakage(0.1))
    assert better.spectral_norm == min(paper.spectral_norm, definition.spectral_norm)
    if start == "stationary":
        assert paper.leakage(0.2) > definition.leakage(0.2)
        assert paper.spectral_norm > definition.spectral_norm
    if start == "any":
        assert paper.spectral_norm < definition.spectral_norm
    again = bound_of("gk16", chain, 6, paper.settings)
    assert again.leakage(0.2) == pickle.loads(pickle.dumps(paper)).leakage(0.2) == paper.leakage(0.2)


def test_ends_are_one_of_two() -> None:
    with pytest.raises(ParameterError, match='ends is \'both\', expected "definition" or "paper"'):
        pf.GK16(WEAK, 6, ends="both")


def test_the_witness_is_the_worst_row() -> None:
    members = [pf.MarkovChain([[0.52, 0.48], [0.48, 0.52]]), WEAK]
    witness = pf.GK16(members, [40, 41]).calibrate(pf.Count(0), 1.0).witness
    assert (witness.theta, witness.length, witness.node, witness.secret_pair) == (1, 41, 20, None)
    assert witness.kind == "influence-matrix"
    window = np.zeros(41)
    window[3:6] = 0.1
    value, at = pf.GK16(members, 41).prove(window)
    assert at is not None
    assert at.node == 4
    assert 0.2 < value < pf.GK16(members, 41).leakage(0.1)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-200, 1e200, 1e308])
def test_losses_of_any_size(size: float) -> None:
    bound = pf.GK16(WEAK, 5)
    factor = bound.leakage(1.0)
    for losses in (size, np.full(5, size), [size, 0, size, size / 2, size]):
        found = bound.leakage(losses)
        assert found >= 2 * size if size < 1e308 else found == np.inf
        assert found <= factor * size * (1 + 1e-9) + 1e-322


def test_a_profile_of_equal_losses_is_one_loss() -> None:
    bound = pf.GK16(WEAK, 30)
    assert bound.leakage(np.full(30, 0.3)) == pytest.approx(bound.leakage(0.3), rel=1e-12)
    matrix = 0.3 * (1 - np.eye(2))
    assert bound.leakage(matrix) == bound.leakage(0.3)
    halves = pf.Profile([(15, 0.3), (15, 0.0)])
    assert bound.leakage(halves) == bound.leakage(np.repeat([0.3, 0.0], 15)) < bound.leakage(0.3)


@pytest.mark.parametrize("seed", range(6))
def test_longer_chains_and_more_members_never_leak_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = 2 + seed % 3
    p = 0.9 / k + 0.1 * rng.dirichlet(np.ones(k), k)
    chain = pf.MarkovChain(p, ["any", "stationary", rng.dirichlet(np.ones(k))][seed % 3])
    leaks = [pf.GK16(chain, t).leakage(0.2) for t in (1, 2, 3, 10, 300)]
    assert np.all(np.diff(leaks) >= -1e-14)
    assert pf.GK16([chain, WEAK] if k == 2 else chain, [3, 10, 2]).leakage(0.2) >= leaks[3]


@pytest.mark.parametrize("start", ["any", "stationary", [1.0, 0.0]], ids=str)
def test_a_million_records(start: Any) -> None:
    chain = pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]], start)
    long, short = pf.GK16(chain, 10**6), pf.GK16(chain, 300)
    assert long.leakage(1.0) == pytest.approx(short.leakage(1.0), rel=1e-9)
    assert long.spectral_norm == pytest.approx(short.spectral_norm, rel=1e-4)
    few = pf.GK16(chain, pf.ChainLength(10**6, 5)).leakage(1.0)
    assert few == pytest.approx(pf.GK16(chain, pf.ChainLength(300, 5)).leakage(1.0), rel=1e-9)
    assert few < long.leakage(1.0)
    part = pf.Profile([(500_000, 0.0), (7, 1.0), (499_993, 0.0)])
    assert long.leakage(part) < long.leakage(1.0)


def test_a_ledger_of_gk16_adds_losses() -> None:
    ledger = pf.Ledger(pf.GK16(WEAK, 50), budget=2.0)
    calibration = ledger.bound.calibrate(pf.Count(0), 1.0)
    for spent in (1.0, 2.0):
        ledger.spend(calibration)
        assert ledger.spent == pytest.approx(spent, rel=1e-9)


def test_a_long_chain_that_is_too_strongly_correlated_is_refused_by_its_first_records(monkeypatch) -> None:
    """The whole matrix of 10^8 records, of gigabytes, is never made."""
    made: list[int] = []
    whole = Influences.matrix
    monkeypatch.setattr(Influences, "matrix", lambda self, steps: made.append(steps) or whole(self, steps))
    with pytest.raises(NotApplicableError, match=r"spectral norm at least 1\.8"):
        pf.GK16(pf.MarkovChain([[0.77, 0.23], [0.23, 0.77]]), 10**7)
    assert not made


def test_the_matrix_of_alphabets_that_take_turns() -> None:
    """Entries by the alphabet of the record before, written out record by record."""
    rng = np.random.default_rng(5)
    for n in range(1, 5):
        for cycle in range(n):
            left, right, last = rng.random((3, n))
            several = rng.random(n) < 0.5
            influences = Influences(0.7, 0.1, left, right, last, several, cycle)
            for steps in (1, 2, 3, 9, 10):
                of = list(range(n))
                while len(of) < steps:
                    of.append(of[-(n - cycle)])
                matrix, part = influences.matrix(steps), influences.leading(steps)
                inner = [left[of[i - 1]] for i in range(1, steps)]
                assert part.left.tolist() == [0, *inner]
                assert matrix.left.tolist() == [0, *inner[:-1], *([last[of[steps - 2]]] if steps > 1 else [])]
                after = [0.7, *(right[of[i - 1]] for i in range(1, steps))]
                assert matrix.right.tolist() == part.right.tolist() == [*after[: steps - 1], 0]
                assert matrix.secret.tolist() == [several[i] for i in of[:steps]]


def test_a_chain_too_long_for_its_influence_matrix_is_refused_at_once() -> None:
    with pytest.raises(NotApplicableError, match="the longest chain has 10,000,000,000 records"):
        pf.GK16(pf.MarkovChain([[0.5, 0.5], [0.45, 0.55]]), length=10**10)
