"""Tables, read as a model says: the options that several commands have for it, and the reading."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pufferfish._base.reading import display_path, is_address
from pufferfish._base.words import names_of
from pufferfish._base.writing import Kind, check_writable, same_file
from pufferfish._draw.figure import PICTURE, require_matplotlib
from pufferfish._draw.page import PREVIEW
from pufferfish.cli.messages import rows_are_read
from pufferfish.cli.options import flag, node_names, one_or_list, option, split_groupings
from pufferfish.cli.print import print_warnings, progress
from pufferfish.data import Base, Rows, Sequences, read_rows, read_sequences
from pufferfish.data.read import check_reading
from pufferfish.data.steps import check_step
from pufferfish.errors import ParameterError, RecordError
from pufferfish.fit.model_file import Model
from pufferfish.ledger import Ledger
from pufferfish.ledger.charges import check_tied
from pufferfish.ledger.same_records import MUST_MATCH
from pufferfish.queries import Joint, Query
from pufferfish.release.prepare import warnings_of_reading
from pufferfish.release.record import is_table

if TYPE_CHECKING:
    from pufferfish.data.spark import SparkFiles

# -- What may be written: checked before anything is drawn or spent --------------------------------------------------

TABLE = Kind("table of the values of a release", is_table, "name another file", (".csv",))
"""A table is made of the release's record, so it is replaced as pictures are; it is known by its first line."""

Target = tuple[str, str | None, Kind]
"""An option, the file it names, and what will be written there."""


def check_targets(targets: Sequence[Target], *, inputs: Sequence[str | Path], overwrite: bool) -> None:
    """Refuse what could not or must not be written: an input, a file named twice, another kind of file, or a record."""
    files = [(named, path, kind) for named, path, kind in targets if path is not None]
    for named, path, kind in files:
        if any(same_file(path, source) for source in inputs):
            raise ParameterError(
                f"{named} {display_path(path)} is the input file, which would be lost: name another file"
            )
        kind.check_name(named, path)
        if kind is PICTURE:
            require_matplotlib()
    for (named, path, _), (second_named, second_path, _) in combinations(files, 2):
        if same_file(path, second_path):
            raise ParameterError(f"{second_named} and {named} name the same file: name two")
    for named, path, kind in files:
        try:
            check_writable(path, kind, overwrite=overwrite or kind in (PICTURE, TABLE, PREVIEW))
        except RecordError as error:
            text = str(error)  # of a file that is in the way it is said which option named it
            in_the_way = text.startswith(f"{display_path(path)} exists")
            raise RecordError(f"{named} {text}" if in_the_way else text) from error


# -- Options ---------------------------------------------------------------------------------------------------------

_OF_CHAINS = ("state", "time", "time_zone", "ambiguous", "max_gap", "step", "bins", "gaps")
_STATE = "Column of states, or of numbers to bin"
_MISSING = "Records without a state: not observed; a public gap; or an error [default: unobserved"

BY_HELP = (
    "Release each public group of records, at the noise of one: by columns (sex), and by the hour, weekday (0 is "
    "Monday), date, week or month of --time or of another column, hour(admitted)."
)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a table is read: of chains, or of the rows of a network."""

    state: str | None = option(f"{_STATE}; not for networks.", "COL")
    columns: str | None = option("Nodes of a network to read [default: all with a column].", "A,B,…")
    subject: str | None = option(
        "Column of subjects, which are independent; without it, the table is one chain.", "COL"
    )
    time: str | None = option("Column of times (ISO date-times, dates, or numbers).", "COL")
    time_zone: str | None = option(
        "Time zone of times without one, such as Europe/Paris, so that gaps are right.", "ZONE"
    )
    ambiguous: Literal["earlier", "later", "drop"] | None = option(
        "With --time-zone: use the earlier, the later or none of times that occur twice [default: refused]."
    )
    max_gap: str | None = option("Longest time between successive records: 1min, 90s, 1h, 1d, …", "LEN")
    step: str | None = option("Time that one step takes [default: the most frequent one].", "LEN")
    bins: str | None = option('Edges of bins of a numeric column: "0,200,...,10200".', "EDGES")
    where: str | None = option("Rows to keep, such as \"awake and group == 'A'\".", "EXPR")
    missing: Literal["unobserved", "split", "refuse"] | None = option(f"{_MISSING}; refuse for networks].")
    gaps: Literal["unobserved", "independent"] = option(
        "Treat the parts between gaps as one chain with unobserved records, or as independent chains (as in the "
        "paper).",
        default="unobserved",
        show_default=True,
    )
    spark: str | None = option(
        "Read with Spark on a master such as spark://host:7077 or local[4]: files, folders or globs.", "MASTER"
    )
    by: list[str] | None = field(default=None, init=False)

    @property
    def given(self) -> list[str]:
        """Names of the options that are given."""
        usual = {"gaps": "unobserved"}
        return [declared.name for declared in fields(self) if getattr(self, declared.name) != usual.get(declared.name)]

    def of_chains(self) -> dict[str, Any]:
        """Return the arguments of :func:`~pufferfish.read_sequences`."""
        if self.state is None:
            raise ParameterError("give --state: the column of states")
        arguments = {name: getattr(self, name) for name in self.given if name not in ("columns", "spark")}
        return {"missing": "unobserved", **arguments}

    def of_rows(self) -> dict[str, Any]:
        """Return the arguments of :func:`~pufferfish.read_rows` but the columns; refused are options about chains."""
        if names := [name for name in self.given if name in _OF_CHAINS]:
            options = " and ".join(map(flag, names))
            verb, them = ("is", "it") if len(names) == 1 else ("are", "them")
            raise ParameterError(
                f"{options} {verb} for Markov chains, but the model is a network, whose table has one row per subject "
                f"and a column for every node: leave {them} out, or name a model of chains"
            )
        return {"subject": self.subject, "where": self.where, "missing": self.missing or "refuse"}


@dataclass(frozen=True, kw_only=True)
class ChainReading(Reading):
    """How a table of chains is read, where no network can be meant."""

    state: str | None = option(f"{_STATE}.", "COL")
    columns: str | None = field(default=None, init=False)
    missing: Literal["unobserved", "split", "refuse"] | None = option(f"{_MISSING}].")


@dataclass(frozen=True, kw_only=True)
class GroupedReading(Reading):
    """How a table is read whose records are in public groups."""

    by: list[str] | None = option(BY_HELP, "A,B,…", read=split_groupings)


# -- Reading ---------------------------------------------------------------------------------------------------------


@contextmanager
def opened(paths: Sequence[str], reading: Reading) -> "Generator[str | list[str] | SparkFiles]":
    """Open files, or with ``--spark`` those of a cluster, which is let go once read: noise is calibrated here."""
    master = reading.spark
    stray = [path for path in paths[1:] if not (os.path.splitext(path)[1] or is_address(path))]
    if master is None and stray:
        raise ParameterError(
            f"{len(paths)} tables are given ({names_of(paths, 4)}), but {stray[0]} is not the name of a file: write "
            "the value of an option without a space (--max-gap 1min), or in quotes"
        )
    rows_are_read()  # before Spark is started: its programs write to where this one writes then
    if master is None:
        yield one_or_list(paths)
        return
    from pufferfish.data.spark import spark_files, spark_session  # here: a command may read no table

    with spark_session(master) as session:
        with progress("looking for files"):
            files = spark_files(session, paths)
        yield files


def read_under(
    table: "str | list[str] | SparkFiles",
    model: Model,
    reading: Reading,
    query: Query | None = None,
    ledger: Ledger | None = None,
    *,
    again: bool = False,
) -> Sequences | Rows:
    """Read a table as a model, a ledger and a query say; of one that grows what is new, or all ``again``."""
    if model.theta.networks:
        return _rows(table, model, reading, query)
    arguments = _of_chains(model, reading)
    with progress("reading the table"):
        if ledger is not None and ledger.grows:
            sequences = ledger.read(table, query, again=again, **arguments)
        else:
            sequences = read_sequences(table, **arguments)
    if ledger is not None and isinstance(ledger.base, Base) and not ledger.grows:  # before what may advise otherwise
        check_tied(sequences.base, ledger.base, MUST_MATCH)
    check_step(sequences, model)
    print_warnings(warnings_of_reading(sequences, model))
    return sequences


def check_options(model: Model, reading: Reading, ledger: Ledger | None = None) -> None:
    """Refuse options about chains where the model is a network, and for chains those that no table can be read by.

    What is not given of a table that grows, its ledger says.
    """
    if model.theta.networks:
        reading.of_rows()
        return
    given = _of_chains(model, reading)
    check_reading(**(ledger.reading(**given) if ledger is not None and ledger.grows else given))


def _of_chains(model: Model, reading: Reading) -> dict[str, Any]:
    """Return how chains are read: by the model's states, and its bins unless others are given."""
    node_names(reading.columns, model.theta)
    arguments = reading.of_chains()
    if model.bins is not None:
        arguments.setdefault("bins", model.bins)
    return arguments | {"states": model.theta.states}


def _rows(table: "str | list[str] | SparkFiles", model: Model, reading: Reading, query: Query | None) -> Rows:
    arguments = reading.of_rows()
    with progress("reading the table"):
        return read_rows(
            table,
            model.theta.networks,
            columns=node_names(reading.columns, model.theta),
            by=reading.by,
            joint=query.records if isinstance(query, Joint) else None,
            **arguments,
        )
