"""Noise: the only place where randomness meets data, and it is OpenDP's.

Values are integer vectors and noise is discrete Laplace, drawn exactly (no floating-point law). The random bytes come
from the generator of OpenSSL inside OpenDP, seeded with the operating system's entropy; nothing else can seed it.
OpenDP accepts a scale of 0 and answers with the exact value, so what it accepts is checked first, and its own privacy
map must confirm the record-level loss that the calibration was proved for.
"""

import importlib
import math
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish.errors import ReleaseRefused

_LARGEST = 2**62
"""Answers and noise stay below half of it each, so that their sum is far from the end of 64-bit integers."""

_MANY_SCALES = 200
"""P(|Z| > 200 b) is below 1e-86: no draw gets there."""

_AT_ONCE = 5_000
"""Values that are drawn in one call of OpenDP."""

_ONE_POOL = threading.Lock()
"""Threads that draw first at the same time make one pool."""


def fits(scale: float) -> bool:
    """Whether noise of a scale, in units, can be drawn: it is positive, and no draw leaves 64-bit integers."""
    return 0 < scale < math.inf and 2 * _MANY_SCALES * scale < _LARGEST


def discrete_laplace_noise(exact: Sequence[int], scale: float, *, lipschitz: int) -> Callable[[], list[int]]:
    """Return what draws an integer vector plus independent discrete Laplace noise of at least the given scale.

    Everything that can be refused is refused here; nothing is drawn before the call of what is returned. The scale b is
    that of P(Z = z) ∝ exp(−|z|/b); the noise drawn is a rounding wider. ``lipschitz`` is the L1 change of the vector
    when one record changes; OpenDP must confirm a loss of at most lipschitz/scale.
    """
    measurement = _measurement(len(exact), max((abs(v) for v in exact), default=0), scale, lipschitz)
    return lambda: [int(v) for v in measurement([int(v) for v in exact])]


def noise_in_bulk(exact: NDArray[np.int64], scale: float, *, lipschitz: int) -> Callable[[], NDArray[np.int64]]:
    """Return what draws many values plus noise, as :func:`discrete_laplace_noise` does: some thousands at a time.

    The draws of different values are independent, so they are made by as many threads as there are processors.
    """
    flat = exact.ravel()
    parts = [flat[i : i + _AT_ONCE] for i in range(0, flat.size, _AT_ONCE)]
    largest = int(np.abs(flat).max(initial=0))
    measurements = {size: _measurement(size, largest, scale, lipschitz) for size in {part.size for part in parts}}

    def draw_part(part: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array(measurements[part.size](part.tolist()), dtype=np.int64)

    def draw() -> NDArray[np.int64]:
        noisy_parts: list[NDArray[np.int64]] = []
        # what is left of them is given up if one fails, or somebody interrupts
        with _ONE_POOL:
            threads = _pool()
        for noisy_part in threads.map(draw_part, parts):
            noisy_parts.append(noisy_part)
            report_progress("drawing noise", len(noisy_parts) / len(parts))
        return np.concatenate(noisy_parts).reshape(exact.shape)

    return draw


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the threads that draw, which live as long as the process.

    A thread that ends takes a lock of OpenSSL on its way, after Python thinks that it is gone. Had each draw its own
    threads, a process that forks right after a draw could leave that lock shut in its child, which would then wait for
    noise for ever.
    """
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="pufferfish-noise")


def _in_child() -> None:
    _pool.cache_clear()
    _ONE_POOL.release()


if hasattr(os, "register_at_fork"):  # a child makes threads of its own, and waits for nobody
    os.register_at_fork(before=_ONE_POOL.acquire, after_in_parent=_ONE_POOL.release, after_in_child=_in_child)


def _measurement(size: int, largest: int, scale: float, lipschitz: int) -> Any:
    """Return OpenDP's measurement of so many values up to the largest."""
    if not 0 < scale < math.inf:
        raise ReleaseRefused(f"noise of scale {scale} does not protect: expected a positive finite scale")
    if not fits(scale):
        raise ReleaseRefused(f"noise of scale {scale:.3g} does not fit 64-bit integers; ask for a larger epsilon")
    if 2 * largest >= _LARGEST:  # queries are refused before, whatever the data
        raise ReleaseRefused("the answer does not fit 64-bit integers: give a larger unit")
    # here: only a release needs it; `opendp.prelude` has all of it, and would load scikit-learn where that is installed
    mod, domains, metrics, measurements = (
        importlib.import_module(f"opendp.{name}") for name in ("mod", "domains", "metrics", "measurements")
    )
    mod.enable_features("contrib")
    domain: Any = domains.vector_domain(domains.atom_domain(T="i64"), size=size)
    wider = math.nextafter(scale, math.inf)  # OpenDP rounds its loss up, which at the scale itself would be too much
    measurement: Any = measurements.make_laplace(domain, metrics.l1_distance(T="i64"), scale=wider)
    if not measurement.map(lipschitz) <= lipschitz / scale:
        raise ReleaseRefused(
            f"OpenDP gives noise of scale {wider!r} a loss of {measurement.map(lipschitz)!r}, above "
            f"{lipschitz / scale!r}: nothing was released"
        )
    return measurement
