"""Secrets of one's own, of Markov chains, against the listing of all databases; secrets that no model takes."""

from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import CASES, Case, dyadic_law, dyadic_matrix
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, QueryError
from query_checks import Asked, Record, all_queries, chain_secrets, check, check_secrets
from query_laws import Databases, count, laplace_loss, within

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [0.5, 0.5])
JOINT = pf.JointDistribution([["0", "1"], ["1", "0"], ["1", "1"]], [0.25, 0.25, 0.5])
NETWORK = pf.BayesianNetwork({"a": pf.CPT([0, 1], [0.5, 0.5]), "b": pf.CPT([0, 1], [[0.5, 0.5], [0.25, 0.75]], ["a"])})


@pytest.mark.parametrize("case", [CASES[1], CASES[4], CASES[6], CASES[11], CASES[17], CASES[21], CASES[24]], ids=str)
def test_secrets_of_chains(case: Case) -> None:
    k, length = len(case.initial), min(case.length, 5)
    databases = Databases.of_chain(list(case.initial), case.transition, length)
    queries = all_queries(k, length)
    queries = [queries[0], queries[2], *queries[4:6]]
    check_secrets(
        lambda kind, secrets: kind(case.chain, length, secrets=secrets), queries, databases, chain_secrets(k, length)
    )


@pytest.mark.parametrize("seed", range(3))
def test_secrets_of_several_chains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    start, matrix, lengths = dyadic_law(rng, 2), dyadic_matrix(rng, 2, 0.2), [3, 2, 2]
    chain = pf.MarkovChain(matrix, start)
    one, two = (Databases.of_chain(list(start), matrix, length) for length in (3, 2))
    cases = [
        ("one", (Record((0, 1), 0), Record((0, 1), 1)), (lambda r: r[1] == 0, lambda r: r[1] == 1)),
        (
            "across",
            (Record((0, 2), 0) & Record((2, 0), 1), Record((1, 1), 1)),
            (lambda r: r[2] == 0 and r[5] == 1, lambda r: r[4] == 1),
        ),
        (
            "all",
            (pf.CountIs(1, at_least=4), pf.CountIs(1, at_most=3)),
            (lambda r: r.count(1) >= 4, lambda r: r.count(1) < 4),
        ),
        (
            "all and one",
            (pf.CountIs(0, 3, 5) & Record((1, 0), 1), Record((2, 1), [0])),
            (lambda r: 3 <= r.count(0) <= 5 and r[3] == 1, lambda r: r[6] == 0),
        ),
    ]
    check_secrets(
        lambda kind, secrets: kind(chain, lengths, secrets=secrets), all_queries(2, 2)[:3], one * two * two, cases
    )


def test_neighbouring_numbers_as_secrets() -> None:
    """Whether 0 or 1, 1 or 2, … records are in a state: many pairs about one count."""
    length = 8
    secrets = [(pf.CountIs(1, n, n), pf.CountIs(1, n + 1, n + 1)) for n in range(length)]
    meant = [(lambda r, n=n: r.count(1) == n, lambda r, n=n: r.count(1) == n + 1) for n in range(length)]
    databases = Databases.of_chain([0.5, 0.5], [[0.75, 0.25], [0.375, 0.625]], length)
    chain = pf.MarkovChain([[0.75, 0.25], [0.375, 0.625]], [0.5, 0.5])
    queries: list[Asked] = [(pf.Count(1), count(1)), (pf.Window(pf.Count(1), 0, 4), within(count(1), 0, 4))]
    check(lambda kind: kind(chain, length, secrets=secrets), queries, lambda ask: databases.pairs(ask, meant))


def test_no_scale_is_called_too_small_that_is_enough() -> None:
    """The lower bound is about any two values of any record; here the secrets say less, and less noise is enough."""
    matrix, start, length = [[0.875, 0.125], [0.375, 0.625]], [0.5, 0.5], 7
    secrets = [(Record(0, 0) & Record(5, 1), Record(0, 1) & Record(5, 1))]
    meant = [(lambda r: r[0] == 0 and r[5] == 1, lambda r: r[0] == r[5] == 1)]
    found = pf.ExactLaplace(pf.MarkovChain(matrix, start), length, secrets=secrets).calibrate(pf.Count(1), 1.0)
    pairs = Databases.of_chain(start, matrix, length).pairs(count(1), meant)
    assert laplace_loss(pairs, found.scale) <= 1 + 1e-12
    assert laplace_loss(pairs, 0.999 * found.scale) > 1
    assert found.lower_bound <= found.scale


# --- refused, and impossible -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "secret", [Record(3, 0), Record(-1, 0), Record("x", 0), Record((0, 7), 0), Record(0, "nobody")], ids=str
)
def test_secrets_about_nothing_are_refused(secret: Any) -> None:
    with pytest.raises(ParameterError, match="there is no"):
        pf.Wasserstein(CHAIN, 3, secrets=[(secret, Record(0, 1))]).distance(pf.Count(1))


@pytest.mark.parametrize(
    "model",
    [
        pytest.param([CHAIN, 3], id="chain"),
        pytest.param([NETWORK], id="network"),
        pytest.param([JOINT], id="joint"),
        pytest.param([pf.Cliques([0.25, 0.5, 0.25])], id="cliques"),
    ],
)
def test_counts_of_states_that_do_not_exist_are_refused(model: list[Any]) -> None:
    """A misspelt state would make a secret that is never true, and its pair would be left out without a word."""
    misspelt = (pf.CountIs("misspelt", at_least=1), pf.CountIs(1, at_least=1))
    sound = (pf.CountIs(1, 0, 0), pf.CountIs(1, at_least=1))
    with pytest.raises(ParameterError, match="misspelt"):
        pf.Wasserstein(*model, secrets=[misspelt, sound]).distance(pf.Count(1))


def test_facts_need_databases_that_are_listed() -> None:
    fact = pf.Fact("first and last are the same", lambda row: row[0] == row[2])
    with pytest.raises(NotApplicableError, match="use a JointDistribution"):
        pf.Wasserstein(CHAIN, 3, secrets=[(fact, Record(0, 1))]).distance(pf.Count(1))
    with pytest.raises(QueryError, match="needs a JointDistribution"):
        pf.Wasserstein(CHAIN, 3).distance(pf.Function(lambda row: 1, "one"))


def test_a_clique_has_nobody_in_no_state() -> None:
    """That at most 0 people are well or ill is impossible, as it is in every other model; the pair is left out."""
    impossible = (pf.CountIs(["0", "1"], at_most=0), Record(0, 1))
    joint = pf.JointDistribution([["0", "1"], ["1", "0"]], [0.5, 0.5])
    for model in (joint, pf.Cliques([0, 1, 0])):
        with pytest.raises(ModelError, match="nothing to hide"):
            pf.Wasserstein(model, secrets=[impossible]).calibrate(pf.Sum([0, 1]), 1.0)
