"""Tables, read as a model says."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pufferfish._base.words import names_of
from pufferfish.cli.options import node_names
from pufferfish.cli.print import print_warnings, progress
from pufferfish.cli.telling import rows_are_read
from pufferfish.data import Base, Rows, Sequences, read_rows, read_sequences
from pufferfish.errors import ParameterError
from pufferfish.fit.model_file import Model
from pufferfish.ledger import Ledger
from pufferfish.ledger.charges import check_tied
from pufferfish.ledger.same_records import CHAIN_TIES
from pufferfish.queries import Joint, Query
from pufferfish.release.prepare import check_step, warnings_of_reading

if TYPE_CHECKING:
    from pufferfish.data.spark import SparkFiles

__all__ = ["check_options", "opened", "read_under"]


_OF_CHAINS = ("state", "time", "time_zone", "ambiguous", "max_gap", "step", "bins")


@contextmanager
def opened(paths: Sequence[str], reading: dict[str, Any]) -> "Generator[str | SparkFiles]":
    """Open what a command reads: a file, or with ``--spark``, which is taken out of the options, files of a cluster.

    The cluster is let go when the table is read: noise is calibrated here.
    """
    master = reading.pop("spark")
    if master is None and len(paths) > 1:
        raise ParameterError(
            f"{len(paths)} tables are given ({names_of(paths, 4)}), expected one file: write the value of an option in "
            "one piece (--max-gap 1min), or in quotes; several files are read with --spark"
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

    Columns that a query counts together are counted so. Chains that are not read as those of a ledger are refused, and
    records of another step than the model's.
    """
    if model.theta.networks:
        return _rows(table, model, reading, query)
    sequences = _sequences(table, model, reading)
    if ledger is not None and isinstance(ledger.base, Base):  # before what may advise another reading
        check_tied(sequences.base, ledger.base, CHAIN_TIES)
    check_step(sequences, model)
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
    """Read a table by the model's states, and its bins unless others are given."""
    node_names(reading["columns"], model.theta)
    options = {name: value for name, value in reading.items() if name != "columns"}
    if options["state"] is None:
        raise ParameterError("give --state: the column of states")
    options["missing"] = options["missing"] or "unobserved"
    if options["bins"] is None and model.bins is not None:
        options["bins"] = model.bins
    with progress("reading the table"):
        return read_sequences(table, states=model.theta.states, **options)
