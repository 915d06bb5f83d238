"""A class Θ as it stands in model files, releases and ledgers; whoever makes it of that again checks every member."""

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np

from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.reading import converted
from pufferfish.errors import ModelError, shortened
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.chain_class import CHAIN_MODELS, CONTINUA, MIXED, ChainClass, Continuum, members_in_words
from pufferfish.theta.cliques import Cliques
from pufferfish.theta.given_laws import GivenLaws
from pufferfish.theta.higher_order_chain import HigherOrderChain
from pufferfish.theta.joint_distribution import JointDistribution
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import ModelClass, Theta
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.states import check_number_of_states, state_label
from pufferfish.theta.stays_chain import StaysChain

Word = Literal["go on", "in doubt", "do not go on"]
"""What a check says of a model."""


class Checking(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a check of a class Θ against public data said last, as model files and releases keep it.

    ``date`` is the day of the check and ``source`` the name of the table, whose ``fingerprint`` releases leave out.
    ``same`` says that Θ was fitted to that table: then the check proves nothing about others.
    """

    word: Word
    date: str
    source: str
    same: bool = False
    fingerprint: str | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", self.date):
            raise ModelError(f"date of a check is {shortened(repr(self.date))}, expected such as 2026-11-27")
        if not self.source or not self.source.isprintable():
            raise ModelError(f"source of a check is {shortened(repr(self.source))}, expected the name of a table")

    def in_words(self) -> str:
        """Say when Θ was held against what, and what was found.

        Examples
        --------
        >>> Checking(word="go on", date="2026-11-27", source="survey-2020.csv").in_words()
        'checked on 2026-11-27 against survey-2020.csv: go on'
        """
        table = "the table that it was fitted to" if self.same else self.source
        return f"checked on {self.date} against {table}: {self.word}"


CONDEMNED: Word = "do not go on"
"""The word after which no release is made."""

NEVER_CHECKED = "never checked against public data"
"""What is said of a class without a check."""


class ChainRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """One Markov chain of Θ, as it stands in model and release files."""

    transition_matrix: list[list[float]]
    initial_distribution: list[float] | str


class ThetaRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The class Θ under which a promise holds."""

    origin: str
    states: list[str]
    chains: list[ChainRecord]
    kind: str = MarkovChain.kind
    members: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    names: list[str] = msgspec.field(default_factory=list[str])

    @classmethod
    def of(cls, theta: Theta) -> "ThetaRecord":
        """Return the record of a class."""
        chains = [ChainRecord(**_plain(chain)) for chain in theta.chains]
        others: Sequence[Any] = () if chains else theta.members or (theta,)  # a continuum describes itself
        members = [_of_several(model) if theta.kind == MIXED else _plain(model) for model in others]
        return cls(theta.origin, list(theta.states), chains, theta.kind, members, list(theta.names))

    @property
    def of_chains(self) -> bool:
        """Whether the records of the class are steps of chains."""
        return self.kind in {MIXED, *CONTINUA, *_CHAINS}

    @property
    def kinds(self) -> list[str]:
        """The kind of each member; of a continuum, and of a list of one kind, that of all."""
        return [str(member.get("kind")) for member in self.members] if self.kind == MIXED else [self.kind]

    def kind_of(self, theta: int) -> str:
        """Return the kind of a member."""
        return self.kinds[theta] if self.kind == MIXED else self.kind

    @property
    def in_words(self) -> str:
        """What belonging to the class means, where its members stand in a list."""
        return members_in_words(len(self.chains) + len(self.members))

    @property
    def size(self) -> int:
        """Bytes that it takes in a file."""
        return len(msgspec.json.format(msgspec.json.encode(self), indent=1))

    def theta(self) -> Theta:
        """Return the class, every member checked as if it were made by hand; of kinds that model files hold."""
        theta = None if self.kind in (Cliques.kind, JointDistribution.kind) else self.any_theta()
        if theta is None:
            raise self._of_another_kind()
        return theta

    def any_theta(self) -> Theta | None:
        """Return the class, of any kind; None for laws that a function of the user's gives."""
        of_chains_alone = self.kind == MarkovChain.kind
        if self.names and (not self.of_chains or self.kind in CONTINUA):
            raise ModelError(f"theta of {self.kind} has names of its members, which only lists of chains have")
        if self.kind in CONTINUA:
            return self._continuum()
        if self.kind not in {MIXED, *_MODELS} or (of_chains_alone and self.members):
            raise self._of_another_kind()
        if not of_chains_alone and (self.chains or not self.members):
            raise ModelError(f"theta of {self.kind} is described by its members, not by chains")
        given = [msgspec.structs.asdict(chain) for chain in self.chains] if of_chains_alone else self.members
        members: list[Any] = []
        for i, member in enumerate(given):
            try:
                several = self.kind == MIXED
                members.append((_one_of_several if several else partial(_member, self.kind))(member, self.states))
            except (msgspec.ValidationError, ModelError, ValueError) as error:
                name = f"network {i}" if self.kind == BayesianNetwork.kind else f"theta[{i}]"
                raise ModelError(f"{name}: {error}") from error
        if self.kind == GivenLaws.kind:
            check_number_of_states(self.states)
            if len(set(self.states)) < len(self.states) or not self.states:
                raise ModelError("theta names no states, or one of them twice")
            return None
        if self.of_chains:
            theta: Theta = ChainClass(tuple(members), self.origin, names=tuple(self.names))
        else:
            theta = ModelClass(tuple(members), self.origin)
        if theta.kind != self.kind:
            raise ModelError(f"theta is said to be a class of {self.kind}, and its members are {theta.kind}")
        if list(theta.states) != self.states:
            raise ModelError(f"states are {', '.join(self.states)}, those of the members {', '.join(theta.states)}")
        return theta

    def _of_another_kind(self) -> ModelError:
        return ModelError(f"theta is a class of {self.kind}, expected Markov chains or Bayesian networks alone")

    def _continuum(self) -> Continuum:
        if self.chains or len(self.members) != 1:
            raise ModelError(f"theta of {self.kind} is described by one member, its bounds, not by chains")
        try:
            return _member(self.kind, self.members[0], self.states, origin=self.origin)
        except msgspec.ValidationError as error:
            raise ModelError(f"bounds of {self.kind}: {error}") from error


# -- A member of Θ as plain values: its fields of these names, of which it is made again; fractions as exact text -----

_MATRIX, _LAW = list[list[float]], list[float] | str
_OF_THE_USER = "computed by a function of the user's"


class _Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    states: list[str]
    parents: list[str]
    table: list[Any]


_FIELDS: dict[Any, dict[str, Any]] = {
    MarkovChain: {"transition_matrix": _MATRIX, "initial_distribution": _LAW},
    PeriodicChain: {"matrices": list[_MATRIX], "initial_distribution": _LAW, "clock": str | None, "step": str | None},
    HigherOrderChain: {"tensor": list[Any], "initial_distribution": list[Any] | str},
    StaysChain: {"exits": _MATRIX, "stays": list[_MATRIX], "initial_distribution": _LAW},
    Cliques: {"laws": list[list[Fraction]]},
    JointDistribution: {"variables": list[str], "rows": list[list[str]], "probabilities": list[Fraction]},
    BayesianNetwork: {"nodes": dict[str, _Node]},
    GivenLaws: {"laws": Literal["computed by a function of the user's"]},
}
_MODELS = {model.kind: model for model in _FIELDS}
_CHAINS = {model.kind for model in (MarkovChain, *CHAIN_MODELS)}


class _OfSeveral(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A member of a class of mixed kinds; a continuum says where it came from."""

    kind: str
    model: dict[str, Any]
    origin: str | None = None


def _fields_of(model: Any) -> dict[str, Any]:
    if issubclass(model, Continuum):
        return dict(model.in_file)
    if model.kind in _MODELS:  # by its kind: a class that a user derives from a model is of the model's
        return _FIELDS[_MODELS[model.kind]]
    raise ModelError(f"theta is a class of {model.kind}, which cannot be stored in a model file or a release")


def _plain(member: Any) -> dict[str, Any]:
    """Return a model, or what lies between bounds, as plain values."""
    if isinstance(member, GivenLaws):
        return {"laws": _OF_THE_USER}
    if isinstance(member, BayesianNetwork):
        nodes = {
            state_label(name): _Node(list(cpt.states), list(map(state_label, cpt.parents)), cpt.table.tolist())
            for name, cpt in member.cpts.items()
        }
        return {"nodes": msgspec.to_builtins(nodes)}
    values = {name: getattr(member, name) for name in _fields_of(type(member))}
    if isinstance(member, JointDistribution):
        values["variables"] = map(str, member.variables)
    return {name: _plain_value(value) for name, value in values.items()}


def _of_several(member: Any) -> dict[str, Any]:
    """Return a member of a class of mixed kinds as plain values."""
    origin = member.origin if isinstance(member, Continuum) else None
    return msgspec.to_builtins(_OfSeveral(member.kind, _plain(member), origin))


def _one_of_several(plain: dict[str, Any], states: list[str]) -> Any:
    """Return the member of plain values that :func:`_of_several` gives."""
    record = converted(plain, _OfSeveral)
    if (record.origin is None) == (record.kind in CONTINUA):
        raise ModelError("classes such as IntervalChain need an origin, and other members must not have one")
    if record.kind not in {*_CHAINS, *CONTINUA}:
        raise ModelError(f"{shortened(repr(record.kind))} is not a kind of chains")
    return _member(record.kind, record.model, states, **({} if record.origin is None else {"origin": record.origin}))


def _plain_value(value: Any) -> Any:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return value.tolist() if isinstance(value, np.ndarray) else [_plain_value(part) for part in value]
    return str(value) if isinstance(value, Fraction) else value


def _member(kind: str, plain: dict[str, Any], states: list[str], **origin: str) -> Any:
    """Return the model of plain values that :func:`_plain` gives; None for laws of the user's."""
    model: Any = CONTINUA[kind] if kind in CONTINUA else _MODELS[kind]
    record = msgspec.defstruct("Member", list(_fields_of(model).items()), forbid_unknown_fields=True)
    values = msgspec.structs.asdict(converted(plain, record, dec_hook=_exact))
    if model is GivenLaws:
        return None
    if model is BayesianNetwork:
        return model({name: CPT(node.states, node.table, node.parents) for name, node in values["nodes"].items()})
    if model is JointDistribution:
        values["values"] = values.pop("rows")
    return model(**values, states=tuple(states), **origin)


def _exact(_: type, text: Any) -> Fraction:
    if not (isinstance(text, str) and re.fullmatch(r"[0-9]{1,4000}(/[0-9]{0,3999}[1-9][0-9]{0,3999})?", text)):
        raise ValueError(f"a probability is {str(text)[:40]!r}, expected a fraction")
    return Fraction(text)
