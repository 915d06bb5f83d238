"""Physical activity: exact and released histograms of each group (Section 5.3.1, lower row of the figure)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paper.experiments.activity import ACTIVITY_CONTENDERS, EPSILON, GroupData, group_parts
from paper.experiments.drawing import clean, legend, new_figure
from paper.experiments.experiment import FITTED, Experiment, Part, Row, Settings, index, names_of
from paper.experiments.sampling import discrete_laplace
from paper.experiments.table import Table
from pufferfish._draw.figure import INK, MARKS, PALE, shortened
from pufferfish.queries import Histogram
from pufferfish.release.draw import exact_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE_ACTIVITY"]

_SHOWN = tuple(c for c in ACTIVITY_CONTENDERS if c.name != "gk16")
_COLUMNS = 4


def _parts(settings: Settings) -> list[Part]:
    return group_parts(settings, lambda data: _histograms(data, settings))


def _histograms(data: GroupData, settings: Settings) -> list[Row]:
    chain, unfit = data.chain()
    if chain is None:
        return [{"data": data.label, "reason": unfit}]
    rows: list[Row] = []
    for contender in _SHOWN:
        records = data.lengths_for(contender, "independent")
        found, _ = contender.calibrate(chain, records.length, Histogram(), EPSILON)
        if found is None:
            continue
        unit = float(found.linear.unit)
        exact = exact_value(records, found.linear, found.theta)[0] * unit
        rng = settings.stream("figure-activity", data.label, contender.name)
        noise = discrete_laplace(rng, found.unit_scale, (settings.trials, len(exact))) * unit
        for x, state in enumerate(found.linear.labels):
            released = exact[x] + noise[:, x]
            rows.append(
                {
                    "data": data.label,
                    "state": state,
                    "exact_share": float(exact[x]),
                    "mechanism": contender.name,
                    "scale": found.scale,
                    "released_least": float(released.min()),
                    "released_mean": float(released.mean()),
                    "released_most": float(released.max()),
                    "model": FITTED,
                }
            )
    return rows


def _about(rows: Sequence[Row], settings: Settings) -> list[str]:
    left_out = [f"{row['data']} is left out: {row['reason']}." for row in rows if row.get("reason")]
    return [
        f"Shares of records in each state, ε = {EPSILON:g}, gaps read as the paper does: bars are exact, marks the "
        f"means of {settings.trials} releases, lines from the least to the greatest of them, raw. Per group the "
        f"{FITTED}. Seed {settings.seed}.",
        "What is exact here is as private as the data.",
        *left_out,
    ]


def _shown(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of groups that have a chain."""
    return [row for row in rows if "state" in row]


def _tables(rows: Sequence[Row], settings: Settings) -> list[Table]:
    rows = _shown(rows)
    header = ("group, state", "exact", *(c.title for c in _SHOWN))
    found = index(rows, "data", "state", "mechanism")
    lines: list[tuple[str, ...]] = []
    for data, state in dict.fromkeys((row["data"], row["state"]) for row in rows):
        cells = [found.get((data, state, c.name)) for c in _SHOWN]
        exact = next(cell["exact_share"] for cell in cells if cell is not None)
        lines.append((f"{data}, {state}", f"{exact:.4f}", *(_range(cell) for cell in cells)))
    title = f"Share of records: exact, and least to greatest of {settings.trials} releases"
    return [Table(title, header, tuple(lines))]


def _range(row: Row | None) -> str:
    return "N/A" if row is None else f"{row['released_least']:.4f} to {row['released_most']:.4f}"


def _figure(rows: Sequence[Row], settings: Settings) -> "Figure":
    rows = _shown(rows)
    groups = names_of(rows)
    lines, columns = max(1, -(-len(groups) // _COLUMNS)), max(1, min(_COLUMNS, len(groups)))
    figure: Any = new_figure(13, 3.2 * lines + 0.8)
    panels = np.ravel(figure.subplots(lines, columns, sharey=True, squeeze=False))
    for axes, data in zip(panels, groups, strict=False):
        of_group = [row for row in rows if row["data"] == data]
        states = list(dict.fromkeys(row["state"] for row in of_group))
        exact = {row["state"]: row["exact_share"] for row in of_group}
        at = np.arange(len(states))
        axes.bar(at, [exact[s] for s in states], width=0.86, color=PALE, label="exact", zorder=1)
        for i, contender in enumerate(_SHOWN):
            cells = [row for row in of_group if row["mechanism"] == contender.name]
            shift = (i - (len(_SHOWN) - 1) / 2) * 0.165
            _whiskers(axes, contender.name, contender.title, [states.index(r["state"]) + shift for r in cells], cells)
        names = [shortened(str(state), 20).replace(" ", "\n") for state in states]
        axes.set_xticks(at, names, parse_math=False, fontsize=8)
        axes.set_title(shortened(data, 36), loc="left", fontsize=10, parse_math=False)
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.set_ylim(-0.35, 1.2)
        clean(axes)
    for axes in panels[len(groups) :]:
        axes.set_axis_off()
    for axes in panels[::columns]:
        axes.set_ylabel("share of records")
    title = (
        f"ε = {EPSILON:g}, gaps as in the paper; marks: mean of {settings.trials} releases; "
        "lines: all of them, where they are longer than a mark\n"
        f"The {FITTED}."
    )
    legend(figure, panels, title)
    return figure


def _whiskers(axes: Any, mechanism: str, title: str, at: list[float], cells: list[Row]) -> None:
    colour, marker = MARKS[mechanism]
    axes.vlines(
        at,
        [row["released_least"] for row in cells],
        [row["released_most"] for row in cells],
        color=colour,
        linewidth=1.3,
        zorder=2,
    )
    axes.plot(
        at,
        [row["released_mean"] for row in cells],
        color=colour,
        marker=marker,
        markersize=4,
        linestyle="",
        label=title,
        zorder=3,
    )


FIGURE_ACTIVITY = Experiment(
    name="figure-activity",
    title="Physical activity: exact and released histograms",
    source="Section 5.3.1, lower row of the figure",
    trials=20,
    needs=("activity",),
    uses=("activity",),
    parts=_parts,
    about=_about,
    tables=_tables,
    figure=_figure,
)
