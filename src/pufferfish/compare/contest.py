"""The noise of every mechanism, before anything is spent."""

import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

from pufferfish._base.checked import one_of
from pufferfish._base.progress import BoundedCache, part_of, report_progress
from pufferfish._base.view import counted
from pufferfish._base.words import at_most, did_you_mean
from pufferfish._core.numbers import laplace
from pufferfish._core.numbers.rounding import nearest
from pufferfish.compare.comparison import Comparison
from pufferfish.compare.rows import FEW, NOT_ASKED, ONE_QUERY, ComparisonRow, Shape, points_around
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.mechanisms import MECHANISMS, InfluenceBound, LawMechanism, LeakagePropagation, MarkovQuilt, Mechanism
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.markov_quilt import NodeSecrets
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.mechanisms.protection import Protection, step_of
from pufferfish.mechanisms.words import hidden_in_words
from pufferfish.queries import Query, measure_of, refuse_pooling
from pufferfish.queries.strategy import Strategy
from pufferfish.theta.joint_distribution import GivenLaws
from pufferfish.theta.model_class import Described, as_theta, lengths_of

COMPOSING = tuple(kind for kind in MECHANISMS if kind.composes)
"""The mechanisms for values of each group or of each subject: the others are for one query of all records."""

_PATIENCE = 20.0
"""Seconds up to which a mechanism is asked that nobody named."""

_LONG = 0.3
"""Seconds for the law of a query, as they are guessed, from which on it is asked at few ε in a picture."""

_AS_LITTLE = 1.001
"""Noise within this factor of the least counts as equal when one mechanism is recommended."""


class Contest:
    """The mechanisms for one query under Θ, made once and asked at any ε: what they computed is used again.

    Of ``kinds`` each is asked, however long it takes; by default all that are thought to take less than half a minute.
    ``left_out`` has rows of mechanisms that are not asked, with the reason. Other parameters are those of
    :func:`compare`.
    """

    def __init__(
        self,
        theta: Any,
        query: Query,
        length: Any = None,
        *,
        secrets: Any = None,
        noise: Any = "equal",
        protect: Any = None,
        within: Any = None,
        kinds: tuple[type[Mechanism], ...] | None = None,
        left_out: Sequence[ComparisonRow] = (),
    ) -> None:
        if not one_of(noise, ("equal", "best")):
            raise ParameterError(f'noise is {noise!r}, expected "equal" or "best" (which shows both)')
        self._shapes, self._left_out = noise == "best", left_out
        self.theta, self._query, self._length = as_theta(theta), query, length
        self._given = theta if isinstance(theta, Described) else self.theta
        lengths_of(self.theta, length)
        networks = self.theta.networks
        if secrets is not None and not networks:
            kind = self.theta.kind
            raise ParameterError(f"secrets only work with networks, but Θ is a class of {kind}: leave them out")
        if networks and isinstance(query, Query):
            refuse_pooling(query, networks[0].node_states)
        self._secrets = None if secrets is None else NodeSecrets(secrets, networks[0])
        self._step = step_of(self.theta, theta if isinstance(theta, Described) else None)
        self._protection = Protection.of(protect, within, self.theta, self._step)
        self._made: dict[str, Mechanism | NotApplicableError] = {}
        self._patient = kinds is not None
        self._kinds = MECHANISMS if kinds is None else kinds
        self._scales: dict[tuple[str, float], float | None] = {}
        self._known: dict[tuple[str, str, float], tuple[Calibration, float]] = {}
        self._curves: BoundedCache[list[list[ComparisonRow]]] = BoundedCache(4)

    @property
    def hides_stretch(self) -> bool:
        """Whether more than one record shall be hidden together."""
        return self._protection is not None and self._protection.is_stretch

    @property
    def _asked(self) -> str:
        """What is asked, and what shall be hidden."""
        named = self._secrets is not None or any(isinstance(member, GivenLaws) for member in self.theta.members)
        secrets = [] if named else None  # that they are named is said, not which
        about: Any = {"of_chains": self.theta.of_chains, "networks": bool(self.theta.networks), "brief": True}
        return f"{self._query.kind}, hiding {hidden_in_words(secrets, self._protection, self._step, **about)},"

    def at(self, epsilon: float, *, bounded: bool = True) -> Comparison:
        """Return the noise of every mechanism at one ε, and unless it is not ``bounded`` below what there is none."""
        epsilon = as_epsilon(epsilon)
        rows = self._all_rows(f"at ε = {at_most(epsilon)}", epsilon=epsilon)
        start = time.perf_counter()
        keys = ((kind.name, "equal", epsilon) for kind in self._kinds)
        near = self._protection is not None and self._protection.only_near  # the bound is of any two values
        calibrations = [self._known[key][0] for key in keys if key in self._known and bounded and not near]
        lower = min(calibrations, key=lambda made: made.scale).lower_bound or None if calibrations else None
        seconds = time.perf_counter() - start
        title = f"{self._asked} at ε = {at_most(epsilon)}; Θ: {self.theta.origin}"
        ordered = _in_order(rows, lower, lambda row: (row.expected_l1_error if self._shapes else row.scale) or 0.0)
        return Comparison(ordered, title, measure_of(self._query.kind), bound_seconds=seconds, contest=self)

    def at_accuracy(self, accuracy: float, alpha: float | None = None) -> Comparison:
        """Return the least ε with which each mechanism is as accurate as asked."""
        rows = self._all_rows(f"for an accuracy of {accuracy:g}", accuracy=accuracy, alpha=alpha)
        share = 1 - (0.05 if alpha is None else alpha)
        title = f"{self._asked} within {accuracy:g} with {share:.6g} probability; Θ: {self.theta.origin}"
        ordered = _in_order(rows, None, lambda row: row.epsilon or 0.0)
        return Comparison(ordered, title, measure_of(self._query.kind), by_epsilon=True, contest=self)

    def calibration(self, row: ComparisonRow) -> Calibration:
        """Return the calibration of a row."""
        kind = next(kind for kind in self._kinds if kind.name == row.mechanism)
        return self._calibration(kind, row.noise, epsilon=row.epsilon)[0]

    def curves(self, made: Calibration, epsilons: Sequence[float] = ()) -> list[list[ComparisonRow]]:
        """Return the noise of every mechanism that applies, at some ε that go up, each a row.

        By default they are :func:`points_around` the ε of a calibration: its own mechanism is followed closely, in the
        shape of its noise, and the others at every few of these points. Scales are proved to be enough; where none is
        known a row has none. Laws of the query are computed once for all ε.
        """
        shape = () if made.strategy is None else (made.strategy.rows.tobytes(), made.strategy.sharpness.tobytes())
        key = (made.mechanism, made.epsilon, made.unit_scale, *shape, *epsilons)
        return self._curves.of(key, lambda: self._followed(made, epsilons))

    def lower_bounds(self, row: ComparisonRow, epsilons: Sequence[float]) -> dict[float, float]:
        """Return at several ε what no Laplace noise is below, where that is known: sought from the noise of a row."""
        made = self.calibration(row)
        at = {e: replace(made, epsilon=e, unit_scale=made.unit_scale * made.epsilon / e) for e in epsilons}
        return {e: bound for e, noise in at.items() if (bound := noise.lower_bound)}

    def _followed(self, made: Calibration, epsilons: Sequence[float]) -> list[list[ComparisonRow]]:
        points, curves = epsilons or points_around(made.epsilon), list[list[ComparisonRow]]()
        few = epsilons or points[::FEW]
        laws = [(i, kind) for i, kind in enumerate(self._kinds) if issubclass(kind, LawMechanism)]
        for _, kind in laws:  # all are made first: the others hear the laws that the last one goes through
            with suppress(NotApplicableError):
                self._mechanism(kind)
        for i, kind in reversed(laws):
            if kind.name != made.mechanism:
                with self._working(i, f"at {len(few)} ε"):
                    self._law_scales(kind, few)
        for i, kind in enumerate(self._kinds):
            made_it = kind.name == made.mechanism
            if not made_it or made.strategy is not None:
                with self._working(i, f"at {len(few)} ε"):
                    curves.append(self._curve(kind, few, self._start(kind, made.epsilon, points), made.linear.unit))
            if made_it:
                own = self._mechanism(kind)
                takes_long = isinstance(own, LawMechanism) and own.seconds(self._query) > _LONG
                closely = few if takes_long else points
                with self._working(i, f"at {len(closely)} ε"):
                    curves.append(self._curve(kind, closely, made, made.linear.unit))
        return [curve for curve in curves if any(row.scale is not None for row in curve)]

    def _start(self, kind: type[Mechanism], epsilon: float, points: Sequence[float]) -> Calibration | None:
        """Return a calibration from which others are sought: at ε, or where there is none, as far away as is shown."""
        if issubclass(kind, LawMechanism):
            return None
        for e in (epsilon, points[0], points[-1]):
            try:
                return self._calibration(kind, "equal", epsilon=e)[0]
            except NotApplicableError:
                continue
        return None

    def _curve(
        self, kind: type[Mechanism], epsilons: Sequence[float], made: Calibration | None, unit: Fraction
    ) -> list[ComparisonRow]:
        """Return the noise of a mechanism at several ε, in the shape of a calibration."""
        if issubclass(kind, LawMechanism):
            scales = self._law_scales(kind, epsilons)
            if made is not None:
                scales = _as_released(made, epsilons, scales)
        else:
            scales = [None] * len(epsilons) if made is None else _proved(self._mechanism(kind), made, epsilons)
        strategy = None if made is None else made.strategy
        largest = 1.0 if strategy is None else float(max(strategy.scales(1.0)))
        rows: list[ComparisonRow] = []
        for epsilon, scale in zip(epsilons, scales, strict=True):
            known = scale is not None
            row = ComparisonRow(
                mechanism=kind.name,
                title=kind.title,
                noise="equal" if strategy is None else "best",
                composes=kind.composes,
                epsilon=epsilon,
                scale=scale * largest * float(unit) if known else None,
                accuracy=nearest(_units(scale, strategy) * unit) if known else None,
            )
            rows.append(row)
        return rows

    def _law_scales(self, kind: type[LawMechanism], epsilons: Sequence[float]) -> list[float | None]:
        """Return scales at several ε, of which those that were asked before are not computed again."""
        if new := [e for e in epsilons if (kind.name, e) not in self._scales]:
            try:
                mechanism = self._mechanism(kind)
                assert isinstance(mechanism, LawMechanism)
                scales = mechanism.scales(self._query, new)
            except NotApplicableError:
                scales = [None] * len(new)
            self._scales |= {(kind.name, e): scale for e, scale in zip(new, scales, strict=True)}
        return [self._scales[kind.name, e] for e in epsilons]

    @contextmanager
    def _working(self, place: int, on_what: str) -> Generator[None]:
        """Name the mechanism that is at work, also while it tells of the parts of its work."""
        title = f"{self._kinds[place].title} {on_what}"
        report_progress(title, place / len(self._kinds))
        with part_of(title):
            yield

    def _all_rows(self, on_what: str, **asked: Any) -> list[ComparisonRow]:
        """Return the rows of all mechanisms, in every shape of noise that each is asked for."""
        rows = [*self._left_out]
        for i, kind in enumerate(self._kinds):
            shapes: tuple[Shape, ...] = ("equal", "best") if self._shapes and kind.composes else ("equal",)
            with self._working(i, on_what):
                for noise in shapes:
                    rows += self._rows(kind, noise, **asked)
        return rows

    def _rows(self, kind: type[Mechanism], noise: Shape, **asked: Any) -> list[ComparisonRow]:
        """Return the row of a mechanism's noise, or why it does not apply; none of a shape that is no better."""
        try:
            calibration, seconds = self._calibration(kind, noise, **asked)
        except NotApplicableError as error:  # of the best shape the row of one scale says why, or stands alone
            return [_refused(kind, error.reason)] if noise == "equal" else []
        if noise == "best" and calibration.strategy is None:
            return []
        return [replace(row_of(calibration, seconds, self._member(calibration.witness.theta)), noise=noise)]

    def _calibration(self, kind: type[Mechanism], noise: Shape, **asked: Any) -> tuple[Calibration, float]:
        """Return a calibration and the seconds that it took; one that was made before is not made again."""
        known = None if "epsilon" not in asked else self._known.get((kind.name, noise, asked["epsilon"]))
        if known is None:
            start = time.perf_counter()
            calibration = self._mechanism(kind).calibrate(self._query, noise=noise, **asked)
            known = calibration, time.perf_counter() - start
            self._known[kind.name, noise, calibration.epsilon] = known
        return known

    def _member(self, theta: int) -> str | None:
        """Return what a member of Θ is called, where there are several."""
        if len(self.theta.members) < 2:
            return None
        names = self.theta.names
        return f"theta[{theta}]" + (f" ({names[theta]})" if names else "")

    def _mechanism(self, kind: type[Mechanism]) -> Mechanism:
        if kind.name not in self._made:
            try:
                made = kind.of(self._given, self._length, **_settings(kind, self._secrets))
                if self._protection is not None:
                    made = made.protecting(self._protection)
                if isinstance(made, LawMechanism):
                    if not self._patient and (seconds := made.seconds(self._query)) > _PATIENCE:
                        minutes = counted(math.ceil(seconds / 60), "minute")
                        asked = f'--mechanisms {made.name} asks it (in Python mechanisms=["{made.name}"])'
                        raise NotApplicableError(f"{NOT_ASKED}as it takes about {minutes}; {asked}", made.title)
                    for earlier in self._made.values():
                        if isinstance(earlier, LawMechanism):
                            made.share_laws(earlier)
                self._made[kind.name] = made
            except NotApplicableError as error:
                self._made[kind.name] = error
        mechanism = self._made[kind.name]
        if isinstance(mechanism, NotApplicableError):
            raise mechanism
        return mechanism


def compare(
    theta: Any,
    query: Query,
    epsilon: float | None = None,
    length: Any = None,
    *,
    accuracy: float | None = None,
    alpha: float | None = None,
    secrets: Any = None,
    noise: Literal["equal", "best"] = "equal",
    mechanisms: Sequence[str] | None = None,
    protect: Any = None,
    within: Any = None,
) -> Comparison:
    """Noise of every mechanism for one query. Reads no data, spends nothing.

    Parameters
    ----------
    theta : model, sequence of models, or class
        The class Θ.
    query, epsilon
        What shall be asked, and the privacy parameter, positive and finite.
    length : int, ChainLength, or sequence of these, optional
        T, or the lengths of the data set's independent chains; for networks the number of rows of their table; other
        models know theirs.
    accuracy, alpha : float, optional
        Instead of ε the error that is allowed, in the query's units, and the probability of a larger one (0.05): the
        comparison then shows which ε each mechanism needs for it.
    secrets : sequence, optional
        For networks: names of the nodes that are secret, or pairs of RecordIs of one node. By default any two values of
        any record. Mechanisms that cannot tell secrets apart keep all of them.
    noise : {"equal", "best"}, default "equal"
        With "best" a second row for each mechanism that composes, with the noise of the best shape found, where that
        errs less; rows are then in the order of their expected error.
    mechanisms : sequence of str, optional
        Names of the mechanisms to ask, such as "propagation"; by default all but "exact-laplace" and "wasserstein"
        where these would take minutes, as they do on long chains and on many of them.
    protect, within : optional
        What shall be hidden in place of one record, as :meth:`Mechanism.calibrate` takes it; mechanisms that prove what
        is told of one record alone do not apply.

    Returns
    -------
    Comparison
        One row per mechanism; those that apply come first, by their noise. Errors are those of the mechanisms, and a
        ``QueryError`` for a query that takes different columns of a network for one.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> rows = compare(chain, pf.Count(1), 1.0, length=100)
    >>> {row.mechanism: round(row.scale, 1) for row in rows if row.scale}  # doctest: +NORMALIZE_WHITESPACE
    {'exact-laplace': 3.3, 'propagation': 3.3, 'wasserstein': 4.0, 'mqm-exact': 12.8, 'mqm-approx': 23.5,
     'group-dp': 100.0}
    >>> next(row.title for row in rows if row.recommended)
    'LeakagePropagation'
    """
    if accuracy is not None and epsilon is not None:
        raise ParameterError("epsilon and accuracy both determine the noise: give one of them")
    if accuracy is None and alpha is not None:
        raise ParameterError("alpha only works with accuracy")
    kinds = None if mechanisms is None else mechanisms_named(mechanisms)
    contest = Contest(theta, query, length, secrets=secrets, noise=noise, kinds=kinds, protect=protect, within=within)
    if accuracy is not None:
        return contest.at_accuracy(accuracy, alpha)
    if epsilon is None:
        raise ParameterError("epsilon is missing. Example: compare(theta, query, epsilon=1.0, length=data.length)")
    return contest.at(epsilon)


def _units(unit_scale: float, strategy: Strategy | None) -> int:
    """Return the error that an output exceeds with a probability of at most 5%, in units of the query."""
    return laplace.accuracy(unit_scale, 0.05) if strategy is None else strategy.error(unit_scale, 0.05)


def _proved(bound: object, made: Calibration, epsilons: Sequence[float]) -> list[float | None]:
    assert isinstance(bound, InfluenceBound)
    return bound.scales_around(made, epsilons)


def _as_released(made: Calibration, epsilons: Sequence[float], scales: Sequence[float | None]) -> list[float | None]:
    """Return scales at several ε, that of a calibration at its own."""
    return [made.unit_scale if e == made.epsilon else b for e, b in zip(epsilons, scales, strict=True)]


def noise_at_each(made: Calibration, epsilons: Sequence[float]) -> list[int | None]:
    """Return what noise of an output exceeds with a probability of at most 5%, in units of the query, at several ε.

    It is noise of a calibration's mechanism and shape; None where none is known.
    """
    if isinstance(made.bound, LawMechanism):
        scales = _as_released(made, epsilons, made.bound.scales(made.query, epsilons))
    else:
        scales = _proved(made.bound, made, epsilons)
    return [None if scale is None else _units(scale, made.strategy) for scale in scales]


def row_of(calibration: Calibration, seconds: float = 0.0, decided_by: str | None = None) -> ComparisonRow:
    """Return the row of one calibration in a comparison."""
    return ComparisonRow(
        mechanism=calibration.mechanism,
        title=calibration.title,
        epsilon=calibration.epsilon,
        scale=calibration.scale,
        noise_multiplier=calibration.noise_multiplier,
        accuracy=calibration.accuracy(0.05),
        expected_l1_error=calibration.expected_l1_error,
        seconds=seconds,
        composes=calibration.composes,
        decided_by=decided_by,
    )


def _refused(kind: type[Mechanism], reason: str) -> ComparisonRow:
    """Return the row of a mechanism that does not apply."""
    return ComparisonRow(mechanism=kind.name, title=kind.title, composes=kind.composes, reason=reason)


def one_query_rows(unit: Literal["group", "subject"]) -> list[ComparisonRow]:
    """Return the rows of the mechanisms that are left out where each group or each subject has values of its own.

    Examples
    --------
    >>> [row.title for row in one_query_rows("group")]
    ['Wasserstein', 'ExactLaplace']
    """
    return [_refused(kind, ONE_QUERY.format(unit)) for kind in MECHANISMS if not kind.composes]


def _in_order(
    rows: list[ComparisonRow], lower: float | None, cost: Callable[[ComparisonRow], float]
) -> tuple[ComparisonRow, ...]:
    """Return rows that apply by their cost, the best that composes and the least of all marked, then the others."""
    fit = sorted((row for row in rows if row.reason is None), key=cost)
    order = ["", *(mechanism.name for mechanism in MECHANISMS)]  # of equal noise the last one, which covers most

    def best_of(candidates: Sequence[ComparisonRow]) -> ComparisonRow | None:
        most = _AS_LITTLE * cost(candidates[0]) if candidates else 0.0
        equal = [row for row in candidates if cost(row) <= most]
        return max(equal, key=lambda row: order.index(row.mechanism if row.mechanism in order else ""), default=None)

    best = best_of([row for row in fit if row.composes]) or best_of(fit)
    least = best if best is not None and cost(best) <= _AS_LITTLE * cost(fit[0]) else best_of(fit)
    marked = (replace(row, recommended=row is best, least=row is least) for row in fit)
    ordered = [replace(row, lower_bound=lower if row.noise == "equal" else None) for row in marked]
    return (*ordered, *(row for row in rows if row.reason is not None))


def mechanisms_named(names: Sequence[str]) -> tuple[type[Mechanism], ...]:
    """Return the mechanisms of some names, those of the command line or those that tables show, in their usual order.

    Raises
    ------
    ParameterError
        If there is no such mechanism, one is named twice, or none is named.
    """
    known, named = [kind.name for kind in MECHANISMS], {kind.title: kind.name for kind in MECHANISMS}
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise ParameterError(f'mechanisms is {names!r}, expected a list of names, such as ["propagation", "mqm-exact"]')
    names = [named.get(name, name) if isinstance(name, str) else name for name in names]
    for i, name in enumerate(names):
        if name not in known:
            hint = did_you_mean(name, known) if isinstance(name, str) else ""
            raise ParameterError(f"there is no mechanism {name!r}.{hint} Mechanisms: {', '.join(known)}")
        if name in names[:i]:
            raise ParameterError(f"mechanism {name!r} is named twice: name it once")
    return tuple(kind for kind in MECHANISMS if kind.name in names)


def _settings(mechanism: type[Mechanism], secrets: NodeSecrets | None) -> dict[str, Any]:
    """Return how a mechanism is told of secrets; those that cannot be told keep all of them."""
    if secrets is None:
        return {}
    if issubclass(mechanism, LawMechanism):
        return {"secrets": secrets.pairs}
    return {"secrets": secrets.plain} if issubclass(mechanism, MarkovQuilt | LeakagePropagation) else {}
