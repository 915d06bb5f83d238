"""BIF files: a network that is read is made of distributions."""

import gzip
import random
from collections.abc import Sequence

import numpy as np

import pufferfish as pf
from fuzz.mutation import of_text
from fuzz.target import Accepted, Target, file

__all__ = ["TARGET"]

_CANCER = """
// written by hand, with quirks
network "Cancer net" { property author = me; property "quoted ; semicolon"; }
/* blocks may be
   mixed */ variable Pollution { type discrete[2] {low,high}; property position = (1, 2) ; }
probability ( Pollution ) { table 9.0e-1 .1; }
probability ( Cancer | Pollution, Smoker ) {
  default 0.3333, 0.3333, 0.3333; // all rows that do not follow
  (low, True) 0.03 0.97 0;
  (high, True) 0.05, 0.95, 0.0;
  property note of mine;
}
variable Smoker { property first; type discrete [ 2 ] { True, False }; }
variable Cancer { type discrete [ 3 ] { <5, 5-12, "12+ (old)" }; }
variable "X ray" { type discrete [ 2 ] { Asy/Patch, "table" }; }
probability ( "X ray" | Smoker Pollution ) { table 0.1, 0.2, 0.3, 0.4, 0.9, 0.8, 0.7, 0.6; }
probability ( Smoker ) { table 0.3, 0.7; }
"""
_RAIN = """network unknown { }
variable rain { type discrete [ 2 ] { yes, no }; }
variable wet { type discrete [ 2 ] { yes, no }; }
probability ( rain ) { table 0.2, 0.8; }
probability ( wet | rain ) { (yes) 0.9, 0.1; (no) 0.1, 0.9; }
"""
_PARTS = """network variable probability property type discrete default table { } ( ) [ ] | , ; "
// /* */ <5 0 1 1.0 .5 1e-3
1e9999 -1 NaN inf 0.333 99999999999 rain wet yes no (yes) \x00 \n é""".split()
_change = of_text(
    [*_PARTS, "variable x { type discrete [ 2 ] { a, b }; }\n", "probability ( x | rain ) { table 1; }\n"]
)


def mutate(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    packed = data.startswith(b"\x1f\x8b")
    if packed and rng.random() < 0.7:
        try:
            return gzip.compress(_change(gzip.decompress(data), rng, others), mtime=0)
        except Exception:
            return _change(data, rng, others)
    found = _change(data, rng, others)
    return gzip.compress(found, mtime=0) if not packed and rng.random() < 0.03 else found


def one_input(data: bytes) -> None:
    network = pf.BayesianNetwork.from_bif(file("network.bif", data))
    for node, cpt in network.cpts.items():
        table = np.asarray(cpt.table)
        if not (np.all(table >= 0) and np.all(np.abs(table.sum(axis=-1) - 1) <= 1e-8)):
            raise Accepted(f"law: the rows of {node!r} are no distributions: {table.tolist()}")
        if table.shape[-1] != len(cpt.states):
            raise Accepted(f"shape: {node!r} has {len(cpt.states)} states, and a table of shape {table.shape}")


TARGET = Target("bif", lambda: [_CANCER.encode(), _RAIN.encode()], one_input, mutate)
