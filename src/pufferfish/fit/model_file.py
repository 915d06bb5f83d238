"""Model files: a class Θ of chains or networks as JSON, with where it came from; a BIF file is such a class too."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import msgspec

from pufferfish._base.checked import check_kind, listed
from pufferfish._base.durations import parse_duration
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.reading import check_path
from pufferfish._base.view import Printed, View, counted
from pufferfish._base.words import names_of, number
from pufferfish._base.writing import Kind, read_record, record_kind, write_whole
from pufferfish._draw.chart import Bars
from pufferfish.data.bins import bin_labels, parse_bins
from pufferfish.data.fingerprint import check_fingerprint
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.data.steps import skips_steps
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, RecordError
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import BIF_MARK, bif_text
from pufferfish.theta.chain_class import STATED
from pufferfish.theta.continua import ForgettingClass
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import ModelClass, Theta, as_theta
from pufferfish.theta.record import CONDEMNED, NEVER_CHECKED, ChainRecord, Checking, ThetaRecord
from pufferfish.theta.shown import in_time
from pufferfish.theta.states import state_label

FORMAT = "pufferfish-model"
VERSION = 1

MODEL = record_kind("model", FORMAT, "releases may depend on it; name another file, or give --overwrite")

BIF = (".bif", ".bif.gz")  # how names of networks in another format end

BIF_FILE = Kind("network", lambda content: content.startswith(BIF_MARK.encode()), MODEL.keep, BIF[:1])
"""Of networks in BIF only those are replaced that were written here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Printed, ReadOnly):
    """A class Θ and how the tables it describes are read.

    Parameters
    ----------
    theta : ChainClass, ModelClass of networks, a class such as IntervalChain, or what makes one of them
        The class: Markov chains, or Bayesian networks; else a :class:`ModelError`.
    bins : tuple of float, optional
        Edges by which a numeric column becomes the states of Θ; of chains only.
    step : str, optional
        Time that one transition takes, such as "1min"; a table with another step is refused. Of chains only.
    fitted_on : str, optional
        ``data.fingerprint`` of the table that Θ was fitted to, whose release is refused; of several tables with spaces
        between them.
    checked : Checking, optional
        What ``pufferfish check`` said of it last.
    """

    theta: Theta
    bins: tuple[float, ...] | None = None
    step: str | None = None
    fitted_on: str | None = None
    checked: Checking | None = None

    def __post_init__(self) -> None:
        if isinstance(self.theta, Model):  # its step and origin would be lost
            raise ModelError("theta is a Model already, expected the class that it holds: model.theta")
        theta = as_theta(self.theta)
        self._keep(theta=theta, bins=None if self.bins is None else tuple(listed(self.bins, "bins", "edges")))
        if self.fitted_on is not None:
            check_fingerprint(self.fitted_on)
        if self.checked is not None:
            check_kind(self.checked, Checking, "checked")
            if self.checked.fingerprint is not None:
                check_fingerprint(self.checked.fingerprint)
        if theta.of_chains:
            self._check_reading(theta)
            return
        if not isinstance(theta.members[0], BayesianNetwork):
            raise ModelError(
                f"theta is a class of {theta.kind}; a Model holds Markov chains or Bayesian networks; use other "
                "models directly"
            )
        for name, value in (("bins", self.bins), ("step", self.step)):
            if value is not None:
                raise ParameterError(f"{name} is {value!r}, and belongs to Markov chains: leave it out for networks")

    @classmethod
    def fitted(cls, theta: Any, data: Sequences | Rows) -> Self:
        """Return the model of a class that was fitted to a public table, which says so, as ``pufferfish fit`` does.

        It keeps the table's bins, the time that one step takes, and a fingerprint of what was read: mechanisms that are
        given the model, and not its Θ alone, refuse data of another step, and the table that it was fitted to.

        Parameters
        ----------
        theta : model of chains, or networks
            What was fitted, by :func:`fit_chain`, :func:`fit_network` or another.
        data : Sequences, or Rows for networks
            What it was fitted to; sequences read with ``max_gap`` or ``step``: otherwise nothing says how long a step
            takes. Data of other states are a :class:`ParameterError`, as is a ``max_gap`` of two steps or more.

        Examples
        --------
        >>> import polars as pl
        >>> import pufferfish as pf
        >>> survey = pl.DataFrame({"minute": range(400), "state": list("aabaabbaab" * 40)})
        >>> data = pf.read_sequences(survey, "state", time="minute", max_gap=1)
        >>> pf.Model.fitted(pf.fit_chain(data), data).step
        '1'
        """
        made = as_theta(theta)
        if made.networks:
            check_kind(data, Rows, "data")
        if isinstance(data, Rows):
            return cls(theta=_fitted_to_rows(made, data), fitted_on=data.fingerprint)
        check_kind(data, Sequences, "data")
        if made.states != data.states:
            raise ParameterError(
                f"theta has the states {names_of(made.states, 6)}, and data {names_of(data.states, 6)}: give the data "
                "that theta was fitted to"
            )
        base, forgets = data.base, isinstance(made, ForgettingClass)
        spoken = base.time if forgets else base.max_gap  # how soon habits are forgotten is counted in steps by itself
        origin = _origin(made.origin, data)
        described: Any = made
        made = replace(described, origin=origin)
        step = base.step or (data.usual_step if spoken else None)
        if step is not None and skips_steps(base, step):
            raise ParameterError(
                f"max_gap is {base.max_gap} and a step takes {step}, so records up to {base.max_gap} apart count as "
                f"one step, and habits seem to be forgotten faster than they are: give max_gap={step!r}"
            )
        return cls(theta=made, bins=base.bins, step=step, fitted_on=data.fingerprint)

    @classmethod
    def joined(cls, models: "Sequence[Model]") -> Self:
        """Return the model of one class with the members of several models of chains, of whichever kinds these are.

        A release under it is refused for every table that one of them was fitted to, or checked against. A model that
        was condemned stays so until the joined class is checked; no other verdict is kept. Models of different states
        are a :class:`ModelError`, of different bins or steps a :class:`ParameterError`.

        Examples
        --------
        >>> import pufferfish as pf
        >>> chain, bounds = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), pf.ForgettingClass(8, 0.3, ["0", "1"])
        >>> pf.Model.joined([pf.Model(theta=chain, step="1min"), pf.Model(theta=bounds)]).step
        '1min'
        """
        given = listed(models, "models", "a list of Model")
        for i, model in enumerate(given):
            check_kind(model, Model, f"models[{i}]")
        bins, step = (_alike(given, name) for name in ("bins", "step"))
        checks = [model.checked for model in given if model.checked is not None]
        condemned = next((checked for checked in checks if checked.word == CONDEMNED), None)
        tables = [*(model.fitted_on for model in given), *(checked.fingerprint for checked in checks)]
        fitted_on = " ".join(dict.fromkeys(table for table in tables if table is not None))
        theta = as_theta([model.theta for model in given])
        return cls(theta=theta, bins=bins, step=step, fitted_on=fitted_on or None, checked=condemned)

    def __repr__(self) -> str:
        return f"Model({self.theta!r})"

    def _view(self) -> View:
        view = self.theta._view()
        edges = self.bins
        bins = None if edges is None else f"{len(edges) - 1} from {number(edges[0])} to {number(edges[-1])}"
        checked = NEVER_CHECKED if self.checked is None else self.checked.in_words()
        facts: dict[str, Any] = {"step": self.step, "bins": bins, "check": checked}
        return replace(
            view,
            title=f"Model file: {self.theta.kind}",
            facts={**(view.facts or {}), **facts},
            grids=[in_time(grid, self.step) if isinstance(grid, Bars) else grid for grid in view.grids],
        )

    def _check_reading(self, theta: Theta) -> None:
        """Check how tables are read, as where they are read."""
        clock_step = theta.step
        if clock_step is not None and self.step is None:
            self._keep(step=clock_step)
        elif clock_step is not None and parse_duration(self.step, "step") != parse_duration(clock_step, "step"):
            raise ParameterError(
                f"step is {self.step!r}, and the clock of theta has a step of {clock_step}: leave step out"
            )
        if self.step is not None:
            parse_duration(self.step, "step")
        if self.bins is not None:
            self._keep(bins=parse_bins(self.bins))
            if (labels := bin_labels(self.bins)) != theta.states:
                theirs = names_of(theta.states, 6)
                raise ParameterError(f"bins make the states {names_of(labels, 6)}, and those of theta are {theirs}")


def _alike(models: Sequence[Model], name: str) -> Any:
    """Return what models say of how tables are read, as far as they say it; refused where they differ."""
    stated = [(i, value) for i, model in enumerate(models) if (value := getattr(model, name)) is not None]
    for i, value in stated:
        first, expected = stated[0]
        if value != expected and not (name == "step" and parse_duration(value, name) == parse_duration(expected, name)):
            raise ParameterError(
                f"{name} is {value!r} in models[{i}] and {expected!r} in models[{first}]: all members of a class are "
                "about the same records"
            )
    return stated[0][1] if stated else None


_FITTED = "fitted to public data"


def _fitted_to_rows(theta: Theta, data: Rows) -> Theta:
    """Return networks that say what they were fitted to, and when; :func:`fit_network` says the first itself."""
    variables = theta.variables if theta.networks else None
    known = {state_label(node): states for node, states in (variables or {}).items()}
    for node, states in data.states.items():
        if known.get(state_label(node)) != states:
            raise ParameterError(
                f"data has the column {state_label(node)!r} of the states {names_of(states, 6)}, and theta no such "
                "node: give what was fitted to them"
            )
    assert isinstance(theta, ModelClass)
    on = f"{_FITTED} on {datetime.now(UTC).date().isoformat()}: "
    read = f"{data.base.source}, {counted(data.records, 'row')}"
    said = theta.origin.removeprefix(f"{_FITTED}: ")
    return replace(theta, origin=on + (read if said == STATED else said if said != theta.origin else f"{read}; {said}"))


def _origin(theta_origin: str, data: Sequences) -> str:
    """Return what Θ was fitted to, and what it says of itself besides."""
    base = data.base
    odd = base.state != base.state.strip() or "," in base.state
    state = repr(base.state) if odd else base.state
    kept = f", rows where {base.where}" if base.where else ""
    origin = (
        f"{_FITTED} on {datetime.now(UTC).date().isoformat()}: {base.source}, column {state}{kept}, "
        f"{data.records:,} records of {counted(data.subjects, 'subject')}"
    )
    rest = theta_origin.removeprefix(f"{_FITTED}: ").removeprefix(f"{base.source}, column {base.state}, ")
    return origin if theta_origin == STATED else f"{origin}; {rest}"


class _ModelRecord(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    format: str
    version: int
    origin: str
    states: list[str]
    chains: list[ChainRecord] = []
    kind: str = "Markov chains"
    members: list[dict[str, Any]] = []
    names: list[str] = []
    bins: list[float] | None = None
    step: str | None = None
    fitted_on: str | None = None
    checked: Checking | None = None


def check_names(theta: Theta, path: str | os.PathLike[str]) -> None:
    """Refuse to write networks whose nodes are not named by text: what is read again would be another network."""
    for network in theta.networks:
        for node in network.nodes:
            if not isinstance(node, str):
                raise RecordError(
                    f"cannot write {path}: node {node!r} is {type(node).__name__}, and files name nodes by text: "
                    f"make the network with {state_label(node)!r}"
                )


def write_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model file, over an earlier one only; a :class:`RecordError` if it cannot be, and nothing is left."""
    check_kind(model, Model, "model")
    check_path(path)
    if is_bif(path):
        raise RecordError(f"cannot write {path}: a model is written as JSON, and this name says BIF; use .json")
    check_names(model.theta, path)
    theta = ThetaRecord.of(model.theta)
    record = _ModelRecord(
        format=FORMAT,
        version=VERSION,
        **msgspec.structs.asdict(theta),
        bins=None if model.bins is None else list(model.bins),
        step=model.step,
        fitted_on=model.fitted_on,
        checked=model.checked,
    )
    write_whole(path, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n", MODEL, overwrite=True)


def is_bif(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file says that it holds a network in BIF."""
    return Path(path).name.lower().endswith(BIF)


def write_bif(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model of one network as BIF; of what is there only a file that was written so is replaced.

    A BIF file holds no fingerprint: a release of the table that the network was fitted to is not refused under it.
    """
    check_names(model.theta, path)
    text = bif_text(model.theta.networks[0].cpts, model.theta.origin)
    write_whole(path, text.encode(), BIF_FILE, overwrite=True)


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file, or a network from a BIF file, by its name; a :class:`RecordError` if it is none."""
    check_path(path)
    if is_bif(path):
        return Model(theta=ModelClass((BayesianNetwork.from_bif(path),), f"{STATED}: {Path(path).name}"))
    record = read_record(path, _ModelRecord, format_=FORMAT, version=VERSION)
    try:
        theta = ThetaRecord(*(getattr(record, name) for name in ThetaRecord.__struct_fields__)).theta()
        bins = None if record.bins is None else tuple(record.bins)
        return Model(theta=theta, bins=bins, step=record.step, fitted_on=record.fitted_on, checked=record.checked)
    except (ModelError, ParameterError) as error:
        raise RecordError(f"{path} holds no valid model: {error}") from error


def chains_of(model: Model, path: str | os.PathLike[str], *, among: bool = False) -> Model:
    """Return a model that was read from a path, if it is made of Markov chains; or has some, ``among`` others."""
    some = among and any(isinstance(member, MarkovChain) for member in model.theta.members)
    if not (model.theta.chains or some):
        of_chains = model.theta.of_chains
        knows = "lists of Markov chains only" if of_chains else "Markov chains only, networks are for Python"
        raise NotApplicableError(f"{path} holds {model.theta.kind}; this command knows {knows}")
    return model
