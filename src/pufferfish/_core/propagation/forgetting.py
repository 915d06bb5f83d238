r"""Leakage where only forgetting is known: after n steps at most a share σ of the state is known, in total variation.

With d_i the loss of record i, A_i bounds what record i and all later ones tell of it:

.. math:: A_i = \min\Bigl(d_i + A_{i+1},\ \min_{(n, \sigma)} \sum_{j=i}^{i+n-1} d_j +
          \log\bigl(1 + \sigma (e^{A_{i+n}} - 1)\bigr)\Bigr), \qquad A_{T+1} = 0,

and B_i the same for the earlier ones. The leakage is the largest A_i + B_i − d_i (docs/proofs/forgetting.md). In the
midst of a long stretch of equal losses the bounds are held at the largest of their fixed point and of the bounds beside
it, so that the cost depends on the number of stretches, not on their lengths.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from pufferfish._core import Indices, Vector, Whole
from pufferfish._core.numbers.compiled import Loop
from pufferfish._core.numbers.rounding import UNIT, float_up, or_infinite, up

_SHORT = 2**12  # steps up to which every record is followed where all losses are alike
# Share of a fixed point by which the middle of a chain may be below it, and is taken to be there.
_SETTLED = 1e-12
_DIRECT = 2**20  # steps up to which every record is followed
_BESIDE = 2**13  # of a longer chain so many records at least are followed at both ends of a stretch
# Records that are followed at most, but for those of short stretches: beyond that less is followed, less is proved.
_FOLLOWED = 2**24
# Losses are rounded up to multiples of their sum over two to so many: sums are exact, and fit 64 bits.
_BITS = 60
_ULPS = 16
_LARGEST = 1e300  # losses that add up to more nats are not followed: sums of them would leave the range of a double


class Forgets(NamedTuple):
    """After ``steps`` steps at most the share ``keeps`` of the state is known, forwards and backwards; rounded up."""

    steps: int
    keeps: float


@dataclass(frozen=True, slots=True)
class LeakageParts:
    """What is told about the record that decides, 0-based: by itself, by the earlier and by the later records."""

    node: int
    own: float
    past: float
    future: float

    @property
    def total(self) -> float:
        """All of it, in nats, rounded up."""
        return up(self.own + self.past + self.future)


def fixed_point(loss: float, pairs: Sequence[Forgets]) -> float:
    """Return e^A − 1 of the least fixed point where all losses are alike, rounded up; ``inf`` where there is none."""
    return min((_fixed(loss, *pair) for pair in pairs), default=math.inf)


def _fixed(loss: float, steps: int, keeps: float) -> float:
    many = loss * steps * (1 + 2 * UNIT)
    if many >= 700:
        return math.inf
    grown, rounded = math.expm1(many), 1 + 8 * UNIT
    # 1 − σ e^{nd} without cancellation: what is not kept, less what the losses add to what is
    room = (1 - keeps) * (1 - UNIT) - keeps * grown * rounded
    return grown * rounded / room * rounded if room > 0 else math.inf


def told_by_uniform(loss: float, steps: int, pairs: Sequence[Forgets]) -> LeakageParts:
    """Return what all records of a chain tell whose losses are all alike."""
    if not loss * steps < _LARGEST:
        return LeakageParts((steps - 1) // 2, loss, math.inf, math.inf)
    if steps <= _SHORT or (steps <= _DIRECT and not _settles(loss, steps, pairs)):
        return told_by_profile(np.array([steps]), np.array([loss]), pairs)
    bound = up(math.log1p(fixed_point(loss, pairs)), _ULPS)
    node = (steps - 1) // 2
    # no more than all records together
    past, future = (float_up(Fraction(loss) * n) for n in (node, steps - 1 - node))
    side = max(bound - loss, 0.0)
    return LeakageParts(node, loss, min(side, past), min(side, future))


def _settles(loss: float, steps: int, pairs: Sequence[Forgets]) -> bool:
    """Whether bounds come to their fixed point up to the middle of the chain, so that nothing is lost by taking it."""
    _, n, keeps = min((_fixed(loss, *pair), *pair) for pair in pairs)
    rate = math.log(keeps) + n * loss if keeps > 0 else -math.inf  # of what is missing, each time n steps go by
    return steps // (2 * n) * rate < math.log(_SETTLED)


def told_by_stretch(steps: Whole, losses: Vector, pairs: Sequence[Forgets], records: int) -> LeakageParts:
    """Return what is told of any so many records in a row; ``node`` is the first one of the worst stretch, 0-based.

    With F_j = A_j − d_j and G_i = B_i − d_i it is at most G_i + d_i + … + d_j + F_j (docs/proofs/stretches.md). Of
    chains that are too long to be followed the largest F, G and sum of losses are added, wherever they are.
    """
    whole = int(np.sum(steps))
    with np.errstate(over="ignore"):
        total = float(np.sum(losses * steps))
    if not total < _LARGEST:
        return LeakageParts(0, total, math.inf, math.inf)
    if whole > _DIRECT and len(losses) == 1:
        side = max(up(math.log1p(fixed_point(float(losses[0]), pairs)), _ULPS) - float(losses[0]), 0.0)
        side = or_infinite(min(side, float_up(Fraction(float(losses[0])) * (whole - records))))
        own = float_up(Fraction(float(losses[0])) * records)
        return LeakageParts((whole - records) // 2, own, side, side)
    places, units, quantum, later, earlier = _sides(steps, losses, pairs)
    after, before = (np.maximum(_logs_up(side) - units * quantum, 0.0) for side in (later, earlier))
    if places.size == whole:
        sums = np.concatenate([[0], np.cumsum(units)])
        own = (sums[records:] - sums[:-records]) * quantum
        told = before[: own.size] + own + after[records - 1 :]
        first = int(np.argmax(np.where(np.isnan(told), np.inf, told)))
        parts = float(own[first]), float(before[first]), float(after[first + records - 1])
    else:
        first, own_most = _heaviest(steps, losses, records)
        parts = own_most, float(before.max()), float(after.max())
    return LeakageParts(first, up(parts[0]), *(or_infinite(up(part, _ULPS)) for part in parts[1:]))


def _logs_up(excess: Vector) -> Vector:
    """Return A from e^A − 1, rounded up."""
    logs = np.log1p(excess)
    return np.where(excess > 0, logs + _ULPS * np.spacing(logs), 0.0)


def _heaviest(steps: Whole, losses: Vector, records: int) -> tuple[int, float]:
    """Return where the records begin whose losses add up to most, and that sum, rounded up: ends are at changes."""
    ends = np.concatenate([[0], np.cumsum(steps)])
    last = int(ends[-1]) - records
    begins = np.unique(np.clip(np.concatenate([ends, ends - records]), 0, last))
    exact = [Fraction(float(loss)) for loss in losses]
    sums = [Fraction(0), *itertools.accumulate(loss * int(n) for loss, n in zip(exact, steps, strict=True))]

    def before(place: int) -> Fraction:
        i = min(int(np.searchsorted(ends, place, side="right")) - 1, len(exact) - 1)
        return sums[i] + exact[i] * (place - int(ends[i]))

    totals = [before(int(place) + records) - before(int(place)) for place in begins]
    most = max(range(len(totals)), key=totals.__getitem__)
    return int(begins[most]), float_up(totals[most])


def told_by_profile(steps: Whole, losses: Vector, pairs: Sequence[Forgets]) -> LeakageParts:
    """Return what all records of a chain tell; ``losses`` are those of stretches of so many ``steps``."""
    with np.errstate(over="ignore"):
        losses_together = float(np.sum(losses * steps))
    if not losses_together < _LARGEST:
        most = int(np.argmax(losses))
        return LeakageParts(int(np.sum(steps[:most])), float(losses[most]), math.inf, math.inf)
    places, units, quantum, later, earlier = _sides(steps, losses, pairs)
    rounded, future, past = units * quantum, np.log1p(later), np.log1p(earlier)
    total = future + past - rounded
    most = int(np.argmax(np.where(np.isnan(total), np.inf, total)))
    sides = (or_infinite(max(up(float(side[most]), _ULPS) - float(rounded[most]), 0.0)) for side in (past, future))
    return LeakageParts(int(places[most]), float(rounded[most]), *sides)


def _sides(steps: Whole, losses: Vector, pairs: Sequence[Forgets]) -> tuple[Whole, Whole, float, Vector, Vector]:
    """Return the records that are followed, their losses in units of a quantum, and e^A − 1 and e^B − 1 of each."""
    whole = int(np.sum(steps))
    known, beside = [pair for pair in pairs if pair.steps < whole], whole
    if whole > _DIRECT:
        known, beside = _affordable(steps, known)
    reach = _reach(known)
    places, stretch, held = _followed(steps, losses, known, reach, beside)
    units, quantum = _whole_numbers(losses[stretch])
    later = _side(units, quantum, held, known, reach)
    return places, units, quantum, later, _side(units[::-1], quantum, held[::-1], known, reach)[::-1]


def _side(units: Whole, quantum: float, held: Vector, pairs: Sequence[Forgets], reach: int) -> Vector:
    before = np.concatenate([[0], np.cumsum(units)])
    steps = np.array([pair.steps for pair in pairs], dtype=np.int64)
    keeps = np.array([pair.keeps for pair in pairs], dtype=np.float64)
    after = np.append(held, -1.0)
    return _carry(units.size * (len(pairs) + 1), before, quantum, after, steps, keeps, reach)[:-1]


def _whole_numbers(losses: Vector) -> tuple[Whole, float]:
    """Return losses as whole numbers of a small unit, rounded up; all of them together fit 64 bits."""
    total = float(np.sum(losses))
    if not total > 0:
        return np.zeros(losses.size, dtype=np.int64), 1.0
    exponent = math.frexp(total)[1] + 1 - _BITS
    return np.ceil(np.ldexp(losses, -exponent)).astype(np.int64), math.ldexp(1.0, exponent)


def _reach(pairs: Sequence[Forgets]) -> int:
    return max((pair.steps for pair in pairs), default=1)


def _affordable(steps: Whole, pairs: Sequence[Forgets]) -> tuple[list[Forgets], int]:
    """Return the pairs that are used, and how many records are followed at both ends of a stretch; at least a reach."""
    known = sorted(pairs)
    while known:
        reach = _reach(known)
        for beside in (max(_BESIDE, 8 * reach), reach):
            if float(np.sum(np.minimum(steps, 2 * beside + reach), dtype=np.float64)) <= _FOLLOWED:
                return known, beside
        known.pop()
    return known, 1


def _followed(
    steps: Whole, losses: Vector, pairs: Sequence[Forgets], reach: int, beside: int
) -> tuple[Whole, Indices, Vector]:
    """Return the records that are followed, the stretch of each, and the fixed point of those that are held, else −1.

    Of a long stretch both ends are followed, and ``reach`` records in between stand for all others.
    """
    starts = np.concatenate([[0], np.cumsum(steps)[:-1]])
    if int(steps.max()) <= 2 * beside + reach:
        count = int(np.sum(steps))
        return np.arange(count), np.repeat(np.arange(steps.size), steps), np.full(count, -1.0)
    places: list[Whole] = []
    stretch: list[Indices] = []
    held: list[Vector] = []
    for i in range(steps.size):
        start, n = int(starts[i]), int(steps[i])
        is_long = n > 2 * beside + reach
        ends_and_middle = (start, beside), (start + beside, reach), (start + n - beside, beside)
        parts = ends_and_middle if is_long else ((start, n),)
        of_run = np.concatenate([np.arange(first, first + count, dtype=np.int64) for first, count in parts])
        is_held = np.full(of_run.size, -1.0)
        if is_long:
            is_held[beside : beside + reach] = fixed_point(float(losses[i]), pairs)
        places.append(of_run)
        stretch.append(np.full(of_run.size, i))
        held.append(is_held)
    return np.concatenate(places), np.concatenate(stretch), np.concatenate(held)


# -- One side of a record: bounds A as excesses e^A − 1, products and sums of positive terms, each rounded up ----------

_UP = 1.0 + 2.0**-50  # above the error of one exponential, of a product, and of a sum of two
_SUMMED = 1.0 + 2.0**-51  # above the error of a sum of losses as a double


def carry(before: Any, quantum: float, held: Any, steps: Any, keeps: Any, reach: int) -> Any:
    """Return e^A − 1 of every record, A what it and all later records tell of it, in nats; rounded up.

    ``before`` are the losses of all records before each one, and of all, in units of ``quantum``. ``held`` is e^A − 1
    of the fixed point for records in the midst of equal losses, −1 for others. After ``steps`` at most ``keeps`` is
    known.
    """
    records, pairs = before.size - 1, steps.size
    excess = np.zeros(records + 1)
    seen, grown, times = np.full(pairs + 1, -1, np.int64), np.zeros(pairs + 1), np.ones(pairs + 1)
    for i in range(records - 1, -1, -1):
        if held[i] >= 0.0:
            if held[i + 1] >= 0.0:  # the same stretch: another one does not follow without records of its own
                excess[i] = excess[i + 1]
            else:
                most = held[i]
                for j in range(i + 1, min(i + 1 + reach, records + 1)):
                    most = max(most, excess[j])
                excess[i] = most
            continue
        least = math.inf
        for p in range(pairs + 1):
            after = i + 1 if p == pairs else i + steps[p]
            if after > records:
                continue
            units = before[after] - before[i]
            if units != seen[p]:
                seen[p] = units
                loss = float(units) * quantum * _SUMMED
                if loss < 700.0:
                    grown[p], times[p] = math.expm1(loss) * _UP, math.exp(loss) * _UP
                else:
                    grown[p], times[p] = math.inf, math.inf
            share, then = 1.0 if p == pairs else float(keeps[p]), float(excess[after])
            bound = float(grown[p])
            if share > 0.0 and then > 0.0:
                bound = (bound + float(times[p]) * share * _UP * then) * _UP
            least = min(least, bound)
        excess[i] = least
    return excess


_carry = Loop(carry)
