"""What the arena releases: runs of real records, the chain that everybody knows, and the kinds of noise."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from paper.experiments.datasets import ActivityTable, PowerTable
from paper.experiments.files import FILTERS
from pufferfish.mechanisms import EntryDP, GroupDP, LeakagePropagation, Mechanism, MQMExact
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import Query
from pufferfish.theta.markov_chain import MarkovChain

__all__ = [
    "EPSILON",
    "FOR_AN_HOUR",
    "INDEPENDENT",
    "LONGEST",
    "SHORTEST",
    "Records",
    "activity_records",
    "power_records",
]

EPSILON = 1.0
LONGEST = 1440
"""The most records of a run: a day of minutes."""
SHORTEST = 400
"""The fewest."""
_WATTS = (500, 1500, 3000)
"""Where a household's four states begin."""

INDEPENDENT = "independent noise"
FOR_AN_HOUR = "LeakagePropagation, for an hour"


@dataclass(frozen=True, eq=False)
class Records:
    """Runs of records, and the chain that everybody knows.

    Parameters
    ----------
    title : str
        Of the data.
    runs : list of (n,) ndarray of int
        States, run by run.
    owners : list of int
        Whose each run is.
    states : int
        How many states there are.
    step : int
        Seconds of a record.
    """

    title: str
    runs: list[NDArray[np.int64]]
    owners: list[int]
    states: int
    step: int

    @property
    def hour(self) -> int:
        """Records of an hour."""
        return 3600 // self.step

    @cached_property
    def longest(self) -> int:
        """Records of the longest run."""
        return max(map(len, self.runs))

    @cached_property
    def chain(self) -> MarkovChain:
        """The chain of all runs, one transition more in every cell, stationary."""
        counts = np.ones((self.states, self.states))
        for run in self.runs:
            np.add.at(counts, (run[:-1], run[1:]), 1)
        return MarkovChain(counts / counts.sum(axis=1, keepdims=True))

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """Transition matrix of the chain, (k, k)."""
        return np.asarray(self.chain.transition_matrix)

    @cached_property
    def law(self) -> NDArray[np.float64]:
        """Stationary law of the chain, (k,)."""
        return np.asarray(self.chain.stationary_distribution)

    @cached_property
    def counted(self) -> int:
        """The most frequent state."""
        return int(np.bincount(np.concatenate(self.runs)).argmax())

    def drawn(self, rng: np.random.Generator) -> "Records":
        """Return runs of the same lengths, drawn from the chain itself: here the attackers' chain is the true one."""
        steps, runs = self.matrix.cumsum(axis=1), list[NDArray[np.int64]]()
        for run in self.runs:
            luck, drawn = rng.random(len(run)), np.empty(len(run), dtype=np.int64)
            drawn[0] = min(int(np.searchsorted(self.law.cumsum(), luck[0], side="right")), self.states - 1)
            for i in range(1, len(run)):
                drawn[i] = min(int(np.searchsorted(steps[drawn[i - 1]], luck[i], side="right")), self.states - 1)
            runs.append(drawn)
        new = Records(f"{self.title}, drawn from the chain", runs, self.owners, self.states, self.step)
        new.__dict__["chain"] = self.chain
        return new

    def noises(self, query: Query) -> Iterator[tuple[str, Calibration, dict[int | None, float]]]:
        """Return each noise, and what it promises of so many records; None is a whole run."""
        independent = MarkovChain(np.tile(self.law, (self.states, 1)), self.law)
        correlated = LeakagePropagation(self.chain, length=self.longest)
        made: list[tuple[str, Mechanism, int | None]] = [
            (INDEPENDENT, EntryDP(independent, length=self.longest), None),
            ("GroupDP", GroupDP(self.chain, length=self.longest), None),
            ("MQMExact", MQMExact(self.chain, length=self.longest), None),
            ("LeakagePropagation", correlated, None),
            (FOR_AN_HOUR, correlated, self.hour),
        ]
        for title, mechanism, protect in made:
            found = mechanism.calibrate(query, EPSILON, protect=protect)
            promised = found.promises(f"{self.step}s")
            held = {p.steps: p.epsilon for p in promised if p.steps is not None and not p.near}
            yield title, found, {1: held[1], self.hour: held[self.hour], None: held[self.longest]}


# -- The data ----------------------------------------------------------------------------------------------------------


def activity_records(table: ActivityTable) -> Records:
    """Return the runs of a table of activity: what its filters leave, without gaps."""
    frame = table.load().with_columns(pl.col("subject").cast(pl.String), pl.col("state").cast(pl.String))
    kept = [pl.col(name) for name in FILTERS if name in frame.columns]
    frame = frame.filter(*kept, pl.col("state").is_not_null())
    return _records(table.title, frame.with_columns(_seconds(frame)).sort("subject", "timestamp"))


def power_records(table: PowerTable) -> Records:
    """Return the runs of a household's power, in four states; rows without times are minutes in a row."""
    frame = table.rows().filter(pl.col("watts").is_not_null())
    watts = pl.col("watts").cast(pl.Float64)
    state = pl.sum_horizontal([(watts >= edge).cast(pl.Int64) for edge in _WATTS])
    times = _seconds(frame) if "timestamp" in frame.columns else 60 * pl.int_range(pl.len())
    rows = frame.select(state.alias("state"), times.alias("timestamp"), subject=pl.lit("household"))
    return _records(table.title, rows.sort("timestamp"))


def _seconds(frame: pl.DataFrame) -> pl.Expr:
    times = pl.col("timestamp")
    return (times.str.to_datetime() if frame.schema["timestamp"] == pl.String else times).dt.epoch("s")


def _records(title: str, frame: pl.DataFrame) -> Records:
    """Cut rows, sorted by subject and time, into runs without a gap, of at most a day of minutes."""
    seconds = frame["timestamp"].to_numpy()
    states, codes = np.unique(frame["state"].to_numpy(), return_inverse=True)
    _, owners = np.unique(frame["subject"].to_numpy(), return_inverse=True)
    apart = np.diff(seconds)
    step = int(np.median(apart))
    ends = np.flatnonzero((apart != step) | (np.diff(owners) != 0)) + 1
    stretches = np.split(np.arange(len(codes)), ends)
    parts = [part for rows in stretches for part in np.split(rows, range(LONGEST, len(rows), LONGEST))]
    parts = [part for part in parts if len(part) >= SHORTEST]
    return Records(title, [codes[part] for part in parts], [int(owners[part[0]]) for part in parts], len(states), step)
