"""Noise: the only place where randomness meets data, and it is OpenDP's.

Values are integer vectors and noise is discrete Laplace, drawn exactly (no floating-point law). The random bytes come
from the generator of OpenSSL inside OpenDP, seeded with the operating system's entropy; nothing else can seed it.
OpenDP accepts a scale of 0 and answers with the exact value, so what it accepts is checked first, and its own privacy
map must confirm the record-level loss that the calibration was proved for.
"""

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from pufferfish.errors import ReleaseRefused

__all__ = ["discrete_laplace_noise", "fits"]

_LARGEST = 2**62
_MANY_SCALES = 200
"""P(|Z| > 200 b) is below 1e-86: no draw gets there."""


def fits(scale: float) -> bool:
    """Whether noise of a scale, in units, can be drawn: it is positive, and no draw leaves 64-bit integers."""
    return 0 < scale < math.inf and 2 * _MANY_SCALES * scale < _LARGEST


def discrete_laplace_noise(exact: Sequence[int], scale: float, *, lipschitz: int) -> Callable[[], list[int]]:
    """Return what draws an integer vector plus independent discrete Laplace noise of at least the given scale.

    Everything that can be refused is refused here; nothing is drawn before the call of what is returned.

    Parameters
    ----------
    exact : sequence of int
        The values to protect.
    scale : float
        Scale b of P(Z = z) ∝ exp(−|z|/b), positive and finite. The noise drawn is a rounding wider.
    lipschitz : int
        L1 change of the vector when one record changes; OpenDP must confirm a loss of at most lipschitz/scale.

    Raises
    ------
    ReleaseRefused
        If the scale is not positive and finite, values would leave 64 bits, or OpenDP's map does not confirm.
    """
    if not 0 < scale < math.inf:
        raise ReleaseRefused(f"noise of scale {scale} is no protection: expected a positive finite scale")
    if not fits(scale):
        raise ReleaseRefused(f"noise of scale {scale:.3g} does not fit 64-bit integers; ask for a larger epsilon")
    if 2 * max((abs(v) for v in exact), default=0) >= _LARGEST:  # queries are refused before, whatever the data
        raise ReleaseRefused("the answer does not fit 64-bit integers: give a larger unit")
    # here: only a release needs it; `opendp.prelude` has all of it, and would load scikit-learn where that is installed
    mod, domains, metrics, measurements = (
        importlib.import_module(f"opendp.{name}") for name in ("mod", "domains", "metrics", "measurements")
    )
    mod.enable_features("contrib")
    domain = domains.vector_domain(domains.atom_domain(T="i64"), size=len(exact))
    wider = math.nextafter(scale, math.inf)
    measurement: Any = measurements.make_laplace(domain, metrics.l1_distance(T="i64"), scale=wider)
    if not measurement.map(lipschitz) <= lipschitz / scale:
        raise ReleaseRefused(
            f"OpenDP gives noise of scale {wider!r} a loss of {measurement.map(lipschitz)!r}, above "
            f"{lipschitz / scale!r}: nothing was released"
        )
    return lambda: [int(v) for v in measurement([int(v) for v in exact])]
