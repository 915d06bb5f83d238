"""BIF files: what the format allows is read, everything else is refused with its line."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pufferfish.errors import RecordError
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT, parse_bif

CANCER = """
// written by hand, with quirks
network "Cancer net" {
  property author = me; property "quoted ; semicolon";
}
/* blocks may be
   mixed */ variable Pollution { type discrete[2] {low,high}; property position = (1, 2) ; }
probability ( Pollution ) { table 9.0e-1 .1; }
probability ( Cancer | Pollution, Smoker ) {
  default 0.3333, 0.3333, 0.3333; // all rows that do not follow
  (low, True) 0.03 0.97 0;
  (high, True) 0.05, 0.95, 0.0;
  property note of mine;
}
variable Smoker {
  property first;
  type discrete [ 2 ] { True, False };
}
variable Cancer { type discrete [ 3 ] { <5, 5-12, "12+ (old)" }; }
variable "X ray" { type discrete [ 2 ] { Asy/Patch, "table" }; }
probability ( "X ray" | Smoker Pollution ) { table 0.1, 0.2, 0.3, 0.4, 0.9, 0.8, 0.7, 0.6; }
probability ( Smoker ) {
  table 0.3, 0.7;
}
"""


def test_the_whole_format_is_read() -> None:
    network = BayesianNetwork(parse_bif(CANCER, "cancer.bif"))
    assert network.nodes == ("Pollution", "Smoker", "Cancer", "X ray")
    assert network.node_states["Cancer"] == ("<5", "5-12", "12+ (old)")
    assert network.node_states["X ray"] == ("Asy/Patch", "table")
    assert network.cpts["Pollution"].table.tolist() == [0.9, 0.1]
    cancer = network.cpts["Cancer"]
    assert cancer.parents == ("Pollution", "Smoker")
    assert cancer.table[:, 0].tolist() == [[0.03, 0.97, 0], [0.05, 0.95, 0]]
    assert np.allclose(cancer.table[:, 1], 1 / 3, rtol=0, atol=1e-15)
    xray = network.cpts["X ray"]
    assert xray.parents == ("Smoker", "Pollution")
    assert xray.table[..., 0].tolist() == [[0.1, 0.2], [0.3, 0.4]]


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        # The text around blocks
        (("network", "belief network"), 3, "found 'belief', expected 'network'"),
        (('net" {', "net {"), 3, "a quotation mark is not closed on its line"),
        (('"Cancer net"', "Cancer net"), 3, "found 'net', expected '{'"),
        (("mixed */", "mixed"), 6, "a comment that begins with /* never ends"),
        (("note of mine;", "note of mine"), 13, "the property is not closed by ';' on its line"),
        (("variable Smoker", "Variable Smoker"), 15, 'found \'Variable\', expected "variable" or "probability"'),
        (("0.3, 0.7;\n}", "0.3, 0.7;\n"), 25, "found the end of the file, expected '}' or what belongs before it"),
        (("0.3, 0.7;\n}", "0.3, 0.7\n}"), 24, "found '}', expected a probability"),
        (("0.3, 0.7;\n}", "0.3, 0.7;\n}\n}"), 25, 'found \'}\', expected "variable" or "probability"'),
        # Variables
        (("discrete [ 2 ] { True", "continuous [ 2 ] { True"), 17, "'continuous'; only discrete variables can be read"),
        (("  type discrete [ 2 ] { True, False };\n", ""), 15, "variable 'Smoker' has no \"type discrete"),
        (("property first", "type discrete [1] {x}"), 15, "variable 'Smoker' has two types"),
        (("[ 2 ] { True", "[ 3 ] { True"), 15, "variable 'Smoker' is declared with 3 states and names 2"),
        (("True, False", "True, True"), 15, "variable 'Smoker' names the state 'True' twice"),
        (("[ 2 ] { True, False", "[ 3 ] { very low, False"), 17, "a list of 3 items with 1 commas"),
        (("True, False", "True,, False"), 17, "found ',', expected the name of a state"),
        (("True, False", 'True, ""'), 17, "found '', expected the name of a state"),
        (("True, False", "True, a//b"), 17, "'a//b' may be a name or hold a comment"),
        (("variable Smoker", "variable Pollution"), 15, "variable 'Pollution' is declared again (first in line 7)"),
        # Blocks of probabilities
        (("( Smoker )", "( Smokers )"), 22, "'Smokers' is not a variable of this file. Did you mean 'Smoker'?"),
        (
            ("Pollution, Smoker", "Pollution, smoker"),
            9,
            "'smoker' is not a variable of this file. Did you mean 'Smoker'?",
        ),
        (("Pollution, Smoker", "Smoker, Smoker"), 9, "node 'Cancer' has the parent 'Smoker' twice"),
        (("| Pollution, Smoker", ", Pollution"), 9, "found ',' behind 'Cancer', expected '|' and its parents, or ')'"),
        (("( Smoker )", "( Pollution )"), 22, "a second table of node 'Pollution' (the first is in line 8)"),
        (("probability ( Pollution ) { table 9.0e-1 .1; }", ""), 7, "variable 'Pollution' has no probability block"),
        (("table 0.3, 0.7;", "table 0.3, 0.7; table 0.3, 0.7;"), 23, "node 'Smoker' has \"table\" twice"),
        (("table 0.3, 0.7;", "table 0.3, 0.7; default 0.3, 0.7;"), 22, 'has a "table" and rows of its own'),
        (("table 0.3, 0.7;", ""), 22, "the table of node 'Smoker' is missing"),
        (("(high, True)", "(low, True)"), 12, "a second row of node 'Cancer' for (low, True)"),
        (("(high, True)", "(high)"), 12, "(high) are 1 states, node 'Cancer' has 2 parents"),
        (("(high, True)", "(True, high)"), 12, "'True' is no state of 'Pollution'. Its states: low, high"),
        (
            ("default 0.3333, 0.3333, 0.3333;", ""),
            9,
            "the table of node 'Cancer' where Pollution = low, Smoker = False is missing",
        ),
        (("0.4, 0.9", "0.9"), 21, "the table of node 'X ray' has 7 numbers, expected 8"),
        # Rows
        (("0.05, 0.95, 0.0;", "0.05, 0.95;"), 12, "where Pollution = high, Smoker = True has 2 numbers, expected 3"),
        (("0.03 0.97 0;", "0.03 0.97 0 0;"), 11, "has 4 numbers, expected 3: <5, 5-12, 12+ (old)"),
        (("0.05, 0.95", "0.05, 0.93"), 12, "Smoker = True sums to 0.98, expected 1: rounding to the digits printed"),
        (("0.05, 0.95, 0.0", "0, 0, 0"), 12, "sums to 0, expected 1"),
        (("0.05, 0.95", "-0.05, 1.05"), 12, "gives '<5' '-0.05', expected a number between 0 and 1"),
        (("0.05, 0.95", "0.05, 1.05"), 12, "gives '5-12' '1.05', expected a number between 0 and 1"),
        (("0.05, 0.95", "0.05, nan"), 12, "gives '5-12' 'nan', expected a number"),
        (("0.05, 0.95", "1/20, 0.95"), 12, "gives '<5' '1/20', expected a number"),
        (("0.05, 0.95", '"0.05", 0.95'), 12, "gives '<5' '0.05', expected a number"),
        (("0.05, 0.95", "0.05, 0.95//x"), 12, "'0.95//x' may be a name or hold a comment"),
        (("0.05, 0.95", "1e99999, 0.95"), 12, "gives '<5' '1e99999', expected a number"),
        (("0.05, 0.95", "1e9999, 0.95"), 12, "gives '<5' '1e9999', expected a number"),
        (("0.05, 0.95, 0.0;", "1e-400, 1, 0.0;"), 12, "gives '<5' '1e-400', too small for a floating-point number"),
        (("0.05, 0.95", "0.05, ٠.٩٥"), 12, "gives '5-12' '٠.٩٥', expected a number"),
    ],
)
def test_anything_else_is_refused_with_its_line(change: tuple[str, str], line: int, message: str) -> None:
    assert CANCER.count(change[0]) == 1
    with pytest.raises(RecordError) as caught:
        parse_bif(CANCER.replace(*change), "net.bif")
    assert str(caught.value).startswith(f"net.bif, line {line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def coin(numbers: str) -> BayesianNetwork:
    count = len(numbers.split(","))
    states = ", ".join(f"s{i}" for i in range(count))
    return BayesianNetwork(
        parse_bif(
            f"network n {{}} variable X {{ type discrete [{count}] {{ {states} }}; }}"
            f"probability ( X ) {{ table {numbers}; }}",
            "coin.bif",
        )
    )


@pytest.mark.parametrize(
    "numbers",
    [
        "0.33, 0.33, 0.33",
        "0.333333, 0.333333, 0.333333",
        ", ".join(["0.1111111"] * 9),
        "9.999e-05, 9.999e-01",
        "0.333333, 0.666667, 1.23457e-07",  # six significant digits
        "0.12, 0.88, 0.001",  # 0.1195 and 0.8795
        "0, 1, 0.0",
        ", ".join(["0.08"] * 12),
    ],
)
def test_rows_that_rounding_explains_are_divided_by_their_sums(numbers: str) -> None:
    given = np.array([float(number) for number in numbers.split(",")])
    table = coin(numbers).cpts["X"].table
    assert np.allclose(table, given / given.sum(), rtol=4e-16, atol=0)
    assert ((table == 0) == (given == 0)).all()


@pytest.mark.parametrize(
    "numbers",
    [
        "0.33, 0.33, 0.32",
        "0.333333, 0.333333, 0.33333",
        "0.5, 0.45",  # 0.5 lost a zero: the other number has two digits
        "0.5, 0.495",
        "0.5, 0.6",  # one digit explains nothing
        "0.3, 0.3, 0.3",
        "1, 1",
        "1, 0.4",
        "1, 0.012",
        "0.0, 0.0, 0.95",  # a zero is meant
        "0.333333, 0.666667, 1.3e-05",
        "0.9999, 0.00000001",
        "0.3333333, 0.33, 0.33",
        ", ".join(["0.01"] * 200),  # would be halved
        ", ".join(["0.01"] * 199),
        ", ".join(["0.03"] * 30),
        "0.51, 0.5",
        "0.49, 0.5",
        "1.00, 0.001, 0",
    ],
)
def test_rows_that_rounding_does_not_explain_are_refused(numbers: str) -> None:
    with pytest.raises(RecordError, match="the table of node 'X' sums to"):
        coin(numbers)


def test_tables_that_no_memory_holds_are_refused_before_they_are_made() -> None:
    names = [f"P{i}" for i in range(60)]
    many = "".join(
        f"variable {n} {{ type discrete [2] {{ a, b }}; }} probability ( {n} ) {{ table 0.5, 0.5; }}" for n in names
    )
    child = "variable X { type discrete [2] { a, b }; } probability ( X | %s ) { default 0.5, 0.5; }"
    with pytest.raises(RecordError, match=r"has 60 parents and 2305843009213693952 entries"):
        parse_bif("network n {}" + many + child % " ".join(names), "net.bif")
    with pytest.raises(RecordError, match=r"has 33 parents and 2 entries; at most 31"):
        parse_bif("network n {}" + many.replace("[2] { a, b }", "[1] { a }").replace("0.5, 0.5", "1")
                  + child % " ".join(names[:33]), "net.bif")  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        CANCER.encode(),
        b"\xef\xbb\xbf" + CANCER.encode(),
        CANCER.replace("\n", "\r\n").encode(),
        gzip.compress(CANCER.encode()),
    ],
    ids=["plain", "byte order mark", "CRLF", "gzip"],
)
def test_files_are_read_however_they_were_saved(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cancer.bif"
    path.write_bytes(content)
    network = BayesianNetwork.from_bif(path)
    assert network.nodes == ("Pollution", "Smoker", "Cancer", "X ray")
    assert network.groups == (4,)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read .*: there is no such"),
        (b"", "line 1: found the end of the file, expected 'network'"),
        (b"\xff\xfen", "not text in UTF-8"),
        (gzip.compress(CANCER.encode())[:-30], "cannot read"),
        (gzip.compress(CANCER.encode())[:20] + b"\x00" * 50, "cannot read"),
        (
            CANCER.replace("( Smoker ) {\n  table", "( Smoker | Cancer ) {\n default").encode(),
            re.escape("holds no valid network: edges form a cycle: Smoker → Cancer → Smoker"),
        ),
    ],
    ids=["no file", "empty", "not UTF-8", "cut short", "damaged", "a cycle"],
)
def test_files_that_hold_no_network_are_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "net.bif"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RecordError, match=message) as caught:
        BayesianNetwork.from_bif(path)
    assert str(path) in str(caught.value)


USUAL = """network n { }
variable A { type discrete [ 2 ] { yes, no }; }
variable B { type discrete [ 2 ] { yes, no }; }
probability ( A ) { table 0.25, 0.75; }
probability ( B | A ) { (yes) 0.5, 0.5; (no) 0.125, 0.875; }
"""


def test_every_cut_of_a_file_that_declares_variables_first_is_refused() -> None:
    assert len(parse_bif(USUAL.rstrip(), "net.bif")) == 2
    for end in range(len(USUAL.rstrip())):
        with pytest.raises(RecordError, match=r"^net\.bif, line "):
            parse_bif(USUAL[:end], "net.bif")


@given(st.data())
def test_no_text_makes_the_reader_stumble(data: st.DataObject) -> None:
    text = CANCER
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        piece = data.draw(
            st.sampled_from(['"', "//", "/*", "{", "}", "(", ")", "|", ",", ";", "1e-5", "default", "\n", "\0", ""])
        )
        text = text[:at] + piece + text[at + data.draw(st.integers(0, 12)) :]
    cpts: dict[str, CPT] = {}
    said = ""
    try:
        cpts = parse_bif(text, "net.bif")
    except RecordError as error:
        said = str(error)
    assert bool(cpts) != bool(said)
    assert re.fullmatch(r"(net\.bif, line \d+: .+)?", said)
    assert all(np.allclose(cpt.table.sum(axis=-1), 1) for cpt in cpts.values())
