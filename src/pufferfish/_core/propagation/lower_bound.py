r"""How much a Laplace release certainly leaks: sign tilts, and the least noise that they allow.

Far out in the direction of a sign vector s the density of Lap(b) noise on W·counts is proportional to the product over
records of :math:`g(x_t) = e^{(s^T W)_{x_t}/b}`. So the loss is at least, for every s, i, x and x',

.. math:: \log \frac{E[\prod_t g(X_t) \mid X_i = x]}{E[\prod_t g(X_t) \mid X_i = x']}.

It never rises with b, so a scale at which one tilt exceeds ε is too small, and so is every smaller one. Numbers here
are rounded *down*.

**Networks.** With Q the law P of the network times :math:`\prod_v g_v(x_v)`, made a law again, it is :math:`\log
Q(X_i = x)/P(X_i = x) - \log Q(X_i = x')/P(X_i = x')`: one pass over the clusters gives it for every node. Signs are
sought for one node and one pair of its states, until each is that of the difference of its output's means under Q.

**Numbers of steps.** e^{s_j/b} is then a factor of every step that counts in output j: the matrix is tilted.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from pufferfish._base.progress import report_progress
from pufferfish._core import Array, Matrix, Vector, Whole
from pufferfish._core.chains.markov import stationary_law, stationary_log_error, strong_components
from pufferfish._core.networks.cluster_laws import ClusterLaws
from pufferfish._core.networks.junction_tree import Table, buckets_of
from pufferfish._core.numbers.rounding import UNIT, bracket

# -- How much a Laplace release of a network's nodes certainly leaks -------------------------------------------------

# Exponents of tilts beyond this many nats would leave the range of a double; then nothing is claimed.
_STEEPEST = 300.0
_TURNS = 20
# Entries of all clusters up to which a bound is sought: each of some fifty passes goes over all of them.
_MANY = 1 << 20


class TiltedNetwork:
    """What sign tilts of a release of one network tell.

    ``contributions`` are what each state of every node adds to each output, (m, k_j); tables those of
    :class:`pufferfish._core.propagation.clusters.ClusterPropagation`. Signs are sought for two states of one node.
    """

    all_signs = False
    tolerance = 1e-6

    def __init__(
        self,
        tables: Sequence[Table],
        sizes: Sequence[int],
        contributions: Sequence[Whole],
        node: int,
        pair: tuple[int, int],
    ) -> None:
        self._tables, self._sizes = list(tables), sizes
        self._contributions = [np.asarray(w, dtype=np.float64) for w in contributions]
        self._node, self._pair = node, pair
        self._buckets = buckets_of([nodes for nodes, _ in tables], sizes)
        entries = [math.prod(sizes[v] for v in bucket.scope) for bucket in self._buckets]
        # every node is looked up in a smallest bucket that holds it
        largest_first = sorted(range(len(entries)), key=lambda b: -entries[b])
        self._holds = {v: (b, place) for b in largest_first for place, v in enumerate(self._buckets[b].scope)}
        self.affordable = sum(entries) <= _MANY
        self._plain = self._marginals([]) if self.affordable else []

    def candidates(self) -> Matrix:
        """Return the signs that are best where noise is large; shape (1, m)."""
        return self._improved(np.zeros(len(self._contributions[0])), np.inf)[None, :]

    def search(self, signs: Matrix, scale: float) -> Matrix:
        """Return signs that are as good as single turns make them at a scale; shape (n, m)."""
        return np.unique(np.array([self._climb(row, scale) for row in signs]), axis=0)

    def losses(self, signs: Matrix, scale: float) -> Vector:
        """Return what each tilt tells at least, about the node about which it tells most; shape (n,)."""
        return np.array([self._loss(row, scale) for row in signs])

    def _climb(self, signs: Vector, scale: float) -> Vector:
        for _ in range(_TURNS):
            better = self._improved(signs, scale)
            if np.array_equal(better, signs):
                break
            signs = better
        return signs

    def _improved(self, signs: Vector, scale: float) -> Vector:
        """Return the signs of the slopes at some tilt."""
        tilts = self._tilts(signs, scale)
        means: list[Vector] = []
        for state in self._pair:
            alone = np.zeros(self._sizes[self._node])
            alone[state] = 1.0
            laws = self._marginals([*tilts, ((self._node,), alone)])
            means.append(
                np.sum([w @ np.exp(logs) for w, (logs, _) in zip(self._contributions, laws, strict=True)], axis=0)
            )
        return np.where(means[0] >= means[1], 1.0, -1.0)

    def _loss(self, signs: Vector, scale: float) -> float:
        steepest = max(float(np.ptp(signs @ w)) for w in self._contributions) / scale
        if steepest > _STEEPEST:
            return 0.0
        tilts = self._tilts(signs, scale)
        # what a tilt's table may be off by, in nats: its exponent and the exponential
        off = len(tilts) * UNIT * (8 + 4 * steepest)
        best = 0.0
        for (tilted, error), (plain, its) in zip(self._marginals(tilts), self._plain, strict=True):
            can = plain > -np.inf
            ratios = tilted[can] - plain[can]
            best = max(best, float(np.ptp(ratios)) - 2 * (error + its + off) - 8 * UNIT * float(np.max(np.abs(ratios))))
        return best

    def _tilts(self, signs: Vector, scale: float) -> list[Table]:
        exponents = [signs @ w / scale for w in self._contributions]
        return [((v,), np.exp(t - t.max())) for v, t in enumerate(exponents) if np.ptp(t) > 0]

    def _marginals(self, factors: Sequence[Table]) -> list[tuple[Vector, float]]:
        """Return logarithms of every node's law, and by how much they may be off, under the network times factors."""
        laws = ClusterLaws(self._buckets, [*self._tables, *factors], self._sizes, normalised=not factors)
        marginals: list[tuple[Vector, float]] = []
        for v in range(len(self._sizes)):
            bucket, place = self._holds[v]
            logs, errors = laws.of([bucket], [place])
            marginals.append((logs[0], float(errors[0])))
        return marginals


_ENUMERATED = 10  # with at most this many outputs all sign vectors are tried
_EDGE = 96  # first records of a long chain that are looked at one by one, beside the middle one
HORIZON = 128  # records on each side that the search for signs looks at
_BATCH = 512  # sign vectors that are tried together, and at most as many candidates of a search
# Entries of the vectors that are led along a chain together: sign vectors times initial laws times states.
_ENTRIES = 50_000
_STARTS, _ROUNDS = 4, 2  # sign vectors that the search improves, and how often it looks again at a better scale
# Sign vectors times states squared that a search tries from one start: seconds, whatever the number of states.
_AFFORDED = 4_000_000
# Of many sign vectors those that a scale is sought for; whether others tell more there is looked at afterwards.
_LEADING = 16
_MOST_MODELS = 16  # of more members of Θ those are taken that tell most at first sight
# Vectors that move less than this from record to record are taken to have arrived, by the search for signs.
_SETTLED = 1e-7
# Under "any", initial laws are mixtures with these shares, where states are several; of all two corners where few.
_SHARES = (1e-9, 1e-3, 0.1, 0.5)
_FEW, _SEVERAL = 4, 8
_LEAST = 1e-250  # probabilities below this are left out: their logarithms might not be accurate


class TiltedChain:
    """What sign tilts of a release of one chain tell, that reads so many records next to each other.

    ``weights``, (m, k), are what a record in each state adds to each output. Under "any" initial law a number of laws
    are tried.
    """

    tolerance = 1e-6

    def __init__(
        self, transition_matrix: Matrix, initial: Vector | Literal["stationary", "any"], weights: Whole, records: int
    ) -> None:
        self._p = transition_matrix
        self._weights = weights.astype(np.float64)
        self._records = records
        self._starts, error = _starts(transition_matrix, initial)
        k = transition_matrix.shape[0]
        self._error = error + 8 * UNIT * (records + 8) * (k + 8)

    @property
    def all_signs(self) -> bool:
        """Whether :meth:`candidates` are all sign vectors there are."""
        return self._weights.shape[0] <= _ENUMERATED

    def candidates(self) -> Array:
        """Return sign vectors worth trying: all of them, or those that are best where noise is large; shape (n, m)."""
        if self.all_signs:
            return np.array(list(itertools.product((1.0, -1.0), repeat=self._weights.shape[0])))
        return self._best_where_noise_is_large()

    def _best_where_noise_is_large(self) -> Array:
        counts = visits(self._p, min(self._records, 4 * HORIZON))
        if len(strong_components(self._p > 0)) == 1:
            pi = stationary_law(self._p)
            counts = counts + visits(self._p.T * pi[None, :] / pi[:, None], min(self._records, 4 * HORIZON))
        x, x_ = np.nonzero(~np.eye(self._p.shape[0], dtype=np.bool_))
        return telling((counts @ self._weights.T)[x] - (counts @ self._weights.T)[x_])

    def losses(self, signs: Array, scale: float) -> Vector:
        """Return what each tilt tells at least, under the worst of the initial laws; shape (n,)."""
        tilts = signs @ self._weights / scale
        batch = max(1, _ENTRIES // self._starts.size)
        losses = [self._losses(tilts[i : i + batch]) for i in range(0, len(tilts), batch)]
        rounding = self._error + 16 * UNIT * (self._records + 8) * np.max(np.abs(tilts), axis=1)
        return np.concatenate(losses) - rounding

    def search(self, signs: Array, scale: float) -> Array:
        """Return the best few of many sign vectors, each improved by single flips; as seen from a middle record."""
        signs = signs[: max(1, _AFFORDED // self._p.size)]
        losses = [self.seen_from_the_middle(signs[i : i + _BATCH], scale) for i in range(0, len(signs), _BATCH)]
        best = signs[np.argsort(-np.concatenate(losses), kind="stable")[:_STARTS]]
        return np.unique(np.array([self._climb(row, scale) for row in best]), axis=0)

    def _climb(self, signs: Vector, scale: float) -> Vector:
        loss = self.seen_from_the_middle(signs[None, :], scale)[0]
        every = flips = 1.0 - 2.0 * np.eye(signs.size)
        left = _AFFORDED // self._p.size
        while left > 0:
            left -= len(flips)
            losses = self.seen_from_the_middle(flips * signs, scale)
            better = losses > loss + 1e-9 * abs(loss)
            if better.any():  # those that were of no use are tried again at the end only
                best = int(np.argmax(losses))
                signs, loss = flips[best] * signs, losses[best]
                better[best] = False
                flips = flips[better]
            elif len(flips) == len(every):
                break
            if not better.any():
                flips = every
        return signs

    def seen_from_the_middle(self, signs: Array, scale: float) -> Vector:
        """Return about what each tilt tells about a record in the middle: with the records near it only."""
        tilts = signs @ self._weights / scale
        g, by_state, law = self._factors(tilts), self._own(tilts), self._starts[:1]
        future, past = np.ones_like(by_state), np.repeat(law[None], len(by_state), axis=0)
        for _ in range(min(self._records // 2, HORIZON)):
            before = future, past
            future, past, law = self._back(g, future), self._on(g, past), law @ self._p
            if all(np.max(np.abs(b - a)) < _SETTLED for a, b in zip(before, (future, past), strict=True)):
                break
        return _spread(by_state, future, past, law)[:, 0]

    def _losses(self, tilts: Matrix) -> Vector:
        """Largest loss over the records looked at and the initial laws, of each tilt; (n,)."""
        g, by_state, records = self._factors(tilts), self._own(tilts), self._records
        near = records if records <= 2 * _EDGE else _EDGE
        far_on, far_back = self._powers(g)
        law, nothing = self._starts, np.ones_like(by_state)
        first = past = np.repeat(law[None], len(by_state), axis=0)
        steps: list[tuple[Array, Matrix]] = []
        for _ in range(near):
            steps.append((past, law))
            past, law = self._on(g, past), law @ self._p
        future = far_back.from_right(nothing, records - near)
        best = np.full(first.shape[:2], -np.inf)
        for past, law in reversed(steps):
            best = np.maximum(best, _spread(by_state, future, past, law))
            future = self._back(g, future)
        if near < records:
            middle = records // 2
            future = far_back.from_right(nothing, records - 1 - middle)
            past = far_on.from_left(first, middle)
            law = Powers(self._p[None]).from_left(self._starts[None], middle)[0]
            best = np.maximum(best, _spread(by_state, future, past, law))
        return best.max(axis=1)

    # -- what a tilt is: here a factor for the state of each record -----------------------------------------------

    def _factors(self, tilts: Matrix) -> Vector:
        """Return g of each tilt, scaled to a largest entry of 1: a common factor cancels."""
        return np.exp(tilts - tilts.max(axis=1, keepdims=True))

    def _own(self, tilts: Matrix) -> Matrix:
        """Return what each tilt tells about a record by its own state; (n, k)."""
        return tilts

    def _on(self, g: Vector, past: Array) -> Array:
        """Lead what the past of a record tells, under each initial law (n, laws, k), to the next record."""
        return scaled((g[:, None, :] * past) @ self._p)

    def _back(self, g: Vector, future: Matrix) -> Matrix:
        """Lead what the future of a record tells to the record before."""
        return scaled((g * future) @ self._p.T)

    def _powers(self, g: Vector) -> tuple["Powers", "Powers"]:
        """Return the matrices of both, for many steps at once."""
        return Powers(g[:, :, None] * self._p), Powers(g[:, None, :] * self._p)


def scaled(vectors: Array) -> Array:
    """Scale each row to a largest entry of 1; what has underflowed stays 0, and is looked at no more."""
    return vectors / np.maximum(vectors.max(axis=-1, keepdims=True), _LEAST)


def telling(apart: Matrix) -> Array:
    """Return the signs of the outputs between two states, (n, m): of the pairs that noise hides least, these first."""
    most = np.argsort(-np.abs(apart).sum(axis=1), kind="stable")[:_BATCH]
    signs = np.where(apart[most] >= 0, 1.0, -1.0)
    return signs[np.sort(np.unique(signs, axis=0, return_index=True)[1])]


def _spread(tilts: Matrix, future: Matrix, past: Array, law: Matrix) -> Matrix:
    """Largest difference between two states of what a record tells, its future (n, k) and its past (n, laws, k)."""
    known = (future > _LEAST)[:, None, :] & (past > _LEAST) & (law > _LEAST)
    alone = tilts + np.log(np.maximum(future, _LEAST))
    log_ratios = alone[:, None, :] + np.log(np.where(known, past, 1.0)) - np.log(np.maximum(law, _LEAST))
    highest = np.max(np.where(known, log_ratios, -np.inf), axis=-1)
    lowest = np.min(np.where(known, log_ratios, np.inf), axis=-1)
    return np.where(highest >= lowest, highest - lowest, 0.0)


def visits(kernel: Matrix, steps: int) -> Matrix:
    """Return expected visits to each state within some steps, from each state, less what all share; (k, k)."""
    law, excess = np.eye(kernel.shape[0]), np.eye(kernel.shape[0])
    for _ in range(steps):
        law = law @ kernel
        excess += law - law.mean(axis=0)
    return excess


def _starts(p: Matrix, initial: Vector | Literal["stationary", "any"]) -> tuple[Matrix, float]:
    """Return initial laws to try, and the error that their own rounding makes in a loss."""
    k: int = p.shape[0]
    if not isinstance(initial, str):
        return initial[None, :], 0.0
    irreducible = len(strong_components(p > 0)) == 1
    if initial == "stationary":
        return stationary_law(p)[None, :], 4 * stationary_log_error(k)
    even = stationary_law(p) if irreducible else np.full(k, 1 / k)
    laws = [even, np.full(k, 1 / k), *np.eye(k)]
    corners = np.eye(k)
    for share in _SHARES if k <= _SEVERAL else ():
        laws.extend((1 - share) * corner + share * even for corner in corners)
        if k <= _FEW:
            laws.extend((1 - share) * a + share * b for a in corners for b in corners if a is not b)
    return np.array(laws), 0.0


class Powers:
    """Powers of a stack of non-negative matrices applied to vectors, each scaled to a largest entry of 1."""

    def __init__(self, matrices: Array) -> None:
        self._doubled = [matrices]

    def from_right(self, vectors: Matrix, power: int) -> Matrix:
        """Return M^power v for each matrix and vector, scaled."""
        for matrix in self._factors(power):
            vectors = scaled(np.matmul(matrix, vectors[:, :, None])[:, :, 0])
        return vectors

    def from_left(self, vectors: Array, power: int) -> Array:
        """Return v M^power, scaled, of several vectors for each matrix: (n, laws, k)."""
        for matrix in self._factors(power):
            vectors = scaled(np.matmul(vectors, matrix))
        return vectors

    def _factors(self, power: int) -> list[Array]:
        while 2 ** len(self._doubled) <= power:
            square = self._doubled[-1] @ self._doubled[-1]
            self._doubled.append(square / np.maximum(square.max(axis=(1, 2), keepdims=True), _LEAST))
        return [matrix for bit, matrix in enumerate(self._doubled) if power >> bit & 1]


def telling_most(models: Sequence[TiltedChain], scale: float) -> Sequence[TiltedChain]:
    """Return members of Θ that are worth a search: of many those of which tilts tell most at about this scale."""
    if len(models) <= _MOST_MODELS:
        return models
    # as seen from a middle record, and by few tilts if they are many
    glances = [float(np.max(model.seen_from_the_middle(model.candidates()[:_BATCH], scale))) for model in models]
    return [models[i] for i in np.argsort(-np.array(glances), kind="stable")[:_MOST_MODELS]]


Tilted = TiltedChain | TiltedNetwork


def scale_too_small(models: Sequence[Tilted], epsilon: float, start: float) -> float:
    """Largest scale found, from one that is about right, at which a tilt of a member of Θ exceeds epsilon; or 0."""
    best = 0.0
    for c, model in enumerate(models):
        report_progress("searching for a lower bound", c / len(models))
        signs = model.candidates()
        if model.all_signs:
            best = max(best, _of_leading(model, signs, epsilon, max(best, start), best))
            start = best or start
            continue
        for _ in range(_ROUNDS):
            tried = model.search(signs, max(best, start))
            best = max(best, _too_small(model, tried, epsilon, max(best, start)))
            start = best or start
    return best


def _of_leading(model: Tilted, signs: Array, epsilon: float, start: float, best: float) -> float:
    """Return the largest scale above ``best`` at which one of many signs exceeds epsilon, by the leading ones."""
    largest, scale = best, start
    while True:
        losses = model.losses(signs, scale)
        if largest and not np.max(losses, initial=0.0) > epsilon:
            return largest
        leading = signs[np.argsort(-losses, kind="stable")[:_LEADING]]
        better = _too_small(model, leading, epsilon, scale)
        if not better > largest:
            return largest
        largest, scale = better, better * (1 + model.tolerance)


def _too_small(model: Tilted, signs: Array, epsilon: float, start: float) -> float:
    """Return the largest scale found at which one of some sign vectors exceeds epsilon."""
    return bracket(
        lambda scale: float(np.max(model.losses(signs, scale), initial=0.0)),
        epsilon,
        start,
        tolerance=model.tolerance,
        from_above=True,
    ).too_small


# -- How much a Laplace release of numbers of steps certainly leaks --------------------------------------------------


class TiltedSteps(TiltedChain):
    """What sign tilts of a release of numbers of steps tell; a step x → y counts in ``outputs[x, y]``, −1 for none."""

    def __init__(
        self, transition_matrix: Matrix, initial: Vector | Literal["stationary", "any"], outputs: Whole, records: int
    ) -> None:
        counted = outputs.ravel()
        weights = (np.arange(int(counted.max()) + 1)[:, None] == counted).astype(np.int64)
        super().__init__(transition_matrix, initial, weights, records)

    def _best_where_noise_is_large(self) -> Array:
        p, k = self._p, self._p.shape[0]
        steps = min(self._records, 4 * HORIZON)
        counts = visits(p, steps)[:, :, None] * p  # how often each step follows in the mean, from each state
        if len(strong_components(p > 0)) == 1:
            pi = stationary_law(p)
            back = p.T * pi[None, :] / pi[:, None]
            counts = counts + (visits(back, steps)[:, :, None] * back).transpose(0, 2, 1)
        x, x_ = np.nonzero(~np.eye(k, dtype=np.bool_))
        apart = (counts[x] - counts[x_]).reshape(len(x), k * k)
        return telling(apart @ self._weights.T)

    # -- a tilt is a matrix here ----------------------------------------------------------------------------------

    def _factors(self, tilts: Matrix) -> Vector:
        return super()._factors(tilts).reshape(-1, *self._p.shape) * self._p

    def _own(self, tilts: Matrix) -> Matrix:
        return np.zeros((len(tilts), self._p.shape[0]))

    def _on(self, g: Vector, past: Array) -> Array:
        return scaled(np.matmul(past, g))

    def _back(self, g: Vector, future: Matrix) -> Matrix:
        return scaled(np.matmul(g, future[:, :, None])[:, :, 0])

    def _powers(self, g: Vector) -> tuple[Powers, Powers]:
        powers = Powers(g)
        return powers, powers
