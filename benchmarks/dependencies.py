"""What each dependency takes: size where it is installed, and the time that the program takes to start.

    python benchmarks/dependencies.py

Sizes are those of the files that pip says belong to a package, in the Python that runs this. A package that only others
need is counted by itself.
"""

import re
import subprocess
import sys
import time
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.markers import Marker


def needed(requirements: list[str]) -> set[str]:
    """Names of the packages that are required, with those that they need."""
    found, open_lines = set[str](), list(requirements)
    while open_lines:
        text, _, condition = open_lines.pop().partition(";")
        match = re.match(r"[A-Za-z0-9._-]+", text)
        name = re.sub(r"[-_.]+", "-", match[0]).lower() if match else ""
        if not name or name in found or (condition.strip() and not Marker(condition).evaluate({"extra": ""})):
            continue
        found.add(name)
        try:
            open_lines.extend(distribution(name).requires or [])
        except PackageNotFoundError:
            pass
    return found


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
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    plain = needed(project["dependencies"])
    print("# What is installed\n\n| needed by | package | MB |\n|---|---|---:|")
    extras = {f"[{extra}]": needed(lines) - plain for extra, lines in project["optional-dependencies"].items()}
    for extra, names in {"plain install": plain, **extras}.items():
        if extra == "[docs]":
            continue  # for those who change the program
        sizes = {name: megabytes(name) for name in names}
        known = {name: size for name, size in sizes.items() if size is not None}
        large = {name: size for name, size in sorted(known.items(), key=lambda item: -item[1]) if size >= 10}
        for name, size in {"all together": sum(known.values()), **large}.items():
            print(f"| {extra} | {name} | {size:.0f} |")
    empty = seconds(sys.executable, "-c", "pass")
    print("\n| starting | seconds | times an empty program |\n|---|---:|---:|")
    for label, command in {
        "`import pufferfish`": ("-c", "import pufferfish"),
        "the first public name": ("-c", "import pufferfish; pufferfish.MarkovChain"),
        "`pufferfish --help`": ("-m", "pufferfish", "--help"),
        "`pufferfish release --help`": ("-m", "pufferfish", "release", "--help"),
    }.items():
        took = seconds(sys.executable, *command)
        print(f"| {label} | {took:.2f} | {took / empty:.1f} |")


if __name__ == "__main__":
    main()
