"""Fuzz targets for a while, one after the other: ``python tests/fuzz/run.py [TARGET …] --seconds N``.

With atheris (``pip install atheris``) inputs that reach new code are kept and changed further; without it the same
changes are made of the seeds alone. Each target runs in a process of its own, so that one that dies spoils no other.
Inputs that show something wrong are written into a folder, one for each fault, and a table says what was done.
"""

import argparse
import faulthandler
import importlib
import json
import random
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NAMES = {
    "models": "models", "bif": "bif", "releases": "releases", "ledgers": "ledgers", "each-subject": "each_subject",
    "measurements": "measurements", "csv": "csv_tables", "parquet": "parquet_tables", "where": "filters",
    "commands": "command_lines",
}  # fmt: skip
"""Targets, and the files that hold them."""

_STUCK = 120
"""Seconds after which an input that nothing can interrupt ends its process; its bytes are in ``NAME.last``."""


_MOST_DEATHS = 20
"""After so many a target is left alone."""


def main() -> int:
    """Fuzz each target, and print the table."""
    options = _options()
    options.found.mkdir(parents=True, exist_ok=True)
    rows = [_run(name, options) for name in options.targets or NAMES]
    lines = ["| target | seconds | inputs | edges reached | findings |", "|---|---|---|---|---|", *rows]
    print("\n".join(lines))
    return 0


def _options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", choices=[[], *NAMES], metavar="TARGET", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=int, default=60, help="for each target [default: 60]")
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="folder for findings")
    parser.add_argument("--corpus", type=Path, help="folder of inputs to begin with, and to add to")
    parser.add_argument("--seed", type=int, default=0, help="of the changes; 0 is another one each time")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.found = options.found.resolve()  # a target may go to another folder
    if options.one:
        _fuzz(options)
    return options


def _run(name: str, options: Any) -> str:
    """Fuzz a target in another process, and return its line of the table."""
    report = options.found / f"{name}.json"
    seconds, inputs, edges, findings, deaths = 0.0, 0, 0, set[str](), 0
    while seconds + 5 < options.seconds and deaths < _MOST_DEATHS:
        report.unlink(missing_ok=True)
        command = [sys.executable, str(HERE / "run.py"), name, "--one", "--found", str(options.found)]
        command += ["--seconds", str(options.seconds - int(seconds)), "--seed", str(options.seed)]
        command += ["--corpus", str(options.corpus)] if options.corpus else []
        log = options.found / f"{name}.log"
        with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT) as process:
            try:
                code = process.wait(options.seconds - int(seconds) + 2 * _STUCK)
            except subprocess.TimeoutExpired:  # it hangs where nothing of it can end it
                process.kill()
                code = process.wait()
        shown = log.read_text(errors="replace")
        said = json.loads(report.read_text()) if report.exists() else {"seconds": 0, "inputs": 0, "findings": {}}
        seconds, inputs = seconds + said["seconds"], inputs + said["inputs"]
        edges = max([edges, *map(int, re.findall(r"cov: (\d+)", shown))])
        findings |= set(said["findings"])
        if code == 0:
            break
        deaths += 1
        kept = options.found / f"{name}-death-{deaths}"
        kept.write_bytes((options.found / f"{name}.last").read_bytes())
        kept.with_name(kept.name + ".txt").write_text(shown[-5000:])
    if deaths:
        findings.add(f"the process died {deaths} times, see {name}-death-*")
    print(f"{name}: {inputs} inputs, {len(findings)} findings", *sorted(findings), sep="\n  ", file=sys.stderr)
    return f"| {name} | {seconds:.0f} | {inputs:,} | {edges or '–'} | {len(findings)} |"


def _fuzz(options: Any) -> None:
    """Fuzz one target, here."""
    sys.path[0:1] = [str(HERE.parent), str(HERE.parent.parent / "src")]
    try:
        atheris: Any = importlib.import_module("atheris")
    except ImportError:
        atheris = None
    if atheris is not None:  # loops of core are compiled, and cannot be watched; the hook stays, for late imports
        atheris.instrument_imports(include=["pufferfish"], exclude=_core()).__enter__()
    (name,) = options.targets
    module = importlib.import_module(f"fuzz.{NAMES[name]}")
    for seed in module.TARGET.seeds():  # what is loaded late is loaded now, untimed
        with suppress(Exception):
            module.TARGET.one_input(seed)
    session = _Session(module.TARGET, options)
    if atheris is None:
        session.without_coverage()
    else:
        session.with_coverage(atheris)
    sys.exit(0)


def _core() -> list[str]:
    """Return the modules of core by name."""
    source = HERE.parent.parent / "src"
    return [
        ".".join(file.relative_to(source).with_suffix("").parts) for file in source.glob("pufferfish/_core/**/*.py")
    ]


class _Session:
    """The inputs of one target, counted, with what they found."""

    def __init__(self, target: Any, options: Any) -> None:
        from fuzz.target import finding_of

        self._target, self._options, self._finding_of = target, options, finding_of
        self._inputs, self._findings = 0, dict[str, int]()
        self._begun = self._told = time.monotonic()

    def one(self, data: bytes) -> None:
        """Try an input, and write down what it finds, once for each fault."""
        (self._options.found / f"{self._target.name}.last").write_bytes(data)
        faulthandler.dump_traceback_later(_STUCK, exit=True)
        found = self._finding_of(self._target, data)
        faulthandler.cancel_dump_traceback_later()
        self._inputs += 1
        if found is not None:
            if found.kind not in self._findings:
                stem = re.sub(r"[^A-Za-z0-9]+", "-", found.kind)[:80]
                path = self._options.found / f"{self._target.name}-{stem}"
                path.write_bytes(data)
                path.with_name(path.name + ".txt").write_text(found.says)
            self._findings[found.kind] = self._findings.get(found.kind, 0) + 1
        if found is not None or time.monotonic() - self._told > 1:
            self._tell()

    def _tell(self) -> None:
        self._told = time.monotonic()
        said = {"seconds": self._told - self._begun, "inputs": self._inputs, "findings": self._findings}
        (self._options.found / f"{self._target.name}.json").write_text(json.dumps(said))

    def without_coverage(self) -> None:
        """Change the seeds until the time is up."""
        rng = random.Random(self._options.seed or None)
        seeds = list(self._target.seeds())
        while time.monotonic() - self._begun < self._options.seconds:
            data = rng.choice(seeds)
            for _ in range(rng.choice([1, 1, 2])):
                data = self._target.mutated(data, rng)
            self.one(data)
        self._tell()

    def with_coverage(self, atheris: Any) -> None:
        """Let libFuzzer choose what is changed further; it ends the process itself."""

        def mutator(data: bytes, most: int, seed: int) -> bytes:
            rng = random.Random(seed)
            return self._target.mutated(bytes(data), rng)[:most]

        corpus = self._options.corpus or self._options.found / "corpus"
        folder = corpus / self._target.name
        folder.mkdir(parents=True, exist_ok=True)
        seeds = self._target.seeds()
        for i, seed in enumerate(seeds):
            (folder / f"seed-{i}").write_bytes(seed)
        most = 4 * max(map(len, seeds)) + 4096
        words = [f"-max_total_time={self._options.seconds}", f"-max_len={most}", "-timeout=0", "-rss_limit_mb=3000"]
        words += [f"-artifact_prefix={self._options.found}/"]
        words += ["-len_control=0", "-print_final_stats=1", f"-seed={self._options.seed}"]
        atheris.Setup([sys.argv[0], *words, str(folder)], self.one, custom_mutator=mutator)
        atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
