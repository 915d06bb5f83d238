"""True losses in decimals of 60 digits and hardly any limit of exponents; knows no mechanism of the package under test.

A model's numbers are taken as the doubles they are; rows are divided by their exact sums. So nothing here underflows,
overflows or cancels, and a bound in doubles can be compared with a loss without a margin for this side's errors.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from enumeration import exact_stationary

__all__ = [
    "DIGITS",
    "Law",
    "answer_laws",
    "at_most",
    "chain_law",
    "corners",
    "influence",
    "law_of_steps",
    "laws_loss",
    "log",
    "network_law",
    "phi",
    "query_loss",
    "reach",
    "rows",
    "stationary",
    "tilt_loss",
    "transfer_loss",
]

DIGITS = Context(prec=60, Emin=-(10**12), Emax=10**12)
_SURE = Decimal("1e-45")
"""Of the 60 digits, so many may be wrong where this side subtracts."""

Sequence_ = tuple[int, ...]
Law = dict[Sequence_, Decimal]


def log(ratio: Decimal) -> Decimal:
    return DIGITS.ln(ratio)


def at_most(exact: Decimal, bound: float) -> bool:
    """Whether a bound in doubles is no less than the exact value: no margin but for the last of 60 digits."""
    with localcontext(DIGITS):  # sums of decimals are rounded too, to 28 digits outside
        return exact <= Decimal(bound) + _SURE * max(1, abs(exact))


def decimal(value: Fraction | float) -> Decimal:
    if isinstance(value, Fraction):
        return DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Decimal(float(value))


def rows(table: ArrayLike) -> list[list[Decimal]]:
    """Rows of doubles, each divided by its exact sum."""
    found: list[list[Decimal]] = []
    with localcontext(DIGITS):
        for row in np.atleast_2d(np.asarray(table, dtype=float)).tolist():
            total = sum((Decimal(v) for v in row), Decimal(0))
            found.append([Decimal(v) / total for v in row])
    return found


def stationary(p: ArrayLike) -> list[Decimal]:
    return [decimal(v) for v in exact_stationary(p)]


def chain_law(start: Sequence[Decimal], steps: Sequence[ArrayLike]) -> Law:
    """Every sequence with its probability: the first record from a law, every step with a matrix of its own."""
    return law_of_steps(start, [rows(p) for p in steps])


def law_of_steps(start: Sequence[Decimal], steps: Sequence[Sequence[Sequence[Decimal]]]) -> Law:
    """Every sequence with its probability, where the matrices are decimals already."""
    with localcontext(DIGITS):
        law = {(x,): v for x, v in enumerate(start) if v}
        for step in steps:
            law = {(*seq, y): w * v for seq, w in law.items() for y, v in enumerate(step[seq[-1]]) if v}
    return law


def corners(lower: Sequence[float], upper: Sequence[float]) -> list[list[Decimal]]:
    """The extreme laws between two bounds: lower bounds, filled up in any order to exactly 1."""
    with localcontext(DIGITS):
        low, high = [Decimal(v) for v in lower], [Decimal(v) for v in upper]
        if sum(low) >= 1 or sum(high) <= 1:  # bounds that meet sum to 1 up to their rounding
            return rows(lower if sum(low) >= 1 else upper)
        found: list[list[Decimal]] = []
        for order in itertools.permutations(range(len(low))):
            law, left = list(low), 1 - sum(low)
            for y in order:
                law[y] += (more := min(high[y] - low[y], left))
                left -= more
            if law not in found:
                found.append(law)
    return found


def network_law(network: Any) -> Law:
    """Every row of a Bayesian network with its probability, as places of each node's own states."""
    place = {node: j for j, node in enumerate(network.nodes)}
    tables = {node: dict(_laws(cpt.table)) for node, cpt in network.cpts.items()}
    law: Law = {}
    with localcontext(DIGITS):
        for row in itertools.product(*map(range, network.sizes)):
            weight = Decimal(1)
            for node, cpt in network.cpts.items():
                weight *= tables[node][tuple(row[place[v]] for v in cpt.parents)][row[place[node]]]
            if weight:
                law[row] = weight
    return law


def _laws(table: NDArray[np.float64]) -> Iterator[tuple[Sequence_, list[Decimal]]]:
    for given in np.ndindex(table.shape[:-1]):
        yield given, rows(table[given])[0]


def _given(law: Law, record: int) -> dict[int, dict[Sequence_, Decimal]]:
    """The sequences with each value of a record."""
    found: dict[int, dict[Sequence_, Decimal]] = {}
    for seq, weight in law.items():
        found.setdefault(seq[record], {})[seq] = weight
    return found


def query_loss(law: Law, answers: Mapping[Sequence_, Sequence_], unit: int, scale: float) -> Decimal:
    """Pufferfish loss of whole-number answers with discrete Laplace noise of ``scale / unit``, from the definition."""
    with localcontext(DIGITS):
        atoms = sorted({answers[seq] for seq in law})
        ends = [range(min(column), max(column) + 1) for column in zip(*atoms, strict=True)]
        kernel = [(-Decimal(n * unit) / Decimal(scale)).exp() for n in range(sum(map(len, ends)))]
        outputs = list(itertools.product(*ends))
        distance = {(out, a): sum(abs(u - v) for u, v in zip(out, a, strict=True)) for out in outputs for a in atoms}
        worst = Decimal(0)
        for record in range(len(next(iter(law)))):
            laws: list[dict[Sequence_, Decimal]] = []
            for weights in _given(law, record).values():
                total, mass = sum(weights.values()), dict[Sequence_, Decimal]()
                for seq, weight in weights.items():
                    mass[answers[seq]] = mass.get(answers[seq], Decimal(0)) + weight / total
                laws.append(mass)
            for out in outputs:
                seen = [sum(w * kernel[distance[out, a]] for a, w in mass.items()) for mass in laws]
                worst = max(worst, max(seen) / min(seen))
    return log(worst) if worst else Decimal(0)


def tilt_loss(law: Law, losses: Sequence[Sequence[Sequence[float]]], tilts: Iterable[Sequence_]) -> Decimal:
    """Largest loss of densities m(x) = Π_t exp(d_t(z_t, x_t)), a lower bound for every record loss d_t.

    ``tilts`` has sequences z. On binary chains one of them attains the supremum over all densities.
    """
    with localcontext(DIGITS):
        worst = Decimal(1)
        for tilt in tilts:
            factors = [[Decimal(d[z][x]).exp() for x in range(len(d))] for d, z in zip(losses, tilt, strict=True)]
            for record in range(len(losses)):
                means: list[Decimal] = []
                for weights in _given(law, record).values():
                    total = sum(weights.values())
                    mean = Decimal(0)
                    for seq, weight in weights.items():
                        m = weight
                        for t, x in enumerate(seq):
                            m *= factors[t][x]
                        mean += m
                    means.append(mean / total)
                worst = max(worst, max(means) / min(means))
    return log(worst)


def transfer_loss(start: ArrayLike, p: ArrayLike, length: int, tilt: ArrayLike) -> Decimal:
    """Largest loss of the density Π_t e^{tilt[x_t]} of a chain of many states: by passes, without enumeration."""
    with localcontext(DIGITS):
        steps, factors = rows(p), [Decimal(float(v)).exp() for v in np.asarray(tilt)]
        states = range(len(factors))
        into = [[(x, steps[x][y]) for x in states if steps[x][y]] for y in states]
        law, past, future = rows(start)[0], rows(start)[0], [Decimal(1)] * len(factors)
        ahead = [future]
        for _ in range(length - 1):
            future = [
                sum((v * factors[y] * future[y] for y, v in enumerate(steps[x]) if v), Decimal(0)) for x in states
            ]
            ahead.append(future)
        worst = Decimal(1)
        for future in reversed(ahead):
            means = [past[x] / law[x] * factors[x] * future[x] for x in states if law[x]]
            worst = max(worst, max(means) / min(means))
            past = [sum((past[x] * factors[x] * v for x, v in into[y]), Decimal(0)) for y in states]
            law = [sum((law[x] * v for x, v in into[y]), Decimal(0)) for y in states]
    return log(worst)


def phi(p: Sequence[Decimal], q: Sequence[Decimal], a: Sequence[Sequence[float]]) -> Decimal:
    """log max p·v / q·v over v > 0 with v(y) ≤ e^{a(y, z)} v(z): by all vertices of that cone, for a few states.

    Each is a tree of k − 1 tight constraints; those that break another one are left out, in decimals.
    """
    k = len(p)
    with localcontext(DIGITS):
        logs = [[Decimal(v) for v in row] for row in a]
        arcs = [(y, z) for y in range(k) for z in range(k) if y != z]
        worst = Decimal(0)
        for tree in itertools.combinations(arcs, k - 1):
            v: dict[int, Decimal] = {0: Decimal(0)}
            for _ in range(k):
                for y, z in tree:
                    if z in v and y not in v:
                        v[y] = v[z] + logs[y][z]
                    elif y in v and z not in v:
                        v[z] = v[y] - logs[y][z]
            if len(v) == k and all(v[y] <= v[z] + logs[y][z] * (1 + _SURE) + _SURE for y, z in arcs):
                values = [v[y].exp() for y in range(k)]
                above = sum((s * w for s, w in zip(p, values, strict=True)), Decimal(0))
                below = sum((s * w for s, w in zip(q, values, strict=True)), Decimal(0))
                if not below:
                    return Decimal("inf")
                worst = max(worst, above / below)
    return log(worst)


def influence(law: Law, node: int, others: Sequence[int]) -> Decimal:
    """Max-influence of a record on others (Definition 4.1): the largest log ratio of their laws given two values."""
    with localcontext(DIGITS):
        told: list[dict[Sequence_, Decimal]] = []
        for weights in _given(law, node).values():
            total, masses = sum(weights.values()), dict[Sequence_, Decimal]()
            for seq, weight in weights.items():
                seen = tuple(seq[t] for t in others)
                masses[seen] = masses.get(seen, Decimal(0)) + weight / total
            told.append(masses)
        worst = Decimal(1)
        for one, other in itertools.permutations(told, 2):
            for seen, mass in one.items():
                if seen not in other:
                    return Decimal("inf")
                worst = max(worst, mass / other[seen])
    return log(worst)


def answer_laws(law: Law, answers: Mapping[Sequence_, int], record: int) -> dict[int, dict[int, Decimal]]:
    """The law of a whole-number answer given each value of a record."""
    with localcontext(DIGITS):
        found: dict[int, dict[int, Decimal]] = {}
        for value, weights in _given(law, record).items():
            total, masses = sum(weights.values()), found.setdefault(value, {})
            for seq, weight in weights.items():
                masses[answers[seq]] = masses.get(answers[seq], Decimal(0)) + weight / total
    return found


def reach(mu: Mapping[int, Decimal], nu: Mapping[int, Decimal]) -> int:
    """How far mass must move at least to turn one law on the whole numbers into the other: W∞, but for ties."""
    least, most = min(*mu, *nu), max(*mu, *nu)

    def needs(here: Mapping[int, Decimal], there: Mapping[int, Decimal], w: int, sign: int) -> bool:
        for n in range(least, most + 1):
            mass = sum((v for x, v in here.items() if sign * x <= sign * n), Decimal(0))
            room = sum((v for x, v in there.items() if sign * x <= sign * n + w), Decimal(0))
            if mass > room * (1 + _SURE):
                return True
        return False

    with localcontext(DIGITS):
        ways = [(one, other, sign) for one, other in ((mu, nu), (nu, mu)) for sign in (1, -1)]
        return next(w for w in range(most - least + 1) if not any(needs(one, other, w, s) for one, other, s in ways))


def laws_loss(mu: Mapping[int, Decimal], nu: Mapping[int, Decimal], scale: float) -> Decimal:
    """Largest log ratio of two laws with Laplace noise of a scale added."""
    with localcontext(DIGITS):
        worst = Decimal(1)
        for w in range(min(*mu, *nu), max(*mu, *nu) + 1):
            one, other = (
                sum(m * (-abs(Decimal(w - n)) / Decimal(scale)).exp() for n, m in x.items()) for x in (mu, nu)
            )
            worst = max(worst, one / other, other / one)
    return log(worst)
