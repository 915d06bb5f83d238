"""Notebooks made of records: their cells, run in order, make the same release again but for the noise."""

import json
import re

import polars as pl
import pytest
from click.testing import CliRunner

import pufferfish as pf
from pufferfish.cli import main
from pufferfish.release.again import notebook_of
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
ROWS = TABLE.with_columns(ward=pl.Series(["x", "y"] * 20))
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


def of_columns_together(**by):
    data = pf.read_rows(ROWS, NETWORK, columns=["a", "b"], joint=["a", "b"], **by)
    query = pf.Joint(["a", "b"], relative=not by)
    return pf.release(data, query, pf.LeakagePropagation(NETWORK, data.length).calibrate(query, 1.0))


RELEASES = {
    "histogram": lambda: made(pf.Histogram(), valid="valid"),
    "groups": lambda: made(pf.Count(["rest"]), by=["sex"]),
    "shares of groups": lambda: made(pf.Histogram(), by=["sex"]),
    "transitions": lambda: made(pf.Transitions()),
    "best noise": lambda: made(pf.Quantiles([0.5]), noise="best"),
    "network": of_network,
    "columns together": of_columns_together,
    "columns together, by groups": lambda: of_columns_together(by=["ward"]),
}


OF_ROWS = {"network", "columns together", "columns together, by groups"}


@pytest.mark.grid(keep=7)
@pytest.mark.parametrize("kind", RELEASES)
def test_the_cells_of_a_notebook_make_the_release_again(kind, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (ROWS if kind in OF_ROWS else CHAINS).write_csv("out/table.csv")
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


def test_a_release_that_was_charged_is_made_again_under_a_ledger_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CHAINS.write_csv("table.csv")
    data = pf.read_sequences("table.csv", "<b>state", **READING)
    bound = pf.LeakagePropagation(THREE, data.length)
    pf.Ledger(bound, 9.0, base=data).save("book.json")
    ledger, noise = pf.Ledger.open("book.json"), bound.calibrate(pf.Histogram(), 1.0)
    pf.release(data, pf.Histogram(), noise, ledger=ledger).to_json("release.json")
    command = ["notebook", "release.json", "--output", "again.ipynb"]
    written = CliRunner().invoke(main, command)
    assert written.exit_code == 0
    assert "set LEDGER in the first cell of the notebook to its file, or give --ledger FILE" in written.stdout
    code = code_in(tmp_path / "again.ipynb")
    with pytest.raises(ValueError, match="charged to a ledger: set LEDGER in the first cell to its file"):
        exec(code, {})
    exec(code.replace("LEDGER = None", "LEDGER = 'book.json'"), {})
    assert len(pf.Ledger.open("book.json").entries) == 2
    written = CliRunner().invoke(main, [*command, "--overwrite", "--ledger", "book.json"])
    assert written.exit_code == 0
    spent, left = re.search(
        r"each run is charged to book\.json: (\S+) of 9 is spent, (\S+) of its budget is left\n$", written.stdout
    ).groups()
    assert float(spent) + float(left) == pytest.approx(9.0, abs=2e-3)
    exec(code_in(tmp_path / "again.ipynb"), {})
    assert len(pf.Ledger.open("book.json").entries) == 3

    nearly = pf.Ledger(bound, 1.5, base=data)
    pf.release(data, pf.Histogram(), noise, ledger=nearly).to_json("nearly.json")
    nearly.save("nearly-spent.json")
    written = CliRunner().invoke(
        main, ["notebook", "nearly.json", "--output", "n.ipynb", "--ledger", "nearly-spent.json"]
    )
    assert "0.5 of its budget is left, less than the ε = 1 of this release\n" in written.stdout

    pf.Ledger(bound, 9.0, base=data).save("other.json")
    pf.release(data, pf.Histogram(), noise).to_json("free.json")
    for record, book, says in (
        ("release.json", "other.json", "the record names entry 1, and the ledger has 0; no entry of this"),
        ("free.json", "book.json", "made without a ledger"),
        ("release.json", "nowhere.json", "nowhere.json"),
    ):
        found = CliRunner().invoke(main, ["notebook", record, "--output", "no.ipynb", "--ledger", book])
        assert (found.exit_code, says in found.stderr, (tmp_path / "no.ipynb").exists()) == (2, True, False), record


def code_in(path):
    cells = json.loads(path.read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("query", "states"), {"is": "Count(['a'])+__import__('os').system('touch ran')#", "x": 1}),
        (("query", "is"), "Count(['a'])+__import__('os').system('touch ran')#"),
        (("settings",), {"x=__import__('os').system('touch ran'),y": 1}),
        (("settings", "secrets"), {"is": "RecordIs(1, 2)+__import__('os').system('touch ran')#", "record": 1}),
    ],
    ids=str,
)
def test_a_record_is_never_code(place, value, tmp_path):
    made(pf.Count(["rest"])).to_json(tmp_path / "release.json")
    record = json.loads((tmp_path / "release.json").read_text())
    inside = record["calibration"]
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    (tmp_path / "release.json").write_text(json.dumps(record))
    output = tmp_path / "a.ipynb"
    found = CliRunner().invoke(main, ["notebook", str(tmp_path / "release.json"), "--output", str(output)])
    assert found.exit_code == 2, found.output
    assert found.stderr.count("\n") == 1
    assert not output.exists()


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
