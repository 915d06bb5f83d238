r"""Chains with several kinds of stay, from public sequences.

The stays in a state are a mixture of geometric ones, of shares a_i that go on with probability s_i,

.. math::
    P(\text{a stay has } n \text{ records}) = \sum_i a_i s_i^{n-1} (1 - s_i), \qquad
    P(\text{it has at least } n) = \sum_i a_i s_i^{n-1},

fitted by expectation and maximisation: stays that a gap cuts off lasted at least as long as was seen, and those whose
beginning was not seen are left out. It starts from several splits of the stays by length, as there are several optima,
and takes the likeliest. Exits are counted.
"""

from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import whole_number
from pufferfish._base.frozen import ReadOnly
from pufferfish.data.daily import Runs
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ModelError, ParameterError
from pufferfish.fit.chain import added_count
from pufferfish.theta.stays_chain import StaysChain

__all__ = ["MOST_KINDS", "StaysGain", "fit_stays", "fit_stays_of_each", "stays_gains"]

Array = NDArray[np.float64]

MOST_KINDS = 3
"""Kinds of stay in a state that are tried: a fourth was not seen to predict left-out days any better."""

POOLED_STAYS = 10.0
"""Stays of all subjects together that every state of a subject is given."""

_SPLITS = (0.3, 0.5, 0.7, 0.85, 0.95, 0.99)
"""Shares of the shortest stays at which a start of the search divides them."""

_FOLDS = 5

_NEVER = -50.0
"""Nats: what a stay is worth that a fit to other days takes for impossible."""

_MOST_ROUNDS = 2000
_SETTLED = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class _Stays:
    """Stays of one state: how many ended after so many records, or were cut off."""

    lasted: Array
    ended: Array
    cut: Array

    @classmethod
    def of(cls, runs: Runs, of_state: NDArray[np.bool_]) -> "_Stays":
        of_state = of_state & (runs.begun > 0)
        by_length = [runs.by_length(of_state & (runs.following >= 0)), runs.by_length(of_state & (runs.following < 0))]
        most = max(map(len, by_length))
        ended, cut = (np.pad(counts, (0, most - len(counts))).astype(np.float64) for counts in by_length)
        lasted = np.flatnonzero(ended + cut)
        return cls(lasted.astype(np.float64), ended[lasted], cut[lasted])


@dataclass(frozen=True, slots=True, eq=False)
class _Mixture:
    """Kinds of stay in one state: shares, and probabilities to go on."""

    shares: Array
    keeps: Array

    @property
    def means(self) -> Array:
        return 1 / (1 - self.keeps)

    def logs(self, lasted: Array) -> tuple[Array, Array]:
        """Return for each length and kind the log probability of lasting so long at least, and of ending then."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_keep, log_end = np.log(self.keeps), np.log1p(-self.keeps)
            beyond = np.where(lasted[:, None] > 1, (lasted[:, None] - 1) * log_keep, 0.0)
        at_least = np.log(self.shares) + beyond
        return at_least, at_least + log_end

    def likelihood(self, stays: _Stays) -> float:
        at_least, ends = (np.logaddexp.reduce(logs, axis=1) for logs in self.logs(stays.lasted))
        return _times(stays.ended, ends) + _times(stays.cut, at_least)


def fit_stays(
    sequences: Sequences,
    *,
    kinds: int | None = None,
    initial: Literal["stationary", "any"] = "stationary",
    smoothing: float = 1.0,
) -> StaysChain:
    """Chain whose states last for stays of several kinds, from public data.

    Parameters
    ----------
    sequences : Sequences
        Public data, read with ``daily=True``.
    kinds : int, optional
        Kinds of stay in each state, 1 to 3; by default as many as predict left-out days best. A state that has too few
        stays for so many gets fewer.
    initial : {"stationary", "any"}, default "stationary"
        The initial law of the result: its stationary one, or every law of state and kind of stay.
    smoothing : float, default 1
        So many exits are added to those of every state, spread as all exits together are. Without them an exit that was
        never seen cannot happen.

    Returns
    -------
    StaysChain
        With the states of the sequences; kinds from the shortest stays on.

    Raises
    ------
    ModelError
        If no stay in some state was seen from its beginning to its end, or the chain has no one stationary law where it
        is asked for.
    ParameterError
        If the sequences were read without ``daily``, or there are no such kinds.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> days = ("r" * 40 + "w" + "rwrwrrwrw" * 5) * 20
    >>> data = pf.read_sequences(pl.DataFrame({"s": list(days)}), "s", daily=True)
    >>> chain = pf.fit_stays(data, kinds=2)
    >>> chain.kinds, [round(1 / (1 - keep), 1) for _, keep in chain.stays[0]]
    ((2, 1), [1.2, 37.5])
    """
    _, runs = _daily_of(sequences)
    most = _best_kinds(sequences) if kinds is None else _checked(kinds)
    mixtures = [_fitted(_Stays.of(runs, runs.state == x), most) for x in range(len(sequences.states))]
    return _chain(sequences, sequences.transitions, mixtures, initial, added_count("smoothing", smoothing), None)


def fit_stays_of_each(
    sequences: Sequences,
    *,
    kinds: int | None = None,
    initial: Literal["stationary", "any"] = "stationary",
    pooling: float = POOLED_STAYS,
) -> list[StaysChain]:
    """Return a chain with kinds of stay for every subject, in the order of their names.

    Parameters
    ----------
    sequences, kinds, initial
        As for :func:`fit_stays`.
    pooling : float, default 10
        So many stays of all subjects, in the kinds of all, are added to every state of a subject, and one exit. Without
        them a stay that a gap cuts off makes a kind that never ends.

    Raises
    ------
    ModelError, ParameterError
        As :func:`fit_stays` does.
    """
    (subjects, runs), k = _daily_of(sequences), len(sequences.states)
    weight, most = added_count("pooling", pooling), _best_kinds(sequences) if kinds is None else _checked(kinds)
    pool = [_fitted(_Stays.of(runs, runs.state == x), most) for x in range(k)]
    chains: list[StaysChain] = []
    for who in range(len(subjects)):
        of_who = runs.subject == who
        of_states = [_Stays.of(runs, of_who & (runs.state == x)) for x in range(k)]
        mixtures = [_climbed(stays, pool[x], pool[x], weight)[0] for x, stays in enumerate(of_states)]
        exits = runs.chosen(of_who).transitions(k)
        chains.append(_chain(sequences, exits, mixtures, initial, 1.0, sequences.transitions - exits))
    return chains


# -- How many kinds: what left-out days say ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StaysGain(ReadOnly):
    """What one more kind of stay gains on left-out days.

    Parameters
    ----------
    kinds : int
        Kinds of stay in each state.
    gain : float
        How many nats likelier left-out stays are than with one kind fewer; 0 for one kind.
    error : float
        Its standard error, over days.
    """

    kinds: int
    gain: float
    error: float


def stays_gains(sequences: Sequences) -> list[StaysGain]:
    """Say for one, two and three kinds of stay how much likelier they make days that were left out of the fit.

    Parameters
    ----------
    sequences : Sequences
        Public data, read with ``daily=True``.
    """
    (_, runs), k = _daily_of(sequences), len(sequences.states)
    _, days = np.unique(np.stack([runs.subject, runs.day]), axis=1, return_inverse=True)
    days, count = days.reshape(-1), int(days.max(initial=-1)) + 1
    scores = np.zeros((MOST_KINDS, count))
    for x, f in product(range(k), range(MOST_KINDS) if count > 1 else ()):
        of_state = (runs.state == x) & (runs.begun > 0)
        whole = _fitted(_Stays.of(runs, of_state), f + 1)
        for fold in range(min(_FOLDS, count)):
            left_out = days % _FOLDS == fold
            kept = _Stays.of(runs, of_state & ~left_out)
            mixture, exits = _climbed(kept, whole, whole, 0.0)
            if np.any(exits < _LEAST_EXITS):
                mixture = _fitted(kept, f + 1)
            scored = of_state & left_out
            at_least, ends = (np.logaddexp.reduce(logs, axis=1) for logs in mixture.logs(runs.lasted[scored]))
            logs = np.maximum(np.where(runs.following[scored] >= 0, ends, at_least), _NEVER) * runs.number[scored]
            scores[f] += np.bincount(days[scored], logs, count)
    gains = np.diff(scores, axis=0, prepend=scores[:1])
    errors = np.sqrt(count) * gains.std(axis=1, ddof=1) if count > 1 else np.zeros(MOST_KINDS)
    return [StaysGain(f + 1, float(gains[f].sum()), float(errors[f])) for f in range(MOST_KINDS)]


def _best_kinds(sequences: Sequences) -> int:
    """Return how many kinds predict left-out days best; the most of them where there are no days to leave out."""
    gains = np.cumsum([gain.gain for gain in stays_gains(sequences)])
    return int(gains.argmax()) + 1 if gains.any() else MOST_KINDS


# -- A mixture of geometric stays --------------------------------------------------------------------------------------


def _fitted(stays: _Stays, kinds: int) -> _Mixture:
    """Return the likeliest mixture, of fewer kinds where a kind would have no stay that ended."""
    if not stays.ended.sum():  # how they end is not known: half a stay of one record, which ends
        stays = _Stays(np.array([1.0, *stays.lasted]), np.array([0.5, *stays.ended]), np.array([0.0, *stays.cut]))
    best: tuple[float, _Mixture] | None = None
    for start in _starts(stays, kinds):
        mixture, exits = _climbed(stays, start, start, 0.0)
        if np.all(exits >= _LEAST_EXITS):
            likelihood = mixture.likelihood(stays)
            if best is None or likelihood > best[0]:
                best = likelihood, mixture
    return _fitted(stays, kinds - 1) if best is None else best[1]


_LEAST_EXITS = 0.5
"""A kind of stay that fewer ends were seen of is none of its own: the rest of it is cut off, and may last for ever."""


def _starts(stays: _Stays, kinds: int) -> list[_Mixture]:
    """Return mixtures to begin with: stays divided by length, at several shares of all of them."""
    count = stays.ended + stays.cut
    if not count.sum():
        return []
    starts = list[_Mixture]()
    for splits in combinations(_SPLITS, kinds - 1):
        place = np.searchsorted(splits, (np.cumsum(count) - count / 2) / count.sum())
        each = [place == i for i in range(kinds)]
        if all(count[of_kind].sum() > 0 for of_kind in each):
            shares = np.array([count[of_kind].sum() for of_kind in each]) / count.sum()
            means = np.array([(count * stays.lasted)[of_kind].sum() / count[of_kind].sum() for of_kind in each])
            starts.append(_Mixture(shares, 1 - 1 / np.maximum(means, 1 + 1e-3)))
    return starts


def _climbed(stays: _Stays, start: _Mixture, prior: _Mixture, weight: float) -> tuple[_Mixture, Array]:
    """Return where expectation and maximisation lead from a start, and how many stays of each kind ended."""
    mixture, exits, before = start, np.zeros(len(start.shares)), -np.inf
    added = weight * prior.shares
    for _ in range(_MOST_ROUNDS):
        at_least, ends = mixture.logs(stays.lasted)
        of_cut, of_ended = (np.logaddexp.reduce(logs, axis=1) for logs in (at_least, ends))
        # how much of each stay is of each kind
        cut = np.exp(at_least - of_cut[:, None]) * stays.cut[:, None]
        ended = np.exp(ends - of_ended[:, None]) * stays.ended[:, None]
        exits = ended.sum(axis=0) + added
        kept = ((ended + cut) * (stays.lasted - 1)[:, None]).sum(axis=0) + added * (prior.means - 1)
        shares = ended.sum(axis=0) + cut.sum(axis=0) + added
        if not np.all(shares > 0) or not np.all(exits > 0):
            return mixture, np.zeros_like(exits)
        mixture = _Mixture(shares / shares.sum(), kept / (kept + exits))
        likelihood = _times(stays.ended, of_ended) + _times(stays.cut, of_cut)
        if abs(likelihood - before) <= _SETTLED * max(abs(likelihood), 1.0):
            break
        before = likelihood
    return mixture, exits


def _times(counts: Array, logs: Array) -> float:
    return float((counts[counts > 0] * logs[counts > 0]).sum())


# -- The chain of all states ------------------------------------------------------------------------------------------


def _chain(
    sequences: Sequences,
    transitions: NDArray[np.int64],
    mixtures: list[_Mixture],
    initial: Literal["stationary", "any"],
    weight: float,
    pool: NDArray[np.int64] | None,
) -> StaysChain:
    """Return the chain of some transitions: exits as counted, and so many more, as those of the pool."""
    k = len(sequences.states)
    others = ~np.eye(k, dtype=np.bool_)
    exits, pooled = (np.where(others, n, 0.0) for n in (transitions, sequences.transitions if pool is None else pool))
    entered = np.where(others, np.broadcast_to(pooled.sum(axis=0) + 0.5, (k, k)), 0.0)
    added = entered if pool is None else pooled + 0.5 * others
    rows = exits + weight * added / np.maximum(added.sum(axis=1, keepdims=True), 1e-300)
    totals = rows.sum(axis=1)
    if np.any(totals == 0):
        name = sequences.states[int(np.flatnonzero(totals == 0)[0])]
        raise ModelError(
            f"state {name!r} was never seen to be left; use smoothing (such as 1), merge states, or leave it out"
        )
    stays = [[(float(m.shares[i]), float(m.keeps[i])) for i in np.argsort(m.keeps, kind="stable")] for m in mixtures]
    return StaysChain(rows / totals[:, None], stays, initial, states=sequences.states)


def _daily_of(sequences: Sequences) -> tuple[tuple[str, ...], Runs]:
    if not isinstance(sequences, Sequences):
        raise ParameterError(f"sequences is {type(sequences).__name__}, expected what read_sequences returns")
    if sequences.daily is None:
        raise ParameterError("the sequences were read without daily: read_sequences(…, daily=True)")
    if len(sequences.states) < 2:
        raise ModelError(f"there is one state, {sequences.states[0]!r}: a record that is always the same hides nothing")
    return sequences.daily.subjects, sequences.daily.runs


def _checked(kinds: object) -> int:
    try:
        number = whole_number(kinds)
    except TypeError:
        number = 0
    if not 1 <= number <= MOST_KINDS:
        raise ParameterError(f"kinds is {kinds!r}, expected how many kinds of stay a state has, 1 to {MOST_KINDS}")
    return number
