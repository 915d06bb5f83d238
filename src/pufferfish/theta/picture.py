"""The picture of a model: its transition probabilities, and how long states last."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.words import number
from pufferfish._draw.figure import new_figure
from pufferfish._draw.svg import BLUE, INK, LINES, ORANGE, PALE, clean, name_ticks, shortened, titled
from pufferfish.errors import NotApplicableError
from pufferfish.theta.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.higher_order_chain import HigherOrderChain
from pufferfish.theta.model_class import as_theta
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.states import CLOCKS, phase_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_model"]

_MOST_WRITTEN = 12
_MOST_ROWS = 40
_MOST_LINES = len(LINES)
_MOST_ON_A_LINE = 4
"""States up to which the two ends of a range stand on one line of a cell."""

_MOST_JUMPS = 2000
"""Times that one stated overlap is repeated along the line of what follows."""

_MOST_POINTS = 100
"""Members up to which each has a point of its own."""

Array = NDArray[np.float64]


def draw_model(theta: Any) -> "Figure":
    """Draw a class of chains: transition probabilities as a heat map, and how many records each state lasts.

    With a clock the second panel has the probability of staying by phase; of a class that only forgets, the picture
    has how much is forgotten. Of several members, and of a class between bounds, the picture has the least and the most
    of each number, and says so: it shows no estimate.

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
    if isinstance(made, BinaryChainInterval | IntervalChain):
        return _bounds(made)
    return _members(made, made.members)


def _bounds(made: BinaryChainInterval | IntervalChain) -> "Figure":
    """Draw the bounds of a class that has no list of members."""
    low, high = _bounds_of(made)
    states = list(made.states)
    fixed = isinstance(made, BinaryChainInterval)
    told = (
        f"every chain between the bounds is in Θ, its matrix {'the same' if fixed else 'free to change'} at each step"
    )
    figure, (left, right) = _panels(len(states), len(states), two=True)
    _heat_map(figure, left, _Range(low, high), states, states, ("from", "to"))
    _dwell_times(right, _Range(np.diag(low), np.diag(high)), states)
    titled(
        figure,
        f"Bounds on the transition probabilities of {len(states)} states, and on how long states last",
        f"Bounds are no estimate: {told}",
        f"Θ: {made.origin}",
    )
    return figure


def _bounds_of(made: BinaryChainInterval | IntervalChain) -> tuple[Array, Array]:
    """Return the least and the most of each transition probability in a class."""
    if isinstance(made, IntervalChain):
        return made.lower, made.upper
    low, high = made.low, made.high
    return np.array([[low, 1 - high], [1 - high, low]]), np.array([[high, 1 - low], [1 - low, high]])


def _members(made: Any, members: Sequence[Any]) -> "Figure":
    """Draw the transition probabilities of one chain, or from the least to the most of several and of all phases."""
    first, states = members[0], list(made.states)
    rows, names, many = states, ("from", "to"), [f"{len(members):,} chains"] if len(members) > 1 else []
    if isinstance(first, HigherOrderChain):
        every = np.array([chain.tensor.reshape(-1, chain.k) for chain in members])
        rows = [", ".join(name) for name in itertools.product(states, repeat=first.order)]
        names = (f"last {first.order} (the latest last)", "next")
    elif isinstance(first, PeriodicChain):
        every = np.concatenate([chain.matrices for chain in members])
        many = [*many, f"{first.phases:,} {_phases(first)}"]
    else:
        every = np.array([chain.transition_matrix for chain in members])
    shown = min(len(rows), _MOST_ROWS)
    figure, panels = _panels(len(states), shown, two=not isinstance(first, HigherOrderChain))
    ends = _Range(every.min(axis=0)[:_MOST_ROWS], every.max(axis=0)[:_MOST_ROWS])
    _heat_map(figure, panels[0], ends, rows[:_MOST_ROWS], states, names)
    if isinstance(first, PeriodicChain):
        _stays_by_phase(panels[1], members, states)
    elif len(panels) > 1:
        stays = every.diagonal(axis1=1, axis2=2)
        _dwell_times(panels[1], _Range(stays.min(axis=0), stays.max(axis=0)), states, stays if many else None)
    spread = f", from the least to the most of {' and '.join(many)}" if many else ""
    left = f"; the first {shown} of {len(rows):,} rows are drawn" if len(rows) > shown else ""
    titled(figure, f"Transition probabilities of {len(states)} states{spread}", f"Θ: {made.origin}{left}")
    return figure


class _Range(NamedTuple):
    """The least and the most of some numbers."""

    low: Array
    high: Array


def _panels(k: int, rows: int, *, two: bool) -> tuple[Any, list[Any]]:
    """Return a figure with room for a table of so many rows and k columns, and for a second panel beside it."""
    high = min(10.0, max(3.8, (0.42 if rows <= 16 else 0.2) * rows + 1.8))
    wide = min(10.0, max(4.2, 0.55 * k + 2.4))
    figure = new_figure(wide + (4.8 if two else 0.0), high)
    return figure, list(figure.subplots(1, 2, width_ratios=[wide, 4.8])) if two else [figure.add_subplot()]


def _phases(chain: PeriodicChain) -> str:
    return "phases" if chain.clock is None else f"{CLOCKS[chain.clock].word}s of the clock"


def _heat_map(
    figure: Any, axes: Any, ends: _Range, rows: list[str], columns: list[str], names: tuple[str, str]
) -> None:
    """Draw probabilities as colours by their square roots, so that rare transitions are seen beside staying.

    Between two ends the colour is that of the larger one, so that white is impossible, and cells name both.
    """
    from matplotlib.colors import PowerNorm

    norm = PowerNorm(0.5, 0.0, 1.0)
    image = axes.imshow(np.ma.masked_equal(ends.high, 0.0), cmap="Blues", norm=norm, aspect="auto")
    name_ticks(axes, [shortened(name) for name in columns], min(10.0, max(4.2, 0.55 * len(columns) + 2.4)))
    every = -(-len(rows) // _MOST_ROWS)
    axes.set_yticks(range(0, len(rows), every), [shortened(name) for name in rows[::every]], parse_math=False)
    axes.set_ylabel(names[0])
    axes.set_xlabel(names[1])
    apart = bool(np.any(ends.high > ends.low))
    if len(columns) <= _MOST_WRITTEN:
        for (x, y), most in np.ndenumerate(ends.high):
            text = _from_to(float(ends.low[x, y]), float(most), "\n– " if len(columns) > _MOST_ON_A_LINE else " – ")
            dark = float(norm(most)) > 0.6
            size = 7 if apart and len(columns) > _MOST_ON_A_LINE else 8
            axes.text(y, x, text, ha="center", va="center", fontsize=size, color="white" if dark else INK)
    figure.colorbar(image, ax=axes, shrink=0.8, ticks=[0, 0.01, 0.1, 0.25, 0.5, 1]).set_label(
        "largest probability\n(white: impossible)" if apart else "probability (white: impossible)"
    )


def _from_to(low: float, high: float, dash: str = " – ") -> str:
    """Return one probability in two digits, or a range of them in three.

    Examples
    --------
    >>> _from_to(0.25, 0.25), _from_to(0.2512, 0.3), _from_to(0.0, 0.0004), _from_to(0.99949, 1.0)
    ('0.25', '0.251 – 0.300', '0 – 0.0004', '0.999 – 1')
    """
    if low == high:
        return _probability(low, 2)
    return f"{_probability(low, 3)}{dash}{_probability(high, 3)}"


def _probability(value: float, digits: int) -> str:
    if value in (0.0, 1.0):
        return f"{value:.0f}" if value == 0 or digits > 2 else f"{value:.{digits}f}"
    return f"{value:.{digits}f}" if value >= 10.0**-digits else f"{value:.1g}"


def _dwell_times(axes: Any, stays: _Range, states: list[str], each: Array | None = None) -> None:
    """Draw how many records in a row a state lasts in the mean.

    One number is a bar from 0. Between two ends the bar goes from the one to the other, with a point for each member.
    """
    low, high = (np.divide(1.0, 1.0 - stay, out=np.full(len(states), np.inf), where=stay < 1) for stay in stays)
    finite = [float(times) for ends in (low, high) for times in ends if np.isfinite(times)]
    right = (1.25 if np.isfinite(high).all() else 2.5) * max([1.0, *finite])
    apart = bool(np.any(high > low))
    for y, (least, most) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        start = least if apart else 0.0
        end = min(most, right)
        if np.isfinite(least):
            axes.barh([y], [end - start], left=start, color=PALE, edgecolor=BLUE, linewidth=0.8)
        if len(states) <= _MOST_ROWS:
            at = next((times for times in (most, least) if np.isfinite(times)), 0.0)
            axes.annotate(_times(least, most), (at, y), (3, 0), textcoords="offset points", va="center", fontsize=8)
    points = each if each is not None and apart and len(each) <= _MOST_POINTS else []
    for stay in points:
        known = np.flatnonzero(stay < 1)
        axes.plot(1 / (1 - stay[known]), known, color=INK, marker="o", markersize=2.5, linestyle="")
    if len(states) <= _MOST_ROWS:
        axes.set_yticks(range(len(states)), [shortened(name) for name in states], parse_math=False)
    axes.set_ylim(len(states) - 0.4, -0.6)
    axes.set_xlim(0, right)
    what = "records in a row that a state lasts, in the mean"
    spread = f":\nleast to most in Θ{'; a point for each chain' if len(points) else ''}" if apart else ""
    axes.set_xlabel(f"{what}{spread}")
    clean(axes)


def _times(least: float, most: float) -> str:
    """Return how many records a state lasts, from the least to the most.

    Examples
    --------
    >>> _times(6.571, 6.571), _times(6.571, 7.2), _times(1234.5, np.inf), _times(np.inf, np.inf)
    ('6.57', '6.57 – 7.2', '1,230 or more, or always', 'always')
    """
    if not np.isfinite(least):
        return "always"
    if not np.isfinite(most):
        return f"{number(least, 3)} or more, or always"
    return number(least, 3) if least == most else f"{number(least, 3)} – {number(most, 3)}"


def _stays_by_phase(axes: Any, members: Sequence[PeriodicChain], states: list[str]) -> None:
    """Draw the probability of staying by phase: a line, or a band from the least to the most of several members."""
    first = members[0]
    stays: Array = np.array([np.diagonal(chain.matrices, axis1=1, axis2=2) for chain in members])
    usual = sorted(range(first.k), key=lambda x: -float(stays[:, :, x].mean()))[:_MOST_LINES]
    for x, (colour, marker) in zip(sorted(usual), LINES, strict=False):
        low, high = stays[:, :, x].min(axis=0), stays[:, :, x].max(axis=0)
        if len(members) == 1:
            axes.plot(low, color=colour, marker=marker, markersize=3.5, linewidth=1.2)
        else:
            axes.fill_between(np.arange(first.phases), low, high, color=colour, alpha=0.35, linewidth=0.8)
        axes.annotate(
            shortened(states[x], 14),
            (first.phases - 1, (low[-1] + high[-1]) / 2),
            (6, -3),
            textcoords="offset points",
            color=colour,
            fontsize=8,
            parse_math=False,
        )
    axes.margins(x=0.12)
    axes.set_xticks(*_phase_ticks(first.clock, first.phases))
    axes.set_xlabel(_PHASE_LABELS.get(first.clock or "", "phase (counted from 0)"))
    spread = "" if len(members) == 1 else ",\nfrom the least to the most of all chains"
    axes.set_ylabel(f"probability of staying for one step{spread}")
    clean(axes)


def _phase_ticks(clock: str | None, phases: int) -> tuple[list[int], list[str]]:
    """Return the phases that are named along an axis, and their names: hours by the three, days by name.

    Examples
    --------
    >>> _phase_ticks("hour", 24)[1][-2:], _phase_ticks("weekday-hour", 168)[1][:2], _phase_ticks(None, 3)[1]
    (['18', '21'], ['Mon', 'Tue'], ['0', '1', '2'])
    """
    if clock in ("weekday", "weekday-hour"):
        at = list(range(0, phases, phases // 7))
        return at, [phase_name("weekday", day)[:3] for day in range(len(at))]
    every = 3 if clock == "hour" else -(-phases // 12)
    at = list(range(0, phases, every))
    return at, [f"{phase:,}" for phase in at]


_PHASE_LABELS = {"hour": "hour of the day", "weekday": "weekday", "weekday-hour": "hour of the week (ticks: midnight)"}


def _forgetting(theta: ForgettingClass) -> "Figure":
    """Draw the overlaps that are stated as points, and what follows from them as steps."""
    figure = new_figure(6.2, 4.0)
    axes: Any = figure.add_subplot()
    steps, shares = (np.array(each, dtype=np.float64) for each in zip(*theta.pairs, strict=True))
    until = max(1.5 * float(steps.max()), 3.5 * float(steps.min()))
    jumps = [np.arange(1, min(_MOST_JUMPS, until // n) + 1) * n for n in steps]
    at = np.unique(np.concatenate([[0.0, until], *jumps]))
    axes.step(at, follows(theta.pairs, at), where="post", color=BLUE, linewidth=1.2, label="follows: at least")
    axes.plot(steps, shares, color=ORANGE, marker="o", linestyle="", zorder=3, label="stated in Θ: at least")
    for n, share in theta.pairs:
        axes.annotate(f"{share:.3g}", (n, share), (5, -11), textcoords="offset points", fontsize=8)
    axes.set_ylim(0, 1.08)
    axes.set_xlim(0, until)
    axes.set_xlabel("steps later or earlier")
    axes.set_ylabel("overlap (1: all is forgotten)")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    clean(axes)
    titled(
        figure,
        f"How soon {len(theta.states)} states are forgotten",
        "Points: the overlaps that Θ states. Line: what follows from each for every Markov process, also in between. "
        "A point below the line adds nothing",
        f"Θ: {theta.origin}",
    )
    return figure


def follows(pairs: Sequence[tuple[int, float]], steps: Array) -> Array:
    """Return the overlap after each number of steps that one of the stated overlaps implies at least.

    An overlap after n steps holds after more steps too, and n steps m times leave at most (1 − overlap)^m of what is
    known (docs/proofs/forgetting.md, note 2).

    Examples
    --------
    >>> follows([(8, 0.5), (20, 0.8)], np.array([7.0, 8.0, 15.0, 16.0, 20.0, 24.0])).tolist()
    [0.0, 0.5, 0.5, 0.75, 0.8, 0.875]
    """
    return np.max([1 - (1 - share) ** np.floor(steps / n) for n, share in pairs], axis=0)
