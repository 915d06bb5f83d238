r"""Robustness: how much more leaks to an adversary whose belief is outside of Θ (Theorem 2.4).

A mechanism that is ε-Pufferfish private for Θ leaks at most ε + 2Δ to somebody who believes θ̃, where

.. math:: \Delta = \inf_{\theta\in\Theta} \max_{s} \max\big(D_\infty(\tilde\theta_{|s} \| \theta_{|s}),\,
          D_\infty(\theta_{|s} \| \tilde\theta_{|s})\big)

and :math:`D_\infty` is the max-divergence of the laws of the **whole database** given the secret s. Everything is
rounded up. Proof: ``docs/proofs/robustness.md``; what an infinite Δ means, and why Δ is for short series:
``docs/robustness.md``.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Self

from pufferfish._base.checked import is_list
from pufferfish._core.numbers.rounding import float_up
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.robustness._laws import (
    OVER_THETA,
    SAME,
    Distance,
    between_chains,
    between_cliques,
    between_joints,
    chain_secret,
)
from pufferfish.theta.joint_distribution import Cliques, JointDistribution
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Member, Theta, as_theta, lengths_of
from pufferfish.theta.secrets import Secret

__all__ = ["Robustness", "robustness"]


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
        holds, lacks = ("the belief", "Θ") if self.direction == OVER_THETA else ("Θ", "the belief")
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
        asked, which bounds Δ from above. Of a chain with initial law ``"any"`` the member with the belief's own initial
        law is taken: Δ is at most that.
    belief : the same
        What an adversary believes; of several the worst counts. With initial law ``"any"`` every initial law is a
        belief: a Θ with ``"any"`` too takes the same one (the result is the supremum over them); against all others Δ
        is infinite, since a point mass is a belief as well.
    length : int, ChainLength, or sequence of these
        For chains: T, or the lengths of the independent chains. Unobserved records of a chain count, and they may be
        secrets.
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
    distance: Callable[[Any, Any], Distance | None]
    if class_.of_chains:
        asked = None if wanted is None else [chain_secret(s, lengths, class_.states) for s in wanted]
        distance = partial(between_chains, lengths=lengths, asked=asked)
    else:
        between: Any = between_joints if isinstance(class_.members[0], JointDistribution) else between_cliques
        distance = partial(between, wanted=wanted)

    several = not isinstance(belief, MarkovChain | Member)
    return _worst_of_nearest(_listed(class_.members), beliefs.members, distance, several)


def _listed(members: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return the members that distances are computed of, with their numbers."""
    return [(i, m) for i, m in enumerate(members) if isinstance(m, MarkovChain | JointDistribution | Cliques)]


def _worst_of_nearest(
    members: Sequence[tuple[int, Any]],
    beliefs: Sequence[Any],
    distance: Callable[[Any, Any], Distance | None],
    several: bool,
) -> Robustness:
    worst: Robustness | None = None
    for b, believed in enumerate(beliefs):
        nearest: Robustness | None = None
        possible = False
        for m, member in members:
            divergence = distance(member, believed)
            possible = possible or divergence is not None
            divergence = divergence or SAME
            if nearest is None or divergence.value < nearest:
                nearest = Robustness(
                    divergence.value, m, b if several else None, divergence.secret, divergence.direction
                )
            if possible and nearest == 0:
                break
        if nearest is None or not possible:
            raise ParameterError("none of the secrets is possible, under Θ or the belief: there is nothing to compare")
        worst = nearest if worst is None or nearest > worst else worst
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
        unordered = isinstance(member, JointDistribution)
        if (sorted(member.states) != sorted(believed.states)) if unordered else (member.states != believed.states):
            raise ModelError(
                f"theta has states {', '.join(member.states[:20])} and belief[{i}] has "
                f"{', '.join(believed.states[:20])}: both need the same{'' if unordered else ', in the same order'}; "
                "give states= to both"
            )
        if isinstance(member, JointDistribution) and member.variables != believed.variables:
            raise ModelError(
                f"theta is about the records {', '.join(str(v) for v in member.variables[:20])} and belief[{i}] about "
                f"{', '.join(str(v) for v in believed.variables[:20])}: both need the same, in the same order"
            )
        if isinstance(member, Cliques) and member.groups != believed.groups:
            raise ModelError(
                f"theta has cliques of {', '.join(str(n) for n in member.groups[:20])} people and belief[{i}] of "
                f"{', '.join(str(n) for n in believed.groups[:20])}: both must have the same people"
            )


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
