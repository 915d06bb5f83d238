"""Numbers of stretches: linear programs over all sequences for short chains, and chains fitted to real data.

The data sets are not in the repository: see the schema in docs/tables.md and the folder ../shared/data.
"""

from pathlib import Path

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.mechanisms._propagation_on_chains import leakage_of_series
from pufferfish.queries.record_loss import as_record_loss
from pufferfish.theta.model_class import as_theta
from stretches import leakage_of_stretch, noise_of_stretch

DATA = Path(__file__).parents[2].parent / "shared" / "data"
STICKY = pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]])


@pytest.mark.parametrize(("records", "value"), [(1, 1.37170), (2, 1.56963), (3, 1.76756), (5, 2.00000)])
def test_five_records(records: int, value: float) -> None:
    assert leakage_of_stretch(STICKY, 5, 0.4, records)[0] == pytest.approx(value, abs=6e-6)


@pytest.mark.parametrize(("records", "multiplier"), [(1, 5.91295), (2, 6.90524), (10, 14.81555), (60, 64.70552)])
def test_noise_for_long_chains(records: int, multiplier: float) -> None:
    found = noise_of_stretch(STICKY, 10**6, 1.0, records, 1.0)
    assert found == pytest.approx(multiplier, rel=2e-6)


@pytest.mark.parametrize(("records", "value"), [(1, 2.22712), (2, 2.52477), (3, 2.61238)])
def test_steps(records: int, value: float) -> None:
    assert leakage_of_stretch(STICKY, 4, pf.StepLoss(0.5, 0.3), records)[0] == pytest.approx(value, abs=6e-6)


def test_one_record_of_any_chain_is_what_propagation_says() -> None:
    """B of the notes, and its transitions; every number of both, for short and long chains."""
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    assert leakage_of_stretch(chain, 10**7, 0.5, 1)[0] == pytest.approx(1.732042, abs=1e-6)
    assert leakage_of_stretch(chain, 10**7, pf.StepLoss(0.5), 1)[0] == pytest.approx(2.232042, abs=1e-6)
    for length in (1, 2, 5, 1000):
        for start in ("stationary", "any", [0.5, 0.5], [1.0, 0.0]):
            given = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], start)
            one = pf.LeakagePropagation(given, length)
            # two states under every law are searched law by law for one record: that is less
            least = one.leakage(0.5)
            found = leakage_of_stretch(given, length, 0.5, 1)[0]
            assert found >= least * (1 - 1e-9)
            if start != "any":
                assert found == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("length", [10_000, 10_000_000])
@pytest.mark.parametrize(("records", "value"), [(1, 0.80052), (3, 1.00052)])
def test_forgetting(length: int, records: int, value: float) -> None:
    theta = pf.ForgettingClass(2, 0.5, ["a", "b"])
    assert leakage_of_stretch(theta, length, 0.1, records)[0] == pytest.approx(value, abs=6e-6)


def test_forgetting_where_three_records_have_more() -> None:
    theta = pf.ForgettingClass(2, 0.5, ["a", "b"])
    profile = pf.Profile([(5000, 0.1), (3, 0.3), (5000, 0.1)])
    value, witness = leakage_of_stretch(theta, 10_003, profile, 3)
    assert witness is not None
    # the three have .9 of their own; the records beside them have .1, and leave as much as beside any record
    sides = leakage_of_stretch(theta, 10_003, 0.1, 1)[0] - 0.1
    assert value == pytest.approx(0.9 + sides, abs=1e-9)
    assert (witness.node, witness.steps) == (5000, 3)


def chain_of(name: str, state: str, **reading: object) -> tuple[pf.MarkovChain, tuple[pf.ChainLength, ...]]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"real data not found: {name} in ../shared/data")
    sequences = pf.read_sequences(path, state, **reading)
    return pf.fit_chain(sequences, smoothing=0), sequences.length


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "where", "minute", "multipliers", "series"),
    [
        ("activity_fitbit_minute.parquet", "awake", 1, (30.93, 86.6, 1465), 28_690),
        ("activity_activpal_12s.parquet", "awake and worn", 5, (61.99, 362.8, 7263), 76_315),
    ],
)
def test_activity(name: str, where: str, minute: int, multipliers: tuple[float, ...], series: int) -> None:
    """Noise multipliers at ε = 1 that hide a record, any hour, any day; and all of a person's records."""
    reading = {"subject": "subject", "time": "timestamp", "max_gap": "10min", "where": where}
    chain, length = chain_of(name, "state", **reading)
    for steps, multiplier in zip((1, 60 * minute, 1440 * minute), multipliers, strict=True):
        found = noise_of_stretch(chain, length, 1.0, steps, 1.0)
        assert found == pytest.approx(multiplier, rel=5e-4)
    losses = as_record_loss(1.0, as_theta(chain), length)
    assert max(leakage_of_series(block) for block in losses.blocks) == series


@pytest.mark.slow
def test_electricity() -> None:
    """51 states, two years of minutes: one release states what a minute, an hour and a day of it leak."""
    chain, length = chain_of("electricity_uci_2y_2006-12-17_1051200min.csv.gz", "watts", bins="0,200,...,10200")
    for steps, multiplier, leaks in ((1, 143.5, 1.0), (60, 203.8, 1.41), (1440, 1584.7, 11.03)):
        assert noise_of_stretch(chain, length, 1.0, steps, 1.0) == pytest.approx(multiplier, rel=5e-4)
        assert leakage_of_stretch(chain, length, 1 / 143.503, steps)[0] == pytest.approx(leaks, abs=5e-3)
    # a first estimate of these had noise up to .6% larger: 31.5, 55.5, 82.7, 117.4
    for within, multiplier in ((200, 31.43), (400, 55.23), (800, 82.24), (1600, 116.85)):
        near = 200 * np.abs(np.subtract.outer(range(51), range(51))) <= within
        found = noise_of_stretch(chain, length, 1.0, 1, 1.0, near=near)
        assert found == pytest.approx(multiplier, rel=5e-4)


@pytest.mark.slow
def test_the_certificate_of_electricity() -> None:
    """51 states are proved, with hardly more noise, by a proof that can be mailed."""
    chain, length = chain_of("electricity_uci_2y_2006-12-17_1051200min.csv.gz", "watts", bins="0,200,...,10200")
    certificate = pf.certify(pf.LeakagePropagation(chain, length).calibrate(pf.Histogram(), 1.0))
    assert 0 <= certificate.price <= 0.002
    assert len(certificate.proof) <= 30_000
