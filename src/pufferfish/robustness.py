r"""Robustness: how much more leaks to an adversary whose belief is outside of Θ (Theorem 2.4).

A mechanism that is ε-Pufferfish private for Θ leaks at most ε + 2Δ to somebody who believes θ̃, where

.. math:: \Delta = \inf_{\theta\in\Theta} \max_{s} \max\big(D_\infty(\tilde\theta_{|s} \| \theta_{|s}),\,
          D_\infty(\theta_{|s} \| \tilde\theta_{|s})\big)

and :math:`D_\infty` is the max-divergence of the laws of the **whole database** given the secret s. Given s, an output
is at most :math:`e^\Delta` times more or less likely under θ̃ than under the nearest θ (both are mixtures of the same
conditional laws given the database); the two secrets of a pair give 2Δ, Θ the rest (Appendix A of the paper).

How the maximum over databases is taken depends on the model:

*   Markov chains: the largest ratio along a path, :mod:`pufferfish.core.path_ratio`. Independent chains add up.
*   Joint distributions: every database in turn, in exact fractions.
*   Cliques: a database of a clique has probability P(N = j) / C(n, j), so ratios are those of P(N = j); exact.

Everything is rounded up. See docs/robustness.md for what an infinite Δ means, and for why Δ is for short series.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pufferfish.core.markov import stationary_log_error
from pufferfish.core.path_ratio import PathRatio, path_ratios
from pufferfish.core.rounding import float_up, log_up, up
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.mechanisms.base import as_epsilon
from pufferfish.models.chain_class import ChainClass
from pufferfish.models.cliques import Cliques
from pufferfish.models.joint_distribution import JointDistribution
from pufferfish.models.lengths import ChainLength
from pufferfish.models.markov_chain import MarkovChain
from pufferfish.models.model_class import Member, Theta, as_theta, lengths_of
from pufferfish.models.secrets import CountIs, RecordIs, Secret

__all__ = ["Robustness", "robustness"]

Law = NDArray[np.float64]

OVER_THETA = "belief over theta"
OVER_BELIEF = "theta over belief"


class Robustness(float):
    r"""The distance Δ of Theorem 2.4 between a belief and the nearest member of Θ, in nats; made by :func:`robustness`.

    It is a number, ``inf`` where the nearest member and the belief disagree about what is possible, and knows what
    decided it.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5])
    >>> delta = pf.robustness(chain, pf.MarkovChain([[0.4, 0.6], [0.6, 0.4]], [0.5, 0.5]), length=3)
    >>> delta
    Robustness(0.446287, theta=0, belief=None, secret='record 0 is 0', direction='theta over belief')
    >>> f"{delta.effective_epsilon(1.0):.6f}"
    '1.892574'
    """

    __slots__ = ("_belief", "_direction", "_secret", "_theta")

    def __new__(
        cls,
        value: float,
        theta: int = 0,
        belief: int | None = None,
        secret: str | None = None,
        direction: str | None = None,
    ) -> Self:
        """Return a distance with what decided it."""
        self = super().__new__(cls, value)
        self._theta, self._belief, self._secret, self._direction = theta, belief, secret, direction
        return self

    def __repr__(self) -> str:
        return (
            f"Robustness({float(self):.6g}, theta={self.theta}, belief={self.belief}, secret={self.secret!r}, "
            f"direction={self.direction!r})"
        )

    @property
    def theta(self) -> int:
        """Number of the closest member of Θ (0-based); the first, where Δ is infinite for all."""
        return self._theta

    @property
    def belief(self) -> int | None:
        """Number of the worst belief, where several were given."""
        return self._belief

    @property
    def secret(self) -> str | None:
        """The deciding secret in words; None where the laws are the same, or no single secret decides."""
        return self._secret

    @property
    def direction(self) -> str | None:
        """Which of the two divergences decides: "belief over theta" or "theta over belief"; None as for the secret."""
        return self._direction

    @property
    def reason(self) -> str | None:
        """Why Δ is infinite, in words; None where it is finite."""
        if self < math.inf:
            return None
        if self.secret is None:
            return "the belief leaves the law of the first record open, and that member of Θ does not"
        holds, lacks = ("the belief", "Θ") if self.direction == OVER_THETA else ("Θ", "the belief")
        return f"given that {self.secret}, {holds} takes something to be possible that {lacks} takes to be impossible"

    def effective_epsilon(self, epsilon: float) -> float:
        """Return ε + 2Δ, rounded up: what a mechanism that is ε-private for Θ leaks to this belief at most.

        Raises
        ------
        ParameterError
            If epsilon is not a positive finite number.
        """
        given = as_epsilon(epsilon)
        return math.inf if self == math.inf else float_up(Fraction(given) + 2 * Fraction(float(self)))


@dataclass(frozen=True, slots=True)
class _Distance:
    """The largest divergence between one belief and one member of Θ, and what decides it."""

    value: float
    secret: str | None = None
    direction: str | None = None


_SAME = _Distance(0.0)


def robustness(theta: Any, belief: Any, length: Any = None, *, secrets: Any = None) -> Robustness:
    r"""Distance Δ between a belief and a class Θ: what is ε-private for Θ leaks at most ε + 2Δ to that belief.

    Parameters
    ----------
    theta : MarkovChain, JointDistribution, Cliques, a list of one of these, ChainClass or ModelClass
        The class Θ that noise is calibrated for. Of a chain with initial law ``"any"`` the member with the belief's own
        initial law is taken: Δ is at most that.
    belief : the same
        What an adversary believes; of several the worst counts. With initial law ``"any"`` every initial law is a
        belief: a Θ with ``"any"`` too takes the same one (the result is the supremum over them); against all others Δ
        is infinite, since a point mass is a belief as well.
    length : int, ChainLength, or sequence of these
        For chains: T, or the lengths of the independent chains. Unobserved records of a chain count, and they may be
        secrets.
    secrets : iterable of Secret or of pairs of them, optional
        What shall not be told apart; by default every single record having every single value it can have. Chains take
        :class:`~pufferfish.models.secrets.RecordIs` alone, cliques no ``Fact``. A secret that is impossible
        under both is passed over; under one of them alone, it makes Δ infinite.

    Returns
    -------
    Robustness
        Δ in nats, rounded up, with what decided it.

    Raises
    ------
    ModelError
        If belief and Θ are of different kinds, or about other states or records.
    ParameterError
        If length or secrets do not fit, or no secret is possible.
    NotApplicableError
        If the kind of model, or of secret for it, is not covered.

    References
    ----------
    Song, Wang, Chaudhuri (2017), Theorem 2.4.

    Examples
    --------
    The paper's example, with and without a secret that rules out the third database:

    >>> from pufferfish.models.joint_distribution import JointDistribution
    >>> from pufferfish.models.secrets import Fact
    >>> databases = [["D1"], ["D2"], ["D3"]]
    >>> theta, belief = (JointDistribution(databases, p) for p in ([0.9, 0.05, 0.05], [0.01, 0.95, 0.04]))
    >>> for fact in (Fact("always", lambda row: True), Fact("not D3", lambda row: row[0] != "D3")):
    ...     print(round(math.exp(robustness(theta, belief, secrets=[fact])), 3))
    90.0
    90.947
    """
    class_, beliefs = as_theta(theta), as_theta(belief)
    _check_comparable(class_, beliefs)
    wanted = _as_secrets(secrets)
    if isinstance(class_, ChainClass):
        lengths = lengths_of(class_, length)
        asked = None if wanted is None else [_chain_secret(s, lengths, class_.states) for s in wanted]

        def distance(member: Any, believed: Any) -> _Distance | None:
            return _between_chains(member, believed, lengths, asked)
    else:
        lengths_of(class_, length)
        between = _between_joints if isinstance(class_.members[0], JointDistribution) else _between_cliques

        def distance(member: Any, believed: Any) -> _Distance | None:
            return between(member, believed, wanted)

    several = not isinstance(belief, MarkovChain | Member)
    return _worst_of_nearest(_members(class_), _members(beliefs), distance, several)


def _worst_of_nearest(
    members: Sequence[Any],
    beliefs: Sequence[Any],
    distance: Callable[[Any, Any], _Distance | None],
    several: bool,
) -> Robustness:
    worst: Robustness | None = None
    for b, believed in enumerate(beliefs):
        nearest: Robustness | None = None
        possible = False
        for m, member in enumerate(members):
            found = distance(member, believed)
            possible = possible or found is not None
            found = found or _SAME
            if nearest is None or found.value < nearest:
                nearest = Robustness(found.value, m, b if several else None, found.secret, found.direction)
            if possible and nearest == 0:
                break
        if nearest is None or not possible:
            raise ParameterError("none of the secrets is possible, under Θ or the belief: there is nothing to compare")
        worst = nearest if worst is None or nearest > worst else worst
    assert worst is not None
    return worst


def _members(class_: Theta) -> Sequence[Any]:
    return class_.chains if isinstance(class_, ChainClass) else class_.members


def _check_comparable(class_: Theta, beliefs: Theta) -> None:
    one, other = _members(class_)[0], _members(beliefs)[0]
    if type(one) is not type(other):
        raise ModelError(
            f"theta is {type(one).__name__} and belief {type(other).__name__}: give the same kind of model for both"
        )
    if not isinstance(one, MarkovChain | JointDistribution | Cliques):
        raise NotApplicableError(
            f"robustness is not computed for {type(one).__name__}: expected MarkovChain, JointDistribution or Cliques"
        )
    for name, given in (("theta", class_), ("belief", beliefs)):
        if given.stands_for_more:
            raise NotApplicableError(
                f"{name} is not a list of models but {getattr(given, 'origin', 'a class')}: give the models themselves"
            )
    for i, believed in enumerate(_members(beliefs)):
        unordered = isinstance(one, JointDistribution)
        if (sorted(one.states) != sorted(believed.states)) if unordered else (one.states != believed.states):
            raise ModelError(
                f"theta has states {', '.join(one.states[:20])} and belief[{i}] has {', '.join(believed.states[:20])}: "
                f"both need the same{'' if unordered else ', in the same order'}; give states= to both"
            )
        if isinstance(one, JointDistribution) and one.variables != believed.variables:
            raise ModelError(
                f"theta is about the records {', '.join(str(v) for v in one.variables[:20])} and belief[{i}] about "
                f"{', '.join(str(v) for v in believed.variables[:20])}: both need the same, in the same order"
            )
        if isinstance(one, Cliques) and one.groups != believed.groups:
            raise ModelError(
                f"theta has cliques of {', '.join(str(n) for n in one.groups[:20])} people and belief[{i}] of "
                f"{', '.join(str(n) for n in believed.groups[:20])}: both are about the same people"
            )


def _as_secrets(secrets: Any) -> tuple[Secret, ...] | None:
    """Return single secrets from secrets, or pairs of them."""
    if secrets is None:
        return None
    given: list[Any] = list(secrets) if isinstance(secrets, Iterable) else [secrets]  # pyright: ignore[reportUnknownArgumentType]
    found: list[Secret] = []
    for i, entry in enumerate(given):
        parts: list[Any] = list(entry) if isinstance(entry, tuple | list) else [entry]  # pyright: ignore[reportUnknownArgumentType]
        for part in parts:
            if not isinstance(part, Secret):
                raise ParameterError(
                    f"secrets[{i}] is {part!r}, expected a secret such as RecordIs(0, 'flu'), or a pair of them"
                )
            if part not in found:
                found.append(part)
    if not found:
        raise ParameterError("secrets is empty: give at least one, or leave it out for every value of every record")
    return tuple(found)


# --- Markov chains ---


@dataclass(frozen=True, slots=True)
class _ChainSecret:
    chain: int
    step: int
    states: tuple[int, ...]
    words: str


def _chain_secret(secret: Secret, lengths: Sequence[ChainLength], states: Sequence[str]) -> _ChainSecret:
    if not isinstance(secret, RecordIs):
        raise NotApplicableError(
            f"secret {str(secret)!r}: for Markov chains only RecordIs is covered, one record having some states; "
            "JointDistribution takes any secret"
        )
    record: Any = secret.record
    place: Any = record if isinstance(record, tuple) else (0, record)  # pyright: ignore[reportUnknownVariableType]
    if len(lengths) > 1 and not isinstance(record, tuple):
        raise ParameterError(f"secret {str(secret)!r}: there are {len(lengths)} chains, so a record is (chain, step)")
    chain, step = _numbers(place, secret, "the step of a chain, or (chain, step)")
    if not 0 <= chain < len(lengths):
        raise ParameterError(f"secret {str(secret)!r}: there is no chain {chain}. Chains: 0 … {len(lengths) - 1}")
    if not 0 <= step < lengths[chain].steps:
        raise ParameterError(
            f"secret {str(secret)!r}: there is no record {step}. Steps of the chain: 0 … {lengths[chain].steps - 1}"
        )
    _check_states(secret, secret.states, states)
    return _ChainSecret(chain, step, tuple(states.index(s) for s in secret.states), str(secret))


def _numbers(place: Any, secret: Secret, what: str) -> tuple[int, int]:
    if (
        isinstance(place, tuple)
        and len(place) == 2  # pyright: ignore[reportUnknownArgumentType]
        and all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in place)  # pyright: ignore[reportUnknownVariableType]
    ):
        return int(place[0]), int(place[1])  # pyright: ignore[reportUnknownArgumentType]
    raise ParameterError(f"secret {str(secret)!r}: a record is {what}, in whole numbers from 0")


def _check_states(secret: Secret, named: Sequence[str], states: Sequence[str]) -> None:
    for state in named:
        if state not in states:
            raise ParameterError(
                f"secret {str(secret)!r}: there is no state {state!r}. States: {', '.join(states[:20])}"
            )


def _starts(member: MarkovChain, believed: MarkovChain) -> tuple[Law, Law] | None:
    """Return the initial laws of belief and member; None where both are open."""
    theirs, ours = _start(believed), _start(member)
    if theirs is None:
        return None
    return theirs, theirs if ours is None else ours


def _start(chain: MarkovChain) -> Law | None:
    q = chain.initial_distribution
    if not isinstance(q, str):
        return q
    return None if q == "any" else chain.stationary_distribution


def _kind(chain: MarkovChain) -> str:
    return chain.initial_distribution if isinstance(chain.initial_distribution, str) else "given"


def _same_start(member: MarkovChain, believed: MarkovChain) -> bool:
    """Whether the initial laws are exactly the same, for chains of the same matrix."""
    if _kind(member) != _kind(believed):
        return _kind(member) == "any"
    return _kind(member) != "given" or np.array_equal(member.initial_distribution, believed.initial_distribution)


def _between_chains(
    member: MarkovChain, believed: MarkovChain, lengths: Sequence[ChainLength], asked: Sequence[_ChainSecret] | None
) -> _Distance | None:
    """Return the largest divergence of all chains together: of one given the secret, of the others as they are.

    Laws of independent chains multiply, so the log ratios of their sequences add, and each maximum is taken by itself.
    """
    starts = _starts(member, believed)
    if starts is None and _start(member) is not None:
        return _Distance(math.inf)
    matrices = (believed.transition_matrix, member.transition_matrix)
    if np.array_equal(*matrices) and _same_start(member, believed):
        return _SAME
    ours = believed if _start(member) is None else member
    error = sum(stationary_log_error(c.k) for c in (ours, believed) if _kind(c) == "stationary")
    steps = [c.steps for c in lengths]
    sets = [(x,) for x in range(member.k)] if asked is None else list(dict.fromkeys(s.states for s in asked))
    worst: _Distance | None = None
    ways = path_ratios(starts, matrices, max(steps), sets, error)
    for direction, ratio in zip((OVER_THETA, OVER_BELIEF), ways, strict=True):
        others = _Others({n: ratio.whole(n) for n in set(steps)}, Counter(steps))
        for value, chain, words in _given_each(ratio, steps, sets, asked, member.states):
            if value > -math.inf:
                worst = _larger(worst, _Distance(others.plus(value, steps[chain]), words, direction))
    return worst


def _given_each(
    ratio: PathRatio,
    steps: Sequence[int],
    sets: Sequence[tuple[int, ...]],
    asked: Sequence[_ChainSecret] | None,
    states: Sequence[str],
) -> Iterable[tuple[float, int, str]]:
    """Yield bounds given a secret of a chain, the chain, and the secret in words; by default the worst per length."""
    if asked is not None:
        for secret in asked:
            bounds = ratio.given(steps[secret.chain], np.array([secret.step]), sets)
            yield float(bounds[0, sets.index(secret.states)]), secret.chain, secret.words
        return
    for length in dict.fromkeys(steps):
        value, record, x = ratio.worst_given(length, sets)
        chain = steps.index(length)
        yield value, chain, str(RecordIs(record if len(steps) == 1 else (chain, record), states[x]))


@dataclass(frozen=True, slots=True)
class _Others:
    """Divergences of independent parts (chains, cliques) of which nothing is known, by what they are alike in."""

    whole: Mapping[Any, float]
    numbers: Mapping[Any, int]

    def plus(self, value: float, own: Any) -> float:
        """Return the divergence of all parts together, when that of one part of its own kind has this value."""
        counts = {kind: number - (kind == own) for kind, number in self.numbers.items()}
        rest = [up(self.whole[kind] * count) for kind, count in counts.items() if count]
        return up(math.fsum([value, *rest])) if rest else value


def _larger(one: _Distance | None, other: _Distance) -> _Distance:
    return other if one is None or other.value > one.value else one


# --- joint distributions ---


def _between_joints(
    member: JointDistribution, believed: JointDistribution, wanted: Sequence[Secret] | None
) -> _Distance | None:
    """Return the largest divergence over the secrets, database by database."""
    ours = dict(zip(member.rows, member.probabilities, strict=True))
    theirs = dict(zip(believed.rows, believed.probabilities, strict=True))
    worst: _Distance | None = None
    for words, rows in _rows_of_each(member, believed, wanted):
        some, others = ({row: law[row] for row in rows if row in law} for law in (theirs, ours))
        for direction, one, other in ((OVER_THETA, some, others), (OVER_BELIEF, others, some)):
            if one:
                inside = sum(one.values()), sum(other.values())
                value = _log_largest([(p, other.get(row, Fraction(0))) for row, p in one.items()], inside)
                worst = _larger(worst, _Distance(value, words, direction))
    return worst


def _rows_of_each(
    member: JointDistribution, believed: JointDistribution, wanted: Sequence[Secret] | None
) -> Iterable[tuple[str, Iterable[tuple[str, ...]]]]:
    """Yield the secrets in words, with the databases possible under either law in which they hold."""
    if wanted is not None:
        for secret in wanted:
            yield str(secret), dict.fromkeys(law.rows[i] for law in (member, believed) for i in law.rows_where(secret))
        return
    possible = dict.fromkeys((*member.rows, *believed.rows))
    for column, variable in enumerate(member.variables):
        parts: dict[str, list[tuple[str, ...]]] = {}
        for row in possible:
            parts.setdefault(row[column], []).append(row)
        for state in member.states:
            if state in parts:
                yield str(RecordIs(variable, state)), parts[state]


def _log_largest(pairs: Iterable[tuple[Fraction, Fraction]], totals: tuple[Any, Any] = (1, 1)) -> float:
    """Return the largest log ratio of pairs p, q, each divided by its total, over p > 0; inf where a q is 0."""
    largest = Fraction(0)
    for p, q in pairs:
        if p and not q:
            return math.inf
        if p:
            largest = max(largest, p / q)
    return max(0.0, log_up(largest * Fraction(totals[1]) / Fraction(totals[0])))


# --- cliques ---

_Laws = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
"""Law of a clique's N under the belief, and under the member of Θ."""


def _between_cliques(member: Cliques, believed: Cliques, wanted: Sequence[Secret] | None) -> _Distance | None:
    """Return the largest divergence over the secrets.

    Given how many have it, all databases are equally likely under both laws, so the ratio for a database is that of
    the P(N = j); and those j count that the secret leaves possible.
    """
    worst: _Distance | None = None
    for way, direction in enumerate((OVER_THETA, OVER_BELIEF)):
        one, other = (believed, member) if way == 0 else (member, believed)
        found = _each_member(one, other) if wanted is None else _each_clique_secret(one, other, wanted)
        for value, words in found:
            worst = _larger(worst, _Distance(value, words, direction))
    return worst


def _each_member(one: Cliques, other: Cliques) -> Iterable[tuple[float, str]]:
    """Yield the divergences given that a member has it, or has not, and the secrets in words; alike cliques once."""
    kinds: list[_Laws] = list(zip(one.laws, other.laws, strict=True))
    whole = {laws: _log_largest(zip(*laws, strict=True)) for laws in set(kinds)}
    others = _Others(whole, Counter(kinds))
    for clique in (kinds.index(laws) for laws in dict.fromkeys(kinds)):
        for has_it, state in enumerate(one.states):
            law = one.given_member(clique, has_it)
            if any(law):
                given = _log_largest(zip(law, other.given_member(clique, has_it), strict=True))
                yield others.plus(given, kinds[clique]), str(RecordIs((clique, 0), state))


def _each_clique_secret(one: Cliques, other: Cliques, wanted: Sequence[Secret]) -> Iterable[tuple[float, str]]:
    for secret in wanted:
        known, allowed = _clique_conditions(secret, one)
        if known is None:
            continue
        laws = [
            (one.given_members(c, having, lacking), other.given_members(c, having, lacking))
            for c, (having, lacking) in enumerate(known)
        ]
        if not all(any(law) for law, _ in laws):
            continue
        if allowed is None:
            yield up(math.fsum(_log_largest(zip(*pair, strict=True)) for pair in laws)), str(secret)
            continue
        sums = _Sums.of(laws)
        inside = [t for t, mass in enumerate(sums.one) if mass and allowed(t)]
        if inside:
            totals = sum(sums.one[t] for t in inside), sum(m for t, m in enumerate(sums.other) if allowed(t))
            yield _log_largest([sums.best[t] for t in inside], totals), str(secret)


@dataclass(frozen=True, slots=True)
class _Sums:
    """How many have it in several cliques: two laws of the number, and of its databases the pair of largest ratio."""

    one: list[Fraction]
    other: list[Fraction]
    best: list[tuple[Fraction, Fraction]]

    @classmethod
    def of(cls, laws: Sequence[_Laws]) -> "_Sums":
        """Add up independent cliques, one after another, exactly."""
        nothing = (Fraction(0), Fraction(1))
        one, other, best = [Fraction(1)], [Fraction(1)], [(Fraction(1), Fraction(1))]
        for law, against in laws:
            size = len(one) + len(law) - 1
            ones, others, bests = [Fraction(0)] * size, [Fraction(0)] * size, [nothing] * size
            for t, j in itertools.product(range(len(one)), range(len(law))):
                ones[t + j] += one[t] * law[j]
                others[t + j] += other[t] * against[j]
                pair = best[t][0] * law[j], best[t][1] * against[j]
                if pair[0] * bests[t + j][1] > bests[t + j][0] * pair[1]:
                    bests[t + j] = pair
            one, other, best = ones, others, bests
        return cls(one, other, best)


def _clique_conditions(
    secret: Secret, cliques: Cliques
) -> tuple[list[tuple[int, int]] | None, Callable[[int], bool] | None]:
    """Return how many members of each clique a secret says to have it and to lack it, and which totals it allows.

    None for the first where it contradicts itself.
    """
    said: dict[tuple[int, int], set[str]] = {}
    counts: list[CountIs] = []
    for condition in secret.conditions:
        if not isinstance(condition, RecordIs | CountIs):
            raise NotApplicableError(
                f"secret {str(secret)!r}: cliques do not list their databases, so a Fact cannot be looked up; use "
                "RecordIs and CountIs, or a JointDistribution"
            )
        _check_states(secret, condition.states, cliques.states)
        if isinstance(condition, CountIs):
            counts.append(condition)
            continue
        place: Any = condition.record
        if len(cliques.groups) == 1 and not isinstance(place, tuple):
            place = (0, place)
        clique, person = _numbers(place, secret, "(clique, member)")
        if not (0 <= clique < len(cliques.groups) and 0 <= person < cliques.groups[clique]):
            raise ParameterError(f"secret {str(secret)!r}: there is no member {person} of a clique {clique}")
        allowed = set(condition.states)
        said[clique, person] = said.get((clique, person), set(cliques.states)) & allowed
    lacks, has = cliques.states
    known = [
        (
            sum(c == clique and left == {has} for (c, _), left in said.items()),
            sum(c == clique and left == {lacks} for (c, _), left in said.items()),
        )
        for clique in range(len(cliques.groups))
    ]
    everybody = sum(cliques.groups)

    def fits(having: int) -> bool:
        number = {has: having, lacks: everybody - having}
        return all(condition.allows(sum(number[s] for s in condition.states)) for condition in counts)

    return known if all(said.values()) else None, fits if counts else None
