"""A bounded part of fuzzing: the seeds, what was found before, and some changes, always the same ones."""

import importlib
import random
import zlib
from itertools import chain
from pathlib import Path

import pytest

from fuzz.mutation import extremes
from fuzz.run import NAMES
from fuzz.target import finding_of
from pufferfish.errors import PufferfishError
from release_cases import end_searches_soon

FOUND = Path(__file__).parent / "found"

OF_JSON = ["models", "releases", "ledgers", "each-subject", "measurements"]

CHANGES = {"csv": 3, "commands": 4, "ledgers": 8, "each-subject": 6, "releases": 3, "where": 8}
"""How many changes are tried of targets that take longer; of the others 12; fifty times as many with --slow."""

SEEDS = {"releases": 4}
"""Of these, whose pages take seconds, every fourth seed is tried; all with --slow."""

ENDS_THE_PROCESS = {"parquet-allocation"}
"""Faults of libraries that nothing can catch (docs/known_limits.md)."""


@pytest.mark.grid(keep=len(NAMES))
@pytest.mark.parametrize("name", NAMES)
def test_changed_inputs_are_refused_in_one_line_or_sound(
    name: str, slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("resource", reason="limits of Unix")
    if not slow:
        end_searches_soon(monkeypatch)
    target = importlib.import_module(f"fuzz.{NAMES[name]}").TARGET
    seeds, rng = target.seeds()[:: 1 if slow else SEEDS.get(name, 1)], random.Random(zlib.crc32(name.encode()))
    whole = 0
    for seed in seeds:
        try:
            target.one_input(seed)
            whole += 1
        except PufferfishError:  # one of several readings of it
            continue
    assert whole or name in ("csv", "where")
    for path in sorted(FOUND.glob(f"{name}-*")):
        if path.name not in ENDS_THE_PROCESS:
            assert finding_of(target, path.read_bytes()) is None, path.name
    for _ in range(CHANGES.get(name, 12) * (50 if slow else 1)):
        data = target.mutated(rng.choice(seeds), rng)
        found = finding_of(target, data)
        assert found is None, (found, data)


@pytest.mark.grid(keep=len(OF_JSON))
@pytest.mark.parametrize("name", OF_JSON)
@pytest.mark.slow
def test_extreme_numbers_are_refused_in_one_line_or_sound(name: str, slow: bool) -> None:
    """Every number by the least and the largest there are, every list by an empty one: forty of them, or all."""
    pytest.importorskip("resource", reason="limits of Unix")
    module = importlib.import_module(f"fuzz.{NAMES[name]}")
    every = list(chain.from_iterable(map(getattr(module, "extremes", extremes), module.TARGET.seeds())))
    for data in every if slow else random.Random(zlib.crc32(name.encode())).sample(every, 40):
        found = finding_of(module.TARGET, data)
        assert found is None, (found, data)
