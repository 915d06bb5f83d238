"""Certificates: proofs of a release's bound that plain code checks in whole numbers (docs/proofs/certificate.md).

The checker (:mod:`pufferfish.release.checker`, the same files as in ``certificate``) asks for bounds F and G that what
later and earlier records tell does not exceed. Here they are found: by the checker's own rule, first in doubles, then
in whole numbers, until each follows from the others. No engine of a mechanism has a part in it, and nothing that is
found has to be right.
"""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

from pufferfish._base.checked import truth
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.writing import record_kind, write_whole
from pufferfish._core.phi.certificate import least_factors
from pufferfish._core.phi.phi import Kernel, LogRatios, close, solve_slopes
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.release.checker import check, check_more, check_networks
from pufferfish.release.derive import data_record
from pufferfish.release.draw import Database
from pufferfish.release.network_certificate import ends_first, of_network
from pufferfish.release.prepare import draft_of
from pufferfish.release.record import ReleaseFields, encoded

FORMAT = "pufferfish-proof"

PROOF = record_kind("proof", FORMAT, "it is the proof of another release; name another file")

_DIGITS, _FEW_DIGITS, _FEW_STATES = 9, 5, 8
"""Digits of the numbers of proofs, and of those of chains with more states: so they stay small."""

_NETWORK_DIGITS = 6
"""Digits of proofs for networks, whose bounds are many and near 1: with fewer, rounding up takes more noise."""

_SLACK = {_DIGITS: 1e-7, _FEW_DIGITS: 5e-4}
"""By which share losses are taken larger while bounds are searched: room for rounding numbers up."""

_STEADY = 0.05
"""Changes whose ratio moves by less than this share of what it lacks to 1 are summed up in advance."""

_SLOWEST, _MOST_SLOW = 0.9999, 100
"""Changes that shrink no more than this for so many rounds are taken to go on for ever."""

_MOST_ROUNDS = 3000
"""How often bounds are raised until none has to be."""

_MOST_STALLED = 3
"""After so many rounds in which changes do not shrink by half, the largest are kept from going down again."""

_SHORT = 48
"""Series of at most so many records have a bound for each record: one for all lengths would take more noise."""

_SETTLED = Fraction(1, 10**7)
"""How near a given law must have come to the stationary one for the last bound."""

_MOST_SCALES, _FURTHER = 50, 1.4
"""How many scales are tried, and how much larger the next one is at most."""

_MOST_AGES = 120
"""Bounds of the past of chains with a given law, or any, at most."""

_NEAR = 2e-5
"""How near the proved leakage comes to ε, as a share of it."""

_MOST_TOTAL = 100
"""No more is proved of several releases together: factors would be too large for doubles."""

_TOTAL_DIGITS = 6
"""Digits of that total behind the point."""

_DEAR = 0.002
"""From this price on a proof names moves, where that lowers it by half of this."""

_REFUSED = "there is no certificate: "

Numbers = list[list[int]]
_Moves = dict[tuple[int, int], list[tuple[int, int]]]


@dataclass(frozen=True)
class Certificate(ReadOnly):
    """A proof of what a release leaks, for a checker that shares no code with this program; made by :func:`certify`.

    Parameters
    ----------
    proof : str
        What the checker reads beside the release, as JSON.
    calibration : Calibration or None
        Noise whose promise it proves: that which was given, or a little more (``price``); None for a release.
    price : float
        By which share the scale of the noise is larger than that which was given.
    group_privacy : bool
        Whether no bounds were found near that noise, so that it was raised to what hides all records together.
    """

    proof: str
    calibration: Calibration | None
    price: float
    group_privacy: bool = False

    def check(self, record: ReleaseFields) -> None:
        """Ask the checker whether it proves what a record promises; values may be lacking.

        Raises
        ------
        NotApplicableError
            If not.
        """
        values = record.noisy_values or [0.0] * len(record.query.labels)
        try:
            check_texts(encoded(msgspec.structs.replace(record, noisy_values=values)), self.proof)
        except check.NotProved as error:
            raise NotApplicableError(f"the checker does not prove it: {error}", "certify") from error
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
            raise NotApplicableError(f"the checker cannot read it: {error!r}", "certify") from error

    def to_json(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> str:
        """Return the proof as JSON, and write it to a file if a path is given.

        Raises
        ------
        RecordError
            If the file cannot be written, or is there already.
        """
        replaces = truth(overwrite, "overwrite")
        if path is not None:
            write_whole(path, self.proof.encode(), PROOF, overwrite=replaces)
        return self.proof


def certify(noise: Calibration | ReleaseFields | Sequence[ReleaseFields]) -> Certificate:
    """Return a proof that noise or a release keeps its promise, or of what several releases cost together.

    Parameters
    ----------
    noise : Calibration, Release or list of Release
        What is to be proved. Of a calibration the scale is raised to what is provable, mostly by less than .2%; that of
        a release stays as it is. Several releases are of the same rows and Θ, and hide the same: the proof says the
        least ε that is provable for all of them together.

    Raises
    ------
    NotApplicableError
        If certificates do not cover it, or if none was found for the scale of a release; the message says why.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> certificate = pf.certify(pf.LeakagePropagation(chain, length=100).calibrate(pf.Histogram(), epsilon=1.0))
    >>> certificate.price < 1e-3, certificate.proof[:61]
    (True, '{"format":"pufferfish-proof","version":1,"digits":9,"members"')
    """
    if isinstance(noise, list | tuple) and noise and all(isinstance(each, ReleaseFields) for each in noise):
        return _of_total(noise)
    if isinstance(noise, ReleaseFields):
        claim = claim_of(noise)
        members, leakage = proved(claim)
        if leakage > claim.epsilon:
            members, leakage = proved(claim, named=True)
        if claim.epsilon < leakage < math.inf:
            raise NotApplicableError(
                f"its noise is proved to tell at most {leakage:.9g} in rounded numbers, more than the "
                f"{float(claim.epsilon):.9g} that it promises: ask for the certificate when you release with an "
                "epsilon, whose noise is then the provable one",
                "certify",
            )
        found = Certificate(_text(claim, members), None, 0.0)
        found.check(noise)
        return found
    if not isinstance(noise, Calibration):
        raise ParameterError(f"noise is {type(noise).__name__}, expected a Calibration, a Release or a list of them")
    claim = claim_of(record_of_noise(noise))
    scale, members = _provable(claim, noise.unit_scale)
    if scale > noise.unit_scale * (1 + _DEAR) and not isinstance(claim, check_networks.Table):
        cheaper = _provable(claim, noise.unit_scale, named=True)
        if cheaper[0] < scale * (1 - _DEAR / 2):
            scale, members = cheaper
    provable = replace(noise, unit_scale=scale)
    of_all = scaled(claim, noise.unit_scale, scale).of_all
    found = Certificate(
        _text(claim, members), provable, scale / noise.unit_scale - 1, of_all <= claim.epsilon < claim.of_all
    )
    found.check(record_of_noise(provable))
    return found


def _of_total(releases: Sequence[ReleaseFields]) -> Certificate:
    """Return a proof of the least ε for all releases together."""
    try:
        claims = [claim_of(release) for release in releases]
        claim = check_more.together(claims, Fraction(1))
        alone = claim.of_all * (1 - Fraction(1, 10**9))
        claim.epsilon = min(alone, 2 * sum(other.epsilon for other in claims) + 1, Fraction(_MOST_TOTAL))
        members, leakage = proved(claim)
        cheaper = proved(claim, named=True)
        if cheaper[1] < leakage * (1 - _DEAR):
            members, leakage = cheaper
        if leakage >= claim.of_all:
            members, leakage = [None] * len(members), float(claim.of_all)
        if leakage == math.inf:
            raise NotApplicableError(f"{_REFUSED}no bounds were found for the total cost of these releases", "certify")
        epsilon = math.ceil(leakage * (1 + 1e-9) * 10**_TOTAL_DIGITS) / 10**_TOTAL_DIGITS
        text = json.dumps({**json.loads(_text(claim, members)), "epsilon": epsilon}, separators=(",", ":"))
        proof = check.parsed(text, check_more.TOTAL, "proof of a total")
        check.prove(check_more.together(claims, Fraction(proof["epsilon"])), proof)
    except check.NotProved as error:
        raise NotApplicableError(f"{_REFUSED}{error}", "certify") from error
    return Certificate(text, None, 0.0)


def check_texts(release: str | bytes, proof: str | bytes) -> None:
    """Check a proof by the checker's own functions."""
    check.prove(check.claim_of(release), check.parsed(proof, check.PROOF, "proof"))


def record_of_noise(calibration: Calibration) -> ReleaseFields:
    """Return the record of a release with this noise, of no data: its values are 0."""
    data = data_record(Database({}), calibration)
    draft = draft_of(ReleaseFields, calibration, data, (calibration.epsilon, calibration.witness, ()))
    return msgspec.structs.replace(draft, noisy_values=[0.0] * len(draft.query.labels))


def claim_of(record: ReleaseFields) -> Any:
    """Return what a record promises, as the checker reads it."""
    try:
        claim: Any = check.claim_of(encoded(record))
    except check.NotProved as error:
        raise NotApplicableError(f"{_REFUSED}{error}", "certify") from error
    if isinstance(claim, check_networks.Table):
        claim.digits = _NETWORK_DIGITS
    else:
        claim.digits = _DIGITS if len(claim.states) <= _FEW_STATES else _FEW_DIGITS
    return claim


def _text(claim: Any, members: Sequence[Any]) -> str:
    proof = {"format": FORMAT, "version": 1, "digits": claim.digits, "members": list(members)}
    return json.dumps(proof, separators=(",", ":"))


# -- The least scale that is provable --------------------------------------------------------------------------------


def _provable(claim: Any, scale: float, *, named: bool = False) -> tuple[float, list[Any]]:
    """Return the least scale found that can be proved, at least ``scale``, and the proofs of members."""
    epsilon, first = float(claim.epsilon), scale
    enough: tuple[float, list[Any]] | None = None
    too_small, members = 0.0, list[Any]()
    for _ in range(_MOST_SCALES):
        members, leakage = proved(scaled(claim, first, scale), members, named=named)
        if leakage <= epsilon:
            enough = scale, members
            if scale == first or leakage >= epsilon * (1 - _NEAR) or scale <= too_small * (1 + _NEAR):
                break
            scale = max(too_small * (1 + _NEAR / 2), scale * leakage / epsilon * (1 + _NEAR / 2))
        else:
            too_small = scale
            scale *= min(leakage / epsilon * (1 + _NEAR / 2), _FURTHER)
            if enough is not None and scale >= enough[0]:
                break
    if enough is None:
        raise NotApplicableError(f"{_REFUSED}no provable scale was found near that of the noise", "certify")
    return enough


def scaled(claim: Any, first: float, scale: float) -> Any:
    """Return a claim with noise of another scale."""
    other, ratio = copy(claim), Fraction(first) / Fraction(scale)
    losses: Any = check.entrywise(ratio.__mul__, claim.losses)
    other.pays(losses, claim.step * ratio)
    return other


def proved(claim: Any, near: Sequence[Any] = (), *, named: bool = False) -> tuple[list[Any], float]:
    """Return a proof of every member, and what leaks at most, in nats.

    Parameters
    ----------
    claim : Claim
        What a release promises.
    near : sequence of dict or None
        Proofs for nearly such noise.
    named : bool
        Whether a proof names moves where the checker's own ones need larger bounds.
    """
    members = check.members_of(claim.release["theta"])
    proofs, most = list[Any](), 0.0
    for (kind, member), guess in zip(members, near or [None] * len(members), strict=True):
        proof: dict[str, Any] | None = None
        try:
            if claim.of_all <= claim.epsilon:  # the losses of all records together: it needs no model
                leakage = float(claim.of_all)
            else:
                model = check.model_of(kind, member, len(claim.states))
                claim.factors(2)  # losses that are out of range are refused, and what follows has group privacy
                with suppress(check.NotProved, _Unbounded):
                    leakage = math.inf
                    if isinstance(model, check.Chain):
                        proof, leakage = _of_chain(model, claim, guess, named=named)
                    elif isinstance(model, check_networks.Network):
                        proof, leakage = of_network(model, claim)
                    else:
                        leakage = _of_forgetting(model, claim)
        except (check.NotProved, OverflowError) as error:
            raise NotApplicableError(f"{_REFUSED}{error}", "certify") from error
        proofs.append(proof)
        most = max(most, leakage)
    return proofs, most


def _of_forgetting(model: Any, claim: Any) -> float:
    """Return what leaks at most under a class that forgets, in nats."""

    def enough(limit: int) -> bool:
        return model.tells_at_most(limit, claim)

    most = check.exp(2 * claim.epsilon, True)
    return math.log(_least(enough, most, check.ONE, most >> 40) / check.ONE) if enough(most) else math.inf


def _of_chain(
    chain: Any, claim: Any, near: Mapping[str, list[Numbers]] | None, *, named: bool
) -> tuple[dict[str, list[Numbers]], float]:
    """Return a proof of a chain, and what leaks at most by it, in nats."""
    ahead, behind, beside, of_step = chain.losses(claim)
    after, before = _numbers_of_bounds(chain, claim)
    sides = (
        ("future", ahead, chain.future(after, claim.longest), after),
        ("past", behind, chain.past(before, claim.longest), before),
    )
    both = {
        name: _bounds(chain, claim, loss, of_step, steps, count, None if near is None else near[name], named=named)
        for name, loss, steps, count in sides
    }
    found: dict[str, Any] = {name: numbers for name, (numbers, _) in both.items()}
    if any(any(moves) for _, moves in both.values()):
        found["moves"] = {name: moves for name, (_, moves) in both.items()}
    bounds = [[claim.bound(each, len(chain.states)) for each in found[name]] for name in ("future", "past")]

    def enough(limit: int) -> bool:
        return chain.tells_at_most(limit, *bounds, claim)

    futures, pasts = bounds
    if claim.records > 1:
        largest = [max(entry for bound in side for row in bound for entry in row) for side in bounds]
        most = check.over(check.exp(chain.of_stretch(claim), True), *largest)
    else:
        told = chain.told(len(pasts), len(futures), claim.longest)
        met = ((check.multiplied(behind, beside, pasts[i], futures[j]), step.alive) for i, j, step, _ in told)
        most = max((bound[c][d] for bound, alive in met for c in alive for d in alive), default=check.ONE)
    nearly = most - (most >> 32)
    return found, math.log((_least(enough, nearly, check.ONE, most >> 32) if enough(nearly) else most) / check.ONE)


def _numbers_of_bounds(chain: Any, claim: Any) -> tuple[int, int]:
    """Return how many bounds each side has: one for all lengths, of short series one for each record."""
    clock = _phases(chain)
    if clock > 1:
        return clock, clock
    if claim.longest <= _SHORT:
        return claim.longest, claim.longest
    if not isinstance(chain, check_more.Chain) or chain.start == "stationary":
        return 1, 1
    ages = min(claim.longest, _MOST_AGES)
    if chain.given is None:
        return 1, ages
    settled = check_more.stationary(chain.kernels[0])[0][0]
    for age, (law, _) in enumerate(chain.laws_at(ages)):
        ratios = [Fraction(a, b) if b else Fraction(0) for a, b in zip(law[0], settled, strict=True)]
        if min(ratios) > 0 and max(ratios) / min(ratios) < 1 + _SETTLED:
            return 1, age + 1
    return 1, ages


def _phases(chain: Any) -> int:
    return chain.phases if isinstance(chain, check_more.Chain) else 1


def _bounds(
    chain: Any,
    claim: Any,
    loss: Any,
    of_step: int,
    steps: Any,
    count: int,
    near: list[Numbers] | None,
    *,
    named: bool,
) -> tuple[list[Numbers], list[Numbers]]:
    """Return bounds of a side, as small as fulfil the checker's inequalities; for each step the moves it must name."""
    size, links, clock = len(chain.states), list(steps), _phases(chain) > 1
    found: list[Numbers] = [[[0] * size for _ in range(size)] for _ in range(count)]
    fine, left_out = copy(claim), 10 ** (_DIGITS - claim.digits)
    fine.digits = _DIGITS
    follows = _Follows(fine, loss, of_step, _SLACK[claim.digits], named)
    # which moves are made first is found once the bounds are; then they are put in whole numbers
    onwards = [link for link in links if link[0] != link[1] and not clock]
    again = [link for link in links if link[0] == link[1] or clock]
    for start, end, step in onwards:
        found[end] = follows.least(step, found[start], found[start])
    if again:
        start = near and [[[n * left_out for n in row] for row in bound] for bound in near]
        rest = max(1, left_out // 4)
        if clock:
            _settle_around(found, again, follows, start or None, rest=rest)
        else:
            found[-1] = _settle_alone(found[-1], again[0][2], follows, start[-1] if start else None, rest=rest)
    cheapest = [follows.moves_to_name(step, found[start], found[end]) for start, end, step in links]
    # what follows from another bound is at least 1: another checker rounds equal rows to unequal ones
    ends = {end for _, end, _ in links}
    found = [
        [[max(-(-n // left_out), int(i in ends and x != y)) for y, n in enumerate(row)] for x, row in enumerate(bound)]
        for i, bound in enumerate(found)
    ]
    whole = _Follows(claim, loss, of_step)
    steps_on = [(link, moves) for link, moves in zip(links, cheapest, strict=True) if link in onwards]
    steps_again = [(link, moves) for link, moves in zip(links, cheapest, strict=True) if link not in onwards]
    for (start, end, step), moves in steps_on:
        whole.raise_(step, found[start], found[end], moves)
    for _ in range(_MOST_ROUNDS):
        if not sum(whole.raise_(step, found[start], found[end], moves) for (start, end, step), moves in steps_again):
            return found, [
                whole.needed(step, found[start], found[end], moves)
                for (start, end, step), moves in zip(links, cheapest, strict=True)
            ]
    raise _Unbounded


def _settle_around(
    found: list[Numbers],
    links: Sequence[tuple[int, int, Any]],
    follows: "_Follows",
    near: list[Numbers] | None,
    *,
    rest: int,
) -> None:
    """Find bounds that lead to each other, step by step until they change by no more than ``rest``."""
    last, ratio, slow, floors = 0, 1.0, 0, {end: np.array(found[end], dtype=object) for _, end, _ in links}
    if near is not None:
        for end, floor in floors.items():
            found[end] = np.maximum(floor, np.array(near[end], dtype=object)).tolist()
    for _ in range(_MOST_ROUNDS):
        changes = dict[int, Any]()
        for start, end, step in links:
            now = np.array(found[end], dtype=object)
            least = np.array(follows.least(step, found[start], found[end]), dtype=object)
            found[end] = np.maximum(least, floors[end]).tolist()
            changes[end] = np.array(found[end], dtype=object) - now
        most = max(int(np.abs(change).max()) for change in changes.values())
        if most <= rest:
            return
        before, ratio = ratio, most / last if last else 1.0
        last, slow = most, slow + 1 if ratio > _SLOWEST else 0
        if slow > _MOST_SLOW:
            if all((change >= 0).all() for change in changes.values()):
                raise _Unbounded
            return  # they go round: the rule does not always take less for less
        if abs(ratio - before) < _STEADY * (1 - ratio):  # changes shrink by this ratio: all that are to come, at once
            for end, change in changes.items():
                ahead = np.array([int(n * ratio / (1 - ratio)) for n in change.ravel()], dtype=object)
                further = np.array(found[end], dtype=object) + ahead.reshape(change.shape)
                found[end] = np.maximum(further, floors[end]).tolist()
            last = 0
    raise _Unbounded


def _settle_alone(bound: Numbers, step: Any, follows: "_Follows", near: Numbers | None, *, rest: int) -> Numbers:
    """Return a bound of at least some numbers that a step leads to itself, up to ``rest``, by Newton's method."""
    floor = np.array(bound, dtype=object)
    found = floor if near is None else np.maximum(floor, np.array(near, dtype=object))
    least, stalled = math.inf, 0
    for _ in range(_MOST_ROUNDS):
        before, numbers = found, found.tolist()
        found = np.maximum(np.array(follows.least(step, numbers, numbers), dtype=object), floor)
        change = found - before
        most = np.abs(change).max()
        if most <= rest:
            return found.tolist()
        stalled = 0 if most < least / 2 else stalled + 1
        least = min(least, most)
        if stalled > _MOST_STALLED:  # the rule does not always take less for less: what went down and up stays up
            floor = np.where(np.abs(change) > most / 2, np.maximum(before, found), floor)
            least, stalled = math.inf, 0
        ahead = before + follows.to_rest(step, change)
        if 0 <= ahead.min() and ahead.max() <= follows.most:
            found = np.maximum(ahead, floor)
    raise _Unbounded


@dataclass(frozen=True)
class _Follows:
    """What follows from bounds that are whole numbers of a proof, by the checker's inequality."""

    claim: Any
    loss: Any
    step_factor: int
    slack: float = 0.0
    named: bool = False
    in_doubles: dict[int, tuple[Any, list[int]]] = field(default_factory=dict[int, Any])
    slopes: dict[int, list[Any]] = field(default_factory=dict[int, Any])
    search: dict[int, tuple[LogRatios, Kernel]] = field(default_factory=dict[int, Any])

    @property
    def most(self) -> float:
        """The largest number of a bound in a proof: factors are no larger than e^ε."""
        return math.expm1(float(self.claim.epsilon)) * 10**self.claim.digits

    @property
    def _unit(self) -> int:
        return 10 ** (18 - self.claim.digits)

    @property
    def _far(self) -> float:
        """The factor from which on a bound is far more than may leak."""
        return 9 * math.exp(min(4 * float(self.claim.epsilon), 700.0))

    def _arrives(self, before: Numbers, slack: float) -> list[list[int]]:
        """Return bounds and the loss of a record together, the loss taken larger by a share."""
        loss = self.loss
        if slack:
            loss = [[math.ceil(entry * (entry / check.ONE) ** slack) for entry in row] for row in loss]
        return check.multiplied(loss, [[check.ONE + n * self._unit for n in row] for row in before])

    def _asked(self, step: Any, bound: list[list[int]], named: "_Moves | None" = None) -> Callable[..., bool]:
        """Return what says whether a number is enough for a pair, by moves that are named or without them."""
        moves = step.moves(bound)

        def enough(x: int, x_: int, n: int, *, alone: bool = False) -> bool:
            factor = (check.ONE + n * self._unit) * check.ONE // self.step_factor
            if step.holds(x, x_, factor, bound, moves):
                return True
            if alone or not named:
                return False
            first = [(bound[y][z], y, z) for y, z in named[x, x_]]
            return step.holds(x, x_, factor, bound, first + moves)

        return enough

    def least(self, step: Any, before: Numbers, guess: Numbers) -> Numbers:
        """Return the least numbers found that follow from those before, for losses that are a little larger."""
        bound = self._arrives(before, self.slack)
        found = [[0] * len(row) for row in before]
        if not step.pairs:
            return found
        if id(step) not in self.in_doubles:
            cases = [list(step.cases(x, x_)) for x, x_ in step.pairs]
            rows = np.array([_in_doubles(row, case) for of_pair in cases for case in of_pair for row in case])
            self.in_doubles[id(step)] = rows, [*map(len, cases)]
        rows, counts = self.in_doubles[id(step)]
        if self.named and type(step) is check.Step:
            return self._cheapest(step, np.array(bound, dtype=np.float64) / check.ONE, found)
        place, guesses = np.arange(len(rows)).reshape(-1, 2), [guess[x][x_] for x, x_ in step.pairs]
        doubles = np.array(bound, dtype=np.float64) / check.ONE
        start = np.repeat(1 + np.array(guesses, dtype=np.float64) / 10**self.claim.digits, counts)
        factors, *slopes = least_factors(rows, place, doubles, np.array(step.alive, dtype=np.intp), start)
        firsts = np.cumsum([0, *counts[:-1]])
        largest = np.maximum.reduceat(factors, firsts)
        decide = np.maximum.reduceat(
            np.where(factors == np.repeat(largest, counts), np.arange(len(rows) // 2), 0), firsts
        )
        self.slopes[id(step)] = [part[decide] for part in slopes]
        if isinstance(step, check_more.StepOfAnyLaw):
            less, *slopes = _of_two_states(step, doubles)
            for mine, other in zip(self.slopes[id(step)], slopes, strict=True):
                mine[less < largest] = 0
                mine[less < largest, 0] = other[less < largest]
            largest = np.minimum(largest, less)
        if not np.all(largest < self._far):
            raise _Unbounded
        return self._numbers(step, largest, found)

    def _numbers(self, step: Any, factors: Any, found: Numbers) -> Numbers:
        over = self.step_factor / check.ONE
        for (x, x_), factor in zip(step.pairs, factors.tolist(), strict=True):
            found[x][x_] = math.ceil((factor * over - 1) * 10**self.claim.digits)
        return found

    def _cheapest(self, step: Any, bound: Any, found: Numbers) -> Numbers:
        """Return what follows by the cheapest moves, which :mod:`pufferfish._core.phi` searches for."""
        if id(step) not in self.search:
            rows = np.array([[entry / sum(row) if any(row) else 0.0 for entry in row] for row in step.rows])
            has_pairs = np.isin(np.arange(len(rows)), [x for x, _ in step.pairs])
            self.search[id(step)] = LogRatios(), Kernel(rows, rows, has_pairs)
        ratios, kernel = self.search[id(step)]
        dead = ~np.isin(np.arange(len(bound)), step.alive)
        a = np.log(bound)
        a[dead], a[:, dead] = np.inf, np.inf
        np.fill_diagonal(a, 0.0)
        a = close(a)
        pairs = np.array(step.pairs)
        factors = np.exp(ratios(kernel, a)[pairs[:, 0], pairs[:, 1]])
        if not np.all(factors < self._far):
            raise _Unbounded
        found_slopes = ratios.slopes(np.arange(len(pairs)))
        if found_slopes is None:  # with numbers so large no flow is near
            raise _Unbounded
        tails, heads, shares = found_slopes
        self.slopes[id(step)] = [tails, heads, factors[:, None] * shares / np.exp(a)[tails, heads]]
        return self._numbers(step, factors, found)

    def moves_to_name(self, step: Any, before: Numbers, guess: Numbers) -> "_Moves | None":
        """Return moves for each pair of a step, those of the cheapest flow, ends of its tree first."""
        if not (self.named and type(step) is check.Step and step.pairs):
            return None
        self.least(step, before, guess)
        tails, heads, _ = self.slopes[id(step)]
        each = zip(step.pairs, tails.tolist(), heads.tolist(), strict=True)
        return {pair: ends_first(list(zip(ys, zs, strict=True))) for pair, ys, zs in each}

    def needed(self, step: Any, before: Numbers, after: Numbers, named: "_Moves | None") -> Numbers:
        """Return the pairs that do not follow by the checker's own moves, each with its moves."""
        if not named:
            return []
        enough = self._asked(step, self._arrives(before, 0.0))
        lacking = [(x, y) for x, y in step.pairs if not enough(x, y, after[x][y], alone=True)]
        return [[x, y, *(end for move in named[x, y] for end in move)] for x, y in lacking]

    def to_rest(self, step: Any, change: Any) -> Any:
        """Return how far numbers go that a step leads to themselves, of which the last change was the first step."""
        if not step.pairs:
            return change
        tails, heads, slopes = self.slopes[id(step)]
        of_loss = np.array(self.loss, dtype=np.float64) / check.ONE * (self.step_factor / check.ONE)
        x, x_ = np.array(step.pairs).T
        steps = solve_slopes(change.astype(np.float64), x, x_, tails, heads, slopes * of_loss[tails, heads])
        return np.array([round(n) for n in steps.ravel()], dtype=object).reshape(change.shape)

    def raise_(self, step: Any, before: Numbers, after: Numbers, named: "_Moves | None" = None) -> int:
        """Raise numbers that do not follow from those before, and return how many there were."""
        enough, raised = self._asked(step, self._arrives(before, 0.0), named), 0
        for x, x_ in step.pairs:
            if not enough(x, x_, after[x][x_]):
                after[x][x_] = _first(lambda n, x=x, x_=x_: enough(x, x_, n), after[x][x_])
                raised += 1
        return raised


def _in_doubles(row: Sequence[int], case: Sequence[Sequence[int]]) -> list[float]:
    """Return a row of a case as doubles, both of its rows over one number."""
    largest = max(max(part) for part in case) or 1
    return [entry / largest for entry in row]


def _of_two_states(step: Any, bound: Any) -> tuple[Any, Any, Any, Any]:
    """Return what two states of the earlier record allow at most, for each pair of a step under any first law.

    With it those two states, and how fast it grows with their bound.
    """
    alive = np.array(step.alive)
    rows = np.array([[entry / check.FINE for entry in row] for row in step.rows])[alive]
    s, off = bound[np.ix_(alive, alive)], ~np.eye(len(alive), dtype=np.bool_)
    found = list[tuple[float, int, int, float]]()
    for x, x_ in step.pairs:
        a, b = (np.outer(rows[:, one], rows[:, other]) for one, other in ((x, x_), (x_, x)))
        root = np.sqrt(a * b * s)
        above, below = b + a * s + 2 * root, a + b * s + 2 * root
        some = off & (below > 0)
        factors = np.divide(above, below, out=np.ones_like(s), where=some)
        y, z = np.unravel_index(np.argmax(factors), s.shape)
        turn = root[y, z] / s[y, z]  # the derivative of twice the root
        slope = (a[y, z] + turn - factors[y, z] * (b[y, z] + turn)) / below[y, z] if some[y, z] else 0.0
        found.append((float(factors[y, z]), int(alive[y]), int(alive[z]), float(slope)))
    factors, tails, heads, slopes = (np.array(column) for column in zip(*found, strict=True))
    return factors, tails, heads, slopes


def _first(enough: Callable[[int], bool], guess: int) -> int:
    """Return a number that is enough, the least near a guess."""
    if enough(guess):
        return _least(enough, guess, 0, guess >> 24)
    low, step = guess, 1
    while not enough(low + step):
        low, step = low + step, 2 * step
        if step > 1 << 60:
            raise _Unbounded
    return _least(enough, low + step, low, step >> 24)


class _Unbounded(Exception):
    """No finite bounds were found."""


def _least(enough: Callable[[int], bool], most: int, least: int, near: int) -> int:
    """Return the least number that is enough, where ``most`` is; within so much of it."""
    if enough(least):
        return least
    while most - least > max(1, near):
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most
