r"""Mechanisms that calibrate noise to the law of one query given the secrets (Section 3, and beyond).

They need the laws μ_s = P(F(X) | s, θ) and nothing else. What they prove holds for this one release: knowing the value
of another query changes μ_s. So their ε never adds, and a ledger refuses them.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pufferfish.errors import ModelError, NotApplicableError
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.mechanism import Mechanism
from pufferfish.mechanisms.one_query._laws import chain_work, pairs_of_laws
from pufferfish.mechanisms.one_query.pairs import About, LawPair
from pufferfish.mechanisms.witness import AnyWitness, CouplingWitness, LawWitness
from pufferfish.queries import BoundQuery, JointQuery, Query, StepQuery
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.continua import BinaryChainInterval
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import ModelClass, Theta
from pufferfish.theta.secrets import CountIs, as_secret_pairs

_KEPT = 8_000_000  # numbers in the laws of a query up to which they are kept: about 130 megabytes
_SECONDS = 1e-8  # how long a multiplication takes, where the laws are computed again for the proof


@dataclass(frozen=True, slots=True)
class Decisive:
    """The pair of secrets that decides, if any, and the noise it needs, in units, or what noise leaks of it."""

    value: float = 0.0
    about: About | None = None
    distance: int | None = None


class LawMechanism(Mechanism):
    """Noise calibrated to the law of a query given secrets; see :class:`Wasserstein` for the parameters."""

    composes: ClassVar[bool] = False
    kinds: ClassVar[tuple[type, ...]] = (MarkovChain, BinaryChainInterval, ModelClass)

    def __init__(self, theta: Any, length: Any = None, *, secrets: Any = None) -> None:
        super().__init__(theta, length)
        pairs = as_secret_pairs(secrets)
        counted = [s for pair in pairs or () for s in pair for c in s.conditions if isinstance(c, CountIs)]
        if self.rows > 1 and counted:
            raise NotApplicableError(
                f"the secret '{counted[0]}' is about all {self.rows:,} rows of the table, but secrets must be about "
                "one row: use RecordIs",
                self.title,
            )
        self._keep(secrets=pairs)
        self._laws: list[tuple[object, list[LawPair]]] = []
        self._others: list[LawMechanism] = [self]
        self._listed: Theta = self.theta
        if isinstance(self.theta, BinaryChainInterval):  # of one chain: others are not covered
            self._listed = ChainClass(self.theta.some_members[:1], self.theta.origin)

    @property
    def settings(self) -> dict[str, Any]:
        """The secrets."""
        return {"secrets": self.secrets}

    @classmethod
    def supports(cls, theta: Theta) -> str | None:
        """Every Θ whose states are known is covered, but for chains that are a continuum."""
        if isinstance(theta, BinaryChainInterval) and theta.low < theta.high:
            return (
                "it covers lists of chains, but Θ is a continuum: use LeakagePropagation; a list of some of its "
                "chains would protect under these chains only"
            )
        return "its states are not known" if theta.stands_for_more else None

    @abstractmethod
    def _least(self, query: Query, epsilons: Sequence[float]) -> list[Decisive]:
        """Return the least noise that is enough for all pairs of laws, at several ε."""

    @abstractmethod
    def _leaks(self, query: Query, unit_scale: float) -> Decisive:
        """Return what noise leaks at most."""

    def bind(self, query: Query) -> BoundQuery:
        """Return a query on the states and records of Θ, refused where its laws are not computed."""
        bound = super().bind(query)
        if isinstance(bound, StepQuery) and len(bound.labels) > 1:
            raise NotApplicableError(
                "this mechanism covers one number of steps, not several: use LeakagePropagation, MQMExact or GroupDP",
                self.title,
            )
        if isinstance(bound, JointQuery):
            raise NotApplicableError(
                "this mechanism does not cover tables of several columns: use LeakagePropagation, MarkovQuilt or "
                "GroupDP",
                self.title,
            )
        return bound

    def seconds(self, query: Query) -> float:
        """Return about how long it takes to calibrate, where that can be long; it is not more than a guess."""
        return _SECONDS * chain_work(self._listed, self.length, self.bind(query))

    def share_laws(self, other: "LawMechanism") -> None:
        """Use the laws that another mechanism has computed, and the other way round, where they are of the same."""
        if other.theta is self.theta and other.length == self.length and other.secrets == self.secrets:
            self._laws, self._others = other._laws, other._others
            self._others.append(self)

    def _hearer(self, query: Query) -> Callable[[LawPair | None], None] | None:
        """Return what hears the pairs of laws that another mechanism goes through, and None after the last of them."""
        return None

    def _pairs(self, query: Query) -> Iterator[LawPair]:
        """Yield the pairs of laws, kept for the next time where they are not too large."""
        key = self._key(query)
        known = next((pairs for asked, pairs in self._laws if asked == key and key is not None), None)
        if known is not None:
            yield from known
            return
        kept: list[LawPair] = []
        size = 0
        heard = [mechanism._hearer(query) for mechanism in self._others if mechanism is not self]
        hearers = [hear for hear in heard if hear is not None]
        try:
            for pair in pairs_of_laws(self._listed, self.length, query, self.bind(query), self.secrets):
                size += pair.size
                kept.append(pair)
                if size > _KEPT:
                    kept.clear()
                yield pair
                for hear in hearers:
                    hear(pair)
            for hear in hearers:
                hear(None)
        except NotApplicableError as error:
            raise NotApplicableError(error.reason, self.title) from error
        if key is not None and size <= _KEPT:
            self._laws[:] = [*self._laws[-1:], (key, kept)]

    def _calibrate(self, query: Query, epsilon: float) -> Calibration:
        bound = self.bind(query)
        with self._lock:
            (noise,) = self._least(query, [epsilon])
        if noise.about is None:
            raise ModelError(
                "under every θ at most one secret of each pair is possible, so there is nothing to hide: check the "
                "secrets, and the zeros of the model"
            )
        if noise.value == 0:
            raise NotApplicableError(
                "under every θ the query's law is the same whichever secret holds"
                f"{', but for less than delta' if self.delta else ''}, so there is no noise to calibrate",
                self.title,
            )
        witness = _witness(noise, noise.about, bound)
        return self._proven(query, bound, epsilon, iter([(noise.value, witness)]))

    def scales(self, query: Query, epsilons: Sequence[float]) -> list[float | None]:
        """Return the scale of the noise, in units of the query, at several ε, to draw; None for none."""
        with self._lock:
            noises = self._least(query, epsilons)
        return [least.value if 0 < least.value < math.inf else None for least in noises]

    def _leaks_at(self, query: Query, unit_scale: float, enough: float) -> tuple[float, AnyWitness | None]:
        bound = self.bind(query)
        with self._lock:
            worst = self._leaks(query, unit_scale)
        return worst.value, None if worst.about is None else _witness(worst, worst.about, bound)


def _witness(worst: Decisive, about: About, bound: BoundQuery) -> LawWitness | CouplingWitness:
    whose: dict[str, Any] = {
        "theta": about.theta,
        "length": about.length,
        "node": about.node,
        "secret_pair": about.secrets,
    }
    if worst.distance is None:
        return LawWitness(**whose)
    return CouplingWitness(**whose, distance=float(worst.distance * bound.unit))
