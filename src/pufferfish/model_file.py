"""Model files: a class Θ of chains or networks as JSON, with where it came from; a BIF file is such a class too."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from pufferfish.calls import called_as
from pufferfish.core.numbers.read_only import ReadOnly
from pufferfish.data.bins import bin_labels, parse_bins
from pufferfish.durations import parse_duration
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, RecordError
from pufferfish.files import read_record, record_kind, write_whole
from pufferfish.files.reading import check_path
from pufferfish.frozen_record import FrozenRecord
from pufferfish.given import listed
from pufferfish.shown import Shown, View
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import STATED, ChainClass
from pufferfish.theta.chain_models import CHAIN_MODELS, ChainModels
from pufferfish.theta.cliques import Cliques
from pufferfish.theta.continua import CONTINUUM_KINDS
from pufferfish.theta.continuum import Continuum
from pufferfish.theta.cpt import CPT
from pufferfish.theta.given_laws import GivenLaws
from pufferfish.theta.higher_order_chain import HigherOrderChain
from pufferfish.theta.joint_distribution import JointDistribution
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import ModelClass, Theta, as_theta
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.states import state_label

__all__ = ["MODEL", "ChainRecord", "Model", "ThetaRecord", "chains_of", "check_names", "read_model", "write_model"]

FORMAT = "pufferfish-model"
VERSION = 1

MODEL = record_kind("model", FORMAT, "releases may have been made under it; name another file, or give --overwrite")

_BIF = (".bif", ".bif.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Shown, ReadOnly):
    """A class Θ and how the tables it describes are read.

    Parameters
    ----------
    theta : ChainClass, ChainModels, ModelClass of networks, a class such as IntervalChain, or what makes one of them
        The class: Markov chains, or Bayesian networks.
    bins : tuple of float, optional
        Edges by which a numeric column becomes the states of Θ; of chains only.
    step : str, optional
        Time that one transition takes, such as "1min"; a table with another step is refused. Of chains only.
    fitted_on : str, optional
        SHA-256 of the file Θ was fitted to, so that a release of that same file can say that it promises nothing.

    Raises
    ------
    ModelError
        If Θ is made of other models.
    ParameterError
        If bins, step or fitted_on are none, bins make other states, or networks come with bins or a step.
    """

    theta: Theta
    bins: tuple[float, ...] | None = None
    step: str | None = None
    fitted_on: str | None = None

    def __post_init__(self) -> None:
        theta = as_theta(self.theta)
        object.__setattr__(self, "theta", theta)
        object.__setattr__(self, "bins", None if self.bins is None else tuple(listed(self.bins, "bins", "edges")))
        if self.fitted_on is not None and re.fullmatch(r"[0-9a-f]{64}", str(self.fitted_on)) is None:
            raise ParameterError(f"fitted_on is {self.fitted_on!r}, expected a SHA-256: 64 digits from 0 to f")
        if theta.of_chains:
            self._check_reading(theta)
            return
        if not isinstance(theta.members[0], BayesianNetwork):
            raise ModelError(
                f"theta is a class of {theta.kind}; a model is made of Markov chains or Bayesian networks, others are "
                "made where they are used"
            )
        for name, given in (("bins", self.bins), ("step", self.step)):
            if given is not None:
                raise ParameterError(f"{name} is {given!r}, and belongs to Markov chains: leave it out for networks")

    def __repr__(self) -> str:
        return f"Model({self.theta!r})"

    def _view(self) -> View:
        return replace(self.theta._view(), title=f"Model file: {self.theta.kind}")  # pyright: ignore[reportPrivateUsage]

    def _check_reading(self, theta: Theta) -> None:
        """Check how tables are read, as where they are read."""
        own = theta.step if isinstance(theta, ChainModels) else None
        if own is not None and self.step is None:
            object.__setattr__(self, "step", own)
        elif own is not None and parse_duration(self.step, "step") != parse_duration(own, "step"):
            raise ParameterError(f"step is {self.step!r}, and the clock of theta has a step of {own}: leave step out")
        if self.step is not None:
            parse_duration(self.step, "step")
        if self.bins is not None:
            object.__setattr__(self, "bins", parse_bins(self.bins))
            if bin_labels(self.bins) != theta.states:
                raise ParameterError(
                    f"bins make the states {_few(bin_labels(self.bins))}, and those of theta are {_few(theta.states)}"
                )


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")


class ChainRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """One member of Θ, as it stands in model and release files."""

    transition_matrix: list[list[float]]
    initial_distribution: list[float] | str

    @classmethod
    def of(cls, chain: MarkovChain) -> "ChainRecord":
        """Return the record of a chain."""
        start = chain.initial_distribution
        return cls(
            transition_matrix=[[float(v) for v in row] for row in chain.transition_matrix],
            initial_distribution=start if isinstance(start, str) else [float(v) for v in start],
        )


class ThetaRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The class Θ under which a promise holds."""

    origin: str
    states: list[str]
    chains: list[ChainRecord]
    kind: str = "Markov chains"
    members: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    names: list[str] = msgspec.field(default_factory=list[str])

    @classmethod
    def of(cls, theta: Theta) -> "ThetaRecord":
        """Return the record of a class."""
        chains = [ChainRecord.of(chain) for chain in theta.chains]
        others = () if chains else theta.members or (theta,)  # a continuum has no members: it describes itself
        members = [_plain(other) for other in others]
        names = list(theta.names) if isinstance(theta, ChainClass) else []
        return cls(theta.origin, list(theta.states), chains, theta.kind, members, names)

    @property
    def size(self) -> int:
        """Bytes that it takes in a file."""
        return len(msgspec.json.format(msgspec.json.encode(self), indent=1))

    def theta(self) -> Theta:
        """Return the class, every member checked as if it were made by hand.

        Raises
        ------
        ModelError
            If a chain or network is none, or the class is of another kind.
        """
        if self.names and self.kind != "Markov chains":
            raise ModelError(f"theta of {self.kind} has names of its members, which only lists of Markov chains have")
        if self.kind == BayesianNetwork.kind:
            return self._networks()
        if self.kind in CONTINUUM_KINDS:
            return self._continuum()
        if self.kind in {model.kind for model in CHAIN_MODELS}:
            return self._chain_models()
        chains: list[MarkovChain] = []
        if self.kind != "Markov chains" or self.members:
            raise ModelError(f"theta is a class of {self.kind}, expected Markov chains or Bayesian networks alone")
        for i, chain in enumerate(self.chains):
            start = chain.initial_distribution
            if isinstance(start, str) and start not in ("stationary", "any"):
                raise ModelError(f'initial_distribution of chain {i} is {start!r}, expected "stationary" or "any"')
            chains.append(MarkovChain(chain.transition_matrix, start, states=self.states))  # pyright: ignore[reportArgumentType]
        return ChainClass(tuple(chains), self.origin, names=tuple(self.names))

    def check(self) -> None:
        """Refuse a class that is none, also of models that are described and not read back.

        Raises
        ------
        ModelError
            If a member is none of its kind.
        """
        self.any_theta()

    def any_theta(self) -> Theta | None:
        """Return the class, also of models that no model file holds; None for laws that a function of the user's gives.

        Raises
        ------
        ModelError
            If a member is none of its kind.
        """
        if self.kind not in (Cliques.kind, JointDistribution.kind, GivenLaws.kind):
            return self.theta()
        if self.chains or self.names or not self.members:
            raise ModelError(f"theta is a class of {self.kind}: expected that it has members, no names, and no chains")
        if len(set(self.states)) < len(self.states) or not self.states:
            raise ModelError("theta names no states, or one of them twice")
        found: list[Any] = []
        for i, member in enumerate(self.members):
            try:
                found.append(_described(self.kind, member, self.states))
            except (msgspec.ValidationError, ModelError, ValueError) as error:
                raise ModelError(f"theta[{i}]: {error}") from error
        return None if self.kind == GivenLaws.kind else ModelClass(tuple(found), self.origin)

    def _continuum(self) -> Any:
        if self.chains or len(self.members) != 1:
            raise ModelError(f"theta of {self.kind} is described by one member, its bounds, and by no chains")
        try:
            return CONTINUUM_KINDS[self.kind].of_plain(self.members[0], self.states, self.origin)
        except msgspec.ValidationError as error:
            raise ModelError(f"bounds of {self.kind}: {error}") from error

    def _chain_models(self) -> ChainModels:
        if self.chains or not self.members:
            raise ModelError(f"theta of {self.kind} is described by its members, and by no chains")
        members: list[PeriodicChain | HigherOrderChain] = []
        for i, member in enumerate(self.members):
            try:
                members.append(_chain_model(self.kind, member, self.states))
            except (msgspec.ValidationError, ModelError) as error:
                raise ModelError(f"theta[{i}]: {error}") from error
        return ChainModels(tuple(members), self.origin)

    def _networks(self) -> ModelClass:
        if self.chains:
            raise ModelError("theta has both chains and networks: a class has members of one kind")
        networks: list[BayesianNetwork] = []
        for i, member in enumerate(self.members):
            try:
                nodes = msgspec.convert(member, _NetworkRecord).nodes
                networks.append(BayesianNetwork({n: CPT(r.states, r.table, r.parents) for n, r in nodes.items()}))
            except (msgspec.ValidationError, ModelError) as error:
                raise ModelError(f"network {i}: {error}") from error
        theta = ModelClass(tuple(networks), self.origin)
        if list(theta.states) != self.states:
            raise ModelError(f"states are {', '.join(self.states)}, those of the networks {', '.join(theta.states)}")
        return theta


class _PeriodicRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    matrices: list[list[list[float]]]
    initial_distribution: list[float] | str
    clock: str | None
    step: str | None


class _HigherOrderRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tensor: list[Any]
    initial_distribution: list[Any] | str


class _NodeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    states: list[str]
    parents: list[str]
    table: list[Any]


class _NetworkRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    nodes: dict[str, _NodeRecord]


class _CliquesRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    laws: list[list[str]]


class _JointRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    variables: list[str]
    rows: list[list[str]]
    probabilities: list[str]


def _chain_model(kind: str, member: dict[str, Any], states: list[str]) -> PeriodicChain | HigherOrderChain:
    start: Any
    if kind == PeriodicChain.kind:
        found = msgspec.convert(member, _PeriodicRecord)
        start = found.initial_distribution
        return PeriodicChain(found.matrices, start, clock=found.clock, step=found.step, states=states)
    longer = msgspec.convert(member, _HigherOrderRecord)
    start = longer.initial_distribution
    return HigherOrderChain(longer.tensor, start, states=states)


def _described(kind: str, member: dict[str, Any], states: list[str]) -> Any:
    """Return the model of a description that :func:`_plain` gives; None for laws of the user's."""
    if kind == Cliques.kind:
        laws = msgspec.convert(member, _CliquesRecord).laws
        return Cliques([[_exact(p) for p in law] for law in laws], states=states)
    if kind == JointDistribution.kind:
        joint = msgspec.convert(member, _JointRecord)
        masses = [_exact(p) for p in joint.probabilities]
        return JointDistribution(joint.rows, masses, variables=joint.variables, states=states)
    if member != _OF_THE_USER:
        raise ModelError(f"{kind} are described as {_OF_THE_USER!r}")
    return None


def _exact(text: str) -> Fraction:
    if re.fullmatch(r"[0-9]{1,4000}(/[0-9]{0,3999}[1-9][0-9]{0,3999})?", text) is None:
        raise ModelError(f"a probability is {text[:40]!r}, expected a fraction")
    return Fraction(text)


_OF_THE_USER = {"laws": "computed by a function of the user's"}


def _plain(member: Any) -> dict[str, Any]:
    """Return a model other than a chain, or bounds, as plain values; fractions as text, which is exact."""
    if isinstance(member, Continuum):
        return member.plain
    if isinstance(member, PeriodicChain):
        start = member.initial_distribution
        return {
            "matrices": member.matrices.tolist(),
            "initial_distribution": start if isinstance(start, str) else start.tolist(),
            "clock": member.clock,
            "step": member.step,
        }
    if isinstance(member, HigherOrderChain):
        start = member.initial_distribution
        return {
            "tensor": member.tensor.tolist(),
            "initial_distribution": start if isinstance(start, str) else start.tolist(),
        }
    if isinstance(member, Cliques):
        return {"laws": [[str(p) for p in law] for law in member.laws]}
    if isinstance(member, JointDistribution):
        return {
            "variables": [str(v) for v in member.variables],
            "rows": [list(row) for row in member.rows],
            "probabilities": [str(p) for p in member.probabilities],
        }
    if isinstance(member, BayesianNetwork):
        return {
            "nodes": {
                state_label(name): {
                    "states": list(cpt.states),
                    "parents": [state_label(parent) for parent in cpt.parents],
                    "table": cpt.table.tolist(),
                }
                for name, cpt in member.cpts.items()
            }
        }
    return dict(_OF_THE_USER)


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


def check_names(theta: Theta, path: str | os.PathLike[str]) -> None:
    """Refuse to write networks whose nodes are not named by text: what is read again would be another network.

    Raises
    ------
    RecordError
        If a node's name is no text.
    """
    for network in theta.networks:
        for node in network.nodes:
            if not isinstance(node, str):
                raise RecordError(
                    f"cannot write {path}: node {node!r} is {type(node).__name__}, and files name nodes by text: "
                    f"make the network with {state_label(node)!r}"
                )


@called_as('write_model(Model(theta=theta), "model.json")')
def write_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model file; of what is there already only an earlier model is replaced.

    Raises
    ------
    ParameterError
        If it is no Model.
    RecordError
        If the file cannot be written, or would hold another network: names of nodes are text there. Nothing is left
        behind.
    """
    if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ParameterError(f"model is {type(model).__name__}, expected Model(theta=…)")
    check_path(path)
    if Path(path).name.lower().endswith(_BIF):
        raise RecordError(f"cannot write {path}: a model is written as JSON, and this name says BIF; use .json")
    check_names(model.theta, path)
    theta = ThetaRecord.of(model.theta)
    record = _ModelRecord(
        format=FORMAT,
        version=VERSION,
        origin=theta.origin,
        states=theta.states,
        chains=theta.chains,
        kind=theta.kind,
        members=theta.members,
        names=theta.names,
        bins=None if model.bins is None else list(model.bins),
        step=model.step,
        fitted_on=model.fitted_on,
    )
    write_whole(path, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n", MODEL, overwrite=True)


@called_as('read_model("model.json")')
def read_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file, every member checked as if it were made by hand; or a network from a BIF file.

    A name that ends in ``.bif`` or ``.bif.gz`` is read as BIF, a class of one network.

    Raises
    ------
    RecordError
        If the file cannot be read, is cut short, of another version, or describes no valid chain or network.
    """
    check_path(path)
    name = Path(path).name
    if name.lower().endswith(_BIF):
        return Model(theta=ModelClass((BayesianNetwork.from_bif(path),), f"{STATED}: {name}"))
    record = read_record(path, _ModelRecord, format_=FORMAT, version=VERSION)
    try:
        theta = ThetaRecord(
            record.origin, record.states, record.chains, record.kind, record.members, record.names
        ).theta()
        bins = None if record.bins is None else tuple(record.bins)
        return Model(theta=theta, bins=bins, step=record.step, fitted_on=record.fitted_on)
    except (ModelError, ParameterError) as error:
        raise RecordError(f"{path} holds no valid model: {error}") from error


def chains_of(model: Model, path: str | os.PathLike[str]) -> Model:
    """Return a model that was read from a path, if it is made of Markov chains.

    Raises
    ------
    NotApplicableError
        If it is made of other models.
    """
    if not isinstance(model.theta, ChainClass):
        raise NotApplicableError(
            f"{path} holds {model.theta.kind}; this command knows "
            + ("lists of chains only" if model.theta.of_chains else "Markov chains only, networks are for Python")
        )
    return model
