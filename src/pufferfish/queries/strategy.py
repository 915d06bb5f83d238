"""What noise is added to: linear functions of the counts (a **strategy**), and how the answers follow from them.

Instead of its m outputs a query's release may measure other counts, each with noise of its own scale: row j of a
whole-number matrix A says which states measurement j counts, and its **sharpness** s_j, a whole number, how much less
noise it gets: discrete Laplace noise of scale b/s_j. When one record goes from state x to x', the density of all
measurements changes by at most e^d with d(x, x') = Σ_j s_j |A_{j,x} − A_{j,x'}| / b, that of the **measured** query of
the weights s_j·A_j and one scale: bounds and ledgers need to know nothing of strategies. The outputs W·counts follow
from the measurements y and the public number of records T: E·y + o·T, with whole numbers E and o such that E·A + o·1ᵀ =
W. A strategy has as many measurements as there are states, or one fewer, and E is then unique.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import whole_array
from pufferfish._base.frozen import ReadOnly, read_only
from pufferfish._core.numbers import laplace
from pufferfish.errors import QueryError
from pufferfish.queries.query import LinearQuery

MOST_SHARP = 10**6  # sums of whole numbers of 64 bits, over all measurements, are then exact


@dataclass(frozen=True, eq=False)
class Strategy(ReadOnly):
    """Counts that are measured, how sharply, and how a query's outputs follow from them, each taken at most once.

    The query W has ``weights`` of shape (outputs, k), in units; each of the m measurements, k or k − 1, counts the
    states where its one of the ``rows``, of shape (m, k), is 1; its sharpness is from 1 to :data:`MOST_SHARP`.

    Of three states two are counted; the last one follows from the number of records:

    >>> found = Strategy(np.eye(3, dtype=np.int64), [[1, 0, 0], [0, 1, 0]], [1, 2])
    >>> found.answers([40, 25], 100)
    [40, 25, 35]
    """

    weights: NDArray[np.int64]
    rows: NDArray[np.int64]
    sharpness: NDArray[np.int64]
    decode: NDArray[np.int64] = field(init=False)
    """E: how often each measurement is added to each output; shape (outputs, m), −1, 0 or 1."""

    known: NDArray[np.int64] = field(init=False)
    """o: how often the number of records is added to each output; shape (outputs,)."""

    def __post_init__(self) -> None:
        for name in ("weights", "rows", "sharpness"):
            try:
                self._keep(**{name: read_only(whole_array(getattr(self, name)))})
            except (TypeError, OverflowError) as error:
                raise QueryError(f"a strategy's {name} {error}; expected whole numbers") from None
        k = self.weights.shape[1]
        sound = self.rows.ndim == 2 and self.rows.shape[1] == k and self.rows.shape[0] in (k - 1, k) and k > 1
        if not sound or not np.isin(self.rows, (0, 1)).all():
            raise QueryError(f"a strategy for {k} states measures {k} counts of some of them, or {k - 1}")
        if (
            self.sharpness.shape != (len(self.rows),)
            or not ((self.sharpness > 0) & (self.sharpness <= MOST_SHARP)).all()
        ):
            raise QueryError(f"a strategy gives every measurement a sharpness, a whole number from 1 to {MOST_SHARP:,}")
        decode, known = _decoded(self.weights, self.rows)
        self._keep(decode=read_only(decode), known=read_only(known))

    def measured(self, linear: LinearQuery) -> LinearQuery:
        """Return the query whose release with one scale has the record losses of this strategy: weights s_j·A_j."""
        return self._with(linear, self.sharpness[:, None] * self.rows)

    def counted(self, linear: LinearQuery) -> LinearQuery:
        """Return what is measured, before noise: the counts A_j."""
        return self._with(linear, self.rows)

    def answers(self, measured: Sequence[int], total: int) -> list[int]:
        """Return the query's outputs, in units, from measurements and the public number of records."""
        known = (int(times) * total for times in self.known)
        return [
            base + sum(int(e) * int(y) for e, y in zip(row, measured, strict=True) if e)
            for base, row in zip(known, self.decode, strict=True)
        ]

    @property
    def distance(self) -> NDArray[np.float64]:
        """How far one record moves all measurements, each times its sharpness; shape (k, k), whole numbers."""
        rows = self.sharpness[:, None] * self.rows
        return np.abs(rows[:, :, None] - rows[:, None, :]).sum(axis=0).astype(np.float64)

    def scales(self, unit_scale: float) -> NDArray[np.float64]:
        """Return the noise scale of each measurement, in units."""
        return unit_scale / self.sharpness

    def taken(self, unit_scale: float) -> list[tuple[float, ...]]:
        """Return the scales of the noises whose sum is the error of each output, in units."""
        scales = self.scales(unit_scale)
        return [tuple(float(b) for b in np.sort(scales[row != 0])) for row in self.decode]

    def expected_errors(self, unit_scale: float) -> NDArray[np.float64]:
        """Return the expected error of each output, without sign, in units; shape (outputs,)."""
        return laplace.mean_moduli(self.scales(unit_scale), self.decode != 0)

    def errors(self, unit_scale: float, alpha: float, *, joint: bool = False) -> list[int]:
        """Return the error that each output, or with ``joint`` any of them, exceeds with probability at most alpha."""
        return laplace.errors_within(self.taken(unit_scale), alpha, joint=joint, apart=self._apart)

    def error(self, unit_scale: float, alpha: float, *, joint: bool = False) -> int:
        """Return one error for all outputs that each, or any, exceeds with probability at most alpha."""
        if joint:
            return laplace.joint_error(self.taken(unit_scale), alpha, apart=self._apart)
        return max(self.errors(unit_scale, alpha))

    @property
    def _apart(self) -> bool:
        """Whether no noise is in two outputs."""
        return bool((np.count_nonzero(self.decode, axis=0) <= 1).all())

    def _with(self, linear: LinearQuery, rows: NDArray[np.int64]) -> LinearQuery:
        labels = tuple(f"measurement {j + 1}" for j in range(len(rows)))
        return replace(linear, weights=rows, labels=labels, blocks=())


def _decoded(weights: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return E and o with E·A + o·1ᵀ = W, whole numbers; a float proposes them, whole numbers confirm them."""
    m, k = rows.shape
    all_rows = rows if m == k else np.vstack([rows, np.ones(k, dtype=np.int64)])
    wrong = QueryError("the outputs do not follow from the measurements, or only from multiples of them")
    try:
        solution = np.rint(np.linalg.solve(all_rows.T.astype(np.float64), weights.T.astype(np.float64)).T)
    except np.linalg.LinAlgError:
        raise wrong from None
    if not np.isfinite(solution).all() or np.abs(solution).max(initial=0.0) > 2**31:
        raise wrong
    whole = solution.astype(np.int64)
    decode = whole[:, :m]
    known = whole[:, m] if m < k else np.zeros(len(weights), dtype=np.int64)
    if not np.array_equal(whole @ all_rows, weights) or np.abs(decode).max(initial=0) > 1:
        raise wrong
    return decode, known
