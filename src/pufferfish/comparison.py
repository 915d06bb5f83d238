"""The noise of every mechanism, before anything is spent."""

import time
from dataclasses import dataclass, replace
from typing import Any

from pufferfish.calibration import Calibration
from pufferfish.core.progress import report_progress
from pufferfish.core.read_only import ReadOnly
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.mechanisms import MECHANISMS, LawMechanism, LeakagePropagation, MarkovQuilt, Mechanism
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.mechanisms.node_secrets import NodeSecrets
from pufferfish.models.model_class import as_theta, lengths_of
from pufferfish.queries import Query

__all__ = ["Comparison", "ComparisonRow", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow(ReadOnly):
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
    lower_bound : float or None
        A scale below which no Laplace noise gives the guarantee, the same for all rows; None where none was found.
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
    lower_bound: float | None = None
    seconds: float = 0.0
    reason: str | None = None

    @property
    def over_lower_bound(self) -> float | None:
        """Scale over lower bound: how many times the least possible noise it is at most."""
        return self.scale / self.lower_bound if self.scale and self.lower_bound else None


class Comparison(tuple[ComparisonRow, ...]):
    """Rows of a comparison; prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = ["".join(f"{heading:>{width}}" for heading, width in _COLUMNS)]
        for row in self:
            if row.reason is not None:
                lines.append(f"{row.title:<20}{'N/A':>12}  {row.reason}")
            else:
                ratio = "" if row.over_lower_bound is None else f"{row.over_lower_bound:.4g}"
                multiplier = "" if row.noise_multiplier is None else f"{row.noise_multiplier:.6g}"
                lines.append(
                    f"{row.title:<20}{row.scale:>12.6g}{multiplier:>18}"
                    f"{row.expected_l1_error:>19.6g}{ratio:>15}{row.seconds:>9.2f}"
                )
        return "\n".join(lines)


_COLUMNS = (
    ("mechanism           ", 20),
    ("scale", 12),
    ("noise multiplier", 18),
    ("expected L1 error", 19),
    ("/ lower bound", 15),
    ("seconds", 9),
)


def compare(theta: Any, query: Query, epsilon: float, length: Any = None, *, secrets: Any = None) -> Comparison:
    """Noise of every mechanism for one query. Reads no data, spends nothing.

    Parameters
    ----------
    theta : model, sequence of models, or class
        The class Θ.
    query : Query
        What shall be asked.
    epsilon : float
        Privacy parameter, positive and finite.
    length : int, ChainLength, or sequence of these, optional
        T, or the lengths of the data set's independent chains; for networks the number of rows of their table; other
        models know theirs.
    secrets : sequence, optional
        For networks: names of the nodes that are secret, or pairs of RecordIs of one node. By default any two values of
        any record. Mechanisms that cannot tell secrets apart keep all of them.

    Returns
    -------
    Comparison
        One row per mechanism: those of the paper, propagation, and those that are for one query only.

    Raises
    ------
    ParameterError, QueryError, ModelError
        As the mechanisms themselves do.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> rows = compare(chain, pf.Count(1), 1.0, length=100)
    >>> {row.mechanism: round(row.scale, 1) for row in rows if row.scale}  # doctest: +NORMALIZE_WHITESPACE
    {'group-dp': 100.0, 'mqm-approx': 23.5, 'mqm-exact': 12.8, 'propagation': 3.3, 'wasserstein': 4.0,
     'exact-laplace': 3.3}
    """
    class_ = as_theta(theta)
    lengths_of(class_, length)
    epsilon = as_epsilon(epsilon)
    if secrets is not None and not class_.networks:
        raise ParameterError(f"secrets name nodes of a network, and Θ is a class of {class_.kind}")
    asked = None if secrets is None else NodeSecrets(secrets, class_.networks[0])
    rows: list[ComparisonRow] = []
    best: Calibration | None = None
    for i, mechanism in enumerate(MECHANISMS):
        report_progress("comparing mechanisms", i / len(MECHANISMS))
        name, title = mechanism.name, mechanism.title
        start = time.perf_counter()
        try:
            found = mechanism.of(class_, length, **_settings(mechanism, asked)).calibrate(query, epsilon)
        except NotApplicableError as error:
            reason = str(error).removeprefix(f"{title} does not apply: ")
            rows.append(ComparisonRow(mechanism=name, title=title, reason=reason))
            continue
        best = found if best is None or found.scale < best.scale else best
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
    lower = None if best is None else best.lower_bound or None
    return Comparison(row if row.reason else replace(row, lower_bound=lower) for row in rows)


def _settings(mechanism: type[Mechanism], secrets: NodeSecrets | None) -> dict[str, Any]:
    """Return how a mechanism is told of secrets; those that cannot be told keep all of them."""
    if secrets is None:
        return {}
    if issubclass(mechanism, LawMechanism):
        return {"secrets": secrets.pairs}
    return {"secrets": secrets.plain} if issubclass(mechanism, MarkovQuilt | LeakagePropagation) else {}
