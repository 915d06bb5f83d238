"""A class Θ as it stands in model files, releases and ledgers; whoever makes it of that again checks every member."""

import re
from fractions import Fraction
from typing import Any

import msgspec

from pufferfish._base.frozen import FrozenRecord
from pufferfish.errors import ModelError
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.chain_class import CHAIN_MODELS, CONTINUA, ChainClass, ChainModels, Continuum
from pufferfish.theta.cliques import Cliques
from pufferfish.theta.given_laws import GivenLaws
from pufferfish.theta.higher_order_chain import HigherOrderChain
from pufferfish.theta.joint_distribution import JointDistribution
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import ModelClass, Theta
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.states import state_label

__all__ = ["ChainRecord", "ThetaRecord"]


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
        if self.kind in CONTINUA:
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
            chains.append(MarkovChain(chain.transition_matrix, start, states=self.states))
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
            return CONTINUA[self.kind].of_plain(self.members[0], self.states, self.origin)
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
