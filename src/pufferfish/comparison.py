"""The noise of every mechanism, before anything is spent."""

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from pufferfish.calibration import Calibration
from pufferfish.calls import called_as
from pufferfish.comparison_row import NOT_ASKED, ONE_QUERY, ComparisonRow, NoiseCurve
from pufferfish.comparison_table import Comparison
from pufferfish.core.numbers import discrete_laplace
from pufferfish.core.numbers.kept import Kept
from pufferfish.core.numbers.progress import part_of, report_progress
from pufferfish.core.numbers.rounding import nearest
from pufferfish.digits import at_most
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.given import one_of
from pufferfish.hints import did_you_mean
from pufferfish.mechanisms import MECHANISMS, LawMechanism, LeakagePropagation, MarkovQuilt, Mechanism
from pufferfish.mechanisms.composing.node_secrets import NodeSecrets
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.queries import Query, measure_of, refuse_pooling
from pufferfish.shown import counted
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.model_class import Described, Theta, as_theta, lengths_of

__all__ = [
    "COMPOSING",
    "Comparison",
    "ComparisonRow",
    "Contest",
    "compare",
    "mechanisms_named",
    "one_query_rows",
    "row_of",
]

COMPOSING = tuple(kind for kind in MECHANISMS if kind.composes)
"""The mechanisms for values of each group or of each subject: the others are for one query of all records."""

_PATIENCE = 20.0
"""Seconds up to which a mechanism is asked that nobody named."""

_AS_LITTLE = 1.001
"""Noise within this factor of the least counts as equal when one mechanism is recommended."""


class Contest:
    """The mechanisms for one query under Θ, made once and asked at any ε: what they computed is used again.

    Parameters
    ----------
    theta, query, length, secrets, noise
        As for :func:`compare`.
    kinds : tuple of Mechanism classes, optional
        Those that are asked, however long it takes; by default all that are thought to take less than half a minute.
    own : Mechanism, optional
        A mechanism that is made already, such as that of a release: it is asked with its own settings, and stands
        beside the others also where none of its kind does.
    left_out : sequence of ComparisonRow, optional
        Rows of mechanisms that are not asked, with the reason.
    """

    def __init__(
        self,
        theta: Any,
        query: Query,
        length: Any = None,
        *,
        secrets: Any = None,
        noise: Any = "equal",
        kinds: tuple[type[Mechanism], ...] | None = None,
        own: Mechanism | None = None,
        left_out: Sequence[ComparisonRow] = (),
    ) -> None:
        if not one_of(noise, ("equal", "best")):
            raise ParameterError(f'noise is {noise!r}, expected "equal" or "best" (which shows both)')
        self._shapes, self._left_out = noise == "best", left_out
        self._theta, self._query, self._length = as_theta(theta), query, length
        self._given = theta if isinstance(theta, Described) else self._theta
        lengths_of(self._theta, length)
        networks = self._theta.networks
        if secrets is not None and not networks:
            raise ParameterError(f"secrets name nodes of a network, and Θ is a class of {self._theta.kind}")
        if networks and isinstance(query, Query):
            refuse_pooling(query, networks[0].node_states)
        self._secrets = None if secrets is None else NodeSecrets(secrets, networks[0])
        self._made: dict[str, Mechanism | NotApplicableError] = {} if own is None else {own.name: own}
        self._patient, kinds = kinds is not None, MECHANISMS if kinds is None else kinds
        listed = own is None or own.name in {kind.name for kind in kinds}
        self._kinds: tuple[type[Mechanism], ...] = kinds if own is None or listed else (*kinds, type(own))
        self._scales: dict[tuple[str, float], float | None] = {}
        self._curves: Kept[list[NoiseCurve]] = Kept(4)

    @property
    def theta(self) -> Theta:
        """The class Θ."""
        return self._theta

    def at(self, epsilon: float) -> Comparison:
        """Return the noise of every mechanism at one ε."""
        return self._at(as_epsilon(epsilon), {})

    def at_accuracy(self, accuracy: float, alpha: float | None = None) -> Comparison:
        """Return the least ε with which each mechanism is as accurate as asked."""
        rows: list[ComparisonRow] = []
        for i, kind in enumerate(self._kinds):
            with self._working(i, f"for an accuracy of {accuracy:g}"):
                rows.append(
                    self._tried(kind, lambda found: found.calibrate(self._query, accuracy=accuracy, alpha=alpha))[0]
                )
                rows.extend(self._best(kind, accuracy=accuracy, alpha=alpha))
        share = 1 - (0.05 if alpha is None else alpha)
        title = f"{self._query.kind} within {accuracy:g} with {share:.6g} probability; Θ: {self._theta.origin}"
        ordered = _in_order([*rows, *self._left_out], None, lambda row: row.epsilon or 0.0)
        return Comparison(ordered, title, measure_of(self._query.kind), by_epsilon=True, contest=self)

    def rows_at(self, epsilon: float) -> Sequence[ComparisonRow]:
        """Return the noise of every mechanism at one ε."""
        return self.at(epsilon).rows

    def calibration(self, row: ComparisonRow) -> Calibration:
        """Return the calibration of a row."""
        kind = next(kind for kind in self._kinds if kind.name == row.mechanism)
        return self._mechanism(kind).calibrate(self._query, row.epsilon, noise=row.noise)

    def at_each(self, epsilons: Sequence[float]) -> dict[float, Comparison]:
        """Return the noise at several ε for a picture: laws of the query are computed once, and without the proofs."""
        scales: dict[str, list[float | None]] = {}
        for i, kind in enumerate(self._kinds):
            if issubclass(kind, LawMechanism):
                with self._working(i, f"at {len(epsilons)} ε"):
                    scales[kind.name] = self._law_scales(kind, epsilons)
        return {e: self._at(e, {name: known[i] for name, known in scales.items()}) for i, e in enumerate(epsilons)}

    def around(
        self, epsilon: float, epsilons: Sequence[float], best: str | None = None
    ) -> tuple[Comparison, list[NoiseCurve]]:
        """Return the noise at one ε, and the curves through ``epsilons``, where that is one of them.

        Laws are computed once for both, and without the proofs: a release that is reported on has its own.
        """
        curves = self.curves(epsilons, best)
        laws = [kind for kind in self._kinds if issubclass(kind, LawMechanism)]
        scales = {kind.name: self._law_scales(kind, [epsilon])[0] for kind in laws}
        return self._at(epsilon, {name: scale for name, scale in scales.items() if scale is not None}), curves

    def curves(self, epsilons: Sequence[float], best: str | None = None) -> list[NoiseCurve]:
        """Return the noise of every mechanism that applies at several ε, with the errors it makes.

        ``best`` names a mechanism whose noise of the best shape is followed too.
        """
        return self._curves.of((tuple(epsilons), best), lambda: self._followed(epsilons, best))

    def _followed(self, epsilons: Sequence[float], best: str | None) -> list[NoiseCurve]:
        found: list[NoiseCurve] = []
        for i, kind in enumerate(self._kinds):
            with self._working(i, f"at {len(epsilons)} ε"):
                found += self._curves_of(kind, epsilons, shaped=kind.name == best)
        return [curve for curve in found if any(scale is not None for scale in curve.scales)]

    def _curves_of(self, kind: type[Mechanism], epsilons: Sequence[float], *, shaped: bool) -> list[NoiseCurve]:
        if issubclass(kind, LawMechanism):
            return [_curve(kind, "equal", [self._drawn(kind, scale) for scale in self._law_scales(kind, epsilons)])]
        rows = [self._tried(kind, lambda made, e=e: made.calibrate(self._query, e))[0] for e in epsilons]
        found = [_curve(kind, "equal", rows)]
        if shaped:
            better = [[*self._shaped(kind, epsilon=e), row][0] for e, row in zip(epsilons, rows, strict=True)]
            found.append(_curve(kind, "best", better))
        return found

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

    def _at(self, epsilon: float, known: Mapping[str, float | None]) -> Comparison:
        """Return the noise of every mechanism, of some by their scales that are known."""
        rows = [*self._left_out]
        best: Calibration | None = None
        for i, mechanism in enumerate(self._kinds):
            if mechanism.name in known:
                rows.append(self._drawn(mechanism, known[mechanism.name]))
                continue
            with self._working(i, f"at ε = {at_most(epsilon)}"):
                row, found = self._tried(mechanism, lambda made: made.calibrate(self._query, epsilon))
                best = found if found is not None and (best is None or found.scale < best.scale) else best
                rows.append(row)
                rows.extend(self._best(mechanism, epsilon=epsilon))
        lower = None if best is None else best.lower_bound or None
        title = f"{self._query.kind} at ε = {at_most(epsilon)}; Θ: {self._theta.origin}"
        ordered = _in_order(rows, lower, _expected) if self._shapes else _in_order(rows, lower)
        return Comparison(ordered, title, measure_of(self._query.kind), contest=self)

    def _tried(
        self, kind: type[Mechanism], calibrated: Callable[[Mechanism], Calibration]
    ) -> tuple[ComparisonRow, Calibration | None]:
        """Return a mechanism's noise, or why it does not apply."""
        start = time.perf_counter()
        try:
            found = calibrated(self._mechanism(kind))
        except NotApplicableError as error:
            return ComparisonRow(mechanism=kind.name, title=kind.title, reason=error.reason), None
        return row_of(found, time.perf_counter() - start, self._member(found.witness.theta)), found

    def _best(self, kind: type[Mechanism], **asked: Any) -> list[ComparisonRow]:
        """Return the row of a mechanism's best noise, where that was asked for and is better than that of one scale."""
        return self._shaped(kind, **asked) if self._shapes and kind.composes else []

    def _shaped(self, kind: type[Mechanism], **asked: Any) -> list[ComparisonRow]:
        """Return the row of a mechanism's best noise, none where that is no better than noise of one scale."""
        start = time.perf_counter()
        try:
            found = self._mechanism(kind).calibrate(self._query, noise="best", **asked)
        except NotApplicableError:  # the row of one scale says why, or stands alone
            return []
        if found.strategy is None:
            return []
        return [replace(row_of(found, time.perf_counter() - start, self._member(found.witness.theta)), noise="best")]

    def _drawn(self, kind: type[Mechanism], scale: float | None) -> ComparisonRow:
        """Return a row of which only the scale is known."""
        if scale is None:
            return ComparisonRow(mechanism=kind.name, title=kind.title, reason="no noise is known")
        bound = self._mechanism(kind).bind(self._query)
        multiplier = None if bound.lipschitz is None else scale / bound.lipschitz
        return ComparisonRow(
            mechanism=kind.name,
            title=kind.title,
            scale=scale,
            noise_multiplier=multiplier,
            accuracy=nearest(discrete_laplace.accuracy(scale / float(bound.unit), 0.05) * bound.unit),
            composes=kind.composes,
        )

    def _member(self, theta: int) -> str | None:
        """Return what a member of Θ is called, where there are several."""
        if len(self._theta.members) < 2:
            return None
        names = self._theta.names if isinstance(self._theta, ChainClass) else ()
        return f"theta[{theta}]" + (f" ({names[theta]})" if names else "")

    def _mechanism(self, kind: type[Mechanism]) -> Mechanism:
        if kind.name not in self._made:
            try:
                made = kind.of(self._given, self._length, **_settings(kind, self._secrets))
                if isinstance(made, LawMechanism):
                    if not self._patient:
                        _check_patience(made, self._query)
                    for other in self._made.values():
                        if isinstance(other, LawMechanism):
                            made.share_laws(other)
                self._made[kind.name] = made
            except NotApplicableError as error:
                self._made[kind.name] = error
        found = self._made[kind.name]
        if isinstance(found, NotApplicableError):
            raise found
        return found


@called_as("compare(theta, query, epsilon=1.0, length=data.length)")
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
) -> Comparison:
    """Noise of every mechanism for one query. Reads no data, spends nothing.

    Parameters
    ----------
    theta : model, sequence of models, or class
        The class Θ.
    query : Query
        What shall be asked.
    epsilon : float, optional
        Privacy parameter, positive and finite.
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

    Returns
    -------
    Comparison
        One row per mechanism: those of the paper, propagation, and those that are for one query only. Rows that apply
        come first, by their noise.

    Raises
    ------
    ParameterError, QueryError, ModelError
        As the mechanisms themselves do; also for a query that takes different columns of a network for one.

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
        raise ParameterError("epsilon and accuracy both say how much noise there is: give one of them")
    if accuracy is None and alpha is not None:
        raise ParameterError("alpha says how often accuracy may be missed: give accuracy, or leave it out")
    kinds = None if mechanisms is None else mechanisms_named(mechanisms)
    contest = Contest(theta, query, length, secrets=secrets, noise=noise, kinds=kinds)
    if accuracy is not None:
        return contest.at_accuracy(accuracy, alpha)
    if epsilon is None:
        raise ParameterError("epsilon is missing. Example: compare(theta, query, epsilon=1.0, length=data.length)")
    return contest.at(epsilon)


def _check_patience(mechanism: LawMechanism, query: Query) -> None:
    """Refuse a mechanism that takes long, and that nobody named."""
    if (seconds := mechanism.seconds(query)) > _PATIENCE:
        minutes = counted(math.ceil(seconds / 60), "minute")
        raise NotApplicableError(
            f"{NOT_ASKED}as it takes about {minutes}; --mechanisms {mechanism.name} asks it (in Python "
            f'mechanisms=["{mechanism.name}"])',
            mechanism.title,
        )


def _curve(kind: type[Mechanism], noise: Literal["equal", "best"], rows: Sequence[ComparisonRow]) -> NoiseCurve:
    scales, errors = tuple(row.scale for row in rows), tuple(row.accuracy for row in rows)
    return NoiseCurve(mechanism=kind.name, title=kind.title, noise=noise, scales=scales, errors=errors)


def row_of(found: Calibration, seconds: float = 0.0, decided_by: str | None = None) -> ComparisonRow:
    """Return the row of one calibration in a comparison."""
    return ComparisonRow(
        mechanism=found.mechanism,
        title=found.title,
        epsilon=found.epsilon,
        scale=found.scale,
        noise_multiplier=found.noise_multiplier,
        accuracy=found.accuracy(0.05),
        expected_l1_error=found.expected_l1_error,
        seconds=seconds,
        composes=found.composes,
        decided_by=decided_by,
    )


def one_query_rows(unit: Literal["group", "subject"]) -> list[ComparisonRow]:
    """Return the rows of the mechanisms that are left out where each group or each subject has values of its own.

    Examples
    --------
    >>> [row.title for row in one_query_rows("group")]
    ['Wasserstein', 'ExactLaplace']
    """
    return [
        ComparisonRow(mechanism=kind.name, title=kind.title, composes=False, reason=ONE_QUERY.format(unit))
        for kind in MECHANISMS
        if not kind.composes
    ]


def _expected(row: ComparisonRow) -> float:
    return row.expected_l1_error or 0.0


def _in_order(
    rows: list[ComparisonRow],
    lower: float | None,
    cost: Callable[[ComparisonRow], float] = lambda row: row.scale or 0.0,
) -> tuple[ComparisonRow, ...]:
    """Return rows that apply by their noise, one of them recommended, then those that do not."""
    fit = sorted((row for row in rows if row.reason is None), key=cost)
    candidates = [row for row in fit if row.composes] or fit
    most = _AS_LITTLE * cost(candidates[0]) if candidates else 0.0
    order = ["", *(mechanism.name for mechanism in MECHANISMS)]  # of equal noise the last one, which covers most
    equal = [row for row in candidates if cost(row) <= most]
    best = max(equal, key=lambda row: order.index(row.mechanism if row.mechanism in order else ""), default=None)
    fit = [replace(row, lower_bound=lower if row.noise == "equal" else None, recommended=row is best) for row in fit]
    return (*fit, *(row for row in rows if row.reason is not None))


def mechanisms_named(names: Sequence[str]) -> tuple[type[Mechanism], ...]:
    """Return the mechanisms of some names, in their usual order.

    Raises
    ------
    ParameterError
        If there is no such mechanism, one is named twice, or none is named.
    """
    known = [kind.name for kind in MECHANISMS]
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise ParameterError(f'mechanisms is {names!r}, expected a list of names, such as ["propagation", "mqm-exact"]')
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
