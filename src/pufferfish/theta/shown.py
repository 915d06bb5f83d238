"""What models show of themselves in a notebook: their numbers as tables, and which laws of the first record they have.

Everything in a model is public; nothing here reads data.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.durations import parse_duration, rounded_micros
from pufferfish._base.view import MOST_COLUMNS, MOST_ROWS, Grid, Shown, View, counted, in_short
from pufferfish._base.words import number
from pufferfish.errors import ModelError
from pufferfish.theta.states import phase_name, state_label

__all__ = ["ShownModel", "law_in_words", "main_grids", "states_in_words", "stays_grid"]

_MOST_MIXED = 200
"""States of a chain whose eigengap is shown: that of many takes long."""

_FEW_BOUNDS = 6
"""States between which bounds are shown in short: each takes the room of two numbers."""


class ShownModel(Shown):
    """A model, or a class of models, that notebooks show."""

    __slots__ = ()

    def _view(self) -> View:
        name = next(kind.__name__ for kind in type(self).__mro__ if kind.__name__ in _VIEWS)
        return _VIEWS[name](self)


def states_in_words(states: Sequence[str], most: int = 6) -> str:
    """Return the names of a few states, and how many there are."""
    named = ", ".join(map(repr, states[:most])) + (", …" if len(states) > most else "")
    return f"{counted(len(states), 'state')}: {named}"


def law_in_words(start: Any) -> str:
    """Say in words which law the first record has."""
    if not isinstance(start, str):
        return "a given law"
    return "any law" if start == "any" else "the stationary law"


def _square(states: Sequence[str], rows: Sequence[Sequence[Any]], caption: str) -> Grid:
    """Return a table of a row and a column for each state."""
    few = list(states[:MOST_COLUMNS])
    cells = [[state, *row[:MOST_COLUMNS]] for state, row in zip(few, rows, strict=False)]
    return Grid(caption, ["from \\ to", *few], cells, wide=len(states), long=len(states))


def _matrix(states: Sequence[str], matrix: NDArray[Any], caption: str = "") -> Grid:
    n = MOST_COLUMNS
    words = caption or "Transition probabilities: from the present state (row) to the next (column)"
    return _square(states, matrix[:n, :n].tolist(), words)


def _first_record(chain: Any) -> list[Grid]:
    start = chain.initial_distribution
    if isinstance(start, str) or start.ndim > 1:
        return []
    rows = [[state, float(p)] for state, p in zip(chain.states[:MOST_ROWS], start, strict=False)]
    return [Grid("Law of the first record", ["state", "probability"], rows, long=chain.k)]


def _chain(chain: Any) -> View:
    facts = {"first record": law_in_words(chain.initial_distribution)}
    if chain.k <= _MOST_MIXED:
        facts["for MQMApprox"] = _mixing(chain)
    grids = [_matrix(chain.states, chain.transition_matrix), *_first_record(chain)]
    return View(f"Markov chain of {counted(chain.k, 'state')}", facts, grids)


def _mixing(chain: Any) -> str:
    """Return what the noise of MQMApprox follows from."""
    if not chain.is_irreducible:
        return "nothing: not every state can be reached from every other"
    try:
        least, gap = number(chain.pi_min, 3), number(chain.eigengap, 3)
    except ModelError as error:  # a view never fails
        return f"nothing: {error}"
    return f"least long-run share of a state (π_min) {least}, eigengap of P P* {gap}, period {chain.period}"


def stays_grid(theta: Any, step: str | None = None) -> list[Grid]:
    """Return the table of how long states last under a class of chains; none where that is no number for each state.

    Parameters
    ----------
    theta : class of chains
        Chains, or bounds on one.
    step : str, optional
        The time that one step takes.
    """
    if hasattr(theta, "chains") and len(theta.chains):
        stays = np.array([np.diagonal(chain.transition_matrix) for chain in theta.chains])
        low, high = stays.min(axis=0), stays.max(axis=0)
    elif hasattr(theta, "lower"):
        low, high = np.diagonal(theta.lower), np.diagonal(theta.upper)
    else:
        return []
    some = np.array_equal(low, high)
    with np.errstate(divide="ignore"):
        ends = [(1 / (1 - a), 1 / (1 - b)) for a, b in zip(low, high, strict=True)]
    rows = [[state, _range(float(a), float(b))] for state, (a, b) in zip(theta.states[:MOST_ROWS], ends, strict=False)]
    columns = ["state", "steps"]
    if step is not None and (length := parse_duration(step, "step")).has_unit:
        columns.append("time")
        for row, (a, b) in zip(rows, ends, strict=False):
            least, most = (rounded_micros(float(n) * length.value) for n in (a, b))
            row.append(least if least == most else f"{least} to {most}")
    caption = "Mean stay in a state" + ("" if some else ", from the least to the most of the class")
    return [Grid(caption, columns, rows, long=len(theta.states))]


def main_grids(theta: Any, step: str | None = None) -> list[Grid]:
    """Return the numbers of a class that was fitted, as far as they are few: transitions, and how long states last."""
    k = len(theta.states)
    if k > MOST_COLUMNS:
        return []
    stays, grids = stays_grid(theta, step), theta._view().grids
    if hasattr(theta, "chains") and len(theta.chains):
        return [*grids[: len(theta.chains) == 1], *stays]
    if hasattr(theta, "lower"):
        return [*grids[: k <= _FEW_BOUNDS], *stays]
    first = theta.members[0] if getattr(theta, "members", ()) else None
    if hasattr(first, "phases"):
        return [_stays_over_phases(first)]
    if hasattr(first, "tensor"):
        return list(grids[: k**first.order <= MOST_COLUMNS])
    return []


def _stays_over_phases(chain: Any) -> Grid:
    """Return the least and the most probability of staying in each state, and in which phases they are."""
    every = np.diagonal(chain.matrices, axis1=1, axis2=2)
    rows: list[list[Any]] = []
    for x, state in enumerate(chain.states):
        row: list[Any] = [state]
        for phase in (int(every[:, x].argmin()), int(every[:, x].argmax())):
            row += [float(every[phase, x]), phase_name(chain.clock, phase)]
        rows.append(row)
    return Grid("Probability of staying in a state for one step", ["state", "least", "at", "most", "at"], rows)


def _periodic(chain: Any) -> View:
    few = chain.states[:MOST_COLUMNS]
    rows = [
        [phase_name(chain.clock, phase), *(float(m[x, x]) for x in range(len(few)))]
        for phase, m in enumerate(chain.matrices)
    ]
    facts = {
        "clock": chain.clock or "plain phases, one for each step",
        "step": chain.step,
        "first record": law_in_words(chain.initial_distribution),
    }
    word = chain.clock or "phase"
    grid = Grid(
        f"Probability of staying in a state for one step, by {word}",
        [word, *few],
        rows,
        wide=chain.k,
    )
    title = f"Markov chain with a clock: {counted(chain.phases, 'matrix', 'matrices')} of {counted(chain.k, 'state')}"
    return View(title, facts, [grid, *_first_record(chain)])


def _higher_order(chain: Any) -> View:
    few, size = chain.states[:MOST_COLUMNS], chain.k**chain.order
    table = chain.tensor.reshape(size, chain.k)[:MOST_ROWS, :MOST_COLUMNS].tolist()
    names = itertools.islice(itertools.product(chain.states, repeat=chain.order), MOST_ROWS)
    rows = [[", ".join(name), *row] for name, row in zip(names, table, strict=True)]
    caption = f"Probability of the next state (column) after the last {chain.order} (row, the latest last)"
    grid = Grid(caption, [f"last {chain.order}", *few], rows, wide=chain.k, long=size)
    facts = {"first records": law_in_words(chain.initial_distribution)}
    return View(f"Markov chain of order {chain.order} with {counted(chain.k, 'state')}", facts, [grid])


def _interval(theta: Any) -> View:
    n = MOST_COLUMNS
    pairs = zip(theta.lower[:n, :n].tolist(), theta.upper[:n, :n].tolist(), strict=True)
    rows = [[_range(a, b) for a, b in zip(low, high, strict=True)] for low, high in pairs]
    words = "Bounds on the transition probabilities: from the present state (row) to the next (column)"
    return View(
        f"Every Markov chain between two bounds, {counted(theta.k, 'state')}",
        {"origin": theta.origin, "first record": "any law", "matrices": "any between the bounds, at every step"},
        [_square(theta.states, rows, words)],
    )


def _range(low: float, high: float) -> str:
    return in_short(low) if low == high else f"{in_short(low)} to {in_short(high)}"


def _binary_interval(theta: Any) -> View:
    facts = {
        "states": ", ".join(theta.states),
        "probability of staying in a state": _range(theta.low, theta.high),
        "first record": law_in_words(theta.initial_distribution),
        "origin": theta.origin,
    }
    return View("Every Markov chain of 2 states in an interval", facts)


def _forgetting(theta: Any) -> View:
    rows = [[steps, share] for steps, share in theta.pairs]
    caption = "Least overlap of the laws given two states, so many steps later or earlier (1: all is forgotten)"
    return View(
        f"Every Markov process that forgets, {counted(theta.k, 'state')}",
        {"states": states_in_words(theta.states), "origin": theta.origin},
        [Grid(caption, ["steps", "overlap"], rows)],
    )


def _chain_class(theta: Any) -> View:
    first = theta.chains[0]
    if len(theta.chains) == 1:
        return _of_one(_chain(first), theta)
    few = theta.states[:MOST_COLUMNS]
    named = zip(theta.names or map(str, range(len(theta.chains))), theta.chains[:MOST_ROWS], strict=False)
    rows = [[name, *(float(chain.transition_matrix[x, x]) for x in range(len(few)))] for name, chain in named]
    caption = "Probability of staying in a state for one step, by member of the class"
    grid = Grid(caption, ["member", *few], rows, wide=theta.k, long=len(theta.chains))
    return View(
        f"Class of {counted(len(theta.chains), 'Markov chain')} of {counted(theta.k, 'state')}",
        {"origin": theta.origin, "first record": law_in_words(first.initial_distribution)},
        [grid],
    )


def _of_one(view: View, theta: Any) -> View:
    return View(f"Class of one: {view.title}", {**(view.facts or {}), "origin": theta.origin}, view.grids)


def _class(theta: Any) -> View:
    first = theta.members[0]
    if len(theta.members) == 1 and isinstance(first, ShownModel):
        return _of_one(first._view(), theta)
    facts = {"states": states_in_words(theta.states), "origin": theta.origin}
    rows = [[i, repr(member)] for i, member in enumerate(theta.members[:MOST_ROWS])]
    grid = Grid("Members", ["member", "model"], rows, long=len(theta.members))
    return View(f"Class of {len(theta.members):,} {theta.kind}", facts, [grid])


def _network(network: Any) -> View:
    rows: list[list[Any]] = []
    for node in network.nodes[:MOST_ROWS]:
        cpt = network.cpts[node]
        parents = ", ".join(state_label(parent) for parent in cpt.parents)
        rows.append([state_label(node), ", ".join(cpt.states[:MOST_COLUMNS]), parents, int(cpt.table.size)])
    grid = Grid("Nodes", ["node", "states", "parents", "probabilities"], rows, long=len(network.nodes))
    edges = counted(len(network.edges), "edge")
    return View(f"Bayesian network of {counted(len(network.nodes), 'node')} and {edges}", None, [grid])


def _cpt(cpt: Any) -> View:
    if not cpt.parents:
        rows = [[state, float(p)] for state, p in zip(cpt.states, cpt.table, strict=True)]
        return View("Law of a node without parents", None, [Grid("Probabilities", ["state", "probability"], rows)])
    above = cpt.table.shape[:-1]
    places = list(itertools.islice(itertools.product(*map(range, above)), MOST_ROWS))
    rows = [[*place, *(float(p) for p in cpt.table[place][:MOST_COLUMNS])] for place in places]
    names = [*map(state_label, cpt.parents), *cpt.states[:MOST_COLUMNS]]
    size = cpt.table.size // len(cpt.states)
    caption = "Probability of each state (column); of the parents the numbers of their states are given, from 0"
    grid = Grid(caption, names, rows, heads=len(cpt.parents), wide=len(cpt.states), long=size)
    return View(f"Law of a node given {', '.join(map(state_label, cpt.parents))}", None, [grid])


def _cliques(theta: Any) -> View:
    rows = [[i, n] for i, n in enumerate(theta.groups)]
    title = f"{counted(len(theta.laws), 'clique')} of {counted(sum(theta.groups), 'person', 'people')}"
    return View(title, {"states": ", ".join(theta.states)}, [Grid("Sizes", ["clique", "people"], rows)])


def _joint(theta: Any) -> View:
    n = MOST_ROWS
    each = zip(theta.values[:n], theta.probabilities[:n], strict=True)
    rows = [[", ".join(values[:MOST_COLUMNS]), float(p)] for values, p in each]
    grid = Grid("Databases", [", ".join(map(str, theta.variables[:MOST_COLUMNS])), "probability"], rows)
    return View(repr(theta), None, [Grid(grid.caption, grid.columns, rows, long=len(theta.values))])


def _given(theta: Any) -> View:
    return View(
        "Laws of a query that are given", {"states": states_in_words(theta.states), "records": int(theta.records)}
    )


_VIEWS = {
    "BayesianNetwork": _network,
    "BinaryChainInterval": _binary_interval,
    "CPT": _cpt,
    "ChainClass": _chain_class,
    "ChainModels": _class,
    "Cliques": _cliques,
    "ForgettingClass": _forgetting,
    "GivenLaws": _given,
    "HigherOrderChain": _higher_order,
    "IntervalChain": _interval,
    "JointDistribution": _joint,
    "MarkovChain": _chain,
    "ModelClass": _class,
    "PeriodicChain": _periodic,
}
