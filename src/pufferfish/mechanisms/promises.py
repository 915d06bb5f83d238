"""What one noise hides, unit by unit: a near value, a record, an hour, a day, a person, a row; what holds without Θ.

The same noise promises something of every unit; the larger the unit, the larger ε. Nothing of it costs noise: each row
is a bound on what the losses of the noise tell (``docs/proofs/stretches.md``). Rows are rounded up.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pufferfish._base.durations import format_micros, parse_duration
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.progress import report_progress
from pufferfish._base.view import Grid, Html, View, counted, tag
from pufferfish._base.words import at_most, change_of_odds
from pufferfish._draw.chart import Line, Lines
from pufferfish._draw.lines import lines_figure
from pufferfish._draw.page import section, table
from pufferfish.mechanisms._propagation_on_chains import ProtectedStretch, can_be_followed, leakage_of_series
from pufferfish.mechanisms.calibration import Calibration, Prover
from pufferfish.mechanisms.markov_quilt import NodeSecrets
from pufferfish.mechanisms.propagation import NetworkLeakage, leakage_of_row
from pufferfish.mechanisms.protection import ColumnsProtection, Protection, StretchProtection, step_of
from pufferfish.mechanisms.words import hidden_in_words, secrets_of
from pufferfish.queries import FunctionQuery
from pufferfish.queries.record_loss import RecordLoss, chains_that_can_decide, loss_of_query
from pufferfish.theta.lengths import FOR_EVER
from pufferfish.theta.states import intervals_of_states

_TIMES = (("5min", 300), ("1h", 3_600), ("1d", 86_400), ("7d", 7 * 86_400))
_SAID = {"1d": "1d: any one day of one subject"}  # of the names that people look for, in more words

_COUNTS = (10, 100, 1_000)
_SECOND = 1_000_000


class Promise(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """What is promised of one unit, and ``holds`` what that means and does not cover, in one sentence.

    Of the unit, of so many grid ``steps`` if it is a stretch, or of ``near`` values only, at most ``epsilon`` nats are
    told, rounded up. ``columns`` are those of a row that were asked for by name.
    """

    unit: str
    steps: int | None
    near: bool
    epsilon: float
    holds: str
    columns: tuple[str, ...] | None = None

    @property
    def in_the_next(self) -> bool:
        """Whether the next unit holds this one: what is told of that one at most is told of this one at most."""
        return not self.near and self.columns is None


_WHOLE = "the whole series of one subject"
_STRETCH = "Any one such stretch, read or not; two separate ones are not covered, and do not add."
_TIME = "It lasts as long as is said where no step takes less than {}."
_NEAR = "Values that are so near each other; not whether a value is above some number or below."
_SERIES = "All records of one subject together, whatever their law is, where they are one chain: group privacy."
_VALUE = "Any one value of it against any other."
_COLUMNS = "Any two combinations of their values; not the other columns of the row."
_ROW = "All cells of any one row together, whatever their law is: a person whose data are one row."
_ALONE = "One record by itself, if no other record tells of it: plain differential privacy of single events."


class Unit(NamedTuple):
    """Something that a noise hides: its words, its steps, what it covers, and how to ask what is told of it."""

    words: str
    steps: int | None
    holds: str
    leakage: Callable[[RecordLoss], float]
    near: bool = False
    columns: tuple[str, ...] | None = None


def promises_of(calibration: Calibration, step: str | None, *, cut: bool = False) -> list[Promise]:
    """Return what a noise promises of every unit, the smallest first; ``step`` and ``cut`` as for :func:`units_of`."""
    units, measured = units_of(calibration, step, cut=cut), calibration.measured
    if isinstance(measured, FunctionQuery):
        return _promised(units, RecordLoss(()))
    losses = loss_of_query(measured, calibration.theta, calibration.length)
    return _promised(units, losses.divided(calibration.unit_scale))


def promises_of_losses(
    bound: Prover, losses: RecordLoss, epsilon: float, step: str | None, *, cut: bool = False
) -> list[Promise]:
    """Return what losses of several releases together tell of every unit; of what the bound hides at most epsilon."""
    return _promised(_units(bound, epsilon, step, cut=cut), losses)


def _promised(units: Sequence[Unit], losses: RecordLoss) -> list[Promise]:
    epsilons = list[float]()
    for unit in units:
        report_progress(unit.words, len(epsilons) / len(units))
        epsilons.append(unit.leakage(losses))
    promises = promises_with(units, epsilons)
    # what is told of a larger unit at most is told of a smaller one at most; the last one is not about Θ
    least = math.inf
    for i in reversed(range(len(promises) - 1)):
        if promises[i].in_the_next:
            least = min(promises[i].epsilon, least)
            promises[i] = msgspec.structs.replace(promises[i], epsilon=least)
    return promises


def promises_with(units: Sequence[Unit], epsilons: Sequence[float]) -> list[Promise]:
    """Return the promises of units, given what is told of each at most."""
    pairs = zip(units, epsilons, strict=True)
    return [Promise(unit.words, unit.steps, unit.near, epsilon, unit.holds, unit.columns) for unit, epsilon in pairs]


def units_of(calibration: Calibration, step: str | None, *, cut: bool = False) -> list[Unit]:
    """Return the units that a noise promises something of, smallest first; no stretches of ``cut`` chains."""
    function = isinstance(calibration.measured, FunctionQuery)
    return _units(calibration.bound, calibration.epsilon, step, cut=cut, function=function)


def _units(bound: Prover, epsilon: float, step: str | None, *, cut: bool, function: bool = False) -> list[Unit]:
    theta = bound.theta
    record = "one cell of a row" if theta.networks else "one record"
    alone = Unit(f"{record}, without any model", None, _ALONE, _of_one)
    if theta.of_chains and not theta.stands_for_more and not function:
        units = [*_of_chains(bound, epsilon, step), alone]
        return [unit for unit in units if unit.steps in (None, 1) and unit.words != _WHOLE] if cut else units
    cell = Unit(record, None, _VALUE, _asked(epsilon))
    if bound.secrets is not None:
        cell = cell._replace(words="the secrets that were named", holds="Which secret of a pair holds.")
    if function:
        return [cell]
    return [*_of_columns(bound, epsilon, cell), alone] if theta.networks else [cell, alone]


def _of_one(losses: RecordLoss) -> float:
    """Return what holds whatever the law of the records is: event-level differential privacy."""
    most = max(float(chain.largest.max()) + min(2, chain.length.steps - 1) * chain.step for chain in losses.blocks)
    return math.nextafter(most, math.inf) if most else 0.0


def _of_series(losses: RecordLoss) -> float:
    return max(leakage_of_series(chain) for chain in chains_that_can_decide(losses, steps=True))


def _of_columns(bound: Prover, epsilon: float, cell: Unit) -> Iterator[Unit]:
    """Yield the units of a network's table: columns that were asked for, a cell, a row."""
    networks, protection = bound.theta.networks, bound.protection
    if isinstance(protection, ColumnsProtection):
        if protection.names is not None:
            words = protection.in_words()
            yield Unit(words, None, _COLUMNS, _asked(epsilon), columns=protection.names)
        engine = NetworkLeakage(networks, NodeSecrets(None, networks[0]))
        cell = cell._replace(leakage=lambda losses: engine.leakage(losses)[0])
    yield cell
    yield Unit("a whole row", None, _ROW, leakage_of_row)


def _of_chains(bound: Prover, epsilon: float, step: str | None) -> Iterator[Unit]:
    theta, length, protection = bound.theta, bound.length, bound.protection
    protection = protection if isinstance(protection, StretchProtection) else None
    longest = max(chain.steps for chain in length)
    followed = can_be_followed(theta)
    searches = cache(ProtectedStretch(theta, length, 1).new_searches)  # all stretches share them

    def stretch(steps: int, near: StretchProtection | None = None) -> Callable[[RecordLoss], float]:
        engine = ProtectedStretch(theta, length, steps, None if near is None else near.near(theta.states))

        return lambda losses: engine.told(searches(), losses)[0]

    width = _width(theta.states)
    nearest = None if width is None or not followed else StretchProtection(1, width)
    near = None if protection is None or protection.within is None else protection
    for asked in dict.fromkeys(filter(None, [nearest, near])):  # one row where both are the same
        words = asked.in_words(step, brief=True).removeprefix("any ")
        leakage = _asked(epsilon) if asked == near else stretch(1, asked)
        yield Unit(words, asked.steps_of(length), _NEAR, leakage, near=True)
    one = stretch(1) if followed else None
    if protection is None and bound.secrets is None and not bound.delta:
        # what its own mechanism proves of any record may be less
        told = one
        one = _asked(epsilon) if told is None else lambda losses: min(epsilon, told(losses))
    if one is not None:
        yield Unit("one record", 1, "The state of one subject at one time, against any other state.", one)
    chosen = set() if protection is None else {protection.steps_of(length)}
    for steps, name in sorted(names_of_stretches(step, chosen).items()):
        if followed and 1 < steps < longest:
            row = f"{counted(steps, 'step')} in a row"
            words = row if row.startswith(name) else f"{_SAID.get(name, name)} ({row})"
            yield Unit(words, steps, _STRETCH if step is None else f"{_STRETCH} {_TIME.format(step)}", stretch(steps))
    if longest < FOR_EVER:
        yield Unit(_WHOLE, longest, _SERIES, _of_series)


def _asked(epsilon: float) -> Callable[[RecordLoss], float]:
    """Return what is told of the unit that was asked for: the mechanism proves it."""

    def leakage(losses: RecordLoss) -> float:
        return epsilon

    return leakage


def names_of_stretches(step: str | None, asked: Iterable[int]) -> dict[int, str]:
    """Return stretches that people ask about, and others that are asked for, in steps, with short names."""
    one = None if step is None else parse_duration(step, "step")
    if one is None or not one.has_unit or not isinstance(one.value, int):
        return {steps: counted(steps, "step") for steps in {*_COUNTS, *asked}}
    names = {steps: format_micros(one.value * steps) for steps in asked}
    return names | {-(-seconds * _SECOND // one.value): text for text, seconds in _TIMES}


def _width(states: tuple[str, ...]) -> float | None:
    """Return the width of the widest inner bin, or the largest step between numbers; None for other states."""
    intervals = intervals_of_states(states)
    if intervals is None or len(states) <= 2:
        return None
    if all(low == high for low, high in intervals):
        values = sorted(low for low, _ in intervals if low is not None)
        widest = max(b - a for a, b in pairwise(values))
    else:
        widest = max(high - low for low, high in intervals if low is not None and high is not None)
    width = float(widest)  # its decimals are what counts
    return width if Fraction(repr(width)) >= widest else math.nextafter(width, math.inf)


# -- The same as a table and as a chart, and what a calibration shows in a notebook ------------------------------------

_MANY = math.log(1000)  # ε with which odds change a thousand times


def promise_grid(promises: Sequence[Promise], whose: str = "what this noise tells of") -> Grid:
    """Return what is told of every unit at most: the unit, ε, by which factor odds change, and what it covers."""
    rows = [[p.unit, at_most(p.epsilon), f"{change_of_odds(p.epsilon)} times", p.holds] for p in promises]
    heads = [whose, "ε, at most", "odds change", "what that covers"]
    caption = f"{whose[:1].upper()}{whose[1:].removesuffix(' of')} at most, unit by unit"
    return Grid(caption, heads, rows, long=len(rows))


def promise_chart(
    promises: Sequence[Promise], step: str | None = None, protection: Protection | None = None
) -> Lines | None:
    """Return ε against the length of the stretch, what was asked for standing out; None of less than two lengths."""
    stretches = [each for each in promises if each.steps is not None and 0 < each.epsilon < math.inf]
    told = {each.steps or 1: each for each in stretches if not each.near}
    if len(told) < 2:
        return None
    last = max(told)
    asked, within = 1, False
    if isinstance(protection, StretchProtection):
        asked, within = last if isinstance(protection.steps, str) else protection.steps, protection.only_near
    own = [each for each in stretches if each.steps == asked and each.near == within][-1:]
    near = [each for each in stretches if each.near and each not in own]
    lines = [_line("any two courses", [*told.values()])]
    caption = "ε against the length of the stretch: the line is what this noise tells of it at most."
    if near:
        lines.append(_line("near values only", near, look="points"))
        caption += " A ring: near values only."
    if own:
        lines.append(_line("asked for", own, look="points", wide=True))
        caption += " The large dot: the unit that was asked for."
    if max(each.epsilon for each in told.values()) > _MANY:
        many = np.array([_MANY, _MANY])
        lines.insert(
            0, Line(name="odds change 1,000 times", x=np.array([1.0, last]), low=many, high=many, look="dashes")
        )
        caption += " Above the dashed line odds change more than 1,000 times: almost nothing is hidden."
    names = names_of_stretches(step, told) | {1: "1 record", last: "whole series"}
    return Lines(
        caption=caption,
        lines=lines,
        label="length of the stretch",
        value_label="ε, at most",
        ticks=([*told], [names[steps] for steps in told]),
        log=True,
    )


def _line(name: str, promises: Sequence[Promise], **look: Any) -> Line:
    steps = np.array([float(each.steps or 1) for each in promises])
    epsilons = np.array([each.epsilon for each in promises])
    return Line(name=name, x=steps, low=epsilons, high=epsilons, **look)


def promise_picture(chart: Lines | None) -> list[Html]:
    """Return the chart, drawn; nothing where there is none."""
    return [] if chart is None else [lines_figure(chart)]


def units_part(promises: Sequence[Promise], step: str | None, protection: Protection | None) -> Html | None:
    """Return what one noise tells of every unit, as a part of a page; None where that is not known."""
    grid = promise_grid(promises)
    if not grid.rows:
        return None
    rows = [[tag("th", unit, tag("small", covers), scope="row"), *told] for unit, *told, covers in grid.rows]
    shown = table(grid.columns[:-1], rows, grid.caption, titled=False, class_="units")
    return section(grid.caption, *promise_picture(promise_chart(promises, step, protection)), shown)


def calibration_view(calibration: Calibration) -> View:
    """Return what a calibration shows: its unit, its noise, and what that promises of every other unit."""
    seen, theta = calibration.witness, calibration.theta
    pair = None if seen.pair_in_words is None else " or ".join(map(str, seen.pair_in_words))
    protection, step = calibration.bound.protection, step_of(theta, calibration.bound.model)
    hides = hidden_in_words(
        secrets_of(calibration), protection, step, of_chains=theta.of_chains, networks=bool(theta.networks)
    )
    facts = {
        "query": calibration.linear.description,
        "mechanism": calibration.title,
        "class Θ": f"{theta.kind}; {theta.origin}",
        "records": calibration.records,
        "noise scale": calibration.scale,
        "measured counts, from which all outputs follow": None
        if calibration.strategy is None
        else len(calibration.scales),
        "the noise is for record": seen.node,
        "and its values": pair,
    }
    rows = zip(calibration.linear.labels, calibration.accuracies(0.05).tolist(), strict=True)
    caption = "± 95%: each output is within this of the exact one with 95% probability"
    errors = Grid(caption, ["output", "± 95%"], [*map(list, rows)])
    promises = promises_of(calibration, step)
    title = f"Noise for a {calibration.query.kind}: hides {hides}, at ε = {at_most(calibration.epsilon)}"
    pictures = promise_picture(promise_chart(promises, step, protection))
    return View(title, facts, [errors, promise_grid(promises)], pictures=pictures)
