"""Calls that are easily got wrong, beyond what Python itself says of missing and unknown arguments."""

import pytest

import pufferfish as pf

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
QUERY = pf.Count(1)
QUILTS, EXACT = pf.MQMExact(CHAIN, 10), pf.ExactLaplace(CHAIN, 10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: QUILTS.calibrate(1.0, QUERY), "the query comes first"),
        (lambda: EXACT.calibrate(1.0, QUERY), "the query comes first"),
        (lambda: EXACT.calibrate(QUERY), "^epsilon is missing. Example: mechanism.calibrate"),
        (lambda: pf.fit_chain(5), "^sequences is int, expected what read_sequences returns"),
    ],
)
def test_what_a_wrong_call_is_told(call, message):
    with pytest.raises(pf.ParameterError, match=message):
        call()
