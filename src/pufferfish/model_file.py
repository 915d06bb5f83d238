"""Model files: a class Θ of chains or networks as JSON, with where it came from; a BIF file is such a class too."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from pufferfish.core.read_only import ReadOnly
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, RecordError
from pufferfish.files import read_record, write_whole
from pufferfish.frozen_record import FrozenRecord
from pufferfish.models.bayesian_network import CPT, BayesianNetwork
from pufferfish.models.chain_class import STATED, ChainClass
from pufferfish.models.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.models.cliques import Cliques
from pufferfish.models.joint_distribution import JointDistribution
from pufferfish.models.markov_chain import MarkovChain
from pufferfish.models.model_class import ModelClass, Theta, as_theta
from pufferfish.models.states import state_label

__all__ = ["ChainRecord", "Model", "ThetaRecord", "chains_of", "check_names", "read_model", "write_model"]

FORMAT = "pufferfish-model"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(ReadOnly):
    """A class Θ and how the tables it describes are read.

    Parameters
    ----------
    theta : ChainClass, BinaryChainInterval, IntervalChain, ModelClass of networks, or what makes one of them
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
        If networks come with bins or a step.
    """

    theta: Theta
    bins: tuple[float, ...] | None = None
    step: str | None = None
    fitted_on: str | None = None

    def __post_init__(self) -> None:
        theta = as_theta(self.theta)
        object.__setattr__(self, "theta", theta)
        object.__setattr__(self, "bins", None if self.bins is None else tuple(self.bins))
        if theta.of_chains:
            return
        if not isinstance(theta.members[0], BayesianNetwork):
            raise ModelError(
                f"theta is a class of {theta.kind}; a model is made of Markov chains or Bayesian networks, others are "
                "made where they are used"
            )
        for name, given in (("bins", self.bins), ("step", self.step)):
            if given is not None:
                raise ParameterError(f"{name} is {given!r}, and belongs to Markov chains: leave it out for networks")


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

    @classmethod
    def of(cls, theta: Theta) -> "ThetaRecord":
        """Return the record of a class."""
        chains = [ChainRecord.of(chain) for chain in theta.chains]
        others = () if chains else (theta,) if theta.of_chains else theta.members
        members = [_plain(other) for other in others]
        return cls(theta.origin, list(theta.states), chains, theta.kind, members)

    def theta(self) -> Theta:
        """Return the class, every member checked as if it were made by hand.

        Raises
        ------
        ModelError
            If a chain or network is none, or the class is of another kind.
        """
        if self.kind == BayesianNetwork.kind:
            return self._networks()
        if self.kind in (BinaryChainInterval.kind, IntervalChain.kind):
            return self._intervals()
        chains: list[MarkovChain] = []
        if self.kind != "Markov chains" or self.members:
            raise ModelError(f"theta is a class of {self.kind}, expected Markov chains or Bayesian networks alone")
        for i, chain in enumerate(self.chains):
            start = chain.initial_distribution
            if isinstance(start, str) and start not in ("stationary", "any"):
                raise ModelError(f'initial_distribution of chain {i} is {start!r}, expected "stationary" or "any"')
            chains.append(MarkovChain(chain.transition_matrix, start, states=self.states))  # pyright: ignore[reportArgumentType]
        return ChainClass(tuple(chains), self.origin)

    def _intervals(self) -> BinaryChainInterval | IntervalChain:
        if self.chains or len(self.members) != 1:
            raise ModelError(f"theta of {self.kind} is described by one member, its bounds, and by no chains")
        try:
            if self.kind == IntervalChain.kind:
                bounds = msgspec.convert(self.members[0], _IntervalRecord)
                return IntervalChain(bounds.lower, bounds.upper, states=self.states, origin=self.origin)
            two = msgspec.convert(self.members[0], _BinaryIntervalRecord)
        except msgspec.ValidationError as error:
            raise ModelError(f"bounds of {self.kind}: {error}") from error
        start, states = two.initial_distribution, tuple(self.states)
        return BinaryChainInterval(two.low, two.high, initial_distribution=start, states=states, origin=self.origin)

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


class _IntervalRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    lower: list[list[float]]
    upper: list[list[float]]


class _BinaryIntervalRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    low: float
    high: float
    initial_distribution: Literal["any", "stationary"]


class _NodeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    states: list[str]
    parents: list[str]
    table: list[Any]


class _NetworkRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    nodes: dict[str, _NodeRecord]


def _plain(member: Any) -> dict[str, Any]:
    """Return a model other than a chain, or bounds, as plain values; fractions as text, which is exact."""
    if isinstance(member, IntervalChain):
        return {"lower": member.lower.tolist(), "upper": member.upper.tolist()}
    if isinstance(member, BinaryChainInterval):
        return {"low": member.low, "high": member.high, "initial_distribution": member.initial_distribution}
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
    return {"laws": "computed by a function of the user's"}


class _ModelRecord(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    format: str
    version: int
    origin: str
    states: list[str]
    chains: list[ChainRecord] = []
    kind: str = "Markov chains"
    members: list[dict[str, Any]] = []
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


def write_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model file.

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
        bins=None if model.bins is None else list(model.bins),
        step=model.step,
        fitted_on=model.fitted_on,
    )
    write_whole(path, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file, every member checked as if it were made by hand; or a network from a BIF file.

    A name that ends in ``.bif`` or ``.bif.gz`` is read as BIF, a class of one network.

    Raises
    ------
    RecordError
        If the file cannot be read, is cut short, of another version, or describes no valid chain or network.
    """
    name = Path(path).name
    if name.lower().endswith((".bif", ".bif.gz")):
        return Model(theta=ModelClass((BayesianNetwork.from_bif(path),), f"{STATED}: {name}"))
    record = read_record(path, _ModelRecord, format_=FORMAT, version=VERSION)
    try:
        theta = ThetaRecord(record.origin, record.states, record.chains, record.kind, record.members).theta()
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
