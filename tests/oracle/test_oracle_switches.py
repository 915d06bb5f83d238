"""Laws of the number of steps that change the state: several chains, secrets, long chains, and what is refused.

Single short chains, also under every initial law, are among the queries of ``test_oracle_query_chains.py`` and
``test_oracle_query_any_start.py``.
"""

from fractions import Fraction
from itertools import pairwise

import polars as pl
import pytest

import pufferfish as pf
from pufferfish.errors import NotApplicableError
from query_checks import check
from query_laws import Answer, Databases, Row

MATRIX, START = [[7 / 8, 1 / 8], [1 / 2, 1 / 2]], [3 / 4, 1 / 4]
CHAIN = pf.MarkovChain(MATRIX, START)
LENGTHS = [3, 1, 4]
THREE = pf.MarkovChain([[0.8, 0.15, 0.05], [0.1, 0.85, 0.05], [0.05, 0.15, 0.8]])


def switches_of_three(row: Row) -> Answer:
    """No step leads from one chain to the next."""
    return Fraction(sum(x != y for part in (row[:3], row[4:]) for x, y in pairwise(part)))


def of_chains() -> Databases:
    one, two, three = (Databases.of_chain(START, MATRIX, length) for length in LENGTHS)
    return one * two * three


def test_several_chains() -> None:
    databases = of_chains()
    check(lambda kind: kind(CHAIN, LENGTHS), [(pf.Switches(), switches_of_three)], databases.pairs)


def test_secrets_about_records() -> None:
    one = pf.RecordIs((0, 0), 0) & pf.RecordIs((0, 2), 0), pf.RecordIs((0, 0), 0) & pf.RecordIs((0, 2), 1)
    meant = (lambda r: r[0] == r[2] == 0), (lambda r: r[0] == 0 and r[2] == 1)
    check(
        lambda kind: kind(CHAIN, LENGTHS, secrets=[one]),
        [(pf.Switches(), switches_of_three)],
        lambda ask: of_chains().pairs(ask, [meant]),
    )


@pytest.mark.slow
def test_long_chains_need_next_to_no_more_than_the_lower_bound() -> None:
    """Most records are covered by the law of one of them; propagation needs many times as much."""
    found = pf.ExactLaplace(THREE, 300).calibrate(pf.Switches(), 1.0)
    least = pf.LeakagePropagation(THREE, 300).calibrate(pf.Switches(), 1.0)
    assert least.lower_bound * (1 - 1e-9) <= found.scale <= least.lower_bound * 1.001
    assert found.scale < pf.Wasserstein(THREE, 300).calibrate(pf.Switches(), 1.0).scale < least.scale / 3
    assert found.prove_leakage() <= 1.0


def test_it_is_released_and_proved_again() -> None:
    table = pl.DataFrame({"who": ["a"] * 30 + ["b"] * 20, "s": ["0", "0", "1", "2", "1"] * 10})
    data = pf.read_sequences(table, "s", subject="who", states=THREE.states)
    noise = pf.ExactLaplace(THREE, data.length).calibrate(pf.Switches(), 1.0)
    assert pf.release(data, pf.Switches(), noise).verify(table=table).holds


def test_what_is_refused() -> None:
    counts = [(pf.CountIs("0", at_least=2), pf.CountIs("0", at_most=1))]
    for make, says in (
        (lambda: pf.Wasserstein(THREE, 9).calibrate(pf.Transitions(), 1.0), "one number of steps, not several"),
        (lambda: pf.Wasserstein(THREE, 9, secrets=counts).calibrate(pf.Switches(), 1.0), "secrets about single"),
        (lambda: pf.ExactLaplace(THREE, pf.ChainLength(9, 8)).calibrate(pf.Switches(), 1.0), "8 observed records"),
    ):
        with pytest.raises(NotApplicableError, match=says):
            make()
