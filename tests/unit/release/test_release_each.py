"""One release for each subject: what the table and its record say, and what is refused before anything is spent."""

import importlib
import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import write_table
from pufferfish.errors import BudgetExceeded, ParameterError, PufferfishError, RecordError, ReleaseRefused
from pufferfish.ledger import Ledger
from pufferfish.release import project_to_simplex

STATES = ["rest", "walk", "run"]
CHAIN = pf.MarkovChain([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]], states=STATES)
EACH = importlib.import_module("pufferfish.release.store")
CELLS = importlib.import_module("pufferfish.release.draw")
SIZES = {"zoe": 30, "ann": 7, "bob 'x', \"y\"": 12, "é": 1}


def read(**more: Any) -> pf.Sequences:
    rng = np.random.default_rng(5)
    who = np.repeat(list(SIZES), list(SIZES.values()))
    frame = pl.DataFrame({"id": who, "s": rng.choice(STATES, len(who)), "odd": np.arange(len(who)) % 3 > 0})
    return pf.read_sequences(frame, "s", subject="id", **more)


def files_of(folder: Path) -> dict[str, bytes]:
    """Return what files there are, without the locks, which stay."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix != ".lock"}


def unfinished(folder: Path) -> list[Path]:
    return [file for file in folder.glob("*pending*") if file.suffix != ".lock"]


def exact(data: pf.Sequences, weights: np.ndarray) -> dict[str, np.ndarray]:
    order = [data.states.index(state) for state in STATES]
    found = {name: np.zeros(len(weights)) for name in SIZES}
    for name, counts in zip(data.names or (), data.counts, strict=True):
        found[name] += weights @ counts[order]
    return found


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_every_value_stands_by_its_subject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, slow: bool
) -> None:
    monkeypatch.setattr(CELLS, "noise_in_bulk", lambda values, *_, **__: lambda: values + np.array([[-2]]))
    queries: list[tuple[pf.Histogram | pf.Count | pf.Frequency | pf.Sum | pf.Mean, np.ndarray]] = [
        (pf.Histogram(), np.eye(3)),
        (pf.Histogram(relative=False), np.eye(3)),
        (pf.Count(["walk", "run"]), np.array([[0, 1, 1]])),
        (pf.Frequency("rest"), np.array([[1, 0, 0]])),
        (pf.Sum([0, 1.5, 4]), np.array([[0, 1.5, 4]])),
        (pf.Mean([0, 1.5, 4]), np.array([[0, 1.5, 4]])),
    ]
    for reading in ({}, {"where": "odd", "gaps": "independent"}, {"where": "odd"}):
        data = read(**reading)
        records = dict.fromkeys(SIZES, 0)
        for name, length in zip(data.names or (), data.length, strict=True):
            records[name] += length.records
        for i, (query, weights) in enumerate(queries if slow or suffix == ".parquet" else queries[::2]):
            noise = pf.GroupDP(CHAIN, data.length).calibrate(query, 1.0)
            path = tmp_path / f"values{len(reading)}{i}{suffix}"
            for valid in (None, "valid"):
                found = pf.release_each(data, query, noise, path, postprocess=valid, overwrite=True)  # type: ignore[arg-type]
                table = found.read_table(path)
                unit = float(noise.linear.unit) * (noise.linear.divided_by or 1)
                for (name,), rows in table.group_by("subject"):
                    n = records[str(name)]
                    assert rows["records"].to_list() == [n] * len(weights)
                    assert rows["output"].to_list() == list(noise.linear.labels)
                    by = n if noise.linear.divided_by else 1
                    shifted = (exact(data, weights)[str(name)] - 2 * unit) / by
                    noisy = rows["value" if valid is None else "noisy_value"].to_numpy()
                    assert noisy == pytest.approx(shifted, abs=1e-12)
                    assert rows["error_95"][0] == pytest.approx(found.accuracy_95.each / by)
                    if valid and query.is_histogram:
                        nearest = project_to_simplex(noisy, n / by)
                        assert rows["value"].to_numpy() == pytest.approx(nearest, abs=1e-12)
                    elif valid:
                        low, high = np.array([weights.min(), weights.max()]) * n / by
                        assert rows["value"].to_numpy() == pytest.approx(np.clip(noisy, low, high))
                assert set(table["subject"]) == {name for name, n in records.items() if n}
            # one noise for everybody: that of one release of all records together
            whole = pf.release(data, query, noise)
            times = noise.linear.divided_by or 1
            assert found.noise.scale == pytest.approx(whole.noise.scale * times)
            assert (found.promise, found.mechanism) == (whole.promise, whole.mechanism)
            assert pf.EachRelease.from_json(path.with_suffix(".json")) == found
    assert not unfinished(tmp_path)


def test_the_noise_is_that_of_its_scale(tmp_path: Path) -> None:
    names = tuple(f"{i:05d}" for i in range(4000))
    data = pf.Sequences(
        states=("rest", "active"),
        counts=np.full((4000, 2), 10),
        transitions=np.zeros((2, 2), dtype=np.int64),
        length=(pf.ChainLength(20, 20),) * 4000,
        subjects=4000,
        names=names,
        base=read().base,
    )
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    noise = pf.LeakagePropagation(chain, data.length).calibrate(pf.Histogram(relative=False), 1.0)
    found = pf.release_each(data, pf.Histogram(relative=False), noise, tmp_path / "v.parquet")
    values = found.read_table(tmp_path / "v.parquet")["value"].to_numpy() - 10
    assert np.abs(values).mean() == pytest.approx(noise.expected_l1_error / 2, rel=0.06)
    assert np.mean(np.abs(values) > found.accuracy_95.each) < 0.06


def test_refusals_spend_and_leave_nothing(tmp_path: Path) -> None:
    data, query = read(), pf.Histogram()
    bound = pf.LeakagePropagation(CHAIN, data.length)
    noise, path = bound.calibrate(query, 1.0), tmp_path / "v.parquet"
    ledger = Ledger(bound, 1.2, base=data)
    ledger.save(tmp_path / "book.json")
    pf.release_each(data, query, noise, path, ledger=ledger)
    kept = files_of(tmp_path)
    alone = pf.Sequences(
        states=data.states,
        counts=data.counts[:1],
        transitions=data.transitions,
        length=data.length[:1],
        subjects=1,
        base=data.base,
    )
    shorter = pf.LeakagePropagation(CHAIN, [5]).calibrate(query, 1.0)
    exact_law = pf.ExactLaplace(CHAIN, [3, 2]).calibrate(pf.Count("rest"), 1.0)
    mine = tmp_path / "mine.csv"
    mine.write_text("a,b\n1,2\n")
    kept["mine.csv"] = mine.read_bytes()
    other = tmp_path / "w.csv"
    for act, error, words in (
        (lambda: pf.release_each(data, query, noise, path), RecordError, "exists: it is the record of an earlier"),
        (lambda: pf.release_each(data, query, noise, other, ledger=ledger), BudgetExceeded, "would raise"),
        (
            lambda: pf.release_each(data, query, noise, mine, overwrite=True),
            RecordError,
            "is no table",
        ),
        (lambda: pf.release_each(data, query, noise, tmp_path / "v"), ParameterError, "ends in .parquet or .csv"),
        (lambda: pf.release_each(data, query, noise, tmp_path / "no" / "v.csv"), RecordError, "no folder"),
        (lambda: pf.release_each(alone, query, noise, other), ParameterError, "needs the column of subjects"),
        (lambda: pf.release_each(data, query, shorter, other), ReleaseRefused, "calibrate with length=data.length"),
        (lambda: pf.release_each(data, pf.Count("rest"), exact_law, other), ReleaseRefused, "not for each"),
        (lambda: pf.release_each(data, pf.Count("rest"), noise, other), ReleaseRefused, "calibrated for"),
        (lambda: pf.release_each(data, query, noise, other, warnings=[3]), ParameterError, "sentences"),
    ):
        with pytest.raises(error, match=words) as caught:
            act()
        assert "\n" not in str(caught.value)
        assert files_of(tmp_path) == kept
    assert len(ledger.entries) == 1


def test_a_changed_record_or_table_is_refused(tmp_path: Path) -> None:
    data, query, path = read(), pf.Histogram(), tmp_path / "v.csv"
    noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(query, 1.0)
    found = pf.release_each(data, query, noise, path)
    record = path.with_suffix(".json")
    said = {part.what: part.says for part in found.verify(values=path).findings}
    assert (
        said["noise"]
        == f"scale {found.noise.scale:.6g}, divided by the subject's number of records, which the proof is about"
    )
    good = json.loads(record.read_bytes())
    for change in (
        {"epsilon": 0.5},
        {"promise": "nothing leaks"},
        {"noise": good["noise"] | {"scale": 1.0}},
        {"subjects": good["subjects"] | {"divided_by_records": False}},
        {"query": good["query"] | {"lipschitz": 1.0}},
        {"subjects": good["subjects"] | {"table": good["subjects"]["table"] | {"rows": 3}}},
        {"subjects": good["subjects"] | {"table": good["subjects"]["table"] | {"columns": ["subject"]}}},
        {"subjects": good["subjects"] | {"table": good["subjects"]["table"] | {"name": "../v.csv"}}},
        {"subjects": good["subjects"] | {"table": None}},
        {"subjects": None},
        {"values": [0.5, 0.5]},
        {"noisy_values": [0.0, 0.0]},
        {"accuracy_95": good["accuracy_95"] | {"each": 1.0}},
        {"not_promised": []},
        {"data": good["data"] | {"subjects": 2}},
        {"data": good["data"] | {"records": 0}},
        {"noise": good["noise"] | {"unit": 0.0}},
        {"query": good["query"] | {"labels": []}},
        {"version": 1},
        {"version": 5},
        {"postprocessing": "rounded"},
    ):
        record.write_text(json.dumps(good | change))
        with pytest.raises(RecordError) as caught:
            pf.EachRelease.from_json(record)
        assert "\n" not in str(caught.value)
        with suppress(RecordError):  # where what is left cannot even be computed with
            assert not pf.verify(record).holds
    path.write_text(path.read_text().replace("zoe", "joe"))
    with pytest.raises(RecordError, match="is not the table of this release"):
        found.read_table(path)


# Crashes: the same command goes on

BEGIN = """
import importlib, os, signal, sys
from pathlib import Path
import pufferfish as pf
folder = Path(sys.argv[1])
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
each = importlib.import_module("pufferfish.release.store")
"""
GO = """
data = pf.read_sequences(folder / "t.csv", "activity", subject="id")
chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
ledger = pf.Ledger.open(folder / "book.json")
noise = ledger.bound.calibrate(pf.Histogram(), 0.5)
pf.release_each(data, pf.Histogram(), noise, folder / "v.csv", ledger=ledger)
"""
KILLED = {
    "before it is booked": "importlib.import_module('pufferfish.ledger.kept').BookFile.write = die",
    "when it is booked": "importlib.import_module('pufferfish._base.writing')._flush_folder = die",
    "before noise is drawn": "importlib.import_module('pufferfish.release.draw').noise_in_bulk = lambda *_, **__: die",
    "when noise is drawn": "each.table_of = die",
    "in the middle of the table": (
        "real = each.write_whole\n"
        "def half(path, content, *more, **how):\n"
        "    if path.name.startswith('v.csv'):\n"
        "        importlib.import_module('pufferfish._base.writing').os.fsync = die\n"
        "    real(path, content, *more, **how)\n"
        "each.write_whole = half"
    ),
    "before the table is in the record": "each._finish_record = lambda *a, real=each._finish_record: real(*a) "
    "if not (folder / 'v.csv.pending').exists() else die()",
    "before the table has its name": "each._publish = die",
    "before the record has its name": (
        "class System:\n"
        "    def __getattr__(self, name):\n"
        "        return getattr(os, name)\n"
        "    def replace(self, one, other):\n"
        "        die() if (folder / 'v.csv').exists() else os.replace(one, other)\n"
        "each.os = System()"
    ),
}
DRAWN = {"before the table is in the record", "before the table has its name", "before the record has its name"}


@pytest.mark.program
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.grid(keep=2)
@pytest.mark.parametrize("moment", KILLED, ids=str)
def test_a_killed_release_is_booked_once_and_drawn_once(tmp_path: Path, moment: str) -> None:
    table = write_table(tmp_path / "t.csv", seed=1)
    data = pf.read_sequences(table, "activity", subject="id")
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    book = tmp_path / "book.json"
    Ledger(pf.LeakagePropagation(chain, data.length), 2.0, base=data).save(book)
    killed = subprocess.run(
        [sys.executable, "-c", BEGIN + KILLED[moment] + GO, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    pending, drawn = tmp_path / "v.json.pending", tmp_path / "v.csv.pending"
    assert pending.exists()
    assert not (tmp_path / "v.json").exists()
    assert (tmp_path / "v.csv").exists() == (moment == "before the record has its name")
    before = (drawn if drawn.exists() else tmp_path / "v.csv").read_bytes() if moment in DRAWN else None
    ledger = Ledger.open(book)
    assert len(ledger.entries) == (moment != "before it is booked") * (moment != "when it is booked")
    noise = ledger.bound.calibrate(pf.Histogram(), 0.5)
    with pytest.raises(RecordError, match=r"interrupted release of histogram at epsilon 0.5, .* another epsilon"):
        pf.release_each(data, pf.Histogram(), ledger.bound.calibrate(pf.Histogram(), 0.6), tmp_path / "v.csv")
    found = pf.release_each(data, pf.Histogram(), noise, tmp_path / "v.csv", ledger=ledger)
    (entry,) = Ledger.open(book).entries
    assert (entry.release, found.ledger and found.ledger.entry) == (found.release, 1)
    content = (tmp_path / "v.csv").read_bytes()
    assert before in (None, content)  # what was drawn is not drawn again
    assert pf.EachRelease.from_json(tmp_path / "v.json").read_table(tmp_path / "v.csv").height == 6
    assert not unfinished(tmp_path)
    assert not list(tmp_path.glob(".pufferfish*"))
    with pytest.raises(RecordError, match="exists: it is the record of an earlier"):
        pf.release_each(data, pf.Histogram(), noise, tmp_path / "v.csv", ledger=ledger)


def test_a_finished_table_that_was_moved_is_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, path = read(), tmp_path / "v.csv"
    bound = pf.LeakagePropagation(CHAIN, data.length)
    noise, ledger = bound.calibrate(pf.Histogram(), 1.0), Ledger(bound, 3.0, base=data)

    class System:
        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("os"), name)

        def replace(self, one: Path, other: Path) -> None:
            if other.suffix == ".json":
                raise KeyboardInterrupt
            one.replace(other)

    with monkeypatch.context() as patched:
        patched.setattr(EACH, "os", System())
        with pytest.raises(KeyboardInterrupt):
            pf.release_each(data, pf.Histogram(), noise, path, ledger=ledger)
    path.rename(tmp_path / "moved.csv")
    with pytest.raises(RecordError, match=r"no longer at .* noise is never drawn twice"):
        pf.release_each(data, pf.Histogram(), noise, path, ledger=ledger)
    found = pf.EachRelease.from_json(tmp_path / "v.json")
    assert found.read_table(tmp_path / "moved.csv").height == 12
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(("first", "then"), [(None, "a"), ("a", None), ("a", "b")])
@pytest.mark.parametrize("step", ["_publish", "table_of"])
def test_what_was_interrupted_stays_with_its_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str | None, then: str | None, step: str
) -> None:
    """What is finished but for its name would be in no book of the ledger that is given now."""
    data = read()
    bound = pf.GroupDP(CHAIN, data.length)
    ledgers = {name: Ledger(bound, 1.5, base=data) for name in "ab"}
    noise, query, output = bound.calibrate(pf.Histogram(), 1.0), pf.Histogram(), tmp_path / "v.csv"

    def killed(*_: object) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EACH, step, killed)
        with pytest.raises(KeyboardInterrupt):
            pf.release_each(data, query, noise, output, ledger=ledgers.get(first or ""))
    before = files_of(tmp_path)
    charged = {name: len(ledger.entries) for name, ledger in ledgers.items()}
    assert charged == {"a": int(first == "a"), "b": 0}
    given = ledgers.get(then or "")
    ready = EACH.prepare_each(data, query, noise, EACH.OutputFiles(output, overwrite=False), ledger=given)
    if step == "_publish":
        was = "charged to no ledger" if first is None else "charged to a ledger, which this one does not name"
        for act in (ready.plan, ready.finish):
            with pytest.raises(RecordError, match=rf"v\.json\.pending is an interrupted release that was {was}"):
                act()
        assert files_of(tmp_path) == before
        assert {name: len(ledger.entries) for name, ledger in ledgers.items()} == charged
        given = ledgers.get(first or "")
    found = pf.release_each(data, query, noise, output, ledger=given)
    assert (found.ledger is None) == (given is None)
    assert given is None or [entry.release for entry in given.entries] == [found.release]
    assert not unfinished(tmp_path)


@pytest.mark.parametrize("grows", [False, True])
def test_what_was_booked_is_not_drawn_of_other_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grows: bool
) -> None:
    table, query = tmp_path / "t.csv", pf.Count("rest")

    def rows(who: str, week: int) -> pf.Sequences:
        days = [(name, date(2024, 1, 1 + 7 * week + day), STATES[day % 3]) for name in who for day in range(7)]
        pl.DataFrame(days, schema=["who", "day", "state"], orient="row").write_csv(table)
        return pf.read_sequences(table, "state", subject="who", time="day", max_gap="1d", step="1d", states=STATES)

    def killed(*_: object) -> Any:
        raise KeyboardInterrupt

    everybody = rows("abcd", 0)
    ledger = Ledger(
        pf.LeakagePropagation(CHAIN, everybody.length), 9.0, base=everybody.base if grows else everybody, grows=grows
    )

    def released(data: pf.Sequences) -> pf.EachRelease:
        noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(query, 1.0)
        return pf.release_each(data, query, noise, tmp_path / "v.csv", ledger=ledger)

    with monkeypatch.context() as patch:
        patch.setattr(EACH, "table_of", killed)
        with pytest.raises(KeyboardInterrupt):
            released(rows("ab", 0))
    for others in (rows("cd", 0), rows("ab", 1)) if grows else (rows("cd", 0),):
        with pytest.raises(RecordError, match="charged for other records, as entry 1"):
            released(others)
    released(rows("ab", 0))
    assert len(ledger.entries) == 1


def test_what_was_drawn_is_charged_to_no_ledger_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values may be of other rows than those that are given now."""
    data, output, finish = read(), tmp_path / "v.csv", EACH._finish_record
    bound = pf.GroupDP(CHAIN, data.length)
    noise, ledger = bound.calibrate(pf.Histogram(), 1.0), Ledger(bound, 1.5, base=data)

    def killed(*given: Any) -> Any:
        if (tmp_path / "v.csv.pending").exists():
            raise KeyboardInterrupt
        return finish(*given)

    with monkeypatch.context() as patch:
        patch.setattr(EACH, "_finish_record", killed)
        with pytest.raises(KeyboardInterrupt):
            pf.release_each(data, pf.Histogram(), noise, output)
    with pytest.raises(RecordError, match="whose values were drawn, and which this ledger did not charge"):
        pf.release_each(data, pf.Histogram(), noise, output, ledger=ledger)
    assert not ledger.entries
    assert pf.release_each(data, pf.Histogram(), noise, output).ledger is None


def test_what_others_made_meanwhile_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, path = read(), tmp_path / "v.csv"
    noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(pf.Histogram(), 1.0)
    table_of = EACH.table_of
    with monkeypatch.context() as patched:
        patched.setattr(EACH, "table_of", lambda *a: (path.write_text("mine\n"), table_of(*a))[1])
        with pytest.raises(RecordError, match=r"v\.csv"):
            pf.release_each(data, pf.Histogram(), noise, path)
    assert path.read_text() == "mine\n"
    drawn = (tmp_path / "v.csv.pending").read_bytes()
    with pytest.raises(RecordError, match=r"interrupted release into v\.csv: name that file"):
        pf.release_each(data, pf.Histogram(), noise, tmp_path / "v.parquet")
    path.unlink()
    pf.release_each(data, pf.Histogram(), noise, path)
    assert path.read_bytes() == drawn


def test_no_file_of_others_is_taken_for_a_lock(tmp_path: Path) -> None:
    data = read()
    noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(pf.Histogram(), 1.0)
    lock = tmp_path / "v.json.pending.lock"
    lock.write_text("notes " * 99)
    with pytest.raises(RecordError, match="is no lock, but another file; move it"):
        pf.release_each(data, pf.Histogram(), noise, tmp_path / "v.csv")
    assert [file.name for file in tmp_path.iterdir()] == [lock.name]
    assert lock.read_text() == "notes " * 99


def test_two_programs_do_not_make_one_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, path = read(), tmp_path / "v.csv"
    bound = pf.LeakagePropagation(CHAIN, data.length)
    noise, ledger = bound.calibrate(pf.Histogram(), 1.0), Ledger(bound, 3.0, base=data)
    inside, go, errors = threading.Event(), threading.Event(), []
    table_of = EACH.table_of
    monkeypatch.setattr(EACH, "table_of", lambda *a: (inside.set(), go.wait(60), table_of(*a))[2])
    first = threading.Thread(target=lambda: pf.release_each(data, pf.Histogram(), noise, path, ledger=ledger))
    first.start()
    assert inside.wait(60)
    try:
        pf.release_each(data, pf.Histogram(), noise, path, ledger=ledger)
    except PufferfishError as error:
        errors.append(str(error))
    go.set()
    first.join()
    assert len(errors) == 1
    assert "another program is making" in errors[0]
    assert len(ledger.entries) == 1


def test_the_best_noise_and_cumulative_distributions_are_refused(tmp_path):
    data = pf.read_sequences(pl.DataFrame({"who": list("aabb") * 9, "s": list("xyyx") * 9}), "s", subject="who")
    bound = pf.LeakagePropagation(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["x", "y"]), data.length)
    for query, noise in ((pf.Histogram(), "best"), (pf.CDF(), "equal"), (pf.Quantiles([0.5]), "best")):
        calibration = bound.calibrate(query, 1.0, noise=noise)
        with pytest.raises(pf.ReleaseRefused, match="noise of one scale, on counts of states"):
            pf.release_each(data, query, calibration, tmp_path / "v.csv")
    assert not list(tmp_path.iterdir())
