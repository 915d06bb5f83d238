"""Chains of other libraries: names and orders of states, first laws, sparse matrices; real packages where they are."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import pufferfish as pf

P = np.array([[0.7, 0.2, 0.1], [0.05, 0.8, 0.15], [0.3, 0.3, 0.4]])
SERIES = ["walk", "rest", "rest", "walk", "run", "rest", "walk", "run", "walk", "rest", "rest"]


class Sparse:
    def toarray(self):
        return P


def expected(series):
    names = sorted(set(series))
    counts = {(a, b): 0 for a in names for b in names}
    for pair in pairwise(series):
        counts[pair] += 1
    return {(a, b): counts[a, b] / sum(counts[a, c] for c in names) for a, b in counts}


def named(chain):
    return {
        (a, b): chain.transition_matrix[i, j] for i, a in enumerate(chain.states) for j, b in enumerate(chain.states)
    }


def test_hidden_chains_of_hmmlearn():
    model = SimpleNamespace(startprob_=np.array([0.5, 0.5, 0.0]), transmat_=P)
    chain = pf.MarkovChain.from_hmmlearn(model, states=["a", "b", "c"])
    assert (chain.states, chain.initial_distribution.tolist()) == (("a", "b", "c"), [0.5, 0.5, 0.0])
    assert chain.transition_matrix == pytest.approx(P)
    with pytest.raises(pf.ModelError, match="expected a fitted model"):
        pf.MarkovChain.from_hmmlearn(object())
    hmm = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn is not installed")
    real = hmm.GaussianHMM(n_components=3)
    with pytest.raises(pf.ModelError, match="fit it first"):
        pf.MarkovChain.from_hmmlearn(real)
    real.startprob_, real.transmat_ = np.array([1.0, 0, 0]), P
    assert pf.MarkovChain.from_hmmlearn(real).transition_matrix == pytest.approx(P)


def test_states_that_deeptime_left_out_keep_the_others_names():
    counted = SimpleNamespace(state_symbols=np.array([0, 2, 5]))
    model = SimpleNamespace(transition_matrix=Sparse(), has_count_model=True, count_model=counted)
    chain = pf.MarkovChain.from_deeptime(model)
    assert (chain.states, chain.initial_distribution) == (("0", "2", "5"), "stationary")
    hidden = SimpleNamespace(transition_model=model, initial_distribution=np.array([0.2, 0.3, 0.5]))
    assert pf.MarkovChain.from_deeptime(hidden).initial_distribution.tolist() == [0.2, 0.3, 0.5]
    with pytest.raises(pf.ModelError, match="fetch_model"):
        pf.MarkovChain.from_deeptime(object())
    markov = pytest.importorskip("deeptime.markov", reason="deeptime is not installed")
    series = np.array([0, 2, 0, 2, 2, 0, 3, 3])  # 1 is never there, and nothing comes back from 3
    counts = markov.TransitionCountEstimator(lagtime=1, count_mode="sliding").fit_fetch(series)
    msm = markov.msm.MaximumLikelihoodMSM(reversible=False).fit_fetch(counts.submodel_largest())
    found = pf.MarkovChain.from_deeptime(msm)
    assert found.states == ("0", "2")
    assert found.transition_matrix == pytest.approx(np.array([[0, 1], [2 / 3, 1 / 3]]))


def test_state_values_of_quantecon_are_names():
    model = SimpleNamespace(P=P, state_values=np.array([-1.0, 0.5, 2.0]))
    assert pf.MarkovChain.from_quantecon(model).states == ("-1", "0.5", "2")
    stuck = SimpleNamespace(P=np.eye(2), state_values=None)
    assert pf.MarkovChain.from_quantecon(stuck).initial_distribution == "any"
    pairs = SimpleNamespace(P=P, state_values=np.array([[1, 2], [3, 4], [5, 6]]))
    assert pf.MarkovChain.from_quantecon(pairs).states == ("1, 2", "3, 4", "5, 6")
    with pytest.raises(pf.ModelError, match="quantecon"):
        pf.MarkovChain.from_quantecon(object())
    quantecon = pytest.importorskip("quantecon", reason="quantecon is not installed")
    real = quantecon.MarkovChain(P, state_values=["low", "mid", "high"])
    chain = pf.MarkovChain.from_quantecon(real)
    assert (chain.states, chain.transition_matrix.tolist()) == (("low", "mid", "high"), P.tolist())
    assert chain.stationary_distribution == pytest.approx(real.stationary_distributions[0])


def test_crosstabs_go_by_names_and_not_by_places():
    pandas = pytest.importorskip("pandas")
    now, then = pandas.Series(SERIES[:-1]), pandas.Series(SERIES[1:])
    table = pandas.crosstab(now, then)
    for given in (table, table[["walk", "rest", "run"]], table.loc[["walk", "run", "rest"]]):
        assert named(pf.MarkovChain.from_crosstab(given)) == pytest.approx(expected(SERIES))
    shares = pandas.crosstab(now, then, normalize="index")
    assert named(pf.MarkovChain.from_crosstab(shares)) == pytest.approx(expected(SERIES))
    ends = pandas.crosstab(pandas.Series(["a", "a"]), pandas.Series(["a", "b"]))  # nothing leaves b
    assert pf.MarkovChain.from_crosstab(ends, smoothing=1).transition_matrix.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    for wrong, says in (
        (ends, "leaves state 'b'"),
        (pandas.crosstab(now, then, margins=True), "margins"),
        (pandas.crosstab(now, then, normalize="columns"), "normalize='index'"),
        (table - 5, "not a count"),
        ([[1, 2], [3, 4]], "crosstab"),
    ):
        with pytest.raises(pf.ModelError, match=says):
            pf.MarkovChain.from_crosstab(wrong)
    with pytest.raises(pf.ModelError, match="smoothing"):
        pf.MarkovChain.from_crosstab(table, smoothing=-1)
