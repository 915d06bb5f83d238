"""Records whose facts a machine edits, one and two at a time: what still holds, and is proved, tells no more than ε.

The forger owns the writer: whatever follows of the edited facts is made to agree, and what can be proved of them is
proved. The truth is computed of the file alone, by enumerating every database of the small models here.
"""

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

import pufferfish as pf
from pufferfish.release.check import BROKEN
from pufferfish.release.derive import derived, promised
from pufferfish.release.record import ReleaseFields, calibration_again, release_in

# -- The truth, of the file alone ------------------------------------------------------------------------------------


def told(record: dict[str, Any]) -> float:
    """Return what the noise tells of one record at least: the best sign tilt, over every database of one block.

    Other blocks are independent of it, and drop out of a tilt.
    """
    counted = record["counted"]
    scale, outputs = (
        float(Fraction(counted["scale"])),
        len(record["noise"]["measurements"] or record["query"]["labels"]),
    )
    signs = [np.array(sign) for sign in product((-1.0, 1.0), repeat=outputs)]
    most = 0.0
    for states, probability, moves in _databases(record, outputs):
        weights = [probability * np.exp(moves @ sign / scale) for sign in signs]
        for weight in weights:
            for place in range(states.shape[1]):
                own = states[:, place]
                means = [
                    weight[own == x].sum() / probability[own == x].sum()
                    for x in np.unique(own)
                    if probability[own == x].sum() > 0
                ]
                most = max(most, math.log(max(means) / min(means)))
    return most


def _databases(record: dict[str, Any], outputs: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the states of every database of a block, (n, records), how likely each is, and its numbers (n, outputs)."""
    counted, kind = record["counted"], record["theta"]["kind"]
    if kind == "Markov chains":
        for chain in record["theta"]["chains"]:
            for steps, records, _ in record["data"]["lengths"]:
                yield from _of_chain(chain, steps, records, counted, outputs)
    elif kind == "Bayesian networks":
        for member in record["theta"]["members"]:
            yield _of_network(member["nodes"], counted, outputs)


def _of_chain(
    chain: dict[str, Any], steps: int, records: int, counted: dict[str, Any], outputs: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    matrix = np.array(chain["transition_matrix"])
    k, start = len(matrix), chain["initial_distribution"]
    states = np.array(list(product(range(k), repeat=steps)))
    paths = np.prod(matrix[states[:, :-1], states[:, 1:]], axis=1) if steps > 1 else np.ones(len(states))
    if start == "any":
        starts = [np.full(k, 1e-9) + (1 - k * 1e-9) * np.eye(k)[x] for x in range(k)] + [np.full(k, 1 / k)]
    elif start == "stationary":
        values, vectors = np.linalg.eig(matrix.T)
        law = np.abs(np.real(vectors[:, np.argmin(np.abs(values - 1))]))
        starts = [law / law.sum()]
    else:
        starts = [np.array(start)]
    for law in starts:
        yield states, law[states[:, 0]] * paths, _moves(states[:, :records], k, counted, outputs)


def _moves(states: np.ndarray, k: int, counted: dict[str, Any], outputs: int) -> np.ndarray:
    """Return the numbers that get noise, of each database."""
    (adds,) = counted["adds"]
    table = np.zeros((len(adds), outputs))
    for x, added in enumerate(adds):
        for number, value in added:
            table[x, number] = value
    if counted["each"] == "step":
        return table[states[:, :-1] * k + states[:, 1:]].sum(axis=1)
    factors = [factor for n, factor in counted["factors"] or [(states.shape[1], 1)] for _ in range(n)]
    return (table[states] * np.array(factors[: states.shape[1]])[None, :, None]).sum(axis=1)


def _of_network(
    nodes: dict[str, Any], counted: dict[str, Any], outputs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    names = list(nodes)
    rows = np.array(list(product(*(range(len(nodes[name]["states"])) for name in names))))
    probability = np.ones(len(rows))
    for place, name in enumerate(names):
        table = np.array(nodes[name]["table"])
        parents = [rows[:, names.index(parent)] for parent in nodes[name]["parents"]]
        probability *= table[(*parents, rows[:, place])]
    moves = np.zeros((len(rows), outputs))
    for name, adds in zip(counted["of"], counted["adds"], strict=True):
        for row, x in enumerate(rows[:, names.index(name)]):
            for number, value in adds[x]:
                moves[row, number] += value
    return rows, probability, moves


# -- Edits -----------------------------------------------------------------------------------------------------------

FACTS = ("epsilon", "delta", "calibration", "data", "groups", "subjects", "theta", "mechanism", "noise", "ledger")

Edit = Callable[[dict[str, Any]], None]


def edits(record: dict[str, Any]) -> Iterator[tuple[str, Edit]]:
    """Yield every edit of every fact: other numbers and words, and other structure."""
    for place in _places({name: record[name] for name in FACTS}):
        *inside, last = place
        name = ".".join(map(str, place))
        value = _at(record, place)
        for what, other in _others(value):
            yield f"{name} {what}", _set(inside, last, other)
        yield f"{name} deleted", _delete(inside, last)


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _places(part, (*at, key))
    elif isinstance(value, list):
        for i, part in enumerate(value[:3]):
            yield from _places(part, (*at, i))


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, bool):
        yield "the other way", not value
    elif isinstance(value, int | float):
        yield from (("halved", value / 2), ("doubled", value * 2), ("more", value + 1), ("less", value - 1))
        yield from (("whole half", int(value) // 2), ("0", 0), ("a text", str(value)))
    elif isinstance(value, str):
        yield from (("empty", ""), ("a number", 1), ("a known word", "group-dp"), ("another", "stationary"))
    elif isinstance(value, list):
        yield from (("empty", []), ("shorter", value[1:]), ("without its last", value[:-1]), ("turned", value[::-1]))
        yield "twice its first", value[:1] + value
        if value and all(isinstance(row, list) for row in value) and len({len(row) for row in value}) == 1:
            yield "transposed", [list(column) for column in zip(*value, strict=True)]
    elif isinstance(value, dict):
        yield from (("empty", {}), ("with more", value | {"more": 1}))
    if value is not None:
        yield "null", None


def _at(record: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        record = record[key]
    return record


def _set(inside: list[Any], last: Any, other: Any) -> Edit:
    def edit(record: dict[str, Any]) -> None:
        _at(record, tuple(inside))[last] = other

    return edit


def _delete(inside: list[Any], last: Any) -> Edit:
    def edit(record: dict[str, Any]) -> None:
        del _at(record, tuple(inside))[last]

    return edit


def forged(content: bytes) -> ReleaseFields:
    """Return the record of a file, with all that its writer makes of its facts; he proves what he can."""
    record = release_in(content, "it")
    calibration = calibration_again(record)
    other = derived(record, calibration)
    leakage, witness = calibration.bound.verify(calibration)
    mechanism = replace(other.mechanism, leakage=min(leakage, other.epsilon), witness=witness)
    promises = promised(calibration, other.data)
    return derived(replace(other, mechanism=mechanism, promises=promises), calibration)


# -- Releases of every kind, small enough to enumerate ---------------------------------------------------------------

P = [[0.9, 0.1], [0.3, 0.7]]
TWO = pf.MarkovChain(P, states=["a", "b"])
ANY = pf.MarkovChain(P, "any", states=["a", "b"])
GIVEN = pf.MarkovChain(P, [0.2, 0.8], states=["a", "b"])
CLASS = [TWO, pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]], states=["a", "b"])]
THREE = pf.MarkovChain([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.0, 0.1, 0.9]], states=["a", "b", "c"])
NETWORK = pf.BayesianNetwork(
    {"a": pf.CPT(["no", "yes"], [0.8, 0.2]), "b": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.2, 0.8]], ["a"])}
)
ONE = pl.DataFrame({"s": ["a", "b", "b", "a"]})
PEOPLE = pl.DataFrame({"id": ["p"] * 3 + ["q"] * 2, "t": [0, 1, 2, 0, 2], "s": ["a", "b", "b", "a", "a"]})
ROWS = pl.DataFrame({"a": ["no", "yes", "no"], "b": ["no", "yes", "yes"]})


def kinds(folder: Any) -> dict[str, Callable[[], Any]]:
    def one(theta: Any, query: Any, mechanism: Any = pf.LeakagePropagation, **how: Any) -> Callable[[], Any]:
        data = pf.read_sequences(ONE, "s")
        return lambda: pf.release(data, query, mechanism(theta, data.length).calibrate(query, 1.0, **how))

    def people(query: Any, **how: Any) -> Any:
        data = pf.read_sequences(PEOPLE, "s", subject="id", time="t", max_gap=1, **how)
        return pf.release(data, query, pf.LeakagePropagation(TWO, data.length).calibrate(query, 1.0))

    def each() -> Any:
        data = pf.read_sequences(PEOPLE, "s", subject="id")
        noise = pf.LeakagePropagation(TWO, data.length).calibrate(pf.Histogram(), 1.0)
        return pf.release_each(data, pf.Histogram(), noise, folder / "each.csv", postprocess="valid")

    def rows(mechanism: Any, query: Any) -> Any:
        data = pf.read_rows(ROWS, NETWORK)
        return pf.release(data, query, mechanism(NETWORK, length=data.length).calibrate(query, 1.0))

    window, weighted = pf.Window(pf.Count("b"), 1, 3), pf.Weighted(pf.Count("b"), [1, 2, 0, -1])
    listed = ["a", "b", "b", "a"]
    shaped = pf.LeakagePropagation(THREE, 3).calibrate(pf.CDF(relative=False), 1.0, noise="best")
    return {
        "histogram": one(TWO, pf.Histogram()),
        "any": one(ANY, pf.Count("b")),
        "given": one(GIVEN, pf.Frequency("b")),
        "class": one(CLASS, pf.Sum([0, 3])),
        "transitions": one(TWO, pf.Switches()),
        "quilts": one(TWO, pf.Count("b"), pf.MQMExact),
        "group": one(TWO, pf.Mean([0, 1]), pf.GroupDP),
        "law": one(TWO, pf.Count("b"), pf.Wasserstein),
        "window": lambda: pf.release(listed, window, pf.LeakagePropagation(TWO, 4).calibrate(window, 1.0)),
        "weighted": lambda: pf.release(listed, weighted, pf.LeakagePropagation(TWO, 4).calibrate(weighted, 1.0)),
        "best": lambda: pf.release(["a", "b", "c"], pf.CDF(relative=False), shaped),
        "people": lambda: people(pf.Count("b")),
        "groups": lambda: people(pf.Frequency("b"), by=["id"]),
        "steps of groups": lambda: people(pf.Transitions(), by=["id"]),
        "each": each,
        "rows": lambda: rows(pf.LeakagePropagation, pf.Marginals()),
        "rows by quilts": lambda: rows(pf.MarkovQuilt, pf.Subset(pf.Count("yes"), ["b"])),
    }


def _kept(record: dict[str, Any], changes: list[Edit]) -> ReleaseFields | None:
    """Return the forged record where the writer makes one that holds, and is proved; else None."""
    other = json.loads(json.dumps(record))
    try:
        for edit in changes:
            edit(other)
        made = forged(json.dumps(other).encode())
    except (*BROKEN, RecursionError, MemoryError):
        return None
    found = pf.verify(made)
    return made if found.holds and found.proved else None


@pytest.mark.parametrize("kind", kinds(None))
def test_what_holds_tells_no_more_than_it_says(kind: str, tmp_path: Any, slow: bool) -> None:
    release = kinds(tmp_path)[kind]()
    record = msgspec.to_builtins(release)
    assert told(record) <= release.epsilon  # control: the record itself, and with a tenth of its noise
    less = record["counted"] | {"scale": str(Fraction(record["counted"]["scale"]) / 10)}
    assert told(record | {"counted": less}) > release.epsilon
    rng, single = np.random.default_rng(len(kind)), list(edits(record))
    pairs = [[single[i][1] for i in rng.choice(len(single), 2, replace=False)] for _ in range(400 if slow else 12)]
    chosen = [[edit] for _, edit in (single if slow else single[:: max(1, len(single) // 25)])] + pairs
    kept = 0
    for changes in chosen:
        made = _kept(record, changes)
        if made is not None:
            kept += 1
            assert told(msgspec.to_builtins(made)) <= made.epsilon + 1e-9, made
    assert kept < len(chosen) / 2
