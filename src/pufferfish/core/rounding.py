r"""Rigorous rounding: how far a computed number can be from the true one.

Everything a privacy bound needs from a Markov chain is a product of non-negative matrices, and such products
are computed to *entrywise relative* accuracy: a sum of n non-negative products carries a relative error of at
most :math:`\gamma_n = nu/(1-nu)`, in any order of summation, fused or not (Higham, *Accuracy and Stability of
Numerical Algorithms*, Lemma 3.1). The only exceptions are numbers near the underflow threshold, so entries
below :data:`TINY` are never used: they are computed again in logarithms.
"""

import math

__all__ = ["TINY", "UNIT", "down", "up"]

UNIT = 2.0**-52
"""Twice the unit roundoff of double precision: every error bound here is stated with this slack of two."""

TINY = 1e-270
"""Below this, sums of products may have lost relative accuracy to underflow."""


def up(x: float, ulps: int = 4) -> float:
    """Return ``x`` moved towards +∞ by a few units in the last place (infinities stay, and an exact 0)."""
    return x + ulps * math.ulp(x) if x and math.isfinite(x) else x


def down(x: float, ulps: int = 4) -> float:
    """Return ``x`` moved towards −∞ by a few units in the last place (infinities stay, and an exact 0)."""
    return x - ulps * math.ulp(x) if x and math.isfinite(x) else x
