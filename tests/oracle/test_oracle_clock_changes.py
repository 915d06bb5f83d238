"""What is released of local times without a zone leaks at most ε, wherever clocks were changed between them.

Records come every 20 minutes, and a filter keeps the hours from 1 to 2 and from 3 to 4. Local times say that three
records were not read between the two hours. In spring there was none: 1:40 and 3:00 are next to each other. Where
clocks were set back, there were six. Every series of the records that are read is enumerated, with its exact law.
"""

import datetime as dt
import itertools
from functools import cache

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from enumeration import laplace_loss
from pufferfish.theta.lengths import ChainLength

MINUTES = [dt.datetime(2024, 3, 31, hour, minute) for hour in (0, 1, 2, 3, 4) for minute in (0, 20, 40)]
APART = {"spring": 1, "as they say": 4, "autumn": 7}
"""Steps from 1:40 to 3:00."""

MATRICES = {
    "sticky": [[0.93, 0.07], [0.12, 0.88]],
    "alternating": [[0.2, 0.8], [0.7, 0.3]],
    "two cycle": [[0.04, 0.96], [0.97, 0.03]],
    "three cycle": [[0.02, 0.95, 0.03], [0.03, 0.02, 0.95], [0.95, 0.03, 0.02]],
    "three states": [[0.8, 0.15, 0.05], [0.1, 0.85, 0.05], [0.2, 0.1, 0.7]],
}


def read(where: str | None, *, hours: tuple[int, ...] = (0, 1, 2, 3, 4), states: int = 2) -> pf.Sequences:
    """Local times of a night without a zone."""
    times = [time for time in MINUTES if time.hour in hours]
    frame = pl.DataFrame({"time": times, "state": [str(i % states) for i in range(len(times))]})
    reading = {"time": "time", "max_gap": "20min", "where": where}
    return pf.read_sequences(frame, "state", states=[str(x) for x in range(states)], **reading)


@cache
def chain_of(name: str) -> pf.MarkovChain:
    matrix = MATRICES[name]
    return pf.MarkovChain(matrix, states=[str(x) for x in range(len(matrix))])


def true_loss(name: str, between: int, scales: tuple[float, float], *, together: bool) -> float:
    """The largest loss about any of six records, of counts of state 0 in both hours, as one release or as two."""
    matrix, start = np.array(MATRICES[name]), chain_of(name).stationary_distribution
    far = np.linalg.matrix_power(matrix, between)
    series = np.array(list(itertools.product(range(len(matrix)), repeat=6)))
    weights = start[series[:, 0]]
    for t in range(5):
        weights = weights * (far if t == 2 else matrix)[series[:, t], series[:, t + 1]]
    counts = np.stack([(series[:, :3] == 0).sum(axis=1) / scales[0], (series[:, 3:] == 0).sum(axis=1) / scales[1]], 1)
    atoms = counts.sum(axis=1, keepdims=True) if together else counts
    laws = [[weights * (series[:, t] == x) for x in range(len(matrix))] for t in range(6)]
    return max(laplace_loss(atoms, [law / law.sum() for law in of], 1.0) for of in laws)


@pytest.mark.parametrize("name", MATRICES)
def test_noise_for_hours_of_local_times_is_enough_wherever_clocks_were_changed(name: str) -> None:
    """The count of both hours: in spring, noise for the places that local times say would not be enough."""
    data = read("hour(time) in [1, 3]", hours=(0, 1, 3, 4), states=len(MATRICES[name]))
    scale = pf.LeakagePropagation(chain_of(name), data.length).calibrate(pf.Count("0"), 1.0).scale
    for between in APART.values():
        assert true_loss(name, between, (scale, scale), together=True) <= 1 + 1e-9
    said = pf.LeakagePropagation(chain_of(name), [ChainLength(9, 6, (3, 3, 3))]).calibrate(pf.Count("0"), 1.0).scale
    if name == "sticky":  # this is what was promised before
        assert true_loss(name, APART["as they say"], (said, said), together=True) <= 1
        assert true_loss(name, APART["spring"], (said, said), together=True) > 1.12
    assert scale <= pf.LeakagePropagation(chain_of(name), 9).calibrate(pf.Count("0"), 1.0).scale * (1 + 1e-12)


@pytest.mark.parametrize("name", MATRICES)
def test_a_ledger_of_local_times_charges_hours_wherever_clocks_were_changed(name: str) -> None:
    """Hour 1, then hour 3, by a ledger of the whole night; in spring nothing came between them."""
    states = len(MATRICES[name])
    base = read(None, hours=(0, 1, 3, 4), states=states)
    ledger = pf.Ledger(pf.LeakagePropagation(chain_of(name), base.length), 50.0, base=base)
    for hour in (1, 3):
        ledger.spend(0.5, data=read(f"hour(time) == {hour}", hours=(0, 1, 3, 4), states=states))
    for between in APART.values():
        assert true_loss(name, between, (2.0, 2.0), together=False) <= ledger.spent * (1 + 1e-9)
    if name == "sticky":
        said = pf.LeakagePropagation(chain_of(name), base.length).leakage(np.repeat([0, 0.5, 0, 0.5, 0], 3))
        assert true_loss(name, APART["spring"], (2.0, 2.0), together=False) > 1.1 * said


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("bound", [pf.LeakagePropagation, pf.MQMExact, pf.GroupDP])
def test_a_gap_that_is_read_an_hour_too_long_needs_no_more_noise_than_is_given(name: str, bound: type) -> None:
    """Without a filter, or with one that reads another column, records may be anywhere: a longer chain covers them."""
    data = read(None, hours=(1, 3), states=len(MATRICES[name]))
    assert data.length == (ChainLength(9, 6),)
    for length in (data.length, read("hour(time) in [1, 3]", hours=(1, 3), states=len(MATRICES[name])).length):
        scale = bound(chain_of(name), length).calibrate(pf.Count("0"), 1.0).scale
        assert true_loss(name, APART["spring"], (scale, scale), together=True) <= 1 + 1e-9
