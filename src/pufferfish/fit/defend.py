r"""A class Θ that can be defended: what left-out days demand, everybody's own habits, and how many people that covers.

The rule. People are the subjects with at least 2,000 transitions; nobody else is a member, or counted.

*   The pooled chain is always in. So are people's own chains, where there are two people or more.
*   Hours, a longer memory (order 2) and kinds of stay are each tried against the pooled chain on days that were left
    out (:mod:`.left_out`): what gains more than ten nats, and more than twice its standard error, is demanded, and in.
*   Where memory or kinds of stay are in, everybody's own law of that kind is in too if it gains on left-out days more
    than ten nats, and more than its standard error, over everybody's own chain and over the pooled law of its kind.
*   Asked for more cover than that gives, or for slower stays, it adds every member once more with longer stays.
*   How many people that covers is said by :mod:`.coverage`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pufferfish._base.checked import real_number, whole_at_least
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.progress import part_of
from pufferfish.data.groups import Daily
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ModelError, NotApplicableError, ParameterError
from pufferfish.fit.coverage import Coverage, covered
from pufferfish.fit.left_out import LEAST_GAIN, Gain, LeftOut
from pufferfish.fit.members import PEOPLE, Law, Members, largest_by_chance, leakage_of, noise_of, worst_of
from pufferfish.theta.chain_class import ChainClass

__all__ = ["Coverage", "DefendedFit", "Kind", "drawn_again", "fit_defend"]

_DRAWS = 30
"""How often days are drawn again to say how sure the noise of who decides is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(ReadOnly):
    """A kind of member that was tried: "pooled", "own", "hour", "order2", "stays", "own order2" or "own stays".

    ``gain`` is what it gains on left-out days over what is simpler: None for what is in anyhow, and for what could not
    be tried, of which ``reason`` says why. The worst of its members needs ``noise_multiplier``, for a histogram at ε =
    1 in a long series, and is of the person ``decided_by``; noise for the pooled chain leaks ``leakage`` under it.
    """

    kind: str
    gain: Gain | None = None
    kept: bool = False
    members: int = 0
    noise_multiplier: float | None = None
    decided_by: str | None = None
    leakage: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DefendedFit(ReadOnly):
    """A class Θ that left-out days demand, and what it covers.

    Parameters
    ----------
    theta : class of chains
        The class: all members that were kept.
    sequences : Sequences
        What it was fitted to.
    kinds : tuple of Kind
        What was tried, kept or not.
    coverage : Coverage
        How many people it covers.
    noise_multiplier, decided_by : float, str
        The noise that its worst member needs, for a histogram at ε = 1 in a long series; and which member that is.
    between : (float, float) or None
        From which to which noise that member's days, drawn again, lead: 10 and 90%.
    by_chance : tuple of float
        The largest noise of own chains in simulations of people who all live by the chain of all, sorted by size;
        nothing where there are fewer than two people.
    """

    theta: ChainClass
    sequences: Sequences
    kinds: tuple[Kind, ...]
    coverage: Coverage
    noise_multiplier: float
    decided_by: str
    between: tuple[float, float] | None
    by_chance: tuple[float, ...]


def fit_defend(
    sequences: Sequences,
    *,
    cover: float | None = None,
    slower: float | None = None,
    drop_slowest: bool = False,
    people: int = 1,
) -> DefendedFit:
    """Fit a class Θ that can be defended to public data.

    Parameters
    ----------
    sequences : Sequences
        Public data, read with ``daily=True``; with ``clock="hour"`` hours of the day are tried too.
    cover : float, optional
        The share of people to cover, such as 0.99. What is beyond N / (N + 1) of N people adds members whose stays are
        longer, and rests on a tail of people's noise.
    slower : float, optional
        Add every member once more, with stays so many times as long, such as 1.3: a margin for habits that change.
    drop_slowest : bool, default False
        Leave out as many of the slowest people as ``cover`` allows.
    people : int, default 1
        How many people the release is about, who shall all be covered.

    Raises
    ------
    ParameterError
        If the sequences were read without ``daily``, cover is no share, or slower is below 1.
    ModelError
        If the chain of all has no stationary law.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> rows = {"who": ["a", "b"], "s": [list("rrrrw" * 500), list("rrwwr" * 500)]}
    >>> days = pl.DataFrame(rows).explode("s").with_row_index("t")
    >>> data = pf.read_sequences(days, "s", subject="who", time="t", max_gap=1, daily=True)
    >>> fit = pf.fit_defend(data)
    >>> [kind.kind for kind in fit.kinds if kind.kept][:2], fit.coverage.people, fit.coverage.share
    (['pooled', 'own'], 2, None)
    """
    share = None if cover is None else real_number(cover)
    if cover is not None and (share is None or not 0.5 <= share < 1):
        raise ParameterError(f"cover is {cover!r}, expected a share of people such as 0.95, at least 0.5 and below 1")
    factor = 1.0 if slower is None else real_number(slower)
    if factor is None or not 1 <= factor <= 100:
        raise ParameterError(f"slower is {slower!r}, expected a factor from 1 to 100 by which stays get longer")
    many = whole_at_least(people, "people", 1, ", the number of people in a release")
    if drop_slowest and share is None:
        raise ParameterError("drop_slowest leaves out as many people as cover allows: give cover, such as 0.9")
    left_out = LeftOut(sequences)
    members = Members(sequences, kinds=left_out.kinds, weights=left_out.weights)
    persons = members.people
    kinds, kept = _demanded(members, left_out, persons)
    coverage, kept = covered(
        kept,
        members.daily.subjects,
        share=share,
        people=many,
        slower=factor,
        drop_slowest=drop_slowest,
        unseen=members.unseen,
    )
    worst = worst_of(kept)
    return DefendedFit(
        theta=ChainClass(
            tuple(law.model for law in kept),
            f"fitted to public data: what left-out days demand; {coverage.origin}",
            names=tuple(law.name for law in kept),
        ),
        sequences=sequences,
        kinds=kinds,
        coverage=coverage,
        noise_multiplier=worst.noise,
        decided_by=worst.name,
        between=drawn_again(worst, members.daily),
        by_chance=tuple(largest_by_chance(members.transitions[persons]).tolist()) if len(persons) > 1 else (),
    )


# -- What left-out days demand -----------------------------------------------------------------------------------------


def _demanded(members: Members, left_out: LeftOut, persons: Sequence[int]) -> tuple[tuple[Kind, ...], list[Law]]:
    """Return what was tried, and the members that are kept: the pooled chain first."""
    kinds, kept = list[Kind](), list[Law]()

    def consider(kind: str, gain: Gain | None, *, wanted: bool) -> bool:
        reason, laws = members.why_not(kind), list[Law]()
        if gain is not None and math.isinf(gain.error):
            reason = "there is only one day, so no day can be left out"
        if reason is None:
            try:
                laws = members.of(kind, persons)
            except (ModelError, NotApplicableError) as error:
                reason = str(error)
        if kind == "pooled" and reason is not None:
            raise ModelError(f"the chain of all: {reason}")
        if reason is not None or not laws:
            kinds.append(Kind(kind=kind, gain=gain, reason=reason or "no subject has enough transitions"))
            return False
        worst, first = max(laws, key=lambda law: law.noise), (kept or laws)[0]
        leakage = leakage_of(worst.model, first.noise)  # of nobody else: noise far too small takes long to bound
        kinds.append(
            Kind(
                kind=kind,
                gain=gain,
                kept=wanted,
                members=len(laws),
                noise_multiplier=worst.noise,
                decided_by=None if worst.who is None else members.daily.subjects[worst.who],
                leakage=leakage,
            )
        )
        kept.extend(laws if wanted else [])
        return wanted

    consider("pooled", None, wanted=True)
    several = len(persons) > 1
    if several:
        consider("own", left_out.gain("own", "pooled"), wanted=True)
    else:
        kinds.append(Kind(kind="own", gain=None, reason=f"fewer than two subjects have {PEOPLE:,} transitions"))
    for kind in ("hour", "order2", "stays"):
        gain = None if members.why_not(kind) else left_out.gain(kind, "pooled")
        if consider(kind, gain, wanted=gain is not None and gain.demanded) and several and kind != "hour":
            own = left_out.gain(f"own {kind}", "own", kind)
            consider(f"own {kind}", own, wanted=own.nats > max(LEAST_GAIN, own.error))
    return tuple(kinds), kept


def drawn_again(law: Law, daily: Daily) -> tuple[float, float] | None:
    """Return from which to which noise a member's days lead when they are drawn again, 10 and 90%."""
    steps, runs = daily.steps, daily.runs
    named = np.stack([np.concatenate([steps.subject, runs.subject]), np.concatenate([steps.day, runs.day])])
    blocks, of_group = np.unique(named, axis=1, return_inverse=True)
    of_group = of_group.reshape(-1)
    mine = np.ones(blocks.shape[1], dtype=np.bool_) if law.who is None else blocks[0] == law.who
    if mine.sum() < 2:
        return None
    rng, noises = np.random.default_rng(0), list[float]()
    for draw in range(_DRAWS):
        times = np.zeros(blocks.shape[1], dtype=np.int64)
        np.add.at(times, rng.choice(np.flatnonzero(mine), int(mine.sum())), 1)
        weights = times[of_group]
        weighed = Daily(
            daily.subjects,
            replace(steps, number=steps.number * weights[: len(steps.number)]),
            replace(runs, number=runs.number * weights[len(steps.number) :]),
        )
        try:
            with part_of(f"days of who decides ({law.name}), drawn again", draw, _DRAWS):
                noises.append(noise_of(law.fit(weighed)))
        except (ModelError, NotApplicableError):  # days in which a state is never left
            noises.append(math.inf)
    low, high = np.quantile(noises, [0.1, 0.9], method="nearest")
    return float(low), float(high)
