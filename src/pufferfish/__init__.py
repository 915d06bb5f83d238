"""Private statistics of correlated records: Pufferfish privacy for time series.

A week of one person's activity, a household's power meter: there one record tells about its neighbours, and noise
made for independent records leaks. This package calibrates noise that accounts for the correlation, adds it, and
writes down what was promised.

The way through: describe what an adversary may believe (:class:`MarkovChain`, or a list of them), choose a
mechanism and calibrate it to a query (public things only), read the table, release.
"""

from pufferfish import starting

starting.end_quietly()

# ruff: noqa: E402
from typing import TYPE_CHECKING

from pufferfish import errors
from pufferfish.calibration import Calibration
from pufferfish.check import ModelCheck, OverlapAfter, RicherModel, StateStays, SubjectCheck, check_model
from pufferfish.comparison import compare
from pufferfish.core.divergence.max_divergence import max_divergence
from pufferfish.data import Rows, Sequences, read_rows, read_sequences
from pufferfish.errors import (
    BudgetExceeded,
    DataError,
    ModelError,
    NotApplicableError,
    ParameterError,
    PufferfishError,
    QueryError,
    RecordError,
    ReleaseRefused,
)
from pufferfish.fit import fit_chain, fit_interval, fit_order, fit_periodic
from pufferfish.fit_forgetting import ForgettingFit, OverlapEstimate, fit_forgetting, overlap
from pufferfish.fit_subjects import SubjectsFit, fit_each_subject
from pufferfish.ledger import Ledger
from pufferfish.mechanisms import (
    GK16,
    ApproximateWasserstein,
    EntryDP,
    ExactLaplace,
    GroupDP,
    LeakagePropagation,
    MarkovQuilt,
    MQMApprox,
    MQMExact,
    ParticipantDP,
    Wasserstein,
)
from pufferfish.model_file import Model, read_model, write_model
from pufferfish.queries import (
    CDF,
    Bouts,
    Count,
    Frequency,
    Function,
    Histogram,
    Joint,
    Marginals,
    Mean,
    Profile,
    Quantiles,
    StepLoss,
    Subset,
    Sum,
    Switches,
    Transitions,
    Weighted,
    Window,
)
from pufferfish.release import (
    EachRelease,
    Finding,
    MeasurementRelease,
    Release,
    Verification,
    release,
    release_each,
    release_measurement,
    verify,
)
from pufferfish.report.model_plot import draw_model
from pufferfish.report.network_plot import draw_network
from pufferfish.robustness import Robustness, robustness
from pufferfish.theta import (
    CPT,
    BayesianNetwork,
    BinaryChainInterval,
    ChainClass,
    ChainLength,
    ChainModels,
    Cliques,
    CountIs,
    Fact,
    ForgettingClass,
    GivenLaws,
    HigherOrderChain,
    IntervalChain,
    JointDistribution,
    MarkovChain,
    ModelClass,
    PeriodicChain,
    Quilt,
    RecordIs,
)
from pufferfish.wasserstein_inf import wasserstein_inf
from pufferfish.witness import (
    AloneWitness,
    ClusterWitness,
    CouplingWitness,
    ForgettingWitness,
    LawWitness,
    MatrixWitness,
    Nearest,
    PhaseWitness,
    PropagationWitness,
    QuiltWitness,
    Witness,
)

__all__ = [
    "CDF",
    "CPT",
    "GK16",
    "AloneWitness",
    "ApproximateWasserstein",
    "BayesianNetwork",
    "BinaryChainInterval",
    "Bouts",
    "BudgetExceeded",
    "Calibration",
    "ChainClass",
    "ChainLength",
    "ChainModels",
    "Cliques",
    "ClusterWitness",
    "Count",
    "CountIs",
    "CouplingWitness",
    "DataError",
    "EachRelease",
    "EntryDP",
    "ExactLaplace",
    "Fact",
    "Finding",
    "ForgettingClass",
    "ForgettingFit",
    "ForgettingWitness",
    "Frequency",
    "Function",
    "GivenLaws",
    "GroupDP",
    "HigherOrderChain",
    "Histogram",
    "IntervalChain",
    "Joint",
    "JointDistribution",
    "LawWitness",
    "LeakagePropagation",
    "Ledger",
    "MQMApprox",
    "MQMExact",
    "Marginals",
    "MarkovChain",
    "MarkovQuilt",
    "MatrixWitness",
    "Mean",
    "MeasurementRelease",
    "Model",
    "ModelCheck",
    "ModelClass",
    "ModelError",
    "Nearest",
    "NotApplicableError",
    "OverlapAfter",
    "OverlapEstimate",
    "ParameterError",
    "ParticipantDP",
    "PeriodicChain",
    "PhaseWitness",
    "Profile",
    "PropagationWitness",
    "PufferfishError",
    "Quantiles",
    "QueryError",
    "Quilt",
    "QuiltWitness",
    "RecordError",
    "RecordIs",
    "Release",
    "ReleaseRefused",
    "RicherModel",
    "Robustness",
    "Rows",
    "Sequences",
    "StateStays",
    "StepLoss",
    "SubjectCheck",
    "SubjectsFit",
    "Subset",
    "Sum",
    "Switches",
    "Transitions",
    "Verification",
    "Wasserstein",
    "Weighted",
    "Window",
    "Witness",
    "check_model",
    "compare",
    "draw_model",
    "draw_network",
    "errors",
    "fit_chain",
    "fit_each_subject",
    "fit_forgetting",
    "fit_interval",
    "fit_order",
    "fit_periodic",
    "max_divergence",
    "overlap",
    "read_model",
    "read_rows",
    "read_sequences",
    "release",
    "release_each",
    "release_measurement",
    "robustness",
    "verify",
    "wasserstein_inf",
    "write_model",
]


if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> str:
        if name == "__version__":  # what tells it takes a tenth of the time of loading all of this package
            import importlib.metadata

            return importlib.metadata.version("pufferfish-privacy")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
