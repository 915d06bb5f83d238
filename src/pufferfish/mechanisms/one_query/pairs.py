"""Vectors as whole numbers: one sweep over partial sums serves scalar and vector queries, and counted secrets.

An additive statistic with several coordinates is coded as one number in mixed radix: sums of codes are codes of sums as
long as every digit has room for its largest sum. Coordinates that a secret counts stand before those of the query, so
that conditioning on them is taking rows of a matrix.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._core.laws.law import Law, VectorLaw
from pufferfish._core.laws.of_chains import LawFamily
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.numbers.wide import Wide
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.queries import LinearQuery
from pufferfish.theta.joint_distribution import Cliques
from pufferfish.theta.secrets import CountIs, Fact, RecordIs, Secret, check_states

# -- Laws of vectors in exact fractions ------------------------------------------------------------------------------

_MOST_LISTED = 1_000_000  # whole numbers from the least to the greatest value up to which a law lists all of them
_LONGEST_LINE = 2**60

Values = Mapping[tuple[int, ...], Fraction]  # vectors of whole numbers and their masses


@dataclass(frozen=True, slots=True)
class OnLine:
    """Vectors that are ``origin + direction · number``, with whole numbers."""

    origin: tuple[int, ...]
    direction: tuple[int, ...]

    @property
    def norm(self) -> int:
        """L1 length of the direction."""
        return sum(abs(d) for d in self.direction)

    def number(self, value: Sequence[int]) -> int | None:
        """Return where on the line a vector is, None if it is not."""
        along = next(m for m, d in enumerate(self.direction) if d)
        move = [v - o for v, o in zip(value, self.origin, strict=True)]
        number, rest = divmod(move[along], self.direction[along])
        return None if rest or move != [number * d for d in self.direction] else number


def line_through(values: Sequence[tuple[int, ...]]) -> OnLine | None:
    """Return a line through all of some vectors, if there is one."""
    origin = values[0]
    moves = [tuple(v - o for v, o in zip(value, origin, strict=True)) for value in values]
    first = next((move for move in moves if any(move)), (1,) * len(origin))
    common = gcd(*first)
    line = OnLine(origin, tuple(v // common for v in first))
    numbers = [line.number(value) for value in values]
    listed = [number for number in numbers if number is not None]
    if max(abs(v) for value in values for v in value) > _LONGEST_LINE:
        raise NotApplicableError("outputs need more than 60 bits: give a larger unit")
    return line if len(listed) == len(numbers) and max(listed) - min(listed) <= _MOST_LISTED else None


def law_of_values(masses: Values, line: OnLine | None) -> Law | VectorLaw:
    """Return the law with these masses, which need not sum to 1, as that of one number where they lie on a line."""
    total = sum(masses.values(), Fraction(0))
    if line is not None:
        numbers = {line.number(value) or 0: mass / total for value, mass in masses.items()}
        low, high = min(numbers), max(numbers)
        return Law.exact(low, [numbers.get(n, Fraction(0)) for n in range(low, high + 1)])
    denominator = lcm(*((m / total).denominator for m in masses.values()))
    whole = [int(m / total * denominator) for m in masses.values()]
    return VectorLaw(np.array(list(masses), dtype=np.int64), Wide.ratio(whole, denominator), 4 * UNIT)


# -- Pairs of laws of a query, given two secrets that shall not be told apart ----------------------------------------


@dataclass(frozen=True, slots=True)
class About:
    """What a pair of laws is about: the member ``theta``, and the two values of a record, or two secrets, in words.

    ``norm`` is how far the outputs move, in L1, when the number that the laws are about moves by 1; ``length`` how many
    records may depend on each other; ``node`` the record that both secrets are about, if it is one.
    """

    norm: int
    theta: int
    length: int
    node: int | str | None
    secrets: tuple[str, str]


AnyLaw = Law | LawFamily | VectorLaw


@dataclass(frozen=True, slots=True)
class LawPair:
    """The laws of a query given two secrets, under one θ: of a number, one for each first state, or of a vector."""

    mu: AnyLaw
    nu: AnyLaw
    about: About

    @property
    def size(self) -> int:
        """Numbers kept."""
        return self.mu.size + self.nu.size


def possible_pair(mu: AnyLaw | None, nu: AnyLaw | None, about: About) -> Iterator[LawPair]:
    """Yield the pair of two laws, if both secrets are possible."""
    if mu is not None and nu is not None:
        yield LawPair(mu, nu, about)


def pairs_of_secrets(
    secrets: Sequence[tuple[Any, Any]], law_of: Callable[[Any], AnyLaw | None], norm: int, theta: int, length: int
) -> Iterator[LawPair]:
    """Yield the pairs of laws given secrets of the user's own; see :class:`About` for the numbers."""
    for done, (a, b) in enumerate(secrets):
        report_progress("laws of the query", done / len(secrets))
        yield from possible_pair(law_of(a), law_of(b), About(norm, theta, length, None, (str(a), str(b))))


def counts_of(secrets: Sequence[Secret]) -> list[CountIs]:
    """Return the conditions on counts in some secrets."""
    return [c for secret in secrets for c in secret.conditions if isinstance(c, CountIs)]


def records_of(secret: Secret, kind: str) -> list[RecordIs]:
    """Return the conditions of a secret on single records; a Fact is refused, as the model lists no databases."""
    for condition in secret.conditions:
        if isinstance(condition, Fact):
            raise NotApplicableError(
                f"secret {str(secret)!r} is a function of the database, and {kind} do not list their databases: "
                "state it by RecordIs and CountIs, or use a JointDistribution"
            )
    return [c for c in secret.conditions if isinstance(c, RecordIs)]


def both(mask: NDArray[np.bool_] | None, other: Sequence[bool]) -> NDArray[np.bool_]:
    """Return the states that two conditions leave; None stands for all."""
    return np.array(other) if mask is None else mask & np.array(other)


def place_of(record: Any, sizes: Sequence[int], secret: Secret, words: tuple[str, str]) -> tuple[int, int]:
    """Return the group and the place in it that a record's name means, which ``words`` call so, or refuse it."""
    pair: tuple[Any, ...] = record if isinstance(record, tuple) else (0, record)
    well_formed = len(pair) == 2 and (isinstance(record, tuple) or len(sizes) == 1)
    if well_formed and all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in pair):
        group, place = int(pair[0]), int(pair[1])
        if 0 <= group < len(sizes) and 0 <= place < sizes[group]:
            return group, place
    expected = f"a {words[1]} from 0 to {sizes[0] - 1}" if len(sizes) == 1 else f"({words[0]}, {words[1]})"
    raise ParameterError(f"secret {str(secret)!r}: there is no record {record!r}; expected {expected}")


def clique_conditions(
    secret: Secret, cliques: Cliques
) -> tuple[list[tuple[int, int]] | None, Callable[[int], bool] | None]:
    """Return how many of each clique a secret says to have it and lack it, and which totals it allows (None: all)."""
    check_states(secret, cliques.states)
    possible: dict[tuple[int, int], set[str]] = {}
    for condition in records_of(secret, cliques.kind):
        member = place_of(condition.record, cliques.groups, secret, ("clique", "member"))
        possible[member] = possible.get(member, set(cliques.states)) & set(condition.states)
    lacks, has = cliques.states
    having, lacking = (Counter(c for (c, _), left in possible.items() if left == {state}) for state in (has, lacks))
    everybody, counts = sum(cliques.groups), counts_of([secret])

    def fits(total: int) -> bool:
        number = {has: total, lacks: everybody - total}
        return all(condition.allows(sum(number[s] for s in condition.states)) for condition in counts)

    known = [(having[c], lacking[c]) for c in range(len(cliques.groups))]
    return known if all(possible.values()) else None, fits if counts else None


_MOST_CODES = 4_000_000  # values of the query and of what secrets count, together, that are listed
_MOST_VECTORS = 1000  # values of a query with several outputs: each pair of laws of theirs is a transport problem
_LARGEST = 2**62


class Coding:
    """Codes of what each record adds to a query and to the counts of secrets, each set of states counted once."""

    def __init__(self, query: LinearQuery, counts: Sequence[CountIs], states: Sequence[str], records: int) -> None:
        self._query, self._records = query, records
        line = query.line
        self.norm = 1 if line is None else line.norm
        k = len(states)
        if line is not None:
            base = line.values[None, :]
        elif len(query.weights) < k or query.by_output:
            base = query.weights
        else:
            base = np.eye(k, dtype=np.int64)[1:]
        self._of_counts = line is None and len(query.weights) >= k and not query.by_output
        factors = np.ones(1, dtype=np.int64) if query.factors is None else query.factors
        factors = factors if query.by_output else factors[:, None]
        times = records if query.factors is None else 1
        if int(np.max(np.abs(base))) * int(np.max(np.abs(factors))) * records > _LARGEST:
            raise NotApplicableError("values times factors need more than 62 bits: give the query in larger units")
        moves = factors[:, :, None] * base[None, :, :]  # record, coordinate, state
        sets = dict.fromkeys(tuple(state in count.states for state in states) for count in counts)
        self._states = tuple(states)
        alone = line is not None and query.factors is None
        self._same = {s for s in sets if alone and np.array_equal(np.array(s), base[0])}
        self._other = {s for s in sets if alone and np.array_equal(1 - np.array(s), base[0])}
        self._sets = [s for s in sets if s not in self._same and s not in self._other]
        chosen = np.array(self._sets, dtype=np.int64).reshape(len(self._sets), k)
        low = moves.min(axis=2)
        self._least = low.sum(axis=0) * times
        radices = [int(r) + 1 for r in (moves.max(axis=2) - low).sum(axis=0) * times] + [records + 1] * len(chosen)
        several = math.prod(radices[: len(base)]) if len(base) > 1 else 0
        if math.prod(radices) > _MOST_CODES or several > _MOST_VECTORS:
            most = _MOST_VECTORS if several > _MOST_VECTORS else _MOST_CODES
            shown = _spelled(several or math.prod(radices))
            clause = ", with what the secrets count" if len(chosen) else ""
            raise NotApplicableError(
                f"the query's law over {records:,} records has about {shown} values{clause}, "
                f"and at most {most:,} are computed; ask for fewer outputs"
            )
        self._radices = radices[: len(base)]
        places = np.cumprod([1, *radices[:-1]])
        digits = (moves - low[:, :, None]).transpose(0, 2, 1) @ places[: len(base)]
        digits = digits + places[len(base) :] @ chosen if len(chosen) else digits
        self._single = len(radices) == 1
        self.values: NDArray[np.int64] = digits[0] if query.factors is None else digits
        """What a record in each state adds to the code; shape (k,), or (n, k) where records count differently."""
        self.moves: NDArray[np.int64] | None = None  # what a step adds to the code: nothing
        self._size = math.prod(radices)
        self._rows = math.prod(radices[len(base) :])

    def decoded(self, law: Law | None, counts: Sequence[CountIs] = ()) -> Law | VectorLaw | None:
        """Return the law of the query from that of the code, given what secrets say of counts; None if impossible."""
        if law is None:
            return None
        if self._single and not counts:
            return replace(law, start=law.start + int(self._least[0]))
        codes = Wide.zeros((self._size,))
        codes.put(slice(law.start, law.start + law.size), law.masses)
        for count in counts:
            codes = codes.where(self._allowed(count))
        table = Wide(codes.values.reshape(self._rows, -1), codes.levels.reshape(self._rows, -1))
        if not table.positive.any():
            return None
        query_law = Law.of(0, table.sum(axis=0), law.log_error)
        query_law = replace(query_law, log_weight=query_law.log_weight + law.log_weight)
        if len(self._radices) == 1:
            return replace(query_law, start=query_law.start + int(self._least[0]))
        return self._vectors(query_law)

    def _allowed(self, count: CountIs) -> NDArray[np.bool_]:
        """Return for every code whether it has a count in the range that a secret says."""
        codes = np.arange(self._size)
        key = tuple(state in count.states for state in self._states)
        if key in self._same:
            number = codes % self._radices[0] + self._least[0]
        elif key in self._other:
            number = self._records - (codes % self._radices[0] + self._least[0])
        else:
            place = self._size // self._rows * (self._records + 1) ** self._sets.index(key)
            number = codes // place % (self._records + 1)
        low = 0 if count.at_least is None else count.at_least
        high = self._records if count.at_most is None else count.at_most
        return (number >= low) & (number <= high)

    def _vectors(self, law: Law) -> VectorLaw:
        positive = law.masses.positive
        rest = law.start + np.flatnonzero(positive)
        digits: list[NDArray[np.int64]] = []
        for radix, least in zip(self._radices, self._least, strict=True):
            digits.append(rest % radix + least)
            rest = rest // radix
        sums, weights = np.array(digits), self._query.weights
        points = (weights[:, 1:] - weights[:, :1]) @ sums if self._of_counts else sums
        return VectorLaw(np.ascontiguousarray(points.T), law.masses[positive], law.log_error)


def _spelled(number: int) -> str:
    """Write a number that may have thousands of digits."""
    return f"{number:,}" if number < 10**15 else f"10^{math.log10(number):.0f}"
