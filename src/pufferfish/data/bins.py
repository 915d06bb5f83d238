"""Numeric values as states: m + 1 increasing edges make m bins, and nothing falls outside.

Bin j holds edge[j] ≤ x < edge[j+1]; values below the first edge go to the first bin, values from the last
edge on to the last (the paper's electricity rows: 51 bins of 200 W). The bins are fixed by the edges alone,
never by the data, so all of them are states, visited or not. A bin's number is the count of inner edges ≤ x:
a sum of comparisons, exact and the same on every engine.
"""

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from numbers import Real
from typing import Any

from pufferfish._base.checked import is_list
from pufferfish.errors import ParameterError
from pufferfish.theta.states import MOST_STATES

_REMEDY = "give increasing edges such as '0,200,400' or '0,200,...,10200'"


def parse_bins(bins: str | Sequence[float]) -> tuple[float, ...]:
    """Edges of the bins from numbers or text; ``...`` (or ``…``) continues the last step to the last edge.

    >>> parse_bins("0,200,...,1000")
    (0.0, 200.0, 400.0, 600.0, 800.0, 1000.0)
    """
    if not isinstance(bins, str) and not is_list(bins):
        raise ParameterError(f"bins is {bins!r}: {_REMEDY}")
    edges = _from_text(bins) if isinstance(bins, str) else tuple(_as_float(value, i) for i, value in enumerate(bins))
    for i, edge in enumerate(edges):
        if not math.isfinite(edge):
            raise ParameterError(f"bins[{i}] is {edge!r}, expected a finite number: {_REMEDY}")
        if i and edge <= edges[i - 1]:
            raise ParameterError(
                f"bins[{i}] is {_number(edge)}, expected above the edge before it ({_number(edges[i - 1])}): {_REMEDY}"
            )
    if len(edges) < 3:
        raise ParameterError(f"bins has {len(edges)} edges, expected at least 3 (2 bins): {_REMEDY}")
    if len(edges) - 1 > MOST_STATES:
        raise ParameterError(f"bins makes {len(edges) - 1} states, expected at most {MOST_STATES}")
    return edges


def bin_labels(edges: Sequence[float]) -> tuple[str, ...]:
    """State names of the bins between ``edges``, in order.

    >>> bin_labels((0, 200, 400, 600.5))
    ('<200', '200-400', '>=400')
    """
    inner = [_number(edge) for edge in edges[1:-1]]
    middle = (f"{low}-{high}" for low, high in pairwise(inner))
    return (f"<{inner[0]}", *middle, f">={inner[-1]}")


def inner_edges_of(labels: Sequence[str], candidates: Sequence[float]) -> tuple[float, ...] | None:
    """Inner edges, out of some candidates, whose bins have these labels; None where there are none.

    >>> inner_edges_of(("<200", "200-600", ">=600"), (200.0, 400.0, 600.0))
    (200.0, 600.0)
    """
    named = {_number(edge): edge for edge in candidates}
    names = [labels[0].removeprefix("<")]
    for label in labels[1:-1]:
        names.append(label.removeprefix(f"{names[-1]}-"))
    if not all(name in named for name in names):
        return None
    inner = tuple(named[name] for name in names)
    return inner if bin_labels((-math.inf, *inner, math.inf)) == tuple(labels) else None


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _as_float(value: Any, i: int) -> float:
    if isinstance(value, bool) or not isinstance(value, Real | str):
        raise ParameterError(f"bins[{i}] is {value!r}, expected a number: {_REMEDY}")
    try:
        return float(value)
    except OverflowError:  # may have too many digits to be shown
        is_large = "is too large for a floating-point number"
        raise ParameterError(f"bins[{i}] {is_large}, expected a finite number: {_REMEDY}") from None
    except ValueError:
        raise ParameterError(f"bins[{i}] is {value!r}, expected a finite number: {_REMEDY}") from None


def _from_text(text: str) -> tuple[float, ...]:
    pieces = [piece.strip() for piece in text.split(",")]
    dots = [i for i, piece in enumerate(pieces) if re.fullmatch(r"\.\.\.|…", piece)]
    if not dots:
        return tuple(_as_float(piece, i) for i, piece in enumerate(pieces))
    place = dots[0]
    if len(dots) > 1 or place < 2 or place != len(pieces) - 2:
        raise ParameterError(f"bins is {text!r}: '...' stands between two or more edges and the last one")
    head = [_as_float(piece, i) for i, piece in enumerate(pieces[:place])]
    last = _as_float(pieces[-1], len(pieces) - 1)
    start, step = head[-1], head[-1] - head[-2]
    if not (step > 0 and math.isfinite(last) and last > start):
        raise ParameterError(f"bins is {text!r}, not increasing: {_REMEDY}")
    # In the decimals that were written, so that 0.1,0.2,...,0.9 has the edge 0.3 and not 0.30000000000000004.
    written = [Fraction(repr(value)) for value in (head[-2], start)]
    exact_step = written[1] - written[0]
    steps = (last - start) / step
    if steps + len(head) > MOST_STATES + 1:
        raise ParameterError(f"bins is {text!r}, which makes more than {MOST_STATES} states")
    count = round(steps)
    if count < 1 or abs(steps - count) > 1e-9 * count:
        raise ParameterError(
            f"bins is {text!r}: steps of {_number(step)} from {_number(start)} do not end at {_number(last)}"
        )
    return (*head, *(float(written[1] + i * exact_step) for i in range(1, count)), last)
