"""Laws of additive queries on Markov chains, given secrets."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._core.chains.markov import stationary_log_error
from pufferfish._core.laws.law import Law, VectorLaw, sum_of
from pufferfish._core.laws.of_chains import AdditiveChain, LawFamily
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.numbers.wide import Wide
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms.one_query.pairs import (
    About,
    Coding,
    LawPair,
    both,
    counts_of,
    place_of,
    possible_pair,
    records_of,
)
from pufferfish.queries import BoundQuery, LinearQuery, StepQuery
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Theta
from pufferfish.theta.secrets import CountIs, RecordIs, Secret, SecretPair, check_states

# -- The number of steps of some kind --------------------------------------------------------------------------------


class StepCoding:
    """What records and steps add to a query about steps with one output; secrets that count records are refused."""

    norm: int = 1  # how far the output moves when the number of steps moves by 1, in units

    def __init__(self, query: StepQuery, counts: Sequence[CountIs]) -> None:
        if counts:
            raise NotApplicableError(
                "a number of steps is not covered together with secrets about how many records are in some states: "
                "give secrets about single records, or leave them out"
            )
        self.values: NDArray[np.int64] = np.zeros(len(query.outputs), dtype=np.int64)
        self.moves: NDArray[np.int64] = (query.outputs == 0).astype(np.int64)

    def decoded(self, law: Law | None, counts: Sequence[CountIs] = ()) -> Law | None:
        """Return the law of the query: that of the statistic."""
        return law


_MOST_WORK = 1e10  # multiplications of a sweep over the partial sums; about half a minute


def chain_pairs(
    theta: ChainClass,
    lengths: Sequence[ChainLength],
    query: LinearQuery | StepQuery,
    secrets: Sequence[SecretPair] | None,
) -> Iterator[LawPair]:
    """Yield the pairs of laws that decide: of any two values of any record, or of the secrets that are given."""
    for chain in lengths:
        if chain.steps != chain.records:
            raise NotApplicableError(
                f"a chain of {chain.steps:,} steps has {chain.records:,} observed records, and this mechanism does "
                "not cover gaps: use LeakagePropagation"
            )
    steps = [chain.steps for chain in lengths]
    for index, chain in enumerate(theta.chains):
        if secrets is None:
            yield from _of_records(index, chain, steps, query)
        else:
            yield from _of_secrets(index, chain, steps, query, secrets)


def chain_work(theta: Theta, lengths: Sequence[ChainLength], query: BoundQuery) -> float:
    """Return about how many multiplications the laws of a query take, under all chains; 0 where they are refused.

    Other models are small, and no work.
    """
    if not isinstance(query, LinearQuery | StepQuery):
        return 0.0
    total = 0.0
    for chain in theta.chains:
        try:
            asked = _asked(query, chain, [length.steps for length in lengths])
        except NotApplicableError:
            return 0.0
        starts = len(_starts(chain)[0])
        times = (2 + (len(lengths) > 1)) * starts  # a third sweep has what other chains add
        total += times * sum(_work(chain.k, asked.values, [n], asked.coding.moves) for n in set(asked.steps))
    return total


class _Asked(NamedTuple):
    """A query, and what records between the first and the last that are read add: others are left out."""

    coding: Coding | StepCoding
    values: NDArray[np.int64]
    steps: Sequence[int]
    before: int


def _asked(query: LinearQuery | StepQuery, chain: MarkovChain, steps: Sequence[int]) -> _Asked:
    coding = _coding(query, (), chain, steps)
    values, before, after = _read(coding.values)
    factors = None if isinstance(query, StepQuery) else query.factors
    return _Asked(coding, values, steps if factors is None else [len(factors) - before - after], before)


def _starts(chain: MarkovChain) -> tuple[list[Wide], float]:
    """Return the laws of the first record that decide, and their relative error."""
    start = chain.initial_distribution
    if not isinstance(start, str):
        return [Wide.of(start)], 0.0
    if start == "stationary":
        return [Wide.of(chain.stationary_distribution)], stationary_log_error(chain.k)
    return [Wide.of(row) for row in np.eye(chain.k)], 0.0


def _coding(
    query: LinearQuery | StepQuery, counts: Sequence[CountIs], chain: MarkovChain, steps: Sequence[int]
) -> Coding | StepCoding:
    if isinstance(query, StepQuery):
        return StepCoding(query, counts)
    return Coding(query, counts, chain.states, sum(steps))


def _of_records(
    index: int, chain: MarkovChain, steps: Sequence[int], query: LinearQuery | StepQuery
) -> Iterator[LawPair]:
    factors = None if isinstance(query, StepQuery) else query.factors
    coding, values, steps, before = _asked(query, chain, steps)
    _check_work(chain.k, values, steps, coding.moves)
    starts, error = _starts(chain)
    starts = [_later(start, chain, before) for start in starts]
    error += 4 * before * (chain.k + 4) * UNIT

    def additive(start: Wide, length: int, period: int = 1, others: Law | None = None) -> AdditiveChain:
        matrix, moves = chain.transition_matrix, coding.moves
        return AdditiveChain(start, matrix, values, length, log_error=error, period=period, others=others, moves=moves)

    # of any initial law other chains are left out: what is independent of the secret would only blur both laws alike
    several = len(steps) > 1 and len(starts) == 1
    totals = {length: additive(starts[0], length).total() for length in set(steps)} if several else {}
    period = chain.period if chain.is_irreducible else 1
    for length in dict.fromkeys(steps):
        counts = Counter(steps) - Counter([length])
        others = sum_of((totals[size], times) for size, times in counts.items()) if several else None
        sweeps = [additive(start, length, period, others).nodes() for start in starts]
        for nodes in zip(*sweeps, strict=True):
            laws = [[coding.decoded(node.laws[a]) for node in nodes] for a in range(chain.k)]
            for a, b in combinations(range(chain.k), 2):
                whole = length if factors is None else len(factors)
                about = About(coding.norm, index, whole, nodes[0].node + before, (chain.states[a], chain.states[b]))
                yield from _pairs(laws[a], laws[b], about)


def _pairs(
    mus: Sequence[Law | VectorLaw | None], nus: Sequence[Law | VectorLaw | None], about: About
) -> Iterator[LawPair]:
    """Yield what decides between two secrets whose laws are given for every first state that θ allows by itself."""
    if len(mus) == 1:
        yield from possible_pair(mus[0], nus[0], about)
        return
    numbers = [[law for law in laws if not isinstance(law, VectorLaw)] for laws in (mus, nus)]
    if len(numbers[0]) == len(mus) and len(numbers[1]) == len(nus):
        if any(numbers[0]) and any(numbers[1]):
            yield LawPair(LawFamily(tuple(numbers[0])), LawFamily(tuple(numbers[1])), about)
        return
    for mu, nu in product(mus, nus):  # of vectors any two first states at once: no less than any mixture of them
        yield from possible_pair(mu, nu, about)


def _read(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], int, int]:
    """Leave out the records before the first and after the last that are read: what they tell goes through those."""
    if values.ndim == 1:
        return values, 0, 0
    read = np.flatnonzero((values != values[:, :1]).any(axis=1))
    first, last = int(read[0]), int(read[-1])
    kept = values[first : last + 1]
    alike = bool((kept == kept[0]).all())
    return kept[0] if alike else kept, first, len(values) - 1 - last


def _later(start: Wide, chain: MarkovChain, steps: int) -> Wide:
    """Return the law of the record ``steps`` after the first."""
    law, still, p = start[:, None], np.zeros(chain.k, dtype=np.int64), Wide.of(chain.transition_matrix)
    if isinstance(chain.initial_distribution, str) and chain.initial_distribution == "stationary":
        return start
    for _ in range(steps):
        law = law.pushed(p, still)
    return law[:, 0]


def _work(k: int, values: NDArray[np.int64], steps: Sequence[int], moves: NDArray[np.int64] | None) -> float:
    """Return about how many multiplications a sweep over the partial sums takes."""
    width = int((values.max(axis=-1) - values.min(axis=-1)).max()) + (0 if moves is None else int(moves.max()))
    return max(steps) * (sum(steps) * width + 1) * k * k / 2


def _check_work(k: int, values: NDArray[np.int64], steps: Sequence[int], moves: NDArray[np.int64] | None) -> None:
    work = _work(k, values, steps, moves)
    if work > _MOST_WORK:
        raise NotApplicableError(
            f"the query's law over {sum(steps):,} records of {k} states takes about {work:.1g} operations (at most "
            f"{_MOST_WORK:.0e}); use LeakagePropagation"
        )


def _of_secrets(
    index: int, chain: MarkovChain, steps: Sequence[int], query: LinearQuery | StepQuery, secrets: Sequence[SecretPair]
) -> Iterator[LawPair]:
    counts = counts_of([secret for pair in secrets for secret in pair])
    coding = _coding(query, counts, chain, steps)
    starts, error = _starts(chain)
    if len(starts) > 1 and len(steps) > 1:
        raise NotApplicableError(
            'secrets of your own under initial_distribution="any" are covered for one chain, not for several'
        )
    width = int((coding.values.max(axis=-1) - coding.values.min(axis=-1)).max())
    _check_work(chain.k, np.array([0, width]), steps, coding.moves)

    def law(secret: Secret, start: Wide) -> Law | None:
        allowed = _allowed(secret, chain, steps)
        parts: list[tuple[Law, int]] = []
        for c, length in enumerate(steps):
            one = AdditiveChain(
                start, chain.transition_matrix, coding.values, length, log_error=error, moves=coding.moves
            ).given(allowed[c])
            if one is None:
                return None
            parts.append((one, 1))
        return sum_of(parts)

    for i, pair in enumerate(secrets):
        report_progress("laws of the query", i / len(secrets))
        mus, nus = ([coding.decoded(law(secret, start), counts_of([secret])) for start in starts] for secret in pair)
        node = _common_record(pair)
        yield from _pairs(mus, nus, About(coding.norm, index, max(steps), node, (str(pair[0]), str(pair[1]))))


def _allowed(secret: Secret, chain: MarkovChain, steps: Sequence[int]) -> list[list[NDArray[np.bool_] | None]]:
    """Return for every record of every chain the states that a secret leaves it."""
    check_states(secret, chain.states)
    masks: list[list[NDArray[np.bool_] | None]] = [[None] * length for length in steps]
    for condition in records_of(secret, "Markov chains"):
        c, t = place_of(condition.record, steps, secret, ("chain", "step"))
        masks[c][t] = both(masks[c][t], [state in condition.states for state in chain.states])
    return masks


def _common_record(pair: SecretPair) -> int | None:
    records = {c.record for secret in pair for c in secret.conditions if isinstance(c, RecordIs)}
    alone = all(len(secret.conditions) == 1 for secret in pair)
    only = records.pop() if len(records) == 1 and alone else None
    return only if isinstance(only, int) else None
