"""Notebooks made of records: their cells, run in order, make the same release again but for the noise."""

import json

import polars as pl
import pytest
from click.testing import CliRunner

import pufferfish as pf
from pufferfish.cli import main
from pufferfish.release.notebook import notebook_of
from release_cases import NETWORK, STATES, TABLE, THREE

N = 120
CHAINS = pl.DataFrame(
    {
        "id": [f"s{s}" for s in range(2) for _ in range(N)],
        "t": [m for _ in range(2) for m in range(N)],
        "sex": ["f"] * N + ["m"] * N,
        "<b>state": [STATES[(m // 3 + s) % 3] for s in range(2) for m in range(N)],
    }
)
READING = {"subject": "id", "time": "t", "max_gap": "1", "states": STATES, "where": "t < 90"}


def made(query, *, noise="equal", valid=None, **reading):
    data = pf.read_sequences(CHAINS, "<b>state", **READING, **reading)
    calibration = pf.LeakagePropagation(THREE, length=data.length).calibrate(query, 1.0, noise=noise)
    return pf.release(data, query, calibration, postprocess=valid)


def of_network():
    data = pf.read_rows(TABLE, NETWORK, columns=["a", "b"])
    query = pf.Marginals(["a", "b"])
    mechanism = pf.MarkovQuilt(NETWORK, length=data.length, secrets=["a"])
    return pf.release(data, query, mechanism.calibrate(query, 1.0))


RELEASES = {
    "histogram": lambda: made(pf.Histogram(), valid="valid"),
    "groups": lambda: made(pf.Count(["rest"]), by=["sex"]),
    "transitions": lambda: made(pf.Transitions()),
    "best noise": lambda: made(pf.Quantiles([0.5]), noise="best"),
    "network": of_network,
}


@pytest.mark.grid(keep=5)
@pytest.mark.parametrize("kind", RELEASES)
def test_the_cells_of_a_notebook_make_the_release_again(kind, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (TABLE if kind == "network" else CHAINS).write_csv("out/table.csv")
    first = RELEASES[kind]()
    first.to_json("release.json")
    command = ["notebook", "release.json", "--output", "out/analysis.ipynb", "--table", "out/table.csv"]
    found = CliRunner().invoke(main, command)
    assert found.exit_code == 0, found.output
    book = json.loads((tmp_path / "out/analysis.ipynb").read_text())
    assert (book["nbformat"], len({cell["id"] for cell in book["cells"]})) == (4, len(book["cells"]))
    assert all("<b>" not in "".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "markdown")
    monkeypatch.chdir(tmp_path / "out")
    names = {}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    again = names["release"]
    for part in ("query", "noise", "groups", "theta", "promise", "epsilon"):
        assert getattr(again, part) == getattr(first, part), part
    assert (again.data.records, again.postprocessing is None) == (first.data.records, first.postprocessing is None)

    content = (tmp_path / "out/analysis.ipynb").read_bytes()
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(main, command)
    assert (found.exit_code, (tmp_path / "out/analysis.ipynb").read_bytes()) == (2, content)
    assert CliRunner().invoke(main, [*command, "--overwrite"]).exit_code == 0


def test_what_no_record_can_make_again_is_refused(tmp_path):
    row = ["rest", "sport"] * 6
    calibration = pf.LeakagePropagation(THREE, length=12).calibrate(pf.Histogram(), 1.0)
    by_hand = pf.release(row, pf.Histogram(), calibration)
    with pytest.raises(pf.NotApplicableError, match="by hand"):
        notebook_of(by_hand, "release.json")
    data = pf.read_sequences(CHAINS, "<b>state", **READING)
    calibration = pf.LeakagePropagation(THREE, length=data.length).calibrate(pf.Histogram(), 1.0)
    each = pf.release_each(data, pf.Histogram(), calibration, tmp_path / "values.parquet")
    with pytest.raises(pf.NotApplicableError, match="each subject"):
        notebook_of(each, "release.json")
    (tmp_path / "measured.json").write_text('{"format": "pufferfish-measurement", "version": 1}')
    for name, says in (("values.json", "each subject"), ("measured.json", "measurement")):
        command = ["notebook", str(tmp_path / name), "--output", str(tmp_path / "a.ipynb")]
        found = CliRunner().invoke(main, command)
        assert (found.exit_code, (tmp_path / "a.ipynb").exists()) == (2, False)
        assert says in found.output
