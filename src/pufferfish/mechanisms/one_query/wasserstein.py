"""The Wasserstein Mechanism (Algorithm 1) and its (ε, δ) variant: noise by how far a query's law moves.

If the law of F(X) given one secret can be carried into its law given the other by moving no mass farther than W in L1,
then Laplace noise of scale W/ε leaks at most ε (Theorem 3.2; for vectors the same proof holds in L1). W is the largest
such distance over Θ and the pairs of secrets. It is never more than the sensitivity that group differential privacy
needs (Theorem 3.3).

Where the laws of a query given the secrets are known, so is what Laplace noise of scale b leaks, and the least b that
leaks at most ε (beyond the paper). No Laplace noise of one scale that is independent of the data can do with less for
this query. Of outputs that are a constant plus v·n with a whole number n it is ‖v‖₁ times the least scale of n
(docs/proofs/laws.md).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from numbers import Rational
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pufferfish._base.checked import is_list, listed, real_that
from pufferfish._base.progress import BoundedCache
from pufferfish._core.laws import transport
from pufferfish._core.laws.law import Law, VectorLaw, laplace_loss
from pufferfish._core.laws.of_chains import LawFamily, mixture_loss, mixture_shift
from pufferfish._core.laws.transport import Shift, atoms, distance, shift, tie, unmatched
from pufferfish._core.numbers.rounding import bracket, down, float_up, least_whole, or_infinite, up
from pufferfish.errors import ModelError, NotApplicableError
from pufferfish.mechanisms.one_query.law_mechanism import Decisive, LawMechanism
from pufferfish.mechanisms.one_query.pairs import About, LawPair
from pufferfish.mechanisms.witness import CouplingWitness, LawWitness, Witness
from pufferfish.queries import LinearQuery, Query
from pufferfish.theta.joint_distribution import exact_law, exact_number

# -- ∞-Wasserstein distance of two finite laws -----------------------------------------------------------------------

_ULP = Fraction(1, 2**52)


def wasserstein_inf(x: ArrayLike, p: Sequence[Any], y: ArrayLike, q: Sequence[Any]) -> float:
    r"""∞-Wasserstein distance of two finite laws: the least distance that mass must move to turn one into the other.

    :math:`W_\infty(\mu, \nu) = \min_\gamma \max\{\|x - y\|_1 : \gamma(x, y) > 0\}` over the couplings γ of μ and ν
    (Definition 3.1), in exact arithmetic, so that a mass of 1e-300 counts as any other. Floats are taken as the
    decimals they print as. A float mass is known up to its rounding: the distance is the least of all laws whose masses
    are within n·2^-52 of the given ones, relatively, so that equal laws that were added up differently have distance 0.
    It is rounded up; shapes that do not fit, and masses that are no probabilities, are a :class:`ModelError`.

    Parameters
    ----------
    x, y : array_like, shapes (n,) or (n, m)
        Atoms of μ and of ν, as many as each has: numbers, or vectors of whole numbers. They may repeat.
    p, q : sequences of float or Fraction
        Their masses, one for each atom, which sum to 1 (tolerance 1e-9) and are divided by their sum.

    Examples
    --------
    >>> wasserstein_inf([0, 1, 2, 3], [0.2, 0.225, 0.5, 0.075], [1, 2, 3, 4], [0.075, 0.5, 0.225, 0.2])
    2.0
    >>> wasserstein_inf([0, 1], [0.1 + 0.2, 0.7], [0, 1], [0.3, 0.7])
    0.0
    >>> wasserstein_inf([[0, 3], [1, 2]], [0.5, 0.5], [[1, 2], [2, 1]], [0.5, 0.5])
    2.0
    """
    atoms = "numbers, or vectors of whole numbers"
    rows_x, rows_y = (listed(values, name, atoms, ModelError) for values, name in ((x, "x"), (y, "y")))
    masses_p, masses_q = (listed(masses, name, "probabilities", ModelError) for masses, name in ((p, "p"), (q, "q")))
    (a, mu), (b, nu) = _atoms_of(rows_x, masses_p, *"xp"), _atoms_of(rows_y, masses_q, *"yq")
    vectors = is_list(rows_x[0]) or is_list(rows_y[0])
    exact = all(isinstance(mass, Rational) for mass in (*masses_p, *masses_q))
    s = Fraction(0) if exact else (len(a) + len(b) + 4) * _ULP
    if len(sizes := {len(atom) for atom in (*a, *b)}) > 1:
        raise ModelError(
            f"x and y have atoms of {min(sizes)} and of {max(sizes)} coordinates: all need the same number"
        )
    if not vectors:
        return float_up(distance([v[0] for v in a], mu, [v[0] for v in b], nu, s))
    if any(abs(v) >= 2**62 for atom in (*a, *b) for v in atom):
        raise ModelError("vectors must be of numbers below 2**62: give them in larger units")
    if any(v.denominator != 1 for atom in (*a, *b) for v in atom):
        raise ModelError(
            "vectors must be of whole numbers: multiply them by a factor that makes them whole, and divide the "
            "distance by it"
        )
    denominator = np.lcm.reduce(np.array([m.denominator for m in (*mu, *nu)], dtype=object))
    whole = [[int(m * denominator) for m in law] for law in (mu, nu)]
    points = [np.array([[int(v) for v in atom] for atom in law], dtype=np.int64) for law in (a, b)]
    return float(transport.least_reach(points[0], whole[0], points[1], whole[1], slack=s))


def _atoms_of(
    places: Sequence[Any], masses: Sequence[Any], name: str, of: str
) -> tuple[list[tuple[Fraction, ...]], list[Fraction]]:
    """Return distinct atoms in increasing order with their positive masses, exactly."""
    law = exact_law(masses, of)
    rows = [np.asarray(row, dtype=object) if is_list(row) else row for row in places]
    if len(rows) != len(law):
        raise ModelError(f"{name} has {len(rows)} atoms and {of} {len(law)} masses: one mass per atom")
    merged: dict[tuple[Fraction, ...], Fraction] = {}
    for i, (row, mass) in enumerate(zip(rows, law, strict=True)):
        numbers = [exact_number(v) for v in (row if isinstance(row, np.ndarray) else [row])]
        atom = tuple(v for v in numbers if v is not None)
        if len(atom) < len(numbers) or not atom:
            raise ModelError(f"{name}[{i}] is {row!r}, expected a finite number, or a vector of whole numbers")
        if mass:
            merged[atom] = merged.get(atom, Fraction(0)) + mass
    return sorted(merged), [merged[atom] for atom in sorted(merged)]


_Shifts = dict[tuple[int, int], tuple[About, Shift]]


class Wasserstein(LawMechanism):
    """The Wasserstein Mechanism (Algorithm 1): for any secrets, any Θ, and any query whose laws can be computed.

    Parameters
    ----------
    theta : model, sequence of models, or class
        The class Θ.
    length : int or sequence of int, optional
        T, or the lengths of the independent chains; other models know theirs.
    secrets : pairs of Secret, optional
        What shall not be told apart; by default any two values of any record.

    Examples
    --------
    The paper's flu example: four people, noise of scale 2 where group privacy needs 4.

    >>> import pufferfish as pf
    >>> flu = pf.Cliques([0.1, 0.15, 0.5, 0.15, 0.1], states=["healthy", "flu"])
    >>> wasserstein = pf.Wasserstein(flu)
    >>> wasserstein.distance(pf.Count("flu")), round(wasserstein.calibrate(pf.Count("flu"), epsilon=1.0).scale, 9)
    (2.0, 2.0)
    """

    name: ClassVar[str] = "wasserstein"
    title: ClassVar[str] = "Wasserstein"
    witnesses: ClassVar[tuple[type[Witness], ...]] = (CouplingWitness,)

    def __init__(self, theta: Any, length: Any = None, *, secrets: Any = None) -> None:
        super().__init__(theta, length, secrets=secrets)
        self._known: BoundedCache[list[tuple[About, Shift]]] = BoundedCache(4)

    def distance(self, query: Query) -> float:
        """Return W: the largest ∞-Wasserstein distance, in L1, of the query's law given the secrets of a pair.

        Cumulative masses of two laws that are equal but for rounding are taken to be equal, for which :meth:`calibrate`
        adds noise: 1e-12 nats for chains of ten records, 3e-8 for those of 10,000. Errors are those of it.
        """
        bound = self.bind(query)
        with self._lock:
            farthest = max((moved.near for _, moved in self._shifts(query)), default=0)
        return float(farthest * bound.unit)

    def _shifts(self, query: Query) -> list[tuple[About, Shift]]:
        """Return the different distances between laws, in units of the query, with the first pair that has each."""
        key = self._key(query)
        return self._computed(query) if key is None else self._known.of(key, lambda: self._computed(query))

    def _computed(self, query: Query) -> list[tuple[About, Shift]]:
        shifts: _Shifts = {}
        for pair in self._pairs(query):
            self._add(shifts, pair)
        return list(shifts.values())

    def _add(self, shifts: _Shifts, pair: LawPair) -> None:
        moved = self._shift(pair)
        reach = moved.certain, moved.near
        about, before = shifts.get(reach, (pair.about, moved))
        shifts[reach] = about, Shift(*reach, max(or_infinite(moved.slack), or_infinite(before.slack)))

    def _hearer(self, query: Query) -> Callable[[LawPair | None], None] | None:
        """Return what hears the pairs of laws: the distances between them are known after the last one."""
        key = self._key(query)
        if key is None or key in self._known:
            return None
        shifts: _Shifts = {}

        def hear(pair: LawPair | None) -> None:
            if pair is None:
                self._known.of(key, lambda: list(shifts.values()))
            else:
                self._add(shifts, pair)

        return hear

    def _shift(self, pair: LawPair) -> Shift:
        """Return how far the outputs move between two laws."""
        return shift_of(pair)

    def _least(self, query: Query, epsilons: Sequence[float]) -> list[Decisive]:
        return [self._worst(query, lambda moved, e=e: or_infinite(up(moved.scale(e), 8))) for e in epsilons]

    def _leaks(self, query: Query, unit_scale: float) -> Decisive:
        def leaks(moved: Shift) -> float:
            return or_infinite(min(up(moved.certain / unit_scale), up(up(moved.near / unit_scale) + moved.slack)))

        return self._worst(query, leaks)

    def _worst(self, query: Query, of: Callable[[Shift], float]) -> Decisive:
        worst = Decisive()
        for about, moved in self._shifts(query):
            value = of(moved)
            if worst.about is None or value > worst.value:
                worst = Decisive(value, about, moved.near)
        return worst


class ApproximateWasserstein(Wasserstein):
    """The (ε, δ) variant: W is the distance over which all mass except a share δ must move.

    A weaker promise, P(M(X) ∈ A | s, θ) ≤ e^ε P(M(X) ∈ A | s', θ) + δ for every set A of outputs: with probability δ
    anything may happen. Choose δ far below one over the number of people.

    Parameters
    ----------
    theta, length, secrets
        As for :class:`Wasserstein`.
    delta : float
        The probability δ, between 0 and 1.

    Examples
    --------
    >>> import pufferfish as pf
    >>> rare = pf.Cliques([0.5, 0.4, 0.099999, 0, 1e-6], states=["healthy", "flu"])
    >>> strict, loose = pf.Wasserstein(rare), pf.ApproximateWasserstein(rare, delta=1e-5)
    >>> strict.distance(pf.Count("flu")), loose.distance(pf.Count("flu"))
    (2.0, 1.0)
    """

    name: ClassVar[str] = "approximate-wasserstein"
    title: ClassVar[str] = "ApproximateWasserstein"

    def __init__(self, theta: Any, length: Any = None, *, delta: float, secrets: Any = None) -> None:
        super().__init__(theta, length, secrets=secrets)
        expected = "a probability strictly between 0 and 1, such as 1e-6"
        self._keep(delta=real_that(lambda number: 0 < number < 1, delta, "delta", expected))

    @property
    def settings(self) -> dict[str, Any]:
        """The secrets, and δ."""
        return {"secrets": self.secrets, "delta": self.delta}

    def _shift(self, pair: LawPair) -> Shift:
        strict = shift_of(pair)
        step = 1 if isinstance(pair.mu, VectorLaw) else pair.about.norm
        reach = least_whole(lambda w: _behind(pair, w) <= self.delta, -1, strict.certain // step) * step
        return strict if reach >= strict.certain else Shift(reach, min(strict.near, reach), strict.slack)


def shift_of(pair: LawPair) -> Shift:
    """Return how far a query's outputs move, in L1 and in its units, from its law given one secret to the other."""
    norm = pair.about.norm
    match pair.mu, pair.nu:
        case Law() as mu, Law() as nu:
            moved = shift(mu, nu)
            return Shift(moved.certain * norm, moved.near * norm, moved.slack)
        case LawFamily() as mu, LawFamily() as nu:
            reach = mixture_shift(mu, nu).certain * norm
            return Shift(reach, reach, 0.0)
        case VectorLaw() as mu, VectorLaw() as nu:
            s, slack = tie(mu, nu)
            try:
                near = transport.least_reach(*atoms(mu, nu), slack=s)
            except ModelError as error:
                raise NotApplicableError(str(error), "Wasserstein") from error
            both = np.vstack([mu.points, nu.points])
            return Shift(int(np.ptp(both, axis=0).sum()), near, slack)
    raise AssertionError("two laws of one query are of one kind")


def _behind(pair: LawPair, reach: int) -> float:
    """Return the share of the mass that no coupling keeps within reach, rounded up with the error of the masses."""
    mus, nus = (law.laws if isinstance(law, LawFamily) else (law,) for law in (pair.mu, pair.nu))
    # any two first states at once: no less than any mixture of them
    possible = [(mu, nu) for mu, nu in product(mus, nus) if mu is not None and nu is not None]
    return max(
        # masses that are wrong by a factor e^η move at most e^η − 1 of the total on either side
        min(1.0, float_up(unmatched(*atoms(mu, nu), reach)) + 2 * math.expm1(mu.log_error + nu.log_error))
        for mu, nu in possible
    )


# -- The least Laplace noise for one query: the exact loss, inverted ---------------------------------------------------


_TOLERANCE = 1e-10  # how near the loss of the least noise comes to ε, relatively
_SEVERAL = (
    "it covers queries whose outputs all follow from one number with few values, but this one has {} outputs; ask for "
    "one output, or use Wasserstein"
)

_TINY = 1e-6  # losses below this are also bounded by how far the law moves
_LARGE_SCALE = 1e3  # from this scale on losses are bounded by how far the law moves too: rounding takes more then
_ROOM = 2e-10  # more noise, relatively, so that pairs of laws that need the same are not searched one by one


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
        """Return what noise of a scale, in the query's own measure, leaks in nats, rounded up (docs/one_query.md)."""
        noise = real_that(lambda number: number > 0, scale, "scale", "a positive number")
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
    noises = bracket(partial(_loss, pair), epsilon, farthest / epsilon, tolerance=_TOLERANCE, from_above=False)
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
