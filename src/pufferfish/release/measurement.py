"""Any differentially private algorithm on correlated records: an OpenDP measurement, with what it leaks proved.

A measurement whose privacy map says e0 for datasets that differ in one record is, record by record, e0-differentially
private: its record-level loss is e0. A bound tells what such a loss leaks where records are correlated.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from warnings import catch_warnings, simplefilter

import msgspec
import numpy as np

from pufferfish._base.checked import accepted_words, listed
from pufferfish._base.durations import now
from pufferfish.errors import ParameterError, ReleaseRefused, shortened
from pufferfish.ledger import Ledger
from pufferfish.ledger.ledger import without_positions
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.mechanisms.words import checked_of
from pufferfish.release.derive import place_in, versions, words_of_measurement
from pufferfish.release.draw import hide_traceback
from pufferfish.release.prepare import warnings_of_model
from pufferfish.release.release import MeasurementRelease
from pufferfish.theta.record import ThetaRecord

_DISTANCES = {
    "ChangeOneDistance()": 1,
    "HammingDistance()": 1,
    "DiscreteDistance()": 1,
    "SymmetricDistance()": 2,
    "InsertDeleteDistance()": 2,
}
"""How far apart two datasets are that differ in the value of one record: as one taken out and one put in, 2."""

_PURE = "MaxDivergence"


def release_measurement(
    records: Sequence[Any],
    measurement: Any,
    bound: InfluenceBound,
    epsilon: float,
    *,
    values: Mapping[Any, Any] | None = None,
    ledger: Ledger | None = None,
    note: str | None = None,
    accept: str | Collection[str] = (),
) -> MeasurementRelease:
    """Release the output of an OpenDP measurement on correlated records.

    The measurement must be differentially private for datasets that differ in one record, purely (in max-divergence):
    its privacy map gives the record-level loss, and the bound proves what that leaks. Build the measurement for
    ``bound.record_epsilon(epsilon)``; ``docs/any_algorithm.md`` has a median, the most frequent state, and a synthetic
    sample.

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
        From each state of Θ to what the measurement gets in its place, such as the middle of a bin; by default the
        states themselves. What is finer than states is not covered by Θ, and so cannot be given.
    ledger, note : optional
        The budget, whose Θ must be the bound's; everybody is charged, as nobody knows who is in the table. And what is
        released, in words, for the record and the ledger.
    accept : str or collection of str, default ()
        The refusals that you accept, by word. ``"model"``: a check of the bound's model said "do not go on". The table
        that a model was fitted to is not known here: records are not read from one.

    Raises
    ------
    ReleaseRefused, BudgetExceeded
        If the measurement is not purely differentially private, leaks more than epsilon, does not take the records, or
        does not fit the ledger's budget; nothing is spent.
    ParameterError
        If an argument is no such thing.
    """
    epsilon = as_epsilon(epsilon)
    if not isinstance(bound, InfluenceBound) or not bound.composes:
        raise ParameterError(
            f"bound is {type(bound).__name__}, expected a mechanism that composes, such as LeakagePropagation(theta, n)"
        )
    if not bound.theta.of_chains:
        raise ReleaseRefused(
            f"release_measurement needs Markov chains, but Θ is a class of {bound.theta.kind}: use release and a "
            "query such as Marginals()"
        )
    if bound.theta.stands_for_more:
        raise ReleaseRefused("a measurement needs theta, whose states are known, not pi_min and eigengap alone")
    if note is not None and not isinstance(note, str):
        raise ParameterError(f"note is {note!r}, expected text")
    warnings_of_model(None, bound.model, accept=accepted_words(accept, ("model",)))
    bound = without_positions(bound)  # a plain list of records does not show where they are
    inputs = _inputs(records, bound, values)
    loss = _loss_of(measurement)
    leakage = bound.leakage(loss, enough=epsilon)
    if not leakage <= epsilon:
        raise ReleaseRefused(
            f"the measurement has a loss of {loss:.6g} for one record, which with correlation leaks {leakage:.6g}, "
            f"above {epsilon:g}: build it for a loss of at most {bound.record_epsilon(epsilon):.6g}"
        )
    if not _takes(measurement, inputs):
        raise ReleaseRefused(
            f"the measurement does not take the {len(inputs)} records: its input is {measurement.input_domain}; give "
            "a value for each state by values="
        )
    what = note or f"OpenDP measurement on {measurement.input_domain}"
    theta = ThetaRecord.of(bound.theta)
    if ledger is not None and ThetaRecord.of(ledger.bound.theta) != theta:
        raise ReleaseRefused("the ledger is about another Θ: make the bound with the ledger's theta")
    if ledger is not None and tuple(ledger.bound.length) != tuple(bound.length):
        raise ReleaseRefused("the ledger is about chains of other lengths: make the bound with the ledger's length")
    checked = checked_of(bound.model)
    draft = MeasurementRelease(
        created=now(),
        value=None,
        measurement=what,
        record_loss=loss,
        leakage=leakage,
        epsilon=epsilon,
        mechanism=bound.name,
        settings=dict(bound.settings),
        length=[(chain.steps, chain.records) for chain in bound.length],
        theta=theta,
        checked=checked,
        software=versions(),
        **words_of_measurement(bound, epsilon, None, checked),
    )
    draft.to_json()  # what cannot be written is refused before anything is spent
    entry = None if ledger is None else ledger.spend(loss, note=what)
    booked = None if ledger is None else place_in(ledger, entry)
    value = hide_traceback(lambda: measurement(inputs))()
    return msgspec.structs.replace(
        draft,
        created=now(None if entry is None else entry.created),
        # numbers and arrays of numpy are no values that a file can hold
        value=value.tolist() if isinstance(value, np.generic | np.ndarray) else value,
        ledger=booked,
        **words_of_measurement(bound, epsilon, booked, checked),
    )


def _inputs(records: Any, bound: InfluenceBound, values: Mapping[Any, Any] | None) -> list[Any]:
    """Return what the measurement gets: a value for each record, which is a function of its state."""
    states = bound.theta.states
    if values is None:
        values = {state: state for state in states}
    elif not isinstance(values, Mapping):
        raise ParameterError("values is not a mapping; give every state a value: {'rest': 0, 'walk': 1}")
    missing = [state for state in states if state not in values]
    if missing:
        raise ParameterError(
            f"values has no value for the state {shortened(repr(missing[0]))}: every state of Θ needs one"
        )
    given_states = listed(records, "records", "the states of all records, one after the other")
    expected = sum(chain.records for chain in bound.length)
    if len(given_states) != expected:
        raise ReleaseRefused(
            f"there are {len(given_states)} records, but the mechanism was made for {expected}: make it with the "
            "lengths of the data"
        )
    known_states = set(states)
    try:
        unknown = sum(state not in known_states for state in given_states)
    except TypeError:
        unknown = len(given_states)
    if unknown:
        raise ReleaseRefused(
            f"{unknown} of the {expected} records are not states of Θ: give the states, and their values by values="
        )
    return [values[state] for state in given_states]


def _loss_of(measurement: Any) -> float:
    """Return the loss of a measurement where one record changes, refused where that is not known."""
    try:
        measure, distance, privacy_map = str(measurement.output_measure), str(measurement.input_metric), measurement.map
    except AttributeError as error:
        raise ParameterError(
            f"measurement is {type(measurement).__name__}, expected an OpenDP measurement, such as dp.m.make_laplace(…)"
        ) from error
    if measure != _PURE:
        raise ReleaseRefused(
            f"the measurement is private in {measure}, expected {_PURE}: only pure differential privacy bounds the "
            "effect of single records"
        )
    if distance not in _DISTANCES:
        raise ReleaseRefused(
            f"the measurement's input distance is {distance}, expected one between datasets: "
            f"{', '.join(name.removesuffix('()') for name in _DISTANCES)}"
        )
    loss = float(privacy_map(_DISTANCES[distance]))
    if not 0 <= loss < math.inf:
        raise ReleaseRefused(f"the measurement's map says a loss of {loss} for one record, expected a finite one")
    return loss


def _takes(measurement: Any, inputs: list[Any]) -> bool:
    """Whether the inputs are in the domain of a measurement; what goes wrong in asking says that they are not."""
    with catch_warnings():  # what OpenDP warns of quotes the records, and what it raises may too
        simplefilter("ignore")
        try:
            return bool(measurement.input_domain.member(inputs))
        except Exception:
            return False
