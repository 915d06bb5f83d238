"""Synthetic binary chains: L1 error of a mean against the width of the class (Section 5.2, upper row of the figure).

Θ = [α, 1 − α]: both probabilities of staying are in it, with every initial law. T = 100, F(X) = mean of X. Each trial
draws a chain of the class uniformly, an initial law uniformly, and a sequence from them.

Mechanisms for one query do not cover a continuum: theirs is another Θ, of the four corner chains alone.
"""

import itertools
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper.experiments.contenders import CHAIN_BOUNDS, FOR_ONE_QUERY, Contender
from paper.experiments.drawing import clean, legend, logarithmic, new_figure, series
from paper.experiments.experiment import Experiment, Part, Row, Settings
from paper.experiments.sampling import l1_variance, summary, trial_errors
from paper.experiments.table import Table, number
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms import GK16
from pufferfish.queries import Mean
from pufferfish.release.draw import Database
from pufferfish.theta.continua import BinaryChainInterval
from pufferfish.theta.markov_chain import MarkovChain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE_SYNTHETIC", "binary_sequences"]

_LENGTH = 100
_EPSILONS = (0.2, 1.0, 5.0)
_ALPHAS = tuple(round(0.1 + 0.02 * i, 2) for i in range(16))
_QUERY = Mean([0, 1])
_CONTENDERS = (*CHAIN_BOUNDS, *FOR_ONE_QUERY)


def binary_sequences(rng: np.random.Generator, alpha: float, length: int, trials: int) -> NDArray[np.int64]:
    """Draw sequences from Θ = [α, 1 − α], as the paper does; shape (trials, length)."""
    stay = rng.uniform(alpha, 1 - alpha, (trials, 2))
    states = np.empty((trials, length), dtype=np.int64)
    states[:, 0] = rng.random(trials) >= rng.random(trials)
    for t in range(1, length):
        before = states[:, t - 1]
        stays = rng.random(trials) < stay[np.arange(trials), before]
        states[:, t] = np.where(stays, before, 1 - before)
    return states


def corner_chains(alpha: float) -> list[MarkovChain]:
    """Return the four chains at the corners of Θ = [α, 1 − α], each under every initial law."""
    return [
        MarkovChain([[p0, 1 - p0], [1 - p1, p1]], "any") for p0, p1 in itertools.product((alpha, 1 - alpha), repeat=2)
    ]


def _parts(settings: Settings) -> list[Part]:
    return [
        Part(f"α = {alpha:g}, ε = {epsilon:g}", lambda a=alpha, e=epsilon: _cell(a, e, settings))
        for epsilon in _EPSILONS
        for alpha in _ALPHAS
    ]


def _cell(alpha: float, epsilon: float, settings: Settings) -> list[Row]:
    interval, corners = BinaryChainInterval(alpha, 1 - alpha), corner_chains(alpha)
    drawn = binary_sequences(settings.stream("synthetic", alpha, epsilon), alpha, _LENGTH, settings.trials)
    databases = [Database(dict(enumerate(map(str, states)))) for states in drawn.tolist()]
    rows: list[Row] = []
    for contender in _CONTENDERS:
        of_corners = contender in FOR_ONE_QUERY
        found, reason = contender.calibrate(corners if of_corners else interval, _LENGTH, _QUERY, epsilon)
        row: Row = {
            "epsilon": epsilon,
            "alpha": alpha,
            "mechanism": contender.name,
            "theta": "corner chains" if of_corners else "interval",
            "scale": None if found is None else found.scale,
        }
        if found is not None:
            rng = settings.stream("synthetic noise", alpha, epsilon, contender.name)
            errors = trial_errors(found, databases, rng)
            row |= summary(found.expected_l1_error, l1_variance(found), errors)
        rows.append(row | {"reason": reason})
    return rows


@cache
def gk16_starts() -> float:
    """Return the least α from which GK16 applies to Θ = [α, 1 − α]: the dashed line, the same for every ε."""
    low, high = 0.25, 0.4
    while high - low > 1e-6:
        middle = (low + high) / 2
        try:
            GK16(BinaryChainInterval(middle, 1 - middle), _LENGTH)
            high = middle
        except NotApplicableError:
            low = middle
    return high


def _about(rows: Sequence[Row], settings: Settings) -> list[str]:
    return [
        f"Θ = [α, 1 − α]: every pair of probabilities of staying between these, every initial law; T = {_LENGTH}, "
        f"F(X) = mean of X (L = 1/{_LENGTH}). {settings.trials} trials with sequences drawn from Θ, seed "
        f"{settings.seed}.",
        "MQMApprox is Algorithm 4 as printed, with the least π_min and the least eigengap of the class.",
        "Wasserstein and ExactLaplace are those of the corner chains, another Θ: each probability of staying is α or "
        "1 − α, with every initial law. Their noise is promised for these four chains only; all Laplace noise of one "
        "scale that holds for Θ = [α, 1 − α] is at least that of ExactLaplace.",
        f"GK16 applies from α = {gk16_starts():.4f} on, for every ε: the dashed line.",
    ]


def _tables(rows: Sequence[Row], settings: Settings) -> list[Table]:
    found = {(row["epsilon"], row["alpha"], row["mechanism"]): row for row in rows}
    header = ("α", *map(_title, _CONTENDERS))
    tables: list[Table] = []
    for epsilon in _EPSILONS:
        lines = [(f"{alpha:g}", *(_cell_text(found[epsilon, alpha, c.name]) for c in _CONTENDERS)) for alpha in _ALPHAS]
        title = f"L1 error at ε = {epsilon:g}: expected (mean of {settings.trials} trials)"
        tables.append(Table(title, header, tuple(lines)))
    return tables


def _title(contender: Contender) -> str:
    return f"{contender.title} (corners)" if contender in FOR_ONE_QUERY else contender.title


def _cell_text(row: Row) -> str:
    expected = row.get("expected_l1_error")
    return "N/A" if expected is None else f"{number(expected)} ({number(row['mean_l1_error'])})"


def _figure(rows: Sequence[Row], settings: Settings) -> "Figure":
    figure: Any = new_figure(11, 4.4)
    panels = figure.subplots(1, len(_EPSILONS), sharey=True)
    for axes, epsilon in zip(panels, _EPSILONS, strict=True):
        for contender in _CONTENDERS:
            cells = [
                row
                for row in rows
                if row["mechanism"] == contender.name and row["epsilon"] == epsilon and row["scale"] is not None
            ]
            series(
                axes,
                contender.name,
                [row["alpha"] for row in cells],
                [row["expected_l1_error"] for row in cells],
                marks=[row["mean_l1_error"] for row in cells],
                label=_title(contender),
            )
        axes.axvline(gk16_starts(), color="0.35", linestyle=(0, (4, 3)), linewidth=1)
        logarithmic(axes, "y")
        axes.set_xlabel("α, where Θ = [α, 1 − α]")
        axes.set_title(f"ε = {epsilon:g}", loc="left")
        clean(axes)
    panels[0].set_ylabel("L1 error of the mean of 100 records")
    panels[0].annotate(
        "GK16 applies\nright of here",
        (gk16_starts(), 0.02),
        xycoords=("data", "axes fraction"),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=8,
        color="0.35",
    )
    legend(
        figure,
        panels,
        f"lines: expected; marks: mean of {settings.trials} trials. ExactLaplace lies on LeakagePropagation. "
        "Wasserstein and ExactLaplace\nare those of the four corner chains, another Θ: for these chains only.",
    )
    return figure


FIGURE_SYNTHETIC = Experiment(
    name="figure-synthetic",
    title="Synthetic binary chains: error against the width of the class",
    source="Section 5.2, upper row of the figure",
    trials=500,
    needs=(),
    uses=(),
    parts=_parts,
    about=_about,
    tables=_tables,
    figure=_figure,
)
