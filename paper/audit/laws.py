"""Examples of every class of chains, and laws of short chains that it allows: what proofs are held against.

Nothing here proves anything. An audit, and the contract of every engine, compute the true loss under each of these laws
from the definition; so they come near what a class allows: its corners, states that are kept and states that are left,
one-way and permuted ones, matrices that change where the class lets them. A new kind of class is registered here.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish.theta.chain_class import CHAIN_MODELS, CONTINUA, ChainClass
from pufferfish.theta.continua import BinaryChainInterval, ForgettingClass, IntervalChain
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.tuple_chains import HigherOrderChain, StaysChain

__all__ = ["ChainLaw", "examples_of", "kinds_of_chains", "some_laws"]

Array = NDArray[np.float64]

_CORNER = 1e-9
"""The supremum over all first laws is approached at a corner, and is often not what a point mass has."""


class ChainLaw(NamedTuple):
    """The law of a short chain: of its first m records, on m axes, and of each later one given the m before it."""

    first: Array
    steps: Sequence[Array]


# -- Laws of so many records -----------------------------------------------------------------------------------------


@singledispatch
def some_laws(theta: Any, length: int) -> Iterator[ChainLaw]:
    """Yield laws of so many records that a class, or a chain, allows."""
    raise TypeError(f"no laws are registered for {type(theta).__name__}")


@some_laws.register
def _(theta: ChainClass, length: int) -> Iterator[ChainLaw]:
    return itertools.chain.from_iterable(some_laws(member, length) for member in theta.members)


@some_laws.register
def _(theta: MarkovChain, length: int) -> Iterator[ChainLaw]:
    for first in _starts_of(theta.initial_distribution, lambda: theta.stationary_distribution, theta.k):
        yield ChainLaw(first, [theta.transition_matrix] * (length - 1))


@some_laws.register
def _(theta: PeriodicChain, length: int) -> Iterator[ChainLaw]:
    """From every phase on."""
    cycle = theta.cycle
    for phase in range(len(cycle)):
        for first in _starts_of(theta.initial_distribution, lambda at=phase: theta.periodic_distribution[at], theta.k):
            yield ChainLaw(first, [cycle[(phase + t) % len(cycle)] for t in range(length - 1)])


@some_laws.register
def _(theta: HigherOrderChain, length: int) -> Iterator[ChainLaw]:
    m = theta.order
    for first in _starts_of(theta.initial_distribution, lambda: theta.stationary_distribution, theta.k, m):
        if length < m:
            yield ChainLaw(first.sum(axis=tuple(range(length, m))), ())
        else:
            yield ChainLaw(first, [theta.tensor] * (length - m))


@some_laws.register
def _(theta: StaysChain, length: int) -> Iterator[ChainLaw]:
    state, size = theta.tuples[:, 0], len(theta.tuples)
    is_of = (state[:, None] == np.arange(theta.k)).astype(np.float64)
    for first in _starts_of(theta.initial_distribution, lambda: theta.stationary_distribution, size):
        # law[…, c]: of the states up to here, and the last record's state and kind
        law = first[None, :]
        for _ in range(length - 1):
            law = (law[:, None, :] * is_of.T[None]).reshape(-1, size) @ theta.kernel
        yield ChainLaw((law[:, None, :] * is_of.T[None]).sum(axis=2).reshape((theta.k,) * length), ())


@some_laws.register
def _(theta: BinaryChainInterval, length: int) -> Iterator[ChainLaw]:
    """Those of the four corners."""
    for p0, p1 in itertools.product({theta.low, theta.high}, repeat=2):
        yield from some_laws(MarkovChain([[p0, 1 - p0], [1 - p1, p1]], theta.initial_distribution), length)


@some_laws.register
def _(theta: IntervalChain, length: int) -> Iterator[ChainLaw]:
    """States that last, that are left, go round or one way; and these in turn."""
    k = theta.k
    lasts, rounds = (np.roll(np.eye(k), by, axis=1) for by in (0, 1))
    wished = [lasts, -lasts, rounds, *(np.tile(np.eye(k)[y], (k, 1)) for y in range(k))]
    matrices = [_nearest(theta, wish) for wish in wished]
    turns = [(p, p) for p in matrices] + list(itertools.combinations(matrices, 2))
    for first, (even, odd) in itertools.product(_some_starts(k), turns):
        yield ChainLaw(first, [odd if t % 2 else even for t in range(length - 1)])


def _nearest(theta: IntervalChain, wish: Array) -> Array:
    """Return the matrix of the class that goes where most is wished for, as far as its bounds allow."""
    matrix = theta.lower.copy()
    for x, row in enumerate(matrix):
        for y in np.argsort(-wish[x], kind="stable"):
            row[y] += min(theta.upper[x, y] - row[y], max(1 - row.sum(), 0.0))
    return matrix / matrix.sum(axis=1, keepdims=True)


@some_laws.register
def _(theta: ForgettingClass, length: int) -> Iterator[ChainLaw]:
    """Those of some members, and of others that forget all at once, in turn.

    The latter keep their state, or go round, and draw it anew with some probability once in as many steps as the
    shortest statement has: every stretch of that length holds one such step.
    """
    for chain in theta.some_members:
        yield from some_laws(chain, length)
    k, soonest = theta.k, theta.steps[0]
    keeps = min((1 - share) ** (1 / (n // soonest)) for n, share in theta.pairs) * (1 - 1e-12)
    even = np.full(k, 1 / k)
    drawn = keeps * np.eye(k) + (1 - keeps) * even
    for moves, shift in itertools.product((np.eye(k), np.roll(np.eye(k), 1, axis=1)), range(min(soonest, length))):
        yield ChainLaw(even, [drawn if (t + shift) % soonest == 0 else moves for t in range(length - 1)])


def _starts_of(initial: Array | str, stationary: Callable[[], Array], k: int, order: int = 1) -> Iterable[Array]:
    """Return the law of the first records of a chain: the given or the stationary one, or some where it is any."""
    if not isinstance(initial, str):
        return [initial]
    return _some_starts(k, order) if initial == "any" else [stationary()]


def _some_starts(k: int, order: int = 1) -> Iterator[Array]:
    """Yield laws of the first records of a chain that may start anyhow: even ones, of two values, and near a corner.

    Of several first records it tells most that they are all equal.
    """
    size = k**order
    alike = np.arange(k) * ((size - 1) // (k - 1))  # places of the values whose records are all equal
    even = np.full(size, 1 / size)
    yield even.reshape((k,) * order)
    for x in range(k):
        for y in range(x):
            two = _CORNER * even
            two[alike[[x, y]]] += (1 - _CORNER) / 2
            yield two.reshape((k,) * order)
    for value in range(size):
        for rest in (0.5, 0.2, _CORNER):
            corner = rest * even
            corner[value] += 1 - rest
            yield corner.reshape((k,) * order)


# -- Examples of every kind ------------------------------------------------------------------------------------------


def kinds_of_chains() -> dict[str, Any]:
    """Return every kind of class of chains in the package, by name."""
    own = [kind for kind in CONTINUA.values() if kind.__module__.startswith("pufferfish.")]
    return {kind.__name__: kind for kind in (ChainClass, *own)}


def examples_of(kind: Any) -> dict[str, Any]:
    """Return a few classes, or chains, of a kind, by what they are."""
    if kind is not ChainClass:
        return dict(_EXAMPLES[kind])
    sticky, second = MarkovChain([[0.9, 0.1], [0.2, 0.8]]), [[0.7, 0.3], [0.1, 0.9]]
    three = [[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.05, 0.15, 0.8]]
    more = {name: model for chains in CHAIN_MODELS for name, model in _EXAMPLES[chains].items()}
    _, *continua = kinds_of_chains().values()
    wholes = [whole for each in continua for whole in _EXAMPLES[each].values() if whole.states == sticky.states]
    return {
        "two states, slow": ChainClass((sticky,)),
        "two chains, any start": ChainClass((MarkovChain(sticky.transition_matrix, "any"), MarkovChain(second, "any"))),
        "three states, slow": ChainClass((MarkovChain(three),)),
        **{name: ChainClass((model,)) for name, model in more.items()},
        "a chain, a clock, and more memory": ChainClass((sticky, *more.values())),
        "a chain and what lies between bounds": ChainClass((sticky, *wholes)),
    }


_STAYS, _MOVES, _SWAP = [[0.99, 0.01], [0.01, 0.99]], [[0.5, 0.5], [0.5, 0.5]], [[0, 1], [1, 0]]
_BACK, _SLOW = [[[0.95, 0.05]] * 2, [[0.05, 0.95]] * 2], [[[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.2, 0.8]]]
_LOWER = np.array([[0.6, 0.1, 0.0], [0.1, 0.6, 0.1], [0.0, 0.1, 0.6]])

_EXAMPLES: dict[Any, dict[str, Any]] = {
    PeriodicChain: {
        "a clock: four sticky steps, four free ones": PeriodicChain([_STAYS] * 4 + [_MOVES] * 4, [0.5, 0.5])
    },
    HigherOrderChain: {
        "order two: repeats the last record but one": HigherOrderChain(_BACK, np.full((2, 2), 0.25)),
        "order two, any two first records": HigherOrderChain(_SLOW, "any"),
    },
    StaysChain: {
        "stays of two kinds in one state": StaysChain(_SWAP, [[(0.5, 0.5), (0.5, 0.95)], [(1.0, 0.8)]]),
        "stays of two kinds, any start": StaysChain(_SWAP, [[(0.7, 0.3), (0.3, 0.9)], [(0.6, 0.2), (0.4, 0.9)]], "any"),
        "stays of two kinds, a given start": StaysChain(
            _SWAP, [[(0.7, 0.3), (0.3, 0.9)], [(1.0, 0.6)]], [0.1, 0.3, 0.6]
        ),
    },
    BinaryChainInterval: {
        "two states that last, any start": BinaryChainInterval(0.6, 0.9),
        "two states that alternate or last": BinaryChainInterval(0.2, 0.8, initial_distribution="stationary"),
    },
    IntervalChain: {
        "a matrix between bounds": IntervalChain([[0.75, 0.05], [0.1, 0.7]], [[0.95, 0.25], [0.3, 0.9]]),
        "three states between bounds": IntervalChain(_LOWER, _LOWER + 0.2),
    },
    ForgettingClass: {
        "forgets half within two steps": ForgettingClass(2, 0.5, ["no", "yes"]),
        "forgets some soon and most later": ForgettingClass([1, 3], [0.2, 0.8], ["no", "yes"]),
        "three states, forgotten in three steps": ForgettingClass(3, 0.6, ["a", "b", "c"]),
    },
}
