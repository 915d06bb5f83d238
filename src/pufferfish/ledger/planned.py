"""What is planned for a table that grows: noise with which releases stay within a budget for ever."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from pufferfish._core.numbers.laplace import accuracy
from pufferfish._core.numbers.rounding import bracket
from pufferfish.errors import ReleaseRefused
from pufferfish.ledger.book import Book
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.witness import StretchWitness
from pufferfish.queries import Mean, Query

__all__ = ["Planned", "alone_for_ever", "planned_in", "proved", "with_enough_noise"]


class Planned(NamedTuple):
    """Noise that is planned for a query, for ever.

    Attributes
    ----------
    question : str
        The query, in words.
    what : str
        What the book says of it.
    entry : int
        Its number in the book.
    unit_scale : float
        Scale of the noise, in units of the query: counts.
    spent : float
        What is spent with it and all entries before.
    """

    question: str
    what: str
    entry: int
    unit_scale: float
    spent: float

    @property
    def error_95(self) -> int:
        """What the error of a count exceeds with probability at most 5%, in counts."""
        return accuracy(self.unit_scale, 0.05)


def planned_in(book: Book) -> list[Planned]:
    """Return what a book plans."""
    return [
        Planned(entry.question, entry.what, entry.number, float(Fraction(entry.scale)), entry.spent)
        for entry in book.entries
        if book.grows and entry.reads is None and entry.question is not None
    ]


def proved(bound: InfluenceBound, calibration: Calibration) -> Calibration:
    """Return noise with what it leaks alone, proved.

    ε is rounded up by more than libraries of other versions differ in their last digits, so that they prove it, too.
    """
    leakage, witness = bound.verify(calibration)
    return calibration if witness is None else replace(calibration, epsilon=leakage * (1 + 1e-9), witness=witness)


def alone_for_ever(bound: InfluenceBound, queries: Sequence[Query], level: float) -> list[Calibration]:
    """Return for each query the noise with which releases of it alone, for ever, leak at most so much.

    Raises
    ------
    ReleaseRefused
        If no noise is enough, however long one waits.
    """
    for query in queries:
        if isinstance(query, Mean):
            raise ReleaseRefused(
                f"{query.kind} is divided by the number of records, which an endless plan cannot know: plan the sum, "
                "and divide each release by its number of records"
            )
    alone = [bound.calibrate(query, level) for query in queries]
    if any(isinstance(made.witness, StretchWitness) and made.witness.by == "series" for made in alone):
        raise ReleaseRefused(
            "under Θ the past is forgotten so slowly, or never, that no noise keeps an endless series within the "
            "budget: use another Θ, or a ledger for a table of fixed length"
        )
    return alone


def with_enough_noise(
    alone: Sequence[Calibration], told: Callable[[Sequence[Calibration]], float], level: float
) -> list[Calibration] | None:
    """Return the noise of each query, as many times that of it alone, with which all tell ``level``; None for none."""

    def times(more: float) -> list[Calibration]:
        return [replace(made, unit_scale=made.unit_scale * more) for made in alone]

    enough = bracket(lambda more: told(times(more)), level, len(alone), tolerance=1e-6, from_above=False).enough
    return times(enough) if enough < math.inf else None
