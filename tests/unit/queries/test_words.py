"""Queries by their words: what the command line and programs ask alike."""

import pytest

import pufferfish as pf
from pufferfish.queries import Query
from release_cases import NETWORK

GLUCOSE = pf.Model(
    theta=pf.MarkovChain([[0.8, 0.2, 0], [0.1, 0.8, 0.1], [0, 0.3, 0.7]], states=["<70", "70-180", ">=180"]),
    bins=[0, 70, 180, 400],
)


@pytest.mark.parametrize("named", pf.named_queries(), ids=lambda named: named.word)
def test_every_word_that_is_listed_is_a_query(named: pf.NamedQuery) -> None:
    right = {"STATE=V,…,*=V": "a=1,*=0", "STATE,…": "a", "NODE,NODE,…": "a,b"}
    word, colon, takes = named.written.partition(":")
    assert word == named.word
    assert named.meaning
    assert isinstance(pf.query(f"{word}{colon}{right.get(takes, takes)}"), Query)
    if named.of_networks:
        with pytest.raises(pf.QueryError, match="is for networks"):
            pf.query(f"{word}{colon}{right.get(takes, takes)}", GLUCOSE)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("frequency:<70", pf.Frequency("<70")),
        ("share:>=70", pf.Frequency(["70-180", ">=180"])),
        ("count:70..180", pf.Count("70-180")),
        ("mean", pf.Mean([35.0, 125.0, 290.0])),
        ("sum", pf.Sum([35.0, 125.0, 290.0])),
        ("quantiles:.1,.9", pf.Quantiles([0.1, 0.9])),
    ],
)
def test_a_model_knows_what_a_word_is_of(text: str, query: Query) -> None:
    assert pf.query(text, GLUCOSE) == query


def test_columns_of_a_network_are_named() -> None:
    assert pf.query("marginals", NETWORK, columns=["a"]) == pf.Marginals(["a"])
    with pytest.raises(pf.ParameterError, match="give model too"):
        pf.query("marginals", columns=["a"])
    with pytest.raises(pf.ParameterError, match="the model consists of Markov chains"):
        pf.query("histogram", GLUCOSE, columns=["a"])
    with pytest.raises(pf.QueryError, match=r"not understood. Did you mean 'share'\?"):
        pf.query("shares:rest")
