"""What is released of local times without a zone leaks at most ε, wherever clocks were changed between them.

Records come every 20 minutes, and a filter keeps the hours from 1 to 2 and from 3 to 4. Local times say that three
records were not read between the two hours. In spring there was none: 1:40 and 3:00 are next to each other. Where
clocks were set back, there were six. Every series of the records that are read is enumerated, with its exact law.
"""

import datetime as dt
import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any

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
    assert scale <= pf.LeakagePropagation(chain_of(name), 12).calibrate(pf.Count("0"), 1.0).scale * (1 + 1e-12)


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
        said = pf.LeakagePropagation(chain_of(name), 15).leakage(np.repeat([0, 0.5, 0, 0.5, 0], 3))
        assert true_loss(name, APART["spring"], (2.0, 2.0), together=False) > 1.1 * said


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("bound", [pf.LeakagePropagation, pf.MQMExact, pf.GroupDP])
def test_a_gap_that_is_read_an_hour_too_long_needs_no_more_noise_than_is_given(name: str, bound: type) -> None:
    """Without a filter, or with one that reads another column, records may be anywhere: a longer chain covers them."""
    data = read(None, hours=(1, 3), states=len(MATRICES[name]))
    assert data.length == (ChainLength(12, 6),)
    for length in (data.length, read("hour(time) in [1, 3]", hours=(1, 3), states=len(MATRICES[name])).length):
        scale = bound(chain_of(name), length).calibrate(pf.Count("0"), 1.0).scale
        for between in APART.values():
            assert true_loss(name, between, (scale, scale), together=True) <= 1 + 1e-9


# -- an hour that came twice inside of a gap --------------------------------------------------------------------------

CYCLE = np.roll(np.eye(4), 1, axis=1) * 0.997 + 0.001 * (1 - np.roll(np.eye(4), 1, axis=1))
STICKY = np.full((4, 4), 0.02) + np.eye(4) * 0.92
HOURS = [(0, 2, 3), (0, 1, 3), (0, 3, 4), (0, 2, 4)]


def hourly(
    hours: tuple[int, ...],
    where: str | None = None,
    *,
    subject: bool = False,
    states: Sequence[str | None] | None = None,
    k: int = 4,
    **how: str,
) -> pf.Sequences:
    """Hourly records of a morning, without a zone."""
    rows: dict[str, Any] = {"time": [dt.datetime(2024, 10, 27, hour) for hour in hours]}
    frame = pl.DataFrame(rows | {"state": states or ["0"] * len(hours), "who": ["a"] * len(hours)})
    reading = {"time": "time", "max_gap": "1h", "step": "1h", "where": where, "subject": "who" if subject else None}
    return pf.read_sequences(frame, "state", states=[str(x) for x in range(k)], **reading | how)


def true_places(hours: tuple[int, ...]) -> set[tuple[int, ...]]:
    """Steps at which the records may truly be: each clock shows standard time, or an hour more; gaps have records."""
    found = set()
    for summer in itertools.product((0, 1), repeat=len(hours)):
        standard = [hour - shown for hour, shown in zip(hours, summer, strict=True)]
        places = tuple(place - standard[0] for place in standard)
        if all(before < after for before, after in itertools.pairwise(places)):
            found.add(places)
    return found


def loss_at(places: tuple[int, ...], matrix: np.ndarray, scales: list[float]) -> float:
    """The largest loss about any record, of whether each of them is in state 0, with noise of its own."""
    k, start = len(matrix), np.full(len(matrix), 1 / len(matrix))  # both matrices are doubly stochastic
    series = np.array(list(itertools.product(range(k), repeat=len(places))))
    weights = start[series[:, 0]]
    for i, (before, after) in enumerate(itertools.pairwise(places)):
        weights = weights * np.linalg.matrix_power(matrix, after - before)[series[:, i], series[:, i + 1]]
    atoms = (series == 0) / np.array(scales)
    laws = [[weights * (series[:, t] == x) for x in range(k)] for t in range(len(places))]
    return max(laplace_loss(atoms, [law / law.sum() for law in of], 1.0) for of in laws)


@pytest.mark.grid(keep=8)
@pytest.mark.parametrize("hours", HOURS)
@pytest.mark.parametrize("matrix", [CYCLE, STICKY], ids=["cycle", "sticky"])
def test_noise_is_enough_where_an_hour_came_twice_in_a_gap(matrix: np.ndarray, hours: tuple[int, ...]) -> None:
    chain = pf.MarkovChain(matrix, "stationary", states=list("0123"))
    data = hourly(hours, by="hour(time)")
    assert data.length[0].steps == hours[-1] + 2
    scale = pf.LeakagePropagation(chain, data.length).calibrate(pf.Count("0"), 1.0).scale
    for places in true_places(hours):
        assert loss_at(places, matrix, [scale] * len(hours)) <= 1 + 1e-9, places
    if matrix is CYCLE and hours == (0, 2, 3):  # this is what was promised before
        said = pf.LeakagePropagation(chain, ChainLength(4, 3)).calibrate(pf.Count("0"), 1.0).scale
        assert loss_at((0, 2, 3), matrix, [said] * 3) <= 1 + 1e-9
        assert loss_at((0, 3, 4), matrix, [said] * 3) > 1.49


@pytest.mark.grid(keep=8)
@pytest.mark.parametrize("hours", HOURS)
@pytest.mark.parametrize("matrix", [CYCLE, STICKY], ids=["cycle", "sticky"])
def test_a_ledger_charges_enough_where_an_hour_came_twice_in_a_gap(matrix: np.ndarray, hours: tuple[int, ...]) -> None:
    """Each record is released by itself, with other noise: by its hour, from a ledger of the whole morning."""
    chain = pf.MarkovChain(matrix, "stationary", states=list("0123"))
    base = hourly(hours)
    ledger = pf.Ledger(pf.LeakagePropagation(chain, base.length), 50.0, base=base)
    losses = [0.3, 0.5, 0.2]
    # two are read together: a table of one record is refused, as no two of its records are correlated
    pairs = [(0, 1), (1, 2), (0, 2)]
    for loss, (i, j) in zip(losses, pairs, strict=True):
        ledger.spend(loss, data=hourly(hours, f"hour(time) in [{hours[i]}, {hours[j]}]"))
    of = [sum(loss for loss, pair in zip(losses, pairs, strict=True) if i in pair) for i in range(3)]
    for places in true_places(hours):
        assert loss_at(places, matrix, [1 / loss for loss in of]) <= ledger.spent * (1 + 1e-9), places


def test_a_part_of_a_table_without_gaps_may_be_longer_than_the_table() -> None:
    """The hours 0 and 3 of four hours: by themselves they may be four steps apart, in the table they are three."""
    base, part = hourly((0, 1, 2, 3)), hourly((0, 1, 2, 3), "hour(time) in [0, 3]")
    assert (base.length, part.length) == ((ChainLength(4, 4),), (ChainLength(5, 2),))
    chain = pf.MarkovChain(CYCLE, "stationary", states=list("0123"))
    ledger = pf.Ledger(pf.LeakagePropagation(chain, base.length), 5.0, base=base)
    calibration = pf.LeakagePropagation(chain, part.length).calibrate(pf.Count("0"), 1.0)
    pf.release(part, pf.Count("0"), calibration, ledger=ledger)
    assert loss_at((0, 3), CYCLE, [calibration.scale] * 2) <= ledger.spent * (1 + 1e-9)
    later = hourly((0, 1, 2, 3, 4), "hour(time) in [1, 4]")
    with pytest.raises(
        pf.errors.ReleaseRefused, match="cover steps 1 to 4 of a chain, but the ledger's base has steps 0 to 3"
    ):
        ledger.spend(0.1, data=later)


@pytest.mark.parametrize("how", ["by hand", "base alone"])
def test_a_ledger_that_knows_no_times_takes_no_chain_that_may_be_longer(how: str) -> None:
    """Its bound is as short as the times say: where clocks were set back, the count of each hour leaks 1.4992."""
    chain = pf.MarkovChain(CYCLE, "stationary", states=list("0123"))
    data = hourly((0, 2, 3), by="hour(time)")
    ledger = pf.Ledger(pf.LeakagePropagation(chain, 4), 5.0, base=data.base if how == "base alone" else data)
    noise = pf.LeakagePropagation(chain, 4).calibrate(pf.Count("0"), 1.0)
    assert loss_at((0, 3, 4), CYCLE, [noise.scale] * 3) > 1.49
    own = pf.LeakagePropagation(chain, data.length).calibrate(pf.Count("0"), 1.0)
    with pytest.raises(pf.errors.ReleaseRefused, match="make another ledger"):
        pf.release(data, pf.Count("0"), own, ledger=ledger)


def test_a_state_that_is_missing_is_no_gap_and_lets_no_later_record_pass() -> None:
    chain = pf.MarkovChain(CYCLE, "stationary", states=list("0123"))
    base = hourly((0, 1, 2, 3), gaps="independent")
    later = hourly((0, 1, 2, 3, 4), gaps="independent", states=["0", "0", None, "0", "0"])
    ledger = pf.Ledger(pf.LeakagePropagation(chain, base.length), 5.0, base=base)
    with pytest.raises(pf.errors.ReleaseRefused, match="make another ledger"):
        ledger.spend(0.1, data=later)


def test_linked_records_that_hide_a_change_let_gaps_add_up() -> None:
    """Clocks are set back in a gap, forward between two linked records, and back in a gap again: true steps 0 4 5 9."""
    cycle = np.roll(np.eye(9), 1, axis=1) * 0.9995 + 0.0005 / 8 * (1 - np.roll(np.eye(9), 1, axis=1))
    chain = pf.MarkovChain(cycle, "stationary", states=[str(x) for x in range(9)])
    data = hourly((0, 3, 5, 8), by="hour(time)", max_gap="2h", k=9)
    scale = pf.LeakagePropagation(chain, data.length).calibrate(pf.Count("0"), 1.0).scale
    assert loss_at((0, 4, 5, 9), cycle, [scale] * 4) <= 1 + 1e-9
    short = pf.LeakagePropagation(chain, ChainLength(9, 4)).calibrate(pf.Count("0"), 1.0).scale
    assert loss_at((0, 4, 5, 9), cycle, [short] * 4) > 1.49
    assert data.grid is None  # and nothing is said of where records are
    assert not hourly((0, 3, 5, 8), "hour(time) in [0, 5, 8]", max_gap="2h", k=9).length[0].places


def test_a_clock_may_be_set_back_in_any_gap() -> None:
    """Half an hour without records hides an hour and a half: the clock of a model would be an hour late."""
    times = [dt.datetime(2024, 10, 27, 2, minute) for minute in (0, 20)] + [dt.datetime(2024, 10, 27, 3)]
    rows = pl.DataFrame({"time": times, "state": ["0", "1", "0"]})
    for max_gap, changes in (("20min", "possible"), ("40min", None)):
        data = pf.read_sequences(rows, "state", time="time", max_gap=max_gap, step="20min")
        assert data.clock_changes == changes


def test_records_between_the_times_of_the_base_are_no_part_of_it() -> None:
    """They begin half an hour later: nobody knows where in the base they are, and with their gap they may be longer."""
    chain = pf.MarkovChain(CYCLE, "stationary", states=list("0123"))
    base = hourly((0, 1, 2, 3))
    ledger = pf.Ledger(pf.LeakagePropagation(chain, base.length), 5.0, base=base)
    times = [dt.datetime(2024, 10, 27, hour, 30) for hour in (0, 2, 3)]
    rows = pl.DataFrame({"time": times, "state": ["0"] * 3, "who": ["a"] * 3})
    later = pf.read_sequences(rows, "state", states=list("0123"), time="time", max_gap="1h", step="1h")
    with pytest.raises(pf.errors.ReleaseRefused, match="make another ledger"):
        ledger.spend(0.1, data=later)
