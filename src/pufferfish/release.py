"""The one place where rows meet noise: a private value, and the record of what was promised.

A :class:`Release` holds everything a reader needs to judge it (query, noise, Θ and where it came from, what is
promised and what is not) and never the exact value.
"""

import importlib.metadata
import math
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish.calibration import Calibration, Witness
from pufferfish.core import discrete_laplace
from pufferfish.data.sequences import Base, Sequences
from pufferfish.errors import DataError, ParameterError, RecordError, ReleaseRefused
from pufferfish.files import read_record, write_whole
from pufferfish.ledger import Ledger
from pufferfish.ledger.charges import as_windows
from pufferfish.ledger.ties import check_start
from pufferfish.mechanisms.base import InfluenceBound
from pufferfish.model_file import ThetaRecord
from pufferfish.noise import discrete_laplace_noise
from pufferfish.queries import LinearQuery, Query

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Release", "project_to_simplex", "release"]

_MOSTLY_SILENT = 0.9

FORMAT = "pufferfish-release"
VERSION = 1


class QueryRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was asked: kind, words, and the names of the outputs."""

    kind: str
    description: str
    labels: list[str]
    lipschitz: float


class NoiseRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The noise on each output: ``unit`` times a discrete Laplace variable of scale ``scale / unit``."""

    law: str
    scale: float
    unit: float
    noise_multiplier: float


class MechanismRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The bound that proves the promise, and the secret that decided the noise."""

    name: str
    title: str
    leakage: float
    witness: Witness


class DataRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Public facts of the data: how the table was read, and the lengths that are published."""

    base: Base
    subjects: int
    chains: int
    records: int
    longest_chain: int


class LedgerRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The place of a release in a ledger: what all releases up to it leak together at most, and by which bound."""

    entry: int
    spent: float
    budget: float
    mechanism: str
    theta_origin: str


class AccuracyRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Errors exceeded with probability at most ``alpha``: by one output, and by any of them."""

    alpha: float
    each: float
    joint: float


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A private value and the record of what was promised; made by :func:`release`.

    Parameters
    ----------
    values : list of float
        The released value of each output, after post-processing if there was any.
    noisy_values : list of float
        The value as the noise left it.
    postprocessing : str or None
        What was done to the noisy values; it uses nothing but them and public numbers.
    epsilon : float
        Privacy parameter.
    query, noise, mechanism, theta, data, accuracy_95 : records
        See their classes.
    promise : str
        What is promised, in one sentence.
    not_promised, assumptions, warnings : list of str
        What is not; what the promise rests on; what a reader must know first.
    created : str
        Time of the release, UTC.
    software : dict of str to str
        Versions.
    ledger : record or None
        Its place among other releases of the same records, where a ledger was kept.
    """

    format: str = FORMAT
    version: int = VERSION
    created: str
    query: QueryRecord
    values: list[float]
    noisy_values: list[float]
    postprocessing: str | None
    epsilon: float
    promise: str
    warnings: list[str]
    not_promised: list[str]
    assumptions: list[str]
    noise: NoiseRecord
    accuracy_95: AccuracyRecord
    mechanism: MechanismRecord
    data: DataRecord
    theta: ThetaRecord
    software: dict[str, str]
    ledger: LedgerRecord | None = None

    @property
    def value(self) -> NDArray[np.float64]:
        """The released value; shape (m,), one entry per output of the query."""
        return np.array(self.values)

    @property
    def scale(self) -> float:
        """Laplace scale of the noise on each output."""
        return self.noise.scale

    def accuracy(self, alpha: float = 0.05, *, joint: bool = False) -> float:
        """Error of the noisy value that is exceeded with probability at most alpha.

        Parameters
        ----------
        alpha : float, default 0.05
            Probability, strictly between 0 and 1.
        joint : bool, default False
            For all outputs at once rather than for each of them.

        Raises
        ------
        ParameterError
            If alpha is out of range.
        """
        together = len(self.values) if joint else 1
        return discrete_laplace.accuracy(self.noise.scale / self.noise.unit, alpha, together=together) * self.noise.unit

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain numbers, texts, lists and dicts."""
        return msgspec.to_builtins(self)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the record as JSON, and write it to a file if a path is given.

        Raises
        ------
        RecordError
            If the file cannot be written; nothing is left behind.
        """
        content = msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"
        if path is not None:
            write_whole(path, content)
        return content.decode()

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "Release":
        """Read a release file, validated.

        Raises
        ------
        RecordError
            If the file is damaged, of another version, or contradicts itself.
        """
        found = read_record(path, cls, format_=FORMAT, version=VERSION)
        outputs = len(found.query.labels)
        for holds, rule in (
            (0 < len(found.values) == outputs == len(found.noisy_values), "one value per label"),
            (0 < found.epsilon < math.inf, "epsilon is positive and finite"),
            (0 < found.noise.scale < math.inf and found.noise.unit > 0, "scale and unit are positive"),
            (found.mechanism.leakage <= found.epsilon, "the leakage is at most epsilon"),
            (len(found.theta.chains) > 0, "theta has a member"),
        ):
            if not holds:
                raise RecordError(f"{path} contradicts itself: expected that {rule}")
        return found

    def plot(self, path: str | os.PathLike[str] | None = None) -> "Figure":
        """Draw the value with error bars of the noise (95% for each output); write it if a path is given.

        Raises
        ------
        ParameterError
            If matplotlib is not installed.
        RecordError
            If the picture cannot be written.
        """
        from pufferfish.report.plot import draw_release, save_figure

        figure = draw_release(self)
        if path is not None:
            save_figure(figure, path)
        return figure


def release(
    data: Sequences,
    query: Query,
    calibration: Calibration,
    *,
    postprocess: Literal["valid"] | None = None,
    warnings: tuple[str, ...] = (),
    ledger: Ledger | None = None,
    window: Any = None,
    coarsening: Mapping[Any, Any] | None = None,
) -> Release:
    """Release a query's value with calibrated noise.

    Parameters
    ----------
    data : Sequences
        The private data.
    query : Query
        What is asked; the query the noise was calibrated for.
    calibration : Calibration
        The noise, from a mechanism's ``calibrate``.
    postprocess : {"valid"}, optional
        Make the value a possible one: a histogram non-negative with the public total (the nearest such, in
        Euclidean distance), other queries inside their range. It costs no privacy, and is recorded.
    warnings : tuple of str
        Sentences to put into the record.
    ledger : Ledger, optional
        The budget that this release is written into, after everything was checked and before noise is drawn.
    window, coarsening : optional
        Which part of the ledger's base the data are, as for :meth:`Ledger.spend`.

    Returns
    -------
    Release
        The noisy value and the record.

    Raises
    ------
    ReleaseRefused
        If the calibration is for another query, other states, or shorter chains than the data's, or the data are not
        the ledger's.
    BudgetExceeded
        If the ledger has too little left; nothing is spent.
    DataError
        If the data holds states the model lacks.
    """
    if not isinstance(data, Sequences) or not isinstance(calibration, Calibration):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ParameterError("release takes data from read_sequences, a query, and a calibration of a mechanism")
    if ledger is None and not (window is None and coarsening is None):
        raise ParameterError("window and coarsening say which part of a ledger's base the data are: give ledger too")
    if postprocess not in (None, "valid"):
        raise ParameterError(f'postprocess is {postprocess!r}, expected "valid" or None')
    linear = _check_query(data, query, calibration)
    _check_chains(data, calibration)
    _check_reading(data, calibration)
    leakage, witness = _prove(calibration)
    counts, unit = _in_model_order(data, calibration.theta.states), linear.unit
    exact = [sum(int(w) * int(c) for w, c in zip(row, counts, strict=True)) for row in linear.weights]
    draw = discrete_laplace_noise(exact, calibration.unit_scale, lipschitz=linear.unit_lipschitz)
    booked = None if ledger is None else _book(ledger, data, calibration, window, coarsening)
    drawn = draw()
    noisy = [float(v * unit) for v in drawn]
    values, done = (noisy, None) if postprocess is None else _valid(noisy, query, calibration)
    return Release(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        query=QueryRecord(query.kind, linear.description, list(linear.labels), linear.lipschitz),
        values=values,
        noisy_values=noisy,
        postprocessing=done,
        epsilon=calibration.epsilon,
        promise=_promise(calibration),
        warnings=[*warnings, *_warnings(calibration)],
        not_promised=_not_promised(booked),
        assumptions=[
            f"The distribution of the records is one of the {len(calibration.theta.chains)} of Θ "
            f"({calibration.theta.origin}).",
            *data.assumptions,
        ],
        noise=NoiseRecord(
            "discrete Laplace, P(Z = z) ∝ exp(-|z| unit/scale)",
            calibration.scale,
            float(unit),
            calibration.noise_multiplier,
        ),
        accuracy_95=AccuracyRecord(0.05, calibration.accuracy(0.05), calibration.accuracy(0.05, joint=True)),
        mechanism=MechanismRecord(calibration.mechanism, calibration.title, leakage, witness),
        data=DataRecord(
            data.base, data.subjects, len(data.length), data.records, max(chain.steps for chain in data.length)
        ),
        theta=ThetaRecord.of(calibration.theta),
        software=_versions(),
        ledger=booked,
    )


def _book(
    ledger: Ledger, data: Sequences, calibration: Calibration, window: Any, coarsening: Mapping[Any, Any] | None
) -> LedgerRecord:
    if tuple(calibration.length) != tuple(ledger.bound.length):
        check_start(calibration.theta, as_windows(window, ledger.bound.length))
    entry = ledger.spend(calibration, data=data, window=window, coarsening=coarsening)
    bound = ledger.bound
    return LedgerRecord(entry.number, entry.spent, ledger.budget, bound.name, bound.theta.origin)


def _check_query(data: Sequences, query: Query, calibration: Calibration) -> LinearQuery:
    """Return the query on this data, refused where the noise is for another."""
    if query != calibration.query:
        raise ReleaseRefused(
            f"the noise was calibrated for {calibration.query}, not for {query}: calibrate for this query"
        )
    found = query.bind(calibration.theta.states, data.records)
    if found.unit != calibration.linear.unit or not np.array_equal(found.weights, calibration.linear.weights):
        raise ReleaseRefused(
            f"the noise was calibrated for {calibration.linear.description}, and this is {found.description}: "
            f"calibrate with length=data.length, for {data.records} records"
        )
    return found


def _check_chains(data: Sequences, calibration: Calibration) -> None:
    """Refuse data with a chain that no calibrated chain covers in steps and in records."""
    for chain in data.length:
        if not any(chain.steps <= c.steps and chain.records <= c.records for c in calibration.length):
            raise ReleaseRefused(
                f"the data has a chain of {chain.steps} steps and {chain.records} records, and the noise was not "
                "calibrated for one as long: calibrate with length=data.length"
            )


def _prove(calibration: Calibration) -> tuple[float, Witness]:
    """Prove again that the noise is enough, whatever the calibration says of itself."""
    bound = calibration.bound
    if not isinstance(bound, InfluenceBound):
        raise ReleaseRefused(f"the noise comes from {type(bound).__name__}, which is no mechanism: calibrate anew")
    leakage, witness = bound.prove(calibration.record_loss)
    if witness is None or not 0 <= leakage <= calibration.epsilon < math.inf:
        raise ReleaseRefused(
            f"{calibration.title} proves a leakage of {leakage:.6g} for this noise, not of at most "
            f"{calibration.epsilon:g}: calibrate anew"
        )
    return leakage, witness


def _check_reading(data: Sequences, calibration: Calibration) -> None:
    """Refuse a Θ or a mechanism that needs to know what this way of reading the table leaves open."""
    base = data.base
    if calibration.theta.stands_for_more:
        raise ReleaseRefused(
            "the noise was calibrated for pi_min and eigengap alone: give theta, whose states are known"
        )
    if calibration.mechanism == "participant-dp" and base.gaps == "independent":
        raise ReleaseRefused(
            "ParticipantDP needs the records of each participant, and with gaps='independent' the data knows those of "
            "each segment: read it with gaps='unobserved' and calibrate with length=data.length"
        )
    starts = any(not isinstance(chain.initial_distribution, str) for chain in calibration.theta.chains)
    if starts and (base.where is not None or base.missing == "split" or base.gaps == "independent"):
        raise ReleaseRefused(
            "Θ gives the law of a chain's first record as an array, and with where, missing='split' or "
            "gaps='independent' the first record that is kept need not be the chain's first: use a Θ with "
            'initial_distribution="any" or "stationary", or select rows before reading'
        )


def _in_model_order(data: Sequences, states: tuple[str, ...]) -> list[int]:
    totals = dict(zip(data.states, (int(c) for c in data.counts.sum(axis=0)), strict=True))
    outside = [f"{name!r} ({count} rows)" for name, count in totals.items() if name not in states and count]
    if outside:
        shown = ", ".join(outside[:8]) + (f" and {len(outside) - 8} more" if len(outside) > 8 else "")
        raise DataError(
            f"the data has states outside the model: {shown}. The model's states: {', '.join(states)}. "
            "Read the table with the model's bins and states, or fit a model that has them"
        )
    return [totals.get(name, 0) for name in states]


def _valid(noisy: list[float], query: Query, calibration: Calibration) -> tuple[list[float], str]:
    linear, n = calibration.linear, calibration.records
    if query.is_histogram:
        total = float(n * linear.unit)
        values = project_to_simplex(np.array(noisy), total)
        return [float(v) for v in values], f"projected to the nearest non-negative vector of total {total:g}"
    low, high = (float(int(bound) * n * linear.unit) for bound in (linear.weights.min(), linear.weights.max()))
    return [min(max(v, low), high) for v in noisy], f"clipped to the possible range {low:g} to {high:g}"


def project_to_simplex(values: NDArray[np.float64], total: float = 1.0) -> NDArray[np.float64]:
    """Return the nearest vector, in Euclidean distance, that is non-negative and has the given sum.

    Parameters
    ----------
    values : (m,) ndarray
        Any numbers.
    total : float, default 1
        The sum wanted, positive.

    Returns
    -------
    (m,) ndarray
        ``max(values − t, 0)`` for the one t that gives the sum.

    Examples
    --------
    >>> project_to_simplex(np.array([0.7, 0.5, -0.1]))
    array([0.6, 0.4, 0. ])
    """
    falling = np.sort(values)[::-1]
    thresholds = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    last = int(np.flatnonzero(falling > thresholds)[-1])
    return np.maximum(values - thresholds[last], 0.0)


def _warnings(calibration: Calibration) -> list[str]:
    silent = 1 - 2 / (math.exp(min(1 / calibration.unit_scale, 700)) + 1) if calibration.unit_scale < 1 else 0.0
    if silent < _MOSTLY_SILENT:
        return []
    return [
        f"At this epsilon the noise is exactly 0 with probability {silent:.4g}: most released values are the exact "
        "ones, and the promise says next to nothing."
    ]


def _promise(calibration: Calibration) -> str:
    epsilon = calibration.epsilon
    factor = f"e^{epsilon:g}" + (f" = {math.exp(epsilon):.4g}" if epsilon < 700 else "")
    return (
        f"Whatever is released here is at most {factor} times as likely if any one record (the state of one "
        "subject at one time) has one value as if it has another, for every record, every two values it can have, "
        "and every distribution in Θ, the records' correlation with each other included."
    )


def _not_promised(booked: LedgerRecord | None) -> list[str]:
    others = "Other releases of the same records add up with this one; their epsilons alone do not say to how much."
    if booked is not None:
        others = (
            f"Together with the releases before it in its ledger (it is number {booked.entry}) this one leaks at most "
            f"{booked.spent:.6g}; releases that are not in the ledger add to that."
        )
    return [
        "Distributions outside Θ: if the records follow another law, more can leak.",
        "Facts about many records at once, such as a subject's average over a month, are not hidden.",
        "Who is in the data, how many records each subject has and when, is taken as public.",
        others,
    ]


def _versions() -> dict[str, str]:
    names = ("pufferfish-privacy", "opendp", "narwhals", "numpy")
    versions = {name: importlib.metadata.version(name) for name in names}
    return versions | {"python": platform.python_version()}
