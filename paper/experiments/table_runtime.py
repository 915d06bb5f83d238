"""Seconds to compute the scale of the noise, by mechanism and data set (Section 5, Table 2).

Every run starts from the transition matrix and makes everything anew; one run before is not counted, in which compiled
code is loaded. Fitting the matrix to data is not counted either.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper.experiments import paper
from paper.experiments.contenders import CHAIN_BOUNDS, FOR_ONE_QUERY, Contender, fitted
from paper.experiments.drawing import clean, legend, logarithmic, marks, new_figure
from paper.experiments.experiment import FITTED, Experiment, Part, Row, Settings, index, names_of
from paper.experiments.table import Table, number, printed
from pufferfish._draw.figure import shortened
from pufferfish.data import Sequences
from pufferfish.queries import Histogram, Mean, Query
from pufferfish.theta.markov_chain import MarkovChain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TABLE_RUNTIME"]

_RUNS = 5
_EPSILON = 1.0
_LENGTH = 100
_STAY = (0.1, 0.3, 0.5, 0.7, 0.9)
_CONTENDERS = (*CHAIN_BOUNDS, *FOR_ONE_QUERY)
_SYNTHETIC = "synthetic"


def _parts(settings: Settings) -> list[Part]:
    return [
        *(Part(f"{_SYNTHETIC}, {c.title}", lambda c=c: [_synthetic(c)]) for c in _CONTENDERS),
        *(
            Part(name, lambda name=name, read=read: _of_data(name, read("independent")))
            for name, read in settings.data.readers()
        ),
    ]


def _synthetic(contender: Contender) -> Row:
    """Return the mean over a grid of chains of the median time for one chain with every initial law."""
    medians: list[float] = []
    for first in _STAY:
        for second in _STAY:
            matrix = np.array([[first, 1 - first], [1 - second, second]])
            seconds, reason = _seconds(contender, matrix, "any", None, _LENGTH, Mean([0, 1]))
            if reason is None:
                medians.append(float(np.median(seconds)))
    return {
        "data": _SYNTHETIC,
        "records": _LENGTH,
        "states": 2,
        "mechanism": contender.name,
        "seconds": float(np.mean(medians)),
        "least": min(medians),
        "most": max(medians),
        "chains": len(medians),
        "runs": _RUNS,
    }


def _of_data(name: str, data: Sequences) -> list[Row]:
    rows: list[Row] = []
    chain, unfit = fitted(data)
    for contender in _CONTENDERS:
        row: Row = {
            "data": name,
            "records": data.records,
            "states": len(data.states),
            "mechanism": contender.name,
        }
        if chain is None:
            rows.append(row | {"reason": unfit})
            continue
        matrix = np.array(chain.transition_matrix)
        seconds, reason = _seconds(contender, matrix, "stationary", chain.states, data.length, Histogram())
        if reason is None:
            row |= {"seconds": float(np.median(seconds)), "least": min(seconds), "most": max(seconds)}
            row |= {"chains": 1, "runs": _RUNS}
        rows.append(row | {"model": FITTED, "reason": reason})
    return rows


def _seconds(
    contender: Contender,
    matrix: NDArray[np.float64],
    start: Any,
    states: tuple[str, ...] | None,
    length: Any,
    query: Query,
) -> tuple[list[float], str | None]:
    """Return the times of all runs, or why the mechanism does not apply."""
    taken: list[float] = []
    for _ in range(_RUNS + 1):
        begin = time.perf_counter()
        _, reason = contender.calibrate(MarkovChain(matrix, start, states=states), length, query, _EPSILON)
        taken.append(time.perf_counter() - begin)
        if reason is not None:
            return [], reason
    return taken[1:], None


def _about(rows: Sequence[Row], settings: Settings) -> list[str]:
    grid = ", ".join(f"{p:g}" for p in _STAY)
    sentences = [
        f"Seconds to compute the scale at ε = {_EPSILON:g}, from the transition matrix on, everything made anew: "
        f"medians of {_RUNS} runs after one that is not counted, in which compiled code is loaded. On whatever machine "
        "this ran, so not the same twice. The paper's are means of 5 runs on a 3.00 GHz Intel Core i5-3330 with 8 GB: "
        "other hardware, other programs.",
        f"synthetic: T = {_LENGTH}, one binary chain with every initial law; the mean (least, most) over those of the "
        f"{len(_STAY) ** 2} chains with probabilities of staying in {{{grid}}} that the mechanism applies to (the "
        "paper: steps of .01).",
    ]
    if settings.data.of(("activity", "electricity")):
        sentences.append(f"Of the others the {FITTED}. Gaps start independent chains, as in the paper.")
    return sentences


def _tables(rows: Sequence[Row], settings: Settings) -> list[Table]:
    found = {key: row.get("seconds") for key, row in index(rows, "data", "mechanism").items()}
    lines = [(name, *(number(found[name, c.name]) for c in _CONTENDERS)) for name in names_of(rows)]
    for i, name in enumerate(paper.RUNTIME_DATA):
        numbers = [paper.RUNTIME.get(c.name) for c in _CONTENDERS]
        lines.append((f"paper: {name}", *("" if n is None else printed(n[i]) for n in numbers)))
    return [Table("Seconds to compute the scale", ("data", *(c.title for c in _CONTENDERS)), tuple(lines))]


def _figure(rows: Sequence[Row], settings: Settings) -> "Figure":
    names = names_of(rows)
    found = {key: row.get("seconds") for key, row in index(rows, "data", "mechanism").items()}
    labels = [*names, *(f"paper: {name}" for name in paper.RUNTIME_DATA)]
    figure: Any = new_figure(9, 1.8 + 0.38 * len(labels))
    axes: Any = figure.add_subplot()
    for contender in _CONTENDERS:
        at = [y for y, name in enumerate(names) if found[name, contender.name] is not None]
        marks(axes, contender.name, [found[names[y], contender.name] for y in at], at, label=contender.title)
        numbers = paper.RUNTIME.get(contender.name, ())
        at = [i for i, value in enumerate(numbers) if value is not None]
        marks(axes, contender.name, [numbers[i] for i in at], [len(names) + i for i in at], hollow=True)
    logarithmic(axes, "x")
    axes.set_xlabel("seconds to compute the scale")
    axes.set_yticks(range(len(labels)), [shortened(label, 36) for label in labels], parse_math=False)
    axes.invert_yaxis()
    axes.axhline(len(names) - 0.5, color="0.7", linewidth=0.8)
    clean(axes)
    title = "filled: here; hollow: as the paper printed, on other hardware"
    legend(figure, [axes], f"{title}\nThe {FITTED}." if len(names) > 1 else title, columns=4)
    return figure


TABLE_RUNTIME = Experiment(
    name="table-runtime",
    title="Seconds to compute the scale of the noise",
    source="Section 5, Table 2",
    trials=_RUNS,
    needs=(),
    uses=("activity", "electricity"),
    parts=_parts,
    about=_about,
    tables=_tables,
    figure=_figure,
)
