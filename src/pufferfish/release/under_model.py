"""Whether a table is one that a model describes: its steps are as long, and Θ was not fitted to the table itself.

A :class:`~pufferfish.Model` knows how long a step takes and what it was fitted to; a Θ alone does not. The command line
asks before it calibrates, a release asks where its mechanism was made from a model: by the same functions.
"""

from pufferfish._base.durations import parse_duration
from pufferfish.data.fingerprint import same_table
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import DataError, ReleaseRefused
from pufferfish.release.draw import Database
from pufferfish.theta.chain_class import ChainModels
from pufferfish.theta.model_class import Described

__all__ = ["FITTED_HERE", "check_step", "step_length", "warnings_of_model", "warnings_of_reading"]

_NO_PROMISE = (
    "the model was fitted to this very table, or one is a part of the other: the noise would depend on the secrets "
    "that it should hide, and nothing would be promised. Fit it to public data, or say how soon habits are forgotten "
    "(documentation: Forgetting); if everybody may see this table, give public=True"
)

FITTED_HERE = (
    "The model was fitted to this very table, or one is a part of the other. The noise then depends on the secrets it "
    "should hide: take this release as a comparison, not as a guarantee."
)


def check_step(data: Sequences | Rows | Database, model: Described) -> None:
    """Refuse records that are not one step of the model apart, or of which nobody says how far apart they are.

    A model with a clock needs times, and believes no step that is only stated. Times without ``max_gap`` say how far
    apart most records are, and not all: where some are missing, two records would count as neighbours that are not.

    Raises
    ------
    DataError
        If the table has another step than the model, or none.
    """
    expected = model.step
    if expected is None or not isinstance(data, Sequences):
        return
    clock = _has_clock(model)
    step = data.base.step or data.usual_step
    if step is None:
        other = f" and max_gap='{expected}'" if clock else f", or give step='{expected}' if that is what they are"
        raise DataError(
            f"the model's transitions take {expected}, and nothing says how far apart the table's records are: give "
            f"time={other}"
        )
    if step_length(step) != step_length(expected):
        wrong = "" if clock else f"; where times are wrong, give step='{expected}' without time= and max_gap="
        raise DataError(
            f"the model's transitions take {expected}, the table's records are {step} apart: use a model of this "
            f"step, or aggregate the table to one record every {expected}{wrong}"
        )
    if data.base.time is not None and data.base.max_gap is None and not clock:  # a clock looks at all times anyway
        raise DataError(
            f"the table is read without max_gap: records that follow each other would count as one step of the model "
            f"({expected}) apart, however long the time between them, and where times are missing more would leak than "
            f"is promised. Give max_gap='{expected}'; where times are wrong, give step='{expected}' without time="
        )


def warnings_of_reading(data: Sequences | Rows, model: Described) -> tuple[str, ...]:
    """Return what may be wrong with how a table was read under a model; said once, before noise is calibrated."""
    if isinstance(data, Rows) or model.step is not None:
        return () if isinstance(data, Rows) else data.warnings
    told, base = list(data.warnings), data.base
    if base.time is not None and base.max_gap is None:
        known = base.step or data.usual_step
        gap = f"max_gap='{known}'" if known else "max_gap"
        told.append(
            "The times say only the order of the records: without max_gap nobody looked whether some are missing, and "
            f"where they are, more leaks than is promised. Give {gap}."
        )
    if data.usual_step is not None:
        told.append(
            f"The model does not say how long a step takes, so nobody checked that one step of it takes "
            f"{data.usual_step}, the usual time between the table's records. If it takes another time, more leaks than "
            "is promised. Take a model that says it: fitted with max_gap, stated by fit --forgets with --step, or made "
            f'in Python by Model.fitted(theta, data) or Model(theta=…, step="{data.usual_step}"). Or give '
            f"step='{data.usual_step}' if that is right."
        )
    return tuple(told)


def warnings_of_model(
    data: Sequences | Rows | Database,
    model: Described | None,
    *,
    public: bool = False,
) -> list[str]:
    """Return what a release under a model warns of, besides what its data warn of; refuse data of another step.

    Raises
    ------
    DataError
        As :func:`check_step`.
    ReleaseRefused
        If the model was fitted to these very data or to a part of them, and they are not said to be public.
    """
    if model is None or isinstance(data, Database):
        return []
    check_step(data, model)
    told = list[str]()
    if isinstance(data, Sequences):
        told = [text for text in warnings_of_reading(data, model) if text not in data.warnings]
    known, own = model.fitted_on, data.fingerprint
    here = known is not None and own is not None and same_table(known, own)
    if here and not public:
        raise ReleaseRefused(_NO_PROMISE)
    return [FITTED_HERE, *told] if here else told


def step_length(step: str) -> float:
    """Return how long a step is, to compare it: 60min is 1h."""
    return float(parse_duration(step, "step").value)


def _has_clock(model: Described) -> bool:
    return isinstance(model.theta, ChainModels) and model.theta.step is not None
