"""Everything a proof rests on is read-only: every public class is walked, and every part of it tried.

Whatever a user may try short of tricks such as ``object.__setattr__`` is refused, or changes a copy: attributes set and
deleted, items assigned, arrays written, the inputs of constructors changed afterwards, copies made. The noise and the
answer stay what they were.
"""

import contextlib
import copy
import dataclasses
import pickle
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import opendp_parts as dp
import pufferfish as pf
from pufferfish._base.frozen import read_only
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms import MECHANISMS, Mechanism
from query_examples import EXAMPLES

REFUSALS = (AttributeError, TypeError, ValueError)
STEP = [[0.9, 0.1], [0.4, 0.6]]
CHAIN = pf.MarkovChain(STEP, [0.5, 0.5], states=["a", "b"])
COIN = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["a", "b"])
NETWORK = pf.BayesianNetwork({"u": pf.CPT(["a", "b"], [0.5, 0.5]), "v": pf.CPT(["a", "b"], STEP, ["u"])})
JOINT = pf.JointDistribution([["a", "a"], ["b", "a"], ["b", "b"]], [0.5, 0.25, 0.25])
CLIQUES = pf.Cliques([0.1, 0.15, 0.5, 0.15, 0.1], states=["a", "b"])
LAWS = pf.GivenLaws({"x": {0: 0.5, 1: 0.5}, "y": {1: 0.5, 2: 0.5}}, records=2, states=["a", "b"], query=pf.Count("b"))
BINARY, INTERVAL = (
    pf.BinaryChainInterval(0.4, 0.6),
    pf.IntervalChain([[0.8, 0.1], [0.3, 0.6]], [[0.9, 0.2], [0.4, 0.7]]),
)
FORGETTING = pf.ForgettingClass(3, 0.4, ["a", "b"])
STAYS = pf.StaysChain([[0, 1], [1, 0]], [[(0.5, 0.5), (0.5, 0.75)], [(1, 0.5)]], states=["a", "b"])
PHASES = pf.PeriodicChain([STEP, STEP[::-1]], [0.5, 0.5], states=["a", "b"])
SUM = pf.Sum({"a": 0, "b": 1})
TABLE = pl.DataFrame({"u": ["a", "b"] * 5, "v": ["a"] * 10})
ROWS = pf.read_rows(TABLE, NETWORK)
SEQUENCES = pf.read_sequences(pl.DataFrame({"s": ["a", "b", "b", "a"] * 5}), "s", states=["a", "b"])
ON_ROWS = pf.MarkovQuilt(NETWORK, length=10)
BOUND = pf.MQMExact(CHAIN, SEQUENCES.length)


def _measured() -> pf.MeasurementRelease:
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=str), size=20), dp.change_one_distance(), dp.max_divergence()
    first = dp.m.make_user_measurement(*space, lambda records: ["a"], lambda d: 0.0)
    return pf.release_measurement(["a", "b"] * 10, first, BOUND, 1.0)


def _each() -> pf.EachRelease:
    data = pf.read_sequences(pl.DataFrame({"id": [1, 1, 2, 2], "s": ["a", "b", "b", "a"]}), "s", subject="id")
    noise = pf.GroupDP(CHAIN, data.length).calibrate(pf.Count("a"), 1.0)
    with tempfile.TemporaryDirectory() as folder:
        return pf.release_each(data, pf.Count("a"), noise, Path(folder) / "values.csv")


def _ledger() -> pf.Ledger:
    ledger = pf.Ledger(ON_ROWS, budget=3.0)
    ledger.spend(ON_ROWS.calibrate(pf.Marginals(), 1.0))
    return ledger


def mechanisms() -> dict[str, Mechanism]:
    """Every mechanism on every one of some models that it covers."""
    models = {"chain": (CHAIN, 30), "coin": (COIN, 30), "interval": (BINARY, 30), "network": (NETWORK, 10)}
    found: dict[str, Mechanism] = {}
    for make in MECHANISMS:
        for name, (theta, length) in (models | {"joint law": (JOINT, None)}).items():
            with contextlib.suppress(NotApplicableError):
                found[f"{make.__name__} of a {name}"] = make.of(theta, length)
    return found


@cache
def things() -> dict[str, Any]:
    """One of every public class."""
    subjects = pf.fit_each_subject(pl.DataFrame({"s": ["a", "b", "b", "a"] * 5, "w": ["x"] * 20}), "s", subject="w")
    daily = pf.read_sequences(pl.DataFrame({"s": ["a", "b", "b", "a"] * 9}), "s", daily=True)
    defended = pf.fit_defend(daily)
    checked = pf.check_model(CHAIN, pl.DataFrame({"s": list("abba" * 5)}), "s", public=True)
    of_rows = pf.check_model(NETWORK, TABLE, public=True)
    of_steps = pf.release(SEQUENCES, pf.Transitions(), BOUND.calibrate(pf.Transitions(), 1.0))
    fitted = pf.fit_forgetting(pl.DataFrame({"s": ["a", "b", "b", "a"] * 5}), "s", 3)
    return {
        "CPT": pf.CPT(["a", "b"], STEP, ["u"]),
        "MarkovChain": CHAIN,
        "BayesianNetwork": NETWORK,
        "JointDistribution": JOINT,
        "Cliques": CLIQUES,
        "GivenLaws": LAWS,
        "BinaryChainInterval": BINARY,
        "IntervalChain": INTERVAL,
        "ForgettingClass": FORGETTING,
        "ChainClass": pf.ChainClass([CHAIN]),  # type: ignore[arg-type]
        "PeriodicChain": PHASES,
        "HigherOrderChain": pf.HigherOrderChain([STEP, STEP[::-1]], states=["a", "b"]),
        "StaysChain": STAYS,
        "ChainClass of mixed kinds": pf.ChainClass([CHAIN, PHASES]),  # type: ignore[arg-type]
        "ModelClass": pf.ModelClass([NETWORK]),  # type: ignore[arg-type]
        "ChainLength": pf.ChainLength(3, 2),
        "Quilt": pf.Quilt(["u"], ["v"], []),  # type: ignore[arg-type]
        "RecordIs": pf.RecordIs("u", ["a"]),
        "CountIs": pf.CountIs("a", 1),
        "Fact": pf.Fact("x", lambda row: True),
        "Model": pf.Model(theta=pf.MarkovChain(STEP, states=["<1", ">=1"]), bins=[0, 1, 2]),  # type: ignore[arg-type]
        **{f"{query!r}": query for queries in EXAMPLES.values() for query in queries},
        "Subset": pf.Subset(pf.Count("a"), ["u"]),
        "Weighted": pf.Weighted(pf.Count("a"), [1, 2]),
        "Window": pf.Window(pf.Count("a"), 0, 2),
        "StepLoss": pf.StepLoss((0.1, 0.2), 0.5),
        "Function": pf.Function(lambda row: 1),
        "Profile": pf.Profile([(2, np.array([[0.0, 1.0], [1.0, 0.0]])), (1, 0.5)]),
        **mechanisms(),
        "ParticipantDP": pf.ParticipantDP([3], theta=CHAIN),
        "ApproximateWasserstein": pf.ApproximateWasserstein(CLIQUES, delta=1e-3),
        "Calibration": BOUND.calibrate(SUM, 1.0),
        "Certificate": pf.certify(BOUND.calibrate(SUM, 1.0)),
        "calibration of the best noise": pf.LeakagePropagation(CHAIN, 3).calibrate(pf.Histogram(), 1.0, noise="best"),
        "calibration of a network": ON_ROWS.calibrate(pf.Marginals(), 1.0),
        "Sequences": SEQUENCES,
        "Rows": ROWS,
        "EachRelease": _each(),
        "MeasurementRelease": _measured(),
        "Verification": _each().verify(),
        "Finding": _each().verify().findings[0],
        "Release": pf.release(ROWS, pf.Marginals(), ON_ROWS.calibrate(pf.Marginals(), 1.0)),
        "ReleasePlan": pf.plan(ROWS, pf.Marginals(), ON_ROWS.calibrate(pf.Marginals(), 1.0)),
        "NamedQuery": pf.named_queries()[0],
        "ReleaseSeries": pf.series(
            [pf.release(ROWS, pf.Marginals(), ON_ROWS.calibrate(pf.Marginals(), e)) for e in (1.0, 1.1)]
        ),
        "Robustness": pf.robustness(CHAIN, CHAIN, 3),
        "Ledger": _ledger(),
        "Witness": pf.Witness(theta=0, length=3),
        "AloneWitness": pf.AloneWitness(theta=0, length=3),
        "QuiltWitness": BOUND.calibrate(SUM, 1.0).witness,
        "PropagationWitness": pf.LeakagePropagation(CHAIN, 3).calibrate(SUM, 1.0).witness,
        "ForgettingWitness": pf.LeakagePropagation(FORGETTING, 3).calibrate(SUM, 1.0).witness,
        "PhaseWitness": pf.LeakagePropagation(PHASES, 3).calibrate(SUM, 1.0).witness,
        "ClusterWitness": pf.LeakagePropagation(NETWORK).calibrate(pf.Marginals(), 1.0).witness,
        "MatrixWitness": pf.MatrixWitness(theta=0, length=3, node=1),
        "CouplingWitness": pf.CouplingWitness(theta=0, length=3, distance=2.0),
        "LawWitness": pf.LawWitness(theta=0, length=3),
        "ForgettingFit": fitted,
        "SubjectsFit": subjects,
        "DefendedFit": defended,
        "Coverage": defended.coverage,
        "MadeUp": subjects.made_up,
        "ModelCheck": checked,
        "ReleasedCheck": (held := pf.check_released(CHAIN, of_steps)),
        "ReleasedNumber": held.numbers[0],
        "LeaksTo": held.leaks[0],
        "NetworkCheck": of_rows,
        "PairCheck": of_rows.arrows[0],
        "SubjectCheck": checked.subjects[0],
        "StateStays": checked.stays[0],
        "OverlapAfter": checked.overlaps[0],
        "RicherModel": checked.richer[0],
        "Verdict": checked.verdict,
        "Remedy": checked.verdict.remedies[0],
        "OverlapEstimate": fitted.estimates[0],
        "Nearest": pf.Nearest(gap=0.1, transition_matrix=((0.5, 0.5), (0.5, 0.5))),
    }


LEFT_OUT = {"lower_bound", "inference", "time_reversal"}
"""What takes a while, the machinery of core, and a chain that has a time reversal itself, and so on."""


def test_every_public_class_is_walked() -> None:
    public = {name for name in pf.__all__ if isinstance(getattr(pf, name), type)}
    errors = {name for name in public if issubclass(getattr(pf, name), BaseException)}
    assert public - errors <= {type(thing).__name__ for thing in things().values()}


def plain(value: Any) -> Any:
    """What a value says, so that it can be compared later."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return [(repr(key), plain(part)) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return repr(value) if isinstance(value, str | int | float | None) else type(value).__name__


def parts(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in dir(type(value)):
        if name.startswith("_") or name in LEFT_OUT:
            continue
        try:
            part = getattr(value, name)
        except pf.PufferfishError:  # a property that this one lacks
            continue
        if not callable(part):
            found[name] = part
    return found | {
        name: part
        for name, part in getattr(value, "__dict__", {}).items()
        if not name.startswith("_") and name not in LEFT_OUT
    }


def attempts(value: Any) -> list[Callable[[], Any]]:
    """Ways to change an array, a mapping or a list in place."""
    if isinstance(value, np.ndarray):
        return [
            lambda: value.__setitem__(..., 7),
            lambda: value.fill(7),
            lambda: (value.setflags(write=True), value.__setitem__(..., 7)),
            lambda: value.base is not None and np.asarray(value.base).__setitem__(..., 7),
            lambda: value.view().__setitem__(..., 7),
            lambda: np.add(value, 1, out=value, casting="unsafe"),
            lambda: value.sort(),
        ]
    if isinstance(value, dict):
        key = next(iter(value), "x")
        return [
            lambda: value.__setitem__(key, 7),
            lambda: value.__delitem__(key),
            lambda: value.update({key: 7}),
            lambda: value.__ior__({key: 7}),
            value.clear,
            value.popitem,
            lambda: value.pop(key),
            lambda: value.setdefault("new", 7),
        ]
    if isinstance(value, list):
        return [
            lambda: value.__setitem__(0, 7),
            lambda: value.append(7),
            lambda: value.__iadd__([7]),
            lambda: value.__imul__(2),
            value.clear,
            value.reverse,
            lambda: value.insert(0, 7),
            value.pop,
            lambda: value.extend([7]),
        ]
    return []


def walk(value: Any, path: str, again: Callable[[], Any], seen: set[int]) -> None:
    """Try everything on a value and on all that is in it; ``again`` asks for it anew."""
    before = plain(again())
    for attempt in attempts(value):
        try:
            attempt()
        except (*REFUSALS, KeyError, IndexError):  # the last two of fresh ones that are empty
            pass
        assert plain(again()) == before, f"{path} was changed"
    value = again()  # what was changed may have been a copy
    if isinstance(value, dict):
        for key in list(value):
            walk(value[key], f"{path}[{key!r}]", lambda key=key: again()[key], seen)
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value[:3]):
            walk(part, f"{path}[{i}]", lambda i=i: again()[i], seen)
    elif type(value).__module__.startswith("pufferfish") and not isinstance(value, type) and id(value) not in seen:
        seen.add(id(value))
        for name, part in parts(value).items():
            for change in (
                lambda name=name, part=part: setattr(value, name, part),
                lambda name=name: delattr(value, name),
            ):
                with pytest.raises(REFUSALS):
                    change()
            walk(part, f"{path}.{name}", lambda name=name: getattr(value, name), seen)
        if not isinstance(value, pf.Ledger):
            with pytest.raises(REFUSALS):
                value.something_new = 1


def test_nothing_of_it_can_be_changed() -> None:
    for name, thing in things().items():
        walk(thing, name, lambda thing=thing: thing, set())


def test_a_property_cannot_be_given_before_it_is_computed() -> None:
    chain = pf.MarkovChain(STEP)
    for name in ("stationary_distribution", "is_reversible", "eigengap"):
        with pytest.raises(AttributeError):
            setattr(chain, name, 0.5)

    class Mine(pf.MarkovChain):
        """A class below one of the package's is no way round."""

    with pytest.raises(AttributeError, match="Mine is read-only: cannot set 'eigengap'; make a new one"):
        Mine(STEP).eigengap = 0.5  # type: ignore[misc]


def test_the_case_of_the_audit() -> None:
    """``network.cpts["b"] = …`` was accepted, and a release at ε = 1 had a true loss of 1.631."""
    before = pf.MarkovQuilt(NETWORK).calibrate(pf.Count("b"), 1.0).scale
    with pytest.raises(TypeError, match="this mapping is read-only"):
        NETWORK.cpts["v"] = pf.CPT(["a", "b"], [[1, 0], [0, 1]], ["u"])  # type: ignore[index]
    with pytest.raises(ValueError, match="read-only"):
        NETWORK.cpts["v"].table[0, 0] = 0.5
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        NETWORK.cpts["v"].table.setflags(write=True)
    assert pf.MarkovQuilt(NETWORK).calibrate(pf.Count("b"), 1.0).scale == before


def test_inputs_that_are_changed_afterwards() -> None:
    matrix, law = np.array(STEP), np.array([0.5, 0.5])
    cpts = {"u": pf.CPT(["a", "b"], law), "v": pf.CPT(["a", "b"], matrix, ["u"])}
    values, weights, factors = {"a": 0.0, "b": 1.0}, [0.0, 1.0], [1, 2, 3]
    chains, laws = [pf.MarkovChain(matrix, law, states=["a", "b"])], {"x": {0: 0.5, 1: 0.5}, "y": {1: 0.5, 2: 0.5}}
    lower, upper, loss = matrix - 0.05, matrix + 0.05, np.array([[0.0, 1.0], [1.0, 0.0]])
    probabilities, rows = [0.5, 0.25, 0.25], [["a", "a"], ["b", "a"], ["b", "b"]]
    made: list[Any] = [
        *(chains[0], pf.BayesianNetwork(cpts), pf.Sum(values), pf.Mean(weights), pf.Weighted(pf.Count("b"), factors)),
        pf.ChainClass(chains),  # type: ignore[arg-type]
        pf.GivenLaws(laws, records=2, states=["a", "b"], query=pf.Count("b")),
        *(pf.IntervalChain(lower, upper), pf.Profile([(3, loss)]), pf.JointDistribution(rows, probabilities)),
    ]
    before = [pickle.dumps(thing) for thing in made]
    for array in (matrix, law, lower, upper, loss):
        array[...] = 0.25
    cpts["v"] = cpts["u"]
    values["b"], weights[1], factors[0], probabilities[0], rows[0][0] = 9.0, 9.0, 9, 0.9, "b"
    laws["x"][0] = 0.9
    chains.clear()
    assert [pickle.dumps(thing) for thing in made] == before


def test_copies_are_read_only_too() -> None:
    for name, thing in things().items():
        copies = []
        if name not in {"Ledger", "Fact", "Function"}:  # a ledger is not copied, a lambda is not pickled
            copies.append(pickle.loads(pickle.dumps(thing)))
        if name != "Ledger":
            copies += [copy.copy(thing), copy.deepcopy(thing)]
        if dataclasses.is_dataclass(thing):
            copies.append(dataclasses.replace(thing))  # type: ignore[type-var]
        for other in copies:
            assert type(other) is type(thing)
            assert {n: plain(p) for n, p in parts(other).items()} == {n: plain(p) for n, p in parts(thing).items()}
            walk(other, f"copy of {name}", lambda other=other: other, set())


def test_replaced_parts_are_checked_as_in_the_constructor() -> None:
    with pytest.raises(pf.PufferfishError, match=r"sums to 1\.1"):
        dataclasses.replace(CHAIN, transition_matrix=[[0.9, 0.2], [0.4, 0.6]])
    with pytest.raises(pf.PufferfishError, match="is not a node"):
        dataclasses.replace(NETWORK, cpts={"v": pf.CPT(["a", "b"], STEP, ["u"])})
    calibration = things()["calibration of a network"]
    for change in ({"unit_scale": calibration.unit_scale / 2}, {"epsilon": 0.5}):
        with pytest.raises(pf.PufferfishError):
            pf.release(ROWS, pf.Marginals(), dataclasses.replace(calibration, **change))


def test_noise_and_answer_are_unchanged_after_all_that() -> None:
    """Fresh objects, walked, then used: against objects that nobody touched."""

    def fresh() -> tuple[Any, ...]:
        network = pf.BayesianNetwork({"u": pf.CPT(["a", "b"], [0.5, 0.5]), "v": pf.CPT(["a", "b"], STEP, ["u"])})
        chain, query = pf.MarkovChain(STEP, [0.5, 0.5], states=["a", "b"]), pf.Sum({"a": 0, "b": 3})
        return network, chain, query, pf.MarkovQuilt(network, length=10), pf.LeakagePropagation(chain, 20)

    touched, untouched = fresh(), fresh()
    for thing in touched:
        walk(thing, type(thing).__name__, lambda thing=thing: thing, set())
    (_, _, query, *bounds), (_, _, other, *others) = touched, untouched
    for mine, its in zip(bounds, others, strict=True):
        here, there = mine.calibrate(query, 1.0), its.calibrate(other, 1.0)
        assert here.scale == there.scale
        assert here.prove_leakage() == there.prove_leakage()
        states = [0, 1] * (len(mine.networks[0].nodes) // 2 if mine.networks else 10)
        assert here.linear.value(states) == there.linear.value(states)


def test_memory_of_arrays_is_immutable() -> None:
    kept = read_only(np.arange(6.0).reshape(2, 3).T)
    assert kept.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert read_only(kept) is kept
    assert read_only(np.zeros((0, 2))).shape == (0, 2)


def test_what_a_network_computed_of_itself_cannot_be_changed() -> None:
    """Separation in it decides which quilts there are: a proof rests on it."""
    network = pf.BayesianNetwork(
        {"a": pf.CPT([0, 1], [0.5, 0.5]), "b": pf.CPT([0, 1], [[0.9, 0.1], [0.2, 0.8]], ["a"])}
    )
    kept: Any = network.inference
    for owner, name in ((kept, "dag"), (kept.dag, "parents"), (kept.dag, "children"), (kept.dag, "order")):
        before = getattr(owner, name)
        with pytest.raises(AttributeError, match="read-only"):
            setattr(owner, name, ())
        with pytest.raises(AttributeError, match="read-only"):
            delattr(owner, name)
        assert getattr(owner, name) is before
