"""Laws of queries given secrets by listing databases, and what Laplace noise on them leaks, from the definitions.

Knows nothing of the package under test. Masses are fractions, so that a zero is a zero and a tie a tie; what needs
exponentials is done in 50 digits where a claim of exactness is checked. Answers of queries are fractions, or tuples of
them where a query has several outputs; records are 0-based and states are numbers.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

Row = tuple[int, ...]
Answer = Any
Law = dict[Answer, Fraction]
Holds = Callable[[Row], bool]
Ask = Callable[[Row], Answer]
Pair = tuple[Law, Law]

DIGITS = 50


# --- databases -------------------------------------------------------------------------------------------------------


def exactly(number: Any) -> Fraction:
    """The very number: a float is the binary fraction that it is."""
    return number if isinstance(number, Fraction) else Fraction(float(number))


def rows_exactly(table: ArrayLike) -> list[list[Fraction]]:
    """Rows of a table divided by their sums."""
    rows = [[exactly(v) for v in row] for row in np.asarray(table, dtype=object)]
    return [[v / sum(row) for v in row] for row in rows]


@dataclass(frozen=True)
class Databases:
    """All databases of some records that can occur, with their masses."""

    law: Mapping[Row, Fraction]

    @classmethod
    def of_chain(cls, initial: Sequence[Any], transition: ArrayLike, length: int) -> "Databases":
        step = rows_exactly(transition)
        start = [exactly(v) for v in initial]
        law = {(x,): v / sum(start) for x, v in enumerate(start) if v}
        for _ in range(length - 1):
            law = {(*row, y): w * p for row, w in law.items() for y, p in enumerate(step[row[-1]]) if p}
        return cls(law)

    @classmethod
    def of_network(cls, parents: Sequence[Sequence[int]], tables: Sequence[Any]) -> "Databases":
        """Parents by their number; ``tables[j]`` has one axis per parent of j, and j's own states last."""
        sizes = [np.asarray(table).shape[-1] for table in tables]
        law: dict[Row, Fraction] = {}
        for row in itertools.product(*(range(k) for k in sizes)):
            mass = Fraction(1)
            for j, table in enumerate(tables):
                own = [exactly(float(v)) for v in np.asarray(table)[tuple(row[i] for i in parents[j])]]
                mass *= own[row[j]] / sum(own)
            if mass:
                law[row] = mass
        return cls(law)

    @classmethod
    def of_clique(cls, numbers: Sequence[Any]) -> "Databases":
        """People of whom so many have it, every set of that size being equally likely."""
        n, masses = len(numbers) - 1, [exactly(v) for v in numbers]
        return cls(
            {
                row: masses[sum(row)] / sum(masses) / math.comb(n, sum(row))
                for row in itertools.product((0, 1), repeat=n)
                if masses[sum(row)]
            }
        )

    @classmethod
    def listed(cls, rows: Iterable[Sequence[int]], masses: Iterable[Any]) -> "Databases":
        law: dict[Row, Fraction] = {}
        for row, mass in zip(rows, masses, strict=True):
            if mass:
                law[tuple(row)] = law.get(tuple(row), Fraction(0)) + exactly(mass)
        total = sum(law.values())
        return cls({row: mass / total for row, mass in law.items()})

    def __mul__(self, other: "Databases") -> "Databases":
        """Independent databases, their records one after the other."""
        return Databases({(*a, *b): p * q for a, p in self.law.items() for b, q in other.law.items()})

    @property
    def records(self) -> int:
        return len(next(iter(self.law)))

    def given(self, ask: Ask, holds: Holds | None = None) -> Law | None:
        """Law of an answer given a secret; None if that is impossible."""
        found: Law = {}
        for row, mass in self.law.items():
            if holds is None or holds(row):
                answer = ask(row)
                found[answer] = found.get(answer, Fraction(0)) + mass
        total = sum(found.values())
        return {answer: mass / total for answer, mass in found.items()} if found else None

    def pairs(self, ask: Ask, secrets: Sequence[tuple[Holds, Holds]] | None = None) -> list[Pair]:
        """Laws given two secrets that are both possible: by default any two values of any record."""
        if secrets is not None:
            both = [(self.given(ask, s), self.given(ask, other)) for s, other in secrets]
            return [(mu, nu) for mu, nu in both if mu is not None and nu is not None]
        answers = {row: ask(row) for row in self.law}
        common = math.lcm(*(mass.denominator for mass in self.law.values()))
        found: list[Pair] = []
        for t in range(self.records):
            weights: dict[int, dict[Answer, int]] = {}
            for row, mass in self.law.items():
                own = weights.setdefault(row[t], {})
                own[answers[row]] = own.get(answers[row], 0) + mass.numerator * (common // mass.denominator)
            laws = [
                {answer: Fraction(w, sum(own.values())) for answer, w in own.items()}
                for _, own in sorted(weights.items())
            ]
            found += itertools.combinations(laws, 2)
        return found


# --- answers ---------------------------------------------------------------------------------------------------------


def count(*states: int) -> Ask:
    return lambda row: Fraction(sum(x in states for x in row))


def total(values: Sequence[Any]) -> Ask:
    exact = [Fraction(str(v)) for v in values]
    return lambda row: sum((exact[x] for x in row), Fraction(0))


def switches(row: Sequence[int]) -> Answer:
    return Fraction(sum(x != y for x, y in itertools.pairwise(row)))


def bouts(row: Sequence[int]) -> Answer:
    """Of state 1: how often it begins."""
    return Fraction(sum(x != 1 and y == 1 for x, y in itertools.pairwise(row)))


def histogram(k: int) -> Ask:
    return lambda row: tuple(Fraction(row.count(x)) for x in range(k))


def share(ask: Ask) -> Ask:
    def divided(row: Row) -> Answer:
        found = ask(row)
        return tuple(v / len(row) for v in found) if isinstance(found, tuple) else found / len(row)

    return divided


def within(ask: Ask, start: int, stop: int) -> Ask:
    return lambda row: ask(row[start:stop])


def weighted(ask_one: Callable[[int], Answer], factors: Sequence[int]) -> Ask:
    """Every record counts with a factor of its own; ``ask_one`` is what a record in a state adds."""
    return lambda row: sum((c * ask_one(x) for c, x in zip(factors, row, strict=True)), Fraction(0))


# --- ∞-Wasserstein distance -------------------------------------------------------------------------------------------


def apart(a: Answer, b: Answer) -> Fraction:
    """Distance in L1."""
    if isinstance(a, tuple):
        return sum((abs(v - w) for v, w in zip(a, b, strict=True)), Fraction(0))
    return abs(a - b)


def w_inf(mu: Law, nu: Law) -> Fraction:
    """W∞ of two laws on the line: what the monotone coupling, which is optimal there, moves farthest."""
    common = math.lcm(*(m.denominator for law in (mu, nu) for m in law.values()))
    first, second = (
        sorted(((x, m.numerator * (common // m.denominator)) for x, m in law.items() if m), reverse=True)
        for law in (mu, nu)
    )
    worst = Fraction(0)
    while first:  # the lowest atom of each law: as much of it is moved as the other has room for
        (x, mass), (y, room) = first.pop(), second.pop()
        worst = max(worst, abs(x - y))
        if mass > room:
            first.append((x, mass - room))
        elif room > mass:
            second.append((y, room - mass))
    assert not second
    return worst


def couples(mu: Law, nu: Law, reach: Fraction, tolerance: float = 1e-9) -> bool:
    """Whether an LP over couplings moves all mass within reach, up to a tolerance: blind for smaller tails."""
    p, q = list(mu.items()), list(nu.items())
    allowed = [(i, j) for i, (x, _) in enumerate(p) for j, (y, _) in enumerate(q) if apart(x, y) <= reach]
    if not allowed:
        return False
    rows = [i for i, _ in allowed] + [len(p) + j for _, j in allowed]
    columns = [*range(len(allowed))] * 2
    matrix = coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(p) + len(q), len(allowed)))
    room = [float(m) for _, m in (*p, *q)]
    found = linprog(-np.ones(len(allowed)), A_ub=matrix.tocsr(), b_ub=room, method="highs")
    return bool(-found.fun >= 1 - tolerance)


def w_inf_by_lp(mu: Law, nu: Law) -> Fraction:
    """W∞ of laws of numbers or vectors by its definition: the least reach within which an LP finds a coupling."""
    reaches = sorted({apart(x, y) for x in mu for y in nu})
    low, high = -1, len(reaches) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if couples(mu, nu, reaches[middle]) else (middle, high)
    return reaches[high]


def carried(mu: Law, nu: Law, reach: Fraction) -> Fraction:
    """The most mass that a coupling can keep within reach, by augmenting paths in fractions."""
    p, q = list(mu.items()), list(nu.items())
    near = [[j for j, (y, _) in enumerate(q) if apart(x, y) <= reach] for x, _ in p]
    common = math.lcm(*(m.denominator for _, m in (*p, *q)))
    left, room = ([int(m * common) for _, m in law] for law in (p, q))
    flow: dict[tuple[int, int], int] = {}
    while True:
        came: dict[tuple[str, int], tuple[str, int]] = {}
        queue = [("p", i) for i in range(len(p)) if left[i]]
        roots, end = set(queue), None
        for side, at in queue:
            if side == "q" and room[at]:
                end = (side, at)
                break
            following = near[at] if side == "p" else [i for i in range(len(p)) if flow.get((i, at), 0)]
            for other in following:
                node = ("q" if side == "p" else "p", other)
                if node not in came and node not in roots:
                    came[node] = (side, at)
                    queue.append(node)
        if end is None:
            return 1 - Fraction(sum(left), common)
        path = [end]
        while path[-1] not in roots:
            path.append(came[path[-1]])
        path.reverse()
        back = [flow[(a[1], b[1])] for b, a in itertools.pairwise(path) if b[0] == "q"]
        most = min(left[path[0][1]], room[end[1]], *back)
        for a, b in itertools.pairwise(path):
            key = (a[1], b[1]) if a[0] == "p" else (b[1], a[1])
            flow[key] = flow.get(key, 0) + (most if a[0] == "p" else -most)
        left[path[0][1]] -= most
        room[end[1]] -= most


def bottleneck(mu: Law, nu: Law) -> Fraction:
    """W∞ in L1 of laws of vectors, exactly: the least reach within which all mass can be carried."""
    reaches = sorted({apart(x, y) for x in mu for y in nu})
    low, high = -1, len(reaches) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if carried(mu, nu, reaches[middle]) == 1 else (middle, high)
    return reaches[high]


def farthest(pairs: Iterable[Pair], distance: Callable[[Law, Law], Fraction] = w_inf) -> Fraction:
    """W of Algorithm 1."""
    return max((distance(mu, nu) for mu, nu in pairs), default=Fraction(0))


# --- what Laplace noise leaks ----------------------------------------------------------------------------------------


def logs_of(law: Law) -> tuple[np.ndarray, np.ndarray]:
    """Places, shape (n, m), and logarithms of masses, in floats."""
    places = np.array([[float(v) for v in (x if isinstance(x, tuple) else (x,))] for x in law])
    return places, np.array([math.log(m.numerator) - math.log(m.denominator) for m in law.values()])


def noisy(law: Law, scale: float, outputs: np.ndarray) -> np.ndarray:
    """Logarithm of Σ μ(n) exp(−‖w − n‖₁/b) at outputs w, shape (outputs, m)."""
    places, logs = logs_of(law)
    exponents = logs - np.abs(outputs[:, None, :] - places[None, :, :]).sum(axis=2) / scale
    top = exponents.max(axis=1)
    return top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))


def grid(mu: Law, nu: Law, parts: int = 1) -> np.ndarray:
    """Outputs between all atoms: coordinates of atoms, with so many steps from each to the next."""
    atoms = np.concatenate([logs_of(law)[0] for law in (mu, nu)])
    axes: list[np.ndarray] = []
    for column in atoms.T:
        ends = np.unique(column)
        steps = np.arange(parts) / parts
        between = (ends[:-1, None] + (ends[1:] - ends[:-1])[:, None] * steps).ravel()
        axes.append(np.append(between, ends[-1]))
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def loss_on(mu: Law, nu: Law, scale: float, outputs: np.ndarray) -> float:
    return float(np.max(np.abs(noisy(mu, scale, outputs) - noisy(nu, scale, outputs))))


def laplace_loss(pairs: Iterable[Pair], scale: float, parts: int = 1) -> float:
    """Largest log ratio of Laplace noise of one scale on every output, over all outputs on a grid between atoms.

    Beyond the outermost coordinates of atoms the ratio stays as it is there.
    """
    return max((loss_on(mu, nu, scale, grid(mu, nu, parts)) for mu, nu in pairs), default=0.0)


def laplace_loss_in_digits(mu: Law, nu: Law, scale: float, parts: int = 8) -> tuple[Decimal, Decimal]:
    """Loss of one number in 50 digits: at the atoms and at ±∞, and at finer places between and beyond them."""
    with localcontext(Context(prec=DIGITS)):
        b = Decimal(scale)
        laws = [[(decimal(x), decimal(m)) for x, m in law.items()] for law in (mu, nu)]

        def loss(kernel: Callable[[Decimal], Decimal]) -> Decimal:
            one, other = (sum(m * kernel(x) for x, m in law) for law in laws)
            return abs((one / other).ln())

        def at(w: Decimal) -> Decimal:
            return loss(lambda x: (-abs(w - x) / b).exp())

        atoms = sorted({x for law in laws for x, _ in law})
        decides = [at(w) for w in atoms] + [loss(lambda x, s=s: (s * x / b).exp()) for s in (1, -1)]
        between = [a + (c - a) * i / parts for a, c in itertools.pairwise(atoms) for i in range(1, parts)]
        beyond = [atoms[0] - b * far for far in (1, 10)] + [atoms[-1] + b * far for far in (1, 10)]
        return max(decides), max(at(w) for w in between + beyond)


def decimal(number: Fraction) -> Decimal:
    """A fraction in 50 digits."""
    return Context(prec=DIGITS).divide(Decimal(number.numerator), Decimal(number.denominator))


def excess(mu: Law, nu: Law, epsilon: float, scale: float) -> float:
    """Σ_w max(0, P(w | s) − e^ε P(w | s')) over all whole outputs, with discrete Laplace noise on every output.

    Beyond the box around the atoms both masses fall by the same factor ρ with every step, and so does what is summed:
    every face of the box stands for geometric series.
    """
    p, q = (({x if isinstance(x, tuple) else (x,): m for x, m in law.items()}) for law in (mu, nu))
    m = len(next(iter(p)))
    rho = math.exp(-1 / scale)
    columns = [[int(x[i]) for x in (*p, *q)] for i in range(m)]
    axes = [np.arange(min(column), max(column) + 1, dtype=float) for column in columns]
    stand_for = [np.ones(len(axis)) for axis in axes]
    for weights in stand_for:
        weights[0] += rho / (1 - rho)
        weights[-1] += rho / (1 - rho)
    outputs = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    series = np.prod([weights.ravel() for weights in np.meshgrid(*stand_for, indexing="ij")], axis=0)
    density = ((1 - rho) / (1 + rho)) ** m
    one, other = (np.exp(noisy(law, scale, outputs)) for law in (p, q))
    return float(np.sum(np.maximum(one - math.exp(epsilon) * other, 0.0) * series) * density)


def permutations_of(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Every pair both ways round."""
    for mu, nu in pairs:
        yield mu, nu
        yield nu, mu
