"""What a check says: its verdict in plain words, and its numbers as text."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from pufferfish.check.record import ModelCheck, RicherModel
from pufferfish.digits import at_most
from pufferfish.errors import printable

__all__ = ["CALLED", "CLEARLY", "text_of", "verdict_of"]

CLEARLY = 10.0
"""Nats in all by which a law must predict better before it is said to: odds of 22,000 to 1."""

_WITHIN = 1.005
"""Leakage up to this multiple of ε counts as what was promised."""

_FEW = 1000
"""With fewer transitions than this it is said that they are few."""

_MOST_SUBJECTS, _MOST_STATES = 12, 8

_FOUND = {
    "pooled": "another chain fits these data better",
    "own": "habits differ between subjects",
    "hour": "habits depend on the hour",
    "order2": "the next state depends on more than the present one",
}
_KNOWS = {
    "pooled": "that chain",
    "own": "them",
    "hour": "the hours",
    "order2": "the last two states",
    "forgets": "how soon the least forgetful subject forgets",
}
_REMEDY = {
    "pooled": "a model fitted to these data",
    "own": "fit --each-subject",
    "hour": "fit --clock hour",
    "order2": "fit --order 2",
}
_MISSING = {"pooled": "that chain", "own": "each subject's own chain", "hour": "the hour", "order2": "longer memory"}
CALLED = {
    "pooled": "one chain of these data",
    "own": "each subject's own chain",
    "hour": "a matrix for each hour",
    "order2": "the last two states",
    "forgets": "how soon the least forgetful subject forgets",
}


def verdict_of(gains: Mapping[str, float], richer: Sequence[RicherModel], epsilon: float, transitions: int) -> str:
    """Return what a check found, in two or three sentences: what predicts these data better, and what leaks most."""
    found = [kind for kind in _FOUND if gains.get(kind, 0.0) > CLEARLY]
    if not found:
        looked = {"own": "each subject's own chain", "hour": "the hour"}
        others = [words for kind, words in looked.items() if kind in gains]
        few = f" But these are {transitions:,} transitions only, which tell little." if transitions < _FEW else ""
        known = _listed([*others, "the state two steps before"])
        return f"The model describes these data: {known} {_predict(others)}{few}{_at_most(richer, epsilon)}"
    first = _capital(_listed([_FOUND[kind] for kind in found]))
    known = {each.kind: each.leakage for each in richer if each.leakage is not None}
    told = _listed([_leaks(each) for each in richer if each.kind in found and each.leakage is not None])
    if not told:
        return (
            f"{first}. What noise calibrated to this model leaks for that is not computed.{_at_most(richer, epsilon)}"
        )
    noise = _noise(epsilon)
    missing = [kind for kind in found if kind not in known]
    rest = f" What {_listed([_MISSING[kind] for kind in missing])} leaks is not computed." if missing else ""
    rest += _at_most(richer, epsilon, told=found)
    above = [kind for kind in found if known.get(kind, 0.0) > epsilon * _WITHIN]
    if not above:
        return f"{first}, but {noise} covers it: it leaks {told}.{rest}"
    return f"{first}: {noise} would leak {told}; use {_listed([_REMEDY[kind] for kind in above], 'or')}.{rest}"


def _noise(epsilon: float) -> str:
    return f"noise calibrated to this model at ε = {at_most(epsilon)}"


def _at_most(richer: Sequence[RicherModel], epsilon: float, told: Sequence[str] = ()) -> str:
    """Return the sentence about the largest leakage of all, so that no number below the verdict contradicts it."""
    known = [each for each in richer if each.leakage is not None]
    most = max(known, key=lambda each: each.leakage or 0.0, default=None)
    if most is None or most.kind in told:
        return ""
    if (most.leakage or 0.0) <= epsilon * _WITHIN:
        return "" if told else f" {_capital(_noise(epsilon))} leaks no more than that under the richer models either."
    return f" The largest leakage found: {_noise(epsilon)} would leak {_leaks(most)}."


def _predict(others: Sequence[str]) -> str:
    return "do not predict them better." if others else "does not predict them better."


def _leaks(richer: RicherModel) -> str:
    assert richer.leakage is not None
    knows = f"the habits of {richer.decided_by}" if richer.decided_by else _KNOWS[richer.kind]
    amount = "without a known limit" if math.isinf(richer.leakage) else f"up to {richer.leakage:.3g}"
    return f"{amount} to somebody who knows {knows}"


def _listed(parts: Sequence[str], word: str = "and") -> str:
    return "".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def text_of(found: ModelCheck, reworded: Callable[[str], str] = str) -> str:
    """Return a check as text: the verdict, then the numbers it rests on.

    ``reworded`` turns errors of the library, by which numbers are missing, into the reader's words.
    """
    return "\n".join(printable(line) for line in _lines(found, reworded))


def _lines(found: ModelCheck, reworded: Callable[[str], str]) -> Iterator[str]:
    many = len(found.subjects)
    yield f"Θ: {found.origin}"
    who = "one chain" if many == 1 else f"{many} subjects"
    yield f"held against {found.source}: {found.records:,} records, {found.transitions:,} transitions of {who}"
    yield found.verdict
    yield ""
    yield from _leakage(found, reworded)
    yield ""
    yield from _predictions(found)
    yield ""
    yield "records that a state lasts: mean, and what 95% of its stays do not exceed"
    rows = [(s.state, _stay(s.observed), _between(s.least, s.most)) for s in found.stays]
    yield from _table(("state", "data", "model"), rows)
    yield ""
    missing = "" if found.overlaps else ": not known for these data"
    yield f"overlap of the laws of the state, given any two states some steps away (1: all is forgotten){missing}"
    rows = [
        (f"{o.steps}", f"{o.pooled:.3f}", f"{o.worst:.3f}", o.subject, "" if o.model is None else f"{o.model:.3f}")
        for o in found.overlaps
    ]
    yield from _table(("steps", "data, pooled", "data, least", "least subject", "model"), rows)
    if found.occupancy is not None:
        yield ""
        yield from _hours(found)


def _leakage(found: ModelCheck, reworded: Callable[[str], str]) -> Iterator[str]:
    noise = "" if found.noise_multiplier is None else f" (multiplier {found.noise_multiplier:.3g})"
    of = f"the noise of a histogram, calibrated to this model at ε = {at_most(found.epsilon)}{noise}"
    yield f"what {of}, leaks at most, in nats"
    rows = [
        (
            CALLED[each.kind],
            "" if each.leakage is None else "no bound" if math.isinf(each.leakage) else f"{each.leakage:.3g}",
            "" if each.noise_multiplier is None else f"{each.noise_multiplier:.3g}",
            each.decided_by or "",
        )
        for each in found.richer
        if each.reason is None
    ]
    yield from _table(("to somebody who knows", "leakage", "multiplier it needs", "decided by"), rows)
    for each in found.richer:
        if each.reason is not None:
            yield f"  {CALLED[each.kind]}: not computed: {reworded(each.reason)}"


def _predictions(found: ModelCheck) -> Iterator[str]:
    yield "log-likelihood per transition, in nats: the model as it stands, the others by all other transitions"
    kinds = [kind for kind in ("pooled", "own", "order2", "hour") if kind in found.gains]
    names = {"pooled": "one chain", "own": "own chain", "order2": "order 2", "hour": "by hour"}
    subjects = sorted(found.subjects, key=lambda s: s.model - (s.own if s.own is not None else s.pooled))
    shown = sorted(subjects[:_MOST_SUBJECTS], key=lambda s: _in_order(s.subject))
    total = sum(s.transitions for s in found.subjects)
    rows: list[tuple[str, ...]] = []
    if len(found.subjects) > 1:
        whole = [sum(s.transitions * (getattr(s, kind) or 0.0) for s in found.subjects) for kind in ("model", *kinds)]
        rows.append(("all", f"{total:,}", *(f"{value / total:.4f}" for value in whole)))
    for s in shown:
        values = [getattr(s, kind) for kind in ("model", *kinds)]
        rows.append((s.subject or "all", f"{s.transitions:,}", *(f"{value:.4f}" for value in values)))
    yield from _table(("subject", "transitions", "model", *(names[kind] for kind in kinds)), rows)
    if len(subjects) > len(shown):
        yield f"  and {len(subjects) - len(shown)} subjects that the model fits better"
    gains = ", ".join(f"{names[kind]} {found.gains[kind]:+,.0f}" for kind in kinds)
    yield f"  better in all, in nats, than what is simpler: {gains}; above {CLEARLY:g} is clear"


def _in_order(name: str) -> list[tuple[int, str]]:
    """Return what names are sorted by, so that subject 2 comes before subject 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _hours(found: ModelCheck) -> Iterator[str]:
    assert found.occupancy is not None
    totals = [sum(row[x] for row in found.occupancy) for x in range(len(found.states))]
    usual = sorted(range(len(totals)), key=lambda x: -totals[x])[:_MOST_STATES]
    rest = "" if len(usual) == len(totals) else f", the {len(usual)} most frequent states"
    yield f"share of each state by the hour{rest}"
    rows: list[tuple[str, ...]] = []
    for hour, row in enumerate(found.occupancy):
        if n := sum(row):
            rows.append((f"{hour}", f"{n:,}", *(f"{row[x] / n:.3f}" for x in usual)))
    if found.stationary:
        rows.append(("model", "", *(_range(*found.stationary[x]) for x in usual)))
    yield from _table(("hour", "records", *(found.states[x] for x in usual)), rows)


def _stay(pair: tuple[float, float] | None) -> str:
    return "" if pair is None else f"{pair[0]:.3g}, {pair[1]:.0f}".replace("inf", "∞")


def _between(least: tuple[float, float], most: tuple[float, float]) -> str:
    return _stay(least) if least == most else f"{_stay(least)} to {_stay(most)}"


def _range(least: float, most: float) -> str:
    return f"{least:.3f}" if f"{least:.3f}" == f"{most:.3f}" else f"{least:.3f} to {most:.3f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield lines with aligned columns, the first to the left; none without rows."""
    lines = [tuple(head), *map(tuple, rows)]
    if len(lines) == 1:
        return
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        cells = [f"{cell:>{width}}" for cell, width in islice(zip(line, widths, strict=True), 1, None)]
        yield "  " + "  ".join([f"{line[0]:<{widths[0]}}", *cells]).rstrip()
