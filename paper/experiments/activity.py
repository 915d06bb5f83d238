"""Histograms of activity: what the table and the figure share (Section 5.3.1).

The chain of a group is the one fitted to its own records, stationary, as in the paper. ``gaps="independent"`` is the
paper's reading, in which a gap starts a chain that is independent of all before; ``"unobserved"`` keeps one chain for
every participant, whose missing steps are unobserved records.
"""

from collections.abc import Callable, Sequence

import numpy as np

from paper.experiments.contenders import CHAIN_BOUNDS, PARTICIPANT, Contender, fitted
from paper.experiments.datasets import ActivityTable, Gaps, Group, one_by_one
from paper.experiments.experiment import FITTED, Part, Row, Settings
from paper.experiments.sampling import Errors, l1_variance, summary, trial_errors
from pufferfish.data import Sequences
from pufferfish.mechanisms import InfluenceBound
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import Histogram
from pufferfish.theta.markov_chain import MarkovChain

__all__ = ["ACTIVITY_CONTENDERS", "EPSILON", "READINGS", "GroupData", "group_parts", "table_rows"]

EPSILON = 1.0
READINGS: tuple[Gaps, ...] = ("independent", "unobserved")
ACTIVITY_CONTENDERS = (PARTICIPANT, *CHAIN_BOUNDS)
_QUERY = Histogram()
_NOT_FOR_ONE = "hiding a whole participant leaves nothing of their own histogram"


class GroupData:
    """A group's records, read in both ways, with the chain fitted to them.

    Parameters
    ----------
    table : ActivityTable
        Where they are.
    group : Group
        Which.
    """

    def __init__(self, table: ActivityTable, group: Group) -> None:
        frame = table.load()
        self.label = table.label(group)
        self.read: dict[Gaps, Sequences] = {gaps: table.read(frame, group, gaps) for gaps in READINGS}

    @property
    def together(self) -> Sequences:
        """One chain for every participant."""
        return self.read["unobserved"]

    def chain(self) -> tuple[MarkovChain | None, str | None]:
        """Return the fitted chain, or why there is none."""
        return fitted(self.together)

    def lengths_for(self, contender: Contender, gaps: Gaps) -> Sequences:
        """Return the records in the chains that a mechanism is about: a participant's are one, whatever the gaps."""
        return self.together if contender is PARTICIPANT else self.read[gaps]


def group_parts(settings: Settings, work: Callable[[GroupData], list[Row]]) -> list[Part]:
    """Return a part for every group of every table."""
    return [
        Part(table.label(group), lambda t=table, g=group: work(GroupData(t, g)))
        for table in settings.data.activity
        for group in table.groups_of(table.load())
    ]


def table_rows(data: GroupData, settings: Settings) -> list[Row]:
    """Return the errors of every mechanism, for both tasks and both readings of gaps."""
    rows: list[Row] = []
    chain, unfit = data.chain()
    for gaps in READINGS:
        for task in ("aggregate", "individual"):
            for contender in ACTIVITY_CONTENDERS:
                row: Row = {
                    "data": data.label,
                    "participants": data.together.subjects,
                    "records": data.together.records,
                    "longest_chain": max(data.read[gaps].lengths),
                    "gaps": gaps,
                    "task": task,
                    "mechanism": contender.name,
                }
                if chain is None:
                    rows.append(row | {"reason": unfit})
                elif task == "aggregate":
                    rows.append(row | _aggregate(data, contender, gaps, chain, settings))
                else:
                    rows.append(row | _individual(data, contender, gaps, chain, settings))
    return rows


def _aggregate(data: GroupData, contender: Contender, gaps: Gaps, chain: MarkovChain, settings: Settings) -> Row:
    records = data.lengths_for(contender, gaps)
    found, reason = contender.calibrate(chain, records.length, _QUERY, EPSILON)
    if found is None:
        return {"reason": reason}
    names = ("activity", data.label, "aggregate", gaps, contender.name)
    errors = trial_errors(found, [records] * settings.trials, settings.stream(*names))
    return {
        "scale": found.scale,
        "leaks_with_unobserved_gaps": _leaks(contender, data, found, gaps, chain),
        **summary(found.expected_l1_error, l1_variance(found), errors),
        "model": FITTED,
    }


def _leaks(contender: Contender, data: GroupData, found: Calibration, gaps: Gaps, chain: MarkovChain) -> float | None:
    """Return what the same mechanism says of the paper's noise, if a gap does not start an independent chain."""
    if gaps == "unobserved" or contender is PARTICIPANT:
        return None
    bound = contender.make(chain, data.together.length)
    return bound.leakage(found.record_loss) if isinstance(bound, InfluenceBound) else None


def _individual(data: GroupData, contender: Contender, gaps: Gaps, chain: MarkovChain, settings: Settings) -> Row:
    if contender is PARTICIPANT:
        return {"reason": _NOT_FOR_ONE}
    scales: list[float] = []
    expected: list[float] = []
    variances: list[float] = []
    errors: list[Errors] = []
    for i, own in enumerate(one_by_one(data.together, data.read[gaps])):
        found, reason = contender.calibrate(chain, own.length, _QUERY, EPSILON)
        if found is None:
            return {"reason": reason}
        names = ("activity", data.label, "individual", gaps, contender.name, i)
        scales.append(found.scale)
        expected.append(found.expected_l1_error)
        variances.append(l1_variance(found))
        errors.append(trial_errors(found, [own] * settings.trials, settings.stream(*names)))
    return {
        "scale": float(np.mean(scales)),
        **summary(float(np.mean(expected)), sum(variances) / len(variances) ** 2, _mean_of(errors)),
        "model": FITTED,
    }


def _mean_of(errors: Sequence[Errors]) -> Errors:
    """Return the mean over participants, trial by trial."""
    return Errors(np.mean([found.raw for found in errors], axis=0), np.mean([found.valid for found in errors], axis=0))
