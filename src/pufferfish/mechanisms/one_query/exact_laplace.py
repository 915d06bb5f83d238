"""The least Laplace noise for one query (beyond the paper): the exact loss, inverted.

Where the laws of a query given the secrets are known, so is what Laplace noise of scale b leaks, and the least b that
leaks at most ε. No Laplace noise of one scale that is independent of the data can do with less for this query. Of
outputs that are a constant plus v·n with a whole number n it is ‖v‖₁ times the least scale of n (docs/proofs/laws.md).
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

from pufferfish._base.checked import real_number
from pufferfish._core.laws.law import Law, VectorLaw, laplace_loss
from pufferfish._core.laws.of_chains import LawFamily, mixture_loss
from pufferfish._core.numbers.rounding import bracket, down, or_infinite, up
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.mechanisms.one_query.law_mechanism import Decisive, LawMechanism
from pufferfish.mechanisms.one_query.pairs import LawPair
from pufferfish.mechanisms.one_query.wasserstein import shift_of
from pufferfish.mechanisms.witness import LawWitness, Witness
from pufferfish.queries import LinearQuery, Query

_TOLERANCE = 1e-10  # how near the loss of the least noise comes to ε, relatively
_SEVERAL = (
    "it covers queries whose outputs all follow from one number with few values, but this one has {} outputs; ask for "
    "one output, or use Wasserstein"
)

_TINY = 1e-6  # losses below this are also bounded by how far the law moves
_LARGE_SCALE = 1e3
"""From this scale on losses are bounded by how far the law moves too: rounding then takes more of what is left."""

_ROOM = 2e-10
"""More noise than needed, relatively, so that pairs of laws that need the same are not searched one by one."""


class ExactLaplace(LawMechanism):
    """The least Laplace noise for one query whose outputs all follow from one whole number.

    ``theta``, ``length`` and ``secrets`` are those of :class:`Wasserstein`.

    Examples
    --------
    >>> import pufferfish as pf
    >>> flu = pf.Cliques([0.1, 0.15, 0.5, 0.15, 0.1], states=["healthy", "flu"])
    >>> round(pf.ExactLaplace(flu).calibrate(pf.Count("flu"), epsilon=1.0).scale, 6)
    1.154527
    """

    name: ClassVar[str] = "exact-laplace"
    title: ClassVar[str] = "ExactLaplace"
    witnesses: ClassVar[tuple[type[Witness], ...]] = (LawWitness,)

    def loss(self, query: Query, scale: float) -> float:
        """Return what Laplace noise of a scale, on each output in the query's own measure, leaks: in nats, rounded up.

        What rounding adds: docs/one_query.md. Errors are those of :meth:`calibrate`.
        """
        noise = real_number(scale)
        if noise is None or not noise > 0:
            raise ParameterError(f"scale is {scale!r}, expected a positive number")
        unit = float(self.bind(query).unit)
        if noise == math.inf:
            return 0.0
        with self._lock:
            return self._leaks(query, noise / unit).value

    def _least(self, query: Query, epsilons: Sequence[float]) -> list[Decisive]:
        worst = [Decisive() for _ in epsilons]
        for pair in self._numbers(query):  # once for all ε: they may be too many to be kept
            worst = [_worse(decisive, pair, epsilon) for decisive, epsilon in zip(worst, epsilons, strict=True)]
        return worst

    def _leaks(self, query: Query, unit_scale: float) -> Decisive:
        worst = Decisive()
        for pair in self._numbers(query):
            leaks = _loss(pair, down(unit_scale / pair.about.norm), _LARGE_SCALE)
            if worst.about is None or leaks > worst.value:
                worst = Decisive(leaks, pair.about)
        return worst

    def _numbers(self, query: Query) -> Iterator[LawPair]:
        """Yield the laws of the one number that determines the outputs."""
        bound = self.bind(query)
        if isinstance(bound, LinearQuery) and bound.line is None:
            raise NotApplicableError(_SEVERAL.format(len(bound.labels)), self.title)
        for pair in self._pairs(query):
            if isinstance(pair.mu, VectorLaw):
                raise NotApplicableError(_SEVERAL.format(len(bound.labels)), self.title)
            yield pair


def _worse(worst: Decisive, pair: LawPair, epsilon: float) -> Decisive:
    """Return what needs more noise at this ε: what did before, or a pair of laws."""
    norm = pair.about.norm
    if worst.value and _loss(pair, worst.value / norm) <= epsilon:
        return worst
    farthest = shift_of(pair).near / norm
    if farthest == 0:
        return worst if worst.about else Decisive(0.0, pair.about)
    noises = bracket(
        partial(_loss, pair),
        epsilon,
        farthest / epsilon,
        tolerance=_TOLERANCE,
        from_above=False,
    )
    enough = noises.enough * norm * (1 + _ROOM)
    return Decisive(enough, pair.about) if worst.about is None or enough > worst.value else worst


def _loss(pair: LawPair, scale: float, large: float = math.inf) -> float:
    """Return what Laplace noise on the one number leaks of a pair of secrets, rounded up."""
    match pair.mu, pair.nu:
        case LawFamily() as mu, LawFamily() as nu:
            loss = or_infinite(mixture_loss(mu, nu, scale))
        case Law() as mu, Law() as nu:
            loss = or_infinite(laplace_loss(mu, nu, scale))
        case _:
            raise AssertionError("vectors are refused before")
    if loss > _TINY and scale < large:
        return loss
    moved = shift_of(pair)  # its rounding is less than that of a loss that is next to nothing
    by_distance = [up(moved.certain / pair.about.norm / scale), up(moved.near / pair.about.norm / scale + moved.slack)]
    return min(loss, *by_distance)
