"""Several releases of the same records: what a ledger says they leak together (Section 4.3, Theorem 4.4).

Each of K releases is calibrated by itself, at ε = 1. Together they leak at most what a bound makes of their added
record-level losses; any bound may keep the ledger, whatever mechanism calibrated the noise. Theorem 4.4 says Kε for
quilts, which is more; group privacy adds up all losses of a chain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from paper.experiments.contenders import Contender, of_name
from paper.experiments.datasets import Gaps
from paper.experiments.drawing import clean, legend, marks, new_figure
from paper.experiments.experiment import FITTED, Experiment, Part, Row, Settings, index, names_of
from paper.experiments.table import Table, number
from pufferfish._draw.figure import shortened
from pufferfish.data import Sequences
from pufferfish.errors import ModelError, NotApplicableError
from pufferfish.fit.chain import fit_chain
from pufferfish.ledger import Ledger
from pufferfish.mechanisms import InfluenceBound
from pufferfish.queries import Count, Histogram, Query
from pufferfish.theta.markov_chain import MarkovChain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TABLE_COMPOSITION"]

_EPSILON = 1.0
_RELEASES = (1, 2, 5, 10)
_GROUP, _APPROX, _EXACT, _PROPAGATION = map(of_name, ("group-dp", "mqm-approx", "mqm-exact", "propagation"))
_OWN = (_APPROX, _EXACT, _PROPAGATION)
_LEDGERS = (_GROUP, _EXACT, _PROPAGATION)
_PAIRS = (*((_EXACT, ledger) for ledger in _LEDGERS), (_APPROX, _APPROX), (_PROPAGATION, _PROPAGATION))
"""Whose noise, and whose ledger: the paper's best noise by every ledger, and every mechanism's by its own."""
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
        Part(
            f"{name}: noise of {noise.title}, ledger of {ledger.title}",
            lambda name=name, case=case, noise=noise, ledger=ledger: _rows(name, case, noise, ledger),
        )
        for name, case in cases.items()
        for noise, ledger in _PAIRS
    ]


def _running_example() -> _Case:
    return _Case(MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0]), 100, Count(1), fitted=False)


def _fitted(read: Callable[[Gaps], Sequences]) -> _Case:
    data = read("unobserved")
    return _Case(fit_chain(data, smoothing=0), data.length, Histogram(), fitted=True)


def _rows(name: str, read: Callable[[], _Case], noise: Contender, keeper: Contender) -> list[Row]:
    try:
        case = read()
        calibrating, bound = noise.make(case.chain, case.length), keeper.make(case.chain, case.length)
    except (ModelError, NotApplicableError) as error:
        reason = error.reason if isinstance(error, NotApplicableError) else str(error)
        why: Row = {"data": name, "noise": noise.name, "ledger": keeper.name, "reason": reason}
        return [why | {"releases": k} for k in _RELEASES]
    assert isinstance(bound, InfluenceBound)
    found = calibrating.calibrate(case.query, _EPSILON)
    ledger = Ledger(bound, budget=_UNLIMITED)
    rows: list[Row] = []
    for k in range(1, max(_RELEASES) + 1):
        ledger.spend(found)
        if k in _RELEASES:
            row: Row = {
                "data": name,
                "noise": noise.name,
                "scale_of_each": found.scale,
                "ledger": keeper.name,
                "releases": k,
                "leak_by_ledger": ledger.spent,
                "k_epsilon": k * _EPSILON,
            }
            if noise is keeper:  # one ε for all K: losses add up, so noise K times as wide; or ε/K for each
                row["scale_within_epsilon"] = k * found.scale
                row["scale_at_epsilon_over_k"] = calibrating.calibrate(case.query, _EPSILON / k).scale
            rows.append(row | {"model": FITTED if case.fitted else None})
    return rows


def _about(rows: Sequence[Row], settings: Settings) -> list[str]:
    sentences = [
        "K releases of one histogram (of a count for the running example, T = 100), each calibrated by itself at "
        f"ε = {_EPSILON:g}, and what a ledger says they leak together. No trials, no seed.",
        "Theorem 4.4 says at most Kε for quilts; their ledger says less, since a quilt's influence is paid only once, "
        "and the ledger of leakage propagation says less still of the same noise. For noise that propagation itself "
        "calibrated, several times less of it, Kε is no bound, and the ledger says what is.",
    ]
    if settings.data.of(("activity", "electricity")):
        sentences.append(f"Gaps are unobserved records of one chain for each participant. The {FITTED}.")
    return sentences


def _tables(rows: Sequence[Row], settings: Settings) -> list[Table]:
    found = index(rows, "data", "noise", "ledger", "releases")
    counts = tuple(f"K = {k}" for k in _RELEASES)
    same: list[tuple[str, ...]] = []
    own: list[tuple[str, ...]] = []
    scales: list[tuple[str, ...]] = []
    for name in names_of(rows):
        for c in _LEDGERS:
            leaks = [found[name, _EXACT.name, c.name, k].get("leak_by_ledger") for k in _RELEASES]
            same.append((name, c.title, *map(number, leaks)))
        for c in _OWN:
            cells = [found[name, c.name, c.name, k] for k in _RELEASES]
            own.append((name, c.title, *(number(v.get("leak_by_ledger")) for v in cells)))
            scales.append((name, c.title, *map(_two_scales, cells)))
    return [
        Table(
            f"What K releases with the noise of MQMExact at ε = {_EPSILON:g} leak together, by three ledgers",
            ("data", "ledger", *counts),
            tuple(same),
            texts=2,
        ),
        Table(
            f"What K releases with the noise of one mechanism at ε = {_EPSILON:g} leak together, by its own ledger",
            ("data", "noise and ledger", *counts),
            tuple(own),
            texts=2,
        ),
        Table(
            f"Scale of each of K releases that leak ε = {_EPSILON:g} together, by its own ledger (in brackets: "
            "calibrated at ε/K each, which for propagation need not be enough)",
            ("data", "mechanism", *counts),
            tuple(scales),
            texts=2,
        ),
    ]


def _two_scales(row: Row) -> str:
    if "reason" in row:
        return "N/A"
    return f"{number(row['scale_within_epsilon'])} ({number(row['scale_at_epsilon_over_k'])})"


def _figure(rows: Sequence[Row], settings: Settings) -> "Figure":
    found, names = index(rows, "data", "noise", "ledger", "releases"), names_of(rows)
    columns = min(5, len(names))
    lines = -(-len(names) // columns)
    figure: Any = new_figure(max(2.6 * columns, 6), 2.7 * lines + 1.1)
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        together = [k * _EPSILON for k in _RELEASES]
        axes.plot(_RELEASES, together, color="0.35", linestyle=(0, (4, 3)), linewidth=1, label="Kε (Theorem 4.4)")
        for contender in (_EXACT, _PROPAGATION):
            leaks = [found[name, _EXACT.name, contender.name, k].get("leak_by_ledger") for k in _RELEASES]
            known = [] if None in leaks else leaks
            marks(axes, contender.name, _RELEASES[: len(known)], known, label=f"ledger of {contender.title}")
        axes.set_title(shortened(name, 32), loc="left", fontsize=9, parse_math=False)
        axes.set_xticks(_RELEASES)
        clean(axes)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes in panels[: len(names)][-columns:]:
        axes.set_xlabel("releases, K")
        axes.xaxis.set_tick_params(labelbottom=True)
    for axes in panels[::columns]:
        axes.set_ylabel("leak together, in nats")
    by_group: list[Any] = [found[name, _EXACT.name, _GROUP.name, 1].get("leak_by_ledger") for name in names]
    least = number(min(leak for leak in by_group if leak is not None))
    title = f"K releases with the noise of MQMExact at ε = {_EPSILON:g} each; by group privacy {least}·K or more"
    legend(figure, panels, f"{title}\nThe {FITTED}." if len(names) > 1 else title)
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
