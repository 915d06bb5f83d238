"""Models that are awkward for a reason, for every oracle: states in another order, rare and impossible, in groups."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import pufferfish as pf

__all__ = ["Restated", "forgetting", "odd_rows", "restated"]

Array = NDArray[np.float64]


def odd_rows(rng: np.random.Generator, k: int, rare: tuple[int, float] | None = None) -> Array:
    """Rows of a matrix between k states: with zeros, all equal, two states alike, or a state that only a start has.

    A ``rare`` one, by its place, is so many times less likely than it would be; at 0 it is impossible.
    """
    rows = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 4.0])), size=k)
    kind = rng.choice(["plain", "zeros", "equal", "alike", "only the start"])
    if kind == "zeros":
        rows = np.where(rng.random((k, k)) < 0.35, 0.0, rows)
        rows[rows.sum(axis=1) == 0, int(rng.integers(k))] = 1.0
    elif kind == "equal":
        rows[:] = rows[0]
    elif kind == "alike":
        rows[-1] = rows[0]
    elif kind == "only the start":
        rows[:, int(rng.integers(k))] = 0.0
    if rare is not None:
        rows[:, rare[0]] *= rare[1]
        rows[rows.sum(axis=1) == 0] = np.arange(k) != rare[0]
    return rows / rows.sum(axis=1, keepdims=True)


def forgetting(each: Sequence[Array], start: Array, states: Sequence[str]) -> pf.ForgettingClass:
    """The smallest class with one step that a chain with a matrix for every step is in."""
    sigma, law = 0.0, start
    for matrix in each:
        joint = law[:, None] * matrix
        for kernel in (matrix[law > 0], (joint / np.maximum(joint.sum(axis=0), 1e-300)).T[joint.sum(axis=0) > 0]):
            apart = np.abs(kernel[:, None] - kernel[None]).sum(axis=2) / 2
            sigma = max(sigma, float(apart.max()))
        law = law @ matrix
    return pf.ForgettingClass(steps=1, overlap=max(1 - sigma - 1e-12, 1e-9), states=states)


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
