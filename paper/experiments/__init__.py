"""The tables and figures of the paper, and other bounds; to add one, write its file and name it here."""

from paper.experiments.arena import ARENA
from paper.experiments.datasets import DataSets, find_data
from paper.experiments.experiment import Experiment, Settings
from paper.experiments.figure_activity import FIGURE_ACTIVITY
from paper.experiments.figure_synthetic import FIGURE_SYNTHETIC
from paper.experiments.other_bounds import OTHER_BOUNDS
from paper.experiments.running import Results, run, workplace
from paper.experiments.table_activity import TABLE_ACTIVITY
from paper.experiments.table_composition import TABLE_COMPOSITION
from paper.experiments.table_coverage import TABLE_COVERAGE
from paper.experiments.table_power import TABLE_POWER
from paper.experiments.table_runtime import TABLE_RUNTIME

__all__ = [
    "EXPERIMENTS",
    "DataSets",
    "Experiment",
    "Results",
    "Settings",
    "find_data",
    "run",
    "workplace",
]

EXPERIMENTS: tuple[Experiment, ...] = (
    FIGURE_SYNTHETIC,
    TABLE_ACTIVITY,
    FIGURE_ACTIVITY,
    TABLE_POWER,
    TABLE_RUNTIME,
    TABLE_COMPOSITION,
    OTHER_BOUNDS,
    TABLE_COVERAGE,
    ARENA,
)
"""What ``python -m paper reproduce`` offers, in this order."""
