"""A real Spark cluster on this machine: a standalone master and its workers, each a process of its own.

They are the classes of Spark's own jars that ``sbin/start-all.sh`` starts, on free ports of 127.0.0.1, and they end
with the tests. The usual tests have one process with two threads instead, which plans and splits tables alike.
"""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Cluster", "cluster", "session", "skip_without_spark"]

_QUICK = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
"""Java starts in less time so; it would be slow in the long run."""

_SMALL = "local[2]"
"""Two threads of the process of the session; it starts in half the time."""

PARTITIONS = 3
"""Of a shuffle: more than workers, and so few that tests are quick."""


_FOR_SMALL_TABLES = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Queries are neither compiled nor planned anew on their way; ``--slow`` runs with Spark's own settings."""


def skip_without_spark() -> None:
    """Skip where there is no cluster to be had."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed: pip install '.[spark]'")
    if java() is None:
        pytest.skip("Spark needs Java 17: apt-get install openjdk-17-jre-headless")


def java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")


class Cluster:
    """A master and its workers, each a process of its own; or, if small, only the threads of a session."""

    def __init__(self, folder: Path, *, small: bool) -> None:
        self.folder = folder
        self.events = folder / "events"
        self.events.mkdir()
        self.processes: list[subprocess.Popen[bytes]] = []
        if small:
            self.master = _SMALL
        else:
            self._start("master", "master.Master", ["--port", "0"])
            self.master = self._said("master", r"Starting Spark master at (spark://\S+)")

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker, which the master uses as soon as it has come."""
        name = f"worker-{len(self.processes)}"
        resources = ["--cores", "2", "--memory", "1g", "--work-dir", str(self.folder / name)]
        return self._start(name, "worker.Worker", ["--port", "0", *resources, self.master])

    def stop(self) -> None:
        """End all processes."""
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def happened(self, event: str) -> list[dict[str, Any]]:
        """Return all events of a kind that Spark has written down so far."""
        lines = [line for file in self.events.iterdir() for line in file.read_text().split("\n")[:-1]]
        return [found for line in lines if event in line and (found := json.loads(line))["Event"].endswith(event)]

    def rows_scanned(self, session: Any) -> int:
        """Count the rows that all scans of files together have read so far; what was kept is not read again."""
        session._jsc.sc().listenerBus().waitUntilEmpty()
        plans = [e["sparkPlanInfo"] for kind in ("ExecutionStart", "ExecutionUpdate") for e in self.happened(kind)]
        scans: set[int] = set()
        while plans:
            plan = plans.pop()
            plans += plan["children"]
            if plan["nodeName"].startswith("Scan "):
                scans |= {m["accumulatorId"] for m in plan["metrics"] if m["name"] == "number of output rows"}
        updates = (one for e in self.happened("TaskEnd") for one in e["Task Info"]["Accumulables"])
        return sum(int(one["Update"]) for one in updates if one["ID"] in scans)

    def _start(self, name: str, what: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        import pyspark

        home = Path(pyspark.__file__).parent
        environment = os.environ | {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": _version_of_scala()}
        command = [
            java() or "java",
            "-Xmx512m",
            *_QUICK,
            "-cp",
            str(home / "jars" / "*"),
            f"org.apache.spark.deploy.{what}",
        ]
        log = (self.folder / f"{name}.log").open("wb")
        with log:
            process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--webui-port", "0", *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self.folder,
            )
        self.processes.append(process)
        return process

    def _said(self, name: str, pattern: str) -> str:
        for _ in range(600):
            said = (self.folder / f"{name}.log").read_text(errors="replace")
            if found := re.search(pattern, said):
                return found[1]
            time.sleep(0.1)
        raise RuntimeError(f"Spark's {name} did not start: {said[-2000:]}")


def _version_of_scala() -> str:
    import pyspark

    (library,) = (Path(pyspark.__file__).parent / "jars").glob("scala-library-*.jar")
    return ".".join(library.name.split("-")[2].split(".")[:2])


@contextmanager
def cluster(folder: Path, *, small: bool) -> Generator[Cluster]:
    """Start a master and two workers, and end them; a small cluster starts with its session."""
    found = Cluster(folder, small=small)
    try:
        for _ in range(0 if small else 2):
            found.add_worker()
        yield found
    finally:
        found.stop()


@contextmanager
def session(cluster: Cluster, *, small: bool) -> Generator[Any]:
    """Start a Spark session on the cluster, and end it; ``small`` leaves out what pays for large tables only."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(_QUICK),
        "spark.executor.extraJavaOptions": " ".join(_QUICK),
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.sql.session.timeZone": "America/New_York",
        "spark.ui.enabled": "false",
        **(_FOR_SMALL_TABLES if small else {}),
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": cluster.events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.sql.warehouse.dir": str(cluster.folder / "warehouse"),
    }
    builder = SparkSession.builder.master(cluster.master).appName("pufferfish tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    interrupted = signal.getsignal(signal.SIGINT)
    spark = builder.getOrCreate()
    signal.signal(signal.SIGINT, interrupted)  # Spark takes it, and other tests look at it
    try:
        yield spark
    finally:
        spark.stop()
