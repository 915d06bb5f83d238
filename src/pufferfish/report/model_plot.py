"""The picture of a model: its transition probabilities, and how long states last."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.calls import called_as
from pufferfish.errors import NotApplicableError
from pufferfish.report.axes import clean, name_ticks, titled
from pufferfish.report.palette import BLUE, INK, LINES, PALE
from pufferfish.report.plot import new_figure, shortened
from pufferfish.theta.continuum import Continuum
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.higher_order_chain import HigherOrderChain
from pufferfish.theta.model_class import as_theta
from pufferfish.theta.periodic_chain import PeriodicChain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_model"]

_MOST_WRITTEN = 12
_MOST_ROWS = 40
_MOST_LINES = len(LINES)

Array = NDArray[np.float64]


@called_as("draw_model(theta)")
def draw_model(theta: Any) -> "Figure":
    """Draw a class of chains: transition probabilities as a heat map, and how many records each state lasts.

    With a clock the second panel has the probability of staying by phase; of a class that only forgets, the picture
    has how much is forgotten. Of several members, or between bounds, means are drawn, and lines from the least to the
    most.

    Parameters
    ----------
    theta : model, sequence of models, or class
        The class Θ of chains.

    Returns
    -------
    matplotlib.figure.Figure
        Write it with its ``savefig``.

    Raises
    ------
    ParameterError
        If matplotlib is not installed.
    NotApplicableError
        If Θ is no class of chains; :func:`pufferfish.draw_network` draws networks.

    Examples
    --------
    A chain, and its picture::

        chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
        pf.draw_model(chain).savefig("chain.png")
    """
    made = as_theta(theta)
    if not made.of_chains:
        raise NotApplicableError(
            f"draw_model covers chains, and Θ is a class of {made.kind}: draw_network draws networks"
        )
    if isinstance(made, ForgettingClass):
        return _forgetting(made)
    members: Sequence[Any] = list(made.some_members if isinstance(made, Continuum) else made.members)
    first: Any = members[0]
    if isinstance(first, HigherOrderChain):
        table = np.mean([chain.tensor.reshape(-1, chain.k) for chain in members], axis=0)
        rows = [", ".join(name) for name in itertools.product(made.states, repeat=first.order)]
        names, stays = (f"last {first.order} (the latest last)", "next"), None
    elif isinstance(first, PeriodicChain):
        table = np.mean([chain.matrices.mean(axis=0) for chain in members], axis=0)
        rows, names, stays = list(made.states), ("from", "to (mean of all phases)"), None
    else:
        table = np.mean([chain.transition_matrix for chain in members], axis=0)
        rows, names = list(made.states), ("from", "to")
        stays = np.array([np.diag(chain.transition_matrix) for chain in members])
    two = stays is not None or isinstance(first, PeriodicChain)
    k, shown = len(made.states), min(len(rows), _MOST_ROWS)
    high = min(10.0, max(3.8, (0.42 if shown <= 16 else 0.2) * shown + 1.8))
    wide = min(10.0, max(4.2, 0.55 * k + 2.4))
    figure = new_figure(wide + (4.8 if two else 0.0), high)
    panels: Any = figure.subplots(1, 2, width_ratios=[wide, 4.8]) if two else [figure.add_subplot()]
    _heat_map(figure, panels[0], table[:_MOST_ROWS], rows[:_MOST_ROWS], list(made.states), names, wide)
    if stays is not None:
        _dwell_times(panels[1], stays, list(made.states))
    elif isinstance(first, PeriodicChain):
        _stays_by_phase(panels[1], first, list(made.states))
    many = f"{len(members):,} members; " if len(members) > 1 and not isinstance(made, Continuum) else ""
    bounds = "two members of the class; " if isinstance(made, Continuum) else ""
    left = f"; the first {shown} of {len(rows):,} rows are drawn" if len(rows) > shown else ""
    titled(figure, f"Transition probabilities of {k} states", f"{many}{bounds}Θ: {made.origin}{left}")
    return figure


def _heat_map(
    figure: Any, axes: Any, table: Array, rows: list[str], columns: list[str], names: tuple[str, str], wide: float
) -> None:
    """Draw probabilities as colours by their square roots, so that rare transitions are seen beside staying."""
    from matplotlib.colors import PowerNorm

    norm = PowerNorm(0.5, 0.0, 1.0)
    image = axes.imshow(np.ma.masked_equal(table, 0.0), cmap="Blues", norm=norm, aspect="auto")
    name_ticks(axes, [shortened(name) for name in columns], wide)
    every = -(-len(rows) // _MOST_ROWS)
    axes.set_yticks(range(0, len(rows), every), [shortened(name) for name in rows[::every]], parse_math=False)
    axes.set_ylabel(names[0])
    axes.set_xlabel(names[1])
    if len(columns) <= _MOST_WRITTEN:
        for (x, y), value in np.ndenumerate(table):
            text = "0" if value == 0 else f"{value:.2f}" if value >= 0.01 else f"{value:.1g}"
            dark = float(norm(value)) > 0.6
            axes.text(y, x, text, ha="center", va="center", fontsize=8, color="white" if dark else INK)
    figure.colorbar(image, ax=axes, shrink=0.8, ticks=[0, 0.01, 0.1, 0.25, 0.5, 1]).set_label(
        "probability (white: impossible)"
    )


def _dwell_times(axes: Any, stays: Array, states: list[str]) -> None:
    """Draw how many records in a row a state lasts in the mean, of all members from the least to the most."""
    ends = [[1 / (1 - stay) for stay in own if stay < 1] for own in stays.T.tolist()]
    for y, times in enumerate(ends):
        text, most = "always", 0.0
        if times:
            mean, most = sum(times) / len(times), max(times)
            axes.barh([y], [mean], color=PALE, edgecolor=BLUE, linewidth=0.8)
            text = f"{mean:.3g}" if len(times) == len(stays) else f"{mean:.3g}, or always"
            if len(times) > 1:
                axes.hlines([y], min(times), most, color=INK, linewidth=1.2)
        if len(states) <= _MOST_ROWS:
            axes.annotate(text, (most, y), (3, 0), textcoords="offset points", va="center", fontsize=8)
    if len(states) <= _MOST_ROWS:
        axes.set_yticks(range(len(states)), [shortened(name) for name in states], parse_math=False)
    axes.set_ylim(len(states) - 0.4, -0.6)
    axes.set_xlim(0, 1.2 * max([1.0, *(max(times) for times in ends if times)]))
    axes.set_xlabel("records in a row that a state lasts, in the mean")
    clean(axes)


def _stays_by_phase(axes: Any, chain: PeriodicChain, states: list[str]) -> None:
    stays: Array = np.diagonal(chain.matrices, axis1=1, axis2=2)
    usual = sorted(range(chain.k), key=lambda x: -float(stays[:, x].mean()))[:_MOST_LINES]
    for x, (colour, marker) in zip(sorted(usual), LINES, strict=False):
        axes.plot(stays[:, x], color=colour, marker=marker, markersize=3.5, linewidth=1.2)
        axes.annotate(
            shortened(states[x], 14),
            (len(stays) - 1, stays[-1, x]),
            (6, -3),
            textcoords="offset points",
            color=colour,
            fontsize=8,
            parse_math=False,
        )
    axes.margins(x=0.12)
    axes.set_xlabel(f"{chain.clock or 'phase'} (counted from 0)")
    axes.set_ylabel("probability of staying for one step")
    clean(axes)


def _forgetting(theta: ForgettingClass) -> "Figure":
    figure = new_figure(5.6, 3.8)
    axes: Any = figure.add_subplot()
    at, shares = zip(*theta.pairs, strict=True)
    axes.plot(at, shares, color=BLUE, marker="o", linewidth=1.4)
    for steps, share in theta.pairs:
        axes.annotate(f"{share:.3g}", (steps, share), (0, 6), textcoords="offset points", ha="center", fontsize=8)
    axes.set_ylim(0, 1.08)
    axes.set_xlim(0, max(at) * 1.1)
    axes.set_xlabel("steps later or earlier")
    axes.set_ylabel("overlap (1: all is forgotten)")
    clean(axes)
    titled(figure, f"How soon {len(theta.states)} states are forgotten", f"Θ: {theta.origin}")
    return figure
