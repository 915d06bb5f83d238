"""The command line in tests: a run of a command, and what every refusal looks like."""

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from click.testing import CliRunner, Result

from pufferfish.cli import main

__all__ = ["READING", "Result", "refused", "run", "write_table"]

READING = ["--state", "activity", "--subject", "id", "--time", "minute", "--max-gap", "1min"]
"""How the tables of :func:`write_table` are read."""


def every_command() -> dict[str, click.Command]:
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def run(*arguments: object, program: click.Group = main) -> Result:
    return CliRunner().invoke(program, [str(a) for a in arguments])


def refused(*arguments: object, says: Sequence[str] = (), code: int = 2, program: click.Group = main) -> str:
    """Return the one line on standard error that a command ends with: an exit code, and no traceback."""
    result = run(*arguments, program=program)
    assert result.exit_code == code, (arguments, result.output, result.exception)
    assert isinstance(result.exception, SystemExit), result.exception
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("error: ")
    for words in says:
        assert words in line
    return line


def write_table(path: Path, seed: int, subjects: int = 3, minutes: int = 120, awake: int = 80) -> Path:
    """Write a table of a binary chain for each subject, who is awake for the first so many minutes."""
    rng = np.random.default_rng(seed)
    lines = ["id,minute,activity,awake"]
    for s in range(subjects):
        state = 0
        for minute in range(minutes):
            state = int(rng.random() < (0.9 if state else 0.2))
            hour, rest = divmod(minute, 60)
            lines.append(f"S{s},2024-05-01 {8 + hour:02d}:{rest:02d}:00,{['rest', 'active'][state]},{minute < awake}")
    path.write_text("\n".join(lines) + "\n")
    return path


def in_two(path: Path) -> tuple[Path, Path]:
    """Write the two halves of a table of :func:`write_table` to files of their own, the later records to the second."""
    head, *lines = path.read_text().splitlines()
    for part, late in (first := path.with_stem("first"), False), (second := path.with_stem("second"), True):
        rows = [line for line in lines if ("2024-05-01 09:00" <= line.split(",")[1]) == late]
        part.write_text("\n".join([head, *rows]) + "\n")
    return first, second
