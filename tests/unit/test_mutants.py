import ast
from pathlib import Path

from mutants import MUTANTS

SOURCE = Path(__file__).parent.parent.parent / "src" / "pufferfish"


def test_every_line_that_mutants_change_is_there_once() -> None:
    """Who changes such a line changes its fault too; ``make mutants`` takes long to say so."""
    for mutant in MUTANTS:
        source = (SOURCE / mutant.file).read_text()
        assert source.count(mutant.old) == 1, mutant.name
        if mutant.file.endswith(".py"):
            ast.parse(source.replace(mutant.old, mutant.new), mutant.name)
        for name in mutant.tests.split():
            assert (SOURCE.parent.parent / "tests" / name).exists(), (mutant.name, name)
