"""Interrupted runs go on where they were, and end with the very bytes of a run that was not interrupted."""

import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paper.experiments import EXPERIMENTS, DataSets, Experiment, Settings, run, workplace
from paper.experiments.datasets import PowerTable
from paper.experiments.drawing import new_figure
from paper.experiments.experiment import Part, Row
from paper.experiments.running import _numbers_of, _page_of
from paper.experiments.table import Table
from pufferfish.errors import DataError, RecordError

KEYS = ("first", "second", "third", "fourth")


def test_what_is_published_may_be_made_again() -> None:
    results = Path(__file__).parents[2] / "docs" / "results"
    for experiment in EXPERIMENTS:
        for kind, suffix in ((_numbers_of(experiment), "csv"), (_page_of(experiment), "md")):
            assert kind.holds((results / f"{experiment.name}.{suffix}").read_bytes()), f"{experiment.name}.{suffix}"


class Counting:
    """An experiment whose parts count how often they are done; one can be made to fail."""

    def __init__(self, name: str = "counting") -> None:
        self.done: Counter[str] = Counter()
        self.fails_at: str | None = None
        self.experiment = Experiment(
            name=name,
            title="Counting",
            source="nowhere",
            trials=1,
            needs=(),
            uses=("electricity",),
            parts=self._parts,
            about=lambda rows, settings: [f"{len(rows)} rows of seed {settings.seed}."],
            tables=lambda rows, settings: [
                Table("Draws", ("key", "draw"), tuple((str(r["key"]), str(r["draw"])) for r in rows))
            ],
            figure=self._figure,
        )

    def _parts(self, settings: Settings) -> list[Part]:
        return [Part(key, lambda key=key: self._work(key, settings)) for key in KEYS]

    def _work(self, key: str, settings: Settings) -> list[Row]:
        if key == self.fails_at:
            raise KeyboardInterrupt
        self.done[key] += 1
        draws = settings.stream(key).random(settings.trials).tolist()
        numbers: Row = {"tiny": 5e-324, "third": 1 / 3, "whole": 1.0, "count": 2**53 + 1, "nothing": None}
        return [{"mechanism": "none", "key": f'{key} α, "ε"\n|', "draw": draw} | numbers for draw in draws]

    def _figure(self, rows: Sequence[Row], settings: Settings) -> object:
        figure = new_figure(2, 2)
        figure.add_subplot().plot([row["draw"] for row in rows])
        return figure


SETTINGS = Settings(seed=3, trials=2)


@pytest.fixture
def counting() -> Counting:
    return Counting()


def results(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def folder_of(experiment: Experiment, path: Path) -> Path:
    """Return a folder in which a run was interrupted before its first part."""
    with pytest.raises(KeyboardInterrupt), workplace([(experiment, SETTINGS)], path):
        raise KeyboardInterrupt
    return path


def kept(folder: Path) -> list[Path]:
    return sorted((folder / ".unfinished").glob("*.msgpack"))


def interrupted(counting: Counting, folder: Path, at: str) -> None:
    counting.fails_at = at
    with pytest.raises(KeyboardInterrupt):
        run(counting.experiment, SETTINGS, folder)
    counting.fails_at = None


@pytest.mark.parametrize("at", KEYS)
def test_only_the_rest_is_done_after_an_interruption(tmp_path: Path, counting: Counting, at: str) -> None:
    folder = folder_of(counting.experiment, tmp_path / "cut")
    interrupted(counting, folder, at)
    assert results(folder) == {}
    before = KEYS.index(at)
    assert list(counting.done) == list(KEYS[:before])
    assert len(kept(folder)) == before
    told: list[tuple[int, int, str]] = []
    run(counting.experiment, SETTINGS, folder, lambda *part: told.append(part))
    assert counting.done == dict.fromkeys(KEYS, 1)
    assert told == [(i, 4, key) for i, key in enumerate(KEYS)]
    other = Counting()
    whole = folder_of(other.experiment, tmp_path / "whole")
    found = run(other.experiment, SETTINGS, whole)
    assert results(folder) == results(whole)
    assert [path.name for path in found.written] == ["counting.csv", "counting.md", "counting.png"]
    assert set(results(whole)) == {path.name for path in found.written}
    assert b"8 rows of seed 3." in (whole / "counting.md").read_bytes()


def test_interrupted_again_and_again(tmp_path: Path, counting: Counting) -> None:
    folder = folder_of(counting.experiment, tmp_path)
    for at in KEYS:
        interrupted(counting, folder, at)
    run(counting.experiment, SETTINGS, folder)
    assert counting.done == dict.fromkeys(KEYS, 1)


@pytest.mark.parametrize("content", [b"", b"\x93", b"\x80", b"\x91\x03", b"\x91\x81\x01\x02", b"[]", b"\xff\xfe"])
def test_a_damaged_part_is_done_again(tmp_path: Path, counting: Counting, content: bytes) -> None:
    folder = folder_of(counting.experiment, tmp_path)
    run(counting.experiment, SETTINGS, folder)
    first = results(folder)
    damaged = kept(folder)[2]
    whole = damaged.read_bytes()
    damaged.write_bytes(content)
    run(counting.experiment, SETTINGS, folder)
    assert sorted(counting.done.values()) == [1, 1, 1, 2]
    assert results(folder) == first
    assert damaged.read_bytes() == whole


@pytest.mark.slow
def test_parts_of_other_settings_are_not_used(tmp_path: Path, counting: Counting) -> None:
    path = tmp_path / "house.csv"

    def found() -> DataSets:
        """Every command finds its data anew."""
        return DataSets(electricity=(PowerTable("house", path),))

    folder = folder_of(counting.experiment, tmp_path / "out")
    times = 0
    seen: set[bytes] = set()
    for settings, content in (
        (SETTINGS, "watts\n1\n"),
        (replace(SETTINGS, seed=4), "watts\n1\n"),
        (replace(SETTINGS, trials=3), "watts\n1\n"),
        (replace(SETTINGS, data=found()), "watts\n1\n"),
        (replace(SETTINGS, data=found()), "watts\n2\n"),
    ):
        path.write_text(content)
        times += 1
        run(counting.experiment, settings, folder)
        assert counting.done == dict.fromkeys(KEYS, times)
        run(counting.experiment, settings, folder)  # as before: nothing to do
        assert counting.done == dict.fromkeys(KEYS, times)
        seen.add((folder / "counting.csv").read_bytes())
    assert len(seen) == 3  # seed and trials decide these numbers, data do not
    path.write_text("watts\n1\n")
    run(counting.experiment, replace(SETTINGS, data=found()), folder)
    assert counting.done == dict.fromkeys(KEYS, times)


def test_parts_of_other_source_are_not_used(
    tmp_path: Path, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(counting.experiment, tmp_path)
    run(counting.experiment, SETTINGS, folder)
    monkeypatch.setattr("paper.experiments.running._sources", lambda: "another program")
    run(counting.experiment, SETTINGS, folder)
    assert counting.done == dict.fromkeys(KEYS, 2)


def test_two_experiments_do_not_share_parts_and_forgetting_one_leaves_the_other(tmp_path: Path) -> None:
    first, second = Counting("table-one"), Counting("table-two")
    both = [first.experiment, second.experiment]
    folder_of(second.experiment, tmp_path)
    run(second.experiment, SETTINGS, tmp_path)
    with workplace([(first.experiment, SETTINGS)], tmp_path):
        run(first.experiment, SETTINGS, tmp_path)
    assert first.done == second.done == dict.fromkeys(KEYS, 1)
    assert [path.name.split(".")[0] for path in kept(tmp_path)] == ["table-two"] * 4
    with workplace([(experiment, SETTINGS) for experiment in both], tmp_path):
        run(second.experiment, SETTINGS, tmp_path)
        run(first.experiment, SETTINGS, tmp_path)
    assert (first.done["first"], second.done["first"]) == (2, 1)
    assert len(results(tmp_path)) == 6
    assert not (tmp_path / ".unfinished").exists()


def test_another_run_in_the_same_folder_is_refused(tmp_path: Path, counting: Counting) -> None:
    with workplace([(counting.experiment, SETTINGS)], tmp_path):
        with pytest.raises(RecordError, match="another run"), workplace([(counting.experiment, SETTINGS)], tmp_path):
            pytest.fail("two runs in one folder")
        run(counting.experiment, SETTINGS, tmp_path)
    assert len(results(tmp_path)) == 3
    with workplace([(counting.experiment, SETTINGS)], tmp_path):  # free again
        run(counting.experiment, SETTINGS, tmp_path)


def test_an_error_of_the_work_is_passed_on_as_it_is(tmp_path: Path, counting: Counting) -> None:
    with pytest.raises(OSError, match="of the work"), workplace([(counting.experiment, SETTINGS)], tmp_path):
        raise OSError("of the work")


def test_what_is_not_a_number_reads_the_same_after_an_interruption(tmp_path: Path, counting: Counting) -> None:
    """A kept part does not differ from one just done, whatever its numbers are."""
    endless = replace(
        counting.experiment,
        parts=lambda settings: [
            Part(
                "one",
                lambda: [{"mechanism": "none", "key": "k", "draw": 1.0, "a": math.inf, "b": -math.inf, "c": math.nan}],
            )
        ],
    )
    folder = folder_of(endless, tmp_path)
    run(endless, SETTINGS, folder)
    first = results(folder)
    run(endless, SETTINGS, folder)
    assert results(folder) == first


def a_file(path: Path) -> Path:
    path.write_text("")
    return path


def without_permission(path: Path) -> Path:
    (path / ".unfinished").mkdir(parents=True)
    path.chmod(0o500)
    if os.access(path, os.W_OK):
        path.chmod(0o700)
        pytest.skip("whoever runs this may write anywhere")
    return path


def with_a_folder_in_the_way(path: Path) -> Path:
    (path / "counting.png").mkdir(parents=True)
    return path


def with_a_file_for_parts(path: Path) -> Path:
    path.mkdir()
    a_file(path / ".unfinished")
    return path


@pytest.mark.parametrize("made", [a_file, without_permission, with_a_folder_in_the_way, with_a_file_for_parts])
def test_what_cannot_be_written_is_refused_before_any_work(tmp_path: Path, counting: Counting, made: object) -> None:
    assert callable(made)
    folder = made(tmp_path / "out")
    with (
        pytest.raises(RecordError, match="cannot write") as error,
        workplace([(counting.experiment, SETTINGS)], folder),
    ):
        pytest.fail("work was done")
    assert "\n" not in str(error.value)


def test_a_folder_is_made(tmp_path: Path, counting: Counting) -> None:
    with workplace([(counting.experiment, SETTINGS)], tmp_path / "a" / "b"):
        run(counting.experiment, SETTINGS, tmp_path / "a" / "b")
    assert len(results(tmp_path / "a" / "b")) == 3
    missing = a_file(tmp_path / "file") / "b"
    with pytest.raises(RecordError, match="Not a directory"), workplace([(counting.experiment, SETTINGS)], missing):
        pytest.fail("work was done")


def activity(path: Path, groups: int) -> Path:
    rng = np.random.default_rng(1)
    lines = ["subject,group,day,minute,state"]
    for group in range(groups):
        states = rng.integers(0, 2, 60)
        lines += [f"{group},g{group},0,{t},s{x}" for t, x in enumerate(states)]
    path.write_text("\n".join(lines) + "\n")
    return path


def start(table: Path, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "paper", "reproduce", "table-activity"]
    command += ["--data", str(table), "--trials", "2", "--output", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.program
def test_a_killed_process_goes_on_and_writes_the_same_bytes(tmp_path: Path) -> None:
    table, folder = activity(tmp_path / "own.csv", groups=6), tmp_path / "killed"
    undisturbed = start(table, tmp_path / "whole")
    killed = start(table, folder)
    parts: list[Path] = []
    until = time.monotonic() + 60
    while len(parts) < 2 and time.monotonic() < until and killed.poll() is None:
        time.sleep(0.002)
        parts = list((folder / ".unfinished").glob("table-activity.*.msgpack"))
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL, "it was done before it could be killed"
    assert results(folder) == {}
    assert 2 <= len(parts) < 6
    out = undisturbed.communicate()[0]
    again = start(table, folder)
    assert again.communicate()[0].replace(str(folder), "F") == out.replace(str(tmp_path / "whole"), "F")
    assert (undisturbed.returncode, again.returncode) == (0, 0)
    assert results(folder) == results(tmp_path / "whole")
    assert len(results(folder)) == 3
    assert not (folder / ".unfinished").exists()


def test_a_data_file_that_changes_meanwhile_is_noticed(tmp_path: Path, counting: Counting) -> None:
    path = tmp_path / "house.csv"
    path.write_text("watts\n1\n")
    settings = Settings(seed=3, trials=2, data=DataSets(electricity=(PowerTable("house", path),)))
    folder = folder_of(counting.experiment, tmp_path / "out")
    with pytest.raises(DataError, match="changed"):
        run(counting.experiment, settings, folder, lambda *_: path.write_text("watts\n2\n"))
    assert results(folder) == {}


def test_a_file_that_changed_after_it_was_read_is_noticed(tmp_path: Path, counting: Counting) -> None:
    """As between two experiments of one command: the rows are those read first."""
    path = tmp_path / "house.csv"
    path.write_text("watts\n1\n300\n1\n")
    table = PowerTable("house", path)
    table.read()
    path.write_text("watts\n2\n300\n2\n")
    settings = Settings(seed=3, trials=2, data=DataSets(electricity=(table,)))
    with pytest.raises(DataError, match="changed"):
        run(counting.experiment, settings, folder_of(counting.experiment, tmp_path / "out"))


def test_what_another_seed_left_is_kept(tmp_path: Path, counting: Counting) -> None:
    folder = folder_of(counting.experiment, tmp_path)
    interrupted(counting, folder, "third")
    other = Settings(seed=4, trials=2)
    with workplace([(counting.experiment, other)], folder):
        run(counting.experiment, other, folder)
    assert len(kept(folder)) == 2


def test_what_applies_to_nothing_is_refused(tmp_path: Path, counting: Counting) -> None:
    none: list[Row] = [{"data": "x", "reason": "is reducible"}]
    empty = replace(counting.experiment, parts=lambda _: [Part("one", lambda: none)])
    with pytest.raises(DataError, match="nothing to compare: for x is reducible"):
        run(empty, SETTINGS, folder_of(empty, tmp_path))
    assert results(tmp_path) == {}
