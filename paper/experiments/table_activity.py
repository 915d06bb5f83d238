"""Physical activity: errors of histograms of a group, and of each participant (Section 5.3.1, Table 1)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paper.experiments import paper
from paper.experiments.activity import ACTIVITY_CONTENDERS, EPSILON, READINGS, group_parts, table_rows
from paper.experiments.drawing import clean, legend, logarithmic, marks, new_figure
from paper.experiments.experiment import FITTED, Experiment, Part, Row, Settings, index, names_of
from paper.experiments.table import Table, number, printed
from pufferfish._draw.figure import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TABLE_ACTIVITY"]

_TASKS = ("aggregate", "individual")
_READ_AS = {
    "independent": "a gap starts an independent chain, as in the paper",
    "unobserved": "one chain for every participant",
}


def _parts(settings: Settings) -> list[Part]:
    return group_parts(settings, lambda data: table_rows(data, settings))


def _about(rows: Sequence[Row], settings: Settings) -> list[str]:
    return [
        f"Relative frequency histograms at ε = {EPSILON:g}: of a whole group (aggregate), and the mean over its "
        f"participants of each one's own (individual). Per group the {FITTED}. "
        f"{settings.trials} trials, seed {settings.seed}.",
        "Which records count as worn or awake, and who is in a group, was found from the recordings, and is taken as "
        "public here. MQMApprox is Algorithm 4 as printed; MQMExact searches all quilts.",
        "The paper's recordings are not public: its numbers stand beside, on other people and devices.",
    ]


def _by_cell(rows: Sequence[Row]) -> dict[Any, Row]:
    return index(rows, "data", "gaps", "task", "mechanism")


def _tables(rows: Sequence[Row], settings: Settings) -> list[Table]:
    found = _by_cell(rows)
    header = ("group", "participants", "records", *(c.title for c in ACTIVITY_CONTENDERS))
    tables: list[Table] = []
    for gaps in READINGS:
        for task in _TASKS:
            lines: list[tuple[str, ...]] = []
            for data in names_of(rows):
                cells = [found[data, gaps, task, c.name] for c in ACTIVITY_CONTENDERS]
                size = (f"{cells[0]['participants']:,}", f"{cells[0]['records']:,}")
                lines.append((data, *size, *(_both(cell) for cell in cells)))
            if gaps == "independent":
                lines += _paper_lines(task)
            shown = f"expected (mean of {settings.trials} trials ± standard error; after post-processing)"
            title = f"L1 error, {task}, {_READ_AS[gaps]}: {shown}"
            tables.append(Table(title, header, tuple(lines)))
    tables.append(_cost(rows))
    return tables


def _both(row: Row) -> str:
    if row.get("expected_l1_error") is None:
        return "N/A"
    means = number(row["mean_l1_error"]), number(row["standard_error"]), number(row["valid_mean_l1_error"])
    return f"{number(row['expected_l1_error'])} ({means[0]} ± {means[1]}; {means[2]})"


def _paper_lines(task: str) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for i, group in enumerate(paper.ACTIVITY_GROUPS):
        numbers = [paper.ACTIVITY.get(c.name, {}).get(task) for c in ACTIVITY_CONTENDERS]
        lines.append((f"paper: {group}", "", "", *("" if n is None else printed(n[i]) for n in numbers)))
    return lines


def _cost(rows: Sequence[Row]) -> Table:
    """Return what it costs to keep the dependence across gaps, and what not keeping it leaks."""
    found = _by_cell(rows)
    chains = [c for c in ACTIVITY_CONTENDERS if c.name not in ("participant-dp", "gk16")]
    lines: list[tuple[str, ...]] = []
    for data in names_of(rows):
        cells: list[str] = []
        for contender in chains:
            paper_row = found[data, "independent", "aggregate", contender.name]
            our_row = found[data, "unobserved", "aggregate", contender.name]
            scales = paper_row.get("scale"), our_row.get("scale")
            if isinstance(scales[0], float) and isinstance(scales[1], float):
                leaks = paper_row.get("leaks_with_unobserved_gaps")
                cells.append(f"{number(scales[1] / scales[0])} ({number(leaks)})")
            else:
                cells.append("N/A")
        lines.append((data, *cells))
    return Table(
        "What gaps cost, aggregate: noise with one chain for every participant over noise with independent chains (in "
        "brackets what the latter leaks, by the same mechanism, if gaps are unobserved records)",
        ("group", *(c.title for c in chains)),
        tuple(lines),
    )


def _figure(rows: Sequence[Row], settings: Settings) -> "Figure":
    found = _by_cell(rows)
    ours = names_of(rows)
    names = [*ours, *(f"paper: {group}" for group in paper.ACTIVITY_GROUPS)]
    figure: Any = new_figure(10.5, 1.9 + 0.42 * len(names))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, task in zip(panels, _TASKS, strict=True):
        for contender in ACTIVITY_CONTENDERS:
            cells = [found[data, "independent", task, contender.name] for data in ours]
            at = [y for y, cell in enumerate(cells) if cell.get("scale") is not None]
            values = [cells[y]["expected_l1_error"] for y in at]
            marks(axes, contender.name, values, at, label=contender.title)
            numbers = paper.ACTIVITY.get(contender.name, {}).get(task, ())
            printed = [i for i, value in enumerate(numbers) if value is not None]
            at = [len(ours) + i for i in printed]
            marks(axes, contender.name, [numbers[i] for i in printed], at, hollow=True)
        logarithmic(axes, "x")
        axes.set_xlabel("L1 error (expected)")
        axes.set_title(f"{task} task", loc="left")
        axes.axhline(len(ours) - 0.5, color="0.7", linewidth=0.8)
        clean(axes)
    panels[0].set_yticks(range(len(names)), [shortened(name, 36) for name in names], parse_math=False)
    panels[0].invert_yaxis()
    title = (
        f"ε = {EPSILON:g}; gaps as in the paper; filled: expected, here; hollow: as the paper printed\nThe {FITTED}."
    )
    legend(figure, panels, title)
    return figure


TABLE_ACTIVITY = Experiment(
    name="table-activity",
    title="Physical activity: errors of group and individual histograms",
    source="Section 5.3.1, Table 1",
    trials=20,
    needs=("activity",),
    uses=("activity",),
    parts=_parts,
    about=_about,
    tables=_tables,
    figure=_figure,
)
