"""A PostgreSQL server of the tests' own, of the programs that the machine has: it listens at a file, to nobody else."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def lacking() -> str | None:
    """Return what the machine has not that a server needs; None for nothing."""
    if find_spec("psycopg") is None:
        return "there is no psycopg"
    return None if _program("initdb") else "there is no initdb: on Debian apt-get install postgresql"


def _program(name: str) -> str:
    """Return where a program of PostgreSQL is; Debian keeps them out of the way. Nothing where there is none."""
    places = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    return shutil.which(name, path=os.pathsep.join([*places, os.environ.get("PATH", "")])) or ""


@contextmanager
def postgresql() -> Iterator[str]:
    """Run a server, and give the address of its database; it is gone afterwards."""
    as_user: dict[str, Any] = {"user": "postgres"} if os.geteuid() == 0 else {}  # it refuses to be run by root
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        if as_user:
            shutil.chown(folder, "postgres")
        said: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": folder, **as_user}
        made = [_program("initdb"), "-D", f"{folder}/data", "-U", "office", "-A", "trust", "-N", "--locale=C"]
        subprocess.run([*made, "-E", "UTF8"], check=True, **said)
        with open(folder / "log", "wb") as log:
            begun = [_program("postgres"), "-D", f"{folder}/data", "-k", str(folder), "-c", "listen_addresses="]
            server = subprocess.Popen([*begun, "-c", "fsync=off"], **{**said, "stdout": log})
        try:
            _wait(folder, server)
            yield f"postgresql://office@/postgres?host={folder}"
        finally:
            server.send_signal(signal.SIGINT)  # it waits for nobody
            server.wait(timeout=60)
    finally:
        shutil.rmtree(folder)


def _wait(folder: Path, server: Any) -> None:
    import psycopg

    for _ in range(600):
        try:
            psycopg.connect(f"postgresql://office@/postgres?host={folder}").close()
        except psycopg.OperationalError:
            assert server.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        else:
            return
    raise AssertionError((folder / "log").read_text())
