"""Attackers who know the chain, and draw from a release all that the law of the records allows.

Each is an exact filter: a law of what is secret *and* of what the unknown records add to the released counts. No path
is sampled. Laws have the axes ``(..., state, *counts)``: the probability that the chain is in a state and that the
unknown records so far have these counts.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

__all__ = ["advanced", "alone", "learned", "log_noise", "of_record", "of_stretch"]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


def advanced(law: Array, matrix: Array, steps: int, adds: Counts) -> Array:
    """Go on by some records.

    Parameters
    ----------
    law : (..., k, *counts) ndarray
        The law so far; its last axes must have room for all that is added.
    matrix : (k, k) ndarray
        Transition matrix.
    steps : int
        So many records.
    adds : (k, m) ndarray of int
        What a record in a state adds to each of the m counts.
    """
    room = law.shape[-adds.shape[1] :]
    for _ in range(steps):
        flat = law.reshape(-1, len(matrix), int(np.prod(room)))
        moved = (matrix.T @ flat).reshape(law.shape)
        law = np.zeros_like(moved)
        for state, added in enumerate(adds):
            to = (..., state, *(slice(int(n), None) for n in added))
            here = (..., state, *(slice(0, size - int(n)) for size, n in zip(room, added, strict=True)))
            law[to] = moved[here]
    return law


def _from_known(states: int, room: Sequence[int]) -> Array:
    """Return the law after a known record: axes (known state, state, *counts)."""
    law = np.zeros((states, states, *room))
    law[(slice(None), slice(None), *(0 for _ in room))] = np.eye(states)
    return law


def _to_known(law: Array, matrix: Array, counts: int) -> Array:
    """Return the joint law with the known record after the unknown ones: its state becomes the axis before counts."""
    lead, room = law.shape[: law.ndim - counts - 1], law.shape[law.ndim - counts :]
    flat = law.reshape(-1, len(matrix), int(np.prod(room)))
    return (matrix.T @ flat).reshape(*lead, len(matrix), *room)


def of_record(matrix: Array, around: int, adds: Counts) -> Array:
    """Return the law of one record between ``around`` unknown ones on each side, given the known ones beyond.

    Returns
    -------
    (k, k, k, *counts) ndarray
        Axes: known record before, the secret state, known record after, what all unknown records add.
    """
    k, counts = len(matrix), adds.shape[1]
    law = advanced(_from_known(k, [2 * around + 2] * counts), matrix, around + 1, adds)
    split = np.zeros((k, k, *law.shape[1:]))
    for state in range(k):
        split[:, state, state] = law[:, state]
    return _to_known(advanced(split, matrix, around, adds), matrix, counts)


def of_stretch(matrix: Array, around: int, steps: int, counted: int, least: int) -> Array:
    """Return the law of whether at least ``least`` of ``steps`` records in a row are in the counted state.

    Returns
    -------
    (k, 2, k, counts) ndarray
        Axes: known record before, no or yes, known record after, how many of all unknown records are in that state.
    """
    k = len(matrix)
    total, own = np.zeros((k, 2), dtype=np.int64), np.zeros((k, 2), dtype=np.int64)
    total[counted, 0], own[counted] = 1, 1
    law = advanced(_from_known(k, (2 * around + steps + 1, steps + 1)), matrix, around, total)
    law = advanced(law, matrix, steps, own)
    split = np.stack([law[..., :least].sum(axis=-1), law[..., least:].sum(axis=-1)], axis=1)
    return _to_known(advanced(split, matrix, around, total[:, :1]), matrix, 1)


def alone(matrix: Array, first: Array, length: int, counted: int) -> tuple[Array, Array]:
    """Return the laws for somebody who knows nothing but the chain: of all records up to one, and of all after it.

    Returns
    -------
    (length, k, length + 1) ndarray
        State of record i, and how many of the records up to it are in the counted state.
    (length, k, length + 1) ndarray
        How many of the next m records are, given the state before them.
    """
    k = len(matrix)
    up_to, after = np.zeros((length, k, length + 1)), np.zeros((length, k, length + 1))
    own = np.arange(k) == counted
    up_to[0, ~own, 0], up_to[0, own, 1] = first[~own], first[own]
    after[0, :, 0] = 1.0
    for i in range(1, length):
        moved = matrix.T @ up_to[i - 1]
        up_to[i, ~own], up_to[i, own, 1:] = moved[~own], moved[own, :-1]
        then = after[i - 1].copy()
        then[own, 1:], then[own, 0] = then[own, :-1].copy(), 0.0
        after[i] = matrix @ then
    return up_to, after


def log_noise(seen: Counts, scale: float, room: Sequence[int], unknown: int | None = None) -> Array:
    """Return the log density of discrete Laplace noise, but for a constant, at every value of the unknown counts.

    Parameters
    ----------
    seen : (m,) ndarray of int
        Released counts less those of the records that are known.
    scale : float
        Of the noise of each.
    room : sequence of int
        How many values each count of the law has.
    unknown : int, optional
        How many records are unknown, where the last released count is of all that the others are not.
    """
    axes = np.ogrid[tuple(slice(0, size) for size in room)]
    found = -sum(np.abs(value - axis) for value, axis in zip(seen, axes, strict=False)) / scale
    if unknown is not None:
        found = found - np.abs(seen[-1] - (unknown - sum(axes))) / scale
    return np.asarray(found, dtype=np.float64)


def learned(law: Array, noise: Array) -> tuple[Array, Array]:
    """Return what an attacker believed of each secret, and the log likelihood of the release given it.

    Parameters
    ----------
    law : (secrets, *counts) ndarray
        Joint law; a secret without probability is left out by −inf in the first array and NaN in the second.
    noise : (*counts) ndarray
        Of :func:`log_noise`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(law.reshape(len(law), -1))
        prior = logsumexp(logs, axis=1)
        return prior, logsumexp(logs + noise.ravel(), axis=1) - prior
