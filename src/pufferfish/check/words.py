"""The verdict of a check: whether to go on with a model, what decides, what is in doubt, and what to do next.

What is held against a model are two kinds of numbers. *Gains* say whether a richer model makes left-out days clearly
likelier: only that tells of the data that the model lacks something. *Leakages* say what the noise would leak if a
richer model were true. Where days do not demand it, its leakage rests on what may be chance: that is a doubt, and is
said as one, beside what chance alone gives.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from pufferfish._base.view import counted, in_columns
from pufferfish._base.words import at_most, number
from pufferfish.check.record import CheckFields, Remedy, RicherModel, SubjectCheck, Verdict
from pufferfish.errors import printable
from pufferfish.fit.left_out import LEAST_GAIN

WITHIN = 1.005
"""Leakage up to this multiple of ε counts as what was promised."""

_FEW = 1000  # with fewer transitions than this it is said that they are few
_NAMED = 3  # subjects and pairs that a sentence names; of others the number is said
_FOUND = {
    "pooled": "these days are likelier under another chain",
    "own": "habits differ between subjects",
    "hour": "habits depend on the hour",
    "order2": "the next state depends on more than the present one",
    "stays": "stays are of several kinds, short ones and long ones",
    "own order2": "what depends on more than the present state differs between subjects",
    "own stays": "short and long stays differ between subjects",
}
KNOWS = {
    "pooled": "one chain of these data",
    "own": "everybody's own chain",
    "hour": "a matrix for each hour",
    "order2": "the last two states",
    "stays": "the kinds of stay",
    "own order2": "everybody's own memory",
    "own stays": "everybody's own kinds of stay",
    "forgets": "how soon the least forgetful subject forgets",
}
_OPTIONS = {
    "own": "--each-subject",
    "hour": "--clock hour",
    "order2": "--order 2",
    "stays": "--stays",
    "own stays": "--stays --each-subject",
    "own order2": "--defend",
}


def leaks_more(richer: RicherModel | SubjectCheck | None, epsilon: float) -> bool:
    """Return whether the noise leaks more than was promised, as far as that is known."""
    return richer is not None and richer.leakage is not None and not richer.leakage <= epsilon * WITHIN


def leaks(richer: RicherModel | SubjectCheck) -> str:
    """Return what the noise leaks, which is known."""
    assert richer.leakage is not None
    return "without a known limit" if math.isinf(richer.leakage) else f"up to {at_most(richer.leakage, 3)}"


def more_noise(richer: RicherModel | None, noise: float | None) -> str:
    """Return how much more noise a richer model needs, as far as that is known."""
    needs = None if richer is None else richer.noise_multiplier
    if needs is None or noise is None:
        return ""
    return " (without more noise)" if needs <= noise else f" (multiplier {needs:.3g} instead of {noise:.3g})"


def verdict_of(
    richer: Sequence[RicherModel],
    subjects: Sequence[SubjectCheck],
    *,
    epsilon: float,
    noise: float | None,
    same_people: bool = False,
    coverage: str = "",
    fit: str = "pufferfish fit TABLE",
) -> Verdict:
    """Return whether to go on with a class of this ``noise``, why, and what to do next, by the command ``fit``."""
    return _Judge(richer, subjects, epsilon, noise).verdict(same_people, coverage, fit)


class _Judge:
    def __init__(
        self, richer: Sequence[RicherModel], subjects: Sequence[SubjectCheck], epsilon: float, noise: float | None
    ) -> None:
        self._richer, self._epsilon, self._noise = [m for m in richer if m.kind != "forgets"], epsilon, noise
        self._cautious = [m for m in richer if m.kind == "forgets" and leaks_more(m, epsilon)]
        self._differing = sorted((s for s in subjects if s.differs), key=lambda s: -(s.nats or 0.0))
        self._transitions = sum(s.transitions for s in subjects)
        self._found = [m for m in self._richer if self._is_found(m)]
        self._decisive = sorted(
            (m for m in self._found if self._contradicts(m)), key=lambda m: -(math.inf if m.nats is None else m.nats)
        )
        leaking = [m for m in self._richer if leaks_more(m, epsilon) and m not in self._decisive]
        self._doubts = [m for m in leaking if m.nats is None or -m.nats < max(LEAST_GAIN, 2 * (m.error or 0.0))]

    def _is_found(self, model: RicherModel) -> bool:
        """Return whether days demand a model; one chain alone is no matter of likelihoods where Θ says none."""
        alone = model.kind == "pooled" and model.nats is None and model.reason is None
        return model.demanded or alone or (model.kind == "own" and bool(self._differing))

    def _contradicts(self, model: RicherModel) -> bool:
        """Return whether a model that days demand is none of Θ, for the noise leaks too much under it."""
        if model.least is not None and self._noise is not None and model.least <= self._noise:
            return False
        if model.kind == "own" and not model.demanded:
            return any(leaks_more(subject, self._epsilon) for subject in self._differing)
        return leaks_more(model, self._epsilon)

    def verdict(self, same_people: bool, coverage: str, fit: str) -> Verdict:
        demanded = [m for m in self._found if m.nats is not None]
        unknown = [m for m in demanded if m.leakage is None]
        errors = [m.error for m in self._richer if m.error is not None]
        no_days = bool(errors) and min(errors) == math.inf
        few = not demanded and (self._transitions < _FEW or no_days)
        word = "go on"
        if self._decisive:
            word = "do not go on"
        elif self._noise is None or unknown or few or all(m.leakage is None for m in self._richer):
            word = "in doubt"
        covered = [m for m in demanded if m not in self._decisive and m not in self._doubts]
        reasons = [self._why(m) for m in (*self._decisive, *covered)]
        if few:
            told = f"{self._transitions:,} transitions" if self._transitions < _FEW else "transitions of a single day"
            reasons.append(f"{told} are few: use more public data")
        elif not demanded:
            asked = [KNOWS[m.kind] for m in self._richer if m.nats is not None]
            reasons.append(f"left-out days are not clearly likelier under {listed(asked, 'or')}")
        if self._noise is None:
            reasons.append("the leakage of the noise is not computed, because there is no noise for this model")
        reasons += [f"a doubt: {self._doubt(m)}" for m in self._doubts]
        for model in self._cautious:
            reasons.append(
                f"a cautious estimate: the noise leaks {leaks(model)} if only {KNOWS[model.kind]} is known (fit "
                "--forgets); this can happen even if the model is right"
            )
        if same_people:
            reasons.append("the model was fitted to these people: this check proves nothing about others")
        reasons += [coverage] if coverage and word == "go on" else []
        # others may be shadows of what makes days likeliest: that is fitted first, and checked again
        named = [*self._decisive[:1], *_most_noise(self._decisive or unknown or self._doubts)]
        return Verdict(
            word=word,  # type: ignore[arg-type]
            reasons=tuple(reasons),
            remedies=tuple(self._remedy(model, fit) for model in dict.fromkeys(named)),
        )

    def _why(self, model: RicherModel) -> str:
        """Say what days demand, and what the noise leaks for that."""
        only = model.kind == "own" and not model.demanded
        if only:
            names = [f"{s.subject} ({_gain(s)})" for s in self._differing]
            found = f"habits of {some(names)} differ from those of the others"
        else:
            found = f"{_FOUND[model.kind]}{'' if model.nats is None else f' ({_gain(model)})'}"
        if model.leakage is None:
            return f"{found}, and the leakage of the noise in that case is not computed"
        worst = max(self._differing, key=lambda s: s.leakage or 0.0) if only else model
        if worst.leakage is None:
            return found
        who = f"the habits of {worst.subject}" if isinstance(worst, SubjectCheck) else _who(model)
        if leaks_more(worst, self._epsilon):
            noise = f"the noise for ε = {at_most(self._epsilon)}"
            return f"{found}, and {noise} would leak {leaks(worst)} to whoever knows {who}"
        return f"{found}, but the noise covers that: it leaks {leaks(worst)}"

    def _doubt(self, model: RicherModel) -> str:
        """Say what leaks though days do not demand it, and on how little that rests."""
        said = f"the noise would leak {leaks(model)} to whoever knows {_who(model)}"
        if model in self._found and model.least is not None:
            return f"{said}, but resampled days say that a multiplier of {model.least:.3g} may be enough"
        if model.nats is not None:
            price = more_noise(model, self._noise)
            said += f", under which left-out days are not clearly likelier ({_gain(model)}){price}"
        if model.by_chance is not None:
            said += (
                f"; if all people followed one chain, own chains would by chance need up to {model.by_chance:.3g} at "
                "ε = 1"
            )
        return said

    def _remedy(self, model: RicherModel, fit: str) -> Remedy:
        options = f" {_OPTIONS[model.kind]}" if model.kind in _OPTIONS else ""
        command = f"{fit}{options} --output {model.kind.replace(' ', '-')}.json"
        return Remedy(kind=model.kind, command=command, noise_multiplier=model.noise_multiplier)


def _who(model: RicherModel) -> str:
    return f"the {model.decided_by}" if model.decided_by else KNOWS[model.kind]


def _gain(gained: RicherModel | SubjectCheck) -> str:
    assert gained.nats is not None
    assert gained.error is not None
    if math.isinf(gained.nats):
        return "some of these days are impossible under this model"
    return f"{gained.nats:,.0f} nats, standard error {gained.error:,.0f}".replace("inf", "unknown")


def _most_noise(richer: Sequence[RicherModel]) -> list[RicherModel]:
    """Return the model that needs the most noise, as more noise leaks less under the others; all, where one needs ∞."""
    needs = [math.inf if model.noise_multiplier is None else model.noise_multiplier for model in richer]
    most = max(needs, default=0.0)
    return [richer[needs.index(most)]] if 0 < most < math.inf else list(richer)


def listed(parts: Sequence[str], word: str = "and") -> str:
    """Return parts as a list in a sentence."""
    return "".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def some(parts: Sequence[str]) -> str:
    """Return the first parts as a list in a sentence, and how many more there are."""
    return listed([*parts[:_NAMED], *([f"{len(parts) - _NAMED:,} more"] if len(parts) > _NAMED else [])])


# -- A check as text: its verdict ------------------------------------------------------------------------------------

_MOST_SUBJECTS, _MOST_STATES = 12, 8


def text_of(check: CheckFields, reworded: Callable[[str], str] = str, *, details: bool = True) -> str:
    """Return a check as text, ``reworded`` where it quotes errors; without ``details`` what the verdict speaks of."""
    return "\n".join(printable(line) for line in _lines(check, reworded, details))


def _lines(check: CheckFields, reworded: Callable[[str], str], details: bool) -> Iterator[str]:
    many, found = len(check.subjects), {model.kind for model in check.richer if model.demanded}
    yield from str(check.verdict).splitlines()
    yield ""
    yield f"Θ: {check.origin}"
    who = "one chain" if many == 1 else f"{many:,} subjects"
    yield f"checked against {check.source}: {check.records:,} records, {check.transitions:,} transitions of {who}"
    yield from (f"not asked: {reworded(line)}" for line in check.not_asked)
    yield ""
    yield from _richer(check, reworded)
    yield ""
    yield from _stays(check)
    if many > 1 and (details or "own" in found or any(subject.differs for subject in check.subjects)):
        yield ""
        yield from _subjects(check)
    if details:
        yield ""
        yield from _overlaps(check)
    if check.occupancy is not None and (details or "hour" in found):
        yield ""
        yield from _hours(check)


def _richer(check: CheckFields, reworded: Callable[[str], str]) -> Iterator[str]:
    noise = "" if check.noise_multiplier is None else f" (multiplier {check.noise_multiplier:.3g})"
    yield f"what the noise of a histogram for this model, ε = {at_most(check.epsilon)}{noise}, leaks at most, in nats;"
    yield f"and how much likelier days are than under it (clear: above {LEAST_GAIN:g} nats, and twice the error)"
    yield from aligned(RICHER, [row[:-1] for row in richer_rows(check) if not row[-1]])
    for model in check.richer:
        if model.reason is not None:
            yield f"  {KNOWS[model.kind]}: not computed: {reworded(model.reason)}"


RICHER = ("to whoever knows", "leakage", "multiplier it needs", "likelier by", "error", "clear?", "decided by")


def richer_rows(check: CheckFields) -> list[tuple[str, ...]]:
    """Return the table of richer models; the last cells say why there are no numbers."""
    return [
        (
            KNOWS[model.kind],
            "" if model.leakage is None else "no bound" if math.isinf(model.leakage) else at_most(model.leakage, 3),
            "" if model.noise_multiplier is None else f"{model.noise_multiplier:.3g}",
            *_gains(model),
            "" if model.nats is None else "yes" if model.demanded else "no",
            model.decided_by or "",
            model.reason or "",
        )
        for model in check.richer
    ]


def _gains(gained: RicherModel | SubjectCheck) -> tuple[str, str]:
    if gained.nats is None or gained.error is None:
        return "", ""
    return f"{gained.nats:+,.0f}".replace("inf", "∞"), f"{gained.error:,.0f}".replace("inf", "?")


def _stays(check: CheckFields) -> Iterator[str]:
    """Yield how long states last."""
    yield "how many records a state lasts: on average, and the number within which 95% of its stays end"
    yield from aligned(STAYS, stays_rows(check))
    if any(s.observed is not None and math.isinf(s.observed[1]) for s in check.stays):
        yield (
            f"  {_OPEN}: too many of the longest stays are cut off by a gap or the end of the data; the average "
            "counts them as ended, so it is too small"
        )


_OPEN = "not reached"
STAYS = ("state", "average, data", "average, model", "95%, data", "95%, model")


def stays_rows(check: CheckFields) -> list[tuple[str, ...]]:
    """Return the table of stays."""
    return [
        (s.state, *(part for i in (0, 1) for part in (_seen(s.observed, i), _ends(s.least, s.most, i))))
        for s in check.stays
    ]


def _seen(observed: tuple[float, float] | None, i: int) -> str:
    if observed is None:
        return "no end seen"
    return _OPEN if math.isinf(observed[i]) else number(observed[i], 3)


def _ends(least: tuple[float, float] | None, most: tuple[float, float] | None, i: int) -> str:
    if least is None or most is None:
        return "not said"
    ends = ["never ends" if math.isinf(end) else number(end, 3) for end in (least[i], most[i])]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _subjects(check: CheckFields) -> Iterator[str]:
    """Yield who lives by the model."""
    subjects = sorted(check.subjects, key=lambda s: s.nats or 0.0, reverse=True)
    shown = sorted(subjects[:_MOST_SUBJECTS], key=lambda s: _in_order(s.subject))
    left = len(subjects) - len(shown)
    some_of = f", of the {len(shown)} subjects where it is most" if left else ""
    yield f"how much likelier (in nats) left-out days of each subject are under its own chain than under Θ{some_of}"
    rows = [
        (
            s.subject,
            f"{s.transitions:,}",
            "" if s.member is None else f"theta[{s.member}]",
            *_gains(s),
            "yes" if s.differs else "no",
            "" if s.leakage is None else at_most(s.leakage, 3),
        )
        for s in shown
    ]
    yield from aligned(("subject", "transitions", "best of Θ", "likelier by", "error", "clear?", "leakage"), rows)
    if left:
        yield f"  and {counted(left, 'subject')} where it is less"


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


def usual_states(check: CheckFields) -> list[int]:
    """Return the states that are shown by the hour: the most frequent ones, in the model's order."""
    totals = [sum(row[x] for row in check.occupancy or ()) for x in range(len(check.states))]
    return sorted(sorted(range(len(totals)), key=lambda x: -totals[x])[:_MOST_STATES])


def _hours(check: CheckFields) -> Iterator[str]:
    assert check.occupancy is not None
    usual = usual_states(check)
    rest = "" if len(usual) == len(check.states) else f", the {len(usual)} most frequent states"
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
    if len(lines) > 1:
        yield from (f"  {line}" for line in in_columns(lines, [i >= texts for i in range(len(head))]))
