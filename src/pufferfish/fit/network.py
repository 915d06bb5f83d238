"""A Bayesian network from public data: which column depends on which is told, how much is counted.

With n rows of data that have a combination of the parents' states, of which c have the node's state, its probability
there is (c + w m) / (n + w): m is the share of the state in all rows, w the smoothing. A combination that no row has is
the node's shares; that is said. A network of which nobody knows the arrows can be the tree of C. K. Chow and C. N. Liu
(IEEE Transactions on Information Theory 14, 1968), of which none has a larger likelihood.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import is_list, texts
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.reading import read_file
from pufferfish._base.view import counted
from pufferfish._base.words import did_you_mean, names_of
from pufferfish.data.rows import Rows
from pufferfish.errors import DataError, ModelError, ParameterError, RecordError, shortened
from pufferfish.fit.chain import added_count
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.model_class import ModelClass

if TYPE_CHECKING:
    from pufferfish.data.public_counts import PublicRows

SMOOTHING = 1.0  # rows with the node's own shares that are added to every row of its table, unless told otherwise

CHOW_LIU = "chow-liu"

_FEW = 10  # below so many rows of data a row of a table is said to be counted from few
_MOST_ENTRIES, _MOST_PARENTS = 1_000_000, 31

Arrow = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTable(ReadOnly):
    """What the table of a node was counted from: ``rows`` combinations of its parents' states.

    No row of data has ``unseen`` of them, and fewer than ten have ``few``. ``zeros`` values are taken as impossible,
    because the node is told to be certain.
    """

    node: str
    rows: int
    unseen: int
    few: int
    zeros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFit(ReadOnly):
    """A network of public data, and what each of its tables was counted from."""

    theta: ModelClass
    rows: Rows
    tables: tuple[FittedTable, ...]


def fit_network(
    source: Any,
    arrows: Any,
    *,
    columns: Iterable[str] | None = None,
    smoothing: float = SMOOTHING,
    certainties: Iterable[str] = (),
    **reading: Any,
) -> ModelClass:
    """Fit the tables of a network to a public table with one row per subject, given its arrows: the class of this one.

    A :class:`ModelError` if arrows form a cycle, or a table would be too large. A :class:`ParameterError` if arrows are
    none, or one is given twice or from a column to itself; or smoothing is negative or above 1e15.

    Parameters
    ----------
    source : path or table
        Public data, as for :func:`read_rows`: every row a subject, every node a column of its own name.
    arrows : str, path, or list of pairs
        From what each column depends on: ``"smoke->lung, age->lung"``, a list of pairs ``[("smoke", "lung")]``, or a
        file with an arrow in each line. With ``"chow-liu"`` the tree that fits best, from the first name on.
    columns : list of str, optional
        More columns to read, which depend on no other; with ``"chow-liu"`` the columns of the tree, by default all.
    smoothing : float, default 1
        So many rows of data are added to every row of a node's table, with the node's own shares.
    certainties : list of str, optional
        Nodes that follow from their parents with certainty, such as a logical OR: what was never seen of them in a row
        of their table that was seen stays impossible.
    **reading
        ``subject``, ``where`` and ``missing``, as for :func:`read_rows`, as are errors. With ``missing="unobserved"`` a
        row of data counts for a node where neither it nor one of its parents is missing.

    Examples
    --------
    >>> import polars as pl
    >>> survey = pl.DataFrame({"smoke": ["no"] * 6 + ["yes"] * 4, "cough": ["no"] * 5 + ["yes", "no"] + ["yes"] * 3})
    >>> theta = fit_network(survey, "smoke->cough")
    >>> theta.networks[0].cpts["cough"].table.round(3).tolist()
    [[0.8, 0.2], [0.32, 0.68]]
    """
    return fit_network_to(
        source, arrows, columns=columns, smoothing=smoothing, certainties=certainties, **reading
    ).theta


def fit_network_to(
    source: Any, arrows: Any, *, columns: Any, smoothing: float, certainties: Any, **reading: Any
) -> NetworkFit:
    """Do the work of :func:`fit_network`, and say what each table was counted from."""
    added = added_count("smoothing", smoothing, SMOOTHING)
    if unknown := reading.keys() - {"subject", "where", "missing"}:
        raise ParameterError(f"{min(unknown)} is not an option of fit_network; it knows subject, where and missing")
    named = None if columns is None else _names(columns, "columns")
    certain = _names(certainties, "certainties")
    tree = isinstance(arrows, str) and arrows.strip() == CHOW_LIU
    edges = list[Arrow]() if tree else parse_arrows(arrows, empty=bool(named))
    nodes = list(dict.fromkeys([*(name for edge in edges for name in edge), *(named or [])]))
    if not tree:
        _check_edges(nodes, edges)
        _check_certain(certain, nodes)
    from pufferfish.data.public_counts import read_public_rows  # here: it loads what reads tables

    try:
        data = read_public_rows(source, (named if tree else nodes), **reading)
    except DataError as error:
        joined = next((name for name in nodes if " " in name and f"column {name!r} not found" in str(error)), None)
        if joined in {child for _, child in edges} & {parent for parent, _ in edges}:
            error.args = (f"{error} Arrows are separated by commas: is one missing in {joined!r}?",)
        raise
    nodes = list(data.rows.nodes)
    if tree:
        _check_certain(certain, nodes)
        edges = chow_liu(data)
    cpts: dict[str, CPT] = {}
    tables: list[FittedTable] = []
    for node in nodes:
        parents = [parent for parent, child in edges if child == node]
        cpts[node], table = fitted_cpt(data, node, parents, added, certain=node in certain)
        tables.append(table)
    theta = ModelClass((BayesianNetwork(cpts),), _origin(data.rows, added, tables, certain, tree=tree))
    return NetworkFit(theta=theta, rows=data.rows, tables=tuple(tables))


def fitted_cpt(
    data: "PublicRows", node: str, parents: Sequence[str], smoothing: float, *, certain: bool = False
) -> tuple[CPT, FittedTable]:
    """Return a node's table given some parents, and what it was counted from."""
    states = data.rows.states
    sizes = [len(states[name]) for name in (*parents, node)]
    if len(parents) > _MOST_PARENTS or prod(sizes) > _MOST_ENTRIES:
        raise ModelError(
            f"the table of {node!r} with the parents {names_of(parents, 8)} has {prod(sizes):,} entries for "
            f"{counted(data.rows.records, 'row')} of data, at most {_MOST_ENTRIES:,} are counted: leave arrows out, or "
            "merge states"
        )
    counts = data.together([*parents, node]).reshape(-1, sizes[-1])
    shares = data.rows.counts[node] / data.rows.counts[node].sum()
    seen = counts.sum(axis=1)
    # where nothing is added, a row that was never seen is the node's shares all the same
    towards = np.where(seen > 0, smoothing, max(smoothing, 1.0))[:, None] * shares
    if certain:
        towards = np.where((counts == 0) & (seen > 0)[:, None], 0.0, towards)
    weights = counts + towards
    laws = weights / weights.sum(axis=1, keepdims=True)
    table = FittedTable(
        node=node,
        rows=len(seen),
        unseen=int((seen == 0).sum()),
        few=int((seen < _FEW).sum()),
        zeros=int((laws == 0).sum()),
    )
    return CPT(states[node], laws.reshape(sizes), parents), table


def _origin(rows: Rows, smoothing: float, tables: Sequence[FittedTable], certain: Sequence[str], *, tree: bool) -> str:
    kept = f", rows where {rows.base.where}" if rows.base.where else ""
    parts = [f"fitted to public data: {rows.base.source}{kept}, {counted(rows.records, 'row')}"]
    if tree:
        parts.append("arrows of the tree of Chow and Liu")
    parts.append(f"{smoothing:g} row{'' if smoothing == 1 else 's'} of a node's shares added to each row of its table")
    if certain:
        parts.append(f"certain: {names_of(certain, 8)}")
    if unseen := sum(table.unseen for table in tables):
        of = sum(table.rows for table in tables)
        parts.append(f"{unseen:,} of {of:,} rows of tables were never seen and are the node's shares")
    return "; ".join(parts)


# -- Arrows ----------------------------------------------------------------------------------------------------------

_EXAMPLE = (
    '"smoke->lung, age->lung", pairs such as [("smoke", "lung")], a file with an arrow in each line, or "chow-liu"'
)


def parse_arrows(arrows: Any, *, empty: bool = False) -> list[Arrow]:
    """Return arrows as pairs, from a text, a file of lines, or pairs; ``empty`` says whether there may be none.

    A text holds arrows ``a->b``, several in a row as ``a->b->c``, with commas or line breaks between them; text without
    an arrow in it names a file. In a file lines may end in a comment, which begins with ``#``.

    >>> parse_arrows("smoke->lung->cough, age -> lung")
    [('smoke', 'lung'), ('lung', 'cough'), ('age', 'lung')]
    """
    if isinstance(arrows, os.PathLike) or (isinstance(arrows, str) and "->" not in arrows and arrows.strip()):
        pairs = _of_text(_text_of(arrows))
    elif isinstance(arrows, str):
        pairs = _of_text(arrows)
    elif is_list(arrows):
        pairs = [_pair(i, pair) for i, pair in enumerate(arrows)]
    else:
        raise ParameterError(f"arrows is {shortened(repr(arrows))}, expected {_EXAMPLE}")
    if not pairs and not empty:
        raise ParameterError(f"arrows is empty, expected {_EXAMPLE}; columns alone need columns=")
    return pairs


def _text_of(path: Any) -> str:
    try:
        text = read_file(path).decode("utf-8-sig")
    except (RecordError, UnicodeDecodeError) as error:
        why = error if isinstance(error, RecordError) else "it is not text in UTF-8"
        raise ParameterError(
            f"arrows is {shortened(repr(path))}, which is not a file of arrows ({why}); expected {_EXAMPLE}"
        ) from None
    return "\n".join(line.partition("#")[0] for line in text.splitlines())


def _of_text(text: str) -> list[Arrow]:
    pairs: list[Arrow] = []
    for part in filter(None, (part.strip() for line in text.splitlines() for part in line.split(","))):
        names = [name.strip() for name in part.split("->")]
        if len(names) < 2 or not all(names):
            raise ParameterError(
                f"arrows has {shortened(part)!r}, expected an arrow such as smoke->lung; columns whose names hold a "
                "comma or -> are given as pairs in Python"
            )
        pairs.extend(pairwise(names))
    return pairs


def _pair(i: int, pair: Any) -> Arrow:
    if not (is_list(pair) and len(pair) == 2 and all(isinstance(name, str) and name for name in pair)):
        raise ParameterError(
            f"arrows[{i}] is {shortened(repr(pair))}, expected a pair of names such as ('smoke', 'lung')"
        )
    return pair[0], pair[1]


def _names(given: Any, argument: str) -> list[str]:
    names = list(texts(given, argument))
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"{argument} names {name!r} twice")
    return names


def _check_edges(nodes: Sequence[str], edges: Sequence[Arrow]) -> None:
    """Refuse arrows that are no network's, before a table is read."""
    seen: set[Arrow] = set()
    for parent, child in edges:
        if parent == child:
            raise ParameterError(f"arrows has {parent}->{child}: a column cannot depend on itself")
        if (parent, child) in seen:
            raise ParameterError(f"arrows has {parent}->{child} twice: leave one out")
        seen.add((parent, child))
    above = {node: [parent for parent, child in edges if child == node] for node in nodes}
    for node, parents in above.items():
        if len(parents) > _MOST_PARENTS:
            raise ModelError(f"{node!r} has {len(parents)} parents, at most {_MOST_PARENTS} are counted together")
    BayesianNetwork({node: CPT(["?"], np.ones((1,) * (len(parents) + 1)), parents) for node, parents in above.items()})


def _check_certain(certain: Sequence[str], nodes: Sequence[str]) -> None:
    for name in certain:
        if name not in nodes:
            hint = did_you_mean(name, nodes)
            raise ParameterError(f"certainties names {name!r}, which is not a node.{hint} Nodes: {names_of(nodes, 8)}")


# -- The tree of Chow and Liu ----------------------------------------------------------------------------------------


def chow_liu(data: "PublicRows") -> list[Arrow]:
    """Return the arrows of the tree whose pairs tell most about each other, from the first name on."""
    names = sorted(data.rows.nodes)
    told = {pair: round(_information(data.together(pair)), 12) for pair in combinations(names, 2)}
    inside, edges = [names[0]], list[Arrow]()
    while len(inside) < len(names):
        parent, child = min(
            ((a, b) for a in inside for b in names if b not in inside),
            key=lambda edge: (-told[min(edge), max(edge)], edge),
        )
        inside.append(child)
        edges.append((parent, child))
    return edges


def _information(counts: NDArray[np.int64]) -> float:
    """Return the mutual information of two columns, in nats, given how often their states meet."""
    total = counts.sum()
    if not total:
        return 0.0
    apart = counts.sum(axis=1, keepdims=True) * (counts.sum(axis=0, keepdims=True) / total)
    seen = counts > 0
    return float((counts[seen] * np.log(counts[seen] / apart[seen])).sum() / total)
