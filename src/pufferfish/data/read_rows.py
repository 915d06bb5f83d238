"""The entrance from rows that are independent of each other to counts.

What reads tables is loaded when the first one is read: whoever only calibrates noise does not wait for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pufferfish._base.checked import called_as
from pufferfish.data.rows import Rows
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.model_class import Described, ModelClass

__all__ = ["read_rows"]


@called_as('read_rows("patients.csv", network)')
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
        As for :func:`read_sequences`. Order of the rows does not matter.
    network : BayesianNetwork, list of BayesianNetwork, ModelClass, or Model
        Its nodes are the columns, and their states those that cells may have.
    columns : sequence of nodes, or mapping from nodes to str, optional
        Nodes to read, or the column of each; by default all nodes that are the name of a column. The network's other
        nodes are latent, and the table's other columns are not read.
    subject : str, optional
        Column that says whose row it is; refused where a subject has several rows, which would depend on each other.
    where : str, optional
        Row filter over columns that are no nodes, such as ``'age >= 18'``. Rows where it is not known to be true are
        left out.
    missing : {"refuse", "unobserved"}
        Missing cells are refused (default); or they are not counted, which declares public which cells are missing.
    by : str or sequence of str, optional
        Count also by public groups of rows, for a release of each group: columns that are no nodes, such as ``"sex"``,
        and parts of times, such as ``"month(admitted)"``; see :func:`read_sequences`.
    joint : sequence of nodes, or sequence of such sequences, optional
        Nodes whose columns are counted together too, for :class:`~pufferfish.Joint`: the rows in each combination of
        their states. A row in which one of these cells is missing is in no combination.

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

    return count_cells(source, network, columns, subject, where, missing, by, joint)
