"""Any differentially private algorithm on correlated records: an OpenDP measurement, with what it leaks proved.

A measurement whose privacy map says e0 for datasets that differ in one record is, record by record, e0-differentially
private: its record-level loss is e0. A bound tells what such a loss leaks where records are correlated.
"""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any
from warnings import catch_warnings, simplefilter

import msgspec
import numpy as np

from pufferfish._base.checked import listed
from pufferfish._base.durations import is_moment, now
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.reading import shown
from pufferfish._base.view import Shown, View
from pufferfish._base.words import at_most
from pufferfish._base.writing import read_record, record_kind, write_whole
from pufferfish.errors import ParameterError, PufferfishError, RecordError, ReleaseRefused, shortened
from pufferfish.ledger import Ledger
from pufferfish.ledger.ledger import anywhere
from pufferfish.mechanisms import bound_of
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.mechanisms.words import not_promised_of, promise_of
from pufferfish.release.draw import unseen
from pufferfish.release.facts import LedgerRecord
from pufferfish.release.record import Reported
from pufferfish.release.words import versions
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.record import ThetaRecord

__all__ = ["MEASUREMENT", "MeasurementRelease", "release_measurement"]

FORMAT = "pufferfish-measurement"
VERSION = 1

MEASUREMENT = record_kind(
    "release of a measurement", FORMAT, "it is the record of an earlier release, which is spent; name another file"
)

_DISTANCES = {
    "ChangeOneDistance()": 1,
    "HammingDistance()": 1,
    "DiscreteDistance()": 1,
    "SymmetricDistance()": 2,
    "InsertDeleteDistance()": 2,
}
"""How far apart two datasets are that differ in the value of one record: as one taken out and one put in, 2."""

_PURE = "MaxDivergence"


class MeasurementRelease(FrozenRecord, Reported, Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The value of a measurement, and what was promised; made by :func:`release_measurement`.

    Parameters
    ----------
    value : object
        What the measurement returned.
    record_loss : float
        How much it tells of one record alone, in nats: its privacy map at one changed record.
    leakage : float
        How much of one record once correlation is used, in nats, rounded up; at most ``epsilon``.
    measurement : str
        The note of whoever released it, or the kinds of its input and output.
    length : list of (int, int)
        Steps and observed records of each chain.
    """

    format: str = FORMAT
    version: int = VERSION
    created: str
    value: Any
    measurement: str
    record_loss: float
    leakage: float
    epsilon: float
    promise: str
    not_promised: list[str]
    assumptions: list[str]
    mechanism: str
    settings: dict[str, Any]
    length: list[tuple[int, int]]
    theta: ThetaRecord
    software: dict[str, str]
    ledger: LedgerRecord | None = None

    def __repr__(self) -> str:
        return f"MeasurementRelease({self.measurement!r}, ε = {at_most(self.epsilon)}, leakage {self.leakage:.6g})"

    def _view(self) -> View:
        from pufferfish.release.show.text import of_measurement

        return of_measurement(self)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the record as JSON, and write it to a file if a path is given; an earlier release is never replaced.

        Raises
        ------
        RecordError
            If the value is nothing that JSON holds, or the file cannot be written.
        """
        if not _finite(self.value):
            raise RecordError(
                "the value holds NaN or an infinite number, which no file keeps: it is in the object only"
            )
        try:
            content = msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"
        except (TypeError, ValueError) as error:
            raise RecordError(f"the value cannot stand in a file: {shortened(str(error))}") from error
        if path is not None:
            write_whole(path, content, MEASUREMENT, overwrite=False)
        return content.decode()

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "MeasurementRelease":
        """Read a record, and prove again what it promises.

        Raises
        ------
        RecordError
            If the file is damaged, of another version, or promises what cannot be proved.
        """
        found = read_record(path, cls, format_=FORMAT, version=VERSION, complete=True)
        try:
            found.verify()
        except RecordError as error:
            raise RecordError(f"{shown(path)} contradicts itself: {error}") from error
        return found

    def verify(self) -> float:
        """Compute again what the record-level loss leaks, and return it, in nats.

        That the measurement has this record-level loss is what its privacy map said; the record cannot show it.

        Raises
        ------
        RecordError
            If it is more than ``epsilon``, or a field contradicts another.
        """
        try:
            bound = bound_of(
                self.mechanism, self.theta.theta(), [ChainLength(*each) for each in self.length], self.settings
            )
            epsilon = as_epsilon(self.epsilon)
            leakage = bound.leakage(self.record_loss, enough=epsilon)
        except (PufferfishError, ValueError, TypeError, OverflowError) as error:
            raise RecordError(str(error)) from error
        if not leakage <= epsilon:
            raise RecordError(f"a record-level loss of {self.record_loss!r} leaks {leakage:.6g}, above {epsilon:g}")
        if not (math.isclose(self.leakage, leakage, rel_tol=1e-6, abs_tol=1e-12) and self.leakage <= epsilon):
            raise RecordError(f"it leaks {leakage:.6g}, and the record says {self.leakage!r}")
        if self.promise != _promise(epsilon):
            raise RecordError("the promise is not that of its epsilon")
        if self.assumptions != _assumptions(bound):
            raise RecordError("the assumptions are not those of its Θ")
        if self.not_promised != _not_promised(bound, self.ledger):
            raise RecordError("what is not promised differs from what such a release does not promise")
        if not is_moment(self.created):
            raise RecordError(f"created is {self.created!r}, expected a time with its zone")
        return leakage


def release_measurement(
    records: Sequence[Any],
    measurement: Any,
    bound: InfluenceBound,
    epsilon: float,
    *,
    values: Mapping[Any, Any] | None = None,
    ledger: Ledger | None = None,
    note: str | None = None,
) -> MeasurementRelease:
    """Release what an OpenDP measurement says of correlated records.

    The measurement must be differentially private for datasets that differ in one record, purely (in max-divergence):
    its privacy map gives the record-level loss, and the bound proves what that leaks. Build the measurement for
    ``bound.record_epsilon(epsilon)``.

    Parameters
    ----------
    records : sequence
        The private states, of all chains one after the other: as many as ``bound.length`` has observed records. Chains
        need not be marked off, for the loss of every record is the same.
    measurement : Measurement of OpenDP
        What is released. Its input distance is change-one, Hamming, symmetric, insert-delete or discrete.
    bound : InfluenceBound
        A mechanism that composes, such as ``LeakagePropagation(theta, length)``, on Markov chains.
    epsilon : float
        What may leak, in nats.
    values : mapping, optional
        From each state of Θ to what the measurement gets in its place, such as the middle of a bin; by default states
        are given as they are. What is finer than states is not covered by Θ, and so cannot be given.
    ledger : Ledger, optional
        The budget. Its Θ must be the bound's; who is in the table is not known here, so everybody is charged.
    note : str, optional
        What is released, in words, for the record and the ledger.

    Returns
    -------
    MeasurementRelease

    Raises
    ------
    ReleaseRefused
        If the measurement is not purely differentially private, leaks more than epsilon, or does not take the records;
        nothing is spent.
    BudgetExceeded
        If it does not fit the ledger's budget; nothing is spent.
    ParameterError
        If an argument is no such thing.

    Examples
    --------
    See ``docs/any_algorithm.md``: a median, the most frequent state, and a synthetic sample.
    """
    epsilon = as_epsilon(epsilon)
    if not isinstance(bound, InfluenceBound) or not bound.composes:
        raise ParameterError(
            f"bound is {type(bound).__name__}, expected a mechanism that composes, such as LeakagePropagation(theta, n)"
        )
    if not bound.theta.of_chains:
        raise ReleaseRefused(
            f"measurements are released of Markov chains, and Θ is a class of {bound.theta.kind}: use release and a "
            "query such as Marginals()"
        )
    if bound.theta.stands_for_more:
        raise ReleaseRefused("a measurement needs theta, whose states are known, not pi_min and eigengap alone")
    if note is not None and not isinstance(note, str):
        raise ParameterError(f"note is {note!r}, expected text")
    bound = anywhere(bound)  # a plain list of records does not show where they are
    given = _given(records, bound, values)
    loss = _loss_of(measurement)
    leakage = bound.leakage(loss, enough=epsilon)
    if not leakage <= epsilon:
        raise ReleaseRefused(
            f"for one record the measurement has a loss of {loss:.6g}, which leaks {leakage:.6g} of records that are "
            f"correlated, above {epsilon:g}: build it for a loss of at most {bound.record_epsilon(epsilon):.6g}"
        )
    if not _takes(measurement, given):
        raise ReleaseRefused(
            f"the measurement does not take the {len(given)} records: its input is {measurement.input_domain}; values= "
            "says what stands for each state"
        )
    what = note or f"OpenDP measurement on {measurement.input_domain}"
    theta = ThetaRecord.of(bound.theta)
    if ledger is not None and ThetaRecord.of(ledger.bound.theta) != theta:
        raise ReleaseRefused("the ledger is about another Θ: make the bound with the ledger's theta")
    if ledger is not None and tuple(ledger.bound.length) != tuple(bound.length):
        raise ReleaseRefused("the ledger is about chains of other lengths: make the bound with the ledger's length")
    draft = MeasurementRelease(
        created=now(),
        value=None,
        measurement=what,
        record_loss=loss,
        leakage=leakage,
        epsilon=epsilon,
        promise=_promise(epsilon),
        not_promised=_not_promised(bound, None),
        assumptions=_assumptions(bound),
        mechanism=bound.name,
        settings=dict(bound.settings),
        length=[(chain.steps, chain.records) for chain in bound.length],
        theta=theta,
        software=versions(),
    )
    draft.to_json()  # what cannot be written is refused before anything is spent
    booked, at = None, None
    if ledger is not None:
        entry = ledger.spend(loss, note=what)
        at = entry.created
        booked = LedgerRecord(entry.number, entry.spent, ledger.budget, ledger.bound.name, ledger.bound.theta.origin)
    return msgspec.structs.replace(
        draft,
        created=now(at),
        value=_plain(unseen(lambda: measurement(given))()),
        ledger=booked,
        not_promised=_not_promised(bound, booked),
    )


def _plain(value: Any) -> Any:
    """Return numbers and arrays of numpy as those of Python, so that a file can hold them; all else as it is."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _finite(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _promise(epsilon: float) -> str:
    return promise_of(epsilon, 0.0, None, of_chains=True, networks=False)


def _assumptions(bound: InfluenceBound) -> list[str]:
    return [
        f"The distribution of the records is {bound.theta.in_words} ({bound.theta.origin}).",
        "The measurement is as private as its own map says; this program did not check how it was built.",
    ]


def _not_promised(bound: InfluenceBound, booked: LedgerRecord | None) -> list[str]:
    return not_promised_of(None, booked, kind=bound.theta.kind, composes=True)


def _given(records: Any, bound: InfluenceBound, values: Mapping[Any, Any] | None) -> list[Any]:
    """Return what the measurement gets: a value for each record, which is a function of its state."""
    states = bound.theta.states
    if values is None:
        values = {state: state for state in states}
    elif not isinstance(values, Mapping):
        raise ParameterError("values is no mapping; expected one from every state to a value: {'rest': 0, 'walk': 1}")
    lacking = [state for state in states if state not in values]
    if lacking:
        raise ParameterError(f"values has none for the state {shortened(repr(lacking[0]))}: every state of Θ needs one")
    found = listed(records, "records", "the states of all records, one after the other")
    expected = sum(chain.records for chain in bound.length)
    if len(found) != expected:
        raise ReleaseRefused(
            f"there are {len(found)} records, and the bound is on {expected}: make it with the lengths of the data"
        )
    known = set(states)
    try:
        strange = sum(state not in known for state in found)
    except TypeError:
        strange = len(found)
    if strange:
        raise ReleaseRefused(
            f"{strange} of the {expected} records are no state of Θ: give states, and what stands for them in values="
        )
    return [values[state] for state in found]


def _loss_of(measurement: Any) -> float:
    """Return the loss of a measurement where one record changes, refused where that is not known."""
    try:
        measure, distance, proved = str(measurement.output_measure), str(measurement.input_metric), measurement.map
    except AttributeError as error:
        raise ParameterError(
            f"measurement is {type(measurement).__name__}, expected an OpenDP measurement, such as dp.m.make_laplace(…)"
        ) from error
    if measure != _PURE:
        raise ReleaseRefused(
            f"the measurement is private in {measure}, expected {_PURE}: only pure differential privacy is a bound on "
            "what single records move"
        )
    if distance not in _DISTANCES:
        raise ReleaseRefused(
            f"the measurement's input distance is {distance}, expected one between datasets: "
            f"{', '.join(name.removesuffix('()') for name in _DISTANCES)}"
        )
    loss = float(proved(_DISTANCES[distance]))
    if not 0 <= loss < math.inf:
        raise ReleaseRefused(f"the measurement's map says a loss of {loss} for one record, expected a finite one")
    return loss


def _takes(measurement: Any, given: list[Any]) -> bool:
    with catch_warnings():  # what OpenDP warns of quotes the records, and what it raises may too
        simplefilter("ignore")
        try:
            return bool(measurement.input_domain.member(given))
        except Exception:
            return False
