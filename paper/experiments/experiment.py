"""What an experiment is: parts of work that give rows of numbers, and what tables and a figure make of them.

Adding one is one file that ends in an :class:`Experiment`, and one line in :mod:`paper.experiments`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from paper.experiments.datasets import DataSets
from paper.experiments.sampling import stream
from paper.experiments.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FITTED", "Experiment", "Kind", "Part", "Row", "Settings", "index", "names_of"]

Row = dict[str, str | float | int | None]
"""One line of the CSV file: names of columns to numbers, texts, or nothing."""

Kind = Literal["activity", "electricity"]


def index(rows: Sequence[Row], *columns: str) -> dict[Any, Row]:
    """Return rows by what they have in some columns: a tuple, or the value itself where it is one column."""
    keys = [tuple(row[name] for name in columns) for row in rows]
    return {key[0] if len(columns) == 1 else key: row for key, row in zip(keys, rows, strict=True)}


def names_of(rows: Sequence[Row]) -> list[Any]:
    """Return the names of the data in rows, each once."""
    return list(dict.fromkeys(row["data"] for row in rows))


FITTED = "model fitted to the private data: a comparison, not a guarantee"
"""What every output says whose Θ is the chain fitted to the very data that are released, as in the paper."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run was asked for.

    Parameters
    ----------
    seed : int
        Of all simulated data and noise.
    trials : int
        Releases simulated for each cell.
    data : DataSets
        The data sets that were found.
    """

    seed: int
    trials: int
    data: DataSets = field(default_factory=DataSets)

    def stream(self, *names: object) -> np.random.Generator:
        """Return random numbers of their own for whatever has these names."""
        return stream(self.seed, *names)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of work that is done once, however often a run is interrupted.

    Parameters
    ----------
    key : str
        Its name, unique in the experiment.
    work : callable
        Returns the rows.
    """

    key: str
    work: Callable[[], list[Row]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table or figure of the paper.

    Parameters
    ----------
    name : str
        On the command line, and of the files.
    title : str
        What is shown.
    source : str
        Where the paper has it.
    trials : int
        As many as in the paper.
    needs : tuple of str
        Kinds of data without which there is nothing to do; any of them is enough.
    uses : tuple of str
        Kinds of data that it reads where they are.
    parts, about, tables, figure : callable
        The work; sentences about what was done; what to show of the rows.
    """

    name: str
    title: str
    source: str
    trials: int
    needs: tuple[Kind, ...]
    uses: tuple[Kind, ...]
    parts: Callable[[Settings], list[Part]]
    about: Callable[[Sequence[Row], Settings], list[str]]
    tables: Callable[[Sequence[Row], Settings], list[Table]]
    figure: Callable[[Sequence[Row], Settings], "Figure"]
