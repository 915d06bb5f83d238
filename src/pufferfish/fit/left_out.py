r"""How well laws predict days that they were not fitted to.

Transitions of one day tell of each other, so whole days are left out: the pairs of a subject and a day are divided into
five parts, and each part is predicted by laws that were fitted to the other four. What is said of a day is one number,
its log likelihood, and gains and their standard errors are taken over days, or over subjects where there are many.

The laws are those of :data:`pufferfish.fit.members.CALLED`; each row of them is completed by w transitions of a simpler
law, where w predicts best. Kinds of stay (:mod:`.mixture`) predict runs of equal states whose beginning was seen, the
others all transitions: so a law is compared with ``pooled`` and ``own`` of the same transitions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import ReadOnly
from pufferfish._base.progress import report_progress
from pufferfish.data.groups import Daily
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError
from pufferfish.fit.chain import check_sequences, check_several
from pufferfish.fit.mixture import Mixture, StaysSeen, climbed, fit_mixture
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.tuple_chains import HigherOrderChain, StaysChain

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

MOST_KINDS = 3  # kinds of stay in a state that are tried: a fourth was not seen to predict left-out days any better
MOST_FOLLOWED = 80  # kinds of stay of all states together that are tried: a bound follows no more
POOLED_STAYS = 10.0  # stays of all subjects together that every state of a subject is given
LEAST_GAIN = 10.0  # nats that a richer law must gain at least, and twice its standard error
_FOLDS = 5

_WEIGHTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # transitions of a simpler law that a row is given
_WEIGHTS_OF_STAYS = (10.0, 100.0, 1000.0)  # the same for a subject's stays; each is fitted anew
_MANY_SUBJECTS = 10  # from so many subjects on gains are taken over subjects, else over days
_LEVEL = 0.02  # the probability, at most, that one of all subjects is found to differ where none does
_FEWEST_DAYS = 5  # days from which on a subject is judged by itself
_NEVER = -50.0  # nats: what a stay is worth that a fit to other days takes for impossible


@dataclass(frozen=True, slots=True)
class Gain(ReadOnly):
    """By how many nats one law makes left-out days likelier than another, and the standard error of that.

    The error is infinite where there is one day alone. ``times`` is how many standard errors the gain must be: more
    where it is one person's of many.
    """

    nats: float
    error: float
    times: float = 2.0

    @property
    def demanded(self) -> bool:
        """Whether it is more than ten nats, and more than so many times its standard error."""
        return self.nats > LEAST_GAIN and self.nats > self.times * self.error


class LeftOut:
    """Log likelihoods of left-out days under several laws: with ``clock="hour"`` in the data that of hours too."""

    def __init__(self, sequences: Sequences) -> None:
        self._daily, self._k, self._clock = daily_of(sequences), len(sequences.states), sequences.clock
        steps, runs = self._daily.steps, self._daily.runs
        both = np.concatenate([np.stack([steps.subject, steps.day]), np.stack([runs.subject, runs.day])], axis=1)
        named, block = np.unique(both, axis=1, return_inverse=True)
        block = block.reshape(-1)
        self.blocks = named.shape[1]
        self._subject: Whole = named[0]
        self._of_steps, self._of_runs = block[: len(steps.number)], block[len(steps.number) :]
        self.most = most_kinds(self._k)  # how many kinds of stay are tried: of very many states fewer can be followed
        self.kinds = self.most  # how many kinds of stay predict best
        self.weights: dict[str, float] = {}  # how many transitions of a simpler law the rows of each law are best given
        self._scores: dict[str, Array] = {}
        if self.blocks > 1:
            self._score_steps()
            self._score_runs()

    def gain(self, law: str, *simpler: str) -> Gain:
        """Return how much likelier a law makes left-out days than the likeliest of some simpler ones."""
        if self.blocks < 2:
            return Gain(0.0, np.inf)
        on_runs = law.endswith("stays")
        names = [f"{name} on runs" if on_runs and not name.endswith("stays") else name for name in simpler]
        best = max((self._scores[name] for name in names), key=lambda score: float(score.sum()))
        return self._gain(self._scores[law] - best)

    def _gain(self, gained: Array) -> Gain:
        """Return what is gained in all, by what is gained on every day."""
        subjects, of_block = np.unique(self._subject, return_inverse=True)
        if len(subjects) >= _MANY_SUBJECTS:
            return _sum_of(np.bincount(of_block.reshape(-1), gained).astype(np.float64))
        return _sum_of(gained)

    # -- Classes of models that are given ---------------------------------------------------------------------------

    def is_scored(self, model: Any) -> bool:
        """Whether a model says how likely days are, by what was counted of them."""
        if isinstance(model, PeriodicChain):
            return model.clock is not None and model.clock == self._clock
        return isinstance(model, MarkovChain | StaysChain) or (isinstance(model, HigherOrderChain) and model.order == 2)

    def best_of(self, models: Sequence[Any]) -> tuple[Array, Whole]:
        """Return how much likelier each day is under a class than under the pooled chain, and everybody's best model.

        Everybody is taken to live by the model that makes all their days likeliest; each model :meth:`is_scored`.
        Models are taken as they stand: one that was fitted to the same days knows them already. Of kinds of stay it is
        said by runs, as their laws are. Days that are impossible under all models are infinitely less likely.
        """
        gained, many = np.array([self._gained(model) for model in models]), len(self._daily.subjects)
        with np.errstate(invalid="ignore"):
            of_each = np.array([np.bincount(self._subject, of_model, many) for of_model in gained])
        best = np.nan_to_num(of_each, nan=-np.inf, neginf=-np.inf).argmax(axis=0)
        return gained[best[self._subject], np.arange(self.blocks)], best

    def _gained(self, model: Any) -> Array:
        """Return by how many nats each day is likelier under a model than under the pooled chain."""
        steps, runs = self._daily.steps, self._daily.runs
        with np.errstate(divide="ignore", invalid="ignore"):
            if not isinstance(model, StaysChain):
                logs = np.log(self._predicted(model)) * steps.number
                return np.bincount(self._of_steps, logs, self.blocks) - self._scores["pooled"]
            logs, exits = np.zeros(len(runs.number)), np.log(model.exits)
            for x, kinds in enumerate(model.stays):
                of_x = (runs.begun > 0) & (runs.state == x)
                ended, following = runs.following[of_x] >= 0, runs.following[of_x]
                mixture = Mixture(*np.array(kinds).T)
                lasted = mixture.scores(runs.lasted[of_x].astype(np.float64), ended)
                logs[of_x] = (lasted + np.where(ended, exits[x, following], 0.0)) * runs.number[of_x]
        return np.bincount(self._of_runs, logs, self.blocks) - self._scores["pooled on runs"]

    def _predicted(self, model: Any) -> Array:
        """Return the probability of every transition under a model; that of pooled where the earlier is not known."""
        steps = self._daily.steps
        if isinstance(model, MarkovChain):
            return model.transition_matrix[steps.before, steps.state]
        if isinstance(model, PeriodicChain):
            return model.matrices[steps.phase, steps.before, steps.state]
        with_past = model.tensor[steps.earlier, steps.before, steps.state]
        return np.where(steps.earlier >= 0, with_past, self._pooled)

    def gain_over(self, law: str, best: Array) -> Gain:
        """Return how much likelier a law makes left-out days than a class, of which :meth:`best_of` tells."""
        return Gain(0.0, np.inf) if self.blocks < 2 else self._gain(self._more(law, best))

    def gain_of_each(self, law: str, best: Array) -> list[Gain]:
        """Return the same for every subject alone, which of so many is to be larger (Bonferroni, Student)."""
        if self.blocks < 2:
            return [Gain(0.0, np.inf)] * len(self._daily.subjects)
        gained, many = self._more(law, best), len(self._daily.subjects)
        high = NormalDist().inv_cdf(1 - _LEVEL / many)
        return [_sum_of(gained[self._subject == who], high) for who in range(many)]

    def _more(self, law: str, best: Array) -> Array:
        return self._scores[law] - self._scores["pooled on runs" if law.endswith("stays") else "pooled"] - best

    @property
    def of_kinds(self) -> list[Gain]:
        """How much likelier left-out days are under one, two and three kinds of stay than under one kind fewer."""
        names = [f"{f} stays" for f in range(1, self.most + 1)]
        return [Gain(0.0, 0.0), *(self.gain(name, before) for before, name in pairwise(names))]

    # -- All transitions ------------------------------------------------------------------------------------------

    def _score_steps(self) -> None:
        steps, k = self._daily.steps, self._k
        x, who, past = steps.before, steps.subject, steps.earlier
        report_progress("left-out days", 0.0)
        pooled = self._row(x, np.full(len(x), 1 / k), k / 2)
        self._pooled = pooled
        self._keep("pooled", pooled)
        known = past >= 0
        second = self._best("order2", past * k + x, pooled, known)
        if np.all(steps.phase >= 0):
            self._best("hour", steps.phase * k + x, pooled)
        if len(self._daily.subjects) > 1:
            others = self._of_others()
            own = self._best("own", who * k + x, others)
            likelier = max((own, second), key=lambda p: float((np.log(p) * steps.number).sum()))
            self._best("own order2", (who * (k + 1) + past) * k + x, likelier, known)

    def _keep(self, name: str, probabilities: Array) -> None:
        logs = np.log(probabilities) * self._daily.steps.number
        self._scores[name] = np.bincount(self._of_steps, logs, self.blocks).astype(np.float64)

    def _best(self, name: str, row: Whole, simpler: Array, where: NDArray[np.bool_] | None = None) -> Array:
        """Return what a law predicts, its rows given as many transitions of a simpler one as predict best."""
        every = {w: self._row(row, simpler, w) for w in _WEIGHTS}
        if where is not None:
            every = {w: np.where(where, p, simpler) for w, p in every.items()}
        number = self._daily.steps.number
        best = max(every, key=lambda w: float((np.log(every[w]) * number).sum()))
        self.weights[name] = best
        self._keep(name, every[best])
        return every[best]

    def _row(self, row: Whole, simpler: Array, weight: float) -> Array:
        """Return the probability of every transition by those of other folds in its row."""
        steps = self._daily.steps
        others, in_row = (self._in_other_folds(key) for key in (row * self._k + steps.state, row))
        return (others + weight * simpler) / (in_row + weight)

    def _in_other_folds(self, key: Whole) -> Array:
        """Return for every group of transitions how many have its key, in other folds."""
        number, fold = self._daily.steps.number.astype(np.float64), self._of_steps % _FOLDS
        _, which = np.unique(key, return_inverse=True)
        which = which.reshape(-1)
        size = int(which.max(initial=0)) + 1
        of_fold = np.bincount(which * _FOLDS + fold, number, size * _FOLDS).reshape(size, _FOLDS)
        return of_fold.sum(axis=1)[which] - of_fold[which, fold]

    def _of_others(self) -> Array:
        """Return the probability of every transition by those of other subjects, half a transition in every cell."""
        steps, k = self._daily.steps, self._k
        cell, mine = steps.before * k + steps.state, steps.subject * k * k
        of_all = [self._in_other_folds(key) for key in (cell, steps.before)]
        of_me = [self._in_other_folds(mine + key) for key in (cell, steps.before)]
        return (of_all[0] - of_me[0] + 0.5) / (of_all[1] - of_me[1] + k / 2)

    # -- Runs of equal states --------------------------------------------------------------------------------------

    def _score_runs(self) -> None:
        runs, k = self._daily.runs, self._k
        fold, begun, ended = self._of_runs % _FOLDS, runs.begun > 0, runs.following >= 0
        people = len(self._daily.subjects)
        names = [*(f"{f} stays" for f in range(1, self.most + 1)), "pooled on runs"]
        if people > 1:
            names += ["own on runs", *(f"lasts {w:g}" for w in _WEIGHTS_OF_STAYS), *(f"leads {w:g}" for w in _WEIGHTS)]
        logs = {name: np.zeros(len(runs.number)) for name in names}
        whole = {
            (x, f): fit_mixture(StaysSeen.of(runs, runs.state == x), f)
            for x in range(k)
            for f in range(1, self.most + 1)
        }
        for out in range(_FOLDS):
            report_progress("left-out days", 0.2 + 0.8 * out / _FOLDS)
            train, test = fold != out, (fold == out) & begun
            seen = [StaysSeen.of(runs, train & (runs.state == x)) for x in range(k)]
            kept = {(x, f): fit_mixture(seen[x], f, mixture) for (x, f), mixture in whole.items()}
            counts = runs.chosen(train).transitions(k) + 0.5
            chain = np.log(counts / counts.sum(axis=1, keepdims=True))
            with np.errstate(divide="ignore"):
                log_exits = np.log(_exits(counts))
            logs["pooled on runs"][test] = self._by_chain(chain, test)
            left = np.where(ended, log_exits[runs.state, runs.following], 0.0)
            for (x, f), mixture in kept.items():
                of_x = test & (runs.state == x)
                logs[f"{f} stays"][of_x] = _scored(mixture, runs.lasted[of_x], ended[of_x]) + left[of_x]
            pool = [kept[x, self.most] for x in range(k)]
            for who in range(people if people > 1 else 0):
                self._score_person(runs.subject == who, train, test, counts, pool, logs)
        if people > 1:
            lasts, leads = (
                max((logs.pop(f"{part} {w:g}") for w in weights), key=lambda log: float((log * runs.number).sum()))
                for part, weights in (("lasts", _WEIGHTS_OF_STAYS), ("leads", _WEIGHTS))
            )
            logs["own stays"] = lasts + leads
        for name, scored in logs.items():
            self._scores[name] = np.bincount(self._of_runs, scored * runs.number, self.blocks).astype(np.float64)
        totals = [float(self._scores[f"{f} stays"].sum()) for f in range(1, self.most + 1)]
        self.kinds = int(np.argmax(totals)) + 1
        self._scores["stays"] = self._scores[f"{self.kinds} stays"]

    def _score_person(
        self,
        mine: NDArray[np.bool_],
        train: NDArray[np.bool_],
        test: NDArray[np.bool_],
        counts: NDArray[Any],
        pool: Sequence[Mixture],
        logs: dict[str, Array],
    ) -> None:
        runs, k = self._daily.runs, self._k
        of_me = runs.chosen(train & mine).transitions(k)
        others = counts - of_me
        own = of_me + self.weights["own"] * others / others.sum(axis=1, keepdims=True)
        logs["own on runs"][test & mine] = self._by_chain(np.log(own / own.sum(axis=1, keepdims=True)), test & mine)
        of_all = _exits(others)
        for x in range(k):
            of_state = mine & (runs.state == x)
            left_out = test & of_state
            if not left_out.any():
                continue
            ended, y = runs.following[left_out] >= 0, runs.following[left_out]
            stays = StaysSeen.of(runs, train & of_state)
            for weight in _WEIGHTS_OF_STAYS:
                mixture, _ = climbed(stays, pool[x], pool[x], weight)
                logs[f"lasts {weight:g}"][left_out] = _scored(mixture, runs.lasted[left_out], ended)
            for weight in _WEIGHTS:
                exits = _exits(of_me + weight * of_all)[x][y]
                logs[f"leads {weight:g}"][left_out] = np.log(np.where(ended, exits, 1.0))

    def _by_chain(self, chain: Array, which: NDArray[np.bool_]) -> Array:
        """Return the log likelihood of some runs under a chain of log probabilities."""
        runs = self._daily.runs
        x, y = runs.state[which], runs.following[which]
        return (runs.lasted[which] - 1) * chain[x, x] + np.where(y >= 0, chain[x, y], 0.0)


def _sum_of(gained: Array, high: float | None = None) -> Gain:
    """Return the sum of days, for many tests in one up to so high a number of the normal law."""
    if not np.isfinite(gained).all():  # what is impossible under all models was seen
        return Gain(np.inf, 0.0)
    days = len(gained)
    if days < (2 if high is None else _FEWEST_DAYS):
        return Gain(float(gained.sum()), np.inf)
    error = float(np.sqrt(days) * gained.std(ddof=1))
    if high is None:
        return Gain(float(gained.sum()), error)
    free = days - 1  # Student's quantile, by that of the normal law
    times = math.sqrt(free * math.expm1(min(high**2 * (free - 1.5) / (free - 1) ** 2, 700.0)))
    return Gain(float(gained.sum()), error, times)


def most_kinds(k: int) -> int:
    """Return how many kinds of stay in each of k states are tried."""
    return max(1, min(MOST_KINDS, MOST_FOLLOWED // k))


def daily_of(sequences: Sequences) -> Daily:
    """Return what was counted by subject and day."""
    check_sequences(sequences)
    if sequences.daily is None:
        raise ParameterError("the sequences were read without daily: read_sequences(…, daily=True)")
    check_several(sequences.states)
    return sequences.daily


def _exits(counts: NDArray[Any]) -> Array:
    """Return where stays lead when they end, by counts of transitions."""
    others = counts * ~np.eye(len(counts), dtype=np.bool_)
    return others / np.maximum(others.sum(axis=1, keepdims=True), 1e-300)


def _scored(mixture: Mixture, lasted: Whole, ended: NDArray[np.bool_]) -> Array:
    return np.maximum(mixture.scores(lasted.astype(np.float64), ended), _NEVER)
