"""Does Θ still hold? Released numbers against the class, with their noise taken into account.

Nothing but records that are published is read, so it costs no privacy. What a class allows is bounded without any
normal approximation (:mod:`pufferfish.release.against`), over all numbers together: a class that is right is called
wrong with probability at most 1%, whatever the releases have in common.
"""

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pufferfish._base.checked import listed
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.reading import display_path
from pufferfish._base.view import Grid, View, counted
from pufferfish._base.words import at_least, at_most, number
from pufferfish.check.record import FORMAT, VERSION, Checked, Verdict
from pufferfish.check.words import WITHIN, aligned, some
from pufferfish.data.steps import same_step, skips_steps
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, PufferfishError, printable, shortened
from pufferfish.fit.model_file import Model
from pufferfish.mechanisms import GroupDP
from pufferfish.queries import FunctionQuery, LinearQuery, StepQuery, Transitions
from pufferfish.queries.of_states import ARROW
from pufferfish.queries.query import RecordQuery
from pufferfish.release.against import Allowed, Part, allowed, allowed_after, chain_sums, network_sums, step_bounds
from pufferfish.release.record import ReleaseFields, any_release, calibration_again, function_of_user, query_again
from pufferfish.release.release import Release
from pufferfish.release.series import label_of
from pufferfish.release.steps import chain_of_counts
from pufferfish.release.sums import Value, values_of
from pufferfish.release.verification import check_named_once
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Theta, as_theta

_WRONG = 0.01
"""A class that is right is called wrong with at most this probability."""

_HALVES = 4
"""From so many releases on their first half is compared with the second."""


class ReleasedNumber(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A released number, what Θ says of it, and what it allows with noise and chance.

    ``release`` and ``output`` say which number: of one release, of all of them together, or the change from their first
    half to the second. Expected values under Θ lie between ``low`` and ``high``, where each subject may follow another
    member; ``released`` is the number as the noise left it. ``noise`` and ``sampling`` are standard deviations: of its
    noise, exactly; of the records under Θ, or a bound on it. ``departure`` is how far it is beyond the expected values,
    in standard deviations of both; 0 where it is not. ``least`` and ``most`` are what Θ allows, over all numbers
    together but with probability 1%, and ``says`` whether anything that can be counted is beyond that.
    """

    release: str
    output: str
    low: float
    high: float
    released: float
    noise: float
    sampling: float
    departure: float
    least: float
    most: float
    says: bool

    @property
    def contradicts(self) -> bool:
        """Whether Θ does not allow it."""
        return not self.least <= self.released <= self.most

    @property
    def hidden(self) -> float:
        """How far it could be beyond what Θ expects, and still be allowed."""
        return max(self.most - self.high, self.low - self.least)


class LeaksTo(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the noise of a release leaks to somebody who knows the chain that released transitions point to.

    ``epsilon`` was promised; ``leakage`` is in nats, None where it is not known, and then there is a ``reason``.
    """

    release: str
    epsilon: float
    leakage: float | None = None
    reason: str | None = None

    @property
    def more(self) -> bool:
        """Whether it is more than was promised."""
        return self.leakage is not None and self.leakage > self.epsilon * WITHIN


class ReleasedCheck(Checked, FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether releases fit a class Θ: a verdict and numbers; prints as text. Made by :func:`check_released`.

    ``verdict`` says whether to go on, and why, ``origin`` where Θ came from, ``releases`` what was held against it,
    ``numbers`` every number that could be compared, and ``not_compared`` what could not, and why. ``points_to`` is the
    matrix of the chain that released transitions point to, empty without any, and ``leaks`` what the noise of each
    release leaks under that chain.
    """

    format: str = FORMAT
    version: int = VERSION
    kind: str = "releases"
    verdict: Verdict  # pyrefly: ignore[bad-override]
    origin: str
    releases: tuple[str, ...]
    states: tuple[str, ...]
    numbers: tuple[ReleasedNumber, ...]
    points_to: tuple[tuple[float, ...], ...]
    leaks: tuple[LeaksTo, ...]
    not_compared: tuple[str, ...]

    def __str__(self) -> str:
        return released_text(self)

    def _view(self) -> View:
        facts = {"class Θ": self.origin, "releases": ", ".join(self.releases)}
        grids = [Grid("Released numbers, and what Θ allows", list(_HEADS), _rows(self.numbers), heads=2)]
        if self.points_to:
            rows = [[state, *row] for state, row in zip(self.states, self.points_to, strict=True)]
            grids.append(Grid("The chain that released transitions point to", ["from", *self.states], rows))
        return View(self.verdict.sentence, facts, grids, [*str(self.verdict).splitlines()[1:], *self.not_compared])


def check_released(model: Any, releases: Any) -> ReleasedCheck:
    """Check a model against releases, with their noise taken into account; this costs no privacy.

    Parameters
    ----------
    model : Model, or what it is made of: chains of any kinds, a class of them, or a BayesianNetwork
        The class Θ; the releases may be made under another one.
    releases : Release or path-like, or a sequence of them
        The releases, in the order of their time.

    Returns
    -------
    ReleasedCheck
        Numbers and a verdict; it prints as text. A class that is right is called wrong with probability at most 1%.

    Raises
    ------
    ParameterError, RecordError
        If there is no release, or one has other states than Θ; if a file is none, or contradicts itself.
    NotApplicableError
        If Θ is neither a class of chains nor one network.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    >>> data = pf.read_sequences(pl.DataFrame({"s": ["rest", "active"] * 4000}), "s")
    >>> noise = pf.LeakagePropagation(chain, data.length).calibrate(pf.Transitions(), epsilon=1)
    >>> check_released(chain, pf.release(data, pf.Transitions(), noise)).verdict.word
    'do not go on'
    """
    theta: Theta = model.theta if isinstance(model, Model) else as_theta(model)
    if not (theta.of_chains or theta.networks):
        raise NotApplicableError(f"Θ is a class of {theta.kind}, and a check covers chains and networks")
    one = isinstance(releases, ReleaseFields | str | os.PathLike)
    given = [releases] if one else listed(releases, "releases", "releases or their files, such as week1.json")
    if not given:
        raise ParameterError("there is no release: give one or several, or their files")
    held = _Held(theta, (model.step if isinstance(model, Model) else None) or theta.step)
    for release in given:
        held.take(release)
    return held.check()


class _Taken(NamedTuple):
    """A release that is compared: its name, its record, its query under Θ, and its values, of all groups together."""

    name: str
    record: ReleaseFields
    linear: RecordQuery
    values: list[Value]


class _Held:
    """Releases that are held against a class, one by one."""

    def __init__(self, theta: Theta, step: str | None) -> None:
        self._theta, self._step = theta, step
        self._names, self._not = list[str](), list[str]()
        self._named: list[tuple[str, ReleaseFields]] = []
        self._releases = list[_Taken]()
        self._sums: Any = None
        self._steps: Any = None
        try:
            self._sums = network_sums(theta) if theta.networks else chain_sums(theta)
        except ModelError as error:
            self._not.append(f"how many records are in each state, or make each step: {error}")
        if theta.of_chains:
            try:
                self._steps = step_bounds(theta)
            except ModelError as error:
                self._not.append(f"where steps from a state lead: {error}")

    def take(self, given: Any) -> None:
        """Take a release, checked; one that cannot be compared is named."""
        record = any_release(given)
        if record is not given and isinstance(record, ReleaseFields) and record.subjects is None:
            record = Release.from_json(given)
        if isinstance(record, ReleaseFields):
            name = label_of(given, record)
        else:
            name = record.measurement if record is given else display_path(given)
        earlier = self._names.count(name)
        self._names.append(name)
        name = f"{name} ({earlier + 1})" if earlier else name
        if not isinstance(record, ReleaseFields):
            self._not.append(f"{name}: it is of a measurement, whose numbers are not known")
            return
        if list(record.theta.states) != list(self._theta.states):
            raise ParameterError(
                f"{name} is of the states {shortened(', '.join(record.theta.states))}, and the model of "
                f"{shortened(', '.join(self._theta.states))}: name the model of these records"
            )
        self._named.append((name, record))
        check_named_once(self._named)
        try:
            self._releases.append(_Taken(name, record, *self._values(record)))
        except PufferfishError as error:
            self._not.append(f"{name}: {error}")

    def _values(self, record: ReleaseFields) -> tuple[RecordQuery, list[Value]]:
        """Return a release's values, of all its groups together, and its query; refused where they are of no sums."""
        if record.subjects is not None:
            raise ParameterError("its values are in a table, one for each subject")
        if function_of_user(record) is not None:
            raise ParameterError("it is of a function of the user's")
        ours, base = self._step, record.data.base
        if ours and base is not None:  # as a release asks it
            theirs = base.step or record.data.usual_step if base.time is None or base.max_gap else None
            if theirs is None:
                raise ParameterError(f"nobody knows how far apart its records are, and those of Θ are {ours} apart")
            if not same_step(ours, theirs):
                raise ParameterError(f"its records are {theirs} apart, and those of Θ {ours}")
            if skips_steps(base, ours):
                raise ParameterError(f"records up to {base.max_gap} apart count as one step of {ours}")
        alike = self._theta.of_chains and record.theta.of_chains
        if not alike and record.theta.kind != self._theta.kind:
            raise ParameterError(f"it is of a class of {record.theta.kind}, and Θ of {self._theta.kind}")
        length: Any = record.calibration.chains() if alike else record.calibration.records
        linear = GroupDP.of(self._theta, length).bind(query_again(record))  # which covers every class
        if list(linear.labels) != record.query.labels:
            raise ParameterError("its numbers have other names under Θ")
        if isinstance(linear, FunctionQuery) or (
            alike and isinstance(linear, LinearQuery) and linear.factors is not None
        ):
            raise ParameterError(f"a query of the kind {record.query.kind} is not compared")
        groups, outputs, values = record.groups, len(record.query.labels), list(values_of(record).values())
        if groups is None:
            return linear, values
        if sum(groups.records) != record.data.counted:
            raise ParameterError("its groups do not hold every record once")
        return linear, [values[o].total_with(values[o + outputs :: outputs]) for o in range(outputs)]

    # -- Every number ----------------------------------------------------------------------------------------------

    def check(self) -> ReleasedCheck:
        """Return every number that can be compared, and the verdict."""
        asked = list(self._asked())
        nats = math.log(2 * max(len(asked), 1) / _WRONG)
        numbers = [_number_of(each, nats) for each in asked if each is not None]
        chain = self._points_to()
        leaks = [] if chain is None else self._leaks(chain)
        return ReleasedCheck(
            verdict=_verdict(numbers, leaks),
            origin=self._theta.origin,
            releases=tuple(self._names),
            states=tuple(self._theta.states),
            numbers=tuple(numbers),
            points_to=() if chain is None else tuple(map(tuple, chain.transition_matrix.tolist())),
            leaks=tuple(leaks),
            not_compared=tuple(dict.fromkeys(self._not)),
        )

    def _asked(self) -> Iterator["_Asked | None"]:
        """Yield each number: of each release, of all of a query, and of the halves; None for one that is unknown.

        How many there are never depends on what the noise was, for it says how sure each has to be.
        """
        alike: dict[Any, list[_Taken]] = defaultdict(list)
        for each in self._releases:
            alike[each.record.query.kind, tuple(each.record.query.labels)].append(each)
        for same in alike.values():
            several = [same] if len(same) > 1 else []
            for some_of in (*([each] for each in same), *several):
                name = some_of[0].name if len(some_of) == 1 else f"all {len(some_of)}"
                yield from self._of_sums(name, some_of, [1 / len(some_of)] * len(some_of))
                yield from self._of_steps(name, some_of)
            half = len(same) // 2
            if len(same) >= _HALVES:
                worth = [-1 / half] * half + [1 / (len(same) - half)] * (len(same) - half)
                yield from self._of_sums("second half less first", same, worth)

    def _of_sums(self, name: str, releases: Sequence["_Taken"], worth: Sequence[float]) -> Iterator["_Asked"]:
        """Yield the mean of each output, as shares where it is of several releases."""
        if self._sums is None:
            return
        per = "step" if isinstance(releases[0].linear, StepQuery) else "record"
        for output, label in enumerate(releases[0].record.query.labels):
            parts, value = list[Part](), 0.0
            for each, factor in zip(releases, worth, strict=True):
                try:
                    sums, largest, number_of = self._sums(each.linear, output, each.record.data)
                except ModelError as error:
                    self._not.append(f"{each.name}, {label}: {error}")
                    return
                if not number_of:
                    self._not.append(f"{each.name}: there is nothing that it counts")
                    return
                one = each.values[output]
                factor *= one.worth if len(releases) == 1 else one.unit / number_of
                parts.append(Part(factor, sums, largest, number_of, one.scales))
                value += factor * one.units
            shown = label if len(releases) == 1 else f"{label}, per {per}"
            reach = [part.factor * part.largest * part.records for part in parts]
            ends = sum(min(0.0, end) for end in reach), sum(max(0.0, end) for end in reach)
            yield name, shown, value, ends, partial(allowed, parts)

    def _of_steps(self, name: str, releases: Sequence["_Taken"]) -> Iterator["_Asked | None"]:
        """Yield where steps from each state lead, of releases of transitions."""
        if self._steps is None or releases[0].record.query.kind not in Transitions.kinds:
            return
        states, (low, high) = self._theta.states, self._steps
        k = len(states)
        for x in range(k):
            rows = [each.values[k * x : k * x + k] for each in releases]
            after = [(np.array([value.units for value in row]), [value.scales for value in row]) for row in rows]
            counts = np.sum([counts for counts, _ in after], axis=0)
            if counts.sum() <= 0:
                self._not.append(f"{name}: no number of steps from {states[x]} that is above 0 was released")
                yield from [None] * k
                continue
            for y in range(k):
                label = f"{states[x]}{ARROW}{states[y]}, of steps from there"
                allows = partial(allowed_after, float(low[x, y]), float(high[x, y]), after, y)
                yield name, label, float(counts[y] / counts.sum()), (0.0, 1.0), allows

    # -- The chain that transitions point to -----------------------------------------------------------------------

    def _points_to(self) -> MarkovChain | None:
        """Return the chain of all released transitions together."""
        k = len(self._theta.states)
        total, steps = np.zeros((k, k)), 0
        for each in self._releases:
            if each.record.query.kind in Transitions.kinds:
                total += np.array([value.units for value in each.values]).reshape(k, k)
                steps += each.record.data.steps or 0
        return chain_of_counts(total, steps, self._theta.states) if steps else None

    def _leaks(self, chain: MarkovChain) -> list[LeaksTo]:
        """Return what the noise of each release leaks under a chain; what is the same is asked once."""
        known, leaks = dict[bytes, tuple[float | None, str | None]](), list[LeaksTo]()
        for name, record, _, _ in self._releases:
            key = msgspec.json.encode((record.mechanism.name, record.calibration, record.noise))
            if key not in known:
                try:
                    known[key] = calibration_again(record, as_theta(chain)).prove_leakage(), None
                except PufferfishError as error:
                    known[key] = None, str(error)
            leakage, reason = known[key]
            leaks.append(LeaksTo(release=name, epsilon=record.epsilon, leakage=leakage, reason=reason))
        return leaks


_Asked = tuple[str, str, float, tuple[float, float], Callable[[float], Allowed]]
"""Of a number its release, its output, its value, what can be counted at all, and what Θ allows for some nats."""


def _number_of(asked: _Asked, nats: float) -> ReleasedNumber:
    release, output, released, (low, high), allows = asked
    found = allows(nats)
    found = replace(found, low=max(found.low, low), high=min(found.high, high))  # nothing else can be counted
    says = found.least > low or found.most < high
    departure = found.beyond(released)
    return ReleasedNumber(
        release=release, output=output, released=released, departure=departure, says=says, **asdict(found)
    )


# -- In words --------------------------------------------------------------------------------------------------------


def _verdict(numbers: Sequence[ReleasedNumber], leaks: Sequence[LeaksTo]) -> Verdict:
    """Return whether the releases fit Θ, and what that rests on."""
    wrong, telling = [n for n in numbers if n.contradicts], [n for n in numbers if n.says]
    known = [leak for leak in leaks if leak.leakage is not None]
    reasons, word = list[str](), "go on"
    if wrong:
        worst = sorted(wrong, key=lambda n: -n.departure)
        named = [f"{n.output} of {n.release} ({_released(n)})" for n in worst]
        reasons.append(f"the releases do not fit Θ: {some(named)}")
        word = "do not go on"
        if known and len(known) == len(leaks) and not any(leak.more for leak in leaks):
            word = "in doubt"
    elif telling:
        beyond = f"none of {counted(len(numbers), 'number')} is beyond what Θ allows with noise"
        reasons.append(f"the releases fit Θ: {beyond}")
        reasons.append(_hidden(telling))
    else:
        word, what = "in doubt", "their noise hides any departure"
        what = what if numbers else "there is nothing in them that can be compared with Θ"
        reasons.append(f"the releases tell nothing of Θ: {what}")
    if known:
        most = max(known, key=lambda leak: (leak.leakage or 0.0) / leak.epsilon)
        chain = "under the chain that the released transitions point to"
        told = f"noise sold as ε = {at_most(most.epsilon)} leaks {_nats(most.leakage or 0.0)} {chain} ({most.release})"
        estimate = "; the chain is an estimate from noisy counts, and may point there where Θ is right"
        reasons.append(told + (estimate if most.more and not wrong else ""))
    reasons.append(
        f"a Θ that is right is called wrong with probability {_WRONG:.0%} at most; this rests on published numbers "
        "alone, and is not kept in the model"
    )
    return Verdict(word=word, reasons=tuple(reasons))  # type: ignore[arg-type]


def _nats(leakage: float) -> str:
    return "without a known limit" if math.isinf(leakage) else at_most(leakage, 3)


def _released(n: ReleasedNumber) -> str:
    return f"{number(n.released, 3)} where Θ says {_expected(n)}, {n.departure:.1f} standard deviations beyond"


def _expected(n: ReleasedNumber) -> str:
    low, high = number(n.low, 3), number(n.high, 3)
    return low if low == high else f"{low} to {high}"


def _hidden(telling: Sequence[ReleasedNumber]) -> str:
    """Say how small a departure would not be seen: of each output by the release that hides least."""
    least: dict[str, ReleasedNumber] = {}
    for n in telling:
        if n.output not in least or n.hidden < least[n.output].hidden:
            least[n.output] = n
    widest = sorted(least.values(), key=lambda n: -n.hidden)
    named = [f"{at_most(n.hidden, 2)} of {n.output} ({n.release})" for n in widest]
    return f"departures are not seen that are smaller than {some(named)}"


_HEADS = ("release", "number", "Θ says", "released", "noise", "chance", "beyond by", "Θ allows", "")


def _rows(numbers: Iterable[ReleasedNumber]) -> list[list[str]]:
    return [
        [
            *(n.release, n.output, _expected(n), number(n.released, 3), number(n.noise, 2), number(n.sampling, 2)),
            *(f"{n.departure:.1f}", f"{at_least(n.least, 3)} to {at_most(n.most, 3)}"),
            "NO" if n.contradicts else "" if n.says else "tells nothing",
        ]
        for n in numbers
    ]


_MOST_ROWS = 40


def released_text(check: ReleasedCheck, *, details: bool = True) -> str:
    """Return a check of releases as text; without details of many numbers those that Θ allows least."""
    return "\n".join(printable(line) for line in _lines(check, details))


def _lines(check: ReleasedCheck, details: bool) -> Iterator[str]:
    yield from str(check.verdict).splitlines()
    yield ""
    yield f"Θ: {check.origin}"
    yield f"held against {some(list(check.releases))}"
    yield from (f"not compared: {line}" for line in check.not_compared)
    shown = list(check.numbers)
    if not details and len(shown) > _MOST_ROWS:
        shown = sorted(shown, key=lambda n: (not n.contradicts, -n.departure))[:_MOST_ROWS]
    if shown:
        yield ""
        yield "released numbers, standard deviations of their noise and of chance under Θ, and what Θ allows with both"
        yield from aligned(_HEADS, [tuple(row) for row in _rows(shown)])
    if len(shown) < len(check.numbers):
        yield f"{len(check.numbers) - len(shown):,} more numbers are not shown (--details)"
    if check.points_to:
        yield ""
        yield "the chain that released transitions point to"
        rows = zip(check.states, check.points_to, strict=True)
        yield from aligned(("from", *check.states), [(state, *(f"{p:.3g}" for p in row)) for state, row in rows])
    for leak in check.leaks:
        told = f"not known: {leak.reason}" if leak.leakage is None else _nats(leak.leakage)
        yield f"leakage under it of {leak.release}, sold as ε = {at_most(leak.epsilon)}: {told}"
