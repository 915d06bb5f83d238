"""What got noise, in whole numbers: whoever reads it alone computes the record loss that the proof is about."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.queries import StepQuery
from pufferfish.release.record import calibration_again, function_of_user
from release_cases import releases


def losses(counted: dict[str, Any]) -> list[list[list[Fraction]]]:
    """Compute the losses with nothing of the program: of each list of what states add, for every two of them."""
    scale, found = Fraction(counted["scale"]), []
    for states in counted["adds"]:
        adds = [dict(map(tuple, added)) for added in states]
        found.append([[Fraction(sum(abs(a.get(m, 0) - b.get(m, 0)) for m in {*a, *b})) for b in adds] for a in adds])
    return [[[d / scale for d in row] for row in matrix] for matrix in found]


@pytest.mark.slow
def test_the_record_loss_follows_from_the_file_alone(slow: bool) -> None:
    """Of every kind of release: what is computed of the file is the loss that the mechanism proves its leakage of."""
    kinds = set()
    for case, release in releases(1 if slow else 7):
        counted = json.loads(release.to_json())["counted"]
        if counted is None:
            assert function_of_user(release) is not None, case
            continue
        if function_of_user(release) is not None:
            continue
        kinds.add(counted["each"])
        calibration = calibration_again(release)
        measured, found = calibration.measured, losses(counted)
        if counted["each"] == "record":
            times = max(abs(factor) for _, factor in counted["factors"] or [(1, 1)])
            expected = [calibration.record_loss]
            found = [[[times * d for d in row] for row in matrix] for matrix in found]
            assert np.array_equal(release.record_loss, calibration.record_loss), case
            if counted["factors"] is not None:
                assert sum(n for n, _ in counted["factors"]) == release.calibration.records, case
        elif counted["each"] == "step":
            assert isinstance(measured, StepQuery)
            most = max(max(row) for row in found[0])
            assert most == Fraction(measured.unit_step) / Fraction(counted["scale"]), case
            continue
        elif counted["each"] == "row":
            expected = [loss for node, loss in calibration.node_loss.items() if node in counted["of"]]
            assert len(found[0]) == np.prod([len(loss) for loss in expected])
            most = max(max(row) for row in found[0])
            assert all(float(most) == pytest.approx(loss.max(), rel=1e-15) for loss in expected), case
            continue
        else:
            names = counted["of"]
            expected = [calibration.node_loss[name] for name in names] if calibration.theta.networks else [*found]
        for exact, loss in zip(found, expected, strict=True):
            for row, bounds in zip(exact, np.asarray(loss, dtype=object), strict=True):
                for d, bound in zip(row, bounds, strict=True):
                    assert d <= Fraction(bound) <= d * (1 + Fraction(1, 2**50)), case
    assert kinds >= {"record", "step", "cell"}


@pytest.mark.slow
def test_columns_together_and_large_tables() -> None:
    """A table of two columns; transitions of 60 states, of which a matrix would have 13 million numbers."""
    table = pl.DataFrame({"a": ["no", "yes"] * 20, "b": ["no", "no", "yes", "yes"] * 10})
    network = pf.BayesianNetwork(
        {"a": pf.CPT(["no", "yes"], [0.8, 0.2]), "b": pf.CPT(["no", "yes"], [[0.8, 0.2], [0.6, 0.4]], ["a"])}
    )
    rows, query = pf.read_rows(table, network, joint=[["a", "b"]]), pf.Joint(["a", "b"])
    release = pf.release(rows, query, pf.LeakagePropagation(network, rows.length).calibrate(query, 1.0))
    assert release.counted is not None
    assert (release.counted.each, release.counted.of) == ("row", ["a", "b"])
    assert losses(json.loads(release.to_json())["counted"])[0][0][3] == 2 / Fraction(release.counted.scale)
    with pytest.raises(pf.QueryError, match="counts each row"):
        _ = release.record_loss
    states = [f"s{x}" for x in range(60)]
    chain = pf.MarkovChain(np.full((60, 60), 1 / 60), states=states)
    steps = pf.release(states, pf.Transitions(), pf.GroupDP(chain, 60).calibrate(pf.Transitions(), 1.0))
    assert len(steps.to_json()) < 1_000_000
