"""Classes Θ of every kind with what shortcuts trip over: exact equalities, and states that cannot come back.

Privacy was lost where a branch was taken on an exact equality (a tensor that ignores its memory), and where a state
cannot occur (a zero column). So matrices here have equal rows, two states alike, no state that is left, one that only
the start has, an order of states that goes round; and every kind of class is made of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pufferfish as pf
from paper.audit.laws import kinds_of_chains
from pufferfish.errors import ModelError
from pufferfish.theta.model_class import as_theta

__all__ = ["KINDS", "SHAPES", "Restated", "odd_class", "odd_rows", "odd_start", "restated"]

Array = NDArray[np.float64]
Generator = np.random.Generator


def _normal(rows: Array) -> Array:
    return rows / rows.sum(axis=-1, keepdims=True)


def _plain(rng: Generator, k: int) -> Array:
    return rng.dirichlet(np.full(k, rng.choice([0.4, 1.0, 4.0])), size=k)


def _alike(rng: Generator, k: int) -> Array:
    """Two states that are followed alike, and perhaps are reached alike: duplicates of each other."""
    rows = _plain(rng, k)
    rows[-1] = rows[0]
    if k > 2 and rng.random() < 0.5:
        rows[:, -1] = rows[:, 0]
    return _normal(rows)


def _zeros(rng: Generator, k: int) -> Array:
    rows = np.where(rng.random((k, k)) < 0.4, 0.0, _plain(rng, k))
    rows[rows.sum(axis=1) == 0, int(rng.integers(k))] = 1.0
    return _normal(rows)


def _only_the_start(rng: Generator, k: int) -> Array:
    """A zero column: one state is never reached."""
    rows, state = _plain(rng, k), int(rng.integers(k))
    rows[:, state] = 0.0
    return _normal(rows)


def _rare(rng: Generator, k: int) -> Array:
    rows = _plain(rng, k)
    rows[:, int(rng.integers(k))] *= 0.01
    return _normal(rows)


def _one_way(rng: Generator, k: int) -> Array:
    rows = np.triu(_plain(rng, k))
    return _normal(rows + float(rng.choice([0.0, 1e-12])))


SHAPES: dict[str, Callable[[Generator, int], Array]] = {
    "plain": _plain,
    "equal rows": lambda rng, k: np.tile(rng.dirichlet(np.ones(k)), (k, 1)),
    "even": lambda _, k: np.full((k, k), 1 / k),
    "symmetric": lambda rng, k: (lambda p: p * np.eye(k) + (1 - p) * (np.ones((k, k)) - np.eye(k)) / (k - 1))(
        rng.choice([0.05, 0.5, 0.9, 0.99])
    ),
    "goes round": lambda rng, k: np.eye(k)[rng.permutation(k)],
    "nearly goes round": lambda rng, k: 0.98 * np.eye(k)[rng.permutation(k)] + 0.02 / k,
    "two alike": _alike,
    "zeros": _zeros,
    "only the start": _only_the_start,
    "one way": _one_way,
    "rare": _rare,
}


def odd_rows(rng: Generator, k: int, shape: str | None = None) -> Array:
    """A transition matrix of a shape, or of any."""
    return SHAPES[shape or str(rng.choice(list(SHAPES)))](rng, k)


def odd_start(rng: Generator, size: int) -> Any:
    """An initial law: "stationary", "any", even, a point, or with zeros."""
    how = rng.choice(["stationary", "any", "any", "even", "point", "zeros", "plain"])
    if how in ("stationary", "any"):
        return str(how)
    if how == "even":
        return np.full(size, 1 / size)
    if how == "point":
        return np.eye(size)[rng.integers(size)]
    law = rng.dirichlet(np.ones(size))
    return _normal(np.where(rng.random(size) < 0.3, 0.0, law) + (law == law.max())) if how == "zeros" else law


def _chains(rng: Generator, states: list[str]) -> Any:
    k = len(states)
    found = [_impossible(rng, k) if rng.random() < 0.3 else (odd_rows(rng, k), odd_start(rng, k)) for _ in range(2)]
    return as_theta([pf.MarkovChain(*each, states=states) for each in found[: rng.integers(1, 3)]])


def _impossible(rng: Generator, k: int) -> tuple[Array, Array]:
    """A chain one of whose states cannot occur."""
    rows, start, state = _plain(rng, k), rng.dirichlet(np.ones(k)), int(rng.integers(k))
    rows[:, state] = start[state] = 0.0
    return _normal(rows), _normal(start)


def _clocks_or_memory(rng: Generator, states: list[str]) -> Any:
    k = len(states)
    how = rng.choice(["clock", "memory", "stays"])
    if how == "stays":
        return as_theta(odd_stays(rng, states))
    if how == "clock":
        matrices = [odd_rows(rng, k) for _ in range(int(rng.integers(1, 4)))]
        return as_theta(pf.PeriodicChain(matrices, odd_start(rng, k), states=states))
    order = int(rng.choice([1, 2, 2, 2] if k > 2 else [1, 2, 2, 3]))
    memory = rng.choice(["all", "ignores the oldest", "only the oldest", "none"])
    if memory == "all":
        tensor = np.concatenate([odd_rows(rng, k) for _ in range(k ** (order - 1))]).reshape((k,) * (order + 1))
    else:
        matrix = np.tile(odd_rows(rng, k)[0], (k, 1)) if memory == "none" else odd_rows(rng, k)
        tensor = np.broadcast_to(matrix, (k,) * (order + 1))
        if memory == "only the oldest":
            tensor = np.moveaxis(tensor, -2, 0)
    return as_theta(pf.HigherOrderChain(tensor, odd_start(rng, k**order), states=states))


def odd_stays(rng: Generator, states: Sequence[str]) -> pf.StaysChain:
    """A chain with one to three kinds of stay in a state: some alike, some of one record, some that hardly end."""
    k = len(states)
    exits = _normal(
        np.array([np.where(rng.random(k) < 0.3, 0.0, row) for row in rng.dirichlet(np.ones(k), size=k)])
        * (1 - np.eye(k))
        + 1e-3 * (np.roll(np.eye(k), 1, axis=1))
    )
    keeps = [0.0, 0.3, 0.5, 0.5, 0.9, 0.99, 1 - 1e-9]
    stays = [
        [(float(share), float(rng.choice(keeps))) for share in rng.dirichlet(np.ones(int(rng.integers(1, 4))))]
        for _ in range(k)
    ]
    return pf.StaysChain(exits, stays, odd_start(rng, sum(map(len, stays))), states=states)


def _stays_between(rng: Generator, states: list[str]) -> Any:
    states = states[:2]
    low = float(rng.choice([1e-9, 0.2, 0.5, 0.8]))
    high = float(rng.choice([low, max(low, 0.5), max(low, 0.9)]))
    return pf.BinaryChainInterval(
        low, high, initial_distribution="any" if rng.random() < 0.5 else "stationary", states=states
    )


def _between(rng: Generator, states: list[str]) -> Any:
    k = len(states)
    middle, width = odd_rows(rng, k), rng.choice([0.0, 0.05, 0.3], size=(k, k))
    return pf.IntervalChain(np.maximum(middle - width, 0), np.minimum(middle + width, 1), states=states)


def _forgets(rng: Generator, states: list[str]) -> Any:
    steps = sorted({int(n) for n in rng.integers(1, 5, size=int(rng.integers(1, 3)))})
    return pf.ForgettingClass(steps, np.sort(rng.choice([0.1, 0.5, 0.9, 1.0], size=len(steps))), states)


_OF_KIND: dict[str, Callable[[Generator, list[str]], Any]] = {
    "ChainClass": _chains,
    "clocks or memory": _clocks_or_memory,
    "BinaryChainInterval": _stays_between,
    "IntervalChain": _between,
    "ForgettingClass": _forgets,
}


def _mixed(rng: Generator, states: list[str]) -> Any:
    """Two or three classes together; all on two states, or those that have more."""
    kinds = [kind for kind in _OF_KIND if kind != "BinaryChainInterval" or len(states) == 2]
    return as_theta([_OF_KIND[kind](rng, states) for kind in rng.choice(kinds, int(rng.integers(2, 4)), replace=False)])


KINDS = sorted({*kinds_of_chains(), *_OF_KIND, "mixed"})
"""Every kind of class of chains that some bound covers: one that nothing here makes is an error in every oracle."""


def odd_class(rng: Generator, kind: str, states: Sequence[str]) -> Any:
    """A class of a kind on these states, or on the first two where it has no more."""
    while True:
        try:
            return _mixed(rng, list(states)) if kind == "mixed" else _OF_KIND[kind](rng, list(states))
        except ModelError:  # several stationary laws, say
            continue


@dataclass(frozen=True)
class Restated:
    """Other states for the records of a model.

    Parameters
    ----------
    states : list of str
        The states, in their order.
    groups : dict
        For each state of the model the one that it counts as.
    """

    states: list[str]
    groups: dict[str, str]

    def chain(self, rng: np.random.Generator) -> pf.MarkovChain:
        """A chain on these states, with no more to do with the model than its states."""
        k = len(self.states)
        return pf.MarkovChain(odd_rows(rng, k), rng.dirichlet(np.ones(k)), states=self.states)


def restated(rng: np.random.Generator, states: Sequence[str], how: str) -> Restated:
    """The states of a model as they are, in another order (``permuted``), or in groups in any order (``coarser``)."""
    k = len(states)
    if how == "coarser":
        places = np.concatenate([np.arange(2), rng.integers(0, k - 1, k - 2)]) if k > 2 else np.arange(k)
        names = [f"g{place}" for place in rng.permutation(places)]
        return Restated(
            [str(name) for name in rng.permutation(sorted(set(names)))], dict(zip(states, names, strict=True))
        )
    found = list(states)
    while how == "permuted" and found == list(states):
        found = [str(state) for state in rng.permutation(states)]
    return Restated(found, {state: state for state in states})
