"""Numbers of the paper for chains, of chains that are written as networks (Sections 4.2 to 4.4)."""

import math

import pytest

import pufferfish as pf

STEP = [[0.9, 0.1], [0.4, 0.6]]
THETA1 = ([1.0, 0.0], STEP)
THETA2 = ([0.9, 0.1], [[0.8, 0.2], [0.3, 0.7]])


def as_network(initial: list[float], step: list[list[float]], length: int) -> pf.BayesianNetwork:
    """A chain: nodes 0, 1, and so on, each the parent of the next."""
    nodes = {0: pf.CPT(["0", "1"], initial)}
    return pf.BayesianNetwork(nodes | {t: pf.CPT(["0", "1"], step, [t - 1]) for t in range(1, length)})


class TestThreeRecords:
    """The example after Theorem 4.4: X_2 of a chain of three, ε = 10."""

    chain = as_network([0.8, 0.2], STEP, 3)

    @pytest.mark.parametrize(
        ("quilt", "influence", "nearby", "score"),
        [
            ([], 0.0, 3, 0.3),
            ([0], math.log(6), 2, 0.2437),
            ([2], math.log(6), 2, 0.2437),
            ([0, 2], math.log(36), 1, 0.1558),
        ],
    )
    def test_one_quilt_at_a_time(self, quilt: list[int], influence: float, nearby: int, score: float) -> None:
        mechanism = pf.MarkovQuilt(self.chain, {1: [quilt]}, secrets=[1])
        calibration = mechanism.calibrate(pf.Count(1), 10.0)
        witness = calibration.witness
        assert calibration.noise_multiplier == pytest.approx(nearby / (10 - influence), rel=1e-12)
        assert calibration.scale == pytest.approx(score, abs=5e-5)
        assert (witness.node, witness.active_quilt, witness.nearby) == ("1", tuple(map(str, quilt)), nearby)
        assert witness.influence == pytest.approx(influence, abs=1e-12)

    def test_the_search_finds_the_blanket(self) -> None:
        calibration = pf.MarkovQuilt(self.chain, secrets=[1]).calibrate(pf.Count(1), 10.0)
        assert calibration.scale == pytest.approx(1 / (10 - math.log(36)), rel=1e-12)
        assert calibration.witness.active_quilt == ("0", "2")


NETWORKS = {1: as_network(*THETA1, 100), 2: as_network(*THETA2, 100)}
CHAINS = {1: pf.MarkovChain(THETA1[1], THETA1[0]), 2: pf.MarkovChain(THETA2[1], THETA2[0])}


@pytest.mark.parametrize(
    ("theta", "epsilon", "sigma", "node", "quilt"),
    [
        pytest.param(1, 0.2, 93.7836, None, None, marks=pytest.mark.slow),
        pytest.param(1, 1.0, 12.9341, "7", ("12",), marks=pytest.mark.slow),
        pytest.param(1, 5.0, 0.798608, None, None, marks=pytest.mark.slow),
        pytest.param(2, 0.2, 83.0996, None, None, marks=pytest.mark.slow),
        (2, 1.0, 10.6402, "5", ("9",)),
        (2, 5.0, 0.533727, None, None),
    ],
)
def test_the_running_example_as_a_network(
    theta: int, epsilon: float, sigma: float, node: str | None, quilt: tuple[str, ...] | None
) -> None:
    """Section 4.4, T = 100: the search over quilts of any network finds those of Lemma 4.6, within its usual limit.

    At ε = 1 the worst are X_8 with {X_1, X_13}, by Definition 4.1, and X_6 with {X_10}. X_1 is certain there: it has no
    loss and tells nothing, so {X_13} proves the same, and is found first.
    """
    found = pf.MarkovQuilt(NETWORKS[theta]).calibrate(pf.Count(1), epsilon)
    chain = pf.MQMExact(CHAINS[theta], 100).calibrate(pf.Count(1), epsilon)
    assert found.noise_multiplier == pytest.approx(chain.noise_multiplier, rel=1e-8)
    assert found.noise_multiplier == pytest.approx(sigma, rel=1e-5)
    if node is not None:
        assert (found.witness.node, found.witness.active_quilt) == (node, quilt)
        assert found.witness.influence == pytest.approx(chain.witness.influence, rel=1e-8)


@pytest.mark.slow
def test_both_as_a_class() -> None:
    calibration = pf.MarkovQuilt([NETWORKS[2], NETWORKS[1]]).calibrate(pf.Count(1), 1.0)
    assert calibration.noise_multiplier == pytest.approx(12.9341, abs=5e-5)
    assert calibration.witness.theta == 1


@pytest.mark.parametrize(("theta", "epsilon", "scale"), [(1, 1.0, 3.3364), (1, 5.0, 0.5365), (2, 1.0, 3.0243)])
def test_propagation_on_the_running_example(theta: int, epsilon: float, scale: float) -> None:
    found = pf.LeakagePropagation(NETWORKS[theta]).calibrate(pf.Count(1), epsilon).scale
    assert found == pytest.approx(scale, abs=5e-4)
    chain = pf.LeakagePropagation(CHAINS[theta], 100).calibrate(pf.Count(1), epsilon).scale
    assert found == pytest.approx(chain, rel=1e-5)
