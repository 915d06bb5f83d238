"""Tables, read as a model says."""

import hashlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferfish.cli.options import node_names
from pufferfish.cli.printing import print_warnings, progress
from pufferfish.cli.telling import rows_are_read
from pufferfish.data import Base, Rows, Sequences, read_rows, read_sequences
from pufferfish.durations import parse_duration
from pufferfish.errors import DataError, ParameterError
from pufferfish.files.reading import failing
from pufferfish.hints import names_of
from pufferfish.ledger import Ledger
from pufferfish.ledger.charges import check_tied
from pufferfish.ledger.ties import CHAIN_TIES
from pufferfish.model_file import Model
from pufferfish.queries import Joint, Query
from pufferfish.theta.chain_models import ChainModels

if TYPE_CHECKING:
    from pufferfish.data.spark import SparkFiles

__all__ = ["check_options", "fingerprint", "opened", "read_under", "step_length", "warnings_of_reading"]


_OF_CHAINS = ("state", "time", "max_gap", "step", "bins")


@contextmanager
def opened(paths: Sequence[str], reading: dict[str, Any]) -> "Generator[str | SparkFiles]":
    """Open what a command reads: a file, or with ``--spark``, which is taken out of the options, files of a cluster.

    The cluster is let go when the table is read: noise is calibrated here.
    """
    master = reading.pop("spark")
    if master is None and len(paths) > 1:
        raise ParameterError(
            f"{len(paths)} tables are given ({names_of(paths, 4)}), expected one file: write the value of an option in "
            "one piece (--max-gap 10min), or in quotes; several files are read with --spark"
        )
    rows_are_read()  # before Spark is started: its programs write to where this one writes then
    if master is None:
        yield paths[0]
        return
    from pufferfish.data.spark import spark_files, spark_session  # here: a command may read no table

    with spark_session(master) as session:
        with progress("looking for files"):
            files = spark_files(session, paths)
        yield files


def read_under(
    table: "str | SparkFiles",
    model: Model,
    reading: dict[str, Any],
    query: Query | None = None,
    ledger: Ledger | None = None,
) -> Sequences | Rows:
    """Read a table as a model says: as chains of states, or as independent rows of the nodes of a network.

    Columns that a query counts together are counted so. Chains that are not read as those of a ledger are refused.
    """
    if model.theta.networks:
        return _rows(table, model, reading, query)
    sequences = _sequences(table, model, reading)
    if ledger is not None and isinstance(ledger.base, Base):  # before warnings, which may advise another reading
        check_tied(sequences.base, ledger.base, CHAIN_TIES)
    print_warnings(warnings_of_reading(sequences, model))
    return sequences


def check_options(model: Model, reading: Mapping[str, Any]) -> None:
    """Refuse options about chains where the model is a network."""
    given = [name for name in _OF_CHAINS if reading[name] is not None]
    if reading["gaps"] != "unobserved":
        given.append("gaps")
    if not (model.theta.networks and given):
        return
    options = " and ".join(f"--{name.replace('_', '-')}" for name in given)
    verb, them = ("is", "it") if len(given) == 1 else ("are", "them")
    raise ParameterError(
        f"{options} {verb} for Markov chains, and the model is a network, whose table has one row per subject and a "
        f"column for every node: leave {them} out, or name a model of chains"
    )


def _rows(table: "str | SparkFiles", model: Model, reading: dict[str, Any], query: Query | None) -> Rows:
    check_options(model, reading)
    with progress("reading the table"):
        return read_rows(
            table,
            model.theta.networks,
            columns=node_names(reading["columns"], model.theta),
            subject=reading["subject"],
            where=reading["where"],
            missing=reading["missing"] or "refuse",
            by=reading.get("by"),
            joint=query.records if isinstance(query, Joint) else None,
        )


def _sequences(table: "str | SparkFiles", model: Model, reading: dict[str, Any]) -> Sequences:
    """Read a table by the model's states, and its bins unless others are given; refuse records of another step."""
    node_names(reading["columns"], model.theta)
    options = {name: value for name, value in reading.items() if name != "columns"}
    if options["state"] is None:
        raise ParameterError("give --state: the column of states")
    options["missing"] = options["missing"] or "unobserved"
    if options["bins"] is None and model.bins is not None:
        options["bins"] = model.bins
    with progress("reading the table"):
        sequences = read_sequences(table, states=model.theta.states, **options)
    if model.step is not None:
        _check_step(sequences.base.step or sequences.usual_step, model.step, clock=_has_clock(model))
    return sequences


def warnings_of_reading(data: Sequences | Rows, model: Model) -> tuple[str, ...]:
    """Return what may be wrong with how a table was read under a model; said once, before noise is calibrated."""
    if isinstance(data, Rows):
        return ()
    loose = data.usual_step is not None and data.base.step is None and data.base.max_gap is None
    if loose and model.step is not None and not _has_clock(model):  # with a clock the release is refused
        return (
            *data.warnings,
            "The table is read without --max-gap: records that follow each other are taken as one step of the model "
            f"({model.step}) apart, however long the time between them. Where times are missing, more may leak than is "
            f"promised. Give --max-gap {model.step}, or --step {model.step} if no time is missing.",
        )
    if model.step is not None or data.usual_step is None:
        return data.warnings
    return (
        *data.warnings,
        f"The model does not say how long a step takes, so nobody checked that one step of it takes {data.usual_step}, "
        "the usual time between the table's records. If it takes another time, more leaks than is promised. Name it: "
        f'fit with --max-gap keeps it, in Python Model(theta=…, step="{data.usual_step}") does; or give '
        f"--step {data.usual_step} if that is right.",
    )


def _has_clock(model: Model) -> bool:
    return isinstance(model.theta, ChainModels) and model.theta.step is not None


def _check_step(step: str | None, expected: str, *, clock: bool) -> None:
    """Refuse records that are not one step of the model apart, or of which nobody says how far apart they are.

    A model with a clock needs times, and believes no step that is only stated.
    """
    if step is None:
        other = f" and --max-gap {expected}" if clock else f", or give --step {expected} if that is what they are"
        raise DataError(
            f"the model's transitions take {expected}, and nothing says how far apart the table's records are: give "
            f"--time{other}"
        )
    if step_length(step) != step_length(expected):
        wrong = "" if clock else f"; where times are wrong, give --step {expected} without --time and --max-gap"
        raise DataError(
            f"the model's transitions take {expected}, the table's records are {step} apart: use a model of this "
            f"step, or aggregate the table to one record every {expected}{wrong}"
        )


def step_length(step: str) -> float:
    """Return how long a step is, to compare it: 60min is 1h."""
    return float(parse_duration(step, "step").value)


def fingerprint(table: "str | SparkFiles", reading: dict[str, Any]) -> str:
    """Return a hash by which a model knows the table it was fitted to: of the file, or of its columns on a cluster."""
    from pufferfish.data.spark import SparkFiles, spark_fingerprint

    if isinstance(table, SparkFiles):
        return spark_fingerprint(table, [reading[role] for role in ("state", "subject", "time") if reading[role]])
    with failing("cannot read", table), Path(table).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
