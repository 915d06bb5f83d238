"""The verdict of a check of a network, and the numbers that it rests on, as text and in notebooks."""

import math
from collections.abc import Callable, Iterator, Sequence

from pufferfish._base.view import Grid, View, counted
from pufferfish._base.words import at_most, number
from pufferfish.check.record import NetworkCheckFields, PairCheck, RicherModel
from pufferfish.check.words import WITHIN, aligned, capital, listed, sentences_of, verdict_lines
from pufferfish.errors import printable

__all__ = ["network_text", "network_verdict", "network_view"]

_NAMED, _MOST_ROWS = 3, 15
"""Pairs that a sentence names, and that a table has without details."""


def network_verdict(
    gain: float,
    clearly: float,
    tables: RicherModel,
    pairs: Sequence[PairCheck],
    arrows: Sequence[PairCheck],
    epsilon: float,
    rows: int,
    noise: float | None,
) -> str:
    """Return what a check found, in a few sentences: whether to go on, what decides, what is in doubt, what is next.

    ``noise`` is the multiplier of the noise that the model needs.
    """
    return " ".join(_sentences(gain, clearly, tables, pairs, arrows, epsilon, rows, noise))


def _sentences(
    gain: float,
    clearly: float,
    tables: RicherModel,
    pairs: Sequence[PairCheck],
    arrows: Sequence[PairCheck],
    epsilon: float,
    rows: int,
    noise: float | None,
) -> Iterator[str]:
    found = _found(pairs)
    leaking = [pair for pair in found if _leaks_more(pair.richer, epsilon)]
    other_tables = gain > clearly and _leaks_more(tables, epsilon)
    unknown = [pair for pair in found if pair.richer is None or pair.richer.leakage is None]
    few = [pair for pair in pairs if pair.judged == "too few"]
    tested = [pair for pair in pairs if pair.judged != "not tested"]
    if leaking or other_tables:
        yield "Do not go on with this model."
    elif unknown or (gain > clearly and tables.leakage is None) or noise is None:
        yield "It is in doubt whether to go on with this model."
    elif 2 * len(few) > len(tested):
        yield f"It is in doubt whether to go on with this model: {counted(rows, 'row')} tell little."
    else:
        yield "Go on with this model."
    yield from _what_decides(gain, clearly, tables, leaking or found, epsilon, rows, len(tested))
    if few:
        pairs_in_words = _some([_pair_of_few(pair) for pair in sorted(few, key=lambda pair: pair.expected)])
        yield f"The data are too few to judge {counted(len(few), 'pair')} without an arrow: {pairs_in_words}."
    poor = [pair for pair in arrows if pair.judged == "too few"]
    if poor:
        names = _some([_arrow(pair) for pair in sorted(poor, key=lambda pair: pair.expected)])
        yield f"They are too few to judge {counted(len(poor), 'arrow')} of the model: {names}."
    remedies = [f"add {_arrow(pair)} to its arrows{_cost(pair.richer, noise)}" for pair in (leaking or unknown)[:1]]
    if other_tables:
        remedies.append(f"fit its tables to these data{_cost(tables, noise)}")
    if remedies:
        yield f"Next: {listed(remedies)}; and check again."
    elif few:
        yield "Next: where nobody can say that such a pair is independent, take more public data, or add its arrow."


def _what_decides(
    gain: float, clearly: float, tables: RicherModel, found: Sequence[PairCheck], epsilon: float, rows: int, tested: int
) -> Iterator[str]:
    """Yield what the data say against the model, and what is leaked to those who know it."""
    noise = f"noise calibrated to this model at ε = {at_most(epsilon)}"
    if found:
        names = _some([f"{_pair(pair)} are not independent{_given(pair)}" for pair in found])
        known = [pair for pair in found if pair.richer is not None and pair.richer.leakage is not None]
        worst = max(known, key=lambda pair: getattr(pair.richer, "leakage", 0.0), default=None)
        if worst is None or worst.richer is None:
            yield f"What decides: {names}; what {noise} leaks for that is not computed."
        elif _leaks_more(worst.richer, epsilon):
            leaks = f"would leak {_leaks(worst.richer)} to somebody who knows {_arrow(worst)}"
            yield f"What decides: {names}; {noise} {leaks}."
        else:
            yield f"What decides: {names}; but {noise} covers it: it leaks {_leaks(worst.richer)}."
    else:
        pairs = counted(tested, "pair")
        yield f"What decides: none of {pairs} without an arrow is clearly dependent in {counted(rows, 'row')}."
    if gain > clearly:
        first = f"Besides, the model predicts the rows by {number(gain, 3)} nats worse than tables fitted to them"
        if math.isinf(gain):
            first = "Besides, some of the rows are impossible under the model"
        if tables.leakage is None:
            yield f"{first}, and what its noise leaks then is not computed."
        elif _leaks_more(tables, epsilon):
            yield f"{first}, and its noise would leak {_leaks(tables)} under these."
        else:
            yield f"{first}, but its noise covers these: it leaks {_leaks(tables)}."


def _found(pairs: Sequence[PairCheck]) -> list[PairCheck]:
    """Return the pairs that depend on each other, those first that do most."""
    return sorted((pair for pair in pairs if pair.judged == "dependent"), key=lambda pair: -pair.gain)


def _leaks_more(richer: RicherModel | None, epsilon: float) -> bool:
    return richer is not None and richer.leakage is not None and not richer.leakage <= epsilon * WITHIN


def _leaks(richer: RicherModel) -> str:
    assert richer.leakage is not None
    return "without a known limit" if math.isinf(richer.leakage) else f"up to {at_most(richer.leakage, 3)}"


def _cost(richer: RicherModel | None, noise: float | None) -> str:
    needs = None if richer is None else richer.noise_multiplier
    if needs is None or noise is None:
        return ""
    if needs <= noise:
        return " (without more noise)"
    return f" (multiplier {needs:.3g} instead of {noise:.3g})"


def _pair(pair: PairCheck) -> str:
    return " and ".join(pair.nodes)


def _arrow(pair: PairCheck) -> str:
    return "->".join(pair.nodes)


def _given(pair: PairCheck) -> str:
    return f" given {listed(pair.given)}" if pair.given else ""


def _pair_of_few(pair: PairCheck) -> str:
    values = " and ".join(f"{node}={value}" for node, value in zip(pair.nodes, pair.rarest, strict=True))
    return f"{_pair(pair)}{_given(pair)} ({values} would meet by chance in {number(pair.expected, 2)} rows)"


def _some(parts: Sequence[str]) -> str:
    more = [] if len(parts) <= _NAMED else [f"{len(parts) - _NAMED:,} more"]
    return listed([*parts[:_NAMED], *more])


# -- A check as text -------------------------------------------------------------------------------------------------

_HEAD = ("pair", "given", "gain", "degrees", "p", "rarest, rows", "judged", "leakage")


def network_text(check: NetworkCheckFields, reworded: Callable[[str], str] = str, *, details: bool = True) -> str:
    """Return a check as text: the verdict, then the numbers it rests on; without ``details`` those that matter most.

    ``reworded`` turns errors of the library, by which numbers are missing, into the reader's words.
    """
    return "\n".join(printable(line) for line in _lines(check, reworded, details))


def _lines(check: NetworkCheckFields, reworded: Callable[[str], str], details: bool) -> Iterator[str]:
    yield from sentences_of(check.verdict)
    yield ""
    yield f"Θ: {check.origin}"
    yield f"held against {check.source}: {counted(check.rows, 'row')}"
    if check.unread:
        yield f"not checked, for they or their parents have no column: {listed(check.unread[:8])}"
    multiplier = "" if check.noise_multiplier is None else f" (multiplier {check.noise_multiplier:.3g})"
    yield ""
    yield (
        f"what the noise of all columns' marginals at ε = {at_most(check.epsilon)}{multiplier} leaks, in nats, if the "
        "model's tables were those of these data: "
        + (reworded(check.tables.reason or "") if check.tables.leakage is None else at_most(check.tables.leakage, 3))
    )
    yield (
        f"by how many nats these predict the rows better, each row by all others: {_gain(check.gain)} (above "
        f"{number(check.clearly, 3)} is clearly better)"
    )
    yield ""
    yield "pairs that the model calls independent; gain: by how many nats dependence fits better, p: as much by chance"
    yield from _table(check.pairs, details)
    yield ""
    yield "arrows of the model, each given the other parents"
    yield from _table(check.arrows, details)


def _gain(gain: float) -> str:
    return "+∞: the model takes some of them as impossible" if math.isinf(gain) else f"{gain:+,.1f}"


def _table(pairs: Sequence[PairCheck], details: bool) -> Iterator[str]:
    """Yield the pairs that matter first: dependent ones, then those that the data are too few for."""
    order = {"dependent": 0, "too few": 1, "not seen": 2, "not tested": 3}
    ranked = sorted(pairs, key=lambda pair: (order[pair.judged], -pair.gain))
    shown = ranked if details else ranked[:_MOST_ROWS]
    yield from aligned(_HEAD, [_row(pair) for pair in shown], texts=2)
    if left := len(ranked) - len(shown):
        yield f"  and {left:,} more"
    if not pairs:
        yield "  none"


def _row(pair: PairCheck) -> tuple[str, ...]:
    rarest = f"{', '.join(pair.rarest)}: {number(pair.expected, 2)}" if pair.rarest else ""
    leaks = "" if pair.richer is None or pair.richer.leakage is None else at_most(pair.richer.leakage, 3)
    tested = pair.judged != "not tested"
    numbers = (f"{pair.gain:.1f}", f"{pair.freedom}", f"{pair.p:.2g}") if tested else ("", "", "")
    return (_arrow(pair), ", ".join(pair.given), *numbers, rarest, pair.judged, leaks)


def network_view(check: NetworkCheckFields) -> View:
    """Return the verdict first, then its numbers."""
    first = verdict_lines(check.verdict)
    rest = [sentence for sentence in sentences_of(check.verdict) if sentence not in first]
    facts = {"held against": check.source, "class Θ": check.origin, "rows": check.rows}
    grids = [
        Grid("Pairs that the model calls independent", _HEAD, [_row(pair) for pair in _found(check.pairs)]),
        Grid("Arrows of the model", _HEAD, [_row(pair) for pair in check.arrows]),
    ]
    return View(" ".join(first), facts, grids, [capital(sentence) for sentence in rest])
