"""A release before it is made: its noise, errors and promise, and what a ledger would have spent."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.view import Grid, Printed, View
from pufferfish._base.words import at_most
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.ledger import Ledger
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.promises import Promise
from pufferfish.queries import Query
from pufferfish.release.facts import (
    AccuracyRecord,
    DataRecord,
    GroupsRecord,
    LedgerRecord,
    MechanismRecord,
    NoiseRecord,
    QueryRecord,
)
from pufferfish.release.prepare import check_arguments
from pufferfish.release.record import ReleaseFields
from pufferfish.release.release import prepare

__all__ = ["ReleasePlan", "plan"]


class ReleasePlan(Printed, FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the record of a release would hold beside its values; nothing of it depends on a record's value.

    :class:`~pufferfish.Release` explains each field; ``ledger.spent`` is what would be spent in all.
    """

    query: QueryRecord
    epsilon: float
    delta: float
    hides: str
    promise: str
    promises: list[Promise]
    warnings: list[str]
    not_promised: list[str]
    assumptions: list[str]
    noise: NoiseRecord
    accuracy_95: AccuracyRecord
    mechanism: MechanismRecord
    data: DataRecord
    ledger: LedgerRecord | None = None
    groups: GroupsRecord | None = None

    @classmethod
    def of(cls, draft: ReleaseFields) -> "ReleasePlan":
        """Return the plan that is in a record without values."""
        return cls(**{name: getattr(draft, name) for name in cls.__struct_fields__})

    def to_json(self) -> str:
        """Return the plan as one JSON object."""
        return msgspec.json.encode(self).decode()

    def __repr__(self) -> str:
        return f"ReleasePlan({self.query.kind}, ε = {at_most(self.epsilon)}, noise scale {self.noise.scale:.6g})"

    def _view(self) -> View:
        ledger = self.ledger
        facts = {"hides": self.hides, "ε": at_most(self.epsilon), "noise scale": self.noise.scale}
        if ledger is not None:
            facts["spent in all after it"] = f"{at_most(ledger.spent)} of {ledger.budget:g}"
        errors = self.accuracy_95.outputs or [self.accuracy_95.each] * len(self.query.labels)
        worst = "" if self.groups is None else ", in the group where it is largest"
        rows = [[label, error] for label, error in zip(self.query.labels, errors, strict=True)]
        grid = Grid(f"Error of each value{worst}", [self.query.kind, "± 95%"], rows)
        return View("Not released: nothing is drawn or spent", facts, [grid], [*self.warnings, self.promise])


def plan(
    data: Sequences | Rows | Mapping[Any, Any] | Sequence[Any],
    query: Query,
    calibration: Calibration | None = None,
    *,
    postprocess: Literal["valid"] | None = None,
    ledger: Ledger | None = None,
    window: Any = None,
    coarsening: Mapping[Any, Any] | None = None,
    accept: str | Collection[str] = (),
) -> ReleasePlan:
    """Check all that :func:`release` checks, and return what it would promise; nothing is drawn, spent or written.

    Parameters
    ----------
    data, query, calibration, postprocess, ledger, window, coarsening, accept
        As for :func:`release`.

    Raises
    ------
    ReleaseRefused, BudgetExceeded, DataError, ParameterError
        As :func:`release`.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> noise = pf.LeakagePropagation(chain, length=100).calibrate(pf.Count(1), 1.0)
    >>> planned = plan([0, 1] * 50, pf.Count(1), noise)
    >>> planned.accuracy_95.each, planned.ledger
    (10.0, None)
    """
    calibration = check_arguments(data, query, calibration, {})
    ready = prepare(
        data,
        query,
        calibration,
        postprocess=postprocess,
        ledger=ledger,
        window=window,
        coarsening=coarsening,
        accept=accept,
    )
    return ReleasePlan.of(ready.plan()[0])
