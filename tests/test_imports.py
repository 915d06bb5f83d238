"""Imports go one way: the tree reads like the theory, no arrow points up, and there are no circles.

Imports inside of functions count too: they hide a circle, and do not break it.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "pufferfish"

FLOORS = [
    {"errors"},
    {"_base"},
    {"_draw"},
    {"_core"},
    {"theta"},
    {"queries"},
    {"mechanisms"},
    {"data"},
    {"fit"},
    {"compare"},
    {"robustness"},
    {"check"},
    {"ledger"},
    {"release"},
    {"cli"},
    {"__init__", "__main__", "polars"},
]
"""Rooms of the package from the bottom up: a file imports from its own room and from those below."""

SHELVES = [
    {"numbers"},
    {"divergence"},
    {"chains", "networks"},
    {"gk16", "laws", "phi", "strategies"},
    {"propagation", "quilts"},
]
"""The same inside of ``_core``."""

FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES
}


@cache
def nodes_of(path: Path) -> list[ast.Import | ast.ImportFrom | ast.Call]:
    """Return what may import, wherever it stands in a file."""
    tree = ast.parse(path.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)]


@cache
def imports_of(path: Path) -> list[str]:
    """Return the modules of this package that a file imports, wherever it does."""
    return list(_imports_of(path))


def _imports_of(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pufferfish":
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in MODULES else node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)


def room_of(path: Path, inside: Path = SOURCE) -> str:
    return path.relative_to(inside).parts[0].removesuffix(".py")


def number_of(room: str, of: list[set[str]]) -> int:
    return next(i for i, rooms in enumerate(of) if room in rooms)


def test_what_is_imported_is_installed_with_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = {
        re.split(r"[\[<>=~]", text)[0].replace("-", "_") for text in sum(extras.values(), project["dependencies"])
    }
    known = declared | sys.stdlib_module_names | {"pufferfish"}
    for path in FILES:
        beside = {each.stem for each in path.parent.glob("*.py")} if path.parent.name == "checker" else set[str]()
        for node in nodes_of(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module"
            ):
                names += [name.value for name in node.args[:1] if isinstance(name, ast.Constant)]
            assert {str(name).split(".")[0] for name in names} <= known | beside, path


@pytest.mark.parametrize(("inside", "order"), [(SOURCE, FLOORS), (SOURCE / "_core", SHELVES)], ids=["rooms", "_core"])
def test_no_import_points_up(inside: Path, order: list[set[str]]) -> None:
    here = [path for path in FILES if path.is_relative_to(inside)]
    assert {room_of(path, inside) for path in here} - {"__init__"} == set().union(*order) - {"__init__"}
    for path in here:
        for target in (MODULES[name] for name in imports_of(path)):
            rooms = room_of(path, inside), room_of(target, inside) if target in here else None
            if rooms[1] is None or rooms[0] == rooms[1] or "__init__" in rooms:
                continue
            assert number_of(rooms[1], order) < number_of(rooms[0], order), f"{path.name} ({rooms[0]}) imports {target}"


def test_there_are_no_circles() -> None:
    needs: defaultdict[Path, set[Path]] = defaultdict(set)
    for path in FILES:
        needs[path] |= {MODULES[name] for name in imports_of(path)} - {path}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(str(path.relative_to(SOURCE)) for path in error.args[1]))


def test_files_with_an_underscore_are_their_rooms_own() -> None:
    """A file that others import has none; nothing is loose at the root but errors."""
    for path in FILES:
        for target in (MODULES[name] for name in imports_of(path)):
            if target.name.startswith("_") and target.name != "__init__.py":
                assert target.parent == path.parent, f"{path} imports {target}"
    alone = {"__init__.py", "__main__.py", "errors.py", "polars.py"}
    assert {path.name for path in FILES if path.parent == SOURCE} == alone


def test_the_package_knows_nothing_of_the_paper() -> None:
    for path in FILES:
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in {"paper", "tests"}


def test_only_noise_draws_randomness() -> None:
    """Experiments simulate, with a seed; no release can reach that, for they stand outside.

    Synthetic series are drawn from what is released already, and only what reads a release asks for them. Days of
    public data are drawn again to say how sure a fit is, and people are simulated to say what chance alone gives.
    """
    synthetic = SOURCE / "release" / "steps.py"
    after_release = [SOURCE / "release" / name for name in ("release.py", "released_check.py")]
    seeded = {SOURCE / "fit" / name for name in ("defend.py", "members.py")}
    for path in FILES:
        assert "release.steps" not in path.read_text() or path in after_release, path
    for path in [*(set(FILES) - {synthetic} - seeded), *(ROOT / "paper").rglob("*.py")]:
        text = path.read_text()
        outside, tests = SOURCE not in path.parents, "tests" in path.parts
        assert "import random" not in text or tests, path
        assert "np.random" not in text or outside, path
        assert "default_rng" not in text or path.parts[-2:] == ("experiments", "sampling.py") or tests, path
        if path.name != "noise.py":
            assert "opendp." not in text, path


def test_core_knows_only_numpy() -> None:
    for path in FILES:
        if SOURCE / "_core" not in path.parents:
            continue
        modules = {(node.module or "").split(".")[0] for node in nodes_of(path) if isinstance(node, ast.ImportFrom)}
        assert not modules & {"scipy", "polars", "narwhals", "click", "opendp", "msgspec"}, path


@pytest.mark.program
def test_heavy_libraries_are_loaded_when_they_are_needed() -> None:
    """Whoever asks for help, or calibrates noise for a small chain, does not wait for what reads tables or compiles."""
    heavy = ["matplotlib", "networkx", "numba", "narwhals", "opendp", "opt_einsum", "pandas", "polars", "rich", "scipy"]
    code = (
        "import sys, pufferfish as pf, pufferfish.cli\n"
        "chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])\n"
        "pf.LeakagePropagation(chain, 100).calibrate(pf.Histogram(), 1.0)\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.program
def test_noise_does_not_load_what_opendp_could_do_besides() -> None:
    """Where scikit-learn, say, is installed for other work, a release does not wait seconds for it."""
    code = (
        "import sys\nfrom pufferfish.release.noise import discrete_laplace_noise\n"
        "discrete_laplace_noise([1], 3.0, lipschitz=1)()\n"
        "print([name for name in ('sklearn', 'scipy', 'polars') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
