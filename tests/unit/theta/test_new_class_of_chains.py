"""A class of chains outside of the package, written as docs/architecture.md says: it has all that others have."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import pufferfish as pf
from paper.audit.laws import some_laws
from pufferfish._base.view import View, text_of
from pufferfish._draw.chart import Picture
from pufferfish.cli import main
from pufferfish.mechanisms._propagation_on_chains import ChainLeakage
from pufferfish.theta.chain_class import STATED, Continuum
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.shown import mean_dwell_times, states_in_words

STATES = ("rest", "walk", "run")


@dataclass(frozen=True)
class StayingClass(Continuum):
    """Every chain whose states last with a probability between two bounds; where it goes when it leaves is free."""

    low: float
    high: float
    states: tuple[str, ...] = STATES
    origin: str = STATED
    kind: ClassVar[str] = "Markov chains that stay"
    witnesses: ClassVar[tuple[str, ...]] = ("quilt", "propagation")
    in_file: ClassVar[Mapping[str, Any]] = {"low": float, "high": float}

    @property
    def between(self) -> pf.IntervalChain:
        """The same class, as bounds."""
        same = np.eye(self.k)
        return pf.IntervalChain(self.low * same, self.high * same + (1 - self.low) * (1 - same), states=self.states)

    @property
    def in_words(self) -> str:
        return f"one of Θ: a chain that stays with a probability between {self.low:g} and {self.high:g} at every step"

    def _view(self) -> View:
        facts = {"states": states_in_words(self.states), "origin": self.origin}
        return View("Every chain whose states last", facts, self._picture().charts)

    def _picture(self) -> Picture:
        ends = np.full(self.k, self.low), np.full(self.k, self.high)
        return Picture(f"How long {self.k} states last", [mean_dwell_times(self.states, *ends)])

    @property
    def some_members(self) -> tuple[MarkovChain, ...]:
        return self.between.some_members


THETA = StayingClass(0.3, 0.6)
TABLE = pl.DataFrame({"id": ["a"] * 30 + ["b"] * 30, "t": [*range(30)] * 2, "x": [STATES[i % 3] for i in range(60)]})
READING: dict[str, Any] = {"subject": "id", "time": "t", "states": list(STATES)}


@pytest.fixture
def covered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let LeakagePropagation cover the class, as step 3 of the page says."""
    others = pf.LeakagePropagation._engine_of

    def engine_of(self: Any, theta: Any) -> Any:
        return ChainLeakage(theta.between) if isinstance(theta, StayingClass) else others(self, theta)

    monkeypatch.setattr(pf.LeakagePropagation, "kinds", (*pf.LeakagePropagation.kinds, StayingClass))
    monkeypatch.setattr(pf.LeakagePropagation, "_engine_of", engine_of)


def test_it_is_shown_and_drawn() -> None:
    assert "1.43 to 2.5" in text_of(THETA._view()).replace("1.429", "1.43")
    assert "Mean stay in a state" in THETA._repr_html_()
    pytest.importorskip("matplotlib")
    figure = pf.draw_model(THETA)
    assert [text.get_text() for text in figure.axes[0].texts] == ["1.43 – 2.5"] * 3
    assert figure.get_suptitle() == "How long 3 states last\nΘ: stated by the user"


@pytest.mark.parametrize("mechanism", [pf.GroupDP, pf.LeakagePropagation])
def test_it_is_kept_in_files_released_under_verified_and_reported(mechanism: Any, covered: None, tmp_path: Any) -> None:
    data = pf.read_sequences(TABLE, "x", **READING)
    pf.write_model(pf.Model(theta=THETA), tmp_path / "m.json")
    theta = pf.read_model(tmp_path / "m.json").theta
    assert theta == THETA
    released = pf.release(data, pf.Histogram(), mechanism(theta, length=data.length).calibrate(pf.Histogram(), 1.0))
    released.to_json(tmp_path / "r.json")
    found = pf.Release.from_json(tmp_path / "r.json")
    assert found.verify().holds
    assert any("a chain that stays" in sentence for sentence in found.assumptions)
    found.report(tmp_path / "r.html", brief=True)
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "Mean stay in a state" in page
    assert "a chain that stays with a probability between 0.3 and 0.6" in page
    for command in (["show", "m.json"], ["show", "r.json"], ["verify", "r.json"]):
        ended = CliRunner().invoke(main, [command[0], str(tmp_path / command[1])])
        assert ended.exit_code == 0, ended.output


def test_what_is_proved_holds_under_its_laws(covered: None) -> None:
    """The true loss of two records, by the definition: the odds of two outputs given a record's values."""
    calibration = pf.LeakagePropagation(THETA, length=2).calibrate(pf.Count("run"), 1.0)
    counts, scale = np.arange(-60, 61), calibration.unit_scale
    noise = {n: np.exp(-np.abs(counts - n) / scale) for n in range(3)}
    for law, (x, y) in itertools.product(some_laws(THETA.between, 2), itertools.permutations(range(3), 2)):
        joint = law.first[:, None] * law.steps[0]
        rows = (joint / joint.sum(axis=1, keepdims=True))[[x, y]]  # laws of the second record, given the first
        one, other = (
            sum(p * noise[(a == 2) + (b == 2)] for b, p in enumerate(row)) for a, row in zip((x, y), rows, strict=True)
        )
        assert np.max(np.log(one / other)) <= 1.0 + 1e-9


def test_mechanisms_that_do_not_know_it_refuse_it() -> None:
    for mechanism in (pf.LeakagePropagation, pf.MQMExact, pf.GK16, pf.EntryDP):
        with pytest.raises(pf.NotApplicableError, match="Markov chains that stay"):
            mechanism(THETA, length=20)


def test_a_proof_of_another_kind_than_its_own_is_refused(
    covered: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    data = pf.read_sequences(TABLE, "x", **READING)
    calibration = pf.LeakagePropagation(THETA, length=data.length).calibrate(pf.Histogram(), 1.0)
    pf.release(data, pf.Histogram(), calibration).to_json(tmp_path / "r.json")
    monkeypatch.setattr(StayingClass, "witnesses", ("forgetting",))
    with pytest.raises(pf.RecordError, match="the witness is of a kind that its class of chains has"):
        pf.Release.from_json(tmp_path / "r.json")


@pytest.mark.parametrize("missing", ["in_file", "in_words", "_view", "_picture", "some_members"])
def test_a_class_that_lacks_a_member_is_refused_where_it_is_written(missing: str) -> None:
    members = {name: value for name, value in vars(StayingClass).items() if not name.startswith("__")}
    del members[missing]
    named = {"kind": "others", "witnesses": (), "__annotations__": {"states": Any, "origin": Any}}
    with pytest.raises(TypeError, match=f"Other is no class of chains yet: it lacks {missing} "):
        type(Continuum)("Other", (Continuum,), members | named)


def test_a_class_says_its_kind_its_proofs_its_states_and_its_origin() -> None:
    members = {name: value for name, value in vars(StayingClass).items() if not name.startswith("__")}
    for name in ("kind", "witnesses", "in_file", "states", "origin"):
        del members[name]
    with pytest.raises(TypeError, match="it lacks kind, witnesses, in_file, states, origin "):
        type(Continuum)("Other", (Continuum,), members)
    with pytest.raises(TypeError, match="files tell them apart by it"):
        type("Other", (StayingClass,), {})
