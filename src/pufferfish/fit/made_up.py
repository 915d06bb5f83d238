"""How much of a fitted model is made up: by the transitions that its rows were completed with; see docs/fitting.md.

A row of n transitions that gets w more is made up by w / (n + w). What of it matters is how often the row is visited,
how long states last then, and how much noise that is.
"""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import ReadOnly
from pufferfish._base.words import names_of, number
from pufferfish._core.chains.markov import smoothed
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ModelError, NotApplicableError
from pufferfish.fit.chain import SMOOTHING, check_transitions, fit_chain, fit_order, fit_periodic
from pufferfish.mechanisms import LeakagePropagation
from pufferfish.queries import Histogram
from pufferfish.theta.markov_chain import MarkovChain

_SHARE, _CHANGE = 0.05, 1.1  # larger shares, and noise and stays that change by a larger factor, are too much
_LIGHTER = 100  # by so much less a model is completed that is none without
_MOST_STATES = 80  # with so many states, or tuples of them, propagation takes a minute
_LONG = 10**6  # records of the chain that noise is compared for

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUp(ReadOnly):
    """How much of a fitted model smoothing invents.

    Parameters
    ----------
    smoothing, share : float
        Transitions that every row was completed by; and their share of the rows, by how often these were visited.
    stay : (float, float)
        Mean stay in a state, in records, of the visited rows: as they were observed, and in the model.
    noise : (float, float) or None
        Noise multiplier of a histogram at ε = 1 of one long chain: without smoothing, and with it; None where ``why``
        says why it is not compared.
    lighter : float
        What stands for no smoothing in ``noise``: 0, or a hundredth of it where there is no model without.
    """

    smoothing: float
    share: float
    stay: Pair
    noise: Pair | None
    lighter: float
    why: str

    @property
    def too_much(self) -> str:
        """Why this must not be made up silently; "" if it is little."""
        reasons = [f"{self.share:.1%} of the model would be invented"] if self.share > _SHARE else []
        if _changed(self.stay):
            reasons.append(
                f"the mean stay in a state would be {number(self.stay[1])} records, not {number(self.stay[0])}"
            )
        if self.noise is not None and _changed(self.noise):
            with_, without = (number(noise) for noise in reversed(self.noise))
            reasons.append(f"the noise multiplier would be {with_}, not {without}")
        return " and ".join(reasons)

    @property
    def merge_below(self) -> int:
        """States that fewer transitions leave are rare: more than 5% of their rows are made up."""
        return math.ceil(self.smoothing * (1 / _SHARE - 1))

    @property
    def sentences(self) -> list[str]:
        """What was made up, in plain English; nothing where nothing was."""
        if not self.smoothing:
            return []
        weight = f"{self.smoothing:g} transition{'' if self.smoothing == 1 else 's'}"
        lines = [
            f"every row was completed by {weight} that nobody made: {number(100 * self.share)}% of the model, by "
            f"visits; the mean stay in a state is {number(self.stay[1])} records, {number(self.stay[0])} without"
        ]
        if self.noise is None:
            return [*lines, f"the effect on the noise was not computed: {self.why}"]
        less = f"with {self.lighter:g} of it, as there is no model without" if self.lighter else "without"
        noise, other = (number(noise) for noise in reversed(self.noise))
        return [*lines, f"noise multiplier of a histogram at ε = 1: {noise} with this smoothing, {other} {less}"]


def made_up(
    data: Sequences, *, smoothing: float = SMOOTHING, initial: Literal["stationary", "any"] = "stationary"
) -> MadeUp:
    """Return how much of a fitted model smoothing invents: of its rows, its stays and its noise; see docs/fitting.md.

    Of data that were read with a clock it is about :func:`fit_periodic`, with an order about :func:`fit_order`, else
    about :func:`fit_chain`, whose arguments and errors these are. The command line refuses to write a model where it is
    too much, of which ``too_much`` says why.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> data = pf.read_sequences(pl.DataFrame({"s": list("aabaabbaab" * 50)}), "s")
    >>> judgement = pf.made_up(data, smoothing=40)
    >>> judgement.too_much
    '13.7% of the model would be invented'
    >>> [round(noise, 3) for noise in judgement.noise]
    [1.675, 1.62]
    """
    check_transitions(data)
    fit: Any
    counts: NDArray[np.int64]
    if data.transitions_by_phase is not None:
        fit, counts = fit_periodic, data.transitions_by_phase
    elif data.histories is not None:
        fit, counts = fit_order, data.histories
    else:
        fit, counts = fit_chain, data.transitions
    model = fit(data, initial=initial, smoothing=smoothing)
    rows = next(getattr(model, n) for n in ("matrices", "tensor", "transition_matrix") if hasattr(model, n))
    tuples = counts.shape[-1] ** (1 if fit is fit_periodic else counts.ndim - 1)
    if not smoothing or tuples > _MOST_STATES:
        why = f"of {tuples:,} states, more than {_MOST_STATES}, that takes too long" if smoothing else ""
        return judged(counts, rows, smoothing, why=why)
    noise = _noise(model)
    lighter = 0.0
    try:
        without = _noise(fit(data, initial=initial, smoothing=0))
    except (ModelError, NotApplicableError):
        lighter = smoothing / _LIGHTER
        without = _noise(fit(data, initial=initial, smoothing=lighter))
    return judged(counts, rows, smoothing, noise=(without, noise), lighter=lighter)


def _noise(model: Any) -> float:
    multiplier = LeakagePropagation(model, _LONG).calibrate(Histogram(), 1.0).noise_multiplier
    assert multiplier is not None
    return multiplier


def warnings_of_unseen(data: Sequences) -> list[str]:
    """Return a warning where states that were named never occur: which they are, and what they cost."""
    seen = data.counts.sum(axis=0) > 0
    unseen = [repr(state) for state, occurs in zip(data.states, seen, strict=True) if not occurs]
    if not unseen or seen.sum() < 2:
        return []
    cost = ""
    if len(seen) <= _MOST_STATES:
        tables = data.transitions, data.transitions[np.ix_(seen, seen)]
        with suppress(ModelError, NotApplicableError):
            with_, without = (number(_noise(MarkovChain(smoothed(table, SMOOTHING)))) for table in tables)
            cost = (
                f": for a histogram at ε = 1 one chain of all needs a noise multiplier of {with_}, and of {without} "
                "without them"
            )
    return [
        f"States that never occur in the table: {names_of(unseen, 8)}. Their rows are invented from other rows, and "
        f"they need noise too{cost}. Leave out states that cannot occur"
    ]


def judged(
    counts: NDArray[np.int64],
    rows: NDArray[np.float64],
    smoothing: float,
    *,
    noise: Pair | None = None,
    lighter: float = 0.0,
    why: str = "",
) -> MadeUp:
    """Return how much of rows of laws the counts of their transitions do not say; both have shape (…, k, k)."""
    visits = counts.sum(axis=-1)
    total = float(visits.sum())
    share = float((visits * (smoothing / np.maximum(visits + smoothing, 1))).sum()) / total
    stays = np.diagonal(counts, axis1=-2, axis2=-1).sum(), (visits * np.diagonal(rows, axis1=-2, axis2=-1)).sum()
    before, after = (math.inf if total - stayed <= 0 else total / float(total - stayed) for stayed in stays)
    return MadeUp(smoothing=smoothing, share=share, stay=(before, after), noise=noise, lighter=lighter, why=why)


def _changed(pair: Pair) -> bool:
    return max(pair) > _CHANGE * min(pair)
