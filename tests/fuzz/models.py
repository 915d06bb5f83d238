"""Model files: a model that is read is one of distributions, and reads back as it is when it is written."""

from functools import cache

import numpy as np

import pufferfish as pf
from fuzz.mutation import of_json
from fuzz.target import Accepted, Target, file, scratch

__all__ = ["TARGET"]

_STEP = [[0.9, 0.1], [0.4, 0.6]]


@cache
def seeds() -> list[bytes]:
    network = pf.BayesianNetwork(
        {"a": pf.CPT(["no", "yes"], [0.8, 0.2]), "b": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.3, 0.7]], ["a"])}
    )
    chain = pf.MarkovChain(_STEP, states=["rest", "active"])
    models = [
        pf.Model(theta=chain, step="1min", fitted_on="0" * 64 + ":"),
        pf.Model(theta=[chain, pf.MarkovChain(_STEP[::-1], [0.25, 0.75], states=["rest", "active"])]),
        pf.Model(theta=pf.MarkovChain(_STEP, "any", states=["<1", ">=1"]), bins=(0.0, 1.0, 2.0)),
        pf.Model(theta=pf.BinaryChainInterval(0.4, 0.6)),
        pf.Model(theta=pf.IntervalChain([[0.8, 0.1], [0.3, 0.6]], [[0.9, 0.2], [0.4, 0.7]])),
        pf.Model(theta=pf.ForgettingClass([3, 9], [0.3, 0.8], ["a", "b"])),
        pf.Model(theta=pf.PeriodicChain([_STEP] * 24, clock="hour", step="1h", states=["a", "b"])),
        pf.Model(theta=pf.HigherOrderChain([_STEP, _STEP[::-1]], states=["a", "b"])),
        pf.Model(theta=pf.StaysChain([[0, 1], [1, 0]], [[(0.5, 0.5), (0.5, 0.75)], [(1, 0.5)]], states=["a", "b"])),
        pf.Model(theta=network),
    ]
    return [_written(model) for model in models]


def _written(model: pf.Model) -> bytes:
    pf.write_model(model, scratch() / "seed.json")
    return (scratch() / "seed.json").read_bytes()


def one_input(data: bytes) -> None:
    model = pf.read_model(file("model.json", data))
    for member in model.theta.members:
        for law in _laws(member):
            if not (np.all(law >= 0) and np.all(np.abs(law.sum(axis=-1) - 1) <= 1e-8)):
                raise Accepted(f"law: a row is no distribution: {law!r}")
    pf.write_model(model, scratch() / "again.json")
    again = pf.read_model(scratch() / "again.json")
    pf.write_model(again, scratch() / "third.json")
    if (scratch() / "again.json").read_bytes() != (scratch() / "third.json").read_bytes():
        raise Accepted("written: a model that is read and written becomes another")


def _laws(member: object) -> list[np.ndarray]:
    if isinstance(member, pf.BayesianNetwork):
        return [np.asarray(cpt.table) for cpt in member.cpts.values()]
    if isinstance(member, pf.MarkovChain):
        return [np.asarray(member.transition_matrix)]
    return []


TARGET = Target("models", seeds, one_input, of_json)
