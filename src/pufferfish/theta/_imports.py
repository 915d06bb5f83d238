"""Transition matrices and tables of networks from objects of other libraries, which this package does not need itself.

Libraries of chains have a row for the state that a step comes from; they differ in how states are named, which are left
out, and what is known of the first record. Those of networks hand out tables with axes in an order of their own. All of
that is taken by name, and checked here, where a remedy in the library's own words can be given.
"""

import gzip
import importlib
import io
import os
import zlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import real_array, real_number
from pufferfish._base.reading import LARGEST, read_file
from pufferfish._core.chains.markov import smoothed
from pufferfish.errors import ModelError, PufferfishError, RecordError, shortened
from pufferfish.theta.bif import CPT, TOLERANCE, parse_bif
from pufferfish.theta.states import listed_labels, state_label

# -- Transition matrices from objects of other libraries -------------------------------------------------------------

_SUM = 1e-9

Parts = tuple[NDArray[np.float64], Any, Sequence[Any] | None]
"""A transition matrix, the law of the first record where it is known, and names of the states where there are some."""


def hmmlearn_parts(model: Any) -> Parts:
    """Return the parts of the hidden chain of an hmmlearn model."""
    if not (hasattr(model, "startprob_") and hasattr(model, "transmat_")):
        fitted = "fit it first" if type(model).__name__.endswith("HMM") else "expected a fitted model of hmmlearn.hmm"
        raise ModelError(f"model is {type(model).__name__} without startprob_ and transmat_: {fitted}")
    return _matrix(model.transmat_), _numbers(model.startprob_, "startprob_"), None


def deeptime_parts(model: Any) -> Parts:
    """Return the parts of a Markov state model, or of the hidden chain of a hidden Markov model, of deeptime."""
    start = None
    if hasattr(model, "transition_model"):  # a hidden Markov model, whose first law is a part of it
        model, start = model.transition_model, _numbers(model.initial_distribution, "initial_distribution")
    if not hasattr(model, "transition_matrix"):
        raise ModelError(
            f"model is {type(model).__name__}, expected a MarkovStateModel or HiddenMarkovModel of deeptime (an "
            "estimator has it as fetch_model())"
        )
    counted = getattr(model, "count_model", None) if getattr(model, "has_count_model", False) else None
    symbols = None if counted is None else counted.state_symbols  # those that a connected set left in
    return _matrix(model.transition_matrix), start, None if symbols is None else [int(s) for s in symbols]


def quantecon_parts(chain: Any) -> Parts:
    """Return the parts of a QuantEcon ``MarkovChain``."""
    if not (hasattr(chain, "P") and hasattr(chain, "state_values")):
        raise ModelError(f"chain is {type(chain).__name__}, expected a MarkovChain of quantecon")
    values: Any = chain.state_values
    if values is not None:
        rows: Any = np.asarray(values)
        values = [", ".join(map(state_label, row)) for row in rows.tolist()] if rows.ndim > 1 else rows.tolist()
    return _matrix(chain.P), None, values


def crosstab_parts(table: Any, smoothing: float) -> Parts:
    """Return the parts of a table of counts, such as pandas' crosstab, with rows and columns taken by name."""
    if not all(hasattr(table, part) for part in ("index", "columns", "to_numpy")):
        raise ModelError(f"table is {type(table).__name__}, expected a table such as pandas.crosstab(now, next) gives")
    added = real_number(smoothing)
    if added is None or not 0 <= added < np.inf:
        raise ModelError(f"smoothing is {smoothing!r}, expected a finite number of at least 0")
    rows = listed_labels(table.index.tolist(), "the index of the table")
    columns = listed_labels(table.columns.tolist(), "the columns of the table")
    entries = _numbers(table.to_numpy(), "table")
    if not (np.isfinite(entries).all() and (entries >= 0).all()):
        raise ModelError("table has an entry that is not a count: expected finite numbers of at least 0")
    if "All" in (rows[-1:] + columns[-1:]) and entries.size > 1:
        raise ModelError("table has margins (All): make the table without margins=True")
    across, down = (np.allclose(entries.sum(axis=axis), 1, rtol=0, atol=_SUM) for axis in (1, 0))
    if table.to_numpy().dtype.kind == "f" and down and not across:
        raise ModelError(
            "the columns of the table sum to 1, and a chain has rows that do: make it with normalize='index', or of "
            "counts, and with the present state as its rows"
        )
    states = list(dict.fromkeys((*rows, *columns)))
    counts = np.zeros((len(states), len(states)))
    places = [[states.index(name) for name in names] for names in (rows, columns)]
    counts[np.ix_(*places)] += entries
    matrix = smoothed(counts, added)
    for state, total in zip(states, matrix.sum(axis=1), strict=True):
        if not total > 0:
            raise ModelError(
                f"no transition leaves state {shortened(repr(state))}: give smoothing, such as 1, or leave it out"
            )
    return matrix, None, states


def _matrix(matrix: Any) -> NDArray[np.float64]:
    sparse = hasattr(matrix, "toarray")
    return _numbers(matrix.toarray() if sparse else matrix, "the transition matrix")


def _numbers(given: Any, name: str) -> NDArray[np.float64]:
    try:
        return real_array(given)
    except TypeError as error:
        raise ModelError(f"{name} {error}; expected an array of numbers") from None


SINGLE = 2.0**-23  # pyAgrum reads numbers of BIF files in single precision: each is off by up to 1 ± 2^-24


def bif_cpts(path: str | os.PathLike[str]) -> dict[str, CPT]:
    """Return the tables of a BIF file, which may be compressed by gzip."""
    try:
        content = read_file(path)
        if content.startswith(b"\x1f\x8b"):
            with gzip.open(io.BytesIO(content)) as file:
                content = file.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise RecordError(f"{path} holds more than {LARGEST >> 20} MiB, the most for a network")
        text = content.decode("utf-8-sig")
    except PufferfishError:
        raise
    except UnicodeDecodeError:
        raise RecordError(f"{path} is not a BIF file: it is not text in UTF-8") from None
    except (OSError, EOFError, ValueError, TypeError, zlib.error) as error:
        raise RecordError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    return parse_bif(text, str(path))


def pyagrum_cpts(bn: Any) -> dict[str, CPT]:
    """Return the tables of a ``pyagrum.BayesNet``."""
    if "BayesNet" not in _classes(bn):
        raise ModelError(f"bn is {type(bn).__name__}, expected a pyagrum.BayesNet")
    gum: Any = importlib.import_module(type(bn).__module__.split(".")[0])
    cpts: dict[str, CPT] = {}
    for number in sorted(bn.nodes()):
        # A pyAgrum object lives in the one it came from, and temporaries do not live long: every one keeps a name.
        variable, tensor = bn.variable(number), bn.cpt(number)
        name = str(variable.name())
        axes = [str(axis) for axis in tensor.names]
        parents = [axis for axis in axes if axis != name]
        above = [bn.variable(parent) for parent in parents]
        states = [tuple(map(str, gum_variable.labels())) for gum_variable in (*above, variable)]
        table = np.full([len(labels) for labels in states], np.nan)
        # Not tensor.toarray(): for noisy gates it returns memory that nobody wrote.
        cursor = gum.Instantiation(tensor)
        cursor.setFirst()
        while not cursor.end():
            table[tuple(cursor.val(axis) for axis in (*parents, name))] = tensor.get(cursor)
            cursor.inc()
        cpts[name] = _cpt(
            name,
            states[-1],
            table,
            dict(zip(parents, states[:-1], strict=True)),
            SINGLE,
            f"bn.cpt({name!r}).normalizeAsCPT() divides rows by their sums; a BIF file is better read by from_bif",
        )
    return cpts


def pgmpy_cpts(model: Any) -> dict[Any, CPT]:
    """Return the tables of a pgmpy network."""
    if not {"BayesianNetwork", "DiscreteBayesianNetwork"} & _classes(model):
        raise ModelError(
            f"model is {type(model).__name__}, expected a DiscreteBayesianNetwork of pgmpy "
            "(BayesianNetwork before its version 1)"
        )
    cpds: dict[Any, Any] = {}
    for cpd in model.get_cpds():
        if not all(hasattr(cpd, part) for part in ("variable", "variables", "values", "state_names")):
            raise ModelError(f"a table of the model is {type(cpd).__name__}, expected a TabularCPD")
        if cpd.variable in cpds:
            raise ModelError(f"node {cpd.variable!r} has two CPDs; remove one by remove_cpds")
        cpds[cpd.variable] = cpd
    nodes: list[Any] = list(model.nodes())
    for node in (*nodes, *cpds):
        if node not in cpds or node not in nodes:
            raise ModelError(
                f"node {node!r} has {'no CPD' if node in nodes else 'a CPD and is not in the graph'}: "
                "every node needs one, see check_model of pgmpy"
            )
    return {node: _pgmpy_cpt(model, node, cpds) for node in nodes}


def _pgmpy_cpt(model: Any, node: Any, cpds: dict[Any, Any]) -> CPT:
    cpd = cpds[node]
    axes: list[Hashable] = list(cpd.variables)
    parents = [axis for axis in axes if axis != node]
    if len(set(axes)) < len(axes) or len(parents) != len(axes) - 1:
        raise ModelError(f"the CPD of node {node!r} is about {axes}, expected it and each of its parents once")
    edges = {above for above, below in model.edges() if below == node}
    if edges != set(parents):
        raise ModelError(
            f"node {node!r} has the parents {sorted(map(str, edges))} in the graph and {sorted(map(str, parents))} in "
            "its CPD: they must be the same"
        )
    try:
        values = np.array(cpd.values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"the values of the CPD of node {node!r} are no array of numbers") from None
    if values.ndim != len(axes):
        raise ModelError(f"the CPD of node {node!r} has {values.ndim} axes, expected one for each of {axes}")
    states = {axis: _pgmpy_states(cpd, axis, values.shape, i) for i, axis in enumerate(axes)}
    for parent in parents:
        mine = states[parent]
        size = len(cpds[parent].state_names.get(parent) or mine)
        theirs = _pgmpy_states(cpds[parent], parent, (size,), 0)
        # pgmpy itself reads such a CPD by name in one place and by position in another.
        if mine != theirs:
            raise ModelError(
                f"the CPD of node {node!r} has the states {', '.join(mine)} for its parent {parent!r}, whose own are "
                f"{', '.join(theirs)}: give both CPDs the same state_names, in the same order"
            )
    return _cpt(
        node,
        states[node],
        np.moveaxis(values, axes.index(node), -1),
        {parent: states[parent] for parent in parents},
        TOLERANCE,
        f"get_cpds({node!r}).normalize() divides rows by their sums; a BIF file is better read by from_bif",
    )


def _pgmpy_states(cpd: Any, axis: Any, shape: Sequence[int], i: int) -> list[str]:
    names = [state_label(state) for state in cpd.state_names.get(axis) or range(shape[i])]
    if len(names) != shape[i]:
        raise ModelError(f"the CPD of node {cpd.variable!r} names {len(names)} states of {axis!r}, it has {shape[i]}")
    return names


def _cpt(
    node: Any,
    states: Sequence[str],
    table: NDArray[np.float64],
    above: Mapping[Any, Sequence[str]],
    tolerance: float,
    remedy: str,
) -> CPT:
    """Return a table with rows divided by their sums, if they are nearly 1; ``above`` are the parents' states."""
    with np.errstate(all="ignore"):
        sums = table.sum(axis=-1)
        off = ~(np.abs(sums - 1) <= tolerance)
    if off.any():
        place = tuple(int(i) for i in np.argwhere(off)[0])
        values = ", ".join(f"{p} = {labels[i]}" for (p, labels), i in zip(above.items(), place, strict=True))
        raise ModelError(
            f"the table of node {node!r}{f' where {values}' if values else ''} sums to {sums[place]:.12g}, expected 1 "
            f"(tolerance {tolerance:.1g}). {remedy}"
        )
    try:
        return CPT(states, table / sums[..., None], tuple(above))
    except ModelError as error:
        raise ModelError(f"node {node!r}: {error}") from error


def _classes(given: Any) -> set[str]:
    return {base.__name__ for base in type(given).__mro__}
