"""Every public constructor and function, given what it should not be: one clear line, or the same result.

Each argument in turn is replaced by hostile things, and by the same numbers in another guise: read-only, strided,
reversed, column by column, as objects. A new public name has to be named here.
"""

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish._base.frozen import ReadOnly
from pufferfish.errors import PufferfishError

STEP = [[0.9, 0.1], [0.4, 0.6]]
CHAIN = pf.MarkovChain(STEP, states=["a", "b"])
COIN = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["a", "b"])
NETWORK = pf.BayesianNetwork({"u": pf.CPT(["a", "b"], [0.5, 0.5]), "v": pf.CPT(["a", "b"], STEP, ["u"])})
PHASES = pf.PeriodicChain([STEP, STEP[::-1]], [0.5, 0.5], states=["a", "b"])
CLIQUES = pf.Cliques([0.5, 0.25, 0.25], states=["a", "b"])
JOINT = pf.JointDistribution([[0, 0], [1, 1]], [0.5, 0.5])
TABLE = pl.DataFrame({"s": ["a", "b", "b", "a"] * 5, "w": ["x", "y"] * 10})
DATA = pf.read_sequences(TABLE, "s", states=["a", "b"])
OF_STAYS = pf.read_sequences(TABLE, "s", states=["a", "b"], daily=True)
ROWS_TABLE = pl.DataFrame({"u": ["a", "b"] * 5, "v": ["a"] * 10})
ROWS = pf.read_rows(ROWS_TABLE, NETWORK)
EACH = pf.read_sequences(TABLE.sort("w"), "s", subject="w")
COUNT, BOUND = pf.Count("a"), pf.MQMExact(CHAIN, 5)
NOISE = pf.GroupDP(CHAIN, DATA.length).calibrate(COUNT, 1.0)
RELEASE = pf.release(DATA, COUNT, NOISE)
ANOTHER = pf.release(DATA, COUNT, pf.LeakagePropagation(NOISE.theta, DATA.length).calibrate(COUNT, 0.9))


def loss(mechanism: Any) -> Any:
    """Return a mechanism's noise: what of it must not go wrong."""
    return mechanism.calibrate(pf.Count(mechanism.theta.states[0]), 1.0).scale


def of_chains(make: Any, **more: Any) -> tuple[Any, dict[str, Any]]:
    return lambda **given: loss(make(**given)), {"theta": COIN, "length": 5, **more}


BY_GROUP = pf.read_sequences(TABLE, "s", states=["a", "b"], by="w")
GROUPED = pf.release(BY_GROUP, COUNT, pf.GroupDP(CHAIN, BY_GROUP.length).calibrate(COUNT, 1.0))


def listened(listener: Any) -> None:
    with pf.listening(listener):
        pass


CASES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "ApproximateWasserstein": (
        lambda **v: loss(pf.ApproximateWasserstein(**v)),
        {"theta": CLIQUES, "length": None, "delta": 0.01},
    ),
    "BayesianNetwork": (pf.BayesianNetwork, {"cpts": {"u": pf.CPT(["a", "b"], [0.5, 0.5])}}),
    "BinaryChainInterval": (
        pf.BinaryChainInterval,
        {"low": 0.25, "high": 0.75, "states": ("a", "b"), "origin": "here"},
    ),
    "Bouts": (lambda **v: pf.Bouts(**v).bind(["a", "b"], 3).outputs, {"states": ["a"]}),
    "CDF": (pf.CDF, {"relative": True}),
    "CPT": (pf.CPT, {"states": ["a", "b"], "table": STEP, "parents": ["u"]}),
    "ChainClass": (pf.ChainClass, {"members": (CHAIN, PHASES), "origin": "here", "names": ("one", "other")}),
    "ChainLength": (pf.ChainLength, {"steps": 3, "records": 2}),
    "Cliques": (pf.Cliques, {"laws": [0.5, 0.25, 0.25], "states": ["a", "b"]}),
    "Count": (lambda **v: pf.Count(**v).bind(["a", "b"], 3).weights, {"states": ["a"]}),
    "CountIs": (pf.CountIs, {"states": "a", "at_least": 1, "at_most": 3}),
    "EntryDP": of_chains(pf.EntryDP),
    "ExactLaplace": of_chains(pf.ExactLaplace),
    "Fact": (pf.Fact, {"description": "x", "function": bool}),
    "ForgettingClass": (
        pf.ForgettingClass,
        {"steps": [3, 9], "overlap": [0.25, 0.75], "states": ["a", "b"], "origin": "here"},
    ),
    "Frequency": (lambda **v: pf.Frequency(**v).bind(["a", "b"], 3).weights, {"states": ["a"]}),
    "Function": (pf.Function, {"function": len, "labels": "value", "unit": 0.5}),
    "GK16": of_chains(pf.GK16),
    "GivenLaws": (
        pf.GivenLaws,
        {"laws": {"x": {0: 0.5, 1: 0.5}, "y": {1: 1.0}}, "records": 2, "states": ["a", "b"], "query": COUNT},
    ),
    "GroupDP": of_chains(pf.GroupDP, protect=2),
    "HigherOrderChain": (pf.HigherOrderChain, {"tensor": [STEP, STEP[::-1]], "states": ["a", "b"]}),
    "StaysChain": (
        pf.StaysChain,
        {
            "exits": [[0, 1], [1, 0]],
            "stays": [[(0.5, 0.5), (0.5, 0.75)], [(0.75, 0.5), (0.25, 0.25)]],
            "states": ["a", "b"],
        },
    ),
    "Histogram": (pf.Histogram, {"relative": True}),
    "IntervalChain": (
        pf.IntervalChain,
        {"lower": [[0.5, 0.25], [0.25, 0.5]], "upper": [[0.75, 0.5], [0.5, 0.75]], "states": ["a", "b"]},
    ),
    "Joint": (
        lambda **v: pf.Joint(**v).bind(["a", "b"], 4, {"u": ("a", "b"), "v": ("a", "b")}),
        {"records": ["u", "v"], "relative": True},
    ),
    "JointDistribution": (
        pf.JointDistribution,
        {"values": [[0, 0], [1, 1]], "probabilities": [0.5, 0.5], "variables": ["u", "v"]},
    ),
    "LeakagePropagation": of_chains(pf.LeakagePropagation, protect=2, within=[("a", "b")]),
    "Ledger": (pf.Ledger, {"bound": BOUND, "budget": 1.0}),
    "MQMApprox": of_chains(pf.MQMApprox, max_quilt_length=3),
    "MQMExact": of_chains(pf.MQMExact, max_quilt_length=3),
    "Marginals": (lambda **v: pf.Marginals(**v).bind(["a", "b"], ["u"], None), {"records": ["u"], "relative": True}),
    "MarkovChain": (
        pf.MarkovChain,
        {"transition_matrix": STEP, "initial_distribution": [0.25, 0.75], "states": ["a", "b"]},
    ),
    "MarkovQuilt": (
        lambda **v: pf.MarkovQuilt(**v).calibrate(COUNT, 1.0).scale,
        {"theta": NETWORK, "length": None, "max_quilts": 9},
    ),
    "Mean": (lambda **v: pf.Mean(**v).bind(["a", "b"], 3).weights, {"values": [0.5, 1.0]}),
    "Model": (
        pf.Model,
        {
            "theta": pf.MarkovChain(STEP, states=["<1", ">=1"]),
            "bins": [0.0, 1.0, 2.0],
            "step": "1min",
            "fitted_on": "0" * 64 + ":",
        },
    ),
    "ModelClass": (pf.ModelClass, {"members": (NETWORK,), "origin": "here"}),
    "ParticipantDP": (lambda **v: loss(pf.ParticipantDP(**v)), {"length_per_subject": [3, 4], "theta": CHAIN}),
    "PeriodicChain": (
        pf.PeriodicChain,
        {"matrices": [STEP, STEP[::-1]], "initial_distribution": [0.25, 0.75], "states": ["a", "b"]},
    ),
    "Profile": (pf.Profile, {"stretches": [(2, 0.5), (1, 0.25)]}),
    "Quantiles": (pf.Quantiles, {"shares": [0.25, 0.5]}),
    "Quilt": (pf.Quilt, {"nearby": ("u",), "quilt": ("v",), "remote": ()}),
    "RecordIs": (pf.RecordIs, {"record": 0, "states": ["a"]}),
    "Rows": (
        pf.Rows,
        {"nodes": ("u",), "states": {"u": ("a", "b")}, "counts": {"u": [2, 1]}, "records": 3, "base": ROWS.base},
    ),
    "Sequences": (
        pf.Sequences,
        {
            "states": ("a", "b"),
            "counts": [[2, 1]],
            "transitions": [[1, 1], [0, 0]],
            "length": (pf.ChainLength(3, 3),),
            "subjects": 1,
            "base": DATA.base,
        },
    ),
    "StepLoss": (pf.StepLoss, {"step": [0.25, 0.5], "records": 0.5}),
    "Subset": (pf.Subset, {"query": COUNT, "records": ["u"]}),
    "Sum": (lambda **v: pf.Sum(**v).bind(["a", "b"], 3).weights, {"values": [0.5, 1.0]}),
    "Switches": (pf.Switches, {"relative": True}),
    "Transitions": (pf.Transitions, {"relative": True}),
    "Wasserstein": (lambda **v: loss(pf.Wasserstein(**v)), {"theta": CLIQUES, "length": None}),
    "Weighted": (pf.Weighted, {"query": COUNT, "factors": [1, 2]}),
    "Window": (pf.Window, {"query": COUNT, "start": 1, "stop": 3}),
    "check_model": (
        lambda **v: str(pf.check_model(**v).verdict),
        {"model": CHAIN, "source": TABLE, "state": "s", "public": True, "epsilon": 1.0},
    ),
    "check_released": (lambda **v: str(pf.check_released(**v).verdict), {"model": CHAIN, "releases": [RELEASE]}),
    "compare": (
        lambda **v: [row.scale for row in pf.compare(**v)],
        {"theta": CHAIN, "query": COUNT, "epsilon": 1.0, "length": 5, "noise": "equal"},
    ),
    "fit_chain": (pf.fit_chain, {"sequences": DATA, "initial": "stationary", "smoothing": 0.5}),
    "fit_each_subject": (
        lambda **v: pf.fit_each_subject(**v).theta,
        {"source": TABLE, "state": "s", "smoothing": 0.5, "subject": "w"},
    ),
    "fit_forgetting": (
        lambda **v: pf.fit_forgetting(**v).theta,
        {"source": TABLE, "state": "s", "forgets": 3, "smoothing": 5.0},
    ),
    "fit_interval": (pf.fit_interval, {"sequences": DATA, "confidence": 0.75}),
    "fit_stays": (pf.fit_stays, {"sequences": OF_STAYS, "kinds": 2, "smoothing": 0.5}),
    "fit_stays_of_each": (pf.fit_stays_of_each, {"sequences": OF_STAYS, "kinds": 2, "pooling": 0.5}),
    "fit_network": (
        pf.fit_network,
        {"source": ROWS_TABLE, "arrows": [("u", "v")], "columns": ["u"], "smoothing": 0.5, "certainties": ["v"]},
    ),
    "fit_order": (pf.fit_order, {"sequences": DATA, "smoothing": 0.5}),
    "made_up": (lambda **v: pf.made_up(**v).noise, {"data": DATA, "initial": "stationary", "smoothing": 0.5}),
    "max_divergence": (pf.max_divergence, {"p": [0.25, 0.75], "q": [0.5, 0.5]}),
    "overlap": (pf.overlap, {"chain": CHAIN, "steps": [1, 2]}),
    "read_model": (pf.read_model, {"path": "absent.json"}),
    "read_rows": (
        pf.read_rows,
        {"source": ROWS_TABLE, "network": NETWORK, "columns": ["u"], "where": "v == 'a'", "missing": "refuse"},
    ),
    "read_sequences": (
        pf.read_sequences,
        {
            "source": TABLE,
            "state": "s",
            "subject": "w",
            "time": None,
            "max_gap": None,
            "bins": None,
            "where": "w == 'x'",
            "states": ["a", "b"],
            "missing": "unobserved",
        },
    ),
    "robustness": (lambda **v: float(pf.robustness(**v)), {"theta": CHAIN, "belief": COIN, "length": 3}),
    "wasserstein_inf": (pf.wasserstein_inf, {"x": [0.0, 2.0], "p": [0.25, 0.75], "y": [1.0, 3.0], "q": [0.5, 0.5]}),
    # what they return is drawn at random, or a picture: only what they refuse is looked at
    "draw_model": (lambda **v: bool(pf.draw_model(**v)), {"theta": pf.MarkovChain(STEP)}),
    "draw_network": (
        lambda **v: bool(pf.draw_network(**v)),
        {"network": NETWORK, "calibration": None, "node": "u", "quilt": None},
    ),
    "release": (
        lambda **v: pf.release(**v).epsilon,
        {"data": DATA, "query": COUNT, "calibration": NOISE, "warnings": ("w",), "accept": ("public",)},
    ),
    "release_each": (
        lambda **v: pf.release_each(**v).epsilon,
        {"data": EACH, "query": COUNT, "calibration": NOISE, "output": "no-folder/x.csv", "accept": "public"},
    ),
    "release_measurement": (
        pf.release_measurement,
        {"records": ["a"] * 5, "measurement": len, "bound": BOUND, "epsilon": 1.0},
    ),
    "columns": (lambda **v: pf.columns(**v), {"source": TABLE}),
    "read_lengths": (lambda **v: pf.read_lengths(**v).length, {"source": TABLE, "subject": None}),
    "totals": (lambda **v: pf.totals(**v).shape, {"release": GROUPED, "by": ["w"]}),
    "listening": (listened, {"listener": print}),
    "plan": (
        lambda **v: pf.plan(**v).epsilon,
        {
            "data": DATA,
            "query": COUNT,
            "calibration": NOISE,
            "postprocess": None,
            "ledger": None,
            "accept": ("public",),
        },
    ),
    "query": (lambda **v: repr(pf.query(**v)), {"text": "frequency:a", "model": CHAIN, "columns": None}),
    "named_queries": (lambda: len(pf.named_queries()), {}),
    "certify": (lambda **v: pf.certify(**v).price, {"noise": NOISE}),
    "commands_of": (lambda **v: pf.commands_of(**v), {"record": RELEASE, "output": None}),
    "verify": (lambda **v: pf.verify(**v).holds, {"release": RELEASE, "model": None, "ledger": None, "table": None}),
    "series": (
        lambda **v: len(pf.series(**v).rows),
        {"releases": [RELEASE, ANOTHER], "labels": ["a", "b"], "average": 2, "against": None},
    ),
    "verify_together": (lambda **v: pf.verify_together(**v).holds, {"releases": [RELEASE, RELEASE]}),
    "write_model": (pf.write_model, {"model": pf.Model(theta=CHAIN), "path": "no-folder/model.json"}),
}
"""For each public name what makes something comparable, and arguments that are right."""

MADE_BY_THE_PROGRAM = {
    "AloneWitness",
    "Calibration",
    "Certificate",
    "ClusterWitness",
    "CouplingWitness",
    "Coverage",
    "DefendedFit",
    "EachRelease",
    "Finding",
    "ForgettingFit",
    "ForgettingWitness",
    "LawWitness",
    "LeaksTo",
    "MadeUp",
    "MatrixWitness",
    "MeasurementRelease",
    "ModelCheck",
    "NamedQuery",
    "Nearest",
    "NetworkCheck",
    "OverlapAfter",
    "OverlapEstimate",
    "PairCheck",
    "PhaseWitness",
    "PropagationWitness",
    "QuiltWitness",
    "Release",
    "ReleasePlan",
    "ReleaseSeries",
    "ReleasedCheck",
    "ReleasedNumber",
    "Remedy",
    "RicherModel",
    "Robustness",
    "StateStays",
    "SubjectCheck",
    "SubjectsFit",
    "Verdict",
    "Verification",
    "Witness",
}
"""Records that a user reads; from files they are checked (tests/fuzz)."""

ELSEWHERE = {
    "fit_defend",  # tests/unit/fit/test_defend.py: each fit takes a second
    "errors",
    "fit_periodic",
}
"""The module of errors; a function that takes what fit_order takes, on tables with a clock."""


def hostile() -> dict[str, Any]:
    return {
        "NaN": float("nan"),
        "inf": float("inf"),
        "-inf": float("-inf"),
        "-0.0": -0.0,
        "subnormal": 5e-324,
        "complex": 1j,
        "negative": -1,
        "huge": 10**400,
        "true": True,
        "none": None,
        "text": "no such thing",
        "empty text": "",
        "surrogate": "\ud800",
        "two lines": "a\nb",
        "NUL": "\0",
        "bytes": b"a",
        "empty": [],
        "ragged": [[1.0], [0.5, 0.5]],
        "set": {0.5, 1},
        "dict": {"z": 1},
        "generator": (v for v in [0.5, 0.5]),
        "object": object(),
        "type": int,
        "masked": np.ma.array([0.5, 0.5], mask=[True, False]),
        "NaN in a list": [float("nan"), 0.5],
        "inf in a list": [float("inf"), 0.5],
        "complex array": np.array([0.5 + 1j, 0.5]),
        "truths": np.array([True, False]),
        "texts": np.array(["0.5", "0.5"]),
        "objects": np.array([None, object()], dtype=object),
        "times": np.array([1, 2], dtype="datetime64[s]"),
        "0-d": np.array(0.5),
        "3-d": np.zeros((2, 2, 2)),
        "huge in a list": [10**400, 1],
        "nested": [[[[[[[[0.5]]]]]]]],
        "lambda": lambda *a: None,
        "structured": np.zeros(2, dtype=[("x", float)]),
    }


NEVER_A_NUMBER = {
    "NaN",
    "-inf",
    "complex",
    "true",
    "text",
    "empty text",
    "bytes",
    "set",
    "dict",
    "object",
    "type",
    "masked",
    "NaN in a list",
    "complex array",
    "truths",
    "texts",
    "objects",
    "times",
    "lambda",
    "structured",
    "ragged",
}
"""What an argument of numbers refuses, whatever it is."""

ALSO_WORDS = {
    ("MarkovChain", "initial_distribution"),
    ("PeriodicChain", "initial_distribution"),
    ("RecordIs", "record"),
    ("fit_forgetting", "forgets"),
    ("StepLoss", "records"),
}
"""Arguments of numbers that may be other things too."""


AS_WRITTEN = {"MQMApprox", "MQMExact", "MarkovQuilt", "Profile", "StepLoss"}
"""What takes pairs, or a whole number of Python, as it is documented, and may refuse others."""


def numbers(value: Any) -> bool:
    """Whether an argument is a number, or nested lists of them."""
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(map(numbers, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def guises(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the same numbers in other guises."""
    if not isinstance(value, list | tuple):
        yield "numpy", np.float64(value) if isinstance(value, float) else np.int64(value)
        return
    whole = all(isinstance(v, int) for v in np.array(value, dtype=object).flat)
    plain = np.array(value, dtype=np.int64 if whole else np.float64)
    frozen = plain.copy()
    frozen.setflags(write=False)
    wide = np.repeat(plain, 2, axis=-1)
    yield "array", plain
    yield "read-only", frozen
    yield "column by column", np.asfortranarray(plain)
    yield "strided", wide[..., ::2]
    yield "reversed", plain[..., ::-1].copy()[..., ::-1]
    yield "objects", np.array(value, dtype=object)
    yield "big endian", plain.astype(plain.dtype.newbyteorder(">"))
    yield "column", pl.Series(plain) if plain.ndim == 1 else plain.tolist()


def plain(value: Any) -> Any:
    """What a result says, to be compared."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, pf.Ledger):
        return value.budget
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, ReadOnly) and hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value if isinstance(value, bool | int | float | str | None) else repr(value)


def test_every_public_name_is_here() -> None:
    errors = {name for name in pf.__all__ if inspect.isclass(v := getattr(pf, name)) and issubclass(v, BaseException)}
    assert set(pf.__all__) == {*CASES, *MADE_BY_THE_PROGRAM, *ELSEWHERE, *errors}
    for name, (_, right) in CASES.items():
        assert right.keys() <= {*inspect.signature(getattr(pf, name)).parameters, "subject"}, name


def test_hostile_arguments_are_refused_in_one_line(slow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --slow everything in the place of everything, else in turn a sixth of it."""
    monkeypatch.chdir(tmp_path)
    wrong: list[str] = []
    turn = itertools.cycle(range(1 if slow else 6))
    for name, (make, right) in CASES.items():
        for argument, value in right.items():
            for kind, bad in list(hostile().items())[next(turn) :: 1 if slow else 6]:
                where = f"{name}({argument}={kind})"
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("error")
                        make(**(right | {argument: bad}))
                except pf.ReleaseWarning as warned:  # texts of a release were taken, and it says what noise hides
                    taken = (name, argument) == ("release", "warnings") or (name, argument, kind) == (
                        "release",
                        "accept",
                        "empty",
                    )
                    if not taken:
                        wrong.append(f"{where}: {warned}")
                except PufferfishError as error:
                    if "\n" in str(error) or not str(error).strip():
                        wrong.append(f"{where}: {str(error)!r}")
                except BaseException as error:
                    wrong.append(f"{where}: {type(error).__name__}: {error}")
                else:
                    by_name = kind == "dict" and argument.startswith("length")  # a length for each subject
                    if numbers(value) and kind in NEVER_A_NUMBER and (name, argument) not in ALSO_WORDS and not by_name:
                        wrong.append(f"{where} is taken")
    assert not wrong, "\n".join(wrong)


def test_the_same_numbers_in_another_guise_are_the_same() -> None:
    wrong: list[str] = []
    for name, (make, right) in CASES.items():
        if not any(map(numbers, right.values())):
            continue
        try:
            expected = plain(make(**right))
        except PufferfishError:
            continue  # what writes into a folder that is not there
        for argument, value in right.items():
            for kind, same in guises(value) if numbers(value) else ():
                where = f"{name}({argument}={kind})"
                try:
                    found = plain(make(**(right | {argument: same})))
                except PufferfishError as error:
                    if name not in AS_WRITTEN:
                        wrong.append(f"{where} is refused: {error}")
                except BaseException as error:
                    wrong.append(f"{where}: {type(error).__name__}: {error}")
                else:
                    if found != expected:
                        wrong.append(f"{where}: {found!r}, expected {expected!r}")
    assert not wrong, "\n".join(wrong)
