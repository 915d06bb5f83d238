"""What a check of a model shows in a notebook: the verdict, what the noise leaks, and how long states last."""

import math

from pufferfish._base.view import Grid, View, in_short
from pufferfish._base.words import at_most
from pufferfish.check.record import ModelCheck, StateStays
from pufferfish.check.words import CALLED, sentences_of, shortened

__all__ = ["view_of"]


def view_of(found: ModelCheck) -> View:
    """Return the verdict first, then its numbers."""
    facts = {
        "held against": found.source,
        "class Θ": found.origin,
        "records": found.records,
        "transitions": found.transitions,
    }
    leaks = {each.kind: "no known limit" if each.leakage == math.inf else each.leakage for each in found.richer}
    richer = [[CALLED[each.kind], leaks[each.kind], each.decided_by, each.reason] for each in found.richer]
    stays = [[each.state, _pair(each.observed), _of_model(each)] for each in found.stays]
    gains = [[CALLED[kind], gain] for kind, gain in found.gains.items()]
    grids = [
        Grid(
            f"What noise for ε = {at_most(found.epsilon)} leaks at most to somebody who knows more, in nats",
            ["who knows", "leakage", "decided by", "why there is none"],
            richer,
        ),
        Grid("How much better richer models predict the transitions, in nats in all", ["model", "gain"], gains),
        Grid("Records that a state lasts: mean and 95% quantile", ["state", "data", "model"], stays),
    ]
    first = shortened(found.verdict)
    rest = [each for each in sentences_of(found.verdict) if each not in first]
    return View(" ".join(first), facts, grids, rest)


def _pair(numbers: tuple[float, float] | None) -> str:
    return "" if numbers is None else " and ".join(map(in_short, numbers))


def _of_model(stays: StateStays) -> str:
    if stays.least == stays.most:
        return _pair(stays.least)
    return " and ".join(f"{in_short(a)} to {in_short(b)}" for a, b in zip(stays.least, stays.most, strict=True))
