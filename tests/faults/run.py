"""All faults, or some parts, and the page of what was tried: ``python tests/faults/run.py [PART …] [--quick]``."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[0:1] = [str(HERE.parent), str(HERE.parent.parent / "src")]

from faults.at_once import at_once  # noqa: E402
from faults.clock import clock  # noqa: E402
from faults.disks import disks  # noqa: E402
from faults.engines import engines  # noqa: E402
from faults.flips import flips  # noqa: E402
from faults.killed import killed  # noqa: E402
from faults.rows import Row  # noqa: E402
from pufferfish.cli import Commands  # noqa: E402

PAGE = HERE.parent.parent / "docs" / "faults.md"

PARTS: dict[str, Callable[[Path, bool], Iterator[Row]]] = {
    "killed": killed,
    "at-once": at_once,
    "disks": disks,
    "engines": engines,
    "clock": clock,
    "flips": flips,
}

ELSEWHERE = """
## Faults in the usual tests

| fault | test |
|---|---|
| a Spark worker that is killed while a table is read | `tests/contract/test_spark.py::test_a_worker_that_is_killed_changes_nothing` |
| a program killed at each step of a release with a ledger | `tests/unit/ledger/test_ledger_processes.py` |
| a release for each subject killed at each step | `tests/unit/release/test_release_each.py::test_a_killed_release_is_booked_once_and_drawn_once` |
| a program killed that makes one release after another | `tests/unit/cli/test_cli_interrupted.py::test_programs_killed_at_any_moment` |
| killed between the steps in which a file takes its name | `tests/unit/_base/test_files.py::test_a_killed_program_leaves_no_empty_file` |
| Ctrl-C at any moment | `tests/unit/cli/test_cli_interrupted.py::test_ctrl_c_at_any_moment_loses_nothing_that_is_spent` |
| four programs on one ledger | `tests/unit/ledger/test_ledger_processes.py::test_four_programs_at_once_spend_one_budget` |
| a disk that is full | `tests/unit/cli/test_cli_interrupted.py::test_on_a_disk_that_is_full` |
| a clock that is set back | `tests/unit/release/test_verify.py::test_a_clock_that_is_set_back_spoils_no_release` |
| every bit of a ledger | `tests/unit/ledger/test_ledger_files.py::test_every_bit_counts` |
| an experiment that is killed goes on | `paper/tests/test_running.py` |
"""  # noqa: E501


def page(rows: list[Row]) -> str:
    """Return the page of what was tried."""
    trials, broken = sum(row.trials for row in rows), sum(row.wrong for row in rows)
    lines = [
        "# Faults",
        "",
        "What happens when a program is killed, a disk is full, an engine fails, the clock is set back or a bit flips?",
        f"**{trials:,} trials, {broken} promises broken.** `make faults` runs them and writes this page.",
        "",
        "After each trial this must hold:",
        "",
        "- nothing was released without its entry in the ledger, and what is spent never falls;",
        "- each file is absent, as before, or whole, and no hidden file is left;",
        "- the same command works again, or says in one line what to do. Every refusal is one line.",
        "",
        "Most trials are whole commands, each in a process of its own. Commands are killed before each of their calls",
        "of the system, and at random times. Disks are tried with every command. Each of the programs at once asks",
        'for 0.5 of a budget of 1.7. "Had finished" means that the command had done its work, and says so.',
        "",
        "| fault | trials | what came out | promises broken |",
        "|---|---|---|---|",
        *(f"| {row.what} | {row.trials} | {row.found} | {row.wrong} |" for row in rows),
        f"| together | {trials:,} | | {broken} |",
    ]
    return "\n".join(lines) + "\n" + ELSEWHERE


def run(*words: str) -> int:
    """Try all faults, or some parts; return how many promises are broken. Only all of them write the page."""
    for module in set(Commands.modules.values()):
        __import__(module)
    quick, parts = "--quick" in words, [name for name in PARTS if name in words] or list(PARTS)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in parts:
            for row in PARTS[name](Path(folder) / name, quick):
                rows.append(row)
                print(f"{row.trials:>5} {row.what}: {row.found}; broken: {row.wrong}", flush=True)
    if not quick and len(parts) == len(PARTS):
        PAGE.write_text(page(rows))
    return sum(row.wrong for row in rows)


if __name__ == "__main__":
    sys.exit(min(run(*sys.argv[1:]), 1))
