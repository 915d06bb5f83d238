"""The public names: what :mod:`pufferfish` loads when one of them is first used, and what type checkers see."""

from . import errors as errors
from ._base.progress import listening as listening
from ._core.divergence import max_divergence as max_divergence
from .check.check import (
    ModelCheck as ModelCheck,
    check_model as check_model,
)
from .check.network import (
    NetworkCheck as NetworkCheck,
    PairCheck as PairCheck,
)
from .check.record import (
    OverlapAfter as OverlapAfter,
    Remedy as Remedy,
    RicherModel as RicherModel,
    StateStays as StateStays,
    SubjectCheck as SubjectCheck,
    Verdict as Verdict,
)
from .compare.contest import compare as compare
from .data import (
    Rows as Rows,
    Sequences as Sequences,
    columns as columns,
    read_lengths as read_lengths,
    read_rows as read_rows,
    read_sequences as read_sequences,
)
from .errors import (
    BudgetExceeded as BudgetExceeded,
    DataError as DataError,
    ModelError as ModelError,
    NotApplicableError as NotApplicableError,
    ParameterError as ParameterError,
    PufferfishError as PufferfishError,
    QueryError as QueryError,
    RecordError as RecordError,
    ReleaseRefused as ReleaseRefused,
    ReleaseWarning as ReleaseWarning,
)
from .fit.chain import (
    fit_chain as fit_chain,
    fit_interval as fit_interval,
    fit_order as fit_order,
    fit_periodic as fit_periodic,
)
from .fit.defend import (
    Coverage as Coverage,
    DefendedFit as DefendedFit,
    fit_defend as fit_defend,
)
from .fit.forgetting import (
    ForgettingFit as ForgettingFit,
    OverlapEstimate as OverlapEstimate,
    fit_forgetting as fit_forgetting,
    overlap as overlap,
)
from .fit.made_up import (
    MadeUp as MadeUp,
    made_up as made_up,
)
from .fit.model_file import (
    Model as Model,
    read_model as read_model,
    write_model as write_model,
)
from .fit.network import fit_network as fit_network
from .fit.stays import (
    fit_stays as fit_stays,
    fit_stays_of_each as fit_stays_of_each,
)
from .fit.subjects import (
    SubjectsFit as SubjectsFit,
    fit_each_subject as fit_each_subject,
)
from .ledger import Ledger as Ledger
from .mechanisms import (
    GK16 as GK16,
    ApproximateWasserstein as ApproximateWasserstein,
    EntryDP as EntryDP,
    ExactLaplace as ExactLaplace,
    GroupDP as GroupDP,
    LeakagePropagation as LeakagePropagation,
    MarkovQuilt as MarkovQuilt,
    MQMApprox as MQMApprox,
    MQMExact as MQMExact,
    ParticipantDP as ParticipantDP,
    Wasserstein as Wasserstein,
)
from .mechanisms.calibration import Calibration as Calibration
from .mechanisms.network_picture import draw_network as draw_network
from .mechanisms.one_query.wasserstein import wasserstein_inf as wasserstein_inf
from .mechanisms.witness import (
    AloneWitness as AloneWitness,
    ClusterWitness as ClusterWitness,
    CouplingWitness as CouplingWitness,
    ForgettingWitness as ForgettingWitness,
    LawWitness as LawWitness,
    MatrixWitness as MatrixWitness,
    Nearest as Nearest,
    PhaseWitness as PhaseWitness,
    PropagationWitness as PropagationWitness,
    QuiltWitness as QuiltWitness,
    Witness as Witness,
)
from .queries import (
    CDF as CDF,
    Bouts as Bouts,
    Count as Count,
    Frequency as Frequency,
    Function as Function,
    Histogram as Histogram,
    Joint as Joint,
    Marginals as Marginals,
    Mean as Mean,
    Profile as Profile,
    Quantiles as Quantiles,
    StepLoss as StepLoss,
    Subset as Subset,
    Sum as Sum,
    Switches as Switches,
    Transitions as Transitions,
    Weighted as Weighted,
    Window as Window,
)
from .queries.words import (
    NamedQuery as NamedQuery,
    named_queries as named_queries,
    query as query,
)
from .release import (
    Certificate as Certificate,
    EachRelease as EachRelease,
    Finding as Finding,
    LeaksTo as LeaksTo,
    MeasurementRelease as MeasurementRelease,
    Release as Release,
    ReleasedCheck as ReleasedCheck,
    ReleasedNumber as ReleasedNumber,
    ReleasePlan as ReleasePlan,
    ReleaseSeries as ReleaseSeries,
    Verification as Verification,
    certify as certify,
    check_released as check_released,
    commands_of as commands_of,
    plan as plan,
    release as release,
    release_each as release_each,
    release_measurement as release_measurement,
    series as series,
    totals as totals,
    verify as verify,
    verify_together as verify_together,
)
from .robustness import (
    Robustness as Robustness,
    robustness as robustness,
)
from .theta.bayesian_network import (
    BayesianNetwork as BayesianNetwork,
    Quilt as Quilt,
)
from .theta.bif import CPT as CPT
from .theta.chain_class import ChainClass as ChainClass
from .theta.continua import (
    BinaryChainInterval as BinaryChainInterval,
    ForgettingClass as ForgettingClass,
    IntervalChain as IntervalChain,
)
from .theta.joint_distribution import (
    Cliques as Cliques,
    GivenLaws as GivenLaws,
    JointDistribution as JointDistribution,
)
from .theta.lengths import ChainLength as ChainLength
from .theta.markov_chain import MarkovChain as MarkovChain
from .theta.model_class import ModelClass as ModelClass, draw_model as draw_model
from .theta.periodic_chain import PeriodicChain as PeriodicChain
from .theta.secrets import (
    CountIs as CountIs,
    Fact as Fact,
    RecordIs as RecordIs,
)
from .theta.tuple_chains import HigherOrderChain as HigherOrderChain, StaysChain as StaysChain

__all__: list[str]
__version__: str
