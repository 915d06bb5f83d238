"""Model files and writing whole files."""

import json
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
import numpy as np
import pytest

import pufferfish as pf
from pufferfish._base import writing
from pufferfish._base.reading import decode_record
from pufferfish._base.writing import Kind, Output, check_writable as check_kind, sweep, write_whole as write_kind
from pufferfish.errors import RecordError

ANY = Kind("file", lambda _: True, "name another file", (), any_name=True)


def check_writable(path: Path) -> Path:
    return check_kind(path, ANY, overwrite=True)


def write_whole(path: Path, content: bytes) -> None:
    write_kind(path, content, ANY, overwrite=True)


def model() -> pf.Model:
    chains = tuple(
        pf.MarkovChain([[0.9, 0.1], [1 / 3, 2 / 3]], start, states=["<200", ">=200"])
        for start in ("stationary", "any", [0.25, 0.75])
    )
    return pf.Model(theta=pf.ChainClass(chains, "survey"), bins=(0.0, 200.0, 400.0), fitted_on="ab" * 32 + ":")


def test_a_model_reads_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    pf.write_model(model(), path)
    found = pf.read_model(path)
    assert found.bins == (0.0, 200.0, 400.0)
    assert found.fitted_on == "ab" * 32 + ":"
    assert found.theta.origin == "survey"
    for mine, theirs in zip(found.theta.chains, model().theta.chains, strict=True):
        assert np.array_equal(mine.transition_matrix, theirs.transition_matrix)
        assert np.array_equal(mine.initial_distribution, theirs.initial_distribution)
        assert mine.states == theirs.states


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=2), "version 2 of pufferfish-model, this program reads version 1"),
        (lambda d: d.pop("version"), "version None"),
        (lambda d: d.update(format="x"), "not a pufferfish-model file"),
        (lambda d: d.pop("states"), "not a valid pufferfish-model file"),
        (lambda d: d.update(chains=[]), "theta is empty"),
        (
            lambda d: d["chains"][0]["transition_matrix"][1].__setitem__(0, 0.5),
            r"transition_matrix\[1\] sums to 1.1666",
        ),
        (lambda d: d["chains"][0]["transition_matrix"][1].__setitem__(0, -0.5), r"transition_matrix\[1\]\[0\] is -0.5"),
        (lambda d: d["chains"][0].update(initial_distribution="Any"), "'Any'"),
        (lambda d: d["chains"][0].update(initial_distribution=[0.5, 0.6]), "initial_distribution sums to 1.1"),
        (lambda d: d.update(states=["a", "a"]), "repeats the name 'a'"),
    ],
)
def test_a_bad_model_file_is_refused(tmp_path: Path, change: Callable[[dict], object], message: str) -> None:
    path = tmp_path / "model.json"
    pf.write_model(model(), path)
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    with pytest.raises(RecordError, match=message):
        pf.read_model(path)


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b"\xff\xfe", b"null", b'{"format": "pufferfish-model"'])
def test_what_is_no_model_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(RecordError) as caught:
        pf.read_model(path)
    assert "\n" not in str(caught.value)


def test_unwritable_targets_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="it is a folder"):
        check_writable(tmp_path)
    with pytest.raises(RecordError, match="there is no folder"):
        check_writable(tmp_path / "no" / "file.json")
    with pytest.raises(RecordError, match="there is no folder"):
        write_whole(tmp_path / "no" / "file.json", b"x")


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.json"
    write_whole(path, b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(RecordError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.json"]


def test_permissions_of_a_replaced_file_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_whole(path, b"old")
    path.chmod(0o600)
    write_whole(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_interrupted_write_leaves_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file.json", b"new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.program
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_program_leaves_no_empty_file(tmp_path: Path) -> None:
    """Killed before each call by which a new file takes its name, it leaves all of the file, or none of that name."""
    names, calls, ended = ("link", "replace", "unlink", "fsync", "close"), 0, False
    while not ended:
        folder = tmp_path / str(calls := calls + 1)
        folder.mkdir()
        child = os.fork()
        if not child:
            left = calls

            def dying(real: Callable[..., object]) -> Callable[..., object]:
                def call(*given: object, **more: object) -> object:
                    nonlocal left
                    left -= 1
                    if not left:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return real(*given, **more)

                return call

            for name in names:
                setattr(os, name, dying(getattr(os, name)))
            write_whole(folder / "file.json", b"all of it")
            os._exit(0)
        ended = os.waitpid(child, 0)[1] == 0
        path = folder / "file.json"
        assert not path.exists() or path.read_bytes() == b"all of it"
        write_whole(path, b"again")
        assert path.stat().st_nlink == 1
        assert [p.name for p in folder.iterdir()] == ["file.json"]
    assert calls > 5


def test_a_disk_without_second_names_is_written_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    write_whole(tmp_path / "file.json", b"new")
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"new"]


def test_another_thread_never_sweeps_a_file_that_is_being_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On some network disks a program cannot see its own locks: there it knows its hidden files by their names."""
    if writing.fcntl is None:
        pytest.skip("no locks, so nothing is swept")
    monkeypatch.setattr(writing.fcntl, "flock", lambda *_: None)
    make, remove, sweepers, made = os.open, writing._sweep_one, list[Thread](), Event()

    def made_while_swept(path: Any, *how: Any) -> int:
        handle = make(path, *how)
        if Path(path).suffix == ".tmp" and not sweepers:
            sweepers.append(Thread(target=sweep, args=(tmp_path,)))
            sweepers[-1].start()
            sweepers[-1].join(0.2)
        return handle

    def remove_late(path: Path) -> None:
        made.wait(5)
        remove(path)

    monkeypatch.setattr(os, "open", made_while_swept)
    monkeypatch.setattr(writing, "_sweep_one", remove_late)
    with Output(tmp_path / "model.json", None, overwrite=False) as output:
        made.set()
        sweepers[-1].join()
        output.write(b"{}")
    assert os.listdir(tmp_path) == ["model.json"]


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(RecordError, match="cannot write"):
        check_writable(tmp_path / "a")


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


def test_what_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for target in (tmp_path, tmp_path / "absent" / "x.json", fifo, tmp_path / ("x" * 3000)):
        with pytest.raises(RecordError) as caught:
            check_writable(target)
        assert str(caught.value).count("cannot write") == 1


def test_a_key_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    pf.write_model(model(), path)
    whole = path.read_text()
    for key in ("origin", "transition_matrix", "bins", "format"):
        line = next(line for line in whole.splitlines() if f'"{key}"' in line)
        again = line if line.rstrip().endswith(",") and "[" not in line else f'"{key}": [],\n{line}'
        path.write_text(whole.replace(line, f"{line}\n{line}" if again == line else again, 1))
        with pytest.raises(RecordError, match=f"key '{key}' is given twice"):
            pf.read_model(path)
    path.write_text(whole)
    pf.read_model(path)


def test_a_message_that_quotes_very_much_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    pf.write_model(model(), path)
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"kind": "many words " * 6_000}))
    with pytest.raises(RecordError) as caught:
        pf.read_model(path)
    assert len(str(caught.value)) <= 1_000


def test_threads_take_turns_where_records_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that asked msgspec for a new type at once ended the process."""
    at_once, most = 0, 0

    def slow(plain: Any, _: Any) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.01)
        at_once -= 1
        return plain

    monkeypatch.setattr(msgspec, "convert", slow)
    content = b'{"format": "pufferfish-model", "version": 1}'

    def read(_: int) -> object:
        return decode_record(content, "here", dict, format_="pufferfish-model", version=1)

    with ThreadPoolExecutor(4) as threads:
        assert len(list(threads.map(read, range(4)))) == 4
    assert most == 1
