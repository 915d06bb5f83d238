"""Releases in other states than the ledger's never leak more than is charged, on random models, queries and orders.

Which cases there are says ``ledger_states.py``, which is a program too: it prints the table of 20,000 of them.
"""

import pytest

from ledger_states import HOW, Tally, table, tally


def all_is_charged(found: dict[tuple[str, str], Tally]) -> None:
    print(table(found))
    assert not [(about, each) for about, each in found.items() if each.above], table(found)
    assert {how for _, how in found} == set(HOW)


@pytest.mark.parametrize("seed", [11, pytest.param(20, marks=pytest.mark.slow)])  # both notice steps in another order
def test_a_ledger_charges_what_releases_in_other_states_leak(seed: int) -> None:
    found = tally(seed, 300)
    all_is_charged(found)
    assert max(each.nearest for each in found.values()) > 0.999  # a smaller charge would be seen


@pytest.mark.slow
def test_twenty_thousand_releases_in_other_states() -> None:
    found = tally(38, 20_000)
    all_is_charged(found)
    for how in HOW:  # each way is attained, also by what is charged by steps
        assert max(each.nearest for (kind, way), each in found.items() if way == how and kind == "bouts") > 0.95
        assert max(each.nearest for (kind, way), each in found.items() if way == how and kind == "transitions") > 0.95
