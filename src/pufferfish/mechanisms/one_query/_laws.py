"""Laws of additive queries on Bayesian networks, given secrets: exact inference, without listing databases."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._base.words import did_you_mean, names_of
from pufferfish._core.chains.markov import stationary_log_error
from pufferfish._core.laws.law import Law, VectorLaw, sum_of
from pufferfish._core.laws.of_chains import AdditiveChain, LawFamily
from pufferfish._core.laws.of_networks import Factor, additive_law, all_node_laws
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.numbers.wide import Wide
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, QueryError
from pufferfish.mechanisms.one_query.pairs import (
    About,
    Coding,
    LawPair,
    Values,
    both,
    clique_conditions,
    counts_of,
    law_of_values,
    line_through,
    pairs_of_secrets,
    place_of,
    possible_pair,
    records_of,
)
from pufferfish.queries import BoundQuery, FunctionQuery, JointQuery, LinearQuery, Query, StepQuery
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.joint_distribution import Cliques, GivenLaws, JointDistribution, exact_law, exact_number
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Theta
from pufferfish.theta.secrets import CountIs, RecordIs, Secret, SecretPair, check_states
from pufferfish.theta.states import state_label

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
            yield from _of_chain_secrets(index, chain, steps, query, secrets)


def chain_work(theta: Theta, lengths: Sequence[ChainLength], query: BoundQuery) -> float:
    """Return about how many multiplications the laws of a query take, under all chains; 0 where they are refused."""
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


def _of_chain_secrets(
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
        allowed = _allowed_records(secret, chain, steps)
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


def _allowed_records(secret: Secret, chain: MarkovChain, steps: Sequence[int]) -> list[list[NDArray[np.bool_] | None]]:
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


# -- Laws of additive queries on Markov chains -------------------------------------------------------------------------


def network_pairs(
    index: int, network: BayesianNetwork, query: LinearQuery, secrets: Sequence[SecretPair] | None
) -> Iterator[LawPair]:
    """Yield the pairs of laws of the secrets, or of any two values of any node."""
    pairs = _of_nodes(index, network, query) if secrets is None else _of_secrets(index, network, query, secrets)
    try:
        yield from pairs
    except ModelError as error:
        raise NotApplicableError(str(error)) from error


def _of_nodes(index: int, network: BayesianNetwork, query: LinearQuery) -> Iterator[LawPair]:
    coding = Coding(query, (), network.states, len(network.nodes))
    group = {node: len(part) for part in network.components for node in part}
    for done, (j, joint) in enumerate(all_node_laws(network.tables, network.sizes, _weights(network, coding.values))):
        report_progress("laws of the query", done / len(network.nodes))
        node = network.nodes[j]
        names = network.node_states[node]
        laws = [coding.decoded(_law(joint, joint.masses[x], network)) for x in range(len(names))]
        for a, b in combinations(range(len(names)), 2):
            about = About(coding.norm, index, group[node], state_label(node), (names[a], names[b]))
            yield from possible_pair(laws[a], laws[b], about)


def _of_secrets(
    index: int, network: BayesianNetwork, query: LinearQuery, secrets: Sequence[SecretPair]
) -> Iterator[LawPair]:
    coding = Coding(query, counts_of([s for pair in secrets for s in pair]), network.states, len(network.nodes))
    weights = _weights(network, coding.values)

    def law_of(secret: Secret) -> Law | VectorLaw | None:
        law = additive_law(network.tables, network.sizes, weights, allowed=_allowed(secret, network))
        return coding.decoded(_law(law, law.masses, network), counts_of([secret]))

    yield from pairs_of_secrets(secrets, law_of, coding.norm, index, max(network.groups))


def _law(law: Factor, masses: Wide, network: BayesianNetwork) -> Law | None:
    if not masses.positive.any():
        return None
    # the rows of all tables are divided by their sums
    return Law.of(law.start, masses, law.log_error + 4 * len(network.nodes) * UNIT)


def _weights(network: BayesianNetwork, values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return what every node adds to the code in each of its own states."""
    order = {state: x for x, state in enumerate(network.states)}
    rows = np.broadcast_to(values, (len(network.nodes), len(network.states)))
    return [rows[j][[order[state] for state in network.node_states[node]]] for j, node in enumerate(network.nodes)]


def _allowed(secret: Secret, network: BayesianNetwork) -> list[NDArray[np.bool_] | None]:
    check_states(secret, network.states)
    masks: list[NDArray[np.bool_] | None] = [None] * len(network.nodes)
    for condition in records_of(secret, network.kind):
        if condition.record not in network.nodes:
            hint = did_you_mean(condition.record, network.nodes)
            raise ParameterError(
                f"secret {str(secret)!r}: there is no node {condition.record!r}.{hint} Nodes: {names_of(network.nodes)}"
            )
        names = network.node_states[condition.record]
        unknown = [state for state in condition.states if state not in names]
        if unknown:
            hint = did_you_mean(unknown[0], names)
            raise ParameterError(
                f"secret {str(secret)!r}: the node has no state {unknown[0]!r}.{hint} States: {names_of(names)}"
            )
        j = network.nodes.index(condition.record)
        masks[j] = both(masks[j], [state in condition.states for state in names])
    return masks


# -- Laws of the number of people who have it ------------------------------------------------------------------------


def clique_pairs(
    index: int, cliques: Cliques, query: LinearQuery, secrets: Sequence[SecretPair] | None
) -> Iterator[LawPair]:
    """Yield the pairs of laws of the secrets, or of having it or not for a member of every kind of clique."""
    # two states are always on one line; counting those who have it or those who do not is all the same
    line = query.line
    assert line is not None
    if secrets is not None:
        yield from pairs_of_secrets(secrets, partial(_given, cliques), line.norm, index, max(cliques.groups))
        return
    kinds = Counter(cliques.laws)
    for law in kinds:
        clique = cliques.laws.index(law)
        rest = sum_of((_exact(kind), times - (kind == law)) for kind, times in kinds.items())
        member_laws = [cliques.given_member(clique, has_it) for has_it in (0, 1)]
        if all(any(masses) for masses in member_laws):
            mu, nu = (sum_of([(_exact(masses), 1)], rest) for masses in member_laws)
            yield LawPair(mu, nu, About(line.norm, index, len(law) - 1, None, (cliques.states[0], cliques.states[1])))


def _given(cliques: Cliques, secret: Secret) -> Law | None:
    """Return the law of the number of people who have it, given a secret; None if that is impossible."""
    known, fits = clique_conditions(secret, cliques)
    laws = [cliques.given_members(c, having, lacking) for c, (having, lacking) in enumerate(known or ())]
    if known is None or not all(any(masses) for masses in laws):
        return None
    total = sum_of((_exact(masses), 1) for masses in laws)
    if fits is None:
        return total
    masses = total.masses.where(np.array([fits(total.start + n) for n in range(total.size)]))
    return Law.of(total.start, masses, total.log_error) if masses.positive.any() else None


def _exact(masses: Sequence[Fraction]) -> Law:
    """Return the law with these masses on the whole numbers from 0 on."""
    positive = [j for j, mass in enumerate(masses) if mass]
    return Law.exact(positive[0], masses[positive[0] : positive[-1] + 1])


# -- Laws that the user computes -------------------------------------------------------------------------------------


def given_pairs(index: int, theta: GivenLaws, query: Query, bound: BoundQuery) -> Iterator[LawPair]:
    """Yield the pairs of laws that a user's function gives for a query."""
    given_laws = theta.laws_of(query)
    laws = {secret: _masses(secret, law, bound) for secret, law in given_laws.items()}
    line = line_through([value for law in laws.values() for value in law])
    norm = 1 if line is None else line.norm
    pairs = list(theta.pairs_of(given_laws))
    yield from pairs_of_secrets(pairs, lambda s: law_of_values(laws[s], line), norm, index, theta.groups[0])


def _masses(secret: Any, law: Mapping[Any, Any], bound: BoundQuery) -> Values:
    probabilities = exact_law(list(law.values()), f"law of {secret!r}")
    masses: dict[tuple[int, ...], Fraction] = {}
    for value, mass in zip(law, probabilities, strict=True):
        outputs: list[Any] = list(value) if isinstance(value, tuple) else [value]
        numbers = [exact_number(v) for v in outputs]
        if len(numbers) != len(bound.labels):
            raise ModelError(f"law of {secret!r}: {value!r} has {len(numbers)} outputs, the query {len(bound.labels)}")
        # floats such as 1/3 are the nearest to a multiple of the unit, not one
        key = tuple(round(n / bound.unit) for n in numbers if n is not None)
        if None in numbers or any(
            abs(n / bound.unit - w) > Fraction(1, 10**6) for w, n in zip(key, numbers, strict=True) if n is not None
        ):
            raise ModelError(f"law of {secret!r}: {value!r} is no multiple of the query's unit {float(bound.unit):g}")
        if mass:
            masses[key] = masses.get(key, Fraction(0)) + mass
    return masses


# -- Laws of any query on explicit joint distributions ---------------------------------------------------------------


def joint_pairs(
    index: int, joint: JointDistribution, query: LinearQuery | FunctionQuery, secrets: Sequence[SecretPair] | None
) -> Iterator[LawPair]:
    """Yield the pairs of laws of the secrets, or of any two values of any record; impossible secrets are left out."""
    order = {state: x for x, state in enumerate(joint.states)}
    if isinstance(query, FunctionQuery):
        values = [query.function(row) for row in joint.databases]
    else:
        values = [query.value([order[state] for state in row]) for row in joint.rows]
    line = line_through(values)
    norm, length = 1 if line is None else line.norm, len(joint.variables)

    def law_of(secret: Secret) -> Law | VectorLaw | None:
        masses: dict[tuple[int, ...], Fraction] = {}
        for i in joint.rows_where(secret):
            masses[values[i]] = masses.get(values[i], Fraction(0)) + joint.probabilities[i]
        return law_of_values(masses, line) if masses else None

    if secrets is not None:
        yield from pairs_of_secrets(secrets, law_of, norm, index, length)
        return
    for column, variable in enumerate(joint.variables):
        laws = {state: law_of(RecordIs(variable, state)) for state in joint.values_of(column)}
        for a, b in combinations(laws, 2):
            yield from possible_pair(laws[a], laws[b], About(norm, index, length, column, (a, b)))


# -- Laws of a query given secrets -----------------------------------------------------------------------------------


def pairs_of_laws(
    theta: Theta, lengths: Sequence[ChainLength], query: Query, bound: BoundQuery, secrets: Sequence[SecretPair] | None
) -> Iterator[LawPair]:
    """Yield the pairs of laws of a query given secrets that are possible (Definition 2.1), under every θ."""
    if isinstance(theta, ChainClass):
        query_on_steps = bound if isinstance(bound, StepQuery) else _linear(bound, "Markov chains")
        yield from chain_pairs(theta, lengths, query_on_steps, secrets)
        return
    for index, member in enumerate(theta.members):
        if isinstance(member, JointDistribution):
            assert not isinstance(bound, StepQuery | JointQuery)  # a mechanism refuses to bind it
            yield from joint_pairs(index, member, bound, secrets)
        elif isinstance(member, Cliques):
            linear = _linear(bound, member.kind)
            if linear.factors is not None:
                raise NotApplicableError("people in a clique are exchangeable, so every record must count alike")
            yield from clique_pairs(index, member, linear, secrets)
        elif isinstance(member, BayesianNetwork):
            yield from network_pairs(index, member, _linear(bound, member.kind), secrets)
        elif isinstance(member, GivenLaws):
            if secrets is not None:
                raise ParameterError(
                    "GivenLaws names its secrets itself: leave out secrets, and give pairs to GivenLaws"
                )
            yield from given_pairs(index, member, query, bound)
        else:
            raise NotApplicableError(f"the law of a query is not known for {theta.kind}")


def _linear(bound: BoundQuery, kind: str) -> LinearQuery:
    if not isinstance(bound, LinearQuery):
        raise QueryError(f"a function of the database needs a JointDistribution, and Θ is a class of {kind}")
    return bound
