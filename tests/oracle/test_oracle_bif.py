"""BIF files against two other readers: pyAgrum's, in single precision, and pgmpy's, in double precision.

The files are not in the repository: see the folder ../shared/data.
"""

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from optional import pyagrum_or_skip
from pufferfish.theta.bayesian_network import BayesianNetwork

pyagrum = pyagrum_or_skip()

NAMES = ["asia", "barley", "cancer", "child", "earthquake", "hailfinder", "insurance", "survey"]
FOLDER = Path(__file__).parents[3] / "shared" / "data" / "bayesnets"
SINGLE = 2.0**-22
"""Numbers in single precision, and their sum."""


def text_of(name: str) -> str:
    path = FOLDER / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"real data absent: {path.name} is not in ../shared/data/bayesnets")
    return gzip.decompress(path.read_bytes()).decode()


def aliases(text: str) -> dict[str, str]:
    """Names that pyAgrum's reader refuses, such as 5-12, with others for them."""
    states = {s.strip() for found in re.findall(r"\] \{([^}]*)\}", text) for s in found.split(",")}
    odd = sorted(s for s in states if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", s))
    return {state: f"alias{i}_" for i, state in enumerate(odd)}


def aligned(table: NDArray[np.float64], mine: BayesianNetwork, node: str, axes: list[str]) -> NDArray[np.float64]:
    """Turn a table with axes in any order to those of this package's."""
    return np.moveaxis(table, [axes.index(name) for name in (*mine.cpts[node].parents, node)], range(len(axes)))


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_pyagrums(name: str, tmp_path: Path) -> None:
    text = text_of(name)
    mine = BayesianNetwork.from_bif(FOLDER / f"{name}.bif.gz")
    other = aliases(text)
    for state, alias in other.items():
        text = re.sub(rf"(?<=[\s(]){re.escape(state)}(?=\s*[,)}}])", alias, text)
    path = tmp_path / "net.bif"
    path.write_text(text)
    bn = pyagrum.loadBN(str(path))
    assert sorted(bn.names()) == sorted(mine.nodes)
    entries = 0
    for node in mine.nodes:
        variable, tensor = bn.variable(node), bn.cpt(node)
        assert tuple(other.get(state, state) for state in mine.node_states[node]) == tuple(variable.labels())
        found = aligned(tensor.toarray(), mine, node, list(reversed(tensor.names)))
        found = found / found.sum(axis=-1, keepdims=True)
        assert found.shape == mine.cpts[node].table.shape
        assert ((found == 0) == (mine.cpts[node].table == 0)).all()
        assert np.allclose(found, mine.cpts[node].table, rtol=SINGLE, atol=0)
        entries += found.size
    assert entries == sum(table.size for _, table in mine.tables)


@pytest.mark.filterwarnings("ignore")  # pgmpy's own
@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_pgmpys(name: str, tmp_path: Path) -> None:
    readwrite: Any = pytest.importorskip(
        "pgmpy.readwrite", reason="pgmpy is large, and not among the tools of development"
    )
    path = tmp_path / "net.bif"
    path.write_text(text_of(name))
    model = readwrite.BIFReader(str(path)).get_model()
    for cpd in model.get_cpds():
        cpd.normalize()
    theirs, mine = BayesianNetwork.from_pgmpy(model), BayesianNetwork.from_bif(path)
    assert set(theirs.nodes) == set(mine.nodes)
    for node in mine.nodes:
        assert theirs.node_states[node] == mine.node_states[node]
        cpt = theirs.cpts[node]
        found = aligned(cpt.table, mine, node, [*cpt.parents, node])
        assert np.abs(found - mine.cpts[node].table).max() < 1e-12


def test_files_that_pyagrum_writes_are_its_networks(tmp_path: Path) -> None:
    pyagrum.initRandom(7)
    path = str(tmp_path / "net.bif")
    for shape in ("A->B{x|y|z}->C<-A; D[4]->C", "A[3]->B[3]->C[3]; A->C", "A{a|b|c|d|e}"):
        bn = pyagrum.fastBN(shape)
        pyagrum.saveBN(bn, path)
        read, taken = BayesianNetwork.from_bif(path), BayesianNetwork.from_pyagrum(bn)
        assert set(read.nodes) == set(taken.nodes)
        assert read.node_states == taken.node_states
        for node in read.nodes:
            cpt = taken.cpts[node]
            found = aligned(cpt.table, read, node, [*cpt.parents, node])
            assert np.allclose(found, read.cpts[node].table, rtol=1e-15, atol=0)


def test_a_table_below_a_node_with_parents_has_pyagrums_order(tmp_path: Path) -> None:
    path = tmp_path / "net.bif"
    path.write_text(
        """network flat { }
        variable A { type discrete [ 2 ] { a, b }; }
        variable D { type discrete [ 3 ] { p, q, r }; }
        variable B { type discrete [ 2 ] { u, v }; }
        probability ( A ) { table 0.25, 0.75; }
        probability ( D ) { table 0.25, 0.25, 0.5; }
        probability ( B | A, D ) { table 0, 0.125, 0.25, 0.375, 0.5, 0.625, 1, 0.875, 0.75, 0.625, 0.5, 0.375; }
        """
    )
    bn = pyagrum.loadBN(str(path))
    mine = BayesianNetwork.from_bif(path)
    tensor = bn.cpt("B")
    assert np.array_equal(aligned(tensor.toarray(), mine, "B", list(reversed(tensor.names))), mine.cpts["B"].table)
    assert mine.cpts["B"].table[1, 0].tolist() == [0.375, 0.625]
