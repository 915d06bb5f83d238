"""Noise that hides all that the values could say: whoever spends a budget on it gets nothing for it."""

from pufferfish._base.view import counted
from pufferfish._base.words import at_most
from pufferfish.data import Rows, Sequences
from pufferfish.errors import ParameterError
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.words import nothing_seen
from pufferfish.release.cells import records_of_subjects

__all__ = ["check_useful"]


def check_useful(data: Sequences | Rows, calibration: Calibration, *, each_subject: bool, larger: str) -> None:
    """Refuse to spend anything on noise that hides everything; the noise and the numbers of records are public.

    ``larger`` is the remedy of less noise, if there is one.
    """
    if each_subject and isinstance(data, Sequences):
        records = records_of_subjects(data).tolist()
        told = f"each of {counted(len(records), 'subject')}"
    elif data.groups is not None:
        records, told = list(data.groups.records), "each of the groups" if len(data.groups.records) > 1 else "the group"
    else:
        records, told = [data.records], counted(data.records, "row" if isinstance(data, Rows) else "record")
    if not nothing_seen(calibration, records):
        return
    remedy = f"take more records, ask for less, or {larger}" if larger else "the budget is as good as used up"
    raise ParameterError(
        f"the noise of ε = {at_most(calibration.epsilon)} would hide all that {told} can say: its error is as large as "
        f"the range of what can be true. Nothing is spent: {remedy}; if you mean it, give --anyway"
    )
