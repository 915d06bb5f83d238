"""Influence, score and leakage of quilts against the joint law of all sequences (Definition 4.1, Algorithm 2)."""

import itertools
import math

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import AWKWARD, CASES, RANDOM, Case
from enumeration import Enumerated
from single_quilts import Quilts

EPSILONS = (0.5, 2.0, 8.0)
RELATIVE = 1e-9


def enumerated(case: Case) -> Enumerated:
    return Enumerated.of(list(case.initial), case.transition, case.length)


def assert_at_least_the_truth(found: float, truth: float) -> None:
    """Equal up to rounding, and rounding never in favour of less noise."""
    if math.isinf(truth):
        assert math.isinf(found)
        return
    assert found >= truth * (1 - 1e-12) - 1e-13
    assert found <= truth * (1 + RELATIVE) + 1e-12


@pytest.mark.parametrize("case", CASES, ids=str)
def test_influence_of_every_quilt(case: Case) -> None:
    truth, quilts = enumerated(case), Quilts(case.chain, case.length)
    for node in range(case.length):
        for ends, _ in truth.quilts(node):
            assert_at_least_the_truth(quilts.influence(node, ends), truth.influence(node, ends))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_papers_support_is_never_below_the_definition(case: Case) -> None:
    definition, paper = (Quilts(case.chain, case.length, support) for support in ("definition", "paper"))
    truth = enumerated(case)
    for node in range(case.length):
        for ends, _ in truth.quilts(node):
            assert paper.influence(node, ends) >= definition.influence(node, ends)


def test_the_papers_support_is_larger_after_a_certain_start() -> None:
    """The printed maximum also runs over values the first record never takes."""
    case = next(c for c in AWKWARD if c.name == "point-mass")
    assert Quilts(case.chain, 7, "paper").influence(3, (0,)) > Quilts(case.chain, 7).influence(3, (0,)) + 0.01


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_sigma_and_witness(case: Case, epsilon: float) -> None:
    truth, bound = enumerated(case), pf.MQMExact(case.chain, case.length)
    if all(len(truth.secrets(node)) < 2 for node in range(case.length)):
        with pytest.raises(pf.PufferfishError, match="no secret to protect"):
            bound.calibrate(pf.Count(1), epsilon)
        return
    if truth.sigma(epsilon) == 0:
        with pytest.raises(pf.PufferfishError, match="no noise is needed"):
            bound.calibrate(pf.Count(1), epsilon)
        return
    calibration, witness = (found := bound.calibrate(pf.Count(1), epsilon)), found.witness
    assert_at_least_the_truth(calibration.noise_multiplier, truth.sigma(epsilon))
    assert witness.node is not None
    assert witness.active_quilt is not None
    nearby = dict(truth.quilts(witness.node))[witness.active_quilt]
    score = truth.score(witness.node, witness.active_quilt, truth.changing(nearby), epsilon)
    assert score == pytest.approx(calibration.noise_multiplier, rel=RELATIVE)
    assert witness.influence == pytest.approx(truth.influence(witness.node, witness.active_quilt), abs=1e-12)
    assert (witness.active_quilt, witness.nearby) in [(e, len(n)) for e, n in truth.quilts(witness.node)]
    if witness.active_quilt:
        assert set(witness.secret_pair or ()) <= {str(x) for x in truth.secrets(witness.node)}


@pytest.mark.parametrize("longest", [1, 2, 3, 5])
@pytest.mark.parametrize("case", CASES[::3], ids=str)
def test_sigma_with_short_quilts_only(case: Case, longest: int) -> None:
    truth, bound = enumerated(case), pf.MQMExact(case.chain, case.length, max_quilt_length=longest)
    sigma = truth.sigma(2.0, longest)
    if sigma:
        found = bound.calibrate(pf.Count(1), 2.0).noise_multiplier
        # no short quilt may end at a certain record, which then counts as the others do
        assert sigma * (1 - 1e-12) <= found <= truth.sigma(2.0, longest, every=True) * (1 + RELATIVE)
        window = [0.25] + [0.0] * (case.length - 2) + [0.5] * (case.length > 1)
        assert bound.leakage(window) >= pf.MQMExact(case.chain, case.length).leakage(window) * (1 - 1e-12)


def profiles(length: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(length)
    window = np.zeros(length)
    window[length // 3 : 2 * length // 3 + 1] = 0.3
    spike = np.zeros(length)
    spike[-1] = 2.0
    return {
        "uniform": np.full(length, 0.2),
        "window": window,
        "spike": spike,
        "uneven": rng.exponential(0.5, length) * (rng.random(length) < 0.7),
        "unlike": np.array([10.0 ** rng.uniform(-9, 1) for _ in range(length)]),
    }


@pytest.mark.parametrize("name", list(profiles(4)))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_leakage_of_profiles(case: Case, name: str) -> None:
    profile = profiles(case.length)[name]
    truth = enumerated(case).leakage(list(profile))
    bound = pf.MQMExact(case.chain, case.length)
    # a profile is rounded up by less than 2^-40 of its largest loss, per record
    coarse = case.length * 2.0**-40 * profile.max()
    forms = [profile, profile[:, None, None] * (1 - np.eye(bound.theta.k))]
    if name == "uniform":
        forms += [profile[0], profile[0] * (1 - np.eye(bound.theta.k))]
    for form in forms:
        assert truth * (1 - 1e-12) - 1e-13 <= bound.leakage(form) <= truth * (1 + RELATIVE) + 1e-12 + coarse


@pytest.mark.parametrize("case", RANDOM[::4], ids=str)
def test_leakage_of_matrices_counts_the_largest_entry_between_possible_states(case: Case) -> None:
    k = case.transition.shape[0]
    matrices = np.random.default_rng(5).exponential(0.3, (case.length, k, k)) * (1 - np.eye(k))
    enumeration = enumerated(case)
    can = [enumeration.secrets(t) for t in range(case.length)]
    truth = enumeration.leakage([float(m[np.ix_(s, s)].max()) for m, s in zip(matrices, can, strict=True)])
    assert pf.MQMExact(case.chain, case.length).leakage(matrices) == pytest.approx(truth, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("case", RANDOM[:9], ids=str)
def test_leakage_of_several_chains_is_the_worst_one(case: Case) -> None:
    lengths = [case.length, 2, 1]
    losses = [np.linspace(0.1, 0.4, case.length), 0.7, [1.5]]
    worst = max(
        Enumerated.of(list(case.initial), case.transition, length).leakage(list(np.broadcast_to(loss, length)))
        for length, loss in zip(lengths, losses, strict=True)
    )
    bound = pf.MQMExact(case.chain, lengths)
    assert bound.leakage(losses) == pytest.approx(worst, rel=1e-9, abs=1e-10)
    uniform = Enumerated.of(list(case.initial), case.transition, case.length).leakage([0.3] * case.length)
    assert bound.leakage(0.3) >= uniform * (1 - 1e-12)


@pytest.mark.parametrize(
    ("one", "other"), list(itertools.pairwise([c for c in CASES if len(c.initial) == 2]))[::3], ids=str
)
def test_a_class_is_as_hard_as_its_worst_member(one: Case, other: Case) -> None:
    truths = [Enumerated.of(list(c.initial), c.transition, 5).sigma(2.0) for c in (one, other)]
    if max(truths):
        calibration = pf.MQMExact([one.chain, other.chain], 5).calibrate(pf.Count(1), 2.0)
        assert_at_least_the_truth(calibration.noise_multiplier, max(truths))
        assert truths[calibration.witness.theta] == pytest.approx(max(truths), rel=1e-9)


@pytest.mark.parametrize("case", RANDOM[::5], ids=str)
def test_lemma_4_6_misses_no_quilt(case: Case) -> None:
    """The enumeration itself: no other set of records with its true nearby records scores better at any node."""
    truth = Enumerated.of(list(case.initial), case.transition, min(case.length, 5))
    for node in range(truth.length):
        others = [t for t in range(truth.length) if t != node]
        best = min(truth.score(node, ends, len(near), 2.0) for ends, near in truth.quilts(node))
        for size in range(1, 4):
            for ends in itertools.combinations(others, size):
                first = max((t for t in ends if t < node), default=-1)
                last = min((t for t in ends if t > node), default=truth.length)
                assert truth.score(node, ends, last - first - 1, 2.0) >= best * (1 - 1e-12)
