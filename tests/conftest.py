"""Shared fixtures, and which tests are run.

Without options every test function is run, but for those marked ``slow``; of a parametrised one only some cases, chosen
so that every mechanism, model, start ... occurs (:mod:`grids`), or as many as ``@pytest.mark.grid(keep=12)`` says.
``--slow`` runs everything, ``--quick`` never more cases than that, and no other programs. A test that is named on the
command line (``tests/unit/test_x.py::test_y``) is run with all its cases.
"""

import gc
import signal
from collections import defaultdict
from collections.abc import Callable, Generator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import pufferfish as pf
import spark_cluster
from grids import KEEP, chosen
from pufferfish.data import Base

pytest.register_assert_rewrite("query_checks")
for name, examples in {"slow": 100, "usual": 8, "quick": 5}.items():
    settings.register_profile(name, derandomize=True, deadline=None, print_blob=True, max_examples=examples)

REPOSITORY = Path(__file__).parent.parent
collect_ignore = ["faults"]
"""Programs of their own, which change what they try: not to be loaded beside tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run every test and every case")
    parser.addoption("--quick", action="store_true", help="run few cases of every quick test")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: run only with --slow, or when named on the command line")
    config.addinivalue_line("markers", "grid(keep): how many cases are run without --slow")
    config.addinivalue_line("markers", "spark: needs a Spark cluster; run first, so that one process has them all")
    config.addinivalue_line("markers", "program: starts other programs, not run with --quick")
    settings.load_profile(_tier(config))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as for what a shell starts in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_place)
    tier = _tier(config)
    if tier == "slow" or any("::" in argument for argument in config.args):
        return
    functions: dict[tuple[pytest.Item | None, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        left_out = {"slow"} if tier == "usual" else {"slow", "program"}
        if not any(item.get_closest_marker(name) for name in left_out):
            functions[item.parent, getattr(item, "originalname", None) or item.name].append(item)
    kept = {item for cases in functions.values() for item in _some(cases, tier)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_collection_finish() -> None:
    """What is collected stays until the end: without this, every search for garbage goes through all of it."""
    gc.collect()
    gc.freeze()


def _tier(config: pytest.Config) -> str:
    return "slow" if config.getoption("slow") else "quick" if config.getoption("quick") else "usual"


def _place(item: pytest.Item) -> int:
    """What takes long by itself comes first, and all of it in one process."""
    return 0 if item.get_closest_marker("spark") else 1


def _some(cases: list[pytest.Item], tier: str) -> list[pytest.Item]:
    asked = cases[0].get_closest_marker("grid")
    keep = asked.kwargs["keep"] if asked and tier != "quick" else KEEP
    axes = [dict(case.callspec.params) if hasattr(case, "callspec") else {} for case in cases]
    return [cases[i] for i in chosen(axes, keep)]


@pytest.fixture(scope="session")
def slow(request: pytest.FixtureRequest) -> bool:
    """Whether a test may take its time: for loops and sizes inside a test."""
    return _tier(request.config) == "slow"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, slow: bool) -> Generator[spark_cluster.Cluster]:
    """With --slow a Spark master on this machine and two workers, else what stands for them in one process."""
    spark_cluster.skip_without_spark()
    with spark_cluster.cluster(tmp_path_factory.mktemp("spark"), small=not slow) as found:
        yield found


@pytest.fixture(scope="session")
def spark(cluster: spark_cluster.Cluster, slow: bool) -> Generator[Any]:
    """A Spark session there."""
    with spark_cluster.session(cluster, small=not slow) as session:
        yield session


@pytest.fixture
def two_states() -> pf.MarkovChain:
    return pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])


@pytest.fixture
def sequences_of() -> Callable[..., pf.Sequences]:
    """Sequences made by hand from counts per chain."""

    def make(counts: list[list[int]], states: tuple[str, ...] = ("rest", "active")) -> pf.Sequences:
        k = len(states)
        return pf.Sequences(
            states=states,
            counts=np.array(counts),
            transitions=np.zeros((k, k), dtype=np.int64),
            length=tuple(pf.ChainLength(sum(row), sum(row)) for row in counts),
            subjects=len(counts),
            base=Base(source="by hand", state="state", subject="subject"),
        )

    return make


@pytest.fixture(autouse=True, scope="session")
def an_independent_reader_agrees() -> Generator[None]:
    """Every release that a test makes is read by rules of its own too (:mod:`record_rules`), before it is drawn."""
    from record_rules import contradictions

    release, store = (import_module(f"pufferfish.release.{name}") for name in ("release", "store"))

    def asked(check: Callable[..., Any], record_of: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*given: Any) -> Any:
            found = check(*given)
            wrong = list(contradictions(record_of(found, *given)))
            assert not wrong, f"the independent reader expected that {wrong[0]}"
            return found

        return checked

    with pytest.MonkeyPatch.context() as patch:
        readable = asked(release.Release.check_readable, lambda _, record: record)
        patch.setattr(release.Release, "check_readable", readable)
        patch.setattr(store, "_finish_record", asked(store._finish_record, lambda record, *_: record))
        yield


@pytest.fixture(autouse=True, scope="session")
def noise_is_certified(request: pytest.FixtureRequest) -> Generator[None]:
    """Some of the calibrations that tests make, with --slow all, are proved by the checker too (:mod:`certified`)."""
    from certified import ONE_IN, checking
    from pufferfish.mechanisms.mechanism import Mechanism

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Mechanism, "calibrate", checking(Mechanism.calibrate, 1 if request.config.getoption("--slow") else ONE_IN)
        )
        yield
