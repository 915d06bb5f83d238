"""What the parts have in common: a row of the table, a promise that is broken, and which moments and bits are tried."""

import random
from typing import NamedTuple

__all__ = ["DRAW", "Fault", "Row", "holds", "wrong"]

DRAW = random.Random(2026)
"""Which moments and bits are tried: no randomness of any release."""


class Row(NamedTuple):
    """What was tried, how often, and what came out."""

    what: str
    trials: int
    found: str
    wrong: int = 0


class Fault(Exception):
    """A promise that does not hold."""


def holds(true: object, what: str) -> None:
    """Raise a Fault if something is not true."""
    if not true:
        raise Fault(what)


def wrong(what: str) -> int:
    """Print a broken promise; return 1, to be counted."""
    print(f"WRONG: {what}", flush=True)
    return 1
