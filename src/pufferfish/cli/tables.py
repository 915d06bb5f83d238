"""Tables, read as a model says."""

import hashlib
from pathlib import Path
from typing import Any

from pufferfish.cli.printing import progress
from pufferfish.data import Sequences, read_sequences
from pufferfish.data.durations import parse_duration
from pufferfish.errors import DataError
from pufferfish.model_file import Model

__all__ = ["fingerprint", "read_under", "step_length"]


def read_under(table: Path, model: Model, reading: dict[str, Any]) -> Sequences:
    """Read a table by the model's states, and its bins unless others are given; refuse records of another step."""
    options = dict(reading)
    if options["bins"] is None and model.bins is not None:
        options["bins"] = model.bins
    with progress("reading the table"):
        sequences = read_sequences(table, states=model.theta.states, **options)
    step = sequences.base.step
    if step is not None and model.step is not None and step_length(step) != step_length(model.step):
        raise DataError(
            f"the model's transitions take {model.step}, the table's records are {step} apart: use a model of this "
            f"step, or give --step {model.step} if that is what they are"
        )
    return sequences


def step_length(step: str) -> float:
    """Return how long a step is, to compare it: 60min is 1h."""
    return float(parse_duration(step, "step").value)


def fingerprint(table: Path) -> str:
    """Return a hash of the file, by which a model knows the table it was fitted to."""
    with table.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
