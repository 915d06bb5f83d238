"""Print the oldest version of every dependency that pyproject.toml allows, one requirement a line.

python scripts/oldest.py > constraints.txt
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def oldest(project: dict[str, object]) -> list[str]:
    """Return ``name==version`` for every dependency, and those of the extras."""
    extras: dict[str, list[str]] = project.get("optional-dependencies", {})  # type: ignore[assignment]
    given: list[str] = [*project["dependencies"], *(one for extra in extras.values() for one in extra)]  # type: ignore[misc]
    named = [re.sub(r"\[.*?\]", "", requirement) for requirement in given]  # pip takes no extras in constraints
    return [requirement.replace(">=", "==") for requirement in named]


if __name__ == "__main__":
    print("\n".join(oldest(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])))
