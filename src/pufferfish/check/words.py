"""The verdict of a check: whether to go on with a model, what decides, what is in doubt, and what to do next.

What is held against it are two kinds of numbers. *Gains* say whether a richer model predicts these data clearly better:
only that tells of the data that the model lacks something. *Leakages* say what the noise would leak if a richer model
were true. Where it does not predict better, its leakage rests on what may be chance: it is the largest over many
subjects, of each of whom little is known. That is a doubt, and is said as one: nobody knows how much of it is chance.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pufferfish._base.view import counted
from pufferfish._base.words import at_most, number
from pufferfish.check.record import CheckFields, RicherModel, SubjectCheck
from pufferfish.errors import printable

__all__ = [
    "CALLED",
    "CLEARLY",
    "WITHIN",
    "aligned",
    "capital",
    "gain_of",
    "listed",
    "sentences_of",
    "text_of",
    "verdict_lines",
    "verdict_of",
]

CLEARLY = 10.0
"""Nats in all by which a law must predict better before it is said to: odds of 22,000 to 1."""

WITHIN = 1.005
"""Leakage up to this multiple of ε counts as what was promised."""

_FEW = 1000
"""With fewer transitions than this it is said that they are few."""

_NAMED = 3
"""Subjects that differ by themselves and are named; of others the number is said."""

_FOUND = {
    "pooled": "another chain fits these data better",
    "own": "habits differ between subjects",
    "hour": "habits depend on the hour",
    "order2": "the next state depends on more than the present one",
}
_KNOWS = {
    "pooled": "that chain",
    "own": "each subject's habits",
    "hour": "the hours",
    "order2": "the last two states",
    "forgets": "how soon the least forgetful subject forgets",
}
_REMEDY = {
    "pooled": "fit to these data",
    "own": "fit --each-subject",
    "hour": "fit --clock hour",
    "order2": "fit --order 2",
    "forgets": "fit --forgets 1 --forgets 2 --forgets 4 …",
}
_MISSING = {"pooled": "that chain", "own": "each subject's own chain", "hour": "the hour", "order2": "longer memory"}
CALLED = {
    "pooled": "one chain of these data",
    "own": "each subject's own chain",
    "hour": "a matrix for each hour",
    "order2": "the last two states",
    "forgets": "how soon the least forgetful subject forgets",
}


def gain_of(subject: SubjectCheck) -> float:
    """Return by how many nats in all a subject's own chain predicts it better than the model and one chain for all."""
    if subject.own is None:
        return -math.inf
    return subject.transitions * (subject.own - max(subject.model, subject.pooled))


def _differing_of(subjects: Sequence[SubjectCheck]) -> list[SubjectCheck]:
    """Return the subjects whose own chains clearly predict them better, even where that of all others does not."""
    return sorted((subject for subject in subjects if gain_of(subject) > CLEARLY), key=gain_of, reverse=True)


def _leaks_more(richer: RicherModel, epsilon: float) -> bool:
    """Return whether the noise leaks more than was promised to somebody who knows a richer model."""
    return richer.leakage is not None and not richer.leakage <= epsilon * WITHIN


def verdict_lines(verdict: str) -> list[str]:
    """Return the sentences that say whether to go on, what decides, and what else leaks."""
    sentences = sentences_of(verdict)
    return sentences[:2] + [sentence for sentence in sentences[2:] if sentence.startswith(_ELSE)]


_ELSE = ("The doubt:", "Besides,")
"""How the sentence begins that tells what leaks though the data do not say that it is so."""


def sentences_of(verdict: str) -> list[str]:
    """Return the sentences of a verdict."""
    return re.split(r"(?<=\.) ", verdict)


def verdict_of(
    gains: Mapping[str, float],
    richer: Sequence[RicherModel],
    epsilon: float,
    subjects: Sequence[SubjectCheck],
    noise: float | None,
) -> str:
    """Return what a check found, in a few sentences: whether to go on, what decides, what is in doubt, what is next.

    ``noise`` is the multiplier of the noise that the model needs.
    """
    return " ".join(_Verdict(gains, richer, epsilon, subjects, noise).sentences())


class _Verdict:
    def __init__(
        self,
        gains: Mapping[str, float],
        richer: Sequence[RicherModel],
        epsilon: float,
        subjects: Sequence[SubjectCheck],
        noise: float | None,
    ) -> None:
        self._gains, self._epsilon, self._subjects, self._noise = gains, epsilon, subjects, noise
        self._differing = _differing_of(subjects)
        self._transitions = sum(subject.transitions for subject in subjects)
        self._found = [kind for kind in _FOUND if self._is_found(kind)]
        self._known = {model.kind: model for model in richer if model.leakage is not None}
        self._others = [model for model in self._known.values() if model.kind != "forgets"]
        self._above = [model for model in self._known.values() if _leaks_more(model, epsilon)]
        self._doubts = self._in_doubt()

    def _is_found(self, kind: str) -> bool:
        return not self._gains.get(kind, 0.0) <= CLEARLY or (kind == "own" and bool(self._differing))

    def _in_doubt(self) -> list[RicherModel]:
        """Return what leaks too much though nothing says that it is so; how soon subjects forget is told apart."""
        return [model for model in self._above if model.kind not in self._found and model.kind != "forgets"]

    def sentences(self) -> Iterator[str]:
        decisive = [model for model in self._above if model.kind in self._found]
        unknown = [kind for kind in self._found if kind not in self._known]
        few = self._transitions < _FEW
        if decisive:
            yield "Do not go on with this model."
        elif unknown or not self._others:
            yield "It is in doubt whether to go on with this model."
        elif few and not self._found:
            yield f"It is in doubt whether to go on with this model: {self._transitions:,} transitions tell little."
        else:
            yield f"Go on with this model{', unless somebody knows more than it says' if self._doubts else ''}."
        yield from self._why(decisive, unknown)
        yield from self._doubt(_ELSE[bool(decisive)])
        yield from self._cautious()
        if decisive:
            yield f"Next: {self._enough(decisive)}{_again(model.kind for model in _most_noise(decisive))}."
        elif unknown:
            yield f"Next: {listed([_REMEDY[kind] for kind in unknown], 'or')}{_again(unknown)}."
        elif few and not self._found:
            otherwise = f"; if there are none, {self._remedies(self._doubts)}" if self._doubts else ""
            yield f"Next: take more public data{otherwise}."
        elif self._doubts:
            yield f"Next: go on if nobody can know so much; if somebody may, {self._enough(self._doubts)}."

    def _why(self, decisive: Sequence[RicherModel], unknown: Sequence[str]) -> Iterator[str]:
        """Yield what decides: which models predict better, and what is leaked to those who know them."""
        noise = f"noise calibrated to this model at ε = {at_most(self._epsilon)}"
        if not self._found:
            looked = {"own": "each subject's own chain", "hour": "the hour"}
            others = [words for kind, words in looked.items() if kind in self._gains]
            verb = "do" if others else "does"
            without = listed([*others, "the state two steps before"])
            yield f"What decides: {without} {verb} not clearly predict these data better."
            if "hour" not in self._gains:
                yield "Hours were not looked at."
            if not self._others:
                yield "What noise for it leaks to somebody who knows more is not computed."
            elif not self._doubts:
                most = max(model.leakage or 0.0 for model in self._others)
                yield f"{capital(noise)} leaks at most {at_most(most, 3)} to somebody who knows these, too."
            return
        findings = listed([self._says(kind) for kind in self._found])
        leaks = listed([_leaks(self._known[kind]) for kind in self._found if kind in self._known])
        if not leaks:
            yield f"What decides: {findings}, and what {noise} leaks for that is not computed."
            return
        if decisive:
            yield f"What decides: {findings}, and {noise} would leak {leaks}."
        else:
            yield f"What decides: {findings}, but {noise} covers it: it leaks {leaks}."
        if unknown:
            yield f"What {listed([_MISSING[kind] for kind in unknown])} leaks is not computed."

    def _says(self, kind: str) -> str:
        if kind != "own" or self._gains.get(kind, 0.0) > CLEARLY:
            return _FOUND[kind]
        names = [f"subject {subject.subject}" for subject in self._differing[:_NAMED]]
        if more := len(self._differing) - len(names):
            names.append(f"{more:,} more")
        return f"habits of {listed(names)} differ from those of the others"

    def _doubt(self, first: str) -> Iterator[str]:
        """Yield what leaks more than was promised though the data do not say that it is so."""
        if self._doubts:
            yield (
                f"{first} its noise would leak {listed([_leaks(model) for model in self._doubts])}, "
                f"where {at_most(self._epsilon)} is promised."
            )
            chances = [self._chance_of_own(model) for model in self._doubts if model.kind == "own"]
            others = [CALLED[model.kind] for model in self._doubts if model.kind != "own"]
            by = [f"these data are not clearly better predicted by {listed(others, 'or')}"] if others else []
            why = listed([*chances, *by])
            yield f"That can be chance, and a check cannot say how much of it is: {why}."

    def _cautious(self) -> Iterator[str]:
        """Yield what leaks under the Θ that assumes least: of itself that says nothing against another model."""
        for model in self._above:
            if model.kind == "forgets" and model.leakage is not None:
                amount = "without a known limit" if math.isinf(model.leakage) else f"up to {at_most(model.leakage, 3)}"
                yield (
                    f"A cautious look: its noise would leak {amount} under a Θ that assumes nothing but how soon the "
                    f"least forgetful subject forgets ({_REMEDY['forgets']}); that may be so where this model is "
                    "right, too."
                )

    def _chance_of_own(self, richer: RicherModel) -> str:
        """Say how much of each subject's own chain may be chance, by the subject that decides."""
        who = next((s for s in self._subjects if richer.decided_by == f"subject {s.subject}"), None)
        if who is None:
            return "own chains do not clearly predict their subjects better"
        gain = gain_of(who)
        comparison = f"better by {gain:.1f} only" if gain > 0 else "no better"
        return (
            f"subject {who.subject} has {who.transitions:,} transitions, which its own chain predicts {comparison} "
            f"(above {CLEARLY:g} nats would be clear)"
        )

    def _remedies(self, richer: Sequence[RicherModel]) -> str:
        return listed([f"{_REMEDY[model.kind]}{self._cost(model)}" for model in richer], "or")

    def _enough(self, richer: Sequence[RicherModel]) -> str:
        """Return the remedy whose noise covers all of these models."""
        enough = _most_noise(richer)
        also = "; so much noise covers the others that are named, too" if len(enough) < len(richer) else ""
        return f"{self._remedies(enough)}{also}"

    def _cost(self, richer: RicherModel) -> str:
        """Return what a richer model costs, as far as that is known."""
        needs = richer.noise_multiplier
        if needs is None or self._noise is None:
            return ""
        if needs <= self._noise:
            return " (without more noise)"
        times = number(needs / self._noise, 2)
        return f" (noise about {times} times as large, multiplier {needs:.3g} instead of {self._noise:.3g})"


def _most_noise(richer: Sequence[RicherModel]) -> list[RicherModel]:
    """Return the model that needs the most noise, as more noise leaks less under the others; all, where one needs ∞."""
    needs = [math.inf if model.noise_multiplier is None else model.noise_multiplier for model in richer]
    most = max(needs)
    return [richer[needs.index(most)]] if most < math.inf else list(richer)


def _again(kinds: Iterable[str]) -> str:
    """Return that the new model is to be checked, where it is of a kind that can be."""
    return "; and check again" if {"pooled", "own"}.issuperset(kinds) else ""


def _leaks(richer: RicherModel) -> str:
    assert richer.leakage is not None
    knows = f"the habits of {richer.decided_by}" if richer.decided_by else _KNOWS[richer.kind]
    amount = "without a known limit" if math.isinf(richer.leakage) else f"up to {at_most(richer.leakage, 3)}"
    return f"{amount} to somebody who knows {knows}"


def listed(parts: Sequence[str], word: str = "and") -> str:
    """Return parts as a list in a sentence."""
    return "".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def capital(text: str) -> str:
    """Return a text as a sentence begins."""
    return text[:1].upper() + text[1:]


# -- A check as text: its verdict ------------------------------------------------------------------------------------

_MOST_SUBJECTS, _MOST_STATES = 12, 8

_SIMPLER = {
    "pooled": "this model",
    "own": "this model or one chain, whichever is better",
    "order2": "one chain of these data",
    "hour": "one chain of these data",
}


def text_of(check: CheckFields, reworded: Callable[[str], str] = str, *, details: bool = True) -> str:
    """Return a check as text: the verdict, then the numbers it rests on.

    ``reworded`` turns errors of the library, by which numbers are missing, into the reader's words. Without
    ``details`` the subjects and the hours are told only where the verdict speaks of them, and overlaps never.
    """
    return "\n".join(printable(line) for line in _lines(check, reworded, details))


def _lines(check: CheckFields, reworded: Callable[[str], str], details: bool) -> Iterator[str]:
    many = len(check.subjects)
    yield from sentences_of(check.verdict)
    yield ""
    yield f"Θ: {check.origin}"
    who = "one chain" if many == 1 else f"{many:,} subjects"
    yield f"held against {check.source}: {check.records:,} records, {check.transitions:,} transitions of {who}"
    yield ""
    yield from _leakage(check, reworded)
    yield ""
    yield from _predictions(check)
    yield ""
    yield from _stays(check)
    differ = check.gains.get("own", 0.0) > CLEARLY or any(gain_of(subject) > CLEARLY for subject in check.subjects)
    if details or (differ and many > 1):
        yield ""
        yield from _subjects(check)
    if details:
        yield ""
        yield from _overlaps(check)
    if check.occupancy is not None and (details or check.gains.get("hour", 0.0) > CLEARLY):
        yield ""
        yield from _hours(check)


def _leakage(check: CheckFields, reworded: Callable[[str], str]) -> Iterator[str]:
    noise = "" if check.noise_multiplier is None else f" (multiplier {check.noise_multiplier:.3g})"
    of = f"the noise of a histogram, calibrated to this model at ε = {at_most(check.epsilon)}{noise}"
    yield f"what {of}, leaks at most, in nats"
    rows = [
        (
            CALLED[model.kind],
            "" if model.leakage is None else "no bound" if math.isinf(model.leakage) else at_most(model.leakage, 3),
            "" if model.noise_multiplier is None else f"{model.noise_multiplier:.3g}",
            model.decided_by or "",
        )
        for model in check.richer
        if model.reason is None
    ]
    yield from aligned(("to somebody who knows", "leakage", "multiplier it needs", "decided by"), rows)
    for model in check.richer:
        if model.reason is not None:
            yield f"  {CALLED[model.kind]}: not computed: {reworded(model.reason)}"


def _predictions(check: CheckFields) -> Iterator[str]:
    yield (
        "do other models predict these data better? gain: the sum over all transitions, in nats; above "
        f"{CLEARLY:g} is clearly better, below 0 is worse"
    )
    kinds = [kind for kind in _SIMPLER if kind in check.gains]
    rows = [
        (CALLED[kind], _SIMPLER[kind], f"{check.gains[kind]:+,.0f}".replace("inf", "∞"), _better(check.gains[kind]))
        for kind in kinds
    ]
    yield from aligned(("model", "compared with", "gain", "better?"), rows, texts=2)
    if check.gains.get("pooled") == math.inf:
        yield "  +∞: this model takes some of these transitions as impossible"


def _better(gain: float) -> str:
    if gain > CLEARLY:
        return "yes"
    return "not clearly" if gain > 0 else "no"


def _stays(check: CheckFields) -> Iterator[str]:
    """Yield how long states last."""
    yield "how many records a state lasts: on average, and the number within which 95% of its stays end"
    rows = [
        (
            s.state,
            *(_ends(s.least[i], s.most[i]) if ours else _seen(s.observed, i) for i in (0, 1) for ours in (False, True)),
        )
        for s in check.stays
    ]
    yield from aligned(("state", "average, data", "average, model", "95%, data", "95%, model"), rows)
    if any(s.observed is not None and math.isinf(s.observed[1]) for s in check.stays):
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
    ends = ["never ends" if math.isinf(end) else number(end, 3) for end in (least, most)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _subjects(check: CheckFields) -> Iterator[str]:
    """Yield how well each subject is predicted."""
    kinds = [kind for kind in ("pooled", "own", "order2", "hour") if kind in check.gains]
    names = {"pooled": "one chain", "own": "own chain", "order2": "order 2", "hour": "by hour"}
    subjects = sorted(check.subjects, key=lambda s: s.model - (s.own if s.own is not None else s.pooled))
    shown = sorted(subjects[:_MOST_SUBJECTS], key=lambda s: _in_order(s.subject))
    left = len(subjects) - len(shown)
    some = f", of the {len(shown)} subjects whose own chain beats the model most" if left else ""
    yield f"log-likelihood per transition, in nats (nearer to 0 is better){some}"
    yield "  the model is taken as it stands; the others predict each transition from all other transitions"
    total = sum(s.transitions for s in check.subjects)
    rows: list[tuple[str, ...]] = []
    if len(check.subjects) > 1:
        whole = [sum(s.transitions * (getattr(s, kind) or 0.0) for s in check.subjects) for kind in ("model", *kinds)]
        rows.append(("all", f"{total:,}", *(f"{value / total:.4f}" for value in whole)))
    for s in shown:
        values = [getattr(s, kind) for kind in ("model", *kinds)]
        rows.append((s.subject or "all", f"{s.transitions:,}", *(f"{value:.4f}" for value in values)))
    yield from aligned(("subject", "transitions", "model", *(names[kind] for kind in kinds)), rows)
    if left:
        yield f"  and {counted(left, 'subject')} whose own chain beats the model by less, or does not"


def _overlaps(check: CheckFields) -> Iterator[str]:
    """Yield how soon the present is forgotten."""
    missing = "" if check.overlaps else ": not known for these data"
    yield f"overlap of the laws of the state, given any two states some steps away (1: all is forgotten){missing}"
    rows = [
        (f"{o.steps}", f"{o.pooled:.3f}", "" if o.model is None else f"{o.model:.3f}", f"{o.worst:.3f}", o.subject)
        for o in check.overlaps
    ]
    yield from aligned(("steps", "all data", "model", "least forgetful subject", "who"), rows)


def _in_order(name: str) -> list[tuple[int, str]]:
    """Return what names are sorted by, so that subject 2 comes before subject 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _hours(check: CheckFields) -> Iterator[str]:
    assert check.occupancy is not None
    totals = [sum(row[x] for row in check.occupancy) for x in range(len(check.states))]
    usual = sorted(sorted(range(len(totals)), key=lambda x: -totals[x])[:_MOST_STATES])  # in the model's order
    rest = "" if len(usual) == len(totals) else f", the {len(usual)} most frequent states"
    yield f"share of each state by the hour{rest}"
    rows: list[tuple[str, ...]] = []
    for hour, row in enumerate(check.occupancy):
        if n := sum(row):
            rows.append((f"{hour}", f"{n:,}", *(f"{row[x] / n:.3f}" for x in usual)))
    if check.stationary:
        rows.append(("model", "", *(_range(*check.stationary[x]) for x in usual)))
    yield from aligned(("hour", "records", *(check.states[x] for x in usual)), rows)


def _range(least: float, most: float) -> str:
    return f"{least:.3f}" if f"{least:.3f}" == f"{most:.3f}" else f"{least:.3f} to {most:.3f}"


def aligned(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Iterator[str]:
    """Yield lines with aligned columns, the first ``texts`` of them to the left; none without rows."""
    lines = [tuple(head), *map(tuple, rows)]
    if len(lines) == 1:
        return
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        cells = [f"{cell:{'<' if i < texts else '>'}{widths[i]}}" for i, cell in enumerate(line)]
        yield "  " + "  ".join(cells).rstrip()
