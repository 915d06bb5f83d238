"""Ledgers: none that was changed is taken; one with a digest that fits says what its entries leak, and never falls."""

import json
import random
from collections.abc import Iterator, Sequence
from functools import cache

import pufferfish as pf
from fuzz import mutation
from fuzz.mutation import of_json
from fuzz.releases import CHAIN, NETWORK, table
from fuzz.target import Accepted, Target, file, scratch
from pufferfish.ledger.kept import with_digest

__all__ = ["TARGET"]


@cache
def seeds() -> list[bytes]:
    data = table()
    bound = pf.LeakagePropagation(CHAIN, data.length)
    chains = pf.Ledger(bound, 3.0, base=data.base)
    for query in (pf.Count("active"), pf.Histogram(), pf.Transitions()):
        chains.spend(bound.calibrate(query, 0.25))
    some = pf.Ledger(bound, 3.0, base=data)
    pf.release(table(where="t < 10"), pf.Count("rest"), bound.calibrate(pf.Count("rest"), 0.5), ledger=some)
    rows = pf.MarkovQuilt(NETWORK, length=10)
    network = pf.Ledger(rows, 2.0)
    network.spend(rows.calibrate(pf.Marginals(), 1.0))
    return [_written(ledger) for ledger in (chains, some, network, pf.Ledger(pf.GroupDP(CHAIN, 9), 1.0))]


def _written(ledger: pf.Ledger) -> bytes:
    path = scratch() / "seed.json"
    path.unlink(missing_ok=True)
    ledger.save(path)
    return path.read_bytes()


def mutate(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Change a ledger, mostly as somebody would who knows how to make the digest fit."""
    found = of_json(data, rng, others)
    try:
        return with_digest(found) if rng.random() < 0.85 else found
    except ValueError:
        return found


def extremes(data: bytes) -> Iterator[bytes]:
    """Change what the digest is of, and make it fit."""
    for changed in mutation.extremes(data):
        try:
            yield with_digest(changed)
        except ValueError:
            yield changed


def one_input(data: bytes) -> None:
    path = file("book.json", data)
    ledger = pf.Ledger.open(path)
    if with_digest(data) != data:
        raise Accepted("digest: a ledger was taken whose digest does not fit")
    spent, leaks = ledger.spent, ledger._leakage(ledger._book, ledger.entries)
    if spent < leaks * (1 - 1e-5):
        raise Accepted(f"spent: {spent} are said to be spent, and the entries leak {leaks}")
    if json.loads(data)["entries"] and spent > ledger.budget * (1 + 1e-9):
        raise Accepted(f"budget: {spent} are spent of {ledger.budget}")
    query = pf.Marginals() if ledger.bound.networks else pf.Count(ledger.bound.theta.states[-1])
    ledger.spend(ledger.bound.calibrate(query, 0.125))
    if not ledger.spent >= spent * (1 - 1e-3):
        raise Accepted(f"falls: {spent} were spent, and after one release more {ledger.spent}")


TARGET = Target("ledgers", seeds, one_input, mutate)
