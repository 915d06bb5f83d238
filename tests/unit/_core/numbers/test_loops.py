"""Every loop there is, interpreted and compiled, says the same to the last bit, on models at the edge of doubles."""

import importlib
import math
import pkgutil
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
import pufferfish._core
from pufferfish._core import divergence
from pufferfish._core.numbers.compiled import Loops, reached, renamed, version
from pufferfish._core.phi.greedy import least_factors
from pufferfish._core.propagation import cluster_plan, clusters
from pufferfish.fit.mixture import StaysSeen, fit_mixture

TINY = 1e-300
EDGES: list[Any] = [
    [[1 - TINY, TINY], [TINY, 1 - TINY]],
    [[0.9, 0.1], [0.4, 0.6]],
    [[TINY, 1.0], [1.0, 0.0]],
    [[0.5, 0.5, 0.0], [1e-160, 0.0, 1.0], [0.25, 0.75, 1e-310]],
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1 - 1e-12, 1e-12, 0.0]],
]


def on_chains() -> None:
    for p in EDGES:
        chain = pf.MarkovChain(p, np.full(len(p), 1 / len(p)))
        for loss in (1e-300, 1.0, 200.0):
            for bound in (pf.MQMExact, pf.LeakagePropagation):
                bound(chain, 4).leakage(loss)
    pf.GK16(pf.MarkovChain([[0.6, 0.4], [0.45, 0.55]]), 6).calibrate(pf.Count("1"), 1.0)
    pf.GK16(pf.MarkovChain([[0.6, 0.4], [0.45, 0.55]]), 6).leakage([0.0, 1e-300, 1.0, 1e300, 0.5, 0.1])
    pf.GK16(pf.MarkovChain([[0.6, 0.4], [0.45, 0.55]]), [pf.ChainLength(9, 4)]).leakage(0.1)


def on_clocks() -> None:
    for p, other in (EDGES[:2], EDGES[1:3]):
        pf.LeakagePropagation(pf.PeriodicChain([p, other], "any"), 50).leakage(0.5)


def on_networks() -> None:
    given: list[Any] = [[1 - TINY, TINY], [0.25, 0.75]]
    two: list[Any] = [[[0.5, 0.5], [TINY, 1.0]], [[1.0, 0.0], [1e-12, 1 - 1e-12]]]
    cpts = {
        "u": pf.CPT(["a", "b"], [0.5, 0.5]),
        "v": pf.CPT(["a", "b"], given, ["u"]),
        "w": pf.CPT(["a", "b"], given, ["u"]),
        "x": pf.CPT(["a", "b"], two, ["v", "w"]),
    }
    for loss in (1e-9, 1.0, 100.0):
        pf.LeakagePropagation(pf.BayesianNetwork(cpts)).leakage(loss)


def one_variable_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters that are too large for Φ as a whole."""
    monkeypatch.setattr(cluster_plan, "_whole", lambda *_: math.inf)
    on_networks()


def on_continua() -> None:
    for start in ("any", "stationary"):
        box = pf.BinaryChainInterval(0.3, 0.6, initial_distribution=start)
        for bound in (pf.MQMExact, pf.LeakagePropagation):
            bound(box, 3).leakage(1.0)
    pf.LeakagePropagation(pf.ForgettingClass(steps=2, overlap=0.5, states=["a", "b"]), 9).leakage(
        [1e-300, 0.5, 0.1] * 3
    )


def on_laws() -> None:
    for law in (pf.Wasserstein, pf.ExactLaplace):
        for p in EDGES[:2]:
            law(pf.MarkovChain(p, [0.5, 0.5]), 4).calibrate(pf.Count("1"), 1.0)


def on_stays() -> None:
    lasted = np.array([1.0, 2.0, 5.0, 40.0, 4000.0])
    for ended in (np.array([3.0, 0.0, 2.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0, 0.0, 0.0])):
        fit_mixture(StaysSeen(lasted, ended, np.array([1.0, 0.0, 0.0, 2.0, 1.0])), 2)


def on_certificates() -> None:
    rows, pairs = np.array(EDGES[0]), np.array([[0, 1], [1, 0]])
    for most in (1.0, 1.5, 40.0):
        bound = np.array([[1.0, most], [most, 1.0]])
        least_factors(rows, pairs, bound, np.arange(2), np.array([1.0, 3.0]))


WORK: list[Callable[[], None]] = [on_chains, on_clocks, on_networks, on_continua, on_laws, on_stays, on_certificates]


MOST = 30
"""So many calls of each loop are made twice."""


def bits(value: Any) -> Any:
    """A result, or what was written, as something to compare; a NaN is a NaN, whatever its payload."""
    if isinstance(value, np.ndarray | np.floating | float):
        array = np.array(value)
        return np.where(np.isnan(array), np.nan, array).tobytes() if array.dtype.kind == "f" else array.tobytes()
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    return None if value is None else int(value)


def copied(value: Any) -> Any:
    """Arrays anew, in the layout they have; tuples of them too."""
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if isinstance(value, tuple):
        parts = [copied(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


@pytest.mark.slow
def test_compiled_loops_do_bit_for_bit_what_they_do_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first calls of each loop are made twice; a loop that nothing here calls fails the test."""
    for module in pkgutil.walk_packages(pufferfish._core.__path__, "pufferfish._core."):
        importlib.import_module(module.name)
    machine = Loops.compiled.func  # type: ignore[attr-defined]
    made: dict[int, SimpleNamespace] = {}
    seen: Counter[str] = Counter()
    differ: list[str] = []

    def twice(name: str, plain: Callable[..., Any], fast: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            seen[name] += 1
            if seen[name] > MOST:
                return fast(*given)
            theirs = copied(given)
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                slow = plain(*theirs)
            found = fast(*given)
            if bits(slow) != bits(found) or bits(theirs) != bits(given):
                differ.append(name)
            return found

        return run

    def both(loops: Loops, work: float = 0) -> SimpleNamespace:
        if id(loops) not in made:
            fast = vars(machine(loops))
            made[id(loops)] = SimpleNamespace(
                **{name: twice(name, plain, fast[name]) for name, plain in vars(loops.plain).items()}
            )
        return made[id(loops)]

    monkeypatch.setattr(Loops, "at", both)
    monkeypatch.setattr(Loops, "compiled", property(both))
    monkeypatch.setattr(divergence, "_MANY", 0)
    for work in WORK:
        work()
    one_variable_at_a_time(monkeypatch)
    assert not differ, Counter(differ)
    assert set(seen) == {name for loops in Loops.made for name in vars(loops.plain)}


def test_kept_machine_code_goes_by_all_that_it_was_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba alone would not notice that a function of another file has changed, or a constant of a third one.

    A file that is replaced while a program runs changes nothing: the program compiles what it imported before.
    """
    inner, outer = tmp_path / "an_inner_loop.py", tmp_path / "an_outer_loop.py"
    inner.write_text("def inner():\n    return 1\n")
    outer.write_text("from an_inner_loop import inner\nLIMIT = 2.0\ndef outer():\n    return inner() + LIMIT\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loop = importlib.import_module("an_outer_loop").outer
    before = version([loop])
    assert before in renamed(loop, before).__qualname__
    inner.write_text("def inner():\n    return 2\n")
    assert version([loop]) == before
    importlib.reload(importlib.import_module("an_inner_loop"))
    loop = importlib.reload(importlib.import_module("an_outer_loop")).outer
    after = version([loop])
    assert after != before
    monkeypatch.setitem(loop.__globals__, "LIMIT", 3.0)
    assert version([loop]) not in (before, after)


def test_what_checks_proofs_is_among_it() -> None:
    files = {Path(each.__code__.co_filename).name for each in reached(vars(clusters.LOOPS.plain).values())}
    assert files == {"certificate.py", "simplex.py", "loops.py"}


def test_loops_are_compiled_for_many_small_searches_too() -> None:
    """A class of hundreds of short chains asks for as many searches, of which none does much."""

    def nothing() -> None: ...

    loops = Loops(nothing, after=100)
    Loops.made.remove(loops)
    vars(loops)["compiled"] = compiled = SimpleNamespace()
    for _ in range(20):
        assert loops.at(50) is loops.plain
        loops.count(50)
    loops.count(50)
    assert loops.at(50) is compiled
