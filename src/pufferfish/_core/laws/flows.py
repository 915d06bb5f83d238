"""Greatest flows between the atoms of two laws, in whole numbers of any size: exact, and each its own proof."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["Flow", "greatest_flow", "indices"]

Flow = list[dict[int, int]]
"""What each atom of q takes from which of p."""


def indices(values: NDArray[np.bool_]) -> list[int]:
    """Return the places where values are true."""
    return np.flatnonzero(values).tolist()


def greatest_flow(close: NDArray[np.bool_], p: list[int], q: list[int], start: Flow, whole: bool) -> Flow:
    """Return a greatest flow from p to q along the pairs that are close, from a flow that has these pairs already.

    Breadth first from every atom of p, forth along all close pairs and back along the flow, until there is room. Where
    there is none, all that the search met is full and stays so: it is a cut, and no other search need enter it. With
    ``whole`` the flow ends there. Atoms that few others reach come first.
    """
    taken = [dict(masses) for masses in start]
    room = [mass - sum(masses.values()) for mass, masses in zip(q, taken, strict=True)]
    supply = list(p)
    for i, mass in (pair for masses in taken for pair in masses.items()):
        supply[i] -= mass
    contested: list[int] = close.sum(axis=0).tolist()
    outside = np.ones(len(q), dtype=bool)
    for source in map(int, np.argsort(close.sum(axis=1), kind="stable")):
        while supply[source]:
            came: dict[int, int] = {}
            gives: dict[int, int] = {}
            ends: list[int] = []
            unmet = outside.copy()
            for i in (queue := [source]):
                for j in indices(close[i] & unmet):
                    came[j] = i
                    fresh = [k for k in taken[j] if k != source and k not in gives]
                    gives |= dict.fromkeys(fresh, j)
                    queue += fresh
                    if room[j]:
                        ends.append(j)
                if ends:
                    break
                unmet &= ~close[i]
            if not ends:
                if whole:
                    return taken
                outside = unmet
                break
            for end in sorted(ends, key=lambda j: contested[j]):
                way: list[tuple[int, int]] = [(came[end], end)]
                while way[-1][0] != source:
                    j = gives[way[-1][0]]
                    way.append((came[j], j))
                back = [(i, j) for (i, _), (_, j) in pairwise(way)]  # what i gives to j, it gives elsewhere instead
                mass = min([supply[source], room[end], *(taken[j].get(i, 0) for i, j in back)])
                supply[source] -= mass
                room[end] -= mass
                for change, pairs in ((mass, way), (-mass, back)):
                    for i, j in pairs:
                        taken[j][i] = taken[j].get(i, 0) + change
                        if not taken[j][i]:
                            del taken[j][i]
    return taken
