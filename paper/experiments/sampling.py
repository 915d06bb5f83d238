"""Simulated noise and the errors it makes: the only place of the package with random numbers that a seed decides.

A release draws its noise elsewhere (:mod:`pufferfish.release.noise`), from the operating system. Here the same law, the
discrete Laplace one, is drawn so that an experiment can be repeated. Nothing outside of the experiments can reach it.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers import laplace
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.release.derive import data_record, possible_values_of
from pufferfish.release.draw import PrivateData, exact_value

__all__ = ["Errors", "discrete_laplace", "l1_variance", "stream", "summary", "trial_errors"]


def stream(seed: int, *names: object) -> np.random.Generator:
    """Return a generator that depends on a seed and on names only, whatever else is run before or beside it."""
    digest = hashlib.sha256("\0".join(str(name) for name in names).encode()).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest, dtype="<u4").tolist()])


def discrete_laplace(rng: np.random.Generator, scale: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Draw from P(Z = z) ∝ exp(−|z|/scale): the difference of two geometric numbers."""
    stop = -np.expm1(-1 / scale)
    return rng.geometric(stop, shape) - rng.geometric(stop, shape)


@dataclass(frozen=True, slots=True)
class Errors:
    """L1 errors of simulated releases, one per trial.

    Parameters
    ----------
    raw : (trials,) ndarray
        Of the noisy values.
    valid : (trials,) ndarray
        Of the values after post-processing to a possible one.
    """

    raw: NDArray[np.float64]
    valid: NDArray[np.float64]


def trial_errors(calibration: Calibration, databases: Sequence[PrivateData], rng: np.random.Generator) -> Errors:
    """Release once from each database, and return how far the released vectors are from the exact ones, in L1."""
    linear, theta, unit = calibration.linear, calibration.theta, float(calibration.linear.unit)
    noise = discrete_laplace(rng, calibration.unit_scale, (len(databases), len(linear.labels)))
    exact: dict[int, NDArray[np.int64]] = {}
    valid: list[float] = []
    for drawn, data in zip(noise, databases, strict=True):
        if id(data) not in exact:
            exact[id(data)] = exact_value(data, linear, theta)[0]
        truth = exact[id(data)]
        released = possible_values_of(calibration, data_record(data, calibration), None).of(
            [float(v) * unit for v in truth + drawn]
        )
        valid.append(float(np.abs(np.array(released) - truth * unit).sum()))
    return Errors(np.abs(noise).sum(axis=1) * unit, np.array(valid))


def l1_variance(calibration: Calibration) -> float:
    """Return the variance of a release's raw L1 error, which its law gives: E Z² = 2p/(1−p)², less (E|Z|)²."""
    b = calibration.unit_scale
    each = 1 / (2 * math.sinh(1 / (2 * b)) ** 2) - laplace.mean_modulus(b) ** 2 if b > 0.002 else 0.0
    return len(calibration.linear.labels) * each * float(calibration.linear.unit) ** 2


def summary(expected: float, variance: float, errors: Errors) -> dict[str, float]:
    """Return the exact expectation beside means over trials, as columns of a row.

    Parameters
    ----------
    expected, variance : float
        Of the raw error; the standard error of its mean follows from them, that of the valid one from the trials.
    errors : Errors
        Of all trials.
    """
    root = len(errors.raw) ** 0.5
    return {
        "expected_l1_error": expected,
        "mean_l1_error": float(errors.raw.mean()),
        "standard_error": variance**0.5 / root,
        "valid_mean_l1_error": float(errors.valid.mean()),
        "valid_standard_error": float(errors.valid.std(ddof=1)) / root,
    }
