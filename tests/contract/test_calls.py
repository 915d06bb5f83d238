"""Every call that does not fit its arguments is answered by one clear line that shows the right call."""

import inspect
import re
from dataclasses import dataclass

import pytest

import pufferfish as pf
from pufferfish._base.frozen import ReadOnly

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
QUERY = pf.Count(1)
QUILTS, EXACT = pf.MQMExact(CHAIN, 10), pf.ExactLaplace(CHAIN, 10)
LEDGER = pf.Ledger(QUILTS, budget=1.0)

NEED_ARGUMENTS = [
    *(pf.MQMExact, pf.MQMApprox, pf.GK16, pf.EntryDP, pf.GroupDP, pf.LeakagePropagation, pf.ParticipantDP),
    *(pf.MarkovQuilt, pf.Wasserstein, pf.ExactLaplace, pf.ApproximateWasserstein),
    *(pf.Count, pf.Frequency, pf.Sum, pf.Mean, pf.Weighted, pf.Subset),
    *(pf.MarkovChain, pf.IntervalChain, pf.BayesianNetwork, pf.CPT, pf.Ledger),
    *(pf.read_sequences, pf.read_rows, pf.read_model, pf.write_model, pf.fit_chain, pf.fit_interval),
    *(pf.compare, pf.robustness, pf.release, pf.draw_network, pf.max_divergence, pf.wasserstein_inf),
    *(QUILTS.calibrate, EXACT.calibrate, QUILTS.leakage, LEDGER.calibrate, LEDGER.spend),
]


@pytest.mark.parametrize("call", NEED_ARGUMENTS, ids=lambda call: call.__qualname__)
def test_wrong_calls_are_one_clear_line(call):
    for args, kwargs in [((), {}), ((), {"epsilom": 1.0}), (tuple(range(9)), {})]:
        if call is pf.release and args:
            continue
        with pytest.raises(pf.ParameterError) as caught:
            call(*args, **kwargs)
        assert "\n" not in str(caught.value)
        assert not re.search(r"__init__|positional|keyword", str(caught.value))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pf.MQMExact(CHAIN), r"^length is missing. Example: MQMExact\(theta, length=data.length\)"),
        (lambda: pf.GK16(CHAIN), r"^length is missing. Example: GK16\("),
        (lambda: pf.MQMExact(), "^theta and length are missing"),
        (lambda: pf.MQMExact(CHAIN, lenght=10), r"no argument 'lenght'. Did you mean 'length'\? Example: MQMExact\("),
        (lambda: pf.MQMExact(CHAIN, 10, 1.0), "^3 arguments are given without a name, expected at most 2; give"),
        (lambda: pf.EntryDP(CHAIN, 10, 1.0), r"expected at most 2. Example: EntryDP\("),
        (lambda: pf.MQMExact(CHAIN, 10, theta=CHAIN), "^theta is given twice"),
        (lambda: pf.ParticipantDP(CHAIN, 10), "give theta by name. Example: ParticipantDP"),
        (lambda: pf.ApproximateWasserstein(CHAIN, 10), "^delta is missing"),
        (lambda: QUILTS.calibrate(QUERY, eps=1), "no argument 'eps'. Did you mean 'epsilon'"),
        (lambda: QUILTS.calibrate(1.0, QUERY), "the query comes first"),
        (lambda: EXACT.calibrate(1.0, QUERY), "the query comes first"),
        (lambda: EXACT.calibrate(QUERY), "^epsilon is missing. Example: mechanism.calibrate"),
        (lambda: pf.read_sequences("x.csv"), r'^state is missing. Example: read_sequences\("steps.csv", "activity"'),
        (lambda: pf.read_sequences("x.csv", "s", "t"), "^3 arguments .* give subject, time"),
        (lambda: pf.read_rows("x.csv"), "^network is missing"),
        (lambda: pf.compare(CHAIN, QUERY, length=10), "^epsilon is missing"),
        (lambda: pf.fit_chain(5), "^sequences is int, expected what read_sequences returns"),
        (lambda: pf.release(), "^data and query are missing"),
        (lambda: pf.check_model(), "^model, source and state are missing"),
        (lambda: pf.Histogram(relativ=True), r"^Histogram: there is no argument 'relativ'. Did you mean 'relative'\?$"),
        (lambda: pf.Histogram(True, True), "^Histogram: 2 arguments are given without a name, expected at most 1."),
        (
            lambda: pf.Model(chain=CHAIN),
            "^Model: there is no argument 'chain'. Arguments: theta, bins, step, fitted_on",
        ),
        (lambda: pf.Model(), "^Model: theta is missing"),
        (lambda: pf.Quilt(), "^Quilt: nearby, quilt and remote are missing|^Quilt: nearby is missing"),
        (lambda: QUILTS.calibrate(QUERY, 10**5000), "^an argument is a whole number of thousands of digits"),
    ],
)
def test_what_a_wrong_call_is_told(call, message):
    with pytest.raises(pf.ParameterError, match=message):
        call()


def test_signatures_stay():
    assert list(inspect.signature(pf.MQMExact).parameters) == ["theta", "length", "max_quilt_length", "support"]
    assert str(inspect.signature(pf.Histogram)) == "(relative: bool = True) -> None"
    assert list(inspect.signature(pf.Model).parameters) == ["theta", "bins", "step", "fitted_on"]


def test_an_error_inside_a_constructor_stays_what_it_is():
    @dataclass(frozen=True)
    class Broken(ReadOnly):
        value: int

        def __post_init__(self) -> None:
            raise TypeError("from inside")

    with pytest.raises(TypeError, match=r"^from inside$"):
        Broken(1)
    with pytest.raises(pf.ParameterError, match=r"^Broken: value is missing"):
        Broken()


def test_every_public_function_says_so():
    functions = [getattr(pf, name) for name in pf.__all__ if inspect.isfunction(getattr(pf, name))]
    assert len(functions) > 15
    for function in functions:
        with pytest.raises(pf.ParameterError, match="there is no argument 'nothing'"):
            function(nothing=1)
