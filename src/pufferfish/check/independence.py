r"""Whether two columns are independent given others: a likelihood ratio test (G), and whether rows are enough for one.

In each combination of what is given, a *stratum*, the rows of two columns are a table of counts n_ab. With its margins
held fixed and no dependence,

.. math:: G = 2 \sum_{ab} n_{ab} \log \frac{n_{ab} n}{n_a n_b}

has nearly a χ² law of (r − 1)(c − 1) degrees of freedom, r rows and c columns of the table not being empty (Wilks
1935); those of independent strata add up. Where all tables are two by two, whose free count is hypergeometric, the law
of G is computed instead. Otherwise, where expected counts are near 1, G is made smaller by its ratio to its exact mean
(Bartlett 1937), and never larger: chance would be taken for dependence.

Rows are too few where the test would not see, with ``POWER``, that the pair of values which chance would bring together
least often, in E rows, meets ``TIMES`` as often: that adds about 2E(t log t − t + 1) to G. Several tests are judged by
Holm's rule (1979).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TIMES, POWER = 3.0, 0.8

_MANY = 30.0
"""Expected counts of which the mean of G needs no correction: it is above its degrees of freedom by a hundredth."""

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Dependence:
    """How two columns depend on each other given others.

    ``g`` is the likelihood ratio statistic, corrected; ``freedom`` its degrees of freedom, 0 where what is given leaves
    nothing open; ``p`` the probability of as much by chance; ``expected`` the rows in which the two values would meet
    by chance that would meet least often, and ``rarest`` the places of these states.
    """

    g: float
    freedom: int
    p: float
    expected: float
    rarest: tuple[int, int]


def dependence(strata: Counts) -> Dependence:
    """Test a pair of columns, given the counts of its states in each stratum, of shape (strata, r, c).

    >>> told = dependence(np.array([[[40, 10], [10, 40]]]))
    >>> told.freedom, round(told.g, 2), told.p < 1e-8, told.expected
    (1, 38.55, True, 25.0)
    >>> dependence(np.array([[[5, 0], [0, 0]], [[0, 0], [0, 5]]])).freedom
    0
    """
    g, mean, freedom = 0.0, 0.0, 0
    expected = np.zeros(strata.shape[1:])
    of_two = list[NDArray[np.float64]]()
    for table in strata[strata.sum(axis=(1, 2)) > 1]:
        rows, columns, total = table.sum(axis=1), table.sum(axis=0), int(table.sum())
        degrees = int((np.count_nonzero(rows) - 1) * (np.count_nonzero(columns) - 1))
        if not degrees:
            continue
        apart = float(_xlogx(np.array([total])).sum() - _xlogx(rows).sum() - _xlogx(columns).sum())
        g += 2 * (float(_xlogx(table).sum()) + apart)
        freedom += degrees
        if degrees == 1:
            of_two.append(_law_of_two(int(rows[rows > 0][0]), int(columns[columns > 0][0]), total, apart))
            mean += 1
        else:
            mean += max(degrees, _mean(rows[rows > 0], columns[columns > 0], total, apart))
        expected += np.outer(rows, columns) / total
    if not freedom:
        return Dependence(0.0, 0, 1.0, 0.0, (0, 0))
    expected[expected == 0] = np.inf  # values that never stand in one stratum say nothing
    rarest = divmod(int(expected.argmin()), expected.shape[1])
    exact = len(of_two) == freedom and g < _MOST_G
    corrected = float(g * min(1.0, freedom / mean))
    p = _exactly(of_two, g) if exact else upper_tail(corrected, freedom)
    return Dependence(corrected, freedom, p, float(expected[rarest]), rarest)


def _law_of_two(a: int, b: int, n: int, apart: float) -> NDArray[np.float64]:
    """Return the values of G of a table of two rows and two columns with its margins, and their probabilities."""
    x, logs = _hypergeometric(n, a, b)
    values = 2 * (_xlogx(x) + _xlogx(a - x) + _xlogx(b - x) + _xlogx(n - a - b + x) + apart)
    return np.array([values, np.exp(logs)])


def _exactly(laws: Sequence[NDArray[np.float64]], g: float) -> float:
    """Return the probability that G of several strata is so much or more; for more than one rounded up, to a step."""
    if len(laws) == 1:
        values, probabilities = laws[0]
        return float(min(1.0, probabilities[values >= g - 1e-9].sum()))
    bins = math.ceil(g / _STEP)
    below = np.array([1.0])
    for values, probabilities in laws:
        places = np.ceil(np.maximum(values, 0.0) / _STEP).astype(np.intp)
        below = np.convolve(below, np.bincount(places, weights=probabilities, minlength=1))[:bins]
    return float(max(0.0, 1 - below.sum()))


_STEP, _MOST_G = 0.01, 60.0
"""Steps of G in which laws are added up, and up to which this is done: beyond it chance is out of the question."""


def _mean(rows: Counts, columns: Counts, total: int, apart: float) -> float:
    """Return the mean of G over all tables with these margins; 0 where it needs no correction."""
    if float(rows.min()) * float(columns.min()) >= _MANY * total:
        return 0.0
    return 2 * (sum(_mean_xlogx(total, int(a), int(b)) for a in rows for b in columns) + apart)


def _mean_xlogx(n: int, a: int, b: int) -> float:
    """Return the mean of x log x for the rows that have two values, of which a and b of n rows have each."""
    x, logs = _hypergeometric(n, a, b)
    return float((np.exp(logs) * _xlogx(x)).sum())


def _hypergeometric(n: int, a: int, b: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return in how many rows two values may meet that a and b of n rows have, and the logs of the probabilities."""
    middle = a * b / n
    wide = 40 * math.sqrt(middle) + 40  # what lies beyond has no weight
    x = np.arange(max(0, a + b - n, math.floor(middle - wide)), min(a, b, math.ceil(middle + wide)) + 1)
    whole = _log_factorial(np.array([a, n - a, b, n - b, n])) @ np.array([1, 1, 1, 1, -1])
    return x, whole - sum(_log_factorial(part) for part in (x, a - x, b - x, n - a - b + x))


def _xlogx(x: NDArray[np.int64]) -> NDArray[np.float64]:
    return (x * np.log(np.maximum(x, 1))).astype(np.float64)


def _log_factorial(x: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.array([math.lgamma(n + 1) for n in x.tolist()])


# -- The law of χ² ---------------------------------------------------------------------------------------------------


def upper_tail(x: float, freedom: int) -> float:
    """Return the probability that a χ² number of so many degrees of freedom is x or more.

    >>> round(upper_tail(3.841459, 1), 6), round(upper_tail(30.0, 12), 6), upper_tail(0.0, 3)
    (0.05, 0.002792, 1.0)
    """
    z = x / 2
    if z <= 0:
        return 1.0
    # Q(1/2, z) or 0, and from there the recurrence Q(a + 1, z) = Q(a, z) + z^a e^-z / Γ(a + 1)
    first = 0.5 * (freedom % 2)
    steps = (first + i for i in range(freedom // 2))
    tail = math.erfc(math.sqrt(z)) if first else 0.0
    return min(1.0, tail + math.fsum(math.exp(a * math.log(z) - z - math.lgamma(a + 1)) for a in steps))


def enough_rows(told: Dependence, level: float) -> bool:
    """Whether the test would see, at a level and with ``POWER``, its rarest pair of values ``TIMES`` as often.

    >>> [enough_rows(Dependence(0.0, 1, 1.0, rows, (0, 0)), 0.001) for rows in (0.5, 5, 8)]
    [False, False, True]
    """
    added = 2 * told.expected * (TIMES * math.log(TIMES) - TIMES + 1)
    high = 10.0 * (told.freedom + 10) + 20 * abs(math.log(level))
    low = 0.0
    for _ in range(60):  # the least G that is seen
        middle = (low + high) / 2
        low, high = (middle, high) if upper_tail(middle, told.freedom) > level else (low, middle)
    # a χ² number that is not central is nearly normal
    return told.freedom + added - _NORMAL * math.sqrt(2 * (told.freedom + 2 * added)) >= high


_NORMAL = 0.8416212335729143  # what a standard normal number is below with probability ``POWER``


def holm(p: Sequence[float], weights: Sequence[float], level: float) -> list[bool]:
    """Return which of several tests find something, so that with nothing to find one does with this probability.

    >>> holm([0.001, 0.02, 0.5], [1, 1, 1], 0.05), holm([0.02, 0.02], [1, 4], 0.025)
    ([True, True, False], [True, True])
    """
    seen, left = [False] * len(p), float(sum(weights))
    for i in sorted(range(len(p)), key=lambda i: p[i] / weights[i]):
        if p[i] > level * weights[i] / left:
            break
        seen[i] = True
        left -= weights[i]
    return seen
