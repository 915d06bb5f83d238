"""What can still be released where a release does not fit a budget: only what would work is recommended.

The words are those of Python; the command line has its own for ``ledger.calibrate``, ``--up-to`` (``cli/as_options``).
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pufferfish._base.words import at_least
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import BudgetExceeded, PufferfishError
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.mechanism import LEAST_EPSILON
from pufferfish.mechanisms.words import nothing_seen

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
    if what.theta.of_chains and what.theta.states != ledger.bound.theta.states:
        return _LESS  # noise of the ledger's own mechanism is for its own states
    length: Any = what.bound.rows if what.theta.networks else what.length
    try:
        found = ledger.calibrate(what.query, length=length, window=window, data=data)
    except BudgetExceeded:
        return _USED_UP
    except PufferfishError:  # the ledger's own mechanism has no noise for this query
        return _LESS
    if hides_all(found, data):
        return _USED_UP
    if not each:
        return f"for all that is left: ledger.calibrate(query, up_to={_in_full(ledger.budget)})"
    try:
        largest = _largest_epsilon(ledger, what, found, data, window)
    except PufferfishError:
        return _LESS
    return _LESS if largest is None else f"the largest epsilon that fits is {largest}"


def _largest_epsilon(ledger: "Ledger", what: Calibration, found: Calibration, data: Any, window: Any) -> str | None:
    """Return in few digits the ε at which the mechanism of a release has the noise that fits; None if it is not found.

    It is tried: rounding, or a mechanism whose noise is not in proportion, may take the noise below what fits.
    """
    if not isinstance(what.bound, InfluenceBound):
        return None
    leaks = what.bound.verify(replace(what, unit_scale=found.unit_scale, epsilon=found.epsilon))[0]
    for largest in (leaks * (1 + 1e-4), leaks):
        text = at_least(largest, 3).replace(",", "")
        if not LEAST_EPSILON <= float(text) < what.epsilon:
            continue
        tried = what.bound.calibrate(what.query, float(text))
        if ledger.leakage_with(tried, data=data, window=window) <= ledger.budget:
            return text
    return None


def _in_full(budget: float) -> str:
    short = f"{budget:g}"
    return short if float(short) == budget else repr(budget)
