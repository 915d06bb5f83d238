"""The noise of every mechanism, before anything is spent."""

import time
from dataclasses import dataclass
from typing import Any

from pufferfish.core.progress import report_progress
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms import MECHANISMS
from pufferfish.mechanisms.base import as_epsilon
from pufferfish.models.chain_class import as_chain_class
from pufferfish.queries import Query

__all__ = ["Comparison", "ComparisonRow", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """One mechanism's noise for a query, or why it does not apply.

    Parameters
    ----------
    mechanism, title : str
        Name on the command line, and name in tables.
    scale : float or None
        Laplace scale of the noise on each output.
    noise_multiplier : float or None
        Scale over the query's Lipschitz constant.
    expected_l1_error : float or None
        Expected L1 distance between released and exact vector.
    seconds : float
        Time to compute the scale.
    reason : str or None
        Why the mechanism does not apply.
    """

    mechanism: str
    title: str
    scale: float | None = None
    noise_multiplier: float | None = None
    expected_l1_error: float | None = None
    seconds: float = 0.0
    reason: str | None = None


class Comparison(tuple[ComparisonRow, ...]):
    """Rows of a comparison; prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = [f"{'mechanism':<12}{'scale':>14}{'noise multiplier':>18}{'expected L1 error':>19}{'seconds':>9}"]
        for row in self:
            if row.reason is not None:
                lines.append(f"{row.title:<12}{'N/A':>14}  {row.reason}")
            else:
                lines.append(
                    f"{row.title:<12}{row.scale:>14.6g}{row.noise_multiplier:>18.6g}"
                    f"{row.expected_l1_error:>19.6g}{row.seconds:>9.2f}"
                )
        return "\n".join(lines)


def compare(theta: Any, query: Query, epsilon: float, length: Any) -> Comparison:
    """Noise of every mechanism for one query. Reads no data, spends nothing.

    Parameters
    ----------
    theta : MarkovChain, sequence of MarkovChain, or ChainClass
        The class Θ.
    query : Query
        What shall be asked.
    epsilon : float
        Privacy parameter, positive and finite.
    length : int, ChainLength, or sequence of these
        T, or the lengths of the data set's independent chains.

    Returns
    -------
    Comparison
        One row per mechanism, in the order of the paper's tables.

    Raises
    ------
    ParameterError, QueryError, ModelError
        As the mechanisms themselves do.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> [(row.mechanism, row.scale and round(row.scale, 1)) for row in compare(chain, pf.Count(1), 1.0, length=100)]
    [('entry-dp', None), ('group-dp', 100.0), ('mqm-approx', 23.5), ('mqm-exact', 12.8), ('propagation', 3.3)]
    """
    class_ = as_chain_class(theta)
    epsilon = as_epsilon(epsilon)
    rows: list[ComparisonRow] = []
    for i, mechanism in enumerate(MECHANISMS):
        report_progress("comparing mechanisms", i / len(MECHANISMS))
        name, title = mechanism.name, mechanism.title
        start = time.perf_counter()
        try:
            found = mechanism(class_, length).calibrate(query, epsilon)
        except NotApplicableError as error:
            reason = str(error).removeprefix(f"{title} does not apply: ")
            rows.append(ComparisonRow(mechanism=name, title=title, reason=reason))
            continue
        rows.append(
            ComparisonRow(
                mechanism=name,
                title=title,
                scale=found.scale,
                noise_multiplier=found.noise_multiplier,
                expected_l1_error=found.expected_l1_error,
                seconds=time.perf_counter() - start,
            )
        )
    return Comparison(rows)
