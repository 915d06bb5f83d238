"""Laws of vectors in exact fractions, as laws of one number where all vectors lie on one line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import numpy as np

from pufferfish._core.laws.law import Law, VectorLaw
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.numbers.wide import Wide
from pufferfish.errors import NotApplicableError

_MOST_LISTED = 1_000_000
"""Whole numbers from the least to the greatest value up to which a law lists all of them."""

_LARGEST = 2**60

__all__ = ["OnLine", "Values", "law_of_values", "line_through"]

Values = Mapping[tuple[int, ...], Fraction]
"""Vectors of whole numbers and their masses."""


@dataclass(frozen=True, slots=True)
class OnLine:
    """Vectors that are ``origin + direction · number``, with whole numbers."""

    origin: tuple[int, ...]
    direction: tuple[int, ...]

    @property
    def norm(self) -> int:
        """L1 length of the direction."""
        return sum(abs(d) for d in self.direction)

    def number(self, value: Sequence[int]) -> int | None:
        """Return where on the line a vector is, None if it is not."""
        along = next(m for m, d in enumerate(self.direction) if d)
        move = [v - o for v, o in zip(value, self.origin, strict=True)]
        number, rest = divmod(move[along], self.direction[along])
        return None if rest or move != [number * d for d in self.direction] else number


def line_through(values: Sequence[tuple[int, ...]]) -> OnLine | None:
    """Return a line through all of some vectors, if there is one."""
    origin = values[0]
    moves = [tuple(v - o for v, o in zip(value, origin, strict=True)) for value in values]
    first = next((move for move in moves if any(move)), (1,) * len(origin))
    common = gcd(*first)
    line = OnLine(origin, tuple(v // common for v in first))
    numbers = [line.number(value) for value in values]
    listed = [number for number in numbers if number is not None]
    if max(abs(v) for value in values for v in value) > _LARGEST:
        raise NotApplicableError("outputs leave 60 bits: give a larger unit")
    return line if len(listed) == len(numbers) and max(listed) - min(listed) <= _MOST_LISTED else None


def law_of_values(masses: Values, line: OnLine | None) -> Law | VectorLaw:
    """Return the law with these masses, which need not sum to 1, as that of one number where they lie on a line."""
    total = sum(masses.values(), Fraction(0))
    if line is not None:
        numbers = {line.number(value) or 0: mass / total for value, mass in masses.items()}
        low, high = min(numbers), max(numbers)
        return Law.exact(low, [numbers.get(n, Fraction(0)) for n in range(low, high + 1)])
    denominator = lcm(*((m / total).denominator for m in masses.values()))
    whole = [int(m / total * denominator) for m in masses.values()]
    return VectorLaw(np.array(list(masses), dtype=np.int64), Wide.ratio(whole, denominator), 4 * UNIT)
