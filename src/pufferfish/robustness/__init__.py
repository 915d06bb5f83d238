r"""Robustness: how much more leaks to an adversary whose belief is outside of Θ (Theorem 2.4).

A mechanism that is ε-Pufferfish private for Θ leaks at most ε + 2Δ to somebody who believes θ̃, where

.. math:: \Delta = \inf_{\theta\in\Theta} \max_{s} \max\big(D_\infty(\tilde\theta_{|s} \| \theta_{|s}),\,
          D_\infty(\theta_{|s} \| \tilde\theta_{|s})\big)

and :math:`D_\infty` is the max-divergence of the laws of the **whole database** given the secret s. Everything is
rounded up. Proof: ``docs/proofs/robustness.md``; what an infinite Δ means, and why Δ is for short series:
``docs/robustness.md``.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np

from pufferfish._base.checked import is_list
from pufferfish._core import Array
from pufferfish._core.chains.markov import stationary_log_error
from pufferfish._core.divergence import PathRatio, path_ratios
from pufferfish._core.numbers.rounding import float_up, log_up, up
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.mechanisms.one_query.pairs import clique_conditions, place_of
from pufferfish.theta.joint_distribution import Cliques, JointDistribution
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Member, Theta, as_theta, lengths_of
from pufferfish.theta.secrets import RecordIs, Secret, check_states

_OVER_THETA = "belief over theta"
_OVER_BELIEF = "theta over belief"


class Robustness(float):
    r"""The distance Δ of Theorem 2.4 between a belief and the nearest member of Θ, in nats; made by :func:`robustness`.

    It is a number (``inf`` if the nearest member and the belief disagree about what is possible) with its reasons.

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
    _theta: int
    _belief: int | None
    _secret: str | None
    _direction: str | None

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
            return "the belief allows every law of the first record, but that member of Θ does not"
        holds, lacks = ("the belief", "Θ") if self.direction == _OVER_THETA else ("Θ", "the belief")
        return f"given that {self.secret}, {holds} allows a database that is impossible under {lacks}"

    def effective_epsilon(self, epsilon: float) -> float:
        """Return ε + 2Δ, rounded up: what a mechanism that is ε-private for Θ leaks to this belief at most."""
        promised = as_epsilon(epsilon)
        return math.inf if self == math.inf else float_up(Fraction(promised) + 2 * Fraction(float(self)))


def robustness(theta: Any, belief: Any, length: Any = None, *, secrets: Any = None) -> Robustness:
    """Distance Δ between a belief and a class Θ: what is ε-private for Θ leaks at most ε + 2Δ to that belief.

    Parameters
    ----------
    theta : MarkovChain, JointDistribution, Cliques, a list of one of these, ChainClass or ModelClass
        The class Θ that noise is calibrated for. Of a class of chains of several kinds the Markov chains among them are
        asked, which bounds Δ from above. A chain with initial law ``"any"`` takes the belief's own initial law.
    belief : the same
        What an adversary believes; of several the worst counts. Initial law ``"any"`` stands for every initial law,
        point masses too: Δ is then infinite unless Θ has ``"any"`` as well.
    length : int, ChainLength, or sequence of these
        For chains: T, or the lengths of the independent chains. Unobserved records of a chain count.
    secrets : iterable of Secret or of pairs of them, optional
        What shall not be told apart; by default every single record having every single value it can have. Chains take
        :class:`~pufferfish.theta.secrets.RecordIs` alone, cliques no ``Fact``. A secret that is impossible under both
        is passed over; under one of them alone, it makes Δ infinite.

    Returns
    -------
    Robustness
        Δ in nats, rounded up, with what decided it (Theorem 2.4).

    Raises
    ------
    ModelError
        If belief and Θ are of different kinds, or about other states or records.
    ParameterError
        If length or secrets do not fit, or no secret is possible.
    NotApplicableError
        If the kind of model, or of secret for it, is not covered.

    Examples
    --------
    The paper's example, with and without a secret that rules out the third database:

    >>> from pufferfish.theta.joint_distribution import JointDistribution
    >>> from pufferfish.theta.secrets import Fact
    >>> databases = [["D1"], ["D2"], ["D3"]]
    >>> theta, belief = (JointDistribution(databases, p) for p in ([0.9, 0.05, 0.05], [0.01, 0.95, 0.04]))
    >>> for fact in (Fact("always", lambda row: True), Fact("not D3", lambda row: row[0] != "D3")):
    ...     print(round(math.exp(robustness(theta, belief, secrets=[fact])), 3))
    90.0
    90.947
    """
    class_, beliefs = as_theta(theta), as_theta(belief)
    for models, name in ((class_, "theta"), (beliefs, "belief")):
        if models.of_chains and not (models.chains or (models is class_ and _listed(models.members))):
            raise NotApplicableError(
                f"{name} is a class of {models.kind}, but distances are computed only between listed Markov chains: "
                "give a list of MarkovChain (one member of Θ near the belief is enough for an upper bound)"
            )
    _check_comparable(class_, beliefs)
    wanted = _as_secrets(secrets)
    lengths = lengths_of(class_, length)
    distance: Callable[[Any, Any], Robustness | None]
    if class_.of_chains:
        asked = None if wanted is None else [_chain_secret(s, lengths, class_.states) for s in wanted]
        distance = partial(_between_chains, lengths=lengths, asked=asked)
    else:
        between: Any = _between_joints if isinstance(class_.members[0], JointDistribution) else _between_cliques
        distance = partial(between, wanted=wanted)

    several = not isinstance(belief, MarkovChain | Member)
    return _worst_of_nearest(_listed(class_.members), beliefs.members, distance, several)


def _listed(members: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return the members that distances are computed of, with their numbers."""
    return [(i, m) for i, m in enumerate(members) if isinstance(m, MarkovChain | JointDistribution | Cliques)]


def _worst_of_nearest(
    members: Sequence[tuple[int, Any]],
    beliefs: Sequence[Any],
    distance: Callable[[Any, Any], Robustness | None],
    several: bool,
) -> Robustness:
    worst: Robustness | None = None
    for b, believed in enumerate(beliefs):
        nearest: Robustness | None = None
        possible = False
        for m, member in members:
            found = distance(member, believed)
            possible = possible or found is not None
            divergence = Robustness(0.0) if found is None else found
            if nearest is None or divergence < nearest:
                nearest = Robustness(divergence, m, b if several else None, divergence.secret, divergence.direction)
            if possible and nearest == 0:
                break
        if nearest is None or not possible:
            raise ParameterError("none of the secrets is possible, under Θ or the belief: there is nothing to compare")
        worst = _larger(worst, nearest)
    assert worst is not None
    return worst


def _check_comparable(class_: Theta, beliefs: Theta) -> None:
    every: Sequence[Any] = beliefs.members
    member, belief = next((m for _, m in _listed(class_.members)), class_.members[0]), every[0]
    if type(member) is not type(belief):
        raise ModelError(
            f"theta is {type(member).__name__} and belief {type(belief).__name__}: give the same kind of model for both"
        )
    if not isinstance(member, MarkovChain | JointDistribution | Cliques):
        raise NotApplicableError(
            f"robustness is not computed for {type(member).__name__}: expected MarkovChain, JointDistribution or "
            "Cliques"
        )
    for name, models in (("theta", class_), ("belief", beliefs)):
        if models.stands_for_more:
            raise NotApplicableError(
                f"{name} is not a list of models but {getattr(models, 'origin', 'a class')}: give the models themselves"
            )
    for i, believed in enumerate(every):
        alike: list[tuple[str, Any, Any, str]]
        if isinstance(member, JointDistribution):
            alike = [
                ("states", sorted(member.states), sorted(believed.states), "; give states= to both"),
                ("records", member.variables, believed.variables, ", in the same order"),
            ]
        else:
            alike = [("states", member.states, believed.states, ", in the same order; give states= to both")]
        if isinstance(member, Cliques):
            alike.append(("cliques of these sizes:", member.groups, believed.groups, ", in the same order"))
        for what, ours, theirs, rule in alike:
            if ours != theirs:
                first, second = (", ".join(str(each) for each in values[:20]) for values in (ours, theirs))
                raise ModelError(f"theta has {what} {first} and belief[{i}] has {second}: both need the same{rule}")


def _as_secrets(secrets: Any) -> tuple[Secret, ...] | None:
    """Return single secrets from secrets, or pairs of them."""
    if secrets is None:
        return None
    entries: list[Any] = list(secrets) if is_list(secrets) else [secrets]
    singles: list[Secret] = []
    for i, entry in enumerate(entries):
        parts: list[Any] = list(entry) if isinstance(entry, tuple | list) else [entry]
        for part in parts:
            if not isinstance(part, Secret):
                raise ParameterError(
                    f"secrets[{i}] is {part!r}, expected a secret such as RecordIs(0, 'flu'), or a pair of them"
                )
            if part not in singles:
                singles.append(part)
    if not singles:
        raise ParameterError("secrets is empty: give at least one, or leave it out for every value of every record")
    return tuple(singles)


# -- Divergences between one belief and one member of Θ, given a secret -----------------------------------------------


def _with_others(value: float, own: Any, whole: Mapping[Any, float], numbers: Counter[Any]) -> float:
    """Add divergences of independent parts (chains, cliques) of which nothing is known to that of a part of one kind.

    ``whole`` and ``numbers`` are those of all parts, by what they are alike in.
    """
    rest = [up(whole[kind] * count) for kind, count in (numbers - Counter([own])).items()]
    return up(math.fsum([value, *rest])) if rest else value


def _larger(first: Robustness | None, second: Robustness) -> Robustness:
    """Return the larger of two distances, the first where they are equal."""
    return second if first is None or second > first else first


def _log_largest(pairs: Iterable[tuple[Fraction, Fraction]], totals: tuple[Any, Any] = (1, 1)) -> float:
    """Return the largest log ratio of pairs p, q, each divided by its total, over p > 0; inf where a q is 0."""
    largest = Fraction(0)
    for p, q in pairs:
        if p and not q:
            return math.inf
        if p:
            largest = max(largest, p / q)
    return max(0.0, log_up(largest * Fraction(totals[1]) / Fraction(totals[0])))


# -- Markov chains --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ChainSecret:
    """One record of a chain is in one of some states."""

    chain: int
    step: int
    states: tuple[int, ...]
    words: str


def _chain_secret(secret: Secret, lengths: Sequence[ChainLength], states: Sequence[str]) -> _ChainSecret:
    """Return a secret of one record, checked; NotApplicableError if it is of another kind."""
    if not isinstance(secret, RecordIs):
        raise NotApplicableError(
            f"secret {str(secret)!r}: for Markov chains only RecordIs is covered, one record having some states; "
            "JointDistribution takes any secret"
        )
    chain, step = place_of(secret.record, [c.steps for c in lengths], secret, ("chain", "step"))
    check_states(secret, states)
    return _ChainSecret(chain, step, tuple(states.index(s) for s in secret.states), str(secret))


def _start(chain: MarkovChain) -> Array | None:
    """Return the initial law, None where it is any."""
    start = chain.initial_distribution
    if isinstance(start, str):
        return None if start == "any" else chain.stationary_distribution
    return start


def _same_start(member: MarkovChain, believed: MarkovChain) -> bool:
    """Whether the initial laws are exactly the same, for chains of the same matrix; "any" takes the belief's own."""
    ours, theirs = member.initial_distribution, believed.initial_distribution
    takes_theirs = isinstance(ours, str) and ours == "any"
    return takes_theirs or (isinstance(ours, str) == isinstance(theirs, str) and np.array_equal(ours, theirs))


def _between_chains(
    member: MarkovChain, believed: MarkovChain, lengths: Sequence[ChainLength], asked: Sequence[_ChainSecret] | None
) -> Robustness | None:
    """Return the largest divergence of all chains together: of one given the secret, of the others as they are.

    Laws of independent chains multiply, so the log ratios of their sequences add, and each maximum is taken by itself.
    """
    ours, theirs = _start(member), _start(believed)
    if theirs is None and ours is not None:
        return Robustness(math.inf)
    matrices = (believed.transition_matrix, member.transition_matrix)
    if np.array_equal(*matrices) and _same_start(member, believed):
        return Robustness(0.0)
    starts = None if theirs is None else (theirs, theirs if ours is None else ours)
    chains = (believed if ours is None else member, believed)
    error = sum(stationary_log_error(c.k) for c in chains if str(c.initial_distribution) == "stationary")
    steps = [c.steps for c in lengths]
    sets = [(x,) for x in range(member.k)] if asked is None else list(dict.fromkeys(s.states for s in asked))
    worst: Robustness | None = None
    ways = path_ratios(starts, matrices, max(steps), sets, error)
    for direction, ratio in zip((_OVER_THETA, _OVER_BELIEF), ways, strict=True):
        whole = {n: ratio.whole(n) for n in set(steps)}
        for value, chain, words in _given_each(ratio, steps, sets, asked, member.states):
            if value > -math.inf:
                together = _with_others(value, steps[chain], whole, Counter(steps))
                worst = _larger(worst, Robustness(together, secret=words, direction=direction))
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


# -- Joint distributions ---------------------------------------------------------------------------------------------


def _between_joints(
    member: JointDistribution, believed: JointDistribution, wanted: Sequence[Secret] | None
) -> Robustness | None:
    """Return the largest divergence over the secrets, database by database."""
    ours = dict(zip(member.rows, member.probabilities, strict=True))
    theirs = dict(zip(believed.rows, believed.probabilities, strict=True))
    worst: Robustness | None = None
    for words, rows in _rows_of_each(member, believed, wanted):
        some, others = ({row: law[row] for row in rows if row in law} for law in (theirs, ours))
        for direction, one, against in ((_OVER_THETA, some, others), (_OVER_BELIEF, others, some)):
            if one:
                inside = sum(one.values()), sum(against.values())
                value = _log_largest([(p, against.get(row, Fraction(0))) for row, p in one.items()], inside)
                worst = _larger(worst, Robustness(value, secret=words, direction=direction))
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


# -- Cliques ---------------------------------------------------------------------------------------------------------

_Laws = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
"""Law of a clique's N under the belief, and under the member of Θ."""


def _between_cliques(member: Cliques, believed: Cliques, wanted: Sequence[Secret] | None) -> Robustness | None:
    """Return the largest divergence over the secrets.

    Given how many have it, all databases are equally likely under both laws, so the ratio for a database is that of
    the P(N = j); and those j count that the secret leaves possible.
    """
    worst: Robustness | None = None
    for direction, one, against in ((_OVER_THETA, believed, member), (_OVER_BELIEF, member, believed)):
        divergences = _each_member(one, against) if wanted is None else _each_clique_secret(one, against, wanted)
        for value, words in divergences:
            worst = _larger(worst, Robustness(value, secret=words, direction=direction))
    return worst


def _each_member(one: Cliques, against: Cliques) -> Iterable[tuple[float, str]]:
    """Yield the divergences given that a member has it, or has not, and the secrets in words; alike cliques once."""
    kinds: list[_Laws] = list(zip(one.laws, against.laws, strict=True))
    whole = {laws: _log_largest(zip(*laws, strict=True)) for laws in set(kinds)}
    for clique in (kinds.index(laws) for laws in dict.fromkeys(kinds)):
        for has_it, state in enumerate(one.states):
            law = one.given_member(clique, has_it)
            if any(law):
                divergence = _log_largest(zip(law, against.given_member(clique, has_it), strict=True))
                yield _with_others(divergence, kinds[clique], whole, Counter(kinds)), str(RecordIs((clique, 0), state))


def _each_clique_secret(one: Cliques, against: Cliques, wanted: Sequence[Secret]) -> Iterable[tuple[float, str]]:
    for secret in wanted:
        known, allowed = clique_conditions(secret, one)
        if known is None:
            continue
        laws = [
            (one.given_members(c, having, lacking), against.given_members(c, having, lacking))
            for c, (having, lacking) in enumerate(known)
        ]
        if not all(any(law) for law, _ in laws):
            continue
        if allowed is None:
            yield up(math.fsum(_log_largest(zip(*pair, strict=True)) for pair in laws)), str(secret)
            continue
        ones, others, best = _sums(laws)
        inside = [t for t, mass in enumerate(ones) if mass and allowed(t)]
        if inside:
            totals = sum(ones[t] for t in inside), sum(mass for t, mass in enumerate(others) if allowed(t))
            yield _log_largest([best[t] for t in inside], totals), str(secret)


def _sums(laws: Sequence[_Laws]) -> tuple[list[Fraction], list[Fraction], list[tuple[Fraction, Fraction]]]:
    """Return two laws of how many have it in several cliques, and of its databases the pair of largest ratio, exactly.

    Independent cliques are added up one after another.
    """
    one, other, best = [Fraction(1)], [Fraction(1)], [(Fraction(1), Fraction(1))]
    for law, against in laws:
        size = len(one) + len(law) - 1
        ones, others = [Fraction(0)] * size, [Fraction(0)] * size
        bests = [(Fraction(0), Fraction(1))] * size
        for t, j in itertools.product(range(len(one)), range(len(law))):
            ones[t + j] += one[t] * law[j]
            others[t + j] += other[t] * against[j]
            pair = best[t][0] * law[j], best[t][1] * against[j]
            if pair[0] * bests[t + j][1] > bests[t + j][0] * pair[1]:
                bests[t + j] = pair
        one, other, best = ones, others, bests
    return one, other, best
