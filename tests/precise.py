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

__all__ = ["Law", "chain_law", "log", "network_law", "query_loss", "rows", "stationary", "tilt_loss", "transfer_loss"]

DIGITS = Context(prec=60, Emin=-(10**12), Emax=10**12)
Sequence_ = tuple[int, ...]
Law = dict[Sequence_, Decimal]


def log(ratio: Decimal) -> Decimal:
    return DIGITS.ln(ratio)


def decimal(value: Fraction | float) -> Decimal:
    if isinstance(value, Fraction):
        return DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Decimal(float(value))


def rows(table: ArrayLike) -> list[list[Decimal]]:
    """Rows of doubles, each divided by its exact sum."""
    found: list[list[Decimal]] = []
    for row in np.atleast_2d(np.asarray(table, dtype=float)).tolist():
        total = sum((Decimal(v) for v in row), Decimal(0))
        found.append([DIGITS.divide(Decimal(v), total) for v in row])
    return found


def stationary(p: ArrayLike) -> list[Decimal]:
    return [decimal(v) for v in exact_stationary(p)]


def chain_law(start: Sequence[Decimal], steps: Sequence[ArrayLike]) -> Law:
    """Every sequence with its probability: the first record from a law, every step with a matrix of its own."""
    with localcontext(DIGITS):
        law = {(x,): v for x, v in enumerate(start) if v}
        for step in (rows(p) for p in steps):
            law = {(*seq, y): w * v for seq, w in law.items() for y, v in enumerate(step[seq[-1]]) if v}
    return law


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
