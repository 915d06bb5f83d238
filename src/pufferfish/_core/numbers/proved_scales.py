"""Noise that is proved to be enough at many ε, by about one proof for each: what one proof says guides the next.

A calibration finds the least noise for one ε, with several proofs. For a picture the noise at forty ε is wanted, and
a thousandth more than the least will do. The logarithm of the noise is nearly a straight line in that of the leakage:
through the proofs that lie nearest a polynomial guesses the noise, and what counts is the proof of the guess.
"""

import math
from collections.abc import Callable

__all__ = ["ProvedScales"]

_MORE = 4e-4
"""Noise is taken whose leakage is below ε by at most this share."""

_LEAST_ROOM, _ROOM = 1e-9, 4.0
"""A guess aims below ε: by so many times what the last one was off, as a share, and at least so much."""

_PROOFS = 6
"""Proofs for one ε, after which it is left to others."""

_NEAREST = 3
"""Proofs that a guess is made from."""

_ALIKE = 1e-9
"""Leakages nearer each other than this share are one to a guess."""


class ProvedScales:
    """Scales of noise for a leakage that falls with the scale.

    Parameters
    ----------
    leakage : callable
        What noise of a scale leaks at most, proved; it is also told what it should not exceed.
    epsilon, scale : float
        An ε and noise that is about the least for it.

    Examples
    --------
    >>> asked = []
    >>> def leakage(scale, enough):
    ...     asked.append(scale)
    ...     return 2 / scale + 1 / scale**2
    >>> found = ProvedScales(leakage, 3.0, 1.0)
    >>> scales = [found.at(epsilon) for epsilon in (2.7, 2.4, 2.1, 1.8, 1.5)]
    >>> [round(scale, 3) for scale in scales], len(asked)
    ([1.083, 1.185, 1.315, 1.485, 1.721], 8)
    """

    def __init__(self, leakage: Callable[[float, float], float], epsilon: float, scale: float) -> None:
        self._leakage = leakage
        self._proofs: list[tuple[float, float]] = [(math.log(epsilon), math.log(scale))]
        self._room = _MORE / 2

    def at(self, epsilon: float) -> float | None:
        """Return a scale that is proved to leak at most ε, and little less; None where none is found soon."""
        goal, first = math.log(epsilon * (1 - self._room)), True
        too_small, enough = -math.inf, math.inf
        for _ in range(_PROOFS):
            guess = self._guess(goal)
            if not too_small < guess < enough:
                if not -math.inf < too_small < enough < math.inf:
                    return None
                guess = (too_small + enough) / 2
            try:
                scale = math.exp(guess)
            except OverflowError:
                return None
            leakage = self._leakage(scale, epsilon)
            if not 0 < leakage < math.inf:
                return None
            self._proofs.append((math.log(leakage), guess))
            if first:
                off, first = abs(math.log(leakage) - goal), False
                self._room = min(max(_ROOM * off, _LEAST_ROOM), _MORE / 2)
                goal = math.log(epsilon * (1 - _MORE / 2))
            if epsilon * (1 - _MORE) <= leakage <= epsilon:
                return scale
            if leakage > epsilon:
                too_small = max(too_small, guess)
            else:
                enough = min(enough, guess)
        return None

    def _guess(self, goal: float) -> float:
        """Return the logarithm of a scale for that of a leakage, by a polynomial through the nearest proofs."""
        near: list[tuple[float, float]] = []
        for leakage, scale in sorted(self._proofs, key=lambda proof: abs(proof[0] - goal)):
            if all(abs(leakage - other) > _ALIKE for other, _ in near):
                near.append((leakage, scale))
            if len(near) == _NEAREST:
                break
        if len(near) == 1:  # in proportion to one over the noise
            return near[0][1] + near[0][0] - goal
        return sum(
            scale * math.prod((goal - other) / (leakage - other) for other, _ in near if other != leakage)
            for leakage, scale in near
        )
