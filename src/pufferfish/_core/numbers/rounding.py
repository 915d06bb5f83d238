r"""Rigorous rounding: how far a computed number can be from the true one.

Everything a privacy bound needs from a Markov chain is a product of non-negative matrices, and such products
are computed to *entrywise relative* accuracy: a sum of n non-negative products carries a relative error of at
most :math:`\gamma_n = nu/(1-nu)`, in any order of summation, fused or not (Higham, *Accuracy and Stability of
Numerical Algorithms*, Lemma 3.1). The only exceptions are numbers near the underflow threshold, so entries
below :data:`TINY` are never used: they are computed again in logarithms.
"""

import math
from fractions import Fraction

__all__ = ["SMALLEST", "TINY", "UNIT", "down", "float_up", "log_up", "nearest", "or_infinite", "up"]

UNIT = 2.0**-52
"""Twice the unit roundoff of double precision: every error bound here is stated with this slack of two."""

TINY = 1e-270
"""Below this, sums of products may have lost relative accuracy to underflow."""

SMALLEST = 1e-290
"""Masses below this are taken as this much where more is safer, and as 0 where less is."""


def up(x: float, ulps: int = 4) -> float:
    """Return ``x`` moved towards +∞ by a few units in the last place (infinities stay, and an exact 0)."""
    return x + ulps * math.ulp(x) if x and math.isfinite(x) else x


def down(x: float, ulps: int = 4) -> float:
    """Return ``x`` moved towards −∞ by a few units in the last place (infinities stay, and an exact 0)."""
    return x - ulps * math.ulp(x) if x and math.isfinite(x) else x


def or_infinite(bound: float) -> float:
    """Return an upper bound, and ∞ where none was computed (NaN): comparisons would pass it over without a word."""
    return math.inf if math.isnan(bound) else bound


def float_up(exact: Fraction | int) -> float:
    """Return the least double that is at least an exact number; ``inf`` where there is none.

    Examples
    --------
    >>> float_up(sum([Fraction("0.1")] * 10)), float_up(Fraction(1, 3)) > 1 / 3
    (1.0, True)
    """
    found = nearest(exact)
    return found if found == math.inf or Fraction(found) >= exact else math.nextafter(found, math.inf)


def nearest(exact: Fraction | int) -> float:
    """Return the double next to an exact number that is 0 or more: rounded once, and so never past another double.

    Examples
    --------
    >>> nearest(3 * Fraction(1, 5)), 3 * 0.2
    (0.6, 0.6000000000000001)
    """
    try:
        return float(exact)
    except OverflowError:
        return math.inf


def log_up(exact: Fraction) -> float:
    """Return the logarithm of a positive exact number, rounded up by a few ulps; accurate near 1 too, and 0 for 1.

    Examples
    --------
    >>> round(log_up(Fraction(90)), 6), log_up(Fraction(1)), 1 < log_up(1 + Fraction(1, 10**30)) * 1e30 < 1 + 1e-14
    (4.49981, 0.0, True)
    """
    if Fraction(1, 2) <= exact <= 2:
        return up(math.log1p(float(exact - 1)), 8)
    above, below = math.log(exact.numerator), math.log(exact.denominator)
    return above - below + 4 * UNIT * (above + below)
