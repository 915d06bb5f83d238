"""Records of a release for each subject, with their table of values: neither is taken if the other was changed."""

import random
from collections.abc import Iterator, Sequence
from functools import cache

import pufferfish as pf
from fuzz import mutation
from fuzz.mutation import of_bytes, of_json
from fuzz.releases import CHAIN, promised_more, table
from fuzz.target import Accepted, Target, file, scratch

__all__ = ["TARGET"]

_BETWEEN = b"\n=== values ===\n"


@cache
def seeds() -> list[bytes]:
    found, data = list[bytes](), table()
    for i, (query, valid) in enumerate([(pf.Count("active"), None), (pf.Histogram(), "valid")]):
        noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(query, 1.0)
        path = scratch() / f"values{i}.csv"
        pf.release_each(data, query, noise, path, postprocess=valid)
        found.append(path.with_suffix(".json").read_bytes() + _BETWEEN + path.read_bytes())
    return found


def _records() -> list[bytes]:
    return [seed.partition(_BETWEEN)[0] for seed in seeds()]


def mutate(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    record, between, values = data.partition(_BETWEEN)
    if rng.random() < 0.1:
        return record + between + of_bytes(values, rng, others)
    return of_json(record, rng, [other.partition(_BETWEEN)[0] for other in others]) + between + values


def extremes(data: bytes) -> Iterator[bytes]:
    """Change the record, and not the table."""
    record, between, values = data.partition(_BETWEEN)
    return (changed + between + values for changed in mutation.extremes(record))


def one_input(data: bytes) -> None:
    record, _, values = data.partition(_BETWEEN)
    path, beside = file("each.json", record), file("each.csv", values)
    release = pf.EachRelease.from_json(path)
    str(release)
    if pf.verify(path, values=beside).holds:
        if not any(values == seed.partition(_BETWEEN)[2] for seed in seeds()):
            raise Accepted("values: a table of values was changed, and everything is said to hold")
        promised_more(record, _records)


TARGET = Target("each-subject", seeds, one_input, mutate)
