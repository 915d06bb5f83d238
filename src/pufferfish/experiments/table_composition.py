"""Several releases of the same records: what a ledger says they leak together (Section 4.3, Theorem 4.4).

Each of K releases is calibrated by itself, at ε = 1. Together they leak at most what the bound makes of their added
record-level losses. Theorem 4.4 says Kε for quilts, which is more; group privacy adds up all losses of a chain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pufferfish.data import Sequences
from pufferfish.experiments.contenders import Contender, of_name
from pufferfish.experiments.datasets import Gaps
from pufferfish.experiments.drawing import clean, legend, marks, new_figure
from pufferfish.experiments.experiment import FITTED, Experiment, Part, Row, Settings, index
from pufferfish.experiments.table import Table, number
from pufferfish.fit import fit_chain
from pufferfish.ledger import Ledger
from pufferfish.mechanisms import GroupDP, InfluenceBound
from pufferfish.models import MarkovChain
from pufferfish.queries import Count, Histogram, Query

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TABLE_COMPOSITION"]

_EPSILON = 1.0
_RELEASES = (1, 2, 5, 10)
_BOUNDS = (of_name("mqm-approx"), of_name("mqm-exact"), of_name("propagation"))
_UNLIMITED = 1e12


@dataclass(frozen=True, slots=True)
class _Case:
    """One chain, and what is asked of it."""

    chain: MarkovChain
    length: Any
    query: Query
    fitted: bool


def _parts(settings: Settings) -> list[Part]:
    cases: dict[str, Callable[[], _Case]] = {"running example": _running_example}
    cases |= {name: partial(_fitted, read) for name, read in settings.data.readers()}
    return [
        Part(f"{name}, {bound.title}", lambda n=name, c=case, b=bound: _rows(n, c(), b))
        for name, case in cases.items()
        for bound in _BOUNDS
    ]


def _running_example() -> _Case:
    return _Case(MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0]), 100, Count(1), fitted=False)


def _fitted(read: Callable[[Gaps], Sequences]) -> _Case:
    data = read("unobserved")
    return _Case(fit_chain(data), data.length, Histogram(), fitted=True)


def _rows(name: str, case: _Case, contender: Contender) -> list[Row]:
    bound = contender.make(case.chain, case.length)
    assert isinstance(bound, InfluenceBound)
    found = bound.calibrate(case.query, _EPSILON)
    group = GroupDP(case.chain, case.length)
    ledger = Ledger(bound, budget=_UNLIMITED)
    rows: list[Row] = []
    for k in range(1, max(_RELEASES) + 1):
        ledger.spend(found)
        if k in _RELEASES:
            row: Row = {
                "data": name,
                "mechanism": contender.name,
                "releases": k,
                "scale_of_each": found.scale,
                "leak_by_ledger": ledger.spent,
                "k_epsilon": k * _EPSILON,
                "leak_by_group_dp": group.leakage(k * found.record_loss),
                # one ε for all of them: losses add up, so noise K times as wide; or ε/K for each
                "scale_within_epsilon": k * found.scale,
                "scale_at_epsilon_over_k": bound.calibrate(case.query, _EPSILON / k).scale,
                "group_dp_scale_within_epsilon": k * group.calibrate(case.query, _EPSILON).scale,
            }
            rows.append(row | {"model": FITTED if case.fitted else None})
    return rows


def _about(rows: Sequence[Row], settings: Settings) -> list[str]:
    sentences = [
        "K releases of one histogram (of a count for the running example, T = 100), each calibrated by itself at "
        f"ε = {_EPSILON:g}, and what a ledger kept by the same mechanism says they leak together. No trials, no seed.",
        "Theorem 4.4 says at most Kε for quilts; a ledger says less, since a quilt's influence is paid only once. For "
        "leakage propagation Kε is no bound: in the running example K releases leak more.",
    ]
    if settings.data.of(("activity", "electricity")):
        sentences.append(f"Gaps are unobserved records of one chain for each participant. The {FITTED}.")
    return sentences


def _names(rows: Sequence[Row]) -> list[Any]:
    return list(dict.fromkeys(row["data"] for row in rows))


def _tables(rows: Sequence[Row], settings: Settings) -> list[Table]:
    found = index(rows, "data", "mechanism", "releases")
    leaks: list[tuple[str, ...]] = []
    scales: list[tuple[str, ...]] = []
    for name in _names(rows):
        for c in _BOUNDS:
            cells = [found[name, c.name, k] for k in _RELEASES]
            last = cells[-1]
            leaks.append(
                (name, c.title, *(number(v["leak_by_ledger"]) for v in cells), number(last["leak_by_group_dp"]))
            )
            each = [f"{number(v['scale_within_epsilon'])} ({number(v['scale_at_epsilon_over_k'])})" for v in cells]
            scales.append((name, c.title, *each, number(last["group_dp_scale_within_epsilon"])))
    most = max(_RELEASES)
    header = ("data", "mechanism", *(f"K = {k}" for k in _RELEASES), f"GroupDP, K = {most}")
    leak = f"What K releases leak by the ledger, each calibrated at ε = {_EPSILON:g}; last, by group privacy"
    scale = (
        f"Scale of each of K releases that leak ε = {_EPSILON:g} together by the ledger (in brackets: calibrated at "
        "ε/K each, which for propagation need not be enough); last, by group privacy"
    )
    return [Table(leak, header, tuple(leaks)), Table(scale, header, tuple(scales))]


def _figure(rows: Sequence[Row], settings: Settings) -> "Figure":
    found, names = index(rows, "data", "mechanism", "releases"), _names(rows)
    columns = min(5, len(names))
    lines = -(-len(names) // columns)
    figure: Any = new_figure(max(2.6 * columns, 6), 2.7 * lines + 1.1)
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        together = [k * _EPSILON for k in _RELEASES]
        axes.plot(_RELEASES, together, color="0.35", linestyle=(0, (4, 3)), linewidth=1, label="Kε")
        for contender in _BOUNDS:
            leaks = [found[name, contender.name, k]["leak_by_ledger"] for k in _RELEASES]
            marks(axes, contender.name, _RELEASES, leaks, label=contender.title)
        axes.set_title(name, loc="left", fontsize=9, parse_math=False)
        axes.set_xticks(_RELEASES)
        clean(axes)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes in panels[: len(names)][-columns:]:
        axes.set_xlabel("releases, K")
        axes.xaxis.set_tick_params(labelbottom=True)
    for axes in panels[::columns]:
        axes.set_ylabel("leak together, in nats")
    title = f"each release calibrated at ε = {_EPSILON:g}; marks: by the ledger"
    legend(figure, panels[0], f"{title}\nThe {FITTED}." if len(names) > 1 else title)
    return figure


TABLE_COMPOSITION = Experiment(
    name="table-composition",
    title="Several releases: what they leak together",
    source="Section 4.3, Theorem 4.4",
    trials=1,
    needs=(),
    uses=("activity", "electricity"),
    parts=_parts,
    about=_about,
    tables=_tables,
    figure=_figure,
)
