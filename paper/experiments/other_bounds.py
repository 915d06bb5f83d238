"""The record-level ε that each bound allows: mechanisms of the paper and ours beside bounds of other papers.

A bound of another paper promises something else; docs/compared.md says what. All of them bound what an algorithm that
is r-differentially private for each record tells once correlation is used, so the largest r that each allows can be
compared: noise is in proportion to 1/r.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from paper.experiments.contenders import BAYESIAN, CHAIN_BOUNDS, TEMPORAL, fitted, of_name, title_of
from paper.experiments.drawing import clean, legend, logarithmic, marks, new_figure
from paper.experiments.experiment import FITTED, Experiment, Part, Row, Settings, index, names_of
from paper.experiments.table import Table, number
from paper.experiments.temporal_leakage import Step, record_epsilon, temporal_leakage
from pufferfish._draw.figure import shortened
from pufferfish.data import Sequences
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms import InfluenceBound
from pufferfish.theta.lengths import as_lengths
from pufferfish.theta.markov_chain import MarkovChain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["OTHER_BOUNDS", "bayesian_epsilon"]

_EPSILONS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
_EXAMPLE, _LENGTH = "two states", 5000
_BOUNDS = (*(c.name for c in CHAIN_BOUNDS[:-1]), BAYESIAN, TEMPORAL, CHAIN_BOUNDS[-1].name)


def bayesian_epsilon(chain: MarkovChain, epsilon: float) -> float:
    """Return ε - 4 ln(max P / min P), below 0 where even no release at all would not be covered.

    Raises
    ------
    NotApplicableError
        If a transition is impossible.

    References
    ----------
    Lange, Guerra-Balboa, Parra-Arnau and Strufe, *Balancing Privacy and Utility in Correlated Data: A Study of Bayesian
    Differential Privacy* (2025), the bound for Markov chains.
    """
    matrix = chain.transition_matrix
    if matrix.min() == 0:
        raise NotApplicableError("a transition has probability 0", title_of(BAYESIAN))
    return epsilon - 4 * math.log(matrix.max() / matrix.min())


def _parts(settings: Settings) -> list[Part]:
    example = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    parts = [Part(_EXAMPLE, lambda: _of_chain(_EXAMPLE, example, _LENGTH, _LENGTH, None))]
    return parts + [
        Part(name, lambda name=name, read=read: _of_data(name, read("unobserved")))
        for name, read in settings.data.readers()
    ]


def _of_data(name: str, data: Sequences) -> list[Row]:
    chain, unfit = fitted(data)
    if chain is None:
        return [
            {"data": name, "mechanism": bound, "epsilon": e, "reason": unfit} for bound in _BOUNDS for e in _EPSILONS
        ]
    return _of_chain(name, chain, data.length, data.records, FITTED)


def _of_chain(name: str, chain: MarkovChain, length: Any, records: int, model: str | None) -> list[Row]:
    rows: list[Row] = []
    for bound in _BOUNDS:
        allowed, reason = _allowed(bound, chain, length)
        for epsilon, value in zip(_EPSILONS, allowed, strict=True):
            row: Row = {"data": name, "records": records, "states": len(chain.transition_matrix), "mechanism": bound}
            rows.append(row | {"epsilon": epsilon, "record_epsilon": value, "model": model, "reason": reason})
    return rows


def _allowed(bound: str, chain: MarkovChain, length: Any) -> tuple[Sequence[float | None], str | None]:
    """Return the record-level ε that a bound allows for each ε, or why it does not apply."""
    try:
        if bound == BAYESIAN:
            found = partial(bayesian_epsilon, chain)
        elif bound == TEMPORAL:
            found = _temporal(chain, length)
        else:
            mechanism = of_name(bound).make(chain, length)
            assert isinstance(mechanism, InfluenceBound)
            found = mechanism.record_epsilon
        return [max(0.0, found(epsilon)) for epsilon in _EPSILONS], None
    except NotApplicableError as error:
        return [None] * len(_EPSILONS), error.reason


def _temporal(chain: MarkovChain, length: Any) -> Callable[[float], float]:
    """Return the inverse of temporal privacy leakage, unobserved records left out (L(α) ≤ α, so this is no less)."""
    records = max(each.records for each in as_lengths(length))
    past, future = (Step.of(each.transition_matrix) for each in (chain.time_reversal, chain))

    def allowed(epsilon: float) -> float:
        return record_epsilon(lambda r: temporal_leakage(past, future, r, records, enough=epsilon), epsilon)

    return allowed


def _about(rows: Sequence[Row], settings: Settings) -> list[str]:
    sizes = dict.fromkeys((row["data"], row.get("records"), row.get("states")) for row in rows)
    which = "; ".join(f"{data}: {n:,} records, {k} states" for data, n, k in sizes if isinstance(n, int))
    sentences = [
        "The largest record-level ε of an algorithm with which each bound proves the ε above the column: noise is in "
        f"proportion to one over it. 0: the bound proves it of no algorithm. {which}. No trials, no seed.",
        f"{_EXAMPLE}: the chain [[.9, .1], [.4, .6]]. All chains are stationary.",
    ]
    if settings.data.of(("activity", "electricity")):
        sentences.append(f"Of the others the {FITTED}. Gaps are unobserved records of one chain for each participant.")
    return sentences


def _tables(rows: Sequence[Row], settings: Settings) -> list[Table]:
    found = index(rows, "data", "mechanism", "epsilon")
    header = ("data", "bound", *(f"ε = {epsilon:g}" for epsilon in _EPSILONS))
    lines = [
        (name, title_of(bound), *(number(found[name, bound, e].get("record_epsilon")) for e in _EPSILONS))
        for name in names_of(rows)
        for bound in _BOUNDS
    ]
    return [Table("Record-level ε that each bound allows", header, tuple(lines), texts=2)]


def _figure(rows: Sequence[Row], settings: Settings) -> "Figure":
    found, names = index(rows, "data", "mechanism", "epsilon"), names_of(rows)
    columns = min(5, len(names))
    lines = -(-len(names) // columns)
    figure: Any = new_figure(max(2.6 * columns, 7), 2.7 * lines + 1.1)
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        for bound in _BOUNDS:
            allowed = {e: found[name, bound, e].get("record_epsilon") for e in _EPSILONS}
            at = [e for e, value in allowed.items() if value]  # nothing and 0 have no place on these axes
            marks(axes, bound, at, [allowed[e] for e in at], label=title_of(bound))
        for which in ("x", "y"):
            logarithmic(axes, which)
        axes.set_title(shortened(name, 32), loc="left", fontsize=9, parse_math=False)
        clean(axes)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes in panels[: len(names)][-columns:]:
        axes.set_xlabel("ε of the guarantee")
        axes.xaxis.set_tick_params(labelbottom=True)
    for axes in panels[::columns]:
        axes.set_ylabel("record-level ε allowed")
    legend(figure, panels, f"The {FITTED}." if len(names) > 1 else "more is less noise")
    return figure


OTHER_BOUNDS = Experiment(
    name="other-bounds",
    title="Record-level ε by mechanisms and by other bounds",
    source="beyond the paper: docs/compared.md",
    trials=1,
    needs=(),
    uses=("activity", "electricity"),
    parts=_parts,
    about=_about,
    tables=_tables,
    figure=_figure,
)
