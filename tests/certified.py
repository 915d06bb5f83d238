"""Calibrations that tests make are certified: a fault that makes noise too small is found by other code."""

import hashlib
from collections.abc import Callable
from typing import Any

import pufferfish as pf
from pufferfish.errors import NotApplicableError

ONE_IN = 20
"""Without ``--slow`` only so many calibrations are."""

_SHORT, _FEW_CELLS = 48, 4
"""Series whose bounds are one for each record, and cells of chains, where nearly the same noise is provable."""

_PRICE = 0.003
"""How much more noise whole numbers may take there: from .2% on proofs name the cheapest moves."""


def chosen(noise: Any, one_in: int) -> bool:
    """Whether a calibration is among those that are certified: by what it is, not by chance."""
    made_of = f"{noise.theta.kind} {noise.query.kind} {noise.epsilon!r} {noise.unit_scale!r}"
    return int(hashlib.sha256(made_of.encode()).hexdigest(), 16) % one_in == 0


def check(noise: Any) -> None:
    """Certify a calibration, if that is quick; where bound and certificate are one statement, at nearly its noise."""
    theta = noise.theta
    members: Any = [member for _, part in theta.parts for member in part.members]
    cells = [getattr(member, "kernel", getattr(member, "transition_matrix", None)) for member in members]
    if not members or any(kernel is None or len(kernel) > _FEW_CELLS for kernel in cells) or len(members) > 3:
        return
    try:
        certificate = pf.certify(noise)
    except NotApplicableError:
        return
    plain = theta.kind == pf.MarkovChain.kind and all(_is_stationary(m.initial_distribution) for m in members)
    short = all(chain.steps == chain.records <= _SHORT for chain in noise.length)  # without a gap
    if plain and short and noise.bound.protection is None:
        assert certificate.price <= _PRICE, f"{certificate.price:.1%} more noise is needed for a proof of {noise}"


def _is_stationary(start: Any) -> bool:
    return isinstance(start, str) and start == "stationary"


def checking(calibrate: Callable[..., Any], one_in: int) -> Callable[..., Any]:
    """Return a method that calibrates as another does, and certifies what it made."""

    def checked(self: Any, *given: Any, **settings: Any) -> Any:
        noise = calibrate(self, *given, **settings)
        if isinstance(noise.bound, pf.LeakagePropagation) and chosen(noise, one_in):
            check(noise)
        return noise

    return checked
