"""A check as text: its verdict, a sentence a line, then its numbers."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from pufferfish._base.view import counted
from pufferfish._base.words import at_most, number
from pufferfish.check.record import ModelCheck
from pufferfish.check.words import CALLED, CLEARLY, gain_of, sentences_of
from pufferfish.errors import printable

__all__ = ["text_of"]

_MOST_SUBJECTS, _MOST_STATES = 12, 8

_SIMPLER = {
    "pooled": "this model",
    "own": "this model or one chain, whichever is better",
    "order2": "one chain of these data",
    "hour": "one chain of these data",
}


def text_of(found: ModelCheck, reworded: Callable[[str], str] = str, *, details: bool = True) -> str:
    """Return a check as text: the verdict, then the numbers it rests on.

    ``reworded`` turns errors of the library, by which numbers are missing, into the reader's words. Without
    ``details`` the subjects and the hours are told only where the verdict speaks of them, and overlaps never.
    """
    return "\n".join(printable(line) for line in _lines(found, reworded, details))


def _lines(found: ModelCheck, reworded: Callable[[str], str], details: bool) -> Iterator[str]:
    many = len(found.subjects)
    yield from sentences_of(found.verdict)
    yield ""
    yield f"Θ: {found.origin}"
    who = "one chain" if many == 1 else f"{many:,} subjects"
    yield f"held against {found.source}: {found.records:,} records, {found.transitions:,} transitions of {who}"
    yield ""
    yield from _leakage(found, reworded)
    yield ""
    yield from _predictions(found)
    yield ""
    yield from _stays(found)
    differ = found.gains.get("own", 0.0) > CLEARLY or any(gain_of(each) > CLEARLY for each in found.subjects)
    if details or (differ and many > 1):
        yield ""
        yield from _subjects(found)
    if details:
        yield ""
        yield from _overlaps(found)
    if found.occupancy is not None and (details or found.gains.get("hour", 0.0) > CLEARLY):
        yield ""
        yield from _hours(found)


def _leakage(found: ModelCheck, reworded: Callable[[str], str]) -> Iterator[str]:
    noise = "" if found.noise_multiplier is None else f" (multiplier {found.noise_multiplier:.3g})"
    of = f"the noise of a histogram, calibrated to this model at ε = {at_most(found.epsilon)}{noise}"
    yield f"what {of}, leaks at most, in nats"
    rows = [
        (
            CALLED[each.kind],
            "" if each.leakage is None else "no bound" if math.isinf(each.leakage) else at_most(each.leakage, 3),
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
    yield (
        "do other models predict these data better? gain: the sum over all transitions, in nats; above "
        f"{CLEARLY:g} is clearly better, below 0 is worse"
    )
    kinds = [kind for kind in _SIMPLER if kind in found.gains]
    rows = [
        (CALLED[kind], _SIMPLER[kind], f"{found.gains[kind]:+,.0f}".replace("inf", "∞"), _better(found.gains[kind]))
        for kind in kinds
    ]
    yield from _table(("model", "compared with", "gain", "better?"), rows, texts=2)
    if found.gains.get("pooled") == math.inf:
        yield "  +∞: this model takes some of these transitions as impossible"


def _better(gain: float) -> str:
    if gain > CLEARLY:
        return "yes"
    return "not clearly" if gain > 0 else "no"


def _stays(found: ModelCheck) -> Iterator[str]:
    """Yield how long states last."""
    yield "how many records a state lasts: on average, and the number within which 95% of its stays end"
    rows = [
        (
            s.state,
            *(_ends(s.least[i], s.most[i]) if ours else _seen(s.observed, i) for i in (0, 1) for ours in (False, True)),
        )
        for s in found.stays
    ]
    yield from _table(("state", "average, data", "average, model", "95%, data", "95%, model"), rows)
    if any(s.observed is not None and math.isinf(s.observed[1]) for s in found.stays):
        yield (
            f"  {_OPEN}: too many of the longest stays are cut off, by a gap or the end of the data, before they end; "
            "the average counts these as ended, so it is too small"
        )


_OPEN = "not reached"


def _seen(observed: tuple[float, float] | None, i: int) -> str:
    if observed is None:
        return "no end seen"
    return _OPEN if math.isinf(observed[i]) else number(observed[i], 3)


def _ends(least: float, most: float) -> str:
    ends = ["never ends" if math.isinf(each) else number(each, 3) for each in (least, most)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _subjects(found: ModelCheck) -> Iterator[str]:
    """Yield how well each subject is predicted."""
    kinds = [kind for kind in ("pooled", "own", "order2", "hour") if kind in found.gains]
    names = {"pooled": "one chain", "own": "own chain", "order2": "order 2", "hour": "by hour"}
    subjects = sorted(found.subjects, key=lambda s: s.model - (s.own if s.own is not None else s.pooled))
    shown = sorted(subjects[:_MOST_SUBJECTS], key=lambda s: _in_order(s.subject))
    left = len(subjects) - len(shown)
    some = f", of the {len(shown)} subjects whose own chain beats the model most" if left else ""
    yield f"log-likelihood per transition, in nats (nearer to 0 is better){some}"
    yield "  the model is taken as it stands; the others predict each transition from all other transitions"
    total = sum(s.transitions for s in found.subjects)
    rows: list[tuple[str, ...]] = []
    if len(found.subjects) > 1:
        whole = [sum(s.transitions * (getattr(s, kind) or 0.0) for s in found.subjects) for kind in ("model", *kinds)]
        rows.append(("all", f"{total:,}", *(f"{value / total:.4f}" for value in whole)))
    for s in shown:
        values = [getattr(s, kind) for kind in ("model", *kinds)]
        rows.append((s.subject or "all", f"{s.transitions:,}", *(f"{value:.4f}" for value in values)))
    yield from _table(("subject", "transitions", "model", *(names[kind] for kind in kinds)), rows)
    if left:
        yield f"  and {counted(left, 'subject')} whose own chain beats the model by less, or does not"


def _overlaps(found: ModelCheck) -> Iterator[str]:
    """Yield how soon the present is forgotten."""
    missing = "" if found.overlaps else ": not known for these data"
    yield f"overlap of the laws of the state, given any two states some steps away (1: all is forgotten){missing}"
    rows = [
        (f"{o.steps}", f"{o.pooled:.3f}", "" if o.model is None else f"{o.model:.3f}", f"{o.worst:.3f}", o.subject)
        for o in found.overlaps
    ]
    yield from _table(("steps", "all data", "model", "least forgetful subject", "who"), rows)


def _in_order(name: str) -> list[tuple[int, str]]:
    """Return what names are sorted by, so that subject 2 comes before subject 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _hours(found: ModelCheck) -> Iterator[str]:
    assert found.occupancy is not None
    totals = [sum(row[x] for row in found.occupancy) for x in range(len(found.states))]
    usual = sorted(sorted(range(len(totals)), key=lambda x: -totals[x])[:_MOST_STATES])  # in the model's order
    rest = "" if len(usual) == len(totals) else f", the {len(usual)} most frequent states"
    yield f"share of each state by the hour{rest}"
    rows: list[tuple[str, ...]] = []
    for hour, row in enumerate(found.occupancy):
        if n := sum(row):
            rows.append((f"{hour}", f"{n:,}", *(f"{row[x] / n:.3f}" for x in usual)))
    if found.stationary:
        rows.append(("model", "", *(_range(*found.stationary[x]) for x in usual)))
    yield from _table(("hour", "records", *(found.states[x] for x in usual)), rows)


def _range(least: float, most: float) -> str:
    return f"{least:.3f}" if f"{least:.3f}" == f"{most:.3f}" else f"{least:.3f} to {most:.3f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Iterator[str]:
    """Yield lines with aligned columns, the first ``texts`` of them to the left; none without rows."""
    lines = [tuple(head), *map(tuple, rows)]
    if len(lines) == 1:
        return
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        cells = [f"{cell:{'<' if i < texts else '>'}{widths[i]}}" for i, cell in enumerate(line)]
        yield "  " + "  ".join(cells).rstrip()
