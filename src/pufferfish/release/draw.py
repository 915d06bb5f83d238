"""The exact value of a query on private data, and what adds noise to it.

A release has cells: one, public groups of the records, or the subjects of a table. One noise is enough for all cells. A
record is in one cell, whatever its state. When it changes its state from x to x', the outputs of its cell change by
d(x, x') in L1, and those of no other cell. So the record loss of all cells together is that of the query on the whole
table, and so is the noise; of a strategy's measurements too, and each cell's outputs follow from its own ones and its
own public number of records. What is divided by that number is divided afterwards.

A step is in the group of the record that it leads to, whatever the states are. Where steps are charged one by one, a
step that changes moves the outputs of its group alone, so one noise is enough for the steps of all groups too.

Exact values must not leave by errors either. A traceback holds the variables of every function that it went through,
and whoever prints tracebacks with variables (``pytest --showlocals``, error trackers, rich) would print exact values
too. :func:`hide_traceback` takes the traceback off.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import wraps
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import is_list
from pufferfish._base.words import did_you_mean, names_of
from pufferfish._core.numbers.rounding import float_up
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import DataError, ParameterError, ReleaseRefused, shortened
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import BoundQuery, FunctionQuery, JointQuery, LinearQuery, StepQuery, Weighted, Window
from pufferfish.release.noise import discrete_laplace_noise, noise_in_bulk
from pufferfish.theta.model_class import Theta
from pufferfish.theta.states import state_label

# -- Errors that do not carry exact values ---------------------------------------------------------------------------

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def hide_traceback(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Return a function whose errors forget where in it they were raised, and from what.

    What is given to it stays visible, so it must not be given exact values.
    """

    @wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            bare: BaseException = error.with_traceback(None)
            bare.__cause__ = bare.__context__ = None
        raise bare

    return call


# -- Private data ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Database:
    """One database, record by record: the state of each by its name."""

    states: Mapping[Any, str] = field(repr=False)


PrivateData = Sequences | Rows | Database
"""What a query is evaluated on."""


def database_of(data: Mapping[Any, Any] | Sequence[Any], calibration: Calibration) -> Database:
    """Return a mapping from the records' names to their states, or a sequence of states, as a database of Θ."""
    theta = calibration.theta
    records = sum(chain.records for chain in calibration.length)
    if theta.of_chains and len(calibration.length) > 1:
        raise DataError("several chains come from read_sequences; a list or dict of states is one chain")
    if not (is_list(data) or isinstance(data, Mapping)):
        raise DataError(f"data is {shortened(repr(data))}, expected the states of the records: a list or a dict")
    variables = theta.variables
    names: Sequence[Any] = range(records) if variables is None else list(variables)
    state_of: dict[Any, Any] = {**data} if isinstance(data, Mapping) else dict(zip(names, data, strict=False))
    if len(state_of) != len(data) or set(state_of) != set(names):
        raise DataError(
            f"the database has {len(data)} records, but Θ has {records}: expected the state of each of "
            f"{', '.join(str(name) for name in list(names)[:8])}{', …' if records > 8 else ''}"
        )
    states = {name: state_label(state_of[name]) for name in names}
    for name, state in states.items():
        allowed = theta.states if variables is None else variables[name]
        if state not in allowed:
            hint = did_you_mean(state, allowed)
            raise DataError(
                f"record {name} has the state {state!r}, which the model lacks.{hint} The model's states: "
                f"{', '.join(allowed[:20])}"
            )
    return Database(states)


# -- Exact values ----------------------------------------------------------------------------------------------------


def exact_value(data: PrivateData, query: BoundQuery, theta: Theta) -> NDArray[np.int64]:
    """Return a query's exact outputs, in units, of each group, or of all records together; shape (cells, outputs)."""
    if isinstance(query, StepQuery):
        return np.array([query.counted(steps) for steps in _steps(data, theta)], dtype=np.int64)
    if isinstance(data, Database):
        return _value_of_database(data, query, theta)
    if isinstance(query, JointQuery):
        return _joint_counts(data, query, theta)
    if not isinstance(query, LinearQuery):
        raise ParameterError("a function of the database needs its records by name: give a dict, not a table")
    groups = data.groups
    if isinstance(data, Sequences):
        counts = data.counts.sum(axis=0, keepdims=True) if groups is None else groups.counts[data.base.state]
        return _outputs_of_counts(data, counts, query, theta)
    totals = np.zeros((1 if groups is None else len(groups.cells), len(query.weights)), dtype=np.int64)
    for node in data.nodes:
        place = theta.networks[0].place(node)
        if query.reads(place):
            counts = data.counts[node][None] if groups is None else groups.counts[node]
            totals += counts @ query.contributions_of(place).T
    return totals


def _value_of_database(
    data: Database, query: LinearQuery | JointQuery | FunctionQuery, theta: Theta
) -> NDArray[np.int64]:
    if isinstance(query, FunctionQuery):
        outputs = list(query.function(data.states))
    else:
        order = {state: x for x, state in enumerate(theta.states)}
        outputs = list(query.value([order[state] for state in data.states.values()]))
    try:
        return np.array([outputs], dtype=np.int64)
    except OverflowError:
        raise ReleaseRefused("the answer does not fit 64-bit integers: give a larger unit") from None


def _outputs_of_counts(
    data: Sequences, counts: NDArray[np.int64], query: LinearQuery, theta: Theta
) -> NDArray[np.int64]:
    """Return the outputs of cells, of how many records each has in which of the table's states."""
    _refuse_other_states(data, theta.states)
    column_of = {state: x for x, state in enumerate(data.states)}
    present = [x for x, state in enumerate(theta.states) if state in column_of]
    columns = counts[:, [column_of[theta.states[x]] for x in present]]
    return np.asarray(columns @ query.weights[:, present].T, dtype=np.int64)


def _steps(data: PrivateData, theta: Theta) -> list[list[list[int]]]:
    """Return how often each state of the model is followed by each: in each group, or in all records together."""
    if isinstance(data, Rows):
        raise ParameterError("steps exist only in chains, not in independent rows: ask for states")
    if isinstance(data, Database):
        order = {state: x for x, state in enumerate(theta.states)}
        places = [order[data.states[record]] for record in range(len(data.states))]
        steps = [[0] * len(order) for _ in order]
        for x, y in pairwise(places):
            steps[x][y] += 1
        return [steps]
    _refuse_other_states(data, theta.states)
    counted = data.transitions[None] if data.groups is None else data.groups.steps
    if counted is None:
        cells = 0 if data.groups is None else len(data.groups.cells)
        raise ReleaseRefused(f"{cells:,} groups have too many different steps to be counted: group by less")
    column_of = {name: x for x, name in enumerate(data.states)}
    columns = [column_of.get(state) for state in theta.states]
    return [[[0 if i is None or j is None else of[i][j] for j in columns] for i in columns] for of in counted.tolist()]


def _joint_counts(data: Rows | Sequences, query: JointQuery, theta: Theta) -> NDArray[np.int64]:
    """Return the rows in each combination of states, of each group; of shape (groups, outputs)."""
    nodes = [theta.networks[0].nodes[place] for place in query.nodes]
    counts = data.together(nodes) if isinstance(data, Rows) else None
    if counts is None:
        names = ", ".join(repr(node) for node in nodes)
        raise ParameterError(
            f"the columns of {names} were not counted together when the table was read: read_rows(…, joint=[{names}])"
        )
    return counts


def _refuse_other_states(data: Sequences, states: tuple[str, ...]) -> None:
    """Refuse records in states that the model lacks."""
    totals = dict(zip(data.states, (int(c) for c in data.counts.sum(axis=0)), strict=True))
    outside = [name for name, count in totals.items() if name not in states and count]
    if outside:
        hint = did_you_mean(outside[0], states)
        shown = ", ".join(f"{name!r} ({totals[name]} rows)" for name in outside[:8])
        shown += f" and {len(outside) - 8} more" if len(outside) > 8 else ""
        raise DataError(
            f"the data has states outside the model: {shown}.{hint} The model's states: {names_of(states)}. "
            "Read the table with the model's bins and states, or fit a model that has them"
        )


# -- A query on cells ------------------------------------------------------------------------------------------------

_EXACT = 2**53
"""Whole numbers up to this are doubles: one division of two of them is rounded once."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A query on all records, groups or subjects: its exact outputs, and how they become values.

    ``names`` are the label of each cell under every grouping; of a subject its name; of all records together an empty
    one. ``records`` is the public number of records, or rows, of each: what all counts of one cell add up to.
    ``exact``, of shape (cells, numbers), is what gets noise: the exact outputs, in whole units, or what a strategy
    measures. A unit is worth ``unit`` before anything is divided, and ``by`` is what the outputs of each cell are
    divided by.
    """

    names: tuple[tuple[str, ...], ...]
    records: NDArray[np.int64]
    exact: NDArray[np.int64] = field(repr=False)
    unit: Fraction
    by: NDArray[np.int64] | None

    @hide_traceback
    def sampler(self, calibration: Calibration) -> Callable[[], NDArray[np.int64]]:
        """Return what draws the noisy outputs, (cells, outputs), in units; all that can be refused is refused here.

        With a strategy noise is drawn for what is measured, and the outputs of each cell follow from that and its
        number of records, which is public: filters do not look at states.
        """
        linear, strategy, scale = calibration.linear, calibration.strategy, calibration.unit_scale
        if strategy is not None and isinstance(linear, LinearQuery):
            answers, totals = strategy.answers, self.records.tolist()
            draws = [
                discrete_laplace_noise(column, float_up(Fraction(scale) / int(s)), lipschitz=linear.largest_factor)
                for column, s in zip(self.exact.T.tolist(), strategy.sharpness, strict=True)
            ]

            def draw_measured() -> NDArray[np.int64]:
                measured = zip(zip(*(draw() for draw in draws), strict=True), totals, strict=True)
                return np.array([answers(of_cell, total) for of_cell, total in measured], dtype=np.int64)

            return hide_traceback(draw_measured)
        lipschitz = linear.unit_lipschitz or 1
        if len(self.names) > 1:
            return hide_traceback(noise_in_bulk(self.exact, scale, lipschitz=lipschitz))
        draw = discrete_laplace_noise(self.exact.ravel().tolist(), scale, lipschitz=lipschitz)
        return hide_traceback(lambda: np.array(draw(), dtype=np.int64).reshape(self.exact.shape))

    def values(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return whole numbers of units, a row for each cell, as values: divided by the cell's number, rounded once."""
        divisors = np.ones_like(self.records) if self.by is None else self.by
        numerator, denominator = self.unit.numerator, self.unit.denominator
        largest = int(np.abs(numbers).max(initial=1))  # at least 1: a unit beyond 64 bits is none for numpy, even of 0
        if largest * numerator < _EXACT and int(divisors.max()) * denominator < _EXACT:
            return np.asarray((numbers * numerator) / (divisors[:, None] * denominator), dtype=np.float64)
        # larger numbers are fractions until the end, which gives the same values, only slowly
        rows = zip(numbers.tolist(), divisors.tolist(), strict=True)
        return np.array([[float(v * self.unit / n) for v in row] for row, n in rows], dtype=np.float64)


@hide_traceback
def cells_of(data: PrivateData, calibration: Calibration, total: int = 0, *, by_subject: bool = False) -> Cells:
    """Return a query on the subjects of a table, on the groups that it was read with, or on all records together.

    ``total`` is what all counts of the query add up to, each with its factor, where there are no groups.
    """
    linear, theta, strategy = calibration.linear, calibration.theta, calibration.strategy
    unit = linear.unit * (linear.divided_by or 1)
    if by_subject:
        assert isinstance(data, Sequences)
        assert isinstance(linear, LinearQuery)
        subjects, counts = _counts_by_subject(data)
        records = counts.sum(axis=1)
        exact = _outputs_of_counts(data, counts, linear, theta)
        return Cells(tuple((name,) for name in subjects), records, exact, unit, records if linear.divided_by else None)
    measured = strategy.counted(linear) if strategy is not None and isinstance(linear, LinearQuery) else linear
    exact, groups = exact_value(data, measured, theta), None if isinstance(data, Database) else data.groups
    if groups is None or isinstance(data, Database):
        return Cells(((),), np.array([total]), exact, linear.unit, None)
    divisors = divisions_of(calibration, groups.records, data.records)
    by = None if divisors is None else np.array(divisors, dtype=np.int64)
    return Cells(groups.cells, np.array(groups.records, dtype=np.int64), exact, unit, by)


def records_of_subjects(data: Sequences) -> NDArray[np.int64]:
    """Return how many observed records each subject has, which is public: chains of one subject together."""
    return _counts_by_subject(data)[1].sum(axis=1)


def _counts_by_subject(data: Sequences) -> tuple[list[str], NDArray[np.int64]]:
    """Return the subjects, and how many records of each are in which of the table's states."""
    names, which = np.unique(np.array(data.names, dtype=object), return_inverse=True)
    counts = np.zeros((len(names), len(data.states)), dtype=np.int64)
    np.add.at(counts, which, data.counts)
    return names.tolist(), counts


# -- Whether cells can be asked --------------------------------------------------------------------------------------

_MOST_VALUES = 1_000_000
"""Values of all groups together, each of which stands in the record."""


def divisions_of(calibration: Calibration, records: Sequence[int], all_records: int) -> tuple[int, ...] | None:
    """Return what the outputs of each group are divided by; refuse a query that groups cannot be asked.

    ``records`` are the records, or rows, of each group, and ``all_records`` those of the table.
    """
    linear, query, theta = calibration.linear, calibration.query, calibration.theta
    if isinstance(linear, StepQuery) and not linear.of_groups:
        raise ReleaseRefused(
            f"the noise for {query.kind} is for one number of all records: one record can change those of two groups "
            "at once, which needs more noise. Ask for transitions, which can be released by groups, or read the table "
            "without by="
        )
    if not isinstance(linear, LinearQuery | StepQuery | JointQuery) or isinstance(query, Weighted | Window):
        raise ReleaseRefused(
            f"{query.kind} is about single records, but groups only count the records in each state: ask for a "
            "histogram, count, share, sum, mean or transitions, or read the table without by="
        )
    if not calibration.composes or not (theta.of_chains or theta.networks):
        raise ReleaseRefused(
            f"{calibration.title} calibrates noise for one query of all records, not for each group: calibrate by "
            "LeakagePropagation or another mechanism that composes, or read the table without by="
        )
    cells, outputs = len(records), len(linear.labels)
    if cells * outputs > _MOST_VALUES:
        raise ReleaseRefused(
            f"{cells:,} groups with {outputs:,} values each are more than {_MOST_VALUES:,} values: make fewer groups, "
            "or ask for fewer values"
        )
    times = None if linear.divided_by is None else linear.divided_by // all_records
    return None if times is None else tuple(times * n for n in records)


def errors_of_groups(data: Sequences | Rows, calibration: Calibration) -> list[float]:
    """Return what each group's values will be within, with 95% probability; it reads public numbers only."""
    groups = data.groups
    assert groups is not None
    divisors = divisions_of(calibration, groups.records, data.records)
    undivided = calibration.accuracy(0.05) * (calibration.linear.divided_by or 1)
    return [undivided / n for n in divisors or (1,) * len(groups.cells)]


def check_each_subject(calibration: Calibration) -> None:
    """Refuse a query that each subject cannot be asked, or noise that is not for each."""
    linear, query = calibration.linear, calibration.query
    by_subject = calibration.theta.of_chains and calibration.composes
    if not (by_subject and isinstance(linear, LinearQuery) and linear.factors is None):
        raise ReleaseRefused(
            f"{calibration.title} calibrates noise for one query of all records, not for each subject: ask for a "
            "histogram, count, sum or mean, calibrated by LeakagePropagation or another mechanism that composes"
        )
    if calibration.strategy is not None or query.is_cumulative:
        raise ReleaseRefused(
            f"one release for each subject has noise of one scale, on counts of states, and this is {query.kind} with "
            f"noise={'equal' if calibration.strategy is None else 'best'!r}: calibrate a histogram, count, sum or mean"
        )
