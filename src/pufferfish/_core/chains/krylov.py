"""Large linear systems that are given by what their matrix does: GMRES, without restarts."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["solve"]

Vector = NDArray[np.float64]


def solve(apply: Callable[[Vector], Vector], right: Vector, *, tolerance: float, most: int) -> Vector:
    """Solve A x = b nearly, from products with A alone (Saad and Schultz, 1986).

    Parameters
    ----------
    apply : callable
        x ↦ A x.
    right : (n,) ndarray
        b.
    tolerance : float
        The residual that is left, as a share of b, in the Euclidean norm.
    most : int
        Products at most; what is found by then is returned.

    Examples
    --------
    >>> matrix = np.array([[2.0, 1.0], [0.0, 4.0]])
    >>> solve(lambda x: matrix @ x, np.array([4.0, 8.0]), tolerance=1e-9, most=9).round(6).tolist()
    [1.0, 2.0]
    """
    size = float(np.linalg.norm(right))
    if not 0 < size < np.inf:
        return right.copy()
    basis = np.empty((min(most, right.size) + 1, right.size))
    basis[0] = right / size
    # the matrix on the basis, and its least-squares problem: for the sizes at hand solved anew in every step
    on_basis = np.zeros((len(basis), len(basis) - 1))
    goal = np.zeros(len(basis))
    goal[0] = size
    shares = np.zeros(0)
    for n in range(1, len(basis)):
        following = apply(basis[n - 1])
        if not np.isfinite(following).all():
            break
        for _ in range(2):  # twice: once leaves what rounding makes of a small rest
            along = basis[:n] @ following
            following = following - along @ basis[:n]
            on_basis[:n, n - 1] += along
        rest = float(np.linalg.norm(following))
        on_basis[n, n - 1] = rest
        system = on_basis[: n + 1, :n]
        shares = np.linalg.lstsq(system, goal[: n + 1], rcond=None)[0]
        left = float(np.linalg.norm(system @ shares - goal[: n + 1]))
        if not rest > 0 or not left > tolerance * size:
            break
        basis[n] = following / rest
    return np.asarray(shares @ basis[: shares.size]) if shares.size else right.copy()
