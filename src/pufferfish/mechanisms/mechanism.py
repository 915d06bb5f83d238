"""What every mechanism is: noise for a query under a class Θ, and a proof that it is enough."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import msgspec

from pufferfish._base.checked import one_of, real_number, truth
from pufferfish._base.view import counted
from pufferfish._base.words import number
from pufferfish._core.numbers import laplace
from pufferfish._core.numbers.rounding import UNIT
from pufferfish.errors import NotApplicableError, ParameterError, QueryError, shortened
from pufferfish.mechanisms.calibration import Calibration, Prover
from pufferfish.mechanisms.engine import (
    LARGEST_ANSWER,
    LEAST_EPSILON,
    MOST_NUDGES,
    ROUNDING,
    accuracy_reached,
    steps_within,
)
from pufferfish.mechanisms.protection import Protection
from pufferfish.mechanisms.witness import AnyWitness, Nearest
from pufferfish.queries import BoundQuery, FunctionQuery, JointQuery, LinearQuery, Query, StepQuery
from pufferfish.queries.strategy import Strategy
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import ChainClass, Continuum
from pufferfish.theta.joint_distribution import GivenLaws
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Described, Theta


class Mechanism(Prover):
    """Noise for queries under every θ in Θ; made from public things only.

    Parameters
    ----------
    theta : model, sequence of models, or class
        The class Θ; or a :class:`~pufferfish.Model`, whose step and origin a release then compares with its data. A Θ
        that the mechanism does not cover is a :class:`NotApplicableError` that says why.
    length : int, ChainLength, or sequence or dict of these
        T, or the lengths of the data set's independent chains, such as ``sequences.length``: for a ledger that is
        planned for longer ones a dict from subjects to lengths. For networks the number of independent rows of their
        table, 1 where it is left out; other models know theirs.

    Attributes
    ----------
    theta, model, length, rows : class, Model or None, tuple of ChainLength, int
        What it was made for, read-only: Θ, the model that Θ was given by, and of what size the data are.
    secrets, protection : tuple of pairs, Protection, or None
        What shall not be told apart; None for any two values of any one record.
    delta : float
        Probability with which the promise may fail: 0 but for (ε, δ) mechanisms.
    """

    hides_several: ClassVar[bool] = False
    """Whether it proves what is told of several records together, a stretch or columns of a row: :meth:`protecting`."""

    kinds: ClassVar[tuple[type, ...]] = (MarkovChain,)
    """Kinds of members of Θ, or of Θ, that it knows; :meth:`supports` says which of them it covers."""

    def __init__(self, theta: Any, length: Any = None) -> None:
        super().__init__(theta, length)
        reason = self._refuses(self.theta)
        if reason is not None:
            raise NotApplicableError(reason, self.title)

    def __repr__(self) -> str:
        records = counted(self.rows * sum(chain.records for chain in self.length), "record")
        chosen = {name: value for name, value in self.settings.items() if value is not None}
        settings = "".join(f", {name}={shortened(repr(value))}" for name, value in chosen.items())
        return f"{type(self).__name__}({self.theta!r}, <{records}>{settings})"

    @classmethod
    def of(cls, theta: Any, length: Any, **settings: Any) -> Self:
        """Return the mechanism from Θ, the lengths, and its :attr:`settings`."""
        return cls(theta, length, **settings)

    @property
    def settings(self) -> dict[str, Any]:
        """What else it takes to make this mechanism again, as plain values."""
        return {}

    @property
    def given_by(self) -> Described | Theta:
        """What another mechanism of the same class is made from: the model, or Θ where there is none."""
        return self.theta if self.model is None else self.model

    @property
    def networks(self) -> tuple[BayesianNetwork, ...]:
        """The members of Θ, where they are Bayesian networks."""
        return self.theta.networks

    @classmethod
    def supports(cls, theta: Any) -> str | None:
        """Return why the mechanism does not cover a Θ of one of its :attr:`kinds`, in one line; else None."""
        return None

    @classmethod
    def _refuses(cls, theta: Theta) -> str | None:
        member = (theta, *theta.members)[-1] if len(theta.parts) == 1 else theta
        if isinstance(theta, cls.kinds) or isinstance(member, cls.kinds):
            return cls.supports(theta)
        if isinstance(theta, Continuum) and theta.lacks is not None:
            return f"{theta.lacks}; use LeakagePropagation"
        of_kind = f"and Θ is a class of {theta.kind}"
        if isinstance(theta, ChainClass) and not theta.chains:
            cover = "LeakagePropagation and GroupDP cover these"
            return f"it covers Markov chains with one transition matrix, {of_kind}: {cover}"
        return f"it covers {'lists of Markov chains' if theta.of_chains else 'Markov chains'}, {of_kind}"

    def calibrate(
        self,
        query: Query,
        epsilon: float | None = None,
        *,
        accuracy: float | None = None,
        alpha: float | None = None,
        joint: bool = False,
        noise: Literal["equal", "best"] = "equal",
        protect: Any = None,
        within: Any = None,
    ) -> Calibration:
        """Least noise for which this mechanism proves that the query's release is ε-Pufferfish private.

        A :class:`ParameterError` if a parameter is out of range, or not one of epsilon and accuracy is given. A
        :class:`QueryError` or :class:`ModelError` if the query does not fit the model's states; or no record has two
        possible states under any θ. A :class:`NotApplicableError` if no finite noise is enough, or none is needed; or
        if the laws that the mechanism needs cannot be computed.

        Parameters
        ----------
        query : Query
            What is asked of the data.
        epsilon : float, optional
            Privacy parameter ε in nats, positive and finite.
        accuracy : float, optional
            Instead of ε the error that is allowed, in the query's units: the least ε is found, to 1e-3, at which each
            value is within it of the exact one with probability 1 − alpha.
        alpha : float, default 0.05
            With accuracy: probability that the error is larger.
        joint : bool, default False
            With accuracy: whether all values together shall be within it, rather than each by itself.
        noise : {"equal", "best"}, default "equal"
            Noise of one scale on every output; or on the counts, and of the scales, with which the expected L1 error
            is least (with accuracy: the largest error), of those that a search finds.
        protect, within : optional
            What shall be hidden in place of one record and any two of its values: see :meth:`protecting`.
        """
        if protect is not None or within is not None:
            hiding = self.protecting(protect, within)
            return hiding.calibrate(query, epsilon, accuracy=accuracy, alpha=alpha, joint=joint, noise=noise)
        together = truth(joint, "joint")
        if not one_of(noise, ("equal", "best")):
            raise ParameterError(f'noise is {noise!r}, expected "equal" (one scale for every output) or "best"')
        if accuracy is not None:
            if epsilon is not None:
                raise ParameterError("epsilon and accuracy both determine the noise: give one of them")
            check_share(query, accuracy)
            reach = self._best_at_accuracy if noise == "best" else self._at_accuracy
            return reach(query, accuracy, 0.05 if alpha is None else alpha, joint=together)
        if epsilon is None:
            raise ParameterError("epsilon is missing. Example: mechanism.calibrate(query, epsilon=1.0)")
        if alpha is not None or together:
            raise ParameterError("alpha and joint only work with accuracy: give accuracy, or leave them out")
        return (self._best if noise == "best" else self._calibrate)(query, as_epsilon(epsilon))

    def protecting(self, protect: Any = None, within: Any = None) -> "Mechanism":
        """Return the same mechanism, whose noise hides a stretch of a chain, columns of a row, or near values only.

        A :class:`NotApplicableError` or :class:`ParameterError` if the mechanism proves what is told of one record
        alone; if it is no such thing, or no step is known.

        Parameters
        ----------
        protect : int, str, timedelta, or list of names, optional
            Of a chain so many steps in a row, a length of time such as ``"1h"`` where Θ is a model that knows its step,
            or ``"subject"``, a whole series. Of a network columns of one row, by a list of names or such as
            ``"smoke+lung"``, or ``"row"``, all of them. By default one record.
        within : float, or sequence of (state, state), optional
            Of chains only values at most so far apart, in the units of the bins, shall not be told apart; or only these
            pairs of states. It does not hide whether a value is above some number or below.
        """
        if self.hides_several:
            return self.of(self.given_by, self._lengths, **{**self.settings, "protect": protect, "within": within})
        one = "for any two values of one record, not for near values only"  # 1 step is a record
        asked = protect.settings["protect"] if isinstance(protect, Protection) else protect
        less = one if asked in (None, 1) else "for one record, not for several together"
        raise NotApplicableError(f"it proves the leakage {less}: use LeakagePropagation", self.title)

    def shapes(self, query: Query) -> bool:
        """Whether noise of several scales is searched for a query, as ``noise="best"`` asks."""
        return False

    def _best(self, query: Query, epsilon: float) -> Calibration:
        """Return the calibration whose noise has the best shape found."""
        raise self._no_shapes()

    def _best_at_accuracy(self, query: Query, accuracy: float, alpha: float, *, joint: bool) -> Calibration:
        """Return the calibration at the least ε that is as accurate as asked, its noise in the best shape found."""
        raise self._no_shapes()

    def _no_shapes(self) -> NotApplicableError:
        return NotApplicableError(
            'noise="best" uses several scales, but this mechanism covers one query with '
            'one scale: use noise="equal", or a mechanism that composes, such as LeakagePropagation',
            self.title,
        )

    def _at_accuracy(self, query: Query, accuracy: float, alpha: float, *, joint: bool) -> Calibration:
        """Return the calibration at the least ε, of four digits, that is as accurate as asked."""
        bound = self.bind(query)
        together = len(bound.labels) if joint else 1
        steps = steps_within(accuracy, bound.unit)
        widest = laplace.widest(steps, alpha, together=together)
        leakage, witness = self._leaks_at(query, widest, math.inf)
        if not leakage < math.inf:
            raise NotApplicableError(f"no finite epsilon reaches an accuracy of {accuracy:g}", self.title)
        if witness is None or leakage == 0:  # there is no secret, or no noise is needed: whatever epsilon is
            return self._calibrate(query, 1.0)
        calibration = accuracy_reached(
            lambda epsilon: self._calibrate(query, epsilon),
            lambda made: laplace.accuracy(made.unit_scale, alpha, together=together) <= steps,
            leakage,
        )
        if calibration is None:
            raise NotApplicableError(f"no epsilon was found that reaches an accuracy of {accuracy:g}", self.title)
        return calibration

    @abstractmethod
    def _calibrate(self, query: Query, epsilon: float) -> Calibration:
        """Return the least noise for which the mechanism proves that the query's release is private."""

    def verify(self, calibration: Calibration) -> tuple[float, AnyWitness | None]:
        """Prove anew what a release with this noise leaks at most, in nats, and say where."""
        if calibration.strategy is not None:
            raise self._no_shapes()
        return self._leaks_at(calibration.query, calibration.unit_scale, calibration.epsilon)

    @abstractmethod
    def _leaks_at(self, query: Query, unit_scale: float, enough: float) -> tuple[float, AnyWitness | None]:
        """Bound what a release with noise of a scale leaks, in nats, and say where; ``enough`` needs no less."""

    def _key(self, query: Query) -> tuple[object, ...] | None:
        """Return what a query is known by among those on this Θ; None where something is a function of the user's."""
        bound = self.bind(query)
        has_given_laws = any(isinstance(member, GivenLaws) for member in self.theta.members)
        return None if has_given_laws or isinstance(bound, FunctionQuery) else bound.key

    def _proven(
        self,
        query: Query,
        bound: BoundQuery,
        epsilon: float,
        noises: Iterator[tuple[float, AnyWitness]],
        strategy: Strategy | None = None,
    ) -> Calibration:
        """Return a calibration with the first noise that is verified, each raised by what its verification misses."""
        none = math.inf, None
        (unit_scale, witness), following = next(noises, none), None
        for nudge in range(MOST_NUDGES):
            if witness is None or not 0 < unit_scale < math.inf:
                break
            calibration = Calibration(
                epsilon=epsilon,
                unit_scale=unit_scale,
                query=query,
                linear=bound,
                witness=witness,
                bound=self,
                strategy=strategy,
            )
            leakage, decides = self.verify(calibration)
            if leakage <= epsilon and decides is not None:
                return replace(calibration, witness=_found_at(decides, witness))
            missing = leakage / epsilon - 1
            if following is None and not missing <= ROUNDING:
                following = next(noises, none)
            unit_scale *= 1 + max(UNIT * 4**nudge, min(missing, 1.0))
            if following is not None and not unit_scale < following[0]:
                (unit_scale, witness), following = following, None
        raise NotApplicableError(f"no finite noise is enough at epsilon={number(epsilon, 6)}", self.title)

    def bind(self, query: Query) -> BoundQuery:
        """Return a query on the states and records of Θ; a :class:`QueryError` if it is no query, or does not fit."""
        if not isinstance(query, Query):
            raise QueryError(f"query is {query!r}, expected one such as Histogram() or Count(state)")
        for member in self.theta.members:
            if isinstance(member, GivenLaws):
                member.check_query(query)
        records = self.rows * sum(chain.records for chain in self.length)
        bound = query.bind(self.theta.states, records, self.theta.variables)
        if self.networks and isinstance(bound, LinearQuery):
            bound = replace(bound, domains=self.networks[0].domains)
        if isinstance(bound, StepQuery) and not self.theta.of_chains:
            raise QueryError(
                f"{query.kind} count steps from one record of a chain to the next, but Θ is a class of "
                f"{self.theta.kind}: ask for states, such as Histogram()"
            )
        if isinstance(bound, JointQuery) and not self.networks:
            raise QueryError(
                f"{query.kind} counts several columns of a network's table together, and Θ is a class of "
                f"{self.theta.kind}: ask for states, such as Histogram(), or use a BayesianNetwork"
            )
        if isinstance(bound, LinearQuery) and bound.largest * records > LARGEST_ANSWER:
            raise QueryError(
                f"the answer over {records:,} records can be as large as {bound.largest * records:.3g} units, and at "
                f"most {LARGEST_ANSWER:.3g} fit: give values in larger units, or smaller factors"
            )
        one = len(self.length) == 1 and self.length[0].steps == self.length[0].records
        if self.theta.of_chains and isinstance(bound, LinearQuery) and bound.factors is not None and not one:
            raise QueryError("Window and Weighted need one chain without gaps")
        return bound

    def __reduce__(self) -> Any:
        return partial(self.of, self.given_by, self._lengths, **self.settings), ()

    @property
    def _lengths(self) -> Any:
        """The lengths that another such mechanism is made from."""
        return self.rows if self.networks else self.length


def _found_at(decides: AnyWitness, searched: AnyWitness) -> AnyWitness:
    """Return the witness of a proof with the gap of the search for the noise: the proof is about this noise alone."""
    if searched.nearest is None:
        return msgspec.structs.replace(decides, nearest=None)
    nearest = decides.nearest or Nearest(gap=searched.nearest.gap)
    return msgspec.structs.replace(decides, nearest=msgspec.structs.replace(nearest, gap=searched.nearest.gap))


def check_share(query: Query, accuracy: Any) -> None:
    """Refuse errors of shares that no share can have: a number of per cent, most often."""
    value, known = real_number(accuracy), query.known
    if value is not None and value >= 1 and known is not None and known.measure.startswith("share"):
        raise ParameterError(
            f"accuracy is {accuracy!r}, but shares lie between 0 and 1: write five percent as 0.05, or ask for counts"
        )


def as_epsilon(epsilon: Any) -> float:
    """Return a privacy parameter as a float: positive and finite, and at least :data:`LEAST_EPSILON`."""
    value = real_number(epsilon)
    if isinstance(epsilon, Query):
        raise ParameterError("epsilon is a query: the query comes first, as in mechanism.calibrate(query, epsilon=1.0)")
    if value is None or not 0 < value < math.inf:
        kind = "positive number" if value is None else "positive finite number"
        raise ParameterError(f"epsilon is {epsilon!r}, expected a {kind} such as 1.0")
    if value < LEAST_EPSILON:
        raise ParameterError(
            f"epsilon is {epsilon!r}, expected at least {number(LEAST_EPSILON)}: a smaller one is lost in rounding "
            "errors, and its noise would hide any answer"
        )
    return value
