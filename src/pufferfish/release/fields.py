"""What a release's record holds: everything a reader needs to judge it, and never the exact value."""

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish.core.numbers import discrete_laplace
from pufferfish.data.independent_rows import RowsBase
from pufferfish.data.sequences import Base
from pufferfish.frozen_record import FrozenRecord
from pufferfish.given import truth
from pufferfish.model_file import ThetaRecord
from pufferfish.release.calibration_record import CalibrationRecord
from pufferfish.release.postprocessing import PostProcessing
from pufferfish.witness import AnyWitness

__all__ = [
    "FORMAT",
    "NOISE_LAW",
    "VERSION",
    "AccuracyRecord",
    "DataRecord",
    "LedgerRecord",
    "MechanismRecord",
    "NoiseRecord",
    "QueryRecord",
    "ReleaseFields",
]

FORMAT = "pufferfish-release"
VERSION = 1

NOISE_LAW = "discrete Laplace, P(Z = z) ∝ exp(-|z| unit/scale)"


class QueryRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """What was asked: kind, words, the names of the outputs, and how far one record moves them.

    ``divided_by`` is the number of records, or rows, that shares and means are of; None where nothing is divided.
    """

    kind: str
    description: str
    labels: list[str]
    lipschitz: float | None
    divided_by: int | None


class NoiseRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The noise on each output: ``unit`` times a discrete Laplace variable of scale ``scale / unit``."""

    law: Literal["discrete Laplace, P(Z = z) ∝ exp(-|z| unit/scale)"]
    scale: float
    unit: float
    noise_multiplier: float | None

    def accuracy(self, alpha: float, outputs: int = 1) -> float:
        """Return the error that is exceeded with probability at most alpha by any of some outputs."""
        return discrete_laplace.accuracy(self.scale / self.unit, alpha, together=outputs) * self.unit


class MechanismRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The mechanism that proves the promise, the secret that decided the noise, and which secrets there are.

    ``longest_chain`` are the steps of the longest chain that the noise is for, or the nodes of a network; the data may
    have shorter ones. ``secrets`` are the pairs in words that shall not be told apart; None stands for any two values
    of any record.
    """

    name: str
    title: str
    leakage: float
    longest_chain: int
    witness: AnyWitness
    secrets: list[tuple[str, str]] | None = None


class DataRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """Public facts of the data: how the table was read, and the lengths that are published.

    For a table of independent rows, ``rows`` says how it was read, ``subjects`` and ``chains`` are their number,
    ``records`` the cells that were observed, ``longest_chain`` the nodes of the network, and ``observed`` how many
    cells of each column were: shares are of all rows, missing cells among them.
    """

    base: Base | None
    subjects: int
    chains: int
    records: int
    longest_chain: int
    rows: RowsBase | None = None
    observed: dict[str, int] | None = None


class LedgerRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The place of a release in a ledger: what all releases up to it leak together at most, and by which bound."""

    entry: int
    spent: float
    budget: float
    mechanism: str
    theta_origin: str


class AccuracyRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """Errors exceeded with probability at most ``alpha``: by one output, and by any of them."""

    alpha: float
    each: float
    joint: float


class ReleaseFields(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A private value and what was promised; :class:`~pufferfish.Release` explains each field."""

    format: str = FORMAT
    version: int = VERSION
    created: str
    query: QueryRecord
    values: list[float]
    noisy_values: list[float]
    postprocessing: PostProcessing | None
    epsilon: float
    delta: float = 0.0
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
    calibration: CalibrationRecord | msgspec.UnsetType = msgspec.UNSET
    """What its proof is computed from; releases of earlier versions do not say."""

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
        return self.noise.accuracy(alpha, len(self.values) if truth(joint, "joint") else 1)
