r"""Leakage propagation on every Bayesian network: one sweep over a cluster tree.

Let the density of a release change by at most a factor e^{d_v(x,x')} when record v goes from x to x'. Clusters C of a
junction tree tell each other what the records behind them tell. Every record has one **home**, a smallest cluster that
holds it. With the separator S of C and its neighbour D

.. math::
    A_C = \sum_{v \text{ at home in } C} d_v + \sum_{E \in N(C)} M_{E \to C} \qquad
    M_{C \to D} = \Phi_{P(C|S)}(A_C \text{ without } D) \qquad
    \mathrm{leakage}(v) = d_v + \Phi_{P(C|v)}(A_C \text{ without } d_v), \; C \text{ the home of } v

where M is a bound on pairs of states of the separator, and Φ that of :mod:`pufferfish._core.phi.phi`.

**Proof.** Let R be the records at home on C's side of the edge, z any values of the others, m the density, and
u(s) = E[m(X_R, z) | S = s]. Claim: u(s) ≤ e^{M(s,s')} u(s'). Given C = c what lies behind C's other neighbours is
independent, so w(c) = E[m | C = c] changes from c to c' by at most e^{A_C(c,c')}: change the records at home in C one
by one, then the law of one neighbour's side after the other, each by induction with the rest held fixed. Now
u(s) = Σ_c P(c|s) w(c), and w lies in the cone of A_C. The last line is the same with S = {v}: change record v itself
first, e^{d_v}, then compare averages of one function over P(C | v = x) and P(C | v = x'). ∎

**Only what matters needs states.** A_C is a sum of bounds, each on a few of C's variables. A bound on variables of S
alone passes as it is, outside of Φ; for the others Φ is taken over the configurations of their variables V, with
P(V | S). Nothing is lost: with a bound M₁ on S besides A₂ on V, the largest ratio is M₁ + Φ(A₂).

**Large clusters.** Any upper bound on Φ will do, and every step takes the best that it can afford:

* Φ over all configurations of V at once;
* one variable at a time: a bound on configurations of U becomes one on those of U∖v, by Φ of the two laws P(v | w) and
  P(v | w') over the configurations (w, ·), (w', ·). It is sound by the proof above, with U∖v as a separator;
* a term left out of V: its largest entry is added to all pairs (the function varies by no more along it);
* the max-divergence of P(V | S), whatever the losses are.

A message about more configurations than can be held in pairs is one number, the sum of its terms' largest entries.

Configurations that cannot occur take no part. Sums and laws are rounded up.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import BoundedCache
from pufferfish._core.networks.cluster_laws import MOST_ENTRIES, Table
from pufferfish._core.networks.junction_tree import Bucket, Scope, buckets_of
from pufferfish._core.numbers.rounding import UNIT, bracket
from pufferfish._core.propagation.cluster_sweep import Attained, ClusterSweep
from pufferfish.errors import ModelError

__all__ = ["Attained", "ClusterPropagation", "closed_losses"]

_KEPT = 4
"""Sweeps that are kept, for losses that are 0 at other nodes."""

_LOOSE = 1e-4
"""How near to epsilon a calibration comes where a sweep takes more than a second."""

_GUESSES = 6
"""Steps by a parabola before a calibration searches by secants."""

_FAR_OFF = 1e30
"""No step by a parabola starts from a value this many times its goal."""

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


class ClusterPropagation:
    """Leakage of a Bayesian network, for any record-level losses of its nodes.

    Parameters
    ----------
    tables : sequence of (nodes, ndarray)
        For every node j, in order, P(X_j | parents): axes for its parents, then for j; rows are distributions.
    sizes : sequence of int
        Number of states of every node.

    Examples
    --------
    >>> flip = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> family = ClusterPropagation([((0,), np.array([0.5, 0.5])), ((0, 1), flip), ((0, 2), flip)], [2, 2, 2])
    >>> one = 1 - np.eye(2)
    >>> found = family.leakage([one, one, one])
    >>> round(found.total, 4), found.node, round(found.own, 4)
    (2.5523, 0, 1.0)
    >>> sorted((near, round(nats, 4)) for near, nats in found.neighbours)
    [((1,), 0.7761), ((2,), 0.7761)]
    >>> family.leakage([one, 0 * one, 0 * one]).neighbours
    ()
    """

    def __init__(self, tables: Sequence[Table], sizes: Sequence[int]) -> None:
        self._tables = tables
        self._sizes = sizes
        self._parents = [nodes[:-1] for nodes, _ in tables]
        self._sweeps: BoundedCache[ClusterSweep] = BoundedCache(_KEPT)

    @cached_property
    def affordable(self) -> bool:
        """Whether the laws of all clusters can be made; otherwise no bound of this kind is known."""
        return all(math.prod(self._sizes[v] for v in bucket.scope) <= MOST_ENTRIES for bucket in self._buckets)

    @cached_property
    def _buckets(self) -> list[Bucket]:
        return buckets_of([nodes for nodes, _ in self._tables], self._sizes)

    def leakage(self, losses: Sequence[Matrix], secrets: Sequence[Mask] | None = None) -> Attained:
        """Bound the leakage.

        Parameters
        ----------
        losses : sequence of (k_i, k_i) ndarray
            Record-level loss of every node: not negative, 0 on the diagonal; +∞ where there is no bound.
        secrets : sequence of (k_i, k_i) ndarray of bool, optional
            Which pairs (x, x') of every node shall not be told apart; all of them where not given. A node without
            such a pair is no secret.

        Raises
        ------
        ModelError
            If shapes do not fit, or a loss is negative, no number, or not 0 from a state to itself.
        """
        closed = closed_losses(losses, self._sizes)
        plan = self._plan(closed, secrets)
        return plan.worst(plan.losses(closed), plan.pairs(secrets))

    def least_divisor(
        self,
        losses: Sequence[Matrix],
        epsilon: float,
        start: float,
        secrets: Sequence[Mask] | None = None,
        tolerance: float = 1e-6,
    ) -> float:
        """Least number by which the losses must be divided to leak at most epsilon, or ``inf``.

        Within the tolerance, or 1e-4 where every evaluation takes more than a second, on the private side. ``start``
        is a guess.
        """
        closed = closed_losses(losses, self._sizes)
        plan = self._plan(closed, secrets)
        flat, pairs = plan.losses(closed), plan.pairs(secrets)

        def leakage(divisor: float) -> float:
            with np.errstate(over="ignore", under="ignore"):
                divided = np.where(flat > 0, np.nextafter(flat / divisor, np.inf), 0.0)
            return plan.worst(divided, pairs).total

        if plan.seconds > 1:
            tolerance = max(tolerance, _LOOSE)
        start = _crossing(leakage, epsilon * (1 - tolerance / 2), start, tolerance / 2)
        return bracket(leakage, epsilon, start, tolerance=tolerance, from_above=False).enough

    def _plan(self, losses: Sequence[Matrix], secrets: Sequence[Mask] | None) -> ClusterSweep:
        """Return the steps for losses that are 0 at the same nodes, made once."""
        lossy = tuple(v for v, loss in enumerate(losses) if loss.any())
        secret = tuple(v for v in range(len(losses)) if secrets is None or secrets[v].any())
        return self._sweeps.of((lossy, secret), lambda: self._planned(lossy, secret))

    def _planned(self, lossy: Scope, secret: Scope) -> ClusterSweep:
        needed = self._ancestors({*lossy, *secret})
        tables = [self._tables[v] for v in needed]
        every = len(needed) == len(self._tables)
        buckets = self._buckets if every else buckets_of([nodes for nodes, _ in tables], self._sizes)
        return ClusterSweep(buckets, tables, self._sizes, lossy, secret)

    def _ancestors(self, nodes: set[int]) -> list[int]:
        """Return nodes and all that lead to them: what only follows them tells nothing."""
        ancestors, fresh = set(nodes), list(nodes)
        while fresh:
            fresh = list({v for node in fresh for v in self._parents[node] if v not in ancestors})
            ancestors.update(fresh)
        return sorted(ancestors)


def _crossing(leakage: Callable[[float], float], goal: float, start: float, tolerance: float) -> float:
    """Guess the divisor at which the leakage comes to a goal: it is nearly a u + c u², with u = 1 / divisor."""
    u, last = 1 / start, None
    for _ in range(_GUESSES):
        if not 0 < u < math.inf or 1 / u == math.inf:  # numbers do not reach so far
            return start
        value = leakage(1 / u)
        if abs(value / goal - 1) <= tolerance or not 1 / _FAR_OFF < value / goal < _FAR_OFF:
            break
        a, c = value / u, 0.0
        if last is not None and last[0] != u:
            c = (a - last[1]) / (u - last[0])
        last = u, a
        a -= c * u
        if a <= 0 or a * a + 4 * c * goal < 0:  # no parabola through both comes to the goal
            break
        u = 2 * goal / (a + math.sqrt(a * a + 4 * c * goal))
    return 1 / u


def closed_losses(losses: Sequence[Matrix], sizes: Sequence[int]) -> list[Matrix]:
    """Check losses, and close them by shortest paths, many at once: a sum of doubles rounded up."""
    matrices: list[Matrix] = [np.asarray(loss, dtype=np.float64) for loss in losses]
    if [loss.shape for loss in matrices] != [(k, k) for k in sizes]:
        raise ModelError(f"losses are of {len(matrices)} nodes, expected one matrix of pairs of states for each node")
    by_size: dict[int, list[int]] = {}
    for v, loss in enumerate(matrices):
        by_size.setdefault(len(loss), []).append(v)
    for k, nodes in by_size.items():
        a = np.stack([matrices[v] for v in nodes])
        if not np.all(a >= 0) or np.any(np.diagonal(a, axis1=1, axis2=2)):
            raise ModelError("a loss is negative, no number, or not 0 from a state to itself")
        others = a[:, ~np.eye(k, dtype=bool)]
        if others.size and others.max() <= 2 * others.min():
            continue  # no way round is shorter, as for counts of many states
        with np.errstate(over="ignore"):  # a sum beyond the largest double is no bound
            for z in range(k):
                np.minimum(a, (a[:, :, z, None] + a[:, z, None, :]) * (1 + 2 * UNIT), out=a)
        for v, closed in zip(nodes, a, strict=True):
            matrices[v] = closed
    return matrices
