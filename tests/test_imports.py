"""Imports go one way: the tree reads like the theory, and no arrow points back."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "pufferfish"

LAYERS = [
    {"errors", "digits", "moments", "starting", "hints"},
    {"calls", "durations", "markup"},
    {"shown", "files"},
    {"core"},
    {"frozen_record", "given"},
    {"theta", "witness"},
    {"queries"},
    {"calibration"},
    {"laws"},
    {"mechanisms"},
    {"noise", "comparison_row", "few_records", "promises"},
    {"report"},
    {"comparison_table"},
    {"wasserstein_inf", "comparison", "robustness"},
    {"data"},
    {"model_file"},
    {"fit", "fit_forgetting", "ledger"},
    {"fit_subjects"},
    {"check"},
    {"release"},
    {"experiments"},
    {"audit"},
    {"cli"},
    {"__init__", "__main__"},
]
"""Parts of the package from the bottom up; a part may import from its own layer's files and from below."""

SHELVES = [
    {"numbers"},
    {"divergence"},
    {"chains", "networks"},
    {"gk16", "laws", "phi", "strategies"},
    {"propagation", "quilts"},
]
"""Folders of ``core`` from the bottom up: a file may import from its own folder and from shelves below."""


def layer_of(part: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if part in layer)


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "pufferfish":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("pufferfish.")}
    return found


def test_no_import_points_back() -> None:
    """All files are read, in one test: of a parametrised one only a few cases would run."""
    for path in sorted(SOURCE.rglob("*.py")):
        here = part_of(path)
        for target in imports_of(path) - {here}:
            assert layer_of(target) < layer_of(here), f"{path.name} ({here}) imports {target}, which stands above it"


def shelf_of(folder: str) -> int:
    return next(i for i, shelf in enumerate(SHELVES) if folder in shelf)


def test_every_folder_of_core_has_a_shelf_and_imports_go_down() -> None:
    for path in (SOURCE / "core").rglob("*.py"):
        here = path.relative_to(SOURCE / "core").parts[0]
        if here == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom):
                continue
            parts = (node.module or "").split(".")
            if parts[:2] == ["pufferfish", "core"]:
                folder = parts[2]
                assert folder == here or shelf_of(folder) < shelf_of(here), f"{path.name} ({here}) imports {folder}"


def test_every_part_has_a_layer() -> None:
    parts = {part_of(p) for p in SOURCE.rglob("*.py")}
    named = set().union(*LAYERS) - {"__main__"}
    assert parts - {"__main__"} == named


def test_no_file_of_a_report_is_imported_in_a_circle() -> None:
    """Imports inside functions count too: they hide a circle, and do not break it."""
    below = {
        path.stem: {
            node.module.split(".")[2]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pufferfish.report.")
        }
        for path in (SOURCE / "report").glob("*.py")
    }
    while below:
        lowest = {name for name, needed in below.items() if not needed & below.keys()}
        assert lowest, f"each of these needs another one: {', '.join(sorted(below))}"
        below = {name: needed for name, needed in below.items() if name not in lowest}


def test_only_noise_draws_randomness() -> None:
    """Experiments simulate, with a seed; no release can reach that, for they stand above it.

    Synthetic series are drawn from what is released already, and only a release that is made asks for them.
    """
    synthetic = SOURCE / "release" / "synthetic.py"
    for path in SOURCE.rglob("*.py"):
        assert "release.synthetic" not in path.read_text() or path == SOURCE / "release" / "record.py", path
    for path in set(SOURCE.rglob("*.py")) - {synthetic}:
        text = path.read_text()
        assert "import random" not in text, path
        assert "np.random" not in text or part_of(path) == "experiments", path
        assert "default_rng" not in text or path.parts[-2:] == ("experiments", "sampling.py"), path
        if path.name != "noise.py":
            assert "opendp." not in text, path


def test_core_knows_only_numpy() -> None:
    for path in (SOURCE / "core").rglob("*.py"):
        modules = {
            (node.module or "").split(".")[0]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom)
        }
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
        "import sys\nfrom pufferfish.noise import discrete_laplace_noise\n"
        "discrete_laplace_noise([1], 3.0, lipschitz=1)()\n"
        "print([name for name in ('sklearn', 'scipy', 'polars') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
