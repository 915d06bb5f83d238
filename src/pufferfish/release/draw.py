"""The exact value of a query on private data, and what adds noise to it.

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
from pufferfish.errors import DataError, ParameterError, shortened
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import BoundQuery, FunctionQuery, JointQuery, LinearQuery, StepQuery
from pufferfish.queries.strategy import Strategy
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.joint_distribution import JointDistribution
from pufferfish.theta.model_class import Theta
from pufferfish.theta.states import state_label

__all__ = [
    "Database",
    "PrivateData",
    "database_of",
    "exact_value",
    "hide_traceback",
    "in_model_order",
    "joint_counts",
    "sampler",
    "sampler_of_measurements",
    "steps_in_model_order",
]

# -- Errors that do not carry exact values ---------------------------------------------------------------------------

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def hide_traceback(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Return a function whose errors forget where in it they were raised, and from what.

    What is given to it stays visible, so it must not be given exact values.

    Examples
    --------
    >>> def count():
    ...     exact = 7919
    ...     raise ValueError("no more random numbers")
    >>> import traceback
    >>> try:
    ...     hide_traceback(count)()
    ... except ValueError as error:
    ...     printed = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    >>> "7919" in printed
    False
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


# -- Exact values, and what adds noise to them -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Database:
    """One database, record by record: the state of each by its name."""

    states: Mapping[Any, str] = field(repr=False)


PrivateData = Sequences | Rows | Database
"""What a query is evaluated on."""


def database_of(data: Mapping[Any, Any] | Sequence[Any], calibration: Calibration) -> Database:
    """Return a mapping from the records' names to their states, or a sequence of states, as a database of Θ."""
    theta = calibration.theta
    member: Any = None if theta.of_chains else theta.members[0]
    records = sum(chain.records for chain in calibration.length)
    if theta.of_chains and len(calibration.length) > 1:
        raise DataError("several chains come from read_sequences; a list or dict of states is one chain")
    if not (is_list(data) or isinstance(data, Mapping)):
        raise DataError(f"data is {shortened(repr(data))}, expected the states of the records: a list or a dict")
    names: Sequence[Any] = range(records)
    if isinstance(member, JointDistribution):
        names = member.variables
    elif isinstance(member, BayesianNetwork):
        names = member.nodes
    state_of: dict[Any, Any] = {**data} if isinstance(data, Mapping) else dict(zip(names, data, strict=False))
    if len(state_of) != len(data) or set(state_of) != set(names):
        raise DataError(
            f"the database has {len(data)} records, but Θ has {records}: expected the state of each of "
            f"{', '.join(str(name) for name in list(names)[:8])}{', …' if records > 8 else ''}"
        )
    states = {name: state_label(state_of[name]) for name in names}
    for name, state in states.items():
        allowed = member.node_states[name] if isinstance(member, BayesianNetwork) else theta.states
        if state not in allowed:
            hint = did_you_mean(state, allowed)
            raise DataError(
                f"record {name} has the state {state!r}, which the model lacks.{hint} The model's states: "
                f"{', '.join(allowed[:20])}"
            )
    return Database(states)


def exact_value(data: PrivateData, query: BoundQuery, theta: Theta) -> list[int]:
    """Return a query's exact outputs, in units."""
    states = theta.states
    if isinstance(query, StepQuery):
        return query.counted(_counted_steps(data, states))
    if isinstance(data, Database):
        if isinstance(query, FunctionQuery):
            return list(query.function(data.states))
        order = {state: x for x, state in enumerate(states)}
        places = [order[state] for state in data.states.values()]
        return list(query.value(places))
    if isinstance(query, JointQuery):
        return joint_counts(data, query, theta)[0].tolist()
    if not isinstance(query, LinearQuery):
        raise ParameterError("a function of the database needs its records by name: give a dict, not a table")
    if isinstance(data, Rows):
        return _outputs_of_rows(data, query, theta)
    counts = in_model_order(data, states)
    return [sum(int(w) * int(c) for w, c in zip(row, counts, strict=True)) for row in query.weights]


@hide_traceback
def sampler(
    data: PrivateData, calibration: Calibration, noise: Callable[..., Callable[[], list[int]]], total: int
) -> Callable[[], list[int]]:
    """Return what draws the noisy outputs, in units, by ``noise``; all that can be refused is refused here.

    With a strategy noise is drawn for what is measured, and the outputs follow from that and ``total``, what all counts
    of the query's records add up to, each with its factor. It is public: filters do not look at states.
    """
    linear, strategy, theta = calibration.linear, calibration.strategy, calibration.theta
    if strategy is None or not isinstance(linear, LinearQuery):
        exact, step = exact_value(data, linear, theta), linear.unit_lipschitz
        return hide_traceback(noise(exact, calibration.unit_scale, lipschitz=1 if step is None else step))
    counts = exact_value(data, strategy.counted(linear), theta)
    return sampler_of_measurements([counts], [total], linear, strategy, calibration.unit_scale, noise)


@hide_traceback
def sampler_of_measurements(
    counts: Sequence[Sequence[int]],
    totals: Sequence[int],
    linear: LinearQuery,
    strategy: Strategy,
    unit_scale: float,
    noise: Callable[..., Callable[[], list[int]]],
) -> Callable[[], list[int]]:
    """Return what draws the noisy outputs of some groups, one group after the other, from what is measured of each.

    Every group has the same measurements, each with noise of its own; ``totals`` are the groups' public numbers.
    """
    draws = [
        noise(list(column), float_up(Fraction(unit_scale) / int(s)), lipschitz=linear.largest_factor)
        for column, s in zip(zip(*counts, strict=True), strategy.sharpness, strict=True)
    ]

    def draw_outputs() -> list[int]:
        groups = zip(zip(*(draw() for draw in draws), strict=True), totals, strict=True)
        return [answer for measured, total in groups for answer in strategy.answers(measured, total)]

    return hide_traceback(draw_outputs)


def _counted_steps(data: PrivateData, states: tuple[str, ...]) -> list[list[int]]:
    """Return how often each state of the model is followed by each."""
    if isinstance(data, Rows):
        raise ParameterError("steps exist only in chains, not in independent rows: ask for states")
    steps = [[0] * len(states) for _ in states]
    if isinstance(data, Database):
        order = {state: x for x, state in enumerate(states)}
        places = [order[data.states[record]] for record in range(len(data.states))]
        for x, y in pairwise(places):
            steps[x][y] += 1
        return steps
    return steps_in_model_order(data, data.transitions, states)


def steps_in_model_order(data: Sequences, steps: NDArray[np.int64], states: tuple[str, ...]) -> list[list[int]]:
    """Return numbers of steps between the states of a table, (k, k), as those between the model's states."""
    in_model_order(data, states)  # refuses states outside the model
    column_of = {name: x for x, name in enumerate(data.states)}
    counts: list[list[int]] = steps.tolist()
    columns = [column_of.get(state) for state in states]
    return [[0 if i is None or j is None else counts[i][j] for j in columns] for i in columns]


def _outputs_of_rows(rows: Rows, query: LinearQuery, theta: Theta) -> list[int]:
    """Return the sum over nodes of what they add, in whole numbers of any size."""
    totals = [0] * len(query.weights)
    assert query.domains is not None
    for node in rows.nodes:
        place = theta.networks[0].place(node)
        if not query.reads(place):
            continue
        factors = np.broadcast_to(1 if query.factors is None else query.factors[place], len(totals))
        read, counts = np.flatnonzero(factors), rows.counts[node].tolist()  # of many outputs few read a node
        weights = query.weights[read][:, query.domains[place]].tolist()
        for m, factor, row in zip(read.tolist(), factors[read].tolist(), weights, strict=True):
            totals[m] += factor * sum(w * c for w, c in zip(row, counts, strict=True))
    return totals


def joint_counts(data: PrivateData, query: JointQuery, theta: Theta) -> NDArray[np.int64]:
    """Return the rows in each combination of states, of each group; of shape (groups, outputs)."""
    nodes = [theta.networks[0].nodes[place] for place in query.nodes]
    counts = data.together(nodes) if isinstance(data, Rows) else None
    if counts is None:
        names = ", ".join(repr(node) for node in nodes)
        raise ParameterError(
            f"the columns of {names} were not counted together when the table was read: read_rows(…, joint=[{names}])"
        )
    return counts


def in_model_order(data: Sequences, states: tuple[str, ...]) -> list[int]:
    """Return how many records are in each of the model's states; refuse states that it lacks."""
    totals = dict(zip(data.states, (int(c) for c in data.counts.sum(axis=0)), strict=True))
    outside = [f"{name!r} ({count} rows)" for name, count in totals.items() if name not in states and count]
    if outside:
        hint = did_you_mean(next(name for name in totals if name not in states and totals[name]), states)
        shown = ", ".join(outside[:8]) + (f" and {len(outside) - 8} more" if len(outside) > 8 else "")
        raise DataError(
            f"the data has states outside the model: {shown}.{hint} The model's states: {names_of(states)}. "
            "Read the table with the model's bins and states, or fit a model that has them"
        )
    return [totals.get(name, 0) for name in states]
