"""Statistics of ordered states, such as bins of a number: cumulative distributions, and quantiles.

The states are in the order of the model: bins from the lowest to the highest. A cumulative distribution is the number
of records up to each state but the last; that of all is public. Quantiles follow from it, with intervals for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from pufferfish._base.checked import called_as, is_list, real_number, truth
from pufferfish._base.frozen import ReadOnly
from pufferfish._core.strategies import prefixes
from pufferfish.errors import QueryError
from pufferfish.queries.query import LinearQuery, Query, QueryKind, Variables

__all__ = ["CDF", "Quantiles", "named_quantiles"]


def named_quantiles(shares: Sequence[float]) -> str:
    """Return how a query's description names its quantiles.

    Examples
    --------
    >>> named_quantiles([0.1, 0.5])
    'the quantiles 0.1, 0.5'
    """
    return f"the quantiles {', '.join(repr(share) for share in shares)}"


class _Cumulative(ReadOnly, Query):
    """What counts the records up to each state."""

    relative: bool

    @property
    def is_cumulative(self) -> bool:
        """The outputs count the records up to each state."""
        return True

    @property
    def _asked(self) -> str:
        return f", for {named_quantiles(self.quantiles)}" if self.quantiles else ""

    def bind(self, states: Sequence[str], records: int, variables: Variables | None = None) -> LinearQuery:
        """Bind to a model's states, from the lowest to the highest, and the public number of records."""
        if variables is not None:
            raise QueryError(f"{self.kind} is of records that have the same ordered states, such as those of a chain")
        what = "share" if self.relative else "number"
        return LinearQuery(
            prefixes(len(states)),
            Fraction(1, records) if self.relative else Fraction(1),
            tuple(f"up to {state}" for state in states[:-1]),
            f"{what} of the {records:,} records up to each of {len(states)} states{self._asked}",
            divided_by=records if self.relative else None,
        )


@dataclass(frozen=True)
class CDF(_Cumulative):
    """Cumulative distribution of ordered states: the records up to each state but the last.

    Parameters
    ----------
    relative : bool, default True
        Shares of the records (dividing by their public number) rather than counts.

    Examples
    --------
    >>> CDF(relative=False).bind(["<200", "200-400", ">=400"], records=100).labels
    ('up to <200', 'up to 200-400')
    """

    relative: bool = True  # pyrefly: ignore[bad-override]

    def __post_init__(self) -> None:
        truth(self.relative, "relative", QueryError)

    kinds: ClassVar[Mapping[str, QueryKind]] = {
        "cdf": QueryKind("share of records", None, relative=True),
        "cdf-counts": QueryKind("records", None),
    }


@dataclass(frozen=True, init=False)
class Quantiles(_Cumulative):
    """Quantiles of ordered states, with intervals: the state up to which a share of the records is.

    What gets noise is the cumulative distribution; quantiles and intervals follow from it. With 95% probability all
    intervals hold together.

    Parameters
    ----------
    shares : float or sequence of float
        Which quantiles: shares of the records, strictly between 0 and 1, such as 0.5 for the median.

    Examples
    --------
    >>> Quantiles([0.5, 0.1]).shares
    (0.1, 0.5)
    """

    shares: tuple[float, ...]
    relative: ClassVar[bool] = True  # pyrefly: ignore[bad-override]

    @called_as("Quantiles([0.1, 0.5, 0.9])")
    def __init__(self, shares: Any) -> None:
        several: list[Any] = list(shares) if is_list(shares) else [shares]
        found: set[float] = set()
        for share in several:
            number = real_number(share)
            if number is None or not 0 < number < 1:
                raise QueryError(
                    f"quantiles: {share!r} is no share strictly between 0 and 1, such as 0.5 for the median"
                )
            found.add(number)
        if not found:
            raise QueryError("quantiles names none: give at least one share, such as 0.5 for the median")
        object.__setattr__(self, "shares", tuple(sorted(found)))

    kinds: ClassVar[Mapping[str, QueryKind]] = {"quantiles": QueryKind("share of records", None, relative=True)}

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles, in ascending order."""
        return self.shares
