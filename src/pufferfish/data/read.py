"""The entrances: from rows of chains to aggregates, and from rows that are independent of each other to counts.

What reads tables is loaded when the first one is read: whoever only calibrates noise does not wait for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal

from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences, Taken
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.model_class import Described, ModelClass

_STATE = "state of a record"  # a column that is put beside a table whose states are not read


def read_rows(
    source: Any,
    network: BayesianNetwork | ModelClass | Described | Iterable[BayesianNetwork],
    *,
    columns: Iterable[Any] | Mapping[Any, str] | None = None,
    subject: str | None = None,
    where: str | None = None,
    missing: Literal["refuse", "unobserved"] = "refuse",
    by: str | Sequence[str] | None = None,
    joint: Sequence[Any] | None = None,
) -> Rows:
    """Read a table with one row per independent subject and one column per node of a Bayesian network.

    Parameters
    ----------
    source : path or table
        As for :func:`read_sequences`; the order of rows does not matter.
    network : BayesianNetwork, list of BayesianNetwork, ModelClass, or Model
        Its nodes are the columns, and their states those that cells may have.
    columns : sequence of nodes, or mapping from nodes to str, optional
        Nodes to read, or the column of each; by default all nodes that are the name of a column. Others are latent.
    subject : str, optional
        Column that says whose row it is; refused where a subject has several rows, which would depend on each other.
    where, by : optional
        As for :func:`read_sequences`, over columns that are no nodes.
    missing : {"refuse", "unobserved"}
        Missing cells are refused, or not counted, which declares public which cells are missing.
    joint : sequence of nodes, or sequence of such sequences, optional
        Nodes that are counted together too, for :class:`~pufferfish.Joint`, in rows where none of them is missing.

    Returns
    -------
    Rows
        Counts of the states of every node read, and the number of rows.

    Raises
    ------
    DataError
        If the table cannot be read, or does not hold what the network and the options say.
    ModelError
        If the network is none, or networks differ in their nodes or states.
    ParameterError
        If an option is out of its range or does not go with the others.

    Examples
    --------
    >>> import polars as pl
    >>> from pufferfish import CPT, BayesianNetwork
    >>> rain = CPT(["no", "yes"], [0.8, 0.2])
    >>> wet = CPT(["dry", "wet"], [[0.9, 0.1], [0.05, 0.95]], parents=["rain"])
    >>> network = BayesianNetwork({"rain": rain, "wet": wet})
    >>> table = pl.DataFrame({"day": [1, 2, 3], "rain": ["no", "yes", "no"], "wet": ["dry", "wet", "wet"]})
    >>> rows = read_rows(table, network, subject="day")
    >>> rows
    Rows(2 nodes, 3 rows)
    >>> rows.states["wet"], rows.counts["wet"].tolist()
    (('dry', 'wet'), [1, 2])
    """
    from pufferfish.data._read_rows import count_cells

    return count_cells(
        source, network=network, columns=columns, subject=subject, where=where, missing=missing, by=by, joint=joint
    )


def read_sequences(
    source: Any,
    state: str,
    *,
    subject: str | None = None,
    time: str | None = None,
    max_gap: str | timedelta | float | None = None,
    bins: str | Sequence[float] | None = None,
    where: str | None = None,
    states: Iterable[Any] | None = None,
    missing: Literal["unobserved", "split", "refuse"] = "unobserved",
    gaps: Literal["unobserved", "independent"] = "unobserved",
    step: str | timedelta | float | None = None,
    clock: str | None = None,
    order: int = 1,
    daily: bool = False,
    by: str | Sequence[str] | None = None,
    time_zone: str | None = None,
    ambiguous: Literal["earlier", "later", "drop"] | None = None,
) -> Sequences:
    """Read a table as sequences of states, without holding its rows.

    Parameters
    ----------
    source : path, list of paths, or table
        CSV (``.csv``, ``.csv.gz``, ``.tsv``, ``.tsv.gz``) or Parquet file; the address of a table in a database; or a
        polars or pandas frame, a DuckDB relation, a PySpark frame, or another table that narwhals takes. A CSV column
        is read as numbers, times or true/false where all its values are; an empty field is missing. Several files with
        the same columns are one table, in the order in which they are given.
    state : str
        Column of the states: text, whole numbers, true/false, or numbers to be binned.
    subject : str, optional
        Column of the independent unit; None if the table is one chain.
    time : str, optional
        Column of time: timestamps, dates, ISO text, or numbers. Strictly increasing within a subject; subjects may be
        interleaved. It orders tables that have no order of their own, such as those of DuckDB and PySpark.
    max_gap : str, timedelta or number, optional
        Longest time between adjacent records, such as ``"10min"``; a number for numeric time. Without it, rows next to
        each other are adjacent, and a row left out by ``where`` is a hole.
    bins : str or sequence of float, optional
        Edges that make numbers states, such as ``"0,200,...,10200"``; values outside count in the end bins.
    where : str, optional
        Filter over other columns, such as ``'awake and group != "none"'``, of the rows for which it is surely true.
    states : sequence, optional
        The model's states; others are refused, or count as ``"(other)"`` where that is one of them.
    missing : {"unobserved", "split", "refuse"}
        A missing state is a record that takes a step but is not observed, also at the ends of a chain; leaves a gap,
        which declares public which states are missing; or is refused.
    gaps : {"unobserved", "independent"}
        Stretches between gaps are one chain, with unobserved records in between; or each is a chain of its own, which
        under-protects where states before and after a gap are correlated.
    step : str, timedelta or number, optional
        Time that one step takes, to turn gaps into steps; by default the most frequent time between adjacent records.
    clock : {"hour", "weekday", "weekday-hour"}, optional
        Count transitions also by the phase of this clock that they begin in, for :func:`fit_periodic`: by the local
        time of the table's times. Then ``max_gap`` is less than two steps.
    order : int, default 1
        With 2 or more, count also what follows that many records in a row, for :func:`fit_order`.
    daily : bool, default False
        Count also by subject and day, for :func:`fit_stays` and :func:`fit_defend`. The table is read twice.
    by : str or sequence of str, optional
        Count also by groups, for a release of each: columns such as ``"sex"``, and parts of local times such as
        ``"hour(time)"``, ``"weekday(time)"`` (0 is Monday), ``"date(time)"`` or ``"month(time)"``. In which group a
        record is, and how many records each group has, is taken as public. Chains are not cut by groups.
    time_zone : str, optional
        Time zone of times that have none, such as ``"Europe/Paris"``, so that gaps are right where clocks are changed.
    ambiguous : {"earlier", "later", "drop"}, optional
        With ``time_zone``: which instant a time is that clocks show twice, or that such a record is unobserved. Without
        it such times are refused; better, give them offsets.

    Returns
    -------
    Sequences
        Counts, transitions and lengths, chains in the order of their subjects' labels as text.

    Raises
    ------
    DataError
        If the table cannot be read, or does not hold what the options say.
    ParameterError
        If an option is out of its range or does not go with the others.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"minute": [0, 1, 2, 9, 10], "activity": ["rest", "walk", "walk", "rest", "rest"]})
    >>> data = read_sequences(table, "activity", time="minute", max_gap=1)
    >>> data.states, data.counts.tolist(), data.transitions.tolist(), data.length
    (('rest', 'walk'), [[3, 2]], [[1, 1], [0, 1]], (ChainLength(steps=11, records=5),))
    """
    from pufferfish.data._read_chains import read_chains

    reading: dict[str, Any] = {
        "subject": subject,
        "time": time,
        "max_gap": max_gap,
        "bins": bins,
        "where": where,
        "states": states,
        "missing": missing,
        "gaps": gaps,
        "step": step,
        "clock": clock,
        "order": order,
        "by": by,
        "time_zone": time_zone,
        "ambiguous": ambiguous,
    }
    sequences = read_chains(source, state=state, **reading)
    if not daily:
        return sequences
    from pufferfish.data.public_counts import daily_of, opened

    with opened(source, state, sequences, reading) as rows:
        return replace(sequences, daily=daily_of(rows, sequences))


def read_rest(source: Any, taken: Taken, **reading: Any) -> Sequences:
    """Read the rows of a table that were not read before, as :func:`read_sequences` does, and where they are."""
    from pufferfish.data._read_chains import read_chains

    return read_chains(source, taken=taken, **reading)


def check_reading(**reading: Any) -> None:
    """Refuse options of :func:`read_sequences` that no table can be read by."""
    from pufferfish.data._options import Options

    Options(**reading)


def columns(source: Any) -> list[str]:
    """Return the names of a table's columns, of what :func:`read_sequences` takes; no row is read.

    Examples
    --------
    >>> import polars as pl
    >>> columns(pl.DataFrame({"id": ["a"], "minute": [1], "activity": ["rest"]}))
    ['id', 'minute', 'activity']
    """
    from pufferfish.data.source import ROW, open_source

    return [name for name in open_source(source, lambda present: present).schema if name != ROW]


def read_lengths(source: Any, *, subject: str | None = None, **reading: Any) -> Sequences:
    """Read only the public part of a table, without states: who has records, how many, and when.

    Parameters are as for :func:`read_sequences`; of its options ``time``, ``time_zone``, ``ambiguous``, ``max_gap``,
    ``step`` and ``gaps``. The counts of what is returned say nothing: every record is taken to be in one state.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"id": ["a", "a", "b"], "minute": [1, 2, 1], "activity": ["rest", "active", "rest"]})
    >>> read_lengths(table, subject="id", time="minute", max_gap=1).length
    (ChainLength(steps=2, records=2), ChainLength(steps=1, records=1))
    """
    import narwhals as nw

    from pufferfish.data.source import ROW, open_source

    public = [name for name in (subject, reading.get("time")) if name is not None]
    table = open_source(source, public or columns(source)[:1], public, order=reading.get("time"))
    rows = table.frame.drop(ROW, strict=False)
    rows = rows.with_columns(nw.lit("any").alias(_STATE))
    return read_sequences(nw.to_native(rows), _STATE, states=["any", "other"], subject=subject, **reading)
