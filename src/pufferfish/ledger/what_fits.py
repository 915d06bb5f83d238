"""What can still be released where a release does not fit a budget: only what would work is recommended."""

from typing import TYPE_CHECKING, Any

from pufferfish.calibration import Calibration
from pufferfish.data.independent_rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import BudgetExceeded, PufferfishError
from pufferfish.few_records import nothing_seen
from pufferfish.mechanisms.mechanism import LEAST_EPSILON

if TYPE_CHECKING:
    from pufferfish.ledger.ledger import Ledger

__all__ = ["hides_all", "what_fits"]

_USED_UP = (
    "the budget is as good as used up: noise for what is left would hide all that these records can say. Use what was "
    "released before, or other records; a larger budget is a weaker promise about all of it"
)
_LESS = "take a smaller epsilon"


def hides_all(calibration: Calibration, data: Sequences | Rows | None) -> bool:
    """Whether noise hides all that some data, or each of their groups, would say; how many records there are is public.

    Without data all records that the noise was calibrated for.
    """
    if data is None:
        rows = calibration.bound.rows if calibration.theta.networks else calibration.records
        return nothing_seen(calibration, [rows])
    return nothing_seen(calibration, [data.records] if data.groups is None else data.groups.records)


def what_fits(ledger: "Ledger", what: Any, data: Sequences | Rows | None, window: Any, *, each: bool) -> str:
    """Return the remedy for a release that does not fit: its noise is looked for, and judged as ``--up-to`` would.

    ``each`` says that it is a release for each subject, which only takes an epsilon.
    """
    left = ledger.remaining
    if left < LEAST_EPSILON:
        return _USED_UP
    if not isinstance(what, Calibration):
        return f"{left:.6g} are left: release with more noise, whose loss is smaller"
    length: Any = what.bound.rows if what.theta.networks else what.length
    try:
        found = ledger.calibrate(what.query, length=length, window=window, data=data)
    except BudgetExceeded:
        return _USED_UP
    except PufferfishError:  # the ledger's own mechanism has no noise for this query
        return _LESS
    if hides_all(found, data):
        return _USED_UP
    return (
        _LESS
        if each
        else f"for all that is left: --up-to {_in_full(ledger.budget)} (in Python ledger.calibrate(query))"
    )


def _in_full(budget: float) -> str:
    short = f"{budget:g}"
    return short if float(short) == budget else repr(budget)
