"""A row of a comparison: one mechanism's noise for a query, or why it does not apply; and its noise at several ε."""

from dataclasses import dataclass
from typing import Literal

from pufferfish.core.numbers.read_only import ReadOnly

__all__ = ["NOT_ASKED", "ONE_QUERY", "ComparisonRow", "NoiseCurve"]

NOT_ASKED = "not asked, "
"""How the reason of a mechanism begins that might apply, but takes long."""

ONE_QUERY = "it calibrates noise to one query of all records, and here each {} has values of its own"
"""The reason of a mechanism that does not compose, with what has the values: group, or subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow(ReadOnly):
    """One mechanism's noise for a query, or why it does not apply.

    Parameters
    ----------
    mechanism, title : str
        Name on the command line, and name in tables.
    epsilon : float or None
        Privacy parameter of the noise; with an accuracy the least one that reaches it.
    scale : float or None
        Laplace scale of the noise on each output; the largest one of the best noise.
    noise_multiplier : float or None
        Scale over the query's Lipschitz constant.
    accuracy : float or None
        What the error of one output exceeds with a probability of at most 5%, in the units of the query.
    expected_l1_error : float or None
        Expected L1 distance between released and exact vector.
    lower_bound : float or None
        A scale below which no Laplace noise gives the guarantee, the same for all rows; None where none was found.
    seconds : float
        Time to compute the scale.
    composes : bool
        Whether such releases may be added up, as in a ledger; else the noise is for this one query.
    recommended : bool
        Whether this is the mechanism to take: the least noise of those that compose.
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
    reason: str | None = None
    decided_by: str | None = None
    noise: Literal["equal", "best"] = "equal"

    @property
    def over_lower_bound(self) -> float | None:
        """Scale over lower bound: how many times the least possible noise it is at most."""
        return self.scale / self.lower_bound if self.scale and self.lower_bound else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseCurve(ReadOnly):
    """The noise of one mechanism at several ε; None where none is known.

    Parameters
    ----------
    mechanism, title, noise
        As for :class:`ComparisonRow`.
    scales : tuple of float or None
        Laplace scale at each ε.
    errors : tuple of float or None
        What the error of one output exceeds with a probability of at most 5%, at each ε.
    """

    mechanism: str
    title: str
    noise: Literal["equal", "best"]
    scales: tuple[float | None, ...]
    errors: tuple[float | None, ...]
