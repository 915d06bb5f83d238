"""Every engine against the true loss of every kind of class: no list of mechanisms, kinds or members is kept here.

Every kind of class of chains has examples, and laws that come near all that it allows (:mod:`paper.audit.laws`). Under
each of these laws one linear program over all densities gives the largest loss that losses of records, or of steps, can
come to. No bound may be below it; and some law must come near, or the examples could not tell which engine is unsound.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from paper.audit.laws import examples_of, kinds_of_chains, some_laws
from propagation_oracle import Array, losses_per_pair, most_telling, supremum, supremum_of_steps
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms import BOUNDS, InfluenceBound
from pufferfish.theta.chain_class import CHAIN_MODELS, MIXED

KINDS = kinds_of_chains()
EXAMPLES = [(kind, name) for kind in sorted(KINDS) for name in examples_of(KINDS[kind])]
SLACK = 1e-7


@cache
def example(kind: str, name: str) -> Any:
    return examples_of(KINDS[kind])[name]


def bounds(theta: Any, length: int) -> Iterator[InfluenceBound]:
    for kind in BOUNDS:
        try:
            yield kind.of(theta, length)
        except NotApplicableError:
            continue


def laws(theta: Any, length: int) -> Iterator[Array]:
    """Laws of all sequences, one axis per record."""
    for first, steps in some_laws(theta, length):
        law = first
        for step in steps:
            law = law[..., None] * step  # axes are lined up from the last one
        yield law


def losses(k: int, length: int) -> dict[str, Any]:
    """A loss of every shape, for so many records."""
    apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) * np.triu(np.full((k, k), 0.5)) + 0.3
    return {
        "number": 0.6,
        "matrix": apart * (1 - np.eye(k)),
        "profile": np.linspace(1.0, 0.1, length),
    }


@pytest.mark.grid(keep=len(EXAMPLES))
@pytest.mark.parametrize(("kind", "name"), EXAMPLES)
def test_no_law_of_a_class_leaks_more_than_any_engine_says(kind: str, name: str, slow: bool) -> None:
    theta = example(kind, name)
    length = (6 if slow else 4) if theta.k == 2 else (4 if slow else 3)
    engines, every = list(bounds(theta, length)), list(laws(theta, length))
    assert engines
    for shape, loss in losses(theta.k, length).items():
        d = losses_per_pair(loss, length, theta.k)
        truth = max(supremum(law, d) for law in most_telling(every, d, len(every) if slow else 3))
        least = min(bound.leakage(loss) for bound in engines)
        assert truth <= least + SLACK, (shape, [(bound.title, bound.leakage(loss)) for bound in engines])
        assert truth >= (0.62 if slow else 0.76) * least, (shape, truth, least)
        if shape == "number":  # records tell of each other: noise for single records would be found out
            assert truth >= 1.2 * float(d.max())


@pytest.mark.grid(keep=len(EXAMPLES))
@pytest.mark.parametrize(("kind", "name"), EXAMPLES)
def test_no_law_of_a_class_leaks_more_of_its_steps(kind: str, name: str, slow: bool) -> None:
    theta = example(kind, name)
    length = 4 if theta.k == 2 else 3
    engines, every = list(bounds(theta, length)), list(laws(theta, length))
    for step, of_records in ((0.5, 0.0), (0.4, 0.3)):
        d = losses_per_pair(of_records, length, theta.k)
        some = most_telling(every, losses_per_pair(of_records + step, length, theta.k), len(every) if slow else 4)
        truth = max(supremum_of_steps(law, d, step) for law in some)
        said = pf.StepLoss(step, of_records * (1 - np.eye(theta.k)))
        least = min(bound.leakage(said) for bound in engines)
        assert truth <= least + SLACK, [(bound.title, bound.leakage(said)) for bound in engines]
        assert truth >= 0.8 * least, (truth, least)


def test_every_kind_has_examples() -> None:
    assert len(KINDS) >= 4
    listed = [theta.kind for theta in examples_of(pf.ChainClass).values()]
    assert {MIXED, *(model.kind for model in CHAIN_MODELS), pf.MarkovChain.kind} <= {*listed}
    assert all(any(kind == each for each, _ in EXAMPLES) for kind in KINDS)
