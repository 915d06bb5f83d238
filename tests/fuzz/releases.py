"""Release records: none whose proof is found to hold promises more than the release that it was made from."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
import polars as pl

import pufferfish as pf
from fuzz.mutation import leaves, of_json
from fuzz.target import Accepted, Target, file, scratch

__all__ = ["TARGET", "promised_more", "table"]

CHAIN = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], states=["rest", "active"])
NETWORK = pf.BayesianNetwork(
    {"a": pf.CPT(["no", "yes"], [0.8, 0.2]), "b": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.3, 0.7]], ["a"])}
)
THREE = pf.MarkovChain(
    [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.02, 0.03, 0.95]], states=["low", "mid", "high"], initial_distribution="any"
)


def table(**options: Any) -> pf.Sequences:
    """Return series of two subjects in two groups."""
    rows = [
        {"id": s, "t": t, "sex": "mf"[s], "state": ["rest", "active"][(t // 3 + s) % 2]}
        for s in range(2)
        for t in range(20 + 10 * s)
    ]
    return pf.read_sequences(pl.DataFrame(rows), "state", subject="id", time="t", **options)


@cache
def seeds() -> list[bytes]:
    data, grouped = table(), table(by=["sex"])
    of = pf.LeakagePropagation(CHAIN, data.length).calibrate
    ledger = pf.Ledger(pf.LeakagePropagation(CHAIN, data.length), 2.0, base=data.base)
    binary = pf.MQMExact(pf.BinaryChainInterval(0.4, 0.6, states=CHAIN.states), data.length)
    interval = pf.IntervalChain([[0.7, 0.1], [0.2, 0.5]], [[0.9, 0.3], [0.5, 0.8]], states=CHAIN.states)
    rows = pf.read_rows(pl.DataFrame({"a": ["no", "yes"] * 20, "b": ["no", "no", "yes", "yes"] * 10}), NETWORK)
    levels = pf.read_sequences(pl.DataFrame({"s": ["low"] * 40 + ["mid"] * 30 + ["high"] * 50}), "s")
    best = pf.GroupDP(THREE, levels.length).calibrate(pf.Histogram(), 1.0, noise="best")
    in_groups = pf.read_sequences(pl.DataFrame({"s": ["low", "mid", "high"] * 40, "g": ["a", "b"] * 60}), "s", by="g")
    joint = pf.JointDistribution([[0, 0], [1, 1], [1, 0]], [0.5, 0.3, 0.2])
    made = [
        pf.release(data, pf.Histogram(), of(pf.Histogram(), 1.0), postprocess="valid"),
        pf.release(data, pf.Count("active"), of(pf.Count("active"), 0.5), ledger=ledger),
        pf.release(data, pf.Transitions(), of(pf.Transitions(), 1.0)),
        pf.release(grouped, pf.Histogram(), of(pf.Histogram(), 1.0), postprocess="valid"),
        pf.release(data, pf.Mean([0, 1.5]), pf.MQMExact(CHAIN, data.length).calibrate(pf.Mean([0, 1.5]), 1.0)),
        pf.release(data, pf.Count("active"), binary.calibrate(pf.Count("active"), 1.0)),
        pf.release(data, pf.Histogram(), pf.LeakagePropagation(interval, data.length).calibrate(pf.Histogram(), 1.0)),
        pf.release(rows, pf.Marginals(), pf.MarkovQuilt(NETWORK, length=rows.length).calibrate(pf.Marginals(), 1.0)),
        pf.release(
            rows,
            pf.Marginals(),
            pf.LeakagePropagation(NETWORK, length=rows.length).calibrate(pf.Marginals(), 1.0),
            postprocess="valid",
        ),
        pf.release(levels, pf.Histogram(), best, postprocess="valid"),
        pf.release(in_groups, pf.Histogram(), best, postprocess="valid"),
        pf.release([1, 0], pf.Sum([0, 1]), pf.ExactLaplace(joint).calibrate(pf.Sum([0, 1]), 1.0)),
    ]
    made.append(_all_zero(pf.release(grouped, pf.Histogram(), of(pf.Histogram(), 1.0))))
    return [release.to_json().encode() for release in made]


def _all_zero(release: pf.Release) -> pf.Release:
    """Return a release whose values are whole numbers of any unit."""
    zeros = [0.0] * len(release.values)
    return msgspec.structs.replace(release, values=zeros, noisy_values=zeros)


MORE: Mapping[str, int] = {
    "epsilon": -1,
    "delta": -1,
    "mechanism.leakage": -1,
    "ledger.spent": -1,
    "noise.scale": 0,
    "noise.unit": 0,
    "noise.noise_multiplier": 0,
    "query.lipschitz": 0,
    "query.divided_by": 0,
    "query.kind": 0,
    "accuracy_95.each": 0,
    "accuracy_95.joint": 0,
    "values.*": 0,
}
"""What a reader goes by, and the change that promises more: -1 is less, 0 any change by more than rounding.

The budget of a ledger is not among them: nothing else in the record tells it, but verify compares it with a ledger.
"""
_UNIT = 1e-4
"""What is no more than rounding: accuracy is given in whole units, which are 1/records at most."""


def _flat(record: Any) -> dict[str, Any]:
    return {
        ".".join("*" if isinstance(k, int) else k for k in path) + f"@{path}": value
        for path, value in leaves(record)
        if not isinstance(value, dict | list)
    }


@cache
def _flat_seeds(seeds: Any) -> list[dict[str, Any]]:
    return [_flat(json.loads(seed)) for seed in seeds()]


def promised_more(data: bytes, seeds: Any, allowed: Sequence[str] = ()) -> None:
    """Refuse an accepted record that says more than the one it was made from, of which it differs in few places."""
    found = _flat(json.loads(data))
    other = min(_flat_seeds(seeds), key=lambda seed: len(_items(found) ^ _items(seed)))
    changed = {k for k, _ in _items(found) ^ _items(other)}
    if len(changed) > 3:
        return  # another release, which could be true
    for key in changed:
        name = key.partition("@")[0]
        if name not in MORE or name in allowed:
            continue
        new, old = found.get(key), other.get(key)
        told = f"{name}: {old!r} became {new!r}, and everything is said to hold; changed: {sorted(changed)}"
        if not (isinstance(new, int | float) and isinstance(old, int | float)):
            raise Accepted(told)
        if abs(new - old) > _UNIT * abs(old) and (MORE[name] == 0 or new < old):
            raise Accepted(told)


def _items(flat: dict[str, Any]) -> set[tuple[str, str]]:
    return {(key, repr(value)) for key, value in flat.items()}


def one_input(data: bytes) -> None:
    path = file("release.json", data)
    release = pf.Release.from_json(path)
    str(release)
    release.report(scratch() / "report.html")
    if pf.verify(path).holds:
        promised_more(data, seeds)


TARGET = Target("releases", seeds, one_input, of_json)
