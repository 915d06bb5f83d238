"""Chains with more memory: what is refused, model files, fitting on every engine, a release and its ledger."""

import itertools
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from pufferfish.errors import ModelError, NotApplicableError, ParameterError

TENSOR = [[[0.8, 0.2], [0.5, 0.5]], [[0.6, 0.4], [0.2, 0.8]]]
CHAIN = pf.HigherOrderChain(TENSOR, states=["a", "b"])
WORDS = "aabaabbaababbbaabbabaab" * 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[[0.8, 0.1], [0.5, 0.5]], [[0.6, 0.4], [0.2, 0.8]]],), r"tensor\[0\]\[0\] sums to 0.9"),
        (([[[0.8, 0.2]], [[0.6, 0.4]]],), r"tensor has shape \(2, 1, 2\)"),
        (
            ([[[1.5, -0.5], [0.5, 0.5]], [[0.6, 0.4], [0.2, 0.8]]],),
            r"\[0\]\[0\]\[1\] is -0.5, expected a probability",
        ),
        ((TENSOR, [0.5, 0.5]), r"initial_distribution has shape \(2,\), expected \(2, 2\)"),
        ((TENSOR, "sometimes"), "initial_distribution is 'sometimes'"),
        (([[[1, 0], [0, 1]], [[1, 0], [0, 1]]],), "the chain has several stationary laws"),
        (([[[1, 0], [1, 0]], [[1, 0], [1, 0]]],), "state '1' has probability 0"),
    ],
)
def test_refusals_say_what_and_why(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message) as refusal:
        pf.HigherOrderChain(*arguments)
    assert "\n" not in str(refusal.value)


def test_it_knows_its_stationary_law() -> None:
    law = CHAIN.stationary_distribution
    assert np.allclose(np.einsum("xy,xyz->yz", law, CHAIN.tensor), law, rtol=1e-12)
    assert np.isclose(law.sum(), 1)
    one = pf.HigherOrderChain([[0.9, 0.1], [0.4, 0.6]])
    assert one.order == 1
    assert np.allclose(one.stationary_distribution, [0.8, 0.2])


def test_too_many_values_are_refused() -> None:
    with pytest.raises(NotApplicableError, match="2 records in a row have 100 values, but at most 80"):
        pf.LeakagePropagation(pf.HigherOrderChain(np.full((10, 10, 10), 0.1)), 5)
    large = pf.HigherOrderChain(np.full((10, 10, 10), 0.1))
    with pytest.raises(NotApplicableError, match=r"of theta\[1\], taken alone: 2 records in a row have 100 values"):
        pf.LeakagePropagation([pf.MarkovChain(np.full((10, 10), 0.1)), large], 5)


def test_a_longer_memory_needs_more_noise_than_the_chain_that_is_fitted_to_it() -> None:
    """Whoever stays long stays longer: one matrix, with the same pairs of records, does not see it."""
    law = CHAIN.stationary_distribution
    pairs = pf.MarkovChain(law / law.sum(axis=1, keepdims=True), states=["a", "b"])
    noises = [
        pf.LeakagePropagation(theta, 10**6).calibrate(pf.Count("b"), 1.0).noise_multiplier for theta in (pairs, CHAIN)
    ]
    assert noises[1] > 1.2 * noises[0]


def test_losses_of_every_shape_and_several_chains() -> None:
    bound = pf.LeakagePropagation(CHAIN, [12, pf.ChainLength(steps=9, records=4), 1])
    whole = bound.leakage(0.2)
    assert bound.leakage([[0.2] * 12, [0.2] * 9, 0.2]) == pytest.approx(whole, rel=1e-9)
    assert bound.leakage([pf.Profile([(5, 0.2), (7, 0.2)]), 0.0, 0.0]) == pytest.approx(whole, rel=1e-9)
    assert bound.leakage([pf.Profile([(5, 0.0), (7, 0.2)]), 0.0, 0.0]) < whole
    seen = bound.calibrate(pf.Histogram(), 1.0).witness
    assert isinstance(seen, pf.PropagationWitness)
    assert seen.own + seen.past + seen.future == pytest.approx(1, abs=1e-5)


def test_a_model_file_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    for start in ("stationary", "any", [[0.25, 0.25], [0.5, 0]]):
        chain = pf.HigherOrderChain(TENSOR, start, states=["a", "b"])  # type: ignore[arg-type]
        pf.write_model(pf.Model(theta=[chain, CHAIN]), path)  # type: ignore[arg-type]
        member, other = pf.read_model(path).theta.members
        assert isinstance(member, pf.HigherOrderChain)
        assert np.array_equal(member.tensor, chain.tensor)
        assert np.array_equal(member.initial_distribution, chain.initial_distribution)  # type: ignore[arg-type]
        assert np.array_equal(other.tensor, CHAIN.tensor)


def test_every_engine_counts_histories() -> None:
    states = [None if i % 17 == 3 else s for i, s in enumerate(WORDS)]
    times = [i + 5 * (i // 23) for i in range(len(states))]  # a gap after every 23 records
    frame = pl.DataFrame({"t": times, "s": states})
    connection = duckdb.connect()
    connection.register("frame", frame.to_arrow())
    tables = (frame, frame.lazy(), pd.DataFrame({"t": times, "s": states}), connection.sql("select * from frame"))
    for order in (2, 3):
        expected = np.zeros((2,) * (order + 1), dtype=np.int64)
        for i in range(order, len(states)):
            last, when = states[i - order : i + 1], times[i - order : i + 1]
            if None not in last and all(b - a == 1 for a, b in itertools.pairwise(when)):
                expected[tuple("ab".index(s) for s in last if s)] += 1
        for table in tables:
            data = pf.read_sequences(table, "s", time="t", max_gap=1, order=order)
            assert data.histories is not None
            assert np.array_equal(data.histories, expected)


def test_fitting() -> None:
    frame = pl.DataFrame({"s": list(WORDS)})
    data = pf.read_sequences(frame, "s", order=2)
    assert data.histories is not None
    chain = pf.fit_order(data, smoothing=0)
    assert np.allclose(chain.tensor, data.histories / data.histories.sum(axis=2, keepdims=True))
    rare = pf.read_sequences(pl.DataFrame({"s": list("aaab" * 20)}), "s", order=2)
    with pytest.raises(ModelError, match="no transition out of 'b' then 'b' was observed"):
        pf.fit_order(rare, smoothing=0)
    pooled, after_b = pf.fit_order(rare, smoothing=4), pf.fit_chain(rare, smoothing=4).transition_matrix[1]
    assert np.allclose(pooled.tensor[1, 1], after_b)
    assert np.allclose(pooled.tensor[0, 1], (np.array([19, 0]) + 4 * after_b) / 23)
    with pytest.raises(ParameterError, match="read without an order"):
        pf.fit_order(pf.read_sequences(frame, "s"))
    for wrong, message in ((0, "order is 0, expected 1 to 6"), ("two", "order is 'two'")):
        with pytest.raises(ParameterError, match=message):
            pf.read_sequences(frame, "s", order=wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="a clock or a longer memory"):
        pf.read_sequences(frame.with_row_index("t"), "s", time="t", max_gap=1, clock="hour", order=2)


def test_on_the_command_line(tmp_path: Path) -> None:
    public, private, model = tmp_path / "public.csv", tmp_path / "private.csv", tmp_path / "model.json"
    pl.DataFrame({"s": list(WORDS)}).write_csv(public)
    pl.DataFrame({"s": list(WORDS[5:])}).write_csv(private)
    result = run("fit", public, "--state", "s", "--order", 2, "--output", model)
    assert result.exit_code == 0, result.output
    assert "each record depends on the 2 before it" in result.output
    book, output = tmp_path / "book.json", tmp_path / "release.json"
    made = run("ledger", "create", book, "--model", model, "--budget", 2, "--table", private, "--state", "s")
    assert made.exit_code == 0, made.output
    done = run("release", private, "--state", "s", "--model", model, "--epsilon", 0.5, "--query", "histogram",
               "--ledger", book, "--output", output)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "order 2" in pf.Release.from_json(output).assumptions[0]
    refused("fit", public, "--state", "s", "--order", 2, "--confidence", 0.9, "--output", tmp_path / "x.json")
