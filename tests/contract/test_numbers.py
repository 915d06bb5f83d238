"""Numbers are real numbers: truth values, text, complex and masked ones are refused wherever one is taken."""

import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.data.rows import RowsBase
from pufferfish.errors import PufferfishError

STEP = [[0.9, 0.1], [0.4, 0.6]]
CHAIN = pf.MarkovChain(STEP, states=["a", "b"])
NETWORK = pf.BayesianNetwork({"u": pf.CPT(["a", "b"], [0.5, 0.5]), "v": pf.CPT(["a", "b"], STEP, ["u"])})
CLIQUES = pf.Cliques([0.5, 0.25, 0.25], states=["a", "b"])
BOUND, ON_NETWORK, COUNT = pf.MQMExact(CHAIN, 5), pf.MarkovQuilt(NETWORK), pf.Count("a")
NOISE = BOUND.calibrate(COUNT, 1.0)
INF_NORM = pf.robustness(CHAIN, CHAIN, 3)

ONE: dict[str, Callable[[Any], Any]] = {
    "epsilon of a bound": lambda v: BOUND.calibrate(COUNT, v),
    "epsilon on networks": lambda v: ON_NETWORK.calibrate(COUNT, v),
    "epsilon of a law mechanism": lambda v: pf.Wasserstein(CLIQUES).calibrate(COUNT, v),
    "epsilon of compare": lambda v: pf.compare(CHAIN, COUNT, v, length=5),
    "epsilon of robustness": lambda v: INF_NORM.effective_epsilon(v),
    "budget": lambda v: pf.Ledger(BOUND, v),
    "up_to": lambda v: pf.Ledger(BOUND, 9.0).calibrate(COUNT, up_to=v),
    "alpha": lambda v: NOISE.accuracy(v),
    "delta": lambda v: pf.ApproximateWasserstein(CLIQUES, delta=v),
    "pi_min": lambda v: pf.MQMApprox(pi_min=v, eigengap=0.5, length=9),
    "eigengap": lambda v: pf.MQMApprox(pi_min=0.3, eigengap=v, length=9),
    "length": lambda v: pf.MQMExact(CHAIN, v),
    "one length of several": lambda v: pf.MQMExact(CHAIN, [v, 3]),
    "rows": lambda v: pf.MarkovQuilt(NETWORK, length=v),
    "steps": lambda v: pf.ChainLength(v, 1),
    "max_quilts": lambda v: pf.MarkovQuilt(NETWORK, max_quilts=v),
    "max_quilt_length": lambda v: pf.MQMExact(CHAIN, 5, max_quilt_length=v),
    "low": lambda v: pf.BinaryChainInterval(v, 0.999),
    "high": lambda v: pf.BinaryChainInterval(0.001, v),
    "confidence": lambda v: pf.fit_interval(None, v),  # type: ignore[arg-type]
    "smoothing": lambda v: pf.fit_chain(None, smoothing=v),  # type: ignore[arg-type]
    "records": lambda v: pf.GivenLaws({"x": {0: 1.0}}, records=v, states=["a"], query=COUNT),
    "at_least": lambda v: pf.CountIs("a", v),
    "value of a state": lambda v: pf.Sum({"a": v, "b": 3}),
    "value in a list": lambda v: pf.Mean([v, 3]),
    "factor": lambda v: pf.Weighted(COUNT, [v, 3]),
    "start": lambda v: pf.Window(COUNT, v, 3),
    "unit": lambda v: pf.Function(lambda row: 1, unit=v),
    "loss": lambda v: BOUND.leakage(v),
    "loss of nodes": lambda v: ON_NETWORK.leakage({"u": v}),
    "steps of a profile": lambda v: pf.Profile([(v, 0.5)]),
    "loss of a profile": lambda v: pf.Profile([(2, v)]),
    "scale": lambda v: pf.ExactLaplace(CLIQUES).loss(COUNT, v),
}
"""What takes one number."""

MANY: dict[str, Callable[[Any], Any]] = {
    "transition matrix": lambda v: pf.MarkovChain([v, v]),
    "initial law": lambda v: pf.MarkovChain(STEP, v),
    "row of a table": lambda v: pf.CPT(["a", "b"], v),
    "lower bounds": lambda v: pf.IntervalChain([v, v], [[1, 1], [1, 1]]),
    "upper bounds": lambda v: pf.IntervalChain([[0, 0], [0, 0]], [v, v]),
    "law of a clique": lambda v: pf.Cliques([v]),
    "probabilities": lambda v: pf.JointDistribution([["a"], ["b"]], v),
    "first law": lambda v: pf.max_divergence(v, [0.5, 0.5]),
    "second law": lambda v: pf.max_divergence([0.5, 0.5], v),
    "masses": lambda v: pf.wasserstein_inf([0, 1], v, [0, 1], [0.5, 0.5]),
    "losses": lambda v: pf.MQMExact(CHAIN, 2).leakage(v),
}
"""What takes an array of two numbers that sum to 1."""


NO_NUMBERS: tuple[Any, ...] = (True, False, np.True_, "1", "0.5", b"1", 1 + 0j, np.ma.masked, None, [1])
LEFT_OUT = {"up_to", "pi_min", "eigengap", "max_quilts", "max_quilt_length", "rows", "at_least"}
"""What None leaves out."""
ONE_OF_SEVERAL = {"length", "loss", "loss of a profile"}
"""Where a list of one is a list of chains, or a shape that is refused later."""


@pytest.mark.parametrize("name", ONE)
def test_what_is_no_number(name: str) -> None:
    for value in NO_NUMBERS:
        if (value is None and name in LEFT_OUT) or (value == [1] and name in ONE_OF_SEVERAL):
            continue
        with pytest.raises(PufferfishError) as refusal:
            ONE[name](value)
        assert "\n" not in str(refusal.value)


MASKED = np.ma.array([0.5, 0.5], mask=[False, True])
TWO: dict[str, Any] = {
    "truth values": [True, False],
    "an array of truth values": np.array([True, False]),
    "a truth value among numbers": [1.0, False],
    "text": ["0.5", "0.5"],
    "an array of text": np.array(["0.5", "0.5"]),
    "complex": [0.5 + 0j, 0.5],
    "an array of complex": np.array([0.5, 0.5], dtype=complex),
    "masked": MASKED,
    "a masked entry": [0.5, np.ma.masked],
    "nothing": [0.5, None],
    "time": np.array([0, 1], dtype="timedelta64[s]"),
}


@pytest.mark.parametrize("name", MANY)
def test_what_is_no_array_of_numbers(name: str) -> None:
    for given in TWO.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's own about masks, where it sees one
            with pytest.raises(PufferfishError) as refusal:
                MANY[name](given)
        assert "\n" not in str(refusal.value)


def test_numbers_of_every_kind_are_taken() -> None:
    for half in (0.5, np.float64(0.5), np.float32(0.5), Fraction(1, 2), Decimal("0.5")):
        assert pf.MarkovChain([[half, half], [half, half]]).pi_min == 0.5
        assert BOUND.calibrate(COUNT, half).epsilon == 0.5
        assert pf.CPT(["a", "b"], np.array([half, half])).table.tolist() == [0.5, 0.5]
    for one in (1, np.int64(1), np.uint8(1)):
        assert pf.MarkovChain([[0, one], [one, 0]]).period == 2
        assert BOUND.calibrate(COUNT, one).epsilon == 1.0


def test_functions_of_the_database_may_say_yes_or_no() -> None:
    joint = pf.JointDistribution([["a", "a"], ["b", "a"], ["b", "b"]], [0.5, 0.25, 0.25])
    alike = pf.Function(lambda row: row[0] == row[1])
    assert pf.Wasserstein(joint).distance(alike) == 1.0


def test_tables_hold_whole_numbers_of_records() -> None:
    with pytest.raises(PufferfishError, match=r"counts\['u'\] holds a number that is not whole"):
        pf.Rows(
            nodes=("u",),
            states={"u": ("a", "b")},
            counts={"u": [2.7, 1]},  # type: ignore[dict-item]
            records=3,
            base=RowsBase(source="x", columns={"u": "u"}, missing="unobserved"),
        )


class TestMaxDivergence:
    """Laws that sum to 1 within the tolerance: never less than either reading of them."""

    def test_never_below_the_exact_value(self) -> None:
        rng = np.random.default_rng(7)
        for _ in range(200):
            p, q = (rng.dirichlet([0.5] * 4) for _ in range(2))
            p, q = p * (1 + rng.uniform(-9e-10, 9e-10)), q * (1 + rng.uniform(-9e-10, 9e-10))
            given = [(Fraction(a), Fraction(b)) for a, b in zip(p.tolist(), q.tolist(), strict=True)]
            sums = [sum(side) for side in zip(*given, strict=True)]
            plain = max(a / b for a, b in given)
            bound = Fraction(math.exp(pf.max_divergence(p, q))) * Fraction(1 + 2**-50)
            assert plain <= bound
            assert plain * sums[1] / sums[0] <= bound

    def test_a_sum_below_one_hides_nothing(self) -> None:
        """Without the sums it is 9e-10 less than the divergence of the law that p is."""
        p = [0.6 * (1 - 9e-10), 0.4 * (1 - 9e-10)]
        assert np.log(1.2) <= pf.max_divergence(p, [0.5, 0.5]) < np.log(1.2) + 1e-14

    def test_laws_that_are_none_are_refused(self) -> None:
        for bad in ([0.5, 0.51], [0.01] * 200, [0.5, 0.5 + 2e-9]):
            with pytest.raises(PufferfishError, match="sums to"):
                pf.max_divergence(bad, bad)


NO_LISTS: list[Any] = [None, 3, "x", {1, 2}, np.array(5), np.ma.masked, 1.5]


@pytest.mark.parametrize("given", NO_LISTS, ids=repr)
def test_what_is_no_list_is_refused_in_one_line(given: Any) -> None:
    network = pf.BayesianNetwork({"s": pf.CPT(["a", "b"], [0.5, 0.5])})
    calls: list[Callable[[], Any]] = [
        lambda: pf.ChainClass(given),
        lambda: pf.ModelClass(given),
        lambda: pf.Cliques(given),
        lambda: pf.Cliques.of_sizes(given, lambda n: [1] * (n + 1)),
        lambda: pf.Sum(given),
        lambda: pf.Mean(given),
        lambda: pf.Weighted(pf.Histogram(), given),
        lambda: pf.JointDistribution(given, [1]),
        lambda: pf.Quilt.of(network, "s", given),
        lambda: pf.wasserstein_inf(given, [1], [0], [1]),
        lambda: pf.wasserstein_inf([0], given, [0], [1]),
        lambda: pf.GroupDP(given, 3),
        lambda: pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=given) if given is not None else pf.ChainClass(given),
    ]
    for call in calls:
        with pytest.raises(pf.errors.PufferfishError) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_words_truth_values_and_sizes_are_what_they_are() -> None:
    chain, array = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), np.array(["any", "definition"])
    bad: list[Callable[[], Any]] = [
        lambda: pf.BinaryChainInterval(0.3, 0.7, initial_distribution=array),  # type: ignore[arg-type]
        lambda: pf.GK16(chain, 3, ends=array),  # type: ignore[arg-type]
        lambda: pf.MQMExact(chain, 3, support=array),  # type: ignore[arg-type]
        lambda: pf.Histogram("no"),  # type: ignore[arg-type]
        lambda: pf.Marginals(relative=None),  # type: ignore[arg-type]
        lambda: pf.MQMExact(chain, 3).calibrate(pf.Count("1"), 1.0).accuracy(joint="no"),  # type: ignore[arg-type]
        lambda: pf.Cliques.of_sizes([2.7], lambda n: [1] * (n + 1)),  # type: ignore[list-item]
        lambda: pf.Cliques.of_sizes([2], lambda n: None),  # type: ignore[arg-type, return-value]
        lambda: pf.ChainClass((chain,), origin=5),  # type: ignore[arg-type]
        lambda: pf.ModelClass([1]),  # type: ignore[arg-type, list-item]
        lambda: pf.Function(len, None),
        lambda: pf.wasserstein_inf(np.ma.masked_array([0, 100], mask=[0, 1]), [0.5, 0.5], [0, 1], [0.5, 0.5]),
    ]
    for call in bad:
        with pytest.raises(pf.errors.PufferfishError):
            call()


def test_single_values_and_huge_lengths_are_what_they_are() -> None:
    chain, zero = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["a", "b"]), np.array(3.0)
    noise = pf.MQMExact(chain, 5).calibrate(pf.Histogram(), 1.0)
    bad: list[Callable[[], Any]] = [
        lambda: pf.GivenLaws(lambda s: {0: 1}, records=2, states=["a", "b"], pairs=5),  # type: ignore[arg-type, return-value, dict-item]
        lambda: pf.GivenLaws(lambda s: {0: 1}, records=2, states=["a", "b"], pairs=[None]),  # type: ignore[arg-type, return-value, dict-item, list-item]
        lambda: pf.GivenLaws(lambda s: {0: 1}, records=2, states=["a", "b"], pairs=[[]]),  # type: ignore[arg-type, return-value, dict-item, list-item]
        lambda: pf.JointDistribution([[0, 1], [1, 0]], None),  # type: ignore[arg-type]
        lambda: pf.MarkovQuilt(NETWORK, length=3, secrets=zero),
        lambda: pf.robustness(chain, chain, 10, secrets=zero),
        lambda: pf.release(zero, pf.Histogram(), noise),  # type: ignore[arg-type]
        lambda: pf.compare(chain, pf.Histogram(), 1.0, 10**400),
        lambda: pf.Count(zero).bind(["a", "b"], 3),
        lambda: pf.MQMExact(chain, 2**60),
    ]
    for call in bad:
        with pytest.raises(pf.errors.PufferfishError):
            call()
    assert pf.RecordIs(0, zero).states
