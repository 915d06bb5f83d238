"""Household electricity: errors of a histogram of 51 bins of power (Section 5.3.2, Table 3)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paper.experiments import paper
from paper.experiments.contenders import CHAIN_BOUNDS, fitted
from paper.experiments.datasets import PowerTable
from paper.experiments.drawing import clean, legend, logarithmic, marks, new_figure
from paper.experiments.experiment import FITTED, Experiment, Part, Row, Settings, index, names_of
from paper.experiments.sampling import l1_variance, summary, trial_errors
from paper.experiments.table import Table, number, printed
from pufferfish._draw.figure import shortened
from pufferfish.queries import Histogram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TABLE_POWER"]

_EPSILONS = (0.2, 1.0, 5.0)
_BINS, _PAPER_LENGTH = 51, 1_000_000


def _parts(settings: Settings) -> list[Part]:
    return [
        Part(f"{table.title}, ε = {epsilon:g}", lambda t=table, e=epsilon: _cells(t, e, settings))
        for table in settings.data.electricity
        for epsilon in _EPSILONS
    ]


def _cells(table: PowerTable, epsilon: float, settings: Settings) -> list[Row]:
    data = table.read()
    chain, unfit = fitted(data)
    rows: list[Row] = []
    for contender in CHAIN_BOUNDS:
        row: Row = {
            "data": table.title,
            "records": data.records,
            "bins": len(data.states),
            "epsilon": epsilon,
            "mechanism": contender.name,
        }
        if chain is None:
            rows.append(row | {"reason": unfit})
            continue
        found, reason = contender.calibrate(chain, data.length, Histogram(), epsilon)
        if found is not None:
            rng = settings.stream("power", table.title, epsilon, contender.name)
            row |= {"scale": found.scale, "noise_multiplier": found.noise_multiplier}
            errors = trial_errors(found, [data] * settings.trials, rng)
            row |= summary(found.expected_l1_error, l1_variance(found), errors)
            longer, _ = contender.calibrate(chain, _PAPER_LENGTH, Histogram(), epsilon)
            if longer is not None:
                row["expected_at_paper_size"] = longer.expected_l1_error * _BINS / len(data.states)
        rows.append(row | {"model": FITTED, "reason": reason})
    return rows


def _about(rows: Sequence[Row], settings: Settings) -> list[str]:
    sizes = dict.fromkeys((row["data"], row["records"], row["bins"]) for row in rows)
    which = [f"{data}: {n:,} records, {bins} of {_BINS} bins of 200 W visited" for data, n, bins in sizes]
    return [
        f"Relative frequency histograms of one household's power, one chain. {'; '.join(which)}. The {FITTED}. "
        f"{settings.trials} trials, seed {settings.seed}.",
        "Gaps are unobserved records of the one chain. MQMApprox is Algorithm 4 as printed.",
        "The last table and the figure say what each fitted chain would need at the paper's size, T = "
        f"{_PAPER_LENGTH:,} and {_BINS} bins: an extrapolation, for a short table may have missed rare states and slow "
        f"habits. There errors of the bins visited are multiplied by {_BINS} over their number.",
    ]


def _tables(rows: Sequence[Row], settings: Settings) -> list[Table]:
    found = index(rows, "data", "epsilon", "mechanism")
    header = ("mechanism", *(f"ε = {epsilon:g}" for epsilon in _EPSILONS))
    tables: list[Table] = []
    for data in names_of(rows):
        lines = [(c.title, *(_text(found[data, epsilon, c.name]) for epsilon in _EPSILONS)) for c in CHAIN_BOUNDS]
        shown = f"expected (mean of {settings.trials} trials ± standard error; after post-processing)"
        tables.append(Table(f"{data}: L1 error, {shown}", header, tuple(lines)))
    lines: list[tuple[str, ...]] = []
    for c in CHAIN_BOUNDS:
        for data in names_of(rows):
            errors = [found[data, epsilon, c.name].get("expected_at_paper_size") for epsilon in _EPSILONS]
            lines.append((f"{c.title}, {data}", *map(number, errors)))
        if c.name in paper.POWER:
            lines.append((f"{c.title}, paper", *(printed(paper.POWER[c.name][epsilon]) for epsilon in _EPSILONS)))
    title = f"Expected L1 error at T = {_PAPER_LENGTH:,} and {_BINS} bins, and what the paper printed"
    return [*tables, Table(title, header, tuple(lines))]


def _text(row: Row) -> str:
    if row.get("expected_l1_error") is None:
        return "N/A"
    means = number(row["mean_l1_error"]), number(row["standard_error"]), number(row["valid_mean_l1_error"])
    return f"{number(row['expected_l1_error'])} ({means[0]} ± {means[1]}; {means[2]})"


def _figure(rows: Sequence[Row], settings: Settings) -> "Figure":
    found, names = index(rows, "data", "epsilon", "mechanism"), names_of(rows)
    figure: Any = new_figure(1.5 + 4.2 * len(names), 4.6)
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, data in zip(panels, names, strict=True):
        for contender in CHAIN_BOUNDS:
            errors = [found[data, epsilon, contender.name].get("expected_at_paper_size") for epsilon in _EPSILONS]
            at = [i for i, error in enumerate(errors) if error is not None]
            marks(axes, contender.name, [i - 0.08 for i in at], [errors[i] for i in at], label=contender.title)
            shown = [paper.POWER.get(contender.name, {}).get(epsilon) for epsilon in _EPSILONS]
            at = [i for i, error in enumerate(shown) if error is not None]
            marks(axes, contender.name, [i + 0.08 for i in at], [shown[i] for i in at], hollow=True)
        logarithmic(axes, "y")
        axes.set_xticks(range(len(_EPSILONS)), [f"ε = {epsilon:g}" for epsilon in _EPSILONS])
        axes.set_xlim(-0.5, len(_EPSILONS) - 0.5)
        axes.set_title(f"chain of {shortened(data, 36)}, at T = {_PAPER_LENGTH:,}", loc="left", parse_math=False)
        clean(axes)
    panels[0].set_ylabel(f"L1 error of {_BINS} shares, T = {_PAPER_LENGTH:,}")
    title = f"filled: expected, here; hollow: as the paper printed, for its own household\nThe {FITTED}."
    legend(figure, panels, title)
    return figure


TABLE_POWER = Experiment(
    name="table-power",
    title="Household electricity: errors of a histogram of power",
    source="Section 5.3.2, Table 3",
    trials=20,
    needs=("electricity",),
    uses=("electricity",),
    parts=_parts,
    about=_about,
    tables=_tables,
    figure=_figure,
)
