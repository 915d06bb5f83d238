"""The tables and figures of the paper, and other bounds; to add one, write its file and name it here."""

from pufferfish.experiments.datasets import DataSets, find_data
from pufferfish.experiments.experiment import Experiment, Settings
from pufferfish.experiments.figure_activity import FIGURE_ACTIVITY
from pufferfish.experiments.figure_synthetic import FIGURE_SYNTHETIC
from pufferfish.experiments.other_bounds import OTHER_BOUNDS
from pufferfish.experiments.running import Results, run, workplace
from pufferfish.experiments.table_activity import TABLE_ACTIVITY
from pufferfish.experiments.table_composition import TABLE_COMPOSITION
from pufferfish.experiments.table_power import TABLE_POWER
from pufferfish.experiments.table_runtime import TABLE_RUNTIME

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
)
"""What ``pufferfish reproduce`` offers, in this order."""
