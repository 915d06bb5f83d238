"""What each dependency takes: size where it is installed, and the time that the program takes to start.

    python benchmarks/dependencies.py

Sizes are those of the files that pip says belong to a package, in the Python that runs this. A package that only others
need is counted by itself.
"""

import re
import subprocess
import sys
import time
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

EXTRAS = ("plot", "duckdb", "pandas", "spark")


def needed(name: str, extra: str = "") -> set[str]:
    """Names of the packages that a package needs, with those that they need."""
    found, open_names = set[str](), [(name, extra)]
    while open_names:
        at, wanted = open_names.pop()
        try:
            requires = distribution(at).requires or []
        except PackageNotFoundError:
            continue
        for line in requires:
            text, _, condition = line.partition(";")
            if not holds(condition.strip(), wanted):
                continue
            match = re.match(r"[A-Za-z0-9._-]+", text)
            other = re.sub(r"[-_.]+", "-", match[0]).lower() if match else ""
            if other and other not in found:
                found.add(other)
                open_names.append((other, ""))
    return found


def holds(condition: str, extra: str) -> bool:
    if not condition:
        return not extra
    from packaging.markers import Marker

    return Marker(condition).evaluate({"extra": extra}) and (not extra or "extra" in condition)


def megabytes(name: str) -> float | None:
    try:
        found: Distribution = distribution(name)
    except PackageNotFoundError:
        return None
    files = (found.locate_file(file) for file in found.files or [])
    return sum(path.stat().st_size for path in (Path(str(file)) for file in files) if path.is_file()) / 1e6


def seconds(*command: str) -> float:
    took: list[float] = []
    for _ in range(4):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        took.append(time.perf_counter() - start)
    return min(took[1:])


def main() -> None:
    plain = needed("pufferfish-privacy")
    print(f"{'needed by':>16s} {'package':<22s} {'MB':>7s}")
    for extra, names in [
        ("plain install", plain),
        *((f"[{e}]", needed("pufferfish-privacy", e) - plain) for e in EXTRAS),
    ]:
        sizes = {name: megabytes(name) for name in names}
        known = {name: size for name, size in sizes.items() if size is not None}
        print(f"{extra:>16s} {'all together':<22s} {sum(known.values()):7.1f}")
        for name, size in sorted(known.items(), key=lambda item: -item[1]):
            if size >= 1:
                print(f"{'':>16s} {name:<22s} {size:7.1f}")
    empty = seconds(sys.executable, "-c", "pass")
    for label, command in {
        "python -c pass": ("-c", "pass"),
        "import pufferfish": ("-c", "import pufferfish"),
        "pufferfish --help": ("-m", "pufferfish", "--help"),
        "pufferfish release --help": ("-m", "pufferfish", "release", "--help"),
    }.items():
        took = seconds(sys.executable, *command)
        print(f"{label:>26s} {took:6.2f} s {took / empty:6.1f} times an empty program")


if __name__ == "__main__":
    main()
