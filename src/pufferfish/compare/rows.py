"""A row of a comparison: one mechanism's noise for a query, or why it does not apply; and its noise at several ε."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pufferfish._base.frozen import ReadOnly
from pufferfish.mechanisms.engine import LEAST_EPSILON

NOT_ASKED = "not asked, "
"""How the reason of a mechanism begins that might apply, but takes long."""

ONE_QUERY = "it calibrates noise for one query of all records, but here each {} has values of its own"
"""The reason of a mechanism that does not compose, with what has the values: group, or subject."""

Shape = Literal["equal", "best"]
"""Whether every output has noise of one scale, or noise has the best shape found."""

_TO_TEN = 20
"""ε on either side of the one that is asked for, up to ten times and down to a tenth of it."""

FEW = 5
"""Mechanisms other than the one that is used are asked at every so many of these ε."""


def points_around(epsilon: float) -> list[float]:
    """Return the ε at which noise is computed, in equal ratios, the one that is asked for among them.

    Examples
    --------
    >>> len(points_around(1.0)), points_around(1.0)[::20], points_around(1e-5)[0]
    (41, [0.1, 1.0, 10.0], 1e-05)
    """
    places = [i for i in range(-_TO_TEN, _TO_TEN + 1) if LEAST_EPSILON <= epsilon * 10 ** (i / _TO_TEN) < math.inf]
    whole = [i for i in places if i % FEW == 0]
    return [epsilon * 10 ** (i / _TO_TEN) for i in places if whole[0] <= i <= whole[-1]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow(ReadOnly):
    """One mechanism's noise for a query, or why it does not apply.

    Parameters
    ----------
    mechanism, title : str
        Name on the command line, and name in tables.
    epsilon : float or None
        Privacy parameter of the noise; with an accuracy the least one that reaches it.
    scale, noise_multiplier : float or None
        Laplace scale of the noise on each output, the largest one of the best noise; and over the query's Lipschitz
        constant.
    accuracy, expected_l1_error : float or None
        What the error of one output exceeds with a probability of at most 5%, and the expected L1 distance between
        released and exact vector, in the units of the query.
    lower_bound : float or None
        A scale below which no Laplace noise gives the guarantee, the same for all rows; None where none was found.
    seconds : float
        Time to compute the scale.
    composes : bool
        Whether such releases may be added up, as in a ledger; else the noise is for this one query.
    recommended, least : bool
        Whether this is the least noise of those that compose, of all where none does; and the least for this one
        release, which is the same row where what composes needs as little.
    reason : str or None
        Why the mechanism does not apply.
    decided_by : str or None
        The member of Θ that needs the noise, where Θ has several: ``"theta[12] (subject 4388161786)"``.
    noise : {"equal", "best"}
        Whether every output has noise of one scale, or noise has the best shape found.
    """

    mechanism: str
    title: str
    epsilon: float | None = None
    scale: float | None = None
    noise_multiplier: float | None = None
    accuracy: float | None = None
    expected_l1_error: float | None = None
    lower_bound: float | None = None
    seconds: float = 0.0
    composes: bool = True
    recommended: bool = False
    least: bool = False
    reason: str | None = None
    decided_by: str | None = None
    noise: Shape = "equal"

    @property
    def over_lower_bound(self) -> float | None:
        """Scale over lower bound: how many times the least possible noise it is at most."""
        return self.scale / self.lower_bound if self.scale and self.lower_bound else None


def too_little(of_stretch: bool) -> str:
    """Say what is not given below the lower bound, which is one for a record: a stretch that has it needs no less."""
    return "gives this guarantee" + (": it would not hide even one record of a stretch" if of_stretch else "")


def by_reason(rows: Iterable[ComparisonRow]) -> list[tuple[str, str]]:
    """Return the titles of mechanisms that do not apply, those with the same reason together, and the reason.

    Examples
    --------
    >>> why = {"A": "too long", "B": "too short", "C": "too long"}
    >>> by_reason([ComparisonRow(mechanism=name.lower(), title=name, reason=reason) for name, reason in why.items()])
    [('A, C', 'too long'), ('B', 'too short')]
    """
    titles: dict[str, list[str]] = {}
    for row in rows:
        if row.reason is not None:
            titles.setdefault(row.reason, []).append(row.title)
    return [(", ".join(sharing), reason) for reason, sharing in titles.items()]
