"""Noise multipliers of MQMExact on chains fitted to real data (MATH §7), stationary, ε = 1 unless said.

The data sets are not in the repository: see the schema in docs/tables.md and the folder ../shared/data.
"""

from pathlib import Path

import pytest

import pufferfish as pf
from stretches import noise_of_stretch

pytestmark = pytest.mark.slow
DATA = Path(__file__).parents[2].parent / "shared" / "data"
HISTOGRAM = pf.Histogram(relative=False)


def chain_of(name: str, state: str, **reading: object) -> tuple[pf.MarkovChain, tuple[pf.ChainLength, ...]]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"real data not found: {name} in ../shared/data")
    sequences = pf.read_sequences(path, state, **reading)
    return pf.fit_chain(sequences, smoothing=0), sequences.length


@pytest.mark.parametrize(
    ("name", "where", "multiplier"),
    [
        ("activity_fitbit_minute.parquet", "awake", 158.8),
        ("activity_activpal_12s.parquet", "awake and worn", 240.6),
    ],
)
def test_activity(name: str, where: str, multiplier: float) -> None:
    reading = {"subject": "subject", "time": "timestamp", "max_gap": "10min", "where": where}
    chain, length = chain_of(name, "state", **reading)
    found = pf.MQMExact(chain, length).calibrate(HISTOGRAM, 1.0)
    assert found.noise_multiplier == pytest.approx(multiplier, abs=0.05)


@pytest.mark.parametrize(
    ("name", "where", "multiplier", "of_an_hour"),
    [
        ("activity_fitbit_minute.parquet", "awake", 37.42, (60, 94.53)),
        ("activity_activpal_12s.parquet", "awake and worn", 62.22, (300, 362.9)),
    ],
)
def test_activity_under_every_initial_law(
    name: str, where: str, multiplier: float, of_an_hour: tuple[int, float]
) -> None:
    """A record, and an hour; 46.97 and 70.14 for a record before the laws that steps lead to were known."""
    reading = {"subject": "subject", "time": "timestamp", "max_gap": "10min", "where": where}
    chain, length = chain_of(name, "state", **reading)
    every = pf.MarkovChain(chain.transition_matrix, "any", states=chain.states)
    found = pf.LeakagePropagation(every, length).calibrate(HISTOGRAM, 1.0)
    assert found.noise_multiplier == pytest.approx(multiplier, rel=1e-3)
    for steps, noise in ((1, multiplier), of_an_hour):
        assert noise_of_stretch(every, length, 1.0, steps, 1.0) == pytest.approx(noise, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "multiplier", "ends"), [(1.0, 542.72, (218, 217)), (5.0, 61.784, (105, 104))])
def test_electricity(epsilon: float, multiplier: float, ends: tuple[int, int]) -> None:
    chain, length = chain_of("electricity_uci_2y_2006-12-17_1051200min.csv.gz", "watts", bins="0,200,...,10200")
    found = pf.MQMExact(chain, length).calibrate(HISTOGRAM, epsilon)
    assert found.noise_multiplier == pytest.approx(multiplier, rel=1e-5)
    node, quilt = found.witness.node, found.witness.active_quilt
    assert node is not None
    assert quilt == (node - ends[0], node + ends[1])
    assert chain.pi_min == pytest.approx(2.85e-6, rel=1e-2)
    assert chain.eigengap == pytest.approx(0.0366, rel=1e-2)


def test_hourly_matrices_of_activity() -> None:
    """24 hourly matrices, one transition of all hours added to every row; what the noise for one matrix leaks then."""
    path = DATA / "activity_fitbit_minute.parquet"
    if not path.exists():
        pytest.skip("real data not found: activity_fitbit_minute.parquet in ../shared/data")
    reading = {"subject": "subject", "time": "timestamp", "max_gap": "1min", "where": "awake"}
    data = pf.read_sequences(path, "state", **reading, clock="hour")
    chain = pf.fit_periodic(data)
    bound = pf.LeakagePropagation(chain, data.length)
    found = bound.calibrate(HISTOGRAM, 1.0)
    assert found.noise_multiplier == pytest.approx(59.46, rel=0.02)
    assert isinstance(found.witness, pf.PhaseWitness)
    assert found.witness.phase == 3  # from 3 to 4 at night
    pooled = pf.LeakagePropagation(pf.fit_chain(data, smoothing=0), data.length).calibrate(HISTOGRAM, 1.0)
    assert pooled.noise_multiplier == pytest.approx(30.93, rel=0.02)
    assert bound.leakage(pooled.record_loss) == pytest.approx(2.07, rel=0.02)


def test_a_chain_for_every_subject() -> None:
    """docs/choosing_theta.md: noise for everybody's chain, and what that for one chain leaks."""
    path = DATA / "activity_fitbit_minute.parquet"
    if not path.exists():
        pytest.skip("real data not found: activity_fitbit_minute.parquet in ../shared/data")
    reading = {"subject": "subject", "time": "timestamp", "max_gap": "1min", "where": "awake"}
    each = pf.fit_each_subject(path, "state", **reading)
    bound = pf.LeakagePropagation(each.theta, each.sequences.length)
    found = bound.calibrate(HISTOGRAM, 1.0)
    assert found.noise_multiplier == pytest.approx(78.4, rel=5e-3)
    assert each.theta.names[found.witness.theta] == "subject F28"
    pooled = pf.LeakagePropagation(pf.fit_chain(each.sequences, smoothing=0), each.sequences.length).calibrate(
        HISTOGRAM, 1.0
    )
    assert bound.leakage(pooled.record_loss) == pytest.approx(2.87, rel=5e-3)


FITTED = {
    "Fitbit": ("activity_fitbit_minute.parquet", "state", "awake", {0.2: 135.38, 1.0: 30.98, 5.0: 8.848}),
    "activPAL": ("activity_activpal_12s.parquet", "state", "awake and worn", {0.2: 319.2, 1.0: 62.08, 5.0: 5.891}),
}


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("data", list(FITTED))
def test_propagation_on_activity(data: str, epsilon: float) -> None:
    name, state, where, multipliers = FITTED[data]
    chain, length = chain_of(name, state, subject="subject", time="timestamp", max_gap="10min", where=where)
    found = pf.LeakagePropagation(chain, length).calibrate(HISTOGRAM, epsilon)
    assert found.noise_multiplier == pytest.approx(multipliers[epsilon], rel=5e-3)
    assert found.lower_bound <= found.scale <= 1.05 * found.lower_bound


@pytest.mark.parametrize(("epsilon", "multiplier"), [(0.2, 726.7), (1.0, 143.7), (5.0, 23.2)])
def test_propagation_on_electricity(epsilon: float, multiplier: float) -> None:
    chain, length = chain_of("electricity_uci_2y_2006-12-17_1051200min.csv.gz", "watts", bins="0,200,...,10200")
    found = pf.LeakagePropagation(chain, length).calibrate(HISTOGRAM, epsilon)
    assert found.noise_multiplier == pytest.approx(multiplier, rel=3e-3)
    assert found.lower_bound <= found.scale <= 1.05 * found.lower_bound


@pytest.mark.parametrize(
    ("name", "state", "reading", "one_scale", "most"),
    [
        ("activity_fitbit_minute.parquet", "state", {"where": "awake"}, 247.4, 151),
        ("activity_activpal_12s.parquet", "state", {"where": "awake and worn"}, 495.9, 278),
        ("electricity_uci_2y_2006-12-17_1051200min.csv.gz", "watts", {"bins": "0,200,...,10200"}, 14_637, 9_400),
    ],
)
def test_the_best_noise(name: str, state: str, reading: dict[str, str], one_scale: float, most: float) -> None:
    """docs/noise_shapes.md: expected L1 error of a histogram of counts at ε = 1, and its certificate."""
    table = {} if "bins" in reading else {"subject": "subject", "time": "timestamp", "max_gap": "10min"}
    chain, length = chain_of(name, state, **table, **reading)
    bound = pf.LeakagePropagation(chain, length)
    assert bound.calibrate(HISTOGRAM, 1.0).expected_l1_error == pytest.approx(one_scale, rel=1e-3)
    best = bound.calibrate(HISTOGRAM, 1.0, noise="best")
    assert best.expected_l1_error <= most
    assert bound.leakage(best.record_loss) <= 1.0


@pytest.mark.parametrize(("data", "scale"), [("Fitbit", 63.5), ("activPAL", 126.1)])
def test_transitions_of_activity(data: str, scale: float) -> None:
    """BEYOND §2: all pairs of states for 2 to 3% more noise than the histogram."""
    name, state, where, _ = FITTED[data]
    chain, length = chain_of(name, state, subject="subject", time="timestamp", max_gap="10min", where=where)
    found = pf.LeakagePropagation(chain, length).calibrate(pf.Transitions(), 1.0)
    assert found.scale == pytest.approx(scale, abs=0.06)
