"""∞-Wasserstein distance of two finite laws."""

from collections.abc import Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pufferfish._base.checked import called_as, is_list, listed
from pufferfish._core.laws import vector_transport
from pufferfish._core.laws.transport import distance
from pufferfish._core.numbers.rounding import float_up
from pufferfish.errors import ModelError
from pufferfish.theta.joint_distribution import exact_law, exact_number

__all__ = ["wasserstein_inf"]

_ULP = Fraction(1, 2**52)


@called_as("wasserstein_inf([0, 1], [0.5, 0.5], [0, 2], [0.5, 0.5])")
def wasserstein_inf(x: ArrayLike, p: Sequence[Any], y: ArrayLike, q: Sequence[Any]) -> float:
    r"""∞-Wasserstein distance of two finite laws: how far mass has to move at least to turn one into the other.

    :math:`W_\infty(\mu, \nu) = \min_\gamma \max\{\|x - y\|_1 : \gamma(x, y) > 0\}` over the couplings γ of μ and ν. It
    is computed in exact arithmetic, so that a mass of 1e-300 counts as any other.

    Parameters
    ----------
    x : array_like, shape (n,) or (n, m)
        Atoms of μ: numbers, or vectors of whole numbers. They may repeat.
    p : sequence of float or Fraction, length n
        Their masses, which sum to 1 (tolerance 1e-9) and are divided by their sum.
    y, q
        The same for ν.

    Returns
    -------
    float
        The distance, in L1 for vectors; rounded up.

    Raises
    ------
    ModelError
        If shapes do not fit, or masses are no probabilities.

    Notes
    -----
    Floats are taken as the decimals they print as. Where all masses are rational numbers they are exact. A float mass
    is known up to its rounding: the distance is the least of all laws whose masses are within n·2^-52 of the given
    ones, relatively, so that equal laws that were added up differently have distance 0.

    References
    ----------
    Song, Wang, Chaudhuri (2017), Definition 3.1.

    Examples
    --------
    >>> wasserstein_inf([0, 1, 2, 3], [0.2, 0.225, 0.5, 0.075], [1, 2, 3, 4], [0.075, 0.5, 0.225, 0.2])
    2.0
    >>> wasserstein_inf([0, 1], [0.1 + 0.2, 0.7], [0, 1], [0.3, 0.7])
    0.0
    >>> wasserstein_inf([[0, 3], [1, 2]], [0.5, 0.5], [[1, 2], [2, 1]], [0.5, 0.5])
    2.0
    """
    atoms = "numbers, or vectors of whole numbers"
    rows_x, rows_y = (listed(given, name, atoms, ModelError) for given, name in ((x, "x"), (y, "y")))
    masses_p, masses_q = (listed(given, name, "probabilities", ModelError) for given, name in ((p, "p"), (q, "q")))
    (a, mu), (b, nu) = _atoms(rows_x, masses_p, *"xp"), _atoms(rows_y, masses_q, *"yq")
    vectors = is_list(rows_x[0]) or is_list(rows_y[0])
    exact = all(isinstance(mass, Rational) for mass in (*masses_p, *masses_q))
    s = Fraction(0) if exact else (len(a) + len(b) + 4) * _ULP
    if len(a[0]) != len(b[0]):
        raise ModelError(f"x has atoms of {len(a[0])} coordinates, y of {len(b[0])}: both laws live in the same space")
    if not vectors:
        return float_up(distance([v[0] for v in a], mu, [v[0] for v in b], nu, s))
    if any(v.denominator != 1 for atom in (*a, *b) for v in atom):
        raise ModelError(
            "vector atoms are whole numbers here: multiply them by what makes them so, and divide the distance"
        )
    denominator = np.lcm.reduce(np.array([m.denominator for m in (*mu, *nu)], dtype=object))
    whole = [[int(m * denominator) for m in law] for law in (mu, nu)]
    points = [np.array([[int(v) for v in atom] for atom in law], dtype=np.int64) for law in (a, b)]
    return float(vector_transport.least_reach(points[0], whole[0], points[1], whole[1], slack=s))


def _atoms(
    places: Sequence[Any], masses: Sequence[Any], name: str, of: str
) -> tuple[list[tuple[Fraction, ...]], list[Fraction]]:
    """Return distinct atoms in increasing order with their positive masses, exactly."""
    law = exact_law(masses, of)
    rows = [np.asarray(row, dtype=object) if is_list(row) else row for row in places]
    if len(rows) != len(law):
        raise ModelError(f"{name} has {len(rows)} atoms and {of} {len(law)} masses: one mass per atom")
    merged: dict[tuple[Fraction, ...], Fraction] = {}
    for i, (row, mass) in enumerate(zip(rows, law, strict=True)):
        numbers = [exact_number(v) for v in (row if isinstance(row, np.ndarray) else [row])]
        atom = tuple(v for v in numbers if v is not None)
        if len(atom) < len(numbers) or not atom:
            raise ModelError(f"{name}[{i}] is {row!r}, expected a finite number, or a vector of whole numbers")
        if mass:
            merged[atom] = merged.get(atom, Fraction(0)) + mass
    return sorted(merged), [merged[atom] for atom in sorted(merged)]
