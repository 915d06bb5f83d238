"""Records of measurements of OpenDP: what is read is proved."""

from functools import cache
from typing import Any

import opendp_parts as dp
import pufferfish as pf
from fuzz.mutation import of_json
from fuzz.releases import CHAIN, promised_more
from fuzz.target import Accepted, Target, file

__all__ = ["TARGET"]

_RECORDS = ["rest", "active"] * 10


@cache
def seeds() -> list[bytes]:
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=str), size=20), dp.change_one_distance(), dp.max_divergence()

    def made(bound: Any, loss: float, value: Any, ledger: Any = None) -> bytes:
        measurement = dp.m.make_user_measurement(*space, lambda records: value, lambda d: loss * d)
        return pf.release_measurement(_RECORDS, measurement, bound, 1.0, ledger=ledger).to_json().encode()

    propagation = pf.LeakagePropagation(CHAIN, 20)
    booked = pf.Ledger(propagation, 2.0)
    return [
        made(propagation, 0.1, ["a"]),
        made(pf.MQMExact(CHAIN, 20), 0.05, 3),
        made(propagation, 0.2, {"n": 1.5}, booked),
        made(
            pf.GroupDP(pf.IntervalChain([[0.7, 0.1], [0.2, 0.5]], [[0.9, 0.3], [0.5, 0.8]], states=CHAIN.states), 20),
            0.01,
            1,
        ),
    ]


def one_input(data: bytes) -> None:
    found = pf.MeasurementRelease.from_json(file("measurement.json", data))
    if not found.verify() <= found.epsilon:
        raise Accepted("leakage: more than epsilon")
    promised_more(data, seeds, allowed=["epsilon"])  # any above the leakage is true, if the promise says it too


TARGET = Target("measurements", seeds, one_input, of_json)
