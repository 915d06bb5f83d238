"""Releases of tables of independent rows under a Bayesian network: exact values, and what is refused."""

import pickle
import sys

import polars as pl
import pytest

import pufferfish as pf
from pufferfish.errors import NotApplicableError, QueryError, ReleaseRefused

SMOKER = pf.CPT(["no", "yes"], [0.8, 0.2])
COUGH = pf.CPT(["no", "yes"], [[0.9, 0.1], [0.6, 0.4]], parents=["smoker"])
FEVER = pf.CPT(["none", "mild", "high"], [[0.9, 0.08, 0.02], [0.6, 0.3, 0.1]], parents=["cough"])
NETWORK = pf.BayesianNetwork({"smoker": SMOKER, "cough": COUGH, "fever": FEVER})
TABLE = pl.DataFrame(
    {
        "smoker": ["no", "yes", "no", "no", "yes"],
        "cough": ["no", "yes", "yes", "no", "yes"],
        "fever": ["none", "high", "mild", "none", "none"],
    }
)
ROWS = pf.read_rows(TABLE, NETWORK)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the noise by none, so that the exact value shows."""
    drawing = sys.modules["pufferfish.release.draw"]
    monkeypatch.setattr(drawing, "discrete_laplace_noise", lambda exact, scale, lipschitz: lambda: exact)
    monkeypatch.setattr(drawing, "noise_in_bulk", lambda exact, scale, lipschitz: lambda: exact)


def bound(rows: pf.Rows = ROWS) -> pf.MarkovQuilt:
    return pf.MarkovQuilt(NETWORK, length=rows.length)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(
    ("query", "value"),
    [
        (pf.Marginals(relative=False), [3, 2, 2, 3, 3, 1, 1]),
        (pf.Marginals(["fever"]), [0.6, 0.2, 0.2]),
        (pf.Marginals(["fever", "smoker"], relative=False), [3, 1, 1, 3, 2]),
        (pf.Subset(pf.Count("yes"), ["smoker", "cough"]), [5]),
        (pf.Subset(pf.Frequency("yes"), ["cough", "smoker"]), [0.5]),
        (pf.Subset(pf.Histogram(relative=False), ["fever"]), [3, 1, 1]),
        (pf.Subset(pf.Histogram(relative=False), ["smoker", "cough"]), [5, 5]),
        (pf.Subset(pf.Sum({"none": 0, "mild": 1.5, "high": 4}), ["fever"]), [5.5]),
        (pf.Subset(pf.Mean({"none": 0, "mild": 1.5, "high": 4}), ["fever"]), [1.1]),
        (pf.Weighted(pf.Count("yes"), [2, -1, 0]), [1]),
    ],
    ids=lambda v: type(v).__name__,
)
def test_the_exact_value(query, value) -> None:
    release = pf.release(ROWS, query, bound().calibrate(query, epsilon=1.0))
    assert release.noisy_values == pytest.approx(value, abs=1e-12)
    one_by_one = [{node: TABLE[node][i] for node in NETWORK.nodes} for i in range(len(TABLE))]
    if query == pf.Subset(pf.Count("yes"), ["smoker", "cough"]):
        counts = [pf.release(row, query, pf.MarkovQuilt(NETWORK).calibrate(query, 1.0)).values[0] for row in one_by_one]
        assert sum(counts) == 5


@pytest.mark.usefixtures("silent")
def test_missing_cells_are_not_counted() -> None:
    rows = pf.read_rows(TABLE.with_columns(cough=pl.Series(["no", None, "yes", None, "yes"])), NETWORK,
                        missing="unobserved")  # fmt: skip
    query = pf.Marginals(["cough", "smoker"], relative=False)
    release = pf.release(rows, query, bound(rows).calibrate(query, 1.0), postprocess="valid")
    assert release.values == pytest.approx([1, 2, 3, 2])
    assert release.data.observed == {"smoker": 5, "cough": 3, "fever": 5}
    assert "which cells are missing are public" in " ".join(release.assumptions)


def test_valid_marginals_sum_to_what_was_observed_in_every_column() -> None:
    query = pf.Marginals()
    calibration = pf.MarkovQuilt(NETWORK, length=5).calibrate(query, 0.1)
    values = pf.release(ROWS, query, calibration, postprocess="valid").value
    assert [values[:2].sum(), values[2:4].sum(), values[4:].sum()] == pytest.approx([1, 1, 1])
    assert (values >= 0).all()


def refused(rows, query, calibration) -> str:
    with pytest.raises(ReleaseRefused) as caught:
        pf.release(rows, query, calibration)
    return str(caught.value)


def test_another_number_of_rows() -> None:
    query = pf.Marginals()
    words = refused(ROWS, query, pf.MarkovQuilt(NETWORK).calibrate(query, 1.0))
    assert words == (
        "the noise was calibrated for a table of 1 rows, but this one has 5: calibrate with length=rows.length"
    )


def test_columns_that_the_table_lacks() -> None:
    rows = pf.read_rows(TABLE.drop("cough"), NETWORK)
    query = pf.Marginals()
    assert "the query reads node 'cough', but the table has no column" in refused(
        rows, query, bound().calibrate(query, 1.0)
    )
    there = pf.Marginals(rows.nodes)
    assert len(pf.release(rows, there, bound().calibrate(there, 1.0)).values) == 5


def test_a_table_of_another_network() -> None:
    other = pf.BayesianNetwork({"smoker": pf.CPT(["yes", "no"], [0.8, 0.2])})
    rows = pf.read_rows(TABLE, other)
    query = pf.Marginals(["smoker"])
    assert "read for another network" in refused(rows, query, bound().calibrate(query, 1.0))


def test_rows_under_a_chain_and_sequences_under_a_network() -> None:
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["no", "yes"])
    query = pf.Count("yes")
    assert "these data are independent rows" in refused(ROWS, query, pf.MQMExact(chain, 10).calibrate(query, 1.0))
    sequence = pf.read_sequences(TABLE, "smoker")
    assert "read_rows" in refused(sequence, query, bound().calibrate(query, 1.0))


def test_one_row_under_noise_for_a_table() -> None:
    query = pf.Count("yes")
    row = {"smoker": "no", "cough": "no", "fever": "mild"}
    assert "several rows" in refused(row, query, bound().calibrate(query, 1.0))


@pytest.mark.parametrize("mechanism", [pf.Wasserstein, pf.ExactLaplace])
def test_laws_are_of_whole_rows(mechanism) -> None:
    """With b = not a, the number of "yes" in both is known; with b missing it tells a."""
    opposite = pf.BayesianNetwork(
        {"a": pf.CPT(["no", "yes"], [0.5, 0.5]), "b": pf.CPT(["no", "yes"], [[0.1, 0.9], [0.9, 0.1]], ["a"])}
    )
    table = pl.DataFrame({"a": ["no", "yes"], "b": ["yes", None]})
    query = pf.Subset(pf.Count("yes"), ["a", "b"])
    calibration = mechanism(opposite, length=2).calibrate(query, 1.0)
    whole = pf.read_rows(table.with_columns(b=pl.Series(["yes", "no"])), opposite)
    assert pf.release(whole, query, calibration).epsilon == 1.0
    words = refused(pf.read_rows(table, opposite, missing="unobserved"), query, calibration)
    assert "'b' has missing cells" in words


def test_huge_epsilons_are_not_taken_for_no_noise_needed() -> None:
    coin = pf.BayesianNetwork({"a": pf.CPT(["0", "1"], [0.5, 0.5])})
    for make in (pf.GroupDP, pf.MarkovQuilt, pf.LeakagePropagation):
        assert make(coin).calibrate(pf.Count("1"), 600.0).scale == pytest.approx(1 / 600)


def test_secrets_about_all_rows_are_refused() -> None:
    """Noise is calibrated to one row; how many of 50 rows are ill is no fact about one of them."""
    pairs = [(pf.CountIs("yes", at_least=1), pf.CountIs("yes", at_most=0))]
    assert pf.Wasserstein(NETWORK, secrets=pairs).calibrate(pf.Count("yes"), 1.0).scale > 0
    for mechanism in (pf.Wasserstein, pf.ExactLaplace):
        with pytest.raises(NotApplicableError, match="about all 50 rows of the table"):
            mechanism(NETWORK, 50, secrets=pairs)


@pytest.mark.parametrize("factor", [2**24, -(2**24)])
def test_answers_beyond_64_bits_are_refused_whatever_the_data(factor: int) -> None:
    large = pf.Sum({"no": 0, "yes": 2**40, "none": 0, "mild": 1, "high": 1})
    small = pf.Sum({"no": 1, "yes": 2**20, "none": 1, "mild": 1, "high": 1})
    with pytest.raises(QueryError, match="can be as large as"):
        pf.GroupDP(NETWORK).calibrate(pf.Weighted(large, [factor, 1, 1]), 1.0)
    with pytest.raises(QueryError, match="can be as large as"):
        pf.MarkovQuilt(NETWORK, length=2**10).calibrate(pf.Weighted(small, [2**31, 1, 1]), 1.0)
    assert pf.MarkovQuilt(NETWORK, length=2**5).calibrate(pf.Weighted(small, [2**31, 1, 1]), 1.0).scale > 2**50
    assert pf.MarkovQuilt(NETWORK).calibrate(pf.Weighted(large, [2**12, 1, 1]), 1.0).scale > 2**50


def test_what_may_be_refused_does_not_depend_on_the_data() -> None:
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["lo", "hi"])
    with pytest.raises(QueryError, match="can be as large as"):
        pf.GroupDP(chain, 2**11).calibrate(pf.Weighted(pf.Sum({"lo": 1, "hi": 2**20}), [2**31] * 2**11), 1.0)


def test_nodes_that_read_almost_alike_stay_apart() -> None:
    coin = pf.CPT(["y", "n"], [0.5, 0.5])
    network = pf.BayesianNetwork({1.0: coin, "1.0": coin})
    mechanism = pf.MarkovQuilt(network, secrets=[1.0])
    again = pickle.loads(pickle.dumps(mechanism))
    query = pf.Weighted(pf.Count("y"), [1000, 1])
    assert [m.calibrate(query, 1.0).scale for m in (mechanism, again)] == pytest.approx([1000, 1000])
    with pytest.raises(NotApplicableError, match="it covers Markov chains"):
        pf.ParticipantDP(1, theta=network)


def test_a_network_too_dense_for_exact_inference_is_left_to_group_privacy(monkeypatch: pytest.MonkeyPatch) -> None:
    network = pf.BayesianNetwork(
        {**NETWORK.cpts, "ward": pf.CPT(["a", "b"], [[[0.5, 0.5]] * 3] * 2, ["cough", "fever"])}
    )
    monkeypatch.setattr("pufferfish._core.networks.inference.MOST_ENTRIES", 3)
    found = {row.mechanism: row for row in pf.compare(network, pf.Marginals(), 1.0)}
    assert found["group-dp"].scale is not None
    assert "too dense for exact inference" in (found["markov-quilt"].reason or "")


@pytest.mark.slow
def test_a_star_is_searched_in_time_and_memory() -> None:
    leaf = pf.CPT(["0", "1"], [[0.6, 0.4], [0.4, 0.6]], ["hub"])
    star = pf.BayesianNetwork({"hub": pf.CPT(["0", "1"], [0.5, 0.5])} | {i: leaf for i in range(300)})
    assert pf.MarkovQuilt(star).calibrate(pf.Count("1"), 1.0).scale == pytest.approx(301)
