from pathlib import Path

from mutants import MUTANTS

SOURCE = Path(__file__).parent.parent.parent / "src" / "pufferfish"


def test_every_line_that_mutants_change_is_there_once() -> None:
    """Who changes such a line changes its fault too; ``make mutants`` takes long to say so."""
    for mutant in MUTANTS:
        assert (SOURCE / mutant.file).read_text().count(mutant.old) == 1, mutant.name
        for name in mutant.tests.split():
            assert (SOURCE.parent.parent / "tests" / name).exists(), (mutant.name, name)
