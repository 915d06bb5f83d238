"""Models of classes that a user derives from those of the package: files hold them as what they are derived from."""

from typing import Any

import pytest

import pufferfish as pf
from pufferfish.theta.model_class import as_theta
from pufferfish.theta.record import ThetaRecord

ROWS = [[0.9, 0.1], [0.3, 0.7]]


class MyChain(pf.MarkovChain):
    """A chain with a name of its own."""


class MyClock(pf.PeriodicChain):
    """A chain with a clock."""


class MyCliques(pf.Cliques):
    """Cliques."""


@pytest.mark.parametrize(
    ("mine", "plain"),
    [
        (MyChain(ROWS), pf.MarkovChain(ROWS)),
        (MyClock([ROWS, ROWS]), pf.PeriodicChain([ROWS, ROWS])),
        ([MyChain(ROWS), MyClock([ROWS, ROWS])], [pf.MarkovChain(ROWS), pf.PeriodicChain([ROWS, ROWS])]),
        (MyCliques([[0.5, 0.5]]), pf.Cliques([[0.5, 0.5]])),
    ],
)
def test_a_derived_model_is_kept_as_the_model(mine: Any, plain: Any) -> None:
    record = ThetaRecord.of(as_theta(mine))
    assert record == ThetaRecord.of(as_theta(plain))
    assert record.any_theta() is not None
