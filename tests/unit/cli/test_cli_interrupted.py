"""Full disks, interrupts and killed programs: nothing that is spent is lost, and nothing is left lying about."""

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from cli_folder import READING, contents, refused, release, spent
from commands import run
from pufferfish._base import writing
from pufferfish._base.writing import Output, sweep

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes, devices and links of Unix")


# A disk that is full, and programs that are interrupted


def test_too_little_room_is_noticed_before_anything_is_spent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = contents(folder)
    monkeypatch.setattr(os, "posix_fallocate", full)
    assert "No space left" in refused(*release("new.json", "--ledger", "book.json"))
    assert contents(folder) == before


def test_a_release_that_cannot_be_written_is_printed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    real = Output.write

    def write(self: Output, content: bytes) -> None:
        if b"pufferfish-release" in content:
            monkeypatch.setattr(writing.os, "write", full)
        real(self, content)

    monkeypatch.setattr(Output, "write", write)
    result = run(*release("new.json", "--ledger", "book.json", "--plot", "new.png"))
    monkeypatch.undo()
    assert result.exit_code == 1
    assert "cannot write new.json: No space left on device" in result.stderr
    assert "budget for it is spent (entry 1)" in result.stderr
    assert [line.startswith("warning: ") for line in result.stderr.splitlines()] == [True, False]
    (folder / "kept.json").write_text(result.stdout)
    assert pf.Release.from_json(folder / "kept.json").ledger.entry == spent(folder) == 1
    assert not list(folder.glob("new.*"))
    assert not list(folder.glob(".pufferfish*"))


def test_an_interruption_before_the_file_is_written_prints_the_release(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Output, content: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Output, "write", interrupt)
    result = run(*release("new.json"))
    monkeypatch.undo()
    assert result.exit_code == 1
    (folder / "kept.json").write_text(result.stdout.removesuffix("\n"))
    assert pf.Release.from_json(folder / "kept.json").epsilon == 1


def test_ctrl_c_at_any_moment_loses_nothing_that_is_spent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the budget is spent nothing is done; from then on the release is finished, written and printed."""

    def interrupted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
            return function(*args, **kwargs)

        return call

    early = [
        "pufferfish.cli.release.read_under",
        "pufferfish.release.prepare.check_proof",
        "pufferfish.release.prepare.cells_of",
        # from here on it may wait for other programs, and for the proof of the sum
        "pufferfish.release.release._check_start",
        "pufferfish.ledger.ledger.Entry",
    ]
    late = [
        "pufferfish.ledger.kept.write_whole",
        "pufferfish.release.release.Release.to_json",
        "pufferfish.cli.release.picture_of",
        "pufferfish.cli.release._print_release",
    ]
    for number, place in enumerate(early + late):
        with monkeypatch.context() as patch:
            module, _, name = place.rpartition(".")
            owner = pf.Release if module.endswith(".Release") else sys.modules[module]
            patch.setattr(owner, name, interrupted(getattr(owner, name)))
            result = run(*release(f"{number}.json", "--ledger", "book.json", "--plot", f"{number}.png"))
        if place in early:
            assert result.exit_code == 1
            assert result.stderr.splitlines()[-1] == "interrupted: nothing was drawn or spent"
            assert spent(folder) == 0
            assert not list(folder.glob(f"{number}.*"))
            continue
        assert result.exit_code == 0, (place, result.output)
        assert result.stderr.count("interrupted too late: budget is being spent, and noise drawn") == 1
        assert f"written: {number}.json, {number}.png" in result.stdout
        assert pf.Release.from_json(f"{number}.json").ledger.entry == spent(folder) == number - len(early) + 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_picture_that_cannot_be_written_leaves_the_release(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bytes:
        raise pf.errors.RecordError("cannot write new.png: No space left on device")

    monkeypatch.setattr("pufferfish.cli.release.picture_of", full)
    failed = run(*release("new.json", "--plot", "new.png", "--epsilon", 8, "--noise", "equal"))
    *before, last = failed.stderr.splitlines()
    assert (failed.exit_code, last.endswith("the release is written: new.json")) == (1, True)
    assert [line[:30] for line in before] == ["warning: The noise hides nearl"]
    assert pf.Release.from_json("new.json").epsilon == 8
    assert not Path("new.png").exists()


def test_two_programs_with_one_output_lose_no_release(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program writes its release there between the check and the end of this one."""
    real = Output.write

    def late(self: Output, content: bytes) -> None:
        shutil.copy("release.json", "new.json")
        real(self, content)

    monkeypatch.setattr(Output, "write", late)
    result = run(*release("new.json"))
    assert result.exit_code == 1
    assert "exists" in result.stderr
    assert Path("new.json").read_bytes() == Path("release.json").read_bytes()
    assert '"pufferfish-release"' in result.stdout


@pytest.mark.program
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_output_that_is_full_is_one_line(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "pufferfish", *map(str, release("new.json", "--epsilon", 8, "--noise", "equal"))],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert ended.returncode == 1
    *before, last = ended.stderr.splitlines()
    assert last == "error: cannot write to standard output: No space left on device"
    assert [line[:30] for line in before] == ["warning: The noise hides nearl"]
    assert pf.Release.from_json("new.json").epsilon == 8


@pytest.mark.program
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may mount")
def test_on_a_disk_that_is_full(folder: Path) -> None:
    """A real one, with room for less and less: a release is whole, or nothing is spent, or it is printed."""
    disk = folder / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", disk], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        for room in (0, 8, 100, 270, 300):
            filler = disk / "filler"
            filler.unlink(missing_ok=True)
            with filler.open("wb") as file:
                try:
                    file.write(bytes(1024 * (400 - room)))
                except OSError:
                    pass
            before = spent(folder)
            result = run(*release(disk / "new.json", "--ledger", "book.json", "--epsilon", 0.1))
            if result.exit_code == 0:
                assert pf.Release.from_json(disk / "new.json").ledger.entry == spent(folder) == before + 1
                (disk / "new.json").unlink()
            else:
                assert "No space left" in result.stderr
                assert (result.exit_code, spent(folder)) == (2, before)
            assert {p.name for p in disk.iterdir()} == {"filler"}
        assert spent(folder) >= 1
    finally:
        subprocess.run(["umount", disk], check=True)


# Hidden files of programs that were killed

HIDDEN = ".pufferfish-" + "0123456789abcdef" * 2 + ".tmp"


def test_hidden_files_of_the_dead_are_swept_and_no_others(folder: Path) -> None:
    keep = [".pufferfish-notes", ".pufferfish-abcdefgh", HIDDEN.upper(), f"{HIDDEN}.bak", HIDDEN.replace("0", "g")]
    for name in [*keep, HIDDEN]:
        Path(name).write_text("something")
    link = HIDDEN.replace("0", "1")
    Path(link).symlink_to("table.csv")
    inside = HIDDEN.replace("0", "2")
    Path(inside).mkdir()
    pipe = HIDDEN.replace("0", "3")
    os.mkfifo(pipe)
    with Output("new.json", None, overwrite=True) as other:
        alive = [p for p in folder.glob(".pufferfish-*.tmp") if p.name not in (*keep, HIDDEN, link, inside, pipe)]
        assert len(alive) == 1
        sweep(folder)
        assert run(*release("second.json")).exit_code == 0
        assert alive[0].exists()
        other.write(b"x")
    assert Path("new.json").read_bytes() == b"x"
    assert not Path(HIDDEN).exists()
    assert sorted(p.name for p in folder.glob(".[pP]*")) == sorted([*keep, link, inside, pipe])
    assert Path("table.csv").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_hidden_files_of_another_user_stay(folder: Path) -> None:
    Path(HIDDEN).touch()
    os.chown(HIDDEN, 12345, -1)
    sweep(folder)
    assert Path(HIDDEN).exists()


@pytest.mark.program
def test_a_hidden_file_in_use_by_another_program_stays(folder: Path) -> None:
    code = (
        "from pufferfish._base.writing import Output\n"
        "with Output('x', None, overwrite=True):\n  print(flush=True)\n  input()\n"
    )
    program = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdout is not None
    program.stdout.readline()
    (hidden,) = folder.glob(".pufferfish-*.tmp")
    sweep(folder)
    assert hidden.exists()
    program.kill()
    program.communicate()
    assert hidden.exists()
    sweep(folder)
    assert not hidden.exists()


@pytest.mark.program
def test_programs_killed_at_any_moment(folder: Path, slow: bool) -> None:
    """The book opens, says no less than what was released, and nothing stays lying about."""
    code = (
        "import sys\nfrom pufferfish.cli import main\n"
        "for i in range(1000):\n"
        "  assert not main([*sys.argv[1:], '--output', f'r{i}.json'], standalone_mode=False)\n"
    )
    given = [
        "release",
        "table.csv",
        *READING,
        "--model",
        "model.json",
        "--mechanism",
        "group-dp",
        "--epsilon",
        "0.001",
        "--accept",
        "noise",
    ]
    for i in range(3) if slow else [2]:
        for path in folder.glob("r[0-9]*.json"):
            path.unlink()
        before = spent(folder)
        program = subprocess.Popen(
            [sys.executable, "-c", code, *given, "--ledger", "book.json"], stdout=subprocess.DEVNULL
        )
        while not Path("r0.json").exists():
            assert program.poll() is None
            time.sleep(0.005)
        time.sleep(0.057 * i)
        program.send_signal(signal.SIGKILL)
        program.wait()
        written = [pf.Release.from_json(path) for path in folder.glob("r[0-9]*.json")]
        after = spent(folder)
        assert before + len(written) <= after <= before + len(written) + 1
    assert run(*release("last.json", "--ledger", "book.json", "--epsilon", 0.001)).exit_code == 0
    assert not list(folder.glob(".pufferfish*"))
    assert stat.S_IMODE(Path("last.json").stat().st_mode) == stat.S_IMODE(Path("table.csv").stat().st_mode)


def test_an_interrupt_while_modules_are_loaded_is_no_traceback(tmp_path: Path) -> None:
    """The commands are loaded by click, which ends quietly; what comes before takes a tenth of a second."""
    early = tmp_path / "early"
    early.mkdir()
    interrupt = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(100): pass\n"
    (early / "msgspec.py").write_text(interrupt)
    path = os.pathsep.join([str(early), str(Path(pf.__file__).parent.parent)])
    found = subprocess.run(
        [sys.executable, "-m", "pufferfish", "release", "--help"],
        env={**os.environ, "PYTHONPATH": path},
        cwd=early,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout, found.stderr) == (1, "", "\nAborted!\n")
