"""The verdict of a check of a network, and the numbers that it rests on, as text and in notebooks."""

import math
from collections.abc import Callable, Iterator, Sequence

from pufferfish._base.view import Grid, View, counted
from pufferfish._base.words import at_most, number
from pufferfish.check.record import NetworkCheckFields, PairCheck, Remedy, RicherModel, Verdict
from pufferfish.check.words import aligned, leaks, leaks_more, listed, more_noise, some
from pufferfish.errors import printable

__all__ = ["network_text", "network_verdict", "network_view"]

_MOST_ROWS = 15
"""Pairs that a table has without details."""


def network_verdict(
    gain: float,
    clearly: float,
    tables: RicherModel,
    pairs: Sequence[PairCheck],
    arrows: Sequence[PairCheck],
    *,
    epsilon: float,
    rows: int,
    noise: float | None,
    fit: Callable[[PairCheck | None], str],
) -> Verdict:
    """Return whether to go on with a network, why, and what to do next.

    ``noise`` is the multiplier of the noise that the model needs; ``fit`` returns the command that fits the network,
    with an arrow more where one is given.
    """
    found = _found(pairs)
    leaking = [pair for pair in found if leaks_more(pair.richer, epsilon)]
    other_tables = gain > clearly and leaks_more(tables, epsilon)
    unknown = [pair for pair in found if pair.richer is None or pair.richer.leakage is None]
    few = sorted((pair for pair in pairs if pair.judged == "too few"), key=lambda pair: pair.expected)
    poor = sorted((pair for pair in arrows if pair.judged == "too few"), key=lambda pair: pair.expected)
    tested = [pair for pair in pairs if pair.judged != "not tested"]
    little = 2 * len(few) > len(tested)
    word = "go on"
    if leaking or other_tables:
        word = "do not go on"
    elif unknown or (gain > clearly and tables.leakage is None) or noise is None or little:
        word = "in doubt"
    reasons = [_why(leaking or found, epsilon)] if found else []
    if not found:
        reasons.append(f"none of {counted(len(tested), 'pair')} without an arrow is clearly dependent in {rows:,} rows")
    if gain > clearly:
        reasons.append(_of_tables(gain, tables, epsilon))
    if little:
        reasons.append(f"{counted(rows, 'row')} are few: use more public data")
    if few:
        reasons.append(
            f"there are too few data to judge {counted(len(few), 'pair')} without an arrow: "
            f"{some([_pair_of_few(pair) for pair in few])}; add its arrow if nobody can say that it is independent"
        )
    if poor:
        names = some([_arrow(pair) for pair in poor])
        reasons.append(f"there are too few data to judge {counted(len(poor), 'arrow')} of the model: {names}")
    needs = [(pair.richer, pair, "arrow") for pair in (leaking or unknown)[:1]]
    needs += [(tables, None, "tables")] if other_tables else []
    remedies = [
        Remedy(kind=kind, command=fit(pair), noise_multiplier=None if model is None else model.noise_multiplier)
        for model, pair, kind in needs
    ]
    reasons += [f"next: {_told(pair)}{more_noise(model, noise)}, and check again" for model, pair, _ in needs]
    return Verdict(word=word, reasons=tuple(reasons), remedies=tuple(remedies))  # type: ignore[arg-type]


def _told(pair: PairCheck | None) -> str:
    return "fit its tables to these data" if pair is None else f"add {_arrow(pair)} to its arrows"


def _why(found: Sequence[PairCheck], epsilon: float) -> str:
    """Say which pairs depend on each other, and what is leaked to those who know it."""
    names = some([f"{_pair(pair)} are not independent{_given(pair)}" for pair in found])
    known = [pair for pair in found if pair.richer is not None and pair.richer.leakage is not None]
    worst = max(known, key=lambda pair: getattr(pair.richer, "leakage", 0.0), default=None)
    noise = f"noise for ε = {at_most(epsilon)}"
    if worst is None or worst.richer is None:
        return f"{names}; the leakage of {noise} in that case is not computed"
    if leaks_more(worst.richer, epsilon):
        return f"{names}; {noise} would leak {leaks(worst.richer)} to somebody who knows {_arrow(worst)}"
    return f"{names}; but {noise} covers it: it leaks {leaks(worst.richer)}"


def _of_tables(gain: float, tables: RicherModel, epsilon: float) -> str:
    first = f"the model predicts the rows by {number(gain, 3)} nats worse than tables fitted to them"
    if math.isinf(gain):
        first = "some of the rows are impossible under the model"
    if tables.leakage is None:
        return f"{first}, and the leakage of its noise is not computed"
    if leaks_more(tables, epsilon):
        return f"{first}, and its noise would leak {leaks(tables)} under these"
    return f"{first}, but its noise covers these: it leaks {leaks(tables)}"


def _found(pairs: Sequence[PairCheck]) -> list[PairCheck]:
    """Return the pairs that depend on each other, those first that do most."""
    return sorted((pair for pair in pairs if pair.judged == "dependent"), key=lambda pair: -pair.gain)


def _pair(pair: PairCheck) -> str:
    return " and ".join(pair.nodes)


def _arrow(pair: PairCheck) -> str:
    return "->".join(pair.nodes)


def _given(pair: PairCheck) -> str:
    return f" given {listed(pair.given)}" if pair.given else ""


def _pair_of_few(pair: PairCheck) -> str:
    values = " and ".join(f"{node}={value}" for node, value in zip(pair.nodes, pair.rarest, strict=True))
    return f"{_pair(pair)}{_given(pair)} ({values} would meet by chance in {number(pair.expected, 2)} rows)"


# -- A check as text -------------------------------------------------------------------------------------------------

_HEAD = ("pair", "given", "gain", "degrees", "p", "rarest, rows", "judged", "leakage")


def network_text(check: NetworkCheckFields, reworded: Callable[[str], str] = str, *, details: bool = True) -> str:
    """Return a check as text: the verdict, then the numbers it rests on; without ``details`` those that matter most.

    ``reworded`` turns errors of the library, by which numbers are missing, into the reader's words.
    """
    return "\n".join(printable(line) for line in _lines(check, reworded, details))


def _lines(check: NetworkCheckFields, reworded: Callable[[str], str], details: bool) -> Iterator[str]:
    yield from str(check.verdict).splitlines()
    yield ""
    yield f"Θ: {check.origin}"
    yield f"checked against {check.source}: {counted(check.rows, 'row')}"
    if check.unread:
        yield f"not checked, because they or their parents have no column: {listed(check.unread[:8])}"
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
    facts = {"held against": check.source, "class Θ": check.origin, "rows": check.rows}
    grids = [
        Grid("Pairs that the model calls independent", _HEAD, [_row(pair) for pair in _found(check.pairs)]),
        Grid("Arrows of the model", _HEAD, [_row(pair) for pair in check.arrows]),
    ]
    return View(check.verdict.sentence, facts, grids, str(check.verdict).splitlines()[1:])
